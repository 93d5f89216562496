#include "csi/csi_owing.h"

#include <sys/sysmacros.h>

#include <optional>
#include <utility>
#include <vector>

#include "csi/csi_debts.h"
#include "csi/csi_proof.h"
#include "operation/call_options.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Why something is no plain mount; nullopt: it is one.
using WhyNot = std::optional<std::string>;

// A filesystem on a disk of this node. A FUSE filesystem may have a disk's number, and a process of
// the driver behind it.
bool IsOfLocalDisk(const MountEntry& mount) {
  return IsOfDisk(mount) && !mount.fs_type.starts_with("fuse");
}

bool IsOfDevice(const MountEntry& mount, const MountedSource& source) {
  return mount.device_major == source.device_major && mount.device_minor == source.device_minor;
}

std::string SeveralMounts(const std::string& path) {
  return "several mounts lie one upon another at " + path;
}

std::string NotOfDisk(const MountEntry& mount) {
  return "what is mounted at " + mount.mount_point + " is a " + mount.fs_type +
         ", and of no disk of this node";
}

// Of the volume as it is on record: it has to be staged here, certainly, and in this boot.
WhyNot WhyNotStaged(const std::optional<DeviceRecord>& record) {
  if (!record) return "no record says what is mounted for it";
  if (record->state != VolumeState::kDeviceMounted || record->uncertain) {
    return "by its record it is " + std::string(VolumeStateName(record->state)) +
           (record->uncertain ? ", which is not certain" : "");
  }
  if (record->staged != StagedState::kStaged) return "by its record the driver has not staged it";
  return std::nullopt;
}

Result<WhyNot> WhyNoBindOfStaged(const CsiContext& context, const DeviceRecord& record,
                                 const MountEntry& mount, const CallOptions& call) {
  const std::string& staging = record.device_mount_path;
  ASSIGN_OR_RETURN(const std::vector<MountEntry> staged,
                   MountLayers(context.kernel(), staging, call));
  if (staged.empty()) return WhyNot("nothing is mounted at " + staging);
  if (staged.size() > 1) return WhyNot(SeveralMounts(staging));
  if (!IsOfLocalDisk(mount)) return WhyNot(NotOfDisk(mount));
  const MountEntry& source = staged.front();
  const bool is_same = source.device_major == mount.device_major &&
                       source.device_minor == mount.device_minor && source.root == mount.root;
  if (is_same) return WhyNot();
  return WhyNot("what is mounted at " + mount.mount_point + " is not what is mounted at " +
                staging);
}

// Of a pod's raw device: a bind of a node of /dev, of the device that it was given by the record.
Result<WhyNot> WhyNoBindOfDevice(const CsiContext& context, const DeviceRecord& record,
                                 const SafePath& target, const MountEntry& mount,
                                 const CallOptions& call) {
  if (!record.mapped) return WhyNot("no record says which device pods were given");
  ASSIGN_OR_RETURN(const FileInfo there,
                   context.kernel().Call(Stat{.path = target}, OnOwnFilesystem(call)));
  const DeviceIdentity& given = record.mapped->device;
  const bool is_it = mount.fs_type == "devtmpfs" && there.type == FileType::kBlockDevice &&
                     there.device_number == ::makedev(given.device_major, given.device_minor);
  if (is_it) return WhyNot();
  return WhyNot("what is mounted at " + target.Display() + " is not the device " +
                record.mapped->path);
}

// Nothing is mounted at the target. An earlier try may have unmounted it; else there must be
// nothing that the driver keeps there.
Result<WhyNot> WhyNotGone(const CsiContext& context, const CsiDebt& debt, const SafePath& target,
                          const CallOptions& call) {
  if (context.parts.debts->Has(debt)) return WhyNot();
  ASSIGN_OR_RETURN(const FileInfo there,
                   context.kernel().Call(Stat{.path = target}, OnOwnFilesystem(call)));
  if (there.type == FileType::kMissing) return WhyNot();
  const bool may_be_plain =
      context.parts.settings.Get().plain_directories.count(debt.volume.driver) > 0;
  if (there.type == FileType::kDirectory && !may_be_plain) return WhyNot();
  return WhyNot(target.Display() + " is a " + std::string(FileTypeName(there.type)) +
                ", and no mount");
}

Result<WhyNot> WhyNotPublishedPlainly(const CsiContext& context, const CsiDebt& debt,
                                      const SafePath& target, const std::vector<MountEntry>& layers,
                                      const CallOptions& call) {
  const std::optional<DeviceRecord> record =
      context.parts.devices.Find(CsiUniqueName(debt.volume.driver, debt.volume.handle));
  if (layers.size() > 1) return WhyNot(SeveralMounts(target.Display()));
  if (layers.empty()) return WhyNotGone(context, debt, target, call);
  if (WhyNot why = WhyNotStaged(record)) return why;
  if (record->is_block) {
    return WhyNoBindOfDevice(context, *record, target, layers.front(), call);
  }
  return WhyNoBindOfStaged(context, *record, layers.front(), call);
}

WhyNot WhyNotStagedPlainly(const CsiContext& context, const CsiDebt& debt, const SafePath& place,
                           const std::vector<MountEntry>& layers) {
  if (layers.size() > 1) return SeveralMounts(place.Display());
  if (layers.empty()) return std::nullopt;
  const std::optional<DeviceRecord> record =
      context.parts.devices.Find(CsiUniqueName(debt.volume.driver, debt.volume.handle));
  if (!record || record->staged != StagedState::kStaged) {
    return "no record says that the driver has staged it";
  }
  const MountEntry& mount = layers.front();
  if (!IsOfLocalDisk(mount)) return NotOfDisk(mount);
  if (record->source && IsOfDevice(mount, *record->source)) return std::nullopt;
  if (record->source || mount.root == "/") {
    return "what is mounted at " + place.Display() + " is not the disk on record";
  }
  // The record has no directory: whose it is, is told by the driver alone.
  return "what is mounted at " + place.Display() + " is the directory " + mount.root + " of " +
         mount.source + ", and no whole disk, so that no record proves whose it is";
}

// An unmount by hand leaves nothing to be proven.
std::string ByHand(const std::string& path, const std::vector<MountEntry>& layers) {
  return layers.empty() ? ""
                        : "; if nobody uses it, `umount " + path +
                              "` by hand lets it go on without the driver";
}

bool IsDirectory(const CsiContext& context, const SafePath& path, const CallOptions& call) {
  const Result<FileInfo> there =
      context.kernel().Call(Stat{.path = path, .only_mount_point = true}, OnOwnFilesystem(call));
  return there.ok() && there->type == FileType::kDirectory;
}

Error NotWithoutDriver(const CsiContext& context, const CsiDebt& debt, const std::string& why) {
  return Error::NotApplied(Code::kUnavailable, context.parts.drivers.WhyAway(debt.volume.driver) +
                                                   "; volume " + debt.volume.handle +
                                                   " cannot be taken away without it: " + why)
      .About(kDriverAway);
}

// The debt is on record before the unmount. If the unmount certainly had no effect, the volume may
// be used again, and nothing is owed.
Status UnmountOwing(const CsiContext& context, const CsiDebt& debt, const SafePath& place,
                    bool is_mounted, const CallOptions& call) {
  RETURN_IF_ERROR(context.parts.debts->Owe(debt));
  if (is_mounted) {
    const auto unmounted = context.kernel().Call(Unmount{.target = place}, call);
    if (!unmounted.ok() && unmounted.error().maybe_applied()) return unmounted.error();
    if (!unmounted.ok()) {
      const Status forgotten = context.parts.debts->Forget(debt);
      return forgotten.ok() ? unmounted.error() : unmounted.error().AsMaybeApplied();
    }
  }
  const Result<CsiFinding> left = LookAtTakenAway(context, place, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  if (left->wrong) return Error::MaybeApplied(Code::kInternal, *left->wrong);
  context.parts.log.Warning(
      "a CSI volume was taken away without its driver, which is owed the call",
      {{"driver", debt.volume.driver}, {"volume", debt.volume.handle}, {"path", debt.path}});
  return OkStatus();
}

CsiDebt DebtOf(const CsiContext& context, const CsiVolumeId& volume, OwedCall what,
               const SafePath& place) {
  return {volume, what, place.Display(), context.host.clock.WallUnixMillis()};
}

}  // namespace

bool MayOwe(const CsiContext& context, const std::string& driver) {
  return context.parts.debts != nullptr && context.parts.debts->MayOwe(driver);
}

Status UnpublishOwing(const CsiContext& context, const CsiVolumeId& volume, const SafePath& target,
                      const CallOptions& call) {
  const CsiDebt debt = DebtOf(context, volume, OwedCall::kUnpublish, target);
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers,
                   MountLayers(context.kernel(), target.Display(), call));
  ASSIGN_OR_RETURN(const WhyNot why, WhyNotPublishedPlainly(context, debt, target, layers, call));
  if (why) {
    // What is mounted on another thing than a directory, or may be none, stays all the same.
    const bool goes = context.parts.settings.Get().plain_directories.count(volume.driver) == 0 &&
                      IsDirectory(context, target, call);
    return NotWithoutDriver(context, debt, *why + (goes ? ByHand(target.Display(), layers) : ""));
  }
  return UnmountOwing(context, debt, target, !layers.empty(), call);
}

Status UnstageOwing(const CsiContext& context, const CsiVolumeId& volume, const SafePath& place,
                    const CallOptions& call) {
  const CsiDebt debt = DebtOf(context, volume, OwedCall::kUnstage, place);
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers,
                   MountLayers(context.kernel(), place.Display(), call));
  const WhyNot why = WhyNotStagedPlainly(context, debt, place, layers);
  if (why) return NotWithoutDriver(context, debt, *why + ByHand(place.Display(), layers));
  return UnmountOwing(context, debt, place, !layers.empty(), call);
}

Error LeftBehind(const CsiContext& context, const CsiDebt& place, const std::string& said,
                 const std::string& left) {
  if (context.parts.debts != nullptr && context.parts.debts->Has(place)) {
    return Error::MaybeApplied(Code::kFailedPrecondition,
                               "it was taken away without its driver, and " + left);
  }
  return DriverLied(context,
                    {place.volume.driver,
                     place.what == OwedCall::kUnstage ? "NodeUnstageVolume" : "NodeUnpublishVolume",
                     place.volume.handle},
                    said, left);
}

}  // namespace volumed
