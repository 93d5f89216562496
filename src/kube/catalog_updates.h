// CatalogUpdates: passes what the sources deliver on to the catalog. Updates of all sources are
// taken over in the order in which they come, since one source may have what another has lost. Each
// is taken over in parts, so that a list of ten thousand pods does not keep the control thread from
// other work.
//
// A complete list of a source drops those updates of the source that come directly before it and
// are not merged yet. It drops none that came before an update of another source, since an object
// may be on its way between the two.
#pragma once

#include <deque>
#include <functional>

#include "base/alive_guard.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "kube/object_source.h"

namespace volumed {

// Threads: the control thread. Blocks: never. What waits when this object is destroyed is dropped.
class CatalogUpdates {
 public:
  // Both are called on the control thread, also within Add().
  struct Hooks {
    // Called directly before the catalog begins to take the update over; the reference is valid
    // during this call.
    std::function<void(const ObjectUpdate&)> begins = [](const ObjectUpdate&) {};
    // Called after each part; `is_last` says whether it was the last part of its update.
    std::function<void(bool is_last)> taken = [](bool) {};
  };

  // Scheduler and catalog outlive this object.
  CatalogUpdates(Scheduler& scheduler, ObjectCatalog& catalog, Hooks hooks);
  CatalogUpdates(const CatalogUpdates&) = delete;
  CatalogUpdates& operator=(const CatalogUpdates&) = delete;

  // If no update waits before this one, as much of it as one task may do is taken over before this
  // returns.
  void Add(ObjectUpdate update);
  // True if no update waits and none is being taken over.
  bool IsIdle() const { return waiting_.empty() && !catalog_.IsTaking(); }

 private:
  void DropWhatItReplaces(const ObjectUpdate& update);
  void TakeSome();
  void Post();

  Scheduler& scheduler_;
  ObjectCatalog& catalog_;
  const Hooks hooks_;
  std::deque<ObjectUpdate> waiting_;
  bool is_posted_ = false;
  AliveGuard alive_;
};

}  // namespace volumed
