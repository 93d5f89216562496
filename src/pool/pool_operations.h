// The operations on volumes of a pool that are asked for by the volume's id, and not by a claim:
// those of a caller of the CSI driver. A claim of this node comes to the same functions by
// ProvisionVolume, ReclaimVolume and ExpandStorage.
//
// Of each Run: Threads: one at a time per key. Blocks: until the pool's answer or the deadline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "pool/pool_import.h"
#include "pool/pool_volumes.h"

namespace volumed {

// The volumes, and the name of the driver that serves them. It outlives the operations.
struct PoolServed {
  PoolVolumes& volumes;
  std::string driver;
  std::vector<std::string> own_directories = {};  // ImportParts
};

// The key "pool-name/<name>"; uses the device of a volume that it clones exclusively, so that
// nobody mounts, unmounts or changes that while it is cut. Errors: those of PoolVolumes::Create.
struct CreatePoolVolume : OperationOf<PoolVolumeRecord> {
  CreatePoolVolume(PoolServed& of, PoolVolumeWish asked) : pools(&of), wish(std::move(asked)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      PoolVolumeRecord& result) const;
  PoolServed* pools;
  PoolVolumeWish wish;
};

// The key "reclaim/<name>", with the name of PoolPvOf(); uses the device exclusively. Asks for the
// storage as a reclaim does (WithReclaimedStorage), and so is refused while any PersistentVolume
// names the volume, and while the node has it. Success if there is no volume of this id. Errors:
// those of WithReclaimedStorage and of the plugin's Deleter.
struct DeletePoolVolume : OperationOf<Unit> {
  DeletePoolVolume(PoolServed& of, std::string volume) : pools(&of), id(std::move(volume)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolServed* pools;
  std::string id;
};

// The key "pool-change/<id>"; uses the device exclusively. Makes the volume as large as `bytes` at
// least; its result is the capacity afterwards. Errors: those of PoolPlugin::ExpandVolumeDevice,
// also for an ext3 or ext4 that is mounted at a place that a CO gave, unless it is to grow also
// then.
struct ExpandPoolVolume : OperationOf<int64_t> {
  ExpandPoolVolume(PoolServed& of, std::string volume, int64_t to, bool also = false)
      : pools(&of), id(std::move(volume)), bytes(to), also_if_its_filesystem_cannot_follow(also) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      int64_t& result) const;
  PoolServed* pools;
  std::string id;
  int64_t bytes;
  // An ext that a CO has mounted, without CAP_SYS_RESOURCE: it follows when it is staged again.
  bool also_if_its_filesystem_cannot_follow;
};

// The key "pool-change/<id>"; uses the device exclusively. A throttle is set for the pods that have
// the volume by their rows. Errors: those of PoolVolumes::Modify; FailedPrecondition, not applied,
// for a throttle while the volume is published for a pod that nobody has named.
struct ModifyPoolVolume : OperationOf<Unit> {
  ModifyPoolVolume(PoolServed& of, std::string volume, StringMap changes)
      : pools(&of), id(std::move(volume)), parameters(std::move(changes)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolServed* pools;
  std::string id;
  StringMap parameters;
};

// The key "pool-import/<source>". Looks at what is there (PlanImport), and with `does` imports it
// then. Errors: those of PlanImport and of DoImport.
struct ImportPoolVolume : OperationOf<ImportPlan> {
  ImportPoolVolume(PoolServed& of, ImportRequest asked, bool does_it)
      : pools(&of), request(std::move(asked)), does(does_it) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      ImportPlan& result) const;
  PoolServed* pools;
  ImportRequest request;
  bool does;
};

// Where the volume's device is mounted, or its directory or subvolume is bound, for writing, by the
// records of this node and the mount table, for whoever cuts it. Nullopt: it is not mounted, or
// read-only, or raw. REQUIRES: the caller has the device for itself. Threads: any. Blocks: until
// the call's deadline. Errors, not applied: FailedPrecondition, if that is uncertain, as it is if
// it is mounted and has no row; those of IsShownAnywhere.
Result<std::optional<CutWish::Mounted>> MountedForWriting(const PoolVolumes& volumes,
                                                          const KubeletPaths& paths,
                                                          const DeviceRecordKeeper& devices,
                                                          Kernel& kernel, const std::string& id,
                                                          const CallOptions& call);

// Who has the volume's device for writing, mounted or raw, by the records of this node, for people;
// "" if nobody has. REQUIRES: as MountedForWriting. Threads: any. Blocks: never.
std::string WriterByRecord(const DeviceRecordKeeper& devices, const std::string& id);

// The uid of the pod that has the volume by its row: the one that a CO has named when it published
// it, if there is a place that it gave; "" if it named none. Pure; threads: any.
std::string PodOfPublication(const PodVolumeRecord& record);

// All of these are pure; threads: any.
//
// "volumed.io/pool/<id>".
UniqueVolumeName PoolDeviceName(const std::string& id);
// The PersistentVolume that stands for the volume where a caller has none: a csi source with the
// driver, and the id as its handle. Its name has a colon, which no object's name has: so it is
// never the name of a PersistentVolume that names the same volume, and that one counts as another.
PersistentVolume PoolPvOf(const PoolVolumeRecord& record, const std::string& driver,
                          const std::string& node);

}  // namespace volumed
