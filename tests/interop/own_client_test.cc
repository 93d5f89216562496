// Two daemons: one is the CSI driver alone, with a pool, and the other one calls it as a kubelet
// with a provisioner and a resizer would do, with claims and pods of its own.
#include <sys/vfs.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"
#include "interop/pd_harness.h"
#include "places.h"

namespace volumed::own_client_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kObjects = R"(apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: pool.volumed.io}
spec: {attachRequired: false, podInfoOnMount: false, fsGroupPolicy: File}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: pool.volumed.io
reclaimPolicy: Delete
allowVolumeExpansion: true
parameters: {csi.storage.k8s.io/fstype: xfs}
)";

class OwnClientTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    ASSERT_TRUE(MakeImage(scratch() + "/disk", int64_t{3} << 30));
    const CommandResult made = RunCommand({"mkfs.xfs", "-q", scratch() + "/disk"});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    disk_ = std::make_unique<LoopDevice>(scratch() + "/disk");
    ASSERT_TRUE(disk_->valid());
    fs::create_directory(pool());
    ASSERT_EQ(RunCommand({"mount", "-t", "xfs", disk_->path(), pool()}).exit_status, 0);
    fs::create_directories(fs::path(endpoint()).parent_path());
    settings["node-name"] = "n1";
  }
  void TearDown() override {
    driver_.End(SIGKILL);
    AgentTest::TearDown();
    for (const std::string& loop : Loops()) (void)RunCommand({"losetup", "-d", loop});
    (void)RunCommand({"umount", "-l", pool()});
    disk_.reset();
  }

  std::string pool() const { return scratch() + "/pool"; }
  std::string endpoint() const { return root() + "/plugins/pool.volumed.io/csi.sock"; }
  std::string driver_log() const { return scratch() + "/driver.log"; }

  // The one that is the driver, and nothing but that.
  void StartDriver() {
    WriteText(
        scratch() + "/driver.yaml",
        "root: " + scratch() + "/driver\nsocket: " + scratch() +
            "/driver.sock\nmetrics-address: \"\"\nnode-name: n1\ncsi-only: true\npool: {fast: " +
            pool() + "}\ncsi-profile: central\ncsi-serve: " + endpoint() + "\ncsi-registry: " +
            root() + "/plugins_registry\ncsi-target-roots: [" + root() + "]\n");
    ASSERT_TRUE(driver_.Start({VolumedPath(), "run", "--config", scratch() + "/driver.yaml"},
                              driver_log(), driver_log()));
  }
  std::vector<std::string> Loops() const {
    std::vector<std::string> loops;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/block", error)) {
      const std::string file = ReadText(entry.path() / "loop/backing_file");
      if (!file.starts_with(pool() + "/")) continue;
      loops.push_back("/dev/" + entry.path().filename().string());
    }
    return loops;
  }
  size_t Volumes() const {
    std::error_code error;
    const fs::directory_iterator all(pool() + "/volumes", error);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  static std::string Claim(const std::string& size, const std::string& mode = "Filesystem") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: fast\n  "
           "volumeMode: " +
           mode + "\n  resources: {requests: {storage: " + size + "}}\n";
  }
  static std::string PodOnClaim(bool is_block = false) {
    const std::string container = is_block ? "volumeDevices: [{name: data, devicePath: /dev/xvda}]"
                                           : "volumeMounts: [{name: data, mountPath: /d}]";
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: default, uid: uid-a}\n"
           "spec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x, " +
           container +
           "}\n  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: data}\n";
  }
  std::string Said() { return Ctl({"explain", "a"}).output + ReadText(driver_log()); }
  std::string Mounted() const {
    for (const auto& entry :
         fs::directory_iterator(root() + "/pods/uid-a/volumes/kubernetes.io~csi")) {
      return entry.path().string() + "/mount";
    }
    return "";
  }
  static int64_t SizeOf(const std::string& path) {
    struct statfs filesystem {};
    if (::statfs(path.c_str(), &filesystem) != 0) return -1;
    return static_cast<int64_t>(filesystem.f_blocks) * filesystem.f_bsize;
  }
  void EndPodAndClaim() {
    ASSERT_TRUE(Delete("Pod", "a").ok());
    ASSERT_TRUE(WaitGone("a")) << Said();
    // A pod is gone before its volume is unstaged.
    EXPECT_TRUE(Eventually(kPatience, [&] { return Loops().empty(); })) << Said();
    ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
    EXPECT_TRUE(Eventually(kPatience, [&] { return Volumes() == 0; })) << Said();
    EXPECT_EQ(CsiLeftOvers(), "");
  }

  PeerProcess driver_;
  std::unique_ptr<LoopDevice> disk_;
};

TEST_F(OwnClientTest, AClaimIsMadeWrittenGrownAndDeletedOverADriverThatDies) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(StartDriver());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(kObjects + Claim("300Mi") + PodOnClaim()));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Said();
  WriteText(Mounted() + "/note", "kept");
  const int64_t before = SizeOf(Mounted());
  driver_.End(SIGKILL);
  EXPECT_EQ(ReadText(Mounted() + "/note"), "kept") << "nobody needs the driver for it";
  ASSERT_NO_FATAL_FAILURE(StartDriver());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("500Mi")));
  EXPECT_TRUE(Eventually(kPatience, [&] { return SizeOf(Mounted()) > before + (100 << 20); }))
      << Said();
  EXPECT_EQ(ReadText(Mounted() + "/note"), "kept");
  ASSERT_NO_FATAL_FAILURE(EndPodAndClaim());
}

TEST_F(OwnClientTest, ABlockVolumeIsGivenAndTakenBack) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(StartDriver());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(kObjects + Claim("32Mi", "Block") + PodOnClaim(true)));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Said();
  EXPECT_EQ(Loops().size(), 1u);
  ASSERT_NO_FATAL_FAILURE(EndPodAndClaim());
}

}  // namespace
}  // namespace volumed::own_client_test
