//===- QuantityTest.cpp - units -------------------------------------------===//

#include "autohet/Support/Quantity.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;

static double read(llvm::StringRef text, Dimension dimension) {
  llvm::Expected<double> value = parseQuantity(text, dimension);
  if (value)
    return *value;
  ADD_FAILURE() << llvm::toString(value.takeError());
  return -1;
}

static std::string refuse(llvm::StringRef text, Dimension dimension) {
  llvm::Expected<double> value = parseQuantity(text, dimension);
  return value ? "" : llvm::toString(value.takeError());
}

TEST(Quantity, Reads) {
  EXPECT_EQ(read("80 GiB", Dimension::Bytes), 80 * 0x1p30);
  EXPECT_EQ(read("80GB", Dimension::Bytes), 80e9);
  EXPECT_EQ(read("25 GB/s", Dimension::BytesPerSecond), 25e9);
  EXPECT_EQ(read("100 Gbit/s", Dimension::BytesPerSecond), 12.5e9);
  EXPECT_DOUBLE_EQ(read("5 us", Dimension::Seconds), 5e-6);
  EXPECT_EQ(read("0 s", Dimension::Seconds), 0);
  EXPECT_EQ(read("1.5e2 GFLOP/s", Dimension::FlopsPerSecond), 150e9);
  EXPECT_EQ(read("0.25", Dimension::None), 0.25);
}

TEST(Quantity, Refuses) {
  EXPECT_THAT(refuse("80", Dimension::Bytes),
              HasSubstr("no unit; units here: B"));
  EXPECT_THAT(refuse("80 Gb", Dimension::Bytes),
              HasSubstr("unknown unit 'Gb'"));
  EXPECT_THAT(refuse("25 GB", Dimension::BytesPerSecond),
              HasSubstr("unknown unit"));
  EXPECT_THAT(refuse("-1 GiB", Dimension::Bytes), HasSubstr("negative"));
  EXPECT_THAT(refuse("nan GiB", Dimension::Bytes),
              HasSubstr("not a finite number"));
  EXPECT_THAT(refuse(".inf GiB", Dimension::Bytes), HasSubstr("not a finite"));
  EXPECT_THAT(refuse("1e999 B", Dimension::Bytes), HasSubstr("not a finite"));
  EXPECT_THAT(refuse("", Dimension::None), HasSubstr("not a finite number"));
  EXPECT_THAT(refuse("4 GiB", Dimension::None), HasSubstr("plain number"));
}

TEST(Quantity, Formats) {
  EXPECT_EQ(formatQuantity(80 * 0x1p30, Dimension::Bytes), "80 GiB");
  EXPECT_EQ(formatQuantity(1536, Dimension::Bytes), "1.50 KiB");
  EXPECT_EQ(formatQuantity(12.5e9, Dimension::BytesPerSecond), "12.5 GB/s");
  EXPECT_EQ(formatQuantity(50e-6, Dimension::Seconds), "50 us");
  EXPECT_EQ(formatQuantity(90, Dimension::Seconds), "90 s");
  EXPECT_EQ(formatQuantity(0, Dimension::Bytes), "0 B");
  EXPECT_EQ(formatQuantity(0, Dimension::Seconds), "0 s");
  EXPECT_EQ(formatQuantity(0.15, Dimension::Seconds), "150 ms");
}
