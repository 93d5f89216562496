#include "unit/crash/crash_scenarios.h"

#include <string>

namespace volumed {
namespace {

constexpr const char* kFull = "u-full";
constexpr const char* kApplied = "applied";  // delivers later
constexpr int64_t kContainerPid = 4711;
constexpr uint64_t kStartTime = 99;
constexpr uint32_t kFsGroup = 2000;
// Some of a pod's operations are done by then, some run and some wait.
constexpr int kAmidTheWork = 20;
constexpr const char* kShare = "/srv/share";

std::string ConfigMap(const std::string& version) {
  // The second version has another set of keys.
  const std::string extra = version == "1" ? "old" : "new";
  return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"
         "data: {a: \"a" +
         version + "\", b: \"b" + version + "\", " + extra + ": \"x\"}\n";
}

std::string SecretManifest(const std::string& version) {
  return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: default}\n"
         "stringData: {user: \"u" +
         version + "\", password: \"p" + version + "\"}\n";
}

std::string FullPod(const std::string& version) {
  return std::string("---\napiVersion: v1\nkind: Pod\n") +
         "metadata: {name: full, namespace: default, uid: " + kFull + ", labels: {version: \"" +
         version + "\"}}\n" + R"(spec:
  serviceAccountName: robot
  securityContext: {fsGroup: 2000}
  containers:
  - name: main
    image: x
    volumeMounts:
    - {name: scratch, mountPath: /scratch}
    - {name: scratch, mountPath: /logs, subPath: a/logs}
    - {name: mem, mountPath: /mem}
    - {name: config, mountPath: /config}
    - {name: config, mountPath: /etc/a.conf, subPath: a}
    - {name: credentials, mountPath: /credentials}
    - {name: info, mountPath: /info}
    - {name: mixed, mountPath: /mixed}
    - {name: share, mountPath: /share}
    - {name: share, mountPath: /in, subPath: in}
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: config, configMap: {name: settings}}
  - {name: credentials, secret: {secretName: login, defaultMode: 256}}
  - name: info
    downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
  - name: mixed
    projected:
      sources:
      - serviceAccountToken: {path: token, audience: vault, expirationSeconds: 3600}
      - configMap: {name: settings, items: [{key: a, path: cfg/a}]}
      - secret: {name: login, items: [{key: user, path: sec/user}]}
  - {name: share, hostPath: {path: /srv/share, type: DirectoryOrCreate}}
)";
}

std::string OtherPod() {
  return std::string("---\napiVersion: v1\nkind: Pod\n") +
         "metadata: {name: other, namespace: default, uid: " + kOther + "}\n" + R"(spec:
  containers:
  - name: main
    image: x
    volumeMounts:
    - {name: scratch, mountPath: /scratch}
    - {name: mem, mountPath: /mem}
    - {name: config, mountPath: /config}
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: mem, emptyDir: {medium: Memory}}
  - {name: config, configMap: {name: settings}}
)";
}

// ---- what is owed to the two pods ---------------------------------------------------------------

std::vector<PayloadVersion> ConfigVersions() {
  return {{{"a", "a1"}, {"b", "b1"}, {"old", "x"}}, {{"a", "a2"}, {"b", "b2"}, {"new", "x"}}};
}

std::vector<PayloadVersion> MixedVersions() {
  std::vector<PayloadVersion> versions;
  for (const char* token : {"token-1", "token-2"}) {
    for (const char* config : {"a1", "a2"}) {
      for (const char* user : {"u1", "u2"}) {
        versions.push_back({{"token", token}, {"cfg/a", config}, {"sec/user", user}});
      }
    }
  }
  return versions;
}

std::string SubPathTarget(const CrashWorld& world, const std::string& spec, int index) {
  return world.paths.GetPodVolumeSubpathDir(PodUid(kFull), SpecName(spec), "main", index).Display();
}

PodTruth FullTruth(const CrashWorld& world) {
  PodTruth pod;
  pod.wanted = true;
  pod.volumes["scratch"].plugin = "kubernetes.io/empty-dir";
  pod.volumes["scratch"].sub_path_targets = {SubPathTarget(world, "scratch", 1)};
  pod.volumes["mem"].plugin = "kubernetes.io/empty-dir";
  pod.volumes["mem"].has_mount = true;
  VolumeTruth& config = pod.volumes["config"];
  config.plugin = "kubernetes.io/configmap";
  config.versions = ConfigVersions();
  config.sub_path_targets = {SubPathTarget(world, "config", 4)};
  config.sub_path_follows_content = true;
  VolumeTruth& credentials = pod.volumes["credentials"];
  credentials.plugin = "kubernetes.io/secret";
  credentials.has_mount = true;
  credentials.versions = {{{"user", "u1"}, {"password", "p1"}},
                          {{"user", "u2"}, {"password", "p2"}}};
  VolumeTruth& info = pod.volumes["info"];
  info.plugin = "kubernetes.io/downward-api";
  info.has_mount = true;
  info.versions = {{{"labels", "version=\"1\""}}, {{"labels", "version=\"2\""}}};
  VolumeTruth& mixed = pod.volumes["mixed"];
  mixed.plugin = "kubernetes.io/projected";
  mixed.has_mount = true;
  mixed.versions = MixedVersions();
  VolumeTruth& share = pod.volumes["share"];
  share.plugin = "kubernetes.io/host-path";
  share.host_path = kShare;
  share.sub_path_targets = {SubPathTarget(world, "share", 9)};
  return pod;
}

PodTruth OtherTruth() {
  PodTruth pod;
  pod.wanted = true;
  pod.volumes["scratch"].plugin = "kubernetes.io/empty-dir";
  pod.volumes["mem"].plugin = "kubernetes.io/empty-dir";
  pod.volumes["mem"].has_mount = true;
  pod.volumes["config"].plugin = "kubernetes.io/configmap";
  pod.volumes["config"].versions = ConfigVersions();
  return pod;
}

// ---- steps --------------------------------------------------------------------------------------

void ApplyOther(CrashWorld& world) {
  world.sources[kApplied]["pod-other"] = OtherPod();
  world.pods[kOther] = OtherTruth();
}

void ApplyFull(CrashWorld& world) {
  world.sources[kFiles]["pod-full"] = FullPod("1");
  world.pods[kFull] = FullTruth(world);
}

void RemoveFull(CrashWorld& world) {
  world.sources[kFiles].erase("pod-full");
  world.pods.at(kFull).wanted = false;
}

void WriteInto(CrashWorld& world, const std::string& pod, uint32_t gid) {
  world.PodWrites(pod, world.VolumePath(pod, "scratch") + "/data.txt", "kept on disk", gid, false);
  world.PodWrites(pod, world.VolumePath(pod, "mem") + "/data.txt", "kept in memory", gid, true);
}

void PodsWrite(CrashWorld& world) {
  WriteInto(world, kFull, kFsGroup);
  WriteInto(world, kOther, 0);
  world.PodWrites(kFull, world.VolumePath(kFull, "scratch") + "/a/logs/log.txt", "a line", kFsGroup,
                  false);
  world.precious[std::string(kShare) + "/in/report.txt"] = "of the host";
  world.kernel->AddFile(std::string(kShare) + "/in/report.txt", "of the host");
}

ScenarioStep Sources() {
  return {.name = "the sources have the objects and the other pod",
          .happen = [](CrashWorld& world) {
            world.sources[kFiles]["config"] = ConfigMap("1");
            world.sources[kFiles]["secret"] = SecretManifest("1");
            ApplyOther(world);
          }};
}

ScenarioStep SetUp() { return {.name = "the pod is applied", .happen = ApplyFull}; }

ScenarioStep Write() { return {.name = "the pods write", .happen = PodsWrite}; }

ScenarioStep Hold() {
  return {.name = "a process holds the pod",
          .happen =
              [](CrashWorld& world) {
                world.processes[kContainerPid] = kStartTime;
                world.commands.push_back({UserCommand::Kind::kHold, kFull, kContainerPid, false});
              },
          .compare_after_reboot = false};
}

std::vector<ScenarioStep> RunningPods() { return {Sources(), SetUp(), Write()}; }

}  // namespace

Scenario SetUpScenario() { return {"set-up", {Sources()}, {SetUp(), Write()}}; }

Scenario ChangeScenario() {
  ScenarioStep change{.name = "configMap, secret and labels change",
                      .happen = [](CrashWorld& world) {
                        world.sources[kFiles]["config"] = ConfigMap("2");
                        world.sources[kFiles]["secret"] = SecretManifest("2");
                        world.sources[kFiles]["pod-full"] = FullPod("2");
                      }};
  ScenarioStep rotate{
      .name = "the token is rotated", .happen = {}, .settle = std::chrono::seconds(20'100)};
  return {"change", RunningPods(), {change, rotate}};
}

Scenario RemovedObjectScenario() {
  return {"teardown of a removed object",
          RunningPods(),
          {{.name = "the pod is removed", .happen = RemoveFull, .gone = {kFull}}}};
}

Scenario DeletedByUidScenario() {
  ScenarioStep command{.name = "the pod is deleted by uid", .happen = [](CrashWorld& world) {
                         world.pods.at(kFull).wanted = false;
                         world.pods.at(kFull).commanded = true;
                         world.commands.push_back({UserCommand::Kind::kDelete, kFull, 0, false});
                       }};
  ScenarioStep removed{.name = "its source has it no more",
                       .happen =
                           [](CrashWorld& world) {
                             RemoveFull(world);
                             world.pods.at(kFull).commanded = false;
                           },
                       .gone = {kFull}};
  return {"teardown by uid", RunningPods(), {command, removed}};
}

Scenario HeldPodScenario() {
  // An agent that finds the pod leaving does not look at its volumes again: one whose change was
  // cut off stays uncertain. That the pod has all of them is checked at each effect.
  ScenarioStep removed{.name = "the held pod is removed",
                       .happen = RemoveFull,
                       .settle = std::chrono::seconds(200),
                       .compare = false,
                       .gone_unless_held = {kFull}};
  ScenarioStep ended{.name = "the process has ended",
                     .happen = [](CrashWorld& world) { world.EndProcess(kContainerPid); },
                     .gone = {kFull}};
  return {"teardown of a held pod", RunningPods(), {Hold(), removed, ended}};
}

Scenario ForeignMountScenario() {
  ScenarioStep mounted{.name = "somebody mounts something in a volume",
                       .happen = [](CrashWorld& world) {
                         const std::string place = world.VolumePath(kFull, "scratch") + "/foreign";
                         world.kernel->AddMount("ext4", "/dev/vdz", place);
                         world.kernel->AddFile(place + "/precious.txt", "of somebody else");
                         world.precious[place + "/precious.txt"] = "of somebody else";
                       }};
  ScenarioStep removed{.name = "the pod is removed", .happen = RemoveFull, .compare = false};
  ScenarioStep unmounted{.name = "the mount is taken away",
                         .happen =
                             [](CrashWorld& world) {
                               const std::string place =
                                   world.VolumePath(kFull, "scratch") + "/foreign";
                               world.precious.erase(place + "/precious.txt");
                               world.kernel->UnmountBelow(place);
                             },
                         .settle = std::chrono::seconds(300),
                         .gone = {kFull}};
  std::vector<ScenarioStep> before = RunningPods();
  before.push_back(mounted);
  return {"teardown around a foreign mount", before, {removed, unmounted}};
}

Scenario ShortLifeScenario() {
  ScenarioStep quiet{.name = "the agent has heard of all sources", .happen = {}};
  ScenarioStep begun{.name = "the pod is applied",
                     .happen = ApplyFull,
                     .scheduler_steps = kAmidTheWork,
                     .compare = false};
  ScenarioStep removed{.name = "the pod is removed at once", .happen = RemoveFull, .gone = {kFull}};
  ScenarioStep again{.name = "it is applied again", .happen = ApplyFull};
  ScenarioStep leaves{.name = "it is removed again",
                      .happen = RemoveFull,
                      .scheduler_steps = kAmidTheWork,
                      .compare = false};
  ScenarioStep returns{.name = "and is back", .happen = ApplyFull};
  // How far the first set-up comes, and so whether it makes the host's directory, is open.
  ScenarioStep share{.name = "the host has its directory", .happen = [](CrashWorld& world) {
                       world.kernel->AddDirectory(std::string(kShare) + "/in");
                     }};
  return {"a short life", {Sources(), share}, {quiet, begun, removed, again, leaves, returns}};
}

std::vector<Scenario> CsiScenarios() {
  std::vector<Scenario> scenarios = AllScenarios();
  std::erase_if(scenarios, [](const Scenario& scenario) { return !scenario.csi; });
  return scenarios;
}

std::vector<Scenario> AllScenarios() {
  return {
      SetUpScenario(),
      ChangeScenario(),
      RemovedObjectScenario(),
      DeletedByUidScenario(),
      HeldPodScenario(),
      ForeignMountScenario(),
      ShortLifeScenario(),
      DeviceScenario(),
      JoiningWriterScenario(),
      CutFormatScenario(),
      ExpandScenario(),
      CheckedDiskScenario(),
      ReleasedClaimScenario(),
      RecycleScenario(),
      BindingScenario(),
      ProvisionScenario(),
      ShortClaimScenario(),
      RemadeClaimScenario(),
      BlockScenario(),
      AttachScenario(),
      ShortAttachScenario(),
      FlexVolumeScenario(),
      ShortFlexVolumeScenario(),
      NfsScenario(),
      NfsRecycleScenario(),
      IscsiScenario(),
      ShortIscsiScenario(),
      FcScenario(),
      NestedVolumesScenario(),
      RetainedVolumeScenario(),
      ExchangedDirectoryScenario(),
      MarkedDirectoryScenario(),
      LostFormatScenario(),
      HalfFormatScenario(),
      MissingClaimScenario(),
      CommandedClaimScenario(),
      MovedClaimScenario(),
      DoubledObjectScenario(),
      UnconfiguredSourceScenario(),
      UnknownObjectScenario(),
      MovedPodScenario(),
      EditedPodScenario(),
      ReplacedPodScenario(),
      ReusedVolumeScenario(),
      NumberedCommandsScenario(),
      DamagedObjectScenario(),
      RemovalDeletesScenario(),
      RenamedDirectoryScenario(),
      UnreadableVolumeScenario(),
      TwinDevicesScenario(),
      OwnDirectoriesScenario(),
      UnmountedDiskScenario(),
      ExchangedDeviceScenario(),
      CsiStagedScenario(),
      CsiAttachedScenario(),
      CsiBlockScenario(),
      CsiProvisionScenario(),
      CsiExpandScenario(),
      CsiInlineScenario(),
      CsiOnePodScenario(),
      CsiObjectsScenario(),
      CsiDriverAwayScenario(),
      CsiUnstagingScenario(),
      PoolScenario(),
      StagedPoolScenario(),
  };
}

}  // namespace volumed
