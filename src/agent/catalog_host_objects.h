// CatalogHostObjects: gives plugins the Secrets, ConfigMaps, CSINodes and VolumeAttachments of the
// catalog. Plugins run on executor threads, while the catalog belongs to the control thread; so
// this class keeps its own map. Like the catalog it has three answers: the object; NotFound only if
// the object is certainly absent; and Unavailable, naming the file, if that is not known.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kube/object_catalog.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: Follow, SetWaitsFor and SetRefused on the control thread; the other methods any. Blocks:
// never. The objects that it gives out are immutable and live as long as the caller keeps them,
// whatever becomes of them in the catalog.
class CatalogHostObjects final : public HostObjects {
 public:
  CatalogHostObjects() = default;

  // Takes over the changes that the catalog reports. REQUIRES: it is registered with the catalog
  // before any listener that starts operations because of the same changes.
  void Follow(const std::vector<ObjectChange>& changes) EXCLUDES(mu_);
  // Names the sources that have not delivered a complete list yet. As long as there are some, an
  // object that none of the others has is Unavailable and not NotFound.
  void SetWaitsFor(const std::vector<std::string>& sources) EXCLUDES(mu_);
  // Names the objects that commands have deleted and that manifests still have: the error for such
  // an object says so.
  void SetRefused(const std::map<ObjectKey, ObjectOrigin>& refused) EXCLUDES(mu_);

  // An object of one of these kinds. The errors of this and the next two, not applied, and about
  // the object (kube/about_object.h): NotFound; Unavailable.
  Result<ObjectPtr> GetObject(const ObjectKey& key) const EXCLUDES(mu_);
  // Those that are found, by namespace and name.
  std::vector<ObjectPtr> ListObjects(ObjectKind kind) const EXCLUDES(mu_);
  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                        const std::string& name) const override;
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(
      const std::string& ns, const std::string& name) const override;
  std::string WhyNotFound(const ObjectKey& object) const override EXCLUDES(mu_);

 private:
  // Why there is no such object.
  Error WhyNot(const ObjectKey& key) const REQUIRES(mu_);
  std::string WhyRefused(const ObjectKey& key) const REQUIRES(mu_);

  mutable Mutex mu_;
  std::map<ObjectKey, ObjectPtr> objects_ GUARDED_BY(mu_);
  // Why it is not known whether the object exists, with the file.
  std::map<ObjectKey, std::string> unknown_ GUARDED_BY(mu_);
  // Why the object is refused, with the file.
  std::map<ObjectKey, std::string> refused_ GUARDED_BY(mu_);
  // Until SetWaitsFor names the sources, no source counts as having delivered.
  std::string waits_for_ GUARDED_BY(mu_) = "not every source has delivered";
};

}  // namespace volumed
