#include "kube/object_catalog_parts.h"

#include <algorithm>
#include <utility>

#include "kube/object_catalog_merge.h"

namespace volumed {
namespace {

// Names that are merged at once. Whoever hears of them does more for each than the merge.
constexpr size_t kMergedAtOnce = 16;
constexpr int kOrders = 3;

const std::string& SourceOf(const ObjectUpdate& update) {
  return std::visit([](const auto& one) -> const std::string& { return one.source; }, update);
}

}  // namespace

ObjectCatalog::ObjectCatalog(const Clock& clock) : clock_(clock) {}
ObjectCatalog::~ObjectCatalog() = default;

void ObjectCatalog::Begin(ObjectUpdate update) {
  parts_ = std::make_unique<Parts>(*this, std::move(update));
}

bool ObjectCatalog::TakeSome(TaskLimit& limit) {
  if (parts_ != nullptr && parts_->Continue(limit)) parts_.reset();
  return parts_ == nullptr;
}

bool ObjectCatalog::DropParts(const ObjectList& newer) {
  if (parts_ == nullptr || !parts_->IsReplacedBy(newer)) return false;
  parts_.reset();
  return true;
}

ObjectCatalog::Parts::Parts(ObjectCatalog& catalog, ObjectUpdate update)
    : catalog_(catalog),
      update_(std::move(update)),
      list_(std::get_if<ObjectList>(&update_)),
      delta_(std::get_if<ObjectDelta>(&update_)),
      source_(SourceOf(update_)) {
  if (list_ != nullptr) {
    catalog_.ExpectSource(source_);
    list_number_ = ++catalog_.last_list_;
    kinds_ = list_->complete ? kAllKinds : list_->complete_kinds;
  }
  const auto found = catalog_.sources_.find(source_);
  if (found == catalog_.sources_.end()) {
    stage_ = Stage::kOver;
    return;
  }
  Source& source = found->second;
  order_ = source.order;
  catalog_.has_untold_ = true;
  if (list_ != nullptr) {
    source.problems.SetAll(std::move(list_->problems));
    source.warnings.SetAll(std::move(list_->warnings));
    // It says nothing but how the source is.
    if (kinds_.empty()) stage_ = Stage::kNote;
  } else if (!source.complete && source.kinds.empty()) {
    catalog_.has_untold_ = false;
    stage_ = Stage::kOver;
  } else {
    catalog_.ChangeProblems(source, *delta_);
  }
}

bool ObjectCatalog::Parts::IsReplacedBy(const ObjectList& newer) const {
  const std::set<ObjectKind>& kinds = newer.complete ? kAllKinds : newer.complete_kinds;
  return list_ != nullptr && stage_ < Stage::kNote && newer.source == source_ &&
         std::includes(kinds.begin(), kinds.end(), kinds_.begin(), kinds_.end());
}

ObjectCatalog::Source* ObjectCatalog::Parts::FindSource() const {
  const auto found = catalog_.sources_.find(source_);
  const bool is_it = found != catalog_.sources_.end() && found->second.order == order_;
  return is_it ? &found->second : nullptr;
}

bool ObjectCatalog::Parts::Continue(TaskLimit& limit) {
  while (stage_ != Stage::kOver) {
    if (!RunStage(limit)) return false;
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
    next_ = 0;
    last_key_ = {};
  }
  return true;
}

bool ObjectCatalog::Parts::RunStage(TaskLimit& limit) {
  Source* const source = FindSource();
  // What is marked is merged all the same.
  const bool is_about_source = stage_ != Stage::kGroup && stage_ != Stage::kMerge;
  if (source == nullptr && is_about_source) return true;
  switch (stage_) {
    case Stage::kSet:
      return Set(*source, limit);
    case Stage::kDrop:
      return Drop(*source, limit);
    case Stage::kSetUnknown:
      return SetUnknowns(*source, limit);
    case Stage::kDropUnknown:
      return DropUnknowns(*source, limit);
    case Stage::kNote:
      Note(*source);
      return true;
    case Stage::kRemembered:
      return AddRemembered(limit);
    case Stage::kGroup:
      return Group(limit);
    case Stage::kMerge:
      return MergeSome(limit);
    case Stage::kEndMemory:
      return EndMemory(limit);
    case Stage::kOver:
      return true;
  }
  return true;
}

void ObjectCatalog::Parts::TakeMarks() {
  Scope& marked = catalog_.dirty_.scope;
  catalog_.pending_.keys.merge(marked.keys);
  catalog_.pending_.uids.merge(marked.uids);
  marked = {};
}

// ---- what the source lists ----------------------------------------------------------------------

bool ObjectCatalog::Parts::Set(Source& source, TaskLimit& limit) {
  std::vector<ObjectWithOrigin>& objects = list_ != nullptr ? list_->objects : delta_->objects;
  for (; next_ < objects.size() && limit.TakeOne(); ++next_) {
    ObjectWithOrigin& object = objects[next_];
    if (list_ != nullptr) {
      catalog_.SetListed(source, std::move(object), list_number_, kinds_);
    } else if (source.HasDelivered(KindOf(*object.object))) {
      catalog_.SetObject(source, std::move(object));
    }
  }
  TakeMarks();
  return next_ >= objects.size();
}

bool ObjectCatalog::Parts::Drop(Source& source, TaskLimit& limit) {
  bool is_over = false;
  if (list_ == nullptr) {
    for (; next_ < delta_->removed.size() && limit.TakeOne(); ++next_) {
      const ObjectDelta::Removed& removed = delta_->removed[next_];
      const auto at = source.objects.find({removed.file, removed.key});
      if (at != source.objects.end()) catalog_.DropObject(source, at);
    }
    is_over = next_ >= delta_->removed.size();
  } else {
    auto at = source.objects.upper_bound(last_place_);
    while (at != source.objects.end() && limit.TakeOne()) {
      catalog_.work_.Add();
      last_place_ = at->first;
      const bool stays =
          at->second.in_list == list_number_ || !kinds_.contains(at->first.second.kind);
      const auto dropped = at++;
      if (!stays) catalog_.DropObject(source, dropped);
    }
    is_over = at == source.objects.end();
  }
  TakeMarks();
  return is_over;
}

bool ObjectCatalog::Parts::SetUnknowns(Source& source, TaskLimit& limit) {
  const std::vector<UnknownObject>& all = list_ != nullptr ? list_->unknown : delta_->unknown;
  if (delta_ != nullptr && next_ == 0) {
    for (const ObjectKey& key : delta_->not_unknown) {
      const auto at = source.unknown.find(key);
      if (at != source.unknown.end()) catalog_.DropUnknown(source, at);
    }
  }
  for (; next_ < all.size() && limit.TakeOne(); ++next_) {
    const UnknownObject& object = all[next_];
    const bool is_taken = list_ == nullptr ||
                          (kinds_.contains(object.key.kind) && unknown_.insert(object.key).second);
    if (is_taken) catalog_.SetUnknown(source, object);
  }
  TakeMarks();
  return next_ >= all.size();
}

bool ObjectCatalog::Parts::DropUnknowns(Source& source, TaskLimit& limit) {
  if (list_ == nullptr) return true;
  auto at = source.unknown.upper_bound(last_key_);
  while (at != source.unknown.end() && limit.TakeOne()) {
    last_key_ = at->first;
    const bool stays = unknown_.contains(at->first) || !kinds_.contains(at->first.kind);
    const auto dropped = at++;
    if (!stays) catalog_.DropUnknown(source, dropped);
  }
  TakeMarks();
  return at == source.unknown.end();
}

// ---- what becomes of it -------------------------------------------------------------------------

void ObjectCatalog::Parts::Note(Source& source) {
  source.unseen_because =
      std::move(list_ != nullptr ? list_->unseen_because : delta_->unseen_because);
  if (list_ != nullptr) {
    catalog_.NoteList(source, list_->complete, list_->complete_kinds,
                      std::move(list_->incomplete_because));
  } else {
    catalog_.NoteList(source, source.complete, source.kinds, std::move(delta_->incomplete_because));
  }
  if (kinds_.empty() && delta_ == nullptr) {
    for (auto& [name, each] : catalog_.sources_) each.Tell();
    catalog_.has_untold_ = false;
    stage_ = Stage::kEndMemory;
    return;
  }
  catalog_.AddWhatNobodyTells(catalog_.pending_);
}

// What other sources have lost without that anybody saw it may be in this one.
bool ObjectCatalog::Parts::AddRemembered(TaskLimit& limit) {
  if (!catalog_.dirty_.remembered) return true;
  auto at = catalog_.sources_.lower_bound(last_source_);
  for (; at != catalog_.sources_.end(); ++at) {
    if (at->first != last_source_) last_key_ = {};
    last_source_ = at->first;
    auto known = at->second.remembered.upper_bound(last_key_);
    for (; known != at->second.remembered.end(); ++known) {
      if (!limit.TakeOne()) return false;
      last_key_ = known->first;
      catalog_.pending_.keys.insert(known->first);
    }
  }
  catalog_.dirty_.remembered = false;
  return true;
}

// A pod comes after what it uses, and leaves before it: nothing is left out of its volumes, nor
// taken from them, that is told a moment later.
bool ObjectCatalog::Parts::IsDue(const ObjectKey& key) const {
  const bool is_pod = key.kind == ObjectKind::kPod;
  return order_of_merge_ == 0 ? !is_pod && !IsLeaving(key) : order_of_merge_ > 1 || is_pod;
}

bool ObjectCatalog::Parts::IsLeaving(const ObjectKey& key) const {
  const auto& sources = catalog_.sources_;
  return catalog_.FindEntry(key) != nullptr && !catalog_.by_name_.contains(key) &&
         std::none_of(sources.begin(), sources.end(),
                      [&key](const auto& one) { return one.second.unknown.contains(key); });
}

// Who is linked with whom is found for all, before any is merged: a merge makes links and ends
// them.
bool ObjectCatalog::Parts::Group(TaskLimit& limit) {
  Scope& pending = catalog_.pending_;
  while (!pending.keys.empty() || !pending.uids.empty()) {
    if (!limit.TakeOne()) return false;
    Scope one;
    if (!pending.keys.empty()) {
      one.keys.insert(pending.keys.extract(pending.keys.begin()));
    } else {
      one.uids.insert(pending.uids.extract(pending.uids.begin()));
    }
    const bool is_known = one.uids.empty() ? group_of_.contains(*one.keys.begin())
                                           : group_of_uid_.contains(*one.uids.begin());
    if (!is_known) AddGroup(Merge(catalog_, std::move(one)).Reached());
  }
  return true;
}

void ObjectCatalog::Parts::AddGroup(Scope scope) {
  std::set<size_t> joined;
  for (const ObjectKey& key : scope.keys) {
    if (const auto found = group_of_.find(key); found != group_of_.end())
      joined.insert(found->second);
  }
  for (const PodUid& uid : scope.uids) {
    const auto found = group_of_uid_.find(uid);
    if (found != group_of_uid_.end()) joined.insert(found->second);
  }
  for (const size_t group : joined) {
    scope.keys.merge(groups_[group].keys);
    scope.uids.merge(groups_[group].uids);
    groups_[group] = {};
  }
  for (const ObjectKey& key : scope.keys) group_of_[key] = groups_.size();
  for (const PodUid& uid : scope.uids) group_of_uid_[uid] = groups_.size();
  groups_.push_back(std::move(scope));
}

bool ObjectCatalog::Parts::MergeSome(TaskLimit& limit) {
  for (; order_of_merge_ < kOrders; ++order_of_merge_, next_ = 0) {
    while (next_ < groups_.size()) {
      Scope some;
      for (; next_ < groups_.size() && some.keys.size() < kMergedAtOnce; ++next_) {
        if (!limit.TakeOne()) break;
        Scope& group = groups_[next_];
        const bool is_due = group.keys.empty() ? order_of_merge_ > 0 : IsDue(*group.keys.begin());
        if (!is_due) continue;
        some.keys.merge(group.keys);
        some.uids.merge(group.uids);
        group = {};
      }
      const bool is_any = !some.keys.empty() || !some.uids.empty();
      if (is_any) catalog_.RunAndNotify(Merge(catalog_, std::move(some)));
      if (limit.IsReached()) return false;
    }
  }
  Finish();
  return true;
}

// From here on everybody may know, also of a source that was accepted meanwhile.
void ObjectCatalog::Parts::Finish() {
  for (auto& [name, source] : catalog_.sources_) source.Tell();
  catalog_.has_untold_ = false;
  const std::vector<ObjectKey> ended = catalog_.DropEnded();
  catalog_.NoteWhoIsWaitedFor();
  catalog_.NotifyEnded(ended);
}

bool ObjectCatalog::Parts::EndMemory(TaskLimit& limit) {
  Source* const source = FindSource();
  while (!source->settled.empty()) {
    if (!limit.TakeOne()) return false;
    const ObjectKey key = source->settled.extract(source->settled.begin()).value();
    catalog_.EndMemoryOf(*source, key);
  }
  return true;
}

}  // namespace volumed
