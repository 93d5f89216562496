#include "metrics/exported_families.h"

#include <map>
#include <sstream>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/mutex.h"
#include "metrics/family_table.h"

namespace volumed {
namespace {

using prometheus::Labels;

double Seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::duration<double>>(duration).count();
}

// One histogram per set of labels.
class Histograms {
 public:
  Histograms(prometheus::Registry& registry, Family family)
      : family_(prometheus::BuildHistogram()
                    .Name(std::string(SpecOf(family).name))
                    .Help(std::string(SpecOf(family).help))
                    .Register(registry)),
        buckets_(BucketsOf(family)) {}

  void Observe(const Labels& labels, Duration elapsed) EXCLUDES(mu_) {
    Find(labels).Observe(Seconds(elapsed));
  }

 private:
  // Family::Add would build a histogram for every call and throw it away.
  prometheus::Histogram& Find(const Labels& labels) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    prometheus::Histogram*& series = series_[labels];
    if (series == nullptr) series = &family_.Add(labels, buckets_);
    return *series;
  }

  prometheus::Family<prometheus::Histogram>& family_;
  const prometheus::Histogram::BucketBoundaries buckets_;
  Mutex mu_;
  std::map<Labels, prometheus::Histogram*> series_ GUARDED_BY(mu_);
};

// Counters that are counted here, or follow totals that another part counts.
class Counters {
 public:
  Counters(prometheus::Registry& registry, Family family)
      : family_(prometheus::BuildCounter()
                    .Name(std::string(SpecOf(family).name))
                    .Help(std::string(SpecOf(family).help))
                    .Register(registry)) {}

  void Add(const Labels& labels, uint64_t count) {
    family_.Add(labels).Increment(static_cast<double>(count));
  }
  void Follow(const Labels& labels, uint64_t total) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    uint64_t& seen = seen_[labels];
    family_.Add(labels).Increment(static_cast<double>(total >= seen ? total - seen : total));
    seen = total;
  }

 private:
  prometheus::Family<prometheus::Counter>& family_;
  Mutex mu_;
  std::map<Labels, uint64_t> seen_ GUARDED_BY(mu_);
};

class Gauges {
 public:
  Gauges(prometheus::Registry& registry, Family family)
      : family_(prometheus::BuildGauge()
                    .Name(std::string(SpecOf(family).name))
                    .Help(std::string(SpecOf(family).help))
                    .Register(registry)) {}

  // Series that are not in `values` end.
  void Replace(const std::map<Labels, double>& values) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    for (auto old = series_.begin(); old != series_.end();) {
      if (values.count(old->first) != 0) {
        ++old;
        continue;
      }
      family_.Remove(old->second);
      old = series_.erase(old);
    }
    for (const auto& [labels, value] : values) {
      prometheus::Gauge& gauge = family_.Add(labels);
      gauge.Set(value);
      series_[labels] = &gauge;
    }
  }
  void Set(double value) { Replace({{Labels{}, value}}); }

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  Mutex mu_;
  std::map<Labels, prometheus::Gauge*> series_ GUARDED_BY(mu_);
};

}  // namespace

struct ExportedFamilies::Impl {
  prometheus::Registry registry;  // first: the others hold references into it

  Histograms storage_operation{registry, Family::kStorageOperationDuration};
  Histograms volume_operation{registry, Family::kVolumeOperationTotal};
  Histograms metric_collection{registry, Family::kVolumeMetricCollectionDuration};
  Gauges volumes{registry, Family::kTotalVolumes};
  Counters reconstruct{registry, Family::kReconstructVolumeOperations};
  Counters reconstruct_errors{registry, Family::kReconstructVolumeOperationsErrors};
  Counters force_cleaned{registry, Family::kForceCleanedFailedVolumeOperations};
  Counters force_cleaned_errors{registry, Family::kForceCleanedFailedVolumeOperationErrors};
  Gauges orphans_cleaned{registry, Family::kOrphanPodCleanedVolumes};
  Gauges orphans_failed{registry, Family::kOrphanPodCleanedVolumesErrors};
  Counters evictions{registry, Family::kEvictions};

  Gauges build_info{registry, Family::kBuildInfo};
  Histograms control_loop_lag{registry, Family::kControlLoopLag};
  Gauges control_task_longest{registry, Family::kControlTaskLongest};
  Gauges pods{registry, Family::kPods};
  Gauges source_complete{registry, Family::kSourceComplete};
  Gauges source_incomplete{registry, Family::kSourceIncomplete};
  Gauges source_problems{registry, Family::kSourceProblems};
  Gauges stuck{registry, Family::kStuckOperations};
  Counters stuck_ever{registry, Family::kStuckOperationsEver};
  Gauges fault_domain_up{registry, Family::kFaultDomainUp};
  Gauges workers{registry, Family::kWorkers};
  Gauges worker_calls_waiting{registry, Family::kWorkerCallsWaiting};
  Counters worker_requests{registry, Family::kWorkerRequests};
  Counters worker_failures{registry, Family::kWorkerFailures};
  Counters workers_started{registry, Family::kWorkersStarted};
  Gauges mount_table_mounts{registry, Family::kMountTableMounts};
  Counters mount_table_updates{registry, Family::kMountTableUpdates};
  Counters mount_table_full_reads{registry, Family::kMountTableFullReads};
  Counters record_writes{registry, Family::kRecordWrites};
  Counters record_commits{registry, Family::kRecordCommits};
  Counters record_failures{registry, Family::kRecordFailures};
  Gauges records_quarantined{registry, Family::kRecordsQuarantined};
  Gauges records_on_ballast{registry, Family::kRecordsOnBallast};
  Gauges http_connections{registry, Family::kHttpConnections};
  Counters http_closed{registry, Family::kHttpConnectionsClosed};
  Gauges part_up{registry, Family::kPartUp};
  Gauges collected{registry, Family::kCollected};
  Gauges records_recovery{registry, Family::kRecordsRecovery};
  Gauges records_held_steps{registry, Family::kRecordsHeldSteps};
};

// What needs no labels is exported from the start: a counter that appears with its first event
// hides that event from rate().
ExportedFamilies::ExportedFamilies() : impl_(std::make_unique<Impl>()) {
  CountReconstructVolumeOperations(0, 0);
  CountForceCleanedFailedVolumeOperations(0, 0);
  SetOrphanPodCleanedVolumes(0, 0);
  SetWorkerPool({});
  SetRecordStore({}, false);
  SetHttpServer({});
  SetRecordsRecovery(false, 0);
}

ExportedFamilies::~ExportedFamilies() = default;

void ExportedFamilies::ObserveStorageOperation(const std::string& plugin,
                                               const std::string& operation, bool ok,
                                               Duration elapsed, bool migrated) {
  impl_->storage_operation.Observe({{"volume_plugin", plugin},
                                    {"operation_name", operation},
                                    {"status", ok ? "success" : "fail-unknown"},
                                    {"migrated", migrated ? "true" : "false"}},
                                   elapsed);
}

void ExportedFamilies::ObserveOverallVolumeMount(const std::string& plugin, Duration elapsed) {
  impl_->volume_operation.Observe(
      {{"plugin_name", plugin}, {"operation_name", "overall_volume_mount"}}, elapsed);
}

void ExportedFamilies::ObserveVolumeMetricCollection(const std::string& source, Duration elapsed) {
  impl_->metric_collection.Observe({{"metric_source", source}}, elapsed);
}

void ExportedFamilies::ObserveControlLoopLag(Duration lag) {
  impl_->control_loop_lag.Observe({}, lag);
}

void ExportedFamilies::SetControlTaskLongest(const std::map<std::string, Duration>& longest) {
  std::map<Labels, double> values;
  for (const auto& [task, took] : longest) {
    values[{{"task", task}}] = std::chrono::duration<double>(took).count();
  }
  impl_->control_task_longest.Replace(values);
}

void ExportedFamilies::SetVolumes(
    const std::map<std::pair<std::string, std::string>, int64_t>& volumes) {
  std::map<Labels, double> values;
  for (const auto& [key, count] : volumes) {
    values[{{"plugin_name", key.first}, {"state", key.second}}] = static_cast<double>(count);
  }
  impl_->volumes.Replace(values);
}

void ExportedFamilies::CountReconstructVolumeOperations(uint64_t tried, uint64_t failed) {
  impl_->reconstruct.Add({}, tried);
  impl_->reconstruct_errors.Add({}, failed);
}

void ExportedFamilies::CountForceCleanedFailedVolumeOperations(uint64_t tried, uint64_t failed) {
  impl_->force_cleaned.Add({}, tried);
  impl_->force_cleaned_errors.Add({}, failed);
}

void ExportedFamilies::SetOrphanPodCleanedVolumes(int64_t cleaned, int64_t failed) {
  impl_->orphans_cleaned.Set(static_cast<double>(cleaned));
  impl_->orphans_failed.Set(static_cast<double>(failed));
}

void ExportedFamilies::CountEvictions(const std::string& signal, uint64_t pods) {
  impl_->evictions.Add({{"eviction_signal", signal}}, pods);
}

void ExportedFamilies::SetBuildInfo(const std::string& version, const std::string& revision,
                                    const std::string& compiler) {
  impl_->build_info.Replace(
      {{{{"version", version}, {"revision", revision}, {"compiler", compiler}}, 1}});
}

void ExportedFamilies::SetPods(const std::map<std::string, int64_t>& pods_by_phase) {
  std::map<Labels, double> values;
  for (const auto& [phase, count] : pods_by_phase) {
    values[{{"phase", phase}}] = static_cast<double>(count);
  }
  impl_->pods.Replace(values);
}

void ExportedFamilies::SetSources(const std::map<std::string, SourceFigures>& sources) {
  std::map<Labels, double> complete;
  std::map<Labels, double> incomplete;
  std::map<Labels, double> problems;
  for (const auto& [source, figures] : sources) {
    complete[{{"source", source}}] = figures.complete ? 1 : 0;
    incomplete[{{"source", source}}] = figures.incomplete ? 1 : 0;
    problems[{{"source", source}, {"severity", "error"}}] = static_cast<double>(figures.problems);
    problems[{{"source", source}, {"severity", "warning"}}] = static_cast<double>(figures.warnings);
  }
  impl_->source_complete.Replace(complete);
  impl_->source_incomplete.Replace(incomplete);
  impl_->source_problems.Replace(problems);
}

void ExportedFamilies::SetWorkerPool(const WorkerPoolStats& stats) {
  std::map<Labels, double> workers;
  workers[{{"state", "idle"}}] = stats.idle;
  workers[{{"state", "busy"}}] = stats.busy;
  workers[{{"state", "slow"}}] = stats.slow_now;
  workers[{{"state", "stuck"}}] = stats.stuck_now;
  impl_->workers.Replace(workers);
  impl_->worker_calls_waiting.Set(stats.waiting);
  impl_->worker_requests.Follow({}, stats.requests);
  impl_->workers_started.Follow({}, stats.spawned);
  impl_->worker_failures.Follow({{"reason", "killed"}}, stats.killed);
  impl_->worker_failures.Follow({{"reason", "died"}}, stats.died);
  impl_->worker_failures.Follow({{"reason", "deadline_exceeded"}}, stats.deadline_exceeded);
  impl_->worker_failures.Follow({{"reason", "cancelled"}}, stats.cancelled);
  impl_->stuck_ever.Follow({}, stats.stuck_total);
}

void ExportedFamilies::SetMountTable(const MountTableStats& stats) {
  impl_->mount_table_mounts.Replace({{{{"source", std::string(MountTableSourceName(stats.source))}},
                                      static_cast<double>(stats.mounts)}});
  impl_->mount_table_updates.Follow({}, stats.updates);
  impl_->mount_table_full_reads.Follow({}, stats.full_reads);
}

void ExportedFamilies::SetStuckOperations(const std::vector<StuckOperation>& stuck) {
  std::map<Labels, double> values;
  for (const StuckOperation& operation : stuck) {
    ++values[{{"operation", operation.request}, {"domain", operation.domain}}];
  }
  impl_->stuck.Replace(values);
}

void ExportedFamilies::SetFaultDomains(const std::map<std::string, bool>& answering) {
  std::map<Labels, double> values;
  for (const auto& [domain, answers] : answering) values[{{"domain", domain}}] = answers ? 1 : 0;
  impl_->fault_domain_up.Replace(values);
}

void ExportedFamilies::SetRecordStore(const RecordStoreStats& stats, bool on_ballast) {
  impl_->record_writes.Follow({{"operation", "put"}}, stats.puts);
  impl_->record_writes.Follow({{"operation", "remove"}}, stats.removes);
  impl_->record_commits.Follow({}, stats.commits);
  impl_->record_failures.Follow({}, stats.failures);
  impl_->records_quarantined.Set(static_cast<double>(stats.quarantined));
  impl_->records_on_ballast.Set(on_ballast ? 1 : 0);
}

void ExportedFamilies::SetHttpServer(const HttpServerStats& stats) {
  impl_->http_connections.Set(static_cast<double>(stats.open));
  for (size_t i = 0; i < stats.closed.size(); ++i) {
    const auto closed = static_cast<HttpServerStats::Closed>(i);
    impl_->http_closed.Follow({{"reason", std::string(HttpServerStats::ClosedName(closed))}},
                              stats.closed[i]);
  }
}

void ExportedFamilies::SetParts(const std::map<std::string, bool>& works) {
  std::map<Labels, double> values;
  for (const auto& [part, up] : works) values[{{"part", part}}] = up ? 1 : 0;
  impl_->part_up.Replace(values);
}

void ExportedFamilies::SetCollected(int64_t unix_ms) {
  impl_->collected.Set(static_cast<double>(unix_ms) / 1000);
}

void ExportedFamilies::SetRecordsRecovery(bool active, size_t held_steps) {
  impl_->records_recovery.Set(active ? 1 : 0);
  impl_->records_held_steps.Set(static_cast<double>(held_steps));
}

void ExportedFamilies::AppendTo(std::string& out) const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, impl_->registry.Collect());
  out += text.str();
}

}  // namespace volumed
