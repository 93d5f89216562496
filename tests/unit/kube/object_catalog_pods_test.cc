// Pods of a catalog: their uids, their names, and what comes with other volumes.
#include "unit/kube/object_catalog_fixture.h"

namespace volumed {
namespace {

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
