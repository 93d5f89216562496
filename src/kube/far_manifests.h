// FarManifests: reads manifests that are links to another filesystem than that of their directory.
// That filesystem may never answer (a dead mount), so each link is read on a thread of its own, and
// the agent waits for it only until a deadline. At most kMost threads read, and one for each link.
//
// A reading that hangs keeps its thread until it returns. If all threads are taken, the other links
// wait, and are read in the order of their names.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/scheduler.h"
#include "kube/directory_identity.h"
#include "kube/manifest_files.h"
#include "kube/manifest_reader.h"

namespace volumed {

// The deadline of the reader, if the owner sets no other.
inline constexpr Duration kFarManifestDeadline = std::chrono::seconds(2);

// What a reader found.
struct FarAnswer {
  bool moved = false;  // the path leads to another directory
  // Of the manifest directory in which the link was to be read.
  DirectoryInode inode;
  // Has one reading, unless `moved`.
  ManifestScan scan;
};

// Threads: the control thread. Blocks: never. REQUIRES: the scheduler outlives it. Its destruction
// does not wait for threads that read: their answers are dropped.
class FarManifests {
 public:
  // The limit for threads that read at the same time; those that hang are among them.
  static constexpr size_t kMost = 16;

  // All are called on the control thread; answered() and unanswered() never within Want().
  struct Hooks {
    // Returns the function that reads this file. It is called when a thread is free, also within
    // Want(); the function that it returns runs on any thread, may outlive this object, and blocks.
    std::function<std::function<FarAnswer()>(const std::string& file)> reader;
    // The file was read. `look` is the newest look that the answer serves.
    std::function<void(const std::string& file, ManifestLook look, FarAnswer answer)> answered;
    // The file has not been read in time; `why` is for people. An answer may still follow.
    std::function<void(const std::string& file, const ManifestLook& look, std::string why)>
        unanswered;
  };

  // A reader ends by itself after `deadline`, and is given up one second later: its own words about
  // why are better, and mostly come within that second.
  FarManifests(Scheduler& scheduler, Duration deadline, Hooks hooks);
  ~FarManifests();
  FarManifests(const FarManifests&) = delete;
  FarManifests& operator=(const FarManifests&) = delete;

  // Asks for the file to be read; answered() or unanswered() is called later. `target` is the text
  // of the link. If the file is just being read, it is read once more afterwards, unless that
  // reading hangs already: whatever it finds then is new enough. Returns the reason, for people, if
  // it is already known that no answer will come soon; answered() is called all the same if one
  // comes.
  std::optional<std::string> Want(const std::string& file, const std::string& target,
                                  const ManifestLook& look);
  // The file is no longer such a link: no answer about it is delivered. A thread that reads it goes
  // on.
  void Drop(const std::string& file);
  void DropAll();

  // The files whose answers are awaited, except those whose deadline has passed.
  std::set<std::string> Awaited() const;

 private:
  struct Wanted {
    std::string target;
    ManifestLook look;
    bool told = false;  // unanswered() was called
  };
  struct Read {
    std::string file;
    Wanted wanted;
    bool counts = true;                // the answer is still wanted
    std::optional<ManifestLook> anew;  // set: read the file once more afterwards
    TimerId deadline = 0;
  };

  bool AllHang() const;
  void StartNext();
  void Start(const std::string& file, Wanted wanted);
  void OnDeadline(uint64_t number);
  void OnAnswer(uint64_t number, FarAnswer answer);
  // If all threads hang, tells the files that wait for a thread that none is free.
  void TellWaiting();
  std::string DoesNotAnswer() const;

  Scheduler& scheduler_;
  const Duration given_up_after_;
  const Hooks hooks_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Read> reads_;         // each has a thread
  std::map<std::string, Wanted> waiting_;  // for a thread, by file
  AliveGuard alive_;
};

}  // namespace volumed
