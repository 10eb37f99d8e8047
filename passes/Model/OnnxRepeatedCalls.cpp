//===- OnnxRepeatedCalls.cpp - modules that are called again --------------===//
//
// Some models have one layer and call it as often as others have layers
// (ALBERT). Exporters show that only in names: TorchScript numbers the calls
// (`ffn`, `ffn_1`), torch.export repeats the module's path, and folds a
// transposed copy of each Linear's weight a call. What bears the name of one
// module, and holds the same bytes, is one parameter.
//
//===----------------------------------------------------------------------===//

#include "OnnxParameters.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace autohet;
using onnx::InitializerOp;
using onnx::NodeOp;

std::string autohet::nameOfFirstCall(StringRef parameter) {
  static const llvm::Regex pattern("^(.*)_[0-9]+(\\.[^.]*)$");
  SmallVector<StringRef> parts;
  if (!pattern.match(parameter, &parts))
    return parameter.str();
  return (parts[1] + parts[2]).str();
}

/// Freshly initialised ones may be equal without being one.
static FailureOr<bool> holdsOneNumber(InitializerOp constant) {
  auto bytes = readBytes(constant);
  if (!bytes)
    return failure();
  StringRef text = bytes->getBuffer();
  size_t width =
      cast<RankedTensorType>(constant.getType()).getElementTypeBitWidth() / 8;
  return text.size() <= width ||
         text.drop_front(width) == text.drop_back(width);
}

/// Whether `name` is a Linear's or a norm's of which each use is a call: in the
/// module of that name, as the same operand of the same operation.
static bool isUsedByCalls(InitializerOp constant, StringRef name) {
  NodeOp first;
  unsigned index = 0, calls = 0;
  for (OpOperand *use : usesOf(constant)) {
    auto node = dyn_cast<NodeOp>(use->getOwner());
    if (!node || !node.getScope())
      return false;
    if (!first)
      first = node, index = use->getOperandNumber();
    if (node.getOpType() != first.getOpType() ||
        use->getOperandNumber() != index)
      return false;
    StringRef scope = *node.getScope();
    if (llvm::none_of(ArrayRef{".weight", ".bias"}, [&](const char *what) {
          return nameOfFirstCall((scope + what).str()) == name;
        }))
      return false;
    ++calls;
  }
  return calls > 1;
}

LogicalResult
OnnxParameters::linkRepeatedCalls(llvm::StringMap<unsigned> &claims) {
  llvm::StringMap<InitializerOp> firstCalls;
  for (auto &[op, parameter] : parameters) {
    auto constant = cast<InitializerOp>(op);
    if (parameter.name == constant.getName())
      continue;
    std::string name = nameOfFirstCall(parameter.name);
    auto [entry, isFirst] = firstCalls.try_emplace(name, constant);
    if (isFirst)
      continue;
    auto copy = isCopy(entry->second, constant);
    auto isPlain = holdsOneNumber(constant);
    if (failed(copy) || failed(isPlain))
      return failure();
    if (!*copy || *isPlain)
      continue;
    Parameter &original = parameters[entry->second];
    --claims[parameter.name];
    --claims[original.name];
    ++claims[name];
    original.name = name;
    original.shared = true;
    parameter.name = constant.getName().str();
    parameter.original = entry->second;
    parameter.copyIsTransposed = **copy;
  }
  for (auto &[op, parameter] : parameters)
    if (!parameter.original &&
        isUsedByCalls(cast<InitializerOp>(op), parameter.name))
      parameter.shared = true;
  return success();
}
