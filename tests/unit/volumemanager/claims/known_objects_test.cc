// What is on record of the objects of all sources, who they are, and what a start makes of it.
#include "volumemanager/claims/known_objects.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

std::string Claim(const std::string& uid = "") {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
         "default" +
         (uid.empty() ? "" : ", uid: " + uid) +
         "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: \"\", volumeName: pv, "
         "resources: "
         "{requests: {storage: 1Gi}}}\n";
}

std::string Volume() {
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec:\n"
         "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
         "  persistentVolumeReclaimPolicy: Retain\n  local: {path: /dev/vdb}\n"
         "  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
         "operator: In, values: [n1]}]}]}}\n";
}

const ObjectKey kClaimKey{ObjectKind::kPersistentVolumeClaim, "default", "data"};

class KnownObjectsTest : public TwoSourcesTest {
 protected:
  std::string UidOfClaim() {
    const auto claim = catalog().FindPersistentVolumeClaim("default", "data");
    return claim == nullptr ? "no claim" : claim->metadata.uid;
  }
  std::string BoundClaimUid() {
    const auto row = store.Find(kClaimBindingRecordKind, "pv");
    if (!row) return "no binding";
    const ClaimBinding binding = DecodeClaimBindingRecord(*row).value().binding;
    return binding.state == BindingState::kBound ? binding.claim_uid : "not bound";
  }
};

// What was lost before: at the next start the applied one of the two delivered first, with another
// uid, and the volume was released.
TEST_F(KnownObjectsTest, AClaimThatIsInAManifestAndAppliedKeepsItsVolumeOverAStart) {
  Restart();
  Deliver("", kApplied);
  Deliver(Claim() + Volume());
  const std::string uid = UidOfClaim();
  ASSERT_EQ(BoundClaimUid(), uid);
  Deliver(Claim("00000000-0000-0000-0000-00000000000a"), kApplied);
  EXPECT_EQ(UidOfClaim(), uid);

  Restart();
  Deliver(Claim("00000000-0000-0000-0000-00000000000a"), kApplied);
  EXPECT_EQ(UidOfClaim(), "no claim") << "the manifest had it first, and has not delivered";
  Deliver(Claim() + Volume());
  EXPECT_EQ(UidOfClaim(), uid);
  EXPECT_EQ(BoundClaimUid(), uid);
  EXPECT_EQ(catalog().OriginOf(kClaimKey)->source, "manifests");
}

TEST_F(KnownObjectsTest, WhoeverDeliversAnObjectNextGetsTheUidOnRecord) {
  Restart();
  Deliver("", kApplied);
  Deliver(Claim() + Volume());
  const std::string uid = UidOfClaim();
  Restart();
  Deliver("");
  EXPECT_TRUE(catalog().IsMissing(kClaimKey));
  Deliver(Claim(), kApplied);
  EXPECT_FALSE(catalog().IsMissing(kClaimKey));
  EXPECT_EQ(UidOfClaim(), uid);
  EXPECT_EQ(BoundClaimUid(), uid);
  EXPECT_EQ(Row(kClaimKey)->source, kApplied);
}

TEST_F(KnownObjectsTest, AMissingClaimIsMissingStillAfterAStart) {
  Restart();
  Deliver("", kApplied);
  Deliver(Claim() + Volume());
  const std::string uid = UidOfClaim();
  Deliver("");
  ASSERT_TRUE(Row(kClaimKey)->missing);
  Restart();
  EXPECT_TRUE(catalog().IsMissing(kClaimKey)) << "before any source has delivered";
  Deliver("", kApplied);
  Deliver("");
  EXPECT_TRUE(catalog().IsMissing(kClaimKey));
  EXPECT_EQ(UidOfClaim(), uid);
  EXPECT_EQ(BoundClaimUid(), uid);
}

TEST_F(KnownObjectsTest, AUidThatAppearsOrChangesInAManifestIsRefused) {
  Restart();
  Deliver("", kApplied);
  Deliver(Claim());
  const std::string uid = UidOfClaim();
  Deliver(Claim("00000000-0000-0000-0000-00000000000a"));
  EXPECT_EQ(UidOfClaim(), uid);
  EXPECT_NE(ProblemsOf("manifests").find("metadata.uid: is immutable"), std::string::npos)
      << ProblemsOf("manifests");
  Deliver(Claim());
  EXPECT_EQ(ProblemsOf("manifests"), "");
  // Over a start as well.
  Restart();
  Deliver("", kApplied);
  Deliver(Claim("00000000-0000-0000-0000-00000000000a"));
  EXPECT_EQ(UidOfClaim(), uid);
}

TEST_F(KnownObjectsTest, OfSecretsAndConfigMapsOnlyThatTheyExistIsOnRecord) {
  Restart();
  Deliver("", kApplied);
  Deliver(
      "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: default}\n"
      "stringData: {password: hunter2}\n" +
      ConfigMap("settings", "of-the-map") + Claim());
  const ObjectKey secret{ObjectKind::kSecret, "default", "login"};
  ASSERT_TRUE(Row(secret).has_value());
  EXPECT_EQ(Row(secret)->object_json, "");
  EXPECT_EQ(Row(secret)->file, "test.yaml");
  EXPECT_EQ(Row(secret)->source, "manifests");
  EXPECT_NE(Row(kClaimKey)->object_json.find("volumeName"), std::string::npos);
  for (const Record& row : store.All()) {
    for (const char* content : {"hunter2", "aHVudGVyMg", "of-the-map"}) {
      EXPECT_EQ(row.bytes.find(content), std::string::npos) << row.kind << " " << row.key;
    }
  }
  // The next agent tells its source that it had them, and knows nothing of their content.
  Restart();
  const SourceMemory& memory = agent_->memories.at("manifests");
  const auto known = std::find_if(memory.objects.begin(), memory.objects.end(),
                                  [&](const KnownObject& one) { return one.key == secret; });
  ASSERT_NE(known, memory.objects.end());
  EXPECT_EQ(known->object, nullptr);
  EXPECT_EQ(catalog().LookUp(secret).answer, ObjectLookup::Answer::kUnknown);
  EXPECT_EQ(catalog().LookUp(secret).file, "test.yaml");
}

// What was wrong before: such an edit was refused while an agent ran, and taken in silence after a
// start.
TEST_F(KnownObjectsTest, AnImmutableConfigMapThatWasEditedWhileNoAgentRanWasTaken) {
  const ObjectKey key{ObjectKind::kConfigMap, "default", "settings"};
  const auto sealed = [](const std::string& value) {
    return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"
           "immutable: true\ndata: {k: \"" +
           value + "\"}\n";
  };
  Restart();
  Deliver("", kApplied);
  Deliver(sealed("1"));
  const KnownObjectRecord before = *Row(key);
  ASSERT_TRUE(before.mark && before.mark->immutable);
  for (int starts = 0; starts < 2; ++starts) {
    Restart();
    Deliver("", kApplied);
    Deliver(sealed("2"));
    EXPECT_EQ(catalog().LookUp(key).answer, ObjectLookup::Answer::kUnknown);
    EXPECT_EQ(catalog().LookUp(key).file, "test.yaml");
    EXPECT_NE(
        ProblemsOf("manifests")
            .find("data: Forbidden: field is immutable when `immutable` is set; it was changed "
                  "while no agent ran"),
        std::string::npos)
        << ProblemsOf("manifests");
    EXPECT_EQ(*Row(key), before);
  }
  Deliver(sealed("1"));
  EXPECT_EQ(catalog().LookUp(key).answer, ObjectLookup::Answer::kFound);
  EXPECT_EQ(ProblemsOf("manifests"), "");
  Deliver(sealed("2"));
  EXPECT_EQ(catalog().FindConfigMap("default", "settings")->data.at("k"), "1");
}

TEST_F(KnownObjectsTest, ASecretsTypeThatWasEditedWhileNoAgentRanWasTaken) {
  const ObjectKey key{ObjectKind::kSecret, "default", "login"};
  const auto secret = [](const std::string& type) {
    return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: "
           "default}\ntype: " +
           type + "\nstringData: {password: hunter2}\n";
  };
  Restart();
  Deliver("", kApplied);
  Deliver(secret("Opaque"));
  Restart();
  Deliver("", kApplied);
  Deliver(secret("foo"));
  EXPECT_EQ(catalog().LookUp(key).answer, ObjectLookup::Answer::kUnknown);
  EXPECT_NE(ProblemsOf("manifests").find("type: Invalid value: \"foo\": field is immutable"),
            std::string::npos);
  // A command ends it; once the file has lost it, what comes next is another one.
  Status deleted = Error::NotApplied(Code::kUnknown, "not answered");
  manager().object_commands().Delete(key, [&](const Status& status) { deleted = status; });
  Settle();
  EXPECT_TRUE(deleted.ok()) << deleted.error().message();
  EXPECT_NE(ProblemsOf("manifests").find("deleted by command"), std::string::npos)
      << ProblemsOf("manifests");
  Deliver("");
  EXPECT_EQ(catalog().LookUp(key).answer, ObjectLookup::Answer::kAbsent);
  Deliver(secret("foo"));
  EXPECT_EQ(catalog().FindSecret("default", "login")->type, "foo");
}

TEST_F(KnownObjectsTest, ASecretOfWhichTheFormerReleaseKeptNoMarkIsTakenAsItIs) {
  const ObjectKey key{ObjectKind::kSecret, "default", "login"};
  KnownObjectRecord row{.object = key, .source = "manifests", .file = "test.yaml"};
  ASSERT_TRUE(store.Put(EncodeRecord(row), kKnownObjectRecordDurability).ok());
  Restart();
  Deliver("", kApplied);
  Deliver("---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: default}\n");
  EXPECT_EQ(catalog().LookUp(key).answer, ObjectLookup::Answer::kFound);
  EXPECT_EQ(Row(key)->mark->secret_type, "Opaque");
}

TEST_F(KnownObjectsTest, TheSourcesStartOnceTheRecordsAreLoadedAndHearWhatTheyHad) {
  Restart();
  Deliver("", kApplied);
  Deliver(PodManifest("u1", {"v: emptyDir: {}"}) + Claim());
  kernel.failing_list_mounts = 1;
  Restart();
  EXPECT_FALSE(agent_->sources_started) << "a source that starts sooner cannot tell what it lost";
  EXPECT_NE(manager().NotReadyReason().find("the records cannot be loaded"), std::string::npos);
  Pass(std::chrono::seconds(30));
  ASSERT_TRUE(agent_->sources_started);
  const SourceMemory& memory = agent_->memories.at("manifests");
  ASSERT_EQ(memory.objects.size(), 2U);
  const KnownObject& pod = memory.objects[0];
  EXPECT_EQ(pod.key, (ObjectKey{ObjectKind::kPod, "default", "u1"}));
  EXPECT_EQ(pod.uid, "u1");
  EXPECT_EQ(pod.file, "test.yaml");
  ASSERT_NE(pod.object, nullptr);
  EXPECT_EQ(std::get<Pod>(*pod.object).spec.volumes.size(), 1U);
  EXPECT_EQ(memory.objects[1].key, kClaimKey);
}

TEST_F(KnownObjectsTest, TheRecordOfAPodFollowsItsFile) {
  Restart();
  Deliver("", kApplied);
  Deliver(PodManifest("u1", {"v: emptyDir: {}"}));
  Deliver(PodManifest("u1", {"v: emptyDir: {}"}, "  labels: {version: \"2\"}\n"));
  Restart();
  const SourceMemory& memory = agent_->memories.at("manifests");
  ASSERT_EQ(memory.objects.size(), 1U);
  EXPECT_EQ(MetaOf(*memory.objects[0].object).labels.at("version"), "2");
}

TEST_F(KnownObjectsTest, APodWithoutVolumesIsOnRecordToo) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml")});
  const std::string uid = UidOfPod("web-n1");
  EXPECT_TRUE(HasPodRecord(uid));
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml")});
  EXPECT_EQ(UidOfPod("web-n1"), uid);
}

TEST_F(KnownObjectsTest, APodWithoutAUidKeepsItsUidOverFileDocumentContentAndSource) {
  const std::string volumes =
      "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
      "  volumes: [{name: v, emptyDir: {}}]\n";
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", volumes)});
  const std::string uid = UidOfPod("web-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  DeliverList("manifests",
              {StaticPod("n1", "/m/other.yaml", volumes, "name: web, labels: {a: b}")});
  EXPECT_EQ(UidOfPod("web-n1"), uid);
  EXPECT_EQ(Phase(uid), "Ready");
  DeliverList(kApplied, {StaticPod("n1", "x", volumes)});
  DeliverList("manifests", {});
  EXPECT_EQ(UidOfPod("web-n1"), uid);
  EXPECT_EQ(Phase(uid), "Ready");
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {StaticPod("n1", "x", volumes)});
  EXPECT_EQ(UidOfPod("web-n1"), uid);
  EXPECT_EQ(Phase(uid), "Ready");
}

TEST_F(KnownObjectsTest, APodThatIsWhollyGoneIsAnotherOneNextTime) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml")});
  const std::string uid = UidOfPod("web-n1");
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid(uid, 7).ok());
  DeliverList("manifests", {});
  // It comes back while it leaves: it is the same.
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml")});
  EXPECT_EQ(UidOfPod("web-n1"), uid);
  watch.EndProcess(7);
  DeliverList("manifests", {});
  Pass(std::chrono::minutes(1));
  ASSERT_EQ(Phase(uid), "gone");
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml")});
  EXPECT_NE(UidOfPod("web-n1"), uid);
  EXPECT_NE(UidOfPod("web-n1"), "no pod");
}

TEST_F(KnownObjectsTest, AChangedNodeNameEndsNoPod) {
  const std::string ephemeral =
      "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
      "  volumes: [{name: v, emptyDir: {}}]\n";
  Restart();
  Deliver("", kApplied);
  // n0: what the node was called before; the fixture's is n1.
  DeliverList("manifests", {StaticPod("n0", "/m/web.yaml", ephemeral)});
  const std::string uid = UidOfPod("web-n0");
  ASSERT_EQ(Phase(uid), "Ready");
  Restart();
  EXPECT_EQ(agent_->memories.at("manifests").objects.at(0).key.name, "web-n1")
      << "its source reads it so";
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", ephemeral)});
  EXPECT_EQ(UidOfPod("web-n0"), uid) << "its claims and its directories are called after it";
  EXPECT_EQ(UidOfPod("web-n1"), "no pod");
  EXPECT_EQ(Phase(uid), "Ready");
  // Nor at the starts after that.
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", ephemeral)});
  Pass(std::chrono::minutes(2));
  EXPECT_EQ(UidOfPod("web-n0"), uid);
  EXPECT_EQ(Phase(uid), "Ready");
  DeliverList("manifests", {});
  Pass(std::chrono::minutes(2));
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", ephemeral)});
  EXPECT_NE(UidOfPod("web-n1"), "no pod") << "the next one is called as the node is";
}

// "web" on x-n1, which is called n1 by now, and "web-x".
TEST_F(KnownObjectsTest, APodTookOverAnothersDataWhoseNameEndedInTheFormerNodesName) {
  const std::string spec =
      "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
      "  volumes: [{name: v, emptyDir: {}}]\n";
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {StaticPod("x-n1", "/m/web.yaml", spec)});
  const std::string uid = UidOfPod("web-x-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE(start);
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {StaticPod("n1", "/m/a.yaml", spec, "name: web-x"),
                              StaticPod("n1", "/m/web.yaml", spec)});
    Pass(std::chrono::minutes(2));
    EXPECT_EQ(UidOfPod("web-x-n1"), uid);
    EXPECT_EQ(Phase(uid), "Ready");
    EXPECT_EQ(catalog().NamedBy({ObjectKind::kPod, "default", "web-x-n1"})->file, "/m/web.yaml");
  }
  // Once that is gone the name is free.
  DeliverList("manifests", {StaticPod("n1", "/m/a.yaml", spec, "name: web-x")});
  Pass(std::chrono::minutes(2));
  EXPECT_EQ(Phase(uid), "gone");
  EXPECT_NE(UidOfPod("web-x-n1"), uid);
  EXPECT_NE(UidOfPod("web-x-n1"), "no pod");
}

TEST_F(KnownObjectsTest, ASourceThatIsNotConfiguredAnyMoreKeepsItsPodsAndClaims) {
  Restart();
  Deliver("", kApplied);
  Deliver(PodManifest("u1", {"v: emptyDir: {}"}) + Claim() + Volume());
  const std::string uid = UidOfClaim();
  ASSERT_EQ(Phase("u1"), "Ready");
  sources = {kApplied};
  Restart();
  Deliver("", kApplied);
  EXPECT_TRUE(manager().Ready()) << manager().NotReadyReason();
  Pass(std::chrono::minutes(5));
  EXPECT_EQ(Phase("u1"), "Ready");
  EXPECT_EQ(UidOfClaim(), uid);
  EXPECT_EQ(BoundClaimUid(), uid);
  // Forgetting it ends the pod, and no claim.
  EXPECT_TRUE(catalog().ForgetSource("manifests"));
  manager().SourceForgotten("manifests");
  Pass(std::chrono::minutes(5));
  EXPECT_EQ(Phase("u1"), "gone");
  EXPECT_TRUE(catalog().IsMissing(kClaimKey));
  EXPECT_EQ(BoundClaimUid(), uid);
}

TEST_F(KnownObjectsTest, APodOfWhichNobodyKnowsWhetherItIsThereStaysAsItIs) {
  Restart();
  Deliver("", kApplied);
  Deliver(PodManifest("u1", {"v: emptyDir: {}"}));
  ASSERT_EQ(Phase("u1"), "Ready");
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {}, {{{ObjectKind::kPod, "default", "u1"}, "f.yaml", "EIO"}});
  Pass(std::chrono::minutes(5));
  EXPECT_TRUE(manager().Ready());
  EXPECT_NE(Phase("u1"), "gone");
  EXPECT_TRUE(HasPodRecord("u1"));
  Deliver("");
  Pass(std::chrono::minutes(5));
  EXPECT_EQ(Phase("u1"), "gone");
}

TEST_F(KnownObjectsTest, APodDeletedByCommandStaysRefusedWhileItsFileIsInDisorderAfterAStart) {
  Restart();
  Deliver("", kApplied);
  Deliver(PodManifest("u1", {"v: emptyDir: {}"}));
  ASSERT_TRUE(Delete("u1")->ok());
  Pass(std::chrono::minutes(1));
  ASSERT_EQ(Phase("u1"), "Refused");
  Restart();
  ASSERT_EQ(agent_->memories.at("manifests").objects.size(), 1U);
  const KnownObject known = agent_->memories.at("manifests").objects[0];
  ASSERT_NE(known.object, nullptr) << "its source must be able to say that it holds it";
  Deliver("", kApplied);
  DeliverList("manifests",
              {{known.object, known.file, 0, ObjectPresence::kUnproven, "cannot be decoded"}});
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(Phase("u1"), "Refused");
}

// The list of pods said nothing of it.
TEST_F(KnownObjectsTest, APodThatIsHeldBackSaysSoAndIsReady) {
  Restart();
  Deliver("", kApplied);
  ObjectWithOrigin web =
      StaticPod("n1", "/m/web.yaml", "spec: {containers: [{name: c, image: x}]}\n");
  DeliverList("manifests", {web});
  const std::string uid = UidOfPod("web-n1");
  EXPECT_TRUE(manager().pods().Find(PodUid(uid))->problems.empty());
  web.presence = ObjectPresence::kUnproven;
  web.reason = "the directory is empty";
  DeliverList("manifests", {web});
  const PodView view = *manager().pods().Find(PodUid(uid));
  ASSERT_EQ(view.problems.size(), 1U);
  EXPECT_TRUE(view.problems[0].is_warning);
  EXPECT_EQ(view.problems[0].message, "held, as no source has it: the directory is empty");
  EXPECT_EQ(view.phase, "Ready");
}

TEST_F(KnownObjectsTest, TheDirectoryOfASourceIsOnRecord) {
  Restart();
  Deliver("", kApplied);
  manager().NoteDirectory("manifests", {"ext4", "aaaa-bbbb", 12});
  Deliver("");
  Restart();
  const auto directory = agent_->memories.at("manifests").directory;
  ASSERT_TRUE(directory.has_value());
  EXPECT_EQ(*directory, (KnownDirectory{"ext4", "aaaa-bbbb", 12}));
}

// ---- a root of the former release ---------------------------------------------------------------

// Its rows: claims without a uid had one in "object-uid", pods had no file, and a node's name could
// have capitals.
TEST_F(KnownObjectsTest, ARootOfTheFormerReleaseKeepsPodsDirectoriesAndClaims) {
  const std::string volumes =
      "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
      "  volumes: [{name: v, emptyDir: {}}]\n";
  ObjectWithOrigin pod = StaticPod("N1", "/m/web.yaml", volumes);
  Pod former = std::get<Pod>(*pod.object);
  SetPodUid(former, "0123456789abcdef0123456789abcdef");
  PodRecord row;
  row.uid = former.uid();
  row.ns = "default";
  row.name = "web-n1";
  row.source = "manifests";
  row.pod_json = EncodeObjectJson(Object(former));
  ASSERT_TRUE(store.Put(EncodeRecord(row), kPodRecordDurability).ok());
  PutVolumeRecord(row.uid.str(), "v", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  ASSERT_TRUE(
      store.Put(EncodeRecord(ObjectUidRecord{kClaimKey, "u-claim"}), kObjectUidRecordDurability)
          .ok());
  ClaimBindingRecord binding;
  binding.binding = {{"default", "data"}, "u-claim", "pv", BindingState::kBound};
  ASSERT_TRUE(store.Put(EncodeRecord(binding), kClaimBindingRecordDurability).ok());

  Restart();
  // The other source is read first, and has the claim too.
  Deliver(Claim("00000000-0000-0000-0000-00000000000a"), kApplied);
  DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", volumes)});
  Pass(std::chrono::minutes(5));
  EXPECT_EQ(UidOfPod("web-n1"), row.uid.str());
  EXPECT_EQ(Phase(row.uid.str()), "Ready");
  EXPECT_EQ(UidOfClaim(), "u-claim");
  Deliver(Volume() + Claim());
  EXPECT_EQ(BoundClaimUid(), "u-claim");
  // The former row is replaced.
  EXPECT_FALSE(store.Find(kObjectUidRecordKind, ToString(kClaimKey)).has_value());
  EXPECT_EQ(Row(kClaimKey)->uid, "u-claim");
}

// The former release had no row of it: the manifest named the uid, and names none by now.
TEST_F(KnownObjectsTest, AClaimOfTheFormerReleaseWhoseManifestNamedItsUidKeepsItsVolume) {
  ClaimBindingRecord binding;
  binding.binding = {{"default", "data"}, "u-claim", "pv", BindingState::kBound};
  ASSERT_TRUE(store.Put(EncodeRecord(binding), kClaimBindingRecordDurability).ok());
  Restart();
  Deliver("", kApplied);
  Deliver(Volume() + Claim());
  EXPECT_EQ(UidOfClaim(), "u-claim");
  EXPECT_EQ(BoundClaimUid(), "u-claim");
}

// A Recycle around a volume whose file was damaged has emptied it.
TEST_F(KnownObjectsTest, AVolumeOfWhichNobodyKnowsTheObjectIsToldToTheOperationsAndStaysOnRecord) {
  const ObjectKey inner{ObjectKind::kPersistentVolume, "", "inner"};
  Restart();
  DeliverList("manifests", {});
  DeliverList(kApplied, {}, {{inner, "/objects/inner.json", "it is cut off"}});
  const std::vector<UnknownVolume> told = {{"inner", "/objects/inner.json", "it is cut off"}};
  EXPECT_EQ(operations().unknown_volumes, told);
  EXPECT_TRUE(operations().kept_storage.contains("inner")) << "its storage may be on record";
  EXPECT_TRUE(operations().forgotten_storage.empty());
  // A command ends it, and nobody has to know of it any more.
  DeliverList(kApplied, {});
  EXPECT_TRUE(operations().unknown_volumes.empty());
  EXPECT_EQ(operations().forgotten_storage, std::vector<std::string>{"inner"});
}

// The reservation of an interrupted Recycle kept everybody out of a volume that was not to be
// recycled any more.
TEST_F(KnownObjectsTest, ThatAVolumeIsRetainedFromNowOnIsToldToTheOperations) {
  std::string deleted = Volume();
  const std::string policy = "Policy: Retain";
  deleted.replace(deleted.find(policy), policy.size(), "Policy: Delete");
  Restart();
  Deliver("", kApplied);
  Deliver(deleted);
  EXPECT_TRUE(operations().ended_reclaims.empty());
  Deliver(Volume());
  EXPECT_EQ(operations().ended_reclaims, std::vector<std::string>{"pv"});
  Deliver(deleted);
  EXPECT_EQ(operations().ended_reclaims.size(), 1u);
}

}  // namespace
}  // namespace volumed
