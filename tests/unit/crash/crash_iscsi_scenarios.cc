// Scenarios with disks of an iSCSI target, on a fake open-iscsi: what the agent leaves of sessions,
// records and disks, wherever it ends. A reboot takes the mounts; sessions stay, as those of a root
// filesystem do.
#include <memory>
#include <string>

#include "fakes/fake_open_iscsi.h"
#include "plugins/iscsi.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

std::string LunName(int64_t lun) { return "lun" + std::to_string(lun); }

std::string Storage(int64_t lun) {
  const std::string name = LunName(lun);
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
         "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
         "  persistentVolumeReclaimPolicy: Retain\n"
         "  iscsi: {targetPortal: 10.0.0.1, portals: [10.0.0.2], iqn: 'iqn.2026-01.lab:t', lun: " +
         std::to_string(lun) + "}\n";
}

std::string Claim(int64_t lun) {
  const std::string name = LunName(lun);
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default, uid: claim-" + name +
         "}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + name +
         "\n  resources: {requests: {storage: 1Gi}}\n";
}

std::string PodOf(const std::string& uid, int64_t lun) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid + R"(}
spec:
  securityContext: {fsGroup: 3000}
  containers:
  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: )" +
         LunName(lun) + "}}\n";
}

// Sessions, their numbers and the calls of iscsiadm differ between correct runs.
ScenarioStep Step(const std::string& name, std::function<void(CrashWorld&)> happen) {
  ScenarioStep step{.name = name, .happen = std::move(happen)};
  step.compare = false;
  step.settle = std::chrono::seconds(60);
  return step;
}

ScenarioStep TheTarget() {
  return Step("the sources have two LUNs of a target", [](CrashWorld& world) {
    auto target = std::make_shared<FakeIscsiTarget>();
    target->portals = {"10.0.0.1:3260", "10.0.0.2:3260"};
    target->luns = {{1, "/dev/sdb"}, {2, "/dev/sdc"}};
    InstallFakeOpenIscsi(*world.kernel, target);
    for (const int64_t lun : {1, 2}) {
      FakeDevice disk;
      disk.fs_type = "ext4";
      disk.usage = "filesystem";
      disk.identity.uuid = "6b1c6a5e-0000-4000-8000-00000000000" + std::to_string(lun);
      disk.was_mounted = true;
      AddFakeLun(*world.kernel, *target, lun, disk);
      world.sources[kFiles]["volume-" + LunName(lun)] = Storage(lun);
      world.sources[kFiles]["claim-" + LunName(lun)] = Claim(lun);
    }
  });
}

ScenarioStep Apply(const std::string& uid, int64_t lun) {
  return Step("pod " + uid + " is applied", [uid, lun](CrashWorld& world) {
    world.sources[kFiles]["pod-" + uid] = PodOf(uid, lun);
    PodTruth pod;
    pod.wanted = true;
    pod.volumes[LunName(lun)].plugin = kIscsiPluginName;
    pod.volumes[LunName(lun)].has_mount = true;
    world.pods[uid] = pod;
  });
}

ScenarioStep Write(const std::string& uid, int64_t lun) {
  return Step("pod " + uid + " writes", [uid, lun](CrashWorld& world) {
    world.PodWritesToDevice(uid, world.VolumePath(uid, LunName(lun)) + "/" + uid + ".txt",
                            "of " + uid, 3000);
  });
}

ScenarioStep RemoveIscsiPod(const std::string& uid) {
  ScenarioStep step = Step("pod " + uid + " is removed", [uid](CrashWorld& world) {
    world.sources[kFiles].erase("pod-" + uid);
    world.pods.at(uid).wanted = false;
  });
  step.gone = {uid};
  return step;
}

void NoteMistakes(CrashWorld& world) {
  for (const std::string& mistake : FakeIscsiMistakes(*world.kernel)) world.Violation(mistake);
}

ScenarioStep NothingIsLeft() {
  return Step("what is left is looked at", [](CrashWorld& world) {
    NoteMistakes(world);
    for (const std::string& session : FakeIscsiSessions(*world.kernel)) {
      world.Violation(session + " is left");
    }
    for (const std::string& node : FakeIscsiNodes(*world.kernel)) {
      world.Violation("record " + node + " is left");
    }
    for (const char* disk : {"/dev/sdb", "/dev/sdbb", "/dev/sdc", "/dev/sdcb"}) {
      if (world.kernel->Exists(disk)) world.Violation(std::string(disk) + " is left");
    }
  });
}

}  // namespace

Scenario IscsiScenario() {
  const ScenarioStep look = Step("mistakes are looked at", &NoteMistakes);
  return {"two LUNs over the sessions of one target",
          {TheTarget()},
          {Apply(kFirst, 1), Write(kFirst, 1), Apply(kSecond, 2), Write(kSecond, 2),
           RemoveIscsiPod(kFirst), look, RemoveIscsiPod(kSecond), NothingIsLeft()}};
}

Scenario ShortIscsiScenario() {
  constexpr int kAmidTheLogins = 25;
  ScenarioStep begun = Apply(kFirst, 1);
  begun.scheduler_steps = kAmidTheLogins;
  return {"a short life on a disk of a target",
          {TheTarget()},
          {Step("the agent has heard of all sources", {}), begun, RemoveIscsiPod(kFirst),
           NothingIsLeft()}};
}

}  // namespace volumed
