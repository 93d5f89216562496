// CrashWorld: everything that outlives an agent (the node, the record store, the sources, the
// users' commands, the processes of containers), and what a correct agent owes them. A world is
// cloned, so that each crash point is walked from the same start.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_array_plugin.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "kube/objects.h"
#include "operation/storage_guard.h"
#include "plugins/fc_names.h"
#include "plugins/in_tree_plugins.h"
#include "unit/crash/crash_csi.h"
#include "unit/crash/outliving_worker.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// One complete content of a payload volume: name to content.
using PayloadVersion = std::map<std::string, std::string>;

// What a container wrote into a volume.
struct PodData {
  std::string path;
  std::string content;
  uint32_t gid = 0;
  bool on_tmpfs = false;   // a reboot takes it
  bool present = true;     // false: a reboot took it; the pod writes it again
  bool on_device = false;  // a reboot hides it until the device is mounted again
};

struct VolumeTruth {
  std::string plugin;
  bool has_mount = false;                // a tmpfs of its own is mounted at its path
  bool is_block = false;                 // its path is a link to the device
  std::vector<PayloadVersion> versions;  // what its readers may see; empty: no payload
  std::vector<std::string> sub_path_targets;
  bool sub_path_follows_content = false;  // a sub-path of a payload is bound anew with each version
  std::string host_path;                  // of a hostPath
  // What the pod writes as soon as a record says that it is set up; "": nothing.
  std::string first_write;
  bool first_write_stays = false;  // it outlives the pod
  // A record said that it is set up, and the pod has had a right to it ever since.
  bool established = false;
};

struct PodTruth {
  bool wanted = false;     // a source has it and nobody has deleted it
  bool commanded = false;  // deleted by uid while a source has it
  // The record of the command was written: no agent may set the pod up again.
  bool command_durable = false;
  int64_t held_by = 0;  // pid; a hold that was acknowledged and whose process lives
  std::map<std::string, VolumeTruth> volumes;
  std::vector<PodData> data;
  // A command has put it in the place of this pod, of which nothing may be there beside it.
  std::string successor_of;

  // Nothing of it may be taken away.
  bool is_protected() const { return wanted || held_by != 0; }
};

struct UserCommand {
  enum class Kind { kDelete, kHold, kDeleteObject, kApply };
  Kind kind = Kind::kDelete;
  std::string pod;
  int64_t pid = 0;
  bool acknowledged = false;
  bool force = false;                // of kDelete
  ObjectKey object = {};             // of kDeleteObject
  std::string manifest = {};         // of kApply
  std::optional<size_t> after = {};  // is given once this command has been answered
};

// Threads: one.
class CrashWorld {
 public:
  static constexpr const char* kRoot = "/var/lib/volumed";
  // Below it volumes are provisioned.
  static constexpr const char* kProvisionRoot = "/srv/pv";
  // A crash loop or an endless loop in an effect is a violation, not a hanging test.
  static constexpr uint64_t kMaxCallsOfAnAgent = 20000;

  CrashWorld();
  std::unique_ptr<CrashWorld> Clone() const;

  // ---- what happens to the world
  // The node starts anew; `power_loss`: what was not synced is lost as well.
  void Reboot(bool power_loss);
  void EndProcess(int64_t pid);
  // The pod's container writes a file into a volume, as uid 1000 and group `gid`.
  void PodWrites(const std::string& pod, const std::string& path, const std::string& content,
                 uint32_t gid, bool on_tmpfs);
  // Into a volume whose device keeps it.
  void PodWritesToDevice(const std::string& pod, const std::string& path,
                         const std::string& content, uint32_t gid);
  // A record says that the volume is there: the pod begins.
  void PodBegins(const std::string& pod, const std::string& spec);
  // What a reboot took of the wanted pods' data is written again.
  void PodsWriteAgain();

  // ---- older records
  // From now on the records may be older than the world: all that is owed is that no byte of a
  // persistent volume is lost. What pods write goes only to what they have.
  void BeginOlderRecords();
  bool has_older_records() const { return older_records_; }
  // Whether a container could write there now.
  bool MayWrite(const std::string& path, bool on_device) const;
  // The files of persistent volumes and the filesystems of their devices.
  std::map<std::string, std::string> StoredFiles() const;
  // Whatever has changed that the right records have kept is lost.
  void CheckNothingLost(const std::map<std::string, std::string>& with_right_records,
                        const std::string& when);
  void Loss(const std::string& what);

  // A user deletes a claim or a volume by command, and takes it out of its source.
  void DeleteByCommand(const std::string& source, const std::string& manifest,
                       const ObjectKey& object);

  // A user gives or deletes an object, once the command before has been answered.
  void CommandApply(const std::string& manifest);
  void CommandDelete(const ObjectKey& object);
  // The directory of applied objects: its files are real, and the world keeps them over the agents.
  std::map<std::string, std::string> ObjectFiles() const;
  void WriteObjectFile(const std::string& file, const std::string& content);

  // ---- what is owed
  void Violation(const std::string& what);
  // Everything established of protected pods is there, and precious files are. Payloads are read
  // only at or around `path`, where an effect was made; empty: all.
  void CheckState(const std::string& when, const std::string& path = "");
  std::string VolumePath(const std::string& pod, const std::string& spec) const;
  // The pod's node of a block volume.
  std::string NodePath(const std::string& pod, const std::string& spec) const;

  // A uid for an object whose manifest names none; never the same twice.
  std::string NewUid(const ObjectKey& object);
  // The directory that was made for a claim; "" if the records know none.
  std::string ProvisionedPath(const std::string& claim) const;

  // ---- what is compared
  // Files, mounts and records without what may differ between two correct runs: timestamps, numbers
  // of attempts, order of mounts.
  std::string Snapshot() const;
  // Uids are random: they are named after their objects instead.
  std::string WithoutUids(std::string text) const;
  // "" if no device is mounted any more, and no place for one is left; else what.
  std::string LeftOfDevices() const;
  // "" if nothing of the pod is left; else what.
  std::string LeftOf(const std::string& pod) const;

  const KubeletPaths paths{kRoot, DeviceLayouts()};
  ManualClock clock;
  std::unique_ptr<FakeKernel> kernel;
  std::unique_ptr<MemoryRecordStore> store;
  std::optional<BrokenLine> broken_line;  // still to come
  std::optional<WorkersRest> rest;        // of the last agent's worker
  int boots = 1;
  std::string boot_id() const { return "boot-" + std::to_string(boots); }
  // Source -> object -> manifest.
  std::map<std::string, std::map<std::string, std::string>> sources;
  // Object -> uids of the pods that its pod replaces by command, as its file says.
  std::map<std::string, std::set<PodUid>> replaces;
  // Objects whose files are in disorder: nobody can read them.
  std::set<std::string> broken;
  std::map<int64_t, uint64_t> processes;  // pid -> start time
  std::vector<UserCommand> commands;
  int64_t token_rotation_unix_ms = 0;
  // Objects can be applied; file -> content, as the last agent left them.
  std::optional<std::map<std::string, std::string>> object_files;
  std::string objects_directory;  // of the agent that runs
  // Directories of the agent's own, besides its root.
  std::map<std::string, std::string> own_directories;  // what it is -> path
  bool adopt_root = false;                             // --adopt-root
  StorageGuard* storage = nullptr;                     // of the agent that runs; for seeded bugs
  // Its sources are those of removal-deletes-claims: to take a claim away is to delete it.
  bool removal_deletes = false;

  std::map<std::string, PodTruth> pods;
  std::map<std::string, std::string> uids;     // of NewUid -> the object
  std::map<std::string, std::string> devices;  // persistent volume -> its block device
  std::set<std::string> block_volumes;         // of these, those that pods have as they are
  FakeArray array;                             // of those that are attached
  std::optional<CsiTruth> csi;                 // there is a CSI driver, and what it has
  std::set<std::string> flex_volumes;          // of those that are attached by FakeFlexDriver
  std::map<std::string, FcNames> fc_volumes;   // of those that lie on a Fibre Channel array
  std::vector<std::string> fc_disks;           // their SCSI disks, and what is made of these
  std::set<std::string> pool_volumes;          // of those that are made in the node's own pool
  // As the plugin's GetVolumeName has it.
  std::string NameOf(const std::string& volume) const;
  // The plugin of such a volume.
  std::string PluginOf(const std::string& volume) const;
  // Where its device is mounted.
  SafePath DevicePlaceOf(const std::string& volume) const;
  // UUIDs of filesystems that were mounted: from then on they are the only ones.
  std::map<std::string, std::string> filesystems;
  std::map<std::string, std::string> precious;  // path -> content: of nobody whom the agent serves
  std::vector<std::string> violations;

 private:
  static std::vector<KubeletPaths::DeviceLayout> DeviceLayouts();
  void CheckVolume(const std::string& pod, const std::string& spec, const VolumeTruth& volume,
                   const std::string& when, const std::string& changed);
  void CheckMapping(const std::string& pod, const std::string& spec, const std::string& when);
  bool ShowsOneVersion(const std::string& path, const VolumeTruth& volume) const;

  bool older_records_ = false;
  std::map<std::string, std::string> seen_;  // stored files since then, as they were last
};

}  // namespace volumed
