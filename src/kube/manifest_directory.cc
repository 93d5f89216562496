#include "kube/manifest_directory.h"

#include <sys/epoll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace volumed {
namespace {

// One mask for every watch, because an inode has one watch and a new mask replaces the old.
constexpr uint32_t kMask = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                           IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

// Events that end or put in doubt the directory that a watch stands for.
constexpr uint32_t kDirectoryGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<std::unique_ptr<ManifestDirectory>> ManifestDirectory::Create(std::string directory,
                                                                     NodeName node_name,
                                                                     Scheduler& scheduler,
                                                                     EventLoop& loop,
                                                                     Duration settle) {
  ASSIGN_OR_RETURN(Inotify inotify, Inotify::Create());
  return std::unique_ptr<ManifestDirectory>(
      new ManifestDirectory(WithoutTrailingSlash(std::move(directory)), std::move(node_name),
                            std::move(inotify), scheduler, loop, settle));
}

ManifestDirectory::ManifestDirectory(std::string directory, NodeName node_name, Inotify inotify,
                                     Scheduler& scheduler, EventLoop& loop, Duration settle)
    : directory_(std::move(directory)),
      name_("manifests:" + directory_),
      node_name_(std::move(node_name)),
      inotify_(std::move(inotify)),
      scheduler_(scheduler),
      loop_(loop),
      settle_(settle),
      files_(directory_) {}

ManifestDirectory::~ManifestDirectory() {
  *alive_ = false;
  if (settle_timer_ != 0) scheduler_.Cancel(settle_timer_);
  loop_.UnwatchFd(inotify_.fd());
}

template <typename Value>
void ManifestDirectory::Run(std::function<Value()> work, void (ManifestDirectory::*done)(Value)) {
  busy_ = true;
  scheduler_.RunBlocking(
      [this, &scheduler = scheduler_, alive = alive_, work = std::move(work), done] {
        // shared_ptr because a posted task must be copyable and descriptors are not.
        auto value = std::make_shared<Value>(work());
        scheduler.Post([this, alive, value, done] {
          if (!*alive) return;
          busy_ = false;
          (this->*done)(std::move(*value));
          Work();
        });
      });
}

void ManifestDirectory::Start(ObjectListener listener) {
  listener_ = std::move(listener);
  const Status watched =
      loop_.WatchFd(inotify_.fd(), EPOLLIN, [this](uint32_t) { OnInotifyReadable(); });
  if (!watched.ok()) watch_error_ = "changes will not be seen: " + watched.error().message();
  need_open_ = true;
  Work();
}

void ManifestDirectory::Remember(SourceMemory memory) { memory_ = std::move(memory); }

void ManifestDirectory::Accept() { Forget(); }

void ManifestDirectory::Forget() {
  files_.Clear();
  vanished_.clear();
  lasting_.clear();
  listed_.reset();
  need_open_ = true;
  Work();
}

void ManifestDirectory::OnInotifyReadable() {
  DrainEvents();
  Work();
}

void ManifestDirectory::DrainEvents() {
  const Result<std::vector<InotifyEvent>> events = inotify_.ReadEvents();
  if (!events.ok()) {
    watch_error_ = "changes may go unseen: " + events.error().message();
    need_open_ = true;
    return;
  }
  for (const InotifyEvent& event : *events) OnEvent(event);
}

void ManifestDirectory::OnEvent(const InotifyEvent& event) {
  if (event.overflow) {
    // Which writers have closed their files meanwhile is lost too.
    writing_.clear();
    need_open_ = true;
    return;
  }
  const auto found = watches_.find(event.wd);
  if (found == watches_.end()) return;
  const Watch watch = found->second;
  if ((event.mask & IN_IGNORED) != 0) watches_.erase(found);
  if (watch.directory) OnManifestEvent(event);
  // The path may lead elsewhere now, or lead somewhere at last.
  if (watch.above && ((event.mask & kDirectoryGone) != 0 || event.name == child_of_above_)) {
    need_open_ = true;
  }
  if (!watch.target_names.empty()) OnTargetEvent(watch, event);
}

void ManifestDirectory::OnManifestEvent(const InotifyEvent& event) {
  if ((event.mask & kDirectoryGone) != 0 || (event.name.empty() && (event.mask & IN_ATTRIB) != 0)) {
    need_open_ = true;
    return;
  }
  // The swap of a mounted config map: every link of the directory leads through it.
  if (event.name.substr(0, 2) == "..") need_scan_ = true;
  if (!IsManifestName(event.name)) return;
  if ((event.mask & IN_MODIFY) != 0) writing_.insert(event.name);
  if ((event.mask & IN_CREATE) != 0) created_.insert(event.name);
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
    unlinked_.erase(event.name);
    Back(event.name);
  }
  if ((event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) unlinked_.insert(event.name);
  if ((event.mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)) != 0) {
    writing_.erase(event.name);
    dirty_.insert(event.name);
  }
  if ((event.mask & IN_ATTRIB) != 0 && writing_.count(event.name) == 0) dirty_.insert(event.name);
}

void ManifestDirectory::OnTargetEvent(const Watch& watch, const InotifyEvent& event) {
  if (watch.target_names.count(event.name) == 0) return;
  for (const std::string& file : links_to_[event.name]) {
    if ((event.mask & IN_MODIFY) != 0) {
      writing_.insert(file);
    } else if ((event.mask & IN_CREATE) != 0) {
      created_.insert(file);
    } else {
      writing_.erase(file);
      dirty_.insert(file);
    }
  }
}

void ManifestDirectory::Work() {
  if (busy_ || listener_ == nullptr) return;
  if (need_open_) {
    need_open_ = false;
    StartOpen();
  } else if (open_ != nullptr && need_scan_) {
    StartScan(/*whole=*/true);
  } else if (open_ != nullptr && (!dirty_.empty() || !created_.empty())) {
    StartScan(/*whole=*/false);
  }
}

void ManifestDirectory::StartOpen() {
  Run<Opened>(
      [directory = directory_] {
        Opened opened;
        Result<OpenDirectory> opened_directory = OpenDirectoryAt(directory);
        if (opened_directory.ok()) {
          opened.directory = *std::move(opened_directory);
        } else {
          opened.error = opened_directory.error().message();
        }
        if (Result<NearestParent> above = OpenNearestParent(directory); above.ok()) {
          opened.above = *std::move(above);
        }
        return opened;
      },
      &ManifestDirectory::OnOpened);
}

std::optional<std::pair<int, bool>> ManifestDirectory::AddWatch(const OpenDirectory& directory) {
  // By descriptor, so that the watch is of the very inode that is read.
  const Result<int> wd =
      inotify_.AddWatch("/proc/self/fd/" + std::to_string(directory.fd.get()), kMask);
  if (!wd.ok()) {
    watch_error_ = "changes may go unseen: " + wd.error().message();
    return std::nullopt;
  }
  return std::make_pair(*wd, watches_.count(*wd) == 0);
}

void ManifestDirectory::OnOpened(Opened opened) {
  DrainEvents();  // of the old watches: an unlink just before the directory went is a command
  watch_error_.clear();
  const bool same_directory = opened.directory && listed_ && *listed_ == opened.directory->identity;
  if (!same_directory) {
    for (const std::string& file : std::exchange(unlinked_, {})) Gone(file);
    // Events about the old directory's files say nothing of the new one's.
    dirty_.clear();
    created_.clear();
    writing_.clear();
  }
  for (auto& [wd, watch] : watches_) watch.directory = watch.above = false;
  bool above_is_new = false;
  if (opened.above) {
    child_of_above_ = opened.above->child;
    if (const auto added = AddWatch(opened.above->directory)) {
      watches_[added->first].above = true;
      above_is_new = added->second;
    }
  }
  directory_error_ = opened.error;
  open_.reset();
  if (opened.directory) {
    open_ = std::make_shared<OpenDirectory>(*std::move(opened.directory));
    if (const auto added = AddWatch(*open_)) watches_[added->first].directory = true;
    need_scan_ = true;
  } else if (above_is_new) {
    // It may have come into being between the look and the watch.
    need_open_ = true;
  }
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    const bool used =
        watch->second.directory || watch->second.above || !watch->second.target_names.empty();
    // An IN_IGNORED of a watch that is not in the map any more is passed over.
    if (!used) static_cast<void>(inotify_.RemoveWatch(watch->first).ok());
    watch = used ? std::next(watch) : watches_.erase(watch);
  }
  if (open_ != nullptr) return;
  DropLasting();  // there is nothing to look at
  if (!need_open_) Deliver();
}

void ManifestDirectory::StartScan(bool whole) {
  std::vector<std::string> dirty(dirty_.begin(), dirty_.end());
  std::vector<std::string> created(created_.begin(), created_.end());
  dirty_.clear();
  created_.clear();
  if (whole) need_scan_ = false;
  Run<Scanned>(
      [whole, open = open_, directory = directory_, node_name = node_name_,
       files = std::move(dirty), created = std::move(created)]() mutable {
        Scanned scanned;
        scanned.directory = open;
        scanned.whole = whole;
        for (const std::string& file : created) {
          if (IsCompleteAtCreation(open->fd, file)) files.push_back(file);
        }
        if (whole) {
          Result<std::vector<std::string>> listed = ListManifests(open->fd);
          if (!listed.ok()) {
            scanned.error = listed.error().message();
            return scanned;
          }
          scanned.present = *listed;
          files = *std::move(listed);
        }
        scanned.scan = ReadManifests(directory, open->fd, files, node_name);
        return scanned;
      },
      &ManifestDirectory::OnScanned);
}

void ManifestDirectory::OnScanned(Scanned scanned) {
  // What was read may be half of what somebody was writing just then: look at the events first.
  DrainEvents();
  if (scanned.directory != open_) return;  // another directory is being read by now
  if (!scanned.error.empty()) {
    directory_error_ = scanned.error;
    Deliver();
    return;
  }
  ApplyScan(scanned);
  Deliver();
}

void ManifestDirectory::ApplyScan(Scanned& scanned) {
  if (scanned.whole) ApplyListing(scanned);
  for (ManifestReading& reading : scanned.scan.readings) ApplyReading(std::move(reading));
  WatchTargets(scanned.scan.targets);
}

void ManifestDirectory::ApplyListing(const Scanned& scanned) {
  const std::set<std::string> present(scanned.present.begin(), scanned.present.end());
  const bool same_directory = !listed_ || *listed_ == scanned.directory->identity;
  for (const std::string& file : files_.AbsentFrom(present)) {
    // What was seen to be unlinked is gone, whatever directory is there now.
    if (same_directory || vanished_.count(file) > 0 || lasting_.count(file) > 0) {
      Gone(file);
    } else {
      files_.KeepUnseen(file);
    }
  }
  listed_ = scanned.directory->identity;
  complete_ = true;
}

void ManifestDirectory::ApplyReading(ManifestReading reading) {
  if (dirty_.count(reading.file) == 0) unlinked_.erase(reading.file);
  if (reading.what == ManifestReading::What::kGone) {
    Gone(reading.file);
    return;
  }
  Back(reading.file);
  // Its writer will close it, and that will be another reading.
  const bool is_being_written = writing_.count(reading.file) > 0;
  if (!is_being_written) files_.Apply(std::move(reading));
}

void ManifestDirectory::Gone(const std::string& file) {
  const bool lasted = lasting_.erase(file) > 0;
  if (lasted || !files_.HasObjects(file)) {
    vanished_.erase(file);
    files_.Apply({file, ManifestReading::What::kGone, "", {}});
    return;
  }
  vanished_.try_emplace(file, scheduler_.clock().Now() + settle_);
  files_.Vanish(file);
  ArmSettle();
}

void ManifestDirectory::Back(const std::string& file) {
  vanished_.erase(file);
  lasting_.erase(file);
}

void ManifestDirectory::ArmSettle() {
  if (settle_timer_ != 0 || vanished_.empty()) return;
  TimePoint first = vanished_.begin()->second;
  for (const auto& [file, due] : vanished_) first = std::min(first, due);
  const Duration left = std::max(first - scheduler_.clock().Now(), Duration::zero());
  settle_timer_ = scheduler_.PostAfter(left, [this] {
    settle_timer_ = 0;
    OnSettled();
  });
}

void ManifestDirectory::OnSettled() {
  DrainEvents();  // it may be back this moment
  const TimePoint now = scheduler_.clock().Now();
  for (auto file = vanished_.begin(); file != vanished_.end();) {
    if (file->second > now) {
      ++file;
      continue;
    }
    lasting_.insert(file->first);
    dirty_.insert(file->first);
    file = vanished_.erase(file);
  }
  ArmSettle();
  if (open_ == nullptr && !lasting_.empty()) {
    DropLasting();
    Deliver();
  }
  Work();
}

void ManifestDirectory::DropLasting() {
  for (const std::string& file : std::exchange(lasting_, {})) {
    files_.Apply({file, ManifestReading::What::kGone, "", {}});
  }
}

void ManifestDirectory::WatchTargets(const std::vector<LinkTarget>& targets) {
  for (const LinkTarget& target : targets) {
    const auto added = AddWatch(target.parent);
    if (!added) continue;
    Watch& watch = watches_[added->first];
    const bool name_is_new = watch.target_names.insert(target.name).second;
    links_to_[target.name].insert(target.file);
    // It may have changed between the reading and the watch.
    if (added->second || name_is_new) dirty_.insert(target.file);
  }
}

void ManifestDirectory::Deliver() {
  ObjectList list;
  list.source = name_;
  list.complete = complete_;
  if (!directory_error_.empty()) {
    list.problems.push_back(
        {directory_, -1, "", "",
         directory_error_ + (complete_ ? "; its last list stays" : "; never read so far")});
  }
  if (!watch_error_.empty()) list.problems.push_back({directory_, -1, "", "", watch_error_});
  if (complete_) {
    files_.AppendTo(list);
  }
  listener_(std::move(list));
}

}  // namespace volumed
