#include "operation/published_content.h"

#include <algorithm>

namespace volumed {
namespace {

void Add(ContentKey::Mac& mac, const SafePath& path) {
  mac.Add(path.root);
  mac.Add(path.relative);
  mac.Add(static_cast<uint64_t>(path.resolve));
}

void Add(ContentKey::Mac& mac, const std::optional<uint32_t>& number) {
  mac.Add(number ? uint64_t{*number} + 1 : uint64_t{0});
}

void Add(ContentKey::Mac& mac, const std::vector<std::string>& texts) {
  mac.Add(uint64_t{texts.size()});
  for (const std::string& text : texts) mac.Add(text);
}

void Add(ContentKey::Mac& mac, const PayloadFile& file, const std::string& issuer) {
  mac.Add(file.path);
  mac.Add(uint64_t{file.mode});
  Add(mac, file.uid);
  mac.Add(uint64_t{file.issued});
  mac.Add(file.issued ? issuer : file.content.Reveal());
}

// But for `is_refresh`, which tells how it is made and not what.
void Add(ContentKey::Mac& mac, const VolumePayload& payload, const std::string& issuer) {
  mac.Add(uint64_t{payload.files.size()});
  for (const PayloadFile& file : payload.files) Add(mac, file, issuer);
  Add(mac, payload.nested_mount_points);
}

}  // namespace

std::string PublishedMac(const VolumeHost& host, const EnsureVolume& volume,
                         const std::vector<PrepareSubPath>& sub_paths) {
  if (host.content_key == nullptr) return "";
  ContentKey::Mac mac = host.content_key->Begin();
  Add(mac, volume.target);
  mac.Add(uint64_t{volume.mode});
  mac.Add(uint64_t{volume.parent_mode});
  mac.Add(uint64_t{volume.tmpfs.has_value()});
  if (volume.tmpfs) Add(mac, *volume.tmpfs);
  Add(mac, volume.marker);
  Add(mac, volume.gid);
  mac.Add(uint64_t{volume.payload.has_value()});
  if (volume.payload) Add(mac, *volume.payload, host.tokens.Issuer());
  mac.Add(uint64_t{sub_paths.size()});
  for (const PrepareSubPath& sub_path : sub_paths) {
    Add(mac, sub_path.volume);
    mac.Add(sub_path.sub_path);
    Add(mac, sub_path.parent);
    Add(mac, sub_path.target);
  }
  return mac.End();
}

bool IsHandedOutStill(const MountRequest& request, const VolumePlugin& plugin,
                      const std::optional<PodVolumeRecord>& record) {
  if (!plugin.HandsOutWhatIsThere() || request.has_device || !request.unique_name.empty()) {
    return false;
  }
  if (request.found_as != "" || !request.sub_paths.empty()) return false;
  // Of which nobody knows what the pod was given, that is looked at once.
  return record && record->state == VolumeState::kSetUp && !record->uncertain &&
         !record->storage.empty() && record->sub_paths.empty() &&
         record->fault_domain == plugin.FaultDomain(request.spec);
}

bool MayBeInPlace(const MountRequest& request, const std::optional<PodVolumeRecord>& record,
                  const Clock& clock) {
  if (!request.found_as || !record || record->state != VolumeState::kSetUp || record->uncertain) {
    return false;
  }
  if (record->published.mac.empty() || *request.found_as != record->published.fs_type) return false;
  const std::optional<Freshness> fresh = record->published.freshness();
  const int64_t now = clock.WallUnixMillis();
  if (fresh && (now < fresh->from_unix_ms || now >= fresh->until_unix_ms)) return false;
  return std::equal(record->sub_paths.begin(), record->sub_paths.end(), request.sub_paths.begin(),
                    request.sub_paths.end(), [](const auto& had, const SubPathRequest& wanted) {
                      return had.container == wanted.container && had.index == wanted.index;
                    });
}

}  // namespace volumed
