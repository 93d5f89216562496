// The rows of csi-driver: what is on the disks of nodes can be read for ever.
#include "csi/csi_driver_record.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace volumed {
namespace {

CsiDriverRecord Full() {
  CsiDriverRecord record;
  record.facts.name = "disk.example.com";
  record.facts.endpoint = "/k/plugins/disk/csi.sock";
  record.facts.controller_endpoint = "/k/plugins/disk/ctl.sock";
  record.facts.version = "1.0.0";
  record.facts.vendor_version = "2.1";
  record.facts.node_id = "node-a";
  record.facts.plugin_capabilities = {1, 2};
  record.facts.expansion = {1};
  record.facts.node_capabilities = {1, 2, 3};
  record.facts.controller_capabilities = {1, 2, 9, 99};
  record.facts.topology = {{"example.com/rack", "r1"}, {"example.com/zone", "z1"}};
  record.facts.max_volumes = 16;
  record.socket = "/k/plugins_registry/disk-reg.sock";
  record.last_ready_unix_ms = 1'767'323'045'678;
  return record;
}

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 0xf]};
  }
  return text;
}

TEST(CsiDriverRecordTest, ARowGivesBackWhatWasWritten) {
  CsiDriverRecord smallest;
  smallest.facts.name = "a";
  for (const CsiDriverRecord& record : {Full(), smallest}) {
    const Result<CsiDriverRecord> read = DecodeCsiDriverRecord(EncodeRecord(record));
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    EXPECT_EQ(*read, record);
  }
}

TEST(CsiDriverRecordTest, TheBytesAreThoseOfTheFirstProgramThatWroteThem) {
  const Record row = EncodeRecord(Full());
  EXPECT_EQ(row.kind, "csi-driver");
  EXPECT_EQ(row.key, "disk.example.com");
  EXPECT_EQ(row.version, 1u);
  // The fields in the order of their numbers; 13 is not used.
  EXPECT_EQ(Hex(row.bytes),
            "0a106469736b2e6578616d706c652e636f6d"
            "12182f6b2f706c7567696e732f6469736b2f6373692e736f636b"
            "1a212f6b2f706c7567696e735f72656769737472792f6469736b2d7265672e736f636b"
            "22066e6f64652d61"
            "2a03322e31"
            "32020102"
            "3a03010203"
            "420401020963"
            "4a160a106578616d706c652e636f6d2f7261636b12027231"
            "4a160a106578616d706c652e636f6d2f7a6f6e6512027a31"
            "5010"
            "58ae9ea6e5b733"
            "62182f6b2f706c7567696e732f6469736b2f63746c2e736f636b"
            "720101"
            "7a05312e302e30");
}

TEST(CsiDriverRecordTest, ARowOfAnotherKeyOrWithoutANameIsNotRead) {
  Record row = EncodeRecord(Full());
  row.key = "other.example.com";
  const Result<CsiDriverRecord> other = DecodeCsiDriverRecord(row);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kDataLoss);
  row = EncodeRecord(CsiDriverRecord());
  EXPECT_FALSE(DecodeCsiDriverRecord(row).ok());
}

TEST(CsiDriverRecordTest, ARowOfALaterVersionIsLeftAlone) {
  Record row = EncodeRecord(Full());
  row.version = 2;
  const Result<CsiDriverRecord> read = DecodeCsiDriverRecord(row);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace volumed
