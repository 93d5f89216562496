// CatalogHostObjects: the secrets and config maps of the catalog for plugins, which run on executor
// threads while the catalog belongs to the control thread. As the catalog it has three answers: the
// object, NotFound only if it is certainly absent, and Unavailable, with the file, if nobody knows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kube/object_catalog.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: Follow, SetWaitsFor and SetRefused on the control thread; the rest any.
class CatalogHostObjects final : public HostObjects {
 public:
  CatalogHostObjects() = default;

  // Takes the changes over, as the catalog tells them; to be registered before whoever starts
  // operations on them.
  void Follow(const std::vector<ObjectChange>& changes) EXCLUDES(mu_);
  // The sources that have not delivered a complete list yet.
  void SetWaitsFor(const std::vector<std::string>& sources) EXCLUDES(mu_);
  // What commands have deleted and manifests still have: whoever asks for it is told so.
  void SetRefused(const std::map<ObjectKey, ObjectOrigin>& refused) EXCLUDES(mu_);

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
  std::map<ObjectKey, std::string> unknown_ GUARDED_BY(mu_);  // -> why, with the file
  std::map<ObjectKey, std::string> refused_ GUARDED_BY(mu_);  // -> why, with the file
  // Until somebody says which sources there are, none has delivered.
  std::string waits_for_ GUARDED_BY(mu_) = "not every source has delivered";
};

}  // namespace volumed
