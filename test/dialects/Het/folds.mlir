// Constants are evaluated, chains of views become one.
// RUN: autohet-opt %s --canonicalize --split-input-file | FileCheck %s

// Shape -> Gather -> Unsqueeze -> Concat, as exporters write it.
// CHECK-LABEL: @shape_arithmetic
func.func @shape_arithmetic() -> tensor<3xi64> {
  // CHECK: %[[C:.*]] = het.constant dense<[2, 12, -1]> : tensor<3xi64>
  // CHECK-NEXT: return %[[C]]
  %shape = het.constant dense<[2, 12, 32]> : tensor<3xi64>
  %zero = het.constant dense<0> : tensor<i64>
  %last = het.constant dense<-2> : tensor<i64>
  %a = het.gather %shape, %zero {dim = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %b = het.gather %shape, %last {dim = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %a1 = het.reshape %a to [1] : (tensor<i64>) -> tensor<1xi64>
  %b1 = het.reshape %b to [1] : (tensor<i64>) -> tensor<1xi64>
  %rest = het.constant dense<-1> : tensor<1xi64>
  %all = het.concat %a1, %b1, %rest {dim = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
  return %all : tensor<3xi64>
}

// -----

// CHECK-LABEL: @causal_mask
func.func @causal_mask() -> tensor<1x1x3x3xf32> {
  // CHECK: het.constant dense<{{\[\[}}{{\[\[}}0.000000e+00, 0xFF800000, 0xFF800000], [0.000000e+00, 0.000000e+00, 0xFF800000], [0.000000e+00, 0.000000e+00, 0.000000e+00]]]]>
  %i = het.iota {start = 0 : i64, step = 1 : i64, count = 3 : i64, element = i64} : () -> tensor<3xi64>
  %key = het.reshape %i to [1, 1, 1, 3] : (tensor<3xi64>) -> tensor<1x1x1x3xi64>
  %query = het.reshape %i to [1, 1, 3, 1] : (tensor<3xi64>) -> tensor<1x1x3x1xi64>
  %seen = het.compare le %key, %query : (tensor<1x1x1x3xi64>, tensor<1x1x3x1xi64>) -> tensor<1x1x3x3xi1>
  %true = het.constant dense<true> : tensor<i1>
  %both = het.and %true, %seen : (tensor<i1>, tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xi1>
  %zero = het.constant dense<0.0> : tensor<f32>
  %inf = het.constant dense<0xFF800000> : tensor<f32>
  %mask = het.select %both, %zero, %inf : (tensor<1x1x3x3xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x3x3xf32>
  return %mask : tensor<1x1x3x3xf32>
}

// -----

// CHECK-LABEL: @arithmetic
func.func @arithmetic() -> (tensor<2xi64>, tensor<2xi64>, tensor<2xf32>, tensor<2xi64>, tensor<i64>) {
  // Division truncates, mod has the divisor's sign, float to integer truncates.
  // CHECK-DAG: het.constant dense<[-3, 3]> : tensor<2xi64>
  // CHECK-DAG: het.constant dense<[1, -1]> : tensor<2xi64>
  // CHECK-DAG: het.constant dense<[-3.500000e+00, 3.500000e+00]> : tensor<2xf32>
  // CHECK-DAG: het.constant dense<0> : tensor<i64>
  %a = het.constant dense<[-7, 7]> : tensor<2xi64>
  %two = het.constant dense<2> : tensor<2xi64>
  %n = het.constant dense<[2, -2]> : tensor<2xi64>
  %d = het.div %a, %two : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %m = het.mod %a, %n : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %f = het.cast %a {to = f32} : (tensor<2xi64>) -> tensor<2xf32>
  %half = het.constant dense<0.5> : tensor<f32>
  %h = het.mul %f, %half : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %t = het.cast %h {to = i64} : (tensor<2xf32>) -> tensor<2xi64>
  %s = het.reduce sum %t dims [0] : (tensor<2xi64>) -> tensor<i64>
  return %d, %m, %h, %t, %s : tensor<2xi64>, tensor<2xi64>, tensor<2xf32>, tensor<2xi64>, tensor<i64>
}

// -----

// CHECK-LABEL: @moves
func.func @moves() -> (tensor<3x2xi64>, tensor<2x2xi64>, tensor<2x3xi64>, tensor<2xi64>, tensor<1xi64>) {
  // CHECK-DAG: dense<{{\[\[}}1, 4], [2, 5], [3, 6]]>
  // CHECK-DAG: dense<{{\[\[}}3, 1], [6, 4]]>
  // CHECK-DAG: dense<{{\[\[}}1, 2, 3], [1, 2, 3]]>
  // CHECK-DAG: dense<[2, 6]>
  // CHECK-DAG: dense<7> : tensor<1xi64>
  %x = het.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %t = het.transpose %x by [1, 0] : (tensor<2x3xi64>) -> tensor<3x2xi64>
  %s = het.slice %x offsets [0, 2] sizes [2, 2] strides [1, -2] : (tensor<2x3xi64>) -> tensor<2x2xi64>
  %row = het.constant dense<[[1, 2, 3]]> : tensor<1x3xi64>
  %b = het.broadcast %row to [2, 3] : (tensor<1x3xi64>) -> tensor<2x3xi64>
  %i = het.constant dense<[[0, 1], [1, -1]]> : tensor<2x2xi64>
  %g = het.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<2x3xi64>, tensor<2x2xi64>) -> tensor<2xi64>
  %seven = het.constant dense<7> : tensor<i64>
  %r = het.reshape %seven to [1] : (tensor<i64>) -> tensor<1xi64>
  return %t, %s, %b, %g, %r : tensor<3x2xi64>, tensor<2x2xi64>, tensor<2x3xi64>, tensor<2xi64>, tensor<1xi64>
}

// -----

// Flattening and its inverse vanish; so do two transposes that undo each other.
// CHECK-LABEL: @views
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @views(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]]
  %f = het.reshape %x to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %u = het.reshape %f to [2, 3, 4] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %t = het.transpose %x by [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %v = het.transpose %t by [0, 2, 1] : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  return %u, %v : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// What is wrong on a device stays for the device to report.
// CHECK-LABEL: @left_alone
func.func @left_alone() -> (tensor<i64>, tensor<i64>) {
  // CHECK: het.gather
  // CHECK: het.div
  %x = het.constant dense<[1, 2]> : tensor<2xi64>
  %five = het.constant dense<5> : tensor<i64>
  %zero = het.constant dense<0> : tensor<i64>
  %g = het.gather %x, %five {dim = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %d = het.div %five, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %g, %d : tensor<i64>, tensor<i64>
}

// -----

// Order, running sums and scattered updates, as NumPy has them.
// CHECK-LABEL: @order
func.func @order() -> (tensor<2xi64>, tensor<2xi64>, tensor<3xi64>, tensor<3xi64>, tensor<2xi64>, tensor<2xi64>, tensor<3xi64>, tensor<3xi64>) {
  // CHECK-DAG: %[[LAST:.*]] = het.constant dense<[2, 0]> : tensor<2xi64>
  // CHECK-DAG: %[[FIRST:.*]] = het.constant dense<0> : tensor<2xi64>
  // CHECK-DAG: %[[SUMS:.*]] = het.constant dense<[3, 4, 7]> : tensor<3xi64>
  // CHECK-DAG: %[[BACK:.*]] = het.constant dense<[4, 3, 0]> : tensor<3xi64>
  // CHECK-DAG: %[[TOP:.*]] = het.constant dense<3> : tensor<2xi64>
  // CHECK-DAG: %[[PLACES:.*]] = het.constant dense<[0, 2]> : tensor<2xi64>
  // CHECK-DAG: %[[PUT:.*]] = het.constant dense<[3, 1, 9]> : tensor<3xi64>
  // CHECK-DAG: %[[ADDED:.*]] = het.constant dense<[3, 1, 21]> : tensor<3xi64>
  // CHECK: return %[[LAST]], %[[FIRST]], %[[SUMS]], %[[BACK]], %[[TOP]], %[[PLACES]], %[[PUT]], %[[ADDED]]
  %m = het.constant dense<[[3, 1, 3], [5, 2, 4]]> : tensor<2x3xi64>
  %x = het.constant dense<[3, 1, 3]> : tensor<3xi64>
  %last = het.arg_reduce max %m dim 1 last : (tensor<2x3xi64>) -> tensor<2xi64>
  %first = het.arg_reduce max %m dim 1 : (tensor<2x3xi64>) -> tensor<2xi64>
  %sums = het.cumulative_sum %x dim 0 : (tensor<3xi64>) -> tensor<3xi64>
  %back = het.cumulative_sum %x dim 0 exclusive reverse : (tensor<3xi64>) -> tensor<3xi64>
  %top, %places = het.top_k %x {k = 2 : i64, largest} : (tensor<3xi64>) -> (tensor<2xi64>, tensor<2xi64>)
  %i = het.constant dense<[[2], [-1]]> : tensor<2x1xi64>
  %u = het.constant dense<[7, 9]> : tensor<2xi64>
  %put = het.scatter_nd replace %x, %i, %u : (tensor<3xi64>, tensor<2x1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %w = het.constant dense<[8, 10]> : tensor<2xi64>
  %added = het.scatter_nd add %x, %i, %w : (tensor<3xi64>, tensor<2x1xi64>, tensor<2xi64>) -> tensor<3xi64>
  return %last, %first, %sums, %back, %top, %places, %put, %added : tensor<2xi64>, tensor<2xi64>, tensor<3xi64>, tensor<3xi64>, tensor<2xi64>, tensor<2xi64>, tensor<3xi64>, tensor<3xi64>
}

// -----

// Extents that pass through floats add up exactly; other floats are left to the
// device, whose order decides.
// CHECK-LABEL: @sums_of_floats
func.func @sums_of_floats() -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  // CHECK-DAG: %[[AREA:.*]] = het.constant dense<2.400000e+01> : tensor<f32>
  // CHECK-DAG: %[[MEAN:.*]] = het.constant dense<3.000000e+00> : tensor<f32>
  // CHECK: %[[SUM:.*]] = het.reduce sum
  // CHECK: return %[[AREA]], %[[MEAN]], %[[SUM]]
  %x = het.constant dense<[2.0, 3.0, 4.0]> : tensor<3xf32>
  %y = het.constant dense<[0.1, 0.2, 0.3]> : tensor<3xf32>
  %area = het.reduce prod %x dims [0] : (tensor<3xf32>) -> tensor<f32>
  %mean = het.reduce mean %x dims [0] : (tensor<3xf32>) -> tensor<f32>
  %sum = het.reduce sum %y dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %area, %mean, %sum : tensor<f32>, tensor<f32>, tensor<f32>
}
