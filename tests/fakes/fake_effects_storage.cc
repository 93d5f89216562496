// The requests of FakeEffects that tell one storage from another.
#include <algorithm>
#include <cerrno>

#include "base/strings.h"
#include "fakes/fake_effects.h"

namespace volumed {
namespace {

void Sort(std::vector<std::string>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

bool ShareOne(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& key) {
    return std::find(b.begin(), b.end(), key) != b.end();
  });
}

std::string Joined(const std::string& above, const std::string& below) {
  return (above == "/" ? "" : above) + below;
}

// Without the last name; nothing for "/".
std::optional<SafePath> Above(const SafePath& path, std::string* name) {
  SafePath above = path;
  std::string& part = path.relative.empty() ? above.root : above.relative;
  if (part == "/") return std::nullopt;
  const size_t slash = part.rfind('/');
  *name = slash == std::string::npos ? part : part.substr(slash + 1);
  part = slash == std::string::npos ? "" : part.substr(0, slash);
  if (path.relative.empty()) {
    if (part.empty()) part = "/";
    above.resolve = Resolve::kBeneath;
  }
  return above;
}

}  // namespace

StorageObject FakeEffects::ObjectAt(FakeLocation at) const {
  const FakeFilesystem& filesystem = vfs_.FilesystemAt(at);
  const FakeInode& inode = vfs_.InodeAt(at);
  StorageObject object{filesystem.type, "", inode.id, "1:" + std::to_string(inode.id)};
  // It has no FakeDevice.
  if (filesystem.source == "/dev/root") object.fs_uuid = "uuid-of-root";
  for (const auto& [path, device] : state_.devices.by_path) {
    if (device.filesystem == filesystem.id) object.fs_uuid = device.identity.uuid;
  }
  return object;
}

void FakeEffects::AddDevice(const FakeDevice& device, std::vector<std::string>& keys) const {
  keys.push_back("dev:" + std::to_string(device.identity.device_major) + ":" +
                 std::to_string(device.identity.device_minor));
  keys.insert(keys.end(), device.storage_own.begin(), device.storage_own.end());
}

Status FakeEffects::ExpectObject(FakeLocation at, const StorageObject& expected) const {
  const std::string difference = StorageDifference(expected, ObjectAt(at));
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "it is another directory: " + difference);
}

void FakeEffects::AddPlace(FakeLocation at, const std::string& missing,
                           StorageIdentity& identity) const {
  const FakeFilesystem& filesystem = vfs_.FilesystemAt(at);
  const std::string place = missing.empty() ? vfs_.PlaceOf(at) : Joined(vfs_.PlaceOf(at), missing);
  const size_t colon = filesystem.source.find(":/");
  const bool is_nfs = filesystem.type == "nfs" || filesystem.type == "nfs4";
  std::string key;
  if (is_nfs && colon != std::string::npos) {
    key = NfsStorageKey(filesystem.source.substr(0, colon),
                        filesystem.source.substr(colon + 1) + "/" + place);
  } else {
    const auto [high, low] = FakeVfs::NumberOf(filesystem);
    key = "fs:" + std::to_string(high) + ":" + std::to_string(low) + ":" + place;
  }
  identity.own.push_back(key);
  identity.within = KeysAbove(key);
  for (const auto& [path, device] : state_.devices.by_path) {
    if (device.filesystem != filesystem.id) continue;
    AddDevice(device, identity.within);
    identity.within.insert(identity.within.end(), device.storage_within.begin(),
                           device.storage_within.end());
  }
}

void FakeEffects::AddFiles(const FakeDevice& device, StorageIdentity& identity) const {
  bool deleted = false;
  const std::string path = device.loop ? PathOfLoop(*device.loop, &deleted) : device.storage_file;
  if (path.empty() || deleted) return;
  FakeLocation there;
  if (vfs_.WalkAbsolute(path, {.follow_last = true}, &there) != 0) return;
  StorageIdentity of_file;
  AddPlace(there, "", of_file);
  identity.within.insert(identity.within.end(), of_file.own.begin(), of_file.own.end());
  identity.within.insert(identity.within.end(), of_file.within.begin(), of_file.within.end());
  identity.files.push_back({path, ObjectAt(there)});
  if (const std::string key = LastingFileKey(ObjectAt(there)); !key.empty()) {
    identity.own.push_back(key);
  }
}

// Name by name, as the kernel finds out that a path leads away from the mount of its root.
Status FakeEffects::CheckSameMount(const SafePath& path) {
  ASSIGN_OR_RETURN(FakeLocation there, Open({path.root, "", path.resolve}));
  const auto mount = there.mount;
  for (size_t end = 0; !path.relative.empty() && end != std::string::npos;) {
    end = path.relative.find('/', end == 0 ? 0 : end + 1);
    ASSIGN_OR_RETURN(there, Open({path.root, path.relative.substr(0, end), path.resolve}));
    if (there.mount != mount) break;
  }
  if (there.mount == mount && vfs_.InodeAt(there).type != FileType::kBlockDevice) return OkStatus();
  return Error::FromErrno(EXDEV, "identify storage " + path.Display(), Outcome::kNotApplied);
}

Result<StorageIdentity> FakeEffects::operator()(const IdentifyStorage& request) {
  RETURN_IF_ERROR(Validate(request.path));
  if (request.same_mount) RETURN_IF_ERROR(CheckSameMount(request.path));
  SafePath path = request.path;
  std::string missing;
  Result<FakeLocation> there = Open(path);
  while (!there.ok()) {
    if (there.error().sys_errno() != ENOENT) return there.error();
    std::string name;
    const std::optional<SafePath> above = Above(path, &name);
    if (!above) return there.error();
    missing = "/" + name + missing;
    path = *above;
    there = Open(path);
  }
  StorageIdentity identity;
  if (request.look_for.inode != 0) {
    const uint64_t filesystem = vfs_.InodeAt(*there).filesystem;
    const uint64_t name = vfs_.FindName(filesystem, request.look_for.inode);
    if (name == 0) return identity;
    there = FakeLocation{there->mount, name};
    missing.clear();
    if (!IsSameObject(request.look_for, ObjectAt(*there))) return identity;
  }
  const FakeInode& inode = vfs_.InodeAt(*there);
  if (missing.empty()) identity.type = inode.type;
  if (const Result<FakeDevice*> device = FindNode(*there, "");
      missing.empty() && inode.type == FileType::kBlockDevice && device.ok()) {
    AddDevice(**device, identity.own);
    identity.within = (*device)->storage_within;
    identity.made_of = identity.within;
    AddFiles(**device, identity);
    for (const auto& [node, other] : state_.devices.by_path) {
      std::vector<std::string> keys;
      AddDevice(other, keys);
      const bool is_it = other.identity.device_minor == (*device)->identity.device_minor &&
                         other.identity.device_major == (*device)->identity.device_major;
      if (request.twins_alone && is_it) continue;
      if (request.find_users && ShareOne(keys, identity.own) && IsInUse(other)) {
        identity.users.push_back(node);
      }
    }
  } else {
    if (vfs_.IsDeleted(*there)) {
      return Error::NotApplied(
          Code::kFailedPrecondition,
          "identify storage " + request.path.Display() + ": it was moved or removed meanwhile");
    }
    AddPlace(*there, missing, identity);
    identity.object.fs_type = vfs_.FilesystemAt(*there).type;
    const bool is_file = missing.empty() && inode.type == FileType::kRegular;
    if (inode.type == FileType::kDirectory || is_file) identity.object = ObjectAt(*there);
    if (!missing.empty()) {
      identity.object.inode = 0;
      identity.object.handle.clear();
    }
    if (identity.type == FileType::kDirectory) identity.owner = inode.owner;
    if (identity.type == FileType::kRegular) {
      identity.own.push_back("ino:" + std::to_string(inode.filesystem) + ":" +
                             std::to_string(inode.id));
    }
  }
  Sort(identity.own);
  Sort(identity.within);
  Sort(identity.made_of);
  return identity;
}

Result<Changed> FakeEffects::operator()(const MarkStorage& request) {
  const std::string what = "mark " + request.path.Display();
  ASSIGN_OR_RETURN(const FakeLocation there, Open(request.path, {false, true}).With(what));
  const std::string difference = StorageDifference(request.expected, ObjectAt(there));
  if (!difference.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             what + ": it is another directory: " + difference);
  }
  const std::string now = vfs_.InodeAt(there).owner;
  if (now == request.owner) return Changed{false};
  if (!now.empty() && now != request.replaces) {
    return Error::NotApplied(Code::kAlreadyExists,
                             what + ": it is marked as storage of claim " + now);
  }
  const std::string& fs_type = vfs_.FilesystemAt(there).type;
  if (fs_type == "nfs" || fs_type == "nfs4") {
    return Error::FromErrno(EOPNOTSUPP, what, Outcome::kNotApplied);
  }
  if (vfs_.IsReadOnly(there)) return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  vfs_.SetOwner(there, request.owner);
  return Changed{true};
}

}  // namespace volumed
