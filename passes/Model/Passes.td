//===- Passes.td - the passes of the Model phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_MODEL
#define AUTOHET_PASSES_MODEL

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Fuse: give decomposed formulas their meaning back
//===----------------------------------------------------------------------===//

def FuseNorms : Pass<"het-fuse-norms", "::mlir::func::FuncOp"> {
  let summary = "Recognise layer_norm and rms_norm in their decompositions";
  let description = [{
    *Requires*: plain het ops; reductions over one dim.

    *Does*: replaces `d / sqrt(mean(d^2) + e)` by `het.layer_norm` where
    `d = x - mean(x)`, by `het.rms_norm` otherwise, and lets a scale and a bias
    that are vectors over the last dim join it. Squares may be pow or mul, means
    a mean or a sum over N, the quotient a div, a reciprocal or an rsqrt.
    Intermediates with other uses stay.

    *Ensures*: no such decomposition is left.

    ```mlir
    %sq = het.mul %x, %x : ...
    %ms = het.reduce mean %sq dims [2] keep : ...
    %ve = het.add %ms, %eps : ...
    %r = het.rsqrt %ve : ...
    %n = het.mul %x, %r : ...
    %y = het.mul %n, %scale : ...
    // becomes
    %y, %rstd = het.rms_norm %x, %scale {epsilon = 1.0e-6 : f64} : ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def FuseGelu : Pass<"het-fuse-gelu", "::mlir::func::FuncOp"> {
  let summary = "Recognise gelu (erf and tanh) and silu in their formulas";
  let description = [{
    *Requires*: plain het ops.

    *Does*: replaces `x/2 (1 + erf(x / sqrt 2))` and
    `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, factors in any order and
    grouping, by `het.gelu`; `x sigmoid(x)` by `het.silu`.

    *Ensures*: no such formula is left.

    ```mlir
    %s = het.sigmoid %x : ...
    %y = het.mul %x, %s : ...
    // becomes
    %y = het.silu %x : ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

#endif
