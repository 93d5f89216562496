// Volumes of the node's own pool on the real daemon: a claim becomes a file with a filesystem, or a
// block device, on a loop device, is kept over kills, and goes again with all that it had.
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::pool_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugin = "volumed.io~pool";
constexpr uint32_t kOverlayMagic = 0x794c7630;

class PoolTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    struct statfs disk {};
    ASSERT_EQ(::statfs(scratch().c_str(), &disk), 0);
    const auto type = static_cast<uint32_t>(disk.f_type);
    if (type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == kOverlayMagic) {
      GTEST_SKIP() << "skipped: needs a directory for temporary files on a disk";
    }
    settings["pool"] = "{fast: " + pool() + "}";
    settings["pool-capacity"] = "{fast: 2Gi}";
    settings["node-name"] = "n1";
  }
  void TearDown() override {
    KillAgent();
    // A loop device that is still mounted goes with its mount.
    for (const std::string& loop : Loops()) (void)RunCommand({"losetup", "-d", loop});
    AgentTest::TearDown();
  }

  std::string pool() const { return scratch() + "/pool"; }
  void MakePool() { ASSERT_TRUE(fs::create_directory(pool())); }

  // The loop devices on the pool's files.
  std::vector<std::string> Loops() const {
    std::vector<std::string> loops;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/block", error)) {
      const std::string file = ReadText(entry.path() / "loop/backing_file");
      if (file.starts_with(pool() + "/"))
        loops.push_back("/dev/" + entry.path().filename().string());
    }
    return loops;
  }
  std::vector<std::string> Volumes() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(pool() + "/volumes", error)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  std::string NothingIsLeft() {
    const bool is_empty =
        Eventually(kPatience, [this] { return Loops().empty() && Volumes().empty(); });
    if (is_empty) return LeftOvers();
    return std::to_string(Loops().size()) + " loop devices and " +
           std::to_string(Volumes().size()) + " volumes are left";
  }

  static std::string Class(const std::string& fs_type = "ext4") {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\n"
           "provisioner: pool.volumed.io\nreclaimPolicy: Delete\nallowVolumeExpansion: true\n"
           "parameters: {csi.storage.k8s.io/fstype: " +
           fs_type + "}\n";
  }
  static std::string Claim(const std::string& name, const std::string& size = "32Mi",
                           const std::string& mode = "Filesystem") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: " + mode +
           "\n  storageClassName: fast\n  resources: {requests: {storage: " + size + "}}\n";
  }
  static std::string PodOn(const std::string& name, const std::string& claim,
                           bool is_block = false) {
    const std::string container = is_block ? "volumeDevices: [{name: data, devicePath: /dev/xvda}]"
                                           : "volumeMounts: [{name: data, mountPath: /d}]";
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x, " +
           container +
           "}\n  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: " + claim + "}\n";
  }
  std::string Describe(const std::string& kind, const std::string& name) {
    return Ctl({"describe", kind, name}).output;
  }
  bool DescribeHas(const std::string& kind, const std::string& name, const std::string& text) {
    return Eventually(kPatience,
                      [&] { return Describe(kind, name).find(text) != std::string::npos; });
  }
  // "pvc-<uid>", of a claim that is bound.
  std::string VolumeOf(const std::string& claim) {
    std::string volume;
    Eventually(kPatience, [&] {
      const std::string text = Describe("pvc", claim);
      const size_t at = text.find("pvc-");
      if (text.find("Bound") == std::string::npos || at == std::string::npos) return false;
      volume = text.substr(at, text.find_first_of(" \n", at) - at);
      return true;
    });
    return volume;
  }
  std::string FileOf(const std::string& pod, const std::string& claim) {
    return root() + "/pods/uid-" + pod + "/volumes/" + kPlugin + "/" + VolumeOf(claim) + "/note";
  }
  void Restart() {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  void ApplyPod(const std::string& name, const std::string& claim, bool is_block = false) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(name, claim, is_block)));
    ASSERT_TRUE(WaitPhase(name, "Ready")) << Ctl({"explain", name}).output;
  }
  void DeletePodAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Ctl({"explain", pod}).output;
  }
  void NeedMkfs(const std::string& fs_type) {
    const std::string program = "mkfs." + fs_type;
    if (RunCommand({"sh", "-c", "command -v " + program}).exit_status != 0) {
      GTEST_SKIP() << "skipped: needs " << program;
    }
    const std::string known = ReadText("/proc/filesystems");
    if (known.find("\t" + fs_type + "\n") == std::string::npos &&
        RunCommand({"modprobe", fs_type}).exit_status != 0) {
      GTEST_SKIP() << "skipped: needs a kernel with " << fs_type;
    }
  }
  // A claim's whole life, over kill -9 wherever it rests.
  void LiveWith(const std::string& fs_type, const std::string& size) {
    ASSERT_NO_FATAL_FAILURE(MakePool());
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Class(fs_type) + Claim("data", size)));
    ASSERT_NE(VolumeOf("data"), "") << Describe("pvc", "data");
    EXPECT_EQ(Volumes().size(), 1u);
    EXPECT_EQ(Loops().size(), 0u) << "nobody has it";
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
    const std::string note = FileOf("a", "data");
    WriteText(note, "kept");
    ASSERT_EQ(ReadText(note), "kept");
    const std::vector<std::string> loops = Loops();
    ASSERT_EQ(loops.size(), 1u);
    const std::string sectors = "/sys/block/" + loops[0].substr(5) + "/queue/logical_block_size";
    EXPECT_EQ(ReadText(sectors), "4096\n");
    EXPECT_EQ(RunCommand({"stat", "-f", "-c", "%T", note}).output,
              (fs_type == "ext4" ? "ext2/ext3" : fs_type) + std::string("\n"));

    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
    EXPECT_EQ(Loops(), loops);
    EXPECT_EQ(ReadText(note), "kept");
    ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
    EXPECT_TRUE(Eventually(kPatience, [this] { return Loops().empty(); }));
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_NO_FATAL_FAILURE(ApplyPod("b", "data"));
    EXPECT_EQ(ReadText(FileOf("b", "data")), "kept");
    ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
    ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(NothingIsLeft(), "");
  }
};

TEST_F(PoolTest, AClaimIsMadeWrittenKeptOverKillsAndDeletedWithExt4) {
  ASSERT_NO_FATAL_FAILURE(NeedMkfs("ext4"));
  if (IsSkipped()) return;
  LiveWith("ext4", "32Mi");
}

TEST_F(PoolTest, AClaimIsMadeWrittenKeptOverKillsAndDeletedWithXfs) {
  ASSERT_NO_FATAL_FAILURE(NeedMkfs("xfs"));
  if (IsSkipped()) return;
  LiveWith("xfs", "300Mi");
}

TEST_F(PoolTest, AClaimIsMadeWrittenKeptOverKillsAndDeletedWithBtrfs) {
  ASSERT_NO_FATAL_FAILURE(NeedMkfs("btrfs"));
  if (IsSkipped()) return;
  LiveWith("btrfs", "128Mi");
}

TEST_F(PoolTest, AVolumeWithXfsGrowsWhileAPodHasIt) {
  ASSERT_NO_FATAL_FAILURE(NeedMkfs("xfs"));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class("xfs") + Claim("data", "300Mi")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  const std::string note = FileOf("a", "data");
  WriteText(note, "kept");
  const auto size_of = [&note]() -> int64_t {
    struct statfs filesystem {};
    if (::statfs(note.c_str(), &filesystem) != 0) return -1;
    return static_cast<int64_t>(filesystem.f_blocks) * filesystem.f_bsize;
  };
  const int64_t before = size_of();
  ASSERT_GT(before, 0);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data", "450Mi")));
  constexpr int64_t kMore = int64_t{140} << 20;  // the filesystem's own needs aside
  EXPECT_TRUE(Eventually(kPatience, [&] { return size_of() >= before + kMore; }))
      << before << " " << size_of() << "\n"
      << Describe("pvc", "data");
  EXPECT_EQ(ReadText(note), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolTest, ABlockVolumeIsAPodsDeviceOverKillsAndKeepsItsBytes) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("raw", "8Mi", "Block")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "raw", /*is_block=*/true));
  const auto link = [this](const std::string& pod) {
    return root() + "/pods/uid-" + pod + "/volumeDevices/" + kPlugin + "/" + VolumeOf("raw");
  };
  struct stat device {};
  ASSERT_EQ(::stat(link("a").c_str(), &device), 0);
  ASSERT_TRUE(S_ISBLK(device.st_mode));
  WriteText(scratch() + "/in", "raw bytes");
  ASSERT_EQ(RunCommand({"dd", "if=" + scratch() + "/in", "of=" + link("a"), "conv=notrunc,fsync",
                        "status=none"})
                .exit_status,
            0);
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  EXPECT_EQ(Loops().size(), 1u);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(Eventually(kPatience, [this] { return Loops().empty(); }));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("b", "raw", /*is_block=*/true));
  EXPECT_EQ(RunCommand({"dd", "if=" + link("b"), "bs=9", "count=1", "status=none"}).output,
            "raw bytes");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "raw").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolTest, AVolumeWhoseClaimIsDeletedStaysUntilItsPodHasLeft) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  const std::string note = FileOf("a", "data");
  WriteText(note, "kept");
  EXPECT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  EXPECT_TRUE(DescribeHas("pvc", "data", "Terminating")) << Describe("pvc", "data");
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  EXPECT_EQ(ReadText(note), "kept");
  EXPECT_EQ(Volumes().size(), 1u);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolTest, KillsAtAnyMomentLeaveOneVolumePerClaimOrNone) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class()));
  for (int i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data") + PodOn("a", "data")));
    std::this_thread::sleep_for(Milliseconds(25 * i));
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
    EXPECT_EQ(Volumes().size(), 1u);
    EXPECT_EQ(Loops().size(), 1u);
    ASSERT_TRUE(Delete("Pod", "a").ok());
    ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
    std::this_thread::sleep_for(Milliseconds(25 * i));
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_TRUE(WaitGone("a")) << Ctl({"explain", "a"}).output;
    EXPECT_EQ(NothingIsLeft(), "") << Ctl({"get", "pv"}).output;
    ASSERT_TRUE(DescribeHas("pvc", "data", "no PersistentVolumeClaim"));
  }
}

TEST_F(PoolTest, APodThatSeesTheWholeNodeKeepsNoVolumeFromBeingMade) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk("apiVersion: v1\nkind: Pod\nmetadata: {name: watcher, namespace: default, uid: "
              "uid-watcher}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n"
              "  - {name: c, image: x, volumeMounts: [{name: node, mountPath: /node}]}\n"
              "  volumes: [{name: node, hostPath: {path: /}}]\n"));
  ASSERT_TRUE(WaitPhase("watcher", "Ready")) << Ctl({"explain", "watcher"}).output;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("watcher"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolTest, APoolThatIsNotThereStopsNothingElseAndIsOpenedWhenItComes) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(Eventually(kPatience, [this] {
    return FailedParts().find("pool fast") != std::string::npos;
  })) << FailedParts();
  EXPECT_TRUE(WaitReady());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data")));
  EXPECT_TRUE(DescribeHas("pvc", "data", pool())) << Describe("pvc", "data");
  ASSERT_NO_FATAL_FAILURE(MakePool());
  EXPECT_NE(VolumeOf("data"), "") << Describe("pvc", "data");
  EXPECT_EQ(FailedParts().find("pool fast"), std::string::npos) << FailedParts();
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolTest, ADirectoryThatIsSomebodyElsesBecomesNoPool) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  WriteText(pool() + "/thesis.tex", "mine");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(Eventually(kPatience, [this] {
    return FailedParts().find("pool fast") != std::string::npos;
  })) << FailedParts();
  EXPECT_EQ(ReadText(pool() + "/thesis.tex"), "mine");
  EXPECT_FALSE(Exists(pool() + "/pool.volumed"));
}

TEST_F(PoolTest, AClaimForMoreThanThereIsSaysHowMuchIsLeft) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data", "3Gi")));
  EXPECT_TRUE(DescribeHas("pvc", "data", "can promise")) << Describe("pvc", "data");
  EXPECT_TRUE(Volumes().empty());
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

}  // namespace
}  // namespace volumed::pool_test
