// RUN: autohet-opt %s --lower-het-to-linalg --verify-diagnostics

func.func private @kernel() -> tensor<2xf32> {
  // expected-error @+1 {{'het.parameter' op has no lowering to kernels for CPUs}}
  %y = het.parameter "w" : tensor<2xf32>
  return %y : tensor<2xf32>
}
