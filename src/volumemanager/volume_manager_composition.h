// VolumeManager::Composition: the parts of the manager, and what they tell one another. Only the
// manager's own source files include this header: volume_manager.cc has what others call,
// volume_manager_composition.cc puts the parts together, volume_manager_start.cc takes over what
// the last agent left, until absence means something.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/work_in_steps.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/claims/claim_contents.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/known_objects.h"
#include "volumemanager/claims/object_commands.h"
#include "volumemanager/claims/pods_with_claims.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/claims/resting_storage.h"
#include "volumemanager/claims/storage_expander.h"
#include "volumemanager/claims/volume_expander.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/device_reconciler.h"
#include "volumemanager/lost_mounts.h"
#include "volumemanager/node_events.h"
#include "volumemanager/pod_commands.h"
#include "volumemanager/pod_deletion_answers.h"
#include "volumemanager/pod_lifecycle.h"
#include "volumemanager/pod_observers.h"
#include "volumemanager/pod_replacements.h"
#include "volumemanager/pod_tombstones.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/records_loader.h"
#include "volumemanager/views/pod_queries.h"
#include "volumemanager/views/pod_views.h"
#include "volumemanager/views/storage_views.h"
#include "volumemanager/volume_manager.h"
#include "volumemanager/volume_manager_settings.h"
#include "volumemanager/watch/consumers.h"

namespace volumed {

struct VolumeManager::Composition {
  Composition(VolumeManagerParts the_parts, const BootId& boot_id,
              const VolumeManagerSettings& settings, VolumeManagerHooks the_hooks);
  ~Composition();

  // ---- what the parts tell one another (volume_manager_composition.cc)
  void Listen();
  VolumeStats::Hooks StatsHooks();
  ServerHealth::Hooks HealthHooks();
  VolumeExpander::Hooks ExpanderHooks();
  KnownObjects::Hooks KnownObjectsHooks();
  Claims::Hooks ClaimsHooks();
  bool DeviceLeaves(const PersistentVolume& volume) const;
  DeviceReconciler::Hooks DeviceHooks();
  Reconciler::Hooks ReconcilerHooks();
  // A volume of a pod was set up: it is measured, and its server is looked at, from now on.
  void VolumeSetUp(const PodVolumeKey& key);
  VolumeStats::Writer WriterOf(const PodVolumeKey& key) const;
  void TrackServer(const PodVolumeKey& key, const VolumeSpec& spec, const PodPtr& pod);
  // A server fell silent, or answers again.
  void ServerChanged(const ServerState& server, const std::set<PodVolumeKey>& volumes);
  // The catalog has changed, in the task of the update. Before the records are loaded only the
  // storage that volumes name is noted, and volumes that are known by name.
  void CatalogChanged(const std::vector<ObjectChange>& changes);
  // What was decided about a claim, or is on record of the object's deletion, has changed.
  void ObjectChanged(const ObjectKey& object);
  // The back-offs of what depends on a volume, claim or class are forgotten.
  void StorageChanged(const ObjectChange& change);
  // What a VolumeAttachment says of a device of this node has changed: the device is looked at at
  // once. Nothing is taken from the node because of it.
  void AttachmentChanged(const ObjectChange& change);
  // Empty if it is of none that the node may have.
  UniqueVolumeName DeviceOf(const VolumeAttachment& attachment) const;
  // What failed for want of this Secret, or with what it had in it, is tried at once: what no pod
  // shows, for pods' own volumes are tried with their objects.
  void SecretChanged(const ObjectKey& secret);

  // ---- the start (volume_manager_start.cc)
  // Takes over what was loaded, starts the sources, and lets the reconcilers begin; called once, in
  // one task.
  void TakeOver(LoadedState& loaded);
  // Tells the catalog what the sources had.
  void SeedCatalog(const std::map<std::string, SourceMemory>& memories);
  void TellOfCoveredPods(const FoundAtStart& found);
  // Names the first of them; `volumectl records` says how many there are.
  void TellOfUnreadableRecords(const FoundAtStart& found);
  void TellOfUnrecordedMounts(const ReconstructResult& result);
  // If Ready() has become true, looks at all pods and tombstones in steps, and then calls
  // AllAreEvaluated(). If each source has been looked into now, what waited for that goes on. Has
  // no effect otherwise.
  void CheckReady();
  // Every pod was looked at, and every source has still delivered: now what is in no source may go.
  void AllAreEvaluated();

  // What the manager was made with; the agent's parts outlive it.
  const VolumeManagerParts parts;
  const VolumeManagerHooks hooks;

  // What VolumeManager's method of the same name answers; set by TakeOver().
  size_t quarantined_pods = 0;
  // Whether CheckReady() has found readiness since it was last missing; what follows from it may be
  // under way.
  bool was_ready = false;

  // The parts follow. Each holds references to others, also to such as are made after it: it uses
  // them only once all are made.
  Readiness readiness{parts.catalog};
  // Why what waits for the first look into each source has to wait still.
  std::optional<std::string> was_unseen_because;
  PodObservers observers;
  WorkInSteps became_ready{parts.scheduler};  // work to be done after that
  RecordWriter records{parts.scheduler, parts.store};
  PodDeletionAnswers answers{parts.scheduler};
  PodTombstones tombstones{{records, answers, parts.log}};
  Consumers consumers;
  ActualStateOfWorld actual{parts.scheduler.clock()};
  LostMounts lost_mounts{actual, parts.host.paths};
  AdoptedPods adopted;
  KnownObjects known{
      {parts.scheduler, records, parts.log}, parts.host.node.GetNodeName(), KnownObjectsHooks()};
  DeletedObjects deleted{
      {parts.scheduler, records, parts.log},
      [this](const DeletedObjects::Id& object) { object_commands.DeletionChanged(object); }};
  PodReplacements replacements;
  ClaimContents claim_contents{parts.catalog, claims, parts.contents};
  Provisioning provisioning;
  Claims claims;
  ObjectCommands object_commands;
  DesiredStateOfWorld desired{parts.catalog, parts.plugins, parts.host.node, claims};
  PodsWithClaims pods_with_claims{actual, desired};
  RestingStorage resting{
      {parts.catalog, parts.plugins, parts.operations, actual, claims, readiness},
      [this](const std::string& name) { events.RetryStorage(name); }};
  SizeLimits size_limits;
  VolumeStats stats;
  ServerHealth health;
  VolumeExpander expander;
  StorageExpander storage_expander{{parts.scheduler, parts.catalog, readiness, parts.plugins,
                                    actual, claims, provisioning, parts.operations,
                                    parts.host.events}};
  DeviceReconciler devices{
      {parts.scheduler, readiness, desired, actual, parts.operations, parts.plugins},
      DeviceHooks()};
  Reconciler reconciler{{parts.scheduler, readiness, desired, actual, consumers, parts.operations,
                         records, devices, parts.host.paths, parts.log},
                        ReconcilerHooks()};
  PodLifecycle lifecycle;
  NodeEvents events;
  PodViews views;
  PodQueries pods{
      {parts.catalog, readiness, desired, actual, tombstones, adopted, replacements, views}};
  StorageViews storage{{parts.catalog, parts.plugins, claims, object_commands, provisioning,
                        parts.operations, actual, desired, storage_expander,
                        parts.scheduler.clock()}};
  PodCommands pod_commands{{parts.scheduler, parts.catalog, readiness, observers, answers,
                            tombstones, desired, actual, adopted, consumers, parts.operations,
                            claims, expander, reconciler, lifecycle}};
  RecordsLoader loader;
  // This member is the last, so it is destroyed first: tasks that come later find the object gone.
  AliveGuard alive;
};

}  // namespace volumed
