#include "csi/csi_earlier_secrets.h"

#include <utility>
#include <variant>

#include "csi.pb.h"
#include "csi/csi_create_request.h"
#include "csi/request_maps.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {
namespace {

// As any request that has them would be searched for.
std::vector<std::string> ValuesOf(const SecretObject& secret) {
  ::csi::v1::NodeStageVolumeRequest request;
  PutSecrets(secret.data, *request.mutable_secrets());
  return CsiSecretValuesIn(request);
}

std::vector<std::string> ValuesOf(const std::set<std::string>& mount_options) {
  ::csi::v1::NodeStageVolumeRequest request;
  auto& mount = *request.mutable_volume_capability()->mutable_mount();
  for (const std::string& option : mount_options) mount.add_mount_flags(option);
  return CsiSecretValuesIn(request);
}

// "secret default/login is there, which a volume on record names"
std::string UntilText(const std::set<ObjectKey>& awaited) {
  const size_t others = awaited.size() - 1;
  const std::string first = ToString(*awaited.begin());
  if (others == 0) return first + " is there, which a volume on record names";
  return first + " and " + std::to_string(others) + " more are there, which volumes on record name";
}

}  // namespace

std::shared_ptr<CsiSecretMemory> CsiEarlierSecrets::MemoryOf(const std::string& driver) const {
  const auto found = drivers_.find(driver);
  return found == drivers_.end() ? nullptr : found->second.memory.lock();
}

void CsiEarlierSecrets::DriverMade(const std::string& driver,
                                   const std::shared_ptr<CsiSecretMemory>& memory) {
  // Of those that never came nothing is kept.
  std::erase_if(drivers_, [](const auto& known) {
    return known.second.memory.expired() && known.second.recorded == SentSecrets();
  });
  Driver& made = drivers_[driver];
  made.memory = memory;
  Learn(driver, made);
}

void CsiEarlierSecrets::DriverForgotten(const std::string& driver) {
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return;
  for (const ObjectKey& key : found->second.recorded.objects) {
    const auto users = recorded_users_.find(key);
    if (users == recorded_users_.end()) continue;
    users->second.erase(driver);
    if (users->second.empty()) recorded_users_.erase(users);
  }
  drivers_.erase(found);
}

void CsiEarlierSecrets::TakeRecorded(SentSecretsByDriver recorded) {
  is_loaded_ = true;
  for (auto& of_driver : recorded) {
    const std::string& name = of_driver.first;
    for (const ObjectKey& key : of_driver.second.objects) recorded_users_[key].insert(name);
    drivers_[name].recorded = std::move(of_driver.second);
  }
  for (auto& [name, driver] : drivers_) Learn(name, driver);
}

void CsiEarlierSecrets::Learn(const std::string& name, Driver& driver) {
  const std::shared_ptr<CsiSecretMemory> memory = driver.memory.lock();
  if (memory == nullptr) return;
  if (!is_loaded_) return memory->Withhold("the agent has read its records");
  memory->Remember(ValuesOf(driver.recorded.mount_options));
  driver.awaited.clear();
  for (const ObjectKey& key : driver.recorded.objects) {
    const auto secret = parts_.objects.GetSecret(key.name_space, key.name);
    if (secret.ok()) {
      memory->Remember(ValuesOf(**secret));
    } else {
      driver.awaited.insert(key);
    }
  }
  Withhold(name, driver);
}

void CsiEarlierSecrets::Withhold(const std::string& name, Driver& driver) {
  const std::shared_ptr<CsiSecretMemory> memory = driver.memory.lock();
  if (memory == nullptr) return;
  const bool was_withheld = !memory->withheld_until().empty();
  memory->Withhold(driver.awaited.empty() ? "" : UntilText(driver.awaited));
  if (was_withheld && driver.awaited.empty() && parts_.shown) parts_.shown(name);
}

void CsiEarlierSecrets::Follow(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    if (change.after == nullptr) continue;
    const Object& object = *change.after;
    if (const auto* secret = std::get_if<SecretObject>(&object)) {
      SecretCame(change.key, *secret);
    } else if (are_objects_known_) {
      continue;
    } else if (const auto* volume = std::get_if<PersistentVolume>(&object)) {
      const auto* source = std::get_if<CsiPersistentVolumeSource>(&volume->spec.source);
      if (source != nullptr) NoteNamed(source->driver, SecretsNamedBy(*volume));
    } else if (const auto* storage_class = std::get_if<StorageClass>(&object)) {
      NoteNamed(storage_class->provisioner, SecretsNamedByClass(storage_class->parameters));
    }
  }
}

// Also of one that was known: what it held before stays remembered, for it was sent.
void CsiEarlierSecrets::SecretCame(const ObjectKey& key, const SecretObject& secret) {
  if (const auto users = named_users_.find(key); users != named_users_.end()) {
    for (const std::string& name : users->second) {
      if (const auto memory = MemoryOf(name)) memory->RememberEarlier(ValuesOf(secret));
    }
  }
  const auto users = recorded_users_.find(key);
  if (users == recorded_users_.end()) return;
  for (const std::string& name : users->second) {
    Driver& driver = drivers_[name];
    const std::shared_ptr<CsiSecretMemory> memory = driver.memory.lock();
    if (memory == nullptr) continue;
    memory->Remember(ValuesOf(secret));
    if (driver.awaited.erase(key) > 0) Withhold(name, driver);
  }
}

void CsiEarlierSecrets::NoteNamed(const std::string& driver, const std::set<ObjectKey>& secrets) {
  const std::shared_ptr<CsiSecretMemory> memory = MemoryOf(driver);
  if (memory == nullptr) return;  // one that was never seen was sent nothing
  for (const ObjectKey& key : secrets) {
    named_users_[key].insert(driver);
    const auto secret = parts_.objects.GetSecret(key.name_space, key.name);
    if (secret.ok()) memory->RememberEarlier(ValuesOf(**secret));
  }
}

void CsiEarlierSecrets::ObjectsComplete() {
  if (std::exchange(are_objects_known_, true)) return;
  named_users_.clear();
  for (const auto& [name, driver] : drivers_) {
    if (driver.awaited.empty() || driver.memory.expired()) continue;
    parts_.log.Warning("what a CSI driver says is withheld, as it may have a secret in it",
                       {{"driver", name}, {"until", UntilText(driver.awaited)}});
  }
}

}  // namespace volumed
