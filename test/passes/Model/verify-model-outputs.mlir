// The fence notes which dim of an output counts samples.
//
// RUN: autohet-opt %s --het-verify-model --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @keys
// CHECK-SAME:    -> (tensor<3x2x4xf32> {het.batch_dim = 1 : i64, het.name = "present"},
// CHECK-SAME:        tensor<2xf32> {het.batch_dim = -1 : i64, het.name = "table"})
func.func @keys(%x: tensor<2x3x4xf32> {het.batch_dim = 0 : i64})
    -> (tensor<3x2x4xf32> {het.name = "present"}, tensor<2xf32> {het.name = "table"}) attributes {het.batch_size = 2 : i64} {
  %y = het.transpose %x by [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %t = het.parameter "t" : tensor<2xf32>
  return %y, %t : tensor<3x2x4xf32>, tensor<2xf32>
}

// -----

// Of one sample alone, any dim of extent 1 might be it: nothing is followed.
// CHECK-LABEL: func.func @one
// CHECK-SAME:    -> (tensor<1x4xf32> {het.name = "y"})
func.func @one(%x: tensor<1x4xf32> {het.batch_dim = 0 : i64}) -> (tensor<1x4xf32> {het.name = "y"}) attributes {het.batch_size = 1 : i64} {
  %m = het.reduce sum %x dims [0] keep : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %m : tensor<1x4xf32>
}
