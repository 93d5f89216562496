#include "csi/csi_find.h"

#include <algorithm>

#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

// A root as a kubelet leaves it.
class CsiFindTest : public CsiPluginFixture {
 protected:
  static constexpr const char* kTop = "/kubelet/plugins/kubernetes.io/csi";

  static std::string Data(const StringMap& data) { return FormatVolData(data); }
  std::string Staged(const std::string& driver, const std::string& handle, const StringMap& data) {
    const SafePath directory = CsiStageDir(paths_, driver, handle);
    kernel_.AddDirectory(directory.Display() + "/globalmount");
    kernel_.AddFile(directory.Display() + "/vol_data.json", Data(data));
    return directory.Display() + "/globalmount";
  }
  static StringMap Of(const std::string& driver, const std::string& handle) {
    return {{"driverName", driver}, {"volumeHandle", handle}};
  }
  std::vector<UnrecordedDevice> Find() {
    std::vector<UnrecordedDevice> found = Must(FindCsiDevices(*context_, Call()));
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.volume_name < b.volume_name; });
    return found;
  }
};

TEST_F(CsiFindTest, AnEmptyRootHasNone) {
  EXPECT_TRUE(Find().empty());
  kernel_.AddDirectory(kTop);
  EXPECT_TRUE(Find().empty());
}

TEST_F(CsiFindTest, StagedVolumesAreFoundInBothLayouts) {
  const std::string mounted = Staged("a.example.com", "vol/1^x", Of("a.example.com", "vol/1^x"));
  kernel_.AddMount("ext4", "/dev/sda", mounted);
  const std::string begun = Staged("b.example.com", "vol-2", Of("b.example.com", "vol-2"));
  kernel_.AddDirectory(std::string(kTop) + "/pv/pv-3/globalmount");
  kernel_.AddFile(std::string(kTop) + "/pv/pv-3/vol_data.json", Data(Of("c.example.com", "vol-3")));
  kernel_.AddMount("ext4", "/dev/sdb", std::string(kTop) + "/pv/pv-3/globalmount");

  const auto found = Find();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].volume_name, "a.example.com^vol/1^x");
  EXPECT_EQ(found[0].place.Display(), mounted);
  EXPECT_TRUE(found[0].is_mounted);
  EXPECT_FALSE(found[0].is_block);
  EXPECT_EQ(Must(plugin_->GetVolumeName(found[0].spec)), found[0].volume_name);
  EXPECT_EQ(found[1].volume_name, "b.example.com^vol-2");
  EXPECT_EQ(found[1].place.Display(), begun);
  EXPECT_FALSE(found[1].is_mounted);
  EXPECT_EQ(found[2].volume_name, "c.example.com^vol-3");
  EXPECT_EQ(found[2].spec.name().str(), "pv-3");
  EXPECT_EQ(found[2].place, CsiOldStagingPath(paths_, SpecName("pv-3")));
  EXPECT_TRUE(found[2].is_mounted);
}

TEST_F(CsiFindTest, BlockVolumesAreFoundByTheirData) {
  const SpecName pv("pv-1");
  StringMap data = Of(kName, kHandle);
  data["specVolID"] = "pv-1";
  kernel_.AddFile(CsiBlockDataDir(paths_, pv).Display() + "/vol_data.json", Data(data));
  kernel_.AddDirectory(CsiBlockMapDir(paths_, pv).Display());
  kernel_.AddDirectory(CsiBlockStagingPath(paths_, pv).Display());
  kernel_.AddDirectory(CsiBlockPublishDir(paths_, pv).Display());
  auto found = Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_block);
  EXPECT_TRUE(IsBlockVolume(found[0].spec));
  EXPECT_FALSE(found[0].is_mounted);
  EXPECT_EQ(found[0].spec.name(), pv);
  EXPECT_EQ(found[0].place, CsiBlockMapDir(paths_, pv));
  EXPECT_EQ(found[0].volume_name, CsiVolumeName(kName, kHandle));
  kernel_.AddMount("devtmpfs", "udev", CsiBlockMapDir(paths_, pv).Below("uid-1").Display());
  found = Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_mounted);
}

TEST_F(CsiFindTest, AFileThatDoesNotFitItsPlaceIsLeftOut) {
  Staged("a.example.com", "vol-1", Of("a.example.com", "vol-2"));
  Staged("b.example.com", "vol-1", Of("a.example.com", "vol-1"));
  Staged("c.example.com", "vol-1", {{"driverName", "c.example.com"}});
  Staged("d.example.com", "vol-1", {});
  kernel_.AddFile(CsiStageDir(paths_, "d.example.com", "vol-1").Display() + "/vol_data.json", "{");
  // Of a driver that stages nothing, a kubelet leaves the directory alone.
  kernel_.AddDirectory(CsiStagingPath(paths_, "e.example.com", "vol-1").Display());
  kernel_.AddFile(std::string(kTop) + "/e.example.com/file", "");
  StringMap other = Of(kName, kHandle);
  other["specVolID"] = "pv-2";
  kernel_.AddFile(CsiBlockDataDir(paths_, SpecName("pv-1")).Display() + "/vol_data.json",
                  Data(other));
  Staged("f.example.com", "vol-1", Of("f.example.com", "vol-1"));
  const auto found = Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].volume_name, "f.example.com^vol-1");
}

TEST_F(CsiFindTest, ManyVolumesAreReadInAFewRequests) {
  constexpr int kMany = 600;
  for (int i = 0; i < kMany; ++i) {
    const std::string handle = "vol-" + std::to_string(i);
    Staged(kName, handle, Of(kName, handle));
  }
  EXPECT_EQ(Find().size(), size_t{kMany});
}

TEST_F(CsiFindTest, APodsVolumeIsConstructedFromItsFile) {
  const SpecName spec("pv-1");
  const SafePath directory = CsiPodVolumeDir(paths_, PodUid(kPodUid), spec);
  const auto construct = [&] { return ConstructCsiVolume(*context_, spec, directory, Call()); };
  EXPECT_EQ(construct().error().code(), Code::kNotFound);
  StringMap data = Of(kName, kHandle);
  data["specVolID"] = "pv-1";
  data["volumeLifecycleMode"] = "Persistent";
  kernel_.AddFile(directory.Display() + "/vol_data.json", Data(data));
  const VolumeSpec persistent = Must(construct());
  EXPECT_EQ(persistent.name(), spec);
  EXPECT_EQ(Must(plugin_->GetVolumeName(persistent)), CsiVolumeName(kName, kHandle));
  EXPECT_FALSE(IsBlockVolume(persistent));

  data["volumeLifecycleMode"] = "Ephemeral";
  kernel_.AddFile(directory.Display() + "/vol_data.json", Data(data));
  const VolumeSpec ephemeral = Must(construct());
  ASSERT_NE(ephemeral.volume(), nullptr);
  EXPECT_EQ(ephemeral.SourceAs<CsiVolumeSource>()->driver, kName);

  for (const StringMap& lost : {StringMap{}, StringMap{{"driverName", kName}}}) {
    kernel_.AddFile(directory.Display() + "/vol_data.json", Data(lost));
    EXPECT_EQ(construct().error().code(), Code::kDataLoss);
  }
  data["specVolID"] = "pv-2";
  kernel_.AddFile(directory.Display() + "/vol_data.json", Data(data));
  EXPECT_EQ(construct().error().code(), Code::kDataLoss);
}

TEST_F(CsiFindTest, ANameWithASlashIsFoundByItsDirectory) {
  const SafePath directory = CsiPodVolumeDir(paths_, PodUid(kPodUid), SpecName("d-a/b"));
  StringMap data = Of(kName, kHandle);
  data["specVolID"] = "d-a/b";
  kernel_.AddFile(directory.Display() + "/vol_data.json", Data(data));
  const VolumeSpec spec = Must(ConstructCsiVolume(*context_, SpecName("d-a~b"), directory, Call()));
  EXPECT_EQ(spec.name().str(), "d-a/b");
}

TEST_F(CsiFindTest, ABlockVolumeIsConstructedFromItsData) {
  const SpecName spec("pv-1");
  EXPECT_EQ(ConstructCsiBlockVolume(*context_, spec, Call()).error().code(), Code::kNotFound);
  StringMap data = Of(kName, kHandle);
  data["specVolID"] = "pv-1";
  kernel_.AddFile(CsiBlockDataDir(paths_, spec).Display() + "/vol_data.json", Data(data));
  const VolumeSpec found = Must(ConstructCsiBlockVolume(*context_, spec, Call()));
  EXPECT_TRUE(IsBlockVolume(found));
  EXPECT_EQ(Must(plugin_->GetVolumeName(found)), CsiVolumeName(kName, kHandle));
}

// The files that the plugin itself writes are a kubelet's, and are found likewise.
TEST_F(CsiFindTest, WhatThePluginStagedIsFound) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  const auto found = Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].volume_name, CsiVolumeName(kName, kHandle));
  EXPECT_TRUE(found[0].is_mounted);
  const SafePath directory = CsiPodVolumeDir(paths_, PodUid(kPodUid), CsiSpec().name());
  EXPECT_EQ(Must(ConstructCsiVolume(*context_, CsiSpec().name(), directory, Call())).name(),
            CsiSpec().name());
}

}  // namespace
}  // namespace volumed
