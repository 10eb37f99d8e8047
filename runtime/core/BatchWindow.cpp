//===- BatchWindow.cpp - how far ranks may run ahead --------------------------===//

#include "core/BatchWindow.h"

#include "core/Gather.h"

namespace autohet::runtime {

// More microbatches than any pipeline has under way, and few enough that their
// messages (each below the size that waits for its receiver) are small change.
static constexpr uint64_t blockMicrobatches = 32;
// Beside those of gathered tensors and of checkpoints.
static constexpr uint32_t windowChannel = 3;

BatchWindow::BatchWindow(const Program &program, const ah_worker_link &link,
                         uint64_t batches)
    : link(link), batches(batches) {
  // Equal on both ends of a message: they work for one replica.
  uint64_t batch = program.header().microbatches;
  blockBatches = (blockMicrobatches + batch - 1) / batch;
  for (const ah_command &command : program.commands) {
    if (command.kind == AH_SEND)
      receivers.insert(command.args[0]);
    if (command.kind == AH_RECV)
      senders.insert(command.args[0]);
  }
}

void BatchWindow::beforeBatch(uint64_t batch) {
  if (batch % blockBatches || batch / blockBatches < 2)
    return;
  uint64_t block = 0;
  for (uint32_t rank : receivers)
    transferNow(link, false, rank, windowChannel, &block, sizeof block,
                "batches read");
}

void BatchWindow::afterBatch(uint64_t batch) {
  uint64_t block = batch / blockBatches;
  // Whoever begins the block after the next asks for this.
  if ((batch + 1) % blockBatches || (block + 2) * blockBatches >= batches)
    return;
  for (uint32_t rank : senders)
    transferNow(link, true, rank, windowChannel, &block, sizeof block,
                "batches read");
}

} // namespace autohet::runtime
