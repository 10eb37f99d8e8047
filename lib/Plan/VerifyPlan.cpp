//===- VerifyPlan.cpp - refuses a wrong plan with the reason --------------===//
//
// Says everything that is wrong, not the first thing: a plan written by hand is
// corrected in one go. Checks that need other checks' results (memory needs
// known devices) run only where those hold.
//
//===----------------------------------------------------------------------===//

#include "NearestBatches.h"

#include "autohet/Plan/Plan.h"
#include "autohet/Support/Hash.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

namespace autohet {
namespace {

// More names than this make a message unreadable.
constexpr size_t namesShown = 8;
// A plan of another cluster has no known device.
constexpr size_t unknownShown = 2;

std::string joinNames(llvm::ArrayRef<std::string> names) {
  std::string text = llvm::join(names.take_front(namesShown), ", ");
  if (names.size() > namesShown)
    text += " and " + std::to_string(names.size() - namesShown) + " more";
  return text;
}

/// "3 x 4 + 5 x 2"
std::string formatCounts(llvm::ArrayRef<int64_t> counts,
                         llvm::ArrayRef<int64_t> sizes) {
  return llvm::join(llvm::map_range(llvm::zip_equal(counts, sizes),
                                    [](auto pair) {
                                      auto [count, size] = pair;
                                      return std::to_string(count) + " x " +
                                             std::to_string(size);
                                    }),
                    " + ");
}

class PlanVerifier {
public:
  PlanVerifier(const Plan &plan, const UnitTable &table, const Cluster &cluster)
      : plan(plan), table(table), cluster(cluster),
        user(cluster.devices().size()) {}

  void run() {
    if (plan.structure_hash && plan.structure_hash != table.structure_hash)
      fail("the plan is of another model: its structure hash is " +
           formatHash(plan.structure_hash) + ", this model's is " +
           formatHash(table.structure_hash) +
           "; plan anew, or take the key 'structure_hash' out of the plan if "
           "the units are the same");
    if (plan.replicas.empty())
      fail("a plan needs at least one replica");
    for (unsigned replica = 0; replica < plan.replicas.size(); ++replica)
      verifyReplica(replica);
    if (unknownDevices > unknownShown)
      fail("and " + llvm::Twine(unknownDevices - unknownShown) +
           " more devices that the cluster does not have; was the plan made "
           "for another one?");
    verifyBatch();
    verifyOwner();
    if (areNamesKnown && messages.empty())
      verifyOwners();
  }

  void verifyMemory(MemoryEstimate memory) {
    for (auto [r, replica] : llvm::enumerate(resolved.replicas))
      for (auto [s, stage] : llvm::enumerate(replica.stages))
        for (auto [position, device] : llvm::enumerate(stage.devices)) {
          double needed = memory(resolved, r, s, position);
          double limit = cluster.kindOf(device).memory_bytes;
          if (needed > limit)
            fail(place(r, s) + "device '" + cluster.devices()[device].name +
                 "' needs " + formatQuantity(needed, Dimension::Bytes) +
                 " but has " + formatQuantity(limit, Dimension::Bytes) + ": " +
                 formatQuantity(needed - limit, Dimension::Bytes) +
                 " too much");
        }
  }

  std::vector<std::string> messages;
  ResolvedPlan resolved;
  bool areNamesKnown = true;

private:
  void fail(const llvm::Twine &message) { messages.push_back(message.str()); }

  static std::string place(unsigned replica) {
    return "replica " + std::to_string(replica) + ": ";
  }
  static std::string place(unsigned replica, unsigned stage) {
    return "replica " + std::to_string(replica) + ", stage " +
           std::to_string(stage) + ": ";
  }

  void verifyReplica(unsigned r) {
    const Replica &replica = plan.replicas[r];
    ResolvedReplica &known = resolved.replicas.emplace_back();
    known.microbatch_size = replica.microbatch_size;
    known.microbatches = replica.microbatches;
    if (replica.stages.empty())
      fail(place(r) + "has no stages");
    for (unsigned s = 0; s < replica.stages.size(); ++s) {
      ResolvedStage &stage = known.stages.emplace_back();
      resolveUnits(r, s, stage);
      resolveDevices(r, s, stage);
    }
    if (areNamesKnown)
      verifyCoverage(r);
  }

  void resolveUnits(unsigned r, unsigned s, ResolvedStage &stage) {
    for (const std::string &spec : plan.replicas[r].stages[s].units) {
      llvm::Expected<std::vector<unsigned>> units = expandUnits(spec, table);
      if (!units) {
        fail(place(r, s) + toString(units.takeError()));
        areNamesKnown = false;
        continue;
      }
      stage.units.insert(stage.units.end(), units->begin(), units->end());
    }
    if (plan.replicas[r].stages[s].units.empty())
      fail(place(r, s) + "has no units");
    llvm::sort(stage.units);
  }

  void resolveDevices(unsigned r, unsigned s, ResolvedStage &stage) {
    const Stage &written = plan.replicas[r].stages[s];
    if (written.devices.empty())
      fail(place(r, s) + "has no devices");
    for (const std::string &name : written.devices) {
      std::optional<unsigned> device = cluster.findDevice(name);
      if (!device && ++unknownDevices > unknownShown) {
        areNamesKnown = false;
        continue;
      }
      if (!device) {
        std::vector<std::string> known;
        for (const Device &candidate : cluster.devices())
          known.push_back(candidate.name);
        fail(place(r, s) + "unknown device '" + name + "'; the cluster has " +
             joinNames(known));
        areNamesKnown = false;
        continue;
      }
      if (!user[*device].empty())
        fail(place(r, s) + "device '" + name + "' is used twice, also by " +
             llvm::StringRef(user[*device]).drop_back(2));
      user[*device] = place(r, s);
      stage.devices.push_back(*device);
    }

    stage.keeping = written.keeping;
    if (stage.keeping == Keeping::OnHost)
      verifyHosts(r, s, stage);
    verifyStateShare(r, s);
    stage.state_share = written.state_share;
    stage.weights = written.tensor_parallel;
    if (stage.weights.empty())
      stage.weights.assign(written.devices.size(), 1);
    if (stage.weights.size() != written.devices.size())
      fail(place(r, s) + "'tensor_parallel' has " +
           llvm::Twine(stage.weights.size()) + " shares for " +
           llvm::Twine(written.devices.size()) + " devices");
    constexpr int64_t mostShares = int64_t(1) << 31;
    int64_t sum = 0;
    for (int64_t weight : stage.weights) {
      if (weight < 1)
        fail(place(r, s) + "a share of 'tensor_parallel' is " +
             llvm::Twine(weight) +
             "; leave a device that computes nothing out of the stage");
      sum += std::min(weight, mostShares); // no number of devices overflows it
    }
    if (sum >= mostShares)
      fail(place(r, s) + "the shares of 'tensor_parallel' are too large");
  }

  void verifyHosts(unsigned r, unsigned s, const ResolvedStage &stage) {
    for (unsigned device : stage.devices)
      if (cluster.kindOf(device).host_bandwidth_bytes_per_s <= 0) {
        fail(place(r, s) + "'offload' on device '" +
             cluster.devices()[device].name +
             "', whose kind has no "
             "'host_bandwidth'");
        areNamesKnown = false; // nothing can be reckoned for it
      }
  }

  void verifyStateShare(unsigned r, unsigned s) {
    int64_t share = plan.replicas[r].stages[s].state_share;
    if (share < 0 || share > kLargestStateShare)
      fail(place(r, s) + "'state_share' is " + llvm::Twine(share) +
           ", wanted 0 to " + llvm::Twine(kLargestStateShare));
    else if (share != 1 && plan.state_owner == "first")
      fail(place(r, s) +
           "'state_share' is for spread state, but 'state_owner' is first");
  }

  // Every unit once, and every value flows from a stage to itself or a later
  // one.
  void verifyCoverage(unsigned r) {
    const ResolvedReplica &replica = resolved.replicas[r];
    std::vector<std::optional<unsigned>> stageOf(table.units.size());
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      for (unsigned unit : stage.units) {
        if (stageOf[unit])
          fail(place(r) + "unit '" + table.units[unit].id +
               "' is computed twice, by stage " + llvm::Twine(*stageOf[unit]) +
               " and stage " + llvm::Twine(s));
        stageOf[unit] = s;
      }
    std::vector<std::string> dropped;
    for (auto [unit, stage] : llvm::enumerate(stageOf))
      if (!stage)
        dropped.push_back(table.units[unit].id);
    if (!dropped.empty())
      return fail(place(r) + "no stage computes " + joinNames(dropped));

    for (auto [unit, data] : llvm::enumerate(table.units))
      for (const UnitEdge &edge : data.successors)
        if (*stageOf[edge.to] < *stageOf[unit])
          fail(place(r) + "stages are not in one order: '" + data.id +
               "' of stage " + llvm::Twine(*stageOf[unit]) + " feeds '" +
               table.units[edge.to].id + "' of the earlier stage " +
               llvm::Twine(*stageOf[edge.to]));
  }

  void verifyBatch() {
    if (plan.global_batch > kLargestGlobalBatch)
      return fail("'global_batch' is " + llvm::Twine(plan.global_batch) +
                  ", at most " + llvm::Twine(kLargestGlobalBatch));
    int64_t samples = 0;
    std::vector<int64_t> counts, sizes;
    for (auto [number, replica] : llvm::enumerate(plan.replicas)) {
      // The product of larger ones may be any number.
      for (auto [name, count] :
           {std::pair("microbatches", replica.microbatches),
            std::pair("microbatch_size", replica.microbatch_size)})
        if (count > kLargestGlobalBatch)
          return fail("replica " + llvm::Twine(number) + ": '" + name +
                      "' is " + llvm::Twine(count) + ", at most " +
                      llvm::Twine(kLargestGlobalBatch));
      samples += replica.microbatches * replica.microbatch_size;
      counts.push_back(replica.microbatches);
      sizes.push_back(replica.microbatch_size);
    }
    if (sizes.empty() || samples == plan.global_batch)
      return;
    auto [below, above] = nearestBatches(sizes, plan.global_batch);
    std::string advice;
    if (above == plan.global_batch)
      advice = "these microbatch sizes can make it with other counts, as " +
               formatCounts(countsForBatch(sizes, above), sizes);
    else if (below)
      advice = "the nearest that these microbatch sizes can make are " +
               std::to_string(*below) + " and " + std::to_string(above);
    else
      advice = "the least that these microbatch sizes can make is " +
               std::to_string(above);
    fail("the replicas compute " + formatCounts(counts, sizes) + " = " +
         llvm::Twine(samples) + " samples, but the global batch is " +
         llvm::Twine(plan.global_batch) + "; " + advice);
  }

  // Somebody must own what is spread.
  void verifyOwners() {
    std::vector<int64_t> shares(table.parameters.size());
    for (const ResolvedReplica &replica : resolved.replicas)
      for (const ResolvedStage &stage : replica.stages)
        for (unsigned unit : stage.units)
          for (unsigned parameter : table.units[unit].parameters)
            shares[parameter] += stage.state_share;
    for (const Unit &unit : table.units)
      if (llvm::any_of(unit.parameters, [&](unsigned parameter) {
            return shares[parameter] == 0;
          }))
        return fail("nobody owns the optimizer state of unit '" + unit.id +
                    "': all stages that compute it have 'state_share' 0");
  }

  void verifyOwner() {
    if (plan.state_owner == "spread" || plan.state_owner == "first")
      return;
    std::optional<unsigned> device = cluster.findDevice(plan.state_owner);
    if (!device)
      fail("'state_owner' is '" + plan.state_owner +
           "', which is neither spread, first, nor a device of the cluster");
    else if (user[*device].empty())
      fail("'state_owner' is '" + plan.state_owner +
           "', a device that the plan does not use");
  }

  const Plan &plan;
  const UnitTable &table;
  const Cluster &cluster;
  size_t unknownDevices = 0;
  std::vector<std::string> user; ///< of each device: its stage, or empty
};

} // namespace

std::vector<std::string> verifyPlan(const Plan &plan, const UnitTable &table,
                                    const Cluster &cluster,
                                    MemoryEstimate memory,
                                    ResolvedPlan *resolved) {
  PlanVerifier verifier(plan, table, cluster);
  verifier.run();
  if (memory && verifier.messages.empty())
    verifier.verifyMemory(memory);
  if (resolved && verifier.areNamesKnown)
    *resolved = std::move(verifier.resolved);
  return std::move(verifier.messages);
}

ResolvedPlan resolvePlan(const Plan &plan, const UnitTable &table,
                         const Cluster &cluster) {
  ResolvedPlan resolved;
  std::vector<std::string> errors =
      verifyPlan(plan, table, cluster, nullptr, &resolved);
  assert(errors.empty() && "verifyPlan() first");
  return resolved;
}

std::vector<Replica> nameReplicas(const ResolvedPlan &plan,
                                  const UnitTable &table,
                                  const Cluster &cluster) {
  std::vector<Replica> replicas;
  for (const ResolvedReplica &resolved : plan.replicas) {
    Replica &replica = replicas.emplace_back();
    replica.microbatch_size = resolved.microbatch_size;
    replica.microbatches = resolved.microbatches;
    for (const ResolvedStage &from : resolved.stages) {
      Stage &stage = replica.stages.emplace_back();
      stage.units = compressUnits(from.units, table);
      for (unsigned device : from.devices)
        stage.devices.push_back(cluster.devices()[device].name);
      if (!llvm::all_equal(from.weights))
        stage.tensor_parallel = from.weights;
      stage.state_share = from.state_share;
      stage.keeping = from.keeping;
    }
  }
  return replicas;
}

} // namespace autohet
