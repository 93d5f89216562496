// `volumectl delete`: one object by its name, or all that a file names.
#include <yaml-cpp/yaml.h>

#include <iostream>
#include <optional>
#include <vector>

#include "cli/commands.h"

namespace volumed {
namespace {

std::string TextOf(const YAML::Node& node, const char* name) {
  const YAML::Node value = node.IsMap() ? node[name] : YAML::Node();
  return value && value.IsScalar() ? value.Scalar() : "";
}

// The objects of a document, with those of a list in their order.
void AddObjectsOf(const YAML::Node& document, std::vector<v1::ObjectRef>& objects) {
  const std::string kind = TextOf(document, "kind");
  if (kind.ends_with("List") && document["items"] && document["items"].IsSequence()) {
    for (const YAML::Node& item : document["items"]) AddObjectsOf(item, objects);
    return;
  }
  const YAML::Node metadata = document.IsMap() ? document["metadata"] : YAML::Node();
  v1::ObjectRef ref;
  ref.set_kind(kind);
  if (metadata && metadata.IsMap()) {
    ref.set_name(TextOf(metadata, "name"));
    ref.set_namespace_(TextOf(metadata, "namespace"));
  }
  objects.push_back(ref);
}

// The objects that a manifest names, the last one first, so that a pod goes before what it uses if
// it stands behind that. nullopt, and a line on stderr, if it is no manifest.
std::optional<std::vector<v1::ObjectRef>> ObjectsOf(const std::string& file,
                                                    const std::string& text) {
  std::vector<v1::ObjectRef> objects;
  try {
    for (const YAML::Node& document : YAML::LoadAll(text)) {
      if (!document.IsNull()) AddObjectsOf(document, objects);
    }
  } catch (const YAML::Exception& exception) {
    // Not the library's own words: they may quote a secret.
    std::cerr << "volumectl: " << file << ": line " << exception.mark.line + 1
              << " is not valid YAML\n";
    return std::nullopt;
  }
  for (const v1::ObjectRef& object : objects) {
    if (!object.kind().empty() && !object.name().empty()) continue;
    std::cerr << "volumectl: " << file << ": an object has no kind or no metadata.name\n";
    return std::nullopt;
  }
  return std::vector<v1::ObjectRef>(objects.rbegin(), objects.rend());
}

ExitCode DeleteOne(const CliContext& context, const v1::ObjectRef& object,
                   const DeleteOptions& options) {
  v1::DeleteRequest request;
  *request.mutable_object() = object;
  request.set_force(options.force);
  request.set_yes(options.yes);
  v1::DeleteResponse response;
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Call(&v1::VolumeAgent::Stub::Delete, request, &response);
  if (options.ignore_not_found && status.error_code() == grpc::StatusCode::NOT_FOUND)
    return kExitOk;
  if (!status.ok()) return ReportFailure(status, context.socket);
  std::cout << object.kind() << " " << object.name() << " deleted\n";
  if (!response.warning().empty()) std::cerr << "warning: " << response.warning() << "\n";
  return kExitOk;
}

ExitCode DeleteFile(const CliContext& context, const std::string& file,
                    const DeleteOptions& options) {
  const std::optional<std::string> text = ReadManifest(file);
  if (!text) return kExitUsage;
  const std::optional<std::vector<v1::ObjectRef>> objects = ObjectsOf(file, *text);
  if (!objects) return kExitInvalid;
  ExitCode worst = kExitOk;
  for (v1::ObjectRef object : *objects) {
    if (object.namespace_().empty()) object.set_namespace_(context.name_space);
    const bool other = !context.name_space.empty() && object.namespace_() != context.name_space;
    if (other) {
      std::cerr << "volumectl: " << file << ": " << object.kind() << " " << object.name()
                << " is in the namespace " << object.namespace_() << ", not in "
                << context.name_space << "\n";
      worst = kExitUsage;
      continue;
    }
    const ExitCode code = DeleteOne(context, object, options);
    if (code == kExitUnreachable || code == kExitForbidden) return code;
    if (code != kExitOk) worst = code;
  }
  return worst;
}

}  // namespace

ExitCode RunDelete(const CliContext& context, const std::string& kind,
                   const std::vector<std::string>& names, const DeleteOptions& options) {
  ExitCode worst = kExitOk;
  for (const std::string& name : names) {
    v1::ObjectRef object;
    object.set_kind(kind);
    object.set_namespace_(context.name_space);
    object.set_name(name);
    const ExitCode code = DeleteOne(context, object, options);
    if (code == kExitUnreachable || code == kExitForbidden) return code;
    if (code != kExitOk) worst = code;
  }
  return worst;
}

ExitCode RunDeleteFiles(const CliContext& context, const std::vector<std::string>& files,
                        const DeleteOptions& options) {
  ExitCode worst = kExitOk;
  for (const std::string& file : files) {
    const ExitCode code = DeleteFile(context, file, options);
    if (code == kExitUnreachable || code == kExitForbidden) return code;
    if (code != kExitOk) worst = code;
  }
  return worst;
}

}  // namespace volumed
