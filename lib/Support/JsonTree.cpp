//===- JsonTree.cpp - fills a Tree from JSON ------------------------------===//
//
// LLVM's parser says whether the text is JSON, and decodes its strings; but its
// values do not know where they stood. So a walk over the tokens of the text,
// which may assume that it is well-formed, builds the tree with locations.
//
//===----------------------------------------------------------------------===//

#include "autohet/Support/Tree.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cassert>

namespace autohet {
namespace {

class JsonWalker {
public:
  JsonWalker(llvm::StringRef text, llvm::StringRef file)
      : text(text), file(file) {}

  llvm::Expected<Tree> walk() {
    Tree tree = value();
    if (!firstError.empty())
      return llvm::createStringError(firstError);
    return tree;
  }

private:
  void advance(size_t count) {
    for (; count; --count, ++position) {
      if (text[position] == '\n') {
        ++here.line;
        here.column = 0;
      }
      ++here.column;
    }
  }

  /// The next character that is not white space.
  char peek() {
    while (llvm::isSpace(text[position]))
      advance(1);
    return text[position];
  }

  bool skipIf(char wanted) {
    if (peek() != wanted)
      return false;
    advance(1);
    return true;
  }

  std::string string() {
    assert(peek() == '"' && "not a string");
    size_t end = position + 1;
    while (text[end] != '"')
      end += text[end] == '\\' ? 2 : 1;
    llvm::StringRef token = text.slice(position, end + 1);
    advance(token.size());
    // The whole text has been parsed before, this part of it as well.
    return llvm::cantFail(llvm::json::parse(token)).getAsString()->str();
  }

  Tree value() {
    Tree tree;
    char first = peek();
    tree.location = here;
    if (skipIf('{')) {
      tree.kind = Tree::Kind::Mapping;
      while (!skipIf('}')) {
        skipIf(',');
        peek();
        TextLocation location = here;
        std::string key = string();
        bool hasColon = skipIf(':');
        assert(hasColon && "well-formed text");
        (void)hasColon;
        if (tree.find(key) && firstError.empty())
          firstError =
              formatError(file, location, "key '" + key + "' is given twice");
        tree.entries.push_back({std::move(key), location, value()});
      }
    } else if (skipIf('[')) {
      tree.kind = Tree::Kind::Sequence;
      while (!skipIf(']')) {
        skipIf(',');
        tree.items.push_back(value());
      }
    } else if (first == '"') {
      tree.kind = Tree::Kind::Scalar;
      tree.quoted = true;
      tree.text = string();
    } else {
      size_t end = text.find_first_of(",]} \t\r\n", position);
      tree.text = text.slice(position, end).str();
      tree.kind = tree.text == "null" ? Tree::Kind::Null : Tree::Kind::Scalar;
      advance(tree.text.size());
    }
    return tree;
  }

  llvm::StringRef text, file;
  size_t position = 0;
  TextLocation here = {1, 1};
  std::string firstError;
};

} // namespace

std::optional<TextLocation> findDeepJson(llvm::StringRef text) {
  TextLocation here = {1, 0};
  unsigned depth = 0;
  bool inString = false, isEscaped = false;
  for (char c : text) {
    ++here.column;
    if (c == '\n') {
      ++here.line;
      here.column = 0;
    }
    if (inString) {
      inString = isEscaped || c != '"';
      isEscaped = c == '\\' && !isEscaped;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (depth++ == maxTreeDepth)
        return here;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::nullopt;
}

llvm::Expected<Tree> parseJson(llvm::StringRef text, llvm::StringRef file) {
  if (std::optional<TextLocation> deep = findDeepJson(text))
    return makeError(file, *deep, "nested too deeply");
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    // "[12:7, byte=93]: Expected , or ] after array element"
    std::string message = llvm::toString(parsed.takeError());
    llvm::StringRef rest = message;
    TextLocation location;
    if (rest.consume_front("[") && !rest.consumeInteger(10, location.line) &&
        rest.consume_front(":") && !rest.consumeInteger(10, location.column))
      rest = rest.substr(rest.find("]: ") + 3);
    return makeError(file, location, "not JSON: " + rest);
  }
  return JsonWalker(text, file).walk();
}

} // namespace autohet
