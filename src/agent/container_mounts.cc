#include "agent/container_mounts.h"

#include <algorithm>

namespace volumed {
namespace {

Result<const Container*> FindContainer(const Pod& pod, const PodView& view,
                                       const std::string& name) {
  for (const auto* list :
       {&pod.spec.init_containers, &pod.spec.containers, &pod.spec.ephemeral_containers}) {
    for (const Container& container : *list) {
      if (container.name == name) return &container;
    }
  }
  return Error::NotApplied(Code::kNotFound,
                           "pod " + view.ns + "/" + view.name + " has no container " + name);
}

// Finds a volume by its name in the pod's spec; null if there is none.
const VolumeView* FindVolume(const PodView& view, const std::string& pod_volume) {
  for (const VolumeView& volume : view.volumes) {
    const std::vector<std::string>& names = volume.pod_volumes;
    if (std::find(names.begin(), names.end(), pod_volume) != names.end()) return &volume;
  }
  return nullptr;
}

std::string PropagationOption(const VolumeMount& mount) {
  switch (mount.mount_propagation.value_or(MountPropagation::kNone)) {
    case MountPropagation::kNone:
      return "rprivate";
    case MountPropagation::kHostToContainer:
      return "rslave";
    case MountPropagation::kBidirectional:
      return "rshared";
  }
  return "rprivate";
}

// "ro" concerns the mount itself, "rro" also everything that is mounted below it.
Result<std::string> AccessOption(const VolumeMount& mount, bool volume_read_only,
                                 bool kernel_has_rro) {
  if (!mount.read_only) return std::string(volume_read_only ? "ro" : "rw");
  switch (mount.recursive_read_only.value_or(RecursiveReadOnly::kDisabled)) {
    case RecursiveReadOnly::kDisabled:
      return std::string("ro");
    case RecursiveReadOnly::kIfPossible:
      return std::string(kernel_has_rro ? "rro" : "ro");
    case RecursiveReadOnly::kEnabled:
      if (kernel_has_rro) return std::string("rro");
      return Error::NotApplied(Code::kUnimplemented,
                               "volumeMount " + mount.mount_path +
                                   ": recursiveReadOnly Enabled needs the kernel feature "
                                   "mount-setattr");
  }
  return std::string("ro");
}

Result<std::string> SourceOf(const VolumeView& volume, const VolumeMount& mount,
                             const std::string& container, int index) {
  if (mount.sub_path.empty() && mount.sub_path_expr.empty()) return volume.host_path;
  for (const SubPathMount& sub_path : volume.sub_paths) {
    if (sub_path.container == container && sub_path.index == index) return sub_path.host_path;
  }
  return Error::NotApplied(Code::kFailedPrecondition, "volume " + mount.name + ": the subPath of " +
                                                          mount.mount_path + " is not prepared");
}

}  // namespace

Result<std::vector<ContainerMount>> GetContainerMounts(const Pod& pod, const PodView& view,
                                                       const std::string& container_name,
                                                       bool kernel_has_recursive_read_only) {
  ASSIGN_OR_RETURN(const Container* container, FindContainer(pod, view, container_name));
  std::vector<ContainerMount> mounts;
  for (size_t i = 0; i < container->volume_mounts.size(); ++i) {
    const VolumeMount& mount = container->volume_mounts[i];
    const VolumeView* volume = FindVolume(view, mount.name);
    if (volume == nullptr || volume->state != VolumeStateName(VolumeState::kSetUp)) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               "volume " + mount.name + " is not set up");
    }
    ASSIGN_OR_RETURN(std::string source,
                     SourceOf(*volume, mount, container_name, static_cast<int>(i)));
    ASSIGN_OR_RETURN(std::string access,
                     AccessOption(mount, volume->read_only, kernel_has_recursive_read_only));
    mounts.push_back({mount.mount_path,
                      std::move(source),
                      {"rbind", std::move(access), PropagationOption(mount)}});
  }
  return mounts;
}

Result<std::vector<ContainerDevice>> GetContainerDevices(const Pod& pod, const PodView& view,
                                                         const std::string& container_name) {
  ASSIGN_OR_RETURN(const Container* container, FindContainer(pod, view, container_name));
  std::vector<ContainerDevice> devices;
  for (const VolumeDevice& device : container->volume_devices) {
    const VolumeView* volume = FindVolume(view, device.name);
    if (volume == nullptr || volume->state != VolumeStateName(VolumeState::kMapped)) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               "volume " + device.name + " is not mapped");
    }
    devices.push_back({device.device_path, volume->host_path, volume->read_only ? "r" : "mrw"});
  }
  return devices;
}

}  // namespace volumed
