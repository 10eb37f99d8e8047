// RUN: autohet-opt %s --het-freeze-parameters="pattern=^wte|ln_.\\.bias" | FileCheck %s
// RUN: autohet-opt %s --het-freeze-parameters="pattern=^head|ln_.\\.bias" | FileCheck %s
// RUN: not autohet-opt %s --het-freeze-parameters="pattern=nothing" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not autohet-opt %s --het-freeze-parameters="pattern=(" 2>&1 | FileCheck %s --check-prefix=REGEX

// NONE: error: no trained parameter matches the pattern 'nothing' of parameters to freeze; one is called 'wte.weight'
// REGEX: error: the pattern of parameters to freeze, '(', is no regular expression

// A tied one by any of its names.
het.weight_source "wte.weight" in "m" at 0 aliases ["head.weight"] : tensor<3xf32>
func.func @model() {
  // CHECK: het.parameter "wte.weight" untrained {het.frozen}
  %0 = het.parameter "wte.weight" : tensor<3xf32>
  // CHECK: het.parameter "h.0.ln_1.bias" untrained {het.frozen}
  %1 = het.parameter "h.0.ln_1.bias" : tensor<3xf32>
  // A table stays one.
  // CHECK: het.parameter "wte.mask" untrained :
  %2 = het.parameter "wte.mask" untrained : tensor<3xf32>
  // CHECK: het.parameter "h.0.ln_1.weight" :
  %3 = het.parameter "h.0.ln_1.weight" : tensor<3xf32>
  return
}

// What the file lists, with or without a pattern.
// CHECK-LABEL: func.func @listed()
// CHECK-NOT: het.frozen_parameters
func.func @listed() attributes {het.frozen_parameters = ["base.weight", "ln_1.bias", "gone.weight"]} {
  // CHECK: het.parameter "base.weight" untrained {het.frozen}
  %0 = het.parameter "base.weight" : tensor<3xf32>
  // CHECK: het.parameter "lora.weight" :
  %1 = het.parameter "lora.weight" : tensor<3xf32>
  // CHECK: het.parameter "ln_1.bias" untrained {het.frozen}
  %2 = het.parameter "ln_1.bias" : tensor<3xf32>
  return
}
