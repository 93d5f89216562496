// RPCs that answer by a stream: how much of it is read, and what becomes of one that fails, hangs,
// or is of no use any more.
#include "csi/rpc/csi_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csi/rpc/csi_json.h"
#include "unit/csi/channel_fixture.h"

namespace volumed {
namespace {

class CsiStreamTest : public CsiChannelFixture {
 protected:
  using Request = ::csi::v1::GetMetadataAllocatedRequest;
  using Response = ::csi::v1::GetMetadataAllocatedResponse;

  // A message with one range.
  static std::string Range(int64_t offset) {
    Response response;
    response.set_volume_capacity_bytes(1 << 20);
    auto& block = *response.add_block_metadata();
    block.set_byte_offset(offset);
    block.set_size_bytes(4096);
    return response.SerializeAsString();
  }
  // The message, and the same once more.
  static ScriptedAnswer Twice(const std::string& message) {
    ScriptedAnswer answer;
    answer.bytes = message;
    answer.twice = true;
    return answer;
  }
  void ServeAndConnect(ScriptedDriver::Script script) {
    Serve(std::move(script));
    Connect();
  }
  CsiCallOptions WithStream(Duration timeout = std::chrono::seconds(20)) {
    CsiCallOptions options = In(timeout);
    options.stream = stream_;
    return options;
  }
  Result<Response> Read() { return channel_->Call<Response>(Request(), WithStream()); }

  const std::shared_ptr<CsiStream> stream_ = std::make_shared<CsiStream>();
};

TEST_F(CsiStreamTest, AStreamIsReadToItsEndAndIsOneAnswer) {
  ServeAndConnect(ScriptedDriver::Always(Twice(Range(8192))));
  stream_->most_messages = 2;
  const Result<Response> answer = Read();
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  ASSERT_EQ(answer->block_metadata_size(), 2);
  EXPECT_EQ(answer->block_metadata(1).byte_offset(), 8192);
  EXPECT_EQ(answer->volume_capacity_bytes(), 1 << 20);
  EXPECT_EQ(stream_->messages, 2);
  EXPECT_FALSE(stream_->is_cut) << "it has no more than may be read";
}

TEST_F(CsiStreamTest, AStreamThatIsLongerThanItsBoundIsCutAndSaysSo) {
  ServeAndConnect(ScriptedDriver::Always(Twice(Range(0))));
  stream_->most_messages = 1;
  const Result<Response> answer = Read();
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->block_metadata_size(), 1);
  EXPECT_TRUE(stream_->is_cut);
  const std::vector<CsiCallReport> reports = reports_.all();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_FALSE(reports[0].error) << "that it was cut is no failure";
}

TEST_F(CsiStreamTest, TheBytesOfAStreamHaveABoundTooAndItsFirstMessageIsRead) {
  ServeAndConnect(ScriptedDriver::Always(Twice(Range(0))));
  stream_->most_bytes = 1;
  const Result<Response> answer = Read();
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->block_metadata_size(), 1);
  EXPECT_TRUE(stream_->is_cut);
}

TEST_F(CsiStreamTest, AStreamWithoutAMessageIsAnEmptyAnswer) {
  ScriptedAnswer nothing;
  nothing.no_message = true;
  ServeAndConnect(ScriptedDriver::Always(nothing));
  const Result<Response> answer = Read();
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->block_metadata_size(), 0);
  EXPECT_EQ(stream_->messages, 0);
  EXPECT_FALSE(stream_->is_cut);
}

TEST_F(CsiStreamTest, WhatTheDriverSaysAtTheEndCounts) {
  ServeAndConnect(
      ScriptedDriver::Always({grpc::Status(grpc::StatusCode::NOT_FOUND, "no such snapshot")}));
  const Result<Response> answer = Read();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kNotFound);
  EXPECT_FALSE(answer.error().maybe_applied());
}

TEST_F(CsiStreamTest, BytesThatAreNoMessageAreNoAnswer) {
  ServeAndConnect(ScriptedDriver::Always(Twice("\xff\xff\xff")));
  const Result<Response> answer = Read();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kInternal);
}

TEST_F(CsiStreamTest, AStreamThatHangsEndsWithItsDeadline) {
  ServeAndConnect(ScriptedDriver::Hold());
  const BegunCall call(*channel_, Request(), WithStream(std::chrono::milliseconds(200)));
  ASSERT_TRUE(driver_->WaitForArrived(1));
  ASSERT_TRUE(call.ended());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_EQ(call.answer().error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(driver_->WaitForCancelled(1));
}

TEST_F(CsiStreamTest, TheEndOfTheChannelEndsAStreamThatHangs) {
  ServeAndConnect(ScriptedDriver::Hold());
  const BegunCall call(*channel_, Request(), WithStream());
  ASSERT_TRUE(driver_->WaitForArrived(1));
  channel_.reset();
  ASSERT_TRUE(call.ended());
  EXPECT_EQ(call.answer().error().code(), Code::kCancelled);
}

TEST_F(CsiStreamTest, ByHandTheAnswerSaysHowMuchOfTheStreamItIs) {
  ServeAndConnect(ScriptedDriver::Always(Twice(Range(0))));
  const Result<std::string> whole =
      CallCsiByName(*channel_, "GetMetadataAllocated", R"({"snapshot_id": "s"})", {});
  ASSERT_TRUE(whole.ok()) << whole.error().ToString();
  EXPECT_THAT(*whole, testing::StartsWith(R"({"cut":false,"messages":2,"answer":{)"));
  stream_->most_messages = 1;
  const Result<std::string> cut =
      CallCsiByName(*channel_, "GetMetadataAllocated", "", WithStream());
  ASSERT_TRUE(cut.ok()) << cut.error().ToString();
  EXPECT_THAT(*cut, testing::StartsWith(R"({"cut":true,"messages":1,"answer":{)"));
}

}  // namespace
}  // namespace volumed
