// FarManifests: manifests that are links out of the filesystem of their directory. What they lead
// to may hang for ever (a dead mount), so each is read on a thread of its own, which nobody waits
// for longer than a deadline. There are kMost of them at most, and one for each link.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/scheduler.h"
#include "kube/directory_identity.h"
#include "kube/manifest_files.h"
#include "kube/manifest_reader.h"

namespace volumed {

// Of whoever reads; it is given up a second later.
inline constexpr Duration kFarManifestDeadline = std::chrono::seconds(2);

struct FarAnswer {
  bool moved = false;  // the path leads to another directory
  DirectoryInode inode;
  ManifestScan scan;
};

// Threads: the control thread. Blocks: never. REQUIRES: the scheduler outlives it.
class FarManifests {
 public:
  static constexpr size_t kMost = 16;

  struct Hooks {
    // What reads this file, on any thread.
    std::function<std::function<FarAnswer()>(const std::string& file)> reader;
    std::function<void(const std::string& file, ManifestLook look, FarAnswer answer)> answered;
    // It has not answered so far: why, for people. An answer may follow.
    std::function<void(const std::string& file, const ManifestLook& look, std::string why)>
        unanswered;
  };

  FarManifests(Scheduler& scheduler, Hooks hooks);
  ~FarManifests();
  FarManifests(const FarManifests&) = delete;
  FarManifests& operator=(const FarManifests&) = delete;

  // The file is to be read; answered() or unanswered() follows. `target`: the text of its link. If
  // it is known already that there will be no answer soon, the answer is why.
  std::optional<std::string> Want(const std::string& file, const std::string& target,
                                  const ManifestLook& look);
  // The file is no such link any more: no answer about it is to come.
  void Drop(const std::string& file);
  void DropAll();

  // Files whose answer is waited for; none whose deadline has passed.
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
    bool counts = true;                // its answer is wanted
    std::optional<ManifestLook> anew;  // it is to be read once more after that
    TimerId deadline = 0;
  };

  bool AllHang() const;
  void StartNext();
  void Start(const std::string& file, Wanted wanted);
  void OnDeadline(uint64_t number);
  void OnAnswer(uint64_t number, FarAnswer answer);
  // Whoever waits for a thread is told that none is to be had, if all hang.
  void TellWaiting();

  Scheduler& scheduler_;
  const Hooks hooks_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  uint64_t last_number_ = 0;
  std::map<uint64_t, Read> reads_;         // each has a thread
  std::map<std::string, Wanted> waiting_;  // for a thread, by file
};

}  // namespace volumed
