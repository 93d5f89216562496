#include "volumemanager/pod_replacements.h"

#include <algorithm>
#include <utility>

namespace volumed {

PodReplacements::~PodReplacements() {
  for (const auto& [pod, edit] : edits_) parts_.scheduler.Cancel(edit.timer);
}

void PodReplacements::Follow(const ObjectKey& pod) {
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(pod);
  if (!standing || !standing->to_be_replaced) {
    // The edit was taken back, or its file is in disorder. If the edit comes again, its time begins
    // anew.
    if (const auto edit = edits_.find(pod); edit != edits_.end()) {
      parts_.scheduler.Cancel(edit->second.timer);
      edits_.erase(edit);
    }
    return;
  }
  const auto [edit, is_new] = edits_.try_emplace(pod, Edit{parts_.scheduler.clock().Now()});
  if (is_new) Arm(pod, edit->second);
}

void PodReplacements::FollowAll() {
  for (const ObjectKey& pod : parts_.catalog.KeysOf(ObjectKind::kPod, "")) Follow(pod);
  for (auto& [pod, edit] : edits_) Arm(pod, edit);
}

void PodReplacements::SetSettle(Duration settle) {
  if (std::exchange(settle_, settle) == settle) return;
  for (auto& [pod, edit] : edits_) Arm(pod, edit);
}

std::optional<int64_t> PodReplacements::BeginsAtUnixMillis(const ObjectKey& pod) const {
  const auto edit = edits_.find(pod);
  if (edit == edits_.end()) return std::nullopt;
  const Duration left = edit->second.since + settle_ - parts_.scheduler.clock().Now();
  return parts_.scheduler.clock().WallUnixMillis() +
         std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
}

void PodReplacements::Arm(const ObjectKey& pod, Edit& edit) {
  parts_.scheduler.Cancel(edit.timer);
  const Duration left = edit.since + settle_ - parts_.scheduler.clock().Now();
  edit.timer =
      parts_.scheduler.PostAfter(std::max(left, Duration::zero()), [this, pod] { Due(pod); });
}

void PodReplacements::Due(const ObjectKey& pod) {
  if (!parts_.readiness.Ready()) return;  // FollowAll() will be called
  edits_.erase(pod);
  parts_.log.Info("a pod is replaced: its manifest has other volumes", {{"pod", ToString(pod)}});
  parts_.catalog.Replace(pod);
}

}  // namespace volumed
