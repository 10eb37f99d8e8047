// The dialect has no verifiers of its own: what one op can say is in its types,
// and a transfer without its other end cannot be seen in one function. Here is
// what the types refuse.
//
// RUN: autohet-opt %s --split-input-file --verify-diagnostics

func.func @update_types(%g: tensor<4xf32>) {
  // expected-error @+1 {{failed to verify that all of {gradient, result} have same type}}
  %0 = "dist.update"(%g) <{name = "w", offsets = array<i64: 0>, global_shape = array<i64: 4>}> : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @send_ranked(%x: tensor<*xf32>) {
  // expected-error @+1 {{operand #0 must be variadic of ranked tensor of any type values, but got 'tensor<*xf32>'}}
  "dist.send"(%x) <{peer = 1 : i64, channel = 0 : i64}> : (tensor<*xf32>) -> ()
  return
}

// -----

func.func @recv_ranked() {
  // expected-error @+1 {{result #0 must be variadic of ranked tensor of any type values, but got 'tensor<*xf32>'}}
  %0 = "dist.recv"() <{peer = 1 : i64, channel = 0 : i64}> : () -> tensor<*xf32>
  return
}
