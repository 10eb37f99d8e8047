//===- ProgramEmitter.h - one device's program under construction -*- C++ -*-===//
//
// What the files of exec-order-microbatches share:
//
//   OrderMicrobatches.cpp   the schedule, and the commands of each part
//   ProgramTransfers.cpp    sends, receives, and who waits for them
//   ProgramBuffers.cpp      what the program declares
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_SCHEDULE_PROGRAMEMITTER_H
#define AUTOHET_PASSES_SCHEDULE_PROGRAMEMITTER_H

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Schedule/KernelGroups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include <array>
#include <map>

namespace autohet::schedule {

using namespace mlir;

enum class Part { Forward, Backward, Reduce, Update };

/// Asked of each op again and again: attributes are compared, not their texts.
class Phases {
public:
  explicit Phases(MLIRContext *context)
      : key(StringAttr::get(context, het::kPhaseAttr)),
        backward(StringAttr::get(context, "backward")),
        reduce(StringAttr::get(context, "reduce")),
        update(StringAttr::get(context, "update")) {}

  Part partOf(Operation *op) const {
    Attribute phase = op->getDiscardableAttr(key);
    return phase == backward ? Part::Backward
           : phase == reduce ? Part::Reduce
           : phase == update ? Part::Update
                             : Part::Forward;
  }

private:
  StringAttr key, backward, reduce, update;
};

inline RankedTensorType tensorOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

/// The store of a value that arrives right where it belongs: beside it, the
/// value is only sent on. Null where it has another use.
dist::StoreParameterOp storeInPlace(Value arrived);

/// A box of a parameter: where it starts and its shape.
using BoxKey = std::pair<StringAttr,
                         std::pair<SmallVector<int64_t>, SmallVector<int64_t>>>;

inline BoxKey keyOf(StringAttr name, ArrayRef<int64_t> offsets,
                    RankedTensorType type) {
  return {
      name,
      {SmallVector<int64_t>(offsets), SmallVector<int64_t>(type.getShape())}};
}

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
  /// The program, still empty, beside the function: touches the module.
  static exec::ProgramOp begin(func::FuncOp func, dist::ProgramAttr info);

  ProgramEmitter(func::FuncOp func, exec::ProgramOp program, StringRef schedule,
                 unsigned stateCount)
      : func(func),
        info(func->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr)),
        program(program), stateCount(stateCount), declare(func),
        phases(func.getContext()),
        labelKey(declare.getStringAttr(dist::kLabelAttr)),
        unitKey(declare.getStringAttr(het::kUnitAttr)) {
    count = info.getMicrobatches();
    isGPipe = schedule == "gpipe";
    headStart =
        std::min<int64_t>(info.getStages() - 1 - info.getStage(), count);
    inFlight = isGPipe ? count : std::min(headStart + 1, count);
    trains = llvm::any_of(func.getBody().front(), [&](Operation &op) {
      return partOf(&op) == Part::Backward || partOf(&op) == Part::Update;
    });
  }

  /// Fills the program: touches nothing else, so that devices may be done in
  /// parallel.
  LogicalResult emit();

private:
  //===--- declarations ---===//
  LogicalResult declarePorts();
  Value declareBuffer(Location loc, StringRef name, exec::Space space,
                      RankedTensorType type, int64_t slots = 1,
                      Value whole = nullptr, IntegerAttr within = nullptr);
  Value declareEvent(StringRef name, bool once = false);
  HeldBox &held(Location loc, StringAttr name, ArrayRef<int64_t> offsets,
                ArrayRef<int64_t> globalShape, RankedTensorType type,
                bool trained);
  /// Where the device has a box of a parameter, or a run of a box's rows.
  Value placeOf(dist::StoreParameterOp store);
  Value localSumOf(dist::LocalGradientOp op);
  /// Which of those boxes another is a run of, and the byte that it starts at.
  using BoxesOfNames = llvm::DenseMap<StringAttr, SmallVector<BoxKey, 1>>;
  std::pair<HeldBox *, int64_t> boxAround(const BoxesOfNames &those,
                                          const BoxKey &key, Type element);
  /// A part of `whole`, which is declared once.
  Value runOf(Value whole, int64_t within, StringRef name,
              RankedTensorType type);
  Value bufferOf(Value value);
  int64_t slotsOf(Value root);
  void declareParameters();

  //===--- commands ---===//
  Part partOf(Operation *op) const { return phases.partOf(op); }
  /// What traces call a send or a receive: "block0.mlp to rank 1".
  using Name = llvm::SmallString<64>;
  Name transferName(Operation *op);
  /// As an attribute. Most are small, and asked for by every command.
  IntegerAttr number(int64_t value) {
    if (value < -1 || value + 1 >= int64_t(smallNumbers.size()))
      return declare.getI64IntegerAttr(value);
    IntegerAttr &known = smallNumbers[value + 1];
    if (!known)
      known = declare.getI64IntegerAttr(value);
    return known;
  }
  LogicalResult emitPart(Part part, int64_t microbatch, bool reduces = false);
  LogicalResult emitOp(Operation *op, int64_t microbatch);
  LogicalResult emitMatmul(het::MatmulOp op, int64_t microbatch);
  Value gradientBuffer(het::GradientOp op);
  void emitGradient(het::GradientOp op, int64_t microbatch);
  Value doneEvent(Operation *transfer);
  Value readyEvent(Operation *transfer);
  void emitSend(dist::SendOp op, int64_t microbatch);
  void emitRecv(dist::RecvOp op, int64_t microbatch);
  void emitResults(int64_t microbatch);
  /// Whether a result is the loss of training, and no output called so.
  bool isLoss(StringAttr name) {
    return name.getValue() == "loss" &&
           llvm::any_of(func.getArguments(), [&](BlockArgument argument) {
             auto role = func.getArgAttrOfType<StringAttr>(
                 argument.getArgNumber(), het::kRoleAttr);
             return role && (role.getValue() == "labels" ||
                             role.getValue() == "inverse_label_count");
           });
  }
  LogicalResult emitUpdate(dist::UpdateOp op);
  void flushWaits(int64_t microbatch);
  void findLateExchange();
  static Operation *lastUpdate(dist::SendOp send);
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
                           number(microbatch));
  }

  bool isPipelined(Operation *op) {
    auto send = dyn_cast<dist::SendOp>(op);
    auto recv = dyn_cast<dist::RecvOp>(op);
    return ((send && !send.getInlined()) || (recv && !recv.getInlined())) &&
           !isExchange(op);
  }
  /// Once a step, beside the microbatches.
  bool isExchange(Operation *op) const {
    return partOf(op) == Part::Reduce || partOf(op) == Part::Update;
  }

  func::FuncOp func;
  dist::ProgramAttr info;
  exec::ProgramOp program;
  unsigned stateCount;
  OpBuilder declare;
  Phases phases;
  StringAttr labelKey, unitKey; ///< as Phases: asked for by every transfer
  exec::BufferType bufferTypeOf(RankedTensorType tensor) {
    exec::BufferType &known = bufferTypes[tensor];
    if (!known)
      known = exec::BufferType::get(tensor);
    return known;
  }
  llvm::DenseMap<Type, exec::BufferType> bufferTypes;
  std::array<IntegerAttr, 64> smallNumbers; ///< from -1 on
  std::array<exec::SpaceAttr, exec::getMaxEnumValForSpace() + 1> spaces;
  int64_t count, headStart, inFlight;
  bool isGPipe, inLoop = false;
  bool trains; ///< else microbatches follow one another from step to step

  /// The function's ops in their order, and the part that each is of.
  SmallVector<std::pair<Operation *, Part>> ops;
  /// What arrives from other stages, and the part that reads it last.
  SmallVector<std::pair<dist::RecvOp, Part>> arrivals;

  std::optional<Stream> compute, receive, send;
  /// Of new parameters: sends on what the computing stream leaves, and, beside
  /// those, what has been updated here.
  std::optional<Stream> relay, parameters;
  llvm::DenseMap<Value, Value> buffers;
  llvm::MapVector<BoxKey, HeldBox> boxes;
  /// Boxes with memory of their own, and those with a sum of gradients.
  BoxesOfNames wholeBoxes, summedBoxes;
  llvm::DenseSet<BoxKey> storedRows; ///< of boxes: what is stored by itself
  std::map<std::tuple<void *, int64_t, void *>, Value> runs;
  llvm::DenseMap<Operation *, Value> gradientBuffers; ///< of het.gradient ops
  /// Of transfers: when they may begin, and when they are done.
  struct TransferEvents {
    Value ready, done;
  };
  llvm::DenseMap<Operation *, TransferEvents> events;
  /// Events of inline transfers that were started and not yet waited for.
  SmallVector<Value> pendingArrivals, pendingSends;
  /// The same of the exchange of gradients and parameters, which nobody waits
  /// for before it has to: events by the value that arrives, and of sends.
  llvm::MapVector<Value, Value> exchangeArrivals;
  SmallVector<Value> exchangeSends;
  /// Of those, what the next step waits for: arrivals by the parameter, with
  /// the box that they fill; how many messages these are; and sends.
  struct LateArrival {
    BoxKey box;
    Value event;
  };
  llvm::MapVector<StringAttr, SmallVector<LateArrival, 1>> lateArrivals;
  size_t lateMessages = 0;
  SmallVector<Value> lateSends;
  /// Which arrivals something has waited for: late ones, and the others.
  llvm::DenseSet<Value> awaited, awaitedExchange;
  llvm::DenseSet<Operation *> late;
  /// Late sends of what a late receive brings: when it has arrived.
  llvm::DenseMap<Operation *, Value> relayed;
  /// Of who relays, when an update is done that is the last of what a late send
  /// sends; and of each such message, when it has left, to the last peer.
  llvm::DenseMap<Operation *, Value> updated;
  SmallVector<Value> ownSends;
  llvm::StringMap<unsigned> names;
};

} // namespace autohet::schedule

#endif
