// The volume manager from a source's list to operations, and what it shows of them.
#include "kube/about_object.h"
#include "unit/volumemanager/manager_fixture.h"
#include "volume/driver_domain.h"
#include "volumemanager/failure_history.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Volume(const std::string& name, const std::string& source) {
  return name + ": " + source;
}

class ReconcilerTest : public ManagerTest {};

TEST_F(ReconcilerTest, MountsAPodsVolumesAfterItsRecordIsWritten) {
  StartAgent();
  Deliver(PodManifest("a", {kData, kConf}) + ConfigMap("app", "1"));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("mount"), 2u);
  const auto row = store.Find(kPodRecordKind, "a");
  ASSERT_TRUE(row.has_value());
  const auto record = DecodePodRecord(*row);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->name, "a");
  EXPECT_EQ(record->source, "manifests");
  EXPECT_FALSE(record->terminating);
  EXPECT_NE(record->pod_json.find("configMap"), std::string::npos);
  const PodView view = View("a");
  ASSERT_EQ(view.volumes.size(), 2u);
  EXPECT_EQ(view.volumes[1].state, "SetUp");
  EXPECT_EQ(view.volumes[1].host_path, "/root/pods/a/data");
  EXPECT_TRUE(view.problems.empty());
}

// One that came just after many was ready after all of them.
TEST_F(ReconcilerTest, APodThatComesAloneDoesNotComeWithTheManyBeforeIt) {
  StartAgent();
  Deliver("");
  std::string many;
  for (int pod = 0; pod < 20; ++pod) many += PodManifest("many-" + std::to_string(pod), {kData});
  Deliver(many);
  Deliver(many + PodManifest("alone", {kData}));
  const auto came_with_many = [&](const std::string& pod) {
    const auto* call = operations().Last("mount", PodVolumeKey{PodUid(pod), SpecName("data")});
    return call != nullptr && call->mount->with_many;
  };
  EXPECT_TRUE(came_with_many("many-0"));
  EXPECT_TRUE(came_with_many("many-19"));
  EXPECT_FALSE(came_with_many("alone"));
}

TEST_F(ReconcilerTest, MountsNothingBeforeThePodsRecordIsDurable) {
  StartAgent();
  Settle();
  store.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"), 2);
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(operations().Count("mount"), 0u);
  ASSERT_EQ(View("a").problems.size(), 1u);
  const ProblemView problem = View("a").problems[0];
  EXPECT_EQ(problem.step, "WriteRecord");
  EXPECT_EQ(problem.who_must_act, "an administrator");
  EXPECT_EQ(problem.next_try_unix_ms, clock.WallUnixMillis() + 500);
  Pass(milliseconds(500));
  EXPECT_EQ(operations().Count("mount"), 0u);
  Pass(seconds(1));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_TRUE(View("a").problems.empty());
}

TEST_F(ReconcilerTest, ASourceThatFailsOrDeliversNothingNewUnmountsNothing) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  DeliverFailure();
  Pass(seconds(600));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ReconcilerTest, APodThatLeftItsSourcesIsUnmountedAndItsDirectoriesGo) {
  StartAgent();
  Deliver(PodManifest("a", {kData, kConf}) + ConfigMap("app", "1"));
  Deliver(ConfigMap("app", "1"));
  EXPECT_EQ(operations().Count("unmount"), 2u);
  EXPECT_EQ(operations().Count("remove"), 1u);
  EXPECT_EQ(operations().calls.back().operation, "remove");
  EXPECT_EQ(Phase("a"), "gone");
  EXPECT_FALSE(HasPodRecord("a"));
  EXPECT_TRUE(node.present.empty());
  EXPECT_TRUE(host_parts.forgotten_tokens.contains(PodUid("a")));
}

TEST_F(ReconcilerTest, AnIncompleteSourceBlocksUnmountsUntilItDelivers) {
  PutPodRecord("a");
  PutVolumeRecord("a", "data", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  sources = {"manifests", "api"};
  StartAgent();
  Deliver("");
  Pass(seconds(600));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_FALSE(manager().Ready());
  EXPECT_EQ(manager().NotReadyReason(), "no complete list yet from: api");
  DeliverFailure("api");
  EXPECT_EQ(operations().Count("unmount"), 0u);
  ASSERT_EQ(View("a").problems.size(), 1u);
  EXPECT_EQ(View("a").problems[0].step, "WaitForSources");
  Deliver("", "api");
  EXPECT_TRUE(manager().Ready());
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(ReconcilerTest, WithoutAnySourceNothingIsUnmounted) {
  PutPodRecord("a");
  PutVolumeRecord("a", "data", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  sources = {};
  StartAgent();
  manager().ObjectsChanged();
  Pass(seconds(600));
  EXPECT_FALSE(manager().Ready());
  EXPECT_EQ(operations().Count("unmount"), 0u);
}

TEST_F(ReconcilerTest, AnObjectsChangeRemountsOnlyTheVolumesThatReferToIt) {
  StartAgent();
  const std::string pods =
      PodManifest("a", {kData, kConf, Volume("other", "configMap: {name: other}")}) +
      PodManifest("b", {Volume("conf", "configMap: {name: other}")}) + ConfigMap("other", "1");
  Deliver(pods + ConfigMap("app", "1"));
  ASSERT_EQ(operations().Count("mount"), 4u);
  Deliver(pods + ConfigMap("app", "2"));
  EXPECT_EQ(operations().Count("mount"), 5u);
  const auto* call = operations().Last("mount", Key("a", "conf"));
  EXPECT_EQ(operations().Count("mount", Key("a", "conf")), 2u);
  EXPECT_TRUE(call->mount->is_remount);
  EXPECT_FALSE(call->mount->reconstructed);
  Deliver(pods + ConfigMap("app", "2"));
  EXPECT_EQ(operations().Count("mount"), 5u);
}

TEST_F(ReconcilerTest, AChangeOfLabelsRemountsOnlyVolumesThatShowThePod) {
  StartAgent();
  const std::vector<std::string> volumes = {
      kData, kConf,
      Volume("info", "downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}")};
  Deliver(PodManifest("a", volumes, "  labels: {v: \"1\"}\n") + ConfigMap("app", "1"));
  ASSERT_EQ(operations().Count("mount"), 3u);
  Deliver(PodManifest("a", volumes, "  labels: {v: \"2\"}\n") + ConfigMap("app", "1"));
  EXPECT_EQ(operations().Count("mount"), 4u);
  EXPECT_EQ(operations().Count("mount", Key("a", "info")), 2u);
}

TEST_F(ReconcilerTest, TheOwnerOfAnObjectActsOnlyIfTheErrorIsAboutIt) {
  StartAgent();
  Settle();
  const Error error = Error::NotApplied(Code::kNotFound, "no file \"app\" in /x/app");
  operations().FailNext("mount", Key("a", "conf"), error, 1);
  operations().FailNext("mount", Key("b", "all"),
                        error.About("Secret default/db").About("ConfigMap default/app"), 1);
  Deliver(PodManifest("a", {kConf}) +
          PodManifest("b", {Volume("all",
                                   "projected: {sources: [{secret: {name: db}}, {configMap: "
                                   "{name: app}}]}")}));
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "the owner of pod default/a")
      << "the message alone says nothing";
  EXPECT_EQ(View("b").volumes.at(0).problem->who_must_act, "the owner of secret default/db");
}

TEST_F(ReconcilerTest, ADriverThatIsAwayWasNobodysToMend) {
  StartAgent();
  Settle();
  const auto fail = [this](const char* pod, const char* subject) {
    operations().FailNext("mount", Key(pod, "data"),
                          Error::NotApplied(Code::kUnavailable, "no answer").About(subject), 1000);
  };
  fail("a", kDriverAway);
  fail("b", kAttacherAway);
  fail("c", "missing Secret default/stage");
  Deliver(PodManifest("a", {kData}) + PodManifest("b", {kData}) + PodManifest("c", {kData}));
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, kWhoeverRunsTheDriver);
  EXPECT_EQ(View("b").volumes.at(0).problem->who_must_act,
            "its driver's attacher; an administrator, if none runs");
  EXPECT_EQ(View("c").volumes.at(0).problem->who_must_act, "the owner of secret default/stage");
}

// Of a disk whose CHAP secret lacks a key an administrator was to act.
TEST(FailureHistoryTest, ASecretThatIsNotRightWasNotItsOwnersToMend) {
  const auto acts = [](Code code) {
    const Error error = AboutObject(Error::NotApplied(code, "secret chap has no key"),
                                    {ObjectKind::kSecret, "shop", "chap"});
    return WhoActsForNode({OperationFailure{"device_mount", "WaitForAttach", error}, 0, 1});
  };
  EXPECT_EQ(acts(Code::kInvalidArgument), "the owner of secret shop/chap");
  EXPECT_EQ(acts(Code::kNotFound), "the owner of secret shop/chap");
  EXPECT_EQ(acts(Code::kUnavailable), "nobody: retried") << "it may be known in a moment";
}

TEST_F(ReconcilerTest, AFailedMountIsTriedAgainAtTheBackOffsEndAndSaysWhy) {
  StartAgent();
  Settle();
  operations().FailNext(
      "mount", Key("a", "conf"),
      AboutObject(Error::NotApplied(Code::kNotFound, "configmap \"app\" not found"),
                  {ObjectKind::kConfigMap, "default", "app"}),
      2);
  Deliver(PodManifest("a", {kConf}));
  EXPECT_EQ(operations().Count("mount"), 1u);
  ASSERT_TRUE(View("a").volumes[0].problem.has_value());
  ProblemView problem = *View("a").volumes[0].problem;
  EXPECT_EQ(problem.operation, "volume_mount");
  EXPECT_EQ(problem.step, "SetUp");
  EXPECT_EQ(problem.code, "NotFound");
  EXPECT_EQ(problem.who_must_act, "the owner of config map default/app");
  EXPECT_EQ(problem.next_try_unix_ms, clock.WallUnixMillis() + 500);
  EXPECT_EQ(problem.attempts, 1u);
  EXPECT_EQ(View("a").volumes[0].state, "NotSetUp");
  Pass(milliseconds(499));
  EXPECT_EQ(operations().Count("mount"), 1u);
  Pass(milliseconds(1));
  EXPECT_EQ(operations().Count("mount"), 2u);
  EXPECT_EQ(View("a").volumes[0].problem->attempts, 2u);
  Pass(seconds(1));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_FALSE(View("a").volumes[0].problem.has_value());
}

TEST_F(ReconcilerTest, TheArrivalOfAMissingObjectEndsTheBackOff) {
  StartAgent();
  Settle();
  operations().FailNext("mount", Key("a", "conf"),
                        Error::NotApplied(Code::kNotFound, "no config map"));
  Deliver(PodManifest("a", {kConf}));
  EXPECT_EQ(Phase("a"), "Pending");
  Deliver(PodManifest("a", {kConf}) + ConfigMap("app", "1"));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ReconcilerTest, RetryEndsTheBackOff) {
  StartAgent();
  Settle();
  operations().FailNext("mount", Key("a", "data"), Error::NotApplied(Code::kInternal, "x"));
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_TRUE(manager().pod_commands().Retry(PodUid("a")).ok());
  Settle();
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(manager().pod_commands().Retry(PodUid("b")).error().code(), Code::kNotFound);
}

TEST_F(ReconcilerTest, AFailedRemountLeavesThePodReadyAndIsTriedAgain) {
  StartAgent();
  Deliver(PodManifest("a", {kConf}) + ConfigMap("app", "1"));
  operations().FailNext("mount", Key("a", "conf"),
                        Error::MaybeApplied(Code::kDeadlineExceeded, "hangs"));
  Deliver(PodManifest("a", {kConf}) + ConfigMap("app", "2"));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_TRUE(View("a").volumes[0].uncertain);
  EXPECT_EQ(View("a").volumes[0].problem->who_must_act, "nobody: retried");
  Pass(milliseconds(500));
  EXPECT_FALSE(View("a").volumes[0].uncertain);
  EXPECT_EQ(operations().Count("mount"), 3u);
  EXPECT_EQ(operations().Count("unmount"), 0u);
}

TEST_F(ReconcilerTest, AVolumeIsRefreshedWhenItsTokenIsDue) {
  StartAgent();
  Settle();
  operations().SetRefresh(Key("a", "conf"), clock.WallUnixMillis() + 2 * 3600 * 1000);
  Deliver(PodManifest("a", {kConf}) + ConfigMap("app", "1"));
  Pass(seconds(7199));
  EXPECT_EQ(operations().Count("mount"), 1u);
  operations().SetRefresh(Key("a", "conf"), clock.WallUnixMillis() + 3600 * 1000);
  Pass(seconds(1));
  EXPECT_EQ(operations().Count("mount"), 2u);
  EXPECT_TRUE(operations().Last("mount", Key("a", "conf"))->mount->is_remount);
}

// A token that was issued before the clock was set back was left in its pod until the clock had
// come as far again, and nobody took it.
TEST_F(ReconcilerTest, ATokenFromTheFutureIsRenewedAtOnce) {
  StartAgent();
  Settle();
  const int64_t now = clock.WallUnixMillis();
  operations().SetFreshness(Key("a", "conf"), {now, now + 2 * 3600 * 1000});
  Deliver(PodManifest("a", {kConf}) + ConfigMap("app", "1"));
  EXPECT_EQ(operations().Count("mount"), 1u);
  manager().events().WallClockWasSet();
  Pass(seconds(1));
  EXPECT_EQ(operations().Count("mount"), 1u);
  clock.ShiftWallMillis(-60'000);
  operations().SetFreshness(Key("a", "conf"), {now - 60'000, now + 3600 * 1000});
  manager().events().WallClockWasSet();
  Pass(seconds(1));
  EXPECT_EQ(operations().Count("mount"), 2u);
  EXPECT_TRUE(operations().Last("mount", Key("a", "conf"))->mount->is_remount);
}

// Whatever code it comes with: nothing that a pod's owner or the agent does mends a disk.
TEST_F(ReconcilerTest, AFailingDiskIsAnAdministrators) {
  StartAgent();
  Settle();
  for (const int fault : {EIO, EUCLEAN, EROFS, ENOSPC, EDQUOT}) {
    const std::string pod = "p" + std::to_string(fault);
    for (const Code code : {Code::kUnavailable, Code::kFailedPrecondition, CodeFromErrno(fault)}) {
      operations().FailNext(
          "mount", Key(pod, "data"),
          Error::FromParts(code, Outcome::kNotApplied, fault, "mount: " + ErrnoName(fault)), 9);
      Deliver(PodManifest(pod, {kData}));
      Pass(seconds(1));
      ASSERT_FALSE(View(pod).volumes.empty());
      ASSERT_TRUE(View(pod).volumes[0].problem.has_value()) << ErrnoName(fault);
      EXPECT_EQ(View(pod).volumes[0].problem->who_must_act, "an administrator")
          << ErrnoName(fault) << " as " << CodeName(code);
      Deliver("");
      Pass(seconds(600));
    }
  }
}

TEST_F(ReconcilerTest, ATerminatingPodIsHeldByItsProcess) {
  StartAgent();
  watch.processes[4711] = 99;
  Deliver(PodManifest("a", {kData}));
  ASSERT_TRUE(HoldPid("a", 4711).ok());
  Deliver("");
  Pass(seconds(600));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  const PodView view = View("a");
  EXPECT_EQ(view.phase, "Terminating");
  EXPECT_EQ(view.held_by, std::vector<std::string>{"pid 4711 (runc)"});
  EXPECT_EQ(view.problems.at(0).step, "Held");
  watch.EndProcess(4711);
  Settle();
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(Phase("a"), "gone");
  EXPECT_TRUE(store.Load(kHoldRecordKind)->records.empty());
}

TEST_F(ReconcilerTest, AForcedDeleteDoesNotWaitForConsumers) {
  StartAgent();
  watch.processes[4711] = 99;
  Deliver(PodManifest("a", {kData}));
  ASSERT_TRUE(HoldPid("a", 4711).ok());
  EXPECT_TRUE(Delete("a")->ok());
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_TRUE(Delete("a", true)->ok());
  EXPECT_EQ(operations().Count("unmount"), 1u);
}

TEST_F(ReconcilerTest, DeletionGraceKeepsVolumesAndGoesOnOverARestart) {
  const std::string deleted = PodManifest(
      "a", {kData},
      "  deletionTimestamp: \"2020-01-01T00:00:00Z\"\n  deletionGracePeriodSeconds: 30\n");
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  Deliver(deleted);
  EXPECT_EQ(Phase("a"), "Terminating");
  EXPECT_EQ(View("a").problems.at(0).step, "DeletionGrace");
  Pass(seconds(20));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  // The operation layer would have left this row.
  PutVolumeRecord("a", "data", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  StartAgent();
  Deliver(deleted);
  Pass(milliseconds(9999));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  Pass(milliseconds(1));
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(ReconcilerTest, TheEndOfKnownConsumersEndsTheGracePeriod) {
  StartAgent();
  watch.processes[4711] = 99;
  Deliver(PodManifest("a", {kData}));
  ASSERT_TRUE(HoldPid("a", 4711).ok());
  Deliver(PodManifest("a", {kData},
                      "  deletionTimestamp: \"2020-01-01T00:00:00Z\"\n"
                      "  deletionGracePeriodSeconds: 3000\n"));
  Pass(seconds(5));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  watch.EndProcess(4711);
  Settle();
  EXPECT_EQ(operations().Count("unmount"), 1u);
}

TEST_F(ReconcilerTest, APodThatHasEndedLosesItsVolumes) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  Deliver(PodManifest("a", {kData}, "", "status: {phase: Succeeded}\n"));
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(Phase("a"), "gone");
  Pass(seconds(600));
  EXPECT_EQ(operations().Count("mount"), 1u);
}

TEST_F(ReconcilerTest, AVolumeWithoutAPluginDisturbsNeitherItsPodNorOthers) {
  StartAgent();
  Deliver(PodManifest("a", {kData, Volume("fc", "fc: {wwids: [x]}")}) + PodManifest("b", {kData}));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(Phase("a"), "Pending");
  const PodView view = View("a");
  EXPECT_EQ(view.volumes[0].state, "SetUp");
  ASSERT_TRUE(view.volumes[1].problem.has_value());
  EXPECT_EQ(view.volumes[1].problem->step, "FindPlugin");
  EXPECT_EQ(view.volumes[1].problem->message, "no volume plugin matched");
  EXPECT_EQ(view.volumes[1].problem->who_must_act, "the owner of pod default/a");
}

TEST_F(ReconcilerTest, AHungMountHoldsBackNothingElse) {
  StartAgent();
  Settle();
  operations().Hang(Key("a", "conf"));
  stuck.insert("a/conf");
  Deliver(PodManifest("a", {kData, kConf}) + PodManifest("b", {kData}));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(Phase("a"), "Pending");
  const PodView view = View("a");
  EXPECT_EQ(view.volumes[0].running_step, "SetUp");
  EXPECT_EQ(view.volumes[0].progress, 7);
  EXPECT_TRUE(view.volumes[0].stuck);
  EXPECT_EQ(view.volumes[0].problem->step, "Stuck");
  EXPECT_EQ(view.volumes[1].state, "SetUp");
  // Its pod leaves as far as it can.
  Deliver(PodManifest("b", {kData}));
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(operations().Count("remove"), 0u);
  operations().Release(Key("a", "conf"));
  Settle();
  EXPECT_EQ(operations().Count("unmount", Key("a", "conf")), 1u);
  EXPECT_EQ(Phase("a"), "gone");
}

// The uid belongs to the name as long as a source has the pod.
TEST_F(ReconcilerTest, APodWhoseUidIsChangedInItsFileStaysThePodThatItIs) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  std::string changed = PodManifest("a", {kData});
  changed.replace(changed.find("uid: a"), 6, "uid: b");
  Deliver(changed);
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Phase("b"), "gone");
}

TEST_F(ReconcilerTest, ANewPodWithTheNameOfALeavingOneComesBesideIt) {
  StartAgent();
  watch.processes[4711] = 99;
  Deliver(PodManifest("a", {kData}));
  ASSERT_TRUE(HoldPid("a", 4711).ok());
  std::string successor = PodManifest("a", {kData});
  successor.replace(successor.find("uid: a"), 6, "uid: b");
  Deliver("");
  Deliver(successor);
  EXPECT_EQ(Phase("a"), "Terminating");
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(View("b").name, "a");
  watch.EndProcess(4711);
  Settle();
  EXPECT_EQ(Phase("a"), "gone");
  EXPECT_EQ(Phase("b"), "Ready");
}

TEST_F(ReconcilerTest, APodThatComesBackWhileItLeavesIsMountedAgain) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  operations().Hang(Key("a", "data"));
  Deliver("");
  ASSERT_EQ(operations().Count("unmount"), 1u);
  Deliver(PodManifest("a", {kData}));
  operations().Release(Key("a", "data"));
  Settle();
  EXPECT_EQ(operations().Count("mount"), 2u);
  EXPECT_EQ(operations().Count("remove"), 0u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ReconcilerTest, AFailedUnmountAndAFailedRemovalAreTriedAgain) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  operations().FailNext("unmount", Key("a", "data"), Error::MaybeApplied(Code::kUnavailable, "x"));
  operations().FailNext("remove", Key("a", ""),
                        Error::NotApplied(Code::kFailedPrecondition, "foreign content: note.txt"));
  Deliver("");
  EXPECT_EQ(View("a").volumes.at(0).state, "TearingDown");
  EXPECT_TRUE(View("a").volumes.at(0).uncertain);
  Pass(milliseconds(500));
  EXPECT_EQ(operations().Count("unmount"), 2u);
  ASSERT_EQ(View("a").problems.size(), 1u);
  EXPECT_EQ(View("a").problems[0].message, "foreign content: note.txt");
  EXPECT_EQ(View("a").problems[0].who_must_act, "an administrator");
  Pass(milliseconds(500));
  EXPECT_EQ(operations().Count("remove"), 2u);
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(ReconcilerTest, AFullDiskStopsNoTeardown) {
  StartAgent();
  Deliver(PodManifest("a", {kData}));
  store.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"), 1000);
  const Status told = Delete("a").value();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(told.error().maybe_applied());
  EXPECT_NE(told.error().message().find("may come back at the next start"), std::string::npos);
  EXPECT_EQ(operations().Count("unmount"), 1u);
  EXPECT_EQ(operations().Count("remove"), 1u);
}

TEST_F(ReconcilerTest, TellsObserversAndCountsVolumes) {
  StartAgent();
  int told = 0;
  const uint64_t id = manager().observers().Add([&](const PodUid& pod) {
    if (pod.empty()) return;  // Ready() has become true
    EXPECT_EQ(pod, PodUid("a"));
    ++told;
  });
  Deliver(PodManifest("a", {kData}));
  EXPECT_GE(told, 2);
  VolumeCounting counting;
  while (!manager().pods().CountVolumes(counting)) {
  }
  const auto counts = counting.Figures();
  EXPECT_EQ(counts.at({"kubernetes.io/empty-dir", "desired_state_of_world"}), 1);
  EXPECT_EQ(counts.at({"kubernetes.io/empty-dir", "actual_state_of_world"}), 1);
  manager().observers().Remove(id);
  const int before = told;
  Deliver("");
  EXPECT_EQ(told, before);
}

TEST_F(ReconcilerTest, AnEventLooksAtNoOtherPod) {
  StartAgent();
  std::string pods;
  for (int i = 0; i < 20; ++i) pods += PodManifest("p" + std::to_string(i), {kData});
  Deliver(pods);
  std::set<PodUid> seen;
  manager().observers().Add([&](const PodUid& pod) { seen.insert(pod); });
  Deliver(pods + PodManifest("new", {kData}));
  EXPECT_EQ(seen, std::set<PodUid>{PodUid("new")});
}

}  // namespace
}  // namespace volumed
