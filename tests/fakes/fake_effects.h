// FakeEffects: what each request does to a FakeVfs, with the answers and errors of LocalKernel. One
// operator() per request: a new effect does not compile until it stands here.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "fakes/fake_device.h"
#include "fakes/fake_vfs.h"
#include "os/composites.h"
#include "os/kernel.h"
#include "os/mount_options.h"

namespace volumed {

// What is refused before anything is done.
inline Error Refuse(const std::string& what, const std::string& why, Code code) {
  return Error::NotApplied(code, what + ": " + why);
}

// The private clone that binds of the agent's own filesystem come from; see os/bind_anchor.h.
struct FakeAnchor {
  bool made = false;
  uint64_t cloned = 0;      // the mount that was cloned
  std::string mount_point;  // of that
  uint64_t mount = 0;       // the clone; 0: the anchor serves nothing
};

inline bool IsMissing(const Error& error) { return error.sys_errno() == ENOENT; }

class FakeKernel;

// The programs of the node, by their paths. A file that is none of them is not executable. What a
// program remembers it keeps in files of its world, which may be a copy of another.
using FakeProgram =
    std::function<ProgramEnd(FakeKernel& world, const std::vector<std::string>& arguments)>;
using FakePrograms = std::map<std::string, FakeProgram>;
// Attributes that do something, by their paths without links.
using FakeAttribute = std::function<void(FakeKernel& world, const std::string& value)>;
using FakeAttributes = std::map<std::string, FakeAttribute>;

// What the effects work on; outlives them.
struct FakeEffectState {
  FakeVfs& vfs;
  FakeAnchor& anchor;
  FakeDevices& devices;
  const FakePrograms& programs;
  uint64_t& payloads;  // makes the names of payload directories differ
  const KernelFeatures& features;
  const std::string& agent_root;
  const ProgramEnd* program_end = nullptr;  // of the program that the request runs
  // Effects that can be cut off half way are: CopyFile, CopyDevice, CopyTree, CutFrozen,
  // ChangeFilesystemUuid.
  bool half = false;
};

// The flags of an open(2) that matter here: O_NOFOLLOW, O_DIRECTORY.
struct FakeOpen {
  bool nofollow = false;
  bool directory = false;
};

class FakeEffects {
 public:
  FakeEffects(const FakeEffectState& state, const CallOptions& options)
      : vfs_(state.vfs), state_(state), options_(options) {}

  Result<AnyAnswer> Do(const AnyRequest& request) { return DoPrimitive(*this, request); }

  Result<MountListing> operator()(const ListMounts& request);
  Result<KernelFeatures> operator()(const ProbeFeatures& request);
  Result<Done> operator()(const Mount& request);
  Result<Done> operator()(const BindMount& request);
  Result<Done> operator()(const Remount& request);
  Result<Changed> operator()(const Unmount& request);
  Result<Changed> operator()(const MakeShared& request);
  Result<FileInfo> operator()(const Stat& request);
  Result<FsInfo> operator()(const StatFs& request);
  Result<UsageInfo> operator()(const Usage& request);
  Result<OwnershipInfo> operator()(const ChangeOwnership& request);
  Result<Changed> operator()(const MakeDirectory& request);
  Result<Changed> operator()(const MakeFile& request);
  Result<Changed> operator()(const RemoveDirectory& request);
  Result<Changed> operator()(const RemoveFile& request);
  Result<Changed> operator()(const RemoveTree& request);
  Result<DirectoryListing> operator()(const ListDirectory& request);
  Result<FileContent> operator()(const ReadFile& request);
  Result<Changed> operator()(const WriteAtomicPayload& request);
  // In fake_effects_devices.cc.
  Result<DeviceProbe> operator()(const ProbeDevice& request);
  Result<Done> operator()(const FormatDevice& request);
  Result<FilesystemCheck> operator()(const CheckFilesystem& request);
  Result<Done> operator()(const FlushDevice& request);
  Result<DeviceUsers> operator()(const CheckDeviceUse& request);
  // The program itself has run already.
  Result<ProgramEnd> operator()(const RunProgram& request);
  Result<IdentifiedDevice> operator()(const IdentifyDevice& request);
  Result<Changed> operator()(const DetachLoops& request);
  // In fake_effects.cc.
  Result<Changed> operator()(const MakeSymlink& request);
  Result<FileContent> operator()(const ReadLink& request);
  Result<Changed> operator()(const WriteFile& request);
  Result<Done> operator()(const WriteAttribute& request);
  Result<FilesystemGrowth> operator()(const GrowFilesystem& request);
  // In fake_effects_storage.cc.
  Result<StorageIdentity> operator()(const IdentifyStorage& request);
  Result<Changed> operator()(const MarkStorage& request);
  // In fake_effects_images.cc.
  Result<AttachedLoop> operator()(const AttachLoop& request);
  Result<LoopList> operator()(const ListLoops& request);
  Result<Done> operator()(const ConfigureLoop& request);
  Result<Done> operator()(const SetReadAhead& request);
  Result<FileExtent> operator()(const SetFileSize& request);
  Result<FileLock> operator()(const TakeFileLock& request);

  // In fake_effects_cuts.cc.
  Result<FileExtent> operator()(const CloneFile& request);
  Result<FileExtent> operator()(const CopyFile& request);
  Result<FileExtent> operator()(const CopyDevice& request);
  Result<ExtentList> operator()(const ListExtents& request);
  Result<FrozenCut> operator()(const CutFrozen& request);
  Result<Changed> operator()(const ThawFilesystem& request);
  Result<FilesystemName> operator()(const ChangeFilesystemUuid& request);
  // In fake_effects_trees.cc.
  Result<FileExtent> operator()(const MakeSubvolume& request);
  Result<Changed> operator()(const RemoveSubvolume& request);
  Result<TreeQuota> operator()(const SetTreeQuota& request);
  Result<TreeQuota> operator()(const ReadTreeQuota& request);
  // In fake_effects_moves.cc.
  Result<Changed> operator()(const MoveDirectory& request);
  Result<TreeCopied> operator()(const CopyTree& request);
  // In fake_effects_cgroups.cc.
  Result<CgroupIoLimits> operator()(const SetIoLimits& request);

  // What happens by itself: loop devices that were detached in use go when they are free, and what
  // was on a file goes with it.
  void Settle();
  // Every loop device loses its file, whoever has it open.
  void DropLoops();

  // ---- shared by the effects, and by the fake kernel's hangs
  using OpenHow = FakeOpen;
  Result<FakeLocation> Open(const SafePath& path, OpenHow how = {}) const;
  struct Parent {
    FakeLocation directory;
    std::string name;
  };
  Result<Parent> OpenParent(const SafePath& path) const;

 private:
  Status CheckSameMount(const SafePath& path);
  static Status Validate(const SafePath& path);
  Result<std::string> LinkAt(const Parent& parent, const std::string& what) const;
  // openat2 of one name without links; an errno.
  int OpenChild(FakeLocation directory, const std::string& name, bool no_xdev,
                FakeLocation* found) const;
  Result<bool> IsMountPoint(const SafePath& path) const;
  int RootOf(const SafePath& path, OpenHow how, FakeLocation* found) const;

  Result<FakeDevice*> FindDevice(const std::string& path) const;
  Result<FakeDevice*> FindNode(FakeLocation node, const std::string& path) const;
  Result<FakeDevice*> OpenDevice(const std::string& path) const;
  Result<FakeDevice*> OpenNode(FakeLocation node, const std::string& path) const;
  static Result<FakeDevice*> Opened(FakeDevice* device, const std::string& path);
  StorageObject ObjectAt(FakeLocation at) const;
  Status ExpectPart(FakeLocation source, const FilesystemPart& part);
  Status ExpectObject(FakeLocation at, const StorageObject& expected) const;
  void AddPlace(FakeLocation at, const std::string& missing, StorageIdentity& identity) const;
  void AddFiles(const FakeDevice& device, StorageIdentity& identity) const;
  void AddDevice(const FakeDevice& device, std::vector<std::string>& keys) const;
  Status ExpectDevice(FakeLocation node, const std::string& path,
                      const DeviceIdentity& expected) const;
  bool IsMounted(const FakeDevice& device) const;
  Result<FakeDevice*> FindRenamed(const ChangeFilesystemUuid& request,
                                  const std::string& what) const;
  Result<FakeLocation> OpenImage(const SafePath& path, const StorageObject& expected,
                                 const std::string& what) const;
  Result<FakeLocation> OpenOrMakeImage(const SetFileSize& request, const std::string& what,
                                       bool* made);
  Result<FakeLocation> OpenLockFile(const TakeFileLock& request, const std::string& what,
                                    bool* made);
  struct Copied {
    FakeLocation from;
    FakeLocation to;
    bool made = false;
  };
  Result<Copied> OpenCopy(const CutPart& part, bool beginning, const std::string& what);
  void Unmake(const Copied& copy, const SafePath& to);
  void CopyImage(const Copied& copy);
  void PutImage(const FakeDevice& source, uint64_t file);
  Result<Copied> OpenTarget(const SafePath& to, std::optional<FakeLocation> from,
                            const std::string& mark, bool beginning, const std::string& what);
  Status CheckHadByReaders(const FakeDevice& device, const std::string& what) const;
  Status Share(const Copied& copy, const std::string& what);
  FileExtent ExtentAt(FakeLocation file) const;
  Result<FakeLocation> OpenPoint(const FreezePoint& point) const;
  bool IsToBeFrozen(const CutFrozen& request, FakeLocation at) const;
  Status CheckCut(const CutFrozen& request, const std::string& what);
  void SetFrozen(const CutFrozen& request, bool frozen);
  Status CheckMade(const MakeSubvolume& request, FakeLocation there, uint64_t source,
                   const std::string& what) const;
  Result<TreeQuota> QuotaAt(FakeLocation at, const std::string& what) const;
  Result<uint64_t> ProjectFor(const SetTreeQuota& request, FakeLocation there,
                              const std::string& what) const;
  std::optional<FakeLocation> FileOfCgroup(FakeLocation cgroup, const std::string& name) const;
  Status WriteLimit(FakeLocation file, const std::string& content, bool* changed);
  Status LimitEach(FakeLocation cgroup, const std::string& number, const IoLimits& limits,
                   bool* changed);
  Status CheckLoopFits(const FakeDevice& device, const AttachLoop& request,
                       const std::string& what) const;
  Result<FakeDevice*> FreeLoop(const std::string& what);
  FakeDevice* MakeLoop(const std::string& path);
  void AttachTo(FakeDevice& device, const AttachLoop& request, FakeLocation file);
  void Detach(FakeDevice& device);
  // As the kernel shows it: the path that the file has now, or had.
  std::string PathOfLoop(const FakeLoopFile& loop, bool* deleted) const;
  // The path as it is given, and without links among its trusted parents.
  std::vector<std::string> NamesOf(const SafePath& path) const;
  // Its inode; 0 if the path is of no regular file.
  uint64_t RegularFileAt(const SafePath& path) const;
  // Somebody has a file of the mount open.
  bool HasOpenFile(uint64_t mount) const;
  // Not to be had by O_EXCL.
  bool IsInUse(const FakeDevice& device) const;
  std::string FindDuplicate(const FakeDevice& device) const;
  DeviceProbe Look(const FakeDevice& device, bool full_scan) const;
  Status Pin(const FakeDevice& device, const std::string& path,
             const DeviceIdentity& expected) const;
  // The filesystem of the device that a mount's source is; 0 where it is no device of this world.
  // Of an export that mount.nfs mounts; 0 for other types, and without that helper.
  Result<uint64_t> FilesystemOfExport(const Mount& request, const std::string& what);
  Result<uint64_t> FilesystemOfDevice(const Mount& request, const MountOptions& options,
                                      const std::string& what);

  Status Reconfigure(const Remount& request, FakeLocation target, const std::string& what);
  Status AttachTree(uint64_t tree, FakeLocation target, bool by_tree, const std::string& what);
  std::optional<FakeLocation> FindInAnchor(const BindMount& request, FakeLocation source);
  void MakeAnchor();

  Result<Changed> MakeOneDirectory(FakeLocation parent, const std::string& name, uint32_t mode,
                                   bool exact_mode, const std::string& what, Outcome outcome);
  Result<Changed> MakeParents(const SafePath& path, uint32_t mode, const std::string& what);
  Result<Changed> RemoveOne(const SafePath& path, bool directory, const std::string& what);

  struct Removal {
    bool changed = false;
    bool met_mount = false;
    std::optional<Error> failure;
  };
  // These answer whether the name stays.
  bool UnlinkName(FakeLocation directory, const std::string& name, bool is_directory,
                  Removal* removal);
  bool RemoveName(FakeLocation directory, const std::string& name, bool top, Removal* removal);
  static Result<Changed> AnswerOf(const Removal& removal, const std::string& what);
  Result<Changed> RemoveContent(const RemoveTree& request);
  Result<Changed> RemoveExpected(const RemoveTree& request);
  Result<Changed> RemoveAt(FakeLocation directory, const std::string& name,
                           const std::string& what);

  struct Group {
    uint32_t gid = 0;
    bool read_only = false;
  };
  Status OwnEntry(FakeLocation at, const Group& wanted, OwnershipInfo* info);
  Status OwnTree(FakeLocation at, const Group& wanted, OwnershipInfo* info);
  Status OwnAll(FakeLocation at, const Group& wanted, const std::string& what, OwnershipInfo* info);
  void CountUsage(FakeLocation at, std::set<uint64_t>* seen, UsageInfo* info) const;

  // WriteAtomicPayload, step by step; in fake_payload.cc.
  struct Payload;
  Status CheckPayload(const WriteAtomicPayload& request) const;
  bool PayloadIsCurrent(const Payload& payload) const;
  Status WritePayloadFile(FakeLocation directory, const PayloadFile& file,
                          std::optional<uint32_t> gid, const std::string& what);
  Status FillPayloadDirectory(const Payload& payload, const std::string& name);
  int SwitchPayload(FakeLocation target, const std::string& name);
  int MendPayloadLink(FakeLocation target, const std::string& name);
  Status TidyPayload(const Payload& payload, const std::string& published);

  void Progress(int64_t done) const {
    if (options_.progress) options_.progress(done);
  }

  FakeVfs& vfs_;
  const FakeEffectState& state_;
  const CallOptions& options_;
};

}  // namespace volumed
