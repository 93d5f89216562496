#include "operation/storage_record_identity.h"

#include <algorithm>

namespace volumed {
namespace {

using Keys = std::vector<std::string>;

Keys LastingOf(const Keys& keys) {
  Keys lasting;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(lasting), IsLastingKey);
  return lasting;
}

// Both are sorted.
bool Meet(const Keys& a, const Keys& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& key) {
    return std::binary_search(b.begin(), b.end(), key);
  });
}

Keys Union(const Keys& a, const Keys& b) {
  Keys both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

bool IsDevice(const StorageHolder& holder) { return holder.id.starts_with("device/"); }

bool IsUsed(const StorageOwnerRecord& record) {
  return !record.claim_uid.empty() || record.mode != StorageMode::kUnknown;
}

bool TellsDevice(const StorageOwnerRecord& record) { return record.mode != StorageMode::kUnknown; }

bool TellsIdentity(const StorageOwnerRecord& record) {
  return !record.own_keys.empty() || record.object.inode != 0;
}

bool Ruins(StorageUse use, StorageMode recorded) {
  if (use == StorageUse::kFormat) return true;
  if (use == StorageUse::kRaw) return recorded != StorageMode::kRaw;
  return recorded == StorageMode::kRaw;
}

bool MeetsDevice(const StorageOwnerRecord& record, const StorageIdentity& device) {
  return Meet(record.own_keys, device.own) || Meet(record.within_keys, device.own) ||
         Meet(record.own_keys, device.made_of);
}

bool MeetsDirectory(const StorageOwnerRecord& record, const StorageIdentity& directory) {
  return Meet(record.own_keys, directory.within);
}

void KeepIdentity(const StorageOwnerRecord& before, StorageOwnerRecord& record) {
  const bool same = before.claim_uid.empty() || before.claim_uid == record.claim_uid;
  if (!same) return;
  record.mode = before.mode;
  record.own_keys = before.own_keys;
  record.within_keys = before.within_keys;
  record.files = before.files;
}

void AddIdentity(const StorageIdentity& identity, StorageOwnerRecord& record) {
  const Keys own = LastingOf(identity.own);
  const Keys within = LastingOf(identity.within);
  // A path that leads to another disk by now does not make the claim's data on the first go away.
  const bool other = !record.own_keys.empty() && !Meet(record.own_keys, own);
  record.own_keys = other ? Union(record.own_keys, own) : own;
  record.within_keys = other ? Union(record.within_keys, within) : within;
  if (!other) record.files.clear();
  for (const StorageFile& file : identity.files) {
    const bool known =
        std::find(record.files.begin(), record.files.end(), file) != record.files.end();
    if (!known) record.files.push_back(file);
  }
}

void ForgetIdentity(StorageOwnerRecord& record) {
  record.mode = StorageMode::kUnknown;
  record.own_keys.clear();
  record.within_keys.clear();
  record.files.clear();
}

}  // namespace volumed
