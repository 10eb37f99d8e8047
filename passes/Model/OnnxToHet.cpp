//===- OnnxToHet.cpp - from nodes to the model ----------------------------===//
//
// Binds the dims, then converts node by node, in the file's order. Every op is
// folded as it is created: by the time a node asks for its shape, the chain
// that computes it has become a constant.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"
#include "autohet/Passes/Model/Parameters.h"
#include "autohet/Passes/Model/Passes.h"
#include "autohet/Passes/Model/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace autohet {
#define GEN_PASS_DEF_ONNXTOHET
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

/// Whether a function is one of the reader's; others are left alone.
static bool isGraph(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, onnx::kNameAttr))
      return true;
  return !function.getOps<onnx::NodeOp>().empty();
}

namespace {

struct OnnxToHet : autohet::impl::OnnxToHetBase<OnnxToHet> {
  using OnnxToHetBase::OnnxToHetBase;

  void runOnOperation() override {
    addElementwiseHandlers(handlers);
    addActivationHandlers(handlers);
    addLossHandlers(handlers);
    addOrderHandlers(handlers);
    addScatterHandlers(handlers);
    addControlHandlers(handlers);
    addConvHandlers(handlers);
    addEinsumHandlers(handlers);
    addFunctionHandlers(handlers);
    addContribHandlers(handlers);
    addContribAttentionHandlers(handlers);
    addPadHandlers(handlers);
    addReductionHandlers(handlers);
    addUpdateHandlers(handlers);
    addShapeHandlers(handlers);
    addIndexHandlers(handlers);
    addProductHandlers(handlers);
    addNormHandlers(handlers);
    addAttentionHandlers(handlers);
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (isGraph(function) && failed(convert(function)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(func::FuncOp graph);
  LogicalResult bindDims(func::FuncOp graph);
  FailureOr<func::FuncOp> createFunction(func::FuncOp graph);

  OnnxHandlers handlers;
  /// Extents of symbolic dims.
  llvm::StringMap<int64_t> bound;
  /// The symbol of the batch dim, or empty where its extent is in the file.
  std::string batchSymbol;
  int64_t batchSize = 0;
  /// Whether no dim counts samples.
  bool isOneSample = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// The name of a symbolic dim of an argument; null where the extent is known.
static StringAttr symbolOf(func::FuncOp graph, unsigned argument, int64_t dim) {
  auto dims = graph.getArgAttrOfType<ArrayAttr>(argument, onnx::kDimsAttr);
  return dims && dim < int64_t(dims.size()) ? dyn_cast<StringAttr>(dims[dim])
                                            : StringAttr();
}

BlockArgument autohet::findBatchInput(func::FuncOp graph) {
  BlockArgument first;
  for (BlockArgument argument : graph.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() == 0 ||
        graph.getArgAttr(argument.getArgNumber(), onnx::kValueAttr))
      continue;
    if (type.getElementType().isInteger())
      return argument;
    if (!first)
      first = argument;
  }
  return first;
}

/// As --batch-dim: no dim counts samples.
static constexpr llvm::StringLiteral kNoBatch = "none";

LogicalResult OnnxToHet::bindDims(func::FuncOp graph) {
  for (const std::string &binding : dims) {
    auto [name, number] = StringRef(binding).split('=');
    int64_t extent = 0;
    if (number.getAsInteger(10, extent) || extent <= 0)
      return emitError(graph.getLoc())
             << "--dim " << binding << ": wanted NAME=N with N at least 1";
    bound[name] = extent;
  }

  // Asked for in words: whatever the first dim is called, it counts no samples.
  if (batchDim == kNoBatch) {
    if (!inference || batch > 1)
      return emitError(graph.getLoc())
             << "--batch-dim=" << kNoBatch << " makes the whole input one "
             << "sample: it is for inference, with a batch of 1";
    isOneSample = true;
    batchSize = 1;
    return success();
  }
  batchSymbol = batchDim;
  int64_t inFile = 0;
  if (BlockArgument samples = findBatchInput(graph)) {
    StringAttr symbol = symbolOf(graph, samples.getArgNumber(), 0);
    if (symbol && batchSymbol.empty())
      batchSymbol = symbol.str();
    if (!symbol)
      inFile = cast<RankedTensorType>(samples.getType()).getDimSize(0);
  }
  // What is only computed need not be cut into samples: a file of fixed extents
  // is one, unless its batch is asked for.
  isOneSample = inference && batchSymbol.empty() && batch <= 1 &&
                !(batch == 1 && inFile == 1);
  if (isOneSample) {
    batchSize = 1;
    return success();
  }
  if (batchSymbol.empty()) {
    batchSize = inFile;
    if (batch && inFile && batch != inFile)
      return emitError(graph.getLoc())
             << "the model's batch is fixed to " << inFile
             << " in its file, but " << int64_t(batch)
             << " was asked for; export it with a symbolic batch dim, or use "
             << inFile;
    return success();
  }
  if (batch)
    bound.try_emplace(batchSymbol, batch);
  batchSize = bound.lookup(batchSymbol);
  return success();
}

FailureOr<func::FuncOp> OnnxToHet::createFunction(func::FuncOp graph) {
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  Builder b(&getContext());
  llvm::StringSet<> used;
  llvm::MapVector<StringAttr, std::string> unbound;
  for (BlockArgument argument : graph.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (graph.getArgAttr(index, onnx::kValueAttr))
      continue; // a constant
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto name = graph.getArgAttrOfType<StringAttr>(index, onnx::kNameAttr);
    if (!type || !name)
      return graph.emitError()
             << "argument " << index << " is no named tensor of known rank";
    Type element = type.getElementType();
    if (!inference && isa<FloatType>(element) && !element.isF32())
      return emitError(graph.getLoc())
             << "input '" << name.getValue() << "' is " << element
             << "; only float32 models are supported in training: export the "
                "model in float32";
    SmallVector<int64_t> shape(type.getShape());
    // A symbol counts samples wherever it stands (past keys and values have it
    // second); a number, which may be there by chance, as the first dim only.
    std::optional<int64_t> batchDim;
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      StringAttr symbol = symbolOf(graph, index, dim);
      if (!batchDim && !isOneSample &&
          (batchSymbol.empty() ? dim == 0 && batchSize && extent == batchSize
                               : symbol && symbol.getValue() == batchSymbol))
        batchDim = dim;
      if (!symbol)
        continue;
      used.insert(symbol.getValue());
      extent = bound.lookup(symbol.getValue());
      if (!extent)
        unbound.try_emplace(symbol, name.str());
    }
    double elements = 1; // in bounds for any product
    for (int64_t extent : shape)
      elements *= double(extent);
    bool isEmpty = llvm::is_contained(shape, 0) && !inference;
    if (unbound.empty() && (isEmpty || elements > 0x1p40))
      return emitError(graph.getLoc())
             << "input '" << name.getValue() << "' is " << type.clone(shape)
             << ", wanted 1 to 2^40 elements";
    types.push_back(type.clone(shape));
    SmallVector<NamedAttribute> entries{
        b.getNamedAttr(het::kNameAttr, name),
        b.getNamedAttr(het::kRoleAttr, b.getStringAttr("input"))};
    if (batchDim || inference)
      entries.push_back(b.getNamedAttr(
          het::kBatchDimAttr, b.getI64IntegerAttr(batchDim.value_or(-1))));
    attributes.push_back(b.getDictionaryAttr(entries));
  }
  if (!unbound.empty()) {
    InFlightDiagnostic diagnostic = emitError(graph.getLoc())
                                    << "dims of the model are unbound: ";
    llvm::interleaveComma(unbound, diagnostic, [&](auto &entry) {
      StringRef symbol = entry.first.getValue();
      diagnostic << "'" << symbol << "' of input '" << entry.second << "' (";
      if (symbol == batchSymbol)
        diagnostic << "the batch: --global-batch N or --microbatch N)";
      else
        diagnostic << "--dim " << symbol << "=N)";
    });
    return diagnostic;
  }
  for (const auto &entry : bound)
    if (!used.contains(entry.first())) {
      InFlightDiagnostic diagnostic = emitError(graph.getLoc())
                                      << "the model has no symbolic dim '"
                                      << entry.first() << "'";
      auto names = llvm::to_vector(used.keys());
      llvm::sort(names);
      diagnostic << (names.empty() ? "; all its dims are fixed" : "; it has ");
      llvm::interleaveComma(names, diagnostic, [&](StringRef name) {
        diagnostic << "'" << name << "'";
      });
      return failure();
    }
  OpBuilder builder(graph);
  auto function = func::FuncOp::create(builder, graph.getLoc(), graph.getName(),
                                       builder.getFunctionType(types, {}));
  function.setVisibility(graph.getVisibility());
  function.setAllArgAttrs(attributes);
  if (batchSize)
    function->setAttr(het::kBatchSizeAttr,
                      builder.getI64IntegerAttr(batchSize));
  function.addEntryBlock();
  return function;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

/// Conversion leaves shape chains behind, and what only they used.
static void eraseUnused(func::FuncOp function) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Nodes that become several ops, of which only the last may round to a half
/// type: kernels that know them as one operation round once, too.
static bool isRoundedOnce(StringRef name) {
  return name.starts_with("com.microsoft::") ||
         llvm::is_contained({"CausalConvWithState",
                             "Celu",
                             "Conv",
                             "Einsum",
                             "Elu",
                             "Gemm",
                             "GroupNormalization",
                             "HardSigmoid",
                             "HardSwish",
                             "InstanceNormalization",
                             "LinearAttention",
                             "LogSoftmax",
                             "LpNormalization",
                             "Mean",
                             "MeanVarianceNormalization",
                             "Mish",
                             "NegativeLogLikelihoodLoss",
                             "ReduceL1",
                             "ReduceL2",
                             "ReduceLogSum",
                             "ReduceLogSumExp",
                             "ReduceSumSquare",
                             "Selu",
                             "Shrink",
                             "SoftmaxCrossEntropyLoss",
                             "Softplus",
                             "Softsign",
                             "Sum",
                             "SwiGLU",
                             "Swish"},
                            name);
}

/// Elements that nobody computes with: floats of 8 bits and fewer, integers of
/// 4 and fewer.
static bool isStorage(Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  return isa<FloatType>(element) ? width < 16 : width > 1 && width < 8;
}

/// Nodes that move elements, or make others of them, whatever they are.
static bool takesStorage(StringRef name) {
  return llvm::is_contained({"Cast",
                             "CastLike",
                             "Concat",
                             "DepthToSpace",
                             "DequantizeLinear",
                             "Expand",
                             "Flatten",
                             "Gather",
                             "GatherElements",
                             "GatherND",
                             "Identity",
                             "If",
                             "Loop",
                             "Reshape",
                             "Shape",
                             "Size",
                             "Slice",
                             "SpaceToDepth",
                             "Split",
                             "Squeeze",
                             "Tile",
                             "Transpose",
                             "Unsqueeze",
                             "Where"},
                            name);
}

static LogicalResult refuseStorage(const OnnxNode &node, StringRef name) {
  for (unsigned i = 0; i < node.numOperands(); ++i)
    if (node.has(i) && isStorage(node.type(i).getElementType()) &&
        !takesStorage(name))
      return node.error() << "operand " << i << " is " << node.type(i)
                          << "; elements of this type are stored, moved and "
                             "cast, not computed with: cast them to float32 "
                             "or int32 first";
  return success();
}

LogicalResult OnnxConversion::convertNode(onnx::NodeOp node) {
  OnnxNode view(node, *this);
  SmallVector<Value> results;
  std::string name = qualifiedName(node);
  OnnxHandler handler = handlers->lookup(name);
  if (!handler) // of a subgraph: those of the graph are checked beforehand
    return view.error() << "is not supported";
  if (failed(refuseStorage(view, name)))
    return failure();
  if (isRoundedOnce(name))
    view.widenHalves();
  if (failed(handler(view, results)))
    return failure();
  view.round(results);
  bool isInBody = node->getParentOfType<onnx::NodeOp>() != nullptr;
  for (auto [index, result] : llvm::enumerate(results))
    if (node.getDeclared() && result && index < node.getNumResults() &&
        failed(checkDeclared(describeNode(node) + ": result " + Twine(index),
                             (*node.getDeclared())[index], result,
                             node.getLoc(), isInBody)))
      return failure();
  bool isShape = node.getOpType() == "Shape" || node.getOpType() == "Size" ||
                 llvm::any_of(node.getInputs(),
                              [&](Value input) { return isFromShape(input); });
  for (auto [index, from] : llvm::enumerate(node.getResults())) {
    Value to = index < results.size() ? results[index] : Value();
    if (to && isShape && to.getDefiningOp<het::ConstantOp>())
      setFromShape(from);
    if (to)
      bind(from, to);
    else if (!from.use_empty())
      return view.error() << "result " << index
                          << " is used, which is not supported";
  }
  return success();
}

// Loops in loops multiply.
static constexpr int64_t kMostNodesOfBodies = 1 << 17;

LogicalResult OnnxConversion::convertBody(Region &body,
                                          SmallVectorImpl<Value> &outputs,
                                          ArrayRef<Value> arguments) {
  Block &block = body.front();
  for (auto [from, to] : llvm::zip_equal(block.getArguments(), arguments)) {
    bind(from, to);
    if (to.getDefiningOp<het::ConstantOp>())
      setFromShape(from);
  }
  for (Operation &op : block) {
    if (auto node = dyn_cast<onnx::NodeOp>(op)) {
      if (++nodesOfBodies > kMostNodesOfBodies)
        return node.emitError("loops and branches write out more than ")
               << kMostNodesOfBodies << " nodes";
      if (failed(convertNode(node)))
        return failure();
    } else if (auto yield = dyn_cast<onnx::YieldOp>(op)) {
      for (Value value : yield.getValues())
        outputs.push_back(lookup(value, op.getLoc(), inference));
    }
  }
  return success();
}

LogicalResult OnnxToHet::convert(func::FuncOp graph) {
  bound.clear();
  if (failed(findUnsupported(graph, handlers)) || failed(verifyOpsets(graph)) ||
      failed(verifyFields(graph)) || failed(bindDims(graph)))
    return failure();
  auto parameters = OnnxParameters::analyze(
      graph, ties, shared, inference,
      isOneSample || !batchSymbol.empty() ? 0 : batchSize);
  if (failed(parameters))
    return failure();
  auto function = createFunction(graph);
  if (failed(function))
    return failure();

  OpBuilder builder(&getContext());
  builder.setInsertionPointToStart(&function->getBody().front());
  OnnxConversion conversion(builder, *parameters);
  conversion.inference = inference;
  conversion.handlers = &handlers;
  unsigned next = 0;
  for (BlockArgument from : graph.getArguments())
    if (auto value = graph.getArgAttrOfType<DenseElementsAttr>(
            from.getArgNumber(), onnx::kValueAttr)) {
      conversion.bind(from,
                      het::ConstantOp::create(builder, from.getLoc(), value));
      conversion.setFromShape(from);
    } else {
      conversion.bind(from, function->getArgument(next++));
    }

  for (Operation &op : graph.getBody().front()) {
    if (auto node = dyn_cast<onnx::NodeOp>(op)) {
      if (failed(conversion.convertNode(node)))
        return failure();
      continue;
    }
    auto terminator = dyn_cast<func::ReturnOp>(op);
    if (!terminator)
      continue; // constants are created where they are used
    SmallVector<Value> outputs;
    for (Value operand : terminator.getOperands())
      outputs.push_back(conversion.lookup(operand, op.getLoc()));
    for (auto [index, output] : llvm::enumerate(outputs)) {
      auto name = graph.getResultAttrOfType<StringAttr>(index, onnx::kNameAttr);
      if (name && failed(conversion.checkDeclared(
                      "output '" + name.getValue() + "'",
                      graph.getResultAttr(index, onnx::kDeclaredAttr), output,
                      graph.getLoc(), /*isRepeated=*/false)))
        return failure();
    }
    func::ReturnOp::create(builder, op.getLoc(), outputs);
    SmallVector<Attribute> attributes;
    for (unsigned i = 0; i < outputs.size(); ++i) {
      auto name = graph.getResultAttrOfType<StringAttr>(i, onnx::kNameAttr);
      attributes.push_back(name
                               ? builder.getDictionaryAttr(
                                     builder.getNamedAttr(het::kNameAttr, name))
                               : builder.getDictionaryAttr({}));
    }
    function->setType(builder.getFunctionType(function->getArgumentTypes(),
                                              ValueRange(outputs).getTypes()));
    function->setAllResultAttrs(attributes);
  }
  conversion.warnOfShapes();
  eraseUnused(*function);
  builder.setInsertionPoint(*function);
  parameters->createSources(*function, builder);
  if (graph->hasAttr(onnx::kParametersAttr))
    getOperation()->setAttr(het::kParametersListedAttr, builder.getUnitAttr());
  if (Attribute frozen = graph->getAttr(onnx::kFrozenAttr))
    (*function)->setAttr(autohet::kFrozenListAttr, frozen);
  graph.erase();
  return success();
}
