// Agent: the sources of its objects, and what their lists set going.
#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent.h"
#include "base/strings.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/provisioning.h"

namespace volumed {

void Agent::LogProblems(const std::string& source, const char* what,
                        const std::vector<DecodeProblem>& problems) {
  for (const DecodeProblem& problem : problems) {
    log_->LogLimited("source " + problem.ToString(), LogLevel::kWarning, what,
                     {{"source", source}, {"problem", problem.ToString()}});
  }
}

void Agent::Deliver(ObjectUpdate update) {
  std::optional<KnownDirectory> directory;
  std::string source;
  if (const ObjectList* list = std::get_if<ObjectList>(&update)) {
    source = list->source;
    LogProblems(source, "manifest problem", list->problems);
    LogProblems(source, "manifest warning", list->warnings);
    if (list->complete) directory = list->directory;
  } else {
    const ObjectDelta& delta = std::get<ObjectDelta>(update);
    source = delta.source;
    for (const auto& [file, problems] : delta.problems) {
      LogProblems(source, "manifest problem", problems);
    }
    for (const auto& [file, warnings] : delta.warnings) {
      LogProblems(source, "manifest warning", warnings);
    }
    directory = delta.directory;
  }
  source_losses_->Note(update);
  if (directory) manager_->NoteDirectory(source, *directory);
  const bool was_complete = catalog_->AllSourcesComplete();
  const bool were_in_order = catalog_->WhereItMayHaveMoved("").empty();
  // The first complete list of the last source may hold what plugins ask for at once.
  catalog_->Update(std::move(update));
  host_objects_->SetWaitsFor(catalog_->IncompleteSources());
  // A file may have lost what is refused there: that is no change of any object.
  host_objects_->SetRefused(catalog_->Refused());
  kubelet_host_->SetSynced(catalog_->AllSourcesComplete());
  if (was_complete != catalog_->AllSourcesComplete()) {
    manager_->ObjectsChanged();
    watchdog_->Status(NotReadyReason().value_or("ready"));
  } else if (were_in_order != catalog_->WhereItMayHaveMoved("").empty()) {
    manager_->ObjectsChanged();
  }
}

std::vector<ObjectSource*> Agent::ConfiguredSources() const {
  std::vector<ObjectSource*> sources = {object_directory_.get()};
  for (const auto& directory : manifest_directories_) sources.push_back(directory.get());
  return sources;
}

void Agent::ExpectSources() {
  for (const ObjectSource* source : ConfiguredSources()) catalog_->ExpectSource(source->name());
  host_objects_->SetWaitsFor(catalog_->IncompleteSources());
}

// Each is told first what the last agent knew of it: without, it could not tell what it has lost.
void Agent::StartSources(std::map<std::string, SourceMemory> memories) {
  for (ObjectSource* source : ConfiguredSources()) {
    source->Remember(std::move(memories[source->name()]));
    source->Start([this](ObjectUpdate update) { Deliver(std::move(update)); });
  }
}

ObjectSource* Agent::FindSource(const std::string& name) const {
  if (name == object_directory_->name()) return object_directory_.get();
  for (const auto& directory : manifest_directories_) {
    if (directory->name() == name) return directory.get();
  }
  return nullptr;
}

std::set<std::string> Agent::UnreadFiles(const std::string& source) const {
  for (const auto& directory : manifest_directories_) {
    if (directory->name() == source) return directory->unread_files();
  }
  return {};
}

Error Agent::NoSource(const std::string& name) const {
  std::vector<std::string> known;
  for (const SourceStatus& source : catalog_->Sources()) known.push_back(source.name);
  return Error::NotApplied(Code::kNotFound,
                           "no source " + name + "; there are " + Join(known, ", "));
}

Status Agent::AcceptSource(const std::string& name, bool dry_run) {
  if (name == kAdoptedRootSource && !manager_->HeldAdoptedPods().empty()) {
    if (!dry_run) manager_->AcceptAdoptedPods();
    return OkStatus();
  }
  ObjectSource* const source = FindSource(name);
  if (source == nullptr) {
    if (!source_losses_->Knows(name)) return NoSource(name);
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "source " + name +
            " is not configured: it has nothing that could be right; `volumectl "
            "source forget` takes away what it had");
  }
  if (dry_run) return OkStatus();
  source->Accept();
  catalog_->AcceptSource(name);
  manager_->ObjectsChanged();
  return OkStatus();
}

// A source that is not configured any more goes with everything it delivered.
Status Agent::ForgetSource(const std::string& name, bool dry_run) {
  if (FindSource(name) != nullptr) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "source " + name +
                                 " is configured; `volumectl source accept` takes "
                                 "away what it does not have any more");
  }
  if (name == Provisioning::kSourceName) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the volumes that were made here are known by their records; delete "
                             "the PersistentVolume instead");
  }
  if (!source_losses_->Knows(name)) return NoSource(name);
  if (dry_run) return OkStatus();
  catalog_->ForgetSource(name);
  source_losses_->Forget(name);
  manager_->SourceForgotten(name);
  return OkStatus();
}

}  // namespace volumed
