// The requests of FakeEffects that are about block devices.
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "fakes/fake_effects.h"
#include "os/filesystem_tools.h"
#include "os/grow_filesystem.h"

namespace volumed {
namespace {

// Of those that are no loop devices.
constexpr uint32_t kFakeBlockBytes = 512;

bool IsExt(const std::string& fs_type) {
  return fs_type == "ext2" || fs_type == "ext3" || fs_type == "ext4";
}

Error Refusal(const std::string& what, const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, what + ": " + why);
}

Status ExpectIdentity(const FakeDevice& device, const std::string& path,
                      const DeviceIdentity& expected) {
  DeviceIdentity now = device.identity;
  now.uuid.clear();
  const std::string difference = IdentityDifference(expected, now);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + path + " is not the one that was expected: " + difference);
}

}  // namespace

Result<FakeDevice*> FakeEffects::OpenDevice(const std::string& path) const {
  ASSIGN_OR_RETURN(FakeDevice * device, FindDevice(path));
  return Opened(device, path);
}

Result<FakeDevice*> FakeEffects::OpenNode(FakeLocation node, const std::string& path) const {
  ASSIGN_OR_RETURN(FakeDevice * device, FindNode(node, path));
  return Opened(device, path);
}

Result<FakeDevice*> FakeEffects::Opened(FakeDevice* device, const std::string& path) {
  if (device->offline) {
    return Error::FromErrno(ENXIO, "open device " + path, Outcome::kNotApplied);
  }
  if (device->identity.size_bytes != 0) return device;
  return Refusal("identify device " + path, "it has no medium (size 0)");
}

Result<FakeDevice*> FakeEffects::FindDevice(const std::string& path) const {
  const std::string what = "open device " + path;
  if (path.empty() || path[0] != '/') {
    return Error::NotApplied(Code::kInvalidArgument, what + ": not an absolute path");
  }
  FakeWalk walk;
  walk.follow_last = true;
  FakeLocation found;
  if (const int error = vfs_.WalkAbsolute(path, walk, &found)) {
    return Error::FromErrno(error, what, Outcome::kNotApplied);
  }
  return FindNode(found, path);
}

Result<FakeDevice*> FakeEffects::FindNode(FakeLocation node, const std::string& path) const {
  const std::string what = "open device " + path;
  const FakeInode& inode = vfs_.InodeAt(node);
  if (inode.type != FileType::kBlockDevice) return Refusal(what, "not a block device");
  for (auto& [place, device] : state_.devices.by_path) {
    if (device.inode == inode.id) return &device;
  }
  return Error::FromErrno(ENXIO, what, Outcome::kNotApplied);
}

Result<IdentifiedDevice> FakeEffects::operator()(const IdentifyDevice& request) {
  const std::string shown = request.path.Display();
  ASSIGN_OR_RETURN(const FakeLocation node, Open(request.path).With("open device " + shown));
  ASSIGN_OR_RETURN(FakeDevice * device, OpenNode(node, shown));
  IdentifiedDevice answer;
  answer.facts.identity = device->identity;
  answer.facts.identity.uuid.clear();
  const std::string& id = device->identity.stable_id;
  if (const auto wwid = StripPrefix(id, "wwid:")) answer.facts.wwid = *wwid;
  if (const auto serial = StripPrefix(id, "serial:")) answer.facts.serial = *serial;
  answer.path = vfs_.PathOf(node);
  answer.node = answer.path;
  for (const auto& [place, known] : state_.devices.by_path) {
    if (&known == device) answer.node = place;
  }
  answer.read_only = device->read_only;
  answer.block_bytes = device->loop ? device->loop->block_size : kFakeBlockBytes;
  if (request.count_writes) answer.writes = CountedWrites(*device);
  if (request.pin) {
    answer.pin = std::make_shared<const Descriptor>();
    device->pins.push_back(answer.pin);
  }
  return answer;
}

Status FakeEffects::ExpectDevice(FakeLocation node, const std::string& path,
                                 const DeviceIdentity& expected) const {
  ASSIGN_OR_RETURN(const FakeDevice* device, OpenNode(node, path));
  return ExpectIdentity(*device, path, expected);
}

Result<Changed> FakeEffects::operator()(const DetachLoops& request) {
  RETURN_IF_ERROR(Validate(request.path));
  Changed any{state_.devices.loop_files.erase(request.path.Display()) > 0};
  const std::vector<std::string> names = NamesOf(request.path);
  const uint64_t same = RegularFileAt(request.path);
  for (auto& [node, device] : state_.devices.by_path) {
    bool deleted = false;
    if (!device.loop) continue;
    const std::string file = PathOfLoop(*device.loop, &deleted);
    const bool is_shown = std::find(names.begin(), names.end(), file) != names.end();
    if (!is_shown && device.loop->inode != same) continue;
    any.changed = true;
    device.loop->goes = true;
  }
  Settle();
  return any;
}

bool FakeEffects::IsMounted(const FakeDevice& device) const {
  return device.filesystem != 0 && vfs_.IsMounted(device.filesystem);
}

bool FakeEffects::IsInUse(const FakeDevice& device) const {
  // One that was unmounted while it was frozen keeps its device.
  const bool frozen = device.filesystem != 0 && vfs_.MutableFilesystem(device.filesystem).frozen;
  return IsMounted(device) || frozen || device.claimed || !device.holders.empty();
}

std::string FakeEffects::FindDuplicate(const FakeDevice& device) const {
  if (device.identity.uuid.empty()) return "";
  for (const auto& [path, other] : state_.devices.by_path) {
    const bool same = other.identity.device_minor == device.identity.device_minor;
    if (!same && other.fs_type == device.fs_type && other.identity.uuid == device.identity.uuid &&
        IsMounted(other)) {
      return path;
    }
  }
  return "";
}

DeviceProbe FakeEffects::Look(const FakeDevice& device, bool full_scan) const {
  DeviceProbe probe;
  probe.identity = device.identity;
  probe.fs_type = device.fs_type;
  probe.usage = device.usage;
  probe.partition_table = device.partition_table;
  probe.read_only = device.read_only;
  probe.was_mounted = IsExt(device.fs_type) && device.was_mounted;
  probe.unfinished = device.unfinished;
  probe.spans_devices = device.spans_devices;
  if (!device.fs_type.empty()) {
    probe.why_not_blank = device.fs_type + " signature";
  } else if (!device.partition_table.empty()) {
    probe.why_not_blank = device.partition_table + " partition table";
  } else if (!device.data.empty()) {
    probe.why_not_blank = device.data;
  } else if (full_scan) {
    probe.why_not_blank = device.hidden_data;
    probe.read_whole = device.hidden_data.empty();
    probe.bytes_read = device.identity.size_bytes;
  }
  probe.blank = probe.why_not_blank.empty();
  return probe;
}

Result<DeviceProbe> FakeEffects::operator()(const ProbeDevice& request) {
  ASSIGN_OR_RETURN(const FakeDevice* device, OpenDevice(request.device));
  if (device->unreadable) {
    return Error::FromErrno(EIO, "read " + request.device + " at offset 0", Outcome::kNotApplied);
  }
  DeviceProbe probe = Look(*device, request.full_scan);
  if (device->fs_type == "btrfs" || (device->fs_type == "xfs" && request.find_duplicates)) {
    probe.duplicate = FindDuplicate(*device);
  }
  return probe;
}

Result<Done> FakeEffects::operator()(const FormatDevice& request) {
  const std::string what = "format " + request.device + " as " + request.fs_type;
  RETURN_IF_ERROR(MkfsArguments(request));
  if (request.fs_uuid.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no UUID is given");
  }
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device));
  if (IsInUse(*device)) {
    return Error::FromErrno(EBUSY, what + ": not to be had for itself", Outcome::kNotApplied);
  }
  if (device->unreadable) return Error::FromErrno(EIO, what, Outcome::kNotApplied);
  DeviceIdentity expected = request.expected;
  expected.uuid.clear();
  if (const std::string difference = IdentityDifference(expected, device->identity);
      !difference.empty()) {
    return Refusal(what, "it is not the device that was probed: " + difference);
  }
  const DeviceProbe probe = Look(*device, false);
  if (probe.read_only) return Refusal(what, "the device is read-only");
  const bool ours = probe.unfinished && probe.partition_table.empty() &&
                    probe.fs_type == request.fs_type && probe.identity.uuid == request.fs_uuid;
  if (!probe.blank && !(request.repeat && ours)) {
    return Refusal(what, "the device is not blank: " + probe.why_not_blank);
  }
  if (device->filesystem != 0) vfs_.DropFilesystem(device->filesystem);
  device->filesystem = 0;
  device->hidden_data.clear();
  device->was_mounted = false;
  device->damage = CheckResult::kClean;
  ++device->formats;
  const bool cut = std::exchange(device->cut_next_format, false);
  const Error died = Error::MaybeApplied(Code::kUnavailable, what + ": the worker died");
  device->unfinished = cut && !IsExt(request.fs_type);
  if (cut && IsExt(request.fs_type)) {
    device->data = "byte 0x81 at offset 16777216 (allocation groups)";
    return died;
  }
  device->data.clear();
  device->fs_type = request.fs_type;
  device->fs_bytes = device->identity.size_bytes;
  device->usage = "filesystem";
  device->identity.uuid = request.fs_uuid;
  if (const auto unheard = std::exchange(device->unheard_next_format, std::nullopt)) {
    device->damage = *unheard;
    return died;
  }
  if (cut) return died;
  return Done{};
}

Status FakeEffects::Pin(const FakeDevice& device, const std::string& path,
                        const DeviceIdentity& expected) const {
  if (device.unreadable) {
    return Error::FromErrno(EIO, "look for signatures on " + path, Outcome::kNotApplied);
  }
  const std::string difference = IdentityDifference(expected, device.identity);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + path + " is not the one that was probed: " + difference);
}

Result<FilesystemCheck> FakeEffects::operator()(const CheckFilesystem& request) {
  const std::string what = "check " + request.fs_type + " on " + request.device;
  FormatDevice same_type;  // the types are the same
  same_type.fs_type = request.fs_type;
  RETURN_IF_ERROR(MkfsArguments(same_type));
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device));
  RETURN_IF_ERROR(Pin(*device, request.device, request.expected));
  if (request.mode == CheckMode::kPreen && !IsExt(request.fs_type)) return FilesystemCheck{};
  if (IsInUse(*device)) {
    return Error::FromErrno(EBUSY, what + ": not to be had for itself", Outcome::kNotApplied);
  }
  FilesystemCheck check;
  check.tool = IsExt(request.fs_type) ? "e2fsck" : request.fs_type;
  if (device->unfinished) return FilesystemCheck{CheckResult::kUncorrected, 1, check.tool, ""};
  check.result = device->damage;
  switch (device->damage) {
    case CheckResult::kClean:
    case CheckResult::kSkipped:
      break;
    case CheckResult::kFixed:
      if (request.mode == CheckMode::kPreen) {
        check.exit_code = 1;
        device->damage = CheckResult::kClean;
      } else {
        check.result = CheckResult::kUncorrected;
        check.exit_code = 4;
      }
      break;
    case CheckResult::kUncorrected:
      check.exit_code = 4;
      break;
    case CheckResult::kOperationalError:
      check.exit_code = 8;
      break;
  }
  if (check.exit_code != 0) check.output = "the fake's finding";
  return check;
}

Result<DeviceUsers> FakeEffects::operator()(const CheckDeviceUse& request) {
  const Result<FakeDevice*> device = FindDevice(request.device);
  if (!device.ok()) {
    const int error = device.error().sys_errno();
    if (error == ENOENT || error == ENXIO) return DeviceUsers{};
    return device.error();
  }
  const DeviceIdentity& identity = (*device)->identity;
  const bool any = request.device_major == 0 && request.device_minor == 0;
  if (!any && (identity.device_major != request.device_major ||
               identity.device_minor != request.device_minor)) {
    return DeviceUsers{};
  }
  return DeviceUsers{true, IsInUse(**device), (*device)->holders};
}

// A mounted ext on a node without CAP_SYS_RESOURCE is a fault: grow_error EPERM.
Result<FilesystemGrowth> FakeEffects::operator()(const GrowFilesystem& request) {
  const std::string what = "grow " + request.fs_type + " on " + request.device;
  if (!IsGrowable(request.fs_type)) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": it cannot be grown");
  }
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device));
  RETURN_IF_ERROR(Pin(*device, request.device, request.expected));
  if (device->fs_type != request.fs_type) {
    return Error::NotApplied(Code::kDataLoss, what + ": there is no such superblock");
  }
  if (request.mounted_at) {
    ASSIGN_OR_RETURN(const FakeLocation place, Open(*request.mounted_at));
    if (!IsMounted(*device) || vfs_.InodeAt(place).filesystem != device->filesystem) {
      return Refusal(what, "another filesystem than the device's is mounted there");
    }
  }
  FilesystemGrowth growth;
  growth.fs_type = request.fs_type;
  growth.device_bytes = device->identity.size_bytes;
  growth.before_bytes = growth.after_bytes =
      device->fs_bytes == 0 ? growth.device_bytes : device->fs_bytes;
  growth.fills_device = growth.after_bytes == growth.device_bytes;
  growth.has_errors = IsExt(device->fs_type) && device->damage != CheckResult::kClean;
  if (request.only_measure || growth.fills_device) return growth;
  if (device->read_only) return Refusal(what, "the device is read-only");
  if (request.mounted_at) {
    if (growth.has_errors) return Refusal(what, "the filesystem has errors");
    if (device->grow_error == EPERM) {
      return Error::FromParts(Code::kFailedPrecondition, Outcome::kNotApplied, EPERM,
                              what + ": it lacks the capability CAP_SYS_RESOURCE");
    }
    if (device->grow_error != 0) {
      return Error::FromErrno(device->grow_error, what, Outcome::kNotApplied);
    }
  } else if (!IsExt(device->fs_type)) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": it grows only while it is mounted");
  } else if (IsMounted(*device)) {
    return Error::FromErrno(EBUSY, what + ": not to be had for itself", Outcome::kNotApplied);
  } else if (device->damage != CheckResult::kClean && device->damage != CheckResult::kFixed) {
    return Refusal(what, "it has errors");
  } else {
    device->damage = CheckResult::kClean;
    growth.tool = "resize2fs";
  }
  ++device->growths;
  device->fs_bytes = growth.device_bytes;
  if (device->cut_next_growth) {
    device->cut_next_growth = false;
    return Error::MaybeApplied(Code::kUnavailable, what + ": the worker died");
  }
  growth.after_bytes = growth.device_bytes;
  growth.fills_device = true;
  growth.has_errors = false;
  return growth;
}

Result<Done> FakeEffects::operator()(const FlushDevice& request) {
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device));
  if (request.expected) {
    RETURN_IF_ERROR(ExpectIdentity(*device, request.device, *request.expected));
  }
  if (device->unreadable) {
    return Error::FromErrno(EIO, "flush device " + request.device, Outcome::kNotApplied);
  }
  ++device->flushes;
  return Done{};
}

Result<uint64_t> FakeEffects::FilesystemOfDevice(const Mount& request, const MountOptions& options,
                                                 const std::string& what) {
  const auto fail = [&what](int sys_errno) {
    return Error::FromErrno(sys_errno, what, Outcome::kNotApplied);
  };
  const Result<FakeDevice*> found = OpenDevice(request.source);
  if (!found.ok()) {
    if (request.expected_device) return found.error().With("mount " + request.fs_type);
    return uint64_t{0};
  }
  FakeDevice& device = **found;
  if (request.expected_device) {
    RETURN_IF_ERROR(
        Pin(device, request.source, *request.expected_device).With("mount " + request.fs_type));
  }
  const bool read_only = (options.attributes & MOUNT_ATTR_RDONLY) != 0;
  if (device.unreadable) return fail(EIO);
  if (device.read_only && !read_only) return fail(EACCES);
  if (device.fs_type != request.fs_type) return fail(EINVAL);
  if (device.unmountable) return fail(EUCLEAN);
  if (device.unfinished) return fail(device.fs_type == "xfs" ? EUCLEAN : EINVAL);
  const bool nouuid =
      std::any_of(options.parameters.begin(), options.parameters.end(),
                  [](const SuperParameter& parameter) { return parameter.key == "nouuid"; });
  if (!FindDuplicate(device).empty()) {
    if (device.fs_type == "btrfs") return fail(EEXIST);
    if (device.fs_type == "xfs" && !nouuid) return fail(EINVAL);
  }
  if (device.filesystem == 0) {
    device.filesystem = vfs_.NewFilesystem(request.fs_type, request.source);
    FakeFilesystem& made = vfs_.MutableFilesystem(device.filesystem);
    made.on_device = true;
    if (device.fs_type != "btrfs") {
      made.device_major = device.identity.device_major;
      made.device_minor = device.identity.device_minor;
    }
  }
  device.was_mounted = device.was_mounted || !read_only;
  return device.filesystem;
}

}  // namespace volumed
