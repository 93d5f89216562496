#include "plugins/payload.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/about_object.h"
#include "kube/field_path.h"

namespace volumed {
namespace {

// Only the owner reads a token; the group is let in where the pod has one, by its payload's gid.
constexpr uint32_t kPrivateTokenMode = 0600;

PayloadFile MakeFileOf(const std::string& path, Secret<std::string> content, int32_t mode) {
  return {
      .path = path, .content = std::move(content), .mode = static_cast<uint32_t>(mode), .uid = {}};
}

// The keys of an object as files. `find` answers the content of a key, if there is one. The text of
// a missing key is kubelet's, and behind it stands which object it is, as kubelet does not say.
template <typename Find>
Result<Payload> MapItems(const std::vector<KeyToPath>& items, int32_t default_mode, bool optional,
                         const std::string& missing_key_text, const std::string& of_object,
                         const Find& find) {
  Payload files;
  for (const KeyToPath& item : items) {
    std::optional<Secret<std::string>> content = find(item.key);
    if (!content) {
      if (optional) continue;
      return Error::NotApplied(Code::kNotFound, missing_key_text + item.key + of_object);
    }
    files[item.path] = MakeFileOf(item.path, std::move(*content), item.mode.value_or(default_mode));
  }
  return files;
}

// A missing object, as a user knows it from kubelet: `secret "db" not found`. A host that knows why
// says so behind these words.
Error ObjectError(const HostObjects& objects, const Error& error, const std::string& kind,
                  const ObjectKey& object) {
  const std::string shown = kind + " \"" + object.name + "\"";
  if (error.code() != Code::kNotFound) return AboutObject(error.With(shown), object);
  const std::string why = objects.WhyNotFound(object);
  return AboutObject(
      Error::NotApplied(Code::kNotFound, shown + " not found" + (why.empty() ? "" : ": " + why)),
      object);
}

// As Kubernetes prints an aggregate. The first error decides the code; it is about what any of them
// is about.
Error Aggregate(const std::vector<Error>& errors) {
  if (errors.size() == 1) return errors.front();
  std::vector<std::string> texts;
  for (const Error& error : errors) {
    if (std::find(texts.begin(), texts.end(), error.message()) == texts.end()) {
      texts.push_back(error.message());
    }
  }
  const std::string text = texts.size() == 1 ? texts.front() : "[" + Join(texts, ", ") + "]";
  Error all = Error::NotApplied(errors.front().code(), text);
  for (const Error& error : errors) all = AboutAllOf(std::move(all), error);
  return all;
}

Result<std::string> DownwardValue(const PayloadContext& context,
                                  const DownwardApiVolumeFile& item) {
  if (item.field_ref) return PodFieldValue(context.pod, item.field_ref->field_path);
  if (item.resource_field_ref) {
    return ResourceFieldValue(context.pod, *item.resource_field_ref,
                              context.node.GetNodeAllocatable());
  }
  return Error::NotApplied(Code::kInvalidArgument,
                           item.path + ": neither fieldRef nor resourceFieldRef is set");
}

// uid_t -1 means "leave the owner alone" to chown(2), so it is no user.
Result<std::optional<uint32_t>> OwnerOf(const std::optional<int64_t>& fs_user) {
  if (!fs_user) return std::optional<uint32_t>();
  if (*fs_user < 0 || *fs_user >= std::numeric_limits<uint32_t>::max()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "runAsUser " + std::to_string(*fs_user) + " is out of range");
  }
  return std::optional<uint32_t>(static_cast<uint32_t>(*fs_user));
}

Result<CollectedPayload> WithoutRefresh(Result<Payload> payload) {
  if (!payload.ok()) return payload.error();
  return CollectedPayload{std::move(payload).value(), std::nullopt};
}

Result<CollectedPayload> CollectProjection(const PayloadContext& context,
                                           const VolumeProjection& projection) {
  return std::visit(
      [&context](const auto& source) -> Result<CollectedPayload> {
        using Source = std::decay_t<decltype(source)>;
        if constexpr (std::is_same_v<Source, SecretProjection>) {
          return WithoutRefresh(CollectSecret(context, source.name, source.items, source.optional));
        } else if constexpr (std::is_same_v<Source, ConfigMapProjection>) {
          return WithoutRefresh(
              CollectConfigMap(context, source.name, source.items, source.optional));
        } else if constexpr (std::is_same_v<Source, DownwardApiProjection>) {
          return WithoutRefresh(CollectDownwardApi(context, source.items));
        } else if constexpr (std::is_same_v<Source, ServiceAccountTokenProjection>) {
          return CollectToken(context, source);
        } else if constexpr (std::is_same_v<Source, ClusterTrustBundleProjection>) {
          return Error::NotApplied(
              Code::kUnimplemented,
              "clusterTrustBundle projections need a Kubernetes API server to read bundles from");
        } else {
          static_assert(std::is_same_v<Source, PodCertificateProjection>);
          return Error::NotApplied(
              Code::kUnimplemented,
              "podCertificate projections need a Kubernetes API server to sign certificates");
        }
      },
      projection);
}

}  // namespace

Result<Payload> CollectSecret(const PayloadContext& context, const std::string& name,
                              const std::vector<KeyToPath>& items, bool optional) {
  const auto secret = context.objects.GetSecret(context.pod.metadata.name_space, name);
  if (!secret.ok()) {
    if (optional && secret.error().code() == Code::kNotFound) return Payload();
    return ObjectError(context.objects, secret.error(), "secret",
                       {ObjectKind::kSecret, context.pod.metadata.name_space, name});
  }
  const auto& data = (*secret)->data;
  if (!items.empty()) {
    return MapItems(items, context.default_mode, optional,
                    "references non-existent secret key: ", ", of secret \"" + name + "\"",
                    [&data](const std::string& key) -> std::optional<Secret<std::string>> {
                      const auto found = data.find(key);
                      if (found == data.end()) return std::nullopt;
                      return found->second;
                    });
  }
  Payload files;
  for (const auto& [key, content] : data) {
    files[key] = MakeFileOf(key, content, context.default_mode);
  }
  return files;
}

Result<Payload> CollectConfigMap(const PayloadContext& context, const std::string& name,
                                 const std::vector<KeyToPath>& items, bool optional) {
  const auto config_map = context.objects.GetConfigMap(context.pod.metadata.name_space, name);
  if (!config_map.ok()) {
    if (optional && config_map.error().code() == Code::kNotFound) return Payload();
    return ObjectError(context.objects, config_map.error(), "configmap",
                       {ObjectKind::kConfigMap, context.pod.metadata.name_space, name});
  }
  const StringMap& data = (*config_map)->data;
  const StringMap& binary_data = (*config_map)->binary_data;
  if (!items.empty()) {
    return MapItems(
        items, context.default_mode, optional,
        "configmap references non-existent config key: ", ", of configmap \"" + name + "\"",
        [&](const std::string& key) -> std::optional<Secret<std::string>> {
          for (const StringMap* map : {&data, &binary_data}) {
            if (const auto found = map->find(key); found != map->end()) {
              return Secret<std::string>(found->second);
            }
          }
          return std::nullopt;
        });
  }
  Payload files;
  for (const StringMap* map : {&data, &binary_data}) {
    for (const auto& [key, content] : *map) {
      files[key] = MakeFileOf(key, Secret<std::string>(content), context.default_mode);
    }
  }
  return files;
}

Result<Payload> CollectDownwardApi(const PayloadContext& context,
                                   const std::vector<DownwardApiVolumeFile>& items) {
  Payload files;
  std::vector<Error> errors;
  for (const DownwardApiVolumeFile& item : items) {
    Result<std::string> value = DownwardValue(context, item);
    if (!value.ok()) {
      errors.push_back(value.error());
      continue;
    }
    files[item.path] = MakeFileOf(item.path, Secret<std::string>(std::move(value).value()),
                                  item.mode.value_or(context.default_mode));
  }
  if (!errors.empty()) return Aggregate(errors);
  return files;
}

Result<CollectedPayload> CollectToken(const PayloadContext& context,
                                      const ServiceAccountTokenProjection& source) {
  ASSIGN_OR_RETURN(const std::optional<uint32_t> owner, OwnerOf(context.fs_user));
  ServiceAccountToken token;
  if (context.issue_tokens) {
    ASSIGN_OR_RETURN(token, context.tokens.GetServiceAccountToken(
                                {.ns = context.pod.metadata.name_space,
                                 .service_account = context.pod.spec.service_account_name,
                                 .audience = source.audience,
                                 .expiration_seconds = source.expiration_seconds,
                                 .pod_name = context.pod.metadata.name,
                                 .pod_uid = context.pod.uid()}));
  }
  PayloadFile file = MakeFileOf(source.path, std::move(token.token), context.default_mode);
  if (context.fs_user || context.fs_group) file.mode = kPrivateTokenMode;
  file.uid = owner;
  file.issued = true;
  CollectedPayload collected;
  collected.files.emplace(source.path, std::move(file));
  collected.freshness = Freshness{token.issued_unix_ms, token.refresh_unix_ms};
  return collected;
}

Result<CollectedPayload> CollectProjected(const PayloadContext& context,
                                          const ProjectedVolumeSource& source) {
  CollectedPayload all;
  std::vector<Error> errors;
  for (const VolumeProjection& projection : source.sources) {
    Result<CollectedPayload> one = CollectProjection(context, projection);
    if (!one.ok()) {
      errors.push_back(one.error());
      continue;
    }
    for (auto& [path, file] : one->files) all.files[path] = std::move(file);
    if (!one->freshness) continue;
    if (!all.freshness) all.freshness = one->freshness;
    all.freshness->from_unix_ms =
        std::max(all.freshness->from_unix_ms, one->freshness->from_unix_ms);
    all.freshness->until_unix_ms =
        std::min(all.freshness->until_unix_ms, one->freshness->until_unix_ms);
  }
  if (!errors.empty()) return Aggregate(errors);
  return all;
}

std::vector<PayloadFile> FilesOf(Payload&& payload) {
  std::vector<PayloadFile> files;
  files.reserve(payload.size());
  for (auto& [path, file] : payload) files.push_back(std::move(file));
  return files;
}

}  // namespace volumed
