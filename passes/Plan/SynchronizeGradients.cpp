//===- SynchronizeGradients.cpp - one owner a slice -------------------------===//
//
// Replicas may cut a parameter differently. All devices' boxes of a parameter
// have a common refinement, a grid of cells; each cell has one owner among its
// holders, which sums the parts in rank order, updates once and sends the new
// bytes back. Copies stay bit-equal because there is one computation.
//
// Cells are handled in one order on all devices. A send is started and never
// waited for before the device's own next cell, so at the earliest cell where
// somebody waits all its parties have arrived: no deadlock by construction.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Plan/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace autohet {
#define GEN_PASS_DEF_SYNCHRONIZEGRADIENTS
#include "autohet/Passes/Plan/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// Channels of the update; those below are transfers and collectives.
constexpr int64_t kFirstChannel = int64_t(1) << 32;

/// A part of a parameter: where it starts and how large it is, dim by dim.
struct Box {
  SmallVector<int64_t> offsets, sizes;

  bool operator==(const Box &other) const {
    return offsets == other.offsets && sizes == other.sizes;
  }
  bool contains(const Box &cell) const {
    for (auto [o, s, co, cs] :
         llvm::zip_equal(offsets, sizes, cell.offsets, cell.sizes))
      if (co < o || co + cs > o + s)
        return false;
    return true;
  }
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : sizes)
      product *= size;
    return product;
  }
};

/// What a device has to do with a box of a parameter.
struct Use {
  int64_t rank;
  Box box;
};

/// A cell of the refinement, with who takes part.
struct Cell {
  StringAttr name;
  Box box;
  Type element;
  SmallVector<int64_t> globalShape;
  Location loc;
  SmallVector<int64_t> holders, contributors; ///< ranks, rising
  int64_t owner;
};

/// All that the devices together know of one parameter.
struct Parameter {
  Type element;
  SmallVector<int64_t> globalShape;
  Location loc;
  SmallVector<Use> held, contributed;
};

struct SynchronizeGradients
    : autohet::impl::SynchronizeGradientsBase<SynchronizeGradients> {
  using SynchronizeGradientsBase::SynchronizeGradientsBase;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto info =
              func->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr))
        programs[info.getRank()] = func;
    if (programs.empty() || !hasGradients())
      return;
    if (!isOwnerKnown()) {
      getOperation().emitError("unknown state owner '")
          << stateOwner << "', wanted spread, first or a device of the plan";
      return signalPassFailure();
    }
    collect();
    for (auto &[name, parameter] : parameters)
      refine(name, parameter);
    chooseOwners();
    for (auto &[rank, func] : programs)
      emit(rank, func);
  }

  bool isOwnerKnown() {
    return stateOwner == "spread" || stateOwner == "first" ||
           llvm::any_of(programs, [&](auto &program) {
             return program.second.getName() == stateOwner;
           });
  }

  bool hasGradients() {
    return getOperation()
        .walk([](het::GradientOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  template <typename OpT>
  static Box boxOf(OpT op, RankedTensorType type) {
    Box box;
    box.sizes.assign(type.getShape().begin(), type.getShape().end());
    if (op.getOffsets())
      box.offsets.assign(op.getOffsets()->begin(), op.getOffsets()->end());
    else
      box.offsets.assign(type.getRank(), 0);
    return box;
  }

  void collect() {
    auto entry = [&](StringAttr name, RankedTensorType type,
                     ArrayRef<int64_t> whole, Location loc) -> Parameter & {
      return parameters
          .insert({name, Parameter{type.getElementType(),
                                   SmallVector<int64_t>(whole),
                                   loc,
                                   {},
                                   {}}})
          .first->second;
    };
    auto add = [](SmallVector<Use> &uses, int64_t rank, Box box) {
      if (llvm::none_of(uses, [&](Use &use) {
            return use.rank == rank && use.box == box;
          }))
        uses.push_back({rank, std::move(box)});
    };
    for (auto &[rank, func] : programs)
      for (Operation &op : func.getBody().front()) {
        if (auto held = dyn_cast<het::ParameterOp>(op);
            held && held.isTrained()) {
          auto type = held.getType();
          add(entry(held.getNameAttr(), type, held.getWholeShape(),
                    held.getLoc())
                  .held,
              rank, boxOf(held, type));
        }
        if (auto gradient = dyn_cast<het::GradientOp>(op)) {
          auto type = cast<RankedTensorType>(gradient.getValue().getType());
          add(entry(gradient.getNameAttr(), type, gradient.getWholeShape(),
                    gradient.getLoc())
                  .contributed,
              rank, boxOf(gradient, type));
        }
      }
  }

  /// The grid that all cuts of all boxes and the whole make. A cell that no op
  /// reads (positions beyond the sequence) is still a part of the parameter:
  /// its gradient is zero, and it has weight decay.
  void refine(StringAttr name, Parameter &parameter) {
    if (parameter.held.empty() || parameter.contributed.empty())
      return; // to PyTorch, a parameter without gradient has none to apply
    unsigned rank = parameter.globalShape.size();
    SmallVector<SmallVector<int64_t>> cuts(rank);
    for (unsigned dim = 0; dim < rank; ++dim)
      cuts[dim] = {0, parameter.globalShape[dim]};
    for (auto *uses : {&parameter.held, &parameter.contributed})
      for (const Use &use : *uses)
        for (unsigned dim = 0; dim < rank; ++dim) {
          cuts[dim].push_back(use.box.offsets[dim]);
          cuts[dim].push_back(use.box.offsets[dim] + use.box.sizes[dim]);
        }
    for (auto &dim : cuts) {
      llvm::sort(dim);
      dim.erase(llvm::unique(dim), dim.end());
    }
    Box cell;
    cell.offsets.resize(rank);
    cell.sizes.resize(rank);
    visit(name, parameter, cuts, 0, cell);
  }

  void visit(StringAttr name, Parameter &parameter,
             ArrayRef<SmallVector<int64_t>> cuts, unsigned dim, Box &cell) {
    if (dim < cuts.size()) {
      for (unsigned i = 0; i + 1 < cuts[dim].size(); ++i) {
        cell.offsets[dim] = cuts[dim][i];
        cell.sizes[dim] = cuts[dim][i + 1] - cuts[dim][i];
        visit(name, parameter, cuts, dim + 1, cell);
      }
      return;
    }
    auto ranksOf = [&](ArrayRef<Use> uses) {
      SmallVector<int64_t> ranks;
      for (const Use &use : uses)
        if (use.box.contains(cell) && !llvm::is_contained(ranks, use.rank))
          ranks.push_back(use.rank);
      llvm::sort(ranks);
      return ranks;
    };
    Cell entry{name,
               cell,
               parameter.element,
               parameter.globalShape,
               parameter.loc,
               ranksOf(parameter.held),
               ranksOf(parameter.contributed),
               -1};
    if (entry.holders.empty())
      entry.holders = {parameter.held.front().rank};
    cells.push_back(std::move(entry));
  }

  /// Largest cells first, each to the holder that owns least so far.
  void chooseOwners() {
    SmallVector<Cell *> order;
    for (Cell &cell : cells)
      order.push_back(&cell);
    llvm::sort(order, [](Cell *a, Cell *b) {
      int64_t sizeA = a->box.elements(), sizeB = b->box.elements();
      return sizeA != sizeB ? sizeA > sizeB
                            : a < b; // equal ones in their order
    });
    llvm::DenseMap<int64_t, int64_t> owned;
    for (Cell *cell : order) {
      cell->owner = cell->holders.front();
      if (stateOwner != "first")
        for (int64_t holder : cell->holders) {
          auto info = programs[holder]->getAttrOfType<dist::ProgramAttr>(
              dist::kProgramAttr);
          if (info.getDevice().getValue() == stateOwner) {
            cell->owner = holder;
            break;
          }
          if (owned.lookup(holder) < owned.lookup(cell->owner))
            cell->owner = holder;
        }
      owned[cell->owner] += cell->box.elements();
    }
  }

  //===--- one device's part ---===//

  RankedTensorType typeOf(const Cell &cell) {
    return RankedTensorType::get(cell.box.sizes, cell.element);
  }

  void emit(int64_t rank, func::FuncOp func) {
    OpBuilder builder(func.getBody().front().getTerminator());
    Attribute update = builder.getStringAttr("update");
    llvm::DenseMap<unsigned, Value> summed, fresh;
    auto mark = [&](Operation *op) { op->setAttr("het.phase", update); };

    for (auto [c, cell] : llvm::enumerate(cells)) {
      Value mine;
      if (llvm::is_contained(cell.contributors, rank))
        mine = ownPart(builder, cell, rank, mark);
      if (cell.owner != rank) {
        if (mine)
          mark(dist::SendOp::create(builder, cell.loc, mine, cell.owner,
                                    gradientChannel(c), true));
        continue;
      }
      SmallVector<Value> parts;
      for (int64_t contributor : cell.contributors) {
        if (contributor == rank) {
          parts.push_back(mine);
          continue;
        }
        auto recv = dist::RecvOp::create(builder, cell.loc, typeOf(cell),
                                         contributor, gradientChannel(c), true);
        mark(recv);
        parts.push_back(recv.getResult());
      }
      Value sum = parts.empty() ? zeros(builder, cell, mark) : parts.front();
      for (Value part :
           ArrayRef<Value>(parts).drop_front(parts.empty() ? 0 : 1)) {
        sum = het::AddOp::create(builder, cell.loc, sum, part);
        mark(sum.getDefiningOp());
      }
      summed[c] = sum;
      mark(dist::NormOp::create(builder, cell.loc, sum));
    }

    mark(dist::AgreeOp::create(builder, func.getLoc()));

    for (auto [c, cell] : llvm::enumerate(cells)) {
      bool holds = llvm::is_contained(cell.holders, rank);
      if (cell.owner == rank) {
        auto fresher = dist::UpdateOp::create(builder, cell.loc, typeOf(cell),
                                              cell.name, cell.box.offsets,
                                              cell.globalShape, summed[c]);
        mark(fresher);
        fresh[c] = fresher.getResult();
        for (int64_t holder : cell.holders)
          if (holder != rank)
            mark(dist::SendOp::create(builder, cell.loc, fresher.getResult(),
                                      holder, parameterChannel(c), true));
      } else if (holds) {
        auto recv = dist::RecvOp::create(builder, cell.loc, typeOf(cell),
                                         cell.owner, parameterChannel(c), true);
        mark(recv);
        fresh[c] = recv.getResult();
      }
    }
    for (auto &[name, parameter] : parameters)
      for (const Use &use : parameter.held)
        if (use.rank == rank)
          if (Value whole =
                  assemble(builder, name, use.box, 0, use.box, fresh, mark))
            mark(dist::StoreParameterOp::create(builder, parameter.loc, name,
                                                whole, use.box.offsets,
                                                parameter.globalShape));
  }

  /// The gradient of a cell that no op reads.
  Value zeros(OpBuilder &builder, const Cell &cell,
              llvm::function_ref<void(Operation *)> mark) {
    Value zero = het::createSplat(builder, cell.loc,
                                  RankedTensorType::get({}, cell.element), 0);
    Value all =
        het::BroadcastOp::create(builder, cell.loc, zero, cell.box.sizes);
    mark(zero.getDefiningOp());
    mark(all.getDefiningOp());
    return all;
  }

  /// This device's sum of gradients of the cell, cut out of its boxes.
  Value ownPart(OpBuilder &builder, const Cell &cell, int64_t rank,
                llvm::function_ref<void(Operation *)> mark) {
    Value sum;
    for (const Use &use : parameters.find(cell.name)->second.contributed) {
      if (use.rank != rank || !use.box.contains(cell.box))
        continue;
      auto type = RankedTensorType::get(use.box.sizes, cell.element);
      Value part =
          dist::LocalGradientOp::create(builder, cell.loc, type, cell.name,
                                        use.box.offsets, cell.globalShape);
      mark(part.getDefiningOp());
      if (!(use.box == cell.box)) {
        SmallVector<int64_t> offsets, strides(cell.box.sizes.size(), 1);
        for (auto [inner, outer] :
             llvm::zip_equal(cell.box.offsets, use.box.offsets))
          offsets.push_back(inner - outer);
        part = het::SliceOp::create(builder, cell.loc, part, offsets,
                                    cell.box.sizes, strides);
        mark(part.getDefiningOp());
      }
      // Two boxes of one device may overlap: a tied use of a part.
      if (sum) {
        sum = het::AddOp::create(builder, cell.loc, sum, part);
        mark(sum.getDefiningOp());
      } else {
        sum = part;
      }
    }
    return sum;
  }

  /// The cells of `region` put together, dim after dim; null where no cell of
  /// it has been updated.
  Value assemble(OpBuilder &builder, StringAttr name, const Box &box,
                 unsigned dim, Box region,
                 llvm::DenseMap<unsigned, Value> &fresh,
                 llvm::function_ref<void(Operation *)> mark) {
    if (dim == box.sizes.size()) {
      for (auto [c, cell] : llvm::enumerate(cells))
        if (cell.name == name && cell.box == region)
          return fresh.lookup(c);
      return nullptr;
    }
    llvm::SetVector<std::pair<int64_t, int64_t>> spans;
    for (const Cell &cell : cells)
      if (cell.name == name && box.contains(cell.box))
        spans.insert({cell.box.offsets[dim], cell.box.sizes[dim]});
    SmallVector<std::pair<int64_t, int64_t>> sorted(spans.begin(), spans.end());
    llvm::sort(sorted);
    SmallVector<Value> parts;
    for (auto [offset, size] : sorted) {
      region.offsets[dim] = offset;
      region.sizes[dim] = size;
      if (Value part =
              assemble(builder, name, box, dim + 1, region, fresh, mark))
        parts.push_back(part);
    }
    if (parts.size() <= 1)
      return parts.empty() ? Value() : parts.front();
    Value whole =
        het::ConcatOp::create(builder, builder.getUnknownLoc(), parts, dim);
    mark(whole.getDefiningOp());
    return whole;
  }

  static int64_t gradientChannel(size_t cell) {
    return kFirstChannel + 2 * int64_t(cell);
  }
  static int64_t parameterChannel(size_t cell) {
    return kFirstChannel + 2 * int64_t(cell) + 1;
  }

  llvm::MapVector<StringAttr, Parameter> parameters;
  std::map<int64_t, func::FuncOp>
      programs; // by rank: everything is in one order
  std::vector<Cell> cells;
};

} // namespace
