#include "agent/object_use.h"

#include <memory>
#include <variant>
#include <vector>

#include "agent/driver_commands.h"
#include "base/strings.h"

namespace volumed {
namespace {

std::string UseOfClass(const VolumeManager& manager, const std::string& name) {
  std::vector<std::string> claims;
  for (const ClaimKey& claim : manager.storage().ClaimsThatWaitIn(name)) {
    claims.push_back(ToString(claim));
  }
  if (claims.empty()) return "";
  return "claims of it wait for a volume: " + FirstOf(claims) +
         "; none is made for them until there is a class of that name again";
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
  if (object.kind == ObjectKind::kStorageClass) return UseOfClass(manager, object.name);
  if (object.kind == ObjectKind::kCsiDriver) return UseOfDriver(catalog, manager, object.name);
  return "";
}

}  // namespace volumed
