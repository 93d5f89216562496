// Helpers of the tests of claims and persistent volumes: objects and inputs from few words.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "volume/claim_binding.h"

namespace volumed {

inline Quantity Size(const std::string& text) { return *Quantity::Parse(text); }

inline PersistentVolume MakeVolume(const std::string& name, const std::string& size = "1Gi",
                                   const std::string& class_name = "manual") {
  PersistentVolume volume;
  volume.metadata.name = name;
  volume.spec.capacity = Size(size);
  volume.spec.source = HostPathVolumeSource{"/srv/" + name, HostPathType::kUnset};
  volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.storage_class_name = class_name;
  return volume;
}

inline PersistentVolumeClaim MakeClaim(const std::string& name, const std::string& size = "1Gi",
                                       const std::string& class_name = "manual") {
  PersistentVolumeClaim claim;
  claim.metadata.name = name;
  claim.metadata.uid = "uid-" + name;
  claim.spec.storage.request = Size(size);
  claim.spec.access_modes = {AccessMode::kReadWriteOnce};
  claim.spec.storage_class_name = class_name;
  return claim;
}

inline PersistentVolume Reserved(PersistentVolume volume, const std::string& claim,
                                 const std::string& uid = "") {
  volume.spec.claim_ref = ClaimReference{"default", claim, uid};
  return volume;
}

inline PersistentVolumeClaim Naming(PersistentVolumeClaim claim, const std::string& volume) {
  claim.spec.volume_name = volume;
  return claim;
}

inline PersistentVolume WithPolicy(PersistentVolume volume, ReclaimPolicy policy) {
  volume.spec.reclaim_policy = policy;
  return volume;
}

inline StorageClass MakeClass(const std::string& name, VolumeBindingMode mode,
                              const std::string& provisioner = std::string(kNoProvisioner)) {
  StorageClass storage_class;
  storage_class.metadata.name = name;
  storage_class.provisioner = provisioner;
  storage_class.volume_binding_mode = mode;
  return storage_class;
}

inline VolumeNodeAffinity OnNode(const std::string& host) {
  return {{{{{{"kubernetes.io/hostname", NodeOperator::kIn, {host}}}, {}}}}};
}

// An input that is put together step by step; every source has delivered.
class World {
 public:
  World() {
    input_.node = {"node-1", {{"kubernetes.io/hostname", "node-1"}}};
    input_.sources_complete = true;
  }

  World& Add(PersistentVolume volume) {
    input_.volumes.push_back(std::make_shared<const PersistentVolume>(std::move(volume)));
    return *this;
  }
  World& Add(PersistentVolumeClaim claim) {
    input_.claims.push_back(std::make_shared<const PersistentVolumeClaim>(std::move(claim)));
    return *this;
  }
  World& Add(StorageClass storage_class) {
    input_.classes.push_back(std::make_shared<const StorageClass>(std::move(storage_class)));
    return *this;
  }
  World& Record(const std::string& claim, const std::string& volume,
                BindingState state = BindingState::kBound) {
    return RecordUid(claim, "uid-" + claim, volume, state);
  }
  World& RecordUid(const std::string& claim, const std::string& uid, const std::string& volume,
                   BindingState state = BindingState::kBound) {
    input_.recorded.push_back({{"default", claim}, uid, volume, state});
    return *this;
  }
  World& Use(const std::string& pod, const std::string& claim, const std::string& volume = "") {
    input_.uses.push_back({"default/" + pod, {"default", claim}, volume});
    return *this;
  }
  // The claim was deleted by command.
  World& End(const std::string& claim) { return EndUid(claim, "uid-" + claim); }
  World& EndUid(const std::string& claim, const std::string& uid) {
    input_.ended.insert({{"default", claim}, uid});
    return *this;
  }
  World& Incomplete() {
    input_.sources_complete = false;
    return *this;
  }

  BindingInput& input() { return input_; }
  const BindingResult& Decide() {
    result_ = DecideBindings(input_);
    return result_;
  }
  // Of the last Decide(). They fail the test when there is no such object.
  const ClaimDecision& Claim(const std::string& name) {
    for (const ClaimDecision& claim : result_.claims) {
      if (claim.claim.name == name) return claim;
    }
    ADD_FAILURE() << "no claim " << name;
    return no_claim_;
  }
  const VolumeDecision& Volume(const std::string& name) {
    for (const VolumeDecision& volume : result_.volumes) {
      if (volume.volume_name == name) return volume;
    }
    ADD_FAILURE() << "no volume " << name;
    return no_volume_;
  }

 private:
  BindingInput input_;
  BindingResult result_;
  const ClaimDecision no_claim_;
  const VolumeDecision no_volume_;
};

}  // namespace volumed
