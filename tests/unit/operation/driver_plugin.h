// DriverPlugin: volumes of a CSI driver, without a driver: each call is a line of text, and names
// the volume by what it was given, the handle of a spec or only a name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/metrics_nil.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"
#include "volume/driver_domain.h"

namespace volumed {

inline constexpr const char* kDriverPlugin = "kubernetes.io/csi";
inline constexpr const char* kTestDriver = "disks.test.io";

// What the plugin does, and what was done with it; outlives the plugin.
struct DriverScript {
  std::vector<std::string> calls;
  std::map<std::string, Error> failures;  // by the first word of a call, which fails once
  bool republishes = false;
  std::string device;  // that a block volume has

  Status Do(const std::string& call, const std::string& volume, bool as_recorded = false) {
    calls.push_back((as_recorded ? "prove " : "") + call + " " + volume);
    const auto failure = failures.find(call);
    if (failure == failures.end()) return OkStatus();
    const Error error = failure->second;
    failures.erase(failure);
    return error;
  }
};

inline std::string HandleOf(const VolumeSpec& spec) {
  const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
  return source == nullptr ? "?" : source->volume_handle;
}

class DriverPlugin final : public PlainVolumePlugin,
                           public AttachableVolumePlugin,
                           public BlockVolumePlugin,
                           public DeletableVolumePlugin {
 public:
  explicit DriverPlugin(DriverScript& script) : script_(script) {}

  VolumePlugin& plugin() override { return *this; }
  std::string GetPluginName() const override { return kDriverPlugin; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return std::string(kTestDriver) + "^" + HandleOf(spec);
  }
  bool CanSupport(const VolumeSpec& spec) const override { return HandleOf(spec) != "?"; }
  bool RequiresRemount(const VolumeSpec&) const override { return script_.republishes; }
  std::string FaultDomain(const VolumeSpec&) const override { return DriverDomain(kTestDriver); }
  bool WorksInLane(const VolumeSpec&) const override { return true; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override {
    return std::unique_ptr<Mounter>(
        std::make_unique<PodVolumeOf>(*this, HandleOf(spec), spec.name(), target.key.pod));
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec,
                                                  const PodUid& pod) override {
    return std::unique_ptr<Unmounter>(std::make_unique<PodVolumeOf>(*this, "?", spec, pod));
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounterOf(const VolumeSpec& recorded,
                                                    const PodUid& pod) override {
    return std::unique_ptr<Unmounter>(
        std::make_unique<PodVolumeOf>(*this, HandleOf(recorded), recorded.name(), pod));
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName&, const SafePath&,
                                                  const CallOptions&) override {
    return Error::NotApplied(Code::kUnimplemented, "nothing on disk tells");
  }
  AttachableVolumePlugin* AsAttachable() override { return this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  BlockVolumePlugin* AsBlock() override { return this; }
  DeletableVolumePlugin* AsDeletable() override { return this; }

  Result<std::unique_ptr<Attacher>> NewAttacher() override {
    return std::unique_ptr<Attacher>(std::make_unique<AttacherOf>(*this));
  }
  Result<std::unique_ptr<Detacher>> NewDetacher() override {
    return std::unique_ptr<Detacher>(std::make_unique<DetacherOf>(*this));
  }
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override {
    return std::unique_ptr<DeviceMounter>(std::make_unique<AttacherOf>(*this));
  }
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override {
    return std::unique_ptr<DeviceUnmounter>(std::make_unique<DetacherOf>(*this));
  }
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath&,
                                                      const CallOptions&) override {
    return std::vector<std::string>();
  }
  Result<bool> CanDeviceMount(const VolumeSpec&) const override { return true; }
  Result<bool> CanAttach(const VolumeSpec&) const override { return true; }

  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override {
    return std::unique_ptr<BlockVolumeMapper>(
        std::make_unique<BlockVolumeOf>(*this, HandleOf(spec), spec.name(), pod->uid()));
  }
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override {
    return std::unique_ptr<BlockVolumeUnmapper>(
        std::make_unique<BlockUnmapperOf>(*this, "?", spec, pod));
  }
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapperOf(
      const VolumeSpec& recorded, const PodUid& pod) override {
    return std::unique_ptr<BlockVolumeUnmapper>(
        std::make_unique<BlockUnmapperOf>(*this, HandleOf(recorded), recorded.name(), pod));
  }
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid&, const SpecName&, const SafePath&,
                                              const CallOptions&) override {
    return Error::NotApplied(Code::kUnimplemented, "nothing on disk tells");
  }
  Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override {
    return std::unique_ptr<Deleter>(std::make_unique<DeleterOf>(script_, HandleOf(spec)));
  }

 private:
  class PodVolumeOf final : public Mounter, public Unmounter {
   public:
    PodVolumeOf(DriverPlugin& plugin, std::string handle, const SpecName& spec, const PodUid& pod)
        : script_(plugin.script_),
          handle_(std::move(handle)),
          place_(plugin.host_->paths.GetPodVolumeDir(pod, kDriverPlugin, spec)) {}
    std::string GetPath() const override { return place_.Display(); }
    SafePath GetSafePath() const override { return place_; }
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Attributes GetAttributes() const override { return {}; }
    Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
    Status SetUpAt(const SafePath&, const MounterArgs& args) override {
      return script_.Do("publish", handle_, args.as_recorded);
    }
    Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
    Status TearDownAt(const SafePath&, const CallOptions&) override {
      return script_.Do("unpublish", handle_);
    }

   private:
    DriverScript& script_;
    const std::string handle_;
    const SafePath place_;
    MetricsNil nil_;
  };

  class AttacherOf final : public Attacher {
   public:
    explicit AttacherOf(DriverPlugin& plugin) : plugin_(plugin) {}
    Result<std::string> Attach(const VolumeSpec& spec, const NodeName&,
                               const CallOptions&) override {
      RETURN_IF_ERROR(plugin_.script_.Do("attach", HandleOf(spec)));
      return std::string("csi-0123456789abcdef");
    }
    Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                                 const NodeName&, const CallOptions&) override {
      return std::vector<bool>(specs.size(), true);
    }
    Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                      const Pod&, const CallOptions&) override {
      RETURN_IF_ERROR(plugin_.script_.Do("wait", HandleOf(spec)));
      return device_path;
    }
    Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override {
      return plugin_.host_->paths.BelowRoot(plugin_.host_->paths.root() + "/plugins/csi/" +
                                            HandleOf(spec));
    }
    Status MountDevice(const VolumeSpec& spec, const std::string&, const SafePath&,
                       const DeviceMounterArgs& args) override {
      return plugin_.script_.Do("stage", HandleOf(spec), args.as_recorded);
    }

   private:
    DriverPlugin& plugin_;
  };

  class DetacherOf final : public Detacher {
   public:
    explicit DetacherOf(DriverPlugin& plugin) : script_(plugin.script_) {}
    Status Detach(const std::string&, const NodeName&, const CallOptions&) override {
      return script_.Do("detach", "?");
    }
    Status DetachRecorded(const VolumeSpec& recorded, const std::string&, const NodeName&,
                          const CallOptions&) override {
      return script_.Do("detach", HandleOf(recorded));
    }
    Status UnmountDevice(const SafePath&, const CallOptions&) override {
      return script_.Do("unstage", "?");
    }
    Status UnmountRecorded(const VolumeSpec& recorded, const SafePath&,
                           const CallOptions&) override {
      return script_.Do("unstage", HandleOf(recorded));
    }

   private:
    DriverScript& script_;
  };

  // The paths of a block volume, whoever asks.
  template <typename Base>
  class BlockPathsOf : public Base {
   public:
    BlockPathsOf(DriverPlugin& plugin, std::string handle, SpecName spec, PodUid pod)
        : plugin_(plugin),
          handle_(std::move(handle)),
          spec_(std::move(spec)),
          pod_(std::move(pod)) {}
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override {
      return plugin_.host_->paths.GetBlockMapDir(kDriverPlugin, spec.name());
    }
    PodDeviceMapPath GetPodDeviceMapPath() const override {
      return {plugin_.host_->paths.GetPodVolumeDeviceDir(pod_, kDriverPlugin), spec_.str()};
    }

   protected:
    DriverPlugin& plugin_;
    const std::string handle_;
    const SpecName spec_;
    const PodUid pod_;
    MetricsNil nil_;
  };

  class BlockVolumeOf final : public BlockPathsOf<BlockVolumeMapper>,
                              public CustomBlockVolumeMapper {
   public:
    using BlockPathsOf::BlockPathsOf;
    CustomBlockVolumeMapper* AsCustom() override { return this; }
    Result<std::string> SetUpDevice(const CallOptions&) override { return Do("stage", false); }
    Result<std::string> MapPodDevice(const CallOptions&) override { return Do("publish", false); }
    Result<std::string> SetUpDeviceAsRecorded(const CallOptions&) override {
      return Do("stage", true);
    }
    Result<std::string> MapPodDeviceAsRecorded(const CallOptions&) override {
      return Do("publish", true);
    }
    std::string GetStagingPath() const override { return ""; }

   private:
    Result<std::string> Do(const std::string& call, bool as_recorded) {
      RETURN_IF_ERROR(plugin_.script_.Do(call, handle_, as_recorded));
      return plugin_.script_.device;
    }
  };

  class BlockUnmapperOf final : public BlockPathsOf<BlockVolumeUnmapper>,
                                public CustomBlockVolumeUnmapper {
   public:
    using BlockPathsOf::BlockPathsOf;
    CustomBlockVolumeUnmapper* AsCustom() override { return this; }
    Status TearDownDevice(const SafePath&, const std::string&, const CallOptions&) override {
      return plugin_.script_.Do("unstage", handle_);
    }
    Status UnmapPodDevice(const CallOptions&) override {
      return plugin_.script_.Do("unpublish", handle_);
    }
  };

  class DeleterOf final : public Deleter {
   public:
    DeleterOf(DriverScript& script, std::string handle)
        : script_(script), handle_(std::move(handle)) {}
    std::string GetPath() const override { return handle_; }
    Result<Metrics> GetMetrics(const CallOptions& call) override { return nil_.GetMetrics(call); }
    Status Delete(const CallOptions& call) override {
      if (call.approved != nullptr) return Error::NotApplied(Code::kInternal, "no file was asked");
      return script_.Do("delete", handle_);
    }

   private:
    DriverScript& script_;
    const std::string handle_;
    MetricsNil nil_;
  };

  DriverScript& script_;
};

}  // namespace volumed
