//===- ConfigKeys.h - the keys of a config.json ----------------*- C++ -*-===//
//
// The rules for keys, which are not those of our own files: null is as good as
// absent and means the documented default; a key has several spellings; many
// keys change no number of training and are passed over. But a key that nobody
// knows might change one, so it is refused by name.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_CONFIG_CONFIGKEYS_H
#define AUTOHET_LIB_FRONTEND_CONFIG_CONFIGKEYS_H

#include "autohet/Support/TreeReader.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace autohet::config {

/// Products of a few counts must stay within 64 bits.
constexpr int64_t kLargestCount = int64_t(1) << 24;

class ConfigKeys {
public:
  /// `what` is the mapping in messages: "" for the file itself.
  ConfigKeys(const Tree &tree, ErrorList &errors, llvm::StringRef what = "")
      : tree(tree), errors(errors), what(what) {}

  bool has(llvm::StringRef key) const;
  /// Whether it is there and null: for the few keys where that is a value.
  bool isNull(llvm::StringRef key) const;
  /// The value, or null where it is absent or null. The key is known then.
  const Tree *get(llvm::StringRef key);

  /// Counts are at least `minimum`. A count without a fallback is required;
  /// several names are spellings of one key, which must agree.
  int64_t count(llvm::ArrayRef<llvm::StringRef> names,
                std::optional<int64_t> fallback = std::nullopt,
                int64_t minimum = 1) {
    return countBetween(minimum, kLargestCount, names, fallback);
  }
  /// A count of what is built one by one, as layers are.
  int64_t countOfParts(llvm::ArrayRef<llvm::StringRef> names,
                       std::optional<int64_t> fallback = std::nullopt) {
    // More is a typing error: thousands already take seconds.
    return countBetween(1, 4096, names, fallback);
  }
  double number(llvm::ArrayRef<llvm::StringRef> names, double fallback);
  /// At least 0 and below 1.
  double probability(llvm::ArrayRef<llvm::StringRef> names, double fallback);
  bool flag(llvm::StringRef key, bool fallback);
  std::string word(llvm::ArrayRef<llvm::StringRef> names,
                   llvm::StringRef fallback);

  /// Keys that change no number of training.
  void ignore(llvm::ArrayRef<llvm::StringRef> keys);
  /// An error at the key: "'key' <why>".
  void refuse(llvm::StringRef key, const llvm::Twine &why);
  /// A flag that must be as given, for the other value changes numbers in a way
  /// that is not supported.
  void requireFlag(llvm::StringRef key, bool only);

  /// Refuses what nobody asked for.
  void finish();
  /// Of those to ignore, the ones that the file has, with their values.
  std::vector<std::string> ignored() const;

  ErrorList &errorList() { return errors; }

private:
  int64_t countBetween(int64_t minimum, int64_t most,
                       llvm::ArrayRef<llvm::StringRef> names,
                       std::optional<int64_t> fallback);
  const Tree *firstOf(llvm::ArrayRef<llvm::StringRef> names,
                      llvm::StringRef &name);
  std::string quoted(llvm::StringRef key) const;

  const Tree &tree;
  ErrorList &errors;
  std::string what;
  llvm::StringSet<> known, harmless;
  llvm::StringMap<std::string> spellings; ///< of a key, the one that is there
};

} // namespace autohet::config

#endif
