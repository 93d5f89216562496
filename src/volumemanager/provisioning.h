// Provisioning: the volumes that this node makes itself, for claims whose class names one of its
// plugins as provisioner. A volume is planned, recorded as an intent, made, recorded as made, and
// from then on is a PersistentVolume of the catalog, whose source this is; what binds, releases and
// reclaims volumes (volumemanager/claims.h) takes it like any other. An intent whose claim does not
// wait any more is undone. A claim has one volume: its name is the claim's uid.
// Source: kubernetes pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2
// (provisionClaim, provisionClaimOperation).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/claim_binding.h"
#include "volumehost/volume_host.h"
#include "volumemanager/lasting_rows.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {

// The name of the volume that is made for a claim with this uid.
std::string ProvisionedVolumeName(const std::string& claim_uid);

// Threads: the control thread. Blocks: never.
class Provisioning {
 public:
  // Of the catalog.
  static constexpr const char* kSourceName = "provisioned";

  // All outlive this.
  struct Parts {
    LastingRows::Parts rows;
    ObjectCatalog& catalog;
    const VolumePluginMgr& plugins;
    VolumeOperations& operations;
    HostEvents& events;
  };
  struct Hooks {
    // What this answers, or does, may be other now: decide anew.
    std::function<void()> changed;
    // Decide anew then.
    std::function<void(TimePoint)> wake_at;
  };

  Provisioning(Parts parts, Hooks hooks);

  // What the last agent left; made volumes are in the catalog afterwards.
  void Restore(const std::vector<ProvisionRecord>& records);

  // Begins or goes on with what the decisions ask for, and undoes what was begun for a claim that
  // has ended or has got another volume. What was begun for one that is missing, or of a class that
  // is missing, stays as it is. REQUIRES: they were made when every source had delivered.
  void Serve(const std::vector<PersistentVolumeClaimPtr>& claims,
             const std::map<ClaimKey, ClaimDecision>& decisions, const std::set<EndedClaim>& ended);

  // A plugin of this node makes what the claim waits for.
  bool IsOurs(const ClaimDecision& decision) const;
  // Why there is no volume yet; nothing for a claim that is somebody else's to serve.
  std::optional<WantedProblem> ProblemOf(const ClaimDecision& decision) const;

  // The claims whose ProblemOf may be another one since this was called last.
  std::set<ClaimKey> TakeChanged() { return std::exchange(changed_, {}); }

  // Of the claims of this name for which a volume was begun, or made.
  std::set<std::string> ClaimUids(const ClaimKey& claim) const;
  // A volume was begun, or made, for this very claim, and is on record.
  bool KnowsClaim(const std::string& uid) const { return Has(ProvisionedVolumeName(uid)); }
  // A volume that was made here, or is to be.
  bool Has(const std::string& volume_name) const { return entries_.contains(volume_name); }
  // Its storage is gone, or is nobody's any more.
  void Remove(const std::string& volume_name);
  // What keeps the volume of this claim from being made may be gone.
  void ResetBackoff();

 private:
  struct Entry {
    ProvisionRecord record;
    PersistentVolumePtr volume;  // as planned, or as it was made
    bool running = false;
    bool removing = false;
    std::optional<Error> failure;
  };

  // What is asked of a plugin for the claim. Errors: why it cannot be had, in the controller's
  // words.
  Result<ProvisionRequest> RequestFor(const PersistentVolumeClaim& claim,
                                      const ClaimDecision& decision) const;
  Result<ProvisionRequest> PlanFor(const PersistentVolumeClaim& claim,
                                   const ClaimDecision& decision) const;
  void ServeClaim(const PersistentVolumeClaim& claim, const ClaimDecision& decision);
  void Intend(const PersistentVolumeClaim& claim, const ProvisionRequest& request);
  void Refuse(const ClaimDecision& decision, const Error& error);
  void Make(Entry& entry, ProvisionRequest request);
  void Made(const std::string& volume_name, const std::string& storage_class,
            const OperationOutcome<PersistentVolume>& outcome);
  static bool IsOver(const ProvisionRecord& record,
                     const std::map<ClaimKey, ClaimDecision>& decisions,
                     const std::set<EndedClaim>& ended);
  void Undo(Entry& entry);
  void Undone(const std::string& volume_name, const OperationOutcome<Unit>& outcome);
  // After an attempt to start an operation.
  void Started(Entry& entry, StartResult started);
  void Write(Entry& entry);
  void RowIsDurable(const std::string& volume_name);
  PersistentVolumePtr MadeOf(const std::string& volume_name) const;
  void PublishAll();
  void Publish(const std::string& volume_name);
  template <typename Function>
  auto IfAlive(Function function);

  const Parts parts_;
  const Hooks hooks_;
  LastingRows rows_;
  std::map<std::string, Entry> entries_;  // by the volume's name
  std::map<ClaimKey, Error> refused_;     // claims for which nothing can be planned
  std::map<std::string, PersistentVolumePtr> published_;
  bool has_list_ = false;  // the catalog has them as a list
  std::set<ClaimKey> changed_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
