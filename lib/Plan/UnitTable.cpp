//===- UnitTable.cpp - what a plan may distribute, as a file --------------===//

#include "autohet/Plan/UnitTable.h"
#include "autohet/Support/Hash.h"
#include "autohet/Support/TreeReader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

namespace json = llvm::json;

namespace autohet {

bool Unit::operator==(const Unit &other) const {
  auto fields = [](const Unit &unit) {
    return std::tie(unit.id, unit.parameters, unit.forward, unit.backward,
                    unit.activations, unit.workspace, unit.gradient_workspace,
                    unit.divided_extent, unit.successors);
  };
  return fields(*this) == fields(other);
}

std::optional<unsigned> UnitTable::find(llvm::StringRef id) const {
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (units[unit].id == id)
      return unit;
  return std::nullopt;
}

double UnitTable::parameterBytes(const Unit &unit) const {
  double bytes = 0;
  for (unsigned parameter : unit.parameters)
    bytes += parameters[parameter].bytes;
  return bytes;
}

//===-- Writing -----------------------------------------------------------===//

static void writeWork(llvm::StringRef key, const Work &work,
                      llvm::raw_ostream &os) {
  os << "\"" << key << "\": {";
  llvm::ListSeparator comma;
  for (auto [name, quantity] : kWorkQuantities)
    if (work.*quantity != 0)
      os << comma << "\"" << name << "\": " << json::Value(work.*quantity);
  os << "}";
}

static void writePass(llvm::StringRef key, const PassWork &pass,
                      llvm::raw_ostream &os) {
  os << " \"" << key << "\": {";
  writeWork("per_sample", pass.per_sample, os);
  os << ", ";
  writeWork("once", pass.once, os);
  for (auto [name, work] :
       {std::pair("whole_per_sample", &pass.whole_per_sample),
        std::pair("whole_once", &pass.whole_once)})
    if (!(*work == Work())) {
      os << ", ";
      writeWork(name, *work, os);
    }
  if (!pass.exchanges.empty()) {
    os << ", \"exchanges\": [";
    llvm::ListSeparator comma;
    for (const RankExchange &exchange : pass.exchanges)
      os << comma << "[\"" << exchangeName(exchange.kind) << "\", "
         << json::Value(exchange.bytes_per_sample) << "]";
    os << "]";
  }
  os << "},";
}

static void writeBytes(llvm::StringRef what, const DividedBytes &bytes,
                       llvm::raw_ostream &os) {
  os << " \"" << what << "_bytes\": " << json::Value(bytes.all) << ",";
  if (bytes.whole != 0)
    os << " \"whole_" << what << "_bytes\": " << json::Value(bytes.whole)
       << ",";
}

// One line a unit and a parameter: people read and diff this.
std::string formatUnitTable(const UnitTable &table) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"format\": 3,\n  \"structure_hash\": \""
     << formatHash(table.structure_hash) << "\",\n";
  if (table.is_forward_only)
    os << "  \"forward_only\": true,\n";
  os << "  \"parameters\": [";
  const char *separator = "\n";
  for (const UnitParameter &parameter : table.parameters) {
    os << separator << "    {\"name\": " << json::Value(parameter.name)
       << ", \"bytes\": " << json::Value(parameter.bytes)
       << ", \"trained\": " << (parameter.trained ? "true" : "false")
       << ", \"divided\": " << (parameter.divided ? "true" : "false");
    if (parameter.divided_by_rows)
      os << ", \"divided_by_rows\": true";
    os << "}";
    separator = ",\n";
  }
  os << "\n  ],\n  \"units\": [";
  separator = "\n";
  for (const Unit &unit : table.units) {
    os << separator << "    {\"id\": " << json::Value(unit.id)
       << ", \"parameters\": [";
    llvm::ListSeparator comma;
    for (unsigned parameter : unit.parameters)
      os << comma << parameter;
    os << "],";
    writePass("forward", unit.forward, os);
    writePass("backward", unit.backward, os);
    writeBytes("activation", unit.activations, os);
    writeBytes("workspace", unit.workspace, os);
    writeBytes("gradient_workspace", unit.gradient_workspace, os);
    if (unit.divided_extent)
      os << " \"divided_extent\": " << unit.divided_extent << ",";
    os << " \"successors\": [";
    llvm::ListSeparator edgeComma;
    for (const UnitEdge &edge : unit.successors)
      os << edgeComma << "[" << edge.to << ", "
         << json::Value(edge.bytes_per_sample) << "]";
    os << "]}";
    separator = ",\n";
  }
  os << "\n  ]\n}\n";
  return text;
}

//===-- Reading -----------------------------------------------------------===//

namespace {

class UnitTableReader {
public:
  explicit UnitTableReader(llvm::StringRef file) : errors(file) {}

  llvm::Expected<UnitTable> read(const Tree &tree) {
    MappingReader reader(tree, "a unit table", errors);
    reader.requireFormat(3);
    if (const Tree *hash = reader.require("structure_hash"))
      readHash(*hash, "'structure_hash'", table.structure_hash, errors);
    reader.optional("forward_only", table.is_forward_only);
    for (const Tree &item : reader.items("parameters", true))
      readParameter(item);
    for (const Tree &item : reader.items("units", true))
      readUnit(item);
    reader.finish();
    if (llvm::Error error = errors.take())
      return error;
    return std::move(table);
  }

private:
  void readParameter(const Tree &tree) {
    UnitParameter parameter;
    MappingReader reader(tree, "a parameter", errors);
    reader.required("name", parameter.name);
    reader.required("bytes", parameter.bytes, Dimension::None);
    reader.optional("trained", parameter.trained);
    reader.optional("divided", parameter.divided);
    reader.optional("divided_by_rows", parameter.divided_by_rows);
    reader.finish();
    table.parameters.push_back(std::move(parameter));
  }

  void readUnit(const Tree &tree) {
    Unit unit;
    MappingReader reader(tree, "a unit", errors);
    reader.required("id", unit.id);
    for (const Tree &item : reader.items("parameters", false))
      readIndex(item, "a unit's parameter", table.parameters.size(),
                unit.parameters.emplace_back());
    readPass(reader, "forward", unit.forward);
    readPass(reader, "backward", unit.backward);
    for (auto [key, bytes] : {
             std::pair("activation_bytes", &unit.activations.all),
             std::pair("whole_activation_bytes", &unit.activations.whole),
             std::pair("workspace_bytes", &unit.workspace.all),
             std::pair("whole_workspace_bytes", &unit.workspace.whole),
             std::pair("gradient_workspace_bytes",
                       &unit.gradient_workspace.all),
             std::pair("whole_gradient_workspace_bytes",
                       &unit.gradient_workspace.whole),
         })
      reader.optional(key, *bytes, Dimension::None);
    reader.optional("divided_extent", unit.divided_extent, 0);
    for (const Tree &item : reader.items("successors", false))
      readEdge(item, unit);
    reader.finish();
    table.units.push_back(std::move(unit));
  }

  void readPass(MappingReader &parent, llvm::StringRef key, PassWork &pass) {
    const Tree *tree = parent.get(key);
    if (!tree)
      return;
    MappingReader reader(*tree, "a unit's " + key, errors);
    for (auto [name, work] :
         {std::pair("per_sample", &pass.per_sample),
          std::pair("once", &pass.once),
          std::pair("whole_per_sample", &pass.whole_per_sample),
          std::pair("whole_once", &pass.whole_once)})
      if (const Tree *part = reader.get(name)) {
        MappingReader numbers(*part, "a unit's " + key + " " + name, errors);
        for (auto [name, quantity] : kWorkQuantities)
          numbers.optional(name, work->*quantity, Dimension::None);
        numbers.finish();
      }
    for (const Tree &item : reader.items("exchanges", false))
      readExchange(item, pass.exchanges.emplace_back());
    reader.finish();
  }

  // `[kind, bytes]`
  void readExchange(const Tree &tree, RankExchange &exchange) {
    if (tree.items.size() != 2)
      return errors.add(tree.location, "an exchange is [kind, bytes]");
    std::string name;
    if (!readString(tree.items[0], "an exchange", name, errors))
      return;
    std::optional<RankExchange::Kind> kind = parseExchange(name);
    if (!kind)
      return errors.add(tree.items[0].location,
                        "an exchange is sum, joined_sum, gather or cut, "
                        "found '" +
                            name + "'");
    exchange.kind = *kind;
    readNumber(tree.items[1], "an exchange's bytes", exchange.bytes_per_sample,
               errors);
  }

  // `[unit, bytes]`
  void readEdge(const Tree &tree, Unit &unit) {
    if (tree.items.size() != 2)
      return errors.add(tree.location, "a successor is [unit, bytes]");
    UnitEdge &edge = unit.successors.emplace_back();
    // Later units have not been read: only the order is checked.
    readIndex(tree.items[0], "a successor", INT32_MAX, edge.to);
    readNumber(tree.items[1], "a successor's bytes", edge.bytes_per_sample,
               errors);
    if (edge.to <= table.units.size())
      errors.add(tree.location, "a successor must be a later unit");
  }

  void readIndex(const Tree &tree, llvm::StringRef what, size_t size,
                 unsigned &index) {
    int64_t value = 0;
    if (readInteger(tree, what, value, errors) &&
        value >= static_cast<int64_t>(size))
      errors.add(tree.location, what + " is out of range");
    else
      index = value;
  }

  ErrorList errors;
  UnitTable table;
};

} // namespace

llvm::Expected<UnitTable> parseUnitTable(llvm::StringRef text,
                                         llvm::StringRef file) {
  llvm::Expected<Tree> tree = parseJson(text, file);
  if (!tree)
    return tree.takeError();
  llvm::Expected<UnitTable> table = UnitTableReader(file).read(*tree);
  if (!table)
    return table.takeError();
  for (const Unit &unit : table->units)
    for (const UnitEdge &edge : unit.successors)
      if (edge.to >= table->units.size())
        return makeError(file, {},
                         "unit '" + unit.id +
                             "' has a successor that does not exist");
  return table;
}

} // namespace autohet
