// What a catalog makes of objects that are absent, ended by a command, or known to nobody.
#include "unit/kube/object_catalog_fixture.h"

namespace volumed {
namespace {

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

}  // namespace
}  // namespace volumed
