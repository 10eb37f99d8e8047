//===- ReplicaModel.h - the linear model on two ranks ------------*- C++ -*-===//

#ifndef AUTOHET_TEST_UNIT_RUNTIME_REPLICAMODEL_H
#define AUTOHET_TEST_UNIT_RUNTIME_REPLICAMODEL_H

#include "LinearModel.h"
#include "LocalTransport.h"

#include "core/Trainer.h"

#include <algorithm>
#include <thread>

namespace autohet::runtime::test {

/// Rank 0 owns w: rank 1 sends its gradient there and gets the new bytes; the
/// first use of w in the next step waits for them.
class Replica : public LinearModel {
public:
  Replica(uint32_t rank, uint32_t microbatches, uint32_t first,
          ah_optimizer optimizer)
      : LinearModel(microbatches, 1, optimizer) {
    header.rank = rank;
    header.world_size = 2;
    header.global_batch = 4;
    header.first_sample = first;
    parameters[0].owned = rank == 0;
    uint32_t w = parameters[0].parameter_buffer,
             g = parameters[0].gradient_buffer;
    // Take the update off, and put the exchange in its place.
    std::vector<ah_command> all = commands;
    auto norm = std::find_if(all.begin(), all.end(),
                             [](auto &c) { return c.kind == AH_NORM; });
    std::vector<ah_command> tail(norm, all.end());
    commands.erase(commands.begin() + (norm - all.begin()), commands.end());
    streams.back().command_count = commands.size();
    uint32_t transferred = event("gradient", true),
             arrived = event("weights", true);
    uint32_t updated = event("updated", true),
             computed = event("computed", true);
    if (rank == 0) {
      uint32_t theirs = buffer("theirs", AH_SPACE_ARENA, AH_F32, {1, 1});
      command(AH_RECV, "recv gradient", {theirs}, {1, 0, 4, transferred});
      command(AH_WAIT, "wait gradient", {}, {transferred});
      command(AH_REDUCE, "sum", {g, g, theirs}, {1});
      for (ah_command &c : tail) {
        commands.push_back(c);
        ++streams.back().command_count;
      }
      command(AH_RECORD, "updated", {}, {updated});
      stream("communication");
      command(AH_WAIT, "wait update", {}, {updated});
      command(AH_SEND, "send weights", {w}, {1, 1, 4, arrived});
    } else {
      command(AH_SEND, "send gradient", {g}, {0, 0, 4, transferred});
      command(AH_WAIT, "sent", {}, {transferred});
      command(AH_AGREE, "agree");
      command(AH_RECORD, "computed", {}, {computed});
      // Waits in the next step's beginning.
      ah_command wait = {};
      wait.kind = AH_WAIT;
      wait.name = string("wait weights");
      wait.microbatch = -1;
      wait.args[0] = arrived;
      commands.insert(commands.begin(), wait);
      ++streams.back().command_count;
      stream("communication");
      command(AH_WAIT, "wait computed", {}, {computed});
      command(AH_RECV, "recv weights", {w}, {0, 1, 4, arrived});
    }
  }
};
/// Runs both to their ends; what each failed with.
inline std::vector<std::string> trainReplicas(const TemporaryFolder &folder,
                                              NodeOptions options,
                                              std::vector<Replica *> replicas) {
  LocalWorld world(2);
  std::vector<std::string> errors(2, "no error");
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      ah_board board = {};
      ah_comm comm = {&world, rank};
      ah_worker_link link = {sizeof link, 0, &localTable(), &comm, &board, 0};
      try {
        Program program(replicas[rank]->build());
        Trainer(program, options, link, folder.path).run();
      } catch (const Error &error) {
        errors[rank] = error.what();
        localCancel(&comm, error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

inline NodeOptions trainingOptions(const TemporaryFolder &folder) {
  writeFloats(folder / "in", "x", {4, 1}, {1, 2, 3, 4});
  writeFloats(folder / "labels", "labels", {4, 1}, {2, 4, 6, 9});
  writeFloats(folder / "w", "w", {1, 1}, {1});
  writeFile(folder / "weights.index",
            R"({"format":"autohet-weights","version":1,
                "structure_hash":"0000000000000000","tensors":[{"name":"w","file":"w.bin",
                "offset":0,"bytes":4,"dtype":"float32","shape":[1,1],"transform":"none"}]})");
  NodeOptions options;
  options.inputs = {folder / "in"};
  options.labels = folder / "labels";
  options.weights = folder / "w";
  options.logEvery = 0;
  options.learningRate = 0.01;
  options.saveWeights = folder / "after";
  options.saveGradients = folder / "grad";
  options.saveOutputs = folder / "out";
  options.saveLoss = folder / "loss";
  return options;
}

inline std::string trainAlone(const TemporaryFolder &folder,
                              const NodeOptions &options,
                              ProgramBuilder &model) {
  ah_board board = {};
  ah_worker_link link = {sizeof link, 0, nullptr, nullptr, &board, 0};
  try {
    Program program(model.build());
    Trainer(program, options, link, folder.path).run();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

} // namespace autohet::runtime::test

#endif
