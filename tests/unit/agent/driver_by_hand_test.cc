// Calls to a driver by hand, with all real parts: what a reader may ask, what only an administrator
// may change, and what is refused before the driver hears of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "agent/driver_questions.h"
#include "unit/agent/csi_client_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

TEST_F(CsiClientTest, ADriverIsAskedByHandWhatChangesNothing) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  const Result<std::string> answer = Ask("NodeGetInfo");
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_THAT(*answer, HasSubstr("\"node_id\":\"node-a\""));
  EXPECT_EQ(open_, 0);
  EXPECT_EQ(Ask("NodeGetInfo", "{\"no_such_field\":\"geheim\"}").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Ask("NoSuchRpc").error().code(), Code::kInvalidArgument)
      << "volumectl answered as if an object were missing";
  EXPECT_EQ(Ask("GetInfo").error().code(), Code::kInvalidArgument) << "it is the registration's";
}

TEST_F(CsiClientTest, AnRpcThatAnswersByAStreamWasRefused) {
  auto driver = StartDriver();
  ::csi::v1::GetMetadataAllocatedResponse allocated;
  allocated.add_block_metadata()->set_size_bytes(4096);
  driver->Answer("/csi.v1.SnapshotMetadata/GetMetadataAllocated", allocated);
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  const Result<std::string> answer = Ask("GetMetadataAllocated", "{\"snapshot_id\":\"s-1\"}");
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_THAT(*answer, HasSubstr("{\"cut\":false,\"messages\":1,\"answer\":{"));
  EXPECT_THAT(*answer, HasSubstr("\"size_bytes\":\"4096\""));
}

TEST_F(CsiClientTest, WhoeverMayOnlyReadSawASecretInTheAnswerToACallByHand) {
  auto driver = StartDriver();
  ::csi::v1::ListVolumesResponse volumes;
  auto& volume = *volumes.add_entries()->mutable_volume();
  volume.set_volume_id("vol-1");
  (*volume.mutable_volume_context())["login"] = "u:hunter2@nas";
  driver->Answer("/csi.v1.Controller/ListVolumes", volumes);
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  client_->drivers().Find(kName)->secrets()->Remember({"hunter2"});
  const Result<std::string> answer = Ask("ListVolumes");
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_THAT(*answer, HasSubstr("\"volume_id\":\"vol-1\""));
  EXPECT_THAT(*answer, HasSubstr("\"login\":\"u:***stripped***@nas\""));
}

TEST_F(CsiClientTest, WhereNothingMakesCallsThatChangeSomethingTheDriverNeverHearsOfOne) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  const size_t before = driver->server().requests().size();
  const Result<std::string> refused = Ask("NodeUnpublishVolume", "{\"volume_id\":\"v\"}");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(refused.error().outcome(), Outcome::kNotApplied);
  EXPECT_EQ(driver->server().requests().size(), before);
  EXPECT_EQ(open_, 0);
}

// Whoever may only read learnt whether a file of root's is there, and how full any directory is:
// the driver looked for him.
TEST_F(CsiClientTest, AReaderHadADriverLookAtAnyPathOfTheNode) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  may_look_ = [](const CsiVolumeId& volume, const std::string& path) {
    return volume == CsiVolumeId{kName, "v"} && path == "/pods/1/mount";
  };
  const auto looks = [&] {
    int count = 0;
    const int all = static_cast<int>(driver->server().requests().size());
    for (int i = 0; i < all; ++i) {
      const std::string method = driver->server().method(i);
      count += method.ends_with("/NodeGetVolumeStats") || method.ends_with("/NodeGetVolumeHealth");
    }
    return count;
  };
  const struct {
    const char* method;
    const char* json;
  } refused[] = {
      {"NodeGetVolumeStats", R"({"volume_id":"v","volume_path":"/root/.ssh/id_rsa"})"},
      {"NodeGetVolumeStats", R"({"volume_id":"other","volume_path":"/pods/1/mount"})"},
      {"NodeGetVolumeStats", R"({"volume_path":"/pods/1/mount"})"},
      {"NodeGetVolumeStats",
       R"({"volume_id":"v","volume_path":"/pods/1/mount","staging_target_path":"/root"})"},
      {"NodeGetVolumeHealth", R"({"volume_id":"v","volume_publish_path":"/root"})"},
      {"NodeGetVolumeHealth", R"({"volume_id":"v","staging_target_path":"/root"})"},
  };
  for (const auto& c : refused) {
    SCOPED_TRACE(c.json);
    const Result<std::string> answer = Ask(c.method, c.json);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kPermissionDenied);
    EXPECT_FALSE(answer.error().maybe_applied());
    EXPECT_TRUE(answer.error().IsAbout(kAboutDriverPaths));
    EXPECT_THAT(answer.error().message(), HasSubstr("needs role admin; "));
  }
  EXPECT_EQ(looks(), 0);
  EXPECT_EQ(open_, 0);
  const char* of_volume = R"({"volume_id":"v","volume_path":"/pods/1/mount"})";
  (void)Ask("NodeGetVolumeStats", of_volume);
  EXPECT_EQ(looks(), 1) << "its own path";
  EXPECT_TRUE(Ask("NodeGetInfo").ok()) << "it names no path";
  may_look_ = {};
  (void)Ask("NodeGetVolumeStats", refused[0].json);
  EXPECT_EQ(looks(), 2) << "an administrator may";
}

// What a reader called secrets pushed the real ones out of the driver's memory, and a driver's next
// error showed them.
TEST_F(CsiClientTest, AReaderFilledADriversMemoryOfSecrets) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  may_look_ = [](const CsiVolumeId&, const std::string&) { return true; };
  const char* request = R"({"volume_id":"v","secrets":{"k":"filler"}})";
  const Result<std::string> answer = Ask("ValidateVolumeCapabilities", request);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(answer.error().message(), HasSubstr("is asked without secrets"));
  may_look_ = {};
  const Result<std::string> of_admin = Ask("ValidateVolumeCapabilities", request);
  EXPECT_TRUE(of_admin.ok() || of_admin.error().code() != Code::kPermissionDenied);
}

// Eight slow calls of a reader kept an administrator from making one.
TEST_F(CsiClientTest, AReaderTookAllPlacesForCallsByHand) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  open_ = 6;
  EXPECT_TRUE(Ask("NodeGetInfo").ok());
  may_look_ = [](const CsiVolumeId&, const std::string&) { return true; };
  const Result<std::string> refused = Ask("NodeGetInfo");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  may_look_ = {};
  open_ = 8;
  EXPECT_FALSE(Ask("NodeGetInfo").ok());
  open_ = 0;
}

TEST_F(CsiClientTest, AnRpcThatChangesSomethingIsAnOperation) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  operations_.refuses = StartResult::kPending;
  const char* request = "{\"volume_id\":\"v\",\"target_path\":\"/t\"}";
  Result<std::string> answer = Ask("NodeUnpublishVolume", request, /*changes=*/true);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  operations_.refuses = std::nullopt;
  answer = Ask("NodeUnpublishVolume", request, /*changes=*/true);
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(*answer, "done by hand");
  EXPECT_EQ(operations_.traits.at(0).name, "csi_command");
  EXPECT_EQ(operations_.traits.at(0).domain.lane, "csi:disk.example.com");
  EXPECT_EQ(operations_.traits.at(0).device, CsiUniqueName(kName, "v"));
  EXPECT_EQ(operations_.traits.at(0).use, DeviceUse::kExclusive);
}

TEST_F(CsiClientTest, AnOpenCallByHandDidNotNameItsInverse) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  operations_.fails = Error::MaybeApplied(Code::kInternal, "half done");
  EXPECT_THAT(Ask("NodeStageVolume", R"({"volume_id":"v"})", /*changes=*/true).error().message(),
              testing::EndsWith("make it again, or NodeUnstageVolume about the same place"));
  EXPECT_THAT(Ask("CreateVolume", R"({"name":"v"})", /*changes=*/true).error().message(),
              testing::EndsWith("make it again"))
      << "its volume has another name than it";
}

TEST_F(CsiClientTest, WhatSomebodyNeedsIsRefusedWithTheNeedersNameAndSoIsARequestAboutNothing) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  needed_by_ = "pod shop/web";
  Result<std::string> answer = Ask("NodeUnstageVolume", "{\"volume_id\":\"v\"}", /*changes=*/true);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(answer.error().message(), HasSubstr("is in use: pod shop/web has it"));
  answer = Ask("NodeUnstageVolume", "", /*changes=*/true);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(operations_.traits.empty());
}

// A PersistentVolume that came while no agent ran was not known before its source was read, and its
// storage was deleted.
TEST_F(CsiClientTest, ADeleteByHandRightAfterAStartDeletedWhatAFileHadThatWasNotReadYet) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  unseen_ = "not yet: manifests:/m (it is being read)";
  const Result<std::string> answer = Ask("DeleteVolume", "{\"volume_id\":\"v\"}", /*changes=*/true);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_FALSE(answer.error().maybe_applied());
  EXPECT_THAT(answer.error().message(), HasSubstr("manifests:/m"));
  EXPECT_TRUE(operations_.traits.empty());
  (void)Ask("NodeUnstageVolume", "{\"volume_id\":\"v\"}", /*changes=*/true);
  EXPECT_EQ(operations_.traits.size(), 1u) << "it deletes nothing";
  unseen_.clear();
  (void)Ask("DeleteVolume", "{\"volume_id\":\"w\"}", /*changes=*/true);
  EXPECT_EQ(operations_.traits.size(), 2u);
}

TEST_F(CsiClientTest, ARequestOrAnRpcThatIsMisspelledWasRefusedWithoutAWordOfWhatIsWrong) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  const auto refusal = [this](const std::string& rpc, const char* request) {
    const Result<std::string> answer = Ask(rpc, request, /*changes=*/true);
    return answer.ok() ? *answer : answer.error().message();
  };
  EXPECT_THAT(refusal("DeleteVolume", "{\"volumeid\":\"v\"}"),
              HasSubstr("did you mean the field volume_id?"));
  EXPECT_THAT(refusal("DeleteVolume", "{\"handle\":\"v\"}"),
              HasSubstr("none of these: volume_id, secrets"));
  EXPECT_THAT(refusal("DeleteVolume", "{\"volume_id\":{}}"), HasSubstr("field volume_id has"));
  EXPECT_THAT(refusal("DeleteVolume", "{\"volume_id\""), HasSubstr("cannot be read as a JSON"));
  EXPECT_THAT(refusal("nodegetinfo", ""), HasSubstr("did you mean NodeGetInfo?"));
  EXPECT_THAT(refusal("Nothing", ""), HasSubstr("GetPluginInfo, "));
}

TEST_F(CsiClientTest, ADriverThatIsAwayTakesNoCallThatChangesSomething) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  driver.reset();
  ASSERT_TRUE(WaitForState("gone"));
  const Result<std::string> answer =
      Ask("NodeUnstageVolume", "{\"volume_id\":\"v\"}", /*changes=*/true);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_THAT(answer.error().message(), HasSubstr("CSI driver disk.example.com is gone since"));
  EXPECT_TRUE(operations_.traits.empty());
}

TEST_F(CsiClientTest, WhoeverMayReadMayAskAndOnlyAnAdministratorMayChange) {
  v1::CallDriverRequest request;
  for (const char* method : {"NodeGetInfo", "ListVolumes", "NoSuchRpc", ""}) {
    request.set_method(method);
    EXPECT_EQ(RoleToAskDriver(request), PeerRole::kRead) << method;
  }
  for (const char* method : {"DeleteVolume", "Node/NodeStageVolume"}) {
    request.set_method(method);
    EXPECT_EQ(RoleToAskDriver(request), PeerRole::kAdmin) << method;
  }
}

}  // namespace
}  // namespace volumed
