//===- LocalTransport.h - ranks that are threads of one test -----*- C++ -*-===//
//
// The transport's table with memcpy for a network: what the walker expects of a
// transport, in its plainest form.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_RUNTIME_LOCALTRANSPORT_H
#define AUTOHET_TEST_UNIT_RUNTIME_LOCALTRANSPORT_H

#include "autohet/runtime/comm.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace autohet::runtime::test {

/// All ranks of a test.
struct LocalWorld {
  explicit LocalWorld(uint32_t size) : size(size) {}
  using Key = std::tuple<uint32_t, uint32_t, uint64_t>; // from, to, tag

  const uint32_t size;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::deque<ah_request *>> sends, receives;
  std::string cancelled;
  // The agreement being formed, and the last.
  std::vector<ah_agreement> contributions;
  uint64_t round = 0;
  ah_agreement agreed = {};
};

} // namespace autohet::runtime::test

struct ah_comm {
  autohet::runtime::test::LocalWorld *world;
  uint32_t rank;
};

namespace autohet::runtime::test {

/// Ends a request; the world is locked. A waiter may free it as soon as the
/// lock is gone, so what has to be called then is returned.
inline std::function<void()>
finishRequest(ah_request *request, ah_status status, std::string error) {
  request->status = status;
  if (!request->done)
    return [] {};
  return [=] { request->done(request, status, error.c_str()); };
}

inline ah_status localStart(ah_comm *comm, ah_request *request) {
  LocalWorld &world = *comm->world;
  std::unique_lock<std::mutex> lock(world.mutex);
  if (!world.cancelled.empty())
    return ah_fail(AH_ERROR_PEER, "%s", world.cancelled.c_str());
  request->status = AH_IN_PROGRESS;
  uint32_t from = request->is_send ? comm->rank : request->peer;
  uint32_t to = request->is_send ? request->peer : comm->rank;
  LocalWorld::Key key{from, to, request->tag};
  auto &others = (request->is_send ? world.receives : world.sends)[key];
  if (others.empty()) {
    (request->is_send ? world.sends : world.receives)[key].push_back(request);
    return AH_IN_PROGRESS;
  }
  ah_request *other = others.front();
  others.pop_front();
  ah_request *send = request->is_send ? request : other;
  ah_request *receive = request->is_send ? other : request;
  bool same = send->bytes == receive->bytes;
  if (same)
    memcpy(receive->data, send->data, send->bytes);
  ah_status status = same ? AH_OK : AH_ERROR_MISMATCH;
  auto first = finishRequest(other, status, "lengths differ");
  auto second = finishRequest(request, status, "lengths differ");
  lock.unlock();
  first();
  second();
  world.changed.notify_all();
  return AH_IN_PROGRESS;
}

inline ah_status localWait(ah_comm *comm, ah_request *request) {
  LocalWorld &world = *comm->world;
  std::unique_lock<std::mutex> lock(world.mutex);
  world.changed.wait(lock, [&] {
    return request->status != AH_IN_PROGRESS || !world.cancelled.empty();
  });
  if (request->status == AH_OK)
    return AH_OK;
  return ah_fail(AH_ERROR_PEER, "%s", world.cancelled.c_str());
}

inline ah_status localAgree(ah_comm *comm, ah_agreement *agreement) {
  LocalWorld &world = *comm->world;
  std::unique_lock<std::mutex> lock(world.mutex);
  uint64_t round = world.round;
  if (world.contributions.empty())
    world.contributions.resize(world.size);
  world.contributions[comm->rank] = *agreement;
  world.contributions[comm->rank].struct_bytes = 1; // here
  bool all = true;
  for (auto &contribution : world.contributions)
    all &= contribution.struct_bytes == 1;
  if (all) {
    world.agreed = {};
    for (auto &contribution : world.contributions) {
      world.agreed.squared_norm += contribution.squared_norm;
      world.agreed.loss += contribution.loss;
      world.agreed.flags |= contribution.flags;
      world.agreed.label_count =
          std::max(world.agreed.label_count, contribution.label_count);
    }
    world.contributions.clear();
    ++world.round;
    world.changed.notify_all();
  }
  world.changed.wait(
      lock, [&] { return world.round > round || !world.cancelled.empty(); });
  if (world.round == round)
    return ah_fail(AH_ERROR_PEER, "%s", world.cancelled.c_str());
  agreement->squared_norm = world.agreed.squared_norm;
  agreement->loss = world.agreed.loss;
  agreement->flags = world.agreed.flags;
  agreement->label_count = world.agreed.label_count;
  return AH_OK;
}

inline void localCancel(ah_comm *comm, const char *reason) {
  LocalWorld &world = *comm->world;
  std::vector<std::function<void()>> ended;
  {
    std::lock_guard<std::mutex> lock(world.mutex);
    world.cancelled = reason;
    for (auto *queues : {&world.sends, &world.receives})
      for (auto &[key, queue] : *queues) {
        for (ah_request *request : queue)
          ended.push_back(finishRequest(request, AH_ERROR_PEER, reason));
        queue.clear();
      }
  }
  for (auto &call : ended)
    call();
  world.changed.notify_all();
}

inline const ah_comm_table &localTable() {
  static const ah_comm_table table = {
      sizeof(ah_comm_table),
      AH_COMM_VERSION,
      "local",
      localStart,
      [](ah_comm *, ah_request *request) { return request->status; },
      localWait,
      localAgree,
      [](ah_comm *comm, const char *) {
        ah_agreement nothing = {};
        return localAgree(comm, &nothing);
      },
      localCancel,
      [](ah_comm *) {}};
  return table;
}

} // namespace autohet::runtime::test

#endif
