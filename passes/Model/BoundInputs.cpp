//===- BoundInputs.cpp - het-bound-inputs -----------------------------------===//
//
// Which values an integer input may have is known from what it indexes. Said
// here once, on the argument, so that the runtime can refuse a token outside
// the vocabulary by name before any kernel reads beyond a table.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {
#define GEN_PASS_DEF_BOUNDINPUTS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet::het;

namespace {

/// The argument that has the same elements as `v`, in whatever shape.
BlockArgument argumentBehind(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<ReshapeOp, CastOp, BroadcastOp, TransposeOp, SliceOp>(op))
      return {};
    v = op->getOperand(0);
  }
  return cast<BlockArgument>(v);
}

struct BoundInputs : autohet::impl::BoundInputsBase<BoundInputs> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    function.walk([&](Operation *op) {
      if (auto embedding = dyn_cast<EmbeddingOp>(op))
        bound(function, embedding.getIds(),
              cast<RankedTensorType>(embedding.getTable().getType())
                  .getDimSize(0));
      if (auto loss = dyn_cast<CrossEntropyOp>(op))
        bound(function, loss.getLabels(),
              cast<RankedTensorType>(loss.getLogits().getType())
                  .getShape()
                  .back());
    });
  }

  /// The smallest bound wins where an input indexes several tables.
  void bound(func::FuncOp function, Value indices, int64_t count) {
    BlockArgument argument = argumentBehind(indices);
    if (!argument || argument.getOwner() != &function.front())
      return;
    unsigned number = argument.getArgNumber();
    if (auto known =
            function.getArgAttrOfType<IntegerAttr>(number, kVocabularyAttr))
      count = std::min(count, known.getInt());
    function.setArgAttr(number, kVocabularyAttr,
                        Builder(&getContext()).getI64IntegerAttr(count));
  }
};

} // namespace
