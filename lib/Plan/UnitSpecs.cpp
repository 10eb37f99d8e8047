//===- UnitSpecs.cpp - short names for many units -------------------------===//
//
// "block0..block5" instead of twelve ids. A prefix ends at a dot, so that
// "block1" is not also "block10".
//
//===----------------------------------------------------------------------===//

#include "autohet/Plan/UnitTable.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace autohet {
namespace {

using UnitRange = std::pair<unsigned, unsigned>; // first, last

bool isNamedBy(llvm::StringRef id, llvm::StringRef name) {
  return id == name ||
         (id.starts_with(name) && id[name.size()] == '.' && !name.empty());
}

/// First and last unit of this id or prefix.
std::optional<UnitRange> findRange(llvm::StringRef name,
                                   const UnitTable &table) {
  std::optional<UnitRange> range;
  for (unsigned unit = 0; unit < table.units.size(); ++unit)
    if (isNamedBy(table.units[unit].id, name))
      range = {range ? range->first : unit, unit};
  return range;
}

std::string unknownUnit(llvm::StringRef name, const UnitTable &table) {
  std::string text = ("unknown unit '" + name + "'").str();
  if (table.units.empty())
    return text + "; the model has no units";
  text += "; the model has " + std::to_string(table.units.size()) + " units";
  constexpr size_t mostListed = 24;
  if (table.units.size() > mostListed)
    return text + " from '" + table.units.front().id + "' to '" +
           table.units.back().id + "' (--emit=units lists them)";
  for (const Unit &unit : table.units)
    text += (&unit == &table.units.front() ? ": " : ", ") + unit.id;
  return text;
}

} // namespace

llvm::Expected<std::vector<unsigned>> expandUnits(llvm::StringRef spec,
                                                  const UnitTable &table) {
  std::vector<unsigned> units;
  for (unsigned unit = 0; unit < table.units.size(); ++unit)
    if (isNamedBy(table.units[unit].id, spec))
      units.push_back(unit);
  if (!units.empty())
    return units;

  // "a-b" may be an id, or be cut at any dash: the first cut with two known
  // sides counts.
  std::string problem;
  auto tryCut = [&](llvm::StringRef first, llvm::StringRef last) {
    std::optional<UnitRange> begin = findRange(first.trim(), table);
    std::optional<UnitRange> end = findRange(last.trim(), table);
    if (!begin || !end) {
      problem = unknownUnit((begin ? last : first).trim(), table);
      return false;
    }
    if (begin->first > end->second) {
      problem = ("range '" + spec + "' runs backwards").str();
      return false;
    }
    for (unsigned unit = begin->first; unit <= end->second; ++unit)
      units.push_back(unit);
    return true;
  };
  if (spec.contains("..")) {
    auto [first, last] = spec.split("..");
    if (tryCut(first, last))
      return units;
  } else {
    for (size_t dash = spec.find('-'); dash != llvm::StringRef::npos;
         dash = spec.find('-', dash + 1))
      if (tryCut(spec.take_front(dash), spec.drop_front(dash + 1)))
        return units;
  }
  return llvm::createStringError(problem.empty() ? unknownUnit(spec, table)
                                                 : problem);
}

std::vector<std::string> compressUnits(llvm::ArrayRef<unsigned> units,
                                       const UnitTable &table) {
  std::vector<std::string> specs;
  for (size_t begin = 0, end; begin < units.size(); begin = end) {
    end = begin + 1;
    while (end < units.size() && units[end] == units[end - 1] + 1)
      ++end;
    const std::string &first = table.units[units[begin]].id;
    const std::string &last = table.units[units[end - 1]].id;
    if (end - begin == 1)
      specs.push_back(first);
    else
      specs.push_back(first + ".." + last);
  }
  return specs;
}

} // namespace autohet
