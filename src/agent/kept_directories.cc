#include "agent/kept_directories.h"

#include <variant>

#include "mounter/host_directory.h"

namespace volumed {
namespace {

constexpr std::string_view kIsSetUp = "SetUp";

Result<StorageIdentity> IdentifyAt(Kernel& kernel, Deadline deadline, const std::string& path) {
  CallOptions call;
  call.domain = path;
  call.deadline = deadline;
  return kernel.Call(IdentifyStorage{.path = HostPath(path)}, call);
}

// "" if nothing shows that the two are different directories.
std::string DifferenceOf(Kernel& kernel, const LookLimit& limit, const KeptDirectory& kept) {
  const Result<StorageIdentity> now = IdentifyAt(kernel, limit.FromNow(), kept.path);
  if (!now.ok() || now->type == FileType::kBlockDevice) return "";
  if (now->type != FileType::kDirectory) return "there is no directory";
  const Result<StorageIdentity> has = IdentifyAt(kernel, limit.FromNow(), kept.place);
  if (has.ok()) return StorageDifference(has->object, now->object);
  const bool was_removed = has.error().code() == Code::kFailedPrecondition;
  return was_removed ? "the pod's was removed" : "";
}

}  // namespace

std::vector<KeptDirectory> KeptDirectoriesOf(const ObjectCatalog& catalog, const PodView& pod) {
  std::vector<KeptDirectory> kept;
  for (const VolumeView& volume : pod.volumes) {
    const bool has_it = volume.state == kIsSetUp && !volume.problem && !volume.is_block;
    if (!has_it || volume.persistent_volume.empty() || volume.host_path.empty()) continue;
    const PersistentVolumePtr object = catalog.FindPersistentVolume(volume.persistent_volume);
    if (object == nullptr) continue;
    const auto* local = std::get_if<LocalVolumeSource>(&object->spec.source);
    if (local != nullptr) kept.push_back({volume.spec.str(), local->path, volume.host_path});
  }
  return kept;
}

void TellOfOtherDirectories(Kernel& kernel, const LookLimit& limit,
                            const std::vector<KeptDirectory>& kept, v1::RetryResponse* response) {
  for (const KeptDirectory& one : kept) {
    for (v1::RetriedVolume& retried : *response->mutable_volumes()) {
      if (retried.name() != one.volume) continue;
      const std::string difference = DifferenceOf(kernel, limit, one);
      if (difference.empty()) continue;
      retried.set_what(retried.what() + "; the pod keeps the directory that it has, and " +
                       one.path + " is another one by now (" + difference +
                       "): a pod that is made anew is refused, until what it had is there again or "
                       "`volumectl accept pv` says that this is right");
    }
  }
}

}  // namespace volumed
