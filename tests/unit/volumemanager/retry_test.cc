// What the manager tells and takes besides reconciling: a retry of one volume, the event of volumes
// that cannot be tried, unknown fields of a manifest, and what a start found.
#include "operation/unrecorded_mounts.h"
#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/failed_mount_text.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/record_writer.h"

namespace volumed {
namespace {

const Error kBroken = Error::NotApplied(Code::kInternal, "x");

class RetryTest : public ManagerTest {};

TEST_F(RetryTest, OfOneVolumeTriesThatOneAlone) {
  StartAgent();
  operations().FailNext("mount", Key("a", "one"), kBroken, 1);
  operations().FailNext("mount", Key("a", "two"), kBroken, 1);
  Deliver(PodManifest("a", {"one: emptyDir: {}", "two: emptyDir: {}"}));
  ASSERT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  ASSERT_EQ(operations().Count("mount", Key("a", "two")), 1u);
  ASSERT_TRUE(manager().pod_commands().RetryVolume(Key("a", "one")).ok());
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 2u);
  EXPECT_EQ(operations().Count("mount", Key("a", "two")), 1u);
}

// AGE began anew with each start of the agent.
TEST_F(RetryTest, APodIsAsOldAsItsFirstRecordAlsoForTheNextAgent) {
  StartAgent();
  const std::string pod = PodManifest("a", {"one: emptyDir: {}"});
  Deliver(pod);
  const int64_t created = View("a").created_unix_ms;
  ASSERT_NE(created, 0);
  for (int start = 0; start < 2; ++start) {
    Pass(std::chrono::hours(1));
    StartAgent();
    Deliver(pod);
    ASSERT_EQ(Phase("a"), "Ready");
    EXPECT_EQ(View("a").created_unix_ms, created);
  }
}

TEST_F(RetryTest, AnUnknownFieldIsToldOfItsPodAndKeepsItFromNothing) {
  StartAgent();
  const std::string pod = PodManifest("a", {"one: emptyDir: {}"});
  Deliver(pod + "  volume: []\n" + PodManifest("b", {"one: emptyDir: {}"}));
  EXPECT_EQ(Phase("a"), "Ready");
  ASSERT_EQ(View("a").problems.size(), 1u);
  const ProblemView told = View("a").problems[0];
  EXPECT_TRUE(told.is_warning);
  EXPECT_NE(told.message.find("spec.volume: is not a field that Kubernetes knows"),
            std::string::npos)
      << told.message;
  EXPECT_NE(told.message.find("did you mean \"volumes\"?"), std::string::npos) << told.message;
  EXPECT_TRUE(View("b").problems.empty());
  Deliver(pod + PodManifest("b", {"one: emptyDir: {}"}));
  EXPECT_TRUE(View("a").problems.empty());
}

TEST_F(RetryTest, APluginThatChangedEndsTheBackOffOfItsVolumesAlone) {
  StartAgent();
  operations().FailNext("mount", Key("a", "one"), kBroken, 1);
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  ASSERT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  manager().events().PluginChanged("v.io/other");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  const PodView pod = *manager().pods().Find(PodUid("a"));
  manager().events().PluginChanged(pod.volumes.at(0).plugin_name);
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 2u);
}

class DriverEventsTest : public ManagerTest {
 protected:
  static constexpr const char* kDriven = "test.io/driven";
  static constexpr const char* kDisk =
      "iscsi: {targetPortal: 10.0.0.1, iqn: \"iqn.2001-04.com.example:a\", lun: 0}";

  DriverEventsTest() { plugin_kinds.emplace_back(kDriven, "iscsi"); }
  static std::string TwoDisks() {
    return PodManifest("a", {std::string("one: ") + kDisk, std::string("two: ") + kDisk});
  }
};

TEST_F(DriverEventsTest, ADriverThatIsBackEndsTheBackOffOfItsVolumesAlone) {
  StartAgent();
  operations().FailNext("mount", Key("a", "one"), kBroken, 1);
  operations().FailNext("mount", Key("a", "two"), kBroken, 1);
  Deliver(TwoDisks());
  ASSERT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  manager().events().DriverIsBack("test.io/other", "csi:none");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  manager().events().DriverIsBack(kDriven, "csi:one");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 2u);
  EXPECT_EQ(operations().Count("mount", Key("a", "two")), 1u);
}

// They were one series, whichever driver they were of.
TEST_F(DriverEventsTest, VolumesOfDriversAreCountedByTheirDriver) {
  StartAgent();
  Deliver(TwoDisks());
  operations().FailNext("unmount", Key("a", "one"), kBroken, 1);
  const auto figures = [this] {
    VolumeCounting counting;
    while (!manager().pods().CountVolumes(counting)) {
    }
    return counting.Figures();
  };
  const std::pair<std::string, std::string> desired{"test.io/driven:one", "desired_state_of_world"};
  const std::pair<std::string, std::string> actual{"test.io/driven:one", "actual_state_of_world"};
  EXPECT_EQ(figures().at(desired), 1);
  EXPECT_EQ(figures().at(actual), 1);
  EXPECT_EQ(figures().at({"test.io/driven:two", "actual_state_of_world"}), 1);
  Deliver("");
  EXPECT_EQ(figures().count(desired), 0u);
  EXPECT_EQ(figures().at(actual), 1) << "it could not be taken away";
  EXPECT_EQ(figures().count({"test.io/driven:two", "actual_state_of_world"}), 0u);
}

TEST_F(DriverEventsTest, ADriverThatIsBackHasWhatIsToLeaveTriedByWhatIsOnRecord) {
  StartAgent();
  Deliver(TwoDisks());
  operations().FailNext("unmount", Key("a", "one"), kBroken, 1);
  operations().FailNext("unmount", Key("a", "two"), kBroken, 1);
  operations().fault_domains = {{OperationKey(Key("a", "one")), "csi:one"},
                                {OperationKey(Key("a", "two")), "csi:two"}};
  Deliver("");
  ASSERT_EQ(operations().Count("unmount", Key("a", "one")), 1u);
  ASSERT_EQ(operations().Count("unmount", Key("a", "two")), 1u);
  manager().events().DriverIsBack(kDriven, "csi:one");
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("a", "one")), 2u);
  EXPECT_EQ(operations().Count("unmount", Key("a", "two")), 1u);
}

TEST_F(DriverEventsTest, APodThatWaitsForADriverThatWasNeverHereIsBuiltAgainWhenItRegisters) {
  attach->no_driver = Error::NotApplied(Code::kUnavailable, "no such driver yet");
  StartAgent();
  Deliver(PodManifest("a", {std::string("one: ") + kDisk}));
  ASSERT_EQ(operations().Count("mount", Key("a", "one")), 0u);
  attach->no_driver.reset();
  manager().events().DriverIsBack(kDriven, "csi:one");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 0u) << "it answers as before";
  manager().events().DriverChanged(kDriven, "csi:two");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 0u) << "another driver's";
  manager().events().DriverChanged(kDriven, "csi:one");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(RetryTest, RowsOfOtherPartsAreThereBeforeTheFirstPodIsBuiltAndUnreadableOnesStay) {
  other_kinds = {{"of-others", [](const Record& row) -> Status {
                    if (row.bytes == "good") return OkStatus();
                    return Error::NotApplied(Code::kDataLoss, "no such version");
                  }}};
  ASSERT_TRUE(store.Put({"of-others", "a", 1, "good"}, Durability::kPowerLoss).ok());
  ASSERT_TRUE(store.Put({"of-others", "b", 1, "bad"}, Durability::kPowerLoss).ok());
  StartAgent();
  Deliver("");
  const LoadedRecords& rows = agent_->others.at("of-others");
  ASSERT_EQ(rows.records.size(), 1u);
  EXPECT_EQ(rows.records[0].key, "a");
  ASSERT_EQ(rows.quarantined.size(), 1u);
  EXPECT_EQ(rows.quarantined[0].key, "b");
  EXPECT_TRUE(store.Find("of-others", "b").has_value());
}

TEST_F(RetryTest, OfWhatIsNotThereIsRefused) {
  StartAgent();
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  for (const PodVolumeKey& key : {Key("a", "two"), Key("b", "one")}) {
    const Status status = manager().pod_commands().RetryVolume(key);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kNotFound);
  }
}

constexpr const char* kMountOfA = "/var/lib/volumed/pods/a/volumes/p/one/theirs";

TEST_F(RetryTest, AMountThatGoesFromALeavingPodsDirectoryEndsItsBackOff) {
  StartAgent();
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  operations().FailNext("remove", Key("a", ""), kBroken, 100);
  ASSERT_TRUE(Delete("a"));
  const size_t tried = operations().Count("remove");
  ASSERT_GT(tried, 0u);
  manager().events().MountsGone({"/var/lib/volumed/pods/b/volumes/p/one", "/elsewhere"});
  Settle();
  EXPECT_EQ(operations().Count("remove"), tried) << "that is not the pod's";
  manager().events().MountsGone({kMountOfA, "/var/lib/volumed/pods/a"});
  Settle();
  EXPECT_EQ(operations().Count("remove"), tried + 1);
}

TEST_F(RetryTest, AMountThatGoesWhileTheTeardownRunsIsNotForgotten) {
  StartAgent();
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  operations().Hang(Key("a", ""));
  ASSERT_TRUE(Delete("a"));
  ASSERT_EQ(operations().Count("remove"), 1u);
  manager().events().MountsGone({kMountOfA});
  operations().FailNext("remove", Key("a", ""), kBroken, 1);
  operations().Release(Key("a", ""));
  Settle();
  EXPECT_EQ(operations().Count("remove"), 2u) << "it had looked before the mount went";
  EXPECT_TRUE(node.removed_pods.contains(PodUid("a")));
}

TEST_F(RetryTest, AMountThatGoesIsRememberedForEachTeardownThatWasUnderWay) {
  StartAgent();
  Deliver(PodManifest("a", {"one: emptyDir: {}", "two: emptyDir: {}"}));
  operations().Hang(Key("a", "one"));
  operations().Hang(Key("a", "two"));
  ASSERT_TRUE(Delete("a"));
  manager().events().MountsGone({kMountOfA});
  operations().Release(Key("a", "one"));
  Settle();
  operations().FailNext("unmount", Key("a", "two"), kBroken, 1);
  operations().Release(Key("a", "two"));
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("a", "two")), 2u)
      << "the other one, which ended first, has not used it up";
  EXPECT_TRUE(node.removed_pods.contains(PodUid("a")));
}

TEST_F(RetryTest, AMountThatGoesFromAPodThatStaysConcernsNobody) {
  StartAgent();
  operations().FailNext("mount", Key("a", "one"), kBroken, 100);
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  const size_t tried = operations().Count("mount");
  manager().events().MountsGone({kMountOfA});
  Settle();
  EXPECT_EQ(operations().Count("mount"), tried);
}

// A pod could not go while its mount waited for a filesystem that hangs.
TEST_F(RetryTest, APodThatLeavesGivesUpAMountThatHasNotBegun) {
  StartAgent();
  operations().Hang(Key("a", "one"));
  operations().waits_for[OperationKey(Key("a", "one"))] = {"filesystem 0:7 does not answer", true};
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  EXPECT_TRUE(operations().given_up.empty());
  const std::optional<ProblemView> problem = View("a").volumes.at(0).problem;
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->step, "WaitForWorker");
  EXPECT_EQ(problem->message, "filesystem 0:7 does not answer");
  EXPECT_EQ(problem->who_must_act, "an administrator");
  ASSERT_TRUE(Delete("a"));
  EXPECT_TRUE(operations().given_up.contains(OperationKey(Key("a", "one"))));
}

// 92 of 100 parts of a start with many volumes went into copies of all operations, for each pod.
TEST_F(RetryTest, AViewOfAPodDoesNotCopyTheOperationsOfAllOthers) {
  StartAgent();
  std::string pods;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "p" + std::to_string(i);
    operations().Hang(Key(name, "one"));
    pods += PodManifest(name, {"one: emptyDir: {}"});
  }
  Deliver(pods);
  EXPECT_EQ(View("p7").volumes.at(0).running_step, "SetUp");
  EXPECT_EQ(manager().pods().All().size(), 20u);
  EXPECT_EQ(operations().times_all_were_copied, 0u);
}

TEST(FailedMountTextTest, NamesWhatIsNotMountedAndWhatCannotBeTried) {
  WantedPod wanted;
  const auto volume = [](const char* name) {
    PodVolume manifest;
    manifest.name = name;
    return WantedVolume{.spec = VolumeSpec::FromVolume(manifest), .plugin_name = "p"};
  };
  wanted.volumes.emplace(SpecName("a"), volume("a"));
  ActualPod actual;
  EXPECT_FALSE(FailedMountText(wanted, actual).has_value());
  wanted.volumes.emplace(SpecName("b"), volume("b"));
  const Error passing = Error::NotApplied(Code::kUnavailable, "soon");
  wanted.volumes.at(SpecName("b")).problems.push_back({"WaitForClaim", passing});
  EXPECT_FALSE(FailedMountText(wanted, actual).has_value()) << "what passes by itself";
  wanted.volumes.at(SpecName("b")).problems.push_back({"FindPlugin", kBroken});
  EXPECT_EQ(FailedMountText(wanted, actual),
            "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], "
            "failed to process volumes=[b]: x");
}

TEST(TakeOverTest, AVolumeThatNoRecordKnowsIsToldApart) {
  ManualClock clock;
  ActualStateOfWorld actual(clock);
  FoundAtStart found;
  PodVolumeRecord record;
  record.key = {PodUid("a"), SpecName("known")};
  record.state = VolumeState::kSetUp;
  found.volumes = {record};
  found.directories = {{PodUid("a"), "p", SpecName("known")}, {PodUid("a"), "p", SpecName("new")}};
  const ReconstructResult result =
      Reconstruct(found, BootId("b"), false, KubeletPaths("/root"), actual);
  EXPECT_EQ(result.take_over.volumes, 2u);
  EXPECT_EQ(result.take_over.unreadable, 0u);
  const std::set<PodVolumeKey> expected = {{PodUid("a"), SpecName("new")}};
  EXPECT_EQ(result.take_over.without_record, expected);
}

// The owner of the very pod that waits can do nothing.
TEST_F(RetryTest, WhoeverWaitsForAMountOnNoRecordWasToldToActHimself) {
  StartAgent();
  const Error held = Error::NotApplied(Code::kFailedPrecondition, "it is mounted in another pod");
  operations().FailNext("mount", Key("a", "one"), held.About(kAboutUnrecordedMount), 1);
  operations().FailNext("mount", Key("b", "one"), held, 1);
  Deliver(PodManifest("a", {"one: emptyDir: {}"}) + PodManifest("b", {"one: emptyDir: {}"}));
  ASSERT_TRUE(View("a").volumes.at(0).problem);
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "an administrator");
  ASSERT_TRUE(View("b").volumes.at(0).problem);
  EXPECT_EQ(View("b").volumes.at(0).problem->who_must_act, "the owner of pod default/b");
}

}  // namespace
}  // namespace volumed
