// The part of a manifest directory that touches the disk.
// Threads: any. Blocks: every function here, on the filesystem.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/decode.h"
#include "kube/directory_identity.h"
#include "kube/manifest_files.h"

namespace volumed {

// "*.yaml", "*.yml" or "*.json", not beginning with ".".
bool IsManifestName(std::string_view file);
// Most names that are not read and that somebody may have meant to be: what is above is not told.
inline constexpr size_t kMaxUnreadNames = 1000;
// A file of this name lies there for nothing, and does not look as if that was meant.
bool IsUnreadName(std::string_view file);

// A name in a directory.
struct PathPoint {
  OpenDirectory parent;
  std::string name;
};

// The way to what a path names.
struct PathWalk {
  std::vector<PathPoint> links;   // every symbolic link on it, in this order
  std::optional<PathPoint> last;  // what is named, or the first name on the way that is not there
  bool is_there = false;          // `last` is what is named
};

// Follows `path` from `start` (or from the root, if the path is absolute). A loop of links ends the
// walk as a missing name does; `last` is absent if a directory on the way cannot be looked at.
PathWalk WalkPath(const Descriptor& start, const std::string& path);

// Something on the way from a symbolic link to a manifest: if it changes, the manifest does.
struct LinkTarget {
  std::string file;  // the link's name in the manifest directory
  PathPoint point;
};

struct FarLink {
  std::string file;
  std::string target;  // the link's text
};

struct ManifestScan {
  std::vector<ManifestReading> readings;
  std::vector<LinkTarget> targets;
  std::vector<std::string> large;  // files that were left out, for their size
  std::vector<FarLink> far;        // files that were left out, for they lead elsewhere
};

struct ScanOptions {
  NodeName node_name;  // completes pods without a uid
  // Larger files are left out.
  size_t max_bytes = kMaxManifestBytes;
};

// What a file leads to on another filesystem.
struct FarContent {
  Status status = OkStatus();  // DeadlineExceeded or Unavailable: what it leads to does not answer
  std::string bytes;
  // Whoever looks along the way there finds a filesystem that answers, and that tells of changes.
  bool may_watch = false;
};
// Of the file at this path; blocks for a bounded time.
using FarReader = std::function<FarContent(const std::string& path)>;

// As ReadManifests, for one file that it has left out because it leads elsewhere.
ManifestScan ReadFarManifest(const std::string& directory, const Descriptor& fd,
                             const std::string& file, const NodeName& node_name,
                             const FarReader& read);

// Reads and decodes these files of an open directory; pods get their static identity.
ManifestScan ReadManifests(const std::string& directory, const Descriptor& fd,
                           const std::vector<std::string>& files, const ScanOptions& options);

// True if the name is there and is more than a plain file that somebody has just begun to write.
bool IsCompleteAtCreation(const Descriptor& fd, const std::string& file);

// Names of the manifests in the directory, sorted; `unread` gets those of files that are none, and
// are not hidden. Errors (not applied): errno's.
Result<std::vector<std::string>> ListManifests(const Descriptor& fd,
                                               std::vector<std::string>& unread);

}  // namespace volumed
