//===- CoreLoad.h - emulated speeds that hold whoever works -----*- C++ -*-===//
//
// Cores of one machine share what makes them fast: two threads of one physical
// core its units, all cores a power budget. A worker beside idle ones would run
// some 20 % faster than beside busy ones, and a plan that leaves devices idle
// would be measured on a faster cluster than one that uses all. So whatever
// workers leave of the cores is kept busy, by threads that give way to
// everybody.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_CORELOAD_H
#define AUTOHET_RUNTIME_SUPERVISOR_CORELOAD_H

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace autohet::runtime {

class CoreLoad {
public:
  /// On all cores that this process may use.
  CoreLoad();
  ~CoreLoad();
  CoreLoad(const CoreLoad &) = delete;
  CoreLoad &operator=(const CoreLoad &) = delete;

private:
  std::atomic<bool> stopping{false};
  std::vector<std::thread> threads; // one a core

  void run(uint32_t core);
};

} // namespace autohet::runtime

#endif
