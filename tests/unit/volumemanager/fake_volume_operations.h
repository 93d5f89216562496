// FakeVolumeOperations: VolumeOperations without plugins. It keeps which volumes are there, can
// fail or hang on order, and backs off as the real one does.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/scheduler.h"
#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "operation/expand_operations.h"
#include "operation/expand_storage_operations.h"
#include "operation/map_operations.h"
#include "operation/mount_operations.h"
#include "operation/pin_operations.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "operation/storage_operations.h"
#include "operation/volume_operations.h"

namespace volumed {

// What is on the node; outlives the agents of a test.
struct FakeNode {
  std::set<PodVolumeKey> present;
  std::set<UniqueVolumeName> devices;  // mounted
  std::set<UniqueVolumeName> attached;
  std::set<PodUid> removed_pods;
  std::set<std::string> made_volumes;  // provisioned
};

class FakeVolumeOperations final : public VolumeOperations {
 public:
  struct Call {
    std::string operation;  // "mount", "unmount", "remove", "mount_device" ...
    OperationKey key;
    std::optional<MountRequest> mount = std::nullopt;
    std::string plugin_name = {};
    std::optional<MountDeviceRequest> mount_device = std::nullopt;
    std::optional<ReclaimRequest> reclaim = std::nullopt;
    std::optional<ExpandRequest> expand = std::nullopt;
    std::optional<AttachRequest> attach = std::nullopt;
    std::optional<VerifyAttachedRequest> verify = std::nullopt;
    std::optional<ExpandStorageRequest> expand_storage = std::nullopt;
    std::optional<ProvisionRequest> provision = std::nullopt;
  };

  FakeVolumeOperations(Scheduler& scheduler, FakeNode& node)
      : scheduler_(scheduler), node_(node), backoff_(scheduler.clock()) {}

  std::vector<Call> calls;
  std::vector<std::string> forgotten_storage;  // volumes
  std::vector<std::string> ended_reclaims;     // likewise
  std::vector<UnknownVolume> unknown_volumes;  // as last told
  std::set<std::string> held_for_unknown;      // the next answer
  std::set<std::string> kept_storage;          // likewise

  // The next `times` operations of this kind on this volume (an empty spec: on the pod) fail.
  void FailNext(const std::string& operation, const OperationKey& key, Error error, int times = 1);
  // Steps at which operations of these kinds fail, in place of the usual ones.
  std::map<std::string, std::string> fails_at;
  // Operations of this volume do not end until Release.
  void Hang(const OperationKey& key);
  void Release(const OperationKey& key);
  void SetRefresh(const OperationKey& key, int64_t unix_ms);
  void SetFreshness(const OperationKey& key, Freshness fresh);

  size_t Count(const std::string& operation) const;
  size_t Count(const std::string& operation, const OperationKey& key) const;
  const Call* Last(const std::string& operation, const OperationKey& key) const;

  void GiveUpWaiting(const OperationKey& key) override { given_up.insert(key); }
  std::set<OperationKey> given_up;
  // What Running() says of operations of these keys until they end: as given up, if they were.
  std::map<OperationKey, LaneWait> waits_for;
  std::map<UniqueVolumeName, OperationKey> owners;  // for FindOwner()
  std::map<OperationKey, AwaitedProgram> awaited;   // whom operations of these keys await

  std::vector<StartResult> StartAll(std::vector<std::unique_ptr<AnyOperation>> operations) override;

  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) override {
    unknown_volumes = std::move(unknown);
    return std::exchange(held_for_unknown, {});
  }

  void NameStorage(const std::string& volume, const StorageName* name) override {
    if (name == nullptr) {
      named_storage.erase(volume);
    } else {
      named_storage[volume] = name->ToString();
    }
  }
  void ExpectDeletions(const std::vector<StorageReservationRecord>& begun) override {
    expected_deletions = begun;
  }
  std::map<std::string, std::string> VolumesBeingDeleted() const override { return being_deleted; }
  std::vector<StorageReservationRecord> expected_deletions;
  std::map<std::string, std::string> named_storage;  // by volume
  std::map<std::string, std::string> being_deleted;  // the answer

  bool IsPending(const OperationKey& key) const override;
  std::optional<TimePoint> NextTry(const OperationKey& key) const override;
  void ResetBackoff(const OperationKey& key) override;
  std::vector<RunningOperation> Running() const override;
  std::optional<RunningOperation> FindRunning(const OperationKey& key) const override;
  std::optional<RunningOperation> FindOwner(const UniqueVolumeName& device) const override;
  mutable size_t times_all_were_copied = 0;  // by Running()
  std::string FaultDomainOf(const OperationKey& key) const override {
    const auto found = fault_domains.find(key);
    return found == fault_domains.end() ? "" : found->second;
  }
  std::map<OperationKey, std::string> fault_domains;  // as on record

  // What storage has once it is made larger; nullopt: what was asked for, and the node has to
  // follow.
  std::optional<ExpandedStorage> grows_to;

  // Called when an unmount starts.
  std::function<void(const PodVolumeKey&)> on_unmount;
  // Does what the real one does to the store.
  std::function<void(const PodUid&)> on_remove;

 private:
  struct Failure {
    Error error;
    int times;
  };

  using OperationPtr = std::shared_ptr<AnyOperation>;

  // Runs it if it is of kind Op; nullopt: it is not.
  template <typename Op>
  std::optional<StartResult> Try(const OperationPtr& operation);
  // By kind: its entry in `calls`; what it does to the node, and answers.
  template <typename Op>
  static Call Describe(const Op& operation);
  template <typename Op>
  typename Op::Value Perform(const Op& operation);
  StartResult StartOne(const OperationPtr& operation);

  std::optional<StartResult> Admit(const std::string& operation, const OperationKey& key);

  void Finish(const OperationKey& key, std::function<void()> body);

  std::optional<OperationFailure> TakeFailure(const std::string& operation, const OperationKey& key,
                                              const std::string& step);

  Scheduler& scheduler_;
  FakeNode& node_;
  Backoff backoff_;
  std::map<OperationKey, int64_t> running_;  // since, unix milliseconds
  std::set<OperationKey> hanging_;
  std::map<OperationKey, std::function<void()>> held_;
  std::map<OperationKey, Freshness> refresh_;
  std::map<std::pair<std::string, OperationKey>, Failure> failures_;
};

}  // namespace volumed
