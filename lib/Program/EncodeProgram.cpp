//===- EncodeProgram.cpp - exec programs as the runtime's tables ------------===//
//
// The one writer of the format that runtime/program.h defines. The one reader
// is the runtime's (core/Program.cpp), which checks every offset and index
// again; a test encodes programs and reads them back.
//
//===----------------------------------------------------------------------===//

#include "autohet/Program/EncodeProgram.h"

#include "autohet/runtime/program.h"

#include "llvm/ADT/StringSwitch.h"
#include <cstring>

using namespace mlir;
using namespace autohet;

namespace {

/// Strings of the blob, each once.
class Strings {
public:
  uint32_t add(StringRef text) {
    auto [it, isNew] = offsets.try_emplace(text, bytes.size());
    if (isNew)
      bytes.append((text + llvm::Twine('\0')).str());
    return it->second;
  }
  std::string bytes;

private:
  llvm::StringMap<uint32_t> offsets;
};

ah_dtype dtypeOf(Type type) {
  if (type.isF32())
    return AH_F32;
  if (type.isF16())
    return AH_F16;
  if (type.isBF16())
    return AH_BF16;
  if (type.isF64())
    return AH_F64;
  if (isa<Float8E4M3FNType>(type))
    return AH_F8_E4M3FN;
  if (isa<Float8E4M3FNUZType>(type))
    return AH_F8_E4M3FNUZ;
  if (isa<Float8E5M2Type>(type))
    return AH_F8_E5M2;
  if (isa<Float8E5M2FNUZType>(type))
    return AH_F8_E5M2FNUZ;
  if (isa<Float4E2M1FNType>(type))
    return AH_F4_E2M1;
  if (type.isInteger(1))
    return AH_BOOL;
  if (type.isInteger(2))
    return type.isUnsignedInteger() ? AH_U2 : AH_I2;
  if (type.isInteger(4))
    return type.isUnsignedInteger() ? AH_U4 : AH_I4;
  if (type.isInteger(8))
    return type.isUnsignedInteger() ? AH_U8 : AH_I8;
  if (type.isInteger(16))
    return type.isUnsignedInteger() ? AH_U16 : AH_I16;
  if (type.isInteger(32))
    return type.isUnsignedInteger() ? AH_U32 : AH_I32;
  assert(type.isInteger(64) && "the importer admits no other element type");
  return type.isUnsignedInteger() ? AH_U64 : AH_I64;
}

class Encoder {
public:
  Encoder(exec::ProgramOp program, const llvm::StringMap<unsigned> &kernels,
          const ProgramFacts &facts)
      : program(program), kernels(kernels), facts(facts) {}

  FailureOr<std::string> run();

private:
  void addBuffer(exec::BufferOp op);
  void addParameter(exec::ParameterOp op);
  void addInput(exec::InputOp op);
  void addOutput(exec::OutputOp op);
  LogicalResult addCommands(Block &block, bool inLoop);
  LogicalResult addCommand(exec::CommandOpInterface op, bool inLoop);
  template <typename T>
  void append(ah_table &table, const std::vector<T> &elements);

  uint32_t bufferIndex(Value v) { return buffers.lookup(v); }
  static void copyShape(int64_t (&to)[AH_MAX_RANK], ArrayRef<int64_t> from) {
    llvm::copy(from, to);
  }

  exec::ProgramOp program;
  const llvm::StringMap<unsigned> &kernels;
  const ProgramFacts &facts;
  std::string blob;
  Strings strings;
  llvm::DenseMap<Value, uint32_t> buffers, events;
  llvm::StringMap<uint32_t> inputs, outputs;
  llvm::DenseMap<Value, uint32_t> parameterOfGradient, parameterOfValue;
  std::vector<ah_buffer> bufferTable;
  std::vector<uint32_t> operandTable;
  std::vector<ah_command> commandTable;
  std::vector<ah_gemm> gemmTable;
  std::vector<ah_parameter> parameterTable;
  std::vector<ah_port> inputTable, outputTable;
  std::vector<ah_stream> streamTable;
  std::vector<ah_event> eventTable;
};

void Encoder::addBuffer(exec::BufferOp op) {
  RankedTensorType type = op.getType().getTensor();
  ah_buffer buffer = {};
  buffer.name = strings.add(op.getName());
  buffer.space = uint8_t(op.getSpace());
  buffer.dtype = dtypeOf(type.getElementType());
  buffer.rank = type.getRank();
  buffer.slots = op.getSlots();
  buffer.offset = *op.getOffset();
  buffer.bytes = op.getType().getSizeInBytes();
  buffer.slot_stride = op.getSlotStride();
  copyShape(buffer.shape, type.getShape());
  buffers[op] = bufferTable.size();
  bufferTable.push_back(buffer);
}

void Encoder::addParameter(exec::ParameterOp op) {
  RankedTensorType type =
      cast<exec::BufferType>(op.getValue().getType()).getTensor();
  ah_parameter parameter = {};
  parameter.name = strings.add(op.getName());
  parameter.dtype = dtypeOf(type.getElementType());
  parameter.rank = type.getRank();
  auto space = op.getValue().getDefiningOp<exec::BufferOp>().getSpace();
  parameter.trained = space == exec::Space::parameter;
  parameter.owned = op.getOwned();
  copyShape(parameter.global_shape, op.getGlobalShape());
  copyShape(parameter.box_offset, op.getOffsets());
  copyShape(parameter.box_size, type.getShape());
  parameter.parameter_buffer = bufferIndex(op.getValue());
  parameter.gradient_buffer =
      op.getGradient() ? bufferIndex(op.getGradient()) : AH_NO_INDEX;
  for (unsigned i = 0; i < 2; ++i)
    parameter.state_buffers[i] = i < op.getStates().size()
                                     ? bufferIndex(op.getStates()[i])
                                     : AH_NO_INDEX;
  if (op.getOwned()) {
    parameterOfGradient[op.getGradient()] = parameterTable.size();
    parameterOfValue[op.getValue()] = parameterTable.size();
  }
  parameterTable.push_back(parameter);
}

void Encoder::addInput(exec::InputOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  ah_port port = {};
  port.name = strings.add(op.getName());
  port.dtype = dtypeOf(type.getElementType());
  port.rank = type.getRank();
  port.role = op.getRole() == "labels";
  port.kind = llvm::StringSwitch<uint8_t>(op.getKind())
                  .Case("tokens", AH_BIND_TOKENS)
                  .Case("labels", AH_BIND_LABELS)
                  .Case("ones", AH_BIND_ONES)
                  .Case("zeros", AH_BIND_ZEROS)
                  .Case("arange", AH_BIND_ARANGE)
                  .Default(AH_BIND_FILE);
  copyShape(port.shape, type.getShape());
  copyShape(port.global_shape, type.getShape());
  port.batch_dim = int64_t(op.getBatchDim());
  port.vocabulary = op.getVocabulary();
  inputs[op.getName()] = inputTable.size();
  inputTable.push_back(port);
}

void Encoder::addOutput(exec::OutputOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  ah_port port = {};
  port.name = strings.add(op.getName());
  port.dtype = dtypeOf(type.getElementType());
  port.rank = type.getRank();
  copyShape(port.shape, type.getShape());
  copyShape(port.box_offset, op.getOffsets());
  copyShape(port.global_shape, op.getGlobalShape());
  port.batch_dim = int64_t(op.getBatchDim());
  outputs[op.getName()] = outputTable.size();
  outputTable.push_back(port);
}

LogicalResult Encoder::addCommand(exec::CommandOpInterface op, bool inLoop) {
  ah_command command = {};
  command.in_loop = inLoop;
  command.first_operand = operandTable.size();
  command.microbatch = op.getMicrobatchNumber();
  command.name = strings.add(exec::nameOf(op));
  auto operands = [&](ValueRange values) {
    for (Value v : values)
      operandTable.push_back(bufferIndex(v));
  };
  auto bytesOf = [](Value v) {
    return cast<exec::BufferType>(v.getType()).getSizeInBytes();
  };

  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](exec::LaunchOp launch) -> LogicalResult {
            auto kernel = kernels.find(launch.getKernel());
            if (kernel == kernels.end())
              return launch.emitOpError("launches @")
                     << launch.getKernel() << ", which is no kernel";
            command.kind = AH_LAUNCH;
            command.args[0] = kernel->second;
            operands(launch.getBuffers());
            return success();
          })
          .Case([&](exec::GemmOp gemm) {
            command.kind = AH_GEMM;
            command.args[0] = gemmTable.size();
            operands({gemm.getA(), gemm.getB(), gemm.getC()});
            ArrayRef<int64_t> sizes = gemm.getSizes();
            ah_gemm entry = {};
            entry.batch = sizes[0], entry.m = sizes[1], entry.n = sizes[2],
            entry.k = sizes[3];
            entry.lda = gemm.getTransposeA() ? entry.m : entry.k;
            entry.ldb = gemm.getTransposeB() ? entry.k : entry.n;
            entry.ldc = entry.n;
            entry.stride_a = entry.m * entry.k;
            entry.stride_b = entry.k * entry.n;
            entry.stride_c = entry.m * entry.n;
            entry.alpha = 1;
            entry.beta = gemm.getAccumulate() ? 1 : 0;
            entry.transpose_a = gemm.getTransposeA();
            entry.transpose_b = gemm.getTransposeB();
            auto b = gemm.getB().getDefiningOp<exec::BufferOp>();
            entry.b_is_parameter = b && b.getSpace() == exec::Space::parameter;
            gemmTable.push_back(entry);
            return success();
          })
          .Case([&](exec::CopyOp copy) {
            command.kind = AH_COPY;
            command.args[0] = bytesOf(copy.getTo());
            operands({copy.getTo(), copy.getFrom()});
            return success();
          })
          .Case([&](exec::ZeroOp zero) {
            command.kind = AH_ZERO;
            command.args[0] = bytesOf(zero.getTo());
            operands(zero.getTo());
            return success();
          })
          .Case([&](exec::ReduceOp reduce) {
            command.kind = AH_REDUCE;
            command.args[0] = bytesOf(reduce.getTo()) / int64_t(sizeof(float));
            operands(reduce.getTo());
            operands(reduce.getFrom());
            return success();
          })
          .Case([&](exec::SendOp send) {
            command.kind = AH_SEND;
            command.args[0] = send.getPeer();
            command.args[1] = send.getChannel();
            for (Value v : send.getFrom())
              command.args[2] += bytesOf(v);
            command.args[3] = events.lookup(send.getEvent());
            operands(send.getFrom());
            return success();
          })
          .Case([&](exec::RecvOp recv) {
            command.kind = AH_RECV;
            command.args[0] = recv.getPeer();
            command.args[1] = recv.getChannel();
            for (Value v : recv.getTo())
              command.args[2] += bytesOf(v);
            command.args[3] = events.lookup(recv.getEvent());
            operands(recv.getTo());
            return success();
          })
          .Case([&](exec::RecordOp record) {
            command.kind = AH_RECORD;
            command.args[0] = events.lookup(record.getEvent());
            return success();
          })
          .Case([&](exec::WaitOp wait) {
            command.kind = AH_WAIT;
            command.args[0] = events.lookup(wait.getEvent());
            return success();
          })
          .Case([&](exec::FeedOp feed) {
            command.kind = AH_FEED;
            command.args[0] = inputs.lookup(feed.getInput());
            operands(feed.getTo());
            return success();
          })
          .Case([&](exec::LossOp loss) {
            command.kind = AH_LOSS;
            operands(loss.getFrom());
            return success();
          })
          .Case([&](exec::EmitOp emit) {
            command.kind = AH_OUTPUT;
            command.args[0] = outputs.lookup(emit.getOutput());
            operands(emit.getFrom());
            return success();
          })
          .Case([&](exec::NormOp norm) -> LogicalResult {
            auto parameter = parameterOfGradient.find(norm.getGradient());
            if (parameter == parameterOfGradient.end())
              return norm.emitOpError(
                  "counts a gradient that no owned parameter has");
            command.kind = AH_NORM;
            command.args[0] = parameter->second;
            operands(norm.getGradient());
            return success();
          })
          .Case([&](exec::AgreeOp) {
            command.kind = AH_AGREE;
            return success();
          })
          .Case([&](exec::UpdateOp update) -> LogicalResult {
            auto parameter = parameterOfValue.find(update.getValue());
            if (parameter == parameterOfValue.end())
              return update.emitOpError(
                  "updates a parameter that is not owned");
            command.kind = AH_UPDATE;
            command.args[0] = parameter->second;
            operands({update.getValue(), update.getGradient()});
            operands(update.getStates());
            return success();
          })
          .Case([&](exec::HookOp hook) {
            command.kind = AH_HOOK;
            command.args[0] = hook.getPlace() == "end";
            return success();
          })
          .Default([](Operation *other) {
            return other->emitOpError("is a command without an encoding");
          });
  command.operand_count = operandTable.size() - command.first_operand;
  commandTable.push_back(command);
  return result;
}

LogicalResult Encoder::addCommands(Block &block, bool inLoop) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<exec::LoopOp>(op)) {
      ah_command begin = {};
      begin.kind = AH_LOOP;
      begin.name = strings.add("loop");
      begin.args[0] = loop.getFirst();
      begin.args[1] = loop.getEnd();
      commandTable.push_back(begin);
      if (failed(addCommands(loop.getBody().front(), true)))
        return failure();
      ah_command end = {};
      end.kind = AH_END_LOOP;
      end.name = begin.name;
      commandTable.push_back(end);
      continue;
    }
    if (failed(addCommand(cast<exec::CommandOpInterface>(op), inLoop)))
      return failure();
  }
  return success();
}

template <typename T>
void Encoder::append(ah_table &table, const std::vector<T> &elements) {
  blob.resize(llvm::alignTo(blob.size(), 8));
  table = {blob.size(), uint32_t(elements.size()), sizeof(T)};
  blob.append(reinterpret_cast<const char *>(elements.data()),
              elements.size() * sizeof(T));
}

/// The model's value, not the buffer, is what a user knows.
static LogicalResult tooManyDims(exec::BufferOp op) {
  InFlightDiagnostic error = emitError(op.getLoc());
  if (auto name = op.getLoc()->findInstanceOf<NameLoc>())
    error << "'" << name.getName().getValue() << "': ";
  return error << "a tensor of shape [" << op.getType().getTensor().getShape()
               << "] has " << op.getType().getTensor().getRank()
               << " dims, the most is " << AH_MAX_RANK;
}

FailureOr<std::string> Encoder::run() {
  if (!program.getSpaceBytes())
    return program.emitOpError(
        "has no memory plan; run exec-plan-memory first");
  Block &body = program.getBody().front();
  for (auto op : body.getOps<exec::BufferOp>()) {
    if (!op.getOffset())
      return op.emitOpError("has no place; run exec-plan-memory first");
    if (op.getType().getTensor().getRank() > AH_MAX_RANK)
      return tooManyDims(op);
    addBuffer(op);
  }
  for (auto op : body.getOps<exec::EventOp>()) {
    events[op] = eventTable.size();
    eventTable.push_back({strings.add(op.getName()), op.getOnce()});
  }
  for (auto op : body.getOps<exec::ParameterOp>())
    addParameter(op);
  for (auto op : body.getOps<exec::InputOp>())
    addInput(op);
  for (auto op : body.getOps<exec::OutputOp>())
    addOutput(op);
  bool reportsLoss = false;
  for (auto op : body.getOps<exec::StreamOp>()) {
    ah_stream stream = {strings.add(op.getName()),
                        uint32_t(commandTable.size()), 0,
                        op.getCommunication()};
    if (failed(addCommands(op.getBody().front(), false)))
      return failure();
    stream.command_count = commandTable.size() - stream.first_command;
    streamTable.push_back(stream);
    op.walk([&](exec::LossOp) { reportsLoss = true; });
  }

  ah_program header = {};
  header.magic = AH_PROGRAM_MAGIC;
  header.version = AH_PROGRAM_VERSION;
  header.header_bytes = sizeof(ah_program);
  header.structure_hash = facts.structureHash;
  header.rank = program.getRank();
  header.world_size = program.getWorldSize();
  header.node = facts.node;
  header.device = facts.deviceIndex;
  header.replica = program.getReplica();
  header.stage = program.getStage();
  header.optimizer = llvm::StringSwitch<uint32_t>(facts.optimizer)
                         .Case("sgd", AH_SGD)
                         .Case("adam", AH_ADAM)
                         .Case("adamw", AH_ADAMW)
                         .Default(AH_NO_OPTIMIZER);
  header.objective = llvm::StringSwitch<uint32_t>(facts.objective)
                         .Case("causal", AH_CAUSAL)
                         .Case("masked", AH_MASKED)
                         .Case("none", AH_NO_OBJECTIVE)
                         .Default(AH_GIVEN);
  header.ignore_index = facts.ignoreIndex;
  header.sequence_length = facts.sequenceLength;
  header.reports_loss = reportsLoss;
  header.global_batch = program.getGlobalBatch();
  header.microbatch_size = program.getMicrobatchSize();
  header.microbatches = program.getMicrobatches();
  header.first_sample = program.getFirstSample();
  ArrayRef<int64_t> spaces = *program.getSpaceBytes();
  for (auto [space, bytes] : llvm::enumerate(spaces))
    header.space_bytes[space] = bytes;
  header.space_bytes[AH_SPACE_SCALAR] = 64 * AH_SCALAR_COUNT;

  blob.assign(sizeof(ah_program), '\0');
  append(header.buffers, bufferTable);
  append(header.operands, operandTable);
  append(header.commands, commandTable);
  append(header.gemms, gemmTable);
  append(header.parameters, parameterTable);
  append(header.inputs, inputTable);
  append(header.outputs, outputTable);
  append(header.streams, streamTable);
  append(header.events, eventTable);
  append(header.strings,
         std::vector<char>(strings.bytes.begin(), strings.bytes.end()));
  blob.resize(llvm::alignTo(blob.size(), 8));
  header.total_bytes = blob.size();
  std::memcpy(blob.data(), &header, sizeof(header));
  return blob;
}

} // namespace

FailureOr<std::string>
autohet::encodeProgram(exec::ProgramOp program,
                       const llvm::StringMap<unsigned> &kernelIndex,
                       const ProgramFacts &facts) {
  return Encoder(program, kernelIndex, facts).run();
}
