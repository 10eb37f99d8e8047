//===- Passes.td - the passes of the Codegen phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_CODEGEN
#define AUTOHET_PASSES_CODEGEN

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Kernels: from het to the LLVM dialect
//===----------------------------------------------------------------------===//

def LowerHetToLinalg : Pass<"lower-het-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Lowers a kernel's het ops to linalg on tensors";
  let description = [{
    *Requires* a function on static tensors whose body is a DAG of het ops.

    *Does* replace each het op by linalg, tensor, scf, arith and math ops. Adds
    the runtime's context (`!llvm.ptr` to ah_kernel_context) as last argument:
    random numbers and index checks need it.

    *Ensures* that no het op is left; an op without a lowering is an error.

    ```mlir
    func.func private @k(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %y = het.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %y : tensor<2x3xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @k(%x: tensor<2x3xf32>, %context: !llvm.ptr) -> tensor<2x3xf32> {
      %0 = tensor.empty() : tensor<2x3xf32>
      %1 = linalg.generic ... ins(%x) outs(%0) { math.exp }
      return %1 : tensor<2x3xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def FuseElementwise : Pass<"kernel-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Merges chains of elementwise linalg ops into one loop";
  let description = [{
    *Requires* linalg on tensors.

    *Does* merge a producer into its only consumer where that neither repeats
    work nor splits a result off. A producer with fewer iterations than its
    consumer (a value a row, read for each column) stays apart unless it only
    moves elements.

    *Ensures* the same values, in fewer loops.

    ```mlir
    %a = linalg.generic ... ins(%x) { math.exp }
    %b = linalg.generic ... ins(%a, %y) { arith.addf }
    ```
    becomes
    ```mlir
    %b = linalg.generic ... ins(%x, %y) { math.exp, arith.addf }
    ```
  }];
}

def PassDestinations : Pass<"kernel-pass-destinations", "::mlir::func::FuncOp"> {
  let summary = "Makes a kernel write its results into buffers of its caller";
  let description = [{
    *Requires* a function from tensors (and the context, last) to tensors.

    *Does* turn arguments into buffers, and results into further arguments,
    before the context. None may overlap another that is written
    (`llvm.noalias`).

    *Ensures* a function without results, whose values bufferize in place.

    ```mlir
    func.func private @k(%x: tensor<4xf32>, %c: !llvm.ptr) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    func.func private @k(%x: memref<4xf32> {llvm.noalias}, %y: memref<4xf32> {llvm.noalias}, %c: !llvm.ptr)
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::LLVM::LLVMDialect"];
}

def FuseRowLoops : Pass<"kernel-fuse-row-loops", "::mlir::func::FuncOp"> {
  let summary = "Joins loops over the same rows, and shrinks temporaries to a row";
  let description = [{
    *Requires* loops over buffers.

    *Does* join loops of equal bounds where only equal iterations depend on each
    other, from the outside in. A temporary of which each iteration uses only
    its own element then loses that dim.

    *Ensures* the same operations on the same elements, in another order.

    ```mlir
    scf.for %i = ... { store %t[%i] }
    scf.for %i = ... { load %t[%i] }
    ```
    becomes
    ```mlir
    scf.for %i = ... { store %t[]; load %t[] }
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def WidenBooleans : Pass<"kernel-widen-booleans", "::mlir::ModuleOp"> {
  let summary = "Makes buffers of booleans buffers of bytes";
  let description = [{
    *Requires* loops over buffers: loads, stores and views.

    *Does* give every buffer of i1 the element type i8, compares what is loaded
    from it with 0 and extends what is stored to it.

    *Ensures* that no buffer of i1 is left, so that LLVM vectorises loops with
    masks.

    ```mlir
    %m = memref.load %mask[%i] : memref<8xi1>
    ```
    becomes
    ```mlir
    %b = memref.load %mask[%i] : memref<8xi8>
    %m = arith.cmpi ne, %b, %c0_i8 : i8
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def PlaceScratch : Pass<"kernel-place-scratch", "::mlir::func::FuncOp"> {
  let summary = "Gives a kernel's temporaries a place: its stack or its scratch";
  let description = [{
    *Requires* bufferized code whose allocations have static sizes.

    *Does* move every allocation to the entry: onto the stack while the kernel's
    total stays within `stack-bytes`, into scratch memory otherwise. Each of
    the latter is one more argument, before the context; the attributes
    `autohet.scratch_bytes` and `autohet.scratch_offsets` say how much memory
    they take and where in it each starts.

    *Ensures* that no allocation is left: kernels never call an allocator.

    ```mlir
    %t = memref.alloc() : memref<1048576xf32>
    ```
    becomes
    ```mlir
    func.func private @k(..., %t: memref<1048576xf32> {llvm.noalias}, %context: !llvm.ptr)
        attributes {autohet.scratch_bytes = 4194304 : i64, autohet.scratch_offsets = array<i64: 0>}
    ```
  }];
  let options = [Option<"stackBytes", "stack-bytes", "int64_t", "65536",
    "what a kernel may keep on its stack">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def LowerProducts : Pass<"kernel-lower-products", "::mlir::func::FuncOp"> {
  let summary = "Turns matrix products on buffers into calls of the runtime";
  let description = [{
    *Requires* bufferized code; the products are `linalg.contract`.

    *Does* turn each into calls of `autohet_sgemm`, which the runtime gives the
    platform's matrix library, in loops over the dims that no matrix can hold.
    A fill with zero just before becomes beta = 0. Products whose layout no call
    can describe become plain loops.

    *Ensures* that no `linalg.contract` is left.

    ```mlir
    linalg.fill ins(%zero) outs(%c)
    linalg.contract indexing_maps = [...] ins(%a, %b) outs(%c)
    ```
    becomes
    ```mlir
    func.call @autohet_sgemm(%transpose_a, %transpose_b, %m, %n, %k, %one, %a_ptr, %lda, ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ExpandCopies : Pass<"kernel-expand-copies", "::mlir::func::FuncOp"> {
  let summary = "Turns copies between strided buffers into loops";
  let description = [{
    *Requires* bufferized code.

    *Does* turn each `memref.copy` that is not of two contiguous buffers into a
    linalg.generic. LLVM's lowering would call a library that kernels do not
    link.

    *Ensures* that the copies left are plain memory copies.

    ```mlir
    memref.copy %a, %b : memref<3x2xf32, strided<[9, 1]>> to memref<3x2xf32>
    ```
    becomes
    ```mlir
    linalg.generic ... ins(%a) outs(%b)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def ExpandMath : Pass<"kernel-expand-math", "::mlir::func::FuncOp"> {
  let summary = "Writes exp, log, tanh and erf as polynomials";
  let description = [{
    *Requires* math ops on f32.

    *Does* replace them by upstream's approximations (a few units in the last
    place), which vectorise; calls of libm would not.

    *Ensures* that none of them is left on f32.

    ```mlir
    %e = math.exp %x : f32
    ```
    becomes a dozen multiply-adds.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"];
}

def AddKernelEntry : Pass<"kernel-add-entry", "::mlir::ModuleOp"> {
  let summary = "Wraps each kernel in the runtime's calling convention";
  let description = [{
    *Requires* kernels in the LLVM dialect: pointers, then the context.

    *Does* add, under the kernel's name, `i64 (ptr operands, ptr context)` that
    loads the operands' addresses and calls the body. A kernel that checks
    indices returns 1 if it found a bad one.

    *Ensures* that every kernel is an `ah_kernel` of runtime/program.h.

    ```mlir
    llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr, %context: !llvm.ptr)
    ```
    becomes
    ```mlir
    llvm.func internal @k.body(...)
    llvm.func @k(%operands: !llvm.ptr, %context: !llvm.ptr) -> i64
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif
