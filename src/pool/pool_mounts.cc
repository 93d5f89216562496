#include "pool/pool_mounts.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "mounter/mount_options.h"
#include "mounter/mount_refs.h"
#include "mounter/nfs_mount.h"
#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "pool/pool_names.h"
#include "pool/pool_parameters.h"
#include "pool/static_backend.h"
#include "pool/static_export.h"
#include "volume/nfs_export.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

constexpr char kExt4[] = "ext4";
constexpr char kReadOnlyOption[] = "ro";
constexpr char kOnErrors[] = "errors=";
constexpr char kReadOnlyOnErrors[] = "errors=remount-ro";

// A kernel may give the loop device of a file that was cloned sectors of 4096 bytes, and a
// filesystem with smaller blocks does not mount on these. With a seed of its own in its superblock
// the checksums of an ext4 do not depend on its UUID, so that a copy can get another one in no
// time. xfs and btrfs need neither to be told. Source: mke2fs(8), ext4(5).
std::vector<std::string> FormatOptionsOf(const std::string& fs_type) {
  if (fs_type != kExt4) return {};
  return {"-b", std::to_string(kPoolBlockBytes), "-O", "metadata_csum_seed"};
}

std::vector<std::string> WantedOptions(const VolumeSpec& spec) {
  const PersistentVolume* const volume = spec.persistent_volume();
  if (volume == nullptr) return {};
  return MountOptionFromSpec(volume->metadata.annotations, volume->spec.mount_options, {});
}

// One volume would end the node. A CO is refused it with its mount_flags.
Status CheckMountOptions(const VolumeSpec& spec) {
  for (const std::string& wanted : WantedOptions(spec)) {
    for (const std::string& option : Split(wanted, ',')) {
      if (option != "errors=panic" && option != "fatal_errors=panic") continue;
      return Error::NotApplied(Code::kInvalidArgument,
                               "the mount option " + option +
                                   " would end the node with the first error of this volume: it "
                                   "is not an option of a pool's volumes")
          .About(kAboutClaim);
    }
  }
  return OkStatus();
}

// What an ext does at its first error stands in its superblock, which whoever has made the image,
// or writes to the device, has a hand in: "panic" there would let one volume end the node. What is
// asked for goes before it, and is what the rows compare: this option is in none of them.
std::vector<std::string> OnErrorOptions(const VolumeSpec& spec, const std::string& fs_type) {
  if (!fs_type.starts_with("ext")) return {};
  for (const std::string& wanted : WantedOptions(spec)) {
    for (const std::string& option : Split(wanted, ',')) {
      if (option.starts_with(kOnErrors)) return {};
    }
  }
  return {kReadOnlyOnErrors};
}

// Whoever else reads what an administrator has listed, and copies it, goes by its filesystem's
// taking no writes. One pod that only reads is beside others that write.
bool IsMountedForReaders(const VolumeSpec& spec, const PoolVolumeRecord& volume) {
  const auto* const source = spec.SourceAs<CsiPersistentVolumeSource>();
  return volume.backend == PoolBackendKind::kStatic && source != nullptr && source->read_only;
}

bool IsCopy(const PoolVolumeRecord& volume) {
  return !volume.from_snapshot.empty() || !volume.from_volume.empty();
}

// What the source says; else what is on the disk, or is to be.
Result<std::string> FsTypeOf(const VolumeSpec& spec, const PoolVolumeRecord& volume) {
  const auto* const source = spec.SourceAs<CsiPersistentVolumeSource>();
  if (source != nullptr && !source->fs_type.empty()) return source->fs_type;
  if (!volume.filesystem.type.empty()) return volume.filesystem.type;
  ASSIGN_OR_RETURN(const PoolParameters parameters, ParsePoolParameters(volume.parameters));
  return parameters.fs_type;
}

std::string FormatKeyOf(const PoolVolumeRecord& volume) {
  return GetUniqueVolumeName(kPoolPluginName, volume.id).str();
}

bool IsRefused(const Status& status) {
  return !status.ok() && !status.error().maybe_applied() &&
         status.error().code() == Code::kFailedPrecondition;
}

// What a mkfs of this intent can have left: data without a signature, or its own filesystem. That
// is only taken for one that nobody has mounted if its kind keeps evidence of a mount; a person may
// have made it by hand with this UUID.
bool IsRestOf(const FormatIntent& intent, const DeviceProbe& probe) {
  if (probe.blank || probe.was_mounted || !probe.partition_table.empty()) return false;
  if (probe.fs_type.empty()) return true;
  return probe.fs_type.starts_with("ext") && probe.identity.uuid == intent.fs_uuid;
}

}  // namespace

Result<SafePath> PoolDeviceMounter::GetDeviceMountPath(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  return PoolDevicePlace(host_.paths, id);
}

Status PoolDeviceMounter::MountDevice(const VolumeSpec& spec, const std::string&,
                                      const SafePath& place, const DeviceMounterArgs& args) {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  ASSIGN_OR_RETURN(const PoolVolumeRecord before, parts_.volumes.Find(id));
  if (before.is_block) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "volume " + id + " was made as a block volume: it has no filesystem");
  }
  if (IsTree(before.backend)) return MountTree(spec, before, place, args.call);
  if (before.backend == PoolBackendKind::kExport) {
    return MountExport(spec, before, place, args.call);
  }
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, place.Display(), args.call));
  const bool is_own_place = place == PoolDevicePlace(host_.paths, id);
  if (mount) {
    RETURN_IF_ERROR(NoteMounted(before, *mount, is_own_place, args.call));
    FormatIntents* const intents = parts_.devices.format_intents;
    if (!is_own_place || intents == nullptr) return OkStatus();
    // The agent that mounted it may have ended before it was on record whose the device is.
    return intents->Reserve(FormatKeyOf(before), mount->source, args.call);
  }
  ASSIGN_OR_RETURN(const OpenedVolume opened,
                   parts_.volumes.Open(id, /*read_only=*/false, args.call));
  // A copy has got a UUID of its own by that.
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, parts_.volumes.Find(id));
  Status mounted = is_own_place ? MakePlace(host_.kernel, place, args.call) : OkStatus();
  if (mounted.ok()) {
    mounted = MountOpened(spec, volume, opened, place, args);
    if (IsRefused(mounted)) {
      const Result<bool> is_half = HasHalfFormat(spec, volume, opened, args.call);
      if (is_half.ok() && *is_half) mounted = MountAnew(spec, volume, place, args);
    }
    if (is_own_place) mounted = OrNothing(host_.kernel, place, mounted, args.call);
  }
  if (mounted.ok() || mounted.error().maybe_applied()) return mounted;
  // Nobody has it: it is open for this mount alone.
  const Status closed = parts_.volumes.Close(id, args.call);
  return closed.ok() ? mounted : Status(mounted.error().AsMaybeApplied());
}

// At a place of a CO the directory is its own, and stays.
Status PoolDeviceMounter::MountTree(const VolumeSpec& spec, const PoolVolumeRecord& volume,
                                    const SafePath& place, const CallOptions& call) {
  if (!WantedOptions(spec).empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "volume " + volume.id + " of backend " +
                                 std::string(PoolBackendName(volume.backend)) +
                                 " cannot have mount options: its filesystem is the pool's, which "
                                 "is mounted already");
  }
  ASSIGN_OR_RETURN(const OpenedVolume opened,
                   parts_.volumes.Open(volume.id, /*read_only=*/false, call));
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, place.Display(), call));
  if (mount) {
    ASSIGN_OR_RETURN(const bool is_it,
                     ShowsWhatIsAt(host_.kernel, *mount, opened.directory.Display(), call));
    if (is_it) return OkStatus();
    return Error::NotApplied(Code::kFailedPrecondition,
                             mount->source + " is mounted at " + mount->mount_point +
                                 ", and not the directory of volume " + volume.id);
  }
  const bool is_read_only = IsReadOnlyPoolVolume(spec);
  if (place == PoolDevicePlace(host_.paths, volume.id)) {
    return BindForPod(host_, opened.directory, place, is_read_only, call, volume.object);
  }
  BindMount bind{.source = opened.directory, .target = place, .read_only = is_read_only};
  bind.expected = volume.object;
  RETURN_IF_ERROR(host_.kernel.Call(bind, call));
  return OkStatus();
}

// As an NFS volume of a pod, but once for the node. Its server is asked by mount.nfs alone.
Status PoolDeviceMounter::MountExport(const VolumeSpec& spec, const PoolVolumeRecord& volume,
                                      const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, place.Display(), call));
  if (mount && IsNfsType(mount->fs_type) && IsShownExport(mount->source, volume.source)) {
    return OkStatus();
  }
  if (mount) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             mount->source + " is mounted at " + mount->mount_point + ", and not " +
                                 ShownSource(volume) + " of volume " + volume.id);
  }
  RETURN_IF_ERROR(CheckNfsHelper(host_.kernel, call));
  RETURN_IF_ERROR(parts_.volumes.Open(volume.id, /*read_only=*/false, call));
  std::vector<std::string> options = volume.source_options;
  if (volume.source_read_only || IsReadOnlyPoolVolume(spec)) options.emplace_back(kReadOnlyOption);
  if (const PersistentVolume* const persistent = spec.persistent_volume()) {
    options = MountOptionFromSpec(persistent->metadata.annotations, persistent->spec.mount_options,
                                  options);
  }
  const bool is_own_place = place == PoolDevicePlace(host_.paths, volume.id);
  const CallOptions own = OnOwnFilesystem(call);
  if (is_own_place) RETURN_IF_ERROR(MakePlace(host_.kernel, place, own));
  const Status mounted = MountNfs(host_.kernel, volume.source, place, options, call);
  return is_own_place ? OrNothing(host_.kernel, place, mounted, own) : mounted;
}

Status PoolDeviceMounter::MountOpened(const VolumeSpec& spec, const PoolVolumeRecord& volume,
                                      const OpenedVolume& opened, const SafePath& place,
                                      const DeviceMounterArgs& given) {
  RETURN_IF_ERROR(CheckMountOptions(spec));
  const bool for_readers = IsReadOnlyPoolVolume(spec);
  DeviceMounterArgs args = given;
  // It may be larger than what it was made of; what grows while it is mounted follows below.
  if (IsCopy(volume)) args.grow_to = Quantity::FromBytes(volume.capacity_bytes);
  DeviceMountRequest request;
  request.plugin = "pool";
  request.key = FormatKeyOf(volume);
  request.volume = spec.persistent_volume();
  request.device = opened.device;
  request.expected = opened.identity;
  request.place = place;
  ASSIGN_OR_RETURN(request.fs_type, FsTypeOf(spec, volume));
  request.options = OnErrorOptions(spec, request.fs_type);
  if (IsMountedForReaders(spec, volume)) request.options.emplace_back(kReadOnlyOption);
  request.for_readers = for_readers;
  request.needs_whole = true;
  request.fs_uuid = volume.filesystem.uuid;
  request.format_options = FormatOptionsOf(request.fs_type);
  // Whatever the disk reads as: what had a filesystem has somebody's data.
  if (!volume.filesystem.type.empty()) request.format_policy = FormatPolicy::kNever;
  ASSIGN_OR_RETURN(const MountedFilesystem mounted,
                   MountDeviceVolume(host_, parts_.devices, request, args));
  const Status noted = parts_.volumes.NoteFilesystem(volume.id, {mounted.fs_type, mounted.fs_uuid});
  if (!noted.ok()) return noted.error().AsMaybeApplied();  // it is mounted
  if (IsCopy(volume) && !for_readers) GrowMounted(volume, mounted.fs_type, opened, place, args);
  return OkStatus();
}

// The filesystem of a volume that is larger than what it was made of. That it cannot be grown fails
// no mount, as with those that are grown before it; every mount tries it anew.
void PoolDeviceMounter::GrowMounted(const PoolVolumeRecord& volume, const std::string& fs_type,
                                    const OpenedVolume& opened, const SafePath& place,
                                    const DeviceMounterArgs& args) {
  if (fs_type.starts_with("ext")) return;
  DeviceGrowth growth;
  growth.plugin = "pool";
  growth.device = opened.device;
  growth.mounted_at = place;
  growth.target_bytes = volume.capacity_bytes;
  const Result<bool> grown = GrowDeviceVolume(host_, growth, args.call);
  if (grown.ok() || !args.event) return;
  args.event(EventType::kWarning, "FileSystemResizeFailed", grown.error().message());
}

// A format is begun over what is proven blank, and its record ends before anything is mounted: as
// long as that is there, unfinished, nobody has data on the volume. On a disk of others it would be
// a person's to judge; nobody but the pool has this file.
Result<bool> PoolDeviceMounter::HasHalfFormat(const VolumeSpec& spec,
                                              const PoolVolumeRecord& volume,
                                              const OpenedVolume& opened, const CallOptions& call) {
  const bool may_be =
      parts_.devices.format_intents != nullptr && !volume.is_block &&
      (volume.backend == PoolBackendKind::kImage || volume.backend == PoolBackendKind::kLvm) &&
      volume.filesystem == PoolFilesystem{} && !IsReadOnlyPoolVolume(spec);
  if (!may_be) return false;
  ASSIGN_OR_RETURN(const std::optional<FormatIntent> intent,
                   parts_.devices.format_intents->Find(FormatKeyOf(volume)));
  if (!intent || intent->finished) return false;
  ASSIGN_OR_RETURN(const DeviceProbe probe, host_.kernel.Call(ProbeDevice{opened.device}, call));
  return IsRestOf(*intent, probe);
}

Status PoolDeviceMounter::MountAnew(const VolumeSpec& spec, const PoolVolumeRecord& volume,
                                    const SafePath& place, const DeviceMounterArgs& args) {
  RETURN_IF_ERROR(parts_.volumes.MakeAnew(volume.id, args.call)
                      .With("the first format of volume " + volume.id +
                            " did not end, and its file is to be made anew"));
  ASSIGN_OR_RETURN(const OpenedVolume opened,
                   parts_.volumes.Open(volume.id, /*read_only=*/false, args.call));
  return MountOpened(spec, volume, opened, place, args);
}

// The agent may have ended between the mount and the note of it. At its own place nobody else
// mounts anything; at one of a CO there may be anything.
Status PoolDeviceMounter::NoteMounted(const PoolVolumeRecord& volume, const MountEntry& mount,
                                      bool is_own_place, const CallOptions& call) {
  const bool is_noted = !volume.filesystem.type.empty();
  if (is_noted && is_own_place) return OkStatus();
  ASSIGN_OR_RETURN(const OpenedVolume opened,
                   parts_.volumes.Open(volume.id, /*read_only=*/false, call));
  if (mount.source != opened.device) {
    const Error other =
        Error::NotApplied(Code::kFailedPrecondition,
                          mount.source + " is mounted at " + mount.mount_point + ", and not " +
                              opened.device + ", which volume " + volume.id + " is");
    return parts_.volumes.Close(volume.id, call).ok() ? other : other.AsMaybeApplied();
  }
  if (is_noted) return OkStatus();
  ASSIGN_OR_RETURN(const DeviceProbe probe, host_.kernel.Call(ProbeDevice{opened.device}, call));
  return parts_.volumes.NoteFilesystem(volume.id, {probe.fs_type, probe.identity.uuid});
}

Status CheckGrowsWhereItIs(VolumeHost& host, const PoolVolumes& volumes, const std::string& id,
                           const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, volumes.Find(id));
  const bool is_ext = volume.filesystem.type.starts_with("ext");
  if (!is_ext || host.node.GetKernelFeatures().grows_mounted_ext) return OkStatus();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host.kernel, place.Display(), call));
  if (!mount) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the " + volume.filesystem.type + " of volume " + id +
                               " is mounted, and this agent lacks the capability "
                               "CAP_SYS_RESOURCE to make it larger there: it can grow once nobody "
                               "has it");
}

Status PoolDeviceUnmounter::UnmountDevice(const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdAt(host_.paths, place));
  ASSIGN_OR_RETURN(const bool was_export, UnmountExport(place, call));
  // What is left is on the agent's own filesystem, and waits for no server's workers.
  const CallOptions rest = was_export ? OnOwnFilesystem(call) : call;
  RETURN_IF_ERROR(UnmountAndRemove(host_.kernel, place, rest));
  return CloseUnmounted(id, call);
}

Status PoolDeviceUnmounter::UnmountRecorded(const VolumeSpec& recorded, const SafePath& place,
                                            const CallOptions& call) {
  if (PoolVolumeIdAt(host_.paths, place).ok()) return UnmountDevice(place, call);
  ASSIGN_OR_RETURN(const std::string id, RecordedPoolVolumeId(recorded));
  ASSIGN_OR_RETURN(const bool was_export, UnmountExport(place, call));
  if (!was_export) RETURN_IF_ERROR(host_.kernel.Call(Unmount{.target = place}, call));
  return CloseUnmounted(id, call);
}

Result<bool> PoolDeviceUnmounter::UnmountExport(const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, place.Display(), call));
  if (!mount || !IsNfsType(mount->fs_type)) return false;
  RETURN_IF_ERROR(UnmountNfs(host_.kernel, host_.clock, place, parts_.nfs_unmount, call));
  return true;
}

// Of an export nothing is open, and its pool need not answer.
Status PoolDeviceUnmounter::CloseUnmounted(const std::string& id, const CallOptions& call) {
  const Result<PoolVolumeRecord> volume = parts_.volumes.Find(id);
  if (volume.ok() && volume->backend == PoolBackendKind::kExport) return OkStatus();
  const Status closed = parts_.volumes.Close(id, call);
  return closed.ok() ? closed : Status(closed.error().AsMaybeApplied());
}

}  // namespace volumed
