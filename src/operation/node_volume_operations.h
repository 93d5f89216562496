// NodeVolumeOperations: VolumeOperations on real plugins, on the node that the agent is on. It
// knows no kind of operation: it gives each its place on the executor, and those that can be made
// together one place.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "operation/operation_executor.h"
#include "operation/operation_observer.h"
#include "operation/operation_parts.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "os/fault_domain.h"

namespace volumed {

// Threads: the control thread. Blocks: never. An operation that runs when this is destroyed ends by
// itself and is not reported; what the constructor was given must outlive it.
class NodeVolumeOperations final : public VolumeOperations {
 public:
  // `parts` has no keeper of volumes' records: it is made here. Without `fault_domains` (null) each
  // domain is a lane of its own name, and nothing is known to be mounted in the root.
  NodeVolumeOperations(Scheduler& scheduler, OperationParts parts, OperationObserver& observer,
                       BootId boot_id, FaultDomains* fault_domains = nullptr);
  ~NodeVolumeOperations() override;

  // What the agent before this one left in the store, once, before the first operation; of another
  // boot too (see AfterRestart). Without it every volume is taken as one without a record: a
  // teardown then needs a record write before its first effect, and fails on a full disk.
  void Restore(const std::vector<PodVolumeRecord>& volumes,
               const std::vector<DeviceRecord>& devices);

  // Of operations that start from now on; those that run keep what they were started with.
  void SetSettings(const OperationSettings& settings);

  std::vector<StartResult> StartAll(std::vector<std::unique_ptr<AnyOperation>> operations) override;

  void GiveUpWaiting(const OperationKey& key) override { executor_.GiveUpWaiting(key); }
  // To be called when FaultDomains::HealthOf() may answer something else.
  void LanesChanged() { executor_.LanesChanged(); }
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) override {
    return parts_->storage.SetUnknown(std::move(unknown));
  }

  bool IsPending(const OperationKey& key) const override { return executor_.IsPending(key); }
  std::optional<TimePoint> NextTry(const OperationKey& key) const override {
    return executor_.NextTry(key);
  }
  void ResetBackoff(const OperationKey& key) override { executor_.ResetBackoff(key); }
  std::vector<RunningOperation> Running() const override { return executor_.Running(); }
  std::optional<RunningOperation> FindRunning(const OperationKey& key) const override {
    return executor_.FindRunning(key);
  }

  // The record of a volume as it was last assigned; nullopt when there is none.
  std::optional<PodVolumeRecord> FindRecord(const PodVolumeKey& key) const;

  // Devices of block volumes that are held open.
  size_t held_devices() const { return parts_->holds->size(); }

 private:
  using OperationPtr = std::shared_ptr<AnyOperation>;

  StartResult StartAlone(const OperationPtr& operation);
  std::vector<StartResult> StartTogether(std::vector<OperationPtr> operations);
  OperationExecutor::Completion Completion(const OperationPtr& operation) const;
  // The same of one of several: what was left out is started by itself, in its own lane.
  OperationExecutor::Completion CompletionInGroup(const OperationPtr& operation);
  std::vector<FaultDomains::KnownMount> MountsAround(const SafePath& directory) const;

  std::shared_ptr<const OperationParts> parts_;
  const FaultDomains* const fault_domains_;
  OperationExecutor executor_;
};

}  // namespace volumed
