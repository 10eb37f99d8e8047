//===- Quantity.cpp - numbers with units, as people write them ------------===//

#include "autohet/Support/Quantity.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace autohet {
namespace {

struct UnitName {
  const char *name;
  double scale;
};

const UnitName byteUnits[] = {
    {"B", 1},        {"kB", 1e3},     {"MB", 1e6},
    {"GB", 1e9},     {"TB", 1e12},    {"KiB", 1024.0},
    {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
const UnitName bandwidthUnits[] = {
    {"B/s", 1},          {"kB/s", 1e3},       {"MB/s", 1e6},
    {"GB/s", 1e9},       {"TB/s", 1e12},      {"KiB/s", 1024.0},
    {"MiB/s", 0x1p20},   {"GiB/s", 0x1p30},   {"bit/s", 0.125},
    {"kbit/s", 125},     {"Mbit/s", 0.125e6}, {"Gbit/s", 0.125e9},
    {"Tbit/s", 0.125e12}};
const UnitName flopsUnits[] = {{"FLOP/s", 1},
                               {"MFLOP/s", 1e6},
                               {"GFLOP/s", 1e9},
                               {"TFLOP/s", 1e12},
                               {"PFLOP/s", 1e15}};
const UnitName timeUnits[] = {{"ns", 1e-9}, {"us", 1e-6},  {"ms", 1e-3},
                              {"s", 1},     {"min", 60.0}, {"h", 3600.0}};
const UnitName priceUnits[] = {{"USD/h", 1}, {"USD/s", 3600}};

llvm::ArrayRef<UnitName> namesOf(Dimension dimension) {
  switch (dimension) {
  case Dimension::None:
    return {};
  case Dimension::Bytes:
    return byteUnits;
  case Dimension::BytesPerSecond:
    return bandwidthUnits;
  case Dimension::FlopsPerSecond:
    return flopsUnits;
  case Dimension::Seconds:
    return timeUnits;
  case Dimension::DollarsPerHour:
    return priceUnits;
  }
  llvm_unreachable("covered switch");
}

llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

} // namespace

llvm::Expected<double> parseQuantity(llvm::StringRef text,
                                     Dimension dimension) {
  text = text.trim();
  // The number ends where a letter starts that is not an exponent's.
  size_t end = 0;
  while (end < text.size()) {
    char c = text[end];
    bool isExponent = (c == 'e' || c == 'E') && end > 0 &&
                      end + 1 < text.size() &&
                      (llvm::isDigit(text[end + 1]) || text[end + 1] == '-' ||
                       text[end + 1] == '+');
    bool isSign = (c == '-' || c == '+') &&
                  (end == 0 || text[end - 1] == 'e' || text[end - 1] == 'E');
    if (!llvm::isDigit(c) && c != '.' && !isExponent && !isSign)
      break;
    ++end;
  }
  llvm::StringRef number = text.take_front(end);
  llvm::StringRef name = text.drop_front(end).trim();
  double value;
  if (number.empty() || number.getAsDouble(value) || !std::isfinite(value))
    return error("'" + text + "' is not a finite number" +
                 (dimension == Dimension::None ? "" : " with a unit"));
  if (value < 0)
    return error("'" + text + "' is negative");

  llvm::ArrayRef<UnitName> units = namesOf(dimension);
  if (dimension == Dimension::None) {
    if (!name.empty())
      return error("'" + text + "' has a unit where a plain number is wanted");
    return value;
  }
  for (const UnitName &candidate : units)
    if (name == candidate.name) {
      if (!std::isfinite(value * candidate.scale))
        return error("'" + text + "' is too large");
      return value * candidate.scale;
    }
  std::string known;
  for (const UnitName &candidate : units)
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  return error("'" + text + "' has " +
               (name.empty() ? "no unit" : "the unknown unit '" + name + "'") +
               "; units here: " + known);
}

std::string formatQuantity(double value, Dimension dimension) {
  llvm::ArrayRef<UnitName> units = namesOf(dimension);
  // Binary multiples for memory, decimal ones for rates: the largest unit that
  // leaves at least 1.
  UnitName best = {"", 1};
  bool isBytes = dimension == Dimension::Bytes;
  for (const UnitName &candidate : units) {
    llvm::StringRef name = candidate.name;
    if (name.contains("bit") || (name.contains("iB") && !isBytes) ||
        (isBytes && name.contains("B") && name.size() == 2) || name == "min" ||
        name == "h" || name == "USD/s")
      continue;
    if (!*best.name || value >= candidate.scale ||
        (value == 0 && candidate.scale == 1))
      best = candidate;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  double scaled = value / best.scale;
  // Three digits or so; no zeros that only show the format.
  bool isSmall = scaled < 10;
  bool isWhole =
      std::abs(scaled - std::round(scaled)) < (isSmall ? 5e-3 : 5e-2);
  stream << llvm::format(isWhole ? "%.0f" : isSmall ? "%.2f" : "%.1f", scaled);
  if (*best.name)
    stream << ' ' << best.name;
  return text;
}

} // namespace autohet
