// The agent's CSI drivers with all real parts: what the control API shows of drivers that register,
// die and are asked by hand, and of sockets that nobody trusts.
#include "agent/csi_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "agent/driver_commands.h"
#include "agent/driver_questions.h"
#include "agent/forget_driver.h"
#include "csi/csi_call_by_hand.h"
#include "fakes/memory_record_store.h"
#include "metrics/exported_families.h"
#include "unit/csi/channel_fixture.h"
#include "unit/csi/real_driver.h"
#include "unit/csi/scheduler_thread.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Says of each call by hand that it is done.
class DoneByHand final : public VolumeOperations {
 public:
  std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) override {
    if (refuses) return {*refuses};
    auto* const call = As<CallByHand>(*operations.front());
    traits.push_back(call->operation().Traits());
    if (fails) {
      call->Finish({.value = {}, .failure = OperationFailure{"csi_command", "Call", *fails}});
      return {StartResult::kStarted};
    }
    call->Finish({.value = "done by hand", .failure = {}});
    return {StartResult::kStarted};
  }
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume>) override { return {}; }
  bool IsPending(const OperationKey&) const override { return false; }
  std::optional<TimePoint> NextTry(const OperationKey&) const override { return std::nullopt; }
  void ResetBackoff(const OperationKey&) override {}
  std::vector<RunningOperation> Running() const override { return {}; }
  std::optional<RunningOperation> FindRunning(const OperationKey&) const override {
    return std::nullopt;
  }

  std::optional<Error> fails;
  std::optional<StartResult> refuses;
  std::vector<OperationTraits> traits;
};

class CsiClientTest : public testing::Test {
 protected:
  static constexpr const char* kName = "disk.example.com";

  CsiClientTest() {
    fs::create_directories(root_ / "plugins" / "disk");
    StartClient();
  }
  ~CsiClientTest() override { StopClient(); }

  // What the client has asked of other threads uses it until it is answered: a socket that is just
  // being opened anew, as its driver has gone.
  void StopClient() {
    for (bool stopped = false; !stopped; std::this_thread::yield()) {
      scheduler_.OnControl([&] {
        const ExecutorLoad load = scheduler_.scheduler().load();
        if (load.busy > 0 || load.queued > 0) return;
        client_.reset();
        stopped = true;
      });
    }
    scheduler_.WaitUntilIdle();
  }
  // The agent starts; the records stay.
  void StartClient() {
    looked_ = false;
    auto watch = InotifyRegistryWatch::Create(registry_.string(), {});
    ASSERT_TRUE(watch.ok()) << watch.error().ToString();
    scheduler_.OnControl([&] {
      CsiClientSettings settings;
      settings.registry = registry_.string();
      settings.owners = {static_cast<uint32_t>(::getuid())};
      settings.drivers.endpoint_directories = {root_.string()};
      settings.drivers.controllers = controllers_;
      CsiClientHooks hooks;
      hooks.happened = [this](const std::string&, DriverEvent) { happening_.Happened(); };
      hooks.looked = [this](const std::optional<Error>&) {
        happening_.Happened([&] { looked_ = true; });
      };
      client_ = std::make_unique<CsiClient>(
          CsiClient::Parts{scheduler_.scheduler(), &scheduler_.scheduler().loop(), *connections_,
                           store_, log_},
          settings, hooks);
      for (const OtherRecordKind& kind : CsiClient::RecordKinds()) {
        client_->Restore(kind.kind, *store_.Load(kind.kind));
      }
      restored_ = Drivers();
      client_->Start(*std::move(watch));
    });
    ASSERT_TRUE(happening_.WaitFor([&] { return looked_; }));
  }
  std::unique_ptr<RealDriver> StartDriver() {
    return std::make_unique<RealDriver>(Endpoint(), kName);
  }
  std::unique_ptr<RealDriver> StartRegistrar() {
    return StartRealRegistrar(registry_, "disk.sock", kName, Endpoint());
  }
  std::string Endpoint() const { return (root_ / "plugins" / "disk" / "csi.sock").string(); }

  // On the control thread.
  v1::GetDriversResponse Drivers(const std::string& name = "") {
    v1::GetDriversRequest request;
    request.set_name(name);
    v1::GetDriversResponse response;
    asked_ = DescribeDrivers(*client_, {{"csi:disk.example.com", 3}}, clock_, request, &response);
    return response;
  }
  v1::GetDriversResponse DriversNow(const std::string& name = "") {
    v1::GetDriversResponse drivers;
    scheduler_.OnControl([&] { drivers = Drivers(name); });
    return drivers;
  }
  // Looks again after each event, and now and then: sockets have none.
  bool WaitUntil(const std::function<bool(const v1::GetDriversResponse&)>& is) {
    const Deadline deadline = Deadline::After(clock_, std::chrono::seconds(20));
    while (!deadline.Passed(clock_)) {
      if (is(DriversNow())) return true;
      std::this_thread::yield();
    }
    return false;
  }
  bool WaitForState(const std::string& state) {
    return WaitUntil([&](const v1::GetDriversResponse& drivers) {
      return drivers.drivers_size() == 1 && drivers.drivers(0).state() == state;
    });
  }
  // `changes`: there is something that makes calls which change something.
  Result<std::string> Ask(const std::string& method, const std::string& json = "",
                          bool changes = false) {
    v1::CallDriverRequest request;
    request.set_driver(kName);
    request.set_method(method);
    request.set_request_json(json);
    std::optional<Result<std::string>> answer;
    const DriverCommands commands{
        .scheduler = scheduler_.scheduler(),
        .csi = *client_,
        .operations = operations_,
        .who_needs = [this](const CsiMethod&, const CsiVolumeId&) { return needed_by_; }};
    scheduler_.OnControl([&] {
      AskDriver({scheduler_.scheduler(), *client_, std::chrono::seconds(20), open_,
                 changes ? &commands : nullptr, may_look_},
                request, [&](const Result<std::string>& told) {
                  happening_.Happened([&] { answer = told; });
                });
    });
    happening_.WaitFor([&] { return answer.has_value(); });
    return *answer;
  }

  const RealClock clock_{};
  SocketDirectory directory_;
  const fs::path root_ = fs::path(directory_.Socket("k"));
  const fs::path registry_ = root_ / "plugins_registry";
  Logger log_{LogOptions{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  ExportedFamilies families_;
  Happening happening_;
  bool looked_ = false;
  int open_ = 0;
  DoneByHand operations_;
  std::map<std::string, SafePath> controllers_;  // of agents that start from now on
  std::string needed_by_;
  std::function<bool(const CsiVolumeId& volume, const std::string& path)> may_look_;
  Status asked_ = OkStatus();
  v1::GetDriversResponse restored_;
  std::unique_ptr<CsiConnectionParts> connections_ =
      std::make_unique<CsiConnectionParts>(clock_, families_);
  SchedulerThread scheduler_;
  std::unique_ptr<CsiClient> client_;
};

TEST(DriverTraces, TheRefusalToForgetADriverNamedNothing) {
  EXPECT_EQ(TextOf(DriverTraces()), "");
  EXPECT_EQ(
      TextOf(DriverTraces{.driver = "d",
                          .volumes = {},
                          .open_calls = {"DeleteVolume by hand of \"v\""},
                          .owed_calls = {"NodeUnstageVolume of volume v"},
                          .begun = {}}),
      "calls to it have an open outcome: DeleteVolume by hand of \"v\": `volumectl delete driver d "
      "--force` gives them up; calls are owed to it: NodeUnstageVolume of volume v: `volumectl "
      "delete driver d --force` gives them up");
}

TEST(DriverTraces, TheRefusalToForgetADriverSaidNotWhatToDoAboutItsVolumes) {
  DriverTraces traces;
  traces.driver = "d";
  traces.volumes = {
      {SpecName("a"), PodUid("u1"), "default", "web", VolumeState::kSetUp},
      {SpecName("b"), PodUid("u2"), "shop", "db", VolumeState::kSetUp},
      {SpecName("c"), PodUid("u3"), "", "", VolumeState::kSetUp},
      {SpecName("dir"), PodUid(), "", "", VolumeState::kDeviceMounted, "/k/globalmount"},
      {SpecName("disk"), PodUid(), "", "", VolumeState::kAttached},
  };
  EXPECT_EQ(
      TextOf(traces),
      "volumes of it are on this node's records: a of pod default/web (`volumectl delete pod "
      "web`), b of pod shop/db (`volumectl delete pod db -n shop`), c of pod u3 (`volumectl "
      "delete pod u3`), dir, whose device is DeviceMounted at /k/globalmount, disk, whose device "
      "is Attached; without the driver pods and mounts of whole disks go by `driver-absent-limit` "
      "alone, a device that is mounted otherwise once `umount PATH` was done by hand, and what is "
      "attached stays until it is back");
}

TEST_F(CsiClientTest, ASocketInTheRegistryMakesItsDriverReadyAndItIsShownWithAllThatItSays) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitUntil([](const v1::GetDriversResponse& all) {
    return all.sockets_size() == 1 && all.sockets(0).state() == "registered";
  }));
  const v1::GetDriversResponse all = DriversNow();
  ASSERT_EQ(all.drivers_size(), 1);
  const v1::Driver& shown = all.drivers(0);
  EXPECT_EQ(shown.name(), kName);
  EXPECT_EQ(shown.state(), "ready");
  EXPECT_EQ(shown.node_id(), "node-a");
  EXPECT_EQ(shown.endpoint(), Endpoint());
  EXPECT_EQ(shown.reason(), "");
  EXPECT_TRUE(shown.sets_up() && shown.takes_away());
  EXPECT_EQ(shown.operations_waiting(), 3);
  EXPECT_EQ(all.sockets(0).owner(), ::getuid());
  EXPECT_EQ(all.sockets(0).driver(), kName);
  DriversNow("other.example.com");
  EXPECT_EQ(asked_.error().code(), Code::kNotFound);
}

TEST_F(CsiClientTest, ADriverThatDiesIsGoneAndItsLaneIsClosedUntilItIsBack) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  driver.reset();
  ASSERT_TRUE(WaitForState("gone"));
  const v1::Driver gone = DriversNow().drivers(0);
  EXPECT_THAT(gone.reason(), HasSubstr("CSI driver disk.example.com is gone since "));
  EXPECT_FALSE(gone.sets_up());
  EXPECT_TRUE(client_->drivers().LaneOf(kName).closed);
  driver = StartDriver();
  EXPECT_TRUE(WaitForState("ready"));
  EXPECT_FALSE(client_->drivers().LaneOf(kName).closed);
}

TEST_F(CsiClientTest, ADriverOfAnEarlierRunIsKnownBeforeItRegistersAgain) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  StopClient();
  registrar.reset();
  driver.reset();
  StartClient();
  ASSERT_EQ(restored_.drivers_size(), 1);
  EXPECT_EQ(restored_.drivers(0).state(), "gone");
  EXPECT_EQ(restored_.drivers(0).node_id(), "node-a");
  EXPECT_FALSE(restored_.drivers(0).takes_away());
  driver = StartDriver();
  registrar = StartRegistrar();
  EXPECT_TRUE(WaitForState("ready"));
}

TEST_F(CsiClientTest, TheDescriptionOfADriverThatNobodyKnowsHadNoSocketThatMayBeItsOwn) {
  StopClient();
  controllers_.emplace("lost.example.com", SafePath(root_.string(), "lost.sock"));
  StartClient();
  scheduler_.OnControl([&] { client_->SetSettings({::getuid() + 1}, CsiDriverSettings()); });
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitUntil([](const v1::GetDriversResponse& all) {
    return all.sockets_size() == 1 && all.sockets(0).state() == "refused";
  }));
  const v1::GetDriversResponse lost = DriversNow("lost.example.com");
  ASSERT_TRUE(asked_.ok()) << asked_.error().message();
  EXPECT_EQ(lost.unused_controllers_size(), 1);
  EXPECT_EQ(lost.sockets_size(), 1);
  DriversNow("other.example.com");
  ASSERT_FALSE(asked_.ok());
  EXPECT_EQ(asked_.error().code(), Code::kNotFound);
  EXPECT_THAT(asked_.error().message(), HasSubstr("`volumectl get drivers`"));
}

TEST_F(CsiClientTest, ASocketThatNobodyTrustsIsShownWithItsOwnerAndTheReason) {
  scheduler_.OnControl([&] { client_->SetSettings({::getuid() + 1}, CsiDriverSettings()); });
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  fs::create_symlink(registry_ / "disk.sock", registry_ / "link.sock");
  ASSERT_TRUE(WaitUntil([](const v1::GetDriversResponse& all) {
    return all.sockets_size() == 2 && all.sockets(0).state() == "refused" &&
           all.sockets(1).state() == "refused";
  }));
  const v1::GetDriversResponse all = DriversNow();
  EXPECT_EQ(all.drivers_size(), 0);
  EXPECT_THAT(all.sockets(0).reason(), HasSubstr("(csi-socket-owners)"));
  EXPECT_EQ(all.sockets(0).owner(), ::getuid());
  EXPECT_THAT(all.sockets(1).reason(), HasSubstr("is a symbolic link"));
  EXPECT_EQ(registrar->server().requests().size(), 0u) << "it was dialled";
}

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

TEST_F(CsiClientTest, TheTraceHasTheCallsOfADriverAndTheMetricsCountThem) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  v1::GetDriverTraceRequest request;
  request.set_driver(kName);
  v1::GetDriverTraceResponse trace;
  Status unknown = OkStatus();
  scheduler_.OnControl([&] {
    EXPECT_TRUE(DescribeTrace(*client_, clock_, request, &trace).ok());
    request.set_driver("other.example.com");
    v1::GetDriverTraceResponse none;
    unknown = DescribeTrace(*client_, clock_, request, &none);
    client_->Collect({});
  });
  const auto is_node_info = [](const v1::TracedCall& call) {
    return call.method() == "/csi.v1.Node/NodeGetInfo" && call.code() == "OK";
  };
  EXPECT_TRUE(std::any_of(trace.calls().begin(), trace.calls().end(), is_node_info));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  std::string text;
  families_.AppendTo(text);
  EXPECT_THAT(text,
              HasSubstr("volumed_csi_driver_state{driver=\"disk.example.com\",state=\"ready\"} 1"));
  EXPECT_THAT(text, HasSubstr("method_name=\"/csi.v1.Node/NodeGetInfo\""));
  EXPECT_EQ(text.find("pluginregistration"), std::string::npos);
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
