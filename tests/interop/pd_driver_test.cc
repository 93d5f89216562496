// volumed with a CSI driver of the field: claims and pods on the real daemon, whose volumes the
// persistent disk driver makes, attaches, stages, publishes and grows; over the deaths of its node
// server, of its controller and of the agent.
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "interop/pd_client.h"
#include "interop/pd_harness.h"

namespace volumed::pd_driver_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGib = int64_t{1} << 30;
constexpr gid_t kGroup = 2000;

class PdDriverTest : public AgentTest {
 protected:
  void SetUp() override {
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
  void TearDown() override {
    if (pd_ != nullptr && HasFailure()) std::cerr << pd_->Logs();
    if (pd_ != nullptr) pd_->Stop();
    AgentTest::TearDown();
    pd_.reset();
    std::error_code error;
    if (!cloud_.empty()) fs::remove_all(cloud_, error);
  }

  void UsePd(const std::string& machine_type) {
    PdDriver::Settings of{.scratch = cloud_, .kubelet_root = root(), .nodes = {"n1", "n2"}};
    if (!machine_type.empty()) of.machine_type = machine_type;
    pd_ = std::make_unique<PdDriver>(of);
    client_ = std::make_unique<PdClient>(pd_->cloud_socket(), pd_->node_socket(), pd_->NodeId());
  }
  // The agent, then the driver: it finds a driver that comes later.
  void StartAll() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(pd_->Start()) << pd_->Logs();
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

  // A disk that an administrator has made, as a volume with a claim of the same name.
  void ApplyDisk(const std::string& name, const std::string& mode = "Filesystem") {
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
  static std::string Claim(const std::string& name, const std::string& size = "1Gi") {
    return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: pd\n  resources: {requests: {storage: " +
           size + "}}\n";
  }
  static std::string PodOn(const std::string& name, const std::string& claim,
                           bool is_block = false) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  securityContext: {fsGroup: 2000}\n  terminationGracePeriodSeconds: 0\n"
           "  containers:\n  - name: c\n    image: x\n" +
           (is_block ? "    volumeDevices: [{name: data, devicePath: /dev/xvda}]\n"
                     : "    volumeMounts: [{name: data, mountPath: /d}]\n") +
           "  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: " + claim + "}\n";
  }
  std::string PlaceOf(const std::string& pod, const std::string& volume) const {
    return root() + "/pods/uid-" + pod + "/volumes/kubernetes.io~csi/" + volume + "/mount";
  }
  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  void ApplyAndWait(const std::string& pod, const std::string& claim, bool is_block = false) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(pod, claim, is_block)));
    ASSERT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod) << pd_->Logs();
  }
  void DeleteAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Explain(pod) << pd_->Logs();
  }
  // Detached, and unstaged before: the cloud saw no user.
  void ExpectNothingAttached() {
    EXPECT_TRUE(Eventually(kPatience, [&] { return pd_->Attached().empty(); })) << pd_->Logs();
    EXPECT_EQ(pd_->DetachedInUse(), 0);
  }
  static int64_t FilesystemBytes(const std::string& path) {
    struct statfs stat {};
    if (::statfs(path.c_str(), &stat) != 0) return -1;
    return static_cast<int64_t>(stat.f_blocks) * stat.f_bsize;
  }
  // The capacity of a claim's volume, as its driver has measured it and a scrape sees it; -1: none.
  int64_t MeasuredBytes(const std::string& claim) const {
    const std::string text = HttpGet("/metrics");
    const std::string series =
        R"(kubelet_volume_stats_capacity_bytes{namespace="default",persistentvolumeclaim=")" +
        claim + "\"} ";
    const size_t at = text.find(series);
    if (at == std::string::npos) return -1;
    return static_cast<int64_t>(std::strtod(text.c_str() + at + series.size(), nullptr));
  }
  // The volume that a class has made for the claim.
  std::string VolumeOf(const std::string& claim) {
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

  std::string cloud_;
  std::unique_ptr<PdDriver> pd_;
  std::unique_ptr<PdClient> client_;
};

TEST_F(PdDriverTest, AStaticVolumeIsAttachedStagedPublishedAndTakenAwayInThisOrderOnceEach) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  const std::string place = PlaceOf("a", "disk");
  struct stat stat {};
  ASSERT_EQ(::stat(place.c_str(), &stat), 0);
  EXPECT_EQ(stat.st_gid, kGroup);
  EXPECT_EQ(stat.st_mode & 02070u, 02070u);
  EXPECT_EQ(MountsBelow(place).size(), 1u);
  WriteText(place + "/kept.txt", "kept");
  EXPECT_TRUE(Exists(root() + "/pods/uid-a/volumes/kubernetes.io~csi/disk/vol_data.json"));
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
  EXPECT_EQ(LeftOvers(), "");
  const std::string handle = PdDriver::HandleOf("disk");
  for (const char* method :
       {"ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume",
        "NodeUnstageVolume", "ControllerUnpublishVolume"}) {
    // The detach follows when the pod is gone already.
    EXPECT_TRUE(Eventually(kPatience, [&] { return pd_->Answered(method, handle) > 0; })) << method;
    EXPECT_EQ(pd_->Answered(method, handle), 1) << method;
  }
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("b", "disk"));
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("b"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, AClaimGetsAVolumeOfItsClassWhichGoesWithIt) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "data"));
  const std::string volume = VolumeOf("data");
  ASSERT_TRUE(volume.starts_with("pvc-")) << volume;
  EXPECT_EQ(pd_->Answered("CreateVolume", volume), 1);
  WriteText(PlaceOf("a", volume) + "/kept.txt", "kept");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
  EXPECT_EQ(pd_->Answered("DeleteVolume"), 0);
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return pd_->Answered("DeleteVolume", PdDriver::HandleOf(volume)) == 1;
  })) << pd_->Logs();
}

TEST_F(PdDriverTest, TwoPodsShareOneAttachmentAndOneStage) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("b", "disk"));
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(pd_->Answered("ControllerPublishVolume"), 1);
  EXPECT_EQ(pd_->Answered("NodeStageVolume"), 1);
  EXPECT_EQ(pd_->Answered("NodePublishVolume"), 2);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(pd_->Attached().size(), 1u);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("b"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, ABlockVolumeIsTheDiskItself) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk", "Block"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk", true));
  ASSERT_EQ(pd_->Attached().size(), 1u);
  const std::string loop = pd_->Attached().front();
  struct stat of_loop {};
  struct stat of_pod {};
  ASSERT_EQ(::stat(loop.substr(0, loop.find(' ')).c_str(), &of_loop), 0);
  const std::string link = root() + "/pods/uid-a/volumeDevices/kubernetes.io~csi/disk";
  ASSERT_EQ(::stat(link.c_str(), &of_pod), 0) << Explain("a");
  EXPECT_TRUE(S_ISBLK(of_pod.st_mode));
  EXPECT_EQ(of_pod.st_rdev, of_loop.st_rdev);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(PdDriverTest, AClaimThatGrowsMakesTheFilesystemOfItsPodLargerInUse) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "data"));
  const std::string place = PlaceOf("a", VolumeOf("data"));
  const std::vector<std::string> mounts = MountsBelow(place);
  EXPECT_LT(FilesystemBytes(place), kGib);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data", "2Gi")));
  EXPECT_TRUE(Eventually(kPatience, [&] { return FilesystemBytes(place) > kGib + kGib / 2; }))
      << Ctl({"describe", "pvc", "data"}).output << pd_->Logs();
  EXPECT_EQ(MountsBelow(place), mounts);
  EXPECT_TRUE(Eventually(kPatience, [&] { return MeasuredBytes("data") > kGib + kGib / 2; }))
      << MeasuredBytes("data");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, APodWaitsForItsDriverAndGoesOnAsSoonAsItIsBack) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  pd_->KillNode();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a", "disk")));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Explain("a").find(PdDriver::kName) != std::string::npos;
  })) << Explain("a");
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  pd_->KillNode();
  ASSERT_TRUE(Delete("Pod", "a").ok());
  EXPECT_FALSE(WaitGone("a", std::chrono::seconds(1))) << "nobody has unpublished its volume";
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  ASSERT_TRUE(WaitGone("a")) << Explain("a");
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, ANodeServerMayDieAtAnyCallBeforeItsEffectOrAfterIt) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  // It changes something by four calls, and the last server sees what the others have left.
  for (const PdDriver::Death death :
       {PdDriver::Death{1, 0}, PdDriver::Death{0, 1}, PdDriver::Death{2, 0}, PdDriver::Death{0, 2},
        PdDriver::Death{3, 0}, PdDriver::Death{0, 3}, PdDriver::Death{4, 0},
        PdDriver::Death{0, 4}}) {
    const std::string at = "call " + std::to_string(death.before + death.after) +
                           (death.after > 0 ? ", after its effect" : ", before its effect");
    ASSERT_TRUE(pd_->StartNode(death)) << pd_->Logs();
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a", "disk")));
    bool is_deleted = false;
    ASSERT_TRUE(Eventually(kPatience,
                           [&] {
                             if (!pd_->NodeRuns()) return true;
                             if (!is_deleted && WaitPhase("a", "Ready", Milliseconds(0))) {
                               is_deleted = Delete("Pod", "a").ok();
                             }
                             return false;
                           }))
        << at << Explain("a");
    ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
    if (!is_deleted) {
      ASSERT_TRUE(WaitPhase("a", "Ready")) << at << Explain("a");
      ASSERT_TRUE(Delete("Pod", "a").ok());
    }
    ASSERT_TRUE(WaitGone("a")) << at << Explain("a");
    ExpectNothingAttached();
  }
}

TEST_F(PdDriverTest, AControllerThatIsAwayOrDiesWhileItAttachesIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_TRUE(pd_->StartCloud({0, 1})) << pd_->Logs();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a", "disk")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return !pd_->CloudRuns(); })) << Explain("a");
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(pd_->Attached().size(), 1u);
  pd_->KillCloud();
  ASSERT_TRUE(Delete("Pod", "a").ok());
  ASSERT_TRUE(WaitGone("a")) << "the pod waits for no controller: " << Explain("a");
  EXPECT_EQ(pd_->Attached().size(), 1u);
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, AnAgentThatIsKilledTakesItsVolumesOverWithoutACallThatChangesSomething) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  const std::vector<std::string> mounts = MountsBelow(root());
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(MountsBelow(root()), mounts);
  EXPECT_EQ(ReadText(PlaceOf("a", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(pd_->Answered("ControllerPublishVolume"), 1);
  EXPECT_EQ(pd_->Answered("NodeStageVolume"), 1);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, ANodeTakesAsManyVolumesAsItsDriverSaysAndTheNextWaitsForAPlace) {
  UsePd("c4a-standard-1");
  constexpr int kLimit = 7;
  ASSERT_NO_FATAL_FAILURE(StartAll());
  for (int i = 0; i <= kLimit; ++i) {
    ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk" + std::to_string(i)));
  }
  for (int i = 0; i < kLimit; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_NO_FATAL_FAILURE(ApplyAndWait("p" + number, "disk" + number));
  }
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("last", "disk7")));
  EXPECT_FALSE(WaitPhase("last", "Ready", std::chrono::seconds(2)));
  EXPECT_EQ(pd_->Attached().size(), static_cast<size_t>(kLimit));
  EXPECT_NE(Explain("last").find("limit"), std::string::npos) << Explain("last");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("p0"));
  EXPECT_TRUE(WaitPhase("last", "Ready")) << Explain("last");
}

TEST_F(PdDriverTest, TheNodesCsiObjectHasTheDriversNameForItItsZoneAndItsLimit) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  std::string described;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    described = Ctl({"describe", "csinode", "n1"}).output;
    return described.find(pd_->NodeId()) != std::string::npos &&
           described.find(PdDriver::kTopologyKey) != std::string::npos &&
           described.find("127") != std::string::npos;
  })) << described;
}

}  // namespace
}  // namespace volumed::pd_driver_test
