// ManifestDirectory: pods and the objects they use from files in a directory, as kubelet's static
// pods. Driven by inotify alone; nothing polls.
//
//  - A file is read when its writer has closed it, when it was renamed into place or linked. While
//    somebody writes it (IN_MODIFY without IN_CLOSE_WRITE so far) its last good objects count.
//  - What a bad, empty, unreadable or absent file means: kube/manifest_files.h.
//  - A file that goes has gone only when it is not back after kManifestSettle: editors save by
//    renaming or unlinking the old file and writing a new one of its name. That is a change.
//  - A directory that vanishes or cannot be read keeps its last list and says so; the nearest
//    directory above is watched until it is back.
//  - Symbolic links are followed and their targets' directories watched; a "..data" link that
//    moves (a mounted config map) reads everything again.
//  - What inotify cannot tell: changes on a network filesystem by another node, writes through
//    mmap, a filesystem mounted over the directory later.
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

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/ids.h"
#include "base/inotify.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "kube/manifest_files.h"
#include "kube/manifest_reader.h"
#include "kube/object_source.h"

namespace volumed {

// How long a manifest may be away before its objects are deleted. An editor's save takes
// milliseconds, a configuration tool's less than this; a deletion by hand can wait for it.
inline constexpr Duration kManifestSettle = std::chrono::seconds(1);

// Threads: control thread. Files are read by Scheduler::RunBlocking. REQUIRES: scheduler and loop
// outlive it, and `loop` is the scheduler's own.
class ManifestDirectory final : public ObjectSource {
 public:
  // `directory` is absolute; `node_name` completes pods without a uid.
  // Errors (not applied): ResourceExhausted without inotify instances.
  static Result<std::unique_ptr<ManifestDirectory>> Create(std::string directory,
                                                           NodeName node_name, Scheduler& scheduler,
                                                           EventLoop& loop,
                                                           Duration settle = kManifestSettle);
  ~ManifestDirectory() override;
  ManifestDirectory(const ManifestDirectory&) = delete;
  ManifestDirectory& operator=(const ManifestDirectory&) = delete;

  // "manifests:<directory>".
  const std::string& name() const override { return name_; }
  void Remember(SourceMemory memory) override;
  void Start(ObjectListener listener) override;
  void Accept() override;
  void Forget() override;

 private:
  // What a watch is for. One inode has one watch, which may serve several ends.
  struct Watch {
    bool directory = false;              // the manifest directory itself
    bool above = false;                  // a directory on the way to it
    std::set<std::string> target_names;  // files here that links lead to
  };
  struct Opened {
    std::optional<OpenDirectory> directory;
    std::string error;  // why there is no directory
    std::optional<NearestParent> above;
  };
  struct Scanned {
    std::shared_ptr<OpenDirectory> directory;
    bool whole = false;  // listed, not only these files read
    std::string error;
    std::vector<std::string> present;
    ManifestScan scan;
  };

  ManifestDirectory(std::string directory, NodeName node_name, Inotify inotify,
                    Scheduler& scheduler, EventLoop& loop, Duration settle);

  void OnInotifyReadable();
  void DrainEvents();
  void OnEvent(const InotifyEvent& event);
  void OnManifestEvent(const InotifyEvent& event);
  void OnTargetEvent(const Watch& watch, const InotifyEvent& event);

  // Starts the next piece of work, if there is one and none is under way.
  void Work();
  void StartOpen();
  void OnOpened(Opened opened);
  void StartScan(bool whole);
  void OnScanned(Scanned scanned);
  void ApplyScan(Scanned& scanned);
  void ApplyListing(const Scanned& scanned);
  void ApplyReading(ManifestReading reading);

  // The file is not there: it goes when it was away long enough, and else is given time.
  void Gone(const std::string& file);
  // The name is there again.
  void Back(const std::string& file);
  void ArmSettle();
  void OnSettled();
  void DropLasting();

  // Adds the watch of an open directory. The bool tells whether it is new. No path is looked up.
  std::optional<std::pair<int, bool>> AddWatch(const OpenDirectory& directory);
  void WatchTargets(const std::vector<LinkTarget>& targets);
  void Deliver();
  // Runs `work` on an executor thread and `done` with its value here, unless *this is gone then.
  template <typename Value>
  void Run(std::function<Value()> work, void (ManifestDirectory::*done)(Value));

  const std::string directory_;
  const std::string name_;
  const NodeName node_name_;
  Inotify inotify_;
  Scheduler& scheduler_;
  EventLoop& loop_;
  ObjectListener listener_;
  // Tasks that come back ask it whether *this is still there.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  bool busy_ = false;  // one task at a time, so that readings are applied in order
  bool need_open_ = false;
  bool need_scan_ = false;
  std::set<std::string> dirty_;
  std::set<std::string> created_;   // to be read only if they are complete already
  std::set<std::string> writing_;   // somebody has them open and has written
  std::set<std::string> unlinked_;  // seen to go; counts even if the directory goes next

  const Duration settle_;
  std::map<std::string, TimePoint> vanished_;  // files that may be back by then
  std::set<std::string> lasting_;              // that were away for so long; looked at once more
  TimerId settle_timer_ = 0;

  bool complete_ = false;
  std::string directory_error_;  // "" while the directory is watched
  std::shared_ptr<OpenDirectory> open_;
  std::optional<DirectoryIdentity> listed_;  // the directory of the last whole listing
  std::map<int, Watch> watches_;
  std::string child_of_above_;  // the only name of interest in the directory above
  std::map<std::string, std::set<std::string>> links_to_;  // target's name -> manifests
  std::string watch_error_;  // a watch that could not be added; changes may go unseen
  ManifestFiles files_;
  SourceMemory memory_;
};

}  // namespace volumed
