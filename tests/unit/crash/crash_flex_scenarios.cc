// Scenarios with the disks of a flexVolume driver: the real plugin over a fake executable.
#include <string>

#include "fakes/fake_flex_driver.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kVolume = "flex-lun";
constexpr const char* kDisk = "/dev/flex/lun";
constexpr uint32_t kFsGroup = 3000;

ScenarioStep Storage() {
  return {.name = "the sources have a volume of a flexVolume driver, and a claim",
          .happen = [](CrashWorld& world) {
            InstallFakeFlexDriver(*world.kernel);
            world.devices[kVolume] = kDisk;
            world.flex_volumes.insert(kVolume);
            world.kernel->AddDevice(kDisk);
            world.kernel->Remove(kDisk);  // until it is attached
            world.sources[kFiles]["volume"] = std::string(R"(---
apiVersion: v1
kind: PersistentVolume
metadata: {name: flex-lun}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  flexVolume: {driver: test.io/flex, options: {disk: /dev/flex/lun}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, uid: claim-data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
)");
          }};
}

ScenarioStep Apply(const std::string& uid) {
  return {.name = "pod " + uid + " is applied", .happen = [uid](CrashWorld& world) {
            world.sources[kFiles]["pod-" + uid] =
                "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
                ", namespace: default, uid: " + uid + R"(}
spec:
  securityContext: {fsGroup: 3000}
  containers:
  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
)";
            PodTruth pod;
            pod.wanted = true;
            pod.volumes[kVolume].plugin = kFakeFlexDriver;
            pod.volumes[kVolume].has_mount = true;
            world.pods[uid] = pod;
          }};
}

ScenarioStep Write(const std::string& uid) {
  return {.name = "pod " + uid + " writes", .happen = [uid](CrashWorld& world) {
            world.PodWritesToDevice(uid, world.VolumePath(uid, kVolume) + "/" + uid + ".txt",
                                    "of " + uid, kFsGroup);
          }};
}

ScenarioStep RemoveFlexPod(const std::string& uid, bool last) {
  return {.name = "pod " + uid + " is removed",
          .happen =
              [uid](CrashWorld& world) {
                world.sources[kFiles].erase("pod-" + uid);
                world.pods.at(uid).wanted = false;
              },
          .gone = {uid},
          .no_devices = last};
}

}  // namespace

Scenario FlexVolumeScenario() {
  return {"two pods on a disk of a flexVolume driver",
          {Storage()},
          {Apply(kFirst), Write(kFirst), Apply(kSecond), Write(kSecond),
           RemoveFlexPod(kFirst, false), RemoveFlexPod(kSecond, true)}};
}

Scenario ShortFlexVolumeScenario() {
  constexpr int kAmidTheAttach = 12;
  ScenarioStep quiet{.name = "the agent has heard of all sources", .happen = {}};
  ScenarioStep begun = Apply(kFirst);
  begun.scheduler_steps = kAmidTheAttach;
  begun.compare = false;
  // Whether the disk was formatted by then is open, and stays on record.
  ScenarioStep left = RemoveFlexPod(kFirst, true);
  left.compare = false;
  // How far the first mount comes, and so whether it makes these, is open.
  ScenarioStep places{.name = "the plugin has its directories", .happen = [](CrashWorld& world) {
                        const std::string place = world.DevicePlaceOf(kVolume).Display();
                        world.kernel->AddDirectory(place.substr(0, place.rfind('/')));
                      }};
  return {"a short attach of a flexVolume",
          {Storage(), places},
          {quiet, begun, left, Apply(kFirst), RemoveFlexPod(kFirst, true)}};
}

}  // namespace volumed
