#include "volumemanager/devices/attach_verifier.h"

#include <utility>

#include "operation/attach_operations.h"
#include "pluginmgr/attachable_volume_plugin.h"

namespace volumed {
namespace {

// Whether an answer of the plugin would say anything about the device.
bool CanBeVerified(const ActualDevice& device, const std::string& plugin_name) {
  if (!device.attachable || device.plugin_name != plugin_name) return false;
  if (!device.quarantine_reason.empty()) return false;
  switch (device.state) {
    case VolumeState::kAttached:
    case VolumeState::kMountingDevice:
    case VolumeState::kDeviceMounted:
    case VolumeState::kUnmountingDevice:
    case VolumeState::kExpanding:
      return true;
    case VolumeState::kDetached:
    case VolumeState::kAttaching:
    case VolumeState::kDetaching:
    case VolumeState::kNotSetUp:
    case VolumeState::kSettingUp:
    case VolumeState::kSetUp:
    case VolumeState::kTearingDown:
    case VolumeState::kMapping:
    case VolumeState::kMapped:
    case VolumeState::kUnmapping:
      return false;
  }
  __builtin_unreachable();
}

}  // namespace

AttachVerifier::AttachVerifier(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      queue_(parts.scheduler,
             [this](const std::string& plugin, Wake& wake) { Reconcile(plugin, wake); }) {}

void AttachVerifier::SetPeriod(Duration period) {
  period_ = period;
  for (const auto& [plugin, asked] : plugins_) MarkDirty(plugin);
}

const FailureHistory* AttachVerifier::FailureOf(const std::string& plugin_name) const {
  const auto found = plugins_.find(plugin_name);
  if (found == plugins_.end() || !found->second.failure) return nullptr;
  return &*found->second.failure;
}

std::optional<TimePoint> AttachVerifier::NextTime(const std::string& plugin_name,
                                                  TimePoint last) const {
  const Result<AttachableVolumePlugin*> plugin =
      parts_.plugins.FindAttachablePluginByName(plugin_name);
  const bool asks = plugin.ok() && *plugin != nullptr && (*plugin)->VerifiesAttachments();
  if (!asks || period_ <= Duration::zero()) return std::nullopt;
  return last + period_;
}

void AttachVerifier::Reconcile(const std::string& plugin_name, Wake& wake) {
  VerifyAttachedRequest request{plugin_name, {}};
  bool any = false;
  bool urgent = false;
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    if (!CanBeVerified(device, plugin_name)) continue;
    const std::set<PodUid>& users = parts_.desired.UsersOf(name);
    if (users.empty()) continue;  // a device that leaves needs no answer
    any = true;
    if (device.in_flight) continue;  // the answer would come too late
    request.volumes.push_back({name, parts_.desired.FindUse(*users.begin(), name)->spec});
    urgent = urgent || device.attachment == Attachment::kUnknown;
  }
  if (!any) {
    plugins_.erase(plugin_name);
    return;
  }
  // A device that was attached just now needs no question yet.
  const auto asked = plugins_.try_emplace(plugin_name, Asked{wake.clock().Now(), {}}).first;
  const std::optional<TimePoint> next = NextTime(plugin_name, asked->second.last_answer);
  if (!urgent && (!next || *next > wake.clock().Now())) {
    if (next) wake.At(*next);
  } else if (request.volumes.empty()) {
    wake.At(wake.clock().Now() + Wake::kUnknownPending);  // all of them are busy
  } else {
    Ask(plugin_name, std::move(request), wake);
  }
}

void AttachVerifier::Ask(const std::string& plugin_name, VerifyAttachedRequest request,
                         Wake& wake) {
  const OperationKey key = VerifyAttachedKey(plugin_name);
  if (parts_.operations.IsPending(key)) return;  // the end of the operation is an event
  std::map<UniqueVolumeName, uint64_t> asked;
  for (const VolumeToVerify& volume : request.volumes) {
    asked[volume.device] = parts_.actual.devices().Find(volume.device)->operations;
  }
  const StartResult result = parts_.operations.Start(
      VerifyVolumesAreAttached(std::move(request)),
      alive_.Guarded(
          [this, plugin_name, asked](const OperationOutcome<VerifiedAttachments>& outcome) {
            Answered(plugin_name, asked, outcome);
          }));
  wake.AfterRefusal(result, parts_.operations, key);
}

void AttachVerifier::Answered(const std::string& plugin_name,
                              const std::map<UniqueVolumeName, uint64_t>& asked,
                              const OperationOutcome<VerifiedAttachments>& outcome) {
  Asked& plugin = plugins_.try_emplace(plugin_name).first->second;
  MarkDirty(plugin_name);
  if (!outcome.value) {
    NoteFailure(plugin.failure, *outcome.failure, parts_.scheduler.clock());
    for (const auto& [name, changes] : asked) hooks_.failed(name);
    return;
  }
  plugin.failure.reset();
  plugin.last_answer = parts_.scheduler.clock().Now();
  for (const auto& [name, attached] : *outcome.value) {
    const ActualDevice* device = parts_.actual.devices().Find(name);
    const auto when = asked.find(name);
    const bool is_late = device == nullptr || device->in_flight || when == asked.end() ||
                         device->operations != when->second;
    // It is being, or was, attached, mounted ... since the question.
    if (is_late) continue;
    if (parts_.actual.devices().AttachmentVerified(name, attached)) hooks_.verified(name);
  }
}

}  // namespace volumed
