//===- OnnxVersions.cpp - nodes that contradict their file's opset ---------===//
//
// An exporter that is asked for an operator set it cannot write may leave nodes
// of another one under the label: PyTorch's asked for 26 writes Gelu, of 20, as
// 18. What an operator means depends on the version, so such a file has no
// meaning, and reading on would be a guess.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace autohet;

/// The opset that brought an operator, for those younger than opset 6.
/// LayerNormalization (17) is not among them: onnxruntime's optimiser writes it
/// into files of any opset, with one meaning.
static int64_t firstOpset(StringRef opType) {
  static const llvm::StringMap<int64_t> first = {
      {"Attention", 23},
      {"BitShift", 11},
      {"BitwiseAnd", 18},
      {"BitwiseNot", 18},
      {"BitwiseOr", 18},
      {"BitwiseXor", 18},
      {"CastLike", 15},
      {"CausalConvWithState", 27},
      {"Celu", 12},
      {"CenterCropPad", 18},
      {"ConstantOfShape", 9},
      {"Cos", 7},
      {"CumSum", 11},
      {"DequantizeLinear", 10},
      {"Einsum", 12},
      {"Erf", 9},
      {"Expand", 8},
      {"EyeLike", 9},
      {"GatherElements", 11},
      {"GatherND", 11},
      {"Gelu", 20},
      {"GreaterOrEqual", 12},
      {"GroupNormalization", 18},
      {"HardSwish", 14},
      {"IsInf", 10},
      {"IsNaN", 9},
      {"LessOrEqual", 12},
      {"LinearAttention", 27},
      {"MeanVarianceNormalization", 9},
      {"Mish", 18},
      {"Mod", 10},
      {"NegativeLogLikelihoodLoss", 12},
      {"OneHot", 9},
      {"RMSNormalization", 23},
      {"Range", 11},
      {"RotaryEmbedding", 23},
      {"Round", 11},
      {"Scatter", 9},
      {"ScatterElements", 11},
      {"ScatterND", 11},
      {"Shrink", 9},
      {"Sign", 9},
      {"Sin", 7},
      {"SoftmaxCrossEntropyLoss", 12},
      {"SwiGLU", 28},
      {"Swish", 24},
      {"Tan", 7},
      {"TensorScatter", 24},
      {"ThresholdedRelu", 10},
      {"Trilu", 14},
      {"Where", 9},
  };
  return first.lookup(opType);
}

namespace {
/// What is a field of a node before opset `from`, and an operand from there on.
struct Moved {
  StringRef field;
  unsigned operand;
  int64_t from;
};
} // namespace

static std::optional<Moved> movedToOperand(StringRef opType, int64_t opset) {
  if (opType == "ReduceSum" || opType == "Squeeze" || opType == "Unsqueeze")
    return Moved{"axes", 1, 13};
  if (opType.starts_with("Reduce"))
    return Moved{"axes", 1, 18};
  // Opset 1 takes the parts of a Split either way.
  if (opType == "Split" && opset > 1)
    return Moved{"split", 1, 13};
  static constexpr struct {
    StringLiteral opType, field;
    unsigned operand;
    int64_t from;
  } moved[] = {{"Clip", "min", 1, 11},     {"Dropout", "ratio", 1, 12},
               {"Pad", "pads", 1, 11},     {"Reshape", "shape", 1, 5},
               {"Slice", "starts", 1, 10}, {"TopK", "k", 1, 10}};

  for (const auto &entry : moved)
    if (entry.opType == opType)
      return Moved{entry.field, entry.operand, entry.from};
  return std::nullopt;
}

LogicalResult autohet::verifyOpsets(func::FuncOp graph) {
  WalkResult result = graph.walk([](onnx::NodeOp node) {
    if (node.getDomain())
      return WalkResult::advance();
    StringRef type = node.getOpType();
    int64_t opset = node.getOpset();
    std::string found;
    if (int64_t first = firstOpset(type); first > opset)
      found =
          ("there is " + type + " from opset " + Twine(first) + " on").str();
    else if (auto moved = movedToOperand(type, opset)) {
      if (opset < moved->from && node.getNumOperands() > moved->operand)
        found = (type + " has its " + moved->field +
                 " as an operand from opset " + Twine(moved->from) + " on")
                    .str();
      else if (opset >= moved->from && node.getFields().contains(moved->field))
        found = (type + " has its " + moved->field +
                 " as a field before opset " + Twine(moved->from) + " only")
                    .str();
    }
    if (auto [field, when] = fieldOfOtherOpset(node);
        found.empty() && !field.empty())
      found = (type + " has " + field + " " + when).str();
    if (found.empty())
      return WalkResult::advance();
    emitError(node.getLoc())
        << found << ", but the file says that it is of opset " << opset
        << "; exporters write such files when they are asked for an "
           "opset that they do not have: ask for another (PyTorch's has "
           "18 to 25)";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
