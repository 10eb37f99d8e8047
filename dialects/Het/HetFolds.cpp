//===- HetFolds.cpp - evaluation of het ops on constants ----------- ===//
//
// Shape arithmetic folds away here.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet::het;

OpFoldResult ConstantOp::fold(FoldAdaptor adaptor) { return adaptor.getValue(); }
OpFoldResult NegOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult AbsOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ExpOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult LogOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SqrtOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult RsqrtOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ReciprocalOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult TanhOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ErfOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SigmoidOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SiluOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ReluOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SinOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult CosOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult AddOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SubOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult MulOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult DivOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ModOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult PowOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult MaxOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult MinOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult AndOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult OrOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult XorOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult NotOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult IsNanOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult CompareOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SelectOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult CastOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult GeluOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult GeluBackwardOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SiluBackwardOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ReduceOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult GatherOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult GatherNdOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult IotaOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ReshapeOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult TransposeOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult BroadcastOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult SliceOp::fold(FoldAdaptor) { return nullptr; }
OpFoldResult ConcatOp::fold(FoldAdaptor) { return nullptr; }
