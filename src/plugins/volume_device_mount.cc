#include "plugins/volume_device_mount.h"

#include "mounter/safe_format_and_mount.h"

namespace volumed {
namespace {

constexpr char kFailedMountOnFilesystemMismatch[] = "FailedMountOnFilesystemMismatch";
// Of a filesystem, when neither the volume nor the disk names one.
constexpr char kDefaultFsType[] = "ext4";

template <typename T>
Result<T> PolicyOf(const PersistentVolume* volume, const char* annotation, T fallback,
                   Result<T> (*parse)(std::string_view)) {
  if (volume == nullptr) return fallback;
  const auto found = volume->metadata.annotations.find(annotation);
  if (found == volume->metadata.annotations.end()) return fallback;
  return parse(found->second).With(std::string("annotation ") + annotation);
}

}  // namespace

Status FormatAndMountVolume(VolumeHost& host, const DeviceMountSettings& settings,
                            const VolumeSpec& spec, const DeviceToMount& device,
                            const DeviceMounterArgs& args) {
  if (settings.format_intents == nullptr) {
    return Error::NotApplied(Code::kUnimplemented,
                             "nothing keeps the intents of formats: block devices are not mounted");
  }
  const PersistentVolume* volume = spec.persistent_volume();
  SafeMountRequest request;
  request.key = device.key;
  request.device = device.path;
  request.target = device.place;
  request.fs_type = device.fs_type.empty() ? kDefaultFsType : device.fs_type;
  request.options = device.options;
  request.for_readers = device.for_readers;
  request.read_only_if_protected = device.for_readers || args.some_pods_only_read;
  ASSIGN_OR_RETURN(request.format_policy, PolicyOf(volume, kFormatPolicyAnnotation,
                                                   settings.format_policy, &ParseFormatPolicy));
  ASSIGN_OR_RETURN(request.fsck_policy,
                   PolicyOf(volume, kFsckPolicyAnnotation, settings.fsck_policy, &ParseFsckPolicy));
  request.grow = args.grow_to.has_value();
  SafeFormatAndMount mounter(host.kernel, *settings.format_intents);
  const SafeMountReport report =
      mounter.FormatAndMount(request, args.call, [&](SafeMountStage, int64_t bytes) {
        if (args.call.progress) args.call.progress(bytes);
      });
  for (const SafeMountNotice& notice : report.notices) {
    if (!args.event) break;
    args.event(notice.warning ? EventType::kWarning : EventType::kNormal, notice.reason,
               notice.message);
  }
  if (report.status.ok()) return OkStatus();
  if (report.error_type == MountErrorType::kFilesystemMismatch && volume != nullptr) {
    host.events.RecordVolumeEvent(volume->metadata.name, EventType::kWarning,
                                  kFailedMountOnFilesystemMismatch,
                                  report.status.error().message());
  }
  return report.status.error().With("failed to mount device " + device.path + " at " +
                                    device.place.Display() + " (fstype: " + request.fs_type + ")");
}

}  // namespace volumed
