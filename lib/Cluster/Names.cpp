//===- Names.cpp - what may name a node, and where one may be ---------------===//
//
// Names become parts of patterns, of files' names and of command lines, and
// addresses are handed to ssh, mpirun and srun: what would mean something else
// there is refused where it is read.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace autohet {

/// Of hosts' names, too.
static constexpr size_t kLongestName = 255;

static bool isControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string findTextProblem(llvm::StringRef text) {
  if (text.empty())
    return "is empty";
  if (llvm::any_of(text, isControl))
    return "holds a control character";
  if (text.size() > kLongestName)
    return "is longer than " + std::to_string(kLongestName) + " bytes";
  return "";
}

std::string findNodeNameProblem(llvm::StringRef name) {
  if (std::string problem = findTextProblem(name); !problem.empty())
    return problem;
  if (name.find_first_of("/@*?[],: ") != llvm::StringRef::npos)
    return "holds one of /@*?[],: or a space";
  if (name.starts_with("-"))
    return "begins with '-', as options do";
  if (name == "." || name == "..")
    return "means a folder";
  return "";
}

std::string findAddressProblem(llvm::StringRef address) {
  if (std::string problem = findTextProblem(address); !problem.empty())
    return problem;
  if (address.starts_with("-"))
    return "begins with '-', as options do";
  // user@host, fe80::1%eth0 and names in any script.
  for (char c : address)
    if (!llvm::isAlnum(c) && static_cast<unsigned char>(c) < 0x80 &&
        !llvm::StringRef(".-_:%@").contains(c))
      return std::string("holds '") + c +
             "', which is in no host's name or number";
  return "";
}

} // namespace autohet
