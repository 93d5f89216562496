#include "volumemanager/claims/known_objects.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "kube/decode.h"
#include "kube/object_directory.h"
#include "kube/static_pod.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {
namespace {

bool IsOnRecordElsewhere(const std::string& source) {
  return source == ObjectDirectory::kSourceName || source == Provisioning::kSourceName ||
         source == kCsiNodeSource || source == kSnapshotSource;
}

std::string ContentFor(const Object& object, const std::string& source) {
  const ObjectKind kind = KindOf(object);
  const bool only_that_it_exists = kind == ObjectKind::kSecret || kind == ObjectKind::kConfigMap;
  return only_that_it_exists || IsOnRecordElsewhere(source) ? "" : EncodeObjectJson(object);
}

}  // namespace

KnownObjects::KnownObjects(LastingRows::Parts parts, NodeName node_name, Hooks hooks)
    : node_name_(std::move(node_name)),
      hooks_(std::move(hooks)),
      rows_(parts, kKnownObjectRecordKind, kKnownObjectRecordDurability,
            [this](const std::string& key) { RowIsDurable(key); }),
      uid_rows_(parts, kObjectUidRecordKind, kObjectUidRecordDurability, [](const std::string&) {}),
      source_rows_(parts, kObjectSourceRecordKind, kObjectSourceRecordDurability,
                   [](const std::string&) {}) {}

// ---- the start ----------------------------------------------------------------------------------

void KnownObjects::Restore(const FoundAtStart& found) {
  for (const QuarantinedRecord& row : found.quarantined) {
    const bool of_uid = row.kind == kObjectUidRecordKind || row.kind == kKnownObjectRecordKind;
    if (of_uid) unreadable_.insert(row.key);
  }
  for (const KnownObjectRecord& record : found.objects) {
    records_[record.object] = record;
    if (!record.uid.empty()) SetUid(record.object, record.uid);
  }
  for (const ObjectSourceRecord& record : found.sources) {
    sources_[record.name] = record;
  }
  RestoreUids(found);
  RestoreUidsOfVolumes(found);
  for (const PodRecord& record : found.pods) RestorePod(record, found.ObjectOf(record.uid));
}

void KnownObjects::RestorePod(const PodRecord& record, const ObjectPtr& object) {
  KnownObject known{{ObjectKind::kPod, record.ns, record.name},
                    record.uid.str(),
                    record.file,
                    object,
                    record.terminating};
  const Pod* pod = known.object == nullptr ? nullptr : std::get_if<Pod>(known.object.get());
  const std::optional<std::string> base = pod == nullptr ? std::nullopt : StaticPodBaseName(*pod);
  if (base && StaticPodName(*base, node_name_) != record.name) {
    // The pod's source names the pod by the present name of the node.
    Pod today = *pod;
    today.metadata.name = known.key.name = StaticPodName(*base, node_name_);
    today.spec.node_name = node_name_.str();
    former_names_[{record.ns, today.metadata.name}] = record.name;
    known.object = std::make_shared<const Object>(std::move(today));
  }
  if (!record.left_source && !record.source.empty()) {
    pods_[record.source].push_back(std::move(known));
  }
}

// If a pod's own row is lost or cannot be read, the pod is the one that its volumes name: another
// pod of the same name must not start on empty volumes beside it.
void KnownObjects::RestoreUidsOfVolumes(const FoundAtStart& found) {
  std::set<PodUid> with_row;
  for (const PodRecord& record : found.pods) with_row.insert(record.uid);
  for (const PodVolumeRecord& volume : found.volumes) {
    const ObjectKey pod{ObjectKind::kPod, volume.pod_namespace, volume.pod_name};
    if (with_row.contains(volume.key.pod) || pod.name.empty() || uids_.contains(pod)) continue;
    SetUid(pod, volume.key.pod.str());
    const std::string today = StaticPodName(volume.pod_base_name, node_name_);
    const bool is_renamed = !volume.pod_base_name.empty() && today != pod.name;
    if (is_renamed) former_names_[{pod.name_space, today}] = pod.name;
  }
}

void KnownObjects::RestoreUids(const FoundAtStart& found) {
  for (const ObjectUidRecord& record : found.uids) {
    outdated_uids_.insert(RecordKey(record.object));
    if (uids_.try_emplace(record.object, record.uid).second) {
      Put({.object = record.object, .uid = record.uid});
    } else {
      RowIsDurable(RecordKey(record.object));
    }
  }
  // Claims whose manifests name a uid have no row in the records of the former release.
  for (const ClaimBindingRecord& record : found.bindings) {
    const ClaimBinding& binding = record.binding;
    if (binding.state != BindingState::kBound || binding.claim_uid.empty()) continue;
    // The binding belongs to a pod's own claim. A claim of that name that somebody makes is another
    // one.
    if (!record.pod_uid.empty()) continue;
    uids_.try_emplace(ObjectKeyOf(binding.claim), binding.claim_uid);
  }
  for (const PodRecord& record : found.pods) {
    const ObjectKey key{ObjectKind::kPod, record.ns, record.name};
    // Of two pods of one name, one leaves; the other has the name.
    if (record.terminating || record.left_source) {
      if (!uids_.contains(key)) SetUid(key, record.uid.str());
    } else {
      SetUid(key, record.uid.str());
    }
  }
}

std::map<std::string, SourceMemory> KnownObjects::TakeMemories() {
  std::map<std::string, SourceMemory> memories;
  for (auto& [source, pods] : std::exchange(pods_, {})) {
    memories[source].objects = std::move(pods);
  }
  for (const auto& [object, record] : records_) {
    if (record.missing || record.source.empty()) continue;
    memories[record.source].objects.push_back({object, record.uid, record.file,
                                               DecodeRecordedObject(record.object_json), false,
                                               record.mark});
  }
  for (const auto& [source, record] : sources_) {
    memories[source].directory = record.directory;
    memories[source].unproven = record.unproven;
  }
  memories.erase(Provisioning::kSourceName);
  memories.erase(kCsiNodeSource);
  memories.erase(kSnapshotSource);
  return memories;
}

std::string KnownObjects::NameOnRecord(const KnownObject& object) const {
  const auto former = former_names_.find({object.key.name_space, object.key.name});
  const bool is_pod = object.key.kind == ObjectKind::kPod;
  return is_pod && former != former_names_.end() ? former->second : object.key.name;
}

std::vector<KnownObjects::MissingObject> KnownObjects::Missing() const {
  std::vector<MissingObject> missing;
  for (const auto& [object, record] : records_) {
    if (!record.missing) continue;
    ObjectPtr content = DecodeRecordedObject(record.object_json);
    if (content == nullptr) continue;
    missing.push_back({record.source,
                       {object, record.uid, record.file, std::move(content)},
                       record.missing_since_unix_ms});
  }
  return missing;
}

// ---- identity -----------------------------------------------------------------------------------

std::string KnownObjects::KnownUidOf(const ObjectKey& object) const {
  const auto found = uids_.find(object);
  return found == uids_.end() ? "" : found->second;
}

std::string KnownObjects::UidOf(const ObjectKey& object) {
  std::string known = KnownUidOf(object);
  if (!known.empty() || unreadable_.contains(RecordKey(object))) return known;
  std::string uid = hooks_.new_uid(object);
  Adopt(object, uid);
  return uid;
}

void KnownObjects::SetUid(const ObjectKey& object, const std::string& uid) {
  std::string& known = uids_[object];
  if (object.kind == ObjectKind::kPod) {
    pods_by_uid_.erase(known);
    pods_by_uid_[uid] = object;
  }
  known = uid;
}

std::optional<ObjectKey> KnownObjects::PodOfUid(const PodUid& uid) const {
  const auto found = pods_by_uid_.find(uid.str());
  if (found == pods_by_uid_.end()) return std::nullopt;
  return found->second;
}

void KnownObjects::Adopt(const ObjectKey& object, const std::string& uid) {
  SetUid(object, uid);
  if (!HasUidOnRecord(object.kind)) return;
  KnownObjectRecord record = records_[object];
  record.object = object;
  record.uid = uid;
  Put(record);
}

void KnownObjects::Ended(const ObjectKey& object, const std::string& uid) {
  if (object.kind != ObjectKind::kPod && KnownUidOf(object) == uid) Forget(object);
}

// A static pod "a" is called "a-n1" on the node "n1"; a manifest's pod "a-n1" with a uid is another
// pod.
bool KnownObjects::IsOfStaticPod(const ObjectKey& pod) const {
  const auto known = uids_.find(pod);
  if (known == uids_.end()) return false;
  const PodOnNode here = hooks_.find_on_node(PodUid(known->second));
  return here.pod != nullptr && StaticPodBaseName(*here.pod).has_value();
}

std::string KnownObjects::NameOf(const Pod& pod) const {
  const ObjectKey own{ObjectKind::kPod, pod.metadata.name_space, pod.metadata.name};
  const std::optional<std::string> base = StaticPodBaseName(pod);
  if (base) {
    const auto former = former_names_.find({own.name_space, own.name});
    if (former != former_names_.end()) return former->second;
  }
  if (uids_.contains(own) && !(IsOfStaticPod(own) && !base)) return own.name;
  ObjectKey other = own;
  other.name = OtherNameOf(pod);
  const auto known = uids_.find(other);
  if (known == uids_.end()) return own.name;
  const PodOnNode here = hooks_.find_on_node(PodUid(known->second));
  if (here.pod == nullptr) return own.name;
  // The static pod "a-n1" is called "a" without its suffix; that is not the name of a manifest's
  // pod "a-n1".
  const std::optional<std::string> its = StaticPodBaseName(*here.pod);
  const bool is_same = base ? !its.has_value() : its == own.name;
  return is_same ? other.name : own.name;
}

// If the manifest gets a uid, the name loses its suffix; if it loses the uid, the name gets one.
std::string KnownObjects::OtherNameOf(const Pod& pod) const {
  return StaticPodBaseName(pod).value_or(StaticPodName(pod.metadata.name, node_name_));
}

void KnownObjects::PodGone(const ObjectKey& pod, const std::string& uid) {
  const auto found = uids_.find(pod);
  if (found == uids_.end() || found->second != uid) return;
  pods_by_uid_.erase(uid);
  uids_.erase(found);
  std::erase_if(former_names_, [&](const auto& former) {
    return former.first.first == pod.name_space && former.second == pod.name;
  });
}

// ---- the records --------------------------------------------------------------------------------

void KnownObjects::Follow(const ObjectCatalog& catalog, const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) FollowOne(catalog, change.key);
}

void KnownObjects::FollowAll(const ObjectCatalog& catalog) {
  std::set<ObjectKey> all;
  for (const auto& [object, record] : records_) all.insert(object);
  for (const ObjectKind kind : kAllObjectKinds) {
    if (kind == ObjectKind::kPod) continue;  // pods have records of their own
    for (ObjectKey& object : catalog.KeysOf(kind, "")) all.insert(std::move(object));
  }
  for (const ObjectKey& object : all) FollowOne(catalog, object);
}

void KnownObjects::FollowOne(const ObjectCatalog& catalog, const ObjectKey& object) {
  if (object.kind == ObjectKind::kPod) return;
  const ObjectPtr found = catalog.FindObject(object);
  if (found == nullptr) {
    const auto record = records_.find(object);
    if (record == records_.end()) return;
    // An object of which never more than the uid was known keeps its uid: it outlives its pods, and
    // no command has ended it.
    const bool only_uid = OutlivesPods(object.kind) && record->second.source.empty();
    const bool absent = catalog.LookUp(object).answer == ObjectLookup::Answer::kAbsent;
    if (absent && !only_uid) Forget(object);
    return;
  }
  const ObjectStanding standing = *catalog.StandingOf(object);
  KnownObjectRecord record{.object = object,
                           .uid = MetaOf(*found).uid,
                           .source = standing.origin.source,
                           .file = standing.origin.file,
                           .object_json = ContentFor(*found, standing.origin.source),
                           .missing = standing.missing,
                           .missing_since_unix_ms = standing.missing_since_unix_millis};
  const auto known = records_.find(object);
  if (!IsOnRecordElsewhere(record.source)) {
    record.mark = MarkOf(*found, known == records_.end() ? std::nullopt : known->second.mark);
  }
  if (known == records_.end() || known->second != record) Put(record);
}

void KnownObjects::Put(const KnownObjectRecord& record) {
  const std::string key = RecordKey(record.object);
  if (unreadable_.contains(key)) return;  // the unreadable row is left for a person
  const auto before = records_.find(record.object);
  const bool new_uid = before == records_.end() || before->second.uid != record.uid;
  if (new_uid && HasUidOnRecord(record.object.kind)) unsettled_.insert(key);
  records_[record.object] = record;
  rows_.Put(EncodeRecord(record));
}

void KnownObjects::Forget(const ObjectKey& object) {
  const std::string key = RecordKey(object);
  if (HasUidOnRecord(object.kind)) unsettled_.insert(key);
  forgotten_.insert(key);
  records_.erase(object);
  uids_.erase(object);
  rows_.Remove(key);
}

void KnownObjects::RowIsDurable(const std::string& key) {
  if (outdated_uids_.erase(key) > 0) uid_rows_.Remove(key);
  const bool is_gone = forgotten_.erase(key) > 0;
  const bool is_settled = unsettled_.erase(key) > 0 && unsettled_.empty();
  if (is_gone || is_settled) hooks_.settled();
}

void KnownObjects::NoteDirectory(const std::string& source, const KnownDirectory& directory,
                                 const UnprovenAbsences& unproven) {
  ObjectSourceRecord record{source, directory, unproven};
  const auto known = sources_.find(source);
  if (known != sources_.end() && known->second == record) return;
  source_rows_.Put(EncodeRecord(record));
  sources_[source] = std::move(record);
}

void KnownObjects::ForgetSource(const std::string& source) {
  if (sources_.erase(source) > 0) source_rows_.Remove(source);
}

}  // namespace volumed
