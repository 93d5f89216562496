// What udevd says of a device ("key=value" lines), and what is waited for ("?key=value" lines). A
// device that is taken is one that the index of waits finds.
#include "attacher/device_query.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/strings.h"
#include "fuzz/fuzz.h"

namespace volumed::device_query_fuzz {
namespace {

struct Described {
  CatalogDevice record;
  DeviceQuery query;
};

DeviceNumber NumberOf(std::string_view text) {
  const fuzz::Halves halves = fuzz::Cut(text, ':');
  return {static_cast<uint32_t>(ParseUint64(halves.before).value_or(0)),
          static_cast<uint32_t>(ParseUint64(halves.behind).value_or(0))};
}

void ReadRecordLine(std::string_view key, const std::string& value, CatalogDevice& record) {
  if (key == "number") record.number = NumberOf(value);
  if (key == "name") record.name = value;
  if (key == "node") record.node = value;
  if (key == "sysfs") record.sysfs_path = value;
  if (key == "sequence") record.disk_sequence = ParseUint64(value).value_or(0);
  if (key == "partition") record.whole_disk = false;
  if (key == "described") record.described = true;
  if (key == "unusable") record.usable = false;
  if (key == "link") record.links.push_back(value);
  if (key == "serial") record.serials.push_back(value);
  if (key == "wwid") record.wwids.push_back(value);
}

void ReadQueryLine(std::string_view key, const std::string& value, DeviceQuery& query) {
  if (key == "number") query.number = NumberOf(value);
  if (key == "sysfs") query.sysfs_path = value;
  if (key == "sequence") query.disk_sequence = ParseUint64(value).value_or(0);
  if (key == "size") query.size_bytes = ParseInt64(value).value_or(0);
  if (key == "link") query.links.push_back(value);
  if (key == "serial") query.serial = value;
  if (key == "wwid") query.wwid = value;
  if (key == "identity") query.stable_id = value;
}

Described Read(std::string_view text) {
  Described described;
  while (const std::optional<std::string_view> line = fuzz::TakeLine(text)) {
    const fuzz::Halves halves = fuzz::Cut(*line, '=');
    const std::string value(halves.behind);
    if (halves.before.starts_with('?')) {
      ReadQueryLine(halves.before.substr(1), value, described.query);
    } else {
      ReadRecordLine(halves.before, value, described.record);
    }
  }
  std::sort(described.record.links.begin(), described.record.links.end());
  return described;
}

bool Share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& key) {
    return std::find(b.begin(), b.end(), key) != b.end();
  });
}

void CheckNames(const CatalogDevice& record) {
  const std::vector<std::string> keys = DeviceKeys(record);
  for (const std::string& key : OwnNameKeys(record)) {
    FUZZ_CHECK(std::find(keys.begin(), keys.end(), key) != keys.end());
  }
  for (const std::string& wwid : record.wwids) {
    const std::string normal = NormalWwid(wwid);
    FUZZ_CHECK(NormalWwid("  " + wwid + "\n") == normal);
    FUZZ_CHECK(normal.size() <= wwid.size());
  }
}

// By the link that leads to the device it is found without an index.
void CheckTaken(const DeviceQuery& query, const CatalogDevice& record, DeviceEventSource source) {
  if (!RefuseRecord(query, record, "", source).empty()) return;
  const bool by_index = query.number.has_value() || !query.sysfs_path.empty();
  if (by_index) FUZZ_CHECK(Share(DeviceKeys(query), DeviceKeys(record)));
}

DeviceFacts FactsOf(const CatalogDevice& record) {
  DeviceFacts facts;
  facts.identity.device_major = record.number.device_major;
  facts.identity.device_minor = record.number.device_minor;
  facts.identity.disk_sequence = record.disk_sequence;
  if (!record.serials.empty()) facts.serial = record.serials[0];
  if (!record.wwids.empty()) facts.wwid = record.wwids[0];
  return facts;
}

// A query by what the device says of itself is never refused by it, and one of another disk always.
void CheckFacts(const DeviceQuery& query, const CatalogDevice& record) {
  DeviceFacts facts = FactsOf(record);
  DeviceQuery own;
  own.number = record.number;
  own.serial = facts.serial;
  own.wwid = facts.wwid;
  FUZZ_CHECK(RefuseFacts(own, record, facts).empty());
  const std::string reason = RefuseFacts(query, record, facts);
  FUZZ_CHECK(query.size_bytes == 0 || !reason.empty());
  ++facts.identity.device_minor;
  FUZZ_CHECK(!RefuseFacts(own, record, facts).empty());
}

}  // namespace

FUZZ_TARGET(device_query)(const uint8_t* data, size_t size) {
  const Described described = Read(fuzz::TextOf(data, size));
  CheckNames(described.record);
  const Status valid = ValidateDeviceQuery(described.query);
  if (!valid.ok()) {
    fuzz::CheckError(valid.error());
    return 0;
  }
  FUZZ_CHECK(!DeviceQueryText(described.query).empty());
  FUZZ_CHECK(!DeviceKeys(described.query).empty());
  for (const DeviceEventSource source : {DeviceEventSource::kUdev, DeviceEventSource::kKernel}) {
    CheckTaken(described.query, described.record, source);
  }
  CheckFacts(described.query, described.record);
  return 0;
}

}  // namespace volumed::device_query_fuzz
