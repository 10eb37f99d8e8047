//===- GraphBuilder.cpp - layers of a transformer as het ------------------===//

#include "GraphBuilder.h"
#include "autohet/Dialect/Het/LossTerms.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace autohet;
using namespace autohet::config;

GraphBuilder::GraphBuilder(Location loc, const ConfigOptions &options,
                           int64_t sequenceLength)
    : options(options), length(sequenceLength),
      module(ModuleOp::create(loc, "config")), builder(loc.getContext()),
      file(loc), loc(loc) {
  module->setSymNameAttr(nullptr);
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, loc, "model",
                                  builder.getFunctionType({}, {}));
  function->setAttr(het::kBatchSizeAttr,
                    builder.getI64IntegerAttr(options.batch));
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

void GraphBuilder::enter(const llvm::Twine &path) {
  loc = NameLoc::get(builder.getStringAttr(path), file);
}

//===----------------------------------------------------------------------===//
// Inputs and parameters
//===----------------------------------------------------------------------===//

Value GraphBuilder::addInput(StringRef name) {
  auto type = RankedTensorType::get({batch(), length}, builder.getI64Type());
  NamedAttrList attributes;
  attributes.set(het::kNameAttr, builder.getStringAttr(name));
  attributes.set(het::kRoleAttr, builder.getStringAttr("input"));
  attributes.set(het::kBatchDimAttr, builder.getI64IntegerAttr(0));
  unsigned index = function.getNumArguments();
  LogicalResult added = function.insertArgument(
      index, type, attributes.getDictionary(builder.getContext()), loc);
  assert(succeeded(added) && "a function of ours takes arguments");
  (void)added;
  return function.getArgument(index);
}

Value GraphBuilder::addPaddingMask(bool isNeeded) {
  if (!isNeeded && !options.padding_mask)
    return {};
  Value mask = addInput("attention_mask");
  isToken = het::CastOp::create(builder, loc, mask, builder.getI1Type());
  return reshape(isToken, {batch(), 1, 1, length});
}

Value GraphBuilder::parameter(const llvm::Twine &name,
                              ArrayRef<int64_t> shape) {
  return box(name, {}, shape, shape);
}

Value GraphBuilder::box(const llvm::Twine &name, ArrayRef<int64_t> offsets,
                        ArrayRef<int64_t> shape, ArrayRef<int64_t> whole) {
  StringAttr key = builder.getStringAttr(name);
  parameters.insert({key, float32(whole)});
  if (shape == whole)
    return het::ParameterOp::create(builder, loc, float32(shape), key);
  return het::ParameterOp::create(builder, loc, float32(shape), key, UnitAttr(),
                                  builder.getDenseI64ArrayAttr(offsets),
                                  builder.getDenseI64ArrayAttr(whole));
}

Value GraphBuilder::parameterRows(const llvm::Twine &name, int64_t first,
                                  int64_t count, ArrayRef<int64_t> whole) {
  SmallVector<int64_t> offsets(whole.size(), 0), shape(whole);
  offsets.front() = first;
  shape.front() = count;
  return box(name, offsets, shape, whole);
}

Value GraphBuilder::parameterColumns(const llvm::Twine &name, int64_t first,
                                     int64_t count, ArrayRef<int64_t> whole) {
  SmallVector<int64_t> offsets(whole.size(), 0), shape(whole);
  offsets.back() = first;
  shape.back() = count;
  return box(name, offsets, shape, whole);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

Value GraphBuilder::embedding(const llvm::Twine &table, int64_t rows,
                              int64_t hidden, Value ids) {
  return het::EmbeddingOp::create(builder, loc,
                                  parameter(table, {rows, hidden}), ids,
                                  IntegerAttr(), IntegerAttr());
}

Value GraphBuilder::product(Value x, Value weight, int64_t contracted) {
  return het::MatmulOp::create(builder, loc, x, weight, ArrayRef<int64_t>(),
                               ArrayRef<int64_t>(),
                               ArrayRef<int64_t>{typeOf(x).getRank() - 1},
                               ArrayRef<int64_t>{contracted});
}

Value GraphBuilder::linear(Value x, const llvm::Twine &name, int64_t out,
                           bool hasBias) {
  int64_t in = typeOf(x).getShape().back();
  Value y = product(x, parameter(name + ".weight", {out, in}), 1);
  return hasBias ? add(y, parameter(name + ".bias", {out})) : y;
}

Value GraphBuilder::conv1d(Value x, const llvm::Twine &name, int64_t out) {
  int64_t in = typeOf(x).getShape().back();
  Value y = product(x, parameter(name + ".weight", {in, out}), 0);
  return add(y, parameter(name + ".bias", {out}));
}

Value GraphBuilder::layerNorm(Value x, const llvm::Twine &name,
                              double epsilon) {
  int64_t size = typeOf(x).getShape().back();
  return het::LayerNormOp::create(
             builder, loc, x, parameter(name + ".weight", {size}),
             parameter(name + ".bias", {size}), APFloat(epsilon))
      .getResult();
}

Value GraphBuilder::rmsNorm(Value x, Value scale, double epsilon) {
  return het::RmsNormOp::create(builder, loc, x, scale, APFloat(epsilon))
      .getResult();
}

Value GraphBuilder::add(Value left, Value right) {
  return het::AddOp::create(builder, loc, left, right);
}
Value GraphBuilder::multiply(Value left, Value right) {
  return het::MulOp::create(builder, loc, left, right);
}

Value GraphBuilder::wherePositive(Value share, Value x) {
  Value isChosen = het::CompareOp::create(
      builder, loc, het::ComparePredicate::gt, share, scalar(0));
  return het::SelectOp::create(builder, loc, isChosen, x, scalar(0));
}

Value GraphBuilder::scalar(double value) {
  return het::createSplat(builder, loc, float32({}), value);
}

Value GraphBuilder::activate(Activation kind, Value x) {
  switch (kind) {
  case Activation::GeluErf:
    return het::GeluOp::create(builder, loc, het::GeluForm::erf, x);
  case Activation::GeluTanh:
    return het::GeluOp::create(builder, loc, het::GeluForm::tanh, x);
  case Activation::Silu:
    return het::SiluOp::create(builder, loc, x);
  case Activation::Relu:
    return het::ReluOp::create(builder, loc, x);
  }
  llvm_unreachable("covered switch");
}

Routing GraphBuilder::route(Value logits, int64_t count) {
  RankedTensorType type = typeOf(logits);
  int64_t last = type.getRank() - 1, choices = type.getShape().back();
  Value all = het::SoftmaxOp::create(builder, loc, logits);
  auto top = het::TopKOp::create(builder, loc, all, count, /*largest=*/true);
  Value sum =
      het::ReduceOp::create(builder, loc, het::ReduceKind::sum, top.getValues(),
                            ArrayRef<int64_t>{last}, /*keep=*/true);
  Value shares = het::DivOp::create(builder, loc, top.getValues(), sum);
  // [..., count, 1] against [choices]: each share at its own place.
  SmallVector<int64_t> apart(typeOf(shares).getShape());
  apart.push_back(1);
  Value numbers = het::IotaOp::create(builder, loc, uint64_t(0), uint64_t(1),
                                      uint64_t(choices), builder.getI64Type());
  Value isChosen =
      het::CompareOp::create(builder, loc, het::ComparePredicate::eq,
                             reshape(top.getIndices(), apart), numbers);
  Value spread = het::SelectOp::create(builder, loc, isChosen,
                                       reshape(shares, apart), scalar(0));
  shares = het::ReduceOp::create(builder, loc, het::ReduceKind::sum, spread,
                                 ArrayRef<int64_t>{last}, /*keep=*/false);
  return {all, isChosen, shares};
}

Value GraphBuilder::dropout(Value x, double p) {
  if (p == 0 || !options.dropout)
    return x;
  return het::DropoutOp::create(builder, loc, x, APFloat(p), dropouts++,
                                DenseI64ArrayAttr(), DenseI64ArrayAttr());
}

Value GraphBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  return het::ReshapeOp::create(builder, loc, x, shape);
}

Value GraphBuilder::lastDim(Value x, int64_t first, int64_t count) {
  SmallVector<int64_t> sizes(typeOf(x).getShape()), offsets(sizes.size(), 0),
      strides(sizes.size(), 1);
  offsets.back() = first;
  sizes.back() = count;
  return het::SliceOp::create(builder, loc, x, offsets, sizes, strides);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Value GraphBuilder::splitHeads(Value x, int64_t heads, int64_t dim) {
  Value apart = reshape(x, {batch(), length, heads, dim});
  return het::TransposeOp::create(builder, loc, apart,
                                  ArrayRef<int64_t>{0, 2, 1, 3});
}

Value GraphBuilder::mergeHeads(Value x) {
  int64_t heads = typeOf(x).getDimSize(1), dim = typeOf(x).getDimSize(3);
  Value order =
      het::TransposeOp::create(builder, loc, x, ArrayRef<int64_t>{0, 2, 1, 3});
  return reshape(order, {batch(), length, heads * dim});
}

/// In float32 where the models compute so: the angles are its products.
RotaryTables GraphBuilder::rotaryTables(ArrayRef<double> inverseFrequencies,
                                        double attentionFactor,
                                        bool isInterleaved) {
  int64_t pairs = inverseFrequencies.size();
  RankedTensorType type = float32({1, 1, length, pairs});
  auto table = [&](ArrayRef<float> values) -> Value {
    return het::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, values));
  };
  if (options.shapes_only)
    return {table(1.0f), table(0.0f), isInterleaved};
  // A million positions take seconds: both come of one reduction of the angle.
  std::vector<float> cosines(length * pairs), sines(length * pairs);
  for (int64_t position = 0, at = 0; position < length; ++position)
    for (double frequency : inverseFrequencies) {
      double angle = float(position) * float(frequency), sine = 0, cosine = 0;
      sincos(angle, &sine, &cosine);
      cosines[at] = float(cosine * attentionFactor);
      sines[at++] = float(sine * attentionFactor);
    }
  return {table(cosines), table(sines), isInterleaved};
}

Value GraphBuilder::rotate(Value x, const RotaryTables &tables) {
  return het::RotaryOp::create(builder, loc, x, tables.cos, tables.sin,
                               tables.is_interleaved);
}

Value GraphBuilder::windowMask(int64_t window) {
  if (window >= length)
    return {};
  auto positions = [&](ArrayRef<int64_t> shape) {
    Value iota = het::IotaOp::create(builder, loc, uint64_t(0), uint64_t(1),
                                     uint64_t(length), builder.getI64Type());
    return reshape(iota, shape);
  };
  Value query = positions({1, 1, length, 1}),
        key = positions({1, 1, 1, length});
  Value distance = het::SubOp::create(builder, loc, query, key);
  Value limit = het::createSplat(
      builder, loc, RankedTensorType::get({}, builder.getI64Type()),
      double(window));
  return het::CompareOp::create(builder, loc, het::ComparePredicate::lt,
                                distance, limit);
}

Value GraphBuilder::allowBoth(Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return het::AndOp::create(builder, loc, left, right);
}

Value GraphBuilder::attention(Value query, Value key, Value value,
                              const AttentionOptions &how) {
  int64_t heads = typeOf(query).getDimSize(1),
          groups = typeOf(key).getDimSize(1);
  SmallVector<int64_t> keyHeads;
  for (int64_t head = 0; head < heads; ++head)
    keyHeads.push_back(head / (heads / groups));
  bool drops = how.dropout > 0 && options.dropout;
  auto op = het::AttentionOp::create(
      builder, loc, query, key, value, how.mask, APFloat(how.scale), keyHeads,
      how.is_causal, /*zero_empty_rows=*/bool(how.mask),
      drops ? builder.getF64FloatAttr(how.dropout) : FloatAttr(),
      drops ? builder.getI64IntegerAttr(dropouts++) : IntegerAttr(),
      DenseI64ArrayAttr(), DenseI64ArrayAttr());
  return mergeHeads(op.getResult());
}

//===----------------------------------------------------------------------===//
// The balance of routers
//===----------------------------------------------------------------------===//

Value GraphBuilder::meanOfMicrobatch(Value x, ArrayRef<int64_t> dims) {
  auto mean = het::ReduceOp::create(builder, loc, het::ReduceKind::mean, x,
                                    dims, /*keep=*/false);
  mean->setAttr(het::kOfMicrobatchAttr, builder.getUnitAttr());
  return mean;
}

// Vectors of a number for each choice are all that goes from layer to layer,
// and so from stage to stage of a pipeline.
void GraphBuilder::addRouter(const Routing &routing) {
  auto addMean = [&](Value &sum, Value x, ArrayRef<int64_t> dims) {
    if (isToken) {
      SmallVector<int64_t> shape(typeOf(x).getRank(), 1);
      shape[0] = batch(), shape[1] = length;
      x = het::SelectOp::create(builder, loc, reshape(isToken, shape), x,
                                scalar(0));
    }
    Value mean = meanOfMicrobatch(x, dims);
    sum = sum ? add(sum, mean) : mean;
  };
  // The mean is over a token's choices too, of which each counts.
  int64_t count = typeOf(routing.is_chosen).getDimSize(2);
  Value isChosen = het::SelectOp::create(builder, loc, routing.is_chosen,
                                         scalar(double(count)), scalar(0));
  addMean(routedCounts, isChosen, {0, 1, 2});
  addMean(routedProbabilities, routing.probabilities, {0, 1});
  ++routers;
}

/// Both sums are of means over all tokens of the microbatch: over padding too,
/// whose part is divided out, and over routers.
Value GraphBuilder::balanceOfRouters() {
  int64_t choices = typeOf(routedCounts).getDimSize(0);
  Value products = multiply(routedProbabilities, routedCounts);
  Value sum =
      het::ReduceOp::create(builder, loc, het::ReduceKind::sum, products,
                            ArrayRef<int64_t>{0}, /*keep=*/false);
  sum = multiply(sum, scalar(double(choices) / double(routers * routers)));
  if (!isToken)
    return sum;
  Value part = meanOfMicrobatch(
      het::CastOp::create(builder, loc, isToken, builder.getF32Type()), {0, 1});
  // A microbatch without any token has no balance: 0, not 0 by 0.
  part = het::MaxOp::create(builder, loc, part, scalar(1e-12));
  return het::DivOp::create(builder, loc, sum, multiply(part, part));
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

void GraphBuilder::addLossTerm(StringRef name, Value term, double factor) {
  terms.push_back({builder.getStringAttr(name), term, factor});
}

void GraphBuilder::addAlias(StringRef parameter, StringRef other) {
  aliases[parameter] = builder.getStrArrayAttr(other);
}

OwningOpRef<ModuleOp> GraphBuilder::finish(Value logits) {
  SmallVector<Value> results = {logits};
  for (const LossTerm &term : terms)
    results.push_back(term.value);
  func::ReturnOp::create(builder, file, results);
  function.setType(builder.getFunctionType(
      function.getArgumentTypes(),
      llvm::map_to_vector(results, [](Value v) { return v.getType(); })));
  function.setResultAttr(0, het::kNameAttr, builder.getStringAttr("logits"));
  for (auto [i, term] : llvm::enumerate(terms)) {
    function.setResultAttr(i + 1, het::kNameAttr, term.name);
    function.setResultAttr(i + 1, het::kLossFactorAttr,
                           builder.getF64FloatAttr(term.factor));
  }
  builder.setInsertionPoint(function);
  for (auto [name, type] : parameters) {
    het::WeightSourceOp::create(
        builder, file, name, /*file=*/"", /*offset=*/0, /*transposed=*/false,
        /*shared=*/false, /*untrained=*/false, /*reason=*/StringAttr(),
        aliases.lookup(name), type);
  }
  return std::move(module);
}
