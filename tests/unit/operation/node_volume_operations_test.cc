#include "operation/node_volume_operations.h"

#include <gtest/gtest.h>

#include <cerrno>

#include <memory>

#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "fakes/target_of.h"
#include "metrics/exported_families.h"
#include "operation/mount_operations.h"
#include "unit/operation/load_records.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/scripted_plugin.h"
#include "unit/operation/stub_host.h"
#include "unit/operation/usual_errors.h"

namespace volumed {
namespace {

class NodeVolumeOperationsTest : public ::testing::Test {
 protected:
  NodeVolumeOperationsTest() {
    kernel_.AddDirectory(kRoot + "/pods", 0750);
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<ScriptedPlugin>(script_));
    EXPECT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
    Restart("boot-a");
  }

  // A new agent on the same kernel and store.
  void Restart(const std::string& boot) {
    operations_.reset();
    devices_ = std::make_unique<DeviceRecordKeeper>(store_, scheduler_.clock(), logger_, observer_,
                                                    BootId(boot));
    storage_ =
        std::make_unique<StorageGuard>(kernel_, store_, scheduler_.clock(), logger_, BootId(boot));
    OperationParts parts{plugins_, host_, logger_, store_, *devices_, *storage_};
    parts.unrecorded = unrecorded_;
    operations_ =
        std::make_unique<NodeVolumeOperations>(scheduler_, parts, observer_, BootId(boot));
    operations_->Restore(LoadPodVolumeRecords(store_), {});
  }

  static VolumeTarget TargetOfPod(PodPtr pod) {
    return PodVolumeTarget(KubeletPaths(kRoot), std::move(pod), kScriptedPlugin, SpecName("data"));
  }
  static MountRequest Request(VolumeSource source = EmptyDirVolumeSource{}) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.name = "web";
    pod->metadata.uid = "uid-1";
    PodVolume volume;
    volume.name = "data";
    volume.source = std::move(source);
    const VolumeSpec spec = VolumeSpec::FromVolume(volume);
    return {.target = TargetOfPod(pod), .spec = spec, .sub_paths = {}, .nested_mount_points = {}};
  }
  OperationOutcome<MountedVolume> Mount(MountRequest request = Request()) {
    OperationOutcome<MountedVolume> outcome;
    int done = 0;
    operations_->ResetBackoff(key_);
    EXPECT_EQ(operations_->Start(MountVolume(std::move(request)),
                                 [&](OperationOutcome<MountedVolume> got) {
                                   outcome = std::move(got);
                                   ++done;
                                 }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    EXPECT_EQ(done, 1);
    return outcome;
  }
  std::optional<OperationFailure> Unmount() {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff(key_);
    EXPECT_EQ(operations_->Start(UnmountVolume({PodUid("uid-1"), SpecName("data"), kScriptedPlugin,
                                                "default/web"}),
                                 [&](OperationOutcome<Unit> got) {
                                   EXPECT_NE(got.value.has_value(), got.failure.has_value());
                                   failure = got.failure;
                                 }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return failure;
  }
  std::optional<OperationFailure> RemovePod(PodRecordEnd record = PodRecordEnd::kRemove) {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff({PodUid("uid-1"), SpecName()});
    EXPECT_EQ(operations_->Start(volumed::RemovePod(PodUid("uid-1"), "default/web", record),
                                 [&](OperationOutcome<Unit> got) { failure = got.failure; }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return failure;
  }
  std::string StoredState() const {
    const auto row = store_.Find(kPodVolumeRecordKind, RecordKey(key_));
    if (!row) return "none";
    const PodVolumeRecord record = DecodePodVolumeRecord(*row).value();
    return std::string(VolumeStateName(record.state)) + (record.uncertain ? "*" : "");
  }
  std::string State() const {
    const auto record = operations_->FindRecord(key_);
    if (!record) return "none";
    return std::string(VolumeStateName(record->state)) + (record->uncertain ? "*" : "");
  }

  const PodVolumeKey key_ = Key("uid-1", "data");
  SimulatedScheduler scheduler_{7};
  FakeKernel kernel_;
  MemoryRecordStore store_;
  StubHostParts parts_;
  KubeletPaths paths_{kRoot};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, scheduler_.clock(), parts_,       parts_,
                   parts_, parts_,  families_,          irreversible_};
  PluginScript script_;
  VolumePluginMgr plugins_;
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  std::shared_ptr<UnrecordedMounts> unrecorded_ = std::make_shared<UnrecordedMounts>();
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<NodeVolumeOperations> operations_;
};

TEST_F(NodeVolumeOperationsTest, MountsAndTellsWhere) {
  const auto outcome = Mount();
  ASSERT_TRUE(outcome.value) << outcome.failure->error.ToString();
  EXPECT_EQ(outcome.value->plugin_name, kScriptedPlugin);
  EXPECT_EQ(outcome.value->host_path, kVolumeDir);
  EXPECT_TRUE(outcome.value->attributes.managed);
  EXPECT_EQ(outcome.value->freshness, (Freshness{1, 4711}));
  EXPECT_TRUE(kernel_.IsMountPoint(kVolumeDir));
  EXPECT_EQ(kernel_.Find(kPodDir).mode, 0750u);
  EXPECT_EQ(kernel_.Find(kPodDir + "/plugins").mode, 0750u);
  EXPECT_EQ(StoredState(), "SetUp");
  ASSERT_EQ(observer_.finished.size(), 1u);
  EXPECT_EQ(observer_.finished[0].operation, "volume_mount");
  EXPECT_EQ(observer_.finished[0].plugin_name, kScriptedPlugin);
  EXPECT_TRUE(parts_.events.empty());
}

TEST_F(NodeVolumeOperationsTest, NoEffectIsMadeBeforeItsIntentIsRecorded) {
  std::vector<std::string> states;
  kernel_.SetCallHook([&](const AnyRequest&) { states.push_back(StoredState()); });
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  kernel_.SetCallHook(nullptr);
  ASSERT_GE(states.size(), 6u);
  bool tearing_down = false;
  for (const std::string& state : states) {
    tearing_down = tearing_down || state == "TearingDown";
    EXPECT_EQ(state, tearing_down ? "TearingDown" : "SettingUp");
  }
  EXPECT_TRUE(tearing_down);
  EXPECT_EQ(StoredState(), "none");
  EXPECT_FALSE(kernel_.Exists(kVolumeDir));
}

TEST_F(NodeVolumeOperationsTest, ThePluginGetsThePodsUsersDeadlineKeyAndDomain) {
  script_.fault_domain = "/srv/nfs";
  MountRequest request = Request();
  auto pod = std::make_shared<Pod>(*request.target.pod);
  pod->spec.security_context.fs_group = 2000;
  pod->spec.security_context.fs_group_change_policy = FsGroupChangePolicy::kOnRootMismatch;
  pod->spec.security_context.run_as_user = 1000;
  pod->spec.containers.resize(2);
  request.target = TargetOfPod(pod);
  request.nested_mount_points = {"a/b"};
  request.reconstructed = true;
  ASSERT_TRUE(Mount(request).value);
  ASSERT_EQ(script_.set_ups.size(), 1u);
  const MounterArgs& args = script_.set_ups[0];
  EXPECT_EQ(args.fs_user, 1000);
  EXPECT_EQ(args.fs_group, 2000);
  EXPECT_EQ(args.fs_group_change_policy, FsGroupChangePolicy::kOnRootMismatch);
  EXPECT_EQ(args.nested_mount_points, std::vector<std::string>{"a/b"});
  EXPECT_TRUE(args.reconstructed_volume);
  EXPECT_FALSE(args.is_remount);
  EXPECT_EQ(args.call.key, "uid-1/data");
  EXPECT_EQ(args.call.domain, "/srv/nfs");
  EXPECT_EQ(args.call.deadline.Remaining(scheduler_.clock()), std::chrono::seconds(123));

  // Containers that do not agree have no common user.
  pod = std::make_shared<Pod>(*pod);
  pod->spec.containers[1].security_context.run_as_user = 1001;
  request.target = TargetOfPod(pod);
  ASSERT_TRUE(Mount(request).value);
  EXPECT_EQ(script_.set_ups[1].fs_user, std::nullopt);

  // Teardown hangs with the same, also after a restart and without being told.
  Restart("boot-a");
  std::string domain;
  script_.on_tear_down = [&](const CallOptions& call) { domain = call.domain; };
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(domain, "/srv/nfs");
}

TEST_F(NodeVolumeOperationsTest, TheRecordHoldsWhatATeardownNeeds) {
  ASSERT_TRUE(Mount(Request(SecretVolumeSource{.secret_name = "db", .items = {}})).value);
  const PodVolumeRecord record =
      DecodePodVolumeRecord(*store_.Find(kPodVolumeRecordKind, "uid-1/data")).value();
  EXPECT_EQ(record.pod_namespace, "default");
  EXPECT_EQ(record.pod_name, "web");
  EXPECT_EQ(record.plugin_name, kScriptedPlugin);
  EXPECT_EQ(record.boot_id, BootId("boot-a"));
  EXPECT_EQ(record.volume_json, "") << "nobody asks for the source of a secret again";
  script_.fault_domain = "/srv/nfs";
  ASSERT_FALSE(Unmount());
  ASSERT_TRUE(Mount(Request(SecretVolumeSource{.secret_name = "db", .items = {}})).value);
  const PodVolumeRecord far =
      DecodePodVolumeRecord(*store_.Find(kPodVolumeRecordKind, "uid-1/data")).value();
  EXPECT_NE(far.volume_json.find("\"db\""), std::string::npos) << "it may have storage";
}

TEST_F(NodeVolumeOperationsTest, ARefusedSetUpLeavesNoRecordAndTellsTheUser) {
  script_.set_up_error = kRefusal;
  const auto outcome = Mount();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->operation, "volume_mount");
  EXPECT_EQ(outcome.failure->step, "SetUp");
  EXPECT_EQ(outcome.failure->error, kRefusal);
  EXPECT_EQ(StoredState(), "none");
  EXPECT_EQ(parts_.events,
            (std::vector<std::string>{
                "uid-1 FailedMount MountVolume.SetUp failed for volume \"data\" : refused"}));
  EXPECT_TRUE(operations_->NextTry(key_));
}

TEST_F(NodeVolumeOperationsTest, ASetUpThatMayHaveHappenedIsUncertainUntilItIsDoneOrUndone) {
  script_.set_up_error_after = kTimedOut;
  ASSERT_TRUE(Mount().failure);
  EXPECT_EQ(StoredState(), "SettingUp*");
  EXPECT_TRUE(kernel_.IsMountPoint(kVolumeDir));
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(StoredState(), "none");
  EXPECT_FALSE(kernel_.Exists(kVolumeDir));

  ASSERT_TRUE(Mount().failure);
  script_.set_up_error_after.reset();
  ASSERT_TRUE(Mount().value);
  EXPECT_EQ(StoredState(), "SetUp");
}

TEST_F(NodeVolumeOperationsTest, WhatNoPluginWantsFailsBeforeAnyRecord) {
  const auto outcome = Mount(Request(HostPathVolumeSource{.path = "/srv"}));
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->step, "FindPluginBySpec");
  EXPECT_EQ(store_.calls(), 0u);
  EXPECT_EQ(parts_.events,
            (std::vector<std::string>{"uid-1 FailedMount MountVolume.FindPluginBySpec failed for "
                                      "volume \"data\" : no volume plugin matched"}));
  script_.new_mounter_error = kRefusal;
  EXPECT_EQ(Mount().failure->step, "NewMounter");
  EXPECT_NE(parts_.events[1].find("MountVolume.NewMounter initialization failed for volume"),
            std::string::npos);
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(NodeVolumeOperationsTest, AFailedRemountKeepsTheVolume) {
  ASSERT_TRUE(Mount().value);
  MountRequest remount = Request();
  remount.is_remount = true;
  for (const Error& error : {kRefusal, kTimedOut}) {
    script_.set_up_error = error;
    ASSERT_TRUE(Mount(remount).failure);
    EXPECT_TRUE(script_.set_ups.back().is_remount);
    EXPECT_EQ(State().substr(0, 5), "SetUp");
    EXPECT_TRUE(kernel_.IsMountPoint(kVolumeDir));
    EXPECT_EQ(script_.tear_downs, 0);
  }
  script_.set_up_error.reset();
  ASSERT_TRUE(Mount(remount).value);
  EXPECT_EQ(StoredState(), "SetUp");
}

TEST_F(NodeVolumeOperationsTest, ARemountOfAnUnchangedVolumeWritesNoRecord) {
  ASSERT_TRUE(Mount().value);
  const uint64_t writes = store_.calls();
  MountRequest remount = Request();
  remount.is_remount = true;
  ASSERT_TRUE(Mount(remount).value);
  EXPECT_EQ(store_.calls(), writes);
}

TEST_F(NodeVolumeOperationsTest, PreparesSubPathsAndUnmountsThemFirst) {
  MountRequest request = Request();
  request.sub_paths = {{.container = "app", .index = 2, .sub_path = "logs/today"}};
  const auto outcome = Mount(request);
  ASSERT_TRUE(outcome.value) << outcome.failure->error.ToString();
  const std::string place = kPodDir + "/volume-subpaths/data/app/2";
  ASSERT_EQ(outcome.value->sub_paths.size(), 1u);
  EXPECT_EQ(outcome.value->sub_paths[0], (SubPathMount{"app", 2, place}));
  EXPECT_TRUE(kernel_.IsMountPoint(place));

  script_.on_tear_down = [&](const CallOptions&) { EXPECT_FALSE(kernel_.IsMountPoint(place)); };
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(script_.tear_downs, 1);
  EXPECT_FALSE(kernel_.Exists(kPodDir + "/volume-subpaths"));
}

TEST_F(NodeVolumeOperationsTest, ATeardownGoesOnWhereTheDirectoriesOfSubPathsCannotGo) {
  MountRequest request = Request();
  request.sub_paths = {{.container = "app", .index = 0, .sub_path = "logs"}};
  ASSERT_TRUE(Mount(request).value);
  kernel_.FailNextBelow("RemoveDirectory", kPodDir + "/volume-subpaths",
                        Error::FromErrno(EROFS, "remove directory", Outcome::kNotApplied));
  const auto failure = Unmount();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "CleanSubPaths");
  EXPECT_EQ(script_.tear_downs, 1);
  EXPECT_EQ(StoredState(), "TearingDown*");
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(StoredState(), "none");
}

TEST_F(NodeVolumeOperationsTest, ASubPathThatCannotBeIsUncertainNotMounted) {
  MountRequest request = Request();
  request.sub_paths = {{.container = "app", .index = 0, .sub_path = "../etc"}};
  const auto outcome = Mount(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->step, "PrepareSubPaths");
  // The volume is there; the sub-path is not.
  EXPECT_TRUE(outcome.failure->error.maybe_applied());
  EXPECT_EQ(outcome.failure->step_outcome, Outcome::kNotApplied);
  EXPECT_NE(outcome.failure->error.message().find("container app"), std::string::npos);
  EXPECT_EQ(StoredState(), "SettingUp*");
}

TEST_F(NodeVolumeOperationsTest, ATeardownDoesNotBeginWhileSubPathsStay) {
  MountRequest request = Request();
  request.sub_paths = {{.container = "app", .index = 0, .sub_path = "logs"}};
  ASSERT_TRUE(Mount(request).value);
  kernel_.FailNext("Unmount", kRefusal);
  const auto failure = Unmount();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "UnmountSubPaths");
  EXPECT_EQ(script_.tear_downs, 0);
  EXPECT_EQ(StoredState(), "TearingDown*");
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(StoredState(), "none");
}

TEST_F(NodeVolumeOperationsTest, ARefusedTeardownIsToldAndTriedAgain) {
  ASSERT_TRUE(Mount().value);
  script_.tear_down_error = kTimedOut;
  const auto failure = Unmount();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->operation, "volume_unmount");
  EXPECT_EQ(failure->step, "TearDown");
  EXPECT_TRUE(parts_.events.empty());  // kubelet has no event for it
  EXPECT_EQ(StoredState(), "TearingDown*");
  script_.tear_down_error.reset();
  ASSERT_FALSE(Unmount());
}

TEST_F(NodeVolumeOperationsTest, AFullDiskStopsSetUpBeforeItsEffectAndNoTeardown) {
  store_.FailNext(kDiskFull, 1);
  const auto outcome = Mount();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->step, "RecordIntent");
  EXPECT_FALSE(outcome.failure->error.maybe_applied());
  EXPECT_EQ(kernel_.call_count(), 0u);

  ASSERT_TRUE(Mount().value);
  store_.FailNext(kDiskFull, 1000);
  ASSERT_FALSE(Unmount());
  EXPECT_FALSE(kernel_.Exists(kVolumeDir));
  EXPECT_EQ(StoredState(), "SetUp");  // what a restart would find, and take down again
  const auto removal = RemovePod();
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->step, "RemovePodRecord");
  EXPECT_FALSE(kernel_.Exists(kPodDir));
}

TEST_F(NodeVolumeOperationsTest, AfterAFullDiskTheRowsGoWithThePod) {
  ASSERT_TRUE(Mount().value);
  store_.FailNext(kDiskFull, 2);
  ASSERT_FALSE(Unmount());
  ASSERT_FALSE(RemovePod());
  EXPECT_TRUE(store_.All().empty());
}

TEST_F(NodeVolumeOperationsTest, RemovesThePodAndItsRecord) {
  ASSERT_TRUE(
      store_
          .Put(EncodeRecord(PodRecord{.uid = PodUid("uid-1"), .name = "web"}), kPodRecordDurability)
          .ok());
  ASSERT_TRUE(Mount().value);
  auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "CheckVolumes");
  EXPECT_NE(failure->error.message().find("\"data\" is still SetUp"), std::string::npos);
  EXPECT_TRUE(kernel_.IsMountPoint(kVolumeDir));

  ASSERT_FALSE(Unmount());
  failure = RemovePod();
  ASSERT_FALSE(failure) << failure->error.ToString();
  EXPECT_FALSE(kernel_.Exists(kPodDir));
  EXPECT_TRUE(store_.All().empty());
}

TEST_F(NodeVolumeOperationsTest, TheRecordOfADeletionByCommandStaysWhenTheDirectoriesGo) {
  const PodRecord deleted{.uid = PodUid("uid-1"), .name = "web", .terminating = true};
  ASSERT_TRUE(store_.Put(EncodeRecord(deleted), kPodRecordDurability).ok());
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  ASSERT_FALSE(RemovePod(PodRecordEnd::kKeep));
  EXPECT_FALSE(kernel_.Exists(kPodDir));
  ASSERT_EQ(store_.All().size(), 1u);
  EXPECT_EQ(store_.All()[0], EncodeRecord(deleted));
}

TEST_F(NodeVolumeOperationsTest, APodsRecordStaysAsLongAsForeignFilesDo) {
  ASSERT_TRUE(
      store_
          .Put(EncodeRecord(PodRecord{.uid = PodUid("uid-1"), .name = "web"}), kPodRecordDurability)
          .ok());
  kernel_.AddFile(kPodDir + "/notes.txt", "mine");
  const auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "RemovePodDirectories");
  EXPECT_NE(failure->error.message().find("notes.txt"), std::string::npos);
  EXPECT_EQ(store_.All().size(), 1u);
}

// It said that a directory is not empty, and below that was a volume of which no record told.
TEST_F(NodeVolumeOperationsTest, APodsRemovalDidNotNameTheMountThatItsDirectoryWaitsFor) {
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  UnrecordedMount lost;
  lost.plugin = kScriptedPlugin;
  lost.spec = SpecName("lost");
  lost.pod = PodUid("uid-1");
  lost.places = {kPodDir + "/volumes/kubernetes.io~csi/lost/mount"};
  kernel_.AddDirectory(lost.places.front(), 0750);
  kernel_.AddMount("ext4", "/dev/sdb", lost.places.front());
  kernel_.AddFile(kPodDir + "/volumes/kubernetes.io~csi/lost/vol_data.json", "{}");
  unrecorded_->Set({lost});
  const auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "RemovePodDirectories");
  EXPECT_EQ(failure->error.message().find("volume lost is mounted in pod uid-1, of which no record "
                                          "tells: " +
                                          lost.places.front()),
            0u)
      << failure->error.message();
  EXPECT_EQ(failure->error.message().find("start the agent anew"), std::string::npos)
      << "it goes on by itself: " << failure->error.message();
  EXPECT_TRUE(failure->error.IsAbout(kAboutUnrecordedMount));
  EXPECT_TRUE(kernel_.IsMountPoint(lost.places.front()));
}

// Neither the binds of the device were named nor that a start is needed after their unmount, so
// the link was removed by hand.
TEST_F(NodeVolumeOperationsTest, APodsRemovalDidNotNameTheBindsOfALostBlockVolume) {
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  UnrecordedMount lost;
  lost.plugin = kScriptedPlugin;
  lost.volume = UniqueVolumeName("scripted/lost");
  lost.spec = SpecName("lost");
  lost.is_map = lost.is_block = true;
  lost.places = {"/var/lib/volumed/plugins/x/dev", "/var/lib/volumed/plugins/x/publish"};
  std::vector<std::string> binds;
  for (const std::string& place : lost.places) {
    for (const char* pod : {"uid-1", "uid-other"}) {
      const std::string bind = place + "/" + pod;
      kernel_.AddDirectory(bind, 0750);
      kernel_.AddMount("devtmpfs", "udev", bind);
      if (pod == std::string("uid-1")) binds.push_back(bind);
    }
  }
  kernel_.AddDirectory(kPodDir + "/volumeDevices/kubernetes.io~csi", 0750);
  kernel_.AddSymlink(kPodDir + "/volumeDevices/kubernetes.io~csi/lost", "/dev/sdb");
  unrecorded_->Set({lost});
  auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error.message().find("volume lost is mounted in pod uid-1, of which no record "
                                          "tells: " +
                                          binds[0] + ", " + binds[1] + ";"),
            0u)
      << failure->error.message();
  EXPECT_NE(failure->error.message().find("and then to start the agent anew"), std::string::npos);

  for (const std::string& bind : binds) kernel_.UnmountBelow(bind);
  failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->error.message().find("nothing of it is mounted: the agent has to be started "
                                          "anew"),
            std::string::npos)
      << failure->error.message();
  EXPECT_TRUE(failure->error.IsAbout(kAboutUnrecordedMount));
}

TEST_F(NodeVolumeOperationsTest, TearsDownWhatHasNoRecord) {
  kernel_.AddMount("tmpfs", "tmpfs", kVolumeDir);
  std::string state_in_call;
  std::string domain;
  script_.on_tear_down = [&](const CallOptions& call) {
    state_in_call = StoredState();
    domain = call.domain;
  };
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(state_in_call, "TearingDown*");
  EXPECT_FALSE(domain.empty());  // not the lane that nothing may hang
  EXPECT_FALSE(kernel_.Exists(kVolumeDir));
}

TEST_F(NodeVolumeOperationsTest, OperationsOfAKeyDoNotOverlap) {
  ASSERT_EQ(operations_->Start(MountVolume(Request()), [](auto) {}), StartResult::kStarted);
  EXPECT_TRUE(operations_->IsPending(key_));
  EXPECT_EQ(
      operations_->Start(volumed::RemovePod(PodUid("uid-1"), "default/web", PodRecordEnd::kRemove),
                         [](auto) {}),
      StartResult::kPending);
  ASSERT_EQ(operations_->Running().size(), 1u);
  scheduler_.RunFor(Duration::zero());
  EXPECT_FALSE(operations_->IsPending(key_));
}

TEST_F(NodeVolumeOperationsTest, FailuresBackOffUntilAnEventRemovesTheCause) {
  script_.set_up_error = kRefusal;
  ASSERT_TRUE(Mount().failure);
  EXPECT_EQ(operations_->Start(MountVolume(Request()), [](auto) {}), StartResult::kBackoff);
  operations_->ResetBackoff(key_);
  EXPECT_EQ(operations_->NextTry(key_), std::nullopt);
  EXPECT_EQ(operations_->Start(MountVolume(Request()), [](auto) {}), StartResult::kStarted);
  scheduler_.RunFor(Duration::zero());
}

TEST_F(NodeVolumeOperationsTest, ProgressOfALongStepIsShown) {
  std::vector<RunningOperation> seen;
  script_.on_set_up = [&](const MounterArgs& args) {
    args.call.progress(12345);
    seen = operations_->Running();
  };
  ASSERT_TRUE(Mount().value);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].step, "SetUp");
  EXPECT_EQ(seen[0].progress, 12345);
}

TEST_F(NodeVolumeOperationsTest, ARebootMakesASetUpVolumeUncertain) {
  ASSERT_TRUE(Mount().value);
  Restart("boot-a");
  EXPECT_EQ(State(), "SetUp");
  kernel_.Reboot();
  Restart("boot-b");
  EXPECT_EQ(State(), "SettingUp*");
  ASSERT_TRUE(Mount().value);
  EXPECT_EQ(StoredState(), "SetUp");
  EXPECT_TRUE(kernel_.IsMountPoint(kVolumeDir));
}

}  // namespace
}  // namespace volumed
