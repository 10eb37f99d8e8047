//===- GpuClusters.cpp - clusters and models from data sheets -------------===//

#include "autohet/Profiles/GpuClusters.h"

namespace autohet {

// Of 16-bit numbers; see GpuStep.cpp for the counts.
static constexpr double bytesPerNumber = 2;
// Weight, gradient and Adam's state make 16 bytes with fp32 parameters, as they
// do with 16-bit ones and fp32 master copies.
static constexpr double bytesPerParameter = 4;
// Kernels and products of a unit's forward, or backward.
static constexpr double commandsOfUnit = 10;

DeviceKind deviceKindOf(const GpuKind &kind, const GpuEfficiency &efficiency) {
  DeviceKind result;
  result.name = kind.name.str();
  result.memory_bytes = findDataSheet(kind.name)->memory_gb * 1e9;
  result.flops_per_s = kind.flopsPerSecond() * efficiency.matmul;
  result.memory_bandwidth_bytes_per_s =
      kind.memoryBytesPerSecond() * efficiency.bandwidth;
  result.is_gpu = true;
  // Not the start from Python: commands of a compiled program wait in a queue.
  result.overhead_s = 2e-6;
  return result;
}

UnitTable unitsOf(const DecoderShape &shape) {
  UnitTable table;
  double h = static_cast<double>(shape.hidden);
  double inner = static_cast<double>(shape.inner);
  double s = static_cast<double>(shape.sequence);
  double words = static_cast<double>(shape.vocabulary);
  double stream = s * h; // numbers of a sample's residual stream
  auto addParameter = [&](const std::string &name, double numbers) {
    table.parameters.push_back({name, numbers * bytesPerParameter, true});
    return static_cast<unsigned>(table.parameters.size() - 1);
  };
  // `weights` numbers of each sample's token's product; elementwise traffic and
  // kept activations in numbers of the stream.
  auto addUnit = [&](const std::string &id, double flops, double traffic,
                     double kept, std::vector<unsigned> parameters) {
    Unit unit;
    unit.id = id;
    unit.parameters = std::move(parameters);
    unit.forward.per_sample.flops = flops;
    unit.forward.per_sample.traffic_bytes = traffic * bytesPerNumber;
    unit.forward.once.traffic_bytes = table.parameterBytes(unit);
    unit.forward.once.commands = commandsOfUnit;
    unit.backward.per_sample = unit.forward.per_sample * 2;
    unit.backward.once = unit.forward.once;
    for (PassWork *pass : {&unit.forward, &unit.backward})
      pass->exchanges = {{RankExchange::Sum, stream * bytesPerNumber}};
    unit.activations.all = kept * bytesPerNumber;
    unit.successors.push_back({static_cast<unsigned>(table.units.size() + 1),
                               stream * bytesPerNumber});
    table.units.push_back(std::move(unit));
  };

  unsigned embedding = addParameter("words", words * h);
  addUnit("embed", 0, 2 * stream, stream, {embedding});
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    std::string name = "block" + std::to_string(layer);
    double attention = 4 * h * h;
    // Layer norm, QKV, output: 8 of the 17 numbers that Megatron keeps for each
    // of the stream; attention keeps none of its matrix.
    addUnit(name + ".attn", 2 * s * attention + 4 * s * s * h, 11 * stream,
            8 * stream, {addParameter(name + ".attn", attention)});
    double matrices = shape.has_gate ? 3 : 2;
    double feed = matrices * h * inner;
    double inside = (matrices - 1) * s * inner;
    addUnit(name + ".mlp", 2 * s * feed, 6 * stream + 2 * inside,
            2 * stream + 2 * inside, {addParameter(name + ".mlp", feed)});
  }
  // The loss works on fp32 logits.
  addUnit("head", 2 * s * h * words, 8 * s * words, 3 * s * words,
          {shape.ties_words ? embedding : addParameter("head", words * h)});
  table.units.back().successors.clear();
  return table;
}

} // namespace autohet
