// Claims whose volume is too small for them, and may be made larger: which of them get it.
#include "unit/volume/claim_testing.h"
#include "volume/claim_binding.h"

namespace volumed {
namespace {

using Phase = PersistentVolumeClaimPhase;

StorageClass Growing(const std::string& name, bool allowed = true) {
  StorageClass storage_class = MakeClass(name, VolumeBindingMode::kImmediate);
  storage_class.allow_volume_expansion = allowed;
  return storage_class;
}

PersistentVolume OfDriver(PersistentVolume volume) {
  CsiPersistentVolumeSource source;
  source.driver = "csi.example.com";
  source.volume_handle = "h-" + volume.metadata.name;
  volume.spec.source = source;
  return volume;
}

TEST(ClaimGrowthBinding, AClaimWhoseGrowthWasAskedForWhenTheRecordsWereLostStayedPending) {
  World world;
  world.Add(Growing("manual")).Add(OfDriver(MakeVolume("v", "32Mi")));
  world.Add(Naming(MakeClaim("x", "48Mi"), "v"));
  // One that is free and large enough is no reason to take another one than it had.
  world.Add(OfDriver(MakeVolume("large", "48Mi")));
  world.Add(Reserved(OfDriver(MakeVolume("kept", "32Mi")), "y"));
  world.Add(MakeClaim("y", "48Mi"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").phase, Phase::kBound) << world.Claim("x").reason;
  EXPECT_EQ(world.Claim("x").volume_name, "v");
  EXPECT_EQ(world.Claim("y").phase, Phase::kBound) << world.Claim("y").reason;
  EXPECT_EQ(world.Claim("y").volume_name, "kept");
  EXPECT_EQ(world.Volume("large").phase, PersistentVolumePhase::kAvailable);
}

TEST(ClaimGrowthBinding, AVolumeThatIsTooSmallAndCannotGrowIsNotBoundByItsName) {
  for (const bool allowed : {false, true}) {
    World world;
    world.Add(Growing("manual", allowed));
    world.Add(allowed ? MakeVolume("v", "1Mi") : OfDriver(MakeVolume("v", "1Mi")));
    world.Add(Naming(MakeClaim("x"), "v"));
    world.Decide();
    EXPECT_EQ(world.Claim("x").wait, ClaimWait::kVolumeUnfit);
    EXPECT_EQ(world.Claim("x").reason,
              "PersistentVolume v, which it names, is too small: 1Mi for a request of 1Gi");
  }
}

TEST(ClaimGrowthBinding, AVolumeThatMayGrowIsGivenToNobodyButTheClaimThatIsNamed) {
  World world;
  world.Add(Growing("manual"));
  // Another claim's by record, kept for another one, of a claim that has ended, and not the only
  // one that is kept for its claim.
  world.Add(OfDriver(MakeVolume("taken", "1Mi"))).Add(MakeClaim("owner", "1Mi"));
  world.Record("owner", "taken");
  world.Add(Reserved(OfDriver(MakeVolume("kept", "1Mi")), "somebody"));
  world.Add(OfDriver(MakeVolume("released", "1Mi"))).Record("past", "released").End("past");
  world.Add(Reserved(OfDriver(MakeVolume("one", "1Mi")), "two-of-them"));
  world.Add(Reserved(OfDriver(MakeVolume("other", "1Mi")), "two-of-them"));
  for (const char* name : {"taken", "kept", "released"}) {
    world.Add(Naming(MakeClaim(std::string("to-") + name), name));
  }
  world.Add(MakeClaim("two-of-them")).Add(MakeClaim("names-none"));
  world.Add(OfDriver(MakeVolume("free", "1Mi")));
  world.Decide();
  for (const char* name : {"to-taken", "to-kept", "to-released", "two-of-them", "names-none"}) {
    EXPECT_EQ(world.Claim(name).phase, Phase::kPending) << name;
  }
  EXPECT_EQ(world.Claim("owner").volume_name, "taken");
}

TEST(ClaimGrowthBinding, AVolumeThatIsKeptAndFitsGoesBeforeOneThatWouldHaveToGrow) {
  World world;
  world.Add(Growing("manual")).Add(MakeClaim("x"));
  world.Add(Reserved(OfDriver(MakeVolume("a-small", "1Mi")), "x"));
  world.Add(Reserved(OfDriver(MakeVolume("b-fits")), "x"));
  world.Decide();
  EXPECT_EQ(world.Claim("x").volume_name, "b-fits");
  // Nor before every source has delivered, which may bring one that fits.
  World incomplete;
  incomplete.Add(Growing("manual")).Add(MakeClaim("x")).Incomplete();
  incomplete.Add(Reserved(OfDriver(MakeVolume("a-small", "1Mi")), "x"));
  incomplete.Decide();
  EXPECT_EQ(incomplete.Claim("x").wait, ClaimWait::kSources);
}

}  // namespace
}  // namespace volumed
