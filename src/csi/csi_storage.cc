#include "csi/csi_storage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csi.pb.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_controller_requests.h"
#include "csi/csi_create_request.h"
#include "csi/csi_names.h"
#include "csi/csi_places.h"
#include "csi/plugin_info.h"
#include "metrics/metrics_nil.h"

namespace volumed {
namespace {

using ControllerRpc = ::csi::v1::ControllerServiceCapability_RPC;
using Expansion = ::csi::v1::PluginCapability_VolumeExpansion;

Error CannotDo(Code code, const std::string& why) { return Error::NotApplied(code, why); }

const CsiPersistentVolumeSource* SourceOf(const PersistentVolume& volume) {
  return std::get_if<CsiPersistentVolumeSource>(&volume.spec.source);
}

bool SaysItCan(const std::vector<int32_t>& capabilities, int32_t capability) {
  return std::find(capabilities.begin(), capabilities.end(), capability) != capabilities.end();
}

// One with an inline spec is of a pod that names the same disk itself.
bool IsOf(const VolumeAttachment& attachment, const PersistentVolume& volume) {
  if (!attachment.inline_volume_spec) {
    return attachment.persistent_volume_name == volume.metadata.name;
  }
  const CsiPersistentVolumeSource& attached = attachment.inline_volume_spec->csi;
  const CsiPersistentVolumeSource* source = SourceOf(volume);
  return source != nullptr && source->driver == attached.driver &&
         source->volume_handle == attached.volume_handle;
}

// The node to which a VolumeAttachment says that the volume is attached, or is being; "" if none
// does. Source: external-provisioner (canDeleteVolume), which passes over inline specs.
std::string AttachedTo(const CsiContext& context, const PersistentVolume& volume) {
  if (context.host.attach_detach == nullptr) return "";
  for (const auto& attachment : context.host.attach_detach->ListVolumeAttachments()) {
    if (IsOf(*attachment, volume)) return attachment->node_name;
  }
  return "";
}

class CsiDeleter final : public Deleter {
 public:
  CsiDeleter(const CsiContext& context, PersistentVolume volume)
      : context_(context), volume_(std::move(volume)) {}

  // The volume is at no path of this node.
  std::string GetPath() const override { return ""; }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status Delete(const CallOptions& call) override {
    const std::string node = AttachedTo(context_, volume_);
    if (!node.empty()) {
      return NewDeletedVolumeInUseError("persistentvolume " + volume_.metadata.name +
                                        " is still attached to node " + node);
    }
    return DeleteCsiStorage(context_, volume_, call);
  }

 private:
  const CsiContext& context_;
  const PersistentVolume volume_;
  MetricsNil metrics_;
};

// Whether the driver has made the volume for a claim, so that it may go with it. One that somebody
// has written down by hand stays, as in a cluster. Source: sig-storage-lib-external-provisioner@v11
// controller.go (shouldDelete).
Status CheckMadeBy(const VolumeSpec& spec, const std::string& driver) {
  const StringMap& annotations = spec.persistent_volume()->metadata.annotations;
  const auto maker = annotations.find(kProvisionedBy);
  const bool made = maker != annotations.end() && (maker->second == driver || spec.migrated());
  if (made) return OkStatus();
  return CannotDo(Code::kFailedPrecondition,
                  "its annotation " + std::string(kProvisionedBy) +
                      " does not say that CSI driver " + driver +
                      " has made it, so its storage is not the driver's to delete");
}

}  // namespace

// ---- what drivers make
// ----------------------------------------------------------------------------

// The volumes of one driver.
class CsiStorage::OfDriver final : public ProvisionableVolumePlugin {
 public:
  OfDriver(const CsiContext& context, VolumePlugin& plugin, std::string driver)
      : context_(context), plugin_(plugin), driver_(std::move(driver)) {}

  VolumePlugin& plugin() override { return plugin_; }
  Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override {
    return NewCsiProvisioner(context_, driver_, options);
  }
  bool TakesContents() const override { return true; }

 private:
  const CsiContext& context_;
  VolumePlugin& plugin_;
  const std::string driver_;
};

CsiStorage::CsiStorage(const CsiContext& context, VolumePlugin& plugin)
    : context_(context), plugin_(plugin) {}

CsiStorage::~CsiStorage() = default;

ProvisionableVolumePlugin* CsiStorage::ProvisionerOf(const std::string& driver) {
  const Result<CsiDriverFacts> facts = FactsOf(context_, driver);
  if (!facts.ok() || !facts->HasController(ControllerRpc::CREATE_DELETE_VOLUME)) return nullptr;
  MutexLock lock(mu_);
  std::unique_ptr<OfDriver>& its = of_drivers_[driver];
  if (its == nullptr) its = std::make_unique<OfDriver>(context_, plugin_, driver);
  return its.get();
}

std::string CsiStorage::WhyNoProvisionerOf(const std::string& driver) const {
  // Most provisioners that are no drivers have a slash in their names.
  if (!CheckCsiDriverName(driver).ok()) return "";
  return context_.parts.drivers.WhyNoProvisioner(driver);
}

// ---- deleting
// -------------------------------------------------------------------------------------

Result<std::unique_ptr<Deleter>> CsiStorage::NewDeleter(const VolumeSpec& spec) {
  const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
  if (source == nullptr) {
    return CannotDo(Code::kInvalidArgument, spec.Display() + " is no persistent CSI volume");
  }
  if (source->volume_handle.starts_with(kCsiUnknownHandle)) {
    return CannotDo(Code::kInvalidArgument, spec.Display() + " has not been made yet");
  }
  RETURN_IF_ERROR(CheckMadeBy(spec, source->driver));
  ASSIGN_OR_RETURN(const CsiDriverFacts facts, FactsOf(context_, source->driver));
  if (!facts.HasController(ControllerRpc::CREATE_DELETE_VOLUME)) {
    return CannotDo(
        Code::kFailedPrecondition,
        "nobody deletes its storage: " + context_.parts.drivers.WhyNoProvisioner(source->driver));
  }
  return std::unique_ptr<Deleter>(
      std::make_unique<CsiDeleter>(context_, *spec.persistent_volume()));
}

std::string WhoHasOnNode(const CsiContext& context, const std::string& driver,
                         const std::string& handle) {
  const std::optional<DeviceRecord> device =
      context.parts.devices.Find(CsiUniqueName(driver, handle));
  if (!device || IsGone(*device)) return "";
  return "it is on this node as " + device->spec.str();
}

Result<std::vector<UnrecordedMounts::Mounted>> MountsWithoutRecord(const CsiContext& context,
                                                                   const std::string& driver,
                                                                   const std::string& handle,
                                                                   const SpecName& volume,
                                                                   const CallOptions& call) {
  if (context.parts.unrecorded == nullptr) return std::vector<UnrecordedMounts::Mounted>();
  return FindUnrecorded(*context.parts.unrecorded, context.host, {driver, handle}, volume, call);
}

Status DeleteCsiStorage(const CsiContext& context, const PersistentVolume& volume,
                        const CallOptions& call) {
  const CsiPersistentVolumeSource& source = *SourceOf(volume);
  std::string here = WhoHasOnNode(context, source.driver, source.volume_handle);
  if (here.empty()) {
    const SpecName name(volume.metadata.name);
    ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> mounted,
                     MountsWithoutRecord(context, source.driver, source.volume_handle, name, call));
    if (!mounted.empty()) here = UnrecordedMounts::DescribeFor(name, mounted.front());
  }
  if (!here.empty()) {
    return NewDeletedVolumeInUseError("persistentvolume " + volume.metadata.name +
                                      " cannot be deleted: " + here);
  }
  ASSIGN_OR_RETURN(const CsiSecretValues secrets,
                   ReadSecret(context, DeletionSecretOf(volume), "provisioner secret"));
  const auto deleted = CallDriver<::csi::v1::DeleteVolumeResponse>(
      context, source.driver, ControllerDeleteRequest(source.volume_handle, secrets), call);
  if (deleted.ok() || deleted.error().code() == Code::kNotFound) return OkStatus();
  const Error& error = deleted.error();
  const bool in_use = error.code() == Code::kFailedPrecondition && !error.maybe_applied();
  return in_use ? NewDeletedVolumeInUseError(error.message()) : error;
}

// ---- making larger
// --------------------------------------------------------------------------------

bool CsiStorage::ExpandsStorage(const VolumeSpec& spec) const {
  const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
  if (source == nullptr) return false;
  const Result<CsiDriverFacts> facts = FactsOf(context_, source->driver);
  return facts.ok() && facts->HasController(ControllerRpc::EXPAND_VOLUME);
}

bool CsiStorage::ExpandsOnlyUnused(const VolumeSpec& spec) const {
  const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
  if (source == nullptr) return false;
  const Result<CsiDriverFacts> facts = FactsOf(context_, source->driver);
  return facts.ok() && SaysItCan(facts->expansion, Expansion::OFFLINE) &&
         !SaysItCan(facts->expansion, Expansion::ONLINE);
}

Result<Quantity> CsiStorage::ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                                const Quantity& old_size, const CallOptions& call) {
  ASSIGN_OR_RETURN(const ExpandedStorage expanded, ExpandStorage(spec, new_size, old_size, call));
  return expanded.size;
}

Result<ExpandedStorage> CsiStorage::ExpandStorage(const VolumeSpec& spec, const Quantity& new_size,
                                                  const Quantity&, const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(spec));
  ASSIGN_OR_RETURN(const CsiDriverFacts facts, FactsOf(context_, volume.driver));
  ASSIGN_OR_RETURN(
      const CsiSecretValues secrets,
      ReadSecret(context_, volume.controller_expand_secret, "controller expand secret"));
  const int64_t required = new_size.Value();
  ASSIGN_OR_RETURN(const auto request, ControllerExpandRequest(facts, volume, required, secrets));
  ASSIGN_OR_RETURN(const auto answer, CallDriver<::csi::v1::ControllerExpandVolumeResponse>(
                                          context_, volume.driver, request, call, volume.migrated));
  if (answer.capacity_bytes() < required) {
    return DriverLied(context_, {volume.driver, "ControllerExpandVolume", volume.handle},
                      "volume " + volume.handle + " was made larger",
                      "it has " + std::to_string(answer.capacity_bytes()) + " bytes; " +
                          std::to_string(required) + " were asked for");
  }
  return ExpandedStorage{Quantity::FromBytes(answer.capacity_bytes()),
                         answer.node_expansion_required()};
}

}  // namespace volumed
