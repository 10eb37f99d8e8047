//===- ProgramTransfers.cpp - sends, receives, and who waits ----------------===//
//
// Three kinds, by when somebody waits:
//
//   between stages     on streams of their own; compute waits for an arrival
//   collectives        in the computing stream, before the next other command
//   gradients and      in it too; an arrival when it is read, a send at the end
//   parameters         of its half, new parameters in the next step; who passes
//                      these on does so on a stream of its own, as they come,
//                      and sends what it has updated itself on another one
//
//===----------------------------------------------------------------------===//

#include "ProgramEmitter.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::schedule;

/// So many slices of a relay's own are on their way out at a time: enough that
/// its port is never idle, and no more, so that what is passed on, which comes
/// later, need not wait for all of them.
static constexpr size_t sentAhead = 2;

/// Waits for what inline transfers have under way, so that what follows may
/// read what arrived and write what was sent.
void ProgramEmitter::flushWaits(int64_t microbatch) {
  for (Value event : pendingArrivals)
    wait(*compute, event, microbatch);
  for (Value event : pendingSends)
    wait(*compute, event, microbatch);
  pendingArrivals.clear();
  pendingSends.clear();
}

ProgramEmitter::Name ProgramEmitter::transferName(Operation *op) {
  auto textOf = [&](StringAttr key) {
    auto attribute = op->getDiscardableAttr(key);
    return attribute ? cast<StringAttr>(attribute).getValue() : StringRef();
  };
  Name name = textOf(labelKey);
  if (name.empty()) {
    name = textOf(unitKey);
    if (name.empty())
      name = "a value";
    if (partOf(op) == Part::Backward)
      name += " backward";
  }
  auto send = dyn_cast<dist::SendOp>(op);
  name += send ? " to rank " : " from rank ";
  int64_t peer = send ? send.getPeer() : cast<dist::RecvOp>(op).getPeer();
  llvm::raw_svector_ostream(name) << peer;
  return name;
}

/// The event of a transfer itself, which is called like it: sent or arrived.
Value ProgramEmitter::doneEvent(Operation *op) {
  Value &event = events[op].done;
  if (!event)
    event = declareEvent(transferName(op), /*once=*/isExchange(op));
  return event;
}

/// The event that lets it begin: what is sent is produced, or what lay where it
/// is received is consumed.
Value ProgramEmitter::readyEvent(Operation *op) {
  Value &event = events[op].ready;
  if (!event) {
    Name name = transferName(op);
    name += isa<dist::SendOp>(op) ? ", produced" : ", consumed";
    event = declareEvent(name);
  }
  return event;
}

dist::StoreParameterOp autohet::schedule::storeInPlace(Value arrived) {
  dist::StoreParameterOp found;
  for (Operation *user : arrived.getUsers()) {
    if (isa<dist::SendOp>(user))
      continue;
    auto store = dyn_cast<dist::StoreParameterOp>(user);
    if (!store || found)
      return nullptr;
    found = store;
  }
  return found;
}

/// New bytes that arrive right where they belong, and those that leave, which
/// are parameters here, too: nothing of this step touches either any more.
void ProgramEmitter::findLateExchange() {
  SmallVector<dist::SendOp> own;
  for (Operation &op : func.getBody().front()) {
    if (partOf(&op) != Part::Update)
      continue;
    if (auto store = dyn_cast<dist::StoreParameterOp>(op);
        store && store.getRows())
      storedRows.insert(keyOf(store.getNameAttr(), store.getOffsets(),
                              tensorOf(store.getValue())));
    if (auto recv = dyn_cast<dist::RecvOp>(op)) {
      if (!llvm::all_of(recv.getValues(), storeInPlace))
        continue;
      Value event = doneEvent(recv);
      for (Value value : recv.getValues()) {
        dist::StoreParameterOp store = storeInPlace(value);
        lateArrivals[store.getNameAttr()].push_back(
            {keyOf(store.getNameAttr(), store.getOffsets(), tensorOf(value)),
             event});
      }
      late.insert(recv);
      ++lateMessages;
    } else if (auto send = dyn_cast<dist::SendOp>(op)) {
      Operation *source = send.getValues().front().getDefiningOp();
      bool isRelayed = late.contains(source) &&
                       llvm::all_of(send.getValues(), [&](Value value) {
                         return value.getDefiningOp() == source;
                       });
      if (isRelayed)
        relayed[send] = doneEvent(source);
      else if (llvm::all_of(send.getValues(), [](Value value) {
                 return value.getDefiningOp<dist::UpdateOp>();
               }))
        own.push_back(send);
      else
        continue;
      lateSends.push_back(doneEvent(send));
      late.insert(send);
    }
  }
  if (relayed.empty())
    return;
  for (dist::SendOp send : own) {
    Value &event = updated[lastUpdate(send)];
    if (!event) {
      Name name = transferName(send);
      name += ", updated";
      event = declareEvent(name, /*once=*/true);
    }
  }
}

/// Of what is sent.
Operation *ProgramEmitter::lastUpdate(dist::SendOp send) {
  return send.getValues().back().getDefiningOp<dist::UpdateOp>();
}

void ProgramEmitter::waitForStepBefore(Location loc, Value event) {
  exec::WaitOp::create(compute->builder, loc, event, number(-1));
}

static bool isWithin(const BoxKey &box, ArrayRef<int64_t> offsets,
                     ArrayRef<int64_t> sizes) {
  const auto &[begins, extents] = box.second;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (begins[dim] < offsets[dim] ||
        begins[dim] + extents[dim] > offsets[dim] + sizes[dim])
      return false;
  return true;
}

/// The first reader of a parameter, in the order of the stream, waits for all
/// parts of it.
void ProgramEmitter::waitForParameters(Operation *op) {
  if (awaited.size() == lateMessages)
    return;
  for (Value operand : op->getOperands()) {
    auto parameter = rootOf(operand).getDefiningOp<het::ParameterOp>();
    if (!parameter)
      continue;
    auto it = lateArrivals.find(parameter.getNameAttr());
    if (it == lateArrivals.end())
      continue;
    auto type = parameter.getType();
    SmallVector<int64_t> zeros(type.getRank(), 0);
    ArrayRef<int64_t> offsets = parameter.getOffsets()
                                    ? *parameter.getOffsets()
                                    : ArrayRef<int64_t>(zeros);
    for (const LateArrival &arrival : it->second)
      if (isWithin(arrival.box, offsets, type.getShape()) &&
          awaited.insert(arrival.event).second)
        waitForStepBefore(op->getLoc(), arrival.event);
  }
}

/// What has been asked for from other replicas is there when it is read.
void ProgramEmitter::waitForOperands(Operation *op) {
  if (exchangeArrivals.empty())
    return;
  for (Value operand : op->getOperands()) {
    auto it = exchangeArrivals.find(rootOf(operand));
    if (it == exchangeArrivals.end())
      continue;
    // One message may bring several values.
    if (awaitedExchange.insert(it->second).second)
      wait(*compute, it->second, 0);
  }
}

/// The exchange's half is over: all of it has arrived and left.
void ProgramEmitter::waitForExchange() {
  for (auto &[value, event] : exchangeArrivals)
    if (awaitedExchange.insert(event).second)
      wait(*compute, event, 0);
  for (Value event : exchangeSends)
    wait(*compute, event, 0);
  exchangeArrivals.clear();
  exchangeSends.clear();
}

void ProgramEmitter::emitSend(dist::SendOp op, int64_t microbatch) {
  SmallVector<Value> buffers;
  for (Value value : op.getValues())
    buffers.push_back(bufferOf(value));
  Value sent = doneEvent(op);
  if (Value arrived = relayed.lookup(op)) {
    wait(*relay, arrived, microbatch);
    exec::SendOp::create(relay->builder, op.getLoc(), buffers, op.getPeerAttr(),
                         op.getChannelAttr(), sent, number(microbatch));
    return;
  }
  if (Value ready = updated.lookup(lastUpdate(op))) {
    // Those to other peers follow it.
    if (awaitedExchange.insert(ready).second) {
      wait(*parameters, ready, microbatch);
      if (ownSends.size() >= sentAhead)
        wait(*parameters, ownSends[ownSends.size() - sentAhead], microbatch);
      ownSends.emplace_back();
    }
    ownSends.back() = sent;
    exec::SendOp::create(parameters->builder, op.getLoc(), buffers,
                         op.getPeer(), op.getChannel(), sent, microbatch);
    return;
  }
  if (!isPipelined(op)) {
    exec::SendOp::create(compute->builder, op.getLoc(), buffers,
                         op.getPeerAttr(), op.getChannelAttr(), sent,
                         number(microbatch));
    if (!late.contains(op))
      (isExchange(op) ? exchangeSends : pendingSends).push_back(sent);
    return;
  }
  Value produced = readyEvent(op);
  exec::RecordOp::create(compute->builder, op.getLoc(), produced, microbatch);
  wait(*send, produced, microbatch);
  exec::SendOp::create(send->builder, op.getLoc(), buffers, op.getPeerAttr(),
                       op.getChannelAttr(), sent, number(microbatch));
}

void ProgramEmitter::emitRecv(dist::RecvOp op, int64_t microbatch) {
  SmallVector<Value> buffers;
  for (Value value : op.getValues())
    buffers.push_back(bufferOf(value));
  Value arrived = doneEvent(op);
  if (!isPipelined(op)) {
    exec::RecvOp::create(compute->builder, op.getLoc(), buffers,
                         op.getPeerAttr(), op.getChannelAttr(), arrived,
                         number(microbatch));
    if (!isExchange(op))
      pendingArrivals.push_back(arrived);
    else if (!late.contains(op))
      for (Value value : op.getValues())
        exchangeArrivals[value] = arrived;
    return;
  }
  Value consumed = readyEvent(op);
  // The slot is free once the microbatch that had it before is done with.
  int64_t slots = buffers.front().getDefiningOp<exec::BufferOp>().getSlots();
  wait(*receive, consumed, microbatch - slots);
  exec::RecvOp::create(receive->builder, op.getLoc(), buffers, op.getPeerAttr(),
                       op.getChannelAttr(), arrived, number(microbatch));
  wait(*compute, arrived, microbatch);
}

/// Before `value`'s slot is written for `microbatch`, what was sent from it
/// must have left.
void ProgramEmitter::waitForSent(Value value, int64_t microbatch) {
  SmallVector<Value> views = {value};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (auto reshape = dyn_cast<het::ReshapeOp>(user))
        views.push_back(reshape.getResult());
      if (!isa<dist::SendOp>(user) || !isPipelined(user))
        continue;
      Value sent = doneEvent(user);
      int64_t slots =
          bufferOf(value).getDefiningOp<exec::BufferOp>().getSlots();
      wait(*compute, sent, microbatch - slots);
    }
}

/// The part that reads a received value last.
Part ProgramEmitter::lastReader(dist::RecvOp recv) {
  Part last = partOf(recv);
  SmallVector<Value> views = {recv.getResult()};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (auto reshape = dyn_cast<het::ReshapeOp>(user))
        views.push_back(reshape.getResult());
      else if (partOf(user) == Part::Backward && !isa<func::ReturnOp>(user))
        last = Part::Backward;
    }
  return last;
}
