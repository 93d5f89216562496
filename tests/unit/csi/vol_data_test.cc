#include "csi/vol_data.h"

#include <gtest/gtest.h>

#include "csi/csi_capabilities.h"
#include "csi/go_json.h"

namespace volumed {
namespace {

// The expected bytes are those of Go 1.26's encoder.
TEST(VolDataTest, IsWrittenAsAKubeletWritesIt) {
  EXPECT_EQ(FormatVolData({}), "{}\n");
  EXPECT_EQ(FormatVolData({{"volumeHandle", "vol-1"}, {"driverName", "d"}}),
            "{\"driverName\":\"d\",\"volumeHandle\":\"vol-1\"}\n");
  EXPECT_EQ(FormatVolData({{"volumeHandle",
                            "a<b>&c\"\\\b\f\n\r\t\x01\x7f\xe2\x80\xa8\xe2\x80\xa9\xc3\xbc\xff/"},
                           {"driverName", "d"},
                           {"", "x"}}),
            "{\"\":\"x\",\"driverName\":\"d\",\"volumeHandle\":\"a\\u003cb\\u003e\\u0026c\\\"\\\\"
            "\\b\\f\\n\\r\\t\\u0001\x7f\\u2028\\u2029\xc3\xbc\\ufffd/\"}\n");
}

TEST(VolDataTest, WhatIsWrittenIsReadBack) {
  const StringMap data = {{"volumeHandle", "a<b>&\"\\\n\x01\xc3\xbc"}, {"other", ""}, {"", "x"}};
  const auto read = ParseVolData(FormatVolData(data));
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(*read, data);
}

TEST(VolDataTest, IsReadAsLenientlyAsAKubeletReadsIt) {
  const struct {
    const char* text;
    StringMap expected;
  } cases[] = {
      {"{}", {}},
      {" \n{ \"a\" : \"b\" }\n", {{"a", "b"}}},
      {"{\"unknown\":\"kept\",\"driverName\":\"d\"}", {{"unknown", "kept"}, {"driverName", "d"}}},
      {"{\"a\":null}", {{"a", ""}}},
      {"{\"a\":\"b\"}garbage", {{"a", "b"}}},
      {"{\"a\":\"b\",\"a\":\"c\"}", {{"a", "c"}}},
      {"{\"a\":\"\\u003c\\u00fc\"}", {{"a", "<\xc3\xbc"}}},
  };
  for (const auto& c : cases) {
    const auto read = ParseVolData(c.text);
    ASSERT_TRUE(read.ok()) << c.text << ": " << read.error().ToString();
    EXPECT_EQ(*read, c.expected) << c.text;
  }
}

TEST(VolDataTest, ATextThatIsNoObjectOfTextsIsLost) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{\"a\":\"b\""), std::string("[]"),
        std::string("\"x\""), std::string("null"), std::string("7"), std::string("{\"a\":1}"),
        std::string("{\"a\":true}"), std::string("{\"a\":1e999}"), std::string("{\"a\":{}}"),
        std::string("{\"a\":[\"b\"]}"), std::string("{\"a\":\"\xff\"}"), std::string("\0\0", 2),
        std::string(100000, '['), std::string(60000, '{')}) {
    const auto read = ParseVolData(text);
    ASSERT_FALSE(read.ok()) << text.substr(0, 40);
    EXPECT_EQ(read.error().code(), Code::kDataLoss);
    EXPECT_EQ(read.error().outcome(), Outcome::kNotApplied);
  }
}

TEST(VolDataTest, AFileBeyondTheLimitIsNotRead) {
  const std::string begin = "{\"a\":\"";
  const std::string end = "\"}";
  const std::string filling(kVolDataLimit - begin.size() - end.size(), 'x');
  std::string text = begin;
  text.append(filling).append(end);
  EXPECT_TRUE(ParseVolData(text).ok());
  const auto larger = ParseVolData(text + "\n");
  ASSERT_FALSE(larger.ok());
  EXPECT_EQ(larger.error().code(), Code::kDataLoss);
}

TEST(VolDataTest, SaysWhichVolumeItIs) {
  EXPECT_EQ(VolumeIdOf({{"driverName", "d"}, {"volumeHandle", "h"}}), (CsiVolumeId{"d", "h"}));
  EXPECT_EQ(VolumeIdOf({{"driverName", "d"}}), std::nullopt);
  EXPECT_EQ(VolumeIdOf({{"driverName", ""}, {"volumeHandle", "h"}}), std::nullopt);
  EXPECT_EQ(VolumeIdOf({}), std::nullopt);
  EXPECT_EQ(VolDataOf({{"a", "b"}}, "a"), "b");
  EXPECT_EQ(VolDataOf({{"a", "b"}}, "c"), "");
}

// reference: kubelet's keys per place.
TEST(VolDataTest, HasTheKeysThatAKubeletPutsIntoIt) {
  CsiVolume volume;
  volume.driver = "disk.example.com";
  volume.handle = "vol-1";
  const SpecName spec("pv-1");
  const NodeName node("node-1");
  const std::string attachment =
      "csi-19c42f43d69fa1f381555c6802be2757a07267e9705a867fd59297bc87dd0694";
  const StringMap staged = {{"driverName", "disk.example.com"}, {"volumeHandle", "vol-1"}};
  EXPECT_EQ(StageVolData(volume, ""), staged);
  StringMap labelled = staged;
  labelled["seLinuxMountContext"] = "a:b:c:d";
  EXPECT_EQ(StageVolData(volume, "a:b:c:d"), labelled);

  const StringMap block = {{"specVolID", "pv-1"},
                           {"volumeHandle", "vol-1"},
                           {"driverName", "disk.example.com"},
                           {"nodeName", "node-1"},
                           {"attachmentID", attachment}};
  EXPECT_EQ(BlockVolData(volume, spec, node), block);
  StringMap published = block;
  published["volumeLifecycleMode"] = "Persistent";
  EXPECT_EQ(PublishVolData(volume, spec, node, ""), published);
  published["seLinuxMountContext"] = "a:b:c:d";
  published["volumeLifecycleMode"] = "Ephemeral";
  volume.mode = VolumeLifecycleMode::kEphemeral;
  EXPECT_EQ(PublishVolData(volume, spec, node, "a:b:c:d"), published);
}

}  // namespace
}  // namespace volumed
