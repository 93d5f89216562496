// Volumes that are attached: up and down the ladder, failures on the way, and restarts.
#include <gmock/gmock.h>

#include "unit/volumemanager/devices/attached_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

class AttachedVolumesTest : public AttachedTest {
 protected:
  void SetUp() override { StartAgent(); }
  OperationKey Disk() const { return OperationKey(Device("disk")); }
  void Up() {
    Deliver(Volume("disk") + User("a", "disk"));
    ASSERT_EQ(Phase("a"), "Ready");
    (void)Done();
  }
};

TEST_F(AttachedVolumesTest, UpAndDownTheLadder) {
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(Done(), (Lines{"attach disk", "mount_device disk", "mount disk for a"}));
  const FakeVolumeOperations::Call& mount = *operations().Last("mount_device", Disk());
  EXPECT_TRUE(mount.mount_device->attachable);
  EXPECT_EQ(mount.mount_device->first_pod->uid(), PodUid("a"));
  EXPECT_EQ(ViewOf("a").device_state, "DeviceMounted");
  Deliver(Volume("disk") + User("a", "disk") + User("b", "disk"));
  EXPECT_EQ(Done(), (Lines{"mount disk for b"}));
  Deliver(Volume("disk") + User("b", "disk"));
  EXPECT_EQ(Done(), (Lines{"unmount disk for a", "remove  for a"}));
  Deliver(Volume("disk"));
  const Lines down = Done();
  ASSERT_EQ(down.size(), 4u);
  EXPECT_EQ(down[0], "unmount disk for b");
  EXPECT_EQ(std::count(down.begin(), down.end(), "unmount_device disk"), 1);
  EXPECT_EQ(down[3], "detach disk");
  EXPECT_TRUE(node.attached.empty());
}

// The pod was gone, and nothing but the log said why its disk is attached still.
TEST_F(AttachedVolumesTest, ADeviceThatCannotBeDetachedWasShownNowhere) {
  Up();
  EXPECT_TRUE(manager().storage().Owed().empty());
  operations().FailNext("detach", Disk(), NotApplied(), 1000);
  Deliver(Volume("disk"));
  EXPECT_FALSE(manager().pods().Find(PodUid("a")));
  const std::vector<OwedView> owed = manager().storage().Owed();
  ASSERT_EQ(owed.size(), 1u);
  EXPECT_EQ(owed[0].what, "device test.io/array/disk");
  EXPECT_EQ(owed[0].problem.message, "the array");
  EXPECT_EQ(owed[0].problem.who_must_act, "nobody: retried");
  EXPECT_GT(owed[0].problem.next_try_unix_ms, 0);
}

// It was said to be in its own way.
TEST_F(AttachedVolumesTest, AVolumeWhoseDeviceCannotBeDetachedSaysWhyItIsNotDeleted) {
  std::string volume = Volume("disk");
  volume.insert(volume.find("  flexVolume"), "  persistentVolumeReclaimPolicy: Delete\n");
  Deliver(volume + User("a", "disk"));
  ASSERT_EQ(Phase("a"), "Ready");
  operations().FailNext("detach", Disk(), NotApplied(), 1000);
  operations().FailNext("reclaim", ReclaimKey("disk"),
                        Error::NotApplied(Code::kFailedPrecondition, "it is on this node"), 1000);
  Deliver(volume);
  ASSERT_TRUE(DeleteClaim("disk"));
  Settle();
  const std::vector<PersistentVolumeView> volumes = manager().storage().PersistentVolumes();
  ASSERT_EQ(volumes.size(), 1u);
  EXPECT_EQ(volumes[0].reason, "its device cannot be detached: the array");
  ASSERT_TRUE(volumes[0].problem);
  EXPECT_EQ(volumes[0].problem->message, volumes[0].reason);
  EXPECT_EQ(manager().storage().Owed().size(), 2u);
}

// `delete pod` and `delete pvc` in one go made the volume Failed, with a warning, for a second.
TEST_F(AttachedVolumesTest, AVolumeWhoseDeviceWasJustLeavingWasFailed) {
  std::string volume = Volume("disk");
  volume.insert(volume.find("  flexVolume"), "  persistentVolumeReclaimPolicy: Delete\n");
  Deliver(volume + User("a", "disk"));
  ASSERT_EQ(Phase("a"), "Ready");
  operations().Hang(Disk());
  Deliver(volume);
  ASSERT_TRUE(DeleteClaim("disk"));
  Settle();
  Pass(seconds(60));
  EXPECT_EQ(operations().Count("reclaim"), 0u) << "it would only find the device there";
  const std::vector<PersistentVolumeView> waiting = manager().storage().PersistentVolumes();
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].phase, "Released");
  EXPECT_EQ(waiting[0].reason,
            "claim default/disk is gone; it waits until its device has left this node");
  operations().Release(Disk());
  Settle();
  EXPECT_EQ(operations().Count("reclaim"), 1u) << "at once, when it has left";
}

// It was shown as "Attached", as a disk of the node is that nobody has mounted yet.
TEST_F(AttachedVolumesTest, ADeviceWhoseDriverIsNotKnownHasNoStateYet) {
  attach->no_driver = NotApplied();
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(ViewOf("a").device_state, "");
  ASSERT_TRUE(ViewOf("a").problem);
  EXPECT_EQ(ViewOf("a").problem->step, "CanAttach");
  EXPECT_THAT(ViewOf("a").problem->who_must_act, testing::StartsWith("whoever runs the driver"));
}

TEST_F(AttachedVolumesTest, AVolumeInThePodItselfIsAttachedAsAnyOther) {
  Deliver(PodManifest("a", {"v: flexVolume: {driver: test.io/array}"}));
  EXPECT_EQ(Done(), (Lines{"attach v", "mount_device v", "mount v for a"}));
  EXPECT_EQ(ViewOf("a").device_state, "DeviceMounted");
  EXPECT_TRUE(ViewOf("a").claim.empty());
  Deliver("");
  const Lines down = Done();
  EXPECT_EQ(std::count(down.begin(), down.end(), "detach v"), 1);
  EXPECT_EQ(down.back(), "forget_device v");
  EXPECT_TRUE(node.attached.empty());
}

TEST_F(AttachedVolumesTest, TwoPodsThatNameOneDeviceThemselvesBothHaveIt) {
  const std::string volume = "v: flexVolume: {driver: test.io/array}";
  Deliver(PodManifest("a", {volume}));
  Deliver(PodManifest("a", {volume}) + PodManifest("b", {volume}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Phase("b"), "Ready") << StepOf("b");
  EXPECT_EQ(Done(), (Lines{"attach v", "mount_device v", "mount v for a", "mount v for b"}));
}

TEST_F(AttachedVolumesTest, APluginThatAttachesNothingNeverHasAnAttach) {
  Deliver(
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  capacity: "
      "{storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  local: {path: /dev/vdb}\n  nodeAffinity: "
      "{required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: "
      "[n1]}]}]}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk, "
      "namespace: default, uid: c}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: disk\n  "
      "resources: {requests: {storage: 1Gi}}\n" +
      User("a", "disk"));
  EXPECT_EQ(Done(), (Lines{"mount_device disk", "mount disk for a"}));
  EXPECT_FALSE(operations().calls.front().mount_device->attachable);
  EXPECT_TRUE(ViewOf("a").needs_no_attach);
  Pass(seconds(300));
  Deliver("");
  EXPECT_EQ(operations().Count("detach"), 0u);
  EXPECT_EQ(operations().Count("verify"), 0u);
}

TEST_F(AttachedVolumesTest, ASlowAttachIsShownAndTakenBackWhenItsPodLeaves) {
  operations().Hang(Disk());
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(Done(), (Lines{"attach disk"}));
  EXPECT_EQ(ViewOf("a").device_state, "Attaching");
  EXPECT_FALSE(ViewOf("a").running_step.empty());
  Pass(seconds(60));
  Deliver(Volume("disk"));
  EXPECT_EQ(operations().Count("detach"), 0u);
  operations().Release(Disk());
  Settle();
  EXPECT_EQ(Done().back(), "detach disk");
  EXPECT_EQ(operations().Count("mount_device"), 0u);
  EXPECT_TRUE(node.attached.empty());
}

TEST_F(AttachedVolumesTest, AnAttachThatWasNotAppliedIsTriedAgainAndLeavesNothing) {
  operations().FailNext("attach", Disk(), NotApplied(), 2);
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(StepOf("a"), "Attach");
  EXPECT_EQ(ViewOf("a").problem->attempts, 1u);
  EXPECT_GT(ViewOf("a").problem->next_try_unix_ms, 0);
  EXPECT_EQ(ViewOf("a").device_state, "Detached");
  Pass(seconds(1));
  EXPECT_EQ(operations().Count("attach"), 2u);
  Deliver(Volume("disk"));
  Pass(seconds(60));
  EXPECT_EQ(operations().Count("detach"), 0u);
  EXPECT_EQ(operations().Count("attach"), 2u);
  Up();
}

TEST_F(AttachedVolumesTest, AnAttachThatMayBeAppliedIsDetached) {
  operations().FailNext("attach", Disk(), MaybeApplied(), 1);
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(ViewOf("a").device_state, "Attaching");
  Deliver(Volume("disk"));
  EXPECT_EQ(operations().Count("detach"), 1u);
  EXPECT_EQ(operations().Count("mount_device"), 0u);
}

TEST_F(AttachedVolumesTest, ADetachThatFailsIsTriedAgain) {
  Up();
  operations().FailNext("detach", Disk(), NotApplied(), 2);
  Deliver(Volume("disk"));
  Pass(seconds(10));
  EXPECT_EQ(operations().Count("detach"), 3u);
  EXPECT_TRUE(node.attached.empty());
}

TEST_F(AttachedVolumesTest, APodThatReturnsAfterAFailedDetachHasWhatIsThere) {
  Up();
  operations().FailNext("detach", Disk(), NotApplied(), 9);
  Deliver(Volume("disk"));
  (void)Done();
  Deliver(Volume("disk") + User("b", "disk"));
  EXPECT_EQ(Done(), (Lines{"mount_device disk", "mount disk for b"}));
}

TEST_F(AttachedVolumesTest, APodThatReturnsAfterADoubtfulDetachHasItAttachedAnew) {
  Up();
  operations().FailNext("detach", Disk(), MaybeApplied(), 9);
  Deliver(Volume("disk"));
  (void)Done();
  Deliver(Volume("disk") + User("b", "disk"));
  EXPECT_EQ(Done(), (Lines{"attach disk", "mount_device disk", "mount disk for b"}));
}

TEST_F(AttachedVolumesTest, ADeviceThatVanishesBeforeItsMountIsDetachedWithoutOne) {
  operations().FailNext("mount_device", Disk(), NotApplied(Code::kNotFound), 99);
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(StepOf("a"), "MountDevice");
  EXPECT_EQ(ViewOf("a").device_state, "Attached");
  EXPECT_FALSE(ViewOf("a").needs_no_attach);
  Pass(seconds(30));
  EXPECT_EQ(operations().Count("attach"), 1u);
  Deliver(Volume("disk"));
  EXPECT_EQ(operations().Count("unmount_device"), 0u);
  EXPECT_EQ(operations().Count("detach"), 1u);
}

// Its mount waited for the back-off: only the paths of `local` volumes were looked for.
TEST_F(AttachedVolumesTest, ADeviceThatReturnsIsMountedAtOnceAndNotAfterTheBackOff) {
  operations().FailNext("mount_device", Disk(), NotApplied(Code::kNotFound), 99);
  Deliver(Volume("disk") + User("a", "disk"));
  Pass(seconds(30));
  const size_t tried = operations().Count("mount_device");
  manager().events().DeviceAppeared({"/dev/other", "/dev/disk/by-id/other"});
  Settle();
  EXPECT_EQ(operations().Count("mount_device"), tried) << "another disk";
  manager().events().DeviceAppeared({"/dev/disk/by-id/x", "/dev/disk"});
  Settle();
  EXPECT_EQ(operations().Count("mount_device"), tried + 1);
}

// The pod was said to lack its device until something else was told of it.
TEST_F(AttachedVolumesTest, WhoWatchesAPodHearsThatItsDeviceHasReturned) {
  Up();
  manager().events().DeviceVanished({"/dev/disk"});
  ASSERT_EQ(StepOf("a"), "DeviceGone");
  const auto told = std::make_shared<std::vector<PodUid>>();
  manager().observers().Add([told](const PodUid& pod) { told->push_back(pod); });
  manager().events().DeviceAppeared({"/dev/disk"});
  EXPECT_EQ(*told, std::vector<PodUid>{PodUid("a")});
  EXPECT_EQ(StepOf("a"), "");
}

TEST_F(AttachedVolumesTest, AMountThatMayBeThereIsUnmountedBeforeTheDetach) {
  operations().FailNext("mount_device", Disk(), MaybeApplied(), 99);
  Deliver(Volume("disk") + User("a", "disk"));
  Deliver(Volume("disk"));
  const Lines done = Done();
  const auto unmounted = std::find(done.begin(), done.end(), "unmount_device disk");
  ASSERT_NE(unmounted, done.end());
  EXPECT_NE(std::find(unmounted, done.end(), "detach disk"), done.end());
}

TEST_F(AttachedVolumesTest, NothingIsDetachedWhileTheUnmountFails) {
  Up();
  operations().FailNext("unmount_device", Disk(), NotApplied(), 3);
  Deliver(Volume("disk"));
  EXPECT_EQ(operations().Count("detach"), 0u);
  Pass(seconds(30));
  EXPECT_EQ(operations().Count("unmount_device"), 4u);
  EXPECT_EQ(operations().Count("detach"), 1u);
}

// No pod that is wanted leads to it any more.
TEST_F(AttachedVolumesTest, APluginThatChangedEndsTheBackOffOfADeviceThatNoPodHas) {
  Up();
  operations().FailNext("detach", Disk(), NotApplied(), 9);
  Deliver(Volume("disk"));
  ASSERT_EQ(Phase("a"), "gone");
  const size_t tried = operations().Count("detach");
  ASSERT_GT(tried, 0u);
  manager().events().PluginChanged("test.io/other");
  Settle();
  EXPECT_EQ(operations().Count("detach"), tried) << "another plugin";
  manager().events().PluginChanged(kPlugin);
  Settle();
  EXPECT_EQ(operations().Count("detach"), tried + 1);
}

TEST_F(AttachedVolumesTest, NothingIsDetachedBeforeEverySourceHasDelivered) {
  sources = {"manifests", "applied"};
  BindBefore(Volume("disk"));
  LeaveDevice("disk", VolumeState::kAttached);
  node.attached.insert(Device("disk"));
  Restart();
  Deliver(Volume("disk"));
  Pass(seconds(60));
  EXPECT_EQ(Done(), Lines());
  Deliver("", "applied");
  EXPECT_EQ(Done(), (Lines{"detach disk"}));
}

// Another PersistentVolume of the same disk was mounted as if its unmount had never been begun.
TEST_F(AttachedVolumesTest, TheOpenUnmountOfAnotherVolumeOfTheDiskWasGivenUp) {
  BindBefore(Volume("disk"));
  LeaveDevice("disk", VolumeState::kUnmountingDevice, "boot-1", "old");
  node.attached.insert(Device("disk"));
  node.devices.insert(Device("disk"));
  Restart();
  operations().FailNext("unmount_device", Disk(), MaybeApplied(), 3);
  Deliver(Volume("disk") + User("a", "disk"));
  const Lines begun = Done();
  EXPECT_EQ(std::count(begun.begin(), begun.end(), "unmount_device disk"), 1);
  EXPECT_EQ(std::count(begun.begin(), begun.end(), "mount_device disk"), 0);
  const VolumeView waiting = ViewOf("a");
  ASSERT_TRUE(waiting.problem);
  EXPECT_THAT(waiting.problem->message,
              testing::HasSubstr("the volume is still UnmountingDevice at "
                                 "/var/lib/volumed/plugins/test.io/array/mounts/disk for volume "
                                 "old, and has to leave that place first: "));
  EXPECT_THAT(waiting.problem->message, testing::HasSubstr("the array"));
  Pass(seconds(60));
  const Lines done = Done();
  EXPECT_EQ(std::count(done.begin(), done.end(), "unmount_device disk"), 3);
  EXPECT_EQ(std::count(done.begin(), done.end(), "mount_device disk"), 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), "detach disk"), 0);
  EXPECT_EQ(Phase("a"), "Ready");
}

// ---- restarts -----------------------------------------------------------------------------------

struct Found {
  VolumeState state;
  bool attached;  // on the node
  std::string boot;
  Lines wanted;    // what is done when a pod wants it
  Lines unwanted;  // and when none does
  friend void PrintTo(const Found& found, std::ostream* out) {
    *out << VolumeStateName(found.state);
  }
};

class FoundAttachedTest : public AttachedTest, public ::testing::WithParamInterface<Found> {
 protected:
  void Start() {
    BindBefore(Volume("disk"));
    LeaveDevice("disk", GetParam().state);
    if (GetParam().attached) node.attached.insert(Device("disk"));
    Restart(GetParam().boot);
  }
};

TEST_P(FoundAttachedTest, AWantedOneComesUp) {
  Start();
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(Done(), GetParam().wanted);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_P(FoundAttachedTest, AnUnwantedOneGoes) {
  Start();
  Deliver(Volume("disk"));
  EXPECT_EQ(Done(), GetParam().unwanted);
  EXPECT_TRUE(node.attached.empty());
}

const Lines kWithVerify = {"verify array", "mount_device disk", "mount disk for a"};
const Lines kAnew = {"attach disk", "mount_device disk", "mount disk for a"};
const Lines kDown = {"unmount_device disk", "detach disk"};
const Lines kDetach = {"detach disk"};

INSTANTIATE_TEST_SUITE_P(
    All, FoundAttachedTest,
    ::testing::Values(Found{VolumeState::kAttaching, false, "boot-1", kAnew, kDetach},
                      Found{VolumeState::kAttaching, true, "boot-1", kAnew, kDetach},
                      Found{VolumeState::kAttached, true, "boot-1", kWithVerify, kDetach},
                      Found{
                          VolumeState::kAttached,
                          false,
                          "boot-1",
                          {"verify array", "attach disk", "mount_device disk", "mount disk for a"},
                          kDetach},
                      Found{VolumeState::kMountingDevice, true, "boot-1", kWithVerify, kDown},
                      Found{VolumeState::kDeviceMounted, true, "boot-1", kWithVerify, kDown},
                      Found{VolumeState::kDeviceMounted,
                            false,
                            "boot-1",
                            {"verify array", "unmount_device disk", "attach disk",
                             "mount_device disk", "mount disk for a"},
                            kDown},
                      Found{VolumeState::kUnmountingDevice, true, "boot-1", kWithVerify, kDown},
                      Found{VolumeState::kDetaching, true, "boot-1", kAnew, kDetach},
                      Found{VolumeState::kDetaching, false, "boot-1", kAnew, kDetach},
                      // The path of a device is another one after a reboot.
                      Found{VolumeState::kAttaching, false, "boot-2", kAnew, kDetach},
                      Found{VolumeState::kAttached, true, "boot-2", kAnew, kDown},
                      Found{VolumeState::kMountingDevice, false, "boot-2", kAnew, kDown},
                      Found{VolumeState::kDeviceMounted, false, "boot-2", kAnew, kDown},
                      Found{VolumeState::kUnmountingDevice, true, "boot-2", kAnew, kDown},
                      Found{VolumeState::kDetaching, true, "boot-2", kAnew, kDetach}),
    [](const ::testing::TestParamInfo<Found>& found) {
      return std::string(VolumeStateName(found.param.state)) +
             (found.param.attached ? "Attached" : "NotAttached") +
             (found.param.boot == "boot-1" ? "" : "AfterReboot");
    });

// A loaded machine decides claims seldom: the pod's disk was unmounted, detached and attached again
// by an agent that was started while it was being mounted.
TEST_F(AttachedVolumesTest, ADiskWasDetachedBeforeTheClaimOfItsPodWasDecidedAfterAStart) {
  BindBefore(Volume("disk"));
  LeaveDevice("disk", VolumeState::kMountingDevice);
  node.attached.insert(Device("disk"));
  decide_claims_period = seconds(1);
  Restart();
  Settle();  // claims are decided without the sources
  Deliver(Volume("disk") + User("a", "disk"));
  Pass(std::chrono::milliseconds(500));
  EXPECT_EQ(Done(), Lines()) << "nobody knows yet which pod is to have it";
  Pass(seconds(2));
  EXPECT_EQ(Done(), (Lines{"verify array", "mount_device disk", "mount disk for a"}));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(AttachedVolumesTest, ADiskOfAPodThatLeavesBeforeTheDecisionAfterAStartIsDetached) {
  BindBefore(Volume("disk"));
  LeaveDevice("disk", VolumeState::kAttached);
  node.attached.insert(Device("disk"));
  decide_claims_period = seconds(1);
  Restart();
  Settle();
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(Done(), Lines());
  Deliver(Volume("disk"));
  Pass(seconds(3));
  const Lines done = Done();
  EXPECT_EQ(std::count(done.begin(), done.end(), "detach disk"), 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), "mount_device disk"), 0);
  EXPECT_TRUE(node.attached.empty());
}

TEST_F(AttachedVolumesTest, ADiskThatNoPodNamesWaitsForNoDecisionAfterAStart) {
  BindBefore(Volume("disk"));
  LeaveDevice("disk", VolumeState::kAttached);
  node.attached.insert(Device("disk"));
  decide_claims_period = seconds(10);
  Restart();
  Settle();
  Deliver(Volume("disk"));
  EXPECT_EQ(Done(), Lines{"detach disk"});
}

// After a reboot the device was to be attached anew, and then the agent was restarted.
TEST_F(AttachedVolumesTest, TheRestOfAMountWasForgottenByARestartAfterAnAttachAnewHadBegun) {
  for (const VolumeState state : {VolumeState::kAttaching, VolumeState::kAttached}) {
    node = {};
    BindBefore(Volume("disk"));
    LeaveDevice("disk", state, "boot-1", "", /*rest_of_mount=*/true);
    node.attached.insert(Device("disk"));
    Restart();
    Deliver(Volume("disk"));
    EXPECT_EQ(Done(), kDown) << VolumeStateName(state);
    EXPECT_TRUE(node.attached.empty()) << VolumeStateName(state);
  }
}

}  // namespace
}  // namespace volumed
