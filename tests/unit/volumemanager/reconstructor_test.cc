// What a new agent makes of records, mounts and directories that another one left.
#include "volumemanager/reconstructor.h"

#include "operation/storage_record.h"
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

class ReconstructorTest : public ManagerTest {
 protected:
  void LeavePod(const std::string& boot_id, VolumeState state = VolumeState::kSetUp) {
    PutPodRecord("a");
    PutVolumeRecord("a", "data", "kubernetes.io/empty-dir", state, boot_id);
  }
  void LeaveTwoPods() {
    LeavePod("boot-1");
    PutPodRecord("b");
    PutVolumeRecord("b", "data", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  }
};

TEST_F(ReconstructorTest, AWantedVolumeOfThisBootIsVerifiedByARemount) {
  LeavePod("boot-1");
  StartAgent("boot-1");
  Settle();
  EXPECT_EQ(View("a").volumes.at(0).state, "SetUp");
  EXPECT_TRUE(View("a").volumes.at(0).uncertain);
  Deliver(PodManifest("a", {kData}));
  const auto* call = operations().Last("mount", Key("a", "data"));
  ASSERT_NE(call, nullptr);
  EXPECT_TRUE(call->mount->is_remount);
  EXPECT_TRUE(call->mount->reconstructed);
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_FALSE(View("a").volumes.at(0).uncertain);
}

TEST_F(ReconstructorTest, AVolumeOfAnotherBootIsSetUpAnew) {
  LeavePod("boot-0");
  StartAgent("boot-1");
  Settle();
  EXPECT_EQ(View("a").volumes.at(0).state, "SettingUp");
  Deliver(PodManifest("a", {kData}));
  const auto* call = operations().Last("mount", Key("a", "data"));
  ASSERT_NE(call, nullptr);
  EXPECT_FALSE(call->mount->is_remount);
  EXPECT_TRUE(call->mount->reconstructed);
  ASSERT_EQ(agent_->restored.size(), 1u);
  EXPECT_EQ(agent_->restored[0].state, VolumeState::kSettingUp);
  EXPECT_TRUE(agent_->restored[0].uncertain);
}

TEST_F(ReconstructorTest, AFailedVerificationNeverUnmountsAWantedVolume) {
  LeavePod("boot-1");
  StartAgent("boot-1");
  Settle();
  operations().FailNext("mount", Key("a", "data"), Error::NotApplied(Code::kInternal, "x"), 3);
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(View("a").volumes.at(0).state, "SetUp");
  EXPECT_TRUE(View("a").volumes.at(0).uncertain);
  EXPECT_EQ(Phase("a"), "Pending");
  Pass(seconds(1));
  EXPECT_TRUE(operations().Last("mount", Key("a", "data"))->mount->reconstructed);
  Pass(seconds(10));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("unmount"), 0u);
}

TEST_F(ReconstructorTest, AnUnwantedVolumeOfAnyStateIsTornDownWithItsOwnPlugin) {
  for (const VolumeState state :
       {VolumeState::kSettingUp, VolumeState::kSetUp, VolumeState::kTearingDown}) {
    for (const std::string boot : {"boot-0", "boot-1"}) {
      LeavePod(boot, state);
      StartAgent("boot-1");
      Deliver("");
      ASSERT_EQ(operations().Count("unmount", Key("a", "data")), 1u) << VolumeStateName(state);
      EXPECT_EQ(operations().Last("unmount", Key("a", "data"))->plugin_name,
                "kubernetes.io/empty-dir");
      EXPECT_EQ(operations().Count("mount"), 0u);
      EXPECT_EQ(Phase("a"), "gone");
    }
  }
}

TEST_F(ReconstructorTest, AMountWhoseVolumeRecordIsLostIsFoundByItsPod) {
  PutPodRecord("a");
  kernel.mount_points = {"/", "/var/lib/volumed",
                         "/var/lib/volumed/pods/a/volumes/kubernetes.io~secret/s",
                         "/var/lib/volumed/pods/a/volumes/kubernetes.io~secret/s/nested"};
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(operations().Last("unmount", Key("a", "s"))->plugin_name, "kubernetes.io/secret");
}

TEST_F(ReconstructorTest, ADirectoryWhoseVolumeRecordIsLostIsFoundByItsPod) {
  PutPodRecord("a");
  kernel.directories["/var/lib/volumed/pods/a/volumes"] = {"kubernetes.io~empty-dir"};
  kernel.directories["/var/lib/volumed/pods/a/volumes/kubernetes.io~empty-dir"] = {"data"};
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 1u);
}

// A start waited for it, and no pod of the node was handled.
TEST_F(ReconstructorTest, APodWithAMountOverItsDirectoryIsLeftAloneAndNotLookedIntoUntilItIsGone) {
  for (const std::string place : {"", "/volumes", "/volumes/kubernetes.io~empty-dir"}) {
    PutPodRecord("a");
    PutPodRecord("b");
    kernel.mount_points = {"/", "/var/lib/volumed", "/var/lib/volumed/pods/a" + place};
    for (const std::string pod : {"a", "b"}) {
      const std::string volumes = "/var/lib/volumed/pods/" + pod + "/volumes";
      kernel.directories[volumes] = {"kubernetes.io~empty-dir"};
      kernel.directories[volumes + "/kubernetes.io~empty-dir"] = {"data"};
    }
    StartAgent();
    Deliver("");
    EXPECT_EQ(operations().Count("unmount", Key("b", "data")), 1u) << place;
    EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 0u) << place;
    EXPECT_EQ(operations().Count("remove", Key("a", "")), 0u) << place;
    ASSERT_EQ(View("a").problems.size(), 1u) << place;
    EXPECT_NE(View("a").problems[0].message.find("is mounted over its directory "
                                                 "/var/lib/volumed/pods/a" +
                                                 place + "; nothing of this pod is touched"),
              std::string::npos)
        << View("a").problems[0].message;
    manager().events().MountsGone({"/var/lib/volumed/pods/b", "/var/lib/volumed/pods/a/other"});
    Settle();
    EXPECT_EQ(operations().Count("remove", Key("a", "")), 0u) << place;
    manager().events().MountsGone({"/var/lib/volumed/pods/a" + place});
    Settle();
    EXPECT_EQ(Phase("a"), "gone") << place;
  }
}

// What is mounted where volumes are is a volume.
TEST_F(ReconstructorTest, AVolumesMountDoesNotCoverItsPod) {
  PutPodRecord("a");
  kernel.mount_points = {"/var/lib/volumed/pods/a/volumes/kubernetes.io~secret/s",
                         "/var/lib/volumed/pods/a/elsewhere"};
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount", Key("a", "s")), 1u);
}

TEST_F(ReconstructorTest, WithoutARecordAMountIsNotOursUnlessTheRootIsAdopted) {
  kernel.mount_points = {"/var/lib/volumed/pods/x/volumes/kubernetes.io~secret/s"};
  kernel.directories["/var/lib/volumed/pods"] = {"x", "y"};
  kernel.directories["/var/lib/volumed/pods/y/volumes"] = {"kubernetes.io~empty-dir"};
  kernel.directories["/var/lib/volumed/pods/y/volumes/kubernetes.io~empty-dir"] = {"data"};
  StartAgent();
  Deliver("");
  EXPECT_TRUE(operations().calls.empty());
  EXPECT_EQ(UnrecordedMountsListed(),
            std::vector<std::string>{
                "volume s of pod x: /var/lib/volumed/pods/x/volumes/kubernetes.io~secret/s"});

  adopt_root = true;
  StartAgent();
  Deliver(PodManifest("other", {kData}));
  EXPECT_EQ(operations().Count("unmount", Key("x", "s")), 1u);
  EXPECT_EQ(operations().Count("unmount", Key("y", "data")), 1u);
}

// Somebody had lost the agent's own directory, and adopted the root as the start said: within a
// second every pod that had been applied was unpublished, and the data of inline volumes went.
TEST_F(ReconstructorTest, AnAdoptedRootOfWhichNoSourceHadAnyPodWasEmptied) {
  kernel.mount_points = {"/var/lib/volumed/pods/x/volumes/kubernetes.io~secret/s",
                         "/var/lib/volumed/pods/z/volumes/kubernetes.io~secret/s"};
  kernel.directories["/var/lib/volumed/pods"] = {"x", "y", "z"};
  kernel.directories["/var/lib/volumed/pods/y/volumes"] = {"kubernetes.io~empty-dir"};
  kernel.directories["/var/lib/volumed/pods/y/volumes/kubernetes.io~empty-dir"] = {"data"};
  adopt_root = true;
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount", Key("x", "s")), 0u);
  EXPECT_EQ(operations().Count("unmount", Key("y", "data")), 1u) << "nothing is mounted in it";
  EXPECT_EQ(Phase("x"), "Held");
  // Pods that come one after the other let none of the others go.
  Deliver(PodManifest("other", {kData}));
  EXPECT_EQ(operations().Count("unmount", Key("x", "s")), 0u);
  const std::vector<AdoptedPodView> held = manager().pods().AwaitingAcceptance();
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].mounted, std::vector<std::string>{"s"});
  (void)Delete("z");
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("z", "s")), 1u) << "a person has said so";
  manager().pod_commands().AcceptAdopted();
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("x", "s")), 1u);
}

// Two manifests had one name by mistake, and the second one had the uid of the pod that was there.
TEST_F(ReconstructorTest, AnAdoptedPodThatARefusedManifestNamesWasTakenAway) {
  kernel.mount_points = {"/var/lib/volumed/pods/x/volumes/kubernetes.io~secret/s"};
  kernel.directories["/var/lib/volumed/pods"] = {"x"};
  adopt_root = true;
  StartAgent();
  ObjectList list{"manifests", true, Objects(PodManifest("other", {kData})), {}};
  list.problems = {{"b.yaml", 0, "ConfigMap default/a", "data", "must be a map"},
                   {"b.yaml", 1, "Pod default/other", "metadata.name", "was there first"}};
  agent_->catalog.Update(std::move(list));
  manager().ObjectsChanged();
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("x", "s")), 0u);
  ASSERT_EQ(manager().pods().AwaitingAcceptance().size(), 1u);
}

TEST_F(ReconstructorTest, APodWithAnUnreadableRecordIsLeftAloneAndShown) {
  LeaveTwoPods();
  store.Corrupt(kPodVolumeRecordKind, "a/data", "checksum is wrong");
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 0u);
  EXPECT_EQ(operations().Count("unmount", Key("b", "data")), 1u);
  EXPECT_EQ(Phase("a"), "Refused");
  EXPECT_EQ(View("a").problems.at(0).step, "ReadRecord");
  EXPECT_NE(View("a").problems.at(0).message.find("checksum is wrong"), std::string::npos);
  EXPECT_EQ(manager().quarantined_pods(), 1u);
  Deliver(PodManifest("a", {kData}));
  Pass(seconds(600));
  EXPECT_EQ(operations().Count("mount"), 0u);
}

// One bit had turned in the key of a hold: the pod was taken down under the process that held it.
TEST_F(ReconstructorTest, ADamagedHoldOfAPodThatNobodyKnowsHeldNobody) {
  LeaveTwoPods();
  store.Corrupt(kHoldRecordKind, "c/pid-1", "checksum is wrong");
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_NE(View("b").problems.at(0).message.find("which may hold this pod: checksum is wrong"),
            std::string::npos)
      << View("b").problems.at(0).message;
}

TEST_F(ReconstructorTest, ADamagedHoldOfAPodOnRecordHoldsThatPodAlone) {
  LeaveTwoPods();
  store.Corrupt(kHoldRecordKind, "a/pid-1", "checksum is wrong");
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 0u);
  EXPECT_EQ(operations().Count("unmount", Key("b", "data")), 1u);
}

// The count of the rows said that some are gone: one of them had held a pod that was taken down.
TEST_F(ReconstructorTest, AHoldWhoseRowIsGoneHeldNobody) {
  LeaveTwoPods();
  store.Corrupt(kLostRowsRecordKind, kLostRowsKey, "9 rows were written, and 8 are there");
  StartAgent();
  Deliver("");
  EXPECT_EQ(operations().Count("unmount"), 0u);
  const PodView left = View("b");
  ASSERT_EQ(left.held_by.size(), 1u);
  EXPECT_NE(left.held_by[0].find("9 rows were written, and 8 are there"), std::string::npos)
      << left.held_by[0];
  EXPECT_EQ(manager().quarantined_pods(), 0u) << "they are looked after otherwise";
  (void)Delete("b", true);
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("b", "data")), 1u) << "a person has said so";
  EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 0u);
}

TEST_F(ReconstructorTest, AHoldWhoseRowIsGoneEndedWithItsBoot) {
  LeavePod("boot-0");
  store.Corrupt(kLostRowsRecordKind, kLostRowsKey, "9 rows were written, and 8 are there");
  StartAgent("boot-1");
  Deliver("");
  EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 1u);
}

// Nobody told the store: rows were written over, and nothing waited for a person's word.
TEST_F(ReconstructorTest, ARowOfANewerProgramIsToldToTheStoreAndIsNoPod) {
  LeavePod("boot-1");
  StorageReservationRecord reservation;
  reservation.holder.id = "reclaim/v";
  std::vector<Record> newer = {
      EncodeRecord(CommandNumberRecord{7}), EncodeRecord(StorageOwnerRecord{.volume = "v"}),
      EncodeRecord(ObjectSourceRecord{.name = "/manifests"}), EncodeRecord(reservation)};
  for (Record& row : newer) {
    row.version = 99;
    ASSERT_TRUE(store.Put(row, Durability::kPowerLoss).ok());
  }
  StartAgent("boot-1");
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(Phase("a"), "Ready");
  for (const Record& row : newer) {
    EXPECT_EQ(store.Find(row.kind, row.key), row);
    const Result<LoadedRecords> loaded = store.Load(row.kind);
    ASSERT_TRUE(loaded.ok());
    ASSERT_EQ(loaded->quarantined.size(), 1u) << row.kind;
    EXPECT_NE(loaded->quarantined[0].reason.find("version 99"), std::string::npos);
  }
  EXPECT_EQ(manager().quarantined_pods(), 0u);
}

TEST_F(ReconstructorTest, NothingIsMountedBeforeTheRecordsAreLoaded) {
  LeavePod("boot-1");
  store.FailNextLoad(Error::NotApplied(Code::kUnavailable, "locked"));
  kernel.failing_list_mounts = 1;
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_FALSE(manager().Ready());
  EXPECT_NE(manager().NotReadyReason().find("locked"), std::string::npos);
  EXPECT_EQ(View("a").problems.at(0).step, "LoadRecords");
  EXPECT_EQ(Delete("a")->error().code(), Code::kUnavailable);
  EXPECT_EQ(operations().Count("mount"), 0u);
  Pass(seconds(1));
  EXPECT_EQ(operations().Count("mount"), 0u);
  EXPECT_NE(manager().NotReadyReason().find("mountinfo"), std::string::npos);
  Pass(seconds(1));
  EXPECT_TRUE(manager().Ready());
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ReconstructorTest, AVolumeThatHasAnotherPluginNowWaitsForTheOldOneToLeave) {
  PutPodRecord("a");
  PutVolumeRecord("a", "data", "kubernetes.io/secret", VolumeState::kSetUp, "boot-1");
  watch.processes[4711] = 99;
  HoldRecord hold{PodUid("a"), BootId("boot-1"), 4711, 99, ""};
  ASSERT_TRUE(store.Put(EncodeRecord(hold), kHoldRecordDurability).ok());
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  EXPECT_TRUE(operations().calls.empty());
  EXPECT_EQ(View("a").volumes.at(0).problem->step, "WaitForUnmount");
  watch.EndProcess(4711);
  Settle();
  EXPECT_EQ(operations().Last("unmount", Key("a", "data"))->plugin_name, "kubernetes.io/secret");
  EXPECT_EQ(operations().Count("mount"), 1u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ReconstructorTest, ARestartAtEveryRecordWriteConverges) {
  const std::string wanted = PodManifest("a", {kData, kConf}) + ConfigMap("app", "1");
  for (uint64_t at = 1; at <= 12; ++at) {
    store.Revive();
    store.CrashAtCall(at, at % 2 == 0 ? MemoryRecordStore::CrashPoint::kAfter
                                      : MemoryRecordStore::CrashPoint::kBefore);
    try {
      StartAgent();
      Deliver(wanted);
      Delete("a");
    } catch (const SimulatedCrash&) {
    }
    agent_.reset();
    store.Revive();
    StartAgent();
    Deliver("");
    Pass(seconds(5));
    EXPECT_EQ(Phase("a"), "gone") << "crash at write " << at;
    EXPECT_FALSE(HasPodRecord("a")) << "crash at write " << at;
    node.present.clear();
  }
}

}  // namespace
}  // namespace volumed
