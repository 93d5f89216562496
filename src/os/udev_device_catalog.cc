#include "os/udev_device_catalog.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kSubsystem[] = "block";

// The sequence of the disk for which udevd made the links, by the link that says so; 0 where its
// rules make none (before systemd 251). Source: systemd 60-persistent-storage.rules (by-diskseq).
uint64_t SequenceOfLinks(const std::vector<std::string>& links) {
  for (const std::string& link : links) {
    const auto name = StripPrefix(link, "/dev/disk/by-diskseq/");
    if (!name) continue;
    return ParseUint64(*name).value_or(0);
  }
  return 0;
}

void AddProperties(const UdevDevice& device, std::initializer_list<const char*> keys,
                   std::vector<std::string>* values) {
  for (const char* key : keys) {
    std::string value = device.Property(key);
    if (!value.empty()) values->push_back(std::move(value));
  }
}

// Whether udevd's record is of the disk that is there now. A partition has no such link; but udevd
// takes the events of a disk and its partitions in order, so its record is as new as its disk's.
bool IsDescribed(const UdevDevice& device, uint64_t disk_sequence) {
  if (!device.initialized()) return false;
  if (device.type() == "partition") {
    const std::optional<UdevDevice> disk = device.Parent(kSubsystem, "disk");
    return disk && IsDescribed(*disk, disk_sequence);
  }
  const uint64_t described = SequenceOfLinks(device.links());
  return described == 0 || disk_sequence == 0 || described == disk_sequence;
}

CatalogDevice RecordOf(const UdevDevice& device) {
  CatalogDevice record;
  record.number = {major(device.number()), minor(device.number())};
  record.name = device.name();
  record.node = device.node();
  record.sysfs_path = device.sysfs_path();
  record.disk_sequence = ParseUint64(device.Property("DISKSEQ")).value_or(0);
  record.whole_disk = device.type() == "disk";
  record.described = IsDescribed(device, record.disk_sequence);
  if (!record.described) return record;
  record.links = device.links();
  std::sort(record.links.begin(), record.links.end());
  record.usable =
      device.Property("SYSTEMD_READY") != "0" && device.Property("DM_MULTIPATH_DEVICE_PATH") != "1";
  AddProperties(device, {"ID_SERIAL", "ID_SERIAL_SHORT", "ID_SCSI_SERIAL", "DM_SERIAL"},
                &record.serials);
  AddProperties(device, {"ID_WWN", "ID_WWN_WITH_EXTENSION", "DM_WWN"}, &record.wwids);
  return record;
}

// What the kernel's own event says; udevd's database is not asked.
CatalogDevice AnnouncementOf(const UdevDevice& device) {
  CatalogDevice record;
  record.number = {major(device.number()), minor(device.number())};
  record.name = device.name();
  record.node = device.node();
  record.disk_sequence = ParseUint64(device.Property("DISKSEQ")).value_or(0);
  record.whole_disk = device.type() == "disk";
  return record;
}

Result<std::optional<CatalogDevice>> RecordOf(Result<std::optional<UdevDevice>> device) {
  if (!device.ok()) return device.error();
  if (!*device) return std::optional<CatalogDevice>();
  return std::optional(RecordOf(**device));
}

}  // namespace

std::string_view DeviceEventSourceName(DeviceEventSource source) {
  switch (source) {
    case DeviceEventSource::kUdev:
      return "udev";
    case DeviceEventSource::kKernel:
      return "kernel";
  }
  return "unknown";
}

bool UdevdListens() {
  // Source: proc(5): num refs protocol flags type st inode path; __SO_ACCEPTCON = 0x10000.
  constexpr size_t kFlags = 3;
  constexpr size_t kPath = 7;
  std::ifstream sockets("/proc/thread-self/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find("/run/udev/control") == std::string::npos) continue;
    const std::vector<std::string> words = SplitNonEmpty(line, ' ');
    if (words.size() > kPath && words[kPath] == "/run/udev/control" &&
        words[kFlags] == "00010000") {
      return true;
    }
  }
  return false;
}

Result<std::unique_ptr<UdevDeviceCatalog>> UdevDeviceCatalog::Create(
    EventLoop& loop, UdevDeviceCatalogOptions options) {
  ASSIGN_OR_RETURN(UdevContext context, UdevContext::Create());
  std::unique_ptr<UdevDeviceCatalog> catalog(
      new UdevDeviceCatalog(loop, options, std::move(context)));
  RETURN_IF_ERROR(catalog->Follow(options.udevd_listens() ? DeviceEventSource::kUdev
                                                          : DeviceEventSource::kKernel));
  return catalog;
}

UdevDeviceCatalog::~UdevDeviceCatalog() { Unfollow(); }

Status UdevDeviceCatalog::Follow(DeviceEventSource source) {
  const UdevGroup group =
      source == DeviceEventSource::kUdev ? UdevGroup::kUdev : UdevGroup::kKernel;
  ASSIGN_OR_RETURN(UdevMonitor monitor,
                   UdevMonitor::Create(context_, group, kSubsystem, options_.receive_buffer_bytes));
  std::optional<UdevMonitor> announcements;
  if (source == DeviceEventSource::kUdev) {
    ASSIGN_OR_RETURN(announcements, UdevMonitor::Create(context_, UdevGroup::kKernel, kSubsystem,
                                                        options_.receive_buffer_bytes));
  }
  RETURN_IF_ERROR(loop_.WatchFd(monitor.fd(), EPOLLIN, [this](uint32_t) { TakeEvents(); }));
  if (announcements) {
    Status watched =
        loop_.WatchFd(announcements->fd(), EPOLLIN, [this](uint32_t) { TakeAnnouncements(); });
    if (!watched.ok()) {
      loop_.UnwatchFd(monitor.fd());
      return watched;
    }
  }
  Unfollow();
  monitor_ = std::move(monitor);
  announcements_ = std::move(announcements);
  source_ = source;
  return OkStatus();
}

void UdevDeviceCatalog::Unfollow() {
  if (monitor_) loop_.UnwatchFd(monitor_->fd());
  monitor_.reset();
  if (announcements_) loop_.UnwatchFd(announcements_->fd());
  announcements_.reset();
}

void UdevDeviceCatalog::CheckSource() {
  const DeviceEventSource now =
      options_.udevd_listens() ? DeviceEventSource::kUdev : DeviceEventSource::kKernel;
  if (now == source_) return;
  const Status followed = Follow(now);
  const std::string why =
      followed.ok() ? "events come from " + std::string(DeviceEventSourceName(now)) + " now"
                    : followed.error().ToString();
  if (listener_ != nullptr) listener_->OnEventsLost(why);
}

void UdevDeviceCatalog::TakeEvents() {
  // In a burst, what is found by one event must not wait for all the others.
  constexpr int kMost = 4;
  for (int i = 0; i < kMost && monitor_; ++i) {
    const Result<std::optional<UdevDevice>> device = monitor_->Receive();
    if (!device.ok()) {
      if (listener_ != nullptr) listener_->OnEventsLost(device.error().ToString());
      continue;
    }
    if (!*device) return;
    if (listener_ != nullptr) {
      // Source: linux block/genhd.c@v6.1 (set_capacity_and_notify).
      listener_->OnDevice({(*device)->action() == "remove", RecordOf(**device),
                           (*device)->Property("RESIZE") == "1"});
    }
  }
}

void UdevDeviceCatalog::TakeAnnouncements() {
  constexpr int kMost = 16;
  for (int i = 0; i < kMost && announcements_; ++i) {
    const Result<std::optional<UdevDevice>> device = announcements_->Receive();
    if (!device.ok()) {
      if (listener_ != nullptr) listener_->OnEventsLost(device.error().ToString());
      continue;
    }
    if (!*device) return;
    if (listener_ != nullptr) {
      DeviceEvent event{(*device)->action() == "remove", AnnouncementOf(**device)};
      // Source: linux lib/kobject_uevent.c@v6.1 (kobject_synth_uevent), since 4.13.
      event.by_program = !(*device)->Property("SYNTH_UUID").empty();
      listener_->OnAnnounced(event);
    }
  }
}

Result<std::optional<CatalogDevice>> UdevDeviceCatalog::Find(DeviceNumber number) {
  return RecordOf(
      UdevDevice::FromBlockNumber(context_, makedev(number.device_major, number.device_minor)));
}

Result<std::optional<CatalogDevice>> UdevDeviceCatalog::FindByName(const std::string& name) {
  return RecordOf(UdevDevice::FromName(context_, kSubsystem, name));
}

Result<std::vector<CatalogDevice>> UdevDeviceCatalog::List() {
  ASSIGN_OR_RETURN(UdevEnumerate enumerate, UdevEnumerate::Create(context_));
  RETURN_IF_ERROR(enumerate.MatchSubsystem(kSubsystem));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, enumerate.Scan());
  std::vector<CatalogDevice> records;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::optional<CatalogDevice> record,
                     RecordOf(UdevDevice::FromSysfsPath(context_, path)));
    if (record) records.push_back(std::move(*record));
  }
  return records;
}

DeviceLink UdevDeviceCatalog::ReadLink(const std::string& path) {
  // Followed one by one and inside /dev only: a look elsewhere may hang.
  constexpr int kMostLinks = 8;
  DeviceLink link;
  std::filesystem::path at(path);
  for (int i = 0; i <= kMostLinks && StripPrefix(at.native(), "/dev/"); ++i) {
    struct stat info = {};
    if (::lstat(at.c_str(), &info) != 0) return link;
    link.exists = true;
    if (S_ISBLK(info.st_mode)) {
      link.number = DeviceNumber{major(info.st_rdev), minor(info.st_rdev)};
    }
    if (!S_ISLNK(info.st_mode)) return link;
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlink(at.c_str(), target.data(), target.size());
    if (size <= 0) return link;
    const std::string_view text(target.data(), static_cast<size_t>(size));
    if (i == 0) link.target = text;
    at = (at.parent_path() / text).lexically_normal();
  }
  return link;
}

}  // namespace volumed
