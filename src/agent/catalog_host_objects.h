// CatalogHostObjects: the secrets and config maps of the catalog for plugins, which run on executor
// threads while the catalog belongs to the control thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kube/object_catalog.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: Follow on the control thread; the rest any.
class CatalogHostObjects final : public HostObjects {
 public:
  CatalogHostObjects() = default;

  // Takes the changes over, as the catalog tells them; to be registered before whoever starts
  // operations on them. `all_complete`: every expected source has delivered.
  void Follow(const std::vector<ObjectChange>& changes) EXCLUDES(mu_);
  void SetAllSourcesComplete(bool all_complete) EXCLUDES(mu_);

  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                        const std::string& name) const override;
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(
      const std::string& ns, const std::string& name) const override;

 private:
  template <typename T>
  Result<std::shared_ptr<const T>> Get(ObjectKind kind, const std::string& ns,
                                       const std::string& name) const EXCLUDES(mu_);

  mutable Mutex mu_;
  std::map<ObjectKey, ObjectPtr> objects_ GUARDED_BY(mu_);
  bool all_complete_ GUARDED_BY(mu_) = false;
};

}  // namespace volumed
