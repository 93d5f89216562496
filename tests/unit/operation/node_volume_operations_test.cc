// Set-up of pods' volumes: what it records, does and tells, and when it is tried again.
#include "unit/operation/node_volume_operations_fixture.h"
#include "unit/operation/usual_errors.h"

namespace volumed {
namespace {

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
