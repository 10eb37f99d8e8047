//===- GpuStep.cpp - a training step of a grid of GPUs --------------------===//
//
// A kernel takes as long as its arithmetic or its memory traffic, whichever is
// more. The tables below are Megatron's block: they are counted, not fitted;
// what is fitted stands in GpuEfficiency.
//
//===----------------------------------------------------------------------===//

#include "autohet/Profiles/GpuStep.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace autohet {
namespace {

constexpr double bytesPerNumber = 2; // 16 bit
// Tiles of a matrix product: what cuBLAS takes for large ones.
constexpr int64_t tileRows = 128, tileColumns = 256;
// What elementwise kernels of a block read and write forward, in bytes: for
// each number of the residual stream (two layer norms, two biases with dropout
// and addition), of what is divided (bias and GeLU of 4 h), and of an attention
// matrix (softmax, dropout). Backward moves twice as much.
constexpr double residualBytes = 22, dividedBytes = 16, attentionBytes = 9;
// The loss of one token and word, forward and backward, in fp32.
constexpr double lossBytes = 64;
// Adam with fp32 master weights: reads and writes of one parameter.
constexpr double updateBytes = 34;

class StepModel {
public:
  StepModel(const TransformerShape &shape, const GridPlan &plan,
            const GpuCluster &cluster, const GpuEfficiency &efficiency)
      : shape(shape), plan(plan), cluster(cluster), efficiency(efficiency),
        tokens(plan.microbatch_size * shape.sequence),
        isOneNode(plan.data * plan.tensor * plan.pipeline <=
                  cluster.gpus_per_node) {}

  llvm::Error check() const {
    auto divides = [](int64_t part, int64_t whole) {
      return part > 0 && whole > 0 && whole % part == 0;
    };
    if (!divides(plan.pipeline, shape.layers) ||
        !divides(plan.tensor, shape.heads) ||
        !divides(plan.microbatch_size * plan.data, plan.global_batch))
      return llvm::createStringError(
          "a grid of " + std::to_string(plan.data) + " x " +
          std::to_string(plan.tensor) + " x " + std::to_string(plan.pipeline) +
          " does not divide " + std::to_string(shape.layers) + " layers, " +
          std::to_string(shape.heads) + " heads and a batch of " +
          std::to_string(plan.global_batch));
    int64_t inNode = std::min(plan.tensor, cluster.gpus_per_node);
    for (int64_t ranks : {inNode, dataRanksInNode(),
                          plan.pipeline > 1 && isOneNode ? int64_t(2) : 1})
      if (ranks > 1 && !cluster.all_reduce.count(ranks))
        return llvm::createStringError("no all-reduce table for " +
                                       std::to_string(ranks) + " GPUs");
    return llvm::Error::success();
  }

  GpuStepSeconds predict() const {
    double layers =
        static_cast<double>(shape.layers) / static_cast<double>(plan.pipeline);
    double block = layers * blockSeconds();
    double head = headSeconds();
    double message = messageSeconds();
    double stages = static_cast<double>(plan.pipeline);
    double microbatches = static_cast<double>(
        plan.global_batch / (plan.microbatch_size * plan.data));
    // A stage waits for its messages, in either direction.
    double slot = block + head + (plan.pipeline > 1 ? 2 * message : 0);
    GpuStepSeconds seconds;
    seconds.pipeline_s = (microbatches - 1) * slot + stages * block + head +
                         2 * (stages - 1) * message;
    double words = static_cast<double>(shape.vocabulary * shape.hidden);
    double parameters =
        (12.0 * static_cast<double>(shape.hidden * shape.hidden) * layers +
         words) /
        static_cast<double>(plan.tensor);
    seconds.gradients_s = gradientSeconds(parameters * bytesPerNumber);
    if (plan.pipeline > 1)
      // First and last stage hold the same embedding.
      seconds.embedding_s = pairSeconds(words * bytesPerNumber /
                                        static_cast<double>(plan.tensor));
    seconds.update_s = parameters * updateBytes / memoryRate();
    seconds.step_s = seconds.pipeline_s + seconds.gradients_s +
                     seconds.embedding_s + seconds.update_s;
    return seconds;
  }

private:
  double memoryRate() const {
    return cluster.kind->memoryBytesPerSecond() * efficiency.bandwidth;
  }
  double networkRate() const {
    return cluster.network_bytes_per_s * efficiency.network;
  }

  /// `count` products of rows x inner by inner x columns.
  double product(int64_t rows, int64_t columns, int64_t inner,
                 int64_t count = 1) const {
    int64_t tiles = llvm::divideCeil(rows, tileRows) *
                    llvm::divideCeil(columns, tileColumns) * count;
    int64_t atOnce = cluster.kind->multiprocessors;
    double filled =
        static_cast<double>(tiles) /
        static_cast<double>(llvm::divideCeil(tiles, atOnce) * atOnce);
    double number = static_cast<double>(count);
    double m = static_cast<double>(rows), n = static_cast<double>(columns),
           k = static_cast<double>(inner);
    double arithmetic =
        2 * m * n * k * number /
        (cluster.kind->flopsPerSecond() * efficiency.matmul * filled);
    double traffic =
        bytesPerNumber * (m * k + k * n + m * n) * number / memoryRate();
    return std::max(arithmetic, traffic);
  }

  /// Forward, forward again, and backward of one block.
  double blockSeconds() const {
    int64_t h = shape.hidden, t = plan.tensor, s = shape.sequence;
    int64_t matrices = plan.microbatch_size * shape.heads / t;
    // Each weight's product, [tokens, inner] x [inner, columns].
    const std::pair<int64_t, int64_t> weights[] = {
        {3 * h / t, h}, {h, h / t}, {4 * h / t, h}, {h, 4 * h / t}};
    double forward = 0, backward = 0;
    for (auto [columns, inner] : weights) {
      forward += product(tokens, columns, inner);
      backward +=
          product(tokens, inner, columns) + product(columns, inner, tokens);
    }
    double attention = product(s, s, h / shape.heads, matrices) +
                       product(s, h / shape.heads, s, matrices);
    double numbers = static_cast<double>(tokens * h);
    double elementwise =
        (residualBytes * numbers +
         dividedBytes * numbers / static_cast<double>(t) +
         attentionBytes * static_cast<double>(matrices * s * s)) /
        memoryRate();
    double reduce = 2 * tensorReduceSeconds(numbers * bytesPerNumber);
    double start = efficiency.block_start_s +
                   (matrices % 4 ? efficiency.plain_softmax_s : 0);
    double once = std::max(start, forward + attention + elementwise + reduce);
    return 2 * once +
           std::max(start, backward + 2 * attention + 2 * elementwise + reduce);
  }

  double headSeconds() const {
    int64_t words = shape.vocabulary / plan.tensor;
    return 3 * product(tokens, words, shape.hidden) +
           lossBytes * static_cast<double>(tokens * words) / memoryRate();
  }

  double inNodeSeconds(int64_t ranks, double bytes) const {
    return ranks > 1 ? cluster.all_reduce.find(ranks)->second.seconds(bytes)
                     : 0;
  }

  double tensorReduceSeconds(double bytes) const {
    int64_t inNode = std::min(plan.tensor, cluster.gpus_per_node);
    double nodes = static_cast<double>(llvm::divideCeil(plan.tensor, inNode));
    double seconds = inNodeSeconds(inNode, bytes);
    if (nodes > 1)
      seconds += 2 * (nodes - 1) / nodes * bytes / networkRate() +
                 cluster.message_latency_s;
    return seconds;
  }

  /// One activation to the next stage. Megatron sends each tensor-parallel rank
  /// its part only, and all of a node's GPUs send at once.
  double messageSeconds() const {
    if (plan.pipeline == 1)
      return 0;
    double bytes = static_cast<double>(tokens * shape.hidden) * bytesPerNumber /
                   static_cast<double>(plan.tensor);
    double rate =
        isOneNode ? cluster.kind->link_bytes_per_s
                  : networkRate() / static_cast<double>(cluster.gpus_per_node);
    return bytes / rate + cluster.message_latency_s;
  }

  double pairSeconds(double bytes) const {
    if (isOneNode)
      return inNodeSeconds(2, bytes);
    return bytes / (networkRate() / static_cast<double>(cluster.gpus_per_node));
  }

  /// Tensor-parallel ranks are neighbours, so that so many of the ranks that
  /// reduce together share a node.
  int64_t dataRanksInNode() const {
    if (isOneNode)
      return plan.data;
    return std::clamp<int64_t>(cluster.gpus_per_node / plan.tensor, 1,
                               plan.data);
  }

  double gradientSeconds(double bytes) const {
    int64_t inNode = dataRanksInNode();
    double nodes = static_cast<double>(plan.data / inNode);
    double seconds = inNodeSeconds(inNode, bytes);
    if (nodes > 1)
      // The groups of a node share its cards.
      seconds += 2 * (nodes - 1) / nodes * bytes *
                 static_cast<double>(cluster.gpus_per_node / inNode) /
                 networkRate();
    return seconds;
  }

  const TransformerShape &shape;
  const GridPlan &plan;
  const GpuCluster &cluster;
  const GpuEfficiency &efficiency;
  int64_t tokens;
  bool isOneNode;
};

} // namespace

double AllReduceTable::seconds(double bytes) const {
  auto above = llvm::lower_bound(
      bytes_and_seconds, bytes,
      [](const auto &entry, double wanted) { return entry.first < wanted; });
  if (above == bytes_and_seconds.begin())
    return above->second;
  if (above == bytes_and_seconds.end())
    return bytes_and_seconds.back().second * bytes /
           bytes_and_seconds.back().first;
  const auto &below = *std::prev(above);
  double part = (bytes - below.first) / (above->first - below.first);
  return below.second + part * (above->second - below.second);
}

llvm::Expected<GpuStepSeconds> predictStep(const TransformerShape &shape,
                                           const GridPlan &plan,
                                           const GpuCluster &cluster,
                                           const GpuEfficiency &efficiency) {
  StepModel model(shape, plan, cluster, efficiency);
  if (llvm::Error error = model.check())
    return error;
  return model.predict();
}

} // namespace autohet
