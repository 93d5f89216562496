#include "csi/csi_node_object.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/strings.h"
#include "volume/csi_translation.h"

namespace volumed {
namespace {

constexpr const char* kMigratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins";
constexpr const char* kNotInitialized = "CSINode is not yet initialized";

std::string MigratedPluginNames() {
  std::vector<std::string_view> names;
  for (const MigratedPlugin& plugin : MigratedPlugins()) names.push_back(plugin.in_tree_plugin);
  std::sort(names.begin(), names.end());
  return Join(names, ",");
}

CsiNodeDriver NodeDriverOf(const CsiDriverFacts& facts) {
  CsiNodeDriver driver;
  driver.name = facts.name;
  driver.node_id = facts.node_id;
  for (const auto& [key, value] : facts.topology) driver.topology_keys.push_back(key);
  if (facts.max_volumes > 0) {
    driver.allocatable_count = static_cast<int32_t>(
        std::min<int64_t>(facts.max_volumes, std::numeric_limits<int32_t>::max()));
  }
  return driver;
}

}  // namespace

CsiNodeObject MakeCsiNodeObject(const NodeName& node, const std::vector<DriverView>& drivers) {
  CsiNodeObject object;
  object.metadata.name = node.str();
  object.metadata.annotations[kMigratedPlugins] = MigratedPluginNames();
  for (const DriverView& driver : drivers) {
    if (!driver.was_unregistered) object.drivers.push_back(NodeDriverOf(driver.facts));
  }
  return object;
}

CsiNodeSource::CsiNodeSource(Parts parts, Deliver deliver)
    : parts_(std::move(parts)), deliver_(std::move(deliver)) {
  parts_.kubelet.SetKubeletError(Error::NotApplied(Code::kUnavailable, kNotInitialized));
}

void CsiNodeSource::Start() {
  is_started_ = true;
  DriversChanged();
}

void CsiNodeSource::DriversChanged() {
  if (!is_started_) return;
  CsiNodeObject object = MakeCsiNodeObject(parts_.node, parts_.drivers.List());
  const bool is_needless = !delivered_ && object.drivers.empty();
  if (is_needless || delivered_ == object) return;
  delivered_ = object;
  ObjectList list;
  list.source = kCsiNodeSource;
  list.complete = true;
  list.objects.push_back({std::make_shared<const Object>(std::move(object)), "", 0});
  deliver_(std::move(list));
}

void CsiNodeSource::Looked(const std::optional<Error>& error) {
  has_looked_ = has_looked_ || !error.has_value();
  if (error && !has_looked_) {
    parts_.kubelet.SetKubeletError(error->With(kNotInitialized));
  }
  SyncChanged();
}

void CsiNodeSource::SyncChanged() {
  if (is_initialized_ || !has_looked_ || !parts_.kubelet.CsiDriversSynced()) return;
  is_initialized_ = true;
  parts_.kubelet.SetKubeletError(std::nullopt);
}

}  // namespace volumed
