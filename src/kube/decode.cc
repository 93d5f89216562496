#include "kube/decode.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/document_reader.h"
#include "kube/field_reader.h"
#include "kube/field_rules.h"
#include "kube/object_fields.h"
#include "kube/snapshot_fields.h"
#include "kube/storage_fields.h"
#include "kube/unknown_fields.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

// The path without its final ".": what FieldReader takes.
std::string Base(const std::string& prefix) {
  return prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1);
}

const std::string* TextAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

// What the document calls itself, before anything of it is known to be right.
std::string Describe(const Json& object, ObjectKind kind) {
  const auto metadata = object.find("metadata");
  const bool has_metadata = metadata != object.end() && metadata->is_object();
  const std::string* name = has_metadata ? TextAt(*metadata, "name") : nullptr;
  if (name == nullptr || rules::kDnsSubdomain.broken(*name))
    return std::string(ObjectKindName(kind));
  const std::string* name_space = TextAt(*metadata, "namespace");
  ObjectKey key{kind, name_space != nullptr ? *name_space : "default", *name};
  if (IsClusterScoped(kind) || rules::kDnsLabel.broken(key.name_space)) key.name_space.clear();
  return ToString(key);
}

// "Pod, Secret and List of "v1", StorageClass of "storage.k8s.io/v1"".
std::string HandledKinds() {
  std::string text;
  std::string_view version;
  for (const ObjectKind kind : kAllObjectKinds) {
    if (!version.empty() && version != ApiVersionOf(kind)) {
      text += (version == kCoreApi ? " and List of " : " of ") + Quoted(version) + ", ";
    } else if (!version.empty()) {
      text += ", ";
    }
    version = ApiVersionOf(kind);
    text += ObjectKindName(kind);
  }
  return text + " of " + Quoted(version);
}

// False for what Kubernetes does not have either: a kind or version with a typing error, behind
// which an object of this program may stand.
// Source: kubernetes staging/src/k8s.io/api/{core,storage}/v1/register.go@v1.36.2.
bool IsOfOtherKind(std::string_view api_version, std::string_view kind) {
  static constexpr std::string_view kCore[] = {"Binding",
                                               "ComponentStatus",
                                               "Endpoints",
                                               "Event",
                                               "LimitRange",
                                               "Namespace",
                                               "PodTemplate",
                                               "ResourceQuota",
                                               "Service",
                                               "ServiceAccount",
                                               "PodStatusResult",
                                               "RangeAllocation",
                                               "ReplicationController"};
  static constexpr std::string_view kStorage[] = {"CSIStorageCapacity", "VolumeAttributesClass"};
  if (const auto item = StripSuffix(kind, "List")) kind = *item;
  const auto has = [kind](const auto& kinds) {
    return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
  };
  if (api_version == "v1") return has(kCore);
  if (StripPrefix(api_version, "storage.k8s.io/")) return has(kStorage);
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view group = api_version.substr(0, slash);
  if (group.empty() || slash + 1 == api_version.size()) return false;
  // A kind of this program's name in "core/v1" or "kubernetes.io/v1" is a slip; that of somebody
  // else has a domain of his own.
  const auto is_below = [group](std::string_view domain) {
    return group == domain ||
           (group.ends_with(domain) && group[group.size() - domain.size() - 1] == '.');
  };
  const bool is_own_domain = group.find('.') != std::string_view::npos && !is_below("k8s.io") &&
                             !is_below("kubernetes.io");
  return is_own_domain || !(ParseObjectKind(kind) || kind.empty());
}

// Decodes the documents of one file into `result`.
class Decoder {
 public:
  Decoder(std::string_view file, DecodeRules rules, ManifestDecode& result)
      : file_(file), rules_(rules), result_(result) {}

  void Document(const Json& document, int index) {
    document_ = index;
    Item(document, "", std::nullopt);
  }

 private:
  // `implied` is the kind of the list's items, where a list that names one holds the item.
  void Item(const Json& item, const std::string& prefix, std::optional<ObjectKind> implied) {
    ProblemSink problems(file_, document_, rules_);
    ItemInto(item, prefix, implied, problems);
    for (DecodeProblem& problem : problems.Take()) result_.problems.push_back(std::move(problem));
  }

  void ItemInto(const Json& item, const std::string& prefix, std::optional<ObjectKind> implied,
                ProblemSink& problems) {
    if (!item.is_object()) {
      problems.Add(Base(prefix), "must be an object");
      return;
    }
    FieldReader reader(item, Base(prefix), problems);
    std::string kind;
    std::string api_version;
    const Presence presence = implied ? Presence::kOptional : Presence::kRequired;
    reader.Text("apiVersion", api_version, rules::kAnyText, presence);
    reader.Text("kind", kind, rules::kAnyText, presence);
    if (!problems.empty()) return;
    if (implied && kind.empty()) kind = ObjectKindName(*implied);
    if (implied && api_version.empty()) api_version = ApiVersionOf(*implied);
    Dispatch(item, prefix, kind, api_version, problems);
  }

  void Dispatch(const Json& item, const std::string& prefix, const std::string& kind_name,
                const std::string& api_version, ProblemSink& problems) {
    // Each group has one version; another group's object of the same kind is something else.
    for (const ObjectKind kind : kAllObjectKinds) {
      if (api_version != ApiVersionOf(kind)) continue;
      if (kind_name == ObjectKindName(kind)) return OfKind(kind, item, prefix, problems);
      if (kind_name == std::string(ObjectKindName(kind)) + "List") {
        return List(item, prefix, kind, problems);
      }
    }
    if (kind_name == "List" && api_version == "v1") {
      return List(item, prefix, std::nullopt, problems);
    }
    result_.problems.push_back({file_, document_, "", prefix + "kind",
                                Quoted(kind_name) + " of " + Quoted(api_version) +
                                    " is not handled; " + HandledKinds() + " are",
                                IsOfOtherKind(api_version, kind_name)});
  }

  void OfKind(ObjectKind kind, const Json& item, const std::string& prefix, ProblemSink& problems) {
    OfOneOf(std::type_identity<volumed::Object>(), kind, item, prefix, problems);
  }

  template <typename... Objects>
  void OfOneOf(std::type_identity<std::variant<Objects...>>, ObjectKind kind, const Json& item,
               const std::string& prefix, ProblemSink& problems) {
    const auto decode_if = [&]<typename T>(std::type_identity<T>) {
      if (ObjectTraits<T>::kFacts.kind == kind) Object<T>(item, prefix, problems);
    };
    (decode_if(std::type_identity<Objects>()), ...);
  }

  void List(const Json& list, const std::string& prefix, std::optional<ObjectKind> implied,
            ProblemSink& problems) {
    const auto items = list.find("items");
    if (items == list.end() || !items->is_array()) {
      problems.Add(prefix + "items",
                   items == list.end() ? "is required" : "must be a list of objects");
      return;
    }
    for (size_t i = 0; i < items->size(); ++i) {
      Item((*items)[i], prefix + "items[" + std::to_string(i) + "].", implied);
    }
  }

  template <typename T>
  void Object(const Json& item, const std::string& prefix, ProblemSink& problems) {
    T object;
    problems.set_object(Describe(item, KindOf(volumed::Object(object))));
    FieldReader reader(item, Base(prefix), problems);
    Fields(reader, object);
    // Checks over several fields mean nothing while single ones are wrong.
    if (problems.empty() && rules_ == DecodeRules::kAtTheDoor) Validate(object, prefix, problems);
    if (!problems.empty()) return;
    const std::string name = Describe(item, KindOf(volumed::Object(object)));
    for (const UnknownField& field : FindUnknownFields(KindOf(volumed::Object(object)), item)) {
      result_.warnings.push_back({file_, document_, name, prefix + field.path, ToReason(field)});
    }
    const auto metadata = item.find("metadata");
    const std::string* name_space =
        metadata == item.end() ? nullptr : TextAt(*metadata, "namespace");
    result_.objects.push_back(
        {std::move(object), document_, name_space != nullptr && !name_space->empty()});
  }

  const std::string file_;
  const DecodeRules rules_;
  ManifestDecode& result_;
  int document_ = 0;
};

}  // namespace

std::string DecodeProblem::ToString() const {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += ": ";
    text += part;
  };
  add(file);
  if (document >= 0) add("document " + std::to_string(document + 1));
  add(object);
  add(field_path);
  add(reason);
  return text;
}

Status PutIntoNamespace(const std::string& name_space, DecodedObject& decoded) {
  const ObjectKey key = KeyOf(decoded.object);
  if (IsClusterScoped(key.kind) || key.name_space == name_space) return OkStatus();
  if (decoded.names_namespace) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "the namespace from the provided object " + Quoted(key.name_space) +
                                 " does not match the namespace " + Quoted(name_space) +
                                 ". You must pass '--namespace=" + key.name_space +
                                 "' to perform this operation.");
  }
  // As of a namespace in the manifest itself: it is a part of names of files, and of keys.
  if (const auto reason = rules::kDnsLabel.broken(name_space)) {
    return Error::NotApplied(Code::kInvalidArgument, "the namespace " + *reason);
  }
  MetaOf(decoded.object).name_space = name_space;
  return OkStatus();
}

ManifestDecode DecodeManifest(std::string_view file, std::string_view bytes, DecodeRules rules) {
  ManifestDecode result;
  if (bytes.size() > kMaxManifestBytes) {
    result.problems.push_back({std::string(file), -1, "", "",
                               "is larger than " + std::to_string(kMaxManifestBytes) + " bytes"});
    return result;
  }
  Decoder decoder(file, rules, result);
  for (const RawDocument& document : ReadDocuments(bytes)) {
    const int index = result.documents++;
    if (document.value) {
      decoder.Document(*document.value, index);
    } else {
      result.problems.push_back({std::string(file), index, "", "", document.error});
    }
  }
  return result;
}

}  // namespace volumed
