//===- FuseRowLoops.cpp - one loop over rows for all steps of a row -------===//
//
// Lowering one op at a time walks the whole tensor once a step. Joining the
// loops over rows makes every step after the first read from the nearest cache,
// and lets whole-tensor temporaries shrink to a row or a number.
//
// The test for joining is simple because kernels are: two loops may be joined
// if every two accesses that conflict name their own loop's variable as the
// same index, so that only equal iterations depend on each other.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace autohet {
#define GEN_PASS_DEF_FUSEROWLOOPS
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

struct Access {
  Value buffer;
  OperandRange indices;
  bool writes;
};

/// The memory that `buffer` is a view of.
Value rootOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

std::optional<Access> accessOf(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return Access{load.getMemRef(), load.getIndices(), false};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return Access{store.getMemRef(), store.getIndices(), true};
  return std::nullopt;
}

/// All accesses of `root` and in it, or failure if it has effects that are not
/// loads and stores.
FailureOr<SmallVector<Access>> accessesIn(Operation *root) {
  SmallVector<Access> accesses;
  WalkResult result = root->walk([&](Operation *op) {
    if (std::optional<Access> access = accessOf(op)) {
      accesses.push_back(*access);
      return WalkResult::advance();
    }
    bool harmless = op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                    isMemoryEffectFree(op) || isa<memref::AllocOp>(op);
    return harmless ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  return accesses;
}

bool haveSameBounds(scf::ForOp first, scf::ForOp second) {
  auto same = [](Value a, Value b) {
    return isEqualConstantIntOrValue(getAsOpFoldResult(a),
                                     getAsOpFoldResult(b));
  };
  return same(first.getLowerBound(), second.getLowerBound()) &&
         same(first.getUpperBound(), second.getUpperBound()) &&
         same(first.getStep(), second.getStep()) &&
         first.getInitArgs().empty() && second.getInitArgs().empty();
}

/// Whether only equal iterations of the two loops touch the same element.
bool dependOnlyWithinIterations(scf::ForOp first, scf::ForOp second) {
  FailureOr<SmallVector<Access>> before = accessesIn(first);
  FailureOr<SmallVector<Access>> after = accessesIn(second);
  if (failed(before) || failed(after))
    return false;
  for (const Access &a : *before)
    for (const Access &b : *after) {
      if ((!a.writes && !b.writes) || rootOf(a.buffer) != rootOf(b.buffer))
        continue;
      if (a.buffer != b.buffer)
        return false; // two views: they may overlap anyhow
      bool aligned =
          llvm::any_of(llvm::zip_equal(a.indices, b.indices), [&](auto pair) {
            return std::get<0>(pair) == first.getInductionVar() &&
                   std::get<1>(pair) == second.getInductionVar();
          });
      if (!aligned)
        return false;
    }
  return true;
}

/// Whether the two may run in either order.
bool commute(Operation *first, Operation *second) {
  FailureOr<SmallVector<Access>> before = accessesIn(first);
  FailureOr<SmallVector<Access>> after = accessesIn(second);
  if (failed(before) || failed(after))
    return false;
  for (const Access &a : *before)
    for (const Access &b : *after)
      if ((a.writes || b.writes) && rootOf(a.buffer) == rootOf(b.buffer))
        return false;
  return true;
}

/// Moves what lies between the loops ahead of both, if it may run there.
bool clearBetween(scf::ForOp first, scf::ForOp second) {
  SmallVector<Operation *> between;
  for (Operation *op = first->getNextNode(); op != second;
       op = op->getNextNode()) {
    if (!commute(first, op))
      return false;
    between.push_back(op);
  }
  for (Operation *op : between)
    op->moveBefore(first);
  return true;
}

/// Appends `second`'s body to `first`'s.
void join(scf::ForOp first, scf::ForOp second) {
  second.getInductionVar().replaceAllUsesWith(first.getInductionVar());
  Block *target = first.getBody(), *source = second.getBody();
  source->getTerminator()->erase();
  target->getOperations().splice(target->getTerminator()->getIterator(),
                                 source->getOperations());
  second.erase();
}

/// Joins the loops of `block` with earlier ones, then those inside.
void fuseLoops(Block &block) {
  SmallVector<scf::ForOp> loops;
  for (auto loop : llvm::make_early_inc_range(block.getOps<scf::ForOp>())) {
    auto partner = llvm::find_if(llvm::reverse(loops), [&](scf::ForOp earlier) {
      return haveSameBounds(earlier, loop) &&
             dependOnlyWithinIterations(earlier, loop) &&
             clearBetween(earlier, loop);
    });
    if (partner != loops.rend())
      join(*partner, loop);
    else
      loops.push_back(loop);
  }
  for (scf::ForOp loop : loops)
    fuseLoops(*loop.getBody());
}

/// Drops the outermost dim of a temporary of which each iteration of one loop
/// uses only its own element; true if it did.
bool shrink(memref::AllocOp op) {
  MemRefType type = op.getType();
  if (type.getRank() == 0 || !type.hasStaticShape())
    return false;
  Value index;
  for (Operation *user : op->getUsers()) {
    std::optional<Access> access = accessOf(user);
    if (!access || access->buffer != op.getResult())
      return false;
    if (index && access->indices.front() != index)
      return false;
    index = access->indices.front();
  }
  auto variable = dyn_cast_if_present<BlockArgument>(index);
  bool isLoopVariable =
      variable && isa<scf::ForOp>(variable.getOwner()->getParentOp());
  if (!isLoopVariable && !(index && type.getDimSize(0) == 1))
    return false;
  OpBuilder b(op);
  auto smaller =
      MemRefType::get(type.getShape().drop_front(), type.getElementType());
  Value place =
      memref::AllocOp::create(b, op.getLoc(), smaller, op.getAlignmentAttr());
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    b.setInsertionPoint(user);
    ValueRange rest = accessOf(user)->indices.drop_front();
    if (auto load = dyn_cast<memref::LoadOp>(user))
      load.replaceAllUsesWith(
          memref::LoadOp::create(b, load.getLoc(), place, rest).getResult());
    else
      memref::StoreOp::create(b, user->getLoc(),
                              cast<memref::StoreOp>(user).getValueToStore(),
                              place, rest);
    user->erase();
  }
  op.erase();
  return true;
}

struct FuseRowLoops : autohet::impl::FuseRowLoopsBase<FuseRowLoops> {
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    for (Block &block : getOperation().getBody())
      fuseLoops(block);
    bool changed = true;
    while (changed) {
      changed = false;
      SmallVector<memref::AllocOp> temporaries;
      getOperation().walk(
          [&](memref::AllocOp op) { temporaries.push_back(op); });
      for (memref::AllocOp op : temporaries)
        changed |= shrink(op);
    }
  }
};

} // namespace
