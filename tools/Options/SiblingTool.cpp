//===- SiblingTool.cpp - runs the tools that users run ----------------------===//

#include "SiblingTool.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace autohet;

llvm::Error autohet::runTool(llvm::StringRef tool,
                             const std::vector<std::string> &arguments,
                             const std::string &folder, std::string &output) {
  static int anchor;
  llvm::SmallString<128> path(llvm::sys::path::parent_path(
      llvm::sys::fs::getMainExecutable(nullptr, &anchor)));
  llvm::sys::path::append(path, tool);
  std::string log = folder + "/output.txt", message;
  std::vector<llvm::StringRef> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  int status = llvm::sys::ExecuteAndWait(
      path, words, std::nullopt,
      {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)},
      /*SecondsToWait=*/600, /*MemoryLimit=*/0, &message);
  auto text = llvm::MemoryBuffer::getFile(log);
  output = text ? (*text)->getBuffer().str() : "";
  if (status == 0)
    return llvm::Error::success();
  llvm::StringRef said = llvm::StringRef(output).trim();
  return llvm::createStringError(tool + " failed" +
                                 (message.empty() ? "" : " (" + message + ")") +
                                 (said.empty() ? "" : ":\n" + said));
}
