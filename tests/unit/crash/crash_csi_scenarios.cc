// Scenarios with the volumes of a CSI driver: the real plugin over a driver whose process may end
// at each call.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "csi/csi_names.h"
#include "unit/crash/crash_csi.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kCsiSpec = "pv-disk";
constexpr const char* kHandle = "vol-disk";
constexpr const char* kClaimName = "data";
constexpr uint32_t kCsiGroup = 3000;

std::string CsiDriverManifest(bool attaches) {
  return std::string(R"(---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disk.example.com}
spec: {podInfoOnMount: true, volumeLifecycleModes: [Persistent, Ephemeral], attachRequired: )") +
         (attaches ? "true" : "false") + "}\n";
}

std::string CsiVolumeManifest(const std::string& mode, const std::string& access) {
  return R"(---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [)" +
         access + R"(]
  persistentVolumeReclaimPolicy: Retain
  volumeMode: )" +
         mode + R"(
  csi: {driver: disk.example.com, volumeHandle: vol-disk, fsType: ext4}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, uid: claim-data}
spec:
  accessModes: [)" +
         access + R"(]
  volumeMode: )" +
         mode + R"(
  resources: {requests: {storage: 1Gi}}
)";
}

std::string CsiPodManifest(const std::string& uid, const std::string& use,
                           const std::string& volume) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid +
         "}\nspec:\n  securityContext: {fsGroup: 3000}\n  containers:\n" +
         "  - {name: main, image: x, " + use + "}\n  volumes:\n  - {name: data, " + volume + "}\n";
}

constexpr const char* kMounted = "volumeMounts: [{name: data, mountPath: /data}]";
constexpr const char* kRaw = "volumeDevices: [{name: data, devicePath: /dev/xvda}]";

std::string ClaimSource(const std::string& claim) {
  return "persistentVolumeClaim: {claimName: " + claim + "}";
}

void ApplyCsiPod(CrashWorld& world, const std::string& uid, const std::string& spec) {
  world.sources[kFiles]["pod-" + uid] = CsiPodManifest(uid, kMounted, ClaimSource(kClaimName));
  PodTruth pod;
  pod.wanted = true;
  pod.volumes[spec].plugin = kCsiPluginName;
  pod.volumes[spec].has_mount = true;
  world.pods[uid] = pod;
}

void RemoveCsiPod(CrashWorld& world, const std::string& uid) {
  world.sources[kFiles].erase("pod-" + uid);
  world.pods.at(uid).wanted = false;
}

ScenarioStep Comes(const std::string& uid, const std::string& spec = kCsiSpec) {
  return {.name = "pod " + uid + " is applied",
          .happen = [uid, spec](CrashWorld& world) { ApplyCsiPod(world, uid, spec); }};
}

ScenarioStep Writes(const std::string& uid, const std::string& spec = kCsiSpec) {
  return {.name = "pod " + uid + " writes", .happen = [uid, spec](CrashWorld& world) {
            world.PodWritesToDevice(uid, world.VolumePath(uid, spec) + "/" + uid + ".txt",
                                    "of " + uid, kCsiGroup);
          }};
}

ScenarioStep Leaves(const std::string& uid, bool last) {
  return {.name = "pod " + uid + " is removed",
          .happen = [uid](CrashWorld& world) { RemoveCsiPod(world, uid); },
          .gone = {uid},
          .no_devices = last};
}

// The driver, its disk and a claim of it.
ScenarioStep Driver(bool attaches, const std::string& mode = "Filesystem",
                    const std::string& access = "ReadWriteOnce") {
  return {.name = "a driver has a volume, and there is a claim of it",
          .happen = [=](CrashWorld& world) {
            world.csi->attaches = attaches;
            ++world.csi->release;
            CsiTruth::Volume volume;
            volume.one_pod = access == "ReadWriteOncePod";
            AddCsiVolume(world, kHandle, std::move(volume));
            world.sources[kFiles]["driver"] = CsiDriverManifest(attaches);
            world.sources[kFiles]["volume"] = CsiVolumeManifest(mode, access);
          }};
}

Scenario Of(const std::string& name, std::vector<ScenarioStep> before,
            std::vector<ScenarioStep> steps) {
  Scenario scenario{name, std::move(before), std::move(steps)};
  scenario.csi = true;
  return scenario;
}

std::vector<ScenarioStep> TwoPods() {
  return {Comes(kFirst),   Writes(kFirst),        Comes(kSecond),
          Writes(kSecond), Leaves(kFirst, false), Leaves(kSecond, true)};
}

// ---- raw devices

ScenarioStep RawComes(const std::string& uid) {
  return {.name = "pod " + uid + " is applied", .happen = [uid](CrashWorld& world) {
            world.sources[kFiles]["pod-" + uid] =
                CsiPodManifest(uid, kRaw, ClaimSource(kClaimName));
            PodTruth pod;
            pod.wanted = true;
            pod.volumes[kCsiSpec].plugin = kCsiPluginName;
            pod.volumes[kCsiSpec].is_block = true;
            world.pods[uid] = pod;
          }};
}

// ---- volumes that the driver makes

constexpr const char* kMade = "pvc-claim-data";

std::string MadeClaim(const std::string& size) {
  return R"(---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, uid: claim-data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: made
  resources: {requests: {storage: )" +
         size + "}}\n";
}

ScenarioStep Maker() {
  return {.name = "a driver makes volumes, and there is a class of it",
          .happen = [](CrashWorld& world) {
            world.csi->attaches = true;
            world.csi->makes = true;
            ++world.csi->release;
            world.sources[kFiles]["driver"] = CsiDriverManifest(true);
            world.sources[kFiles]["class"] = R"(---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made}
provisioner: disk.example.com
reclaimPolicy: Delete
allowVolumeExpansion: true
)";
          }};
}

ScenarioStep ClaimComes() {
  return {.name = "a claim comes", .happen = [](CrashWorld& world) {
            world.sources[kFiles]["claim-data"] = MadeClaim("1Gi");
          }};
}

ScenarioStep ClaimIsDeleted() {
  return {.name = "the claim is deleted",
          .happen =
              [](CrashWorld& world) {
                world.DeleteByCommand(kFiles, "claim-data",
                                      {ObjectKind::kPersistentVolumeClaim, "default", kClaimName});
              },
          .no_devices = true};
}

ScenarioStep NothingIsMade() {
  return {.name = "the driver has no volume of it", .happen = [](CrashWorld& world) {
            for (const auto& [handle, volume] : world.csi->volumes) {
              world.Violation("volume " + handle + " was not deleted");
            }
          }};
}

// ---- who attaches is somebody else

std::string AttachmentManifest(bool attached) {
  return "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: " +
         CsiAttachmentName(kHandle, kCrashCsiDriver, "n1") +
         "}\nspec: {attacher: disk.example.com, nodeName: n1, source: {persistentVolumeName: "
         "pv-disk}}\nstatus: {attached: " +
         (attached ? "true, attachmentMetadata: {devicePath: " + CsiDeviceOf(kHandle) + "}"
                   : "false") +
         "}\n";
}

void SomebodyAttaches(CrashWorld& world) {
  world.csi->publish_context[kHandle] = CsiDeviceOf(kHandle);
  world.sources[kFiles]["attachment"] = AttachmentManifest(true);
}

}  // namespace

Scenario CsiStagedScenario() {
  return Of("two pods on a staged volume of a CSI driver", {Driver(false)}, TwoPods());
}

Scenario CsiTwoPodsAtOnceScenario() {
  ScenarioStep come{.name = "two pods come",
                    .happen =
                        [](CrashWorld& world) {
                          ApplyCsiPod(world, kFirst, kCsiSpec);
                          ApplyCsiPod(world, kSecond, kCsiSpec);
                        },
                    .settle = std::chrono::minutes(3),
                    .compare = false};
  ScenarioStep have{.name = "both have it",
                    .happen =
                        [](CrashWorld& world) {
                          for (const char* pod : {kFirst, kSecond}) {
                            if (world.kernel->IsMountPoint(world.VolumePath(pod, kCsiSpec)))
                              continue;
                            world.Violation(std::string(pod) + " has no volume");
                          }
                        },
                    .compare = false,
                    .compare_after_reboot = false};
  ScenarioStep leave{.name = "both leave",
                     .happen =
                         [](CrashWorld& world) {
                           RemoveCsiPod(world, kFirst);
                           RemoveCsiPod(world, kSecond);
                         },
                     .settle = std::chrono::minutes(3),
                     .compare = false,
                     .gone = {kFirst, kSecond},
                     .no_devices = true};
  return Of("two pods at once on a volume of a CSI driver", {Driver(false)}, {come, have, leave});
}

Scenario CsiAttachedScenario() {
  return Of("a volume that a CSI driver's controller attaches", {Driver(true)}, TwoPods());
}

Scenario CsiBlockScenario() {
  return Of("a raw block volume of a CSI driver", {Driver(false, "Block")},
            {RawComes(kFirst), RawComes(kSecond), Leaves(kFirst, false), Leaves(kSecond, true)});
}

Scenario CsiProvisionScenario() {
  return Of("a volume that a CSI driver makes", {Maker()},
            {ClaimComes(), Comes(kFirst, kMade), Writes(kFirst, kMade), Leaves(kFirst, true),
             ClaimIsDeleted(), NothingIsMade()});
}

// As ReturnedClaimScenario(): the name by which its volume is made anew is that of the first one,
// and so is the handle.
Scenario CsiReturnedClaimScenario() {
  ScenarioStep again = ClaimComes();
  again.name = "the claim comes again";
  return Of("a claim of a CSI driver's volume that comes again with its uid",
            {Maker(), ClaimComes()},
            {ClaimIsDeleted(), NothingIsMade(), again, Comes(kFirst, kMade), Writes(kFirst, kMade),
             Leaves(kFirst, true), Comes(kSecond, kMade), Writes(kSecond, kMade)});
}

Scenario CsiExpandScenario() {
  ScenarioStep grows{
      .name = "the claim asks for more",
      .happen = [](CrashWorld& world) { world.sources[kFiles]["claim-data"] = MadeClaim("2Gi"); },
      .settle = std::chrono::minutes(5)};
  ScenarioStep grown{.name = "its disk and filesystem have grown", .happen = [](CrashWorld& world) {
                       const std::string handle = std::string("vol-") + kMade;
                       const FakeDevice disk = world.kernel->Device(CsiDeviceOf(handle));
                       const int64_t wanted = int64_t{2} << 30;
                       if (disk.identity.size_bytes < wanted || disk.fs_bytes < wanted) {
                         world.Violation("the volume has not grown");
                       }
                     }};
  return Of("a volume of a CSI driver that grows",
            {Maker(), ClaimComes(), Comes(kFirst, kMade), Writes(kFirst, kMade)},
            {grows, grown, Leaves(kFirst, true)});
}

Scenario CsiInlineScenario() {
  ScenarioStep comes{.name = "a pod with an inline volume comes", .happen = [](CrashWorld& world) {
                       world.sources[kFiles][std::string("pod-") + kFirst] =
                           CsiPodManifest(kFirst, kMounted, "csi: {driver: disk.example.com}");
                       PodTruth pod;
                       pod.wanted = true;
                       pod.volumes["data"].plugin = kCsiPluginName;
                       pod.volumes["data"].has_mount = true;
                       world.pods[kFirst] = pod;
                     }};
  return Of("an inline volume of a CSI driver", {Driver(false)}, {comes, Leaves(kFirst, true)});
}

Scenario CsiOnePodScenario() {
  // The pod that comes later is the first one of its source, and waits all the same.
  return Of("a volume of a CSI driver that one pod has",
            {Driver(false, "Filesystem", "ReadWriteOncePod")},
            {Comes(kSecond), Writes(kSecond), Comes(kFirst), Leaves(kSecond, false), Writes(kFirst),
             Leaves(kFirst, true)});
}

Scenario CsiObjectsScenario() {
  ScenarioStep needs{.name = "the driver has a volume that somebody attaches",
                     .happen = [](CrashWorld& world) {
                       Driver(false).happen(world);
                       world.sources[kFiles]["driver"] = CsiDriverManifest(true);
                       world.sources[kFiles]["attachment"] = AttachmentManifest(false);
                     }};
  ScenarioStep attached{.name = "somebody has attached it", .happen = SomebodyAttaches};
  ScenarioStep detached{.name = "somebody has detached it",
                        .happen =
                            [](CrashWorld& world) {
                              world.csi->publish_context.erase(kHandle);
                              world.sources[kFiles].erase("attachment");
                            },
                        .no_devices = true};
  // While somebody is waited for, how far the agent has come is open.
  ScenarioStep comes = Comes(kFirst);
  comes.compare = false;
  ScenarioStep leaves = Leaves(kFirst, false);
  leaves.compare = false;
  return Of("a volume of a CSI driver that somebody else attaches", {needs},
            {comes, attached, Writes(kFirst), leaves, detached});
}

Scenario CsiDriverAwayScenario() {
  ScenarioStep leaves = Leaves(kFirst, false);
  leaves.gone = {};
  leaves.compare = false;  // how far the teardown has come is open
  ScenarioStep away{.name = "the driver goes away",
                    .happen = [](CrashWorld& world) { world.csi->away = true; },
                    // Whose proof was cut off is uncertain until the driver is back; and after a
                    // reboot nothing is mounted before that.
                    .compare = false};
  ScenarioStep back{.name = "the driver is back",
                    .happen = [](CrashWorld& world) { world.csi->away = false; },
                    .settle = std::chrono::minutes(5),
                    .gone = {kFirst},
                    .no_devices = true};
  return Of("a CSI driver that is away while its pod leaves",
            {Driver(true), Comes(kFirst), Writes(kFirst)}, {away, leaves, back});
}

Scenario CsiUnstagingScenario() {
  ScenarioStep release{.name = "another release of the driver stages nothing",
                       .happen =
                           [](CrashWorld& world) {
                             world.csi->stages = false;
                             ++world.csi->release;
                           },
                       .compare_after_reboot = false};
  // A reboot has unstaged it.
  ScenarioStep second = Comes(kSecond);
  second.compare_after_reboot = false;
  ScenarioStep leaves = Leaves(kFirst, false);
  leaves.compare_after_reboot = false;
  return Of("a CSI driver that comes back without staging",
            {Driver(false), Comes(kFirst), Writes(kFirst)},
            {release, second, leaves, Leaves(kSecond, true), Comes(kOther), Leaves(kOther, true)});
}

}  // namespace volumed
