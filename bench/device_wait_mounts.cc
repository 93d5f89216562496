#include "device_wait_mounts.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "device_wait_ways.h"
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
  };
  Times Ours(int count) {
    return Measure(count, [this, count](const std::function<void(int)>& mount) {
      int left = count;
      for (int i = 0; i < count; ++i) {
        node_.Start(LinkQuery(VolumeLink(Name(i))), std::chrono::seconds(60), [&, i](auto found) {
          Must(std::move(found));
          node_.scheduler_->RunBlocking([&, i] {
            mount(i);
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
    return Measure(count, [this, count, period](const std::function<void(int)>& mount) {
      const SteadyClock::time_point start = SteadyClock::now();
      std::vector<std::thread> pollers;
      for (int i = 0; i < count; ++i) {
        pollers.emplace_back([&, i] {
          Poll(VolumeLink(Name(i)), period, start + period);
          mount(i);
        });
      }
      AttachAll(count);
      for (std::thread& poller : pollers) poller.join();
    });
  }

 private:
  static constexpr int64_t kMountedBytes = 16 << 20;

  static std::string Name(int i) { return "vol-m" + std::to_string(i); }
  std::string Image(int i) const { return scratch_ + "/" + Name(i); }
  std::string Place(int i) const { return scratch_ + "/at-" + std::to_string(i); }

  Times Measure(int count, const std::function<void(const std::function<void(int)>&)>& run) {
    attached_.assign(static_cast<size_t>(count), {});
    std::vector<SteadyClock::time_point> mounted(static_cast<size_t>(count));
    const SteadyClock::time_point start = SteadyClock::now();
    run([&](int i) {
      MountOne(i);
      mounted[static_cast<size_t>(i)] = SteadyClock::now();
    });
    Times times;
    times.all = Millis(SteadyClock::now() - start);
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
  void MountOne(int i) {
    MemoryFormatIntents intents;
    SafeMountRequest request;
    request.key = Name(i);
    request.device = VolumeLink(Name(i));
    request.target = {Place(i), ""};
    request.fs_type = "ext4";
    CallOptions call;
    call.deadline = Deadline::After(node_.scheduler_->clock(), std::chrono::seconds(60));
    const SafeMountReport report =
        SafeFormatAndMount(*node_.kernel_, intents).FormatAndMount(request, call);
    if (!report.status.ok()) Die(report.status.error().ToString());
  }

  const std::string scratch_;
  WaiterOnNode& node_;
  std::vector<LabLoop> loops_;
  std::vector<SteadyClock::time_point> attached_;
};

void PrintMounted(const char* name, Mounted::Times& times, double ours) {
  std::printf("  %-34s p50 %8.2f ms   p99 %8.2f ms   all %8.0f ms   %6.2f x ours\n", name,
              times.each.At(0.5), times.each.At(0.99), times.all, times.all / ours);
}

}  // namespace

void UntilMounted(const std::string& scratch, WaiterOnNode& node, int many) {
  Mounted mounted(scratch, node, many);
  for (const int count : {1, many}) {
    Mounted::Times ours = mounted.Ours(count);
    Mounted::Times fast = mounted.Polled(count, milliseconds(100));
    Mounted::Times slow = mounted.Polled(count, milliseconds(1000));
    std::printf("%d device%s, from the attach to the mount of its ext4:\n", count,
                count == 1 ? "" : "s");
    PrintMounted("DeviceWaiter, identity verified", ours, ours.all);
    PrintMounted("look at each link every 100 ms", fast, ours.all);
    PrintMounted("look at each link every second", slow, ours.all);
  }
}

}  // namespace volumed
