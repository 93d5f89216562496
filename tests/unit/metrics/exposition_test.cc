#include "metrics/exposition.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/family_table.h"
#include "places.h"
#include "unit/metrics/text_format.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr int64_t kNow = 1'700'000'100'000;

Metrics FullMetrics() {
  Metrics metrics;
  metrics.time_unix_ms = kNow - 12'340;
  metrics.capacity_bytes = 1'099'511'627'776;
  metrics.available_bytes = 5;
  metrics.used_bytes = 0;
  metrics.inodes = 100;
  metrics.inodes_free = 90;
  metrics.inodes_used = 10;
  metrics.abnormal = false;
  return metrics;
}

// At least one series of every family.
void FillFamilies(ExportedFamilies& families) {
  using std::chrono::milliseconds;
  families.ObserveStorageOperation("kubernetes.io/secret", "volume_mount", true, milliseconds(120));
  families.ObserveStorageOperation("kubernetes.io/csi:d", "volume_unmount", false,
                                   milliseconds(7000), true);
  families.ObserveOverallVolumeMount("kubernetes.io/empty-dir", milliseconds(5));
  families.ObserveVolumeMetricCollection("du", milliseconds(30));
  families.ObserveControlLoopLag(std::chrono::microseconds(20));
  families.SetControlTaskLongest({{"Reconciler::Wake", milliseconds(20)}});
  families.SetVolumes({{{"kubernetes.io/secret", "actual_state_of_world"}, 3}});
  families.CountEvictions("emptydirfs.limit", 1);
  families.SetBuildInfo("0.1.0", "abc", "gcc");
  families.SetPods({{"Ready", 2}});
  families.SetSources({{"manifests", {true, 2, 3}}, {"applied", {false, 0, 0}}});
  families.SetMountTable({});
  StuckOperation stuck;
  stuck.request = "StatFs";
  stuck.domain = "nfs:server";
  families.SetStuckOperations({stuck, stuck});
  families.SetFaultDomains({{"nfs:server", false}});
  families.SetParts({{"metrics", true}, {"tokens", false}});
  families.SetCollected(kNow);
  families.Add(Family::kConfigReloads, {"taken"}, 1);
  families.Observe(Family::kCsiOperations, {"d.io", "/csi.v1.Node/NodeStageVolume", "OK", "false"},
                   milliseconds(3));
  families.Observe(Family::kCsiServed, {"o.io", "/csi.v1.Node/NodeStageVolume", "OK"},
                   milliseconds(3));
  families.Set(Family::kCsiServedCalls, 1);
  for (const Family of_pool :
       {Family::kPoolUp, Family::kPoolCapacityBytes, Family::kPoolPromisedBytes,
        Family::kPoolFreeBytes, Family::kPoolAvailableBytes, Family::kPoolIsShort,
        Family::kPoolVolumes, Family::kPoolSnapshots, Family::kPoolMeasured}) {
    families.Replace(of_pool, {{{"fast"}, 1}});
  }
  families.Replace(Family::kPlugins, {{{"/r/d.sock", "actual_state_of_world"}, 1}});
  families.Replace(Family::kCsiDriverState, {{{"d.io", "ready"}, 1}});
  families.Replace(Family::kCsiCallsInFlight, {{{"d.io"}, 2}});
  families.Replace(Family::kCsiOperationsWaiting, {{{"d.io"}, 3}});
  families.Add(Family::kCsiRegistrations, {"d.io", "registered"}, 1);
  families.Add(Family::kCsiLies, {"d.io", "NodePublishVolume"}, 1);
  families.Replace(Family::kCsiDebts, {{{"d.io"}, 2}});
  families.Replace(Family::kCsiNodeStorageHealth, {{{"d.io", "STORAGE_DEGRADED", "Rebuild"}, 1}});
}

void FillVolumes(VolumeStatsText& volumes) {
  volumes.Set({PodUid("u1"), "data"}, {"default", "web", "kubernetes.io/csi", "claim"},
              FullMetrics());
  volumes.Set({PodUid("u1"), "tmp"}, {"default", "web", "kubernetes.io/empty-dir", {}},
              FullMetrics());
}

std::set<std::string> SplitLabels(std::string_view labels) {
  std::set<std::string> names;
  std::istringstream in{std::string(labels)};
  for (std::string name; std::getline(in, name, ',');) names.insert(name);
  return names;
}

std::string_view TypeName(FamilyType type) {
  switch (type) {
    case FamilyType::kCounter:
      return "counter";
    case FamilyType::kGauge:
      return "gauge";
    case FamilyType::kHistogram:
      return "histogram";
  }
  return "";
}

TEST(TextFormatTest, TheReaderOfTheseTestsFindsMistakes) {
  const std::string head = "# HELP a b\n# TYPE a gauge\n";
  EXPECT_THAT(ParseExposition(head + "a{x=\"\\\"\"} 1\n").problems, IsEmpty());
  for (const std::string bad :
       {"a 1", "b 1\n", "a{x=\"1\"} 1\na{x=\"1\"} 2\n", "a{x=\"1\",x=\"2\"} 1\n",
        "a{x=\"\\q\"} 1\n", "a{x=\"1\"}\n", "a 1 \n", "a x\n", "a{x=\"1\"} 1\na{y=\"1\"} 2\n", "\n",
        "# HELP a b\n", "# TYPE c gauge\n", "a{x=\"\"\"} 1\n"}) {
    EXPECT_THAT(ParseExposition(head + bad).problems, Not(IsEmpty())) << bad;
  }
}

TEST(ExpositionTest, EveryFamilyOfTheTableIsWrittenAsTheTableSays) {
  ExportedFamilies families;
  VolumeStatsText volumes;
  FillFamilies(families);
  FillVolumes(volumes);
  const ParsedExposition parsed = ParseExposition(Serialize(families, volumes, kNow));
  EXPECT_THAT(parsed.problems, IsEmpty());
  EXPECT_EQ(parsed.types.size(), kFamilyCount) << "a family that the table does not have";
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const FamilySpec& spec = SpecOf(static_cast<Family>(i));
    const std::string name(spec.name);
    ASSERT_THAT(parsed.types, Contains(Key(name)));
    EXPECT_EQ(parsed.types.at(name), TypeName(spec.type)) << name;
    EXPECT_EQ(parsed.label_names.at(name), SplitLabels(spec.labels)) << name;
    EXPECT_EQ(spec.type == FamilyType::kHistogram, !BucketsOf(spec.family).empty()) << name;
    EXPECT_EQ(name.starts_with("volumed_"), spec.source.empty()) << name;
  }
}

// The names in the table of docs/METRICS.md; one that ends in '*' stands for all that begin so.
std::set<std::string> DocumentedFamilies() {
  std::ifstream page(SourcePath("docs/METRICS.md"));
  std::set<std::string> names;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    in_table = line.starts_with("| family |") || (in_table && line.starts_with("|"));
    if (!in_table) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (size_t open = cell.find('`'); open != std::string::npos;) {
      const size_t close = cell.find('`', open + 1);
      names.insert(cell.substr(open + 1, close - open - 1));
      open = cell.find('`', close + 1);
    }
  }
  return names;
}

TEST(ExpositionTest, EveryFamilyIsInTheTableOfItsPageAndNoOther) {
  std::set<std::string> unused = DocumentedFamilies();
  const std::set<std::string> documented = unused;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const std::string name(SpecOf(static_cast<Family>(i)).name);
    bool found = false;
    for (const std::string& text : documented) {
      const bool is_it =
          text.ends_with('*') ? name.starts_with(text.substr(0, text.size() - 1)) : name == text;
      if (is_it) unused.erase(text);
      found = found || is_it;
    }
    EXPECT_TRUE(found) << name << " is not in docs/METRICS.md";
  }
  EXPECT_THAT(unused, IsEmpty()) << "nothing of that name is exported";
}

TEST(ExpositionTest, NoFamilyIsInBothWriters) {
  ExportedFamilies families;
  VolumeStatsText volumes;
  FillFamilies(families);
  FillVolumes(volumes);
  std::string own;
  families.AppendTo(own);
  std::string per_volume;
  volumes.AppendTo(per_volume, kNow);
  const ParsedExposition first = ParseExposition(own);
  for (const auto& [name, type] : ParseExposition(per_volume).types) {
    EXPECT_THAT(first.types, Not(Contains(Key(name))));
  }
}

TEST(ExpositionTest, AFamilyOfSingleVolumesCannotBeSetBesideThem) {
  ExportedFamilies families;
  for (auto i = static_cast<size_t>(Family::kVolumeStatsCapacityBytes); i < kFamilyCount; ++i) {
    EXPECT_THROW(families.Set(static_cast<Family>(i), 1), std::out_of_range) << i;
  }
}

TEST(ExpositionTest, PromtoolFindsNothingButANameOfKubelets) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "skipped: needs promtool";
  }
  ExportedFamilies families;
  VolumeStatsText volumes;
  FillFamilies(families);
  FillVolumes(volumes);
  char path[] = "/tmp/volumed-exposition-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  const std::string text = Serialize(families, volumes, kNow);
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  const std::string command = std::string("promtool check metrics < ") + path + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) output += static_cast<char>(c);
  // 3: there is something to be said of style; here of a name that is kubelet's.
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 3) << output;
  EXPECT_EQ(output, "kubelet_evictions counter metrics should have \"_total\" suffix\n");
  unlink(path);
}

// ---- the program's own families -----------------------------------------------------------------

std::map<std::string, std::string> ValuesOf(const ExportedFamilies& families) {
  std::string text;
  families.AppendTo(text);
  return ParseExposition(text).values;
}

TEST(ExportedFamiliesTest, StorageOperationHasKubeletsLabelsAndBuckets) {
  ExportedFamilies families;
  families.ObserveStorageOperation("p", "volume_mount", true, std::chrono::seconds(20));
  families.ObserveStorageOperation("p", "volume_mount", false, std::chrono::milliseconds(200));
  const auto values = ValuesOf(families);
  const std::string labels =
      "migrated=\"false\",operation_name=\"volume_mount\",status=\"success\",volume_plugin=\"p\"";
  const std::string name = "storage_operation_duration_seconds";
  EXPECT_THAT(values, Contains(Pair(name + "_sum{" + labels + "}", "20")));
  EXPECT_THAT(values, Contains(Pair(name + "_bucket{" + labels + ",le=\"15\"}", "0")));
  EXPECT_THAT(values, Contains(Pair(name + "_bucket{" + labels + ",le=\"25\"}", "1")));
  EXPECT_THAT(values, Contains(Key(HasSubstr("status=\"fail-unknown\""))));
  size_t buckets = 0;
  for (const auto& [series, value] : values) {
    if (series.starts_with(name + "_bucket{" + labels)) ++buckets;
  }
  EXPECT_EQ(buckets, 14u) << "13 and +Inf";
}

TEST(ExportedFamiliesTest, CountersWithoutLabelsAreThereFromTheStart) {
  const auto values = ValuesOf(ExportedFamilies());
  for (const char* name :
       {"reconstruct_volume_operations_total", "reconstruct_volume_operations_errors_total",
        "force_cleaned_failed_volume_operations_total",
        "force_cleaned_failed_volume_operation_errors_total", "kubelet_orphan_pod_cleaned_volumes",
        "kubelet_orphan_pod_cleaned_volumes_errors", "volumed_records_quarantined"}) {
    EXPECT_THAT(values, Contains(Pair(name, "0")));
  }
}

TEST(ExportedFamiliesTest, SeriesThatAreNotSetAnyMoreEnd) {
  ExportedFamilies families;
  families.SetVolumes({{{"a", "actual_state_of_world"}, 1}, {{"b", "actual_state_of_world"}, 2}});
  families.SetVolumes({{{"b", "actual_state_of_world"}, 5}});
  const auto values = ValuesOf(families);
  EXPECT_THAT(values, Contains(Pair("volume_manager_total_volumes{plugin_name=\"b\","
                                    "state=\"actual_state_of_world\"}",
                                    "5")));
  EXPECT_THAT(values, Not(Contains(Key(HasSubstr("plugin_name=\"a\"")))));
}

TEST(ExportedFamiliesTest, TotalsOfOtherPartsAreFollowedAcrossTheirRestarts) {
  ExportedFamilies families;
  RecordStoreStats stats;
  stats.puts = 7;
  families.SetRecordStore(stats, false);
  stats.puts = 10;
  families.SetRecordStore(stats, true);
  EXPECT_THAT(ValuesOf(families),
              Contains(Pair("volumed_records_writes_total{operation=\"put\"}", "10")));
  EXPECT_THAT(ValuesOf(families), Contains(Pair("volumed_records_on_ballast", "1")));
  stats.puts = 2;  // a new store
  families.SetRecordStore(stats, false);
  EXPECT_THAT(ValuesOf(families),
              Contains(Pair("volumed_records_writes_total{operation=\"put\"}", "12")));
}

TEST(ExportedFamiliesTest, ProblemsOfManifestsAreCountedPerSourceAndSeverity) {
  ExportedFamilies families;
  families.SetSources({{"manifests:/m", {true, 2, 3, true}}, {"volumectl-apply", {false, 0, 0}}});
  const auto problems = [](const char* source, const char* severity) {
    return "volumed_source_problems{severity=\"" + std::string(severity) + "\",source=\"" + source +
           "\"}";
  };
  EXPECT_THAT(ValuesOf(families), Contains(Pair(problems("manifests:/m", "error"), "2")));
  EXPECT_THAT(ValuesOf(families), Contains(Pair(problems("manifests:/m", "warning"), "3")));
  EXPECT_THAT(ValuesOf(families), Contains(Pair(problems("volumectl-apply", "error"), "0")));
  EXPECT_THAT(ValuesOf(families),
              Contains(Pair("volumed_source_complete{source=\"volumectl-apply\"}", "0")));
  EXPECT_THAT(ValuesOf(families),
              Contains(Pair("volumed_source_incomplete{source=\"manifests:/m\"}", "1")));
  EXPECT_THAT(ValuesOf(families),
              Contains(Pair("volumed_source_incomplete{source=\"volumectl-apply\"}", "0")));
  families.SetSources({{"manifests:/m", {true, 0, 0}}});
  EXPECT_THAT(ValuesOf(families), Contains(Pair(problems("manifests:/m", "error"), "0")));
  EXPECT_THAT(ValuesOf(families), Not(Contains(Key(HasSubstr("volumectl-apply")))));
}

TEST(ExportedFamiliesTest, RecoveryOfTheRecordsIsThereFromTheStart) {
  ExportedFamilies families;
  EXPECT_THAT(ValuesOf(families), Contains(Pair("volumed_records_recovery", "0")));
  EXPECT_THAT(ValuesOf(families), Contains(Pair("volumed_records_held_steps", "0")));
  families.SetRecordsRecovery(true, 3);
  EXPECT_THAT(ValuesOf(families), Contains(Pair("volumed_records_recovery", "1")));
  EXPECT_THAT(ValuesOf(families), Contains(Pair("volumed_records_held_steps", "3")));
}

TEST(ExportedFamiliesTest, WorkersAndStuckOperations) {
  ExportedFamilies families;
  WorkerPoolStats stats;
  stats.idle = 3;
  stats.stuck_now = 2;
  stats.killed = 4;
  families.SetWorkerPool(stats);
  StuckOperation stuck;
  stuck.request = "Unmount";
  stuck.domain = "nfs:a";
  families.SetStuckOperations({stuck, stuck});
  const auto values = ValuesOf(families);
  EXPECT_THAT(values, Contains(Pair("volumed_workers{state=\"idle\"}", "3")));
  EXPECT_THAT(values, Contains(Pair("volumed_workers{state=\"stuck\"}", "2")));
  EXPECT_THAT(values, Contains(Pair("volumed_worker_failures_total{reason=\"killed\"}", "4")));
  EXPECT_THAT(
      values,
      Contains(Pair("volumed_stuck_operations{domain=\"nfs:a\",operation=\"Unmount\"}", "2")));
}

TEST(ExportedFamiliesTest, TheMountTableAndHowItHearsOfChanges) {
  ExportedFamilies families;
  MountTableStats stats;
  stats.mounts = 40;
  stats.updates = 7;
  stats.full_reads = 2;
  families.SetMountTable(stats);
  EXPECT_THAT(ValuesOf(families),
              Contains(Pair("volumed_mount_table_mounts{source=\"poll\"}", "40")));
  stats.source = MountTableSource::kEvents;
  families.SetMountTable(stats);
  const auto values = ValuesOf(families);
  EXPECT_THAT(values, Contains(Pair("volumed_mount_table_mounts{source=\"events\"}", "40")));
  EXPECT_THAT(values, Not(Contains(Key(HasSubstr("source=\"poll\"")))));
  EXPECT_THAT(values, Contains(Pair("volumed_mount_table_updates_total", "7")));
  EXPECT_THAT(values, Contains(Pair("volumed_mount_table_full_reads_total", "2")));
}

TEST(ExportedFamiliesTest, MayBeUsedFromManyThreads) {
  ExportedFamilies families;
  VolumeStatsText volumes;
  std::vector<std::thread> threads;
  std::atomic<int> problems{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const VolumeStatsId id{PodUid(std::to_string(t)), "v"};
      for (int i = 0; i < 50; ++i) {
        FillFamilies(families);
        volumes.Set(id, {"ns", "pod", "plugin", "claim"}, FullMetrics());
        if (!ParseExposition(Serialize(families, volumes, kNow)).problems.empty()) ++problems;
        volumes.Remove(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(problems, 0);
  const std::string count =
      "storage_operation_duration_seconds_count{migrated=\"false\",operation_name=\"volume_mount\","
      "status=\"success\",volume_plugin=\"kubernetes.io/secret\"}";
  EXPECT_THAT(ValuesOf(families), Contains(Pair(count, "150")));
}

// ---- per volume ---------------------------------------------------------------------------------

std::string TextOf(const VolumeStatsText& volumes) {
  std::string text;
  volumes.AppendTo(text, kNow);
  return text;
}

TEST(VolumeStatsTextTest, ClaimsAreInKubeletsFamiliesAndTheRestInOurs) {
  VolumeStatsText volumes;
  FillVolumes(volumes);
  const ParsedExposition parsed = ParseExposition(TextOf(volumes));
  EXPECT_THAT(parsed.problems, IsEmpty());
  const std::string claim = "{namespace=\"default\",persistentvolumeclaim=\"claim\"}";
  const std::string tmp =
      "{namespace=\"default\",pod=\"web\",volume=\"tmp\",plugin=\"kubernetes.io/empty-dir\"}";
  const std::string data =
      "{namespace=\"default\",pod=\"web\",volume=\"data\",plugin=\"kubernetes.io/csi\"}";
  const auto& values = parsed.values;
  EXPECT_THAT(values,
              Contains(Pair("kubelet_volume_stats_capacity_bytes" + claim, "1099511627776")));
  EXPECT_THAT(values, Contains(Pair("kubelet_volume_stats_used_bytes" + claim, "0")));
  EXPECT_THAT(values, Contains(Pair("kubelet_volume_stats_health_status_abnormal" + claim, "0")));
  EXPECT_THAT(values, Contains(Pair("volumed_volume_stats_available_bytes" + tmp, "5")));
  EXPECT_THAT(values, Not(Contains(Key("volumed_volume_stats_available_bytes" + data))));
  EXPECT_THAT(values, Contains(Pair("volumed_volume_stats_age_seconds" + tmp, "12.340")));
  EXPECT_THAT(values, Contains(Pair("volumed_volume_stats_age_seconds" + data, "12.340")));
  EXPECT_EQ(values.size(), 7u + 7u + 2u);
}

TEST(VolumeStatsTextTest, AbsentFiguresAndEmptyFamiliesHaveNoLine) {
  VolumeStatsText volumes;
  EXPECT_EQ(TextOf(volumes), "");
  Metrics metrics;
  metrics.capacity_bytes = 8;
  metrics.time_unix_ms = kNow + 5000;  // the clock was set back
  volumes.Set({PodUid("u"), "block"}, {"ns", "p", "plugin", "claim"}, metrics);
  EXPECT_EQ(TextOf(volumes),
            "# HELP kubelet_volume_stats_capacity_bytes Capacity of the volume in bytes.\n"
            "# TYPE kubelet_volume_stats_capacity_bytes gauge\n"
            "kubelet_volume_stats_capacity_bytes{namespace=\"ns\",persistentvolumeclaim=\"claim\"}"
            " 8\n"
            "# HELP volumed_volume_stats_age_seconds How long ago a pod's volume, with or without "
            "a claim, was measured.\n"
            "# TYPE volumed_volume_stats_age_seconds gauge\n"
            "volumed_volume_stats_age_seconds{namespace=\"ns\",pod=\"p\",volume=\"block\","
            "plugin=\"plugin\"} 0\n");
}

TEST(VolumeStatsTextTest, WhatIsSaidBetweenTwoTextsCountsInItsOrder) {
  VolumeStatsText volumes;
  const VolumeStatsId id{PodUid("u"), "tmp"};
  Metrics metrics;
  metrics.used_bytes = 1;
  volumes.Set(id, {"default", "first", "plugin", {}}, metrics);
  volumes.Remove(id);
  EXPECT_EQ(volumes.size(), 0u);
  volumes.Set(id, {"default", "second", "plugin", {}}, metrics);
  metrics.used_bytes = 2;
  volumes.Set(id, {"default", "second", "plugin", {}}, metrics);
  volumes.Remove(id);
  volumes.Set(id, {"default", "third", "plugin", {}}, metrics);
  std::string text;
  volumes.AppendTo(text, 0);
  EXPECT_EQ(text.find("pod=\"first\""), std::string::npos);
  EXPECT_EQ(text.find("pod=\"second\""), std::string::npos);
  EXPECT_NE(text.find("pod=\"third\""), std::string::npos) << text;
}

TEST(VolumeStatsTextTest, ASharedClaimIsWrittenOnceByTheFirstPod) {
  VolumeStatsText volumes;
  Metrics first = FullMetrics();
  first.used_bytes = 1;
  Metrics second = FullMetrics();
  second.used_bytes = 2;
  const VolumeStatsId a{PodUid("a"), "v"};
  const VolumeStatsId b{PodUid("b"), "v"};
  // Pod "p" is replaced by another one of the same name, too.
  volumes.Set(b, {"ns", "p", "plugin", "claim"}, first);
  volumes.Set(a, {"ns", "p", "plugin", "claim"}, second);
  const std::string used =
      "kubelet_volume_stats_used_bytes{namespace=\"ns\",persistentvolumeclaim=\"claim\"}";
  ParsedExposition parsed = ParseExposition(TextOf(volumes));
  EXPECT_THAT(parsed.problems, IsEmpty());
  EXPECT_THAT(parsed.values, Contains(Pair(used, "1")));
  volumes.Remove(b);
  parsed = ParseExposition(TextOf(volumes));
  EXPECT_THAT(parsed.values, Contains(Pair(used, "2")));
  volumes.Remove(a);
  volumes.Remove(a);
  EXPECT_EQ(TextOf(volumes), "");
  EXPECT_EQ(volumes.size(), 0u);
}

TEST(VolumeStatsTextTest, FiguresAreReplaced) {
  VolumeStatsText volumes;
  FillVolumes(volumes);
  Metrics later = FullMetrics();
  later.time_unix_ms = kNow;
  later.used_bytes = 77;
  volumes.Set({PodUid("u1"), "tmp"}, {"default", "web", "kubernetes.io/empty-dir", {}}, later);
  EXPECT_EQ(volumes.size(), 2u);
  EXPECT_THAT(TextOf(volumes), HasSubstr("plugin=\"kubernetes.io/empty-dir\"} 77\n"));
}

TEST(VolumeStatsTextTest, LabelValuesAreEscaped) {
  const struct {
    std::string_view value;
    std::string_view written;
  } cases[] = {
      {"plain", "plain"},
      {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
      {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
      {"a\xff"
       "b",
       "a\xef\xbf\xbd"
       "b"},
      {"\xc3", "\xef\xbf\xbd"},                                                  // cut short
      {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                                  // overlong
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                  // surrogate
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // too large
  };
  for (const auto& c : cases) {
    std::string out;
    AppendLabelValue(out, c.value);
    EXPECT_EQ(out, c.written);
  }
}

}  // namespace
}  // namespace volumed
