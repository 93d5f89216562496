// What "which mounts lie below this pod's directory" costs from the kept mount table, by events and
// by poll, against a fresh reading of the whole table, at 10, 1,000 and 10,000 mounts.
//
// Needs root: it works in a mount namespace of its own, on a tmpfs below /tmp. Figures are medians
// of one process on a machine that others may use; the ratios are of the same run.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "os/kept_mount_table.h"
#include "os/kernel_features.h"
#include "os/mount_table.h"

namespace volumed {
namespace {

constexpr int kMountsPerPod = 10;
constexpr int kSizes[] = {10, 1000, 10000};
constexpr auto kTimePerFigure = std::chrono::milliseconds(500);
constexpr int kMostSamples = 2000;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "mount_table_bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void Check(int rc, const std::string& what) {
  if (rc != 0) Die(what);
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "mount_table_bench: %s\n", result.error().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

// Median microseconds of `timed`; `before` runs before each sample and is not counted.
double MedianMicros(const std::function<void()>& before, const std::function<void()>& timed) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> samples;
  const Clock::time_point end = Clock::now() + kTimePerFigure;
  while (samples.size() < 5 || (Clock::now() < end && samples.size() < kMostSamples)) {
    before();
    const Clock::time_point start = Clock::now();
    timed();
    samples.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

// A root with pods of ten mounts each.
class Node {
 public:
  Node() {
    Check(::unshare(CLONE_NEWNS), "unshare, which needs root");
    Check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make / private");
    char name[] = "/tmp/volumed-bench-XXXXXX";
    if (::mkdtemp(name) == nullptr) Die("mkdtemp");
    root_ = name;
    Check(::mount("bench", name, "tmpfs", 0, "mode=0755"), "mount tmpfs");
    Check(::mkdir((root_ + "/source").c_str(), 0755), "mkdir");
    Check(::mkdir((root_ + "/other").c_str(), 0755), "mkdir");
  }
  ~Node() {
    ::umount2(root_.c_str(), MNT_DETACH);
    ::rmdir(root_.c_str());
  }

  std::string Pod(int pod) const { return root_ + "/pod-" + std::to_string(pod); }
  void GrowTo(int mounts) {
    for (; mounts_ < mounts; ++mounts_) {
      const std::string pod = Pod(mounts_ / kMountsPerPod);
      if (mounts_ % kMountsPerPod == 0) Check(::mkdir(pod.c_str(), 0755), "mkdir");
      const std::string target = pod + "/" + std::to_string(mounts_ % kMountsPerPod);
      Check(::mkdir(target.c_str(), 0755), "mkdir");
      Bind(target);
    }
  }
  void Bind(const std::string& target) const {
    Check(::mount((root_ + "/source").c_str(), target.c_str(), nullptr, MS_BIND, nullptr), "bind");
  }
  // Somebody else mounts and unmounts.
  void Churn() const {
    const std::string other = root_ + "/other";
    Bind(other);
    Check(::umount2(other.c_str(), 0), "umount");
  }

 private:
  std::string root_;
  int mounts_ = 0;
};

void ExpectPod(const std::vector<MountEntry>& mounts) {
  if (mounts.size() == kMountsPerPod) return;
  std::fprintf(stderr, "mount_table_bench: the answer has %zu mounts\n", mounts.size());
  std::exit(1);
}

void Measure(const Node& node, int mounts, KeptMountTable* events, KeptMountTable& poll) {
  const std::string pod = node.Pod(mounts / kMountsPerPod / 2);
  const auto nothing = [] {};
  const auto churn = [&node] { node.Churn(); };
  const auto fresh = [&pod] { ExpectPod(SelectMounts(Must(ReadMountTable()), {.below = pod})); };
  const auto ask = [&pod](KeptMountTable& table) {
    return [&table, &pod] { ExpectPod(Must(table.Find({.below = pod}))); };
  };
  const double read = MedianMicros(nothing, fresh);
  const auto print = [&](const char* what, double micros) {
    std::printf("%6d  %-34s %10.1f us  %8.1fx\n", mounts, what, micros, read / micros);
  };
  print("fresh reading", read);
  if (events != nullptr) {
    print("kept by events", MedianMicros(nothing, ask(*events)));
    print("kept by events, after a change", MedianMicros(churn, ask(*events)));
  }
  print("kept by poll", MedianMicros(nothing, ask(poll)));
  print("kept by poll, after a change", MedianMicros(churn, ask(poll)));
}

void Run() {
  Node node;
  std::unique_ptr<KeptMountTable> events =
      Must(KeptMountTable::Open(Must(ProbeKernelFeatures({}))));
  if (events->stats().source != MountTableSource::kEvents) {
    std::printf("not by events: %s\n", events->stats().why_poll.c_str());
    events.reset();
  }
  std::unique_ptr<KeptMountTable> poll =
      Must(KeptMountTable::Open(Must(ProbeKernelFeatures({"mount-events"}))));
  std::printf("mounts below one pod's directory (%d of the table's)\n", kMountsPerPod);
  std::printf("%6s  %-34s %13s  %9s\n", "mounts", "", "median", "ratio");
  for (const int mounts : kSizes) {
    node.GrowTo(mounts);
    Measure(node, mounts, events.get(), *poll);
  }
}

}  // namespace
}  // namespace volumed

int main() {
  volumed::Run();
  return 0;
}
