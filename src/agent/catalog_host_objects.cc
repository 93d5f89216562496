#include "agent/catalog_host_objects.h"

namespace volumed {

void CatalogHostObjects::Follow(const std::vector<ObjectChange>& changes) {
  MutexLock lock(mu_);
  for (const ObjectChange& change : changes) {
    if (change.key.kind != ObjectKind::kSecret && change.key.kind != ObjectKind::kConfigMap) {
      continue;
    }
    if (change.after) {
      objects_[change.key] = change.after;
    } else {
      objects_.erase(change.key);
    }
  }
}

void CatalogHostObjects::SetAllSourcesComplete(bool all_complete) {
  MutexLock lock(mu_);
  all_complete_ = all_complete;
}

template <typename T>
Result<std::shared_ptr<const T>> CatalogHostObjects::Get(ObjectKind kind, const std::string& ns,
                                                         const std::string& name) const {
  MutexLock lock(mu_);
  const ObjectKey key{kind, ns, name};
  if (const auto found = objects_.find(key); found != objects_.end()) {
    // Shares the object's count: the value lives as long as anyone reads it.
    return std::shared_ptr<const T>(found->second, &std::get<T>(*found->second));
  }
  if (!all_complete_) {
    return Error::NotApplied(Code::kUnavailable,
                             ToString(key) + " is not known yet: not every source has delivered");
  }
  return Error::NotApplied(Code::kNotFound, ToString(key) + " not found");
}

Result<std::shared_ptr<const SecretObject>> CatalogHostObjects::GetSecret(
    const std::string& ns, const std::string& name) const {
  return Get<SecretObject>(ObjectKind::kSecret, ns, name);
}

Result<std::shared_ptr<const ConfigMapObject>> CatalogHostObjects::GetConfigMap(
    const std::string& ns, const std::string& name) const {
  return Get<ConfigMapObject>(ObjectKind::kConfigMap, ns, name);
}

}  // namespace volumed
