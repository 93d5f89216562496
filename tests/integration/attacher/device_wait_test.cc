// Devices that come and go for real: loop devices, a udevd of the test's own, and none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "integration/attacher/udev_lab.h"
#include "integration/attacher/waiter_on_node.h"
#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"
#include "integration/partitions.h"
#include "os/udev.h"
#include "places.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

class DeviceWaitTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    const std::string missing = MissingForUdevLab();
    if (!missing.empty()) GTEST_SKIP() << "skipped: needs " << missing;
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    lab_ = std::make_unique<UdevLab>();
  }
  void TearDown() override {
    node_.reset();
    lab_.reset();
    MountNamespaceTest::TearDown();
  }

  void StartWaiter(UdevDeviceCatalogOptions options = {}) {
    auto created = WaiterOnNode::Create(VolumedWorkerPath(), options);
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    node_ = std::move(created).value();
  }
  std::string Image(const std::string& volume, int64_t size_bytes = kMiB) {
    const std::string path = scratch() + "/" + volume;
    EXPECT_TRUE(MakeImage(path, size_bytes));
    return path;
  }

  std::unique_ptr<UdevLab> lab_;
  std::unique_ptr<WaiterOnNode> node_;
};

std::string Text(const Result<FoundDevice>& found) {
  return found.ok() ? found->node + " (" + std::string(DeviceFoundByName(found->found_by)) + ")"
                    : found.error().ToString();
}

// ---- libudev itself

TEST_F(DeviceWaitTest, EachChangeOfADeviceIsAnEvent) {
  ASSERT_TRUE(lab_->StartUdevd());
  auto context = UdevContext::Create();
  ASSERT_TRUE(context.ok());
  auto monitor = UdevMonitor::Create(*context, UdevGroup::kUdev, "block", 1 << 20);
  ASSERT_TRUE(monitor.ok()) << monitor.error().ToString();
  const std::string image = Image("vol-1");
  LabLoop loop;
  ASSERT_TRUE(loop.valid());
  // Waits for an event of the loop device for which `wanted` holds.
  const auto next = [&](const std::string& name,
                        const std::function<bool(const UdevDevice&)>& wanted) {
    pollfd ready = {monitor->fd(), POLLIN, 0};
    while (::poll(&ready, 1, 10'000) == 1) {
      auto event = monitor->Receive();
      if (event.ok() && *event && (*event)->name() == name && wanted(**event)) return true;
    }
    return false;
  };
  const std::string name = loop.name();
  EXPECT_TRUE(next(name, [](const UdevDevice& event) { return event.action() == "add"; }));
  ASSERT_TRUE(loop.Attach(image));
  EXPECT_TRUE(next(name, [](const UdevDevice& event) {
    const std::vector<std::string> links = event.links();
    return event.action() == "change" && event.Property("ID_SERIAL") == "vol-1" &&
           std::count(links.begin(), links.end(), VolumeLink("vol-1")) == 1;
  }));
  ASSERT_EQ(::truncate(image.c_str(), 2 * kMiB), 0);
  ASSERT_TRUE(loop.Resize());
  EXPECT_TRUE(next(name, [](const UdevDevice& event) { return event.Property("RESIZE") == "1"; }));
  ASSERT_TRUE(loop.Detach());
  EXPECT_TRUE(next(name, [](const UdevDevice& event) { return event.links().size() <= 1; }));
  ASSERT_TRUE(loop.Remove());
  EXPECT_TRUE(next(name, [](const UdevDevice& event) { return event.action() == "remove"; }));
  auto nothing = monitor->Receive();
  EXPECT_TRUE(nothing.ok()) << nothing.error().ToString();
}

// As after each fsck and umount, while other devices are still waited for.
TEST_F(DeviceWaitTest, ADeviceThatAWriterClosedIsNotOpenedAgain) {
  ASSERT_TRUE(lab_->StartUdevd());
  StartWaiter();
  ASSERT_TRUE(node_);
  const DeviceWaitId other = node_->Start(LinkQuery(VolumeLink("vol-2")), std::chrono::seconds(60),
                                          [](const Result<FoundDevice>&) {});
  LabLoop loop;
  ASSERT_TRUE(loop.Attach(Image("vol-1")));
  ASSERT_TRUE(node_->Await(LinkQuery(VolumeLink("vol-1"))).ok());
  const uint64_t opened = node_->waiter_->stats().verifications;
  for (int i = 0; i < 3; ++i) {
    const uint64_t events = node_->waiter_->stats().events;
    ASSERT_TRUE(Descriptor(::open(loop.node().c_str(), O_RDWR | O_CLOEXEC)).valid());
    EXPECT_TRUE(node_->RunUntil([&] { return node_->waiter_->stats().events > events; }));
  }
  EXPECT_EQ(node_->waiter_->stats().verifications, opened);
  EXPECT_TRUE(node_->waiter_->Cancel(other));
}

TEST_F(DeviceWaitTest, DevicesAreListedAndLookedUpWithoutUdevd) {
  const LabLoop loop;
  StartWaiter();
  ASSERT_TRUE(node_);
  EXPECT_EQ(node_->catalog_->source(), DeviceEventSource::kKernel);
  auto all = node_->catalog_->List();
  ASSERT_TRUE(all.ok()) << all.error().ToString();
  const auto ours = std::find_if(all->begin(), all->end(), [&](const CatalogDevice& record) {
    return record.name == loop.name();
  });
  ASSERT_NE(ours, all->end());
  EXPECT_EQ(ours->node, loop.node());
  EXPECT_EQ(ours->number.device_major, 7u);
  EXPECT_GT(ours->disk_sequence, 0u);
  EXPECT_TRUE(ours->whole_disk);
  EXPECT_FALSE(ours->described);
  auto same = node_->catalog_->Find(ours->number);
  ASSERT_TRUE(same.ok() && *same);
  EXPECT_EQ((*same)->sysfs_path, ours->sysfs_path);
  EXPECT_EQ((*node_->catalog_->FindByName(loop.name()))->number, ours->number);
  EXPECT_FALSE(*node_->catalog_->Find({7, 1'000'000}));
  EXPECT_FALSE(*node_->catalog_->FindByName("loop-none"));
}

TEST_F(DeviceWaitTest, LinksAreFollowedInsideDevOnly) {
  const LabLoop loop;
  StartWaiter();
  ASSERT_TRUE(node_);
  const auto link = [&](const std::string& target) {
    const std::string path = "/dev/disk/lab";
    ::unlink(path.c_str());
    EXPECT_EQ(::symlink(target.c_str(), path.c_str()), 0);
    return node_->catalog_->ReadLink(path);
  };
  EXPECT_TRUE(link("../" + loop.name()).number);
  EXPECT_TRUE(link(loop.node()).number);
  EXPECT_EQ(link("../" + loop.name()).target, "../" + loop.name());
  EXPECT_TRUE(link("../loop-none").exists);
  EXPECT_FALSE(link("../loop-none").number);
  EXPECT_FALSE(link("lab").number) << "a link to itself";
  EXPECT_FALSE(link("../null").number) << "no block device";
  ASSERT_EQ(::symlink(loop.node().c_str(), (scratch() + "/out").c_str()), 0);
  EXPECT_FALSE(link(scratch() + "/out").number);
  EXPECT_FALSE(node_->catalog_->ReadLink("/dev/disk/none").exists);
}

// ---- the waiter

TEST_F(DeviceWaitTest, ADeviceIsFoundByEveryNameThatItHas) {
  ASSERT_TRUE(lab_->StartUdevd());
  StartWaiter();
  ASSERT_TRUE(node_);
  EXPECT_EQ(node_->catalog_->source(), DeviceEventSource::kUdev);
  const std::string image = Image("vol-1");
  LabLoop loop;
  std::vector<DeviceQuery> queries(5);
  queries[0].links = {VolumeLink("vol-1")};
  queries[1].serial = "vol-1";
  queries[2].sysfs_path = "/sys/block/" + loop.name();
  queries[3].links = {loop.node()};
  queries[4].links = {"/dev/disk/by-id/of-nobody", VolumeLink("vol-1")};
  queries[4].size_bytes = kMiB;
  std::vector<Result<FoundDevice>> answers;
  for (const DeviceQuery& query : queries) {
    node_->Start(query, seconds(10), [&](auto found) { answers.push_back(std::move(found)); });
  }
  // On a slow machine the device would be there before anybody has looked.
  ASSERT_TRUE(node_->RunUntil([&] { return node_->waiter_->stats().looks >= queries.size(); }));
  ASSERT_TRUE(loop.Attach(image));
  ASSERT_TRUE(node_->RunUntil([&] { return answers.size() == queries.size(); }));
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer.ok()) << Text(answer);
    EXPECT_EQ(answer->node, loop.node());
    EXPECT_EQ(answer->found_by, DeviceFoundBy::kEvent);
    EXPECT_EQ(answer->facts.identity.size_bytes, kMiB);
    EXPECT_THAT(answer->facts.identity.stable_id, HasSubstr("loop:" + image));
  }
  // Once more, now that it is there.
  for (const DeviceQuery& query : queries) {
    const auto again = node_->Await(query);
    ASSERT_TRUE(again.ok()) << Text(again);
    EXPECT_EQ(again->node, loop.node());
    // An event that is on its way may still come first; nobody has to wait for the second look.
    EXPECT_NE(again->found_by, DeviceFoundBy::kSecondLook);
  }
}

TEST_F(DeviceWaitTest, APartitionIsFoundByItsNodeAndNotByTheSerialOfItsDisk) {
  ASSERT_TRUE(lab_->StartUdevd());
  StartWaiter();
  ASSERT_TRUE(node_);
  LabLoop loop;
  ASSERT_TRUE(loop.Attach(Image("vol-1", 4 * kMiB)));
  std::optional<Result<FoundDevice>> answer;
  node_->Start(LinkQuery(PartitionOf(loop.node(), 1)), seconds(10),
               [&](auto found) { answer = std::move(found); });
  {
    const Descriptor disk(::open(loop.node().c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(AskOfPartition(disk.get(), BLKPG_ADD_PARTITION, 1, kMiB, kMiB), 0)
        << std::strerror(errno);
  }
  ASSERT_TRUE(node_->RunUntil([&] { return answer.has_value(); }));
  ASSERT_TRUE(answer->ok()) << Text(*answer);
  EXPECT_EQ((*answer)->facts.identity.size_bytes, kMiB);
  EXPECT_THAT((*answer)->facts.identity.stable_id, ::testing::EndsWith("-part1"));
  DeviceQuery query;
  query.serial = "vol-1";
  const auto disk = node_->Await(query);
  ASSERT_TRUE(disk.ok()) << Text(disk);
  EXPECT_EQ(disk->node, loop.node());
  const Descriptor device(::open(loop.node().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(
      node_->RunUntil([&] { return AskOfPartition(device.get(), BLKPG_DEL_PARTITION, 1) == 0; }));
}

TEST_F(DeviceWaitTest, WithoutUdevdTheKernelsEventsFindADevice) {
  StartWaiter();
  ASSERT_TRUE(node_);
  const std::string image = Image("vol-1");
  LabLoop loop;
  std::vector<DeviceQuery> queries(3);
  queries[0].sysfs_path = "/sys/class/block/" + loop.name();
  queries[1].links = {loop.node()};
  queries[2].number = node_->catalog_->FindByName(loop.name()).value()->number;
  std::vector<Result<FoundDevice>> answers;
  for (const DeviceQuery& query : queries) {
    node_->Start(query, seconds(10), [&](auto found) { answers.push_back(std::move(found)); });
  }
  // On a slow machine the device would be there before anybody has looked.
  ASSERT_TRUE(node_->RunUntil([&] { return node_->waiter_->stats().looks >= queries.size(); }));
  ASSERT_TRUE(loop.Attach(image));
  ASSERT_TRUE(node_->RunUntil([&] { return answers.size() == queries.size(); }));
  for (const auto& answer : answers) EXPECT_EQ(Text(answer), loop.node() + " (event)");
}

TEST_F(DeviceWaitTest, AStaleLinkIsNamedAtTheDeadline) {
  ASSERT_TRUE(lab_->StartUdevd());
  StartWaiter();
  ASSERT_TRUE(node_);
  LabLoop loop;
  ASSERT_TRUE(loop.Attach(Image("vol-1")));
  ASSERT_TRUE(node_->Await(LinkQuery(VolumeLink("vol-1"))).ok());
  const std::string stale = VolumeLink("vol-2");
  ASSERT_EQ(::symlink(("../../" + loop.name()).c_str(), stale.c_str()), 0);
  const auto answer = node_->Await(LinkQuery(stale), milliseconds(1500));
  ASSERT_FALSE(answer.ok()) << Text(answer);
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(answer.error().message(), HasSubstr(stale + " points to " + loop.node()));
  EXPECT_THAT(answer.error().message(), HasSubstr("stale link"));
}

TEST_F(DeviceWaitTest, AQueueThatRanFullIsMadeUpFor) {
  ASSERT_TRUE(lab_->StartUdevd());
  UdevDeviceCatalogOptions options;
  options.receive_buffer_bytes = 1;  // the kernel makes it some 2 KiB
  StartWaiter(options);
  ASSERT_TRUE(node_);
  std::vector<LabLoop> loops(10);
  std::vector<Result<FoundDevice>> answers;
  for (size_t i = 0; i < loops.size(); ++i) {
    const std::string volume = "vol-" + std::to_string(i);
    Image(volume);
    node_->Start(LinkQuery(VolumeLink(volume)), seconds(20),
                 [&](auto found) { answers.push_back(std::move(found)); });
  }
  // The control thread is this one: it hears of nothing before all links are there.
  for (size_t i = 0; i < loops.size(); ++i) {
    ASSERT_TRUE(loops[i].Attach(scratch() + "/vol-" + std::to_string(i)));
  }
  const auto all_linked = [&] {
    for (size_t i = 0; i < loops.size(); ++i) {
      if (::access(VolumeLink("vol-" + std::to_string(i)).c_str(), F_OK) != 0) return false;
    }
    return true;
  };
  for (int i = 0; i < 5000 && !all_linked(); ++i) ::usleep(1000);
  ASSERT_TRUE(all_linked());
  ASSERT_TRUE(node_->RunUntil([&] { return answers.size() == loops.size(); }));
  for (const auto& answer : answers) EXPECT_TRUE(answer.ok()) << Text(answer);
  EXPECT_GE(node_->waiter_->stats().events_lost, 1u);
  EXPECT_GE(node_->waiter_->stats().found_by_second_look, 1u);
}

TEST_F(DeviceWaitTest, AUdevdThatComesLaterIsNoticed) {
  StartWaiter();
  ASSERT_TRUE(node_);
  ASSERT_EQ(node_->catalog_->source(), DeviceEventSource::kKernel);
  std::optional<Result<FoundDevice>> answer;
  node_->Start(LinkQuery(VolumeLink("vol-1")), seconds(20),
               [&](auto found) { answer = std::move(found); });
  ASSERT_TRUE(lab_->StartUdevd());
  LabLoop loop;
  ASSERT_TRUE(loop.Attach(Image("vol-1")));
  ASSERT_TRUE(node_->RunUntil([&] { return answer.has_value(); }));
  EXPECT_TRUE(answer->ok()) << Text(*answer);
  EXPECT_EQ(node_->catalog_->source(), DeviceEventSource::kUdev);
  lab_->StopUdevd();
  EXPECT_FALSE(UdevdListens());
  node_->catalog_->CheckSource();
  EXPECT_EQ(node_->catalog_->source(), DeviceEventSource::kKernel);
}

// ---- fifty devices in random order

// When each disk, by its sequence, was first announced with its names, as another listener hears
// it.
class Announcements {
 public:
  Announcements() : thread_([this] { Listen(); }) {
    while (!listening_) ::usleep(100);
  }
  ~Announcements() {
    stop_ = true;
    thread_.join();
  }
  std::optional<TimePoint> First(uint64_t sequence) {
    const std::lock_guard lock(mu_);
    const auto found = first_.find(sequence);
    return found == first_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void Listen() {
    auto context = UdevContext::Create();
    auto monitor = UdevMonitor::Create(*context, UdevGroup::kUdev, "block", 16 << 20);
    listening_ = true;
    pollfd ready = {monitor->fd(), POLLIN, 0};
    while (!stop_) {
      if (::poll(&ready, 1, 20) != 1) continue;
      const TimePoint now = clock_.Now();
      auto event = monitor->Receive();
      if (!event.ok() || !*event || (*event)->Property("ID_SERIAL").empty()) continue;
      const std::lock_guard lock(mu_);
      first_.emplace(std::stoull((*event)->Property("DISKSEQ")), now);
    }
  }

  RealClock clock_;
  std::mutex mu_;
  std::map<uint64_t, TimePoint> first_;
  std::atomic<bool> listening_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

constexpr size_t kVolumes = 50;
constexpr int kRounds = 6;

class FiftyDevices : public DeviceWaitTest {
 protected:
  static std::string Volume(size_t i) { return "vol-" + std::to_string(i); }
  static int64_t Size(size_t i) { return static_cast<int64_t>(i + 1) * kMiB; }

  // Every volume at a node of its own, in random order; while it waits for each.
  void Round(std::vector<LabLoop>& loops, Announcements& announcements) {
    size_t answered = 0;
    for (size_t i = 0; i < kVolumes; ++i) {
      node_->Start(LinkQuery(VolumeLink(Volume(i))), seconds(25), [&, i](auto found) {
        ++answered;
        Judge(i, found, announcements);
      });
    }
    std::vector<size_t> order(kVolumes);
    for (size_t i = 0; i < kVolumes; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::shuffle(at_.begin(), at_.end(), random_);
    std::thread plugger([&] {
      for (const size_t i : order) {
        EXPECT_TRUE(loops[at_[i]].Attach(scratch() + "/" + Volume(i)));
      }
    });
    EXPECT_TRUE(node_->RunUntil([&] { return answered == kVolumes; }));
    plugger.join();
  }

  // A link is left behind to each node, and each node is soon another volume's.
  void Unplug(std::vector<LabLoop>& loops) {
    std::vector<size_t> order(kVolumes);
    for (size_t i = 0; i < kVolumes; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t i : order) EXPECT_TRUE(loops[at_[i]].Detach());
    const auto all_gone = [] {
      for (size_t i = 0; i < kVolumes; ++i) {
        if (::access(VolumeLink(Volume(i)).c_str(), F_OK) == 0) return false;
      }
      return true;
    };
    ASSERT_TRUE(node_->RunUntil(all_gone));
    // udevd takes the directory away with its last link.
    std::filesystem::create_directories("/dev/disk/by-id");
    for (size_t i = 0; i < kVolumes; ++i) {
      ASSERT_EQ(::symlink(("../../" + loops[at_[i]].name()).c_str(), VolumeLink(Volume(i)).c_str()),
                0);
    }
  }

  void Judge(size_t i, const Result<FoundDevice>& found, Announcements& announcements) {
    const TimePoint now = node_->scheduler_->clock().Now();
    if (!found.ok()) {
      ADD_FAILURE() << found.error().ToString();
      return;
    }
    const DeviceIdentity& identity = found->facts.identity;
    const std::string file = "/" + Volume(i) + ":";
    const bool right =
        identity.size_bytes == Size(i) && identity.stable_id.find(file) != std::string::npos;
    wrong_ += right ? 0 : 1;
    if (found->found_by == DeviceFoundBy::kEvent) {
      own_ms_.push_back(std::chrono::duration<double, std::milli>(found->since_event).count());
    }
    found_by_event_ += found->found_by == DeviceFoundBy::kEvent ? 1 : 0;
    const auto announced = announcements.First(identity.disk_sequence);
    ahead_ += announced ? 0 : 1;
    latencies_ms_.push_back(
        announced ? std::chrono::duration<double, std::milli>(now - *announced).count() : 0);
  }

  static std::string Percentiles(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    std::ostringstream text;
    for (const auto& [name, share] : {std::pair{"p50 ", 0.5}, {", p99 ", 0.99}, {", max ", 1.0}}) {
      const double last = static_cast<double>(values.size() - 1);
      text << name << std::round(10 * values.at(static_cast<size_t>(share * last + 0.5))) / 10
           << " ms";
    }
    return text.str();
  }

  std::mt19937 random_{20260101};
  std::vector<size_t> at_;
  int wrong_ = 0;
  int found_by_event_ = 0;
  int ahead_ = 0;                     // answers before the other listener heard of the event
  std::vector<double> latencies_ms_;  // from the event as that listener heard it
  std::vector<double> own_ms_;        // from the event as the waiter heard it
};

TEST_F(FiftyDevices, ComeAndGoInRandomOrderWithStaleLinksAndNoneIsMistaken) {
  ASSERT_TRUE(lab_->StartUdevd());
  StartWaiter();
  ASSERT_TRUE(node_);
  std::vector<LabLoop> loops(kVolumes);
  for (size_t i = 0; i < kVolumes; ++i) {
    ASSERT_TRUE(loops[i].valid());
    Image(Volume(i), Size(i));
    at_.push_back(i);
  }
  Announcements announcements;
  std::string cold;  // workers have to be started
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    Round(loops, announcements);
    Unplug(loops);
    if (round == 0 && !latencies_ms_.empty()) {
      cold = Percentiles(latencies_ms_);
      latencies_ms_.clear();
      own_ms_.clear();
    }
  }
  EXPECT_EQ(wrong_, 0);
  ASSERT_EQ(latencies_ms_.size(), kVolumes * (kRounds - 1));
  const DeviceWaiterStats stats = node_->waiter_->stats();
  std::cout << kVolumes * kRounds << " waits, " << found_by_event_ << " answered by event, "
            << stats.refused << " refused, " << wrong_ << " wrong; from event to answer "
            << Percentiles(latencies_ms_) << " (first round " << cold << "; " << ahead_
            << " before another listener heard of it)"
            << "; as the waiter heard it " << Percentiles(own_ms_) << "; " << stats.events
            << " events, " << stats.verifications << " devices opened\n";
}

}  // namespace
}  // namespace volumed
