#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kube/ephemeral_claim.h"
#include "kube/field_rules.h"
#include "kube/object_fields.h"
#include "kube/source_checks.h"

namespace volumed {
namespace {

void CheckDownwardItems(const std::string& path, const std::vector<DownwardApiVolumeFile>& items,
                        ProblemSink& problems) {
  for (size_t i = 0; i < items.size(); ++i) {
    const DownwardApiVolumeFile& item = items[i];
    const std::string item_path = Indexed(path, i);
    if (item.field_ref.has_value() == item.resource_field_ref.has_value()) {
      problems.Add(item_path, "needs either fieldRef or resourceFieldRef, and not both");
      continue;
    }
    if (item.field_ref && item.field_ref->field_path.substr(0, 9) != "metadata.") {
      problems.Add(item_path + ".fieldRef.fieldPath",
                   Quoted(item.field_ref->field_path) +
                       " cannot be a file: a volume offers fields of the metadata only");
    }
    if (item.resource_field_ref && item.resource_field_ref->container_name.empty()) {
      problems.Add(item_path + ".resourceFieldRef.containerName", "is required");
    }
  }
}

// Checks the sources of a projected volume and remembers the paths that they name. Whole secrets
// and config maps name theirs by their keys, which are not known here.
class ProjectionChecks {
 public:
  explicit ProjectionChecks(ProblemSink& problems) : problems_(problems) {}

  void set_path(std::string path) { path_ = std::move(path); }

  void operator()(const SecretProjection& source) { ClaimItems(".secret.items", source.items); }
  void operator()(const ConfigMapProjection& source) {
    ClaimItems(".configMap.items", source.items);
  }
  void operator()(const DownwardApiProjection& source) {
    CheckDownwardItems(path_ + ".downwardAPI.items", source.items, problems_);
    ClaimItems(".downwardAPI.items", source.items);
  }
  void operator()(const ServiceAccountTokenProjection& source) {
    Claim(path_ + ".serviceAccountToken.path", source.path);
  }
  void operator()(const ClusterTrustBundleProjection& source) {
    const std::string path = path_ + ".clusterTrustBundle";
    if (source.name.empty() == source.signer_name.empty()) {
      problems_.Add(path, "needs either name or signerName, and not both");
    } else if (!source.name.empty() && !source.label_selector_json.empty()) {
      problems_.Add(path + ".labelSelector", "is possible with signerName only");
    }
    Claim(path + ".path", source.path);
  }
  void operator()(const PodCertificateProjection& source) {
    const std::string path = path_ + ".podCertificate";
    const std::pair<const char*, const std::string*> files[] = {
        {".credentialBundlePath", &source.credential_bundle_path},
        {".keyPath", &source.key_path},
        {".certificateChainPath", &source.certificate_chain_path}};
    bool any = false;
    for (const auto& [field, file] : files) {
      if (file->empty()) continue;
      any = true;
      Claim(path + field, *file);
    }
    if (!any) problems_.Add(path, "names no file to write");
  }

 private:
  template <typename Items>
  void ClaimItems(const char* field, const Items& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      Claim(Indexed(path_ + field, i) + ".path", items[i].path);
    }
  }
  void Claim(const std::string& field, const std::string& file) {
    if (!files_.insert(file).second) {
      problems_.Add(field, Quoted(file) + " is written by an earlier source too");
    }
  }

  ProblemSink& problems_;
  std::string path_;
  std::set<std::string> files_;
};

class PodChecks {
 public:
  PodChecks(const Pod& pod, const std::string& prefix, ProblemSink& problems)
      : pod_(pod), spec_path_(prefix + "spec"), problems_(problems) {}

  void Run() {
    CheckVolumes();
    std::set<std::string> names;
    CheckContainers("initContainers", pod_.spec.init_containers, names);
    CheckContainers("containers", pod_.spec.containers, names);
    CheckContainers("ephemeralContainers", pod_.spec.ephemeral_containers, names);
    CheckResourceRefs();
  }

 private:
  void CheckVolumes() {
    const std::string list = spec_path_ + ".volumes";
    for (size_t i = 0; i < pod_.spec.volumes.size(); ++i) {
      const PodVolume& volume = pod_.spec.volumes[i];
      const std::string path = Indexed(list, i);
      if (!volume_names_.insert(volume.name).second) {
        problems_.Add(path + ".name", Quoted(volume.name) + " is the name of another volume too");
      }
      CheckClaimName(volume, path);
      CheckSourceOf(volume.source, path, problems_);
    }
  }

  void CheckClaimName(const PodVolume& volume, const std::string& path) {
    if (!std::holds_alternative<EphemeralVolumeSource>(volume.source)) return;
    if (const auto reason = rules::kDnsSubdomain.broken(EphemeralClaimName(pod_, volume))) {
      problems_.Add(path + ".name", "makes a bad name of its claim: " + *reason);
    }
  }

  void CheckContainers(const char* field, const std::vector<Container>& containers,
                       std::set<std::string>& names) {
    for (size_t i = 0; i < containers.size(); ++i) {
      const Container& container = containers[i];
      const std::string path = Indexed(spec_path_ + "." + field, i);
      if (!names.insert(container.name).second) {
        problems_.Add(path + ".name",
                      Quoted(container.name) + " is the name of another container too");
      }
      CheckMounts(container, path);
      CheckDevices(container, path);
      CheckEnv(container, path);
    }
  }

  void CheckKnownVolume(const std::string& path, const std::string& name) {
    if (volume_names_.count(name) == 0) {
      problems_.Add(path + ".name", Quoted(name) + " is not among the pod's volumes");
    }
  }

  void CheckMounts(const Container& container, const std::string& container_path) {
    std::set<std::string> places;
    for (size_t i = 0; i < container.volume_mounts.size(); ++i) {
      const VolumeMount& mount = container.volume_mounts[i];
      const std::string path = Indexed(container_path + ".volumeMounts", i);
      CheckKnownVolume(path, mount.name);
      if (!places.insert(mount.mount_path).second) {
        problems_.Add(path + ".mountPath",
                      Quoted(mount.mount_path) + " is used by another mount of the container too");
      }
      if (!mount.sub_path.empty() && !mount.sub_path_expr.empty()) {
        problems_.Add(path + ".subPathExpr", "excludes subPath");
      }
      CheckMountOptions(container, mount, path);
    }
  }

  void CheckMountOptions(const Container& container, const VolumeMount& mount,
                         const std::string& path) {
    if (mount.mount_propagation == MountPropagation::kBidirectional &&
        !container.security_context.privileged.value_or(false)) {
      problems_.Add(path + ".mountPropagation",
                    "Bidirectional is possible in a privileged container only");
    }
    const RecursiveReadOnly recursive =
        mount.recursive_read_only.value_or(RecursiveReadOnly::kDisabled);
    if (recursive == RecursiveReadOnly::kDisabled) return;
    if (!mount.read_only) {
      problems_.Add(path + ".recursiveReadOnly", "is possible with readOnly: true only");
    }
    if (mount.mount_propagation.value_or(MountPropagation::kNone) != MountPropagation::kNone) {
      problems_.Add(path + ".recursiveReadOnly", "is possible without mountPropagation only");
    }
  }

  void CheckDevices(const Container& container, const std::string& container_path) {
    std::set<std::string> places;
    std::set<std::string> mounted;
    for (const VolumeMount& mount : container.volume_mounts) mounted.insert(mount.name);
    for (size_t i = 0; i < container.volume_devices.size(); ++i) {
      const VolumeDevice& device = container.volume_devices[i];
      const std::string path = Indexed(container_path + ".volumeDevices", i);
      CheckKnownVolume(path, device.name);
      CheckDeviceSource(device, path);
      if (mounted.count(device.name) > 0) {
        problems_.Add(path + ".name", Quoted(device.name) + " is mounted by the container too");
      }
      const bool same_as_mount =
          std::any_of(container.volume_mounts.begin(), container.volume_mounts.end(),
                      [&](const VolumeMount& m) { return m.mount_path == device.device_path; });
      if (!places.insert(device.device_path).second || same_as_mount) {
        problems_.Add(path + ".devicePath",
                      Quoted(device.device_path) + " is used twice in the container");
      }
    }
  }

  void CheckDeviceSource(const VolumeDevice& device, const std::string& path) {
    for (const PodVolume& volume : pod_.spec.volumes) {
      if (volume.name != device.name) continue;
      if (!std::holds_alternative<PersistentVolumeClaimVolumeSource>(volume.source) &&
          !std::holds_alternative<EphemeralVolumeSource>(volume.source)) {
        problems_.Add(path + ".name",
                      "a device needs a volume of kind persistentVolumeClaim or "
                      "ephemeral, not " +
                          VolumeSourceKind(volume.source));
      }
      return;
    }
  }

  void CheckEnv(const Container& container, const std::string& container_path) {
    for (size_t i = 0; i < container.env.size(); ++i) {
      const EnvVar& variable = container.env[i];
      if (!variable.value_from) continue;
      const std::string path = Indexed(container_path + ".env", i) + ".valueFrom";
      const EnvVarSource& from = *variable.value_from;
      const int set = from.field_ref.has_value() + from.resource_field_ref.has_value() +
                      from.config_map_key_ref.has_value() + from.secret_key_ref.has_value();
      if (set > 1) problems_.Add(path, "more than one source is given, only one is possible");
      if (!variable.value.empty()) problems_.Add(path, "excludes value");
    }
  }

  // A resource of a container that the pod does not have can never be computed.
  void CheckResourceRefs() {
    std::set<std::string> names;
    for (const auto* list :
         {&pod_.spec.init_containers, &pod_.spec.containers, &pod_.spec.ephemeral_containers}) {
      for (const Container& container : *list) names.insert(container.name);
    }
    const auto check = [&](const std::string& path,
                           const std::vector<DownwardApiVolumeFile>& items) {
      for (size_t i = 0; i < items.size(); ++i) {
        const auto& ref = items[i].resource_field_ref;
        if (!ref || ref->container_name.empty() || names.count(ref->container_name) > 0) continue;
        problems_.Add(Indexed(path, i) + ".resourceFieldRef.containerName",
                      Quoted(ref->container_name) + " is not a container of the pod");
      }
    };
    for (size_t i = 0; i < pod_.spec.volumes.size(); ++i) {
      const std::string path = Indexed(spec_path_ + ".volumes", i);
      const VolumeSource& source = pod_.spec.volumes[i].source;
      if (const auto* downward = std::get_if<DownwardApiVolumeSource>(&source)) {
        check(path + ".downwardAPI.items", downward->items);
      }
      const auto* projected = std::get_if<ProjectedVolumeSource>(&source);
      if (projected == nullptr) continue;
      for (size_t k = 0; k < projected->sources.size(); ++k) {
        if (const auto* part = std::get_if<DownwardApiProjection>(&projected->sources[k])) {
          check(Indexed(path + ".projected.sources", k) + ".downwardAPI.items", part->items);
        }
      }
    }
  }

  const Pod& pod_;
  const std::string spec_path_;
  ProblemSink& problems_;
  std::set<std::string> volume_names_;
};

}  // namespace

void CheckSource(const EmptyDirVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  if (source.size_limit && source.size_limit->Sign() < 0) {
    problems.Add(path + ".sizeLimit", "must not be negative");
  }
}

void CheckSource(const DownwardApiVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  CheckDownwardItems(path + ".items", source.items, problems);
}

void CheckSource(const ProjectedVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  ProjectionChecks checks(problems);
  for (size_t i = 0; i < source.sources.size(); ++i) {
    checks.set_path(Indexed(path + ".sources", i));
    std::visit(checks, source.sources[i]);
  }
}

void CheckSource(const EphemeralVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  CheckClaimSpec(source.volume_claim_template.spec, path + ".volumeClaimTemplate.spec", problems);
}

void Validate(const Pod& pod, const std::string& prefix, ProblemSink& problems) {
  PodChecks(pod, prefix, problems).Run();
}

void Validate(const ConfigMapObject& config_map, const std::string& prefix, ProblemSink& problems) {
  for (const auto& [key, value] : config_map.binary_data) {
    if (config_map.data.count(key) > 0) {
      problems.Add(prefix + "binaryData[" + key + "]", "is a key of data too");
    }
  }
}

}  // namespace volumed
