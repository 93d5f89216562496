#include "volumemanager/volume_manager.h"

#include <utility>

#include "volumemanager/volume_manager_composition.h"

namespace volumed {

VolumeManager::VolumeManager(VolumeManagerParts parts, const BootId& boot_id,
                             const VolumeManagerSettings& settings, VolumeManagerHooks hooks)
    : composition_(std::make_unique<Composition>(parts, boot_id, settings, std::move(hooks))) {}

VolumeManager::~VolumeManager() = default;

void VolumeManager::Start() { composition_->loader.Start(); }

bool VolumeManager::Ready() const { return composition_->readiness.Ready(); }

std::string VolumeManager::NotReadyReason() const {
  return composition_->readiness.NotReadyReason();
}

std::string VolumeManager::WhyUnseen() const { return composition_->readiness.WhyUnseen(); }

void VolumeManager::ObjectsChanged() {
  composition_->CheckReady();
  composition_->object_commands.DeleteWhatHasMovedNowhere();
}

void VolumeManager::NoteDirectory(const std::string& source, const KnownDirectory& directory,
                                  const UnprovenAbsences& unproven) {
  composition_->known.NoteDirectory(source, directory, unproven);
}

void VolumeManager::SourceForgotten(const std::string& source) {
  composition_->known.ForgetSource(source);
}

const PodQueries& VolumeManager::pods() const { return composition_->pods; }
const StorageViews& VolumeManager::storage() const { return composition_->storage; }
PodCommands& VolumeManager::pod_commands() { return composition_->pod_commands; }
ObjectCommands& VolumeManager::object_commands() { return composition_->object_commands; }
NodeEvents& VolumeManager::events() { return composition_->events; }
PodObservers& VolumeManager::observers() { return composition_->observers; }

void VolumeManager::SetStatsTimes(Duration period, Duration deadline) {
  composition_->stats.SetTimes(period, deadline);
}

void VolumeManager::SetServerLookPeriod(Duration period) {
  composition_->health.SetPeriod(period);
  for (const auto& [uid, pod] : composition_->actual.pods()) {
    composition_->observers.Tell(uid);  // it may not be Stuck any more
  }
}

void VolumeManager::SetReplaceSettle(Duration settle) {
  composition_->replacements.SetSettle(settle);
}

void VolumeManager::SetVerifyAttachedPeriod(Duration period) {
  composition_->devices.SetVerifyAttachedPeriod(period);
}

std::map<std::string, bool> VolumeManager::ServersAnswering() const {
  return composition_->health.Answering();
}

uint64_t VolumeManager::claim_decisions() const { return composition_->claims.decisions(); }

size_t VolumeManager::quarantined_pods() const { return composition_->quarantined_pods; }

std::vector<std::string> VolumeManager::unrecorded_mounts(
    const std::function<bool(const std::string& place)>& is_mounted) const {
  return composition_->lost_mounts.Describe(is_mounted);
}

}  // namespace volumed
