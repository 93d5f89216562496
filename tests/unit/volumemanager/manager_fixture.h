// ManagerTest: a volume manager on fakes, in one thread and virtual time, that can be ended and
// started anew on the same node and store.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/manual_clock.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/memory_record_store.h"
#include "fakes/simulated_crash.h"
#include "kube/decode.h"
#include "kube/object_catalog.h"
#include "metrics/exported_families.h"
#include "operation/volume_record.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "unit/volumemanager/fake_plugin.h"
#include "unit/volumemanager/fake_volume_operations.h"
#include "volumehost/event_log.h"
#include "volumehost/volume_host.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/volume_manager.h"
#include "volumemanager/volume_manager_settings.h"

namespace volumed {

// Volumes of a pod's manifest, as ManagerTest::PodManifest takes them.
inline const std::string kData = "data: emptyDir: {}";
inline const std::string kConf = "conf: configMap: {name: app}";
inline const std::string kUse = "data: persistentVolumeClaim: {claimName: data}";

// Answers what the manager asks a kernel at start.
class StubKernel final : public Kernel {
 public:
  std::vector<std::string> mount_points;
  std::map<std::string, std::vector<std::string>> directories;  // display path -> subdirectories
  int failing_list_mounts = 0;
  bool server_is_dead = false;

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions&) override {
    if (std::holds_alternative<ListMounts>(request)) {
      if (failing_list_mounts > 0) {
        --failing_list_mounts;
        return Error::NotApplied(Code::kUnavailable, "mountinfo cannot be read");
      }
      MountListing listing;
      for (const std::string& path : mount_points) {
        MountEntry entry;
        entry.mount_point = path;
        listing.mounts.push_back(entry);
      }
      return AnyAnswer(listing);
    }
    if (const auto* list = std::get_if<ListDirectory>(&request)) {
      const auto found = directories.find(list->path.Display());
      if (found == directories.end()) {
        return Error::NotApplied(Code::kNotFound, "no directory " + list->path.Display());
      }
      DirectoryListing listing;
      for (const std::string& name : found->second) {
        listing.entries.push_back({name, FileType::kDirectory});
      }
      return AnyAnswer(listing);
    }
    if (std::holds_alternative<StatFs>(request)) {
      if (!server_is_dead) return AnyAnswer(FsInfo{});
      return Error::MaybeApplied(Code::kDeadlineExceeded, "no answer in time");
    }
    ADD_FAILURE() << "the manager must not do " << RequestName(request);
    return Error::NotApplied(Code::kUnimplemented, "not expected");
  }
};

class FakeConsumerWatch final : public ConsumerWatch {
 public:
  std::map<int64_t, uint64_t> processes;  // pid -> start time
  std::map<std::string, bool> cgroups;    // populated

  Result<WatchedConsumer> Watch(uint64_t id, const ConsumerTarget& target,
                                std::function<void()> gone) override {
    if (target.pid != 0) {
      const auto found = processes.find(target.pid);
      const bool same = found != processes.end() &&
                        (target.pid_start_time == 0 || target.pid_start_time == found->second);
      if (!same) return Error::NotApplied(Code::kFailedPrecondition, "no such process");
      watches[id] = {target, std::move(gone)};
      return WatchedConsumer{found->second, "pid " + std::to_string(target.pid) + " (runc)"};
    }
    if (!cgroups[target.cgroup]) {
      return Error::NotApplied(Code::kFailedPrecondition, "no such cgroup");
    }
    watches[id] = {target, std::move(gone)};
    return WatchedConsumer{0, "cgroup " + target.cgroup};
  }
  void Unwatch(uint64_t id) override { watches.erase(id); }

  void EndProcess(int64_t pid) {
    processes.erase(pid);
    EndWhere([&](const ConsumerTarget& target) { return target.pid == pid; });
  }
  void EmptyCgroup(const std::string& cgroup) {
    cgroups.erase(cgroup);
    EndWhere([&](const ConsumerTarget& target) { return target.cgroup == cgroup; });
  }

  std::map<uint64_t, std::pair<ConsumerTarget, std::function<void()>>> watches;

 private:
  template <typename Predicate>
  void EndWhere(Predicate matches) {
    std::vector<std::function<void()>> gone;
    for (auto at = watches.begin(); at != watches.end();) {
      if (matches(at->second.first)) {
        gone.push_back(at->second.second);
        at = watches.erase(at);
      } else {
        ++at;
      }
    }
    for (const auto& call : gone) call();
  }
};

class FakeHostParts final : public HostObjects,
                            public HostTokens,
                            public HostEvents,
                            public HostNode {
 public:
  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string&,
                                                        const std::string&) const override {
    return Error::NotApplied(Code::kNotFound, "not used");
  }
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(const std::string&,
                                                              const std::string&) const override {
    return Error::NotApplied(Code::kNotFound, "not used");
  }
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest&) override {
    return Error::NotApplied(Code::kUnimplemented, "not used");
  }
  void DeleteServiceAccountTokens(const PodUid& pod) override { forgotten_tokens.insert(pod); }
  void RecordPodEvent(const PodUid& pod, EventType, const std::string& reason,
                      const std::string&) override {
    events.push_back(pod.str() + " " + reason);
  }
  void RecordObjectEvent(const ObjectKey& object, EventType type, const std::string& reason,
                         const std::string& message) override {
    object_events.push_back(ToString(object) + " " + std::string(EventTypeName(type)) + " " +
                            reason + ": " + message);
  }
  NodeName GetNodeName() const override { return NodeName("n1"); }
  std::map<std::string, std::string> GetNodeLabels() const override { return labels; }
  std::map<std::string, Quantity> GetNodeAllocatable() const override { return {}; }
  KernelFeatures GetKernelFeatures() const override { return {}; }
  bool HasSelinux() const override { return has_selinux; }

  bool has_selinux = false;
  std::map<std::string, std::string> labels;
  std::set<PodUid> forgotten_tokens;
  std::vector<std::string> events;
  std::vector<std::string> object_events;
};

class ManagerTest : public ::testing::Test {
 protected:
  static constexpr const char* kRoot = "/var/lib/volumed";

  // What a process has and loses with its end.
  struct Agent {
    Agent(ManagerTest& test, const std::string& boot_id)
        : scheduler(7, test.clock),
          log(LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [&test](LogLevel, std::string_view line) {
                           test.logged.emplace_back(line);
                         }},
              test.clock),
          catalog(test.clock),
          operations(scheduler, test.node) {
      std::vector<std::unique_ptr<VolumePlugin>> made;
      for (const auto& [name, kind] : test.plugin_kinds) {
        made.push_back(
            std::make_unique<FakePlugin>(name, kind, test.metrics, test.attach, test.driver));
      }
      EXPECT_TRUE(plugins.InitPlugins(std::move(made), test.host).ok());
      operations.on_remove = [&test](const PodUid& pod) {
        (void)test.store.Remove(kPodRecordKind, pod.str(), kPodRecordDurability);
      };
      VolumeManagerSettings settings;
      VolumeManagerHooks hooks;
      settings.adopt_root = test.adopt_root;
      settings.decide_claims_period = test.decide_claims_period;
      settings.stats.period = test.stats_period;
      settings.size_limit_action = test.size_limit_action;
      settings.other_kinds = test.other_kinds;
      hooks.secrets_on_record = [this](SentSecretsByDriver recorded) {
        EXPECT_TRUE(others.empty() && restored.empty() && !sources_started);
        secrets_on_record = std::move(recorded);
      };
      hooks.restore_other = [this](const std::string& kind, const LoadedRecords& rows) {
        EXPECT_TRUE(restored_devices.empty() && !sources_started);
        others[kind] = rows;
      };
      hooks.restore_operations = [this](const std::vector<PodVolumeRecord>& volumes,
                                        const std::vector<DeviceRecord>& devices) {
        restored.insert(restored.end(), volumes.begin(), volumes.end());
        restored_devices.insert(restored_devices.end(), devices.begin(), devices.end());
      };
      hooks.found_unrecorded = [this](std::vector<UnrecordedMount> found) {
        unrecorded = std::move(found);
      };
      hooks.remove_object = [&test](const ObjectKey& key, uint64_t) {
        test.removed_objects.push_back(ToString(key));
      };
      hooks.start_sources = [this](std::map<std::string, SourceMemory> known) {
        memories = std::move(known);
        sources_started = true;
      };
      hooks.is_stuck = [&test](const std::string& key) { return test.stuck.contains(key); };
      for (const std::string& source : test.sources) {
        catalog.ExpectSource(source);
        if (test.removal_deletes) settings.removal_deletes.insert(source);
      }
      catalog.AbsenceEnds(Provisioning::kSourceName);
      manager = std::make_unique<VolumeManager>(
          VolumeManagerParts{scheduler, catalog, plugins, operations, test.store, test.kernel,
                             test.host, test.watch, log},
          BootId(boot_id), settings, hooks);
    }

    SimulatedScheduler scheduler;
    Logger log;
    ObjectCatalog catalog;
    VolumePluginMgr plugins;
    FakeVolumeOperations operations;
    std::vector<PodVolumeRecord> restored;
    std::vector<DeviceRecord> restored_devices;
    std::vector<UnrecordedMount> unrecorded;
    std::optional<SentSecretsByDriver> secrets_on_record;  // nullopt: it was not told
    std::map<std::string, LoadedRecords> others;           // rows of other parts
    bool sources_started = false;
    std::map<std::string, SourceMemory> memories;  // what the sources are told then
    std::unique_ptr<VolumeManager> manager;
  };

  void StartAgent(const std::string& boot_id = "boot-1") {
    agent_.reset();
    watch.watches.clear();
    agent_ = std::make_unique<Agent>(*this, boot_id);
    agent_->manager->Start();
  }
  VolumeManager& manager() { return *agent_->manager; }
  FakeVolumeOperations& operations() { return agent_->operations; }
  SimulatedScheduler& scheduler() { return agent_->scheduler; }
  void Settle() { scheduler().AdvanceTo(clock.Now()); }
  void Pass(Duration time) { scheduler().RunFor(time); }

  static std::vector<ObjectWithOrigin> Objects(const std::string& manifest) {
    std::vector<ObjectWithOrigin> objects;
    const ManifestDecode decoded = DecodeManifest("test.yaml", manifest);
    for (const DecodeProblem& problem : decoded.problems) ADD_FAILURE() << problem.ToString();
    for (const DecodedObject& object : decoded.objects) {
      objects.push_back(
          {std::make_shared<const Object>(object.object), "test.yaml", object.document});
    }
    return objects;
  }
  // A complete list of a source, and everything that follows at once.
  void Deliver(const std::string& manifest, const std::string& source = "manifests") {
    ObjectList list{source, true, Objects(manifest), {}};
    list.warnings = DecodeManifest("test.yaml", manifest).warnings;
    agent_->catalog.Update(std::move(list));
    manager().ObjectsChanged();
    Settle();
  }
  // What the records tell of a source that this agent has not looked into.
  void DeliverUnseen(const std::string& manifest, const std::string& why,
                     const std::string& source = "manifests") {
    ObjectList list{source, true, Objects(manifest), {}};
    list.unseen_because = why;
    agent_->catalog.Update(std::move(list));
    manager().ObjectsChanged();
    Settle();
  }
  // Such a source has been looked into, and has nothing else.
  void DeliverSeen(const std::string& source = "manifests") {
    ObjectDelta delta;
    delta.source = source;
    agent_->catalog.Update(std::move(delta));
    manager().ObjectsChanged();
    Settle();
  }
  void DeliverFailure(const std::string& source = "manifests") {
    agent_->catalog.Update({source, false, {}, {}});
    manager().ObjectsChanged();
    Settle();
  }

  // As `volumectl status` lists them, by what is mounted now.
  std::vector<std::string> UnrecordedMountsListed() {
    return manager().unrecorded_mounts([this](const std::string& place) {
      return std::any_of(kernel.mount_points.begin(), kernel.mount_points.end(),
                         [&](const std::string& mounted) {
                           return mounted == place || mounted.starts_with(place + "/");
                         });
    });
  }

  static PodVolumeKey Key(const std::string& pod, const std::string& spec) {
    return {PodUid(pod), SpecName(spec)};
  }
  PodView View(const std::string& pod) {
    const auto view = manager().pods().Find(PodUid(pod));
    EXPECT_TRUE(view.has_value()) << "no view of " << pod;
    return view.value_or(PodView{});
  }
  std::string Phase(const std::string& pod) {
    const auto view = manager().pods().Find(PodUid(pod));
    return view ? view->phase : "gone";
  }
  Status HoldPid(const std::string& pod, int64_t pid) {
    std::optional<Status> answer;
    manager().pod_commands().Hold({PodUid(pod), pid, ""},
                                  [&](Status status) { answer = std::move(status); });
    Settle();
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(OkStatus());
  }
  // Commands the deletion and lets everything follow; the answer, or none so far.
  std::optional<Status> Delete(const std::string& pod, bool force = false) {
    const auto answer = std::make_shared<std::optional<Status>>();
    manager().pod_commands().Delete(PodUid(pod), force, [answer](const Status& status) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = status;
    });
    Settle();
    return *answer;
  }
  // The same of an object that is no pod.
  std::optional<Status> DeleteObject(const ObjectKey& object) {
    const auto answer = std::make_shared<std::optional<Status>>();
    manager().object_commands().Delete(object, [answer](const Status& status) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = status;
    });
    Settle();
    return *answer;
  }
  std::optional<Status> DeleteClaim(const std::string& name) {
    return DeleteObject({ObjectKind::kPersistentVolumeClaim, "default", name});
  }
  std::optional<Status> DeleteVolume(const std::string& name) {
    return DeleteObject({ObjectKind::kPersistentVolume, "", name});
  }
  // The row that the operation layer writes for a volume.
  void PutVolumeRecord(const std::string& pod, const std::string& spec, const std::string& plugin,
                       VolumeState state, const std::string& boot_id,
                       const std::string& pod_name = "", const std::string& base_name = "") {
    PodVolumeRecord record;
    record.key = Key(pod, spec);
    record.pod_namespace = "default";
    record.pod_name = pod_name.empty() ? pod : pod_name;
    record.pod_base_name = base_name;
    record.plugin_name = plugin;
    record.state = state;
    record.boot_id = BootId(boot_id);
    ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  }
  void PutPodRecord(const std::string& pod) {
    PodRecord record;
    record.uid = PodUid(pod);
    record.ns = "default";
    record.name = pod;
    ASSERT_TRUE(store.Put(EncodeRecord(record), kPodRecordDurability).ok());
  }
  bool HasPodRecord(const std::string& pod) const {
    return store.Find(kPodRecordKind, pod).has_value();
  }

  // A pod whose one container mounts each of the volumes, given as "name: source".
  static std::string PodManifest(const std::string& uid, const std::vector<std::string>& volumes,
                                 const std::string& metadata = "", const std::string& rest = "") {
    std::string text = "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: " + uid +
                       "\n  namespace: default\n  uid: " + uid + "\n" + metadata +
                       "spec:\n  volumes:\n";
    std::string mounts;
    for (const std::string& volume : volumes) {
      const size_t colon = volume.find(':');
      const std::string name = volume.substr(0, colon);
      text += "  - name: " + name + "\n    " + volume.substr(colon + 2) + "\n";
      mounts += "    - {name: " + name + ", mountPath: /mnt/" + name + "}\n";
    }
    return text + "  containers:\n  - name: c\n    image: x\n    volumeMounts:\n" + mounts + rest;
  }
  static std::string ConfigMap(const std::string& name, const std::string& value) {
    return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
           ", namespace: default}\ndata: {k: \"" + value + "\"}\n";
  }

  ManualClock clock;
  MemoryRecordStore store;
  StubKernel kernel;
  FakeConsumerWatch watch;
  FakeNode node;
  FakeHostParts host_parts;
  KubeletPaths paths{kRoot};
  std::vector<std::string> logged;  // the lines of all agents
  ExportedFamilies families;
  FakeIrreversibleSteps irreversible;
  VolumeHost host{paths,      kernel,     clock,    host_parts,  host_parts,
                  host_parts, host_parts, families, irreversible};
  std::vector<std::pair<std::string, std::string>> plugin_kinds{
      {"kubernetes.io/empty-dir", "emptyDir"},
      {"kubernetes.io/configmap", "configMap"},
      {"kubernetes.io/secret", "secret"},
      {"kubernetes.io/downward-api", "downwardAPI"},
      {"kubernetes.io/projected", "projected"},
      {"kubernetes.io/local-volume", "local"},
      {"kubernetes.io/host-path", "hostPath"},
      {"test.io/array", "flexVolume"},
      {"kubernetes.io/nfs", "nfs"},
      {"kubernetes.io/csi", "csi"}};
  std::vector<OtherRecordKind> other_kinds;
  std::vector<std::string> sources{"manifests"};
  std::set<std::string> stuck;
  std::vector<std::string> removed_objects;  // deleted, and protected no more
  // Each source is one of removal-deletes-claims.
  bool removal_deletes = true;
  Duration decide_claims_period = Duration::zero();
  bool adopt_root = false;
  Duration stats_period{};  // zero: nothing is measured
  std::shared_ptr<FakePlugin::MetricsScript> metrics;
  std::shared_ptr<FakePlugin::AttachScript> attach = std::make_shared<FakePlugin::AttachScript>();
  std::shared_ptr<FakePlugin::DriverScript> driver = std::make_shared<FakePlugin::DriverScript>();
  SizeLimitAction size_limit_action = SizeLimitAction::kEvict;
  std::unique_ptr<Agent> agent_;
};

}  // namespace volumed
