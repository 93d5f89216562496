// Every metric family that this program exports: the one place to read, and to change, a name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

enum class FamilyType { kCounter, kGauge, kHistogram };

// In the order of the table. The first group is written by ExportedFamilies, the second, from
// kVolumeStatsCapacityBytes on, by VolumeStatsText. No family is written by both.
enum class Family {
  kStorageOperationDuration,
  kVolumeOperationTotal,
  kVolumeMetricCollectionDuration,
  kTotalVolumes,
  kReconstructVolumeOperations,
  kReconstructVolumeOperationsErrors,
  kForceCleanedFailedVolumeOperations,
  kForceCleanedFailedVolumeOperationErrors,
  kOrphanPodCleanedVolumes,
  kOrphanPodCleanedVolumesErrors,
  kEvictions,
  kBuildInfo,
  kControlLoopLag,
  kControlTaskLongest,
  kPods,
  kSourceComplete,
  kSourceIncomplete,
  kSourceProblems,
  kStuckOperations,
  kStuckOperationsEver,
  kFaultDomainUp,
  kWorkers,
  kWorkerCallsWaiting,
  kWorkerRequests,
  kWorkerFailures,
  kWorkersStarted,
  kMountTableMounts,
  kMountTableUpdates,
  kMountTableFullReads,
  kRecordWrites,
  kRecordCommits,
  kRecordFailures,
  kRecordsQuarantined,
  kRecordsOnBallast,
  kHttpConnections,
  kHttpConnectionsClosed,
  kPartUp,
  kCollected,
  kRecordsRecovery,
  kRecordsHeldSteps,

  kVolumeStatsCapacityBytes,
  kVolumeStatsAvailableBytes,
  kVolumeStatsUsedBytes,
  kVolumeStatsInodes,
  kVolumeStatsInodesFree,
  kVolumeStatsInodesUsed,
  kVolumeStatsHealthAbnormal,
  kPodVolumeStatsCapacityBytes,
  kPodVolumeStatsAvailableBytes,
  kPodVolumeStatsUsedBytes,
  kPodVolumeStatsInodes,
  kPodVolumeStatsInodesFree,
  kPodVolumeStatsInodesUsed,
  kPodVolumeStatsHealthAbnormal,
  kVolumeStatsAge,
};
inline constexpr size_t kFamilyCount = static_cast<size_t>(Family::kVolumeStatsAge) + 1;

struct FamilySpec {
  Family family;
  std::string_view name;
  FamilyType type;
  std::string_view labels;  // names, with commas in between
  std::string_view help;
  std::string_view source;  // where the name comes from; empty: it is this program's own
};

// A value. Threads: any. Blocks: never.
const FamilySpec& SpecOf(Family family);
// The upper bounds of a histogram's buckets, in seconds, without +Inf; empty for other types.
std::vector<double> BucketsOf(Family family);

}  // namespace volumed
