//===- Trace.cpp - what a device did, and when ------------------------------===//

#include "trace/Trace.h"

#include "core/Fields.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

namespace autohet::runtime {

uint64_t monotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Trace::Trace(const Program &program)
    : program(program), streams(program.streams.size()) {}

void Trace::command(uint32_t stream, const ah_command &command, uint64_t step,
                    int64_t microbatch, uint64_t beginNs, uint64_t endNs) {
  auto &slices = streams[stream];
  if (slices.size() < maxSlices)
    slices.push_back({program.name(command), command.kind, step, microbatch,
                      beginNs, endNs});
}

void Trace::transfer(const char *name, bool isSend, uint32_t peer,
                     uint64_t bytes, uint64_t step, int64_t microbatch,
                     uint64_t beginNs, uint64_t endNs) {
  std::lock_guard<std::mutex> lock(mutex);
  if (transfers.size() < maxSlices)
    transfers.push_back(
        {name, isSend, peer, bytes, step, microbatch, beginNs, endNs});
}

void Trace::write(const std::string &path) const {
  std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "w"), fclose);
  if (!file)
    fail(AH_ERROR_SYSTEM, "cannot write trace '%s': %s", path.c_str(),
         strerror(errno));
  FILE *out = file.get();
  uint32_t process = program.header().rank;
  fprintf(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  fprintf(out,
          "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{"
          "\"name\":\"rank %u, "
          "%s\"}}",
          process, process, program.deviceName().c_str());
  // Complete slices (X), microseconds; the monotonic clock is one for all
  // processes of a machine, so their files can be laid side by side.
  bool dropped = transfers.size() >= maxSlices;
  for (uint32_t stream = 0; stream < streams.size(); ++stream) {
    fprintf(out,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,"
            "\"args\":{"
            "\"name\":%s}}",
            process, stream,
            jsonQuoted(program.string(program.streams[stream].name)).c_str());
    dropped |= streams[stream].size() >= maxSlices;
    for (const Slice &s : streams[stream])
      fprintf(out,
              ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":%s,\"cat\":\"%"
              "s\",\"ts\":%.3f,"
              "\"dur\":%.3f,\"args\":{\"step\":%" PRIu64
              ",\"microbatch\":%" PRId64 "}}",
              process, stream, jsonQuoted(s.name).c_str(), kindName(s.kind),
              s.beginNs / 1e3, (s.endNs - s.beginNs) / 1e3, s.step,
              s.microbatch);
  }
  // Transfers overlap, which slices of one thread may not: async events (b, e).
  uint64_t id = 0;
  for (const Transfer &t : transfers) {
    std::string name = jsonQuoted(t.name);
    const char *category = t.isSend ? "send" : "receive";
    ++id;
    fprintf(out,
            ",\n{\"ph\":\"b\",\"pid\":%u,\"id\":%" PRIu64
            ",\"name\":%s,\"cat\":\"%s\",\"ts\":%.3f,\"args\":{\"peer\":%u,"
            "\"bytes\":%" PRIu64 ",\"step\":%" PRIu64 ",\"microbatch\":%" PRId64
            "}}"
            ",\n{\"ph\":\"e\",\"pid\":%u,\"id\":%" PRIu64
            ",\"name\":%s,\"cat\":\"%s\",\"ts\":%.3f}",
            process, id, name.c_str(), category, t.beginNs / 1e3, t.peer,
            t.bytes, t.step, t.microbatch, process, id, name.c_str(), category,
            t.endNs / 1e3);
  }
  fprintf(out, "\n],\"otherData\":{\"complete\":\"%s\"}}\n",
          dropped ? "no: the end was dropped" : "yes");
  if (ferror(out) || fflush(out) != 0)
    fail(AH_ERROR_NO_SPACE, "cannot write trace '%s': %s", path.c_str(),
         strerror(errno));
}

} // namespace autohet::runtime
