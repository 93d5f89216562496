#include "kube/catalog_updates.h"

#include <utility>
#include <variant>

namespace volumed {
namespace {

const std::string& SourceOf(const ObjectUpdate& update) {
  return std::visit([](const auto& one) -> const std::string& { return one.source; }, update);
}

}  // namespace

CatalogUpdates::CatalogUpdates(Scheduler& scheduler, ObjectCatalog& catalog, Hooks hooks)
    : scheduler_(scheduler), catalog_(catalog), hooks_(std::move(hooks)) {}

void CatalogUpdates::Add(ObjectUpdate update) {
  DropWhatItReplaces(update);
  waiting_.push_back(std::move(update));
  if (!is_posted_) TakeSome();
}

// Only what nothing of another source has come after: an object may be on its way between the two.
// A list of some kinds, or of none, leaves something to be said by the ones before it.
void CatalogUpdates::DropWhatItReplaces(const ObjectUpdate& update) {
  const ObjectList* const list = std::get_if<ObjectList>(&update);
  if (list == nullptr || !list->complete) return;
  while (!waiting_.empty() && SourceOf(waiting_.back()) == list->source) waiting_.pop_back();
  if (waiting_.empty()) catalog_.DropParts(*list);
}

void CatalogUpdates::TakeSome() {
  TaskLimit limit(scheduler_.clock());
  do {
    if (!catalog_.IsTaking()) {
      const ObjectUpdate& next = waiting_.front();
      hooks_.begins(next);
      catalog_.Begin(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    hooks_.taken(catalog_.TakeSome(limit));
  } while (!IsIdle() && !limit.IsReached());
  if (!IsIdle()) Post();
}

void CatalogUpdates::Post() {
  is_posted_ = true;
  scheduler_.Post(alive_.Guarded([this] {
    is_posted_ = false;
    TakeSome();
  }));
}

}  // namespace volumed
