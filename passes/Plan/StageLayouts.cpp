//===- StageLayouts.cpp - how a stage's values lie on its ranks -------------===//

#include "autohet/Passes/Plan/StageLayouts.h"

using namespace mlir;
using namespace autohet;
using het::Layout;

SmallVector<Layout> StageLayouts::wantedLayouts(Operation *op) const {
  return llvm::map_to_vector(op->getResults(), [&](Value result) {
    if (!result.hasOneUse())
      return Layout();
    auto gradient = dyn_cast<het::GradientOp>(*result.user_begin());
    return gradient ? seeds.lookup(gradient.getName(), gradient.getOffsets())
                    : Layout();
  });
}

het::ShardLayouts StageLayouts::choose(Operation *op) {
  std::optional<het::ShardLayouts> chosen;
  if (auto parameter = dyn_cast<het::ParameterOp>(op); parameter && ranks > 1) {
    chosen = het::ShardLayouts{
        {}, {seeds.lookup(parameter.getName(), parameter.getOffsets())}};
  } else if (auto shardable = dyn_cast<het::ShardableOpInterface>(op);
             shardable && ranks > 1) {
    chosen = shardable.chooseShards(
        llvm::map_to_vector(op->getOperands(),
                            [&](Value operand) { return of(operand); }),
        wantedLayouts(op));
  }
  // Else every rank does all of it.
  if (!chosen)
    chosen = het::ShardLayouts{SmallVector<Layout>(op->getNumOperands()),
                               SmallVector<Layout>(op->getNumResults())};
  for (auto [value, layout] :
       llvm::zip_equal(op->getResults(), chosen->results))
    layouts[value] = layout;
  // Its other readers follow: the backward of a product by rows, as its
  // forward.
  for (auto [value, layout] :
       llvm::zip_equal(op->getOperands(), chosen->operands))
    if (layout.kind == Layout::Split && of(value).kind == Layout::Whole &&
        value.getDefiningOp<het::ParameterOp>())
      layouts[value] = layout;
  return *chosen;
}
