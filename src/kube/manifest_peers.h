// ManifestPeers: what the manifest directories of an agent tell each other. An object that has left
// one directory may have moved into a file of another directory; as long as that file is in
// disorder, nobody can see whether it has. So each directory names its files in disorder, and
// judges absence by what all directories say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace volumed {

// A file in disorder, which may have objects that cannot be seen.
struct ManifestSuspect {
  std::string source;
  // The printable path, for people.
  std::string path;
  std::string disorder;  // "is not right in all its parts"
  uint64_t touched = 0;  // the scan that first found this disorder
  friend bool operator==(const ManifestSuspect&, const ManifestSuspect&) = default;
};

// A directory that is missing or is not the known one. It may have objects that left another
// directory and came here before they could be seen.
struct ManifestAbsentDirectory {
  std::string source;
  std::string path;
  std::string why;  // "the directory is another one than the known one"
  // When the directory was last in order; if it has not been, when the agent started.
  TimePoint since{};
  friend bool operator==(const ManifestAbsentDirectory&, const ManifestAbsentDirectory&) = default;
};

// The doubts of one directory, or of all others together.
struct ManifestDoubts {
  std::optional<ManifestSuspect> suspect;  // the one that was touched last
  // Of one directory: itself. Of all others: the one that was in order most recently, which may
  // have most.
  std::optional<ManifestAbsentDirectory> absent;
  // Path -> "is being written" or "is being read": its present content is not known yet.
  std::map<std::string, std::string> busy;
  friend bool operator==(const ManifestDoubts&, const ManifestDoubts&) = default;
};

// Threads: the control thread. Blocks: never. Errors: none. All directories of an agent share one;
// it lives as long as the last of them.
class ManifestPeers {
 public:
  // What a directory finds in its first scan after a start was there before the agent: the agent
  // has not seen it move. So the first scans of all directories have the same number.
  static constexpr uint64_t kFirstScan = 1;

  // Returns a number greater than all before.
  uint64_t NextScan() { return ++last_scan_; }

  // `changed` is called when another directory's doubts have changed. REQUIRES: it does not call
  // this object. `source` is the name of the directory's ObjectSource.
  void Join(const std::string& source, std::function<void()> changed);
  // What the directory has told counts no longer.
  void Leave(const std::string& source);
  // REQUIRES: `source` has joined. Replaces all that it told before. If nothing is different,
  // nobody is called.
  void Tell(const std::string& source, ManifestDoubts doubts);
  // Returns the doubts of all directories but this one, as they stand now.
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
