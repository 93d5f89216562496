#include "agent/object_use.h"

#include <memory>
#include <variant>
#include <vector>

#include "agent/driver_commands.h"
#include "base/strings.h"
#include "csi/csi_create_request.h"

namespace volumed {
namespace {

std::vector<std::string> NamesOf(const std::vector<ClaimKey>& claims) {
  std::vector<std::string> names;
  for (const ClaimKey& claim : claims) names.push_back(ToString(claim));
  return names;
}

std::string UseOfClass(const ObjectCatalog& catalog, const VolumeManager& manager,
                       const std::string& name) {
  std::vector<std::string> parts;
  const std::vector<std::string> waiting = NamesOf(manager.storage().ClaimsThatWaitIn(name));
  if (!waiting.empty()) {
    parts.push_back("claims of it wait for a volume: " + FirstOf(waiting) +
                    "; none is made for them until there is a class of that name again");
  }
  const auto storage_class = catalog.FindStorageClass(name);
  if (storage_class != nullptr && storage_class->allow_volume_expansion) {
    const std::vector<std::string> bound = NamesOf(manager.storage().BoundClaimsOf(name));
    if (!bound.empty()) {
      parts.push_back("claims of it can be made larger by it alone: " + FirstOf(bound) +
                      "; none of them is until there is a class of that name again");
    }
  }
  return Join(parts, "; ");
}

std::string UseOfSecret(const ObjectCatalog& catalog, const VolumeManager& manager,
                        const ObjectKey& secret) {
  std::vector<std::string> parts, classes;
  const std::vector<std::string> volumes = manager.storage().VolumesWithSecret(secret);
  for (const auto& storage_class : catalog.StorageClasses()) {
    if (!SecretsNamedByClass(storage_class->parameters).contains(secret)) continue;
    classes.push_back(storage_class->metadata.name);
  }
  if (!volumes.empty()) {
    parts.push_back("PersistentVolumes name it for calls to their driver: " + FirstOf(volumes));
  }
  if (!classes.empty()) {
    parts.push_back("StorageClasses name it for the volumes that are made: " + FirstOf(classes));
  }
  if (parts.empty()) return "";
  return Join(parts, "; ") +
         "; a call that needs it waits until there is a Secret of that name again";
}

// "default/web, volume cache" of each inline volume of the driver.
std::vector<std::string> InlineVolumesOf(const ObjectCatalog& catalog, const std::string& driver) {
  std::vector<std::string> volumes;
  for (const std::shared_ptr<const Pod>& pod : catalog.Pods()) {
    for (const PodVolume& volume : pod->spec.volumes) {
      const auto* csi = std::get_if<CsiVolumeSource>(&volume.source);
      if (csi == nullptr || csi->driver != driver) continue;
      volumes.push_back(pod->metadata.name_space + "/" + pod->metadata.name + "/" + volume.name);
    }
  }
  return volumes;
}

std::string UseOfDriver(const ObjectCatalog& catalog, const VolumeManager& manager,
                        const std::string& driver) {
  std::vector<std::string> parts;
  const std::vector<std::string> volumes = manager.storage().VolumesOfDriver(driver);
  const std::vector<std::string> inlines = InlineVolumesOf(catalog, driver);
  if (!volumes.empty()) parts.push_back("PersistentVolumes of it are here: " + FirstOf(volumes));
  if (!inlines.empty()) parts.push_back("pods have inline volumes of it: " + FirstOf(inlines));
  if (parts.empty()) return "";
  return Join(parts, "; ") +
         "; what is mounted stays, and what is set up before there is a CSIDriver of that name "
         "again goes by the defaults (attachRequired: true, volumeLifecycleModes: Persistent)";
}

}  // namespace

std::string WarningOfUse(const ObjectCatalog& catalog, const VolumeManager& manager,
                         const ObjectKey& object) {
  if (object.kind == ObjectKind::kStorageClass) return UseOfClass(catalog, manager, object.name);
  if (object.kind == ObjectKind::kCsiDriver) return UseOfDriver(catalog, manager, object.name);
  if (object.kind == ObjectKind::kSecret) return UseOfSecret(catalog, manager, object);
  return "";
}

}  // namespace volumed
