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

/// The opset that brought an operator, for those younger than opset 8.
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
      {"CumSum", 11},
      {"Einsum", 12},
      {"Erf", 9},
      {"GatherElements", 11},
      {"GatherND", 11},
      {"Gelu", 20},
      {"GroupNormalization", 18},
      {"HardSwish", 14},
      {"IsInf", 10},
      {"IsNaN", 9},
      {"Mish", 18},
      {"Mod", 10},
      {"OneHot", 9},
      {"RMSNormalization", 23},
      {"Range", 11},
      {"RotaryEmbedding", 23},
      {"Round", 11},
      {"ScatterElements", 11},
      {"ScatterND", 11},
      {"Sign", 9},
      {"Swish", 24},
      {"Trilu", 14},
      {"Where", 9},
  };
  return first.lookup(opType);
}

/// The opset from which on an operator has its axes as an operand instead of a
/// field; 0 for an operator without axes.
static int64_t axesOperandFrom(StringRef opType) {
  if (opType == "ReduceSum" || opType == "Squeeze" || opType == "Unsqueeze")
    return 13;
  return opType.starts_with("Reduce") ? 18 : 0;
}

/// A field that a node has before its operator has it, and since when it does;
/// null where there is none.
static std::pair<StringRef, int64_t> fieldOfLater(onnx::NodeOp node) {
  static constexpr struct {
    StringLiteral opType, field;
    int64_t from;
  } fields[] = {{"Reshape", "allowzero", 14},
                {"ScatterElements", "reduction", 16},
                {"ScatterND", "reduction", 16},
                {"Split", "num_outputs", 18}};
  for (const auto &[opType, field, from] : fields)
    if (node.getOpType() == opType && node.getOpset() < uint64_t(from) &&
        node.getFields().contains(field))
      return {field, from};
  return {};
}

LogicalResult autohet::verifyOpsets(func::FuncOp graph) {
  for (auto node : graph.getOps<onnx::NodeOp>()) {
    if (node.getDomain())
      continue;
    StringRef type = node.getOpType();
    int64_t opset = node.getOpset();
    std::string found;
    if (int64_t first = firstOpset(type); first > opset)
      found =
          ("there is " + type + " from opset " + Twine(first) + " on").str();
    else if (auto [field, from] = fieldOfLater(node); from)
      found =
          (type + " has " + field + " from opset " + Twine(from) + " on").str();
    else if (int64_t from = axesOperandFrom(type)) {
      if (opset < from && node.getNumOperands() > 1)
        found = (type + " has its axes as an operand from opset " +
                 Twine(from) + " on")
                    .str();
      else if (opset >= from && node.getFields().contains("axes"))
        found = (type + " has its axes as a field before opset " + Twine(from) +
                 " only")
                    .str();
    }
    if (!found.empty())
      return emitError(node.getLoc())
             << found << ", but the file says that it is of opset " << opset
             << "; exporters write such files when they are asked for an "
                "opset that they do not have: ask for another (PyTorch's has "
                "18 to 25)";
  }
  return success();
}
