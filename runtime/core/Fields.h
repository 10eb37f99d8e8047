//===- Fields.h - reads JSON objects, naming what is wrong -------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_FIELDS_H
#define AUTOHET_RUNTIME_CORE_FIELDS_H

#include "core/Error.h"
#include "core/Json.h"

#include <initializer_list>

namespace autohet::runtime {

/// One object of a file; every failure says where, which key, and what was
/// wanted.
class Fields {
public:
  Fields(const Json &object, std::string where)
      : object(object), where(std::move(where)) {
    if (object.kind != Json::Object)
      wrong(std::string("found ") + Json::nameOf(object.kind) +
            ", wanted an object");
  }
  [[noreturn]] void wrong(const std::string &what) const {
    fail(AH_ERROR_INPUT, "%s: %s", where.c_str(), what.c_str());
  }
  /// Unknown keys are errors: what is ignored is not done.
  void allow(std::initializer_list<const char *> known) const;
  bool has(const char *key) const { return object.find(key); }
  const Json &at(const char *key) const;
  const Json &list(const char *key) const { return typed(key, Json::Array); }
  const Json &child(const char *key) const { return typed(key, Json::Object); }
  const std::string &string(const char *key) const {
    return typed(key, Json::String).string;
  }
  bool boolean(const char *key) const { return typed(key, Json::Bool).boolean; }
  uint64_t natural(const char *key) const;
  double number(const char *key) const;
  /// `prefix` and 16 hexadecimal digits.
  uint64_t hash(const char *key, const std::string &prefix = "") const;
  /// A list of natural numbers.
  std::vector<int64_t> naturals(const char *key) const;

private:
  const Json &typed(const char *key, Json::Kind kind) const;

  const Json &object;
  std::string where;
};

/// Parses a text; the error begins with `where`.
Json parseJsonOrFail(std::string_view text, const std::string &where);

/// `text` as a JSON string, with its quotes.
std::string jsonQuoted(std::string_view text);
/// Shortest decimal that reads back as `value`; NaN and infinity as strings,
/// which JSON has no numbers for.
std::string jsonNumber(double value);

} // namespace autohet::runtime

#endif
