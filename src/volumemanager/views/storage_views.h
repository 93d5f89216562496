// StorageViews: shows people and programs persistent volumes and claims, with what was decided
// about their binding, and answers what commands on them have to know.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kube/object_catalog.h"
#include "operation/operation.h"
#include "volume/claim_binding.h"
#include "volumemanager/views/view_types.h"

namespace volumed {

class ActualStateOfWorld;
class Claims;
class Clock;
class DesiredStateOfWorld;
class ObjectCommands;
class Provisioning;
class StorageExpander;
class VolumeOperations;
class VolumePluginMgr;
struct ActualDevice;
struct FailureHistory;

// Threads: the control thread. Blocks: never. Errors: none. A decision that is due is made first,
// except by ClaimStatus, PodOfClaim, IsBeingDeleted, HasEnded, UidOnRecord and Owed. Owed may
// therefore be called while a decision is being made.
class StorageViews {
 public:
  // All members outlive this object.
  struct Parts {
    const ObjectCatalog& catalog;
    const VolumePluginMgr& plugins;
    Claims& claims;  // a decision that is due is made before anything is shown
    const ObjectCommands& commands;
    const Provisioning& provisioning;
    const VolumeOperations& operations;
    const ActualStateOfWorld& actual;
    const DesiredStateOfWorld& desired;
    const StorageExpander& storage_expander;
    const Clock& clock;
  };

  explicit StorageViews(Parts parts) : parts_(parts) {}

  // Before the first decision every volume and claim is Pending. Volumes are sorted by name, claims
  // by namespace and name.
  std::vector<PersistentVolumeView> PersistentVolumes() const;
  std::vector<PersistentVolumeClaimView> PersistentVolumeClaims() const;
  // The one of these that has the name; nullopt if there is none. The cost depends on what is to be
  // undone, and not on all objects.
  std::optional<PersistentVolumeView> FindPersistentVolume(const std::string& name) const;
  std::optional<PersistentVolumeClaimView> FindPersistentVolumeClaim(const ClaimKey& claim) const;
  // As of the last decision; nullopt if nothing was decided about the object.
  std::optional<StorageStatus> StatusOf(const ObjectKey& object) const;
  // The claim's status as it is to be shown: that of the object, with what the agent knows.
  PersistentVolumeClaimStatus ClaimStatus(const PersistentVolumeClaim& claim) const;
  // For a claim or a PersistentVolume; false for any other object.
  bool IsBound(const ObjectKey& object) const;
  // The pod for whose generic ephemeral volume the claim was made; empty if it was not made for
  // one.
  PodUid PodOfClaim(const ObjectKey& claim) const;

  // Whether a command to delete the object is on record, and something still protects the object.
  bool IsBeingDeleted(const ObjectKey& object) const;
  // Whether a command has ended this very object.
  bool HasEnded(const ObjectKey& object, const std::string& uid) const;
  // The uid of an object that may not be readable now; "" if none is known.
  std::string UidOnRecord(const ObjectKey& object) const;

  // What cannot be taken back at the moment, and no pod shows: volumes that are to be undone or
  // reclaimed, and devices that are to leave the node.
  std::vector<OwedView> Owed() const;
  // The provisioner that is to undo the volume, which was begun for a claim that is gone; "" if it
  // is none of these.
  std::string WhoUndoes(const std::string& volume_name) const;
  // What this provisioner may have made, and no claim has yet, for people who would forget it:
  // each with what ends that.
  std::vector<std::string> BegunBy(const std::string& provisioner) const;
  // The claims of the class that have no volume yet and are not being deleted, sorted.
  std::vector<ClaimKey> ClaimsThatWaitIn(const std::string& storage_class) const;
  // The claims of the class that have a volume and are not being deleted, sorted.
  std::vector<ClaimKey> BoundClaimsOf(const std::string& storage_class) const;
  // The names of the PersistentVolumes of this CSI driver that are known, sorted.
  std::vector<std::string> VolumesOfDriver(const std::string& driver) const;
  // Of those that name this Secret for calls to their CSI driver.
  std::vector<std::string> VolumesWithSecret(const ObjectKey& secret) const;
  // Nullopt if no claim has left the volume, its policy retains it, a pod has it, or no CSI driver
  // is to reclaim it.
  std::optional<PendingReclaim> ReclaimOf(const std::string& volume_name) const;

 private:
  // In storage_views_owed.cc. `failure` may be null; `otherwise` is the message without one.
  ProblemView OwedProblem(const OperationKey& key, const FailureHistory* failure,
                          const std::string& otherwise) const;
  std::vector<PersistentVolumeView> Undoings() const;
  // What keeps the volume from being reclaimed; nullopt if nothing is known to.
  std::optional<ProblemView> ReclaimProblem(const std::string& volume_name) const;
  // The device of the volume, if it may be on this node; else null.
  const ActualDevice* DeviceOf(const std::string& volume_name) const;
  // Why the device of the volume cannot leave the node; "" if there is none, or nothing has failed.
  std::string WhyDeviceStays(const std::string& volume_name) const;
  std::vector<std::string> VolumesWhere(
      const std::function<bool(const PersistentVolume&)>& counts) const;
  std::vector<ClaimKey> ClaimsOf(const std::string& storage_class,
                                 PersistentVolumeClaimPhase phase) const;
  // Adds to a reason what the operation awaits: "volume_delete awaits CSI driver x: DeleteVolume
  // since ..". Has no effect if it does not run, or awaits nobody.
  void AddAwaited(const OperationKey& key, std::string& reason) const;
  PersistentVolumeView BuildVolume(const PersistentVolume& volume) const;
  PersistentVolumeClaimView BuildClaim(const PersistentVolumeClaim& claim) const;
  PersistentVolumeClaimView BuildClaimOfPod(const PersistentVolumeClaim& claim) const;
  std::optional<StorageStatus> ClaimStatusOf(const ClaimKey& claim) const;
  std::optional<StorageStatus> VolumeStatusOf(const std::string& name) const;

  const Parts parts_;
};

}  // namespace volumed
