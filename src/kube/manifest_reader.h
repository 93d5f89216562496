// The part of a manifest directory that touches the disk.
// Threads: any. Blocks: every function here, on the filesystem.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/manifest_files.h"

namespace volumed {

// "*.yaml", "*.yml" or "*.json", not beginning with ".".
bool IsManifestName(std::string_view file);

// A directory as an inode: a path may lead to another one tomorrow.
struct DirectoryIdentity {
  unsigned long device = 0;
  unsigned long inode = 0;
  friend bool operator==(const DirectoryIdentity&, const DirectoryIdentity&) = default;
};

struct OpenDirectory {
  Descriptor fd;
  DirectoryIdentity identity;
};

// Errors (not applied): errno's, as NotFound.
Result<OpenDirectory> OpenDirectoryAt(const std::string& path);

struct NearestParent {
  OpenDirectory directory;
  std::string child;  // the path's next element below it
};

// The nearest directory above `path` that can be opened; "/" in the worst case.
Result<NearestParent> OpenNearestParent(const std::string& path);

// Where a symbolic link to a manifest leads; changes there change the manifest.
struct LinkTarget {
  std::string file;      // the link's name in the manifest directory
  OpenDirectory parent;  // of the target
  std::string name;      // of the target in its directory
};

struct ManifestScan {
  std::vector<ManifestReading> readings;
  std::vector<LinkTarget> targets;
};

// Reads and decodes these files of an open directory; pods get their static identity.
ManifestScan ReadManifests(const std::string& directory, const Descriptor& fd,
                           const std::vector<std::string>& files, const NodeName& node_name);

// True if the name is there and is more than a plain file that somebody has just begun to write.
bool IsCompleteAtCreation(const Descriptor& fd, const std::string& file);

// Names of the manifests in the directory, sorted. Errors (not applied): errno's.
Result<std::vector<std::string>> ListManifests(const Descriptor& fd);

}  // namespace volumed
