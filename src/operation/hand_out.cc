#include "operation/hand_out.h"

#include <string>

#include "operation/mount_request.h"
#include "operation/operation_traits.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

// The mount that shows at the path; nothing if the table cannot tell.
std::optional<MountEntry> MountAt(Kernel& kernel, const std::string& path,
                                  const CallOptions& call) {
  const Result<MountListing> around = kernel.Call(ListMounts{.around = path}, call);
  if (!around.ok() || around->mounts.empty()) return std::nullopt;
  return around->mounts.back();  // it lies upon the others
}

}  // namespace

bool MayBeHandedOutInGroup(const MountRequest& request, const VolumePlugin& plugin) {
  const bool is_pods_own = request.spec.persistent_volume() == nullptr &&
                           request.unique_name.empty() && !request.has_device;
  if (!plugin.HandsOutWhatIsThere() || !is_pods_own) return false;
  if (request.is_remount || !request.sub_paths.empty()) return false;
  const std::optional<StorageName> name = StorageNameOf(request.spec);
  return name && name->server.empty();
}

HandOut::HandOut(const OperationParts& parts, const MountRequest& request, VolumePlugin& plugin,
                 Mounter& mounter)
    : parts_(parts),
      request_(request),
      mounter_(mounter),
      storage_(parts.storage, parts.host.kernel, request, plugin, mounter.GetSafePath()) {}

std::optional<IdentifyStorage> HandOut::Look(const CallOptions& call) const {
  const std::string path = StorageNameOf(request_.spec)->path;
  const auto own = MountAt(parts_.host.kernel, parts_.host.paths.root(), call);
  const auto mount = MountAt(parts_.host.kernel, path, call);
  if (!own || !mount || mount->mount_point != own->mount_point) return std::nullopt;
  const std::string above = own->mount_point == "/" ? "" : own->mount_point;
  if (!path.starts_with(above + "/") || path.size() == above.size() + 1) return std::nullopt;
  IdentifyStorage look;
  look.path = {own->mount_point, path.substr(above.size() + 1), Resolve::kNoSymlinks};
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
