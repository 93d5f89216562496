#include "volume/claim_matcher.h"

#include "unit/volume/claim_testing.h"

namespace volumed {
namespace {

using Phase = PersistentVolumeClaimPhase;

// The volume that a claim is bound to; "" when it is not.
std::string BoundTo(World& world, const std::string& claim) {
  world.Decide();
  return world.Claim(claim).phase == Phase::kBound ? world.Claim(claim).volume_name : "";
}

TEST(ClaimMatcher, TakesTheSmallestVolumeThatFits) {
  World world;
  world.Add(MakeVolume("a", "10Gi")).Add(MakeVolume("b", "2Gi")).Add(MakeVolume("c", "5Gi"));
  world.Add(MakeVolume("d", "1Gi")).Add(MakeClaim("x", "1500Mi"));
  EXPECT_EQ(BoundTo(world, "x"), "b");
}

TEST(ClaimMatcher, EqualVolumesAreTakenByName) {
  World world;
  world.Add(MakeVolume("b")).Add(MakeVolume("a")).Add(MakeClaim("x"));
  EXPECT_EQ(BoundTo(world, "x"), "a");
}

TEST(ClaimMatcher, FewestAccessModesFirstUnlessTheConsumerWasWaitedFor) {
  PersistentVolume wide = MakeVolume("wide", "1Gi");
  wide.spec.access_modes = {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany};
  const PersistentVolume large = MakeVolume("large", "9Gi");
  World immediate;
  immediate.Add(wide).Add(large).Add(MakeClaim("x"));
  EXPECT_EQ(BoundTo(immediate, "x"), "large");
  World waited;
  waited.Add(wide).Add(large).Add(MakeClaim("x")).Use("p", "x");
  waited.Add(MakeClass("manual", VolumeBindingMode::kWaitForFirstConsumer));
  EXPECT_EQ(BoundTo(waited, "x"), "wide");
}

TEST(ClaimMatcher, EachRuleRefusesAndIsCounted) {
  World world;
  world.Add(MakeVolume("class", "1Gi", "other"));
  PersistentVolume volume = MakeVolume("mode");
  volume.spec.volume_mode = VolumeMode::kBlock;
  world.Add(volume);
  volume = MakeVolume("attributes");
  volume.spec.volume_attributes_class_name = "gold";
  world.Add(volume);
  volume = MakeVolume("access");
  volume.spec.access_modes = {AccessMode::kReadOnlyMany, AccessMode::kReadWriteOncePod};
  world.Add(volume);
  world.Add(MakeVolume("labels"));
  const StringMap labels = {{"disk", "fast"}};
  volume = MakeVolume("node");
  volume.metadata.labels = labels;
  volume.spec.node_affinity = OnNode("node-2");
  world.Add(volume);
  for (const char* name : {"small-1", "small-2"}) {
    volume = MakeVolume(name, "1Mi");
    volume.metadata.labels = labels;
    world.Add(volume);
  }
  volume = MakeVolume("dying");
  volume.metadata.deletion_unix_millis = 1;
  world.Add(volume);
  volume = MakeVolume("gone");
  volume.spec.source = RemovedVolumeSource{"rbd"};
  world.Add(volume);
  volume = MakeVolume("kept");
  volume.spec.claim_ref = ClaimReference{"default", "other", ""};
  world.Add(volume);
  world.Add(MakeVolume("taken")).Record("y", "taken").Add(MakeClaim("y"));
  world.Add(MakeVolume("released")).Record("z", "released").End("z");
  PersistentVolumeClaim claim = MakeClaim("x");
  claim.spec.selector = LabelSelector{labels, {}};
  world.Add(claim);
  EXPECT_EQ(BoundTo(world, "x"), "");
  EXPECT_EQ(world.Claim("x").wait, ClaimWait::kNoMatch);
  EXPECT_EQ(world.Claim("x").reason,
            "no PersistentVolume matches: 1 bound to another claim, 1 kept for another claim, 1 "
            "released and not reclaimed, 1 failed, 1 being deleted, 1 of another class, 1 of "
            "another volume mode, 1 of another volume attributes class, 1 without the access "
            "modes, 1 not selected by the claim, 1 not for this node, 2 too small (class "
            "\"manual\", 1Gi)");
  EXPECT_EQ(world.Volume("gone").phase, PersistentVolumePhase::kFailed);
  EXPECT_NE(world.Volume("gone").reason.find("rbd.csi.ceph.com"), std::string::npos);
  // And each of them for itself: one that is right beside them is taken.
  volume = MakeVolume("right");
  volume.metadata.labels = labels;
  volume.spec.node_affinity = OnNode("node-1");
  world.Add(volume);
  EXPECT_EQ(BoundTo(world, "x"), "right");
}

TEST(ClaimMatcher, WhyAVolumeThatIsKeptForTheClaimDoesNotFitIsSaid) {
  const PersistentVolumeClaim claim = MakeClaim("x", "2Gi");
  const BindingNode node = World().input().node;
  const ClaimNeeds needs{claim, "manual", node};
  PersistentVolume volume = MakeVolume("v", "2Gi", "other");
  EXPECT_EQ(MisfitOfReserved(volume, needs), std::nullopt) << "its class does not count";
  PersistentVolume wrong = volume;
  wrong.metadata.deletion_unix_millis = 1;
  EXPECT_EQ(MisfitOfReserved(wrong, needs), Misfit::kBeingDeleted);
  wrong = volume;
  wrong.spec.volume_mode = VolumeMode::kBlock;
  EXPECT_EQ(MisfitOfReserved(wrong, needs), Misfit::kVolumeMode);
  wrong = volume;
  wrong.spec.volume_attributes_class_name = "gold";
  EXPECT_EQ(MisfitOfReserved(wrong, needs), Misfit::kAttributes);
  wrong = volume;
  wrong.spec.node_affinity = OnNode("node-2");
  EXPECT_EQ(MisfitOfReserved(wrong, needs), Misfit::kNodeAffinity);
  wrong = MakeVolume("v", "1Gi");
  EXPECT_EQ(MisfitOfReserved(wrong, needs), Misfit::kTooSmall);
}

TEST(ClaimMatcher, WhyAVolumeThatTheClaimNamesDoesNotFitIsSaid) {
  const PersistentVolumeClaim claim = MakeClaim("x", "2Gi");
  const BindingNode node = World().input().node;
  const ClaimNeeds needs{claim, "manual", node};
  PersistentVolume volume = MakeVolume("v", "2Gi");
  volume.spec.node_affinity = OnNode("node-2");
  EXPECT_EQ(MisfitOfNamed(volume, needs), std::nullopt) << "its node does not count";
  PersistentVolume wrong = volume;
  wrong.spec.volume_mode = VolumeMode::kBlock;
  EXPECT_EQ(MisfitOfNamed(wrong, needs), Misfit::kVolumeMode);
  wrong = volume;
  wrong.spec.access_modes = {AccessMode::kReadOnlyMany};
  EXPECT_EQ(MisfitOfNamed(wrong, needs), Misfit::kAccessModes);
}

TEST(ClaimMatcher, WithoutAnyVolumeItSaysSo) {
  World world;
  world.Add(MakeClaim("x", "1Gi", ""));
  EXPECT_EQ(BoundTo(world, "x"), "");
  EXPECT_EQ(world.Claim("x").reason, "no PersistentVolume matches: there is none (no class, 1Gi)");
}

TEST(ClaimMatcher, AbsentClassIsTheNewestDefaultAndEmptyClassIsNone) {
  World world;
  StorageClass old_default = MakeClass("old", VolumeBindingMode::kImmediate);
  old_default.metadata.annotations = {{"storageclass.kubernetes.io/is-default-class", "true"}};
  old_default.metadata.creation_unix_millis = 1;
  StorageClass new_default = old_default;
  new_default.metadata.name = "new";
  new_default.metadata.creation_unix_millis = 2;
  StorageClass no_default = old_default;
  no_default.metadata.name = "none";
  no_default.metadata.annotations = {{"storageclass.kubernetes.io/is-default-class", "false"}};
  no_default.metadata.creation_unix_millis = 3;
  world.Add(old_default).Add(new_default).Add(no_default);
  world.Add(MakeVolume("pv-old", "1Gi", "old")).Add(MakeVolume("pv-new", "1Gi", "new"));
  world.Add(MakeVolume("pv-none", "1Gi", ""));
  PersistentVolumeClaim absent = MakeClaim("absent");
  absent.spec.storage_class_name.reset();
  world.Add(absent).Add(MakeClaim("empty", "1Gi", ""));
  EXPECT_EQ(BoundTo(world, "absent"), "pv-new");
  EXPECT_EQ(world.Claim("absent").storage_class, "new");
  EXPECT_EQ(BoundTo(world, "empty"), "pv-none");
}

TEST(ClaimMatcher, ClassAnnotationsOfOldWinOverTheFields) {
  World world;
  PersistentVolume volume = MakeVolume("v", "1Gi", "field");
  volume.metadata.annotations["volume.beta.kubernetes.io/storage-class"] = "annotated";
  PersistentVolumeClaim claim = MakeClaim("x", "1Gi", "other-field");
  claim.metadata.annotations = volume.metadata.annotations;
  world.Add(volume).Add(claim);
  EXPECT_EQ(BoundTo(world, "x"), "v");
}

TEST(ClaimMatcher, SmallerRequestsChooseFirst) {
  World world;
  world.Add(MakeVolume("small", "1Gi")).Add(MakeVolume("large", "5Gi"));
  world.Add(MakeClaim("a", "2Gi")).Add(MakeClaim("b", "500Mi"));
  EXPECT_EQ(BoundTo(world, "a"), "large");
  EXPECT_EQ(BoundTo(world, "b"), "small");
}

}  // namespace
}  // namespace volumed
