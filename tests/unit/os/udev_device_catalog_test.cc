// The catalog on a libudev that the test plays: the functions of that library are defined here, and
// a program's own come before those of a library.
#include "os/udev_device_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libudev.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "fakes/must.h"

struct udev {};
struct udev_list_entry {
  std::string name;
  udev_list_entry* next = nullptr;
};
struct udev_device {
  std::string name = "sdb";
  std::string type = "disk";
  bool initialized = true;
  std::map<std::string, std::string> properties;
  std::vector<udev_list_entry> links;
  udev_device* disk = nullptr;  // of a partition
};
struct udev_monitor {
  int fd;
};

namespace {

// What a look-up finds.
udev_device*& Found() {
  static udev_device* found = nullptr;
  return found;
}

// How many monitors can still be made.
int& MonitorsLeft() {
  static int left = 0;
  return left;
}

// The descriptor of the last monitor that was made.
int& LastMonitor() {
  static int last = -1;
  return last;
}

}  // namespace

extern "C" {

udev* udev_new() {
  static udev library;
  return &library;
}
udev* udev_unref(udev* /*library*/) { return nullptr; }

// Devices are the test's.
udev_device* udev_device_ref(udev_device* device) { return device; }
udev_device* udev_device_unref(udev_device* /*device*/) { return nullptr; }
udev_device* udev_device_new_from_devnum(udev* /*library*/, char /*type*/, dev_t /*number*/) {
  if (Found() == nullptr) errno = ENOENT;
  return Found();
}
const char* udev_device_get_sysname(udev_device* device) { return device->name.c_str(); }
const char* udev_device_get_devtype(udev_device* device) { return device->type.c_str(); }
const char* udev_device_get_devnode(udev_device* /*device*/) { return nullptr; }
const char* udev_device_get_syspath(udev_device* /*device*/) { return "/sys/devices/b/sdb"; }
const char* udev_device_get_property_value(udev_device* device, const char* key) {
  const auto found = device->properties.find(key);
  return found == device->properties.end() ? nullptr : found->second.c_str();
}
dev_t udev_device_get_devnum(udev_device* /*device*/) { return makedev(8, 16); }
int udev_device_get_is_initialized(udev_device* device) { return device->initialized ? 1 : 0; }
udev_device* udev_device_get_parent_with_subsystem_devtype(udev_device* device,
                                                           const char* /*subsystem*/,
                                                           const char* /*type*/) {
  return device->disk;
}
udev_list_entry* udev_device_get_devlinks_list_entry(udev_device* device) {
  return device->links.empty() ? nullptr : device->links.data();
}
udev_list_entry* udev_list_entry_get_next(udev_list_entry* entry) { return entry->next; }
const char* udev_list_entry_get_name(udev_list_entry* entry) { return entry->name.c_str(); }

// No event ever comes.
udev_monitor* udev_monitor_new_from_netlink(udev* /*library*/, const char* /*group*/) {
  if (MonitorsLeft() == 0) {
    errno = EMFILE;
    return nullptr;
  }
  --MonitorsLeft();
  LastMonitor() = ::eventfd(0, EFD_CLOEXEC);
  return new udev_monitor{LastMonitor()};
}
udev_monitor* udev_monitor_unref(udev_monitor* monitor) {
  ::close(monitor->fd);
  delete monitor;
  return nullptr;
}
int udev_monitor_filter_add_match_subsystem_devtype(udev_monitor* /*monitor*/,
                                                    const char* /*subsystem*/,
                                                    const char* /*type*/) {
  return 0;
}
int udev_monitor_set_receive_buffer_size(udev_monitor* /*monitor*/, int /*bytes*/) { return 0; }
int udev_monitor_enable_receiving(udev_monitor* /*monitor*/) { return 0; }
int udev_monitor_get_fd(udev_monitor* monitor) { return monitor->fd; }

}  // extern "C"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UdevDeviceCatalogTest : public ::testing::Test {
 protected:
  UdevDeviceCatalogTest() {
    MonitorsLeft() = 2;
    catalog_ = Must(UdevDeviceCatalog::Create(*loop_));
    Found() = &device_;
    device_.properties = {{"DISKSEQ", "5"}, {"ID_SERIAL", "s-1"}, {"ID_WWN", "0x5000"}};
    SetLinks({"/dev/disk/by-id/b", "/dev/disk/by-diskseq/5", "/dev/disk/by-id/a"});
  }
  ~UdevDeviceCatalogTest() override { Found() = nullptr; }

  void SetLinks(const std::vector<std::string>& names) {
    device_.links.clear();
    for (const std::string& name : names) device_.links.push_back({name});
    for (size_t i = 1; i < names.size(); ++i) device_.links[i - 1].next = &device_.links[i];
  }
  CatalogDevice Find() { return Must(catalog_->Find({8, 16})).value(); }

  RealClock clock_;
  udev_device device_;
  std::unique_ptr<EventLoop> loop_ = Must(EventLoop::Create(clock_));
  std::unique_ptr<UdevDeviceCatalog> catalog_;
};

TEST_F(UdevDeviceCatalogTest, ADiskThatUdevdHasDescribedIsToldWithItsLinksAndNames) {
  const CatalogDevice disk = Find();
  EXPECT_TRUE(disk.described);
  EXPECT_TRUE(disk.usable);
  EXPECT_TRUE(disk.whole_disk);
  EXPECT_EQ(disk.sysfs_path, "/sys/devices/b/sdb");
  EXPECT_EQ(disk.disk_sequence, 5u);
  EXPECT_THAT(disk.links,
              ElementsAre("/dev/disk/by-diskseq/5", "/dev/disk/by-id/a", "/dev/disk/by-id/b"));
  EXPECT_THAT(disk.serials, ElementsAre("s-1"));
  EXPECT_THAT(disk.wwids, ElementsAre("0x5000"));
}

TEST_F(UdevDeviceCatalogTest, OfADiskThatUdevdHasNotSeenOnlyTheKernelsWordsAreTold) {
  device_.initialized = false;
  const CatalogDevice disk = Find();
  EXPECT_FALSE(disk.described);
  EXPECT_EQ(disk.name, "sdb");
  EXPECT_EQ(disk.disk_sequence, 5u);
  EXPECT_THAT(disk.links, IsEmpty());
  EXPECT_THAT(disk.serials, IsEmpty());
}

TEST_F(UdevDeviceCatalogTest, WhatUdevdSaysOfTheDiskBeforeItIsNotTaken) {
  SetLinks({"/dev/disk/by-diskseq/4", "/dev/disk/by-id/a"});
  EXPECT_FALSE(Find().described);
  SetLinks({"/dev/disk/by-id/a"});
  EXPECT_TRUE(Find().described) << "its rules make no link with the sequence";
}

TEST_F(UdevDeviceCatalogTest, APartitionIsDescribedOnceItsDiskIs) {
  udev_device disk = std::move(device_);
  device_ = {.name = "sdb1", .type = "partition", .properties = {}, .links = {}, .disk = &disk};
  device_.properties["DISKSEQ"] = "5";
  EXPECT_TRUE(Find().described);
  EXPECT_FALSE(Find().whole_disk);
  disk.initialized = false;
  EXPECT_FALSE(Find().described);
}

TEST_F(UdevDeviceCatalogTest, WhatUdevdKeepsFromUseIsNotUsable) {
  device_.properties["DM_MULTIPATH_DEVICE_PATH"] = "1";
  EXPECT_FALSE(Find().usable);
}

TEST_F(UdevDeviceCatalogTest, ADeviceThatIsNotThereIsNoError) {
  Found() = nullptr;
  EXPECT_EQ(Must(catalog_->Find({8, 16})).has_value(), false);
}

// The loop kept a watch on a closed descriptor, for a catalog that was gone.
TEST_F(UdevDeviceCatalogTest, AFirstMonitorWasStillWatchedWhenThereWasNoSecond) {
  MonitorsLeft() = 1;
  UdevDeviceCatalogOptions options;
  options.udevd_listens = [] { return true; };
  const auto failed = UdevDeviceCatalog::Create(*loop_, options);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().sys_errno(), EMFILE);
  EXPECT_EQ(MonitorsLeft(), 0) << "the first one was made";
  const Descriptor next(::eventfd(0, EFD_CLOEXEC));
  ASSERT_EQ(next.get(), LastMonitor()) << "the lowest number that is free";
  const Status watched = loop_->WatchFd(next.get(), EPOLLIN, [](uint32_t) {});
  EXPECT_TRUE(watched.ok()) << watched.error().ToString();
  loop_->UnwatchFd(next.get());
}

}  // namespace
}  // namespace volumed
