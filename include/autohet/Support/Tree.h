//===- Tree.h - a text file as a tree that knows its lines ------*- C++ -*-===//
//
// Cluster, plan and job files are small trees that people write by hand, so
// whatever is wrong in one must be said with file, line and column. LLVM's YAML
// parser has locations but is a stream, and its JSON parser has no locations;
// this tree is filled from either and read by TreeReader.h.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_TREE_H
#define AUTOHET_SUPPORT_TREE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace autohet {

/// 1-based; line 0 is "somewhere in the file".
struct TextLocation {
  unsigned line = 0;
  unsigned column = 0;
};

struct Tree {
  enum class Kind { Null, Scalar, Sequence, Mapping };
  struct Entry;

  Kind kind = Kind::Null;
  TextLocation location;
  /// Of a scalar. `quoted` tells the string "4" from the number 4.
  std::string text;
  bool quoted = false;
  std::vector<Tree> items;    ///< of a sequence
  std::vector<Entry> entries; ///< of a mapping, in the file's order

  /// The entry's value, or null.
  const Tree *find(llvm::StringRef key) const;
  /// "a list", "the number 4", …: what an error says it found.
  std::string describe() const;
};

struct Tree::Entry {
  std::string key;
  TextLocation location;
  Tree value;
};

/// "file:line:column: error: message", without line and column where unknown.
std::string formatError(llvm::StringRef file, TextLocation location,
                        const llvm::Twine &message);
llvm::Error makeError(llvm::StringRef file, TextLocation location,
                      const llvm::Twine &message);

/// Names of one file are written into others, which are UTF-8.
llvm::Error checkUtf8(llvm::StringRef text, llvm::StringRef file);

/// Lists in lists beyond this are refused: deeper than any file of ours, but no
/// stack overflows, as in the runtime's reader of JSON.
constexpr unsigned maxTreeDepth = 200;

/// Where a text of JSON nests too deeply, for whoever is about to hand it to a
/// recursive parser.
std::optional<TextLocation> findDeepJson(llvm::StringRef text);

/// `file` is only the name used in messages. A key given twice is an error.
llvm::Expected<Tree> parseYaml(llvm::StringRef text, llvm::StringRef file);
llvm::Expected<Tree> parseJson(llvm::StringRef text, llvm::StringRef file);

/// Reads a whole file; the error names it and says why.
llvm::Expected<std::string> readTextFile(llvm::StringRef path);

} // namespace autohet

#endif
