#include "plugins/fc_disk.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kRemotePort[] = "rport-";
// Above it a LUN has another form. Source: systemd path_id (format_lun_number); SAM-5, 4.7.
constexpr int64_t kPeripheralLuns = 256;
constexpr int64_t kFlatSpace = 0x4000;

// A World Wide Name as its 16 digits, however it is written: "0x50:0a.." or "500A..".
std::string NormalWwn(const std::string& wwn) {
  std::string normal;
  for (const char c : wwn) {
    if (c != ':') normal += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (const auto rest = StripPrefix(normal, "0x")) return std::string(*rest);
  return normal;
}

// An identifier of a vendor's own: "t10.LIO-ORG disk  1" in sysfs, "1LIO-ORG_disk_1" by scsi_id.
std::string VendorWwid(const std::string& wwid) {
  std::string_view rest = TrimSpace(wwid);
  if (const auto sysfs = StripPrefix(rest, "t10.")) {
    rest = *sysfs;
  } else if (const auto by_id = StripPrefix(rest, "1")) {
    rest = *by_id;
  } else {
    return "";
  }
  std::string normal;
  for (const char c : rest) {
    const bool blank = c == ' ' || c == '_';
    if (blank && (normal.empty() || normal.back() == '_')) continue;
    normal += blank ? '_' : c;
  }
  return normal;
}

bool IsWwid(const std::string& wanted, const std::string& shown) {
  if (shown.empty()) return false;
  if (NormalWwid(wanted) == NormalWwid(shown)) return true;
  const std::string vendor = VendorWwid(wanted);
  return !vendor.empty() && vendor == VendorWwid(shown);
}

// The element of the path that names the remote port; empty where there is none.
std::string RemotePortOf(const std::string& sysfs_path) {
  for (const std::string& element : Split(sysfs_path, '/')) {
    if (StripPrefix(element, kRemotePort)) return element;
  }
  return "";
}

// "0000:05:00.0", the PCI function nearest to a host bus adapter; empty where there is none.
std::string PciAddressOf(const std::string& sysfs_path) {
  std::string address;
  for (const std::string& element : Split(sysfs_path, '/')) {
    const bool is_function =
        element.size() == 12 && element[4] == ':' && element[7] == ':' && element[10] == '.';
    if (is_function) address = element;
  }
  return address;
}

bool IsMissing(const Error& error) { return error.code() == Code::kNotFound; }

// It is what was asked for by its number, and still what the volume is made of.
bool IsProven(const FcDisks::Found& now, const DeviceQuery& query, const FoundDevice& device) {
  if (!query.number) return false;
  if (now.map) return device.node == *now.map;
  return std::any_of(now.disks.begin(), now.disks.end(),
                     [&](const ScsiDisk& disk) { return disk.node == device.node; });
}

std::string NamesText(const FcNames& names) { return "fc volume " + FcVolumeName(names); }

}  // namespace

std::string FcLunText(int64_t lun) {
  if (lun < kPeripheralLuns) return std::to_string(lun);
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "0x%04llx%04llx00000000",
                static_cast<unsigned long long>(lun & 0xffff),
                static_cast<unsigned long long>((lun >> 16) & 0xffff));
  return text.data();
}

bool IsFcDisk(const FcNames& names, const ScsiDisk& disk, const std::string& port_name) {
  if (names.target_wwns.empty()) {
    return std::any_of(names.wwids.begin(), names.wwids.end(),
                       [&](const std::string& wwid) { return IsWwid(wwid, disk.wwid); });
  }
  const int64_t lun = names.lun.value_or(0);
  const bool is_lun = disk.lun == lun || (lun >= kPeripheralLuns && disk.lun == (lun | kFlatSpace));
  const std::string port = NormalWwn(port_name);
  return is_lun && !port.empty() &&
         std::any_of(names.target_wwns.begin(), names.target_wwns.end(),
                     [&](const std::string& wwn) { return NormalWwn(wwn) == port; });
}

// ---- what is there ------------------------------------------------------------------------------

Result<std::string> FcDisks::PortNameOf(const ScsiDisk& disk, const CallOptions& call) {
  const std::string port = RemotePortOf(disk.sysfs_path);
  if (port.empty()) return std::string();
  const Result<FileContent> name = kernel_.Call(
      ReadFile{{places_.sys, "class/fc_remote_ports/" + port + "/port_name", Resolve::kBeneath}},
      call);
  if (name.ok()) return std::string(TrimSpace(name->bytes));
  if (IsMissing(name.error())) return std::string();
  return name.error();
}

Result<bool> FcDisks::IsDiskOf(const FcNames& names, const ScsiDisk& disk,
                               const CallOptions& call) {
  std::string port_name;
  if (!names.target_wwns.empty()) {
    ASSIGN_OR_RETURN(port_name, PortNameOf(disk, call));
  }
  return IsFcDisk(names, disk, port_name);
}

Result<FcDisks::Found> FcDisks::Find(const FcNames& names, const CallOptions& call) {
  Found found;
  ASSIGN_OR_RETURN(std::vector<ScsiDisk> disks, scsi_.ListDisks(call));
  for (ScsiDisk& disk : disks) {
    ASSIGN_OR_RETURN(const bool is_ours, IsDiskOf(names, disk, call));
    if (!is_ours) continue;
    if (!found.map) {
      ASSIGN_OR_RETURN(found.map, scsi_.MultipathOf(disk.node, call));
    }
    found.disks.push_back(std::move(disk));
  }
  return found;
}

// ---- waiting ------------------------------------------------------------------------------------

// The names that udev will give a disk of the volume. A by-path link begins with the place of the
// host bus adapter through which the port is seen, so each adapter of the node makes one.
Result<std::vector<std::string>> FcDisks::LinksOf(const FcNames& names, const CallOptions& call) {
  std::vector<std::string> links;
  for (const std::string& wwid : names.wwids) {
    links.push_back(places_.dev + "/disk/by-id/dm-uuid-mpath-" + wwid);
    links.push_back(places_.dev + "/disk/by-id/scsi-" + wwid);
  }
  if (names.target_wwns.empty()) return links;
  std::vector<std::string> prefixes = {""};
  const SafePath hosts{places_.sys, "class/fc_host", Resolve::kBeneath};
  const Result<DirectoryListing> listing = kernel_.Call(ListDirectory{hosts}, call);
  if (!listing.ok() && !IsMissing(listing.error())) return listing.error();
  for (const DirectoryEntry& host :
       listing.ok() ? listing->entries : std::vector<DirectoryEntry>()) {
    const Result<FileContent> place = kernel_.Call(ReadLink{hosts.Below(host.name)}, call);
    if (!place.ok()) continue;  // it went
    const std::string address = PciAddressOf(place->bytes);
    const std::string prefix = "pci-" + address + "-";
    if (!address.empty() && std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) {
      prefixes.push_back(prefix);
    }
  }
  for (const std::string& wwn : names.target_wwns) {
    for (const std::string& prefix : prefixes) {
      links.push_back(places_.dev + "/disk/by-path/" + prefix + "fc-0x" + NormalWwn(wwn) + "-lun-" +
                      FcLunText(names.lun.value_or(0)));
    }
  }
  return links;
}

Result<DeviceQuery> FcDisks::MapQuery(const Found& found, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, scsi_.PathsOf(*found.map, call));
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::optional<ScsiDisk> disk, scsi_.FindDisk(path, call));
    if (!disk || disk->wwid == found.disks.front().wwid) continue;
    return Error::NotApplied(Code::kFailedPrecondition,
                             "fc: " + *found.map + " has a path to another unit: " + path +
                                 " has the WWID \"" + disk->wwid + "\", and " +
                                 found.disks.front().node + " \"" + found.disks.front().wwid +
                                 "\"");
  }
  ASSIGN_OR_RETURN(const ScsiMap map, scsi_.DescribeMap(*found.map, call));
  DeviceQuery query;
  query.links = {*found.map};
  query.number = map.number;
  query.stable_id = "dm:" + map.uuid;
  return query;
}

Result<DeviceQuery> FcDisks::QueryFor(const FcNames& names, const Found& found,
                                      const CallOptions& call) {
  if (found.map) return MapQuery(found, call);
  DeviceQuery query;
  if (found.disks.empty()) {
    ASSIGN_OR_RETURN(query.links, LinksOf(names, call));
    return query;
  }
  const auto running = std::find_if(found.disks.begin(), found.disks.end(),
                                    [](const ScsiDisk& disk) { return disk.running(); });
  const ScsiDisk& disk = running == found.disks.end() ? found.disks.front() : *running;
  query.links = {disk.node};
  query.number = disk.number;
  query.wwid = disk.wwid;
  return query;
}

Result<FoundDevice> FcDisks::WaitFor(const FcNames& names, const CallOptions& call) {
  if (finder_ == nullptr) {
    return Error::NotApplied(Code::kUnimplemented, "fc: nothing waits for devices on this node");
  }
  ASSIGN_OR_RETURN(Found found, Find(names, call));
  Status scanned;
  if (found.disks.empty()) {
    scanned = scsi_.RescanAllHosts(call);
    ASSIGN_OR_RETURN(found, Find(names, call));
  }
  for (Duration pause = looks_.first;; pause = std::min(2 * pause, looks_.longest)) {
    ASSIGN_OR_RETURN(const DeviceQuery query, QueryFor(names, found, call));
    CallOptions slice = call;
    const TimePoint next = clock_.Now() + pause;
    if (next < call.deadline.when()) slice.deadline = Deadline::At(next);
    Result<FoundDevice> device = finder_->WaitForDevice(query, slice);
    ASSIGN_OR_RETURN(found, Find(names, call));
    if (device.ok()) {
      if (IsProven(found, query, *device)) return device;
      if (found.disks.empty()) {
        return Error::NotApplied(Code::kFailedPrecondition,
                                 NamesText(names) + ": " + device->link + " leads to " +
                                     device->node + ", which sysfs does not show to be its disk");
      }
      // A disk was found by its link, or has become a path of a multipath device since.
      if (!call.deadline.Passed(clock_)) continue;
      return Error::NotApplied(Code::kDeadlineExceeded,
                               NamesText(names) + ": " + device->node + " changes all the time");
    }
    const bool may_look_again =
        device.error().code() == Code::kDeadlineExceeded && slice.deadline.Passed(clock_);
    if (may_look_again && !call.deadline.Passed(clock_)) continue;
    return device.error().With(NamesText(names) +
                               (scanned.ok() ? "" : " (" + scanned.error().message() + ")"));
  }
}

// ---- removal ------------------------------------------------------------------------------------

void FcDisks::KeepMap(const SafePath& place, const std::string& mounted, const CallOptions& call) {
  const Result<bool> is_map = scsi_.IsMultipath(mounted, call);
  if (!is_map.ok() || !*is_map) return;
  const Result<ScsiMap> map = scsi_.DescribeMap(mounted, call);
  if (!map.ok()) return;
  MutexLock lock(mu_);
  kept_[place.Display()] = {mounted, map->uuid};
}

Result<std::optional<std::string>> FcDisks::KeptMap(const SafePath& place,
                                                    const CallOptions& call) {
  KnownMap kept;
  {
    MutexLock lock(mu_);
    const auto found = kept_.find(place.Display());
    if (found == kept_.end()) return std::optional<std::string>();
    kept = found->second;
  }
  ASSIGN_OR_RETURN(const bool is_map, scsi_.IsMultipath(kept.node, call));
  if (!is_map) return std::optional<std::string>();
  ASSIGN_OR_RETURN(const ScsiMap map, scsi_.DescribeMap(kept.node, call));
  if (map.uuid != kept.uuid) return std::optional<std::string>();
  return std::optional(kept.node);
}

void FcDisks::ForgetMap(const SafePath& place) {
  MutexLock lock(mu_);
  kept_.erase(place.Display());
}

// A multipath device may have paths by ports that the volume does not name. Once it is flushed they
// are known by their unit's WWID alone, so a disk that the volume does name goes last.
Status FcDisks::Remove(const FcNames& names, const std::optional<std::string>& mounted,
                       const CallOptions& call) {
  ASSIGN_OR_RETURN(const Found found, Find(names, call));
  ASSIGN_OR_RETURN(const std::vector<ScsiDisk> all, scsi_.ListDisks(call));
  std::vector<std::string> named, others;
  for (const ScsiDisk& disk : found.disks) named.push_back(disk.name);
  for (const ScsiDisk& disk : all) {
    const bool is_same_unit =
        !found.disks.empty() && !disk.wwid.empty() && disk.wwid == found.disks.front().wwid;
    const bool is_named = std::find(named.begin(), named.end(), disk.name) != named.end();
    if (is_same_unit && !is_named) others.push_back(disk.name);
  }
  bool removed = mounted.has_value();
  if (mounted) {
    ASSIGN_OR_RETURN(const bool is_map, scsi_.IsMultipath(*mounted, call));
    if (is_map) RETURN_IF_ERROR(scsi_.Remove(*mounted, call, named));
  }
  others.insert(others.end(), named.begin(), named.end());
  for (const std::string& name : others) {
    const Status gone = scsi_.Remove(places_.dev + "/" + name, call, named);
    if (!gone.ok()) return removed ? gone.error().AsMaybeApplied() : gone.error();
    removed = true;
  }
  return OkStatus();
}

}  // namespace volumed
