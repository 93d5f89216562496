// DeletableVolumePlugin: volumes whose storage can be deleted once their claim is gone.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (DeletableVolumePlugin, Deleter).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <memory>

#include "base/result.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin.h"
#include "volume/volume.h"

namespace volumed {

// Threads: one call at a time.
class Deleter : public Volume {
 public:
  // Returns once the storage is gone. Blocks: until the deadline. Errors: the volume is not
  // reclaimed; one that IsDeletedVolumeInUse() tells is no failure: the volume is still in use, and
  // the caller tries again later.
  virtual Status Delete(const CallOptions& call) = 0;
};

// Source: kubernetes pkg/volume/errors.go@v1.36.2 (NewDeletedVolumeInUseError). FailedPrecondition,
// not applied.
Error NewDeletedVolumeInUseError(const std::string& message);
// Also if context was put in front of it, but not once it has crossed a process border.
bool IsDeletedVolumeInUse(const Error& error);

class DeletableVolumePlugin {
 public:
  virtual ~DeletableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // Blocks: never.
  virtual Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) = 0;
};

}  // namespace volumed
