// RUN: autohet-opt %s --kernel-place-scratch --verify-diagnostics

func.func @kernel(%n: index, %context: !llvm.ptr) {
  // expected-error @+1 {{'memref.alloc' op of a kernel is not static}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}
