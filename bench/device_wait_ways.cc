#include "device_wait_ways.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "integration/attacher/udev_lab.h"

namespace volumed {

void Die(const std::string& what) {
  std::fprintf(stderr, "device_wait_bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void Check(bool ok, const std::string& what) {
  if (!ok) Die(what);
}

double Millis(SteadyClock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void Drain(WaiterOnNode& node) {
  node.RunUntil([&node, events = ~uint64_t{0}]() mutable {
    return std::exchange(events, node.waiter_->stats().events) == events;
  });
}

double Samples::At(double share) {
  std::sort(values.begin(), values.end());
  return values.at(static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5));
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

void WaitUntilGone(const std::string& path) {
  while (::access(path.c_str(), F_OK) == 0) ::usleep(200);
}

void Poll(const std::string& link, std::chrono::milliseconds period, SteadyClock::time_point next) {
  for (;; next += period) {
    std::this_thread::sleep_until(next);
    if (::access(link.c_str(), F_OK) == 0) return;
  }
}

Listener::Listener()
    : context_(Must(UdevContext::Create())),
      monitor_(Must(UdevMonitor::Create(context_, UdevGroup::kUdev, "block", 1 << 20))) {}

std::pair<std::string, SteadyClock::time_point> Listener::Await(
    const std::function<bool(const std::string& link)>& wanted) {
  for (;;) {
    pollfd ready = {monitor_.fd(), POLLIN, 0};
    ::poll(&ready, 1, 10'000);
    const SteadyClock::time_point now = SteadyClock::now();
    auto event = monitor_.Receive();
    if (!event.ok() || !*event) continue;
    for (const std::string& link : (*event)->links()) {
      if (wanted(link)) return {link, now};
    }
  }
}

std::pair<std::string, SteadyClock::time_point> Listener::Next() {
  return Await([this](const std::string& link) {
    return link.rfind(VolumeLink("vol-"), 0) == 0 && heard_.insert(link).second;
  });
}

SteadyClock::time_point Listener::Await(const std::string& link) {
  return Await([&link](const std::string& other) { return other == link; }).second;
}
}  // namespace volumed
