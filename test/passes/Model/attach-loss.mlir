// RUN: autohet-opt %s --het-attach-loss --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @model(
// CHECK-SAME: %[[LABELS:arg[0-9]+]]: tensor<2x3xi64> {het.batch_dim = 0 : i64, het.name = "labels", het.role = "labels"}
// CHECK-SAME: %[[N:arg[0-9]+]]: tensor<f32> {het.name = "inverse_label_count", het.role = "inverse_label_count"}
// CHECK-SAME: -> (tensor<f32> {het.name = "loss"}, tensor<3xf32> {het.name = "aside"}, tensor<2x3x7xf32> {het.name = "logits"})
func.func @model(%x: tensor<2x3x7xf32> {het.name = "x", het.role = "input"}, %aside: tensor<3xf32>)
    -> (tensor<3xf32> {het.name = "aside"}, tensor<2x3x7xf32> {het.name = "logits"}) {
  // CHECK: %[[SUM:.*]], %{{.*}} = het.cross_entropy %arg0, %[[LABELS]] {ignore_index = -100 : i64}
  // CHECK: %[[LOSS:.*]] = het.mul %[[SUM]], %[[N]]
  // CHECK: return %[[LOSS]], %arg1, %arg0
  return %aside, %x : tensor<3xf32>, tensor<2x3x7xf32>
}

// -----

// expected-error @+1 {{no output to compute the loss of: wanted a float output of rank 2 or more, found ['ids' 'tensor<2xi64>']}}
func.func @none(%x: tensor<2xi64>) -> (tensor<2xi64> {het.name = "ids"}) {
  return %x : tensor<2xi64>
}

// -----

// expected-error @+1 {{has a loss already: argument 0 has the role 'labels'}}
func.func @again(%x: tensor<2x3xf32> {het.role = "labels"}) -> tensor<2x3xf32> {
  return %x : tensor<2x3xf32>
}

// -----

// expected-error @+1 {{the loss needs an output of f32 of rank 1 or more, but '' is 'tensor<2x3xf16>'}}
func.func @half(%x: tensor<2x3xf16>) -> tensor<2x3xf16> {
  return %x : tensor<2x3xf16>
}

// -----

// Terms of the loss weigh as much as the microbatch's labels, and end here.
// CHECK-LABEL: func.func @terms(
// CHECK-SAME: %[[LABELS:arg[0-9]+]]: tensor<2x3xi64>
// CHECK-SAME: %[[N:arg[0-9]+]]: tensor<f32> {het.name = "inverse_label_count"
// CHECK-SAME: -> (tensor<f32> {het.name = "loss"}, tensor<2x3x7xf32> {het.name = "logits"})
func.func @terms(%x: tensor<2x3x7xf32>, %a: tensor<f32>)
    -> (tensor<2x3x7xf32> {het.name = "logits"}, tensor<f32> {het.loss_factor = 2.0e-2 : f64, het.name = "aux_loss"}) {
  // CHECK: %[[SUM:.*]], %{{.*}} = het.cross_entropy %arg0, %[[LABELS]]
  // CHECK: %[[MEAN:.*]] = het.mul %[[SUM]], %[[N]]
  // CHECK: %[[FACTOR:.*]] = het.constant dense<2.000000e-02> : tensor<f32>
  // CHECK: %[[TERM:.*]] = het.mul %arg1, %[[FACTOR]]
  // CHECK: %[[IGNORED:.*]] = het.constant dense<-100> : tensor<i64>
  // CHECK: %[[COUNTS:.*]] = het.compare ne %[[LABELS]], %[[IGNORED]]
  // CHECK: %[[ONES:.*]] = het.cast %[[COUNTS]] {to = f32}
  // CHECK: %[[COUNT:.*]] = het.reduce sum %[[ONES]] dims [0, 1]
  // CHECK: %[[WEIGHT:.*]] = het.mul %[[COUNT]], %[[N]]
  // CHECK: %[[PART:.*]] = het.mul %[[TERM]], %[[WEIGHT]]
  // CHECK: %[[LOSS:.*]] = het.add %[[MEAN]], %[[PART]]
  // CHECK: return %[[LOSS]], %arg0
  return %x, %a : tensor<2x3x7xf32>, tensor<f32>
}
