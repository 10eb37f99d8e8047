//===- ConfigKeys.cpp - the keys of a config.json -------------------------===//

#include "ConfigKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace autohet::config {

bool ConfigKeys::has(llvm::StringRef key) const {
  const Tree *value = tree.find(key);
  return value && value->kind != Tree::Kind::Null;
}

bool ConfigKeys::isNull(llvm::StringRef key) const {
  const Tree *value = tree.find(key);
  return value && value->kind == Tree::Kind::Null;
}

const Tree *ConfigKeys::get(llvm::StringRef key) {
  known.insert(key);
  return has(key) ? tree.find(key) : nullptr;
}

std::string ConfigKeys::quoted(llvm::StringRef key) const {
  return ("'" + key + "'" + (what.empty() ? "" : " of " + what)).str();
}

const Tree *ConfigKeys::firstOf(llvm::ArrayRef<llvm::StringRef> names,
                                llvm::StringRef &name) {
  const Tree *first = nullptr;
  name = names.front();
  for (llvm::StringRef candidate : names) {
    const Tree *value = get(candidate);
    if (!value)
      continue;
    if (!first)
      first = value, name = candidate;
    else if (value->text != first->text)
      errors.add(value->location,
                 quoted(candidate) + " is " + value->describe() + ", but " +
                     quoted(name) + ", the same key, is " + first->describe());
  }
  for (llvm::StringRef candidate : names)
    spellings[candidate] = name.str();
  return first;
}

int64_t ConfigKeys::countBetween(int64_t minimum, int64_t most,
                                 llvm::ArrayRef<llvm::StringRef> names,
                                 std::optional<int64_t> fallback) {
  llvm::StringRef name;
  int64_t value = fallback.value_or(minimum);
  const Tree *found = firstOf(names, name);
  if (found)
    readInteger(*found, quoted(name), value, errors, minimum);
  else if (!fallback)
    errors.add(tree.location,
               "needs " + llvm::join(llvm::map_range(names,
                                                     [&](llvm::StringRef one) {
                                                       return quoted(one);
                                                     }),
                                     " or "));
  if (value > most) {
    // A default may follow from another key, and be as wrong.
    errors.add(found ? found->location : tree.location,
               quoted(found ? name : names.front()) + " is " +
                   llvm::Twine(value) + (found ? "" : " by default") +
                   ", wanted at most " + llvm::Twine(most));
    value = minimum;
  }
  return value;
}

double ConfigKeys::number(llvm::ArrayRef<llvm::StringRef> names,
                          double fallback) {
  llvm::StringRef name;
  double value = fallback;
  if (const Tree *found = firstOf(names, name))
    readNumber(*found, quoted(name), value, errors);
  return value;
}

double ConfigKeys::probability(llvm::ArrayRef<llvm::StringRef> names,
                               double fallback) {
  llvm::StringRef name;
  double value = number(names, fallback);
  const Tree *found = firstOf(names, name);
  if (value >= 0 && value < 1)
    return value;
  if (found)
    errors.add(found->location, quoted(name) + " is " + found->describe() +
                                    ", wanted a probability below 1");
  return fallback;
}

bool ConfigKeys::flag(llvm::StringRef key, bool fallback) {
  bool value = fallback;
  if (const Tree *found = get(key))
    readBool(*found, quoted(key), value, errors);
  return value;
}

std::string ConfigKeys::word(llvm::ArrayRef<llvm::StringRef> names,
                             llvm::StringRef fallback) {
  llvm::StringRef name;
  std::string value = fallback.str();
  if (const Tree *found = firstOf(names, name))
    readString(*found, quoted(name), value, errors);
  return value;
}

void ConfigKeys::ignore(llvm::ArrayRef<llvm::StringRef> keys) {
  for (llvm::StringRef key : keys)
    harmless.insert(key);
}

void ConfigKeys::refuse(llvm::StringRef key, const llvm::Twine &why) {
  known.insert(key);
  // As the file spells it.
  if (auto spelt = spellings.find(key); spelt != spellings.end())
    key = spelt->second;
  const Tree *value = tree.find(key);
  errors.add(value ? value->location : tree.location, quoted(key) + " " + why);
}

void ConfigKeys::requireFlag(llvm::StringRef key, bool only) {
  if (flag(key, only) != only)
    refuse(key, llvm::Twine("is ") + (only ? "false" : "true") +
                    ", which is not supported");
}

void ConfigKeys::finish() {
  for (const Tree::Entry &entry : tree.entries)
    if (entry.value.kind != Tree::Kind::Null && !known.contains(entry.key) &&
        !harmless.contains(entry.key))
      errors.add(entry.location,
                 quoted(entry.key) +
                     " is not known: it may change what the model computes; "
                     "delete it if it does not");
}

std::vector<std::string> ConfigKeys::ignored() const {
  std::vector<std::string> list;
  for (const Tree::Entry &entry : tree.entries)
    if (!known.contains(entry.key) && harmless.contains(entry.key))
      list.push_back(entry.key);
  return list;
}

} // namespace autohet::config
