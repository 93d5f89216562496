#include "volumemanager/recorded_secrets.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "operation/recorded_volume.h"

namespace volumed {
namespace {

class SecretsOfRows {
 public:
  // `pod_namespace` is that of the pod that the row is of; "" if it is of none.
  void Add(const std::string& volume_json, const std::string& pod_namespace) {
    // The key under which both an inline and a persistent volume have a driver.
    if (volume_json.find("\"csi\"") == std::string::npos) return;
    // The rows of one volume mostly have one text.
    if (!read_.insert({volume_json, pod_namespace}).second) return;
    const std::optional<VolumeSpec> volume = ReadRecordedVolume(volume_json);
    if (volume) AddSentSecrets(*volume, pod_namespace, sent_);
  }
  SentSecretsByDriver Take() { return std::move(sent_); }

 private:
  std::set<std::pair<std::string_view, std::string_view>> read_;
  SentSecretsByDriver sent_;
};

}  // namespace

SentSecretsByDriver SecretsOnRecord(const FoundAtStart& found) {
  SecretsOfRows secrets;
  for (const DeviceRecord& device : found.devices) secrets.Add(device.volume_json, "");
  for (const PodVolumeRecord& volume : found.volumes) {
    secrets.Add(volume.volume_json, volume.pod_namespace);
  }
  for (const ClaimBindingRecord& binding : found.bindings) secrets.Add(binding.volume_json, "");
  for (const ProvisionRecord& made : found.provisioned) secrets.Add(made.volume_json, "");
  return secrets.Take();
}

}  // namespace volumed
