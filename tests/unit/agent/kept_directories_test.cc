#include "agent/kept_directories.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"

namespace volumed {
namespace {

class KeptDirectoriesTest : public testing::Test {
 protected:
  KeptDirectoriesTest() {
    PersistentVolume disk;
    disk.metadata.name = "disk";
    disk.spec.source = LocalVolumeSource{"/mnt/disk", "ext4"};
    ObjectList list;
    list.source = "manifests";
    list.complete = true;
    list.objects.push_back({std::make_shared<const Object>(disk), "/m/disk.yaml", 0});
    catalog_.ExpectSource("manifests");
    catalog_.Update(std::move(list));
    good_.spec = SpecName("data");
    good_.persistent_volume = "disk";
    good_.state = "SetUp";
    good_.host_path = "/r/pods/u/volumes/p/disk";
  }
  std::vector<KeptDirectory> KeptBy(const VolumeView& volume) const {
    PodView pod;
    pod.volumes.push_back(volume);
    return KeptDirectoriesOf(catalog_, pod);
  }

  ManualClock clock_;
  ObjectCatalog catalog_{clock_};
  VolumeView good_;
};

TEST_F(KeptDirectoriesTest, ALocalVolumeThatIsSetUpHasItsPathAndItsPlace) {
  const std::vector<KeptDirectory> kept = KeptBy(good_);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].volume, "data");
  EXPECT_EQ(kept[0].path, "/mnt/disk");
  EXPECT_EQ(kept[0].place, "/r/pods/u/volumes/p/disk");
}

TEST_F(KeptDirectoriesTest, WhatThePodDoesNotHaveIsNotLookedAt) {
  VolumeView volume = good_;
  volume.state = "NotSetUp";
  EXPECT_TRUE(KeptBy(volume).empty());
  volume = good_;
  volume.problem.emplace();
  EXPECT_TRUE(KeptBy(volume).empty());
  volume = good_;
  volume.is_block = true;
  EXPECT_TRUE(KeptBy(volume).empty());
  volume = good_;
  volume.persistent_volume = "";
  EXPECT_TRUE(KeptBy(volume).empty());
  volume = good_;
  volume.host_path = "";
  EXPECT_TRUE(KeptBy(volume).empty());
}

}  // namespace
}  // namespace volumed
