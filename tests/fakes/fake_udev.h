// FakeUdev: a DeviceCatalog over a FakeKernel's world: devices that are plugged, processed by a
// udevd in its own time, and unplugged; events that are late, lost or too many; links that stay.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/scheduler.h"
#include "fakes/fake_kernel.h"
#include "os/device_catalog.h"

namespace volumed {

struct FakeDisk {
  std::string name;  // "sdb"; its node is /dev/sdb
  std::string serial;
  int64_t size_bytes = 1 << 30;
  std::vector<std::string> links = {};  // that udevd's rules give it: full paths
  bool whole_disk = true;
  bool usable = true;
};

// Threads: the control thread.
class FakeUdev final : public DeviceCatalog {
 public:
  FakeUdev(Scheduler& scheduler, FakeKernel& kernel) : scheduler_(scheduler), kernel_(kernel) {}

  // The kernel has it: its node is there. An event of the kernel comes.
  void Plug(const FakeDisk& disk);
  // udevd has run its rules: links are made, over those of others. An event of udevd comes.
  void Process(const std::string& name);
  // Somebody has closed it who could write to it: udevd has the kernel announce it once more.
  void CloseWritten(const std::string& name);
  // It has another size: an event of udevd, after the kernel's.
  void Resize(const std::string& name);
  // Device and node go at once; its links too, unless they are `left`.
  void Unplug(const std::string& name, bool leave_links = false);
  // A link that no rule made.
  void AddLink(const std::string& path, const std::string& name);
  void RemoveLink(const std::string& path);

  // The kernel's events are told as announcements while udevd is there.
  void AnnounceDevices(bool announce) { announce_ = announce; }
  // Events are posted; they can be lost instead, with or without a word of it.
  void LoseEvents(bool lose) { lose_ = lose; }
  void Overflow();
  // There is none: events are the kernel's, and records bare. Told by CheckSource() only.
  void StopUdevd() { running_ = false; }
  void StartUdevd() { running_ = true; }

  void SetListener(DeviceListener* listener) override { listener_ = listener; }
  DeviceEventSource source() const override { return source_; }
  void CheckSource() override;
  Result<std::optional<CatalogDevice>> Find(DeviceNumber number) override;
  Result<std::optional<CatalogDevice>> FindByName(const std::string& name) override;
  Result<std::vector<CatalogDevice>> List() override;
  DeviceLink ReadLink(const std::string& path) override;

  // How often something was looked up.
  uint64_t look_ups() const { return look_ups_; }
  uint64_t listings() const { return listings_; }

 private:
  struct Plugged {
    FakeDisk disk;
    CatalogDevice record;
  };

  void Tell(DeviceEventSource source, const DeviceEvent& event);

  Scheduler& scheduler_;
  FakeKernel& kernel_;
  DeviceListener* listener_ = nullptr;
  DeviceEventSource source_ = DeviceEventSource::kUdev;
  bool running_ = true;
  bool lose_ = false;
  bool announce_ = false;
  std::map<std::string, Plugged> plugged_;
  uint64_t look_ups_ = 0;
  uint64_t listings_ = 0;
};

}  // namespace volumed
