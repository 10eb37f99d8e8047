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

bool isRun(ArrayRef<int64_t> dims, int64_t first) {
  return llvm::equal(dims, llvm::seq<int64_t>(first, first + dims.size()));
}

/// [batch.., free.., contract..] or [batch.., contract.., free..], each list in
/// its own order; with no free dims both hold and the first is said.
Layout layoutOf(int64_t rank, ArrayRef<int64_t> batch,
                ArrayRef<int64_t> contract) {
  // Free dims rise, so that they are a run wherever the other two are.
  if (!isRun(batch, 0))
    return Layout::Mixed;
  if (isRun(contract, rank - int64_t(contract.size())))
    return Layout::FreeContract;
  return isRun(contract, int64_t(batch.size())) ? Layout::ContractFree
                                                : Layout::Mixed;
}

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

/// The transposes of a function so far. Equal ones of one place are one.
class Transposes {
public:
  /// `op`, or the equal one before it, which then replaces it.
  het::TransposeOp merge(het::TransposeOp op) {
    het::TransposeOp &first = known[{op.getOperand(), op.getPermutationAttr(),
                                     op->getDiscardableAttrDictionary()}];
    if (!first)
      return first = op;
    op.replaceAllUsesWith(first.getResult());
    replaced.push_back(op);
    return first;
  }
  /// Only then: callers know ops by their addresses.
  void eraseReplaced() {
    for (het::TransposeOp op : replaced)
      op.erase();
  }

private:
  llvm::DenseMap<std::tuple<Value, Attribute, Attribute>, het::TransposeOp>
      known;
  SmallVector<het::TransposeOp> replaced;
};

/// Transposes `value` to [batch, free, contract] and renumbers its dims.
Value normalize(OpBuilder &builder, Operation *op, Value value,
                SmallVector<int64_t> &batch, SmallVector<int64_t> &contract,
                Transposes &transposes) {
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
  return transposes.merge(transpose);
}

struct NormalizeMatmuls
    : autohet::impl::NormalizeMatmulsBase<NormalizeMatmuls> {
  void runOnOperation() override { normalizeMatmuls(getOperation()); }
};

} // namespace

static void normalize(het::MatmulOp op, Transposes &transposes) {
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
    lhs = normalize(builder, op, lhs, lhsBatch, lhsContract, transposes);
  if (layoutOf(rank(rhs), rhsBatch, rhsContract) == Layout::Mixed)
    rhs = normalize(builder, op, rhs, rhsBatch, rhsContract, transposes);
  op.getLhsMutable().assign(lhs);
  op.getRhsMutable().assign(rhs);
  op.setLhsBatch(lhsBatch);
  op.setRhsBatch(rhsBatch);
  op.setLhsContract(lhsContract);
  op.setRhsContract(rhsContract);
  assert(matchGemm(op) && "two runs of dims are a gemm");
}

void autohet::normalizeMatmuls(func::FuncOp function) {
  if (function.isExternal())
    return;
  Transposes transposes;
  for (Operation &op : function.getBody().front())
    if (auto transpose = dyn_cast<het::TransposeOp>(op))
      transposes.merge(transpose);
    else if (auto matmul = dyn_cast<het::MatmulOp>(op))
      normalize(matmul, transposes);
  transposes.eraseReplaced();
}

std::optional<GemmShape> autohet::matchGemm(het::MatmulOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  size_t batch = op.getLhsBatch().size(), contract = op.getLhsContract().size();
  Layout a = layoutOf(lhs.getRank(), op.getLhsBatch(), op.getLhsContract());
  Layout b = layoutOf(rhs.getRank(), op.getRhsBatch(), op.getRhsContract());
  if (a == Layout::Mixed || b == Layout::Mixed)
    return std::nullopt;
  auto contracted = [&](ArrayRef<int64_t> matrix, Layout layout) {
    return layout == Layout::FreeContract ? matrix.take_back(contract)
                                          : matrix.take_front(contract);
  };
  auto free = [&](ArrayRef<int64_t> matrix, Layout layout) {
    return layout == Layout::FreeContract ? matrix.drop_back(contract)
                                          : matrix.drop_front(contract);
  };
  ArrayRef<int64_t> left = lhs.getShape().drop_front(batch),
                    right = rhs.getShape().drop_front(batch);
  return GemmShape{product(lhs.getShape().take_front(batch)),
                   product(free(left, a)),
                   product(free(right, b)),
                   product(contracted(left, a)),
                   a == Layout::ContractFree,
                   b == Layout::FreeContract};
}
