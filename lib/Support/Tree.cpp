//===- Tree.cpp - a text file as a tree that knows its lines --------------===//

#include "autohet/Support/Tree.h"
#include "autohet/Support/InputFile.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

namespace autohet {

const Tree *Tree::find(llvm::StringRef key) const {
  for (const Entry &entry : entries)
    if (entry.key == key)
      return &entry.value;
  return nullptr;
}

std::string Tree::describe() const {
  switch (kind) {
  case Kind::Null:
    return "nothing";
  case Kind::Scalar:
    // A file that is something else altogether is one long text.
    return (quoted ? "the text '" : "'") +
           (text.size() > 80 ? text.substr(0, 77) + "..." : text) + "'";
  case Kind::Sequence:
    return "a list";
  case Kind::Mapping:
    return "a mapping";
  }
  llvm_unreachable("covered switch");
}

/// What a file says must not move a terminal's cursor, nor make two lines of
/// one.
static std::string visible(llvm::StringRef text) {
  std::string shown;
  for (char c : text) {
    unsigned char byte = c;
    if (byte >= 0x20 && byte != 0x7f)
      shown += c;
    else
      shown += "\\x" + llvm::utohexstr(byte, /*LowerCase=*/true, /*Width=*/2);
  }
  return shown;
}

std::string formatError(llvm::StringRef file, TextLocation location,
                        const llvm::Twine &message) {
  std::string text = file.str();
  if (location.line)
    text += ":" + std::to_string(location.line) + ":" +
            std::to_string(location.column);
  return text + ": error: " + visible(message.str());
}

llvm::Error makeError(llvm::StringRef file, TextLocation location,
                      const llvm::Twine &message) {
  return llvm::createStringError(formatError(file, location, message));
}

llvm::Error checkUtf8(llvm::StringRef text, llvm::StringRef file) {
  size_t wrong = 0;
  if (llvm::json::isUTF8(text, &wrong))
    return llvm::Error::success();
  llvm::StringRef before = text.take_front(wrong);
  unsigned line = before.count('\n') + 1;
  unsigned column = wrong - (before.rfind('\n') + 1) + 1;
  return makeError(file, {line, column}, "not UTF-8 text");
}

llvm::Expected<std::string> readTextFile(llvm::StringRef path) {
  auto buffer = readInputFile(path, kMostTextBytes);
  if (!buffer)
    return makeError(path, {}, llvm::toString(buffer.takeError()));
  uint64_t bytes = (*buffer)->getBufferSize();
  if (bytes > kMostTextBytes)
    return makeError(
        path, {},
        "has " + formatQuantity(double(bytes), Dimension::Bytes) +
            ", wanted a text of at most " +
            formatQuantity(double(kMostTextBytes), Dimension::Bytes));
  return (*buffer)->getBuffer().str();
}

} // namespace autohet
