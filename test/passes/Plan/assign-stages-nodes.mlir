// Nodes have the cluster's order, whatever the plan uses first; those that it does
// not use have no rank.
//
// RUN: autohet-opt %s --dist-assign-stages=stages='1x2:embed@b/1;1x2:embed@a/0;1x2:embed@b/0' | FileCheck %s

// CHECK-DAG: @r0.s0{{.*}}world = 3, ranks = [2], weights = [1], devices = ["b/1"]
// CHECK-DAG: @r1.s0{{.*}}world = 3, ranks = [0], weights = [1], devices = ["a/0"]
// CHECK-DAG: @r2.s0{{.*}}world = 3, ranks = [1], weights = [1], devices = ["b/0"]
module attributes {dist.nodes = ["spare", "a", "b"]} {
  func.func @model(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>) attributes {het.batch_size = 2 : i64, het.units = ["embed"]} {
    %y = het.neg %x {het.unit = "embed"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    return %y : tensor<2x6xf32>
  }
}
