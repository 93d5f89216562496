// A call from its arrival to its answer, without a connection.
#include "csidriver/csi_call.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/simulated_scheduler.h"
#include "csi.pb.h"
#include "csidriver/csi_service.h"
#include "unit/csi/canary_messages.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerPublishVolumeRequest;
using ::csi::v1::CreateSnapshotRequest;
using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::NodeGetVolumeStatsRequest;
using ::csi::v1::NodeStageVolumeRequest;
using ::csi::v1::NodeUnpublishVolumeRequest;
using google::protobuf::Message;

// What a client has got.
struct Answered {
  int times = 0;
  grpc::Status status;
  std::string response;
};

// What is counted: "NodeStageVolume OK".
struct Counted final : CsiServedObserver {
  void CallAnswered(const CsiMethod& method, std::optional<Code> refused, Duration) override {
    answers.push_back(method.name + " " + (refused ? std::string(CodeName(*refused)) : "OK"));
  }
  std::vector<std::string> answers;
};

class CsiCallTest : public testing::Test {
 protected:
  static LogOptions OptionsOf(std::vector<std::string>& lines) {
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.min_level = LogLevel::kDebug;
    options.callback = [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); };
    return options;
  }

  // The request arrives, as bytes.
  std::shared_ptr<Answered> Arrive(const CsiMethod& method, const std::string& bytes) {
    auto answered = std::make_shared<Answered>();
    CsiArrival arrival;
    arrival.method = &method;
    arrival.peer = {.uid = 0, .pid = 7};
    arrival.read = [bytes](Message& message) { return message.ParseFromString(bytes); };
    arrival.answer = [answered](const grpc::Status& status, const Message& response) {
      ++answered->times;
      answered->status = status;
      answered->response = response.ShortDebugString();
    };
    calls_->Begin(row_, std::move(arrival));
    return answered;
  }
  std::shared_ptr<Answered> Arrive(const Message& request) {
    return Arrive(*CsiMethodOf(request.GetDescriptor()), request.SerializeAsString());
  }
  void Run() { scheduler_.RunUntilIdle(std::chrono::seconds(1)); }

  static NodeUnpublishVolumeRequest Unpublish(const std::string& volume) {
    NodeUnpublishVolumeRequest request;
    request.set_volume_id(volume);
    request.set_target_path("/t");
    return request;
  }
  std::string Lines() const {
    std::string all;
    for (const std::string& line : lines_) all += line + "\n";
    return all;
  }

  std::vector<std::string> lines_;
  SimulatedScheduler scheduler_{1};
  Logger log_{OptionsOf(lines_), scheduler_.clock()};
  Counted counted_;
  std::shared_ptr<CsiCalls> calls_ =
      CsiCalls::Make({scheduler_, log_, &counted_}, {.calls = 3, .rate = 1000});
  // Handled, and not answered yet.
  std::vector<std::shared_ptr<CsiCall>> held_;
  CsiRow row_{false, [this](const std::shared_ptr<CsiCall>& call) { held_.push_back(call); }};
};

TEST_F(CsiCallTest, ACallIsHandledOnTheControlThreadAndAnsweredOnce) {
  const auto answered = Arrive(Unpublish("v"));
  EXPECT_TRUE(held_.empty()) << "it was posted";
  Run();
  ASSERT_EQ(held_.size(), 1U);
  EXPECT_EQ(static_cast<const NodeUnpublishVolumeRequest&>(held_[0]->request()).volume_id(), "v");
  EXPECT_EQ(answered->times, 0);
  held_[0]->Finish(OkStatus());
  held_[0]->Finish(Error::NotApplied(Code::kInternal, "again"));
  EXPECT_EQ(answered->times, 1);
  EXPECT_TRUE(answered->status.ok());
}

TEST_F(CsiCallTest, EachAnswerIsCountedOnceWithItsCode) {
  Arrive(Unpublish("v"));
  Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 1U);
  EXPECT_EQ(calls_->under_way(), 1U);
  held_[0]->Finish(OkStatus());
  held_[0]->Finish(OkStatus());
  EXPECT_EQ(calls_->under_way(), 0U);
  EXPECT_EQ(counted_.answers,
            (std::vector<std::string>{"NodeUnpublishVolume Aborted", "NodeUnpublishVolume OK"}));
}

// Deletions of ids that are none filled the log with lines of changes.
TEST_F(CsiCallTest, ACallThatChangesNothingIsLoggedAsALook) {
  log_.SetLevel(LogLevel::kInfo);
  Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 1U);
  held_[0]->ChangesNothing();
  held_[0]->Finish(OkStatus());
  EXPECT_EQ(Lines(), "");
  Arrive(Unpublish("w"));
  Run();
  ASSERT_EQ(held_.size(), 2U);
  held_[1]->Finish(OkStatus());
  EXPECT_NE(Lines().find("about=w"), std::string::npos) << "one that may have changed something";
}

TEST_F(CsiCallTest, AnErrorOfAHandlerIsItsCallersStatus) {
  const auto answered = Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 1U);
  held_[0]->Finish(Error::MaybeApplied(Code::kInternal, "umount /t"));
  EXPECT_EQ(answered->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(answered->status.error_message().substr(0, 9), "umount /t");
  EXPECT_EQ(answered->status.error_details(), "");
}

TEST_F(CsiCallTest, WhatIsNoRequestOrBreaksARuleReachesNoHandler) {
  const CsiMethod& method = *FindCsiMethod("NodeUnpublishVolume");
  // A field that begins and does not end, and a text that is no UTF-8.
  for (const std::string& bytes : {std::string("\x0a\x50v"), std::string("\x0a\x01\xff")}) {
    const auto refused = Arrive(method, bytes);
    EXPECT_EQ(refused->status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(refused->status.error_message(),
              "the request is no NodeUnpublishVolumeRequest: it cannot be read");
  }
  const auto refused = Arrive(NodeUnpublishVolumeRequest());
  EXPECT_EQ(refused->status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused->status.error_message(), "volume_id is required");
  Run();
  EXPECT_TRUE(held_.empty());
}

TEST_F(CsiCallTest, BeforeTheRecordsAreLoadedOnlyWhatNeedsNoneIsAnswered) {
  row_.needs_records = true;
  const auto early = Arrive(Unpublish("v"));
  EXPECT_EQ(early->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(early->status.error_message().find("records"), std::string::npos);
  row_.needs_records = false;
  const auto needs_none = Arrive(Unpublish("v"));
  row_.needs_records = true;
  calls_->RecordsLoaded();
  const auto late = Arrive(Unpublish("w"));
  Run();
  ASSERT_EQ(held_.size(), 2U);
  for (const auto& call : held_) call->Finish(OkStatus());
  EXPECT_TRUE(needs_none->status.ok());
  EXPECT_TRUE(late->status.ok());
}

TEST_F(CsiCallTest, ASecondCallForAVolumeIsAbortedUntilTheFirstIsDone) {
  const auto first = Arrive(Unpublish("v"));
  NodeStageVolumeRequest stage;
  stage.set_volume_id("v");
  stage.set_staging_target_path("/s");
  stage.mutable_volume_capability()->mutable_mount();
  stage.mutable_volume_capability()->mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  const auto other_rpc = Arrive(stage);
  EXPECT_EQ(other_rpc->status.error_code(), grpc::StatusCode::ABORTED)
      << "the volume is one, whatever is done with it";
  const auto repeat = Arrive(Unpublish("v"));
  EXPECT_EQ(repeat->status.error_code(), grpc::StatusCode::ABORTED);
  const auto other_volume = Arrive(Unpublish("w"));
  Run();
  ASSERT_EQ(held_.size(), 2U);
  held_[0]->Finish(OkStatus());
  EXPECT_TRUE(first->status.ok());
  const auto again = Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 3U);
  held_[1]->Finish(OkStatus());
  held_[2]->Finish(OkStatus());
  EXPECT_TRUE(other_volume->status.ok());
  EXPECT_TRUE(again->status.ok());
}

TEST_F(CsiCallTest, ACallThatAsksHasNothingForItself) {
  NodeGetVolumeStatsRequest stats;
  stats.set_volume_id("v");
  stats.set_volume_path("/t");
  Arrive(Unpublish("v"));
  Arrive(stats);
  Arrive(stats);
  Run();
  ASSERT_EQ(held_.size(), 3U) << "the figures of a volume may be asked for at any time";
  for (const auto& call : held_) call->Finish(OkStatus());
}

TEST_F(CsiCallTest, ANameIsOfItsKind) {
  CreateVolumeRequest volume;
  volume.set_name("n");
  auto& capability = *volume.add_volume_capabilities();
  capability.mutable_block();
  capability.mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  CreateSnapshotRequest snapshot;
  snapshot.set_name("n");
  snapshot.set_source_volume_id("n");
  Arrive(volume);
  Arrive(snapshot);
  const auto second = Arrive(volume);
  EXPECT_EQ(second->status.error_code(), grpc::StatusCode::ABORTED);
  Run();
  EXPECT_EQ(held_.size(), 2U) << "a volume and a snapshot may have one name";
  for (const auto& call : held_) call->Finish(OkStatus());
}

TEST_F(CsiCallTest, ACallThatIsRefusedLeavesNothingTaken) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(Arrive(NodeUnpublishVolumeRequest())->status.ok());
  }
  const auto first = Arrive(Unpublish("v"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Arrive(Unpublish("v"))->status.error_code(), grpc::StatusCode::ABORTED);
  }
  Arrive(Unpublish("w"));
  Arrive(Unpublish("x"));
  EXPECT_EQ(Arrive(Unpublish("y"))->status.error_code(), grpc::StatusCode::UNAVAILABLE)
      << "three are the most";
  Run();
  ASSERT_EQ(held_.size(), 3U);
  for (const auto& call : held_) call->Finish(OkStatus());
  const auto next = Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 4U);
  held_[3]->Finish(OkStatus());
  EXPECT_TRUE(first->status.ok());
  EXPECT_TRUE(next->status.ok());
}

TEST_F(CsiCallTest, AServerThatStopsAnswersWhatItHasAndWhatStillComes) {
  const auto held = Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 1U);
  const auto posted = Arrive(Unpublish("w"));
  calls_->End();
  EXPECT_EQ(held->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(posted->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  Run();
  EXPECT_EQ(held_.size(), 1U) << "a call that was answered is not begun";
  held_[0]->Finish(OkStatus());
  EXPECT_EQ(held->times, 1) << "what it began is done, and its caller has an answer";
  EXPECT_EQ(Arrive(Unpublish("x"))->status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(CsiCallTest, AHandlerMayEndItsCallAfterAllElseIsGone) {
  const auto held = Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 1U);
  calls_.reset();
  held_[0]->Finish(OkStatus());
  EXPECT_TRUE(held->status.ok());
}

// A call whose answer is a stream, of which a test says when its client has taken a message.
class CsiStreamCallTest : public CsiCallTest {
 protected:
  CsiStreamCallTest() { row_.streams = true; }

  std::shared_ptr<CsiCall> OpenStream() {
    ::csi::v1::GetMetadataAllocatedRequest request;
    request.set_snapshot_id("s");
    CsiArrival arrival;
    arrival.method = FindCsiMethod("GetMetadataAllocated");
    arrival.peer = {.uid = 0, .pid = 7};
    arrival.read = [request](Message& message) {
      message.CopyFrom(request);
      return true;
    };
    arrival.send = [this](const Message& message, CsiSent sent) {
      sent_.push_back(message.ShortDebugString());
      on_its_way_ = std::move(sent);
    };
    arrival.is_gone = [this] { return is_gone_; };
    arrival.answer = [this](const grpc::Status& status, const Message&) {
      ended_.push_back(status.error_code());
    };
    calls_->Begin(row_, std::move(arrival));
    Run();
    return held_.empty() ? nullptr : held_.back();
  }
  void SendOne(const std::shared_ptr<CsiCall>& call) {
    CsiCall::Send(call, [this](bool taken) { taken_.push_back(taken); });
  }
  void ComesBack(bool taken) { std::exchange(on_its_way_, nullptr)(taken); }

  bool is_gone_ = false;
  std::vector<std::string> sent_;
  CsiSent on_its_way_;
  std::vector<bool> taken_;
  std::vector<grpc::StatusCode> ended_;
};

TEST_F(CsiStreamCallTest, AMessageIsSentAndItsHandlerToldOnTheControlThreadOnceItIsTaken) {
  const auto call = OpenStream();
  ASSERT_NE(call, nullptr);
  auto& response = static_cast<::csi::v1::GetMetadataAllocatedResponse&>(call->response());
  response.set_volume_capacity_bytes(7);
  SendOne(call);
  EXPECT_EQ(sent_, std::vector<std::string>{"volume_capacity_bytes: 7"});
  ComesBack(true);
  EXPECT_TRUE(taken_.empty()) << "it was posted";
  scheduler_.RunFor(std::chrono::milliseconds(1));
  EXPECT_EQ(taken_, std::vector<bool>{true});
  call->Finish(OkStatus());
  EXPECT_EQ(ended_, std::vector<grpc::StatusCode>{grpc::StatusCode::OK});
  EXPECT_EQ(counted_.answers, std::vector<std::string>{"GetMetadataAllocated OK"});
  scheduler_.RunFor(std::chrono::minutes(5));
  EXPECT_EQ(ended_.size(), 1U) << "the timer of the message went with it";
}

TEST_F(CsiStreamCallTest, WhatIsNotTakenInTimeEndsTheCall) {
  const auto call = OpenStream();
  ASSERT_NE(call, nullptr);
  SendOne(call);
  scheduler_.RunFor(CsiLimits().longest_untaken - std::chrono::seconds(1));
  EXPECT_TRUE(ended_.empty());
  scheduler_.RunFor(std::chrono::seconds(2));
  EXPECT_EQ(ended_, std::vector<grpc::StatusCode>{grpc::StatusCode::DEADLINE_EXCEEDED});
  EXPECT_TRUE(call->is_given_up());
  ComesBack(false);
  scheduler_.RunFor(std::chrono::milliseconds(1));
  EXPECT_EQ(taken_, std::vector<bool>{false});
}

TEST_F(CsiStreamCallTest, NothingIsSentOfACallThatHasEnded) {
  const auto call = OpenStream();
  ASSERT_NE(call, nullptr);
  calls_->End();
  SendOne(call);
  scheduler_.RunFor(std::chrono::milliseconds(1));
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(taken_, std::vector<bool>{false});
  EXPECT_EQ(ended_, std::vector<grpc::StatusCode>{grpc::StatusCode::UNAVAILABLE});
}

TEST_F(CsiStreamCallTest, ACallWhoseClientIsGoneIsGivenUp) {
  const auto call = OpenStream();
  ASSERT_NE(call, nullptr);
  EXPECT_FALSE(call->is_given_up());
  is_gone_ = true;
  EXPECT_TRUE(call->is_given_up());
  call->Finish(Error::NotApplied(Code::kCancelled, "nobody is there"));
  EXPECT_EQ(calls_->under_way(), 0U);
}

TEST_F(CsiCallTest, AHandlerGetsNoSecret) {
  for (const CsiMethod& method : CsiMethods()) {
    if (!method.service.starts_with("csi.v1.")) continue;
    const CanaryMessage canary = CanaryMessageOf(*method.request);
    const size_t before = held_.size();
    Arrive(*canary.message);
    Run();
    ASSERT_EQ(held_.size(), before + 1) << method.name;
    const std::string seen = held_.back()->request().DebugString();
    for (const std::string& secret : canary.canaries) {
      // Mount flags are what a mount is made with.
      if (secret.ends_with("-flag")) continue;
      EXPECT_EQ(seen.find(secret.substr(0, 10)), std::string::npos) << method.name;
    }
    held_.back()->Finish(OkStatus());
  }
}

TEST_F(CsiCallTest, TokensInAVolumesContextAreSecrets) {
  ControllerPublishVolumeRequest request;
  request.set_volume_id("v");
  request.set_node_id("n");
  request.mutable_volume_capability()->mutable_block();
  request.mutable_volume_capability()->mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  auto& context = *request.mutable_volume_context();
  context["csi.storage.k8s.io/serviceAccount.tokens"] = R"({"a":{"token":"CANARY-OF-A-TOKEN"}})";
  context["csi.storage.k8s.io/pod.name"] = "web";
  context["other"] = "kept";
  Arrive(request);
  Run();
  ASSERT_EQ(held_.size(), 1U);
  const auto& seen = static_cast<const ControllerPublishVolumeRequest&>(held_[0]->request());
  EXPECT_EQ(seen.volume_context().size(), 2U);
  EXPECT_EQ(seen.volume_context().at("other"), "kept");
  held_[0]->Finish(OkStatus());
  EXPECT_EQ(Lines().find("CANARY"), std::string::npos) << Lines();
}

// What a handler says of a mount option may have the option in it.
TEST_F(CsiCallTest, NoLineAndNoStatusHasASecret) {
  size_t calls = 0;
  for (const CsiMethod& method : CsiMethods()) {
    if (!method.service.starts_with("csi.v1.")) continue;
    const CanaryMessage canary = CanaryMessageOf(*method.request);
    std::string said = "it failed:";
    for (const std::string& secret : canary.canaries) said += " " + secret;
    const auto failed = Arrive(*canary.message);
    Run();
    ASSERT_EQ(held_.size(), ++calls) << method.name;
    held_.back()->Finish(Error::NotApplied(Code::kInternal, said));
    EXPECT_EQ(failed->status.error_message().find("CANARY"), std::string::npos)
        << failed->status.error_message();
    EXPECT_EQ(failed->status.error_message().substr(0, 10), "it failed:");
  }
  EXPECT_EQ(Lines().find("CANARY"), std::string::npos);
  EXPECT_NE(Lines().find("***stripped***"), std::string::npos) << "nothing was logged at all";
}

TEST_F(CsiCallTest, ARequestThatBreaksARuleIsLoggedWithoutItsSecrets) {
  ::csi::v1::DeleteVolumeRequest request;
  (*request.mutable_secrets())["password"] = "CANARY-1";
  (*request.mutable_secrets())["bad key"] = "CANARY-2";
  EXPECT_FALSE(Arrive(request)->status.ok());
  EXPECT_EQ(Lines().find("CANARY"), std::string::npos) << Lines();
  EXPECT_NE(Lines().find("CSI call failed"), std::string::npos);
}

TEST_F(CsiCallTest, WhatWasChangedHasALineAndWhatWasAskedHasOneForWhoLooksForAFault) {
  log_.SetLevel(LogLevel::kInfo);
  NodeGetVolumeStatsRequest stats;
  stats.set_volume_id("v");
  stats.set_volume_path("/t");
  Arrive(stats);
  Arrive(Unpublish("v"));
  Run();
  ASSERT_EQ(held_.size(), 2U);
  for (const auto& call : held_) call->Finish(OkStatus());
  ASSERT_EQ(lines_.size(), 1U) << Lines();
  EXPECT_NE(lines_[0].find("rpc=NodeUnpublishVolume about=v"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[0].find("uid=0 pid=7"), std::string::npos) << lines_[0];
}

}  // namespace
}  // namespace volumed
