// RUN: autohet-opt %s --het-dense-experts --cse --split-input-file | FileCheck %s

// A layer of experts as exporters write it: all compute, and the sum over the
// two that a token chose is one over all, in which the others have no share, and
// begin with zeros, so that nothing overflows in them.
// CHECK-LABEL: func @layer
// CHECK-NOT: het.gather
// CHECK-DAG: %[[W:.*]] = het.parameter "up" : tensor<4x10x8xf32>
// CHECK-DAG: %[[D:.*]] = het.parameter "down" : tensor<4x8x5xf32>
// CHECK: %[[S:.*]], %[[I:.*]] = het.top_k
// CHECK: %[[Z:.*]] = het.matmul %{{.*}}, %[[W]] contract [2] [2] : (tensor<2x3x8xf32>, tensor<4x10x8xf32>) -> tensor<2x3x4x10xf32>
// CHECK: %[[IT:.*]] = het.compare eq %{{.*}} : (tensor<2x3x2x1xi64>, tensor<4xi64>) -> tensor<2x3x2x4xi1>
// CHECK: %[[HITS:.*]] = het.reduce max %{{.*}} dims [2] : (tensor<2x3x2x4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[ANY:.*]] = het.compare gt %[[HITS]]
// CHECK: %[[OF:.*]] = het.reshape %[[ANY]] to [2, 3, 4, 1, 1]
// CHECK: %[[C:.*]] = het.select %[[OF]], %{{.*}} -> tensor<2x3x4x10x1xf32>
// CHECK: %[[O:.*]] = het.reshape %[[C]] to [2, 3, 4, 10]
// CHECK: %[[A:.*]] = het.slice %[[O]] offsets [0, 0, 0, 0] sizes [2, 3, 4, 5]
// CHECK: %[[B:.*]] = het.slice %[[O]] offsets [0, 0, 0, 5] sizes [2, 3, 4, 5]
// CHECK: %[[M:.*]] = het.mul %[[A]], %[[B]]
// CHECK: %[[Y:.*]] = het.matmul %[[M]], %[[D]] batch [2] [0] contract [3] [2] : (tensor<2x3x4x5xf32>, tensor<4x8x5xf32>) -> tensor<4x2x3x8xf32>
// CHECK: %[[T:.*]] = het.transpose %[[Y]] by [1, 2, 0, 3]
// CHECK: %[[P:.*]] = het.select %{{.*}} : (tensor<2x3x2x4xi1>, tensor<2x3x2x1xf32>, tensor<f32>) -> tensor<2x3x2x4xf32>
// CHECK: %[[R:.*]] = het.reduce sum %[[P]] dims [2]
// CHECK: %[[C:.*]] = het.reshape %[[R]] to [2, 3, 4, 1]
// CHECK: %[[V:.*]] = het.mul %[[T]], %[[C]]
// CHECK: het.reduce sum %[[V]] dims [2] : (tensor<2x3x4x8xf32>) -> tensor<2x3x8xf32>
func.func @layer(%x: tensor<2x3x8xf32>, %router: tensor<2x3x4xf32>) -> tensor<2x3x8xf32> {
  %up = het.parameter "up" : tensor<4x10x8xf32>
  %down = het.parameter "down" : tensor<4x8x5xf32>
  %s, %i = het.top_k %router {k = 2 : i64, largest} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi64>)
  %x1 = het.reshape %x to [2, 3, 1, 8] : (tensor<2x3x8xf32>) -> tensor<2x3x1x8xf32>
  %x2 = het.broadcast %x1 to [2, 3, 2, 8] : (tensor<2x3x1x8xf32>) -> tensor<2x3x2x8xf32>
  %x3 = het.reshape %x2 to [2, 3, 2, 8, 1] : (tensor<2x3x2x8xf32>) -> tensor<2x3x2x8x1xf32>
  %gu = het.gather %up, %i {dim = 0 : i64} : (tensor<4x10x8xf32>, tensor<2x3x2xi64>) -> tensor<2x3x2x10x8xf32>
  %z1 = het.matmul %gu, %x3 batch [0, 1, 2] [0, 1, 2] contract [4] [3] : (tensor<2x3x2x10x8xf32>, tensor<2x3x2x8x1xf32>) -> tensor<2x3x2x10x1xf32>
  %z = het.reshape %z1 to [2, 3, 2, 10] : (tensor<2x3x2x10x1xf32>) -> tensor<2x3x2x10xf32>
  %a = het.slice %z offsets [0, 0, 0, 0] sizes [2, 3, 2, 5] strides [1, 1, 1, 1] : (tensor<2x3x2x10xf32>) -> tensor<2x3x2x5xf32>
  %b = het.slice %z offsets [0, 0, 0, 5] sizes [2, 3, 2, 5] strides [1, 1, 1, 1] : (tensor<2x3x2x10xf32>) -> tensor<2x3x2x5xf32>
  %m = het.mul %a, %b : (tensor<2x3x2x5xf32>, tensor<2x3x2x5xf32>) -> tensor<2x3x2x5xf32>
  %m1 = het.reshape %m to [2, 3, 2, 5, 1] : (tensor<2x3x2x5xf32>) -> tensor<2x3x2x5x1xf32>
  %gd = het.gather %down, %i {dim = 0 : i64} : (tensor<4x8x5xf32>, tensor<2x3x2xi64>) -> tensor<2x3x2x8x5xf32>
  %y1 = het.matmul %gd, %m1 batch [0, 1, 2] [0, 1, 2] contract [4] [3] : (tensor<2x3x2x8x5xf32>, tensor<2x3x2x5x1xf32>) -> tensor<2x3x2x8x1xf32>
  %y = het.reshape %y1 to [2, 3, 2, 8] : (tensor<2x3x2x8x1xf32>) -> tensor<2x3x2x8xf32>
  %share = het.reshape %s to [2, 3, 2, 1] : (tensor<2x3x2xf32>) -> tensor<2x3x2x1xf32>
  %w = het.mul %y, %share : (tensor<2x3x2x8xf32>, tensor<2x3x2x1xf32>) -> tensor<2x3x2x8xf32>
  %r = het.reduce sum %w dims [2] : (tensor<2x3x2x8xf32>) -> tensor<2x3x8xf32>
  return %r : tensor<2x3x8xf32>
}

// -----

// What comes after a product that is no sum of shares stays a pick, on the
// right side of a product too.
// CHECK-LABEL: func @picked
// CHECK: %[[Z:.*]] = het.matmul %arg0, %{{.*}} contract [2] [1] : (tensor<2x5x8xf32>, tensor<3x8x7xf32>) -> tensor<2x5x3x7xf32>
// CHECK: %[[T:.*]] = het.transpose %[[Z]] by [0, 2, 1, 3] : (tensor<2x5x3x7xf32>) -> tensor<2x3x5x7xf32>
// CHECK: %[[O:.*]] = het.select %{{.*}}, %[[T]], %{{.*}} : (tensor<2x3x1x1xi1>, tensor<2x3x5x7xf32>, tensor<f32>)
// CHECK: het.gather_nd %[[O]], %{{.*}} {batch_dims = 1 : i64} : (tensor<2x3x5x7xf32>, tensor<2x2x1xi64>) -> tensor<2x2x5x7xf32>
// CHECK-NOT: pick
func.func @picked(%x: tensor<2x5x8xf32>, %router: tensor<2x3xf32>) -> tensor<2x2x5x7xf32> {
  %w = het.parameter "w" : tensor<3x8x7xf32>
  %s, %i = het.top_k %router {k = 2 : i64, largest} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %x1 = het.reshape %x to [2, 1, 5, 8] : (tensor<2x5x8xf32>) -> tensor<2x1x5x8xf32>
  %x2 = het.broadcast %x1 to [2, 2, 5, 8] : (tensor<2x1x5x8xf32>) -> tensor<2x2x5x8xf32>
  %g = het.gather %w, %i {dim = 0 : i64} : (tensor<3x8x7xf32>, tensor<2x2xi64>) -> tensor<2x2x8x7xf32>
  %y = het.matmul %x2, %g batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x2x5x8xf32>, tensor<2x2x8x7xf32>) -> tensor<2x2x5x7xf32>
  return %y : tensor<2x2x5x7xf32>
}

// -----

// Places that may be anywhere, fewer lookups than experts, experts of few
// inputs, and tokens whose chosen experts see unlike things: lookups stay.
// CHECK-LABEL: func @lookups
// CHECK-COUNT-4: het.gather %
func.func @lookups(%x: tensor<2x2x8xf32>, %n: tensor<2x2x2xf32>, %router: tensor<2x3xf32>, %any: tensor<2x2xi64>)
    -> (tensor<2x2x7xf32>, tensor<2x1x7xf32>, tensor<2x2x7xf32>, tensor<2x2x7xf32>) {
  %w = het.parameter "w" : tensor<3x7x8xf32>
  %v = het.parameter "v" : tensor<3x7x2xf32>
  %one = het.constant dense<1.0> : tensor<2x1x8xf32>
  %s, %i = het.top_k %router {k = 2 : i64, largest} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %t, %j = het.top_k %router {k = 1 : i64, largest} : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xi64>)
  %ga = het.gather %w, %any {dim = 0 : i64} : (tensor<3x7x8xf32>, tensor<2x2xi64>) -> tensor<2x2x7x8xf32>
  %gb = het.gather %w, %j {dim = 0 : i64} : (tensor<3x7x8xf32>, tensor<2x1xi64>) -> tensor<2x1x7x8xf32>
  %gc = het.gather %v, %i {dim = 0 : i64} : (tensor<3x7x2xf32>, tensor<2x2xi64>) -> tensor<2x2x7x2xf32>
  %gd = het.gather %w, %i {dim = 0 : i64} : (tensor<3x7x8xf32>, tensor<2x2xi64>) -> tensor<2x2x7x8xf32>
  %a = het.matmul %ga, %x batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x2x7x8xf32>, tensor<2x2x8xf32>) -> tensor<2x2x7xf32>
  %b = het.matmul %gb, %one batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x1x7x8xf32>, tensor<2x1x8xf32>) -> tensor<2x1x7xf32>
  %c = het.matmul %gc, %n batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x2x7x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x7xf32>
  %d = het.matmul %gd, %x batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x2x7x8xf32>, tensor<2x2x8xf32>) -> tensor<2x2x7xf32>
  return %a, %b, %c, %d : tensor<2x2x7xf32>, tensor<2x1x7xf32>, tensor<2x2x7xf32>, tensor<2x2x7xf32>
}
