#include "cli/snapshot_tables.h"

#include "base/byte_text.h"
#include "base/strings.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace volumed {
namespace {

using SnapshotRows = std::vector<std::vector<std::string>>;

std::string CapacityOf(const v1::Pool& pool) {
  return pool.capacity_bytes() == 0 ? "-" : FormatBytes(pool.capacity_bytes());
}

std::string KnownBytes(bool is_known, int64_t bytes) { return is_known ? FormatBytes(bytes) : "-"; }

std::string ReasonOfPool(const v1::Pool& pool) {
  if (!pool.reason().empty()) return pool.reason();
  return pool.is_short() ? "its filesystem has less left than its volumes may still write" : "-";
}

// "12Mi/1Gi (1%)"; "" if nothing is copied.
std::string CopiedOf(const v1::Snapshot& snapshot) {
  if (snapshot.bytes_total() == 0) return "";
  const double part =
      static_cast<double>(snapshot.bytes_done()) / static_cast<double>(snapshot.bytes_total());
  return FormatBytes(snapshot.bytes_done()) + "/" + FormatBytes(snapshot.bytes_total()) + " (" +
         std::to_string(static_cast<int>(100 * std::clamp(part, 0.0, 1.0))) + "%)";
}

std::string ObjectOf(const v1::Snapshot& snapshot) {
  if (!snapshot.has_object()) return "";
  return snapshot.object().namespace_() + "/" + snapshot.object().name();
}

void AddSnapshotFact(SnapshotRows& rows, const std::string& name, const std::string& value) {
  if (!value.empty()) rows.push_back({name + ":", value});
}

std::string AgoText(int64_t moment, int64_t now) {
  return moment == 0 ? "" : FormatAge(moment, now) + " ago";
}

std::string ErrorOfSnapshot(const v1::Snapshot& snapshot) {
  if (snapshot.error().empty() || snapshot.error_code().empty()) return snapshot.error();
  return snapshot.error_code() + ": " + snapshot.error();
}

}  // namespace

void PrintPools(const v1::GetPoolsResponse& pools, OutputFormat format, std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(pools, format, out);
  if (pools.pools().empty()) {
    out << "no pool is configured\n";
    return;
  }
  const bool wide = format == OutputFormat::kWide;
  SnapshotRows rows = {
      {"NAME", "PATH", "STATE", "CAPACITY", "PROMISED", "FREE", "VOLUMES", "SNAPSHOTS", "REASON"}};
  if (wide) rows[0].insert(rows[0].end() - 1, {"OUTSTANDING", "RESERVE"});
  for (const v1::Pool& pool : pools.pools()) {
    rows.push_back({pool.name(), pool.path(), pool.open() ? "open" : "not open", CapacityOf(pool),
                    KnownBytes(pool.has_promised_bytes(), pool.promised_bytes()),
                    KnownBytes(pool.has_free_bytes(), pool.free_bytes()),
                    std::to_string(pool.volumes()), std::to_string(pool.snapshots()),
                    ReasonOfPool(pool)});
    if (!wide) continue;
    rows.back().insert(rows.back().end() - 1,
                       {KnownBytes(pool.has_outstanding_bytes(), pool.outstanding_bytes()),
                        std::to_string(pool.reserve_percent()) + "%"});
  }
  PrintTable(rows, out);
}

void PrintPoolVolumes(const v1::GetPoolVolumesResponse& volumes, OutputFormat format,
                      std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(volumes, format, out);
  if (volumes.volumes().empty()) {
    out << "there are no volumes in pools\n";
    return;
  }
  const bool wide = format == OutputFormat::kWide;
  SnapshotRows rows = {{"ID", "POOL", "BACKEND", "SIZE", "STATE", "NAME", "USED BY"}};
  if (wide) rows[0].insert(rows[0].end() - 1, {"MODE", "FILESYSTEM"});
  for (const v1::PoolVolume& one : volumes.volumes()) {
    const std::vector<std::string> had_by(one.had_by().begin(), one.had_by().end());
    rows.push_back({one.id(), one.pool(), one.backend(),
                    KnownBytes(one.size_bytes() != 0, one.size_bytes()), one.state(),
                    OrDash(one.name()), OrDash(Join(had_by, ", "))});
    if (!wide) continue;
    rows.back().insert(rows.back().end() - 1, {one.volume_mode(), OrDash(one.fs_type())});
  }
  PrintTable(rows, out);
}

void PrintSnapshots(const v1::GetSnapshotsResponse& snapshots, OutputFormat format, int64_t now,
                    std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(snapshots, format, out);
  if (snapshots.snapshots().empty()) {
    out << "there are no snapshots\n";
    return;
  }
  const bool wide = format == OutputFormat::kWide;
  SnapshotRows rows = {{"ID", "NAME", "VOLUME", "PHASE", "SIZE", "COPIED", "AGE", "ERROR"}};
  if (wide) rows[0].insert(rows[0].end() - 1, {"VOLUMESNAPSHOT", "GROUP"});
  for (const v1::Snapshot& one : snapshots.snapshots()) {
    rows.push_back({one.id(), one.name(), one.volume(), one.phase(), FormatBytes(one.size_bytes()),
                    OrDash(CopiedOf(one)), FormatAge(one.cut_unix_ms(), now),
                    OrDash(ErrorOfSnapshot(one))});
    if (!wide) continue;
    rows.back().insert(rows.back().end() - 1, {OrDash(ObjectOf(one)), OrDash(one.group())});
  }
  PrintTable(rows, out);
}

void PrintSnapshotDescription(const v1::Snapshot& snapshot, int64_t now, std::ostream& out) {
  SnapshotRows rows;
  AddSnapshotFact(rows, "ID", snapshot.id());
  AddSnapshotFact(rows, "Name", snapshot.name());
  AddSnapshotFact(rows, "Volume", snapshot.volume());
  AddSnapshotFact(rows, "VolumeSnapshot", ObjectOf(snapshot));
  AddSnapshotFact(rows, "Group", snapshot.group());
  AddSnapshotFact(rows, "Phase", snapshot.phase());
  AddSnapshotFact(rows, "Ready to use", snapshot.ready() ? "yes" : "no");
  AddSnapshotFact(rows, "Restore size", FormatBytes(snapshot.size_bytes()));
  AddSnapshotFact(rows, "Copied", CopiedOf(snapshot));
  AddSnapshotFact(rows, "Begun", AgoText(snapshot.started_unix_ms(), now));
  AddSnapshotFact(rows, "Point in time", AgoText(snapshot.cut_unix_ms(), now));
  AddSnapshotFact(rows, "Error", ErrorOfSnapshot(snapshot));
  PrintTable(rows, out);
}

void PrintSnapshotProgress(const v1::WatchSnapshotResponse& answer, OutputFormat format,
                           std::ostream& out) {
  if (IsForPrograms(format)) {
    PrintMessage(answer, format, out);
    out << std::flush;
    return;
  }
  const v1::Snapshot& snapshot = answer.snapshot();
  std::string line = answer.gone() ? "gone" : snapshot.phase();
  const std::string copied = CopiedOf(snapshot);
  if (!copied.empty() && !answer.gone()) line += "  " + copied;
  if (answer.bytes_per_second() > 0) {
    line += "  " + FormatBytes(static_cast<int64_t>(answer.bytes_per_second())) + "/s";
  }
  if (answer.has_left_ms()) {
    const int64_t now = answer.now_unix_ms();
    line += "  " + FormatAge(now, now + answer.left_ms()) + " left";
  }
  const std::string error = ErrorOfSnapshot(snapshot);
  if (!error.empty()) line += "  " + error;
  out << line << "\n" << std::flush;
}

}  // namespace volumed
