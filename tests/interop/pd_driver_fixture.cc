#include "interop/pd_driver_fixture.h"

#include <stdlib.h>
#include <sys/statfs.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace volumed {
namespace {

namespace fs = std::filesystem;

}  // namespace

void PdDriverTest::SetUp() {
  AgentTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  if (const std::string why = PdDriver::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  char name[] = "/var/tmp/volumed-pd-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  cloud_ = name;
  UsePd({});
  settings["node-name"] = "n1";
  settings["csi-controller-endpoints"] =
      "[" + std::string(PdDriver::kName) + "=" + pd_->cloud_socket() + "]";
}

// The agent first: what it has mounted holds the driver's disks.
void PdDriverTest::TearDown() {
  if (pd_ != nullptr && HasFailure()) std::cerr << pd_->Logs();
  if (pd_ != nullptr) pd_->Stop();
  AgentTest::TearDown();
  pd_.reset();
  std::error_code error;
  if (!cloud_.empty()) fs::remove_all(cloud_, error);
}

void PdDriverTest::UsePd(const std::string& machine_type) {
  PdDriver::Settings of{.scratch = cloud_, .kubelet_root = root(), .nodes = {"n1", "n2"}};
  if (!machine_type.empty()) of.machine_type = machine_type;
  pd_ = std::make_unique<PdDriver>(of);
  client_ = std::make_unique<PdClient>(pd_->cloud_socket(), pd_->node_socket(), pd_->NodeId());
}

// The agent, then the driver: it finds a driver that comes later. A registrar whose driver is not
// there is refused, and ends, and nobody here starts it again: so it is waited for.
void PdDriverTest::StartAll() {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(pd_->Start()) << pd_->Logs();
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return ReadText(log_path()).find("\"CSI driver is registered\"") != std::string::npos;
  })) << pd_->Logs();
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk("apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: " +
              std::string(PdDriver::kName) +
              "}\nspec: {attachRequired: true, podInfoOnMount: false, fsGroupPolicy: "
              "ReadWriteOnceWithFSType}\n---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\n"
              "metadata: {name: pd}\nprovisioner: " +
              PdDriver::kName +
              "\nallowVolumeExpansion: true\nvolumeBindingMode: WaitForFirstConsumer\n"
              "parameters: {type: pd-balanced, csi.storage.k8s.io/fstype: xfs}\n"));
}

void PdDriverTest::ApplyDisk(const std::string& name, const std::string& mode) {
  std::string handle;
  const grpc::Status made = client_->Create(name, &handle);
  ASSERT_TRUE(made.ok()) << made.error_message();
  ASSERT_EQ(handle, PdDriver::HandleOf(name));
  const std::string fs_type = mode == "Block" ? "" : ", fsType: xfs";
  ASSERT_NO_FATAL_FAILURE(ApplyOk(
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
      "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  volumeMode: " +
      mode + "\n  csi: {driver: " + PdDriver::kName + ", volumeHandle: " + handle + fs_type +
      "}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
      ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: " + mode +
      "\n  storageClassName: \"\"\n  volumeName: " + name +
      "\n  resources: {requests: {storage: 1Gi}}\n"));
}

std::string PdDriverTest::Claim(const std::string& name, const std::string& size) {
  return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
         "  storageClassName: pd\n  resources: {requests: {storage: " +
         size + "}}\n";
}

std::string PdDriverTest::PodOn(const std::string& name, const std::string& claim, bool is_block) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: default, uid: uid-" +
         name +
         "}\nspec:\n  securityContext: {fsGroup: 2000}\n  terminationGracePeriodSeconds: 0\n"
         "  containers:\n  - name: c\n    image: x\n" +
         (is_block ? "    volumeDevices: [{name: data, devicePath: /dev/xvda}]\n"
                   : "    volumeMounts: [{name: data, mountPath: /d}]\n") +
         "  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: " + claim + "}\n";
}

std::string PdDriverTest::PlaceOf(const std::string& pod, const std::string& volume) const {
  return root() + "/pods/uid-" + pod + "/volumes/kubernetes.io~csi/" + volume + "/mount";
}

void PdDriverTest::ApplyAndWait(const std::string& pod, const std::string& claim, bool is_block) {
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(pod, claim, is_block)));
  ASSERT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod) << pd_->Logs();
}

void PdDriverTest::DeleteAndWait(const std::string& pod) {
  ASSERT_TRUE(Delete("Pod", pod).ok());
  ASSERT_TRUE(WaitGone(pod)) << Explain(pod) << pd_->Logs();
}

void PdDriverTest::ExpectNothingAttached() {
  EXPECT_TRUE(Eventually(kPatience, [&] { return pd_->Attached().empty(); })) << pd_->Logs();
  EXPECT_EQ(pd_->DetachedInUse(), 0);
}

int64_t PdDriverTest::FilesystemBytes(const std::string& path) {
  struct statfs stat {};
  if (::statfs(path.c_str(), &stat) != 0) return -1;
  return static_cast<int64_t>(stat.f_blocks) * stat.f_bsize;
}

int64_t PdDriverTest::MeasuredBytes(const std::string& claim) const {
  const std::string text = HttpGet("/metrics");
  const std::string series =
      R"(kubelet_volume_stats_capacity_bytes{namespace="default",persistentvolumeclaim=")" + claim +
      "\"} ";
  const size_t at = text.find(series);
  if (at == std::string::npos) return -1;
  return static_cast<int64_t>(std::strtod(text.c_str() + at + series.size(), nullptr));
}

std::string PdDriverTest::VolumeOf(const std::string& claim) {
  std::string volume;
  Eventually(kPatience, [&] {
    const std::string text = Ctl({"describe", "pvc", claim}).output;
    const size_t at = text.find("pvc-");
    if (text.find("Bound") == std::string::npos || at == std::string::npos) return false;
    volume = text.substr(at, text.find_first_of(" \n", at) - at);
    return true;
  });
  return volume;
}

}  // namespace volumed
