//===- SimulationText.cpp - what a simulation says --------------------------===//
//
// Devices whose programs take the same times and need the same memory are one
// line: on large clusters most are.
//
//===----------------------------------------------------------------------===//

#include "SimulateFile.h"

#include "autohet/Report/PlanText.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace autohet;

namespace {

constexpr size_t mostCommands = 8;

std::string seconds(double value) {
  return formatQuantity(value, Dimension::Seconds);
}
std::string bytes(double value) {
  return formatQuantity(value, Dimension::Bytes);
}

class SimulationWriter {
public:
  SimulationWriter(const SimSummary &summary,
                   llvm::ArrayRef<DeviceMemory> memory, const Cluster &cluster,
                   unsigned tensors, llvm::raw_ostream &os)
      : summary(summary), memory(memory), cluster(cluster), tensors(tensors),
        os(os) {}

  void write() {
    os << "step: " << seconds(summary.step_s)
       << " in the long run, of the programs as they will run, in fp32\n";
    writeTimes();
    writeCommands();
    writeMemory();
  }

private:
  /// Devices by a text that equal ones share.
  using Groups = llvm::MapVector<std::string, std::vector<unsigned>,
                                 std::map<std::string, unsigned>>;

  std::string namesOf(llvm::ArrayRef<unsigned> indices,
                      llvm::function_ref<llvm::StringRef(unsigned)> name) {
    std::vector<unsigned> devices;
    for (unsigned index : indices)
      if (std::optional<unsigned> device = cluster.findDevice(name(index)))
        devices.push_back(*device);
    return formatDevices(devices, cluster);
  }

  std::string percent(double part) {
    return llvm::formatv("{0:P1}", part / summary.step_s).str();
  }

  void writeTimes() {
    Groups groups;
    for (auto [index, device] : llvm::enumerate(summary.devices)) {
      std::string row = llvm::formatv(
          "{0,10}{1,16}{2,10}", percent(device.compute_s),
          percent(device.exposed_communication_s), percent(device.waiting_s));
      for (const StreamSummary &stream : device.streams)
        row += llvm::formatv("  {0} {1} busy {2} waits", stream.name,
                             percent(stream.busy_s), percent(stream.waiting_s));
      groups[row].push_back(index);
    }
    os << llvm::formatv("{0,-20}{1,10}{2,16}{3,10}  {4}\n", "time", "computes",
                        "communicates", "waits", "streams");
    for (const auto &[row, devices] : groups)
      os << llvm::formatv("{0,-20}{1}\n",
                          namesOf(devices,
                                  [&](unsigned index) -> llvm::StringRef {
                                    return summary.devices[index].name;
                                  }),
                          row);
  }

  void writeCommands() {
    double all = 0;
    for (const CommandSummary &command : summary.commands)
      all += command.seconds;
    os << "computing, of all devices\n";
    for (const CommandSummary &command :
         llvm::ArrayRef(summary.commands).take_front(mostCommands))
      os << llvm::formatv("  {0,-32}{1,12}{2,8:P1}{3,8} times\n", command.name,
                          seconds(command.seconds), command.seconds / all,
                          command.count);
    if (summary.commands.size() > mostCommands)
      os << "  and " << summary.commands.size() - mostCommands << " more\n";
  }

  void writeMemory() {
    Groups groups;
    for (auto [index, device] : llvm::enumerate(memory)) {
      std::string row = describe(device);
      groups[row].push_back(index);
    }
    if (memory.empty()) {
      os << "memory: not planned in these programs\n";
      return;
    }
    os << "memory at its peak\n";
    for (const auto &[row, devices] : groups)
      os << namesOf(devices,
                    [&](unsigned index) -> llvm::StringRef {
                      return memory[index].name;
                    })
         << ": " << row;
  }

  std::string describe(const DeviceMemory &device) {
    const MemoryUse &use = device.use;
    double total = double(use.total());
    std::string text = llvm::formatv(
        "{0} of {1}: parameters {2}, gradients {3}, state {4}, "
        "activations {5}, messages {6}{7}\n",
        bytes(total), bytes(device.limit_bytes), bytes(double(use.parameters)),
        bytes(double(use.gradients)), bytes(double(use.states)),
        bytes(double(use.activations)), bytes(double(use.messages)),
        device.has_scratch ? ", scratch " + bytes(double(use.scratch))
                           : std::string(", kernels' scratch not counted"));
    auto over = llvm::find_if(summary.devices, [&](const DeviceSummary &one) {
      return one.name == device.name;
    });
    if (over != summary.devices.end() && over->peak_bytes > 0)
      text += llvm::formatv("  of microbatches under way: {0} at most, {1} on "
                            "average over the step\n",
                            bytes(over->peak_bytes), bytes(over->mean_bytes));
    bool isOut = device.limit_bytes > 0 && total > device.limit_bytes;
    if (isOut)
      text += "  out of memory: lacks " + bytes(total - device.limit_bytes) +
              "; held most\n";
    for (const HeldTensor &tensor :
         llvm::ArrayRef(device.tensors).take_front(tensors))
      text +=
          llvm::formatv("    {0,10}  {1,-11} {2}\n",
                        bytes(double(tensor.bytes)), tensor.what, tensor.name);
    return text;
  }

  const SimSummary &summary;
  llvm::ArrayRef<DeviceMemory> memory;
  const Cluster &cluster;
  unsigned tensors;
  llvm::raw_ostream &os;
};

} // namespace

std::string autohet::formatSimulation(const SimSummary &summary,
                                      llvm::ArrayRef<DeviceMemory> memory,
                                      const Cluster &cluster,
                                      unsigned tensors) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SimulationWriter(summary, memory, cluster, tensors, os).write();
  return text;
}
