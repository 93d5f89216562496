// What the operations ask of the StorageGuard: which holder an operation is, and the steps that
// come before and after its effects. For the operations' own source files alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: any. Blocks: never, unless said otherwise.

// Who has the storage: a pod's volume, a device of the node, a reclaim. One PersistentVolume's name
// is the same in all of them.
std::string PodStorageId(const PodVolumeKey& key);
std::string DeviceStorageId(const UniqueVolumeName& device);
StorageHolder PodStorageHolder(const PodVolumeKey& key, const VolumeSpec& spec);
StorageHolder DeviceStorageHolder(const UniqueVolumeName& device, const SpecName& spec,
                                  StorageUse use);
StorageHolder ReclaimStorageHolder(const PersistentVolume& volume);

// What a record of the last agent says that somebody may have; none where nothing of it is there.
std::optional<KnownStorage> StorageOf(const PodVolumeRecord& record);
std::optional<KnownStorage> StorageOf(const DeviceRecord& record);
// False: there is none. Costs a look at the text, where StorageOf() decodes it.
bool MayHaveStorage(const PodVolumeRecord& record);
std::vector<KnownStorage> StorageOf(
    const std::vector<std::shared_ptr<const PersistentVolume>>& volumes);

// What pods have on the node without a PersistentVolume, and have not taken yet.
std::vector<KnownStorage> StorageOf(const StorageGuard& guard,
                                    const std::vector<std::shared_ptr<const Pod>>& pods);

// Nobody has it any more. A failure is the operation's, whose effect is done.
std::optional<OperationFailure> ReleaseStorage(StorageGuard& guard, const std::string& id,
                                               const char* operation);

// Before the set-up of a pod's volume: its storage is taken, and whose it is is recorded, if there
// is anything yet; afterwards what was made by the set-up is. Volumes without storage of their own
// need neither. Blocks: until the call's deadline. Errors: those of the guard.
class PodStorage {
 public:
  // All outlive this. `place`: of the pod's volume.
  PodStorage(StorageGuard& guard, Kernel& kernel, const MountRequest& request, VolumePlugin& plugin,
             SafePath place);
  Status Reserve(const CallOptions& call);
  // As Reserve, of a pod's own volume, with what a look has told of it.
  Status ReserveIdentified(const StorageIdentity& identity, const CallOptions& call);
  Status Record(const CallOptions& call);
  // What may be set up, and nothing else that is at its path later; null where Reserve had not to
  // look.
  std::shared_ptr<const StorageIdentity> approved() const { return approved_; }
  // What the pod has by now, or may have: for its row. Blocks: never.
  GivenStorage Given() const;
  // The set-up has certainly had no effect: it is not needed any more.
  void Release();

 private:
  Status RecordIdentity(const StorageIdentity& identity, const CallOptions& call);

  StorageGuard& guard_;
  Kernel& kernel_;
  const MountRequest& request_;
  const StorageHolder holder_;
  const std::optional<StorageName> name_;
  const bool reclaimable_;
  const SafePath place_;
  // The pod is about to be given a directory of the node by the claim that has it.
  bool keeps_directory_;
  bool recorded_ = false;
  std::shared_ptr<const StorageIdentity> approved_;
};

}  // namespace volumed
