#include <string>

#include "kube/snapshot_fields.h"

namespace volumed {
namespace {

// What one member of a one-of may become. Source: the XValidation rules "required once set" and
// "is immutable".
void CompareMember(const std::string& path, const std::string& member, const std::string& before,
                   const std::string& now, UpdateChecks& checks) {
  if (before.empty() || before == now) return;
  checks.Add(path + "." + member,
             now.empty() ? member + " is required once set" : member + " is immutable");
}

}  // namespace

void Validate(const VolumeSnapshot& snapshot, const std::string& prefix, ProblemSink& problems) {
  const VolumeSnapshotSpec& spec = snapshot.spec;
  if (spec.persistent_volume_claim_name.empty() == spec.volume_snapshot_content_name.empty()) {
    problems.Add(
        prefix + "spec.source",
        "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set");
  }
  if (spec.volume_snapshot_class_name && spec.volume_snapshot_class_name->empty()) {
    problems.Add(prefix + "spec.volumeSnapshotClassName", "must not be the empty string when set");
  }
}

void CheckUpdate(const VolumeSnapshot& before, const VolumeSnapshot& now, UpdateChecks& checks) {
  CompareMember("spec.source", "persistentVolumeClaimName",
                before.spec.persistent_volume_claim_name, now.spec.persistent_volume_claim_name,
                checks);
  CompareMember("spec.source", "volumeSnapshotContentName",
                before.spec.volume_snapshot_content_name, now.spec.volume_snapshot_content_name,
                checks);
}

void Validate(const VolumeSnapshotContent& content, const std::string& prefix,
              ProblemSink& problems) {
  if (content.spec.volume_handle.empty() == content.spec.snapshot_handle.empty()) {
    problems.Add(prefix + "spec.source",
                 "exactly one of volumeHandle and snapshotHandle must be set");
  }
}

void CheckUpdate(const VolumeSnapshotContent& before, const VolumeSnapshotContent& now,
                 UpdateChecks& checks) {
  CompareMember("spec.source", "volumeHandle", before.spec.volume_handle, now.spec.volume_handle,
                checks);
  CompareMember("spec.source", "snapshotHandle", before.spec.snapshot_handle,
                now.spec.snapshot_handle, checks);
  const auto text = [](const std::optional<VolumeMode>& mode) {
    return mode ? std::string(EnumText(*mode)) : std::string();
  };
  CompareMember("spec", "sourceVolumeMode", text(before.spec.source_volume_mode),
                text(now.spec.source_volume_mode), checks);
}

}  // namespace volumed
