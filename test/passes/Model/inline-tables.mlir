// RUN: printf '\0\0\0\0\0\0\200\277\0\0\0\0\0\0\0\0' > %t.bin
// RUN: sed 's|FILE|%t.bin|' %s | autohet-opt --het-inline-tables --split-input-file --verify-diagnostics | FileCheck %s

// The mask becomes a constant; the record of where it lies stays. What is
// trained, and a matrix that is not, remain parameters.
// CHECK: het.weight_source "mask"
// CHECK: het.weight_source "weight"
// CHECK-LABEL: func @tables
// CHECK-DAG: %[[M:.*]] = het.constant dense<{{\[\[}}0.000000e+00, -1.000000e+00], [0.000000e+00, 0.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: %[[W:.*]] = het.parameter "weight" untrained
// CHECK-DAG: %[[B:.*]] = het.parameter "bias" : tensor<2x2xf32>
// CHECK: het.matmul %arg0, %[[W]]
// CHECK: het.add %{{.*}}, %[[M]]
// CHECK: het.add %{{.*}}, %[[B]]
het.weight_source "mask" in "FILE" at 0 untrained because "added to attention scores" : tensor<2x2xf32>
het.weight_source "weight" in "FILE" at 0 untrained because "named by --constant" : tensor<2x2xf32>
het.weight_source "bias" in "FILE" at 0 : tensor<2x2xf32>
func.func @tables(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %m = het.parameter "mask" untrained : tensor<2x2xf32>
  %w = het.parameter "weight" untrained : tensor<2x2xf32>
  %b = het.parameter "bias" : tensor<2x2xf32>
  %p = het.matmul %x, %w contract [1] [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %s = het.add %p, %m : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = het.add %s, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// expected-error @below {{has 16 bytes, fewer than the 24 that end with this tensor}}
het.weight_source "mask" in "FILE" at 8 untrained because "added to attention scores" : tensor<2x2xf32>
func.func @short_file(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %m = het.parameter "mask" untrained : tensor<2x2xf32>
  %s = het.add %x, %m : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %s : tensor<2x2xf32>
}

// -----

// expected-error @below {{cannot read '/nowhere/mask.bin': No such file or directory}}
het.weight_source "mask" in "/nowhere/mask.bin" at 8 untrained because "added to attention scores" : tensor<2x2xf32>
func.func @no_file(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %m = het.parameter "mask" untrained : tensor<2x2xf32>
  %s = het.add %x, %m : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %s : tensor<2x2xf32>
}
