#include "os/kept_mount_table.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "os/mount_event_queue.h"
#include "os/mount_index.h"
#include "os/mount_places.h"
#include "os/mount_table.h"
#include "os/statmount.h"

namespace volumed {
namespace {

// Not /proc/self: a thread may have a mount namespace of its own.
constexpr char kNamespace[] = "/proc/thread-self/ns/mnt";
constexpr char kMountInfo[] = "/proc/thread-self/mountinfo";
// Where renamed mounts are is asked for again by each question for so long after one was found at
// another place, and from then on after so many times of what it took.
constexpr auto kRenamesFor = std::chrono::seconds(10);
constexpr int kPausePerLook = 20;

Result<Descriptor> OpenProc(const char* path) {
  Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return Error::FromErrno(errno, std::string("open ") + path, Outcome::kNotApplied);
  }
  return fd;
}

bool LiesBelow(const std::string& path, const std::string& directory) {
  return path != directory && IsAtOrBelow(path, directory);
}

// ---- by events ----------------------------------------------------------------------------------

class EventMountTable final : public KeptMountTable {
 public:
  static Result<std::unique_ptr<KeptMountTable>> Open(MountWatch watch);

  Result<std::vector<MountEntry>> Find(const ListMounts& question) override EXCLUDES(mu_);
  std::vector<MountEntry> LastKnown(const ListMounts& question,
                                    const std::string& directory) const override EXCLUDES(mu_);
  int event_fd() const override { return event_fd_; }
  void TakeEvents() override EXCLUDES(mu_);

 private:
  using SteadyClock = std::chrono::steady_clock;

  EventMountTable(MountEventQueue queue, const StatMounts& mounts, MountWatch watch)
      : KeptMountTable(MountTableSource::kEvents, "", std::move(watch)),
        mounts_(mounts),
        event_fd_(queue.fd()),
        queue_(std::move(queue)) {}

  using Answer = std::vector<std::pair<uint64_t, MountEntry>>;
  Result<Answer> Ask(const ListMounts& question) EXCLUDES(mu_);
  // Mounts of an answer about a path of which the kept table has at another path what they are
  // mounted on.
  std::set<uint64_t> WithoutParent(const ListMounts& question, const Answer& answer) EXCLUDES(mu_);
  // Everything that had happened when it was called is in places_ after it.
  Status CatchUp() REQUIRES(mu_);
  // Takes at least so many events, if there are so many. An error leaves lost_ set.
  Status Follow(size_t at_least) REQUIRES(mu_);
  Status ReadAll() REQUIRES(mu_);
  Status PlaceRenamed() REQUIRES(mu_);
  // Asks where the mount is now. What lies below it is asked too when it was moved: moving a mount
  // moves all that is mounted below it, with one event.
  Status Place(uint64_t id) REQUIRES(mu_);
  Status PlaceOne(uint64_t id) REQUIRES(mu_);
  // What the watch is to be told once the lock is let go.
  News TakeNews() REQUIRES(mu_) { return std::exchange(news_, {}); }

  const StatMounts mounts_;
  const int event_fd_;

  mutable Mutex mu_;
  MountEventQueue queue_ GUARDED_BY(mu_);
  MountPlaces places_ GUARDED_BY(mu_);  // of unique ids, which are in the order of mountinfo
  bool lost_ GUARDED_BY(mu_) = true;    // places_ may be wrong in any way
  // Mounts that were found at another place, of which the kernel had said nothing: what was renamed
  // once is likely to be renamed back. Questions ask where they are; once nobody renames any more,
  // with a pause that keeps the share of many small.
  std::set<uint64_t> renamed_ GUARDED_BY(mu_);
  SteadyClock::time_point last_rename_ GUARDED_BY(mu_);
  SteadyClock::time_point next_look_ GUARDED_BY(mu_);
  std::set<uint64_t> alone_ GUARDED_BY(mu_);  // mounted on nothing that this namespace shows
  News news_ GUARDED_BY(mu_);
};

Result<std::unique_ptr<KeptMountTable>> EventMountTable::Open(MountWatch watch) {
  ASSIGN_OR_RETURN(const Descriptor ns, OpenProc(kNamespace));
  ASSIGN_OR_RETURN(const StatMounts mounts, StatMounts::Of(ns.get()));
  // The queue before the first reading: what happens in between is then in both.
  ASSIGN_OR_RETURN(MountEventQueue queue, MountEventQueue::Open(ns.get()));
  std::unique_ptr<EventMountTable> table(
      new EventMountTable(std::move(queue), mounts, std::move(watch)));
  MutexLock lock(table->mu_);
  RETURN_IF_ERROR(table->CatchUp());
  table->TakeNews();  // what was there before is no news
  // Whether this kernel fills in all fields is known at once, and not at the first question.
  for (const uint64_t id : table->places_.At("/")) RETURN_IF_ERROR(mounts.Entry(id));
  return std::unique_ptr<KeptMountTable>(std::move(table));
}

Result<std::vector<MountEntry>> EventMountTable::Find(const ListMounts& question) {
  ASSIGN_OR_RETURN(Answer answer, Ask(question));
  std::set<uint64_t> alone = WithoutParent(question, answer);
  if (!alone.empty()) {
    // What they are mounted on was renamed along with them, and nobody has asked for it.
    {
      MutexLock lock(mu_);
      lost_ = true;
    }
    ASSIGN_OR_RETURN(answer, Ask(question));
    alone = WithoutParent(question, answer);
    MutexLock lock(mu_);
    alone_.merge(alone);
  }
  std::vector<MountEntry> found;
  found.reserve(answer.size());
  for (auto& [id, entry] : answer) found.push_back(std::move(entry));
  return found;
}

// A look-up of a path passes what its mounts are mounted on, but for what lies outside of a chroot.
std::set<uint64_t> EventMountTable::WithoutParent(const ListMounts& question,
                                                  const Answer& answer) {
  std::set<uint64_t> alone;
  if (question.around.empty()) return alone;
  std::set<uint64_t> there;
  for (const auto& [id, entry] : answer) there.insert(entry.mount_id);
  MutexLock lock(mu_);
  for (const auto& [id, entry] : answer) {
    const bool has_parent = entry.mount_point == "/" || there.contains(entry.parent_id);
    if (!has_parent && !alone_.contains(id)) alone.insert(id);
  }
  return alone;
}

Result<EventMountTable::Answer> EventMountTable::Ask(const ListMounts& question) {
  std::vector<std::pair<uint64_t, MountPlace>> kept;
  News news;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    for (const uint64_t id : places_.Find(question)) kept.emplace_back(id, *places_.Get(id));
    news = TakeNews();
  }
  Tell(news);
  // Without the lock: nothing that is kept is used, and a long answer holds nobody up.
  Answer found;
  found.reserve(kept.size());
  for (const auto& [id, place] : kept) {
    ASSIGN_OR_RETURN(std::optional<MountEntry> entry, mounts_.Entry(id));
    if (!entry) continue;  // unmounted by now
    if (PlaceOf(*entry) != place) {
      // It was moved just now, or a directory above it, or of its root, was renamed some time ago.
      MutexLock lock(mu_);
      const bool lost = std::exchange(lost_, true);
      RETURN_IF_ERROR(Place(id));
      lost_ = lost;
      renamed_.insert(id);
      last_rename_ = SteadyClock::now();
    }
    if (Concerns(*entry, question)) found.emplace_back(id, std::move(*entry));
  }
  return found;
}

void EventMountTable::TakeEvents() {
  News news;
  {
    MutexLock lock(mu_);
    // What goes wrong is kept as lost_, for the next question to mend and to report.
    const Status followed = Follow(0);
    static_cast<void>(followed);
    news = TakeNews();
  }
  Tell(news);
}

std::vector<MountEntry> EventMountTable::LastKnown(const ListMounts& question,
                                                   const std::string& directory) const {
  std::vector<uint64_t> ids;
  {
    MutexLock lock(mu_);
    for (const uint64_t id : places_.Find(question)) {
      if (LiesBelow(places_.Get(id)->mount_point, directory)) ids.push_back(id);
    }
  }
  std::vector<MountEntry> found;
  for (const uint64_t id : ids) {
    Result<std::optional<MountEntry>> entry = mounts_.Entry(id);
    if (entry.ok() && *entry) found.push_back(**std::move(entry));
  }
  return found;
}

Status EventMountTable::CatchUp() {
  // Not until the queue is empty: others may mount faster than this reads.
  ASSIGN_OR_RETURN(const size_t waiting, queue_.Waiting());
  if (waiting > 0) RETURN_IF_ERROR(Follow(waiting));
  if (lost_) RETURN_IF_ERROR(ReadAll());
  return PlaceRenamed();
}

Status EventMountTable::PlaceRenamed() {
  for (auto id = renamed_.begin(); id != renamed_.end();) {
    id = places_.Get(*id) == nullptr ? renamed_.erase(id) : std::next(id);
  }
  const SteadyClock::time_point begin = SteadyClock::now();
  const bool is_renaming = begin < last_rename_ + kRenamesFor;
  if (renamed_.empty() || (!is_renaming && begin < next_look_)) return OkStatus();
  const uint64_t updates = updates_;
  lost_ = true;
  for (const uint64_t id : renamed_) RETURN_IF_ERROR(Place(id));
  lost_ = false;
  const SteadyClock::time_point end = SteadyClock::now();
  if (updates_ != updates) last_rename_ = end;
  next_look_ = end + kPausePerLook * (end - begin);
  return OkStatus();
}

Status EventMountTable::Follow(size_t at_least) {
  const bool lost = std::exchange(lost_, true);
  ASSIGN_OR_RETURN(const MountEvents events, queue_.Take(at_least));
  if (lost || events.lost) return OkStatus();  // everything is asked anew anyway
  for (const uint64_t id : events.mounts) RETURN_IF_ERROR(Place(id));
  lost_ = false;
  return OkStatus();
}

Status EventMountTable::ReadAll() {
  ++full_reads_;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> ids, mounts_.Ids());
  MountPlaces next;
  for (const uint64_t id : ids) {
    ASSIGN_OR_RETURN(std::optional<MountPlace> place, mounts_.Place(id));
    if (place) next.Put(id, std::move(*place));
  }
  for (const auto& [id, place] : places_.all()) {
    const MountPlace* now = next.Get(id);
    if (now == nullptr || now->mount_point != place.mount_point) news_.Went(place.mount_point);
  }
  for (const auto& [id, place] : next.all()) {
    const MountPlace* before = places_.Get(id);
    if (before == nullptr || before->mount_point != place.mount_point) {
      news_.Came(place.mount_point);
    }
  }
  places_ = std::move(next);
  for (auto id = alone_.begin(); id != alone_.end();) {
    id = places_.Get(*id) == nullptr ? alone_.erase(id) : std::next(id);
  }
  mounts_known_ = places_.size();
  lost_ = false;
  return OkStatus();
}

Status EventMountTable::Place(uint64_t id) {
  const MountPlace* known = places_.Get(id);
  const std::string before = known == nullptr ? "" : known->mount_point;
  RETURN_IF_ERROR(PlaceOne(id));
  const MountPlace* now = places_.Get(id);
  if (before.empty() || now == nullptr || now->mount_point == before) return OkStatus();
  for (const uint64_t below : places_.Find({.below = before})) RETURN_IF_ERROR(PlaceOne(below));
  return OkStatus();
}

Status EventMountTable::PlaceOne(uint64_t id) {
  ASSIGN_OR_RETURN(std::optional<MountPlace> place, mounts_.Place(id));
  if (!place) {
    if (const MountPlace* gone = places_.Get(id)) news_.Went(gone->mount_point);
    if (places_.Erase(id)) ++updates_;
    mounts_known_ = places_.size();
    return OkStatus();
  }
  const MountPlace* known = places_.Get(id);
  if (known != nullptr && *known == *place) return OkStatus();
  if (known == nullptr || known->mount_point != place->mount_point) {
    if (known != nullptr) news_.Went(known->mount_point);
    news_.Came(place->mount_point);
  }
  places_.Put(id, std::move(*place));
  mounts_known_ = places_.size();
  ++updates_;
  return OkStatus();
}

// ---- by poll ------------------------------------------------------------------------------------

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class PollMountTable final : public KeptMountTable {
 public:
  static Result<std::unique_ptr<KeptMountTable>> Open(std::string why_poll, MountWatch watch);

  Result<std::vector<MountEntry>> Find(const ListMounts& question) override EXCLUDES(mu_);
  std::vector<MountEntry> LastKnown(const ListMounts& question,
                                    const std::string& directory) const override EXCLUDES(mu_);
  int event_fd() const override { return -1; }
  void TakeEvents() override {}
  int change_fd() const override { return changes_.get(); }
  void CatchUpNow() override EXCLUDES(mu_);

 private:
  PollMountTable(Descriptor mountinfo, Descriptor changes, std::string why_poll, MountWatch watch)
      : KeptMountTable(MountTableSource::kPoll, std::move(why_poll), std::move(watch)),
        mountinfo_(std::move(mountinfo)),
        changes_(std::move(changes)) {}

  Status CatchUp() REQUIRES(mu_);
  Status ReadAll() REQUIRES(mu_);

  // Stays open: it names the namespace whatever thread asks, and the kernel remembers for it what
  // was the last change that a poll was told of.
  const Descriptor mountinfo_;
  // Another one for whoever waits for changes, as each open file is told of a change once.
  const Descriptor changes_;

  mutable Mutex mu_;
  News news_ GUARDED_BY(mu_);
  bool changed_ GUARDED_BY(mu_) = true;
  std::shared_ptr<const MountSnapshot> snapshot_ GUARDED_BY(mu_) =
      std::make_shared<const MountSnapshot>(std::vector<MountEntry>());
};

Result<std::unique_ptr<KeptMountTable>> PollMountTable::Open(std::string why_poll,
                                                             MountWatch watch) {
  ASSIGN_OR_RETURN(Descriptor mountinfo, OpenProc(kMountInfo));
  ASSIGN_OR_RETURN(Descriptor changes, OpenProc(kMountInfo));
  std::unique_ptr<PollMountTable> table(new PollMountTable(std::move(mountinfo), std::move(changes),
                                                           std::move(why_poll), std::move(watch)));
  MutexLock lock(table->mu_);
  RETURN_IF_ERROR(table->CatchUp());
  table->updates_ = 0;
  table->news_ = {};  // what was there before is no news
  return std::unique_ptr<KeptMountTable>(std::move(table));
}

Result<std::vector<MountEntry>> PollMountTable::Find(const ListMounts& question) {
  std::shared_ptr<const MountSnapshot> snapshot;
  News news;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    snapshot = snapshot_;
    news = std::exchange(news_, {});
  }
  Tell(news);
  return snapshot->Find(question);
}

std::vector<MountEntry> PollMountTable::LastKnown(const ListMounts& question,
                                                  const std::string& directory) const {
  std::shared_ptr<const MountSnapshot> snapshot;
  {
    MutexLock lock(mu_);
    snapshot = snapshot_;
  }
  std::vector<MountEntry> found = snapshot->Find(question);
  std::erase_if(found,
                [&](const MountEntry& mount) { return !LiesBelow(mount.mount_point, directory); });
  return found;
}

void PollMountTable::CatchUpNow() {
  News news;
  {
    MutexLock lock(mu_);
    // A table that cannot be read now is told to the next question, which reads it itself.
    const Status caught_up = CatchUp();
    static_cast<void>(caught_up);
    news = std::exchange(news_, {});
  }
  Tell(news);
}

Status PollMountTable::CatchUp() {
  // First the poll, then the reading: a change while it is read shows at the next poll.
  pollfd poll_of = {mountinfo_.get(), POLLPRI, 0};
  const int ready = ::poll(&poll_of, 1, 0);
  if (ready < 0 && errno != EINTR) {
    return Error::FromErrno(errno, std::string("poll ") + kMountInfo, Outcome::kNotApplied);
  }
  if (ready != 0) changed_ = true;  // also when nothing could be learnt
  return changed_ ? ReadAll() : OkStatus();
}

Status PollMountTable::ReadAll() {
  ++full_reads_;
  const int copy = ::fcntl(mountinfo_.get(), F_DUPFD_CLOEXEC, 0);
  std::unique_ptr<std::FILE, FileCloser> stream(copy >= 0 ? ::fdopen(copy, "r") : nullptr);
  if (stream == nullptr || ::fseek(stream.get(), 0, SEEK_SET) != 0) {
    return Error::FromErrno(errno, std::string("read ") + kMountInfo, Outcome::kNotApplied);
  }
  ASSIGN_OR_RETURN(std::vector<MountEntry> entries, ParseMountTable(stream.get(), kMountInfo));
  auto next = std::make_shared<const MountSnapshot>(std::move(entries));
  const MountTableChange change = DiffMounts(*snapshot_, *next);
  updates_ += change.added.size() + change.removed.size() + change.changed.size();
  for (const MountEntry& removed : change.removed) news_.Went(removed.mount_point);
  for (const MountEntry& added : change.added) news_.Came(added.mount_point);
  for (const MountEntry& now : change.changed) {
    const MountEntry* before = snapshot_->FindById(now.mount_id);
    if (before == nullptr || before->mount_point == now.mount_point) continue;
    news_.Went(before->mount_point);
    news_.Came(now.mount_point);
  }
  snapshot_ = std::move(next);
  mounts_known_ = snapshot_->entries().size();
  changed_ = false;
  return OkStatus();
}

}  // namespace

KeptMountTable::KeptMountTable(MountTableSource source, std::string why_poll, MountWatch watch)
    : source_(source), why_poll_(std::move(why_poll)), watch_(std::move(watch)) {}

void KeptMountTable::Tell(const News& news) const {
  if (watch_.below.empty()) return;
  std::vector<std::string> gone;
  std::vector<std::string> elsewhere;
  for (const std::string& point : news.went_) {
    (IsAtOrBelow(point, watch_.below) ? gone : elsewhere).push_back(point);
  }
  for (const std::string& point : news.came_) {
    if (!IsAtOrBelow(point, watch_.below)) elsewhere.push_back(point);
  }
  if (!gone.empty() && watch_.gone) watch_.gone(gone);
  if (!elsewhere.empty() && watch_.changed_elsewhere) watch_.changed_elsewhere(elsewhere);
}

MountTableStats KeptMountTable::stats() const {
  return {source_, why_poll_, mounts_known_, updates_, full_reads_};
}

Result<std::unique_ptr<KeptMountTable>> KeptMountTable::Open(const KernelFeatures& features,
                                                             MountWatch watch) {
  const auto by_poll = [&watch](const std::string& why) {
    return PollMountTable::Open(why, watch);
  };
  if (!features.mount_events)
    return by_poll("no mount-events: the kernel lacks or a filter refuses them");
  if (!features.statmount) return by_poll("no statmount: the kernel lacks or a filter refuses it");
  Result<std::unique_ptr<KeptMountTable>> by_events = EventMountTable::Open(watch);
  if (by_events.ok()) return by_events;
  return by_poll(by_events.error().message());
}

}  // namespace volumed
