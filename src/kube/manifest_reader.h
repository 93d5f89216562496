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

// True for "*.yaml", "*.yml" and "*.json" that do not begin with ".".
bool IsManifestName(std::string_view file);
// The limit for names of files that are not read although somebody may have meant them to be;
// further names are left out.
inline constexpr size_t kMaxUnreadNames = 1000;
// Whether a file of this name is not read, and does not look as if that was meant.
bool IsUnreadName(std::string_view file);

// A name in a directory.
struct PathPoint {
  OpenDirectory parent;
  std::string name;
};

// The way from a start to the object that a path names.
struct PathWalk {
  std::vector<PathPoint> links;   // the symbolic links on the way, in their order
  std::optional<PathPoint> last;  // what the path names, or the first name that is missing
  bool is_there = false;          // `last` is what the path names
};

// Follows `path` from `start` (or from the root, if the path is absolute). A loop of links ends the
// walk like a missing name. `last` is absent if a directory on the way cannot be looked at.
PathWalk WalkPath(const Descriptor& start, const std::string& path);

// A place on the way from a symbolic link to a manifest: if it changes, the manifest does.
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
  std::vector<std::string> large;  // left out because of their size
  std::vector<FarLink> far;        // left out because they lead to another filesystem
};

struct ScanOptions {
  NodeName node_name;  // completes pods without a uid
  // Larger files are left out.
  size_t max_bytes = kMaxManifestBytes;
};

// The content of a file on another filesystem.
struct FarContent {
  Status status = OkStatus();  // DeadlineExceeded or Unavailable: the filesystem does not answer
  std::string bytes;
  // The filesystem answers walks along the way to the file, and reports changes.
  bool may_watch = false;
};
// Reads the file at this path; blocks for a bounded time.
using FarReader = std::function<FarContent(const std::string& path)>;

// Like ReadManifests, for one file that it has left out because it leads to another filesystem.
ManifestScan ReadFarManifest(const std::string& directory, const Descriptor& fd,
                             const std::string& file, const NodeName& node_name,
                             const FarReader& read);

// Reads and decodes these files of an open directory; pods get their static identity.
ManifestScan ReadManifests(const std::string& directory, const Descriptor& fd,
                           const std::vector<std::string>& files, const ScanOptions& options);

// True if the name exists and is more than a plain file that somebody has just begun to write.
bool IsCompleteAtCreation(const Descriptor& fd, const std::string& file);

// The names of the manifests in the directory, sorted. `unread` gets the names of other files that
// are not hidden. Errors (not applied): errno's.
Result<std::vector<std::string>> ListManifests(const Descriptor& fd,
                                               std::vector<std::string>& unread);

}  // namespace volumed
