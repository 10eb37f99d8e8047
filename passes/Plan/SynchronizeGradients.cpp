//===- SynchronizeGradients.cpp - one owner a slice -------------------------===//
//
// Writes each device's part of the exchange that GradientCells.h decides:
//
//   last backward   a bucket is complete   its parts leave for the owner or
//                                          the relay, which asks for them
//   after it        relay: adds its group's parts, one sum leaves
//                   owner: sums in the order of groups, counts in the norm
//   agree           gates every update
//   then            owner: updates, and new bytes leave for the other holders
//                   relay: passes them on to its group
//
// Everybody starts all sends and receives of a half before waiting for any, so
// that no order of buckets can deadlock, and copies stay bit-equal because
// there is one computation.
//
//===----------------------------------------------------------------------===//

#include "GradientCells.h"
#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Plan/Passes.h"
#include "autohet/Plan/Exchanges.h"
#include "autohet/Plan/Plan.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace autohet {
#define GEN_PASS_DEF_SYNCHRONIZEGRADIENTS
#include "autohet/Passes/Plan/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// Channels of the update; below are transfers, then collectives. A tag has
/// room for 2^20.
constexpr int64_t kFirstChannel = int64_t(1) << 19;
constexpr int64_t kEndChannel = dist::kMaxChannels;

constexpr StringRef kReducePhase = "reduce", kUpdatePhase = "update";

using Programs = std::map<int64_t, func::FuncOp>; // by rank

template <typename OpT>
Box boxOf(OpT op, RankedTensorType type) {
  Box box;
  box.sizes.assign(type.getShape().begin(), type.getShape().end());
  if (op.getOffsets())
    box.offsets.assign(op.getOffsets()->begin(), op.getOffsets()->end());
  else
    box.offsets.assign(type.getRank(), 0);
  return box;
}

RankedTensorType gradientType(het::GradientOp op) {
  return cast<RankedTensorType>(op.getValue().getType());
}

/// Replica by replica, from its first stage to its last: so parameters are met
/// in the order of the model, wherever its stages are.
SmallVector<std::pair<int64_t, func::FuncOp>>
byStage(const Programs &programs) {
  SmallVector<std::pair<int64_t, func::FuncOp>> order(programs.begin(),
                                                      programs.end());
  auto keyOf = [](const std::pair<int64_t, func::FuncOp> &program) {
    auto info =
        program.second->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr);
    return std::tuple(info.getReplica(), info.getStage(), program.first);
  };
  llvm::sort(order,
             [&](const auto &a, const auto &b) { return keyOf(a) < keyOf(b); });
  return order;
}

/// What all devices hold of each parameter, and what they add to its gradient.
FailureOr<Parameters> collectUses(const Programs &programs) {
  Parameters parameters;
  // The parameter that `op` is of; null after a diagnostic where it is another
  // one of the same name.
  auto entry = [&](Operation *op, StringAttr name, RankedTensorType type,
                   ArrayRef<int64_t> whole) -> ParameterUses * {
    ParameterUses fresh{type.getElementType(),
                        SmallVector<int64_t>(whole),
                        op->getLoc(),
                        {},
                        {}};
    ParameterUses &known =
        parameters.insert({name, std::move(fresh)}).first->second;
    if (known.element == type.getElementType() &&
        ArrayRef<int64_t>(known.globalShape) == whole)
      return &known;
    op->emitOpError("is of \"")
        << name.getValue() << "\" with shape [" << whole << "] of "
        << type.getElementType() << ", but another use has shape ["
        << known.globalShape << "] of " << known.element;
    return nullptr;
  };
  auto add = [](SmallVector<BoxUse> &uses, int64_t rank, Box box) {
    if (llvm::none_of(uses, [&](BoxUse &use) {
          return use.rank == rank && use.box == box;
        }))
      uses.push_back({rank, std::move(box)});
  };
  for (auto &[rank, func] : byStage(programs))
    for (Operation &op : func->getRegion(0).front()) {
      if (auto held = dyn_cast<het::ParameterOp>(op);
          held && held.isTrained()) {
        auto type = held.getType();
        ParameterUses *uses =
            entry(held, held.getNameAttr(), type, held.getWholeShape());
        if (!uses)
          return failure();
        add(uses->held, rank, boxOf(held, type));
      }
      if (auto gradient = dyn_cast<het::GradientOp>(op)) {
        RankedTensorType type = gradientType(gradient);
        ParameterUses *uses = entry(gradient, gradient.getNameAttr(), type,
                                    gradient.getWholeShape());
        if (!uses)
          return failure();
        add(uses->contributed, rank, boxOf(gradient, type));
      }
    }
  return parameters;
}

/// What is exchanged: decided once, and read by all devices' parts at a time.
/// Attributes of cells and messages are the same on every device.
struct Exchange {
  Exchange(MLIRContext *context, const Parameters &parameters,
           ArrayRef<Cell> cells, ArrayRef<Bucket> buckets, int64_t world)
      : parameters(parameters), cells(cells), buckets(buckets) {
    Builder builder(context);
    for (auto [c, cell] : llvm::enumerate(cells)) {
      byName[cell.name].push_back(c);
      places.push_back({cell.getType(),
                        builder.getDenseI64ArrayAttr(cell.box.offsets),
                        builder.getDenseI64ArrayAttr(cell.globalShape)});
    }
    for (int64_t rank = 0; rank < world; ++rank)
      peers.push_back(builder.getI64IntegerAttr(rank));
    // A bucket of small parameters of many layers is complete late, and needed
    // early.
    for (unsigned b = 0; b < buckets.size(); ++b)
      byNeed.push_back(b);
    llvm::sort(byNeed, [&](unsigned a, unsigned b) {
      return buckets[a].cells.front() < buckets[b].cells.front();
    });
    for (auto [b, bucket] : llvm::enumerate(buckets))
      messages.push_back(messagesOf(builder, b, bucket));
  }

  /// Where a cell is in its parameter.
  struct Place {
    RankedTensorType type;
    DenseI64ArrayAttr offsets, globalShape;
  };

  /// What messages of one kind are told apart by: what they carry and their
  /// phase, "gradient of wte.weight and 2 more", and the channel.
  struct Message {
    DictionaryAttr label;
    IntegerAttr channel;
  };
  /// Of a bucket.
  struct Messages {
    Message parts; ///< while the backward goes on
    Message sums;  ///< of a group, behind it
    Message fresh; ///< new parameters
  };

  /// Of a parameter.
  ArrayRef<unsigned> cellsOf(StringAttr name) const {
    auto found = byName.find(name);
    return found == byName.end() ? ArrayRef<unsigned>()
                                 : ArrayRef(found->second);
  }

  const Parameters &parameters;
  ArrayRef<Cell> cells;
  ArrayRef<Bucket> buckets;
  SmallVector<unsigned> byNeed;      ///< in the order of the next forward
  SmallVector<Place, 0> places;      ///< by cell
  SmallVector<Messages, 0> messages; ///< by bucket
  SmallVector<IntegerAttr> peers;    ///< by rank

private:
  Messages messagesOf(Builder &builder, size_t b, const Bucket &bucket) {
    llvm::SetVector<StringAttr> names;
    for (unsigned c : bucket.cells)
      names.insert(cells[c].name);
    std::string of = names.front().str();
    if (names.size() > 1)
      of += llvm::formatv(" and {0} more", names.size() - 1);
    auto message = [&](const llvm::Twine &text, StringRef phase,
                       int64_t channel) -> Message {
      return {builder.getDictionaryAttr(
                  {builder.getNamedAttr(dist::kLabelAttr,
                                        builder.getStringAttr(text)),
                   builder.getNamedAttr(het::kPhaseAttr,
                                        builder.getStringAttr(phase))}),
              builder.getI64IntegerAttr(channel)};
    };
    int64_t channel = kFirstChannel + 2 * int64_t(b);
    return {message("gradient of " + of, kReducePhase, channel),
            message("gradient of " + of, kUpdatePhase, channel),
            message("new " + of, kUpdatePhase, channel + 1)};
  }

  llvm::DenseMap<StringAttr, SmallVector<unsigned>> byName; // cells
};

/// One device's part: touches nothing but the device's function.
class DeviceExchange {
public:
  DeviceExchange(int64_t rank, func::FuncOp func, const Exchange &exchange)
      : exchange(exchange), rank(rank), func(func),
        parameters(exchange.parameters), cells(exchange.cells),
        buckets(exchange.buckets), byNeed(exchange.byNeed),
        builder(func.getContext()) {}

  void emit() {
    findGradients();
    setPhase(kReducePhase);
    emitReductions();
    builder.setInsertionPoint(func.getBody().front().getTerminator());
    setPhase(kUpdatePhase);
    emitRelayedSums();
    emitSums();
    create<dist::AgreeOp>(func.getLoc());
    emitUpdates();
    passUpdatesOn();
    emitStores();
  }

private:
  void setPhase(StringRef name) {
    ofPhase = builder.getDictionaryAttr(
        builder.getNamedAttr(het::kPhaseAttr, builder.getStringAttr(name)));
  }

  template <typename OpT, typename... Args>
  OpT create(Location loc, Args &&...args) {
    auto op = OpT::create(builder, loc, std::forward<Args>(args)...);
    op->setDiscardableAttrs(ofPhase);
    return op;
  }

  /// A send of values or a receive of types.
  template <typename OpT, typename Payload>
  OpT createTransfer(const Bucket &bucket, const Exchange::Message &message,
                     const Payload &payload, int64_t peer) {
    auto op = OpT::create(builder, cells[bucket.cells.front()].loc, payload,
                          exchange.peers[peer], message.channel,
                          /*inlined=*/builder.getUnitAttr());
    op->setDiscardableAttrs(message.label);
    return op;
  }

  void send(const Bucket &bucket, const Exchange::Message &message,
            ArrayRef<Value> values, int64_t to) {
    createTransfer<dist::SendOp>(bucket, message, ValueRange(values), to);
  }

  /// The values that arrive, by cell of the bucket.
  ResultRange receive(const Bucket &bucket, const Exchange::Message &message,
                      int64_t from) {
    SmallVector<Type> types;
    for (unsigned c : bucket.cells)
      types.push_back(exchange.places[c].type);
    return createTransfer<dist::RecvOp>(bucket, message, TypeRange(types), from)
        .getValues();
  }

  /// The ops after which this device has its whole part of each parameter.
  void findGradients() {
    for (auto [i, op] : llvm::enumerate(func.getBody().front())) {
      position[&op] = i;
      if (auto gradient = dyn_cast<het::GradientOp>(op))
        gradients[gradient.getNameAttr()].push_back(gradient);
    }
  }

  ArrayRef<het::GradientOp> gradientsOf(StringAttr name) const {
    auto found = gradients.find(name);
    return found == gradients.end() ? ArrayRef<het::GradientOp>()
                                    : ArrayRef(found->second);
  }

  /// Where this device's part of `bucket` is complete; null where it has none.
  Operation *readyAfter(const Bucket &bucket) {
    Operation *last = nullptr;
    for (unsigned c : bucket.cells)
      for (het::GradientOp op : gradientsOf(cells[c].name))
        if (boxOf(op, gradientType(op)).contains(cells[c].box) &&
            (!last || position[op] > position[last]))
          last = op;
    return last;
  }

  /// Starts a bucket's messages where its last gradient is added up; where this
  /// device adds nothing to the bucket, at the end.
  void emitReductions() {
    llvm::DenseMap<Operation *, Operation *> ends; // ready op -> last op there
    for (auto [b, bucket] : llvm::enumerate(buckets)) {
      Operation *ready = readyAfter(bucket);
      if (ready) {
        Operation *&end = ends.try_emplace(ready, ready).first->second;
        builder.setInsertionPointAfter(end);
        emitReduction(b, bucket);
        end = &*std::prev(builder.getInsertionPoint());
      } else {
        builder.setInsertionPoint(func.getBody().front().getTerminator());
        emitReduction(b, bucket);
      }
    }
  }

  void emitReduction(unsigned b, const Bucket &bucket) {
    const Cell &first = cells[bucket.cells.front()]; // parties are all cells'
    for (const RelayGroup &group : first.gathers) {
      if (first.owner == rank && group.relay != rank)
        receiveGradient(b, bucket, group.relay);
      if (!llvm::is_contained(group.members, rank))
        continue;
      if (group.relay != rank)
        sendGradient(b, bucket, group.relay);
      else if (group.members.size() == 1 && first.owner != rank)
        sendGradient(b, bucket, first.owner);
      for (int64_t member : group.members)
        if (group.relay == rank && member != rank)
          receiveGradient(b, bucket, member);
    }
  }

  void receiveGradient(unsigned b, const Bucket &bucket, int64_t from) {
    for (auto [c, part] : llvm::zip_equal(
             bucket.cells, receive(bucket, exchange.messages[b].parts, from)))
      received[{c, from}] = part;
  }

  void sendGradient(unsigned b, const Bucket &bucket, int64_t to) {
    SmallVector<Value> parts;
    for (unsigned c : bucket.cells)
      parts.push_back(ownPart(c));
    send(bucket, exchange.messages[b].parts, parts, to);
  }

  Value partOf(unsigned c, int64_t from) {
    return from == rank ? ownPart(c) : received.at({c, from});
  }

  /// Parts of `ranks`, in their order; null of none.
  Value sumOf(unsigned c, ArrayRef<int64_t> ranks) {
    Value sum;
    for (int64_t from : ranks) {
      Value part = partOf(c, from);
      sum =
          sum ? create<het::AddOp>(cells[c].loc, sum, part).getResult() : part;
    }
    return sum;
  }

  /// What this device adds up for owners elsewhere. As all sums, in the order
  /// in which buckets are complete: nobody is to wait for what the end of a
  /// backward brings while there is something to add up.
  void emitRelayedSums() {
    for (unsigned b : llvm::reverse(byNeed)) {
      const Bucket &bucket = buckets[b];
      for (const RelayGroup &group : cells[bucket.cells.front()].gathers) {
        if (group.relay != rank || group.members.size() == 1)
          continue;
        SmallVector<Value> sums;
        for (unsigned c : bucket.cells)
          sums.push_back(sumOf(c, group.members));
        send(bucket, exchange.messages[b].sums, sums,
             cells[bucket.cells.front()].owner);
      }
    }
  }

  /// Sums of owned cells, in the order of groups.
  void emitSums() {
    for (unsigned b : llvm::reverse(byNeed))
      for (unsigned c : buckets[b].cells) {
        const Cell &cell = cells[c];
        if (cell.owner != rank)
          continue;
        SmallVector<int64_t> relays;
        for (const RelayGroup &group : cell.gathers)
          relays.push_back(group.relay);
        Value sum = sumOf(c, relays);
        if (!sum)
          sum = zeros(cell);
        summed[c] = sum;
        create<dist::NormOp>(cell.loc, sum);
      }
  }

  /// Buckets in the order in which the next forward needs them.
  void emitUpdates() {
    for (unsigned b : byNeed)
      receiveUpdate(b, buckets[b]);
    for (unsigned b : byNeed)
      if (cells[buckets[b].cells.front()].owner == rank)
        emitUpdate(b, buckets[b]);
  }

  /// From the owner, or from the relay of this device's group.
  void receiveUpdate(unsigned b, const Bucket &bucket) {
    const Cell &first = cells[bucket.cells.front()];
    auto own = llvm::find_if(first.spreads, [&](const RelayGroup &group) {
      return llvm::is_contained(group.members, rank);
    });
    if (own == first.spreads.end())
      return;
    for (auto [c, value] : llvm::zip_equal(
             bucket.cells,
             receive(bucket, exchange.messages[b].fresh,
                     own->relay == rank ? first.owner : own->relay)))
      fresh[c] = value;
  }

  void emitUpdate(unsigned b, const Bucket &bucket) {
    SmallVector<Value> values;
    for (unsigned c : bucket.cells) {
      const Cell &cell = cells[c];
      fresh[c] = create<dist::UpdateOp>(cell.loc, cell.getType(), cell.name,
                                        cell.box.offsets, cell.globalShape,
                                        summed.at(c));
      values.push_back(fresh[c]);
    }
    for (const RelayGroup &group : cells[bucket.cells.front()].spreads)
      send(bucket, exchange.messages[b].fresh, values, group.relay);
  }

  void passUpdatesOn() {
    for (unsigned b : byNeed)
      for (const RelayGroup &group : cells[buckets[b].cells.front()].spreads) {
        if (group.relay != rank)
          continue;
        SmallVector<Value> values;
        for (unsigned c : buckets[b].cells)
          values.push_back(fresh.at(c));
        for (int64_t member : group.members)
          if (member != rank)
            send(buckets[b], exchange.messages[b].fresh, values, member);
      }
  }

  // Slices that are runs of a box's rows go where they belong, each when it is
  // there; others are put together first.
  void emitStores() {
    for (auto &[name, parameter] : parameters)
      for (const BoxUse &use : parameter.held) {
        if (use.rank != rank)
          continue;
        auto inside = llvm::make_filter_range(
            exchange.cellsOf(name), [&, &use = use](unsigned c) {
              return use.box.contains(cells[c].box);
            });
        if (llvm::all_of(inside, [&, &uses = parameter.held](unsigned c) {
              return isRunOfOne(uses, cells[c]);
            })) {
          for (unsigned c : inside)
            if (Value value = fresh.lookup(c))
              create<dist::StoreParameterOp>(
                  parameter.loc, name,
                  cells[c].box == use.box ? UnitAttr() : builder.getUnitAttr(),
                  value, exchange.places[c].offsets,
                  exchange.places[c].globalShape);
        } else if (Value whole = assemble(name, use.box, 0, use.box)) {
          create<dist::StoreParameterOp>(parameter.loc, name.getValue(),
                                         /*rows=*/false, whole, use.box.offsets,
                                         parameter.globalShape);
        }
      }
  }

  /// Whether just one of this device's boxes has the cell, as a run of its
  /// rows: then the cell says which memory is meant.
  bool isRunOfOne(ArrayRef<BoxUse> uses, const Cell &cell) const {
    unsigned boxes = 0;
    bool isRun = false;
    for (const BoxUse &use : uses) {
      if (use.rank != rank || !use.box.contains(cell.box))
        continue;
      ++boxes;
      isRun = dist::findRun(use.box.offsets, use.box.sizes, cell.box.offsets,
                            cell.box.sizes, cell.element)
                  .has_value();
    }
    return boxes == 1 && isRun;
  }

  /// The gradient of a cell that no op reads.
  Value zeros(const Cell &cell) {
    Value zero = het::createSplat(builder, cell.loc,
                                  RankedTensorType::get({}, cell.element), 0);
    zero.getDefiningOp()->setDiscardableAttrs(ofPhase);
    return create<het::BroadcastOp>(cell.loc, zero, cell.box.sizes);
  }

  /// This device's sum of gradients of the cell, cut out of its boxes.
  Value ownPart(unsigned c) {
    const Cell &cell = cells[c];
    const Exchange::Place &place = exchange.places[c];
    Value sum;
    ArrayRef<BoxUse> uses = parameters.find(cell.name)->second.contributed;
    bool isRun = isRunOfOne(uses, cell);
    for (const BoxUse &use : uses) {
      if (use.rank != rank || !use.box.contains(cell.box))
        continue;
      bool isWhole = isRun || use.box == cell.box;
      Value part = create<dist::LocalGradientOp>(
          cell.loc,
          isWhole ? place.type
                  : RankedTensorType::get(use.box.sizes, cell.element),
          cell.name,
          isWhole ? place.offsets
                  : builder.getDenseI64ArrayAttr(use.box.offsets),
          place.globalShape);
      if (!isWhole) {
        SmallVector<int64_t> offsets, strides(cell.box.sizes.size(), 1);
        for (auto [inner, outer] :
             llvm::zip_equal(cell.box.offsets, use.box.offsets))
          offsets.push_back(inner - outer);
        part = create<het::SliceOp>(cell.loc, part, offsets, cell.box.sizes,
                                    strides);
      }
      // Two boxes of one device may overlap: a tied use of a part.
      sum = sum ? create<het::AddOp>(cell.loc, sum, part).getResult() : part;
    }
    return sum;
  }

  /// The cells of `region` put together, dim after dim; null where no cell of
  /// it has been updated.
  Value assemble(StringAttr name, const Box &box, unsigned dim, Box region) {
    if (dim == box.sizes.size()) {
      for (unsigned c : exchange.cellsOf(name))
        if (cells[c].box == region)
          return fresh.lookup(c);
      return nullptr;
    }
    llvm::SetVector<std::pair<int64_t, int64_t>> spans;
    for (unsigned c : exchange.cellsOf(name))
      if (const Box &cell = cells[c].box; box.contains(cell))
        spans.insert({cell.offsets[dim], cell.sizes[dim]});
    SmallVector<std::pair<int64_t, int64_t>> sorted(spans.begin(), spans.end());
    llvm::sort(sorted);
    SmallVector<Value> parts;
    for (auto [offset, size] : sorted) {
      region.offsets[dim] = offset;
      region.sizes[dim] = size;
      if (Value part = assemble(name, box, dim + 1, region))
        parts.push_back(part);
    }
    if (parts.size() <= 1)
      return parts.empty() ? Value() : parts.front();
    return create<het::ConcatOp>(builder.getUnknownLoc(), parts, dim);
  }

  const Exchange &exchange;
  int64_t rank;
  func::FuncOp func;
  const Parameters &parameters;
  ArrayRef<Cell> cells;
  ArrayRef<Bucket> buckets;
  ArrayRef<unsigned> byNeed;
  OpBuilder builder;
  DictionaryAttr ofPhase; ///< of most ops: nothing but the phase

  llvm::DenseMap<Operation *, size_t> position;
  llvm::DenseMap<StringAttr, SmallVector<het::GradientOp>> gradients;
  std::map<std::pair<unsigned, int64_t>, Value> received; // (cell, from)
  llvm::DenseMap<unsigned, Value> summed, fresh;          // by cell
};

struct SynchronizeGradients
    : autohet::impl::SynchronizeGradientsBase<SynchronizeGradients> {
  using SynchronizeGradientsBase::SynchronizeGradientsBase;

  void runOnOperation() override {
    if (failed(dist::verifyPrograms(getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    Programs programs;
    SmallVector<StringRef> nodes; // by rank
    std::optional<int64_t> preferred;
    for (auto func : module.getOps<func::FuncOp>())
      if (auto info =
              func->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr)) {
        programs[info.getRank()] = func;
        if (nodes.size() <= size_t(info.getRank()))
          nodes.resize(info.getRank() + 1);
        nodes[info.getRank()] = info.getDevice().getValue().rsplit('/').first;
        if (info.getDevice().getValue() == stateOwner)
          preferred = info.getRank();
      }
    bool trains =
        module.walk([](het::GradientOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (programs.empty() || !trains)
      return;
    if (stateOwner != "spread" && stateOwner != "first" && !preferred) {
      module.emitError("unknown state owner '")
          << stateOwner << "', wanted spread, first or a device of the plan";
      return signalPassFailure();
    }
    if (exchange != "direct" && exchange != "hierarchical") {
      module.emitError("unknown exchange '")
          << exchange << "', wanted direct or hierarchical";
      return signalPassFailure();
    }
    FailureOr<SmallVector<int64_t>> ofRanks = readShares(programs);
    if (failed(ofRanks))
      return signalPassFailure();
    FailureOr<Parameters> found = collectUses(programs);
    if (failed(found))
      return signalPassFailure();
    const Parameters &parameters = *found;
    StateShares shares = {*ofRanks};
    std::vector<Cell> cells = refine(
        parameters,
        stateOwner == "spread" ? std::optional(kLeastPartBytes) : std::nullopt,
        shares);
    chooseOwners(cells, /*spread=*/stateOwner != "first", preferred, shares);
    chooseRelays(cells, exchange == "hierarchical", nodes);
    std::vector<Bucket> buckets = formBuckets(cells, bucketBytes);
    if (kFirstChannel + 2 * int64_t(buckets.size()) > kEndChannel) {
      module.emitError() << buckets.size() << " buckets of gradients, at most "
                         << (kEndChannel - kFirstChannel) / 2
                         << " have channels; a larger bucket-bytes makes fewer";
      return signalPassFailure();
    }
    Exchange decided(&getContext(), parameters, cells, buckets,
                     int64_t(nodes.size()));
    SmallVector<std::pair<int64_t, func::FuncOp>> devices(programs.begin(),
                                                          programs.end());
    parallelForEach(&getContext(), devices, [&](auto &device) {
      DeviceExchange(device.first, device.second, decided).emit();
    });
  }

private:
  /// Of each rank; failure after a diagnostic.
  FailureOr<SmallVector<int64_t>> readShares(const Programs &programs) {
    SmallVector<int64_t> shares(programs.rbegin()->first + 1, 1);
    for (StringRef text : stateShares) {
      auto [device, share] = text.rsplit('=');
      int64_t value = -1;
      if (share.getAsInteger(10, value) || value < 0 ||
          value > kLargestStateShare)
        return getOperation().emitError()
               << "'" << text
               << "' is no share in state, wanted DEVICE=N, N 0 to "
               << kLargestStateShare;
      bool isFound = false;
      for (auto [rank, func] : programs)
        if (func->getAttrOfType<dist::ProgramAttr>(dist::kProgramAttr)
                .getDevice() == device) {
          shares[rank] = value;
          isFound = true;
        }
      if (!isFound)
        return getOperation().emitError()
               << "'" << text << "' is of no device of the plan";
    }
    return shares;
  }
};

} // namespace
