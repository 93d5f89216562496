// A claim of a class whose volumes the node makes, on fake operations.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {

class ProvisioningFixture : public ManagerTest {
 protected:
  static constexpr const char* kVolume = "pvc-c1";

  void SetUp() override { StartAgent(); }

  static std::string Class(const std::string& more = "",
                           const std::string& provisioner = "kubernetes.io/host-path") {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
           "provisioner: " +
           provisioner + "\n" + more;
  }
  static std::string Claim(const std::string& uid = "c1") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default" +
           (uid.empty() ? "" : ", uid: " + uid) +
           "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: made, resources: {requests: "
           "{storage: 1Gi}}}\n";
  }
  std::string Pod(const std::string& name = "a") { return PodManifest(name, {kUse}); }

  std::optional<ProvisionRecord> Row(const std::string& volume = kVolume) const {
    const auto row = store.Find(kProvisionRecordKind, volume);
    if (!row) return std::nullopt;
    return DecodeProvisionRecord(*row).value();
  }
  size_t Made(const std::string& volume = kVolume) {
    return operations().Count("provision", ProvisionKey(volume));
  }
  std::string ClaimStatus() {
    const auto status =
        manager().storage().StatusOf({ObjectKind::kPersistentVolumeClaim, "default", "data"});
    return status ? status->phase + " " + status->other : "unknown";
  }
  std::string VolumeStatus(const std::string& volume = kVolume) {
    const auto status = manager().storage().StatusOf({ObjectKind::kPersistentVolume, "", volume});
    return status ? status->phase : "unknown";
  }
  std::string Problem(const std::string& pod = "a") {
    const VolumeView volume = View(pod).volumes.at(0);
    return volume.problem ? volume.problem->message + "; " + volume.problem->who_must_act : "";
  }
  // Makes a claim without a uid and deletes it; the deletion of its volume does not end until that
  // is released. Returns the claim's uid.
  std::string DeleteWhileItsVolumeIsBeingDeleted() {
    Deliver(Class() + Claim(""));
    const std::string uid = ClaimUid();
    operations().Hang(ReclaimKey(ProvisionedVolumeName(uid)));
    Deliver(Class());
    for (const Record& row : store.All()) {
      EXPECT_NE(row.kind, kDeletedObjectRecordKind) << "else that row would keep the uid back";
    }
    EXPECT_EQ(VolumeStatus(ProvisionedVolumeName(uid)), "Released");
    return uid;
  }
  std::string ClaimUid() const {
    const auto claim = agent_->catalog.FindPersistentVolumeClaim("default", "data");
    return claim == nullptr ? "no claim" : claim->metadata.uid;
  }
  // What a claim of that name that is applied now would get.
  std::string UidOnRecord() const {
    return agent_->manager->storage().UidOnRecord(
        {ObjectKind::kPersistentVolumeClaim, "default", "data"});
  }
  // An agent that has loaded its records and has not decided about claims, as long as a row of this
  // kind cannot be written.
  void StartAgentThatCannotDecide() {
    const ObjectUidRecord of_former_release{{ObjectKind::kPersistentVolumeClaim, "default", "x"},
                                            "x"};
    ASSERT_TRUE(store.Put(EncodeRecord(of_former_release), kObjectUidRecordDurability).ok());
    store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1000, kKnownObjectRecordKind);
    StartAgent();
    Settle();
    ASSERT_TRUE(agent_->sources_started);
  }
  // Of the claim.
  bool HasEvent(const std::string& reason) const {
    const auto& events = host_parts.object_events;
    return std::any_of(events.begin(), events.end(), [&](const std::string& event) {
      return event.find("data") != std::string::npos && event.find(reason) != std::string::npos;
    });
  }
};

}  // namespace volumed
