// The fake CSI driver where it mounts nothing: what it says, what its script makes of a call, what
// its log and its state keep, and how it dies. tests/integration/csi has its mounts.
#include "fakes/csi_fake_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "csi.pb.h"
#include "fakes/csi_fake_log.h"
#include "fakes/csi_fake_process.h"
#include "fakes/csi_fake_script.h"
#include "pluginregistration.pb.h"
#include "unit/csi/channel_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace v1 = ::csi::v1;

class CsiFakeDriverTest : public CsiChannelFixture {
 protected:
  CsiFakeDriverTest() {
    fake_.directory = directory_.Socket("fake");
    fake_.endpoint = options_.socket;
    fake_.log = directory_.Socket("log");
    fake_.controller_capabilities = {"CREATE_DELETE_VOLUME", "PUBLISH_UNPUBLISH_VOLUME",
                                     "EXPAND_VOLUME"};
    fake_.node_capabilities = {};
  }
  void Begin() {
    driver_process_.reset();
    fake_driver_.reset();
    fake_driver_ = std::make_unique<CsiFakeDriver>(fake_);
    Connect();
  }
  void BeginProcess() {
    fake_driver_.reset();
    driver_process_ = std::make_unique<CsiFakeProcess>(fake_);
    ASSERT_TRUE(driver_process_->Start());
    Connect();
  }
  template <typename Response>
  Result<Response> Call(const google::protobuf::Message& request,
                        Duration timeout = std::chrono::seconds(20)) {
    return channel_->Call<Response>(request, In(timeout));
  }
  Result<v1::ControllerPublishVolumeResponse> Attach(const std::string& volume,
                                                     Duration timeout = std::chrono::seconds(20)) {
    return Call<v1::ControllerPublishVolumeResponse>(AttachRequest(volume), timeout);
  }
  static v1::ControllerPublishVolumeRequest AttachRequest(const std::string& volume) {
    v1::ControllerPublishVolumeRequest request;
    request.set_volume_id(volume);
    request.set_node_id("node-a");
    (*request.mutable_secrets())["user"] = "canary-71f3";
    return request;
  }
  Result<v1::CreateVolumeResponse> Create(const std::string& name, int64_t bytes = 0) {
    v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    return Call<v1::CreateVolumeResponse>(request);
  }
  std::optional<Code> Detach(const std::string& volume) {
    v1::ControllerUnpublishVolumeRequest request;
    request.set_volume_id(volume);
    request.set_node_id("node-a");
    return CodeOf(Call<v1::ControllerUnpublishVolumeResponse>(request));
  }
  template <typename Response>
  static std::optional<Code> CodeOf(const Result<Response>& result) {
    return result.ok() ? std::nullopt : std::optional(result.error().code());
  }
  std::vector<CsiFakeEntry> Log() const { return ReadCsiFakeLog(fake_.log); }
  int Count(const std::string& what) const {
    int count = 0;
    for (const CsiFakeEntry& entry : Log()) count += entry.what == what ? 1 : 0;
    return count;
  }
  bool IsAttached(const std::string& volume) {
    const auto state = nlohmann::json::parse(fake_driver_->Tell(R"({"volumes": true})"));
    return state["volumes"].contains(volume) && !state["volumes"][volume]["nodes"].empty();
  }

  CsiFakeOptions fake_;
  std::unique_ptr<CsiFakeDriver> fake_driver_;
  std::unique_ptr<CsiFakeProcess> driver_process_;
};

TEST_F(CsiFakeDriverTest, ItSaysOfItselfWhatItsOptionsSay) {
  fake_.name = "a.example.com";
  fake_.node_capabilities = {"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"};
  fake_.plugin_capabilities = {"CONTROLLER_SERVICE", "ONLINE"};
  fake_.max_volumes = 7;
  fake_.topology = {{"zone", "z"}};
  Begin();
  EXPECT_EQ(Call<v1::GetPluginInfoResponse>(v1::GetPluginInfoRequest())->name(), "a.example.com");
  const auto info = Call<v1::NodeGetInfoResponse>(v1::NodeGetInfoRequest());
  EXPECT_EQ(info->node_id(), "node-a");
  EXPECT_EQ(info->max_volumes_per_node(), 7);
  EXPECT_EQ(info->accessible_topology().segments().at("zone"), "z");
  const auto node = Call<v1::NodeGetCapabilitiesResponse>(v1::NodeGetCapabilitiesRequest());
  ASSERT_EQ(node->capabilities_size(), 2);
  EXPECT_EQ(node->capabilities(1).rpc().type(), v1::NodeServiceCapability::RPC::EXPAND_VOLUME);
  const auto plugin = Call<v1::GetPluginCapabilitiesResponse>(v1::GetPluginCapabilitiesRequest());
  ASSERT_EQ(plugin->capabilities_size(), 2);
  EXPECT_EQ(plugin->capabilities(1).volume_expansion().type(),
            v1::PluginCapability::VolumeExpansion::ONLINE);

  fake_driver_->Tell(R"({"set": {"node_id": "node-b", "controller_capabilities": []}})");
  EXPECT_EQ(Call<v1::NodeGetInfoResponse>(v1::NodeGetInfoRequest())->node_id(), "node-b");
  EXPECT_EQ(
      CodeOf(Call<v1::ControllerGetCapabilitiesResponse>(v1::ControllerGetCapabilitiesRequest())),
      Code::kUnimplemented);
}

TEST_F(CsiFakeDriverTest, ItRegistersWhenItsServicesListenAndUntilItIsToldOtherwise) {
  fake_.registration = directory_.Socket("reg.sock");
  fake_.versions = {"1.0.0", "0.3.0"};
  Begin();
  options_.socket = fake_.registration;
  Connect();
  const auto info = Call<pluginregistration::PluginInfo>(pluginregistration::InfoRequest());
  ASSERT_TRUE(info.ok()) << info.error().ToString();
  EXPECT_EQ(info->type(), "CSIPlugin");
  EXPECT_EQ(info->endpoint(), fake_.endpoint);
  EXPECT_EQ(info->supported_versions_size(), 2);
  pluginregistration::RegistrationStatus refusal;
  refusal.set_error("no");
  EXPECT_TRUE(Call<pluginregistration::RegistrationStatusResponse>(refusal).ok());
  EXPECT_EQ(Log().back().rpc, "NotifyRegistrationStatus");
  fake_driver_->Tell(R"({"unregister": true})");
  EXPECT_FALSE(std::filesystem::exists(fake_.registration));
  EXPECT_TRUE(std::filesystem::exists(fake_.endpoint));
  fake_driver_->Tell(R"({"register": true})");
  EXPECT_TRUE(std::filesystem::exists(fake_.registration));
}

TEST_F(CsiFakeDriverTest, ARuleIsForSoManyCallsOfItsRpcAndVolume) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "volume": "v1", "skip": 1,
                            "times": 2, "code": 10, "message": "busy"}])");
  EXPECT_TRUE(Attach("v1").ok());
  EXPECT_EQ(CodeOf(Attach("v1")), Code::kAborted);
  EXPECT_TRUE(Attach("v2").ok());
  EXPECT_EQ(CodeOf(Attach("v1")), Code::kAborted);
  EXPECT_TRUE(Attach("v1").ok());
}

TEST_F(CsiFakeDriverTest, EveryCodeIsAnsweredWithTheEffectOrWithoutIt) {
  Begin();
  for (int code = 1; code <= 16; ++code) {
    for (const bool is_made : {false, true}) {
      const std::string volume = "v" + std::to_string(code) + (is_made ? "made" : "none");
      fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "code": )" +
                           std::to_string(code) + (is_made ? R"(, "effect": "made"}])" : "}]"));
      EXPECT_EQ(static_cast<int>(*CodeOf(Attach(volume))), code);
      EXPECT_EQ(IsAttached(volume), is_made) << volume;
    }
  }
}

TEST_F(CsiFakeDriverTest, WhatIsNoRuleIsSaidAndAUsedWordIsNot) {
  Begin();
  EXPECT_THAT(fake_driver_->Tell(R"({"script": [{"rpc": "Probe", "kode": 3}]})"),
              HasSubstr("kode"));
  EXPECT_THAT(fake_driver_->Tell(R"({"script": {}})"), HasSubstr("problem"));
  EXPECT_THAT(fake_driver_->Tell("no json"), HasSubstr("problem"));
  EXPECT_THAT(fake_driver_->Tell(R"({"dance": true})"), HasSubstr("dance"));
  EXPECT_EQ(fake_driver_->Tell(R"({"script": []})"), R"({"ok":true})");
}

TEST_F(CsiFakeDriverTest, AnswersThatNoDriverShouldGiveReachTheCaller) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "twice": true}])");
  // The library waits for the end of an answer that has one message more than it reads.
  EXPECT_EQ(CodeOf(Attach("v", milliseconds(300))), Code::kDeadlineExceeded);
  fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "no_message": true}])");
  EXPECT_NE(CodeOf(Attach("v")), std::nullopt);
  fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "garbage": true}])");
  EXPECT_NE(CodeOf(Attach("v")), std::nullopt);
  fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "huge_bytes": 17825792}])");
  EXPECT_EQ(CodeOf(Attach("v")), Code::kResourceExhausted);
  fake_driver_->Script(R"([{"rpc": "Probe", "answer": {"ready": false}}])");
  const auto probe = CallProbe();
  ASSERT_TRUE(probe.ok());
  EXPECT_TRUE(probe->has_ready());
  EXPECT_FALSE(probe->ready().value());
}

TEST_F(CsiFakeDriverTest, ItsMessageMayHaveAnyBytesAndTheSecretsOfTheRequest) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "ControllerPublishVolume", "code": 13,
                            "message": "a\u001bb\\xffc {secrets}"}])");
  const auto answer = Attach("v");
  ASSERT_FALSE(answer.ok());
  // The channel makes it printable, and takes the secret out: that there was one is in the log.
  EXPECT_THAT(answer.error().message(), HasSubstr("a"));
  EXPECT_THAT(Log().back().text, HasSubstr("canary-71f3"));
}

TEST_F(CsiFakeDriverTest, AHangingCallEndsByReleaseAndAsItShouldHave) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "*", "hang": true}])");
  BegunCall one(*channel_, AttachRequest("v1"), In(seconds(20)));
  BegunCall two(*channel_, AttachRequest("v2"), In(seconds(20)));
  while (fake_driver_->Tell(R"({"status": true})").find(R"("held":2)") == std::string::npos) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_FALSE(IsAttached("v1"));
  fake_driver_->Tell(R"({"release": true})");
  ASSERT_TRUE(one.ended());
  ASSERT_TRUE(two.ended());
  EXPECT_TRUE(one.answer().ok());
  EXPECT_TRUE(IsAttached("v1"));
  EXPECT_THAT(ViolationsOf(Log()), IsEmpty());
}

TEST_F(CsiFakeDriverTest, AnEffectMayBeMadeAndNeverAnswered) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "*", "times": 1, "hang": true, "effect": "made"}])");
  EXPECT_EQ(CodeOf(Attach("v1", milliseconds(200))), Code::kDeadlineExceeded);
  EXPECT_TRUE(IsAttached("v1"));
  // Its caller has gone: the next call is no second one at a time.
  while (fake_driver_->Tell(R"({"status": true})").find(R"("held":0)") == std::string::npos) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(Attach("v1").ok());
  EXPECT_THAT(ViolationsOf(Log()), IsEmpty());
}

TEST_F(CsiFakeDriverTest, ALateAnswerIsLateBeforeOrAfterTheEffect) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "*", "volume": "v1", "before_ms": 300},
                           {"rpc": "*", "volume": "v2", "after_ms": 300}])");
  const TimePoint begun = clock_.Now();
  EXPECT_EQ(CodeOf(Attach("v1", milliseconds(50))), Code::kDeadlineExceeded);
  EXPECT_FALSE(IsAttached("v1"));
  EXPECT_EQ(CodeOf(Attach("v2", milliseconds(100))), Code::kDeadlineExceeded);
  EXPECT_TRUE(IsAttached("v2"));
  EXPECT_TRUE(Attach("v3").ok());
  fake_driver_->Script(R"([{"rpc": "*", "after_ms": 300}])");
  EXPECT_TRUE(Attach("v4").ok());
  EXPECT_GE(clock_.Now() - begun, milliseconds(300));
}

TEST_F(CsiFakeDriverTest, TheLogHasTheCallsInOrderAndNoSecret) {
  Begin();
  ASSERT_TRUE(Create("one", 4096).ok());
  ASSERT_TRUE(Attach("vol-one").ok());
  EXPECT_EQ(Detach("vol-one"), std::nullopt);
  EXPECT_THAT(CallsOf(Log()), ElementsAre("CreateVolume one", "ControllerPublishVolume vol-one",
                                          "ControllerUnpublishVolume vol-one"));
  const std::vector<CsiFakeEntry> log = Log();
  EXPECT_EQ(log[1].what, "listen");
  EXPECT_EQ(log[2].size_bytes, 4096);
  EXPECT_EQ(log[4].node, "node-a");
  EXPECT_THAT(log[4].secret_keys, ElementsAre("user"));
  EXPECT_EQ(log[5].what, "end");
  EXPECT_EQ(log[5].number, log[4].number);
  EXPECT_EQ(log[5].effect, "made");
  EXPECT_GE(log[5].at_us, log[4].at_us);
  EXPECT_EQ(log[4].pid, ::getpid());
  for (const CsiFakeEntry& entry : log) EXPECT_EQ(entry.text.find("canary"), std::string::npos);
}

TEST_F(CsiFakeDriverTest, AWrongOrderIsRefusedAndAViolation) {
  fake_.node_capabilities = {"STAGE_UNSTAGE_VOLUME"};
  Begin();
  EXPECT_EQ(CodeOf(CallStage("v1")), Code::kFailedPrecondition);
  v1::NodePublishVolumeRequest publish;
  publish.set_volume_id("v1");
  EXPECT_EQ(CodeOf(Call<v1::NodePublishVolumeResponse>(publish)), Code::kFailedPrecondition);
  v1::NodeExpandVolumeRequest expand;
  expand.set_volume_id("v1");
  EXPECT_EQ(CodeOf(Call<v1::NodeExpandVolumeResponse>(expand)), Code::kUnimplemented);
  ASSERT_TRUE(Attach("v1").ok());
  v1::DeleteVolumeRequest remove;
  remove.set_volume_id("v1");
  EXPECT_EQ(CodeOf(Call<v1::DeleteVolumeResponse>(remove)), Code::kFailedPrecondition);
  EXPECT_THAT(ViolationsOf(Log()),
              ElementsAre(HasSubstr("not attached"), HasSubstr("not staged"),
                          HasSubstr("without the capability EXPAND_VOLUME"), HasSubstr("in use")));
}

TEST_F(CsiFakeDriverTest, TwoCallsOfAVolumeAtATimeAreAViolation) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "*", "times": 1, "after_ms": 200}])");
  BegunCall one(*channel_, AttachRequest("v1"), In(seconds(20)));
  while (Count("begin") == 0) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(Attach("v2").ok());
  EXPECT_TRUE(Attach("v1").ok());
  ASSERT_TRUE(one.ended());
  EXPECT_THAT(ViolationsOf(Log()),
              ElementsAre("ControllerPublishVolume of v1 while ControllerPublishVolume is under "
                          "way"));
}

TEST_F(CsiFakeDriverTest, WhatItKnowsOutlivesItUnlessItIsToForget) {
  Begin();
  ASSERT_TRUE(Attach("v1").ok());
  Begin();
  EXPECT_EQ(Detach("v1"), std::nullopt);
  ASSERT_TRUE(Attach("v1").ok());
  fake_.forgets = true;
  Begin();
  EXPECT_EQ(Detach("v1"), Code::kNotFound);
  ASSERT_TRUE(Attach("v1").ok());
  fake_driver_->Tell(R"({"forget": true})");
  EXPECT_EQ(Detach("v1"), Code::kNotFound);
}

TEST_F(CsiFakeDriverTest, AVolumeIsMadeOnceByAName) {
  Begin();
  EXPECT_EQ(Create("one", 4096)->volume().capacity_bytes(), 4096);
  EXPECT_EQ(Create("one", 4096)->volume().volume_id(), "vol-one");
  EXPECT_EQ(CodeOf(Create("one", 8192)), Code::kAlreadyExists);
  v1::ControllerExpandVolumeRequest grow;
  grow.set_volume_id("vol-one");
  grow.mutable_capacity_range()->set_required_bytes(8192);
  fake_driver_->Script(R"([{"rpc": "ControllerExpandVolume", "times": 1, "effect": "smaller"}])");
  EXPECT_EQ(Call<v1::ControllerExpandVolumeResponse>(grow)->capacity_bytes(), 4096);
  EXPECT_EQ(Call<v1::ControllerExpandVolumeResponse>(grow)->capacity_bytes(), 8192);
  v1::DeleteVolumeRequest remove;
  remove.set_volume_id("vol-one");
  EXPECT_TRUE(Call<v1::DeleteVolumeResponse>(remove).ok());
  EXPECT_TRUE(Call<v1::DeleteVolumeResponse>(remove).ok());
  EXPECT_EQ(fake_driver_->Tell(R"({"volumes": true})"), R"({"ok":true,"volumes":{}})");
}

TEST_F(CsiFakeDriverTest, StoppedItHasNoSocketAndListensAgain) {
  Begin();
  ASSERT_TRUE(Attach("v1").ok());
  fake_driver_->Tell(R"({"stop": true})");
  EXPECT_FALSE(std::filesystem::exists(fake_.endpoint));
  EXPECT_EQ(CodeOf(Attach("v2")), Code::kUnavailable);
  fake_driver_->Tell(R"({"listen": true})");
  channel_->Reconnect();
  EXPECT_TRUE(Attach("v2").ok());
}

TEST_F(CsiFakeDriverTest, AProcessDiesBeforeTheEffectOrAfterItAndItsSocketStays) {
  ASSERT_NO_FATAL_FAILURE(BeginProcess());
  driver_process_->Script(R"([{"rpc": "*", "die": "before"}])");
  EXPECT_EQ(CodeOf(Attach("v1")), Code::kUnavailable);
  ASSERT_TRUE(driver_process_->WaitUntilDead());
  EXPECT_TRUE(std::filesystem::exists(fake_.endpoint));

  ASSERT_TRUE(driver_process_->Start());
  EXPECT_THAT(driver_process_->Tell(R"({"volumes": true})"), Not(HasSubstr("v1")));
  channel_->Reconnect();
  driver_process_->Script(R"([{"rpc": "*", "die": "after", "remove_sockets": true}])");
  EXPECT_EQ(CodeOf(Attach("v1")), Code::kUnavailable);
  ASSERT_TRUE(driver_process_->WaitUntilDead());
  EXPECT_FALSE(std::filesystem::exists(fake_.endpoint));

  ASSERT_TRUE(driver_process_->Start());
  EXPECT_THAT(driver_process_->Tell(R"({"volumes": true})"), HasSubstr("v1"));
  channel_->Reconnect();
  driver_process_->Script(R"([{"rpc": "*", "die": "answered"}])");
  EXPECT_TRUE(Attach("v1").ok());
  ASSERT_TRUE(driver_process_->WaitUntilDead());
  EXPECT_EQ(Count("start"), 3);
  EXPECT_EQ(Count("die"), 3);
}

TEST_F(CsiFakeDriverTest, AStoppedProcessDoesNotAnswerAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(BeginProcess());
  ASSERT_TRUE(Attach("v1").ok());
  driver_process_->Signal(SIGSTOP);
  EXPECT_EQ(CodeOf(Attach("v1", milliseconds(100))), Code::kDeadlineExceeded);
  driver_process_->Signal(SIGCONT);
  EXPECT_TRUE(Attach("v1").ok());
}

TEST_F(CsiFakeDriverTest, ADriverWithinTheTestDiesByEndingItsServers) {
  Begin();
  fake_driver_->Script(R"([{"rpc": "*", "die": "before"}])");
  EXPECT_NE(CodeOf(Attach("v1")), std::nullopt);
  EXPECT_FALSE(IsAttached("v1"));
}

}  // namespace
}  // namespace volumed
