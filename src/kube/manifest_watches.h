// ManifestWatches: the inotify watches of a manifest directory, and what their events mean for it.
//
// Watched are: the directory; each symbolic link on the way to it; the directory above it, but only
// for being moved or removed itself, so that other files there cause no events; and, for a manifest
// that is a link, every directory in which a change of a name would change what the link leads to.
// Only while the directory is missing, the nearest existing directory above it is watched for new
// entries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/inotify.h"
#include "base/result.h"
#include "kube/manifest_reader.h"

namespace volumed {

// What an inotify event means for the manifest directory.
struct ManifestEvent {
  enum class What {
    kOverflow,  // events were lost
    kWay,       // the path may lead to another directory now
    kEntry,     // an entry of the directory; `mask` and `name` are inotify's
    kTarget,    // what the link `name` in the directory leads to has changed
  };
  What what = What::kWay;
  // inotify's mask with kEntry and kTarget. With kWay it is 0, unless the directory itself is
  // concerned.
  uint32_t mask = 0;
  // With kEntry the name in the directory; with kTarget that of the manifest, not of its target.
  std::string name;
};

// Threads: one. Blocks: no. Errors: error() says, for people, which watch could not be added. If a
// watch could not be added, what it would have seen goes unseen.
class ManifestWatches {
 public:
  // Errors (not applied): ResourceExhausted if no inotify instance is left.
  static Result<ManifestWatches> Create();

  // Readable when Read() has something; it stays this object's.
  int fd() const { return inotify_.fd(); }
  // Returns all events that are there now, in their order. If they cannot be read, that is a
  // kOverflow.
  std::vector<ManifestEvent> Read();

  // Watches the directory, if it exists, and the way to it, and ends the watches of any earlier
  // way. True if something may have changed between the look and the watch: the caller has to look
  // at the path once more.
  bool SetWay(const std::optional<OpenDirectory>& directory, const PathWalk& way);
  // Replaces the watches for these manifests, by their names in the directory; those for other
  // manifests stay. Returns the files whose targets may have changed between the look and the
  // watch.
  std::set<std::string> SetTargets(const std::vector<std::string>& files,
                                   const std::vector<LinkTarget>& targets);
  // "" if every watch could be added, and every event be read, since the last SetWay().
  const std::string& error() const { return error_; }

 private:
  // What a watch is for. An inode has one watch, which may serve several purposes.
  struct Watch {
    uint32_t mask = 0;
    bool directory = false;  // the manifest directory itself
    bool way = false;        // on the way to it
    std::string child;       // the name that is awaited in this directory
    // Names in this directory -> the manifests whose links lead through them.
    std::map<std::string, std::set<std::string>> files;
    bool used() const { return directory || way || !files.empty(); }
  };
  // kLink: the link itself is watched, and not what it leads to.
  enum class Of { kDirectory, kLink };

  explicit ManifestWatches(Inotify inotify) : inotify_(std::move(inotify)) {}

  void Translate(const InotifyEvent& event, std::vector<ManifestEvent>& events);
  struct Added {
    int wd = -1;
    Watch* watch = nullptr;  // null: the watch could not be added
    bool is_new = false;
  };
  // Adds `mask` to the watch of the path, and makes the watch if there is none.
  Added Add(const std::string& path, uint32_t mask, Of of);
  void Narrow(const std::string& path, uint32_t mask);
  bool WatchAbove(const PathPoint& last, bool is_there);
  void DropUnused(int wd);

  Inotify inotify_;
  std::map<int, Watch> watches_;
  std::map<std::string, std::set<std::pair<int, std::string>>> targets_of_;  // by manifest
  std::string error_;
};

}  // namespace volumed
