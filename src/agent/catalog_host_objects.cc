#include "agent/catalog_host_objects.h"

#include <variant>

#include "base/strings.h"
#include "kube/about_object.h"
#include "volumemanager/claims/refused_objects.h"

namespace volumed {
namespace {

bool IsForPlugins(ObjectKind kind) {
  return kind == ObjectKind::kSecret || kind == ObjectKind::kConfigMap ||
         kind == ObjectKind::kCsiNode || kind == ObjectKind::kVolumeAttachment;
}

// The pointer shares the object's reference count: the value lives as long as anybody reads it.
template <typename T>
Result<std::shared_ptr<const T>> Typed(const Result<ObjectPtr>& object) {
  if (!object.ok()) return object.error();
  return std::shared_ptr<const T>(*object, &std::get<T>(**object));
}

}  // namespace

void CatalogHostObjects::Follow(const std::vector<ObjectChange>& changes) {
  MutexLock lock(mu_);
  for (const ObjectChange& change : changes) {
    if (!IsForPlugins(change.key.kind)) continue;
    unknown_.erase(change.key);
    if (change.after) {
      objects_[change.key] = change.after;
    } else {
      objects_.erase(change.key);
    }
    if (change.what == ObjectChange::What::kUnknown) {
      unknown_[change.key] = change.file + ": " + change.reason;
    }
  }
}

void CatalogHostObjects::SetWaitsFor(const std::vector<std::string>& sources) {
  MutexLock lock(mu_);
  waits_for_ = sources.empty() ? "" : "no complete list yet from: " + Join(sources, ", ");
}

void CatalogHostObjects::SetRefused(const std::map<ObjectKey, ObjectOrigin>& refused) {
  std::map<ObjectKey, std::string> texts;
  for (const auto& [key, origin] : refused) {
    if (IsForPlugins(key.kind)) texts[key] = RefusedText(key.kind, origin);
  }
  MutexLock lock(mu_);
  refused_ = std::move(texts);
}

Error CatalogHostObjects::WhyNot(const ObjectKey& key) const {
  if (const auto unknown = unknown_.find(key); unknown != unknown_.end()) {
    return Error::NotApplied(Code::kUnavailable,
                             ToString(key) + " is not known now: " + unknown->second);
  }
  if (!waits_for_.empty()) {
    return Error::NotApplied(Code::kUnavailable,
                             ToString(key) + " is not known yet: " + waits_for_);
  }
  const std::string refused = WhyRefused(key);
  return Error::NotApplied(Code::kNotFound,
                           ToString(key) + " not found" + (refused.empty() ? "" : ": " + refused));
}

std::string CatalogHostObjects::WhyRefused(const ObjectKey& key) const {
  const auto refused = refused_.find(key);
  return refused == refused_.end() ? "" : "it was " + refused->second;
}

std::string CatalogHostObjects::WhyNotFound(const ObjectKey& object) const {
  MutexLock lock(mu_);
  return WhyRefused(object);
}

Result<ObjectPtr> CatalogHostObjects::GetObject(const ObjectKey& key) const {
  MutexLock lock(mu_);
  if (const auto found = objects_.find(key); found != objects_.end()) return found->second;
  return AboutObject(WhyNot(key), key);
}

std::vector<ObjectPtr> CatalogHostObjects::ListObjects(ObjectKind kind) const {
  MutexLock lock(mu_);
  std::vector<ObjectPtr> objects;
  for (auto at = objects_.lower_bound({kind, "", ""});
       at != objects_.end() && at->first.kind == kind; ++at) {
    objects.push_back(at->second);
  }
  return objects;
}

Result<std::shared_ptr<const SecretObject>> CatalogHostObjects::GetSecret(
    const std::string& ns, const std::string& name) const {
  return Typed<SecretObject>(GetObject({ObjectKind::kSecret, ns, name}));
}

Result<std::shared_ptr<const ConfigMapObject>> CatalogHostObjects::GetConfigMap(
    const std::string& ns, const std::string& name) const {
  return Typed<ConfigMapObject>(GetObject({ObjectKind::kConfigMap, ns, name}));
}

}  // namespace volumed
