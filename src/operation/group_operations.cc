#include "operation/group_operations.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "kube/target_uid.h"
#include "operation/call_options.h"
#include "operation/group_run.h"
#include "operation/hand_out.h"
#include "operation/mount_request.h"
#include "operation/operation_parts.h"
#include "operation/pod_directories.h"
#include "operation/pod_volume_facts.h"
#include "operation/published_content.h"
#include "operation/step_runner.h"
#include "operation/storage_steps.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

bool LiesAtOrBelow(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

// A volume that is to be made.
struct PlannedMount {
  std::string plugin_name = {};
  std::unique_ptr<Mounter> mounter = nullptr;
  std::unique_ptr<HandOut> hand_out = nullptr;  // if nothing is made
  std::string mac = {};                         // of what its effects publish
  std::string fs_type = {};                     // that is mounted for it
};

// Either what is to be done, or why not; neither if the plugin has no effect for it.
struct MountPlan {
  std::optional<GroupVolume> volume;
  PlannedMount planned;
  Failure failure;
  // Nothing is to be done: the volume is as `volume` would make it, and this is on record of it.
  std::optional<PublishedContent> in_place;
  bool content_unknown = false;  // of what is in place
  bool left_out = false;         // it can only be tried by itself
};

OperationFailure MountFailure(const char* step, const Error& error) {
  return OperationFailure{kVolumeMount, step, error};
}

// Sets the effects of a plan that has its mounter.
Failure PlanEffects(const OperationParts& parts, const MountRequest& request,
                    const MounterArgs& args, MountPlan& plan) {
  plan.volume.reset();
  Mounter& mounter = *plan.planned.mounter;
  Result<std::optional<EnsureVolume>> effect = mounter.PlanSetUpAt(mounter.GetSafePath(), args);
  if (!effect.ok()) return MountFailure("SetUp", effect.error());
  if (!*effect) return std::nullopt;
  GroupVolume volume;
  std::vector<PrepareSubPath> sub_paths;
  for (const SubPathRequest& wanted : request.sub_paths) {
    Result<PrepareSubPath> sub_path =
        SubPathEffect(parts.host.paths, SubpathOf(request, wanted, mounter));
    if (!sub_path.ok()) {
      return MountFailure("PrepareSubPaths",
                          sub_path.error().With("container " + wanted.container));
    }
    sub_paths.push_back(*std::move(sub_path));
  }
  plan.planned.mac = PublishedMac(parts.host, **effect, sub_paths);
  plan.planned.fs_type = (*effect)->tmpfs ? "tmpfs" : "";
  volume.effects.push_back({"SetUp", **std::move(effect)});
  for (size_t i = 0; i < sub_paths.size(); ++i) {
    volume.effects.push_back({"PrepareSubPaths", std::move(sub_paths[i]), /*changes_volume=*/true,
                              "container " + request.sub_paths[i].container});
  }
  plan.volume = std::move(volume);
  return std::nullopt;
}

// Whether what an agent before this one has made is what would be made now, or all that can be made
// while an object that it is made from is missing. No token is issued to find that out.
bool IsInPlace(const OperationParts& parts, const VolumePlugin& plugin, const MountRequest& request,
               MounterArgs args, MountPlan& plan) {
  if (!request.found_as) return false;
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(request.key());
  if (IsHandedOutStill(request, plugin, record)) {
    plan.in_place = PublishedContent();
    return true;
  }
  if (!MayBeInPlace(request, record, parts.host.clock)) return false;
  args.issue_tokens = false;
  const Failure failure = PlanEffects(parts, request, args, plan);
  const bool is_unknown = failure && failure->error.code() == Code::kNotFound;
  if (!is_unknown && (!plan.volume || plan.planned.mac != record->published.mac)) return false;
  plan.in_place = record->published;
  plan.content_unknown = is_unknown;
  return true;
}

MountPlan PlanMount(const OperationParts& parts, const MountRequest& request,
                    const CallOptions& call) {
  MountPlan plan;
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) {
    plan.failure = MountFailure("FindPluginBySpec", plugin.error());
    return plan;
  }
  Result<std::unique_ptr<Mounter>> made = (*plugin)->NewMounter(request.spec, request.target);
  if (!made.ok()) {
    plan.failure = MountFailure("NewMounter", made.error());
    return plan;
  }
  plan.planned.mounter = *std::move(made);
  const MounterArgs args = ArgsFor(request, call);
  plan.planned.plugin_name = (*plugin)->GetPluginName();
  if (IsInPlace(parts, **plugin, request, args, plan)) return plan;
  if (MayBeHandedOutInGroup(request, **plugin)) {
    plan.planned.hand_out =
        std::make_unique<HandOut>(parts, request, **plugin, *plan.planned.mounter);
    const std::optional<IdentifyStorage> look = plan.planned.hand_out->Look(call);
    plan.left_out = !look;
    if (look) plan.volume.emplace().effects.push_back({kReserveStorage, *look, false});
  } else {
    plan.failure = PlanEffects(parts, request, args, plan);
  }
  if (plan.failure) plan.volume.reset();
  if (plan.volume) {
    plan.volume->call = {FactsOf(request, **plugin), MountEvent(request, *parts.volumes)};
  }
  return plan;
}

// Either what is to be done, or why not; neither if the plugin has no effect for it.
struct UnmountPlan {
  std::optional<GroupVolume> volume = {};
  Failure failure = {};
};

UnmountPlan PlanUnmount(const OperationParts& parts, const UnmountRequest& request) {
  GroupVolume volume{.call = {FactsOf(request, *parts.volumes), VolumeEvent::kTearDown},
                     .effects = {}};
  const std::string& name =
      request.plugin_name.empty() ? volume.call.facts.plugin_name : request.plugin_name;
  const auto failure = [](const char* step, const Error& error) {
    return UnmountPlan{.failure = OperationFailure{kVolumeUnmount, step, error}};
  };
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginForTeardown(name);
  if (!plugin.ok()) return failure("FindPluginByName", plugin.error());
  const auto sub_paths = [&](bool keep) {
    return SubPathsRemoval(parts.host.paths, request.pod, request.spec, keep);
  };
  // The directories come last: on a root that takes no writes they stay, and the mounts still go.
  volume.effects.push_back({"UnmountSubPaths", sub_paths(/*keep=*/true)});
  if (!(*plugin)->HandsOutWhatIsThere()) {
    const auto made = (*plugin)->NewUnmounter(request.spec, request.pod);
    if (!made.ok()) return failure("NewUnmounter", made.error());
    const std::optional<RemoveVolume> effect = (*made)->PlanTearDownAt(
        parts.host.paths.GetPodVolumeDir(request.pod, (*plugin)->GetPluginName(), request.spec));
    if (!effect) return {};
    volume.effects.push_back({"TearDown", *effect});
  }
  volume.effects.push_back({"CleanSubPaths", sub_paths(/*keep=*/false)});
  return {.volume = std::move(volume)};
}

// Of an effect of that volume of the run.
Failure TakeAnswer(const AnyAnswer& answer, size_t volume, const CallOptions& call,
                   PlannedMount& planned, GroupRun& run) {
  if (const auto* looked = std::get_if<StorageIdentity>(&answer)) {
    Failure failure = planned.hand_out->Take(*looked, call);
    run.SetStorage(volume, planned.hand_out->Given());
    return failure;
  }
  const auto* made = std::get_if<EnsuredVolume>(&answer);
  if (made == nullptr) return std::nullopt;
  planned.mounter->SetUpDone(*made);
  const Freshness freshness = planned.mounter->freshness().value_or(Freshness{});
  run.SetPublished(volume, {planned.mac, planned.fs_type, freshness});
  return std::nullopt;
}

void Describe(const KubeletPaths& paths, const MountRequest& request, const PlannedMount& planned,
              MountedVolume& result) {
  DescribeMounted(planned.plugin_name, *planned.mounter, result);
  const auto& [pod, spec] = request.key();
  for (const SubPathRequest& wanted : request.sub_paths) {
    const SafePath at = paths.GetPodVolumeSubpathDir(pod, spec, wanted.container, wanted.index);
    result.sub_paths.push_back({wanted.container, wanted.index, at.Display()});
  }
}

}  // namespace

bool CanBeGrouped(const MountRequest& request, const VolumePlugin& plugin) {
  return !request.has_device && request.unique_name.empty() && !StorageNameOf(request.spec) &&
         plugin.FaultDomain(request.spec).empty();
}

bool CanBeGrouped(const UnmountRequest& request, const PodVolumeRecord& record,
                  const VolumePlugin& plugin) {
  return request.device.empty() && !record.has_device && !record.is_block &&
         record.unique_name.empty() &&
         (record.fault_domain.empty() || plugin.HandsOutWhatIsThere());
}

bool IsCovered(const KubeletPaths& paths, const VolumePlace& volume,
               const std::vector<FaultDomains::KnownMount>& mounts) {
  const std::string pod = volume.directory.Display();
  const std::string place = volume.place.Display();
  const PodVolumeKey& key = volume.key;
  const std::string all_sub_paths = paths.GetPodVolumeSubpathsDir(key.pod).Display();
  return std::any_of(mounts.begin(), mounts.end(), [&](const FaultDomains::KnownMount& mount) {
    const std::string& point = mount.mount_point;
    const bool covers = LiesAtOrBelow(point, pod) && point != place && LiesAtOrBelow(place, point);
    if (covers || point == all_sub_paths) return true;
    return mount.may_hang &&
           (LiesAtOrBelow(point, place) || LiesAtOrBelow(point, pod + "/plugins") ||
            LiesAtOrBelow(point, all_sub_paths + "/" + key.spec.str()));
  });
}

Status CheckNotCovered(const VolumeHost& host, const VolumePlace& volume, const CallOptions& call) {
  const std::string place = volume.place.Display();
  const std::string top = volume.directory.Display();
  ASSIGN_OR_RETURN(const MountListing around,
                   host.kernel.Call(ListMounts{.around = place}, OnOwnFilesystem(call)));
  for (const MountEntry& mount : around.mounts) {
    if (mount.mount_point == place || !LiesAtOrBelow(mount.mount_point, top)) continue;
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "a " + mount.fs_type + " is mounted over " + mount.mount_point + ", and covers what " +
            (IsTargetUid(volume.key.pod) ? "is published" : "the pod has") + " there: unmount it");
  }
  return OkStatus();
}

OperationFailures RunMountGroup(const OperationParts& parts,
                                const std::vector<const MountVolume*>& all,
                                const std::vector<MountedVolume*>& results,
                                OperationProgress& progress) {
  progress.EnterStep("NewMounter");
  const VolumeTarget& target = all.front()->request.target;
  GroupRun run(parts, {kVolumeMount, "SetUp"}, target.directory, progress);
  for (const MakeDirectory& effect : TargetDirectoryEffects(parts.host.paths, target)) {
    run.AddCommon({"MakePodDirectories", effect, /*changes_volume=*/false});
  }
  OperationFailures failures(all.size());
  std::vector<PlannedMount> planned;  // beside the volumes of the run
  std::vector<size_t> alone;
  const CallOptions call = OperationCall("", "", "", progress);
  for (size_t number = 0; number < all.size(); ++number) {
    MountPlan plan = PlanMount(parts, all[number]->request, call);
    if (plan.in_place) {
      Describe(parts.host.paths, all[number]->request, plan.planned, *results[number]);
      results[number]->freshness = plan.in_place->freshness();
      results[number]->content_unknown = plan.content_unknown;
    } else if (plan.volume) {
      plan.volume->number = number;
      run.Add(*std::move(plan.volume));
      planned.push_back(std::move(plan.planned));
    } else if (plan.failure) {
      failures[number] = std::move(plan.failure);
    } else if (plan.left_out) {
      results[number]->left_out = true;
    } else {
      alone.push_back(number);
    }
  }
  run.Run(parts.settings.set_up, [&](size_t i, size_t, const AnyAnswer& answer) {
    return TakeAnswer(answer, i, call, planned[i], run);
  });
  for (size_t i = 0; i < run.volumes().size(); ++i) {
    const GroupVolume& volume = run.volumes()[i];
    failures[volume.number] = volume.failure;
    if (!volume.failure) {
      Describe(parts.host.paths, all[volume.number]->request, planned[i], *results[volume.number]);
    } else if (planned[i].hand_out && planned[i].hand_out->GiveBack(*volume.failure)) {
      failures[volume.number].reset();
      results[volume.number]->left_out = true;
    } else if (run.was_refused()) {
      alone.push_back(volume.number);
    }
  }
  for (const size_t number : alone)
    failures[number] = all[number]->Run(parts, progress, *results[number]);
  return failures;
}

OperationFailures RunUnmountGroup(const OperationParts& parts,
                                  const std::vector<const UnmountVolume*>& all,
                                  OperationProgress& progress) {
  progress.EnterStep("NewUnmounter");
  const PodUid pod = all.front()->request.pod;
  GroupRun run(parts, {kVolumeUnmount, "TearDown"}, parts.host.paths.GetPodDir(pod), progress);
  OperationFailures failures(all.size());
  std::vector<size_t> alone;
  for (size_t number = 0; number < all.size(); ++number) {
    UnmountPlan plan = PlanUnmount(parts, all[number]->request);
    if (plan.failure) {
      failures[number] = std::move(plan.failure);
    } else if (plan.volume) {
      plan.volume->number = number;
      run.Add(*std::move(plan.volume));
    } else {
      alone.push_back(number);
    }
  }
  run.Run(parts.settings.tear_down,
          [](size_t, size_t, const AnyAnswer&) -> Failure { return std::nullopt; });
  for (const GroupVolume& volume : run.volumes()) {
    failures[volume.number] = volume.failure;
    if (run.was_refused()) alone.push_back(volume.number);
    if (volume.failure) continue;
    failures[volume.number] =
        ReleaseStorage(parts.storage, PodStorageId(volume.call.facts.key), kVolumeUnmount);
  }
  Unit none;
  for (const size_t number : alone) failures[number] = all[number]->Run(parts, progress, none);
  return failures;
}

}  // namespace volumed
