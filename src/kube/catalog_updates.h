// CatalogUpdates: what the sources deliver, on its way into the catalog. Updates are taken over in
// the order in which they come, whatever source they are of, for what one has lost another one may
// have; each in parts, so that a list of ten thousand pods keeps nobody from the control thread.
//
// A full list of a source ends what has come from it just before and is not merged yet.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "kube/object_source.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class CatalogUpdates {
 public:
  struct Hooks {
    std::function<void(const ObjectUpdate&)> begins = [](const ObjectUpdate&) {};
    // After each part, with whether it was the last one of its update.
    std::function<void(bool is_last)> taken = [](bool) {};
  };

  // Both outlive this.
  CatalogUpdates(Scheduler& scheduler, ObjectCatalog& catalog, Hooks hooks);
  ~CatalogUpdates();
  CatalogUpdates(const CatalogUpdates&) = delete;
  CatalogUpdates& operator=(const CatalogUpdates&) = delete;

  // If nothing is before it, as much of it as one task may do is taken over before this returns.
  void Add(ObjectUpdate update);
  // Nothing waits, and nothing is being taken over.
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
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
