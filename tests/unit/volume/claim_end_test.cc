// DecideBindings: what becomes of volumes whose claims have left them or are missing, and what
// keeps claims and volumes from going.
#include "unit/volume/claim_testing.h"
#include "volume/claim_binding.h"

namespace volumed {
namespace {

using Phase = PersistentVolumeClaimPhase;
using VPhase = PersistentVolumePhase;

TEST(ClaimBinding, RetainedVolumeIsNeverGivenToAnotherClaim) {
  World world;
  world.Add(MakeVolume("v")).Record("x", "v").End("x").Add(MakeClaim("y"));
  BindingResult result = world.Decide();
  EXPECT_EQ(world.Volume("v").phase, VPhase::kReleased);
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Claim("y").phase, Phase::kPending);
  // Not even to a new claim of the same name, which has another uid or says none.
  world.input().recorded = result.bindings;
  PersistentVolumeClaim again = MakeClaim("x");
  again.metadata.uid = "uid-x-2";
  world.Add(again).Decide();
  EXPECT_EQ(world.Claim("x").phase, Phase::kPending);
  World nameless;
  again.metadata.uid.clear();
  nameless.Add(MakeVolume("v")).Add(again);
  nameless.RecordUid("x", "", "v", BindingState::kReleased).Decide();
  EXPECT_EQ(nameless.Claim("x").phase, Phase::kPending);
  EXPECT_EQ(nameless.Volume("v").phase, VPhase::kReleased);
}

TEST(ClaimBinding, RetainedVolumeReturnsToTheSameClaimOrByMutualNaming) {
  World same;
  same.Add(MakeVolume("v")).Add(MakeClaim("x")).Record("x", "v", BindingState::kReleased);
  same.Decide();
  EXPECT_EQ(same.Claim("x").phase, Phase::kBound);
  World mutual;
  PersistentVolumeClaim claim = Naming(MakeClaim("x"), "v");
  claim.metadata.uid.clear();
  mutual.Add(Reserved(MakeVolume("v"), "x")).Add(claim);
  mutual.RecordUid("x", "", "v", BindingState::kReleased).Decide();
  EXPECT_EQ(mutual.Claim("x").phase, Phase::kBound);
  // A volume that is being deleted or recycled does not come back.
  World deleting;
  deleting.Add(WithPolicy(MakeVolume("v"), ReclaimPolicy::kDelete)).Add(MakeClaim("x"));
  deleting.Record("x", "v", BindingState::kReleased).Decide();
  EXPECT_EQ(deleting.Claim("x").phase, Phase::kPending);
  EXPECT_EQ(deleting.Volume("v").reclaim, ReclaimAction::kDelete);
}

TEST(ClaimBinding, ReclaimFollowsThePolicyWhenNoPodHoldsTheVolume) {
  World world;
  world.Add(WithPolicy(MakeVolume("d"), ReclaimPolicy::kDelete));
  world.Add(WithPolicy(MakeVolume("r"), ReclaimPolicy::kRecycle));
  world.Add(WithPolicy(MakeVolume("f"), ReclaimPolicy::kRecycle));
  world.Record("x", "d").Record("y", "r").Record("z", "f", BindingState::kReclaimFailed);
  world.End("x").End("y").End("z");
  world.Use("web", "y", "r");
  world.Decide();
  EXPECT_EQ(world.Volume("d").reclaim, ReclaimAction::kDelete);
  EXPECT_EQ(world.Volume("d").phase, VPhase::kReleased);
  // Held by a pod: still bound, not even released.
  EXPECT_EQ(world.Volume("r").phase, VPhase::kBound);
  EXPECT_EQ(world.Volume("r").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Volume("r").reason,
            "its claim is gone; it is released when pod default/web has left");
  EXPECT_EQ(world.Volume("f").phase, VPhase::kFailed);
  EXPECT_EQ(world.Volume("f").reclaim, ReclaimAction::kRecycle);
  world.input().uses.clear();
  world.Decide();
  EXPECT_EQ(world.Volume("r").reclaim, ReclaimAction::kRecycle);
}

TEST(ClaimBinding, AVolumeIsReleasedAndNotReclaimedWhileItsDeviceLeaves) {
  World world;
  world.Add(WithPolicy(MakeVolume("v"), ReclaimPolicy::kDelete)).Record("x", "v").End("x");
  world.input().leaving_devices = {"v"};
  world.Decide();
  EXPECT_EQ(world.Volume("v").phase, VPhase::kReleased);
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Volume("v").reason,
            "claim default/x is gone; it waits until its device has left this node");
  EXPECT_FALSE(world.Volume("v").protection.may_go()) << "its data is not reclaimed yet";
  world.input().leaving_devices.clear();
  world.Decide();
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kDelete);
}

TEST(ClaimBinding, RecycledVolumeIsFreeWhateverUidItsManifestNames) {
  World world;
  world.Add(Reserved(WithPolicy(MakeVolume("v"), ReclaimPolicy::kRecycle), "x", "uid-x"));
  world.Record("x", "v", BindingState::kReclaimed);
  BindingResult result = world.Decide();
  EXPECT_EQ(world.Volume("v").phase, VPhase::kAvailable);
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kNone);
  ASSERT_EQ(result.bindings.size(), 1U);  // as long as the manifest says so
  EXPECT_EQ(result.bindings[0].state, BindingState::kReclaimed);
  world.Add(MakeClaim("y")).Decide();
  EXPECT_EQ(world.Claim("y").volume_name, "v");
  // Its claim is back, with that very uid: the manifest is right again.
  World back;
  back.Add(Reserved(MakeVolume("v"), "x", "uid-x")).Add(MakeClaim("x")).Add(MakeClaim("a"));
  back.Record("x", "v", BindingState::kReclaimed).Decide();
  EXPECT_EQ(back.Claim("x").volume_name, "v");
  // Nothing to void: the record goes.
  World plain;
  plain.Add(MakeVolume("v")).Record("x", "v", BindingState::kReclaimed);
  EXPECT_TRUE(plain.Decide().bindings.empty());
}

TEST(ClaimBinding, AbsenceIsNoCommandWhileSourcesAreMissing) {
  World world;
  world.Add(WithPolicy(MakeVolume("d"), ReclaimPolicy::kDelete)).Record("x", "d");
  world.Add(MakeClaim("y")).Record("y", "unseen").Incomplete();
  world.Add(Reserved(MakeVolume("u"), "later", "uid-later"));
  world.Add(WithPolicy(MakeVolume("r"), ReclaimPolicy::kDelete));
  world.Record("past", "r", BindingState::kReleased).Record("p", "q", BindingState::kReleased);
  world.Add(MakeClaim("z")).Add(MakeVolume("free"));
  world.Add(Reserved(MakeVolume("mine"), "w")).Add(MakeClaim("w"));
  world.End("p");
  const BindingResult result = world.Decide();
  EXPECT_EQ(world.Volume("d").phase, VPhase::kBound);
  EXPECT_EQ(world.Volume("d").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Claim("y").phase, Phase::kBound);
  EXPECT_EQ(world.Volume("u").phase, VPhase::kBound);
  EXPECT_FALSE(world.Volume("u").protection.may_go());
  EXPECT_EQ(world.Volume("r").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Claim("z").wait, ClaimWait::kSources);
  EXPECT_EQ(world.Claim("w").volume_name, "mine");
  EXPECT_EQ(result.bindings.size(), 5U);
}

TEST(ClaimBinding, ForgetsABindingWhenClaimAndVolumeWereDeletedByCommand) {
  World world;
  world.Record("x", "v").Record("y", "w", BindingState::kReleased);
  EXPECT_EQ(world.Decide().bindings.size(), 2U) << "absence ends neither";
  world.End("x").End("y");
  EXPECT_EQ(world.Decide().bindings.size(), 2U) << "their volumes may come back, with their data";
  world.input().ended_volumes = {"v", "w"};
  EXPECT_TRUE(world.Decide().bindings.empty());
  world.Use("web", "x", "v");
  EXPECT_EQ(world.Decide().bindings.size(), 1U);
}

TEST(ClaimBinding, AMissingClaimKeepsItsVolumeWhateverThePolicy) {
  for (const ReclaimPolicy policy :
       {ReclaimPolicy::kRetain, ReclaimPolicy::kDelete, ReclaimPolicy::kRecycle}) {
    World world;
    world.Add(WithPolicy(MakeVolume("v"), policy)).Record("x", "v").Add(MakeClaim("other"));
    ASSERT_EQ(world.Decide().bindings.size(), 1U);
    EXPECT_EQ(world.Decide().bindings[0],
              (ClaimBinding{{"default", "x"}, "uid-x", "v", BindingState::kBound}));
    EXPECT_EQ(world.Volume("v").phase, VPhase::kBound);
    EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kNone);
    EXPECT_EQ(world.Volume("v").reason,
              "its claim is missing: it has left its source, and nobody has deleted it");
    EXPECT_EQ(world.Volume("v").protection.held_by, "bound to claim default/x");
    EXPECT_EQ(world.Claim("other").phase, Phase::kPending);
    // Another claim of its name, with another uid, does not get it either.
    PersistentVolumeClaim namesake = MakeClaim("x");
    namesake.metadata.uid = "uid-x-2";
    world.Add(namesake).Decide();
    EXPECT_EQ(world.Claim("x").phase, Phase::kPending);
    EXPECT_EQ(world.Volume("v").phase, VPhase::kBound);
    world.End("x").Decide();
    EXPECT_EQ(world.Volume("v").phase, VPhase::kReleased);
    EXPECT_EQ(world.Volume("v").reclaim, ReclaimActionOf(policy));
  }
}

TEST(ClaimBinding, AMissingClaimIsUsedWhenItIsBoundAndBoundToNothingWhenItIsNot) {
  World world;
  world.Add(MakeVolume("v")).Add(MakeVolume("free")).Add(Reserved(MakeVolume("kept"), "open"));
  world.Add(MakeClaim("x")).Add(MakeClaim("open")).Record("x", "v");
  world.input().missing_claims = {{"default", "x"}, {"default", "open"}};
  world.Use("web", "x", "v").Decide();
  EXPECT_EQ(world.Claim("x").phase, Phase::kBound);
  EXPECT_TRUE(world.Claim("x").missing);
  EXPECT_EQ(world.Claim("x").reason, "it has left its source, and nobody has deleted it");
  EXPECT_EQ(world.Claim("x").protection.held_by, "used by pod default/web");
  EXPECT_EQ(world.Claim("open").wait, ClaimWait::kMissing);
  EXPECT_EQ(world.Volume("free").phase, VPhase::kAvailable);
  EXPECT_EQ(world.Volume("kept").phase, VPhase::kAvailable);
}

TEST(ClaimBinding, AMissingVolumeTakesNoNewClaimAndIsNotReclaimed) {
  World world;
  world.Add(MakeVolume("free")).Add(Reserved(MakeVolume("kept"), "b")).Add(MakeVolume("named"));
  world.Add(MakeVolume("bound")).Add(WithPolicy(MakeVolume("past"), ReclaimPolicy::kDelete));
  world.Add(MakeVolume("returned")).Record("r", "returned", BindingState::kReleased);
  world.input().missing_volumes = {"free", "kept", "named", "bound", "past", "returned"};
  world.Add(MakeClaim("a")).Add(MakeClaim("b")).Add(Naming(MakeClaim("c"), "named"));
  world.Add(MakeClaim("d")).Record("d", "bound").Add(MakeClaim("r"));
  world.Record("p", "past", BindingState::kReleased).End("p").Decide();
  EXPECT_EQ(world.Claim("a").reason,
            "no PersistentVolume matches: 1 bound to another claim, 1 kept for another claim, 2 "
            "released and not reclaimed, 2 missing: it has left its source, and nobody has deleted "
            "it (class \"manual\", 1Gi)");
  EXPECT_EQ(world.Claim("b").wait, ClaimWait::kNoMatch);
  EXPECT_EQ(world.Claim("c").wait, ClaimWait::kVolumeMissing);
  EXPECT_EQ(world.Claim("c").reason,
            "PersistentVolume named, which it names, is missing: it has left its source, and "
            "nobody has deleted it");
  EXPECT_EQ(world.Claim("r").phase, Phase::kPending);
  EXPECT_EQ(world.Claim("d").volume_name, "bound");
  EXPECT_TRUE(world.Volume("bound").missing);
  EXPECT_EQ(world.Volume("past").phase, VPhase::kReleased);
  EXPECT_EQ(world.Volume("past").reclaim, ReclaimAction::kNone);
  world.input().missing_volumes.erase("past");
  world.Decide();
  EXPECT_EQ(world.Volume("past").reclaim, ReclaimAction::kDelete);
}

TEST(ClaimBinding, AClaimThatHasEndedIsNoClaimWhateverASourceSays) {
  World world;
  world.Add(MakeVolume("v")).Add(MakeVolume("free")).Add(MakeClaim("x")).Record("x", "v").End("x");
  EXPECT_TRUE(world.Decide().claims.empty());
  EXPECT_EQ(world.Volume("v").phase, VPhase::kReleased);
  EXPECT_EQ(world.Volume("free").phase, VPhase::kAvailable);
}

TEST(ClaimBinding, AVolumeThatNothingCanReclaimMayGoWithItsStorageLeft) {
  World world;
  PersistentVolume volume = WithPolicy(MakeVolume("v"), ReclaimPolicy::kDelete);
  world.Add(volume).Record("x", "v", BindingState::kReclaimFailed).End("x");
  world.input().unreclaimable = {{"v", "no plugin deletes it"}};
  world.Decide();
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kDelete) << "its failure is to be seen";
  EXPECT_FALSE(world.Volume("v").protection.may_go());
  world.input().volumes.clear();
  volume.metadata.deletion_unix_millis = 1;
  world.Add(volume).Decide();
  EXPECT_TRUE(world.Volume("v").protection.may_go());
  EXPECT_EQ(world.Volume("v").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Volume("v").reason,
            "claim default/x is gone; its object goes, and its storage stays as it is, with its "
            "data: no plugin deletes it");
  World bound;
  bound.Add(volume).Add(MakeClaim("x")).Record("x", "v");
  bound.input().unreclaimable = {{"v", "no plugin deletes it"}};
  bound.Decide();
  EXPECT_EQ(bound.Volume("v").protection.held_by, "bound to claim default/x");
}

TEST(ClaimBinding, ClaimInUseAndBoundVolumeAreProtected) {
  World world;
  PersistentVolumeClaim claim = MakeClaim("x");
  claim.metadata.deletion_unix_millis = 1;
  PersistentVolume volume = MakeVolume("v");
  volume.metadata.deletion_unix_millis = 1;
  volume.metadata.finalizers = {std::string(kPersistentVolumeProtection)};
  world.Add(volume).Add(claim).Record("x", "v");
  for (const char* pod : {"a", "b", "c", "d", "e"}) world.Use(pod, "x", "v");
  world.Decide();
  EXPECT_TRUE(world.Claim("x").protection.deletion_requested);
  EXPECT_EQ(world.Claim("x").protection.held_by,
            "used by pod default/a, pod default/b, pod default/c and 2 more");
  EXPECT_EQ(world.Volume("v").protection.held_by, "bound to claim default/x");
  // The pods leave, the claim may go; when it is gone, the volume may.
  world.input().uses.clear();
  world.Decide();
  EXPECT_TRUE(world.Claim("x").protection.may_go());
  EXPECT_FALSE(world.Volume("v").protection.may_go());
  world.input().claims.clear();
  world.Decide();
  EXPECT_FALSE(world.Volume("v").protection.may_go()) << "its claim is only missing";
  world.End("x").Decide();
  EXPECT_TRUE(world.Volume("v").protection.may_go());
  volume.metadata.finalizers.push_back("example.org/hold");
  World foreign;
  foreign.Add(volume).Decide();
  EXPECT_EQ(foreign.Volume("v").protection.held_by, "finalizer example.org/hold");
}

TEST(ClaimBinding, TwoRecordsNeverBindTwiceNorRelease) {
  World world;
  world.Add(WithPolicy(MakeVolume("v"), ReclaimPolicy::kDelete)).Add(MakeClaim("x"));
  world.Add(WithPolicy(MakeVolume("w"), ReclaimPolicy::kDelete)).Add(MakeClaim("y"));
  world.Record("x", "v").Record("x", "w").Record("y", "v").Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "v");
  EXPECT_EQ(world.Volume("w").phase, VPhase::kBound);
  EXPECT_EQ(world.Volume("w").reclaim, ReclaimAction::kNone);
  EXPECT_EQ(world.Volume("w").reason, "claim default/x is bound to PersistentVolume v too");
  EXPECT_EQ(world.Claim("y").phase, Phase::kPending);
}

TEST(ClaimBinding, OldVolumeOfARecreatedClaimIsHeldByThePodThatMountedIt) {
  World world;
  world.Add(MakeVolume("old")).RecordUid("x", "uid-before", "old").EndUid("x", "uid-before");
  world.Add(MakeVolume("new")).Add(MakeClaim("x"));
  world.Use("first", "x", "old").Use("second", "x").Decide();
  EXPECT_EQ(world.Volume("old").phase, VPhase::kBound);
  EXPECT_EQ(world.Claim("x").volume_name, "new");
  world.input().uses.erase(world.input().uses.begin());
  world.Decide();
  EXPECT_EQ(world.Volume("old").phase, VPhase::kReleased);
}

}  // namespace
}  // namespace volumed
