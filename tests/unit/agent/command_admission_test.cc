// What `apply` is refused at the door because of what is on record, and what it is told of that.
#include "agent/command_admission.h"

#include <gtest/gtest.h>

#include <utility>

#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

class CommandAdmissionTest : public TwoSourcesTest {
 protected:
  static std::string ClaimYaml(const std::string& uid, const std::string& created = "") {
    return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default" +
           (uid.empty() ? "" : ", uid: " + uid) +
           (created.empty() ? "" : ", creationTimestamp: \"" + created + "\"") +
           "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
  }
  static std::string PodYaml(const std::string& name, const std::string& uid) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           (uid.empty() ? "" : ", uid: " + uid) + "}\nspec: {containers: [{name: c, image: x}]}\n";
  }
  Result<ApplyCommand> Admit(const std::string& manifest, bool replace = false) {
    ApplyWords words;
    words.objects.push_back(*Objects(manifest).at(0).object);
    words.replace = replace;
    return AdmitApply(catalog(), manager(), NodeName("n1"), std::move(words));
  }
  std::string Refusal(const std::string& manifest) {
    const Result<ApplyCommand> command = Admit(manifest);
    if (command.ok()) return "";
    EXPECT_EQ(command.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(command.error().maybe_applied());
    return command.error().message();
  }
  static ObjectWithOrigin Applied(const std::string& uid, const std::set<PodUid>& replaces = {}) {
    ObjectWithOrigin object = StaticPod("n1", "/objects/web.json");
    Pod pod = std::get<Pod>(*object.object);
    SetPodUid(pod, uid);
    object.object = std::make_shared<const Object>(std::move(pod));
    object.replaces = replaces;
    return object;
  }

  static std::string VolumeYaml(const std::string& policy,
                                const std::string& source = "hostPath: {path: /srv/data}") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: "
           "{storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: " +
           policy + ", " + source + "}\n";
  }
  static std::string UsedClaim(const std::string& storage_class = "''") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default, uid: c1}\nspec: {accessModes: [ReadWriteOnce], storageClassName: " +
           storage_class + ", resources: {requests: {storage: 1Gi}}}\n" +
           PodManifest("a", {"data: persistentVolumeClaim: {claimName: data}"});
  }
  // An agent whose sources have delivered, the applied one the volume; "": nothing.
  void StartWith(const std::string& applied, const std::string& manifests) {
    Restart();
    DeliverList(kApplied, applied.empty() ? std::vector<ObjectWithOrigin>() : Objects(applied));
    Deliver(manifests);
    ASSERT_TRUE(manager().storage().IsBound(kClaim));
  }
  std::string Fate(const ObjectKey& object) { return FateOfData(catalog(), manager(), object); }
  bool DataGoes() {
    const std::optional<DoomedData> data = DataThatEndsWith(catalog(), manager(), kClaim);
    return data && data->stays_because.empty();
  }
  void ExpectStays(const std::string& source, const std::string& place, const std::string& why) {
    ASSERT_NO_FATAL_FAILURE(StartWith(VolumeYaml("Delete", source), UsedClaim()));
    EXPECT_EQ(Fate(kClaim), "its data in " + place + " stays: " + why);
    EXPECT_FALSE(DataGoes());
  }
  // The claim goes with its pod; whether the data went.
  bool DataGoesWithClaim(const std::string& manifests_then) {
    EXPECT_TRUE(DeleteClaim("data")->ok());
    Deliver(manifests_then);
    return operations().Count("reclaim") > 0;
  }

  const ObjectKey kPod{ObjectKind::kPod, "default", "web-n1"};
  const ObjectKey kClaim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  const ObjectKey kVolume{ObjectKind::kPersistentVolume, "", "disk"};
  const std::string kGoes =
      "its data in /srv/data is deleted with it: PersistentVolume disk has the reclaim policy "
      "Delete";
  const std::string kStays =
      "its data in /srv/data stays: PersistentVolume disk has the reclaim policy Retain";
};

TEST_F(CommandAdmissionTest, AnotherUidThanTheOneOnRecordIsRefused) {
  Restart();
  DeliverList(kApplied, {Applied("u1")});
  Deliver(ClaimYaml("c1"));
  Deliver("");  // Missing by now; its uid is on record
  EXPECT_EQ(Refusal(ClaimYaml("c2")),
            "PersistentVolumeClaim default/data is invalid: metadata.uid: is immutable: the object "
            "has the uid c1, and keeps it as long as it is there");
  EXPECT_EQ(Refusal(ClaimYaml("c1")), "");
  EXPECT_NE(Refusal(PodYaml("web-n1", "u2")).find("the object has the uid u1"), std::string::npos);
  EXPECT_EQ(Refusal(PodYaml("web-n1", "u1")), "");
  EXPECT_EQ(Refusal(PodYaml("web", "")), "");
  EXPECT_EQ(MetaOf(Admit(ClaimYaml(""))->objects.at(0)).uid, "c1");
}

TEST_F(CommandAdmissionTest, AUidThatNobodyCanReadNowIsKnownAllTheSame) {
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {Applied("u1")});
  Pass(std::chrono::seconds(5));
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {}, {{kPod, "/objects/web.json", "torn"}});
  EXPECT_NE(Refusal(PodYaml("web-n1", "u2")).find("the object has the uid u1"), std::string::npos);
  EXPECT_EQ(Admit(PodYaml("web", ""))->pods.at(kPod), PodUid("u1"));
}

TEST_F(CommandAdmissionTest, APodThatWaitsHasItsOwnUid) {
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {Applied("u1")});
  Pass(std::chrono::seconds(5));
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("u1", 7).ok());
  DeliverList(kApplied, {Applied("u2", {PodUid("u0"), PodUid("u1")})});
  ASSERT_TRUE(catalog().Waiting().contains(kPod));
  EXPECT_EQ(Refusal(PodYaml("web-n1", "u2")), "");
  EXPECT_NE(Refusal(PodYaml("web-n1", "u1")).find("the object has the uid u2"), std::string::npos);
  const Result<ApplyCommand> again = Admit(PodYaml("web", ""), /*replace=*/true);
  EXPECT_TRUE(again->replace);
  EXPECT_EQ(again->pods.at(kPod), PodUid("u2"));
  EXPECT_EQ(again->gone, std::set<PodUid>{PodUid("u0")});
}

// Else two pods of one name would be on the node.
// It was answered "created", and was the former pod with the former volumes for ever.
TEST_F(CommandAdmissionTest, APodWithTheUidOfOneThatLeavesIsRefusedOtherVolumes) {
  const std::string former = PodManifest("u1", {"former: emptyDir: {}"});
  Restart();
  Deliver("");
  DeliverList(kApplied, Objects(former));
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("u1", 7).ok());
  ASSERT_TRUE(Delete("u1")->ok());
  DeliverList(kApplied, {});
  ASSERT_EQ(Phase("u1"), "Terminating");
  const Result<ApplyCommand> refused = Admit(PodManifest("u1", {"other: emptyDir: {}"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
  EXPECT_NE(refused.error().message().find("is on the node still, with other volumes"),
            std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(Admit(former).ok()) << "with the same volumes it is that pod again";
  watch.EndProcess(7);
  Settle();
  ASSERT_EQ(Phase("u1"), "gone");
  EXPECT_TRUE(Admit(PodManifest("u1", {"other: emptyDir: {}"})).ok());
}

TEST_F(CommandAdmissionTest, AReplacementOfAPodThatLeavesWaitsForItToo) {
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {Applied("u1")});
  Pass(std::chrono::seconds(5));
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("u1", 7).ok());
  DeliverList(kApplied, {});
  ASSERT_EQ(Phase("u1"), "Terminating");
  EXPECT_TRUE(Admit(PodYaml("web", ""))->pods.empty());
  EXPECT_EQ(Admit(PodYaml("web", ""), /*replace=*/true)->pods.at(kPod), PodUid("u1"));
}

// The records were put back, and know of fewer commands than there were: a deletion with a low
// number was answered, and the object stayed.
TEST_F(CommandAdmissionTest, AnObjectGivenByALaterCommandThanTheRecordsKnowCouldNotBeDeleted) {
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  ObjectWithOrigin given = Objects(ClaimYaml("c1")).at(0);
  given.number = 5000;
  Restart();
  Deliver("");
  DeliverList(kApplied, {given});
  ASSERT_NE(catalog().FindObject(claim), nullptr);
  ASSERT_TRUE(DeleteObject(claim).value().ok());
  Settle();
  EXPECT_EQ(catalog().FindObject(claim), nullptr);
  EXPECT_GT(Admit(ClaimYaml(""))->ended.at(claim), 5000u) << "its file is that of the deleted one";
  std::optional<uint64_t> next;
  manager().object_commands().Number(
      [&](const Result<uint64_t>& number) { next = number.value(); });
  Settle();
  EXPECT_GT(next.value(), 5001u);
}

TEST_F(CommandAdmissionTest, AnObjectThatIsKnownIsAsOldAsItWas) {
  Restart();
  Deliver(ClaimYaml("c1", "2026-01-02T03:04:05Z"));
  Deliver("");
  EXPECT_EQ(MetaOf(Admit(ClaimYaml(""))->objects.at(0)).creation_unix_millis, 1767323045000);
}

TEST_F(CommandAdmissionTest, RetainIsPromisedOfAnAppliedVolumeAsLongAsApplyTakesIt) {
  ASSERT_NO_FATAL_FAILURE(StartWith(VolumeYaml("Delete"), UsedClaim()));
  EXPECT_EQ(Fate(kClaim), kGoes + ", and keeps it if it is applied with Retain before then");
  EXPECT_TRUE(Admit(VolumeYaml("Retain")).ok());
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  EXPECT_EQ(Fate(kClaim), kGoes +
                              ", which cannot be changed any more, as the volume is being deleted "
                              "by command; what is to be kept has to be copied before then");
  EXPECT_FALSE(Admit(VolumeYaml("Retain")).ok());
}

TEST_F(CommandAdmissionTest, OfDataThatIsRetainedNothingWasSaid) {
  ASSERT_NO_FATAL_FAILURE(StartWith("", VolumeYaml("Retain") + UsedClaim()));
  EXPECT_EQ(Fate(kClaim), kStays);
  EXPECT_EQ(Fate(kVolume), "") << "its claim has it";
  EXPECT_FALSE(DataGoes());
}

TEST_F(CommandAdmissionTest, RetainOfAManifestKeepsTheDataAlsoOfATerminatingVolume) {
  ASSERT_NO_FATAL_FAILURE(StartWith("", VolumeYaml("Delete") + UsedClaim()));
  const std::string way = kGoes + ", and keeps it if test.yaml says Retain before then";
  EXPECT_EQ(Fate(kClaim), way);
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  EXPECT_EQ(Fate(kClaim), way);
  Deliver(VolumeYaml("Retain") + UsedClaim());
  EXPECT_EQ(Fate(kClaim), kStays);
  EXPECT_FALSE(DataGoesWithClaim(VolumeYaml("Retain")));
}

TEST_F(CommandAdmissionTest, ATerminatingVolumeThatIsMissingKeepsItsDataByItsFile) {
  ASSERT_NO_FATAL_FAILURE(StartWith("", VolumeYaml("Delete") + UsedClaim()));
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  Deliver(UsedClaim());
  EXPECT_EQ(Fate(kClaim),
            kGoes + ", and keeps it if test.yaml has it again with Retain before then");
  EXPECT_FALSE(Admit(VolumeYaml("Retain")).ok());
  Deliver(VolumeYaml("Retain") + UsedClaim());
  EXPECT_FALSE(DataGoesWithClaim(VolumeYaml("Retain")));
}

TEST_F(CommandAdmissionTest, RetainIsNotPromisedOfAVolumeThatTheNodeHasMade) {
  ASSERT_NO_FATAL_FAILURE(
      StartWith("",
                "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: "
                "made}\nprovisioner: kubernetes.io/host-path\n" +
                    UsedClaim("made")));
  EXPECT_EQ(Fate(kClaim),
            "its data in /made/pvc-c1 is deleted with it: PersistentVolume pvc-c1 has the reclaim "
            "policy Delete, which cannot be changed any more, as the volume was made by this node; "
            "what is to be kept has to be copied before then");
}

TEST_F(CommandAdmissionTest, NothingIsPromisedOfAClaimThatGoesAtOnce) {
  ASSERT_NO_FATAL_FAILURE(StartWith(VolumeYaml("Delete"), UsedClaim()));
  const std::string pod = UsedClaim();
  Deliver(pod.substr(0, pod.find("---", 3)));
  EXPECT_EQ(Fate(kClaim), kGoes);
}

TEST_F(CommandAdmissionTest, WhatNothingCanDeleteIsSaidToStay) {
  const std::string local =
      "local: {path: /srv/data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: "
      "[{key: metadata.name, operator: In, values: [n1]}]}]}}";
  ExpectStays(local, "/srv/data", "no deletable volume plugin matched");
}

TEST_F(CommandAdmissionTest, WhatLiesOutsideOfTheRootsIsSaidToStay) {
  ExpectStays("hostPath: {path: /outside/data}", "/outside/data", "only below the roots");
}

TEST_F(CommandAdmissionTest, AMissingVolumeKeepsItsDataUntilItIsDeletedByCommand) {
  ASSERT_NO_FATAL_FAILURE(StartWith("", VolumeYaml("Delete") + UsedClaim()));
  Deliver(UsedClaim());
  EXPECT_FALSE(DataGoes());
  EXPECT_EQ(Fate(kClaim),
            "its data in /srv/data stays: PersistentVolume disk, whose reclaim policy is Delete, "
            "has left its source; it is deleted once that is back, or deleted by command, and kept "
            "if it is applied with Retain before then");
  ASSERT_TRUE(DeleteClaim("data")->ok());
  Deliver("");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  EXPECT_EQ(Fate(kVolume),
            "its data in /srv/data is deleted with it: its claim is gone, and its reclaim policy "
            "is Delete");
  const Status refused = CheckDelete(catalog(), manager(), kVolume, /*yes=*/false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(CheckDelete(catalog(), manager(), kVolume, /*yes=*/true).ok());
  EXPECT_TRUE(Admit(VolumeYaml("Retain")).ok());
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  EXPECT_EQ(operations().Count("reclaim"), 1u);
}

// The claim was being deleted, and was not gone yet: nobody was asked, and with the pod the data
// went.
TEST_F(CommandAdmissionTest, ToDeleteAMissingVolumeWhoseClaimIsBeingDeletedHasToBeConfirmedToo) {
  ASSERT_NO_FATAL_FAILURE(StartWith("", VolumeYaml("Delete") + UsedClaim()));
  EXPECT_TRUE(CheckDelete(catalog(), manager(), kVolume, /*yes=*/false).ok());
  Deliver(UsedClaim());
  EXPECT_TRUE(CheckDelete(catalog(), manager(), kVolume, false).ok()) << "its claim keeps it";
  EXPECT_EQ(Fate(kVolume), "");
  ASSERT_TRUE(DeleteClaim("data")->ok());
  EXPECT_FALSE(CheckDelete(catalog(), manager(), kVolume, false).ok());
  EXPECT_EQ(Fate(kVolume),
            "its data in /srv/data is deleted with it: its claim is being deleted, and its reclaim "
            "policy is Delete");
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  EXPECT_TRUE(CheckDelete(catalog(), manager(), kVolume, false).ok()) << "it was confirmed";
  Deliver("");
  EXPECT_EQ(operations().Count("reclaim"), 1u);
}

}  // namespace
}  // namespace volumed
