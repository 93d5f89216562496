// What the node shows of a volume: what counts as proof of a publish or a stage, and what does not.
#include "csi/csi_proof.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

using testing::HasSubstr;

class CsiProofTest : public CsiPluginFixture {
 protected:
  static constexpr const char* kTarget = "/kubelet/pods/uid-1/volumes/kubernetes.io~csi/pv-1/mount";

  CsiFinding Published(bool read_only = false) {
    return Must(LookAtPublished(*context_, {kName, HostPathOf(kTarget), read_only}, Call()));
  }
  void Bind(const SafePath& source) {
    kernel_.AddDirectory(kTarget);
    Must(kernel_.Call(BindMount{.source = source, .target = HostPathOf(kTarget)}, {}));
  }
  // A pod has this volume, and it shows the same as `source`.
  void PublishOther(const StringMap& vol_data, const SafePath& source) {
    const std::string directory = "/kubelet/pods/uid-2/volumes/kubernetes.io~csi/pv-2";
    kernel_.AddDirectory(directory + "/mount");
    kernel_.AddFile(directory + "/vol_data.json", FormatVolData(vol_data));
    Must(kernel_.Call(BindMount{.source = source, .target = HostPathOf(directory + "/mount")}, {}));
  }
  CsiFinding PublishedAs(const std::string& handle) {
    PublishedLook look{kName, HostPathOf(kTarget)};
    look.persistent = CsiVolumeId{kName, handle};
    return Must(LookAtPublished(*context_, look, Call()));
  }
  // Another volume of the node is staged there.
  std::string StageOther() {
    const std::string place = "/kubelet/plugins/kubernetes.io/csi/disk.example.com/x/globalmount";
    DeviceRecord facts;
    facts.key = CsiUniqueName(kName, "vol-2");
    facts.plugin_name = kCsiPluginName;
    facts.spec = SpecName("pv-2");
    facts.device_mount_path = place;
    const uint64_t attempt = Must(devices_->BeginCall(facts, VolumeEvent::kMountDevice));
    EXPECT_TRUE(devices_->EndCall(facts.key, attempt, CallAnswer::kDone).ok());
    return place;
  }
};

TEST_F(CsiProofTest, ADirectoryOfTheNodesOwnFilesystemMayBeAVolume) {
  kernel_.AddDirectory("/data/vol-1");
  Bind({"/data", "vol-1"});
  EXPECT_EQ(Published().wrong, std::nullopt);
  EXPECT_EQ(Published().mount->root, "/data/vol-1");
}

TEST_F(CsiProofTest, ADirectoryBelowTheAgentsOwnMayBeAVolume) {
  kernel_.AddDirectory("/kubelet/plugins/disk/data/vol-1");
  Bind({"/kubelet/plugins/disk/data", "vol-1"});
  EXPECT_EQ(Published().wrong, std::nullopt);
}

TEST_F(CsiProofTest, ADirectoryWhoseNameBeginsAsTheAgentsOwnMayBeAVolume) {
  kernel_.AddDirectory("/kube");
  Bind({"/", "kube"});
  EXPECT_EQ(Published().wrong, std::nullopt);
}

TEST_F(CsiProofTest, TheAgentsOwnDirectoryIsNoVolume) {
  Bind({"/", "kubelet"});
  EXPECT_THAT(Published().wrong.value_or(""), HasSubstr("the agent's own directory"));
}

// The agent gave its own files to a pod's fsGroup.
TEST_F(CsiProofTest, NoDirectoryOfTheAgentsOwnIsAVolume) {
  for (const char* own : {"volumed/objects", "volumed", "plugins_registry", "pods", "plugins"}) {
    kernel_.AddDirectory(std::string("/kubelet/") + own);
    Bind({"/kubelet", own});
    EXPECT_THAT(Published().wrong.value_or(""), HasSubstr("the agent's own directory")) << own;
    Must(kernel_.Call(Unmount{.target = HostPathOf(kTarget)}, {}));
  }
}

// Of a driver that stages nothing two pods had one volume's data as two volumes, and no lie was
// told.
TEST_F(CsiProofTest, WhatAPodHasAsAnotherVolumeIsNotThisOne) {
  const SafePath data{"/mnt/data", "vol-2"};
  Mounts("/mnt/data", "/dev/sda");
  kernel_.AddDirectory(data.Display());
  PublishOther({{"driverName", kName}, {"volumeHandle", "vol-2"}}, data);
  Bind(data);
  EXPECT_THAT(PublishedAs("vol-1").wrong.value_or(""),
              HasSubstr("is what is published as another volume at "
                        "/kubelet/pods/uid-2/volumes/kubernetes.io~csi/pv-2/mount"));
  EXPECT_EQ(PublishedAs("vol-2").wrong, std::nullopt) << "two names of one volume";
  EXPECT_EQ(Published().wrong, std::nullopt) << "of an inline volume it is not asked";
}

TEST_F(CsiProofTest, AnInlineVolumeOfAnotherPodMayShowTheSameDirectory) {
  const SafePath data{"/mnt/data", "vol-2"};
  Mounts("/mnt/data", "/dev/sda");
  kernel_.AddDirectory(data.Display());
  PublishOther({{"driverName", kName},
                {"volumeHandle", "csi-1"},
                {"volumeLifecycleMode", kVolDataEphemeral}},
               data);
  Bind(data);
  EXPECT_EQ(PublishedAs("vol-1").wrong, std::nullopt);
}

// What the agent keeps for volumes was walked for the pod's fsGroup, and the pod could write to it.
TEST_F(CsiProofTest, WhatTheAgentKeepsForVolumesIsNoVolume) {
  for (const char* own :
       {"plugins/kubernetes.io", "plugins/kubernetes.io/csi/disk.example.com/x/globalmount",
        "pods/uid-2", "pods/uid-2/volumes/kubernetes.io~empty-dir/scratch", "pods/uid-1",
        "pods/uid-1/volumes/kubernetes.io~csi/pv-1", "plugins"}) {
    kernel_.AddDirectory(std::string("/kubelet/") + own);
    Bind({"/kubelet", own});
    EXPECT_THAT(Published().wrong.value_or(""), HasSubstr("the agent's own directory")) << own;
    Must(kernel_.Call(Unmount{.target = HostPathOf(kTarget)}, {}));
  }
}

TEST_F(CsiProofTest, ADirectoryOfTheVolumesOwnStagingPathMayBeThePodsVolume) {
  const SafePath staging = CsiStagingPath(paths_, kName, kHandle);
  kernel_.AddDirectory(staging.Display() + "/sub");
  for (const SafePath& shown : {staging, staging.Below("sub"), HostPathOf(kTarget)}) {
    Bind(shown);
    const PublishedLook look{kName, CsiTargetPath(paths_, PodUid(kPodUid), SpecName("pv-1")), false,
                             staging};
    EXPECT_EQ(Must(LookAtPublished(*context_, look, Call())).wrong, std::nullopt)
        << shown.Display();
    Must(kernel_.Call(Unmount{.target = HostPathOf(kTarget)}, {}));
  }
}

// A pod that can write where manifests are read from makes pods of its own.
TEST_F(CsiProofTest, WhereTheAgentTakesItsOrdersFromIsNoVolume) {
  CsiPluginSettings settings;
  settings.own_places = {"/etc/volumed/manifests"};
  plugin_settings_.Set(settings);
  kernel_.AddDirectory("/etc/volumed/manifests/a");
  kernel_.AddDirectory("/etc/volumed/manifests-of-others");
  for (const char* own : {"volumed", "volumed/manifests", "volumed/manifests/a"}) {
    Bind({"/etc", own});
    EXPECT_THAT(Published().wrong.value_or(""), HasSubstr("the agent's own directory")) << own;
    Must(kernel_.Call(Unmount{.target = HostPathOf(kTarget)}, {}));
  }
  Bind({"/etc", "volumed/manifests-of-others"});
  EXPECT_EQ(Published().wrong, std::nullopt);
}

TEST_F(CsiProofTest, AFilesystemOnTheNetworkMayShowInTwoVolumes) {
  const std::string other = StageOther();
  kernel_.AddMount("cifs", "//server/share", other);
  kernel_.AddDirectory(kTarget);
  Must(kernel_.Call(BindMount{.source = HostPathOf(other), .target = HostPathOf(kTarget)}, {}));
  EXPECT_EQ(Published().wrong, std::nullopt);
}

TEST_F(CsiProofTest, ADiskThatIsStagedForAnotherVolumeIsNotThisOne) {
  const std::string other = StageOther();
  Mounts(other, "/dev/sda");
  kernel_.AddDirectory(kTarget);
  Must(kernel_.Call(BindMount{.source = HostPathOf(other), .target = HostPathOf(kTarget)}, {}));
  EXPECT_THAT(Published().wrong.value_or(""),
              HasSubstr("the disk of the volume that is staged at " + other));
}

// Of a filesystem with a number of its own nothing was compared.
TEST_F(CsiProofTest, ABtrfsThatIsStagedForAnotherVolumeWasThisOne) {
  const std::string other = StageOther();
  kernel_.AddMount("btrfs", "/dev/sda", other);
  kernel_.AddDirectory(kTarget);
  Must(kernel_.Call(BindMount{.source = HostPathOf(other), .target = HostPathOf(kTarget)}, {}));
  ASSERT_TRUE(Published().mount.has_value());
  ASSERT_EQ(Published().mount->device_major, 0u);
  EXPECT_THAT(Published().wrong.value_or(""),
              HasSubstr("the disk of the volume that is staged at " + other));
}

TEST_F(CsiProofTest, AReadOnlyMountIsWhatAReaderAskedFor) {
  kernel_.AddMount("tmpfs", "tmpfs", kTarget, {"ro"});
  EXPECT_EQ(Published(/*read_only=*/true).wrong, std::nullopt);
  kernel_.UnmountBelow(kTarget);
  kernel_.AddMount("tmpfs", "tmpfs", kTarget);
  EXPECT_THAT(Published(/*read_only=*/true).wrong.value_or(""), HasSubstr("can be written to"));
}

TEST_F(CsiProofTest, ALinkToABlockDeviceIsOne) {
  kernel_.AddSpecial("/dev/sdq", FileType::kBlockDevice);
  kernel_.AddSymlink("/kubelet/link", "/dev/sdq");
  kernel_.AddSymlink("/kubelet/other", "/dev");
  EXPECT_EQ(Must(LookAtPublishedDevice(*context_, {"/kubelet", "link"}, Call())).wrong,
            std::nullopt);
  EXPECT_EQ(Must(LookAtPublishedDevice(*context_, {"/kubelet", "other"}, Call())).wrong,
            "/kubelet/other is a directory, and no block device");
}

TEST_F(CsiProofTest, AStagedVolumeNeedsNoMount) {
  kernel_.AddDirectory("/kubelet/staged");
  EXPECT_EQ(Must(LookAtStaged(*context_, {"/kubelet", "staged"}, Call())).wrong, std::nullopt);
  EXPECT_EQ(Must(LookAtStaged(*context_, {"/kubelet", "missing"}, Call())).wrong,
            "there is no /kubelet/missing");
}

TEST_F(CsiProofTest, AMountThatHangsIsLookedAtInTheTableAlone) {
  kernel_.AddMount("nfs4", "server:/x", kTarget);
  kernel_.Hang(kTarget);
  EXPECT_EQ(Published().wrong, std::nullopt);
  EXPECT_EQ(Must(LookAtTakenAway(*context_, HostPathOf(kTarget), Call())).wrong,
            std::string(kTarget) + " is still mounted");
}

}  // namespace
}  // namespace volumed
