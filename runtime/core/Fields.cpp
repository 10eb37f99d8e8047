//===- Fields.cpp - reads JSON objects, naming what is wrong ----------------===//

#include "core/Fields.h"

#include <charconv>
#include <cmath>

namespace autohet::runtime {

// A text of a damaged file may be of any length; a message may not.
static std::string shortened(const std::string &text) {
  constexpr size_t longest = 200;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

void Fields::allow(std::initializer_list<const char *> known) const {
  for (auto &[key, value] : object.fields) {
    bool found = false;
    std::string names;
    for (const char *name : known) {
      found |= key == name;
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    if (!found)
      wrong("unknown key '" + shortened(key) + "'; known: " + names);
  }
}

const Json &Fields::at(const char *key) const {
  if (const Json *value = object.find(key))
    return *value;
  wrong(std::string("key '") + key + "' is missing");
}

const Json &Fields::typed(const char *key, Json::Kind kind) const {
  const Json &value = at(key);
  if (value.kind != kind)
    wrong(std::string("'") + key + "' is " + Json::nameOf(value.kind) +
          ", wanted " + Json::nameOf(kind));
  return value;
}

uint64_t Fields::natural(const char *key) const {
  const Json &value = at(key);
  if (value.kind != Json::Integer || value.integer < 0)
    wrong(std::string("'") + key + "' is not a natural number");
  return value.integer;
}

double Fields::number(const char *key) const {
  const Json &value = at(key);
  if (!value.isNumber())
    wrong(std::string("'") + key + "' is not a number");
  return value.number;
}

uint64_t Fields::hash(const char *key, const std::string &prefix) const {
  const std::string &text = string(key);
  uint64_t value = 0;
  bool good = text.size() == prefix.size() + 16 && text.rfind(prefix, 0) == 0;
  if (good) {
    const char *end = text.data() + text.size();
    auto [stop, error] =
        std::from_chars(text.data() + prefix.size(), end, value, 16);
    good = error == std::errc() && stop == end;
  }
  if (!good)
    wrong(std::string("'") + key + "' is '" + shortened(text) + "', wanted " +
          (prefix.empty() ? "" : "'" + prefix + "' and ") +
          "16 hexadecimal digits");
  return value;
}

std::vector<int64_t> Fields::naturals(const char *key) const {
  std::vector<int64_t> values;
  for (const Json &item : list(key).items) {
    if (item.kind != Json::Integer || item.integer < 0)
      wrong(std::string("'") + key +
            "' has an element that is not a natural number");
    values.push_back(item.integer);
  }
  return values;
}

Json parseJsonOrFail(std::string_view text, const std::string &where) {
  Json value;
  std::string error;
  if (!parseJson(text, value, error))
    fail(AH_ERROR_INPUT, "%s is not JSON: %s", where.c_str(), error.c_str());
  return value;
}

std::string jsonQuoted(std::string_view text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      (result += '\\') += char(c);
    else if (c < 0x20)
      result += format("\\u%04x", c);
    else
      result += char(c);
  }
  return result + '"';
}

std::string jsonNumber(double value) {
  if (std::isnan(value))
    return "\"NaN\"";
  if (std::isinf(value))
    return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  char text[40];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end);
}

} // namespace autohet::runtime
