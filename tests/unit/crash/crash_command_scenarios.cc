// Objects that are given and deleted by command: in which order, what their files are worth when
// they are damaged, and a directory where to remove an object is to delete it.
#include <string>

#include "plugins/host_path.h"
#include "unit/crash/crash_provisioning.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kPod = "u-user";
constexpr const char* kClaimFile = "persistentvolumeclaim.default.data.json";
constexpr const char* kConfigFile = "configmap.default.settings.json";
const ObjectKey kClaim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
// Without a uid, so that nothing but the number of its command tells it from the one before.
const ObjectKey kSettings{ObjectKind::kConfigMap, "default", "settings"};

std::string ClassManifest() {
  return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
         "provisioner: kubernetes.io/host-path\nreclaimPolicy: Delete\n"
         "volumeBindingMode: Immediate\n";
}

std::string CommandClaim(const std::string& label = "first") {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
         "default, labels: {is: " +
         label +
         "}}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: made\n"
         "  resources: {requests: {storage: 1Gi}}\n";
}

std::string SettingsManifest() {
  return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"
         "data: {a: right}\n";
}

std::string CommandPod() {
  return std::string(
             "---\napiVersion: v1\nkind: Pod\nmetadata: {name: user, namespace: default, ") +
         "uid: " + kPod + R"(}
spec:
  containers:
  - name: main
    image: x
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: config, mountPath: /config}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: config, configMap: {name: settings, optional: true}}
)";
}

ScenarioStep Class() {
  return {.name = "the sources have a class",
          .happen = [](CrashWorld& world) { world.sources[kFiles]["class"] = ClassManifest(); }};
}

ScenarioStep ClaimIsApplied() {
  return {.name = "a claim is applied",
          .happen = [](CrashWorld& world) { world.CommandApply(CommandClaim()); }};
}

ScenarioStep VolumeIsWritten(const std::string& content) {
  return {.name = "its volume is written", .happen = [content](CrashWorld& world) {
            const std::string path = world.ProvisionedPath("data");
            if (path.empty()) return world.Violation("the claim has no volume");
            if (!world.MayWrite(path + "/data.txt", false)) return;
            if (world.kernel->Exists(path + "/data.txt")) {
              world.Violation("the volume of a new claim has the data of another one");
            }
            world.kernel->AddFile(path + "/data.txt", content);
            world.precious[path + "/data.txt"] = content;
          }};
}

// Whatever a command may end is nobody's any more.
void Disown(CrashWorld& world) { world.precious.clear(); }

void ExpectVolume(CrashWorld& world, bool there) {
  const std::string path = world.ProvisionedPath("data");
  const bool is_there = !path.empty() && world.kernel->Exists(path);
  if (is_there == there) return;
  world.Violation(there ? "the claim that was applied last has no volume"
                        : "the claim that was deleted last has a volume");
}

ScenarioStep LastCommandHolds(bool there) {
  return {.name = "the last command holds",
          .happen = [there](CrashWorld& world) { ExpectVolume(world, there); }};
}

}  // namespace

Scenario NumberedCommandsScenario() {
  ScenarioStep remade{.name = "the claim is deleted, and applied anew",
                      .happen =
                          [](CrashWorld& world) {
                            Disown(world);
                            world.CommandDelete(kClaim);
                            world.CommandApply(CommandClaim("second"));
                            world.CommandApply(SettingsManifest());
                            world.CommandDelete(kSettings);
                            world.CommandApply(SettingsManifest());
                          },
                      .settle = std::chrono::minutes(2)};
  ScenarioStep deleted{.name = "it is applied once more, and deleted",
                       .happen =
                           [](CrashWorld& world) {
                             Disown(world);
                             world.CommandApply(CommandClaim("third"));
                             world.CommandDelete(kClaim);
                             world.CommandDelete(kSettings);
                             world.CommandApply(SettingsManifest());
                             world.CommandDelete(kSettings);
                           },
                       .settle = std::chrono::minutes(2)};
  ScenarioStep again{.name = "it is applied, deleted, and applied",
                     .happen =
                         [](CrashWorld& world) {
                           world.CommandApply(CommandClaim("fourth"));
                           world.CommandDelete(kClaim);
                           world.CommandApply(CommandClaim("fifth"));
                         },
                     .settle = std::chrono::minutes(2)};
  return {"a claim that is deleted and applied anew",
          {Class(), ClaimIsApplied(), VolumeIsWritten("of the first")},
          {remade, LastCommandHolds(true), VolumeIsWritten("of the second"), deleted,
           LastCommandHolds(false), again, VolumeIsWritten("of the last"), LastCommandHolds(true)},
          /*applies=*/true};
}

Scenario DamagedObjectScenario() {
  ScenarioStep config{.name = "a ConfigMap is applied",
                      .happen = [](CrashWorld& world) { world.CommandApply(SettingsManifest()); }};
  ScenarioStep pod{.name = "a pod comes", .happen = [](CrashWorld& world) {
                     world.sources[kFiles]["pod"] = CommandPod();
                     PodTruth truth;
                     truth.wanted = true;
                     truth.volumes["config"].plugin = "kubernetes.io/configmap";
                     truth.volumes["config"].versions = {{{"a", "right"}}};
                     world.pods[kPod] = truth;
                   }};
  // An agent reads them at its start alone.
  ScenarioStep damaged{.name = "the files of the claim and the ConfigMap are damaged",
                       .happen = [](CrashWorld& world) {
                         world.WriteObjectFile(kClaimFile, "{\"kind\": \"Persis");
                         world.WriteObjectFile(kConfigFile, "");
                       }};
  // After a reboot what nobody can read is not set up anew.
  ScenarioStep passes{.name = "time passes", .happen = {}, .compare_after_reboot = false};
  ScenarioStep again{.name = "both are applied anew", .happen = [](CrashWorld& world) {
                       world.CommandApply(CommandClaim());
                       world.CommandApply(SettingsManifest());
                     }};
  ScenarioStep same{.name = "it is the same claim, with its volume",
                    .happen = [](CrashWorld& world) { ExpectVolume(world, true); }};
  return {"an applied object whose file is damaged",
          {Class(), ClaimIsApplied(), config, pod, VolumeIsWritten("of the claim"), damaged},
          {passes, passes, again, same},
          /*applies=*/true};
}

Scenario RemovalDeletesScenario() {
  ScenarioStep comes{.name = "a claim comes, where to remove it is to delete it",
                     .happen = [](CrashWorld& world) {
                       world.removal_deletes = true;
                       world.sources[kFiles]["class"] = ClassManifest();
                       world.sources[kFiles]["claim"] = CommandClaim();
                     }};
  ScenarioStep removed{.name = "it is removed", .happen = [](CrashWorld& world) {
                         Disown(world);
                         world.sources[kFiles].erase("claim");
                       }};
  ScenarioStep gone{.name = "its volume is gone",
                    .happen = [](CrashWorld& world) { ExpectVolume(world, false); }};
  ScenarioStep back{.name = "a claim of its name comes", .happen = [](CrashWorld& world) {
                      world.sources[kFiles]["claim"] = CommandClaim();
                    }};
  return {"a claim that is removed where that deletes it",
          {comes, VolumeIsWritten("of the first")},
          {removed, gone, back, VolumeIsWritten("of the second")}};
}

}  // namespace volumed
