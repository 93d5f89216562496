#include "pluginmgr/volume_plugin_mgr.h"

#include <utility>

#include "base/strings.h"
#include "pluginmgr/qualified_name.h"
#include "pluginmgr/wrapper_volumes.h"

namespace volumed {
namespace {

// As Kubernetes prints an aggregate: one error alone, several in brackets.
Status Aggregate(const std::vector<std::string>& errors) {
  if (errors.empty()) return OkStatus();
  const std::string text = Join(errors, ", ");
  return Error::NotApplied(Code::kInvalidArgument, errors.size() == 1 ? text : "[" + text + "]");
}

}  // namespace

VolumePluginMgr::VolumePluginMgr() : wrapper_volumes_(std::make_unique<WrapperVolumes>(*this)) {}

VolumePluginMgr::~VolumePluginMgr() = default;

Status VolumePluginMgr::InitPlugins(std::vector<std::unique_ptr<VolumePlugin>> plugins,
                                    VolumeHost& host) {
  std::vector<std::string> errors;
  for (std::unique_ptr<VolumePlugin>& plugin : plugins) {
    const std::string name = plugin->GetPluginName();
    if (const std::vector<std::string> problems = QualifiedNameProblems(name); !problems.empty()) {
      errors.push_back("volume plugin has invalid name: \"" + name + "\": " + Join(problems, ";"));
      continue;
    }
    if (plugins_.count(name) != 0) {
      errors.push_back("volume plugin \"" + name + "\" was registered more than once");
      continue;
    }
    if (Status status = plugin->Init(PluginContext{host, *wrapper_volumes_}); !status.ok()) {
      errors.push_back(status.error().message());
      continue;
    }
    plugins_.emplace(name, std::move(plugin));
  }
  return Aggregate(errors);
}

Result<VolumePlugin*> VolumePluginMgr::FindPluginBySpec(const VolumeSpec& spec) const {
  std::vector<std::string> names;
  VolumePlugin* match = nullptr;
  for (const auto& [name, plugin] : plugins_) {
    if (!plugin->CanSupport(spec)) continue;
    names.push_back(name);
    match = plugin.get();
  }
  if (names.empty()) return Error::NotApplied(Code::kNotFound, "no volume plugin matched");
  if (names.size() > 1) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "multiple volume plugins matched: " + Join(names, ","));
  }
  return match;
}

Result<VolumePlugin*> VolumePluginMgr::FindPluginByName(const std::string& name) const {
  const auto found = plugins_.find(name);
  if (found == plugins_.end()) {
    return Error::NotApplied(Code::kNotFound, "no volume plugin matched name: " + name);
  }
  return found->second.get();
}

std::vector<std::string> VolumePluginMgr::PluginNames() const {
  std::vector<std::string> names;
  names.reserve(plugins_.size());
  for (const auto& [name, plugin] : plugins_) names.push_back(name);
  return names;
}

}  // namespace volumed
