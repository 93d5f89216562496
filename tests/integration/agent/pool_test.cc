// Volumes of the node's own pool on the real daemon: a claim becomes a file with a filesystem, or a
// block device, on a loop device, is kept over kills, and goes again with all that it had.
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "integration/agent/pool_fixture.h"

namespace volumed::pool_test {
namespace {

class PoolLifeTest : public PoolTest {
 protected:
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

TEST_F(PoolLifeTest, AClaimIsMadeWrittenKeptOverKillsAndDeletedWithExt4) {
  ASSERT_NO_FATAL_FAILURE(NeedMkfs("ext4"));
  if (IsSkipped()) return;
  LiveWith("ext4", "32Mi");
}

TEST_F(PoolLifeTest, AClaimIsMadeWrittenKeptOverKillsAndDeletedWithXfs) {
  ASSERT_NO_FATAL_FAILURE(NeedMkfs("xfs"));
  if (IsSkipped()) return;
  LiveWith("xfs", "300Mi");
}

TEST_F(PoolLifeTest, AClaimIsMadeWrittenKeptOverKillsAndDeletedWithBtrfs) {
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
