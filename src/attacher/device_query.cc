#include "attacher/device_query.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/strings.h"
#include "os/safe_open.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

constexpr char kUdevLinks[] = "/dev/disk/";

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The name of the device that this path leads to in /sys/block and its like.
std::string NameOfSysfsPath(const std::string& path) {
  return NodeNameOf(path.substr(path.rfind('/') + 1));
}

bool IsShortSysfsPath(const std::string& path) {
  return StripPrefix(path, "/sys/block/") || StripPrefix(path, "/sys/class/block/");
}

std::string SysfsKey(const std::string& path) {
  return IsShortSysfsPath(path) ? "name:" + NameOfSysfsPath(path) : "sysfs:" + path;
}

bool AsksForOwnName(const DeviceQuery& query) {
  return !query.serial.empty() || !query.wwid.empty() || !query.stable_id.empty() ||
         query.disk_sequence != 0;
}

bool ContainsWwid(const std::vector<std::string>& list, const std::string& wwid) {
  return std::any_of(list.begin(), list.end(), [normal = NormalWwid(wwid)](const auto& other) {
    return NormalWwid(other) == normal;
  });
}

std::string Differs(std::string_view what, std::string_view now, std::string_view wanted) {
  return "its " + std::string(what) + " is " + (now.empty() ? "none" : std::string(now)) +
         ", not " + std::string(wanted);
}

}  // namespace

Status ValidateDeviceQuery(const DeviceQuery& query) {
  const auto invalid = [](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument, "wait for a device: " + why);
  };
  if (query.links.empty() && !query.number && query.sysfs_path.empty() && query.serial.empty() &&
      query.wwid.empty()) {
    return invalid("no link, number, sysfs path, serial or WWID to find it by");
  }
  for (const std::string& link : query.links) {
    // A look at a link elsewhere may hang with the filesystem that the link lies on.
    if (!StripPrefix(link, "/dev/") || !ValidateSafePath({link, ""}).ok()) {
      return invalid("\"" + link + "\" is not a clean path below /dev");
    }
  }
  if (!query.sysfs_path.empty() &&
      (!StripPrefix(query.sysfs_path, "/sys/") || !ValidateSafePath({query.sysfs_path, ""}).ok())) {
    return invalid("\"" + query.sysfs_path + "\" is not a clean path below /sys");
  }
  if (query.size_bytes < 0) return invalid("a size below zero");
  return OkStatus();
}

std::string DeviceQueryText(const DeviceQuery& query) {
  std::vector<std::string> parts;
  for (const std::string& link : query.links) parts.push_back("link " + link);
  if (query.number) parts.push_back("number " + query.number->ToString());
  if (!query.sysfs_path.empty()) parts.push_back("sysfs path " + query.sysfs_path);
  if (!query.serial.empty()) parts.push_back("serial " + query.serial);
  if (!query.wwid.empty()) parts.push_back("WWID " + query.wwid);
  if (query.size_bytes != 0) parts.push_back("size " + std::to_string(query.size_bytes));
  if (query.disk_sequence != 0) {
    parts.push_back("disk sequence " + std::to_string(query.disk_sequence));
  }
  if (!query.stable_id.empty()) parts.push_back("identity " + query.stable_id);
  return Join(parts, ", ");
}

std::vector<std::string> DeviceKeys(const DeviceQuery& query) {
  std::vector<std::string> keys;
  for (const std::string& link : query.links) keys.push_back("link:" + link);
  if (query.number) keys.push_back("number:" + query.number->ToString());
  if (!query.sysfs_path.empty()) keys.push_back(SysfsKey(query.sysfs_path));
  if (!query.serial.empty()) keys.push_back("serial:" + query.serial);
  if (!query.wwid.empty()) keys.push_back("wwid:" + NormalWwid(query.wwid));
  return keys;
}

std::vector<std::string> DeviceKeys(const CatalogDevice& record) {
  std::vector<std::string> keys = OwnNameKeys(record);
  for (const std::string& link : record.links) keys.push_back("link:" + link);
  keys.push_back("link:" + record.node);
  keys.push_back("number:" + record.number.ToString());
  keys.push_back("name:" + record.name);
  keys.push_back("sysfs:" + record.sysfs_path);
  return keys;
}

std::vector<std::string> OwnNameKeys(const CatalogDevice& record) {
  std::vector<std::string> keys;
  // A partition carries the names of its disk.
  if (!record.whole_disk) return keys;
  for (const std::string& serial : record.serials) keys.push_back("serial:" + serial);
  for (const std::string& wwid : record.wwids) keys.push_back("wwid:" + NormalWwid(wwid));
  return keys;
}

std::vector<std::string> OwnNameKeys(const DeviceFacts& facts) {
  std::vector<std::string> keys;
  if (!facts.serial.empty()) keys.push_back("serial:" + facts.serial);
  if (!facts.wwid.empty()) keys.push_back("wwid:" + NormalWwid(facts.wwid));
  return keys;
}

std::string NormalWwid(const std::string& wwid) {
  std::string normal(TrimSpace(wwid));
  std::transform(normal.begin(), normal.end(), normal.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* prefix : {"wwn-", "naa.", "0x"}) {
    if (const auto rest = StripPrefix(normal, prefix)) normal = std::string(*rest);
  }
  // scsi_id(8) puts the type of the designator before its 16 or 32 digits; NAA is 3.
  const bool typed = normal.size() == 17 || normal.size() == 33;
  if (typed && normal[0] == '3' && normal.find_first_not_of("0123456789abcdef") == normal.npos) {
    normal.erase(0, 1);
  }
  return normal;
}

std::string RefuseRecord(const DeviceQuery& query, const CatalogDevice& record,
                         const std::string& link, DeviceEventSource source) {
  if (query.number && *query.number != record.number) {
    return Differs("number", record.number.ToString(), query.number->ToString());
  }
  if (!query.sysfs_path.empty()) {
    const std::string key = SysfsKey(query.sysfs_path);
    if (key != "name:" + record.name && key != "sysfs:" + record.sysfs_path) {
      return Differs("sysfs path", record.sysfs_path, query.sysfs_path);
    }
  }
  if (source == DeviceEventSource::kUdev && !record.described) {
    return "udevd has not finished with it";
  }
  if (!record.usable) return "udevd's rules keep it from use (SYSTEMD_READY=0)";
  if (!StripPrefix(link, kUdevLinks)) return "";
  if (record.described) {
    return Contains(record.links, link) ? "" : "a stale link: udevd gives this device no such name";
  }
  return AsksForOwnName(query)
             ? ""
             : "nothing proves the link: there is no udevd, and no serial or WWID "
               "to compare is given";
}

std::string RefuseFacts(const DeviceQuery& query, const CatalogDevice& record,
                        const DeviceFacts& facts) {
  std::vector<std::string> reasons;
  const DeviceIdentity& identity = facts.identity;
  const DeviceNumber number{identity.device_major, identity.device_minor};
  if (number != record.number) {
    reasons.push_back(Differs("number", number.ToString(), record.number.ToString()));
  }
  // If the two differ, udevd's record describes another device than the one that was opened.
  const bool replaced = record.disk_sequence != 0 && identity.disk_sequence != record.disk_sequence;
  const uint64_t sequence = query.disk_sequence != 0 ? query.disk_sequence : record.disk_sequence;
  if (sequence != 0 && identity.disk_sequence != sequence) {
    reasons.push_back(
        Differs("disk sequence", std::to_string(identity.disk_sequence), std::to_string(sequence)));
  }
  if (!query.serial.empty() && facts.serial != query.serial &&
      (replaced || !Contains(record.serials, query.serial))) {
    reasons.push_back(Differs("serial",
                              facts.serial.empty() ? Join(record.serials, " or ") : facts.serial,
                              query.serial));
  }
  if (!query.wwid.empty() && NormalWwid(facts.wwid) != NormalWwid(query.wwid) &&
      (replaced || !ContainsWwid(record.wwids, query.wwid))) {
    reasons.push_back(
        Differs("WWID", facts.wwid.empty() ? Join(record.wwids, " or ") : facts.wwid, query.wwid));
  }
  if (!query.stable_id.empty() && identity.stable_id != query.stable_id) {
    reasons.push_back(Differs("identity", identity.stable_id, query.stable_id));
  }
  if (query.size_bytes != 0 && identity.size_bytes != query.size_bytes) {
    reasons.push_back(
        Differs("size", std::to_string(identity.size_bytes), std::to_string(query.size_bytes)));
  }
  return Join(reasons, "; ");
}

}  // namespace volumed
