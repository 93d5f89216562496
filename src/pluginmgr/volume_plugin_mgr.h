// VolumePluginMgr: owns the plugins and finds the one for a spec or a name.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (VolumePluginMgr); the error texts are
// kubelet's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: InitPlugins once; afterwards any. Blocks: never.
class VolumePluginMgr {
 public:
  VolumePluginMgr();
  ~VolumePluginMgr();

  // Names must be qualified names and unique. All errors are gathered into one; the plugins that
  // are good stay loaded. Errors: InvalidArgument, not applied.
  Status InitPlugins(std::vector<std::unique_ptr<VolumePlugin>> plugins, VolumeHost& host);

  // NotFound "no volume plugin matched"; FailedPrecondition "multiple volume plugins matched: a,b".
  // The pointer stays owned by the manager and lives as long.
  Result<VolumePlugin*> FindPluginBySpec(const VolumeSpec& spec) const;
  // NotFound "no volume plugin matched name: <n>".
  Result<VolumePlugin*> FindPluginByName(const std::string& name) const;

  std::vector<std::string> PluginNames() const;

 private:
  std::unique_ptr<WrapperVolumes> wrapper_volumes_;
  std::map<std::string, std::unique_ptr<VolumePlugin>> plugins_;
};

}  // namespace volumed
