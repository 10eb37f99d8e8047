//===- Boards.cpp - what a worker did last, in words ----------------------===//
//
// A worker writes numbers only, which costs a step nothing. The supervisor has
// the same image and puts the names to them when somebody asks.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Boards.h"

using namespace autohet::runtime;

template <typename T>
static T load(const T &field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}

std::string autohet::runtime::describeBoard(const ah_device_image &device,
                                            const ah_board &board) {
  static const char *const phases[] = {"starting", "running", "saving",
                                       "evaluating", "finished"};
  uint64_t phase = load(board.phase);
  std::string text = phase < std::size(phases) ? phases[phase] : "?";
  text += ", step " + std::to_string(load(board.step)) + ", " +
          std::to_string(load(board.commands)) + " commands";
  const ah_program *program = device.program;
  if (!program || phase == AH_PHASE_STARTING)
    return text;
  const char *base = reinterpret_cast<const char *>(program);
  auto *commands =
      reinterpret_cast<const ah_command *>(base + program->commands.offset);
  auto *streams =
      reinterpret_cast<const ah_stream *>(base + program->streams.offset);
  const char *strings = base + program->strings.offset;
  // The worker may scribble on its board before it dies: nothing is trusted.
  auto name = [&](uint32_t offset) {
    return offset < program->strings.count ? strings + offset : "?";
  };
  for (uint32_t i = 0; i < program->streams.count && i < AH_BOARD_STREAMS;
       ++i) {
    uint64_t position = load(board.streams[i].position);
    if (position >= program->commands.count)
      continue;
    text += std::string("; ") + name(streams[i].name) + " at '" +
            name(commands[position].name) + "'";
    if (int64_t microbatch = load(board.streams[i].microbatch); microbatch >= 0)
      text += " microbatch " + std::to_string(microbatch);
  }
  return text;
}
