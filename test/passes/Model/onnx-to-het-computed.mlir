// What an exporter has computed is as large as it is used. For a fixed batch it
// is written once for each sample, and is taken once for all of them.
// RUN: python3 -c "import struct; open('%t.bin', 'wb').write(struct.pack('<12f', *2 * [1, 2, 3, 4, 5, 6]) + struct.pack('<12f', *4 * [1, 2, 3]) + struct.pack('<16f', *12 * [0], *4 * [1]))"
// RUN: sed s,FILE,%t.bin, %s | autohet-opt --onnx-to-het --split-input-file 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.err

// REMARK: remark: constant 'embedding' is the same for each of the 2 samples of the file; taken once, for all of them
// REMARK: remark: constant 'embedding_1' is the same
// REMARK-NOT: remark

// CHECK: het.weight_source "embedding" {{.*}} at 0 : tensor<1x2x3xf32>
// CHECK: het.weight_source "embedding_1" {{.*}} at 48 : tensor<1x1x3xf32>
// CHECK: het.weight_source "block.state" {{.*}} at 48 : tensor<2x2x3xf32>
// CHECK-LABEL: func.func @samples
// CHECK: het.broadcast {{.*}} : (tensor<1x2x3xf32>) -> tensor<2x2x3xf32>
// CHECK: het.broadcast {{.*}} : (tensor<1x1x3xf32>) -> tensor<2x2x3xf32>
// CHECK-NOT: het.broadcast
func.func @samples(%x: tensor<2x2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %positions = onnx.initializer "embedding" file "FILE" offset 0 bytes 48 : tensor<2x2x3xf32>
  %kinds = onnx.initializer "embedding_1" file "FILE" offset 48 bytes 48 : tensor<2x2x3xf32>
  // A name with dots is the model's own: that is refused later.
  %own = onnx.initializer "block.state" file "FILE" offset 48 bytes 48 : tensor<2x2x3xf32>
  %0 = onnx.node "Add"(%x, %positions) opset 18 {} : (tensor<2x2x3xf32>, tensor<2x2x3xf32>) -> !onnx.value
  %1 = onnx.node "Add"(%0, %kinds) opset 18 {} : (!onnx.value, tensor<2x2x3xf32>) -> !onnx.value
  %2 = onnx.node "Add"(%1, %own) opset 18 {} : (!onnx.value, tensor<2x2x3xf32>) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// Zeros that are only made to be written into are no parameter; two parts that
// fill them are what is left.
// CHECK-NOT: het.weight_source
// CHECK-LABEL: func.func @filled
// CHECK: %[[LEFT:.*]] = het.slice %arg0
// CHECK: %[[RIGHT:.*]] = het.slice %arg0
// CHECK: %[[BOTH:.*]] = het.concat %[[RIGHT]], %[[LEFT]]
// CHECK: return %[[BOTH]]
func.func @filled(%x: tensor<4x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %zeros = onnx.initializer "new_empty" file "FILE" offset 96 bytes 48 : tensor<4x3xf32>
  %ends = onnx.initializer "ends" value dense<1> : tensor<1xi64> : tensor<1xi64>
  %axes = onnx.initializer "axes" value dense<1> : tensor<1xi64> : tensor<1xi64>
  %none = onnx.initializer "none" value dense<0> : tensor<1xi64> : tensor<1xi64>
  %all = onnx.initializer "all" value dense<3> : tensor<1xi64> : tensor<1xi64>
  %first = onnx.initializer "first" value dense<[[[0, 2]], [[1, 2]], [[2, 2]], [[3, 2]]]> : tensor<4x1x2xi64> : tensor<4x1x2xi64>
  %rest = onnx.initializer "rest" value dense<[[[0, 0], [0, 1]], [[1, 0], [1, 1]], [[2, 0], [2, 1]], [[3, 0], [3, 1]]]> : tensor<4x2x2xi64> : tensor<4x2x2xi64>
  %left = onnx.node "Slice"(%x, %none, %ends, %axes) opset 18 {} : (tensor<4x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %right = onnx.node "Slice"(%x, %ends, %all, %axes) opset 18 {} : (tensor<4x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %0 = onnx.node "ScatterND"(%zeros, %first, %left) opset 18 {} : (tensor<4x3xf32>, tensor<4x1x2xi64>, !onnx.value) -> !onnx.value
  %1 = onnx.node "ScatterND"(%0, %rest, %right) opset 18 {} : (!onnx.value, tensor<4x2x2xi64>, !onnx.value) -> !onnx.value
  return %1 : !onnx.value
}

// -----

// A part of them that stays, and tuples in another order, which name no band.
// CHECK-LABEL: func.func @partly
// CHECK: %[[LEFT:.*]] = het.constant dense<0.000000e+00> : tensor<4x1xf32>
// CHECK: %[[RIGHT:.*]] = het.constant dense<0.000000e+00> : tensor<4x1xf32>
// CHECK: het.concat %[[LEFT]], %arg0, %[[RIGHT]]
// CHECK: %[[ZEROS:.*]] = het.constant dense<0.000000e+00> : tensor<4x3xf32>
// CHECK: het.scatter_nd replace %[[ZEROS]]
func.func @partly(%x: tensor<4x1xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %zeros = onnx.initializer "zeros_like" file "FILE" offset 96 bytes 48 : tensor<4x3xf32>
  %middle = onnx.initializer "middle" value dense<[[[0, 1]], [[1, 1]], [[2, 1]], [[3, 1]]]> : tensor<4x1x2xi64> : tensor<4x1x2xi64>
  %turned = onnx.initializer "turned" value dense<[[[1, 1]], [[0, 1]], [[2, 1]], [[3, 1]]]> : tensor<4x1x2xi64> : tensor<4x1x2xi64>
  %0 = onnx.node "ScatterND"(%zeros, %middle, %x) opset 18 {} : (tensor<4x3xf32>, tensor<4x1x2xi64>, tensor<4x1xf32>) -> !onnx.value
  %1 = onnx.node "ScatterND"(%zeros, %turned, %x) opset 18 {} : (tensor<4x3xf32>, tensor<4x1x2xi64>, tensor<4x1xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// A norm without a scale and a bias has them as Constant nodes; one that has
// them, as initializers.
// CHECK-NOT: weight_source "/norm
// CHECK: het.weight_source "scale" in
// CHECK: het.weight_source "bias" in
// CHECK-LABEL: func.func @plain_norms
func.func @plain_norms(%x: tensor<2x4x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %ones = onnx.initializer "/norm/Constant_output_0" file "FILE" offset 144 bytes 16 : tensor<4xf32>
  %zeros = onnx.initializer "/norm/Constant_1_output_0" file "FILE" offset 96 bytes 16 : tensor<4xf32>
  %scale = onnx.initializer "scale" file "FILE" offset 144 bytes 16 : tensor<4xf32>
  %bias = onnx.initializer "bias" file "FILE" offset 96 bytes 16 : tensor<4xf32>
  %0 = onnx.node "InstanceNormalization"(%x, %ones, %zeros) opset 18 {} : (tensor<2x4x3xf32>, tensor<4xf32>, tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "InstanceNormalization"(%0, %scale, %bias) opset 18 {} : (!onnx.value, tensor<4xf32>, tensor<4xf32>) -> !onnx.value
  return %1 : !onnx.value
}
