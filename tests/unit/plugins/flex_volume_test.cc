// flexVolume: what its driver is told, what the agent does in its place, and what each failure
// means.
#include "plugins/flex_volume.h"
#include "fakes/target_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_format_intents.h"
#include "mounter/mount_refs.h"
#include "pluginmgr/wrapper_volumes.h"
#include "plugins/in_tree_plugins.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDriver[] = "v.io/d";
constexpr char kExecutable[] = "/exec/v.io~d/d";
constexpr char kDisk[] = "/dev/vdb";
constexpr char kDevicePlace[] = "/r/plugins/kubernetes.io/flexvolume/v.io/d/mounts/disk";
constexpr char kSuccess[] = R"({"status":"Success"})";
constexpr char kFailure[] = R"({"status":"Failure","message":"no such array"})";
constexpr char kUnsupported[] = R"({"status":"Not supported"})";

class FlexVolumeTest : public ::testing::Test {
 protected:
  FlexVolumeTest() : world_(kernel_, "/r", {}, InTreeDeviceLayouts()) {
    kernel_.AddDirectory("/r/plugins", 0750);
    kernel_.AddProgram(kExecutable, [this](FakeKernel&, const std::vector<std::string>& words) {
      calls_.emplace_back(words.begin() + 1, words.end());
      const auto answer = answers_.find(words.at(1));
      return answer == answers_.end() ? ProgramEnd{1, kUnsupported} : answer->second;
    });
    MakePlugin({});
    volume_.metadata.name = "disk";
    SetSource({});
  }

  NodeResizeOptions TwiceAsLarge() const {
    return {.spec = Spec(),
            .device_path = "",
            .device_mount_path = {kDevicePlace, ""},
            .device_stage_path = {},
            .new_size = Quantity::FromBytes(200),
            .old_size = Quantity::FromBytes(100)};
  }
  void MakePlugin(FlexCapabilities capabilities) {
    driver_ = std::make_shared<FlexVolumeDriver>(kernel_, kDriver, kExecutable);
    plugin_ = std::make_unique<FlexVolumePlugin>(driver_, capabilities,
                                                 DeviceVolumeSettings{.format_intents = &intents_});
    EXPECT_TRUE(plugin_->Init(PluginContext{world_.host, wrappers_}).ok());
  }
  void SetSource(std::map<std::string, std::string> options,
                 std::optional<SecretReference> secret = {}) {
    FlexPersistentVolumeSource source;
    source.driver = kDriver;
    source.options = std::move(options);
    source.secret_ref = std::move(secret);
    volume_.spec.source = source;
  }
  void Answer(const std::string& call, const std::string& output, int status = 0) {
    answers_[call] = ProgramEnd{status, output};
  }
  VolumeSpec Spec(bool read_only = false) const {
    return VolumeSpec::FromPersistentVolume(volume_, read_only);
  }
  Status MountDevice(const std::string& device) {
    const auto mounter = plugin_->NewDeviceMounter().value();
    return mounter->MountDevice(Spec(), device, mounter->GetDeviceMountPath(Spec()).value(), {});
  }
  Status UnmountDevice() {
    return plugin_->NewDeviceUnmounter().value()->UnmountDevice({"/r", kDevicePlace + 3}, {});
  }
  std::unique_ptr<Mounter> MounterFor(const VolumeSpec& spec) {
    Pod pod = MakePod();
    pod.metadata.name_space = "default";
    kernel_.AddDirectory("/r/pods/u1/volumes", 0750);
    return plugin_->NewMounter(spec, TargetOf(world_.paths, *plugin_, spec, pod)).value();
  }
  Status SetUp1(const MounterArgs& args = {}) { return MounterFor(Spec())->SetUp(args); }
  Status TearDown1() {
    return plugin_->NewUnmounter(SpecName("disk"), PodUid("u1")).value()->TearDown({});
  }
  std::vector<std::string> Commands() const {
    std::vector<std::string> commands;
    for (const auto& call : calls_) commands.push_back(call.front());
    return commands;
  }
  static constexpr const char* kPodPlace = "/r/pods/u1/volumes/v.io~d/disk";

  FakeKernel kernel_;
  PluginWorld world_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  MemoryFormatIntents intents_;
  std::shared_ptr<FlexVolumeDriver> driver_;
  std::unique_ptr<FlexVolumePlugin> plugin_;
  PersistentVolume volume_;
  std::map<std::string, ProgramEnd> answers_;
  std::vector<std::vector<std::string>> calls_;
};

// ---- what it is ---------------------------------------------------------------------------------

TEST_F(FlexVolumeTest, ItIsCalledAsItsDriverAndHasItsVolumes) {
  EXPECT_EQ(plugin_->GetPluginName(), "v.io/d");
  EXPECT_TRUE(plugin_->CanSupport(Spec()));
  EXPECT_EQ(plugin_->GetVolumeName(Spec()).value(), "disk");
  FlexVolumeSource other;
  other.driver = "v.io/other";
  const VolumeSpec foreign = VolumeSpec::FromVolume({"x", other});
  EXPECT_FALSE(plugin_->CanSupport(foreign));
  EXPECT_FALSE(plugin_->GetVolumeName(foreign).ok());
  EXPECT_FALSE(
      plugin_->NewMounter(foreign, TargetOf(world_.paths, *plugin_, foreign, MakePod())).ok());
  EXPECT_EQ(plugin_->FaultDomain(Spec()), "flexvolume/v.io/d");
}

TEST_F(FlexVolumeTest, InlineVolumesOfOneNameAndOtherOptionsAreOtherVolumes) {
  const auto inline_volume = [](const std::string& image, bool read_only) {
    FlexVolumeSource source;
    source.driver = kDriver;
    source.read_only = read_only;
    source.options = {{"image", image}};
    return VolumeSpec::FromVolume({"data", source});
  };
  const std::string one = plugin_->GetVolumeName(inline_volume("/1", false)).value();
  EXPECT_EQ(plugin_->GetVolumeName(inline_volume("/1", true)).value(), one);
  EXPECT_NE(plugin_->GetVolumeName(inline_volume("/2", false)).value(), one);
  EXPECT_THAT(one, testing::StartsWith("data-"));
  const auto attacher = plugin_->AsAttachable()->NewAttacher().value();
  ASSERT_TRUE(attacher->Attach(inline_volume("/1", false), NodeName("n1"), {}).ok());
  EXPECT_THAT(calls_.at(1).at(1), HasSubstr("\"kubernetes.io/pvOrVolumeName\":\"" + one + "\""))
      << "detach gets the name that attach got";
  EXPECT_THAT(attacher->GetDeviceMountPath(inline_volume("/1", false)).value().Display(),
              testing::EndsWith("/mounts/" + one));
}

TEST_F(FlexVolumeTest, OnlyADriverThatAttachesHasDevices) {
  ASSERT_NE(plugin_->AsAttachable(), nullptr);
  EXPECT_TRUE(plugin_->AsAttachable()->CanAttach(Spec()).value());
  ASSERT_NE(plugin_->AsDeviceMountable(), nullptr);
  EXPECT_TRUE(plugin_->AsDeviceMountable()->CanDeviceMount(Spec()).value());
  MakePlugin({.attach = false});
  EXPECT_EQ(plugin_->AsAttachable(), nullptr);
  EXPECT_EQ(plugin_->AsDeviceMountable(), nullptr);
}

TEST_F(FlexVolumeTest, AfterARestartItIsAnInlineVolumeOfTheDriver) {
  const auto volume = plugin_->ConstructVolumeSpec(SpecName("disk"), {}, {});
  ASSERT_TRUE(volume.ok());
  EXPECT_TRUE(plugin_->CanSupport(volume->spec));
  EXPECT_EQ(volume->spec.name().str(), "disk");
}

// ---- what the driver is told --------------------------------------------------------------------

TEST_F(FlexVolumeTest, TheCallsHaveKubeletsArguments) {
  SetSource({{"size", "1"}});
  Answer("attach", R"({"status":"Success","device":"/dev/vdb"})");
  const auto attacher = plugin_->AsAttachable()->NewAttacher().value();
  EXPECT_EQ(attacher->Attach(Spec(), NodeName("n1"), {}).value(), "/dev/vdb");
  EXPECT_EQ(attacher->WaitForAttach(Spec(), "/dev/vdb", MakePod(), {}).value(), "/dev/vdb");
  const std::string options = R"({"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"disk",)"
                              R"("kubernetes.io/readwrite":"rw","size":"1"})";
  EXPECT_THAT(calls_, ElementsAre(ElementsAre("getvolumename", options),
                                  ElementsAre("attach", options, "n1"),
                                  ElementsAre("waitforattach", "/dev/vdb", options)));
  calls_.clear();
  EXPECT_EQ(attacher->VolumesAreAttached({Spec()}, NodeName("n1"), {}).value(),
            std::vector<bool>{true})
      << "a driver that does not know it is not asked again, and the volume is attached";
  ASSERT_TRUE(
      plugin_->AsAttachable()->NewDetacher().value()->Detach("disk", NodeName("n1"), {}).ok());
  EXPECT_THAT(calls_, ElementsAre(ElementsAre("isattached", options, "n1"),
                                  ElementsAre("detach", "disk", "n1")));
  EXPECT_FALSE(plugin_->AsAttachable()->VerifiesAttachments());
}

TEST_F(FlexVolumeTest, TheNodeTakesAsManyAsItsAdministratorHasSetOfADriverThatAttaches) {
  MakePlugin({.attach = false});
  EXPECT_EQ(plugin_->AsWithAttachLimits(), nullptr) << "it attaches nothing";
  AttachLimitSettings limits;
  limits.Set({{kDriver, 4}});
  FlexVolumePlugin plugin(driver_, {.attach = true}, {}, &limits);
  VolumePluginWithAttachLimits& limited = *plugin.AsWithAttachLimits();
  EXPECT_EQ(limited.GetVolumeLimits()->at(limited.VolumeLimitKey(Spec())), 4);
}

TEST_F(FlexVolumeTest, MountIsToldOfThePodItsGroupAndItsSecret) {
  world_.objects.PutSecret("s", {{"user", "x&y"}}, kDriver);
  SetSource({{"kubernetes.io/readwrite", "mine"}}, SecretReference{"s", ""});
  Answer("mount", kSuccess);
  ASSERT_TRUE(SetUp1(WithGroup(3000)).ok());
  ASSERT_EQ(calls_.size(), 1u);
  EXPECT_EQ(calls_[0].at(1), kPodPlace);
  const auto options = nlohmann::json::parse(calls_[0].at(2));
  EXPECT_EQ(options["kubernetes.io/mounterArgs.FsGroup"], "3000");
  EXPECT_EQ(options["kubernetes.io/pod.name"], "web-1");
  EXPECT_EQ(options["kubernetes.io/pod.namespace"], "default");
  EXPECT_EQ(options["kubernetes.io/pod.uid"], "u1");
  EXPECT_EQ(options["kubernetes.io/serviceAccount.name"], "robot");
  EXPECT_EQ(options["kubernetes.io/secret/user"], Base64Encode("x&y"));
  EXPECT_EQ(options["kubernetes.io/readwrite"], "mine") << "the volume's own options win";
}

TEST_F(FlexVolumeTest, ASecretIsShownToNobodyButTheDriver) {
  constexpr char kCanary[] = "canary-7f3a\n";
  constexpr char kPart[] = "canary";
  world_.objects.PutSecret("s", {{"key", kCanary}, {"part", kPart}}, kDriver);
  SetSource({}, SecretReference{"s", "default"});
  for (const std::string& said :
       {std::string("canary-7f3a"), Base64Encode(kCanary), std::string("a canary")}) {
    Answer("mount", R"({"status":"Failure","message":"refused: )" + said + "\"}", 1);
    const Status failed = SetUp1();
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error().message(), HasSubstr("[redacted]"));
    EXPECT_THAT(failed.error().message(), Not(HasSubstr("canary")));
    EXPECT_THAT(failed.error().message(), Not(HasSubstr("7f3a")));
    EXPECT_THAT(failed.error().message(), Not(HasSubstr(Base64Encode(kCanary))));
  }
  EXPECT_THAT(kernel_.CallLogText(), Not(HasSubstr(Base64Encode(kCanary))));
  EXPECT_THAT(kernel_.CallLogText(), Not(HasSubstr("canary")));
}

TEST_F(FlexVolumeTest, OfTwoSecretsThatOverlapTheEndOfOneWasShown) {
  world_.objects.PutSecret("s", {{"one", "canary"}, {"two", "nary-7f3a"}}, kDriver);
  SetSource({}, SecretReference{"s", "default"});
  Answer("mount", R"({"status":"Failure","message":"refused: canary-7f3a, really"})", 1);
  const Status failed = SetUp1();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message(), HasSubstr("refused: [redacted], really"));
}

TEST_F(FlexVolumeTest, ASecretOfAnotherTypeIsNotGivenToTheDriver) {
  world_.objects.PutSecret("s", {{"user", "x"}});
  SetSource({}, SecretReference{"s", ""});
  const Status refused = SetUp1();
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_EQ(refused.error().message(),
            "secret default/s has type \"Opaque\": only one of type \"v.io/d\" is given to that "
            "driver");
  EXPECT_TRUE(refused.error().IsAbout("Secret default/s")) << "its owner is named";
  EXPECT_FALSE(kernel_.Exists(kPodPlace));
  EXPECT_THAT(calls_, IsEmpty());
}

// ---- who mounts ---------------------------------------------------------------------------------

TEST_F(FlexVolumeTest, WithoutMountdeviceANewDiskIsFormattedByTheRulesOfAll) {
  kernel_.AddDevice(kDisk);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  EXPECT_TRUE(kernel_.IsMountPoint(kDevicePlace));
  EXPECT_EQ(kernel_.Device(kDisk).formats, 1);
  ASSERT_TRUE(SetUp1().ok());
  EXPECT_TRUE(kernel_.IsMountPoint(kPodPlace));
  EXPECT_THAT(plugin_->GetDeviceMountRefs({kDevicePlace, ""}, {}).value(), ElementsAre(kPodPlace));
  ASSERT_TRUE(TearDown1().ok());
  ASSERT_TRUE(UnmountDevice().ok());
  EXPECT_FALSE(kernel_.Exists(kPodPlace));
  EXPECT_FALSE(kernel_.Exists(kDevicePlace));
  EXPECT_THAT(Commands(), ElementsAre("mountdevice", "mount", "unmount", "unmountdevice"));
  calls_.clear();
  ASSERT_TRUE(MountDevice(kDisk).ok());
  EXPECT_EQ(kernel_.Device(kDisk).formats, 1);
  ASSERT_TRUE(SetUp1().ok());
  EXPECT_THAT(Commands(), IsEmpty()) << "what it does not support it is not asked again";
}

TEST_F(FlexVolumeTest, ADiskWithSomebodysFilesystemIsNotFormatted) {
  FakeDevice device;
  device.fs_type = "xfs";
  device.usage = "filesystem";
  kernel_.AddDevice(kDisk, device);
  volume_.spec.source = [] {
    FlexPersistentVolumeSource source;
    source.driver = kDriver;
    source.fs_type = "ext4";
    return source;
  }();
  const Status refused = MountDevice(kDisk);
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(kernel_.Device(kDisk).formats, 0);
  EXPECT_FALSE(kernel_.Exists(kDevicePlace));
}

TEST_F(FlexVolumeTest, ADriverThatMountsIsLeftToIt) {
  kernel_.AddDevice(kDisk);
  Answer("mountdevice", kSuccess);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  EXPECT_EQ(kernel_.Device(kDisk).formats, 0);
  EXPECT_THAT(calls_.at(0), ElementsAre("mountdevice", kDevicePlace, kDisk, testing::_));
}

TEST_F(FlexVolumeTest, WithoutMountAndWithoutADeviceNothingIsBound) {
  const Status refused = SetUp1();
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(refused.error().message(),
              HasSubstr("has no mount, and nothing is mounted at " + std::string(kDevicePlace)));
  EXPECT_FALSE(kernel_.Exists(kPodPlace));
}

TEST_F(FlexVolumeTest, AReadersBindIsReadOnly) {
  kernel_.AddDevice(kDisk);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  const auto mounter = MounterFor(Spec(true));
  ASSERT_TRUE(mounter->SetUp({}).ok());
  EXPECT_TRUE(FindMountAt(kernel_, kPodPlace, {}).value()->read_only());
  EXPECT_TRUE(mounter->GetAttributes().read_only);
  EXPECT_FALSE(mounter->GetAttributes().managed);
}

TEST_F(FlexVolumeTest, TheGroupIsAppliedUnlessTheDriverSaysOtherwise) {
  Answer("mount", kSuccess);
  ASSERT_TRUE(SetUp1(WithGroup(3000)).ok());
  EXPECT_EQ(kernel_.Find(kPodPlace).gid, 3000u);
  ASSERT_TRUE(TearDown1().ok());
  MakePlugin({.attach = false, .fs_group = false});
  ASSERT_TRUE(SetUp1(WithGroup(4000)).ok());
  EXPECT_EQ(kernel_.Find(kPodPlace).gid, 0u);
}

TEST_F(FlexVolumeTest, MetricsAreThoseOfTheFilesystemWhereTheDriverSaysSo) {
  Answer("mount", kSuccess);
  ASSERT_TRUE(SetUp1().ok());
  EXPECT_FALSE(MounterFor(Spec())->GetMetrics({}).ok());
  MakePlugin({.supports_metrics = true});
  EXPECT_TRUE(MounterFor(Spec())->GetMetrics({}).ok());
}

TEST_F(FlexVolumeTest, APlaceOfSomebodyElseIsNotUnmounted) {
  const Status refused = plugin_->NewDeviceUnmounter().value()->UnmountDevice(
      {"/r", "plugins/kubernetes.io/flexvolume/v.io/other/mounts/disk"}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(calls_, IsEmpty());
}

// ---- what failures mean -------------------------------------------------------------------------

TEST_F(FlexVolumeTest, WhatFailedMayHaveBeenDoneUnlessItOnlyAsks) {
  const auto attacher = plugin_->AsAttachable()->NewAttacher().value();
  Answer("attach", kFailure, 1);
  const auto failed = attacher->Attach(Spec(), NodeName("n1"), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_TRUE(failed.error().maybe_applied());
  EXPECT_EQ(failed.error().message(),
            "flexVolume driver v.io/d: attach failed: status: Failure, reason: no such array");
  MakePlugin({});  // which has not heard yet that it is not supported
  Answer("getvolumename", kFailure, 1);
  const auto asked =
      plugin_->AsAttachable()->NewAttacher().value()->Attach(Spec(), NodeName("n1"), {});
  ASSERT_FALSE(asked.ok());
  EXPECT_FALSE(asked.error().maybe_applied());
  EXPECT_THAT(asked.error().message(), HasSubstr("getvolumename failed"));
}

TEST_F(FlexVolumeTest, ADriverThatBreaksItsWordIsAnError) {
  const auto failure = [&](const std::string& output, int status) {
    Answer("detach", output, status);
    const Status done =
        plugin_->AsAttachable()->NewDetacher().value()->Detach("disk", NodeName("n1"), {});
    EXPECT_FALSE(done.ok());
    if (done.ok()) return std::string();
    EXPECT_TRUE(done.error().maybe_applied());
    return done.error().message();
  };
  EXPECT_THAT(failure("", 0), HasSubstr("ended with exit status 0: it printed nothing"));
  EXPECT_THAT(failure("Segmentation fault", 139), HasSubstr("exit status 139: what it printed"));
  EXPECT_THAT(failure(kSuccess, 3), HasSubstr("says \"Success\", and ended with exit status 3"));
}

TEST_F(FlexVolumeTest, AMountThatFailedMayBeThere) {
  Answer("mount", kFailure, 1);
  const Status failed = SetUp1();
  ASSERT_FALSE(failed.ok());
  EXPECT_TRUE(failed.error().maybe_applied());
  EXPECT_TRUE(kernel_.Exists(kPodPlace)) << "teardown asks the driver to take it away";
  Answer("unmount", kSuccess);
  EXPECT_TRUE(TearDown1().ok());
  EXPECT_FALSE(kernel_.Exists(kPodPlace));
}

// A pod's volume went back to "set up", and the pod wrote into the directory that was left.
TEST_F(FlexVolumeTest, WhatTheDriverHasUnmountedWasSaidToBeMountedStill) {
  Answer("mount", kSuccess);
  Answer("unmount", kSuccess);
  Answer("mountdevice", kSuccess);
  Answer("unmountdevice", kSuccess);
  ASSERT_TRUE(SetUp1().ok());
  kernel_.FailNext("Unmount", EBUSY, Outcome::kNotApplied);
  const Status pod = TearDown1();
  ASSERT_FALSE(pod.ok());
  EXPECT_EQ(pod.error().sys_errno(), EBUSY);
  EXPECT_TRUE(pod.error().maybe_applied());
  kernel_.AddDevice(kDisk);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  kernel_.AddMount("ext4", kDisk, kDevicePlace);
  kernel_.FailNext("Unmount", EBUSY, Outcome::kNotApplied);
  const Status device = UnmountDevice();
  ASSERT_FALSE(device.ok());
  EXPECT_TRUE(device.error().maybe_applied());
}

TEST_F(FlexVolumeTest, AnUnmountThatTheDriverLeavesToTheAgentMayFailWithoutAnEffect) {
  Answer("mount", kSuccess);
  ASSERT_TRUE(SetUp1().ok());
  kernel_.FailNext("Unmount", EBUSY, Outcome::kNotApplied);
  const Status failed = TearDown1();
  ASSERT_FALSE(failed.ok());
  EXPECT_FALSE(failed.error().maybe_applied());
}

TEST_F(FlexVolumeTest, AMissingDriverIsNamedAndStopsNoUnmount) {
  kernel_.AddDevice(kDisk);
  Answer("unmount", kSuccess);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  ASSERT_TRUE(SetUp1().ok());
  kernel_.Remove(kExecutable);
  const Status detached =
      plugin_->AsAttachable()->NewDetacher().value()->Detach("disk", NodeName("n1"), {});
  ASSERT_FALSE(detached.ok());
  EXPECT_EQ(detached.error().code(), Code::kNotFound);
  EXPECT_FALSE(detached.error().maybe_applied());
  EXPECT_EQ(detached.error().message(),
            "flexVolume driver v.io/d: detach failed: it is not installed: /exec/v.io~d/d is "
            "missing");
  EXPECT_TRUE(TearDown1().ok());
  EXPECT_TRUE(UnmountDevice().ok());
  EXPECT_FALSE(kernel_.Exists(kDevicePlace));
}

TEST_F(FlexVolumeTest, ADriverThatOthersMayChangeIsNotRun) {
  const auto refusal = [&] {
    const Status refused = driver_->CheckMayBeRun({});
    EXPECT_FALSE(refused.ok());
    EXPECT_FALSE(
        plugin_->AsAttachable()->NewDetacher().value()->Detach("disk", NodeName("n1"), {}).ok());
    EXPECT_THAT(calls_, IsEmpty());
    return refused.ok() ? "" : refused.error().message();
  };
  kernel_.SetAttributes(kExecutable, 0775, 0, 0);
  EXPECT_EQ(refusal(), "it is not run: /exec/v.io~d/d may be written by others than root");
  kernel_.SetAttributes(kExecutable, 0755, 1000, 0);
  EXPECT_EQ(refusal(), "it is not run: /exec/v.io~d/d belongs to uid 1000, not to root");
  kernel_.SetAttributes(kExecutable, 0755, 0, 0);
  kernel_.SetAttributes("/exec/v.io~d", 0757, 0, 0);
  EXPECT_EQ(refusal(), "it is not run: /exec/v.io~d may be written by others than root");
  kernel_.SetAttributes("/exec/v.io~d", 0755, 0, 0);
  kernel_.SetAttributes("/exec", 0777, 0, 0);
  EXPECT_EQ(refusal(), "it is not run: /exec may be written by others than root");
  kernel_.SetAttributes("/exec", 0755, 0, 0);
  EXPECT_TRUE(driver_->CheckMayBeRun({}).ok());
  kernel_.Remove(kExecutable);
  kernel_.AddSymlink(kExecutable, "/bin/sh");
  EXPECT_THAT(refusal(), HasSubstr("/exec/v.io~d/d is a "));
}

TEST_F(FlexVolumeTest, OneVolumeThatCannotBeAskedAboutLeavesTheOthersAlone) {
  Answer("isattached", R"({"status":"Success","attached":false})");
  const auto attacher = plugin_->AsAttachable()->NewAttacher().value();
  EXPECT_EQ(attacher->VolumesAreAttached({Spec()}, NodeName("n1"), {}).value(),
            std::vector<bool>{false});
  Answer("isattached", kFailure, 1);
  EXPECT_EQ(attacher->VolumesAreAttached({Spec(), Spec()}, NodeName("n1"), {}).value(),
            (std::vector<bool>{true, true}));
}

TEST_F(FlexVolumeTest, ADriverThatHangsIsLeftAtTheDeadline) {
  kernel_.Hang(kExecutable);
  CallOptions call;
  call.deadline = Deadline::After(world_.clock, std::chrono::seconds(5));
  kernel_.SetHangHook(
      [&](const AnyRequest&, Deadline deadline) { world_.clock.AdvanceTo(deadline.when()); });
  const auto attacher = plugin_->AsAttachable()->NewAttacher().value();
  const auto attached = attacher->VolumesAreAttached({Spec(), Spec()}, NodeName("n1"), call);
  ASSERT_FALSE(attached.ok()) << "the time is over";
  EXPECT_FALSE(attached.error().maybe_applied());
}

// ---- expansion ----------------------------------------------------------------------------------

TEST_F(FlexVolumeTest, AVolumeGrowsByItsDriverAndItsFilesystemByTheKernel) {
  constexpr int64_t kGi = int64_t{1} << 30;
  FakeDevice device;
  device.identity.size_bytes = kGi;
  kernel_.AddDevice(kDisk, device);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  NodeResizeOptions options{.spec = Spec(),
                            .device_path = "",
                            .device_mount_path = {kDevicePlace, ""},
                            .device_stage_path = {},
                            .new_size = Quantity::FromBytes(2 * kGi),
                            .old_size = Quantity::FromBytes(kGi)};
  NodeExpandableVolumePlugin* expander = plugin_->AsNodeExpandable();
  ASSERT_NE(expander, nullptr);
  EXPECT_TRUE(expander->RequiresFsResize());
  calls_.clear();
  const auto small = expander->NodeExpand(options, {});
  ASSERT_FALSE(small.ok()) << "the device has not grown";
  EXPECT_THAT(Commands(), ElementsAre("expandvolume", "expandfs"));
  EXPECT_THAT(calls_.at(0),
              ElementsAre("expandvolume", testing::_, kDevicePlace, "2147483648", "1073741824"));
  EXPECT_THAT(calls_.at(1),
              ElementsAre("expandfs", testing::_, kDisk, kDevicePlace, "2147483648", "1073741824"));
  kernel_.ChangeDevice(kDisk, [](FakeDevice& disk) {
    disk.fs_bytes = kGi;
    disk.identity.size_bytes = 2 * kGi;
  });
  EXPECT_TRUE(expander->NodeExpand(options, {}).value());
  EXPECT_EQ(kernel_.Device(kDisk).fs_bytes, 2 * kGi);
}

// A claim whose growth certainly failed may be made smaller again: the driver was then told to
// expand a volume that was larger already.
TEST_F(FlexVolumeTest, AVolumeThatTheDriverHasGrownWasSaidNotToBe) {
  kernel_.AddDevice(kDisk);
  ASSERT_TRUE(MountDevice(kDisk).ok());
  const NodeResizeOptions options = TwiceAsLarge();
  NodeExpandableVolumePlugin& expander = *plugin_->AsNodeExpandable();
  const auto is_maybe_applied = [&](const char* failing) {
    kernel_.FailNext(failing, EIO, Outcome::kNotApplied);
    const auto grown = expander.NodeExpand(options, {});
    EXPECT_FALSE(grown.ok()) << failing;
    return !grown.ok() && grown.error().maybe_applied();
  };
  Answer("expandvolume", kSuccess);
  EXPECT_TRUE(is_maybe_applied("ListMounts"));
  EXPECT_TRUE(is_maybe_applied("ProbeDevice"));
  Answer("expandvolume", kUnsupported, 1);
  EXPECT_FALSE(is_maybe_applied("ProbeDevice")) << "nobody has made it larger";
}

TEST_F(FlexVolumeTest, ADriverThatSaysLessThanWasAskedForHasNotGrownTheVolume) {
  Answer("expandvolume", R"({"status":"Success","volumeNewSize":100})");
  MakePlugin({.requires_fs_resize = false});
  const NodeResizeOptions options = TwiceAsLarge();
  EXPECT_FALSE(plugin_->AsNodeExpandable()->NodeExpand(options, {}).ok());
  Answer("expandvolume", R"({"status":"Success","volumeNewSize":200})");
  EXPECT_TRUE(plugin_->AsNodeExpandable()->NodeExpand(options, {}).value());
  EXPECT_THAT(Commands(), ElementsAre("expandvolume", "expandvolume"));
}

}  // namespace
}  // namespace volumed
