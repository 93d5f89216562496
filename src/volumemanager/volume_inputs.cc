#include "volumemanager/volume_inputs.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <variant>

namespace volumed {
namespace {

// kubelet looks at init and ephemeral containers too. Source: podutil.VisitContainers.
void ForEachContainer(const Pod& pod, const std::function<void(const Container&)>& visit) {
  for (const Container& container : pod.spec.init_containers) visit(container);
  for (const Container& container : pod.spec.containers) visit(container);
  for (const Container& container : pod.spec.ephemeral_containers) visit(container);
}

void AddUse(const std::vector<DownwardApiVolumeFile>& items, DownwardUse& use) {
  for (const DownwardApiVolumeFile& item : items) {
    use.any = true;
    use.resources = use.resources || item.resource_field_ref.has_value();
  }
}

DownwardUse DownwardUseOfSource(const VolumeSource& source) {
  DownwardUse use;
  if (const auto* downward = std::get_if<DownwardApiVolumeSource>(&source)) {
    AddUse(downward->items, use);
  } else if (const auto* projected = std::get_if<ProjectedVolumeSource>(&source)) {
    for (const VolumeProjection& projection : projected->sources) {
      if (const auto* part = std::get_if<DownwardApiProjection>(&projection)) {
        AddUse(part->items, use);
      }
    }
  }
  return use;
}

}  // namespace

bool SameOwnership(const Pod& a, const Pod& b) {
  const auto users = [](const Pod& pod) {
    std::vector<std::optional<int64_t>> all;
    ForEachContainer(pod, [&](const Container& container) {
      all.push_back(container.security_context.run_as_user);
    });
    return all;
  };
  return a.spec.security_context == b.spec.security_context && users(a) == users(b);
}

DownwardUse DownwardUseOf(const VolumeSpec& spec) {
  return spec.volume() == nullptr ? DownwardUse{} : DownwardUseOfSource(spec.volume()->source);
}

std::set<ObjectKey> ContentObjects(const Pod& pod, const VolumeSpec& spec) {
  if (spec.volume() == nullptr) return {};
  return ObjectsOfVolume(pod.metadata.name_space, spec.volume()->source);
}

std::set<ObjectKey> ObjectsOfVolume(const std::string& name_space, const VolumeSource& source) {
  const ObjectNames names = ObjectsNamedBy(source);
  std::set<ObjectKey> objects;
  for (const std::string& name : names.secrets) {
    objects.insert({ObjectKind::kSecret, name_space, name});
  }
  for (const std::string& name : names.config_maps) {
    objects.insert({ObjectKind::kConfigMap, name_space, name});
  }
  return objects;
}

std::vector<std::string> NestedMountPoints(const Pod& pod, const std::string& volume_name) {
  std::set<std::string> nested;
  ForEachContainer(pod, [&](const Container& container) {
    std::vector<std::string> all;
    for (const VolumeMount& mount : container.volume_mounts) all.push_back(mount.mount_path);
    std::sort(all.begin(), all.end());
    for (const VolumeMount& mount : container.volume_mounts) {
      const bool of_volume_root = mount.sub_path.empty() && mount.sub_path_expr.empty();
      if (mount.name != volume_name || !of_volume_root) continue;
      const std::string below = mount.mount_path + "/";
      std::string last;  // a mount below one that was found belongs to that one
      for (const std::string& path : all) {
        if (!path.starts_with(below) || (!last.empty() && path.starts_with(last + "/"))) continue;
        last = path;
        nested.insert(path.substr(below.size()));
      }
    }
  });
  return {nested.begin(), nested.end()};
}

}  // namespace volumed
