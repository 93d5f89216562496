#include "kube/field_path.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "kube/field_rules.h"

namespace volumed {
namespace {

// Blanks other than U+0020, controls, joiners, marks of direction, private use and non-characters.
bool IsUnprintable(uint32_t code) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x00, 0x1F},     {0x7F, 0xA0},     {0xAD, 0xAD},       {0x1680, 0x1680}, {0x2000, 0x200F},
      {0x2028, 0x202F}, {0x205F, 0x206F}, {0x3000, 0x3000},   {0xE000, 0xF8FF}, {0xFEFF, 0xFEFF},
      {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0x10FFFF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

std::string Escaped(uint32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\a':
      return "\\a";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\v':
      return "\\v";
  }
  char text[16];
  const char* format = code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(text, sizeof(text), format, code);
  return text;
}

// REQUIRES: valid UTF-8, which the decoder has made sure of.
std::string GoQuoted(const std::string& value) {
  std::string quoted = "\"";
  for (size_t at = 0; at < value.size();) {
    const auto first = static_cast<unsigned char>(value[at]);
    const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    uint32_t code = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (size_t k = 1; k < length && at + k < value.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(value[at + k]) & 0x3F);
    }
    if (code == '"' || code == '\\' || IsUnprintable(code)) {
      quoted += Escaped(code);
    } else {
      quoted.append(value, at, length);
    }
    at += length;
  }
  return quoted + '"';
}

Error Unsupported(std::string_view path) {
  return Error::NotApplied(Code::kInvalidArgument,
                           Quoted(path) + " is not a field that the downward API knows");
}

// The key of metadata.labels['key'].
std::optional<std::string> Subscript(std::string_view path, std::string_view map) {
  const auto rest = StripPrefix(path, std::string(map) + "['");
  const auto key = rest ? StripSuffix(*rest, "']") : std::nullopt;
  if (!key) return std::nullopt;
  return std::string(*key);
}

std::string ValueOf(const StringMap& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? "" : found->second;
}

const Container* FindContainer(const Pod& pod, std::string_view name) {
  for (const auto* list :
       {&pod.spec.containers, &pod.spec.init_containers, &pod.spec.ephemeral_containers}) {
    for (const Container& container : *list) {
      if (container.name == name) return &container;
    }
  }
  return nullptr;
}

const Quantity* NonZero(const ResourceList& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() || found->second.IsZero() ? nullptr : &found->second;
}

Quantity AmountOf(const Container& container, bool limit, const std::string& resource,
                  const ResourceList& node_allocatable) {
  const Quantity* amount =
      NonZero(limit ? container.resources.limits : container.resources.requests, resource);
  // The API server's own default for a request.
  if (amount == nullptr && !limit) amount = NonZero(container.resources.limits, resource);
  if (amount == nullptr && limit) amount = NonZero(node_allocatable, resource);
  return amount == nullptr ? Quantity() : *amount;
}

int64_t DivideRoundingUp(int64_t amount, int64_t divisor) {
  return amount / divisor + (amount % divisor > 0 ? 1 : 0);
}

}  // namespace

std::string FormatStringMap(const StringMap& map) {
  std::string text;
  for (const auto& [key, value] : map) {
    if (!text.empty()) text += '\n';
    text += key + "=" + GoQuoted(value);
  }
  return text;
}

Result<std::string> PodFieldValue(const Pod& pod, std::string_view field_path) {
  if (rules::kFieldPath.broken(field_path)) return Unsupported(field_path);
  const ObjectMeta& meta = pod.metadata;
  if (const auto key = Subscript(field_path, "metadata.labels")) return ValueOf(meta.labels, *key);
  if (const auto key = Subscript(field_path, "metadata.annotations")) {
    return ValueOf(meta.annotations, *key);
  }
  if (field_path == "metadata.name") return meta.name;
  if (field_path == "metadata.namespace") return meta.name_space;
  if (field_path == "metadata.uid") return meta.uid;
  if (field_path == "metadata.labels") return FormatStringMap(meta.labels);
  if (field_path == "metadata.annotations") return FormatStringMap(meta.annotations);
  if (field_path == "spec.nodeName") return pod.spec.node_name;
  if (field_path == "spec.serviceAccountName") return pod.spec.service_account_name;
  if (field_path == "status.hostIP") return pod.status.host_ip;
  if (field_path == "status.hostIPs") return Join(pod.status.host_ips, ",");
  if (field_path == "status.podIP") return pod.status.pod_ip;
  if (field_path == "status.podIPs") return Join(pod.status.pod_ips, ",");
  return Unsupported(field_path);
}

Result<std::string> ResourceFieldValue(const Pod& pod, const ResourceFieldSelector& selector,
                                       const ResourceList& node_allocatable,
                                       std::string_view default_container) {
  if (const auto reason = rules::kResourceName.broken(selector.resource)) {
    return Error::NotApplied(Code::kInvalidArgument, *reason);
  }
  const std::string_view name =
      selector.container_name.empty() ? default_container : selector.container_name;
  const Container* container = FindContainer(pod, name);
  if (container == nullptr) {
    return Error::NotApplied(Code::kNotFound, Quoted(name) + " is not a container of the pod");
  }
  const size_t dot = selector.resource.find('.');
  const std::string resource = selector.resource.substr(dot + 1);
  const bool limit = selector.resource.substr(0, dot) == "limits";
  const Quantity amount = AmountOf(*container, limit, resource, node_allocatable);
  const Quantity divisor = selector.divisor && !selector.divisor->IsZero()
                               ? *selector.divisor
                               : Quantity::FromInteger(1);
  if (divisor.Sign() < 0) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "the divisor of " + selector.resource + " is negative");
  }
  if (resource != "cpu") {
    return std::to_string(DivideRoundingUp(amount.Value(), divisor.Value()));
  }
  ASSIGN_OR_RETURN(const int64_t amount_milli, amount.MilliValue());
  ASSIGN_OR_RETURN(const int64_t divisor_milli, divisor.MilliValue());
  return std::to_string(DivideRoundingUp(amount_milli, divisor_milli));
}

}  // namespace volumed
