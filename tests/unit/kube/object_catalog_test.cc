#include "kube/object_catalog.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "kube/static_pod.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

using What = ObjectChange::What;

// Every object without a uid gets one that tells which one it is.
class TestIdentities final : public ObjectIdentities {
 public:
  std::string KnownUidOf(const ObjectKey& object) const override {
    const auto found = uids.find(object);
    return found == uids.end() ? "" : found->second;
  }
  std::string UidOf(const ObjectKey& object) override {
    return uids.try_emplace(object, "uid of " + object.name).first->second;
  }
  void Adopt(const ObjectKey& object, const std::string& uid) override { uids[object] = uid; }
  void Ended(const ObjectKey& object, const std::string&) override { uids.erase(object); }
  std::string NameOf(const Pod& pod) const override {
    const auto found = names.find(pod.metadata.name);
    return found == names.end() ? pod.metadata.name : found->second;
  }
  std::string OtherNameOf(const Pod& pod) const override {
    return StaticPodBaseName(pod).value_or(StaticPodName(pod.metadata.name, NodeName("n1")));
  }
  std::optional<ObjectKey> PodOfUid(const PodUid& uid) const override {
    for (const auto& [object, known] : uids) {
      if (object.kind == ObjectKind::kPod && known == uid.str()) return object;
    }
    return std::nullopt;
  }
  PodOnNode FindOnNode(const PodUid& pod) const override {
    const auto found = on_node.find(pod);
    return found == on_node.end() ? PodOnNode() : found->second;
  }

  std::map<ObjectKey, std::string> uids;
  // The records have the pod of this manifest under another name.
  void Rename(const std::string& pod, const std::string& name) {
    names[pod] = name;
    if (auto known = uids.extract({ObjectKind::kPod, "default", pod})) {
      known.key().name = name;
      uids.insert(std::move(known));
    }
  }

  std::map<PodUid, PodOnNode> on_node;
  std::map<std::string, std::string> names;  // of a manifest -> on record
};

class ObjectCatalogTest : public testing::Test {
 protected:
  ObjectCatalogTest() {
    catalog_.AddListener([this](const std::vector<ObjectChange>& changes) {
      for (const ObjectChange& change : changes) {
        const char* what = change.what == What::kAdded     ? "+"
                           : change.what == What::kChanged ? "*"
                           : change.what == What::kMissing ? "~"
                           : change.what == What::kUnknown ? "?"
                           : change.what == What::kMoved   ? ">"
                                                           : "-";
        changes_ += what + change.key.name + " ";
      }
    });
  }

  void Deliver(const std::string& source, std::vector<ObjectWithOrigin> objects) {
    catalog_.Update({source, true, std::move(objects), {}});
  }
  std::string TakeChanges() { return std::exchange(changes_, ""); }
  std::string Problems(const std::string& source) {
    for (const SourceStatus& status : catalog_.Sources()) {
      if (status.name == source) return ProblemsText(status.problems);
    }
    return "no such source";
  }

  ManualClock clock_;
  TestIdentities identities_;
  ObjectCatalog catalog_{clock_};
  std::string changes_;
};

TEST_F(ObjectCatalogTest, IsCompleteOnceEverySourceHasDelivered) {
  catalog_.ExpectSource("a");
  catalog_.ExpectSource("b");
  EXPECT_FALSE(catalog_.AllSourcesComplete());
  Deliver("a", {});
  EXPECT_EQ(catalog_.IncompleteSources(), std::vector<std::string>{"b"});
  catalog_.Update({"b", false, {}, {{"/d", -1, "", "", "is missing"}}});
  EXPECT_FALSE(catalog_.AllSourcesComplete());
  EXPECT_EQ(catalog_.Sources()[1].last_error, "/d: is missing");
  Deliver("b", {});
  EXPECT_TRUE(catalog_.AllSourcesComplete());
  // A later failure does not take that back.
  catalog_.Update({"b", false, {}, {{"/d", -1, "", "", "is missing"}}});
  EXPECT_TRUE(catalog_.AllSourcesComplete());
  EXPECT_FALSE(catalog_.Sources()[1].last_list_complete);
}

TEST_F(ObjectCatalogTest, AClaimWithoutAUidHasTheOneThatItIsGiven) {
  const std::string claim =
      "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n"
      "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
  Deliver("a", {FromFile("f", claim), FromFile("g", ConfigMapYaml("x", "1"))});
  TakeChanges();
  catalog_.IdentifyBy(&identities_);
  EXPECT_EQ(TakeChanges(), "*data ");
  const auto before = catalog_.FindPersistentVolumeClaim("default", "data");
  EXPECT_EQ(before->metadata.uid, "uid of data");
  Deliver("a", {FromFile("f", claim)});
  EXPECT_EQ(TakeChanges(), "-x ");
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data"), before) << "the very object";
}

TEST_F(ObjectCatalogTest, TellsWhatWasAddedChangedAndRemoved) {
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1")), FromFile("g", ConfigMapYaml("w", "1"))});
  EXPECT_EQ(TakeChanges(), "+w +x ");
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1")), FromFile("g", ConfigMapYaml("w", "2"))});
  EXPECT_EQ(TakeChanges(), "*w ");
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(TakeChanges(), "-w ");
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(TakeChanges(), "");
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "1");
  EXPECT_EQ(catalog_.FindConfigMap("default", "w"), nullptr);
  EXPECT_EQ(catalog_.FindSecret("default", "x"), nullptr);
}

TEST_F(ObjectCatalogTest, AListThatIsNotCompleteTakesNothingAway) {
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  catalog_.Update({"a", false, {}, {}});
  EXPECT_NE(catalog_.FindConfigMap("default", "x"), nullptr);
}

TEST_F(ObjectCatalogTest, ThePodOfOneNameWithAnotherUidIsAnotherPod) {
  Deliver("a", {FromFile("f", PodYaml("web", "u-1"))});
  TakeChanges();
  Deliver("a", {FromFile("f", PodYaml("web", "u-2"))});
  EXPECT_EQ(TakeChanges(), "-web +web ");
  EXPECT_EQ(catalog_.FindPod(PodUid("u-1")), nullptr);
  EXPECT_EQ(catalog_.FindPod("default", "web")->metadata.uid, "u-2");
}

TEST_F(ObjectCatalogTest, TheFirstOfTwoWithOneNameStaysAndTheOtherTakesOver) {
  Deliver("b", {FromFile("b.yaml", ConfigMapYaml("x", "from b"))});
  Deliver("a", {FromFile("a.yaml", ConfigMapYaml("x", "from a"))});
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "from b");
  EXPECT_EQ(Problems("a"),
            "a.yaml: document 1: ConfigMap default/x: metadata.name: the same name was there first "
            "in source b, b.yaml, document 1; this one is not used\n");
  EXPECT_EQ(Problems("b"), "");
  EXPECT_EQ(catalog_.ProblemsOf({ObjectKind::kConfigMap, "default", "x"}).size(), 1U);
  // Also when the first is delivered again, changed.
  Deliver("b", {FromFile("b.yaml", ConfigMapYaml("x", "from b again"))});
  EXPECT_EQ(catalog_.OriginOf({ObjectKind::kConfigMap, "default", "x"})->source, "b");
  TakeChanges();
  Deliver("b", {});
  EXPECT_EQ(TakeChanges(), "*x ");
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "from a");
  EXPECT_EQ(Problems("a"), "");
}

TEST_F(ObjectCatalogTest, AnEarlierFileNameDoesNotTakeANameAway) {
  Deliver("a", {FromFile("m.yaml", ConfigMapYaml("x", "first"))});
  Deliver("a", {FromFile("b.yaml", ConfigMapYaml("x", "second")),
                FromFile("m.yaml", ConfigMapYaml("x", "first"))});
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "first");
}

TEST_F(ObjectCatalogTest, AUidIsOnePodsOnly) {
  Deliver("a", {FromFile("a.yaml", PodYaml("one", "u")), FromFile("b.yaml", PodYaml("two", "u"))});
  EXPECT_EQ(catalog_.Pods().size(), 1U);
  EXPECT_EQ(catalog_.FindPod(PodUid("u"))->metadata.name, "one");
  EXPECT_NE(Problems("a").find("metadata.uid: the same uid was there first"), std::string::npos);
}

TEST_F(ObjectCatalogTest, VolumesDoNotChangeUnderOneUidButMetadataDoes) {
  Deliver("a", {FromFile("f", PodYaml("web", "u", "  volumes: [{name: v}]\n"))});
  TakeChanges();
  Object changed = DecodeOne(PodYaml("web", "u", "  volumes: [{name: v}, {name: w}]\n"));
  Deliver("a", {{std::make_shared<const Object>(changed), "f", 0}});
  EXPECT_EQ(TakeChanges(), "");
  EXPECT_EQ(catalog_.FindPod(PodUid("u"))->spec.volumes.size(), 1U);
  EXPECT_NE(Problems("a").find("spec.volumes: is immutable under the same uid"), std::string::npos);

  MetaOf(changed).deletion_unix_millis = 1;
  Deliver("a", {{std::make_shared<const Object>(changed), "f", 0}});
  EXPECT_EQ(TakeChanges(), "*web ");
  EXPECT_TRUE(catalog_.FindPod(PodUid("u"))->deletion_requested());
  EXPECT_EQ(catalog_.FindPod(PodUid("u"))->spec.volumes.size(), 1U);

  // The file moving elsewhere is no way round it; the pod leaving is.
  Deliver("a", {{std::make_shared<const Object>(changed), "other", 0}});
  EXPECT_EQ(catalog_.FindPod(PodUid("u"))->spec.volumes.size(), 1U);
  Deliver("a", {});
  Deliver("a", {{std::make_shared<const Object>(changed), "f", 0}});
  EXPECT_EQ(catalog_.FindPod(PodUid("u"))->spec.volumes.size(), 2U);
  EXPECT_EQ(Problems("a"), "");
}

TEST_F(ObjectCatalogTest, AForgottenSourceLeavesItsNamesToTheOthers) {
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "from a"))});
  Deliver("b", {FromFile("f", ConfigMapYaml("x", "from b"))});
  TakeChanges();
  EXPECT_TRUE(catalog_.ForgetSource("a"));
  EXPECT_EQ(TakeChanges(), "*x ");
  EXPECT_EQ(catalog_.OriginOf({ObjectKind::kConfigMap, "default", "x"})->source, "b");
  EXPECT_EQ(Problems("b"), "");
  // Back again, it comes after the one that has taken over.
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "from a"))});
  EXPECT_EQ(TakeChanges(), "");
  EXPECT_NE(Problems("a").find("was there first"), std::string::npos);
}

TEST_F(ObjectCatalogTest, OfTwoNewOnesTheSourceThatWasNamedFirstWins) {
  catalog_.ExpectSource("z");
  catalog_.ExpectSource("a");
  Deliver("z", {});
  Deliver("a", {});
  Deliver("a", {FromFile("f", ConfigMapYaml("v", "1"))});
  // Both names are new to the catalog in one merge: those who held nothing claim in that order.
  Deliver("z", {FromFile("g", ConfigMapYaml("v", "2")), FromFile("g", ConfigMapYaml("w", "1"))});
  EXPECT_EQ(catalog_.OriginOf({ObjectKind::kConfigMap, "default", "v"})->source, "a");
  EXPECT_TRUE(catalog_.ForgetSource("a"));
  Deliver("b", {FromFile("h", ConfigMapYaml("v", "3"))});
  EXPECT_EQ(catalog_.OriginOf({ObjectKind::kConfigMap, "default", "v"})->source, "z");
}

TEST_F(ObjectCatalogTest, APodThatTakesItsNameAndAnothersUidTakesNeither) {
  Deliver("a",
          {FromFile("a.yaml", PodYaml("one", "u-1")), FromFile("b.yaml", PodYaml("two", "u-2"))});
  TakeChanges();
  Deliver("a",
          {FromFile("a.yaml", PodYaml("one", "u-2")), FromFile("b.yaml", PodYaml("two", "u-2"))});
  EXPECT_EQ(catalog_.FindPod(PodUid("u-2"))->metadata.name, "two");
  EXPECT_EQ(catalog_.FindPod("default", "one"), nullptr);
  EXPECT_EQ(TakeChanges(), "-one ");
  EXPECT_NE(Problems("a").find("a.yaml: document 1: Pod default/one: metadata.uid"),
            std::string::npos)
      << Problems("a");
}

TEST_F(ObjectCatalogTest, NamespacesAndKindsKeepNamesApart) {
  const std::string secret =
      "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {k: v}\n";
  const std::string elsewhere =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: other}\ndata: {k: o}\n";
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1")), FromFile("g", secret),
                FromFile("h", elsewhere)});
  EXPECT_EQ(catalog_.size(), 3U);
  EXPECT_EQ(Problems("a"), "");
  EXPECT_EQ(catalog_.FindConfigMap("other", "x")->data.at("k"), "o");
  EXPECT_NE(catalog_.FindSecret("default", "x"), nullptr);
  EXPECT_EQ(catalog_.FindSecret("other", "x"), nullptr);
}

TEST_F(ObjectCatalogTest, ProblemsOfAFileConcernItsObjectsOnly) {
  ObjectList list{"a",
                  true,
                  {FromFile("f", ConfigMapYaml("x", "1")), FromFile("g", ConfigMapYaml("v", "1"))},
                  {{"f", -1, "", "", "is half empty"}, {"f", 1, "Pod default/p", "spec", "no"}}};
  catalog_.Update(std::move(list));
  Deliver("b", {FromFile("f", ConfigMapYaml("z", "1"))});
  const auto count = [&](const char* name) {
    return catalog_.ProblemsOf({ObjectKind::kConfigMap, "default", name}).size();
  };
  EXPECT_EQ(count("x"), 1U);
  EXPECT_EQ(count("v"), 0U);
  EXPECT_EQ(count("z"), 0U);  // of the same file name in another source
  EXPECT_EQ(catalog_.ProblemsOf({ObjectKind::kPod, "default", "p"}).size(), 1U);
}

TEST_F(ObjectCatalogTest, AWarningIsOfTheObjectThatIsUsedAndMakesNoProblem) {
  const DecodeProblem slip{"f", 0, "ConfigMap default/x", "dta", "is not a field"};
  ObjectList list{"a", true, {FromFile("f", ConfigMapYaml("x", "1"))}, {}};
  list.warnings = {slip, {"g", 0, "ConfigMap default/x", "dta", "of the one that is not used"}};
  catalog_.Update(list);
  Deliver("b", {FromFile("f", ConfigMapYaml("z", "1"))});
  const auto warnings = [&](const char* name) {
    return ProblemsText(catalog_.WarningsOf({ObjectKind::kConfigMap, "default", name}));
  };
  EXPECT_EQ(warnings("x"), slip.ToString() + "\n");
  EXPECT_EQ(warnings("z"), "");
  EXPECT_EQ(warnings("nobody"), "");
  EXPECT_EQ(Problems("a"), "");
  EXPECT_EQ(catalog_.Sources().front().warnings.size(), 2U);
  list.warnings.clear();
  catalog_.Update(list);
  EXPECT_EQ(warnings("x"), "");
}

TEST_F(ObjectCatalogTest, AReaderKeepsTheVersionItHas) {
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  const auto old = catalog_.FindConfigMap("default", "x");
  Deliver("a", {});
  EXPECT_EQ(old->data.at("k"), "1");
}

TEST_F(ObjectCatalogTest, AForgottenSourceIsNoLongerWaitedFor) {
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  catalog_.ExpectSource("b");
  TakeChanges();
  EXPECT_TRUE(catalog_.ForgetSource("a"));
  EXPECT_EQ(TakeChanges(), "-x ");
  EXPECT_TRUE(catalog_.ForgetSource("b"));
  EXPECT_FALSE(catalog_.ForgetSource("b"));
  EXPECT_TRUE(catalog_.AllSourcesComplete());
  EXPECT_TRUE(catalog_.Sources().empty());
}

TEST_F(ObjectCatalogTest, StatusHasTimesAndCounts) {
  catalog_.ExpectSource("a");
  EXPECT_EQ(catalog_.Sources()[0].last_list_unix_millis, 0);
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(catalog_.Sources()[0].last_list_unix_millis, clock_.WallUnixMillis());
  EXPECT_EQ(catalog_.Sources()[0].objects, 1U);
}

TEST_F(ObjectCatalogTest, StorageObjectsAreMergedAsOthersAre) {
  const std::string spec =
      "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}\n";
  const std::string volume =
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\n" + spec;
  const auto claim = [](const std::string& ns) {
    return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: " + ns +
           "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
  };
  const std::string storage_class =
      "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: sc}\n"
      "provisioner: kubernetes.io/no-provisioner\n";
  const std::string driver =
      "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: d}\nspec: {}\n";
  Deliver("a", {FromFile("1", volume), FromFile("2", claim("z")), FromFile("3", claim("x")),
                FromFile("4", storage_class), FromFile("5", driver)});
  EXPECT_EQ(TakeChanges(), "+pv +c +c +sc +d ");
  ASSERT_NE(catalog_.FindPersistentVolume("pv"), nullptr);
  EXPECT_EQ(catalog_.FindPersistentVolume("pv")->spec.capacity, *Quantity::Parse("1Gi"));
  ASSERT_NE(catalog_.FindPersistentVolumeClaim("x", "c"), nullptr);
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "c"), nullptr);
  EXPECT_NE(catalog_.FindStorageClass("sc"), nullptr);
  EXPECT_NE(catalog_.FindCsiDriver("d"), nullptr);
  EXPECT_EQ(catalog_.PersistentVolumes().size(), 1U);
  ASSERT_EQ(catalog_.PersistentVolumeClaims().size(), 2U);
  EXPECT_EQ(catalog_.PersistentVolumeClaims()[0]->metadata.name_space, "x");
  EXPECT_EQ(catalog_.StorageClasses().size(), 1U);
  // The same name from another source is a problem there, and takes over when the first leaves.
  Deliver("b", {FromFile("6", volume)});
  EXPECT_EQ(Problems("b"),
            "6: document 1: PersistentVolume pv: metadata.name: the same name was there first in "
            "source a, 1, document 1; this one is not used\n");
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), "-d >pv ~c ~c ~sc ");
  EXPECT_EQ(catalog_.OriginOf({ObjectKind::kPersistentVolume, "", "pv"})->source, "b");
}

// ---- what is absent, and what nobody knows
// -------------------------------------------------------

constexpr const char* kClaim =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
const ObjectKey kClaimKey{ObjectKind::kPersistentVolumeClaim, "default", "data"};
const ObjectKey kMapKey{ObjectKind::kConfigMap, "default", "x"};

KnownObject Known(const ObjectWithOrigin& object, const std::string& uid = "") {
  return {KeyOf(*object.object), uid, object.file, object.object};
}

TEST_F(ObjectCatalogTest, AClaimThatLeavesItsSourceIsMissingAndStaysAsItWas) {
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("f", kClaim)});
  const auto before = catalog_.FindPersistentVolumeClaim("default", "data");
  EXPECT_FALSE(catalog_.IsMissing(kClaimKey));
  TakeChanges();
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), "~data ");
  EXPECT_TRUE(catalog_.IsMissing(kClaimKey));
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data"), before);
  EXPECT_EQ(catalog_.PersistentVolumeClaims().size(), 1U);
  EXPECT_EQ(catalog_.OriginOf(kClaimKey)->file, "f");
  EXPECT_EQ(catalog_.LookUp(kClaimKey).answer, ObjectLookup::Answer::kFound);
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), "") << "told once";
}

TEST_F(ObjectCatalogTest, WhoeverDeliversAMissingObjectNextTakesItOverWithItsUid) {
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("f", kClaim)});
  Deliver("a", {});
  TakeChanges();
  Deliver("b", {FromFile("g", kClaim)});
  EXPECT_EQ(TakeChanges(), "*data ");
  EXPECT_FALSE(catalog_.IsMissing(kClaimKey));
  EXPECT_EQ(catalog_.OriginOf(kClaimKey)->source, "b");
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data")->metadata.uid, "uid of data");
}

TEST_F(ObjectCatalogTest, AForgottenSourceLeavesItsClaimsMissing) {
  Deliver("a", {FromFile("f", kClaim), FromFile("g", ConfigMapYaml("x", "1"))});
  TakeChanges();
  EXPECT_TRUE(catalog_.ForgetSource("a"));
  EXPECT_EQ(TakeChanges(), "-x ~data ");
}

TEST_F(ObjectCatalogTest, AnAcceptedSourceLeavesItsClaimsMissing) {
  Deliver("a", {FromFile("f", kClaim), FromFile("g", ConfigMapYaml("x", "1"))});
  TakeChanges();
  // The word is given, and the list without what the source does not have comes after it.
  catalog_.AcceptSource("a");
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), "-x ~data ");
  EXPECT_TRUE(catalog_.IsMissing(kClaimKey));
}

TEST_F(ObjectCatalogTest, InASourceWhoseAbsenceIsACommandAClaimEnds) {
  catalog_.AbsenceEnds("a");
  Deliver("a", {FromFile("f", kClaim)});
  TakeChanges();
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), "-data ");
  EXPECT_EQ(catalog_.LookUp(kClaimKey).answer, ObjectLookup::Answer::kAbsent);
}

TEST_F(ObjectCatalogTest, ACommandEndsAMissingClaim) {
  std::vector<ObjectKey> over;
  catalog_.SetEndedListener([&](const ObjectKey& key) { over.push_back(key); });
  Deliver("a", {FromFile("f", kClaim)});
  Deliver("a", {});
  TakeChanges();
  catalog_.End(kClaimKey, "", 1);
  EXPECT_EQ(TakeChanges(), "-data ");
  EXPECT_EQ(over, std::vector<ObjectKey>{kClaimKey}) << "no source has it";
  EXPECT_FALSE(catalog_.IsEnded(kClaimKey));
}

TEST_F(ObjectCatalogTest, WhatACommandEndedIsRefusedUntilItsFileHasLostIt) {
  std::vector<ObjectKey> over;
  catalog_.SetEndedListener([&](const ObjectKey& key) { over.push_back(key); });
  identities_.uids[kClaimKey] = "u-1";
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("f", kClaim)});
  TakeChanges();
  catalog_.End(kClaimKey, "u-1", 1);
  EXPECT_EQ(TakeChanges(), "-data ");
  EXPECT_TRUE(catalog_.IsEnded(kClaimKey));
  EXPECT_NE(Problems("a").find("deleted by command and source a, f still has it"),
            std::string::npos)
      << Problems("a");
  Deliver("a", {FromFile("f", kClaim), FromFile("g", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(TakeChanges(), "+x ");
  // Another one of its name, with a uid of its own, is not the one that was deleted.
  std::string anew = kClaim;
  anew.replace(anew.find("name: data"), 10, "name: data, uid: u-2");
  Deliver("b", {FromFile("h", anew)});
  EXPECT_EQ(TakeChanges(), "+data ");
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data")->metadata.uid, "u-2");
  EXPECT_TRUE(over.empty());
  Deliver("a", {});
  EXPECT_EQ(over, std::vector<ObjectKey>{kClaimKey});
  EXPECT_EQ(TakeChanges(), "-x ");
}

// `sources` went on saying that the file still had it.
TEST_F(ObjectCatalogTest, WhatACommandEndedIsNoProblemOfAFileThatHasLostIt) {
  Deliver("a", {FromFile("f", kClaim)});
  catalog_.End(kClaimKey, "", 1);
  ASSERT_NE(Problems("a"), "");
  ObjectWithOrigin going = FromFile("f", kClaim);
  going.presence = ObjectPresence::kGoing;
  Deliver("a", {going});
  EXPECT_EQ(Problems("a"), "");
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data"), nullptr);
  EXPECT_TRUE(catalog_.IsEnded(kClaimKey))
      << "a file that has it back has the one that was deleted";
  Deliver("a", {FromFile("f", kClaim)});
  EXPECT_NE(Problems("a"), "");
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data"), nullptr);
}

TEST_F(ObjectCatalogTest, ACommandOnRecordHoldsBeforeTheSourcesDeliver) {
  std::vector<ObjectKey> over;
  catalog_.SetEndedListener([&](const ObjectKey& key) { over.push_back(key); });
  catalog_.ExpectSource("a");
  catalog_.End(kClaimKey, "u-1", 1);
  EXPECT_TRUE(over.empty()) << "the source may have it still";
  Deliver("a", {FromFile("f", kClaim)});
  EXPECT_EQ(TakeChanges(), "");
  Deliver("a", {});
  EXPECT_EQ(over.size(), 1U);
}

// Delete, apply, crash: the last command that was answered holds.
TEST_F(ObjectCatalogTest, WhatALaterCommandHasGivenIsNotRefused) {
  catalog_.ExpectSource("a");
  Deliver("b", {});
  ObjectWithOrigin applied = FromFile("f", kClaim);
  applied.number = 7;
  catalog_.End(kClaimKey, "u-1", 7);
  Deliver("a", {applied});
  EXPECT_EQ(TakeChanges(), "") << "the deletion came later than what the file was written by";
  EXPECT_EQ(catalog_.Refused().at(kClaimKey).file, "f");
  // A manifest that has it as well is refused still.
  Deliver("b", {FromFile("g", kClaim)});
  applied.number = 8;
  Deliver("a", {applied, FromFile("m", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(TakeChanges(), "+x +data ");
  EXPECT_NE(Problems("b").find("deleted by command"), std::string::npos) << Problems("b");
  EXPECT_EQ(catalog_.OriginOf(kClaimKey)->source, "a");
  catalog_.End(kClaimKey, "u-2", 6);
  EXPECT_TRUE(catalog_.FindObject(kClaimKey)) << "an earlier command's end, told again";
}

TEST_F(ObjectCatalogTest, WhatIsImmutableStaysAndIsAProblemOfItsFile) {
  bool bound = false;
  catalog_.SetBoundCheck([&](const ObjectKey& key) { return bound && key == kClaimKey; });
  Deliver("a", {FromFile("f", kClaim)});
  std::string large = kClaim;
  large.replace(large.find("1Gi"), 3, "2Gi");
  Deliver("a", {FromFile("f", large)});
  EXPECT_EQ(TakeChanges(), "+data ");
  EXPECT_EQ(Problems("a"),
            "f: document 1: PersistentVolumeClaim default/data: spec: Forbidden: spec is immutable "
            "after creation except resources.requests and volumeAttributesClassName for bound "
            "claims; the object stays as it was\n");
  bound = true;
  Deliver("a", {FromFile("f", large)});
  EXPECT_EQ(TakeChanges(), "*data ");
  EXPECT_EQ(Problems("a"), "");
}

TEST_F(ObjectCatalogTest, ALookUpHasThreeAnswers) {
  using Answer = ObjectLookup::Answer;
  catalog_.ExpectSource("a");
  EXPECT_EQ(catalog_.LookUp(kMapKey).answer, Answer::kUnknown);
  EXPECT_EQ(catalog_.LookUp(kMapKey).reason, "no complete list yet from: a");
  Deliver("a", {});
  EXPECT_EQ(catalog_.LookUp(kMapKey).answer, Answer::kAbsent);
  ObjectList list{"a", true, {}};
  list.unknown = {{kMapKey, "/d/f.yaml", "cannot be read: EIO"}};
  catalog_.Update(list);
  EXPECT_EQ(TakeChanges(), "?x ");
  EXPECT_EQ(catalog_.LookUp(kMapKey).answer, Answer::kUnknown);
  EXPECT_EQ(catalog_.LookUp(kMapKey).file, "/d/f.yaml");
  EXPECT_EQ(catalog_.LookUp(kMapKey).reason, "cannot be read: EIO");
  EXPECT_EQ(catalog_.FindConfigMap("default", "x"), nullptr);
  catalog_.Update(list);
  EXPECT_EQ(TakeChanges(), "") << "told once";
  Deliver("a", {FromFile("/d/f.yaml", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(TakeChanges(), "+x ");
  catalog_.Update(list);
  EXPECT_EQ(TakeChanges(), "?x ");
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), "-x ") << "what was unknown is certainly absent now";
}

TEST_F(ObjectCatalogTest, TheHolderOfANameKeepsItOverAStartUntilItsOwnSourceLacksIt) {
  const ObjectWithOrigin first = FromFile("f", ConfigMapYaml("x", "from a"));
  catalog_.ExpectSource("b");
  catalog_.Remember("a", {Known(first)});
  TakeChanges();
  Deliver("b", {FromFile("g", ConfigMapYaml("x", "from b"))});
  EXPECT_EQ(TakeChanges(), "");
  EXPECT_EQ(catalog_.FindConfigMap("default", "x"), nullptr);
  EXPECT_EQ(catalog_.LookUp(kMapKey).file, "f");
  EXPECT_NE(Problems("b").find("the same name is that of source a, f, of which nobody knows"),
            std::string::npos)
      << Problems("b");
  Deliver("a", {first});
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "from a");
  Deliver("a", {});
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "from b");
}

TEST_F(ObjectCatalogTest, AHolderWhoseFileIsInDisorderAfterAStartKeepsTheName) {
  catalog_.Remember("a", {{kMapKey, "", "f", nullptr}});
  ObjectList list{"a", true, {}};
  list.unknown = {{kMapKey, "f", "cannot be decoded"}};
  catalog_.Update(list);
  Deliver("b", {FromFile("g", ConfigMapYaml("x", "from b"))});
  EXPECT_EQ(catalog_.LookUp(kMapKey).answer, ObjectLookup::Answer::kUnknown);
  Deliver("a", {});
  EXPECT_EQ(catalog_.FindConfigMap("default", "x")->data.at("k"), "from b");
}

TEST_F(ObjectCatalogTest, ASourceThatIsNotConfiguredAnyMoreKeepsItsObjectsUntilItIsForgotten) {
  catalog_.ExpectSource("a");
  catalog_.KeepUnconfigured("gone", {Known(FromFile("f", kClaim), "u-1"),
                                     Known(FromFile("h", PodYaml("web", "u"))),
                                     {kMapKey, "", "g", nullptr}});
  EXPECT_EQ(catalog_.IncompleteSources(), std::vector<std::string>{"a"});
  Deliver("a", {FromFile("g", ConfigMapYaml("x", "from a"))});
  EXPECT_TRUE(catalog_.AllSourcesComplete());
  EXPECT_NE(catalog_.FindPod(PodUid("u")), nullptr);
  EXPECT_EQ(catalog_.StandingOf(kClaimKey)->presence, ObjectPresence::kUnproven);
  EXPECT_FALSE(catalog_.IsMissing(kClaimKey));
  EXPECT_EQ(catalog_.LookUp(kMapKey).file, "g");
  EXPECT_TRUE(catalog_.Sources()[1].unconfigured);
  TakeChanges();
  EXPECT_TRUE(catalog_.ForgetSource("gone"));
  EXPECT_EQ(TakeChanges(), "-web +x ~data ");
}

// What was wrong before: `source forget` said that a pod goes which another directory has.
TEST_F(ObjectCatalogTest, WhatAnotherSourceHasTooIsHandedOverByAForgottenOne) {
  const std::string volumes = "  volumes: [{name: v, emptyDir: {}}]\n";
  catalog_.IdentifyBy(&identities_);
  catalog_.KeepUnconfigured(
      "gone",
      {Known(FromFile("f", PodYaml("same", "u-1"))), Known(FromFile("f", PodYaml("alone", "u-2"))),
       Known(FromFile("f", PodYaml("new", "u-3"))), Known(FromFile("f", PodYaml("other", "u-4"))),
       Known(FromFile("f", ConfigMapYaml("x", "1")))});
  Deliver("a", {FromFile("g", PodYaml("same", "u-1")), FromFile("g", PodYaml("new", "u-9")),
                FromFile("g", PodYaml("other", "u-4", volumes)),
                FromFile("g", ConfigMapYaml("x", "1"))});
  std::set<ObjectKey> handed_over;
  for (const auto& [key, origin] : catalog_.HandedOverBy("gone")) {
    EXPECT_EQ(origin.source + " " + origin.file, "a g");
    handed_over.insert(key);
  }
  EXPECT_EQ(handed_over, (std::set<ObjectKey>{{ObjectKind::kPod, "default", "same"}, kMapKey}));
  EXPECT_TRUE(catalog_.HandedOverBy("a").empty());
  TakeChanges();
  EXPECT_TRUE(catalog_.ForgetSource("gone"));
  EXPECT_NE(catalog_.FindPod(PodUid("u-1")), nullptr);
  EXPECT_EQ(catalog_.FindPod(PodUid("u-2")), nullptr);
}

TEST_F(ObjectCatalogTest, WhatWasMissingWhenTheLastAgentEndedIsMissingStill) {
  catalog_.ExpectSource("a");
  catalog_.RememberMissing("a", Known(FromFile("f", kClaim), "u-1"), 77);
  EXPECT_TRUE(catalog_.IsMissing(kClaimKey));
  EXPECT_EQ(catalog_.StandingOf(kClaimKey)->missing_since_unix_millis, 77);
  Deliver("a", {});
  EXPECT_TRUE(catalog_.IsMissing(kClaimKey));
  EXPECT_EQ(catalog_.StandingOf(kClaimKey)->missing_since_unix_millis, 77);
  Deliver("a", {FromFile("f", kClaim)});
  EXPECT_FALSE(catalog_.IsMissing(kClaimKey));
}

TEST_F(ObjectCatalogTest, AClaimThatTheFirstListAfterAStartLacksIsMissing) {
  catalog_.Remember("a", {Known(FromFile("f", kClaim), "u-1")});
  EXPECT_EQ(catalog_.FindPersistentVolumeClaim("default", "data"), nullptr);
  EXPECT_EQ(catalog_.LookUp(kClaimKey).answer, ObjectLookup::Answer::kUnknown);
  Deliver("a", {});
  EXPECT_TRUE(catalog_.IsMissing(kClaimKey));
  EXPECT_FALSE(catalog_.NamedBy(kClaimKey).has_value()) << "whoever delivers it next has it";
  Deliver("a", {});
  EXPECT_TRUE(catalog_.IsMissing(kClaimKey));
}

TEST_F(ObjectCatalogTest, AClaimOfWhichOnlyTheUidIsOnRecordStaysUnknownWhenItIsLost) {
  catalog_.Remember("a", {{kClaimKey, "u-1", "f", nullptr}});
  Deliver("a", {});
  EXPECT_EQ(catalog_.LookUp(kClaimKey).answer, ObjectLookup::Answer::kUnknown);
  EXPECT_EQ(catalog_.LookUp(kClaimKey).reason,
            "it has the object no more, and no command ended it");
  catalog_.End(kClaimKey, "u-1", 1);
  EXPECT_EQ(catalog_.LookUp(kClaimKey).answer, ObjectLookup::Answer::kAbsent);
}

// A source of which everything is held back at the start may have what another one has no more.
TEST_F(ObjectCatalogTest, APodThatNobodySawLeaveStaysUntilEverySourceHasBeenInOrder) {
  ObjectWithOrigin going = FromFile("f", PodYaml("web", "u"));
  catalog_.ExpectSource("b");
  catalog_.Remember("a", {Known(going, "u")});
  ObjectList broken{"b", true, {}};
  broken.incomplete_because = "no such directory";
  catalog_.Update(broken);
  going.presence = ObjectPresence::kGoing;
  Deliver("a", {going});
  Deliver("a", {});
  const ObjectKey pod{ObjectKind::kPod, "default", "web"};
  EXPECT_EQ(catalog_.LookUp(pod).answer, ObjectLookup::Answer::kUnknown);
  EXPECT_NE(catalog_.LookUp(pod).reason.find("may have moved to source b, which has not been in "
                                             "order since the start: no such directory"),
            std::string::npos)
      << catalog_.LookUp(pod).reason;
  Deliver("b", {});
  EXPECT_EQ(catalog_.LookUp(pod).answer, ObjectLookup::Answer::kAbsent);
}

TEST_F(ObjectCatalogTest, APodThatWasSeenToLeaveWaitsForNoOtherSource) {
  const ObjectWithOrigin present = FromFile("f", PodYaml("web", "u"));
  catalog_.ExpectSource("b");
  catalog_.Remember("a", {Known(present, "u")});
  ObjectList broken{"b", true, {}};
  broken.incomplete_because = "no such directory";
  catalog_.Update(broken);
  Deliver("a", {present});
  Deliver("a", {});
  EXPECT_EQ(catalog_.LookUp({ObjectKind::kPod, "default", "web"}).answer,
            ObjectLookup::Answer::kAbsent);
}

TEST_F(ObjectCatalogTest, AnObjectThatOnlyMovesToAnotherFileIsToldAsMoved) {
  Deliver("a", {FromFile("f", ConfigMapYaml("x", "1"))});
  TakeChanges();
  Deliver("a", {FromFile("g", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(TakeChanges(), ">x ");
  EXPECT_EQ(catalog_.NamedBy(kMapKey)->file, "g");
}

TEST_F(ObjectCatalogTest, VolumesDoNotChangeUnderOneUidOverAStart) {
  const ObjectWithOrigin first = FromFile("f", PodYaml("web", "u", "  volumes: [{name: v}]\n"));
  catalog_.Remember("a", {Known(first, "u")});
  Deliver("a", {FromFile("f", PodYaml("web", "u", "  volumes: [{name: v}, {name: w}]\n"))});
  EXPECT_EQ(catalog_.FindPod(PodUid("u"))->spec.volumes.size(), 1U);
  EXPECT_NE(Problems("a").find("spec.volumes: is immutable under the same uid"), std::string::npos);
}

TEST_F(ObjectCatalogTest, WhatIsHeldAndWhatIsGoingSaysSo) {
  ObjectWithOrigin held = FromFile("f", ConfigMapYaml("x", "1"));
  held.presence = ObjectPresence::kGoing;
  held.reason = "it was unlinked";
  held.goes_at_unix_millis = 99;
  Deliver("a", {held});
  const auto standing = catalog_.StandingOf(kMapKey);
  EXPECT_EQ(standing->presence, ObjectPresence::kGoing);
  EXPECT_EQ(standing->reason, "it was unlinked");
  EXPECT_EQ(standing->goes_at_unix_millis, 99);
}

TEST_F(ObjectCatalogTest, AUidThatAppearsInAManifestIsRefusedAsLongAsTheObjectIsThere) {
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("f", PodYaml("web", ""))});
  EXPECT_EQ(catalog_.FindPod("default", "web")->metadata.uid, "uid of web");
  TakeChanges();
  Deliver("a", {FromFile("f", PodYaml("web", "u-1"))});
  EXPECT_EQ(TakeChanges(), "");
  EXPECT_NE(Problems("a").find("metadata.uid: is immutable: the object has the uid uid of web"),
            std::string::npos)
      << Problems("a");
  // Once no source has it, one with a uid of its own is another pod.
  Deliver("a", {});
  TakeChanges();
  Deliver("a", {FromFile("f", PodYaml("web", "u-1"))});
  EXPECT_EQ(TakeChanges(), "+web ");
  EXPECT_EQ(catalog_.FindPod("default", "web")->metadata.uid, "u-1");
  EXPECT_EQ(identities_.uids.at({ObjectKind::kPod, "default", "web"}), "u-1");
}

TEST_F(ObjectCatalogTest, AUidLessPodOfAnotherFileIsTheSamePod) {
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("f", PodYaml("web", ""))});
  TakeChanges();
  Deliver("a", {FromFile("g", PodYaml("web", ""))});
  EXPECT_EQ(TakeChanges(), ">web ");
  Deliver("b", {FromFile("h", PodYaml("web", ""))});
  Deliver("a", {});
  EXPECT_EQ(TakeChanges(), ">web ");
  EXPECT_EQ(catalog_.FindPod(PodUid("uid of web"))->metadata.name, "web");
}

// What is on record of a pod may change while its news are heard.
TEST_F(ObjectCatalogTest, APodThatIsCalledOtherwiseOnceItIsHeardOfIsFoundByTheNextMerge) {
  catalog_.IdentifyBy(&identities_);
  catalog_.AddListener(
      [this](const std::vector<ObjectChange>&) { identities_.Rename("log", "log-n1"); });
  Deliver("a", {FromFile("f", PodYaml("log", "u-1"))});
  ASSERT_NE(catalog_.FindPod("default", "log"), nullptr);
  Deliver("b", {FromFile("g", PodYaml("other", "u-2"))});
  EXPECT_NE(catalog_.FindPod("default", "log-n1"), nullptr);
  EXPECT_EQ(catalog_.FindPod("default", "log"), nullptr);
}

TEST_F(ObjectCatalogTest, AManifestWithAUidIsReachedByTheNameOfItsStaticPod) {
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("f", PodYaml("log-a", "u-1"))});
  ASSERT_NE(catalog_.FindPod("default", "log-a"), nullptr);
  identities_.Rename("log-a", "log-a-n1");
  catalog_.PodGone({ObjectKind::kPod, "default", "log-a-n1"});
  EXPECT_NE(catalog_.FindPod("default", "log-a-n1"), nullptr);
}

// ---- other volumes ------------------------------------------------------------------------------

TEST_F(ObjectCatalogTest, OnlyAPresentPodWithoutAUidInItsManifestIsToBeReplaced) {
  const std::string other = "  volumes: [{name: v, emptyDir: {}}]\n";
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("1", PodYaml("with", "u")), FromFile("2", PodYaml("without", ""))});
  TakeChanges();
  std::vector<ObjectWithOrigin> edited = {FromFile("1", PodYaml("with", "u", other)),
                                          FromFile("2", PodYaml("without", "", other))};
  Deliver("a", edited);
  EXPECT_EQ(TakeChanges(), "*without ") << "whoever replaces it must hear of it";
  const ObjectKey with{ObjectKind::kPod, "default", "with"};
  const ObjectKey without{ObjectKind::kPod, "default", "without"};
  EXPECT_TRUE(catalog_.StandingOf(with)->has_first_volumes);
  EXPECT_FALSE(catalog_.StandingOf(with)->to_be_replaced);
  EXPECT_TRUE(catalog_.StandingOf(without)->to_be_replaced);
  edited[1].presence = ObjectPresence::kUnproven;
  Deliver("a", edited);
  EXPECT_TRUE(catalog_.StandingOf(without)->has_first_volumes);
  EXPECT_FALSE(catalog_.StandingOf(without)->to_be_replaced);
  EXPECT_EQ(TakeChanges(), "*without ");
}

TEST_F(ObjectCatalogTest, WhatComesWithOtherVolumesWhileAPodThatLeftIsOnTheNodeWaits) {
  const ObjectKey key{ObjectKind::kPod, "default", "web"};
  const PodUid uid("uid of web");
  catalog_.IdentifyBy(&identities_);
  Deliver("a", {FromFile("1", PodYaml("web", ""))});
  identities_.on_node[uid] = {catalog_.FindPod(uid), true};
  Deliver("a", {});
  const ObjectWithOrigin other =
      FromFile("1", PodYaml("web", "", "  volumes: [{name: v, emptyDir: {}}]\n"));
  Deliver("a", {other});
  EXPECT_EQ(catalog_.FindPod("default", "web"), nullptr);
  EXPECT_TRUE(catalog_.Replaced().contains(key));
  identities_.on_node.clear();
  identities_.uids[key] = "another uid";
  catalog_.PodGone(key);
  ASSERT_NE(catalog_.FindPod("default", "web"), nullptr);
  EXPECT_EQ(catalog_.FindPod("default", "web")->metadata.uid, "another uid");
  EXPECT_EQ(catalog_.FindPod("default", "web")->spec.volumes.size(), 1U);
}

}  // namespace
}  // namespace volumed
