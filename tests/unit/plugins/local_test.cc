// local: which of its mounts are read-only, for whom, and what is refused.
#include "plugins/local.h"
#include "fakes/target_of.h"
#include "mounter/host_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "fakes/memory_format_intents.h"
#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"
#include "pluginmgr/wrapper_volumes.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDisk[] = "/dev/vdb";
constexpr char kDevicePlace[] = "/r/plugins/kubernetes.io/local-volume/mounts/disk";

FakeDevice WithFilesystem() {
  FakeDevice device;
  device.fs_type = "ext4";
  device.usage = "filesystem";
  device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  return device;
}

class LocalTest : public ::testing::Test {
 protected:
  LocalTest() : world_(kernel_, "/r"), plugin_({.format_intents = &intents_}) {
    EXPECT_TRUE(plugin_.Init(PluginContext{world_.host, wrappers_}).ok());
    kernel_.AddDirectory("/r/plugins", 0750);
    volume_.metadata.name = "disk";
    volume_.spec.source = LocalVolumeSource{.path = kDisk, .fs_type = ""};
  }

  VolumeSpec Spec(bool read_only) const {
    return VolumeSpec::FromPersistentVolume(volume_, read_only);
  }
  // `all_read`: no pod writes. `some_read`: some do not.
  Status MountDevice(bool all_read, bool some_read) {
    const auto mounter = plugin_.NewDeviceMounter().value();
    DeviceMounterArgs args;
    args.some_pods_only_read = some_read;
    args.event = [this](EventType, const std::string& reason, const std::string&) {
      events_.push_back(reason);
    };
    return mounter->MountDevice(Spec(all_read), "",
                                mounter->GetDeviceMountPath(Spec(all_read)).value(), args);
  }
  Status SetUp1(const std::string& pod, bool read_only, std::optional<int64_t> fs_group = {}) {
    kernel_.AddDirectory("/r/pods/" + pod + "/volumes", 0750);
    MounterArgs args;
    args.fs_group = fs_group;
    return MounterFor(pod, read_only)->SetUp(args);
  }
  std::unique_ptr<Mounter> MounterFor(const std::string& pod, bool read_only) {
    const VolumeSpec spec = Spec(read_only);
    return plugin_.NewMounter(spec, TargetOf(world_.paths, plugin_, spec, MakePod(pod))).value();
  }
  static std::string PlaceOf(const std::string& pod) {
    return "/r/pods/" + pod + "/volumes/kubernetes.io~local-volume/disk";
  }
  // "ro" or "rw", of the mount; "" without one.
  std::string FlagsAt(const std::string& path) {
    const auto mount = FindMountAt(kernel_, path, {});
    if (!mount.ok() || !*mount) return "";
    return (*mount)->read_only() ? "ro" : "rw";
  }

  FakeKernel kernel_;
  PluginWorld world_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  MemoryFormatIntents intents_;
  LocalVolumePlugin plugin_;
  PersistentVolume volume_;
  std::vector<std::string> events_;
};

TEST_F(LocalTest, APodThatWritesJoinsPodsThatOnlyRead) {
  kernel_.AddDevice(kDisk, WithFilesystem());
  ASSERT_TRUE(MountDevice(true, true).ok());
  EXPECT_EQ(FlagsAt(kDevicePlace), "rw");
  ASSERT_TRUE(SetUp1("reader", true).ok());
  ASSERT_TRUE(SetUp1("writer", false).ok());
  EXPECT_EQ(FlagsAt(PlaceOf("reader")), "ro");
  EXPECT_EQ(FlagsAt(PlaceOf("writer")), "rw");
  EXPECT_TRUE(MounterFor("reader", true)->GetAttributes().read_only);
  EXPECT_FALSE(MounterFor("writer", false)->GetAttributes().read_only);
}

TEST_F(LocalTest, AReadersBindIsReadOnlyFromBirth) {
  kernel_.AddDevice(kDisk, WithFilesystem());
  ASSERT_TRUE(MountDevice(true, true).ok());
  std::vector<bool> binds;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* bind = std::get_if<BindMount>(&request);
    if (bind != nullptr) binds.push_back(bind->read_only);
    EXPECT_FALSE(std::holds_alternative<Remount>(request));
  });
  ASSERT_TRUE(SetUp1("reader", true).ok());
  EXPECT_THAT(binds, ElementsAre(true));
}

TEST_F(LocalTest, ForPodsThatOnlyReadNothingIsFormatted) {
  kernel_.AddDevice(kDisk);
  const Status refused = MountDevice(true, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("cannot mount unformatted disk /dev/vdb as we "
                                                   "are manipulating it in read-only mode (no pod "
                                                   "is to write to it)"));
  EXPECT_EQ(kernel_.Device(kDisk).formats, 0);
  EXPECT_TRUE(MountDevice(false, true).ok());
  EXPECT_EQ(kernel_.Device(kDisk).formats, 1);
}

TEST_F(LocalTest, AWriteProtectedDiskIsForReadersAndAWriterHearsWhy) {
  FakeDevice device = WithFilesystem();
  device.read_only = true;
  kernel_.AddDevice(kDisk, device);
  ASSERT_TRUE(MountDevice(false, true).ok());
  EXPECT_THAT(events_, ElementsAre("DeviceReadOnly"));
  EXPECT_EQ(FlagsAt(kDevicePlace), "ro");
  EXPECT_TRUE(SetUp1("reader", true).ok());
  const Status refused = SetUp1("writer", false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(refused.error().message(), HasSubstr("because it is write-protected"));
  EXPECT_FALSE(kernel_.Exists(PlaceOf("writer")));
}

TEST_F(LocalTest, AWriteProtectedDiskThatNobodyOnlyReadsIsNotMounted) {
  FakeDevice device = WithFilesystem();
  device.read_only = true;
  kernel_.AddDevice(kDisk, device);
  const Status refused = MountDevice(false, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("can only be mounted read-only"));
  EXPECT_EQ(FlagsAt(kDevicePlace), "");
}

TEST_F(LocalTest, AVolumeThatIsReadOnlyItselfIsSoForEveryPod) {
  volume_.spec.mount_options = {"noatime", "ro"};
  kernel_.AddDevice(kDisk, WithFilesystem());
  ASSERT_TRUE(MountDevice(false, false).ok());
  EXPECT_EQ(FlagsAt(kDevicePlace), "ro");
  EXPECT_THAT(events_, IsEmpty());
  ASSERT_TRUE(SetUp1("writer", false, 3000).ok());
  EXPECT_EQ(FlagsAt(PlaceOf("writer")), "ro");
  EXPECT_TRUE(MounterFor("writer", false)->GetAttributes().read_only);
}

TEST_F(LocalTest, ADeviceThatBecameReadOnlyIsNotGivenToANewWriter) {
  kernel_.AddDevice(kDisk, WithFilesystem());
  ASSERT_TRUE(MountDevice(false, false).ok());
  ASSERT_TRUE(SetUp1("writer", false).ok());
  ASSERT_TRUE(kernel_.Call(Remount{{kDevicePlace, ""}, {"ro"}}, {}).ok());
  EXPECT_TRUE(SetUp1("writer", false).ok()) << "what it has, it keeps";
  const Status refused = SetUp1("next", false);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("as after an error of its filesystem"));
}

TEST_F(LocalTest, ReferencesAreTheOtherPlacesOfTheSamePart) {
  kernel_.AddDevice(kDisk, WithFilesystem());
  const SafePath place{kDevicePlace, ""};
  EXPECT_THAT(plugin_.GetDeviceMountRefs(place, {}).value(), IsEmpty()) << "nothing is there";
  ASSERT_TRUE(MountDevice(false, false).ok());
  EXPECT_THAT(plugin_.GetDeviceMountRefs(place, {}).value(), IsEmpty());
  ASSERT_TRUE(SetUp1("one", false).ok());
  kernel_.AddDirectory("/mnt");
  kernel_.AddDirectory(std::string(kDevicePlace) + "/sub");
  ASSERT_TRUE(kernel_.Call(BindMount{{kDevicePlace, "sub"}, {"/mnt", ""}}, {}).ok());
  EXPECT_THAT(plugin_.GetDeviceMountRefs(place, {}).value(), ElementsAre(PlaceOf("one")));
}

TEST_F(LocalTest, NoOperationAsksForTheWholeMountTable) {
  kernel_.AddDevice(kDisk, WithFilesystem());
  kernel_.SetCallHook([](const AnyRequest& request) {
    const auto* list = std::get_if<ListMounts>(&request);
    if (list == nullptr) return;
    EXPECT_TRUE(!list->below.empty() || !list->around.empty() || list->showing);
  });
  ASSERT_TRUE(MountDevice(false, false).ok());
  ASSERT_TRUE(SetUp1("one", false, 3000).ok());
  ASSERT_TRUE(SetUp1("two", false, 4000).ok());
  const SafePath place{kDevicePlace, ""};
  EXPECT_TRUE(plugin_.GetDeviceMountRefs(place, {}).ok());
}

// By a local user who owns the directory above it, or by a disk that is unmounted.
TEST_F(LocalTest, WhatTookThePlaceOfTheApprovedDirectoryIsNotBound) {
  volume_.spec.source = LocalVolumeSource{.path = "/u/vol", .fs_type = ""};
  kernel_.AddFile("/u/vol/data", "x");
  kernel_.AddFile("/secret/key", "x");
  kernel_.AddSymlink("/u/link", "/secret");
  kernel_.AddDirectory("/r/pods/p/volumes", 0750);
  MounterArgs args;
  args.call.approved = std::make_shared<const StorageIdentity>(
      kernel_.Call(IdentifyStorage{HostPath("/u/vol")}, {}).value());
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (!std::holds_alternative<BindMount>(request)) return;
    kernel_.Rename("/u/vol", "away");
    kernel_.Rename("/u/link", "vol");
  });
  const Status refused = MounterFor("p", false)->SetUp(args);
  kernel_.SetCallHook(nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_EQ(FlagsAt(PlaceOf("p")), "");
  EXPECT_FALSE(kernel_.Exists(PlaceOf("p")));
  kernel_.Rename("/u/vol", "link");
  kernel_.Rename("/u/away", "vol");
  EXPECT_TRUE(MounterFor("p", false)->SetUp(args).ok());
  EXPECT_TRUE(kernel_.Exists(PlaceOf("p") + "/data"));
}

TEST_F(LocalTest, ADirectoryThatWasNotThereWhenItWasLookedAtIsNotBound) {
  volume_.spec.source = LocalVolumeSource{.path = "/u/vol", .fs_type = ""};
  kernel_.AddDirectory("/u");
  kernel_.AddDirectory("/r/pods/p/volumes", 0750);
  MounterArgs args;
  args.call.approved = std::make_shared<const StorageIdentity>(
      kernel_.Call(IdentifyStorage{HostPath("/u/vol")}, {}).value());
  kernel_.AddDirectory("/u/vol");
  const Status refused = MounterFor("p", false)->SetUp(args);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kNotFound);
  EXPECT_EQ(FlagsAt(PlaceOf("p")), "");
}

}  // namespace
}  // namespace volumed
