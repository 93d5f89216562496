#include "operation/pod_volume_operations.h"

#include <string>
#include <utility>

#include "mounter/subpath.h"
#include "operation/call_options.h"
#include "operation/device_facts.h"
#include "operation/device_operations.h"
#include "operation/map_operations.h"
#include "operation/mount_request.h"
#include "operation/pod_volume_facts.h"
#include "operation/step_runner.h"
#include "operation/storage_steps.h"

namespace volumed {
namespace {

using Parts = PodVolumeOperations::Parts;
using Failure = std::optional<OperationFailure>;

// Our own, beside kubelet's operation_name.
constexpr const char* kPodRemove = "pod_remove";
// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (FailedMountVolume).
constexpr const char* kFailedMount = "FailedMount";
// (FailedMapVolume, SuccessfulMountVolume).
constexpr const char* kFailedMap = "FailedMapVolume";
constexpr const char* kSuccessfulMount = "SuccessfulMountVolume";

std::string DisplayName(const Pod& pod) {
  return pod.metadata.name_space + "/" + pod.metadata.name;
}

Status PrepareSubPaths(const Parts& parts, const MountRequest& request, const Mounter& mounter,
                       const CallOptions& call, std::vector<SubPathMount>& mounts) {
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

Failure RunMount(const Parts& parts, const MountRequest& request, MountedVolume& result,
                 OperationProgress& progress) {
  progress.EnterStep("FindPlugin");
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) return OperationFailure{kVolumeMount, "FindPluginBySpec", plugin.error()};
  const Result<std::unique_ptr<Mounter>> made = (*plugin)->NewMounter(request.spec, request.pod);
  if (!made.ok()) return OperationFailure{kVolumeMount, "NewMounter", made.error()};
  Mounter& mounter = **made;
  if (const Status mounted = CheckDevice(parts.devices, request.device()); !mounted.ok()) {
    return OperationFailure{kVolumeMount, "CheckDevice", mounted.error()};
  }

  StateCall call{.operation = kVolumeMount,
                 .event = MountEvent(request, *parts.keeper),
                 .facts = FactsOf(request, **plugin),
                 .steps = {}};
  call.steps.push_back({.name = "CheckNotCovered",
                        .timeout = parts.settings.make_pod_directories,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) {
                          return CheckNotCovered(parts.host, request.pod->uid(),
                                                 mounter.GetSafePath(), options);
                        }});
  call.steps.push_back({.name = "MakePodDirectories",
                        .timeout = parts.settings.make_pod_directories,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) {
                          return MakePodDirectories(parts.host.kernel, parts.host.paths,
                                                    request.pod->uid(), OnOwnFilesystem(options));
                        }});
  PodStorage storage(parts.storage, parts.host.kernel, request, **plugin, mounter.GetSafePath());
  call.steps.push_back(
      {.name = "ReserveStorage",
       .timeout = parts.settings.set_up,
       .changes_volume = false,
       .run = [&](const CallOptions& options) { return storage.Reserve(options); }});
  call.steps.push_back({.name = "SetUp",
                        .timeout = parts.settings.set_up,
                        .run = [&](const CallOptions& options) -> Status {
                          RETURN_IF_ERROR(mounter.CanMount(options));
                          MounterArgs args = ArgsFor(request, options);
                          args.call.approved = storage.approved();
                          return mounter.SetUp(args);
                        }});
  call.steps.push_back(
      {.name = "RecordStorage",
       .timeout = parts.settings.set_up,
       .changes_volume = false,
       .run = [&](const CallOptions& options) { return storage.Record(options); }});
  if (!request.sub_paths.empty()) {
    call.steps.push_back({.name = "PrepareSubPaths",
                          .timeout = parts.settings.prepare_sub_paths,
                          .run = [&](const CallOptions& options) {
                            return PrepareSubPaths(parts, request, mounter, options,
                                                   result.sub_paths);
                          }});
  }
  StepRunner runner(*parts.keeper, parts.host.clock, progress,
                    OperationCall(call.facts.key.ToString(), call.facts.fault_domain, progress));
  if (Failure failure = runner.Run(call)) {
    // Nothing of it is there: nobody has to know of it.
    if (!parts.keeper->Find(call.facts.key)) storage.Release();
    return failure;
  }
  DescribeMounted(call.facts.plugin_name, mounter, result);
  return std::nullopt;
}

Failure RunUnmount(const Parts& parts, const UnmountRequest& request, OperationProgress& progress) {
  progress.EnterStep("FindPlugin");
  StateCall call{.operation = kVolumeUnmount,
                 .event = VolumeEvent::kTearDown,
                 .facts = FactsOf(request, *parts.keeper),
                 .steps = {}};
  const std::string& name =
      request.plugin_name.empty() ? call.facts.plugin_name : request.plugin_name;
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginForTeardown(name);
  if (!plugin.ok()) return OperationFailure{kVolumeUnmount, "FindPluginByName", plugin.error()};
  const Result<std::unique_ptr<Unmounter>> made =
      (*plugin)->NewUnmounter(request.spec, request.pod);
  if (!made.ok()) return OperationFailure{kVolumeUnmount, "NewUnmounter", made.error()};

  const SafePath place =
      parts.host.paths.GetPodVolumeDir(request.pod, (*plugin)->GetPluginName(), request.spec);
  call.steps.push_back({.name = "CheckNotCovered",
                        .timeout = parts.settings.clean_sub_paths,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) {
                          return CheckNotCovered(parts.host, request.pod, place, options);
                        }});
  // The directories come last: on a root that takes no writes they stay, and the mounts still go.
  bool has_sub_paths = false;
  call.steps.push_back({.name = "UnmountSubPaths",
                        .timeout = parts.settings.clean_sub_paths,
                        .run = [&](const CallOptions& options) -> Status {
                          const Result<bool> found =
                              UnmountSubPaths(parts.host.kernel, parts.host.paths, request.pod,
                                              request.spec, options);
                          // Some of the mounts may be gone, whatever became of the last one.
                          if (!found.ok()) return found.error().AsMaybeApplied();
                          has_sub_paths = *found;
                          return OkStatus();
                        }});
  call.steps.push_back(
      {.name = "TearDown",
       .timeout = parts.settings.tear_down,
       .run = [&](const CallOptions& options) { return (*made)->TearDown(options); }});
  call.steps.push_back({.name = "CleanSubPaths",
                        .timeout = parts.settings.clean_sub_paths,
                        .run = [&](const CallOptions& options) {
                          if (!has_sub_paths) return OkStatus();
                          return CleanSubPaths(parts.host.kernel, parts.host.paths, request.pod,
                                               request.spec, options);
                        }});
  StepRunner runner(*parts.keeper, parts.host.clock, progress,
                    OperationCall(call.facts.key.ToString(), call.facts.fault_domain, progress));
  if (Failure failure = runner.Run(call)) return failure;
  return ReleaseStorage(parts.storage, PodStorageId(call.facts.key), kVolumeUnmount);
}

Failure RunRemovePod(const Parts& parts, const PodUid& pod, PodRecordEnd record,
                     OperationProgress& progress) {
  const std::vector<PodVolumeRecord> volumes = parts.keeper->FindOfPod(pod);
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
       .run =
           [&](const CallOptions& options) {
             return RemovePodDirectories(parts.host.kernel, parts.host.paths, pod,
                                         parts.pod_directory_owner, options);
           }},
      {.name = "RemovePodRecord",
       .run = [&](const CallOptions&) -> Status {
         RETURN_IF_ERROR(parts.keeper->ForgetPod(pod));
         if (record == PodRecordEnd::kKeep) return OkStatus();
         return parts.store.Remove(kPodRecordKind, pod.str(), kPodRecordDurability);
       }},
  };
  StepRunner runner(*parts.keeper, parts.host.clock, progress,
                    OperationCall(pod.str(), "", progress));
  return runner.RunWithoutRecord(kPodRemove, steps);
}

// Source: operation_generator.go@v1.36.2 (GenerateError): '<prefix> for volume "<name>" <suffix>'.
std::string FailureText(const std::string& what, const SpecName& spec,
                        const OperationFailure& failure) {
  const bool making = failure.step == "NewMounter" || failure.step == "NewBlockVolumeMapper";
  return what + "." + failure.step + (making ? " initialization" : "") + " failed for volume \"" +
         spec.str() + "\" : " + failure.error.message();
}

void TellOfFailure(HostEvents& events, const PodUid& pod, const SpecName& spec, bool is_block,
                   const OperationFailure& failure) {
  events.RecordPodEvent(pod, EventType::kWarning, is_block ? kFailedMap : kFailedMount,
                        FailureText(is_block ? "MapVolume" : "MountVolume", spec, failure));
}

// Source: operation_generator.go@v1.36.2 (GenerateMapVolumeFunc).
void TellOfMapping(HostEvents& events, const PodVolumeKey& key, const MountedVolume& volume) {
  const std::string text =
      "MapVolume.MapPodDevice succeeded for volume \"" + key.spec.str() + "\" ";
  const auto parent = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  events.RecordPodEvent(key.pod, EventType::kNormal, kSuccessfulMount,
                        text + "globalMapPath \"" + parent(volume.mapped->node_path) + "\"");
  events.RecordPodEvent(key.pod, EventType::kNormal, kSuccessfulMount,
                        text + "volumeMapPath \"" + parent(volume.host_path) + "\"");
}

FaultDomain DomainOf(const VolumePlugin& plugin, const VolumeSpec& spec) {
  return {plugin.FaultDomain(spec), plugin.FaultDomainName(spec)};
}

OperationExecutor::Operation UnmountOperation(const char* name, const UnmountRequest& request,
                                              const VolumeRecordKeeper& keeper) {
  return {.key = {request.pod, request.spec},
          .name = name,
          .plugin_name = request.plugin_name,
          .pod_display_name = request.pod_display_name,
          .device = request.device,
          .use = request.device.empty() ? DeviceUse::kNone : DeviceUse::kShared,
          .domain = {FaultDomainOf(request, keeper), ""},
          .on_own_filesystem = true,
          .takes_away = true};
}

}  // namespace

PodVolumeOperations::PodVolumeOperations(Scheduler& scheduler, RecordStore& store,
                                         VolumePluginMgr& plugins, VolumeHost& host, Logger& logger,
                                         OperationObserver& observer, DeviceRecordKeeper& devices,
                                         StorageGuard& storage, BootId boot_id,
                                         OperationSettings settings,
                                         PodDirectoryOwner pod_directory_owner,
                                         FaultDomains* fault_domains)
    : parts_{plugins,
             host,
             logger,
             store,
             settings,
             pod_directory_owner,
             devices,
             storage,
             std::make_shared<VolumeRecordKeeper>(store, scheduler.clock(), logger, observer,
                                                  std::move(boot_id)),
             std::make_shared<DeviceHolds>()},
      fault_domains_(fault_domains),
      executor_(scheduler, logger, observer, fault_domains, settings.lanes) {}

PodVolumeOperations::~PodVolumeOperations() = default;

void PodVolumeOperations::Restore(const std::vector<PodVolumeRecord>& volumes,
                                  const std::vector<DeviceRecord>& devices) {
  for (const PodVolumeRecord& record : volumes) {
    parts_.keeper->Restore(record);
    if (auto had = StorageOf(record)) parts_.storage.Expect(record.boot_id, *std::move(had));
  }
  for (const DeviceRecord& record : devices) {
    parts_.devices.Restore(record);
    if (auto had = StorageOf(record)) parts_.storage.Expect(record.boot_id, *std::move(had));
  }
}

OperationExecutor::Operation PodVolumeOperations::MountOperation(
    const MountRequest& request) const {
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(request.spec);
  return {.key = KeyOf(request),
          .name = kVolumeMount,
          .plugin_name = plugin.ok() ? (*plugin)->GetPluginName() : std::string(),
          .pod_display_name = DisplayName(*request.pod),
          .device = request.device(),
          .use = request.has_device ? DeviceUse::kExclusive : DeviceUse::kNone,
          .domain = plugin.ok() ? DomainOf(**plugin, request.spec) : FaultDomain(),
          .on_own_filesystem = true};
}

StartResult PodVolumeOperations::MountVolume(
    MountRequest request, std::function<void(OperationOutcome<MountedVolume>)> done) {
  const PodVolumeKey key = KeyOf(request);
  OperationExecutor::Operation operation = MountOperation(request);
  auto result = std::make_shared<MountedVolume>();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), result](OperationProgress& progress) {
        return RunMount(parts, request, *result, progress);
      },
      [&events = parts_.host.events, key, result, done = std::move(done)](const Failure& failure) {
        if (failure) TellOfFailure(events, key.pod, key.spec, false, *failure);
        done(OutcomeOf(failure, *result));
      });
}

std::vector<FaultDomains::KnownMount> PodVolumeOperations::MountsAround(const PodUid& pod) const {
  if (fault_domains_ == nullptr) return {};
  return fault_domains_->MountsAround(parts_.host.paths.GetPodDir(pod).Display());
}

SafePath PodVolumeOperations::PlaceOf(const PodVolumeKey& key,
                                      const std::string& plugin_name) const {
  return parts_.host.paths.GetPodVolumeDir(key.pod, plugin_name, key.spec);
}

std::vector<StartResult> PodVolumeOperations::MountVolumes(std::vector<MountRequest> requests,
                                                           GroupDone<MountedVolume> done) {
  std::vector<StartResult> started(requests.size(), StartResult::kPending);
  auto group = std::make_shared<std::vector<MountRequest>>();
  auto results = std::make_shared<std::vector<MountedVolume>>();
  std::vector<size_t> numbers;  // of the group's requests
  std::vector<OperationExecutor::Member> members;
  const auto around = MountsAround(requests.front().pod->uid());
  for (size_t number = 0; number < requests.size(); ++number) {
    MountRequest& request = requests[number];
    const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(request.spec);
    if (!plugin.ok() || !CanBeGrouped(request, **plugin) ||
        IsCovered(parts_.host.paths, KeyOf(request),
                  PlaceOf(KeyOf(request), (*plugin)->GetPluginName()), around)) {
      started[number] = MountVolume(std::move(request),
                                    [number, done](const OperationOutcome<MountedVolume>& outcome) {
                                      done(number, outcome);
                                    });
      continue;
    }
    const size_t place = numbers.size();
    numbers.push_back(number);
    members.push_back(
        {MountOperation(request), [&events = parts_.host.events, key = KeyOf(request), place,
                                   number, results, done](const Failure& failure) {
           if (failure) TellOfFailure(events, key.pod, key.spec, false, *failure);
           done(number, OutcomeOf(failure, std::move((*results)[place])));
         }});
    group->push_back(std::move(request));
  }
  if (group->empty()) return started;
  results->resize(group->size());
  const std::vector<StartResult> of_group = executor_.StartGroup(
      std::move(members), [parts = parts_, group, results](const std::vector<size_t>& which,
                                                           OperationProgress& progress) {
        std::vector<const MountRequest*> mounts;
        std::vector<MountedVolume*> mounted;
        for (const size_t place : which) {
          mounts.push_back(&(*group)[place]);
          mounted.push_back(&(*results)[place]);
        }
        return RunMountGroup(parts.ForGroups(), mounts, mounted, progress, [&](size_t number) {
          return RunMount(parts, *mounts[number], *mounted[number], progress);
        });
      });
  for (size_t place = 0; place < numbers.size(); ++place) {
    started[numbers[place]] = of_group[place];
  }
  return started;
}

std::vector<StartResult> PodVolumeOperations::UnmountVolumes(std::vector<UnmountRequest> requests,
                                                             GroupDone<Unit> done) {
  std::vector<StartResult> started(requests.size(), StartResult::kPending);
  auto group = std::make_shared<std::vector<UnmountRequest>>();
  std::vector<size_t> numbers;  // of the group's requests
  std::vector<OperationExecutor::Member> members;
  const auto around = MountsAround(requests.front().pod);
  for (size_t number = 0; number < requests.size(); ++number) {
    UnmountRequest& request = requests[number];
    const PodVolumeKey key{request.pod, request.spec};
    if (!CanBeGrouped(request, *parts_.keeper) ||
        IsCovered(parts_.host.paths, key, PlaceOf(key, parts_.keeper->Find(key)->plugin_name),
                  around)) {
      started[number] = UnmountVolume(
          std::move(request),
          [number, done](const OperationOutcome<Unit>& outcome) { done(number, outcome); });
      continue;
    }
    numbers.push_back(number);
    members.push_back(
        {UnmountOperation(kVolumeUnmount, request, *parts_.keeper),
         [number, done](const Failure& failure) { done(number, OutcomeOf(failure, Unit())); }});
    group->push_back(std::move(request));
  }
  if (group->empty()) return started;
  const std::vector<StartResult> of_group = executor_.StartGroup(
      std::move(members),
      [parts = parts_, group](const std::vector<size_t>& which, OperationProgress& progress) {
        std::vector<const UnmountRequest*> unmounts;
        for (const size_t place : which) unmounts.push_back(&(*group)[place]);
        return RunUnmountGroup(parts.ForGroups(), unmounts, progress, [&](size_t number) {
          return RunUnmount(parts, *unmounts[number], progress);
        });
      });
  for (size_t place = 0; place < numbers.size(); ++place) {
    started[numbers[place]] = of_group[place];
  }
  return started;
}

StartResult PodVolumeOperations::UnmountVolume(UnmountRequest request,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  return executor_.Start(
      UnmountOperation(kVolumeUnmount, request, *parts_.keeper),
      [parts = parts_, request](OperationProgress& progress) {
        return RunUnmount(parts, request, progress);
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

StartResult PodVolumeOperations::MapVolume(
    MountRequest request, std::function<void(OperationOutcome<MountedVolume>)> done) {
  const PodVolumeKey key = KeyOf(request);
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(request.spec);
  OperationExecutor::Operation operation{
      .key = key,
      .name = kMapVolumeOperation,
      .plugin_name = plugin.ok() ? (*plugin)->GetPluginName() : std::string(),
      .pod_display_name = DisplayName(*request.pod),
      .device = request.device(),
      .use = DeviceUse::kExclusive,
      .domain = plugin.ok() ? DomainOf(**plugin, request.spec) : FaultDomain()};
  auto result = std::make_shared<MountedVolume>();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), result](OperationProgress& progress) {
        return RunMapVolume(parts.ForMapping(), request, *result, progress);
      },
      [&events = parts_.host.events, key, result, done = std::move(done)](const Failure& failure) {
        if (failure) {
          TellOfFailure(events, key.pod, key.spec, true, *failure);
        } else {
          TellOfMapping(events, key, *result);
        }
        done(OutcomeOf(failure, *result));
      });
}

StartResult PodVolumeOperations::UnmapVolume(UnmountRequest request,
                                             std::function<void(OperationOutcome<Unit>)> done) {
  return executor_.Start(
      UnmountOperation(kUnmapVolumeOperation, request, *parts_.keeper),
      [parts = parts_, request](OperationProgress& progress) {
        return RunUnmapVolume(parts.ForMapping(), request, progress);
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

StartResult PodVolumeOperations::RemovePod(PodUid pod, std::string pod_display_name,
                                           PodRecordEnd record,
                                           std::function<void(OperationOutcome<Unit>)> done) {
  OperationExecutor::Operation operation{.key = {pod, SpecName()},
                                         .name = kPodRemove,
                                         .plugin_name = "",
                                         .pod_display_name = std::move(pod_display_name),
                                         .on_own_filesystem = true};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, pod, record](OperationProgress& progress) {
        return RunRemovePod(parts, pod, record, progress);
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

StartResult PodVolumeOperations::MountDevice(
    MountDeviceRequest request, std::function<void(OperationOutcome<MountedDevice>)> done) {
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(request.spec);
  const bool is_block = IsBlockVolume(request.spec);
  OperationExecutor::Operation operation{
      .key = OperationKey(request.device),
      .name = is_block ? kMapDeviceOperation : kMountDeviceOperation,
      .plugin_name = plugin.ok() ? (*plugin)->GetPluginName() : std::string(),
      .pod_display_name = "",
      .device = request.device,
      .use = DeviceUse::kExclusive,
      // The device of a volume that was attached has yet to appear, which takes no worker.
      .domain =
          plugin.ok() && !request.attachable ? DomainOf(**plugin, request.spec) : FaultDomain()};
  auto result = std::make_shared<MountedDevice>();
  const std::vector<PodUid> pods = request.pods;
  const SpecName spec = request.spec.name();
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request), result](OperationProgress& progress) {
        return RunMountDevice(parts.ForDevices(), request, *result, progress);
      },
      [&events = parts_.host.events, pods, spec, is_block, result,
       done = std::move(done)](const Failure& failure) {
        for (const PodUid& pod : pods) {
          if (!failure) break;
          TellOfFailure(events, pod, spec, is_block, *failure);
        }
        done(OutcomeOf(failure, *result));
      });
}

StartResult PodVolumeOperations::UnmountDevice(UnmountDeviceRequest request,
                                               std::function<void(OperationOutcome<Unit>)> done) {
  OperationExecutor::Operation operation{
      .key = OperationKey(request.device),
      .name = request.is_block ? kUnmapDeviceOperation : kUnmountDeviceOperation,
      .plugin_name = request.plugin_name,
      .pod_display_name = "",
      .device = request.device,
      .use = DeviceUse::kExclusive,
      .domain = {FaultDomainOf(request, parts_.devices), ""},
      .takes_away = true};
  return executor_.Start(
      std::move(operation),
      [parts = parts_, request = std::move(request)](OperationProgress& progress) {
        return RunUnmountDevice(parts.ForDevices(), request, progress);
      },
      [done = std::move(done)](const Failure& failure) { done(OutcomeOf(failure, Unit())); });
}

bool PodVolumeOperations::IsPending(const OperationKey& key) const {
  return executor_.IsPending(key);
}

std::optional<TimePoint> PodVolumeOperations::NextTry(const OperationKey& key) const {
  return executor_.NextTry(key);
}

void PodVolumeOperations::ResetBackoff(const OperationKey& key) { executor_.ResetBackoff(key); }

std::vector<RunningOperation> PodVolumeOperations::Running() const { return executor_.Running(); }

std::optional<RunningOperation> PodVolumeOperations::FindRunning(const OperationKey& key) const {
  return executor_.FindRunning(key);
}

std::optional<PodVolumeRecord> PodVolumeOperations::FindRecord(const PodVolumeKey& key) const {
  return parts_.keeper->Find(key);
}

}  // namespace volumed
