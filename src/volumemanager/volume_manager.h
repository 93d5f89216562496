// VolumeManager: brings what the node has (actual) nearer to what pods should have (desired). It is
// driven by events, owns both states on the control thread, and otherwise only starts operations.
//
//   ObjectCatalog --changes--> DesiredStateOfWorld --+
//   Reconstructor --at start-> ActualStateOfWorld ---+--> Reconciler --> VolumeOperations
//   ConsumerWatch --gone-----> Consumers ------------+
//
// It is made of parts, and hands out those that others need: each says what it is for. Who calls
// whom inside is told by docs/VOLUMEMANAGER.md.
// Source: kubernetes pkg/kubelet/volumemanager/volume_manager.go@v1.36.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kube/object_catalog.h"
#include "volumemanager/claims/object_commands.h"
#include "volumemanager/node_events.h"
#include "volumemanager/pod_commands.h"
#include "volumemanager/pod_observers.h"
#include "volumemanager/views/pod_queries.h"
#include "volumemanager/views/storage_views.h"

namespace volumed {

// These are in volumemanager/volume_manager_settings.h.
struct VolumeManagerHooks;
struct VolumeManagerParts;
struct VolumeManagerSettings;

// Threads: the control thread. Blocks: never. REQUIRES: it is made before the catalog's first
// change, since it listens to the catalog, and destroyed after the catalog's last change.
class VolumeManager {
 public:
  VolumeManager(VolumeManagerParts parts, const BootId& boot_id,
                const VolumeManagerSettings& settings, VolumeManagerHooks hooks);
  ~VolumeManager();
  VolumeManager(const VolumeManager&) = delete;
  VolumeManager& operator=(const VolumeManager&) = delete;

  // Begins to load what the last agent left; nothing is mounted or unmounted before that is done. A
  // store or kernel that does not answer is asked again. REQUIRES: it is called once.
  void Start();
  // True once records are loaded and every configured source has delivered: unmounting is allowed.
  bool Ready() const;
  // For people; "" if Ready().
  std::string NotReadyReason() const;

  // Why nothing may be done by hand that deletes storage; "" if it may (Readiness::WhyUnseen).
  std::string WhyUnseen() const;

  // The readiness of the sources has changed: looks at everything that waited for it.
  void ObjectsChanged();
  // Records how the directory of a source is recognised at the next start.
  void NoteDirectory(const std::string& source, const KnownDirectory& directory,
                     const UnprovenAbsences& unproven = {});
  // A command has made the agent forget the source; its directory is forgotten too.
  void SourceForgotten(const std::string& source);

  // The parts that others use. They are valid as long as this object.
  const PodQueries& pods() const;
  const StorageViews& storage() const;
  PodCommands& pod_commands();
  ObjectCommands& object_commands();
  NodeEvents& events();
  PodObservers& observers();

  // Each of these sets a setting for the time from now on: how volumes are measured (both times
  // positive), how often servers are looked at (zero or less: never), how long an edit must last
  // before its pod is replaced (zero or less: it counts at once), and how often plugins are asked
  // which volumes are attached (zero: only about devices that were found at the start).
  void SetStatsTimes(Duration period, Duration deadline);
  void SetServerLookPeriod(Duration period);
  void SetReplaceSettle(Duration settle);
  void SetVerifyAttachedPeriod(Duration period);

  // Servers on which volumes depend, and whether they answer. By the name of their fault domain;
  // empty while looks are off.
  std::map<std::string, bool> ServersAnswering() const;
  // claim_decisions: how often it was decided which claim has which volume, for tests that count
  // work. quarantined_pods: how many pods were found at the start whose records could not be read.
  uint64_t claim_decisions() const;
  size_t quarantined_pods() const;
  // Mounts below the root that were found at the start, that no record knows, and that are there
  // still: "volume data of pod UID: PATH". `is_mounted` says whether anything is mounted at a path
  // or below it; it is asked in the call alone.
  std::vector<std::string> unrecorded_mounts(
      const std::function<bool(const std::string& place)>& is_mounted) const;

 private:
  struct Composition;
  std::unique_ptr<Composition> composition_;
};

}  // namespace volumed
