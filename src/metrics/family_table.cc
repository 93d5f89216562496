#include "metrics/family_table.h"

#include <array>

namespace volumed {
namespace {

// Source: kubernetes pkg/volume/util/metrics.go@v1.36.2 (storageOperationBuckets).
constexpr double kOperationBuckets[] = {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600};
// Source: prometheus client_golang histogram.go (DefBuckets).
constexpr double kDefaultBuckets[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
// From what an idle loop shows to what the watchdog ends.
constexpr double kLagBuckets[] = {.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 30};

constexpr std::string_view kUtil = "kubernetes pkg/volume/util/metrics.go@v1.36.2";
constexpr std::string_view kKubelet = "kubernetes pkg/kubelet/metrics/metrics.go@v1.36.2";
constexpr std::string_view kManager =
    "kubernetes pkg/kubelet/volumemanager/metrics/metrics.go@v1.36.2";
constexpr std::string_view kServer = "kubernetes pkg/kubelet/server/metrics/metrics.go@v1.36.2";
constexpr std::string_view kStats =
    "kubernetes pkg/kubelet/metrics/collectors/volume_stats.go@v1.36.2";

constexpr std::string_view kClaim = "namespace,persistentvolumeclaim";
constexpr std::string_view kPodVolume = "namespace,pod,volume,plugin";

constexpr FamilyType kCounter = FamilyType::kCounter;
constexpr FamilyType kGauge = FamilyType::kGauge;
constexpr FamilyType kHistogram = FamilyType::kHistogram;

constexpr std::array<FamilySpec, kFamilyCount> kTable = {{
    {Family::kStorageOperationDuration, "storage_operation_duration_seconds", kHistogram,
     "volume_plugin,operation_name,status,migrated",
     "How long one step of a volume took, by plugin, step and result.", kUtil},
    {Family::kVolumeOperationTotal, "volume_operation_total_seconds", kHistogram,
     "plugin_name,operation_name",
     "How long a volume took as a whole, from first being wanted to mounted, waits included.",
     kUtil},
    {Family::kVolumeMetricCollectionDuration, "kubelet_volume_metric_collection_duration_seconds",
     kHistogram, "metric_source", "How long it took to measure one volume.", kServer},
    {Family::kTotalVolumes, "volume_manager_total_volumes", kGauge, "plugin_name,state",
     "Volumes that the volume manager knows, wanted and present.", kManager},
    {Family::kReconstructVolumeOperations, "reconstruct_volume_operations_total", kCounter, "",
     "Volumes found on the node at a start and tried to be taken over.", kKubelet},
    {Family::kReconstructVolumeOperationsErrors, "reconstruct_volume_operations_errors_total",
     kCounter, "", "Volumes found on the node at a start that could not be taken over.", kKubelet},
    {Family::kForceCleanedFailedVolumeOperations, "force_cleaned_failed_volume_operations_total",
     kCounter, "", "Volumes cleaned up after they could not be taken over at a start.", kKubelet},
    {Family::kForceCleanedFailedVolumeOperationErrors,
     "force_cleaned_failed_volume_operation_errors_total", kCounter, "",
     "Volumes whose clean-up after a failed take-over failed too.", kKubelet},
    {Family::kOrphanPodCleanedVolumes, "kubelet_orphan_pod_cleaned_volumes", kGauge, "",
     "Volume directories of orphaned pods that the last sweep had to clean.", kKubelet},
    {Family::kOrphanPodCleanedVolumesErrors, "kubelet_orphan_pod_cleaned_volumes_errors", kGauge,
     "", "Volume directories of orphaned pods that the last sweep failed to clean.", kKubelet},
    {Family::kEvictions, "kubelet_evictions", kCounter, "eviction_signal",
     "Pods that had to leave, by what called for it.", kKubelet},

    {Family::kBuildInfo, "volumed_build_info", kGauge, "version,revision,compiler",
     "Always 1; the labels say what is running.", ""},
    {Family::kControlLoopLag, "volumed_control_loop_lag_seconds", kHistogram, "",
     "How long a task waited for the control thread.", ""},
    {Family::kControlTaskLongest, "volumed_control_task_longest_seconds", kGauge, "task",
     "The longest run of each task that kept the control thread for 5 ms or more, in the last one "
     "to two minutes.",
     ""},
    {Family::kPods, "volumed_pods", kGauge, "phase", "Pods by how far their volumes are.", ""},
    {Family::kSourceComplete, "volumed_source_complete", kGauge, "source",
     "1 when the source of pods has delivered a complete list since the start.", ""},
    {Family::kSourceIncomplete, "volumed_source_incomplete", kGauge, "source",
     "1 while the source is INCOMPLETE (volumectl sources says why): what it lacks is held back.",
     ""},
    {Family::kSourceProblems, "volumed_source_problems", kGauge, "source,severity",
     "What is wrong now with the manifests of a source: error (refused), warning (unknown field).",
     ""},
    {Family::kStuckOperations, "volumed_stuck_operations", kGauge, "operation,domain",
     "Operations whose worker was killed at its deadline and has not died.", ""},
    {Family::kStuckOperationsEver, "volumed_stuck_operations_total", kCounter, "",
     "Operations that ever became stuck since the start.", ""},
    {Family::kFaultDomainUp, "volumed_fault_domain_up", kGauge, "domain",
     "1 while the server that volumes hang with answers; 0: all of its volumes are stuck.", ""},
    {Family::kWorkers, "volumed_workers", kGauge, "state",
     "Worker processes: idle, busy, slow (past its deadline, not to be killed), stuck.", ""},
    {Family::kWorkerCallsWaiting, "volumed_worker_calls_waiting", kGauge, "",
     "Calls that wait for a worker.", ""},
    {Family::kWorkerRequests, "volumed_worker_requests_total", kCounter, "",
     "Requests handed to a worker.", ""},
    {Family::kWorkerFailures, "volumed_worker_failures_total", kCounter, "reason",
     "Requests without a worker's answer: deadline_exceeded, cancelled; and workers killed, died.",
     ""},
    {Family::kWorkersStarted, "volumed_workers_started_total", kCounter, "",
     "Worker processes started.", ""},
    {Family::kMountTableMounts, "volumed_mount_table_mounts", kGauge, "source",
     "Mounts in the kept mount table, by how it hears of changes: events, poll.", ""},
    {Family::kMountTableUpdates, "volumed_mount_table_updates_total", kCounter, "",
     "Mounts that came, went or changed in the kept mount table.", ""},
    {Family::kMountTableFullReads, "volumed_mount_table_full_reads_total", kCounter, "",
     "Readings of the whole mount table: the first, after lost events, every change by poll.", ""},
    {Family::kRecordWrites, "volumed_records_writes_total", kCounter, "operation",
     "Records written (put) and taken away (remove).", ""},
    {Family::kRecordCommits, "volumed_records_commits_total", kCounter, "",
     "Transactions of the record store; one may hold many writes.", ""},
    {Family::kRecordFailures, "volumed_records_failures_total", kCounter, "",
     "Calls of the record store that failed.", ""},
    {Family::kRecordsQuarantined, "volumed_records_quarantined", kGauge, "",
     "Records that could not be read and were set aside.", ""},
    {Family::kRecordsOnBallast, "volumed_records_on_ballast", kGauge, "",
     "1 when the disk of the records is full and only teardown is still recorded.", ""},
    {Family::kHttpConnections, "volumed_http_connections", kGauge, "",
     "Connections that the HTTP server has open.", ""},
    {Family::kHttpConnectionsClosed, "volumed_http_connections_closed_total", kCounter, "reason",
     "Connections that ended: done, idle, header_timeout, write_timeout, made_room, refused.", ""},
    {Family::kPartUp, "volumed_part_up", kGauge, "part",
     "1 while this part of the agent works; 0: the agent goes on without it.", ""},
    {Family::kCollected, "volumed_metrics_collected_timestamp_seconds", kGauge, "",
     "When these figures were collected; older ones are served when the control thread is busy.",
     ""},
    {Family::kRecordsRecovery, "volumed_records_recovery", kGauge, "",
     "1 when the records may be older than the disks and mkfs, recycle and delete are held back.",
     ""},
    {Family::kRecordsHeldSteps, "volumed_records_held_steps", kGauge, "",
     "Steps that were asked for and are held back until a person accepts the records.", ""},

    {Family::kVolumeStatsCapacityBytes, "kubelet_volume_stats_capacity_bytes", kGauge, kClaim,
     "Capacity of the volume in bytes.", kStats},
    {Family::kVolumeStatsAvailableBytes, "kubelet_volume_stats_available_bytes", kGauge, kClaim,
     "Bytes of the volume that can still be used.", kStats},
    {Family::kVolumeStatsUsedBytes, "kubelet_volume_stats_used_bytes", kGauge, kClaim,
     "Bytes of the volume that are used.", kStats},
    {Family::kVolumeStatsInodes, "kubelet_volume_stats_inodes", kGauge, kClaim,
     "Inodes of the volume.", kStats},
    {Family::kVolumeStatsInodesFree, "kubelet_volume_stats_inodes_free", kGauge, kClaim,
     "Inodes of the volume that are free.", kStats},
    {Family::kVolumeStatsInodesUsed, "kubelet_volume_stats_inodes_used", kGauge, kClaim,
     "Inodes of the volume that are used.", kStats},
    {Family::kVolumeStatsHealthAbnormal, "kubelet_volume_stats_health_status_abnormal", kGauge,
     kClaim, "1 when the volume's driver reports it as abnormal, 0 when as healthy.", kStats},

    {Family::kPodVolumeStatsCapacityBytes, "volumed_volume_stats_capacity_bytes", kGauge,
     kPodVolume, "Capacity, in bytes, of what a pod's volume without a claim lies on.", ""},
    {Family::kPodVolumeStatsAvailableBytes, "volumed_volume_stats_available_bytes", kGauge,
     kPodVolume, "Bytes that a pod's volume without a claim can still use.", ""},
    {Family::kPodVolumeStatsUsedBytes, "volumed_volume_stats_used_bytes", kGauge, kPodVolume,
     "Bytes that a pod's volume without a claim uses.", ""},
    {Family::kPodVolumeStatsInodes, "volumed_volume_stats_inodes", kGauge, kPodVolume,
     "Inodes of what a pod's volume without a claim lies on.", ""},
    {Family::kPodVolumeStatsInodesFree, "volumed_volume_stats_inodes_free", kGauge, kPodVolume,
     "Inodes that a pod's volume without a claim can still use.", ""},
    {Family::kPodVolumeStatsInodesUsed, "volumed_volume_stats_inodes_used", kGauge, kPodVolume,
     "Inodes that a pod's volume without a claim uses.", ""},
    {Family::kPodVolumeStatsHealthAbnormal, "volumed_volume_stats_health_status_abnormal", kGauge,
     kPodVolume, "1 when the driver of a volume without a claim reports it as abnormal.", ""},
    {Family::kVolumeStatsAge, "volumed_volume_stats_age_seconds", kGauge, kPodVolume,
     "How long ago a pod's volume, with or without a claim, was measured.", ""},
}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].family) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "the table follows the enum");

}  // namespace

const FamilySpec& SpecOf(Family family) { return kTable[static_cast<size_t>(family)]; }

std::vector<double> BucketsOf(Family family) {
  if (SpecOf(family).type != FamilyType::kHistogram) return {};
  if (family == Family::kVolumeMetricCollectionDuration) {
    return {std::begin(kDefaultBuckets), std::end(kDefaultBuckets)};
  }
  if (family == Family::kControlLoopLag) return {std::begin(kLagBuckets), std::end(kLagBuckets)};
  return {std::begin(kOperationBuckets), std::end(kOperationBuckets)};
}

}  // namespace volumed
