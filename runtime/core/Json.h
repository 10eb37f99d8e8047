//===- Json.h - the runtime's reader of JSON ------------------------------===//
//
// The runtime includes no LLVM header, so it reads its manifests itself: strict
// RFC 8259 with the position in every error, and no duplicate keys, which some
// parsers resolve one way and some the other. Values are small trees; nothing
// large is ever JSON here.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_JSON_H
#define AUTOHET_RUNTIME_CORE_JSON_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace autohet::runtime {

struct Json {
  enum Kind { Null, Bool, Integer, Number, String, Array, Object };

  Kind kind = Null;
  bool boolean = false;
  int64_t integer = 0; ///< also where `kind` is Number, truncated
  double number = 0;   ///< also where `kind` is Integer
  std::string string;
  std::vector<Json> items;                          ///< of an array
  std::vector<std::pair<std::string, Json>> fields; ///< in the file's order

  bool isNumber() const { return kind == Integer || kind == Number; }

  /// The field `key` of an object, or null.
  const Json *find(std::string_view key) const;

  /// "an object", "a string", ...: for errors of the form "found X, wanted Y".
  static const char *nameOf(Kind kind);
};

/// Parses all of `text`. On failure returns false and sets `error` to
/// "line L, column C: what is wrong".
bool parseJson(std::string_view text, Json &value, std::string &error);

} // namespace autohet::runtime

#endif
