// CsiPluginSettings: what the operator says of how volumes of CSI drivers are made; and the place
// from which the plugin takes it, because a reload may change it while operations run.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace volumed {

// By whom volumes are attached.
enum class CsiAttach {
  // By VolumeAttachments if a source has ever had one of the driver, else by the driver's
  // controller, if it has one that this node reaches.
  kAuto,
  kObjects,
  kController,
};

// Which RPCs a driver is asked for, by the specification's version.
enum class CsiLevel { k1_12, k1_13 };

struct CsiPluginSettings {
  CsiAttach attach = CsiAttach::kAuto;
  CsiLevel level = CsiLevel::k1_12;
  // Drivers whose published volumes need not be mounts: a directory counts, too.
  std::set<std::string> plain_directories = {};
  // The agent's own directories and files outside of its root: absolute and clean. Nothing in them,
  // and nothing that they lie in, is a volume.
  std::set<std::string> own_places = {};
  // How often a volume is published anew whose CSIDriver says requiresRepublish.
  Duration republish_period = std::chrono::minutes(1);
  Duration deadline = std::chrono::minutes(2);  // of each call to a driver
  // A driver that is absent for longer is done without where that is certainly harmless
  // (csi/csi_owing.h). Zero: never.
  Duration absent_limit = Duration::zero();
};

// Threads: any. Blocks: never. Set() replaces all of them at once.
class SharedCsiPluginSettings {
 public:
  explicit SharedCsiPluginSettings(CsiPluginSettings settings = {})
      : settings_(std::move(settings)) {}

  CsiPluginSettings Get() const EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return settings_;
  }
  void Set(CsiPluginSettings settings) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    settings_ = std::move(settings);
  }

 private:
  mutable Mutex mu_;
  CsiPluginSettings settings_ GUARDED_BY(mu_);
};

}  // namespace volumed
