#include "agent/pool_volume_lookup.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "agent/control_backend.h"
#include "agent/snapshot_backend.h"
#include "base/strings.h"
#include "csidriver/csi_volume_wish.h"
#include "operation/volume_state.h"
#include "pool/pool_id.h"
#include "pool/pool_operations.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {
namespace {

// The id of the pool's volume that the PersistentVolume names; "" of any other one.
std::string PoolIdOf(const PersistentVolume& volume, const PoolServed& pools) {
  const auto* csi = std::get_if<CsiPersistentVolumeSource>(&volume.spec.source);
  return csi != nullptr && csi->driver == pools.driver ? csi->volume_handle : "";
}

Result<std::string> IdOfPersistentVolume(const ControlBackend& backend, const std::string& name) {
  const PersistentVolumePtr volume = backend.catalog.FindPersistentVolume(name);
  if (volume == nullptr) {
    return Error::NotApplied(Code::kNotFound, "there is no PersistentVolume " + name);
  }
  std::string id = PoolIdOf(*volume, backend.snapshots->pools);
  if (!id.empty()) return id;
  return Error::NotApplied(Code::kNotFound,
                           "PersistentVolume " + name + " is no volume of a pool of this node");
}

Result<std::string> IdOfClaim(const ControlBackend& backend, const ClaimKey& claim) {
  const std::string shown = "claim " + ToString(claim);
  const ObjectKey key{ObjectKind::kPersistentVolumeClaim, claim.name_space, claim.name};
  const auto object = backend.catalog.FindPersistentVolumeClaim(claim.name_space, claim.name);
  if (object == nullptr) return Error::NotApplied(Code::kNotFound, "there is no " + shown);
  const std::optional<StorageStatus> status = backend.manager.storage().StatusOf(key);
  if (status && !status->other.empty() && backend.manager.storage().IsBound(key)) {
    return IdOfPersistentVolume(backend, status->other).With(shown);
  }
  return Error::NotApplied(Code::kFailedPrecondition, shown + " has no volume yet");
}

}  // namespace

Result<std::string> FindPoolVolume(const ControlBackend& backend, const std::string& name_space,
                                   const std::string& volume) {
  const std::string ns = name_space.empty() ? "default" : name_space;
  if (const auto name = StripPrefix(volume, "pv/")) {
    return IdOfPersistentVolume(backend, std::string(*name));
  }
  const auto of_kind = StripPrefix(volume, "pvc/");
  const std::string claim(of_kind ? *of_kind : std::string_view(volume));
  if (const size_t slash = claim.find('/'); slash != std::string::npos) {
    return IdOfClaim(backend, {claim.substr(0, slash), claim.substr(slash + 1)});
  }
  if (of_kind) return IdOfClaim(backend, {ns, claim});
  if (backend.catalog.FindPersistentVolume(volume) != nullptr) {
    return IdOfPersistentVolume(backend, volume);
  }
  if (ParsePoolId(volume)) return volume;
  if (backend.catalog.FindPersistentVolumeClaim(ns, volume) != nullptr) {
    return IdOfClaim(backend, {ns, volume});
  }
  return Error::NotApplied(Code::kNotFound, "there is no PersistentVolume " + volume +
                                                ", no claim " + ns + "/" + volume +
                                                ", and it is no id of a pool's volume");
}

std::string ShownPoolVolumeUser(std::string who_has) {
  if (who_has.starts_with("pod ")) return who_has;
  const std::string_view staged = VolumeStateName(VolumeState::kDeviceMounted);
  if (who_has.find(staged) != std::string::npos) return "this node, where it is staged";
  if (who_has.ends_with(',')) who_has.pop_back();
  return who_has;
}

PoolVolumeHolders::PoolVolumeHolders(const ControlBackend& backend) : backend_(backend) {
  for (const auto& volume : backend.catalog.PersistentVolumes()) {
    const std::string id = PoolIdOf(*volume, backend.snapshots->pools);
    if (!id.empty()) named_[id].push_back(volume->metadata.name);
  }
  for (const auto& claim : backend.catalog.PersistentVolumeClaims()) {
    if (claim->metadata.uid.empty()) continue;
    wanted_[ProvisionedVolumeName(claim->metadata.uid)] = {claim->metadata.name_space,
                                                           claim->metadata.name};
  }
}

PoolVolumeHolding PoolVolumeHolders::Of(const PoolVolumeRecord& volume) const {
  PoolVolumeHolding holding;
  const auto add = [&holding](const std::string& who) {
    auto& all = holding.had_by;
    if (std::find(all.begin(), all.end(), who) == all.end()) all.push_back(who);
  };
  if (const auto named = named_.find(volume.id); named != named_.end()) {
    for (const std::string& name : named->second) {
      add("PersistentVolume " + name);
      const auto status =
          backend_.manager.storage().StatusOf({ObjectKind::kPersistentVolume, "", name});
      const std::string claim = status ? status->other : "";
      if (!claim.empty()) add("claim " + claim);
      if (holding.persistent_volume.empty()) holding.persistent_volume = name;
      const size_t slash = claim.find('/');
      if (!holding.claim.name.empty() || slash == std::string::npos) continue;
      holding.claim = {claim.substr(0, slash), claim.substr(slash + 1)};
    }
  }
  const auto wanted = wanted_.find(volume.name);
  if (wanted != wanted_.end()) {
    add("claim " + ToString(wanted->second));
    if (holding.claim.name.empty()) holding.claim = wanted->second;
  }
  if (!volume.inline_use.empty()) {
    add("pod " + volume.inline_use.pod_namespace + "/" + volume.inline_use.pod_name);
  }
  const std::string here = backend_.manager.pods().WhoHas(PoolDeviceName(volume.id));
  if (!here.empty()) add(ShownPoolVolumeUser(here));
  for (const PoolLease& lease : volume.leases) add("node " + lease.node);
  return holding;
}

Status CheckPoolVolumeIsFree(const ControlBackend& backend, const std::string& id, bool abandoned) {
  const std::string why = backend.manager.WhyUnseen();
  if (!why.empty()) return Error::NotApplied(Code::kUnavailable, why);
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, backend.snapshots->pools.volumes.Find(id));
  RETURN_IF_ERROR(CheckNotInline(volume));
  const PoolVolumeHolding holding = PoolVolumeHolders(backend).Of(volume);
  // Nobody was ever told the id of one that is still being made.
  const bool may_be_wanted =
      IsPoolNameOfCsi(volume.name) && volume.state != PoolVolumeState::kMaking;
  if (holding.had_by.empty() && may_be_wanted && !abandoned) return MayBeWanted("volume", id);
  if (holding.had_by.empty()) return OkStatus();
  std::string text =
      "volume " + id + " is not deleted, as these have it: " + Join(holding.had_by, ", ");
  if (!holding.persistent_volume.empty()) {
    text += "; it can be once PersistentVolume " + holding.persistent_volume + " is gone";
  }
  return Error::NotApplied(Code::kFailedPrecondition, std::move(text));
}

}  // namespace volumed
