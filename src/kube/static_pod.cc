#include "kube/static_pod.h"

#include <cctype>
#include <string>
#include <utility>

#include "kube/decode.h"
#include "kube/digest.h"
#include "kube/field_rules.h"

namespace volumed {
std::string StaticPodName(std::string_view name, const NodeName& node_name) {
  std::string full = std::string(name) + '-';
  for (const char c : node_name.str()) {
    full += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return full;
}

Status ApplyStaticPodDefaults(const NodeName& node_name, std::string_view file, Pod& pod) {
  if (!pod.metadata.uid.empty()) return OkStatus();
  std::string name = StaticPodName(pod.metadata.name, node_name);
  if (const auto reason = kDnsSubdomain.broken(name)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "the pod's name with the node's name behind it: " + *reason);
  }
  const std::string json = EncodeObjectJson(Object(pod));
  // A separator that is in none of the parts keeps two different triples apart.
  std::string text = "host:" + node_name.str();
  text += '\0';
  text += "file:" + std::string(file);
  text += '\0';
  text += json;
  pod.metadata.uid = HalfSha256Hex(text);
  pod.metadata.name = std::move(name);
  pod.spec.node_name = node_name.str();
  pod.metadata.annotations[std::string(kConfigHashAnnotation)] = pod.metadata.uid;
  pod.metadata.annotations[std::string(kConfigSourceAnnotation)] = "file";
  return OkStatus();
}

}  // namespace volumed
