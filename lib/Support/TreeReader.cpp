//===- TreeReader.cpp - checked reading of a Tree -------------------------===//

#include "autohet/Support/TreeReader.h"
#include "autohet/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <cassert>

namespace autohet {

//===-- Errors
//-------------------------------------------------------------===//

void ErrorList::add(TextLocation location, const llvm::Twine &message) {
  messages.push_back(formatError(file, location, message));
}

llvm::Error ErrorList::take() {
  if (messages.empty())
    return llvm::Error::success();
  std::string all = llvm::join(messages, "\n");
  messages.clear();
  return llvm::createStringError(all);
}

//===-- Scalars
//------------------------------------------------------------===//

bool readString(const Tree &tree, const llvm::Twine &what, std::string &value,
                ErrorList &errors) {
  if (tree.kind != Tree::Kind::Scalar) {
    errors.add(tree.location, what + " must be text, found " + tree.describe());
    return false;
  }
  value = tree.text;
  return true;
}

bool readInteger(const Tree &tree, const llvm::Twine &what, int64_t &value,
                 ErrorList &errors, int64_t minimum) {
  int64_t parsed;
  if (tree.kind != Tree::Kind::Scalar || tree.quoted ||
      llvm::StringRef(tree.text).getAsInteger(10, parsed)) {
    errors.add(tree.location,
               what + " must be a whole number, found " + tree.describe());
    return false;
  }
  if (parsed < minimum) {
    errors.add(tree.location, what + " must be at least " +
                                  llvm::Twine(minimum) + ", found " +
                                  tree.text);
    return false;
  }
  value = parsed;
  return true;
}

bool readHash(const Tree &tree, const llvm::Twine &what, uint64_t &value,
              ErrorList &errors) {
  std::string text;
  if (!readString(tree, what, text, errors))
    return false;
  std::optional<uint64_t> hash = parseHash(text);
  if (hash)
    value = *hash;
  else
    errors.add(tree.location,
               what + " must be 16 lower-case hexadecimal digits, found '" +
                   text + "'");
  return hash.has_value();
}

bool readQuantity(const Tree &tree, const llvm::Twine &what,
                  Dimension dimension, double &value, ErrorList &errors) {
  if (tree.kind != Tree::Kind::Scalar) {
    errors.add(tree.location,
               what + " must be a number" +
                   (dimension == Dimension::None ? "" : " with a unit") +
                   ", found " + tree.describe());
    return false;
  }
  llvm::Expected<double> parsed = parseQuantity(tree.text, dimension);
  if (!parsed) {
    errors.add(tree.location, what + ": " + toString(parsed.takeError()));
    return false;
  }
  value = *parsed;
  return true;
}

bool readNumber(const Tree &tree, const llvm::Twine &what, double &value,
                ErrorList &errors) {
  return readQuantity(tree, what, Dimension::None, value, errors);
}

bool readBool(const Tree &tree, const llvm::Twine &what, bool &value,
              ErrorList &errors) {
  bool isBool = tree.kind == Tree::Kind::Scalar && !tree.quoted &&
                (tree.text == "true" || tree.text == "false");
  if (!isBool) {
    errors.add(tree.location,
               what + " must be true or false, found " + tree.describe());
    return false;
  }
  value = tree.text == "true";
  return true;
}

//===-- Mappings
//-----------------------------------------------------------===//

MappingReader::MappingReader(const Tree &tree, const llvm::Twine &what,
                             ErrorList &errors)
    : tree(tree), what(what.str()), errors(errors) {
  if (tree.kind != Tree::Kind::Mapping)
    errors.add(tree.location,
               what + " must be a mapping, found " + tree.describe());
}

MappingReader::~MappingReader() {
  assert(finished && "finish() reports unknown keys and must be called");
}

std::string MappingReader::describe(llvm::StringRef key) const {
  return ("'" + key + "' of " + what).str();
}

const Tree *MappingReader::get(llvm::StringRef key) {
  if (!llvm::is_contained(known, key))
    known.push_back(key);
  const Tree *value = tree.find(key);
  return value && value->kind != Tree::Kind::Null ? value : nullptr;
}

const Tree *MappingReader::require(llvm::StringRef key) {
  const Tree *value = get(key);
  // A value that is no mapping has been reported once already.
  if (!value && tree.kind == Tree::Kind::Mapping)
    errors.add(tree.location, what + " needs '" + key + "'");
  return value;
}

void MappingReader::requireFormat(int64_t supported) {
  int64_t format = 0;
  if (required("format", format, 1) && format != supported)
    errors.add(tree.find("format")->location,
               "format " + llvm::Twine(format) +
                   " is not supported; this version reads format " +
                   llvm::Twine(supported));
}

bool MappingReader::required(llvm::StringRef key, std::string &value) {
  const Tree *found = require(key);
  return found && readString(*found, describe(key), value, errors);
}

bool MappingReader::required(llvm::StringRef key, int64_t &value,
                             int64_t minimum) {
  const Tree *found = require(key);
  return found && readInteger(*found, describe(key), value, errors, minimum);
}

bool MappingReader::required(llvm::StringRef key, double &value,
                             Dimension dimension) {
  const Tree *found = require(key);
  return found && readQuantity(*found, describe(key), dimension, value, errors);
}

bool MappingReader::optional(llvm::StringRef key, bool &value) {
  const Tree *found = get(key);
  return found && readBool(*found, describe(key), value, errors);
}

bool MappingReader::optional(llvm::StringRef key, std::string &value) {
  const Tree *found = get(key);
  return found && readString(*found, describe(key), value, errors);
}

bool MappingReader::optional(llvm::StringRef key, int64_t &value,
                             int64_t minimum) {
  const Tree *found = get(key);
  return found && readInteger(*found, describe(key), value, errors, minimum);
}

bool MappingReader::optional(llvm::StringRef key, double &value,
                             Dimension dimension) {
  const Tree *found = get(key);
  return found && readQuantity(*found, describe(key), dimension, value, errors);
}

bool MappingReader::optional(llvm::StringRef key,
                             std::vector<std::string> &values) {
  bool isGood = tree.find(key) != nullptr;
  for (const Tree &item : items(key, /*isRequired=*/false))
    isGood &= readString(item, "an item of " + describe(key),
                         values.emplace_back(), errors);
  return isGood;
}

llvm::ArrayRef<Tree> MappingReader::items(llvm::StringRef key,
                                          bool isRequired) {
  const Tree *found = isRequired ? require(key) : get(key);
  if (!found)
    return {};
  if (found->kind != Tree::Kind::Sequence) {
    errors.add(found->location,
               describe(key) + " must be a list, found " + found->describe());
    return {};
  }
  return found->items;
}

void MappingReader::finish() {
  finished = true;
  for (const Tree::Entry &entry : tree.entries)
    if (!llvm::is_contained(known, entry.key))
      errors.add(entry.location,
                 "unknown key '" + entry.key + "' in " + what +
                     "; known keys: " + llvm::join(known, ", "));
}

} // namespace autohet
