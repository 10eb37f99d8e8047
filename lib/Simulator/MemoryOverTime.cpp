//===- MemoryOverTime.cpp - what a simulated device holds -----------------===//

#include "autohet/Simulator/MemoryOverTime.h"

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <map>
#include <tuple>

namespace autohet {

std::vector<std::vector<MemoryPoint>> memoryOverTime(const SimProgram &program,
                                                     const SimResult &result) {
  // By device, buffer, step and microbatch: first and last use.
  using Instance = std::tuple<unsigned, unsigned, int64_t, int64_t>;
  std::map<Instance, std::pair<double, double>> lives;
  auto touch = [&](const Instance &instance, double start, double end) {
    auto [found, isNew] = lives.try_emplace(instance, start, end);
    if (!isNew)
      found->second = {std::min(found->second.first, start),
                       std::max(found->second.second, end)};
  };
  for (const SimSpan &span : result.spans)
    if (!span.is_waiting)
      for (unsigned buffer : program.devices[span.device]
                                 .streams[span.stream]
                                 .commands[span.command]
                                 .buffers)
        touch({span.device, buffer, span.step, span.microbatch}, span.start_s,
              span.end_s);
  for (const SimTransfer &transfer : result.transfers)
    for (auto [device, end] : {std::pair(transfer.from, &transfer.sent),
                               {transfer.to, &transfer.received}})
      for (unsigned buffer : end->buffers)
        touch({device, buffer, end->step, end->microbatch}, transfer.start_s,
              transfer.end_s);

  std::vector<std::map<double, double>> changes(program.devices.size());
  for (auto &[instance, life] : lives) {
    auto [device, buffer, step, microbatch] = instance;
    double bytes = program.devices[device].buffers[buffer].bytes;
    changes[device][life.first] += bytes;
    changes[device][life.second] -= bytes;
  }
  std::vector<std::vector<MemoryPoint>> curves(program.devices.size());
  for (size_t device = 0; device < changes.size(); ++device) {
    std::vector<MemoryPoint> &curve = curves[device];
    double bytes = 0;
    for (auto [time, change] : changes[device])
      if (change != 0)
        curve.push_back({time, bytes += change});
  }
  return curves;
}

double peakBytes(llvm::ArrayRef<MemoryPoint> curve, double from_s,
                 double to_s) {
  double peak = 0;
  for (size_t i = 0; i < curve.size(); ++i) {
    bool beginsInTime = curve[i].time_s < to_s;
    bool endsInTime = i + 1 == curve.size() || curve[i + 1].time_s > from_s;
    if (beginsInTime && endsInTime)
      peak = std::max(peak, curve[i].bytes);
  }
  return peak;
}

double meanBytes(llvm::ArrayRef<MemoryPoint> curve, double from_s,
                 double to_s) {
  double sum = 0;
  for (size_t i = 0; i + 1 < curve.size(); ++i) {
    double length =
        std::min(curve[i + 1].time_s, to_s) - std::max(curve[i].time_s, from_s);
    sum += std::max(length, 0.0) * curve[i].bytes;
  }
  return to_s > from_s ? sum / (to_s - from_s) : 0;
}

} // namespace autohet
