// ObjectCatalog: what a merge is about, what is said of it where nobody knows, and what is kept.
#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "kube/object_catalog_merge.h"
#include "kube/static_pod.h"

namespace volumed {
namespace {

constexpr const char* kLostWithoutCommand = "it has the object no more, and no command ended it";

std::string NotDelivered(const std::string& source) {
  return "source " + source + " has not delivered since the start of the agent";
}

// A manifest that has got a uid is that of a static pod still. The node is the one that the name
// was made with: what belongs to the pod's name and what to the node's is told by it alone.
void MakeStatic(const std::string& base, const std::string& name, Pod& pod) {
  if (!name.starts_with(base + "-")) return;
  pod.spec.node_name = name.substr(base.size() + 1);
  pod.metadata.annotations[std::string(kConfigSourceAnnotation)] = "file";
}

}  // namespace

// ---- who is concerned ---------------------------------------------------------------------------

void ObjectCatalog::Merge::CollectCandidates() {
  if (scope_) {
    Reach();
  } else {
    for (auto& [name, source] : catalog_.sources_) {
      for (auto& [place, listed] : source.objects) Visit(listed);
    }
  }
  SortCandidates();
}

// By source, and in each by file and place in it: the order decides between those who come at once.
void ObjectCatalog::Merge::SortCandidates() {
  const auto place = [](const Candidate& one) {
    const ObjectWithOrigin& listed = one.listed();
    return std::tie(one.source()->order, listed.file, listed.document, listed.index, one.key,
                    MetaOf(*listed.object).name);
  };
  std::sort(candidates_.begin(), candidates_.end(),
            [&place](const Candidate& a, const Candidate& b) { return place(a) < place(b); });
}

ObjectCatalog::Scope ObjectCatalog::Merge::Reached() {
  Reach();
  return *std::move(scope_);
}

void ObjectCatalog::Merge::Reach() {
  const Scope begun = std::exchange(*scope_, {});
  for (const ObjectKey& key : begun.keys) Want(key);
  for (const PodUid& uid : begun.uids) Want(uid);
  while (!names_to_reach_.empty() || !uids_to_reach_.empty()) {
    if (!names_to_reach_.empty()) {
      const ObjectKey key = std::move(names_to_reach_.back());
      names_to_reach_.pop_back();
      ReachName(key);
    } else {
      const PodUid uid = std::move(uids_to_reach_.back());
      uids_to_reach_.pop_back();
      ReachUid(uid);
    }
  }
}

void ObjectCatalog::Merge::Want(const ObjectKey& key) {
  if (scope_ && scope_->keys.insert(key).second) names_to_reach_.push_back(key);
}

void ObjectCatalog::Merge::Want(const PodUid& uid) {
  if (scope_ && !uid.empty() && scope_->uids.insert(uid).second) uids_to_reach_.push_back(uid);
}

void ObjectCatalog::Merge::WantAll(const Listed& listed) {
  for (const ObjectKey& name : listed.names) Want(name);
  for (const PodUid& uid : listed.uids) Want(uid);
}

void ObjectCatalog::Merge::ReachName(const ObjectKey& key) {
  catalog_.work_.Add();
  if (const Entry* entry = catalog_.FindEntry(key)) Want(UidOfPod(*entry->object));
  // It may be given another uid, and leave its own to them.
  if (const auto waits = catalog_.waited_for_.find(key); waits != catalog_.waited_for_.end()) {
    for (const ObjectKey& one : waits->second) Want(one);
  }
  // Who is linked is so from both sides: else one of them could be merged without the other.
  if (const auto others = catalog_.waits_.find(key); others != catalog_.waits_.end()) {
    for (const ObjectKey& one : others->second) Want(one);
  }
  if (key.kind == ObjectKind::kPod) {
    for (const auto& [name, source] : catalog_.sources_) {
      const auto known = source.remembered.find(key);
      if (known != source.remembered.end()) Want(PodUid(known->second.uid));
    }
  }
  const auto found = catalog_.by_name_.find(key);
  if (found == catalog_.by_name_.end()) return;
  // A copy: what is visited may be called otherwise by now.
  for (Listed* listed : std::set<Listed*>(found->second)) Visit(*listed);
}

void ObjectCatalog::Merge::ReachUid(const PodUid& uid) {
  catalog_.work_.Add();
  if (const auto pod = catalog_.pods_by_uid_.find(uid); pod != catalog_.pods_by_uid_.end()) {
    Want(pod->second);
  }
  if (const auto known = catalog_.remembered_by_uid_.find(uid);
      known != catalog_.remembered_by_uid_.end()) {
    for (const ObjectKey& key : known->second) Want(key);
  }
  const auto found = catalog_.by_uid_.find(uid);
  if (found == catalog_.by_uid_.end()) return;
  for (Listed* listed : std::set<Listed*>(found->second)) Visit(*listed);
}

// It is linked by what it was called, and by what it is called now.
void ObjectCatalog::Merge::Visit(Listed& listed) {
  if (!visited_.insert(&listed).second) return;
  catalog_.work_.Add();
  WantAll(listed);
  candidates_.push_back(MakeCandidate(listed));
  catalog_.Link(listed, *candidates_.back().object, candidates_.back().uid);
  WantAll(listed);
}

ObjectCatalog::Merge::Candidate ObjectCatalog::Merge::MakeCandidate(Listed& listed) const {
  Candidate candidate;
  candidate.listing = &listed;
  candidate.object = Renamed(listed.object.object);
  candidate.origin = {listed.source->name, listed.object.file, listed.object.document};
  candidate.key = KeyOf(*candidate.object);
  candidate.uid = UidFor(candidate);
  return candidate;
}

void ObjectCatalog::Merge::LinkAsUsed(Listed& listed) const {
  const Candidate one = MakeCandidate(listed);
  catalog_.Link(listed, *one.object, one.uid);
}

// Some have got their uid by this merge.
void ObjectCatalog::Merge::LinkCandidates() {
  for (const Candidate& one : candidates_) catalog_.Link(*one.listing, *one.object, one.uid);
}

void ObjectCatalog::Merge::NoteContested() {
  for (Candidate& one : candidates_) {
    const auto used = out_.entries.find(one.key);
    const bool is_used = used != out_.entries.end() && used->second.standing.origin == one.origin;
    const bool is_renamed = one.object != one.listed().object;
    const auto conflicts = out_.conflicts.find(one.source());
    const bool has_conflict =
        conflicts != out_.conflicts.end() && conflicts->second.contains(one.key);
    one.contested = !is_used || is_renamed || has_conflict || !one.listed().replaces.empty();
  }
}

void ObjectCatalog::Merge::AddUnsettled(const Scope& changed, std::set<ObjectKey>& names) const {
  const auto has_any = [](const auto& set, const auto& all) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return set.contains(one); });
  };
  Scope linked = changed;
  for (const Candidate& one : candidates_) {
    if (!changed.keys.contains(one.key)) continue;
    linked.keys.insert(one.listing->names.begin(), one.listing->names.end());
    linked.uids.insert(one.listing->uids.begin(), one.listing->uids.end());
  }
  for (const Candidate& one : candidates_) {
    if (!one.contested) continue;
    const auto waits = catalog_.waits_.find(one.key);
    const bool is_concerned =
        has_any(linked.keys, one.listing->names) || has_any(linked.uids, one.listing->uids) ||
        (waits != catalog_.waits_.end() && has_any(linked.keys, waits->second));
    if (is_concerned) names.insert(one.key);
  }
}

void ObjectCatalog::Merge::AddRenamed(std::set<ObjectKey>& names) const {
  if (catalog_.identities_ == nullptr) return;
  for (const Candidate& one : candidates_) {
    const Pod* const pod = std::get_if<Pod>(one.listed().object.get());
    if (pod != nullptr && catalog_.identities_->NameOf(*pod) != one.key.name) names.insert(one.key);
  }
}

bool ObjectCatalog::Merge::IsIdentified(ObjectKind kind) const {
  return catalog_.identities_ != nullptr && (kind == ObjectKind::kPod || HasUidOnRecord(kind));
}

// A pod keeps the name that it got when the node was called otherwise, or when its manifest had a
// uid and has none now, or the other way round.
ObjectPtr ObjectCatalog::Merge::Renamed(const ObjectPtr& object) const {
  const Pod* pod = std::get_if<Pod>(object.get());
  if (pod == nullptr || catalog_.identities_ == nullptr) return object;
  std::string name = catalog_.identities_->NameOf(*pod);
  if (name == pod->metadata.name) return object;
  Pod renamed = *pod;
  MakeStatic(StaticPodBaseName(*pod).value_or(pod->metadata.name), name, renamed);
  renamed.metadata.name = std::move(name);
  return std::make_shared<const Object>(std::move(renamed));
}

// The uid on record counts, whatever the manifest says by now; but a pod that no source has any
// more may leave yet, and one with a uid of its own is another one then.
std::string ObjectCatalog::Merge::UidFor(const Candidate& candidate) const {
  if (!IsIdentified(candidate.key.kind)) return candidate.own_uid();
  std::string known = catalog_.identities_->KnownUidOf(candidate.key);
  const bool may_be_another =
      candidate.key.kind == ObjectKind::kPod && NamedBy(candidate.key) == nullptr;
  const bool own = !candidate.own_uid().empty() &&
                   (known.empty() || may_be_another || Replaces(candidate, PodUid(known)));
  return own ? candidate.own_uid() : known;
}

// ---- what nobody knows --------------------------------------------------------------------------

// What a source may have without having said so: that is not anybody else's then.
void ObjectCatalog::Merge::CollectUnknown() {
  for (const auto& [name, source] : catalog_.sources_) {
    if (!scope_) {
      for (const auto& [key, object] : source.unknown) AddUnknown(source, object);
      for (const auto& [key, object] : source.remembered) AddUnknown(source, object);
      continue;
    }
    for (const ObjectKey& key : scope_->keys) {
      const auto unknown = source.unknown.find(key);
      if (unknown != source.unknown.end()) AddUnknown(source, unknown->second);
      const auto known = source.remembered.find(key);
      if (known != source.remembered.end()) AddUnknown(source, known->second);
    }
  }
  for (const auto& [key, unknown] : out_.unknown) {
    if (catalog_.ended_.contains(key)) out_.ended_and_there.insert(key);
  }
}

void ObjectCatalog::Merge::AddUnknown(const Source& source, const UnknownObject& object) {
  catalog_.work_.Add();
  out_.unknown.try_emplace(object.key, Unknown{{source.name, object.file, 0}, object.reason});
}

void ObjectCatalog::Merge::AddUnknown(const Source& source, const KnownObject& object) {
  catalog_.work_.Add();
  const std::string why = WhyUnknown(source, object);
  if (why.empty()) return;
  out_.unknown.try_emplace(object.key, Unknown{{source.name, object.file, 0}, why});
}

// Why nobody knows whether an object that the last agent knew is there; "": that is known.
std::string ObjectCatalog::Merge::WhyUnknown(const Source& source,
                                             const KnownObject& object) const {
  if (!source.HasDelivered(object.key.kind)) return NotDelivered(source.name);
  if (catalog_.absence_ends_.contains(source.name) || WasEnded(object.key, object.uid)) return "";
  // A source has what a command has put in its place.
  if (object.key.kind == ObjectKind::kPod && IsReplacedByListed(PodUid(object.uid))) {
    return "";
  }
  // It does not end by being absent, and nothing is left of it that could be Missing.
  if (OutlivesPods(object.key.kind)) return object.object == nullptr ? kLostWithoutCommand : "";
  return catalog_.WhereItMayHaveMoved(source.name, /*as_told=*/false);
}

bool ObjectCatalog::Merge::IsReplacedByListed(const PodUid& uid) const {
  return catalog_.replaced_uids_.contains(uid);
}

// ---- what is Missing ----------------------------------------------------------------------------

// What outlives a pod does not end by being absent: neither what was here before, nor what a source
// had when the last agent ended and lacks in its first list.
void ObjectCatalog::Merge::KeepMissing() {
  if (!scope_) {
    for (const auto& [key, old] : catalog_.entries_) KeepIfMissing(key, old);
    for (const auto& [name, source] : catalog_.sources_) {
      for (const auto& [key, object] : source.remembered) KeepRemembered(source, object);
    }
    return;
  }
  for (const ObjectKey& key : scope_->keys) {
    if (!OutlivesPods(key.kind)) continue;
    if (const Entry* old = catalog_.FindEntry(key)) KeepIfMissing(key, *old);
    for (const auto& [name, source] : catalog_.sources_) {
      const auto known = source.remembered.find(key);
      if (known != source.remembered.end()) KeepRemembered(source, known->second);
    }
  }
}

void ObjectCatalog::Merge::KeepRemembered(const Source& source, const KnownObject& object) {
  if (!source.HasDelivered(object.key.kind) || object.object == nullptr ||
      out_.unknown.contains(object.key))
    return;
  Entry old{object.object, {}};
  old.standing.origin = {source.name, object.file, 0};
  KeepIfMissing(object.key, old);
}

// Taken from a list that came before the commands on record were known, and given another uid:
// its file lacks nothing, but is refused.
bool ObjectCatalog::Merge::IsItRefused(const ObjectKey& key, const Entry& old) const {
  const auto [first, last] = refused_without_uid_.equal_range(key);
  return !old.standing.missing && std::any_of(first, last, [&old](const auto& refused) {
    return SameFile(refused.second, old.standing.origin);
  });
}

void ObjectCatalog::Merge::KeepIfMissing(const ObjectKey& key, const Entry& old) {
  const ObjectOrigin& origin = old.standing.origin;
  if (!OutlivesPods(key.kind) || out_.entries.contains(key)) return;
  if (catalog_.absence_ends_.contains(origin.source)) return;
  if (WasEnded(key, MetaOf(*old.object).uid) || IsItRefused(key, old)) return;
  Entry& kept = out_.entries[key] = old;
  if (old.standing.missing) return;
  kept.standing = {};
  kept.standing.origin = origin;
  kept.standing.missing = true;
  kept.standing.missing_since_unix_millis = catalog_.clock_.WallUnixMillis();
}

}  // namespace volumed
