#include "pluginmgr/volume_plugin_mgr.h"

#include <utility>

#include "base/strings.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "pluginmgr/expandable_volume_plugin.h"
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

Error NotFound(std::string message) {
  return Error::NotApplied(Code::kNotFound, std::move(message));
}

Status CheckName(const std::string& name) {
  const std::vector<std::string> problems = QualifiedNameProblems(name);
  if (problems.empty()) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument, "volume plugin has invalid name: \"" + name +
                                                       "\": " + Join(problems, ";"));
}

// A capability of what was found, or `absent` as the error.
template <typename Capability>
Result<Capability*> Require(const Result<VolumePlugin*>& found,
                            Capability* (VolumePlugin::*accessor)(), const char* absent) {
  if (!found.ok()) return found.error();
  Capability* const capability = ((*found)->*accessor)();
  if (capability == nullptr) return NotFound(absent);
  return capability;
}

// A capability of what was found, or null.
template <typename Capability>
Result<Capability*> Maybe(const Result<VolumePlugin*>& found,
                          Capability* (VolumePlugin::*accessor)()) {
  if (!found.ok()) return found.error();
  return ((*found)->*accessor)();
}

constexpr char kNoPersistent[] = "no persistent volume plugin matched";
constexpr char kNoProvisionable[] = "no provisionable volume plugin matched";
constexpr char kNoDeletable[] = "no deletable volume plugin matched";

// Stands in for a plugin that exists on nodes only: the storage needs nothing done, the filesystem
// is grown by the node.
class KubeletExpandablePlugin final : public ExpandableVolumePlugin, private VolumePlugin {
 public:
  VolumePlugin& plugin() override { return *this; }
  Result<Quantity> ExpandVolumeDevice(const VolumeSpec&, const Quantity& new_size, const Quantity&,
                                      const CallOptions&) override {
    return new_size;
  }
  bool RequiresFsResize() const override { return true; }

 private:
  static Error Nothing() {
    return Error::NotApplied(Code::kUnimplemented, "this volume's plugin is on its node only");
  }
  Status Init(PluginContext) override { return OkStatus(); }
  std::string GetPluginName() const override { return "volumed/expanded-by-node"; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  bool CanSupport(const VolumeSpec& spec) const override { return spec.IsKubeletExpandable(); }
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec&, const VolumeTarget&) override {
    return Nothing();
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName&, const PodUid&) override {
    return Nothing();
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName&, const SafePath&,
                                                  const CallOptions&) override {
    return Nothing();
  }
  bool SupportsMountOption() const override { return true; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override { return ""; }
  ExpandableVolumePlugin* AsExpandable() override { return this; }
};

}  // namespace

VolumePluginMgr::VolumePluginMgr()
    : wrapper_volumes_(std::make_unique<WrapperVolumes>(*this)),
      kubelet_expandable_(std::make_unique<KubeletExpandablePlugin>()),
      prober_(std::make_unique<NoPluginProber>()) {}

VolumePluginMgr::~VolumePluginMgr() = default;

Status VolumePluginMgr::InitPlugins(std::vector<std::unique_ptr<VolumePlugin>> plugins,
                                    VolumeHost& host) {
  MutexLock lock(mu_);
  host_ = &host;
  std::vector<std::string> errors;
  for (std::unique_ptr<VolumePlugin>& plugin : plugins) {
    const std::string name = plugin->GetPluginName();
    if (const Status good = CheckName(name); !good.ok()) {
      errors.push_back(good.error().message());
    } else if (plugins_.contains(name)) {
      errors.push_back("volume plugin \"" + name + "\" was registered more than once");
    } else if (const Status ready = InitOne(*plugin); !ready.ok()) {
      errors.push_back(ready.error().message());
    } else {
      plugins_.emplace(name, std::move(plugin));
    }
  }
  return Aggregate(errors);
}

Status VolumePluginMgr::InitPlugins(std::vector<std::unique_ptr<VolumePlugin>> plugins,
                                    std::unique_ptr<DynamicPluginProber> prober, VolumeHost& host,
                                    Logger& log) {
  if (prober != nullptr) {
    if (const Status started = prober->Init(); started.ok()) {
      MutexLock lock(mu_);
      prober_ = std::move(prober);
      log_ = &log;
    } else {
      log.Error("volume plugins are not looked for any more: the prober cannot start",
                {{"error", started.error()}});
    }
  }
  Status status = InitPlugins(std::move(plugins), host);
  MutexLock lock(mu_);
  RefreshProbedPlugins();
  return status;
}

Status VolumePluginMgr::InitOne(VolumePlugin& plugin) const {
  return plugin.Init(PluginContext{*host_, *wrapper_volumes_});
}

Status VolumePluginMgr::Run(const CallOptions& call) {
  KubeletHost* kubelet = nullptr;
  {
    MutexLock lock(mu_);
    if (host_ == nullptr) {
      return Error::NotApplied(Code::kFailedPrecondition, "Run comes after InitPlugins");
    }
    kubelet = host_->kubelet;
  }
  return kubelet == nullptr ? OkStatus() : kubelet->WaitForCacheSync(call);
}

// ---- probed plugins -----------------------------------------------------------------------------

void VolumePluginMgr::RefreshProbedPlugins() const {
  ProbeResult result = prober_->Probe();
  if (!result.status.ok()) {
    log_->LogLimited("probe", LogLevel::kError, "not all volume plugins could be probed",
                     {{"error", result.status.error()}});
  }
  for (ProbeEvent& event : result.events) Apply(std::move(event));
}

void VolumePluginMgr::Apply(ProbeEvent event) const {
  const auto old = probed_.find(event.plugin_name);
  switch (event.op) {
    case ProbeOperation::kRemove:
      if (old == probed_.end()) return;
      removed_[event.plugin_name] = old->second.get();
      Retire(old);
      return;
    case ProbeOperation::kAddOrUpdate:
      break;
  }
  Status good = CheckName(event.plugin_name);
  if (good.ok()) good = InitOne(*event.plugin);
  if (!good.ok()) {  // what was there before stays, as in kubelet
    log_->Error("probed volume plugin cannot be used",
                {{"plugin", event.plugin_name}, {"error", good.error()}});
    return;
  }
  if (old != probed_.end()) Retire(old);
  removed_.erase(event.plugin_name);
  probed_.emplace(event.plugin_name, std::move(event.plugin));
}

void VolumePluginMgr::Retire(Plugins::iterator probed) const {
  retired_.push_back(std::move(probed->second));
  probed_.erase(probed);
}

std::string VolumePluginMgr::Why(const std::string& driver) const {
  const std::string why = driver.empty() ? std::string() : prober_->WhyMissing(driver);
  return why.empty() ? why : ": " + why;
}

// ---- look-ups -----------------------------------------------------------------------------------

Result<VolumePlugin*> VolumePluginMgr::FindPluginBySpec(const VolumeSpec& spec) const {
  if (spec.empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "could not find plugin because volume spec is nil");
  }
  MutexLock lock(mu_);
  RefreshProbedPlugins();
  std::vector<std::string> names;
  VolumePlugin* match = nullptr;
  for (const Plugins* plugins : {&plugins_, static_cast<const Plugins*>(&probed_)}) {
    for (const auto& [name, plugin] : *plugins) {
      if (!plugin->CanSupport(spec)) continue;
      names.push_back(name);
      match = plugin.get();
    }
  }
  if (names.empty()) {
    return NotFound("no volume plugin matched" + Why(spec.KubeletExpandablePluginName()));
  }
  if (names.size() > 1) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "multiple volume plugins matched: " + Join(names, ","));
  }
  return match;
}

Result<VolumePlugin*> VolumePluginMgr::FindPluginByName(const std::string& name) const {
  MutexLock lock(mu_);
  RefreshProbedPlugins();
  const auto loaded = plugins_.find(name);
  const auto probed = probed_.find(name);
  if (loaded != plugins_.end() && probed != probed_.end()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "multiple volume plugins matched: " + name + " and " + name);
  }
  if (loaded != plugins_.end()) return loaded->second.get();
  if (probed != probed_.end()) return probed->second.get();
  return NotFound("no volume plugin matched name: " + name);
}

Result<VolumePlugin*> VolumePluginMgr::FindPluginForTeardown(const std::string& name) const {
  Result<VolumePlugin*> found = FindPluginByName(name);
  if (found.ok() || found.error().code() != Code::kNotFound) return found;
  MutexLock lock(mu_);
  if (const auto removed = removed_.find(name); removed != removed_.end()) return removed->second;
  if (std::unique_ptr<VolumePlugin> made = prober_->MakeForTeardown(name)) {
    RETURN_IF_ERROR(InitOne(*made));
    retired_.push_back(std::move(made));
    return removed_[name] = retired_.back().get();
  }
  return NotFound(found.error().message() + Why(name));
}

std::vector<std::string> VolumePluginMgr::PluginNames() const {
  MutexLock lock(mu_);
  std::vector<std::string> names;
  names.reserve(plugins_.size() + probed_.size());
  for (const auto& [name, plugin] : plugins_) names.push_back(name);
  for (const auto& [name, plugin] : probed_) names.push_back(name);
  return names;
}

Result<PersistentVolumePlugin*> VolumePluginMgr::FindPersistentPluginBySpec(
    const VolumeSpec& spec) const {
  const Result<VolumePlugin*> found = FindPluginBySpec(spec);
  if (!found.ok()) return NotFound("could not find volume plugin for spec: " + spec.Display());
  return Require(found, &VolumePlugin::AsPersistent, kNoPersistent);
}

Result<PersistentVolumePlugin*> VolumePluginMgr::FindPersistentPluginByName(
    const std::string& name) const {
  return Require(FindPluginByName(name), &VolumePlugin::AsPersistent, kNoPersistent);
}

Result<RecyclableVolumePlugin*> VolumePluginMgr::FindRecyclablePluginBySpec(
    const VolumeSpec& spec) const {
  return Require(FindPluginBySpec(spec), &VolumePlugin::AsRecyclable,
                 "no recyclable volume plugin matched");
}

Result<ProvisionableVolumePlugin*> VolumePluginMgr::FindProvisionablePluginByName(
    const std::string& name) const {
  const Result<VolumePlugin*> found = FindPluginByName(name);
  if (found.ok() || found.error().code() != Code::kNotFound) {
    return Require(found, &VolumePlugin::AsProvisionable, kNoProvisionable);
  }
  MutexLock lock(mu_);
  for (const Plugins* plugins : {&plugins_, static_cast<const Plugins*>(&probed_)}) {
    for (const auto& [its_name, plugin] : *plugins) {
      if (ProvisionableVolumePlugin* makes = plugin->AsProvisionerOf(name)) return makes;
    }
  }
  return found.error();
}

std::string VolumePluginMgr::WhyNoProvisioner(const std::string& name) const {
  MutexLock lock(mu_);
  for (const Plugins* plugins : {&plugins_, static_cast<const Plugins*>(&probed_)}) {
    for (const auto& [its_name, plugin] : *plugins) {
      if (std::string why = plugin->WhyNoProvisionerOf(name); !why.empty()) return why;
    }
  }
  return "";
}

Result<ProvisionableVolumePlugin*> VolumePluginMgr::FindCreatablePluginBySpec(
    const VolumeSpec& spec) const {
  return Require(FindPluginBySpec(spec), &VolumePlugin::AsProvisionable,
                 "no creatable volume plugin matched");
}

Result<DeletableVolumePlugin*> VolumePluginMgr::FindDeletablePluginBySpec(
    const VolumeSpec& spec) const {
  return Require(FindPluginBySpec(spec), &VolumePlugin::AsDeletable, kNoDeletable);
}

Result<DeletableVolumePlugin*> VolumePluginMgr::FindDeletablePluginByName(
    const std::string& name) const {
  return Require(FindPluginByName(name), &VolumePlugin::AsDeletable, kNoDeletable);
}

Result<VolumePluginWithAttachLimits*> VolumePluginMgr::FindVolumePluginWithLimitsBySpec(
    const VolumeSpec& spec) const {
  const Result<VolumePlugin*> found = FindPluginBySpec(spec);
  if (!found.ok()) return NotFound("could not find volume plugin for spec : " + spec.Display());
  return Require(found, &VolumePlugin::AsWithAttachLimits, "no plugin with limits found");
}

std::vector<VolumePluginWithAttachLimits*> VolumePluginMgr::ListVolumePluginWithLimits() const {
  MutexLock lock(mu_);
  std::vector<VolumePluginWithAttachLimits*> limited;
  for (const auto& [name, plugin] : plugins_) {
    if (auto* capability = plugin->AsWithAttachLimits()) limited.push_back(capability);
  }
  return limited;
}

std::vector<DeviceMountableVolumePlugin*> VolumePluginMgr::ListDeviceMountablePlugins() const {
  MutexLock lock(mu_);
  std::vector<DeviceMountableVolumePlugin*> mountable;
  for (const auto& [name, plugin] : plugins_) {
    if (auto* capability = plugin->AsDeviceMountable()) mountable.push_back(capability);
  }
  return mountable;
}

Result<AttachableVolumePlugin*> VolumePluginMgr::FindAttachablePluginBySpec(
    const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(AttachableVolumePlugin * attachable,
                   Maybe(FindPluginBySpec(spec), &VolumePlugin::AsAttachable));
  if (attachable == nullptr) return attachable;
  ASSIGN_OR_RETURN(const bool can_attach, attachable->CanAttach(spec));
  return can_attach ? attachable : nullptr;
}

Result<AttachableVolumePlugin*> VolumePluginMgr::FindAttachablePluginByName(
    const std::string& name) const {
  return Maybe(FindPluginByName(name), &VolumePlugin::AsAttachable);
}

Result<DeviceMountableVolumePlugin*> VolumePluginMgr::FindDeviceMountablePluginBySpec(
    const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(DeviceMountableVolumePlugin * mountable,
                   Maybe(FindPluginBySpec(spec), &VolumePlugin::AsDeviceMountable));
  if (mountable == nullptr) return mountable;
  ASSIGN_OR_RETURN(const bool can_mount, mountable->CanDeviceMount(spec));
  return can_mount ? mountable : nullptr;
}

Result<DeviceMountableVolumePlugin*> VolumePluginMgr::FindDeviceMountablePluginByName(
    const std::string& name) const {
  return Maybe(FindPluginByName(name), &VolumePlugin::AsDeviceMountable);
}

Result<ExpandableVolumePlugin*> VolumePluginMgr::FindExpandablePluginBySpec(
    const VolumeSpec& spec) const {
  const Result<VolumePlugin*> found = FindPluginBySpec(spec);
  if (!found.ok()) {
    if (spec.IsKubeletExpandable()) return kubelet_expandable_.get();
    if (found.error().code() == Code::kNotFound) return nullptr;
  }
  return Maybe(found, &VolumePlugin::AsExpandable);
}

Result<ExpandableVolumePlugin*> VolumePluginMgr::FindExpandablePluginByName(
    const std::string& name) const {
  return Maybe(FindPluginByName(name), &VolumePlugin::AsExpandable);
}

Result<NodeExpandableVolumePlugin*> VolumePluginMgr::FindNodeExpandablePluginBySpec(
    const VolumeSpec& spec) const {
  return Maybe(FindPluginBySpec(spec), &VolumePlugin::AsNodeExpandable);
}

Result<NodeExpandableVolumePlugin*> VolumePluginMgr::FindNodeExpandablePluginByName(
    const std::string& name) const {
  return Maybe(FindPluginByName(name), &VolumePlugin::AsNodeExpandable);
}

Result<BlockVolumePlugin*> VolumePluginMgr::FindMapperPluginBySpec(const VolumeSpec& spec) const {
  return Maybe(FindPluginBySpec(spec), &VolumePlugin::AsBlock);
}

Result<BlockVolumePlugin*> VolumePluginMgr::FindMapperPluginByName(const std::string& name) const {
  return Maybe(FindPluginByName(name), &VolumePlugin::AsBlock);
}

}  // namespace volumed
