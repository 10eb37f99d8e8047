//===- ChromeTrace.cpp - simulated timelines for trace viewers ------------===//

#include "autohet/Simulator/MemoryOverTime.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace json = llvm::json;

namespace autohet {

static llvm::format_object<double> micros(double seconds) {
  return llvm::format("%.3f", seconds * 1e6);
}

std::string formatChromeTrace(const SimProgram &program,
                              const SimResult &result) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  llvm::ListSeparator comma(",\n");
  for (auto [rank, device] : llvm::enumerate(program.devices)) {
    os << comma << "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" << rank
       << ",\"args\":{\"name\":"
       << json::Value("rank " + std::to_string(rank) + ", " + device.name +
                      " (predicted)")
       << "}}";
    for (auto [index, stream] : llvm::enumerate(device.streams))
      os << comma << "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" << rank
         << ",\"tid\":" << index
         << ",\"args\":{\"name\":" << json::Value(stream.name) << "}}";
  }
  for (const SimSpan &span : result.spans) {
    const SimCommand &command = program.devices[span.device]
                                    .streams[span.stream]
                                    .commands[span.command];
    os << comma << "{\"ph\":\"X\",\"pid\":" << span.device
       << ",\"tid\":" << span.stream
       << ",\"name\":" << json::Value(command.name) << ",\"cat\":\""
       << (span.is_waiting ? "wait" : "compute")
       << "\",\"ts\":" << micros(span.start_s)
       << ",\"dur\":" << micros(span.end_s - span.start_s)
       << ",\"args\":{\"step\":" << span.step
       << ",\"microbatch\":" << span.microbatch;
    if (!span.is_waiting)
      for (auto [name, quantity] : kWorkQuantities)
        if (command.work.*quantity > 0)
          os << ",\"" << name << "\":" << json::Value(command.work.*quantity);
    os << "}}";
  }
  // Transfers overlap, which slices of one thread may not: async events.
  for (auto [id, transfer] : llvm::enumerate(result.transfers)) {
    std::string name = llvm::formatv("{0}", json::Value(transfer.name)).str();
    os << comma << "{\"ph\":\"b\",\"pid\":" << transfer.from
       << ",\"id\":" << id + 1 << ",\"name\":" << name
       << ",\"cat\":\"send\",\"ts\":" << micros(transfer.start_s)
       << ",\"args\":{\"peer\":" << transfer.to
       << ",\"bytes\":" << llvm::format("%.0f", transfer.bytes)
       << ",\"microbatch\":" << transfer.microbatch << "}}" << comma
       << "{\"ph\":\"e\",\"pid\":" << transfer.from << ",\"id\":" << id + 1
       << ",\"name\":" << name
       << ",\"cat\":\"send\",\"ts\":" << micros(transfer.end_s) << "}";
  }
  for (auto [rank, curve] : llvm::enumerate(memoryOverTime(program, result)))
    for (const MemoryPoint &point : curve)
      os << comma << "{\"ph\":\"C\",\"name\":\"memory in use\",\"pid\":" << rank
         << ",\"ts\":" << micros(point.time_s)
         << ",\"args\":{\"bytes\":" << llvm::format("%.0f", point.bytes)
         << "}}";
  os << "]}\n";
  return text;
}

} // namespace autohet
