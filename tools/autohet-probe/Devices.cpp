//===- Devices.cpp - how fast do this machine's devices compute? ----------===//
//
// Devices of a machine share its memory and often its cores' units, so all are
// measured at once: alone, each would look faster than it is in a run.
//
//===----------------------------------------------------------------------===//

#include "Probe.h"

#include "autohet/runtime/program.h"
#include "core/Error.h"
#include "device/cpu/Numerics.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace autohet;
using namespace autohet::probe;
using namespace autohet::runtime;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

unsigned probe::usableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

double probe::usableMemoryBytes() {
  double bytes =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE));
  for (const char *path : {"/sys/fs/cgroup/memory.max",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    double limit = 0;
    if (std::ifstream(path) >> limit) // "max" is no number
      bytes = std::min(bytes, limit);
  }
  return bytes;
}

/// Products of the shape that a transformer of hidden 512 has; the best of
/// rounds of 50 ms, for whoever interrupts only makes them slower.
static double measureFlops(double seconds) {
  constexpr int64_t m = 512, n = 512, k = 512;
  std::vector<float> a(m * k, 0.5f), b(k * n, 0.25f), c(m * n);
  auto multiply = [&] {
    autohet_sgemm(0, 0, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n);
  };
  multiply(); // makes oneDNN's kernel
  double best = 0;
  for (auto begin = Clock::now(); secondsSince(begin) < seconds;) {
    auto start = Clock::now();
    int64_t count = 0;
    for (; secondsSince(start) < 0.05; ++count)
      multiply();
    best = std::max(best, 2.0 * m * n * k * count / secondsSince(start));
  }
  if (const char *failure = cpu::takeGemmFailure())
    fail(AH_ERROR_NOT_FOUND, "%s", failure);
  return best;
}

/// a = b + s c over more than any cache holds; bytes read and written.
static double measureMemory(double seconds) {
  constexpr size_t count = 8 << 20;
  std::vector<float> a(count), b(count, 1.0f), c(count, 2.0f);
  double best = 0;
  for (auto begin = Clock::now(); secondsSince(begin) < seconds;) {
    auto start = Clock::now();
    for (size_t i = 0; i < count; ++i)
      a[i] = b[i] + 0.5f * c[i];
    asm volatile("" : : "r"(a.data()) : "memory");
    best = std::max(best, 3.0 * sizeof(float) * count / secondsSince(start));
  }
  return best;
}

/// What one device's process measures, with all of its threads.
static DeviceRates measureDevice(unsigned threads) {
  std::vector<DeviceRates> parts(threads);
  auto measure = [&](unsigned index) {
    parts[index].flops_per_s = measureFlops(1.2);
    parts[index].memory_bandwidth_bytes_per_s = measureMemory(1.2);
  };
  std::vector<std::thread> helpers;
  for (unsigned index = 1; index < threads; ++index)
    helpers.emplace_back(measure, index);
  measure(0);
  for (std::thread &helper : helpers)
    helper.join();
  DeviceRates sum;
  for (const DeviceRates &part : parts) {
    sum.flops_per_s += part.flops_per_s;
    sum.memory_bandwidth_bytes_per_s += part.memory_bandwidth_bytes_per_s;
  }
  return sum;
}

/// Device i gets the i-th `threads` of the cores that this process may use;
/// where there are fewer, devices share them.
static void pinTo(unsigned device, unsigned threads) {
  cpu_set_t all, own;
  if (sched_getaffinity(0, sizeof(all), &all) != 0)
    return;
  unsigned cores = CPU_COUNT(&all), seen = 0;
  CPU_ZERO(&own);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all))
      continue;
    unsigned first = device * threads % cores;
    if ((seen + cores - first) % cores < threads)
      CPU_SET(core, &own);
    ++seen;
  }
  sched_setaffinity(0, sizeof(own), &own);
}

void probe::measureDevices(Machine &machine) {
  cpu::requireGemmLibrary();
  size_t bytes = machine.devices * sizeof(DeviceRates);
  void *page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    fail(AH_ERROR_SYSTEM, "cannot share memory: %s", strerror(errno));
  auto *rates = static_cast<DeviceRates *>(page);
  std::vector<pid_t> children;
  for (unsigned device = 0; device < machine.devices; ++device) {
    pid_t child = fork();
    if (child < 0)
      fail(AH_ERROR_SYSTEM, "cannot start a process: %s", strerror(errno));
    if (child == 0) {
      pinTo(device, machine.threads);
      try {
        rates[device] = measureDevice(machine.threads);
      } catch (const std::exception &error) {
        fprintf(stderr, "autohet-probe: error: %s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  bool good = true;
  for (pid_t child : children) {
    int status = 0;
    good &= waitpid(child, &status, 0) == child && status == 0;
  }
  if (!good)
    fail(AH_ERROR_SYSTEM, "a device's process did not end its measurement");
  auto range = [&](double DeviceRates::*rate) {
    double low = rates[0].*rate, high = low;
    for (unsigned i = 1; i < machine.devices; ++i) {
      low = std::min(low, rates[i].*rate);
      high = std::max(high, rates[i].*rate);
    }
    machine.spread = std::max(machine.spread, high / low - 1);
    return low;
  };
  machine.rates.memory_bandwidth_bytes_per_s =
      range(&DeviceRates::memory_bandwidth_bytes_per_s);
  machine.spread = 0; // of arithmetic, which decides plans
  machine.rates.flops_per_s = range(&DeviceRates::flops_per_s);
  munmap(page, bytes);
}
