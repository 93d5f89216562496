// Scenarios with a volume of the node's own pool, which is made for a claim.
#include <chrono>
#include <string>
#include <vector>

#include "pool/pool_plugin.h"
#include "unit/crash/crash_devices.h"
#include "unit/crash/crash_pools.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kClaimOfPool = "claim-data";  // its manifest, and its uid
constexpr uint32_t kGroupOfPod = 3000;
constexpr int64_t kGrownBytes = int64_t{64} << 20;
const ObjectKey kDataOfPool{ObjectKind::kPersistentVolumeClaim, "default", "data"};

std::string PoolClass() {
  return std::string(R"(---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: )") +
         kCrashPoolDriver + "\nreclaimPolicy: Delete\nallowVolumeExpansion: true\n";
}

std::string PoolClaim(const std::string& size) {
  return R"(---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, uid: claim-data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: )" +
         size + "}}\n";
}

std::string PodOnPool(const std::string& uid) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid + R"(}
spec:
  securityContext: {fsGroup: 3000}
  containers:
  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
)";
}

Scenario OnPool(const std::string& name, std::vector<ScenarioStep> before,
                std::vector<ScenarioStep> steps) {
  Scenario scenario{name, std::move(before), std::move(steps)};
  scenario.pool = true;
  return scenario;
}

ScenarioStep ClassOfPool() {
  return {.name = "there is a class of the pool",
          .happen = [](CrashWorld& world) { world.sources[kFiles]["class"] = PoolClass(); }};
}

ScenarioStep ClaimOnPool() {
  return {.name = "a claim comes", .happen = [](CrashWorld& world) {
            world.sources[kFiles][kClaimOfPool] = PoolClaim("32Mi");
          }};
}

ScenarioStep PodOnPoolComes() {
  return {.name = "its pod comes", .happen = [](CrashWorld& world) {
            world.sources[kFiles][std::string("pod-") + kFirst] = PodOnPool(kFirst);
            PodTruth pod;
            pod.wanted = true;
            pod.volumes[kCrashPoolVolume].plugin = kPoolPluginName;
            pod.volumes[kCrashPoolVolume].has_mount = true;
            world.pods[kFirst] = pod;
          }};
}

std::string NoteOnPool(const CrashWorld& world) {
  return world.VolumePath(kFirst, kCrashPoolVolume) + "/note.txt";
}

ScenarioStep PodOnPoolLeaves() {
  return {.name = "the pod leaves",
          .happen =
              [](CrashWorld& world) {
                world.sources[kFiles].erase(std::string("pod-") + kFirst);
                world.pods.at(kFirst).wanted = false;
              },
          .gone = {kFirst},
          .no_devices = true};
}

ScenarioStep NothingIsInPool() {
  return {.name = "nothing is left in the pool",
          .happen =
              [](CrashWorld& world) {
                const std::string volumes = std::string(kCrashPool) + "/volumes";
                const std::string tree = world.kernel->DumpTree(volumes);
                if (tree.find(volumes + "/") == std::string::npos &&
                    !PoolVolumeNamed(world, kCrashPoolVolume)) {
                  return;
                }
                world.Violation("the pool's volume was not deleted");
              },
          .no_devices = true};
}

}  // namespace

Scenario PoolScenario() {
  ScenarioStep writes{.name = "it writes", .happen = [](CrashWorld& world) {
                        world.PodWritesToDevice(kFirst, NoteOnPool(world), "of the pod",
                                                kGroupOfPod);
                      }};
  ScenarioStep grows{
      .name = "the claim asks for more",
      .happen = [](CrashWorld& world) { world.sources[kFiles][kClaimOfPool] = PoolClaim("64Mi"); },
      .settle = std::chrono::minutes(5)};
  ScenarioStep grown{
      .name = "it is looked at", .happen = [](CrashWorld& world) {
        const FakeDevice device = world.kernel->Device(kCrashPoolDevice);
        if (device.identity.size_bytes != kGrownBytes || device.fs_bytes != kGrownBytes) {
          world.Violation("the volume has not grown");
        }
        if (ClaimedBytes(world, kCrashPoolVolume) != kGrownBytes) {
          world.Violation("the claim does not have the size of its volume");
        }
      }};
  ScenarioStep deleted{.name = "the claim is deleted", .happen = [](CrashWorld& world) {
                         world.DeleteByCommand(kFiles, kClaimOfPool, kDataOfPool);
                       }};
  return OnPool("a volume of a pool", {ClassOfPool()},
                {ClaimOnPool(), PodOnPoolComes(), writes, grows, grown, PodOnPoolLeaves(), deleted,
                 NothingIsInPool()});
}

Scenario StagedPoolScenario() {
  // Not as the pod's data: after a reboot the pod may not get a volume that is to be deleted.
  ScenarioStep writes{.name = "it writes", .happen = [](CrashWorld& world) {
                        world.kernel->AddFile(NoteOnPool(world), "of the pod", 0664, 1000,
                                              kGroupOfPod);
                      }};
  ScenarioStep deleted{.name = "claim and volume are deleted while the pod has them",
                       .happen =
                           [](CrashWorld& world) {
                             world.DeleteByCommand(kFiles, kClaimOfPool, kDataOfPool);
                             UserCommand command;
                             command.kind = UserCommand::Kind::kDeleteObject;
                             command.object = {ObjectKind::kPersistentVolume, "", kCrashPoolVolume};
                             world.commands.push_back(command);
                           },
                       .compare_after_reboot = false};
  ScenarioStep stays{
      .name = "the volume is there as long as the pod is",
      .happen =
          [](CrashWorld& world) {
            const auto volume = PoolVolumeNamed(world, kCrashPoolVolume);
            if (!volume || volume->state != PoolVolumeState::kReady ||
                !world.kernel->Exists(PoolImageOf(volume->id).Display())) {
              return world.Violation("a volume was deleted that a pod has");
            }
            if (!world.kernel->IsMountPoint(world.VolumePath(kFirst, kCrashPoolVolume))) {
              return;
            }
            if (world.kernel->Find(NoteOnPool(world)).content != "of the pod") {
              world.Violation("what the pod has written is lost");
            }
          },
      .compare_after_reboot = false};
  return OnPool("a volume of a pool that is deleted while it is staged",
                {ClassOfPool(), ClaimOnPool(), PodOnPoolComes(), writes},
                {deleted, stays, PodOnPoolLeaves(), NothingIsInPool()});
}

}  // namespace volumed
