// Several volumes of a pod as one operation: what it costs, and that each volume stands for itself.
#include "operation/group_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "unit/operation/group_operations_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

// Thirty-nine round trips and eleven writes were made for a pod of five volumes.
TEST_F(GroupOperationsTest, TheVolumesOfAPodCostOneRoundTripAndTwoWrites) {
  const auto outcomes = Mount({Disk("a"), Memory("b"), Disk("c"), Memory("d"), Memory("e")});
  ASSERT_EQ(outcomes.size(), 5u);
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_TRUE(real_kernel_.IsMountPoint(kVolumes + "/b"));
  EXPECT_EQ(mounted_.at("a").host_path, kVolumes + "/a");
  EXPECT_EQ(observer_.finished.size(), 5u) << "each is counted and logged for itself";
  EXPECT_EQ(log_.Count("operation done"), 5);

  kernel_.round_trips = store_.writes = 0;
  for (const auto& [name, outcome] : Unmount({"a", "b", "c", "d", "e"})) {
    EXPECT_EQ(outcome, "done") << name;
    EXPECT_EQ(State(name), "none");
  }
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_FALSE(real_kernel_.Exists(kVolumes + "/a"));
}

// It cost three round trips and two writes of its own.
TEST_F(GroupOperationsTest, WhatIsHandedOutIsLookedAtInTheOneRequestOfItsPod) {
  real_kernel_.AddDirectory("/srv/data");
  const auto outcomes = Mount({Disk("a"), Host("h", "/srv/data"), Memory("b")});
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_EQ(State("h"), "SetUp");
  EXPECT_EQ(mounted_.at("h").host_path, "/srv/data");
  EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1"));
  const auto record = operations_->FindRecord(Key("uid-1", "h"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->storage.objects.size(), 1U) << "a new agent knows what the pod has";
}

// The agent binds its root on itself if that is not shared: all that lay beside it on its
// filesystem then had requests of their own, and of a burst of pods hardly one was ready before the
// end.
TEST_F(GroupOperationsTest, WhatIsHandedOutMayLieUnderAnotherMountOfTheAgentsFilesystem) {
  ASSERT_TRUE(real_kernel_.Call(BindMount{{kRoot, ""}, {kRoot, ""}}, CallOptions()).ok());
  real_kernel_.AddDirectory("/srv/data");
  real_kernel_.AddMount("tmpfs", "tmpfs", "/run");
  real_kernel_.AddDirectory("/run/data");
  for (const auto& [name, outcome] :
       Mount({Disk("a"), Host("h", "/srv/data"), Host("r", "/run/data")})) {
    EXPECT_EQ(outcome, "done") << name;
  }
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
}

TEST_F(GroupOperationsTest, AWayOverAFilesystemThatMayHangIsGoneAlone) {
  real_kernel_.AddDirectory("/srv/data");
  real_kernel_.AddMount("nfs4", "nas:/srv", "/far");
  real_kernel_.AddDirectory("/far/back");
  ASSERT_TRUE(real_kernel_.Call(BindMount{{"/srv", ""}, {"/far/back", ""}}, CallOptions()).ok());
  real_kernel_.Hang("/far");
  const auto outcomes = Mount({Disk("a"), Host("back", "/far/back/data")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_THAT(outcomes.at("back"), HasSubstr("ReserveStorage"));
}

// What may hang with something else is neither asked for with the others nor in their lane.
TEST_F(GroupOperationsTest, WhatLiesElsewhereIsStartedByItself) {
  real_kernel_.AddDirectory("/srv/data");
  real_kernel_.AddMount("nfs4", "nas:/srv", "/far");
  real_kernel_.AddDirectory("/far/data");
  real_kernel_.AddSymlink("/linked", "/srv/data");
  domains_.lanes = {{"/far/data", "nfs:nas"}, {"/linked", "own"}, {"/new", "own"}};
  MountRequest created =
      Request("new", HostPathVolumeSource{"/new", HostPathType::kDirectoryOrCreate});
  const auto outcomes =
      Mount({Disk("a"), Host("far", "/far/data"), Host("linked", "/linked"), created});
  EXPECT_EQ(outcomes.size(), 4U);
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_EQ(outcome, "done") << name;
    EXPECT_EQ(State(name), "SetUp") << name;
  }
  EXPECT_EQ(domains_.located, 3) << "each waits in its own lane";
  EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume linked of pod uid-1"));
  EXPECT_TRUE(real_kernel_.Exists("/new"));
  // It was made for the pod: until now nobody knew what it was, wherever somebody moved it.
  EXPECT_EQ(operations_->FindRecord(Key("uid-1", "new"))->storage.objects.size(), 1U);
}

// It counted as done before it was tried: it was tried each half second for ever, and each try was
// logged, and counted, as done and as failed.
TEST_F(GroupOperationsTest, WhatIsStartedByItselfAndFailsBacksOffAndIsCountedOnce) {
  real_kernel_.AddMount("nfs4", "nas:/srv", "/far");
  const auto mount_and_wait = [&] {
    const auto outcomes = Mount({Disk("a"), Host("far", "/far/missing")});
    EXPECT_THAT(outcomes.at("far"), HasSubstr("/far/missing"));
    return *operations_->NextTry(OperationKey(Key("uid-1", "far"))) - scheduler_.clock().Now();
  };
  const Duration first = mount_and_wait();
  EXPECT_EQ(observer_.finished.size(), 2U);
  EXPECT_EQ(log_.Count("operation done"), 1);
  EXPECT_EQ(log_.Count("operation failed"), 1);
  scheduler_.manual_clock().Advance(first);
  EXPECT_GT(mount_and_wait(), first * 3 / 2);
}

// All of the pod's were refused, with the words of the one, and none was taken away.
TEST_F(GroupOperationsTest, AVolumeThatAWorkerIsStillAtKeepsNoOtherOfItsPod) {
  kernel_.held = Key("uid-1", "b").ToString();
  auto outcomes = Mount({Disk("a"), Disk("b"), Memory("c")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_THAT(outcomes.at("b"), HasSubstr("an earlier worker still holds key"));
  EXPECT_EQ(outcomes.at("c"), "done");
  kernel_.held.clear();
  scheduler_.manual_clock().Advance(std::chrono::minutes(3));
  ASSERT_EQ(Mount({Disk("b")}).at("b"), "done");

  kernel_.held = Key("uid-1", "b").ToString();
  outcomes = Unmount({"a", "b", "c"});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_THAT(outcomes.at("b"), HasSubstr("an earlier worker still holds key"));
  EXPECT_EQ(outcomes.at("c"), "done");
  EXPECT_EQ(State("a"), "none");
}

TEST_F(GroupOperationsTest, AHungFilesystemOfOneHostPathLeavesThePodsOthersAlone) {
  real_kernel_.AddMount("nfs4", "nas:/srv", "/far");
  real_kernel_.AddDirectory("/far/data");
  real_kernel_.Hang("/far");
  const auto outcomes = Mount({Disk("a"), Host("far", "/far/data")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_EQ(State("a"), "SetUp");
  EXPECT_THAT(outcomes.at("far"), HasSubstr("ReserveStorage"));
}

TEST_F(GroupOperationsTest, WhatIsHandedOutIsRefusedAsBySetUp) {
  real_kernel_.AddDirectory("/srv/data");
  real_kernel_.AddDirectory("/srv/emptied");
  PersistentVolume volume;
  volume.metadata.name = "pv";
  ASSERT_TRUE(storage_
                  .TakeForReclaim(ReclaimStorageHolder(volume), {"/srv/emptied"}, "claim", {},
                                  CallOptions())
                  .ok());
  MountRequest file = Request("file", HostPathVolumeSource{"/srv/data", HostPathType::kFile});
  const auto outcomes = Mount({Disk("a"), file, Host("late", "/srv/emptied")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_THAT(outcomes.at("file"), HasSubstr("SetUp: "));
  EXPECT_THAT(outcomes.at("file"), HasSubstr("is not a file"));
  EXPECT_THAT(outcomes.at("late"), HasSubstr("whose content is being deleted"));
  for (const std::string name : {"file", "late"}) EXPECT_EQ(State(name), "none") << name;
  EXPECT_EQ(WhoKeeps("/srv/data"), "") << "nobody has it";
  EXPECT_EQ(real_store_.Load(kPodVolumeRecordKind)->records.size(), 1U);
}

// The worker dies amid the request: what was only looked at is certainly as it was.
TEST_F(GroupOperationsTest, WhatIsHandedOutIsTriedByItselfIfTheRequestOfItsPodFails) {
  real_kernel_.AddDirectory("/srv/data");
  kernel_.dies_once = true;
  const auto outcomes = Mount({Disk("a"), Host("h", "/srv/data")});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("the worker died"));
  EXPECT_EQ(outcomes.at("h"), "done");
  EXPECT_EQ(State("h"), "SetUp");
}

TEST_F(GroupOperationsTest, WhatWasHandedOutIsTakenAwayWithTheOthers) {
  real_kernel_.AddDirectory("/srv/data");
  (void)Mount({Disk("a"), Host("h", "/srv/data")});
  ASSERT_EQ(State("h"), "SetUp");
  EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1"));
  kernel_.round_trips = store_.writes = 0;
  for (const auto& [name, outcome] : Unmount({"a", "h"})) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_EQ(State("h"), "none");
  EXPECT_TRUE(real_kernel_.Exists("/srv/data"));
  EXPECT_EQ(WhoKeeps("/srv/data"), "");
}

// Whoever takes away what hangs waits for that alone.
TEST_F(GroupOperationsTest, WhatWasHandedOutIsTakenAwayAloneIfASubPathOfItMayHang) {
  real_kernel_.AddDirectory("/srv/data");
  (void)Mount({Disk("a"), Host("h", "/srv/data")});
  domains_.mounts = {{kPodDir + "/volume-subpaths/h/main/0", true}};
  kernel_.round_trips = 0;
  for (const auto& [name, outcome] : Unmount({"a", "h"})) EXPECT_EQ(outcome, "done") << name;
  EXPECT_GT(kernel_.round_trips, 1);
}

TEST_F(GroupOperationsTest, EachVolumeIsLockedForItself) {
  (void)Mount({Disk("a"), Memory("b")});
  EXPECT_EQ(kernel_.last_keys, (std::vector<std::string>{"uid-1/a", "uid-1/b"}));
}

TEST_F(GroupOperationsTest, OneWhoseSecretIsMissingLeavesTheOthersAlone) {
  const auto outcomes = Mount({Disk("a"), Secret("s"), Memory("b")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_EQ(outcomes.at("b"), "done");
  EXPECT_THAT(outcomes.at("s"), HasSubstr("SetUp"));
  EXPECT_THAT(outcomes.at("s"), HasSubstr("not found"));
  EXPECT_EQ(State("s"), "none") << "nothing was tried";
  EXPECT_THAT(stub_.events, ::testing::ElementsAre(HasSubstr("FailedMount")));
  // It comes later by itself, and has its own back-off.
  EXPECT_EQ(Mount({Secret("s"), Disk("c")}).at("s"), "backs off");
  EXPECT_EQ(State("c"), "SetUp");
}

TEST_F(GroupOperationsTest, OneWhoseEffectFailsLeavesTheOthersAlone) {
  real_kernel_.FailNextBelow("Mount", kVolumes + "/b", kRefusal);
  const auto outcomes = Mount({Memory("a"), Memory("b"), Memory("c")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_EQ(outcomes.at("c"), "done");
  EXPECT_THAT(outcomes.at("b"), HasSubstr("SetUp"));
  EXPECT_THAT(outcomes.at("b"), HasSubstr("refused"));
  EXPECT_EQ(State("b"), "SettingUp*") << "its directory is there";
  EXPECT_EQ(State("a"), "SetUp");
}

TEST_F(GroupOperationsTest, NothingIsTriedWithoutThePodsDirectories) {
  real_kernel_.FailNext("MakeDirectory", kRefusal);
  const auto outcomes = Mount({Memory("a"), Disk("b")});
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("MakePodDirectories")) << name;
    EXPECT_EQ(State(name), "none") << name;
  }
}

TEST_F(GroupOperationsTest, WithAWorkerThatDiesAllMayHaveBeenApplied) {
  kernel_.died = true;
  const auto outcomes = Mount({Memory("a"), Disk("b")});
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("the worker died")) << name;
    EXPECT_EQ(State(name), "SettingUp*") << name;
  }
}

// Behind the last volume there is memory for one more, in which zeroes stand for one that has not
// failed and has no effects.
TEST_F(GroupOperationsTest, NobodyLooksBehindTheLastVolume) {
  kernel_.died = true;
  ::mallopt(M_PERTURB, 0xff);
  const auto outcomes = Mount({Memory("a"), Memory("b"), Memory("c")});
  ::mallopt(M_PERTURB, 0);
  EXPECT_EQ(outcomes.size(), 3u);
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("the worker died")) << name;
  }
}

TEST_F(GroupOperationsTest, ASubPathThatFailsIsItsVolumesFailureAlone) {
  MountRequest with_sub_path = Memory("a");
  with_sub_path.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  real_kernel_.FailNext("BindMount", kRefusal);
  const auto outcomes = Mount({with_sub_path, Disk("b")});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("PrepareSubPaths"));
  EXPECT_THAT(outcomes.at("a"), HasSubstr("container main"));
  EXPECT_EQ(State("a"), "SettingUp*") << "the volume itself is there";
  EXPECT_EQ(outcomes.at("b"), "done");
}

TEST_F(GroupOperationsTest, OneWhoseIntentIsNotOnRecordIsNotTried) {
  real_store_.FailNext(kDiskFull, 1);
  const auto outcomes = Mount({Memory("a"), Memory("b")});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("RecordIntent"));
  EXPECT_FALSE(real_kernel_.Exists(kVolumes + "/a"));
  EXPECT_EQ(outcomes.at("b"), "done");
}

TEST_F(GroupOperationsTest, AVolumeThatCannotBeTakenAwayStaysAlone) {
  (void)Mount({Memory("a"), Memory("b")});
  real_kernel_.FailNextBelow("Unmount", kVolumes + "/a", kRefusal);
  const auto outcomes = Unmount({"a", "b"});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("TearDown"));
  EXPECT_EQ(State("a"), "TearingDown*");
  EXPECT_TRUE(real_kernel_.IsMountPoint(kVolumes + "/a"));
  EXPECT_EQ(outcomes.at("b"), "done");
  EXPECT_EQ(State("b"), "none");
}

TEST_F(GroupOperationsTest, OneWithAnOperationUnderWayIsLeftOut) {
  ASSERT_EQ(
      operations_->Start(MountVolume(Disk("a")), [](const OperationOutcome<MountedVolume>&) {}),
      StartResult::kStarted);
  const auto outcomes = Mount({Disk("a"), Disk("b")});
  EXPECT_EQ(outcomes.at("a"), "pending");
  EXPECT_EQ(outcomes.at("b"), "done");
}

// The operation layer was shaped like a pod: nobody else could be given a volume.
TEST_F(GroupOperationsTest, SomebodyWithoutAPodGetsAVolumeAtHisOwnPlace) {
  real_kernel_.AddDirectory("/caller", 0750);
  MountRequest request = Memory("a");
  request.target = {.key = Key("caller", "a"),
                    .place = {"/caller", "vol"},
                    .directory = {"/caller", "own"},
                    .display_name = "a caller",
                    .owner = {.fs_user = {}, .fs_group = 2000, .fs_group_change_policy = {}},
                    .pod = nullptr};
  EXPECT_EQ(Mount({request}).at("a"), "done");
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(mounted_.at("a").host_path, "/caller/vol");
  EXPECT_TRUE(real_kernel_.IsMountPoint("/caller/vol"));
  EXPECT_TRUE(real_kernel_.Exists("/caller/own/plugins/kubernetes.io~empty-dir/a/ready"));
  EXPECT_FALSE(real_kernel_.Exists(kRoot + "/pods/caller"));
  EXPECT_EQ(operations_->FindRecord(Key("caller", "a"))->state, VolumeState::kSetUp);
}

TEST_F(GroupOperationsTest, WhatIsMadeFromAPodIsRefusedToSomebodyWithoutOne) {
  MountRequest request = Secret("a");
  request.target.pod = nullptr;
  EXPECT_THAT(Mount({request}).at("a"), HasSubstr("is a place without one"));
  EXPECT_EQ(State("a"), "none");
  EXPECT_EQ(kernel_.round_trips, 0);
}

// One hung filesystem over a volume's place kept all volumes of its pod from being ready.
TEST_F(GroupOperationsTest, OneUnderSomebodysFilesystemIsMadeAlone) {
  domains_.mounts = {{kVolumes + "/b", true}};
  const auto outcomes = Mount({Disk("a"), Disk("b"), Disk("c")});
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_GT(kernel_.round_trips, 1);
  kernel_.round_trips = 0;
  domains_.mounts = {{kPodDir + "/volumes/kubernetes.io~nfs/far", true},
                     {kPodDir + "/volume-subpaths/far/main/0", true}};
  (void)Unmount({"a", "c"});
  EXPECT_EQ(kernel_.round_trips, 1) << "another volume's mounts concern nobody else";
}

// The volumes below counted as torn down, and stayed for ever once it was unmounted.
TEST_F(GroupOperationsTest, AVolumeUnderAMountIsNotTakenForGone) {
  (void)Mount({Memory("a"), Memory("b")});
  real_kernel_.AddMount("tmpfs", "theirs", kPodDir + "/volumes");
  domains_.mounts = {{kPodDir + "/volumes", false}};
  const auto outcomes = Unmount({"a", "b"});
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("is mounted over " + kPodDir + "/volumes")) << name;
    EXPECT_EQ(State(name), "SetUp") << name;
  }
}

// Somebody's tmpfs was unmounted with the volume, and what was in it was lost.
TEST_F(GroupOperationsTest, SomebodysTmpfsOverAPlainVolumeIsNotUnmountedWithIt) {
  (void)Mount({Disk("a"), Memory("b")});
  real_kernel_.AddMount("tmpfs", "theirs", kVolumes + "/a");
  auto outcomes = Unmount({"a", "b"});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("something is mounted over " + kVolumes + "/a"));
  EXPECT_TRUE(real_kernel_.IsMountPoint(kVolumes + "/a"));
  EXPECT_EQ(outcomes.at("b"), "done");
  ASSERT_TRUE(real_kernel_.Call(volumed::Unmount{.target = {kVolumes, "a"}}, CallOptions()).ok());
  scheduler_.RunFor(std::chrono::minutes(5));
  EXPECT_EQ(Unmount({"a"}).at("a"), "done");
  EXPECT_FALSE(real_kernel_.Exists(kVolumes + "/a"));
}

// A pod was given somebody's files as its emptyDir, and its fsGroup changed their owner.
TEST_F(GroupOperationsTest, SomebodysFilesystemIsNotHandedOutAsAnEmptyDir) {
  real_kernel_.AddMount("ext4", "/dev/theirs", kVolumes + "/b");
  const auto outcomes = Mount({Disk("a"), Disk("b")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_THAT(outcomes.at("b"), HasSubstr("is mounted over " + kVolumes + "/b"));
  EXPECT_EQ(State("b"), "none");
}

}  // namespace
}  // namespace volumed
