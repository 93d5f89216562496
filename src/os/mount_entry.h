// MountEntry: one line of /proc/self/mountinfo as a value. Source: proc_pid_mountinfo(5).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace volumed {

// A file or directory of a filesystem, whatever mount it is seen through: for the question where
// else it shows (ListMounts::showing). A value.
struct FilesystemPart {
  uint32_t device_major = 0;  // as MountEntry's: the filesystem's number, which a disk's can differ
  uint32_t device_minor = 0;  // from (btrfs)
  std::string root;           // as MountEntry::root; empty: any part
  static void WireFields(auto& v, auto& m) {
    v(1, m.device_major);
    v(2, m.device_minor);
    v(3, m.root);
  }
  friend bool operator==(const FilesystemPart&, const FilesystemPart&) = default;
};

// One mount as it was at one moment. Texts are bytes as the kernel has them: a path or source need
// not be UTF-8. A value.
struct MountEntry {
  // The kernel gives the number of a mount that is gone to another one.
  uint64_t mount_id = 0;
  uint64_t parent_id = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  std::string root;                  // the part of the filesystem that is mounted here, unescaped
  std::string mount_point;           // unescaped
  std::vector<std::string> options;  // per-mount: "rw", "nosuid", ...
  std::vector<std::string> propagation;  // optional fields: "shared:12", "master:3"
  std::string fs_type;
  std::string source;
  std::vector<std::string> super_options;  // per-superblock

  // Whether this mount takes no writes. The filesystem may be read-only besides: super_options say
  // that.
  bool read_only() const {
    for (const std::string& option : options) {
      if (option == "ro") return true;
    }
    return false;
  }
  static void WireFields(auto& v, auto& m) {
    v(1, m.mount_id);
    v(2, m.parent_id);
    v(3, m.device_major);
    v(4, m.device_minor);
    v(5, m.root);
    v(6, m.mount_point);
    v(7, m.options);
    v(8, m.propagation);
    v(9, m.fs_type);
    v(10, m.source);
    v(11, m.super_options);
  }
};

// Whether the filesystem is on disks of this node: the others (network, FUSE, tmpfs) have a number
// of no device, and so has btrfs. Pure.
inline bool IsOfDisk(const MountEntry& mount) {
  return mount.device_major != 0 || mount.fs_type == "btrfs";
}

}  // namespace volumed
