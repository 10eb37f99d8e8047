// RUN: autohet-opt %s --kernel-widen-booleans | FileCheck %s

// CHECK: memref.global "private" constant @table : memref<3xi8> = dense<[1, 0, 1]>
memref.global "private" constant @table : memref<3xi1> = dense<[true, false, true]>

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %[[MASK:.*]]: memref<4x3xi8>, %[[OUT:.*]]: memref<3xi8>)
func.func @kernel(%mask: memref<4x3xi1>, %out: memref<3xi1>) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[TABLE:.*]] = memref.get_global @table : memref<3xi8>
  %table = memref.get_global @table : memref<3xi1>
  // CHECK: %[[BYTE:.*]] = memref.load %[[MASK]]
  // CHECK: arith.cmpi ne, %[[BYTE]]
  %a = memref.load %mask[%c0, %c0] : memref<4x3xi1>
  %b = memref.load %table[%c0] : memref<3xi1>
  %c = arith.andi %a, %b : i1
  // CHECK: %[[WIDE:.*]] = arith.extui
  // CHECK: memref.store %[[WIDE]], %[[OUT]]
  memref.store %c, %out[%c0] : memref<3xi1>
  return
}
