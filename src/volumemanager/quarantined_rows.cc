#include "volumemanager/quarantined_rows.h"

#include <algorithm>

#include "records/record_store.h"

namespace volumed {
namespace {

bool IsAboutPods(const std::string& kind) {
  return kind == kPodRecordKind || kind == kPodVolumeRecordKind || kind == kHoldRecordKind;
}

// The key of each row that IsAboutPods begins with the pod's uid.
PodUid PodOfKey(const std::string& key) { return PodUid(key.substr(0, key.find('/'))); }

// Leaves alone whatever an unreadable row is about.
void Quarantine(const QuarantinedRecord& row, ActualStateOfWorld& actual, std::set<PodUid>& pods) {
  const std::string reason = "record " + row.kind + " \"" + row.key + "\": " + row.reason;
  if (row.kind == kDeviceRecordKind) {
    actual.devices().Quarantine(UniqueVolumeName(row.key), reason);
  } else if (IsAboutPods(row.kind)) {
    actual.AddPod(PodOfKey(row.key), {}).quarantine_reason = reason;
    pods.insert(PodOfKey(row.key));
  }
}

// A bit of the row's key may have turned: if the pod that it names is on no record, it may hold any
// other one, and none may be taken down under its holder.
void QuarantineWhatMayBeHeld(const QuarantinedRecord& row, const FoundAtStart& found,
                             ActualStateOfWorld& actual, std::set<PodUid>& pods) {
  if (row.kind != kHoldRecordKind) return;
  const PodUid named = PodOfKey(row.key);
  const bool is_known = std::any_of(found.pods.begin(), found.pods.end(),
                                    [&](const PodRecord& pod) { return pod.uid == named; });
  if (is_known) return;
  for (const PodRecord& pod : found.pods) {
    std::string& reason = actual.AddPod(pod.uid, {}).quarantine_reason;
    if (!reason.empty()) continue;
    reason = "record " + row.kind + " \"" + row.key + "\", which may hold this pod: " + row.reason;
    pods.insert(pod.uid);
  }
}

// A pod uses its device whatever becomes of the record, and nobody would have it open.
void LetBePinned(const QuarantinedRecord& row, const FoundAtStart& found, const BootId& boot_id,
                 const KubeletPaths& paths, ActualStateOfWorld& actual) {
  if (row.kind != kDeviceRecordKind) return;
  for (const PodVolumeRecord& volume : found.volumes) {
    if (!volume.is_block || volume.boot_id != boot_id || volume.unique_name.str() != row.key) {
      continue;
    }
    const SafePath place = paths.GetBlockMapDir(volume.plugin_name, volume.key.spec);
    actual.devices().LacksPin(volume.unique_name, volume.plugin_name,
                              place.Below(volume.key.pod.str()).Display());
  }
}

}  // namespace

std::set<PodUid> QuarantineByRows(const FoundAtStart& found, const BootId& boot_id,
                                  const KubeletPaths& paths, ActualStateOfWorld& actual) {
  std::set<PodUid> quarantined;
  for (const QuarantinedRecord& row : found.quarantined) {
    Quarantine(row, actual, quarantined);
    QuarantineWhatMayBeHeld(row, found, actual, quarantined);
    LetBePinned(row, found, boot_id, paths, actual);
  }
  return quarantined;
}

// Of rows that are gone nobody knows what they were: each pod may have had a holder. A reboot has
// ended all of those.
std::map<PodUid, std::string> PodsThatMayBeHeld(const FoundAtStart& found, const BootId& boot_id) {
  const auto lost =
      std::find_if(found.quarantined.begin(), found.quarantined.end(),
                   [](const QuarantinedRecord& row) { return row.kind == kLostRowsRecordKind; });
  std::map<PodUid, std::string> pods;
  if (lost == found.quarantined.end()) return pods;
  const std::string why =
      lost->reason + "; if nobody uses it, `volumectl records accept`, and start the agent anew";
  std::set<PodUid> of_this_boot;
  std::set<PodUid> of_another;
  for (const PodVolumeRecord& volume : found.volumes) {
    (volume.boot_id == boot_id ? of_this_boot : of_another).insert(volume.key.pod);
  }
  for (const PodUid& pod : of_this_boot) pods[pod] = why;
  for (const PodRecord& pod : found.pods) {
    if (!of_another.contains(pod.uid)) pods[pod.uid] = why;
  }
  return pods;
}

}  // namespace volumed
