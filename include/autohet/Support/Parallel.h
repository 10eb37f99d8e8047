//===- Parallel.h - jobs that several threads share -------------*- C++ -*-===//

#ifndef AUTOHET_SUPPORT_PARALLEL_H
#define AUTOHET_SUPPORT_PARALLEL_H

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace autohet {

/// Cores that this process may use: `taskset` counts.
unsigned usableCores();

/// work(0) to work(count - 1), each once, begun in this order. Up to `helpers`
/// threads begin at once, beside the caller's, which joins them in finish().
class SharedJobs {
public:
  SharedJobs(size_t count, unsigned helpers, std::function<void(size_t)> work);
  ~SharedJobs() { finish(); }
  SharedJobs(const SharedJobs &) = delete;
  SharedJobs &operator=(const SharedJobs &) = delete;

  /// Does what nobody has begun, and waits for the others.
  void finish();

private:
  void takeJobs();

  size_t count;
  std::function<void(size_t)> work;
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
};

} // namespace autohet

#endif
