#include "volumemanager/object_uids.h"

#include <utility>

namespace volumed {

ObjectUids::ObjectUids(LastingRows::Parts parts, Hooks hooks)
    : hooks_(std::move(hooks)),
      rows_(parts, kObjectUidRecordKind, kObjectUidRecordDurability, [this](const std::string&) {
        if (Settled()) hooks_.settled();
      }) {}

void ObjectUids::Restore(const std::vector<ObjectUidRecord>& records,
                         const std::vector<QuarantinedRecord>& unreadable) {
  for (const ObjectUidRecord& record : records) uids_[record.object] = record.uid;
  for (const QuarantinedRecord& row : unreadable) {
    if (row.kind == kObjectUidRecordKind) unreadable_.insert(row.key);
  }
}

std::string ObjectUids::UidOf(const ObjectKey& object) {
  const auto found = uids_.find(object);
  if (found != uids_.end()) return found->second;
  if (unreadable_.contains(RecordKey(object))) return "";
  std::string uid = hooks_.new_uid(object);
  uids_[object] = uid;
  rows_.Put(EncodeRecord(ObjectUidRecord{object, uid}));
  return uid;
}

void ObjectUids::Forget(const ObjectKey& object) {
  if (uids_.erase(object) > 0) rows_.Remove(RecordKey(object));
}

void ObjectUids::ForgetThoseNotIn(const ObjectCatalog& catalog) {
  std::vector<ObjectKey> gone;
  for (const auto& [object, uid] : uids_) {
    if (catalog.FindObject(object) == nullptr) gone.push_back(object);
  }
  for (const ObjectKey& object : gone) Forget(object);
}

}  // namespace volumed
