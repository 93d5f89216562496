#include "device_wait_mounts.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bench/spent.h"
#include "device_wait_ways.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/memory_format_intents.h"
#include "integration/attacher/udev_lab.h"
#include "integration/loop_device.h"
#include "mounter/safe_format_and_mount.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

// Devices with an ext4 on them, mounted as a plugin mounts them: probed, checked, mounted, by
// workers. Only what leads to the device differs.
class Mounted {
 public:
  Mounted(std::string scratch, WaiterOnNode& node, int many)
      : scratch_(std::move(scratch)), node_(node), loops_(static_cast<size_t>(many)) {
    const std::string image = scratch_ + "/ext4";
    Check(MakeImage(image, kMountedBytes), "image");
    Check(Run({"mkfs.ext4", "-q", "-F", image}) == 0, "mkfs.ext4");
    for (int i = 0; i < many; ++i) {
      Check(Run({"cp", "--sparse=always", image, Image(i)}) == 0, "copy an image");
      Check(::mkdir(Place(i).c_str(), 0700) == 0, "mkdir");
    }
  }

  // `count` devices, attached one after another; how long each took from its attach, and all.
  struct Times {
    Samples each;
    double all = 0;
    Spent spent;
    uint64_t spawned = 0;  // workers
  };
  Times Ours(int count) {
    return Measure(count, [this, count](const MountOf& mount) {
      int left = count;
      for (int i = 0; i < count; ++i) {
        node_.Start(LinkQuery(VolumeLink(Name(i))), std::chrono::seconds(60), [&, i](auto found) {
          const DeviceIdentity identity = Must(std::move(found)).facts.identity;
          node_.scheduler_->RunBlocking([&, i, identity] {
            mount(i, identity);
            node_.scheduler_->Post([&] {
              if (--left == 0) node_.scheduler_->Stop();
            });
          });
        });
      }
      std::thread plugger([this, count] { AttachAll(count); });
      node_.scheduler_->Run();
      plugger.join();
    });
  }
  // One thread per volume, as kubelet has an operation for each.
  Times Polled(int count, milliseconds period) {
    return Measure(count, [this, count, period](const MountOf& mount) {
      const SteadyClock::time_point start = SteadyClock::now();
      std::vector<std::thread> pollers;
      for (int i = 0; i < count; ++i) {
        pollers.emplace_back([&, i] {
          Poll(VolumeLink(Name(i)), period, start + period);
          mount(i, std::nullopt);
        });
      }
      AttachAll(count);
      for (std::thread& poller : pollers) poller.join();
    });
  }

 private:
  static constexpr int64_t kMountedBytes = 16 << 20;
  // Mounts one; what was found out of its device is expected of it.
  using MountOf = std::function<void(int i, const std::optional<DeviceIdentity>& expected)>;

  static std::string Name(int i) { return "vol-m" + std::to_string(i); }
  std::string Image(int i) const { return scratch_ + "/" + Name(i); }
  std::string Place(int i) const { return scratch_ + "/at-" + std::to_string(i); }

  Times Measure(int count, const std::function<void(const MountOf&)>& run) {
    attached_.assign(static_cast<size_t>(count), {});
    std::vector<SteadyClock::time_point> mounted(static_cast<size_t>(count));
    Drain(node_);
    const uint64_t spawned = node_.kernel_->stats().spawned;
    const Spent before = SpentUntilNow();
    const SteadyClock::time_point start = SteadyClock::now();
    run([&](int i, const std::optional<DeviceIdentity>& expected) {
      MountOne(i, expected);
      mounted[static_cast<size_t>(i)] = SteadyClock::now();
    });
    Times times;
    times.all = Millis(SteadyClock::now() - start);
    times.spent = SpentUntilNow() - before;
    times.spawned = node_.kernel_->stats().spawned - spawned;
    for (size_t i = 0; i < mounted.size(); ++i) {
      times.each.values.push_back(Millis(mounted[i] - attached_[i]));
    }
    for (int i = 0; i < count; ++i) {
      Check(::umount2(Place(i).c_str(), 0) == 0, "umount");
      Check(loops_[static_cast<size_t>(i)].Detach(), "detach");
      WaitUntilGone(VolumeLink(Name(i)));
    }
    Run({"udevadm", "settle"});
    return times;
  }
  void AttachAll(int count) {
    for (int i = 0; i < count; ++i) {
      Check(loops_[static_cast<size_t>(i)].Attach(Image(i)), "attach");
      attached_[static_cast<size_t>(i)] = SteadyClock::now();
    }
  }
  void MountOne(int i, const std::optional<DeviceIdentity>& expected) {
    MemoryFormatIntents intents;
    SafeMountRequest request;
    request.key = Name(i);
    request.device = VolumeLink(Name(i));
    request.expected_device = expected;
    request.target = {Place(i), ""};
    request.fs_type = "ext4";
    CallOptions call;
    call.deadline = Deadline::After(node_.scheduler_->clock(), std::chrono::seconds(60));
    FakeIrreversibleSteps irreversible;
    const SafeMountReport report =
        SafeFormatAndMount(*node_.kernel_, intents, irreversible).FormatAndMount(request, call);
    if (!report.status.ok()) Die(report.status.error().ToString());
  }

  const std::string scratch_;
  WaiterOnNode& node_;
  std::vector<LabLoop> loops_;
  std::vector<SteadyClock::time_point> attached_;
};

struct MountedRounds {
  const char* name;
  std::function<Mounted::Times()> run;
  std::vector<Mounted::Times> rounds = {};

  // The round of which a share of all were faster.
  const Mounted::Times& At(double share) {
    std::sort(rounds.begin(), rounds.end(),
              [](const auto& one, const auto& other) { return one.all < other.all; });
    return rounds.at(static_cast<size_t>(share * static_cast<double>(rounds.size() - 1) + 0.5));
  }
  double MedianSpent(const std::function<double(const Spent&)>& of) {
    Samples samples;
    for (const Mounted::Times& round : rounds) samples.values.push_back(of(round.spent));
    return samples.At(0.5);
  }
};

void PrintMounted(MountedRounds& way, double ours) {
  Mounted::Times median = way.At(0.5);
  std::printf(
      "  %-34s p50 %8.2f ms   p99 %8.2f ms   all %8.0f ms (best %6.0f)   %6.2f x ours\n"
      "    processor time %6.0f ms: agent %.0f, workers and tools %.0f (%llu started), udevd %.0f; "
      "%.0f switches\n",
      way.name, median.each.At(0.5), median.each.At(0.99), median.all, way.At(0).all,
      median.all / ours, way.MedianSpent([](const Spent& spent) { return spent.all_ms(); }),
      way.MedianSpent([](const Spent& spent) { return spent.agent_ms; }),
      way.MedianSpent([](const Spent& spent) { return spent.workers_ms; }),
      static_cast<unsigned long long>(median.spawned),
      way.MedianSpent([](const Spent& spent) { return spent.udevd_ms; }),
      way.MedianSpent([](const Spent& spent) { return static_cast<double>(spent.switches); }));
}

}  // namespace

// The ways take turns, so that what else the machine does hits them alike.
void UntilMounted(const std::string& scratch, WaiterOnNode& node, int many, int rounds) {
  Mounted mounted(scratch, node, many);
  for (const int count : {1, many}) {
    std::vector<MountedRounds> ways = {
        {"DeviceWaiter, identity verified", [&] { return mounted.Ours(count); }},
        {"look at each link every 100 ms",
         [&] { return mounted.Polled(count, milliseconds(100)); }},
        {"look at each link every second",
         [&] { return mounted.Polled(count, milliseconds(1000)); }}};
    // The first round pays for udevd's workers and cold caches, whoever's it is.
    (void)mounted.Polled(count, milliseconds(100));
    for (int round = 0; round < rounds; ++round) {
      for (MountedRounds& way : ways) way.rounds.push_back(way.run());
    }
    std::printf("%d device%s, from the attach to the mount of its ext4, median of %d rounds:\n",
                count, count == 1 ? "" : "s", rounds);
    const double ours = ways.front().At(0.5).all;
    for (MountedRounds& way : ways) PrintMounted(way, ours);
  }
}

}  // namespace volumed
