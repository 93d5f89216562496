// Publishing of CSI volumes with a filesystem: NodePublishVolume as SetUp, NodeUnpublishVolume as
// TearDown.
// Source: kubernetes pkg/volume/csi/csi_mounter.go@v1.36.2.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_context.h"
#include "csi/csi_devices.h"
#include "csi/csi_names.h"
#include "csi/csi_node_requests.h"
#include "csi/csi_proof.h"
#include "mounter/mounter.h"
#include "mounter/volume_target.h"
#include "os/kernel.h"

namespace volumed {

// The tokens that the driver's CSIDriver asks for, of the pod's service account; none if it asks
// for none. Threads: any. Blocks: as HostTokens. Errors: those of HostTokens, as Unavailable, not
// applied; that of NoPod.
Result<std::vector<CsiToken>> TokensFor(const CsiContext& context, const CsiVolume& volume,
                                        const CsiDriverObject* object, const VolumeTarget& target);

// Calls the driver to take a volume from a pod, and proves that it is gone. A driver that does not
// know the volume has taken it if nothing is mounted there. Nothing is removed. Threads: one call
// at a time per volume. Blocks: until the deadline. Errors: those of the driver; that of
// DriverLied().
Status UnpublishVolume(const CsiContext& context, const CsiVolumeId& volume, const SafePath& target,
                       const CallOptions& call);

// SetUp publishes, and then proves by the mount table that the driver has done what it said; then
// the volume gets its group, if that is not the driver's. The volume is published again after a
// while if its CSIDriver says requiresRepublish, and when a token is due to be renewed.
// Errors of SetUp: those of the driver; that of DriverLied(); Unavailable, not applied, for what
// may still come: a driver, its CSIDriver, a Secret, a lifecycle mode; that of NoPod; Internal,
// maybe applied, if a volume is not as its record says. A refusal leaves nothing behind, but a
// volume that was set up before is left as it is. Threads: one call at a time. Blocks: until the
// call's deadline.
class CsiMounter final : public Mounter {
 public:
  // The context outlives this object.
  CsiMounter(const CsiContext& context, CsiVolume volume, VolumeTarget target);

  std::string GetPath() const override { return path_.Display(); }
  SafePath GetSafePath() const override { return path_; }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(path_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;
  Attributes GetAttributes() const override { return attributes_; }
  std::optional<Freshness> freshness() const override { return freshness_; }
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  // What one set-up finds out.
  struct SettingUp {
    CsiDriverFacts driver;
    KubeletHost::CsiDriverPtr object;
    CsiStaging staging;
    CsiPublishWish wish;
  };
  Result<SettingUp> Prepare(const SafePath& dir, const MounterArgs& args) const;
  Status Publish(const SettingUp& setting_up, const SafePath& dir, const MounterArgs& args);
  // As LookAtPublished(); of a volume whose growth has begun it must be what was there before, too.
  Result<CsiFinding> LookAtGiven(const PublishedLook& look, const CallOptions& call) const;
  Status GiveGroup(const SettingUp& setting_up, const SafePath& dir, const MounterArgs& args) const;
  Status ProveAsRecorded(const SafePath& dir, const CallOptions& call);
  void SetFreshness(const CsiDriverObject* object, const std::vector<CsiToken>& tokens);

  const CsiContext& context_;
  const CsiVolume volume_;
  const VolumeTarget target_;
  const SafePath path_;
  Attributes attributes_;
  std::optional<Freshness> freshness_;
};

// TearDown calls the driver by what the record says of the volume, else by vol_data.json, and
// removes what was made for the volume. Errors: those of UnpublishVolume(); that of DriverLied()
// for what the driver leaves; FailedPrecondition, not applied, if something is mounted of which
// nothing says whose it is. Threads: one call at a time. Blocks: until the call's deadline.
class CsiUnmounter final : public Unmounter {
 public:
  // `recorded` is what the volume's record says; nullopt if there is none. The context outlives
  // this object.
  CsiUnmounter(const CsiContext& context, SafePath path, std::optional<CsiVolumeId> recorded);

  std::string GetPath() const override { return path_.Display(); }
  Status TearDown(const CallOptions& call) override { return TearDownAt(path_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override;
  // NotSupported, always: what is torn down is not measured.
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  Status TearDownUnknown(const SafePath& dir, const std::string& why, const CallOptions& call);

  const CsiContext& context_;
  const SafePath path_;
  const std::optional<CsiVolumeId> recorded_;
};

}  // namespace volumed
