#include "csi/csi_attach.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "csi.pb.h"
#include "csi/rpc/csi_outcome.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using ControllerRpc = ::csi::v1::ControllerServiceCapability_RPC;
using AttachmentPtr = AttachDetachHost::VolumeAttachmentPtr;

// Source: the reason of a pod's status in kubernetes pkg/kubelet/volumemanager@v1.36.2
// (VolumeAttachmentLimitExceeded).
constexpr const char* kLimitExceeded = "VolumeAttachmentLimitExceeded";

// A volume on this node.
struct Target {
  CsiVolumeId id;
  UniqueVolumeName device;
  NodeName node;
  std::string attachment;  // the name of its VolumeAttachment
};

Target TargetOf(CsiVolumeId id, const NodeName& node) {
  const UniqueVolumeName device = CsiUniqueName(id.driver, id.handle);
  std::string attachment = CsiAttachmentName(id.handle, id.driver, node.str());
  return {std::move(id), device, node, std::move(attachment)};
}

Error Refused(Code code, const Target& target, const std::string& why) {
  return Error::NotApplied(
      code, "volume " + target.id.handle + " of CSI driver " + target.id.driver + ": " + why);
}

// NotFound also if this agent knows of no VolumeAttachments at all.
Result<AttachmentPtr> FindAttachment(const CsiContext& context, const std::string& name) {
  if (context.host.attach_detach != nullptr) {
    return context.host.attach_detach->GetVolumeAttachment(name);
  }
  return Error::NotApplied(Code::kNotFound, "volumeattachment " + name + " not found");
}

std::string ErrorText(const std::optional<VolumeError>& error) {
  return error && !error->message.empty() ? ": " + error->message : "";
}

// The VolumeAttachment, once it says that the volume is attached.
// Source: csi_attacher.go@v1.36.2 (verifyAttachmentStatus).
Result<AttachmentPtr> AttachedObject(const CsiContext& context, const Target& target) {
  const Result<AttachmentPtr> found = FindAttachment(context, target.attachment);
  if (!found.ok() && found.error().code() == Code::kNotFound) {
    return Refused(
               Code::kUnavailable, target,
               "waits for its attacher: no source has the VolumeAttachment " + target.attachment)
        .About(kAttacherAway);
  }
  if (!found.ok()) return found.error().With("VolumeAttachment " + target.attachment);
  const VolumeAttachment& attachment = **found;
  if (attachment.attacher != target.id.driver || attachment.node_name != target.node.str()) {
    return Refused(Code::kFailedPrecondition, target,
                   "VolumeAttachment " + target.attachment + " is of attacher " +
                       attachment.attacher + " and node " + attachment.node_name);
  }
  if (attachment.metadata.deletion_unix_millis) {
    return Refused(Code::kUnavailable, target,
                   "volume attachment is being deleted: " + target.attachment);
  }
  if (attachment.attached) return *found;
  if (const std::optional<VolumeError>& error = attachment.attach_error) {
    const Code code = error->error_code ? CsiCode(*error->error_code) : Code::kUnknown;
    return Refused(code, target,
                   "VolumeAttachment " + target.attachment + ErrorText(attachment.attach_error));
  }
  return Refused(Code::kUnavailable, target,
                 "is not attached for volume attachment " + target.attachment)
      .About(kAttacherAway);
}

// ---- Attaching ----

// Both attachers are told apart by nothing but this: whoever finds the other at work stays away.
Error TwoAttachers(const Target& target, const std::string& of) {
  return Refused(Code::kFailedPrecondition, target,
                 "the agent does not attach it by the driver's controller: a source has " + of +
                     ", so somebody else attaches");
}

class CsiAttacher final : public Attacher {
 public:
  CsiAttacher(CsiAttaching& attaching, std::unique_ptr<DeviceMounter> stager)
      : attaching_(attaching), context_(attaching.context()), stager_(std::move(stager)) {}

  Result<std::string> Attach(const VolumeSpec& spec, const NodeName& node,
                             const CallOptions& call) override;
  Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                               const NodeName& node,
                                               const CallOptions& call) override;
  Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                    const Pod& pod, const CallOptions& call) override;
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override {
    return stager_->GetDeviceMountPath(spec);
  }
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override {
    return stager_->MountDevice(spec, device_path, device_mount_path, args);
  }

 private:
  AttachWay RecordedWay(const Target& target) const;
  Result<AttachWay> WayOf(const Target& target);
  Result<AttachWay> NewWay(const Target& target);
  Status AttachByObjects(const Target& target);
  Status AttachByController(const CsiVolume& volume, const Target& target, const CallOptions& call);

  CsiAttaching& attaching_;
  const CsiContext& context_;
  const std::unique_ptr<DeviceMounter> stager_;
};

Result<std::string> CsiAttacher::Attach(const VolumeSpec& spec, const NodeName& node,
                                        const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(spec));
  const Target target = TargetOf({volume.driver, volume.handle}, node);
  ASSIGN_OR_RETURN(const AttachWay way, WayOf(target));
  const Status attached = way == AttachWay::kByObjects ? AttachByObjects(target)
                                                       : AttachByController(volume, target, call);
  if (attached.ok()) {
    attaching_.NotExhausted(target.device);
    return target.attachment;
  }
  const Error& error = attached.error();
  if (error.code() == Code::kResourceExhausted && !error.IsAbout(kCsiNeverSent)) {
    attaching_.Exhausted(spec, volume.driver, target.device, error);
  } else {
    attaching_.NotExhausted(target.device);
  }
  return error;
}

AttachWay CsiAttacher::RecordedWay(const Target& target) const {
  const std::optional<DeviceRecord> record = context_.parts.devices.Find(target.device);
  return record ? record->attach_way : AttachWay::kNotKnown;
}

Result<AttachWay> CsiAttacher::WayOf(const Target& target) {
  switch (RecordedWay(target)) {
    case AttachWay::kByObjects:
      return AttachWay::kByObjects;
    case AttachWay::kByController:
      if (FindAttachment(context_, target.attachment).ok()) {
        return TwoAttachers(target, "the VolumeAttachment " + target.attachment);
      }
      return AttachWay::kByController;
    case AttachWay::kNotKnown:
      return NewWay(target);
  }
  return NewWay(target);
}

Result<AttachWay> CsiAttacher::NewWay(const Target& target) {
  const CsiAttach setting = context_.parts.settings.Get().attach;
  if (setting == CsiAttach::kObjects) return AttachWay::kByObjects;
  const Result<AttachmentPtr> found = FindAttachment(context_, target.attachment);
  if (!found.ok() && found.error().code() != Code::kNotFound) {
    // Before all sources have said what they have, nobody knows who attaches.
    return found.error().With("VolumeAttachment " + target.attachment);
  }
  if (found.ok() || attaching_.HasObjects(target.id.driver)) {
    if (setting == CsiAttach::kAuto) return AttachWay::kByObjects;
    return TwoAttachers(target, found.ok() ? "the VolumeAttachment " + target.attachment
                                           : "VolumeAttachments of the driver");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<CsiDriver> driver, FindDriver(context_, target.id.driver));
  if (driver->facts().HasController(ControllerRpc::PUBLISH_UNPUBLISH_VOLUME)) {
    return AttachWay::kByController;
  }
  const std::string why = driver->WhyNoController();
  const bool has_none =
      driver->facts().controller_capabilities.empty() && !driver->controller_link();
  const std::string controller =
      !why.empty() ? why
      : has_none   ? "the driver serves no controller here"
                   : "its controller cannot attach (it has no PUBLISH_UNPUBLISH_VOLUME)";
  return Refused(Code::kFailedPrecondition, target,
                 "needs an attacher: no source has VolumeAttachments, and " + controller +
                     "; for a driver that attaches nothing apply a CSIDriver " + target.id.driver +
                     " with attachRequired: false");
}

Status CsiAttacher::AttachByObjects(const Target& target) {
  ASSIGN_OR_RETURN(const AttachmentPtr attachment, AttachedObject(context_, target));
  return context_.parts.devices.SetAttachment(target.device, AttachWay::kByObjects, "",
                                              attachment->attachment_metadata);
}

Status CsiAttacher::AttachByController(const CsiVolume& volume, const Target& target,
                                       const CallOptions& call) {
  DeviceRecordKeeper& devices = context_.parts.devices;
  ASSIGN_OR_RETURN(const CsiDriverFacts facts, FactsOf(context_, target.id.driver));
  const std::optional<DeviceRecord> record = devices.Find(target.device);
  const bool is_repeated = record && record->attach_way == AttachWay::kByController;
  if (is_repeated && record->node_id != facts.node_id) {
    return Refused(Code::kFailedPrecondition, target,
                   "it may be attached to node \"" + record->node_id +
                       "\", and the driver calls this node \"" + facts.node_id +
                       "\" now: it has to be detached first");
  }
  // Whatever becomes of the call and of the agent, the volume is detached by this way.
  if (!is_repeated) {
    RETURN_IF_ERROR(
        devices.SetAttachment(target.device, AttachWay::kByController, facts.node_id, {}));
  }
  const Result<StringMap> context = ControllerPublish(context_, facts, volume, call);
  if (!context.ok()) {
    // The driver may call this node otherwise by now.
    if (context.error().code() == Code::kNotFound) attaching_.Refresh(target.id.driver);
    return context.error();
  }
  const Status recorded =
      devices.SetAttachment(target.device, AttachWay::kByController, facts.node_id, *context);
  if (!recorded.ok()) return recorded.error().AsMaybeApplied();
  return attaching_.published().Prove(target.id, facts.node_id, /*attached=*/true, call);
}

Result<std::string> CsiAttacher::WaitForAttach(const VolumeSpec& spec, const std::string&,
                                               const Pod&, const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(spec));
  const NodeName node = context_.host.node.GetNodeName();
  const Target target = TargetOf({volume.driver, volume.handle}, node);
  switch (RecordedWay(target)) {
    case AttachWay::kByController:
      return target.attachment;
    case AttachWay::kByObjects:
      // Whoever attaches may have done so anew since, and with another answer.
      RETURN_IF_ERROR(AttachByObjects(target));
      return target.attachment;
    case AttachWay::kNotKnown:
      break;
  }
  // It was found without a record that says how it came here, so nobody knows its context.
  return Attach(spec, node, call);
}

// ---- Are they attached? ----

// One answer for each, and for whom a driver has to be asked.
struct Verification {
  std::vector<char> attached;  // not bool: each is written by the thread that asks its driver
  struct OfDriver {
    CsiPublishedNodes::Question question;
    std::map<std::string, std::vector<size_t>> places;  // by handle
  };
  std::map<std::string, OfDriver> drivers;
};

// By objects, only what is certain counts: an object that cannot be had says nothing.
bool MayBeAttached(const Result<AttachmentPtr>& attachment) {
  if (attachment.ok()) return (*attachment)->attached;
  return attachment.error().code() != Code::kNotFound;
}

Verification BeginVerification(const CsiContext& context, const std::vector<VolumeSpec>& specs,
                               const NodeName& node) {
  Verification verification;
  verification.attached.assign(specs.size(), true);
  for (size_t i = 0; i < specs.size(); ++i) {
    const Result<CsiVolume> volume = CsiVolumeOf(specs[i]);
    if (!volume.ok()) continue;
    const Target target = TargetOf({volume->driver, volume->handle}, node);
    const std::optional<DeviceRecord> record = context.parts.devices.Find(target.device);
    if (!record) continue;
    if (record->attach_way == AttachWay::kByObjects) {
      verification.attached[i] = MayBeAttached(FindAttachment(context, target.attachment));
    } else if (record->attach_way == AttachWay::kByController) {
      Verification::OfDriver& of_driver = verification.drivers[volume->driver];
      of_driver.question[volume->handle] = record->node_id;
      of_driver.places[volume->handle].push_back(i);
    }
  }
  return verification;
}

Result<std::vector<bool>> CsiAttacher::VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                                          const NodeName& node,
                                                          const CallOptions& call) {
  Verification verification = BeginVerification(context_, specs, node);
  // A token has one hook, and several threads would want it. The calls are short.
  CallOptions each = call;
  each.cancel = nullptr;
  std::vector<std::function<void()>> tasks;
  for (const auto& [driver, of_driver] : verification.drivers) {
    tasks.push_back([this, &each, &verification, driver = &driver, of_driver = &of_driver] {
      const auto listed = attaching_.published().Ask(*driver, of_driver->question, each);
      for (const auto& [handle, is_attached] : listed) {
        const auto places = of_driver->places.find(handle);
        if (places == of_driver->places.end()) continue;
        for (const size_t place : places->second) verification.attached[place] = is_attached;
      }
    });
  }
  RunSideBySide(attaching_.scheduler(), std::move(tasks));
  return std::vector<bool>(verification.attached.begin(), verification.attached.end());
}

// ---- Detaching ----

class CsiDetacher final : public Detacher {
 public:
  CsiDetacher(CsiAttaching& attaching, std::unique_ptr<DeviceUnmounter> unstager)
      : attaching_(attaching), context_(attaching.context()), unstager_(std::move(unstager)) {}

  Status Detach(const std::string& volume_name, const NodeName& node,
                const CallOptions& call) override {
    ASSIGN_OR_RETURN(CsiVolumeId id, IdOf(volume_name));
    return DetachFrom(TargetOf(std::move(id), node), nullptr, call);
  }
  Status DetachRecorded(const VolumeSpec& recorded, const std::string& volume_name,
                        const NodeName& node, const CallOptions& call) override;
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override {
    return unstager_->UnmountDevice(device_mount_path, call);
  }
  Status UnmountRecorded(const VolumeSpec& recorded, const SafePath& device_mount_path,
                         const CallOptions& call) override {
    return unstager_->UnmountRecorded(recorded, device_mount_path, call);
  }

 private:
  static Result<CsiVolumeId> IdOf(const std::string& volume_name);
  Status CheckNothingAt(const Target& target, const SafePath& place, const CallOptions& call) const;
  Status DetachFrom(const Target& target, const CsiVolume* recorded, const CallOptions& call);
  Status DetachByController(const Target& target, const std::string& node_id,
                            const CsiVolume* recorded, const CallOptions& call);
  Status DetachByObjects(const Target& target) const;

  CsiAttaching& attaching_;
  const CsiContext& context_;
  const std::unique_ptr<DeviceUnmounter> unstager_;
};

Result<CsiVolumeId> CsiDetacher::IdOf(const std::string& volume_name) {
  std::optional<CsiVolumeId> id = ParseCsiVolumeName(volume_name);
  if (id) return *std::move(id);
  return Error::NotApplied(Code::kInvalidArgument,
                           "\"" + volume_name + "\" is no volume of a CSI driver");
}

Status CsiDetacher::DetachRecorded(const VolumeSpec& recorded, const std::string& volume_name,
                                   const NodeName& node, const CallOptions& call) {
  ASSIGN_OR_RETURN(CsiVolumeId id, IdOf(volume_name));
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(recorded));
  if (CsiVolumeId{volume.driver, volume.handle} != id) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the record of volume " + volume_name + " is of " +
                                 CsiVolumeName(volume.driver, volume.handle));
  }
  RETURN_IF_ERROR(CheckNothingAt(TargetOf(id, node),
                                 CsiBlockStagingPath(context_.host.paths, recorded.name()), call));
  return DetachFrom(TargetOf(std::move(id), node), &volume, call);
}

// The record has one place alone. A disk never leaves under a mount that it does not tell of.
Status CsiDetacher::CheckNothingAt(const Target& target, const SafePath& place,
                                   const CallOptions& call) const {
  ASSIGN_OR_RETURN(const MountListing there,
                   context_.kernel().Call(ListMounts{.below = place.Display()}, call));
  if (there.mounts.empty()) return OkStatus();
  return Refused(Code::kFailedPrecondition, target,
                 "it is not detached: " + there.mounts.front().mount_point + " is still mounted");
}

Status CsiDetacher::DetachFrom(const Target& target, const CsiVolume* recorded,
                               const CallOptions& call) {
  RETURN_IF_ERROR(CheckNothingAt(
      target, CsiStagingPath(context_.host.paths, target.id.driver, target.id.handle), call));
  const std::optional<DeviceRecord> record = context_.parts.devices.Find(target.device);
  const AttachWay way = record ? record->attach_way : AttachWay::kNotKnown;
  // Without a way nothing was ever sent to a controller from here: if it is attached, somebody else
  // has done it.
  const Status detached = way == AttachWay::kByController
                              ? DetachByController(target, record->node_id, recorded, call)
                              : DetachByObjects(target);
  if (detached.ok()) attaching_.NotExhausted(target.device);
  return detached;
}

Status CsiDetacher::DetachByController(const Target& target, const std::string& node_id,
                                       const CsiVolume* recorded, const CallOptions& call) {
  if (node_id.empty()) {
    return Refused(Code::kFailedPrecondition, target,
                   "the record does not say how the driver called this node when it was attached");
  }
  RETURN_IF_ERROR(ControllerUnpublish(context_, target.id, node_id, recorded, call));
  return attaching_.published().Prove(target.id, node_id, /*attached=*/false, call);
}

Status CsiDetacher::DetachByObjects(const Target& target) const {
  const Result<AttachmentPtr> found = FindAttachment(context_, target.attachment);
  if (!found.ok() && found.error().code() == Code::kNotFound) return OkStatus();
  if (!found.ok()) return found.error().With("VolumeAttachment " + target.attachment);
  if (!(*found)->attached) return OkStatus();
  return Refused(Code::kUnavailable, target,
                 "waits for its attacher to detach it: VolumeAttachment " + target.attachment +
                     " says that it is attached" + ErrorText((*found)->detach_error))
      .About(kAttacherAway);
}

}  // namespace

// ---- CsiAttaching ----

CsiAttaching::CsiAttaching(const CsiContext& context, Scheduler& scheduler)
    : context_(context), scheduler_(scheduler), published_(context) {
  if (context_.host.kubelet == nullptr) return;
  ticker_ = std::make_unique<CsiAllocatableTicker>(scheduler_, context_.parts.drivers,
                                                   *context_.host.kubelet);
}

std::unique_ptr<Attacher> CsiAttaching::NewAttacher(std::unique_ptr<DeviceMounter> stager) {
  return std::make_unique<CsiAttacher>(*this, std::move(stager));
}

std::unique_ptr<Detacher> CsiAttaching::NewDetacher(std::unique_ptr<DeviceUnmounter> unstager) {
  return std::make_unique<CsiDetacher>(*this, std::move(unstager));
}

// Source: csi_plugin.go@v1.36.2 (CanAttach). Kubelet has no record, and takes a driver that it does
// not know for one that attaches.
Result<bool> CsiAttaching::CanAttach(const VolumeSpec& spec) const {
  if (spec.SourceAs<CsiVolumeSource>() != nullptr) return false;
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(spec));
  const std::optional<DeviceRecord> record =
      context_.parts.devices.Find(CsiUniqueName(volume.driver, volume.handle));
  if (record && !IsGone(*record)) return record->attachable;
  RETURN_IF_ERROR(FactsOf(context_, volume.driver));
  ASSIGN_OR_RETURN(const KubeletHost::CsiDriverPtr object,
                   CsiDriverObjectOf(context_, volume.driver));
  return object == nullptr || object->attach_required;
}

bool CsiAttaching::VerifyExhaustedResource(const VolumeSpec& spec) const {
  const Result<CsiVolume> volume = CsiVolumeOf(spec);
  if (!volume.ok()) return false;
  MutexLock lock(mu_);
  return exhausted_.contains(CsiUniqueName(volume->driver, volume->handle));
}

void CsiAttaching::Exhausted(const VolumeSpec& spec, const std::string& driver,
                             const UniqueVolumeName& device, const Error& error) {
  {
    MutexLock lock(mu_);
    exhausted_.insert(device);
  }
  // Kubelet does this only if the CSIDriver has a period; the limit is wrong either way.
  Refresh(driver);
  const PersistentVolume* volume = spec.persistent_volume();
  // What stands in for an inline volume is no object.
  if (volume == nullptr || spec.inline_for_csi_migration()) return;
  context_.host.events.RecordVolumeEvent(volume->metadata.name, EventType::kWarning, kLimitExceeded,
                                         error.message());
}

void CsiAttaching::NotExhausted(const UniqueVolumeName& device) {
  MutexLock lock(mu_);
  exhausted_.erase(device);
}

void CsiAttaching::Refresh(const std::string& driver) {
  scheduler_.Post(
      alive_.Guarded([this, driver] { context_.parts.drivers.RefreshNowAndThen(driver); }));
}

bool CsiAttaching::HasObjects(const std::string& driver) {
  if (context_.host.attach_detach == nullptr) return false;
  {
    MutexLock lock(mu_);
    if (has_objects_.contains(driver)) return true;
  }
  // Once per attach of a driver that has none; who attaches by objects is found in the set.
  for (const AttachmentPtr& attachment : context_.host.attach_detach->ListVolumeAttachments()) {
    if (attachment->attacher != driver) continue;
    MutexLock lock(mu_);
    has_objects_.insert(driver);
    return true;
  }
  return false;
}

}  // namespace volumed
