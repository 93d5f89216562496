// nfs: an export of an NFS server, mounted for each pod by mount.nfs.
// Source: kubernetes pkg/volume/nfs/nfs.go@v1.36.2.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "mounter/nfs_mount.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"
#include "pluginmgr/volume_options.h"

namespace volumed {

inline constexpr char kNfsPluginName[] = "kubernetes.io/nfs";

struct NfsSettings {
  // The recycler pod's template and timeouts.
  VolumeConfig config;
  // Runs recycler pods; outlives the plugin. Null: volumes are not recycled.
  RecyclerPodRunner* recycler_pods = nullptr;
  // How long an unmount that begins now may take before it is forced. Threads: any.
  std::function<Duration()> unmount_timeout = NfsUnmountTimes().unmount;
  // For a forced unmount, which waits for no server.
  Duration force_timeout = NfsUnmountTimes().force;
  // For what comes after an unmount, which may have used up the step's time.
  Duration remove_timeout = std::chrono::seconds(10);
};

// Each pod has a mount of its own; nothing is attached and no ownership is changed.
//
// A server that does not answer hangs everything that touches its volumes. So all its volumes are
// one fault domain, "nfs:<server>", and only the mount table is asked whether a volume is mounted.
//
// A teardown unmounts for at most `unmount_timeout`, and then by force, but never lazily. A forced
// unmount fails every request to the server that the kernel is making for that filesystem, so it is
// made only if no other mount shows the same filesystem. (Kubelet's ends the requests of other
// pods, too.) A volume that a process still uses stays mounted.
class NfsPlugin final : public PlainVolumePlugin,
                        public PersistentVolumePlugin,
                        public RecyclableVolumePlugin {
 public:
  explicit NfsPlugin(NfsSettings settings = {}) : settings_(std::move(settings)) {}

  std::string GetPluginName() const override { return kNfsPluginName; }
  // "<server>/<path>"
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // CanMount of the mounter fails with NotFound, naming the package, if there is no mount.nfs.
  // SetUp keeps an NFS mount that is there; it fails with FailedPrecondition, not applied, if
  // something else is mounted there, and with Unavailable, maybe applied, if mount.nfs ends well
  // without a mount. The mount is read-only if the source or the claim says so.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  // TearDown blocks for its own timeouts, whatever the call's deadline. If the plain unmount hangs
  // and may not be forced, its error is answered, and names the other place that shows the same
  // filesystem. An error after the unmount is maybe applied.
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // The spec has the server and path of the mount table if the volume is mounted; otherwise, as in
  // kubelet, the volume's name as its path, and no server.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  // "nfs:<server>", the lane of the server in os/fault_domain.h; empty if the spec is no NFS
  // volume.
  std::string FaultDomain(const VolumeSpec& spec) const override;
  // "NFS server <server>".
  std::string FaultDomainName(const VolumeSpec& spec) const override;

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  RecyclableVolumePlugin* AsRecyclable() override { return this; }

  std::vector<AccessMode> GetAccessModes() const override {
    return {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany, AccessMode::kReadWriteMany};
  }
  // Errors: InvalidArgument if it is not a persistent NFS volume; Unimplemented if nothing runs
  // recycler pods; those of the recycler.
  Status Recycle(const std::string& pv_name, const VolumeSpec& spec,
                 const RecycleEventRecorder& recorder, const CallOptions& call) override;

 private:
  const NfsSettings settings_;
};

}  // namespace volumed
