// How long it takes from a device's event to the answer of a wait for it, and how fast a hundred
// devices are attached and found; against what others do in the same run: a look at the link every
// 100 ms and every second, as kubelet's attachers do, `udevadm settle` and `udevadm wait`.
//
// Needs root, loop devices and udev: a udevd of its own runs in a network and a mount namespace.
// Times are from LOOP_CONFIGURE's return, which all are told at once; "event" is when a listener of
// its own has heard of the device. Figures are of one process on a machine that others may use; the
// ratios are of the same run. Where a hundred devices come at once, the ways take turns, and the
// processor time of the agent, its workers and udevd is told beside the wall time: with so much to
// do the processors are what all wait for. Polling verifies nothing and writes no record; what it
// mounts is probed, checked and mounted by the same workers.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device_wait_mounts.h"
#include "device_wait_ways.h"
#include "integration/attacher/udev_lab.h"
#include "integration/attacher/waiter_on_node.h"
#include "integration/loop_device.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

constexpr int kSingles = 40;
constexpr int kMany = 100;
constexpr int kBurst = 50;
constexpr int kBursts = 10;
constexpr int64_t kImageBytes = 1 << 20;

std::string MakeScratch() {
  Check(::unshare(CLONE_NEWNS) == 0, "unshare, which needs root");
  Check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make / private");
  char name[] = "/tmp/volumed-bench-XXXXXX";
  if (::mkdtemp(name) == nullptr) Die("mkdtemp");
  Check(::mount("bench", name, "tmpfs", 0, "mode=0755") == 0, "mount tmpfs");
  return name;
}

std::string Volume(int i) { return "vol-" + std::to_string(i); }

// ---- one device at a time -----------------------------------------------------------------------

class Singles {
 public:
  Singles(std::string image, WaiterOnNode& node) : image_(std::move(image)), node_(node) {}

  // Attaches the device; `wait` was begun before and returns when the link is there.
  Samples Measure(const std::function<void(SteadyClock::time_point attached)>& wait) {
    Samples samples;
    for (int i = 0; i < kSingles; ++i) {
      Check(loop_.Attach(image_), "attach");
      const SteadyClock::time_point attached = SteadyClock::now();
      wait(attached);
      samples.values.push_back(Millis(SteadyClock::now() - attached));
      Reset();
    }
    return samples;
  }

  struct Ours {
    Samples from_attach;
    Samples from_event;
  };
  Ours MeasureOurs() {
    Ours ours;
    for (int i = 0; i < kSingles; ++i) {
      Listener listener;
      std::optional<SteadyClock::time_point> answered;
      node_.Start(LinkQuery(link_), std::chrono::seconds(10), [&](Result<FoundDevice> found) {
        answered = SteadyClock::now();
        Must(std::move(found));
        node_.scheduler_->Stop();
      });
      SteadyClock::time_point attached, event;
      std::thread plugger([&] {
        Check(loop_.Attach(image_), "attach");
        attached = SteadyClock::now();
        event = listener.Await(link_);
      });
      node_.scheduler_->Run();
      plugger.join();
      ours.from_attach.values.push_back(Millis(*answered - attached));
      ours.from_event.values.push_back(Millis(*answered - event));
      Reset();
    }
    return ours;
  }

  const std::string& link() const { return link_; }

 private:
  void Reset() {
    Check(loop_.Detach(), "detach");
    WaitUntilGone(link_);
    ::usleep(2000);
  }

  const std::string image_;
  const std::string link_ = VolumeLink(Volume(0));
  WaiterOnNode& node_;
  LabLoop loop_;
};

void PrintRow(const char* name, Samples& samples, double ours) {
  std::printf("  %-34s p50 %8.2f ms   p99 %8.2f ms   %7.1f x ours\n", name, samples.At(0.5),
              samples.At(0.99), samples.At(0.5) / ours);
}

void OneAtATime(const std::string& scratch, WaiterOnNode& node) {
  Singles singles(scratch + "/" + Volume(0), node);
  Singles::Ours ours = singles.MeasureOurs();
  // Where in its period the attach falls is chance.
  std::mt19937 random(1);
  const auto polled = [&](milliseconds period) {
    std::uniform_real_distribution<double> share(0, 1);
    return singles.Measure([&](SteadyClock::time_point attached) {
      const std::chrono::duration<double> first = share(random) * period;
      Poll(singles.link(), period,
           attached + std::chrono::duration_cast<SteadyClock::duration>(first));
    });
  };
  Samples fast = polled(milliseconds(100));
  Samples slow = polled(milliseconds(1000));
  Samples settle = singles.Measure([&](SteadyClock::time_point) {
    Run({"udevadm", "settle", "--exit-if-exists=" + singles.link()});
  });
  Samples waited = singles.Measure([&](SteadyClock::time_point) {
    Run({"udevadm", "wait", "--timeout=10", singles.link()});
  });
  const double base = ours.from_attach.At(0.5);
  std::printf("one device, from its attach to the answer, %d times:\n", kSingles);
  PrintRow("DeviceWaiter, identity verified", ours.from_attach, base);
  PrintRow("look at the link every 100 ms", fast, base);
  PrintRow("look at the link every second", slow, base);
  PrintRow("udevadm settle", settle, base);
  PrintRow("udevadm wait", waited, base);
  std::printf("of this, from the libudev event to the answer: p50 %.2f ms, p99 %.2f ms\n",
              ours.from_event.At(0.5), ours.from_event.At(0.99));
}

// ---- a hundred at once --------------------------------------------------------------------------

class Many {
 public:
  explicit Many(std::string scratch) : scratch_(std::move(scratch)), loops_(kMany) {
    for (const LabLoop& loop : loops_) Check(loop.valid(), "LOOP_CTL_ADD");
  }

  double Ours(WaiterOnNode& node) {
    Drain(node);
    const SteadyClock::time_point start = SteadyClock::now();
    int answered = 0;
    for (int i = 0; i < kMany; ++i) {
      node.Start(LinkQuery(VolumeLink(Volume(i))), std::chrono::seconds(30), [&](auto found) {
        Must(std::move(found));
        if (++answered == kMany) node.scheduler_->Stop();
      });
    }
    std::thread plugger([this] { AttachAll(); });
    node.scheduler_->Run();
    const double time = Millis(SteadyClock::now() - start);
    plugger.join();
    DetachAll();
    return time;
  }

  // One thread per volume, as kubelet has an operation for each.
  double Polled(milliseconds period) {
    const SteadyClock::time_point start = SteadyClock::now();
    std::vector<std::thread> pollers;
    for (int i = 0; i < kMany; ++i) {
      pollers.emplace_back([=] { Poll(VolumeLink(Volume(i)), period, start + period); });
    }
    AttachAll();
    for (std::thread& poller : pollers) poller.join();
    const double time = Millis(SteadyClock::now() - start);
    DetachAll();
    return time;
  }

  // Attach all, then wait until udevd has nothing left to do.
  double Settled() {
    const SteadyClock::time_point start = SteadyClock::now();
    AttachAll();
    Run({"udevadm", "settle"});
    const double time = Millis(SteadyClock::now() - start);
    DetachAll();
    return time;
  }

 private:
  void AttachAll() {
    for (int i = 0; i < kMany; ++i) {
      Check(loops_[static_cast<size_t>(i)].Attach(scratch_ + "/" + Volume(i)), "attach");
    }
  }
  void DetachAll() {
    for (LabLoop& loop : loops_) Check(loop.Detach(), "detach");
    for (int i = 0; i < kMany; ++i) WaitUntilGone(VolumeLink(Volume(i)));
    Run({"udevadm", "settle"});
  }

  const std::string scratch_;
  std::vector<LabLoop> loops_;
};

// ---- bursts: fifty at once, in random order, plugged and unplugged over and over ----------------

// From the moment at which a listener of the bench's own hears of each device, to its answer.
class Bursts {
 public:
  Bursts(std::string scratch, WaiterOnNode& node)
      : scratch_(std::move(scratch)), node_(node), loops_(kBurst), at_(kBurst), answered_(kBurst) {}

  Samples Measure() {
    Samples samples;
    std::mt19937 random(7);
    for (int round = 0; round < kBursts; ++round) One(random, samples);
    return samples;
  }

 private:
  void One(std::mt19937& random, Samples& samples) {
    Drain(node_);
    std::vector<size_t> order(kBurst);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    int answers = 0;
    for (size_t i = 0; i < kBurst; ++i) {
      node_.Start(LinkQuery(VolumeLink(Volume(static_cast<int>(i)))), std::chrono::seconds(30),
                  [&, i](Result<FoundDevice> found) {
                    answered_[i] = SteadyClock::now();
                    Must(std::move(found));
                    if (++answers == kBurst) node_.scheduler_->Stop();
                  });
    }
    Listener listener;
    std::thread plugger([&] {
      for (size_t k = 0; k < kBurst; ++k) {
        Check(loops_[k].Attach(scratch_ + "/" + Volume(static_cast<int>(order[k]))), "attach");
      }
    });
    std::thread hearer([&] {
      for (size_t left = kBurst; left > 0; --left) {
        const auto [link, when] = listener.Next();
        at_[static_cast<size_t>(std::stoi(link.substr(link.rfind('-') + 1)))] = when;
      }
    });
    node_.scheduler_->Run();
    plugger.join();
    hearer.join();
    for (size_t i = 0; i < kBurst; ++i) samples.values.push_back(Millis(answered_[i] - at_[i]));
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t k : order) Check(loops_[k].Detach(), "detach");
    for (int i = 0; i < kBurst; ++i) WaitUntilGone(VolumeLink(Volume(i)));
    Run({"udevadm", "settle"});
  }

  const std::string scratch_;
  WaiterOnNode& node_;
  std::vector<LabLoop> loops_;
  std::vector<SteadyClock::time_point> at_, answered_;
};

void InBursts(const std::string& scratch, WaiterOnNode& node) {
  Bursts bursts(scratch, node);
  Samples samples = bursts.Measure();
  std::printf(
      "%d devices at once in random order, %d times, from the libudev event to the answer:\n"
      "  p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, longest %.2f ms\n",
      kBurst, kBursts, samples.At(0.5), samples.At(0.9), samples.At(0.99), samples.At(1));
}

void PrintMany(const char* name, double time, double ours) {
  std::printf("  %-34s %8.0f ms   %7.0f devices/s   %5.2f x ours\n", name, time,
              kMany / time * 1000, time / ours);
}

void AtOnce(const std::string& scratch, WaiterOnNode& node, int rounds) {
  Many many(scratch);
  many.Settled();  // the first of all pays for udevd's workers
  Samples ours, fast, slow, settled;
  for (int round = 0; round < rounds; ++round) {
    ours.values.push_back(many.Ours(node));
    fast.values.push_back(many.Polled(milliseconds(100)));
    slow.values.push_back(many.Polled(milliseconds(1000)));
    settled.values.push_back(many.Settled());
  }
  std::printf("%d devices attached one after another, until all are found, median of %d rounds:\n",
              kMany, rounds);
  PrintMany("DeviceWaiter, identity verified", ours.At(0.5), ours.At(0.5));
  PrintMany("look at each link every 100 ms", fast.At(0.5), ours.At(0.5));
  PrintMany("look at each link every second", slow.At(0.5), ours.At(0.5));
  PrintMany("udevadm settle after all", settled.At(0.5), ours.At(0.5));
  const DeviceWaiterStats stats = node.waiter_->stats();
  std::printf("the waiter: %llu events, %llu looks, %llu devices opened, %llu refused\n",
              static_cast<unsigned long long>(stats.events),
              static_cast<unsigned long long>(stats.looks),
              static_cast<unsigned long long>(stats.verifications),
              static_cast<unsigned long long>(stats.refused));
}

int Main(bool mounted_only, int rounds) {
  const std::string missing = MissingForUdevLab();
  if (!missing.empty()) {
    std::fprintf(stderr, "device_wait_bench: needs %s\n", missing.c_str());
    return 1;
  }
  const std::string scratch = MakeScratch();
  {
    UdevLab lab;
    Check(lab.StartUdevd(), "start udevd");
    for (int i = 0; i < kMany; ++i) {
      Check(MakeImage(scratch + "/" + Volume(i), kImageBytes), "image");
    }
    const std::unique_ptr<WaiterOnNode> node = Must(WaiterOnNode::Create(VOLUMED_WORKER));
    if (!mounted_only) {
      OneAtATime(scratch, *node);
      AtOnce(scratch, *node, rounds);
      InBursts(scratch, *node);
    }
    UntilMounted(scratch, *node, kMany, rounds);
  }
  ::umount2(scratch.c_str(), MNT_DETACH);
  ::rmdir(scratch.c_str());
  return 0;
}

}  // namespace
}  // namespace volumed

// device_wait_bench [--mounted-only] [rounds]
int main(int argc, char** argv) {
  constexpr int kRounds = 5;
  const bool mounted_only = argc > 1 && std::strcmp(argv[1], "--mounted-only") == 0;
  const int at = mounted_only ? 2 : 1;
  return volumed::Main(mounted_only, argc > at ? std::max(1, std::atoi(argv[at])) : kRounds);
}
