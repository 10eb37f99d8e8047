//===- BatchWindow.h - how far ranks may run ahead ----------------*- C++ -*-===//
//
// A small message leaves whether or not its receiver is there, and waits in the
// receiver's memory. A training step ends in an agreement, which bounds that;
// batches of inference follow one another without one. So a rank tells those
// that it receives from how far it has come, once a block of batches, and
// nobody is more than two blocks ahead of who reads what it sends.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_BATCHWINDOW_H
#define AUTOHET_RUNTIME_CORE_BATCHWINDOW_H

#include "autohet/runtime/comm.h"
#include "core/Program.h"

#include <set>

namespace autohet::runtime {

class BatchWindow {
public:
  BatchWindow(const Program &program, const ah_worker_link &link,
              uint64_t batches);

  /// Waits until this rank may begin `batch`.
  void beforeBatch(uint64_t batch);
  /// All that `batch` receives has been read.
  void afterBatch(uint64_t batch);

private:
  const ah_worker_link &link;
  uint64_t batches, blockBatches;
  std::set<uint32_t> senders, receivers; ///< ranks, of this one's view
};

} // namespace autohet::runtime

#endif
