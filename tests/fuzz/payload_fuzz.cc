// Manifests of Secrets, ConfigMaps and pods: what each volume of a pod would hold. No file of it
// has a path that leads out of the volume, and each alone is one that the writer takes.
#include "plugins/payload.h"

#include <memory>

#include "fuzz/fuzz.h"
#include "kube/decode.h"
#include "kube/field_rules.h"
#include "os/atomic_payload.h"

namespace volumed::payload_fuzz {
namespace {

// The objects of one file, as a node that has no others.
class FileHost final : public HostObjects, public HostTokens, public HostNode {
 public:
  explicit FileHost(const std::vector<DecodedObject>& objects) : objects_(objects) {}

  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                        const std::string& name) const override {
    return Find<SecretObject>(ns, name);
  }
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(
      const std::string& ns, const std::string& name) const override {
    return Find<ConfigMapObject>(ns, name);
  }
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest&) override {
    ServiceAccountToken token;
    token.token = Secret<std::string>("token");
    return token;
  }
  void DeleteServiceAccountTokens(const PodUid&) override {}
  NodeName GetNodeName() const override { return NodeName("node"); }
  std::map<std::string, std::string> GetNodeLabels() const override { return {}; }
  std::map<std::string, Quantity> GetNodeAllocatable() const override { return {}; }
  KernelFeatures GetKernelFeatures() const override { return {}; }

 private:
  template <typename T>
  Result<std::shared_ptr<const T>> Find(const std::string& ns, const std::string& name) const {
    for (const DecodedObject& one : objects_) {
      const T* const object = std::get_if<T>(&one.object);
      if (object != nullptr && object->metadata.name == name && object->metadata.name_space == ns) {
        return std::make_shared<const T>(*object);
      }
    }
    return Error::NotApplied(Code::kNotFound, "the file has none");
  }

  const std::vector<DecodedObject>& objects_;
};

void CheckFiles(const Payload& payload) {
  for (const auto& [path, file] : payload) {
    FUZZ_CHECK(path == file.path);
    FUZZ_CHECK(fuzz::StaysInside(path));
    FUZZ_CHECK(ValidatePayloadPaths({file}).ok());
    FUZZ_CHECK((file.mode & ~0777U) == 0);
  }
  FUZZ_CHECK(FilesOf(payload).size() == payload.size());
}

void CheckResult(const Result<Payload>& payload) {
  if (!payload.ok()) {
    fuzz::CheckError(payload.error());
    FUZZ_CHECK(!payload.error().maybe_applied());
    return;
  }
  CheckFiles(*payload);
}

void CheckVolume(const PodVolume& volume, PayloadContext context) {
  if (const auto* secret = std::get_if<SecretVolumeSource>(&volume.source)) {
    context.default_mode = secret->default_mode;
    CheckResult(CollectSecret(context, secret->secret_name, secret->items, secret->optional));
  } else if (const auto* map = std::get_if<ConfigMapVolumeSource>(&volume.source)) {
    context.default_mode = map->default_mode;
    CheckResult(CollectConfigMap(context, map->name, map->items, map->optional));
  } else if (const auto* api = std::get_if<DownwardApiVolumeSource>(&volume.source)) {
    CheckResult(CollectDownwardApi(context, api->items));
  } else if (const auto* projected = std::get_if<ProjectedVolumeSource>(&volume.source)) {
    const Result<CollectedPayload> collected = CollectProjected(context, *projected);
    CheckResult(collected.ok() ? Result<Payload>(collected->files)
                               : Result<Payload>(collected.error()));
  }
}

}  // namespace

FUZZ_TARGET(payload)(const uint8_t* data, size_t size) {
  const ManifestDecode decoded = DecodeManifest("manifest", fuzz::TextOf(data, size));
  FileHost host(decoded.objects);
  for (const DecodedObject& one : decoded.objects) {
    const Pod* const pod = std::get_if<Pod>(&one.object);
    if (pod == nullptr) continue;
    for (const PodVolume& volume : pod->spec.volumes) {
      CheckVolume(volume, {.objects = host,
                           .tokens = host,
                           .node = host,
                           .pod = *pod,
                           .fs_user = std::nullopt,
                           .fs_group = std::nullopt});
    }
  }
  return 0;
}

}  // namespace volumed::payload_fuzz
