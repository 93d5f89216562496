// Drivers that are not there, break off, hang, and come back.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "unit/csi/channel_fixture.h"

namespace volumed {
namespace {

class CsiChannelConnectionTest : public CsiChannelFixture {
 protected:
  // A mutating call fails for want of a connection.
  void ExpectNeverSent() {
    const auto staged = CallStage();
    ASSERT_FALSE(staged.ok());
    EXPECT_EQ(staged.error().code(), Code::kUnavailable) << staged.error().ToString();
    EXPECT_FALSE(staged.error().maybe_applied()) << staged.error().ToString();
    EXPECT_EQ(CsiRepeatOf(staged.error()), CsiRepeat::kAtOnce);
    EXPECT_FALSE(reports_.all().back().sent);
  }
};

TEST_F(CsiChannelConnectionTest, WithoutASocketFileNothingIsApplied) {
  Connect();
  ExpectNeverSent();
  EXPECT_NE(CallStage().error().message().find("no connection: unix:" + options_.socket +
                                               ": No such file or directory"),
            std::string::npos)
      << CallStage().error().message();
}

TEST_F(CsiChannelConnectionTest, WhereNobodyListensNothingIsApplied) {
  {
    const RawServer gone(options_.socket, [](int) {});
  }
  ASSERT_TRUE(std::filesystem::exists(options_.socket));
  Connect();
  ExpectNeverSent();
  ExpectNeverSent();
}

TEST_F(CsiChannelConnectionTest, AConnectionThatEndsBeforeItBeganAppliesNothing) {
  const RawServer server(options_.socket, [](int) {});
  Connect();
  ExpectNeverSent();
}

TEST_F(CsiChannelConnectionTest, AConnectionThatIsClosedAsSoonAsItIsThereKeepsNoCallWaiting) {
  std::atomic<int> accepted = 0;
  const RawServer server(options_.socket, [&accepted](int connection) {
    ++accepted;
    RawServer::SendSettings(connection);
  });
  Connect();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(CallStage().ok());
  // Nor does it keep a processor busy.
  const int before = accepted;
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_LT(accepted - before, 20);
}

TEST_F(CsiChannelConnectionTest, AListenerThatDoesNotSpeakHttpAppliesNothing) {
  const RawServer server(options_.socket, [](int connection) {
    EXPECT_GT(::write(connection, "220 mail.example.com ESMTP\r\n", 28), 0);
  });
  Connect();
  ExpectNeverSent();
}

TEST_F(CsiChannelConnectionTest, AListenerThatSaysNothingIsGivenUpAndTheCallWasNotSent) {
  options_.connection.handshake = std::chrono::milliseconds(100);
  RawServer server(options_.socket, [&server](int connection) { server.ReadOn(connection); });
  Connect();
  ExpectNeverSent();
}

TEST_F(CsiChannelConnectionTest, ACallWhoseTimeIsOverBeforeThereIsAConnectionWasNotSent) {
  RawServer server(options_.socket, [&server](int connection) { server.ReadOn(connection); });
  Connect();
  const BegunCall call(*channel_, Stage(), In(std::chrono::milliseconds(100)));
  ASSERT_TRUE(call.ended());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_EQ(call.answer().error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(call.answer().error().maybe_applied());
}

TEST_F(CsiChannelConnectionTest, AConnectionThatBreaksAfterTheRequestMayHaveApplied) {
  RawServer server(options_.socket, [&server](int connection) {
    RawServer::SendSettings(connection);
    server.ReadCall(connection);
  });
  Connect();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
    const auto staged = CallStage();
    ASSERT_FALSE(staged.ok());
    EXPECT_EQ(staged.error().code(), Code::kUnavailable);
    EXPECT_TRUE(staged.error().maybe_applied()) << staged.error().ToString();
    EXPECT_EQ(CsiRepeatOf(staged.error()), CsiRepeat::kLater);
  }
}

TEST_F(CsiChannelConnectionTest, AHalfClosedConnectionMayHaveApplied) {
  RawServer server(options_.socket, [&server](int connection) {
    RawServer::SendSettings(connection);
    if (!server.ReadCall(connection)) return;
    ::shutdown(connection, SHUT_WR);
    server.ReadOn(connection);
  });
  Connect();
  const auto staged = CallStage();
  ASSERT_FALSE(staged.ok());
  EXPECT_TRUE(staged.error().maybe_applied()) << staged.error().ToString();
}

TEST_F(CsiChannelConnectionTest, ADriverThatStopsWithCallsUnderWayMayHaveAppliedThem) {
  Serve(ScriptedDriver::Hold());
  Connect();
  const BegunCall first(*channel_, Stage("vol-1"));
  const BegunCall second(*channel_, Stage("vol-2"));
  const BegunCall question(*channel_, ::csi::v1::ProbeRequest());
  ASSERT_TRUE(driver_->WaitForArrived(3));
  driver_.reset();
  for (const BegunCall* call : {&first, &second, &question}) {
    ASSERT_TRUE(call->ended());
    ASSERT_FALSE(call->answer().ok());
    EXPECT_EQ(call->answer().error().maybe_applied(), call != &question);
  }
}

TEST_F(CsiChannelConnectionTest, ADriverThatIsBackAtItsPathIsUsedWithoutBeingTold) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
    EXPECT_TRUE(CallStage().ok());
    driver_.reset();
    ASSERT_TRUE(WaitForState(CsiConnectionState::kTransientFailure));
    ExpectNeverSent();
    Serve(ScriptedDriver::Always({}));
  }
  EXPECT_TRUE(WaitForState(CsiConnectionState::kReady));
}

TEST_F(CsiChannelConnectionTest, OneThatSaysThatItIsBackIsDialledAtOnce) {
  options_.connection.retry_after = std::chrono::hours(1);
  Connect();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kTransientFailure));
  Serve(ScriptedDriver::Always({}));
  channel_->Reconnect();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
  EXPECT_TRUE(CallStage().ok());
}

TEST_F(CsiChannelConnectionTest, AfterAReconnectNewCallsTakeTheNewSocketAndOldOnesEndAtTheOldOne) {
  Serve(ScriptedDriver::Hold());
  Connect();
  const BegunCall old_call(*channel_, Stage("old"));
  ASSERT_TRUE(driver_->WaitForArrived(1));
  // The old process goes on with its calls, and its connection is still good.
  const std::string moved = directory_.Socket("moved.sock");
  std::filesystem::rename(options_.socket, moved);
  ScriptedDriver successor(options_.socket, ScriptedDriver::Always({}));
  channel_->Reconnect();
  EXPECT_TRUE(CallStage("new").ok());
  EXPECT_EQ(successor.requests().size(), 1u);
  EXPECT_FALSE(old_call.has_ended_now());
  ASSERT_TRUE(driver_->Release());
  ASSERT_TRUE(old_call.ended());
  EXPECT_TRUE(old_call.answer().ok());
  EXPECT_EQ(driver_->requests().size(), 1u);
}

TEST_F(CsiChannelConnectionTest, AfterAReconnectTheOldConnectionSaysNothingOfTheState) {
  Serve(ScriptedDriver::Hold());
  Connect();
  const BegunCall old_call(*channel_, Stage("old"));
  ASSERT_TRUE(driver_->WaitForArrived(1));
  std::filesystem::rename(options_.socket, directory_.Socket("moved.sock"));
  const ScriptedDriver successor(options_.socket, ScriptedDriver::Always({}));
  channel_->Reconnect();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
  const TimePoint since = channel_->connection().since;
  driver_.reset();
  ASSERT_TRUE(old_call.ended());
  // Time enough for what must not come.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(channel_->connection().state, CsiConnectionState::kReady);
  EXPECT_EQ(channel_->connection().since, since);
}

TEST_F(CsiChannelConnectionTest, TheStateIsKnownWithoutACallAndSinceWhen) {
  const TimePoint before = clock_.Now();
  Connect();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kTransientFailure));
  const TimePoint failed = channel_->connection().since;
  EXPECT_GE(failed, before);
  Serve(ScriptedDriver::Always({}));
  ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
  EXPECT_GT(channel_->connection().since, failed);
  driver_.reset();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kTransientFailure));
}

TEST_F(CsiChannelConnectionTest, ReconnectsBesideCallsHarmNone) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  std::vector<std::unique_ptr<BegunCall>> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(std::make_unique<BegunCall>(*channel_, Stage()));
    channel_->Reconnect();
  }
  for (const auto& call : calls) {
    ASSERT_TRUE(call->ended());
    EXPECT_TRUE(call->answer().ok()) << call->answer().error().ToString();
  }
}

TEST_F(CsiChannelConnectionTest, DestructionWaitsForNoConnection) {
  RawServer server(options_.socket, [&server](int connection) { server.ReadOn(connection); });
  Connect();
  const BegunCall call(*channel_, Stage());
  channel_.reset();
  ASSERT_TRUE(call.has_ended_now());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_FALSE(call.answer().error().maybe_applied());
}

TEST_F(CsiChannelConnectionTest, EachStateHasAName) {
  EXPECT_EQ(CsiConnectionStateName(CsiConnectionState::kTransientFailure), "transient failure");
  EXPECT_EQ(CsiConnectionStateName(CsiConnectionState::kReady), "ready");
}

}  // namespace
}  // namespace volumed
