#include "pluginmgr/directory_plugin_prober.h"

#include <utility>
#include <vector>

namespace volumed {
namespace {

void AddError(ProbeResult& result, const Error& error) {
  if (result.status.ok()) {
    result.status = error;
  } else {
    result.status = result.status.error().With(error.message());
  }
}

}  // namespace

DirectoryPluginProber::DirectoryPluginProber(std::string directory, Factory factory)
    : directory_(std::move(directory)), factory_(std::move(factory)) {}

ProbeResult DirectoryPluginProber::Probe() {
  ProbeResult result;
  const Result<std::vector<DriverChange>> changes = directory_.TakeChanges();
  if (!changes.ok()) {
    result.status = changes.error();
    return result;
  }
  for (const DriverChange& change : *changes) ProbeDriver(change, result);
  return result;
}

void DirectoryPluginProber::ProbeDriver(const DriverChange& change, ProbeResult& result) {
  ProbeEvent event;
  event.plugin_name = change.plugin_name;
  if (!change.installed) {
    if (announced_.erase(change.plugin_name) == 0) return;
    event.op = ProbeOperation::kRemove;
    result.events.push_back(std::move(event));
    return;
  }
  Result<std::unique_ptr<VolumePlugin>> plugin = factory_(change.plugin_name, change.executable);
  if (!plugin.ok()) {
    AddError(result, plugin.error().With("driver " + change.plugin_name));
    return;
  }
  event.plugin = std::move(plugin).value();
  announced_.insert(change.plugin_name);
  result.events.push_back(std::move(event));
}

}  // namespace volumed
