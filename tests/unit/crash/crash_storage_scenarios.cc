// Scenarios in which the content of one volume is deleted, and somebody else's data is near.
#include <string>

#include "mounter/host_directory.h"
#include "plugins/host_path.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kFiles = "manifests";
constexpr const char* kPath = "/srv/outer";
constexpr const char* kPod = "u-first";

std::string VolumeManifest(const std::string& name, const std::string& path,
                           const std::string& policy) {
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
         "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
         "  persistentVolumeReclaimPolicy: " +
         policy + "\n  hostPath: {path: " + path + "}\n";
}

std::string ClaimManifest(const std::string& name) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default, uid: claim-" + name +
         "}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + name +
         "\n  resources: {requests: {storage: 1Gi}}\n";
}

std::string PodManifest(const std::string& claim) {
  return std::string("---\napiVersion: v1\nkind: Pod\nmetadata: {name: ") + kPod +
         ", namespace: default, uid: " + kPod +
         "}\nspec:\n  containers:\n"
         "  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}\n"
         "  volumes:\n  - {name: data, persistentVolumeClaim: {claimName: " +
         claim + "}}\n";
}

void Keep(CrashWorld& world, const std::string& path, const std::string& content) {
  world.kernel->AddFile(path, content);
  world.precious[path] = content;
}

// The sources have a volume that is recycled, and its claim.
void AddRecycled(CrashWorld& world) {
  world.kernel->AddDirectory(kPath);
  world.sources[kFiles]["volume"] = VolumeManifest("outer", kPath, "Recycle");
  world.sources[kFiles]["claim"] = ClaimManifest("outer");
}

ScenarioStep PodComes() {
  return {.name = "a pod comes", .happen = [](CrashWorld& world) {
            world.sources[kFiles]["pod"] = PodManifest("outer");
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

}  // namespace

Scenario NestedVolumesScenario() {
  ScenarioStep storage{.name = "a volume lies in another one's directory",
                       .happen = [](CrashWorld& world) {
                         AddRecycled(world);
                         const std::string inner = std::string(kPath) + "/inner";
                         world.sources[kFiles]["inner"] = VolumeManifest("inner", inner, "Retain");
                         world.sources[kFiles]["inner-claim"] = ClaimManifest("inner");
                         Keep(world, inner + "/data.txt", "of the inner volume");
                       }};
  return {"a volume in another one", {storage}, {PodComes(), PodLeaves(), ClaimIsDeleted()}};
}

Scenario ExchangedDirectoryScenario() {
  ScenarioStep storage{.name = "the sources have a recycled volume", .happen = AddRecycled};
  ScenarioStep exchanged{.name = "an administrator puts another directory there",
                         .happen = [](CrashWorld& world) {
                           world.kernel->Remove(kPath);
                           Keep(world, std::string(kPath) + "/data.txt", "of somebody else");
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
                          Keep(world, std::string(kPath) + "/data.txt", "of the later claim");
                        }};
  return {"a directory that names another owner",
          {storage},
          {PodComes(), looked_at, PodLeaves(), given_on, ClaimIsDeleted()}};
}

}  // namespace volumed
