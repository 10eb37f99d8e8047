//===- InputFile.h - any file that a user names, in bounds -----*- C++ -*-===//
//
// A name may lead to a folder, a device without an end or a pipe that nobody
// writes to. Whoever reads what a command line names reads it with this.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_INPUTFILE_H
#define AUTOHET_SUPPORT_INPUTFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdint>
#include <memory>

namespace autohet {

/// Of the texts that people and programs write for us: clusters, plans,
/// configs.
constexpr uint64_t kMostTextBytes = uint64_t(64) << 20;
/// Of models and programs.
constexpr uint64_t kMostModelBytes = uint64_t(1) << 31;

/// The bytes of the file `path`: mapped, of whatever size, where it is a
/// regular one; read to its end, at most `mostBytes`, where it is a pipe or a
/// device. The error, without the path, says why not.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInputFile(llvm::StringRef path, uint64_t mostBytes);

} // namespace autohet

#endif
