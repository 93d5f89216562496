#include "operation/volume_snapshot.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "kube/decode.h"
#include "kube/objects.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

// kube/ encodes whole objects: the volume travels in a pod of its own.
constexpr const char* kCarrierName = "snapshot";

Error NoVolume(const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, "the volume's snapshot is unreadable: " + why);
}

}  // namespace

std::string EncodeVolumeSnapshot(const VolumeSpec& spec) {
  if (spec.volume() == nullptr) return "";
  Pod carrier;
  carrier.metadata.name = kCarrierName;
  carrier.spec.volumes.push_back(*spec.volume());
  const Json pod = Json::parse(EncodeObjectJson(Object(std::move(carrier))), nullptr,
                               /*allow_exceptions=*/false);
  const Json::json_pointer place("/spec/volumes/0");
  return pod.contains(place) ? pod[place].dump() : "";
}

Result<VolumeSpec> DecodeVolumeSnapshot(const std::string& volume_json) {
  Json volume = Json::parse(volume_json, nullptr, /*allow_exceptions=*/false);
  if (volume.is_discarded() || !volume.is_object()) return NoVolume("it is no JSON object");
  const Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", kCarrierName}, {"uid", kCarrierName}}},
      {"spec",
       {{"containers", Json::array({{{"name", kCarrierName}, {"image", kCarrierName}}})},
        {"volumes", Json::array({std::move(volume)})}}}};
  ManifestDecode decoded = DecodeManifest("record", pod.dump());
  if (!decoded.problems.empty()) return NoVolume(decoded.problems.front().ToString());
  if (decoded.objects.size() == 1) {
    if (Pod* carrier = std::get_if<Pod>(&decoded.objects.front().object);
        carrier != nullptr && carrier->spec.volumes.size() == 1) {
      return VolumeSpec::FromVolume(std::move(carrier->spec.volumes.front()));
    }
  }
  return NoVolume("it decodes to something else than one volume");
}

}  // namespace volumed
