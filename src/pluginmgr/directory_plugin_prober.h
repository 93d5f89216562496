// DirectoryPluginProber: one plugin for each driver that is installed below a directory
// (pluginmgr/driver_directory.h), made when Probe() finds the driver.
// Source: kubernetes pkg/volume/flexvolume/probe.go@v1.36.2.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "pluginmgr/driver_directory.h"
#include "pluginmgr/dynamic_plugin_prober.h"

namespace volumed {

// For plugins that are made without asking their driver: Probe() waits for the factory.
//
// Threads: one call at a time. Blocks: as DriverDirectory and the factory.
class DirectoryPluginProber final : public DynamicPluginProber {
 public:
  // Makes the plugin of a driver, "vendor/driver", with its executable at this path. It does not
  // initialise it.
  using Factory = std::function<Result<std::unique_ptr<VolumePlugin>>(
      const std::string& plugin_name, const std::string& executable)>;

  DirectoryPluginProber(std::string directory, Factory factory);

  Status Init() override { return directory_.Init(); }
  // Errors of the result: those of the directory, and of the factory, each for its driver alone.
  ProbeResult Probe() override;

 private:
  // Adds what became of one driver to the result.
  void ProbeDriver(const DriverChange& change, ProbeResult& result);

  DriverDirectory directory_;
  const Factory factory_;
  std::set<std::string> announced_;  // plugins that the caller knows
};

}  // namespace volumed
