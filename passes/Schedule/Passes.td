//===- Passes.td - the passes of the Schedule phase, in order -*- tablegen -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE
#define AUTOHET_PASSES_SCHEDULE

include "mlir/Pass/PassBase.td"

def NormalizeMatmuls : Pass<"exec-normalize-matmuls", "::mlir::func::FuncOp"> {
  let summary = "Give every matrix product the layout that libraries take";
  let description = [{
    *Requires:* static shapes.

    *Does:* a library takes consecutive row-major matrices, each plain or
    transposed. Where the dims of a `het.matmul`'s operand are not batch, then
    free and contracted dims as two runs, a `het.transpose` in front makes them so.
    Equal transposes of one value in one unit and phase are one.

    *Ensures:* every `het.matmul` of a program is one gemm (`matchGemm` succeeds).

    ```mlir
    %s = het.matmul %q, %k batch [0, 2] [0, 2] contract [3] [3] ...   // q, k: [B, S, H, D]
    // becomes
    %q2 = het.transpose %q by [0, 2, 1, 3] ...
    %k2 = het.transpose %k by [0, 2, 1, 3] ...
    %s = het.matmul %q2, %k2 batch [0, 1] [0, 1] contract [3] [3] ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def FormKernels : Pass<"exec-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group the ops of programs into kernels";
  let description = [{
    *Requires:* functions with `#dist.program` that hold het and dist ops.

    *Does:* elementwise ops of one phase and one shape are fused where every use
    of what they give comes later; any other op is a kernel of its own. A
    kernel's body becomes a private function; equal bodies are one function.
    Matrix products, reshapes, parameters, gradients and what crosses devices
    stay. Constants are repeated in the kernels that read them; for what is no
    kernel, a product, a kernel writes them.

    *Ensures:* what remains of arithmetic in a program is `func.call` of a
    kernel and `het.matmul`. A call keeps the location, unit and phase.

    ```mlir
    %1 = het.add %x, %b : ...
    %2 = het.gelu tanh %1 : ...
    // becomes
    %2 = func.call @add_gelu_0(%x, %b) {het.phase = "forward"} : ...
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def OrderMicrobatches : Pass<"exec-order-microbatches", "::mlir::ModuleOp"> {
  let summary = "Turn each device's step into streams of commands";
  let description = [{
    *Requires:* `exec-form-kernels` has run.

    *Does:* gives every value a buffer and every op its commands, and orders the
    microbatches of the device's stage: 1F1B (stage s of S keeps up to S - s in
    flight) or GPipe (all forwards first). Repeated work is one loop. What the
    forward part gives the backward part has a slot for each microbatch in
    flight. Pipeline transfers go to streams of their own, which meet
    computation at events.

    *Ensures:* one `exec.program` a device; no function with `#dist.program` is left.

    ```mlir
    func.func @"a/0"(...) attributes {dist.program = #dist.program<..., microbatches = 8, ...>}
    // becomes
    exec.program @"a/0" ... { ... exec.stream "compute" { exec.loop 0 to 8 { ... } ... } }
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "Order of microbatches: 1f1b or gpipe">,
    Option<"optimizer", "optimizer", "std::string", "\"sgd\"", "Whose state is kept: sgd, adam, adamw or none">,
  ];
  let dependentDialects = ["::autohet::exec::ExecDialect"];
}

def AddScratch : Pass<"exec-add-scratch", "::mlir::ModuleOp"> {
  let summary = "Give kernels the scratch memory that they ask for";
  let description = [{
    *Requires:* programs; kernels that need memory besides operands and results
    carry `autohet.scratch_bytes` (compilation says so).

    *Does:* declares one scratch buffer a program, as large as its largest
    request, and makes it the last buffer of each launch that needs one.

    *Ensures:* every launch has the buffers that its kernel takes.

    ```mlir
    exec.launch @attention_0(%q, %o) writes 1 : ...
    // becomes
    %s = exec.buffer "scratch" arena : !exec.buffer<tensor<65536xi8>>
    exec.launch @attention_0(%q, %o, %s) writes 2 : ...
    ```
  }];
  let dependentDialects = ["::autohet::exec::ExecDialect"];
}

def PlanMemory : Pass<"exec-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every buffer its place";
  let description = [{
    *Requires:* programs.

    *Does:* places parameters, gradients, states and constants one after the
    other, and arena buffers by liveness: two buffers share bytes only if no
    command of the one lies between the first and last command of the other. A
    buffer with several slots, or one that a communication stream touches, lives
    throughout. Largest first, each at the lowest place that is free.

    *Ensures:* every buffer has an offset; the program has `bytes`, one number a
    space (autohet-compile compares their sum with the device's memory).

    ```mlir
    %a = exec.buffer "a" arena : ...          // becomes: exec.buffer "a" arena at 0
    ```
  }];
  let dependentDialects = ["::autohet::exec::ExecDialect"];
}

def VerifyOrder : Pass<"exec-verify-order", "::mlir::ModuleOp"> {
  let summary = "Proves that nothing is overwritten while it is still read";
  let description = [{
    *Requires:* the programs of all ranks, with planned memory (`exec-plan-memory`).

    *Does:* walks `steps` steps of all programs together and follows, by vector
    clocks, what each command knows to be over: through its stream's order, events,
    messages and the agreement. It is an error where a command writes bytes that
    another may still read or write, or reads bytes that may not be written yet, or
    that hold another microbatch or another buffer's value: whatever the timing.

    *Ensures* nothing is changed. For tests: the walk takes time and memory with
    the number of microbatches.
  }];
  let options = [
    Option<"steps", "steps", "int64_t", "3", "Steps (in inference: batches) that are walked">,
  ];
}

def PrintMemory : Pass<"exec-print-memory", "::mlir::ModuleOp"> {
  let summary = "Prints what each device's memory is for";
  let description = [{
    *Requires* planned memory (`exec-plan-memory`).

    *Does* print to standard output a line a device: bytes of parameters,
    gradients, optimizer state and constants, and of the arena what is alive at
    its peak (activations with temporaries, received messages, scratch) and what
    placement lost (gaps).

    *Ensures* nothing: the programs are unchanged.
  }];
}

#endif
