//===- OnnxParameters.cpp - which constants are parameters ----------------===//
//
// PyTorch's exporters keep the names of parameters, with one exception: the
// weight of a Linear is folded to its transpose and named after a counter
// (`val_12`, `onnx::MatMul_34`). The module it belongs to is still known, as
// the node's scope, and gives it back its name and shape; and where a bias is
// added, its name says the weight's (`attn.in_proj_bias`, which no Linear has).
//
//===----------------------------------------------------------------------===//

#include "OnnxParameters.h"
#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include <cstring>

using namespace mlir;
using namespace autohet;
using onnx::InitializerOp;
using onnx::NodeOp;

/// A float constant of two or more elements, or one that the file lists as a
/// parameter; all others are values.
static bool isParameter(InitializerOp constant) {
  return constant.getFile().has_value();
}

bool autohet::isCounterName(StringRef name) {
  // The last: of transposes that were folded, after PyTorch's operator.
  static const llvm::Regex pattern("^(val_[0-9]+|onnx::[A-Za-z]+_[0-9]+|"
                                   "(permute|transpose|t)(_[0-9]+)?)$");
  return pattern.match(name);
}

SmallVector<OpOperand *> autohet::usesOf(Value constant) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : constant.getUses()) {
    auto node = dyn_cast<NodeOp>(use.getOwner());
    if (node && node.getOpType() == "Identity" && node->getNumResults() == 1)
      llvm::append_range(uses, usesOf(node->getResult(0)));
    else
      uses.push_back(&use);
  }
  return uses;
}

namespace {
/// How a constant is used, where all its uses are alike.
struct WeightUse {
  bool isRightOperand = false;
  bool isTransposed = false; // by the exporter: x · W with W = weight^T
  std::string name;          // PyTorch's, where something tells
};
} // namespace

/// The name of the weight of a product to which `bias` is added: that of the
/// bias, but for its end.
static std::string nameBesideBias(Value bias) {
  auto constant = bias.getDefiningOp<InitializerOp>();
  StringRef stem = constant ? constant.getName() : StringRef();
  return stem.consume_back("bias") ? (stem + "weight").str() : std::string();
}

/// Whether `scope` is `path` without some of its modules: those whose own
/// `forward` was not called, as OPT's decoder's owner.
static bool skipsModules(StringRef scope, StringRef path) {
  SmallVector<StringRef> called, all;
  scope.split(called, '.');
  path.split(all, '.');
  if (called.back() != all.back())
    return false;
  const auto *next = called.begin();
  for (StringRef module : all)
    if (next != called.end() && *next == module)
      ++next;
  return next == called.end();
}

/// The name of the weight of a product.
static std::string weightName(NodeOp product) {
  std::string name;
  if (product.getOpType() == "Gemm" && product.getNumOperands() > 2)
    name = nameBesideBias(product.getOperand(2));
  else if (product->hasOneUse())
    if (auto add = dyn_cast<NodeOp>(*product->user_begin());
        add && add.getOpType() == "Add")
      for (Value operand : add->getOperands())
        if (name.empty())
          name = nameBesideBias(operand);
  StringRef module = product.getScope().value_or("");
  StringRef path = StringRef(name).rsplit('.').first;
  if (module.empty() || (!name.empty() && (path.starts_with(module) ||
                                           skipsModules(module, path))))
    return name;
  return (module + ".weight").str();
}

static WeightUse weightUse(InitializerOp constant) {
  WeightUse result;
  if (cast<RankedTensorType>(constant.getType()).getRank() != 2)
    return result;
  for (OpOperand *use : usesOf(constant)) {
    auto node = dyn_cast<NodeOp>(use->getOwner());
    if (!node || use->getOperandNumber() != 1)
      return {};
    bool isGemm = node.getOpType() == "Gemm";
    if (!isGemm && node.getOpType() != "MatMul")
      return {};
    auto transB = node.getFields().getAs<IntegerAttr>("transB");
    bool transposed = !isGemm || !transB || transB.getInt() == 0;
    if (result.isRightOperand && transposed != result.isTransposed)
      return {};
    if (!result.isRightOperand)
      result.name = weightName(node);
    result.isRightOperand = true;
    result.isTransposed = transposed;
  }
  return result;
}

bool autohet::isRightFactor(InitializerOp constant) {
  return weightUse(constant).isRightOperand;
}

bool autohet::isLookedUp(InitializerOp constant) {
  return llvm::any_of(usesOf(constant), [](OpOperand *use) {
    auto node = dyn_cast<NodeOp>(use->getOwner());
    return node && node.getOpType() == "Gather" && use->getOperandNumber() == 0;
  });
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

std::unique_ptr<llvm::MemoryBuffer> autohet::readBytes(InitializerOp constant) {
  auto buffer = llvm::MemoryBuffer::getFileSlice(
      *constant.getFile(), *constant.getBytes(), *constant.getOffset());
  if (!buffer) {
    emitError(constant.getLoc()) << "cannot read '" << *constant.getFile()
                                 << "': " << buffer.getError().message();
    return nullptr;
  }
  return std::move(*buffer);
}

static bool equalTransposed(StringRef a, StringRef b, int64_t rows,
                            int64_t columns, unsigned width) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      if (a.substr((r * columns + c) * width, width) !=
          b.substr((c * rows + r) * width, width))
        return false;
  return true;
}

FailureOr<std::optional<bool>> autohet::isCopy(InitializerOp a,
                                               InitializerOp b) {
  auto typeA = cast<RankedTensorType>(a.getType());
  auto typeB = cast<RankedTensorType>(b.getType());
  if (typeA.getElementType() != typeB.getElementType() ||
      typeA.getNumElements() != typeB.getNumElements())
    return std::optional<bool>();
  auto bytesA = readBytes(a), bytesB = readBytes(b);
  if (!bytesA || !bytesB)
    return failure();
  if (typeA == typeB && bytesA->getBuffer() == bytesB->getBuffer())
    return std::optional<bool>(false);
  if (typeA.getRank() == 2 && typeB.getRank() == 2 &&
      typeA.getDimSize(0) == typeB.getDimSize(1) &&
      equalTransposed(bytesA->getBuffer(), bytesB->getBuffer(),
                      typeA.getDimSize(0), typeA.getDimSize(1),
                      typeA.getElementTypeBitWidth() / 8))
    return std::optional<bool>(true);
  return std::optional<bool>();
}

/// `blocks.0.` of `blocks.0.scale`; empty where there is no module.
static StringRef moduleOf(StringRef name) {
  return name.take_front(name.rfind('.') + 1);
}

// A module's buffers are called as its parameters are, so nothing tells whether
// a single number is one.
void OnnxParameters::warnOfNumbers(func::FuncOp graph) const {
  llvm::StringSet<> modules;
  for (auto &[op, parameter] : parameters)
    for (StringRef path = moduleOf(parameter.name); !path.empty();
         path = moduleOf(path.drop_back()))
      modules.insert(path);
  for (auto constant : graph.getOps<InitializerOp>()) {
    auto type = cast<RankedTensorType>(constant.getType());
    StringRef module = moduleOf(constant.getName());
    if (isParameter(constant) || constant->use_empty() ||
        !type.getElementType().isF32() || type.getNumElements() != 1 ||
        module.empty() || !modules.contains(module))
      continue;
    emitWarning(constant.getLoc())
        << "constant '" << constant.getName()
        << "' is one number, and so taken as a value that is not trained. If "
           "it is a parameter, export the model with autohet.export, which "
           "lists them";
  }
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

FailureOr<OnnxParameters> OnnxParameters::analyze(func::FuncOp graph,
                                                  ArrayRef<std::string> ties,
                                                  ArrayRef<std::string> shared,
                                                  bool inference,
                                                  int64_t batch) {
  OnnxParameters result;
  result.inference = inference;
  if (auto names = graph->getAttrOfType<ArrayAttr>(onnx::kParametersAttr)) {
    result.listed.emplace();
    for (auto name : names.getAsRange<StringAttr>())
      result.listed->insert(name.getValue());
  }
  llvm::StringMap<unsigned> claims;
  for (auto constant : graph.getOps<InitializerOp>()) {
    ++claims[constant.getName()];
    if (!isParameter(constant))
      continue;
    Type element = cast<RankedTensorType>(constant.getType()).getElementType();
    if (!element.isF32() && !constant->use_empty() && !inference)
      return emitError(constant.getLoc())
             << "constant '" << constant.getName() << "' holds " << element
             << " weights; only float32 models are supported in training";
    Parameter &parameter = result.parameters[constant];
    parameter.name = constant.getName().str();
    WeightUse use = weightUse(constant);
    if (!use.isRightOperand || use.name.empty() ||
        !isCounterName(constant.getName()))
      continue;
    parameter.name = use.name;
    parameter.transposed = use.isTransposed;
    ++claims[parameter.name];
  }
  if (!inference && failed(result.linkRepeatedCalls(claims)))
    return failure();
  if (failed(result.findFills()) ||
      (batch > 1 && failed(result.findRepeated(batch))))
    return failure();
  // A derived name that something else has too is no name.
  for (auto &[op, parameter] : result.parameters) {
    StringRef own = cast<InitializerOp>(op).getName();
    if (parameter.name == own || claims[parameter.name] == 1)
      continue;
    parameter.name = own.str();
    parameter.transposed = false;
  }

  // autohet.export lists tied names, if none; no constant of its files is
  // several parameters.
  if (graph->hasAttr(onnx::kAliasesAttr))
    for (auto &[op, parameter] : result.parameters)
      if (usesOf(cast<InitializerOp>(op)).size() > 1)
        parameter.shared = true;
  for (const std::string &name : shared) {
    InitializerOp constant = result.find(name);
    if (!constant)
      return emitError(graph.getLoc())
             << "--shared " << name << ": the model has no such parameter";
    result.parameters[constant].shared = true;
  }
  for (const std::string &pair : ties) {
    // Names may contain '=' no more than PyTorch's do: not at all.
    auto [name, other] = StringRef(pair).split('=');
    if (other.empty())
      return emitError(graph.getLoc())
             << "--tie " << pair << ": wanted NAME=OTHER";
    if (failed(result.tie(graph, name, other)))
      return failure();
  }
  // Where nothing is trained, or the file lists what is, copies do no harm.
  if (!inference && !result.listed) {
    result.mentionEqualConstants();
    result.warnOfJoined();
    result.warnOfNumbers(graph);
  }
  if (failed(result.nameAliases(graph)))
    return failure();
  return result;
}

InitializerOp OnnxParameters::find(StringRef name) {
  InitializerOp derived;
  for (auto &[op, parameter] : parameters) {
    if (cast<InitializerOp>(op).getName() == name)
      return cast<InitializerOp>(op);
    if (parameter.name == name)
      derived = cast<InitializerOp>(op);
  }
  return derived;
}

LogicalResult OnnxParameters::tie(func::FuncOp graph, StringRef name,
                                  StringRef other) {
  InitializerOp constants[2];
  StringRef names[2] = {name, other};
  for (auto [constant, wanted] : llvm::zip_equal(constants, names)) {
    constant = find(wanted);
    if (!constant)
      return emitError(graph.getLoc())
             << "--tie " << name << "=" << other
             << ": the model has no parameter '" << wanted << "'";
  }
  auto [original, copy] = constants;
  // A copy of a copy is one of the first.
  original = originalOf(original);
  if (original == copy)
    return emitError(graph.getLoc()) << "--tie " << name << "=" << other
                                     << ": they are one parameter already";
  auto transposed = isCopy(original, copy);
  if (failed(transposed))
    return failure();
  if (!*transposed)
    return emitError(copy.getLoc())
           << "--tie " << name << "=" << other << ": the constants differ ("
           << original.getType() << " and " << copy.getType()
           << "), so they are not one parameter";
  Parameter &parameter = parameters[copy];
  parameter.original = original;
  parameter.copyIsTransposed = **transposed;
  parameters[original].shared = true;
  return success();
}

/// Only tables and heads: elsewhere, equal constants are freshly initialised.
void OnnxParameters::mentionEqualConstants() {
  SmallVector<InitializerOp> tables, heads;
  for (auto &[op, parameter] : parameters) {
    auto constant = cast<InitializerOp>(op);
    if (parameter.original)
      continue;
    if (isRightFactor(constant))
      heads.push_back(constant);
    else if (isLookedUp(constant))
      tables.push_back(constant);
  }
  for (InitializerOp table : tables)
    for (InitializerOp head : heads) {
      if (parameters[table].shared)
        continue;
      auto copy = isCopy(table, head);
      if (succeeded(copy) && *copy)
        emitRemark(head.getLoc())
            << "constants '" << table.getName() << "' and '" << head.getName()
            << "' are equal but not linked, and are trained apart; if the "
               "model "
               "ties them, pass --tie "
            << table.getName() << "=" << head.getName();
    }
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// The shape of a constant without its repetitions.
static SmallVector<int64_t>
shapeOnce(RankedTensorType type, const OnnxParameters::Parameter &parameter) {
  SmallVector<int64_t> shape(type.getShape());
  std::fill_n(shape.begin(), parameter.repeatedDims, 1);
  return shape;
}

Value OnnxParameters::use(InitializerOp constant, OpBuilder &builder,
                          Location loc) {
  Parameter &asked = parameters[constant];
  InitializerOp original = asked.original ? asked.original : constant;
  Parameter &parameter = parameters[original];
  auto stored = cast<RankedTensorType>(original.getType());
  if (parameter.fill)
    return het::createSplat(builder, loc, stored, *parameter.fill);
  SmallVector<int64_t> shape = shapeOnce(stored, parameter);
  if (parameter.transposed)
    std::reverse(shape.begin(), shape.end());
  Value value = het::ParameterOp::create(
      builder, loc, stored.clone(shape), parameter.name,
      /*trained=*/!listed || listed->contains(parameter.name));
  if (parameter.repeatedDims)
    return builder.createOrFold<het::BroadcastOp>(loc, value,
                                                  stored.getShape());
  // From PyTorch's layout to the original's in the file, to this constant's.
  if (parameter.transposed != asked.copyIsTransposed)
    value = builder.createOrFold<het::TransposeOp>(loc, value,
                                                   ArrayRef<int64_t>{1, 0});
  return value;
}

Value OnnxParameters::elements(InitializerOp constant, OpBuilder &builder) {
  // A shape has few dims; a table that is looked up by position is no shape.
  constexpr int64_t kMostDims = 16;
  auto type = cast<RankedTensorType>(constant.getType());
  if ((type.getRank() <= 1 || inference) && type.getNumElements() <= kMostDims)
    if (auto bytes = readBytes(constant)) {
      StringRef text = bytes->getBuffer();
      return het::ConstantOp::create(
          builder, constant.getLoc(),
          DenseElementsAttr::getFromRawBuffer(
              type, ArrayRef<char>(text.data(), text.size())));
    }
  return use(constant, builder, constant.getLoc());
}

void OnnxParameters::createSources(func::FuncOp function, OpBuilder &builder) {
  llvm::StringSet<> used;
  function.walk([&](het::ParameterOp op) { used.insert(op.getName()); });
  for (auto &[op, parameter] : parameters) {
    if (parameter.original || !used.contains(parameter.name))
      continue;
    auto constant = cast<InitializerOp>(op);
    auto type = cast<RankedTensorType>(constant.getType());
    SmallVector<StringRef> aliases(parameter.aliases.begin(),
                                   parameter.aliases.end());
    het::WeightSourceOp::create(
        builder, constant.getLoc(), parameter.name, *constant.getFile(),
        *constant.getOffset(), parameter.transposed, parameter.shared,
        /*untrained=*/false, /*reason=*/StringAttr(),
        aliases.empty() ? ArrayAttr() : builder.getStrArrayAttr(aliases),
        type.clone(shapeOnce(type, parameter)));
  }
}
