// DriverDirectory: the drivers that are installed below a directory, as
// <directory>/<vendor~driver>/<driver>, and what becomes of them. It is told of changes by inotify
// and looks only at what changed. Source: kubernetes pkg/volume/flexvolume/probe.go@v1.36.2.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/inotify.h"
#include "base/result.h"

namespace volumed {

// What has become of one driver since the last call.
struct DriverChange {
  std::string plugin_name;  // "vendor/driver"
  std::string executable;   // its absolute path
  bool installed = false;   // false: it is not there, or not any more
};

// Where the executable of "vendor/driver" belongs. Threads: any. Blocks: never.
std::string DriverExecutable(const std::string& directory, const std::string& plugin_name);

// A driver is there as long as its executable is, and may be executed. One whose executable is
// written, replaced or made executable is a change. Names that begin with '.' are ignored, so that
// an installer can write beside and rename.
//
// Threads: one call at a time. Blocks: for look-ups in the directory, which is an administrator's.
class DriverDirectory {
 public:
  explicit DriverDirectory(std::string directory) : directory_(std::move(directory)) {}

  // Makes the directory (0755) if it is missing. Errors: those of that, and of inotify.
  Status Init();
  // An event loop may watch it: it is readable when TakeChanges() has something. REQUIRES: Init()
  // was well.
  int fd() const { return inotify_->fd(); }
  // What changed since the last call: everything that is there on the first, after lost events, and
  // after the directory itself was replaced; then also what was told before and is gone. Errors,
  // not applied: FailedPrecondition before Init(); those of inotify and of making the directory
  // again, after which the next call tries again.
  Result<std::vector<DriverChange>> TakeChanges();

 private:
  // What is to be looked at; everything when `all`.
  struct Changes {
    bool all = false;
    std::set<std::string> drivers;
  };

  Status WatchRoot();
  Result<Changes> ReadChanges();
  std::set<std::string> AllDrivers() const;
  bool IsInstalled(const std::string& driver);

  const std::string directory_;
  std::optional<Inotify> inotify_;
  int root_watch_ = -1;
  std::map<int, std::string> watched_;  // watch -> driver
  std::set<std::string> told_;          // drivers that the caller knows to be installed
  bool look_at_all_ = true;
};

}  // namespace volumed
