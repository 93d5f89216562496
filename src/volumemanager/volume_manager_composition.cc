#include "volumemanager/volume_manager_composition.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "base/random.h"
#include "kube/about_object.h"
#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "volumemanager/claims/reclaim_check.h"

namespace volumed {
namespace {

// Reasons of events that kubelet does not have.
constexpr const char* kVolumeStuck = "VolumeStuck";
constexpr const char* kVolumeAnswers = "VolumeAnswers";

}  // namespace

VolumeManager::Composition::Composition(VolumeManagerParts the_parts, const BootId& boot_id,
                                        const VolumeManagerSettings& settings,
                                        VolumeManagerHooks the_hooks)
    : parts(the_parts),
      hooks(std::move(the_hooks)),
      consumers({parts.scheduler, records, parts.consumer_watch, parts.log}, boot_id,
                [this](const PodUid& uid) { reconciler.MarkDirty(uid); }),
      replacements({parts.scheduler, parts.catalog, readiness, parts.log}, settings.replace_settle),
      provisioning(
          {{parts.scheduler, records, parts.log},
           parts.catalog,
           parts.plugins,
           parts.operations,
           parts.host.events,
           parts.host.node,
           claim_contents},
          {[this] { claims.MarkDirty(); }, [this](TimePoint when) { claims.WakeAt(when); }}),
      claims({parts.scheduler, parts.catalog, readiness, parts.host.node, parts.host.events,
              records, parts.operations, known, deleted, provisioning, parts.log,
              settings.decide_claims_period},
             ClaimsHooks()),
      object_commands(
          {parts.scheduler, parts.catalog, readiness, known, deleted, provisioning, claims},
          {[this](const ObjectKey& object) { ObjectChanged(object); }, hooks.remove_object},
          settings.removal_deletes),
      size_limits(
          parts.host.events, parts.scheduler.clock(), settings.size_limit_action,
          [this](const PodUid& uid, const std::string& message) { lifecycle.Evict(uid, message); }),
      stats({parts.scheduler, parts.plugins, parts.host.paths, parts.log, &parts.kernel},
            settings.stats, StatsHooks()),
      health(parts.scheduler, parts.kernel, parts.log, settings.health, HealthHooks()),
      expander({parts.scheduler, parts.catalog, parts.plugins, desired, actual, claims,
                parts.operations, parts.host.events, parts.host.paths},
               ExpanderHooks()),
      lifecycle({parts.scheduler, parts.catalog, parts.host, parts.log, readiness, observers,
                 records, answers, tombstones, desired, actual, consumers, adopted, known,
                 replacements, pods_with_claims, claims, devices, reconciler},
                hooks.orphan_found),
      events({parts.scheduler, parts.plugins, parts.operations, parts.host, parts.log, readiness,
              observers, desired, actual, claims, provisioning, expander, storage_expander, devices,
              reconciler, lifecycle, stats, lost_mounts},
             [this](const PodVolumeKey& key, const WantedVolume& wanted) {
               const std::optional<ProblemView> gone = views.VanishedDevice(key, wanted);
               return gone ? std::optional(gone->message) : std::nullopt;
             }),
      views({parts.scheduler.clock(), parts.catalog, desired, actual, consumers, reconciler,
             devices, parts.operations, stats, health, size_limits, expander, storage_expander,
             object_commands, hooks.is_stuck, events.vanished_devices(),
             events.storage_troubles()}),
      loader({parts.scheduler, parts.store, parts.kernel, parts.plugins, parts.host.paths,
              parts.log, readiness},
             boot_id,
             {.all_directories = settings.adopt_root,
              .pod_logs_directory = settings.pod_logs_directory,
              .call_timeout = settings.find_deadline},
             {hooks.secrets_on_record, settings.other_kinds, hooks.restore_other,
              hooks.restore_operations, [this](LoadedState& loaded) { TakeOver(loaded); }}) {
  devices.SetVerifyAttachedPeriod(settings.verify_attached_period);
  Listen();
}

VolumeManager::Composition::~Composition() { parts.catalog.IdentifyBy(nullptr); }

void VolumeManager::Composition::Listen() {
  desired.SetObjectNamed([this](const ObjectKey& object, bool is_named) {
    const bool is_read_by_name =
        object.kind == ObjectKind::kSecret || object.kind == ObjectKind::kConfigMap;
    if (is_read_by_name && hooks.object_named) hooks.object_named(object, is_named);
  });
  parts.catalog.AddListener(
      alive.Guarded([this](const std::vector<ObjectChange>& changes) { CatalogChanged(changes); }));
}

// ---- what is measured and looked at -------------------------------------------------------------

VolumeStats::Hooks VolumeManager::Composition::StatsHooks() {
  VolumeStats::Hooks stats_hooks;
  stats_hooks.measured = [this](const PodVolumeKey& key, const VolumeSpec& spec,
                                const Metrics& metrics) {
    size_limits.Measured(key, spec, metrics);
    if (hooks.volume_measured) hooks.volume_measured(key, metrics);
  };
  stats_hooks.may_ask = hooks.may_measure;
  stats_hooks.abnormal = [this](const PodVolumeKey& key, const Metrics& metrics) {
    events.VolumeAbnormal(key, metrics.message);
  };
  return stats_hooks;
}

VolumeExpander::Hooks VolumeManager::Composition::ExpanderHooks() {
  return {.ended =
              [this](const UniqueVolumeName& volume) {
                devices.MarkDirty(volume);
                devices.TellUsers(volume);
              },
          .grown =
              [this](const UniqueVolumeName& volume) {
                for (const PodVolumeKey& user : actual.UsersOf(volume)) stats.MeasureNow(user);
              }};
}

ServerHealth::Hooks VolumeManager::Composition::HealthHooks() {
  return {[this](const ServerState& server, const std::set<PodVolumeKey>& volumes) {
    ServerChanged(server, volumes);
  }};
}

void VolumeManager::Composition::VolumeSetUp(const PodVolumeKey& key) {
  lost_mounts.SetUp(key);
  const WantedPod* pod = desired.Find(key.pod);
  const WantedVolume* volume = desired.Find(key);
  if (volume == nullptr) return;
  stats.Track(key, volume->spec, pod->pod, WriterOf(key));
  TrackServer(key, volume->spec, pod->pod);
  if (!volume->unique_name.empty()) expander.MarkDirty(volume->unique_name);
}

// The agent writes a volume that pods may only read and that the agent owns.
VolumeStats::Writer VolumeManager::Composition::WriterOf(const PodVolumeKey& key) const {
  const ActualVolume* volume = actual.FindVolume(key);
  const bool is_content = volume != nullptr && volume->mounted &&
                          volume->mounted->attributes.read_only &&
                          volume->mounted->attributes.managed;
  return is_content ? VolumeStats::Writer::kAgent : VolumeStats::Writer::kPod;
}

void VolumeManager::Composition::TrackServer(const PodVolumeKey& key, const VolumeSpec& spec,
                                             const PodPtr& pod) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  if (!plugin.ok() || IsBlockVolume(spec)) return;
  const std::string name = (*plugin)->FaultDomainName(spec);
  if (name.empty()) return;
  const Result<std::unique_ptr<Mounter>> mounter = (*plugin)->NewMounter(
      spec, PodVolumeTarget(parts.host.paths, pod, (*plugin)->GetPluginName(), spec.name()));
  if (!mounter.ok()) return;
  health.Track(key, (*plugin)->FaultDomain(spec), name, (*mounter)->GetSafePath());
}

void VolumeManager::Composition::ServerChanged(const ServerState& server,
                                               const std::set<PodVolumeKey>& volumes) {
  for (const PodVolumeKey& key : volumes) {
    const std::string volume = "volume \"" + key.spec.str() + "\": ";
    if (server.silent) {
      parts.host.events.RecordPodEvent(key.pod, EventType::kWarning, kVolumeStuck,
                                       volume + server.Text());
    } else {
      parts.host.events.RecordPodEvent(key.pod, EventType::kNormal, kVolumeAnswers,
                                       volume + server.name + " answers again");
      // What failed for lack of an answer need not wait any longer. It does not matter if the
      // volume is gone by now.
      (void)pod_commands.RetryVolume(key).ok();
    }
    observers.Tell(key.pod);
  }
}

// ---- hooks --------------------------------------------------------------------------------------

Reconciler::Hooks VolumeManager::Composition::ReconcilerHooks() {
  Reconciler::Hooks its;
  its.changed = [this](const PodUid& uid) { observers.Tell(uid); };
  its.set_up = [this](const PodVolumeKey& key) { VolumeSetUp(key); };
  its.gone = [this](const PodVolumeKey& key) {
    stats.Forget(key);
    health.Forget(key);
    size_limits.Forget(key);
    lifecycle.MarkClaimsDirty(key.pod);
    storage_expander.MarkDirty(key.spec.str());
  };
  its.leaves = [this](const PodUid& uid) { lost_mounts.TakeUp(uid); };
  its.removed = [this](const PodUid& uid, const ActualPod& last) {
    lifecycle.PodRemoved(uid, last);
  };
  its.command_recorded = [this](const PodUid& uid, const Status& written) {
    answers.Answer(uid, written);
  };
  return its;
}

DeviceReconciler::Hooks VolumeManager::Composition::DeviceHooks() {
  DeviceReconciler::Hooks its;
  its.changed = [this](const PodUid& uid) { reconciler.MarkDirty(uid); };
  its.gone = [this](const UniqueVolumeName& device, const SpecName& volume) {
    expander.Forget(device);
    resting.DeviceRests(device, volume);
    storage_expander.MarkDirty(volume.str());
    claims.MarkDirty();
  };
  // Before a pod's claim is decided nothing else says that the pod wants the device.
  its.may_be_wanted = [this](const SpecName& volume) {
    const std::optional<ObjectKey> claim = claims.UndecidedClaimOf(volume.str());
    return claim && desired.IsNamed(*claim);
  };
  // It waits no more, and what keeps it is to be seen.
  its.stays = [this](const UniqueVolumeName&) { claims.MarkDirty(); };
  its.set_sizes = [this](const WantedVolume& wanted, MountDeviceRequest& request) {
    const VolumeExpander::Sizes sizes = expander.SizesForMount(wanted);
    request.size = sizes.now;
    request.grow_to = sizes.grow_to;
  };
  its.mounted = [this](const UniqueVolumeName& device) { expander.MarkDirty(device); };
  its.event = [this](const PodUid& uid, const std::string& reason, const std::string& message) {
    parts.host.events.RecordPodEvent(uid, EventType::kWarning, reason, message);
  };
  return its;
}

Claims::Hooks VolumeManager::Composition::ClaimsHooks() {
  Claims::Hooks its;
  its.pods = [this] { return pods_with_claims.Pods(); };
  its.has_volume = [this](const PodVolumeKey& key) {
    const ActualVolume* volume = actual.FindVolume(key);
    return volume != nullptr && !volume->unique_name.empty();
  };
  its.changed = [this](const std::set<ObjectKey>& changed) {
    for (const ObjectKey& claim : changed) ObjectChanged(claim);
  };
  its.resize_recorded = [this](const PersistentVolume& volume) {
    const UniqueVolumeName name = resting.UniqueNameOf(volume);
    if (!name.empty()) expander.MarkDirty(name);
    storage_expander.MarkDirty(volume.metadata.name);
  };
  its.volume_gone = [this](const PersistentVolume& volume) { resting.ForgetVolume(volume); };
  its.has_pod = [this](const PodUid& uid) { return actual.FindPod(uid) != nullptr; };
  its.why_not_reclaimed = [this](const PersistentVolume& volume, ReclaimAction action) {
    return WhyNotReclaimed(parts.plugins, volume, action);
  };
  its.device_leaves = [this](const PersistentVolume& volume) { return DeviceLeaves(volume); };
  its.decided = [this] {
    object_commands.ForgetUnlisted();
    storage_expander.ClaimsDecided();
    devices.ClaimsAreDecided();
  };
  its.may_go = [this](const DeletedObjects::Id& object) { object_commands.LetGo(object); };
  its.storage_gone = [this](const DeletedObjects::Id& volume) {
    object_commands.EndWithStorage(volume);
  };
  return its;
}

// One that could not be taken away, or that has a pod, is not waited for: who reclaims finds it
// there, and says so.
bool VolumeManager::Composition::DeviceLeaves(const PersistentVolume& volume) const {
  const UniqueVolumeName name = resting.UniqueNameOf(volume);
  const ActualDevice* const device = name.empty() ? nullptr : actual.devices().Find(name);
  if (device == nullptr || !MayBePresent(*device) || !device->quarantine_reason.empty()) {
    return false;
  }
  const bool has_pods = !actual.UsersOf(name).empty() || !desired.UsersOf(name).empty();
  const bool is_in_vain =
      device->failure && (device->failure->last.operation == kDetachOperation ||
                          device->failure->last.operation == kUnmountDeviceOperation);
  return !has_pods && !is_in_vain;
}

KnownObjects::Hooks VolumeManager::Composition::KnownObjectsHooks() {
  KnownObjects::Hooks its;
  its.new_uid = [this](const ObjectKey& object) {
    std::string uid = adopted.TakeUid(object);
    if (!uid.empty()) return uid;
    return hooks.new_uid ? hooks.new_uid(object) : NewUuid();
  };
  its.settled = [this] {
    claims.MarkDirty();
    if (hooks.object_changed) hooks.object_changed(std::nullopt);
  };
  its.find_on_node = [this](const PodUid& uid) { return FindPodOnNode(actual, uid); };
  return its;
}

void VolumeManager::Composition::ObjectChanged(const ObjectKey& object) {
  events.ObjectChanged(object);
  if (hooks.object_changed) hooks.object_changed(object);
}

// ---- changes of the catalog ---------------------------------------------------------------------

void VolumeManager::Composition::CatalogChanged(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    const bool is_known = change.what != ObjectChange::What::kUnknown;
    // What cannot be read keeps the storage that it named.
    if (change.key.kind == ObjectKind::kPersistentVolume && is_known) {
      claims.NameStorage(change.key.name);
    }
  }
  if (readiness.loaded()) {
    known.Follow(parts.catalog, changes);
    constexpr int kFewPods = 3;  // of many changes the catalog tells a few at a time
    const bool with_many =
        std::count_if(changes.begin(), changes.end(), [](const ObjectChange& change) {
          return change.key.kind == ObjectKind::kPod;
        }) > kFewPods;
    for (const ObjectChange& change : changes) {
      if (change.key.kind == ObjectKind::kPod) {
        lifecycle.PodSourceChanged(change, with_many);
        continue;
      }
      // An object that is unknown, or that has only moved, changes nothing.
      if (change.what == ObjectChange::What::kUnknown ||
          change.what == ObjectChange::What::kMoved) {
        continue;
      }
      events.ObjectChanged(change.key);
      // An object that the last agent knew, and that the first list lacks, is added as Missing.
      const bool may_be_missing =
          change.what == ObjectChange::What::kMissing || change.what == ObjectChange::What::kAdded;
      if (may_be_missing) object_commands.DeleteIfRemoved(change.key);
      StorageChanged(change);
    }
  }
  resting.NoteUnknownVolumes();
  CheckReady();
}

namespace {

// Of a PersistentVolume.
bool IsRetainedFromNowOn(const ObjectChange& change) {
  if (change.before == nullptr || change.after == nullptr) return false;
  const auto action = [](const Object& object) {
    return ReclaimActionOf(std::get<PersistentVolume>(object).spec.reclaim_policy);
  };
  return action(*change.after) == ReclaimAction::kNone &&
         action(*change.before) != ReclaimAction::kNone;
}

}  // namespace

void VolumeManager::Composition::StorageChanged(const ObjectChange& change) {
  switch (change.key.kind) {
    case ObjectKind::kPersistentVolume:
      claims.ResetBackoff(change.key.name);
      if (change.what == ObjectChange::What::kRemoved && change.before != nullptr &&
          claims.FindVolume(change.key.name) == nullptr) {
        resting.ForgetVolume(std::get<PersistentVolume>(*change.before));
      }
      if (IsRetainedFromNowOn(change)) resting.EndReclaim(change.key.name);
      return;
    case ObjectKind::kPersistentVolumeClaim:
      provisioning.ResetBackoffOf(ClaimKey{change.key.name_space, change.key.name});
      claims.MarkDirty();
      return;
    case ObjectKind::kStorageClass:
      provisioning.ResetBackoffOf(change.key.name);
      claims.MarkDirty();
      return;
    case ObjectKind::kPod:
    case ObjectKind::kConfigMap:
    case ObjectKind::kNode:
    case ObjectKind::kCsiDriver:
    case ObjectKind::kCsiNode:
      return;
    case ObjectKind::kSecret:
      return SecretChanged(change.key);
    case ObjectKind::kVolumeAttachment:
      return AttachmentChanged(change);
    case ObjectKind::kVolumeSnapshot:
    case ObjectKind::kVolumeSnapshotContent:
      // Volumes are made of it, perhaps.
      provisioning.ResetBackoff();
      claims.MarkDirty();
      return;
    case ObjectKind::kVolumeSnapshotClass:
      return;
  }
}

void VolumeManager::Composition::SecretChanged(const ObjectKey& secret) {
  if (provisioning.ResetBackoffWith(secret)) claims.MarkDirty();
  claims.RetryReclaimsWith(secret);
  storage_expander.RetryWith(secret);
  for (const auto& [name, device] : actual.devices().all()) {
    if (!device.failure || !IsAboutObject(device.failure->last.error, secret)) continue;
    parts.operations.ResetBackoff(OperationKey(name));
    devices.MarkDirty(name);
  }
}

UniqueVolumeName VolumeManager::Composition::DeviceOf(const VolumeAttachment& attachment) const {
  if (attachment.inline_volume_spec) {
    // What stands in for a pod's inline volume is known by its source alone.
    PersistentVolume stand_in;
    stand_in.spec.source = attachment.inline_volume_spec->csi;
    return resting.UniqueNameOf(stand_in);
  }
  const std::string& name = attachment.persistent_volume_name;
  const PersistentVolumePtr volume = claims.FindVolumeObject(name);
  if (volume != nullptr) return resting.UniqueNameOf(*volume);
  // A volume that nobody knows any more may still have to leave the node.
  for (const auto& [device, there] : actual.devices().all()) {
    if (there.attachable && there.spec.str() == name) return device;
  }
  return {};
}

void VolumeManager::Composition::AttachmentChanged(const ObjectChange& change) {
  const ObjectPtr& object = change.after != nullptr ? change.after : change.before;
  if (object == nullptr) return;
  const auto& attachment = std::get<VolumeAttachment>(*object);
  if (attachment.node_name != parts.host.node.GetNodeName().str()) return;
  const UniqueVolumeName device = DeviceOf(attachment);
  if (device.empty()) return;
  parts.operations.ResetBackoff(OperationKey(device));
  devices.MarkDirty(device);
}

}  // namespace volumed
