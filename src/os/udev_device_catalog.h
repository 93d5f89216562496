// UdevDeviceCatalog: the DeviceCatalog of a node, by libudev.
//
// With a udevd in this network namespace its events are followed: they come when its rules have run
// and links are made. Without one, the kernel's own: a device comes with its node (devtmpfs) and
// without links or properties. Looking things up needs no udevd in either case.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "os/device_catalog.h"
#include "os/udev.h"

namespace volumed {

// Whether a udevd, or systemd on its behalf, listens in this thread's network namespace: its events
// do not leave that. It is not asked itself, which could start it.
bool UdevdListens();

struct UdevDeviceCatalogOptions {
  // What the kernel may queue while the control thread is busy; an event takes some 2 KiB of it.
  int receive_buffer_bytes = 16 << 20;
  // Says whether events are to come from udevd; another one is for tests.
  bool (*udevd_listens)() = &UdevdListens;
};

// Threads: the loop's, the destructor too. Blocks: as DeviceCatalog says. The listener is called
// from the loop, never from within a call of this, but for OnEventsLost in CheckSource().
class UdevDeviceCatalog final : public DeviceCatalog {
 public:
  // Follows events on `loop`, which outlives the catalog. Errors: errno, not applied. It follows
  // udevd if one listens now, else the kernel.
  static Result<std::unique_ptr<UdevDeviceCatalog>> Create(EventLoop& loop,
                                                           UdevDeviceCatalogOptions options = {});
  ~UdevDeviceCatalog() override;

  void SetListener(DeviceListener* listener) override { listener_ = listener; }
  DeviceEventSource source() const override { return source_; }
  // Without a change it costs one reading of /proc/thread-self/net/unix. If the new source cannot
  // be followed, the old one stays, and the listener hears why.
  void CheckSource() override;
  Result<std::optional<CatalogDevice>> Find(DeviceNumber number) override;
  Result<std::optional<CatalogDevice>> FindByName(const std::string& name) override;
  Result<std::vector<CatalogDevice>> List() override;
  // Follows at most eight links, and none out of /dev.
  DeviceLink ReadLink(const std::string& path) override;

 private:
  UdevDeviceCatalog(EventLoop& loop, UdevDeviceCatalogOptions options, UdevContext context)
      : loop_(loop), options_(options), context_(std::move(context)) {}

  // After an error the loop watches what it watched before.
  Status Follow(DeviceEventSource source);
  void Unfollow();
  void TakeEvents();
  void TakeAnnouncements();

  EventLoop& loop_;
  const UdevDeviceCatalogOptions options_;
  const UdevContext context_;
  std::optional<UdevMonitor> monitor_;
  std::optional<UdevMonitor> announcements_;  // of the kernel, while events come from udevd
  DeviceEventSource source_ = DeviceEventSource::kKernel;
  DeviceListener* listener_ = nullptr;
};

}  // namespace volumed
