//===- PublishedData.h - the measurements that tests may read ---*- C++ -*-===//
//
// Published data sets are too large for the repository. AUTOHET_DATA names a
// folder that holds them (bench/planner/README.md); without it tests skip.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_PROFILES_PUBLISHEDDATA_H
#define AUTOHET_TEST_UNIT_PROFILES_PUBLISHEDDATA_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <string>

namespace autohet {

/// Empty where there is no such folder.
inline std::string publishedData(llvm::StringRef set) {
  const char *data = getenv("AUTOHET_DATA");
  std::string folder = std::string(data ? data : "") + "/" + set.str();
  return data && llvm::sys::fs::is_directory(folder) ? folder : "";
}

/// The value, or a failure of the test and an empty value.
template <typename T>
T valueOf(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

template <typename T>
std::string errorOf(llvm::Expected<T> value) {
  if (!value)
    return llvm::toString(value.takeError());
  return "no error";
}

} // namespace autohet

#define AUTOHET_SKIP_WITHOUT(folder)                                           \
  if ((folder).empty())                                                        \
  GTEST_SKIP() << "no published data: set AUTOHET_DATA"

#endif
