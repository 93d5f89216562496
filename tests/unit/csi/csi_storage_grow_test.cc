// The volumes that a driver's controller makes larger: whether the node has to follow, and which
// answers are believed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csi/csi_storage.h"
#include "unit/csi/storage_fixture.h"

namespace volumed {
namespace {

TEST_F(CsiStorageTest, StorageIsMadeLargerAndTheAnswerSaysWhetherTheNodeHasToFollow) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(MadeVolume(), false);
  EXPECT_FALSE(storage_->ExpandsStorage(spec));
  Serve({ControllerCapability::CREATE_DELETE_VOLUME, ControllerCapability::EXPAND_VOLUME});
  EXPECT_TRUE(storage_->ExpandsStorage(spec));
  EXPECT_FALSE(storage_->ExpandsOnlyUnused(spec));
  Grows(int64_t{3} << 30, true);
  const Result<ExpandedStorage> grown = Expand(int64_t{2} << 30);
  ASSERT_TRUE(grown.ok()) << grown.error().ToString();
  EXPECT_EQ(grown->size, Quantity::FromBytes(int64_t{3} << 30));
  EXPECT_TRUE(grown->needs_node);
  Grows(int64_t{2} << 30, false);
  EXPECT_FALSE(Expand(int64_t{2} << 30).value().needs_node);
}

TEST_F(CsiStorageTest, AGrowthThatEndsSmallerIsALie) {
  Serve({ControllerCapability::EXPAND_VOLUME});
  Grows(int64_t{2} << 30, false);
  const Result<ExpandedStorage> grown = Expand((int64_t{2} << 30) + 1);
  ASSERT_FALSE(grown.ok());
  EXPECT_TRUE(grown.error().maybe_applied());
  EXPECT_EQ(lies_, std::vector<std::string>{std::string(kName) + " ControllerExpandVolume"});
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kOutOfRange}) {
    Fails("ControllerExpandVolume", code);
    const Result<ExpandedStorage> refused = Expand(int64_t{2} << 30);
    ASSERT_FALSE(refused.ok());
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_EQ(refused.error().code(), code);
  }
}

TEST_F(CsiStorageTest, ADriverThatExpandsOfflineDoesSoOnlyUnused) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(MadeVolume(), false);
  using Expansion = ::csi::v1::PluginCapability::VolumeExpansion;
  Serve({ControllerCapability::EXPAND_VOLUME}, false, {Expansion::OFFLINE});
  EXPECT_TRUE(storage_->ExpandsOnlyUnused(spec));
  Serve({ControllerCapability::EXPAND_VOLUME}, false, {Expansion::OFFLINE, Expansion::ONLINE});
  EXPECT_FALSE(storage_->ExpandsOnlyUnused(spec));
}

}  // namespace
}  // namespace volumed
