// Who an object is, and what is known of it: moved between sources, in two of them, in none that is
// configured, in a file that nobody can read.
#include <string>

#include "operation/volume_record.h"
#include "plugins/host_path.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr const char* kApplied = "applied";  // delivers before `kFiles`
constexpr const char* kExtra = "extra";      // is not configured any more
constexpr const char* kUser = "u-user";
constexpr int64_t kContainerPid = 4712;

std::string Settings(const std::string& content) {
  return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"
         "data: {a: \"" +
         content + "\"}\n";
}

// Its ConfigMap is optional: were that taken for absent, its volume would be emptied.
std::string UserPod() {
  return std::string("---\napiVersion: v1\nkind: Pod\n") +
         "metadata: {name: user, namespace: default, uid: " + kUser + "}\n" + R"(spec:
  containers:
  - name: main
    image: x
    volumeMounts:
    - {name: scratch, mountPath: /scratch}
    - {name: config, mountPath: /config}
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: config, configMap: {name: settings, optional: true}}
)";
}

void AddUser(CrashWorld& world, const std::string& source) {
  world.sources[source]["pod-user"] = UserPod();
  world.sources[source]["config"] = Settings("right");
  PodTruth pod;
  pod.wanted = true;
  pod.volumes["scratch"].plugin = "kubernetes.io/empty-dir";
  pod.volumes["config"].plugin = "kubernetes.io/configmap";
  pod.volumes["config"].versions = {{{"a", "right"}}};
  world.pods[kUser] = pod;
}

ScenarioStep User(const std::string& source) {
  return {.name = "a pod and its ConfigMap come",
          .happen = [source](CrashWorld& world) { AddUser(world, source); }};
}

ScenarioStep UserWrites() {
  return {.name = "the pod writes", .happen = [](CrashWorld& world) {
            world.PodWrites(kUser, world.VolumePath(kUser, "scratch") + "/data.txt", "kept on disk",
                            0, false);
          }};
}

ScenarioStep TimePasses() { return {.name = "time passes", .happen = {}}; }

std::string IdentityClaim() {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
         "default}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: made\n"
         "  resources: {requests: {storage: 1Gi}}\n";
}

// The uid that a pod without one in its manifest was given; "" if no record knows it.
std::string UidOnRecord(const CrashWorld& world, const std::string& name) {
  for (const Record& row : world.store->All()) {
    if (row.kind != kPodRecordKind) continue;
    const Result<PodRecord> record = DecodePodRecord(row);
    if (record.ok() && record->name == name) return record->uid.str();
  }
  return "";
}

std::string MovingPod(const std::string& version, const std::string& volume = "scratch") {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: mover, namespace: default, labels: "
         "{version: \"" +
         version + "\"}}\n" + R"(spec:
  containers: [{name: main, image: x, volumeMounts: [{name: )" +
         volume + R"(, mountPath: /scratch}]}]
  volumes: [{name: )" +
         volume + R"(, emptyDir: {}}]
)";
}

ScenarioStep MoverComes() {
  return {.name = "a pod without a uid comes",
          .happen = [](CrashWorld& world) { world.sources[kFiles]["pod-mover"] = MovingPod("1"); }};
}

ScenarioStep MoverWrites() {
  return {.name = "it writes", .happen = [](CrashWorld& world) {
            const std::string uid = UidOnRecord(world, "mover");
            if (uid.empty()) return world.Violation("the pod is not on record");
            PodTruth pod;
            pod.wanted = true;
            pod.volumes["scratch"].plugin = "kubernetes.io/empty-dir";
            pod.volumes["scratch"].established = true;
            world.pods[uid] = pod;
            world.PodWrites(uid, world.VolumePath(uid, "scratch") + "/data.txt", "kept on disk", 0,
                            false);
          }};
}

// As the directory of applied objects has it.
void ApplySwapped(CrashWorld& world, const char* uid, const std::string& volume) {
  world.sources[kApplied]["pod-swapped"] =
      std::string(
          "---\napiVersion: v1\nkind: Pod\nmetadata: {name: swapped, namespace: default, "
          "uid: ") +
      uid + "}\nspec:\n  containers: [{name: main, image: x, volumeMounts: [{name: " + volume +
      ", mountPath: /v}]}]\n  volumes: [{name: " + volume + ", emptyDir: {}}]\n";
  PodTruth pod;
  pod.wanted = true;
  pod.volumes[volume].plugin = "kubernetes.io/empty-dir";
  world.pods[uid] = pod;
}

}  // namespace

Scenario MovedClaimScenario() {
  ScenarioStep comes{.name = "a claim without a uid comes", .happen = [](CrashWorld& world) {
                       world.sources[kFiles]["class"] =
                           "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\n"
                           "metadata: {name: made}\nprovisioner: kubernetes.io/host-path\n"
                           "reclaimPolicy: Delete\nvolumeBindingMode: Immediate\n";
                       world.sources[kFiles]["claim-data"] = IdentityClaim();
                     }};
  ScenarioStep write{.name = "its volume is written", .happen = [](CrashWorld& world) {
                       const std::string path = world.ProvisionedPath("data");
                       if (path.empty()) return world.Violation("the claim has no volume");
                       world.kernel->AddFile(path + "/data.txt", "of the claim");
                       world.precious[path + "/data.txt"] = "of the claim";
                     }};
  ScenarioStep moves{.name = "it moves to another source", .happen = [](CrashWorld& world) {
                       world.sources[kApplied]["claim-data"] = IdentityClaim();
                       world.sources[kFiles].erase("claim-data");
                     }};
  ScenarioStep missing{.name = "no source has it", .happen = [](CrashWorld& world) {
                         world.sources[kApplied].erase("claim-data");
                       }};
  ScenarioStep back{.name = "it is back where it came from", .happen = [](CrashWorld& world) {
                      world.sources[kFiles]["claim-data"] = IdentityClaim();
                    }};
  return {"a claim that moves", {comes, write}, {moves, missing, back}};
}

Scenario DoubledObjectScenario() {
  ScenarioStep second{.name = "another source has a ConfigMap of its name",
                      .happen = [](CrashWorld& world) {
                        world.sources[kApplied]["config-second"] = Settings("wrong");
                      }};
  return {"an object in two sources", {User(kFiles), UserWrites()}, {second, TimePasses()}};
}

Scenario UnconfiguredSourceScenario() {
  ScenarioStep configured{.name = "a source more is configured", .happen = [](CrashWorld& world) {
                            world.sources[kExtra];
                            AddUser(world, kExtra);
                          }};
  // Its last agent does not notice: what is configured counts from a start.
  ScenarioStep removed{.name = "the source is taken out of the configuration",
                       .happen = [](CrashWorld& world) { world.sources.erase(kExtra); }};
  // After a reboot the volume of the ConfigMap, whose content nobody knows, waits.
  ScenarioStep held = TimePasses();
  held.compare_after_reboot = false;
  return {"a source that is not configured any more",
          {configured, UserWrites(), removed},
          {held, held}};
}

Scenario UnknownObjectScenario() {
  ScenarioStep breaks{.name = "the file of the ConfigMap cannot be read",
                      .happen = [](CrashWorld& world) { world.broken.insert("config"); }};
  ScenarioStep mended{.name = "it can be read again",
                      .happen = [](CrashWorld& world) { world.broken.clear(); }};
  // After a reboot its volume is to be set up anew, which waits.
  ScenarioStep unread = TimePasses();
  unread.compare_after_reboot = false;
  return {"an object that nobody can read", {User(kFiles), UserWrites(), breaks}, {unread, mended}};
}

Scenario MovedPodScenario() {
  ScenarioStep moves{.name = "another source has it, with another label",
                     .happen = [](CrashWorld& world) {
                       world.sources[kApplied]["pod-mover"] = MovingPod("2");
                       world.sources[kFiles].erase("pod-mover");
                     }};
  return {"a pod that moves", {MoverComes(), MoverWrites()}, {moves, TimePasses()}};
}

Scenario ReplacedPodScenario() {
  ScenarioStep comes{.name = "a pod is applied",
                     .happen = [](CrashWorld& world) { ApplySwapped(world, kFirst, "scratch"); }};
  ScenarioStep held{
      .name = "it writes, and a process holds it", .happen = [](CrashWorld& world) {
        world.PodWrites(kFirst, world.VolumePath(kFirst, "scratch") + "/data.txt", "kept on disk",
                        0, false);
        world.processes[kContainerPid] = 7;
        world.commands.push_back({UserCommand::Kind::kHold, kFirst, kContainerPid, false});
      }};
  // After a reboot nobody holds the pod, and the second one is there at once.
  ScenarioStep replaced{.name = "a command puts another one in its place",
                        .happen =
                            [](CrashWorld& world) {
                              ApplySwapped(world, kSecond, "other");
                              world.replaces["pod-swapped"] = {PodUid(kFirst)};
                              world.pods[kFirst].wanted = false;
                              world.pods[kSecond].successor_of = kFirst;
                            },
                        .compare = false};
  ScenarioStep ended{.name = "the process has ended",
                     .happen = [](CrashWorld& world) { world.EndProcess(kContainerPid); },
                     .gone = {kFirst}};
  ScenarioStep there{.name = "the other one is there", .happen = [](CrashWorld& world) {
                       if (!world.kernel->Exists(world.VolumePath(kSecond, "other"))) {
                         world.Violation("nothing has replaced the pod");
                       }
                     }};
  return {"a pod that a command replaces", {comes, held}, {replaced, ended, there}};
}

Scenario EditedPodScenario() {
  ScenarioStep held{
      .name = "a process holds it",
      .happen =
          [](CrashWorld& world) {
            world.processes[kContainerPid] = 7;
            world.commands.push_back(
                {UserCommand::Kind::kHold, UidOnRecord(world, "mover"), kContainerPid, false});
          },
      .compare_after_reboot = false};
  // Longer than an edit must last. After a reboot nobody holds the pod, and an agent that finds it
  // leaving does not look at its volumes again: they stay uncertain.
  ScenarioStep edited{.name = "its manifest has another volume",
                      .happen =
                          [](CrashWorld& world) {
                            world.sources[kFiles]["pod-mover"] = MovingPod("1", "other");
                            for (auto& [uid, pod] : world.pods) pod.wanted = false;
                          },
                      .settle = std::chrono::minutes(2),
                      .compare = false};
  ScenarioStep ended{.name = "the process has ended",
                     .happen = [](CrashWorld& world) { world.EndProcess(kContainerPid); },
                     .settle = std::chrono::minutes(2)};
  ScenarioStep replaced{.name = "another pod has replaced it", .happen = [](CrashWorld& world) {
                          const std::string now = UidOnRecord(world, "mover");
                          if (now.empty()) world.Violation("nothing has replaced the pod");
                          for (const auto& [uid, pod] : world.pods) {
                            if (uid == now) world.Violation("another pod has the uid " + uid);
                            const std::string left = world.LeftOf(uid);
                            if (!left.empty()) world.Violation("left of the replaced pod: " + left);
                          }
                        }};
  return {"a pod whose volumes are edited",
          {MoverComes(), MoverWrites(), held},
          {edited, ended, replaced}};
}

}  // namespace volumed
