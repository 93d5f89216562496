#include "mounter/shared_group.h"

#include <algorithm>
#include <string>
#include <vector>

#include "mounter/mount_refs.h"

namespace volumed {
namespace {

constexpr char kAlreadyMountedVolume[] = "AlreadyMountedVolume";

Result<bool> OtherPodsHave(VolumeHost& host, const GroupWish& wish, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   FindMountRefs(host.kernel, wish.shown.Display(), call));
  const std::string pods = host.paths.GetPodsDir().Display() + "/";
  const std::string own = wish.dir.Display();
  return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
    return place.starts_with(pods) && place != own;
  });
}

}  // namespace

Result<bool> WarnOfOtherGroup(VolumeHost& host, const GroupWish& wish, const CallOptions& call) {
  ASSIGN_OR_RETURN(const bool shared, OtherPodsHave(host, wish, call));
  if (!shared || !wish.fs_group) return shared;
  ASSIGN_OR_RETURN(const FileInfo info,
                   host.kernel.Call(Stat{.path = wish.shown, .follow = true}, call));
  if (static_cast<int64_t>(info.gid) == *wish.fs_group) return shared;
  host.events.RecordPodEvent(wish.pod, EventType::kWarning, kAlreadyMountedVolume,
                             "The requested fsGroup is " + std::to_string(*wish.fs_group) +
                                 ", but the volume " + wish.volume.str() + " has GID " +
                                 std::to_string(info.gid) + ". The volume may not be shareable.");
  return shared;
}

}  // namespace volumed
