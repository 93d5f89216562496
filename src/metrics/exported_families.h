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

// The families by name; metrics/family_table.h defines it from metrics/family_list.h.
enum class Family : int;  // metrics/family_table.h

// How one source of objects is now.
struct SourceFigures {
  bool complete = false;    // has delivered a complete list since the start
  size_t problems = 0;      // manifests, or parts of them, that are not used
  size_t warnings = 0;      // fields that nobody knows
  bool incomplete = false;  // what it lacks is held back
};

// A counter without labels is there from the start, with zero: if it appeared with its first event,
// it would hide that event from rate(). Durations are written in seconds. Label values have to be
// UTF-8; quotes, backslashes and newlines in them are escaped.
//
// Threads: any. Blocks: never for long (one mutex per family). A scrape that comes between two
// calls sees the figures of the first alone.
// Observe... and Count... add to what is there; Set... and Replace take its place, so that a series
// that is missing from what they are given ends. Totals that a Set... is given are followed, as by
// Follow().
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
  // REQUIRES: the family is of that type, is not one of VolumeStatsText, and has no more labels
  // than values are given. A breach throws std::out_of_range.
  using LabelValues = std::vector<std::string>;
  // REQUIRES: a gauge without labels.
  void Set(Family gauge, double value);
  // All series of the gauge, by their labels; the others end.
  void Replace(Family gauge, const std::map<LabelValues, double>& values);
  // Adds what has happened since the last call. A count of zero makes the series appear.
  void Add(Family counter, const LabelValues& labels, uint64_t count);
  // `total` is counted elsewhere, from some start on; if it went down, a new count has begun there,
  // and it is added to what was counted before.
  void Follow(Family counter, const LabelValues& labels, uint64_t total);
  void Observe(Family histogram, const LabelValues& labels, Duration elapsed);

  // One step. `operation` is in kubelet's words: "volume_mount", "volume_unmount",
  // "volume_apply_access_control", ...; `plugin` has the driver for CSI
  // ("kubernetes.io/csi:driver"), and is "<n/a>" if there is none. A step that failed has the
  // status "fail-unknown", whatever it failed by.
  void ObserveStorageOperation(const std::string& plugin, const std::string& operation, bool ok,
                               Duration elapsed, bool migrated = false);
  // From the moment the volume was wanted until it was mounted ("overall_volume_mount").
  void ObserveOverallVolumeMount(const std::string& plugin, Duration elapsed);
  // `source`: "statfs", "du", "fsquota", "block", or a CSI driver's name.
  void ObserveVolumeMetricCollection(const std::string& source, Duration elapsed);
  // How long a posted task waited for the control thread before it ran.
  void ObserveControlLoopLag(Duration lag);
  // By task (base/event_loop.h, TaskName()), its longest run.
  void SetControlTaskLongest(const std::map<std::string, Duration>& longest);

  // (plugin name or "N/A", "desired_state_of_world" or "actual_state_of_world") -> volumes.
  void SetVolumes(const std::map<std::pair<std::string, std::string>, int64_t>& volumes);
  // Volumes found on the node at a start: how many were tried to be taken over, and how many of
  // these could not be.
  void CountReconstructVolumeOperations(uint64_t tried, uint64_t failed);
  // Of those that could not be taken over: how many were cleaned up, or tried to be, and for how
  // many that failed too.
  void CountForceCleanedFailedVolumeOperations(uint64_t tried, uint64_t failed);
  // Volumes of pods that no source has any more, as the sweep of the start found them: how many are
  // gone by now, and how many there are whose last clean-up failed.
  void SetOrphanPodCleanedVolumes(int64_t cleaned, int64_t failed);

  // Pods that had to leave, by what called for it: "emptydirfs.limit".
  void CountEvictions(const std::string& signal, uint64_t pods);

  // What is running. The value is always 1; the labels say it.
  void SetBuildInfo(const std::string& version, const std::string& revision,
                    const std::string& compiler);
  // By phase; one that is missing has no series.
  void SetPods(const std::map<std::string, int64_t>& pods_by_phase);
  // By the name of the source. A source that is missing has no series any more.
  void SetSources(const std::map<std::string, SourceFigures>& sources);

  // Totals that went down are those of a new pool or store: they are added to the old ones.
  void SetWorkerPool(const WorkerPoolStats& stats);
  void SetMountTable(const MountTableStats& stats);
  // Counted by request and fault domain; which volume each one is of is not in the labels.
  void SetStuckOperations(const std::vector<StuckOperation>& stuck);
  // By fault domain ("nfs:nas-1"), whether it answers.
  void SetFaultDomains(const std::map<std::string, bool>& answering);
  // `on_ballast`: the disk is full, and records are written into room that was kept for teardown.
  void SetRecordStore(const RecordStoreStats& stats, bool on_ballast);
  void SetHttpServer(const HttpServerStats& stats);
  // By part of the agent, whether it works.
  void SetParts(const std::map<std::string, bool>& works);
  // The moment at which the figures were collected: a text that is served late says so by it.
  void SetCollected(int64_t unix_ms);
  // `active`: the records may be older than the disks. `held_steps`: so many irreversible steps
  // wait for a person to accept the records.
  void SetRecordsRecovery(bool active, size_t held_steps);

  // Appends all families in the Prometheus text format, each once: counters, then gauges, then
  // histograms. Families without a series are left out.
  void AppendTo(std::string& out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace volumed
