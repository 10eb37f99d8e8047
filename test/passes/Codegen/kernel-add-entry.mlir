// RUN: autohet-opt %s --kernel-add-entry | FileCheck %s

// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: %[[OPERANDS:.*]]: !llvm.ptr, %[[CONTEXT:.*]]: !llvm.ptr) -> i64
// The context's error is reset, and read after the call.
// CHECK: llvm.store
// CHECK: llvm.getelementptr %[[OPERANDS]][0]
// CHECK: llvm.getelementptr %[[OPERANDS]][1]
// Both temporaries lie in the last operand.
// CHECK: llvm.getelementptr %[[OPERANDS]][2]
// CHECK: llvm.call @kernel.body
// CHECK: llvm.icmp "ne"
// CHECK: llvm.func internal @kernel.body
llvm.func @kernel(%x: !llvm.ptr, %y: !llvm.ptr, %s: !llvm.ptr, %t: !llvm.ptr, %context: !llvm.ptr)
    attributes {autohet.may_fail, autohet.scratch_offsets = array<i64: 0, 128>} {
  llvm.return
}
