//===- OutputFolder.h - where a compiled job goes ----------------*- C++ -*-===//
//
// A user's folder may hold anything: checkpoints of the last plan, notes, a
// whole machine. Files are written into a folder of our own inside it and take
// their places one by one, the manifest last, when all of them are there.
// Nothing is removed but what an earlier compilation says that it wrote.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_COMPILE_OUTPUTFOLDER_H
#define AUTOHET_TOOLS_COMPILE_OUTPUTFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace autohet {

/// Whether files can be made in `path`, or in the folder that it would be made
/// in; changes nothing. For places that are written to when the work is done.
llvm::Error checkFolder(llvm::StringRef path);

class OutputFolder {
public:
  OutputFolder() = default;
  /// Removes what was not committed, and the folder if it was made for it.
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;

  /// Makes `path` where it does not exist. Fails where it is no folder, or
  /// nothing can be written there.
  llvm::Error open(llvm::StringRef path);

  /// Where to write the file that will be `name`.
  std::string pathOf(const llvm::Twine &name) const;

  /// Moves all files to their places. Fails, and changes nothing, where one
  /// would replace a file that no compilation has written.
  llvm::Error commit();

private:
  llvm::SmallString<256> folder, work; ///< `work` empty: not open
  bool isNew = false;
  bool wasInterrupted = false; ///< a commit here was killed
};

} // namespace autohet

#endif
