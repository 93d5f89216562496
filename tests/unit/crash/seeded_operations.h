// Operations that make one mistake.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operation/device_operations.h"
#include "operation/mount_operations.h"
#include "operation/volume_operations.h"
#include "unit/crash/crash_harness.h"

namespace volumed {

class PassingOperations : public VolumeOperations {
 public:
  explicit PassingOperations(VolumeOperations& real) : real_(real) {}
  std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) override {
    return real_.StartAll(std::move(operations));
  }
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) override {
    return real_.SetUnknownVolumes(std::move(unknown));
  }
  void NameStorage(const std::string& volume, const StorageName* name) override {
    real_.NameStorage(volume, name);
  }
  void ForgetMade(const std::string& volume) override { real_.ForgetMade(volume); }
  void ExpectDeletions(const std::vector<StorageReservationRecord>& begun) override {
    real_.ExpectDeletions(begun);
  }
  std::map<std::string, std::string> VolumesBeingDeleted() const override {
    return real_.VolumesBeingDeleted();
  }
  void GiveUpWaiting(const OperationKey& key) override { real_.GiveUpWaiting(key); }
  bool IsPending(const OperationKey& key) const override { return real_.IsPending(key); }
  std::optional<TimePoint> NextTry(const OperationKey& key) const override {
    return real_.NextTry(key);
  }
  void ResetBackoff(const OperationKey& key) override { real_.ResetBackoff(key); }
  std::vector<RunningOperation> Running() const override { return real_.Running(); }
  std::optional<RunningOperation> FindRunning(const OperationKey& key) const override {
    return real_.FindRunning(key);
  }
  std::optional<RunningOperation> FindOwner(const UniqueVolumeName& device) const override {
    return real_.FindOwner(device);
  }

 private:
  VolumeOperations& real_;
};

// One that is never made together with others.
class LoneOperation : public AnyOperation {
 public:
  explicit LoneOperation(std::unique_ptr<AnyOperation> real) : real_(std::move(real)) {}
  OperationKey key() const override { return real_->key(); }
  OperationTraits Traits(const OperationParts& parts) const override {
    return real_->Traits(parts);
  }
  void Waited() override { real_->Waited(); }
  std::optional<OperationFailure> Run(const OperationParts& parts,
                                      OperationProgress& progress) override {
    return real_->Run(parts, progress);
  }
  std::optional<VolumePlace> PlaceInGroup(const OperationParts&) const override {
    return std::nullopt;
  }
  OperationFailures RunTogether(const OperationParts& parts, const std::vector<AnyOperation*>&,
                                OperationProgress& progress) override {
    return {Run(parts, progress)};
  }
  void End(const OperationParts& parts, const std::optional<OperationFailure>& failure) override {
    real_->End(parts, failure);
  }

 private:
  const std::unique_ptr<AnyOperation> real_;
};

// Each set-up is started twice, and the second does not know of the first: no key keeps them apart.
class KeylessOperations final : public PassingOperations {
 public:
  explicit KeylessOperations(const SeededOperations& parts)
      : PassingOperations(parts.real), other_(parts.other) {}
  std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) override {
    std::vector<StartResult> results;
    for (std::unique_ptr<AnyOperation>& operation : operations) {
      if (const auto* const mount = As<MountVolume>(*operation)) {
        auto second = std::make_unique<StartedOperation<MountVolume>>(
            mount->operation(), [](const OperationOutcome<MountedVolume>&) {});
        (void)other_.StartAll(AloneFrom(std::move(second)));
        results.push_back(PassingOperations::StartAll(AloneFrom(std::move(operation))).front());
      } else {
        std::vector<std::unique_ptr<AnyOperation>> one;
        one.push_back(std::move(operation));
        results.push_back(PassingOperations::StartAll(std::move(one)).front());
      }
    }
    return results;
  }

 private:
  static std::vector<std::unique_ptr<AnyOperation>> AloneFrom(
      std::unique_ptr<AnyOperation> operation) {
    std::vector<std::unique_ptr<AnyOperation>> one;
    one.push_back(std::make_unique<LoneOperation>(std::move(operation)));
    return one;
  }

  VolumeOperations& other_;
};

// Nobody is told of volumes whose objects nobody can read.
class UntoldOperations final : public PassingOperations {
 public:
  explicit UntoldOperations(const SeededOperations& parts) : PassingOperations(parts.real) {}
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume>) override { return {}; }
};

// Each device is mounted twice at once, and no key keeps the two apart.
class TwiceMountedOperations final : public PassingOperations {
 public:
  explicit TwiceMountedOperations(const SeededOperations& parts)
      : PassingOperations(parts.real), other_(parts.other) {}
  std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) override {
    for (const std::unique_ptr<AnyOperation>& operation : operations) {
      const auto* const mount = As<MountDevice>(*operation);
      if (mount == nullptr) continue;
      (void)other_.Start(mount->operation(), [](const OperationOutcome<MountedDevice>&) {});
    }
    return PassingOperations::StartAll(std::move(operations));
  }

 private:
  VolumeOperations& other_;
};

template <typename Operations>
SeededBug InOperations(const std::string& name) {
  SeededBug bug;
  bug.name = name;
  bug.operations = [](const SeededOperations& parts) -> std::unique_ptr<VolumeOperations> {
    return std::make_unique<Operations>(parts);
  };
  return bug;
}

}  // namespace volumed
