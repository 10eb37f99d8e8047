//===- ProgramBuffers.cpp - what a program declares -------------------------===//
//
// Buffers with their slots, events, ports and the boxes of parameters that the
// device holds: declared when something first names them.
//
//===----------------------------------------------------------------------===//

#include "ProgramEmitter.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::schedule;

Value ProgramEmitter::declareBuffer(Location loc, StringRef name,
                                    exec::Space space, RankedTensorType type,
                                    int64_t slots, Value whole,
                                    IntegerAttr within) {
  // Names are for people and traces; make them unique.
  unsigned seen = names[name]++;
  Name unique = name;
  if (seen)
    llvm::raw_svector_ostream(unique) << '.' << seen;
  exec::SpaceAttr &ofSpace = spaces[unsigned(space)];
  if (!ofSpace)
    ofSpace = exec::SpaceAttr::get(declare.getContext(), space);
  return exec::BufferOp::create(declare, loc, bufferTypeOf(type),
                                declare.getStringAttr(unique), ofSpace,
                                number(slots), IntegerAttr(), whole, within);
}

Value ProgramEmitter::declareEvent(StringRef name, bool once) {
  return exec::EventOp::create(declare, func.getLoc(), declare.getIndexType(),
                               declare.getStringAttr(name),
                               once ? declare.getUnitAttr() : UnitAttr());
}

static_assert(dist::kRunAlignment % exec::kBufferAlignment == 0,
              "a run of rows must be where a buffer may be");

/// Forward values that the backward part reads, and values that a transfer
/// touches while computation goes on, need a slot a microbatch in flight.
int64_t ProgramEmitter::slotsOf(Value root) {
  bool isForward =
      isa<BlockArgument>(root) || partOf(root.getDefiningOp()) == Part::Forward;
  bool isKept = false,
       isMoved = root.getDefiningOp() && isPipelined(root.getDefiningOp());
  SmallVector<Value> views = {root};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (auto reshape = dyn_cast<het::ReshapeOp>(user))
        views.push_back(reshape.getResult());
      else
        isKept |= partOf(user) == Part::Backward && !isa<func::ReturnOp>(user);
      isMoved |= isPipelined(user);
    }
  int64_t slots = isKept && isForward ? inFlight : 1;
  // One more lets the next microbatch arrive, or the last leave, meanwhile.
  slots += isMoved ? 1 : 0;
  // Training ends a step before the next one begins.
  return trains ? std::min(count, slots) : slots;
}

Value ProgramEmitter::bufferOf(Value value) {
  Value root = rootOf(value);
  Value &buffer = buffers[root];
  if (buffer)
    return buffer;
  if (auto parameter = root.getDefiningOp<het::ParameterOp>()) {
    SmallVector<int64_t> zeros(parameter.getType().getRank(), 0);
    return buffer = held(parameter.getLoc(), parameter.getNameAttr(),
                         parameter.getOffsets() ? *parameter.getOffsets()
                                                : ArrayRef<int64_t>(zeros),
                         parameter.getWholeShape(), parameter.getType(),
                         parameter.isTrained())
                        .value;
  }
  // New bytes of a box that arrive in one piece arrive where they belong.
  if (isa_and_nonnull<dist::RecvOp>(root.getDefiningOp()))
    if (dist::StoreParameterOp store = storeInPlace(root))
      return buffer = placeOf(store);
  Name name;
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto attribute = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       het::kNameAttr);
    name = attribute ? attribute.getValue() : "input";
  } else {
    Operation *op = root.getDefiningOp();
    if (op->getDiscardableAttr(labelKey))
      return buffer = declareBuffer(root.getLoc(), transferName(op),
                                    exec::Space::arena, tensorOf(root));
    if (Attribute unit = op->getDiscardableAttr(unitKey)) {
      name = cast<StringAttr>(unit).getValue();
      name += '/';
    }
    if (auto call = dyn_cast<func::CallOp>(op))
      name += call.getCallee();
    else
      name += op->getName().stripDialect();
  }
  return buffer = declareBuffer(root.getLoc(), name, exec::Space::arena,
                                tensorOf(root), slotsOf(root));
}

HeldBox &ProgramEmitter::held(Location loc, StringAttr name,
                              ArrayRef<int64_t> offsets,
                              ArrayRef<int64_t> globalShape,
                              RankedTensorType type, bool trained) {
  BoxKey key = keyOf(name, offsets, type);
  auto it = boxes.find(key);
  if (it != boxes.end())
    return it->second;
  HeldBox box{loc,
              name,
              SmallVector<int64_t>(offsets),
              SmallVector<int64_t>(globalShape),
              false,
              nullptr,
              nullptr,
              nullptr,
              {}};
  // Rows that are stored by themselves lie in the box that they are of.
  std::pair<HeldBox *, int64_t> place = {nullptr, 0};
  if (storedRows.contains(key))
    place = boxAround(wholeBoxes, key, type.getElementType());
  if (auto [around, within] = place; around) {
    box.value = runOf(around->value, within, name, type);
  } else {
    box.value = declareBuffer(
        loc, name, trained ? exec::Space::parameter : exec::Space::constant,
        type);
    wholeBoxes[name].push_back(key);
  }
  return boxes.insert({key, std::move(box)}).first->second;
}

std::pair<HeldBox *, int64_t>
ProgramEmitter::boxAround(const BoxesOfNames &those, const BoxKey &key,
                          Type element) {
  const auto &[name, box] = key;
  auto found = those.find(name);
  if (found == those.end())
    return {nullptr, 0};
  for (const BoxKey &whole : found->second)
    if (std::optional<int64_t> within =
            dist::findRun(whole.second.first, whole.second.second, box.first,
                          box.second, element))
      return {&boxes.find(whole)->second, *within};
  return {nullptr, 0};
}

Value ProgramEmitter::runOf(Value whole, int64_t within, StringRef name,
                            RankedTensorType type) {
  if (cast<exec::BufferType>(whole.getType()).getTensor() == type)
    return whole;
  Value &run = runs[{whole.getAsOpaquePointer(), within,
                     const_cast<void *>(type.getAsOpaquePointer())}];
  if (run)
    return run;
  auto buffer = whole.getDefiningOp<exec::BufferOp>();
  Name rows = name;
  rows += ".rows";
  return run = declareBuffer(buffer.getLoc(), rows, buffer.getSpace(), type,
                             /*slots=*/1, whole,
                             declare.getI64IntegerAttr(within));
}

Value ProgramEmitter::placeOf(dist::StoreParameterOp store) {
  RankedTensorType type = tensorOf(store.getValue());
  if (store.getRows()) {
    auto [around, within] = boxAround(
        wholeBoxes, keyOf(store.getNameAttr(), store.getOffsets(), type),
        type.getElementType());
    if (around)
      return runOf(around->value, within, store.getName(), type);
  }
  return held(store.getLoc(), store.getNameAttr(), store.getOffsets(),
              store.getGlobalShape(), type, /*trained=*/true)
      .value;
}

Value ProgramEmitter::localSumOf(dist::LocalGradientOp op) {
  RankedTensorType type = op.getType();
  auto [around, within] =
      boxAround(summedBoxes, keyOf(op.getNameAttr(), op.getOffsets(), type),
                type.getElementType());
  if (!around)
    return nullptr;
  return runOf(around->localSum, within, (op.getName() + ".gradient").str(),
               type);
}

/// Inputs become ports that are fed, in the part that first reads them; the
/// label count is a run-time scalar.
LogicalResult ProgramEmitter::declarePorts() {
  for (BlockArgument argument : func.getArguments()) {
    unsigned i = argument.getArgNumber();
    auto role = func.getArgAttrOfType<StringAttr>(i, het::kRoleAttr);
    if (role && role.getValue() == "inverse_label_count") {
      buffers[argument] = exec::BufferOp::create(
          declare, argument.getLoc(), exec::BufferType::get(tensorOf(argument)),
          "inverse_label_count", exec::Space::scalar, 1,
          declare.getI64IntegerAttr(0));
      continue;
    }
    if (argument.use_empty())
      continue;
    if (!func.getArgAttr(i, het::kNameAttr))
      return func.emitOpError("reads argument #")
             << i << ", which has no name to be fed by";
    auto text = [&](StringRef name, StringRef otherwise) {
      auto attribute = func.getArgAttrOfType<StringAttr>(i, name);
      return attribute ? attribute.getValue() : otherwise;
    };
    auto number = [&](StringRef name, int64_t otherwise) {
      auto attribute = func.getArgAttrOfType<IntegerAttr>(i, name);
      return attribute ? attribute.getInt() : otherwise;
    };
    exec::InputOp::create(
        declare, argument.getLoc(), text(het::kNameAttr, "input"),
        text(het::kRoleAttr, "input"), text(het::kKindAttr, "file"),
        number(het::kBatchDimAttr, 0), number(het::kVocabularyAttr, 0),
        tensorOf(argument));
    bufferOf(argument);
  }
  auto returns = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(returns->getOperands())) {
    auto name = func.getResultAttrOfType<StringAttr>(i, het::kNameAttr);
    if (!name || isLoss(name))
      continue;
    auto type = tensorOf(value);
    auto list = [&, result = i](StringRef attribute,
                                SmallVector<int64_t> otherwise) {
      auto array =
          func.getResultAttrOfType<DenseI64ArrayAttr>(result, attribute);
      return array ? SmallVector<int64_t>(array.asArrayRef()) : otherwise;
    };
    auto batchDim =
        func.getResultAttrOfType<IntegerAttr>(i, het::kBatchDimAttr);
    exec::OutputOp::create(
        declare, value.getLoc(), name,
        list(dist::kGlobalShapeAttr, SmallVector<int64_t>(type.getShape())),
        list(dist::kOffsetsAttr, SmallVector<int64_t>(type.getRank(), 0)),
        batchDim ? batchDim.getInt() : 0, type);
  }
  return success();
}

void ProgramEmitter::declareParameters() {
  for (auto &[key, box] : boxes)
    exec::ParameterOp::create(
        declare, box.loc, box.name, box.globalShape, box.offsets, box.owned,
        box.value, box.owned ? box.gradient : box.localSum, box.states);
}
