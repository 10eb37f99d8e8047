// RUN: autohet-opt %s --het-classify-parameters=constants=^rel | FileCheck %s
// RUN: autohet-opt %s --het-classify-parameters=constants=^other | FileCheck %s
// RUN: not autohet-opt %s --het-classify-parameters=constants=nothing 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not autohet-opt %s --het-classify-parameters=constants=[ 2>&1 | FileCheck %s --check-prefix=REGEX

// NONE: error: --constant 'nothing' matches no constant of the model
// REGEX: error: --constant '[' is no regular expression

// CHECK: weight_source "relative" in "m" at 0 untrained because "named by --constant" aliases ["other.name"]
het.weight_source "relative" in "m" at 0 aliases ["other.name"] : tensor<8xf32>
func.func @named(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %b = het.parameter "relative" : tensor<8xf32>
  %0 = het.add %x, %b : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
