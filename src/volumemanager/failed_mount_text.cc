#include "volumemanager/failed_mount_text.h"

#include <vector>

#include "base/strings.h"

namespace volumed {

std::optional<std::string> FailedMountText(const WantedPod& wanted, const ActualPod& actual) {
  std::vector<std::string> unmounted, unprocessed, reasons;
  for (const auto& [spec, volume] : wanted.volumes) {
    const auto found = actual.volumes.find(spec);
    if (found == actual.volumes.end() || !IsSetUp(found->second)) unmounted.push_back(spec.str());
    const size_t before = reasons.size();
    for (const WantedProblem& problem : volume.problems) {
      // A problem that passes by itself is no failure yet.
      if (problem.error.code() == Code::kUnavailable) continue;
      reasons.push_back(problem.error.message());
    }
    if (reasons.size() > before) unprocessed.push_back(spec.str());
  }
  if (unprocessed.empty()) return std::nullopt;
  return "Unable to attach or mount volumes: unmounted volumes=[" + Join(unmounted, " ") +
         "], unattached volumes=[], failed to process volumes=[" + Join(unprocessed, " ") +
         "]: " + Join(reasons, "; ");
}

}  // namespace volumed
