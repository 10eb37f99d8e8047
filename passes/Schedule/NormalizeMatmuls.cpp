//===- NormalizeMatmuls.cpp - every product one gemm ------------------------===//
//
// Libraries multiply consecutive row-major matrices. het.matmul pairs any dims
// with any; this pass puts a transpose where the dims do not lie as two runs.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "autohet/Passes/Schedule/Passes.h"

namespace autohet {
#define GEN_PASS_DEF_NORMALIZEMATMULS
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// How one operand's dims lie.
enum class Layout { FreeContract, ContractFree, Mixed };

/// Dims of an operand that are neither batch nor contracted, in order.
SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> batch,
                              ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

/// [batch.., free.., contract..] or [batch.., contract.., free..], each list in
/// its own order; with no free dims both hold and the first is said.
Layout layoutOf(int64_t rank, ArrayRef<int64_t> batch,
                ArrayRef<int64_t> contract) {
  SmallVector<int64_t> order(batch);
  SmallVector<int64_t> free = freeDims(rank, batch, contract);
  llvm::append_range(order, free);
  llvm::append_range(order, contract);
  if (llvm::equal(order, llvm::seq<int64_t>(0, rank)))
    return Layout::FreeContract;
  order.assign(batch.begin(), batch.end());
  llvm::append_range(order, contract);
  llvm::append_range(order, free);
  return llvm::equal(order, llvm::seq<int64_t>(0, rank)) ? Layout::ContractFree
                                                         : Layout::Mixed;
}

int64_t extent(RankedTensorType type, ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= type.getDimSize(dim);
  return product;
}

struct NormalizeMatmuls
    : autohet::impl::NormalizeMatmulsBase<NormalizeMatmuls> {
  /// Transposes `value` to [batch, free, contract] and renumbers its dims.
  Value normalize(OpBuilder &builder, Location loc, Value value,
                  SmallVector<int64_t> &batch, SmallVector<int64_t> &contract) {
    int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    SmallVector<int64_t> order(batch);
    llvm::append_range(order, freeDims(rank, batch, contract));
    llvm::append_range(order, contract);
    for (auto [i, dim] : llvm::enumerate(batch))
      dim = i;
    for (auto [i, dim] : llvm::enumerate(contract))
      dim = rank - int64_t(contract.size()) + int64_t(i);
    return het::TransposeOp::create(builder, loc, value, order);
  }

  void runOnOperation() override {
    getOperation().walk([&](het::MatmulOp op) {
      if (!isLibraryProduct(op) || matchGemm(op))
        return;
      OpBuilder builder(op);
      SmallVector<int64_t> lhsBatch(op.getLhsBatch()),
          rhsBatch(op.getRhsBatch()), lhsContract(op.getLhsContract()),
          rhsContract(op.getRhsContract());
      Value lhs = op.getLhs(), rhs = op.getRhs();
      auto copyPhase = [&](Value v) {
        if (Attribute phase = op->getAttr(het::kPhaseAttr))
          v.getDefiningOp()->setAttr(het::kPhaseAttr, phase);
        if (Attribute unit = op->getAttr(het::kUnitAttr))
          v.getDefiningOp()->setAttr(het::kUnitAttr, unit);
      };
      auto rank = [](Value v) {
        return cast<RankedTensorType>(v.getType()).getRank();
      };
      if (layoutOf(rank(lhs), lhsBatch, lhsContract) == Layout::Mixed)
        copyPhase(
            lhs = normalize(builder, op.getLoc(), lhs, lhsBatch, lhsContract));
      if (layoutOf(rank(rhs), rhsBatch, rhsContract) == Layout::Mixed)
        copyPhase(
            rhs = normalize(builder, op.getLoc(), rhs, rhsBatch, rhsContract));
      op.getLhsMutable().assign(lhs);
      op.getRhsMutable().assign(rhs);
      op.setLhsBatch(lhsBatch);
      op.setRhsBatch(rhsBatch);
      op.setLhsContract(lhsContract);
      op.setRhsContract(rhsContract);
      assert(matchGemm(op) && "two runs of dims are a gemm");
    });
  }
};

} // namespace

bool autohet::isLibraryProduct(het::MatmulOp op) {
  return op.getType().getElementType().isF32();
}

std::optional<GemmShape> autohet::matchGemm(het::MatmulOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  Layout a = layoutOf(lhs.getRank(), op.getLhsBatch(), op.getLhsContract());
  Layout b = layoutOf(rhs.getRank(), op.getRhsBatch(), op.getRhsContract());
  if (a == Layout::Mixed || b == Layout::Mixed)
    return std::nullopt;
  auto free = [](RankedTensorType type, ArrayRef<int64_t> batch,
                 ArrayRef<int64_t> contract) {
    return extent(type, freeDims(type.getRank(), batch, contract));
  };
  return GemmShape{extent(lhs, op.getLhsBatch()),
                   free(lhs, op.getLhsBatch(), op.getLhsContract()),
                   free(rhs, op.getRhsBatch(), op.getRhsContract()),
                   extent(lhs, op.getLhsContract()),
                   a == Layout::ContractFree,
                   b == Layout::FreeContract};
}
