// FakePlugin: a plugin of one kind of volume, with the capabilities that the real one of its name
// has; nothing of it is ever called but what the manager asks of a plugin itself.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"
#include "volume/secrets_of_volume.h"

namespace volumed {

// Takes every source of one kind ("secret", "emptyDir" ...); answers with metrics on order.
class FakePlugin final : public VolumePlugin {
 public:
  struct MetricsScript {
    std::function<Result<Metrics>(const SpecName&, const CallOptions&)> answer;
    bool shares_requests = false;  // measured by StatFs, which others may share
    std::string domain = {};       // of all volumes; empty: as the kind has it
  };
  struct AttachScript {
    std::map<std::string, int64_t> limits;
    std::optional<Error> limits_error;
    int limits_asked = 0;
    bool verifies = true;
    bool attaches = true;  // false: a driver without attach, which makes its volumes larger
    std::optional<Error> no_driver;  // what is said of each volume of "iscsi", and of "flexVolume"
    std::set<ObjectKey> depends_on;
    // What volumes are called that are not called as their PersistentVolumes, by these.
    std::map<std::string, std::string> volume_names = {};
    bool growth_needs_pod = false;
    bool takes_labels = false;  // of mounts as a whole
    // What "local" finds of devices that are on no record.
    std::vector<UnrecordedDevice> found = {};
    std::optional<Error> found_error = {};
    int asked_for_found = 0;
  };
  // Of "csi": the driver "disk.example.com", and what its controller does.
  struct DriverScript {
    bool makes = true;
    std::string why_not = {};  // it does not
    bool grows = true;
    bool only_unused = false;
  };
  FakePlugin(std::string name, std::string kind, std::shared_ptr<MetricsScript> metrics = nullptr,
             std::shared_ptr<AttachScript> attach = std::make_shared<AttachScript>(),
             std::shared_ptr<DriverScript> driver = std::make_shared<DriverScript>())
      : name_(std::move(name)),
        kind_(std::move(kind)),
        metrics_(std::move(metrics)),
        attach_(std::move(attach)),
        driver_(std::move(driver)) {}

  Status Init(PluginContext) override { return OkStatus(); }
  std::string GetPluginName() const override { return name_; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    // A stand-in for an inline volume has no name.
    const auto* driven = spec.SourceAs<CsiPersistentVolumeSource>();
    if (driven != nullptr && spec.name().empty()) return driven->volume_handle;
    const auto named = attach_->volume_names.find(spec.name().str());
    return named == attach_->volume_names.end() ? spec.name().str() : named->second;
  }
  bool CanSupport(const VolumeSpec& spec) const override {
    // That of "csi" has the volumes of its one driver alone.
    const auto* driven = spec.SourceAs<CsiPersistentVolumeSource>();
    if (driven != nullptr && driven->driver != "disk.example.com") return false;
    if (const PersistentVolume* volume = spec.persistent_volume()) {
      return VolumeSourceKind(volume->spec.source) == kind_;
    }
    return spec.volume() != nullptr && VolumeSourceKind(spec.volume()->source) == kind_;
  }
  std::vector<std::string> DevicePaths(const VolumeSpec& spec) const override {
    const auto* source = spec.SourceAs<LocalVolumeSource>();
    return source == nullptr ? std::vector<std::string>() : std::vector{source->path};
  }
  std::set<ObjectKey> DependsOn(const VolumeSpec&) const override { return attach_->depends_on; }
  // The device of "local", which operations mount, and nobody asks here.
  DeviceMountableVolumePlugin* AsDeviceMountable() override {
    if (AttachableVolumePlugin* attachable = AsAttachable()) return attachable;
    if (kind_ == "iscsi") return &driven_;
    return kind_ == "local" ? &device_ : nullptr;
  }
  // Volumes of "hostPath" are made, which operations do; here they are planned.
  ProvisionableVolumePlugin* AsProvisionable() override {
    return kind_ == "hostPath" ? &planner_ : nullptr;
  }
  ProvisionableVolumePlugin* AsProvisionerOf(const std::string& provisioner) override {
    const bool makes = kind_ == "csi" && driver_->makes && provisioner == "disk.example.com";
    return makes ? &driver_planner_ : nullptr;
  }
  std::string WhyNoProvisionerOf(const std::string& provisioner) const override {
    const bool is_its = kind_ == "csi" && !driver_->makes && provisioner == "disk.example.com";
    return is_its ? driver_->why_not : "";
  }
  // And deleted.
  DeletableVolumePlugin* AsDeletable() override {
    const bool deletes = kind_ == "hostPath" || kind_ == "csi" || kind_ == "flexVolume";
    return deletes ? &deletable_ : nullptr;
  }
  ExpandableVolumePlugin* AsExpandable() override { return kind_ == "csi" ? &grows_ : nullptr; }
  NodeExpandableVolumePlugin* AsNodeExpandable() override {
    return kind_ == "local" || (kind_ == "flexVolume" && !attach_->attaches) ? &expands_ : nullptr;
  }
  AttachableVolumePlugin* AsAttachable() override {
    return kind_ == "flexVolume" && attach_->attaches ? &attachable_ : nullptr;
  }
  VolumePluginWithAttachLimits* AsWithAttachLimits() override {
    return kind_ == "flexVolume" && attach_->attaches ? &attachable_ : nullptr;
  }
  BlockVolumePlugin* AsBlock() override { return kind_ == "local" ? &blocks_ : nullptr; }
  bool RequiresRemount(const VolumeSpec&) const override { return kind_ != "emptyDir"; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget&) override {
    return std::unique_ptr<Mounter>(std::make_unique<FakeMounter>(spec.name(), metrics_));
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName&, const PodUid&) override {
    return Error::NotApplied(Code::kUnimplemented, "not used");
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath&,
                                                  const CallOptions&) override {
    if (kind_ != "local") return Error::NotApplied(Code::kUnimplemented, "not used");
    PersistentVolume volume;
    volume.metadata.name = spec.str();
    volume.spec.source = LocalVolumeSource{};
    return ReconstructedVolume{VolumeSpec::FromPersistentVolume(std::move(volume), false)};
  }
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override {
    return attach_->takes_labels;
  }
  // Volumes of "nfs" are all of one server; for those of "iscsi" a driver works that is called as
  // their name up to the first '-'.
  std::string FaultDomain(const VolumeSpec& spec) const override {
    if (metrics_ && !metrics_->domain.empty()) return metrics_->domain;
    const std::string name = spec.name().str();
    if (kind_ == "iscsi") return "csi:" + name.substr(0, name.find('-'));
    if (kind_ == "csi") return "csi:disk.example.com";
    return kind_ == "nfs" ? "nfs:nas" : "";
  }
  bool WorksInLane(const VolumeSpec&) const override { return kind_ == "iscsi"; }
  std::string FaultDomainName(const VolumeSpec&) const override {
    return kind_ == "nfs" ? "NFS server nas" : "";
  }

 private:
  class FakeMounter final : public Mounter {
   public:
    FakeMounter(SpecName spec, std::shared_ptr<MetricsScript> metrics)
        : spec_(std::move(spec)), metrics_(std::move(metrics)) {}
    std::string GetPath() const override { return "/fake/" + spec_.str(); }
    Result<Metrics> GetMetrics(const CallOptions& options) override {
      return metrics_ ? metrics_->answer(spec_, options) : Result<Metrics>(NewNotSupportedError());
    }
    std::optional<MetricsPlan> PlanMetrics() override {
      if (!metrics_ || !metrics_->shares_requests) return std::nullopt;
      return MetricsPlan{
          {StatFs{GetSafePath()}},
          [](const std::vector<Result<AnyAnswer>>& answers, Duration) -> Result<Metrics> {
            if (!answers[0].ok()) return answers[0].error();
            Metrics metrics;
            metrics.used_bytes = std::get<FsInfo>(*answers[0]).used_bytes;
            return metrics;
          }};
    }
    Status SetUp(const MounterArgs&) override { return OkStatus(); }
    Status SetUpAt(const SafePath&, const MounterArgs&) override { return OkStatus(); }
    Attributes GetAttributes() const override { return {}; }
    SafePath GetSafePath() const override { return {"/fake", spec_.str(), {}}; }

   private:
    const SpecName spec_;
    const std::shared_ptr<MetricsScript> metrics_;
  };

  // The attachments of "flexVolume", which operations make, and nobody asks here but for limits.
  class NoAttachment final : public AttachableVolumePlugin, public VolumePluginWithAttachLimits {
   public:
    explicit NoAttachment(FakePlugin& plugin) : plugin_(plugin) {}
    VolumePlugin& plugin() override { return plugin_; }
    Result<std::unique_ptr<Attacher>> NewAttacher() override { return NotUsed(); }
    Result<std::unique_ptr<Detacher>> NewDetacher() override { return NotUsed(); }
    Result<bool> CanAttach(const VolumeSpec&) const override {
      if (plugin_.attach_->no_driver) return *plugin_.attach_->no_driver;
      return true;
    }
    bool VerifiesAttachments() const override { return plugin_.attach_->verifies; }
    Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override { return NotUsed(); }
    Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override { return NotUsed(); }
    Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath&,
                                                        const CallOptions&) override {
      return NotUsed();
    }
    Result<bool> CanDeviceMount(const VolumeSpec&) const override { return true; }
    Result<std::map<std::string, int64_t>> GetVolumeLimits() const override {
      ++plugin_.attach_->limits_asked;
      if (plugin_.attach_->limits_error) return *plugin_.attach_->limits_error;
      return plugin_.attach_->limits;
    }
    std::string VolumeLimitKey(const VolumeSpec&) const override { return "storage-limits-fake"; }

   private:
    static Error NotUsed() { return Error::NotApplied(Code::kUnimplemented, "not used"); }
    FakePlugin& plugin_;
  };

  class NoBlocks final : public BlockVolumePlugin {
   public:
    explicit NoBlocks(VolumePlugin& plugin) : plugin_(plugin) {}
    VolumePlugin& plugin() override { return plugin_; }
    Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec&,
                                                                    PodPtr) override {
      return Error::NotApplied(Code::kUnimplemented, "not used");
    }
    Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName&,
                                                                        const PodUid&) override {
      return Error::NotApplied(Code::kUnimplemented, "not used");
    }
    Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid&, const SpecName&, const SafePath&,
                                                const CallOptions&) override {
      return Error::NotApplied(Code::kUnimplemented, "not used");
    }

   private:
    VolumePlugin& plugin_;
  };

  class NoDevice : public DeviceMountableVolumePlugin {
   public:
    NoDevice(VolumePlugin& plugin, std::shared_ptr<AttachScript> script)
        : plugin_(plugin), script_(std::move(script)) {}
    VolumePlugin& plugin() override { return plugin_; }
    Result<std::vector<UnrecordedDevice>> FindDevices(const CallOptions&) override {
      ++script_->asked_for_found;
      if (script_->found_error) return *script_->found_error;
      return script_->found;
    }
    Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override { return NotUsed(); }
    Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override { return NotUsed(); }
    Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath&,
                                                        const CallOptions&) override {
      return NotUsed();
    }
    Result<bool> CanDeviceMount(const VolumeSpec&) const override { return true; }

   private:
    static Error NotUsed() { return Error::NotApplied(Code::kUnimplemented, "not used"); }
    VolumePlugin& plugin_;
    const std::shared_ptr<AttachScript> script_;
  };

  class Driven final : public NoDevice {
   public:
    explicit Driven(FakePlugin& plugin) : NoDevice(plugin, plugin.attach_), plugin_(plugin) {}
    Result<bool> CanDeviceMount(const VolumeSpec&) const override {
      if (plugin_.attach_->no_driver) return *plugin_.attach_->no_driver;
      return false;
    }

   private:
    FakePlugin& plugin_;
  };

  // Operations delete, and ask the fake for nothing but whether it could: not below /outside.
  class NoDeletion final : public DeletableVolumePlugin {
   public:
    // Reclaims are the fake operations'.
    class UnusedDeleter final : public Deleter {
     public:
      std::string GetPath() const override { return ""; }
      Result<Metrics> GetMetrics(const CallOptions&) override { return Metrics(); }
      Status Delete(const CallOptions&) override {
        return Error::NotApplied(Code::kUnimplemented, "a fake");
      }
    };
    explicit NoDeletion(VolumePlugin& plugin) : plugin_(plugin) {}
    VolumePlugin& plugin() override { return plugin_; }
    Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override {
      const auto* source = spec.SourceAs<HostPathVolumeSource>();
      if (source != nullptr && source->path.starts_with("/outside/")) {
        return Error::NotApplied(Code::kPermissionDenied, "only below the roots");
      }
      return std::unique_ptr<Deleter>(std::make_unique<UnusedDeleter>());
    }

   private:
    VolumePlugin& plugin_;
  };

  class Planner final : public ProvisionableVolumePlugin {
   public:
    explicit Planner(VolumePlugin& plugin) : plugin_(plugin) {}
    VolumePlugin& plugin() override { return plugin_; }
    Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override {
      if (!options.parameters.empty()) {
        return Error::NotApplied(Code::kInvalidArgument, "no such parameter");
      }
      return std::unique_ptr<Provisioner>(std::make_unique<Planned>(options));
    }

   private:
    class Planned final : public Provisioner {
     public:
      explicit Planned(VolumeOptions options) : options_(std::move(options)) {}
      Result<PersistentVolume> Plan() override {
        PersistentVolume volume;
        volume.metadata.name = options_.pv_name;
        volume.spec.capacity = options_.claim.spec.storage.request;
        volume.spec.access_modes = options_.claim.spec.access_modes;
        volume.spec.reclaim_policy = options_.reclaim_policy;
        volume.spec.source =
            HostPathVolumeSource{"/made/" + options_.pv_name, HostPathType::kUnset};
        return volume;
      }
      Result<PersistentVolume> Provision(const NodeObject*, const std::vector<TopologyTerm>&,
                                         const CallOptions&) override {
        return Error::NotApplied(Code::kUnimplemented, "operations do it");
      }

     private:
      const VolumeOptions options_;
    };

    VolumePlugin& plugin_;
  };

  class NoGrowth final : public NodeExpandableVolumePlugin {
   public:
    NoGrowth(VolumePlugin& plugin, std::shared_ptr<AttachScript> script)
        : plugin_(plugin), script_(std::move(script)) {}
    VolumePlugin& plugin() override { return plugin_; }
    bool RequiresFsResize() const override { return true; }
    bool NeedsPod(const VolumeSpec&) const override { return script_->growth_needs_pod; }
    Result<bool> NodeExpand(const NodeResizeOptions&, const CallOptions&) override {
      return Error::NotApplied(Code::kUnimplemented, "not used");
    }

   private:
    VolumePlugin& plugin_;
    const std::shared_ptr<AttachScript> script_;
  };

  // Volumes of a driver: their plan has a text, and no handle. They are made by the Secret that the
  // class's parameter "secret" names.
  class DriverPlanner final : public ProvisionableVolumePlugin {
   public:
    explicit DriverPlanner(VolumePlugin& plugin) : plugin_(plugin) {}
    VolumePlugin& plugin() override { return plugin_; }
    bool TakesContents() const override { return true; }
    Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override {
      return std::unique_ptr<Provisioner>(std::make_unique<Planned>(options));
    }

   private:
    class Planned final : public Provisioner {
     public:
      explicit Planned(VolumeOptions options) : options_(std::move(options)) {}
      Result<PersistentVolume> Plan() override {
        PersistentVolume volume;
        volume.metadata.name = options_.pv_name;
        volume.spec.capacity = options_.claim.spec.storage.request;
        volume.spec.access_modes = options_.claim.spec.access_modes;
        volume.spec.reclaim_policy = options_.reclaim_policy;
        CsiPersistentVolumeSource source;
        source.driver = "disk.example.com";
        source.volume_handle = "unknown:" + options_.pv_name;
        volume.spec.source = source;
        if (const auto secret = options_.parameters.find("secret");
            secret != options_.parameters.end()) {
          volume.metadata.annotations[kDeletionSecretName] = secret->second;
          volume.metadata.annotations[kDeletionSecretNamespace] = "default";
        }
        return volume;
      }
      std::string PlanText() override {
        std::string text = "a disk of " + options_.claim.spec.storage.request.String();
        if (options_.content) text += " from " + options_.content->handle;
        return text;
      }
      Result<PersistentVolume> Provision(const NodeObject*, const std::vector<TopologyTerm>&,
                                         const CallOptions&) override {
        return Error::NotApplied(Code::kUnimplemented, "operations do it");
      }

     private:
      const VolumeOptions options_;
    };

    VolumePlugin& plugin_;
  };

  class StorageGrowing final : public ExpandableVolumePlugin {
   public:
    explicit StorageGrowing(FakePlugin& plugin) : plugin_(plugin) {}
    VolumePlugin& plugin() override { return plugin_; }
    Result<Quantity> ExpandVolumeDevice(const VolumeSpec&, const Quantity&, const Quantity&,
                                        const CallOptions&) override {
      return Error::NotApplied(Code::kUnimplemented, "operations do it");
    }
    bool RequiresFsResize() const override { return true; }
    bool ExpandsStorage(const VolumeSpec&) const override { return plugin_.driver_->grows; }
    bool ExpandsOnlyUnused(const VolumeSpec&) const override {
      return plugin_.driver_->only_unused;
    }

   private:
    FakePlugin& plugin_;
  };

  const std::string name_;
  const std::string kind_;
  const std::shared_ptr<MetricsScript> metrics_;
  const std::shared_ptr<AttachScript> attach_;
  const std::shared_ptr<DriverScript> driver_;
  DriverPlanner driver_planner_{*this};
  StorageGrowing grows_{*this};
  NoDevice device_{*this, attach_};
  Driven driven_{*this};
  Planner planner_{*this};
  NoDeletion deletable_{*this};
  NoGrowth expands_{*this, attach_};
  NoAttachment attachable_{*this};
  NoBlocks blocks_{*this};
};

}  // namespace volumed
