// ManifestDirectory: reads pods and the objects that they use from files in a directory, like
// kubelet's static pods. It is driven by inotify alone and polls nothing.
//
//  - A file is read when its writer has closed it, or when it was renamed into place or linked.
//    While it is being written (IN_MODIFY without IN_CLOSE_WRITE so far), its last good objects
//    count.
//  - kube/manifest_files.h decides when an absent object goes; this class says what was seen of it.
//    An unlink or rename that inotify reported is evidence in the known directory. Absence proves
//    nothing after an overflow, in another directory, or if the known directory is found empty.
//  - The known directory is named by the agent that ran before, by the administrator's word, or by
//    a first start. Another directory becomes the known one as soon as it has every known object. A
//    directory that is found again (at a start, or when it is back in its place) is judged by its
//    content: nobody saw what happened in between, so what is missing counts as removed.
//  - Symbolic links are followed and watched step by step. If a "..data" link moves (a mounted
//    ConfigMap), all files are read again.
//  - Large files are read and decoded one at a time beside the others, and delay none of them.
//  - A link to another filesystem is read beside the others, too (kube/far_manifests.h). As long as
//    that filesystem does not answer, the file is in disorder.
//  - No descriptor of the directory is kept open: the directory can be unmounted and removed at any
//    time.
//  - inotify does not report mounts. The owner of this object does (MountsChanged), and the path is
//    then opened again.
//  - Two kinds of changes are never reported: those that another node makes on a network
//    filesystem, and writes through mmap. Before an object goes, the path is opened again, so that
//    such a change takes no object away.
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

#include "base/alive_guard.h"
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

// The parts of the work that others do for the directory.
struct ManifestSeams {
  // Required. Reads what lies outside the directory's filesystem, for `far_deadline` at most;
  // called on any thread.
  FarReader read_far;
  Duration far_deadline = kFarManifestDeadline;
  // Says what the directory is recognised by.
  using Identify = std::function<Result<KnownDirectory>(const Descriptor&)>;
  // Identifies the directory once it is open; called on a thread that may wait.
  Identify identify = IdentifyDirectory;
  // Shared by all directories of an agent; null if there is only this one.
  std::shared_ptr<ManifestPeers> peers = nullptr;
  // Asked on a thread that may wait, before each opening of the path. An error says that the
  // directory does not answer; it is then left alone for a while. Without this function the
  // directory is taken to answer.
  std::function<Status(const std::string& directory)> answers = {};
};

// Threads: the control thread. Scheduler::RunBlocking reads the files. REQUIRES: scheduler and loop
// outlive this object, and `loop` is the scheduler's own.
//
// Everything goes in one circle. Events, timers and calls note what has to be done (need_open_,
// need_scan_, dirty_), and Work() starts one piece of it on a thread that may wait: an opening of
// the path, a scan of the whole directory, or one of the files that have changed. What that has
// read comes back to the control thread, where the events that came meanwhile are looked at first;
// then it is applied to `files_`, and what has changed is delivered. A destruction does not wait
// for the piece that is under way: its result is dropped.
class ManifestDirectory final : public ObjectSource {
 public:
  // `directory` is absolute; `node_name` completes pods without a uid. `settle` is how long an
  // absence must last before the object goes. Nothing is read before Start().
  // Errors (not applied): ResourceExhausted if no inotify instance is left.
  static Result<std::unique_ptr<ManifestDirectory>> Create(std::string directory,
                                                           NodeName node_name, Scheduler& scheduler,
                                                           EventLoop& loop, Duration settle,
                                                           ManifestSeams seams);
  ~ManifestDirectory() override;
  ManifestDirectory(const ManifestDirectory&) = delete;
  ManifestDirectory& operator=(const ManifestDirectory&) = delete;

  // "manifests:<directory>".
  const std::string& name() const override { return name_; }
  // If anything is on record, the first list is complete even if the directory cannot be read: it
  // has what is on record.
  void Remember(SourceMemory memory) override;
  // If the directory's events cannot be watched, that is a problem in every list, and changes are
  // found only when the path is opened again.
  void Start(ObjectListener listener) override;
  // Takes effect once the path was opened and everything was read; only objects that are absent at
  // the time of the call go. The directory that is there is the known one from then on.
  void Accept() override;

  // Mounts came or went at these places. If the path leads through one of them, it is opened again.
  void MountsChanged(const std::vector<std::string>& mount_points) override;

  // Holds for objects that are absent already, too.
  void SetSettle(Duration settle) override;

  // Files of the directory that are not read because of their names, as of the last look: names
  // without the path, and not more than twice kMaxUnreadNames. They change without a list being
  // delivered.
  std::set<std::string> UnreadFiles() const override { return unread_; }

  // Readable when an event waits.
  int event_fd() const { return watches_.fd(); }

 private:
  // What an opening of the path found. It is made on a thread that may wait.
  struct Opened {
    std::optional<OpenDirectory> directory;
    std::optional<KnownDirectory> identity;
    std::string error;        // why there is no directory
    bool is_missing = false;  // if so, an event will tell when it comes
    PathWalk way;
    std::vector<std::string> places;  // on the way; empty: nobody has walked the way
  };
  // What one scan has read: the whole directory, or the files of which events told.
  struct Scanned {
    DirectoryInode inode;
    bool moved = false;  // the path leads to another directory
    bool whole = false;  // the whole directory was listed
    TimePoint at;
    // Why the directory could not be listed.
    std::string error;
    std::optional<int64_t> changed_unix_nanos;  // of the directory, before the listing
    std::vector<std::string> present;
    std::vector<std::string> unread;
    std::vector<std::string> begun;  // created, but not yet closed by their writer
    std::set<std::string> by_event;
    ManifestScan scan;
  };
  static constexpr char kEventsLost[] =
      "events of the directory were lost (fs.inotify.max_queued_events)";

  // Why a whole listing is made; this decides what an absence in it proves.
  enum class Listing {
    kRefresh,   // the watched directory: events have reported removals
    kFound,     // a directory that has come
    kOverflow,  // after events were lost
  };

  ManifestDirectory(std::string directory, NodeName node_name, ManifestWatches watches,
                    Scheduler& scheduler, EventLoop& loop, Duration settle, ManifestSeams seams);

  void OnInotifyReadable();
  void DrainEvents();
  void OnEntryEvent(const ManifestEvent& event);
  void OnTargetEvent(const ManifestEvent& event);
  void NoteUnread(const ManifestEvent& event);
  // Takes the names of a whole listing, except those about which a newer event has come meanwhile.
  void TakeUnread(const std::vector<std::string>& listed);

  // Starts the next piece of work, if there is one and no other is under way.
  void Work();
  void StartOpen();
  // Runs on a thread that may wait.
  static Opened Open(const std::string& directory, const ManifestSeams::Identify& identify);
  void OnOpened(Opened opened);
  // Takes the directory that is there now. If it is not the one that is watched, that one is lost,
  // and the new one is compared with the known one.
  void TakeDirectory(const Opened& opened);
  // Forgets the directory that was watched, and what was noted about it; `files_` stays as it is.
  void LoseDirectory();
  void StartScan(bool whole);
  // What a scan is to read. It is a copy, since the scan runs on another thread.
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
  // Runs on a thread that may wait. It opens the path anew, and reads nothing if the path leads to
  // another directory than the one that was asked for.
  static Scanned Scan(ScanRequest request);
  void OnScanned(Scanned scanned);
  void ApplyScan(Scanned& scanned);
  void ApplyListing(const Scanned& scanned, uint64_t number);
  // Why an absence proves nothing in the present directory; "" if it is the known one.
  std::string WhyUnproven() const;
  std::string ListingUnproven(bool is_empty) const;
  // Applies what was read of one file, unless its writer is still at it: then another reading
  // follows.
  void ApplyReading(ManifestReading reading, ManifestLook look);
  // Whether the file may have a PersistentVolume that could not be decoded.
  static bool MayHideVolume(const ManifestReading& reading);
  // Notes whether the content of the file is known, for `seen_`.
  void NoteRead(const ManifestReading& reading, bool is_written);
  // Reads the first of the large files, beside the other work.
  void StartLarge();
  void OnLargeRead(Scanned scanned);
  // What FarManifests calls for the files that lie on other filesystems.
  FarManifests::Hooks FarHooks();
  void OnFarRead(const std::string& file, ManifestLook look, FarAnswer answer);
  void OnFarUnanswered(const std::string& file, const ManifestLook& look, std::string why);
  static ManifestReading Unanswered(const std::string& file, std::string why);

  // Looks again, with growing delays, at what could not be read.
  void ArmRetry();
  void ArmSettle(std::optional<TimePoint> due);
  // Delivers what has changed, or a full list if the changes are not known.
  void Deliver();
  void DeliverChanges(ManifestChanges changes);
  void DeliverList();
  std::vector<DecodeProblem> OwnProblems() const;
  // As in ObjectList; `judged` is what the files say.
  std::string IncompleteBecause(const std::string& judged) const;
  std::string UnseenBecause() const;  // as in ObjectList
  // Carries out an Accept() once everything has been read, and adopts a directory that has all
  // known objects.
  void FinishListing();
  // Whether the present directory may become the known one because it has every known object.
  // REQUIRES: it has.
  bool MayAdopt() const;
  // The present directory is the known one from now on.
  void Adopt();
  // Remembers when the directory's entries changed last, by which an older state of it is
  // recognised.
  void NoteChange(const Scanned& scanned);
  // Whether the present directory, of which nothing is known, may be the place where the one was
  // mounted that this agent could not open.
  bool MayBeMountPoint() const;
  // Why the present directory is not the known one; "" if it is.
  std::string WhyOther() const;
  // What the other directories have to know about this directory as a whole.
  std::optional<ManifestAbsentDirectory> Absence() const;
  ManifestMoment Moment() const;
  // The first of the files whose content is not known yet, with the reason.
  std::map<std::string, std::string> BusyFiles() const;
  uint64_t BeginScan(TimePoint at);
  void TellPeers();
  void OnPeersChanged();
  // Runs `work` on an executor thread, and then `done` with its value on the control thread, unless
  // *this is destroyed by then.
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

  // The state of the work.
  bool busy_ = false;        // one task at a time, so that readings are applied in order
  bool large_busy_ = false;  // the same for large files
  bool need_open_ = false;
  bool need_scan_ = false;
  std::set<std::string> dirty_;
  std::set<std::string> created_;              // to be read only if they are complete already
  std::set<std::string> reading_;              // being read now
  std::map<std::string, ManifestLook> large_;  // to be read in their turn
  std::string large_file_;                     // the file that large_busy_ is about
  ManifestLook large_look_;
  FarManifests far_;
  std::set<std::string> unreadable_;  // because of a fault whose end no event reports
  Backoff retry_backoff_;
  TimerId retry_timer_ = 0;
  std::set<std::string> writing_;   // open in a writer that has written
  std::set<std::string> unlinked_;  // events said that they went
  std::set<std::string> unread_;    // files that are not manifests by their names
  // Such names that have come (true) or gone (false) since the last whole listing began.
  std::map<std::string, bool> unread_news_;

  // The state of the directory.
  std::optional<KnownDirectory> known_;
  std::optional<KnownDirectory> now_;  // the directory that is there now
  bool in_known_ = false;
  bool was_known_ = false;   // this agent has listed the known directory
  bool was_closed_ = false;  // this agent found a directory that it could not open
  bool is_empty_ = false;    // the present directory has no manifest
  // Whether objects were known, by which the present directory can be recognised, when it came.
  bool had_objects_ = false;
  // When the directory was last in order; without meaning while it is in order.
  TimePoint in_order_until_{};
  bool in_order_ = false;
  std::optional<DirectoryInode> watched_;  // nullopt: the directory cannot be opened
  std::vector<std::string> places_;        // on the way, when it was last walked
  std::string directory_error_;
  Listing listing_ = Listing::kFound;  // why the next whole listing is made
  bool overflowed_ = false;            // events were lost since the last whole listing began
  bool listed_ = false;                // the present directory has been listed
  std::string watch_error_;            // why events cannot be taken at all

  std::shared_ptr<ManifestPeers> peers_;  // never null
  bool peers_changed_ = false;            // the absent objects have to be judged again
  bool is_first_scan_ = true;             // it finds what was there before the agent
  TimePoint started_at_{};

  bool complete_ = false;
  // This agent has read all that it found in the known directory, or in one that it was told to
  // accept.
  bool seen_ = false;
  // Until then: the files that are there, and whose content is not known, with the reason.
  std::map<std::string, std::string> not_read_;
  bool has_list_ = false;  // the listener has a complete list
  std::optional<std::set<ObjectKey>> accepting_;
  Duration settle_;
  TimerId settle_timer_ = 0;
  ManifestFiles files_;
  AliveGuard alive_;
};

template <typename Value>
void ManifestDirectory::Run(bool& busy, std::function<Value()> work,
                            void (ManifestDirectory::*done)(Value)) {
  busy = true;
  scheduler_.RunBlocking(
      [this, &busy, &scheduler = scheduler_, watch = alive_.watch(), work = std::move(work), done] {
        // shared_ptr because a posted task must be copyable and descriptors are not.
        auto value = std::make_shared<Value>(work());
        scheduler.Post([this, &busy, watch, value, done] {
          if (!watch.alive()) return;
          busy = false;
          (this->*done)(std::move(*value));
          Work();
        });
      });
}

}  // namespace volumed
