// What is on a device, or on a file, that is to be imported; and the import of a logical volume.
#include <utility>

#include "base/printable_text.h"
#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"
#include "pool/pool_import_parts.h"

namespace volumed {
namespace {

constexpr char kLogicalVolumeId[] = "dm:LVM-";  // how the stable id of one begins
constexpr size_t kShownOutput = 256;            // bytes of what a checker printed
// An image that was made with smaller sectors than those of its loop device does not mount from
// that.
constexpr uint32_t kLookBlockBytes = 512;

bool HasChecker(const std::string& fs_type) {
  return fs_type == "ext2" || fs_type == "ext3" || fs_type == "ext4" || fs_type == "xfs" ||
         fs_type == "btrfs";
}

// The end of what a tool printed, in one line.
std::string EndOf(const std::string& output) {
  const std::string end =
      output.size() > kShownOutput ? output.substr(output.size() - kShownOutput) : output;
  return PrintableText(end);
}

// What a checker says is told, and not acted on: it is mended when it is mounted, or by a person.
Status CheckContent(Kernel& kernel, const DeviceProbe& probe, const std::string& device,
                    ImportPlan& plan, const CallOptions& call) {
  if (!HasChecker(probe.fs_type)) return OkStatus();
  const Result<FilesystemCheck> check = kernel.Call(CheckFilesystem{.device = device,
                                                                    .expected = probe.identity,
                                                                    .fs_type = probe.fs_type,
                                                                    .mode = CheckMode::kReport},
                                                    call);
  if (!check.ok()) {
    if (check.error().code() == Code::kFailedPrecondition) return check.error();
    plan.notes.push_back("its filesystem was not checked: " + check.error().message());
    return OkStatus();
  }
  if (check->result == CheckResult::kClean) return OkStatus();
  plan.notes.push_back("its filesystem is not clean, and is left as it is (" + check->tool + ": " +
                       std::string(CheckResultName(check->result)) + "; " + EndOf(check->output) +
                       "): what its journal has is done when it is mounted; more is for a person");
  return OkStatus();
}

Status CheckProbe(const DeviceProbe& probe, const std::string& device) {
  if (!probe.duplicate.empty()) {
    return ImportRefusal("the filesystem on " + device + " has the UUID " + probe.identity.uuid +
                         ", as has the one on " + probe.duplicate + ", which is mounted");
  }
  if (probe.unfinished) {
    return ImportRefusal("the filesystem on " + device +
                         " was never finished: its mkfs was cut off, or still runs");
  }
  if (probe.spans_devices) {
    return ImportRefusal("a part of the " + probe.fs_type + " on " + device +
                         " is on another device, and a volume is all on one");
  }
  if (probe.fs_type == "ambivalent") {
    return ImportRefusal("what is on " + device + " has several signatures that contradict");
  }
  return OkStatus();
}

// Of the loop devices that a file has already: one may be what an earlier look has left.
Status CheckAttached(Kernel& kernel, const LoopEntry& loop, ImportPlan& plan,
                     const CallOptions& call) {
  ASSIGN_OR_RETURN(const DeviceUsers users, kernel.Call(CheckDeviceUse{.device = loop.path}, call));
  if (users.in_use || !loop.read_only) {
    return ImportRefusal("it is attached as " + loop.path + ", which " +
                         (users.in_use
                              ? "somebody uses"
                              : "takes writes: `losetup -d " + loop.path + "` detaches it"));
  }
  plan.notes.push_back(
      "it was attached as " + loop.path +
      " before, which takes no writes and nobody uses, and stays so: `losetup -d " + loop.path +
      "` detaches it");
  return OkStatus();
}

Status CheckNotUsed(Kernel& kernel, const IdentifiedDevice& device, const CallOptions& call) {
  ASSIGN_OR_RETURN(const DeviceUsers users,
                   kernel.Call(CheckDeviceUse{.device = device.path}, call));
  if (users.in_use) {
    const std::string by =
        users.holders.empty() ? "" : ", " + users.holders.front() + " among them";
    return ImportRefusal(device.path + " is mounted, or somebody else has it" + by);
  }
  ASSIGN_OR_RETURN(
      const StorageIdentity identity,
      kernel.Call(IdentifyStorage{.path = HostPath(device.path), .find_users = true}, call));
  if (!identity.users.empty()) {
    return ImportRefusal("somebody has " + identity.users.front() +
                         ", which is the same storage as " + device.path);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> places, FindMountRefs(kernel, device.node, call));
  if (places.empty()) return OkStatus();
  return ImportRefusal("the node of " + device.path + " is bound at " + places.front());
}

// A listed device has a volume already, whose PersistentVolume an import of its handle prints.
Status CheckNotListed(const ImportParts& parts, const std::string& path,
                      const std::string& stable_id) {
  if (stable_id.empty()) return OkStatus();
  for (const PoolVolumeRecord& volume : parts.volumes.All()) {
    if (volume.backend != PoolBackendKind::kStatic || volume.source_identity != stable_id) continue;
    return ImportRefusal(path + " is a volume already, as one of static-volumes: " + volume.id +
                         "; import " + parts.driver + "^" + volume.id +
                         " for its PersistentVolume");
  }
  return OkStatus();
}

}  // namespace

Status LookAtImported(Kernel& kernel, const std::string& device, ImportPlan& plan,
                      const CallOptions& call) {
  ASSIGN_OR_RETURN(const DeviceProbe probe,
                   kernel.Call(ProbeDevice{.device = device, .find_duplicates = true}, call));
  RETURN_IF_ERROR(CheckProbe(probe, device));
  plan.size_bytes = probe.identity.size_bytes;
  plan.is_block = probe.usage != "filesystem";
  if (plan.is_block) {
    const std::string what = !probe.fs_type.empty()           ? "has the signature " + probe.fs_type
                             : !probe.partition_table.empty() ? "has a partition table"
                                                              : "has no signature";
    plan.notes.push_back("it " + what + " and no filesystem: the volume has the mode Block");
    return OkStatus();
  }
  plan.filesystem = {probe.fs_type, probe.identity.uuid, ""};
  if (probe.bad_checksum) plan.notes.emplace_back("the checksum of its superblock is wrong");
  return CheckContent(kernel, probe, device, plan, call);
}

Status LookAtImage(Kernel& kernel, const ImportedFile& file, ImportPlan& plan,
                   const CallOptions& call) {
  ASSIGN_OR_RETURN(const LoopList loops, kernel.Call(ListLoops{file.path}, call));
  uint32_t block_bytes = kLookBlockBytes;
  for (const LoopEntry& loop : loops.loops) {
    if (loop.deleted) continue;
    RETURN_IF_ERROR(CheckAttached(kernel, loop, plan, call));
    block_bytes = loop.block_size;
  }
  ASSIGN_OR_RETURN(const AttachedLoop loop, kernel.Call(AttachLoop{.path = file.path,
                                                                   .expected = file.object,
                                                                   .read_only = true,
                                                                   .direct_io = false,
                                                                   .block_size = block_bytes},
                                                        call));
  const Status looked = LookAtImported(kernel, loop.device.path, plan, call);
  if (!loop.changed) return looked;
  const Result<Changed> detached = kernel.Call(DetachLoops{file.path}, call);
  if (detached.ok()) return looked;
  return looked.ok() ? detached.error().AsMaybeApplied() : looked.error().AsMaybeApplied();
}

// Whether the path is of a logical volume that a pool has made, as /dev/VG/LV or as
// /dev/mapper/VG-LV, which has each hyphen of a name twice.
bool IsOfAPool(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (size_t at = name.find("--"); at != std::string::npos; at = name.find("--", at + 1)) {
    name.erase(at, 1);
  }
  const size_t length =
      PoolId{PoolObject::kVolume, std::string(8, '0'), std::string(24, '0')}.ToString().size();
  return name.size() >= length && ParsePoolId(name.substr(name.size() - length)).has_value();
}

Result<ImportPlan> PlanDeviceImport(const ImportParts& parts, const ImportRequest& request,
                                    const CallOptions& call) {
  if (!request.pool.empty()) {
    return ImportRefusal(
        "a logical volume becomes none of a pool: it stays what it is, and its "
        "PersistentVolume names its device");
  }
  ASSIGN_OR_RETURN(const IdentifiedDevice device,
                   parts.kernel.Call(IdentifyDevice{.path = HostPath(request.source)}, call));
  const std::string& stable_id = device.facts.identity.stable_id;
  RETURN_IF_ERROR(CheckNotListed(parts, request.source, stable_id));
  if (!stable_id.starts_with(kLogicalVolumeId)) {
    return ImportRefusal(request.source +
                         " is no logical volume of LVM: any other device becomes a volume by "
                         "being listed in the configuration, as one of static-volumes");
  }
  if (IsOfAPool(request.source)) {
    return ImportRefusal(request.source +
                         " is of a pool: import it by the handle of its volume, as DRIVER^ID");
  }
  if (device.node == request.source) {
    return ImportRefusal(request.source +
                         " may be another device after the next boot: name it as /dev/VG/LV");
  }
  RETURN_IF_ERROR(CheckNotUsed(parts.kernel, device, call));
  ImportPlan plan = NewImportPlan(request, ImportKind::kLogicalVolume);
  RETURN_IF_ERROR(LookAtImported(parts.kernel, device.path, plan, call));
  if (device.read_only) plan.notes.emplace_back("it takes no writes");
  plan.deed =
      "nothing is done: the logical volume stays where it is, and the PersistentVolume "
      "names it";
  plan.notes.emplace_back(
      "whoever has made it (TopoLVM, OpenEBS) may still delete it: see that nothing of his names "
      "it "
      "any more");
  PlanLocalVolume(parts, request.source, plan);
  return plan;
}

}  // namespace volumed
