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
constexpr std::string_view kPluginManager =
    "kubernetes pkg/kubelet/pluginmanager/metrics/metrics.go@v1.36.2";
constexpr std::string_view kCsiLibUtils = "kubernetes-csi/csi-lib-utils metrics/metrics.go@v0.23.0";
constexpr std::string_view kStats =
    "kubernetes pkg/kubelet/metrics/collectors/volume_stats.go@v1.36.2";

constexpr std::string_view kClaim = "namespace,persistentvolumeclaim";
constexpr std::string_view kPodVolume = "namespace,pod,volume,plugin";

constexpr FamilyType kCounter = FamilyType::kCounter;
constexpr FamilyType kGauge = FamilyType::kGauge;
constexpr FamilyType kHistogram = FamilyType::kHistogram;

#define VOLUMED_FAMILY_SPEC(id, ...) {Family::id, __VA_ARGS__},
constexpr std::array<FamilySpec, kFamilyCount> kTable = {{VOLUMED_FAMILIES(VOLUMED_FAMILY_SPEC)}};
#undef VOLUMED_FAMILY_SPEC

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
