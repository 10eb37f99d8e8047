//===- ClassifyParameters.cpp - het-classify-parameters ---------------------===//
//
// A file does not say which of its constants were parameters: masks, rotary
// tables and weights look alike. What a constant is used for tells.
//
// Exporters also merge constants that are equal, as many are in a model that
// was just initialised. Training such a file would tie what was not tied, so a
// second use needs a reason.
//
//===----------------------------------------------------------------------===//

#include "OnnxParameters.h"
#include "Rotary.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Parameters.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Regex.h"

namespace autohet {
#define GEN_PASS_DEF_CLASSIFYPARAMETERS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet::het;

namespace {

using Reasons = llvm::DenseMap<Operation *, StringRef>;

constexpr llvm::StringLiteral kMask = "added to attention scores";
constexpr llvm::StringLiteral kRotates = "rotates queries and keys";

struct ClassifyParameters
    : autohet::impl::ClassifyParametersBase<ClassifyParameters> {
  using ClassifyParametersBase::ClassifyParametersBase;

  void runOnOperation() override;

private:
  LogicalResult findByName(Reasons &reasons);
  void warnOfComputed();
  LogicalResult classify(WeightSourceOp source, ArrayRef<ParameterOp> uses,
                         const Reasons &reasons);
};

//===----------------------------------------------------------------------===//
// Roles that are not trained
//===----------------------------------------------------------------------===//

/// The parameters that a value is computed from, if from nothing that is
/// learned otherwise: neither embeddings nor products of activations.
/// Positions, padding masks and tables are such values; hidden states are not.
class TableSlice {
public:
  /// `withLookups`: rows that are looked up by position are of a table too.
  explicit TableSlice(Value value, bool withLookups = false)
      : withLookups(withLookups) {
    isTable = visit(value);
  }

  void mark(Reasons &reasons, StringRef reason) const {
    if (isTable)
      for (Operation *parameter : parameters)
        reasons.try_emplace(parameter, reason);
  }

  bool isTable;

private:
  bool visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return true; // an input: positions, a padding mask
    if (!visited.insert(op).second)
      return true;
    if (isa<ParameterOp>(op)) {
      parameters.push_back(op);
      return true;
    }
    // Positions times inverse frequencies are a product too, but never of two
    // tensors with a batch of heads.
    if (isa<AttentionOp, SoftmaxOp, LayerNormOp, RmsNormOp>(op) ||
        (isa<EmbeddingOp>(op) && !withLookups))
      return false;
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return visit(operand); });
  }

  bool withLookups;
  llvm::SmallPtrSet<Operation *, 8> visited;
  SmallVector<Operation *> parameters;
};

/// Angles are no part of what a model learns, however their table is read.
void markAngles(Value angles, Reasons &reasons) {
  TableSlice(angles, /*withLookups=*/true).mark(reasons, kRotates);
}

/// What lies between scores and their softmax: scales, masks, and the tanh of a
/// soft cap.
bool keepsScores(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, TanhOp, SelectOp, CastOp, ReshapeOp>(
      op);
}

/// Visits what is added to, or selected instead of, attention scores, which are
/// a product of two activations.
void markMasks(Value scores, Reasons &reasons) {
  Operation *op = scores.getDefiningOp();
  if (!op || !keepsScores(op))
    return;
  bool hasScores = false;
  SmallVector<TableSlice, 3> slices;
  for (Value operand : op->getOperands()) {
    slices.emplace_back(operand);
    hasScores |= !slices.back().isTable;
  }
  if (!hasScores)
    return;
  for (auto [operand, slice] : llvm::zip_equal(op->getOperands(), slices)) {
    slice.mark(reasons, kMask);
    if (!slice.isTable)
      markMasks(operand, reasons);
  }
}

/// Whether a softmax is one over attention scores: somewhere above it, through
/// elementwise ops, is a product without a weight.
bool isOfScores(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto product = dyn_cast<MatmulOp>(op))
    return !TableSlice(product.getLhs()).isTable &&
           !TableSlice(product.getRhs()).isTable;
  return keepsScores(op) && llvm::any_of(op->getOperands(), isOfScores);
}

/// x * cos + concat(-x2, x1) * sin, where x1 and x2 are the halves of x.
void markRotary(AddOp sum, Reasons &reasons) {
  for (auto [left, right] : {std::pair(sum.getLhs(), sum.getRhs()),
                             std::pair(sum.getRhs(), sum.getLhs())}) {
    auto plain = left.getDefiningOp<MulOp>(),
         turned = right.getDefiningOp<MulOp>();
    if (!plain || !turned)
      continue;
    for (unsigned i : {0, 1}) {
      auto halves = turned->getOperand(i).getDefiningOp<ConcatOp>();
      if (!halves || halves.getNumOperands() != 2)
        continue;
      auto negated = halves.getOperand(0).getDefiningOp<NegOp>();
      auto kept = halves.getOperand(1).getDefiningOp<SliceOp>();
      if (!negated || !kept || !negated.getOperand().getDefiningOp<SliceOp>())
        continue;
      for (unsigned j : {0, 1}) {
        if (plain->getOperand(j) != kept.getOperand())
          continue;
        markAngles(turned->getOperand(1 - i), reasons);
        markAngles(plain->getOperand(1 - j), reasons);
      }
    }
  }
}

void markRoles(func::FuncOp function, Reasons &reasons) {
  // Whether a rotary pattern is one is seen in its tables, later; that these
  // are tables, now.
  autohet::visitRotaryTables(function,
                             [&](Value table) { markAngles(table, reasons); });
  function.walk([&](Operation *op) {
    if (isa<SinOp, CosOp>(op))
      TableSlice(op->getOperand(0)).mark(reasons, "feeds sine or cosine");
    if (auto sum = dyn_cast<AddOp>(op))
      markRotary(sum, reasons);
    if (auto rotary = dyn_cast<RotaryOp>(op)) {
      markAngles(rotary.getCos(), reasons);
      markAngles(rotary.getSin(), reasons);
    }
    if (auto attention = dyn_cast<AttentionOp>(op))
      if (attention.getMask())
        TableSlice(attention.getMask()).mark(reasons, kMask);
    if (auto softmax = dyn_cast<SoftmaxOp>(op))
      if (isOfScores(softmax.getOperand()))
        markMasks(softmax.getOperand(), reasons);
  });
}

//===----------------------------------------------------------------------===//
// Uses of those that are
//===----------------------------------------------------------------------===//

/// What a parameter is to the op that uses it, looking through views.
StringRef useOf(ParameterOp parameter) {
  Value value = parameter;
  unsigned operand = 0;
  Operation *user = nullptr;
  while (true) {
    if (value.use_empty())
      return "not used";
    OpOperand &use = *value.use_begin();
    user = use.getOwner();
    operand = use.getOperandNumber();
    if (!isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, CastOp>(user))
      break;
    value = user->getResult(0);
  }
  if (isa<EmbeddingOp>(user))
    return "embedding table";
  if (isa<MatmulOp>(user))
    return "factor of a matrix product";
  if (isa<LayerNormOp, RmsNormOp>(user))
    return operand == 1 ? "scale of a norm" : "bias of a norm";
  if (isa<MulOp>(user))
    return "factor";
  if (isa<AddOp>(user))
    return "addend";
  return "weight";
}

/// Whether two uses are `w / |w|`, as weight normalisation writes: nothing is
/// divided by the norm of something else that happens to be equal.
bool isDividedByItsNorm(ArrayRef<ParameterOp> uses) {
  if (uses.size() != 2)
    return false;
  for (unsigned first : {0, 1}) {
    ParameterOp normed = uses[first], divided = uses[1 - first];
    Value value = normed;
    while (!value.use_empty()) {
      Operation *user = *value.user_begin();
      if (auto division = dyn_cast<DivOp>(user);
          division && value.hasOneUse() && division.getRhs() == value &&
          division.getLhs() == divided.getResult())
        return true;
      bool isOfItAlone =
          llvm::all_of(value.getUsers(),
                       [&](Operation *other) { return other == user; }) &&
          llvm::all_of(user->getOperands(),
                       [&](Value operand) { return operand == value; });
      if (!isOfItAlone ||
          !isa<MulOp, AbsOp, ReduceOp, SqrtOp, BroadcastOp, ReshapeOp>(user))
        break;
      value = user->getResult(0);
    }
  }
  return false;
}

/// A box of a parameter.
struct Box {
  SmallVector<int64_t> offsets, sizes;

  bool overlaps(const Box &other) const {
    for (auto [from, size, otherFrom, otherSize] :
         llvm::zip_equal(offsets, sizes, other.offsets, other.sizes))
      if (from + size <= otherFrom || otherFrom + otherSize <= from)
        return false;
    return true;
  }
};

/// The boxes that a use reads: those of its slices, if it is read by slices
/// only.
SmallVector<Box> boxesOf(ParameterOp use) {
  ArrayRef<int64_t> shape = use.getType().getShape();
  SmallVector<int64_t> origin(shape.size(), 0);
  if (auto offsets = use.getOffsets())
    origin.assign(offsets->begin(), offsets->end());
  SmallVector<Box> boxes;
  for (Operation *user : use->getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || llvm::any_of(slice.getStrides(),
                               [](int64_t stride) { return stride != 1; }))
      return {{origin, llvm::to_vector(shape)}};
    Box &box =
        boxes.emplace_back(Box{origin, llvm::to_vector(slice.getSizes())});
    for (auto [offset, more] : llvm::zip_equal(box.offsets, slice.getOffsets()))
      offset += more;
  }
  return boxes;
}

/// How often a parameter is used, where uses of disjoint parts are one: queries
/// read the first third of a packed projection, keys and values the rest.
unsigned countUses(ArrayRef<ParameterOp> uses) {
  SmallVector<SmallVector<Box>> whole;
  for (ParameterOp use : uses) {
    SmallVector<Box> boxes = boxesOf(use);
    auto *fitting = llvm::find_if(whole, [&](ArrayRef<Box> others) {
      return llvm::none_of(boxes, [&](const Box &box) {
        return llvm::any_of(
            others, [&](const Box &other) { return box.overlaps(other); });
      });
    });
    llvm::append_range(fitting == whole.end() ? whole.emplace_back() : *fitting,
                       boxes);
  }
  return whole.size();
}

} // namespace

/// Whether a name is that of a Constant node's output: parameters have names of
/// their own.
static bool isOfConstantNode(StringRef name) {
  static const llvm::Regex pattern("(^|/)Constant(_[0-9]+)?_output_0$");
  return pattern.match(name);
}

LogicalResult ClassifyParameters::classify(WeightSourceOp source,
                                           ArrayRef<ParameterOp> uses,
                                           const Reasons &reasons) {
  Builder builder(&getContext());
  SmallVector<ParameterOp> trained;
  StringRef reason;
  ParameterOp first = uses.front();
  for (ParameterOp use : uses) {
    if (use.getWholeShape() != first.getWholeShape())
      return use.emitOpError("is of shape [")
             << use.getWholeShape() << "], another use of '" << use.getName()
             << "' of shape [" << first.getWholeShape() << "]";
    if (auto found = reasons.find(use); found != reasons.end()) {
      reason = found->second;
      use.setUntrained(true);
    } else {
      trained.push_back(use);
    }
  }
  if (trained.empty()) {
    source.setUntrained(true);
    source.setReason(reason);
    return success();
  }
  llvm::SetVector<StringRef> roles;
  for (ParameterOp use : trained)
    roles.insert(useOf(use));
  // Norms without a bias are written with one of zeros, as the output of a
  // Constant node: parameters are initializers.
  if (roles.size() == 1 && roles.front() == "bias of a norm" &&
      isOfConstantNode(source.getName())) {
    for (ParameterOp use : uses)
      use.setUntrained(true);
    source.setUntrained(true);
    source.setReason("added by the exporter to a norm without a bias");
    return success();
  }
  std::string description = llvm::join(roles, ", ");
  // Shared on request: then a mask is one of the uses that are meant.
  for (ParameterOp use : uses)
    use.setUntrained(false);
  unsigned count = countUses(trained) + (uses.size() > trained.size() ? 1 : 0);
  bool isTiedHead = count == 2 && roles.size() == 2 &&
                    roles.contains("embedding table") &&
                    roles.contains("factor of a matrix product");
  bool isNormed = isDividedByItsNorm(trained);
  if (count > 1 && !isTiedHead && !isNormed && !source.getShared() &&
      !inference) {
    if (!reason.empty())
      description += ", " + reason.str();
    return emitError(first.getLoc())
           << "constant '" << source.getName() << "' is used " << count
           << " times as a parameter (" << description
           << "). Exporters merge constants that are equal, so these may have "
              "been several parameters; training them as one would be wrong. "
              "Export a PyTorch model with autohet.export, which keeps them "
              "apart, or with distinct values (trained, or initialised at "
              "random), or pass --shared "
           << source.getName() << " if it is one parameter";
  }
  source.setReason(isTiedHead ? "embedding table and output head (tied)"
                   : isNormed ? "divided by its own norm"
                              : StringRef(description));
  return success();
}

LogicalResult ClassifyParameters::findByName(Reasons &reasons) {
  if (constants.empty())
    return success();
  llvm::Regex regex(constants);
  std::string problem;
  if (!regex.isValid(problem))
    return getOperation().emitError("--constant '")
           << constants << "' is no regular expression: " << problem;
  llvm::StringSet<> named = autohet::findParameters(getOperation(), regex);
  bool found = false;
  getOperation().walk([&](ParameterOp op) {
    if (!named.contains(op.getName()))
      return;
    found = true;
    reasons.try_emplace(op, "named by --constant");
  });
  if (found)
    return success();
  return getOperation().emitError("--constant '")
         << constants << "' matches no constant of the model";
}

/// Whether all names are such as exporters make up for what they computed.
static bool isMadeUp(WeightSourceOp source) {
  return llvm::all_of(source.getAllNames(), [](StringRef name) {
    return autohet::isCounterName(name) || isOfConstantNode(name);
  });
}

/// Exporters for inference compute what parameters alone decide. The result is
/// trained, as nobody can tell it from a parameter, but it is not the model's.
void ClassifyParameters::warnOfComputed() {
  std::string trained, biases;
  auto list = [](std::string &text, WeightSourceOp source) {
    text += (text.empty() ? "'" : ", '") + source.getName().str() + "'";
  };
  for (auto source : getOperation().getOps<WeightSourceOp>()) {
    auto shape = source.getShape();
    if (!isMadeUp(source))
      continue;
    if (!source.getUntrained())
      list(trained, source);
    else if (source.getReason() == kMask && shape.size() >= 3 &&
             shape[shape.size() - 3] > 1)
      list(biases, source);
  }
  if (!trained.empty())
    emitWarning(getOperation().getLoc())
        << "constants that the exporter computed are trained as they are, and "
           "saved under names that PyTorch's model does not have: "
        << trained
        << ". What was 1 + weight decays to 0, not to 1. autohet.export keeps "
           "the model's own parameters";
  if (!biases.empty())
    emitWarning(getOperation().getLoc())
        << "constants that the exporter computed are added to attention "
           "scores, differ by head and are not trained: "
        << biases
        << ". If the model learns them (a bias by distance, as in T5), export "
           "it with autohet.export";
}

void ClassifyParameters::runOnOperation() {
  Reasons reasons;
  if (failed(findByName(reasons)))
    return signalPassFailure();
  llvm::MapVector<StringAttr, SmallVector<ParameterOp>> uses;
  bool isListed = getOperation()->hasAttr(kParametersListedAttr);
  getOperation().walk([&](func::FuncOp function) {
    if (!isListed)
      markRoles(function, reasons);
    function.walk([&](ParameterOp op) {
      uses[op.getNameAttr()].push_back(op);
      if (isListed && !op.isTrained())
        reasons.try_emplace(op,
                            "no parameter of the model, by the file's list");
    });
  });
  // All that is wrong, not only the first of it.
  bool failedAny = false;
  for (auto source :
       llvm::make_early_inc_range(getOperation().getOps<WeightSourceOp>())) {
    auto found = uses.find(source.getNameAttr());
    if (found == uses.end())
      source.erase(); // a table that folding or fusion made superfluous
    else
      failedAny |= failed(classify(source, found->second, reasons));
  }
  if (failedAny)
    return signalPassFailure();
  if (!inference)
    warnOfComputed();
}

llvm::StringSet<> autohet::findParameters(ModuleOp module,
                                          const llvm::Regex &pattern) {
  llvm::StringSet<> found;
  for (auto source : module.getOps<WeightSourceOp>())
    if (llvm::any_of(source.getAllNames(),
                     [&](StringRef name) { return pattern.match(name); }))
      found.insert(source.getName());
  return found;
}

void autohet::printParameters(ModuleOp module, llvm::raw_ostream &os) {
  llvm::StringSet<> frozen;
  module.walk([&](ParameterOp op) {
    if (op->hasAttr(kFrozenAttr))
      frozen.insert(op.getName());
  });
  for (auto source : module.getOps<WeightSourceOp>()) {
    SmallVector<StringRef> names = source.getAllNames();
    os << (source.getUntrained()               ? "untrained  "
           : frozen.contains(source.getName()) ? "frozen     "
                                               : "trained    ")
       << source.getName() << " [";
    llvm::interleaveComma(source.getShape(), os);
    os << "]: " << source.getReason().value_or("not classified");
    if (ArrayRef<StringRef> aliases = ArrayRef(names).drop_front();
        !aliases.empty())
      os << "; also " << llvm::join(aliases, ", ");
    os << "\n";
  }
}
