#include "fakes/csi_fake_deeds.h"

#include <algorithm>
#include <utility>

#include "csi.pb.h"
#include "pluginregistration.pb.h"

namespace volumed {
namespace {

using google::protobuf::Message;
using RpcStatus = grpc::Status;
using grpc::StatusCode;
namespace v1 = ::csi::v1;

CsiFakeWorldOptions WorldOf(const CsiFakeOptions& options) {
  CsiFakeWorldOptions world{.directory = options.directory,
                            .volumes = options.volumes,
                            .size_bytes = options.size_bytes,
                            .known_only = options.known_only};
  return world;
}

bool Has(const std::vector<std::string>& capabilities, const std::string& name) {
  return std::find(capabilities.begin(), capabilities.end(), name) != capabilities.end();
}

template <typename Request>
std::map<std::string, std::string> Context(const Request& request) {
  return {request.publish_context().begin(), request.publish_context().end()};
}

// Which capability an RPC needs: of the node, or of the controller.
struct Needed {
  const char* rpc;
  const char* node;
  const char* controller;
};
// NodeUnstageVolume is not here: what was staged by an earlier version of a driver that had the
// capability has to be unstaged all the same.
constexpr Needed kNeeded[] = {{"NodeStageVolume", "STAGE_UNSTAGE_VOLUME", ""},
                              {"NodeGetVolumeStats", "GET_VOLUME_STATS", ""},
                              {"NodeExpandVolume", "EXPAND_VOLUME", ""},
                              {"CreateVolume", "", "CREATE_DELETE_VOLUME"},
                              {"DeleteVolume", "", "CREATE_DELETE_VOLUME"},
                              {"ControllerPublishVolume", "", "PUBLISH_UNPUBLISH_VOLUME"},
                              {"ControllerUnpublishVolume", "", "PUBLISH_UNPUBLISH_VOLUME"},
                              {"ControllerExpandVolume", "", "EXPAND_VOLUME"},
                              {"ControllerModifyVolume", "", "MODIFY_VOLUME"},
                              {"ListVolumes", "", "LIST_VOLUMES"},
                              {"GetCapacity", "", "GET_CAPACITY"}};

std::string StringOf(const Message& message, const char* field) {
  const auto* found = message.GetDescriptor()->FindFieldByName(field);
  using google::protobuf::FieldDescriptor;
  if (found == nullptr || found->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return "";
  return message.GetReflection()->GetString(message, found);
}

std::map<std::string, std::string> MapOf(const Message& message, const char* field) {
  std::map<std::string, std::string> all;
  const auto* found = message.GetDescriptor()->FindFieldByName(field);
  if (found == nullptr || !found->is_map()) return all;
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < reflection->FieldSize(message, found); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message, found, i);
    all[StringOf(entry, "key")] = StringOf(entry, "value");
  }
  return all;
}

const Message* PartOf(const Message& message, const char* field) {
  const auto* found = message.GetDescriptor()->FindFieldByName(field);
  using google::protobuf::FieldDescriptor;
  if (found == nullptr || found->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return nullptr;
  if (found->is_repeated() || !message.GetReflection()->HasField(message, found)) return nullptr;
  return &message.GetReflection()->GetMessage(message, found);
}

}  // namespace

CsiFakeEntry CsiFakeEntryOf(const CsiMethod& method, const Message& request) {
  CsiFakeEntry entry{.what = "begin", .rpc = method.name};
  entry.volume = StringOf(request, "volume_id");
  entry.staging = StringOf(request, "staging_target_path");
  entry.target = StringOf(request, "target_path");
  if (entry.target.empty()) entry.target = StringOf(request, "volume_path");
  entry.node = StringOf(request, "node_id");
  entry.text = StringOf(request, "error");  // of NotifyRegistrationStatus
  if (method.name == "CreateVolume") entry.volume = StringOf(request, "name");
  if (const auto* readonly = request.GetDescriptor()->FindFieldByName("readonly")) {
    entry.readonly = request.GetReflection()->GetBool(request, readonly);
  }
  for (const auto& [key, value] : MapOf(request, "secrets")) entry.secret_keys.push_back(key);
  entry.volume_context = MapOf(request, "volume_context");
  entry.publish_context = MapOf(request, "publish_context");
  if (const Message* range = PartOf(request, "capacity_range")) {
    entry.size_bytes = static_cast<const v1::CapacityRange*>(range)->required_bytes();
  }
  if (const Message* capability = PartOf(request, "volume_capability")) {
    const auto& use = *static_cast<const v1::VolumeCapability*>(capability);
    entry.block = use.has_block();
    entry.mount_flags = {use.mount().mount_flags().begin(), use.mount().mount_flags().end()};
    entry.mount_group = use.mount().volume_mount_group();
  }
  return entry;
}

CsiFakeDeeds::CsiFakeDeeds(const CsiFakeOptions& options, CsiFakeWorld::Violated violated)
    : options_(options), violated_(violated), world_(WorldOf(options), std::move(violated)) {
  Configure(options);
  if (options.forgets) world_.Forget();
  AddIdentity();
  AddNode();
  AddController();
  AddStorage();
}

void CsiFakeDeeds::Configure(const CsiFakeOptions& options) {
  {
    const std::lock_guard lock(mu_);
    options_ = options;
  }
  world_.Configure(Has(options.node_capabilities, "STAGE_UNSTAGE_VOLUME"),
                   Has(options.controller_capabilities, "PUBLISH_UNPUBLISH_VOLUME"),
                   options.node_id);
}

CsiFakeOptions CsiFakeDeeds::options() const {
  const std::lock_guard lock(mu_);
  return options_;
}

bool CsiFakeDeeds::HasCapability(const std::string& rpc, std::string* needed) const {
  const CsiFakeOptions now = options();
  for (const Needed& need : kNeeded) {
    if (rpc != need.rpc) continue;
    *needed = std::string(need.node) + need.controller;
    return Has(now.node_capabilities, need.node) ||
           Has(now.controller_capabilities, need.controller);
  }
  return true;
}

RpcStatus CsiFakeDeeds::Do(const CsiMethod& method, const Message& request,
                           const std::string& effect, Message* response) {
  if (effect == "none" && method.kind == CsiRpcKind::kMutating) return RpcStatus::OK;
  std::string needed;
  if (!HasCapability(method.name, &needed)) {
    violated_(method.name + " without the capability " + needed);
    return {StatusCode::UNIMPLEMENTED, method.name};
  }
  const auto deed = deeds_.find(method.name);
  if (deed == deeds_.end()) return {StatusCode::UNIMPLEMENTED, method.name};
  return deed->second(request, effect, response);
}

template <typename Request, typename Response>
void CsiFakeDeeds::On(
    const std::string& rpc,
    std::function<RpcStatus(const Request&, const std::string&, Response*)> deed) {
  deeds_[rpc] = [deed = std::move(deed)](const Message& request, const std::string& effect,
                                         Message* response) {
    return deed(static_cast<const Request&>(request), effect, static_cast<Response*>(response));
  };
}

void CsiFakeDeeds::AddIdentity() {
  On<pluginregistration::InfoRequest, pluginregistration::PluginInfo>(
      "GetInfo", [this](const auto&, const auto&, auto* answer) {
        const CsiFakeOptions now = options();
        answer->set_type(now.type);
        answer->set_name(now.registered_name.empty() ? now.name : now.registered_name);
        answer->set_endpoint(now.registered_endpoint.empty() ? now.endpoint
                                                             : now.registered_endpoint);
        if (now.registered_endpoint == "none") answer->clear_endpoint();
        for (const std::string& version : now.versions) answer->add_supported_versions(version);
        return RpcStatus::OK;
      });
  On<pluginregistration::RegistrationStatus, pluginregistration::RegistrationStatusResponse>(
      "NotifyRegistrationStatus", [](const auto&, const auto&, auto*) { return RpcStatus::OK; });
  On<v1::GetPluginInfoRequest, v1::GetPluginInfoResponse>(
      "GetPluginInfo", [this](const auto&, const auto&, auto* answer) {
        answer->set_name(options().name);
        answer->set_vendor_version(options().version);
        return RpcStatus::OK;
      });
  On<v1::GetPluginCapabilitiesRequest, v1::GetPluginCapabilitiesResponse>(
      "GetPluginCapabilities", [this](const auto&, const auto&, auto* answer) {
        for (const std::string& name : options().plugin_capabilities) {
          v1::PluginCapability::Service::Type service{};
          v1::PluginCapability::VolumeExpansion::Type expansion{};
          auto* one = answer->add_capabilities();
          if (v1::PluginCapability::Service::Type_Parse(name, &service)) {
            one->mutable_service()->set_type(service);
          } else if (v1::PluginCapability::VolumeExpansion::Type_Parse(name, &expansion)) {
            one->mutable_volume_expansion()->set_type(expansion);
          }
        }
        return RpcStatus::OK;
      });
  On<v1::ProbeRequest, v1::ProbeResponse>(
      "Probe", [](const auto&, const auto&, auto*) { return RpcStatus::OK; });
}

void CsiFakeDeeds::AddNode() {
  On<v1::NodeGetCapabilitiesRequest, v1::NodeGetCapabilitiesResponse>(
      "NodeGetCapabilities", [this](const auto&, const auto&, auto* answer) {
        for (const std::string& name : options().node_capabilities) {
          v1::NodeServiceCapability::RPC::Type type{};
          if (!v1::NodeServiceCapability::RPC::Type_Parse(name, &type)) continue;
          answer->add_capabilities()->mutable_rpc()->set_type(type);
        }
        return RpcStatus::OK;
      });
  On<v1::NodeGetInfoRequest, v1::NodeGetInfoResponse>(
      "NodeGetInfo", [this](const auto&, const auto&, auto* answer) {
        const CsiFakeOptions now = options();
        answer->set_node_id(now.node_id);
        answer->set_max_volumes_per_node(now.max_volumes);
        for (const auto& [key, value] : now.topology) {
          (*answer->mutable_accessible_topology()->mutable_segments())[key] = value;
        }
        return RpcStatus::OK;
      });
  On<v1::NodeStageVolumeRequest, v1::NodeStageVolumeResponse>(
      "NodeStageVolume", [this](const auto& request, const auto& effect, auto*) {
        return world_.Stage({.volume = request.volume_id(),
                             .staging = request.staging_target_path(),
                             .target = {},
                             .block = request.volume_capability().has_block(),
                             .publish_context = Context(request)},
                            effect);
      });
  On<v1::NodeUnstageVolumeRequest, v1::NodeUnstageVolumeResponse>(
      "NodeUnstageVolume", [this](const auto& request, const auto& effect, auto*) {
        return world_.Unstage(request.volume_id(), request.staging_target_path(), effect);
      });
  On<v1::NodePublishVolumeRequest, v1::NodePublishVolumeResponse>(
      "NodePublishVolume", [this](const auto& request, const auto& effect, auto*) {
        return world_.Publish({.volume = request.volume_id(),
                               .staging = request.staging_target_path(),
                               .target = request.target_path(),
                               .block = request.volume_capability().has_block(),
                               .readonly = request.readonly(),
                               .publish_context = Context(request)},
                              effect);
      });
  On<v1::NodeUnpublishVolumeRequest, v1::NodeUnpublishVolumeResponse>(
      "NodeUnpublishVolume", [this](const auto& request, const auto& effect, auto*) {
        return world_.Unpublish(request.volume_id(), request.target_path(), effect);
      });
  On<v1::NodeGetVolumeStatsRequest, v1::NodeGetVolumeStatsResponse>(
      "NodeGetVolumeStats", [this](const auto& request, const auto&, auto* answer) {
        return world_.Stats(request.volume_id(), request.volume_path(), answer);
      });
  On<v1::NodeExpandVolumeRequest, v1::NodeExpandVolumeResponse>(
      "NodeExpandVolume", [this](const auto& request, const auto& effect, auto* answer) {
        int64_t now = 0;
        const RpcStatus done = world_.Grow(
            request.volume_id(), request.capacity_range().required_bytes(), true, effect, &now);
        answer->set_capacity_bytes(now);
        return done;
      });
}

void CsiFakeDeeds::AddController() {
  On<v1::ControllerGetCapabilitiesRequest, v1::ControllerGetCapabilitiesResponse>(
      "ControllerGetCapabilities", [this](const auto&, const auto&, auto* answer) {
        const std::vector<std::string> names = options().controller_capabilities;
        if (names.empty())
          return RpcStatus{StatusCode::UNIMPLEMENTED, "there is no controller here"};
        for (const std::string& name : names) {
          v1::ControllerServiceCapability::RPC::Type type{};
          if (!v1::ControllerServiceCapability::RPC::Type_Parse(name, &type)) continue;
          answer->add_capabilities()->mutable_rpc()->set_type(type);
        }
        return RpcStatus{};
      });
  On<v1::ControllerPublishVolumeRequest, v1::ControllerPublishVolumeResponse>(
      "ControllerPublishVolume", [this](const auto& request, const auto&, auto* answer) {
        return world_.Attach(request.volume_id(), request.node_id(),
                             answer->mutable_publish_context());
      });
  On<v1::ControllerUnpublishVolumeRequest, v1::ControllerUnpublishVolumeResponse>(
      "ControllerUnpublishVolume", [this](const auto& request, const auto&, auto*) {
        return world_.Detach(request.volume_id(), request.node_id());
      });
  On<v1::ListVolumesRequest, v1::ListVolumesResponse>(
      "ListVolumes", [this](const auto&, const auto&, auto* answer) {
        for (const auto& [volume, known] : world_.Volumes()) {
          auto* entry = answer->add_entries();
          entry->mutable_volume()->set_volume_id(volume);
          entry->mutable_volume()->set_capacity_bytes(known.size_bytes);
          for (const std::string& node : known.nodes) {
            entry->mutable_status()->add_published_node_ids(node);
          }
        }
        return RpcStatus::OK;
      });
}

void CsiFakeDeeds::AddStorage() {
  On<v1::CreateVolumeRequest, v1::CreateVolumeResponse>(
      "CreateVolume", [this](const auto& request, const auto& effect, auto* answer) {
        const RpcStatus done = world_.Create(request, effect, answer->mutable_volume());
        const CsiFakeOptions now = options();
        if (!now.topology.empty()) {
          auto* segments = answer->mutable_volume()->add_accessible_topology()->mutable_segments();
          for (const auto& [key, value] : now.topology) (*segments)[key] = value;
        }
        return done;
      });
  On<v1::DeleteVolumeRequest, v1::DeleteVolumeResponse>(
      "DeleteVolume", [this](const auto& request, const auto&, auto*) {
        return world_.Delete(request.volume_id());
      });
  On<v1::ControllerExpandVolumeRequest, v1::ControllerExpandVolumeResponse>(
      "ControllerExpandVolume", [this](const auto& request, const auto& effect, auto* answer) {
        int64_t now = 0;
        const RpcStatus done = world_.Grow(
            request.volume_id(), request.capacity_range().required_bytes(), false, effect, &now);
        answer->set_capacity_bytes(now);
        answer->set_node_expansion_required(Has(options().node_capabilities, "EXPAND_VOLUME"));
        return done;
      });
  On<v1::ControllerModifyVolumeRequest, v1::ControllerModifyVolumeResponse>(
      "ControllerModifyVolume", [](const auto&, const auto&, auto*) { return RpcStatus::OK; });
  On<v1::GetCapacityRequest, v1::GetCapacityResponse>(
      "GetCapacity", [](const auto&, const auto&, auto* answer) {
        answer->set_available_capacity(int64_t{1} << 40);
        return RpcStatus::OK;
      });
  On<v1::ValidateVolumeCapabilitiesRequest, v1::ValidateVolumeCapabilitiesResponse>(
      "ValidateVolumeCapabilities", [](const auto& request, const auto&, auto* answer) {
        *answer->mutable_confirmed()->mutable_volume_capabilities() = request.volume_capabilities();
        return RpcStatus::OK;
      });
}

}  // namespace volumed
