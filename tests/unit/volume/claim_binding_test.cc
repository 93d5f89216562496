#include "volume/claim_binding.h"

#include "unit/volume/claim_testing.h"

namespace volumed {
namespace {

using Phase = PersistentVolumeClaimPhase;
using VPhase = PersistentVolumePhase;

TEST(ClaimBinding, ARecordWinsOverABetterVolumeAndOverManifests) {
  World world;
  world.Add(MakeVolume("fits")).Add(Reserved(MakeVolume("large", "9Gi"), "y"));
  world.Add(MakeClaim("x")).Add(MakeClaim("y")).Record("x", "large");
  world.Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "large");
  EXPECT_EQ(world.Claim("x").phase, Phase::kBound);
  EXPECT_FALSE(world.Claim("x").newly_bound);
  EXPECT_EQ(world.Claim("y").volume_name, "fits");
  EXPECT_TRUE(world.Claim("y").newly_bound);
  EXPECT_EQ(world.Volume("large").claim->name, "x");
}

TEST(ClaimBinding, NewBindingIsAmongThoseToRecord) {
  World world;
  world.Add(MakeVolume("v")).Add(MakeClaim("x"));
  const BindingResult& result = world.Decide();
  ASSERT_EQ(result.bindings.size(), 1U);
  EXPECT_EQ(result.bindings[0],
            (ClaimBinding{{"default", "x"}, "uid-x", "v", BindingState::kBound}));
}

TEST(ClaimBinding, VolumeKeptForAClaimByName) {
  World world;
  // Class and selector do not count, size and mode do.
  world.Add(Reserved(MakeVolume("small", "1Mi", "other"), "x"));
  world.Add(Reserved(MakeVolume("right", "2Gi", "other"), "x")).Add(MakeVolume("free"));
  world.Add(MakeClaim("x")).Add(MakeClaim("z"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "right");
  EXPECT_EQ(world.Claim("z").volume_name, "free");
  EXPECT_EQ(world.Volume("small").phase, VPhase::kAvailable);
  EXPECT_EQ(world.Volume("small").reason, "kept for claim default/x");
}

TEST(ClaimBinding, BothSidesNamingEachOtherBindWithoutRules) {
  World world;
  world.Add(Reserved(MakeVolume("v", "1Mi", "other"), "x")).Add(Naming(MakeClaim("x"), "v"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "v");
  EXPECT_EQ(world.Claim("x").phase, Phase::kBound);
}

TEST(ClaimBinding, VolumeOfAClaimThatNobodyKnowsIsKeptForIt) {
  World world;
  PersistentVolume volume = Reserved(MakeVolume("v"), "x", "uid-of-before");
  volume.spec.reclaim_policy = ReclaimPolicy::kDelete;
  world.Add(volume).Add(MakeClaim("x"));
  // Nobody has deleted that claim here: neither another one of its name gets the volume, nor is
  // anything of it reclaimed. Nothing is put on record, so that its manifest can be corrected.
  EXPECT_TRUE(world.Decide().bindings.empty());
  EXPECT_EQ(world.Claim("x").phase, Phase::kPending);
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Volume("v").reason,
            "claim default/x with the uid uid-of-before, to which its manifest binds it, is not "
            "known here: it is kept for that one");
  EXPECT_TRUE(world.Volume("v").protection.may_go());
  // It was deleted by command: its volume is released as any other.
  world.EndUid("x", "uid-of-before");
  ASSERT_EQ(world.Decide().bindings.size(), 1U);
  EXPECT_EQ(world.Decide().bindings[0].state, BindingState::kReleased);
  EXPECT_EQ(world.Volume("v").phase, VPhase::kReleased);
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kDelete);
  EXPECT_EQ(world.Claim("x").phase, Phase::kPending);
}

TEST(ClaimBinding, UidOfTheClaimBinds) {
  World world;
  world.Add(Reserved(MakeVolume("v", "1Mi"), "x", "uid-x")).Add(MakeClaim("x"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "v");
  EXPECT_EQ(world.Volume("v").phase, VPhase::kBound);
}

TEST(ClaimBinding, ClaimThatNamesAVolumeSaysWhyItCannotHaveIt) {
  World world;
  world.Add(MakeVolume("small", "1Mi")).Add(MakeVolume("other", "1Gi", "fast"));
  world.Add(Reserved(MakeVolume("kept"), "somebody")).Add(MakeVolume("taken"));
  world.Add(MakeClaim("owner")).Record("owner", "taken");
  world.Add(MakeVolume("released")).Record("past", "released").End("past");
  PersistentVolume block = MakeVolume("block");
  block.spec.volume_mode = VolumeMode::kBlock;
  world.Add(block);
  for (const char* name : {"small", "other", "kept", "taken", "released", "block", "absent"}) {
    world.Add(Naming(MakeClaim(std::string("to-") + name), name));
  }
  world.Decide();
  const auto reason = [&](const char* name) {
    EXPECT_EQ(world.Claim(name).phase, Phase::kPending) << name;
    return world.Claim(name).reason;
  };
  EXPECT_EQ(reason("to-small"),
            "PersistentVolume small, which it names, is too small: 1Mi for a request of 1Gi");
  EXPECT_EQ(reason("to-other"),
            "PersistentVolume other, which it names, is of another class: it has class \"fast\", "
            "the claim class \"manual\"");
  EXPECT_EQ(reason("to-kept"),
            "PersistentVolume kept, which it names, is kept for claim default/somebody");
  EXPECT_EQ(reason("to-taken"),
            "PersistentVolume taken, which it names, is bound to claim default/owner");
  EXPECT_EQ(reason("to-released"),
            "PersistentVolume released, which it names, holds the data of claim default/past");
  EXPECT_EQ(reason("to-block"),
            "PersistentVolume block, which it names, is of another volume mode");
  EXPECT_EQ(reason("to-absent"), "PersistentVolume absent, which it names, does not exist");
  EXPECT_EQ(world.Claim("to-absent").wait, ClaimWait::kVolumeMissing);
  EXPECT_EQ(world.Claim("to-kept").wait, ClaimWait::kVolumeTaken);
  EXPECT_EQ(world.Claim("to-small").wait, ClaimWait::kVolumeUnfit);
}

TEST(ClaimBinding, DefaultClassThatStandsInTheWayIsNamed) {
  World world;
  StorageClass standard = MakeClass("standard", VolumeBindingMode::kImmediate);
  standard.metadata.annotations = {{"storageclass.kubernetes.io/is-default-class", "true"}};
  PersistentVolumeClaim claim = Naming(MakeClaim("x"), "v");
  claim.spec.storage_class_name.reset();
  world.Add(standard).Add(MakeVolume("v", "1Gi", "")).Add(claim);
  world.Decide();
  EXPECT_EQ(world.Claim("x").reason,
            "PersistentVolume v, which it names, is of another class: it has no class, the claim "
            "class \"standard\", which is the default");
}

TEST(ClaimBinding, WaitsForTheFirstConsumer) {
  World world;
  world.Add(MakeClass("manual", VolumeBindingMode::kWaitForFirstConsumer));
  PersistentVolume elsewhere = MakeVolume("elsewhere", "1Gi");
  elsewhere.spec.node_affinity = OnNode("node-2");
  PersistentVolume here = MakeVolume("here", "5Gi");
  here.spec.node_affinity = OnNode("node-1");
  world.Add(elsewhere).Add(here).Add(MakeClaim("x"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").wait, ClaimWait::kFirstConsumer);
  EXPECT_EQ(world.Claim("x").reason,
            "it waits for the first pod on this node that uses it: class \"manual\" binds then "
            "(WaitForFirstConsumer)");
  EXPECT_TRUE(world.Decide().bindings.empty());
  world.Use("web", "x").Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "here");
  // A volume that is kept for the claim does not wait.
  World reserved;
  reserved.Add(MakeClass("manual", VolumeBindingMode::kWaitForFirstConsumer));
  reserved.Add(Reserved(MakeVolume("v"), "x")).Add(MakeClaim("x")).Decide();
  EXPECT_EQ(reserved.Claim("x").volume_name, "v");
}

TEST(ClaimBinding, SaysWhoIsToProvision) {
  World world;
  world.Add(MakeClass("fast", VolumeBindingMode::kImmediate, "csi.example.org"));
  world.Add(MakeClaim("x", "1Gi", "fast")).Decide();
  EXPECT_EQ(world.Claim("x").wait, ClaimWait::kProvisioning);
  EXPECT_EQ(world.Claim("x").provisioner, "csi.example.org");
  EXPECT_EQ(world.Claim("x").reason, "csi.example.org is to provision one");
}

// The cause came last, behind volumes of other classes.
TEST(ClaimBinding, AClaimThatWaitsForItsProvisionerNamedVolumesThatAreNoneOfItsBusiness) {
  World world;
  world.Add(MakeClass("fast", VolumeBindingMode::kImmediate, "csi.example.org"));
  PersistentVolume bound = MakeVolume("bound");
  bound.spec.storage_class_name = "fast";
  world.Add(bound).Add(MakeClaim("y", "1Gi", "fast")).Record("y", "bound");
  world.Add(MakeVolume("of-another-class")).Add(MakeClaim("x", "900Gi", "fast")).Decide();
  EXPECT_EQ(world.Claim("x").reason, "csi.example.org is to provision one");
  PersistentVolume small = MakeVolume("small");
  small.spec.storage_class_name = "fast";
  world.Add(small).Decide();
  EXPECT_EQ(world.Claim("x").reason,
            "csi.example.org is to provision one, as no PersistentVolume matches: 1 too small");
}

TEST(ClaimBinding, LostWhenTheVolumeIsGone) {
  World world;
  world.Add(MakeClaim("x")).Record("x", "v").Add(MakeVolume("another"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").phase, Phase::kLost);
  EXPECT_EQ(world.Claim("x").reason, "its PersistentVolume v is gone, and the data with it");
  // The record stays: the claim is not given another volume, and has its own when that is back.
  EXPECT_EQ(world.Decide().bindings.size(), 1U);
  world.Add(MakeVolume("v")).Decide();
  EXPECT_EQ(world.Claim("x").phase, Phase::kBound);
  EXPECT_EQ(world.Claim("x").volume_name, "v");
}

TEST(ClaimBinding, LostByTheClaimsOwnWords) {
  World world;
  PersistentVolumeClaim annotated = MakeClaim("a");
  annotated.metadata.annotations = {{std::string(kBindCompletedAnnotation), "yes"}};
  PersistentVolumeClaim gone = Naming(MakeClaim("b"), "gone");
  gone.status.phase = Phase::kBound;
  PersistentVolumeClaim twin = Naming(MakeClaim("c"), "v");
  twin.status.phase = Phase::kBound;
  PersistentVolumeClaim back = Naming(MakeClaim("d", "9Gi"), "unclaimed");
  back.status.phase = Phase::kBound;
  world.Add(annotated).Add(gone).Add(twin).Add(back).Add(MakeVolume("unclaimed"));
  world.Add(Reserved(MakeVolume("v"), "owner", "uid-owner")).Add(MakeClaim("owner"));
  world.Decide();
  EXPECT_EQ(world.Claim("a").phase, Phase::kLost);
  EXPECT_EQ(world.Claim("b").phase, Phase::kLost);
  EXPECT_EQ(world.Claim("c").phase, Phase::kLost);
  EXPECT_EQ(world.Claim("c").reason,
            "PersistentVolume v, which it names, is bound to claim default/owner");
  // Bound before, and nobody else's: taken back without asking its size.
  EXPECT_EQ(world.Claim("d").phase, Phase::kBound);
}

TEST(ClaimBinding, AClassThatWasDeletedWasNotNamedAsTheReasonWhileClaimsHadVolumesOfIt) {
  World world;
  world.Add(Reserved(MakeVolume("v"), "owner", "uid-owner")).Add(MakeClaim("owner"));
  world.Add(MakeClaim("x")).Decide();
  ASSERT_EQ(world.Claim("owner").phase, Phase::kBound);
  const std::string reason = world.Claim("x").reason;
  EXPECT_NE(reason.find("1 bound to another claim"), std::string::npos) << reason;
  EXPECT_NE(reason.find("; there is no StorageClass manual"), std::string::npos) << reason;
}

TEST(ClaimBinding, AClassThatDoesNotExistWasNotNamedAsTheReason) {
  World world;
  world.Add(MakeVolume("v")).Add(MakeClaim("x", "1Gi", "nosuchclass"));
  world.Add(MakeClaim("y", "9Gi")).Decide();
  EXPECT_EQ(world.Claim("x").wait, ClaimWait::kNoMatch);
  EXPECT_EQ(world.Claim("x").reason,
            "no PersistentVolume matches: 1 of another class (class \"nosuchclass\", 1Gi); there "
            "is no StorageClass nosuchclass");
  EXPECT_EQ(world.Claim("y").reason,
            "no PersistentVolume matches: 1 too small (class \"manual\", 9Gi)")
      << "a PersistentVolume is of that class, which need not be an object";
}

TEST(ClaimBinding, AMissingClassProvisionsNothing) {
  World world;
  world.Add(MakeClass("fast", VolumeBindingMode::kImmediate, "csi.example.org"));
  world.input().missing_classes = {"fast"};
  world.Add(MakeClaim("x", "1Gi", "fast")).Decide();
  EXPECT_EQ(world.Claim("x").wait, ClaimWait::kClassMissing);
  EXPECT_EQ(world.Claim("x").provisioner, "");
  EXPECT_EQ(world.Claim("x").reason,
            "no PersistentVolume matches: there is none (class \"fast\", 1Gi); none is "
            "provisioned, as StorageClass fast is missing: it has left its source, and nobody has "
            "deleted it");
}

TEST(ClaimBinding, ClaimBeingDeletedIsNotBoundAnew) {
  World world;
  PersistentVolumeClaim claim = MakeClaim("x");
  claim.metadata.deletion_unix_millis = 1;
  world.Add(MakeVolume("v")).Add(Reserved(MakeVolume("w"), "x")).Add(claim).Decide();
  EXPECT_EQ(world.Claim("x").wait, ClaimWait::kBeingDeleted);
}

}  // namespace
}  // namespace volumed
