#include "volume/volume_spec.h"

#include <gtest/gtest.h>

#include <variant>

namespace volumed {
namespace {

TEST(VolumeSpecTest, TakesItsNameFromTheInlineVolume) {
  const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"scratch", EmptyDirVolumeSource()});
  EXPECT_EQ(spec.name(), SpecName("scratch"));
  ASSERT_NE(spec.volume(), nullptr);
  EXPECT_TRUE(std::holds_alternative<EmptyDirVolumeSource>(spec.volume()->source));
}

TEST(VolumeSpecTest, AnInlineVolumeIsNeverReadOnlyByItsSpec) {
  NfsVolumeSource nfs;
  nfs.read_only = true;
  EXPECT_FALSE(VolumeSpec::FromVolume(PodVolume{"share", nfs}).read_only());
}

TEST(VolumeSpecTest, CopiesShareOneImmutableVolume) {
  const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"scratch", EmptyDirVolumeSource()});
  const VolumeSpec copy = spec;  // NOLINT: the copy is what is tested
  EXPECT_EQ(copy.volume(), spec.volume());
}

}  // namespace
}  // namespace volumed
