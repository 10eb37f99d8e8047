//===- Hash.h - hashes as files and messages write them ---------*- C++ -*-===//
//
// Structure, plan and program hashes are 64-bit and written as 16 lower-case
// hexadecimal digits everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_HASH_H
#define AUTOHET_SUPPORT_HASH_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace autohet {

/// The same on every machine and in every version of the toolchain.
uint64_t hashBytes(llvm::StringRef bytes);

std::string formatHash(uint64_t hash);
/// Nothing where `text` is not 16 lower-case hexadecimal digits.
std::optional<uint64_t> parseHash(llvm::StringRef text);

} // namespace autohet

#endif
