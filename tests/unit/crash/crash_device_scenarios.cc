// Scenarios with persistent volumes: claims, devices that pods share, formats, checks, recycling.
#include <string>

#include "fakes/fake_scsi_tree.h"
#include "plugins/host_path.h"
#include "plugins/local.h"
#include "unit/crash/crash_devices.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kDisk = "/dev/vdb";
constexpr const char* kVolume = "disk";
constexpr const char* kArrayVolume = "lun";
constexpr const char* kFcVolume = "fabric";
constexpr const char* kArrayDisk = "/dev/array/lun";
constexpr const char* kScratchVolume = "scratch";
constexpr const char* kScratchPath = "/srv/scratch";
constexpr uint32_t kFsGroup = 3000;
const ObjectKey kDataClaim{ObjectKind::kPersistentVolumeClaim, "default", "data"};

std::string PersistentVolumeManifest(const std::string& size = "1Gi") {
  return std::string("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: ") + kVolume +
         "}\nspec:\n  capacity: {storage: " + size + R"(}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: /dev/vdb}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}
)";
}

std::string RecycledVolumeManifest() {
  return std::string("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: ") +
         kScratchVolume + R"(}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Recycle
  hostPath: {path: /srv/scratch}
)";
}

std::string DeviceClaim(const std::string& name) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default, uid: claim-" + name + R"(}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
)";
}

std::string DevicePod(const std::string& uid, const std::string& claim, bool read_only = false) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid + R"(}
spec:
  securityContext: {fsGroup: 3000}
  containers:
  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: )" +
         claim + (read_only ? ", readOnly: true" : "") + "}}\n";
}

// A manifest that ends within its spec, with volumeMode Block.
std::string AsBlock(const std::string& manifest) { return manifest + "  volumeMode: Block\n"; }

std::string DeviceBlockPod(const std::string& uid, const std::string& claim) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid + R"(}
spec:
  containers:
  - {name: main, image: x, volumeDevices: [{name: data, devicePath: /dev/xvda}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: )" +
         claim + "}}\n";
}

PodTruth DiskTruth() {
  PodTruth pod;
  pod.wanted = true;
  pod.volumes[kVolume].plugin = kLocalVolumePluginName;
  pod.volumes[kVolume].has_mount = true;
  return pod;
}

void ApplyPod(CrashWorld& world, const std::string& uid) {
  world.sources[kFiles]["pod-" + uid] = DevicePod(uid, "data");
  world.pods[uid] = DiskTruth();
}

void RemovePod(CrashWorld& world, const std::string& uid) {
  world.sources[kFiles].erase("pod-" + uid);
  world.pods.at(uid).wanted = false;
}

ScenarioStep Storage(FakeDevice device) {
  return {.name = "the sources have a volume and a claim", .happen = [device](CrashWorld& world) {
            world.devices[kVolume] = kDisk;
            world.kernel->AddDevice(kDisk, device);
            world.sources[kFiles]["volume"] = PersistentVolumeManifest();
            world.sources[kFiles]["claim"] = DeviceClaim("data");
          }};
}

ScenarioStep Apply(const std::string& uid) {
  return {.name = "pod " + uid + " is applied",
          .happen = [uid](CrashWorld& world) { ApplyPod(world, uid); }};
}

ScenarioStep Write(const std::string& uid) {
  return {.name = "pod " + uid + " writes", .happen = [uid](CrashWorld& world) {
            world.PodWritesToDevice(uid, world.VolumePath(uid, kVolume) + "/" + uid + ".txt",
                                    "of " + uid, kFsGroup);
          }};
}

ScenarioStep RemoveDevicePod(const std::string& uid, bool last) {
  return {.name = "pod " + uid + " is removed",
          .happen = [uid](CrashWorld& world) { RemovePod(world, uid); },
          .gone = {uid},
          .no_devices = last};
}

FakeDevice Existing(CheckResult damage) {
  FakeDevice device;
  device.fs_type = "ext4";
  device.usage = "filesystem";
  device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  device.was_mounted = true;
  device.damage = damage;
  return device;
}

// Nothing is done to the disk until somebody has had a hand in it.
Scenario RefusedFormat(const std::string& name, const FakeDevice& device,
                       const std::function<void(FakeDevice&)>& by_hand) {
  ScenarioStep apply = Apply(kFirst);
  apply.name += ", and its format does not end well";
  ScenarioStep hand{.name = "somebody sees to the disk",
                    .happen =
                        [by_hand](CrashWorld& world) {
                          if (world.kernel->IsMountPoint(world.VolumePath(kFirst, kVolume))) {
                            world.Violation("a disk is mounted whose format is not proven");
                          }
                          world.kernel->ChangeDevice(kDisk, by_hand);
                        },
                    .settle = std::chrono::minutes(5)};
  return {name, {Storage(device)}, {apply, hand, Write(kFirst), RemoveDevicePod(kFirst, true)}};
}

ScenarioStep ArrayStorage() {
  return {.name = "the sources have a volume of an array, and a claim",
          .happen = [](CrashWorld& world) {
            world.devices[kArrayVolume] = kArrayDisk;
            world.array.disks[kArrayVolume] = kArrayDisk;
            world.kernel->AddDevice(kArrayDisk, Existing(CheckResult::kClean));
            world.kernel->Remove(kArrayDisk);  // until it is attached
            world.sources[kFiles]["volume"] =
                std::string(
                    "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: lun}\nspec:\n"
                    "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
                    "  persistentVolumeReclaimPolicy: Retain\n  flexVolume: {driver: ") +
                kFakeArrayPlugin + "}\n";
            world.sources[kFiles]["claim"] = DeviceClaim("data");
          }};
}

ScenarioStep ApplyToArray(const std::string& uid) {
  return {.name = "pod " + uid + " is applied", .happen = [uid](CrashWorld& world) {
            world.sources[kFiles]["pod-" + uid] = DevicePod(uid, "data");
            PodTruth pod;
            pod.wanted = true;
            pod.volumes[kArrayVolume].plugin = kFakeArrayPlugin;
            pod.volumes[kArrayVolume].has_mount = true;
            world.pods[uid] = pod;
          }};
}

ScenarioStep WriteToArray(const std::string& uid) {
  return {.name = "pod " + uid + " writes", .happen = [uid](CrashWorld& world) {
            world.PodWritesToDevice(uid, world.VolumePath(uid, kArrayVolume) + "/" + uid + ".txt",
                                    "of " + uid, kFsGroup);
          }};
}

// Two paths to one LUN, and the multipath device of them.
ScenarioStep FcStorage() {
  return {.name = "the sources have a LUN of Fibre Channel, and a claim",
          .happen = [](CrashWorld& world) {
            FakeScsiTree tree(*world.kernel);
            tree.AddHost(3);
            tree.AddRemotePort("rport-3:0-0", "0x500a0982991b8dc5");
            tree.AddRemotePort("rport-3:0-1", "0x500a0982891b8dc5");
            tree.AddDisk({.name = "sdb", .address = "3:0:0:1"});
            tree.AddDisk({.name = "sdc", .address = "3:0:1:1", .rport = "rport-3:0-1"});
            tree.AddMap("dm-0", "mpatha", "mpath-36001405a1b2c3d4e", {"sdb", "sdc"});
            tree.AddMultipathTools(std::make_shared<FakeMultipathTools>());
            world.fc_volumes[kFcVolume] = {{"500a0982991b8dc5"}, 1, {}};
            world.fc_disks = {"dm-0", "sdb", "sdc"};
            world.devices[kFcVolume] = "/dev/dm-0";
            world.sources[kFiles]["volume"] =
                std::string("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: ") +
                kFcVolume +
                "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
                "  persistentVolumeReclaimPolicy: Retain\n"
                "  fc: {targetWWNs: [\"500a0982991b8dc5\"], lun: 1}\n";
            world.sources[kFiles]["claim"] = DeviceClaim("data");
          }};
}

ScenarioStep ApplyToFc(const std::string& uid) {
  return {.name = "pod " + uid + " is applied", .happen = [uid](CrashWorld& world) {
            world.sources[kFiles]["pod-" + uid] = DevicePod(uid, "data");
            PodTruth pod;
            pod.wanted = true;
            pod.volumes[kFcVolume].plugin = kFcPluginName;
            pod.volumes[kFcVolume].has_mount = true;
            world.pods[uid] = pod;
          }};
}

ScenarioStep WriteToFc(const std::string& uid) {
  return {.name = "pod " + uid + " writes", .happen = [uid](CrashWorld& world) {
            world.PodWritesToDevice(uid, world.VolumePath(uid, kFcVolume) + "/" + uid + ".txt",
                                    "of " + uid, kFsGroup);
          }};
}

}  // namespace

Scenario AttachScenario() {
  return {"two pods on a disk of an array",
          {ArrayStorage()},
          {ApplyToArray(kFirst), WriteToArray(kFirst), ApplyToArray(kSecond), WriteToArray(kSecond),
           RemoveDevicePod(kFirst, false), RemoveDevicePod(kSecond, true)}};
}

Scenario ShortAttachScenario() {
  constexpr int kAmidTheAttach = 12;
  ScenarioStep quiet{.name = "the agent has heard of all sources", .happen = {}};
  ScenarioStep begun = ApplyToArray(kFirst);
  begun.scheduler_steps = kAmidTheAttach;
  begun.compare = false;
  // How far the first mount comes, and so whether it makes these, is open.
  ScenarioStep places{.name = "the plugin has its directories", .happen = [](CrashWorld& world) {
                        world.kernel->AddDirectory(
                            world.paths.GetPluginDir(kFakeArrayPlugin).Display() + "/mounts");
                      }};
  return {"a short attach",
          {ArrayStorage(), places},
          {quiet, begun, RemoveDevicePod(kFirst, true), ApplyToArray(kFirst),
           RemoveDevicePod(kFirst, true)}};
}

Scenario FcScenario() {
  return {"two pods on a LUN of Fibre Channel",
          {FcStorage()},
          {ApplyToFc(kFirst), WriteToFc(kFirst), ApplyToFc(kSecond), WriteToFc(kSecond),
           RemoveDevicePod(kFirst, false), RemoveDevicePod(kSecond, true)}};
}

Scenario DeviceScenario() {
  return {"two pods on a new disk",
          {Storage(FakeDevice())},
          {Apply(kFirst), Write(kFirst), Apply(kSecond), Write(kSecond),
           RemoveDevicePod(kFirst, false), RemoveDevicePod(kSecond, true)}};
}

// Without a group: the disk is given to that of whoever is set up first, and a reboot may change
// who that is.
Scenario JoiningWriterScenario() {
  const auto apply = [](const std::string& uid, bool read_only) {
    return ScenarioStep{.name = "pod " + uid + " is applied",
                        .happen = [uid, read_only](CrashWorld& world) {
                          std::string pod = DevicePod(uid, "data", read_only);
                          const std::string group = "  securityContext: {fsGroup: 3000}\n";
                          pod.erase(pod.find(group), group.size());
                          world.sources[kFiles]["pod-" + uid] = pod;
                          world.pods[uid] = DiskTruth();
                        }};
  };
  const ScenarioStep check{.name = "who may write is looked at", .happen = [](CrashWorld& world) {
                             for (const MountEntry& mount : world.kernel->Mounts()) {
                               for (const char* pod : {kFirst, kSecond}) {
                                 if (!world.pods.contains(pod)) continue;
                                 if (mount.mount_point != world.VolumePath(pod, kVolume)) continue;
                                 if (mount.read_only() == (pod == kFirst)) continue;
                                 world.Violation(mount.mount_point + " is of the wrong kind");
                               }
                             }
                           }};
  return {"a reader, and a writer that joins",
          {Storage(Existing(CheckResult::kClean))},
          {apply(kFirst, true), check, apply(kSecond, false), check, Write(kSecond),
           RemoveDevicePod(kFirst, false), RemoveDevicePod(kSecond, true)}};
}

Scenario BindingScenario() {
  return {"a claim that is bound",
          {},
          {Storage(FakeDevice()), Apply(kFirst), RemoveDevicePod(kFirst, true)}};
}

Scenario CutFormatScenario() {
  FakeDevice device;
  device.cut_next_format = true;
  ScenarioStep storage = Storage(device);
  storage.happen = [before = storage.happen](CrashWorld& world) {
    before(world);
    std::string& volume = world.sources[kFiles]["volume"];
    const std::string path = "{path: /dev/vdb";
    volume.insert(volume.find(path) + path.size(), ", fsType: xfs");
  };
  ScenarioStep apply = Apply(kFirst);
  apply.name += ", and its format is cut off";
  return {
      "a format that is cut off", {storage}, {apply, Write(kFirst), RemoveDevicePod(kFirst, true)}};
}

Scenario LostFormatScenario() {
  FakeDevice device;
  device.cut_next_format = true;
  return RefusedFormat("a format that leaves no mark", device,
                       [](FakeDevice& disk) { disk.data.clear(); });
}

Scenario HalfFormatScenario() {
  FakeDevice device;
  device.unheard_next_format = CheckResult::kUncorrected;
  return RefusedFormat("a format that is not whole", device,
                       [](FakeDevice& disk) { disk.damage = CheckResult::kClean; });
}

Scenario CheckedDiskScenario() {
  return {"a disk that needs a check",
          {Storage(Existing(CheckResult::kFixed))},
          {Apply(kFirst), Write(kFirst), RemoveDevicePod(kFirst, true), Apply(kSecond)}};
}

Scenario ReleasedClaimScenario() {
  ScenarioStep released{.name = "the pod is removed, and the claim deleted",
                        .happen =
                            [](CrashWorld& world) {
                              RemovePod(world, kFirst);
                              world.DeleteByCommand(kFiles, "claim", kDataClaim);
                            },
                        .gone = {kFirst},
                        .no_devices = true};
  // Its volume holds another one's data: it gets none.
  ScenarioStep next{.name = "another claim comes", .happen = [](CrashWorld& world) {
                      world.sources[kFiles]["claim"] = DeviceClaim("next");
                    }};
  ScenarioStep gone{
      .name = "the volume is deleted", .happen = [](CrashWorld& world) {
        world.DeleteByCommand(kFiles, "volume", {ObjectKind::kPersistentVolume, "", kVolume});
      }};
  return {"a claim that leaves",
          {Storage(FakeDevice())},
          {Apply(kFirst), Write(kFirst), released, next, gone}};
}

Scenario ExpandScenario() {
  FakeDevice device;
  device.identity.size_bytes = int64_t{1} << 30;
  device.identity.stable_id = "serial:2";
  const auto grow = [](int64_t gib, const std::string& how) {
    return ScenarioStep{.name = "disk and volume grow " + how, .happen = [gib](CrashWorld& world) {
                          world.kernel->ChangeDevice(kDisk, [gib](FakeDevice& disk) {
                            if (disk.fs_bytes == 0) disk.fs_bytes = disk.identity.size_bytes;
                            disk.identity.size_bytes = gib << 30;
                          });
                          world.sources[kFiles]["volume"] =
                              PersistentVolumeManifest(std::to_string(gib) + "Gi");
                        }};
  };
  const auto look = [](int64_t gib) {
    return ScenarioStep{.name = "it is looked at", .happen = [gib](CrashWorld& world) {
                          if (world.kernel->Device(kDisk).fs_bytes != gib << 30) {
                            world.Violation("the filesystem did not grow");
                          }
                          if (ClaimedBytes(world, kVolume) != gib << 30) {
                            world.Violation("the claim does not have the size of its volume");
                          }
                        }};
  };
  return {"a volume that is made larger",
          {Storage(device)},
          {Apply(kFirst), Write(kFirst), grow(2, "in use"), look(2), RemoveDevicePod(kFirst, true),
           grow(3, "unused"), Apply(kSecond), look(3)}};
}

Scenario RecycleScenario() {
  ScenarioStep storage{.name = "the sources have a volume to be recycled",
                       .happen = [](CrashWorld& world) {
                         world.kernel->AddDirectory(kScratchPath);
                         world.sources[kFiles]["volume"] = RecycledVolumeManifest();
                         world.sources[kFiles]["claim"] = DeviceClaim("data");
                       }};
  ScenarioStep apply{.name = "a pod is applied", .happen = [](CrashWorld& world) {
                       world.sources[kFiles]["pod"] = DevicePod(kFirst, "data");
                       PodTruth pod;
                       pod.wanted = true;
                       pod.volumes[kScratchVolume].plugin = kHostPathPluginName;
                       pod.volumes[kScratchVolume].host_path = kScratchPath;
                       world.pods[kFirst] = pod;
                     }};
  ScenarioStep write{.name = "it writes", .happen = [](CrashWorld& world) {
                       world.PodWrites(kFirst, std::string(kScratchPath) + "/a/data.txt", "x", 0,
                                       false);
                     }};
  // A new agent does not find the claim any more: its row says ended at once, and its volume is
  // held by the pod alone. What that is worth shows when the pod leaves.
  ScenarioStep claim_leaves{
      .name = "its claim is deleted first",
      .happen = [](CrashWorld& world) { world.DeleteByCommand(kFiles, "claim", kDataClaim); },
      .compare = false};
  ScenarioStep leaves{.name = "the pod leaves",
                      .happen =
                          [](CrashWorld& world) {
                            world.sources[kFiles].erase("pod");
                            world.pods.at(kFirst).wanted = false;
                          },
                      .gone = {kFirst}};
  ScenarioStep next{.name = "another claim comes, and its pod", .happen = [](CrashWorld& world) {
                      if (world.kernel->Exists(std::string(kScratchPath) + "/a")) {
                        world.Violation("a volume was not recycled");
                      }
                      world.sources[kFiles]["claim"] = DeviceClaim("next");
                      world.sources[kFiles]["pod"] = DevicePod(kSecond, "next");
                      world.pods[kSecond] = world.pods.at(kFirst);
                      world.pods[kSecond].wanted = true;
                      world.pods[kSecond].data.clear();
                    }};
  ScenarioStep writes_too{.name = "that one writes", .happen = [](CrashWorld& world) {
                            world.PodWrites(kSecond, std::string(kScratchPath) + "/b.txt", "y", 0,
                                            false);
                          }};
  return {"a recycled volume", {storage}, {apply, write, claim_leaves, leaves, next, writes_too}};
}

// The points after the second claim's data is there: older records say that the volume is the first
// one's, or is being emptied.
Scenario ReusedVolumeScenario() {
  Scenario scenario = RecycleScenario();
  scenario.name = "a recycled volume that another claim has";
  ScenarioStep leaves{.name = "the pod of the second claim leaves",
                      .happen =
                          [](CrashWorld& world) {
                            world.sources[kFiles].erase("pod");
                            world.pods.at(kSecond).wanted = false;
                          },
                      .gone = {kSecond}};
  ScenarioStep back{.name = "another pod of it comes", .happen = [](CrashWorld& world) {
                      world.sources[kFiles]["pod"] = DevicePod("u-third", "next");
                      world.pods["u-third"] = world.pods.at(kFirst);
                      world.pods["u-third"].wanted = true;
                      world.pods["u-third"].data.clear();
                    }};
  scenario.steps.push_back(leaves);
  scenario.steps.push_back(back);
  return scenario;
}

Scenario BlockScenario() {
  const auto apply = [](const std::string& uid) {
    return ScenarioStep{.name = "pod " + uid + " is applied", .happen = [uid](CrashWorld& world) {
                          world.sources[kFiles]["pod-" + uid] = DeviceBlockPod(uid, "data");
                          PodTruth pod;
                          pod.wanted = true;
                          pod.volumes[kVolume].plugin = kLocalVolumePluginName;
                          pod.volumes[kVolume].is_block = true;
                          world.pods[uid] = pod;
                        }};
  };
  ScenarioStep storage{.name = "the sources have a block volume and a claim",
                       .happen = [](CrashWorld& world) {
                         world.devices[kVolume] = kDisk;
                         world.block_volumes.insert(kVolume);
                         world.kernel->AddDevice(kDisk);
                         world.kernel->AddDevice(kOtherBlockDevice);
                         world.sources[kFiles]["volume"] = AsBlock(PersistentVolumeManifest());
                         world.sources[kFiles]["claim"] = AsBlock(DeviceClaim("data"));
                       }};
  ScenarioStep first_leaves = RemoveDevicePod(kFirst, false);
  first_leaves.name += ", which has a kubelet's loop device";
  first_leaves.happen = [](CrashWorld& world) {
    world.kernel->AddLoop(world.NodePath(kFirst, kVolume));
    RemovePod(world, kFirst);
  };
  return {"two pods on a raw block volume",
          {storage},
          {apply(kFirst), apply(kSecond), first_leaves, RemoveDevicePod(kSecond, true)}};
}

}  // namespace volumed
