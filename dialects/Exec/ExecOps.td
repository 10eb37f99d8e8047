//===- ExecOps.td - what one device does --------------------*- tablegen -*-===//
//
// The artefact that the simulator times, the code generator compiles and the
// report draws. Every command here has its row in runtime/program.h.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_EXEC_OPS
#define AUTOHET_EXEC_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "Exec/ExecInterfaces.td"
include "Het/HetTypes.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::autohet::exec";
  let summary = "What one device does: commands over planned buffers";
  let description = [{
    An `exec.program` is one device's training step: its buffers, its slices of
    parameters, its inputs and outputs, and a few streams of commands that meet
    only at events. Microbatches are a loop, so that a program's size does not
    depend on their number: a command carries the microbatch it works for,
    relative to the loop's index inside the loop and absolute outside, and a
    buffer of k slots gives microbatch m the slot m mod k.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

def Exec_Space : I32EnumAttr<"Space", "the allocation that a buffer lies in", [
    I32EnumAttrCase<"arena", 0>, I32EnumAttrCase<"parameter", 1>,
    I32EnumAttrCase<"gradient", 2>, I32EnumAttrCase<"state", 3>,
    I32EnumAttrCase<"constant", 4>, I32EnumAttrCase<"scalar", 5>]> {
  let cppNamespace = "::autohet::exec";
  let genSpecializedAttr = 0;
}
def Exec_SpaceAttr : EnumAttr<Exec_Dialect, Exec_Space, "space"> {
  let assemblyFormat = "$value";
}

def Exec_BufferType : TypeDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Memory that holds one tensor a slot";
  let description = "The tensor is one of `het`: static, of integers or floats.";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tensor), [{
    return $_get(tensor.getContext(), tensor);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes of one slot's payload; booleans take a byte each.
    int64_t getSizeInBytes();
  }];
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Programs and what they declare
//===----------------------------------------------------------------------===//

def Exec_ProgramOp : Exec_Op<"program", [IsolatedFromAbove, Symbol, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "The program of one device";
  let description = [{
    Named by its device, `node/index`. The body declares buffers, events,
    parameters and ports, then the streams.

    Constraints:
    - (C1) counts are positive and below 2^31: microbatch size, microbatches,
      global batch;
    - (C2) the rank lies within the world;
    - (C3) the body holds declarations and streams only.

    Example:
    ```mlir
    exec.program @"local/0" rank 0 of 1 replica 0 stage 0 microbatches 4 of 2 from 0 batch 8 {
      %x = exec.buffer "x" arena : !exec.buffer<tensor<2x12xi64>>
      exec.stream "compute" { exec.feed "input_ids" %x : !exec.buffer<tensor<2x12xi64>> }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$rank, I64Attr:$world_size,
    I64Attr:$replica, I64Attr:$stage, I64Attr:$microbatches, I64Attr:$microbatch_size,
    I64Attr:$first_sample, I64Attr:$global_batch,
    OptionalAttr<DenseI64ArrayAttr>:$space_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `rank` $rank `of` $world_size `replica` $replica `stage` $stage
    `microbatches` $microbatches `of` $microbatch_size `from` $first_sample
    `batch` $global_batch (`bytes` $space_bytes^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of all spaces together; 0 before memory is planned.
    int64_t getTotalBytes();
  }];
}

def Exec_BufferOp : Exec_Op<"buffer"> {
  let summary = "Declares memory";
  let description = [{
    `slots` copies of one tensor, `offset` bytes into its space once
    `exec-plan-memory` has run. With `whole`, no memory of its own but a part of
    another buffer's, `within` bytes into that.

    Constraints:
    - (C1) at least one slot, and at most 2^48 bytes in all;
    - (C2) an offset, where given, is a multiple of 64 and at most 2^48;
    - (C3) a part lies, at a multiple of 64 bytes, within a buffer of its space
      that is no part itself; both have one slot, and neither is in the arena,
      whose buffers have lives.

    Example:
    ```mlir
    %x = exec.buffer "block0.out" arena slots 2 : !exec.buffer<tensor<2x12x48xf32>>
    %w = exec.buffer "w" parameter : !exec.buffer<tensor<12x48xf32>>
    %r = exec.buffer "w.rows" parameter in %w : !exec.buffer<tensor<12x48xf32>> from 768 : !exec.buffer<tensor<4x48xf32>>
    ```
  }];
  let arguments = (ins StrAttr:$name, Exec_SpaceAttr:$space,
    DefaultValuedAttr<I64Attr, "1">:$slots, OptionalAttr<I64Attr>:$offset,
    Optional<Exec_BufferType>:$whole, OptionalAttr<I64Attr>:$within);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::llvm::StringRef":$name,
      "Space":$space, "int64_t":$slots, "::mlir::IntegerAttr":$offset), [{
    build($_builder, $_state, result, name, space, slots, offset, Value(), IntegerAttr());
  }]>];
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = [{
    $name $space (`slots` $slots^)? (`at` $offset^)?
    (`in` $whole^ `:` type($whole) `from` $within)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes from slot to slot: the payload, rounded up to a cache line.
    int64_t getSlotStride();
    ::llvm::LogicalResult verifyPart();
  }];
}

def Exec_ParameterOp : Exec_Op<"parameter", [AttrSizedOperandSegments]> {
  let summary = "A slice of a parameter that the device holds";
  let description = [{
    The box at `offsets` with the buffer's shape, of the tensor `name` with shape
    `global_shape`. `owned`: this device updates the slice, keeps its optimizer
    state and counts it in the gradient norm.

    Constraints:
    - (C1) the box lies within the whole;
    - (C2) only a slice in the parameter space has a gradient, only an owned one
      has state, and an owned one has a gradient.

    Example:
    ```mlir
    exec.parameter "ln_f.weight" of [48] at [0] owned %p gradient %g : (!exec.buffer<tensor<48xf32>>, !exec.buffer<tensor<48xf32>>)
    ```
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$global_shape,
    DenseI64ArrayAttr:$offsets, UnitAttr:$owned, Exec_BufferType:$value,
    Optional<Exec_BufferType>:$gradient, Variadic<Exec_BufferType>:$states);
  let assemblyFormat = [{
    $name `of` $global_shape `at` $offsets (`owned` $owned^)? $value
    (`gradient` $gradient^)? (`states` $states^)? attr-dict `:` `(` type(operands) `)`
  }];
  let hasVerifier = 1;
}

def Exec_InputOp : Exec_Op<"input"> {
  let summary = "A model input as one microbatch sees it";
  let description = [{
    `role` is input or labels. `kind` says where its values come from when no
    file has it: tokens, labels, ones, zeros, arange or file. Dim `batch_dim`
    counts samples (-1: the same for all). `vocabulary` bounds its values (0: unknown).

    Constraints: (C1) role and kind are known; (C2) `batch_dim` is a dim or -1.

    Example:
    ```mlir
    exec.input "input_ids" role "input" kind "tokens" batch_dim 0 vocabulary 101 : tensor<2x12xi64>
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$role, StrAttr:$kind, I64Attr:$batch_dim,
    I64Attr:$vocabulary, TypeAttrOf<Het_Tensor>:$type);
  let assemblyFormat = [{
    $name `role` $role `kind` $kind `batch_dim` $batch_dim `vocabulary` $vocabulary attr-dict `:` $type
  }];
  let hasVerifier = 1;
}

def Exec_OutputOp : Exec_Op<"output"> {
  let summary = "A model output as one microbatch gives it";
  let description = [{
    This device gives the box at `offsets` of the output of shape `global_shape`
    (of one microbatch).

    Constraints:
    - (C1) the box lies within the whole;
    - (C2) `batch_dim` is a dim or -1.

    Example:
    ```mlir
    exec.output "logits" of [2, 12, 101] at [0, 0, 0] batch_dim 0 : tensor<2x12x101xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$global_shape,
    DenseI64ArrayAttr:$offsets, I64Attr:$batch_dim, TypeAttrOf<Het_Tensor>:$type);
  let assemblyFormat = [{
    $name `of` $global_shape `at` $offsets `batch_dim` $batch_dim attr-dict `:` $type
  }];
  let hasVerifier = 1;
}

def Exec_EventOp : Exec_Op<"event"> {
  let summary = "Declares an event";
  let description = [{
    A counter that only grows: done once a microbatch, or `once` a step.

    Example:
    ```mlir
    %e = exec.event "arrived" : index
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$once);
  let results = (outs Index:$result);
  let assemblyFormat = "$name (`once` $once^)? attr-dict `:` type($result)";
}

def Exec_StreamOp : Exec_Op<"stream", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "Commands in order";
  let description = [{
    Streams run beside each other and meet at events only.

    Constraints: (C1) the body holds commands and loops only.

    Example:
    ```mlir
    exec.stream "compute" { exec.agree }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$communication);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name (`communication` $communication^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Exec_LoopOp : Exec_Op<"loop", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "The loop over microbatches";
  let description = [{
    Runs its commands for index `first` to `end` - 1; a command inside works for
    microbatch index + its own number. May have no trip.

    Constraints:
    - (C1) `first` is at most `end`, and both lie within 0 and 2^31;
    - (C2) the body holds commands only.

    Example:
    ```mlir
    exec.loop 0 to 6 { exec.launch @kernel_0 (%x) writes 1 {microbatch = 1 : i64} : !exec.buffer<tensor<2xf32>> }
    ```
  }];
  let arguments = (ins I64Attr:$first, I64Attr:$end);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$first `to` $end attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

// A command reads and writes buffers and works for one microbatch.
class Exec_Command<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, traits # [DeclareOpInterfaceMethods<Exec_CommandInterface>]> {
  dag microbatch = (ins DefaultValuedAttr<I64Attr, "0">:$microbatch);
}

def Exec_LaunchOp : Exec_Command<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel";
  let description = [{
    The last `write_count` buffers are results, the others operands, in the order of
    the kernel function's arguments and results. A kernel with
    `autohet.scratch_bytes` may be given memory behind its results.

    Constraints:
    - (C1) `kernel` is a function with as many arguments and results, each of the
      buffer's size and element type;
    - (C2) `write_count` is at most the number of buffers;
    - (C3) what is behind the results is one buffer of the bytes that the kernel asks for.

    Example:
    ```mlir
    exec.launch @kernel_3 (%x, %y) writes 1 : !exec.buffer<tensor<2xf32>>, !exec.buffer<tensor<2xf32>>
    ```
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$kernel, Variadic<Exec_BufferType>:$buffers,
    I64Attr:$write_count), microbatch);
  let assemblyFormat = "$kernel `(` $buffers `)` `writes` $write_count attr-dict `:` type($buffers)";
  let hasVerifier = 1;
}

def Exec_GemmOp : Exec_Command<"gemm"> {
  let summary = "Matrix product by the platform's library";
  let description = [{
    `c = a · b`, or `c += a · b` where `accumulate`, `batch` times on consecutive
    row-major matrices: a is [m, k] ([k, m] where `transpose_a`), b is [k, n]
    ([n, k] where `transpose_b`), c is [m, n].

    Constraints: (C1) the buffers hold batch·m·k, batch·k·n and batch·m·n elements.

    Example:
    ```mlir
    exec.gemm %a, %b, %c sizes [1, 24, 144, 48] {transpose_b} : !exec.buffer<tensor<2x12x48xf32>>, !exec.buffer<tensor<144x48xf32>>, !exec.buffer<tensor<2x12x144xf32>>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$a, Exec_BufferType:$b, Exec_BufferType:$c,
    DenseI64ArrayAttr:$sizes, UnitAttr:$transpose_a, UnitAttr:$transpose_b,
    UnitAttr:$accumulate), microbatch);
  let assemblyFormat = "$a `,` $b `,` $c `sizes` $sizes attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
}

def Exec_CopyOp : Exec_Command<"copy"> {
  let summary = "Copies a buffer";
  let description = [{
    Constraints: (C1) both have one size.

    Example:
    ```mlir
    exec.copy %from to %to : !exec.buffer<tensor<2xf32>>, !exec.buffer<tensor<2xf32>>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$from, Exec_BufferType:$to), microbatch);
  let assemblyFormat = "$from `to` $to attr-dict `:` type($from) `,` type($to)";
  let hasVerifier = 1;
}

def Exec_ZeroOp : Exec_Command<"zero"> {
  let summary = "Fills a buffer with zeros";
  let description = [{
    Example:
    ```mlir
    exec.zero %g : !exec.buffer<tensor<2xf32>>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$to), microbatch);
  let assemblyFormat = "$to attr-dict `:` type($to)";
}

def Exec_ReduceOp : Exec_Command<"reduce"> {
  let summary = "Sums buffers in a fixed order";
  let description = [{
    `to = from[0] + from[1] + ...`, left to right; `to` may be one of them.

    Constraints: (C1) all have one number of f32 elements.

    Example:
    ```mlir
    exec.reduce %g, %x to %g : !exec.buffer<tensor<2xf32>>, !exec.buffer<tensor<2xf32>> to !exec.buffer<tensor<2xf32>>
    ```
  }];
  let arguments = !con((ins Variadic<Exec_BufferType>:$from, Exec_BufferType:$to), microbatch);
  let assemblyFormat = "$from `to` $to attr-dict `:` type($from) `to` type($to)";
  let hasVerifier = 1;
}

def Exec_SendOp : Exec_Command<"send"> {
  let summary = "Starts sending a buffer to another rank";
  let description = [{
    Sets `event` when the buffers may be written again. `channel` names the edge;
    the receive with the same channel and microbatch matches. Several buffers are
    one message, one behind the other; the receive may divide it otherwise.

    Constraints: (C1) at least one buffer; (C2) `channel` is below 2^20.

    Example:
    ```mlir
    exec.send %x to 1 channel 7 event %e : !exec.buffer<tensor<2xf32>>
    ```
  }];
  let arguments = !con((ins Variadic<Exec_BufferType>:$from, I64Attr:$peer, I64Attr:$channel, Index:$event), microbatch);
  let assemblyFormat = "$from `to` $peer `channel` $channel `event` $event attr-dict `:` type($from)";
  let hasVerifier = 1;
}

def Exec_RecvOp : Exec_Command<"recv"> {
  let summary = "Starts receiving a buffer from another rank";
  let description = [{
    Sets `event` when the data is there.

    Constraints: (C1) at least one buffer; (C2) `channel` is below 2^20.

    Example:
    ```mlir
    exec.recv %x from 0 channel 7 event %e : !exec.buffer<tensor<2xf32>>
    ```
  }];
  let arguments = !con((ins Variadic<Exec_BufferType>:$to, I64Attr:$peer, I64Attr:$channel, Index:$event), microbatch);
  let assemblyFormat = "$to `from` $peer `channel` $channel `event` $event attr-dict `:` type($to)";
  let hasVerifier = 1;
}

def Exec_RecordOp : Exec_Command<"record"> {
  let summary = "Sets an event for the command's microbatch";
  let description = [{
    Example:
    ```mlir
    exec.record %e {microbatch = 1 : i64}
    ```
  }];
  let arguments = !con((ins Index:$event), microbatch);
  let assemblyFormat = "$event attr-dict";
}

def Exec_WaitOp : Exec_Command<"wait"> {
  let summary = "Waits until an event is set for the command's microbatch";
  let description = [{
    A negative microbatch is one of a step before, of a `once` event the step
    before itself (in a loop, too); before the first step all is done.

    Example:
    ```mlir
    exec.wait %e {microbatch = -1 : i64}
    ```
  }];
  let arguments = !con((ins Index:$event), microbatch);
  let assemblyFormat = "$event attr-dict";
}

def Exec_FeedOp : Exec_Command<"feed"> {
  let summary = "Fills a buffer with the microbatch's part of an input";
  let description = [{
    Constraints: (C1) `input` is declared in the program, with the buffer's type.

    Example:
    ```mlir
    exec.feed "input_ids" %x : !exec.buffer<tensor<2x12xi64>>
    ```
  }];
  let arguments = !con((ins StrAttr:$input, Exec_BufferType:$to), microbatch);
  let assemblyFormat = "$input $to attr-dict `:` type($to)";
  let hasVerifier = 1;
}

def Exec_LossOp : Exec_Command<"loss"> {
  let summary = "Adds a microbatch's loss to the step's";
  let description = [{
    Example:
    ```mlir
    exec.loss %l : !exec.buffer<tensor<f32>>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$from), microbatch);
  let assemblyFormat = "$from attr-dict `:` type($from)";
}

def Exec_EmitOp : Exec_Command<"emit"> {
  let summary = "Hands a model output to whoever asked for it";
  let description = [{
    Constraints: (C1) `output` is declared in the program, with as many bytes as
    the buffer.

    Example:
    ```mlir
    exec.emit "logits" %x : !exec.buffer<tensor<2x12x101xf32>>
    ```
  }];
  let arguments = !con((ins StrAttr:$output, Exec_BufferType:$from), microbatch);
  let assemblyFormat = "$output $from attr-dict `:` type($from)";
  let hasVerifier = 1;
}

def Exec_NormOp : Exec_Command<"norm"> {
  let summary = "Adds the squares of an owned gradient to the step's norm";
  let description = [{
    Example:
    ```mlir
    exec.norm %g : !exec.buffer<tensor<48xf32>>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$gradient), microbatch);
  let assemblyFormat = "$gradient attr-dict `:` type($gradient)";
}

def Exec_AgreeOp : Exec_Command<"agree"> {
  let summary = "The one agreement of a step";
  let description = [{
    All ranks exchange squared norm, loss, non-finite flag, save and stop
    requests, and go on with equal numbers.

    Example:
    ```mlir
    exec.agree
    ```
  }];
  let arguments = !con((ins), microbatch);
  let assemblyFormat = "attr-dict";
}

def Exec_UpdateOp : Exec_Command<"update"> {
  let summary = "The optimizer's step on one owned slice";
  let description = [{
    Example:
    ```mlir
    exec.update %p, %g : !exec.buffer<tensor<48xf32>>, !exec.buffer<tensor<48xf32>>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$value, Exec_BufferType:$gradient,
    Variadic<Exec_BufferType>:$states), microbatch);
  let assemblyFormat = [{
    $value `,` $gradient (`states` $states^ `:` type($states))? attr-dict `:` type($value) `,` type($gradient)
  }];
}

def Exec_HookOp : Exec_Command<"hook"> {
  let summary = "A place where the runtime may act between steps";
  let description = [{
    `begin` or `end` of a step: checkpoints are taken at `end`.

    Constraints: (C1) the place is one of these.

    Example:
    ```mlir
    exec.hook "end"
    ```
  }];
  let arguments = !con((ins StrAttr:$place), microbatch);
  let assemblyFormat = "$place attr-dict";
  let hasVerifier = 1;
}

#endif
