//===- TreeReader.h - checked reading of a Tree -----------------*- C++ -*-===//
//
// The rules that all our files share: an unknown key is an error that lists the
// known ones, a missing key and a value of another type are errors that say
// what was wanted, and all errors of a file are reported at once.
//
//   ErrorList errors("cluster.yaml");
//   MappingReader reader(tree, "a device kind", errors);
//   reader.required("memory", kind.memory_bytes, Dimension::Bytes);
//   reader.optional("threads", kind.threads);
//   reader.finish();
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_TREEREADER_H
#define AUTOHET_SUPPORT_TREEREADER_H

#include "autohet/Support/Quantity.h"
#include "autohet/Support/Tree.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace autohet {

/// Everything wrong with one file.
class ErrorList {
public:
  explicit ErrorList(llvm::StringRef file) : file(file.str()) {}

  void add(TextLocation location, const llvm::Twine &message);
  bool empty() const { return messages.empty(); }
  /// One error with all lines, or success.
  llvm::Error take();

private:
  std::string file;
  std::vector<std::string> messages;
};

// Each reads one scalar; false, with the error added, where it is not one.
// `what` names the thing in messages ("'threads' of kind 'fast'").
bool readString(const Tree &tree, const llvm::Twine &what, std::string &value,
                ErrorList &errors);
bool readInteger(const Tree &tree, const llvm::Twine &what, int64_t &value,
                 ErrorList &errors, int64_t minimum = 0);
bool readNumber(const Tree &tree, const llvm::Twine &what, double &value,
                ErrorList &errors);
/// true or false.
bool readBool(const Tree &tree, const llvm::Twine &what, bool &value,
              ErrorList &errors);
/// A hash as formatHash() writes it.
bool readHash(const Tree &tree, const llvm::Twine &what, uint64_t &value,
              ErrorList &errors);
/// A number with its unit, such as `80 GiB`.
bool readQuantity(const Tree &tree, const llvm::Twine &what,
                  Dimension dimension, double &value, ErrorList &errors);

/// Reads a mapping key by key. `finish()` must be called last: it reports the
/// keys that nobody asked for.
class MappingReader {
public:
  /// `what` has its article: "a node".
  MappingReader(const Tree &tree, const llvm::Twine &what, ErrorList &errors);
  ~MappingReader();

  /// The value, or null where the key is absent or null. Remembers the key as
  /// a known one.
  const Tree *get(llvm::StringRef key);
  /// As get(), but an absent key is an error.
  const Tree *require(llvm::StringRef key);

  /// The key `format`, by which a file says its version: must be `supported`.
  void requireFormat(int64_t supported);

  // False where the value is absent or wrong; the latter has been reported.
  bool required(llvm::StringRef key, std::string &value);
  bool required(llvm::StringRef key, int64_t &value, int64_t minimum = 0);
  bool required(llvm::StringRef key, double &value, Dimension dimension);
  bool optional(llvm::StringRef key, bool &value);
  bool optional(llvm::StringRef key, std::string &value);
  bool optional(llvm::StringRef key, int64_t &value, int64_t minimum = 0);
  bool optional(llvm::StringRef key, double &value, Dimension dimension);
  /// A list of scalars.
  bool optional(llvm::StringRef key, std::vector<std::string> &values);

  /// The items of a list; empty, with the error added, where it is not one.
  llvm::ArrayRef<Tree> items(llvm::StringRef key, bool isRequired);

  void finish();

private:
  std::string describe(llvm::StringRef key) const;

  const Tree &tree;
  std::string what;
  ErrorList &errors;
  llvm::SmallVector<llvm::StringRef, 12> known;
  bool finished = false;
};

} // namespace autohet

#endif
