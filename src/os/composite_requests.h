// The composite requests of the Kernel seam: each is many primitive effects in one round trip. What
// it does is a function over Kernel& (os/composites.h), which a worker runs beside the kernel, and
// which FakeKernel runs primitive by primitive. Part of os/kernel_requests.h, which lists them in
// AnyRequest.
//
// All are for the agent's own filesystem and for filesystems in memory that the agent has mounted
// on it: nothing of them waits for a disk or server that is somebody else's. None lists mounts:
// each asks the one place that it is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "os/lane_kind.h"
#include "os/safe_path.h"

namespace volumed {

struct Changed;        // os/kernel_answers.h
struct Done;           // likewise
struct EnsuredVolume;  // below
struct BatchAnswer;    // likewise
struct BatchItem;      // os/kernel_requests.h: it holds any request

// One file of a payload. `path` is relative and clean (ValidatePayloadPaths in os/atomic_payload.h
// says how); parents are made as needed.
struct PayloadFile {
  std::string path;
  Secret<std::string> content;
  uint32_t mode = 0644;
  std::optional<uint32_t> uid = std::nullopt;  // owner, where it is not root
  // Its content is another one each time, as that of a token: what the file is, is told without it.
  // For whoever plans the effect; it is not sent with it.
  bool issued = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.content);
    v(3, m.mode);
    v(4, m.uid);
    v.NotSent(m.issued);
  }
};

// What a volume is filled with, as one atomic change: see WriteAtomicPayload.
struct VolumePayload {
  std::vector<PayloadFile> files;
  // Directories that other mounts need inside the volume, relative to it. Those that are missing
  // are made with 0755.
  std::vector<std::string> nested_mount_points = {};
  // The volume is in use and only its content is brought up to date: a failure leaves it as it is.
  bool is_refresh = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.files);
    v(2, m.nested_mount_points);
    v(3, m.is_refresh);
  }
};

// Makes a directory volume, empty at first: a directory, with a tmpfs mounted on it if `tmpfs` is
// set; its ownership; then its marker, which says that all of that is done. A volume whose marker
// is there, and which is of the wanted kind, stays as it is; a marker without its volume is removed
// first, for it must not vouch for what comes now. With `payload` it is then filled, and owned as
// something that is only read. A payload that fails for the first time takes the volume away again,
// unless what failed may have been applied.
// Errors: FailedPrecondition, not applied, if another filesystem than a tmpfs is mounted there, or
// anything where there is to be none; those of the primitives, maybe applied once the directory may
// have been made.
struct EnsureVolume {
  using Answer = EnsuredVolume;
  static constexpr const char* kName = "EnsureVolume";
  static constexpr uint32_t kWireNumber = 45;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  static constexpr bool kIsComposite = true;
  SafePath target;
  uint32_t mode = 0777;
  uint32_t parent_mode = 0750;
  std::optional<std::vector<std::string>> tmpfs = std::nullopt;  // its mount options
  SafePath marker;  // a file; its directory is the volume's alone
  std::optional<uint32_t> gid = std::nullopt;
  std::optional<VolumePayload> payload = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.target);
    v(2, m.mode);
    v(3, m.parent_mode);
    v(4, m.tmpfs);
    v(5, m.marker);
    v(6, m.gid);
    v(7, m.payload);
  }
};

struct EnsuredVolume {
  static constexpr uint32_t kWireNumber = 27;
  bool changed = false;
  // How long the run over the volume for its ownership took, in nanoseconds: when it was made, and
  // when it was filled. nullopt: there was no such run.
  std::optional<int64_t> owned_made_ns = std::nullopt;
  std::optional<int64_t> owned_filled_ns = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.changed);
    v(2, m.owned_made_ns);
    v(3, m.owned_filled_ns);
  }
  friend bool operator==(const EnsuredVolume&, const EnsuredVolume&) = default;
};

// The inverse of EnsureVolume: it removes the marker's directory, then unmounts every tmpfs or
// hugetlbfs that is mounted on the volume, then removes its directory with its content, never
// across another mount. What is missing is success. On a filesystem that takes no writes the mounts
// go all the same, and the error is that of the marker.
// Errors: FailedPrecondition, not applied, if something is mounted on a volume whose marker tells
// that it is a plain directory; those of the primitives, maybe applied.
struct RemoveVolume {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveVolume";
  static constexpr uint32_t kWireNumber = 46;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  static constexpr bool kIsComposite = true;
  SafePath target;
  SafePath marker;
  static void WireFields(auto& v, auto& m) {
    v(1, m.target);
    v(2, m.marker);
  }
};

// Binds a part of a volume to `target`, which is made in `parent` as a directory or file, as what
// it shows. A part that is missing is made as directories with the mode of the volume's root. Links
// inside the volume are followed. A bind that is right is kept; one of something else is replaced.
// Errors: InvalidArgument, not applied, for a link that leads out of the volume; Aborted, not
// applied, if the part was removed while it was made; those of the primitives. After an error at
// most an empty target is left, and the directories of the part. An error after the bind of
// something else was taken away is maybe applied.
// Source: kubernetes pkg/volume/util/subpath/subpath_linux.go@v1.36.2.
struct PrepareSubPath {
  using Answer = Done;
  static constexpr const char* kName = "PrepareSubPath";
  static constexpr uint32_t kWireNumber = 47;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  static constexpr bool kIsComposite = true;
  SafePath volume;       // its root, which nothing leads out of
  std::string sub_path;  // clean and relative
  SafePath parent;
  SafePath target;
  static void WireFields(auto& v, auto& m) {
    v(1, m.volume);
    v(2, m.sub_path);
    v(3, m.parent);
    v(4, m.target);
  }
};

// Takes away all sub-path binds of a volume, <of_volume>/<container>/<index>: all mounts first, and
// then, unless `keep_directories` is set, their directories, and `all`, which those of the pod's
// other volumes are in, if it is empty. It never touches what is behind a bind. It answers whether
// there was a directory of the volume.
// Errors: those of Unmount and RemoveDirectory, naming the path, maybe applied.
struct RemoveSubPaths {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveSubPaths";
  static constexpr uint32_t kWireNumber = 48;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  static constexpr bool kIsComposite = true;
  SafePath of_volume;
  SafePath all;
  bool keep_directories = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.of_volume);
    v(2, m.all);
    v(3, m.keep_directories);
  }
};

// One name that may be in a directory which RemoveSkeleton takes away, and what may be below it.
struct SkeletonPart {
  enum class Kind {
    kDirectories,  // `levels` of directories below it; for the last one see `leaf_files`
    kBinds,        // two levels of directories, and mounts in the last one: see RemoveSubPaths
    kTree,         // anything, but for mounts
    kFile,
  };
  std::string name;
  Kind kind = Kind::kDirectories;
  int levels = 0;
  // The files that may be in the last directory, of which anything else is named in the error.
  // Nothing: it is not looked into, and has to be empty.
  std::optional<std::vector<std::string>> leaf_files = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.name);
    v(2, m.kind);
    v(3, m.levels);
    v.OptionalList(4, 5, m.leaf_files);
  }
  friend bool operator==(const SkeletonPart&, const SkeletonPart&) = default;
};

// Takes away a directory of which it is known what may be in it, with the parts in this order. A
// directory that is missing is success with changed = false. Anything else in it stays, and the
// directory with it. `synced`: as of RemoveDirectory.
// Errors: FailedPrecondition, naming it, for anything that is unknown, for what is not empty, and
// for a mount point. Before anything is removed all names in the directory itself are looked at; an
// error about what lies deeper may come after some of it was removed, and is maybe applied then.
struct RemoveSkeleton {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveSkeleton";
  static constexpr uint32_t kWireNumber = 49;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  static constexpr bool kIsComposite = true;
  SafePath path;
  std::vector<SkeletonPart> parts;
  bool synced = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.parts);
    v(3, m.synced);
  }
};

// Makes several requests in one round trip, in this order, with one deadline. One that fails stops
// no other, unless that needs it. `path` is what they all lie below, for logs and for the choice of
// the worker. What the items answered is in the answer, their errors too.
// Errors, before anything is tried: InvalidArgument, not applied, for a batch in a batch, and for
// requests of which half ruins data or whose answer holds a descriptor.
struct Batch {
  using Answer = BatchAnswer;
  static constexpr const char* kName = "Batch";
  static constexpr uint32_t kWireNumber = 50;
  static constexpr LaneKind kLane = LaneKind::kOfItems;
  static constexpr bool kMustFinish = false;
  static constexpr bool kIsComposite = true;
  SafePath path;
  std::vector<BatchItem> items;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.items);
  }
};

}  // namespace volumed
