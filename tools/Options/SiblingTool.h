//===- SiblingTool.h - runs the tools that users run -----------*- C++ -*-===//
//
// What measures real runs goes through the same commands as a user does: it
// knows their files, not their code.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_OPTIONS_SIBLINGTOOL_H
#define AUTOHET_TOOLS_OPTIONS_SIBLINGTOOL_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace autohet {

/// Runs the tool of this name that lies beside this executable, for at most ten
/// minutes; `output` is all that it said, `folder` where a copy may lie. A
/// failure brings its words.
llvm::Error runTool(llvm::StringRef tool,
                    const std::vector<std::string> &arguments,
                    const std::string &folder, std::string &output);

} // namespace autohet

#endif
