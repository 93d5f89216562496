#include "kube/decode.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/strings.h"
#include "kube/document_reader.h"
#include "kube/field_reader.h"
#include "kube/object_fields.h"
#include "kube/validate.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

void Validate(const Pod& pod, const std::string& prefix, ProblemSink& problems) {
  ValidatePod(pod, prefix, problems);
}
void Validate(const ConfigMapObject& config_map, const std::string& prefix, ProblemSink& problems) {
  ValidateConfigMap(config_map, prefix, problems);
}
void Validate(const SecretObject&, const std::string&, ProblemSink&) {}
void Validate(const NodeObject&, const std::string&, ProblemSink&) {}

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
  if (name == nullptr || kDnsSubdomain.broken(*name)) return std::string(ObjectKindName(kind));
  const std::string* name_space = TextAt(*metadata, "namespace");
  ObjectKey key{kind, name_space != nullptr ? *name_space : "default", *name};
  if (kind == ObjectKind::kNode || kDnsLabel.broken(key.name_space)) key.name_space.clear();
  return ToString(key);
}

// Decodes the documents of one file into `result`.
class Decoder {
 public:
  Decoder(std::string_view file, ManifestDecode& result) : file_(file), result_(result) {}

  void Document(const Json& document, int index) {
    document_ = index;
    Item(document, "", "");
  }

 private:
  // `implied_kind` is that of the list which holds the item, or "".
  void Item(const Json& item, const std::string& prefix, std::string_view implied_kind) {
    ProblemSink problems(file_, document_);
    ItemInto(item, prefix, implied_kind, problems);
    for (DecodeProblem& problem : problems.Take()) result_.problems.push_back(std::move(problem));
  }

  void ItemInto(const Json& item, const std::string& prefix, std::string_view implied_kind,
                ProblemSink& problems) {
    if (!item.is_object()) {
      problems.Add(Base(prefix), "must be an object");
      return;
    }
    FieldReader reader(item, Base(prefix), problems);
    std::string kind;
    std::string api_version;
    const Presence presence = implied_kind.empty() ? Presence::kRequired : Presence::kOptional;
    reader.Text("apiVersion", api_version, kAnyText, presence);
    reader.Text("kind", kind, kAnyText, presence);
    if (!problems.empty()) return;
    if (kind.empty()) kind = implied_kind;
    if (api_version.empty()) api_version = "v1";
    Dispatch(item, prefix, kind, api_version, problems);
  }

  void Dispatch(const Json& item, const std::string& prefix, const std::string& kind,
                const std::string& api_version, ProblemSink& problems) {
    // The core group has one version; another group's object of the same kind is something else.
    if (api_version == "v1") {
      if (kind == "Pod") return Object<Pod>(item, prefix, problems);
      if (kind == "Secret") return Object<SecretObject>(item, prefix, problems);
      if (kind == "ConfigMap") return Object<ConfigMapObject>(item, prefix, problems);
      if (kind == "Node") return Object<NodeObject>(item, prefix, problems);
      for (const std::string_view list :
           {"List", "PodList", "SecretList", "ConfigMapList", "NodeList"}) {
        if (kind == list) return List(item, prefix, *StripSuffix(list, "List"), problems);
      }
    }
    problems.Add(prefix + "kind", Quoted(kind) + " of " + Quoted(api_version) +
                                      " is not handled; Pod, Secret, ConfigMap, Node and List of "
                                      "\"v1\" are");
  }

  void List(const Json& list, const std::string& prefix, std::string_view implied_kind,
            ProblemSink& problems) {
    const auto items = list.find("items");
    if (items == list.end() || !items->is_array()) {
      problems.Add(prefix + "items",
                   items == list.end() ? "is required" : "must be a list of objects");
      return;
    }
    for (size_t i = 0; i < items->size(); ++i) {
      Item((*items)[i], prefix + "items[" + std::to_string(i) + "].", implied_kind);
    }
  }

  template <typename T>
  void Object(const Json& item, const std::string& prefix, ProblemSink& problems) {
    T object;
    problems.set_object(Describe(item, KindOf(volumed::Object(object))));
    FieldReader reader(item, Base(prefix), problems);
    Fields(reader, object);
    // Checks over several fields mean nothing while single ones are wrong.
    if (problems.empty()) Validate(object, prefix, problems);
    if (problems.empty()) result_.objects.push_back({std::move(object), document_});
  }

  const std::string file_;
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

ManifestDecode DecodeManifest(std::string_view file, std::string_view bytes) {
  ManifestDecode result;
  if (bytes.size() > kMaxManifestBytes) {
    result.problems.push_back({std::string(file), -1, "", "",
                               "is larger than " + std::to_string(kMaxManifestBytes) + " bytes"});
    return result;
  }
  Decoder decoder(file, result);
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
