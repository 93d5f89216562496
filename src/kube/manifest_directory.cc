#include "kube/manifest_directory.h"

#include <sys/epoll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "kube/manifest_way.h"

namespace volumed {
namespace {

// A file of this size takes some milliseconds to decode; a larger one waits for its turn.
constexpr size_t kLargeBytes = 256 * 1024;

// The directories of an agent are found at the same time, but for one that does not answer: what
// that has in the end may have come from another one meanwhile.
constexpr Duration kFirstScanWithin = std::chrono::seconds(5);

constexpr char kNotUnlinked[] = "nobody was seen to unlink it";

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<std::unique_ptr<ManifestDirectory>> ManifestDirectory::Create(
    std::string directory, NodeName node_name, Scheduler& scheduler, EventLoop& loop,
    Duration settle, ManifestSeams seams) {
  ASSIGN_OR_RETURN(ManifestWatches watches, ManifestWatches::Create());
  return std::unique_ptr<ManifestDirectory>(
      new ManifestDirectory(WithoutTrailingSlash(std::move(directory)), std::move(node_name),
                            std::move(watches), scheduler, loop, settle, std::move(seams)));
}

ManifestDirectory::ManifestDirectory(std::string directory, NodeName node_name,
                                     ManifestWatches watches, Scheduler& scheduler, EventLoop& loop,
                                     Duration settle, ManifestSeams seams)
    : directory_(std::move(directory)),
      name_("manifests:" + PrintableText(directory_)),
      node_name_(std::move(node_name)),
      watches_(std::move(watches)),
      scheduler_(scheduler),
      loop_(loop),
      seams_(std::move(seams)),
      far_(scheduler, seams_.far_deadline, FarHooks()),
      retry_backoff_(scheduler.clock()),
      places_({directory_}),
      peers_(seams_.peers == nullptr ? std::make_shared<ManifestPeers>() : seams_.peers),
      settle_(settle),
      files_(directory_) {
  peers_->Join(name_, [this] { OnPeersChanged(); });
}

ManifestDirectory::~ManifestDirectory() {
  peers_->Leave(name_);
  if (settle_timer_ != 0) scheduler_.Cancel(settle_timer_);
  if (retry_timer_ != 0) scheduler_.Cancel(retry_timer_);
  loop_.UnwatchFd(watches_.fd());
}

void ManifestDirectory::Remember(SourceMemory memory) {
  // A list that has what is on record is complete, whatever can be read of the directory now.
  complete_ = memory.directory.has_value() || !memory.objects.empty();
  known_ = std::move(memory.directory);
  files_.Remember(std::move(memory.objects), memory.unproven);
}

void ManifestDirectory::Start(ObjectListener listener) {
  listener_ = std::move(listener);
  started_at_ = in_order_until_ = scheduler_.clock().Now();
  const Status watched =
      loop_.WatchFd(watches_.fd(), EPOLLIN, [this](uint32_t) { OnInotifyReadable(); });
  if (!watched.ok()) watch_error_ = "changes will not be seen: " + watched.error().message();
  need_open_ = true;
  Work();
}

void ManifestDirectory::Accept() {
  accepting_ = files_.AbsentObjects();
  need_open_ = true;
  need_scan_ = true;
  Work();
}

void ManifestDirectory::MountsChanged(const std::vector<std::string>& mount_points) {
  if (!ChangesWay(mount_points, places_)) return;
  need_open_ = true;
  Work();
}

void ManifestDirectory::SetSettle(Duration settle) {
  settle_ = settle;
  if (listener_ == nullptr || !complete_) return;
  Deliver();
  Work();
}

// ---- events -------------------------------------------------------------------------------------

void ManifestDirectory::OnInotifyReadable() {
  DrainEvents();
  Work();
}

void ManifestDirectory::DrainEvents() {
  for (const ManifestEvent& event : watches_.Read()) {
    switch (event.what) {
      case ManifestEvent::What::kOverflow:
        // Which writers have closed their files meanwhile is lost too.
        writing_.clear();
        unlinked_.clear();
        overflowed_ = true;
        files_.DoubtAbsences(kEventsLost);
        need_open_ = need_scan_ = true;
        break;
      case ManifestEvent::What::kWay:
        // What happens from now on in a directory that has lost its watch is not seen.
        if ((event.mask & (IN_DELETE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0) LoseDirectory();
        need_open_ = true;
        break;
      case ManifestEvent::What::kEntry:
        OnEntryEvent(event);
        break;
      case ManifestEvent::What::kTarget:
        OnTargetEvent(event);
        break;
    }
  }
}

void ManifestDirectory::OnEntryEvent(const ManifestEvent& event) {
  const std::string& name = event.name;
  // The swap of a mounted config map: every link of the directory leads through it.
  if (name.starts_with("..")) need_scan_ = true;
  if (!IsManifestName(name)) return NoteUnread(event);
  if ((event.mask & IN_MODIFY) != 0) writing_.insert(name);
  if ((event.mask & IN_CREATE) != 0) created_.insert(name);
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) unlinked_.erase(name);
  if ((event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) unlinked_.insert(name);
  if ((event.mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)) != 0) {
    writing_.erase(name);
    dirty_.insert(name);
  }
  if ((event.mask & IN_ATTRIB) != 0 && writing_.count(name) == 0) dirty_.insert(name);
}

void ManifestDirectory::OnTargetEvent(const ManifestEvent& event) {
  if ((event.mask & IN_MODIFY) != 0) {
    writing_.insert(event.name);
  } else if ((event.mask & IN_CREATE) != 0) {
    created_.insert(event.name);
  } else {
    writing_.erase(event.name);
    dirty_.insert(event.name);
  }
}

// ---- work ---------------------------------------------------------------------------------------

void ManifestDirectory::Work() {
  if (listener_ == nullptr) return;
  if (!busy_) {
    if (need_open_) {
      need_open_ = false;
      StartOpen();
    } else if (watched_ && need_scan_) {
      StartScan(/*whole=*/true);
    } else if (watched_ && (!dirty_.empty() || !created_.empty())) {
      StartScan(/*whole=*/false);
    }
  }
  if (!large_busy_ && watched_ && !large_.empty()) StartLarge();
  TellPeers();
}

void ManifestDirectory::TellPeers() {
  const bool was_in_order =
      std::exchange(in_order_, listed_ && in_known_ && directory_error_.empty());
  if (was_in_order && !in_order_) in_order_until_ = scheduler_.clock().Now();
  ManifestDoubts doubts = files_.Doubts();
  if (doubts.suspect) doubts.suspect->source = name_;
  doubts.absent = Absence();
  for (const auto& [file, what] : BusyFiles()) {
    doubts.busy.try_emplace(files_.PathOf(file), what);
  }
  peers_->Tell(name_, std::move(doubts));
}

// Only what is absent is judged by what the others say.
void ManifestDirectory::OnPeersChanged() {
  if (!complete_ || !files_.HasAbsentObjects() || std::exchange(peers_changed_, true)) return;
  scheduler_.Post(alive_.Guarded([this] {
    peers_changed_ = false;
    if (listener_ == nullptr) return;
    DrainEvents();
    Deliver();
    Work();
  }));
}

void ManifestDirectory::StartOpen() {
  Run<Opened>(
      busy_,
      [directory = directory_, identify = seams_.identify, answers = seams_.answers] {
        const Status answered = answers ? answers(directory) : OkStatus();
        if (answered.ok()) return Open(directory, identify);
        Opened opened;
        opened.error = answered.error().message();
        return opened;
      },
      &ManifestDirectory::OnOpened);
}

ManifestDirectory::Opened ManifestDirectory::Open(const std::string& directory,
                                                  const ManifestSeams::Identify& identify) {
  Opened opened;
  opened.way = WalkPath(Descriptor(), directory);
  Result<OpenDirectory> opened_directory = OpenDirectoryAt(directory);
  if (!opened_directory.ok()) {
    opened.error = opened_directory.error().message();
    // Its coming is told by an event.
    opened.is_missing = opened_directory.error().code() == Code::kNotFound;
    opened.places = PlacesOnWay(directory, std::nullopt, opened.way);
    return opened;
  }
  Result<KnownDirectory> identity = identify(opened_directory->fd);
  if (!identity.ok()) {
    opened.error = identity.error().message();
    return opened;
  }
  opened.identity = *std::move(identity);
  opened.directory = *std::move(opened_directory);
  opened.places = PlacesOnWay(directory, opened.directory, opened.way);
  return opened;
}

void ManifestDirectory::OnOpened(Opened opened) {
  DrainEvents();  // of the old watches
  if (watches_.SetWay(opened.directory, opened.way)) need_open_ = true;
  directory_error_ = opened.error;
  if (!opened.places.empty()) places_ = std::move(opened.places);
  if (opened.directory) {
    TakeDirectory(opened);
    return;
  }
  LoseDirectory();
  if (!opened.is_missing) was_closed_ = true;
  is_first_scan_ = false;  // what is found later may have moved meanwhile
  if (need_open_) return;
  files_.LoseFiles();
  FinishListing();
  if (!opened.is_missing) ArmRetry();
  Deliver();
}

void ManifestDirectory::TakeDirectory(const Opened& opened) {
  const bool is_watched = watched_ && *watched_ == opened.directory->inode;
  if (!is_watched) {
    LoseDirectory();
    watched_ = opened.directory->inode;
    now_ = opened.identity;
    had_objects_ = files_.HasKnownObjects();
    if (known_ && IsOlderState(*known_, *now_)) {
      known_->changed_unix_nanos = KnownDirectory::kPutBack;
    }
    in_known_ = known_ && IsSameDirectory(*known_, *now_);
  }
  need_scan_ = true;
}

// Events about the old directory's files say nothing of the new one's.
void ManifestDirectory::LoseDirectory() {
  watched_.reset();
  now_.reset();
  in_known_ = listed_ = need_scan_ = overflowed_ = false;
  listing_ = Listing::kFound;
  dirty_.clear();
  created_.clear();
  writing_.clear();
  unlinked_.clear();
  large_.clear();
  far_.DropAll();
  unreadable_.clear();
  not_read_.clear();
  unread_.clear();
  unread_news_.clear();
}

ManifestDirectory::ScanRequest ManifestDirectory::MakeRequest(bool whole) const {
  ScanRequest request;
  request.directory = directory_;
  request.inode = *watched_;
  request.whole = whole;
  request.at = scheduler_.clock().Now();
  request.options.node_name = node_name_;
  return request;
}

ManifestDirectory::Scanned ManifestDirectory::Scan(ScanRequest request) {
  Scanned scanned;
  scanned.whole = request.whole;
  scanned.inode = request.inode;
  scanned.at = request.at;
  scanned.by_event.insert(request.files.begin(), request.files.end());
  Result<OpenDirectory> open = OpenDirectoryAt(request.directory);
  scanned.moved = !open.ok() || open->inode != request.inode;
  if (scanned.moved) return scanned;
  scanned.changed_unix_nanos = LastChangeOf(open->fd);
  for (const std::string& file : request.created) {
    if (scanned.by_event.count(file) > 0) continue;
    const bool is_complete = IsCompleteAtCreation(open->fd, file);
    (is_complete ? request.files : scanned.begun).push_back(file);
    if (is_complete) scanned.by_event.insert(file);
  }
  if (request.whole) {
    Result<std::vector<std::string>> listed = ListManifests(open->fd, scanned.unread);
    if (!listed.ok()) {
      scanned.error = listed.error().message();
      return scanned;
    }
    scanned.present = *listed;
    request.files = *std::move(listed);
  }
  scanned.scan = ReadManifests(request.directory, open->fd, request.files, request.options);
  return scanned;
}

void ManifestDirectory::StartScan(bool whole) {
  ScanRequest request = MakeRequest(whole);
  request.files.assign(dirty_.begin(), dirty_.end());
  request.created.assign(created_.begin(), created_.end());
  reading_ = std::exchange(dirty_, {});
  reading_.merge(std::exchange(created_, {}));
  if (whole) {
    need_scan_ = false;
    unread_news_.clear();
    const bool overflowed = std::exchange(overflowed_, false);
    if (overflowed && listing_ == Listing::kRefresh) listing_ = Listing::kOverflow;
  }
  request.options.max_bytes = kLargeBytes;
  Run<Scanned>(
      busy_, [request = std::move(request)] { return Scan(request); },
      &ManifestDirectory::OnScanned);
}

void ManifestDirectory::OnScanned(Scanned scanned) {
  // What was read may be half of what somebody was writing just then: look at the events first.
  DrainEvents();
  const std::set<std::string> were_dirty = std::exchange(reading_, {});
  if (!watched_ || *watched_ != scanned.inode) return;  // another directory is being read by now
  if (scanned.moved || !scanned.error.empty()) {
    is_first_scan_ = false;
    // What was to be read stays to be read, if it is the same directory after all.
    dirty_.insert(were_dirty.begin(), were_dirty.end());
    need_open_ = need_open_ || scanned.moved;
    if (!scanned.moved) {
      directory_error_ = scanned.error;
      files_.LoseFiles();
      listing_ = Listing::kFound;  // what happens meanwhile is not judged by events alone
      FinishListing();
      ArmRetry();
      Deliver();
    }
    return;
  }
  directory_error_.clear();
  NoteChange(scanned);
  ApplyScan(scanned);
  FinishListing();
  ArmRetry();
  Deliver();
}

// ---- what was read ------------------------------------------------------------------------------

uint64_t ManifestDirectory::BeginScan(TimePoint at) {
  const bool is_first =
      std::exchange(is_first_scan_, false) && at - started_at_ <= kFirstScanWithin;
  return is_first ? ManifestPeers::kFirstScan : peers_->NextScan();
}

void ManifestDirectory::ApplyScan(Scanned& scanned) {
  const uint64_t number = BeginScan(scanned.at);
  if (scanned.whole) is_empty_ = scanned.present.empty();
  if (!scanned.scan.readings.empty()) is_empty_ = false;
  // A source that has no past knows no other directory.
  if (!known_ && !files_.HasKnownObjects() && !MayBeMountPoint()) Adopt();
  const std::string unproven =
      scanned.whole ? ListingUnproven(scanned.present.empty()) : WhyUnproven();
  const bool is_found = scanned.whole && listing_ == Listing::kFound;
  const auto look_at = [&](const std::string& file) {
    const bool by_event = is_found || scanned.by_event.count(file) > 0;
    return ManifestLook{scanned.at, by_event, number, unproven};
  };
  if (scanned.whole) ApplyListing(scanned, number);
  if (scanned.whole) TakeUnread(scanned.unread);
  std::vector<std::string> files = scanned.scan.large;
  for (const std::string& file : scanned.scan.large) large_.insert_or_assign(file, look_at(file));
  for (const FarLink& link : scanned.scan.far) {
    const ManifestLook look = look_at(link.file);
    if (const auto why = far_.Want(link.file, link.target, look)) {
      ApplyReading(Unanswered(link.file, *why), look);
    }
  }
  for (ManifestReading& reading : scanned.scan.readings) {
    const ManifestLook look = look_at(reading.file);
    far_.Drop(reading.file);
    files.push_back(reading.file);
    ApplyReading(std::move(reading), look);
  }
  for (const std::string& file : scanned.begun) {
    const bool is_new = dirty_.count(file) == 0 && unlinked_.count(file) == 0;
    if (is_new) writing_.insert(file);  // its writer will close it
  }
  dirty_.merge(watches_.SetTargets(files, scanned.scan.targets));
  if (scanned.whole) {
    listing_ = Listing::kRefresh;
    listed_ = true;
  }
}

void ManifestDirectory::ApplyListing(const Scanned& scanned, uint64_t number) {
  const std::set<std::string> present(scanned.present.begin(), scanned.present.end());
  const std::string whole_unproven = ListingUnproven(present.empty());
  for (const std::string& file : files_.AbsentFrom(present)) {
    ManifestLook look{scanned.at, listing_ == Listing::kFound, number, whole_unproven};
    look.unproven_for_good = WhyOther().empty();
    ApplyReading({file, ManifestReading::What::kGone, "", {}}, look);
  }
}

// A slip may have made a PersistentVolume unknown whose storage is another one's to delete. A file
// without any content may have lost it with the machine's power.
bool ManifestDirectory::MayHideVolume(const ManifestReading& reading) {
  if (reading.what != ManifestReading::What::kRead) return false;
  if (reading.stamp.size == 0) return true;
  const auto may_be_volume = [](const DecodeProblem& problem) {
    if (problem.is_of_other_kind) return false;
    const std::string kind = Split(problem.object, ' ').front();
    return kind.empty() || kind == ObjectKindName(ObjectKind::kPersistentVolume);
  };
  const std::vector<DecodeProblem>& problems = reading.decode.problems;
  return std::any_of(problems.begin(), problems.end(), may_be_volume);
}

void ManifestDirectory::NoteRead(const ManifestReading& reading, bool is_written) {
  using What = ManifestReading::What;
  if (is_written || reading.what == What::kChanging) {
    not_read_[reading.file] = "is being written";
  } else if (reading.what == What::kUnreadable) {
    not_read_[reading.file] = reading.error;
  } else if (MayHideVolume(reading)) {
    not_read_[reading.file] =
        reading.stamp.size == 0 ? "is empty" : "is not right in all its parts";
  } else {
    not_read_.erase(reading.file);
  }
}

void ManifestDirectory::ApplyReading(ManifestReading reading, ManifestLook look) {
  using What = ManifestReading::What;
  large_.erase(reading.file);
  unreadable_.erase(reading.file);
  if (reading.try_again) unreadable_.insert(reading.file);
  // Its writer will close it, and that will be another reading.
  const bool is_written = reading.what != What::kGone && writing_.count(reading.file) > 0;
  if (!seen_) NoteRead(reading, is_written);
  if (is_written) return;
  if (reading.what == What::kGone) {
    writing_.erase(reading.file);
    const bool was_seen = unlinked_.count(reading.file) > 0;
    const bool is_found = listing_ == Listing::kFound;
    if (look.unproven.empty() && !was_seen && !is_found) look.unproven = kNotUnlinked;
    look.by_event = is_found || was_seen;
    look.was_seen_to_go = was_seen;
  }
  if (dirty_.count(reading.file) == 0) unlinked_.erase(reading.file);
  files_.Apply(std::move(reading), look);
}

}  // namespace volumed
