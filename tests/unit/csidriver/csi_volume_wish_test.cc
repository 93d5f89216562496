#include "csidriver/csi_volume_wish.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::Topology;
using Modes = ::csi::v1::VolumeCapability::AccessMode;

const CsiPlaces kPlaces{"topology.pool.volumed.io/node", {"n1"}};

Topology At(const std::string& key, const std::string& value) {
  Topology topology;
  (*topology.mutable_segments())[key] = value;
  return topology;
}

CreateVolumeRequest Request(const std::string& name = "a") {
  CreateVolumeRequest request;
  request.set_name(name);
  auto& capability = *request.add_volume_capabilities();
  capability.mutable_mount();
  capability.mutable_access_mode()->set_mode(Modes::SINGLE_NODE_WRITER);
  return request;
}

TEST(CsiVolumeWishTest, NoNameOfACoIsTheNameOfAPersistentVolumeOrOfAnotherCo) {
  std::set<std::string> names;
  for (const std::string& name :
       {std::string("pvc-1"), std::string("csi:pvc-1"), std::string("a b"), std::string("a\nb"),
        std::string("a\tb"), std::string(128, 'x')}) {
    const std::string pool_name = PoolNameOfCsi(name);
    EXPECT_TRUE(names.insert(pool_name).second) << name;
    // Neither character is in a DNS subdomain.
    EXPECT_NE(pool_name.find_first_of(":#"), std::string::npos);
    EXPECT_LE(pool_name.size(), 253u);
    EXPECT_EQ(pool_name, PoolNameOfCsi(name));
  }
  EXPECT_EQ(PoolNameOfCsi("csi#x"), "csi:csi#x");
}

TEST(CsiVolumeWishTest, ATopologyIsReachableIfEachOfItsSegmentsIs) {
  EXPECT_TRUE(IsReachable(kPlaces, Topology()));
  EXPECT_TRUE(IsReachable(kPlaces, At("topology.pool.volumed.io/node", "n1")));
  EXPECT_TRUE(IsReachable(kPlaces, At("Topology.Pool.volumed.io/NODE", "n1")))
      << "keys have no case";
  EXPECT_FALSE(IsReachable(kPlaces, At("topology.pool.volumed.io/node", "N1")));
  EXPECT_FALSE(IsReachable(kPlaces, At("topology.pool.volumed.io/zone", "n1")));
  Topology two = At("topology.pool.volumed.io/node", "n1");
  (*two.mutable_segments())["zone"] = "z";
  EXPECT_FALSE(IsReachable(kPlaces, two));
}

TEST(CsiVolumeWishTest, OnePlaceOfThoseThatAreRequiredIsEnoughAndAWishIsNone) {
  CreateVolumeRequest request = Request();
  auto& required = *request.mutable_accessibility_requirements();
  *required.add_preferred() = At(kPlaces.key, "n2");
  EXPECT_TRUE(ParseCsiVolumeWish(request, kPlaces, "pool.volumed.io").ok());
  *required.add_requisite() = At(kPlaces.key, "n2");
  const auto refused = ParseCsiVolumeWish(request, kPlaces, "pool.volumed.io");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  *required.add_requisite() = At(kPlaces.key, "n1");
  EXPECT_TRUE(ParseCsiVolumeWish(request, kPlaces, "pool.volumed.io").ok());
}

TEST(CsiVolumeWishTest, TheWishHasTheRangeTheModeAndTheFilesystem) {
  CreateVolumeRequest request = Request();
  request.mutable_capacity_range()->set_required_bytes(5);
  request.mutable_capacity_range()->set_limit_bytes(7);
  request.mutable_volume_capabilities(0)->mutable_mount()->set_fs_type("xfs");
  (*request.mutable_parameters())["pool"] = "fast";
  const auto wish = ParseCsiVolumeWish(request, kPlaces, "pool.volumed.io");
  ASSERT_TRUE(wish.ok()) << wish.error().ToString();
  EXPECT_EQ(wish->name, "csi:a");
  EXPECT_EQ(wish->id, "");
  EXPECT_EQ(wish->size.required_bytes, 5);
  EXPECT_EQ(wish->size.limit_bytes, 7);
  EXPECT_FALSE(wish->is_block);
  EXPECT_EQ(wish->parameters, (StringMap{{"csi.storage.k8s.io/fstype", "xfs"}, {"pool", "fast"}}));
  request.mutable_volume_capabilities(0)->mutable_block();
  EXPECT_TRUE(ParseCsiVolumeWish(request, kPlaces, "pool.volumed.io")->is_block);
}

TEST(CsiVolumeWishTest, AContentIsTheVolumeOrTheSnapshotThatIsNamed) {
  CreateVolumeRequest request = Request();
  EXPECT_FALSE(ParseCsiVolumeWish(request, kPlaces, "d.io")->content.has_value());
  request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id("s-1");
  const auto of_snapshot = ParseCsiVolumeWish(request, kPlaces, "d.io");
  ASSERT_TRUE(of_snapshot.ok() && of_snapshot->content.has_value());
  EXPECT_TRUE(of_snapshot->content->is_snapshot);
  EXPECT_EQ(of_snapshot->content->handle, "s-1");
  EXPECT_EQ(of_snapshot->content->driver, "d.io");
  EXPECT_EQ(of_snapshot->content->volume_mode, VolumeMode::kFilesystem);
  request.mutable_volume_content_source()->mutable_volume()->set_volume_id("v-1");
  request.mutable_volume_capabilities(0)->mutable_block();
  const auto of_volume = ParseCsiVolumeWish(request, kPlaces, "d.io");
  ASSERT_TRUE(of_volume.ok() && of_volume->content.has_value());
  EXPECT_FALSE(of_volume->content->is_snapshot);
  EXPECT_EQ(of_volume->content->handle, "v-1");
  EXPECT_EQ(of_volume->content->volume_mode, VolumeMode::kBlock);
}

TEST(CsiVolumeWishTest, AVolumeSaysOfWhatItWasMade) {
  PoolVolumeRecord record;
  EXPECT_FALSE(CsiVolumeOf(record, kPlaces).has_content_source());
  record.from_volume = "v-1";
  EXPECT_EQ(CsiVolumeOf(record, kPlaces).content_source().volume().volume_id(), "v-1");
  record.from_volume.clear();
  record.from_snapshot = "s-1";
  EXPECT_EQ(CsiVolumeOf(record, kPlaces).content_source().snapshot().snapshot_id(), "s-1");
}

TEST(CsiVolumeWishTest, ModesOfSeveralNodesNeedSeveral) {
  EXPECT_NE(WhyNotInMode(Modes::MULTI_NODE_READER_ONLY, kPlaces), "");
  EXPECT_EQ(WhyNotInMode(Modes::SINGLE_NODE_MULTI_WRITER, kPlaces), "");
  EXPECT_EQ(WhyNotInMode(Modes::MULTI_NODE_READER_ONLY, {kPlaces.key, {"n1", "n2"}}), "");
}

TEST(CsiVolumeWishTest, AVolumeOfSeveralNodesIsInThePlaceOfEach) {
  PoolVolumeRecord record;
  record.id = "v-3fa91c02-0123456789abcdef01234567";
  record.capacity_bytes = 4096;
  const ::csi::v1::Volume volume = CsiVolumeOf(record, {kPlaces.key, {"n1", "n2"}});
  EXPECT_EQ(volume.volume_id(), record.id);
  EXPECT_EQ(volume.capacity_bytes(), 4096);
  ASSERT_EQ(volume.accessible_topology_size(), 2);
  EXPECT_EQ(volume.accessible_topology(1).segments().at(kPlaces.key), "n2");
}

}  // namespace
}  // namespace volumed
