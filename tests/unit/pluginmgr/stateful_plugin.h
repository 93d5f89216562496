// StatefulPlugin: a volume type that exists in memory only and has every capability that can be
// switched on. What it does can be looked at: which volumes are made, attached, mounted, mapped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "metrics/metrics_nil.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"

namespace volumed {

// The storage; outlives the plugin.
struct StatefulStorage {
  std::map<std::string, Quantity> volumes;              // that exist, and their size
  std::map<std::string, std::set<NodeName>> attached;   // volume -> nodes
  std::map<std::string, std::set<std::string>> mounts;  // device mount path -> volumes
  std::set<std::string> mapped;                         // publish paths
  std::set<std::string> in_use;
  std::set<std::string> set_up;  // paths of pods' volumes
  int64_t node_size = 0;         // of the filesystem on the node
  // Where the last growth was: the volume, its staging, its device, the pod.
  std::vector<std::string> grown_at;
};

class StatefulPlugin final : public VolumePlugin,
                             public PersistentVolumePlugin,
                             public RecyclableVolumePlugin,
                             public DeletableVolumePlugin,
                             public ProvisionableVolumePlugin,
                             public AttachableVolumePlugin,
                             public ExpandableVolumePlugin,
                             public NodeExpandableVolumePlugin,
                             public BlockVolumePlugin,
                             public VolumePluginWithAttachLimits,
                             public BulkVolumeVerifier {
 public:
  struct Switches {
    bool capable = true;  // false: a plugin with none of the capabilities
    bool supports = true;
    bool can_attach = true;
    bool can_device_mount = true;
    bool fails_to_tell = false;  // CanAttach and CanDeviceMount are errors
    bool has_devices = true;     // false: it neither attaches nor mounts any
    Status init = OkStatus();
    std::string fault_domain = "";
    bool works_in_lane = false;
    bool growth_needs_pod = false;
  };

  StatefulPlugin(std::string name, StatefulStorage& storage) : StatefulPlugin(name, storage, {}) {}
  StatefulPlugin(std::string name, StatefulStorage& storage, Switches switches)
      : name_(std::move(name)), storage_(storage), switches_(std::move(switches)) {}

  // ---- VolumePlugin
  VolumePlugin& plugin() override { return *this; }
  Status Init(PluginContext context) override {
    ++inits;
    host_ = &context.host;
    return switches_.init;
  }
  std::string GetPluginName() const override { return name_; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  bool CanSupport(const VolumeSpec&) const override { return switches_.supports; }
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override {
    return std::unique_ptr<Mounter>(
        std::make_unique<PodVolumeOf>(*this, spec.name(), target.key.pod));
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec,
                                                  const PodUid& pod) override {
    return std::unique_ptr<Unmounter>(std::make_unique<PodVolumeOf>(*this, spec, pod));
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath&,
                                                  const CallOptions&) override {
    return ReconstructedVolume{VolumeSpec::FromVolume({spec.str(), EmptyDirVolumeSource{}})};
  }
  bool SupportsMountOption() const override { return true; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override { return switches_.fault_domain; }
  bool WorksInLane(const VolumeSpec&) const override { return switches_.works_in_lane; }

  PersistentVolumePlugin* AsPersistent() override { return Capable<PersistentVolumePlugin>(); }
  RecyclableVolumePlugin* AsRecyclable() override { return Capable<RecyclableVolumePlugin>(); }
  DeletableVolumePlugin* AsDeletable() override { return Capable<DeletableVolumePlugin>(); }
  ProvisionableVolumePlugin* AsProvisionable() override {
    return Capable<ProvisionableVolumePlugin>();
  }
  AttachableVolumePlugin* AsAttachable() override {
    return switches_.has_devices ? Capable<AttachableVolumePlugin>() : nullptr;
  }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return AsAttachable(); }
  ExpandableVolumePlugin* AsExpandable() override { return Capable<ExpandableVolumePlugin>(); }
  NodeExpandableVolumePlugin* AsNodeExpandable() override {
    return Capable<NodeExpandableVolumePlugin>();
  }
  BlockVolumePlugin* AsBlock() override { return Capable<BlockVolumePlugin>(); }
  VolumePluginWithAttachLimits* AsWithAttachLimits() override {
    return Capable<VolumePluginWithAttachLimits>();
  }

  // ---- PersistentVolumePlugin, RecyclableVolumePlugin
  std::vector<AccessMode> GetAccessModes() const override {
    return {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany};
  }
  Status Recycle(const std::string& pv_name, const VolumeSpec&,
                 const RecycleEventRecorder& recorder, const CallOptions&) override {
    if (!storage_.volumes.contains(pv_name)) return Missing(pv_name);
    recorder(EventType::kNormal, "scrubbed " + pv_name);
    return OkStatus();
  }

  // ---- DeletableVolumePlugin, ProvisionableVolumePlugin
  Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override {
    return std::unique_ptr<Deleter>(std::make_unique<DeleterOf>(storage_, spec.name().str()));
  }
  Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override {
    return std::unique_ptr<Provisioner>(std::make_unique<ProvisionerOf>(storage_, options));
  }

  // ---- AttachableVolumePlugin, DeviceMountableVolumePlugin
  Result<std::unique_ptr<Attacher>> NewAttacher() override {
    return std::unique_ptr<Attacher>(std::make_unique<AttacherOf>(storage_));
  }
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override {
    return std::unique_ptr<DeviceMounter>(std::make_unique<AttacherOf>(storage_));
  }
  Result<std::unique_ptr<Detacher>> NewDetacher() override {
    return std::unique_ptr<Detacher>(std::make_unique<DetacherOf>(storage_));
  }
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override {
    return std::unique_ptr<DeviceUnmounter>(std::make_unique<DetacherOf>(storage_));
  }
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& path,
                                                      const CallOptions&) override {
    const auto& volumes = storage_.mounts[path.Display()];
    return std::vector<std::string>(volumes.begin(), volumes.end());
  }
  Result<bool> CanAttach(const VolumeSpec&) const override { return Told(switches_.can_attach); }
  Result<bool> CanDeviceMount(const VolumeSpec&) const override {
    return Told(switches_.can_device_mount);
  }
  BulkVolumeVerifier* AsBulkVolumeVerifier() override { return this; }
  Result<AttachedByNode> BulkVerifyVolumes(const SpecsByNode& specs, const CallOptions&) override {
    AttachedByNode answer;
    for (const auto& [node, list] : specs) {
      for (const VolumeSpec& spec : list) {
        answer[node].push_back(storage_.attached[spec.name().str()].contains(node));
      }
    }
    return answer;
  }

  // ---- ExpandableVolumePlugin, NodeExpandableVolumePlugin
  Result<Quantity> ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                      const Quantity&, const CallOptions&) override {
    const auto volume = storage_.volumes.find(spec.name().str());
    if (volume == storage_.volumes.end()) return Missing(spec.name().str());
    return volume->second = std::max(volume->second, new_size);
  }
  bool RequiresFsResize() const override { return true; }
  bool NeedsPod(const VolumeSpec&) const override { return switches_.growth_needs_pod; }
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions&) override {
    storage_.grown_at = {options.device_mount_path.Display(), options.device_stage_path.Display(),
                         options.device_path, options.pod.str()};
    if (options.device_mount_path.root.empty()) return false;  // not mounted yet
    storage_.node_size = options.new_size.Value();
    return true;
  }

  // ---- BlockVolumePlugin, VolumePluginWithAttachLimits
  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override {
    return std::unique_ptr<BlockVolumeMapper>(
        std::make_unique<MapperOf>(*this, spec.name(), pod->uid()));
  }
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override {
    return std::unique_ptr<BlockVolumeUnmapper>(std::make_unique<UnmapperOf>(*this, spec, pod));
  }
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid&, const SpecName& spec, const SafePath&,
                                              const CallOptions&) override {
    return VolumeSpec::FromVolume({spec.str(), EmptyDirVolumeSource{}});
  }
  Result<std::map<std::string, int64_t>> GetVolumeLimits() const override {
    return std::map<std::string, int64_t>{{"storage-limits-stateful", 39}};
  }
  std::string VolumeLimitKey(const VolumeSpec&) const override { return "storage-limits-stateful"; }

  int inits = 0;

 private:
  static Error Missing(const std::string& volume) {
    return Error::NotApplied(Code::kNotFound, "no volume " + volume);
  }
  template <typename T>
  T* Capable() {
    return switches_.capable ? static_cast<T*>(this) : nullptr;
  }
  Result<bool> Told(bool answer) const {
    if (switches_.fails_to_tell) return Error::NotApplied(Code::kUnavailable, "cannot tell");
    return answer;
  }

  class PodVolumeOf final : public Mounter, public Unmounter {
   public:
    PodVolumeOf(StatefulPlugin& plugin, const SpecName& spec, const PodUid& pod)
        : plugin_(plugin), place_(plugin.host_->paths.GetPodVolumeDir(pod, plugin.name_, spec)) {}
    std::string GetPath() const override { return place_.Display(); }
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
    Status SetUpAt(const SafePath& dir, const MounterArgs&) override {
      plugin_.storage_.set_up.insert(dir.Display());
      return OkStatus();
    }
    Attributes GetAttributes() const override {
      return {.read_only = true, .managed = true, .selinux_relabel = true};
    }
    SafePath GetSafePath() const override { return place_; }
    Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
    Status TearDownAt(const SafePath& dir, const CallOptions&) override {
      plugin_.storage_.set_up.erase(dir.Display());
      return OkStatus();
    }

   private:
    StatefulPlugin& plugin_;
    const SafePath place_;
    MetricsNil nil_;
  };

  class DeleterOf final : public Deleter {
   public:
    DeleterOf(StatefulStorage& storage, std::string volume)
        : storage_(storage), volume_(std::move(volume)) {}
    std::string GetPath() const override { return "/storage/" + volume_; }
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Status Delete(const CallOptions&) override {
      if (storage_.in_use.contains(volume_)) return NewDeletedVolumeInUseError(volume_);
      storage_.volumes.erase(volume_);
      return OkStatus();
    }

   private:
    StatefulStorage& storage_;
    const std::string volume_;
    MetricsNil nil_;
  };

  class ProvisionerOf final : public Provisioner {
   public:
    ProvisionerOf(StatefulStorage& storage, VolumeOptions options)
        : storage_(storage), options_(std::move(options)) {}
    Result<PersistentVolume> Provision(const NodeObject* node,
                                       const std::vector<TopologyTerm>& topologies,
                                       const CallOptions&) override {
      PersistentVolume volume;
      volume.metadata.name = options_.pv_name;
      volume.spec.capacity = options_.claim.spec.storage.request;
      volume.spec.reclaim_policy = options_.reclaim_policy;
      volume.spec.mount_options = options_.mount_options;
      if (node != nullptr) volume.metadata.labels["node"] = node->metadata.name;
      if (!topologies.empty()) volume.metadata.labels["topologies"] = "yes";
      storage_.volumes[options_.pv_name] = volume.spec.capacity;
      return volume;
    }

   private:
    StatefulStorage& storage_;
    const VolumeOptions options_;
  };

  class AttacherOf final : public Attacher {
   public:
    explicit AttacherOf(StatefulStorage& storage) : storage_(storage) {}
    Result<std::string> Attach(const VolumeSpec& spec, const NodeName& node,
                               const CallOptions&) override {
      storage_.attached[spec.name().str()].insert(node);
      return "/dev/" + spec.name().str();
    }
    Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                                 const NodeName& node,
                                                 const CallOptions&) override {
      std::vector<bool> answer;
      for (const VolumeSpec& spec : specs) {
        answer.push_back(storage_.attached[spec.name().str()].contains(node));
      }
      return answer;
    }
    Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                      const Pod&, const CallOptions&) override {
      if (!storage_.attached[spec.name().str()].empty()) return device_path;
      return Error::NotApplied(Code::kDeadlineExceeded, "the device does not appear");
    }
    Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override {
      return SafePath{"/r/plugins/mounts", spec.name().str()};
    }
    Status MountDevice(const VolumeSpec& spec, const std::string& device_path, const SafePath& path,
                       const DeviceMounterArgs& args) override {
      if (device_path.empty()) return Missing("device of " + spec.name().str());
      if (args.fs_group == 0) return Error::MaybeApplied(Code::kUnknown, "mount timed out");
      storage_.mounts[path.Display()].insert(spec.name().str());
      return OkStatus();
    }

   private:
    StatefulStorage& storage_;
  };

  class DetacherOf final : public Detacher {
   public:
    explicit DetacherOf(StatefulStorage& storage) : storage_(storage) {}
    Status Detach(const std::string& volume, const NodeName& node, const CallOptions&) override {
      storage_.attached[volume].erase(node);
      return OkStatus();
    }
    Status UnmountDevice(const SafePath& path, const CallOptions&) override {
      storage_.mounts.erase(path.Display());
      return OkStatus();
    }

   private:
    StatefulStorage& storage_;
  };

  class MapperOf final : public BlockVolumeMapper, public CustomBlockVolumeMapper {
   public:
    MapperOf(StatefulPlugin& plugin, SpecName spec, PodUid pod)
        : plugin_(plugin), spec_(std::move(spec)), pod_(std::move(pod)) {}
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override {
      return plugin_.host_->paths.GetVolumeDevicePluginDir(plugin_.name_).Below(spec.name().str());
    }
    PodDeviceMapPath GetPodDeviceMapPath() const override {
      return {plugin_.host_->paths.GetPodVolumeDeviceDir(pod_, plugin_.name_), spec_.str()};
    }
    CustomBlockVolumeMapper* AsCustom() override { return this; }
    Result<std::string> SetUpDevice(const CallOptions&) override {
      staged_ = true;
      return GetStagingPath();
    }
    Result<std::string> MapPodDevice(const CallOptions&) override {
      if (!staged_) return Missing("staged device");
      plugin_.storage_.mapped.insert("/publish/" + pod_.str());
      return "/publish/" + pod_.str();
    }
    std::string GetStagingPath() const override { return "/staging/" + spec_.str(); }

   private:
    StatefulPlugin& plugin_;
    const SpecName spec_;
    const PodUid pod_;
    MetricsNil nil_;
    bool staged_ = false;
  };

  class UnmapperOf final : public BlockVolumeUnmapper, public CustomBlockVolumeUnmapper {
   public:
    UnmapperOf(StatefulPlugin& plugin, SpecName spec, PodUid pod)
        : plugin_(plugin), spec_(std::move(spec)), pod_(std::move(pod)) {}
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override {
      return plugin_.host_->paths.GetVolumeDevicePluginDir(plugin_.name_).Below(spec.name().str());
    }
    PodDeviceMapPath GetPodDeviceMapPath() const override {
      return {plugin_.host_->paths.GetPodVolumeDeviceDir(pod_, plugin_.name_), spec_.str()};
    }
    CustomBlockVolumeUnmapper* AsCustom() override { return this; }
    Status TearDownDevice(const SafePath&, const std::string& device_path,
                          const CallOptions&) override {
      plugin_.storage_.attached.erase(device_path);
      return OkStatus();
    }
    Status UnmapPodDevice(const CallOptions&) override {
      plugin_.storage_.mapped.erase("/publish/" + pod_.str());
      return OkStatus();
    }

   private:
    StatefulPlugin& plugin_;
    const SpecName spec_;
    const PodUid pod_;
    MetricsNil nil_;
  };

  const std::string name_;
  StatefulStorage& storage_;
  const Switches switches_;
  VolumeHost* host_ = nullptr;
};

}  // namespace volumed
