// Agent: the volume plugins, and what they need from other parts of the agent.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/agent.h"
#include "agent/own_directories.h"
#include "csi/csi_call_by_hand.h"
#include "csi/csi_plugin.h"
#include "plugins/flex_volume_prober.h"
#include "plugins/in_tree_plugins.h"
#include "pool/pool_plugin.h"
#include "recycler/recycler_pod_template.h"

namespace volumed {
namespace {

// How long plugins wait for every source to deliver.
constexpr auto kPluginsWait = std::chrono::minutes(10);

}  // namespace

Status Agent::LoadPlugins() {
  metrics_ = std::make_unique<AgentMetrics>(*kernel_, *records_, *recovery_gate_, *catalog_,
                                            *scheduler_, families_);
  device_records_ = std::make_unique<DeviceRecordKeeper>(*records_, scheduler_->clock(), *log_,
                                                         *metrics_, boot_id_);
  plugins_ = std::make_unique<VolumePluginMgr>();
  MakePools();
  MakeStorageGuard();
  format_intents_ = std::make_unique<RecordFormatIntents>(*device_records_, *storage_, boot_id_);
  InTreePluginSettings settings;
  settings.local.format_intents = format_intents_.get();
  settings.iscsi.formats = settings.local;
  settings.iscsi.devices = device_finder_.get();
  settings.iscsi.options.admin.timeout = config_.deadline_iscsiadm;
  settings.iscsi.options.device_timeout = config_.iscsi_device_timeout;
  settings.iscsi.options.multipath_timeout = config_.iscsi_multipath_timeout;
  settings.iscsi.options.more_portals_timeout = config_.iscsi_more_portals_timeout;
  settings.fc.device.format_intents = format_intents_.get();
  settings.fc.devices = device_finder_.get();
  settings.fc.looks = {config_.device_look_first, config_.device_look_longest};
  attach_limits_.Set(config_.attach_limits);
  settings.iscsi.limits = &attach_limits_;
  settings.fc.limits = &attach_limits_;
  MakeRecycler();
  settings.host_path = MakeHostPathSettings();
  settings.nfs = MakeNfsSettings();
  std::unique_ptr<DynamicPluginProber> prober = MakeProber(settings.local);
  auto of_pools = std::make_unique<PoolPlugin>(
      PoolPluginParts{pools_->volumes(),
                      ServedDriver(),
                      settings.local,
                      {settings.nfs.unmount_timeout, settings.nfs.force_timeout}});
  std::vector<std::unique_ptr<VolumePlugin>> plugins = MakeInTreePlugins(std::move(settings));
  plugins.push_back(std::move(of_pools));
  plugins.push_back(std::make_unique<CsiPlugin>(MakeCsiPluginParts()));
  return plugins_->InitPlugins(std::move(plugins), std::move(prober), *host_, *log_);
}

CsiPluginParts Agent::MakeCsiPluginParts() {
  return {.scheduler = *scheduler_,
          .drivers = csi_->drivers(),
          .devices = *device_records_,
          .settings = csi_plugin_settings_,
          .log = *log_,
          .lied = [this](const CsiAnswered& call,
                         const std::string& found) { csi_->DriverLied(call, found); },
          .commands = &csi_->commands(),
          .debts = csi_debts_.get(),
          .unrecorded = unrecorded_mounts_.get(),
          .served_here = ServedDriver()};
}

std::string Agent::ServedDriver() const {
  return config_.pools.empty() ? "" : config_.csi_driver_name;
}

// What an agent before this one has left of pools is taken away also where none is configured.
void Agent::MakePools() {
  const std::string holder =
      "the agent of node " + config_.node_name + ", with pid " + std::to_string(::getpid());
  pools_ = std::make_unique<NodePools>(
      NodePools::Parts{*scheduler_, *kernel_, *records_, *log_, *recovery_gate_, *device_records_,
                       *paths_, *parts_,
                       [this] {
                         snapshots_->PoolOpened();
                         manager_->events().PluginChanged(kPoolPluginName);
                         manager_->events().MakersAreBack();
                       },
                       [this](const std::string& path, const PoolTrouble& trouble) {
                         PoolTroubled(path, trouble);
                       }},
      PoolSettingsOf(config_, holder), StaticVolumesOf(config_));
  if (config_.pools.empty()) return;
  const std::string driver = ServedDriver();
  const Status labelled =
      node_->MergeTopology(driver, {{PoolTopologyLabel(driver), config_.node_name}});
  // Its volumes say by this label where they are.
  parts_->Set("label of the pools", labelled, PartNeed::kOptional);
}

void Agent::PoolTroubled(const std::string& path, const PoolTrouble& trouble) {
  NodeEvents& events = manager_->events();
  if (trouble.reason.empty()) return events.StorageMended(path);
  const bool is_warning = trouble.reason == kPoolShortReason;
  events.StorageTroubled(
      path, {trouble.reason, trouble.text, scheduler_->clock().WallUnixMillis(), is_warning});
}

std::unique_ptr<DynamicPluginProber> Agent::MakeProber(const DeviceVolumeSettings& devices) {
  if (config_.volume_plugin_dir.empty()) return nullptr;
  FlexVolumeProberSettings settings;
  settings.directory = config_.volume_plugin_dir;
  settings.init_deadline = config_.deadline_flex_volume_init;
  settings.first_wait = config_.flex_volume_first_wait;
  settings.devices = devices;
  settings.limits = &attach_limits_;
  const Status answers = Answers(config_.volume_plugin_dir);
  if (!answers.ok()) settings.silent = answers.error();
  auto made = std::make_unique<FlexVolumeProber>(
      FlexVolumeProber::Parts{*scheduler_, &scheduler_->loop(), *kernel_, *log_},
      std::move(settings), [this](const std::string& plugin) {
        scheduler_->Post([this, plugin] {
          if (manager_) manager_->events().PluginChanged(plugin);
        });
      });
  if (answers.ok()) return made;
  // The plugin manager owns the prober and outlives what the scheduler runs.
  FlexVolumeProber* const prober = made.get();
  parts_->Retry(
      "volume-plugin-dir", answers.error(),
      [this, prober, directory = config_.volume_plugin_dir]() -> Status {
        RETURN_IF_ERROR(Answers(directory));
        return prober->Open();
      },
      [prober] {
        prober->Follow();
        return OkStatus();
      });
  return made;
}

void Agent::RunPlugins() {
  scheduler_->RunBlocking([this] {
    CallOptions call;
    call.deadline = Deadline::After(scheduler_->clock(), kPluginsWait);
    if (const Status ran = plugins_->Run(call); !ran.ok()) {
      log_->Warning("plugins have not got what they wait for", {{"error", ran.error()}});
    }
  });
}

void Agent::MakeStorageGuard() {
  storage_ = std::make_unique<StorageGuard>(
      *kernel_, *records_, scheduler_->clock(), *log_, boot_id_,
      StorageGuardSettings{.look = config_.deadline_identify_storage,
                           .short_look = config_.deadline_identify_other_storage});
  for (const OwnDirectory& own : OwnDirectoriesOf(config_)) {
    storage_->AddOwnDirectory(own.what, own.path);
  }
  for (const auto& [name, path] : config_.pools) {
    storage_->AddOwnDirectory("the directory of pool " + name + ",", path);
  }
  storage_->AddDeletions(OpenDeletionsOf(csi_->commands()));
}

void Agent::MakeRecycler() {
  const Clock& clock = scheduler_->clock();
  containers_ = std::make_unique<RuncRunner>(
      RuncOptions{config_.runc, config_.busybox, config_.root + "/volumed/recycler"}, *kernel_,
      clock);
  recycler_pods_ = std::make_unique<LocalRecyclerPods>(*kernel_, *containers_, clock,
                                                       config_.root + "/volumed/recycler-volumes");
  left_over_mounts_ = std::make_unique<LeftOverMounts>(*scheduler_, *recycler_pods_, *log_);
  catalog_->AddListener([this](const std::vector<ObjectChange>& changes) {
    const bool volume_gone = std::any_of(changes.begin(), changes.end(), [](const auto& change) {
      return change.what == ObjectChange::What::kRemoved &&
             change.key.kind == ObjectKind::kPersistentVolume;
    });
    if (volume_gone) left_over_mounts_->Remove();
  });
}

// A template that cannot be read keeps the volumes that need it from being scrubbed, each with the
// reason; it affects nothing else.
void Agent::CheckRecyclerTemplate(const std::string& part, const std::string& path) {
  const auto load = [this, path]() -> Status {
    if (!path.empty()) RETURN_IF_ERROR(Answers(path));
    const Result<Pod> loaded = LoadRecyclerPodTemplate(path);
    return loaded.ok() ? OkStatus() : Status(loaded.error());
  };
  if (const Status loaded = load(); !loaded.ok()) {
    parts_->Retry(
        part, loaded.error(), load, [] { return OkStatus(); }, PartNeed::kOptional);
  }
}

NfsSettings Agent::MakeNfsSettings() {
  NfsSettings settings;
  settings.recycler_pods = recycler_pods_.get();
  settings.unmount_timeout = [this] { return nfs_unmount_timeout_.load(); };
  settings.force_timeout = config_.nfs_force_timeout;
  settings.remove_timeout = config_.nfs_remove_timeout;
  settings.config.recycler_minimum_timeout_seconds = config_.nfs_recycler_minimum_seconds;
  settings.config.recycler_timeout_increment_seconds = config_.nfs_recycler_increment_seconds;
  settings.config.other_attributes[kRecyclerTemplateAttribute] = config_.nfs_recycler_template;
  CheckRecyclerTemplate("recycler of nfs volumes", config_.nfs_recycler_template);
  return settings;
}

HostPathSettings Agent::MakeHostPathSettings() {
  HostPathSettings settings;
  settings.roots = config_.host_path_roots;
  settings.recycler_pods = recycler_pods_.get();
  settings.config.provisioning_enabled = config_.host_path_provisioning;
  settings.config.recycler_minimum_timeout_seconds = config_.host_path_recycler_minimum_seconds;
  settings.config.recycler_timeout_increment_seconds = config_.host_path_recycler_increment_seconds;
  settings.config.other_attributes[kRecyclerTemplateAttribute] =
      config_.host_path_recycler_template;
  CheckRecyclerTemplate("recycler of hostPath volumes", config_.host_path_recycler_template);
  return settings;
}

}  // namespace volumed
