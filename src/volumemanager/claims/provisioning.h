// Provisioning: the volumes that this node makes itself, for claims whose class names one of its
// plugins as provisioner. A volume is planned, recorded as an intent, made, and recorded as made.
// From then on it is a PersistentVolume of the catalog, whose source is this class;
// volumemanager/claims/claims.h binds, releases and reclaims it like any other. An intent whose
// claim does not wait any more is undone. A claim gets one volume, whose name is made from the
// claim's uid. For a class whose provisioner is a CSI driver, the driver makes it: the very same
// call is made again until its outcome is known, also by the next agent. Source: kubernetes
// pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (provisionClaim,
// provisionClaimOperation).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "pluginmgr/volume_content.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/claim_binding.h"
#include "volumehost/volume_host.h"
#include "volumemanager/failure_history.h"
#include "volumemanager/lasting_rows.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {

// The name of the volume that is made for a claim with this uid.
std::string ProvisionedVolumeName(const std::string& claim_uid);

// Threads: the control thread. Blocks: never; volumes are made, and rows are written, on other
// threads. Errors: none; what keeps a volume from being made is an event of the claim and its
// ProblemOf().
class Provisioning {
 public:
  // The name of the source in the catalog.
  static constexpr const char* kSourceName = "provisioned";

  // All members outlive this object.
  struct Parts {
    LastingRows::Parts rows;
    ObjectCatalog& catalog;
    const VolumePluginMgr& plugins;
    VolumeOperations& operations;
    HostEvents& events;
    const HostNode& node;
    const VolumeContents& contents;
  };
  // All have to be set.
  struct Hooks {
    // What this object answers or does may have changed: the owner shall decide again.
    std::function<void()> changed;
    // The owner shall decide again at that time.
    std::function<void(TimePoint)> wake_at;
  };

  Provisioning(Parts parts, Hooks hooks);

  // Takes over what the last agent left; afterwards the catalog has the volumes that were made. To
  // be called once, before the first Serve().
  void Restore(const std::vector<ProvisionRecord>& records);

  // Begins or continues what the decisions ask for, and undoes what was begun for a claim that has
  // ended or has got another volume. What was begun for a claim that is missing, or of a class that
  // is missing, stays as it is. Without `may_begin` it is only found out what is to be undone.
  // REQUIRES: every source had delivered when the decisions were made.
  void Serve(const std::vector<PersistentVolumeClaimPtr>& claims,
             const std::map<ClaimKey, ClaimDecision>& decisions, const std::set<EndedClaim>& ended,
             bool may_begin);

  // Whether a plugin of this node makes what the claim waits for. That is asked of the class's
  // provisioner, so it may change when a plugin comes or goes.
  bool IsOurs(const ClaimDecision& decision) const;
  // Why none of them makes it, where one of them would have to; empty if somebody else may.
  std::string WhyNobodyMakes(const ClaimDecision& decision) const;
  // Why there is no volume yet; nullopt if somebody else has to serve the claim.
  std::optional<WantedProblem> ProblemOf(const ClaimDecision& decision) const;

  // The claims whose ProblemOf may have changed since the last call.
  std::set<ClaimKey> TakeChanged() { return std::exchange(changed_, {}); }

  // The uids of claims of this name for which a volume was begun or made. One whose row is being
  // removed counts no more: its storage is gone or belongs to nobody.
  std::set<std::string> ClaimUids(const ClaimKey& claim) const;
  // Whether a volume was begun or made for this very claim, and is on record.
  bool KnowsClaim(const std::string& uid) const { return Has(ProvisionedVolumeName(uid)); }
  // Whether the volume was made here, or is to be.
  bool Has(const std::string& volume_name) const { return entries_.contains(volume_name); }
  // The volumes that were begun or made, and those whose row is being removed.
  std::set<std::string> Volumes() const;
  // The storage of the volume is gone, or belongs to nobody any more. Its row goes, and with the
  // row the PersistentVolume leaves the catalog. Has no effect for another volume.
  void Remove(const std::string& volume_name);
  // The storage of a volume that was made here is larger now: the PersistentVolume says so, once
  // that is on record. Has no effect for another volume, or if it is as large already.
  void SetCapacity(const std::string& volume_name, const Quantity& capacity);
  // The claim for which a clone of this volume is being made, so that its storage is still needed;
  // nullopt if there is none.
  std::optional<ClaimKey> ClonedFor(const std::string& volume_name) const;
  // What kept volumes from being made may be gone: all of them, those of the claim and those that
  // are made from other volumes, or those of the class.
  void ResetBackoff();
  void ResetBackoffOf(const ClaimKey& claim);
  void ResetBackoffOf(const std::string& storage_class);
  // The same of what could not be made or undone and is by this Secret. False if there is none.
  bool ResetBackoffWith(const ObjectKey& secret);

  // A volume that was begun for a claim which does not wait for it any more: its maker is to take
  // back what there may be of it.
  struct Undoing {
    PersistentVolumePtr volume;  // as planned
    ClaimKey claim;
    std::string provisioner;
    std::optional<FailureHistory> failure;
  };
  // Those that may have been made, sorted by name.
  std::vector<Undoing> Undoings() const;
  // What this provisioner may have made and nobody has yet: with `over` nobody waits for it.
  struct Begun {
    std::string volume;
    ClaimKey claim;
    bool over = false;
  };
  // Sorted by name.
  std::vector<Begun> BegunBy(const std::string& provisioner) const;
  // An administrator's word that what there may be of such a volume is left where it is. `done` is
  // called once on the control thread: when that is on record, or before this returns if it cannot
  // be. A try that runs may still succeed before. Errors, not applied: NotFound if the volume is
  // not being undone; Unavailable if it is still being made.
  void GiveUp(const std::string& volume_name, const std::function<void(Status)>& done);

 private:
  // A volume that was begun, or made; as the record says, or is about to say.
  struct Entry {
    ProvisionRecord record;
    PersistentVolumePtr volume;  // as planned, or as made
    bool running = false;
    bool undoing = false;  // what runs is to undo it
    bool removing = false;
    // Something of it may be there: an earlier agent began it, or a try did not certainly fail.
    bool maybe_made = false;
    bool over = false;  // nobody waits for it any more
    // How it could not be made, or undone.
    std::optional<FailureHistory> failure;
    // Who has given up that it is undone, and waits for that to be on record.
    std::vector<std::function<void(Status)>> given_up;
  };

  // What a plugin is asked for. Errors: why the claim cannot get it, in the controller's words.
  Result<ProvisionRequest> RequestFor(const PersistentVolumeClaim& claim,
                                      const ClaimDecision& decision) const;
  Result<ProvisionRequest> PlanFor(const PersistentVolumeClaim& claim,
                                   const ClaimDecision& decision) const;
  void ServeClaim(const PersistentVolumeClaim& claim, const ClaimDecision& decision);
  // What the claim's data source is, for a plugin that takes it. Errors: it is not there.
  Status AddContent(const PersistentVolumeClaim& claim, const ProvisionableVolumePlugin& plugin,
                    VolumeOptions& options) const;
  void Intend(const PersistentVolumeClaim& claim, const ProvisionRequest& request);
  // What is on record of the intent.
  static void AddRecorded(const Entry& entry, ProvisionRequest& request);
  void Refuse(const ClaimDecision& decision, const Error& error);
  void Make(Entry& entry, ProvisionRequest request);
  void Made(const std::string& volume_name, const std::string& storage_class,
            const OperationOutcome<PersistentVolume>& outcome);
  static bool IsOver(const ProvisionRecord& record,
                     const std::map<ClaimKey, ClaimDecision>& decisions,
                     const std::set<EndedClaim>& ended);
  void Undo(Entry& entry);
  void Undone(const std::string& volume_name, const OperationOutcome<Unit>& outcome);
  void ResetBackoffWhere(const std::function<bool(const Entry&)>& concerns);
  void LeaveBehind(const Entry& entry);
  // What an undo that is over, or given up, has reserved is free again; then those are told.
  void EndUndo(const std::string& volume_name, std::vector<std::function<void(Status)>> given_up);
  // To be called after an attempt to start an operation.
  void Started(Entry& entry, StartResult started);
  void Write(Entry& entry);
  void RowIsDurable(const std::string& volume_name);
  PersistentVolumePtr MadeOf(const std::string& volume_name) const;
  void PublishAll();
  void Publish(const std::string& volume_name);

  const Parts parts_;
  const Hooks hooks_;
  LastingRows rows_;
  std::map<std::string, Entry> entries_;  // by the volume's name
  std::map<ClaimKey, Error> refused_;     // claims for which no volume can be planned
  std::map<std::string, PersistentVolumePtr> published_;
  bool has_list_ = false;  // the catalog has the volumes as a list
  std::set<ClaimKey> changed_;
  AliveGuard alive_;
};

}  // namespace volumed
