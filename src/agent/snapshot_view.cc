#include "agent/snapshot_view.h"

#include "agent/view_codec.h"
#include "base/printable_text.h"
#include "snapshot/snapshot_tags.h"

namespace volumed {

void EncodeSnapshot(const SnapshotRecord& record, v1::Snapshot* out) {
  out->set_id(record.id);
  out->set_name(PrintableText(record.name));
  out->set_volume(record.volume);
  out->set_group(record.group);
  out->set_phase(std::string(SnapshotPhaseName(record.phase)));
  out->set_ready(record.phase == SnapshotPhase::kReady);
  out->set_size_bytes(record.size_bytes);
  out->set_bytes_done(record.bytes_done);
  out->set_bytes_total(record.bytes_total);
  out->set_started_unix_ms(record.started_unix_ms);
  out->set_cut_unix_ms(record.cut_unix_ms);
  out->set_updated_unix_ms(record.updated_unix_ms);
  out->set_error(PrintableText(record.error));
  if (record.error_code != 0) {
    out->set_error_code(std::string(CodeName(static_cast<Code>(record.error_code))));
  }
  if (const std::optional<SnapshotTags> tags = SnapshotTagsOf(record)) {
    *out->mutable_object() = MakeObjectRef(
        {ObjectKind::kVolumeSnapshot, tags->snapshot.name_space, tags->snapshot.name});
    out->mutable_object()->set_uid(tags->snapshot.uid);
  }
  for (const auto& [key, value] : record.tags) {
    (*out->mutable_tags())[PrintableText(key)] = PrintableText(value);
  }
}

void EncodePool(const PoolFacts& facts, v1::Pool* out) {
  const PoolLimits& limits = facts.pool.limits();
  out->set_name(facts.pool.name());
  out->set_path(facts.pool.path());
  const Status state = facts.pool.state();
  out->set_open(state.ok());
  out->set_capacity_bytes(limits.capacity_bytes);
  out->set_reserve_percent(limits.reserve_percent);
  out->set_volumes(facts.volumes);
  out->set_snapshots(facts.snapshots);
  if (!state.ok() || !facts.seen.state.ok()) {
    out->set_reason(state.ok() ? facts.seen.state.error().message() : state.error().message());
  }
  if (!facts.seen.account) return;
  out->set_capacity_bytes(facts.seen.account->capacity_bytes);
  out->set_promised_bytes(facts.seen.account->promised_bytes);
  out->set_outstanding_bytes(facts.seen.account->outstanding_bytes);
  out->set_free_bytes(facts.seen.account->free_bytes);
  out->set_is_short(facts.seen.account->is_short);
}

void EncodePoolVolume(const PoolVolumeRecord& volume, const PoolVolumeHolding& holding,
                      v1::PoolVolume* out) {
  out->set_id(volume.id);
  out->set_pool(volume.pool);
  out->set_backend(std::string(PoolBackendName(volume.backend)));
  out->set_size_bytes(volume.capacity_bytes);
  out->set_state(std::string(PoolVolumeStateName(volume.state)));
  out->set_name(volume.name);
  out->set_volume_mode(volume.is_block ? "Block" : "Filesystem");
  out->set_fs_type(PoolFilesystemOf(volume));
  out->set_persistent_volume(holding.persistent_volume);
  if (!holding.claim.name.empty()) {
    out->mutable_claim()->set_kind("PersistentVolumeClaim");
    out->mutable_claim()->set_namespace_(holding.claim.name_space);
    out->mutable_claim()->set_name(holding.claim.name);
  }
  for (const std::string& who : holding.had_by) out->add_had_by(who);
}

CopyPace PaceOf(const SnapshotRecord& record, const CopySample& since, int64_t now_unix_ms) {
  constexpr double kMillisPerSecond = 1000;
  const bool is_copied = record.phase == SnapshotPhase::kProcessing && record.bytes_total > 0;
  const int64_t bytes = record.bytes_done - since.bytes;
  const int64_t took = now_unix_ms - since.at_unix_ms;
  if (!is_copied || bytes <= 0 || took <= 0) return {};
  CopyPace pace;
  pace.bytes_per_second = kMillisPerSecond * static_cast<double>(bytes) / static_cast<double>(took);
  const int64_t left = record.bytes_total - record.bytes_done;
  if (left >= 0) {
    pace.left_ms =
        static_cast<int64_t>(kMillisPerSecond * static_cast<double>(left) / pace.bytes_per_second);
  }
  return pace;
}

}  // namespace volumed
