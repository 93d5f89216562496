// FlexVolumeProber: the drivers of flexVolumes, found while the agent runs. A driver that appears
// is asked what it can do (`init`) in a worker, beside all others; its plugin is there once it has
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
#include "pluginmgr/dynamic_plugin_prober.h"
#include "plugins/attach_limit_settings.h"
#include "plugins/device_volume.h"

namespace volumed {

struct FlexVolumeProberSettings {
  // <directory>/<vendor~driver>/<driver>
  std::string directory;
  // Of one `init`.
  Duration init_deadline = std::chrono::seconds(10);
  // How long Init() waits for the drivers that are there, so that a restart finds them. Those that
  // take longer come later.
  Duration first_wait = std::chrono::seconds(3);
  DeviceVolumeSettings devices = {};
  const AttachLimitSettings* limits = nullptr;  // outlives the plugins; null: none
  // The directory does not answer: Init() leaves it alone, and somebody calls Open() and Follow()
  // once it does.
  std::optional<Error> silent = {};
};

// Threads: any; Init() and the end on the loop's thread. Blocks: Init() alone, as said. An `init`
// that fails is repeated, with back-off, as long as the driver is there.
class FlexVolumeProber final : public DynamicPluginProber {
 public:
  // Told, on any thread, once Probe() has something new of this plugin.
  using Changed = std::function<void(const std::string& plugin_name)>;

  // All outlive this and the tasks that it posts.
  struct Parts {
    Scheduler& scheduler;
    // Watches the directory; null: somebody calls LookAgain().
    EventLoop* loop;
    Kernel& kernel;
    Logger& log;
  };
  FlexVolumeProber(Parts parts, FlexVolumeProberSettings settings, Changed changed);
  ~FlexVolumeProber() override;

  Status Init() override;
  // What Init() did not do. Open() on any thread: it blocks on the directory. Then Follow() on the
  // loop's, which does not; drivers are told of as they answer.
  Status Open();
  void Follow();
  // What is known by now; never asks a driver.
  ProbeResult Probe() override;
  // For any name that is no plugin of Kubernetes' own.
  std::unique_ptr<VolumePlugin> MakeForTeardown(const std::string& plugin_name) const override;
  std::string WhyMissing(const std::string& plugin_name) const override;

  // Something may have changed in the directory: looks there, on another thread.
  void LookAgain();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace volumed
