#include "volumemanager/sub_path_requests.h"

#include <algorithm>
#include <utility>

#include "kube/expansion.h"

namespace volumed {
namespace {

// Plans the sub-paths of one volume from what every container mounts.
class Planner {
 public:
  Planner(const Pod& pod, const std::string& volume_name,
          const std::vector<SubPathRequest>& earlier, const ObjectCatalog& catalog,
          const HostNode& node)
      : pod_(pod), volume_name_(volume_name), earlier_(earlier), catalog_(catalog), node_(node) {}

  void AddContainer(const Container& container) {
    for (size_t i = 0; i < container.volume_mounts.size(); ++i) {
      const VolumeMount& mount = container.volume_mounts[i];
      if (mount.name == volume_name_) AddMount(container, static_cast<int>(i), mount);
    }
  }

  SubPathPlan Take() { return std::move(plan_); }

 private:
  void AddMount(const Container& container, int index, const VolumeMount& mount) {
    if (!mount.sub_path_expr.empty()) AddObjectsOf(container);
    const auto before = std::find_if(earlier_.begin(), earlier_.end(), [&](const auto& request) {
      return request.container == container.name && request.index == index;
    });
    if (before != earlier_.end()) {
      plan_.requests.push_back(*before);
      return;
    }
    if (mount.sub_path_expr.empty()) {
      Add(container, index, mount.sub_path, mount.read_only);
      return;
    }
    const Result<std::string> expanded = ExpandSubPathExpr(
        pod_, container, mount.sub_path_expr,
        [&](std::string_view name_space, std::string_view name) {
          return catalog_.FindConfigMap(name_space, name);
        },
        node_.GetNodeAllocatable());
    if (expanded.ok()) {
      Add(container, index, *expanded, mount.read_only);
    } else {
      plan_.problems.push_back(
          {"ExpandSubPath", expanded.error().With("container " + container.name + ", mount at " +
                                                  mount.mount_path)});
    }
  }

  void Add(const Container& container, int index, const std::string& sub_path, bool read_only) {
    if (sub_path.empty()) return;  // it mounts the whole volume
    plan_.requests.push_back({container.name, index, sub_path, read_only});
  }

  void AddObjectsOf(const Container& container) {
    for (const EnvVar& variable : container.env) {
      if (!variable.value_from) continue;
      if (const auto& reference = variable.value_from->config_map_key_ref) {
        plan_.objects.insert({ObjectKind::kConfigMap, pod_.metadata.name_space, reference->name});
      }
      if (variable.value_from->resource_field_ref) {
        plan_.objects.insert({ObjectKind::kNode, "", node_.GetNodeName().str()});
      }
    }
  }

  const Pod& pod_;
  const std::string& volume_name_;
  const std::vector<SubPathRequest>& earlier_;
  const ObjectCatalog& catalog_;
  const HostNode& node_;
  SubPathPlan plan_;
};

}  // namespace

SubPathPlan PlanSubPaths(const Pod& pod, const std::string& volume_name,
                         const std::vector<SubPathRequest>& earlier, const ObjectCatalog& catalog,
                         const HostNode& node) {
  Planner planner(pod, volume_name, earlier, catalog, node);
  for (const Container& container : pod.spec.init_containers) planner.AddContainer(container);
  for (const Container& container : pod.spec.containers) planner.AddContainer(container);
  for (const Container& container : pod.spec.ephemeral_containers) planner.AddContainer(container);
  return planner.Take();
}

}  // namespace volumed
