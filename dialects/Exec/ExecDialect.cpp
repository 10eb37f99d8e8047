//===- ExecDialect.cpp - the exec dialect -----------------------------------===//
//
// Registration, verifiers, and what each command reads and writes.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Exec/Exec.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Support/Extents.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace autohet;
using namespace autohet::exec;

#include "autohet/Dialect/Exec/ExecDialect.cpp.inc"
#include "autohet/Dialect/Exec/ExecEnums.cpp.inc"
#include "autohet/Dialect/Exec/ExecInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Exec/ExecAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Exec/ExecTypes.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "autohet/Dialect/Exec/ExecAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "autohet/Dialect/Exec/ExecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Exec/ExecOps.cpp.inc"
      >();
}

int64_t autohet::exec::sizeInBytes(RankedTensorType type) {
  int64_t bits = type.getElementTypeBitWidth();
  return type.getNumElements() * std::max<int64_t>(1, bits / 8);
}

/// Whether a program can know the size of `type`.
static bool isSized(RankedTensorType type) {
  return het::hasKnownSize(type) && het::isElement(type.getElementType());
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType tensor) {
  if (isSized(tensor))
    return success();
  return emitError() << "a buffer of " << tensor
                     << ", wanted a static tensor of integers or floats";
}

int64_t BufferType::getSizeInBytes() { return sizeInBytes(getTensor()); }

int64_t BufferOp::getSlotStride() {
  return llvm::alignTo(getType().getSizeInBytes(), kBufferAlignment);
}

int64_t ProgramOp::getTotalBytes() {
  ArrayRef<int64_t> spaces = getSpaceBytes().value_or(ArrayRef<int64_t>());
  return std::accumulate(spaces.begin(), spaces.end(), int64_t(0));
}

static RankedTensorType tensorOf(Value buffer) {
  return cast<BufferType>(buffer.getType()).getTensor();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// One of the counts that the runtime keeps in 32 bits.
static bool isCount(uint64_t value) {
  return value >= 1 && value < uint64_t(1) << 31;
}

LogicalResult ProgramOp::verify() {
  if (!isCount(getMicrobatchSize()) || !isCount(getMicrobatches()) ||
      !isCount(getGlobalBatch())) // program_c1
    return emitOpError("needs positive counts below 2^31, but has ")
           << int64_t(getMicrobatches()) << " microbatches of "
           << int64_t(getMicrobatchSize()) << " in a batch of "
           << int64_t(getGlobalBatch());
  if (getRank() >= getWorldSize() || !isCount(getWorldSize())) // program_c2
    return emitOpError("has rank ") << int64_t(getRank()) << " in a world of "
                                    << int64_t(getWorldSize());
  for (Operation &op : getBody().front())
    if (!isa<BufferOp, ParameterOp, InputOp, OutputOp, EventOp, StreamOp>(
            op)) // program_c3
      return op.emitOpError("is neither a declaration nor a stream, and a "
                            "program holds nothing else");
  return success();
}

/// More than any memory, few enough that sums do not overflow.
static constexpr int64_t kMaxBytes = int64_t(1) << 48;

LogicalResult BufferOp::verify() {
  if (int64_t(getSlots()) < 1) // buffer_c1
    return emitOpError("needs at least one slot, but has ")
           << int64_t(getSlots());
  if (int64_t(getSlots()) > kMaxBytes / std::max<int64_t>(getSlotStride(), 1))
    return emitOpError("needs ")
           << int64_t(getSlots()) << " slots of " << getSlotStride()
           << " bytes, at most " << kMaxBytes << " bytes";
  if (getOffset() && (*getOffset() % kBufferAlignment != 0 ||
                      *getOffset() > uint64_t(kMaxBytes))) // buffer_c2
    return emitOpError("must start at a multiple of ")
           << kBufferAlignment << " bytes, but starts at "
           << int64_t(*getOffset());
  return verifyPart();
}

// buffer_c3
LogicalResult BufferOp::verifyPart() {
  if (!getWhole() || !getWithin()) {
    if (getWhole() || getWithin())
      return emitOpError("is a part of a buffer, or it starts within one, but "
                         "the other is not said");
    return success();
  }
  int64_t within = *getWithin();
  if (within < 0 || within % kBufferAlignment != 0)
    return emitOpError("must start at a multiple of ")
           << kBufferAlignment << " bytes of the whole, but starts at "
           << within;
  int64_t end = within + getType().getSizeInBytes(),
          bytes = cast<BufferType>(getWhole().getType()).getSizeInBytes();
  if (end > bytes)
    return emitOpError("ends at byte ")
           << end << " of a buffer of " << bytes << " bytes";
  auto whole = getWhole().getDefiningOp<BufferOp>();
  if (!whole)
    return success();
  if (whole.getSpace() != getSpace() || getSpace() == Space::arena)
    return emitOpError("lies in the ")
           << stringifySpace(getSpace())
           << " space as a part of a buffer in the "
           << stringifySpace(whole.getSpace())
           << " space, wanted one space that is not the arena";
  if (whole.getSlots() != 1 || getSlots() != 1)
    return emitOpError("has ")
           << int64_t(getSlots()) << " slots as a part of a buffer of "
           << int64_t(whole.getSlots()) << ", wanted one of one";
  if (whole.getWhole())
    return emitOpError("is a part of a part");
  return success();
}

LogicalResult ParameterOp::verify() {
  if (failed(het::verifyBox(*this, tensorOf(getValue()), getOffsets(),
                            getGlobalShape()))) // parameter_c1
    return failure();
  auto buffer = getValue().getDefiningOp<BufferOp>();
  if (getGradient() && buffer &&
      buffer.getSpace() != Space::parameter) // parameter_c2
    return emitOpError("has a gradient, but lies in the ")
           << stringifySpace(buffer.getSpace()) << " space";
  if (!getStates().empty() && !getOwned())
    return emitOpError("has optimizer state but is not owned here");
  if (getOwned() && !getGradient())
    return emitOpError("is owned here but has no gradient");
  return success();
}

static LogicalResult verifyBatchDim(Operation *op, int64_t dim,
                                    RankedTensorType type) {
  if (dim >= -1 && dim < type.getRank())
    return success();
  return op->emitOpError("counts samples by dim ")
         << dim << ", which is no dim of " << type << " and not -1";
}

LogicalResult InputOp::verify() {
  if (!llvm::is_contained({"input", "labels"}, getRole()))
    return emitOpError("has role \"")
           << getRole() << "\", wanted \"input\" or \"labels\"";
  if (!llvm::is_contained(
          {"file", "tokens", "labels", "ones", "zeros", "arange"}, getKind()))
    return emitOpError("has kind \"")
           << getKind()
           << "\", wanted file, tokens, labels, ones, zeros or arange";
  return verifyBatchDim(*this, getBatchDim(), getType());
}

LogicalResult OutputOp::verify() {
  if (failed(het::verifyBox(*this, getType(), getOffsets(),
                            getGlobalShape()))) // output_c1
    return failure();
  return verifyBatchDim(*this, getBatchDim(), getType());
}

/// What a stream or a loop holds.
template <typename... Others>
static LogicalResult verifyCommands(Operation *parent, StringRef wanted) {
  for (Operation &op : parent->getRegion(0).front())
    if (!isa<CommandOpInterface, Others...>(op))
      return op.emitOpError("is not ")
             << wanted << ", and '" << parent->getName()
             << "' holds nothing else";
  return success();
}

LogicalResult StreamOp::verify() { // stream_c1
  return verifyCommands<LoopOp>(*this, "a command or a loop");
}

LogicalResult LoopOp::verify() {
  if (getFirst() > getEnd() || (getEnd() > 0 && !isCount(getEnd()))) // loop_c1
    return emitOpError("goes from ")
           << int64_t(getFirst()) << " to " << int64_t(getEnd());
  return verifyCommands<>(*this, "a command"); // loop_c2
}

LogicalResult LaunchOp::verify() {
  if (getWriteCount() <= getBuffers().size()) // launch_c2
    return success();
  return emitOpError("writes ")
         << getWriteCount() << " of " << getBuffers().size() << " buffers";
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getKernelAttr());
  if (!kernel)
    return emitOpError("launches @")
           << getKernel() << ", which is no function of the module";
  SmallVector<Type> wanted(kernel.getArgumentTypes());
  unsigned arguments = wanted.size(), given = getBuffers().size();
  llvm::append_range(wanted, kernel.getResultTypes());
  auto bytes = kernel->getAttrOfType<IntegerAttr>(kScratchBytesAttr);
  unsigned scratch = bytes && given == wanted.size() + 1;
  if (given != wanted.size() + scratch ||
      given - getWriteCount() != arguments) // launch_c1
    return emitOpError("reads ")
           << given - getWriteCount() << " buffers and writes "
           << getWriteCount() << ", but @" << getKernel() << " has "
           << arguments << " arguments and " << wanted.size() - arguments
           << " results" << (bytes ? " (and scratch memory)" : "");
  for (auto [i, type] : llvm::enumerate(wanted)) {
    auto buffer = tensorOf(getBuffers()[i]);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !isSized(tensor) ||
        tensor.getElementType() != buffer.getElementType() ||
        tensor.getNumElements() != buffer.getNumElements())
      return emitOpError("gives ")
             << buffer << " for " << type << ", "
             << (i < arguments ? "argument " : "result ")
             << (i < arguments ? i : i - arguments) << " of @" << getKernel();
  }
  if (scratch &&
      sizeInBytes(tensorOf(getBuffers().back())) < bytes.getInt()) // launch_c3
    return emitOpError("gives ")
           << tensorOf(getBuffers().back()) << " as scratch memory, but @"
           << getKernel() << " needs " << bytes.getInt() << " bytes";
  return success();
}

LogicalResult GemmOp::verify() {
  if (getSizes().size() != 4)
    return emitOpError("needs sizes [batch, m, n, k], but has ")
           << getSizes().size();
  int64_t batch = getSizes()[0], m = getSizes()[1], n = getSizes()[2],
          k = getSizes()[3];
  auto check = [&](Value buffer, ArrayRef<int64_t> sizes,
                   StringRef name) -> LogicalResult {
    std::optional<int64_t> wanted = countElements(sizes);
    if (wanted && tensorOf(buffer).getNumElements() == *wanted) // gemm_c1
      return success();
    InFlightDiagnostic error = emitOpError() << name << " must hold ";
    if (wanted)
      error << *wanted;
    else
      error << "[" << sizes << "]";
    return error << " elements, but is " << tensorOf(buffer);
  };
  if (failed(check(getA(), {batch, m, k}, "a")) ||
      failed(check(getB(), {batch, k, n}, "b")))
    return failure();
  return check(getC(), {batch, m, n}, "c");
}

LogicalResult CopyOp::verify() {
  if (sizeInBytes(tensorOf(getFrom())) == sizeInBytes(tensorOf(getTo())))
    return success();
  return emitOpError("copies ")
         << tensorOf(getFrom()) << " to " << tensorOf(getTo());
}

LogicalResult ReduceOp::verify() {
  for (Value from : getFrom())
    if (tensorOf(from).getNumElements() != tensorOf(getTo()).getNumElements() ||
        !tensorOf(from).getElementType().isF32())
      return emitOpError("sums ")
             << tensorOf(from) << " into " << tensorOf(getTo());
  return success();
}

/// The declaration of this name in the program around `op`.
template <typename DeclarationOp>
static DeclarationOp findDeclaration(Operation *op, StringRef name) {
  auto program = op->getParentOfType<ProgramOp>();
  if (!program)
    return nullptr;
  for (auto declaration : program.getBody().front().getOps<DeclarationOp>())
    if (declaration.getName() == name)
      return declaration;
  return nullptr;
}

LogicalResult FeedOp::verify() {
  auto input = findDeclaration<InputOp>(*this, getInput());
  if (!input) // feed_c1
    return emitOpError("feeds \"") << getInput() << "\", which is not declared";
  if (input.getType() == tensorOf(getTo()))
    return success();
  return emitOpError("feeds \"")
         << getInput() << "\", which is " << input.getType() << ", to "
         << tensorOf(getTo());
}

LogicalResult EmitOp::verify() {
  auto output = findDeclaration<OutputOp>(*this, getOutput());
  if (!output) // emit_c1
    return emitOpError("gives \"")
           << getOutput() << "\", which is not declared";
  if (sizeInBytes(output.getType()) == sizeInBytes(tensorOf(getFrom())))
    return success();
  return emitOpError("gives ") << tensorOf(getFrom()) << " as \"" << getOutput()
                               << "\", which is " << output.getType();
}

LogicalResult HookOp::verify() {
  if (llvm::is_contained({"begin", "end"}, getPlace()))
    return success();
  return emitOpError("has place \"")
         << getPlace() << "\", wanted \"begin\" or \"end\"";
}

/// What a message is and how it is named.
static LogicalResult verifyTransfer(Operation *op, ValueRange buffers,
                                    int64_t channel) {
  if (buffers.empty())
    return op->emitOpError("moves no buffer, wanted at least one");
  if (channel < 0 || channel >= (int64_t(1) << 20))
    return op->emitOpError("has channel ")
           << channel << ", wanted 0 to " << (1 << 20) - 1;
  return success();
}

LogicalResult SendOp::verify() {
  return verifyTransfer(*this, getFrom(), int64_t(getChannel()));
}

LogicalResult RecvOp::verify() {
  return verifyTransfer(*this, getTo(), int64_t(getChannel()));
}

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

using Values = SmallVector<Value>;

Values LaunchOp::getReads() {
  return Values(getBuffers().drop_back(getWriteCount()));
}
Values LaunchOp::getWrites() {
  return Values(getBuffers().take_back(getWriteCount()));
}

Values GemmOp::getReads() {
  Values reads = {getA(), getB()};
  if (getAccumulate())
    reads.push_back(getC());
  return reads;
}

#define COMMAND(OP, READS, WRITES)                                             \
  Values OP::getReads() { return Values READS; }                               \
  Values OP::getWrites() { return Values WRITES; }
Values GemmOp::getWrites() { return {getC()}; }
COMMAND(CopyOp, {getFrom()}, {getTo()})
COMMAND(ZeroOp, {}, {getTo()})
COMMAND(ReduceOp, (getFrom()), {getTo()})
COMMAND(SendOp, (getFrom()), {})
COMMAND(RecvOp, {}, (getTo()))
COMMAND(RecordOp, {}, {})
COMMAND(WaitOp, {}, {})
COMMAND(FeedOp, {}, {getTo()})
COMMAND(LossOp, {getFrom()}, {})
COMMAND(EmitOp, {getFrom()}, {})
COMMAND(NormOp, {getGradient()}, {})
COMMAND(AgreeOp, {}, {})
COMMAND(HookOp, {}, {})
#undef COMMAND

Values UpdateOp::getReads() {
  Values reads = {getValue(), getGradient()};
  llvm::append_range(reads, getStates());
  return reads;
}
Values UpdateOp::getWrites() {
  Values writes = {getValue()};
  llvm::append_range(writes, getStates());
  return writes;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// An event is named after the transfer that sets it.
static std::string withEvent(StringRef verb, Value event) {
  auto declaration = event.getDefiningOp<EventOp>();
  if (!declaration)
    return verb.str();
  return (verb + " " + declaration.getName()).str();
}

std::string autohet::exec::nameOf(CommandOpInterface command) {
  Operation *op = command;
  std::string verb = op->getName().stripDialect().str();
  // Whoever shows a transfer shows its peer, too.
  if (auto send = dyn_cast<SendOp>(op))
    return StringRef(withEvent(verb, send.getEvent()))
        .split(" to rank ")
        .first.str();
  if (auto recv = dyn_cast<RecvOp>(op))
    return StringRef(withEvent(verb, recv.getEvent()))
        .split(" from rank ")
        .first.str();
  if (auto record = dyn_cast<RecordOp>(op))
    return withEvent(verb, record.getEvent());
  if (auto wait = dyn_cast<WaitOp>(op))
    return withEvent(verb, wait.getEvent());
  if (auto launch = dyn_cast<LaunchOp>(op))
    verb = launch.getKernel().str();
  Values writes = command.getWrites(), reads = command.getReads();
  Value subject = writes.empty() ? (reads.empty() ? Value() : reads.front())
                                 : writes.front();
  if (auto buffer = subject ? subject.getDefiningOp<BufferOp>() : BufferOp())
    verb += " " + buffer.getName().str();
  return verb;
}
