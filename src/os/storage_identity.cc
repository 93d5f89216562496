#include "os/storage_identity.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/directory_reader.h"
#include "os/file_effects.h"
#include "os/safe_open.h"
#include "os/statmount.h"
#include "os/storage_keys.h"
#include "os/storage_relation.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

std::vector<std::string> Sorted(const std::set<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

// The existing part of a path, and the names that are missing below it.
struct Existing {
  Descriptor file;
  std::string missing;  // "/x/y"; empty: all of it is there
};

// One name less; nothing for "/".
std::optional<SafePath> Above(const SafePath& path, std::string* name) {
  std::string& text = *name;
  SafePath above = path;
  std::string& part = path.relative.empty() ? above.root : above.relative;
  const size_t slash = part.rfind('/');
  if (path.relative.empty() && part == "/") return std::nullopt;
  text = slash == std::string::npos ? part : part.substr(slash + 1);
  part = slash == std::string::npos ? "" : part.substr(0, slash);
  if (path.relative.empty()) {
    if (part.empty()) part = "/";
    // What was the trusted root may have been a link; so may what lies above it.
    above.resolve = Resolve::kBeneath;
  }
  return above;
}

// The root is where it is, also if something is mounted there.
Result<Descriptor> OpenOnMountOfRoot(const SafePath& path, int flags) {
  return OpenSafePath(path, flags, path.relative.empty() ? 0 : RESOLVE_NO_XDEV);
}

Result<Existing> OpenOnSameMount(const SafePath& path) {
  ASSIGN_OR_RETURN(Descriptor file, OpenOnMountOfRoot(path, O_PATH));
  struct stat info = {};
  const std::string what = "identify storage " + path.Display();
  if (::fstat(file.get(), &info) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  if (S_ISBLK(info.st_mode)) {
    return Error::FromErrno(EXDEV, what + ": a block device", Outcome::kNotApplied);
  }
  return Existing{std::move(file), ""};
}

Result<Existing> OpenExisting(const SafePath& path) {
  SafePath at = path;
  std::string missing;
  while (true) {
    Result<Descriptor> file = OpenSafePath(at, O_PATH);
    if (file.ok()) return Existing{*std::move(file), missing};
    if (file.error().sys_errno() != ENOENT) {
      return file.error().With("identify storage " + path.Display());
    }
    std::string name;
    const std::optional<SafePath> above = Above(at, &name);
    if (!above) return file.error();
    missing = "/" + name + missing;
    at = *above;
  }
}

// Where the file is in this namespace, as the mount that it was opened on has it.
Result<std::string> PathOf(int file, const std::string& shown) {
  std::array<char, PATH_MAX> path;
  const ssize_t size = ::readlink(ProcFdPath(file).c_str(), path.data(), path.size());
  if (size < 0) return Error::FromErrno(errno, "resolve " + shown, Outcome::kNotApplied);
  return std::string(path.data(), static_cast<size_t>(size));
}

// "/a" and "/b/c" as "/a/b/c"; either may be "/".
std::string Joined(const std::string& above, const std::string& below) {
  const std::string head = above == "/" ? "" : above;
  const std::string joined = head + (below == "/" ? "" : below);
  return joined.empty() ? "/" : joined;
}

bool IsNfs(const std::string& fs_type) { return fs_type == "nfs" || fs_type == "nfs4"; }

// "server:/path", also with an address of IPv6 in brackets.
std::optional<std::pair<std::string, std::string>> SplitExport(const std::string& source) {
  const size_t from = source.starts_with('[') ? source.find(']') : 0;
  const size_t colon = from == std::string::npos ? from : source.find(":/", from);
  if (colon == std::string::npos) return std::nullopt;
  return std::pair(source.substr(0, colon), source.substr(colon + 1));
}

// The file's place in its filesystem, as keys; also that of an export under each name that the
// mount knows its server by.
std::vector<std::string> PlaceKeys(const MountEntry& mount, const std::string& place) {
  if (IsNfs(mount.fs_type)) {
    if (const auto share = SplitExport(mount.source)) {
      std::vector<std::string> keys = {NfsStorageKey(share->first, Joined(share->second, place))};
      for (const std::string& option : mount.super_options) {
        const auto address = StripPrefix(option, "addr=");
        if (!address) continue;
        keys.push_back(NfsStorageKey(std::string(*address), Joined(share->second, place)));
      }
      return keys;
    }
  }
  return {"fs:" + std::to_string(mount.device_major) + ":" + std::to_string(mount.device_minor) +
          ":" + place};
}

void AddDeviceBelow(dev_t device, StorageKeys& keys) {
  const StorageKeys disk = KeysOfDevice(device);
  keys.within.insert(disk.own.begin(), disk.own.end());
  keys.within.insert(disk.within.begin(), disk.within.end());
}

// The disk that the filesystem is on. One with a number of its own (btrfs) names it as its source.
void AddDiskOf(const MountEntry& mount, StorageKeys& keys) {
  if (mount.device_major != 0) {
    AddDeviceBelow(makedev(mount.device_major, mount.device_minor), keys);
    return;
  }
  struct stat source = {};
  if (!mount.source.starts_with("/dev/") || ::stat(mount.source.c_str(), &source) != 0 ||
      !S_ISBLK(source.st_mode)) {
    return;
  }
  AddDeviceBelow(source.st_rdev, keys);
}

// All disks of a btrfs. Source: Linux fs/btrfs/sysfs.c.
void AddBtrfsDisks(const std::string& fs_uuid, StorageKeys& keys) {
  if (fs_uuid.empty()) return;
  for (const dev_t disk : BlockNumbersBelow("/sys/fs/btrfs/" + fs_uuid + "/devices")) {
    AddDeviceBelow(disk, keys);
  }
}

Result<MountEntry> MountOf(int file, const std::string& shown, const KernelFeatures& features) {
  ASSIGN_OR_RETURN(std::optional<MountEntry> mount, FindMountEntryOf(file, features));
  if (mount) return *std::move(mount);
  return Error::NotApplied(Code::kFailedPrecondition,
                           "identify storage " + shown + ": its mount was taken away meanwhile");
}

// Where the file lies in the filesystem of its mount.
Result<std::string> PlaceIn(const MountEntry& mount, const std::string& path,
                            const std::string& shown) {
  const auto not_there = [&] {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "identify storage " + shown + ": it was " + "moved or removed meanwhile (" + path + ")");
  };
  if (mount.root.ends_with("//deleted") || path.ends_with(" (deleted)")) return not_there();
  const std::string point = mount.mount_point == "/" ? "" : mount.mount_point;
  if (path == mount.mount_point) return mount.root;
  if (!path.starts_with(point + "/")) return not_there();
  return Joined(mount.root, path.substr(point.size()));
}

Status AddPlace(int file, const std::string& missing, const std::string& shown,
                const KernelFeatures& features, StorageIdentity& identity, StorageKeys& keys) {
  ASSIGN_OR_RETURN(const MountEntry mount, MountOf(file, shown, features));
  ASSIGN_OR_RETURN(const std::string path, PathOf(file, shown));
  ASSIGN_OR_RETURN(const std::string place, PlaceIn(mount, path, shown));
  for (const std::string& key : PlaceKeys(mount, Joined(place, missing.empty() ? "/" : missing))) {
    keys.own.insert(key);
    for (std::string& above : KeysAbove(key)) keys.within.insert(std::move(above));
  }
  AddDiskOf(mount, keys);
  identity.object.fs_type = mount.fs_type;
  return OkStatus();
}

// What the file of a loop device is called in all keys of it, as "ino:..." -> "file:...".
using LastingNames = std::map<std::string, std::string>;

// A loop device lies in the file that it shows, and with it in that file's directories. One of them
// may be on a loop device itself.
void AddLoopFiles(const KernelFeatures& features, StorageIdentity& identity, StorageKeys& keys,
                  LastingNames& names, std::set<std::string> done) {
  const std::set<std::string> paths = LoopFilePaths(keys);
  const size_t before = done.size();
  for (const std::string& path : paths) {
    if (!done.insert(path).second) continue;
    const Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat info = {};
    if (!file.valid() || ::fstat(file.get(), &info) != 0) continue;
    // Another file may have its name by now.
    const std::string inode = InodeKey(info.st_dev, info.st_ino);
    if (!keys.own.contains(inode) && !keys.within.contains(inode)) continue;
    StorageIdentity of_file;
    StorageKeys its;
    if (!AddPlace(file.get(), "", path, features, of_file, its).ok()) continue;
    of_file.object = ReadStorageObject(file.get(), of_file.object.fs_type);
    names[inode] = LastingFileKey(of_file.object);
    identity.files.push_back({path, of_file.object});
    keys.within.insert(its.own.begin(), its.own.end());
    keys.within.insert(its.within.begin(), its.within.end());
  }
  if (done.size() > before) AddLoopFiles(features, identity, keys, names, std::move(done));
}

// Beside each name of a loop device's file, or of a partition of it, the one that lasts.
void AddLastingNames(const LastingNames& names, std::set<std::string>& keys) {
  std::set<std::string> lasting;
  for (const auto& [inode, name] : names) {
    for (const std::string& key : keys) {
      const auto start = StripPrefix(key, inode);
      if (name.empty() || !start || (!start->empty() && (*start)[0] != ':')) continue;
      lasting.insert(name + std::string(*start));
    }
  }
  keys.merge(lasting);
}

// What is open, and what lies nearest above it of a path that is missing.
Status IdentifyOpen(const IdentifyStorage& request, const Existing& there,
                    const KernelFeatures& features, StorageIdentity& identity, StorageKeys& keys,
                    std::set<std::string>& made_of) {
  const std::string shown = request.path.Display();
  struct stat info = {};
  if (::fstat(there.file.get(), &info) != 0) {
    return Error::FromErrno(errno, "identify storage " + shown, Outcome::kNotApplied);
  }
  const bool missing = !there.missing.empty();
  if (!missing) identity.type = FileTypeFromMode(info.st_mode);
  if (identity.type == FileType::kBlockDevice) {
    keys = KeysOfDevice(info.st_rdev);
    made_of = keys.within;
    for (const dev_t twin : request.find_users ? TwinsOf(info.st_rdev) : std::vector<dev_t>()) {
      if (request.twins_alone && twin == info.st_rdev) continue;
      if (IsClaimed(twin)) identity.users.push_back(DeviceNodeName(twin));
    }
    return OkStatus();
  }
  RETURN_IF_ERROR(AddPlace(there.file.get(), there.missing, shown, features, identity, keys));
  const std::string fs_type = identity.object.fs_type;
  const bool is_file = identity.type == FileType::kRegular;
  // What lies nearest above a missing path tells the filesystem, and no more.
  if (S_ISDIR(info.st_mode) || is_file) {
    identity.object = ReadStorageObject(there.file.get(), fs_type);
  }
  if (missing) identity.object = {fs_type, identity.object.fs_uuid, 0, ""};
  if (fs_type == "btrfs") AddBtrfsDisks(identity.object.fs_uuid, keys);
  if (identity.type == FileType::kDirectory) identity.owner = ReadOwnerMark(there.file.get());
  if (is_file) keys.own.insert(InodeKey(info.st_dev, info.st_ino));
  return OkStatus();
}

// What `look_for` names, in the filesystem of what is open; nothing if it is not there.
Result<std::optional<Existing>> FindInFilesystem(const IdentifyStorage& request,
                                                 const Existing& there,
                                                 const KernelFeatures& features) {
  const std::string shown = request.path.Display();
  ASSIGN_OR_RETURN(const MountEntry mount, MountOf(there.file.get(), shown, features));
  const StorageObject here = ReadStorageObject(there.file.get(), mount.fs_type);
  if (!MayShareFilesystem(request.look_for, here)) return std::optional<Existing>();
  Result<Descriptor> found = OpenByHandle(there.file.get(), request.look_for.handle);
  if (!found.ok() && found.error().sys_errno() == ESTALE) return std::optional<Existing>();
  if (!found.ok()) return found.error().With("look for a file in the filesystem of " + shown);
  struct stat info = {};
  if (::fstat(found->get(), &info) != 0) {
    return Error::FromErrno(errno, "look at a file in the filesystem of " + shown,
                            Outcome::kNotApplied);
  }
  // What was removed while somebody has it open lies nowhere any more.
  const bool is_removed = info.st_nlink == 0;
  if (is_removed ||
      !IsSameObject(request.look_for, ReadStorageObject(found->get(), mount.fs_type))) {
    return std::optional<Existing>();
  }
  return std::optional<Existing>(Existing{*std::move(found), ""});
}

// Whether its path, as the kernel tells it, leads there: that of a file which nobody has looked up
// is made up, and so is one that lies outside of a bind mount.
bool HasPath(int file, const KernelFeatures& features) {
  const auto mount = MountOf(file, "", features);
  const auto path = PathOf(file, "");
  if (!mount.ok() || !path.ok()) return false;
  SafePath place{mount->mount_point, ""};
  if (*path != mount->mount_point) {
    const size_t point = mount->mount_point == "/" ? 0 : mount->mount_point.size();
    if (!path->starts_with(mount->mount_point) || path->size() < point + 2) return false;
    place.relative = path->substr(point + 1);
  }
  const auto there = OpenOnMountOfRoot(place, O_PATH | O_NOFOLLOW);
  struct stat its = {};
  struct stat found = {};
  return there.ok() && ::fstat(file, &its) == 0 && ::fstat(there->get(), &found) == 0 &&
         its.st_dev == found.st_dev && its.st_ino == found.st_ino;
}

// The keys of what has no path tell only how it lies to what the request's path leads to.
Status IdentifyByRelation(const IdentifyStorage& request, const Existing& found,
                          const Existing& there, const KernelFeatures& features,
                          StorageIdentity& identity, StorageKeys& keys) {
  const std::string shown = request.path.Display();
  struct stat info = {};
  if (::fstat(found.file.get(), &info) != 0) {
    return Error::FromErrno(errno, "identify storage " + shown, Outcome::kNotApplied);
  }
  identity = StorageIdentity();
  keys = StorageKeys();
  identity.type = FileTypeFromMode(info.st_mode);
  identity.object = ReadStorageObject(found.file.get(), request.look_for.fs_type);
  if (identity.type == FileType::kRegular) keys.own.insert(InodeKey(info.st_dev, info.st_ino));
  if (!there.missing.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const StorageRelation relation,
                   RelationOf(found.file.get(), there.file.get())
                       .With("look for a file in the filesystem of " + shown));
  if (relation == StorageRelation::kElsewhere) return OkStatus();
  StorageIdentity above;
  StorageKeys its;
  RETURN_IF_ERROR(AddPlace(there.file.get(), "", shown, features, above, its));
  std::set<std::string>& keys_there = relation == StorageRelation::kInside ? keys.within : keys.own;
  keys_there.insert(its.own.begin(), its.own.end());
  if (relation == StorageRelation::kInside) {
    keys.within.insert(its.within.begin(), its.within.end());
  }
  return OkStatus();
}

}  // namespace

Result<StorageIdentity> DoIdentifyStorage(const IdentifyStorage& request,
                                          const KernelFeatures& features) {
  RETURN_IF_ERROR(ValidateSafePath(request.path));
  ASSIGN_OR_RETURN(Existing there,
                   request.same_mount ? OpenOnSameMount(request.path) : OpenExisting(request.path));
  StorageIdentity identity;
  StorageKeys keys;
  std::set<std::string> made_of;
  LastingNames names;
  std::optional<Existing> found;
  if (request.look_for.inode != 0) {
    ASSIGN_OR_RETURN(found, FindInFilesystem(request, there, features));
    if (!found) return identity;
  }
  Status told = OkStatus();
  if (!found || HasPath(found->file.get(), features)) {
    told = IdentifyOpen(request, found ? *found : there, features, identity, keys, made_of);
    if (!told.ok() && !found) return told.error();
  }
  const bool by_relation = found && (!told.ok() || keys.own.empty());
  if (by_relation) {
    RETURN_IF_ERROR(IdentifyByRelation(request, *found, there, features, identity, keys));
  }
  AddLoopFiles(features, identity, keys, names, {});
  for (std::set<std::string>* some : {&keys.own, &keys.within, &made_of}) {
    AddLastingNames(names, *some);
  }
  identity.own = Sorted(keys.own);
  identity.within = Sorted(keys.within);
  identity.made_of = Sorted(made_of);
  return identity;
}

}  // namespace volumed
