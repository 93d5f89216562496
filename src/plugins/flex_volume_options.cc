#include "plugins/flex_volume_options.h"

#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "kube/about_object.h"
#include "kube/digest.h"

namespace volumed {
namespace {

using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;

constexpr char kFsType[] = "kubernetes.io/fsType";
constexpr char kReadWrite[] = "kubernetes.io/readwrite";
constexpr char kPvOrVolumeName[] = "kubernetes.io/pvOrVolumeName";
constexpr char kPodName[] = "kubernetes.io/pod.name";
constexpr char kPodNamespace[] = "kubernetes.io/pod.namespace";
constexpr char kPodUid[] = "kubernetes.io/pod.uid";
constexpr char kServiceAccountName[] = "kubernetes.io/serviceAccount.name";
constexpr char kFsGroup[] = "kubernetes.io/mounterArgs.FsGroup";
constexpr char kSecretPrefix[] = "kubernetes.io/secret/";
constexpr char kShownForSecret[] = "[redacted]";

template <typename Source>
FlexSource Common(const Source& source, bool read_only) {
  return {source.driver, source.fs_type, read_only, source.options};
}

struct SecretName {
  std::string name_space;
  std::string name;
};

std::optional<SecretName> SecretNameOf(const VolumeSpec& spec, const Pod& pod) {
  const std::string& of_pod = pod.metadata.name_space;
  if (const auto* source = spec.SourceAs<FlexVolumeSource>()) {
    if (!source->secret_ref) return std::nullopt;
    return SecretName{of_pod, source->secret_ref->name};
  }
  const auto* source = spec.SourceAs<FlexPersistentVolumeSource>();
  if (source == nullptr || !source->secret_ref) return std::nullopt;
  const SecretReference& reference = *source->secret_ref;
  return SecretName{reference.name_space.empty() ? of_pod : reference.name_space, reference.name};
}

Texts SystemOptions(const VolumeSpec& spec, const FlexSource& source) {
  return {{kFsType, source.fs_type},
          {kReadWrite, source.read_only ? "ro" : "rw"},
          {kPvOrVolumeName, FlexVolumeName(spec)}};
}

// Of a text that is no UTF-8 what can be shown as such is sent.
std::string ToText(const Texts& options) {
  return Json(options).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Texts WithOwn(Texts options, const FlexSource& source) {
  for (const auto& [key, value] : source.options) options[key] = value;
  return options;
}

// Source: kubernetes pkg/volume/flexvolume/util.go@v1.36.2 (addSecretsToOptions): for inline
// volumes, too, by pkg/volume/util/util.go (GetSecretForPV), whose plugin name is the driver's name
// here.
Result<std::shared_ptr<const SecretObject>> FindSecret(const SecretName& name,
                                                       const std::string& driver,
                                                       const HostObjects& objects) {
  const std::string shown = name.name_space + "/" + name.name;
  ASSIGN_OR_RETURN(
      std::shared_ptr<const SecretObject> secret,
      objects.GetSecret(name.name_space, name.name).With("couldn't get secret " + shown));
  if (secret->type == driver) return secret;
  return AboutObject(
      Error::NotApplied(Code::kFailedPrecondition, "secret " + shown + " has type \"" +
                                                       secret->type + "\": only one of type \"" +
                                                       driver + "\" is given to that driver"),
      {ObjectKind::kSecret, name.name_space, name.name});
}

}  // namespace

FlexSource FlexSourceOf(const VolumeSpec& spec) {
  if (const auto* source = spec.SourceAs<FlexVolumeSource>()) {
    return Common(*source, source->read_only);
  }
  return Common(*spec.SourceAs<FlexPersistentVolumeSource>(), spec.read_only());
}

std::string FlexVolumeName(const VolumeSpec& spec) {
  if (spec.volume() == nullptr) return spec.name().str();
  constexpr size_t kDigits = 16;
  const FlexSource source = FlexSourceOf(spec);
  const std::string told = Json{{"fsType", source.fs_type}, {"options", source.options}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
  return spec.name().str() + "-" + HalfSha256Hex(told).substr(0, kDigits);
}

FlexArgument FlexOptions(const VolumeSpec& spec) {
  const FlexSource source = FlexSourceOf(spec);
  return ToText(WithOwn(SystemOptions(spec, source), source));
}

Result<FlexArgument> FlexMountOptions(const VolumeSpec& spec, const Pod& pod,
                                      const std::optional<int64_t>& fs_group,
                                      const HostObjects& objects) {
  const FlexSource source = FlexSourceOf(spec);
  Texts options = SystemOptions(spec, source);
  options[kPodName] = pod.metadata.name;
  options[kPodNamespace] = pod.metadata.name_space;
  options[kPodUid] = pod.metadata.uid;
  options[kServiceAccountName] = pod.spec.service_account_name;
  if (fs_group) options[kFsGroup] = std::to_string(*fs_group);
  const std::optional<SecretName> name = SecretNameOf(spec, pod);
  if (!name || name->name.empty()) return FlexArgument(ToText(WithOwn(options, source)));

  ASSIGN_OR_RETURN(const std::shared_ptr<const SecretObject> secret,
                   FindSecret(*name, source.driver, objects));
  FlexArgument argument(kShownForSecret);
  for (const auto& [key, value] : secret->data) {
    std::string sent = Base64Encode(value.Reveal());
    argument.secrets.push_back(value);
    argument.secrets.emplace_back(sent);
    options[kSecretPrefix + key] = std::move(sent);
  }
  argument.secret = Secret<std::string>(ToText(WithOwn(options, source)));
  return argument;
}

}  // namespace volumed
