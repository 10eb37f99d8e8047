// Three replicas, two of them in one node: what crosses does so once.
//
// RUN: autohet-opt %s --dist-synchronize-gradients=exchange=hierarchical | FileCheck %s
// RUN: not autohet-opt %s --dist-synchronize-gradients=exchange=ring 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unknown exchange 'ring', wanted direct or hierarchical

// The owner hears of the other node once and answers once.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.gradient "w"
// CHECK-NEXT:    %[[SUM:.*]] = dist.recv from 1 channel [[UP:[0-9]+]] inline {{.*}}het.phase = "reduce"}
// CHECK-NEXT:    %[[OWN:.*]] = dist.local_gradient "w"
// CHECK-NEXT:    %[[ALL:.*]] = het.add %[[OWN]], %[[SUM]]
// CHECK-NEXT:    dist.norm %[[ALL]]
// CHECK-NEXT:    dist.agree
// CHECK-NEXT:    %[[NEW:.*]] = dist.update "w" at [0] of [4] by %[[ALL]]
// CHECK-NEXT:    dist.send %[[NEW]] to 1 channel [[DOWN:[0-9]+]] inline
// CHECK-NEXT:    dist.store_parameter "w" %[[NEW]]
// The relay adds behind the last backward, where nothing waits for it.
// CHECK-LABEL: func.func @"n1/0"
// CHECK:         het.gradient "w"
// CHECK-NEXT:    %[[PART:.*]] = dist.recv from 2 channel [[UP]] inline {{.*}}het.phase = "reduce"}
// CHECK-NEXT:    %[[MINE:.*]] = dist.local_gradient "w"
// CHECK-NEXT:    %[[BOTH:.*]] = het.add %[[MINE]], %[[PART]] {het.phase = "update"}
// CHECK-NEXT:    dist.send %[[BOTH]] to 0 channel [[UP]] inline {{.*}}het.phase = "update"}
// CHECK-NEXT:    dist.agree
// CHECK-NEXT:    %[[GOT:.*]] = dist.recv from 0 channel [[DOWN]] inline
// CHECK-NEXT:    dist.send %[[GOT]] to 2 channel [[DOWN]] inline
// CHECK-NEXT:    dist.store_parameter "w" %[[GOT]]
// CHECK-LABEL: func.func @"n1/1"
// CHECK:         dist.send %{{.*}} to 1 channel [[UP]] inline {{.*}}het.phase = "reduce"}
// CHECK-NEXT:    dist.agree
// CHECK-NEXT:    %[[LAST:.*]] = dist.recv from 1 channel [[DOWN]] inline
// CHECK-NEXT:    dist.store_parameter "w" %[[LAST]]

func.func @"n0/0"(%g: tensor<4xf32>) attributes {dist.program = #dist.program<device = "n0/0", rank = 0, world = 3, replica = 0,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 6>} {
  %w = het.parameter "w" : tensor<4xf32>
  het.gradient "w" %g {het.phase = "backward"} : tensor<4xf32>
  return
}
func.func @"n1/0"(%g: tensor<4xf32>) attributes {dist.program = #dist.program<device = "n1/0", rank = 1, world = 3, replica = 1,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 2, global_batch = 6>} {
  %w = het.parameter "w" : tensor<4xf32>
  het.gradient "w" %g {het.phase = "backward"} : tensor<4xf32>
  return
}
func.func @"n1/1"(%g: tensor<4xf32>) attributes {dist.program = #dist.program<device = "n1/1", rank = 2, world = 3, replica = 2,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 4, global_batch = 6>} {
  %w = het.parameter "w" : tensor<4xf32>
  het.gradient "w" %g {het.phase = "backward"} : tensor<4xf32>
  return
}
