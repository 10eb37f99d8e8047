// RUN: not autohet-opt %s --onnx-to-het="batch=2" 2>&1 | FileCheck %s --check-prefix=UNBOUND
// RUN: not autohet-opt %s --onnx-to-het="batch=2 dims=seq=3,len=4" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not autohet-opt %s --onnx-to-het="batch=2 dims=seq" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not autohet-opt %s --onnx-to-het="batch=2 dims=seq=3 ties=a" 2>&1 | FileCheck %s --check-prefix=TIE
// RUN: not autohet-opt %s --onnx-to-het="batch=2 dims=seq=3 ties=a=b" 2>&1 | FileCheck %s --check-prefix=TIENAME
// RUN: not autohet-opt %s --onnx-to-het="batch=2 dims=seq=3 shared=a" 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: autohet-opt %s --onnx-to-het="dims=batch=2,seq=3" | FileCheck %s
// RUN: autohet-opt %s --onnx-to-het="batch-dim=seq batch=3 dims=batch=2" | FileCheck %s --check-prefix=BATCHDIM

// UNBOUND: error: dims of the model are unbound: 'seq' of input 'ids'
// UNKNOWN: error: the model has no symbolic dim 'len'; it has 'batch', 'seq'
// FORM: error: --dim seq: wanted NAME=N with N at least 1
// TIE: error: --tie a: wanted NAME=OTHER
// TIENAME: error: --tie a=b: the model has no parameter 'a'
// SHARED: error: --shared a: the model has no such parameter
// CHECK: tensor<2x3xi64> {het.batch_dim = 0 : i64
// BATCHDIM: tensor<2x3xi64> {het.batch_dim = 1 : i64, het.name = "ids"
func.func @model(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> !onnx.value {
  %0 = onnx.node "Neg"(%ids) opset 18 {} : (tensor<?x?xi64>) -> !onnx.value
  return %0 : !onnx.value
}
