// RUN: autohet-opt %s --het-attach-loss="loss=mse output=b" | FileCheck %s
// RUN: not autohet-opt %s --het-attach-loss="output=c" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not autohet-opt %s --het-attach-loss="loss=hinge" 2>&1 | FileCheck %s --check-prefix=LOSS

// NONE: error: no output to compute the loss of: wanted one called 'c', found ['a' 'tensor<2x3xf32>', 'b' 'tensor<2xf32>']
// LOSS: error: unknown loss 'hinge', wanted cross-entropy or mse

// CHECK-LABEL: func.func @model
// CHECK-SAME: %[[LABELS:arg[0-9]+]]: tensor<2xf32> {het.batch_dim = 0 : i64, het.name = "labels"
func.func @model(%a: tensor<2x3xf32>, %b: tensor<2xf32>)
    -> (tensor<2x3xf32> {het.name = "a"}, tensor<2xf32> {het.name = "b"}) {
  // CHECK: %[[D:.*]] = het.sub %arg1, %[[LABELS]]
  // CHECK: %[[S:.*]] = het.mul %[[D]], %[[D]]
  // CHECK: %[[SUM:.*]] = het.reduce sum %[[S]] dims [0]
  // CHECK: het.mul %[[SUM]], %arg3
  return %a, %b : tensor<2x3xf32>, tensor<2xf32>
}
