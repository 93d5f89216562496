// PodVolumeOperations: VolumeOperations on real plugins. It puts each operation together as a list
// of steps; StepRunner runs them with their records, OperationExecutor beside the control thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "operation/device_operations.h"
#include "operation/group_operations.h"
#include "operation/map_operations.h"
#include "operation/operation_executor.h"
#include "operation/operation_observer.h"
#include "operation/operation_settings.h"
#include "operation/pod_directories.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "records/record_store.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: the control thread. Blocks: never. An operation that runs when this is destroyed ends by
// itself and is not reported; what the constructor was given must outlive it.
class PodVolumeOperations final : public VolumeOperations {
 public:
  PodVolumeOperations(Scheduler& scheduler, RecordStore& store, VolumePluginMgr& plugins,
                      VolumeHost& host, Logger& logger, OperationObserver& observer,
                      DeviceRecordKeeper& devices, StorageGuard& storage, BootId boot_id,
                      OperationSettings settings,
                      PodDirectoryOwner pod_directory_owner = PodDirectoryOwner::kAgent,
                      FaultDomains* fault_domains = nullptr);
  ~PodVolumeOperations() override;

  // What the agent before this one left in the store, once, before the first operation; of another
  // boot too (see AfterRestart). Without it every volume is taken as one without a record: a
  // teardown then needs a record write before its first effect, and fails on a full disk.
  void Restore(const std::vector<PodVolumeRecord>& volumes,
               const std::vector<DeviceRecord>& devices);

  // Of operations that start from now on; those that run keep what they were started with.
  void SetSettings(const OperationSettings& settings) {
    parts_.settings = settings;
    executor_.SetLimits(settings.lanes);
  }

  void GiveUpWaiting(const OperationKey& key) override { executor_.GiveUpWaiting(key); }
  // To be called when FaultDomains::HealthOf() may answer something else.
  void LanesChanged() { executor_.LanesChanged(); }

  std::vector<StartResult> MountVolumes(std::vector<MountRequest> requests,
                                        GroupDone<MountedVolume> done) override;
  std::vector<StartResult> UnmountVolumes(std::vector<UnmountRequest> requests,
                                          GroupDone<Unit> done) override;
  StartResult MountVolume(MountRequest request,
                          std::function<void(OperationOutcome<MountedVolume>)> done) override;
  StartResult UnmountVolume(UnmountRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override;
  StartResult MapVolume(MountRequest request,
                        std::function<void(OperationOutcome<MountedVolume>)> done) override;
  StartResult UnmapVolume(UnmountRequest request,
                          std::function<void(OperationOutcome<Unit>)> done) override;
  StartResult RemovePod(PodUid pod, std::string pod_display_name, PodRecordEnd record,
                        std::function<void(OperationOutcome<Unit>)> done) override;

  StartResult MountDevice(MountDeviceRequest request,
                          std::function<void(OperationOutcome<MountedDevice>)> done) override;
  StartResult UnmountDevice(UnmountDeviceRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override;

  StartResult ExpandVolume(ExpandRequest request,
                           std::function<void(OperationOutcome<ExpandedVolume>)> done) override;
  StartResult AttachVolume(AttachRequest request,
                           std::function<void(OperationOutcome<AttachedVolume>)> done) override;
  StartResult DetachVolume(DetachRequest request,
                           std::function<void(OperationOutcome<Unit>)> done) override;
  StartResult VerifyVolumesAreAttached(
      VerifyAttachedRequest request,
      std::function<void(OperationOutcome<VerifiedAttachments>)> done) override;

  StartResult ForgetDevice(UniqueVolumeName device,
                           std::function<void(OperationOutcome<Unit>)> done) override;
  StartResult ForgetStorage(std::string volume_name,
                            std::function<void(OperationOutcome<Unit>)> done) override;
  StartResult ForgetStorageBut(std::set<std::string> volume_names,
                               std::function<void(OperationOutcome<Unit>)> done) override;
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) override {
    return parts_.storage.SetUnknown(std::move(unknown));
  }
  StartResult ReclaimVolume(ReclaimRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override;

  StartResult ProvisionVolume(
      ProvisionRequest request,
      std::function<void(OperationOutcome<PersistentVolume>)> done) override;
  StartResult UndoProvision(ProvisionRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override;

  bool IsPending(const OperationKey& key) const override;
  std::optional<TimePoint> NextTry(const OperationKey& key) const override;
  void ResetBackoff(const OperationKey& key) override;
  std::vector<RunningOperation> Running() const override;
  std::optional<RunningOperation> FindRunning(const OperationKey& key) const override;

  // The record of a volume as it was last assigned; nullopt when there is none.
  std::optional<PodVolumeRecord> FindRecord(const PodVolumeKey& key) const;

  // Devices of block volumes that are held open.
  size_t held_devices() const { return parts_.holds->size(); }

  // What operations use on an executor thread.
  struct Parts {
    VolumePluginMgr& plugins;
    VolumeHost& host;
    Logger& logger;
    RecordStore& store;
    OperationSettings settings;
    PodDirectoryOwner pod_directory_owner;
    DeviceRecordKeeper& devices;
    StorageGuard& storage;
    std::shared_ptr<VolumeRecordKeeper> keeper;
    std::shared_ptr<DeviceHolds> holds;

    GroupOperationParts ForGroups() const { return {plugins, host, settings, *keeper}; }
    DeviceOperationParts ForDevices() const {
      return {plugins, host, settings, devices, storage, *keeper, *holds, logger};
    }
    MapOperationParts ForMapping() const {
      return {plugins, host, settings, devices, storage, *keeper, *holds};
    }
  };

  // StorageGuard::AcceptDirectory: a command, and no wish of the volume manager.
  StartResult AcceptDirectory(const std::string& volume_name,
                              std::function<void(OperationOutcome<AcceptedDirectory>)> done);

 private:
  OperationExecutor::Operation MountOperation(const MountRequest& request) const;
  std::vector<FaultDomains::KnownMount> MountsAround(const PodUid& pod) const;
  SafePath PlaceOf(const PodVolumeKey& key, const std::string& plugin_name) const;
  StartResult ForgetRecords(const std::string& key, std::function<Status(StorageGuard&)> forget,
                            std::function<void(OperationOutcome<Unit>)> done);

  Parts parts_;
  const FaultDomains* const fault_domains_;
  OperationExecutor executor_;
};

}  // namespace volumed
