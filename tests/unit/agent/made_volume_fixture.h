// MadeVolumeTest: a claim whose volume its driver makes and takes back, and how people see that
// volume and give it up.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "agent/delete_commands.h"
#include "agent/describer.h"
#include "unit/agent/control_backend_fixture.h"

namespace volumed {

class MadeVolumeTest : public ControlBackendTest {
 protected:
  static constexpr const char* kVolume = "pvc-c1";

  void DeliverClaim() {
    Deliver(
        "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
        "provisioner: disk.example.com\n"
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
        "default, uid: c1}\nspec: {accessModes: [ReadWriteOnce], storageClassName: made, "
        "resources: {requests: {storage: 1Gi}}}\n");
  }
  // Deletes the volume, or another object, by command; nullopt if there was no answer.
  std::optional<Status> Delete(bool force, const std::string& kind = "PersistentVolume",
                               const std::string& name = kVolume) {
    DeleteCommands commands(*backend_);
    std::optional<Status> told;
    v1::DeleteRequest request;
    request.mutable_object()->set_kind(kind);
    request.mutable_object()->set_name(name);
    request.set_force(force);
    response_.Clear();
    commands.Delete({{request, &response_, [&told](const Status& status) { told = status; }}});
    Settle();
    return told;
  }
  Status Describe(const std::string& name) {
    v1::DescribeRequest request;
    request.mutable_object()->set_kind("PersistentVolume");
    request.mutable_object()->set_name(name);
    const Describer describer(agent_->catalog, manager(), events_, NodeName("n1"),
                              [this](const std::string& whose) {
                                return whose == "disk.example.com" ? secrets_ : nullptr;
                              });
    described_.Clear();
    const auto described = describer.Describe(request, &described_);
    return described.ok() ? OkStatus() : Status(described.error());
  }

  const std::shared_ptr<CsiSecretMemory> secrets_ = std::make_shared<CsiSecretMemory>();
  v1::DeleteResponse response_;
  v1::DescribeResponse described_;
};

}  // namespace volumed
