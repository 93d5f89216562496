#include "csi/csi_create_request.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "csi/request_maps.h"
#include "kube/value_rules.h"
#include "pluginmgr/volume_options.h"

namespace volumed {
namespace {

constexpr std::string_view kReservedPrefix = "csi.storage.k8s.io/";
constexpr char kFsTypeKey[] = "csi.storage.k8s.io/fstype";
constexpr std::string_view kOldFsType = kVolumeParameterFsType;
constexpr size_t kMostQuoted = 80;

// The parameters that name a secret by two templates, with what they were called before.
struct SecretKeys {
  std::string_view name;        // for messages
  std::string_view prefix;      // of "-name" and "-namespace", behind kReservedPrefix
  std::string_view old_prefix;  // of "Name" and "Namespace"; empty: there was none
};
constexpr SecretKeys kDefaultSecret{"Default", "secret", ""};
constexpr SecretKeys kProvisionerSecret{"Provisioner", "provisioner-secret",
                                        "csiProvisionerSecret"};
constexpr SecretKeys kControllerPublishSecret{"ControllerPublish", "controller-publish-secret",
                                              "csiControllerPublishSecret"};
constexpr SecretKeys kNodeStageSecret{"NodeStage", "node-stage-secret", "csiNodeStageSecret"};
constexpr SecretKeys kNodePublishSecret{"NodePublish", "node-publish-secret",
                                        "csiNodePublishSecret"};
constexpr SecretKeys kControllerExpandSecret{"ControllerExpand", "controller-expand-secret", ""};
constexpr SecretKeys kNodeExpandSecret{"NodeExpand", "node-expand-secret", ""};
constexpr std::array kAllSecrets = {kDefaultSecret,   kProvisionerSecret, kControllerPublishSecret,
                                    kNodeStageSecret, kNodePublishSecret, kControllerExpandSecret,
                                    kNodeExpandSecret};

Error RefusedClass(const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument, why);
}

std::string SecretKey(const SecretKeys& secret, std::string_view end) {
  return std::string(kReservedPrefix) + std::string(secret.prefix) + std::string(end);
}

bool IsKnownParameter(const std::string& reserved_key) {
  if (reserved_key == kFsTypeKey) return true;
  return std::any_of(kAllSecrets.begin(), kAllSecrets.end(), [&](const SecretKeys& secret) {
    return reserved_key == SecretKey(secret, "-name") ||
           reserved_key == SecretKey(secret, "-namespace");
  });
}

// The parameters that the driver gets. Those of before stay, as drivers may read them.
Result<StringMap> DriverParameters(const CsiCreateWish& wish) {
  StringMap kept;
  for (const auto& [key, text] : wish.parameters) {
    if (!StripPrefix(key, kReservedPrefix)) {
      kept[key] = text;
    } else if (!IsKnownParameter(key)) {
      return RefusedClass("found unknown parameter key " + Quoted(key, kMostQuoted) +
                          " with reserved namespace " + std::string(kReservedPrefix));
    }
  }
  if (wish.extra_create_metadata) {
    kept["csi.storage.k8s.io/pvc/name"] = wish.claim.metadata.name;
    kept["csi.storage.k8s.io/pvc/namespace"] = wish.claim.metadata.name_space;
    kept["csi.storage.k8s.io/pv/name"] = wish.pv_name;
  }
  return kept;
}

bool IsOldFsType(const std::string& key) {
  return key.size() == kOldFsType.size() &&
         std::equal(key.begin(), key.end(), kOldFsType.begin(), [](char c, char wanted) {
           return std::tolower(static_cast<unsigned char>(c)) == wanted;
         });
}

Result<std::string> FsTypeOf(const CsiCreateWish& wish) {
  std::vector<std::string> found;
  for (const auto& [key, text] : wish.parameters) {
    if (key == kFsTypeKey || IsOldFsType(key)) found.push_back(text);
  }
  if (found.size() > 1) {
    return RefusedClass(std::string("fstype specified in parameters with both \"fstype\" and \"") +
                        kFsTypeKey + "\" keys");
  }
  const std::string fs_type = found.empty() ? "" : found.front();
  return fs_type.empty() ? wish.default_fs_type : fs_type;
}

struct Templates {
  std::string name;
  std::string name_space;
};

// Nullopt: the class says nothing of this secret.
Result<std::optional<Templates>> TemplatesOf(const SecretKeys& secret,
                                             const StringMap& parameters) {
  const auto find = [&](std::string_view end, std::string_view old_end) {
    std::vector<std::string> keys = {SecretKey(secret, end)};
    if (!secret.old_prefix.empty()) {
      keys.push_back(std::string(secret.old_prefix) + std::string(old_end));
    }
    std::vector<std::string> found;
    for (const std::string& key : keys) {
      if (const auto at = parameters.find(key); at != parameters.end()) found.push_back(at->second);
    }
    return found;
  };
  const std::vector<std::string> names = find("-name", "Name");
  const std::vector<std::string> name_spaces = find("-namespace", "Namespace");
  const std::string who = std::string(secret.name) + " secrets";
  if (names.size() > 1 || name_spaces.size() > 1) {
    return RefusedClass(who + " specified in parameters with both \"csi\" and \"" +
                        std::string(kReservedPrefix) + "\" keys");
  }
  if (names.size() != name_spaces.size()) {
    return RefusedClass("either name and namespace for " + who +
                        " specified, Both must be specified");
  }
  if (names.empty()) return std::optional<Templates>();
  if (names[0].empty() || name_spaces[0].empty()) {
    return RefusedClass(who +
                        " specified in parameters but value of either namespace or name is empty");
  }
  return std::optional<Templates>(Templates{names[0], name_spaces[0]});
}

bool IsNameCharacter(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool IsSpecialName(char c) {
  return std::string_view("*#$@!?-").find(c) != std::string_view::npos ||
         std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// What follows a '$': the variable's name, and how much of the text it takes. An empty name that
// takes something is one that is dropped with it; one that takes nothing leaves the '$'.
struct Variable {
  std::string_view name;
  size_t length = 0;
};

// Source: go os/env.go@go1.25 (getShellName).
Variable VariableAt(std::string_view text) {
  if (text.empty()) return {};
  if (text[0] == '{') {
    if (text.size() > 2 && IsSpecialName(text[1]) && text[2] == '}') return {text.substr(1, 1), 3};
    const size_t end = text.find('}', 1);
    if (end == std::string_view::npos) return {{}, 1};
    if (end == 1) return {{}, 2};
    return {text.substr(1, end - 1), end + 1};
  }
  if (IsSpecialName(text[0])) return {text.substr(0, 1), 1};
  size_t length = 0;
  while (length < text.size() && IsNameCharacter(text[length])) ++length;
  return {text.substr(0, length), length};
}

// Puts the values in the place of "${name}" and "$name". Errors: InvalidArgument, naming the
// variables that there are not. Source: go os/env.go@go1.25 (Expand).
Result<std::string> ResolveText(const std::string& text, const StringMap& values) {
  std::string resolved;
  std::set<std::string> missing;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t dollar = rest.find('$');
    if (dollar == std::string_view::npos || dollar + 1 == rest.size()) break;
    resolved += rest.substr(0, dollar);
    rest.remove_prefix(dollar + 1);
    const Variable variable = VariableAt(rest);
    if (variable.name.empty() && variable.length == 0) resolved += '$';
    if (!variable.name.empty()) {
      const auto value = values.find(std::string(variable.name));
      if (value == values.end()) {
        missing.insert(Quoted(variable.name, kMostQuoted));
      } else {
        resolved += value->second;
      }
    }
    rest.remove_prefix(variable.length);
  }
  resolved += rest;
  if (!missing.empty()) {
    return RefusedClass("error resolving value " + Quoted(text, kMostQuoted) +
                        ": invalid tokens: [" + Join(missing, " ") + "]");
  }
  return resolved;
}

// `what` is "namespace" or "secret".
Result<std::string> ResolveName(const std::string& text, const StringMap& values,
                                const TextRule& rule, const std::string& what) {
  ASSIGN_OR_RETURN(const std::string resolved, ResolveText(text, values));
  if (!rule.broken(resolved)) return resolved;
  const std::string how = text == resolved
                              ? " is not"
                              : " resolved to " + Quoted(resolved, kMostQuoted) + " which is not";
  return RefusedClass(Quoted(text, kMostQuoted) + how + " a valid " + what + " name");
}

// By `with_annotations`, the claim's owner may choose the secret. He may not that of provisioning:
// it is the administrator's.
Result<std::optional<SecretReference>> SecretOf(const SecretKeys& secret, const CsiCreateWish& wish,
                                                bool with_annotations = true) {
  ASSIGN_OR_RETURN(std::optional<Templates> templates, TemplatesOf(secret, wish.parameters));
  if (!templates) {
    ASSIGN_OR_RETURN(templates, TemplatesOf(kDefaultSecret, wish.parameters));
  }
  if (!templates) return std::optional<SecretReference>();
  const ObjectMeta& claim = wish.claim.metadata;
  StringMap values = {{"pv.name", wish.pv_name}, {"pvc.namespace", claim.name_space}};
  SecretReference reference;
  ASSIGN_OR_RETURN(reference.name_space,
                   ResolveName(templates->name_space, values, rules::kDnsLabel, "namespace"));
  values["pvc.name"] = claim.name;
  if (with_annotations) {
    for (const auto& [key, text] : claim.annotations)
      values["pvc.annotations['" + key + "']"] = text;
  }
  ASSIGN_OR_RETURN(reference.name,
                   ResolveName(templates->name, values, rules::kDnsSubdomain, "secret"));
  return std::optional<SecretReference>(std::move(reference));
}

Status AddCapabilities(const CsiDriverFacts& driver, const CsiCreateWish& wish,
                       const std::string& fs_type, ::csi::v1::CreateVolumeRequest& request) {
  for (const AccessMode mode : wish.claim.spec.access_modes) {
    ::csi::v1::VolumeCapability& capability = *request.add_volume_capabilities();
    ASSIGN_OR_RETURN(const auto word, CsiControllerAccessMode(driver, {mode}));
    capability.mutable_access_mode()->set_mode(word);
    if (wish.claim.spec.volume_mode == VolumeMode::kBlock) {
      capability.mutable_block();
      continue;
    }
    auto& mount = *capability.mutable_mount();
    mount.set_fs_type(fs_type);
    mount.mutable_mount_flags()->Assign(wish.mount_options.begin(), wish.mount_options.end());
  }
  return OkStatus();
}

void AddTopology(const StringMap& segments, ::csi::v1::CreateVolumeRequest& request) {
  auto& requirements = *request.mutable_accessibility_requirements();
  for (::csi::v1::Topology* place : {requirements.add_requisite(), requirements.add_preferred()}) {
    PutTexts(segments, *place->mutable_segments());
  }
}

void AddContent(const CsiContentSource& content, ::csi::v1::CreateVolumeRequest& request) {
  auto& source = *request.mutable_volume_content_source();
  if (!content.snapshot_id.empty()) {
    source.mutable_snapshot()->set_snapshot_id(content.snapshot_id);
  } else {
    source.mutable_volume()->set_volume_id(content.volume_id);
  }
}

Status AddSecretReferences(const CsiCreateWish& wish, CsiCreatePlan& plan) {
  ASSIGN_OR_RETURN(plan.provisioner_secret,
                   SecretOf(kProvisionerSecret, wish, /*with_annotations=*/false));
  ASSIGN_OR_RETURN(plan.controller_publish_secret, SecretOf(kControllerPublishSecret, wish));
  ASSIGN_OR_RETURN(plan.node_stage_secret, SecretOf(kNodeStageSecret, wish));
  ASSIGN_OR_RETURN(plan.node_publish_secret, SecretOf(kNodePublishSecret, wish));
  ASSIGN_OR_RETURN(plan.controller_expand_secret, SecretOf(kControllerExpandSecret, wish));
  ASSIGN_OR_RETURN(plan.node_expand_secret, SecretOf(kNodeExpandSecret, wish));
  return OkStatus();
}

}  // namespace

Result<CsiCreatePlan> PlanCreateVolume(const CsiDriverFacts& driver, const CsiCreateWish& wish) {
  CsiCreatePlan plan;
  ASSIGN_OR_RETURN(plan.fs_type, FsTypeOf(wish));
  ASSIGN_OR_RETURN(const StringMap parameters, DriverParameters(wish));
  RETURN_IF_ERROR(AddSecretReferences(wish, plan));
  ::csi::v1::CreateVolumeRequest& request = plan.request;
  request.set_name(wish.pv_name);
  RETURN_IF_ERROR(AddCapabilities(driver, wish, plan.fs_type, request));
  const StorageRequest& storage = wish.claim.spec.storage;
  auto& range = *request.mutable_capacity_range();
  range.set_required_bytes(storage.request.Value());
  if (storage.limit) range.set_limit_bytes(storage.limit->Value());
  PutTexts(parameters, *request.mutable_parameters());
  if (!wish.topology.empty() &&
      driver.HasPlugin(::csi::v1::PluginCapability_Service::VOLUME_ACCESSIBILITY_CONSTRAINTS)) {
    AddTopology(wish.topology, request);
  }
  if (wish.content) AddContent(*wish.content, request);
  // A block volume has no filesystem, whatever the class says.
  if (wish.claim.spec.volume_mode == VolumeMode::kBlock) plan.fs_type.clear();
  return plan;
}

std::set<ObjectKey> SecretsNamedByClass(const StringMap& parameters) {
  std::set<ObjectKey> named;
  for (const SecretKeys& secret : kAllSecrets) {
    const Result<std::optional<Templates>> templates = TemplatesOf(secret, parameters);
    if (!templates.ok() || !*templates) continue;
    const auto& [name, name_space] = **templates;
    const bool is_outright = (name + name_space).find('$') == std::string::npos;
    if (is_outright) named.insert({ObjectKind::kSecret, name_space, name});
  }
  return named;
}

::csi::v1::CreateVolumeRequest WithSecrets(const ::csi::v1::CreateVolumeRequest& request,
                                           const CsiSecretValues& secrets) {
  ::csi::v1::CreateVolumeRequest complete = request;
  PutSecrets(secrets, *complete.mutable_secrets());
  return complete;
}

}  // namespace volumed
