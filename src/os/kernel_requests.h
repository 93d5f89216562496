// The requests of the seam to the node (os/kernel.h): every effect is a struct in AnyRequest, which
// says of itself what it is: its fields on the wire (base/wire_fields.h), its number there, its
// LaneKind, and whether it must finish. Those of mounts, files and programs are here; those of
// devices, of storage, and those that are made of others have headers of their own.
//
// It knows no Kubernetes word.
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
#include "os/composite_requests.h"
#include "os/device_requests.h"
#include "os/kernel_answers.h"
#include "os/lane_kind.h"
#include "os/mount_entry.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"

namespace volumed {

// The mount table. Never touches a mounted filesystem, so it cannot hang with one.
// Asked for a part of it, by at most one of the three, it costs what the answer does: WorkerKernel
// answers from the table that it keeps (see os/kept_mount_table.h for how fresh it is, and for what
// the kernel announces to nobody). Paths are compared as text; no link is followed. Without any,
// the whole table is read as it is.
// Errors: InvalidArgument, not applied, for a path that is not absolute and clean, or two questions
// at once.
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

struct ProbeFeatures {
  using Answer = KernelFeatures;
  static constexpr const char* kName = "ProbeFeatures";
  static constexpr uint32_t kWireNumber = 28;
  static constexpr LaneKind kLane = LaneKind::kNoWorker;
  static constexpr bool kMustFinish = false;
  static void WireFields(auto& /*v*/, auto& /*m*/) {}
};

// Mounts a filesystem by type. NotApplied errors: the mount is not there. With `expected_device`,
// `source` is opened once and must be that device with that filesystem (else FailedPrecondition),
// and the mount is dropped, unseen by anybody, if the kernel made it of another.
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

// Makes `source` (file or directory) appear at `target`, non-recursively unless `recursive`. The
// flags ro, nodev, noexec, nosuid, noatime, relatime, nodiratime of the source's mount are kept.
// The bind is never visible without its final flags where the kernel has mount_setattr.
// With `expected_device`, `source` is the node of a block device, and that very node is bound only
// if it is this device (FailedPrecondition otherwise). Read-only is then the bind's: it keeps
// nobody from writing to the device.
// With an inode in `expected`, `source` is opened once, and what was opened is bound only if
// nothing shows that it is another directory (FailedPrecondition otherwise).
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
  static void WireFields(auto& v, auto& m) {
    v(1, m.source);
    v(2, m.target);
    v(3, m.read_only);
    v(4, m.recursive);
    v(5, m.recursive_read_only);
    v(6, m.expected_device);
    v.If(7, m.expected, m.expected.inode != 0);
  }
};

// Changes the flags of the mount at `target`: "ro", "rw", "nosuid", "size=..." ...
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

// Takes away the topmost mount at `target`. Never lazy. A target that is missing or no mount point
// is success with changed = false. `force` is for network and FUSE filesystems (MNT_FORCE).
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

// Makes what is mounted at and below `target` propagate: nothing where the mount that it lies on is
// shared; else `target` is made a mount point (bound onto itself) where it is none, and shared.
struct MakeShared {
  using Answer = Changed;
  static constexpr const char* kName = "MakeShared";
  static constexpr uint32_t kWireNumber = 14;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath target;
  static void WireFields(auto& v, auto& m) { v(1, m.target); }
};

// lstat of the last component, unless `follow`. Never asks a mounted filesystem for its root's
// attributes when `only_mount_point` is set: then just type and is_mount_point are filled.
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

struct StatFs {
  using Answer = FsInfo;
  static constexpr const char* kName = "StatFs";
  static constexpr uint32_t kWireNumber = 16;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Bytes and inodes used below `path`, on its filesystem only. Progress: entries seen.
struct Usage {
  using Answer = UsageInfo;
  static constexpr const char* kName = "Usage";
  static constexpr uint32_t kWireNumber = 17;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// Gives the tree at `path` to a group: gid, mode |= 0660 (ro: 0440), directories also setgid and
// 0110. Entries that are right are not touched; links get their gid changed and nothing else; other
// filesystems are not entered; the root comes last, so that it marks a finished run. Progress:
// entries visited. Source: kubernetes pkg/volume/volume_linux.go@v1.36.2.
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

// A directory with exactly `mode` (no umask). An existing directory gets the mode too when
// `exact_mode`. Missing parents are made with `parent_mode` when it is set; NotFound otherwise.
// AlreadyExists when something else is there.
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

// An empty regular file, or nothing if one is there. AlreadyExists when something else is.
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

// A link to `leads_to`, which need not be there. One that leads elsewhere is replaced, and missing
// for a moment. AlreadyExists when something else than a link is there.
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

// Where a link leads, as it stands. NotFound when missing; InvalidArgument with EINVAL for what is
// no link.
struct ReadLink {
  using Answer = FileContent;
  static constexpr const char* kName = "ReadLink";
  static constexpr uint32_t kWireNumber = 35;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// One empty directory. Missing: changed = false. FailedPrecondition when not empty or a mount
// point.
struct RemoveDirectory {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveDirectory";
  static constexpr uint32_t kWireNumber = 21;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// One file or link, never a directory. Missing: changed = false.
struct RemoveFile {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveFile";
  static constexpr uint32_t kWireNumber = 22;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// A tree, itself included, and never across a mount: FailedPrecondition naming the mount point,
// with what lay outside of it removed. Missing: changed = false.
// With `content_alone` the directory itself stays, even where it is a mount point, and the answer
// means that it was seen empty at the end; NotFound when missing.
// With an inode in `expected`, the path is opened once, and all is done below what was opened:
// FailedPrecondition, not applied, if that is another directory or none, and maybe applied if it is
// not this one that is gone at the end.
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

struct ListDirectory {
  using Answer = DirectoryListing;
  static constexpr const char* kName = "ListDirectory";
  static constexpr uint32_t kWireNumber = 24;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;  // NotFound when missing
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// A file that its reader knows to be small (a marker, a manifest): at most `max_bytes`, OutOfRange
// beyond.
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

// Publishes `files` in `target` as one atomic change, with the layout of kubelet's AtomicWriter
// (..data -> ..<timestamp>.<random>). Answers changed = false, writing nothing, when content, modes
// and owners are already so. With `gid`, the new directory is given to that group before it is
// published. Left-overs of an interrupted run (..data_tmp, unreferenced ..<timestamp> directories)
// are cleaned. Source: kubernetes pkg/volume/util/atomic_writer.go@v1.36.2.
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
// not undo: a new file, synced, takes the place of the old one. Answers changed = false, writing
// nothing, when both are already so.
// Errors: EEXIST, not applied, where something else than a file is there; EBUSY, not applied, for a
// mount point; OutOfRange, not applied, beyond 64 KiB.
struct WriteFile {
  using Answer = Changed;
  static constexpr const char* kName = "WriteFile";
  static constexpr uint32_t kWireNumber = 41;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  Secret<std::string> content;
  uint32_t mode = 0600;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.content);
    v(3, m.mode);
  }
};

// Writes a value to an attribute of the kernel's (sysfs), by one write(2). What the value does is
// done when this answers. Never makes a file. Several components of such a path are links: see
// Resolve::kBeneath.
// Errors: NotFound; FailedPrecondition, not applied, for what is no regular file; errno of the
// write, maybe applied.
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
// and so is killed with it; what it left behind is its caller's to clean up.
// Errors: InvalidArgument, not applied, for a path that is not absolute, or a secret argument
// without a place; errno of the start, not applied. Cancel: takes a second, then the worker is
// killed.
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

using AnyRequest =
    std::variant<ListMounts, ProbeFeatures, Mount, BindMount, Remount, Unmount, MakeShared, Stat,
                 StatFs, Usage, ChangeOwnership, MakeDirectory, MakeFile, RemoveDirectory,
                 RemoveFile, RemoveTree, ListDirectory, ReadFile, WriteAtomicPayload, ProbeDevice,
                 FormatDevice, CheckFilesystem, CheckDeviceUse, RunProgram, MakeSymlink, ReadLink,
                 IdentifyDevice, DetachLoops, GrowFilesystem, FlushDevice, WriteFile,
                 WriteAttribute, IdentifyStorage, MarkStorage, EnsureVolume, RemoveVolume,
                 PrepareSubPath, RemoveSubPaths, RemoveSkeleton, Batch>;

using AnyAnswer =
    std::variant<Done, Changed, FileInfo, FsInfo, UsageInfo, OwnershipInfo, DirectoryListing,
                 FileContent, MountListing, KernelFeatures, DeviceProbe, FilesystemCheck,
                 DeviceUsers, ProgramEnd, IdentifiedDevice, FilesystemGrowth, StorageIdentity,
                 EnsuredVolume, BatchAnswer>;

struct BatchItemAnswer {
  // Until there is one, or if the worker sent none.
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
