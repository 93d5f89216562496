// The driver's side: what it does for each call.
#include "unit/crash/crash_csi.h"

#include <memory>
#include <stdexcept>

#include "csi.pb.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_outcome.h"
#include "unit/crash/crash_world.h"

namespace volumed {
namespace {

using google::protobuf::Message;
using NodeRpc = ::csi::v1::NodeServiceCapability::RPC;
using ControllerRpc = ::csi::v1::ControllerServiceCapability::RPC;
using Answer = CsiChannel::AnyAnswer;

constexpr const char* kContextKey = "devicePath";

template <typename Response>
Answer Said(Response response = {}) {
  return std::unique_ptr<Message>(std::make_unique<Response>(std::move(response)));
}

Answer Refused(const Message& request, Code code, const std::string& why) {
  return CsiError(kCrashCsiDriver, *CsiMethodOf(request.GetDescriptor()),
                  {.code = code, .message = why}, CsiSecrets());
}

SafePath PathOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

void Must(const Result<AnyAnswer>& done) {
  if (!done.ok()) throw std::logic_error("the driver: " + done.error().ToString());
}

// ---- what it says of itself

Answer Capabilities(const CsiTruth& csi, const ::csi::v1::NodeGetCapabilitiesRequest&) {
  ::csi::v1::NodeGetCapabilitiesResponse answer;
  const auto add = [&](NodeRpc::Type type) {
    answer.add_capabilities()->mutable_rpc()->set_type(type);
  };
  if (csi.stages) add(NodeRpc::STAGE_UNSTAGE_VOLUME);
  add(NodeRpc::EXPAND_VOLUME);
  return Said(std::move(answer));
}

Answer Capabilities(const CsiTruth& csi, const Message& request,
                    const ::csi::v1::ControllerGetCapabilitiesRequest&) {
  if (!csi.attaches && !csi.makes) return Refused(request, Code::kUnimplemented, "no controller");
  ::csi::v1::ControllerGetCapabilitiesResponse answer;
  const auto add = [&](ControllerRpc::Type type) {
    answer.add_capabilities()->mutable_rpc()->set_type(type);
  };
  if (csi.attaches) add(ControllerRpc::PUBLISH_UNPUBLISH_VOLUME);
  if (csi.makes) add(ControllerRpc::CREATE_DELETE_VOLUME);
  if (csi.makes) add(ControllerRpc::EXPAND_VOLUME);
  return Said(std::move(answer));
}

Answer NodeInfo() {
  ::csi::v1::NodeGetInfoResponse info;
  info.set_node_id(kCrashCsiNodeId);
  return Said(std::move(info));
}

Answer PluginInfo() {
  ::csi::v1::GetPluginInfoResponse info;
  info.set_name(kCrashCsiDriver);
  info.set_vendor_version("1");
  return Said(std::move(info));
}

Answer PluginCapabilities(const CsiTruth& csi) {
  ::csi::v1::GetPluginCapabilitiesResponse answer;
  if (csi.makes) {
    answer.add_capabilities()->mutable_volume_expansion()->set_type(
        ::csi::v1::PluginCapability::VolumeExpansion::ONLINE);
  }
  return Said(std::move(answer));
}

// ---- the node

Answer Stage(CrashWorld& world, const ::csi::v1::NodeStageVolumeRequest& request) {
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  const std::string& path = request.staging_target_path();
  const bool is_block = request.volume_capability().has_block();
  if (!is_block && !world.kernel->IsMountPoint(path)) {
    world.kernel->AddDirectory(path, 0750);
    Must(world.kernel->DoAside(Mount{"ext4", volume->second.device, PathOf(path), {}}));
  }
  volume->second.staged.insert(path);
  return Said<::csi::v1::NodeStageVolumeResponse>();
}

void PublishDevice(CrashWorld& world, const std::string& device, const std::string& target) {
  if (world.kernel->IsMountPoint(target)) return;
  world.kernel->AddFile(target, "");
  Must(world.kernel->DoAside(BindMount{.source = PathOf(device), .target = PathOf(target)}));
}

Answer Publish(CrashWorld& world, const ::csi::v1::NodePublishVolumeRequest& request) {
  const std::string& target = request.target_path();
  const bool is_inline = request.volume_id().starts_with("csi-");  // CsiInlineHandle()
  if (is_inline && !world.csi->volumes.contains(request.volume_id())) {
    world.csi->volumes[request.volume_id()].inline_of_pod = true;
  }
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  volume->second.published.insert(target);
  if (volume->second.one_pod) volume->second.pod = PodOfCsiTarget(world, target);
  if (request.volume_capability().has_block()) {
    PublishDevice(world, volume->second.device, target);
    return Said<::csi::v1::NodePublishVolumeResponse>();
  }
  if (world.kernel->IsMountPoint(target)) return Said<::csi::v1::NodePublishVolumeResponse>();
  world.kernel->AddDirectory(target, 0750);
  if (is_inline) {
    world.kernel->AddMount("tmpfs", "tmpfs", target);
  } else if (request.staging_target_path().empty()) {
    Must(world.kernel->DoAside(Mount{"ext4", volume->second.device, PathOf(target), {}}));
  } else {
    Must(world.kernel->DoAside(BindMount{.source = PathOf(request.staging_target_path()),
                                         .target = PathOf(target),
                                         .read_only = request.readonly()}));
  }
  return Said<::csi::v1::NodePublishVolumeResponse>();
}

Answer Unpublish(CrashWorld& world, const ::csi::v1::NodeUnpublishVolumeRequest& request) {
  const std::string& target = request.target_path();
  world.kernel->UnmountBelow(target);
  if (world.kernel->Exists(target)) world.kernel->Remove(target);
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  volume->second.published.erase(target);
  if (volume->second.inline_of_pod) world.csi->volumes.erase(volume);
  return Said<::csi::v1::NodeUnpublishVolumeResponse>();
}

Answer Unstage(CrashWorld& world, const ::csi::v1::NodeUnstageVolumeRequest& request) {
  world.kernel->UnmountBelow(request.staging_target_path());
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  volume->second.staged.erase(request.staging_target_path());
  return Said<::csi::v1::NodeUnstageVolumeResponse>();
}

Answer NodeExpand(CrashWorld& world, const ::csi::v1::NodeExpandVolumeRequest& request) {
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  world.kernel->ChangeDevice(volume->second.device, [&](FakeDevice& device) {
    device.fs_bytes = device.identity.size_bytes;
  });
  ::csi::v1::NodeExpandVolumeResponse answer;
  answer.set_capacity_bytes(volume->second.bytes);
  return Said(std::move(answer));
}

// ---- the controller

Answer Attach(CrashWorld& world, const ::csi::v1::ControllerPublishVolumeRequest& request) {
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  const std::string& device = volume->second.device;
  volume->second.attached = true;
  if (!world.kernel->Exists(device)) world.kernel->ReturnDeviceNode(device);
  world.csi->publish_context[request.volume_id()] = device;
  ::csi::v1::ControllerPublishVolumeResponse answer;
  (*answer.mutable_publish_context())[kContextKey] = device;
  return Said(std::move(answer));
}

Answer Detach(CrashWorld& world, const ::csi::v1::ControllerUnpublishVolumeRequest& request) {
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  volume->second.attached = false;
  if (world.kernel->Exists(volume->second.device)) world.kernel->Remove(volume->second.device);
  return Said<::csi::v1::ControllerUnpublishVolumeResponse>();
}

Answer Create(CrashWorld& world, const ::csi::v1::CreateVolumeRequest& request) {
  const std::string handle = "vol-" + request.name();
  if (!world.csi->volumes.contains(handle)) {
    CsiTruth::Volume volume;
    volume.name = request.name();
    volume.bytes = request.capacity_range().required_bytes();
    AddCsiVolume(world, handle, std::move(volume));
  }
  ::csi::v1::CreateVolumeResponse answer;
  answer.mutable_volume()->set_volume_id(handle);
  answer.mutable_volume()->set_capacity_bytes(world.csi->volumes.at(handle).bytes);
  return Said(std::move(answer));
}

Answer Delete(CrashWorld& world, const ::csi::v1::DeleteVolumeRequest& request) {
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume != world.csi->volumes.end()) {
    const std::string device = volume->second.device;
    world.kernel->ChangeDevice(device, [](FakeDevice& disk) { disk.filesystem = 0; });
    if (world.kernel->Exists(device)) world.kernel->Remove(device);
    world.csi->volumes.erase(volume);
  }
  return Said<::csi::v1::DeleteVolumeResponse>();
}

Answer Grow(CrashWorld& world, const ::csi::v1::ControllerExpandVolumeRequest& request) {
  const auto volume = world.csi->volumes.find(request.volume_id());
  if (volume == world.csi->volumes.end()) return Refused(request, Code::kNotFound, "no volume");
  volume->second.bytes = std::max(volume->second.bytes, request.capacity_range().required_bytes());
  world.kernel->ChangeDevice(volume->second.device, [&](FakeDevice& device) {
    if (device.fs_bytes == 0) device.fs_bytes = device.identity.size_bytes;
    device.identity.size_bytes = volume->second.bytes;
  });
  ::csi::v1::ControllerExpandVolumeResponse answer;
  answer.set_capacity_bytes(volume->second.bytes);
  answer.set_node_expansion_required(true);
  return Said(std::move(answer));
}

template <typename Request>
const Request* As(const Message& request) {
  return request.GetDescriptor() == Request::descriptor() ? static_cast<const Request*>(&request)
                                                          : nullptr;
}

}  // namespace

std::vector<KubeletPaths::DeviceLayout> CrashWorld::DeviceLayouts() {
  std::vector<KubeletPaths::DeviceLayout> layouts = InTreeDeviceLayouts();
  layouts.push_back(CsiDeviceAt);
  return layouts;
}

std::string CsiDeviceOf(const std::string& handle) { return "/dev/csi/" + handle; }

void AddCsiVolume(CrashWorld& world, const std::string& handle, CsiTruth::Volume volume) {
  volume.device = CsiDeviceOf(handle);
  FakeDevice disk;
  disk.fs_type = "ext4";
  disk.usage = "filesystem";
  disk.identity.size_bytes = volume.bytes;
  disk.identity.stable_id = "serial:" + handle;
  // A volume of its name was there before: its disk is another one.
  if (!world.csi->made.insert(handle).second) {
    world.kernel->ChangeDevice(volume.device, [&](FakeDevice& device) {
      device.identity.size_bytes = disk.identity.size_bytes;
      device.fs_bytes = 0;
    });
    world.kernel->ReturnDeviceNode(volume.device);
  } else {
    world.kernel->AddDevice(volume.device, disk);
  }
  if (world.csi->attaches) world.kernel->Remove(volume.device);
  world.csi->volumes[handle] = std::move(volume);
}

void BeginCsiAgent(CrashWorld& world) {
  if (!world.csi) return;
  world.csi->calls = 0;
  world.csi->deaths = 0;
  world.csi->end.reset();
  world.csi->in_flight.clear();
  world.csi->agent_is_dead = false;
  NoteCsi(world, "", "an agent begins");
}

// It is attached still, for its controller is elsewhere; and an inline volume has gone. Nobody
// syncs the file that says which volume a pod has: a power loss takes it, as the rows of its kind.
void RebootCsi(CrashWorld& world, bool power_loss) {
  if (!world.csi) return;
  CsiTruth& csi = *world.csi;
  NoteCsi(world, "", power_loss ? "the power fails" : "the node starts anew");
  for (auto& [handle, volume] : csi.volumes) {
    for (const std::string& target : volume.published) {
      const std::string file = target.substr(0, target.rfind('/')) + "/vol_data.json";
      if (power_loss && world.kernel->Exists(file)) world.kernel->Remove(file);
    }
    volume.staged.clear();
    volume.published.clear();
  }
  std::erase_if(csi.volumes, [](const auto& one) { return one.second.inline_of_pod; });
  for (auto& [handle, calls] : csi.open) {
    std::erase_if(calls, [](const auto& call) { return call.first.starts_with("Node"); });
  }
}

bool ChangesCsi(const Message& request) {
  return CsiMethodOf(request.GetDescriptor())->kind == CsiRpcKind::kMutating;
}

CsiChannel::AnyAnswer DoCsi(CrashWorld& world, const Message& request) {
  using namespace ::csi::v1;  // NOLINT(google-build-using-namespace): the names of its requests
  if (As<GetPluginInfoRequest>(request)) return PluginInfo();
  if (As<GetPluginCapabilitiesRequest>(request)) return PluginCapabilities(*world.csi);
  if (const auto* asked = As<NodeGetCapabilitiesRequest>(request)) {
    return Capabilities(*world.csi, *asked);
  }
  if (const auto* asked = As<ControllerGetCapabilitiesRequest>(request)) {
    return Capabilities(*world.csi, request, *asked);
  }
  if (As<NodeGetInfoRequest>(request)) return NodeInfo();
  if (As<ProbeRequest>(request)) return Said<ProbeResponse>();
  if (const auto* asked = As<NodeStageVolumeRequest>(request)) return Stage(world, *asked);
  if (const auto* asked = As<NodeUnstageVolumeRequest>(request)) return Unstage(world, *asked);
  if (const auto* asked = As<NodePublishVolumeRequest>(request)) return Publish(world, *asked);
  if (const auto* asked = As<NodeUnpublishVolumeRequest>(request)) return Unpublish(world, *asked);
  if (const auto* asked = As<NodeExpandVolumeRequest>(request)) return NodeExpand(world, *asked);
  if (const auto* asked = As<ControllerPublishVolumeRequest>(request)) return Attach(world, *asked);
  if (const auto* asked = As<ControllerUnpublishVolumeRequest>(request)) {
    return Detach(world, *asked);
  }
  if (const auto* asked = As<CreateVolumeRequest>(request)) return Create(world, *asked);
  if (const auto* asked = As<DeleteVolumeRequest>(request)) return Delete(world, *asked);
  if (const auto* asked = As<ControllerExpandVolumeRequest>(request)) return Grow(world, *asked);
  return Refused(request, Code::kUnimplemented, "this driver has no such call");
}

}  // namespace volumed
