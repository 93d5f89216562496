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
#include "base/strings.h"
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

// The labels of the family with these values, which are in the order of the table.
Labels LabelsOf(Family family, const std::vector<std::string>& values) {
  const std::vector<std::string> names = SplitNonEmpty(SpecOf(family).labels, ',');
  Labels labels;
  for (size_t i = 0; i < names.size(); ++i) labels[names[i]] = values.at(i);
  return labels;
}

}  // namespace

struct ExportedFamilies::Impl {
  prometheus::Registry registry;  // first: the others hold references into it
  std::map<Family, Histograms> histograms;
  std::map<Family, Counters> counters;
  std::map<Family, Gauges> gauges;

  Impl() {
    for (size_t i = 0; i < static_cast<size_t>(Family::kVolumeStatsCapacityBytes); ++i) {
      Make(static_cast<Family>(i));
    }
  }

 private:
  void Make(Family family) {
    switch (SpecOf(family).type) {
      case FamilyType::kHistogram:
        histograms.try_emplace(family, registry, family);
        break;
      case FamilyType::kCounter:
        counters.try_emplace(family, registry, family);
        break;
      case FamilyType::kGauge:
        gauges.try_emplace(family, registry, family);
        break;
    }
  }
};

// What needs no labels is exported from the start: a counter that appears with its first event
// hides that event from rate().
ExportedFamilies::ExportedFamilies() : impl_(std::make_unique<Impl>()) {
  for (const auto& [family, counters] : impl_->counters) {
    if (SpecOf(family).labels.empty()) Add(family, {}, 0);
  }
  for (const char* result : {"taken", "refused"}) Add(Family::kConfigReloads, {result}, 0);
  SetOrphanPodCleanedVolumes(0, 0);
  SetWorkerPool({});
  SetRecordStore({}, false);
  SetHttpServer({});
  SetRecordsRecovery(false, 0);
}

ExportedFamilies::~ExportedFamilies() = default;

void ExportedFamilies::Set(Family gauge, double value) { impl_->gauges.at(gauge).Set(value); }

void ExportedFamilies::Replace(Family gauge, const std::map<LabelValues, double>& values) {
  std::map<Labels, double> labelled;
  for (const auto& [labels, value] : values) labelled[LabelsOf(gauge, labels)] = value;
  impl_->gauges.at(gauge).Replace(labelled);
}

void ExportedFamilies::Add(Family counter, const LabelValues& labels, uint64_t count) {
  impl_->counters.at(counter).Add(LabelsOf(counter, labels), count);
}

void ExportedFamilies::Follow(Family counter, const LabelValues& labels, uint64_t total) {
  impl_->counters.at(counter).Follow(LabelsOf(counter, labels), total);
}

void ExportedFamilies::Observe(Family histogram, const LabelValues& labels, Duration elapsed) {
  impl_->histograms.at(histogram).Observe(LabelsOf(histogram, labels), elapsed);
}

void ExportedFamilies::ObserveStorageOperation(const std::string& plugin,
                                               const std::string& operation, bool ok,
                                               Duration elapsed, bool migrated) {
  impl_->histograms.at(Family::kStorageOperationDuration)
      .Observe({{"volume_plugin", plugin},
                {"operation_name", operation},
                {"status", ok ? "success" : "fail-unknown"},
                {"migrated", migrated ? "true" : "false"}},
               elapsed);
}

void ExportedFamilies::ObserveOverallVolumeMount(const std::string& plugin, Duration elapsed) {
  impl_->histograms.at(Family::kVolumeOperationTotal)
      .Observe({{"plugin_name", plugin}, {"operation_name", "overall_volume_mount"}}, elapsed);
}

void ExportedFamilies::ObserveVolumeMetricCollection(const std::string& source, Duration elapsed) {
  impl_->histograms.at(Family::kVolumeMetricCollectionDuration)
      .Observe({{"metric_source", source}}, elapsed);
}

void ExportedFamilies::ObserveControlLoopLag(Duration lag) {
  impl_->histograms.at(Family::kControlLoopLag).Observe({}, lag);
}

void ExportedFamilies::SetControlTaskLongest(const std::map<std::string, Duration>& longest) {
  std::map<Labels, double> values;
  for (const auto& [task, took] : longest) {
    values[{{"task", task}}] = std::chrono::duration<double>(took).count();
  }
  impl_->gauges.at(Family::kControlTaskLongest).Replace(values);
}

void ExportedFamilies::SetVolumes(
    const std::map<std::pair<std::string, std::string>, int64_t>& volumes) {
  std::map<Labels, double> values;
  for (const auto& [key, count] : volumes) {
    values[{{"plugin_name", key.first}, {"state", key.second}}] = static_cast<double>(count);
  }
  impl_->gauges.at(Family::kTotalVolumes).Replace(values);
}

void ExportedFamilies::CountReconstructVolumeOperations(uint64_t tried, uint64_t failed) {
  impl_->counters.at(Family::kReconstructVolumeOperations).Add({}, tried);
  impl_->counters.at(Family::kReconstructVolumeOperationsErrors).Add({}, failed);
}

void ExportedFamilies::CountForceCleanedFailedVolumeOperations(uint64_t tried, uint64_t failed) {
  impl_->counters.at(Family::kForceCleanedFailedVolumeOperations).Add({}, tried);
  impl_->counters.at(Family::kForceCleanedFailedVolumeOperationErrors).Add({}, failed);
}

void ExportedFamilies::SetOrphanPodCleanedVolumes(int64_t cleaned, int64_t failed) {
  impl_->gauges.at(Family::kOrphanPodCleanedVolumes).Set(static_cast<double>(cleaned));
  impl_->gauges.at(Family::kOrphanPodCleanedVolumesErrors).Set(static_cast<double>(failed));
}

void ExportedFamilies::CountEvictions(const std::string& signal, uint64_t pods) {
  impl_->counters.at(Family::kEvictions).Add({{"eviction_signal", signal}}, pods);
}

void ExportedFamilies::SetBuildInfo(const std::string& version, const std::string& revision,
                                    const std::string& compiler) {
  impl_->gauges.at(Family::kBuildInfo)
      .Replace({{{{"version", version}, {"revision", revision}, {"compiler", compiler}}, 1}});
}

void ExportedFamilies::SetPods(const std::map<std::string, int64_t>& pods_by_phase) {
  std::map<Labels, double> values;
  for (const auto& [phase, count] : pods_by_phase) {
    values[{{"phase", phase}}] = static_cast<double>(count);
  }
  impl_->gauges.at(Family::kPods).Replace(values);
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
  impl_->gauges.at(Family::kSourceComplete).Replace(complete);
  impl_->gauges.at(Family::kSourceIncomplete).Replace(incomplete);
  impl_->gauges.at(Family::kSourceProblems).Replace(problems);
}

void ExportedFamilies::SetWorkerPool(const WorkerPoolStats& stats) {
  std::map<Labels, double> workers;
  workers[{{"state", "idle"}}] = stats.idle;
  workers[{{"state", "busy"}}] = stats.busy;
  workers[{{"state", "slow"}}] = stats.slow_now;
  workers[{{"state", "stuck"}}] = stats.stuck_now;
  impl_->gauges.at(Family::kWorkers).Replace(workers);
  impl_->gauges.at(Family::kWorkerCallsWaiting).Set(stats.waiting);
  impl_->counters.at(Family::kWorkerRequests).Follow({}, stats.requests);
  impl_->counters.at(Family::kWorkersStarted).Follow({}, stats.spawned);
  impl_->counters.at(Family::kWorkerFailures).Follow({{"reason", "killed"}}, stats.killed);
  impl_->counters.at(Family::kWorkerFailures).Follow({{"reason", "died"}}, stats.died);
  impl_->counters.at(Family::kWorkerFailures)
      .Follow({{"reason", "deadline_exceeded"}}, stats.deadline_exceeded);
  impl_->counters.at(Family::kWorkerFailures).Follow({{"reason", "cancelled"}}, stats.cancelled);
  impl_->counters.at(Family::kStuckOperationsEver).Follow({}, stats.stuck_total);
}

void ExportedFamilies::SetMountTable(const MountTableStats& stats) {
  impl_->gauges.at(Family::kMountTableMounts)
      .Replace({{{{"source", std::string(MountTableSourceName(stats.source))}},
                 static_cast<double>(stats.mounts)}});
  impl_->counters.at(Family::kMountTableUpdates).Follow({}, stats.updates);
  impl_->counters.at(Family::kMountTableFullReads).Follow({}, stats.full_reads);
}

void ExportedFamilies::SetStuckOperations(const std::vector<StuckOperation>& stuck) {
  std::map<Labels, double> values;
  for (const StuckOperation& operation : stuck) {
    ++values[{{"operation", operation.request}, {"domain", operation.domain}}];
  }
  impl_->gauges.at(Family::kStuckOperations).Replace(values);
}

void ExportedFamilies::SetFaultDomains(const std::map<std::string, bool>& answering) {
  std::map<Labels, double> values;
  for (const auto& [domain, answers] : answering) values[{{"domain", domain}}] = answers ? 1 : 0;
  impl_->gauges.at(Family::kFaultDomainUp).Replace(values);
}

void ExportedFamilies::SetRecordStore(const RecordStoreStats& stats, bool on_ballast) {
  impl_->counters.at(Family::kRecordWrites).Follow({{"operation", "put"}}, stats.puts);
  impl_->counters.at(Family::kRecordWrites).Follow({{"operation", "remove"}}, stats.removes);
  impl_->counters.at(Family::kRecordCommits).Follow({}, stats.commits);
  impl_->counters.at(Family::kRecordFailures).Follow({}, stats.failures);
  impl_->gauges.at(Family::kRecordsQuarantined).Set(static_cast<double>(stats.quarantined));
  impl_->gauges.at(Family::kRecordsOnBallast).Set(on_ballast ? 1 : 0);
}

void ExportedFamilies::SetHttpServer(const HttpServerStats& stats) {
  impl_->gauges.at(Family::kHttpConnections).Set(static_cast<double>(stats.open));
  for (size_t i = 0; i < stats.closed.size(); ++i) {
    const auto closed = static_cast<HttpServerStats::Closed>(i);
    impl_->counters.at(Family::kHttpConnectionsClosed)
        .Follow({{"reason", std::string(HttpServerStats::ClosedName(closed))}}, stats.closed[i]);
  }
}

void ExportedFamilies::SetParts(const std::map<std::string, bool>& works) {
  std::map<Labels, double> values;
  for (const auto& [part, up] : works) values[{{"part", part}}] = up ? 1 : 0;
  impl_->gauges.at(Family::kPartUp).Replace(values);
}

void ExportedFamilies::SetCollected(int64_t unix_ms) {
  impl_->gauges.at(Family::kCollected).Set(static_cast<double>(unix_ms) / 1000);
}

void ExportedFamilies::SetRecordsRecovery(bool active, size_t held_steps) {
  impl_->gauges.at(Family::kRecordsRecovery).Set(active ? 1 : 0);
  impl_->gauges.at(Family::kRecordsHeldSteps).Set(static_cast<double>(held_steps));
}

void ExportedFamilies::AppendTo(std::string& out) const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, impl_->registry.Collect());
  out += text.str();
}

}  // namespace volumed
