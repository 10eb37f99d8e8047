// A row of ops is cut into kernels of at most 64: LLVM's time grows with the
// square of a function's length.
//
// RUN: %python -c "print('func.func @long(%%x0: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {dist.program = #dist.program<device = \"n0/0\", rank = 0, world = 1, replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 2>} {'); [print('%%x{} = het.relu %%x{} {{het.unit = \"block0\"}} : (tensor<2x6xf32>) -> tensor<2x6xf32>'.format(i + 1, i)) for i in range(130)]; print('return %%x130 : tensor<2x6xf32> }')" > %t.mlir
// RUN: autohet-opt %t.mlir --exec-form-kernels | FileCheck %s
//
// CHECK-LABEL: func.func @long
// CHECK-COUNT-3: call @
// CHECK-NOT:     call @
// CHECK:         return
// CHECK-LABEL: func.func private
// CHECK-COUNT-64: het.relu
// CHECK-NOT:      het.relu
// CHECK:          return
