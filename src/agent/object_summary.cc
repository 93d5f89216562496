#include "agent/object_summary.h"

#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "kube/decode.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

// How one kind is shown. A new kind needs a row only if a list of its fields would show it badly.
struct SummaryRow {
  ObjectKind kind;
  void (*summarise)(const Object& object, SummaryLines& lines);
};

std::string Cut(std::string value) {
  if (value.size() <= kMaxSummaryValue) return value;
  return std::string(BeginningOf(value, kMaxSummaryValue)) + "...";
}

void Add(SummaryLines& lines, std::string name, std::string value) {
  if (!value.empty()) lines.emplace_back(std::move(name), std::move(value));
}

// The object as JSON, with a secret's values withheld.
Json ToJson(const Object& object) { return Json::parse(EncodeObjectJson(object), nullptr, false); }

std::string Plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string MountText(const VolumeMount& mount) {
  std::string text = mount.name + " at " + mount.mount_path;
  if (!mount.sub_path.empty()) text += ", subPath " + mount.sub_path;
  if (!mount.sub_path_expr.empty()) text += ", subPathExpr " + mount.sub_path_expr;
  if (mount.read_only) text += ", read-only";
  return text;
}

void AddContainers(const char* kind, const std::vector<Container>& containers,
                   SummaryLines& lines) {
  for (const Container& container : containers) {
    Add(lines, std::string(kind) + " " + container.name, "image " + container.image);
    for (const VolumeMount& mount : container.volume_mounts) {
      Add(lines, "  mounts", MountText(mount));
    }
    for (const VolumeDevice& device : container.volume_devices) {
      Add(lines, "  device", device.name + " at " + device.device_path);
    }
  }
}

// Adds each volume as in the manifest; the sources name objects and do not hold their content.
void AddVolumes(const Json& pod, SummaryLines& lines) {
  const Json volumes = pod.value(Json::json_pointer("/spec/volumes"), Json::array());
  for (Json volume : volumes) {
    const std::string name = volume.value("name", "");
    volume.erase("name");
    Add(lines, "Volume " + name, volume.dump());
  }
}

void SummarisePod(const Object& object, SummaryLines& lines) {
  const Pod& pod = std::get<Pod>(object);
  const PodSecurityContext& security = pod.spec.security_context;
  Add(lines, "Node", pod.spec.node_name);
  Add(lines, "Service account", pod.spec.service_account_name);
  if (security.fs_group) {
    const bool on_root = security.fs_group_change_policy == FsGroupChangePolicy::kOnRootMismatch;
    Add(lines, "fsGroup",
        std::to_string(*security.fs_group) + (on_root ? ", OnRootMismatch" : ", Always"));
  }
  if (security.run_as_user) Add(lines, "runAsUser", std::to_string(*security.run_as_user));
  Add(lines, "Grace period", std::to_string(pod.spec.termination_grace_period_seconds) + "s");
  AddContainers("Init container", pod.spec.init_containers, lines);
  AddContainers("Container", pod.spec.containers, lines);
  AddContainers("Ephemeral container", pod.spec.ephemeral_containers, lines);
  AddVolumes(ToJson(object), lines);
}

std::string Bytes(size_t count) { return std::to_string(count) + " bytes"; }

void SummariseSecret(const Object& object, SummaryLines& lines) {
  const SecretObject& secret = std::get<SecretObject>(object);
  Add(lines, "Type", secret.type);
  if (secret.immutable) Add(lines, "Immutable", "true");
  for (const auto& [key, value] : secret.data) {
    Add(lines, "Key " + key, Bytes(value.Reveal().size()));
  }
}

void SummariseConfigMap(const Object& object, SummaryLines& lines) {
  const ConfigMapObject& map = std::get<ConfigMapObject>(object);
  if (map.immutable) Add(lines, "Immutable", "true");
  for (const auto& [key, value] : map.data) Add(lines, "Key " + key, Bytes(value.size()));
  for (const auto& [key, value] : map.binary_data) {
    Add(lines, "Key " + key, Bytes(value.size()) + ", binary");
  }
}

constexpr SummaryRow kRows[] = {
    {ObjectKind::kPod, &SummarisePod},
    {ObjectKind::kSecret, &SummariseSecret},
    {ObjectKind::kConfigMap, &SummariseConfigMap},
};

// Adds "spec.claimRef.name", "value" and so on; identity is shown elsewhere.
void Flatten(const std::string& path, const Json& value, SummaryLines& lines) {
  if (lines.size() > kMaxSummaryLines) return;
  if (!value.is_structured() || value.empty()) return Add(lines, path, Plain(value));
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      Flatten(path.empty() ? key : path + "." + key, inner, lines);
    }
    return;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    Flatten(path + "[" + std::to_string(i) + "]", value[i], lines);
  }
}

void SummariseFields(const Object& object, SummaryLines& lines) {
  Json document = ToJson(object);
  for (const char* key : {"metadata", "apiVersion", "kind"}) document.erase(key);
  Flatten("", document, lines);
}

}  // namespace

namespace {

WordsOf WhoseIs(const std::string& field) {
  const bool is_context = field.starts_with("spec.csi.volumeAttributes.");
  return is_context || field.starts_with("status.") ? WordsOf::kDriver : WordsOf::kOwner;
}

}  // namespace

SummaryLines SummariseObject(const Object& object, const ShownText& shown) {
  SummaryLines lines;
  void (*summarise)(const Object&, SummaryLines&) = &SummariseFields;
  for (const SummaryRow& row : kRows) {
    if (row.kind == KindOf(object)) summarise = row.summarise;
  }
  summarise(object, lines);
  for (auto& [name, value] : lines) {
    if (shown) {
      const WordsOf whose = WhoseIs(name);
      name = shown(name, whose);
      value = shown(value, whose);
    }
    value = Cut(std::move(value));
  }
  return lines;
}

}  // namespace volumed
