//===- OrderMicrobatches.cpp - a device's step as streams of commands -------===//
//
// A schedule is an order of commands. The device's function is cut into three
// parts by phase (forward, backward, update); each part is a template that is
// emitted for one microbatch after the other. With w forwards of head start:
//
//   1F1B   F(0) .. F(w-1)   loop i: F(i+w) B(i)   B(n-w) .. B(n-1)   update
//   GPipe  loop i: F(i)     loop i: B(i)                             update
//
// Stage s of S has w = min(S - 1 - s, n). The last backward stands outside the
// loop (with its forward, where w = 0): ops of phase "reduce", which start the
// exchange of gradients, run in that one only. Pipeline transfers are emitted
// on streams of their own in the same order, so that the loops of all streams
// run in step; events carry (arrived, consumed) and (produced, sent) a
// microbatch.
//
// New parameters hide under the next forward: nobody waits for their arrival in
// the step that sends them, but their first reader in the next one does.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace autohet {
#define GEN_PASS_DEF_ORDERMICROBATCHES
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

enum class Part { Forward, Backward, Reduce, Update };

Part partOf(Operation *op) {
  auto phase = op->getAttrOfType<StringAttr>("het.phase");
  if (!phase)
    return Part::Forward;
  return llvm::StringSwitch<Part>(phase.getValue())
      .Case("backward", Part::Backward)
      .Case("reduce", Part::Reduce)
      .Case("update", Part::Update)
      .Default(Part::Forward);
}

/// The value whose memory `value` shares: reshapes are views.
Value rootOf(Value value) {
  while (auto reshape = value.getDefiningOp<het::ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

RankedTensorType tensorOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

/// A box of a parameter: where it starts and its shape.
using BoxKey = std::pair<StringAttr,
                         std::pair<SmallVector<int64_t>, SmallVector<int64_t>>>;

/// What the device holds of a box.
struct HeldBox {
  Location loc;
  StringAttr name;
  SmallVector<int64_t> offsets, globalShape;
  bool owned = false;
  Value value;
  Value localSum; ///< of this device's microbatches
  Value gradient; ///< of an owned box: summed over all devices
  SmallVector<Value> states;
};

/// One stream under construction: where its next command goes.
struct Stream {
  exec::StreamOp op;
  OpBuilder builder;
};

class ProgramEmitter {
public:
  ProgramEmitter(func::FuncOp func, dist::ProgramAttr info, StringRef schedule,
                 unsigned stateCount)
      : func(func), info(info), stateCount(stateCount), declare(func) {
    count = info.getMicrobatches();
    isGPipe = schedule == "gpipe";
    headStart =
        std::min<int64_t>(info.getStages() - 1 - info.getStage(), count);
    inFlight = isGPipe ? count : std::min(headStart + 1, count);
  }

  LogicalResult emit();

private:
  //===--- declarations ---===//
  LogicalResult declarePorts();
  Value declareBuffer(Location loc, StringRef name, exec::Space space,
                      RankedTensorType type, int64_t slots = 1);
  Value declareEvent(const llvm::Twine &name, bool once = false);
  HeldBox &held(Location loc, StringAttr name, ArrayRef<int64_t> offsets,
                ArrayRef<int64_t> globalShape, RankedTensorType type,
                bool trained);
  Value bufferOf(Value value);
  int64_t slotsOf(Value root);
  void declareParameters();

  //===--- commands ---===//
  LogicalResult emitPart(Part part, int64_t microbatch, bool reduces = false);
  LogicalResult emitOp(Operation *op, int64_t microbatch);
  LogicalResult emitMatmul(het::MatmulOp op, int64_t microbatch);
  Value gradientBuffer(het::GradientOp op);
  void emitGradient(het::GradientOp op, int64_t microbatch);
  void emitSend(dist::SendOp op, int64_t microbatch);
  void emitRecv(dist::RecvOp op, int64_t microbatch);
  void emitResults(int64_t microbatch);
  LogicalResult emitUpdate(dist::UpdateOp op);
  void flushWaits(int64_t microbatch);
  void findLateExchange();
  void waitForOperands(Operation *op);
  void waitForParameters(Operation *op);
  void waitForStepBefore(Location loc, Value event);
  void waitForExchange();
  void waitForSent(Value value, int64_t microbatch);
  Part lastReader(dist::RecvOp recv);
  LogicalResult emitLoop(int64_t first, int64_t end,
                         ArrayRef<std::pair<Part, int64_t>> body);
  LogicalResult emitTraining(bool peels);

  /// A wait for a microbatch before the first is always over.
  void wait(Stream &stream, Value event, int64_t microbatch) {
    if (inLoop || microbatch >= 0)
      exec::WaitOp::create(stream.builder, stream.op.getLoc(), event,
                           microbatch);
  }

  bool isPipelined(Operation *op) {
    auto send = dyn_cast<dist::SendOp>(op);
    auto recv = dyn_cast<dist::RecvOp>(op);
    return !isExchange(op) &&
           ((send && !send.getInlined()) || (recv && !recv.getInlined()));
  }
  /// Once a step, beside the microbatches.
  static bool isExchange(Operation *op) {
    return partOf(op) == Part::Reduce || partOf(op) == Part::Update;
  }

  func::FuncOp func;
  dist::ProgramAttr info;
  unsigned stateCount;
  OpBuilder declare;
  exec::ProgramOp program;
  int64_t count, headStart, inFlight;
  bool isGPipe, inLoop = false;

  std::optional<Stream> compute, receive, send;
  llvm::DenseMap<Value, Value> buffers;
  llvm::MapVector<BoxKey, HeldBox> boxes;
  llvm::DenseMap<Operation *, std::pair<Value, Value>> events;
  /// Events of inline transfers that were started and not yet waited for.
  SmallVector<Value> pendingArrivals, pendingSends;
  /// The same of the exchange of gradients and parameters, which nobody waits
  /// for before it has to: events by the value that arrives, and of sends.
  llvm::MapVector<Value, Value> exchangeArrivals;
  SmallVector<Value> exchangeSends;
  /// Of those, what the next step waits for: arrivals by the box that they
  /// fill, until something has waited, and sends.
  llvm::MapVector<BoxKey, Value> lateArrivals;
  SmallVector<Value> lateSends;
  llvm::DenseSet<Operation *> late;
  llvm::StringMap<unsigned> names;
};

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

Value ProgramEmitter::declareBuffer(Location loc, StringRef name,
                                    exec::Space space, RankedTensorType type,
                                    int64_t slots) {
  // Names are for people and traces; make them unique.
  unsigned &seen = names[name];
  std::string unique =
      seen ? (name + "." + llvm::Twine(seen)).str() : name.str();
  ++seen;
  return exec::BufferOp::create(declare, loc, exec::BufferType::get(type),
                                unique, space, slots, IntegerAttr());
}

Value ProgramEmitter::declareEvent(const llvm::Twine &name, bool once) {
  return exec::EventOp::create(declare, func.getLoc(), declare.getIndexType(),
                               declare.getStringAttr(name),
                               once ? declare.getUnitAttr() : UnitAttr());
}

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
  return std::min(count, slots + (isMoved ? 1 : 0));
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
  if (isa_and_nonnull<dist::RecvOp>(root.getDefiningOp()) && root.hasOneUse())
    if (auto store = dyn_cast<dist::StoreParameterOp>(*root.user_begin()))
      return buffer =
                 held(store.getLoc(), store.getNameAttr(), store.getOffsets(),
                      store.getGlobalShape(), tensorOf(root), /*trained=*/true)
                     .value;
  std::string name;
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto attribute = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       het::kNameAttr);
    name = attribute ? attribute.str() : "input";
  } else {
    Operation *op = root.getDefiningOp();
    if (auto unit = op->getAttrOfType<StringAttr>(het::kUnitAttr))
      name = unit.str() + "/";
    if (auto call = dyn_cast<func::CallOp>(op))
      name += call.getCallee().str();
    else
      name += op->getName().stripDialect().str();
  }
  return buffer = declareBuffer(root.getLoc(), name, exec::Space::arena,
                                tensorOf(root), slotsOf(root));
}

HeldBox &ProgramEmitter::held(Location loc, StringAttr name,
                              ArrayRef<int64_t> offsets,
                              ArrayRef<int64_t> globalShape,
                              RankedTensorType type, bool trained) {
  BoxKey key = {
      name,
      {SmallVector<int64_t>(offsets), SmallVector<int64_t>(type.getShape())}};
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
  box.value = declareBuffer(
      loc, name, trained ? exec::Space::parameter : exec::Space::constant,
      type);
  return boxes.insert({key, std::move(box)}).first->second;
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
    exec::InputOp::create(declare, argument.getLoc(),
                          text(het::kNameAttr, "input"),
                          text(het::kRoleAttr, "input"),
                          text("het.kind", "file"), number("het.batch_dim", 0),
                          number("het.vocabulary", 0), argument.getType());
    bufferOf(argument);
  }
  auto returns = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(returns->getOperands())) {
    auto name = func.getResultAttrOfType<StringAttr>(i, het::kNameAttr);
    if (!name || name.getValue() == "loss")
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
        list("dist.global_shape", SmallVector<int64_t>(type.getShape())),
        list("dist.offsets", SmallVector<int64_t>(type.getRank(), 0)),
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

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// Waits for what inline transfers have under way, so that what follows may
/// read what arrived and write what was sent.
void ProgramEmitter::flushWaits(int64_t microbatch) {
  for (Value event : pendingArrivals)
    wait(*compute, event, microbatch);
  for (Value event : pendingSends)
    wait(*compute, event, microbatch);
  pendingArrivals.clear();
  pendingSends.clear();
}

BoxKey keyOf(StringAttr name, ArrayRef<int64_t> offsets,
             RankedTensorType type) {
  return {
      name,
      {SmallVector<int64_t>(offsets), SmallVector<int64_t>(type.getShape())}};
}

/// New bytes that arrive right where they belong, and those that leave, which
/// are parameters here, too: nothing of this step touches either any more.
void ProgramEmitter::findLateExchange() {
  for (Operation &op : func.getBody().front()) {
    if (partOf(&op) != Part::Update)
      continue;
    if (auto recv = dyn_cast<dist::RecvOp>(op)) {
      bool isStored = llvm::all_of(recv.getValues(), [](Value value) {
        return value.hasOneUse() &&
               isa<dist::StoreParameterOp>(*value.user_begin());
      });
      if (!isStored)
        continue;
      Value event = events[recv].first = declareEvent(
          "recv." + llvm::Twine(recv.getChannel()) + ".arrived", /*once=*/true);
      for (Value value : recv.getValues()) {
        auto store = cast<dist::StoreParameterOp>(*value.user_begin());
        lateArrivals[keyOf(store.getNameAttr(), store.getOffsets(),
                           tensorOf(value))] = event;
      }
      late.insert(recv);
    } else if (auto send = dyn_cast<dist::SendOp>(op)) {
      if (!llvm::all_of(send.getValues(), [](Value value) {
            return value.getDefiningOp<dist::UpdateOp>();
          }))
        continue;
      Value event = events[send].second = declareEvent(
          "send." + llvm::Twine(send.getChannel()) + ".sent", /*once=*/true);
      lateSends.push_back(event);
      late.insert(send);
    }
  }
}

void ProgramEmitter::waitForStepBefore(Location loc, Value event) {
  exec::WaitOp::create(compute->builder, loc, event, -1);
}

/// The first reader of a parameter, in the order of the stream, waits for it.
void ProgramEmitter::waitForParameters(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto parameter = rootOf(operand).getDefiningOp<het::ParameterOp>();
    if (!parameter)
      continue;
    SmallVector<int64_t> zeros(parameter.getType().getRank(), 0);
    auto it = lateArrivals.find(keyOf(parameter.getNameAttr(),
                                      parameter.getOffsets()
                                          ? *parameter.getOffsets()
                                          : ArrayRef<int64_t>(zeros),
                                      parameter.getType()));
    if (it == lateArrivals.end())
      continue;
    Value event = it->second;
    waitForStepBefore(op->getLoc(), event);
    lateArrivals.remove_if([&](auto &entry) { return entry.second == event; });
  }
}

/// What has been asked for from other replicas is there when it is read.
void ProgramEmitter::waitForOperands(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto it = exchangeArrivals.find(rootOf(operand));
    if (it == exchangeArrivals.end())
      continue;
    Value event = it->second;
    wait(*compute, event, 0);
    // One message may bring several values.
    exchangeArrivals.remove_if(
        [&](auto &entry) { return entry.second == event; });
  }
}

/// The exchange's half is over: all of it has arrived and left.
void ProgramEmitter::waitForExchange() {
  SmallVector<Value> events;
  for (auto &[value, event] : exchangeArrivals)
    if (!llvm::is_contained(events, event))
      events.push_back(event);
  llvm::append_range(events, exchangeSends);
  for (Value event : events)
    wait(*compute, event, 0);
  exchangeArrivals.clear();
  exchangeSends.clear();
}

LogicalResult ProgramEmitter::emitMatmul(het::MatmulOp op, int64_t microbatch) {
  std::optional<GemmShape> shape = matchGemm(op);
  if (!shape)
    return op.emitOpError("is not one gemm; run exec-normalize-matmuls first");
  // A product that is only a gradient goes straight into the sum of gradients.
  bool accumulate = false;
  Value target;
  if (op->hasOneUse())
    if (auto gradient = dyn_cast<het::GradientOp>(*op->user_begin())) {
      target = gradientBuffer(gradient);
      accumulate = true;
    }
  if (!target)
    target = bufferOf(op.getResult());
  exec::GemmOp::create(
      compute->builder, op.getLoc(), bufferOf(op.getLhs()),
      bufferOf(op.getRhs()), target,
      ArrayRef<int64_t>{shape->batch, shape->m, shape->n, shape->k},
      shape->transposeA, shape->transposeB, accumulate, microbatch);
  return success();
}

/// The sum of gradients of the box that `op` adds to.
Value ProgramEmitter::gradientBuffer(het::GradientOp op) {
  auto type = tensorOf(op.getValue());
  SmallVector<int64_t> zeros(type.getRank(), 0);
  HeldBox &box =
      held(op.getLoc(), op.getNameAttr(),
           op.getOffsets() ? *op.getOffsets() : ArrayRef<int64_t>(zeros),
           op.getWholeShape(), type, /*trained=*/true);
  if (!box.localSum)
    box.localSum =
        declareBuffer(op.getLoc(), (op.getName() + ".gradient").str(),
                      exec::Space::gradient, type);
  return box.localSum;
}

void ProgramEmitter::emitGradient(het::GradientOp op, int64_t microbatch) {
  auto product = op.getValue().getDefiningOp<het::MatmulOp>();
  if (product && product->hasOneUse())
    return; // already accumulated
  Value sum = gradientBuffer(op);
  exec::ReduceOp::create(compute->builder, op.getLoc(),
                         ValueRange{sum, bufferOf(op.getValue())}, sum,
                         microbatch);
}

void ProgramEmitter::emitSend(dist::SendOp op, int64_t microbatch) {
  SmallVector<Value> buffers;
  for (Value value : op.getValues())
    buffers.push_back(bufferOf(value));
  auto &[produced, sent] = events[op];
  std::string name = ("send." + llvm::Twine(op.getChannel())).str();
  if (!sent)
    sent = declareEvent(name + ".sent", /*once=*/isExchange(op));
  if (!isPipelined(op)) {
    exec::SendOp::create(compute->builder, op.getLoc(), buffers, op.getPeer(),
                         op.getChannel(), sent, microbatch);
    if (!late.contains(op))
      (isExchange(op) ? exchangeSends : pendingSends).push_back(sent);
    return;
  }
  if (!produced)
    produced = declareEvent(name + ".produced");
  exec::RecordOp::create(compute->builder, op.getLoc(), produced, microbatch);
  wait(*send, produced, microbatch);
  exec::SendOp::create(send->builder, op.getLoc(), buffers, op.getPeer(),
                       op.getChannel(), sent, microbatch);
}

void ProgramEmitter::emitRecv(dist::RecvOp op, int64_t microbatch) {
  SmallVector<Value> buffers;
  for (Value value : op.getValues())
    buffers.push_back(bufferOf(value));
  auto &[arrived, consumed] = events[op];
  std::string name = ("recv." + llvm::Twine(op.getChannel())).str();
  if (!arrived)
    arrived = declareEvent(name + ".arrived", /*once=*/isExchange(op));
  if (!isPipelined(op)) {
    exec::RecvOp::create(compute->builder, op.getLoc(), buffers, op.getPeer(),
                         op.getChannel(), arrived, microbatch);
    if (!isExchange(op))
      pendingArrivals.push_back(arrived);
    else if (!late.contains(op))
      for (Value value : op.getValues())
        exchangeArrivals[value] = arrived;
    return;
  }
  if (!consumed)
    consumed = declareEvent(name + ".consumed");
  // The slot is free once the microbatch that had it before is done with.
  int64_t slots = buffers.front().getDefiningOp<exec::BufferOp>().getSlots();
  wait(*receive, consumed, microbatch - slots);
  exec::RecvOp::create(receive->builder, op.getLoc(), buffers, op.getPeer(),
                       op.getChannel(), arrived, microbatch);
  wait(*compute, arrived, microbatch);
}

/// The loss and the outputs of the forward part.
void ProgramEmitter::emitResults(int64_t microbatch) {
  auto returns = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(returns->getOperands())) {
    auto name = func.getResultAttrOfType<StringAttr>(i, het::kNameAttr);
    if (!name)
      continue;
    if (name.getValue() == "loss")
      exec::LossOp::create(compute->builder, value.getLoc(), bufferOf(value),
                           microbatch);
    else
      exec::EmitOp::create(compute->builder, value.getLoc(), name,
                           bufferOf(value), microbatch);
  }
}

LogicalResult ProgramEmitter::emitUpdate(dist::UpdateOp op) {
  auto type = tensorOf(op.getGradient());
  HeldBox &box = held(op.getLoc(), op.getNameAttr(), op.getOffsets(),
                      op.getGlobalShape(), type, /*trained=*/true);
  box.owned = true;
  Value gradient = bufferOf(op.getGradient());
  box.gradient = gradient;
  for (unsigned i = 0; i < stateCount; ++i)
    box.states.push_back(declareBuffer(op.getLoc(),
                                       (op.getName() + (i ? ".v" : ".m")).str(),
                                       exec::Space::state, type));
  buffers[op.getResult()] = box.value;
  exec::UpdateOp::create(compute->builder, op.getLoc(), box.value, gradient,
                         box.states, 0);
  return success();
}

LogicalResult ProgramEmitter::emitOp(Operation *op, int64_t microbatch) {
  if (!isa<dist::SendOp, dist::RecvOp>(op))
    flushWaits(microbatch);
  if (isExchange(op))
    waitForOperands(op);
  waitForParameters(op);
  if (isa<het::MatmulOp, func::CallOp>(op))
    for (Value result : op->getResults())
      waitForSent(result, microbatch);
  OpBuilder &builder = compute->builder;
  if (auto matmul = dyn_cast<het::MatmulOp>(op))
    return emitMatmul(matmul, microbatch);
  if (auto gradient = dyn_cast<het::GradientOp>(op)) {
    emitGradient(gradient, microbatch);
    return success();
  }
  if (auto sendOp = dyn_cast<dist::SendOp>(op)) {
    emitSend(sendOp, microbatch);
    return success();
  }
  if (auto recvOp = dyn_cast<dist::RecvOp>(op)) {
    emitRecv(recvOp, microbatch);
    return success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    SmallVector<Value> operands;
    for (Value v : op->getOperands())
      operands.push_back(bufferOf(v));
    for (Value v : op->getResults())
      operands.push_back(bufferOf(v));
    exec::LaunchOp::create(builder, op->getLoc(), call.getCallee(), operands,
                           op->getNumResults(), microbatch);
    return success();
  }
  if (auto local = dyn_cast<dist::LocalGradientOp>(op)) {
    auto type = tensorOf(local.getResult());
    HeldBox &box = held(op->getLoc(), local.getNameAttr(), local.getOffsets(),
                        local.getGlobalShape(), type, true);
    if (!box.localSum)
      return op->emitOpError("reads the gradient of \"")
             << local.getName() << "\", which nothing on this device adds to";
    buffers[local.getResult()] = box.localSum;
    return success();
  }
  if (auto norm = dyn_cast<dist::NormOp>(op)) {
    exec::NormOp::create(builder, op->getLoc(), bufferOf(norm.getGradient()),
                         0);
    return success();
  }
  if (isa<dist::AgreeOp>(op)) {
    waitForExchange();
    // Behind it, parameters are written again.
    for (auto &[key, event] : std::exchange(lateArrivals, {}))
      waitForStepBefore(op->getLoc(), event);
    for (Value event : lateSends)
      waitForStepBefore(op->getLoc(), event);
    exec::AgreeOp::create(builder, op->getLoc(), 0);
    return success();
  }
  if (auto update = dyn_cast<dist::UpdateOp>(op))
    return emitUpdate(update);
  if (auto store = dyn_cast<dist::StoreParameterOp>(op)) {
    Value box = held(op->getLoc(), store.getNameAttr(), store.getOffsets(),
                     store.getGlobalShape(), tensorOf(store.getValue()), true)
                    .value;
    Value value = bufferOf(store.getValue());
    if (value != box)
      exec::CopyOp::create(builder, op->getLoc(), value, box, 0);
    return success();
  }
  if (isa<het::ReshapeOp, het::ParameterOp, func::ReturnOp>(op))
    return success();
  return op->emitOpError(
      "is neither a kernel nor a command; run exec-form-kernels first");
}

/// Before `value`'s slot is written for `microbatch`, what was sent from it
/// must have left.
void ProgramEmitter::waitForSent(Value value, int64_t microbatch) {
  SmallVector<Value> views = {value};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (auto reshape = dyn_cast<het::ReshapeOp>(user))
        views.push_back(reshape.getResult());
      if (!isa<dist::SendOp>(user) || !isPipelined(user))
        continue;
      auto &[produced, sent] = events[user];
      if (!sent)
        sent = declareEvent("send." +
                            llvm::Twine(cast<dist::SendOp>(user).getChannel()) +
                            ".sent");
      int64_t slots =
          bufferOf(value).getDefiningOp<exec::BufferOp>().getSlots();
      wait(*compute, sent, microbatch - slots);
    }
}

LogicalResult ProgramEmitter::emitPart(Part part, int64_t microbatch,
                                       bool reduces) {
  Block &block = func.getBody().front();
  // Each part reads inputs at its start; what both parts read is kept.
  for (BlockArgument argument : block.getArguments()) {
    auto role = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  het::kRoleAttr);
    if (argument.use_empty() ||
        (role && role.getValue() == "inverse_label_count"))
      continue;
    bool inForward = llvm::any_of(argument.getUsers(), [](Operation *user) {
      return partOf(user) == Part::Forward;
    });
    if (part == (inForward ? Part::Forward : Part::Backward))
      exec::FeedOp::create(compute->builder, argument.getLoc(),
                           func.getArgAttrOfType<StringAttr>(
                               argument.getArgNumber(), het::kNameAttr),
                           bufferOf(argument), microbatch);
  }
  for (Operation &op : block) {
    bool isReduction = partOf(&op) == Part::Reduce;
    if ((isReduction ? !reduces : partOf(&op) != part) ||
        isa<func::ReturnOp>(op))
      continue;
    if (failed(emitOp(&op, isReduction ? 0 : microbatch)))
      return failure();
  }
  flushWaits(microbatch);
  if (part == Part::Update)
    waitForExchange();
  if (part == Part::Forward)
    emitResults(microbatch);
  // Slots of what arrived are free after the last part that reads them.
  for (auto recv : block.getOps<dist::RecvOp>())
    if (isPipelined(recv) && lastReader(recv) == part)
      exec::RecordOp::create(compute->builder, recv.getLoc(),
                             events[recv].second, microbatch);
  return success();
}

/// The part that reads a received value last.
Part ProgramEmitter::lastReader(dist::RecvOp recv) {
  Part last = partOf(recv);
  SmallVector<Value> views = {recv.getResult()};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (auto reshape = dyn_cast<het::ReshapeOp>(user))
        views.push_back(reshape.getResult());
      else if (partOf(user) == Part::Backward && !isa<func::ReturnOp>(user))
        last = Part::Backward;
    }
  return last;
}

LogicalResult
ProgramEmitter::emitLoop(int64_t first, int64_t end,
                         ArrayRef<std::pair<Part, int64_t>> body) {
  if (first >= end)
    return success();
  SmallVector<Stream *> streams = {&*compute};
  if (receive)
    streams.append({&*receive, &*send});
  SmallVector<exec::LoopOp> loops;
  for (Stream *stream : streams) {
    auto loop =
        exec::LoopOp::create(stream->builder, func.getLoc(), first, end);
    stream->builder.setInsertionPointToEnd(&loop.getBody().emplaceBlock());
    loops.push_back(loop);
  }
  inLoop = true;
  for (auto [part, shift] : body)
    if (failed(emitPart(part, shift)))
      return failure();
  inLoop = false;
  for (auto [stream, loop] : llvm::zip_equal(streams, loops))
    stream->builder.setInsertionPointAfter(loop);
  return success();
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// With `peels` the last backward is not in a loop, and starts reductions.
LogicalResult ProgramEmitter::emitTraining(bool peels) {
  auto forwards = [&](int64_t from, int64_t to) -> LogicalResult {
    for (int64_t m = from; m < to; ++m)
      if (failed(emitPart(Part::Forward, m)))
        return failure();
    return success();
  };
  auto backwards = [&](int64_t from) -> LogicalResult {
    for (int64_t m = from; m < count; ++m)
      if (failed(emitPart(Part::Backward, m, peels && m + 1 == count)))
        return failure();
    return success();
  };
  // Microbatches whose backward is in a loop.
  int64_t looped = peels ? count - 1 : count;
  if (isGPipe) {
    if (failed(emitLoop(0, count, {{Part::Forward, 0}})) ||
        failed(emitLoop(0, looped, {{Part::Backward, 0}})) ||
        failed(backwards(looped)))
      return failure();
  } else {
    looped = std::min(looped, count - headStart);
    if (failed(forwards(0, headStart)) ||
        failed(emitLoop(0, looped,
                        {{Part::Forward, headStart}, {Part::Backward, 0}})) ||
        failed(forwards(headStart + looped, count)) ||
        failed(backwards(looped)))
      return failure();
  }
  return emitPart(Part::Update, 0);
}

LogicalResult ProgramEmitter::emit() {
  OpBuilder builder(func);
  program = exec::ProgramOp::create(
      builder, func.getLoc(), info.getDevice(), info.getRank(), info.getWorld(),
      info.getReplica(), info.getStage(), info.getMicrobatches(),
      info.getMicrobatchSize(), info.getFirstSample(), info.getGlobalBatch(),
      DenseI64ArrayAttr());
  Block &body = program.getBody().emplaceBlock();
  declare.setInsertionPointToStart(&body);

  OpBuilder streams = OpBuilder::atBlockEnd(&body);
  auto open = [&](StringRef name, bool isCommunication) {
    auto op =
        exec::StreamOp::create(streams, func.getLoc(), name, isCommunication);
    return Stream{op, OpBuilder::atBlockBegin(&op.getBody().emplaceBlock())};
  };
  compute.emplace(open("compute", false));
  declare.setInsertionPoint(compute->op);
  if (llvm::any_of(func.getBody().front(),
                   [&](Operation &op) { return isPipelined(&op); })) {
    receive.emplace(open("receive", true));
    send.emplace(open("send", true));
  }
  if (failed(declarePorts()))
    return failure();
  findLateExchange();

  Location loc = func.getLoc();
  exec::HookOp::create(compute->builder, loc, "begin", 0);
  auto has = [&](Part part) {
    return llvm::any_of(func.getBody().front(),
                        [&](Operation &op) { return partOf(&op) == part; });
  };
  if (failed(has(Part::Backward) || has(Part::Update)
                 ? emitTraining(/*peels=*/has(Part::Reduce))
                 : emitLoop(0, count, {{Part::Forward, 0}})))
    return failure();
  exec::HookOp::create(compute->builder, loc, "end", 0);

  declareParameters();
  func.erase();
  return success();
}

struct OrderMicrobatches
    : autohet::impl::OrderMicrobatchesBase<OrderMicrobatches> {
  using OrderMicrobatchesBase::OrderMicrobatchesBase;

  void runOnOperation() override {
    if (schedule != "1f1b" && schedule != "gpipe") {
      getOperation().emitError("unknown schedule '")
          << schedule << "', known are 1f1b and gpipe";
      return signalPassFailure();
    }
    auto states = llvm::StringSwitch<int>(optimizer)
                      .Cases({"sgd", "none"}, 0)
                      .Cases({"adam", "adamw"}, 2)
                      .Default(-1);
    if (states < 0) {
      getOperation().emitError("unknown optimizer '")
          << optimizer << "', known are sgd, adam, adamw and none";
      return signalPassFailure();
    }
    getOperation()->setAttr("exec.optimizer",
                            StringAttr::get(&getContext(), optimizer));
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (auto info =
              func->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr))
        if (failed(ProgramEmitter(func, info, schedule, states).emit()))
          return signalPassFailure();
  }
};

} // namespace
