// What names the storage of an in-tree volume: ids, zones in a label, the name of a Secret. Lines
// of the input: volumeID, the zone label's value, the Secret's name, the volume's name.
#include <optional>
#include <string>
#include <utility>

#include "base/strings.h"
#include "fuzz/fuzz.h"
#include "volume/csi_topology.h"
#include "volume/csi_translation.h"

namespace volumed::csi_translation_fuzz {
namespace {

// Of what is translated nothing is in-tree any more; of what is not, something is said.
std::optional<CsiPersistentVolumeSource> CheckTranslated(const VolumeSpec& spec) {
  const std::optional<Result<VolumeSpec>> translated = TranslateToCsi(spec, "shop");
  FUZZ_CHECK(translated.has_value());
  if (!translated->ok()) {
    fuzz::CheckError(translated->error());
    FUZZ_CHECK(translated->error().outcome() == Outcome::kNotApplied);
    return std::nullopt;
  }
  const VolumeSpec& csi = **translated;
  FUZZ_CHECK(csi.migrated() && csi.volume() == nullptr && !csi.name().empty());
  FUZZ_CHECK(csi.inline_for_csi_migration() == (spec.volume() != nullptr));
  FUZZ_CHECK(!TranslateToCsi(csi, "shop").has_value());
  const auto* source = csi.SourceAs<CsiPersistentVolumeSource>();
  FUZZ_CHECK(source != nullptr && !source->driver.empty());
  return *source;
}

std::optional<CsiPersistentVolumeSource> CheckVolume(PersistentVolumeSource source,
                                                     const std::string& zones) {
  PersistentVolume volume;
  volume.metadata.name = "pv";
  volume.metadata.labels[kZoneLabel] = zones;
  volume.spec.source = std::move(source);
  volume.spec.claim_ref = ClaimReference{"shop", "claim", ""};
  return CheckTranslated(VolumeSpec::FromPersistentVolume(std::move(volume), false));
}

void CheckZones(const std::string& label) { FUZZ_CHECK(Join(ZonesOf(label), "__") == label); }

}  // namespace

FUZZ_TARGET(csi_translation)(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::TextOf(data, size);
  const auto next = [&rest] { return std::string(fuzz::TakeLine(rest).value_or("")); };
  const std::string id = next();
  const std::string zones = next();
  const std::string secret = next();
  const std::string name = next();
  CheckZones(zones);
  if (const auto ebs = CheckVolume(AwsElasticBlockStoreVolumeSource{id, "", 0, false}, zones)) {
    FUZZ_CHECK(ebs->volume_handle == id || ebs->volume_handle.find('/') == std::string::npos);
    FUZZ_CHECK(ebs->volume_handle == id || ebs->volume_handle.starts_with("vol-"));
  }
  if (const auto disk = CheckVolume(GcePersistentDiskVolumeSource{id, "", 0, false}, zones)) {
    FUZZ_CHECK(disk->volume_handle.ends_with("/disks/" + id));
  }
  CheckVolume(VsphereVirtualDiskVolumeSource{id, "", "", ""}, zones);
  if (const auto share = CheckTranslated(
          VolumeSpec::FromVolume({name, AzureFileVolumeSource{secret, id, false}}))) {
    FUZZ_CHECK(share->volume_handle.ends_with("#" + id + "#" + name + "#shop"));
    FUZZ_CHECK(share->node_stage_secret_ref->name == secret);
  }
  return 0;
}

}  // namespace volumed::csi_translation_fuzz
