// PoolBackend: how the volumes of one kind, and their cuts, are made, used and discarded. It keeps
// no record and decides nothing: PoolVolumes has written the intent before each call, and calls
// again after a crash.
//
// Threads: any; one call per volume, or cut, at a time. Blocks: until the call's deadline. Errors:
// those of the effects, besides the ones that are named. All calls may be repeated; one that fails
// may have been applied unless its error says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/kernel.h"
#include "pool/lvm_names.h"
#include "pool/pool_layout.h"
#include "pool/pool_parameters.h"
#include "pool/pool_record.h"

namespace volumed {

// How a volume is had on the node.
struct OpenedVolume {
  std::string device;  // "/dev/loop3"; empty of one that is a directory, or an export
  DeviceIdentity identity;
  // Whether the device bypasses the cache of the pool's filesystem. Otherwise each block that is
  // read or written may be in memory twice.
  bool direct_io = false;
  SafePath directory = {};  // of one that is none on a device, which nobody can be shown by that
  uint32_t project_id = 0;  // of that; 0: it has none
  // That directory has not the limit that it is to have, and its class does not insist: why, for
  // people.
  std::string why_unbounded = {};
};

// What is on the disk of a volume, or of a cut.
struct MadeArtefact {
  StorageObject object;
  // Of one that is measured, and is a directory, what it may have at most; if it has no limit, what
  // it has, and a block at least.
  int64_t size_bytes = 0;
  // 0 of a directory that nobody counts.
  int64_t allocated_bytes = 0;
  // It was made of something with which it has blocks in common now. Not of those that are
  // measured.
  bool shares_blocks = false;
  // Of a directory on a filesystem that counts projects: the one by which it is bounded
  // (PoolVolumeRecord::project_id); of one that is measured the one that it has now. 0: none.
  std::optional<uint32_t> project_id = std::nullopt;
};

// One of the volumes that are cut together.
struct CutWish {
  PoolVolumeRecord source;
  PoolCutRecord cut;
  // Where its filesystem is mounted for writing, and its number; nullopt: it is not.
  struct Mounted {
    SafePath place;
    uint32_t device_major = 0;
    uint32_t device_minor = 0;
    bool is_bind = false;  // of the pool's own filesystem, which nobody freezes for one volume
    friend bool operator==(const Mounted&, const Mounted&) = default;
  };
  std::optional<Mounted> mounted;
  PoolCutWay way = PoolCutWay::kAuto;
  PoolConsistency consistency = PoolConsistency::kAtomic;
};

struct CutLimits {
  Duration longest = std::chrono::seconds(1);  // from the begin of the freeze to its end
  std::vector<SafePath> never_frozen;          // lie on filesystems that are not frozen
};

struct MadeCut {
  // Of a copy there is no object yet; its size is that of its volume, and what it has allocated is
  // what it is promised.
  MadeArtefact artefact;
  bool was_frozen = false;
  bool is_copy = false;  // nothing is copied yet: CopyCut() has to follow
};

// Where volumes get their bytes from, if that is not the filesystem of the pool's directory.
struct PoolRoom {
  int64_t capacity_bytes = 0;
  int64_t available_bytes = 0;
  // Why nothing more gets in, whatever is available; for people. Empty: it does.
  std::string shortage;
};

// A file or directory that lies on the pool's filesystem, outside of its volumes and cuts.
struct ImportedFile {
  SafePath path;
  StorageObject object;  // that it has to be
};

// What an answer has of a volume that cannot be looked at.
enum class OfDamaged {
  kNothing,  // the others are not to wait for it
  kError     // nobody knows how much it has
};

class PoolBackend {
 public:
  virtual ~PoolBackend() = default;
  virtual PoolBackendKind kind() const = 0;

  // Makes it, empty and of `volume.capacity_bytes`. REQUIRES: nobody else knows the id. Errors:
  // ResourceExhausted, not applied; then nothing is left of it.
  virtual Result<MadeArtefact> Make(const PoolVolumeRecord& volume,
                                    const PoolParameters& parameters, const CallOptions& call) = 0;
  // Makes the volume of a file or directory with which it shares its blocks from then on; that one
  // stays as it is, and nothing is copied. Or makes it of a directory that it moves, and finds it
  // again when this is called again. REQUIRES: nobody else knows the id, and nobody writes to
  // the source. Errors: Unimplemented, not applied, if the backend can do neither;
  // FailedPrecondition, not applied, for another object than the expected one, for one on another
  // filesystem, and of an image for another size than `volume.capacity_bytes`; NotFound. After an
  // error that is not applied nothing is left of it.
  virtual Result<MadeArtefact> Import(const PoolVolumeRecord& volume,
                                      const PoolParameters& /*parameters*/,
                                      const ImportedFile& /*source*/, const CallOptions& /*call*/) {
    return Error::NotApplied(Code::kUnimplemented,
                             "volume " + volume.id + " cannot be made of what is there already");
  }
  // To be called before Discard() or DiscardCut() is put on record, so that what somebody still has
  // is not promised to go: closes the device. Errors, not applied: those of Discard for another
  // object; FailedPrecondition while the volume, a part of it or its device is mounted or bound
  // anywhere, or somebody has the device open.
  virtual Status PrepareDiscard(const PoolId& artefact, const StorageObject& recorded,
                                const CallOptions& call) = 0;
  // Removes what is there, if it is the recorded object, or if none is on record; what is missing
  // is success. Errors: FailedPrecondition for another object, for what somebody else has put
  // there, and while somebody has the volume open.
  virtual Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) = 0;
  // Makes it as large as that, also while it is open. Errors, not applied: ResourceExhausted;
  // FailedPrecondition, if it is larger already, for nobody else is to change its size.
  virtual Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t bytes,
                                    const PoolParameters& parameters, const CallOptions& call) = 0;
  // Makes a device of it that is tuned so, or says which directory it is. `before`, if it is not
  // empty, is called once it is certain that the file is the volume's, and before anything can see
  // its filesystem: it changes the UUID of a copy. Errors: FailedPrecondition, not applied, if its
  // file is not the recorded object, and if a directory that has to have a limit cannot be given
  // it; those of `before`; those of Tune, after which no device is left that this call made.
  using BeforeOpen = std::function<Status(const SafePath& file)>;
  virtual Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                    bool read_only, const BeforeOpen& before,
                                    const CallOptions& call) = 0;
  // Tunes the device that is open, and finds it so; success if none is. A directory is tuned
  // whether it is open or not. Errors: InvalidArgument, if the pool's filesystem cannot do it.
  virtual Status Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                      const CallOptions& call) = 0;
  // Bounds what a cgroup asks of the device that is open, and finds it so (SetIoLimits, whose
  // errors it has; `cgroups` are the names that it may have). Whether cgroups that are made below
  // it later are not bound with it. Errors: FailedPrecondition, not applied, if no device is open.
  virtual Result<bool> Throttle(const PoolVolumeRecord& volume, const IoLimits& limits,
                                const std::vector<std::string>& cgroups,
                                const CallOptions& call) = 0;
  // The inverse of Open. REQUIRES: nothing is mounted from it. Errors: FailedPrecondition, maybe
  // applied, while somebody has it open: then it goes when he closes it; not applied, while its
  // node in /dev is bound anywhere, which would show another device there once it is gone.
  virtual Status Close(const PoolId& volume, const CallOptions& call) = 0;
  // Of this pool's volumes those that are open, each once.
  virtual Result<std::vector<PoolId>> ListOpen(const CallOptions& call) = 0;
  // The devices of a volume that is open, as "/dev/loop3". Empty of one that is not, or that has
  // none of its own.
  virtual Result<std::vector<std::string>> ListDevices(const PoolId& /*volume*/,
                                                       const CallOptions& /*call*/) {
    return std::vector<std::string>();
  }
  // Ends what a tool has left half way that an earlier agent had started, and that holds up whoever
  // uses a volume. To be called when the pool is opened.
  virtual Status EndHalfDone(const CallOptions& /*call*/) { return OkStatus(); }
  // Nullopt: the filesystem of the pool's directory. Errors: FailedPrecondition, not applied, if
  // there is no such room.
  virtual Result<std::optional<PoolRoom>> MeasureRoom(const CallOptions& /*call*/) {
    return std::optional<PoolRoom>();
  }
  // What these volumes and cuts have on the disk. Those that are not there are missing from the
  // answer, and with kNothing those that cannot be looked at.
  virtual Result<std::map<PoolId, MadeArtefact>> Measure(const std::vector<PoolId>& volumes,
                                                         OfDamaged damaged,
                                                         const CallOptions& call) = 0;

  // Cuts all of them at one moment, one answer each in their order, or none. REQUIRES: nobody else
  // opens, closes, mounts or unmounts one of the volumes meanwhile. Errors: FailedPrecondition, not
  // applied, for what cannot be cut as it is used now; Aborted, maybe applied, if a freeze was
  // ended by its watch: none of the cuts counts. After one that is maybe applied files may be left
  // of each (DiscardCut), and nothing is frozen unless the error says so.
  virtual Result<std::vector<MadeCut>> Cut(const std::vector<CutWish>& wishes,
                                           const CutLimits& limits, const CallOptions& call) = 0;
  // Copies from `cut.copied_bytes` on, so fast (0: no limit); `call.progress` is told, on this
  // thread, up to which byte the copy is on the disk. It is not ended by the deadline. REQUIRES:
  // nobody writes to the source, unless its class wants no cut of one moment. The copy is never
  // given more than `cut` is promised. Errors, maybe applied: Cancelled; ResourceExhausted if more
  // than that was to be copied, or nothing is left.
  virtual Result<MadeArtefact> CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord& source,
                                       int64_t bytes_per_second, const CallOptions& call) = 0;
  // Makes the volume with the content of a whole cut of this pool, and of `volume.capacity_bytes`,
  // which are at least those of the cut. REQUIRES: nobody has opened it. Errors: as Make.
  virtual Result<MadeArtefact> Materialize(const PoolVolumeRecord& volume,
                                           const PoolParameters& parameters,
                                           const PoolCutRecord& cut, const CallOptions& call) = 0;
  // As Discard.
  virtual Status DiscardCut(const PoolCutRecord& cut, const CallOptions& call) = 0;
  // Where the bytes of a whole cut lie on the pool's disk, as ListExtents answers it. Errors, not
  // applied: FailedPrecondition of one that is no file, or whose file is missing or another one.
  virtual Result<ExtentList> ListExtentsOfCut(const PoolCutRecord& cut, int64_t from_offset,
                                              uint32_t most, const CallOptions& call) = 0;
};

// Volumes that are files with the content of a disk, used by way of loop devices. `kernel` outlives
// what is made. `pool_uuid` is for what is written for people.
std::unique_ptr<PoolBackend> MakeImageBackend(Kernel& kernel, PoolLayout layout,
                                              std::string pool_uuid);
// Volumes that are directories, with a limit by project quota. Their filesystem is the pool's.
std::unique_ptr<PoolBackend> MakeDirectoryBackend(Kernel& kernel, PoolLayout layout,
                                                  std::string pool_uuid);
// Volumes that are subvolumes of a pool on a btrfs, with a limit by their qgroup.
std::unique_ptr<PoolBackend> MakeSubvolumeBackend(Kernel& kernel, PoolLayout layout,
                                                  std::string pool_uuid);
// Volumes that are thin logical volumes of the names' thin pool, which is the administrator's.
std::unique_ptr<PoolBackend> MakeLvmBackend(Kernel& kernel, PoolLayout layout,
                                            std::string pool_uuid, LvmNames names);
// Volumes that are devices of the administrator's (kStatic), or exports of NFS servers (kExport):
// nothing is made, made larger, cut or deleted.
std::unique_ptr<PoolBackend> MakeStaticBackend(Kernel& kernel, PoolBackendKind kind);

}  // namespace volumed
