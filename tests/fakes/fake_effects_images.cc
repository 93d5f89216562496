// The requests of FakeEffects that are about images, their loop devices, and locks. What is on an
// image belongs to the file's inode: a loop device has it only while it is attached.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "fakes/fake_effects.h"

namespace volumed {
namespace {

constexpr uint32_t kPermissions = 07777;
constexpr size_t kLongestLock = 4096;
constexpr int64_t kPageKib = 4;

bool LiesIn(const std::string& path, const std::string& directory) {
  return directory == "/" || path == directory || path.starts_with(directory + "/");
}

int64_t WholeBlocks(int64_t bytes, uint32_t block_size) { return bytes / block_size * block_size; }

}  // namespace

// ---- shared -------------------------------------------------------------------------------------

Result<FakeLocation> FakeEffects::OpenImage(const SafePath& path, const StorageObject& expected,
                                            const std::string& what) const {
  ASSIGN_OR_RETURN(const FakeLocation file, Open(path).With(what));
  if (vfs_.InodeAt(file).type != FileType::kRegular) {
    return Refuse(what, "not a regular file", Code::kFailedPrecondition);
  }
  if (expected.inode != 0) {
    const std::string difference = StorageDifference(expected, ObjectAt(file));
    if (!difference.empty()) {
      return Refuse(what, "it is another file: " + difference, Code::kFailedPrecondition);
    }
  }
  return file;
}

std::string FakeEffects::PathOfLoop(const FakeLoopFile& loop, bool* deleted) const {
  *deleted = !vfs_.HasName(loop.at);
  return *deleted ? loop.path : vfs_.PathOf(loop.at);
}

std::vector<std::string> FakeEffects::NamesOf(const SafePath& path) const {
  std::vector<std::string> names = {path.Display()};
  FakeWalk walk;
  walk.follow_last = true;
  FakeLocation root;
  if (vfs_.WalkAbsolute(path.root, walk, &root) == 0) {
    names.push_back(SafePath{vfs_.PathOf(root), path.relative}.Display());
  }
  return names;
}

uint64_t FakeEffects::RegularFileAt(const SafePath& path) const {
  const Result<FakeLocation> file = Open(path, {true, false});
  if (!file.ok() || vfs_.InodeAt(*file).type != FileType::kRegular) return 0;
  return vfs_.InodeAt(*file).id;
}

bool FakeEffects::HasOpenFile(uint64_t mount) const {
  const auto& devices = state_.devices;
  return std::any_of(devices.by_path.begin(), devices.by_path.end(),
                     [mount](const auto& entry) {
                       return entry.second.loop && entry.second.loop->at.mount == mount;
                     }) ||
         std::any_of(devices.locks.begin(), devices.locks.end(), [mount](const auto& entry) {
           return entry.second.mount == mount && !entry.second.holder.expired();
         });
}

// ---- loop devices -------------------------------------------------------------------------------

void FakeEffects::Settle() {
  for (auto& [path, device] : state_.devices.by_path) {
    if (device.loop && device.loop->goes && !IsInUse(device) && device.OpenPins() == 0) {
      Detach(device);
    }
  }
  auto& images = state_.devices.images;
  for (auto image = images.begin(); image != images.end();) {
    const bool gone = vfs_.FindInode(image->first) == nullptr;
    if (gone && image->second.filesystem != 0) vfs_.DropFilesystem(image->second.filesystem);
    image = gone ? images.erase(image) : std::next(image);
  }
}

void FakeEffects::DropLoops() {
  for (auto& [path, device] : state_.devices.by_path) {
    if (device.loop) Detach(device);
  }
  Settle();
}

void FakeEffects::Detach(FakeDevice& device) {
  FakeDevice image = device;
  image.pins.clear();
  image.loop.reset();
  image.storage_own.clear();
  FakeDevice free;
  free.is_loop = true;
  free.inode = device.inode;
  free.identity.device_major = device.identity.device_major;
  free.identity.device_minor = device.identity.device_minor;
  const uint64_t inode = device.loop->inode;
  device = std::move(free);
  state_.devices.images[inode] = std::move(image);
  vfs_.LetGo(inode);
}

FakeDevice* FakeEffects::MakeLoop(const std::string& path) {
  FakeWalk walk;
  walk.directory = true;
  FakeLocation dev;
  if (vfs_.WalkAbsolute("/dev", walk, &dev) != 0) {
    vfs_.MakeDirectory(vfs_.namespace_root(), "dev", 0755);
    if (vfs_.WalkAbsolute("/dev", walk, &dev) != 0) return nullptr;
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  if (vfs_.MakeNode(dev, name, FileType::kBlockDevice, 0600) != 0) return nullptr;
  FakeLocation node;
  if (vfs_.LookupCovered(dev, name, &node) != 0) return nullptr;
  FakeDevice device;
  device.is_loop = true;
  device.inode = vfs_.InodeAt(node).id;
  device.identity.device_major = 7;
  device.identity.device_minor = static_cast<uint32_t>(state_.devices.by_path.size());
  return &(state_.devices.by_path[path] = std::move(device));
}

Result<FakeDevice*> FakeEffects::FreeLoop(const std::string& what) {
  auto& by_path = state_.devices.by_path;
  size_t loops = 0;
  for (auto& [path, device] : by_path) {
    if (!device.is_loop) continue;
    if (!device.loop) return &device;
    ++loops;
  }
  const auto fail = [&](int error) {
    return Error::FromErrno(error, what + ": no loop device is free", Outcome::kNotApplied);
  };
  if (loops >= state_.devices.most_loops) return fail(ENOSPC);
  for (size_t number = 0;; ++number) {
    const std::string path = "/dev/loop" + std::to_string(number);
    if (by_path.contains(path)) continue;
    FakeDevice* made = MakeLoop(path);
    if (made == nullptr) return fail(ENOENT);
    return made;
  }
}

// The image moves into the device, which keeps what is its own.
void FakeEffects::AttachTo(FakeDevice& device, const AttachLoop& request, FakeLocation file) {
  const FakeInode& inode = vfs_.InodeAt(file);
  FakeDevice image;
  if (const auto found = state_.devices.images.extract(inode.id)) image = found.mapped();
  image.is_loop = true;
  image.inode = device.inode;
  image.read_only = request.read_only;
  image.identity.device_major = device.identity.device_major;
  image.identity.device_minor = device.identity.device_minor;
  image.identity.disk_sequence = ++state_.devices.last_sequence;
  image.identity.size_bytes = WholeBlocks(FakeVfs::SizeBytes(inode), request.block_size);
  image.identity.stable_id = "loop:" + vfs_.PathOf(file) + ":" + std::to_string(inode.id);
  image.storage_own = {"ino:" + std::to_string(inode.filesystem) + ":" + std::to_string(inode.id)};
  image.loop =
      FakeLoopFile{inode.id, file, vfs_.PathOf(file), request.block_size, request.direct_io};
  if (image.filesystem != 0) {
    FakeFilesystem& filesystem = vfs_.MutableFilesystem(image.filesystem);
    if (filesystem.device_major != 0) {
      filesystem.device_major = image.identity.device_major;
      filesystem.device_minor = image.identity.device_minor;
    }
  }
  vfs_.Hold(file);
  device = std::move(image);
}

Status FakeEffects::CheckLoopFits(const FakeDevice& device, const AttachLoop& request,
                                  const std::string& what) const {
  const auto refuse = [&what](const std::string& why) {
    return Refuse(what, "its loop device " + why, Code::kFailedPrecondition);
  };
  if (device.loop->goes) return refuse("goes when nobody has it open any more");
  if (device.read_only != request.read_only) return refuse("has another read-only flag");
  if (device.loop->block_size != request.block_size) return refuse("has other blocks");
  return OkStatus();
}

Result<AttachedLoop> FakeEffects::operator()(const AttachLoop& request) {
  const std::string what = "attach a loop device to " + request.path.Display();
  const uint32_t size = request.block_size;
  if (size < 512 || size > 4096 || (size & (size - 1)) != 0) {
    return Refuse(what, "its block size cannot be so", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(const FakeLocation file, OpenImage(request.path, request.expected, what));
  if (!request.read_only && vfs_.IsReadOnly(file)) {
    return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  }
  const FakeInode& inode = vfs_.InodeAt(file);
  if (FakeVfs::SizeBytes(inode) < static_cast<int64_t>(size)) {
    return Refuse(what, "the file is smaller than a block", Code::kFailedPrecondition);
  }
  auto& by_path = state_.devices.by_path;
  const uint64_t id = inode.id;
  auto there = std::find_if(by_path.begin(), by_path.end(), [id](const auto& entry) {
    return entry.second.loop && entry.second.loop->inode == id;
  });
  AttachedLoop answer;
  if (there != by_path.end()) {
    RETURN_IF_ERROR(CheckLoopFits(there->second, request, what));
  } else {
    ASSIGN_OR_RETURN(FakeDevice * device, FreeLoop(what));
    AttachTo(*device, request, file);
    answer.changed = true;
    there = std::find_if(by_path.begin(), by_path.end(),
                         [device](const auto& entry) { return &entry.second == device; });
  }
  ASSIGN_OR_RETURN(answer.device, (*this)(IdentifyDevice{SafePath{there->first, ""}}));
  answer.direct_io = there->second.loop->direct_io;
  return answer;
}

Result<LoopList> FakeEffects::operator()(const ListLoops& request) {
  RETURN_IF_ERROR(Validate(request.path));
  const std::vector<std::string> names = NamesOf(request.path);
  const uint64_t same = RegularFileAt(request.path);
  LoopList list;
  for (const auto& [path, device] : state_.devices.by_path) {
    if (!device.loop) continue;
    LoopEntry entry;
    entry.path = path;
    entry.file = PathOfLoop(*device.loop, &entry.deleted);
    const bool is_there = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return LiesIn(entry.file, name);
    });
    if (!is_there && device.loop->inode != same) continue;
    if (!is_there) entry.deleted = false;
    entry.size_bytes = device.identity.size_bytes;
    entry.block_size = device.loop->block_size;
    entry.read_only = device.read_only;
    entry.direct_io = device.loop->direct_io;
    list.loops.push_back(std::move(entry));
  }
  return list;
}

Result<Done> FakeEffects::operator()(const ConfigureLoop& request) {
  const std::string what = "configure loop device " + request.device;
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device).With(what));
  DeviceIdentity expected = request.expected;
  expected.uuid = device->identity.uuid;
  expected.size_bytes = device->identity.size_bytes;
  const std::string difference = IdentityDifference(expected, device->identity);
  if (!difference.empty()) {
    return Refuse(what, "it is not the one that was expected: " + difference,
                  Code::kFailedPrecondition);
  }
  if (!device->loop) {
    return Refuse(what, "it is no loop device of a file", Code::kFailedPrecondition);
  }
  const int64_t read_ahead = request.read_ahead_kib.value_or(0);
  if (read_ahead < 0 || read_ahead > kMostReadAheadKib || read_ahead % kPageKib != 0) {
    return Refuse(what, "it cannot read ahead so", Code::kInvalidArgument);
  }
  const FakeInode* file = vfs_.FindInode(device->loop->inode);
  if (request.refresh_size && file != nullptr) {
    device->identity.size_bytes = WholeBlocks(FakeVfs::SizeBytes(*file), device->loop->block_size);
  }
  device->loop->direct_io = request.direct_io.value_or(device->loop->direct_io);
  device->loop->read_ahead_kib = request.read_ahead_kib.value_or(device->loop->read_ahead_kib);
  return Done{};
}

Result<Done> FakeEffects::operator()(const SetReadAhead& request) {
  const std::string what = "set the read-ahead of " + request.device;
  if (request.kib < 0 || request.kib > kMostReadAheadKib || request.kib % kPageKib != 0) {
    return Refuse(what, "it cannot read ahead so", Code::kInvalidArgument);
  }
  ASSIGN_OR_RETURN(FakeDevice * device, OpenDevice(request.device).With(what));
  DeviceIdentity expected = request.expected;
  expected.uuid = device->identity.uuid;
  expected.size_bytes = device->identity.size_bytes;
  const std::string difference = IdentityDifference(expected, device->identity);
  if (!difference.empty()) {
    return Refuse(what, "it is not the one that was expected: " + difference,
                  Code::kFailedPrecondition);
  }
  (device->loop ? device->loop->read_ahead_kib : device->read_ahead_kib) = request.kib;
  return Done{};
}

// ---- files --------------------------------------------------------------------------------------

Result<FakeLocation> FakeEffects::OpenOrMakeImage(const SetFileSize& request,
                                                  const std::string& what, bool* made) {
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  const int error = vfs_.MakeNode(parent.directory, parent.name, FileType::kRegular, 0600);
  *made = error == 0;
  if (error != 0 && error != EEXIST) return Error::FromErrno(error, what, Outcome::kNotApplied);
  FakeLocation file;
  const int missing = OpenChild(parent.directory, parent.name, false, &file);
  if (missing != 0 || vfs_.InodeAt(file).type != FileType::kRegular) {
    return Error::FromErrno(EEXIST, what, Outcome::kNotApplied);
  }
  return file;
}

Result<FileExtent> FakeEffects::operator()(const SetFileSize& request) {
  const std::string what = "set the size of " + request.path.Display();
  if (request.bytes <= 0) return Refuse(what, "it has to be above zero", Code::kInvalidArgument);
  if (request.make && request.expected.inode != 0) {
    return Refuse(what, "a file that is expected is not made", Code::kInvalidArgument);
  }
  bool made = false;
  ASSIGN_OR_RETURN(const FakeLocation file, request.make
                                                ? OpenOrMakeImage(request, what, &made)
                                                : OpenImage(request.path, request.expected, what));
  if (vfs_.IsReadOnly(file)) return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  const FakeInode& inode = vfs_.InodeAt(file);
  const int64_t size = FakeVfs::SizeBytes(inode);
  const int64_t allocated = FakeVfs::AllocatedBytes(inode);
  if (request.make && size != 0 && size != request.bytes) {
    return Refuse(what, "there is a file of another size", Code::kAlreadyExists);
  }
  if (size > request.bytes) {
    return Refuse(what, "it is never made smaller", Code::kFailedPrecondition);
  }
  const uint32_t mode = request.mode & kPermissions;
  const uint32_t mode_before = inode.mode;
  const bool other_mode = request.make && mode_before != mode;
  if (other_mode) vfs_.Chmod(file, mode);
  if (const int error = vfs_.SetSize(file, request.bytes, request.allocate)) {
    ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
    if (made) vfs_.Unlink(parent.directory, parent.name);
    if (!made && other_mode) vfs_.Chmod(file, mode_before);
    return Error::FromErrno(error, what, Outcome::kNotApplied);
  }
  FileExtent extent;
  extent.object = ObjectAt(file);
  extent.size_bytes = FakeVfs::SizeBytes(inode);
  extent.allocated_bytes = FakeVfs::AllocatedBytes(inode);
  extent.changed = made || other_mode || size != extent.size_bytes ||
                   (request.allocate && allocated < extent.allocated_bytes);
  return extent;
}

Result<FakeLocation> FakeEffects::OpenLockFile(const TakeFileLock& request, const std::string& what,
                                               bool* made) {
  Result<FakeLocation> file = OpenImage(request.path, {}, what);
  if (file.ok() || !IsMissing(file.error()) || request.content.empty()) return file;
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  if (const int error = vfs_.MakeNode(parent.directory, parent.name, FileType::kRegular, 0600)) {
    return Error::FromErrno(error, what, Outcome::kNotApplied);
  }
  *made = true;
  return OpenImage(request.path, {}, what);
}

Result<FileLock> FakeEffects::operator()(const TakeFileLock& request) {
  const std::string what = "lock " + request.path.Display();
  if (request.content.size() > kLongestLock) {
    return Refuse(what, "the content is too long", Code::kInvalidArgument);
  }
  bool made = false;
  ASSIGN_OR_RETURN(const FakeLocation file, OpenLockFile(request, what, &made));
  if (!request.content.empty() && vfs_.IsReadOnly(file)) {
    return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  }
  const FakeInode& inode = vfs_.InodeAt(file);
  FakeFileLock& held = state_.devices.locks[inode.id];
  if (!held.holder.expired()) {
    return Refuse(what, "somebody else has the lock; the file says \"" + inode.content + "\"",
                  Code::kAborted);
  }
  if (!request.content.empty()) {
    const int error = vfs_.WriteFile(file, request.content);
    if (error != 0 && error != ENOSPC && error != EDQUOT) {
      return Error::FromErrno(error, what, Outcome::kMaybeApplied);
    }
  }
  FileLock lock;
  lock.pin = std::make_shared<const Descriptor>();
  held = {lock.pin, file.mount};
  return lock;
}

}  // namespace volumed
