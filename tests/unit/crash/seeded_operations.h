// Operations that make one mistake.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operation/volume_operations.h"
#include "unit/crash/crash_harness.h"

namespace volumed {

class PassingOperations : public VolumeOperations {
 public:
  explicit PassingOperations(VolumeOperations& real) : real_(real) {}
  std::vector<StartResult> MountVolumes(std::vector<MountRequest> requests,
                                        GroupDone<MountedVolume> done) override {
    return real_.MountVolumes(std::move(requests), std::move(done));
  }
  std::vector<StartResult> UnmountVolumes(std::vector<UnmountRequest> requests,
                                          GroupDone<Unit> done) override {
    return real_.UnmountVolumes(std::move(requests), std::move(done));
  }
  StartResult MountVolume(MountRequest request,
                          std::function<void(OperationOutcome<MountedVolume>)> done) override {
    return real_.MountVolume(std::move(request), std::move(done));
  }
  StartResult UnmountVolume(UnmountRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UnmountVolume(std::move(request), std::move(done));
  }
  StartResult MapVolume(MountRequest request,
                        std::function<void(OperationOutcome<MountedVolume>)> done) override {
    return real_.MapVolume(std::move(request), std::move(done));
  }
  StartResult UnmapVolume(UnmountRequest request,
                          std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UnmapVolume(std::move(request), std::move(done));
  }
  StartResult RemovePod(PodUid pod, std::string name, PodRecordEnd record,
                        std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.RemovePod(std::move(pod), std::move(name), record, std::move(done));
  }
  StartResult MountDevice(MountDeviceRequest request,
                          std::function<void(OperationOutcome<MountedDevice>)> done) override {
    return real_.MountDevice(std::move(request), std::move(done));
  }
  StartResult UnmountDevice(UnmountDeviceRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UnmountDevice(std::move(request), std::move(done));
  }
  StartResult ExpandVolume(ExpandRequest request,
                           std::function<void(OperationOutcome<ExpandedVolume>)> done) override {
    return real_.ExpandVolume(std::move(request), std::move(done));
  }
  StartResult AttachVolume(AttachRequest request,
                           std::function<void(OperationOutcome<AttachedVolume>)> done) override {
    return real_.AttachVolume(std::move(request), std::move(done));
  }
  StartResult DetachVolume(DetachRequest request,
                           std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.DetachVolume(std::move(request), std::move(done));
  }
  StartResult VerifyVolumesAreAttached(
      VerifyAttachedRequest request,
      std::function<void(OperationOutcome<VerifiedAttachments>)> done) override {
    return real_.VerifyVolumesAreAttached(std::move(request), std::move(done));
  }
  StartResult ForgetDevice(UniqueVolumeName device,
                           std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.ForgetDevice(std::move(device), std::move(done));
  }
  StartResult ForgetStorage(std::string volume_name,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.ForgetStorage(std::move(volume_name), std::move(done));
  }
  StartResult ForgetStorageBut(std::set<std::string> volume_names,
                               std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.ForgetStorageBut(std::move(volume_names), std::move(done));
  }
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) override {
    return real_.SetUnknownVolumes(std::move(unknown));
  }
  StartResult ReclaimVolume(ReclaimRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.ReclaimVolume(std::move(request), std::move(done));
  }
  StartResult ProvisionVolume(
      ProvisionRequest request,
      std::function<void(OperationOutcome<PersistentVolume>)> done) override {
    return real_.ProvisionVolume(std::move(request), std::move(done));
  }
  StartResult UndoProvision(ProvisionRequest request,
                            std::function<void(OperationOutcome<Unit>)> done) override {
    return real_.UndoProvision(std::move(request), std::move(done));
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

 private:
  VolumeOperations& real_;
};

// Each set-up is started twice, and the second does not know of the first: no key keeps them apart.
class KeylessOperations final : public PassingOperations {
 public:
  explicit KeylessOperations(const SeededOperations& parts)
      : PassingOperations(parts.real), other_(parts.other) {}
  std::vector<StartResult> MountVolumes(std::vector<MountRequest> requests,
                                        GroupDone<MountedVolume> done) override {
    return VolumeOperations::MountVolumes(std::move(requests), std::move(done));
  }
  StartResult MountVolume(MountRequest request,
                          std::function<void(OperationOutcome<MountedVolume>)> done) override {
    (void)other_.MountVolume(request, [](const OperationOutcome<MountedVolume>&) {});
    return PassingOperations::MountVolume(std::move(request), std::move(done));
  }

 private:
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
  StartResult MountDevice(MountDeviceRequest request,
                          std::function<void(OperationOutcome<MountedDevice>)> done) override {
    (void)other_.MountDevice(request, [](const OperationOutcome<MountedDevice>&) {});
    return PassingOperations::MountDevice(std::move(request), std::move(done));
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
