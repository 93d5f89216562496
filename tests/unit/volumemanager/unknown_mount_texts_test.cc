// What people are told of mounts on no record: each of them, and where to unmount it.
#include "volumemanager/unknown_mount_texts.h"

#include <gmock/gmock.h>

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class UnknownMountTextsTest : public ManagerTest {
 protected:
  std::vector<std::string> Lines(const std::string& message) const {
    std::vector<std::string> lines;
    for (const std::string& line : logged) {
      if (line.find(message) != std::string::npos) lines.push_back(line);
    }
    return lines;
  }
};

TEST_F(UnknownMountTextsTest, TheLogNamedOneOfSeveralMountsAndNoPath) {
  const std::string pods = std::string(kRoot) + "/pods/";
  const std::string x = pods + "x/volumes/kubernetes.io~csi/pvc-1/mount";
  const std::string y = pods + "y/volumes/kubernetes.io~nfs/share";
  kernel.mount_points = {x, y};
  StartAgent();
  Settle();
  EXPECT_THAT(UnrecordedMountsListed(),
              ElementsAre("volume pvc-1 of pod x: " + x, "volume share of pod y: " + y));
  EXPECT_THAT(Lines("a mount below the root has no record"),
              ElementsAre(HasSubstr(x), HasSubstr(y)));
}

TEST_F(UnknownMountTextsTest, ThousandsOfMountsAreCountedAndNotAllLogged) {
  std::vector<std::string> mounts;
  for (int i = 0; i < 100; ++i) {
    mounts.push_back(std::string(kRoot) + "/pods/" + std::to_string(i) +
                     "/volumes/kubernetes.io~nfs/share");
  }
  kernel.mount_points = mounts;
  StartAgent();
  Settle();
  EXPECT_EQ(UnrecordedMountsListed().size(), 100u);
  EXPECT_EQ(Lines("a mount below the root has no record").size(), 64u);
  EXPECT_THAT(Lines("more mounts below the root have no record"), ElementsAre(HasSubstr("100")));
}

TEST(UnknownMountTexts, HasThePathsOfADeviceAndOfAVolumeOfWhichParts) {
  const KubeletPaths paths("/r");
  FoundAtStart found;
  const std::string part = "/r/pods/p/volume-subpaths/v/main/0";
  for (const char* path : {"/r/plugins/kubernetes.io/csi/d/hash/globalmount", "/r/plugins/other"}) {
    found.mounts_at[path] = "ext4";
  }
  found.mounts_at[part] = "ext4";
  found.mounts_at["/r/pods/p/volume-subpaths/vv/main/0"] = "ext4";
  const KubeletPaths::DeviceMount device{"kubernetes.io/csi", SpecName("d^h"), false,
                                         "/r/plugins/kubernetes.io/csi/d/hash/globalmount"};
  KubeletPaths::DeviceMount raw{"kubernetes.io/csi", SpecName("d^raw"), true, "/r/map"};
  EXPECT_THAT(TextsOfUnknownMounts(found, paths, {{PodUid("p"), "", SpecName("v")}}, {device, raw}),
              ElementsAre("volume v of pod p: " + part,
                          "device of volume d^h of kubernetes.io/csi: "
                          "/r/plugins/kubernetes.io/csi/d/hash/globalmount",
                          "device of volume d^raw of kubernetes.io/csi: /r/map"));
}

TEST(UnknownMountTexts, ADeviceThatPodsHaveRawStoodThereAsNobodys) {
  const KubeletPaths paths("/r");
  FoundAtStart found;
  found.mounts_at["/r/map/a"] = "devtmpfs";
  const KubeletPaths::DeviceMount raw{"kubernetes.io/csi", SpecName("d^raw"), true, "/r/map"};
  found.device_pods["/r/map"] = {PodUid("a")};
  EXPECT_THAT(TextsOfUnknownMounts(found, paths, {}, {raw}),
              ElementsAre("device of volume d^raw of kubernetes.io/csi, which pod a has: "
                          "/r/map/a"));
  found.device_pods["/r/map"].insert(PodUid("b"));
  EXPECT_THAT(TextsOfUnknownMounts(found, paths, {}, {raw}),
              ElementsAre(HasSubstr("kubernetes.io/csi, which pods a, b have: ")));
}

}  // namespace
}  // namespace volumed
