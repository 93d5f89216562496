// Operations that have to do with each other and run at the same time: two volumes on one disk, two
// pods on one claim, set-up beside teardown, a volume that is emptied beside the set-up of another.
#include <string>
#include <vector>

#include "plugins/host_path.h"
#include "plugins/local.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kDisk = "/dev/vdb";
constexpr const char* kOuter = "/srv/outer";
constexpr const char* kInner = "/srv/outer/inner";
constexpr const char* kThird = "u-third";
constexpr auto kRefusedTries = std::chrono::minutes(10);

enum class Mode { kFilesystem, kBlock };

std::string VolumeManifest(const std::string& name, const std::string& policy,
                           const std::string& source, Mode mode = Mode::kFilesystem) {
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
         "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
         "  persistentVolumeReclaimPolicy: " +
         policy + "\n  " + source + "\n" + (mode == Mode::kBlock ? "  volumeMode: Block\n" : "");
}

std::string OnDisk() {
  return std::string("local: {path: ") + kDisk +
         "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: "
         "[{key: metadata.name, operator: In, values: [n1]}]}]}}";
}

std::string InDirectory(const std::string& path) {
  return "hostPath: {path: " + path + ", type: DirectoryOrCreate}";
}

std::string OverlapClaim(const std::string& volume, Mode mode) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + volume +
         ", namespace: default, uid: claim-" + volume +
         "}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + volume +
         "\n  resources: {requests: {storage: 1Gi}}\n" +
         (mode == Mode::kBlock ? "  volumeMode: Block\n" : "");
}

std::string OverlapPod(const std::string& uid, const std::string& volume, Mode mode) {
  const std::string use = mode == Mode::kBlock
                              ? "volumeDevices: [{name: data, devicePath: /dev/xvda}]"
                              : "volumeMounts: [{name: data, mountPath: /data}]";
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid +
         "}\nspec:\n  securityContext: {fsGroup: 3000}\n  containers:\n  - {name: main, image: "
         "x, " +
         use + "}\n  volumes:\n  - {name: data, " + volume + "}\n";
}

std::string OfClaim(const std::string& claim) {
  return "persistentVolumeClaim: {claimName: " + claim + "}";
}

void AddOnDisk(CrashWorld& world, const std::string& volume, Mode mode = Mode::kFilesystem) {
  world.devices[volume] = kDisk;
  if (mode == Mode::kBlock) world.block_volumes.insert(volume);
  world.sources[kFiles]["volume-" + volume] = VolumeManifest(volume, "Retain", OnDisk(), mode);
  world.sources[kFiles]["claim-" + volume] = OverlapClaim(volume, mode);
}

void AddPod(CrashWorld& world, const std::string& uid, const std::string& volume,
            Mode mode = Mode::kFilesystem) {
  world.sources[kFiles]["pod-" + uid] = OverlapPod(uid, OfClaim(volume), mode);
  PodTruth pod;
  pod.wanted = true;
  VolumeTruth& truth = pod.volumes[volume];
  truth.plugin = kLocalVolumePluginName;
  truth.is_block = mode == Mode::kBlock;
  truth.has_mount = !truth.is_block;
  if (!truth.is_block) truth.first_write = "of " + uid;
  world.pods[uid] = pod;
}

void RemovePod(CrashWorld& world, const std::string& uid) {
  world.sources[kFiles].erase("pod-" + uid);
  world.pods.at(uid).wanted = false;
}

bool HasIt(const CrashWorld& world, const std::string& uid) {
  for (const auto& [spec, volume] : world.pods.at(uid).volumes) {
    if (!volume.established) return false;
  }
  return true;
}

ScenarioStep Disk(const std::vector<std::string>& volumes) {
  return {.name = "the sources have volumes on a disk", .happen = [volumes](CrashWorld& world) {
            world.kernel->AddDevice(kDisk);
            for (const std::string& volume : volumes) AddOnDisk(world, volume);
          }};
}

ScenarioStep Both(const std::string& name, const std::function<void(CrashWorld&)>& happen) {
  return {.name = name, .happen = happen, .settle = std::chrono::minutes(3), .compare = false};
}

ScenarioStep BothHaveIt() {
  return {.name = "both have it",
          .happen =
              [](CrashWorld& world) {
                for (const char* pod : {kFirst, kSecond}) {
                  if (!HasIt(world, pod)) world.Violation(std::string(pod) + " has no volume");
                }
                if (world.kernel->Device(kDisk).formats > 1) {
                  world.Violation("the disk was formatted twice");
                }
              },
          .compare = false,
          .compare_after_reboot = false};
}

ScenarioStep BothLeave() {
  return {.name = "both leave",
          .happen =
              [](CrashWorld& world) {
                RemovePod(world, kFirst);
                RemovePod(world, kSecond);
              },
          .compare = false,
          .gone = {kFirst, kSecond},
          .no_devices = true};
}

// ---- a directory --------------------------------------------------------------------------------

void AddDirectoryPod(CrashWorld& world, const std::string& uid, const std::string& spec,
                     const std::string& path, const std::string& volume) {
  world.sources[kFiles]["pod-" + uid] = OverlapPod(uid, volume, Mode::kFilesystem);
  PodTruth pod;
  pod.wanted = true;
  VolumeTruth& truth = pod.volumes[spec];
  truth.plugin = kHostPathPluginName;
  truth.host_path = path;
  truth.first_write = "of " + uid;
  world.pods[uid] = pod;
}

ScenarioStep Directory() {
  return {.name = "the sources have a volume that is recycled", .happen = [](CrashWorld& world) {
            world.kernel->AddDirectory(kOuter);
            world.sources[kFiles]["volume-outer"] =
                VolumeManifest("outer", "Recycle", InDirectory(kOuter));
            world.sources[kFiles]["claim-outer"] = OverlapClaim("outer", Mode::kFilesystem);
          }};
}

std::vector<ScenarioStep> UsedDirectory() {
  ScenarioStep used{.name = "a pod has it", .happen = [](CrashWorld& world) {
                      AddDirectoryPod(world, kFirst, "outer", kOuter, OfClaim("outer"));
                    }};
  ScenarioStep left{.name = "and leaves",
                    .happen = [](CrashWorld& world) { RemovePod(world, kFirst); },
                    .gone = {kFirst}};
  return {Directory(), used, left};
}

void DeleteOuterClaim(CrashWorld& world) {
  world.DeleteByCommand(kFiles, "claim-outer",
                        {ObjectKind::kPersistentVolumeClaim, "default", "outer"});
}

}  // namespace

Scenario TwoVolumesOnADiskScenario() {
  return {"two volumes on one new disk at once",
          {Disk({"one", "two"})},
          {Both("pods on both come",
                [](CrashWorld& world) {
                  AddPod(world, kFirst, "one");
                  AddPod(world, kSecond, "two");
                }),
           BothHaveIt(), BothLeave()}};
}

Scenario RawAndMountedScenario() {
  ScenarioStep disk{.name = "the sources have a raw and a mounted volume on a disk",
                    .happen = [](CrashWorld& world) {
                      world.kernel->AddDevice(kDisk);
                      AddOnDisk(world, "mounted");
                      AddOnDisk(world, "raw", Mode::kBlock);
                    }};
  ScenarioStep one{.name = "one of them has it",
                   .happen =
                       [](CrashWorld& world) {
                         const int have = HasIt(world, kFirst) + HasIt(world, kSecond);
                         if (have != 1) {
                           world.Violation(std::to_string(have) + " of two have the disk");
                         }
                       },
                   .compare = false};
  // What a pod has had raw is that volume's as long as there is one.
  ScenarioStep leaves = Both("the raw one leaves, and is deleted", [](CrashWorld& world) {
    RemovePod(world, kSecond);
    world.DeleteByCommand(kFiles, "claim-raw",
                          {ObjectKind::kPersistentVolumeClaim, "default", "raw"});
    world.DeleteByCommand(kFiles, "volume-raw", {ObjectKind::kPersistentVolume, "", "raw"});
  });
  leaves.settle = kRefusedTries;
  leaves.gone = {kSecond};
  ScenarioStep other{.name = "the other one has it",
                     .happen =
                         [](CrashWorld& world) {
                           if (!HasIt(world, kFirst)) world.Violation("nobody has the disk");
                         },
                     .compare = false};
  ScenarioStep last{.name = "it leaves",
                    .happen = [](CrashWorld& world) { RemovePod(world, kFirst); },
                    .compare = false,
                    .gone = {kFirst},
                    .no_devices = true};
  return {"a raw and a mounted volume on one disk at once",
          {disk},
          {Both("pods on both come",
                [](CrashWorld& world) {
                  AddPod(world, kFirst, "mounted");
                  AddPod(world, kSecond, "raw", Mode::kBlock);
                }),
           one, leaves, other, last}};
}

Scenario TwoPodsAtOnceScenario() {
  return {"two pods on one claim at once",
          {Disk({"one"})},
          {Both("two pods come",
                [](CrashWorld& world) {
                  AddPod(world, kFirst, "one");
                  AddPod(world, kSecond, "one");
                }),
           BothHaveIt(), BothLeave()}};
}

Scenario TwoPodsOnADirectoryScenario() {
  ScenarioStep come = Both("two pods come", [](CrashWorld& world) {
    AddDirectoryPod(world, kFirst, "outer", kOuter, OfClaim("outer"));
    AddDirectoryPod(world, kSecond, "outer", kOuter, OfClaim("outer"));
  });
  come.compare = true;
  ScenarioStep marked{.name = "the directory says whose it is", .happen = [](CrashWorld& world) {
                        if (world.kernel->Find(kOuter).owner != "claim-outer") {
                          world.Violation("a directory in use lacks its owner's mark");
                        }
                      }};
  ScenarioStep leave = BothLeave();
  leave.compare = true;
  ScenarioStep emptied{
      .name = "its claim is deleted", .happen = DeleteOuterClaim, .settle = kRefusedTries};
  return {"two pods on one directory at once", {Directory()}, {come, marked, leave, emptied}};
}

// From one pod to the next, twice: the device is unmounted, or kept, as it happens.
static Scenario HandOver(const std::string& name, Mode mode) {
  ScenarioStep disk{.name = "the sources have a volume", .happen = [mode](CrashWorld& world) {
                      world.kernel->AddDevice(kDisk);
                      AddOnDisk(world, "one", mode);
                    }};
  ScenarioStep first{.name = "a pod comes",
                     .happen = [mode](CrashWorld& world) { AddPod(world, kFirst, "one", mode); }};
  const auto next = [mode](const char* leaves, const char* comes) {
    ScenarioStep step{.name = std::string(leaves) + " leaves, and " + comes + " comes",
                      .happen =
                          [=](CrashWorld& world) {
                            RemovePod(world, leaves);
                            AddPod(world, comes, "one", mode);
                          },
                      .settle = std::chrono::minutes(3),
                      .gone = {leaves}};
    return step;
  };
  // It leaves as soon as nothing has it any more: its device may be on its way out.
  ScenarioStep leaves{.name = "the pod leaves",
                      .happen = [](CrashWorld& world) { RemovePod(world, kThird); },
                      .scheduler_steps = 40,
                      .compare = false};
  ScenarioStep back{.name = "and another comes",
                    .happen = [mode](CrashWorld& world) { AddPod(world, kFirst, "one", mode); },
                    .settle = std::chrono::minutes(3),
                    .gone = {kThird}};
  ScenarioStep last{.name = "the last one leaves",
                    .happen = [](CrashWorld& world) { RemovePod(world, kFirst); },
                    .gone = {kFirst},
                    .no_devices = true};
  return {name, {disk}, {first, next(kFirst, kSecond), next(kSecond, kThird), leaves, back, last}};
}

Scenario HandOverScenario() { return HandOver("a claim that changes hands", Mode::kFilesystem); }

Scenario RawHandOverScenario() { return HandOver("a raw claim that changes hands", Mode::kBlock); }

// It had its volume until now.
ScenarioStep SecondPodLeaves() {
  return {.name = "the pod leaves",
          .happen =
              [](CrashWorld& world) {
                if (!HasIt(world, kSecond)) world.Violation("the pod has no volume");
                RemovePod(world, kSecond);
              },
          .settle = kRefusedTries,
          .compare = false,
          .gone = {kSecond}};
}

Scenario EmptiedBesideScenario() {
  ScenarioStep both{.name = "its claim is deleted, and a pod comes into it",
                    .happen =
                        [](CrashWorld& world) {
                          DeleteOuterClaim(world);
                          AddDirectoryPod(world, kSecond, "data", kInner, InDirectory(kInner));
                        },
                    .settle = kRefusedTries,
                    .compare = false};
  ScenarioStep emptied{.name = "the volume is empty", .happen = [](CrashWorld& world) {
                         if (world.kernel->Exists(std::string(kOuter) + "/" + kFirst + ".txt")) {
                           world.Violation("a volume was not recycled");
                         }
                       }};
  emptied.compare = false;  // the pod's own directory is older or younger than that
  return {"a volume that is emptied as a pod comes into it",
          UsedDirectory(),
          {both, SecondPodLeaves(), emptied}};
}

// The pod comes when the volume is being emptied, if that is slow, or is empty.
Scenario EmptiedAsAPodComesScenario() {
  ScenarioStep begun{.name = "its claim is deleted",
                     .happen = DeleteOuterClaim,
                     .settle = std::chrono::milliseconds(500),
                     .compare = false};
  ScenarioStep comes{.name = "a pod comes into it",
                     .happen =
                         [](CrashWorld& world) {
                           AddDirectoryPod(world, kSecond, "data", kInner, InDirectory(kInner));
                         },
                     .settle = kRefusedTries,
                     .compare = false};
  ScenarioStep has{.name = "the pod has it",
                   .happen =
                       [](CrashWorld& world) {
                         if (!HasIt(world, kSecond)) world.Violation("the pod has no volume");
                       },
                   .compare = false};
  std::vector<ScenarioStep> before = UsedDirectory();
  ScenarioStep old{.name = "it has more files", .happen = [](CrashWorld& world) {
                     for (const char* name : {"/a.txt", "/b.txt", "/z.txt", "/inner/old.txt"}) {
                       world.kernel->AddFile(std::string(kOuter) + name, "of the first pod");
                     }
                   }};
  before.push_back(old);
  ScenarioStep quiet{.name = "the agent has heard of all sources", .happen = {}};
  return {"a pod that comes amid the emptying", before, {quiet, begun, comes, has}};
}

Scenario EmptiedBesideVolumeScenario() {
  ScenarioStep both{.name = "its claim is deleted, and another volume in it comes with its pod",
                    .happen =
                        [](CrashWorld& world) {
                          DeleteOuterClaim(world);
                          world.sources[kFiles]["volume-inner"] =
                              VolumeManifest("inner", "Retain", InDirectory(kInner));
                          world.sources[kFiles]["claim-inner"] =
                              OverlapClaim("inner", Mode::kFilesystem);
                          AddDirectoryPod(world, kSecond, "inner", kInner, OfClaim("inner"));
                          world.pods.at(kSecond).volumes.at("inner").first_write_stays = true;
                        },
                    .settle = kRefusedTries,
                    .compare = false};
  return {"a volume that is emptied as another comes into it",
          UsedDirectory(),
          {both, SecondPodLeaves()}};
}

std::vector<Scenario> OverlapScenarios() {
  return {TwoVolumesOnADiskScenario(),  RawAndMountedScenario(),
          TwoPodsAtOnceScenario(),      TwoPodsOnADirectoryScenario(),
          HandOverScenario(),           RawHandOverScenario(),
          EmptiedBesideScenario(),      EmptiedBesideVolumeScenario(),
          EmptiedAsAPodComesScenario(), CsiTwoPodsAtOnceScenario()};
}

}  // namespace volumed
