#include "volumemanager/readiness.h"

#include <vector>

#include "base/strings.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {

std::string Readiness::NotReadyReason() const {
  if (!loaded_) {
    return load_error_ ? "the records cannot be loaded: " + load_error_->ToString()
                       : "the records are being loaded";
  }
  const std::vector<std::string> missing = catalog_.IncompleteSources();
  if (!missing.empty()) return "no complete list yet from: " + Join(missing, ", ");
  // Without a source every pod would look deleted; the source of provisioned volumes has no pods.
  if (!catalog_.HasSourceBut(Provisioning::kSourceName)) {
    return "no source of pods is configured";
  }
  return "";
}

Error NotLoaded() {
  return Error::NotApplied(Code::kUnavailable, "the records of the last run are not loaded yet");
}

}  // namespace volumed
