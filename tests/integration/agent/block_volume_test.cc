// Raw block volumes on the real daemon: a loop device that pods get as it is, over kills and
// restarts, and nothing that is left behind. VOLUMED_BLOCK_CYCLES and VOLUMED_BLOCK_RESTARTS set
// how often.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"
#include "run_numbers.h"

namespace volumed::block_volume_test {
namespace {

constexpr int64_t kDiskBytes = int64_t{8} << 20;
constexpr const char* kPlugin = "kubernetes.io~local-volume";

std::vector<std::string> Names(const std::string& directory) {
  std::vector<std::string> names;
  DIR* open = ::opendir(directory.c_str());
  if (open == nullptr) return names;
  while (const dirent* entry = ::readdir(open)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(open);
  return names;
}

std::string LinkTarget(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
  return size < 0 ? "" : std::string(target, static_cast<size_t>(size));
}

dev_t NumberOf(const std::string& device) {
  struct stat found {};
  return ::stat(device.c_str(), &found) == 0 && S_ISBLK(found.st_mode) ? found.st_rdev : 0;
}

class BlockVolumeTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    settings["node-name"] = "n1";
  }

  LoopDevice Disk(const std::string& name = "disk") const {
    EXPECT_TRUE(MakeImage(scratch() + "/" + name + ".img", kDiskBytes));
    LoopDevice disk(scratch() + "/" + name + ".img");
    EXPECT_TRUE(disk.valid());
    return disk;
  }
  static std::string Storage(const std::string& path) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n"
           "  capacity: {storage: 8Mi}\n  volumeMode: Block\n  accessModes: [ReadWriteOnce]\n"
           "  local: {path: " +
           path +
           "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk, namespace: "
           "default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: Block\n"
           "  volumeName: disk\n  resources: {requests: {storage: 4Mi}}\n";
  }
  static std::string PodOn(const std::string& name, bool read_only = false) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n"
           "  containers:\n  - {name: c, image: x, volumeDevices: [{name: data, devicePath: "
           "/dev/xvda}]}\n"
           "  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: disk" +
           (read_only ? ", readOnly: true" : "") + "}\n";
  }
  std::string Link(const std::string& pod) const {
    return root() + "/pods/uid-" + pod + "/volumeDevices/" + kPlugin + "/disk";
  }
  std::string MapDirectory() const {
    return root() + "/plugins/" + kPlugin + "/volumeDevices/disk";
  }
  std::string Node(const std::string& pod) const { return MapDirectory() + "/uid-" + pod; }

  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  void ApplyAndWait(const std::string& pod) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(pod)));
    ASSERT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod);
  }
  void DeleteAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Explain(pod);
  }
  bool DeviceIsGone() {
    return Eventually(kPatience, [&] { return !Exists(MapDirectory()); });
  }
  // What a pod writes and reads through its path.
  void Dd(const std::string& path, const std::string& text) const {
    WriteText(scratch() + "/in", text);
    const CommandResult written = RunCommand(
        {"dd", "if=" + scratch() + "/in", "of=" + path, "conv=notrunc,fsync", "status=none"});
    ASSERT_EQ(written.exit_status, 0) << written.output;
  }
  static std::string ReadBack(const std::string& path, size_t bytes) {
    return RunCommand({"dd", "if=" + path, "bs=" + std::to_string(bytes), "count=1", "status=none"})
        .output;
  }
  // The agent's, without those of workers (a socket, a pidfd and a pipe each), of which a few are
  // kept warm.
  size_t OwnDescriptors() const {
    return Names("/proc/" + std::to_string(agent_pid()) + "/fd").size() - 3 * Workers().size();
  }
  static size_t MountCount() {
    const std::string table = ReadText("/proc/self/mountinfo");
    return static_cast<size_t>(std::count(table.begin(), table.end(), '\n'));
  }
  // Loop devices whose file is the agent's or this test's own; others come and go.
  std::vector<std::string> LoopFiles() const {
    std::vector<std::string> files;
    for (const std::string& name : Names("/sys/block")) {
      const std::string file = ReadText("/sys/block/" + name + "/loop/backing_file");
      if (file.rfind(scratch(), 0) == 0 || file.rfind(root(), 0) == 0) files.push_back(file);
    }
    return files;
  }
};

// The pod got the other disk's content. A link stands for loop devices that come up in another
// order.
TEST_F(BlockVolumeTest, AnotherDiskAtThePathIsNotHandedOutUntilItIsAccepted) {
  const LoopDevice disk = Disk();
  const LoopDevice other = Disk("other");
  const std::string link = scratch() + "/link";
  ASSERT_EQ(::symlink(disk.path().c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(link)));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  DeleteAndWait("a");
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_EQ(::symlink(other.path().c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b")));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Explain("b").find("is another block device than the one") != std::string::npos;
  })) << Explain("b");
  EXPECT_NE(Explain("b").find(scratch() + "/other.img"), std::string::npos) << Explain("b");
  EXPECT_FALSE(Exists(Link("b")));
  const CommandResult accepted = Ctl({"accept", "pv", "disk"});
  EXPECT_EQ(accepted.exit_status, 0) << accepted.output;
  EXPECT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
}

TEST_F(BlockVolumeTest, AnEnlargedDiskIsLargerForThePodAndOnItsClaim) {
  const LoopDevice disk = Disk();
  const auto sized = [&disk](const std::string& size) {
    std::string storage = Storage(disk.path());
    return storage.replace(storage.find("8Mi"), 3, size);
  };
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(sized("8Mi")));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(sized("16Mi") + PodOn("a")));
  const auto claim_says = [this](const std::string& text) {
    return Eventually(kPatience, [&] {
      return Ctl({"describe", "pvc", "disk"}).output.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(claim_says("NodeResizeError")) << Ctl({"describe", "pvc", "disk"}).output;
  EXPECT_NE(Explain("a").find("enlarge the device first"), std::string::npos) << Explain("a");
  ASSERT_EQ(::truncate((scratch() + "/disk.img").c_str(), 2 * kDiskBytes), 0);
  ASSERT_EQ(RunCommand({"losetup", "-c", disk.path()}).exit_status, 0);
  EXPECT_TRUE(claim_says("16Mi")) << Ctl({"describe", "pvc", "disk"}).output << Explain("a");
  EXPECT_EQ(RunCommand({"blockdev", "--getsize64", Link("a")}).output, "16777216\n");
  DeleteAndWait("a");
  EXPECT_TRUE(DeviceIsGone());
}

TEST_F(BlockVolumeTest, TwoPodsShareADeviceAndItsDataOutlivesTheAgent) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(disk.path())));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("b"));
  EXPECT_EQ(LinkTarget(Link("a")), disk.path());
  EXPECT_NE(NumberOf(disk.path()), 0u);
  EXPECT_EQ(NumberOf(Node("a")), NumberOf(disk.path()));
  EXPECT_EQ(NumberOf(Node("b")), NumberOf(disk.path()));
  EXPECT_EQ(DescriptorsOf(disk.path()), 1u);
  EXPECT_EQ(LoopFiles().size(), 1u);  // the disk itself
  ASSERT_NO_FATAL_FAILURE(Dd(Link("a"), "kept"));
  EXPECT_EQ(ReadBack(Link("b"), 4), "kept");
  const std::string explained = Explain("a");
  EXPECT_NE(explained.find("Mapped"), std::string::npos) << explained;
  EXPECT_NE(explained.find(disk.path()), std::string::npos) << explained;
  EXPECT_NE(explained.find("SuccessfulMountVolume"), std::string::npos) << explained;
  const std::string described = Ctl({"describe", "volume", "a/disk"}).output;
  EXPECT_NE(described.find(Node("a")), std::string::npos) << described;
  EXPECT_NE(described.find("data at /dev/xvda"), std::string::npos) << described;
  const std::string listed = Ctl({"get", "pods", "a"}).output;
  EXPECT_NE(listed.find("1/1"), std::string::npos) << listed;
  const std::string oci = Ctl({"oci", "a", "c"}).output;
  EXPECT_NE(oci.find("\"mrw\""), std::string::npos) << oci;
  EXPECT_NE(oci.find(Link("a")), std::string::npos) << oci;

  KillAgent();
  EXPECT_EQ(ReadBack(Link("b"), 4), "kept");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_EQ(DescriptorsOf(disk.path()), 1u);
  EXPECT_EQ(MountsBelow(MapDirectory()).size(), 2u);

  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_EQ(ReadBack(Link("b"), 4), "kept");
  EXPECT_EQ(DescriptorsOf(disk.path()), 1u);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("b"));
  EXPECT_TRUE(DeviceIsGone());
  EXPECT_EQ(DescriptorsOf(disk.path()), 0u);
  EXPECT_EQ(LeftOvers(), "");
  EXPECT_EQ(ReadBack(disk.path(), 4), "kept");
}

// The loop device could be given another file, and the pod's node read that one's data.
TEST_F(BlockVolumeTest, AHeldPodThatLeavesHasItsDeviceOpenWithTheNextAgentToo) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(disk.path())));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  ASSERT_TRUE(Hold("a", ::getpid()).ok());
  ASSERT_TRUE(Delete("Pod", "a").ok());
  ASSERT_TRUE(WaitPhase("a", "Terminating")) << Explain("a");
  EXPECT_EQ(DescriptorsOf(disk.path()), 1u);
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(Eventually(kPatience, [&] { return DescriptorsOf(disk.path()) == 1; }));
  EXPECT_TRUE(WaitPhase("a", "Terminating")) << Explain("a");
  EXPECT_NE(Explain("a").find("block:      " + disk.path()), std::string::npos) << Explain("a");
  const std::string self = std::to_string(::getpid());
  ASSERT_EQ(Ctl({"hold", "a", "--pid", self, "--release"}).exit_status, 0);
  ASSERT_TRUE(WaitGone("a"));
  EXPECT_TRUE(DeviceIsGone());
  EXPECT_EQ(DescriptorsOf(disk.path()), 0u);
}

TEST_F(BlockVolumeTest, NoPodIsGivenAnotherDeviceThanTheFirstOneHas) {
  const LoopDevice disk = Disk();
  const LoopDevice other = Disk("other");
  const std::string link = scratch() + "/link";
  ASSERT_EQ(::symlink(disk.path().c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(link)));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_EQ(::symlink(other.path().c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b")));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Explain("b").find("is not the one that pods were given as this volume") !=
           std::string::npos;
  })) << Explain("b");
  EXPECT_EQ(LinkTarget(Link("a")), disk.path());
  EXPECT_EQ(NumberOf(Node("a")), NumberOf(disk.path()));
  EXPECT_FALSE(Exists(Node("b")));
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("b"));
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_TRUE(DeviceIsGone());
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(BlockVolumeTest, AKubeletsLoopDeviceIsDetachedWithThePodsNode) {
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(disk.path())));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  const LoopDevice lock(Node("a"));
  ASSERT_TRUE(lock.valid());
  EXPECT_EQ(LoopFiles().size(), 2u);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_TRUE(DeviceIsGone());
  EXPECT_EQ(LoopFiles().size(), 1u);
}

TEST_F(BlockVolumeTest, ADirectoryIsNoBlockDevice) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(scratch()) + PodOn("a")));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return Explain("a").find("not a block device") != std::string::npos;
  })) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(BlockVolumeTest, LoopDevicesMountsAndDescriptorsReturnToTheStart) {
  const auto cycles = static_cast<int>(NumberOfRun("VOLUMED_BLOCK_CYCLES", 20));
  const auto restarts = static_cast<int>(NumberOfRun("VOLUMED_BLOCK_RESTARTS", 3));
  const LoopDevice disk = Disk();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(disk.path())));
  const auto cycle = [&] {
    ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
    ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
    ASSERT_TRUE(DeviceIsGone());
  };
  ASSERT_NO_FATAL_FAILURE(cycle());  // connections that there will be
  const size_t descriptors = OwnDescriptors();
  const size_t mounts = MountCount();
  const std::vector<std::string> loops = LoopFiles();
  for (int i = 0; i < cycles; ++i) ASSERT_NO_FATAL_FAILURE(cycle()) << i;
  EXPECT_TRUE(Eventually(kPatience, [&] { return OwnDescriptors() <= descriptors; }))
      << OwnDescriptors() << " descriptors, " << descriptors << " before";
  EXPECT_EQ(DescriptorsOf(disk.path()), 0u);
  EXPECT_EQ(MountCount(), mounts);
  EXPECT_EQ(LoopFiles(), loops);

  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a"));
  const size_t mapped = OwnDescriptors();
  for (int i = 0; i < restarts; ++i) {
    if (i % 2 == 0) {
      KillAgent();
    } else {
      ASSERT_EQ(StopAgent(), 0);
    }
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
    ASSERT_EQ(DescriptorsOf(disk.path()), 1u) << i;
    ASSERT_EQ(MountsBelow(MapDirectory()).size(), 1u) << i;
  }
  EXPECT_TRUE(Eventually(kPatience, [&] { return OwnDescriptors() <= mapped; }))
      << OwnDescriptors() << " descriptors, " << mapped << " before";
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_TRUE(DeviceIsGone());
  EXPECT_EQ(DescriptorsOf(disk.path()), 0u);
  EXPECT_EQ(MountCount(), mounts);
  EXPECT_EQ(LoopFiles(), loops);
  EXPECT_EQ(LeftOvers(), "");
  std::cout << cycles << " times mapped and unmapped, " << restarts << " restarts: " << loops.size()
            << " loop device(s), " << mounts << " mounts, " << descriptors
            << " descriptors, as before\n";
}

}  // namespace
}  // namespace volumed::block_volume_test
