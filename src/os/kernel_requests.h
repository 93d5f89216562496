// The requests of the seam to the node (os/kernel.h): every effect is a struct in AnyRequest, which
// says of itself what it is: its fields on the wire (base/wire_fields.h), its number there, its
// LaneKind, and whether it must finish. Those of mounts, files and programs are here; those of
// devices, of images, of freezing, of storage, of subvolumes, of quotas, of whole trees, of
// cgroups, and those that are made of others have headers of their own.
//
// It knows no Kubernetes word.
//
// The comments here name the errors that a request has besides those that all have: what
// os/local_kernel.h says of paths, links and failed system calls, and the outcomes of
// os/worker_kernel.h. "Missing" means that a component of the path is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "os/cgroup_requests.h"
#include "os/composite_requests.h"
#include "os/device_requests.h"
#include "os/freeze_requests.h"
#include "os/image_requests.h"
#include "os/kernel_answers.h"
#include "os/lane_kind.h"
#include "os/mount_entry.h"
#include "os/quota_requests.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"
#include "os/subvolume_requests.h"
#include "os/tree_requests.h"

namespace volumed {

// Answers the mount table, or a part of it, in the kernel's order. It never touches a mounted
// filesystem, so it cannot hang with one.
// Asked for a part, by at most one of the three, it costs what the answer does: WorkerKernel
// answers from the table that it keeps (see os/kept_mount_table.h for how fresh it is, and for what
// the kernel announces to nobody). Paths are compared as text; no link is followed. Without any of
// the three, the whole table is read as it is.
// Errors: InvalidArgument, not applied, for a path that is not absolute and clean, or two questions
// at once; errno of reading, not applied.
struct ListMounts {
  using Answer = MountListing;
  static constexpr const char* kName = "ListMounts";
  static constexpr uint32_t kWireNumber = 27;
  static constexpr LaneKind kLane = LaneKind::kNoWorker;
  static constexpr bool kMustFinish = false;
  std::string below = {};   // mounted at this path or below it
  std::string around = {};  // mounted at this path or at a directory above it: what it may lie on
  std::optional<FilesystemPart> showing = std::nullopt;  // wherever this part of a filesystem shows
  static void WireFields(auto& v, auto& m) {
    v(1, m.below);
    v(2, m.around);
    v(3, m.showing);
  }
};

// Answers what the kernel can do, without what is masked: it is found out once, when the
// implementation is made.
struct ProbeFeatures {
  using Answer = KernelFeatures;
  static constexpr const char* kName = "ProbeFeatures";
  static constexpr uint32_t kWireNumber = 28;
  static constexpr LaneKind kLane = LaneKind::kNoWorker;
  static constexpr bool kMustFinish = false;
  static void WireFields(auto& /*v*/, auto& /*m*/) {}
};

// Mounts a filesystem by type. With `expected_device`, `source` is opened once and must be that
// device with that filesystem, and the mount is dropped, unseen by anybody, if the kernel made it
// of another. "ro" makes superblock and mount read-only. A type with a program /sbin/mount.<type>
// is mounted by that; every other one by the kernel's mount API.
// Errors: InvalidArgument, not applied, for an empty type or an option that is a request of its own
// ("bind"); Unimplemented, not applied, for noswap on a kernel without it; FailedPrecondition, not
// applied, for another device than the expected one; errno of the kernel, not applied, with its own
// words; of a mount program, Unknown, not applied, if it failed, and Unavailable, maybe applied, if
// a signal ended it. After "not applied" the mount is not there. No error names the value of an
// option, which may be a password.
struct Mount {
  using Answer = Done;
  static constexpr const char* kName = "Mount";
  static constexpr uint32_t kWireNumber = 10;
  static constexpr LaneKind kLane = LaneKind::kDeviceIfExpected;
  static constexpr bool kMustFinish = false;
  std::string fs_type;               // "tmpfs"
  std::string source;                // "tmpfs", a device, server:/path
  SafePath target;                   // an existing directory or file
  std::vector<std::string> options;  // "size=1048576", "noswap", "ro": joined by commas
  std::optional<DeviceIdentity> expected_device = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.fs_type);
    v(2, m.source);
    v(3, m.target);
    v(4, m.options);
    v(5, m.expected_device);
  }
};

// Makes `source` (file or directory) appear at `target`, which is of the same kind; what is mounted
// below the source is left out unless `recursive`. The flags ro, nodev, noexec, nosuid, noatime,
// relatime, nodiratime of the source's mount are kept. The bind is never visible without its final
// flags if the kernel has mount_setattr; before that a read-only bind is writable for a moment.
// With `expected_device`, `source` is the node of a block device, and that very node is bound only
// if it is this device. Read-only is then the bind's: it keeps nobody from writing to the device.
// With an inode in `expected`, `source` is opened once, and what was opened is bound only if
// nothing shows that it is another directory. With `expected_part` it is bound only if `source` is
// on a mount that shows this part: what is mounted there, and not what lies under it.
// Errors: FailedPrecondition, not applied, for another device, directory or mount than the
// expected; errno, not applied; without mount_setattr, errno, maybe applied, if a bind could be
// made but neither made read-only nor taken back.
struct BindMount {
  using Answer = Done;
  static constexpr const char* kName = "BindMount";
  static constexpr uint32_t kWireNumber = 11;
  static constexpr LaneKind kLane = LaneKind::kDeviceIfExpected;
  static constexpr bool kMustFinish = false;
  SafePath source;
  SafePath target;
  bool read_only = false;
  bool recursive = false;
  bool recursive_read_only = false;  // Unimplemented, naming mount-setattr, where it is missing
  std::optional<DeviceIdentity> expected_device = std::nullopt;
  StorageObject expected = {};
  std::optional<FilesystemPart> expected_part = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.source);
    v(2, m.target);
    v(3, m.read_only);
    v(4, m.recursive);
    v(5, m.recursive_read_only);
    v(6, m.expected_device);
    v.If(7, m.expected, m.expected.inode != 0);
    v(8, m.expected_part);
  }
};

// Changes the flags of the mount at `target`: "ro", "rw", "nosuid", "size=..." and the like. Flags
// of a mount ("ro", "nosuid", "noatime") change this mount alone; every other option changes the
// filesystem, wherever it is mounted.
// Errors: FailedPrecondition, not applied, if the target is no mount point; errno, maybe applied if
// the filesystem was changed already.
struct Remount {
  using Answer = Done;
  static constexpr const char* kName = "Remount";
  static constexpr uint32_t kWireNumber = 12;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath target;
  std::vector<std::string> options;
  static void WireFields(auto& v, auto& m) {
    v(1, m.target);
    v(2, m.options);
  }
};

// Takes away the topmost mount at `target`, never lazily. A target that is missing or no mount
// point is success with changed = false. `force` is for network and FUSE filesystems (MNT_FORCE).
// Errors: EBUSY (FailedPrecondition), not applied, if something uses the mount. A forced unmount
// that fails is maybe applied: it has cut off those who used the filesystem.
struct Unmount {
  using Answer = Changed;
  static constexpr const char* kName = "Unmount";
  static constexpr uint32_t kWireNumber = 13;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath target;
  bool force = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.target);
    v(2, m.force);
  }
};

// Makes what is mounted at and below `target` propagate. If the mount that it lies on is shared
// already, nothing is done; else `target` is made a mount point (bound onto itself, with what is
// mounted below) if it is none, and shared.
// Errors: errno, maybe applied if it was made a mount point.
struct MakeShared {
  using Answer = Changed;
  static constexpr const char* kName = "MakeShared";
  static constexpr uint32_t kWireNumber = 14;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath target;
  static void WireFields(auto& v, auto& m) { v(1, m.target); }
};

// Answers what lstat(2) says of the last component, unless `follow`: then what it leads to. What is
// missing has the type kMissing and is no error. With `only_mount_point` the mounted filesystem is
// never asked for its root's attributes, and just type and is_mount_point are filled; it excludes
// `follow` (InvalidArgument, not applied).
struct Stat {
  using Answer = FileInfo;
  static constexpr const char* kName = "Stat";
  static constexpr uint32_t kWireNumber = 15;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  bool follow = false;
  bool only_mount_point = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.follow);
    v(3, m.only_mount_point);
  }
};

// Answers the figures of the whole filesystem on which the path lies, and its kind. Errors:
// NotFound, not applied, if the path is missing.
struct StatFs {
  using Answer = FsInfo;
  static constexpr const char* kName = "StatFs";
  static constexpr uint32_t kWireNumber = 16;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Counts the bytes and inodes that are used at and below `path`, on its mount only. Progress:
// entries seen.
// Errors, not applied: NotFound if the path is missing; the first entry that cannot be looked at,
// with its path.
struct Usage {
  using Answer = UsageInfo;
  static constexpr const char* kName = "Usage";
  static constexpr uint32_t kWireNumber = 17;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Gives the tree at `path` to a group: gid, mode |= 0660 (with `read_only` 0440), directories also
// setgid and 0110. Entries that are right are not touched; links get their gid changed and nothing
// else; other filesystems are not entered; the root comes last, so that it marks a finished run.
// With `on_root_mismatch` nothing is done if the root has that mark. Progress: entries visited.
// Errors: the first entry that cannot be changed ends the run, with its path; maybe applied once
// something was changed.
// Source: kubernetes pkg/volume/volume_linux.go@v1.36.2.
struct ChangeOwnership {
  using Answer = OwnershipInfo;
  static constexpr const char* kName = "ChangeOwnership";
  static constexpr uint32_t kWireNumber = 18;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  uint32_t gid = 0;
  bool read_only = false;
  bool on_root_mismatch = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.gid);
    v(3, m.read_only);
    v(4, m.on_root_mismatch);
  }
};

// Makes a directory with exactly `mode` (no umask). A directory that is there keeps its mode,
// unless `exact_mode`. Missing parents are made with `parent_mode` if it is set.
// Errors: NotFound, not applied, without `parent_mode` for a missing parent; AlreadyExists if
// something else is there. Each is maybe applied once a parent was made.
struct MakeDirectory {
  using Answer = Changed;
  static constexpr const char* kName = "MakeDirectory";
  static constexpr uint32_t kWireNumber = 19;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  uint32_t mode = 0750;
  std::optional<uint32_t> parent_mode = std::nullopt;
  bool exact_mode = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.mode);
    v(3, m.parent_mode);
    v(4, m.exact_mode);
  }
};

// Makes an empty regular file with exactly `mode`. One that is there keeps its mode and content.
// Errors, not applied: AlreadyExists if something else is there; NotFound for a missing parent.
struct MakeFile {
  using Answer = Changed;
  static constexpr const char* kName = "MakeFile";
  static constexpr uint32_t kWireNumber = 20;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  uint32_t mode = 0644;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.mode);
  }
};

// Makes a link to `leads_to`, which need not be there. A link that leads elsewhere is replaced, and
// missing for a moment.
// Errors: AlreadyExists, not applied, if something else than a link is there; errno, maybe applied
// if the old link is gone and the new one could not be made.
struct MakeSymlink {
  using Answer = Changed;
  static constexpr const char* kName = "MakeSymlink";
  static constexpr uint32_t kWireNumber = 34;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  std::string leads_to;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.leads_to);
  }
};

// Answers where a link leads, as it stands. Errors, not applied: NotFound if it is missing;
// InvalidArgument with EINVAL for what is no link.
struct ReadLink {
  using Answer = FileContent;
  static constexpr const char* kName = "ReadLink";
  static constexpr uint32_t kWireNumber = 35;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Removes one empty directory. One that is missing is success with changed = false. With `synced`
// a power loss does not bring it back, also if it was missing. Errors: FailedPrecondition, not
// applied, if it is not empty or a mount point; of the sync, maybe applied.
struct RemoveDirectory {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveDirectory";
  static constexpr uint32_t kWireNumber = 21;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  bool synced = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.synced);
  }
};

// Removes one file or link, never a directory (EISDIR, not applied). One that is missing is success
// with changed = false.
struct RemoveFile {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveFile";
  static constexpr uint32_t kWireNumber = 22;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Removes a tree, itself included, and never goes across a mount or through a link. Subvolumes in
// it go too, read-only ones made writable for that. What is missing is success with changed =
// false. With `content_alone` the directory itself stays, even if it is a mount point, and the
// answer means that it was seen empty at the end. With an inode in `expected`, the path is opened
// once, and all is done below what was opened. Errors, maybe applied once something was removed:
// FailedPrecondition naming the mount point that is in the way, with what lay outside of it
// removed; the first thing that could not be removed, with the rest removed; Aborted if the tree
// was moved meanwhile. With `content_alone`: NotFound, not applied, if it is missing. With
// `expected`: FailedPrecondition, not applied, if another directory or none is there, and maybe
// applied if it is not this one that is gone at the end.
struct RemoveTree {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveTree";
  static constexpr uint32_t kWireNumber = 23;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  bool content_alone = false;
  StorageObject expected = {};
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.content_alone);
    v.If(3, m.expected, m.expected.inode != 0);
  }
};

// Answers the entries of a directory, without "." and "..", each with its type. Names are bytes:
// they need not be UTF-8. What is mounted on an entry is not asked for anything.
struct ListDirectory {
  using Answer = DirectoryListing;
  static constexpr const char* kName = "ListDirectory";
  static constexpr uint32_t kWireNumber = 24;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;  // NotFound when missing
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Answers the content of a regular file that its reader knows to be small (a marker, a manifest),
// as bytes. Errors, not applied: NotFound if it is missing; OutOfRange if it has more than
// `max_bytes`; FailedPrecondition for what is no regular file, which is not waited for.
struct ReadFile {
  using Answer = FileContent;
  static constexpr const char* kName = "ReadFile";
  static constexpr uint32_t kWireNumber = 25;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  uint64_t max_bytes = 64 * 1024;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.max_bytes);
  }
};

// Publishes `files` in `target`, an existing directory, as one atomic change, with the layout of
// kubelet's AtomicWriter (..data -> ..<timestamp>.<random>). It answers changed = false, writing
// nothing, if content, modes and owners are already so. With `gid`, the new directory is given to
// that group before it is published. Left-overs of an interrupted run (..data_tmp, unreferenced
// ..<timestamp> directories) are cleaned. Errors: see os/atomic_payload.h.
// Source: kubernetes pkg/volume/util/atomic_writer.go@v1.36.2.
struct WriteAtomicPayload {
  using Answer = Changed;
  static constexpr const char* kName = "WriteAtomicPayload";
  static constexpr uint32_t kWireNumber = 26;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath target;
  std::vector<PayloadFile> files;
  std::optional<uint32_t> gid = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.target);
    v(2, m.files);
    v(3, m.gid);
  }
};

// Gives a small regular file exactly this content and mode, as one change that a power loss does
// not undo: a new file, synced, takes the place of the old one, and belongs to the worker's user.
// `unsynced` spares the two syncs, for a file that a power loss may take: afterwards it may be the
// old one, missing, or empty.
// It answers changed = false, writing nothing, if content and mode are already so.
// Errors, not applied: EEXIST if something else than a file is there; EBUSY for a mount point;
// OutOfRange beyond 64 KiB; NotFound for a missing directory. Maybe applied, if the directory could
// not be synced at the end.
struct WriteFile {
  using Answer = Changed;
  static constexpr const char* kName = "WriteFile";
  static constexpr uint32_t kWireNumber = 41;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  Secret<std::string> content;
  uint32_t mode = 0600;
  bool unsynced = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.content);
    v(3, m.mode);
    v(4, m.unsynced);
  }
};

// Writes a value to an attribute of the kernel's (sysfs), by one write(2). What the value does is
// done when this answers. Never makes a file. Several components of such a path are links: see
// Resolve::kBeneath.
// Errors: NotFound; FailedPrecondition, not applied, for what is no regular file; errno of the
// write, maybe applied. If only a part of the value was taken, it is Unknown, maybe applied.
struct WriteAttribute {
  using Answer = Done;
  static constexpr const char* kName = "WriteAttribute";
  static constexpr uint32_t kWireNumber = 42;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  std::string value;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.value);
  }
};

// Runs a program to its end: for tools that are no filesystem's (runc). `arguments[0]` is its
// absolute path. It gets an environment of PATH and LC_ALL alone, /dev/null as its input, and no
// descriptor but the output and CallOptions::kept_by_tools. It is in its worker's process group,
// and so is killed with it; what it left behind is its caller's to clean up. That it failed is no
// error: the answer has its exit status.
// Errors, not applied: InvalidArgument for a path that is not absolute, or a secret argument
// without a place; errno of the start. A cancel takes a second, then the worker is killed.
// Progress: bytes that it has read and written.
struct RunProgram {
  using Answer = ProgramEnd;
  static constexpr const char* kName = "RunProgram";
  static constexpr uint32_t kWireNumber = 33;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  std::vector<std::string> arguments;
  // Take the place of the arguments with these numbers, which are what may be shown.
  std::map<size_t, Secret<std::string>> secret_arguments = {};
  // Of the output at most this much is kept; at most 64 KiB.
  size_t output_bytes = 4096;
  // In a systemd scope of its own, where there is systemd (os/process_scope.h): what it leaves
  // behind outlives the agent's service, and the service's IPAddressDeny= does not bind it. It does
  // not get CallOptions::kept_by_tools then: a daemon would keep the volume locked.
  bool own_scope = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.arguments);
    v(2, m.secret_arguments);
    v(3, m.output_bytes);
    v(4, m.own_scope);
  }
};

// Every request; kWireNumber tells them apart on the wire, not their order here.
using AnyRequest = std::variant<
    ListMounts, ProbeFeatures, Mount, BindMount, Remount, Unmount, MakeShared, Stat, StatFs, Usage,
    ChangeOwnership, MakeDirectory, MakeFile, RemoveDirectory, RemoveFile, RemoveTree,
    ListDirectory, ReadFile, WriteAtomicPayload, ProbeDevice, FormatDevice, CheckFilesystem,
    CheckDeviceUse, RunProgram, MakeSymlink, ReadLink, IdentifyDevice, DetachLoops, GrowFilesystem,
    FlushDevice, WriteFile, WriteAttribute, IdentifyStorage, MarkStorage, EnsureVolume,
    RemoveVolume, PrepareSubPath, RemoveSubPaths, RemoveSkeleton, Batch, AttachLoop, ListLoops,
    ConfigureLoop, SetFileSize, TakeFileLock, CloneFile, CopyFile, ListExtents, CutFrozen,
    ThawFilesystem, ChangeFilesystemUuid, MakeSubvolume, RemoveSubvolume, SetTreeQuota,
    ReadTreeQuota, SetIoLimits, MoveDirectory, CopyTree, SetReadAhead, CopyDevice>;

// What a call that succeeded answers: the alternative is the request's Answer.
using AnyAnswer =
    std::variant<Done, Changed, FileInfo, FsInfo, UsageInfo, OwnershipInfo, DirectoryListing,
                 FileContent, MountListing, KernelFeatures, DeviceProbe, FilesystemCheck,
                 DeviceUsers, ProgramEnd, IdentifiedDevice, FilesystemGrowth, StorageIdentity,
                 EnsuredVolume, BatchAnswer, AttachedLoop, LoopList, FileExtent, FileLock,
                 ExtentList, FrozenCut, FilesystemName, TreeQuota, CgroupIoLimits, TreeCopied>;

struct BatchItemAnswer {
  // What the item answered. This error stands here until there is an answer, and if the worker sent
  // none.
  Result<AnyAnswer> result = Error::MaybeApplied(Code::kDataLoss, "the worker's answer is empty");
  static void WireFields(auto& v, auto& m) { v.OneOf(m.result, 1); }
};

struct BatchItem {
  AnyRequest request;
  // Earlier items, without whose success this one is not tried; it then ends with Aborted, not
  // applied.
  std::vector<size_t> needs = {};
  static void WireFields(auto& v, auto& m) {
    v(1, m.request);
    v(2, m.needs);
  }
};

// "Mount", "Unmount" and so on; the text is static. All of these functions are pure.
std::string_view RequestName(const AnyRequest& request);
// Never kDeviceIfExpected or kOfItems: these two are resolved by what the request holds.
LaneKind LaneKindOf(const AnyRequest& request);
// Whether half of the request's effect ruins data: it is always made as CallOptions::must_finish.
bool MustFinish(const AnyRequest& request);
// Whether it has a part that may be seen by nobody but the worker that does it.
bool HasSecret(const AnyRequest& request);
// The path that a request is about, for logs and errors; empty for those without.
std::string RequestPath(const AnyRequest& request);

}  // namespace volumed
