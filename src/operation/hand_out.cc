#include "operation/hand_out.h"

#include <algorithm>
#include <string>
#include <vector>

#include "operation/mount_request.h"
#include "operation/operation_traits.h"
#include "os/fault_domain.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

// The mounts that a path may lie on, in the table's order: the last one lies upon the others.
// Nothing if the table cannot tell.
std::vector<MountEntry> MountsAround(Kernel& kernel, const std::string& path,
                                     const CallOptions& call) {
  Result<MountListing> around = kernel.Call(ListMounts{.around = path}, call);
  return around.ok() ? std::move(around->mounts) : std::vector<MountEntry>();
}

// Whether the way to a path on `mounts` touches nothing that could hang while the agent's own
// directory, which is on `own`, still answers.
bool HangsWithOwn(const std::vector<MountEntry>& mounts, const std::vector<MountEntry>& own) {
  const std::string own_lane = DomainOfMount(own.back()).lane;
  if (!LaneBeside(own_lane, mounts.back()).empty()) return false;
  return std::all_of(mounts.begin(), mounts.end(), [&](const MountEntry& mount) {
    const auto is_same = [&mount](const MountEntry& one) { return one.mount_id == mount.mount_id; };
    return LaneBeside(own_lane, mount).empty() || std::any_of(own.begin(), own.end(), is_same);
  });
}

}  // namespace

bool MayBeHandedOutInGroup(const MountRequest& request, const VolumePlugin& plugin) {
  const bool is_pods_own = request.spec.persistent_volume() == nullptr &&
                           request.unique_name.empty() && !request.has_device;
  if (!plugin.HandsOutWhatIsThere() || !is_pods_own) return false;
  if (request.is_remount || !request.sub_paths.empty()) return false;
  const std::optional<StorageName> name = StorageNameOf(request.spec);
  return name && name->IsOnNode();
}

HandOut::HandOut(const OperationParts& parts, const MountRequest& request, VolumePlugin& plugin,
                 Mounter& mounter)
    : parts_(parts),
      request_(request),
      mounter_(mounter),
      storage_(parts.storage, parts.host.kernel, request, plugin, mounter.GetSafePath()) {}

std::optional<IdentifyStorage> HandOut::Look(const CallOptions& call) const {
  const std::string path = StorageNameOf(request_.spec)->path;
  const std::vector<MountEntry> own =
      MountsAround(parts_.host.kernel, parts_.host.paths.root(), call);
  const std::vector<MountEntry> mounts = MountsAround(parts_.host.kernel, path, call);
  if (own.empty() || mounts.empty() || !HangsWithOwn(mounts, own)) return std::nullopt;
  const std::string mount = mounts.back().mount_point == "/" ? "" : mounts.back().mount_point;
  if (!path.starts_with(mount + "/") || path.size() == mount.size() + 1) return std::nullopt;
  IdentifyStorage look;
  look.path = {mounts.back().mount_point, path.substr(mount.size() + 1), Resolve::kNoSymlinks};
  look.same_mount = true;
  return look;
}

std::optional<OperationFailure> HandOut::Take(const StorageIdentity& identity,
                                              const CallOptions& call) {
  looked_ = true;
  if (const Status free = storage_.ReserveIdentified(identity, call); !free.ok()) {
    return OperationFailure{kVolumeMount, kReserveStorage, free.error()};
  }
  MounterArgs args = ArgsFor(request_, call);
  args.call.approved = storage_.approved();
  if (const Status set_up = mounter_.SetUp(args); !set_up.ok()) {
    return OperationFailure{kVolumeMount, "SetUp", set_up.error()};
  }
  return std::nullopt;
}

bool HandOut::GiveBack(const OperationFailure& failure) {
  // Nothing of it is there: nobody has to know of it.
  if (!parts_.volumes->Find(request_.key())) storage_.Release();
  return !looked_ && failure.step == kReserveStorage && !failure.error.maybe_applied();
}

}  // namespace volumed
