// How much of a CSI volume is used: NodeGetVolumeStats, asked of its driver.
// Source: kubernetes pkg/volume/csi/csi_metrics.go, csi_client.go (NodeGetVolumeStats)@v1.36.2.
#pragma once

#include <string>

#include "base/result.h"
#include "csi.pb.h"
#include "csi/csi_context.h"
#include "csi/csi_driver_record.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"

namespace volumed {

// The figures of the answer. What the driver did not say is absent: unlike in kubelet, where it is
// zero. Units that this program does not know are passed over. Threads: any. Blocks: never. Errors,
// not applied: Internal, in words that follow "said that .., and", for figures that cannot be: less
// than nothing, more used or left than there is, no unit.
Result<Metrics> FiguresOf(const ::csi::v1::NodeGetVolumeStatsResponse& answer);

// A driver that is not there, or that does not let itself be used, fails at once, so that no
// measurement waits for it. What the driver says of the volume's condition is in the answer
// (csi/csi_health.h). Each measurement counts in volume_metric_collection_duration_seconds under
// the driver's name.
// Threads: any but control. Blocks: until the options' deadline, and not longer than calls may
// take. Errors: NotSupported (metrics_provider.h) without GET_VOLUME_STATS; Unavailable, not
// applied, if the driver is away; those of CallDriver(); DeadlineExceeded is maybe applied if the
// driver was asked, which tells that it did not answer from that nobody had time to ask it;
// Internal, not applied, for figures that cannot be, which count as a lie.
class CsiMetrics final : public MetricsProvider {
 public:
  // `path` is where the pod has the volume. The context outlives this.
  CsiMetrics(const CsiContext& context, std::string driver, std::string handle, std::string path);
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  Result<Metrics> Measure(const CallOptions& options) const;
  Result<Metrics> Ask(const CsiDriverFacts& driver, const CallOptions& options) const;
  Status AddHealth(const CallOptions& options, Metrics& metrics) const;

  const CsiContext& context_;
  const std::string driver_;
  const std::string handle_;
  const std::string path_;
};

}  // namespace volumed
