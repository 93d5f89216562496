// ManifestPeers: what the manifest directories of an agent tell each other. An object that has left
// one directory may have moved into a file of another one; as long as that file is in disorder,
// nobody knows. Each directory says which of its files are so, and judges absence by what all say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace volumed {

// A file in disorder, which may have objects that nobody can see.
struct ManifestSuspect {
  std::string source;
  std::string path;
  std::string disorder;  // "is not right in all its parts"
  uint64_t touched = 0;  // the scan that first found this disorder
  friend bool operator==(const ManifestSuspect&, const ManifestSuspect&) = default;
};

// A directory that is not there, or is not the known one: what left another directory before
// anybody could see it come here may be here.
struct ManifestAbsentDirectory {
  std::string source;
  std::string path;
  std::string why;    // "the directory is another one than the known one"
  TimePoint since{};  // when it was last in order; when the agent started, if it was not since then
  friend bool operator==(const ManifestAbsentDirectory&, const ManifestAbsentDirectory&) = default;
};

// What one directory says, or all others together.
struct ManifestDoubts {
  std::optional<ManifestSuspect> suspect;  // the one that was touched last
  // Of one: itself. Of all others: the one that was in order last, which may have most.
  std::optional<ManifestAbsentDirectory> absent;
  // Path -> "is being written", "is being read": what it has now is about to be known.
  std::map<std::string, std::string> busy;
  friend bool operator==(const ManifestDoubts&, const ManifestDoubts&) = default;
};

// Threads: the control thread. Blocks: never. Errors: none.
class ManifestPeers {
 public:
  // What every directory finds in its first scan after a start was there before the agent was:
  // nothing has moved since the agent saw it. So all these scans have one number.
  static constexpr uint64_t kFirstScan = 1;

  // Greater than all before.
  uint64_t NextScan() { return ++last_scan_; }

  // `changed` is called when another directory says something new. It may not call back.
  void Join(const std::string& source, std::function<void()> changed);
  void Leave(const std::string& source);
  // REQUIRES: `source` has joined.
  void Tell(const std::string& source, ManifestDoubts doubts);
  ManifestDoubts DoubtsOfOthers(const std::string& source) const;

 private:
  struct Peer {
    std::function<void()> changed;
    ManifestDoubts doubts;
  };
  void TellOthers(const std::string& source) const;

  uint64_t last_scan_ = kFirstScan;
  std::map<std::string, Peer> peers_;
};

}  // namespace volumed
