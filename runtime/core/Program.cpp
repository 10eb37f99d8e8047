//===- Program.cpp - checks a device's program ------------------------------===//

#include "core/Program.h"

#include "core/Error.h"

#include <cstring>

namespace autohet::runtime {

uint32_t dtypeBytes(uint8_t dtype) {
  static const uint8_t bytes[] = {4, 2, 2, 8, 1, 1, 2, 2, 4, 8, 1,
                                  4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  return bytes[dtype];
}

const char *dtypeName(uint8_t dtype) {
  static const char *const names[] = {"float32",
                                      "float16",
                                      "bfloat16",
                                      "float64",
                                      "int8",
                                      "uint8",
                                      "int16",
                                      "uint16",
                                      "int32",
                                      "int64",
                                      "bool",
                                      "uint32",
                                      "uint64",
                                      "float8_e4m3fn",
                                      "float8_e4m3fnuz",
                                      "float8_e5m2",
                                      "float8_e5m2fnuz",
                                      "uint4",
                                      "int4",
                                      "float4_e2m1",
                                      "uint2",
                                      "int2"};
  return dtype < AH_DTYPE_COUNT ? names[dtype] : "unknown";
}

const char *kindName(uint8_t kind) {
  static const char *const names[] = {
      "LAUNCH", "GEMM",   "COPY", "ZERO",  "REDUCE",   "SEND",
      "RECV",   "RECORD", "WAIT", "LOOP",  "END_LOOP", "FEED",
      "LOSS",   "OUTPUT", "NORM", "AGREE", "UPDATE",   "HOOK"};
  return kind <= AH_HOOK ? names[kind] : "unknown";
}

int64_t elementCount(const int64_t *shape, unsigned rank) {
  int64_t count = 1;
  for (unsigned dim = 0; dim < rank; ++dim)
    count *= shape[dim];
  return count;
}

std::string shapeText(const int64_t *shape, unsigned rank) {
  std::string text = "[";
  for (unsigned dim = 0; dim < rank; ++dim)
    text += (dim ? ", " : "") + std::to_string(shape[dim]);
  return text + "]";
}

/// Fills the views of one Program, checking as it goes.
class ProgramChecker {
public:
  ProgramChecker(Program &program, const ah_device_image &image)
      : program(program), image(image), header(*image.program) {}

  void run() {
    checkHeader();
    mapTables();
    checkBuffers();
    checkGemms();
    checkParameters();
    checkPorts(program.inputs, "input");
    checkPorts(program.outputs, "output");
    checkStreams();
  }

private:
  void require(bool condition, const char *table, size_t index,
               const char *what) {
    if (!condition)
      fail(AH_ERROR_MISMATCH, "damaged program: %s %zu: %s", table, index,
           what);
  }

  void checkHeader() {
    if (header.magic != AH_PROGRAM_MAGIC)
      fail(AH_ERROR_MISMATCH, "not a device program (magic %#llx)",
           static_cast<unsigned long long>(header.magic));
    if (header.version != AH_PROGRAM_VERSION ||
        header.header_bytes != sizeof(ah_program))
      fail(AH_ERROR_MISMATCH,
           "device program of version %u with a header of %u bytes; this "
           "runtime "
           "walks version %u with %zu",
           header.version, header.header_bytes, AH_PROGRAM_VERSION,
           sizeof(ah_program));
    require(header.world_size > 0 && header.rank < header.world_size, "header",
            0, "rank outside the world");
    require(header.microbatches > 0 && header.microbatch_size > 0, "header", 0,
            "no microbatch");
    require(uint64_t(header.first_sample) +
                    uint64_t(header.microbatches) * header.microbatch_size <=
                header.global_batch,
            "header", 0, "microbatches outside the global batch");
    require(header.optimizer <= AH_NO_OPTIMIZER &&
                header.objective <= AH_NO_OBJECTIVE,
            "header", 0, "unknown optimizer or objective");
    require(header.space_bytes[AH_SPACE_SCALAR] >= 64 * AH_SCALAR_COUNT,
            "header", 0, "scalar space too small");
  }

  template <typename T>
  Table<T> map(const ah_table &table, const char *name) {
    bool fits =
        table.offset <= header.total_bytes &&
        uint64_t(table.count) * sizeof(T) <= header.total_bytes - table.offset;
    require(table.count == 0 || table.element_bytes == sizeof(T), name, 0,
            "elements of another size");
    require(fits && table.offset % alignof(T) == 0, name, 0,
            "table outside the program");
    auto *first = reinterpret_cast<const char *>(&header) + table.offset;
    return {reinterpret_cast<const T *>(first), table.count};
  }

  void mapTables() {
    program.buffers = map<ah_buffer>(header.buffers, "buffers");
    program.operands = map<uint32_t>(header.operands, "operands");
    program.commands = map<ah_command>(header.commands, "commands");
    program.gemms = map<ah_gemm>(header.gemms, "gemms");
    program.parameters = map<ah_parameter>(header.parameters, "parameters");
    program.inputs = map<ah_port>(header.inputs, "inputs");
    program.outputs = map<ah_port>(header.outputs, "outputs");
    program.streams = map<ah_stream>(header.streams, "streams");
    program.events = map<ah_event>(header.events, "events");
    program.strings = map<char>(header.strings, "strings");
    uint32_t size = program.strings.size();
    require(size > 0 && program.strings[size - 1] == 0, "strings", 0,
            "not terminated");
  }

  void checkName(uint32_t name, const char *table, size_t index) {
    require(name < program.strings.size(), table, index,
            "name outside the strings");
  }

  void checkShape(const int64_t *shape, unsigned rank, const char *table,
                  size_t index) {
    require(rank <= AH_MAX_RANK, table, index, "rank above 8");
    int64_t count = 1;
    for (unsigned dim = 0; dim < rank; ++dim) {
      require(shape[dim] >= 0, table, index, "negative extent");
      require(!__builtin_mul_overflow(count, shape[dim], &count), table, index,
              "shape too large");
    }
  }

  void checkBuffers() {
    for (uint32_t index = 0; index < program.buffers.size(); ++index) {
      const ah_buffer &buffer = program.buffers[index];
      checkName(buffer.name, "buffer", index);
      require(buffer.space < AH_SPACE_COUNT, "buffer", index, "unknown space");
      require(buffer.dtype < AH_DTYPE_COUNT, "buffer", index, "unknown dtype");
      checkShape(buffer.shape, buffer.rank, "buffer", index);
      require(buffer.slots > 0, "buffer", index, "no slot");
      uint64_t end = 0;
      bool overflow = __builtin_mul_overflow(uint64_t(buffer.slots - 1),
                                             buffer.slot_stride, &end) ||
                      __builtin_add_overflow(end, buffer.offset, &end) ||
                      __builtin_add_overflow(end, buffer.bytes, &end);
      require(!overflow && end <= header.space_bytes[buffer.space], "buffer",
              index, "outside its space");
    }
  }

  void checkGemms() {
    for (uint32_t index = 0; index < program.gemms.size(); ++index) {
      const ah_gemm &gemm = program.gemms[index];
      require(gemm.batch >= 0 && gemm.m >= 0 && gemm.n >= 0 && gemm.k >= 0,
              "gemm", index, "negative extent");
      require(gemm.lda >= (gemm.transpose_a ? gemm.m : gemm.k) &&
                  gemm.ldb >= (gemm.transpose_b ? gemm.k : gemm.n) &&
                  gemm.ldc >= gemm.n,
              "gemm", index, "rows overlap");
      require(gemm.stride_a >= 0 && gemm.stride_b >= 0 && gemm.stride_c >= 0,
              "gemm", index, "negative stride");
    }
  }

  // One past the last element that a matrix of a batch touches.
  static int64_t lastElement(int64_t rows, int64_t columns, int64_t leading,
                             int64_t batch, int64_t stride) {
    if (!rows || !columns || !batch)
      return 0;
    return (batch - 1) * stride + (rows - 1) * leading + columns;
  }

  void checkParameters() {
    for (uint32_t index = 0; index < program.parameters.size(); ++index) {
      const ah_parameter &parameter = program.parameters[index];
      checkName(parameter.name, "parameter", index);
      require(parameter.dtype < AH_DTYPE_COUNT, "parameter", index,
              "unknown dtype");
      checkShape(parameter.global_shape, parameter.rank, "parameter", index);
      checkShape(parameter.box_size, parameter.rank, "parameter", index);
      for (unsigned dim = 0; dim < parameter.rank; ++dim)
        require(parameter.box_offset[dim] >= 0 &&
                    parameter.box_offset[dim] + parameter.box_size[dim] <=
                        parameter.global_shape[dim],
                "parameter", index, "box outside the tensor");
      uint64_t bytes =
          uint64_t(elementCount(parameter.box_size, parameter.rank)) *
          dtypeBytes(parameter.dtype);
      auto checkHolder = [&](uint32_t buffer) {
        require(buffer < program.buffers.size() &&
                    program.buffers[buffer].bytes >= bytes,
                "parameter", index, "buffer missing or too small");
      };
      checkHolder(parameter.parameter_buffer);
      for (uint32_t buffer :
           {parameter.gradient_buffer, parameter.state_buffers[0],
            parameter.state_buffers[1]})
        if (buffer != AH_NO_INDEX)
          checkHolder(buffer);
    }
  }

  void checkPorts(const Table<ah_port> &ports, const char *table) {
    for (uint32_t index = 0; index < ports.size(); ++index) {
      const ah_port &port = ports[index];
      checkName(port.name, table, index);
      require(port.dtype < AH_DTYPE_COUNT, table, index, "unknown dtype");
      require(port.kind <= AH_BIND_ARANGE, table, index, "unknown binding");
      checkShape(port.shape, port.rank, table, index);
      require(port.batch_dim >= -1 && port.batch_dim < port.rank, table, index,
              "batch dim outside the shape");
    }
  }

  void checkStreams() {
    uint32_t walked = 0;
    for (uint32_t index = 0; index < program.streams.size(); ++index) {
      const ah_stream &stream = program.streams[index];
      checkName(stream.name, "stream", index);
      require(stream.first_command <= program.commands.size() &&
                  stream.command_count <=
                      program.commands.size() - stream.first_command,
              "stream", index, "commands outside the table");
      walked += stream.command_count;
      checkCommands(stream);
    }
    require(program.streams.size() > 0, "stream", 0, "a program needs one");
    require(walked == program.commands.size(), "stream", 0,
            "streams do not partition the commands");
  }

  void checkCommands(const ah_stream &stream) {
    int64_t first = 0, end = 0;
    bool inLoop = false;
    for (uint32_t offset = 0; offset < stream.command_count; ++offset) {
      uint32_t index = stream.first_command + offset;
      const ah_command &command = program.commands[index];
      auto need = [&](bool condition, const char *what) {
        if (!condition)
          fail(AH_ERROR_MISMATCH, "damaged program: command %u (%s): %s", index,
               program.describe(command).c_str(), what);
      };
      require(command.name < program.strings.size(), "command", index,
              "name outside the strings");
      need(command.kind <= AH_HOOK, "unknown kind");
      need(command.first_operand <= program.operands.size() &&
               command.operand_count <=
                   program.operands.size() - command.first_operand,
           "operands outside the table");
      for (uint32_t operand = 0; operand < command.operand_count; ++operand)
        need(program.operands[command.first_operand + operand] <
                 program.buffers.size(),
             "unknown buffer");
      if (command.kind == AH_LOOP) {
        need(!inLoop, "loops do not nest");
        inLoop = true;
        first = command.args[0];
        end = command.args[1];
        need(first >= 0 && first <= end && end <= header.microbatches,
             "loop outside the step's microbatches");
        continue;
      }
      if (command.kind == AH_END_LOOP) {
        need(inLoop, "ends no loop");
        inLoop = false;
        continue;
      }
      need(bool(command.in_loop) == inLoop,
           "says wrongly whether it is in a loop");
      if (!inLoop || first < end)
        checkMicrobatch(command, need, inLoop ? first : 0,
                        inLoop ? end - 1 : 0);
      checkArguments(command, need);
    }
    require(!inLoop, "stream", stream.first_command, "loop without an end");
  }

  template <typename Need>
  void checkMicrobatch(const ah_command &command, Need need, int64_t lowest,
                       int64_t highest) {
    lowest += command.microbatch;
    highest += command.microbatch;
    // A wait may look back into steps before; see ah_event.
    need(command.kind == AH_WAIT || lowest >= 0,
         "works for a microbatch before the first");
    need(highest < header.microbatches,
         "works for a microbatch after the last");
  }

  uint64_t operandBytes(const ah_command &command, unsigned operand) {
    return program.buffers[program.operands[command.first_operand + operand]]
        .bytes;
  }

  uint64_t allOperandBytes(const ah_command &command) {
    uint64_t sum = 0;
    for (unsigned operand = 0; operand < command.operand_count; ++operand)
      sum += operandBytes(command, operand);
    return sum;
  }

  template <typename Need>
  void checkArguments(const ah_command &command, Need need) {
    int64_t argument = command.args[0];
    auto needOperands = [&](unsigned count) {
      need(command.operand_count == count, "wrong number of operands");
    };
    auto needIndex = [&](uint32_t count) {
      need(argument >= 0 && argument < int64_t(count),
           "index outside its table");
    };
    auto needBytes = [&](unsigned operand, uint64_t bytes) {
      need(bytes <= operandBytes(command, operand),
           "more bytes than the buffer has");
    };
    switch (command.kind) {
    case AH_LAUNCH:
      needIndex(image.kernel_count);
      break;
    case AH_GEMM: {
      needOperands(3);
      needIndex(program.gemms.size());
      const ah_gemm &g = program.gemms[argument];
      int64_t elements[3] = {
          g.transpose_a ? lastElement(g.k, g.m, g.lda, g.batch, g.stride_a)
                        : lastElement(g.m, g.k, g.lda, g.batch, g.stride_a),
          g.transpose_b ? lastElement(g.n, g.k, g.ldb, g.batch, g.stride_b)
                        : lastElement(g.k, g.n, g.ldb, g.batch, g.stride_b),
          lastElement(g.m, g.n, g.ldc, g.batch, g.stride_c)};
      for (unsigned operand = 0; operand < 3; ++operand)
        needBytes(operand, uint64_t(elements[operand]) * 4);
      break;
    }
    case AH_COPY:
      needOperands(2);
      needBytes(0, argument);
      needBytes(1, argument);
      break;
    case AH_ZERO:
      needOperands(1);
      needBytes(0, argument);
      break;
    case AH_REDUCE:
      need(command.operand_count >= 2, "wrong number of operands");
      for (unsigned operand = 0; operand < command.operand_count; ++operand)
        needBytes(operand, uint64_t(argument) * 4);
      break;
    case AH_SEND:
    case AH_RECV:
      need(command.operand_count >= 1, "wrong number of operands");
      need(argument >= 0 && argument < int64_t(header.world_size) &&
               argument != int64_t(header.rank),
           "unknown peer");
      need(allOperandBytes(command) == uint64_t(command.args[2]),
           "its buffers are not the message");
      need(uint64_t(command.args[1]) < 1u << 20, "unknown channel");
      need(command.args[3] >= 0 &&
               command.args[3] < int64_t(program.events.size()),
           "unknown event");
      program.hasTransfers = true;
      break;
    case AH_RECORD:
    case AH_WAIT:
      needIndex(program.events.size());
      break;
    case AH_FEED:
      needOperands(1);
      needIndex(program.inputs.size());
      needBytes(0, portBytes(program.inputs[argument]));
      break;
    case AH_LOSS:
      needOperands(1);
      needBytes(0, 4);
      break;
    case AH_OUTPUT:
      needOperands(1);
      needIndex(program.outputs.size());
      needBytes(0, portBytes(program.outputs[argument]));
      break;
    case AH_NORM:
      needOperands(1);
      needIndex(program.parameters.size());
      needBytes(0, parameterBytes(argument));
      break;
    case AH_UPDATE: {
      needIndex(program.parameters.size());
      need(header.optimizer != AH_NO_OPTIMIZER,
           "this program has no optimizer");
      needOperands(header.optimizer == AH_SGD ? 2 : 4);
      for (unsigned operand = 0; operand < command.operand_count; ++operand)
        needBytes(operand, parameterBytes(argument));
      break;
    }
    default:
      break;
    }
  }

  uint64_t portBytes(const ah_port &port) {
    return uint64_t(elementCount(port.shape, port.rank)) *
           dtypeBytes(port.dtype);
  }
  uint64_t parameterBytes(int64_t index) {
    const ah_parameter &parameter = program.parameters[index];
    return uint64_t(elementCount(parameter.box_size, parameter.rank)) *
           dtypeBytes(parameter.dtype);
  }

  Program &program;
  const ah_device_image &image;
  const ah_program &header;
};

Program::Program(const ah_device_image &image, std::string node)
    : image(image), blob(image.program), node(std::move(node)) {
  ProgramChecker(*this, image).run();
}

std::string Program::deviceName() const {
  if (node.empty())
    return format("node%u/%u", blob->node, blob->device);
  return format("%s/%u", node.c_str(), blob->device);
}

std::string Program::describe(const ah_command &command) const {
  return format("%s '%s'", kindName(command.kind), name(command));
}

} // namespace autohet::runtime
