// Agent: the sources of its objects, and what happens after they deliver.
#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent.h"
#include "base/strings.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {

void Agent::LogProblems(const std::string& source, const char* what,
                        const std::vector<DecodeProblem>& problems) {
  for (const DecodeProblem& problem : problems) {
    log_->LogLimited("source " + problem.ToString(), LogLevel::kWarning, what,
                     {{"source", source}, {"problem", problem.ToString()}});
  }
}

void Agent::UpdateBegins(const ObjectUpdate& update) {
  std::optional<KnownDirectory> directory;
  UnprovenAbsences unproven;
  std::string source;
  if (const ObjectList* const list = std::get_if<ObjectList>(&update)) {
    source = list->source;
    LogProblems(source, "manifest problem", list->problems);
    LogProblems(source, "manifest warning", list->warnings);
    if (list->complete) directory = list->directory;
    unproven = list->unproven;
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
    unproven = delta.unproven;
  }
  source_losses_->Note(update);
  if (directory) manager_->NoteDirectory(source, *directory, unproven);
  were_complete_ = catalog_->AllSourcesComplete();
  were_in_order_ = catalog_->WhereItMayHaveMoved("").empty();
  were_unseen_ = catalog_->UnseenSources().size();
}

void Agent::PartTaken(bool is_last) {
  // A file may have lost an object that was refused there, which is not a change of any object.
  NoteRefused();
  if (!is_last) return;
  // The first complete list of the last source may have what plugins will ask for at once.
  host_objects_->SetWaitsFor(catalog_->IncompleteSources());
  const bool are_complete = catalog_->AllSourcesComplete();
  kubelet_host_->SetSynced(are_complete);
  if (are_complete) csi_earlier_secrets_->ObjectsComplete();
  csi_node_->SyncChanged();
  if (were_complete_ != are_complete) {
    manager_->ObjectsChanged();
    watchdog_->Status(NotReadyReason().value_or("ready"));
  } else if (were_in_order_ != catalog_->WhereItMayHaveMoved("").empty() ||
             were_unseen_ != catalog_->UnseenSources().size()) {
    manager_->ObjectsChanged();
  }
}

void Agent::NoteRefused() {
  const uint64_t version = catalog_->refused_version();
  if (std::exchange(refused_version_, version) == version) return;
  host_objects_->SetRefused(catalog_->Refused());
}

void Agent::ExpectSources() {
  for (const auto& source : sources_) catalog_->ExpectSource(source->name());
  host_objects_->SetWaitsFor(catalog_->IncompleteSources());
}

// Each source is told first what the last agent knew of it; otherwise it could not tell what it has
// lost.
void Agent::StartSources(std::map<std::string, SourceMemory> memories) {
  for (const auto& source : sources_) {
    source->Remember(std::move(memories[source->name()]));
    source->Start([this](ObjectUpdate update) { updates_->Add(std::move(update)); });
  }
  csi_node_->Start();
  StartCsi();
  CsiRecordsLoaded();
}

ObjectSource* Agent::FindSource(const std::string& name) const {
  for (const auto& source : sources_) {
    if (source->name() == name) return source.get();
  }
  return nullptr;
}

std::set<std::string> Agent::UnreadFiles(const std::string& source) const {
  const ObjectSource* const found = FindSource(source);
  return found == nullptr ? std::set<std::string>() : found->UnreadFiles();
}

void Agent::NoteWanted(const ObjectKey& object, bool is_wanted) {
  const bool is_first = wanted_news_.empty();
  wanted_news_[object] = is_wanted;
  // A pod that is being looked at again names no objects for a moment, so the sources are told
  // later.
  if (is_first) scheduler_->Post([this] { TellWanted(); });
}

void Agent::TellWanted() {
  std::vector<ObjectKey> more;
  std::vector<ObjectKey> less;
  for (const auto& [object, is_wanted] : std::exchange(wanted_news_, {})) {
    if (is_wanted == wanted_objects_.contains(object)) continue;
    if (is_wanted) {
      wanted_objects_.insert(object);
      more.push_back(object);
    } else {
      wanted_objects_.erase(object);
      less.push_back(object);
    }
  }
  if (more.empty() && less.empty()) return;
  for (const auto& source : sources_) source->Want(more, less);
}

Error Agent::NoSource(const std::string& name) const {
  std::vector<std::string> known;
  for (const SourceStatus& source : catalog_->Sources()) known.push_back(source.name);
  return Error::NotApplied(Code::kNotFound,
                           "no source " + name + "; there are " + Join(known, ", "));
}

Status Agent::AcceptSource(const std::string& name, bool dry_run) {
  if (name == kAdoptedRootSource && !manager_->pods().AwaitingAcceptance().empty()) {
    if (!dry_run) manager_->pod_commands().AcceptAdopted();
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

// Forgets a source that is not configured any more, with everything that it delivered.
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
  if (name == kSnapshotSource) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the contents of snapshots that were made here are known by their "
                             "records; delete the VolumeSnapshotContent instead");
  }
  if (name == kCsiNodeSource) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the CSINode of this node is made here, of the CSI drivers that have "
                             "registered");
  }
  if (!source_losses_->Knows(name)) return NoSource(name);
  if (dry_run) return OkStatus();
  catalog_->ForgetSource(name);
  source_losses_->Forget(name);
  manager_->SourceForgotten(name);
  return OkStatus();
}

}  // namespace volumed
