//===- Names.h - what may name a node, and where one may be ----*- C++ -*-===//

#ifndef AUTOHET_CLUSTER_NAMES_H
#define AUTOHET_CLUSTER_NAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace autohet {

// What keeps a text from being a name, a node's name or an address: "is empty",
// "begins with '-', …". Empty where nothing does.
std::string findTextProblem(llvm::StringRef text);
std::string findNodeNameProblem(llvm::StringRef name);
std::string findAddressProblem(llvm::StringRef address);

} // namespace autohet

#endif
