// Agent: the operations, and the volume manager that starts them.
#include <chrono>
#include <iterator>
#include <utility>

#include "agent/agent.h"
#include "agent/agent_status.h"
#include "agent/slow_tasks.h"
#include "metrics/family_table.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/volume_manager_settings.h"

namespace volumed {
namespace {

// The name of the source, as ManifestDirectory::name() has it.
std::string SourceOfDirectory(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return "manifests:" + directory;
}

}  // namespace

void Agent::MakeOperations() {
  const bool is_kubelets = root_lock_->adopted();
  detach_observer_ =
      std::make_unique<DetachObserver>(*metrics_, [this] { csi_->VolumeDetached(); });
  operations_ = std::make_unique<NodeVolumeOperations>(
      *scheduler_,
      OperationParts{.plugins = *plugins_,
                     .host = *host_,
                     .logger = *log_,
                     .store = *records_,
                     .devices = *device_records_,
                     .storage = *storage_,
                     .settings = DeadlinesOf(config_),
                     .pod_directory_owner =
                         is_kubelets ? PodDirectoryOwner::kKubelet : PodDirectoryOwner::kAgent,
                     .unrecorded = unrecorded_mounts_},
      *detach_observer_, boot_id_, lanes_.get());
  snapshots_ = std::make_unique<NodeSnapshots>(
      SnapshotEngine::Parts{*scheduler_, *operations_, pools_->volumes(), *paths_, *device_records_,
                            *records_, *kernel_, *log_, ServedDriver()},
      SnapshotSettingsOf(config_));
  MakeSnapshotObjects(snapshots_->engine());
  csi_context_.reset(new CsiContext{MakeCsiPluginParts(), *host_});
  debt_collector_ = std::make_unique<DebtCollector>(
      DebtCollector::Parts{*scheduler_, *csi_context_, *operations_, [this] { LanesChanged(); },
                           [this](const std::string& driver) { DebtPaid(driver); }});
}

void Agent::MakeSnapshotObjects(SnapshotEngine& engine) {
  snapshot_objects_ = std::make_unique<NodeSnapshotObjects>(
      NodeSnapshotObjects::Parts{*scheduler_, *log_, *records_, *catalog_, *events_, engine,
                                 pools_->volumes(), *operations_},
      [this]() -> VolumeManager& { return *manager_; });
}

VolumeManagerSettings Agent::MakeManagerSettings() const {
  VolumeManagerSettings settings;
  settings.adopt_root = root_lock_->adopted();
  settings.pod_logs_directory = config_.pod_logs_dir;
  settings.find_deadline = config_.deadline_find_volumes;
  settings.stats.period = config_.volume_stats_period;
  settings.stats.deadline = config_.deadline_stats;
  settings.health.period = config_.server_look_period;
  settings.health.deadline = config_.server_look_deadline;
  settings.verify_attached_period = config_.verify_attached_period;
  settings.size_limit_action = config_.empty_dir_limit_action;
  settings.replace_settle = config_.removal_settle;
  for (const std::string& directory : config_.removal_deletes_claims) {
    settings.removal_deletes.insert(SourceOfDirectory(directory));
  }
  settings.other_kinds = CsiClient::RecordKinds();
  for (OtherRecordKind& kind : NodePools::RecordKinds()) {
    settings.other_kinds.push_back(std::move(kind));
  }
  for (OtherRecordKind& kind : NodeSnapshots::RecordKinds()) {
    settings.other_kinds.push_back(std::move(kind));
  }
  settings.other_kinds.push_back(NodeSnapshotObjects::RecordKind());
  settings.other_kinds.push_back({kCsiDebtRecordKind, [](const Record& row) -> Status {
                                    RETURN_IF_ERROR(DecodeCsiDebt(row));
                                    return OkStatus();
                                  }});
  return settings;
}

VolumeManagerHooks Agent::MakeManagerHooks() {
  VolumeManagerHooks hooks;
  hooks.volume_measured = [this](const PodVolumeKey& key, const Metrics& metrics) {
    metrics_->VolumeMeasured(key, metrics);
  };
  hooks.may_measure = [this](const std::string& domain) {
    return !lanes_->HealthOf(domain).silent_since.has_value();
  };
  hooks.secrets_on_record = [this](SentSecretsByDriver recorded) {
    csi_earlier_secrets_->TakeRecorded(std::move(recorded));
  };
  hooks.restore_other = [this](const std::string& kind, const LoadedRecords& rows) {
    if (kind == kCsiDebtRecordKind) return csi_debts_->Restore(rows);
    if (NodePools::IsKindOf(kind)) return pools_->Restore(kind, rows);
    if (NodeSnapshots::IsKindOf(kind)) return snapshots_->Restore(kind, rows);
    if (kind == kSnapshotBindingRecordKind) return snapshot_objects_->objects().Restore(rows);
    csi_->Restore(kind, rows);
  };
  hooks.restore_operations = [this](const std::vector<PodVolumeRecord>& volumes,
                                    const std::vector<DeviceRecord>& devices) {
    operations_->Restore(volumes, devices);
    pools_->NoteFound(volumes);
  };
  hooks.found_unrecorded = [this](std::vector<UnrecordedMount> found) {
    const auto all = [](const std::string& /*place*/) { return true; };
    recovery_gate_->FoundMounts(manager_->unrecorded_mounts(all).size());
    unrecorded_mounts_->Set(std::move(found));
  };
  hooks.taken_over = [this](const TakeOver& found) { metrics_->TakenOver(found); };
  hooks.orphan_found = [this](const std::set<PodVolumeKey>& volumes) {
    metrics_->OrphanFound(volumes);
  };
  hooks.is_stuck = [this](const std::string& key) { return metrics_->IsStuck(key); };
  hooks.remove_object = [this](const ObjectKey& key, uint64_t number) {
    // Objects that one command has ended come together, and share the sync of the directory.
    ended_objects_.emplace_back(key, number);
    if (ended_objects_.size() > 1) return;
    scheduler_->Post([this] {
      scheduler_->RunBlocking([this, ended = std::exchange(ended_objects_, {})] {
        object_directory_->RemoveAll(ended);
      });
    });
  };
  hooks.object_changed = [this](const std::optional<ObjectKey>& object) {
    snapshot_objects_->objects().ObjectChanged(object);
  };
  hooks.object_named = [this](const ObjectKey& object, bool is_named) {
    NoteWanted(object, is_named);
  };
  hooks.start_sources = [this](std::map<std::string, SourceMemory> memories) {
    snapshots_->Begin();
    pools_->Open();  // all rows are there: what is in use is known
    snapshot_objects_->objects().Start();
    StartSources(std::move(memories));
  };
  return hooks;
}

Status Agent::MakeManager() {
  MakeOperations();
  consumer_watch_ = std::make_unique<ProcConsumerWatch>(*scheduler_, scheduler_->loop(),
                                                        ProcConsumerWatchOptions{});
  VolumeManagerSettings settings = MakeManagerSettings();
  std::set<std::string> removal_deletes = settings.removal_deletes;
  // These sources lose an object only by command.
  removal_deletes.insert(
      {std::string(ObjectDirectory::kSourceName), Provisioning::kSourceName, kSnapshotSource});
  manager_ = std::make_unique<VolumeManager>(
      VolumeManagerParts{*scheduler_, *catalog_, *plugins_, *operations_, *records_, *kernel_,
                         *host_, *consumer_watch_, *log_, &snapshot_objects_->contents()},
      boot_id_, std::move(settings), MakeManagerHooks());
  TellManagerOfDevices();
  node_->SetLabelsChanged(
      [this] { scheduler_->Post([this] { manager_->events().NodeLabelsChanged(); }); });
  metrics_->Watch(*manager_);
  pool_gauges_ = std::make_unique<PoolGauges>(
      PoolGauges::Parts{*scheduler_, pools_->volumes(), families_, [this] {
                          std::vector<std::string> ids;
                          for (const SnapshotRecord& one : snapshots_->engine().List({})) {
                            ids.push_back(one.id);
                          }
                          return ids;
                        }});
  metrics_->AlsoCollect([this] {
    csi_->Collect(operations_->WaitingForDrivers());
    csi_->figures().CollectDebts(csi_debts_->Counts());
    families_.Set(Family::kCsiServedCalls,
                  csi_server_ ? static_cast<double>(csi_server_->calls_under_way()) : 0);
    pool_gauges_->Collect();
  });
  WatchControlTasks();
  source_losses_ = std::make_unique<SourceLosses>(*catalog_, *manager_, removal_deletes);
  departed_pods_ = std::make_unique<DepartedPods>(*manager_);
  updates_ = std::make_unique<CatalogUpdates>(
      *scheduler_, *catalog_,
      CatalogUpdates::Hooks{[this](const ObjectUpdate& update) { UpdateBegins(update); },
                            [this](bool is_last) { PartTaken(is_last); }});
  manager_->observers().Add([this](const PodUid& pod) {
    if (manager_->pods().Has(pod)) return;
    events_->Forget(pod);
    heap_trimmer_->Changed();
  });
  return OkStatus();
}

void Agent::TellManagerOfDevices() {
  const auto names_of = [](const CatalogDevice& device) {
    std::vector<std::string> names = device.links;
    names.push_back(device.node);
    return names;
  };
  device_waiter_->SetAppearanceListener([=, this](const CatalogDevice& device) {
    manager_->events().DeviceAppeared(names_of(device));
  });
  device_waiter_->SetRemovalListener([=, this](const CatalogDevice& device) {
    manager_->events().DeviceVanished(names_of(device));
  });
}

void Agent::WatchControlTasks() {
  scheduler_->loop().SetSlowTaskListener(kSlowTask, [this](const std::string& task, Duration took) {
    metrics_->SlowTaskRan(task, took);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    log_->Debug("a task kept the control thread", {{"task", task}, {"ms", ms}});
  });
}

}  // namespace volumed
