// What is shown, and told as events, of persistent volumes and claims.
#include "volumemanager/views/storage_views.h"

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

class StorageViewsTest : public ManagerTest {
 protected:
  void SetUp() override { StartAgent(); }

  static std::string Volume(const std::string& name, const std::string& metadata = "",
                            const std::string& spec = "") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name + metadata +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce, ReadOnlyMany]\n"
           "  persistentVolumeReclaimPolicy: Retain\n"
           "  local: {path: /dev/vdb}\n  nodeAffinity: {required: {nodeSelectorTerms: "
           "[{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}\n" +
           spec;
  }
  static std::string Claim(const std::string& name, const std::string& spec = "",
                           const std::string& storage = "1Mi") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default, uid: claim-" + name +
           "}\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: " +
           storage + "}}\n" + spec;
  }
  PersistentVolumeView VolumeView(size_t at = 0) {
    return manager().storage().PersistentVolumes().at(at);
  }
  PersistentVolumeClaimView ClaimView(size_t at = 0) {
    return manager().storage().PersistentVolumeClaims().at(at);
  }
  const std::vector<std::string>& Events() const { return host_parts.object_events; }
};

TEST_F(StorageViewsTest, ABoundPairShowsEachOther) {
  Deliver(Volume("disk", ", creationTimestamp: \"2026-01-02T03:04:05Z\"") + Claim("data"));
  const PersistentVolumeView volume = VolumeView();
  EXPECT_EQ(volume.name, "disk");
  EXPECT_EQ(volume.capacity, "1Gi");
  EXPECT_EQ(volume.access_modes, (std::vector<std::string>{"ReadWriteOnce", "ReadOnlyMany"}));
  EXPECT_EQ(volume.reclaim_policy, "Retain");
  EXPECT_EQ(volume.phase, "Bound");
  EXPECT_EQ(volume.claim, "default/data");
  EXPECT_EQ(volume.volume_mode, "Filesystem");
  EXPECT_EQ(volume.created_unix_ms, 1'767'323'045'000);
  const PersistentVolumeClaimView claim = ClaimView();
  EXPECT_EQ(claim.ns + "/" + claim.name, "default/data");
  EXPECT_EQ(claim.phase, "Bound");
  EXPECT_EQ(claim.volume, "disk");
  EXPECT_EQ(claim.capacity, "1Gi") << "the volume's, as in the claim's status";
  EXPECT_EQ(claim.access_modes, volume.access_modes);
  EXPECT_EQ(claim.created_unix_ms, 0) << "its manifest does not say";
  EXPECT_EQ(Events(), std::vector<std::string>());
}

TEST_F(StorageViewsTest, AClaimOfWhichNothingIsDecidedYetIsShownAllTheSame) {
  // The records are not loaded yet.
  ObjectList list{"manifests", true, Objects(Claim("data", "  volumeName: disk\n")), {}};
  agent_->catalog.Update(std::move(list));
  const PersistentVolumeClaimView claim = ClaimView();
  EXPECT_EQ(claim.ns + "/" + claim.name, "default/data");
  EXPECT_EQ(claim.phase, "Pending");
  EXPECT_EQ(claim.volume, "disk");
}

TEST_F(StorageViewsTest, APendingClaimSaysWhyAndTellsItOnce) {
  Deliver(Claim("data"));
  const PersistentVolumeClaimView claim = ClaimView();
  EXPECT_EQ(claim.phase, "Pending");
  EXPECT_EQ(claim.volume, "");
  EXPECT_EQ(claim.capacity, "");
  EXPECT_NE(claim.reason, "");
  const std::vector<std::string> told = {
      "PersistentVolumeClaim default/data Normal FailedBinding: no persistent volumes available "
      "for "
      "this claim and no storage class is set"};
  EXPECT_EQ(Events(), told);
  Deliver(Claim("data") + PodManifest("a", {"data: persistentVolumeClaim: {claimName: data}"}));
  Pass(std::chrono::seconds(600));
  EXPECT_EQ(Events(), told) << "nothing is new";
}

TEST_F(StorageViewsTest, ADifferentReasonIsToldToo) {
  const std::string named = Claim("data", "  volumeName: disk\n", "2Gi");
  Deliver(named);
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(
      Events()[0],
      "PersistentVolumeClaim default/data Warning FailedBinding: PersistentVolume disk, which "
      "it names, does not exist");
  EXPECT_EQ(ClaimView().volume, "disk");
  Deliver(named + Volume("disk"));
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_NE(Events()[1].find("Warning VolumeMismatch: Cannot bind to requested volume \"disk\": "),
            std::string::npos)
      << Events()[1];
}

TEST_F(StorageViewsTest, AClaimThatLostItsVolumeSaysWhatBecameOfIt) {
  const std::string was_bound = Claim("data", "  volumeName: disk\nstatus: {phase: Bound}\n");
  Deliver(was_bound);
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_NE(Events()[0].find("Warning ClaimLost: Bound claim has lost its PersistentVolume."),
            std::string::npos)
      << Events()[0];
  EXPECT_EQ(ClaimView().phase, "Lost");
  Deliver(Claim("other", "  volumeName: disk\n") + Volume("disk"));
  Deliver(Claim("other", "  volumeName: disk\n") + Volume("disk") + was_bound);
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_NE(Events()[1].find("Warning ClaimMisbound: "), std::string::npos) << Events()[1];
}

TEST_F(StorageViewsTest, AVolumeThatIsNeededIsShownAlthoughItsManifestIsGone) {
  const std::string pod = PodManifest("a", {"data: persistentVolumeClaim: {claimName: data}"});
  Deliver(Volume("disk") + Claim("data") + pod);
  ASSERT_EQ(Phase("a"), "Ready");
  Deliver(Claim("data") + pod);
  const PersistentVolumeView volume = VolumeView();
  EXPECT_EQ(volume.name, "disk");
  EXPECT_EQ(volume.capacity, "1Gi");
  EXPECT_TRUE(volume.deleting);
  EXPECT_EQ(volume.claim, "default/data");
}

constexpr const char* kEphemeral =
    "data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: "
    "{requests: {storage: 1Gi}}}}}";

// `get pvc` did not have what `get volumes` named.
TEST_F(StorageViewsTest, TheClaimOfAGenericEphemeralVolumeIsShownWithItsPodAsLongAsThatIsThere) {
  const std::string other = Claim("b-claim", "  volumeName: other\n");
  Deliver(Volume("disk") + other + PodManifest("a", {kEphemeral}));
  ASSERT_EQ(Phase("a"), "Ready");
  ASSERT_EQ(manager().storage().PersistentVolumeClaims().size(), 2u);
  const PersistentVolumeClaimView claim = ClaimView();
  EXPECT_EQ(claim.ns + "/" + claim.name, "default/a-data") << "sorted by their names";
  EXPECT_EQ(claim.owner, "Pod/a");
  EXPECT_EQ(claim.phase, "Bound");
  EXPECT_EQ(claim.volume, "disk");
  ASSERT_EQ(claim.uid.size(), 36u) << claim.uid;
  EXPECT_EQ(claim.uid[8], '-') << claim.uid;
  EXPECT_EQ(ClaimView(1).owner, "");
  EXPECT_EQ(ClaimView(1).uid, "claim-b-claim");
  Deliver(Volume("disk") + other);
  ASSERT_EQ(Phase("a"), "gone");
  ASSERT_EQ(manager().storage().PersistentVolumeClaims().size(), 1u);
  EXPECT_EQ(ClaimView().name, "b-claim");
}

// The second pod got the first one's volume, and was alive when that was deleted with the first.
TEST_F(StorageViewsTest, APodDoesNotGetTheEphemeralVolumeOfAnotherWhoseClaimHasTheSameName) {
  const auto ephemeral = [](std::string volume) {
    return volume + std::string(kEphemeral).substr(4);
  };
  const std::string storage = Volume("disk") + Volume("other");
  const std::string second = PodManifest("a-b", {ephemeral("c")});
  Deliver(storage + PodManifest("a", {ephemeral("b-c")}));
  ASSERT_EQ(Phase("a"), "Ready");
  const std::string claim_uid = ClaimView().uid;
  for (const bool again : {false, true}) {
    if (again) StartAgent();
    Deliver(storage + PodManifest("a", {ephemeral("b-c")}) + second);
    EXPECT_EQ(Phase("a"), "Ready");
    EXPECT_EQ(Phase("a-b"), "Pending");
    ASSERT_TRUE(View("a-b").volumes.at(0).problem);
    EXPECT_NE(View("a-b").volumes[0].problem->message.find(
                  "was not created for pod default/a-b (pod is not owner)"),
              std::string::npos)
        << View("a-b").volumes[0].problem->message;
    ASSERT_EQ(manager().storage().PersistentVolumeClaims().size(), 1u);
    EXPECT_EQ(ClaimView().uid, claim_uid);
  }
  Deliver(storage + second);
  EXPECT_EQ(Phase("a"), "gone");
  EXPECT_EQ(Phase("a-b"), "Ready");
  EXPECT_NE(ClaimView().uid, claim_uid);
}

TEST_F(StorageViewsTest, AClaimOfASourceIsNotShownInPlaceOfThePodsOwn) {
  const std::string objects = Volume("disk") + PodManifest("a", {kEphemeral});
  Deliver(objects);
  Deliver(objects + Claim("a-data"));
  ASSERT_EQ(manager().storage().PersistentVolumeClaims().size(), 1u);
  EXPECT_EQ(ClaimView().owner, "Pod/a");
  EXPECT_NE(ClaimView().uid, "claim-a-data");
  EXPECT_EQ(ClaimView().volume, "disk");
}

// `describe` of one made the views of all, on the control thread.
TEST_F(StorageViewsTest, OneWasLookedForAmongTheViewsOfAll) {
  const std::string objects = Volume("disk") + Volume("other") +
                              Claim("b-claim", "  volumeName: other\n") +
                              PodManifest("a", {kEphemeral});
  Deliver(objects);
  Deliver(objects + Claim("a-data"));
  const StorageViews& storage = manager().storage();
  ASSERT_EQ(storage.PersistentVolumes().size(), 2u);
  for (const PersistentVolumeView& view : storage.PersistentVolumes()) {
    const auto one = storage.FindPersistentVolume(view.name);
    ASSERT_TRUE(one.has_value()) << view.name;
    EXPECT_EQ(one->name + " " + one->phase + " " + one->claim,
              view.name + " " + view.phase + " " + view.claim);
  }
  ASSERT_EQ(storage.PersistentVolumeClaims().size(), 2u);
  for (const PersistentVolumeClaimView& view : storage.PersistentVolumeClaims()) {
    const auto one = storage.FindPersistentVolumeClaim({view.ns, view.name});
    ASSERT_TRUE(one.has_value()) << view.name;
    EXPECT_EQ(one->uid + " " + one->phase + " " + one->owner + " " + one->volume,
              view.uid + " " + view.phase + " " + view.owner + " " + view.volume);
  }
  EXPECT_FALSE(storage.FindPersistentVolume("none").has_value());
  EXPECT_FALSE(storage.FindPersistentVolumeClaim({"other", "a-data"}).has_value());
}

// "nobody: retried", and nothing went on.
TEST_F(StorageViewsTest, AClaimThatEndsWithItsPodNamesWhoHasToDeleteThat) {
  Deliver(Volume("disk") + Claim("data") +
          PodManifest("a", {"data: persistentVolumeClaim: {claimName: data}"}));
  ASSERT_EQ(Phase("a"), "Ready");
  scheduler().AdvanceTo(clock.Now() + std::chrono::minutes(5));
  ASSERT_TRUE(DeleteClaim("data"));
  const PodView pod = View("a");
  ASSERT_EQ(pod.problems.size(), 1u);
  EXPECT_EQ(pod.problems[0].step, "ClaimDeleted");
  EXPECT_GT(pod.problems[0].since_unix_ms, pod.since_unix_ms) << "it told the pod's age";
  EXPECT_EQ(pod.problems[0].who_must_act.find("the owner of pod default/a"), 0u)
      << pod.problems[0].who_must_act;
}

TEST_F(StorageViewsTest, AReleasedVolumeKeepsTheNameOfItsClaim) {
  Deliver(Volume("disk") + Claim("data"));
  Deliver(Volume("disk"));
  EXPECT_EQ(VolumeView().phase, "Released");
  EXPECT_EQ(VolumeView().claim, "default/data");
  EXPECT_TRUE(manager().storage().PersistentVolumeClaims().empty());
}

}  // namespace
}  // namespace volumed
