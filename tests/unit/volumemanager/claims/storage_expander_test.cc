// Claims that ask for more than their volumes have, where a driver's controller can be asked: what
// is on record before and after, and what is not done. On fake operations.
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const UniqueVolumeName kUnique("kubernetes.io/csi/disk");

class StorageExpanderTest : public ManagerTest {
 protected:
  void SetUp() override { StartAgent(); }

  static std::string Class(bool allows = true) {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\n"
           "provisioner: disk.example.com\nallowVolumeExpansion: " +
           std::string(allows ? "true\n" : "false\n");
  }
  static std::string Storage(const std::string& request, const std::string& capacity = "1Gi",
                             const std::string& status = "") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n"
           "  capacity: {storage: " +
           capacity +
           "}\n  accessModes: [ReadWriteOnce]\n  storageClassName: fast\n"
           "  csi: {driver: disk.example.com, volumeHandle: vol-1}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default, uid: claim-data}\nspec:\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: fast\n  volumeName: disk\n  resources: {requests: {storage: " +
           request + "}}\n" + status;
  }
  std::string Pod() { return PodManifest("a", {kUse}); }

  size_t Grown() { return operations().Count("expand_storage", ExpandStorageKey(kUnique)); }
  const ExpandStorageRequest& Last() {
    return *operations().Last("expand_storage", ExpandStorageKey(kUnique))->expand_storage;
  }
  void FailNext(Error error, int times = 1) {
    operations().FailNext("expand_storage", ExpandStorageKey(kUnique), std::move(error), times);
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

TEST_F(StorageExpanderTest, AClaimThatAsksForMoreGetsItAndTheNodeFollows) {
  Deliver(Class() + Storage("1Gi"));
  EXPECT_EQ(Grown(), 0u);
  operations().Hang(ExpandStorageKey(kUnique));
  Deliver(Class() + Storage("3Gi"));
  ASSERT_EQ(Grown(), 1u);
  EXPECT_EQ(Last().new_size, Gi(3));
  EXPECT_EQ(Last().old_size, Gi(1));
  // On record before the call.
  EXPECT_EQ(Recorded().status, kControllerResizeInProgress);
  EXPECT_EQ(Recorded().allocated, Gi(3));
  EXPECT_TRUE(HasCondition(kResizing));
  operations().grows_to = ExpandedStorage{Gi(4), true};
  operations().Release(ExpandStorageKey(kUnique));
  Settle();
  EXPECT_EQ(Recorded().volume_capacity, Gi(4)) << "the driver rounds up";
  EXPECT_EQ(Recorded().status, kNodeResizePending);
  EXPECT_EQ(Recorded().allocated, Gi(4));
  EXPECT_EQ(Recorded().capacity, Gi(1)) << "until the node has done its part";
  EXPECT_EQ(Grown(), 1u);
}

// For two minutes nothing showed that the controller had been asked.
TEST_F(StorageExpanderTest, AGrowthThatHangsAtTheControllerWasNotShown) {
  Deliver(Class() + Storage("1Gi") + Pod());
  operations().Hang(ExpandStorageKey(kUnique));
  operations().awaited[ExpandStorageKey(kUnique)] = {
      "CSI driver disk.example.com: ControllerExpandVolume", 1'767'323'045'678};
  Deliver(Class() + Storage("3Gi") + Pod());
  ASSERT_EQ(Grown(), 1u);
  EXPECT_EQ(View("a").volumes.at(0).awaited, "CSI driver disk.example.com: ControllerExpandVolume");
  const auto claim = manager().storage().FindPersistentVolumeClaim({"default", "data"});
  ASSERT_TRUE(claim);
  EXPECT_NE(claim->reason.find("awaits CSI driver disk.example.com: ControllerExpandVolume since "),
            std::string::npos)
      << claim->reason;
}

TEST_F(StorageExpanderTest, StorageThatNeedsNothingOfTheNodeIsGrownAtOnce) {
  operations().grows_to = ExpandedStorage{Gi(3), false};
  Deliver(Class() + Storage("1Gi"));
  Deliver(Class() + Storage("3Gi"));
  EXPECT_EQ(Recorded().capacity, Gi(3));
  EXPECT_EQ(Recorded().status, "");
  EXPECT_TRUE(Recorded().conditions.empty());
  Pass(minutes(60));
  EXPECT_EQ(Grown(), 1u);
}

TEST_F(StorageExpanderTest, AGrowthThatWasAskedForWhenTheRecordsWereLostDidNotGoOn) {
  Deliver(Class() + Storage("3Gi"));
  ASSERT_EQ(Grown(), 1u);
  EXPECT_EQ(Last().new_size, Gi(3));
  EXPECT_EQ(Last().old_size, Gi(1));
}

TEST_F(StorageExpanderTest, NothingIsCalledBeforeTheIntentIsOnRecord) {
  Deliver(Class() + Storage("1Gi"));
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1, kClaimBindingRecordKind);
  Deliver(Class() + Storage("3Gi"));
  EXPECT_EQ(Grown(), 0u);
  Pass(seconds(5));
  EXPECT_EQ(Grown(), 1u);
}

TEST_F(StorageExpanderTest, TheNextAgentMakesTheSameCallAlsoIfTheClaimAsksForAnotherSizeByThen) {
  Deliver(Class() + Storage("1Gi"));
  operations().Hang(ExpandStorageKey(kUnique));
  Deliver(Class() + Storage("3Gi"));
  StartAgent();
  Deliver(Class() + Storage("2Gi"));
  ASSERT_EQ(Grown(), 1u);
  EXPECT_EQ(Last().new_size, Gi(3)) << "that call may have been made";
  EXPECT_EQ(Recorded().volume_capacity, Gi(3));
}

TEST_F(StorageExpanderTest, AClassThatDoesNotAllowItIsObeyed) {
  Deliver(Class(false) + Storage("1Gi"));
  Deliver(Class(false) + Storage("3Gi"));
  EXPECT_EQ(Grown(), 0u);
  EXPECT_EQ(Recorded().status, "");
}

// The pod's owner was said to act; the claim and its events said nothing.
TEST_F(StorageExpanderTest, AClassThatDoesNotAllowItWasNotNamed) {
  Deliver(Class(false) + Storage("1Gi") + Pod());
  Deliver(Class(false) + Storage("3Gi") + Pod());
  const std::string why = "StorageClass fast does not have allowVolumeExpansion";
  const VolumeView volume = View("a").volumes.at(0);
  ASSERT_TRUE(volume.problem);
  EXPECT_EQ(volume.problem->message, "the claim asks for more: " + why);
  EXPECT_EQ(volume.problem->who_must_act,
            "the owner of StorageClass fast, or of claim default/data");
  EXPECT_EQ(manager().storage().PersistentVolumeClaims().at(0).reason,
            "it asks for more than its volume has: " + why);
  const auto told = [this, &why] {
    const auto& events = host_parts.object_events;
    return std::count_if(events.begin(), events.end(), [&why](const std::string& event) {
      return event.ends_with("VolumeResizeFailed: it asks for more than its volume has: " + why);
    });
  };
  EXPECT_EQ(told(), 1);
  manager().events().DriverIsBack("kubernetes.io/csi", "csi:disk.example.com");
  Settle();
  EXPECT_EQ(told(), 1);
  Deliver(Class() + Storage("3Gi") + Pod());
  EXPECT_EQ(Grown(), 1u);
  EXPECT_EQ(manager().storage().PersistentVolumeClaims().at(0).reason, "");
}

// Only `top` had it, without the driver and the reason.
TEST_F(StorageExpanderTest, AGrowthThatWaitsForItsDriverWasSaidNowhere) {
  Deliver(Class() + Storage("1Gi") + Pod());
  ASSERT_EQ(Phase("a"), "Ready");
  operations().Hang(ExpandStorageKey(kUnique));
  Deliver(Class() + Storage("3Gi") + Pod());
  ASSERT_EQ(Grown(), 1u);
  LaneWait wait;
  wait.text = "CSI driver disk.example.com is gone since 09:30";
  wait.does_not_answer = true;
  wait.step = kWaitForDriver;
  operations().waits_for[ExpandStorageKey(kUnique)] = wait;
  const VolumeView volume = View("a").volumes.at(0);
  ASSERT_TRUE(volume.problem);
  EXPECT_EQ(volume.problem->message, "the claim asks for more, and its growth waits: " + wait.text);
  EXPECT_EQ(volume.problem->who_must_act, kWhoeverRunsTheDriver);
  EXPECT_EQ(manager().storage().PersistentVolumeClaims().at(0).reason,
            "it asks for more than its volume has: " + wait.text);
  const auto claim = agent_->catalog.FindPersistentVolumeClaim("default", "data");
  ASSERT_NE(claim, nullptr);
  const PersistentVolumeClaimStatus status = manager().storage().ClaimStatus(*claim);
  ASSERT_EQ(status.conditions.size(), 1u);
  EXPECT_EQ(status.conditions[0].type, kResizing);
  EXPECT_EQ(status.conditions[0].message, wait.text);
}

// A volume is not deleted while it is made larger; what has not begun is not wanted any more.
TEST_F(StorageExpanderTest, AGrowthThatWaitsForItsDriverKeepsNoVolumeWhoseClaimHasGone) {
  Deliver(Class() + Storage("1Gi"));
  operations().Hang(ExpandStorageKey(kUnique));
  Deliver(Class() + Storage("3Gi"));
  ASSERT_EQ(Grown(), 1u);
  EXPECT_FALSE(operations().given_up.contains(ExpandStorageKey(kUnique)));
  const std::string both = Storage("3Gi");
  Deliver(Class() + both.substr(0, both.rfind("---\n")));
  DeleteClaim("data");
  EXPECT_TRUE(operations().given_up.contains(ExpandStorageKey(kUnique)));
}

TEST_F(StorageExpanderTest, ASecretThatCameDidNotHaveTheGrowthTriedAtOnce) {
  const auto with_secret = [](const std::string& request) {
    std::string objects = Storage(request);
    const std::string source = "volumeHandle: vol-1";
    objects.insert(objects.find(source) + source.size(),
                   ", controllerExpandSecretRef: {name: grow, namespace: default}");
    return Class() + objects;
  };
  Deliver(with_secret("1Gi"));
  FailNext(Error::NotApplied(Code::kUnavailable, "the controller expand secret cannot be had"));
  Deliver(with_secret("3Gi"));
  ASSERT_EQ(Grown(), 1u);
  Deliver(with_secret("3Gi") +
          "---\napiVersion: v1\nkind: Secret\nmetadata: {name: grow, namespace: default}\n");
  EXPECT_EQ(Grown(), 2u);
}

TEST_F(StorageExpanderTest, ADriverThatCannotIsNotAsked) {
  driver->grows = false;
  Deliver(Class() + Storage("1Gi"));
  Deliver(Class() + Storage("3Gi"));
  EXPECT_EQ(Grown(), 0u);
}

TEST_F(StorageExpanderTest, AnInfeasibleSizeIsNotTriedAgainBeforeTheClaimAsksForAnotherOne) {
  FailNext(Error::NotApplied(Code::kOutOfRange, "the array is full"), 1000);
  Deliver(Class() + Storage("1Gi"));
  Deliver(Class() + Storage("9Gi"));
  ASSERT_EQ(Grown(), 1u);
  EXPECT_EQ(Recorded().status, kControllerResizeInfeasible);
  EXPECT_TRUE(HasCondition(kControllerResizeError));
  EXPECT_FALSE(HasCondition(kResizing));
  Pass(minutes(60));
  EXPECT_EQ(Grown(), 1u);
  StartAgent();
  Deliver(Class() + Storage("9Gi"));
  EXPECT_EQ(Grown(), 0u);
  Deliver(Class() + Storage("2Gi"));
  EXPECT_EQ(Grown(), 1u);
  EXPECT_EQ(Last().new_size, Gi(2));
  EXPECT_EQ(Recorded().volume_capacity, Gi(2));
}

// As an API server has it: the agent keeps the status that such a claim's object does not have.
TEST_F(StorageExpanderTest, WhatTheClaimHasGotCannotBeTakenBack) {
  operations().grows_to = ExpandedStorage{Gi(3), false};
  Deliver(Class() + Storage("1Gi"));
  Deliver(Class() + Storage("3Gi"));
  ASSERT_EQ(Recorded().capacity, Gi(3));
  Deliver(Class() + Storage("2Gi"));
  const auto claim = agent_->catalog.FindPersistentVolumeClaim("default", "data");
  ASSERT_NE(claim, nullptr);
  EXPECT_EQ(claim->spec.storage.request, Gi(3));
}

TEST_F(StorageExpanderTest, AFailureWhoseOutcomeIsOpenIsTriedAgainWithTheSameSize) {
  FailNext(Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), 1);
  Deliver(Class() + Storage("1Gi"));
  Deliver(Class() + Storage("3Gi"));
  EXPECT_EQ(Recorded().status, kControllerResizeInProgress);
  EXPECT_TRUE(HasCondition(kControllerResizeError));
  Deliver(Class() + Storage("2Gi"));
  Pass(seconds(5));
  EXPECT_EQ(Grown(), 2u);
  EXPECT_EQ(Last().new_size, Gi(3));
  EXPECT_EQ(Recorded().volume_capacity, Gi(3));
}

TEST_F(StorageExpanderTest, StorageThatGrowsOnlyUnusedWaitsForThePodToLeave) {
  driver->only_unused = true;
  Deliver(Class() + Storage("1Gi") + Pod());
  ASSERT_EQ(Phase("a"), "Ready");
  Deliver(Class() + Storage("3Gi") + Pod());
  Pass(minutes(60));
  EXPECT_EQ(Grown(), 0u);
  EXPECT_EQ(Recorded().status, "") << "the claim may still be changed";
  Deliver(Class() + Storage("3Gi"));
  EXPECT_EQ(Grown(), 1u);
}

// The pod's `explain` said it; the claim and its events said nothing.
TEST_F(StorageExpanderTest, AClaimWasNotToldThatItsStorageGrowsOnlyUnused) {
  driver->only_unused = true;
  Deliver(Class() + Storage("1Gi") + Pod());
  Deliver(Class() + Storage("3Gi") + Pod());
  const auto told = [this] {
    const auto& events = host_parts.object_events;
    return std::count_if(events.begin(), events.end(), [](const std::string& event) {
      return event.find("default/data Warning VolumeResizeFailed") != std::string::npos &&
             event.ends_with(
                 ": it waits to be made larger: its storage is made larger only while nothing of "
                 "the volume is on the node; the pods that have it have to end first");
    });
  };
  EXPECT_EQ(told(), 1);
  Pass(minutes(60));
  Deliver(Class() + Storage("4Gi") + Pod());
  EXPECT_EQ(told(), 1) << "it is told once, however long it waits";
}

TEST_F(StorageExpanderTest, AClaimWhoseStatusSomebodyElseKeepsIsLeftToHim) {
  Deliver(Class() + Storage("1Gi", "1Gi", "status: {capacity: {storage: 1Gi}}\n"));
  Deliver(Class() + Storage("3Gi", "1Gi", "status: {capacity: {storage: 1Gi}}\n"));
  EXPECT_EQ(Grown(), 0u);
}

TEST_F(StorageExpanderTest, ACapacityThatWasProvenOutlivesTheAgentAndTheManifestsSmallerOne) {
  operations().grows_to = ExpandedStorage{Gi(3), false};
  Deliver(Class() + Storage("1Gi"));
  Deliver(Class() + Storage("3Gi"));
  StartAgent();
  Deliver(Class() + Storage("3Gi"));
  EXPECT_EQ(Grown(), 0u);
  EXPECT_EQ(Recorded().volume_capacity, Gi(3));
  EXPECT_EQ(Recorded().capacity, Gi(3));
}

TEST_F(StorageExpanderTest, AVolumeThatWasMadeHereHasItsNewSizeInItsObject) {
  const auto claim = [](const std::string& request) {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default, uid: c1}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: fast\n"
           "  resources: {requests: {storage: " +
           request + "}}\n";
  };
  const auto volume = [this] { return agent_->catalog.FindPersistentVolume("pvc-c1"); };
  Deliver(Class() + claim("1Gi"));
  ASSERT_NE(volume(), nullptr);
  EXPECT_EQ(volume()->spec.capacity, Gi(1));
  Deliver(Class() + claim("2Gi"));
  EXPECT_EQ(volume()->spec.capacity, Gi(2));
  // The row of the claim was written before the agent ended, and that of the volume was not.
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1000, kProvisionRecordKind);
  Deliver(Class() + claim("3Gi"));
  EXPECT_EQ(volume()->spec.capacity, Gi(2));
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 0, kProvisionRecordKind);
  StartAgent();
  Deliver(Class() + claim("3Gi"));
  EXPECT_EQ(volume()->spec.capacity, Gi(3));
}

}  // namespace
}  // namespace volumed
