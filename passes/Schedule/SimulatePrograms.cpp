//===- SimulatePrograms.cpp - exec programs for the simulator ---------------===//
//
// One row a command: what is timed is what will run, order, waits and transfers
// included. Kernels are priced as the planner's units are (KernelGroups.h).
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Schedule/SimulatePrograms.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Schedule/KernelGroups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace autohet;

namespace {

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

Work workOfKernel(func::FuncOp kernel) {
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.front().without_terminator())
    if (!isa<het::ConstantOp>(op))
      ops.push_back(&op);
  return workOf(ops);
}

/// Libraries read activations from caches. Weights and their gradients are
/// touched again by each microbatch, however small it is.
double trafficOf(exec::GemmOp gemm) {
  double bytes = 0;
  for (const SmallVector<Value> &touched : {gemm.getReads(), gemm.getWrites()})
    for (Value value : touched)
      if (auto buffer = value.getDefiningOp<exec::BufferOp>();
          buffer &&
          llvm::is_contained({exec::Space::parameter, exec::Space::constant,
                              exec::Space::gradient},
                             buffer.getSpace()))
        bytes += bytesOf(value);
  return bytes;
}

using KernelWork = llvm::DenseMap<StringAttr, Work>; // by the kernel's name

class ProgramReader {
public:
  ProgramReader(exec::ProgramOp program, const DeviceKind &kind,
                const KernelWork &kernels, SimDetail detail)
      : program(program), kind(kind), kernels(kernels), detail(detail) {}

  SimDevice run() {
    device.name = program.getSymName().str();
    device.microbatches = static_cast<int64_t>(program.getMicrobatches());
    for (auto event : program.getBody().getOps<exec::EventOp>()) {
      events[event] = device.events.size();
      device.events.push_back({event.getName().str(), event.getOnce()});
    }
    if (detail == SimDetail::Commands)
      for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
        if (buffer.getSpace() != exec::Space::arena)
          continue;
        buffers[buffer] = device.buffers.size();
        device.buffers.push_back(
            {buffer.getName().str(), double(buffer.getSlotStride())});
      }
    for (auto stream : program.getBody().getOps<exec::StreamOp>()) {
      SimStream &entry = device.streams.emplace_back();
      entry.name = stream.getName().str();
      addCommands(stream.getBody().front(), /*inLoop=*/false, entry);
    }
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
    if (detail == SimDetail::Commands) {
      command.name = exec::nameOf(op);
      for (const SmallVector<Value> &touched : {op.getReads(), op.getWrites()})
        for (Value value : touched)
          if (auto found = buffers.find(value);
              found != buffers.end() &&
              !llvm::is_contained(command.buffers, found->second))
            command.buffers.push_back(found->second);
    }
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
        .Default([&](Operation *) {
          command.work = workOf(op);
          command.seconds = kind.seconds(command.work);
        });
    if (detail == SimDetail::Times && !stream.commands.empty() &&
        command.kind == SimCommandKind::Compute &&
        stream.commands.back().kind == SimCommandKind::Compute)
      stream.commands.back().seconds += command.seconds;
    else
      stream.commands.push_back(std::move(command));
  }

  Work workOf(exec::CommandOpInterface op) const {
    if (auto launch = dyn_cast<exec::LaunchOp>(*op))
      return kernels.lookup(launch.getKernelAttr().getAttr());
    Work work;
    work.commands = 1;
    if (auto gemm = dyn_cast<exec::GemmOp>(*op)) {
      work.flops = 2;
      for (int64_t size : gemm.getSizes())
        work.flops *= static_cast<double>(size);
      work.traffic_bytes = trafficOf(gemm);
      return work;
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](exec::UpdateOp update) {
          work.elementwise_flops = updateFlops * elementsOf(update.getValue());
        })
        .Case([&](exec::NormOp norm) {
          work.elementwise_flops = sumFlops * elementsOf(norm.getGradient());
        })
        .Case([&](exec::ReduceOp reduce) {
          work.elementwise_flops = elementsOf(reduce.getTo()) *
                                   static_cast<double>(reduce.getFrom().size());
        });
    for (Value buffer : op.getReads())
      work.traffic_bytes += bytesOf(buffer);
    for (Value buffer : op.getWrites())
      work.traffic_bytes += bytesOf(buffer);
    return work;
  }

  exec::ProgramOp program;
  const DeviceKind &kind;
  const KernelWork &kernels;
  SimDetail detail;
  llvm::DenseMap<Value, unsigned> events, buffers;
  SimDevice device;
};

} // namespace

FailureOr<SimProgram> autohet::simProgramOf(ModuleOp module,
                                            const Cluster &cluster,
                                            SimDetail detail) {
  KernelWork kernels;
  for (auto kernel : module.getOps<func::FuncOp>())
    kernels[kernel.getNameAttr()] = workOfKernel(kernel);

  SmallVector<exec::ProgramOp> programs(module.getOps<exec::ProgramOp>());
  llvm::sort(programs, [](exec::ProgramOp a, exec::ProgramOp b) {
    return a.getRank() < b.getRank();
  });
  SimProgram result;
  SmallVector<unsigned> places;
  for (exec::ProgramOp program : programs) {
    std::optional<unsigned> place = cluster.findDevice(program.getSymName());
    if (!place)
      return program.emitOpError("is for device '")
             << program.getSymName() << "', which the cluster does not have";
    places.push_back(*place);
  }
  result.devices.resize(programs.size());
  parallelFor(module.getContext(), 0, programs.size(), [&](size_t i) {
    result.devices[i] =
        ProgramReader(programs[i], cluster.kindOf(places[i]), kernels, detail)
            .run();
  });
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
