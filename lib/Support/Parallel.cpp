//===- Parallel.cpp - jobs that several threads share ---------------------===//

#include "autohet/Support/Parallel.h"

#include "llvm/Support/Threading.h"
#include <algorithm>

namespace autohet {

unsigned usableCores() {
  return std::max(1u, llvm::hardware_concurrency().compute_thread_count());
}

SharedJobs::SharedJobs(size_t count, unsigned helpers,
                       std::function<void(size_t)> work)
    : count(count), work(std::move(work)) {
  for (unsigned i = 0; i < std::min<size_t>(helpers, count); ++i)
    threads.emplace_back([this] { takeJobs(); });
}

void SharedJobs::takeJobs() {
  for (size_t job = next++; job < count; job = next++)
    work(job);
}

void SharedJobs::finish() {
  takeJobs();
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
}

} // namespace autohet
