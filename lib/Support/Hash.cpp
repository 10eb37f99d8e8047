//===- Hash.cpp - hashes as files and messages write them -----------------===//

#include "autohet/Support/Hash.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace autohet {

uint64_t hashBytes(llvm::StringRef bytes) {
  return llvm::xxh3_64bits(llvm::arrayRefFromStringRef(bytes));
}

std::string formatHash(uint64_t hash) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format_hex_no_prefix(hash, 16);
  return text;
}

std::optional<uint64_t> parseHash(llvm::StringRef text) {
  bool isHash = text.size() == 16 && llvm::all_of(text, [](char digit) {
                  return llvm::isHexDigit(digit) && !llvm::isUpper(digit);
                });
  uint64_t hash;
  if (!isHash || text.getAsInteger(16, hash))
    return std::nullopt;
  return hash;
}

} // namespace autohet
