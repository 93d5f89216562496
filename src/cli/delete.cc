// `volumectl delete`: one object by its name, or all that a file names; or what is known of a CSI
// driver.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/calls.h"
#include "cli/object_kinds.h"

namespace volumed {
namespace {

struct DeleteOptions {
  bool force = false;
  bool ignore_not_found = false;
  bool yes = false;
};

struct DeleteWords {
  std::string kind;
  std::vector<std::string> names, files;
  DeleteOptions options;

  void Check() const {
    if (files.empty() && names.empty()) {
      throw CLI::RequiredError("KIND and NAME, or --filename");
    }
  }
};

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

struct Deleted {
  grpc::Status status;
  v1::DeleteResponse response;
};

v1::DeleteRequest RequestFor(const v1::ObjectRef& object, const DeleteOptions& options) {
  v1::DeleteRequest request;
  *request.mutable_object() = object;
  request.set_force(options.force);
  request.set_yes(options.yes);
  return request;
}

Deleted DeleteOne(Client& client, const v1::ObjectRef& object, const DeleteOptions& options) {
  Deleted deleted;
  deleted.status =
      client.Call(&v1::VolumeAgent::Stub::Delete, RequestFor(object, options), &deleted.response);
  return deleted;
}

std::vector<Deleted> DeleteInOneCall(Client& client, const v1::DeleteObjectsRequest& request) {
  v1::DeleteObjectsResponse response;
  const grpc::Status status =
      client.Call(&v1::VolumeAgent::Stub::DeleteObjects, request, &response);
  std::vector<Deleted> deleted(static_cast<size_t>(request.objects_size()), Deleted{status, {}});
  const int answered = status.ok() ? std::min(request.objects_size(), response.results_size()) : 0;
  for (int i = 0; i < answered; ++i) {
    v1::DeleteResult& result = *response.mutable_results(i);
    Deleted& one = deleted[static_cast<size_t>(i)];
    one.status = {static_cast<grpc::StatusCode>(result.code()), result.message(), result.details()};
    one.response.Swap(result.mutable_response());
  }
  return deleted;
}

// They share the syncs that each of them waits for.
std::vector<Deleted> DeleteTogether(Client& client, const std::vector<v1::ObjectRef>& objects,
                                    const DeleteOptions& options) {
  constexpr int kMostInACall = 2000;
  if (objects.size() == 1) return {DeleteOne(client, objects.front(), options)};
  std::vector<Deleted> deleted;
  v1::DeleteObjectsRequest request;
  for (size_t i = 0; i < objects.size(); ++i) {
    *request.add_objects() = RequestFor(objects[i], options);
    if (request.objects_size() < kMostInACall && i + 1 < objects.size()) continue;
    for (Deleted& one : DeleteInOneCall(client, request)) deleted.push_back(std::move(one));
    request.Clear();
  }
  return deleted;
}

ExitCode Report(const CliContext& context, const v1::ObjectRef& object, const Deleted& deleted,
                const DeleteOptions& options) {
  const bool is_missing = deleted.status.error_code() == grpc::StatusCode::NOT_FOUND;
  if (options.ignore_not_found && is_missing) return kExitOk;
  if (!deleted.status.ok()) return ReportFailure(deleted.status, context.socket);
  std::cout << object.kind() << " " << object.name() << " deleted\n";
  const std::string& warning = deleted.response.warning();
  if (!warning.empty()) std::cerr << "warning: " << warning << "\n";
  return kExitOk;
}

// In their order, but those of one kind that follow each other together. Stops where nobody answers
// or the caller may not.
ExitCode DeleteInOrder(const CliContext& context, const std::vector<v1::ObjectRef>& objects,
                       const DeleteOptions& options) {
  Client client(context.socket, context.timeout);
  ExitCode worst = kExitOk;
  for (size_t first = 0; first < objects.size();) {
    size_t last = first;
    while (last < objects.size() && objects[last].kind() == objects[first].kind()) ++last;
    const std::vector<v1::ObjectRef> of_kind(objects.begin() + static_cast<ptrdiff_t>(first),
                                             objects.begin() + static_cast<ptrdiff_t>(last));
    const std::vector<Deleted> deleted = DeleteTogether(client, of_kind, options);
    for (size_t i = 0; i < of_kind.size(); ++i) {
      const ExitCode code = Report(context, of_kind[i], deleted[i], options);
      if (code == kExitUnreachable || code == kExitForbidden) return code;
      if (code != kExitOk) worst = code;
    }
    first = last;
  }
  return worst;
}

// Adds what the file names; a line on stderr says what it is not.
ExitCode AddObjectsOfFile(const CliContext& context, const std::string& file,
                          std::vector<v1::ObjectRef>& objects) {
  const std::optional<std::string> text = ReadManifest(file);
  if (!text) return kExitUsage;
  std::optional<std::vector<v1::ObjectRef>> named = ObjectsOf(file, *text);
  if (!named) return kExitInvalid;
  ExitCode worst = kExitOk;
  for (v1::ObjectRef& object : *named) {
    if (object.namespace_().empty()) object.set_namespace_(context.name_space);
    const bool other = !context.name_space.empty() && object.namespace_() != context.name_space;
    if (other) {
      std::cerr << "volumectl: " << file << ": " << object.kind() << " " << object.name()
                << " is in the namespace " << object.namespace_() << ", not in "
                << context.name_space << "\n";
      worst = kExitUsage;
      continue;
    }
    objects.push_back(std::move(object));
  }
  return worst;
}

// Deletes the objects one after the other, even if one before has failed; the exit code is that of
// the last failure.
ExitCode DeleteByName(const CliContext& context, const std::string& kind,
                      const std::vector<std::string>& names, const DeleteOptions& options) {
  std::vector<v1::ObjectRef> objects;
  for (const std::string& name : names) {
    v1::ObjectRef& object = objects.emplace_back();
    object.set_kind(kind);
    object.set_namespace_(context.name_space);
    object.set_name(name);
  }
  return DeleteInOrder(context, objects, options);
}

// Deletes what the manifests name, the last object first.
ExitCode DeleteFiles(const CliContext& context, const std::vector<std::string>& files,
                     const DeleteOptions& options) {
  ExitCode worst = kExitOk;
  std::vector<v1::ObjectRef> objects;
  for (const std::string& file : files) {
    const ExitCode code = AddObjectsOfFile(context, file, objects);
    if (code != kExitOk) worst = code;
  }
  const ExitCode code = DeleteInOrder(context, objects, options);
  return code == kExitOk ? worst : code;
}

// The exit code is that of the last failure.
ExitCode ForgetDrivers(const CliContext& context, const DeleteWords& words) {
  ExitCode worst = kExitOk;
  for (const std::string& name : words.names) {
    v1::ForgetDriverRequest request;
    request.set_driver(name);
    request.set_force(words.options.force);
    v1::ForgetDriverResponse response;
    Client client(context.socket, context.timeout);
    const grpc::Status status = client.Call(&Stub::ForgetDriver, request, &response);
    const bool is_missing = status.error_code() == grpc::StatusCode::NOT_FOUND;
    if (is_missing && words.options.ignore_not_found) continue;
    if (!status.ok()) {
      worst = ReportFailure(status, context.socket);
    } else {
      std::cout << "driver " << name << " forgotten\n";
      if (!response.warning().empty()) std::cerr << "warning: " << response.warning() << "\n";
    }
  }
  return worst;
}

ExitCode RunDelete(const CliContext& context, const DeleteWords& words) {
  if (kDriverNoun.Means(words.kind)) return ForgetDrivers(context, words);
  return words.files.empty() ? DeleteByName(context, words.kind, words.names, words.options)
                             : DeleteFiles(context, words.files, words.options);
}

}  // namespace

void AddDeleteVerb(const Verbs& verbs) {
  verbs.Add<DeleteWords>(
      "delete", "take an object away",
      [](CLI::App& verb, DeleteWords& words) {
        DeleteOptions& options = words.options;
        CLI::Option* kind = verb.add_option("kind", words.kind, KindNames(true))->type_name("KIND");
        verb.add_option("name", words.names, "names, or pods' uids")->type_name("NAME");
        verb.add_option("-f,--filename", words.files,
                        "what these manifests name, the last first; - is standard input")
            ->type_name("FILE")
            ->excludes(kind);
        verb.add_flag("--force", options.force,
                      "also while processes use the pod's mounts; of a volume in phase Undoing, or "
                      "one that its "
                      "driver is to delete and cannot: gives it up; of a driver: gives up the "
                      "calls that it is owed, and those by hand whose outcome is open");
        verb.add_flag("--ignore-not-found", options.ignore_not_found,
                      "what is not there is no failure");
        verb.add_flag("--yes", options.yes, "also the data of a volume that has left its source");
      },
      RunDelete);
}

}  // namespace volumed
