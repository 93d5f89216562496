#include "csi/csi_plugin.h"

#include <utility>

#include "csi/csi_block.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_devices.h"
#include "csi/csi_expand.h"
#include "csi/csi_find.h"
#include "csi/csi_mounts.h"
#include "csi/csi_names.h"
#include "csi/csi_storage.h"
#include "mounter/volume_places.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// The driver of a volume; "" if it is another plugin's.
std::string DriverOf(const VolumeSpec& spec) {
  if (const auto* source = spec.SourceAs<CsiPersistentVolumeSource>()) return source->driver;
  if (const auto* source = spec.SourceAs<CsiVolumeSource>()) return source->driver;
  return "";
}

Error NotOurs(const VolumeSpec& spec) {
  return Error::NotApplied(Code::kInvalidArgument, spec.Display() + " is no CSI volume");
}

// Its devices would be bound over those of other volumes, and its end would remove theirs.
Status CheckBlockName(const KubeletPaths& paths, const SpecName& spec) {
  if (!HasSharedBlockDir(spec)) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument,
                           "a CSI block volume cannot be called " + spec.str() + ": " +
                               CsiBlockDir(paths, spec).Display() +
                               " is the directory of all block volumes, in which nothing is made "
                               "or removed for this one; its PersistentVolume needs another name");
}

}  // namespace

CsiPlugin::CsiPlugin(CsiPluginParts parts) : parts_(std::move(parts)) {}

CsiPlugin::~CsiPlugin() = default;

Status CsiPlugin::Init(PluginContext context) {
  context_.emplace(CsiContext{parts_, context.host});
  attaching_ = std::make_unique<CsiAttaching>(*context_, parts_.scheduler);
  expander_ = MakeCsiExpander(*context_, *this);
  storage_ = std::make_unique<CsiStorage>(*context_, *this);
  return OkStatus();
}

std::string CsiPlugin::GetPluginName() const { return kCsiPluginName; }

Result<std::string> CsiPlugin::GetVolumeName(const VolumeSpec& spec) const {
  if (const auto* source = spec.SourceAs<CsiPersistentVolumeSource>()) {
    return CsiVolumeName(source->driver, source->volume_handle);
  }
  if (const auto* source = spec.SourceAs<CsiVolumeSource>()) {
    return CsiVolumeName(source->driver, spec.name().str());
  }
  return NotOurs(spec);
}

bool CsiPlugin::CanSupport(const VolumeSpec& spec) const {
  const std::string driver = DriverOf(spec);
  return !driver.empty() && driver != parts_.served_here;
}

bool CsiPlugin::RequiresRemount(const VolumeSpec& spec) const {
  const auto object = CsiDriverObjectOf(*context_, DriverOf(spec));
  return object.ok() && *object != nullptr && (*object)->requires_republish;
}

bool CsiPlugin::SupportsSELinuxContextMount(const VolumeSpec& spec) const {
  const auto object = CsiDriverObjectOf(*context_, DriverOf(spec));
  return object.ok() && *object != nullptr && (*object)->se_linux_mount;
}

Result<std::unique_ptr<Mounter>> CsiPlugin::NewMounter(const VolumeSpec& spec,
                                                       const VolumeTarget& target) {
  const bool is_inline = spec.SourceAs<CsiVolumeSource>() != nullptr;
  if (is_inline && target.pod == nullptr) return NoPod("an inline CSI volume", target);
  const std::string name_space =
      target.pod == nullptr ? std::string() : target.pod->metadata.name_space;
  ASSIGN_OR_RETURN(CsiVolume volume, CsiVolumeOf(spec, target.key.pod, name_space));
  return std::unique_ptr<Mounter>(
      std::make_unique<CsiMounter>(*context_, std::move(volume), target));
}

Result<std::unique_ptr<Unmounter>> CsiPlugin::NewUnmounter(const SpecName& spec,
                                                           const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<CsiUnmounter>(
      *context_, CsiTargetPath(context_->host.paths, pod, spec), std::nullopt));
}

Result<std::unique_ptr<Unmounter>> CsiPlugin::NewUnmounterOf(const VolumeSpec& recorded,
                                                             const PodUid& pod) {
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(recorded, pod));
  return std::unique_ptr<Unmounter>(std::make_unique<CsiUnmounter>(
      *context_, CsiTargetPath(context_->host.paths, pod, recorded.name()),
      CsiVolumeId{volume.driver, volume.handle}));
}

Result<ReconstructedVolume> CsiPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                           const SafePath& volume_path,
                                                           const CallOptions& call) {
  ASSIGN_OR_RETURN(VolumeSpec found, ConstructCsiVolume(*context_, spec, volume_path, call));
  return ReconstructedVolume{std::move(found)};
}

std::string CsiPlugin::FaultDomain(const VolumeSpec& spec) const {
  const std::string driver = DriverOf(spec);
  return driver.empty() ? "" : DriverDomain(driver);
}

std::set<ObjectKey> CsiPlugin::DependsOn(const VolumeSpec& spec) const {
  const std::string driver = DriverOf(spec);
  if (driver.empty()) return {};
  std::set<ObjectKey> objects = {{ObjectKind::kCsiDriver, "", driver}};
  const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
  if (source == nullptr) return objects;  // its own Secret is content, and its pod's
  const std::string node = context_->host.node.GetNodeName().str();
  objects.insert(
      {ObjectKind::kVolumeAttachment, "", CsiAttachmentName(source->volume_handle, driver, node)});
  for (const auto* secret :
       {&source->controller_publish_secret_ref, &source->node_stage_secret_ref,
        &source->node_publish_secret_ref, &source->controller_expand_secret_ref,
        &source->node_expand_secret_ref}) {
    if (*secret) objects.insert({ObjectKind::kSecret, (*secret)->name_space, (*secret)->name});
  }
  return objects;
}

std::vector<AccessMode> CsiPlugin::GetAccessModes() const {
  return {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany, AccessMode::kReadWriteMany,
          AccessMode::kReadWriteOncePod};
}

// ---- The storage behind volumes ----

ProvisionableVolumePlugin* CsiPlugin::AsProvisionerOf(const std::string& provisioner) {
  if (provisioner == parts_.served_here) return nullptr;
  return storage_->ProvisionerOf(provisioner);
}

std::string CsiPlugin::WhyNoProvisionerOf(const std::string& provisioner) const {
  if (provisioner == parts_.served_here) return "";
  return storage_->WhyNoProvisionerOf(provisioner);
}

DeletableVolumePlugin* CsiPlugin::AsDeletable() { return storage_.get(); }

ExpandableVolumePlugin* CsiPlugin::AsExpandable() { return storage_.get(); }

// ---- Attaching ----

Result<std::unique_ptr<Attacher>> CsiPlugin::NewAttacher() {
  return attaching_->NewAttacher(MakeCsiStager(*context_));
}

Result<std::unique_ptr<Detacher>> CsiPlugin::NewDetacher() {
  return attaching_->NewDetacher(MakeCsiUnstager(*context_));
}

Result<bool> CsiPlugin::CanAttach(const VolumeSpec& spec) const {
  return attaching_->CanAttach(spec);
}

bool CsiPlugin::VerifyExhaustedResource(const VolumeSpec& spec) const {
  return attaching_->VerifyExhaustedResource(spec);
}

Result<std::map<std::string, int64_t>> CsiPlugin::GetVolumeLimits() const {
  return CsiVolumeLimits(parts_.drivers);
}

std::string CsiPlugin::VolumeLimitKey(const VolumeSpec& spec) const {
  return CsiVolumeLimitKey(spec);
}

// ---- Staging ----

Result<std::unique_ptr<DeviceMounter>> CsiPlugin::NewDeviceMounter() {
  return MakeCsiStager(*context_);
}

Result<std::unique_ptr<DeviceUnmounter>> CsiPlugin::NewDeviceUnmounter() {
  return MakeCsiUnstager(*context_);
}

Result<std::vector<std::string>> CsiPlugin::GetDeviceMountRefs(const SafePath& device_mount_path,
                                                               const CallOptions& call) {
  return FindDeviceMountRefs(context_->kernel(), device_mount_path, call);
}

Result<bool> CsiPlugin::CanDeviceMount(const VolumeSpec& spec) const {
  if (!CanSupport(spec)) return NotOurs(spec);
  return spec.persistent_volume() != nullptr;
}

Result<std::vector<UnrecordedDevice>> CsiPlugin::FindDevices(const CallOptions& call) {
  return FindCsiDevices(*context_, call);
}

// ---- Raw block devices ----

Result<std::unique_ptr<BlockVolumeMapper>> CsiPlugin::NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                           PodPtr pod) {
  if (spec.persistent_volume() == nullptr || pod == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             spec.Display() + " cannot be a block volume of a pod");
  }
  RETURN_IF_ERROR(CheckBlockName(context_->host.paths, spec.name()));
  ASSIGN_OR_RETURN(CsiVolume volume, CsiVolumeOf(spec, pod->uid(), pod->metadata.name_space));
  return std::unique_ptr<BlockVolumeMapper>(
      std::make_unique<CsiBlockMapper>(*context_, spec.name(), std::move(volume), std::move(pod)));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> CsiPlugin::NewBlockVolumeUnmapper(const SpecName& spec,
                                                                               const PodUid& pod) {
  RETURN_IF_ERROR(CheckBlockName(context_->host.paths, spec));
  return std::unique_ptr<BlockVolumeUnmapper>(
      std::make_unique<CsiBlockUnmapper>(*context_, spec, pod, std::nullopt));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> CsiPlugin::NewBlockVolumeUnmapperOf(
    const VolumeSpec& recorded, const PodUid& pod) {
  RETURN_IF_ERROR(CheckBlockName(context_->host.paths, recorded.name()));
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(recorded, pod));
  return std::unique_ptr<BlockVolumeUnmapper>(std::make_unique<CsiBlockUnmapper>(
      *context_, recorded.name(), pod, CsiVolumeId{volume.driver, volume.handle}));
}

Result<VolumeSpec> CsiPlugin::ConstructBlockVolumeSpec(const PodUid& /*pod*/, const SpecName& spec,
                                                       const SafePath& /*map_path*/,
                                                       const CallOptions& call) {
  return ConstructCsiBlockVolume(*context_, spec, call);
}

}  // namespace volumed
