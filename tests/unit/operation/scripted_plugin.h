// A volume plugin whose volumes are tmpfs mounts, and whose calls a test can watch and make fail.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pluginmgr/volume_plugin.h"

namespace volumed {

inline constexpr const char* kScriptedPlugin = "test.io/scripted";

// What the plugin does, and what was done with it; outlives the plugin.
struct PluginScript {
  std::optional<Error> new_mounter_error;
  std::optional<Error> set_up_error;        // instead of any effect
  std::optional<Error> set_up_error_after;  // after the effect
  std::optional<Error> tear_down_error;
  std::function<void(const MounterArgs&)> on_set_up;
  std::function<void(const CallOptions&)> on_tear_down;
  bool remove_on_tear_down = true;
  std::string fault_domain;

  std::vector<MounterArgs> set_ups;
  int tear_downs = 0;
};

class ScriptedVolume final : public Mounter, public Unmounter {
 public:
  ScriptedVolume(PluginScript& script, Kernel& kernel, SafePath place)
      : script_(script), kernel_(kernel), place_(std::move(place)) {}

  std::string GetPath() const override { return place_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions&) override { return Metrics(); }

  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override {
    script_.set_ups.push_back(args);
    if (script_.on_set_up) script_.on_set_up(args);
    if (script_.set_up_error) return *script_.set_up_error;
    RETURN_IF_ERROR(
        kernel_.Call(MakeDirectory{.path = dir, .mode = 0755, .parent_mode = 0750}, args.call));
    ASSIGN_OR_RETURN(const FileInfo info, kernel_.Call(Stat{.path = dir}, args.call));
    if (!info.is_mount_point) {
      RETURN_IF_ERROR(kernel_.Call(
          Mount{.fs_type = "tmpfs", .source = "tmpfs", .target = dir, .options = {}}, args.call));
    }
    if (script_.set_up_error_after) return *script_.set_up_error_after;
    return OkStatus();
  }
  Attributes GetAttributes() const override {
    return {.read_only = false, .managed = true, .selinux_relabel = false};
  }
  SafePath GetSafePath() const override { return place_; }
  std::optional<Freshness> freshness() const override { return Freshness{1, 4711}; }

  Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override {
    ++script_.tear_downs;
    if (script_.on_tear_down) script_.on_tear_down(call);
    if (script_.tear_down_error) return *script_.tear_down_error;
    RETURN_IF_ERROR(kernel_.Call(Unmount{.target = dir}, call));
    if (script_.remove_on_tear_down) RETURN_IF_ERROR(kernel_.Call(RemoveDirectory{dir}, call));
    return OkStatus();
  }

 private:
  PluginScript& script_;
  Kernel& kernel_;
  const SafePath place_;
};

class ScriptedPlugin final : public VolumePlugin {
 public:
  explicit ScriptedPlugin(PluginScript& script) : script_(script) {}

  Status Init(PluginContext context) override {
    host_ = &context.host;
    return OkStatus();
  }
  std::string GetPluginName() const override { return kScriptedPlugin; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  // A hostPath is nobody's here.
  bool CanSupport(const VolumeSpec& spec) const override {
    return !std::holds_alternative<HostPathVolumeSource>(spec.volume()->source);
  }
  bool RequiresRemount(const VolumeSpec&) const override { return true; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override {
    if (script_.new_mounter_error) return *script_.new_mounter_error;
    return std::unique_ptr<Mounter>(Make(spec.name(), target.key.pod));
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec,
                                                  const PodUid& pod) override {
    return std::unique_ptr<Unmounter>(Make(spec, pod));
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName&, const SafePath&,
                                                  const CallOptions&) override {
    return Error::NotApplied(Code::kUnimplemented, "not needed here");
  }
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override { return script_.fault_domain; }

 private:
  std::unique_ptr<ScriptedVolume> Make(const SpecName& spec, const PodUid& pod) {
    return std::make_unique<ScriptedVolume>(
        script_, host_->kernel, host_->paths.GetPodVolumeDir(pod, kScriptedPlugin, spec));
  }

  PluginScript& script_;
  VolumeHost* host_ = nullptr;
};

}  // namespace volumed
