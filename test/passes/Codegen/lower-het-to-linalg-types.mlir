// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Halves are computed in f32 and rounded after the op.
// CHECK-LABEL: func.func private @half
// CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.addf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func private @half(%x: tensor<2xf16>, %y: tensor<2xf16>) -> tensor<2xf16> {
  %z = het.add %x, %y : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
  return %z : tensor<2xf16>
}

// -----

// Unsigned integers become signless; the op remembers what they were.
// CHECK-LABEL: func.func private @unsigned_max(
// CHECK-SAME: tensor<2xi8>
// CHECK: arith.maxui
func.func private @unsigned_max(%x: tensor<2xui8>, %y: tensor<2xui8>) -> tensor<2xui8> {
  %z = het.max %x, %y : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return %z : tensor<2xui8>
}

// -----

// CHECK-LABEL: func.func private @signed_max
// CHECK: arith.maxsi
func.func private @signed_max(%x: tensor<2xi8>, %y: tensor<2xi8>) -> tensor<2xi8> {
  %z = het.max %x, %y : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  return %z : tensor<2xi8>
}

// -----

// 8-bit floats are bytes: to them by counting the midpoints (126 finite steps
// of f8E4M3FN) that a number lies above, back by a table of all 256 values.
// CHECK-LABEL: func.func private @small
// CHECK: arith.constant dense<{{.*}}> : tensor<126xf32>
// CHECK: arith.cmpf ogt
// CHECK: arith.trunci %{{.*}} : i32 to i8
// CHECK: arith.constant dense<{{.*}}> : tensor<256xf32>
// CHECK: tensor.extract %{{.*}} : tensor<256xf32>
func.func private @small(%x: tensor<2xf32>) -> tensor<2xf32> {
  %h = het.cast %x {to = f8E4M3FN} : (tensor<2xf32>) -> tensor<2xf8E4M3FN>
  %y = het.cast %h {to = f32} : (tensor<2xf8E4M3FN>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
