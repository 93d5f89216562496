// DirectoryPluginProber: one plugin for each driver that is installed below a directory, as
// <directory>/<vendor~driver>/<driver>. It is told of changes by inotify and looks only at what
// changed. Source: kubernetes pkg/volume/flexvolume/probe.go@v1.36.2.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/inotify.h"
#include "base/result.h"
#include "pluginmgr/dynamic_plugin_prober.h"

namespace volumed {

// A driver is there as long as its executable is, and may be executed. One whose executable is
// written, replaced or made executable is an update. Names that begin with '.' are ignored, so that
// an installer can write beside and rename.
//
// Threads: one call at a time. Blocks: for look-ups in the directory, which is an administrator's.
class DirectoryPluginProber final : public DynamicPluginProber {
 public:
  // Makes the plugin of a driver: "vendor/driver", and its executable's path. Does not initialise
  // it.
  using Factory = std::function<Result<std::unique_ptr<VolumePlugin>>(
      const std::string& plugin_name, const std::string& executable)>;

  DirectoryPluginProber(std::string directory, Factory factory);

  // Makes the directory (0755) if it is missing. Errors: those of that, and of inotify.
  Status Init() override;
  // Finds everything on the first call, after lost events, and after the directory itself was
  // replaced. Errors of the result: those of the factory, each for its driver alone.
  ProbeResult Probe() override;

 private:
  // What is to be looked at; everything when `all`.
  struct Changes {
    bool all = false;
    std::set<std::string> drivers;
  };

  Status WatchRoot();
  Result<Changes> ReadChanges();
  std::set<std::string> AllDrivers() const;
  // Adds what became of one driver to the result.
  void ProbeDriver(const std::string& driver, ProbeResult& result);
  bool IsInstalled(const std::string& driver);
  std::string ExecutableOf(const std::string& driver) const;

  const std::string directory_;
  const Factory factory_;
  std::optional<Inotify> inotify_;
  int root_watch_ = -1;
  std::map<int, std::string> watched_;  // watch -> driver
  std::set<std::string> announced_;     // drivers that the caller knows
  bool probe_all_ = true;
};

}  // namespace volumed
