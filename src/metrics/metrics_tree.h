// MetricsTree: the figures of a volume that is a directory of a larger filesystem, by what bounds
// and counts it there.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"

namespace volumed {

// What `filesystem` has, as far as this directory may have of it, and has. Pure.
FsInfo NarrowedTo(const TreeQuota& quota, FsInfo filesystem);

// The figures of the filesystem at a path, narrowed to those of the directory; where nobody counts
// that, they are the filesystem's, and so they are if it is of another project than `project_id`,
// whose figures would be another's (0: of whichever it is). Threads: any. Blocks: until the call's
// deadline. Errors, not applied: those of the effects.
Result<FsInfo> MeasureTree(Kernel& kernel, const SafePath& path, uint32_t project_id,
                           const CallOptions& call);

// Threads: any. Blocks: until the options' deadline. Errors, all not applied: FsInfoFailed for any
// failure of the Kernel.
class MetricsTree final : public MetricsProvider {
 public:
  // Kernel and clock outlive this.
  MetricsTree(Kernel& kernel, const Clock& clock, SafePath path, uint32_t project_id);
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  Kernel& kernel_;
  const Clock& clock_;
  const SafePath path_;
  const uint32_t project_id_;
};

}  // namespace volumed
