#include "plugins/flex_volume_status.h"

#include <gtest/gtest.h>

#include <string>

namespace volumed {
namespace {

FlexStatus Parsed(const std::string& output) {
  const Result<FlexStatus> status = ParseFlexStatus(output);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().ToString());
  return status.ok() ? *status : FlexStatus{};
}

std::string WhyNot(const std::string& output) {
  const Result<FlexStatus> status = ParseFlexStatus(output);
  EXPECT_FALSE(status.ok());
  return status.ok() ? "" : status.error().message();
}

TEST(FlexVolumeStatusTest, WhatIsNotSaidIsKubeletsDefault) {
  const FlexStatus status = Parsed("{\"status\": \"Success\"}\n");
  EXPECT_EQ(status.outcome, FlexOutcome::kSuccess);
  EXPECT_TRUE(status.capabilities.attach);
  EXPECT_TRUE(status.capabilities.selinux_relabel);
  EXPECT_FALSE(status.capabilities.supports_metrics);
  EXPECT_TRUE(status.capabilities.fs_group);
  EXPECT_TRUE(status.capabilities.requires_fs_resize);
}

TEST(FlexVolumeStatusTest, EachFieldIsTaken) {
  const FlexStatus status = Parsed(
      R"({"status":"Success","message":"m","device":"/dev/sdx","volumeName":"v","attached":true,)"
      R"("volumeNewSize":1073741824,"capabilities":{"attach":false,"fsGroup":false,)"
      R"("supportsMetrics":true,"selinuxRelabel":false,"requiresFSResize":false},"other":[1]})");
  EXPECT_EQ(status.message, "m");
  EXPECT_EQ(status.device, "/dev/sdx");
  EXPECT_EQ(status.volume_name, "v");
  EXPECT_TRUE(status.attached);
  EXPECT_EQ(status.new_size_bytes, 1073741824);
  EXPECT_EQ(status.capabilities, (FlexCapabilities{false, false, true, false, false}));
}

TEST(FlexVolumeStatusTest, KeysAreTakenInAnyCaseAsGoDoes) {
  const FlexStatus status =
      Parsed(R"({"Status":"Success","Capabilities":{"ATTACH":false},"Device":"/dev/a"})");
  EXPECT_EQ(status.outcome, FlexOutcome::kSuccess);
  EXPECT_FALSE(status.capabilities.attach);
  EXPECT_TRUE(status.capabilities.fs_group);
  EXPECT_EQ(status.device, "/dev/a");
}

TEST(FlexVolumeStatusTest, NullIsNothing) {
  const FlexStatus status =
      Parsed(R"({"status":"Success","capabilities":null,"device":null,"attached":null})");
  EXPECT_TRUE(status.capabilities.attach);
  EXPECT_EQ(status.device, "");
}

TEST(FlexVolumeStatusTest, AnyOtherStatusIsAFailure) {
  EXPECT_EQ(Parsed(R"({"status":"Not supported"})").outcome, FlexOutcome::kNotSupported);
  EXPECT_EQ(Parsed(R"({"status":"Failure"})").outcome, FlexOutcome::kFailure);
  EXPECT_EQ(Parsed(R"({"status":"success"})").outcome, FlexOutcome::kFailure);
  EXPECT_EQ(Parsed("{}").outcome, FlexOutcome::kFailure);
}

TEST(FlexVolumeStatusTest, WhatIsNoStatusIsNamedAndNotRepeated) {
  EXPECT_EQ(WhyNot(""), "it printed nothing");
  EXPECT_EQ(WhyNot(" \n"), "it printed nothing");
  EXPECT_EQ(WhyNot("password=x"), "what it printed (10 bytes) is no JSON object");
  EXPECT_EQ(WhyNot("[1]"), "what it printed (3 bytes) is no JSON object");
  EXPECT_EQ(WhyNot("warning\n{\"status\":\"Success\"}"),
            "what it printed (28 bytes) is no JSON object");
  EXPECT_EQ(WhyNot(R"({"status":"Success","attached":"yes"})"),
            "in the JSON that it printed, \"attached\" is not true or false");
  EXPECT_EQ(WhyNot(R"({"status":7})"), "in the JSON that it printed, \"status\" is not text");
  EXPECT_EQ(WhyNot(R"({"status":"Success","capabilities":{"attach":1}})"),
            "in the JSON that it printed, \"attach\" is not true or false");
}

TEST(FlexVolumeStatusTest, ASizeThatNoNumberHoldsIsNotTakenForANegativeOne) {
  EXPECT_EQ(Parsed(R"({"status":"Success","volumeNewSize":9223372036854775807})").new_size_bytes,
            INT64_MAX);
  for (const char* size : {"9223372036854775808", "18446744073709551615"}) {
    EXPECT_EQ(WhyNot(R"({"status":"Success","volumeNewSize":)" + std::string(size) + "}"),
              "in the JSON that it printed, \"volumeNewSize\" is beyond 2^63-1");
  }
}

}  // namespace
}  // namespace volumed
