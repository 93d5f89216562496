// Scenarios in which the content of one volume is deleted, and somebody else's data is near.
#include <string>

#include "mounter/host_directory.h"
#include "plugins/host_path.h"
#include "plugins/local.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kPath = "/srv/outer";
constexpr const char* kPod = "u-first";

std::string VolumeManifest(const std::string& name, const std::string& path,
                           const std::string& policy) {
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
         "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
         "  persistentVolumeReclaimPolicy: " +
         policy + "\n  hostPath: {path: " + path + "}\n";
}

std::string StorageClaim(const std::string& name) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default, uid: claim-" + name +
         "}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + name +
         "\n  resources: {requests: {storage: 1Gi}}\n";
}

std::string StoragePod(const std::string& claim, const std::string& uid = kPod) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid +
         "}\nspec:\n  containers:\n"
         "  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}\n"
         "  volumes:\n  - {name: data, persistentVolumeClaim: {claimName: " +
         claim + "}}\n";
}

void KeepStorage(CrashWorld& world, const std::string& path, const std::string& content) {
  world.kernel->AddFile(path, content);
  world.precious[path] = content;
}

// The sources have a volume that is recycled, and its claim.
void AddRecycled(CrashWorld& world) {
  world.kernel->AddDirectory(kPath);
  world.sources[kFiles]["volume"] = VolumeManifest("outer", kPath, "Recycle");
  world.sources[kFiles]["claim"] = StorageClaim("outer");
}

ScenarioStep PodComes() {
  return {.name = "a pod comes", .happen = [](CrashWorld& world) {
            world.sources[kFiles]["pod"] = StoragePod("outer");
            PodTruth pod;
            pod.wanted = true;
            pod.volumes["outer"].plugin = kHostPathPluginName;
            pod.volumes["outer"].host_path = kPath;
            world.pods[kPod] = pod;
          }};
}

ScenarioStep PodLeaves() {
  return {.name = "the pod leaves",
          .happen =
              [](CrashWorld& world) {
                world.sources[kFiles].erase("pod");
                world.pods.at(kPod).wanted = false;
              },
          .gone = {kPod}};
}

ScenarioStep ClaimIsDeleted() {
  return {.name = "its claim is deleted", .happen = [](CrashWorld& world) {
            world.DeleteByCommand(kFiles, "claim",
                                  {ObjectKind::kPersistentVolumeClaim, "default", "outer"});
          }};
}

constexpr const char* kInnerPath = "/srv/outer/inner";
constexpr const char* kInnerFile = "persistentvolume..inner.json";

// ---- a disk that is not mounted

constexpr const char* kDiskPath = "/srv/disk";
constexpr const char* kLaterPod = "u-later";

void AddPodOfDisk(CrashWorld& world, const std::string& uid) {
  world.sources[kFiles]["pod"] = StoragePod("disk", uid);
  PodTruth pod;
  pod.wanted = true;
  pod.volumes["disk"].plugin = kLocalVolumePluginName;
  world.pods[uid] = pod;
}

std::string DataOfPod(const CrashWorld& world, const std::string& uid) {
  return world.VolumePath(uid, "disk") + "/data.txt";
}

// ---- two loop devices of one file

std::string LocalVolumeManifest(const std::string& name, const std::string& path) {
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
         "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
         "  persistentVolumeReclaimPolicy: Retain\n  local: {path: " +
         path +
         "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
         "operator: In, values: [n1]}]}]}}\n";
}

void AddLoopDevice(CrashWorld& world, const std::string& name, const std::string& path) {
  FakeDevice device;
  device.fs_type = "ext4";
  device.usage = "filesystem";
  device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  device.was_mounted = true;
  device.storage_own = {"ino:9:9"};  // the file of both
  world.kernel->AddDevice(path, device);
  world.devices[name] = path;
  world.sources[kFiles]["volume-" + name] = LocalVolumeManifest(name, path);
  world.sources[kFiles]["claim-" + name] = StorageClaim(name);
}

ScenarioStep PodOfLoopComes(const std::string& name, bool first) {
  return {.name = "a pod of device " + name + " comes",
          .happen =
              [name](CrashWorld& world) {
                const std::string uid = "u-" + name;
                world.sources[kFiles]["pod-" + name] = StoragePod(name, uid);
                PodTruth truth;
                truth.wanted = true;
                truth.volumes[name].plugin = kLocalVolumePluginName;
                truth.volumes[name].has_mount = true;
                world.pods[uid] = truth;
              },
          // After a reboot either of the two may be first, and one that waits may have an intent on
          // record since the agent before.
          .compare = first,
          .compare_after_reboot = false};
}

}  // namespace

Scenario TwinDevicesScenario() {
  ScenarioStep storage{.name = "each of two loop devices of one file is a volume",
                       .happen = [](CrashWorld& world) {
                         AddLoopDevice(world, "one", "/dev/loop1");
                         AddLoopDevice(world, "two", "/dev/loop2");
                       }};
  ScenarioStep leaves{.name = "the first pod leaves",
                      .happen =
                          [](CrashWorld& world) {
                            world.sources[kFiles].erase("pod-one");
                            world.pods.at("u-one").wanted = false;
                          },
                      .settle = std::chrono::minutes(5),
                      .gone = {"u-one"}};
  ScenarioStep looked_at{.name = "the other one has its volume", .happen = [](CrashWorld& world) {
                           if (!world.kernel->IsMountPoint(world.VolumePath("u-two", "two"))) {
                             world.Violation("nobody has the device any more");
                           }
                         }};
  return {"two loop devices of one file",
          {storage},
          {PodOfLoopComes("one", true), PodOfLoopComes("two", false), leaves, looked_at}};
}

Scenario RenamedDirectoryScenario() {
  constexpr const char* kOtherDirectory = "/srv/other";
  ScenarioStep storage{.name = "the sources have a recycled volume and one that is kept",
                       .happen = [](CrashWorld& world) {
                         AddRecycled(world);
                         world.kernel->AddDirectory(kOtherDirectory);
                         world.sources[kFiles]["other"] =
                             VolumeManifest("other", kOtherDirectory, "Retain");
                         world.sources[kFiles]["other-claim"] = StorageClaim("other");
                       }};
  ScenarioStep pod{.name = "a pod of the one that is kept comes", .happen = [](CrashWorld& world) {
                     world.sources[kFiles]["pod"] = StoragePod("other");
                     PodTruth truth;
                     truth.wanted = true;
                     truth.volumes["other"].plugin = kHostPathPluginName;
                     truth.volumes["other"].host_path = kOtherDirectory;
                     world.pods[kPod] = truth;
                   }};
  // The recycled one was never used: nothing is on record that its directory could differ from.
  ScenarioStep renamed{.name = "its directory is renamed to that of the recycled one",
                       .happen = [](CrashWorld& world) {
                         world.kernel->Remove(kPath);
                         world.kernel->Rename(kOtherDirectory, "outer");
                         KeepStorage(world, std::string(kPath) + "/data.txt",
                                     "of the other volume");
                       }};
  return {"a directory that is renamed to another volume's path",
          {storage},
          {pod, PodLeaves(), renamed, ClaimIsDeleted()}};
}

Scenario UnreadableVolumeScenario() {
  ScenarioStep storage{
      .name = "an applied volume lies in another one's directory", .happen = [](CrashWorld& world) {
        AddRecycled(world);
        world.CommandApply(VolumeManifest("inner", kInnerPath, "Retain"));
        KeepStorage(world, std::string(kInnerPath) + "/data.txt", "of the inner volume");
      }};
  ScenarioStep damaged{.name = "its file is damaged", .happen = [](CrashWorld& world) {
                         world.WriteObjectFile(kInnerFile, "{\"kind\": \"Persis");
                       }};
  ScenarioStep again{.name = "it is applied anew", .happen = [](CrashWorld& world) {
                       world.CommandApply(VolumeManifest("inner", kInnerPath, "Retain"));
                     }};
  return {"a volume that nobody can read in another one",
          {storage, PodComes(), PodLeaves(), damaged},
          {ClaimIsDeleted(), again},
          /*applies=*/true};
}

Scenario OwnDirectoriesScenario() {
  ScenarioStep storage{.name = "a manifest directory lies in a recycled volume",
                       .happen = [](CrashWorld& world) {
                         AddRecycled(world);
                         const std::string own = std::string(kPath) + "/manifests";
                         world.own_directories["the manifest directory"] = own;
                         KeepStorage(world, own + "/web.yaml", "a manifest");
                       }};
  return {"a volume around the agent's own directories",
          {storage},
          {PodComes(), PodLeaves(), ClaimIsDeleted()}};
}

Scenario NestedVolumesScenario() {
  ScenarioStep storage{.name = "a volume lies in another one's directory",
                       .happen = [](CrashWorld& world) {
                         AddRecycled(world);
                         const std::string inner = std::string(kPath) + "/inner";
                         world.sources[kFiles]["inner"] = VolumeManifest("inner", inner, "Retain");
                         world.sources[kFiles]["inner-claim"] = StorageClaim("inner");
                         KeepStorage(world, inner + "/data.txt", "of the inner volume");
                       }};
  return {"a volume in another one", {storage}, {PodComes(), PodLeaves(), ClaimIsDeleted()}};
}

Scenario RetainedVolumeScenario() {
  constexpr const char* kInnerPod = "u-inner";
  ScenarioStep storage{
      .name = "a retained volume lies in a recycled one's directory",
      .happen = [](CrashWorld& world) {
        AddRecycled(world);
        world.sources[kFiles]["inner"] = VolumeManifest("inner", kInnerPath, "Retain");
        world.sources[kFiles]["inner-claim"] = StorageClaim("inner");
        KeepStorage(world, std::string(kInnerPath) + "/data.txt", "of the inner volume");
      }};
  ScenarioStep used{.name = "a pod has the inner volume", .happen = [=](CrashWorld& world) {
                      world.sources[kFiles]["inner-pod"] = StoragePod("inner", kInnerPod);
                      PodTruth pod;
                      pod.wanted = true;
                      pod.volumes["inner"].plugin = kHostPathPluginName;
                      pod.volumes["inner"].host_path = kInnerPath;
                      world.pods[kInnerPod] = pod;
                    }};
  ScenarioStep left{.name = "that pod leaves",
                    .happen =
                        [=](CrashWorld& world) {
                          world.sources[kFiles].erase("inner-pod");
                          world.pods.at(kInnerPod).wanted = false;
                        },
                    .gone = {kInnerPod}};
  ScenarioStep claim_ends{
      .name = "the inner volume's claim is deleted", .happen = [](CrashWorld& world) {
        world.DeleteByCommand(kFiles, "inner-claim",
                              {ObjectKind::kPersistentVolumeClaim, "default", "inner"});
      }};
  ScenarioStep volume_ends{
      .name = "the inner volume is deleted",
      .happen =
          [](CrashWorld& world) {
            world.DeleteByCommand(kFiles, "inner", {ObjectKind::kPersistentVolume, "", "inner"});
          },
      .settle = std::chrono::minutes(5)};
  return {"a retained volume in one that is recycled",
          {storage, used, left},
          {PodComes(), PodLeaves(), claim_ends, ClaimIsDeleted(), volume_ends}};
}

Scenario ExchangedDirectoryScenario() {
  ScenarioStep storage{.name = "the sources have a recycled volume", .happen = AddRecycled};
  ScenarioStep exchanged{.name = "an administrator puts another directory there",
                         .happen = [](CrashWorld& world) {
                           world.kernel->Remove(kPath);
                           KeepStorage(world, std::string(kPath) + "/data.txt", "of somebody else");
                         }};
  return {"a directory that is exchanged",
          {storage},
          {PodComes(), PodLeaves(), exchanged, ClaimIsDeleted()}};
}

Scenario MarkedDirectoryScenario() {
  ScenarioStep storage{.name = "the sources have a recycled volume", .happen = AddRecycled};
  ScenarioStep looked_at{.name = "the directory says whose it is", .happen = [](CrashWorld& world) {
                           if (world.kernel->Find(kPath).owner != "claim-outer") {
                             world.Violation("a directory in use lacks its owner's mark");
                           }
                         }};
  // As it is when the records are older than the world: the next claim has had it since.
  ScenarioStep given_on{.name = "it is another claim's", .happen = [](CrashWorld& world) {
                          world.kernel->SetOwner(kPath, "claim-later");
                          KeepStorage(world, std::string(kPath) + "/data.txt",
                                      "of the later claim");
                        }};
  return {"a directory that names another owner",
          {storage},
          {PodComes(), looked_at, PodLeaves(), given_on, ClaimIsDeleted()}};
}

// Its mount point is another directory, and empty.
Scenario UnmountedDiskScenario() {
  ScenarioStep storage{
      .name = "a local volume is a directory of a disk", .happen = [](CrashWorld& world) {
        world.kernel->AddFile(std::string(kDiskPath) + "/data.txt", "of the claim");
        world.sources[kFiles]["volume"] = LocalVolumeManifest("disk", kDiskPath);
        world.sources[kFiles]["claim"] = StorageClaim("disk");
      }};
  ScenarioStep comes{.name = "a pod comes",
                     .happen = [](CrashWorld& world) { AddPodOfDisk(world, kPod); }};
  ScenarioStep unmounted{.name = "the disk is not there, and another pod comes",
                         .happen =
                             [](CrashWorld& world) {
                               world.kernel->Rename(kDiskPath, "aside");
                               world.kernel->AddDirectory(kDiskPath);
                               AddPodOfDisk(world, kLaterPod);
                             },
                         .settle = std::chrono::minutes(3),
                         .compare = false};
  ScenarioStep refused{.name = "the pod has no other directory",
                       .happen =
                           [](CrashWorld& world) {
                             if (world.kernel->IsMountPoint(world.VolumePath(kLaterPod, "disk"))) {
                               world.Violation("a pod has the mount point of an unmounted disk");
                             }
                           },
                       .compare = false};
  ScenarioStep mounted{.name = "the disk is there again",
                       .happen =
                           [](CrashWorld& world) {
                             world.kernel->Remove(kDiskPath);
                             world.kernel->Rename("/srv/aside", "disk");
                           },
                       .settle = std::chrono::minutes(5),
                       .compare = false};
  ScenarioStep has{.name = "the pod has its data",
                   .happen =
                       [](CrashWorld& world) {
                         if (!world.kernel->Exists(DataOfPod(world, kLaterPod))) {
                           world.Violation("a pod lacks the data of its claim");
                         }
                       },
                   .compare = false};
  return {"a disk that is not mounted",
          {storage},
          {comes, PodLeaves(), unmounted, refused, mounted, has}};
}

// Loop devices that come up with each other's file: the node's path is the same, and the storage is
// another claim's.
Scenario ExchangedDeviceScenario() {
  constexpr const char* kLoop = "/dev/loop3";
  const auto become = [](CrashWorld& world, const std::string& file) {
    world.kernel->ChangeDevice(kLoop, [&](FakeDevice& disk) { disk.storage_own = {file}; });
  };
  const auto comes = [](CrashWorld& world, const std::string& uid) {
    std::string manifest = StoragePod("disk", uid);
    const std::string mount = "volumeMounts: [{name: data, mountPath: /data}]";
    manifest.replace(manifest.find(mount), mount.size(),
                     "volumeDevices: [{name: data, devicePath: /dev/xvda}]");
    world.sources[kFiles]["pod-" + uid] = manifest;
    PodTruth pod;
    pod.wanted = true;
    pod.volumes["disk"].plugin = kLocalVolumePluginName;
    pod.volumes["disk"].is_block = true;
    world.pods[uid] = pod;
  };
  ScenarioStep storage{.name = "a block volume is a loop device", .happen = [](CrashWorld& world) {
                         FakeDevice disk;
                         disk.storage_own = {"file:first"};
                         world.kernel->AddDevice(kLoop, disk);
                         world.devices["disk"] = kLoop;
                         world.block_volumes.insert("disk");
                         world.sources[kFiles]["volume"] =
                             LocalVolumeManifest("disk", kLoop) + "  volumeMode: Block\n";
                         world.sources[kFiles]["claim"] =
                             StorageClaim("disk") + "  volumeMode: Block\n";
                       }};
  ScenarioStep first{.name = "a pod comes",
                     .happen = [comes](CrashWorld& world) { comes(world, kPod); }};
  ScenarioStep leaves{.name = "it leaves",
                      .happen =
                          [](CrashWorld& world) {
                            world.sources[kFiles].erase(std::string("pod-") + kPod);
                            world.pods.at(kPod).wanted = false;
                          },
                      .gone = {kPod}};
  ScenarioStep exchanged{.name = "the device has another file, and another pod comes",
                         .happen =
                             [become, comes](CrashWorld& world) {
                               become(world, "file:other");
                               comes(world, kLaterPod);
                             },
                         .settle = std::chrono::minutes(3),
                         .compare = false};
  ScenarioStep refused{.name = "the pod has no other device",
                       .happen =
                           [](CrashWorld& world) {
                             if (world.kernel->IsMountPoint(world.NodePath(kLaterPod, "disk"))) {
                               world.Violation("a pod has another device than its volume's");
                             }
                           },
                       .compare = false};
  ScenarioStep back{.name = "the device has its file again",
                    .happen = [become](CrashWorld& world) { become(world, "file:first"); },
                    .settle = std::chrono::minutes(5),
                    .compare = false};
  ScenarioStep has{.name = "the pod has its device",
                   .happen =
                       [](CrashWorld& world) {
                         if (!world.kernel->IsMountPoint(world.NodePath(kLaterPod, "disk"))) {
                           world.Violation("a pod lacks the device of its claim");
                         }
                       },
                   .compare = false};
  return {"a block device that is exchanged",
          {storage},
          {first, leaves, exchanged, refused, back, has}};
}

}  // namespace volumed
