// What is no kernel as lower-het-to-linalg leaves one.
//
// RUN: autohet-opt %s --kernel-pass-destinations --split-input-file --verify-diagnostics

// expected-error @+1 {{is not a kernel: its last argument is not the context, an '!llvm.ptr'}}
func.func @no_context(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{is not a kernel: its last argument is not the context, an '!llvm.ptr'}}
func.func @nothing() {
  return
}

// -----

// expected-error @+1 {{is not a kernel: it has a 'i64', wanted static tensors}}
func.func @scalar(%i: i64, %context: !llvm.ptr) {
  return
}

// -----

// expected-error @+1 {{is not a kernel: it has a 'tensor<?xf32>', wanted static tensors}}
func.func @dynamic(%x: tensor<2xf32>, %context: !llvm.ptr) -> tensor<?xf32> {
  %y = tensor.cast %x : tensor<2xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// expected-error @+1 {{is not a kernel: its body has more than one block}}
func.func @blocks(%context: !llvm.ptr) {
  cf.br ^next
^next:
  return
}
