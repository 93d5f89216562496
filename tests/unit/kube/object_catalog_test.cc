// What a catalog makes of the lists that its sources deliver.
#include "unit/kube/object_catalog_fixture.h"

namespace volumed {
namespace {

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

std::string AttachmentOf(const std::string& volume, const std::string& status) {
  return "apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va}\nspec: "
         "{attacher: d, nodeName: n1, source: {persistentVolumeName: " +
         volume + "}}\nstatus: " + status + "\n";
}

TEST_F(ObjectCatalogTest, AVolumeAttachmentKeepsItsSpecAndFollowsItsStatus) {
  const ObjectKey key{ObjectKind::kVolumeAttachment, "", "va"};
  Deliver("a", {FromFile("1", AttachmentOf("pv", "{}"))});
  Deliver("a", {FromFile("1", AttachmentOf("pv", "{attached: true}"))});
  EXPECT_TRUE(std::get<VolumeAttachment>(*catalog_.FindObject(key)).attached);
  Deliver("a", {FromFile("1", AttachmentOf("other", "{attached: false}"))});
  const auto kept = std::get<VolumeAttachment>(*catalog_.FindObject(key));
  EXPECT_EQ(kept.persistent_volume_name, "pv");
  EXPECT_TRUE(kept.attached);
  EXPECT_NE(Problems("a").find("spec: Invalid value: field is immutable; the object stays"),
            std::string::npos)
      << Problems("a");
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
  const std::string node =
      "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {}\n";
  Deliver("a", {FromFile("1", volume), FromFile("2", claim("z")), FromFile("3", claim("x")),
                FromFile("4", storage_class), FromFile("5", driver), FromFile("7", node),
                FromFile("8", AttachmentOf("pv", "{}"))});
  EXPECT_EQ(TakeChanges(), "+pv +c +c +sc +d +n1 +va ");
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
  EXPECT_EQ(TakeChanges(), "-d -n1 -va >pv ~c ~c ~sc ") << "some end with their source";
  EXPECT_EQ(catalog_.OriginOf({ObjectKind::kPersistentVolume, "", "pv"})->source, "b");
}

}  // namespace
}  // namespace volumed
