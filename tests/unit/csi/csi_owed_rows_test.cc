// The rows of csi-debt and csi-command: what is on the disks of nodes can be read for ever.
#include <gtest/gtest.h>

#include <string>

#include "csi/csi_command.h"
#include "csi/csi_debts.h"

namespace volumed {
namespace {

constexpr int64_t kSince = 1'767'323'045'678;
constexpr const char* kSinceBytes = "\xae\x9e\xa6\xe5\xb7\x33";

CsiDebt Debt() { return {{"disk.example.com", "vol-1"}, OwedCall::kUnpublish, "/k/p", kSince}; }
CsiCommandRecord Command() {
  return {"disk.example.com", "vol-1", "NodeStageVolume", "{}", kSince};
}

TEST(CsiOwedRowsTest, TheBytesOfADebtAreThoseOfTheFirstProgramThatWroteThem) {
  const Record row = EncodeRecord(Debt());
  EXPECT_EQ(row.kind, "csi-debt");
  EXPECT_EQ(row.version, 1u);
  // Fields 5 and 6 are not used.
  EXPECT_EQ(row.bytes, std::string("\x0a\x10") + "disk.example.com" + "\x12\x05" + "vol-1" +
                           "\x18\x01" + "\x22\x04" + "/k/p" + "\x38" + kSinceBytes);
  const Result<CsiDebt> read = DecodeCsiDebt(row);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, Debt());
}

TEST(CsiOwedRowsTest, TheBytesOfACommandAreThoseOfTheFirstProgramThatWroteThem) {
  const Record row = EncodeRecord(Command());
  EXPECT_EQ(row.kind, "csi-command");
  EXPECT_EQ(row.version, 1u);
  EXPECT_EQ(row.bytes, std::string("\x0a\x10") + "disk.example.com" + "\x12\x05" + "vol-1" +
                           "\x1a\x0f" + "NodeStageVolume" + "\x22\x02" + "{}" + "\x28" +
                           kSinceBytes);
  const Result<CsiCommandRecord> read = DecodeCsiCommandRecord(row);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, Command());
}

TEST(CsiOwedRowsTest, ADebtUnderAnotherKeyOrOfAnUnknownCallIsNotRead) {
  Record row = EncodeRecord(Debt());
  row.key = "disk.example.com/other";
  EXPECT_EQ(DecodeCsiDebt(row).error().code(), Code::kDataLoss);
  CsiDebt unknown = Debt();
  unknown.what = OwedCall::kNotKnown;
  EXPECT_FALSE(DecodeCsiDebt(EncodeRecord(unknown)).ok());
}

}  // namespace
}  // namespace volumed
