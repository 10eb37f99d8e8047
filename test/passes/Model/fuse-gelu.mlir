// RUN: autohet-opt %s --het-fuse-gelu --split-input-file | FileCheck %s

// x * (1 + erf(x / 1.41421354)) * 0.5, as exported.
// CHECK-LABEL: func @erf
// CHECK-NEXT: %[[Y:.*]] = het.gelu erf %arg0
// CHECK-NEXT: return %[[Y]]
func.func @erf(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %root = het.constant dense<1.41421354> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %half = het.constant dense<0.5> : tensor<f32>
  %a = het.div %x, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %e = het.erf %a : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %s = het.add %e, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %m = het.mul %x, %s : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = het.mul %m, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// (0.5 * x) * (1 + erf(0.707 x)), and x * (0.5 + 0.5 erf(...)), with x a product.
// CHECK-LABEL: func @groupings
// CHECK-NEXT: %[[X:.*]] = het.mul %arg0, %arg1
// CHECK-NEXT: %[[Y:.*]] = het.gelu erf %[[X]]
// CHECK-NEXT: %[[Z:.*]] = het.gelu erf %[[Y]]
// CHECK-NEXT: return %[[Z]]
func.func @groupings(%p: tensor<2x8xf32>, %q: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %x = het.mul %p, %q : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %root = het.constant dense<0.707106769> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %half = het.constant dense<0.5> : tensor<f32>
  %h = het.mul %half, %x : (tensor<f32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %a = het.mul %x, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %e = het.erf %a : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %s = het.add %one, %e : (tensor<f32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = het.mul %s, %h : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %b = het.mul %y, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %f = het.erf %b : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %g = het.mul %f, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %t = het.add %g, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %z = het.mul %y, %t : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

// GPT-2's "new" gelu.
// CHECK-LABEL: func @tanh
// CHECK-NEXT: %[[Y:.*]] = het.gelu tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @tanh(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %half = het.constant dense<0.5> : tensor<f32>
  %three = het.constant dense<3.0> : tensor<f32>
  %c = het.constant dense<0.0447149985> : tensor<f32>
  %k = het.constant dense<0.797884583> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %h = het.mul %x, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %cube = het.pow %x, %three : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %m = het.mul %cube, %c : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %a = het.add %x, %m : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %s = het.mul %a, %k : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %t = het.tanh %s : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %u = het.add %t, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %y = het.mul %h, %u : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// The "fast" grouping: tanh(x * 0.79 * (1 + 0.0447 * x * x)).
// CHECK-LABEL: func @tanh_fast
// CHECK-NEXT: %[[Y:.*]] = het.gelu tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @tanh_fast(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %half = het.constant dense<0.5> : tensor<f32>
  %c = het.constant dense<0.0447149985> : tensor<f32>
  %k = het.constant dense<0.797884583> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %h = het.mul %x, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %kx = het.mul %x, %k : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %cx = het.mul %x, %c : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %cxx = het.mul %cx, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %i = het.add %cxx, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %s = het.mul %kx, %i : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = het.tanh %s : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %u = het.add %t, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %y = het.mul %h, %u : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func @silu
// CHECK-NEXT: %[[Y:.*]] = het.silu %arg0
// CHECK-NEXT: %[[Z:.*]] = het.silu %[[Y]]
// CHECK-NEXT: return %[[Z]]
func.func @silu(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %one = het.constant dense<1.0> : tensor<f32>
  %s = het.sigmoid %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = het.mul %s, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %n = het.neg %y : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %e = het.exp %n : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %d = het.add %e, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %z = het.div %y, %d : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

// Neither: another constant in the exponent (quick gelu), another x outside.
// CHECK-LABEL: func @neither
// CHECK-NOT: het.gelu
// CHECK-NOT: het.silu
func.func @neither(%x: tensor<2x8xf32>, %w: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %quick = het.constant dense<1.702> : tensor<f32>
  %root = het.constant dense<0.707106769> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %half = het.constant dense<0.5> : tensor<f32>
  %q = het.mul %x, %quick : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %s = het.sigmoid %q : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = het.mul %s, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %a = het.mul %x, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %e = het.erf %a : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = het.add %e, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %h = het.mul %w, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %z = het.mul %h, %t : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y, %z : tensor<2x8xf32>, tensor<2x8xf32>
}
