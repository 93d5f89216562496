// FlexVolumeProber: finds the drivers of flexVolumes while the agent runs. A driver that appears is
// asked what it can do (`init`), in a worker and beside all others; its plugin exists once it has
// answered. Source: kubernetes pkg/volume/flexvolume/probe.go and plugin.go@v1.36.2
// (NewFlexVolumePlugin), where each look-up of a plugin waits for that.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/dynamic_plugin_prober.h"
#include "plugins/attach_limit_settings.h"

namespace volumed {

struct FlexVolumeProberSettings {
  // <directory>/<vendor~driver>/<driver>
  std::string directory;
  // The deadline of one `init`.
  Duration init_deadline = std::chrono::seconds(10);
  // How long Init() waits for the drivers that are installed, so that a restart finds them. Drivers
  // that take longer come later.
  Duration first_wait = std::chrono::seconds(3);
  DeviceVolumeSettings devices = {};
  const AttachLimitSettings* limits = nullptr;  // outlives the plugins; null: no limits
  // Set if the directory does not answer: Init() leaves it alone, and the owner calls Open() and
  // Follow() once it does.
  std::optional<Error> silent = {};
};

// Threads: any; Init() and the destructor on the loop's thread. Blocks: only Init() and Open(), as
// their comments say. An `init` that fails is repeated, with back-off, as long as the driver is
// there.
class FlexVolumeProber final : public DynamicPluginProber {
 public:
  // Called, on any thread, when Probe() has something new about this plugin.
  using Changed = std::function<void(const std::string& plugin_name)>;

  // All members outlive this object and the tasks that it posts.
  struct Parts {
    Scheduler& scheduler;
    // Watches the directory; if it is null, the owner calls LookAgain().
    EventLoop* loop;
    Kernel& kernel;
    Logger& log;
  };
  FlexVolumeProber(Parts parts, FlexVolumeProberSettings settings, Changed changed);
  ~FlexVolumeProber() override;

  // Finds the drivers that are installed, and waits for their answers for `first_wait`. It does
  // nothing if `silent` is set. Threads: the loop's. Errors: those of DriverDirectory::Init and
  // EventLoop::WatchFd, not applied.
  Status Init() override;
  // These two do what Init() left out. Open() runs on any thread and blocks on the directory;
  // Follow() runs on the loop's thread after it and does not block. Drivers are reported as they
  // answer.
  // Errors: those of DriverDirectory::Init.
  Status Open();
  void Follow();
  // What is known now; no driver is asked.
  ProbeResult Probe() override;
  // Makes a plugin for any name except those of Kubernetes' own plugins (null for these), whether
  // or not its driver is installed: what such a driver mounted is taken away by it. It assumes that
  // the driver can do everything.
  std::unique_ptr<VolumePlugin> MakeForTeardown(const std::string& plugin_name) const override;
  // For people: that the driver is not installed, with the path at which its executable is missed;
  // or how its `init` failed; or that it has not answered yet.
  std::string WhyMissing(const std::string& plugin_name) const override;

  // Something may have changed in the directory: looks there on another thread.
  void LookAgain();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace volumed
