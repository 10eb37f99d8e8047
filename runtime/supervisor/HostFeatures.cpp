//===- HostFeatures.cpp - what this machine's CPU can do ------------------===//
//
// Code for a CPU that has more ends in SIGILL somewhere in the first step; this
// says so before anything starts. The kernel's list in /proc/cpuinfo covers
// what LLVM may use, under names that differ in punctuation and a few in full.
//
//===----------------------------------------------------------------------===//

#include "supervisor/HostFeatures.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace autohet::runtime;

/// "avx512_bf16", "sse4.2" and "amx-tile" without their punctuation.
static std::string plain(std::string name) {
  name.erase(
      std::remove_if(name.begin(), name.end(),
                     [](char c) { return c == '_' || c == '.' || c == '-'; }),
      name.end());
  return name;
}

static std::set<std::string> readFeatures() {
  std::set<std::string> result;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 5, "flags") && line.compare(0, 8, "Features"))
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      result.insert(plain(word));
    break; // all CPUs of a machine are alike for this purpose
  }
  return result;
}

std::string
autohet::runtime::missingFeatures(const std::vector<std::string> &needed) {
  static const std::set<std::string> present = readFeatures();
  // LLVM's name, the kernel's name. "" has no flag there.
  static const std::map<std::string, std::string> renamed = {
      {"sse3", "pni"},         {"lzcnt", "abm"},   {"bmi", "bmi1"},
      {"rdrnd", "rdrand"},     {"sha", "shani"},   {"sahf", "lahflm"},
      {"crc32", "sse42"},      {"64bit", "lm"},    {"x87", "fpu"},
      {"pclmul", "pclmulqdq"}, {"shstk", ""},      {"prfchw", "3dnowprefetch"},
      {"neon", "asimd"},       {"evex512", ""},    {"fullfp16", "asimdhp"},
      {"dotprod", "asimddp"},  {"lse", "atomics"},
  };
  std::string missing;
  for (std::string name : needed) {
    if (name.empty() || name[0] == '-')
      continue;
    if (name[0] == '+')
      name.erase(0, 1);
    std::string kernelName = plain(name);
    if (auto found = renamed.find(kernelName); found != renamed.end())
      kernelName = found->second;
    if (!kernelName.empty() && !present.count(kernelName))
      missing += (missing.empty() ? "" : ", ") + name;
  }
  return missing;
}
