//===- ProgramBuilder.h - device programs by hand ----------------*- C++ -*-===//
//
// Builds the blobs that the compiler would, a line a command, so that tests of
// the runtime need no compiler.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_RUNTIME_PROGRAMBUILDER_H
#define AUTOHET_TEST_UNIT_RUNTIME_PROGRAMBUILDER_H

#include "autohet/runtime/program.h"
#include "core/Program.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace autohet::runtime::test {

class ProgramBuilder {
public:
  ah_program header = {};
  std::vector<ah_buffer> buffers;
  std::vector<uint32_t> operands;
  std::vector<ah_command> commands;
  std::vector<ah_gemm> gemms;
  std::vector<ah_parameter> parameters;
  std::vector<ah_port> inputs, outputs;
  std::vector<ah_stream> streams;
  std::vector<ah_event> events;
  std::vector<ah_kernel> kernels;
  std::vector<const char *> kernelNames;

  ProgramBuilder() {
    header.magic = AH_PROGRAM_MAGIC;
    header.version = AH_PROGRAM_VERSION;
    header.header_bytes = sizeof header;
    header.world_size = 1;
    header.optimizer = AH_SGD;
    header.objective = AH_GIVEN;
    header.ignore_index = -100;
    header.reports_loss = 1;
    header.global_batch = header.microbatches = header.microbatch_size = 1;
    header.space_bytes[AH_SPACE_SCALAR] = 64 * AH_SCALAR_COUNT;
    string("");
  }

  void batch(uint32_t microbatches, uint32_t size) {
    header.microbatches = microbatches;
    header.microbatch_size = size;
    header.global_batch = microbatches * size;
  }

  uint32_t string(const std::string &text) {
    auto [found, isNew] = strings.emplace(text, stringBytes.size());
    if (isNew)
      stringBytes.insert(stringBytes.end(), text.c_str(),
                         text.c_str() + text.size() + 1);
    return found->second;
  }

  uint32_t buffer(const std::string &name, ah_space space, ah_dtype dtype,
                  std::vector<int64_t> shape, uint32_t slots = 1) {
    ah_buffer b = {};
    b.name = string(name);
    b.space = space;
    b.dtype = dtype;
    b.rank = shape.size();
    std::copy(shape.begin(), shape.end(), b.shape);
    b.slots = slots;
    b.bytes = elementCount(b.shape, b.rank) * dtypeBytes(dtype);
    b.slot_stride = (b.bytes + 63) / 64 * 64;
    b.offset = header.space_bytes[space];
    header.space_bytes[space] += slots * b.slot_stride;
    buffers.push_back(b);
    return buffers.size() - 1;
  }

  uint32_t scalar(ah_scalar which) {
    ah_buffer b = {};
    b.space = AH_SPACE_SCALAR;
    b.dtype = AH_F32;
    b.slots = 1;
    b.bytes = 4;
    b.offset = 64 * which;
    buffers.push_back(b);
    return buffers.size() - 1;
  }

  /// A trained parameter held whole, with gradient and, for Adam, two states.
  uint32_t parameter(const std::string &name, std::vector<int64_t> shape) {
    ah_parameter p = {};
    p.name = string(name);
    p.dtype = AH_F32;
    p.rank = shape.size();
    p.trained = p.owned = 1;
    std::copy(shape.begin(), shape.end(), p.global_shape);
    std::copy(shape.begin(), shape.end(), p.box_size);
    p.parameter_buffer = buffer(name, AH_SPACE_PARAMETER, AH_F32, shape);
    p.gradient_buffer =
        buffer("grad." + name, AH_SPACE_GRADIENT, AH_F32, shape);
    p.state_buffers[0] = p.state_buffers[1] = AH_NO_INDEX;
    if (header.optimizer != AH_SGD)
      for (int state = 0; state < 2; ++state)
        p.state_buffers[state] =
            buffer("state." + name, AH_SPACE_STATE, AH_F32, shape);
    parameters.push_back(p);
    return parameters.size() - 1;
  }

  uint32_t port(std::vector<ah_port> &ports, const std::string &name,
                ah_dtype dtype, std::vector<int64_t> shape,
                ah_binding kind = AH_BIND_FILE, bool isLabels = false,
                int64_t vocabulary = 0) {
    ah_port p = {};
    p.name = string(name);
    p.dtype = dtype;
    p.rank = shape.size();
    p.role = isLabels;
    p.kind = kind;
    std::copy(shape.begin(), shape.end(), p.shape);
    std::copy(shape.begin(), shape.end(), p.global_shape);
    p.batch_dim = shape.empty() ? -1 : 0;
    p.vocabulary = vocabulary;
    ports.push_back(p);
    return ports.size() - 1;
  }

  uint32_t event(const std::string &name, bool onceAStep = false) {
    events.push_back({string(name), onceAStep});
    return events.size() - 1;
  }

  void stream(const std::string &name) {
    streams.push_back({string(name), uint32_t(commands.size()), 0, 0});
  }

  ah_command &command(ah_command_kind kind, const std::string &name,
                      std::vector<uint32_t> buffers = {},
                      std::vector<int64_t> args = {}, int32_t microbatch = 0) {
    ah_command c = {};
    c.kind = kind;
    c.name = string(name);
    c.operand_count = buffers.size();
    c.first_operand = operands.size();
    operands.insert(operands.end(), buffers.begin(), buffers.end());
    std::copy(args.begin(), args.end(), c.args);
    if (kind == AH_END_LOOP)
      inLoop = false;
    c.in_loop = inLoop;
    if (kind == AH_LOOP)
      inLoop = true;
    c.microbatch = microbatch;
    commands.push_back(c);
    ++streams.back().command_count;
    return commands.back();
  }

  uint32_t kernel(ah_kernel function) {
    kernels.push_back(function);
    kernelNames.push_back("kernel");
    return kernels.size() - 1;
  }

  /// The last: everything as one blob. The builder must outlive its use.
  ah_device_image build() {
    blob.assign(sizeof(ah_program) / 8, 0);
    header.buffers = table(buffers);
    header.operands = table(operands);
    header.commands = table(commands);
    header.gemms = table(gemms);
    header.parameters = table(parameters);
    header.inputs = table(inputs);
    header.outputs = table(outputs);
    header.streams = table(streams);
    header.events = table(events);
    header.strings = table(stringBytes);
    header.total_bytes = blob.size() * 8;
    memcpy(blob.data(), &header, sizeof header);
    return {reinterpret_cast<ah_program *>(blob.data()), kernels.data(),
            uint32_t(kernels.size()), kernelNames.data()};
  }

private:
  template <typename T>
  ah_table table(const std::vector<T> &elements) {
    ah_table result = {blob.size() * 8, uint32_t(elements.size()), sizeof(T)};
    size_t bytes = elements.size() * sizeof(T);
    blob.resize(blob.size() + (bytes + 7) / 8);
    if (bytes)
      memcpy(reinterpret_cast<char *>(blob.data()) + result.offset,
             elements.data(), bytes);
    return result;
  }

  std::map<std::string, uint32_t> strings;
  std::vector<char> stringBytes;
  std::vector<uint64_t> blob; // aligned
  bool inLoop = false;
};

} // namespace autohet::runtime::test

#endif
