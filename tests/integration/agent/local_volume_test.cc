// Persistent volumes on the real daemon: loop devices with ext4 and xfs, shared by pods, refused
// where they hold something else, and over kills.
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::local_volume_test {
namespace {

constexpr int64_t kDiskBytes = int64_t{320} << 20;  // mkfs.xfs makes nothing smaller than 300 MB
constexpr const char* kPlugin = "kubernetes.io~local-volume";

class LocalVolumeTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    settings["node-name"] = "n1";
  }

  LoopDevice Disk() const {
    EXPECT_TRUE(MakeImage(scratch() + "/disk.img", kDiskBytes));
    LoopDevice disk(scratch() + "/disk.img");
    EXPECT_TRUE(disk.valid());
    return disk;
  }

  static std::string Storage(const std::string& name, const std::string& path,
                             const std::string& fs_type,
                             const std::string& mode = "ReadWriteOnce") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 300Mi}\n  accessModes: [" + mode +
           "]\n  local: {path: " + path + (fs_type.empty() ? "" : ", fsType: " + fs_type) +
           "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " +
           name + ", namespace: default}\nspec:\n  accessModes: [" + mode +
           "]\n  volumeName: " + name + "\n  resources: {requests: {storage: 100Mi}}\n";
  }
  static std::string PodOn(const std::string& name, const std::string& claim,
                           const std::string& group = "", bool read_only = false) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name + "}\nspec:\n" +
           (group.empty() ? "" : "  securityContext: {fsGroup: " + group + "}\n") +
           "  terminationGracePeriodSeconds: 0\n"
           "  containers:\n  - {name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}\n"
           "  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: " +
           claim + (read_only ? ", readOnly: true" : "") + "}\n";
  }
  std::string PlaceOf(const std::string& pod, const std::string& volume) const {
    return root() + "/pods/uid-" + pod + "/volumes/" + kPlugin + "/" + volume;
  }
  std::string DevicePlace(const std::string& volume) const {
    return root() + "/plugins/kubernetes.io/local-volume/mounts/" + volume;
  }
  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  void DeletePodAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Explain(pod);
  }
  bool DeviceIsGone(const std::string& volume) {
    return Eventually(kPatience, [&] { return !Exists(DevicePlace(volume)); });
  }
};

TEST_F(LocalVolumeTest, TwoPodsShareANewDiskAndItsDataOutlivesThem) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("disk", disk.path(), "ext4") + PodOn("a", "disk")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b", "disk")));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_EQ(MountsBelow(DevicePlace("disk")).size(), 1u);
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  const std::string explained = Explain("a");
  EXPECT_NE(explained.find("default/disk"), std::string::npos) << explained;
  EXPECT_NE(explained.find("DeviceMounted"), std::string::npos) << explained;

  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_EQ(MountsBelow(DevicePlace("disk")).size(), 1u);
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  EXPECT_TRUE(DeviceIsGone("disk"));
  EXPECT_EQ(LeftOvers(), "");

  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("c", "disk", "", true)));
  ASSERT_TRUE(WaitPhase("c", "Ready")) << Explain("c");
  EXPECT_EQ(ReadText(PlaceOf("c", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(::mkdir((PlaceOf("c", "disk") + "/new").c_str(), 0755), -1);
  EXPECT_EQ(errno, EROFS);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("c"));
  EXPECT_TRUE(DeviceIsGone("disk"));
}

TEST_F(LocalVolumeTest, ADiskThatComesAfterThePodIsMountedByItsEvent) {
  Disk().Detach();
  // Far above the numbers that other tests are given meanwhile.
  const int number = 1000 + ::getpid() % 1000;
  const std::string path = "/dev/loop" + std::to_string(number);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("disk", path, "ext4") + PodOn("a", "disk")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return Explain("a").find(path) != std::string::npos; }))
      << Explain("a");
  EXPECT_NE(FindPod("a")->phase(), "Ready");
  ASSERT_EQ(RunCommand({"losetup", path, scratch() + "/disk.img"}).exit_status, 0);
  EXPECT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(DeviceIsGone("disk"));
  EXPECT_EQ(RunCommand({"losetup", "-d", path}).exit_status, 0);
  const Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return ::ioctl(control.get(), LOOP_CTL_REMOVE, number) >= 0; }));
}

TEST_F(LocalVolumeTest, APodThatWritesJoinsOneThatOnlyReads) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  // Who only reads has no disk formatted.
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Storage("disk", disk.path(), "ext4") + PodOn("reader", "disk", "", true)));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Explain("reader").find("no pod is to write to it") != std::string::npos;
  })) << Explain("reader");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("writer", "disk")));
  ASSERT_TRUE(WaitPhase("writer", "Ready")) << Explain("writer");
  ASSERT_TRUE(WaitPhase("reader", "Ready")) << Explain("reader");
  WriteText(PlaceOf("writer", "disk") + "/kept.txt", "kept");
  EXPECT_EQ(ReadText(PlaceOf("reader", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(::mkdir((PlaceOf("reader", "disk") + "/new").c_str(), 0755), -1);
  EXPECT_EQ(errno, EROFS);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("writer"));
  // The reader alone keeps the device; the next one that writes gets what it asks for.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("next", "disk")));
  ASSERT_TRUE(WaitPhase("next", "Ready")) << Explain("next");
  EXPECT_EQ(::mkdir((PlaceOf("next", "disk") + "/new").c_str(), 0755), 0);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("reader"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("next"));
  EXPECT_TRUE(DeviceIsGone("disk"));
}

TEST_F(LocalVolumeTest, AWriteProtectedDiskServesReadersAndRefusesAWriter) {
  ASSERT_TRUE(MakeImage(scratch() + "/disk.img", kDiskBytes));
  ASSERT_EQ(std::system(("mkfs.ext4 -q -F " + scratch() + "/disk.img").c_str()), 0);
  const LoopDevice disk(scratch() + "/disk.img", true);
  ASSERT_TRUE(disk.valid());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Storage("disk", disk.path(), "ext4") + PodOn("reader", "disk", "", true)));
  ASSERT_TRUE(WaitPhase("reader", "Ready")) << Explain("reader");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("writer", "disk")));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Explain("writer").find("because it is write-protected") != std::string::npos;
  })) << Explain("writer");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("writer"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("reader"));
  EXPECT_TRUE(DeviceIsGone("disk"));
}

TEST_F(LocalVolumeTest, AnXfsDiskIsOwnedByTheFirstPodsGroup) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Storage("disk", disk.path(), "xfs") + PodOn("a", "disk", "2000")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  struct stat found {};
  ASSERT_EQ(::stat(PlaceOf("a", "disk").c_str(), &found), 0);
  EXPECT_EQ(found.st_gid, 2000u);
  EXPECT_EQ(found.st_mode & 02770, 02770u);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b", "disk", "3000")));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  ASSERT_EQ(::stat(PlaceOf("b", "disk").c_str(), &found), 0);
  EXPECT_EQ(found.st_gid, 2000u);
  EXPECT_NE(
      Explain("b").find("The requested fsGroup is 3000, but the volume disk has GID 2000. The "
                        "volume may not be shareable."),
      std::string::npos)
      << Explain("b");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  EXPECT_TRUE(DeviceIsGone("disk"));
}

TEST_F(LocalVolumeTest, ADiskWithSomethingOnItIsRefusedWithItsReasonAndNotTouched) {
  const LoopDevice disk = Disk();
  RunCommand({"dd", "if=/dev/urandom", "of=" + disk.path(), "bs=4096", "count=4", "conv=fsync"});
  const std::string before = RunCommand({"sha256sum", disk.path()}).output;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("disk", disk.path(), "ext4") + PodOn("a", "disk")));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Explain("a").find("unknown data and is not formatted") != std::string::npos;
  })) << Explain("a");
  EXPECT_EQ(FindPod("a")->phase(), "Pending");
  EXPECT_NE(Explain("a").find("an administrator"), std::string::npos) << Explain("a");
  EXPECT_EQ(RunCommand({"sha256sum", disk.path()}).output, before);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(DeviceIsGone("disk"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(LocalVolumeTest, AnotherFilesystemIsToldToThePersistentVolume) {
  const LoopDevice disk = Disk();
  ASSERT_EQ(RunCommand({"mkfs.xfs", "-q", disk.path()}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("disk", disk.path(), "ext4") + PodOn("a", "disk")));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"events", "pv/disk"}).output.find("FailedMountOnFilesystemMismatch") !=
           std::string::npos;
  })) << Ctl({"events"}).output;
  const std::string described = Ctl({"describe", "pv", "disk"}).output;
  EXPECT_NE(described.find("FailedMountOnFilesystemMismatch"), std::string::npos) << described;
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(DeviceIsGone("disk"));
}

TEST_F(LocalVolumeTest, ADirectoryIsBoundAsItIs) {
  const std::string directory = scratch() + "/directory";
  ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("dir", directory, "") + PodOn("a", "dir")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  WriteText(PlaceOf("a", "dir") + "/kept.txt", "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_EQ(ReadText(directory + "/kept.txt"), "kept");
  EXPECT_FALSE(Exists(DevicePlace("dir")));
}

TEST_F(LocalVolumeTest, KillsAtAnyMomentNeitherBlockNorFormatAgain) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("disk", disk.path(), "ext4") + PodOn("a", "disk")));
  for (int i = 0; i < 6; ++i) {
    ::usleep(static_cast<useconds_t>(40'000 * i));
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  for (int i = 0; i < 3; ++i) {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
    EXPECT_EQ(ReadText(PlaceOf("a", "disk") + "/kept.txt"), "kept");
  }
  ASSERT_TRUE(Delete("Pod", "a").ok());
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitGone("a")) << Explain("a");
  EXPECT_TRUE(DeviceIsGone("disk"));
  EXPECT_EQ(LeftOvers(), "");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b", "disk")));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
}

// ---- volumes that are made larger ---------------------------------------------------------------

constexpr int64_t kGrownBytes = int64_t{480} << 20;

class GrowingVolumeTest : public LocalVolumeTest {
 protected:
  static std::string Sized(std::string storage, const std::string& size) {
    return storage.replace(storage.find("300Mi"), 5, size);
  }
  void Enlarge(const LoopDevice& disk, int64_t size_bytes = kGrownBytes) const {
    ASSERT_EQ(::truncate((scratch() + "/disk.img").c_str(), size_bytes), 0);
    ASSERT_EQ(RunCommand({"losetup", "-c", disk.path()}).exit_status, 0);
  }
  int64_t StatFsBytes(const std::string& place) const {
    struct statfs info = {};
    EXPECT_EQ(::statfs(place.c_str(), &info), 0);
    return static_cast<int64_t>(info.f_blocks) * info.f_bsize;
  }
  std::string DescribeClaim() { return Ctl({"describe", "pvc", "disk"}).output; }
  bool ClaimSays(const std::string& text) {
    return Eventually(kPatience, [&] { return DescribeClaim().find(text) != std::string::npos; });
  }
};

TEST_F(GrowingVolumeTest, XfsGrowsInUseAndSaysSo) {
  const LoopDevice disk = Disk();
  const std::string storage = Storage("disk", disk.path(), "xfs");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(storage + PodOn("a", "disk")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_TRUE(ClaimSays("300Mi")) << DescribeClaim();
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  // The volume first: the device is too small, and the pod runs.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Sized(storage, "480Mi") + PodOn("a", "disk")));
  ASSERT_TRUE(ClaimSays("NodeResizeError")) << DescribeClaim();
  EXPECT_NE(Explain("a").find("enlarge the device first"), std::string::npos) << Explain("a");
  EXPECT_EQ(FindPod("a")->phase(), "Ready");
  ASSERT_NO_FATAL_FAILURE(Enlarge(disk));
  EXPECT_EQ(Ctl({"retry", "a"}).exit_status, 0);
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return StatFsBytes(PlaceOf("a", "disk")) > int64_t{400} << 20;
  })) << Explain("a");
  ASSERT_TRUE(ClaimSays("status.capacity.storage"));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return DescribeClaim().find("NodeResizeError") == std::string::npos;
  })) << DescribeClaim();
  EXPECT_TRUE(ClaimSays("480Mi")) << DescribeClaim();
  EXPECT_NE(Ctl({"describe", "pod", "a"}).output.find("FileSystemResizeSuccessful"),
            std::string::npos);
  EXPECT_EQ(ReadText(PlaceOf("a", "disk") + "/kept.txt"), "kept");
}

TEST_F(GrowingVolumeTest, Ext4IsExplainedInUseAndGrownBeforeItsNextMount) {
  const LoopDevice disk = Disk();
  const std::string storage = Storage("disk", disk.path(), "ext4");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(storage + PodOn("a", "disk")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  ASSERT_NO_FATAL_FAILURE(Enlarge(disk));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Sized(storage, "480Mi") + PodOn("a", "disk")));
  const auto grown = [&] { return StatFsBytes(PlaceOf("a", "disk")) > int64_t{400} << 20; };
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return grown() || Explain("a").find("CAP_SYS_RESOURCE") != std::string::npos;
  })) << Explain("a");
  EXPECT_EQ(FindPod("a")->phase(), "Ready");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_TRUE(DeviceIsGone("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b", "disk")));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_GT(StatFsBytes(PlaceOf("b", "disk")), int64_t{400} << 20);
  EXPECT_TRUE(ClaimSays("480Mi")) << DescribeClaim();
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return DescribeClaim().find("NodeResizeError") == std::string::npos;
  })) << DescribeClaim();
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
}

TEST_F(GrowingVolumeTest, AReadOnlyUseIsToldAndNotGrown) {
  const LoopDevice disk = Disk();
  const std::string storage = Storage("disk", disk.path(), "xfs");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(storage + PodOn("a", "disk")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_TRUE(DeviceIsGone("disk"));
  ASSERT_NO_FATAL_FAILURE(Enlarge(disk));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Sized(storage, "480Mi") + PodOn("b", "disk", "", true)));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"describe", "pod", "b"}).output.find("requested read-only file system") !=
           std::string::npos;
  }));
  EXPECT_LT(StatFsBytes(PlaceOf("b", "disk")), int64_t{400} << 20);
}

// Kills at moments after the change, from at once to when it is over.
class KilledGrowthTest : public GrowingVolumeTest,
                         public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledGrowthTest, LosesNothingAndTheVolumeGrows) {
  const LoopDevice disk = Disk();
  const std::string storage = Storage("disk", disk.path(), GetParam());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(storage + PodOn("a", "disk")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  int64_t mebibytes = 320;
  for (const int milliseconds : {0, 2, 5, 9, 14, 20, 35}) {
    mebibytes += 40;
    ASSERT_NO_FATAL_FAILURE(Enlarge(disk, mebibytes << 20));
    ASSERT_NO_FATAL_FAILURE(
        ApplyOk(Sized(storage, std::to_string(mebibytes) + "Mi") + PodOn("a", "disk")));
    ::usleep(static_cast<useconds_t>(1000 * milliseconds));
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(Eventually(kPatience,
                           [&] {
                             const std::string claim = DescribeClaim();
                             return claim.find(std::to_string(mebibytes) + "Mi") !=
                                        std::string::npos &&
                                    claim.find("NodeResize") == std::string::npos &&
                                    StatFsBytes(PlaceOf("a", "disk")) > (mebibytes - 80) << 20;
                           }))
        << DescribeClaim() << StatFsBytes(PlaceOf("a", "disk"));
    EXPECT_EQ(ReadText(PlaceOf("a", "disk") + "/kept.txt"), "kept");
    ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  }
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(DeviceIsGone("disk"));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, KilledGrowthTest, ::testing::Values("xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed::local_volume_test
