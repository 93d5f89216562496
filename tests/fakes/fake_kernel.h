// FakeKernel: a Kernel in memory: a tree of files, a mount table, and Linux' rules for both. It
// outlives the agents of a test, so that a new agent finds what the one before it left, and it
// fails, hangs or ends the agent on order.
//
// The world at the start: one filesystem at "/", empty. Directories and files for a test are made
// with Add...(), which are not calls and are not counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fakes/fake_device.h"
#include "fakes/fake_effects.h"
#include "fakes/fake_vfs.h"
#include "os/kernel.h"

namespace volumed {

struct FakeKernelOptions {
  KernelFeatures features = {true, true, true, true, true, true, true, true};
  // As WorkerKernelOptions::agent_root: binds from its filesystem come from a private anchor.
  std::string agent_root;
};

// What a test sees at a path.
struct FakeFile {
  FileType type = FileType::kMissing;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string content;  // of a file; of a link, what it points to
  bool is_mount_point = false;
  std::string owner = {};  // of a directory: its mark
};

// Threads: any. Blocks: never (a hang answers at once, see Hang()).
class FakeKernel final : public Kernel {
 public:
  enum class CrashPoint {
    kBefore,  // the effect is not made
    kAfter,   // the effect is made, and its caller never hears of it
    // As kAfter; but of a copy the first half is made, a cut is left frozen with its first file
    // alone, and a filesystem that gets another UUID cannot be mounted.
    kInside,
  };
  // Sees a request that hangs, and the deadline until which it would have, before it is answered;
  // is called without the lock, so that it may advance a clock or call the controls.
  using HangHook = std::function<void(const AnyRequest& request, Deadline deadline)>;

  explicit FakeKernel(FakeKernelOptions options = {});
  ~FakeKernel() override;

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override;

  // ---- the world, outside of the requests. Paths are absolute; links in them are followed, but
  // for the last name. Missing parents are made (0755, root). A path that cannot be is a mistake of
  // the test and throws std::logic_error.
  void AddDirectory(const std::string& path, uint32_t mode = 0755, uint32_t uid = 0,
                    uint32_t gid = 0) EXCLUDES(mu_);
  void AddFile(const std::string& path, std::string content, uint32_t mode = 0644, uint32_t uid = 0,
               uint32_t gid = 0) EXCLUDES(mu_);  // replaces an old file's content
  void AddSymlink(const std::string& path, const std::string& target) EXCLUDES(mu_);
  void AddHardLink(const std::string& path, const std::string& existing) EXCLUDES(mu_);
  // A socket, device or fifo.
  void AddSpecial(const std::string& path, FileType type, uint32_t mode = 0644) EXCLUDES(mu_);
  // An empty filesystem of any type ("ext4", "nfs4") at `path`, which is made if it is missing.
  // Unlike the request, this does not ask whether the kernel could mount it.
  void AddMount(const std::string& fs_type, const std::string& source, const std::string& path,
                const std::vector<std::string>& options = {}) EXCLUDES(mu_);
  // A block device, and its node at `path`. Its number is given here; a disk sequence and a size
  // too, where the test gives none.
  void AddDevice(const std::string& path, FakeDevice device = {}) EXCLUDES(mu_);
  // An export of an NFS server, empty, which a Mount of type nfs shows where there is a
  // /sbin/mount.nfs. What is in it stays, whoever mounts it.
  void AddExport(const std::string& source) EXCLUDES(mu_);
  // The node of a device that was added comes back, after it was removed.
  void ReturnDeviceNode(const std::string& path) EXCLUDES(mu_);
  // An executable file that RunProgram runs.
  void AddProgram(const std::string& path, FakeProgram program) EXCLUDES(mu_);
  // A file that has an effect when WriteAttribute writes to it.
  void AddAttribute(const std::string& path, FakeAttribute effect) EXCLUDES(mu_);
  FakeDevice Device(const std::string& path) const EXCLUDES(mu_);
  void ChangeDevice(const std::string& path, const std::function<void(FakeDevice&)>& change)
      EXCLUDES(mu_);
  // A loop device that somebody else attached to a file (or to a device's node that is bound
  // there).
  void AddLoop(const std::string& file) EXCLUDES(mu_);
  std::set<std::string> LoopFiles() const EXCLUDES(mu_);
  // Somebody writes to these bytes of a file, or of the loop device on it.
  void WriteBlocks(const std::string& path, int64_t offset, int64_t bytes) EXCLUDES(mu_);
  // What is on a file, with a loop device or without.
  FakeDevice Image(const std::string& path) const EXCLUDES(mu_);
  // Whether the filesystem that `path` lies on is frozen. Who writes to it then waits for ever.
  bool IsFrozen(const std::string& path) const EXCLUDES(mu_);
  // The requests that would have written to what was frozen, as the log has them.
  std::vector<std::string> blocked_writes() const EXCLUDES(mu_);
  // How many loop devices there may be that AttachLoop has made; one more is ENOSPC.
  void LimitLoops(size_t most) EXCLUDES(mu_);
  // How much the filesystem that `path` lies on can hold; 0: no limit.
  void LimitFilesystem(const std::string& path, int64_t bytes) EXCLUDES(mu_);
  // What the owner of a directory can do by FS_IOC_FSSETXATTR: it alone becomes one of the project.
  void GiveToProject(const std::string& path, uint64_t project) EXCLUDES(mu_);
  // What "btrfs quota disable" does, or a repair of an xfs: no limit is left, and nobody counts.
  void ForgetTreeLimits(const std::string& path) EXCLUDES(mu_);
  // Whether that filesystem, an ext4 or xfs, was mounted with prjquota.
  void CountProjects(const std::string& path, bool counts = true) EXCLUDES(mu_);
  // How many projects or subvolumes of it have a limit, with files or without.
  size_t TreeLimits(const std::string& path) EXCLUDES(mu_);
  // `to` is a name in the same directory.
  void Rename(const std::string& path, const std::string& to) EXCLUDES(mu_);
  // rm -r; not across mounts.
  void Remove(const std::string& path) EXCLUDES(mu_);
  // Takes away every mount at or below `path`, as an administrator's umount -R would.
  void UnmountBelow(const std::string& path) EXCLUDES(mu_);
  void SetAttributes(const std::string& path, uint32_t mode, uint32_t uid, uint32_t gid)
      EXCLUDES(mu_);
  // What another program of the node does, with this request's effect and errors; it is no call of
  // the agent's, and nothing is planned for it.
  Result<AnyAnswer> DoAside(const AnyRequest& request) EXCLUDES(mu_);

  // The mark of a directory (MarkStorage), whoever set it.
  void SetOwner(const std::string& path, const std::string& owner) EXCLUDES(mu_);

  FakeFile Find(const std::string& path, bool follow = false) const EXCLUDES(mu_);
  bool Exists(const std::string& path) const { return Find(path).type != FileType::kMissing; }
  bool IsMountPoint(const std::string& path) const { return Find(path).is_mount_point; }
  std::vector<MountEntry> Mounts() const EXCLUDES(mu_);

  // One line per file: path, type, mode, uid:gid, size and a digest of the content or the target
  // of a link; mounted filesystems included. Equal texts: equal trees.
  std::string DumpTree(const std::string& root) const EXCLUDES(mu_);
  // One line per mount but the root's: point, type, source, root, flags, propagation. No ids.
  std::string DumpMounts() const EXCLUDES(mu_);
  // What is stored to last, mounted or not: "DEVICE:PATH" and "EXPORT:PATH" -> content of a file,
  // PATH -> content of one of the node's own root; "DEVICE" -> the UUID of a filesystem that was
  // mounted since it was made. What is on the file of a loop device has "image INODE" for DEVICE,
  // attached or not.
  std::map<std::string, std::string> StoredFiles() const EXCLUDES(mu_);

  // ---- faults. `request` is a name as "BindMount"; empty: any.
  // The next `count` calls of this kind fail with `error`, and make their effect all the same if
  // `apply` is set (only sensible for an error that may have been applied).
  void FailNext(std::string_view request, Error error, int count = 1, bool apply = false)
      EXCLUDES(mu_);
  void FailNext(std::string_view request, int sys_errno, Outcome outcome, int count = 1);
  // Only calls about `path` or something below it.
  void FailNextBelow(std::string_view request, const std::string& path, Error error, int count = 1,
                     bool apply = false) EXCLUDES(mu_);
  // The next call of this kind is cut off as by CrashPoint::kInside, and its caller hears that the
  // worker died.
  void CutOffNext(std::string_view request) EXCLUDES(mu_);
  // So many cuts that come are thawed by their watch.
  void LetThawerWin(int count = 1) EXCLUDES(mu_);
  // Call number `n` fails.
  void FailAt(uint64_t n, Error error, bool apply = false) EXCLUDES(mu_);

  // Calls about `path` or something below it, or about a filesystem that is mounted at `path`
  // wherever else it shows, hang: they answer DeadlineExceeded, maybe applied (Cancelled when
  // their token is), without effect unless `apply`. What cannot hang does not: ListMounts,
  // ProbeFeatures, a Stat with only_mount_point of `path` itself, a forced Unmount.
  void Hang(const std::string& path, bool apply = false) EXCLUDES(mu_);
  void Unhang(const std::string& path) EXCLUDES(mu_);
  void SetHangHook(HangHook hook) EXCLUDES(mu_);
  // Calls whose deadline has passed by this clock end with DeadlineExceeded, not applied. Null:
  // none.
  void SetClock(const Clock* clock) EXCLUDES(mu_);
  // Called before each call is made, without the lock.
  void SetCallHook(std::function<void(const AnyRequest& request)> hook) EXCLUDES(mu_);

  // Call number `n`, counted from the making of the kernel or the last Revive(), throws
  // SimulatedCrash. From then on the kernel is inert: every call fails with Unavailable, not
  // applied, and changes nothing, so that destructors of the dying agent have no effect.
  void CrashAtCall(uint64_t n, CrashPoint point) EXCLUDES(mu_);
  bool crashed() const EXCLUDES(mu_);
  // Inert without a throw: for a crash that another fake ends the agent with.
  void Die() EXCLUDES(mu_);
  // The start of a new agent: no faults, no hangs, no crash planned, calls counted from 1 again.
  void Revive() EXCLUDES(mu_);
  // The node starts anew: only the filesystem at "/" and its files are left, and the devices with
  // what is on them. Hangs end.
  void Reboot() EXCLUDES(mu_);

  // The same files, mounts and options; no faults, hooks, counts or log.
  std::unique_ptr<FakeKernel> Clone() const EXCLUDES(mu_);

  // Calls since the making of the kernel or the last Revive(), failed ones included.
  uint64_t call_count() const EXCLUDES(mu_);
  // One line per call since then: number, request, paths, what came of it. Never contents.
  std::vector<std::string> call_log() const EXCLUDES(mu_);
  std::string CallLogText() const EXCLUDES(mu_);

 private:
  struct Fault {
    std::string request;  // empty: any
    std::string below;    // empty: any
    Error error;
    int count;
    bool apply;
    bool half = false;
  };
  struct Hung {
    uint64_t filesystem = 0;  // 0: only by path
    bool apply = false;
  };
  struct Crash {
    uint64_t call;
    CrashPoint point;
  };
  // What is to become of a call, decided before its effect.
  struct Plan {
    std::optional<Error> error;
    bool apply = true;
    bool half = false;
  };

  // A call that was counted, and what it sets off in the world outside of the kernel.
  struct Begun {
    uint64_t number = 0;
    size_t line = 0;  // of the log
    Plan plan;
    std::function<ProgramEnd()> program;
    std::function<void()> attribute;
  };
  // Nothing when the agent has ended. May throw, as may Finish.
  std::optional<Begun> Begin(const AnyRequest& request, const CallOptions& options) EXCLUDES(mu_);
  // Makes the effect, unless it is planned otherwise.
  Result<AnyAnswer> Finish(const AnyRequest& request, const CallOptions& options,
                           const Begun& begun, const ProgramEnd* program_end) EXCLUDES(mu_);
  void FindWhatItSetsOff(const AnyRequest& request, Begun* begun) REQUIRES(mu_);
  Result<AnyAnswer> Apply(const AnyRequest& request, const CallOptions& options,
                          const ProgramEnd* program_end, bool half = false) REQUIRES(mu_);
  // Whether it writes to a filesystem that is frozen.
  bool IsBlocked(const AnyRequest& request) const REQUIRES(mu_);
  Plan PlanCall(const AnyRequest& request, const CallOptions& options) REQUIRES(mu_);
  const Hung* FindHung(const AnyRequest& request) const REQUIRES(mu_);
  std::optional<Plan> TakeFault(const AnyRequest& request) REQUIRES(mu_);
  FakeLocation Require(const std::string& path, bool follow) const REQUIRES(mu_);
  // The directory of `path`, made if it is missing, and the last name.
  FakeLocation ParentForTest(const std::string& path, std::string* name) REQUIRES(mu_);
  void DumpBelow(FakeLocation at, const std::string& path, std::string* text) const REQUIRES(mu_);
  uint64_t RootFilesystem(const std::string& path) const REQUIRES(mu_);

  mutable Mutex mu_;
  FakeKernelOptions options_;
  FakeVfs vfs_ GUARDED_BY(mu_);
  FakeAnchor anchor_ GUARDED_BY(mu_);
  FakeDevices devices_ GUARDED_BY(mu_);
  FakePrograms programs_ GUARDED_BY(mu_);
  FakeAttributes attributes_ GUARDED_BY(mu_);
  uint64_t payloads_ GUARDED_BY(mu_) = 0;  // names the next payload directory
  uint64_t calls_ GUARDED_BY(mu_) = 0;
  std::vector<std::string> log_ GUARDED_BY(mu_);
  bool inert_ GUARDED_BY(mu_) = false;
  std::optional<Crash> crash_ GUARDED_BY(mu_);
  std::vector<Fault> faults_ GUARDED_BY(mu_);
  std::map<uint64_t, Fault> faults_at_ GUARDED_BY(mu_);
  std::map<std::string, Hung> hung_ GUARDED_BY(mu_);
  std::vector<std::string> blocked_writes_ GUARDED_BY(mu_);
  HangHook hang_hook_ GUARDED_BY(mu_);
  std::function<void(const AnyRequest&)> call_hook_ GUARDED_BY(mu_);
  const Clock* clock_ GUARDED_BY(mu_) = nullptr;
};

}  // namespace volumed
