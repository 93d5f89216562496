// The list of all metric families, one entry each: what the program calls it, its name, its type,
// the names of its labels with commas in between, its help, and where the name comes from (empty:
// it is this program's own). Only family_table.{h,cc} expand it. A new family is an entry here, and
// a call of ExportedFamilies' Set, Replace, Add, Follow or Observe where its figure is known.
//
// ExportedFamilies writes the families before kVolumeStatsCapacityBytes: the counters, the gauges,
// the histograms, each in this order. VolumeStatsText writes the others, in this order. No family
// is written by both. A name or a label that once was exported is what dashboards and alerts ask
// for, so it stays.
#pragma once

// clang-format off
#define VOLUMED_FAMILIES(X) \
  X(kStorageOperationDuration, "storage_operation_duration_seconds", kHistogram, \
    "volume_plugin,operation_name,status,migrated", \
    "How long one step of a volume took, by plugin, step and result.", kUtil) \
  X(kVolumeOperationTotal, "volume_operation_total_seconds", kHistogram, \
    "plugin_name,operation_name", \
    "How long a volume took as a whole, from first being wanted to mounted, waits " \
    "included.", kUtil) \
  X(kVolumeMetricCollectionDuration, \
    "kubelet_volume_metric_collection_duration_seconds", kHistogram, "metric_source", \
    "How long it took to measure one volume.", kServer) \
  X(kTotalVolumes, "volume_manager_total_volumes", kGauge, "plugin_name,state", \
    "Volumes that the volume manager knows, wanted and present.", kManager) \
  X(kReconstructVolumeOperations, "reconstruct_volume_operations_total", kCounter, "", \
    "Volumes found on the node at a start and tried to be taken over.", kKubelet) \
  X(kReconstructVolumeOperationsErrors, "reconstruct_volume_operations_errors_total", kCounter, \
    "", \
    "Volumes found on the node at a start that could not be taken over.", kKubelet) \
  X(kForceCleanedFailedVolumeOperations, "force_cleaned_failed_volume_operations_total", kCounter, \
    "", \
    "Volumes cleaned up after they could not be taken over at a start.", kKubelet) \
  X(kForceCleanedFailedVolumeOperationErrors, \
    "force_cleaned_failed_volume_operation_errors_total", kCounter, "", \
    "Volumes whose clean-up after a failed take-over failed too.", kKubelet) \
  X(kOrphanPodCleanedVolumes, "kubelet_orphan_pod_cleaned_volumes", kGauge, "", \
    "Volume directories of orphaned pods that were cleaned since the start.", kKubelet) \
  X(kOrphanPodCleanedVolumesErrors, "kubelet_orphan_pod_cleaned_volumes_errors", kGauge, "", \
    "Volume directories of orphaned pods that could not be cleaned so far.", kKubelet) \
  X(kEvictions, "kubelet_evictions", kCounter, "eviction_signal", \
    "Pods that had to leave, by what called for it.", kKubelet) \
  X(kCsiNodeStorageHealth, "csi_node_storage_health_status", kGauge, "driver_name,status,reason", \
    "1 for each thing that a CSI driver says is wrong with the storage behind its volumes.", \
    kKubelet) \
  X(kCsiOperations, "csi_operations_seconds", kHistogram, \
    "driver_name,method_name,grpc_status_code,migrated", \
    "How long a call to a CSI driver took, from when it was sent until it ended.", kUtil) \
  X(kCsiServed, "csi_plugin_operations_seconds", kHistogram, \
    "driver_name,method_name,grpc_status_code", \
    "How long this agent took to answer a call that it had as a CSI driver.", kCsiLibUtils) \
  X(kPlugins, "plugin_manager_total_plugins", kGauge, "socket_path,state", \
    "Sockets of plugins in plugins_registry: those that are there (desired), and those that are " \
    "registered (actual).", kPluginManager) \
  X(kBuildInfo, "volumed_build_info", kGauge, "version,revision,compiler", \
    "Always 1; the labels say what is running.", "") \
  X(kConfigReloads, "volumed_config_reloads_total", kCounter, "result", \
    "How often the configuration was read again, by whether it was taken or refused.", "") \
  X(kControlLoopLag, "volumed_control_loop_lag_seconds", kHistogram, "", \
    "How long a task waited for the control thread.", "") \
  X(kControlTaskLongest, "volumed_control_task_longest_seconds", kGauge, "task", \
    "The longest run of each task that kept the control thread for 5 ms or more, in the " \
    "last one to two minutes.", "") \
  X(kPods, "volumed_pods", kGauge, "phase", "Pods by how far their volumes are.", "") \
  X(kSourceComplete, "volumed_source_complete", kGauge, "source", \
    "1 when the source of pods has delivered a complete list since the start.", "") \
  X(kSourceIncomplete, "volumed_source_incomplete", kGauge, "source", \
    "1 while the source is INCOMPLETE (volumectl sources says why): what it lacks is " \
    "held back.", "") \
  X(kSourceProblems, "volumed_source_problems", kGauge, "source,severity", \
    "What is wrong now with the manifests of a source: error (refused), warning (unknown " \
    "field).", "") \
  X(kStuckOperations, "volumed_stuck_operations", kGauge, "operation,domain", \
    "Operations whose worker was killed at its deadline and has not died.", "") \
  X(kStuckOperationsEver, "volumed_stuck_operations_total", kCounter, "", \
    "Operations that ever became stuck since the start.", "") \
  X(kFaultDomainUp, "volumed_fault_domain_up", kGauge, "domain", \
    "1 while the server that volumes hang with answers; 0: all of its volumes are stuck.", "") \
  X(kWorkers, "volumed_workers", kGauge, "state", \
    "Worker processes: idle, busy, slow (past its deadline, not to be killed), stuck.", "") \
  X(kWorkerCallsWaiting, "volumed_worker_calls_waiting", kGauge, "", \
    "Calls that wait for a worker.", "") \
  X(kWorkerRequests, "volumed_worker_requests_total", kCounter, "", \
    "Requests handed to a worker.", "") \
  X(kWorkerFailures, "volumed_worker_failures_total", kCounter, "reason", \
    "Requests without a worker's answer: deadline_exceeded, cancelled; and workers " \
    "killed, died.", "") \
  X(kWorkersStarted, "volumed_workers_started_total", kCounter, "", \
    "Worker processes started.", "") \
  X(kMountTableMounts, "volumed_mount_table_mounts", kGauge, "source", \
    "Mounts in the kept mount table, by how it hears of changes: events, poll.", "") \
  X(kMountTableUpdates, "volumed_mount_table_updates_total", kCounter, "", \
    "Mounts that came, went or changed in the kept mount table.", "") \
  X(kMountTableFullReads, "volumed_mount_table_full_reads_total", kCounter, "", \
    "Readings of the whole mount table: the first, after lost events, every change by " \
    "poll.", "") \
  X(kRecordWrites, "volumed_records_writes_total", kCounter, "operation", \
    "Records written (put) and taken away (remove).", "") \
  X(kRecordCommits, "volumed_records_commits_total", kCounter, "", \
    "Transactions of the record store; one may hold many writes.", "") \
  X(kRecordFailures, "volumed_records_failures_total", kCounter, "", \
    "Calls of the record store that failed.", "") \
  X(kRecordsQuarantined, "volumed_records_quarantined", kGauge, "", \
    "Records that could not be read and were set aside.", "") \
  X(kRecordsOnBallast, "volumed_records_on_ballast", kGauge, "", \
    "1 when the disk of the records is full and only teardown is still recorded.", "") \
  X(kCsiDriverState, "volumed_csi_driver_state", kGauge, "driver,state", \
    "1 for the state in which a CSI driver is: ready, silent, gone, ...", "") \
  X(kCsiCallsInFlight, "volumed_csi_calls_in_flight", kGauge, "driver", \
    "Calls of volumes that a CSI driver has not answered yet.", "") \
  X(kCsiOperationsWaiting, "volumed_csi_operations_waiting", kGauge, "driver", \
    "Operations that wait for a CSI driver and have not begun.", "") \
  X(kCsiDebts, "volumed_csi_debts", kGauge, "driver", \
    "Calls that a CSI driver is owed, for volumes that were taken away without it.", "") \
  X(kCsiRegistrations, "volumed_csi_registrations_total", kCounter, "driver,result", \
    "Registrations of CSI drivers that ended, by whether the driver was registered or refused.", \
    "") \
  X(kCsiLies, "volumed_csi_lies_total", kCounter, "driver,method", \
    "Calls of which a CSI driver said that they succeeded, and the node showed that they did not.", \
    "") \
  X(kCsiServedCalls, "volumed_csi_served_calls", kGauge, "", \
    "Calls that this agent has as a CSI driver and has not answered yet.", "") \
  X(kHttpConnections, "volumed_http_connections", kGauge, "", \
    "Connections that the HTTP server has open.", "") \
  X(kHttpConnectionsClosed, "volumed_http_connections_closed_total", kCounter, "reason", \
    "Connections that ended: done, idle, header_timeout, write_timeout, made_room, " \
    "refused.", "") \
  X(kPartUp, "volumed_part_up", kGauge, "part", \
    "1 while this part of the agent works; 0: the agent goes on without it.", "") \
  X(kPoolUp, "volumed_pool_up", kGauge, "pool", \
    "1 while the pool is open and has answered when it was last looked at.", "") \
  X(kPoolCapacityBytes, "volumed_pool_capacity_bytes", kGauge, "pool", \
    "Of which the pool promises: what is configured, or else what its filesystem has.", "") \
  X(kPoolPromisedBytes, "volumed_pool_promised_bytes", kGauge, "pool", \
    "What the pool has promised to its volumes and snapshots.", "") \
  X(kPoolFreeBytes, "volumed_pool_free_bytes", kGauge, "pool", \
    "What the pool can still promise.", "") \
  X(kPoolIsShort, "volumed_pool_short", kGauge, "pool", \
    "1 while the pool's filesystem has less left than its volumes may still write: writes may " \
    "fail.", "") \
  X(kPoolAvailableBytes, "volumed_pool_available_bytes", kGauge, "pool", \
    "What the pool's filesystem has left.", "") \
  X(kPoolVolumes, "volumed_pool_volumes", kGauge, "pool", \
    "Volumes of the pool, inline ones aside.", "") \
  X(kPoolSnapshots, "volumed_pool_snapshots", kGauge, "pool", \
    "Snapshots of volumes of the pool.", "") \
  X(kPoolMeasured, "volumed_pool_measured_timestamp_seconds", kGauge, "pool", \
    "When the pool's bytes were measured, of which the other families tell.", "") \
  X(kCollected, "volumed_metrics_collected_timestamp_seconds", kGauge, "", \
    "When these figures were collected; older ones are served when the control thread is " \
    "busy.", "") \
  X(kRecordsRecovery, "volumed_records_recovery", kGauge, "", \
    "1 when the records may be older than the disks and mkfs, recycle, delete and provision are " \
    "held back.", "") \
  X(kRecordsHeldSteps, "volumed_records_held_steps", kGauge, "", \
    "Steps that were asked for and are held back until a person accepts the records.", "") \
  X(kVolumeStatsCapacityBytes, "kubelet_volume_stats_capacity_bytes", kGauge, kClaim, \
    "Capacity of the volume in bytes.", kStats) \
  X(kVolumeStatsAvailableBytes, "kubelet_volume_stats_available_bytes", kGauge, kClaim, \
    "Bytes of the volume that can still be used.", kStats) \
  X(kVolumeStatsUsedBytes, "kubelet_volume_stats_used_bytes", kGauge, kClaim, \
    "Bytes of the volume that are used.", kStats) \
  X(kVolumeStatsInodes, "kubelet_volume_stats_inodes", kGauge, kClaim, \
    "Inodes of the volume.", kStats) \
  X(kVolumeStatsInodesFree, "kubelet_volume_stats_inodes_free", kGauge, kClaim, \
    "Inodes of the volume that are free.", kStats) \
  X(kVolumeStatsInodesUsed, "kubelet_volume_stats_inodes_used", kGauge, kClaim, \
    "Inodes of the volume that are used.", kStats) \
  X(kVolumeStatsHealthAbnormal, "kubelet_volume_stats_health_status_abnormal", kGauge, kClaim, \
    "1 when the volume's driver reports it as abnormal, 0 when as healthy.", kStats) \
  X(kPodVolumeStatsCapacityBytes, "volumed_volume_stats_capacity_bytes", kGauge, kPodVolume, \
    "Capacity, in bytes, of what a pod's volume without a claim lies on.", "") \
  X(kPodVolumeStatsAvailableBytes, "volumed_volume_stats_available_bytes", kGauge, kPodVolume, \
    "Bytes that a pod's volume without a claim can still use.", "") \
  X(kPodVolumeStatsUsedBytes, "volumed_volume_stats_used_bytes", kGauge, kPodVolume, \
    "Bytes that a pod's volume without a claim uses.", "") \
  X(kPodVolumeStatsInodes, "volumed_volume_stats_inodes", kGauge, kPodVolume, \
    "Inodes of what a pod's volume without a claim lies on.", "") \
  X(kPodVolumeStatsInodesFree, "volumed_volume_stats_inodes_free", kGauge, kPodVolume, \
    "Inodes that a pod's volume without a claim can still use.", "") \
  X(kPodVolumeStatsInodesUsed, "volumed_volume_stats_inodes_used", kGauge, kPodVolume, \
    "Inodes that a pod's volume without a claim uses.", "") \
  X(kPodVolumeStatsHealthAbnormal, "volumed_volume_stats_health_status_abnormal", kGauge, \
    kPodVolume, \
    "1 when the driver of a volume without a claim reports it as abnormal.", "") \
  X(kVolumeStatsAge, "volumed_volume_stats_age_seconds", kGauge, kPodVolume, \
    "How long ago a pod's volume, with or without a claim, was measured.", "")
// clang-format on
