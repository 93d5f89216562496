// Scenarios with exports of an NFS server: each pod has a mount of its own, and what is recycled is
// mounted for that.
#include <string>

#include "plugins/nfs.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kVolume = "share";

std::string VolumeManifest() {
  return std::string("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: ") + kVolume +
         R"(}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Recycle
  mountOptions: [vers=4.1]
  nfs: {server: nas, path: /srv}
)";
}

std::string NfsClaim(const std::string& name) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default, uid: claim-" + name + R"(}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1Gi}}
)";
}

std::string NfsPod(const std::string& uid, const std::string& claim) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid + R"(}
spec:
  containers:
  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: )" +
         claim + "}}\n";
}

ScenarioStep Apply(const std::string& uid, const std::string& claim) {
  return {.name = "pod " + uid + " is applied", .happen = [uid, claim](CrashWorld& world) {
            world.sources[kFiles]["pod-" + uid] = NfsPod(uid, claim);
            PodTruth pod;
            pod.wanted = true;
            pod.volumes[kVolume].plugin = kNfsPluginName;
            pod.volumes[kVolume].has_mount = true;
            world.pods[uid] = pod;
          }};
}

ScenarioStep RemoveNfsPod(const std::string& uid) {
  return {.name = "pod " + uid + " is removed",
          .happen =
              [uid](CrashWorld& world) {
                world.sources[kFiles].erase("pod-" + uid);
                world.pods.at(uid).wanted = false;
              },
          .gone = {uid}};
}

// In one file of its own, and one in a directory.
ScenarioStep Write(const std::string& uid) {
  return {.name = "pod " + uid + " writes", .happen = [uid](CrashWorld& world) {
            const std::string place = world.VolumePath(uid, kVolume);
            world.PodWritesToDevice(uid, place + "/" + uid + ".txt", "of " + uid, 0);
            world.PodWritesToDevice(uid, place + "/dir-" + uid + "/x.txt", "of " + uid, 0);
          }};
}

ScenarioStep Server() {
  return {.name = "there is a server, and the sources have a volume of it and a claim",
          .happen = [](CrashWorld& world) {
            world.kernel->AddFile("/sbin/mount.nfs", "", 0755);
            world.kernel->AddExport("nas:/srv");
            world.kernel->AddExport("nas:/other");
            world.sources[kFiles]["volume"] = VolumeManifest();
            world.sources[kFiles]["claim"] = NfsClaim("data");
          }};
}

// What the first pod wrote is there for the second, and still when the first is gone.
ScenarioStep Shared(const std::string& by, const std::string& with) {
  return {.name = "what " + by + " wrote is seen by " + with,
          .happen = [by, with](CrashWorld& world) {
            if (!world.kernel->Exists(world.VolumePath(with, kVolume) + "/" + by + ".txt")) {
              world.Violation("the export of " + with + " is another one");
            }
          }};
}

ScenarioStep ClaimLeaves() {
  return {.name = "the claim is deleted",
          .happen =
              [](CrashWorld& world) {
                world.DeleteByCommand(kFiles, "claim",
                                      {ObjectKind::kPersistentVolumeClaim, "default", "data"});
              },
          .settle = std::chrono::seconds(300)};
}

ScenarioStep NextClaim() {
  return {.name = "another claim comes",
          .happen = [](CrashWorld& world) { world.sources[kFiles]["claim"] = NfsClaim("next"); }};
}

ScenarioStep IsEmpty(const std::string& uid) {
  return {.name = "its pod finds nothing in it", .happen = [uid](CrashWorld& world) {
            const std::string place = world.VolumePath(uid, kVolume);
            for (const char* of : {kFirst, kSecond}) {
              if (world.kernel->Exists(place + "/" + of + ".txt") ||
                  world.kernel->Exists(place + "/dir-" + of)) {
                world.Violation(std::string("the volume was not recycled: there is what ") + of +
                                " wrote");
              }
            }
            for (const MountEntry& mount : world.kernel->Mounts()) {
              if (mount.source == "nas:/srv" && mount.mount_point != place) {
                world.Violation("the export is still mounted at " + mount.mount_point);
              }
            }
          }};
}

}  // namespace

Scenario NfsScenario() {
  return {"an NFS export of two pods",
          {Server()},
          {Apply(kFirst, "data"), Write(kFirst), Apply(kSecond, "data"), Write(kSecond),
           Shared(kFirst, kSecond), RemoveNfsPod(kFirst), Shared(kFirst, kSecond),
           RemoveNfsPod(kSecond)}};
}

Scenario NfsRecycleScenario() {
  constexpr const char* kThird = "u-third";
  return {
      "a recycled NFS export",
      {Server(), Apply(kFirst, "data"), Write(kFirst), RemoveNfsPod(kFirst)},
      {ClaimLeaves(), NextClaim(), Apply(kThird, "next"), IsEmpty(kThird), RemoveNfsPod(kThird)}};
}

}  // namespace volumed
