#include "operation/mount_operations.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "mounter/subpath.h"
#include "operation/as_recorded.h"
#include "operation/call_options.h"
#include "operation/given_place.h"
#include "operation/group_operations.h"
#include "operation/hand_out.h"
#include "operation/mount_request.h"
#include "operation/only_pod.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/place_steps.h"
#include "operation/pod_volume_facts.h"
#include "operation/published_content.h"
#include "operation/recorded_volume.h"
#include "operation/step_runner.h"
#include "operation/storage_steps.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

// Our own, beside kubelet's operation_name.
constexpr const char* kPodRemove = "pod_remove";

Status PrepareSubPaths(const OperationParts& parts, const MountRequest& request,
                       const Mounter& mounter, const CallOptions& call,
                       std::vector<SubPathMount>& mounts) {
  mounts.clear();
  for (const SubPathRequest& wanted : request.sub_paths) {
    ASSIGN_OR_RETURN(const SafePath place,
                     PrepareSafeSubpath(parts.host.kernel, parts.host.paths,
                                        SubpathOf(request, wanted, mounter), call)
                         .With("container " + wanted.container));
    mounts.push_back({wanted.container, wanted.index, place.Display()});
  }
  return OkStatus();
}

// Everything of the pod that is mounted and on no record, also in the map of a device of which no
// record tells either.
Result<std::vector<UnrecordedMounts::Mounted>> LostMountsOf(const OperationParts& parts,
                                                            const PodUid& pod,
                                                            const CallOptions& call) {
  const auto may_be_pods = [&pod](const UnrecordedMount& mount) {
    return mount.pod == pod || mount.is_map;
  };
  ASSIGN_OR_RETURN(std::vector<UnrecordedMounts::Mounted> mounted,
                   parts.unrecorded->FindWhere(may_be_pods, parts.host.kernel, call));
  std::erase_if(mounted, [&pod](const auto& mount) { return mount.pod != pod; });
  return mounted;
}

// Of a pod whose volumes are all gone, as far as the agent knows of them.
bool HasLostDeviceLink(const OperationParts& parts, const PodUid& pod, const CallOptions& call) {
  const SafePath of_pod = parts.host.paths.GetPodVolumeDevicesDir(pod);
  const auto plugins = parts.host.kernel.Call(ListDirectory{of_pod}, call);
  if (!plugins.ok()) return false;
  return std::any_of(
      plugins->entries.begin(), plugins->entries.end(), [&](const DirectoryEntry& plugin) {
        const auto links = parts.host.kernel.Call(ListDirectory{of_pod.Below(plugin.name)}, call);
        return links.ok() &&
               std::any_of(links->entries.begin(), links->entries.end(),
                           [](const auto& link) { return link.type == FileType::kSymlink; });
      });
}

// A directory that is not empty is not to be emptied by hand while a volume is mounted below it.
// What a filesystem leaves there is taken up once it is gone; a block volume's links are looked for
// at a start alone.
Status RemoveDirectories(const OperationParts& parts, const PodUid& pod, const CallOptions& call) {
  const Status removed = RemovePodDirectories(parts.host.kernel, parts.host.paths, pod,
                                              parts.pod_directory_owner, call);
  if (removed.ok()) return removed;
  const auto mounted = LostMountsOf(parts, pod, call);
  if (!mounted.ok()) return removed;
  if (mounted->empty()) {
    if (!HasLostDeviceLink(parts, pod, call)) return removed;
    return removed.error()
        .With(
            "no record tells of a block volume that the pod had, and nothing of it is mounted: "
            "the agent has to be started anew, and takes away what is left of it")
        .About(kAboutUnrecordedMount);
  }
  UnrecordedMounts::Mounted told = mounted->front();
  bool any_is_block = told.is_block;
  for (auto more = std::next(mounted->begin()); more != mounted->end(); ++more) {
    any_is_block = any_is_block || more->is_block;
    // Of the other volumes it is told after this one.
    if (more->volume == told.volume && more->spec == told.spec) {
      told.mount_point += ", " + more->mount_point;
    }
  }
  return removed.error()
      .With(UnrecordedMounts::Describe(told) +
            (any_is_block ? ", and then to start the agent anew" : ""))
      .About(kAboutUnrecordedMount);
}

// By what the record says of the volume, or else by what is on disk.
Result<std::unique_ptr<Unmounter>> MakeUnmounter(VolumePlugin& plugin,
                                                 const UnmountRequest& request,
                                                 const std::string& volume_json) {
  const std::optional<VolumeSpec> recorded = ReadRecordedVolume(volume_json);
  if (recorded && recorded->name() == request.spec) {
    return plugin.NewUnmounterOf(*recorded, request.pod);
  }
  return plugin.NewUnmounter(request.spec, request.pod);
}

// The target with what only the device's row knows of it.
VolumeTarget WithDevicePlace(const OperationParts& parts, const MountRequest& request) {
  VolumeTarget target = request.target;
  if (request.given_place()) target.device_place = GivenPlaceOfDevice(parts, request.device());
  return target;
}

Status CheckPlace(const OperationParts& parts, const MountRequest& request, const Mounter& mounter,
                  const CallOptions& call) {
  if (const std::optional<SafePath> place = request.given_place()) {
    const std::optional<SafePath> device = GivenPlaceOfDevice(parts, request.device());
    return CheckTarget(parts, request.key(), *place, device, call);
  }
  const VolumePlace place{request.key(), mounter.GetSafePath(), request.target.directory};
  return CheckNotCovered(parts.host, place, call);
}

// `parts`, `request` and `mounter` outlive the steps.
void AddDirectorySteps(const OperationParts& parts, const MountRequest& request,
                       const Mounter& mounter, std::vector<Step>& steps) {
  steps.push_back({.name = "CheckNotCovered",
                   .timeout = parts.settings.make_pod_directories,
                   .changes_volume = false,
                   .run = [&](const CallOptions& options) {
                     return CheckPlace(parts, request, mounter, options);
                   }});
  steps.push_back({.name = "MakePodDirectories",
                   .timeout = parts.settings.make_pod_directories,
                   .changes_volume = false,
                   .run = [&](const CallOptions& options) {
                     return MakeTargetDirectories(parts.host, request.target,
                                                  OnOwnFilesystem(options));
                   }});
}

Status SetUpVolume(const MountRequest& request, Mounter& mounter, const PodStorage& storage,
                   bool as_recorded, const CallOptions& call) {
  RETURN_IF_ERROR(mounter.CanMount(call));
  MounterArgs args = ArgsFor(request, call);
  args.call.approved = storage.approved();
  args.as_recorded = as_recorded;
  if (const std::optional<SafePath> place = request.given_place()) {
    args.place_domain = OnPlace(call, *place).domain;
  }
  Status set_up = mounter.SetUp(args);
  return as_recorded ? AsProof(set_up) : set_up;
}

// All arguments outlive the steps.
void AddTeardownSteps(const OperationParts& parts, const UnmountRequest& request,
                      const SafePath& place, Unmounter& unmounter, std::vector<Step>& steps) {
  steps.push_back({.name = "CheckNotCovered",
                   .timeout = parts.settings.clean_sub_paths,
                   .changes_volume = false,
                   .run = [&](const CallOptions& options) {
                     return CheckNotCovered(
                         parts.host,
                         {request.key(), place, parts.host.paths.GetPodDir(request.pod)}, options);
                   }});
  // The directories come last: on a root that takes no writes they stay, and the mounts still go.
  const auto has_sub_paths = std::make_shared<bool>(false);
  steps.push_back({.name = "UnmountSubPaths",
                   .timeout = parts.settings.clean_sub_paths,
                   .run = [&, has_sub_paths](const CallOptions& options) -> Status {
                     const Result<bool> found = UnmountSubPaths(parts.host.kernel, parts.host.paths,
                                                                request.pod, request.spec, options);
                     // Some of the mounts may be gone, whatever became of the last one.
                     if (!found.ok()) return found.error().AsMaybeApplied();
                     *has_sub_paths = *found;
                     return OkStatus();
                   }});
  steps.push_back({.name = "TearDown",
                   .timeout = parts.settings.tear_down,
                   .run = [&](const CallOptions& options) { return unmounter.TearDown(options); }});
  steps.push_back({.name = "CleanSubPaths",
                   .timeout = parts.settings.clean_sub_paths,
                   .run = [&, has_sub_paths](const CallOptions& options) {
                     if (!*has_sub_paths) return OkStatus();
                     return CleanSubPaths(parts.host.kernel, parts.host.paths, request.pod,
                                          request.spec, options);
                   }});
}

// Of a volume at a target, which has no sub-paths.
void AddTargetTeardownSteps(const OperationParts& parts, const SafePath& place,
                            Unmounter& unmounter, std::vector<Step>& steps) {
  steps.push_back({.name = "TearDown",
                   .timeout = parts.settings.tear_down,
                   .run = [&](const CallOptions& options) {
                     // It is a bind: what the volume holds is written back where its device is
                     // unmounted.
                     const CallOptions at_place = OnPlace(options, place);
                     return LeaveForeign(parts, place, /*is_block=*/false,
                                         unmounter.TearDownAt(place, at_place), at_place);
                   }});
}

}  // namespace

OperationTraits MountVolume::Traits(const OperationParts& parts) const {
  OperationTraits traits = TraitsOf(parts, key(), kVolumeMount, request.spec);
  traits.pod_display_name = request.target.display_name;
  traits.device = request.device();
  traits.use = request.has_device ? DeviceUse::kExclusive : DeviceUse::kNone;
  traits.domain = DomainOf(parts, request);
  traits.on_own_filesystem = true;
  traits.with_many = request.with_many;
  traits.finishes = request.has_device;
  return traits;
}

std::optional<VolumePlace> MountVolume::PlaceInGroup(const OperationParts& parts) const {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) return std::nullopt;
  if (!CanBeGrouped(request, **plugin) && !MayBeHandedOutInGroup(request, **plugin) &&
      !IsHandedOutStill(request, **plugin, parts.volumes->Find(request.key()))) {
    return std::nullopt;
  }
  return VolumePlace{request.key(), request.target.place, request.target.directory};
}

Failure MountVolume::Run(const OperationParts& parts, OperationProgress& progress,
                         MountedVolume& result) const {
  progress.EnterStep("FindPlugin");
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) return OperationFailure{kVolumeMount, "FindPluginBySpec", plugin.error()};
  const Result<std::unique_ptr<Mounter>> made =
      (*plugin)->NewMounter(request.spec, WithDevicePlace(parts, request));
  if (!made.ok()) return OperationFailure{kVolumeMount, "NewMounter", made.error()};
  Mounter& mounter = **made;
  if (const Status mounted = CheckDevice(parts.devices, request); !mounted.ok()) {
    return OperationFailure{kVolumeMount, "CheckDevice", mounted.error()};
  }

  StateCall call{.operation = kVolumeMount,
                 .event = MountEvent(request, *parts.volumes),
                 .facts = FactsOf(request, **plugin),
                 .steps = {}};
  const bool as_recorded = IsProvenAsRecorded(parts, request, **plugin);
  AddTakeOnlyPod(parts, request, call.steps);
  AddDirectorySteps(parts, request, mounter, call.steps);
  PodStorage storage(parts.storage, parts.host.kernel, request, **plugin, mounter.GetSafePath());
  call.steps.push_back(
      {.name = "ReserveStorage",
       .timeout = parts.settings.set_up,
       .changes_volume = false,
       .run = [&](const CallOptions& options) { return storage.Reserve(options); }});
  call.steps.push_back(
      {.name = "SetUp", .timeout = parts.settings.set_up, .run = [&](const CallOptions& options) {
         return SetUpVolume(request, mounter, storage, as_recorded, options);
       }});
  call.steps.push_back(
      {.name = "RecordStorage",
       .timeout = parts.settings.set_up,
       .changes_volume = false,
       .run = [&](const CallOptions& options) { return storage.Record(options); }});
  call.storage = [&storage] { return storage.Given(); };
  if (!request.sub_paths.empty()) {
    call.steps.push_back({.name = "PrepareSubPaths",
                          .timeout = parts.settings.prepare_sub_paths,
                          .run = [&](const CallOptions& options) {
                            return PrepareSubPaths(parts, request, mounter, options,
                                                   result.sub_paths);
                          }});
  }
  StepRunner runner(*parts.volumes, parts.host.clock, progress,
                    OperationCall(call.facts.key.ToString(), call.facts.fault_domain,
                                  mounter.GetPath(), progress));
  if (Failure failure = runner.Run(call)) {
    // Nothing of it is there: nobody has to know of it.
    if (!parts.volumes->Find(call.facts.key)) storage.Release();
    GiveBackOnlyPod(parts, request);
    return failure;
  }
  DescribeMounted(call.facts.plugin_name, mounter, result);
  return std::nullopt;
}

void MountVolume::Tell(const OperationParts& parts,
                       const OperationOutcome<MountedVolume>& outcome) const {
  // Nobody but the caller waits at a place that he gave, and he has the outcome.
  if (!outcome.failure || request.given_place()) return;
  TellOfFailure(parts.host.events, request.key().pod, request.spec.name(), false, *outcome.failure);
}

OperationFailures MountVolume::RunTogether(const OperationParts& parts,
                                           const std::vector<const MountVolume*>& all,
                                           const std::vector<MountedVolume*>& results,
                                           OperationProgress& progress) {
  return RunMountGroup(parts, all, results, progress);
}

OperationTraits UnmountVolume::Traits(const OperationParts& parts) const {
  return UnmountTraits(parts, kVolumeUnmount, request);
}

std::optional<VolumePlace> UnmountVolume::PlaceInGroup(const OperationParts& parts) const {
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(request.key());
  if (!record || GivenPlaceOf(*record)) return std::nullopt;
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginForTeardown(record->plugin_name);
  if (!plugin.ok() || !CanBeGrouped(request, *record, **plugin)) return std::nullopt;
  const KubeletPaths& paths = parts.host.paths;
  return VolumePlace{request.key(),
                     paths.GetPodVolumeDir(request.pod, record->plugin_name, request.spec),
                     paths.GetPodDir(request.pod)};
}

Failure UnmountVolume::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  progress.EnterStep("FindPlugin");
  StateCall call{.operation = kVolumeUnmount,
                 .event = VolumeEvent::kTearDown,
                 .facts = FactsOf(request, *parts.volumes),
                 .steps = {}};
  const std::string& name =
      request.plugin_name.empty() ? call.facts.plugin_name : request.plugin_name;
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginForTeardown(name);
  if (!plugin.ok()) return OperationFailure{kVolumeUnmount, "FindPluginByName", plugin.error()};
  const Result<std::unique_ptr<Unmounter>> made =
      MakeUnmounter(**plugin, request, call.facts.volume_json);
  if (!made.ok()) return OperationFailure{kVolumeUnmount, "NewUnmounter", made.error()};

  const std::optional<SafePath> given = GivenPlaceOf(call.facts);
  const SafePath place = given ? *given
                               : parts.host.paths.GetPodVolumeDir(
                                     request.pod, (*plugin)->GetPluginName(), request.spec);
  if (given) {
    // Before the intent: what another one has at the place of a volume that no record knows is not
    // to be taken for that volume.
    if (const Status there = CheckTargetOfTeardown(parts, call.facts, CallOptions{}); !there.ok()) {
      return OperationFailure{kVolumeUnmount, "CheckNotCovered", there.error()};
    }
    AddTargetTeardownSteps(parts, place, **made, call.steps);
  } else {
    AddTeardownSteps(parts, request, place, **made, call.steps);
  }
  AddReleaseOnlyPod(parts, call.facts, call.steps);
  StepRunner runner(*parts.volumes, parts.host.clock, progress,
                    OperationCall(call.facts.key.ToString(), call.facts.fault_domain,
                                  given ? place.Display() : (*made)->GetPath(), progress));
  if (Failure failure = runner.Run(call)) return failure;
  return ReleaseStorage(parts.storage, PodStorageId(call.facts.key), kVolumeUnmount);
}

OperationFailures UnmountVolume::RunTogether(const OperationParts& parts,
                                             const std::vector<const UnmountVolume*>& all,
                                             const std::vector<Unit*>&,
                                             OperationProgress& progress) {
  return RunUnmountGroup(parts, all, progress);
}

OperationTraits RemovePod::Traits(const OperationParts&) const {
  return {.key = key(),
          .name = kPodRemove,
          .plugin_name = "",
          .pod_display_name = pod_display_name,
          .on_own_filesystem = true,
          .with_many = with_many};
}

Failure RemovePod::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  const std::vector<PodVolumeRecord> volumes = parts.volumes->FindOfPod(pod);
  if (!volumes.empty()) {
    return OperationFailure{
        kPodRemove, "CheckVolumes",
        Error::NotApplied(Code::kFailedPrecondition,
                          "volume \"" + volumes.front().key.spec.str() + "\" is still " +
                              std::string(VolumeStateName(volumes.front().state)))};
  }
  const std::vector<Step> steps = {
      {.name = "RemovePodDirectories",
       .timeout = parts.settings.remove_pod_directories,
       .run = [&](const CallOptions& options) { return RemoveDirectories(parts, pod, options); }},
      {.name = "RemovePodRecord",
       .run = [&](const CallOptions&) -> Status {
         // As long as the pod is on record, its volumes may be its own alone.
         RETURN_IF_ERROR(parts.devices.ReleaseOnlyPods(pod));
         RETURN_IF_ERROR(parts.volumes->ForgetPod(pod));
         if (record == PodRecordEnd::kKeep) return OkStatus();
         return parts.store.Remove(kPodRecordKind, pod.str(), kPodRecordDurability);
       }},
  };
  StepRunner runner(*parts.volumes, parts.host.clock, progress,
                    OperationCall(pod.str(), "", "", progress));
  return runner.RunWithoutRecord(kPodRemove, steps);
}

}  // namespace volumed
