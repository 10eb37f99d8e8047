//===- QuantityTest.cpp - units -------------------------------------------===//

#include "autohet/Support/Quantity.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;

static double read(llvm::StringRef text, Unit unit) {
  llvm::Expected<double> value = parseQuantity(text, unit);
  if (value)
    return *value;
  ADD_FAILURE() << llvm::toString(value.takeError());
  return -1;
}

static std::string refuse(llvm::StringRef text, Unit unit) {
  llvm::Expected<double> value = parseQuantity(text, unit);
  return value ? "" : llvm::toString(value.takeError());
}

TEST(Quantity, Reads) {
  EXPECT_EQ(read("80 GiB", Unit::Bytes), 80 * 0x1p30);
  EXPECT_EQ(read("80GB", Unit::Bytes), 80e9);
  EXPECT_EQ(read("25 GB/s", Unit::BytesPerSecond), 25e9);
  EXPECT_EQ(read("100 Gbit/s", Unit::BytesPerSecond), 12.5e9);
  EXPECT_DOUBLE_EQ(read("5 us", Unit::Seconds), 5e-6);
  EXPECT_EQ(read("0 s", Unit::Seconds), 0);
  EXPECT_EQ(read("1.5e2 GFLOP/s", Unit::FlopsPerSecond), 150e9);
  EXPECT_EQ(read("0.25", Unit::None), 0.25);
}

TEST(Quantity, Refuses) {
  EXPECT_THAT(refuse("80", Unit::Bytes), HasSubstr("no unit; units here: B"));
  EXPECT_THAT(refuse("80 Gb", Unit::Bytes), HasSubstr("unknown unit 'Gb'"));
  EXPECT_THAT(refuse("25 GB", Unit::BytesPerSecond), HasSubstr("unknown unit"));
  EXPECT_THAT(refuse("-1 GiB", Unit::Bytes), HasSubstr("negative"));
  EXPECT_THAT(refuse("nan GiB", Unit::Bytes), HasSubstr("not a finite number"));
  EXPECT_THAT(refuse(".inf GiB", Unit::Bytes), HasSubstr("not a finite"));
  EXPECT_THAT(refuse("1e999 B", Unit::Bytes), HasSubstr("not a finite"));
  EXPECT_THAT(refuse("", Unit::None), HasSubstr("not a finite number"));
  EXPECT_THAT(refuse("4 GiB", Unit::None), HasSubstr("plain number"));
}

TEST(Quantity, Formats) {
  EXPECT_EQ(formatQuantity(80 * 0x1p30, Unit::Bytes), "80 GiB");
  EXPECT_EQ(formatQuantity(1536, Unit::Bytes), "1.50 KiB");
  EXPECT_EQ(formatQuantity(12.5e9, Unit::BytesPerSecond), "12.5 GB/s");
  EXPECT_EQ(formatQuantity(50e-6, Unit::Seconds), "50.0 us");
  EXPECT_EQ(formatQuantity(90, Unit::Seconds), "90 s");
  EXPECT_EQ(formatQuantity(0, Unit::Bytes), "0 B");
}
