//===- OnnxUnsupported.cpp - nodes that nothing converts ------------------===//
//
// All of them at once, and what a user can do about those that are not the
// model's but of what somebody made of it: quantised, packed, differentiated.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace autohet;

std::string autohet::qualifiedName(onnx::NodeOp node) {
  if (auto domain = node.getDomain())
    return (*domain + "::" + node.getOpType()).str();
  return node.getOpType().str();
}

/// What helps against operators of one kind, or nothing.
static StringRef adviceOn(StringRef name) {
  static const std::pair<llvm::Regex, StringRef> advice[] = {
      {llvm::Regex("Quant|Integer|^QLinear|::Q[A-Z]|NBits|Bnb4"),
       "quantised models are not supported: give the file from before "
       "quantisation"},
      {llvm::Regex("Grad|^ai.onnx.preview.training|YieldOp|InPlaceAccumulator"),
       "gradients are built here: give the file of the forward pass"},
      {llvm::Regex("Search$|::Sampling$"),
       "loops that generate text are not supported: give the file of the "
       "decoder that they call"},
      {llvm::Regex("Padding$|::Packed|::DecoderMasked|::Paged"),
       "it is optimised for serving: give the file from before that"},
      {llvm::Regex("^(Sequence|ConcatFromSequence|SplitToSequence|Optional)"),
       "sequences and optional values are not supported: export the model with "
       "tensors in their place"},
      {llvm::Regex("^(LSTM|GRU|RNN|Scan)$"),
       "recurrent layers are not supported"},
      {llvm::Regex("^Random|^Bernoulli$|^Multinomial$"),
       "random numbers are not supported but those of Dropout"},
  };
  for (const auto &[pattern, text] : advice)
    if (pattern.match(name))
      return text;
  return {};
}

LogicalResult autohet::findUnsupported(func::FuncOp graph,
                                       const OnnxHandlers &handlers) {
  // A user with three unknown ops wants to know of three.
  llvm::MapVector<StringAttr, unsigned> counts;
  llvm::SetVector<StringRef> advice;
  Location first = graph.getLoc();
  for (auto node : graph.getOps<onnx::NodeOp>()) {
    std::string name = qualifiedName(node);
    if (handlers.count(name))
      continue;
    if (counts.empty())
      first = node.getLoc();
    ++counts[StringAttr::get(graph.getContext(), name)];
    if (StringRef text = adviceOn(name); !text.empty())
      advice.insert(text);
  }
  if (counts.empty())
    return success();
  InFlightDiagnostic diagnostic = emitError(first)
                                  << "the model has unsupported ops: ";
  llvm::interleaveComma(counts, diagnostic, [&](auto &entry) {
    diagnostic << entry.first.getValue() << " (" << entry.second << ")";
  });
  for (StringRef text : advice)
    diagnostic << "; " << text;
  diagnostic << "; docs/onnx-support.md lists those that are";
  return diagnostic;
}
