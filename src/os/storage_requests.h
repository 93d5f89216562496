// The requests of the Kernel seam that tell one storage from another, whatever path leads to it,
// and that mark whose it is. Part of os/kernel_requests.h, which lists them in AnyRequest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/lane_kind.h"
#include "os/safe_path.h"

namespace volumed {

enum class FileType;     // os/kernel_requests.h
struct Changed;          // likewise
struct StorageIdentity;  // below

// What tells one directory from another one that takes its place: it stays the same over renames,
// over another mount of its filesystem, and, unless the filesystem lives in memory, over reboots.
struct StorageObject {
  std::string fs_type;
  std::string fs_uuid;  // empty where the filesystem has none, or the kernel does not tell it
  uint64_t inode = 0;
  // As name_to_handle_at(2) has it, "<type>:<hexadecimal>": with the inode's generation, so that an
  // inode number that is used again is another directory. Empty where the filesystem has none.
  std::string handle;
  static void WireFields(auto& v, auto& m) {  // records have it with the same numbers
    v(1, m.fs_type);
    v(2, m.fs_uuid);
    v(3, m.inode);
    v(4, m.handle);
  }
  friend bool operator==(const StorageObject&, const StorageObject&) = default;
};

// Says which storage a path leads to; every link is followed. Keys are compared as they are, within
// one boot, and mean nothing else:
//   "fs:<major>:<minor>:<path>"  a file or directory, by its place in its filesystem, so that every
//                                mount and bind of it has the same key;
//   "ino:<device>:<inode>[:<start>]"  a file, by its inode: hard links, and a loop device on it, or
//                                a partition of that by its start;
//   "nfs:<server>:<path>"        a file or directory of an export;
//   "dev:<major>:<minor>"        a block device;
//   "wwid:<wwid>[:<start>]"      a disk, or a partition by its start, by what the disk calls
//   itself;
//   "file:<type>:<uuid>:<inode>:<handle>[:<start>]"  the file of a loop device, or a partition of
//                                that, as it can be told over reboots and while it is detached.
// Those that begin with "wwid:" or "file:" last over reboots: IsLastingKey.
// Two storages overlap if a key of one's own is the other's own, or is among what contains it.
//
// With `find_users`, a block device is also opened for itself (O_EXCL), as is every other device of
// the same WWID or on the same file, and closed at once; with `twins_alone` only those others are,
// for the device itself may be mounted already.
//
// With an inode in `look_for`, that file or directory is identified and not what the path leads to:
// it is looked for by its handle in the filesystem that the path leads to, wherever it lies there.
// If that is another filesystem, or has no such file any more, the type is kMissing and there are
// no keys. If no path leads to it (it lies outside of a bind mount; it is a file that nobody has
// looked up; its name is too long, or ends as that of a removed one), the keys tell only whether it
// lies at, in or around what the path leads to. Errors, not applied: errno of open_by_handle_at(2).
// With `same_mount` nothing is looked at that does not lie on the mount of the path's root, so that
// nothing else can hold it up: EXDEV, not applied, for what lies on another one, and for a block
// device, which may lie on anything; ENOENT for a path that leads nowhere.
// Else a path that leads nowhere is no error: the type is kMissing, and the keys are those that it
// would have. Errors, not applied: errno of open(2); FailedPrecondition for what was removed
// meanwhile.
// Source: name_to_handle_at(2), ioctl_loop(4), Linux Documentation/ABI/stable/sysfs-block.
struct IdentifyStorage {
  using Answer = StorageIdentity;
  static constexpr const char* kName = "IdentifyStorage";
  static constexpr uint32_t kWireNumber = 43;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  bool find_users = false;
  bool twins_alone = false;
  StorageObject look_for{};
  bool same_mount = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.find_users);
    v(3, m.twins_alone);
    v.If(4, m.look_for, m.look_for.inode != 0);
    v(5, m.same_mount);
  }
};

// The file of a loop device.
struct StorageFile {
  std::string path;
  StorageObject object;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.object);
  }
  friend bool operator==(const StorageFile&, const StorageFile&) = default;
};

struct StorageIdentity {
  static constexpr uint32_t kWireNumber = 26;
  FileType type{};
  StorageObject object{};             // of a directory or a regular file
  std::vector<std::string> own{};     // sorted
  std::vector<std::string> within{};  // of what contains it: directories above, disks below; sorted
  // Of a block device: what of `within` it is a part or made of. What only contains the file of a
  // loop device is not among it, for who writes there goes through that file's filesystem.
  std::vector<std::string> made_of{};
  std::string owner{};  // of a directory: its mark; see MarkStorage
  // Devices, as "/dev/loop3", that are this storage and that somebody has for himself; see
  // find_users.
  std::vector<std::string> users{};
  std::vector<StorageFile> files{};  // of the loop devices that it is, or lies on; by path
  static void WireFields(auto& v, auto& m) {
    v(1, m.type);
    v(2, m.object);
    v(3, m.own);
    v(4, m.within);
    v(5, m.owner);
    v(6, m.users);
    v(7, m.made_of);
    v(8, m.files);
  }
  friend bool operator==(const StorageIdentity&, const StorageIdentity&) = default;
};

// What somebody was given, and what contains it, whatever its path leads to later: keys of a
// StorageIdentity, which mean the same within one boot; sorted.
struct GivenStorage {
  std::vector<std::string> own{};
  std::vector<std::string> within{};
  // The file or directory, or the files of the loop devices that it is or lies on: by their handles
  // they are found wherever somebody moves them.
  std::vector<StorageObject> objects{};
  bool empty() const { return own.empty() && within.empty(); }
  friend bool operator==(const GivenStorage&, const GivenStorage&) = default;
};

// Names whose directory this is, in its attribute "trusted.volumed.owner", so that it says so
// itself wherever records come from; durable when it returns. With an empty `owner` the mark is
// removed. A mark that names neither `owner` nor `replaces` stays.
// Errors, not applied: AlreadyExists for such a mark, naming its owner; FailedPrecondition for
// another directory than `expected`; NotFound; EOPNOTSUPP on a filesystem that keeps no such
// attribute (NFS).
struct MarkStorage {
  using Answer = Changed;
  static constexpr const char* kName = "MarkStorage";
  static constexpr uint32_t kWireNumber = 44;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  std::string owner;
  std::string replaces;
  StorageObject expected;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.owner);
    v(3, m.replaces);
    v(4, m.expected);
  }
};

// Whether what is done to the content of one can be seen in the other. Pure.
bool Overlap(const StorageIdentity& a, const StorageIdentity& b);

// Both are block devices, each with a node and a cache of its own, and what is written to one
// changes the other behind the back of a filesystem that is mounted from that. False for one
// device under two names. Pure.
bool AreTwins(const StorageIdentity& a, const StorageIdentity& b);

// Whether the key means the same over reboots. Pure.
bool IsLastingKey(const std::string& key);

// Whether something shows that both are one directory or file. What nothing shows is not so. Pure.
bool IsSameObject(const StorageObject& recorded, const StorageObject& now);

// Whether both may lie in one filesystem: nothing that is known of both shows otherwise. Pure.
bool MayShareFilesystem(const StorageObject& a, const StorageObject& b);

// The key of a loop device's file that lasts; empty if too little is known of it. Pure.
std::string LastingFileKey(const StorageObject& file);

// What shows that `now` is another directory than the recorded one; empty when nothing does. What
// is not known of one of them is not compared. Pure.
std::string StorageDifference(const StorageObject& recorded, const StorageObject& now);

// The same of what is compared over a reboot: a filesystem that lives in memory, in layers or on a
// server makes up anew what it is known by, so that of those only the type is compared. Pure.
std::string LastingDifference(const StorageObject& recorded, const StorageObject& now);

// For people: "ext4 0b3c..., inode 2". Pure.
std::string ObjectText(const StorageObject& object);

// The key of an export's directory; `path` need not be clean. Pure.
std::string NfsStorageKey(const std::string& server, const std::string& path);
// The keys of what contains the storage of such a key, or of one of a file ("fs:..."). Pure.
std::vector<std::string> KeysAbove(const std::string& key);

}  // namespace volumed
