// A driver with a controller that makes, deletes and grows volumes in memory, in simulated time,
// and the records of devices.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csi/csi_command.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "csi/csi_settings.h"
#include "csi/csi_storage.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "metrics/exported_families.h"
#include "operation/volume_record_keeper.h"
#include "unit/csi/drivers_fixture.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/stub_host.h"
#include "unit/pluginmgr/plugin_without_mounts.h"

namespace volumed {

using ControllerCapability = ::csi::v1::ControllerServiceCapability::RPC;

// The whole message; the same for equal ones, whose maps may be in another order on the wire.
inline std::string WholeOf(const google::protobuf::Message& message) {
  std::string whole;
  google::protobuf::io::StringOutputStream stream(&whole);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  EXPECT_TRUE(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return whole;
}

class ListedAttachments final : public AttachDetachHost {
 public:
  Result<CsiNodePtr> GetCsiNode(const NodeName&) const override { return NotHere(); }
  std::vector<CsiNodePtr> ListCsiNodes() const override { return {}; }
  Result<KubeletHost::CsiDriverPtr> GetCsiDriver(const std::string&) const override {
    return NotHere();
  }
  std::vector<KubeletHost::CsiDriverPtr> ListCsiDrivers() const override { return {}; }
  Result<VolumeAttachmentPtr> GetVolumeAttachment(const std::string&) const override {
    return NotHere();
  }
  std::vector<VolumeAttachmentPtr> ListVolumeAttachments() const override {
    std::vector<VolumeAttachmentPtr> list;
    for (const auto& [name, attachment] : all) {
      list.push_back(std::make_shared<const VolumeAttachment>(attachment));
    }
    return list;
  }

  std::map<std::string, VolumeAttachment> all;

 private:
  static Error NotHere() { return Error::NotApplied(Code::kNotFound, "not here"); }
};

// A plugin of which only the name counts.
class NamedPlugin final : public PluginWithoutMounts {
 public:
  std::string GetPluginName() const override { return kCsiPluginName; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  bool CanSupport(const VolumeSpec&) const override { return false; }
  bool SupportsMountOption() const override { return true; }
};

class CsiStorageTest : public CsiDriversFixture {
 protected:
  CsiStorageTest() {
    context_.emplace(
        CsiContext{.parts = {.scheduler = scheduler_,
                             .drivers = *drivers_,
                             .devices = devices_,
                             .settings = plugin_settings_,
                             .log = log_,
                             .lied =
                                 [this](const CsiAnswered& call, const std::string& /*found*/) {
                                   lies_.push_back(call.driver + " " + call.method);
                                   lied_about_.push_back(call.key);
                                 },
                             .commands = &commands_,
                             .unrecorded = &unrecorded_},
                   .host = host_});
    storage_ = std::make_unique<CsiStorage>(*context_, plugin_);
    Serve({ControllerCapability::CREATE_DELETE_VOLUME});
  }

  // The driver comes (again), with a controller that can do this.
  void Serve(
      const std::vector<ControllerCapability::Type>& capabilities, bool topology = false,
      const std::vector<::csi::v1::PluginCapability::VolumeExpansion::Type>& expansion = {}) {
    if (process_ != nullptr) dialer_.Kill(process_);
    process_ = CsiDriversFixture::Serve();
    ::csi::v1::ControllerGetCapabilitiesResponse controller;
    for (const auto type : capabilities) {
      controller.add_capabilities()->mutable_rpc()->set_type(type);
    }
    process_->Answer("ControllerGetCapabilities", controller);
    ::csi::v1::GetPluginCapabilitiesResponse plugin;
    if (topology) {
      plugin.add_capabilities()->mutable_service()->set_type(
          ::csi::v1::PluginCapability::Service::VOLUME_ACCESSIBILITY_CONSTRAINTS);
    }
    for (const auto type : expansion) {
      plugin.add_capabilities()->mutable_volume_expansion()->set_type(type);
    }
    process_->Answer("GetPluginCapabilities", plugin);
    HandleVolumes();
    const std::optional<Status> status = Register();
    EXPECT_TRUE(status.has_value() && status->ok());
    asked_.clear();
  }
  // As the channel makes an error of a driver's status.
  void Fails(const std::string& rpc, Code code) {
    process_->Handle(rpc, [=](const google::protobuf::Message&) -> CsiChannel::AnyAnswer {
      return CsiError(kName, *FindCsiMethod(rpc), {.code = code, .message = "the array says no"},
                      CsiSecrets());
    });
  }

  // A claim "data" of 1Gi in "default".
  static VolumeOptions Options() {
    VolumeOptions options;
    options.pv_name = "pvc-c1";
    options.claim.metadata.name = "data";
    options.claim.metadata.name_space = "default";
    options.claim.metadata.uid = "c1";
    options.claim.spec.access_modes = {AccessMode::kReadWriteOnce};
    options.claim.spec.storage.request = Quantity::FromBytes(1 << 30);
    return options;
  }
  // A volume "pv-made" that the driver has made as "vol-1".
  static PersistentVolume MadeVolume() {
    PersistentVolume volume;
    volume.metadata.name = "pv-made";
    volume.metadata.annotations["pv.kubernetes.io/provisioned-by"] = kName;
    CsiPersistentVolumeSource source;
    source.driver = kName;
    source.volume_handle = "vol-1";
    volume.spec.source = source;
    volume.spec.access_modes = {AccessMode::kReadWriteOnce};
    volume.spec.capacity = Quantity::FromBytes(1 << 30);
    return volume;
  }
  void PutSecret(const std::string& name, const std::string& value) {
    auto secret = std::make_shared<SecretObject>();
    secret->data.emplace("password", Secret<std::string>(value));
    parts_.secrets[name] = std::move(secret);
  }
  // The node has the volume, as "other".
  void PutDevice(const std::string& handle) {
    DeviceRecord facts;
    facts.key = CsiUniqueName(kName, handle);
    facts.plugin_name = kCsiPluginName;
    facts.spec = SpecName("other");
    facts.attachable = true;
    const Result<uint64_t> attempt = devices_.BeginCall(facts, VolumeEvent::kAttach);
    ASSERT_TRUE(attempt.ok());
    ASSERT_TRUE(devices_.EndCall(facts.key, *attempt, CallAnswer::kDone).ok());
  }
  void RemoveDevice(const std::string& handle) {
    DeviceRecord facts = *devices_.Find(CsiUniqueName(kName, handle));
    const Result<uint64_t> attempt = devices_.BeginCall(facts, VolumeEvent::kDetach);
    ASSERT_TRUE(attempt.ok());
    ASSERT_TRUE(devices_.EndCall(facts.key, *attempt, CallAnswer::kDone).ok());
  }
  // What a start finds mounted there after the records were lost; it is there.
  UnrecordedMount LeftAt(const SafePath& place, UniqueVolumeName volume, const SpecName& spec,
                         const std::string& pod) {
    kernel_.AddDirectory(place.Display());
    EXPECT_TRUE(kernel_.Call(Mount{"tmpfs", "tmpfs", place, {}}, {}).ok());
    UnrecordedMount left;
    left.plugin = kCsiPluginName;
    left.volume = std::move(volume);
    left.spec = spec;
    left.pod = PodUid(pod);
    left.places = {place.Display()};
    return left;
  }
  CallOptions Call() const {
    CallOptions options;
    options.deadline = Deadline::After(clock_, seconds(60));
    return options;
  }

  // By which the claim's volume is planned.
  std::unique_ptr<Provisioner> NewProvisioner(const VolumeOptions& options) {
    return storage_->ProvisionerOf(kName)->NewProvisioner(options).value();
  }
  std::unique_ptr<Provisioner> NewProvisioner() { return NewProvisioner(Options()); }
  Result<PersistentVolume> Make(const VolumeOptions& options) {
    const auto provisioner = NewProvisioner(options);
    const Result<PersistentVolume> plan = provisioner->Plan();
    if (!plan.ok()) return plan;
    return provisioner->Provision(nullptr, {}, Call());
  }
  Result<PersistentVolume> Make() { return Make(Options()); }
  static const CsiPersistentVolumeSource& Source(const PersistentVolume& volume) {
    return std::get<CsiPersistentVolumeSource>(volume.spec.source);
  }
  // A driver that answers CreateVolume so.
  void Creates(const std::function<void(::csi::v1::Volume&)>& change) {
    process_->Handle("CreateVolume", [this, change](const google::protobuf::Message& request) {
      asked_.push_back(static_cast<const ::csi::v1::CreateVolumeRequest&>(request));
      auto answer = std::make_unique<::csi::v1::CreateVolumeResponse>();
      answer->mutable_volume()->set_volume_id("vol-1");
      answer->mutable_volume()->set_capacity_bytes(1 << 30);
      change(*answer->mutable_volume());
      return CsiChannel::AnyAnswer(std::move(answer));
    });
  }
  // Makes the volume, which has to be called a lie for this.
  void ExpectLie(const std::function<void(::csi::v1::Volume&)>& change, const std::string& found,
                 VolumeOptions options = Options()) {
    Creates(change);
    const Result<PersistentVolume> made = Make(options);
    ASSERT_FALSE(made.ok()) << found;
    EXPECT_EQ(made.error().code(), Code::kInternal);
    EXPECT_TRUE(made.error().maybe_applied()) << "only the same call may follow";
    EXPECT_NE(made.error().message().find(found), std::string::npos) << made.error().message();
    EXPECT_EQ(process_->calls("DeleteVolume"), 0) << "it may be somebody's";
    EXPECT_EQ(lies_.size(), 1u);
    EXPECT_EQ(lied_about_.back(), asked_.back().name()) << "the trace knows the call by it";
    lies_.clear();
  }
  Status Delete(const PersistentVolume& volume) {
    const auto deleter = storage_->NewDeleter(VolumeSpec::FromPersistentVolume(volume, false));
    if (!deleter.ok()) return deleter.error();
    return (*deleter)->Delete(Call());
  }
  Result<ExpandedStorage> Expand(int64_t bytes) {
    return storage_->ExpandStorage(VolumeSpec::FromPersistentVolume(MadeVolume(), false),
                                   Quantity::FromBytes(bytes), Quantity::FromBytes(1 << 30),
                                   Call());
  }
  void Grows(int64_t to, bool needs_node) {
    ::csi::v1::ControllerExpandVolumeResponse answer;
    answer.set_capacity_bytes(to);
    answer.set_node_expansion_required(needs_node);
    process_->Answer("ControllerExpandVolume", answer);
  }

  FakeKernel kernel_;
  RecordingObserver observer_;
  StubHostParts parts_;
  KubeletPaths paths_{"/kubelet", {&CsiDeviceAt}};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  ListedAttachments attachments_;
  VolumeHost host_{paths_, kernel_,   clock_,        parts_,  parts_,       parts_,
                   parts_, families_, irreversible_, nullptr, &attachments_};
  SharedCsiPluginSettings plugin_settings_;
  DeviceRecordKeeper devices_{store_, clock_, log_, observer_, BootId("boot-a")};
  UnrecordedMounts unrecorded_;
  CsiCommands commands_{store_, log_};
  NamedPlugin plugin_;
  std::optional<CsiContext> context_;
  std::unique_ptr<CsiStorage> storage_;
  std::shared_ptr<FakeCsiProcess> process_;
  std::vector<std::string> lies_;
  std::vector<std::string> lied_about_;  // the key of each
  // What the driver has: handle by name; and what it was asked.
  std::map<std::string, std::string> volumes_;
  std::vector<::csi::v1::CreateVolumeRequest> asked_;
  std::vector<::csi::v1::DeleteVolumeRequest> deleted_;

 private:
  void HandleVolumes() {
    process_->Handle("CreateVolume", [this](const google::protobuf::Message& request) {
      asked_.push_back(static_cast<const ::csi::v1::CreateVolumeRequest&>(request));
      const ::csi::v1::CreateVolumeRequest& asked = asked_.back();
      volumes_[asked.name()] = "vol-" + asked.name();
      auto answer = std::make_unique<::csi::v1::CreateVolumeResponse>();
      answer->mutable_volume()->set_volume_id(volumes_[asked.name()]);
      answer->mutable_volume()->set_capacity_bytes(asked.capacity_range().required_bytes());
      (*answer->mutable_volume()->mutable_volume_context())["storage"] = "pool";
      return CsiChannel::AnyAnswer(std::move(answer));
    });
    process_->Handle("DeleteVolume", [this](const google::protobuf::Message& request) {
      deleted_.push_back(static_cast<const ::csi::v1::DeleteVolumeRequest&>(request));
      std::erase_if(volumes_, [this](const auto& volume) {
        return volume.second == deleted_.back().volume_id();
      });
      return CsiChannel::AnyAnswer(std::make_unique<::csi::v1::DeleteVolumeResponse>());
    });
  }
};

}  // namespace volumed
