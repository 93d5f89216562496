#include "cli/storage_tables.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

using Row = std::vector<std::string>;

// In kubectl's order.
constexpr std::pair<const char*, const char*> kAccessModes[] = {{"ReadWriteOnce", "RWO"},
                                                                {"ReadOnlyMany", "ROX"},
                                                                {"ReadWriteMany", "RWX"},
                                                                {"ReadWriteOncePod", "RWOP"}};

template <typename Storage>
std::string AccessModesOf(const Storage& storage) {
  const auto& modes = storage.access_modes();
  std::vector<std::string> known;
  for (const auto& [name, text] : kAccessModes) {
    if (std::find(modes.begin(), modes.end(), name) != modes.end()) known.emplace_back(text);
  }
  return Join(known, ",");
}

template <typename Storage>
std::string StatusOf(const Storage& storage) {
  const std::string phase = storage.deleting() ? "Terminating" : storage.phase();
  return storage.missing() ? phase + " (MISSING)" : phase;
}

// One row of a table is one line on a terminal; `-o wide` and `describe` have the rest.
constexpr size_t kMaxReason = 60;

std::string ReasonOf(const v1::PersistentVolume& volume, bool wide) {
  const std::string& reason = volume.reason();
  if (wide || reason.size() <= kMaxReason) return reason;
  return reason.substr(0, reason.rfind(' ', kMaxReason)) + "...";
}

void PrintRows(const std::vector<Row>& rows, const v1::GetStorageResponse& storage,
               std::ostream& out) {
  PrintTable(rows, out);
  if (storage.not_shown() > 0) out << "and " << storage.not_shown() << " more\n";
}

}  // namespace

void PrintPersistentVolumes(const v1::GetStorageResponse& storage, OutputFormat format, int64_t now,
                            std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(storage, format, out);
  const bool wide = format == OutputFormat::kWide;
  std::vector<Row> rows = {{"NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM",
                            "STORAGECLASS", "REASON", "AGE"}};
  if (wide) rows[0].push_back("VOLUMEMODE");
  for (const v1::PersistentVolume& volume : storage.persistent_volumes()) {
    rows.push_back({volume.name(), volume.capacity(), AccessModesOf(volume),
                    volume.reclaim_policy(), StatusOf(volume), volume.claim(),
                    volume.storage_class(), ReasonOf(volume, wide),
                    FormatCreation(volume.created_unix_ms(), now)});
    if (wide) rows.back().push_back(volume.volume_mode());
  }
  PrintRows(rows, storage, out);
}

void PrintClaims(const v1::GetStorageResponse& storage, OutputFormat format, bool all_namespaces,
                 int64_t now, std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(storage, format, out);
  const bool wide = format == OutputFormat::kWide;
  std::vector<Row> rows = {
      {"NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "AGE"}};
  if (wide) rows[0].insert(rows[0].end(), {"VOLUMEMODE", "OWNER", "REASON"});
  if (all_namespaces) rows[0].insert(rows[0].begin(), "NAMESPACE");
  for (const v1::PersistentVolumeClaim& claim : storage.persistent_volume_claims()) {
    Row row = {claim.name(),
               StatusOf(claim),
               claim.volume(),
               claim.capacity(),
               AccessModesOf(claim),
               claim.storage_class(),
               FormatCreation(claim.created_unix_ms(), now)};
    if (wide) row.insert(row.end(), {claim.volume_mode(), claim.owner(), claim.reason()});
    if (all_namespaces) row.insert(row.begin(), claim.namespace_());
    rows.push_back(std::move(row));
  }
  PrintRows(rows, storage, out);
  for (const v1::PersistentVolumeClaim& claim : storage.persistent_volume_claims()) {
    if (wide) break;
    PrintRefusal(claim.namespace_() + "/" + claim.name(), claim.phase(), claim.reason(), out);
  }
}

void PrintStorageClasses(const v1::GetStorageResponse& storage, OutputFormat format, int64_t now,
                         std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(storage, format, out);
  std::vector<Row> rows = {
      {"NAME", "PROVISIONER", "RECLAIMPOLICY", "VOLUMEBINDINGMODE", "ALLOWVOLUMEEXPANSION", "AGE"}};
  for (const v1::StorageClass& one : storage.storage_classes()) {
    if (IsRefused(one.phase())) {
      rows.push_back({one.name() + " (" + one.phase() + ")", "-", "-", "-", "-", "<unknown>"});
      continue;
    }
    rows.push_back({one.name() + (one.is_default() ? " (default)" : ""), one.provisioner(),
                    one.reclaim_policy(), one.volume_binding_mode(),
                    one.allow_volume_expansion() ? "true" : "false",
                    FormatCreation(one.created_unix_ms(), now)});
  }
  PrintRows(rows, storage, out);
  for (const v1::StorageClass& one : storage.storage_classes()) {
    PrintRefusal(one.name(), one.phase(), one.reason(), out);
  }
}

}  // namespace volumed
