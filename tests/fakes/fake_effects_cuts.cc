// The requests of FakeEffects that copy images, freeze filesystems meanwhile, and rename what was
// copied. A copy of a file has a copy of the image that is on it, with its files and its UUID.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "fakes/fake_effects.h"
#include "os/filesystem_geometry.h"

namespace volumed {
namespace {

constexpr uint32_t kMostRuns = 65536;

bool IsOnDisk(const std::string& type) { return FilesystemFamilyOf(type).has_value(); }

std::string MarkOf(const FakeInode& inode) { return std::to_string(inode.id); }

// What was on the file is on it no more.
void DropImage(FakeDevices& devices, FakeVfs& vfs, uint64_t file) {
  const auto old = devices.images.extract(file);
  if (old && old.mapped().filesystem != 0) vfs.DropFilesystem(old.mapped().filesystem);
}

Status CheckParts(const CutFrozen& request, const std::string& what) {
  if (request.freeze.empty() || request.cuts.empty()) {
    return Refuse(what, "there is nothing to freeze, or to clone", Code::kInvalidArgument);
  }
  if (request.longest_us <= 0 || request.sync_until_us <= 0 || request.syncs_most == 0) {
    return Refuse(what, "its limits have to be above zero", Code::kInvalidArgument);
  }
  std::set<std::pair<uint32_t, uint32_t>> numbers;
  for (const FreezePoint& point : request.freeze) {
    if (!numbers.emplace(point.device_major, point.device_minor).second) {
      return Refuse(what, "a filesystem is to be frozen twice", Code::kInvalidArgument);
    }
  }
  std::set<std::string> made;
  for (const CutPart& part : request.cuts) {
    if (made.insert(part.to.Display()).second) continue;
    return Refuse(what, part.to.Display() + " is to be made twice", Code::kInvalidArgument);
  }
  return OkStatus();
}

}  // namespace

// ---- copies -------------------------------------------------------------------------------------

Result<FakeEffects::Copied> FakeEffects::OpenCopy(const CutPart& part, bool beginning,
                                                  const std::string& what) {
  ASSIGN_OR_RETURN(const FakeLocation from, OpenImage(part.from, part.expected, what));
  ASSIGN_OR_RETURN(Copied copy,
                   OpenTarget(part.to, from, MarkOf(vfs_.InodeAt(from)), beginning, what));
  return copy;
}

// With `beginning`, of a copy that is there and goes on; else one that is made, or made anew.
Result<FakeEffects::Copied> FakeEffects::OpenTarget(const SafePath& to,
                                                    std::optional<FakeLocation> from,
                                                    const std::string& mark, bool beginning,
                                                    const std::string& what) {
  Copied copy;
  if (from) copy.from = *from;
  if (beginning) {
    ASSIGN_OR_RETURN(copy.to, OpenImage(to, {}, what));
  } else {
    ASSIGN_OR_RETURN(const Parent parent, OpenParent(to));
    const int error = vfs_.MakeNode(parent.directory, parent.name, FileType::kRegular, 0600);
    copy.made = error == 0;
    if (error != 0 && error != EEXIST) return Error::FromErrno(error, what, Outcome::kNotApplied);
    const int missing = OpenChild(parent.directory, parent.name, false, &copy.to);
    if (missing != 0 || vfs_.InodeAt(copy.to).type != FileType::kRegular) {
      return Error::FromErrno(EEXIST, what, Outcome::kNotApplied);
    }
  }
  if (vfs_.IsReadOnly(copy.to)) return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  if (from && vfs_.SameInode(copy.from, copy.to)) {
    return Refuse(what, "it is to be a copy of itself", Code::kInvalidArgument);
  }
  const FakeInode& inode = vfs_.InodeAt(copy.to);
  const bool marked = inode.copy_of == mark;
  if (beginning && !marked) {
    return Refuse(what, "there is no beginning of a copy", Code::kFailedPrecondition);
  }
  if (!marked && FakeVfs::SizeBytes(inode) != 0) {
    return Refuse(what, "there is a file that is no copy of it", Code::kAlreadyExists);
  }
  const FakeFilesystem& filesystem = vfs_.FilesystemAt(copy.to);
  const bool full = filesystem.max_inodes != 0 && filesystem.used_inodes >= filesystem.max_inodes;
  if (!marked && full && !vfs_.HasMarks(filesystem.id)) {
    if (copy.made) Unmake(copy, to);
    return Error::FromErrno(ENOSPC, what, Outcome::kNotApplied);
  }
  vfs_.SetCopyOf(copy.to, mark);
  if (!beginning) {
    DropImage(state_.devices, vfs_, inode.id);
    vfs_.Empty(copy.to);
  }
  return copy;
}

void FakeEffects::Unmake(const Copied& copy, const SafePath& to) {
  const Result<Parent> parent = OpenParent(to);
  if (copy.made && parent.ok()) {
    vfs_.Unlink(parent->directory, parent->name);
  } else {
    vfs_.Empty(copy.to);
  }
}

void FakeEffects::CopyImage(const Copied& copy) {
  auto& images = state_.devices.images;
  const uint64_t from = vfs_.InodeAt(copy.from).id;
  const uint64_t to = vfs_.InodeAt(copy.to).id;
  const FakeDevice* source = nullptr;
  for (const auto& [path, device] : state_.devices.by_path) {
    if (device.loop && device.loop->inode == from) source = &device;
  }
  if (const auto image = images.find(from); image != images.end()) source = &image->second;
  if (source != nullptr) PutImage(*source, to);
}

// What is on the device is on the file, too.
void FakeEffects::PutImage(const FakeDevice& source, uint64_t file) {
  FakeDevice image = source;
  image.pins.clear();
  image.loop.reset();
  image.storage_own.clear();
  if (source.filesystem != 0) {
    const FakeFilesystem& filesystem = vfs_.MutableFilesystem(source.filesystem);
    const bool written = IsMounted(source) && !filesystem.read_only && !source.read_only;
    image.torn = source.torn || (written && !filesystem.frozen);
    image.dirty_log = source.fs_type == "xfs" && (source.dirty_log || written);
    image.filesystem = vfs_.CopyFilesystem(source.filesystem);
  }
  state_.devices.images[file] = std::move(image);
}

Status FakeEffects::Share(const Copied& copy, const std::string& what) {
  const FakeFilesystem& filesystem = vfs_.FilesystemAt(copy.to);
  int error = 0;
  if (vfs_.FilesystemAt(copy.from).id != filesystem.id) {
    error = EXDEV;
  } else if (filesystem.type != "xfs" && filesystem.type != "btrfs") {
    error = EOPNOTSUPP;
  }
  if (error != 0) return Error::FromErrno(error, what + ", FICLONE", Outcome::kMaybeApplied);
  vfs_.CopyContent(copy.from, copy.to, 0, true);
  CopyImage(copy);
  return OkStatus();
}

FileExtent FakeEffects::ExtentAt(FakeLocation file) const {
  const FakeInode& inode = vfs_.InodeAt(file);
  FileExtent extent;
  extent.object = ObjectAt(file);
  extent.size_bytes = FakeVfs::SizeBytes(inode);
  extent.allocated_bytes = FakeVfs::AllocatedBytes(inode);
  extent.changed = true;
  return extent;
}

Result<FileExtent> FakeEffects::operator()(const CloneFile& request) {
  const std::string what = "clone " + request.from.Display() + " as " + request.to.Display();
  ASSIGN_OR_RETURN(const Copied copy,
                   OpenCopy({request.from, request.expected, request.to}, false, what));
  if (const Status shared = Share(copy, what); !shared.ok()) {
    Unmake(copy, request.to);
    const Error& error = shared.error();
    return copy.made ? Error::FromErrno(error.sys_errno(), what, Outcome::kNotApplied) : error;
  }
  return ExtentAt(copy.to);
}

Result<FileExtent> FakeEffects::operator()(const CopyFile& request) {
  const std::string what = "copy " + request.from.Display() + " to " + request.to.Display();
  const int64_t offset = request.from_offset;
  if (offset < 0 || request.bytes_per_second < 0) {
    return Refuse(what, "no such offset or rate", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(const FakeLocation from, OpenImage(request.from, request.expected, what));
  const int64_t size = FakeVfs::SizeBytes(vfs_.InodeAt(from));
  if (offset > size) return Refuse(what, "it ends before that", Code::kOutOfRange);
  ASSIGN_OR_RETURN(const Copied copy,
                   OpenCopy({request.from, request.expected, request.to}, offset != 0, what));
  if (FakeVfs::SizeBytes(vfs_.InodeAt(copy.to)) < offset) {
    return Refuse(what, "the copy ends before that", Code::kOutOfRange);
  }
  DropImage(state_.devices, vfs_, vfs_.InodeAt(copy.to).id);
  Progress(offset);
  if (state_.half) {
    // The size is set first, so only the content tells that it is a half.
    vfs_.SetSize(copy.to, size, false);
    return ExtentAt(copy.to);
  }
  vfs_.CopyContent(copy.from, copy.to, offset, false);
  // What was copied until the filesystem was full stays.
  const size_t all = vfs_.InodeAt(copy.from).content.size();
  if (static_cast<size_t>(offset) < all && vfs_.InodeAt(copy.to).content.size() < all) {
    return Error::FromErrno(ENOSPC, what, Outcome::kMaybeApplied);
  }
  CopyImage(copy);
  Progress(size);
  return ExtentAt(copy.to);
}

Status FakeEffects::CheckHadByReaders(const FakeDevice& device, const std::string& what) const {
  if (!IsInUse(device)) return OkStatus();
  if (!IsMounted(device)) {
    return Refuse(what, "somebody has it for himself", Code::kFailedPrecondition);
  }
  if (vfs_.MutableFilesystem(device.filesystem).read_only) return OkStatus();
  return Refuse(what, "it is mounted for writing", Code::kFailedPrecondition);
}

Result<FileExtent> FakeEffects::operator()(const CopyDevice& request) {
  const std::string what = "copy " + request.device + " to " + request.to.Display();
  const int64_t offset = request.from_offset;
  constexpr int64_t kCopyBlock = 4096;
  if (offset < 0 || request.bytes_per_second < 0 || request.bytes <= 0 ||
      request.bytes % kCopyBlock != 0 || offset % kCopyBlock != 0) {
    return Refuse(what, "no such offset, rate or size", Code::kInvalidArgument);
  }
  if (request.bytes < request.expected.size_bytes) {
    return Refuse(what, "it is larger than its snapshot is to be", Code::kFailedPrecondition);
  }
  if (request.bytes - request.expected.size_bytes >= kCopyBlock) {
    return Refuse(what, "it ends before that", Code::kOutOfRange);
  }
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device).With(what));
  DeviceIdentity now = device->identity;
  now.uuid.clear();
  if (const std::string other = IdentityDifference(request.expected, now); !other.empty()) {
    return Refuse(what, other, Code::kFailedPrecondition);
  }
  if (device->claimed && !request.only_look) {
    return Refuse(what, "somebody has it for himself", Code::kUnavailable);
  }
  RETURN_IF_ERROR(CheckHadByReaders(*device, what));
  const bool is_counted = !request.writes.empty() && !device->does_not_count;
  if (IsInUse(*device) && !is_counted) {
    return Refuse(what, "the kernel does not count what is written to it",
                  Code::kFailedPrecondition);
  }
  if (!request.writes.empty() && request.writes != CountedWrites(*device)) {
    return Refuse(what, "something was written to it", Code::kFailedPrecondition);
  }
  if (request.only_look) return FileExtent{};
  if (offset > request.bytes) return Refuse(what, "it ends before that", Code::kOutOfRange);
  const std::string mark = "device:" + device->identity.stable_id;
  ASSIGN_OR_RETURN(const Copied copy,
                   OpenTarget(request.to, std::nullopt, mark, offset != 0, what));
  if (FakeVfs::SizeBytes(vfs_.InodeAt(copy.to)) < offset) {
    return Refuse(what, "the copy ends before that", Code::kOutOfRange);
  }
  DropImage(state_.devices, vfs_, vfs_.InodeAt(copy.to).id);
  Progress(offset);
  vfs_.SetSize(copy.to, request.bytes, false);
  if (state_.half) return ExtentAt(copy.to);
  if (device->unreadable) return Error::FromErrno(EIO, what + ", read", Outcome::kMaybeApplied);
  PutImage(*device, vfs_.InodeAt(copy.to).id);
  Progress(request.bytes);
  return ExtentAt(copy.to);
}

Result<ExtentList> FakeEffects::operator()(const ListExtents& request) {
  const std::string what = "list the extents of " + request.path.Display();
  if (request.from_offset < 0 || request.most == 0 || request.most > kMostRuns) {
    return Refuse(what, "no such part of a list", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(const FakeLocation file, OpenImage(request.path, request.expected, what));
  if (!IsOnDisk(vfs_.FilesystemAt(file).type)) {
    return Error::FromErrno(EOPNOTSUPP, what, Outcome::kNotApplied);
  }
  ExtentList list;
  list.done = true;
  for (const FileExtentRun& run : vfs_.InodeAt(file).runs) {
    if (run.logical + run.bytes <= request.from_offset) continue;
    if (list.runs.size() == request.most) {
      list.done = false;
      break;
    }
    list.runs.push_back(run);
  }
  return list;
}

// ---- freezing -----------------------------------------------------------------------------------

Result<FakeLocation> FakeEffects::OpenPoint(const FreezePoint& point) const {
  const std::string what = "filesystem " + point.mount_point.Display();
  ASSIGN_OR_RETURN(const FakeLocation root,
                   Open(point.mount_point, {.directory = true}).With(what));
  const std::pair<uint32_t, uint32_t> wanted(point.device_major, point.device_minor);
  if (FakeVfs::NumberOf(vfs_.FilesystemAt(root)) == wanted) return root;
  return Refuse(what, "another filesystem is there", Code::kFailedPrecondition);
}

bool FakeEffects::IsToBeFrozen(const CutFrozen& request, FakeLocation at) const {
  const auto number = FakeVfs::NumberOf(vfs_.FilesystemAt(at));
  return std::any_of(request.freeze.begin(), request.freeze.end(), [&](const FreezePoint& point) {
    return number == std::pair(point.device_major, point.device_minor);
  });
}

Status FakeEffects::CheckCut(const CutFrozen& request, const std::string& what) {
  RETURN_IF_ERROR(CheckParts(request, what));
  for (const FreezePoint& point : request.freeze) RETURN_IF_ERROR(OpenPoint(point));
  const auto outside = [&](FakeLocation at) -> Status {
    if (!IsToBeFrozen(request, at)) return OkStatus();
    return Refuse(what, "it lies on what is to be frozen", Code::kFailedPrecondition);
  };
  for (const SafePath& path : request.never) {
    ASSIGN_OR_RETURN(const FakeLocation there, Open(path).With(what));
    RETURN_IF_ERROR(outside(there));
  }
  for (const CutPart& part : request.cuts) {
    ASSIGN_OR_RETURN(const FakeLocation from, OpenImage(part.from, part.expected, what));
    RETURN_IF_ERROR(outside(from));
    ASSIGN_OR_RETURN(const Parent parent, OpenParent(part.to));
    RETURN_IF_ERROR(outside(parent.directory));
  }
  return OkStatus();
}

void FakeEffects::SetFrozen(const CutFrozen& request, bool frozen) {
  for (const FreezePoint& point : request.freeze) {
    const Result<FakeLocation> root = OpenPoint(point);
    if (root.ok()) vfs_.MutableFilesystem(vfs_.FilesystemAt(*root).id).frozen = frozen;
  }
}

// The call is one moment of this world, so that nothing comes between freeze and thaw but what is
// planned: that it is cut off there, or that its watch thaws.
Result<FrozenCut> FakeEffects::operator()(const CutFrozen& request) {
  const std::string what = "cut while frozen";
  RETURN_IF_ERROR(CheckCut(request, what));
  std::vector<Copied> copies;
  std::optional<Error> failed;
  for (const CutPart& part : request.cuts) {
    const Result<Copied> copy = OpenCopy(part, false, what);
    if (!copy.ok()) failed = copy.error();
    if (failed) break;
    copies.push_back(*copy);
  }
  for (const FreezePoint& point : request.freeze) {
    const FakeFilesystem& filesystem = vfs_.FilesystemAt(*OpenPoint(point));
    const int error = !IsOnDisk(filesystem.type) ? EOPNOTSUPP : filesystem.frozen ? EBUSY : 0;
    if (!failed && error != 0) failed = Error::FromErrno(error, what, Outcome::kNotApplied);
  }
  const bool freezes = !failed;
  if (freezes) SetFrozen(request, true);
  FrozenCut cut;
  for (size_t i = 0; i < copies.size() && !failed; ++i) {
    if (const Status shared = Share(copies[i], what); !shared.ok()) {
      failed = Error::FromErrno(shared.error().sys_errno(), what, Outcome::kNotApplied);
      break;
    }
    cut.files.push_back(ExtentAt(copies[i].to));
    if (state_.half) return cut;
  }
  if (freezes) SetFrozen(request, false);
  if (!failed && state_.devices.thawer_wins > 0) {
    --state_.devices.thawer_wins;
    failed = Error::MaybeApplied(Code::kAborted, what + ": it was thawed by its watch");
  }
  if (!failed) {
    cut.frozen_us = 1000;
    cut.stall_us = 2000;
    return cut;
  }
  for (size_t i = 0; i < copies.size(); ++i) Unmake(copies[i], request.cuts[i].to);
  const bool undone =
      std::all_of(copies.begin(), copies.end(), [](const Copied& copy) { return copy.made; });
  return undone ? *failed : failed->AsMaybeApplied();
}

Result<Changed> FakeEffects::operator()(const ThawFilesystem& request) {
  ASSIGN_OR_RETURN(const FakeLocation root, OpenPoint(request.point));
  FakeFilesystem& filesystem = vfs_.MutableFilesystem(vfs_.FilesystemAt(root).id);
  return Changed{std::exchange(filesystem.frozen, false)};
}

// ---- names --------------------------------------------------------------------------------------

// What has the filesystem: a file without a loop device, or a device that nobody has. Null: it is a
// file that nothing was ever written to.
Result<FakeDevice*> FakeEffects::FindRenamed(const ChangeFilesystemUuid& request,
                                             const std::string& what) const {
  ASSIGN_OR_RETURN(const FakeLocation place, Open(request.path).With(what));
  const bool is_device = vfs_.InodeAt(place).type == FileType::kBlockDevice;
  if (is_device && request.expected.inode == 0) {
    ASSIGN_OR_RETURN(FakeDevice* const device, OpenNode(place, what));
    if (device->read_only) return Error::FromErrno(EACCES, what, Outcome::kNotApplied);
    if (!IsInUse(*device)) return device;
    return Refuse(what, "somebody has the device", Code::kFailedPrecondition);
  }
  ASSIGN_OR_RETURN(const FakeLocation file, OpenImage(request.path, request.expected, what));
  if (vfs_.IsReadOnly(file)) return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  const uint64_t inode = vfs_.InodeAt(file).id;
  for (const auto& [path, device] : state_.devices.by_path) {
    if (!device.loop || device.loop->inode != inode) continue;
    return Refuse(what, "it has a loop device, " + path, Code::kFailedPrecondition);
  }
  const auto found = state_.devices.images.find(inode);
  return found == state_.devices.images.end() ? nullptr : &found->second;
}

Result<FilesystemName> FakeEffects::operator()(const ChangeFilesystemUuid& request) {
  const std::string what = "change the UUID of " + request.path.Display();
  if (!IsOnDisk(request.fs_type) || request.new_uuid.empty()) {
    return Refuse(what, "no such filesystem type, or no UUID", Code::kInvalidArgument);
  }
  if (request.fs_type == "xfs" && !state_.features.fsopen) {
    return Refuse(what, "of an xfs it needs fsopen", Code::kUnimplemented);
  }
  FakeDevice none;
  ASSIGN_OR_RETURN(FakeDevice* const found, FindRenamed(request, what));
  FakeDevice& image = found == nullptr ? none : *found;
  std::string& uuid = image.identity.uuid;
  const bool known = uuid == request.old_uuid || uuid == request.new_uuid;
  if (image.fs_type != request.fs_type || !known) {
    return Refuse(what, "it has " + image.fs_type + " with UUID " + uuid,
                  Code::kFailedPrecondition);
  }
  FilesystemName name{image.fs_type, request.new_uuid, uuid != request.new_uuid};
  if (!name.changed) return name;
  image.dirty_log = false;
  image.unmountable = state_.half;
  if (!state_.half) uuid = request.new_uuid;
  return name;
}

}  // namespace volumed
