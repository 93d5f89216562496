#include "pluginmgr/device_volume.h"

#include <algorithm>
#include <optional>

#include "base/byte_text.h"
#include "mounter/mount_options.h"
#include "mounter/mount_refs.h"
#include "mounter/resize_fs.h"
#include "mounter/volume_places.h"

namespace volumed {
namespace {

constexpr char kReadOnlyOption[] = "ro";
// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2.
constexpr char kFailedMountOnFilesystemMismatch[] = "FailedMountOnFilesystemMismatch";

std::vector<std::string> OptionsOf(const PersistentVolume* volume,
                                   const std::vector<std::string>& of_plugin) {
  if (volume == nullptr) return of_plugin;
  return MountOptionFromSpec(volume->metadata.annotations, volume->spec.mount_options, of_plugin);
}

template <typename T>
Result<T> PolicyOf(const PersistentVolume* volume, const char* annotation, T fallback,
                   Result<T> (*parse)(std::string_view)) {
  if (volume == nullptr) return fallback;
  const auto found = volume->metadata.annotations.find(annotation);
  if (found == volume->metadata.annotations.end()) return fallback;
  return parse(found->second).With(std::string("annotation ") + annotation);
}

}  // namespace

bool IsReadOnlyVolume(const PersistentVolume* volume) {
  const std::vector<std::string> options = OptionsOf(volume, {});
  return std::find(options.begin(), options.end(), kReadOnlyOption) != options.end();
}

Result<MountedFilesystem> MountDeviceVolume(VolumeHost& host, const DeviceVolumeSettings& settings,
                                            const DeviceMountRequest& wanted,
                                            const DeviceMounterArgs& args) {
  if (settings.format_intents == nullptr) {
    return Error::NotApplied(Code::kUnimplemented,
                             "nothing keeps the intents of formats: block devices are not mounted");
  }
  SafeMountRequest request;
  request.key = wanted.key;
  request.volume = wanted.volume != nullptr ? wanted.volume->metadata.name : wanted.key;
  request.device = wanted.device;
  request.expected_device = wanted.expected;
  request.target = wanted.place;
  request.fs_type = wanted.fs_type.empty() ? kDefaultFsType : wanted.fs_type;
  request.fs_uuid = wanted.fs_uuid;
  request.format_options = wanted.format_options;
  request.options = OptionsOf(wanted.volume, wanted.options);
  request.for_readers = wanted.for_readers;
  request.read_only_if_protected = wanted.read_only_if_protected;
  request.needs_whole = wanted.needs_whole;
  ASSIGN_OR_RETURN(request.format_policy, PolicyOf(wanted.volume, kFormatPolicyAnnotation,
                                                   settings.format_policy, &ParseFormatPolicy));
  if (wanted.format_policy) request.format_policy = *wanted.format_policy;
  ASSIGN_OR_RETURN(request.fsck_policy, PolicyOf(wanted.volume, kFsckPolicyAnnotation,
                                                 settings.fsck_policy, &ParseFsckPolicy));
  request.grow = args.grow_to.has_value();
  SafeFormatAndMount mounter(host.kernel, *settings.format_intents, host.irreversible);
  const SafeMountReport report =
      mounter.FormatAndMount(request, args.call, [&](SafeMountStage, int64_t bytes) {
        if (args.call.progress) args.call.progress(bytes);
      });
  for (const SafeMountNotice& notice : report.notices) {
    if (!args.event) break;
    args.event(notice.warning ? EventType::kWarning : EventType::kNormal, notice.reason,
               notice.message);
  }
  if (report.status.ok()) return MountedFilesystem{report.fs_type, report.device.uuid};
  if (report.error_type == MountErrorType::kFilesystemMismatch && wanted.volume != nullptr) {
    host.events.RecordVolumeEvent(wanted.volume->metadata.name, EventType::kWarning,
                                  kFailedMountOnFilesystemMismatch,
                                  report.status.error().message());
  }
  return report.status.error().With(wanted.plugin + ": failed to mount device " + wanted.device +
                                    " at " + wanted.place.Display() +
                                    " (fstype: " + request.fs_type + ")");
}

Status CheckTakesWrites(VolumeHost& host, const std::string& device, const SafePath& source,
                        const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host.kernel, source.Display(), call));
  if (!mount || !TakesNoWrites(*mount)) return OkStatus();
  const Result<DeviceProbe> probe = host.kernel.Call(ProbeDevice{device, false, false}, call);
  const bool is_protected = probe.ok() && probe->read_only;
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "device " + device + " is mounted read-only at " + source.Display() +
          (is_protected ? " because it is write-protected"
                        : ", as after an error of its filesystem or by somebody's remount") +
          ": a pod can have it only with readOnly in its claim's reference");
}

Status BindForPod(VolumeHost& host, const SafePath& source, const SafePath& dir, bool read_only,
                  const CallOptions& call, const StorageObject& expected,
                  const std::optional<FilesystemPart>& part) {
  RETURN_IF_ERROR(MakePlace(host.kernel, dir, call));
  BindMount bind{.source = source, .target = dir, .read_only = read_only};
  bind.expected = expected;
  bind.expected_part = part;
  const Result<Done> bound = host.kernel.Call(bind, call);
  return OrNothing(host.kernel, dir, bound.ok() ? OkStatus() : Status(bound.error()), call);
}

// ---- expansion ----------------------------------------------------------------------------------

namespace {

Status CheckDeviceSize(const DeviceGrowth& growth, int64_t device_bytes) {
  if (device_bytes >= growth.target_bytes) return OkStatus();
  return Error::NotApplied(Code::kResourceExhausted,
                           growth.plugin + ": device " + growth.device + " has " +
                               BytesForPeople(device_bytes) + ", and the volume is to have " +
                               BytesForPeople(growth.target_bytes) + ": enlarge the device first");
}

}  // namespace

Result<bool> GrowDeviceVolume(VolumeHost& host, const DeviceGrowth& wanted,
                              const CallOptions& call) {
  const auto note = [&wanted](const std::string& text) {
    if (wanted.note) wanted.note(text);
    return true;
  };
  // A fresh look: what was opened before may have had another size.
  ASSIGN_OR_RETURN(const DeviceProbe probe, host.kernel.Call(ProbeDevice{wanted.device}, call));
  const int64_t device_bytes = probe.identity.size_bytes;
  RETURN_IF_ERROR(CheckDeviceSize(wanted, device_bytes));
  if (wanted.is_block) {
    return note("device " + wanted.device + " has " + std::to_string(device_bytes) + " bytes");
  }
  ResizeFs resize(host.kernel);
  ASSIGN_OR_RETURN(const std::optional<FilesystemGrowth> growth,
                   resize.Resize({wanted.device, wanted.mounted_at}, call));
  if (!growth) {
    return Error::NotApplied(Code::kDataLoss,
                             wanted.plugin + ": device " + wanted.device + " has no filesystem");
  }
  if (ProvesSize(*growth, wanted.target_bytes)) return note(GrowthText(*growth));
  return Error::MaybeApplied(Code::kInternal, wanted.plugin + ": the volume is to have " +
                                                  BytesForPeople(wanted.target_bytes) +
                                                  ", and there is " + GrowthText(*growth));
}

}  // namespace volumed
