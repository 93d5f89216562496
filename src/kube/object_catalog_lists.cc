// ObjectCatalog: what the sources list and what the last agent knew, and by which names and uids
// that is found.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "kube/object_catalog_merge.h"
#include "kube/static_pod.h"

namespace volumed {
namespace {

bool IsListedAlike(const ObjectWithOrigin& a, const ObjectWithOrigin& b) {
  const auto all = [](const ObjectWithOrigin& one) {
    return std::tie(one.object, one.file, one.document, one.index, one.presence, one.reason,
                    one.goes_at_unix_millis, one.number, one.replaces);
  };
  return all(a) == all(b);
}

template <typename T>
void AddOnce(std::vector<T>& all, T one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

template <typename Index, typename Key, typename Value>
void EraseFrom(Index& index, const Key& key, const Value& value) {
  const auto found = index.find(key);
  if (found == index.end()) return;
  found->second.erase(value);
  if (found->second.empty()) index.erase(found);
}

}  // namespace

const std::set<ObjectKind> ObjectCatalog::kAllKinds(kAllObjectKinds.begin(), kAllObjectKinds.end());

// ---- updates ------------------------------------------------------------------------------------

void ObjectCatalog::Update(ObjectUpdate update) {
  std::visit([this](auto& one) { Update(std::move(one)); }, update);
}

void ObjectCatalog::Update(ObjectList list) {
  ExpectSource(list.source);
  Source& source = sources_.at(list.source);
  source.problems.SetAll(std::move(list.problems));
  source.warnings.SetAll(std::move(list.warnings));
  source.unseen_because = std::move(list.unseen_because);
  NoteList(source, list.complete, list.complete_kinds, std::move(list.incomplete_because));
  source.Tell();
  const std::set<ObjectKind>& kinds = list.complete ? kAllKinds : list.complete_kinds;
  if (kinds.empty()) return;
  SetLists(source, std::move(list.objects), list.unknown, kinds);
  MergeList(source);
}

void ObjectCatalog::Update(ObjectDelta delta) {
  const auto found = sources_.find(delta.source);
  if (found == sources_.end()) return;
  Source& source = found->second;
  if (!source.complete && source.kinds.empty()) return;
  ChangeProblems(source, delta);
  source.unseen_because = std::move(delta.unseen_because);
  NoteList(source, source.complete, source.kinds, std::move(delta.incomplete_because));
  source.Tell();
  for (const ObjectDelta::Removed& removed : delta.removed) {
    const auto at = source.objects.find({removed.file, removed.key});
    if (at != source.objects.end()) DropObject(source, at);
  }
  for (ObjectWithOrigin& object : delta.objects) {
    if (source.HasDelivered(KindOf(*object.object))) SetObject(source, std::move(object));
  }
  for (const ObjectKey& key : delta.not_unknown) {
    const auto at = source.unknown.find(key);
    if (at != source.unknown.end()) DropUnknown(source, at);
  }
  for (const UnknownObject& unknown : delta.unknown) SetUnknown(source, unknown);
  MergeList(source);
}

void ObjectCatalog::ChangeProblems(Source& source, ObjectDelta& delta) {
  for (auto& [file, problems] : delta.problems) source.problems.SetFile(file, std::move(problems));
  for (auto& [file, warnings] : delta.warnings) source.warnings.SetFile(file, std::move(warnings));
}

void ObjectCatalog::Source::Tell() {
  told_complete = complete;
  told_in_order = was_in_order;
  told_kinds = kinds;
  told_unseen_because = unseen_because;
}

void ObjectCatalog::NoteList(Source& source, bool complete, const std::set<ObjectKind>& kinds,
                             std::string incomplete_because) {
  const auto state = [&source] {
    return std::make_tuple(source.complete, source.kinds, source.was_in_order,
                           source.incomplete_because);
  };
  const auto before = state();
  source.last_list_complete = complete;
  source.last_list_unix_millis = clock_.WallUnixMillis();
  source.incomplete_because = std::move(incomplete_because);
  source.kinds.insert(kinds.begin(), kinds.end());
  if (complete) {
    source.complete = true;
    if (source.incomplete_because.empty()) source.was_in_order = true;
  }
  // What other sources have lost without that anybody saw it may be in this one.
  if (state() != before) dirty_.remembered = true;
}

void ObjectCatalog::SetLists(Source& source, std::vector<ObjectWithOrigin> objects,
                             const std::vector<UnknownObject>& unknown,
                             const std::set<ObjectKind>& kinds) {
  work_.Add(source.objects.size() + objects.size() + unknown.size());
  const uint64_t list = ++last_list_;
  std::set<ObjectKey> keys;
  for (ObjectWithOrigin& object : objects) SetListed(source, std::move(object), list, kinds);
  for (auto at = source.objects.begin(); at != source.objects.end();) {
    const auto next = std::next(at);
    const bool stays = at->second.in_list == list || !kinds.contains(at->first.second.kind);
    if (!stays) DropObject(source, at);
    at = next;
  }
  for (const UnknownObject& object : unknown) {
    if (!kinds.contains(object.key.kind)) continue;
    if (keys.insert(object.key).second) SetUnknown(source, object);
  }
  for (auto at = source.unknown.begin(); at != source.unknown.end();) {
    const auto next = std::next(at);
    const bool stays = keys.contains(at->first) || !kinds.contains(at->first.kind);
    if (!stays) DropUnknown(source, at);
    at = next;
  }
}

// What is there has been compared with what is remembered. What nobody knows anything of stays
// unknown, and what is unproven or going may be lacking in the next list without that anybody has
// seen it leave.
void ObjectCatalog::MergeList(Source& source) {
  const std::string name = source.name;
  MergeAndNotify();
  Source& merged = sources_.at(name);
  for (const ObjectKey& key : std::exchange(merged.settled, {})) EndMemoryOf(merged, key);
}

void ObjectCatalog::EndMemoryOf(Source& source, const ObjectKey& settled) {
  ForgetRemembered(source, settled);
  // As long as it was remembered here, whoever lists it elsewhere was refused, be it another file
  // of this source, and it was not certain that no source has what a command ended.
  const bool is_known_elsewhere =
      std::any_of(sources_.begin(), sources_.end(), [&](const auto& one) {
        return one.second.unknown.contains(settled) || one.second.remembered.contains(settled);
      });
  const bool stays = IsUsedAsListed(settled) && !is_known_elsewhere && !ended_.contains(settled);
  if (!stays) dirty_.scope.keys.insert(settled);
}

bool ObjectCatalog::IsUsedAsListed(const ObjectKey& key) const {
  const Entry* const entry = FindEntry(key);
  const auto listed = by_name_.find(key);
  if (entry == nullptr || entry->standing.missing || listed == by_name_.end()) return false;
  const ObjectOrigin& used = entry->standing.origin;
  return std::all_of(listed->second.begin(), listed->second.end(), [&used](const Listed* one) {
    return SameFile(used, {one->source->name, one->object.file, one->object.document});
  });
}

// ---- what is listed -----------------------------------------------------------------------------

void ObjectCatalog::SetListed(Source& source, ObjectWithOrigin object, uint64_t list,
                              const std::set<ObjectKind>& kinds) {
  if (!kinds.contains(KindOf(*object.object))) return;
  const auto found = source.objects.find({object.file, KeyOf(*object.object)});
  const bool is_first = found == source.objects.end() || found->second.in_list != list;
  if (is_first) SetObject(source, std::move(object)).in_list = list;
}

ObjectCatalog::Listed& ObjectCatalog::SetObject(Source& source, ObjectWithOrigin object) {
  work_.Add();
  last_number_ = std::max(last_number_, object.number);
  Listed& listed = source.objects[{object.file, KeyOf(*object.object)}];
  if (listed.source != nullptr) {
    if (IsListedAlike(listed.object, object)) return listed;
    MarkDirty(listed);
    CountReplaced(listed, -1);
  }
  listed.source = &source;
  listed.object = std::move(object);
  CountReplaced(listed, +1);
  Merge(*this, Scope()).LinkAsUsed(listed);
  MarkDirty(listed);
  return listed;
}

void ObjectCatalog::DropObject(Source& source, std::map<FileAndKey, Listed>::iterator at) {
  work_.Add();
  MarkDirty(at->second);
  Unlink(at->second);
  CountReplaced(at->second, -1);
  source.objects.erase(at);
}

void ObjectCatalog::SetUnknown(Source& source, const UnknownObject& object) {
  work_.Add();
  const auto [at, is_new] = source.unknown.try_emplace(object.key, object);
  const bool is_same =
      !is_new && at->second.file == object.file && at->second.reason == object.reason;
  if (is_same) return;
  at->second = object;
  dirty_.scope.keys.insert(object.key);
}

void ObjectCatalog::DropUnknown(Source& source, std::map<ObjectKey, UnknownObject>::iterator at) {
  work_.Add();
  dirty_.scope.keys.insert(at->first);
  source.unknown.erase(at);
}

void ObjectCatalog::CountReplaced(const Listed& listed, int by) {
  for (const PodUid& uid : listed.object.replaces) {
    if ((replaced_uids_[uid] += by) == 0) replaced_uids_.erase(uid);
  }
}

// ---- how it is found ----------------------------------------------------------------------------

void ObjectCatalog::Link(Listed& listed, const Object& as_used, const std::string& uid) {
  std::vector<ObjectKey> names;
  std::vector<PodUid> uids;
  for (const Object* object : {&as_used, listed.object.object.get()}) {
    AddOnce(names, KeyOf(*object));
    const Pod* const pod = std::get_if<Pod>(object);
    if (pod == nullptr) continue;
    if (!pod->metadata.uid.empty()) AddOnce(uids, pod->uid());
    // Who is on record under the one name decides what is called by the other.
    if (auto base = StaticPodBaseName(*pod)) {
      AddOnce(names, {ObjectKind::kPod, pod->metadata.name_space, *std::move(base)});
    } else if (identities_ != nullptr) {
      AddOnce(names, {ObjectKind::kPod, pod->metadata.name_space, identities_->OtherNameOf(*pod)});
    }
  }
  if (!uid.empty() && KindOf(as_used) == ObjectKind::kPod) AddOnce(uids, PodUid(uid));
  // The one on record as well: whether it is to have that, or the one that its manifest names,
  // changes with who has the name, and so from one merge of an update's parts to the next.
  if (identities_ != nullptr && KindOf(as_used) == ObjectKind::kPod) {
    const std::string known = identities_->KnownUidOf(KeyOf(as_used));
    if (!known.empty()) AddOnce(uids, PodUid(known));
  }
  for (const PodUid& replaced : listed.object.replaces) AddOnce(uids, replaced);
  if (names == listed.names && uids == listed.uids) return;
  Unlink(listed);
  listed.names = std::move(names);
  listed.uids = std::move(uids);
  for (const ObjectKey& name : listed.names) by_name_[name].insert(&listed);
  for (const PodUid& one : listed.uids) by_uid_[one].insert(&listed);
}

void ObjectCatalog::Unlink(Listed& listed) {
  for (const ObjectKey& name : listed.names) EraseFrom(by_name_, name, &listed);
  for (const PodUid& uid : listed.uids) EraseFrom(by_uid_, uid, &listed);
}

void ObjectCatalog::MarkDirty(const Listed& listed) {
  dirty_.scope.keys.insert(listed.names.begin(), listed.names.end());
  dirty_.scope.uids.insert(listed.uids.begin(), listed.uids.end());
}

// ---- what the last agent knew -------------------------------------------------------------------

void ObjectCatalog::RememberObject(Source& source, KnownObject object) {
  ForgetRemembered(source, object.key);
  if (object.key.kind == ObjectKind::kPod) {
    remembered_by_uid_[PodUid(object.uid)].insert(object.key);
  }
  const ObjectKey key = object.key;
  source.remembered.insert_or_assign(key, std::move(object));
}

void ObjectCatalog::ForgetRemembered(Source& source, const ObjectKey& key) {
  const auto found = source.remembered.find(key);
  if (found == source.remembered.end()) return;
  // Until the end of this: `key` may be its own.
  const auto forgotten = source.remembered.extract(found);
  const PodUid uid(forgotten.mapped().uid);
  if (key.kind != ObjectKind::kPod) return;
  const bool is_others = std::any_of(sources_.begin(), sources_.end(), [&](const auto& other) {
    const auto known = other.second.remembered.find(key);
    return known != other.second.remembered.end() && known->second.uid == uid.str();
  });
  if (!is_others) EraseFrom(remembered_by_uid_, uid, key);
}

void ObjectCatalog::ForgetEnded(Source& source, const ObjectKey& key, const Ended& ended) {
  const auto found = source.remembered.find(key);
  if (found == source.remembered.end()) return;
  const KnownObject& known = found->second;
  const bool is_it = ended.uids.contains(known.uid) ||
                     (known.object != nullptr && ended.uids.contains(MetaOf(*known.object).uid));
  if (is_it) ForgetRemembered(source, key);
}

void ObjectCatalog::NoteSettled(Source& source, const ObjectKey& key) {
  if (!source.remembered.contains(key)) return;
  const Entry* entry = FindEntry(key);
  const bool settled = entry == nullptr ? !unknown_.contains(key)
                                        : entry->standing.presence == ObjectPresence::kPresent;
  if (settled && source.HasDelivered(key.kind)) {
    source.settled.insert(key);
  } else {
    source.settled.erase(key);
  }
}

}  // namespace volumed
