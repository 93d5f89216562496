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
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/spent.h"
#include "fakes/memory_format_intents.h"
#include "integration/attacher/udev_lab.h"
#include "integration/attacher/waiter_on_node.h"
#include "integration/loop_device.h"
#include "mounter/safe_format_and_mount.h"
#include "os/udev.h"

namespace volumed {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kSingles = 40;
constexpr int kMany = 100;
constexpr int kBurst = 50;
constexpr int kBursts = 10;
constexpr int64_t kImageBytes = 1 << 20;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "device_wait_bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void Check(bool ok, const std::string& what) {
  if (!ok) Die(what);
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "device_wait_bench: %s\n", result.error().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

// An agent's control thread never rests: what was announced before a measurement is no part of it.
void Drain(WaiterOnNode& node) {
  node.RunUntil([&node, events = ~uint64_t{0}]() mutable {
    return std::exchange(events, node.waiter_->stats().events) == events;
  });
}

double Millis(SteadyClock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string MakeScratch() {
  Check(::unshare(CLONE_NEWNS) == 0, "unshare, which needs root");
  Check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make / private");
  char name[] = "/tmp/volumed-bench-XXXXXX";
  if (::mkdtemp(name) == nullptr) Die("mkdtemp");
  Check(::mount("bench", name, "tmpfs", 0, "mode=0755") == 0, "mount tmpfs");
  return name;
}

std::string Volume(int i) { return "vol-" + std::to_string(i); }

void WaitUntilGone(const std::string& path) {
  while (::access(path.c_str(), F_OK) == 0) ::usleep(200);
}

int Run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = -1;
  Check(::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0,
        "start " + words[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// ---- ways to wait for a link; each returns when the link is there
// --------------------------------

void Poll(const std::string& link, milliseconds period, SteadyClock::time_point next) {
  for (;; next += period) {
    std::this_thread::sleep_until(next);
    if (::access(link.c_str(), F_OK) == 0) return;
  }
}

// When a listener hears of a device with this link.
class Listener {
 public:
  Listener()
      : context_(Must(UdevContext::Create())),
        monitor_(Must(UdevMonitor::Create(context_, UdevGroup::kUdev, "block", 1 << 20))) {}
  // The next link of a volume that is new, and when it was heard of.
  std::pair<std::string, SteadyClock::time_point> Next() {
    for (;;) {
      pollfd ready = {monitor_.fd(), POLLIN, 0};
      ::poll(&ready, 1, 10'000);
      const SteadyClock::time_point now = SteadyClock::now();
      auto event = monitor_.Receive();
      if (!event.ok() || !*event) continue;
      for (const std::string& link : (*event)->links()) {
        const bool is_volume = link.rfind(VolumeLink("vol-"), 0) == 0;
        if (is_volume && heard_.insert(link).second) return {link, now};
      }
    }
  }
  SteadyClock::time_point Await(const std::string& link) {
    for (;;) {
      pollfd ready = {monitor_.fd(), POLLIN, 0};
      ::poll(&ready, 1, 10'000);
      const SteadyClock::time_point now = SteadyClock::now();
      auto event = monitor_.Receive();
      if (!event.ok() || !*event) continue;
      for (const std::string& other : (*event)->links()) {
        if (other == link) return now;
      }
    }
  }

 private:
  UdevContext context_;
  UdevMonitor monitor_;
  std::set<std::string> heard_;
};

struct Samples {
  std::vector<double> values;
  double At(double share) {
    std::sort(values.begin(), values.end());
    return values.at(static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5));
  }
};

// ---- one device at a time
// ------------------------------------------------------------------------

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

// ---- a hundred at once
// ---------------------------------------------------------------------------

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

// ---- bursts: fifty at once, in random order, plugged and unplugged over and over
// -------------------------------------------------------------------------------

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

// ---- from the appearance of a device to its mount
// ------------------------------------------------------------------

// Devices with an ext4 on them, mounted as a plugin mounts them: probed, checked, mounted, by
// workers. Only what leads to the device differs.
class Mounted {
 public:
  Mounted(std::string scratch, WaiterOnNode& node)
      : scratch_(std::move(scratch)), node_(node), loops_(kMany) {
    const std::string image = scratch_ + "/ext4";
    Check(MakeImage(image, kMountedBytes), "image");
    Check(Run({"mkfs.ext4", "-q", "-F", image}) == 0, "mkfs.ext4");
    for (int i = 0; i < kMany; ++i) {
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
    const SafeMountReport report =
        SafeFormatAndMount(*node_.kernel_, intents).FormatAndMount(request, call);
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

// The ways take turns, so that what else the machine does hits them alike.
void UntilMounted(const std::string& scratch, WaiterOnNode& node, int rounds) {
  Mounted mounted(scratch, node);
  for (const int count : {1, kMany}) {
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
    UntilMounted(scratch, *node, rounds);
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
