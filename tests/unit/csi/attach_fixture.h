// Attaching in simulated time: a driver with a controller that answers as it is told, objects that
// a source has or not, and the records of devices, which outlive the agent.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csi/csi_attach.h"
#include "csi/csi_names.h"
#include "csi/csi_settings.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/must.h"
#include "metrics/exported_families.h"
#include "operation/volume_record_keeper.h"
#include "unit/csi/drivers_fixture.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/stub_host.h"

namespace volumed {

using ControllerCapability = ::csi::v1::ControllerServiceCapability::RPC;

class FakeKubelet final : public KubeletHost {
 public:
  void SetKubeletError(std::optional<Error>) override {}
  Result<CsiDriverPtr> GetCsiDriver(const std::string& name) const override {
    if (!synced) return Error::NotApplied(Code::kUnavailable, "CSIDrivers are not known yet");
    const auto found = drivers_.find(name);
    if (found == drivers_.end()) return Error::NotApplied(Code::kNotFound, "no CSIDriver " + name);
    return found->second;
  }
  std::vector<CsiDriverPtr> ListCsiDrivers() const override {
    std::vector<CsiDriverPtr> all;
    for (const auto& [name, driver] : drivers_) all.push_back(driver);
    return all;
  }
  bool CsiDriversSynced() const override { return synced; }
  Status WaitForCacheSync(const CallOptions&) override { return OkStatus(); }
  void AddCsiDriverListener(CsiDriverListener listener) override {
    listeners_.push_back(std::move(listener));
  }

  void Put(CsiDriverObject driver) {
    const std::string name = driver.metadata.name;
    drivers_[name] = std::make_shared<const CsiDriverObject>(std::move(driver));
    for (const CsiDriverListener& listener : listeners_) listener(name, drivers_[name]);
  }
  void Remove(const std::string& name) {
    drivers_.erase(name);
    for (const CsiDriverListener& listener : listeners_) listener(name, nullptr);
  }
  bool synced = true;

 private:
  std::map<std::string, CsiDriverPtr> drivers_;
  std::vector<CsiDriverListener> listeners_;
};

class FakeAttachments final : public AttachDetachHost {
 public:
  Result<CsiNodePtr> GetCsiNode(const NodeName&) const override {
    return Error::NotApplied(Code::kNotFound, "no CSINode");
  }
  std::vector<CsiNodePtr> ListCsiNodes() const override { return {}; }
  Result<KubeletHost::CsiDriverPtr> GetCsiDriver(const std::string&) const override {
    return Error::NotApplied(Code::kNotFound, "no CSIDriver");
  }
  std::vector<KubeletHost::CsiDriverPtr> ListCsiDrivers() const override { return {}; }
  Result<VolumeAttachmentPtr> GetVolumeAttachment(const std::string& name) const override {
    const auto found = all.find(name);
    if (found != all.end()) return std::make_shared<const VolumeAttachment>(found->second);
    if (!complete) return Error::NotApplied(Code::kUnavailable, "a source is not complete yet");
    return Error::NotApplied(Code::kNotFound, "no VolumeAttachment " + name);
  }
  std::vector<VolumeAttachmentPtr> ListVolumeAttachments() const override {
    std::vector<VolumeAttachmentPtr> list;
    for (const auto& [name, attachment] : all) {
      list.push_back(std::make_shared<const VolumeAttachment>(attachment));
    }
    return list;
  }

  std::map<std::string, VolumeAttachment> all;
  bool complete = true;
};

// What is staged is not asked about here.
class NoStager final : public DeviceMounter {
 public:
  Result<SafePath> GetDeviceMountPath(const VolumeSpec&) const override {
    return Error::NotApplied(Code::kUnimplemented, "not asked");
  }
  Status MountDevice(const VolumeSpec&, const std::string&, const SafePath&,
                     const DeviceMounterArgs&) override {
    return OkStatus();
  }
};
class NoUnstager final : public DeviceUnmounter {
 public:
  Status UnmountDevice(const SafePath&, const CallOptions&) override { return OkStatus(); }
};

class CsiAttachFixture : public CsiDriversFixture {
 protected:
  static constexpr const char* kHandle = "vol-1";
  static constexpr const char* kSecretValue = "hunter2-attach";

  CsiAttachFixture() { StartAgent(); }
  ~CsiAttachFixture() override { EndAgent(); }

  void EndAgent() {
    attaching_.reset();
    devices_.reset();
  }
  void StartAgent() {
    devices_ = std::make_unique<DeviceRecordKeeper>(store_, clock_, log_, observer_, kBoot);
    const LoadedRecords rows = Must(store_.Load(kDeviceRecordKind));
    for (const Record& row : rows.records) {
      devices_->Restore(AfterRestart(*DecodeDeviceRecord(row), kBoot));
    }
    context_.emplace(
        CsiContext{.parts = {.scheduler = scheduler_,
                             .drivers = *drivers_,
                             .devices = *devices_,
                             .settings = plugin_settings_,
                             .log = log_,
                             .lied =
                                 [this](const CsiAnswered& call, const std::string& /*found*/) {
                                   lies_.push_back(call.driver + " " + call.method);
                                   lied_about_.push_back(call.key);
                                 }},
                   .host = host_});
    attaching_ = std::make_unique<CsiAttaching>(*context_, scheduler_);
  }
  // The drivers and their table go on, which tests/unit/csi/csi_drivers_test.cc is about.
  void RestartAgent() {
    EndAgent();
    StartAgent();
  }

  // A driver with these capabilities of a controller, at its own socket.
  std::shared_ptr<FakeCsiProcess> ServeController(
      const std::vector<ControllerCapability::Type>& capabilities, const std::string& name = kName,
      const std::string& path = kEndpoint) {
    auto process = Serve(path, name);
    ::csi::v1::ControllerGetCapabilitiesResponse answer;
    for (const auto type : capabilities) answer.add_capabilities()->mutable_rpc()->set_type(type);
    process->Answer("ControllerGetCapabilities", answer);
    const std::optional<Status> status = Register(name, path);
    EXPECT_TRUE(status.has_value() && status->ok());
    return process;
  }
  std::shared_ptr<FakeCsiProcess> ServeAttacher() {
    auto process = ServeController({ControllerCapability::PUBLISH_UNPUBLISH_VOLUME});
    Published(*process, {{"devicePath", "/dev/sdx"}});
    return process;
  }
  // With a list of what is attached where.
  std::shared_ptr<FakeCsiProcess> ServeLister(const std::string& name = kName,
                                              const std::string& path = kEndpoint) {
    auto process = ServeController(
        {ControllerCapability::PUBLISH_UNPUBLISH_VOLUME, ControllerCapability::LIST_VOLUMES,
         ControllerCapability::LIST_VOLUMES_PUBLISHED_NODES},
        name, path);
    Published(*process, {});
    return process;
  }
  // What ControllerPublishVolume answers; what it is asked is kept.
  void Published(FakeCsiProcess& process, const StringMap& context) {
    process.Handle("ControllerPublishVolume", [this,
                                               context](const google::protobuf::Message& request) {
      published_.push_back(static_cast<const ::csi::v1::ControllerPublishVolumeRequest&>(request));
      row_at_call_ = Row();
      auto answer = std::make_unique<::csi::v1::ControllerPublishVolumeResponse>();
      for (const auto& [key, value] : context) {
        (*answer->mutable_publish_context())[key] = value;
      }
      return CsiChannel::AnyAnswer(std::move(answer));
    });
    process.Handle("ControllerUnpublishVolume", [this](const google::protobuf::Message& request) {
      unpublished_.push_back(
          static_cast<const ::csi::v1::ControllerUnpublishVolumeRequest&>(request));
      return CsiChannel::AnyAnswer(
          std::make_unique<::csi::v1::ControllerUnpublishVolumeResponse>());
    });
  }
  // As the channel makes an error of a driver's status.
  static void Fails(FakeCsiProcess& process, const std::string& rpc, Code code,
                    const std::string& text = "the array says no") {
    process.Handle(rpc, [=](const google::protobuf::Message&) -> CsiChannel::AnyAnswer {
      return CsiError(kName, *FindCsiMethod(rpc), {.code = code, .message = text}, CsiSecrets());
    });
  }
  // Handle -> the nodes that have it.
  using NodesOf = std::map<std::string, std::vector<std::string>>;
  static void Lists(FakeCsiProcess& process, const NodesOf& volumes) {
    ::csi::v1::ListVolumesResponse answer;
    for (const auto& [handle, nodes] : volumes) {
      auto* entry = answer.add_entries();
      entry->mutable_volume()->set_volume_id(handle);
      entry->mutable_status();
      for (const std::string& node : nodes) entry->mutable_status()->add_published_node_ids(node);
    }
    process.Answer("ListVolumes", answer);
  }

  static VolumeSpec Spec(const std::string& handle = kHandle, const std::string& driver = kName,
                         bool with_secret = false) {
    PersistentVolume volume;
    volume.metadata.name = "pv-" + handle;
    CsiPersistentVolumeSource source;
    source.driver = driver;
    source.volume_handle = handle;
    source.volume_attributes = {{"tier", "gold"}};
    if (with_secret) source.controller_publish_secret_ref = SecretReference{"attach", "storage"};
    volume.spec.source = source;
    return VolumeSpec::FromPersistentVolume(volume, false);
  }
  static VolumeSpec SpecWithSecret() { return Spec(kHandle, kName, true); }
  void PutSecret() {
    auto secret = std::make_shared<SecretObject>();
    secret->data.emplace("password", Secret<std::string>(kSecretValue));
    parts_.secrets["attach"] = std::move(secret);
  }

  // The VolumeAttachment of the volume on this node.
  static std::string AttachmentName(const std::string& handle = kHandle) {
    return CsiAttachmentName(handle, kName, "node");
  }
  VolumeAttachment& PutAttachment(bool attached, const std::string& handle = kHandle) {
    VolumeAttachment& attachment = attachments_.all[AttachmentName(handle)];
    attachment.metadata.name = AttachmentName(handle);
    attachment.attacher = kName;
    attachment.node_name = "node";
    attachment.persistent_volume_name = "pv-" + handle;
    attachment.attached = attached;
    return attachment;
  }

  // As the operations make the calls: the intent is on record before, the outcome after.
  Result<std::string> Attach(const VolumeSpec& spec) {
    const auto attacher = attaching_->NewAttacher(std::make_unique<NoStager>());
    return InCall<std::string>(spec, VolumeEvent::kAttach, [&] {
      return attacher->Attach(spec, parts_.GetNodeName(), Call());
    });
  }
  Result<std::string> Attach() { return Attach(Spec()); }
  Result<std::string> WaitForAttach() {
    const auto attacher = attaching_->NewAttacher(std::make_unique<NoStager>());
    return InCall<std::string>(Spec(), VolumeEvent::kMountDevice, [&] {
      return attacher->WaitForAttach(Spec(), AttachmentName(), Pod(), Call());
    });
  }
  Status UnmountDevice() {
    return InCall<void>(Spec(), VolumeEvent::kUnmountDevice, [] { return OkStatus(); });
  }
  Status Detach(const VolumeSpec& spec) {
    const auto detacher = attaching_->NewDetacher(std::make_unique<NoUnstager>());
    return InCall<void>(spec, VolumeEvent::kDetach, [&] {
      return detacher->DetachRecorded(spec, NameOf(spec), parts_.GetNodeName(), Call());
    });
  }
  Status Detach() { return Detach(Spec()); }
  std::vector<bool> AreAttached(const std::vector<VolumeSpec>& specs) {
    const auto attacher = attaching_->NewAttacher(std::make_unique<NoStager>());
    const auto answer = attacher->VolumesAreAttached(specs, parts_.GetNodeName(), Call());
    scheduler_.RunFor(milliseconds(1));
    return answer.ok() ? *answer : std::vector<bool>();
  }

  std::optional<DeviceRecord> Row(const std::string& handle = kHandle) const {
    const auto row = store_.Find(kDeviceRecordKind, RecordKey(CsiUniqueName(kName, handle)));
    return row ? std::optional<DeviceRecord>(*DecodeDeviceRecord(*row)) : std::nullopt;
  }
  void Setting(CsiAttach attach) { plugin_settings_.Set({.attach = attach}); }
  int Calls(const std::shared_ptr<FakeCsiProcess>& process, const std::string& rpc) const {
    return process->calls(rpc);
  }

  const BootId kBoot{"boot-a"};
  FakeKernel kernel_;
  RecordingObserver observer_;
  StubHostParts parts_;
  KubeletPaths paths_{"/kubelet"};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  FakeKubelet kubelet_;
  FakeAttachments attachments_;
  VolumeHost host_{paths_, kernel_,   clock_,        parts_,    parts_,       parts_,
                   parts_, families_, irreversible_, &kubelet_, &attachments_};
  SharedCsiPluginSettings plugin_settings_;
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::optional<CsiContext> context_;
  std::unique_ptr<CsiAttaching> attaching_;
  std::vector<std::string> lies_;
  std::vector<std::string> lied_about_;  // the key of each
  std::vector<::csi::v1::ControllerPublishVolumeRequest> published_;
  std::vector<::csi::v1::ControllerUnpublishVolumeRequest> unpublished_;
  std::optional<DeviceRecord> row_at_call_;

 private:
  static std::string NameOf(const VolumeSpec& spec) {
    const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
    return CsiVolumeName(source->driver, source->volume_handle);
  }
  CallOptions Call() const {
    CallOptions options;
    options.deadline = Deadline::After(clock_, seconds(60));
    return options;
  }

  template <typename T>
  Result<T> InCall(const VolumeSpec& spec, VolumeEvent event,
                   const std::function<Result<T>()>& call) {
    DeviceRecord facts;
    const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
    facts.key = CsiUniqueName(source->driver, source->volume_handle);
    facts.plugin_name = kCsiPluginName;
    facts.spec = spec.name();
    facts.attachable = true;
    const Result<uint64_t> attempt = devices_->BeginCall(facts, event);
    if (!attempt.ok()) return attempt.error().With("BeginCall");
    Result<T> answer = call();
    scheduler_.RunFor(milliseconds(1));
    const CallAnswer how = answer.ok()                      ? CallAnswer::kDone
                           : answer.error().maybe_applied() ? CallAnswer::kMaybeApplied
                                                            : CallAnswer::kNotApplied;
    const Status ended = devices_->EndCall(facts.key, *attempt, how);
    EXPECT_TRUE(ended.ok());
    return answer;
  }
};

}  // namespace volumed
