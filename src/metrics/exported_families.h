// ExportedFamilies: metric families that are not of one volume each (VolumeStatsText has those).
// A figure goes to its entry of family_list.h by Set(), Add() or Follow(); what several families
// are made of has a method that says what it is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "metrics/http_server_stats.h"
#include "os/mount_table_stats.h"
#include "os/worker_pool_stats.h"
#include "records/record_store.h"

namespace volumed {

enum class Family : int;  // metrics/family_table.h

// Of one source of objects, now.
struct SourceFigures {
  bool complete = false;    // has delivered a complete list since the start
  size_t problems = 0;      // manifests, or parts of them, that are not used
  size_t warnings = 0;      // fields that nobody knows
  bool incomplete = false;  // what it lacks is held back
};

// Threads: any. Blocks: never for long (one mutex per family).
// Observe... and Count... add to what is there; Set... replaces it, whatever is missing now
// included.
class ExportedFamilies {
 public:
  ExportedFamilies();
  ~ExportedFamilies();
  ExportedFamilies(const ExportedFamilies&) = delete;
  ExportedFamilies& operator=(const ExportedFamilies&) = delete;

  // The figure of one family, of the type that the method's first parameter names. The values of
  // its labels stand in the order in which family_list.h names them. A family that only one place
  // knows needs no method of its own; the methods below put several families, or words for the
  // labels, together.
  using LabelValues = std::vector<std::string>;
  void Set(Family gauge, double value);
  void Replace(Family gauge, const std::map<LabelValues, double>& values);
  void Add(Family counter, const LabelValues& labels, uint64_t count);
  // `total` is counted elsewhere; if it went down, it is added to what was counted before.
  void Follow(Family counter, const LabelValues& labels, uint64_t total);
  void Observe(Family histogram, const LabelValues& labels, Duration elapsed);

  // One step. `operation` in kubelet's words: "volume_mount", "volume_unmount",
  // "volume_apply_access_control", ... ; `plugin` with the driver for CSI
  // ("kubernetes.io/csi:driver"), "<n/a>" where there is none.
  void ObserveStorageOperation(const std::string& plugin, const std::string& operation, bool ok,
                               Duration elapsed, bool migrated = false);
  // From the moment the volume was wanted until it was mounted ("overall_volume_mount").
  void ObserveOverallVolumeMount(const std::string& plugin, Duration elapsed);
  // `source`: "statfs", "du", "fsquota", "block", or a CSI driver's name.
  void ObserveVolumeMetricCollection(const std::string& source, Duration elapsed);
  // How long a task waited for the control thread.
  void ObserveControlLoopLag(Duration lag);
  // Task -> its longest run.
  void SetControlTaskLongest(const std::map<std::string, Duration>& longest);

  // (plugin name or "N/A", "desired_state_of_world" or "actual_state_of_world") -> volumes.
  void SetVolumes(const std::map<std::pair<std::string, std::string>, int64_t>& volumes);
  void CountReconstructVolumeOperations(uint64_t tried, uint64_t failed);
  void CountForceCleanedFailedVolumeOperations(uint64_t tried, uint64_t failed);
  // Of the last sweep.
  void SetOrphanPodCleanedVolumes(int64_t cleaned, int64_t failed);

  // Pods that had to leave, by what called for it: "emptydirfs.limit".
  void CountEvictions(const std::string& signal, uint64_t pods);

  void SetBuildInfo(const std::string& version, const std::string& revision,
                    const std::string& compiler);
  void SetPods(const std::map<std::string, int64_t>& pods_by_phase);
  void SetSources(const std::map<std::string, SourceFigures>& sources);

  // Totals that went down are those of a new pool or store: they are added to the old ones.
  void SetWorkerPool(const WorkerPoolStats& stats);
  void SetMountTable(const MountTableStats& stats);
  void SetStuckOperations(const std::vector<StuckOperation>& stuck);
  // Domain -> whether it answers.
  void SetFaultDomains(const std::map<std::string, bool>& answering);
  void SetRecordStore(const RecordStoreStats& stats, bool on_ballast);
  void SetHttpServer(const HttpServerStats& stats);
  // Part of the agent -> whether it works.
  void SetParts(const std::map<std::string, bool>& works);
  // When the text is collected: one that is served late says so.
  void SetCollected(int64_t unix_ms);
  // The records may be older than the disks, and so many irreversible steps wait for a person.
  void SetRecordsRecovery(bool active, size_t held_steps);

  // Appends all families in the Prometheus text format, each once, families without a series left
  // out.
  void AppendTo(std::string& out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace volumed
