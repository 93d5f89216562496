#include "blockmapper/volume_path_handler.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

constexpr char kRoot[] = "/var/lib/volumed";
const SafePath kMapPath{kRoot, "plugins/kubernetes.io~local-volume/volumeDevices/disk"};
const SafePath kPodPath{kRoot, "pods/u-1/volumeDevices/kubernetes.io~local-volume"};

class VolumePathHandlerTest : public ::testing::Test {
 protected:
  VolumePathHandlerTest() {
    kernel_.AddDirectory(kRoot);
    kernel_.AddDevice("/dev/vdb");
    kernel_.AddDevice("/dev/vdc");
  }

  IdentifiedDevice Identify(const std::string& path) {
    return kernel_.Call(IdentifyDevice{{path, "", Resolve::kBeneath}, true}, {}).value();
  }
  Status Bind(const std::string& device, const std::string& pod) {
    return handler_.MapDeviceByBind(Identify(device), kMapPath, pod, {});
  }
  std::string Node(const std::string& pod) const { return kMapPath.Below(pod).Display(); }

  FakeKernel kernel_;
  VolumePathHandler handler_{kernel_};
};

TEST_F(VolumePathHandlerTest, ADeviceIsBoundOncePerPodAndTakenAwayAgain) {
  ASSERT_TRUE(Bind("/dev/vdb", "u-1").ok());
  ASSERT_TRUE(Bind("/dev/vdb", "u-2").ok());
  EXPECT_TRUE(Bind("/dev/vdb", "u-1").ok());
  EXPECT_EQ(kernel_.Mounts().size(), 3u);  // with the root's
  EXPECT_EQ(Identify(Node("u-1")).facts.identity, Identify("/dev/vdb").facts.identity);
  EXPECT_EQ(handler_.GetDeviceBindMountRefs(kMapPath, {}).value(),
            (std::vector<std::string>{"u-1", "u-2"}));

  ASSERT_TRUE(handler_.UnmapBoundDevice(kMapPath, "u-1", {}).ok());
  ASSERT_TRUE(handler_.UnmapBoundDevice(kMapPath, "u-1", {}).ok());
  EXPECT_FALSE(kernel_.Exists(Node("u-1")));
  EXPECT_EQ(handler_.GetDeviceBindMountRefs(kMapPath, {}).value(), std::vector<std::string>{"u-2"});
  EXPECT_FALSE(handler_.RemoveMapPath(kMapPath, {}).ok());
  EXPECT_TRUE(kernel_.IsMountPoint(Node("u-2")));
  ASSERT_TRUE(handler_.UnmapBoundDevice(kMapPath, "u-2", {}).ok());
  ASSERT_TRUE(handler_.RemoveMapPath(kMapPath, {}).ok());
  EXPECT_FALSE(kernel_.Exists(kMapPath.Display()));
}

TEST_F(VolumePathHandlerTest, AnotherDevicesNodeIsNotTakenForTheOneThatIsWanted) {
  ASSERT_TRUE(Bind("/dev/vdb", "u-1").ok());
  const Status other = Bind("/dev/vdc", "u-1");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(other.error().message().find("is another device"), std::string::npos);
  EXPECT_EQ(Identify(Node("u-1")).facts.identity, Identify("/dev/vdb").facts.identity);
}

TEST_F(VolumePathHandlerTest, ADeviceThatWasReplacedSinceItWasIdentifiedIsNotBound) {
  const IdentifiedDevice before = Identify("/dev/vdb");
  kernel_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { ++device.identity.disk_sequence; });
  const Status bound = handler_.MapDeviceByBind(before, kMapPath, "u-1", {});
  ASSERT_FALSE(bound.ok());
  EXPECT_FALSE(bound.error().maybe_applied());
  EXPECT_FALSE(kernel_.Exists(Node("u-1")));  // not even the file
}

TEST_F(VolumePathHandlerTest, ABindThatMayHaveHappenedKeepsItsFile) {
  kernel_.FailNext("BindMount", Error::MaybeApplied(Code::kDeadlineExceeded, "killed"));
  const Status bound = Bind("/dev/vdb", "u-1");
  ASSERT_FALSE(bound.ok());
  EXPECT_TRUE(bound.error().maybe_applied());
  EXPECT_TRUE(kernel_.Exists(Node("u-1"))) << "it may be bound yet";
}

TEST_F(VolumePathHandlerTest, AFileThatWasThereBeforeABindThatFailedStays) {
  kernel_.AddFile(Node("u-1"), "");
  kernel_.FailNext("BindMount", EPERM, Outcome::kNotApplied);
  const Status bound = Bind("/dev/vdb", "u-1");
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().sys_errno(), EPERM);
  EXPECT_TRUE(kernel_.Exists(Node("u-1")));
}

TEST_F(VolumePathHandlerTest, AFileThatAnEndedRunLeftIsUsedAndAForeignDirectoryIsNot) {
  kernel_.AddFile(Node("u-1"), "");
  ASSERT_TRUE(Bind("/dev/vdb", "u-1").ok());
  EXPECT_TRUE(kernel_.IsMountPoint(Node("u-1")));
  kernel_.AddDirectory(Node("u-2"));
  const Status refused = Bind("/dev/vdb", "u-2");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
}

TEST_F(VolumePathHandlerTest, APodsLinkFollowsItsDeviceAndOnlyALinkIsRemoved) {
  const SafePath link = kPodPath.Below("disk");
  ASSERT_TRUE(handler_.MapDeviceByLink("/dev/vdb", kPodPath, "disk", {}).ok());
  ASSERT_TRUE(handler_.MapDeviceByLink("/dev/vdc", kPodPath, "disk", {}).ok());
  EXPECT_EQ(kernel_.Find(link.Display()).content, "/dev/vdc");
  EXPECT_TRUE(handler_.IsSymlinkExist(link, {}).value());
  ASSERT_TRUE(handler_.UnmapLinkedDevice(kPodPath, "disk", {}).ok());
  EXPECT_FALSE(handler_.IsSymlinkExist(link, {}).value());
  kernel_.AddFile(link.Display(), "somebody's");
  ASSERT_TRUE(handler_.UnmapLinkedDevice(kPodPath, "disk", {}).ok());
  EXPECT_EQ(kernel_.Find(link.Display()).content, "somebody's");
}

TEST_F(VolumePathHandlerTest, TheNodeOfAPodIsFoundByTheDeviceOfItsLink) {
  ASSERT_TRUE(Bind("/dev/vdb", "u-1").ok());
  const SafePath other = SafePath{kRoot, "plugins/kubernetes.io~local-volume/volumeDevices/more"};
  ASSERT_TRUE(handler_.MapDeviceByBind(Identify("/dev/vdc"), other, "u-1", {}).ok());
  ASSERT_TRUE(handler_.MapDeviceByLink("/dev/vdc", kPodPath, "more", {}).ok());
  const SafePath plugin{kRoot, "plugins/kubernetes.io~local-volume/volumeDevices"};
  const SafePath link = kPodPath.Below("more");
  EXPECT_EQ(handler_.FindGlobalMapPathUUIDFromPod(plugin, link, PodUid("u-1"), {}).value(),
            other.Below("u-1"));
  const auto none = handler_.FindGlobalMapPathUUIDFromPod(plugin, link, PodUid("u-2"), {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kNotFound);
}

TEST_F(VolumePathHandlerTest, ANodeIsLookedForNoDeeperThanAnyPluginPutsOne) {
  const SafePath plugin{kRoot, "plugins/deep"};
  SafePath deepest = plugin;
  for (int depth = 0; depth < 8; ++depth) deepest = deepest.Below("d");
  const SafePath link = kPodPath.Below("disk");
  ASSERT_TRUE(handler_.MapDeviceByLink("/dev/vdb", kPodPath, "disk", {}).ok());
  const auto find = [&] {
    return handler_.FindGlobalMapPathUUIDFromPod(plugin, link, PodUid("u-1"), {});
  };
  ASSERT_TRUE(handler_.MapDeviceByBind(Identify("/dev/vdb"), deepest.Below("d"), "u-1", {}).ok());
  const auto too_deep = find();
  ASSERT_FALSE(too_deep.ok());
  EXPECT_EQ(too_deep.error().code(), Code::kNotFound);
  ASSERT_TRUE(handler_.MapDeviceByBind(Identify("/dev/vdb"), deepest, "u-1", {}).ok());
  const auto found = find();
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(*found, deepest.Below("u-1"));
}

// What lay under the node was removed with it, whoever had written it.
TEST_F(VolumePathHandlerTest, AFileWithContentUnderANodeWasDeleted) {
  ASSERT_TRUE(Bind("/dev/vdb", "u-1").ok());
  kernel_.UnmountBelow(Node("u-1"));
  kernel_.AddFile(Node("u-1"), "somebody's");
  const Status refused = handler_.UnmapBoundDevice(kMapPath, "u-1", {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_EQ(kernel_.Find(Node("u-1")).content, "somebody's");
  kernel_.AddFile(Node("u-1"), "");
  EXPECT_TRUE(handler_.UnmapBoundDevice(kMapPath, "u-1", {}).ok());
  EXPECT_FALSE(kernel_.Exists(Node("u-1")));
}

TEST_F(VolumePathHandlerTest, AKubeletsLoopDeviceKeepsTheNodeUntilItIsDetached) {
  ASSERT_TRUE(Bind("/dev/vdb", "u-1").ok());
  kernel_.AddLoop(Node("u-1"));
  EXPECT_EQ(handler_.UnmapBoundDevice(kMapPath, "u-1", {}).error().sys_errno(), EBUSY);
  EXPECT_TRUE(handler_.DetachFileDevice(kMapPath, "u-1", {}).value());
  EXPECT_FALSE(handler_.DetachFileDevice(kMapPath, "u-1", {}).value());
  EXPECT_TRUE(handler_.UnmapBoundDevice(kMapPath, "u-1", {}).ok());
}

}  // namespace
}  // namespace volumed
