// Agent: the sources of its objects, and what their lists set going.
#include <algorithm>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "volumemanager/provisioning.h"

namespace volumed {

void Agent::DeliverList(ObjectList list) {
  for (const DecodeProblem& problem : list.problems) {
    log_->LogLimited("source " + problem.ToString(), LogLevel::kWarning, "manifest problem",
                     {{"source", list.source}, {"problem", problem.ToString()}});
  }
  if (list.complete) {
    forgotten_.erase(list.source);
  } else if (forgotten_.contains(list.source)) {
    return;  // still not there; nobody waits for it any more
  }
  const bool was_complete = catalog_->AllSourcesComplete();
  // The first complete list of the last source may hold what plugins ask for at once.
  catalog_->Update(std::move(list));
  host_objects_->SetWaitsFor(catalog_->IncompleteSources());
  kubelet_host_->SetSynced(catalog_->AllSourcesComplete());
  if (was_complete != catalog_->AllSourcesComplete()) {
    manager_->ObjectsChanged();
    watchdog_->Status(NotReadyReason().value_or("ready"));
  }
}

void Agent::StartSources() {
  std::vector<ObjectSource*> sources = {object_directory_.get()};
  for (const auto& directory : manifest_directories_) sources.push_back(directory.get());
  for (ObjectSource* source : sources) catalog_->ExpectSource(source->name());
  for (ObjectSource* source : sources) {
    source->Start([this](ObjectList list) { DeliverList(std::move(list)); });
  }
}

// A configured source reads anew and drops what it kept only out of caution; one that is not
// configured any more goes with everything it delivered.
Status Agent::ForgetSource(const std::string& name) {
  if (name == object_directory_->name()) {
    object_directory_->Forget();
    return OkStatus();
  }
  for (const auto& directory : manifest_directories_) {
    if (directory->name() != name) continue;
    if (!Delivers(name)) DropSource(name);
    directory->Forget();
    return OkStatus();
  }
  if (name == Provisioning::kSourceName) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the volumes that were made here are known by their records; delete "
                             "the PersistentVolume instead");
  }
  if (!catalog_->ForgetSource(name)) {
    return Error::NotApplied(Code::kNotFound, "no source " + name);
  }
  return OkStatus();
}

bool Agent::Delivers(const std::string& name) const {
  const std::vector<SourceStatus> sources = catalog_->Sources();
  return std::any_of(sources.begin(), sources.end(), [&](const SourceStatus& source) {
    return source.name == name && source.last_list_complete;
  });
}

// It does not deliver: what it had goes, and nothing waits for it until it is there again.
void Agent::DropSource(const std::string& name) {
  forgotten_.insert(name);
  catalog_->ForgetSource(name);
  host_objects_->SetWaitsFor(catalog_->IncompleteSources());
  kubelet_host_->SetSynced(catalog_->AllSourcesComplete());
  manager_->ObjectsChanged();
  watchdog_->Status(NotReadyReason().value_or("ready"));
}

}  // namespace volumed
