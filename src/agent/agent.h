// Agent: the composition root. Its members are the parts of the program in the order in which they
// are made. Each part is built from the ones before it, and they are destroyed in the reverse
// order. No other class knows all parts.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/agent_metrics.h"
#include "agent/agent_parts.h"
#include "agent/catalog_host_objects.h"
#include "agent/config.h"
#include "agent/control_server.h"
#include "agent/control_service.h"
#include "agent/csi_client.h"
#include "agent/csi_served_figures.h"
#include "agent/debt_collector.h"
#include "agent/departed_pods.h"
#include "agent/detach_observer.h"
#include "agent/driver_lanes.h"
#include "agent/forget_driver.h"
#include "agent/healing_tokens.h"
#include "agent/heap_trimmer.h"
#include "agent/http_server.h"
#include "agent/metrics_text.h"
#include "agent/node_attach_detach_host.h"
#include "agent/node_pools.h"
#include "agent/node_snapshot_objects.h"
#include "agent/node_snapshots.h"
#include "agent/pool_gauges.h"
#include "agent/root_lock.h"
#include "agent/signals.h"
#include "agent/source_losses.h"
#include "agent/watchdog.h"
#include "attacher/device_finder.h"
#include "attacher/device_waiter.h"
#include "base/clock_set_watch.h"
#include "base/log.h"
#include "base/real_scheduler.h"
#include "base/socket_file.h"
#include "csi/csi_context.h"
#include "csi/csi_earlier_secrets.h"
#include "csi/csi_health.h"
#include "csi/csi_node_object.h"
#include "csi/csi_settings.h"
#include "csidriver/csi_server.h"
#include "csidriver/csi_service.h"
#include "csidriver/registration_server.h"
#include "kube/catalog_updates.h"
#include "kube/manifest_directory.h"
#include "kube/object_catalog.h"
#include "kube/object_directory.h"
#include "metrics/exported_families.h"
#include "operation/node_volume_operations.h"
#include "operation/record_format_intents.h"
#include "os/udev_device_catalog.h"
#include "os/worker_kernel.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "plugins/attach_limit_settings.h"
#include "plugins/host_path.h"
#include "plugins/nfs.h"
#include "pool/pool_operations.h"
#include "records/sqlite_record_store.h"
#include "recycler/left_over_mounts.h"
#include "recycler/local_recycler_pods.h"
#include "recycler/runc_runner.h"
#include "volumehost/event_log.h"
#include "volumehost/kubelet_paths.h"
#include "volumehost/local_token_issuer.h"
#include "volumehost/node_facts.h"
#include "volumehost/node_kubelet_host.h"
#include "volumehost/recovery_gate.h"
#include "volumehost/volume_host.h"
#include "volumemanager/volume_manager.h"
#include "volumemanager/watch/proc_consumer_watch.h"

namespace volumed {

// Where the configuration came from, so that SIGHUP can read it again.
struct ConfigOrigin {
  // The path as the command line has it; "" if the flags are all there is.
  std::string file;
  // If it is true, a reload is refused while the file is missing. Otherwise a missing file would
  // stand for the default of every setting.
  bool must_exist = false;
  // These win over the file at a reload, too.
  FlagValues flags;
};

// Threads: Create and Run on one thread, which becomes the control thread in Run. REQUIRES: the
// process has no other thread when Create is called, since Create blocks the signals that the agent
// reads from a descriptor (agent/signals.h).
class Agent {
 public:
  // Takes the root directory, starts the workers, opens the records and binds the sockets; it
  // mounts no volume of a pod yet. Errors: those of the parts, with the name of the step in front
  // ("root: ..."). A part that the agent can do without fails no start: it is tried again
  // (agent/agent_parts.h). Blocks: for the root's filesystem, without a limit, so the caller has to
  // know that it answers (CheckPlaces in agent/config_checks.h).
  static Result<std::unique_ptr<Agent>> Create(Config config, ConfigOrigin origin);
  ~Agent();

  // Serves until SIGTERM or SIGINT; mounts stay. Operations that wait for a hung filesystem may
  // still use the parts when it returns, so the caller must end the process and not destroy the
  // agent. Errors: only of the preparation, before anything is mounted. REQUIRES: it is called
  // once.
  Status Run();

 private:
  Agent(Config config, ConfigOrigin origin);

  // The steps of Create, in order.
  Status StartScheduler();
  Status OwnRoot();
  Status StartKernel();
  Status FollowMounts();   // the end of StartKernel,
  Status FollowDevices();  // in this order
  Status WatchMountEvents();
  Status OpenRecords();
  Status MakeHost();
  void OpenTokens();
  Status MakeCsi();
  CsiClientHooks MakeCsiHooks();
  Status LoadPlugins();
  CsiPluginParts MakeCsiPluginParts();
  void MakePools();
  void PoolTroubled(const std::string& path, const PoolTrouble& trouble);
  // By which volumes name the pools of this node; empty if there are none.
  std::string ServedDriver() const;
  void MakeStorageGuard();
  void MakeRecycler();
  HostPathSettings MakeHostPathSettings();
  // Null if no directory for drivers is configured.
  std::unique_ptr<DynamicPluginProber> MakeProber(const DeviceVolumeSettings& devices);
  NfsSettings MakeNfsSettings();
  void CheckRecyclerTemplate(const std::string& part, const std::string& path);
  Status MakeManager();
  void MakeOperations();
  // The engine outlives what is made.
  void MakeSnapshotObjects(SnapshotEngine& engine);
  VolumeManagerSettings MakeManagerSettings() const;
  VolumeManagerHooks MakeManagerHooks();
  void TellManagerOfDevices();
  void WatchControlTasks();
  Status MakeSources();
  Status OpenSockets();
  Status OpenOwnSocket(const SocketFileOptions& options);
  // Asks a worker whether `path` answers, before this process itself goes to a place where it might
  // hang.
  Status Answers(const std::string& path);
  // Looks at a place that only workers go to. If it does not answer, the agent reports it as a part
  // that does not work, until it answers.
  void FollowPlace(const std::string& setting, const std::string& path);
  Status MakeControlServices();
  // Errors: InvalidArgument or Unavailable, if the place belongs to another process or cannot hold
  // a socket. Any other failure may heal: it does not end the start, and the socket is tried again.
  Status OpenControlSocket(Result<ProcessLock> lock, const SocketFileOptions& options);
  void KeepControlSocket(Result<ProcessLock> lock, const SocketFileOptions& options, bool made);
  // Groups that do not exist yet may be made later, so this looks for them again and again.
  void FollowGroup(const std::string& setting, const std::string& group, const std::string& what);
  Status UseGroups();
  void OpenHttp();
  Status ServeHttp(Descriptor socket);
  HttpHandlers MakeHttpHandlers();

  // Notes that a pod names the object, or that no pod names it any more. The sources hear of it
  // soon after, once for all changes together.
  void NoteWanted(const ObjectKey& object, bool is_wanted);
  void TellWanted();
  // Tells plugins which objects are refused, if that has changed since the last call.
  void NoteRefused();
  void ExpectSources();
  void StartSources(std::map<std::string, SourceMemory> memories);
  // Drivers may register from now on; a watch of their directory that cannot be had is tried again.
  void StartCsi();
  // ---- agent_csidriver.cc: the agent as a CSI driver ----
  // Errors: Internal, if the handlers are wrong. A socket that cannot be made fails no start.
  Status MakeCsiDriver();
  void AddCsiController();
  void AddCsiSnapshots();
  void AddCsiNode();
  // Calls `serve` once the place answers.
  void ServeCsi(const std::string& part, const std::string& path, PartNeed need,
                const std::function<void()>& serve);
  void CsiRecordsLoaded();
  // Says again and again which inline volumes no kubelet will take away.
  void LookForLeftInline();
  void EndCsiDriver();
  // ---- until here ----
  // Tells operations and pods what happened to a driver.
  void DriverHappened(const std::string& driver, DriverEvent event);
  // What waited in its back-off for the debt is tried again.
  void DebtPaid(const std::string& driver);
  // ControlBackend::label_givers.
  std::map<std::string, std::string> LabelGivers() const;
  DriverTraces TracesOf(const std::string& driver) const;
  // Prepares what the plugins and the recycler need, and logs what they lack.
  void RunPlugins();
  // UpdateBegins is called before an update of a source is taken over, PartTaken after each part of
  // it.
  void UpdateBegins(const ObjectUpdate& update);
  void PartTaken(bool is_last);
  void LogProblems(const std::string& source, const char* what,
                   const std::vector<DecodeProblem>& problems);
  void AcceptRecords(const std::optional<std::string>& volume, RecordsAccepted done);
  // From now on the directory that lies at the path of this PersistentVolume is the volume's.
  void AcceptVolume(const std::string& volume,
                    const std::function<void(const Result<AcceptedDirectory>&)>& done);
  Status AcceptSource(const std::string& name, bool dry_run);
  Status ForgetSource(const std::string& name, bool dry_run);
  Error NoSource(const std::string& name) const;
  ObjectSource* FindSource(const std::string& name) const;  // null: it is not configured
  std::set<std::string> UnreadFiles(const std::string& source) const;
  // These three may be called on any thread.
  void LanesChanged();
  void MountsGone(const std::vector<std::string>& mount_points);
  void MountsChangedElsewhere(const std::vector<std::string>& mount_points);
  // The mount table has changed. This is called only if the table is followed by poll.
  void MountTableChanged();
  void Reload();
  void ApplyReload(ReloadedConfig reloaded);
  void Stop();
  void StopAfterCuts(Deadline limit);
  // Why the agent is not ready; nullopt if it is ready.
  std::optional<std::string> NotReadyReason() const;
  // A question that the control thread answers. If it does not answer in time, the answer says so.
  HttpQuestion AskControl(std::function<std::string()> question);

  // On the control thread alone, where a reload assigns it anew. From OwnRoot() on its root has no
  // links; `named_root_` is the root as it is configured.
  Config config_;
  std::string named_root_;
  const ConfigOrigin origin_;
  const Duration answer_deadline_;             // of config_, for the threads that look at places
  std::atomic<Duration> nfs_unmount_timeout_;  // of config_, for the threads of operations
  std::atomic<bool> lanes_changed_{false};     // the control thread is about to be told
  // The state of the reading that MountTableChanged() starts; kRunsAndMustAgain if the table
  // changed while it ran.
  enum class Reading { kNone, kRuns, kRunsAndMustAgain };
  Reading reading_mounts_ = Reading::kNone;
  RealClock wall_clock_;
  std::unique_ptr<Logger> log_;
  ExportedFamilies families_;
  // Before the scheduler, whose tasks may have the last connection to a driver.
  std::unique_ptr<CsiConnectionParts> csi_connections_;
  std::unique_ptr<RealScheduler> scheduler_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<AgentParts> parts_;
  std::unique_ptr<ClockSetWatch> clock_set_watch_;
  std::unique_ptr<RootLock> root_lock_;
  std::unique_ptr<KubeletPaths> paths_;
  std::unique_ptr<WorkerKernel> kernel_;
  KernelFeatures features_;
  std::unique_ptr<UdevDeviceCatalog> device_catalog_;
  std::unique_ptr<DeviceWaiter> device_waiter_;
  std::unique_ptr<DeviceFinder> device_finder_;
  std::unique_ptr<SqliteRecordStore> records_;
  std::unique_ptr<RecoveryGate> recovery_gate_;
  std::unique_ptr<HeapTrimmer> heap_trimmer_;
  std::unique_ptr<ObjectCatalog> catalog_;
  std::unique_ptr<CatalogHostObjects> host_objects_;
  std::unique_ptr<CsiEarlierSecrets> csi_earlier_secrets_;
  std::unique_ptr<HealingTokens> tokens_;
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<NodeFacts> node_;
  std::unique_ptr<NodeKubeletHost> kubelet_host_;
  std::unique_ptr<NodeAttachDetachHost> attach_detach_host_;
  std::unique_ptr<VolumeHost> host_;
  SharedCsiPluginSettings csi_plugin_settings_;
  std::shared_ptr<TrustedRoots> csi_roots_;
  std::unique_ptr<CsiClient> csi_;
  std::unique_ptr<CsiDebts> csi_debts_;
  std::unique_ptr<CsiContext> csi_context_;  // for what drivers are owed
  std::unique_ptr<CsiNodeSource> csi_node_;
  std::unique_ptr<CsiStorageHealth> csi_storage_health_;
  std::unique_ptr<DriverLanes> lanes_;
  std::unique_ptr<RuncRunner> containers_;
  std::unique_ptr<LocalRecyclerPods> recycler_pods_;
  std::unique_ptr<LeftOverMounts> left_over_mounts_;
  BootId boot_id_;
  std::unique_ptr<AgentMetrics> metrics_;
  std::unique_ptr<DeviceRecordKeeper> device_records_;
  std::unique_ptr<NodePools> pools_;
  std::unique_ptr<PoolGauges> pool_gauges_;
  std::unique_ptr<PoolServed> served_pools_;  // null: the agent is no CSI driver with pools
  const std::shared_ptr<UnrecordedMounts> unrecorded_mounts_ = std::make_shared<UnrecordedMounts>();
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<RecordFormatIntents> format_intents_;
  AttachLimitSettings attach_limits_;
  // Objects whose files are to be removed, each with the number of the command that deleted it.
  std::vector<std::pair<ObjectKey, uint64_t>> ended_objects_;
  std::unique_ptr<VolumePluginMgr> plugins_;
  std::unique_ptr<DetachObserver> detach_observer_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  std::unique_ptr<NodeSnapshots> snapshots_;
  std::unique_ptr<NodeSnapshotObjects> snapshot_objects_;
  std::unique_ptr<ProcConsumerWatch> consumer_watch_;
  std::unique_ptr<DebtCollector> debt_collector_;
  std::unique_ptr<VolumeManager> manager_;
  std::unique_ptr<SourceLosses> source_losses_;
  std::unique_ptr<DepartedPods> departed_pods_;
  std::unique_ptr<CatalogUpdates> updates_;
  // What was so of all sources when the update began that is being taken over now.
  bool were_complete_ = false;
  bool were_in_order_ = false;
  size_t were_unseen_ = 0;
  std::vector<std::unique_ptr<ObjectSource>> sources_;  // as configured
  // The one of sources_ that `apply` writes to.
  ObjectDirectory* object_directory_ = nullptr;
  // The Secrets and ConfigMaps that pods name, as the sources were told; and what has changed
  // since.
  std::set<ObjectKey> wanted_objects_;
  std::map<ObjectKey, bool> wanted_news_;
  uint64_t refused_version_ = 0;
  std::unique_ptr<ControlBackend> control_backend_;
  std::map<PeerRole, std::unique_ptr<ControlService>> control_services_;
  std::unique_ptr<ControlServer> control_server_;
  std::unique_ptr<SocketFileKeeper> control_socket_;
  // Null: the agent is no CSI driver, or does not register as one.
  std::unique_ptr<CsiHandlers> csi_handlers_;
  std::unique_ptr<CsiServedFigures> csi_served_figures_;
  std::unique_ptr<CsiServer> csi_server_;
  // Whether the driver's socket is there.
  Status csi_serves_ = Error::NotApplied(Code::kUnavailable, "its socket is not made yet");
  std::unique_ptr<RegistrationServer> csi_registration_;
  std::unique_ptr<MetricsText> metrics_text_;
  std::unique_ptr<HttpServer> http_server_;
  std::unique_ptr<Watchdog> watchdog_;
};

// Makes an agent and runs it; ends the process itself after Run(). Returns the exit status if the
// agent could not be made. Errors go to stderr.
int RunAgent(const Config& config, const ConfigOrigin& origin);

}  // namespace volumed
