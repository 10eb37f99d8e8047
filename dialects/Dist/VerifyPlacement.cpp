//===- VerifyPlacement.cpp - what one function cannot say -------------------===//
//
// Stages and programs are functions of a module that have to fit together. The
// passes that read all of them at once ask this first, so that a module written
// by hand gets a message where it is wrong.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>

using namespace mlir;
using namespace autohet;
using namespace autohet::dist;

/// A straight line of ops of het and dist, and of calls where those are
/// allowed.
static LogicalResult verifyBody(func::FuncOp func, bool allowsCalls) {
  if (failed(het::verifyStraightLine(func)))
    return failure();
  for (Operation &op : func.getBody().front().without_terminator())
    if (!isa_and_nonnull<het::HetDialect, DistDialect>(op.getDialect()) &&
        !(allowsCalls && isa<func::CallOp>(op)))
      return op.emitOpError("is no op of het or dist, and '")
             << func.getSymName() << "' is placed";
  return success();
}

namespace {

/// A transfer's end as its other end would describe it.
using Edge = std::tuple<int64_t, int64_t, int64_t, int64_t>;

/// Matches the sends and receives between the stages of each replica.
class Transfers {
public:
  LogicalResult add(Operation *op, StageAttr stage) {
    if (auto send = dyn_cast<SendOp>(op))
      return add(sends, op, send.getValues(), stage.getReplica(),
                 stage.getStage(), send.getPeer(), send.getChannel());
    auto recv = cast<RecvOp>(op);
    return add(receives, op, recv.getValues(), stage.getReplica(),
               recv.getPeer(), stage.getStage(), recv.getChannel());
  }

  LogicalResult match() {
    for (auto &[edge, op] : sends)
      if (failed(matchEnd(op, receives, edge, "receives")))
        return failure();
    for (auto &[edge, op] : receives)
      if (failed(matchEnd(op, sends, edge, "sends")))
        return failure();
    return success();
  }

private:
  using Ends = std::map<Edge, Operation *>;

  static LogicalResult add(Ends &ends, Operation *op, ValueRange values,
                           int64_t replica, int64_t from, int64_t to,
                           int64_t channel) {
    if (values.size() != 1)
      return op->emitOpError("moves ")
             << values.size() << " values between stages, wanted one";
    if (ends.try_emplace({replica, from, to, channel}, op).second)
      return success();
    return op->emitOpError("uses channel ")
           << channel << " from stage " << from << " to stage " << to
           << " a second time";
  }

  static Type typeOf(Operation *end) {
    auto send = dyn_cast<SendOp>(end);
    return send ? send.getValue().getType() : cast<RecvOp>(end).getType();
  }

  static LogicalResult matchEnd(Operation *op, const Ends &others,
                                const Edge &edge, StringRef what) {
    auto [replica, from, to, channel] = edge;
    auto other = others.find(edge);
    if (other == others.end())
      return op->emitOpError("has no other end: nothing ")
             << what << " channel " << channel << " from stage " << from
             << " to stage " << to << " of replica " << replica;
    if (typeOf(op) != typeOf(other->second))
      return op->emitOpError("moves ")
             << typeOf(op) << ", but the other end " << typeOf(other->second);
    return success();
  }

  Ends sends, receives;
};

} // namespace

LogicalResult autohet::dist::verifyStages(ModuleOp module) {
  std::map<std::pair<int64_t, int64_t>, func::FuncOp> stages;
  std::map<int64_t, func::FuncOp> functionOfRank;
  StageAttr first;
  Transfers transfers;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto stage = func->getAttrOfType<StageAttr>(kStageAttr);
    if (!stage)
      continue;
    if (failed(verifyBody(func, /*allowsCalls=*/false)))
      return failure();
    if (!first)
      first = stage;
    if (stage.getWorld() != first.getWorld())
      return func.emitOpError("is of a world of ")
             << stage.getWorld() << ", others of one of " << first.getWorld();
    if (!stages.try_emplace({stage.getReplica(), stage.getStage()}, func)
             .second)
      return func.emitOpError("is stage ")
             << stage.getStage() << " of replica " << stage.getReplica()
             << " like '"
             << stages.at({stage.getReplica(), stage.getStage()}).getSymName()
             << "'";
    for (int64_t rank : stage.getRanks().asArrayRef())
      if (auto [other, isNew] = functionOfRank.try_emplace(rank, func); !isNew)
        return func.emitOpError("has rank ")
               << rank << ", which serves '" << other->second.getSymName()
               << "' already";
    for (Operation &op : func.getBody().front())
      if (isa<SendOp, RecvOp>(op) && failed(transfers.add(&op, stage)))
        return failure();
  }
  return transfers.match();
}

LogicalResult autohet::dist::verifyPrograms(ModuleOp module) {
  std::map<int64_t, func::FuncOp> functionOfRank;
  ProgramAttr first;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto program = func->getAttrOfType<ProgramAttr>(kProgramAttr);
    if (!program)
      continue;
    // Kernels, once they are formed, are called.
    if (failed(verifyBody(func, /*allowsCalls=*/true)))
      return failure();
    if (!first)
      first = program;
    if (program.getWorld() != first.getWorld())
      return func.emitOpError("is of a world of ")
             << program.getWorld() << ", others of one of " << first.getWorld();
    if (auto [other, isNew] =
            functionOfRank.try_emplace(program.getRank(), func);
        !isNew)
      return func.emitOpError("has rank ") << program.getRank() << " like '"
                                           << other->second.getSymName() << "'";
  }
  return success();
}
