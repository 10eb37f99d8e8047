// Which ops share a kernel, and what stays a command of its own.
//
// RUN: autohet-opt %s --exec-form-kernels --split-input-file | FileCheck %s

#program = #dist.program<device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1,
    microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 2>

// Elementwise ops in a row are one kernel, constants and all; a product is none.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-SAME:    (%[[X:.*]]: tensor<2x6xf32>, %[[W:.*]]: tensor<6x6xf32>)
// CHECK:         %[[Y:.*]] = het.matmul %[[X]], %[[W]]
// CHECK-NEXT:    %[[Z:.*]] = call @mul_gelu_0(%[[Y]]) {het.unit = "block0"}
// CHECK-NEXT:    return %[[Z]]
// CHECK-LABEL: func.func private @mul_gelu_0
// CHECK-SAME:    (%[[A:.*]]: tensor<2x6xf32>) -> tensor<2x6xf32>
// CHECK:         %[[C:.*]] = het.constant
// CHECK:         %[[M:.*]] = het.mul %[[A]], %[[C]] :
// CHECK:         %[[R:.*]] = het.gelu tanh %[[M]] :
// CHECK:         return %[[R]]
func.func @"n0/0"(%x: tensor<2x6xf32>, %w: tensor<6x6xf32>) -> tensor<2x6xf32> attributes {dist.program = #program} {
  %c = het.constant dense<2.0> : tensor<f32>
  %y = het.matmul %x, %w contract [1] [0] {het.unit = "block0"} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
  %m = het.mul %y, %c {het.unit = "block0"} : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %z = het.gelu tanh %m {het.unit = "block0"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  return %z : tensor<2x6xf32>
}

// -----

#program = #dist.program<device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1,
    microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 2>

// Another unit, another phase, another shape and a reader in between all end a
// kernel. Equal kernels are one function, whatever unit they serve.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         %[[A:.*]] = call @neg_0(%{{.*}}) {het.unit = "a"}
// CHECK:         %[[B:.*]] = call @neg_0(%[[A]]) {het.unit = "b"}
// CHECK:         %[[C:.*]] = call @neg_0(%[[B]]) {het.phase = "backward", het.unit = "b"}
// CHECK:         %[[D:.*]] = call @reduce_0(%[[C]]) {het.phase = "backward", het.unit = "b"}
// CHECK:         %[[E:.*]] = call @exp_0(%[[D]]) {het.phase = "backward", het.unit = "b"}
// CHECK:         %[[V:.*]] = het.reshape %[[E]] to [2, 1]
// CHECK:         dist.send %[[V]] to 1
// CHECK:         %[[F:.*]] = call @add_0(%[[E]], %[[D]])
// CHECK:         return %[[F]]
// CHECK-COUNT-1: func.func private @neg_0
// CHECK-NOT:     @neg_1
func.func @"n0/0"(%x: tensor<2x6xf32>) -> tensor<2xf32> attributes {dist.program = #program} {
  %a = het.neg %x {het.unit = "a"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %b = het.neg %a {het.unit = "b"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %c = het.neg %b {het.unit = "b", het.phase = "backward"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %d = het.reduce sum %c dims [1] {het.unit = "b", het.phase = "backward"} : (tensor<2x6xf32>) -> tensor<2xf32>
  %e = het.exp %d {het.unit = "b", het.phase = "backward"} : (tensor<2xf32>) -> tensor<2xf32>
  %v = het.reshape %e to [2, 1] : (tensor<2xf32>) -> tensor<2x1xf32>
  dist.send %v to 1 channel 0 : tensor<2x1xf32>
  %f = het.add %e, %d {het.unit = "b", het.phase = "backward"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %f : tensor<2xf32>
}

// -----

#program = #dist.program<device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1,
    microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 2>

// A kernel gives all that others read, and a long name is cut. Kernels and
// functions that are no program are left alone.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         %[[K:.*]]:2 = call @exp_neg_log_etc_0(%{{.*}})
// CHECK:         return %[[K]]#0, %[[K]]#1
// CHECK-LABEL: func.func @other
// CHECK:         het.neg
// CHECK-LABEL: func.func private @exp_neg_log_etc_0
// CHECK:         %[[E:.*]] = het.exp
// CHECK:         %[[A:.*]] = het.abs
// CHECK:         return %[[E]], %[[A]]
func.func @"n0/0"(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) attributes {dist.program = #program} {
  %0 = het.exp %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = het.neg %0 : (tensor<6xf32>) -> tensor<6xf32>
  %2 = het.log %1 : (tensor<6xf32>) -> tensor<6xf32>
  %3 = het.abs %2 : (tensor<6xf32>) -> tensor<6xf32>
  return %0, %3 : tensor<6xf32>, tensor<6xf32>
}

func.func @other(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = het.neg %x : (tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

#program = #dist.program<device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1,
    microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 2>

// A product reads buffers: a constant among its operands is written by a kernel.
// Other readers still have it in theirs.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-SAME:    (%[[X:.*]]: tensor<2x3xf32>, %{{.*}}: tensor<3x3xf32>)
// CHECK:         %[[C:.*]] = call @constant_0() : () -> tensor<3x3xf32>
// CHECK:         %[[Y:.*]] = het.matmul %[[X]], %[[C]]
// CHECK:         call @add_0(%{{.*}}) : (tensor<3x3xf32>) -> tensor<3x3xf32>
// CHECK:       func.func private @constant_0() -> tensor<3x3xf32> {
// CHECK-NEXT:    %[[V:.*]] = het.constant dense
// CHECK-NEXT:    return %[[V]]
func.func @"n0/0"(%x: tensor<2x3xf32>, %z: tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<3x3xf32>) attributes {dist.program = #program} {
  %c = het.constant dense<[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
  %y = het.matmul %x, %c contract [1] [0] : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %w = het.add %z, %c : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y, %w : tensor<2x3xf32>, tensor<3x3xf32>
}
