#include "recycler/recycler_volumes.h"

#include <chrono>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "recycler/scrub.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr auto kRemoveTimeout = std::chrono::minutes(1);
constexpr uint32_t kPrivateMode = 0700;
constexpr char kNfs[] = "nfs";
// One is made; mounts upon it are somebody else's mistake.
constexpr int kMaxMountsUponEachOther = 8;

// No name of an object has '_' in it.
std::string PrefixOf(const std::string& name_space, const std::string& name) {
  return name_space + "_" + name + "_";
}

const HostPathVolumeSource* HostPathOf(const PodVolume& volume) {
  return std::get_if<HostPathVolumeSource>(&volume.source);
}
const NfsVolumeSource* NfsOf(const PodVolume& volume) {
  return std::get_if<NfsVolumeSource>(&volume.source);
}

}  // namespace

Status RecyclerVolumes::Check(const PodVolume& volume) const {
  if (const HostPathVolumeSource* source = HostPathOf(volume)) {
    RETURN_IF_ERROR(ScrubbedPlace(source->path));
    return OkStatus();
  }
  if (NfsOf(volume) == nullptr) {
    return Error::NotApplied(Code::kUnimplemented,
                             "volume " + volume.name + " is neither a hostPath nor nfs");
  }
  if (!directory_.empty()) return OkStatus();
  return Error::NotApplied(Code::kUnimplemented,
                           "there is no place to mount volume " + volume.name + " at");
}

std::string RecyclerVolumes::DomainOf(const PodVolume& volume) {
  if (const NfsVolumeSource* source = NfsOf(volume)) return NfsFaultDomain(*source);
  const HostPathVolumeSource* source = HostPathOf(volume);
  return source == nullptr ? "" : source->path;
}

std::string RecyclerVolumes::PlaceOf(const Pod& pod, const PodVolume& volume) const {
  if (const HostPathVolumeSource* source = HostPathOf(volume)) return source->path;
  return Directory(PrefixOf(pod.metadata.name_space, pod.metadata.name) + volume.name).Display();
}

Result<SafePath> RecyclerVolumes::MakeOwnPlace(const Pod& pod, const PodVolume& volume,
                                               const CallOptions& call) {
  // What an agent before this one mounted may be of another server.
  RETURN_IF_ERROR(Remove(pod.metadata.name_space, pod.metadata.name, call));
  const SafePath place =
      Directory(PrefixOf(pod.metadata.name_space, pod.metadata.name) + volume.name);
  CallOptions own = call;
  own.domain.clear();
  SafePath above;
  above.root = directory_.substr(0, directory_.rfind('/'));
  above.relative = directory_.substr(directory_.rfind('/') + 1);
  RETURN_IF_ERROR(kernel_.Call(
      MakeDirectory{.path = above, .mode = kPrivateMode, .parent_mode = kPrivateMode}, own));
  RETURN_IF_ERROR(kernel_.Call(MakeDirectory{.path = place, .mode = kPrivateMode}, own));
  return place;
}

Status RecyclerVolumes::MakePresent(const Pod& pod, const PodVolume& volume,
                                    const CallOptions& call) {
  const NfsVolumeSource* source = NfsOf(volume);
  if (source == nullptr) return OkStatus();
  ASSIGN_OR_RETURN(const SafePath place, MakeOwnPlace(pod, volume, call));
  RETURN_IF_ERROR(kernel_.Call(
      Mount{.fs_type = kNfs, .source = NfsExport(*source), .target = place, .options = {}}, call));
  return OkStatus();
}

Result<std::string> RecyclerVolumes::BindApproved(const Pod& pod, const PodVolume& volume,
                                                  const StorageObject& approved,
                                                  const CallOptions& call) {
  if (directory_.empty()) {
    return Error::NotApplied(Code::kUnimplemented,
                             "there is no place to bind volume " + volume.name + " to");
  }
  ASSIGN_OR_RETURN(const SafePath source, ScrubbedPlace(PlaceOf(pod, volume)));
  ASSIGN_OR_RETURN(const SafePath place, MakeOwnPlace(pod, volume, call));
  BindMount bind{.source = source, .target = place};
  bind.expected = approved;
  RETURN_IF_ERROR(kernel_.Call(bind, call));
  return place.Display();
}

Status RecyclerVolumes::RemoveAt(const SafePath& place, const CallOptions& call) {
  CallOptions bounded = call;
  bounded.deadline = Deadline::After(clock_, kRemoveTimeout);
  // What hangs here is nobody's but the recycler's.
  if (bounded.domain.empty()) bounded.domain = "recycler:" + place.relative;
  for (int mounts = 0;; ++mounts) {
    ASSIGN_OR_RETURN(const Changed unmounted, kernel_.Call(Unmount{place}, bounded));
    if (!unmounted.changed) break;  // the kernel's word that nothing is mounted there
    if (mounts == kMaxMountsUponEachOther) {
      return Error::MaybeApplied(Code::kFailedPrecondition,
                                 "mounts upon mounts at " + place.Display());
    }
  }
  bounded.domain.clear();
  RETURN_IF_ERROR(kernel_.Call(RemoveDirectory{place}, bounded));
  return OkStatus();
}

Result<std::vector<std::string>> RecyclerVolumes::Names(const CallOptions& call) {
  std::vector<std::string> names;
  if (directory_.empty()) return names;
  CallOptions own = call;
  own.domain.clear();
  own.deadline = Deadline::After(clock_, kRemoveTimeout);
  const Result<DirectoryListing> listing = kernel_.Call(ListDirectory{Directory()}, own);
  if (!listing.ok()) {
    if (listing.error().code() == Code::kNotFound) return names;
    return listing.error();
  }
  for (const DirectoryEntry& entry : listing->entries) names.push_back(entry.name);
  return names;
}

Status RecyclerVolumes::Remove(const std::string& name_space, const std::string& name,
                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(call));
  const std::string prefix = PrefixOf(name_space, name);
  for (const std::string& entry : names) {
    if (!entry.starts_with(prefix)) continue;
    RETURN_IF_ERROR(RemoveAt(Directory(entry), call).With("recycler pod " + name));
  }
  return OkStatus();
}

Result<std::set<std::pair<std::string, std::string>>> RecyclerVolumes::PodsWithPlaces(
    const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(call));
  std::set<std::pair<std::string, std::string>> pods;
  for (const std::string& entry : names) {
    constexpr size_t kParts = 3;  // namespace, pod, volume
    const std::vector<std::string> parts = Split(entry, '_');
    const bool is_ours = parts.size() == kParts && !parts[0].empty() && !parts[1].empty();
    if (is_ours) pods.emplace(parts[0], parts[1]);
  }
  return pods;
}

}  // namespace volumed
