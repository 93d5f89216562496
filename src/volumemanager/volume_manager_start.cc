#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "volumemanager/volume_manager_composition.h"

namespace volumed {

void VolumeManager::Composition::TakeOver(LoadedState& loaded) {
  const FoundAtStart& found = loaded.found;
  const ReconstructResult& result = loaded.result;
  actual.TakeOver(loaded.actual);
  for (const HoldRecord& hold : found.holds) consumers.Restore(hold);
  for (const auto& [pod, why] : result.may_be_held) consumers.MayBeHeld(pod, why);
  quarantined_pods = result.quarantined_pods;
  if (parts.host.irreversible.InDoubt()) {
    lifecycle.DoubtCommands();
    actual.DoubtFoundVolumes();
  }
  TellOfUnrecordedMounts(result);
  lost_mounts.Restore(found, result);
  if (hooks.found_unrecorded) hooks.found_unrecorded(std::move(loaded.result.unrecorded));
  lifecycle.RestoreAdoptedPods(found);
  TellOfCoveredPods(found);
  TellOfUnreadableRecords(found);
  resting.Restore(result.devices);
  parts.operations.ExpectDeletions(found.reservations);
  if (hooks.taken_over) hooks.taken_over(result.take_over);
  known.Restore(found);
  deleted.Restore(found.deleted, found.command_numbers, found.quarantined);
  parts.catalog.SetEndedListener(
      alive.Guarded([this](const ObjectKey& key) { object_commands.ForgetDeleted(key); }));
  parts.catalog.SetBoundCheck([this, owner = alive.watch()](const ObjectKey& key) {
    return owner.alive() && claims.IsBound(key);
  });
  parts.catalog.SetClaimStatus([this, owner = alive.watch()](const PersistentVolumeClaim& claim) {
    return owner.alive() ? claims.ShownStatus(claim) : claim.status;
  });
  std::map<std::string, SourceMemory> memories = known.TakeMemories();
  SeedCatalog(memories);
  provisioning.Restore(found.provisioned);
  claims.Restore(found.bindings, found.quarantined);
  resting.NoteUnknownVolumes();
  readiness.SetLoaded();
  // Nothing that the sources deliver is heard before this function returns.
  if (hooks.start_sources) hooks.start_sources(std::move(memories));
  object_commands.TakeAwayEnded();
  parts.log.Info("records loaded", {{"pods", found.pods.size()},
                                    {"volumes", found.volumes.size()},
                                    {"quarantined", found.quarantined.size()}});
  for (const auto& [uid, pod] : actual.pods()) {
    if (pod.object != nullptr) pods_with_claims.Note(uid, *pod.object);
    reconciler.MarkDirtyWithMany(uid);
  }
  // This comes before the first decision: a claim that has left must not be taken for the next one
  // of its name.
  known.FollowAll(parts.catalog);
  claims.Start();
  for (const PodPtr& pod : parts.catalog.Pods()) lifecycle.Evaluate(pod->uid());
  std::set<PodUid> covered;
  for (const auto& [uid, cover] : found.covered) covered.insert(uid);
  events.UncoverGoneWhileLoading(covered);
  CheckReady();
  devices.MarkUnpinnedDirty();
  devices.Start();
  expander.Start();
  storage_expander.Start();
  reconciler.Start();
}

void VolumeManager::Composition::TellOfCoveredPods(const FoundAtStart& found) {
  for (const auto& [uid, cover] : found.covered) {
    parts.log.Warning(
        "somebody has mounted something over a pod's directory; it is left alone",
        {{"pod_uid", uid}, {"mount_point", cover.mount_point}, {"fs_type", cover.fs_type}});
  }
}

void VolumeManager::Composition::TellOfUnreadableRecords(const FoundAtStart& found) {
  constexpr size_t kNamedRecords = 50;
  for (size_t i = 0; i < std::min(found.quarantined.size(), kNamedRecords); ++i) {
    const QuarantinedRecord& row = found.quarantined[i];
    parts.log.Warning("a record cannot be read; it is left alone, and what it is about waits",
                      {{"kind", row.kind}, {"record", row.key}, {"reason", row.reason}});
  }
}

void VolumeManager::Composition::SeedCatalog(const std::map<std::string, SourceMemory>& memories) {
  ObjectCatalog& catalog = parts.catalog;
  catalog.IdentifyBy(&known);
  std::set<std::string> configured;
  for (const SourceStatus& source : catalog.Sources()) configured.insert(source.name);
  for (const auto& [name, memory] : memories) {
    std::vector<KnownObject> objects = memory.objects;
    // The source names a pod by the present name of the node; in the records the pod has the name
    // that it got.
    for (KnownObject& object : objects) object.key.name = known.NameOnRecord(object);
    if (configured.contains(name)) {
      catalog.Remember(name, std::move(objects));
    } else {
      catalog.KeepUnconfigured(name, objects);
      parts.log.Warning("a source that had objects is not configured any more; they stay",
                        {{"source", name}, {"objects", objects.size()}});
    }
  }
  for (const KnownObjects::MissingObject& missing : known.Missing()) {
    catalog.RememberMissing(missing.source, missing.object, missing.since_unix_millis);
  }
}

void VolumeManager::Composition::TellOfUnrecordedMounts(const ReconstructResult& result) {
  // Whoever reads the log looks after each of them; a log is no place for thousands.
  constexpr size_t kMostLines = 64;
  const std::vector<std::string>& texts = result.unknown_mount_texts;
  for (size_t i = 0; i < std::min(texts.size(), kMostLines); ++i) {
    parts.log.Warning("a mount below the root has no record; it is left alone",
                      {{"mount", texts[i]}});
  }
  if (texts.size() <= kMostLines) return;
  parts.log.Warning("more mounts below the root have no record: `volumectl status -o json` has all",
                    {{"mounts", texts.size()}});
}

void VolumeManager::Composition::CheckReady() {
  // Claims and volumes show it as their reason.
  std::string why_unseen = readiness.WhyUnseen();
  if (why_unseen != was_unseen_because) claims.MarkDirty();
  was_unseen_because = std::move(why_unseen);
  const bool ready = readiness.Ready();
  if (std::exchange(was_ready, ready) == ready || !ready) return;
  claims.AllHaveDelivered();
  lifecycle.HoldAdoptedPodsWithMounts();
  // From now on absence means something: everything that is in no source is looked at once.
  known.FollowAll(parts.catalog);
  const auto left = std::make_shared<std::deque<PodUid>>();
  for (const auto& [uid, pod] : actual.pods()) left->push_back(uid);
  for (const auto& [uid, tombstone] : tombstones.all()) left->push_back(uid);
  const auto evaluate = [this, left](TaskLimit& limit) {
    while (!left->empty() && limit.TakeOne()) {
      const PodUid uid = std::move(left->front());
      left->pop_front();
      lifecycle.Evaluate(uid);
    }
    return left->empty();
  };
  became_ready.Start({evaluate, [this](TaskLimit&) {
                        // A source that was added meanwhile may have what looks removed; all of
                        // this is then done again once it has delivered.
                        was_ready = readiness.Ready();
                        if (was_ready) AllAreEvaluated();
                        return true;
                      }});
}

void VolumeManager::Composition::AllAreEvaluated() {
  replacements.FollowAll();
  object_commands.DeleteWhatWasRemoved();
  claims.MarkDirty();
  devices.MarkAllDirty();
  resting.ForgetDevices();
  // A volume may have waited for the end of what nobody deletes any more.
  resting.ForgetStorage([this] { claims.MarkDirty(); });
  // Callers that wait for a pod that no source has can be told so now.
  observers.Tell(PodUid());
}

}  // namespace volumed
