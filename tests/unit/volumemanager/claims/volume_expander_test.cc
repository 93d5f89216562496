// Volumes that are to be larger: the claim is told before and after, failures keep no pod, and a
// new agent goes on where the last one ended. On fake operations.
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const UniqueVolumeName kGrownDevice("kubernetes.io/local-volume/disk");

class VolumeExpanderTest : public ManagerTest {
 protected:
  void SetUp() override { StartAgent(); }

  static std::string Storage(const std::string& size, const std::string& status = "",
                             const std::string& mode = "ReadWriteOnce",
                             const std::string& request = "1Gi") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  "
           "capacity: "
           "{storage: " +
           size + "}\n  accessModes: [" + mode +
           "]\n  local: {path: /dev/vdb}\n  nodeAffinity: {required: {nodeSelectorTerms: "
           "[{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default, uid: claim-data}\nspec:\n  accessModes: [" +
           mode + "]\n  volumeName: disk\n  resources: {requests: {storage: " + request + "}}\n" +
           status;
  }
  static std::string PodA(bool read_only = false) {
    return PodManifest("a", {read_only ? "data: persistentVolumeClaim: {claimName: data, readOnly: "
                                         "true}"
                                       : kUse});
  }
  size_t Expands() { return operations().Count("expand", ExpandKey(kGrownDevice)); }
  const ExpandRequest& LastExpand() {
    return *operations().Last("expand", ExpandKey(kGrownDevice))->expand;
  }
  void FailExpand(Error error, int times = 1) {
    operations().FailNext("expand", ExpandKey(kGrownDevice), std::move(error), times);
  }
  ClaimResize Recorded() const {
    const auto row = store.Find(kClaimBindingRecordKind, "disk");
    return row ? DecodeClaimBindingRecord(*row).value().resize.value_or(ClaimResize{})
               : ClaimResize{};
  }
  bool HasCondition(std::string_view type) const {
    for (const ClaimCondition& condition : Recorded().conditions) {
      if (condition.type == type) return true;
    }
    return false;
  }
  static Quantity Gi(int64_t count) { return Quantity::FromBytes(count << 30); }
};

TEST_F(VolumeExpanderTest, ALargerVolumeIsExpandedAndTheClaimSaysSo) {
  Deliver(Storage("1Gi") + PodA());
  EXPECT_EQ(Expands(), 0u);
  EXPECT_EQ(Recorded().capacity, Gi(1));
  operations().Hang(ExpandKey(kGrownDevice));
  Deliver(Storage("2Gi") + PodA());
  ASSERT_EQ(Expands(), 1u);
  EXPECT_EQ(LastExpand().new_size, Gi(2));
  EXPECT_EQ(LastExpand().old_size, Gi(1));
  EXPECT_EQ(LastExpand().pods, std::vector<PodUid>{PodUid("a")});
  // On record before the call.
  EXPECT_EQ(Recorded().status, kNodeResizeInProgress);
  EXPECT_EQ(Recorded().allocated, Gi(2));
  EXPECT_TRUE(HasCondition(kResizing));
  operations().Release(ExpandKey(kGrownDevice));
  Settle();
  EXPECT_EQ(Recorded().capacity, Gi(2));
  EXPECT_EQ(Recorded().status, "");
  EXPECT_TRUE(Recorded().conditions.empty());
  EXPECT_EQ(Expands(), 1u);
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(View("a").volumes.at(0).device_state, "DeviceMounted");
}

// For a minute it was shown with the size that it had before.
TEST_F(VolumeExpanderTest, AVolumeThatGrewWasShownWithItsOldSize) {
  int measured = 0;
  metrics = std::make_shared<FakePlugin::MetricsScript>();
  metrics->answer = [&measured](const SpecName&, const CallOptions&) {
    ++measured;
    return Result<Metrics>(Metrics());
  };
  stats_period = minutes(1);
  StartAgent();
  Deliver(Storage("1Gi") + PodA());
  Pass(seconds(7));
  ASSERT_EQ(measured, 1);
  Deliver(Storage("2Gi") + PodA());
  ASSERT_EQ(Expands(), 1u);
  Pass(seconds(1));
  EXPECT_EQ(measured, 2);
}

// Such a volume is at the places of its pods alone, and only one that has it tells where it is.
TEST_F(VolumeExpanderTest, AVolumeWithoutADeviceIsExpandedWhereAPodHasIt) {
  const UniqueVolumeName share("test.io/array/share");
  const auto storage = [](const std::string& size) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: share}\nspec:\n  "
           "capacity: {storage: " +
           size +
           "}\n  accessModes: [ReadWriteOnce]\n  flexVolume: {driver: test.io/array}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default, uid: claim-data}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: share\n"
           "  resources: {requests: {storage: 1Gi}}\n";
  };
  attach->attaches = false;
  StartAgent();
  operations().FailNext("mount", Key("a", "share"), Error::NotApplied(Code::kInternal, "x"), 1000);
  const std::string pods = PodManifest("a", {kUse}) + PodManifest("b", {kUse});
  Deliver(storage("1Gi") + pods);
  ASSERT_EQ(Phase("b"), "Ready");
  Deliver(storage("2Gi") + pods);
  const FakeVolumeOperations::Call* expand = operations().Last("expand", ExpandKey(share));
  ASSERT_NE(expand, nullptr);
  EXPECT_EQ(expand->expand->target.key, Key("b", "share"));
}

// A driver is told a pod's path, so the device's one mount does not do.
TEST_F(VolumeExpanderTest, AVolumeWhosePluginNeedsAPodIsExpandedOnceAPodHasIt) {
  attach->growth_needs_pod = true;
  StartAgent();
  operations().FailNext("mount", Key("a", "disk"), Error::NotApplied(Code::kInternal, "x"), 1000);
  Deliver(Storage("1Gi") + PodA());
  ASSERT_EQ(View("a").volumes.at(0).device_state, "DeviceMounted");
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Expands(), 0u);
  Deliver(Storage("2Gi") + PodA() + PodManifest("b", {kUse}));
  ASSERT_EQ(Phase("b"), "Ready");
  ASSERT_EQ(Expands(), 1u);
  EXPECT_EQ(LastExpand().target.key, Key("b", "disk"));
}

TEST_F(VolumeExpanderTest, NothingIsCalledBeforeTheClaimIsToldOnRecord) {
  Deliver(Storage("1Gi") + PodA());
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1000);
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Expands(), 0u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(VolumeExpanderTest, AVolumeIsToldAtItsMountWhatItIsToBe) {
  Deliver(Storage("1Gi") + PodA());
  Deliver(Storage("2Gi"));
  Deliver(Storage("2Gi") + PodA());
  const MountDeviceRequest& mount =
      *operations().Last("mount_device", OperationKey(kGrownDevice))->mount_device;
  EXPECT_EQ(mount.size, Gi(1));
  EXPECT_EQ(mount.grow_to, Gi(2));
  EXPECT_EQ(Recorded().capacity, Gi(2));
}

TEST_F(VolumeExpanderTest, AFailureBacksOffAndKeepsNoPod) {
  Deliver(Storage("1Gi") + PodA());
  FailExpand(Error::NotApplied(Code::kResourceExhausted, "device /dev/vdb is too small"), 1000);
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Recorded().status, kNodeResizeInProgress);
  EXPECT_TRUE(HasCondition(kNodeResizeError));
  const VolumeView volume = View("a").volumes.at(0);
  ASSERT_TRUE(volume.problem);
  EXPECT_EQ(volume.problem->message, "device /dev/vdb is too small");
  EXPECT_NE(volume.problem->next_try_unix_ms, 0);
  Pass(minutes(60));
  EXPECT_GT(Expands(), 20u);
  EXPECT_LT(Expands(), 60u);  // about one in two minutes
  EXPECT_EQ(operations().Count("mount_device", OperationKey(kGrownDevice)), 1u);
}

TEST_F(VolumeExpanderTest, ADeviceThatWasEnlargedIsNotWaitedForByTheBackOff) {
  Deliver(Storage("1Gi") + PodA());
  FailExpand(Error::NotApplied(Code::kResourceExhausted, "device /dev/vdb is too small"), 6);
  Deliver(Storage("2Gi") + PodA());
  Pass(seconds(20));  // 0.5 s, 1 s, 2 s, 4 s, 8 s
  ASSERT_EQ(Expands(), 6u);
  manager().events().DeviceAppeared({"/dev/vdc"});
  Settle();
  EXPECT_EQ(Expands(), 6u);
  manager().events().DeviceAppeared({"/dev/disk/by-id/virtio-disk", "/dev/vdb"});
  Settle();
  EXPECT_EQ(Expands(), 7u);
  EXPECT_EQ(Recorded().capacity, Gi(2));
}

TEST_F(VolumeExpanderTest, AnUnknownOutcomeIsLookedAtOnceMoreAndHoldsNobodyUp) {
  Deliver(Storage("1Gi") + PodA());
  FailExpand(Error::MaybeApplied(Code::kUnavailable, "the worker died"));
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(operations().Count("mount_device", OperationKey(kGrownDevice)), 2u);
  EXPECT_EQ(View("a").volumes.at(0).device_state, "DeviceMounted");
  Pass(seconds(2));
  EXPECT_EQ(Expands(), 2u);
  EXPECT_EQ(Recorded().capacity, Gi(2));
}

TEST_F(VolumeExpanderTest, WhatCannotBeDoneInUseWaitsForTheNextMountOrACommand) {
  Deliver(Storage("1Gi") + PodA());
  FailExpand(Error::NotApplied(Code::kFailedPrecondition, "CAP_SYS_RESOURCE"), 2);
  Deliver(Storage("2Gi") + PodA());
  Pass(minutes(60));
  EXPECT_EQ(Expands(), 1u);
  EXPECT_TRUE(HasCondition(kNodeResizeError));
  EXPECT_EQ(View("a").volumes.at(0).problem->message, "CAP_SYS_RESOURCE");
  ASSERT_TRUE(manager().pod_commands().Retry(PodUid("a")).ok());
  Settle();
  EXPECT_EQ(Expands(), 2u);
  Deliver(Storage("2Gi"));
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Expands(), 3u);
  EXPECT_EQ(Recorded().capacity, Gi(2));
  EXPECT_FALSE(View("a").volumes.at(0).problem);
}

TEST_F(VolumeExpanderTest, AnInfeasibleSizeIsLeftUntilSomebodyChangesIt) {
  Deliver(Storage("1Gi") + PodA());
  FailExpand(Error::NotApplied(Code::kInvalidArgument, "ext2"), 1);
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Recorded().status, kNodeResizeInfeasible);
  Pass(minutes(60));
  EXPECT_EQ(Expands(), 1u);
  Deliver(Storage("3Gi") + PodA());
  EXPECT_EQ(Expands(), 2u);
  EXPECT_EQ(Recorded().capacity, Gi(3));
}

// A bound volume is not made smaller, so a growth that fails is tried until it succeeds.
TEST_F(VolumeExpanderTest, AWishForABoundVolumeCannotBeTakenBack) {
  Deliver(Storage("1Gi") + PodA());
  FailExpand(Error::NotApplied(Code::kResourceExhausted, "too small"), 1000);
  Deliver(Storage("2Gi") + PodA());
  Deliver(Storage("1Gi") + PodA());
  EXPECT_NE(Recorded().status, "");
  EXPECT_TRUE(View("a").volumes.at(0).problem);
  const size_t expands = Expands();
  Pass(minutes(60));
  EXPECT_GT(Expands(), expands);
  EXPECT_EQ(Recorded().capacity, Gi(1));
}

TEST_F(VolumeExpanderTest, AReadOnlyUseIsRefusedWithOneEvent) {
  Deliver(Storage("1Gi") + PodA(true));
  Deliver(Storage("2Gi") + PodA(true));
  Pass(minutes(10));
  EXPECT_EQ(Expands(), 0u);
  EXPECT_EQ(
      std::count(host_parts.events.begin(), host_parts.events.end(), "a FileSystemResizeFailed"),
      1);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(VolumeExpanderTest, AnAgentThatEndedInBetweenIsFollowedByOneThatFinishes) {
  Deliver(Storage("1Gi") + PodA());
  operations().Hang(ExpandKey(kGrownDevice));
  Deliver(Storage("2Gi") + PodA());
  ASSERT_EQ(Recorded().status, kNodeResizeInProgress);
  StartAgent();
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Expands(), 1u);  // of this agent
  EXPECT_EQ(Recorded().capacity, Gi(2));
  EXPECT_EQ(Recorded().status, "");
}

// The storage was larger, the node's part was still to come, and the claim got the new size.
TEST_F(VolumeExpanderTest, AGrowthThatAKubeletHadBegunWasNeverFinished) {
  const std::string growing =
      "status:\n  capacity: {storage: 1Gi}\n  allocatedResourceStatuses: {storage: "
      "NodeResizePending}\n";
  Deliver(Storage("2Gi", growing, "ReadWriteOnce", "2Gi") + PodA());
  ASSERT_EQ(Expands(), 1u);
  EXPECT_EQ(LastExpand().old_size, Gi(1));
  EXPECT_EQ(LastExpand().new_size, Gi(2));
  EXPECT_EQ(Recorded().capacity, Gi(2));
  EXPECT_EQ(Recorded().status, "");
  // Whatever the manifest goes on saying.
  StartAgent();
  Deliver(Storage("2Gi", growing, "ReadWriteOnce", "2Gi") + PodA());
  EXPECT_EQ(Expands(), 0u);
  EXPECT_EQ(Recorded().capacity, Gi(2));
}

TEST_F(VolumeExpanderTest, AClaimOfAClusterIsExpandedAsItsStatusSays) {
  const auto status = [](const std::string& capacity, const std::string& more) {
    return "status:\n  phase: Bound\n  capacity: {storage: " + capacity + "}\n" + more;
  };
  const std::string allocated = "  allocatedResources: {storage: 2Gi}\n";
  Deliver(Storage("1Gi", status("1Gi", "")) + PodA());
  // Its controller is still at it.
  Deliver(Storage("2Gi", status("1Gi", allocated + "  allocatedResourceStatuses: {storage: "
                                                   "ControllerResizeInProgress}\n")) +
          PodA());
  EXPECT_EQ(Expands(), 0u);
  Deliver(Storage("2Gi", status("1Gi", allocated + "  allocatedResourceStatuses: {storage: "
                                                   "NodeResizePending}\n")) +
          PodA());
  EXPECT_EQ(Expands(), 1u);
  EXPECT_EQ(Recorded().capacity, Gi(2));
  PersistentVolumeClaim claim;
  claim.metadata.name = "data";
  claim.metadata.name_space = "default";
  EXPECT_EQ(manager().storage().ClaimStatus(claim).capacity.at("storage"), Gi(2));
}

TEST_F(VolumeExpanderTest, ASizeThatTheOwnerOfAClusterClaimGaveUpIsInfeasibleOnceItFailsAgain) {
  const std::string status =
      "status:\n  phase: Bound\n  capacity: {storage: 1Gi}\n  allocatedResources: {storage: 2Gi}\n"
      "  allocatedResourceStatuses: {storage: NodeResizePending}\n";
  FailExpand(Error::NotApplied(Code::kResourceExhausted, "too small"), 1000);
  Deliver(Storage("2Gi", status, "ReadWriteOnce", "2Gi") + PodA());
  Pass(minutes(10));
  EXPECT_EQ(Recorded().status, kNodeResizeInProgress);
  Deliver(Storage("2Gi", status, "ReadWriteOnce", "1500Mi") + PodA());
  Pass(minutes(10));
  EXPECT_EQ(Recorded().status, kNodeResizeInfeasible);
  const size_t expands = Expands();
  Pass(minutes(60));
  EXPECT_EQ(Expands(), expands);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(VolumeExpanderTest, TheSizeOfAClaimGoesWithItsBinding) {
  Deliver(Storage("1Gi") + PodA());
  Deliver(Storage("2Gi") + PodA());
  EXPECT_EQ(Recorded().capacity, Gi(2));
  const std::string both = Storage("2Gi");
  Deliver(both.substr(0, both.find("---", 3)));
  Pass(seconds(5));
  EXPECT_EQ(Recorded().capacity, Quantity());
}

}  // namespace
}  // namespace volumed
