#include "csi/csi_places.h"

#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"
#include "fakes/must.h"

namespace volumed {
namespace {

TEST(CsiPlacesTest, AVolumeIsWhereItIsStagedAndPublished) {
  const KubeletPaths paths("/r");
  const CsiVolumeId volume{"disk.example.com", "vol-1"};
  const PodUid pod("uid-1");
  const SpecName spec("pv-1");
  const std::vector<PodVolumeKey> pods = {{PodUid("uid-0"), SpecName("pv-1")}, {pod, spec}};
  for (const SafePath& place :
       {CsiStagingPath(paths, volume.driver, volume.handle), CsiOldStagingPath(paths, spec),
        CsiTargetPath(paths, pod, spec), CsiBlockStagingPath(paths, spec),
        CsiBlockPublishPath(paths, spec, pod)}) {
    EXPECT_TRUE(IsCsiPlace(paths, volume, pods, place.Display())) << place.Display();
  }
  EXPECT_TRUE(
      IsCsiPlace(paths, volume, {}, CsiStagingPath(paths, volume.driver, volume.handle).Display()));
  EXPECT_FALSE(IsCsiPlace(paths, volume, {}, CsiTargetPath(paths, pod, spec).Display()));
  const std::string target = CsiTargetPath(paths, pod, spec).Display();
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("/r"), target + "/", target + "/x",
        target + "/../../../../uid-2", CsiStagingPath(paths, volume.driver, "vol-2").Display(),
        CsiTargetPath(paths, PodUid("uid-2"), spec).Display(),
        CsiTargetPath(paths, pod, SpecName("pv-2")).Display()}) {
    EXPECT_FALSE(IsCsiPlace(paths, volume, pods, path)) << path;
  }
}

TEST(CsiPlacesTest, ARealPathHasItsLinksResolvedAsTheKernelDoes) {
  FakeKernel kernel;
  kernel.AddDirectory("/a/b/c");
  kernel.AddSymlink("/abs", "/a/b");
  kernel.AddSymlink("/a/rel", "b/../b/c");
  kernel.AddSymlink("/twice", "/abs/c");
  const struct {
    const char* path;
    const char* real;
  } cases[] = {
      {"/", "/"},
      {"//a//b/", "/a/b"},
      {"/a/./b/../b", "/a/b"},
      {"/..", "/"},
      {"/abs", "/a/b"},
      {"/abs/..", "/a"},
      {"/abs/c/none/../x", "/a/b/c/x"},
      {"/a/rel", "/a/b/c"},
      {"/twice/x", "/a/b/c/x"},
  };
  for (const auto& c : cases) EXPECT_EQ(Must(FindRealPath(kernel, c.path, {})), c.real) << c.path;
}

}  // namespace
}  // namespace volumed
