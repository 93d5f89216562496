#include "operation/recorded_volume.h"

#include <utility>
#include <variant>

#include "kube/decode.h"
#include "kube/objects.h"

namespace volumed {
namespace {

constexpr const char* kCarrierName = "snapshot";

Error NoVolume(const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, "the volume's snapshot is unreadable: " + why);
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
      return VolumeSpec::FromPersistentVolume(std::move(*volume), false);
    }
    if (Pod* carrier = std::get_if<Pod>(&decoded.objects.front().object);
        carrier != nullptr && carrier->spec.volumes.size() == 1) {
      return VolumeSpec::FromVolume(std::move(carrier->spec.volumes.front()));
    }
  }
  return NoVolume("it is something else than one volume");
}

std::shared_ptr<const PersistentVolume> DecodePersistentVolume(const std::string& volume_json) {
  const Result<VolumeSpec> spec = DecodeRecordedVolume(volume_json);
  if (!spec.ok() || spec->persistent_volume() == nullptr) return nullptr;
  return std::make_shared<const PersistentVolume>(*spec->persistent_volume());
}

}  // namespace volumed
