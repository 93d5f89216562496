// IscsiInitiator: taking a disk away again, with the sessions that nobody else uses.
#include <algorithm>
#include <utility>

#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "plugins/iscsi_initiator.h"

namespace volumed {
namespace {

bool HasCommonPortal(const IscsiDisk& a, const IscsiDisk& b) {
  return std::any_of(a.portals.begin(), a.portals.end(),
                     [&](const std::string& portal) { return HasPortal(b, portal); });
}

}  // namespace

Result<IscsiDisk> IscsiInitiator::LoadDisk(const SafePath& place, const CallOptions& call) {
  const Result<FileContent> file = host_.kernel.Call(ReadFile{place.Below(kIscsiFile)}, call);
  if (!file.ok() && file.error().code() != Code::kNotFound) return file.error();
  if (file.ok()) {
    Result<IscsiDisk> disk = DecodeIscsiDisk(file->bytes);
    if (disk.ok()) return disk;
  }
  // A kubelet does not write it atomically. The place names one portal.
  if (std::optional<IscsiDisk> disk = ParseIscsiPlace(place.Display())) return *std::move(disk);
  return Error::NotApplied(Code::kInvalidArgument,
                           "\"" + place.Display() + "\" is not a place of iSCSI volumes");
}

Result<std::vector<SafePath>> IscsiInitiator::PlacesBelow(const SafePath& directory,
                                                          const CallOptions& call) {
  std::vector<SafePath> places;
  const Result<DirectoryListing> listing = host_.kernel.Call(ListDirectory{directory}, call);
  if (!listing.ok()) {
    if (listing.error().code() == Code::kNotFound) return places;
    return listing.error();
  }
  for (const DirectoryEntry& entry : listing->entries) {
    if (entry.type == FileType::kDirectory) places.push_back(directory.Below(entry.name));
  }
  return places;
}

Result<std::vector<IscsiDisk>> IscsiInitiator::OthersOf(const IscsiDisk& disk,
                                                        const SafePath& place,
                                                        const CallOptions& call) {
  std::vector<IscsiDisk> others;
  for (const SafePath& of_disk :
       {IscsiMountPlace(host_.paths, disk), IscsiMapPlace(host_.paths, disk)}) {
    SafePath directory = of_disk;
    directory.relative = directory.relative.substr(0, directory.relative.rfind('/'));
    ASSIGN_OR_RETURN(const std::vector<SafePath> places, PlacesBelow(directory, call));
    for (const SafePath& other : places) {
      const std::optional<IscsiDisk> named = ParseIscsiPlace(other.Display());
      if (other == place || !named || named->iqn != disk.iqn) continue;
      // Of one that is mounted the file is hidden; then its disk is on the sessions that it uses.
      ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, other, call));
      if (mounted) {
        others.push_back(*named);
        continue;
      }
      ASSIGN_OR_RETURN(IscsiDisk loaded, LoadDisk(other, call));
      others.push_back(std::move(loaded));
    }
  }
  return others;
}

Status IscsiInitiator::RemoveDevices(const IscsiDisk& disk, const CallOptions& call) {
  ASSIGN_OR_RETURN(const PathDisks disks, DisksOf(disk, OnOwnFilesystem(call)));
  bool has_removed = false;
  for (const IscsiSessionDisk& path : disks) {
    const Status removed = RemovePath(path, call);
    if (!removed.ok()) return has_removed ? removed.error().AsMaybeApplied() : removed.error();
    has_removed = true;
  }
  return OkStatus();
}

Status IscsiInitiator::RemovePath(const IscsiSessionDisk& path, const CallOptions& call) {
  if (path.name.empty()) {
    // No driver has it, so nothing is cached of it.
    RETURN_IF_ERROR(host_.kernel.Call(
        WriteAttribute{{"/sys", path.sysfs_path + "/delete", Resolve::kBeneath}, "1"}, call));
    return OkStatus();
  }
  // It may have gone with its multipath device, and its name to another disk since.
  const std::string node = "/dev/" + path.name;
  ASSIGN_OR_RETURN(const std::optional<ScsiDisk> now, scsi_.FindDisk(node, OnOwnFilesystem(call)));
  if (!now || now->sysfs_path != path.sysfs_path) return OkStatus();
  return scsi_.Remove(node, call);
}

Status IscsiInitiator::EndSession(const IscsiDisk& disk, const std::string& portal,
                                  const CallOptions& call) {
  RETURN_IF_ERROR(admin_.Logout(disk, portal, call));
  return admin_.DeleteNode(disk, portal, call);
}

Status IscsiInitiator::EndSessions(const IscsiDisk& disk, const SafePath& place,
                                   const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(const std::vector<IscsiDisk> others, OthersOf(disk, place, own));
  ASSIGN_OR_RETURN(const std::vector<IscsiSession> sessions, sessions_.Of(disk, own));
  bool all_ended = true;
  for (const std::string& portal : disk.portals) {
    bool is_used = std::any_of(others.begin(), others.end(),
                               [&](const IscsiDisk& other) { return HasPortal(other, portal); });
    if (const IscsiSession* session = SessionAt(sessions, portal); session != nullptr && !is_used) {
      ASSIGN_OR_RETURN(const std::vector<IscsiSessionDisk> left, sessions_.DisksOf(*session, own));
      is_used = !left.empty();
    }
    if (is_used) {
      all_ended = false;
      continue;
    }
    RETURN_IF_ERROR(EndSession(disk, portal, call));
  }
  // One that was not made for this volume is left, as kubelet leaves it.
  const bool made_for_it =
      disk.has_own_iface() && disk.iface == disk.portals.front() + ":" + disk.vol_name;
  if (!all_ended || !made_for_it) return OkStatus();
  return admin_.DeleteIface(disk.iface, call);
}

Status IscsiInitiator::DetachDisk(const SafePath& place, const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  // It is made before the first login, and removed when all is taken away.
  ASSIGN_OR_RETURN(const FileInfo there, host_.kernel.Call(Stat{.path = place}, own));
  if (there.type == FileType::kMissing) return OkStatus();
  ASSIGN_OR_RETURN(const IscsiDisk disk, LoadDisk(place, own));
  ASSIGN_OR_RETURN(const auto lock, targets_.Lock(disk.iqn, host_.clock, call));
  ASSIGN_OR_RETURN(const std::vector<IscsiDisk> others, OthersOf(disk, place, own));
  // The same disk as another volume, with a filesystem and without, or by its portals in another
  // order: then it is the other's still. Of one that is mounted a single portal is known.
  const bool is_shared = std::any_of(others.begin(), others.end(), [&](const IscsiDisk& other) {
    return other.lun == disk.lun && HasCommonPortal(other, disk);
  });
  if (!is_shared) RETURN_IF_ERROR(RemoveDevices(disk, call));
  Status ended = EndSessions(disk, place, call);
  if (ended.ok()) ended = EndLeftDiscovery(disk, place, call);
  if (!ended.ok()) return ended.error().AsMaybeApplied();
  if (IsIscsiMapPlace(host_.paths, place)) return OkStatus();  // the caller's, with pods' nodes
  const auto removed = host_.kernel.Call(RemoveTree{place}, own);
  return removed.ok() ? OkStatus() : Status(removed.error().AsMaybeApplied());
}

}  // namespace volumed
