#include "agent/agent.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>
#include <utility>

#include "agent/agent_status.h"
#include "agent/config_checks.h"
#include "agent/csi_settings_of_config.h"
#include "agent/far_manifest_reader.h"
#include "base/strings.h"
#include "csi/csi_names.h"
#include "kube/field_rules.h"
#include "kube/static_pod.h"
#include "metrics/family_table.h"
#include "mounter/node_root.h"
#include "os/mount_table.h"
#include "os/process_scope.h"
#include "plugins/in_tree_plugins.h"
#include "plugins/projected.h"
#include "volumehost/swap.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/volume_manager_settings.h"

namespace volumed {
namespace {

constexpr auto kPrepareRootTimeout = std::chrono::seconds(20);
constexpr int kPrepareRootAgain = 4;
// Within the time that a unit or a pod gives an agent that is to end.
constexpr auto kLongestLastCut = std::chrono::seconds(10);
constexpr auto kLookAtCuts = std::chrono::milliseconds(5);
constexpr char kTokensPart[] = "tokens";
constexpr char kKeys[] = "keys";  // below the agent's own directory
constexpr char kBootIdFile[] = "/proc/sys/kernel/random/boot_id";

std::string HostName() {
  utsname names{};
  return NormalNodeName(uname(&names) == 0 ? names.nodename : "localhost");
}

Result<BootId> ReadBootId() {
  std::ifstream file(kBootIdFile);
  std::string text;
  if (!(file >> text)) {
    return Error::NotApplied(Code::kUnavailable, std::string("cannot read ") + kBootIdFile);
  }
  return BootId(text);
}

// Empty if the kernel has no swap at all.
std::string ReadProcSwaps() {
  std::ifstream file("/proc/swaps");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The pages on which workers note what they work on are files. On a tmpfs they need neither room on
// the root's disk nor a disk that can be written, so a teardown works without both. The mount
// outlives the agent, as busy workers do.
Status MountKeys(Kernel& kernel, const std::string& directory, const CallOptions& call) {
  SafePath target;
  target.root = directory;
  target.relative = kKeys;
  ASSIGN_OR_RETURN(const FileInfo found,
                   kernel.Call(Stat{.path = target, .only_mount_point = true}, call));
  if (found.is_mount_point) return OkStatus();
  RETURN_IF_ERROR(kernel.Call(Mount{.fs_type = "tmpfs",
                                    .source = "volumed-keys",
                                    .target = target,
                                    .options = {"mode=0700", "size=16m", "nosuid", "nodev"}},
                              call));
  return OkStatus();
}

}  // namespace

Agent::Agent(Config config, ConfigOrigin origin)
    : config_(std::move(config)),
      origin_(std::move(origin)),
      answer_deadline_(config_.deadline_answer),
      nfs_unmount_timeout_(config_.nfs_unmount_timeout) {
  if (config_.node_name.empty()) config_.node_name = HostName();
}

Agent::~Agent() {
  if (!kernel_) return;
  const KeptMountTable& mounts = kernel_->mount_table();
  scheduler_->loop().UnwatchFd(mounts.event_fd() >= 0 ? mounts.event_fd() : mounts.change_fd());
}

Result<std::unique_ptr<Agent>> Agent::Create(Config config, ConfigOrigin origin) {
  struct Step {
    const char* name;
    Status (Agent::*run)();
  };
  static constexpr Step kSteps[] = {
      {"scheduler", &Agent::StartScheduler},
      {"root", &Agent::OwnRoot},
      {"kernel", &Agent::StartKernel},
      {"records", &Agent::OpenRecords},
      {"host", &Agent::MakeHost},
      {"csi", &Agent::MakeCsi},
      {"plugins", &Agent::LoadPlugins},
      {"manager", &Agent::MakeManager},
      {"sources", &Agent::MakeSources},
      {"sockets", &Agent::OpenSockets},
  };
  std::unique_ptr<Agent> agent(new Agent(std::move(config), std::move(origin)));
  for (const Step& step : kSteps) {
    if (Status status = (agent.get()->*step.run)(); !status.ok()) {
      return status.error().With(step.name);
    }
  }
  return agent;
}

Status Agent::StartScheduler() {
  LogOptions options;
  options.min_level = config_.log_level;
  options.target = LogTargetFromEnvironment();
  log_ = std::make_unique<Logger>(options, wall_clock_);
  ASSIGN_OR_RETURN(boot_id_, ReadBootId());
  ASSIGN_OR_RETURN(scheduler_, RealScheduler::Create());
  parts_ = std::make_unique<AgentParts>(*scheduler_, *log_, [this] {
    if (watchdog_) watchdog_->Status(NotReadyReason().value_or("ready"));
  });
  ASSIGN_OR_RETURN(signals_,
                   Signals::Create(scheduler_->loop(), {[this] { Stop(); }, [this] { Reload(); }}));
  return OkStatus();
}

Status Agent::OwnRoot() {
  ASSIGN_OR_RETURN(RootLock lock, RootLock::Acquire(config_.root, config_.adopt_root));
  root_lock_ = std::make_unique<RootLock>(std::move(lock));
  // It may be a link. Mounts lie where it leads now, and are looked for under that name.
  named_root_ = config_.root;
  std::error_code error;
  config_.root = std::filesystem::canonical(named_root_, error).string();
  if (error) {
    return Error::FromErrno(error.value(), "look at " + named_root_, Outcome::kNotApplied);
  }
  std::vector<KubeletPaths::DeviceLayout> layouts = InTreeDeviceLayouts();
  layouts.push_back(CsiDeviceAt);
  paths_ = std::make_unique<KubeletPaths>(config_.root, std::move(layouts));
  return OkStatus();
}

Status Agent::StartKernel() {
  const std::string keys = config_.root + "/volumed/" + kKeys;
  if (::mkdir(keys.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error::FromErrno(errno, "make " + keys, Outcome::kNotApplied);
  }
  WorkerKernelOptions options;
  ASSIGN_OR_RETURN(options.worker_path, FindWorker(config_.worker));
  options.agent_root = config_.root;
  options.masked_features = config_.masked_kernel_features;
  options.max_workers = config_.max_workers;
  options.max_per_domain = config_.max_workers_per_domain;
  options.lanes_changed = [this] { LanesChanged(); };
  options.mount_watch.below = config_.root + "/pods";
  options.mount_watch.gone = [this](const std::vector<std::string>& gone) { MountsGone(gone); };
  options.mount_watch.changed_elsewhere = [this](const std::vector<std::string>& changed) {
    MountsChangedElsewhere(changed);
  };
  RETURN_IF_ERROR(CheckRootIsMounted());
  ASSIGN_OR_RETURN(kernel_, WorkerKernel::Create(options, scheduler_->clock()));
  CallOptions call;
  call.deadline = Deadline::After(scheduler_->clock(), kPrepareRootTimeout);
  const auto prepare = [&]() -> Status {
    RETURN_IF_ERROR(PrepareRoot(*kernel_, *paths_, call));
    return MountKeys(*kernel_, config_.root + "/volumed", call);
  };
  // A worker that somebody ends right now must not end the start: the same call is made again.
  Status prepared = prepare();
  for (int again = 0; again < kPrepareRootAgain && !prepared.ok(); ++again) {
    if (prepared.error().code() != Code::kUnavailable) break;
    prepared = prepare();
  }
  RETURN_IF_ERROR(prepared);
  RETURN_IF_ERROR(kernel_->KeepKeysIn(keys));
  ASSIGN_OR_RETURN(features_, kernel_->Call(ProbeFeatures{}, call));
  const std::optional<std::string> why_not = WhyNoScopes();
  log_->Info("scopes of their own for mount helpers",
             {{"available", !why_not.has_value()}, {"why_not", why_not.value_or("")}});
  RETURN_IF_ERROR(FollowMounts());
  return FollowDevices();
}

Status Agent::FollowDevices() {
  ASSIGN_OR_RETURN(device_catalog_, UdevDeviceCatalog::Create(scheduler_->loop()));
  device_waiter_ = std::make_unique<DeviceWaiter>(
      *scheduler_, *kernel_, *device_catalog_,
      DeviceWaiterOptions{.first_recheck = config_.device_look_first,
                          .longest_recheck = config_.device_look_longest,
                          .identify_timeout = config_.deadline_identify_device});
  device_finder_ = std::make_unique<WaitingDeviceFinder>(*scheduler_, *device_waiter_);
  log_->Info("devices", {{"events", DeviceEventSourceName(device_catalog_->source())}});
  return OkStatus();
}

Status Agent::MakeHost() {
  const Clock& clock = scheduler_->clock();
  catalog_ = std::make_unique<ObjectCatalog>(clock);
  heap_trimmer_ = std::make_unique<HeapTrimmer>(*scheduler_, &TrimHeap);
  // These sources lose an object only by command.
  catalog_->AbsenceEnds(std::string(ObjectDirectory::kSourceName));
  catalog_->AbsenceEnds(Provisioning::kSourceName);
  catalog_->AbsenceEnds(kSnapshotSource);
  host_objects_ = std::make_unique<CatalogHostObjects>();
  csi_earlier_secrets_ = std::make_unique<CsiEarlierSecrets>(CsiEarlierSecrets::Parts{
      *host_objects_, *log_,
      [this](const std::string& driver) { csi_->drivers().TextsShown(driver); }});
  catalog_->AddListener([this](const std::vector<ObjectChange>& changes) {
    host_objects_->Follow(changes);
    csi_earlier_secrets_->Follow(changes);
    NoteRefused();
    heap_trimmer_->Changed();
  });
  OpenTokens();
  events_ = std::make_unique<EventLog>(clock);
  catalog_->AddListener([this](const std::vector<ObjectChange>& changes) {
    for (const ObjectChange& change : changes) {
      // Events about an earlier object of the same name do not concern the new one.
      if (change.what == ObjectChange::What::kAdded) events_->Forget(change.key);
    }
  });
  if (!features_.tmpfs_noswap && SwapIsOn(ReadProcSwaps())) {
    events_->RecordNodeEvent(EventType::kWarning, kMemoryOnDiskReason, kMemoryOnDiskMessage);
  }
  if (const auto reason = rules::kDnsSubdomain.broken(config_.node_name)) {
    // Only the host's own name can be so, since a wrong setting is refused.
    log_->Warning("the host's name is none for a node of Kubernetes: set node-name",
                  {{"name", config_.node_name}, {"reason", *reason}});
  }
  NodeFactsOptions facts;
  facts.name = NodeName(config_.node_name);
  facts.labels = config_.node_labels;
  facts.features = features_;
  ASSIGN_OR_RETURN(node_, NodeFacts::Read(std::move(facts)));
  kubelet_host_ = std::make_unique<NodeKubeletHost>(clock);
  catalog_->AddListener(
      [this](const std::vector<ObjectChange>& changes) { kubelet_host_->Follow(changes); });
  attach_detach_host_ = std::make_unique<NodeAttachDetachHost>(*host_objects_, *kubelet_host_);
  host_.reset(new VolumeHost{*paths_, *kernel_, clock, *host_objects_, *tokens_, *events_, *node_,
                             families_, *recovery_gate_, kubelet_host_.get(),
                             attach_detach_host_.get()});
  Result<std::shared_ptr<const ContentKey>> content_key =
      ContentKey::Open(config_.root + "/volumed/keys");
  if (content_key.ok()) {
    host_->content_key = *std::move(content_key);
  } else {
    log_->Warning("no key to know published content by: a restart sets up every volume again",
                  {{"error", content_key.error()}});
  }
  return OkStatus();
}

// If the token key cannot be read, volumes with tokens wait, with the reason; all other volumes do
// not.
void Agent::OpenTokens() {
  tokens_ = std::make_unique<HealingTokens>();
  LocalTokenIssuerOptions options;
  options.directory = config_.root + "/volumed/tokens";
  options.issuer = config_.token_issuer;
  const auto open = [this, options]() -> Status {
    Result<std::unique_ptr<LocalTokenIssuer>> issuer =
        LocalTokenIssuer::Open(options, scheduler_->clock());
    if (!issuer.ok()) {
      tokens_->Refuse(issuer.error());
      return issuer.error();
    }
    tokens_->Use(std::move(issuer).value());
    return OkStatus();
  };
  if (const Status opened = open(); !opened.ok()) {
    return parts_->Retry(kTokensPart, opened.error(), open, [this]() -> Status {
      manager_->events().PluginChanged(kProjectedPluginName);
      return OkStatus();
    });
  }
  parts_->Set(kTokensPart, OkStatus());
}

Status Agent::MakeSources() {
  const NodeName node(config_.node_name);
  auto applied =
      std::make_unique<ObjectDirectory>(config_.root + "/volumed/objects", node, *scheduler_,
                                        VOLUMED_VERSION, [this] { return records_->CheckRoom(); });
  object_directory_ = applied.get();
  sources_.push_back(std::move(applied));
  const auto peers = std::make_shared<ManifestPeers>();
  if (config_.csi_only) return OkStatus();
  for (const std::string& directory : config_.manifest_dirs) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<ManifestDirectory> source,
        ManifestDirectory::Create(
            directory, node, *scheduler_, scheduler_->loop(), config_.removal_settle,
            {.read_far =
                 [this, deadline = config_.deadline_far_manifest](const std::string& path) {
                   return ReadFarContent(*kernel_, scheduler_->clock(), path, deadline);
                 },
             .far_deadline = config_.deadline_far_manifest,
             .peers = peers,
             .answers = [this](const std::string& path) { return Answers(path); }}));
    sources_.push_back(std::move(source));
  }
  return OkStatus();
}

// Why the agent is not ready: what the manager waits for, what a plugin says keeps the node from
// being ready, or that steps are held back. etcd answers in the same way when it has found its data
// to be corrupt, and goes on with harmless work. Source: etcd
// server/etcdserver/api/etcdhttp/health.go@v3.6.0 (readyz, data_corruption).
std::optional<std::string> Agent::NotReadyReason() const {
  if (!manager_->Ready()) return manager_->NotReadyReason();
  if (const std::optional<Error> error = kubelet_host_->kubelet_error()) return error->message();
  if (const RecordsRecovery recovery = recovery_gate_->recovery(); recovery.active) {
    return "the records may be older than the disks, and mkfs, recycle, delete and provision are "
           "held back: " +
           recovery.reason + " (see `volumectl records`)";
  }
  return parts_->Problem();
}

// If the file cannot be read, is wrong, or is missing, nothing changes.
void Agent::Reload() {
  watchdog_->Reloading();
  Result<Config> loaded = LoadConfig(origin_.file, origin_.must_exist, origin_.flags);
  families_.Add(Family::kConfigReloads, {loaded.ok() ? "taken" : "refused"}, 1);
  if (loaded.ok()) {
    if (loaded->node_name.empty()) loaded->node_name = HostName();
    if (loaded->root == named_root_) loaded->root = config_.root;
    ApplyReload(MergeReloadable(config_, *loaded));
  } else {
    log_->Error("configuration not reloaded: the old one stays whole", {{"error", loaded.error()}});
  }
  watchdog_->Ready(NotReadyReason().value_or("ready"));
}

void Agent::ApplyReload(ReloadedConfig reloaded) {
  config_ = std::move(reloaded.config);
  log_->SetLevel(config_.log_level);
  kernel_->SetLimits(config_.max_workers, config_.max_workers_per_domain);
  operations_->SetSettings(DeadlinesOf(config_));
  snapshots_->engine().SetSettings(SnapshotSettingsOf(config_));
  manager_->SetStatsTimes(config_.volume_stats_period, config_.deadline_stats);
  manager_->SetServerLookPeriod(config_.server_look_period);
  manager_->SetVerifyAttachedPeriod(config_.verify_attached_period);
  for (const auto& source : sources_) source->SetSettle(config_.removal_settle);
  manager_->SetReplaceSettle(config_.removal_settle);
  attach_limits_.Set(config_.attach_limits);
  manager_->events().AttachLimitsChanged();
  nfs_unmount_timeout_ = config_.nfs_unmount_timeout;
  csi_->SetSettings(config_.csi_socket_owners, CsiDriverSettingsOf(config_));
  csi_plugin_settings_.Set(CsiPluginSettingsOf(config_));
  debt_collector_->SettingsChanged();
  csi_storage_health_->SetPeriod(config_.volume_stats_period);
  control_backend_->look_patience = config_.deadline_look;
  control_backend_->driver_call_patience = config_.deadline_csi_call;
  std::vector<std::string> changed;
  for (const ChangedKey& key : reloaded.changes) {
    if (key.reloadable) {
      changed.push_back(key.name);
      continue;
    }
    log_->Warning("setting needs a restart: the old value stays",
                  {{"key", key.name}, {"stays", key.running}, {"wanted", key.loaded}});
  }
  log_->Info("configuration reloaded", {{"changed", Join(changed, ",")}});
}

Status Agent::Run() {
  ASSIGN_OR_RETURN(clock_set_watch_, ClockSetWatch::Create(scheduler_->loop(), [this] {
                     log_->Info("the wall clock was set");
                     manager_->events().WallClockWasSet();
                   }));
  ExpectSources();
  manager_->Start();  // it starts the sources once what the last agent left is loaded
  RunPlugins();
  for (const std::string& root : config_.host_path_roots) FollowPlace("host-path-root", root);
  left_over_mounts_->Remove();
  scheduler_->Post([this] {
    log_->Info("volumed started",
               {{"version", VOLUMED_VERSION}, {"root", config_.root}, {"node", config_.node_name}});
    watchdog_->Ready(NotReadyReason().value_or("ready"));
  });
  scheduler_->Run();
  return OkStatus();
}

void Agent::Stop() {
  log_->Info("volumed stops; mounts stay");
  watchdog_->Stopping();
  EndCsiDriver();
  StopAfterCuts(Deadline::After(scheduler_->clock(), kLongestLastCut));
}

// Whoever ends an agent in a container ends its workers and their thawers with it. What they have
// frozen then would stay so until the next agent thaws it.
void Agent::StopAfterCuts(Deadline limit) {
  if (snapshots_ && snapshots_->engine().EndCuts() && !limit.Passed(scheduler_->clock())) {
    scheduler_->PostAfter(kLookAtCuts, [this, limit] { StopAfterCuts(limit); });
    return;
  }
  scheduler_->Stop();
}

int RunAgent(const Config& config, const ConfigOrigin& origin) {
  Result<std::unique_ptr<Agent>> agent = Agent::Create(config, origin);
  if (!agent.ok()) {
    std::cerr << "volumed: " << agent.error().ToString() << "\n";
    return EXIT_FAILURE;
  }
  const Status status = (*agent)->Run();
  if (!status.ok()) std::cerr << "volumed: " << status.error().ToString() << "\n";
  // Operations may still wait for a hung filesystem and use the parts, so nothing is destroyed.
  // Nothing has to be: records are written when they are made, and mounts outlive the agent.
  std::cerr.flush();
  ::_exit(status.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace volumed
