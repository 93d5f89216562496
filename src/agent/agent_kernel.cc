// Agent: brings the kernel's news about mounts and lanes to the control thread.
#include <sys/epoll.h>

#include <chrono>
#include <utility>

#include "agent/agent.h"
#include "os/answers.h"

namespace volumed {
namespace {

// By poll, a change makes the whole table be read. Changes within this time of one another cost one
// reading.
constexpr auto kMountTablePause = std::chrono::milliseconds(500);

}  // namespace

void Agent::LanesChanged() {
  if (lanes_changed_.exchange(true)) return;
  scheduler_->Post([this] {
    lanes_changed_ = false;
    if (operations_) operations_->LanesChanged();
  });
}

void Agent::MountsGone(const std::vector<std::string>& mount_points) {
  scheduler_->Post([this, mount_points] {
    if (manager_) manager_->events().MountsGone(mount_points);
  });
}

void Agent::MountsChangedElsewhere(const std::vector<std::string>& mount_points) {
  scheduler_->Post([this, mount_points] {
    for (const auto& source : sources_) source->MountsChanged(mount_points);
    if (pools_) pools_->MountsChanged(mount_points);
    if (manager_) manager_->events().MountsChangedElsewhere(mount_points);
  });
}

Status Agent::Answers(const std::string& path) {
  return CheckAnswers(*kernel_, scheduler_->clock(), path, answer_deadline_);
}

void Agent::FollowPlace(const std::string& setting, const std::string& path) {
  scheduler_->RunBlocking([this, setting, path] {
    const Status answers = Answers(path);
    if (answers.ok()) return;
    scheduler_->Post([this, setting, path, answers] {
      parts_->Retry(
          setting + " " + path, answers.error(), [this, path] { return Answers(path); },
          [] { return OkStatus(); });
    });
  });
}

// Another thread reads the table. A change during the reading is read after the next pause.
void Agent::MountTableChanged() {
  if (reading_mounts_ != Reading::kNone) {
    reading_mounts_ = Reading::kRunsAndMustAgain;
    return;
  }
  reading_mounts_ = Reading::kRuns;
  scheduler_->PostAfter(kMountTablePause, [this] {
    reading_mounts_ = Reading::kRuns;
    scheduler_->RunBlocking([this] {
      kernel_->mount_table().CatchUpNow();
      scheduler_->Post([this] {
        if (std::exchange(reading_mounts_, Reading::kNone) == Reading::kRunsAndMustAgain) {
          MountTableChanged();
        }
      });
    });
  });
}

// Takes mount events as they come, so that a node that mounts much between two questions need not
// read the whole table.
Status Agent::FollowMounts() {
  KeptMountTable& mounts = kernel_->mount_table();
  const MountTableStats stats = mounts.stats();
  log_->Info("mount table", {{"source", MountTableSourceName(stats.source)},
                             {"why_poll", stats.why_poll},
                             {"mounts", stats.mounts}});
  if (mounts.event_fd() < 0) {
    return scheduler_->loop().WatchFd(mounts.change_fd(), EPOLLPRI | EPOLLERR,
                                      [this](uint32_t) { MountTableChanged(); });
  }
  return WatchMountEvents();
}

// For each mount that an event names, the kernel is asked where the mount is, and that waits for
// others that are mounting. For a burst this takes too long for the control thread. No event is
// looked for until the present ones are taken.
Status Agent::WatchMountEvents() {
  KeptMountTable& mounts = kernel_->mount_table();
  return scheduler_->loop().WatchFd(mounts.event_fd(), EPOLLIN, [this, &mounts](uint32_t) {
    scheduler_->loop().UnwatchFd(mounts.event_fd());
    scheduler_->RunBlocking([this, &mounts] {
      mounts.TakeEvents();
      scheduler_->Post([this] {
        const Status watched = WatchMountEvents();
        if (!watched.ok()) log_->Error("mount events", {{"error", watched.error()}});
      });
    });
  });
}

}  // namespace volumed
