// The plugin over a kernel in memory, and a driver of which each RPC has a script: what it does to
// the node, and what it says of that.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csi/csi_plugin.h"
#include "csi/vol_data.h"
#include "fakes/must.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "pluginmgr/wrapper_volumes.h"
#include "unit/csi/attach_fixture.h"
#include "unit/csi/csi_volumes.h"

namespace volumed {

using NodeCapability = ::csi::v1::NodeServiceCapability::RPC;

class CsiPluginFixture : public CsiAttachFixture {
 protected:
  using Message = google::protobuf::Message;
  using Deed = std::function<void(const Message& request)>;
  static constexpr const char* kPodUid = "uid-1";

  CsiPluginFixture() {
    kernel_.AddDirectory("/kubelet");
    FakeDevice disk;
    disk.fs_type = "ext4";
    disk.usage = "filesystem";
    for (const char* path : {"/dev/sda", "/dev/sdb"}) kernel_.AddDevice(path, disk);
    plugin_ = std::make_unique<CsiPlugin>(context_->parts);
    EXPECT_TRUE(plugin_->Init({host_, wrappers_}).ok());
    pod_ = std::make_shared<const Pod>(CsiPod());
    PutSecretOf("stage", "hunter2-stage");
    PutSecretOf("publish", "hunter2-publish");
  }
  ~CsiPluginFixture() override { plugin_.reset(); }

  void PutSecretOf(const std::string& name, const std::string& value) {
    auto secret = std::make_shared<SecretObject>();
    secret->data.emplace("password", Secret<std::string>(value));
    parts_.secrets[name] = std::move(secret);
  }

  // ---- the driver ----
  // It stages a disk, and binds it into pods.
  std::shared_ptr<FakeCsiProcess> ServeNode(const std::vector<NodeCapability::Type>& capabilities =
                                                {NodeCapability::STAGE_UNSTAGE_VOLUME}) {
    process_ = Serve();
    ::csi::v1::NodeGetCapabilitiesResponse answer;
    for (const auto type : capabilities) answer.add_capabilities()->mutable_rpc()->set_type(type);
    process_->Answer("NodeGetCapabilities", answer);
    Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [this](const Message& request) {
      Mounts(Field(request, "staging_target_path"), disk_);
    });
    Does<::csi::v1::NodePublishVolumeResponse>("NodePublishVolume", [this](const Message& request) {
      Publishes(static_cast<const ::csi::v1::NodePublishVolumeRequest&>(request));
    });
    Does<::csi::v1::NodeUnpublishVolumeResponse>(
        "NodeUnpublishVolume", [this](const Message& request) { Clears(request, "target_path"); });
    Does<::csi::v1::NodeUnstageVolumeResponse>("NodeUnstageVolume", [this](const Message& request) {
      kernel_.UnmountBelow(Field(request, "staging_target_path"));
    });
    const std::optional<Status> status = Register();
    EXPECT_TRUE(status.has_value() && status->ok());
    return process_;
  }
  // After the deed the RPC succeeds. What is asked is kept.
  template <typename Response>
  void Does(const std::string& rpc, Deed deed) {
    process_->Handle(rpc, [this, rpc, deed = std::move(deed)](const Message& request) {
      Asked(rpc, request);
      deed(request);
      return CsiChannel::AnyAnswer(std::make_unique<Response>());
    });
  }
  void Says(const std::string& rpc, Code code, Deed deed = {}) {
    process_->Handle(rpc, [this, rpc, code, deed](const Message& request) -> CsiChannel::AnyAnswer {
      Asked(rpc, request);
      if (deed) deed(request);
      return CsiError(kName, *FindCsiMethod(rpc),
                      {.code = code, .message = "no, not with " + SecretOf(rpc)},
                      CsiSecrets(request));
    });
  }
  static std::string SecretOf(const std::string& rpc) {
    if (rpc == "NodeStageVolume") return "hunter2-stage";
    return rpc == "NodePublishVolume" ? "hunter2-publish" : "nothing";
  }
  void Asked(const std::string& rpc, const Message& request) {
    calls_.push_back(rpc);
    std::unique_ptr<Message> copy(request.New());
    copy->CopyFrom(request);
    asked_[rpc] = std::move(copy);
    device_at_call_ = Row();
  }
  template <typename Request>
  const Request& Last(const std::string& rpc) const {
    return static_cast<const Request&>(*asked_.at(rpc));
  }
  static std::string Field(const Message& request, const std::string& name) {
    return request.GetReflection()->GetString(request,
                                              request.GetDescriptor()->FindFieldByName(name));
  }
  void Mounts(const std::string& path, const std::string& disk) {
    kernel_.AddDirectory(path);
    if (kernel_.IsMountPoint(path)) return;
    Must(kernel_.Call(Mount{"ext4", disk, HostPathOf(path), {}}, {}));
  }
  void Publishes(const ::csi::v1::NodePublishVolumeRequest& request) {
    const std::string& target = request.target_path();
    if (request.volume_capability().has_block()) {
      kernel_.AddSpecial(target, FileType::kBlockDevice);
      return;
    }
    kernel_.AddDirectory(target);
    if (kernel_.IsMountPoint(target)) return;
    if (request.staging_target_path().empty()) {
      kernel_.AddMount(
          "tmpfs", "tmpfs", target,
          request.readonly() ? std::vector<std::string>{"ro"} : std::vector<std::string>{});
      return;
    }
    Must(kernel_.Call(BindMount{.source = HostPathOf(request.staging_target_path()),
                                .target = HostPathOf(target),
                                .read_only = request.readonly()},
                      {}));
  }
  void Clears(const Message& request, const std::string& field) {
    const std::string path = Field(request, field);
    kernel_.UnmountBelow(path);
    if (kernel_.Exists(path)) kernel_.Remove(path);
  }
  static SafePath HostPathOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    return {path.substr(0, slash), path.substr(slash + 1)};
  }

  // ---- the operations, as the operation layer makes them ----
  SafePath StagingPlace() { return CsiStagingPath(paths_, kName, kHandle); }
  std::string Staging() { return StagingPlace().Display(); }
  std::string Target(const VolumeSpec& spec) {
    return CsiTargetPath(paths_, PodUid(kPodUid), spec.name()).Display();
  }
  CallOptions Call() const {
    CallOptions call;
    call.deadline = Deadline::After(clock_, minutes(2));
    call.awaits = [this](const std::string& whom) { awaited_.push_back(whom); };
    return call;
  }

  Status Stage(const VolumeSpec& spec, DeviceMounterArgs args = {}) {
    args.call = Call();
    const auto mounter = Must(plugin_->NewDeviceMounter());
    return InDeviceCall<void>(spec, VolumeEvent::kMountDevice, [&] {
      return mounter->MountDevice(spec, "", Must(mounter->GetDeviceMountPath(spec)), args);
    });
  }
  Status Unstage(const VolumeSpec& spec) {
    const auto unmounter = Must(plugin_->NewDeviceUnmounter());
    return InDeviceCall<void>(spec, VolumeEvent::kUnmountDevice, [&] {
      return unmounter->UnmountRecorded(spec, StagingPlace(), Call());
    });
  }
  std::unique_ptr<Mounter> MounterOf(const VolumeSpec& spec) {
    return Must(plugin_->NewMounter(
        spec, PodVolumeTarget(paths_, pod_, plugin_->GetPluginName(), spec.name())));
  }
  Status Publish(const VolumeSpec& spec, MounterArgs args = {}) {
    args.call = Call();
    mounter_ = MounterOf(spec);
    const Status done = mounter_->SetUp(args);
    scheduler_.RunFor(milliseconds(1));
    return done;
  }
  // `recorded` false: nothing but the node is known of the volume.
  Status Unpublish(const VolumeSpec& spec, bool recorded = true) {
    const PodUid pod(kPodUid);
    const auto unmounter = Must(recorded ? plugin_->NewUnmounterOf(spec, pod)
                                         : plugin_->NewUnmounter(spec.name(), pod));
    const Status done = unmounter->TearDown(Call());
    scheduler_.RunFor(milliseconds(1));
    return done;
  }
  Result<std::string> SetUpDevice(const VolumeSpec& spec) {
    const auto mapper = Must(plugin_->NewBlockVolumeMapper(spec, pod_));
    return InDeviceCall<std::string>(spec, VolumeEvent::kMountDevice,
                                     [&] { return mapper->AsCustom()->SetUpDevice(Call()); });
  }
  Result<std::string> MapPodDevice(const VolumeSpec& spec) {
    Result<std::string> done =
        Must(plugin_->NewBlockVolumeMapper(spec, pod_))->AsCustom()->MapPodDevice(Call());
    scheduler_.RunFor(milliseconds(1));
    return done;
  }
  std::unique_ptr<BlockVolumeUnmapper> UnmapperOf(const VolumeSpec& spec) {
    return Must(plugin_->NewBlockVolumeUnmapperOf(spec, PodUid(kPodUid)));
  }

  template <typename T>
  Result<T> InDeviceCall(const VolumeSpec& spec, VolumeEvent event,
                         const std::function<Result<T>()>& call) {
    DeviceRecord facts;
    facts.key = CsiUniqueName(kName, kHandle);
    facts.plugin_name = kCsiPluginName;
    facts.spec = spec.name();
    facts.is_block = IsBlockVolume(spec);
    facts.device_mount_path =
        facts.is_block ? CsiBlockMapDir(paths_, spec.name()).Display() : Staging();
    const Result<uint64_t> attempt = devices_->BeginCall(facts, event);
    if (!attempt.ok()) return attempt.error().With("BeginCall");
    Result<T> answer = call();
    scheduler_.RunFor(milliseconds(1));
    const CallAnswer how = answer.ok()                      ? CallAnswer::kDone
                           : answer.error().maybe_applied() ? CallAnswer::kMaybeApplied
                                                            : CallAnswer::kNotApplied;
    EXPECT_TRUE(devices_->EndCall(facts.key, *attempt, how).ok());
    return answer;
  }

  std::map<std::string, std::string> VolDataAt(const std::string& directory) {
    const FakeFile file = kernel_.Find(directory + "/vol_data.json");
    return file.type == FileType::kMissing ? StringMap() : Must(ParseVolData(file.content));
  }
  bool HasMounts(const std::string& path) {
    for (const MountEntry& mount : kernel_.Mounts()) {
      if (mount.mount_point.starts_with(path)) return true;
    }
    return false;
  }
  // A lie is told of as one, and counted.
  void ExpectLie(const Error& error, const std::string& method, const std::string& found) {
    EXPECT_EQ(error.code(), Code::kInternal) << error.ToString();
    EXPECT_TRUE(error.maybe_applied()) << error.ToString();
    EXPECT_THAT(error.message(), testing::StartsWith(std::string(kName) + ": " + method +
                                                     ": driver " + kName + " said that "));
    EXPECT_THAT(error.message(), testing::HasSubstr(", and "));
    EXPECT_THAT(error.message(), testing::HasSubstr(found));
    EXPECT_EQ(lies_, std::vector<std::string>{std::string(kName) + " " + method});
    EXPECT_THAT(lied_about_, testing::Each(testing::Not(testing::IsEmpty())));
  }

  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  std::unique_ptr<CsiPlugin> plugin_;
  PodPtr pod_;
  std::shared_ptr<FakeCsiProcess> process_;
  std::string disk_ = "/dev/sda";
  std::unique_ptr<Mounter> mounter_;
  std::vector<std::string> calls_;  // in their order
  mutable std::vector<std::string> awaited_;
  std::map<std::string, std::unique_ptr<Message>> asked_;
  std::optional<DeviceRecord> device_at_call_;
};

}  // namespace volumed
