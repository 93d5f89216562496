// DynamicPluginProber: finds volume plugins that come and go while the agent runs.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (DynamicPluginProber, ProbeEvent).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// The numbers are kubelet's: bits, counted from 1 << 1.
enum class ProbeOperation : uint32_t {
  kAddOrUpdate = 1U << 1,
  kRemove = 1U << 2,
};

// A plugin that has come, was replaced, or has gone.
struct ProbeEvent {
  ProbeOperation op = ProbeOperation::kAddOrUpdate;
  std::string plugin_name;
  std::unique_ptr<VolumePlugin> plugin;  // not initialised yet; null on kRemove
};

struct ProbeResult {
  std::vector<ProbeEvent> events;
  // What went wrong while they were gathered; the events hold all the same.
  Status status;
};

// Threads: one call at a time. Blocks: only on the prober's own, trusted directory.
class DynamicPluginProber {
 public:
  virtual ~DynamicPluginProber() = default;
  // To be called once, before Probe(). After an error the prober is of no use.
  virtual Status Init() = 0;
  // What has changed since the last call; all that is there on the first.
  virtual ProbeResult Probe() = 0;
  // Makes a plugin for what a driver has left behind, if there is none for it now: the driver was
  // removed, or was not asked yet. The plugin can take volumes away, as far as that goes without
  // the driver. Null if there is none such. Threads: any. Blocks: never.
  virtual std::unique_ptr<VolumePlugin> MakeForTeardown(const std::string& /*plugin_name*/) const {
    return nullptr;
  }
  // Why there is no plugin for a driver of this name, for errors: which file is missing, or what
  // its driver answered; "" if nothing is known of it. Threads: any. Blocks: never.
  virtual std::string WhyMissing(const std::string& /*plugin_name*/) const { return ""; }
};

// Finds nothing: what the manager uses if there is no prober, or one that failed to start.
class NoPluginProber final : public DynamicPluginProber {
 public:
  Status Init() override { return OkStatus(); }
  ProbeResult Probe() override { return {}; }
};

}  // namespace volumed
