// RUN: autohet-opt %s --het-number-units --split-input-file --verify-diagnostics | FileCheck %s

// Numbered once more, nothing changes.
// RUN: autohet-opt %s --het-number-units --split-input-file --verify-diagnostics -o %t.1
// RUN: autohet-opt %s --het-number-units --het-number-units --split-input-file --verify-diagnostics -o %t.2
// RUN: diff %t.1 %t.2

// A block whose attention is two products of activations; its norm stands in the
// branch. What depends on no weight is nobody's. Names of parameters say nothing.
// CHECK-LABEL: func.func @pre_norm
// CHECK-SAME: het.units = ["embed", "block0.attn", "block0.mlp", "head"]
func.func @pre_norm(%ids: tensor<2x4xi64>, %pad: tensor<2x1x4xf32>) -> tensor<2x4x7xf32> {
  // CHECK: het.parameter "a" {het.unit = "embed"}
  %a = het.parameter "a" : tensor<7x8xf32>
  // CHECK: het.embedding {{.*}}het.unit = "embed"
  %x0 = het.embedding %a, %ids : (tensor<7x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  // CHECK: het.iota {{.*}}het.unit = "inputs"
  %i = het.iota {start = 0 : i64, step = 1 : i64, count = 4 : i64, element = i64} : () -> tensor<4xi64>
  %b = het.parameter "b" : tensor<4x8xf32>
  // A table of positions depends on no input, yet on a weight.
  // CHECK: het.embedding {{.*}}het.unit = "embed"
  %p = het.embedding %b, %i : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  // CHECK: het.add {{.*}}het.unit = "embed"
  %x = het.add %x0, %p : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: het.neg {{.*}}het.unit = "inputs"
  %mask = het.neg %pad : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>

  %c = het.parameter "c" : tensor<8xf32>
  // CHECK: het.rms_norm {{.*}}het.unit = "block0.attn"
  %n:2 = het.rms_norm %x, %c {epsilon = 1.0e-6 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  %d = het.parameter "d" : tensor<8x8xf32>
  %q = het.matmul %n#0, %d contract [2] [1] : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %s = het.matmul %q, %n#0 batch [0] [0] contract [2] [2] : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
  %m = het.add %s, %mask : (tensor<2x4x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  // CHECK: het.softmax {{.*}}het.unit = "block0.attn"
  %z = het.softmax %m : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %o = het.matmul %z, %n#0 batch [0] [0] contract [2] [1] : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: het.add {{.*}}het.unit = "block0.attn"
  %x1 = het.add %x, %o : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>

  // CHECK: het.parameter "e" {het.unit = "block0.mlp"}
  %e = het.parameter "e" : tensor<8x8xf32>
  // CHECK: het.transpose {{.*}}het.unit = "block0.mlp"
  %et = het.transpose %e by [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = het.matmul %x1, %et contract [2] [0] : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: het.add {{.*}}het.unit = "block0.mlp"
  %x2 = het.add %x1, %h : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>

  // CHECK: het.relu {{.*}}het.unit = "head"
  %f = het.relu %x2 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %t = het.parameter "a" : tensor<7x8xf32>
  // CHECK: het.matmul {{.*}}het.unit = "head"
  %y = het.matmul %f, %t contract [2] [1] : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
  return %y : tensor<2x4x7xf32>
}

// -----

// A norm behind the addition (BERT) belongs to the block before it: behind the
// last block too, though the head follows there.
// CHECK-LABEL: func.func @post_norm
// CHECK-SAME: het.units = ["embed", "block0", "block1", "head"]
func.func @post_norm(%ids: tensor<4xi64>) -> tensor<4x7xf32> {
  %a = het.parameter "a" : tensor<7x8xf32>
  %x = het.embedding %a, %ids : (tensor<7x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %w0 = het.parameter "w0" : tensor<8x8xf32>
  %h0 = het.matmul %x, %w0 contract [1] [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s0 = het.add %x, %h0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: het.tanh {{.*}}het.unit = "block0"
  %x1 = het.tanh %s0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %w1 = het.parameter "w1" : tensor<8x8xf32>
  %h1 = het.matmul %x1, %w1 contract [1] [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s1 = het.add %x1, %h1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: het.tanh {{.*}}het.unit = "block1"
  %x2 = het.tanh %s1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: het.tanh {{.*}}het.unit = "head"
  %y = het.tanh %x2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = het.parameter "b" : tensor<7x8xf32>
  %z = het.matmul %y, %b contract [1] [1] : (tensor<4x8xf32>, tensor<7x8xf32>) -> tensor<4x7xf32>
  return %z : tensor<4x7xf32>
}

// -----

// Without blocks a unit goes from product to product. Backward ops go with the op
// that they serve, whatever they read.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: het.units = ["layer0", "layer1"]
func.func @layers(%x: tensor<4x3xf32>) -> tensor<f32> {
  %a = het.parameter "a" {het.id = 0 : i64} : tensor<3x3xf32>
  // CHECK: het.exp {{.*}}het.unit = "inputs"
  %e = het.exp %x {het.id = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: het.matmul {{.*}}het.unit = "layer0"
  %h = het.matmul %e, %a contract [1] [1] {het.id = 2 : i64} : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // CHECK: het.relu {{.*}}het.unit = "layer0"
  %r = het.relu %h {het.id = 3 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %b = het.parameter "b" {het.id = 4 : i64} : tensor<3x3xf32>
  // CHECK: het.matmul {{.*}}het.unit = "layer1"
  %y = het.matmul %r, %b contract [1] [1] {het.id = 5 : i64} : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // CHECK: het.reduce {{.*}} {het.unit = "layer1"}
  %loss = het.reduce sum %y dims [0, 1] {het.id = 6 : i64} : (tensor<4x3xf32>) -> tensor<f32>
  // CHECK: het.constant {het.phase = "backward", het.unit = "layer1"}
  %g = het.constant {het.adjoint_of = 6 : i64, het.phase = "backward"} dense<1.0> : tensor<4x3xf32>
  // CHECK: het.gradient "b" {{.*}}{het.phase = "backward", het.unit = "layer1"}
  het.gradient "b" %b {het.adjoint_of = 4 : i64, het.phase = "backward"} : tensor<3x3xf32>
  return %loss : tensor<f32>
}

// -----

// What several units read, each has for itself; outputs beside the loss follow
// what they are computed from.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: het.units = ["layer0", "layer1"]
func.func @shared(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  // CHECK-DAG: %[[W0:.*]] = het.parameter "w" untrained {het.frozen, het.unit = "layer0"}
  // CHECK-DAG: %[[W1:.*]] = het.parameter "w" untrained {het.frozen, het.unit = "layer1"}
  %w = het.parameter "w" untrained {het.frozen} : tensor<3x3xf32>
  // CHECK: het.matmul %arg0, %[[W0]]
  %h = het.matmul %x, %w contract [1] [1] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  // CHECK: het.neg {{.*}}het.unit = "layer0"
  %aside = het.neg %h : (tensor<3x3xf32>) -> tensor<3x3xf32>
  // CHECK: het.matmul %{{.*}}, %[[W1]]
  %y = het.matmul %h, %w contract [1] [1] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y, %aside : tensor<3x3xf32>, tensor<3x3xf32>
}

// -----

// expected-error @+1 {{has no units: its first result depends on no weight}}
func.func @none(%x: tensor<3xf32>) -> tensor<3xf32> {
  %m = het.parameter "mask" untrained : tensor<3xf32>
  %y = het.add %x, %m : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @disorder(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %v = het.parameter "v" : tensor<3x3xf32>
  %h = het.matmul %x, %v contract [1] [1] {het.id = 0 : i64} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %w = het.parameter "w" : tensor<3x3xf32>
  %y = het.matmul %h, %w contract [1] [1] {het.id = 1 : i64} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  // expected-error @+1 {{in unit layer0 reads a value of unit layer1, against the order of units}}
  %g = het.neg %y {het.phase = "backward", het.adjoint_of = 0 : i64} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// -----

func.func @unknown(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %w = het.parameter "w" : tensor<3x3xf32>
  %y = het.matmul %x, %w contract [1] [1] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  // expected-error @+1 {{is a backward op of no known unit: it has neither the het.adjoint_of of an op in a unit nor a het.unit}}
  %g = het.neg %y {het.phase = "backward"} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// -----

// A term of the loss that each block adds to, past the stream of activations,
// makes no block of all: each keeps its part.
// CHECK-LABEL: func.func @term_of_each
// CHECK-SAME: het.units = ["layer0", "layer1"]
func.func @term_of_each(%x: tensor<4x3xf32>, %weight: tensor<f32>) -> tensor<f32> {
  %a = het.parameter "a" : tensor<3x3xf32>
  %b = het.parameter "b" : tensor<3x3xf32>
  %h = het.matmul %x, %a contract [1] [1] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // CHECK: het.reduce mean {{.*}}het.unit = "layer0"
  %m0 = het.reduce mean %h dims [0] {het.of_microbatch} : (tensor<4x3xf32>) -> tensor<3xf32>
  // CHECK: het.matmul {{.*}}het.unit = "layer1"
  %y = het.matmul %h, %b contract [1] [1] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // CHECK: het.reduce mean {{.*}}het.unit = "layer1"
  %m1 = het.reduce mean %y dims [0] {het.of_microbatch} : (tensor<4x3xf32>) -> tensor<3xf32>
  // CHECK: het.add {{.*}}het.unit = "layer1"
  %m = het.add %m0, %m1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %s = het.reduce sum %m dims [0] : (tensor<3xf32>) -> tensor<f32>
  %term = het.mul %s, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %sum = het.reduce sum %y dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  // CHECK: het.add {{.*}}het.unit = "layer1"
  %loss = het.add %sum, %term : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
