#include "operation/recorded_volume.h"

#include <utility>
#include <variant>

#include "kube/decode.h"
#include "kube/objects.h"

namespace volumed {
namespace {

constexpr const char* kCarrierName = "snapshot";
// Annotations of a volume that was translated for a CSI driver. The second has the name of one that
// stands in for an inline volume, which is none that an object may have.
constexpr const char* kMigrated = "volumed.io/csi-migrated";
constexpr const char* kStandInName = "volumed.io/csi-stand-in-name";

Error NoVolume(const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, "the volume's snapshot is unreadable: " + why);
}

// A manifest may have annotations of these names too; they say nothing about the volume.
void NoteMigration(const VolumeSpec& spec, ObjectMeta& metadata) {
  metadata.annotations.erase(kMigrated);
  metadata.annotations.erase(kStandInName);
  if (spec.inline_for_csi_migration()) {
    metadata.annotations[kStandInName] = metadata.name;
    metadata.name = kCarrierName;
  } else if (spec.migrated()) {
    metadata.annotations[kMigrated] = "true";
  }
}

VolumeSpec SpecOf(PersistentVolume volume) {
  StringMap& annotations = volume.metadata.annotations;
  const bool migrated = annotations.erase(kMigrated) > 0;
  const auto stand_in = annotations.extract(kStandInName);
  if (!stand_in.empty()) volume.metadata.name = stand_in.mapped();
  VolumeSpec spec = VolumeSpec::FromPersistentVolume(std::move(volume), false);
  if (!stand_in.empty()) return spec.WithInlineForCsiMigration();
  return migrated ? spec.WithCsiMigration() : spec;
}

}  // namespace

std::string EncodeRecordedVolume(const VolumeSpec& spec) {
  if (spec.persistent_volume() != nullptr) {
    PersistentVolume volume = *spec.persistent_volume();
    // Of one that its plugin constructed only the source is known; without these it is none.
    if (volume.spec.access_modes.empty()) {
      volume.spec.access_modes = {AccessMode::kReadWriteOnce};
    }
    if (volume.spec.capacity.Value() <= 0) volume.spec.capacity = Quantity::FromBytes(1);
    NoteMigration(spec, volume.metadata);
    return EncodeObjectJson(Object(std::move(volume)));
  }
  if (spec.volume() == nullptr) return "";
  Pod carrier;
  carrier.metadata.name = kCarrierName;
  carrier.metadata.uid = kCarrierName;
  carrier.spec.volumes.push_back(*spec.volume());
  // A pod without a container is none.
  carrier.spec.containers.emplace_back();
  carrier.spec.containers.back().name = kCarrierName;
  carrier.spec.containers.back().image = kCarrierName;
  return EncodeObjectJson(Object(std::move(carrier)));
}

Result<VolumeSpec> DecodeRecordedVolume(const std::string& volume_json) {
  ManifestDecode decoded = DecodeManifest("record", volume_json);
  if (!decoded.problems.empty()) return NoVolume(decoded.problems.front().ToString());
  if (decoded.objects.size() == 1) {
    if (PersistentVolume* volume = std::get_if<PersistentVolume>(&decoded.objects.front().object)) {
      return SpecOf(std::move(*volume));
    }
    if (Pod* carrier = std::get_if<Pod>(&decoded.objects.front().object);
        carrier != nullptr && carrier->spec.volumes.size() == 1) {
      return VolumeSpec::FromVolume(std::move(carrier->spec.volumes.front()));
    }
  }
  return NoVolume("it is something else than one volume");
}

std::optional<VolumeSpec> ReadRecordedVolume(const std::string& volume_json) {
  if (volume_json.empty()) return std::nullopt;
  Result<VolumeSpec> spec = DecodeRecordedVolume(volume_json);
  return spec.ok() ? std::optional<VolumeSpec>(*std::move(spec)) : std::nullopt;
}

std::shared_ptr<const PersistentVolume> DecodePersistentVolume(const std::string& volume_json) {
  const Result<VolumeSpec> spec = DecodeRecordedVolume(volume_json);
  if (!spec.ok() || spec->persistent_volume() == nullptr) return nullptr;
  return std::make_shared<const PersistentVolume>(*spec->persistent_volume());
}

}  // namespace volumed
