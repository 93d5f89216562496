// AgentTest with a pool of its own, and manifests of claims of it.
#pragma once

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::pool_test {

inline constexpr const char* kPlugin = "volumed.io~pool";
inline constexpr uint32_t kOverlayMagic = 0x794c7630;

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
    if (AgentRuns()) KillAgent();
    // A loop device that is still mounted goes with its mount.
    for (const std::string& loop : Loops()) (void)RunCommand({"losetup", "-d", loop});
    AgentTest::TearDown();
  }

  std::string pool() const { return scratch() + "/pool"; }
  void MakePool() { ASSERT_TRUE(std::filesystem::create_directory(pool())); }

  // The loop devices on the pool's files.
  std::vector<std::string> Loops() const {
    std::vector<std::string> loops;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/block", error)) {
      const std::string file = ReadText(entry.path() / "loop/backing_file");
      if (file.starts_with(pool() + "/"))
        loops.push_back("/dev/" + entry.path().filename().string());
    }
    return loops;
  }
  std::vector<std::string> Volumes() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(pool() + "/volumes", error)) {
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
};

}  // namespace volumed::pool_test
