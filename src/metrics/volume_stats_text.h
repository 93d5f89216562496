// VolumeStatsText: the figures of every volume, kept ready to be written in the Prometheus text
// format: labels are escaped once, when a volume appears, and a scrape only formats numbers.
// Source: kubernetes pkg/kubelet/metrics/collectors/volume_stats.go@v1.36.2 (the kubelet_
// families).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "metrics/family_table.h"
#include "metrics/metrics_provider.h"

namespace volumed {

// One volume of one pod. Two pods of one name have two, by their uids.
struct VolumeStatsId {
  PodUid pod_uid;
  std::string volume;  // the SpecName: of an inline volume its name in the pod, else the PV's
  friend auto operator<=>(const VolumeStatsId&, const VolumeStatsId&) = default;
};

// What the series of a volume are labelled with. The texts may have any bytes: they are escaped
// here.
struct VolumeStatsLabels {
  std::string pod_namespace;
  std::string pod_name;
  std::string plugin;  // its name: "kubernetes.io/empty-dir"
  // The claim that the volume comes from, in the pod's namespace. As in kubelet, only volumes with
  // one are in the kubelet_ families; the others are in this program's own.
  std::optional<std::string> persistent_volume_claim;
};

// A figure that is absent has no line. If several volumes have the same labels (pods that share a
// claim, or a pod and the one that takes its place), only the first one has lines: two lines of one
// series spoil the whole scrape.
//
// Threads: any. Blocks: never for long; Set() and Remove() do not wait for a text that is being
// written, and count from the next one on.
class VolumeStatsText {
 public:
  // Adds the volume or replaces its figures. `labels` of a volume that is there are not looked at:
  // to change them, Remove() it first.
  void Set(const VolumeStatsId& id, const VolumeStatsLabels& labels, const Metrics& metrics)
      EXCLUDES(news_mu_);
  // Nothing happens if the volume is not there.
  void Remove(const VolumeStatsId& id) EXCLUDES(news_mu_);
  // How many volumes have figures. It waits for a text that is being written.
  size_t size() const EXCLUDES(mu_, news_mu_);

  // Appends every family that has a line. `now_unix_ms` is what ages are counted to; a measurement
  // from the future (the clock was set back) has the age 0.
  void AppendTo(std::string& out, int64_t now_unix_ms) const EXCLUDES(mu_, news_mu_);

 private:
  struct Volume {
    Metrics metrics;
    std::string pod_labels;    // {namespace="...",pod="...",...} and a space
    std::string claim_labels;  // empty without a claim
  };
  // The volumes that have one set of labels: several pods with one claim, or a pod and the one that
  // takes its place. Only the first has lines: two lines of one series spoil the whole scrape.
  using Series = std::map<std::string, std::vector<const Volume*>>;

  // What has been said of a volume since the last text: that it went, and what came after that.
  struct News {
    size_t number = 0;  // in the order in which they came: the first of one claim is written
    bool removed = false;
    std::optional<std::pair<VolumeStatsLabels, Metrics>> set;
  };

  // What was said becomes what is written. Only who reads does this: who says it waits for nobody.
  void TakeNews() const REQUIRES(mu_) EXCLUDES(news_mu_);
  void SetNow(const VolumeStatsId& id, const VolumeStatsLabels& labels,
              const Metrics& metrics) const REQUIRES(mu_);
  void RemoveNow(const VolumeStatsId& id) const REQUIRES(mu_);
  static void Link(Series& series, const std::string& labels, const Volume& volume);
  static void Unlink(Series& series, const std::string& labels, const Volume& volume);
  std::string& TextOf(Family family) const REQUIRES(mu_);
  void AppendFigure(Family family, std::string_view labels, std::optional<int64_t> value) const
      REQUIRES(mu_);

  mutable Mutex mu_;  // held while a text is written
  mutable std::map<VolumeStatsId, Volume> volumes_ GUARDED_BY(mu_);
  mutable Series claims_ GUARDED_BY(mu_);
  mutable Series pod_volumes_ GUARDED_BY(mu_);
  mutable Mutex news_mu_;
  mutable std::map<VolumeStatsId, News> news_ GUARDED_BY(news_mu_);
  // The lines of each family, while a text is written.
  static constexpr size_t kFirstFamily = static_cast<size_t>(Family::kVolumeStatsCapacityBytes);
  mutable std::array<std::string, kFamilyCount - kFirstFamily> family_texts_ GUARDED_BY(mu_);
};

// Appends `value` as it has to stand between the quotes of a label. Source: the text format's
// specification, prometheus.io/docs/instrumenting/exposition_formats. Bytes that are not UTF-8,
// which the format does not allow, become U+FFFD.
void AppendLabelValue(std::string& out, std::string_view value);

}  // namespace volumed
