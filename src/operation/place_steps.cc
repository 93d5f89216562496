#include "operation/place_steps.h"

#include <string>

#include "mounter/mount_refs.h"
#include "operation/call_options.h"
#include "operation/given_place.h"
#include "operation/group_operations.h"
#include "os/place_names.h"

namespace volumed {
namespace {

Status CheckDirectory(Kernel& kernel, const SafePath& directory, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info, kernel.Call(Stat{.path = directory}, call));
  if (info.type == FileType::kDirectory) return OkStatus();
  if (info.type == FileType::kMissing) {
    return Error::NotApplied(Code::kNotFound, "there is no directory " + directory.Display() +
                                                  ", which whoever named it has to make");
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      directory.Display() + " is no directory: it is a " + std::string(FileTypeName(info.type)));
}

// The root itself may be a mount, as in a container that was given just that.
Status CheckParentNotCovered(const OperationParts& parts, const PodVolumeKey& key,
                             const SafePath& place, const CallOptions& call) {
  const SafePath parent = ParentOf(place);
  if (parent.relative.empty()) return OkStatus();
  return CheckNotCovered(parts.host, {key, place, parent}, call);
}

Status CheckShowsDevice(Kernel& kernel, const SafePath& place, const SafePath& device,
                        const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> there,
                   FindMountAt(kernel, place.Display(), call));
  if (!there) return OkStatus();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mounted,
                   FindMountAt(kernel, device.Display(), call));
  // Without it nothing tells what the volume is: its mount may have been taken away by hand.
  if (!mounted) return OkStatus();
  if (PartAt(*there, place.Display()) == PartAt(*mounted, device.Display())) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "a " + there->fs_type + " is mounted at " + place.Display() +
                               ", and a " + mounted->fs_type + " that it is no part of at " +
                               device.Display() +
                               ", where the volume is staged: one of the two is not the volume's, "
                               "and whoever mounted it has to unmount it");
}

// A bind of the volume in itself would be a part of what it shows, and its mount would go away with
// the volume's own.
Status CheckNotInItself(const SafePath& place, const SafePath& device) {
  if (!place.Display().starts_with(device.Display() + "/")) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      place.Display() + " lies in " + device.Display() + ", at which the volume itself is staged");
}

// What is in it would be covered, and the target could not be removed when the volume leaves.
Status CheckNothingInIt(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info, kernel.Call(Stat{.path = place}, call));
  if (info.type == FileType::kRegular && info.size_bytes > 0) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             place.Display() + " is a file of " + std::to_string(info.size_bytes) +
                                 " bytes: nothing is put over what is in it");
  }
  if (info.type != FileType::kDirectory || info.is_mount_point) return OkStatus();
  ASSIGN_OR_RETURN(const DirectoryListing listing, kernel.Call(ListDirectory{place}, call));
  if (listing.entries.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           place.Display() + " is not empty: nothing is put over what is in it");
}

// What is at a target where nothing is mounted any more and is no target that was made for the
// volume; empty if it may be one.
Result<std::string> ForeignAt(Kernel& kernel, const SafePath& place, bool is_block,
                              const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo there, kernel.Call(Stat{.path = place}, call));
  if (there.is_mount_point) return std::string();
  switch (there.type) {
    case FileType::kMissing:
    case FileType::kSymlink:
      return std::string();
    case FileType::kRegular:
      if (is_block && there.size_bytes == 0) return std::string();
      return "a file of " + std::to_string(there.size_bytes) + " bytes";
    case FileType::kDirectory: {
      ASSIGN_OR_RETURN(const DirectoryListing listing, kernel.Call(ListDirectory{place}, call));
      if (!listing.entries.empty()) return std::string("a directory that is not empty");
      return std::string(is_block ? "a directory" : "");
    }
    case FileType::kSocket:
    case FileType::kCharDevice:
    case FileType::kBlockDevice:
    case FileType::kFifo:
      break;
  }
  return "a " + std::string(FileTypeName(there.type));
}

}  // namespace

Status LeaveForeign(const OperationParts& parts, const SafePath& place, bool is_block,
                    const Status& removed, const CallOptions& call) {
  if (removed.ok()) return removed;
  const Result<std::string> foreign = ForeignAt(parts.host.kernel, place, is_block, call);
  if (!foreign.ok() || foreign->empty()) return removed;
  parts.logger.Warning(
      "what is at the target of a volume that left is not the agent's, and stays",
      {{"target", place.Display()}, {"there", *foreign}, {"removal", removed.error().message()}});
  return OkStatus();
}

Status CheckPlaceOfDevice(const OperationParts& parts, const SafePath& place,
                          const CallOptions& call) {
  RETURN_IF_ERROR(CheckGivenPlace(place));
  return CheckDirectory(parts.host.kernel, place, OnPath(call, place));
}

void AddCheckPlaceOfDevice(const OperationParts& parts, const MountDeviceRequest& request,
                           std::vector<Step>& steps) {
  if (!request.place) return;
  steps.push_back({.name = "CheckGivenPlace",
                   .timeout = parts.settings.mount_device,
                   .changes_volume = false,
                   .run = [&](const CallOptions& call) {
                     return CheckPlaceOfDevice(parts, *request.place, call);
                   }});
}

Status CheckTarget(const OperationParts& parts, const PodVolumeKey& key, const SafePath& place,
                   const std::optional<SafePath>& device, const CallOptions& call) {
  RETURN_IF_ERROR(CheckGivenPlace(place));
  if (device) RETURN_IF_ERROR(CheckNotInItself(place, *device));
  RETURN_IF_ERROR(CheckParentNotCovered(parts, key, place, call));
  RETURN_IF_ERROR(CheckDirectory(parts.host.kernel, ParentOf(place), OnPlace(call, place)));
  RETURN_IF_ERROR(CheckNothingInIt(parts.host.kernel, place, OnPath(call, place)));
  return device ? CheckShowsDevice(parts.host.kernel, place, *device, call) : OkStatus();
}

Status CheckTargetOfTeardown(const OperationParts& parts, const PodVolumeRecord& facts,
                             const CallOptions& call) {
  const SafePath place = GivenPlaceOf(facts).value_or(SafePath());
  RETURN_IF_ERROR(CheckGivenPlace(place));
  RETURN_IF_ERROR(CheckParentNotCovered(parts, facts.key, place, call));
  if (facts.is_block) return OkStatus();
  const std::optional<SafePath> device = GivenPlaceOfDevice(parts, facts.unique_name);
  return device ? CheckShowsDevice(parts.host.kernel, place, *device, call) : OkStatus();
}

std::optional<SafePath> GivenPlaceOfDevice(const OperationParts& parts,
                                           const UniqueVolumeName& device) {
  const std::optional<DeviceRecord> record = parts.devices.Find(device);
  return record ? GivenPlaceOf(*record) : std::nullopt;
}

}  // namespace volumed
