// Listed exports that pods of this node have: by PersistentVolumes with the ids that the list's
// volumes have got, in the lane of their server, and with the owners that it has on record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "pool/pool_operations.h"
#include "unit/pool/pool_operations_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kListedExport[] = "nas-1:/srv/media";

class PoolExportsTest : public PoolOperationsFixture {
 protected:
  PoolExportsTest() {
    node_.AddFile("/sbin/mount.nfs", "", 0755);
    node_.AddExport(kListedExport);
    volumes_->ListStatic({"media"});
  }
  PersistentVolume Listed(const std::string& options = "") {
    const StaticVolume wish{"media", "fast", "", /*is_block=*/false,
                            Must(ParseStaticExport(kListedExport + options))};
    return PoolPvOf(Must(volumes_->TakeStatic(wish, {})), kDriver, "node");
  }
  VolumePlugin& PluginOf(const PersistentVolume& volume) {
    return *Must(plugins_of_agent_->FindPluginBySpec(SpecOf(volume)));
  }
};

TEST_F(PoolExportsTest, APodHasAnExportThatIsMountedForTheNodeAndTakenAwayAgain) {
  const PersistentVolume volume = Listed();
  ASSERT_EQ(Stage(volume), "");
  ASSERT_EQ(Publish(volume), "");
  const std::string place = devices_->Find(NameOf(volume))->device_mount_path;
  EXPECT_TRUE(node_.IsMountPoint(place));
  EXPECT_EQ(Unpublish(volume), "");
  EXPECT_EQ(Unstage(volume), "");
  EXPECT_FALSE(node_.Exists(place));
}

TEST_F(PoolExportsTest, ItHangsWithItsServerAndWithNoDisk) {
  const PersistentVolume volume = Listed();
  EXPECT_EQ(PluginOf(volume).FaultDomain(SpecOf(volume)), "nfs:nas-1");
  EXPECT_EQ(PluginOf(volume).FaultDomainName(SpecOf(volume)), "NFS server nas-1");
  EXPECT_THAT(PluginOf(volume).DevicePaths(SpecOf(volume)), IsEmpty());
  const PersistentVolume of_pool = Claim();
  EXPECT_EQ(PluginOf(of_pool).FaultDomain(SpecOf(of_pool)), kPoolPath);
  EXPECT_EQ(PluginOf(of_pool).FaultDomainName(SpecOf(of_pool)), "");
}

// A pod's group would get all the files of everybody who has the export.
TEST_F(PoolExportsTest, ItsFilesKeepTheirOwners) {
  const PersistentVolume volume = Listed();
  const VolumeSpec spec = SpecOf(volume);
  const VolumeTarget target =
      PodVolumeTarget(paths_, PodNamed("a"), kPoolPluginName, SpecName(volume.metadata.name));
  const Attributes attributes = Must(PluginOf(volume).NewMounter(spec, target))->GetAttributes();
  EXPECT_FALSE(attributes.managed);
  EXPECT_FALSE(attributes.selinux_relabel);
  EXPECT_FALSE(attributes.read_only);
  ASSERT_EQ(Stage(volume), "");
  const std::string place = devices_->Find(NameOf(volume))->device_mount_path;
  node_.AddFile(place + "/note", "x");
  MountRequest request{.target = target, .spec = spec, .sub_paths = {}, .nested_mount_points = {}};
  request.target.owner.fs_group = 1000;
  request.unique_name = NameOf(volume);
  request.has_device = true;
  ASSERT_EQ(Start(MountVolume(std::move(request))), "");
  EXPECT_EQ(node_.Find(place + "/note").gid, 0u);
}

TEST_F(PoolExportsTest, OneThatIsListedWithRoIsReadOnlyForEveryPod) {
  const PersistentVolume volume = Listed(" ro");
  ASSERT_EQ(Stage(volume), "");
  ASSERT_EQ(Publish(volume), "") << "as a PersistentVolume of nfs with readOnly";
  const VolumeTarget target =
      PodVolumeTarget(paths_, PodNamed("a"), kPoolPluginName, SpecName(volume.metadata.name));
  const auto mounter = Must(PluginOf(volume).NewMounter(SpecOf(volume), target));
  EXPECT_TRUE(mounter->GetAttributes().read_only);
}

TEST_F(PoolExportsTest, ItIsNeitherMadeLargerNorDeletedByItsObject) {
  const PersistentVolume volume = Listed();
  const Result<int64_t> grown =
      volumes_->Expand(Must(PoolVolumeIdOf(SpecOf(volume), kDriver)), 1 << 30, {});
  ASSERT_FALSE(grown.ok());
  EXPECT_EQ(grown.error().code(), Code::kOutOfRange);
  EXPECT_THAT(Delete(volume), HasSubstr("listed in the configuration"));
}

}  // namespace
}  // namespace volumed
