#include "os/local_kernel.h"

#include <utility>

#include "os/atomic_payload.h"
#include "os/block_device.h"
#include "os/cgroup_limits.h"
#include "os/composites.h"
#include "os/cut_frozen.h"
#include "os/device_copy.h"
#include "os/device_probe.h"
#include "os/extents.h"
#include "os/file_clone.h"
#include "os/file_copy.h"
#include "os/file_effects.h"
#include "os/file_lock.h"
#include "os/file_size.h"
#include "os/filesystem_rename.h"
#include "os/filesystem_tools.h"
#include "os/flush_device.h"
#include "os/freeze_point.h"
#include "os/grow_filesystem.h"
#include "os/kernel_features.h"
#include "os/loop_devices.h"
#include "os/mount_table.h"
#include "os/mounts.h"
#include "os/move_directory.h"
#include "os/ownership_walk.h"
#include "os/program.h"
#include "os/read_ahead.h"
#include "os/remove_tree.h"
#include "os/safe_open.h"
#include "os/storage_identity.h"
#include "os/subvolume.h"
#include "os/tree_copy.h"
#include "os/tree_quota.h"
#include "os/usage_walk.h"
#include "os/write_file.h"

namespace volumed {
namespace {

// What comes next looks at what is mounted now.
Result<Done> Mounted(Result<Done> result) {
  KeptRoots::LetGo();
  return result;
}

// One overload per primitive request; std::visit fails to compile where one is missing.
struct Effects {
  const KernelFeatures& features;
  BindAnchor& anchor;
  const std::vector<std::string>& tool_directories;
  const std::string& thawer;
  const CallOptions& options;

  Result<MountListing> operator()(const ListMounts& r) const {
    RETURN_IF_ERROR(CheckMountQuestion(r));
    ASSIGN_OR_RETURN(std::vector<MountEntry> mounts, ReadMountTable());
    return MountListing{SelectMounts(std::move(mounts), r)};
  }
  Result<KernelFeatures> operator()(const ProbeFeatures&) const { return features; }
  Result<Done> operator()(const Mount& r) const { return Mounted(DoMount(r, features, options)); }
  Result<Done> operator()(const BindMount& r) const {
    return Mounted(DoBindMount(r, features, anchor));
  }
  Result<Done> operator()(const Remount& r) const { return DoRemount(r, features); }
  Result<Changed> operator()(const Unmount& r) const {
    KeptRoots::LetGo();
    return DoUnmount(r);
  }
  Result<Changed> operator()(const MakeShared& r) const { return DoMakeShared(r, features); }
  Result<FileInfo> operator()(const Stat& r) const { return DoStat(r); }
  Result<FsInfo> operator()(const StatFs& r) const { return DoStatFs(r); }
  Result<UsageInfo> operator()(const Usage& r) const { return DoUsage(r, options); }
  Result<OwnershipInfo> operator()(const ChangeOwnership& r) const {
    return DoChangeOwnership(r, features, options);
  }
  Result<Changed> operator()(const MakeDirectory& r) const { return DoMakeDirectory(r); }
  Result<Changed> operator()(const MakeFile& r) const { return DoMakeFile(r); }
  Result<Changed> operator()(const RemoveDirectory& r) const { return DoRemoveDirectory(r); }
  Result<Changed> operator()(const RemoveFile& r) const { return DoRemoveFile(r); }
  Result<Changed> operator()(const RemoveTree& r) const {
    return DoRemoveTree(r, features, options);
  }
  Result<DirectoryListing> operator()(const ListDirectory& r) const { return DoListDirectory(r); }
  Result<FileContent> operator()(const ReadFile& r) const { return DoReadFile(r); }
  Result<Changed> operator()(const WriteAtomicPayload& r) const {
    return DoWriteAtomicPayload(r, options);
  }
  Result<DeviceProbe> operator()(const ProbeDevice& r) const { return DoProbeDevice(r, options); }
  Result<Done> operator()(const FormatDevice& r) const {
    return DoFormatDevice(r, tool_directories, options);
  }
  Result<FilesystemCheck> operator()(const CheckFilesystem& r) const {
    return DoCheckFilesystem(r, tool_directories, options);
  }
  Result<DeviceUsers> operator()(const CheckDeviceUse& r) const { return DoCheckDeviceUse(r); }
  Result<ProgramEnd> operator()(const RunProgram& r) const { return DoRunProgram(r, options); }
  Result<Changed> operator()(const MakeSymlink& r) const { return DoMakeSymlink(r); }
  Result<FileContent> operator()(const ReadLink& r) const { return DoReadLink(r); }
  Result<IdentifiedDevice> operator()(const IdentifyDevice& r) const { return DoIdentifyDevice(r); }
  Result<Changed> operator()(const DetachLoops& r) const { return DoDetachLoops(r); }
  Result<FilesystemGrowth> operator()(const GrowFilesystem& r) const {
    return DoGrowFilesystem(r, tool_directories, options);
  }
  Result<Done> operator()(const FlushDevice& r) const { return DoFlushDevice(r); }
  Result<Changed> operator()(const WriteFile& r) const { return DoWriteFile(r); }
  Result<Done> operator()(const WriteAttribute& r) const { return DoWriteAttribute(r); }
  Result<StorageIdentity> operator()(const IdentifyStorage& r) const {
    return DoIdentifyStorage(r, features);
  }
  Result<AttachedLoop> operator()(const AttachLoop& r) const { return DoAttachLoop(r, features); }
  Result<LoopList> operator()(const ListLoops& r) const { return DoListLoops(r); }
  Result<Done> operator()(const ConfigureLoop& r) const { return DoConfigureLoop(r); }
  Result<FileExtent> operator()(const SetFileSize& r) const { return DoSetFileSize(r, features); }
  Result<FileLock> operator()(const TakeFileLock& r) const { return DoTakeFileLock(r, features); }
  Result<FileExtent> operator()(const CloneFile& r) const { return DoCloneFile(r, features); }
  Result<FileExtent> operator()(const CopyFile& r) const {
    return DoCopyFile(r, features, options);
  }
  Result<Done> operator()(const SetReadAhead& r) const { return DoSetReadAhead(r); }
  Result<FileExtent> operator()(const CopyDevice& r) const {
    return DoCopyDevice(r, features, options);
  }
  Result<ExtentList> operator()(const ListExtents& r) const { return DoListExtents(r, features); }
  Result<FrozenCut> operator()(const CutFrozen& r) const {
    if (!thawer.empty()) return DoCutFrozen(r, features, thawer, options);
    return Error::NotApplied(Code::kUnimplemented, "cut while frozen: there is no thawer here");
  }
  Result<Changed> operator()(const ThawFilesystem& r) const {
    return DoThawFilesystem(r, features);
  }
  Result<FilesystemName> operator()(const ChangeFilesystemUuid& r) const {
    return DoChangeFilesystemUuid(r, features, tool_directories, options);
  }
  Result<Changed> operator()(const MarkStorage& r) const { return DoMarkStorage(r, features); }
  Result<FileExtent> operator()(const MakeSubvolume& r) const {
    return DoMakeSubvolume(r, features);
  }
  Result<Changed> operator()(const RemoveSubvolume& r) const {
    return DoRemoveSubvolume(r, features);
  }
  Result<TreeQuota> operator()(const SetTreeQuota& r) const { return DoSetTreeQuota(r, features); }
  Result<TreeQuota> operator()(const ReadTreeQuota& r) const { return DoReadTreeQuota(r); }
  Result<CgroupIoLimits> operator()(const SetIoLimits& r) const { return DoSetIoLimits(r); }
  Result<Changed> operator()(const MoveDirectory& r) const { return DoMoveDirectory(r, features); }
  Result<TreeCopied> operator()(const CopyTree& r) const {
    return DoCopyTree(r, features, options);
  }
};

}  // namespace

Result<std::unique_ptr<LocalKernel>> LocalKernel::Create(const LocalKernelOptions& options) {
  ASSIGN_OR_RETURN(const KernelFeatures features, ProbeKernelFeatures(options.masked_features));
  return std::unique_ptr<LocalKernel>(new LocalKernel(features, options));
}

LocalKernel::LocalKernel(const KernelFeatures& features, const LocalKernelOptions& options)
    : features_(features),
      tool_directories_(options.tool_directories),
      thawer_(options.thawer),
      anchor_(features, options.agent_root) {}
LocalKernel::~LocalKernel() = default;

Result<AnyAnswer> LocalKernel::Do(const AnyRequest& request, const CallOptions& options) {
  if (options.cancel != nullptr && options.cancel->cancelled()) {
    return Error::NotApplied(Code::kCancelled, "cancelled");
  }
  return DoPrimitive(Effects{features_, anchor_, tool_directories_, thawer_, options}, request);
}

}  // namespace volumed
