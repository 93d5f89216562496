#include "fakes/fake_udev.h"

#include <stdexcept>
#include <utility>

namespace volumed {

void FakeUdev::Plug(const FakeDisk& disk) {
  if (plugged_.count(disk.name) != 0) throw std::logic_error(disk.name + " is plugged already");
  const std::string node = "/dev/" + disk.name;
  FakeDevice device;
  if (!disk.serial.empty()) device.identity.stable_id = "serial:" + disk.serial;
  device.identity.size_bytes = disk.size_bytes;
  kernel_.AddDevice(node, device);
  const DeviceIdentity identity = kernel_.Device(node).identity;
  Plugged& plugged = plugged_[disk.name];
  plugged.disk = disk;
  plugged.record.number = {identity.device_major, identity.device_minor};
  plugged.record.name = disk.name;
  plugged.record.node = node;
  plugged.record.sysfs_path = "/sys/devices/fake/block/" + disk.name;
  plugged.record.disk_sequence = identity.disk_sequence;
  plugged.record.whole_disk = disk.whole_disk;
  Tell(DeviceEventSource::kKernel, {false, plugged.record});
}

void FakeUdev::Process(const std::string& name) {
  Plugged& plugged = plugged_.at(name);
  CatalogDevice& record = plugged.record;
  record.described = true;
  record.usable = plugged.disk.usable;
  record.links = plugged.disk.links;
  if (!plugged.disk.serial.empty()) record.serials = {plugged.disk.serial};
  for (const std::string& link : record.links) AddLink(link, name);
  Tell(DeviceEventSource::kUdev, {false, record});
}

void FakeUdev::CloseWritten(const std::string& name) {
  DeviceEvent event{false, plugged_.at(name).record};
  event.by_program = true;
  Tell(DeviceEventSource::kKernel, event);
}

void FakeUdev::Resize(const std::string& name) {
  const DeviceEvent event{false, plugged_.at(name).record, true};
  Tell(DeviceEventSource::kKernel, event);
  Tell(DeviceEventSource::kUdev, event);
}

void FakeUdev::Unplug(const std::string& name, bool leave_links) {
  const auto plugged = plugged_.find(name);
  const CatalogDevice record = plugged->second.record;
  for (const std::string& link : record.links) {
    if (!leave_links && kernel_.Find(link).content == record.node) kernel_.Remove(link);
  }
  plugged_.erase(plugged);
  kernel_.Remove(record.node);
  Tell(DeviceEventSource::kKernel, {true, record});
  Tell(DeviceEventSource::kUdev, {true, record});
}

void FakeUdev::AddLink(const std::string& path, const std::string& name) {
  RemoveLink(path);
  kernel_.AddSymlink(path, "/dev/" + name);
}

void FakeUdev::RemoveLink(const std::string& path) {
  if (kernel_.Exists(path)) kernel_.Remove(path);
}

void FakeUdev::Overflow() {
  scheduler_.Post([this] {
    if (listener_ != nullptr) listener_->OnEventsLost("the fake's queue ran full");
  });
}

void FakeUdev::CheckSource() {
  const DeviceEventSource now = running_ ? DeviceEventSource::kUdev : DeviceEventSource::kKernel;
  if (std::exchange(source_, now) != now && listener_ != nullptr) {
    listener_->OnEventsLost("the fake's source changed");
  }
}

void FakeUdev::Tell(DeviceEventSource source, const DeviceEvent& event) {
  const bool announced =
      announce_ && source == DeviceEventSource::kKernel && source_ == DeviceEventSource::kUdev;
  if (lose_ || (source != source_ && !announced)) return;
  scheduler_.Post([this, announced, event] {
    if (listener_ == nullptr) return;
    if (announced) {
      listener_->OnAnnounced(event);
    } else {
      listener_->OnDevice(event);
    }
  });
}

Result<std::optional<CatalogDevice>> FakeUdev::Find(DeviceNumber number) {
  ++look_ups_;
  for (const auto& [name, plugged] : plugged_) {
    if (plugged.record.number == number) return std::optional(plugged.record);
  }
  return std::optional<CatalogDevice>();
}

Result<std::optional<CatalogDevice>> FakeUdev::FindByName(const std::string& name) {
  ++look_ups_;
  const auto plugged = plugged_.find(name);
  if (plugged == plugged_.end()) return std::optional<CatalogDevice>();
  return std::optional(plugged->second.record);
}

Result<std::vector<CatalogDevice>> FakeUdev::List() {
  ++listings_;
  std::vector<CatalogDevice> records;
  for (const auto& [name, plugged] : plugged_) records.push_back(plugged.record);
  return records;
}

DeviceLink FakeUdev::ReadLink(const std::string& path) {
  DeviceLink link;
  const FakeFile file = kernel_.Find(path);
  link.exists = file.type != FileType::kMissing;
  if (file.type == FileType::kSymlink) link.target = file.content;
  const std::string node = link.target.empty() ? path : link.target;
  for (const auto& [name, plugged] : plugged_) {
    if (plugged.record.node == node) link.number = plugged.record.number;
  }
  return link;
}

}  // namespace volumed
