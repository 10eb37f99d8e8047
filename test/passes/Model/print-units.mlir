// RUN: autohet-opt %s --het-attach-loss --het-differentiate --het-number-units --het-print-units -o %t | FileCheck %s

// Two samples in the function, numbers for one of them.
// CHECK: "structure_hash": "{{[0-9a-f]+}}"
// CHECK: {"name": "w1", "bytes": 60, "trained": true, "divided": true, "divided_by_rows": true}
// CHECK: {"name": "w2", "bytes": 40, "trained": true, "divided": true}
// Layer 0 multiplies 3 by 5 elements, forwards and for the weight's gradient. The
// input needs none. It keeps what gelu's adjoint reads. Commands are the product
// and gelu, backwards gelu's adjoint and the product that adds to the gradient of
// the weight; the weight is read once a pass and its gradient read and written.
// CHECK: {"id": "layer0"
// CHECK-SAME: "forward": {"per_sample": {"flops": 30, "elementwise_flops": 25, "traffic_bytes": 40}, "once": {"commands": 2, "traffic_bytes": 60}}
// CHECK-SAME: "backward": {"per_sample": {"flops": 30, "elementwise_flops": 55, "traffic_bytes": 60}, "once": {"commands": 2, "traffic_bytes": 120}, "exchanges": {{\[\[}}"cut", 20]]}
// CHECK-SAME: "activation_bytes": 20
// CHECK: {"id": "layer1"
// CHECK-SAME: "forward": {"per_sample": {"flops": 20
// CHECK-SAME: "backward": {"per_sample": {"flops": 40
func.func @model(%x: tensor<2x3xf32>) -> (tensor<2x2xf32> {het.name = "y"}) attributes {het.batch_size = 2 : i64} {
  %w1 = het.parameter "w1" : tensor<5x3xf32>
  %h = het.matmul %x, %w1 contract [1] [1] : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
  %a = het.gelu erf %h : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %w2 = het.parameter "w2" : tensor<5x2xf32>
  %y = het.matmul %a, %w2 contract [1] [0] : (tensor<2x5xf32>, tensor<5x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
