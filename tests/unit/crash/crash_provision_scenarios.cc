// Scenarios with volumes that the node makes for claims, and deletes.
#include <string>
#include <vector>

#include "plugins/host_path.h"
#include "unit/crash/crash_provisioning.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

constexpr int kFirstAmidTheWork = 3;
constexpr int kLastAmidTheWork = 12;

std::string ClassManifest(const std::string& name, const std::string& policy,
                          const std::string& mode) {
  return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + name +
         "}\nprovisioner: kubernetes.io/host-path\nreclaimPolicy: " + policy +
         "\nvolumeBindingMode: " + mode + "\n";
}

// `uid` empty: the manifest names none.
std::string ProvisionClaim(const std::string& name, const std::string& storage_class,
                           const std::string& uid) {
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         ", namespace: default" + (uid.empty() ? "" : ", uid: " + uid) +
         "}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: " + storage_class +
         "\n  resources: {requests: {storage: 1Gi}}\n";
}

std::string ProvisionPod(const std::string& uid, const std::string& claim) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid +
         "}\nspec:\n  containers:\n"
         "  - {name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}\n"
         "  volumes:\n  - {name: data, persistentVolumeClaim: {claimName: " +
         claim + "}}\n";
}

std::string PlaceOf(const std::string& claim_uid) {
  return std::string(CrashWorld::kProvisionRoot) + "/pvc-" + claim_uid;
}

void AddClaim(CrashWorld& world, const std::string& name, const std::string& storage_class,
              const std::string& uid) {
  world.sources[kFiles]["claim-" + name] = ProvisionClaim(name, storage_class, uid);
}

void AddPod(CrashWorld& world, const std::string& uid, const std::string& claim) {
  world.sources[kFiles]["pod-" + uid] = ProvisionPod(uid, claim);
  PodTruth pod;
  pod.wanted = true;
  const std::string volume = "pvc-claim-" + claim;
  pod.volumes[volume].plugin = kHostPathPluginName;
  pod.volumes[volume].host_path = PlaceOf("claim-" + claim);
  world.pods[uid] = pod;
}

void KeepProvision(CrashWorld& world, const std::string& path, const std::string& content) {
  if (!world.MayWrite(path, false)) return;
  world.kernel->AddFile(path, content);
  world.precious[path] = content;
}

ScenarioStep Classes() {
  return {.name = "the sources have classes", .happen = [](CrashWorld& world) {
            world.sources[kFiles]["class-1"] = ClassManifest("made", "Delete", "Immediate");
            world.sources[kFiles]["class-2"] =
                ClassManifest("late", "Delete", "WaitForFirstConsumer");
            world.sources[kFiles]["class-3"] = ClassManifest("kept", "Retain", "Immediate");
          }};
}

const ObjectKey kDataClaim{ObjectKind::kPersistentVolumeClaim, "default", "data"};

// A claim with a volume of policy Delete, with data in it, and no pod any more.
std::vector<ScenarioStep> ClaimWithData() {
  return {Classes(),
          {.name = "a claim comes",
           .happen = [](CrashWorld& world) { AddClaim(world, "data", "made", "claim-data"); }},
          {.name = "its volume is written", .happen = [](CrashWorld& world) {
             KeepProvision(world, PlaceOf("claim-data") + "/data.txt", "of the claim");
           }}};
}

ScenarioStep DeleteDataClaim() {
  return {.name = "the claim is deleted by command", .happen = [](CrashWorld& world) {
            UserCommand command;
            command.kind = UserCommand::Kind::kDeleteObject;
            command.object = kDataClaim;
            world.commands.push_back(command);
            world.precious.erase(PlaceOf("claim-data") + "/data.txt");
          }};
}

ScenarioStep NothingIsLeft() {
  return {.name = "nothing is left of its volume", .happen = [](CrashWorld& world) {
            if (world.kernel->Exists(PlaceOf("claim-data"))) {
              world.Violation("a volume was not deleted");
            }
          }};
}

}  // namespace

Scenario MissingClaimScenario() {
  ScenarioStep leaves{.name = "the claim's manifest vanishes", .happen = [](CrashWorld& world) {
                        world.sources[kFiles].erase("claim-data");
                      }};
  ScenarioStep class_leaves{.name = "its class does too", .happen = [](CrashWorld& world) {
                              world.sources[kFiles].erase("class-1");
                            }};
  ScenarioStep back{.name = "both are back, and a pod comes", .happen = [](CrashWorld& world) {
                      world.sources[kFiles]["class-1"] =
                          ClassManifest("made", "Delete", "Immediate");
                      AddClaim(world, "data", "made", "claim-data");
                      AddPod(world, kFirst, "data");
                    }};
  ScenarioStep pod_leaves{.name = "the pod leaves, and the claim's manifest again",
                          .happen =
                              [](CrashWorld& world) {
                                world.sources[kFiles].erase(std::string("pod-") + kFirst);
                                world.pods.at(kFirst).wanted = false;
                                world.sources[kFiles].erase("claim-data");
                              },
                          .gone = {kFirst}};
  return {"a claim whose manifest vanishes",
          ClaimWithData(),
          {leaves, class_leaves, back, pod_leaves, DeleteDataClaim(), NothingIsLeft()}};
}

Scenario CommandedClaimScenario() {
  ScenarioStep lost{.name = "the file has lost it",
                    .happen = [](CrashWorld& world) { world.sources[kFiles].erase("claim-data"); }};
  ScenarioStep again{.name = "the file has it again", .happen = [](CrashWorld& world) {
                       AddClaim(world, "data", "made", "claim-data");
                     }};
  ScenarioStep made{.name = "it is another one, with a volume of its own",
                    .happen = [](CrashWorld& world) {
                      if (!world.kernel->Exists(PlaceOf("claim-data"))) {
                        world.Violation("a claim that came again has no volume");
                      }
                    }};
  return {"a claim that is deleted while its file has it",
          ClaimWithData(),
          {DeleteDataClaim(), NothingIsLeft(), lost, again, made}};
}

// The claim that comes again has the uid and the directory of the first one: only that the records
// are right tells that nothing of it is to be deleted.
Scenario ReturnedClaimScenario() {
  Scenario scenario = CommandedClaimScenario();
  scenario.name = "a claim that comes again with its uid";
  const auto write = [](const std::string& name) {
    return ScenarioStep{.name = name + " is written", .happen = [name](CrashWorld& world) {
                          KeepProvision(world, PlaceOf("claim-data") + "/" + name + ".txt",
                                        "of the next");
                        }};
  };
  ScenarioStep pod{.name = "a pod of it comes",
                   .happen = [](CrashWorld& world) { AddPod(world, kFirst, "data"); }};
  scenario.steps.push_back(write("next"));
  scenario.steps.push_back(pod);
  scenario.steps.push_back(write("last"));
  return scenario;
}

Scenario ProvisionScenario() {
  ScenarioStep claims{.name = "two claims come", .happen = [](CrashWorld& world) {
                        AddClaim(world, "data", "made", "claim-data");
                        AddClaim(world, "other", "late", "claim-other");
                      }};
  ScenarioStep pods{.name = "their pods come", .happen = [](CrashWorld& world) {
                      AddPod(world, kFirst, "data");
                      AddPod(world, kOther, "other");
                    }};
  ScenarioStep write{.name = "they write", .happen = [](CrashWorld& world) {
                       KeepProvision(world, PlaceOf("claim-data") + "/a/data.txt", "of the first");
                       KeepProvision(world, PlaceOf("claim-other") + "/data.txt", "of the other");
                     }};
  ScenarioStep leaves{.name = "the first pod leaves",
                      .happen =
                          [](CrashWorld& world) {
                            world.sources[kFiles].erase(std::string("pod-") + kFirst);
                            world.pods.at(kFirst).wanted = false;
                          },
                      .gone = {kFirst}};
  ScenarioStep deleted{.name = "its claim is deleted", .happen = [](CrashWorld& world) {
                         world.DeleteByCommand(kFiles, "claim-data", kDataClaim);
                         world.precious.erase(PlaceOf("claim-data") + "/a/data.txt");
                       }};
  ScenarioStep after{.name = "nothing is left of its volume", .happen = [](CrashWorld& world) {
                       if (world.kernel->Exists(PlaceOf("claim-data"))) {
                         world.Violation("a volume was not deleted");
                       }
                     }};
  return {"a provisioned volume", {Classes()}, {claims, pods, write, leaves, deleted, after}};
}

Scenario ShortClaimScenario() {
  // Whether the first claim's volume made the directory of them all, is open.
  ScenarioStep root{
      .name = "the directory of the volumes is there",
      .happen = [](CrashWorld& world) { world.kernel->AddDirectory(CrashWorld::kProvisionRoot); }};
  std::vector<ScenarioStep> steps{{.name = "the agent has heard of all sources", .happen = {}}};
  // Each leaves at another moment of the work.
  for (int amid = kFirstAmidTheWork; amid <= kLastAmidTheWork; ++amid) {
    const std::string uid = "claim-" + std::to_string(amid);
    steps.push_back({.name = uid + " comes",
                     .happen = [uid](CrashWorld& world) { AddClaim(world, "data", "made", uid); },
                     .scheduler_steps = amid,
                     .compare = false});
    steps.push_back({.name = uid + " is deleted at once", .happen = [](CrashWorld& world) {
                       world.DeleteByCommand(kFiles, "claim-data", kDataClaim);
                     }});
  }
  steps.push_back({.name = "another of its name comes", .happen = [](CrashWorld& world) {
                     AddClaim(world, "data", "made", "claim-last");
                   }});
  return {"a claim that does not stay", {Classes(), root}, steps};
}

Scenario RemadeClaimScenario() {
  ScenarioStep comes{.name = "a claim comes",
                     .happen = [](CrashWorld& world) { AddClaim(world, "data", "kept", ""); }};
  ScenarioStep write{.name = "its volume is written", .happen = [](CrashWorld& world) {
                       const std::string path = world.ProvisionedPath("data");
                       if (path.empty()) return world.Violation("the claim has no volume");
                       KeepProvision(world, path + "/data.txt", "of the first claim");
                     }};
  ScenarioStep leaves{.name = "the claim is deleted", .happen = [](CrashWorld& world) {
                        world.DeleteByCommand(kFiles, "claim-data", kDataClaim);
                      }};
  ScenarioStep again{.name = "a claim of its name is made",
                     .happen = [](CrashWorld& world) { AddClaim(world, "data", "kept", ""); }};
  return {"a claim that is made again", {Classes()}, {comes, write, leaves, again}};
}

}  // namespace volumed
