// RUN: autohet-opt %s --het-fuse-rotary --split-input-file | FileCheck %s
// RUN: autohet-opt %s --canonicalize --het-fuse-rotary --split-input-file | FileCheck %s

// LLaMA: halves; angles computed at run time from positions, doubled by concat.
// CHECK-LABEL: func @run_time_angles
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x5x8xf32>, %[[F:.*]]: tensor<2x5x4xf32>)
// CHECK-DAG: %[[C:.*]] = het.cos %[[F]] : (tensor<2x5x4xf32>)
// CHECK-DAG: %[[CR:.*]] = het.reshape %[[C]] to [2, 1, 5, 4]
// CHECK-DAG: %[[S:.*]] = het.sin %[[F]] : (tensor<2x5x4xf32>)
// CHECK-DAG: %[[SR:.*]] = het.reshape %[[S]] to [2, 1, 5, 4]
// CHECK: %[[Y:.*]] = het.rotary %[[X]], %[[CR]], %[[SR]] : (tensor<2x4x5x8xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5x4xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @run_time_angles(%x: tensor<2x4x5x8xf32>, %f: tensor<2x5x4xf32>) -> tensor<2x4x5x8xf32> {
  %d = het.concat %f, %f {dim = 2 : i64} : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x8xf32>
  %c = het.cos %d : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %s = het.sin %d : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %cr = het.reshape %c to [2, 1, 5, 8] : (tensor<2x5x8xf32>) -> tensor<2x1x5x8xf32>
  %sr = het.reshape %s to [2, 1, 5, 8] : (tensor<2x5x8xf32>) -> tensor<2x1x5x8xf32>
  %a = het.mul %x, %cr : (tensor<2x4x5x8xf32>, tensor<2x1x5x8xf32>) -> tensor<2x4x5x8xf32>
  %x1 = het.slice %x offsets [0, 0, 0, 0] sizes [2, 4, 5, 4] strides [1, 1, 1, 1] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %x2 = het.slice %x offsets [0, 0, 0, 4] sizes [2, 4, 5, 4] strides [1, 1, 1, 1] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %n = het.neg %x2 : (tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %t = het.concat %n, %x1 {dim = 3 : i64} : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x8xf32>
  %b = het.mul %t, %sr : (tensor<2x4x5x8xf32>, tensor<2x1x5x8xf32>) -> tensor<2x4x5x8xf32>
  %y = het.add %a, %b : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Angles that are constants, operands swapped.
// CHECK-LABEL: func @constant_angles
// CHECK-DAG: %[[C:.*]] = het.constant dense<{{.*}}1.000000e+00, 2.000000e+00{{.*}}> : tensor<1x2xf32>
// CHECK-DAG: %[[S:.*]] = het.constant dense<{{.*}}3.000000e+00, 4.000000e+00{{.*}}> : tensor<1x2xf32>
// CHECK: het.rotary %arg0, %[[C]], %[[S]] : (tensor<2x1x1x4xf32>, tensor<1x2xf32>, tensor<1x2xf32>)
func.func @constant_angles(%x: tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32> {
  %c = het.constant dense<[[1.0, 2.0, 1.0, 2.0]]> : tensor<1x4xf32>
  %s = het.constant dense<[[3.0, 4.0, 3.0, 4.0]]> : tensor<1x4xf32>
  %x1 = het.slice %x offsets [0, 0, 0, 0] sizes [2, 1, 1, 2] strides [1, 1, 1, 1] : (tensor<2x1x1x4xf32>) -> tensor<2x1x1x2xf32>
  %x2 = het.slice %x offsets [0, 0, 0, 2] sizes [2, 1, 1, 2] strides [1, 1, 1, 1] : (tensor<2x1x1x4xf32>) -> tensor<2x1x1x2xf32>
  %n = het.neg %x2 : (tensor<2x1x1x2xf32>) -> tensor<2x1x1x2xf32>
  %t = het.concat %n, %x1 {dim = 3 : i64} : (tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>) -> tensor<2x1x1x4xf32>
  %b = het.mul %s, %t : (tensor<1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32>
  %a = het.mul %c, %x : (tensor<1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32>
  %y = het.add %b, %a : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32>
  return %y : tensor<2x1x1x4xf32>
}

// -----

// The two halves of the angles differ: this is no rotation.
// CHECK-LABEL: func @unlike_halves
// CHECK-NOT: het.rotary
func.func @unlike_halves(%x: tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32> {
  %c = het.constant dense<[[1.0, 2.0, 1.0, 9.0]]> : tensor<1x4xf32>
  %s = het.constant dense<[[3.0, 4.0, 3.0, 4.0]]> : tensor<1x4xf32>
  %x1 = het.slice %x offsets [0, 0, 0, 0] sizes [2, 1, 1, 2] strides [1, 1, 1, 1] : (tensor<2x1x1x4xf32>) -> tensor<2x1x1x2xf32>
  %x2 = het.slice %x offsets [0, 0, 0, 2] sizes [2, 1, 1, 2] strides [1, 1, 1, 1] : (tensor<2x1x1x4xf32>) -> tensor<2x1x1x2xf32>
  %n = het.neg %x2 : (tensor<2x1x1x2xf32>) -> tensor<2x1x1x2xf32>
  %t = het.concat %n, %x1 {dim = 3 : i64} : (tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>) -> tensor<2x1x1x4xf32>
  %b = het.mul %s, %t : (tensor<1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32>
  %a = het.mul %c, %x : (tensor<1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32>
  %y = het.add %b, %a : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x1x1x4xf32>
  return %y : tensor<2x1x1x4xf32>
}

// -----

// GPT-J: neighbours; angles repeated element by element; only the first four
// of six elements are rotated.
// CHECK-LABEL: func @interleaved_part
// CHECK: %[[C:.*]] = het.reshape %arg1 to [{{(1, )?}}1, 5, 2]
// CHECK: %[[S:.*]] = het.reshape %arg2 to [{{(1, )?}}1, 5, 2]
// CHECK: %[[Y:.*]] = het.rotary %arg0, %[[C]], %[[S]] {interleaved}
// CHECK-NEXT: return %[[Y]]
func.func @interleaved_part(%whole: tensor<2x4x5x6xf32>, %cos: tensor<1x5x2x1xf32>, %sin: tensor<1x5x2x1xf32>) -> tensor<2x4x5x6xf32> {
  %cb = het.broadcast %cos to [1, 5, 2, 2] : (tensor<1x5x2x1xf32>) -> tensor<1x5x2x2xf32>
  %sb = het.broadcast %sin to [1, 5, 2, 2] : (tensor<1x5x2x1xf32>) -> tensor<1x5x2x2xf32>
  %c3 = het.reshape %cb to [1, 5, 4] : (tensor<1x5x2x2xf32>) -> tensor<1x5x4xf32>
  %s3 = het.reshape %sb to [1, 5, 4] : (tensor<1x5x2x2xf32>) -> tensor<1x5x4xf32>
  %c = het.reshape %c3 to [1, 1, 5, 4] : (tensor<1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %s = het.reshape %s3 to [1, 1, 5, 4] : (tensor<1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %x = het.slice %whole offsets [0, 0, 0, 0] sizes [2, 4, 5, 4] strides [1, 1, 1, 1] : (tensor<2x4x5x6xf32>) -> tensor<2x4x5x4xf32>
  %rest = het.slice %whole offsets [0, 0, 0, 4] sizes [2, 4, 5, 2] strides [1, 1, 1, 1] : (tensor<2x4x5x6xf32>) -> tensor<2x4x5x2xf32>
  %x1 = het.slice %x offsets [0, 0, 0, 0] sizes [2, 4, 5, 2] strides [1, 1, 1, 2] : (tensor<2x4x5x4xf32>) -> tensor<2x4x5x2xf32>
  %x2 = het.slice %x offsets [0, 0, 0, 1] sizes [2, 4, 5, 2] strides [1, 1, 1, 2] : (tensor<2x4x5x4xf32>) -> tensor<2x4x5x2xf32>
  %n = het.neg %x2 : (tensor<2x4x5x2xf32>) -> tensor<2x4x5x2xf32>
  %nu = het.reshape %n to [2, 4, 5, 2, 1] : (tensor<2x4x5x2xf32>) -> tensor<2x4x5x2x1xf32>
  %xu = het.reshape %x1 to [2, 4, 5, 2, 1] : (tensor<2x4x5x2xf32>) -> tensor<2x4x5x2x1xf32>
  %st = het.concat %nu, %xu {dim = 4 : i64} : (tensor<2x4x5x2x1xf32>, tensor<2x4x5x2x1xf32>) -> tensor<2x4x5x2x2xf32>
  %t = het.reshape %st to [2, 4, 5, 4] : (tensor<2x4x5x2x2xf32>) -> tensor<2x4x5x4xf32>
  %a = het.mul %x, %c : (tensor<2x4x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<2x4x5x4xf32>
  %b = het.mul %t, %s : (tensor<2x4x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<2x4x5x4xf32>
  %r = het.add %a, %b : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %y = het.concat %r, %rest {dim = 3 : i64} : (tensor<2x4x5x4xf32>, tensor<2x4x5x2xf32>) -> tensor<2x4x5x6xf32>
  return %y : tensor<2x4x5x6xf32>
}

// -----

// By parts, angles once.
// CHECK-LABEL: func @by_parts
// CHECK-NEXT: %[[Y:.*]] = het.rotary %arg0, %arg1, %arg2 : (tensor<2x4x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @by_parts(%x: tensor<2x4x5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<2x4x5x8xf32> {
  %x1 = het.slice %x offsets [0, 0, 0, 0] sizes [2, 4, 5, 4] strides [1, 1, 1, 1] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %x2 = het.slice %x offsets [0, 0, 0, 4] sizes [2, 4, 5, 4] strides [1, 1, 1, 1] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %a = het.mul %x1, %c : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %b = het.mul %x2, %s : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %d = het.sub %a, %b : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %e = het.mul %c, %x2 : (tensor<5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %f = het.mul %x1, %s : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %g = het.add %f, %e : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %y = het.concat %d, %g {dim = 3 : i64} : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// Neighbours that come out as halves: they are brought together first.
// CHECK-LABEL: func @shuffled
// CHECK: %[[X1:.*]] = het.slice %arg0 offsets [0, 0, 0, 0] {{.*}} strides [1, 1, 1, 2]
// CHECK: %[[X2:.*]] = het.slice %arg0 offsets [0, 0, 0, 1] {{.*}} strides [1, 1, 1, 2]
// CHECK: %[[X:.*]] = het.concat %[[X1]], %[[X2]] {dim = 3 : i64}
// CHECK: %[[Y:.*]] = het.rotary %[[X]], %arg1, %arg2 : (tensor<2x4x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>)
// CHECK: return %[[Y]]
func.func @shuffled(%x: tensor<2x4x5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<2x4x5x8xf32> {
  %x1 = het.slice %x offsets [0, 0, 0, 0] sizes [2, 4, 5, 4] strides [1, 1, 1, 2] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %x2 = het.slice %x offsets [0, 0, 0, 1] sizes [2, 4, 5, 4] strides [1, 1, 1, 2] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %a = het.mul %x1, %c : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %b = het.mul %x2, %s : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %d = het.sub %a, %b : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %e = het.mul %x2, %c : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %f = het.mul %x1, %s : (tensor<2x4x5x4xf32>, tensor<5x4xf32>) -> tensor<2x4x5x4xf32>
  %g = het.add %e, %f : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %y = het.concat %d, %g {dim = 3 : i64} : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}
