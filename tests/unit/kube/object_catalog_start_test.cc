// What a catalog keeps over a start of the agent, and until when.
#include "unit/kube/object_catalog_fixture.h"

namespace volumed {
namespace {

KnownObject Known(const ObjectWithOrigin& object, const std::string& uid = "") {
  return {KeyOf(*object.object), uid, object.file, object.object};
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

}  // namespace
}  // namespace volumed
