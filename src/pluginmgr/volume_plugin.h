// VolumePlugin: one type of volume, and its capabilities as accessors.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (VolumePlugin).
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"
#include "mounter/mounter.h"
#include "mounter/volume_target.h"
#include "volume/volume_spec.h"
#include "volumehost/volume_host.h"

namespace volumed {

class WrapperVolumes;

// What a spec looks like after a restart, built from what is on disk.
struct ReconstructedVolume {
  VolumeSpec spec;
};

// What a plugin is given at Init; everything outlives the plugin.
struct PluginContext {
  VolumeHost& host;
  // emptyDir volumes for plugins that fill one (secret, configMap, ...).
  WrapperVolumes& wrapper_volumes;
};

// The capabilities; each has its own header.
class PersistentVolumePlugin;
class RecyclableVolumePlugin;
class DeletableVolumePlugin;
class ProvisionableVolumePlugin;
class AttachableVolumePlugin;
class DeviceMountableVolumePlugin;
class ExpandableVolumePlugin;
class NodeExpandableVolumePlugin;
class BlockVolumePlugin;
class VolumePluginWithAttachLimits;

// Threads: any, after Init. Blocks: only if a Deadline or CallOptions is in the signature.
class VolumePlugin {
 public:
  virtual ~VolumePlugin() = default;

  // Called once, before anything else. After an error the plugin is not used.
  virtual Status Init(PluginContext context) = 0;

  // "kubernetes.io/empty-dir"
  virtual std::string GetPluginName() const = 0;
  // Names the backing path or device, for UniqueVolumeName. InvalidArgument if the spec is not this
  // plugin's.
  virtual Result<std::string> GetVolumeName(const VolumeSpec& spec) const = 0;
  // Whether the source is of this plugin's kind. Pure.
  virtual bool CanSupport(const VolumeSpec& spec) const = 0;
  // Whether set-up is to be repeated when objects change.
  virtual bool RequiresRemount(const VolumeSpec& spec) const = 0;
  // Neither has side effects, and the plugin outlives what is made. NewUnmounter works from what is
  // on disk. InvalidArgument, not applied, for a target without a pod if the volume is made from
  // one.
  virtual Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                                      const VolumeTarget& target) = 0;
  virtual Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec,
                                                          const PodUid& pod) = 0;
  // The same for a volume of which the record says what it was: the first witness for a plugin that
  // has to name it to somebody.
  virtual Result<std::unique_ptr<Unmounter>> NewUnmounterOf(const VolumeSpec& recorded,
                                                            const PodUid& pod) {
    return NewUnmounter(recorded.name(), pod);
  }
  virtual Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec,
                                                          const SafePath& volume_path,
                                                          const CallOptions& call) = 0;
  virtual bool SupportsMountOption() const = 0;
  virtual bool SupportsSELinuxContextMount(const VolumeSpec& spec) const = 0;
  // What the plugin's volumes may hang together with, for CallOptions::domain: empty for those that
  // lie on the agent's own filesystem or a tmpfs; hostPath answers the path.
  virtual std::string FaultDomain(const VolumeSpec& spec) const = 0;
  // What that is, for people, if many volumes share it and it may stop to answer as a whole: "NFS
  // server nas-1". Such a domain is looked at now and then. Empty: it is not.
  virtual std::string FaultDomainName(const VolumeSpec&) const { return ""; }
  // Whether all that is done with the volume is a call to a driver which has a lane of its own
  // (volume/driver_domain.h), also where nothing of it is on the node yet: attach, detach, growth,
  // making and deleting it. FaultDomain() then names the driver. Where it is false, such operations
  // wait for a device or a program, and have the lane of those (kUnboundLane). Pure.
  virtual bool WorksInLane(const VolumeSpec&) const { return false; }

  // Objects beside those that the source names for its content (the CSIDriver, Secrets of the
  // volume): a change of one may let succeed what has failed, and does not by itself set up again
  // what is set up. Pure.
  virtual std::set<ObjectKey> DependsOn(const VolumeSpec&) const { return {}; }

  // What its volumes hand out is there without them: nothing of one lies in its pod's directory but
  // sub-paths, and nothing has to be made again while its row says that it is set up (hostPath).
  virtual bool HandsOutWhatIsThere() const { return false; }

  // Where the node shows the volume's device or directory, if that comes without the agent: when
  // one of these paths appears, or something is mounted at one or above it, a mount that failed is
  // tried again at once. Pure.
  virtual std::vector<std::string> DevicePaths(const VolumeSpec&) const { return {}; }

  // Null if the plugin lacks the capability; constant after Init; owned by the plugin.
  virtual PersistentVolumePlugin* AsPersistent() { return nullptr; }
  virtual RecyclableVolumePlugin* AsRecyclable() { return nullptr; }
  virtual DeletableVolumePlugin* AsDeletable() { return nullptr; }
  virtual ProvisionableVolumePlugin* AsProvisionable() { return nullptr; }
  // For a plugin whose volumes are made by drivers: the one that makes volumes for classes with
  // this provisioner, which is the name of a driver. Null: there is no such driver, or it makes
  // none here; that may change at any time. Valid as long as the plugin. Blocks: never.
  virtual ProvisionableVolumePlugin* AsProvisionerOf(const std::string& /*provisioner*/) {
    return nullptr;
  }
  virtual AttachableVolumePlugin* AsAttachable() { return nullptr; }
  virtual DeviceMountableVolumePlugin* AsDeviceMountable() { return nullptr; }
  virtual ExpandableVolumePlugin* AsExpandable() { return nullptr; }
  virtual NodeExpandableVolumePlugin* AsNodeExpandable() { return nullptr; }
  virtual BlockVolumePlugin* AsBlock() { return nullptr; }
  virtual VolumePluginWithAttachLimits* AsWithAttachLimits() { return nullptr; }
};

}  // namespace volumed
