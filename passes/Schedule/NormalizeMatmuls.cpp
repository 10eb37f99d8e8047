//===- NormalizeMatmuls.cpp - every product one gemm ------------------------===//
//
// Libraries multiply consecutive row-major matrices. het.matmul pairs any dims
// with any; this pass puts a transpose where the dims do not lie as two runs.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "autohet/Passes/Schedule/KernelGroups.h"
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

/// Transposes `value` to [batch, free, contract] and renumbers its dims.
Value normalize(OpBuilder &builder, Operation *op, Value value,
                SmallVector<int64_t> &batch, SmallVector<int64_t> &contract) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  SmallVector<int64_t> order(batch);
  llvm::append_range(order, freeDims(rank, batch, contract));
  llvm::append_range(order, contract);
  for (auto [i, dim] : llvm::enumerate(batch))
    dim = i;
  for (auto [i, dim] : llvm::enumerate(contract))
    dim = rank - int64_t(contract.size()) + int64_t(i);
  auto transpose =
      het::TransposeOp::create(builder, op->getLoc(), value, order);
  for (StringRef name : {het::kPhaseAttr, het::kUnitAttr})
    if (Attribute attribute = op->getAttr(name))
      transpose->setAttr(name, attribute);
  return transpose;
}

struct NormalizeMatmuls
    : autohet::impl::NormalizeMatmulsBase<NormalizeMatmuls> {
  void runOnOperation() override { normalizeMatmuls(getOperation()); }
};

} // namespace

void autohet::normalizeMatmuls(func::FuncOp function) {
  function.walk([&](het::MatmulOp op) {
    if (!isLibraryProduct(op) || matchGemm(op))
      return;
    OpBuilder builder(op);
    SmallVector<int64_t> lhsBatch(op.getLhsBatch()), rhsBatch(op.getRhsBatch()),
        lhsContract(op.getLhsContract()), rhsContract(op.getRhsContract());
    Value lhs = op.getLhs(), rhs = op.getRhs();
    auto rank = [](Value v) {
      return cast<RankedTensorType>(v.getType()).getRank();
    };
    if (layoutOf(rank(lhs), lhsBatch, lhsContract) == Layout::Mixed)
      lhs = normalize(builder, op, lhs, lhsBatch, lhsContract);
    if (layoutOf(rank(rhs), rhsBatch, rhsContract) == Layout::Mixed)
      rhs = normalize(builder, op, rhs, rhsBatch, rhsContract);
    op.getLhsMutable().assign(lhs);
    op.getRhsMutable().assign(rhs);
    op.setLhsBatch(lhsBatch);
    op.setRhsBatch(rhsBatch);
    op.setLhsContract(lhsContract);
    op.setRhsContract(rhsContract);
    assert(matchGemm(op) && "two runs of dims are a gemm");
  });
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
