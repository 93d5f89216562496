// ManifestDirectory: pods and the objects they use from files in a directory, as kubelet's static
// pods. Driven by inotify alone; nothing polls.
//
//  - A file is read when its writer has closed it, when it was renamed into place or linked. While
//    somebody writes it (IN_MODIFY without IN_CLOSE_WRITE so far) its last good objects count.
//  - When an absent object goes: kube/manifest_files.h. This class says what was seen of it. An
//    unlink or rename that inotify told of is evidence in the known directory. After an overflow,
//    in another directory, and if the known directory is found empty, nothing is.
//  - The known directory is the one of which the agent that ran before, or the administrator's
//  word,
//    or a first start says so. Another one becomes it by itself once it has every known object.
//    A directory that is found again (at a start, or when it is back in its place) is judged by its
//    content: what was removed meanwhile nobody saw, and it counts as removed.
//  - Symbolic links are followed and watched step by step; a "..data" link that moves (a mounted
//    config map) reads everything again.
//  - Large files are read and decoded one at a time beside the others, and delay none of them.
//  - A link that leads out of the directory's filesystem is read beside the others, too
//    (kube/far_manifests.h). One that does not answer is in disorder until it does.
//  - No descriptor of the directory is kept open: it can be unmounted and removed at any time.
//  - Of mounts inotify tells nothing: its owner does (MountsChanged), and the path is opened anew.
//  - What nobody can tell: changes on a network filesystem by another node, writes through mmap.
//    Before an object goes, the path is opened anew, so that such a change takes nothing away.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "kube/directory_identity.h"
#include "kube/far_manifests.h"
#include "kube/manifest_files.h"
#include "kube/manifest_peers.h"
#include "kube/manifest_reader.h"
#include "kube/manifest_watches.h"
#include "kube/object_source.h"

namespace volumed {

// What the directory does not do itself.
struct ManifestSeams {
  // Reads what lies outside of the directory's filesystem, on any thread.
  FarReader read_far;
  // What the directory is recognised by; a test may put something else in its place.
  using Identify = std::function<Result<KnownDirectory>(const Descriptor&)>;
  Identify identify = IdentifyDirectory;
  // The same of all directories of an agent; null: there is no other one.
  std::shared_ptr<ManifestPeers> peers = nullptr;
  // Asked before each opening of the path, on a thread that may wait: an error says that the
  // directory does not answer, and it is left alone for a while. Without, it is taken to answer.
  std::function<Status(const std::string& directory)> answers = {};
};

// Threads: control thread. Files are read by Scheduler::RunBlocking. REQUIRES: scheduler and loop
// outlive it, and `loop` is the scheduler's own.
class ManifestDirectory final : public ObjectSource {
 public:
  // `directory` is absolute; `node_name` completes pods without a uid.
  // Errors (not applied): ResourceExhausted without inotify instances.
  static Result<std::unique_ptr<ManifestDirectory>> Create(std::string directory,
                                                           NodeName node_name, Scheduler& scheduler,
                                                           EventLoop& loop, Duration settle,
                                                           ManifestSeams seams);
  ~ManifestDirectory() override;
  ManifestDirectory(const ManifestDirectory&) = delete;
  ManifestDirectory& operator=(const ManifestDirectory&) = delete;

  // "manifests:<directory>".
  const std::string& name() const override { return name_; }
  void Remember(SourceMemory memory) override;
  void Start(ObjectListener listener) override;
  void Accept() override;

  // Mounts came or went at these places: if the path leads through one, it is looked at anew.
  void MountsChanged(const std::vector<std::string>& mount_points) override;

  // Counts for what is absent already, too.
  void SetSettle(Duration settle) override;

  // Files of the directory that are not read because of their names, as it was last seen: at most
  // kMaxUnreadNames. They change without a list being delivered.
  std::set<std::string> UnreadFiles() const override { return unread_; }

  // Readable when something has happened to what is watched.
  int event_fd() const { return watches_.fd(); }

 private:
  struct Opened {
    std::optional<OpenDirectory> directory;
    std::optional<KnownDirectory> identity;
    std::string error;        // why there is no directory
    bool is_missing = false;  // in which case an event will tell of it
    PathWalk way;
    std::vector<std::string> places;  // on the way; none: nobody has gone it
  };
  struct Scanned {
    DirectoryInode inode;
    bool moved = false;  // the path leads to another directory
    bool whole = false;  // listed, not only these files read
    TimePoint at;
    std::string error;
    std::optional<int64_t> changed_unix_nanos;  // before it was listed
    std::vector<std::string> present;
    std::vector<std::string> unread;
    std::vector<std::string> begun;  // created, and not closed by their writer yet
    std::set<std::string> by_event;
    ManifestScan scan;
  };
  static constexpr char kEventsLost[] =
      "events of the directory were lost (fs.inotify.max_queued_events)";

  // Why a whole listing is made; it decides what an absence in it proves.
  enum class Listing {
    kRefresh,   // of the directory that is watched: removals were seen as events
    kFound,     // of a directory that has come
    kOverflow,  // after events were lost
  };

  ManifestDirectory(std::string directory, NodeName node_name, ManifestWatches watches,
                    Scheduler& scheduler, EventLoop& loop, Duration settle, ManifestSeams seams);

  void OnInotifyReadable();
  void DrainEvents();
  void OnEntryEvent(const ManifestEvent& event);
  void OnTargetEvent(const ManifestEvent& event);
  void NoteUnread(const ManifestEvent& event);
  // Of a whole listing, which what has happened meanwhile is newer than.
  void TakeUnread(const std::vector<std::string>& listed);

  // Starts the next piece of work, if there is one and none is under way.
  void Work();
  void StartOpen();
  static Opened Open(const std::string& directory, const ManifestSeams::Identify& identify);
  void OnOpened(Opened opened);
  void TakeDirectory(const Opened& opened);
  void LoseDirectory();
  void StartScan(bool whole);
  struct ScanRequest {
    std::string directory;
    DirectoryInode inode;
    bool whole = false;
    TimePoint at;
    std::vector<std::string> files;
    std::vector<std::string> created;
    ScanOptions options;
  };
  ScanRequest MakeRequest(bool whole) const;
  static Scanned Scan(ScanRequest request);
  void OnScanned(Scanned scanned);
  void ApplyScan(Scanned& scanned);
  void ApplyListing(const Scanned& scanned, uint64_t number);
  // Why an absence proves nothing in what is there now; "" in the known directory.
  std::string WhyUnproven() const;
  std::string ListingUnproven(bool is_empty) const;
  void ApplyReading(ManifestReading reading, ManifestLook look);
  void StartLarge();
  void OnLargeRead(Scanned scanned);
  FarManifests::Hooks FarHooks();
  void OnFarRead(const std::string& file, ManifestLook look, FarAnswer answer);
  void OnFarUnanswered(const std::string& file, const ManifestLook& look, std::string why);
  static ManifestReading Unanswered(const std::string& file, std::string why);

  // Looks at what could not be read once more, later and later.
  void ArmRetry();
  void ArmSettle(std::optional<TimePoint> due);
  // What has changed, or a full list if that cannot be told.
  void Deliver();
  void DeliverChanges(ManifestChanges changes);
  void DeliverList();
  std::vector<DecodeProblem> OwnProblems() const;
  std::string IncompleteBecause(std::string judged) const;
  // Accepts what was asked for, once everything has been read. Adopts a directory that has all.
  void FinishListing();
  bool MayAdopt() const;
  void Adopt();
  void NoteChange(const Scanned& scanned);
  // Why what is there is not the known directory; "" if it is.
  std::string WhyOther() const;
  // What the other directories have to know of this one as a whole.
  std::optional<ManifestAbsentDirectory> Absence() const;
  ManifestMoment Moment() const;
  // The first of the files whose content is about to be known, with why.
  std::map<std::string, std::string> BusyFiles() const;
  uint64_t BeginScan(TimePoint at);
  void TellPeers();
  void OnPeersChanged();
  // Runs `work` on an executor thread and `done` with its value here, unless *this is gone then.
  template <typename Value>
  void Run(bool& busy, std::function<Value()> work, void (ManifestDirectory::*done)(Value));

  const std::string directory_;
  const std::string name_;
  const NodeName node_name_;
  ManifestWatches watches_;
  Scheduler& scheduler_;
  EventLoop& loop_;
  const ManifestSeams seams_;
  ObjectListener listener_;
  // Tasks that come back ask it whether *this is still there.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // Work.
  bool busy_ = false;        // one task at a time, so that readings are applied in order
  bool large_busy_ = false;  // the same for large files
  bool need_open_ = false;
  bool need_scan_ = false;
  std::set<std::string> dirty_;
  std::set<std::string> created_;              // to be read only if they are complete already
  std::set<std::string> reading_;              // under way
  std::map<std::string, ManifestLook> large_;  // to be read when their turn comes
  std::string large_file_;                     // of large_busy_
  ManifestLook large_look_;
  FarManifests far_;
  std::set<std::string> unreadable_;  // by a fault that no event tells the end of
  Backoff retry_backoff_;
  TimerId retry_timer_ = 0;
  std::set<std::string> writing_;   // somebody has them open and has written
  std::set<std::string> unlinked_;  // seen to go
  std::set<std::string> unread_;    // files whose names are no manifests'
  // Such names that have come (true) or gone since the last whole listing was begun.
  std::map<std::string, bool> unread_news_;

  // The directory.
  std::optional<KnownDirectory> known_;
  std::optional<KnownDirectory> now_;  // what is there now
  bool in_known_ = false;
  bool was_known_ = false;    // this agent has listed the known directory
  bool had_objects_ = false;  // when what is there came, objects were known that it can be known by
  // When it was last seen in order; as long as it is, the value means nothing.
  TimePoint in_order_until_{};
  bool in_order_ = false;
  std::optional<DirectoryInode> watched_;  // nullopt: it cannot be opened
  std::vector<std::string> places_;        // on the way, when it was last gone
  std::string directory_error_;
  Listing listing_ = Listing::kFound;  // what the next whole listing is
  bool overflowed_ = false;            // since the last whole listing was begun
  bool listed_ = false;                // the directory that is there has been listed
  std::string watch_error_;            // events cannot be taken at all

  std::shared_ptr<ManifestPeers> peers_;  // never null
  bool peers_changed_ = false;            // and what is absent is to be judged anew
  bool is_first_scan_ = true;             // what it finds was there before the agent was
  TimePoint started_at_{};

  bool complete_ = false;
  bool has_list_ = false;  // the listener has a complete list
  std::optional<std::set<ObjectKey>> accepting_;
  Duration settle_;
  TimerId settle_timer_ = 0;
  ManifestFiles files_;
};

template <typename Value>
void ManifestDirectory::Run(bool& busy, std::function<Value()> work,
                            void (ManifestDirectory::*done)(Value)) {
  busy = true;
  scheduler_.RunBlocking(
      [this, &busy, &scheduler = scheduler_, alive = alive_, work = std::move(work), done] {
        // shared_ptr because a posted task must be copyable and descriptors are not.
        auto value = std::make_shared<Value>(work());
        scheduler.Post([this, &busy, alive, value, done] {
          if (!*alive) return;
          busy = false;
          (this->*done)(std::move(*value));
          Work();
        });
      });
}

}  // namespace volumed
