//===- Summary.cpp - where a simulated step's time goes -------------------===//

#include "autohet/Simulator/Summary.h"
#include "autohet/Simulator/MemoryOverTime.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

namespace autohet {
namespace {

struct Window {
  double start_s = 0, end_s = 0;

  double length() const { return std::max(0.0, end_s - start_s); }
  Window within(const Window &other) const {
    return {std::max(start_s, other.start_s), std::min(end_s, other.end_s)};
  }
};

/// Sorted, without overlaps.
std::vector<Window> unite(std::vector<Window> windows) {
  llvm::sort(windows, [](const Window &a, const Window &b) {
    return a.start_s < b.start_s;
  });
  std::vector<Window> united;
  for (const Window &window : windows) {
    if (!united.empty() && window.start_s <= united.back().end_s)
      united.back().end_s = std::max(united.back().end_s, window.end_s);
    else
      united.push_back(window);
  }
  return united;
}

double lengthOf(const std::vector<Window> &windows) {
  double sum = 0;
  for (const Window &window : windows)
    sum += window.length();
  return sum;
}

/// Time in windows of the first list and of none of the second; both united.
double lengthOutside(const std::vector<Window> &windows,
                     const std::vector<Window> &others) {
  double sum = lengthOf(windows);
  size_t next = 0;
  for (const Window &window : windows) {
    while (next < others.size() && others[next].end_s <= window.start_s)
      ++next;
    for (size_t i = next; i < others.size() && others[i].start_s < window.end_s;
         ++i)
      sum -= window.within(others[i]).length();
  }
  return sum;
}

} // namespace

SimSummary summarize(const SimProgram &program, const SimResult &result) {
  SimSummary summary;
  summary.step_s = result.step_s.back();
  Window step = {result.end_s - summary.step_s, result.end_s};
  size_t count = program.devices.size();
  std::vector<std::vector<Window>> computing(count), sending(count);
  llvm::StringMap<size_t> commandOf;
  for (const SimDevice &device : program.devices) {
    DeviceSummary &entry = summary.devices.emplace_back();
    entry.name = device.name;
    for (const SimStream &stream : device.streams)
      entry.streams.push_back({stream.name, 0, 0});
  }
  for (const SimSpan &span : result.spans) {
    Window window = Window{span.start_s, span.end_s}.within(step);
    double seconds = window.length();
    if (seconds == 0)
      continue;
    StreamSummary &stream = summary.devices[span.device].streams[span.stream];
    (span.is_waiting ? stream.waiting_s : stream.busy_s) += seconds;
    if (span.is_waiting)
      continue;
    computing[span.device].push_back(window);
    const std::string &name = program.devices[span.device]
                                  .streams[span.stream]
                                  .commands[span.command]
                                  .name;
    auto [found, isNew] = commandOf.try_emplace(name, summary.commands.size());
    if (isNew)
      summary.commands.push_back({name, 0, 0});
    CommandSummary &command = summary.commands[found->second];
    command.seconds += seconds;
    ++command.count;
  }
  for (const SimTransfer &transfer : result.transfers) {
    Window window = Window{transfer.start_s, transfer.end_s}.within(step);
    if (window.length() == 0)
      continue;
    sending[transfer.from].push_back(window);
    sending[transfer.to].push_back(window);
  }
  std::vector<std::vector<MemoryPoint>> memory =
      memoryOverTime(program, result);
  for (size_t device = 0; device < count; ++device) {
    DeviceSummary &entry = summary.devices[device];
    entry.peak_bytes = peakBytes(memory[device], step.start_s, step.end_s);
    entry.mean_bytes = meanBytes(memory[device], step.start_s, step.end_s);
    std::vector<Window> busy = unite(std::move(computing[device]));
    entry.compute_s = lengthOf(busy);
    entry.exposed_communication_s =
        lengthOutside(unite(std::move(sending[device])), busy);
    entry.waiting_s = std::max(0.0, summary.step_s - entry.compute_s -
                                        entry.exposed_communication_s);
  }
  llvm::sort(
      summary.commands, [](const CommandSummary &a, const CommandSummary &b) {
        return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
      });
  return summary;
}

} // namespace autohet
