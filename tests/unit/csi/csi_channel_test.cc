// Calls to a driver that answers: what comes back, what is told of it, and what never is.
#include "csi/rpc/csi_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/printable_text.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_trace.h"
#include "unit/csi/canary_messages.h"
#include "unit/csi/channel_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;

class CsiChannelTest : public CsiChannelFixture {};

ScriptedAnswer Failure(StatusCode code, const std::string& message = "m",
                       const std::string& details = "") {
  return {grpc::Status(code, message, details)};
}

TEST_F(CsiChannelTest, AnAnswerComesBackAsItsType) {
  ::csi::v1::NodeGetInfoResponse info;
  info.set_node_id("node-1");
  Serve(ScriptedDriver::Always({.bytes = info.SerializeAsString()}));
  Connect();
  const auto answer =
      channel_->Call<::csi::v1::NodeGetInfoResponse>(::csi::v1::NodeGetInfoRequest(), {});
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->node_id(), "node-1");
  EXPECT_EQ(driver_->method(0), "/csi.v1.Node/NodeGetInfo");
}

TEST_F(CsiChannelTest, TheDriverGetsTheRequestAsItWas) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  ASSERT_TRUE(CallStage("vol-7").ok());
  EXPECT_EQ(driver_->requests(), (std::vector<std::string>{Stage("vol-7").SerializeAsString()}));
}

TEST_F(CsiChannelTest, EveryCodeOfTheDriverHasTheOutcomeOfTheTable) {
  Serve([](int number) { return Failure(static_cast<StatusCode>(number / 2 + 1)); });
  Connect();
  for (int code = 1; code <= 16; ++code) {
    const auto staged = CallStage();
    ASSERT_FALSE(staged.ok());
    EXPECT_EQ(staged.error().code(), static_cast<Code>(code));
    EXPECT_EQ(staged.error().outcome(), CsiOutcome(CsiRpcKind::kMutating, static_cast<Code>(code)));
    EXPECT_FALSE(staged.error().IsAbout(kCsiNeverSent));
    const auto probed = CallProbe();
    ASSERT_FALSE(probed.ok());
    EXPECT_EQ(probed.error().outcome(), Outcome::kNotApplied);
  }
}

TEST_F(CsiChannelTest, ADriverThatPassesOnAFailedConnectionOfItsOwnHasSeenTheCall) {
  Serve(ScriptedDriver::Always(
      Failure(StatusCode::UNAVAILABLE,
              "failed to connect to all addresses; last error: UNKNOWN: unix:/x: refused")));
  Connect();
  const auto staged = CallStage();
  ASSERT_FALSE(staged.ok());
  EXPECT_TRUE(staged.error().maybe_applied());
  EXPECT_FALSE(staged.error().IsAbout(kCsiNeverSent));
}

TEST_F(CsiChannelTest, DetailsAndAMessageThatIsNoUtf8DoNoHarm) {
  Serve(ScriptedDriver::Always(
      Failure(StatusCode::INVALID_ARGUMENT, "bad \xff\xfe name\n", std::string(300, '\xee'))));
  Connect();
  const auto staged = CallStage();
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().message(),
            "test.csi: NodeStageVolume: InvalidArgument: bad \\xff\\xfe name");
}

TEST_F(CsiChannelTest, ALongReasonKeepsTheCodeOfItsFailure) {
  Serve(ScriptedDriver::Always(Failure(StatusCode::INVALID_ARGUMENT, std::string(40'000, 'x'))));
  Connect();
  const auto staged = CallStage();
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(staged.error().maybe_applied());
  EXPECT_LE(staged.error().message().size(), 2200u);
}

TEST_F(CsiChannelTest, AnAnswerOverTheLimitIsAFailureThatMayHaveBeenApplied) {
  options_.connection.most_received_bytes = 10'000;
  ::csi::v1::ControllerPublishVolumeResponse published;
  (*published.mutable_publish_context())["k"] = std::string(20'000, 'x');
  Serve([&](int number) {
    return ScriptedAnswer{.bytes = number == 0 ? published.SerializeAsString() : std::string()};
  });
  Connect();
  const auto answer = channel_->Call<::csi::v1::ControllerPublishVolumeResponse>(
      ::csi::v1::ControllerPublishVolumeRequest(), {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(answer.error().maybe_applied());
  EXPECT_TRUE(CallProbe().ok()) << "the connection is still good";
}

TEST_F(CsiChannelTest, AnAnswerThatIsNoneMayHaveBeenAppliedAndAnEmptyOneIsAnAnswer) {
  Serve([](int number) {
    if (number == 0) return ScriptedAnswer{.bytes = "\xff\xff\xff"};
    if (number == 1) return ScriptedAnswer{.no_message = true};
    return ScriptedAnswer{};
  });
  Connect();
  for (int i = 0; i < 2; ++i) {
    const auto staged = CallStage();
    ASSERT_FALSE(staged.ok()) << i;
    EXPECT_TRUE(staged.error().maybe_applied()) << staged.error().ToString();
  }
  EXPECT_TRUE(CallStage().ok());
}

TEST_F(CsiChannelTest, ARequestThatIsTooLargeIsNotSent) {
  options_.most_sent_bytes = 1000;
  Serve(ScriptedDriver::Always({}));
  Connect();
  const auto staged = CallStage(std::string(2000, 'x'));
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(staged.error().maybe_applied());
  EXPECT_TRUE(staged.error().IsAbout(kCsiNeverSent));
  EXPECT_EQ(driver_->requests().size(), 0u);
}

TEST_F(CsiChannelTest, AnRpcWithAStreamIsRefusedInWordsWhereNobodyReadsOne) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  const auto answer = channel_->Perform(::csi::v1::GetMetadataAllocatedRequest(), {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message(),
            "test.csi: GetMetadataAllocated: Unimplemented: its answer is a stream, which is not "
            "read here");
  EXPECT_EQ(CsiRepeatOf(answer.error()), CsiRepeat::kNever);
  EXPECT_EQ(driver_->requests().size(), 0u);
}

TEST_F(CsiChannelTest, AMessageThatIsNoRequestOrHasAnotherAnswerIsRefused) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  const auto none = channel_->Perform(::csi::v1::ProbeResponse(), {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kInvalidArgument);
  const auto other = channel_->Call<::csi::v1::NodeGetInfoResponse>(Stage(), {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(other.error().maybe_applied());
  EXPECT_EQ(driver_->requests().size(), 0u);
}

TEST_F(CsiChannelTest, EachCallIsReportedOnceBeforeItsAnswer) {
  Serve([](int number) {
    return number == 0 ? ScriptedAnswer{} : Failure(StatusCode::NOT_FOUND, "gone");
  });
  Connect();
  ASSERT_TRUE(CallStage("vol-1").ok());
  ASSERT_FALSE(CallStage("vol-2").ok());
  const std::vector<CsiCallReport> reports = reports_.all();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].driver, "test.csi");
  EXPECT_EQ(reports[0].method->name, "NodeStageVolume");
  EXPECT_EQ(reports[0].key, "vol-1");
  EXPECT_EQ(reports[0].request, "{\"volume_id\":\"vol-1\"}");
  EXPECT_EQ(reports[0].answer, "{}");
  EXPECT_TRUE(reports[0].sent);
  EXPECT_FALSE(reports[0].error);
  ASSERT_TRUE(reports[1].error);
  EXPECT_EQ(reports[1].error->code(), Code::kNotFound);
  EXPECT_GT(reports[1].duration, Duration::zero());
}

TEST_F(CsiChannelTest, ACallThatTheDriverHoldsIsInTheTraceWithoutItsSecrets) {
  CsiTrace trace(clock_);
  options_.observers.push_back(&trace);
  Serve(ScriptedDriver::Hold());
  Connect();
  ::csi::v1::NodeStageVolumeRequest stage = Stage();
  (*stage.mutable_secrets())["password"] = "hunter2";
  const BegunCall held(*channel_, stage);
  ASSERT_TRUE(driver_->WaitForArrived(1));
  std::vector<CsiCallReport> calls = trace.Of("test.csi");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_TRUE(calls[0].under_way);
  EXPECT_TRUE(calls[0].sent);
  EXPECT_EQ(calls[0].key, "vol-1");
  EXPECT_EQ(calls[0].request.find("hunter2"), std::string::npos) << calls[0].request;
  ASSERT_TRUE(driver_->Release());
  ASSERT_TRUE(held.ended());
  calls = trace.Of("test.csi");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls[0].under_way);
}

TEST_F(CsiChannelTest, NoSecretOfAnyRequestIsInErrorReportOrTrace) {
  CsiTrace trace(clock_);
  options_.observers.push_back(&trace);
  struct Call {
    const CsiMethod* method;
    std::string said;
  };
  std::vector<Call> calls;
  for (const CsiMethod& method : CsiMethods()) {
    calls.push_back({&method, "nothing"});
    for (const std::string& canary : CanaryMessageOf(*method.request).canaries) {
      for (const std::string& spelling : CanarySpellings(canary)) {
        calls.push_back({&method, "<" + spelling + ">"});
      }
    }
  }
  ASSERT_GT(calls.size(), 150u);
  Serve([&calls](int number) {
    const std::string& said = calls[static_cast<size_t>(number)].said;
    return Failure(StatusCode::INTERNAL, "failed: " + said, said);
  });
  Connect();
  for (const Call& call : calls) {
    const auto answer = channel_->Perform(*CanaryMessageOf(*call.method->request).message,
                                          WithStreamOf(*call.method, {}));
    ASSERT_FALSE(answer.ok());
    const std::string shown = call.said == "nothing" ? "nothing" : "<***stripped***>";
    EXPECT_THAT(answer.error().message(), testing::EndsWith(": failed: " + shown)) << call.said;
  }
  const std::vector<CsiCallReport> traced = trace.Of("test.csi");
  ASSERT_GT(traced.size(), 100u);
  for (const CsiCallReport& report : traced) {
    EXPECT_EQ(report.request.find("CANARY"), std::string::npos) << report.request;
    EXPECT_EQ(report.error->ToString().find("CANARY"), std::string::npos) << report.method->name;
  }
}

TEST_F(CsiChannelTest, ASecretOfAnEarlierCallIsInNoErrorReportOrTraceOfALaterOne) {
  CsiTrace trace(clock_);
  options_.observers.push_back(&trace);
  ::csi::v1::NodeGetInfoResponse info;
  info.set_node_id("node-of-hunter2");
  Serve([&info](int number) {
    if (number == 0) return ScriptedAnswer{};
    if (number == 1) return Failure(StatusCode::INTERNAL, R"(umount //u:hunter\u0032@nas failed)");
    return ScriptedAnswer{.bytes = info.SerializeAsString()};
  });
  Connect();
  CsiCallOptions options;
  options.secrets = std::make_shared<CsiSecretMemory>();
  ::csi::v1::NodeStageVolumeRequest stage = Stage();
  (*stage.mutable_secrets())["password"] = "hunter2";
  ASSERT_TRUE(channel_->Call<::csi::v1::NodeStageVolumeResponse>(stage, options).ok());
  ::csi::v1::NodeUnstageVolumeRequest unstage;
  unstage.set_volume_id("vol-1");
  const auto unstaged = channel_->Call<::csi::v1::NodeUnstageVolumeResponse>(unstage, options);
  ASSERT_FALSE(unstaged.ok());
  EXPECT_THAT(unstaged.error().message(),
              testing::EndsWith("umount //u:***stripped***@nas failed"));
  // What the driver answers is used as it is.
  const auto told =
      channel_->Call<::csi::v1::NodeGetInfoResponse>(::csi::v1::NodeGetInfoRequest(), options);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->node_id(), "node-of-hunter2");
  const std::vector<CsiCallReport> traced = trace.Of("test.csi");
  ASSERT_EQ(traced.size(), 3u);
  for (const CsiCallReport& report : traced) {
    EXPECT_EQ(report.answer.find("hunter"), std::string::npos) << report.answer;
    if (!report.error) continue;
    EXPECT_EQ(report.error->ToString().find("hunter"), std::string::npos);
  }
}

TEST_F(CsiChannelTest, TheReportSaysWhetherTheVolumeIsOfAReplacedSource) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  CsiCallOptions options;
  options.migrated = true;
  ASSERT_TRUE(channel_->Call<::csi::v1::NodeStageVolumeResponse>(Stage(), options).ok());
  EXPECT_TRUE(reports_.all().back().migrated);
  ASSERT_TRUE(CallStage().ok());
  EXPECT_FALSE(reports_.all().back().migrated);
}

TEST_F(CsiChannelTest, ASecretThatTheDriverHandsOnIsNotInTheReport) {
  ::csi::v1::ControllerPublishVolumeResponse published;
  (*published.mutable_publish_context())["chap"] = "hunter2";
  Serve(ScriptedDriver::Always({.bytes = published.SerializeAsString()}));
  Connect();
  ::csi::v1::ControllerPublishVolumeRequest request;
  (*request.mutable_secrets())["password"] = "hunter2";
  (*request.mutable_volume_context())["copy"] = "hunter2";
  const auto answer = channel_->Call<::csi::v1::ControllerPublishVolumeResponse>(request, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->publish_context().at("chap"), "hunter2");
  const CsiCallReport report = reports_.all().back();
  EXPECT_EQ(report.answer, "{\"publish_context\":{\"chap\":\"***stripped***\"}}");
  EXPECT_EQ(report.request.find("hunter2"), std::string::npos) << report.request;
}

TEST_F(CsiChannelTest, ARpcIsCalledByNameWithJson) {
  ::csi::v1::NodeGetInfoResponse info;
  info.set_node_id("node-1");
  Serve([&](int number) {
    return ScriptedAnswer{.bytes = number == 0 ? info.SerializeAsString() : std::string()};
  });
  Connect();
  const Result<std::string> answer = CallCsiByName(*channel_, "Node/NodeGetInfo", "", {});
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(*answer, "{\"node_id\":\"node-1\",\"max_volumes_per_node\":\"0\"}");
  ASSERT_TRUE(CallCsiByName(*channel_, "NodeStageVolume", R"({"volume_id": "vol-9"})", {}).ok());
  EXPECT_EQ(driver_->requests().back(), Stage("vol-9").SerializeAsString());
}

TEST_F(CsiChannelTest, TheJsonOfAnAnswerHadASecretOfTheDriver) {
  ::csi::v1::NodeGetInfoResponse info;
  info.set_node_id("node-hunter2");
  Serve(ScriptedDriver::Always({.bytes = info.SerializeAsString()}));
  Connect();
  CsiCallOptions options;
  options.secrets = std::make_shared<CsiSecretMemory>();
  options.secrets->Remember({"hunter2"});
  const Result<std::string> answer = CallCsiByName(*channel_, "NodeGetInfo", "", options);
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(*answer, "{\"node_id\":\"node-***stripped***\",\"max_volumes_per_node\":\"0\"}");
}

TEST_F(CsiChannelTest, JsonThatIsNoRequestIsRefusedWithoutAWordOfIt) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  const auto unknown = CallCsiByName(*channel_, "NodeMount", "{}", {});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  for (const char* json : {R"({"secrets": {"password": hunter2}})", R"({"no_field": "hunter2"})"}) {
    const auto answer = CallCsiByName(*channel_, "NodeStageVolume", json, {});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(answer.error().message().find("hunter2"), std::string::npos);
  }
  EXPECT_EQ(driver_->requests().size(), 0u);
}

TEST_F(CsiChannelTest, ASocketMayHaveAnyCharactersInItsPath) {
  options_.socket = directory_.Socket("a b#c?d%41\xc3\xa9.sock");
  RawServer server(options_.socket, [](int connection) { RawServer::SendSettings(connection); });
  Connect();
  // Whatever becomes of it, it has come to this server.
  const auto staged = CallStage();
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().message().find("No such file"), std::string::npos)
      << staged.error().message();
}

TEST_F(CsiChannelTest, APathThatNoSocketCanHaveIsRefused) {
  for (const std::string& socket : {std::string(), std::string("csi.sock"),
                                    "/" + std::string(107, 'x'), std::string("/a\0b", 4)}) {
    options_.socket = socket;
    const auto channel = CsiChannel::Create(options_, clock_, watch_);
    ASSERT_FALSE(channel.ok());
    EXPECT_EQ(channel.error().code(), Code::kInvalidArgument);
  }
  options_.socket = directory_.Socket();
  options_.width = 0;
  EXPECT_FALSE(CsiChannel::Create(options_, clock_, watch_).ok());
}

}  // namespace
}  // namespace volumed
