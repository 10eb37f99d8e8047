//===- Tree.cpp - a text file as a tree that knows its lines --------------===//

#include "autohet/Support/Tree.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

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

std::string formatError(llvm::StringRef file, TextLocation location,
                        const llvm::Twine &message) {
  std::string text = file.str();
  if (location.line)
    text += ":" + std::to_string(location.line) + ":" +
            std::to_string(location.column);
  return text + ": error: " + message.str();
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
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return makeError(path, {}, "cannot read: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

} // namespace autohet
