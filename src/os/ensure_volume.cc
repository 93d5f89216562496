#include "os/ensure_volume.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace volumed {
namespace {

constexpr uint32_t kMarkerMode = 0644;
// Of a volume that is a plain directory: whatever is mounted there is not the agent's. Without it,
// as of the kubelet's and of a former release's markers, nobody knows.
constexpr uint32_t kPlainMarkerMode = 0640;
constexpr uint32_t kMarkerDirectoryMode = 0750;
constexpr uint32_t kNestedMountPointMode = 0755;
// The link that every published payload has. Source: atomic_writer.go@v1.36.2 (dataDirName).
constexpr char kDataLink[] = "..data";
// Source: statfs(2), linux/magic.h.
constexpr uint64_t kTmpfsMagic = 0x01021994;
constexpr uint64_t kHugetlbfsMagic = 0x958458f6;

enum class MountedKind { kNothing, kTmpfs, kHugetlbfs, kOther };

// What a filesystem mounted at `dir` itself says that it is.
Result<MountedKind> MountedAt(Kernel& kernel, const SafePath& dir, const CallOptions& options) {
  ASSIGN_OR_RETURN(const FileInfo info,
                   kernel.Call(Stat{.path = dir, .only_mount_point = true}, options));
  if (!info.is_mount_point) return MountedKind::kNothing;
  ASSIGN_OR_RETURN(const FsInfo fs, kernel.Call(StatFs{dir}, options));
  if (fs.fs_magic == kTmpfsMagic) return MountedKind::kTmpfs;
  return fs.fs_magic == kHugetlbfsMagic ? MountedKind::kHugetlbfs : MountedKind::kOther;
}

SafePath DirectoryOf(const SafePath& file) {
  SafePath directory = file;
  directory.relative = file.relative.substr(0, file.relative.rfind('/'));
  return directory;
}

// Of a volume that is a plain directory.
Status RefuseMount(Kernel& kernel, const SafePath& target, const CallOptions& options) {
  ASSIGN_OR_RETURN(const FileInfo place,
                   kernel.Call(Stat{.path = target, .only_mount_point = true}, options));
  if (!place.is_mount_point) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "something is mounted over " + target.Display() +
                               ", which is to be a plain directory: unmount it");
}

// One EnsureVolume.
class Ensuring {
 public:
  Ensuring(Kernel& kernel, const EnsureVolume& request, const CallOptions& options)
      : kernel_(kernel), request_(request), options_(options) {}

  Result<EnsuredVolume> Run() {
    RETURN_IF_ERROR(Make());
    if (request_.payload) {
      if (const Status filled = Fill(*request_.payload); !filled.ok()) {
        return GiveUp(filled.error());
      }
    }
    return answer_;
  }

 private:
  template <typename Request>
  auto Call(const Request& request) {
    return kernel_.Call(request, options_);
  }

  Status Make() {
    // Somebody's files would be handed out, and owned anew.
    if (!request_.tmpfs) RETURN_IF_ERROR(RefuseMount(kernel_, request_.target, options_));
    ASSIGN_OR_RETURN(const bool complete, IsComplete());
    if (complete) return OkStatus();
    if (request_.tmpfs) {
      RETURN_IF_ERROR(MountTmpfs(*request_.tmpfs));
    } else {
      RETURN_IF_ERROR(MakeDirectoryOfVolume());
    }
    answer_.changed = true;
    // From here on the volume is there, complete or not.
    if (Status status = Complete(); !status.ok()) return status.error().AsMaybeApplied();
    return OkStatus();
  }

  Result<bool> IsComplete() {
    ASSIGN_OR_RETURN(const FileInfo marker, Call(Stat{.path = request_.marker}));
    if (marker.type == FileType::kMissing) return false;
    if (marker.type == FileType::kRegular) {
      ASSIGN_OR_RETURN(const bool there, IsThere());
      if (there) return true;
    }
    // A marker of a volume that is gone (a reboot takes the tmpfs and leaves the marker), or none
    // of ours.
    RETURN_IF_ERROR(Call(RemoveTree{DirectoryOf(request_.marker)}));
    return false;
  }

  Result<bool> IsThere() {
    if (request_.tmpfs) {
      ASSIGN_OR_RETURN(const MountedKind mounted, MountedAt(kernel_, request_.target, options_));
      return mounted == MountedKind::kTmpfs;
    }
    ASSIGN_OR_RETURN(const FileInfo place,
                     Call(Stat{.path = request_.target, .only_mount_point = true}));
    return place.type == FileType::kDirectory;
  }

  Status MakeDirectoryOfVolume() {
    RETURN_IF_ERROR(Call(MakeDirectory{.path = request_.target,
                                       .mode = request_.mode,
                                       .parent_mode = request_.parent_mode,
                                       .exact_mode = true}));
    return OkStatus();
  }

  Status MountTmpfs(const std::vector<std::string>& mount_options) {
    ASSIGN_OR_RETURN(const MountedKind mounted, MountedAt(kernel_, request_.target, options_));
    // A set-up that was interrupted before its marker.
    if (mounted == MountedKind::kTmpfs) return OkStatus();
    if (mounted != MountedKind::kNothing) {
      return Error::NotApplied(
          Code::kFailedPrecondition,
          request_.target.Display() + " has another filesystem than a tmpfs mounted");
    }
    RETURN_IF_ERROR(MakeDirectoryOfVolume());
    const auto done = Call(Mount{.fs_type = "tmpfs",
                                 .source = "tmpfs",
                                 .target = request_.target,
                                 .options = mount_options});
    if (!done.ok()) return done.error().AsMaybeApplied();  // the directory is there
    return OkStatus();
  }

  Status Own(bool read_only, std::optional<int64_t>& elapsed_ns) {
    if (!request_.gid) return OkStatus();
    const auto start = std::chrono::steady_clock::now();
    Result<OwnershipInfo> owned = Call(
        ChangeOwnership{.path = request_.target, .gid = *request_.gid, .read_only = read_only});
    if (!owned.ok()) {
      return owned.error().With("setting volume ownership of " + request_.target.Display());
    }
    elapsed_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::steady_clock::now() - start)
                     .count();
    return OkStatus();
  }

  // The marker comes last.
  Status Complete() {
    RETURN_IF_ERROR(Own(/*read_only=*/false, answer_.owned_made_ns));
    RETURN_IF_ERROR(Call(MakeDirectory{.path = DirectoryOf(request_.marker),
                                       .mode = kMarkerDirectoryMode,
                                       .parent_mode = kMarkerDirectoryMode}));
    RETURN_IF_ERROR(Call(MakeFile{.path = request_.marker,
                                  .mode = request_.tmpfs ? kMarkerMode : kPlainMarkerMode}));
    return OkStatus();
  }

  Status Fill(const VolumePayload& payload) {
    bool changed = false;
    for (const std::string& nested : payload.nested_mount_points) {
      ASSIGN_OR_RETURN(const Changed made,
                       Call(MakeDirectory{.path = request_.target.Below(nested),
                                          .mode = kNestedMountPointMode,
                                          .parent_mode = kNestedMountPointMode}));
      changed = changed || made.changed;
    }
    ASSIGN_OR_RETURN(const Changed written,
                     Call(WriteAtomicPayload{
                         .target = request_.target, .files = payload.files, .gid = request_.gid}));
    changed = changed || written.changed;
    answer_.changed = answer_.changed || changed;
    // The files had their group before they could be seen; this is for the links and directories
    // around them. A refresh without a change has none that are new.
    if (payload.is_refresh && !changed) return OkStatus();
    return Own(/*read_only=*/true, answer_.owned_filled_ns);
  }

  // Takes a volume that never had content away again, and keeps any other.
  Error GiveUp(const Error& cause) {
    // A worker that may still be writing is not to be worked against.
    if (request_.payload->is_refresh || cause.maybe_applied()) return cause;
    const auto data = Call(Stat{.path = request_.target.Below(kDataLink)});
    if (!data.ok() || data->type != FileType::kMissing) return cause.AsMaybeApplied();
    const Result<Changed> removed =
        DoRemoveVolume(kernel_, {request_.target, request_.marker}, options_);
    if (removed.ok()) return cause;
    return cause.With("cleaning up failed too (" + removed.error().message() + ")")
        .AsMaybeApplied();
  }

  Kernel& kernel_;
  const EnsureVolume& request_;
  const CallOptions& options_;
  EnsuredVolume answer_;
};

// An interrupted set-up on a kernel that lost track may have stacked two.
Status UnmountOwn(Kernel& kernel, const SafePath& target, const CallOptions& options) {
  while (true) {
    ASSIGN_OR_RETURN(const MountedKind mounted, MountedAt(kernel, target, options));
    if (mounted != MountedKind::kTmpfs && mounted != MountedKind::kHugetlbfs) return OkStatus();
    RETURN_IF_ERROR(kernel.Call(Unmount{.target = target}, options));
  }
}

// Stops at any other mount: nothing else was ever mounted on it by the agent.
Result<Changed> RemoveContentAndDirectory(Kernel& kernel, const SafePath& target,
                                          const CallOptions& options) {
  RETURN_IF_ERROR(UnmountOwn(kernel, target, options));
  return kernel.Call(RemoveTree{target}, options);
}

}  // namespace

Result<EnsuredVolume> DoEnsureVolume(Kernel& kernel, const EnsureVolume& request,
                                     const CallOptions& options) {
  return Ensuring(kernel, request, options).Run();
}

Result<Changed> DoRemoveVolume(Kernel& kernel, const RemoveVolume& request,
                               const CallOptions& options) {
  const Result<FileInfo> told = kernel.Call(Stat{.path = request.marker}, options);
  const bool is_plain =
      told.ok() && told->type == FileType::kRegular && (told->mode & 07777) == kPlainMarkerMode;
  // Somebody's files would be hidden for ever with what is mounted there.
  if (is_plain) RETURN_IF_ERROR(RefuseMount(kernel, request.target, options));
  const Result<Changed> marker = kernel.Call(RemoveTree{DirectoryOf(request.marker)}, options);
  if (!marker.ok()) {
    // On a root that takes no writes the mount can go all the same; a marker without its tmpfs
    // vouches for nothing.
    const Status unmounted = UnmountOwn(kernel, request.target, options);
    return unmounted.ok() ? marker.error().AsMaybeApplied() : unmounted.error().AsMaybeApplied();
  }
  // Without its marker the volume is no longer one that may be used.
  const Result<Changed> removed = RemoveContentAndDirectory(kernel, request.target, options);
  if (!removed.ok()) return removed.error().AsMaybeApplied();
  return Changed{marker->changed || removed->changed};
}

}  // namespace volumed
