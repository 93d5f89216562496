#include "csi/csi_proof.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "csi/csi_volume_files.h"
#include "csi/vol_data.h"
#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"
#include "operation/call_options.h"
#include "os/mount_index.h"
#include "os/place_names.h"

namespace volumed {
namespace {

bool IsSameFilesystem(const MountEntry& a, const MountEntry& b) {
  return a.device_major == b.device_major && a.device_minor == b.device_minor;
}

// The path of another volume's device that is this very mount's content; "" if there is none. What
// is on no disk (network, FUSE, tmpfs) may show in several volumes by right.
Result<std::string> OtherVolumesDevice(const CsiContext& context, const MountEntry& mount,
                                       const std::string& own, const CallOptions& call) {
  if (!IsOfDisk(mount)) return std::string();
  ListMounts question;
  question.showing = FilesystemPart{mount.device_major, mount.device_minor, mount.root};
  ASSIGN_OR_RETURN(const MountListing shown, context.kernel().Call(question, call));
  for (const MountEntry& there : shown.mounts) {
    if (there.mount_point != own && context.parts.devices.IsMountPath(there.mount_point)) {
      return there.mount_point;
    }
  }
  return std::string();
}

// Whether this is the target of a pod's persistent volume, and not of that one. What has no file
// beside it that can be read is nobody's as far as anyone knows.
Result<bool> IsOtherVolumesTarget(const CsiContext& context, const std::string& path,
                                  const SpecName& own, const CsiVolumeId& volume,
                                  const CallOptions& call) {
  const KubeletPaths& paths = context.host.paths;
  const std::optional<KubeletPaths::PodVolume> there = paths.ParsePodVolume(path);
  if (!there || there->is_block || there->plugin != kCsiPluginName || there->spec == own) {
    return false;
  }
  const SafePath target = CsiTargetPath(paths, there->pod, there->spec);
  if (target.Display() != path) return false;
  const Result<StringMap> data = ReadVolData(context, ParentOf(target), call);
  if (!data.ok()) {
    const bool is_known = data.error().code() != Code::kNotFound;
    return is_known && data.error().code() != Code::kDataLoss ? Result<bool>(data.error()) : false;
  }
  if (VolDataOf(*data, kVolDataLifecycleMode) == kVolDataEphemeral) return false;
  const std::optional<CsiVolumeId> id = VolumeIdOf(*data);
  return id && *id != volume;
}

// The target of a pod's volume that shows the same as this mount, and is another persistent volume;
// "" if there is none. Pods that share a volume share its name, so their files are not read.
Result<std::string> OtherVolumesTarget(const CsiContext& context, const MountEntry& mount,
                                       const CsiVolumeId& volume, const CallOptions& call) {
  if (!IsOfDisk(mount)) return std::string();
  const std::optional<KubeletPaths::PodVolume> own =
      context.host.paths.ParsePodVolume(mount.mount_point);
  if (!own) return std::string();
  ListMounts question;
  question.showing = FilesystemPart{mount.device_major, mount.device_minor, mount.root};
  ASSIGN_OR_RETURN(const MountListing shown, context.kernel().Call(question, call));
  for (const MountEntry& there : shown.mounts) {
    ASSIGN_OR_RETURN(const bool is_other,
                     IsOtherVolumesTarget(context, there.mount_point, own->spec, volume, call));
    if (is_other) return there.mount_point;
  }
  return std::string();
}

// The agent's own directories below its root, by their names: nothing of them is a volume, but what
// is the volume's own in the latter ones. A driver may have its volumes in its own directory beside
// them, so of `plugins` nothing else is the agent's.
constexpr std::array kOwnWholly{"volumed", "plugins_registry"};
constexpr std::array kOwnButForVolume{"pods", "plugins/kubernetes.io"};
constexpr const char* kOwnAlone = "plugins";

// `shown` and `root` are paths of one filesystem; `places` are the volume's own, relative to the
// root.
bool ShowsOwn(const std::string& shown, const std::string& root,
              const std::vector<std::string>& places) {
  const std::string below = root == "/" ? root : root + "/";
  const auto is_in = [&](const std::string& name) { return IsAtOrBelow(shown, below + name); };
  if (IsAtOrBelow(root, shown) || shown == below + kOwnAlone) return true;
  if (std::any_of(kOwnWholly.begin(), kOwnWholly.end(), is_in)) return true;
  return std::any_of(kOwnButForVolume.begin(), kOwnButForVolume.end(), is_in) &&
         std::none_of(places.begin(), places.end(), is_in);
}

// The path as the mount's filesystem has it; nullopt if the path lies on another filesystem. The
// path is taken as text: a link in it is not followed.
Result<std::optional<std::string>> OnFilesystemOf(const CsiContext& context,
                                                  const MountEntry& mount, const std::string& path,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountListing around,
                   context.kernel().Call(ListMounts{.around = path}, OnOwnFilesystem(call)));
  if (around.mounts.empty()) return std::optional<std::string>();
  const MountEntry& own = around.mounts.back();
  if (!IsSameFilesystem(own, mount)) return std::optional<std::string>();
  return std::make_optional(PartAt(own, path).root);
}

void AppendBelowRoot(const CsiContext& context, const SafePath& place,
                     std::vector<std::string>& places) {
  const std::string path = place.Display();
  const std::string below = context.host.paths.root() + "/";
  if (path.starts_with(below)) places.push_back(path.substr(below.size()));
}

// Whether the mount shows the agent's own directories, or one above them.
Result<bool> ShowsAgent(const CsiContext& context, const MountEntry& mount,
                        const PublishedLook& look, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> root,
                   OnFilesystemOf(context, mount, context.host.paths.root(), call));
  std::vector<std::string> places;
  AppendBelowRoot(context, look.target, places);
  if (look.staging) AppendBelowRoot(context, *look.staging, places);
  if (root && ShowsOwn(mount.root, *root, places)) return true;
  for (const std::string& path : context.parts.settings.Get().own_places) {
    ASSIGN_OR_RETURN(const std::optional<std::string> own,
                     OnFilesystemOf(context, mount, path, call));
    if (own && (IsAtOrBelow(mount.root, *own) || IsAtOrBelow(*own, mount.root))) return true;
  }
  return false;
}

std::string Several(size_t layers, const std::string& path) {
  return std::to_string(layers) + " mounts lie one upon another at " + path;
}

// What is there without a mount.
Result<std::optional<std::string>> WhyNoDirectory(const CsiContext& context, const SafePath& place,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo there,
                   context.kernel().Call(Stat{.path = place}, OnOwnFilesystem(call)));
  const std::string path = place.Display();
  if (there.type == FileType::kDirectory) return std::optional<std::string>();
  if (there.type == FileType::kMissing) return std::make_optional("there is no " + path);
  return std::make_optional(path + " is a " + std::string(FileTypeName(there.type)));
}

// The number of the disk that the mount is of: btrfs has one of its own, and names a disk as its
// source. 0: that is no device.
Result<dev_t> DiskNumberOf(const CsiContext& context, const MountEntry& mount,
                           const CallOptions& call) {
  if (mount.device_major != 0) return ::makedev(mount.device_major, mount.device_minor);
  if (!mount.source.starts_with("/dev/")) return dev_t{0};
  ASSIGN_OR_RETURN(const FileInfo source,
                   context.kernel().Call(Stat{.path = HostPath(mount.source), .follow = true},
                                         OnOwnFilesystem(call)));
  return source.type == FileType::kBlockDevice ? dev_t{source.device_number} : dev_t{0};
}

Result<CsiFinding> LookWithoutMount(const CsiContext& context, const PublishedLook& look,
                                    const CallOptions& call) {
  ASSIGN_OR_RETURN(std::optional<std::string> wrong, WhyNoDirectory(context, look.target, call));
  const bool may_be_plain = context.parts.settings.Get().plain_directories.count(look.driver) > 0;
  if (!wrong && !may_be_plain) wrong = "nothing is mounted at " + look.target.Display();
  return CsiFinding{std::move(wrong), std::nullopt};
}

// Nullopt if the pod's mount is of the disk that is staged, or no disk is.
Result<std::optional<std::string>> WhyNotOfStaged(const CsiContext& context,
                                                  const MountEntry& mount, const SafePath& staging,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> staged,
                   FindMountAt(context.kernel(), staging.Display(), call));
  if (!staged || !IsOfDisk(*staged) || IsSameFilesystem(*staged, mount)) {
    return std::optional<std::string>();
  }
  return std::make_optional("what is mounted at " + mount.mount_point + " is " + mount.source +
                            ", and not " + staged->source + " that is staged");
}

// Nullopt if the pod's mount is of no other volume.
Result<std::optional<std::string>> WhyOtherVolumes(const CsiContext& context,
                                                   const MountEntry& mount,
                                                   const PublishedLook& look,
                                                   const CallOptions& call) {
  const std::string path = look.target.Display();
  const std::string own = look.staging ? look.staging->Display() : std::string();
  ASSIGN_OR_RETURN(const std::string device, OtherVolumesDevice(context, mount, own, call));
  if (!device.empty()) {
    return std::make_optional("what is mounted at " + path +
                              " is the disk of the volume that is staged at " + device);
  }
  if (!look.persistent) return std::optional<std::string>();
  ASSIGN_OR_RETURN(const std::string target,
                   OtherVolumesTarget(context, mount, *look.persistent, call));
  if (target.empty()) return std::optional<std::string>();
  return std::make_optional("what is mounted at " + path +
                            " is what is published as another volume at " + target);
}

}  // namespace

Result<std::vector<MountEntry>> MountLayers(Kernel& kernel, const std::string& path,
                                            const CallOptions& call) {
  ASSIGN_OR_RETURN(MountListing below, kernel.Call(ListMounts{.below = path}, call));
  std::erase_if(below.mounts,
                [&path](const MountEntry& mount) { return mount.mount_point != path; });
  return std::move(below.mounts);
}

Result<CsiFinding> LookAtStaged(const CsiContext& context, const SafePath& place,
                                const CallOptions& call) {
  const std::string path = place.Display();
  ASSIGN_OR_RETURN(std::vector<MountEntry> layers, MountLayers(context.kernel(), path, call));
  if (layers.size() > 1) return CsiFinding{Several(layers.size(), path), std::nullopt};
  if (layers.empty()) {
    ASSIGN_OR_RETURN(std::optional<std::string> wrong, WhyNoDirectory(context, place, call));
    return CsiFinding{std::move(wrong), std::nullopt};
  }
  CsiFinding finding{std::nullopt, std::move(layers.front())};
  ASSIGN_OR_RETURN(const std::string other,
                   OtherVolumesDevice(context, *finding.mount, path, call));
  if (!other.empty()) {
    finding.wrong =
        "what is mounted at " + path + " is the disk of the volume that is staged at " + other;
  }
  return finding;
}

Result<std::optional<std::string>> WhyPodsDevice(const CsiContext& context,
                                                 const CsiVolumeId& volume, const MountEntry& mount,
                                                 const CallOptions& call) {
  if (!IsOfDisk(mount)) return std::optional<std::string>();
  ASSIGN_OR_RETURN(const dev_t disk, DiskNumberOf(context, mount, call));
  if (disk == 0) return std::optional<std::string>();
  const std::optional<UniqueVolumeName> other = context.parts.devices.FindOtherMapped(
      major(disk), minor(disk), CsiUniqueName(volume.driver, volume.handle));
  if (!other) return std::optional<std::string>();
  return std::make_optional("what is mounted at " + mount.mount_point + " is " + mount.source +
                            ", the device that pods have as volume " + other->str());
}

Result<CsiFinding> LookAtPublished(const CsiContext& context, const PublishedLook& look,
                                   const CallOptions& call) {
  const std::string path = look.target.Display();
  ASSIGN_OR_RETURN(std::vector<MountEntry> layers, MountLayers(context.kernel(), path, call));
  if (layers.empty()) return LookWithoutMount(context, look, call);
  if (layers.size() > 1) return CsiFinding{Several(layers.size(), path), std::nullopt};
  CsiFinding finding{std::nullopt, std::move(layers.front())};
  const MountEntry& mount = *finding.mount;
  if (look.read_only && !TakesNoWrites(mount)) {
    finding.wrong =
        "what is mounted at " + path + " can be written to, though it was to be read-only";
    return finding;
  }
  ASSIGN_OR_RETURN(const bool shows_agent, ShowsAgent(context, mount, look, call));
  if (shows_agent) {
    finding.wrong =
        "what is mounted at " + path + " is the agent's own directory, or one that it lies in";
    return finding;
  }
  if (look.staging) {
    ASSIGN_OR_RETURN(finding.wrong, WhyNotOfStaged(context, mount, *look.staging, call));
    if (finding.wrong) return finding;
  }
  ASSIGN_OR_RETURN(finding.wrong, WhyOtherVolumes(context, mount, look, call));
  return finding;
}

Result<CsiFinding> LookAtPublishedDevice(const CsiContext& context, const SafePath& target,
                                         const CallOptions& call) {
  const std::string path = target.Display();
  Kernel& kernel = context.kernel();
  ASSIGN_OR_RETURN(FileInfo there, kernel.Call(Stat{.path = target}, call));
  if (there.type == FileType::kSymlink) {
    ASSIGN_OR_RETURN(there, kernel.Call(Stat{.path = HostPath(path), .follow = true}, call));
  }
  if (there.type == FileType::kBlockDevice) return CsiFinding{};
  if (there.type == FileType::kMissing) return CsiFinding{"there is no " + path, std::nullopt};
  return CsiFinding{
      path + " is a " + std::string(FileTypeName(there.type)) + ", and no block device",
      std::nullopt};
}

Result<CsiFinding> LookAtTakenAway(const CsiContext& context, const SafePath& place,
                                   const CallOptions& call) {
  const std::string path = place.Display();
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers, MountLayers(context.kernel(), path, call));
  if (layers.empty()) return CsiFinding{};
  const std::string count =
      layers.size() == 1 ? "" : " (" + std::to_string(layers.size()) + " layers)";
  return CsiFinding{path + " is still mounted" + count, layers.back()};
}

}  // namespace volumed
