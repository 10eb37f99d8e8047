//===- Nonfinite.cpp - finds where a NaN began ------------------------------===//

#include "core/Nonfinite.h"

#include "core/Error.h"

#include <cmath>
#include <cstring>

namespace autohet::runtime {

NonfiniteSearch::NonfiniteSearch(Memory &memory)
    : memory(memory), program(memory.program) {
  for (const ah_command &command : program.commands)
    if (command.kind == AH_RECV)
      receives[command.args[3]] = &command;
}

bool NonfiniteSearch::lookAtBuffer(uint32_t index, int64_t microbatchOfAll,
                                   const std::string &how) {
  const ah_buffer &buffer = program.buffers[index];
  if (buffer.dtype != AH_F32 || buffer.space == AH_SPACE_CONSTANT ||
      buffer.space == AH_SPACE_SCALAR || microbatchOfAll < 0)
    return false;
  int64_t elements = std::min<int64_t>(buffer.bytes / 4,
                                       elementCount(buffer.shape, buffer.rank));
  std::vector<char> bytes = memory.read(index, elements * 4, microbatchOfAll);
  for (int64_t element = 0; element < elements; ++element) {
    float value;
    memcpy(&value, bytes.data() + 4 * element, 4);
    if (!std::isnan(value) && !(value > 0 && std::isinf(value)))
      continue;
    found = format("%s in '%s', element %lld of %s, %s",
                   std::isnan(value) ? "NaN" : "infinity",
                   program.string(buffer.name), (long long)element,
                   shapeText(buffer.shape, buffer.rank).c_str(), how.c_str());
    return true;
  }
  return false;
}

void NonfiniteSearch::lookAtParameters() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const ah_parameter &parameter : program.parameters)
    if (parameter.trained && found.empty())
      lookAtBuffer(parameter.parameter_buffer, 0,
                   "a parameter that was so before the step");
}

void NonfiniteSearch::look(const ah_command &command, int64_t microbatch,
                           uint64_t firstMicrobatch) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!found.empty())
    return;
  const ah_command *subject = &command;
  std::string how;
  switch (command.kind) {
  case AH_WAIT: {
    // What arrives is there only now, and was made by another rank.
    auto received = receives.find(command.args[0]);
    if (received == receives.end())
      return;
    subject = received->second;
    how = format("received from rank %lld", (long long)subject->args[0]);
    break;
  }
  case AH_SEND:
  case AH_RECV:
  case AH_RECORD:
  case AH_UPDATE:
    return;
  default:
    how = "made by " + program.describe(command);
    break;
  }
  how += format(", microbatch %lld", (long long)microbatch);
  for (unsigned operand = 0; operand < subject->operand_count; ++operand)
    if (lookAtBuffer(program.operands[subject->first_operand + operand],
                     int64_t(firstMicrobatch) + microbatch, how)) {
      isReceived = command.kind == AH_WAIT;
      return;
    }
}

bool NonfiniteSearch::beganHere() {
  std::lock_guard<std::mutex> lock(mutex);
  return !found.empty() && !isReceived;
}

std::string NonfiniteSearch::finding() {
  std::lock_guard<std::mutex> lock(mutex);
  return found;
}

} // namespace autohet::runtime
