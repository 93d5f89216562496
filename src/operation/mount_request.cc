#include "operation/mount_request.h"

#include <optional>

#include "operation/pod_volume_facts.h"

namespace volumed {

MounterArgs ArgsFor(const MountRequest& request, const CallOptions& call) {
  const VolumeOwner& owner = request.target.owner;
  MounterArgs args;
  args.fs_user = owner.fs_user;
  args.fs_group = owner.fs_group;
  args.fs_group_change_policy = owner.fs_group_change_policy;
  args.nested_mount_points = request.nested_mount_points;
  args.reconstructed_volume = request.reconstructed;
  args.is_remount = request.is_remount;
  args.selinux_label = request.selinux_label;
  args.call = call;
  return args;
}

SafeSubpathRequest SubpathOf(const MountRequest& request, const SubPathRequest& wanted,
                             const Mounter& mounter) {
  return {.pod = request.key().pod,
          .spec = request.spec.name(),
          .container = wanted.container,
          .index = wanted.index,
          .volume = mounter.GetSafePath(),
          .sub_path = wanted.sub_path};
}

VolumeEvent MountEvent(const MountRequest& request, const VolumeRecordKeeper& keeper) {
  const std::optional<PodVolumeRecord> record = keeper.Find(request.key());
  const bool is_set_up = record && record->state == VolumeState::kSetUp;
  return request.is_remount && is_set_up ? VolumeEvent::kRemount : VolumeEvent::kSetUp;
}

void DescribeMounted(const std::string& plugin_name, const Mounter& mounter,
                     MountedVolume& result) {
  result.plugin_name = plugin_name;
  result.host_path = mounter.GetPath();
  result.attributes = mounter.GetAttributes();
  result.freshness = mounter.freshness();
}

}  // namespace volumed
