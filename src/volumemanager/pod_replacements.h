// PodReplacements: the pods whose manifests have other volumes by now, and when each begins to
// leave for the pod that replaces it.
//
// None of this is recorded: a start that finds the pod on record with the old volumes, and other
// volumes in its file, comes to the same decision.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "volumemanager/readiness.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none.
class PodReplacements {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    ObjectCatalog& catalog;
    const Readiness& readiness;
    Logger& log;
  };

  // `settle` is how long an edit must last before ObjectCatalog::Replace() is called; zero or less:
  // an edit counts at once.
  PodReplacements(Parts parts, Duration settle) : parts_(parts), settle_(settle) {}
  ~PodReplacements();
  PodReplacements(const PodReplacements&) = delete;
  PodReplacements& operator=(const PodReplacements&) = delete;

  // What the catalog says of the pod has changed. An edit that is taken back is forgotten; if it
  // comes again, its time begins anew.
  void Follow(const ObjectKey& pod);
  // Absence from the sources means something from now on: looks at all pods.
  void FollowAll();
  // Holds also for edits that have begun.
  void SetSettle(Duration settle);

  // nullopt if the pod is not to be replaced, or leaves already. The moment may be past if a source
  // has yet to deliver its list.
  std::optional<int64_t> BeginsAtUnixMillis(const ObjectKey& pod) const;

 private:
  struct Edit {
    TimePoint since;
    TimerId timer = 0;
  };

  void Arm(const ObjectKey& pod, Edit& edit);
  void Due(const ObjectKey& pod);

  const Parts parts_;
  Duration settle_;
  std::map<ObjectKey, Edit> edits_;
};

}  // namespace volumed
