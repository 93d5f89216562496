#include "volumemanager/readiness.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/strings.h"
#include "kube/object_source.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {

std::string Readiness::NotReadyReason() const {
  if (!loaded_) {
    return load_error_ ? "the records cannot be loaded: " + load_error_->ToString()
                       : "the records are being loaded";
  }
  if (std::string why = WhyIncomplete(); !why.empty()) return why;
  // Without a source every pod would look deleted; the source of provisioned volumes has no pods.
  if (!catalog_.HasSourceBut(Provisioning::kSourceName)) {
    return "no source of pods is configured";
  }
  return "";
}

std::string Readiness::WhyIncomplete() const {
  const std::vector<std::string> missing = catalog_.IncompleteSources();
  return missing.empty() ? "" : "no complete list yet from: " + Join(missing, ", ");
}

std::string Readiness::WhyUnseen() const {
  if (!loaded_) return NotReadyReason();
  if (std::string why = WhyIncomplete(); !why.empty()) return why;
  const std::map<std::string, std::string> unseen = catalog_.UnseenSources();
  if (unseen.empty()) return "";
  std::vector<std::string> texts;
  for (const auto& [source, why] : unseen) texts.push_back(source + " (" + why + ")");
  return "no storage is made or deleted before each source was looked into once since the start, "
         "as one may have PersistentVolumes that nobody knows; not yet: " +
         Join(texts, ", ");
}

bool Readiness::IsUnseenForAFault() const {
  const std::map<std::string, std::string> unseen = catalog_.UnseenSources();
  return std::any_of(unseen.begin(), unseen.end(),
                     [](const auto& source) { return source.second != kSourceIsBeingRead; });
}

Error NotLoaded() {
  return Error::NotApplied(Code::kUnavailable, "the records of the last run are not loaded yet");
}

}  // namespace volumed
