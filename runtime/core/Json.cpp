//===- Json.cpp - the runtime's reader of JSON ----------------------------===//
//
// A recursive descent over one string; see the header for why it is ours.
//
//===----------------------------------------------------------------------===//

#include "core/Json.h"

#include <charconv>
#include <cmath>

using namespace autohet::runtime;

const Json *Json::find(std::string_view key) const {
  for (const auto &[name, value] : fields)
    if (name == key)
      return &value;
  return nullptr;
}

const char *Json::nameOf(Kind kind) {
  switch (kind) {
  case Null:
    return "null";
  case Bool:
    return "true or false";
  case Integer:
    return "an integer";
  case Number:
    return "a number";
  case String:
    return "a string";
  case Array:
    return "a list";
  case Object:
    return "an object";
  }
  return "nothing";
}

namespace {

class Parser {
public:
  Parser(std::string_view text, std::string &error)
      : text(text), error(error) {}

  bool parseAll(Json &value) {
    if (!parseValue(value, 0))
      return false;
    skipSpace();
    return at == text.size() || fail("nothing may follow the value");
  }

private:
  // Deeper nesting than any file of ours, but no stack overflow.
  static constexpr unsigned maxDepth = 200;

  std::string_view text;
  std::string &error;
  size_t at = 0;

  bool fail(const std::string &what) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < text.size(); ++i) {
      column = text[i] == '\n' ? 1 : column + 1;
      line += text[i] == '\n';
    }
    error = "line " + std::to_string(line) + ", column " +
            std::to_string(column) + ": " + what;
    return false;
  }

  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' ||
                                text[at] == '\t' || text[at] == '\r'))
      ++at;
  }

  bool consume(char c) {
    skipSpace();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  bool word(std::string_view expected) {
    if (text.substr(at, expected.size()) != expected)
      return fail("unknown word");
    at += expected.size();
    return true;
  }

  bool parseValue(Json &value, unsigned depth) {
    if (depth > maxDepth)
      return fail("nested too deeply");
    skipSpace();
    if (at >= text.size())
      return fail("the text ends where a value was expected");
    switch (text[at]) {
    case '{':
      return parseObject(value, depth);
    case '[':
      return parseArray(value, depth);
    case '"':
      value.kind = Json::String;
      return parseString(value.string);
    case 't':
      value.kind = Json::Bool;
      value.boolean = true;
      return word("true");
    case 'f':
      value.kind = Json::Bool;
      return word("false");
    case 'n':
      return word("null");
    default:
      return parseNumber(value);
    }
  }

  bool parseObject(Json &value, unsigned depth) {
    value.kind = Json::Object;
    ++at;
    if (consume('}'))
      return true;
    do {
      skipSpace();
      if (at >= text.size() || text[at] != '"')
        return fail("expected a key in quotes");
      std::string key;
      if (!parseString(key))
        return false;
      if (value.find(key))
        return fail("the key \"" + key + "\" stands twice");
      if (!consume(':'))
        return fail("expected ':' after the key \"" + key + "\"");
      Json field;
      if (!parseValue(field, depth + 1))
        return false;
      value.fields.emplace_back(std::move(key), std::move(field));
    } while (consume(','));
    return consume('}') || fail("expected ',' or '}'");
  }

  bool parseArray(Json &value, unsigned depth) {
    value.kind = Json::Array;
    ++at;
    if (consume(']'))
      return true;
    do {
      value.items.emplace_back();
      if (!parseValue(value.items.back(), depth + 1))
        return false;
    } while (consume(','));
    return consume(']') || fail("expected ',' or ']'");
  }

  bool parseNumber(Json &value) {
    const char *first = text.data() + at, *last = text.data() + text.size();
    // from_chars takes "inf", "nan" and leading zeros; JSON does not.
    const char *digits = first + (*first == '-');
    if (digits == last || *digits < '0' || *digits > '9')
      return fail("expected a value");
    if (*digits == '0' && digits + 1 < last && digits[1] >= '0' &&
        digits[1] <= '9')
      return fail("a number begins with a superfluous 0");
    auto [end, status] = std::from_chars(first, last, value.number);
    if (status != std::errc() || !std::isfinite(value.number))
      return fail("a number is out of range");
    value.kind = Json::Number;
    auto [integerEnd, integerStatus] =
        std::from_chars(first, last, value.integer);
    if (integerStatus == std::errc() && integerEnd == end)
      value.kind = Json::Integer;
    at += end - first;
    return true;
  }

  bool parseHex4(uint32_t &code) {
    if (at + 4 > text.size())
      return fail("the text ends inside \\u");
    auto [end, status] =
        std::from_chars(text.data() + at, text.data() + at + 4, code, 16);
    if (status != std::errc() || end != text.data() + at + 4)
      return fail("expected four hexadecimal digits after \\u");
    at += 4;
    return true;
  }

  static void appendUtf8(std::string &out, uint32_t code) {
    if (code < 0x80) {
      out += char(code);
    } else if (code < 0x800) {
      out += char(0xc0 | code >> 6);
      out += char(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      out += char(0xe0 | code >> 12);
      out += char(0x80 | (code >> 6 & 0x3f));
      out += char(0x80 | (code & 0x3f));
    } else {
      out += char(0xf0 | code >> 18);
      out += char(0x80 | (code >> 12 & 0x3f));
      out += char(0x80 | (code >> 6 & 0x3f));
      out += char(0x80 | (code & 0x3f));
    }
  }

  bool parseEscape(std::string &out) {
    if (at >= text.size())
      return fail("the text ends inside a string");
    char c = text[at++];
    constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    if (size_t i = names.find(c); i != names.npos) {
      out += values[i];
      return true;
    }
    uint32_t code = 0, low = 0;
    if (c != 'u')
      return fail("unknown escape in a string");
    if (!parseHex4(code))
      return false;
    if (code >= 0xd800 && code < 0xdc00) { // the first half of a pair
      if (text.substr(at, 2) != "\\u")
        return fail("half a surrogate pair");
      at += 2;
      if (!parseHex4(low))
        return false;
      if (low < 0xdc00 || low > 0xdfff)
        return fail("half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    appendUtf8(out, code);
    return true;
  }

  bool parseString(std::string &out) {
    for (++at; at < text.size();) {
      char c = text[at++];
      if (c == '"')
        return true;
      if (static_cast<unsigned char>(c) < 0x20)
        return fail("a control character in a string");
      if (c != '\\')
        out += c;
      else if (!parseEscape(out))
        return false;
    }
    return fail("the text ends inside a string");
  }
};

} // namespace

bool autohet::runtime::parseJson(std::string_view text, Json &value,
                                 std::string &error) {
  value = Json();
  return Parser(text, error).parseAll(value);
}
