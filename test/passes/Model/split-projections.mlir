// RUN: autohet-opt %s --het-split-projections --split-input-file | FileCheck %s

// GPT-2: weight [in, 3 * out], bias, Split.
// CHECK-LABEL: func @conv1d
// CHECK-DAG: %[[W0:.*]] = het.parameter "c_attn.weight" offsets [0, 0] of [4, 12] : tensor<4x4xf32>
// CHECK-DAG: %[[W1:.*]] = het.parameter "c_attn.weight" offsets [0, 4] of [4, 12] : tensor<4x4xf32>
// CHECK-DAG: %[[W2:.*]] = het.parameter "c_attn.weight" offsets [0, 8] of [4, 12] : tensor<4x4xf32>
// CHECK-DAG: %[[B0:.*]] = het.parameter "c_attn.bias" offsets [0] of [12] : tensor<4xf32>
// CHECK-DAG: %[[B1:.*]] = het.parameter "c_attn.bias" offsets [4] of [12] : tensor<4xf32>
// CHECK-DAG: %[[B2:.*]] = het.parameter "c_attn.bias" offsets [8] of [12] : tensor<4xf32>
// CHECK-DAG: %[[P0:.*]] = het.matmul %arg0, %[[W0]] contract [2] [0]
// CHECK-DAG: %[[Q:.*]] = het.add %[[P0]], %[[B0]]
// CHECK-DAG: %[[P1:.*]] = het.matmul %arg0, %[[W1]]
// CHECK-DAG: %[[K:.*]] = het.add %[[P1]], %[[B1]]
// CHECK-DAG: %[[P2:.*]] = het.matmul %arg0, %[[W2]]
// CHECK-DAG: %[[V:.*]] = het.add %[[P2]], %[[B2]]
// CHECK: return %[[Q]], %[[K]], %[[V]]
func.func @conv1d(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %w = het.parameter "c_attn.weight" : tensor<4x12xf32>
  %b = het.parameter "c_attn.bias" : tensor<12xf32>
  %p = het.matmul %x, %w contract [2] [0] : (tensor<2x3x4xf32>, tensor<4x12xf32>) -> tensor<2x3x12xf32>
  %a = het.add %p, %b : (tensor<2x3x12xf32>, tensor<12xf32>) -> tensor<2x3x12xf32>
  %q = het.slice %a offsets [0, 0, 0] sizes [2, 3, 4] strides [1, 1, 1] : (tensor<2x3x12xf32>) -> tensor<2x3x4xf32>
  %k = het.slice %a offsets [0, 0, 4] sizes [2, 3, 4] strides [1, 1, 1] : (tensor<2x3x12xf32>) -> tensor<2x3x4xf32>
  %v = het.slice %a offsets [0, 0, 8] sizes [2, 3, 4] strides [1, 1, 1] : (tensor<2x3x12xf32>) -> tensor<2x3x4xf32>
  return %q, %k, %v : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// PyTorch's layout [out, in] and parts of unequal size (fewer key heads).
// CHECK-LABEL: func @linear
// CHECK-DAG: %[[W0:.*]] = het.parameter "qkv.weight" offsets [0, 0] of [8, 4] : tensor<4x4xf32>
// CHECK-DAG: %[[W1:.*]] = het.parameter "qkv.weight" offsets [4, 0] of [8, 4] : tensor<2x4xf32>
// CHECK-DAG: %[[Q:.*]] = het.matmul %arg0, %[[W0]] contract [2] [1]
// CHECK-DAG: %[[K:.*]] = het.matmul %arg0, %[[W1]] contract [2] [1]
// CHECK: return %[[Q]], %[[K]]
func.func @linear(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x2xf32>) {
  %w = het.parameter "qkv.weight" : tensor<8x4xf32>
  %p = het.matmul %x, %w contract [2] [1] : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  %q = het.slice %p offsets [0, 0, 0] sizes [2, 3, 4] strides [1, 1, 1] : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %k = het.slice %p offsets [0, 0, 4] sizes [2, 3, 2] strides [1, 1, 1] : (tensor<2x3x8xf32>) -> tensor<2x3x2xf32>
  return %q, %k : tensor<2x3x4xf32>, tensor<2x3x2xf32>
}

// -----

// Gate and up of an expert, cleared for tokens that did not choose it.
// CHECK-LABEL: func @cleared
// CHECK-SAME: %[[X:.*]]: tensor<3x4xf32>, %[[IS:.*]]: tensor<3x1xi1>
// CHECK-DAG: %[[W0:.*]] = het.parameter "gate_up.weight" offsets [0, 0] of [8, 4] : tensor<4x4xf32>
// CHECK-DAG: %[[W1:.*]] = het.parameter "gate_up.weight" offsets [4, 0] of [8, 4] : tensor<4x4xf32>
// CHECK-DAG: %[[P0:.*]] = het.matmul %[[X]], %[[W0]] contract [1] [1]
// CHECK-DAG: %[[P1:.*]] = het.matmul %[[X]], %[[W1]] contract [1] [1]
// CHECK-DAG: %[[G:.*]] = het.select %[[IS]], %[[P0]], %{{.*}} -> tensor<3x4xf32>
// CHECK-DAG: %[[U:.*]] = het.select %[[IS]], %[[P1]], %{{.*}} -> tensor<3x4xf32>
// CHECK: return %[[G]], %[[U]]
func.func @cleared(%x: tensor<3x4xf32>, %is: tensor<3x1xi1>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %w = het.parameter "gate_up.weight" : tensor<8x4xf32>
  %zero = het.constant dense<0.0> : tensor<f32>
  %p = het.matmul %x, %w contract [1] [1] : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  %c = het.select %is, %p, %zero : (tensor<3x1xi1>, tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  %g = het.slice %c offsets [0, 0] sizes [3, 4] strides [1, 1] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %u = het.slice %c offsets [0, 4] sizes [3, 4] strides [1, 1] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  return %g, %u : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// reshape(3, heads, head_dim), permute, unbind.
// CHECK-LABEL: func @unbind
// CHECK-DAG: %[[W0:.*]] = het.parameter "qkv.weight" offsets [0, 0] of [12, 4] : tensor<4x4xf32>
// CHECK-DAG: %[[W2:.*]] = het.parameter "qkv.weight" offsets [8, 0] of [12, 4] : tensor<4x4xf32>
// CHECK-DAG: het.matmul %arg0, %[[W0]]
// CHECK-DAG: het.matmul %arg0, %[[W2]]
// CHECK-NOT: het.slice
func.func @unbind(%x: tensor<2x3x4xf32>) -> (tensor<1x2x2x3x2xf32>, tensor<1x2x2x3x2xf32>) {
  %w = het.parameter "qkv.weight" : tensor<12x4xf32>
  %p = het.matmul %x, %w contract [2] [1] : (tensor<2x3x4xf32>, tensor<12x4xf32>) -> tensor<2x3x12xf32>
  %r = het.reshape %p to [2, 3, 3, 2, 2] : (tensor<2x3x12xf32>) -> tensor<2x3x3x2x2xf32>
  %t = het.transpose %r by [2, 0, 3, 1, 4] : (tensor<2x3x3x2x2xf32>) -> tensor<3x2x2x3x2xf32>
  %q = het.slice %t offsets [0, 0, 0, 0, 0] sizes [1, 2, 2, 3, 2] strides [1, 1, 1, 1, 1] : (tensor<3x2x2x3x2xf32>) -> tensor<1x2x2x3x2xf32>
  %v = het.slice %t offsets [2, 0, 0, 0, 0] sizes [1, 2, 2, 3, 2] strides [1, 1, 1, 1, 1] : (tensor<3x2x2x3x2xf32>) -> tensor<1x2x2x3x2xf32>
  return %q, %v : tensor<1x2x2x3x2xf32>, tensor<1x2x2x3x2xf32>
}

// -----

// The whole is used too, or the parts overlap: nothing is computed twice.
// CHECK-LABEL: func @not_only_slices
// CHECK: het.matmul {{.*}} -> tensor<2x3x8xf32>
// CHECK: het.slice
// CHECK-NOT: offsets [4, 0] of
func.func @not_only_slices(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x8xf32>) {
  %w = het.parameter "weight" : tensor<8x4xf32>
  %p = het.matmul %x, %w contract [2] [1] : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  %q = het.slice %p offsets [0, 0, 4] sizes [2, 3, 4] strides [1, 1, 1] : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  return %q, %p : tensor<2x3x4xf32>, tensor<2x3x8xf32>
}

// CHECK-LABEL: func @overlap
// CHECK: het.slice
// CHECK: het.slice
func.func @overlap(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x5xf32>) {
  %w = het.parameter "weight" : tensor<8x4xf32>
  %p = het.matmul %x, %w contract [2] [1] : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  %q = het.slice %p offsets [0, 0, 4] sizes [2, 3, 4] strides [1, 1, 1] : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %r = het.slice %p offsets [0, 0, 0] sizes [2, 3, 5] strides [1, 1, 1] : (tensor<2x3x8xf32>) -> tensor<2x3x5xf32>
  return %q, %r : tensor<2x3x4xf32>, tensor<2x3x5xf32>
}

// -----

// A view of a view.
// CHECK-LABEL: func @view_of_view
// CHECK-NEXT: het.parameter "w" offsets [3, 1] of [8, 4] : tensor<2x3xf32>
func.func @view_of_view() -> tensor<2x3xf32> {
  %w = het.parameter "w" offsets [2, 0] of [8, 4] : tensor<4x4xf32>
  %s = het.slice %w offsets [1, 1] sizes [2, 3] strides [1, 1] : (tensor<4x4xf32>) -> tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}
