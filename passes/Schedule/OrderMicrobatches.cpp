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
#include "ProgramEmitter.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "mlir/IR/Threading.h"

namespace autohet {
#define GEN_PASS_DEF_ORDERMICROBATCHES
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;
using namespace autohet::schedule;

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

LogicalResult ProgramEmitter::emitMatmul(het::MatmulOp op, int64_t microbatch) {
  std::optional<GemmShape> shape = matchGemm(op);
  if (!shape)
    return op.emitOpError("is not one gemm; run exec-normalize-matmuls first");
  bool accumulate = isAddedUp(op);
  auto flag = [&](bool isSet) {
    return isSet ? compute->builder.getUnitAttr() : UnitAttr();
  };
  Value target = accumulate
                     ? gradientBuffer(cast<het::GradientOp>(*op->user_begin()))
                     : bufferOf(op.getResult());
  exec::GemmOp::create(compute->builder, op.getLoc(), bufferOf(op.getLhs()),
                       bufferOf(op.getRhs()), target,
                       compute->builder.getDenseI64ArrayAttr(
                           {shape->batch, shape->m, shape->n, shape->k}),
                       flag(shape->transposeA), flag(shape->transposeB),
                       flag(accumulate), number(microbatch));
  return success();
}

/// The sum of gradients of the box that `op` adds to.
Value ProgramEmitter::gradientBuffer(het::GradientOp op) {
  Value &buffer = gradientBuffers[op];
  if (buffer)
    return buffer;
  auto type = tensorOf(op.getValue());
  SmallVector<int64_t> zeros(type.getRank(), 0);
  HeldBox &box =
      held(op.getLoc(), op.getNameAttr(),
           op.getOffsets() ? *op.getOffsets() : ArrayRef<int64_t>(zeros),
           op.getWholeShape(), type, /*trained=*/true);
  if (!box.localSum) {
    box.localSum =
        declareBuffer(op.getLoc(), (op.getName() + ".gradient").str(),
                      exec::Space::gradient, type);
    summedBoxes[box.name].push_back(keyOf(box.name, box.offsets, type));
  }
  return buffer = box.localSum;
}

void ProgramEmitter::emitGradient(het::GradientOp op, int64_t microbatch) {
  auto product = op.getValue().getDefiningOp<het::MatmulOp>();
  if (product && isAddedUp(product))
    return;
  Value sum = gradientBuffer(op);
  exec::ReduceOp::create(compute->builder, op.getLoc(),
                         ValueRange{sum, bufferOf(op.getValue())}, sum,
                         number(microbatch));
}

/// The loss and the outputs of the forward part.
void ProgramEmitter::emitResults(int64_t microbatch) {
  auto returns = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(returns->getOperands())) {
    auto name = func.getResultAttrOfType<StringAttr>(i, het::kNameAttr);
    if (!name)
      continue;
    if (isLoss(name))
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
  if (Value done = updated.lookup(op))
    exec::RecordOp::create(compute->builder, op.getLoc(), done, 0);
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
    exec::LaunchOp::create(builder, op->getLoc(), call.getCalleeAttr(),
                           operands, number(op->getNumResults()),
                           number(microbatch));
    return success();
  }
  if (auto local = dyn_cast<dist::LocalGradientOp>(op)) {
    Value sum = localSumOf(local);
    if (!sum)
      return op->emitOpError("reads the gradient of \"")
             << local.getName() << "\", which nothing on this device adds to";
    buffers[local.getResult()] = sum;
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
    for (auto &[name, arrivals] : lateArrivals)
      for (const LateArrival &arrival : arrivals)
        if (awaited.insert(arrival.event).second)
          waitForStepBefore(op->getLoc(), arrival.event);
    for (Value event : lateSends)
      waitForStepBefore(op->getLoc(), event);
    exec::AgreeOp::create(builder, op->getLoc(), 0);
    return success();
  }
  if (auto update = dyn_cast<dist::UpdateOp>(op))
    return emitUpdate(update);
  if (auto store = dyn_cast<dist::StoreParameterOp>(op)) {
    Value box = placeOf(store);
    Value value = bufferOf(store.getValue());
    if (value != box)
      exec::CopyOp::create(builder, op->getLoc(), value, box, 0);
    return success();
  }
  // Constants that are left have no elements.
  if (isa<het::ReshapeOp, het::ParameterOp, het::ConstantOp, func::ReturnOp>(
          op))
    return success();
  return op->emitOpError(
      "is neither a kernel nor a command; run exec-form-kernels first");
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
    bool inForward = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return partOf(user) == Part::Forward;
    });
    if (part == (inForward ? Part::Forward : Part::Backward))
      exec::FeedOp::create(compute->builder, argument.getLoc(),
                           func.getArgAttrOfType<StringAttr>(
                               argument.getArgNumber(), het::kNameAttr),
                           bufferOf(argument), microbatch);
  }
  for (auto [op, ofPart] : ops) {
    bool isReduction = ofPart == Part::Reduce;
    if (isReduction ? !reduces : ofPart != part)
      continue;
    if (failed(emitOp(op, isReduction ? 0 : microbatch)))
      return failure();
  }
  flushWaits(microbatch);
  if (part == Part::Update)
    waitForExchange();
  if (part == Part::Forward)
    emitResults(microbatch);
  // Slots of what arrived are free after the last part that reads them.
  for (auto [recv, last] : arrivals)
    if (last == part)
      exec::RecordOp::create(compute->builder, recv.getLoc(), readyEvent(recv),
                             microbatch);
  return success();
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

exec::ProgramOp ProgramEmitter::begin(func::FuncOp func,
                                      dist::ProgramAttr info) {
  OpBuilder builder(func);
  return exec::ProgramOp::create(
      builder, func.getLoc(), info.getDevice(), info.getRank(), info.getWorld(),
      info.getReplica(), info.getStage(), info.getMicrobatches(),
      info.getMicrobatchSize(), info.getFirstSample(), info.getGlobalBatch(),
      DenseI64ArrayAttr());
}

LogicalResult ProgramEmitter::emit() {
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
  for (Operation &op : func.getBody().front().without_terminator()) {
    ops.push_back({&op, partOf(&op)});
    if (auto recv = dyn_cast<dist::RecvOp>(op); recv && isPipelined(recv))
      arrivals.push_back({recv, lastReader(recv)});
  }
  if (!relayed.empty())
    relay.emplace(open("relay", true));
  if (!updated.empty())
    parameters.emplace(open("parameters", true));

  Location loc = func.getLoc();
  exec::HookOp::create(compute->builder, loc, "begin", 0);
  bool reduces = llvm::any_of(func.getBody().front(), [&](Operation &op) {
    return partOf(&op) == Part::Reduce;
  });
  if (failed(trains ? emitTraining(/*peels=*/reduces)
                    : emitLoop(0, count, {{Part::Forward, 0}})))
    return failure();
  exec::HookOp::create(compute->builder, loc, "end", 0);

  declareParameters();
  return success();
}

namespace {

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
    if (failed(dist::verifyPrograms(getOperation())))
      return signalPassFailure();
    getOperation()->setAttr("exec.optimizer",
                            StringAttr::get(&getContext(), optimizer));
    struct Job {
      func::FuncOp function;
      exec::ProgramOp program;
    };
    std::vector<Job> jobs;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto info =
              func->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr))
        jobs.push_back({func, ProgramEmitter::begin(func, info)});
    // A body is gone as soon as its program is there: the next program takes
    // its memory.
    if (failed(
            failableParallelForEach(&getContext(), jobs, [&](const Job &job) {
              func::FuncOp function = job.function;
              if (failed(ProgramEmitter(function, job.program, schedule, states)
                             .emit()))
                return failure();
              function.getBody().dropAllReferences();
              function.getBody().getBlocks().clear();
              return success();
            })))
      return signalPassFailure();
    for (const Job &job : jobs)
      job.function->erase();
  }
};

} // namespace
