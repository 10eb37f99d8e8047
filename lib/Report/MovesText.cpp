//===- MovesText.cpp - what a change of machines moves --------------------===//

#include "autohet/Report/MovesText.h"
#include "autohet/Report/PlanText.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

namespace json = llvm::json;

namespace autohet {

// Candidates and devices that are named one by one.
static constexpr size_t maxShownCandidates = 4, maxShownMoves = 64;

static std::string bytes(double count) {
  return formatQuantity(count, Dimension::Bytes);
}

namespace {

/// What one device gets from another, or from a checkpoint.
struct Shipment {
  std::map<StateKind, double> bytes;
  std::set<unsigned> units;
};

} // namespace

std::string formatMoves(const ReplanResult &result, const UnitTable &table,
                        const Cluster &cluster) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const StateMoves &moves = result.moves;
  os << "moves: " << bytes(moves.there_bytes) << " stay where they are, "
     << bytes(moves.near_bytes) << " move within nodes, "
     << bytes(moves.far_bytes) << " between nodes, "
     << bytes(moves.checkpoint_bytes) << " come from a checkpoint; at least "
     << formatQuantity(moves.seconds, Dimension::Seconds) << "\n";
  std::vector<unsigned> unitOf(table.parameters.size());
  for (auto [number, unit] : llvm::enumerate(table.units))
    for (unsigned parameter : llvm::reverse(unit.parameters))
      unitOf[parameter] = number;
  // A missing source sorts first: it is what matters most.
  std::map<std::pair<unsigned, std::optional<unsigned>>, Shipment> shipments;
  for (const StateSlice &slice : moves.slices) {
    if (slice.isThere())
      continue;
    Shipment &shipment = shipments[{slice.to, slice.from}];
    shipment.bytes[slice.kind] += slice.bytes;
    shipment.units.insert(unitOf[slice.parameter]);
  }
  size_t shown = 0;
  for (const auto &[ends, shipment] : shipments) {
    if (++shown > maxShownMoves) {
      os << "  ... and " << shipments.size() - maxShownMoves
         << " more: see --json\n";
      break;
    }
    os << "  " << cluster.devices()[ends.first].name << " <- "
       << (ends.second ? cluster.devices()[*ends.second].name : "checkpoint")
       << ":";
    llvm::ListSeparator comma;
    for (auto [kind, count] : shipment.bytes)
      os << comma << " " << bytes(count)
         << (kind == StateKind::Weights ? " of weights" : " of state");
    std::vector<unsigned> units(shipment.units.begin(), shipment.units.end());
    os << " of " << llvm::join(compressUnits(units, table), ", ") << "\n";
  }
  os << "chosen: " << result.origin << "; by score:\n";
  for (auto [number, candidate] : llvm::enumerate(result.candidates)) {
    if (number == maxShownCandidates)
      break;
    os << llvm::format("  %.3f  step %s, moves %s  ", candidate.score,
                       formatQuantity(candidate.step.evaluation.step_s,
                                      Dimension::Seconds)
                           .c_str(),
                       bytes(candidate.moves.movedBytes()).c_str())
       << formatPlanShape(candidate.step, cluster) << " (" << candidate.origin
       << ")\n";
  }
  return text;
}

json::Value describeMovesAsJson(const ReplanResult &result,
                                const UnitTable &table,
                                const Cluster &cluster) {
  const StateMoves &moves = result.moves;
  json::Array slices, candidates;
  for (const StateSlice &slice : moves.slices) {
    json::Value from = nullptr;
    if (slice.from)
      from = cluster.devices()[*slice.from].name;
    slices.push_back(json::Object{
        {"tensor", table.parameters[slice.parameter].name},
        {"what", slice.kind == StateKind::Weights ? "weights" : "state"},
        {"begin", slice.begin},
        {"end", slice.end},
        {"bytes", slice.bytes},
        {"from", std::move(from)},
        {"to", cluster.devices()[slice.to].name}});
  }
  for (const ReplanCandidate &candidate : result.candidates)
    candidates.push_back(
        json::Object{{"origin", candidate.origin},
                     {"score", candidate.score},
                     {"step_s", candidate.step.evaluation.step_s},
                     {"moved_bytes", candidate.moves.movedBytes()},
                     {"shape", formatPlanShape(candidate.step, cluster)}});
  return json::Object{{"there_bytes", moves.there_bytes},
                      {"near_bytes", moves.near_bytes},
                      {"far_bytes", moves.far_bytes},
                      {"checkpoint_bytes", moves.checkpoint_bytes},
                      {"seconds", moves.seconds},
                      {"slices", std::move(slices)},
                      {"candidates", std::move(candidates)}};
}

} // namespace autohet
