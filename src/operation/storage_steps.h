// What the operations ask the StorageGuard: which holder an operation is, and the steps before and
// after its effects. Only the operations' own source files include this.
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

// Threads: any. Blocks: never, unless the comment says otherwise.

// The holders of storage: a pod's volume ("pod/<pod uid>/<volume>"), a device of the node
// ("device/<unique name>"), a reclaim ("reclaim/<volume>"). They use the same StorageHolder::volume
// for one PersistentVolume, so that they may share what it has.
std::string PodStorageId(const PodVolumeKey& key);
std::string DeviceStorageId(const UniqueVolumeName& device);
StorageHolder PodStorageHolder(const PodVolumeKey& key, const VolumeSpec& spec);
StorageHolder DeviceStorageHolder(const UniqueVolumeName& device, const SpecName& spec,
                                  StorageUse use);
StorageHolder ReclaimStorageHolder(const PersistentVolume& volume);

// The storage that somebody may have by a record of the last agent; nullopt if nothing of it is
// there.
std::optional<KnownStorage> StorageOf(const PodVolumeRecord& record);
std::optional<KnownStorage> StorageOf(const DeviceRecord& record);
// False if the record has no storage. It only looks at the text, while StorageOf() decodes it.
bool MayHaveStorage(const PodVolumeRecord& record);
std::vector<KnownStorage> StorageOf(
    const std::vector<std::shared_ptr<const PersistentVolume>>& volumes);

// The storage that pods have on the node without a PersistentVolume, and have not taken yet.
std::vector<KnownStorage> StorageOf(const StorageGuard& guard,
                                    const std::vector<std::shared_ptr<const Pod>>& pods);

// Releases storage that nobody has any more. A failure is one of the operation, whose effect is
// done.
std::optional<OperationFailure> ReleaseStorage(StorageGuard& guard, const std::string& id,
                                               const char* operation);

// Takes the storage of a pod's volume before its set-up and records its owner, if the storage
// exists yet; if the set-up makes it, it is recorded afterwards. Volumes without storage of their
// own need neither. Blocks: until the call's deadline. Errors: those of the guard.
class PodStorage {
 public:
  // All arguments outlive this object. `place` is that of the pod's volume.
  PodStorage(StorageGuard& guard, Kernel& kernel, const MountRequest& request, VolumePlugin& plugin,
             SafePath place);
  Status Reserve(const CallOptions& call);
  // Like Reserve, for a pod's own volume that a look has already identified.
  Status ReserveIdentified(const StorageIdentity& identity, const CallOptions& call);
  // To be called after the set-up: records the storage if that did not exist before.
  Status Record(const CallOptions& call);
  // The only storage that may be set up, whatever is at its path later; null if Reserve did not
  // have to look.
  std::shared_ptr<const StorageIdentity> approved() const { return approved_; }
  // What the pod has by now, or may have; for its row. Blocks: never.
  GivenStorage Given() const;
  // The set-up has certainly had no effect: the storage is not needed any more.
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
  // The volume is a local one and the pod does not have it yet: it may only get the directory that
  // its claim had before.
  bool keeps_directory_;
  bool recorded_ = false;
  std::shared_ptr<const StorageIdentity> approved_;
};

}  // namespace volumed
