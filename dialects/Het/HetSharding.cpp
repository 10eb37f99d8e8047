//===- HetSharding.cpp - how the het ops may be split -------------- ===//
//
// The factors of each op.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet::het;

ShardingRule ConstantOp::getShardingRule() { return {}; }
ShardingRule ParameterOp::getShardingRule() { return {}; }
ShardingRule GradientOp::getShardingRule() { return {}; }
ShardingRule NegOp::getShardingRule() { return {}; }
ShardingRule AbsOp::getShardingRule() { return {}; }
ShardingRule ExpOp::getShardingRule() { return {}; }
ShardingRule LogOp::getShardingRule() { return {}; }
ShardingRule SqrtOp::getShardingRule() { return {}; }
ShardingRule RsqrtOp::getShardingRule() { return {}; }
ShardingRule ReciprocalOp::getShardingRule() { return {}; }
ShardingRule TanhOp::getShardingRule() { return {}; }
ShardingRule ErfOp::getShardingRule() { return {}; }
ShardingRule SigmoidOp::getShardingRule() { return {}; }
ShardingRule SiluOp::getShardingRule() { return {}; }
ShardingRule ReluOp::getShardingRule() { return {}; }
ShardingRule SinOp::getShardingRule() { return {}; }
ShardingRule CosOp::getShardingRule() { return {}; }
ShardingRule AddOp::getShardingRule() { return {}; }
ShardingRule SubOp::getShardingRule() { return {}; }
ShardingRule MulOp::getShardingRule() { return {}; }
ShardingRule DivOp::getShardingRule() { return {}; }
ShardingRule ModOp::getShardingRule() { return {}; }
ShardingRule PowOp::getShardingRule() { return {}; }
ShardingRule MaxOp::getShardingRule() { return {}; }
ShardingRule MinOp::getShardingRule() { return {}; }
ShardingRule AndOp::getShardingRule() { return {}; }
ShardingRule OrOp::getShardingRule() { return {}; }
ShardingRule XorOp::getShardingRule() { return {}; }
ShardingRule NotOp::getShardingRule() { return {}; }
ShardingRule IsNanOp::getShardingRule() { return {}; }
ShardingRule CompareOp::getShardingRule() { return {}; }
ShardingRule SelectOp::getShardingRule() { return {}; }
ShardingRule CastOp::getShardingRule() { return {}; }
ShardingRule GeluOp::getShardingRule() { return {}; }
ShardingRule GeluBackwardOp::getShardingRule() { return {}; }
ShardingRule SiluBackwardOp::getShardingRule() { return {}; }
ShardingRule DropoutOp::getShardingRule() { return {}; }
ShardingRule MatmulOp::getShardingRule() { return {}; }
ShardingRule ReduceOp::getShardingRule() { return {}; }
ShardingRule SoftmaxOp::getShardingRule() { return {}; }
ShardingRule SoftmaxBackwardOp::getShardingRule() { return {}; }
ShardingRule LayerNormOp::getShardingRule() { return {}; }
ShardingRule LayerNormBackwardOp::getShardingRule() { return {}; }
ShardingRule RmsNormOp::getShardingRule() { return {}; }
ShardingRule RmsNormBackwardOp::getShardingRule() { return {}; }
ShardingRule AttentionOp::getShardingRule() { return {}; }
ShardingRule AttentionBackwardOp::getShardingRule() { return {}; }
ShardingRule RotaryOp::getShardingRule() { return {}; }
ShardingRule EmbeddingOp::getShardingRule() { return {}; }
ShardingRule EmbeddingBackwardOp::getShardingRule() { return {}; }
ShardingRule GatherOp::getShardingRule() { return {}; }
ShardingRule GatherNdOp::getShardingRule() { return {}; }
ShardingRule IotaOp::getShardingRule() { return {}; }
ShardingRule ReshapeOp::getShardingRule() { return {}; }
ShardingRule TransposeOp::getShardingRule() { return {}; }
ShardingRule BroadcastOp::getShardingRule() { return {}; }
ShardingRule SliceOp::getShardingRule() { return {}; }
ShardingRule SliceBackwardOp::getShardingRule() { return {}; }
ShardingRule ConcatOp::getShardingRule() { return {}; }
ShardingRule CrossEntropyOp::getShardingRule() { return {}; }
ShardingRule CrossEntropyBackwardOp::getShardingRule() { return {}; }
