//===- OnnxFields.cpp - attributes that operators have --------------------===//
//
// An attribute of another type than its operator's would be read as if it were
// not there, one that is missing as a default that nobody chose. Which operator
// has which, OnnxFields.inc says. Integers are bounded here, so that operators
// may add them to each other and to extents.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"
#include "autohet/Support/Extents.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace autohet;

namespace {

/// An attribute that an operator has in opsets `first` to `last` (0: none is).
struct Field {
  StringRef name, type;
  int64_t first, last;
  bool isRequired;

  bool isIn(int64_t opset) const {
    return opset >= first && (!last || opset <= last);
  }
};

using Fields = SmallVector<Field>;

} // namespace

static const llvm::StringMap<Fields> &fieldsOfOperators() {
  static const llvm::StringMap<Fields> table = [] {
    llvm::StringMap<Fields> built;
#define OPERATOR(op) built[op];
#define FIELD(op, name, type, first, last, isRequired)                         \
  built[op].push_back({name, #type, first, last, isRequired});
#include "OnnxFields.inc"
#undef FIELD
#undef OPERATOR
    return built;
  }();
  return table;
}

/// The type of an attribute as ONNX spells it; the reader's are MLIR's.
static StringRef typeOf(Attribute value) {
  return llvm::TypeSwitch<Attribute, StringRef>(value)
      .Case<IntegerAttr>([](auto) { return "INT"; })
      .Case<FloatAttr>([](auto) { return "FLOAT"; })
      .Case<DenseI64ArrayAttr>([](auto) { return "INTS"; })
      .Case<DenseF32ArrayAttr>([](auto) { return "FLOATS"; })
      .Case<ArrayAttr>([](auto) { return "STRINGS"; })
      .Case<ElementsAttr>([](auto) { return "TENSOR"; })
      .Case<StringAttr>([](StringAttr text) {
        // What the reader does not carry along: "<GRAPH>".
        StringRef inside = text.getValue();
        bool isPlace = inside.consume_front("<") && inside.consume_back(">");
        return isPlace ? inside : StringRef("STRING");
      })
      .Default([](auto) { return "another type"; });
}

/// An integer that no extent, axis or count is, nothing where there is none:
/// sums of others stay far from what 64 bits hold. Ends and diagonals
/// (EyeLike's `k`) may lie anywhere outside, and some numbers are only
/// compared.
static std::optional<int64_t> findFarInteger(NamedAttribute attribute) {
  if (llvm::is_contained({"starts", "ends", "k", "seed", "ignore_index"},
                         attribute.getName().getValue()))
    return std::nullopt;
  SmallVector<int64_t> numbers;
  if (auto one = dyn_cast<IntegerAttr>(attribute.getValue()))
    numbers.push_back(one.getInt());
  else if (auto several = dyn_cast<DenseI64ArrayAttr>(attribute.getValue()))
    llvm::append_range(numbers, several.asArrayRef());
  for (int64_t number : numbers)
    if (number < -kMaxElements || number > kMaxElements)
      return number;
  return std::nullopt;
}

/// What a user can compare a name with that is none.
static std::string namesOf(ArrayRef<Field> fields, int64_t opset) {
  SmallVector<StringRef> names;
  for (const Field &field : fields)
    if (field.isIn(opset))
      names.push_back(field.name);
  return names.empty() ? "it has none" : "it has " + llvm::join(names, ", ");
}

std::pair<StringRef, std::string>
autohet::fieldOfOtherOpset(onnx::NodeOp node) {
  auto fields = fieldsOfOperators().find(qualifiedName(node));
  if (fields == fieldsOfOperators().end())
    return {};
  int64_t opset = node.getOpset();
  for (NamedAttribute attribute : node.getFields()) {
    const Field *other = nullptr;
    bool isHere = false;
    for (const Field &field : fields->second) {
      if (field.name != attribute.getName())
        continue;
      isHere |= field.isIn(opset);
      other = &field;
    }
    if (other && !isHere)
      return {other->name,
              opset < other->first
                  ? "from opset " + std::to_string(other->first) + " on"
                  : "before opset " + std::to_string(other->last + 1) +
                        " only"};
  }
  return {};
}

namespace {

class FieldVerifier {
public:
  LogicalResult verify(onnx::NodeOp node);
  /// Of names that are no attributes': a file often has one in many nodes.
  void warnOfUnknown();

private:
  std::optional<InFlightDiagnostic> unknown; // the first
  unsigned unknownCount = 0;
};

} // namespace

LogicalResult FieldVerifier::verify(onnx::NodeOp node) {
  auto known = fieldsOfOperators().find(qualifiedName(node));
  if (known == fieldsOfOperators().end())
    return success();
  int64_t opset = node.getOpset();
  for (NamedAttribute attribute : node.getFields()) {
    SmallVector<StringRef> wanted;
    bool isKnown = false;
    for (const Field &field : known->second) {
      isKnown |= field.name == attribute.getName();
      if (field.name == attribute.getName() && field.isIn(opset))
        wanted.push_back(field.type);
    }
    if (!isKnown && !unknownCount++)
      unknown.emplace(emitWarning(node.getLoc()))
          << describeNode(node) << ": there is no attribute '"
          << attribute.getName().getValue() << "' ("
          << namesOf(known->second, opset) << "): it changes nothing";
    StringRef found = typeOf(attribute.getValue());
    if (!wanted.empty() && !llvm::is_contained(wanted, found))
      return emitError(node.getLoc())
             << describeNode(node) << ": attribute '"
             << attribute.getName().getValue() << "' is " << found
             << ", wanted " << llvm::join(wanted, " or ");
    if (std::optional<int64_t> far =
            isKnown ? findFarInteger(attribute) : std::nullopt)
      return emitError(node.getLoc())
             << describeNode(node) << ": attribute '"
             << attribute.getName().getValue() << "' has " << *far
             << ", wanted at most 2^40";
  }
  for (const Field &field : known->second)
    if (field.isRequired && field.isIn(opset) &&
        !node.getFields().contains(field.name))
      return emitError(node.getLoc())
             << describeNode(node) << ": attribute '" << field.name << "' ("
             << field.type << ") is missing, which has no default";
  return success();
}

void FieldVerifier::warnOfUnknown() {
  if (unknownCount > 1)
    *unknown << " (and " << unknownCount - 1 << " others likewise)";
  unknown.reset(); // says it
}

LogicalResult autohet::verifyFields(func::FuncOp graph) {
  // A file that has one thing wrong often has it in many nodes: some will do.
  static constexpr unsigned kMostErrors = 8;
  unsigned errors = 0;
  FieldVerifier verifier;
  graph.walk([&](onnx::NodeOp node) {
    errors += failed(verifier.verify(node));
    return errors < kMostErrors ? WalkResult::advance()
                                : WalkResult::interrupt();
  });
  verifier.warnOfUnknown();
  return failure(errors > 0);
}
