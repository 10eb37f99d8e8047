// The Plan phase on a small language model with a tied table.
//
// RUN: autohet-opt %s --pass-pipeline='builtin.module(autohet-plan{stages="4x2:embed-block0@n0/0,head@n0/1"})' \
// RUN:   | FileCheck %s
// RUN: autohet-opt %s \
// RUN:   --pass-pipeline='builtin.module(autohet-plan{stages="3x2:embed-head@n0/0; 5x2:embed@n0/1,block0-head@n1/0+n1/1(2:1)"})' \
// RUN:   | FileCheck %s --check-prefix=UNLIKE

// The table is on both stages: the first owns it, adds the second's part of the
// gradient and sends the new bytes back.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         %[[R:.*]] = dist.recv from 1 channel [[A:[0-9]+]] inline {{.*}}het.phase = "reduce"}
// CHECK:         dist.norm
// CHECK:         %[[G:.*]] = dist.local_gradient "wte.weight"
// CHECK:         %[[S:.*]] = het.add %[[G]], %[[R]]
// CHECK:         dist.norm %[[S]]
// CHECK:         dist.agree
// CHECK:         %[[P:.*]] = dist.update "wte.weight" at [0, 0] of [101, 48] by %[[S]]
// CHECK:         dist.send %[[P]] to 1 channel [[B:[0-9]+]] inline
// CHECK:         dist.update "w" at [0, 0] of [48, 48]
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         %[[X:.*]] = dist.recv from 0 channel 0 {het.unit = "head"}
// CHECK:         %[[T:.*]] = het.parameter "wte.weight" : tensor<101x48xf32>
// CHECK:         het.matmul %[[X]], %[[T]]
// CHECK:         dist.send %{{.*}} to 0 channel 1 {het.phase = "backward", het.unit = "head"}
// CHECK:         dist.send %{{.*}} to 0 channel [[A]] inline {{.*}}het.phase = "reduce"}
// CHECK-NOT:     dist.norm
// CHECK:         dist.agree
// CHECK-NOT:     dist.update
// CHECK:         %[[N:.*]] = dist.recv from 0 channel [[B]] inline
// CHECK:         dist.store_parameter "wte.weight" %[[N]] at [0, 0] of [101, 48]

// Replicas that are unlike in depth, division and number of microbatches, over
// one common refinement. Ranks go node by node.
// UNLIKE-DAG:   func.func @"n0/0"{{.*}}rank = 0, world = 4, replica = 0, stage = 0, stages = 1, microbatches = 3, microbatch_size = 2, first_sample = 0, global_batch = 16
// UNLIKE-DAG:   func.func @"n0/1"{{.*}}rank = 1, world = 4, replica = 1, stage = 0, stages = 2, microbatches = 5, microbatch_size = 2, first_sample = 6, global_batch = 16
// UNLIKE-DAG:   func.func @"n1/0"{{.*}}rank = 2, world = 4, replica = 1, stage = 1, stages = 2, microbatches = 5
// UNLIKE-DAG:   func.func @"n1/1"{{.*}}rank = 3, world = 4, replica = 1, stage = 1, stages = 2, microbatches = 5
// UNLIKE-DAG:   dist.update "wte.weight" at [0, 0] of [101, 48] by %{{.*}} : tensor<67x32xf32>
// UNLIKE-DAG:   dist.update "wte.weight" at [67, 0] of [101, 48] by %{{.*}} : tensor<34x32xf32>
// UNLIKE-DAG:   dist.update "wte.weight" at [0, 32] of [101, 48] by %{{.*}} : tensor<67x16xf32>
// UNLIKE-DAG:   dist.update "wte.weight" at [67, 32] of [101, 48] by %{{.*}} : tensor<34x16xf32>
// UNLIKE-DAG:   dist.update "w" at [0, 0] of [48, 48] by %{{.*}} : tensor<48x32xf32>
// UNLIKE-DAG:   dist.update "w" at [0, 32] of [48, 48] by %{{.*}} : tensor<48x16xf32>

func.func @model(%ids: tensor<2x12xi64> {het.name = "input_ids", het.role = "input", het.kind = "tokens", het.vocabulary = 101},
    %labels: tensor<2x12xi64> {het.name = "labels", het.role = "labels", het.kind = "labels"},
    %inv: tensor<f32> {het.role = "inverse_label_count"})
    -> (tensor<f32> {het.name = "loss"}, tensor<2x12x101xf32> {het.name = "logits"}) attributes {het.batch_size = 2, het.units = ["embed", "block0", "head"]} {
  %t = het.parameter "wte.weight" : tensor<101x48xf32>
  %x = het.embedding %t, %ids {het.unit = "embed"} : (tensor<101x48xf32>, tensor<2x12xi64>) -> tensor<2x12x48xf32>
  %w = het.parameter "w" : tensor<48x48xf32>
  %q = het.matmul %x, %w contract [2] [0] {het.unit = "block0"} : (tensor<2x12x48xf32>, tensor<48x48xf32>) -> tensor<2x12x48xf32>
  %g = het.gelu tanh %q {het.unit = "block0"} : (tensor<2x12x48xf32>) -> tensor<2x12x48xf32>
  %t2 = het.parameter "wte.weight" : tensor<101x48xf32>
  %y = het.matmul %g, %t2 contract [2] [1] {het.unit = "head"} : (tensor<2x12x48xf32>, tensor<101x48xf32>) -> tensor<2x12x101xf32>
  %ls, %lse = het.cross_entropy %y, %labels {ignore_index = -100 : i64, het.unit = "head"} : (tensor<2x12x101xf32>, tensor<2x12xi64>) -> (tensor<f32>, tensor<2x12xf32>)
  %loss = het.mul %ls, %inv {het.unit = "head"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dl = het.cross_entropy_backward %y, %labels, %lse, %inv {ignore_index = -100 : i64, het.unit = "head", het.phase = "backward"} : (tensor<2x12x101xf32>, tensor<2x12xi64>, tensor<2x12xf32>, tensor<f32>) -> tensor<2x12x101xf32>
  %dg = het.matmul %dl, %t2 contract [2] [0] {het.unit = "head", het.phase = "backward"} : (tensor<2x12x101xf32>, tensor<101x48xf32>) -> tensor<2x12x48xf32>
  %dt2 = het.matmul %dl, %g contract [0, 1] [0, 1] {het.unit = "head", het.phase = "backward"} : (tensor<2x12x101xf32>, tensor<2x12x48xf32>) -> tensor<101x48xf32>
  het.gradient "wte.weight" %dt2 {het.unit = "head", het.phase = "backward"} : tensor<101x48xf32>
  %dq = het.gelu_backward tanh %q, %dg {het.unit = "block0", het.phase = "backward"} : (tensor<2x12x48xf32>, tensor<2x12x48xf32>) -> tensor<2x12x48xf32>
  %dw = het.matmul %x, %dq contract [0, 1] [0, 1] {het.unit = "block0", het.phase = "backward"} : (tensor<2x12x48xf32>, tensor<2x12x48xf32>) -> tensor<48x48xf32>
  het.gradient "w" %dw {het.unit = "block0", het.phase = "backward"} : tensor<48x48xf32>
  %dx = het.matmul %dq, %w contract [2] [1] {het.unit = "block0", het.phase = "backward"} : (tensor<2x12x48xf32>, tensor<48x48xf32>) -> tensor<2x12x48xf32>
  %dt = het.embedding_backward %ids, %dx {rows = 101 : i64, het.unit = "embed", het.phase = "backward"} : (tensor<2x12xi64>, tensor<2x12x48xf32>) -> tensor<101x48xf32>
  het.gradient "wte.weight" %dt {het.unit = "embed", het.phase = "backward"} : tensor<101x48xf32>
  return %loss, %y : tensor<f32>, tensor<2x12x101xf32>
}
