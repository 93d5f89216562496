#include "kube/static_pod.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/field_rules.h"

namespace volumed {
std::string NormalNodeName(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string StaticPodName(std::string_view base_name, const NodeName& node_name) {
  return std::string(base_name) + '-' + NormalNodeName(node_name.str());
}

ObjectKey KeyOnNode(const Object& object, const NodeName& node_name) {
  ObjectKey key = KeyOf(object);
  const Pod* pod = std::get_if<Pod>(&object);
  if (pod != nullptr && pod->metadata.uid.empty()) key.name = StaticPodName(key.name, node_name);
  return key;
}

Status ApplyStaticPodDefaults(const NodeName& node_name, Pod& pod) {
  if (!pod.metadata.uid.empty()) return OkStatus();
  std::string name = StaticPodName(pod.metadata.name, node_name);
  if (const auto reason = rules::kDnsSubdomain.broken(name)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "the pod's name with the node's name behind it: " + *reason);
  }
  pod.metadata.name = std::move(name);
  pod.spec.node_name = node_name.str();
  pod.metadata.annotations[std::string(kConfigSourceAnnotation)] = "file";
  return OkStatus();
}

void SetPodUid(Pod& pod, const std::string& uid) {
  pod.metadata.uid = uid;
  if (StaticPodBaseName(pod)) {
    pod.metadata.annotations[std::string(kConfigHashAnnotation)] = uid;
  }
}

std::optional<std::string> StaticPodBaseName(const Pod& pod) {
  const auto source = pod.metadata.annotations.find(std::string(kConfigSourceAnnotation));
  if (source == pod.metadata.annotations.end() || source->second != "file") return std::nullopt;
  const std::string suffix = StaticPodName("", NodeName(pod.spec.node_name));
  const std::optional<std::string_view> base = StripSuffix(pod.metadata.name, suffix);
  if (pod.spec.node_name.empty() || !base || base->empty()) return std::nullopt;
  return std::string(*base);
}

}  // namespace volumed
