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

// True for "*.yaml", "*.yml" and "*.json" that do not begin with ".". Other files are never opened.
bool IsManifestName(std::string_view file);
// The limit for names of files that are not read although somebody may have meant them to be;
// further names are left out.
inline constexpr size_t kMaxUnreadNames = 1000;
// True for a name without a "." at the front that is no manifest's. A name that begins with "."
// looks as if nobody meant it to be read.
bool IsUnreadName(std::string_view file);

// A name in a directory. The directory is open, so that a watch is of the very inode that was
// looked at.
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

// Follows `path` from `start`, or from the root if the path is absolute; `start` may then be
// invalid. More than 40 links end the walk like a missing name, and so does a name in the middle
// that is no directory. `last` is absent if a directory on the way cannot be looked at, or if the
// path has no name in it, as "/".
// Errors: none; the walk ends where it cannot go on.
PathWalk WalkPath(const Descriptor& start, const std::string& path);

// A place on the way from a symbolic link to a manifest: if it changes, the manifest does.
struct LinkTarget {
  std::string file;  // the link's name in the manifest directory
  PathPoint point;
};

// A manifest that is a link to another filesystem.
struct FarLink {
  std::string file;
  std::string target;  // the link's text
};

// What the reading of some files of a directory found. Each file is in exactly one of `readings`,
// `large` and `far`.
struct ManifestScan {
  std::vector<ManifestReading> readings;
  std::vector<LinkTarget> targets;
  std::vector<std::string> large;  // left out because of their size
  std::vector<FarLink> far;        // left out because they lead to another filesystem
};

struct ScanOptions {
  NodeName node_name;  // completes pods without a uid
  // Larger files are left out, and named in `large`. A file that is larger than kMaxManifestBytes
  // is read as kUnreadable.
  size_t max_bytes = kMaxManifestBytes;
};

// The content of a file on another filesystem.
struct FarContent {
  // DeadlineExceeded or Unavailable says that the filesystem does not answer; any other error, that
  // the file cannot be read.
  Status status = OkStatus();  // DeadlineExceeded or Unavailable: the filesystem does not answer
  std::string bytes;
  // The filesystem answers walks along the way to the file, and reports changes: the places on the
  // way may be watched, and asked whether somebody writes the file.
  bool may_watch = false;
};
// Reads the file at this absolute path, whatever filesystem it is on; blocks for a bounded time.
// Threads: any.
using FarReader = std::function<FarContent(const std::string& path)>;

// Like ReadManifests, for one file that it has left out because it leads to another filesystem. The
// result has one reading, which is to be tried again if the file could not be read. `directory` is
// the path by which `read` finds the file.
ManifestScan ReadFarManifest(const std::string& directory, const Descriptor& fd,
                             const std::string& file, const NodeName& node_name,
                             const FarReader& read);

// Reads and decodes these files, names in the open directory `fd`, whose path `directory` is used
// for messages only. Pods get their static identity (kube/static_pod.h), and all objects lose what
// only a server sets (kube/prepare_for_create.h), but for a creationTimestamp. A file that somebody
// has open for writing, or that changed while it was read, is kChanging.
// Errors: none; they are in each reading.
ManifestScan ReadManifests(const std::string& directory, const Descriptor& fd,
                           const std::vector<std::string>& files, const ScanOptions& options);

// True if the name exists and is more than a plain file that somebody has just begun to write: a
// link, or a file that has another name too.
bool IsCompleteAtCreation(const Descriptor& fd, const std::string& file);

// Returns the names of the manifests in the directory, sorted. The names of other files that are
// not hidden are appended to `unread`, until it has kMaxUnreadNames; directories are left out if
// the filesystem tells types. Errors (not applied): errno's.
Result<std::vector<std::string>> ListManifests(const Descriptor& fd,
                                               std::vector<std::string>& unread);

}  // namespace volumed
