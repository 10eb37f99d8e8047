//===- HostFeaturesTests.cpp - a CPU without what a program needs ---------===//

#include "supervisor/HostFeatures.h"

#include <gtest/gtest.h>

using namespace autohet::runtime;

TEST(HostFeatures, NamesWhatIsMissing) {
#if defined(__x86_64__)
  EXPECT_EQ(missingFeatures({"64bit", "sse2", "+sse4.2", "crc32", "fxsr"}), "");
#endif
  EXPECT_EQ(missingFeatures({"hal9000", "-avx512f", "+warp-drive"}),
            "hal9000, warp-drive");
  EXPECT_EQ(missingFeatures({}), "");
}
