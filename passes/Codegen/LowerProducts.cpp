//===- LowerProducts.cpp - matrix products on buffers to library calls ----===//
//
// A contraction over any number of dims is a matrix product in a nest of loops
// as soon as one dim of each kind (rows, columns, summed) has the strides that
// the library can describe. Neighbouring dims are merged first, so that
// [batch, sequence] x hidden is one product and not a loop of them.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace autohet {
#define GEN_PASS_DEF_LOWERPRODUCTS
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using autohet::indexConstant;

namespace {

enum Operand { A, B, C };

/// One loop of a contraction: its extent, and how far a step moves in each
/// operand (0: the operand does not depend on it).
struct Dim {
  int64_t extent; // kDynamic: `extentValue` holds it
  Value extentValue;
  int64_t stride[3];

  bool in(Operand operand) const { return stride[operand] != 0; }
};

/// A contraction as groups of dims of one kind.
struct Contraction {
  SmallVector<Dim> batch, rows, columns, summed;
};

/// Joins dims that are contiguous in every operand: outer * inner. Only static
/// extents can be compared.
void mergeDims(SmallVectorImpl<Dim> &dims) {
  auto follows = [](const Dim &outer, const Dim &inner) {
    if (ShapedType::isDynamic(inner.extent) ||
        ShapedType::isDynamic(outer.extent))
      return false;
    return llvm::all_of(ArrayRef<Operand>{A, B, C}, [&](Operand o) {
      return outer.stride[o] == inner.stride[o] * inner.extent;
    });
  };
  for (size_t i = 0; i < dims.size();) {
    auto outer = llvm::find_if(dims, [&](const Dim &d) {
      return &d != &dims[i] && follows(d, dims[i]);
    });
    if (outer == dims.end()) {
      ++i;
      continue;
    }
    dims[i].extent *= outer->extent;
    dims[i].extentValue = Value();
    dims.erase(outer);
    i = 0;
  }
}

/// The strides of `memref`, or failure if they are known only at run time.
FailureOr<SmallVector<int64_t>> staticStrides(Value memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(memref.getType());
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return failure();
  return strides;
}

FailureOr<Contraction> analyze(linalg::ContractOp op, OpBuilder &b) {
  Value operands[3] = {op.getInputs()[0], op.getInputs()[1],
                       op.getOutputs()[0]};
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<Dim> dims(op.getNumLoops(), Dim{1, Value(), {0, 0, 0}});
  for (Operand o : {A, B, C}) {
    auto type = dyn_cast<MemRefType>(operands[o].getType());
    if (!type || !type.getElementType().isF32() ||
        !maps[o].isProjectedPermutation())
      return failure();
    FailureOr<SmallVector<int64_t>> strides = staticStrides(operands[o]);
    if (failed(strides))
      return failure();
    for (auto [position, stride] : llvm::enumerate(*strides)) {
      Dim &dim = dims[maps[o].getDimPosition(position)];
      dim.stride[o] = stride;
      dim.extent = type.getDimSize(position);
      if (type.isDynamicDim(position) && !dim.extentValue)
        dim.extentValue =
            memref::DimOp::create(b, op.getLoc(), operands[o], position);
    }
  }
  Contraction result;
  for (const Dim &dim : dims) {
    if (dim.extent == 1)
      continue; // moves nowhere
    if (dim.in(A) && dim.in(B) && dim.in(C))
      result.batch.push_back(dim);
    else if (dim.in(A) && dim.in(C))
      result.rows.push_back(dim);
    else if (dim.in(B) && dim.in(C))
      result.columns.push_back(dim);
    else if (dim.in(A) && dim.in(B))
      result.summed.push_back(dim);
    else
      return failure();
  }
  for (auto *group :
       {&result.batch, &result.rows, &result.columns, &result.summed})
    mergeDims(*group);
  // A product of vectors has a matrix dim of extent 1.
  for (auto *group : {&result.rows, &result.columns, &result.summed})
    if (group->empty())
      group->push_back(Dim{1, Value(), {0, 0, 0}});
  return result;
}

/// One operand as the library sees it.
struct Layout {
  bool transposed;
  int64_t leading; // elements from row to row
};

/// Describes an operand with the given dims as rows and columns.
std::optional<Layout> layoutOf(const Dim &row, const Dim &column, Operand o) {
  auto unit = [&](const Dim &d) { return d.extent == 1 || d.stride[o] == 1; };
  // A leading dimension is at least the extent of what it steps over.
  auto leading = [&](const Dim &outer, const Dim &inner) {
    int64_t extent = ShapedType::isDynamic(inner.extent) ? 1 : inner.extent;
    return outer.extent == 1 ? std::max(outer.stride[o], extent)
                             : outer.stride[o];
  };
  auto fits = [&](const Dim &outer, const Dim &inner) {
    return ShapedType::isDynamic(inner.extent) ||
           leading(outer, inner) >= inner.extent;
  };
  if (unit(column) && fits(row, column))
    return Layout{false, leading(row, column)};
  if (unit(row) && fits(column, row))
    return Layout{true, leading(column, row)};
  return std::nullopt;
}

/// The dims of the one product; all others are loops around it.
struct Choice {
  size_t row, column, summed;
  Layout a, b, c;
};

std::optional<Choice> choose(const Contraction &contraction) {
  std::optional<Choice> best;
  double bestSize = 0;
  for (auto [r, row] : llvm::enumerate(contraction.rows))
    for (auto [c, column] : llvm::enumerate(contraction.columns))
      for (auto [s, summed] : llvm::enumerate(contraction.summed)) {
        std::optional<Layout> a = layoutOf(row, summed, A);
        std::optional<Layout> b = layoutOf(summed, column, B);
        std::optional<Layout> result = layoutOf(row, column, C);
        if (!a || !b || !result || result->transposed)
          continue;
        double size = 1;
        for (const Dim *dim : {&row, &column, &summed})
          size *= ShapedType::isDynamic(dim->extent) ? 1e3 : dim->extent;
        if (size > bestSize) {
          best = Choice{r, c, s, *a, *b, *result};
          bestSize = size;
        }
      }
  return best;
}

/// The fill with zero that prepares `op`'s accumulator, if nothing else could
/// see its effect.
linalg::FillOp findZeroFill(linalg::ContractOp op) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(before)) {
      if (fill.getOutputs()[0] != op.getOutputs()[0])
        continue; // of another buffer
      return matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ? fill
                                                                 : nullptr;
    }
    if (!isMemoryEffectFree(before))
      return nullptr;
  }
  return nullptr;
}

func::FuncOp declareGemm(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  StringRef name = "autohet_sgemm";
  if (auto existing = module.lookupSymbol<func::FuncOp>(name))
    return existing;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Type i64 = b.getI64Type(), f32 = b.getF32Type();
  Type pointer = LLVM::LLVMPointerType::get(op->getContext());
  auto type = b.getFunctionType({i64, i64, i64, i64, i64, f32, pointer, i64,
                                 pointer, i64, f32, pointer, i64},
                                {});
  auto function = func::FuncOp::create(b, op->getLoc(), name, type);
  function.setPrivate();
  return function;
}

/// The address of `memref`'s first element plus `offset` elements.
Value addressOf(OpBuilder &b, Location loc, Value memref, Value offset) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(
      b, loc, metadata.getBaseBuffer());
  Value elements = arith::AddIOp::create(b, loc, metadata.getOffset(), offset);
  Value bytes =
      arith::MulIOp::create(b, loc, elements, indexConstant(b, loc, 4));
  Value address = arith::AddIOp::create(b, loc, base, bytes);
  Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), wide);
}

void emitCalls(linalg::ContractOp op, const Contraction &contraction,
               const Choice &choice) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  func::FuncOp gemm = declareGemm(op);
  // Loops: batch and surplus dims; surplus summed dims accumulate.
  SmallVector<Dim> loops(contraction.batch);
  auto addSurplus = [&](ArrayRef<Dim> dims, size_t chosen) {
    for (auto [i, dim] : llvm::enumerate(dims))
      if (i != chosen)
        loops.push_back(dim);
  };
  addSurplus(contraction.rows, choice.row);
  addSurplus(contraction.columns, choice.column);
  addSurplus(contraction.summed, choice.summed);
  float beta = 1;
  if (contraction.summed.size() == 1)
    if (linalg::FillOp fill = findZeroFill(op)) {
      fill.erase();
      beta = 0;
    }

  auto extentOf = [&](const Dim &dim) -> Value {
    return dim.extentValue ? dim.extentValue
                           : indexConstant(b, loc, dim.extent);
  };
  Value zero = indexConstant(b, loc, 0), one = indexConstant(b, loc, 1);
  Value offsets[3] = {zero, zero, zero};
  for (const Dim &dim : loops) {
    auto loop = scf::ForOp::create(b, loc, zero, extentOf(dim), one);
    b.setInsertionPointToStart(loop.getBody());
    for (Operand o : {A, B, C}) {
      Value step = arith::MulIOp::create(b, loc, loop.getInductionVar(),
                                         indexConstant(b, loc, dim.stride[o]));
      offsets[o] = arith::AddIOp::create(b, loc, offsets[o], step);
    }
  }
  Type i64 = b.getI64Type(), f32 = b.getF32Type();
  auto integer = [&](int64_t value) {
    return autohet::intConstant(b, loc, i64, value);
  };
  auto extent = [&](const Dim &dim) -> Value {
    return arith::IndexCastOp::create(b, loc, i64, extentOf(dim));
  };
  Value arguments[] = {integer(choice.a.transposed),
                       integer(choice.b.transposed),
                       extent(contraction.rows[choice.row]),
                       extent(contraction.columns[choice.column]),
                       extent(contraction.summed[choice.summed]),
                       autohet::floatConstant(b, loc, f32, 1),
                       addressOf(b, loc, op.getInputs()[0], offsets[A]),
                       integer(choice.a.leading),
                       addressOf(b, loc, op.getInputs()[1], offsets[B]),
                       integer(choice.b.leading),
                       autohet::floatConstant(b, loc, f32, beta),
                       addressOf(b, loc, op.getOutputs()[0], offsets[C]),
                       integer(choice.c.leading)};
  func::CallOp::create(b, loc, gemm, arguments);
  op.erase();
}

struct LowerProducts : autohet::impl::LowerProductsBase<LowerProducts> {
  void runOnOperation() override {
    SmallVector<linalg::ContractOp> products;
    getOperation().walk([&](linalg::ContractOp op) { products.push_back(op); });
    for (linalg::ContractOp op : products) {
      OpBuilder b(op);
      FailureOr<Contraction> contraction = analyze(op, b);
      std::optional<Choice> choice;
      if (succeeded(contraction)) {
        choice = choose(*contraction);
        if (!choice) {
          // The result may be the transpose of one: C' = B' A'.
          std::swap(contraction->rows, contraction->columns);
          for (auto *group : {&contraction->batch, &contraction->rows,
                              &contraction->columns, &contraction->summed})
            for (Dim &dim : *group)
              std::swap(dim.stride[A], dim.stride[B]);
          choice = choose(*contraction);
          if (choice)
            op.getInputsMutable().assign(
                {op.getInputs()[1], op.getInputs()[0]});
        }
      }
      if (choice) {
        emitCalls(op, *contraction, *choice);
        continue;
      }
      IRRewriter rewriter(op);
      if (failed(linalg::generalizeNamedOp(rewriter, op))) {
        op.emitOpError("is not a product of f32 buffers");
        return signalPassFailure();
      }
    }
  }
};

} // namespace
