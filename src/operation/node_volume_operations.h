// NodeVolumeOperations: implements VolumeOperations with real plugins on this node. It knows no
// kind of operation: it gives each a place on the executor, and one place to those that can be made
// together.
#pragma once

#include <map>
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

// A volume of which there is a record, for people.
struct VolumeOnRecord {
  SpecName spec;
  PodUid pod;  // empty: no pod has it, but its device is on record
  std::string pod_namespace;
  std::string pod_name;
  VolumeState state = VolumeState::kNotSetUp;  // of the pod's volume, or of the device
  std::string mounted_at = {};  // of a device that is, or may be, mounted there; else empty
  friend bool operator==(const VolumeOnRecord&, const VolumeOnRecord&) = default;
};

// Threads: the control thread. Blocks: never. An operation that runs when this object is destroyed
// ends by itself and is not reported. The constructor's arguments outlive it. Errors of an
// operation go to its caller alone; a back-off is kept per key and kind of operation, and is lost
// with this object.
class NodeVolumeOperations final : public VolumeOperations {
 public:
  // `parts` comes without a keeper of volumes' records; the constructor makes it. If
  // `fault_domains` is null, each domain is a lane of its own name, and no mount in the root is
  // known.
  NodeVolumeOperations(Scheduler& scheduler, OperationParts parts, OperationObserver& observer,
                       BootId boot_id, FaultDomains* fault_domains = nullptr);
  ~NodeVolumeOperations() override;

  // Takes over what the agent before this one left in the store, also from another boot (see
  // AfterRestart). To be called once, before the first operation. Without it every volume counts as
  // one without a record: a teardown then has to write a record before its first effect, and fails
  // on a full disk.
  void Restore(const std::vector<PodVolumeRecord>& volumes,
               const std::vector<DeviceRecord>& devices);

  // The settings hold for operations that start from now on; operations that run keep their own.
  void SetSettings(const OperationSettings& settings);

  // Those that may be made together (PlaceInGroup), and are of the kind and in the directory of the
  // first such one, share one place; the others start alone.
  std::vector<StartResult> StartAll(std::vector<std::unique_ptr<AnyOperation>> operations) override;

  void GiveUpWaiting(const OperationKey& key) override { executor_.GiveUpWaiting(key); }
  // To be called when FaultDomains::HealthOf() may have another answer.
  void LanesChanged() { executor_.LanesChanged(); }
  void NameStorage(const std::string& volume, const StorageName* name) override {
    parts_->storage.NameStorage(volume, name);
  }
  void ForgetMade(const std::string& volume) override { parts_->storage.ForgetMade(volume); }
  void ExpectDeletions(const std::vector<StorageReservationRecord>& begun) override {
    parts_->storage.ExpectDeletions(begun);
  }
  std::map<std::string, std::string> VolumesBeingDeleted() const override {
    return parts_->storage.VolumesBeingDeleted();
  }
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) override {
    return parts_->storage.SetUnknown(std::move(unknown));
  }

  bool IsPending(const OperationKey& key) const override { return executor_.IsPending(key); }
  std::optional<TimePoint> NextTry(const OperationKey& key) const override {
    return executor_.NextTry(key);
  }
  void ResetBackoff(const OperationKey& key) override { executor_.ResetBackoff(key); }
  std::string FaultDomainOf(const OperationKey& key) const override;
  std::vector<RunningOperation> Running() const override { return executor_.Running(); }
  std::optional<RunningOperation> FindRunning(const OperationKey& key) const override {
    return executor_.FindRunning(key);
  }
  std::optional<RunningOperation> FindOwner(const UniqueVolumeName& device) const override {
    return executor_.FindOwner(device);
  }

  // The record of a volume as it was last assigned; nullopt if there is none.
  std::optional<PodVolumeRecord> FindRecord(const PodVolumeKey& key) const;

  // Whether a volume, or a device, of this fault domain is on record; `attached`: only devices that
  // the agent attaches count. Looks at all records.
  bool HasAnyOf(const std::string& fault_domain, bool attached) const;
  // What is on record of the domain's volumes, sorted by their names: the pods that have them, and
  // the devices of those that no pod has. Looks at all records.
  std::vector<VolumeOnRecord> VolumesOf(const std::string& fault_domain) const;
  // By the fault domain of each driver, how many of its volumes are on this node, or may be; one
  // that several pods have counts once. Looks at all records.
  std::map<std::string, int> CountByDriver() const;
  // How many operations wait for each lane of a driver.
  std::map<std::string, int> WaitingForDrivers() const { return executor_.WaitingForDrivers(); }

  // How many devices of block volumes are held open.
  size_t pinned_devices() const { return parts_->pins->size(); }

 private:
  using OperationPtr = std::shared_ptr<AnyOperation>;

  StartResult StartAlone(const OperationPtr& operation);
  std::vector<StartResult> StartTogether(std::vector<OperationPtr> operations);
  OperationExecutor::Completion Completion(const OperationPtr& operation) const;
  // The same for a member of a group; a member that was left out is started alone, in its own lane.
  OperationExecutor::Completion CompletionInGroup(const OperationPtr& operation);
  std::vector<FaultDomains::KnownMount> MountsAround(const SafePath& directory) const;

  std::shared_ptr<const OperationParts> parts_;
  const FaultDomains* const fault_domains_;
  OperationExecutor executor_;
};

}  // namespace volumed
