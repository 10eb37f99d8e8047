//===- SimulatePrograms.cpp - exec programs for the simulator ---------------===//
//
// One row a command: what is timed is what will run, order, waits and transfers
// included. A command takes a fixed time, its arithmetic at the device's rate,
// and the bytes of its buffers at the device's memory bandwidth, where that is
// known: inside a kernel nothing goes through memory twice.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Schedule/SimulatePrograms.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace autohet;

namespace {

// A kind's overhead is that of a unit's pass, which is some ten commands.
constexpr double commandsOfOverhead = 10;
// Arithmetic on one element: of the optimizer, and of a sum or a square.
constexpr double updateFlops = 12, sumFlops = 2;

double bytesOf(Value buffer) {
  return static_cast<double>(
      cast<exec::BufferType>(buffer.getType()).getSizeInBytes());
}
double elementsOf(Value buffer) {
  return static_cast<double>(
      cast<exec::BufferType>(buffer.getType()).getTensor().getNumElements());
}

/// Arithmetic of one call, of products and all else.
double flopsOf(func::FuncOp kernel) {
  double flops = 0;
  kernel.walk([&](het::CostedOpInterface op) {
    het::OpCost cost = op.getCost();
    flops += cost.matmulFlops + cost.otherFlops;
  });
  return flops;
}

class ProgramReader {
public:
  ProgramReader(exec::ProgramOp program, const DeviceKind &kind,
                const llvm::StringMap<double> &kernelFlops)
      : program(program), kind(kind), kernelFlops(kernelFlops) {}

  SimDevice run() {
    device.name = program.getSymName().str();
    device.microbatches = static_cast<int64_t>(program.getMicrobatches());
    program.walk([&](exec::EventOp event) {
      events[event] = device.events.size();
      device.events.push_back({event.getName().str(), event.getOnce()});
    });
    for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
      if (buffer.getSpace() != exec::Space::arena)
        continue;
      buffers[buffer] = device.buffers.size();
      device.buffers.push_back(
          {buffer.getName().str(), double(buffer.getSlotStride())});
    }
    program.walk([&](exec::StreamOp stream) {
      SimStream &entry = device.streams.emplace_back();
      entry.name = stream.getName().str();
      addCommands(stream.getBody().front(), /*inLoop=*/false, entry);
    });
    return std::move(device);
  }

private:
  void addCommands(Block &block, bool inLoop, SimStream &stream) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::LoopOp>(op)) {
        SimCommand begin, end;
        begin.kind = SimCommandKind::Loop;
        begin.first = static_cast<int64_t>(loop.getFirst());
        begin.end = static_cast<int64_t>(loop.getEnd());
        stream.commands.push_back(begin);
        addCommands(loop.getBody().front(), /*inLoop=*/true, stream);
        end.kind = SimCommandKind::EndLoop;
        stream.commands.push_back(end);
      } else if (auto command = dyn_cast<exec::CommandOpInterface>(op)) {
        addCommand(command, inLoop, stream);
      }
    }
  }

  void addCommand(exec::CommandOpInterface op, bool inLoop, SimStream &stream) {
    SimCommand command;
    command.microbatch = op.getMicrobatchNumber();
    command.in_loop = inLoop;
    command.name = exec::nameOf(op);
    for (const SmallVector<Value> &touched : {op.getReads(), op.getWrites()})
      for (Value value : touched)
        if (auto found = buffers.find(value);
            found != buffers.end() &&
            !llvm::is_contained(command.buffers, found->second))
          command.buffers.push_back(found->second);
    llvm::TypeSwitch<Operation *>(op)
        .Case<exec::SendOp, exec::RecvOp>([&](auto transfer) {
          bool isSend = isa<exec::SendOp>(op);
          command.kind =
              isSend ? SimCommandKind::Send : SimCommandKind::Receive;
          command.peer = static_cast<unsigned>(transfer.getPeer());
          command.channel = static_cast<int64_t>(transfer.getChannel());
          command.event = events.lookup(transfer.getEvent());
          for (Value buffer : isSend ? op.getReads() : op.getWrites())
            command.bytes += bytesOf(buffer);
        })
        .Case([&](exec::RecordOp record) {
          command.kind = SimCommandKind::Record;
          command.event = events.lookup(record.getEvent());
        })
        .Case([&](exec::WaitOp wait) {
          command.kind = SimCommandKind::Wait;
          command.event = events.lookup(wait.getEvent());
        })
        .Case([&](exec::AgreeOp) { command.kind = SimCommandKind::Agree; })
        // Between steps: no time unless something is asked for.
        .Case([](exec::HookOp) {})
        .Default(
            [&](Operation *) { command.seconds = secondsOf(op, command); });
    stream.commands.push_back(std::move(command));
  }

  double secondsOf(exec::CommandOpInterface op, SimCommand &command) {
    double flops = 0, bytes = 0;
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](exec::GemmOp gemm) {
          flops = 2;
          for (int64_t size : gemm.getSizes())
            flops *= static_cast<double>(size);
        })
        .Case([&](exec::LaunchOp launch) {
          flops = kernelFlops.lookup(launch.getKernel());
        })
        .Case([&](exec::UpdateOp update) {
          flops = updateFlops * elementsOf(update.getValue());
        })
        .Case([&](exec::NormOp norm) {
          flops = sumFlops * elementsOf(norm.getGradient());
        })
        .Case([&](exec::ReduceOp reduce) {
          flops = elementsOf(reduce.getTo()) *
                  static_cast<double>(reduce.getFrom().size());
        });
    for (Value buffer : op.getReads())
      bytes += bytesOf(buffer);
    for (Value buffer : op.getWrites())
      bytes += bytesOf(buffer);
    double seconds =
        kind.overhead_s / commandsOfOverhead + flops / kind.flops_per_s;
    // Products read their operands from caches: libraries see to that.
    if (kind.memory_bandwidth_bytes_per_s > 0 && !isa<exec::GemmOp>(op))
      seconds += bytes / kind.memory_bandwidth_bytes_per_s;
    return seconds;
  }

  exec::ProgramOp program;
  const DeviceKind &kind;
  const llvm::StringMap<double> &kernelFlops;
  llvm::DenseMap<Value, unsigned> events, buffers;
  SimDevice device;
};

} // namespace

FailureOr<SimProgram> autohet::simProgramOf(ModuleOp module,
                                            const Cluster &cluster) {
  llvm::StringMap<double> kernelFlops;
  for (auto kernel : module.getOps<func::FuncOp>())
    kernelFlops[kernel.getName()] = flopsOf(kernel);

  SmallVector<exec::ProgramOp> programs(module.getOps<exec::ProgramOp>());
  llvm::sort(programs, [](exec::ProgramOp a, exec::ProgramOp b) {
    return a.getRank() < b.getRank();
  });
  SimProgram result;
  SmallVector<unsigned> places;
  for (exec::ProgramOp program : programs) {
    std::optional<unsigned> place = cluster.findDevice(program.getSymName());
    if (!place)
      return program.emitOpError(
          "is for a device that the cluster does not have");
    places.push_back(*place);
    result.devices.push_back(
        ProgramReader(program, cluster.kindOf(*place), kernelFlops).run());
  }
  double largestLatency = 0;
  for (unsigned from : places)
    for (unsigned to : places) {
      result.links.push_back(cluster.link(from, to));
      largestLatency = std::max(largestLatency, result.links.back().latency_s);
    }
  for (unsigned place : places)
    result.nodes.push_back(cluster.devices()[place].node);
  for (const Node &node : cluster.nodes)
    result.nic_bytes_per_s.push_back(node.nic_bytes_per_s);
  // A tree up and down.
  if (places.size() > 1)
    result.agreement_s = 2 * largestLatency * llvm::Log2_64_Ceil(places.size());
  return result;
}
