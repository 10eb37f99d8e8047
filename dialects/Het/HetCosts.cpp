//===- HetCosts.cpp - what the het ops cost ------------------------ ===//
//
// Arithmetic and traffic of one execution.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet::het;

OpCost ConstantOp::getCost() { return {}; }
OpCost ParameterOp::getCost() { return {}; }
OpCost GradientOp::getCost() { return {}; }
OpCost NegOp::getCost() { return {}; }
OpCost AbsOp::getCost() { return {}; }
OpCost ExpOp::getCost() { return {}; }
OpCost LogOp::getCost() { return {}; }
OpCost SqrtOp::getCost() { return {}; }
OpCost RsqrtOp::getCost() { return {}; }
OpCost ReciprocalOp::getCost() { return {}; }
OpCost TanhOp::getCost() { return {}; }
OpCost ErfOp::getCost() { return {}; }
OpCost SigmoidOp::getCost() { return {}; }
OpCost SiluOp::getCost() { return {}; }
OpCost ReluOp::getCost() { return {}; }
OpCost SinOp::getCost() { return {}; }
OpCost CosOp::getCost() { return {}; }
OpCost AddOp::getCost() { return {}; }
OpCost SubOp::getCost() { return {}; }
OpCost MulOp::getCost() { return {}; }
OpCost DivOp::getCost() { return {}; }
OpCost ModOp::getCost() { return {}; }
OpCost PowOp::getCost() { return {}; }
OpCost MaxOp::getCost() { return {}; }
OpCost MinOp::getCost() { return {}; }
OpCost AndOp::getCost() { return {}; }
OpCost OrOp::getCost() { return {}; }
OpCost XorOp::getCost() { return {}; }
OpCost NotOp::getCost() { return {}; }
OpCost IsNanOp::getCost() { return {}; }
OpCost CompareOp::getCost() { return {}; }
OpCost SelectOp::getCost() { return {}; }
OpCost CastOp::getCost() { return {}; }
OpCost GeluOp::getCost() { return {}; }
OpCost GeluBackwardOp::getCost() { return {}; }
OpCost SiluBackwardOp::getCost() { return {}; }
OpCost DropoutOp::getCost() { return {}; }
OpCost MatmulOp::getCost() { return {}; }
OpCost ReduceOp::getCost() { return {}; }
OpCost SoftmaxOp::getCost() { return {}; }
OpCost SoftmaxBackwardOp::getCost() { return {}; }
OpCost LayerNormOp::getCost() { return {}; }
OpCost LayerNormBackwardOp::getCost() { return {}; }
OpCost RmsNormOp::getCost() { return {}; }
OpCost RmsNormBackwardOp::getCost() { return {}; }
OpCost AttentionOp::getCost() { return {}; }
OpCost AttentionBackwardOp::getCost() { return {}; }
OpCost RotaryOp::getCost() { return {}; }
OpCost EmbeddingOp::getCost() { return {}; }
OpCost EmbeddingBackwardOp::getCost() { return {}; }
OpCost GatherOp::getCost() { return {}; }
OpCost GatherNdOp::getCost() { return {}; }
OpCost IotaOp::getCost() { return {}; }
OpCost ReshapeOp::getCost() { return {}; }
OpCost TransposeOp::getCost() { return {}; }
OpCost BroadcastOp::getCost() { return {}; }
OpCost SliceOp::getCost() { return {}; }
OpCost SliceBackwardOp::getCost() { return {}; }
OpCost ConcatOp::getCost() { return {}; }
OpCost CrossEntropyOp::getCost() { return {}; }
OpCost CrossEntropyBackwardOp::getCost() { return {}; }
