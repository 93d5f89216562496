#include "volumemanager/views/pod_queries.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "volume/driver_domain.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/pod_ending.h"
#include "volumemanager/pod_replacements.h"
#include "volumemanager/pod_tombstones.h"
#include "volumemanager/readiness.h"
#include "volumemanager/views/pod_views.h"

namespace volumed {
namespace {

// Of a volume that is wanted, or there.
template <typename Volume>
std::string FullPluginNameOf(const Volume& volume) {
  return GetFullQualifiedPluginName(volume.plugin_name, volume.driver_domain);
}

std::string_view WithoutFullStop(std::string_view sentence) {
  sentence = TrimSpace(sentence);
  if (sentence.ends_with('.')) sentence.remove_suffix(1);
  return sentence;
}

}  // namespace

PodOnNode FindPodOnNode(const ActualStateOfWorld& actual, const PodUid& uid) {
  const ActualPod* pod = actual.FindPod(uid);
  if (pod == nullptr) return PodOnNode();
  return PodOnNode{pod->object, pod->leaving && pod->leaving->left_sources, /*is_here=*/true};
}

Status PodQueries::CheckLoaded() const {
  if (parts_.readiness.loaded()) return OkStatus();
  return Error::NotApplied(Code::kUnavailable, parts_.readiness.NotReadyReason());
}

bool PodQueries::IsLeaving(const PodUid& uid) const {
  const ActualPod* pod = parts_.actual.FindPod(uid);
  return pod != nullptr && pod->leaving.has_value();
}

std::string PodQueries::WhoHas(const UniqueVolumeName& device) const {
  const std::vector<PodVolumeKey> users = parts_.actual.UsersOf(device);
  if (!users.empty()) {
    const ActualPod* const pod = parts_.actual.FindPod(users.front().pod);
    return "pod " + (pod == nullptr ? users.front().pod.str() : pod->identity.DisplayName());
  }
  const ActualDevice* const there = parts_.actual.devices().Find(device);
  if (there == nullptr || (there->state == VolumeState::kDetached && !there->uncertain)) return "";
  return "this node, where its device is " + std::string(VolumeStateName(there->state)) + ",";
}

std::vector<PodVolumeKey> PodQueries::UsersOf(const UniqueVolumeName& device) const {
  return parts_.actual.UsersOf(device);
}

std::vector<PodView> PodQueries::Named(const std::string& name_space,
                                       const std::string& name) const {
  std::vector<PodView> named;
  for (const PodUid& uid : parts_.actual.PodsNamed(name_space, name))
    named.push_back(parts_.views.Build(uid));
  // Adds a pod that was deleted by command and that a source still has; before the records are
  // loaded, any pod of the name.
  const ObjectPtr object = parts_.catalog.FindObject({ObjectKind::kPod, name_space, name});
  if (object == nullptr) return named;
  const PodUid uid = std::get<Pod>(*object).uid();
  if (parts_.actual.FindPod(uid) != nullptr) return named;
  if (auto view = Find(uid)) named.push_back(std::move(*view));
  return named;
}

std::vector<PodView> PodQueries::All() const {
  std::vector<PodView> all;
  for (const auto& [uid, pod] : parts_.actual.pods()) all.push_back(parts_.views.Build(uid));
  if (parts_.readiness.loaded()) {
    for (const auto& [uid, tombstone] : parts_.tombstones.all()) {
      if (const PodPtr pod = parts_.catalog.FindPod(uid)) all.push_back(BuildDeleted(*pod));
    }
  } else {
    for (const PodPtr& pod : parts_.catalog.Pods()) {
      if (auto view = Find(pod->uid())) all.push_back(std::move(*view));
    }
  }
  return all;
}

std::vector<PodName> PodQueries::Names(const PodName& after, size_t limit) const {
  std::vector<PodName> found;
  const auto& names = parts_.actual.names();
  for (auto at = names.lower_bound({after.ns, after.name});
       at != names.end() && found.size() < limit; ++at) {
    for (const PodUid& uid : at->second) {
      PodName pod{at->first.first, at->first.second, uid};
      if (pod > after) found.push_back(std::move(pod));
    }
  }
  const auto add = [&](const PodPtr& pod) {
    if (pod == nullptr || parts_.actual.FindPod(pod->uid()) != nullptr || !Has(pod->uid())) return;
    PodName name{pod->metadata.name_space, pod->metadata.name, pod->uid()};
    if (name > after) found.push_back(std::move(name));
  };
  if (parts_.readiness.loaded()) {
    for (const auto& [uid, tombstone] : parts_.tombstones.all()) add(parts_.catalog.FindPod(uid));
  } else {
    for (const PodPtr& pod : parts_.catalog.Pods()) add(pod);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > limit) found.resize(limit);
  return found;
}

bool PodQueries::Has(const PodUid& uid) const {
  if (parts_.actual.FindPod(uid) != nullptr) return true;
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (pod == nullptr) return false;
  return parts_.tombstones.Find(uid) != nullptr || !(parts_.readiness.loaded() || EndingOf(*pod));
}

std::optional<PodView> PodQueries::Find(const PodUid& uid) const {
  if (parts_.actual.FindPod(uid) != nullptr) return parts_.views.Build(uid);
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (pod == nullptr) return std::nullopt;
  if (parts_.tombstones.Find(uid) != nullptr) return BuildDeleted(*pod);
  if (parts_.readiness.loaded() || EndingOf(*pod)) return std::nullopt;
  ProblemView problem;
  problem.step = "LoadRecords";
  problem.message = parts_.readiness.NotReadyReason();
  problem.who_must_act = parts_.readiness.load_error() ? "an administrator" : "nobody: retried";
  return parts_.views.BuildRefused(*pod, "Pending", std::move(problem));
}

std::vector<VolumeProgress> PodQueries::VolumesOf(const PodUid& uid) const {
  std::vector<VolumeProgress> volumes;
  const ActualPod* pod = parts_.actual.FindPod(uid);
  if (pod == nullptr) return volumes;
  const WantedPod* wanted = parts_.desired.Find(uid);
  for (const auto& [spec, volume] : pod->volumes) {
    volumes.push_back({spec, wanted != nullptr && wanted->volumes.contains(spec),
                       volume.state == VolumeState::kSetUp});
  }
  if (wanted == nullptr) return volumes;
  for (const auto& [spec, volume] : wanted->volumes) {
    if (!pod->volumes.contains(spec)) volumes.push_back({spec, true, false});
  }
  return volumes;
}

bool PodQueries::CountVolumes(VolumeCounting& counting) const {
  constexpr size_t kPodsInATask = 1000;
  size_t left = kPodsInATask;
  auto& counts = counting.counts;
  if (!counting.desired_done) {
    auto at = parts_.desired.pods().upper_bound(counting.last);
    for (; left > 0 && at != parts_.desired.pods().end(); ++at, --left) {
      for (const auto& [spec, volume] : at->second.volumes) {
        if (volume.mountable()) ++counts[FullPluginNameOf(volume)].desired;
      }
      counting.last = at->first;
    }
    if (at != parts_.desired.pods().end()) return false;
    counting.desired_done = true;
    counting.last = PodUid();
  }
  auto at = parts_.actual.pods().upper_bound(counting.last);
  for (; left > 0 && at != parts_.actual.pods().end(); ++at, --left) {
    for (const auto& [spec, volume] : at->second.volumes) {
      if (MayBePresent(volume)) ++counts[FullPluginNameOf(volume)].actual;
    }
    counting.last = at->first;
  }
  return at == parts_.actual.pods().end();
}

PodView PodQueries::BuildDeleted(const Pod& pod) const {
  ProblemView problem;
  problem.step = kDeletedStep;
  const PodTombstone& tombstone = *parts_.tombstones.Find(pod.uid());
  const std::string file = tombstone.identity.file.empty() ? "a source" : tombstone.identity.file;
  const bool is_evicted = !tombstone.evicted.empty();
  // Kubelet's words end a sentence, which goes on here.
  problem.message = is_evicted ? "it was " + std::string(WithoutFullStop(tombstone.evicted))
                               : "it was deleted by command";
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(
      {ObjectKind::kPod, tombstone.identity.name_space, tombstone.identity.name});
  switch (standing ? standing->presence : ObjectPresence::kPresent) {
    case ObjectPresence::kPresent:
      problem.message += (is_evicted ? "; " : " and ") + file + " still has it";
      if (is_evicted) problem.message += ": taken out there and put there anew, it comes back";
      problem.who_must_act =
          "the owner of its manifest: remove it there; put there anew after removal-settle, it "
          "comes back";
      break;
    case ObjectPresence::kGoing:
      problem.message += "; " + file + " lacks it, and it is forgotten after removal-settle";
      problem.who_must_act = "nobody";
      break;
    case ObjectPresence::kUnproven:
      problem.message += "; whether " + file + " still has it is not known: " + standing->reason;
      problem.who_must_act = "whoever puts that in order";
      break;
  }
  problem.since_unix_ms = tombstone.since_unix_ms;
  return parts_.views.BuildRefused(pod, "Refused", std::move(problem));
}

// The catalog does not know these pods; as soon as every source has delivered, their absence means
// something.
std::vector<AdoptedPodView> PodQueries::AwaitingAcceptance() const {
  std::vector<AdoptedPodView> pods;
  if (!parts_.readiness.Ready()) return pods;
  for (const auto& [uid, pod] : parts_.adopted.AwaitingAcceptance()) {
    pods.push_back({uid, pod.pod.name_space, pod.pod.name, pod.disk_data, pod.mounted,
                    parts_.adopted.why_held()});
  }
  return pods;
}

std::optional<int64_t> PodQueries::ReplacedAtUnixMillis(const ObjectKey& pod) const {
  return parts_.replacements.BeginsAtUnixMillis(pod);
}

std::map<std::pair<std::string, std::string>, int64_t> VolumeCounting::Figures() const {
  std::map<std::pair<std::string, std::string>, int64_t> figures;
  for (const auto& [plugin, count] : counts) {
    if (count.desired > 0) figures[{plugin, "desired_state_of_world"}] = count.desired;
    if (count.actual > 0) figures[{plugin, "actual_state_of_world"}] = count.actual;
  }
  return figures;
}

}  // namespace volumed
