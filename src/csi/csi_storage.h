// CsiStorage: the storage behind volumes of CSI drivers, as their controllers make it for claims,
// delete it and make it larger: what external-provisioner and external-resizer do in a cluster.
//
// A driver is asked for a volume by a name that is the claim's alone, and always by the very same
// request, which is on record before it is sent; so however often it is asked, and whatever becomes
// of the agent meanwhile, there is one volume. What a driver answers is held against what was asked
// and against what is known of others; an answer that cannot be true is an error, and nothing is
// deleted because of it: it might be somebody's.
// Source: external-provisioner@v6.1 pkg/controller/controller.go (Provision, Delete);
// external-resizer@v2.1 pkg/resizer/csi_resizer.go (Resize); CSI spec v1.13.0, CreateVolume,
// DeleteVolume, ControllerExpandVolume.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "csi/csi_context.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"

namespace volumed {

// In place of a handle in a volume that is planned: the driver has not said it yet. No volume that
// was made has one like it.
inline constexpr char kCsiUnknownHandle[] = "unknown:";

// Threads: any. What a driver's controller can do is asked of what the driver once said, so that
// one that is away changes no answer.
class CsiStorage final : public DeletableVolumePlugin, public ExpandableVolumePlugin {
 public:
  // Both outlive this object, and what it makes.
  CsiStorage(const CsiContext& context, VolumePlugin& plugin);
  ~CsiStorage() override;

  // Null for a driver that was never seen here, or whose controller here makes no volumes. Valid as
  // long as this object. Blocks: never.
  ProvisionableVolumePlugin* ProvisionerOf(const std::string& driver) EXCLUDES(mu_);
  // Why ProvisionerOf() answers null, for people; empty if it does not, and for what is no name of
  // a driver. Blocks: never.
  std::string WhyNoProvisionerOf(const std::string& driver) const;

  VolumePlugin& plugin() override { return plugin_; }

  // Of volumes that the driver has made for a claim, as their annotation says. Errors, not applied:
  // Unavailable for a driver that was never seen here; FailedPrecondition for a volume that is not
  // the driver's to delete, and for a driver without a controller here; InvalidArgument for another
  // plugin's volume, or one without a handle.
  Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override;

  Result<Quantity> ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                      const Quantity& old_size, const CallOptions& call) override;
  // What a node has to do is said by each answer.
  bool RequiresFsResize() const override { return true; }
  bool ExpandsStorage(const VolumeSpec& spec) const override;
  // The driver says that it expands volumes OFFLINE, and not ONLINE.
  bool ExpandsOnlyUnused(const VolumeSpec& spec) const override;
  Result<ExpandedStorage> ExpandStorage(const VolumeSpec& spec, const Quantity& new_size,
                                        const Quantity& old_size, const CallOptions& call) override;

 private:
  class OfDriver;

  const CsiContext& context_;
  VolumePlugin& plugin_;
  Mutex mu_;
  std::map<std::string, std::unique_ptr<OfDriver>> of_drivers_ GUARDED_BY(mu_);
};

// One volume of the driver for a claim, by the options (csi_provisioner.cc).
Result<std::unique_ptr<Provisioner>> NewCsiProvisioner(const CsiContext& context,
                                                       const std::string& driver,
                                                       const VolumeOptions& options);

// Asks the driver to delete what the volume's source names. Storage that is not there is success.
// Blocks: until the answer or the deadline. Errors: IsDeletedVolumeInUse() if the driver says that
// somebody has it, or if this node has, on record or not; those of the Secret, not applied; those
// of ListMounts and CallDriver().
Status DeleteCsiStorage(const CsiContext& context, const PersistentVolume& volume,
                        const CallOptions& call);

// Whether this node has anything of the driver's volume, by the rows of its devices; "" or a text
// for people.
std::string WhoHasOnNode(const CsiContext& context, const std::string& driver,
                         const std::string& handle);

// What of the driver's volume a start has found mounted and on no record, and still is. What says
// only by its place which volume it is counts, too, if the persistent volume has such places.
// Blocks: as ListMounts. Errors: those of ListMounts.
Result<std::vector<UnrecordedMounts::Mounted>> MountsWithoutRecord(const CsiContext& context,
                                                                   const std::string& driver,
                                                                   const std::string& handle,
                                                                   const SpecName& volume,
                                                                   const CallOptions& call);

}  // namespace volumed
