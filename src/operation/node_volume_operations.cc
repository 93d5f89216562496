#include "operation/node_volume_operations.h"

#include <typeinfo>
#include <utility>

#include "operation/driver_storage.h"
#include "operation/group_operations.h"
#include "operation/storage_steps.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

}  // namespace

NodeVolumeOperations::NodeVolumeOperations(Scheduler& scheduler, OperationParts parts,
                                           OperationObserver& observer, BootId boot_id,
                                           FaultDomains* fault_domains)
    : fault_domains_(fault_domains),
      executor_(scheduler, parts.logger, observer, fault_domains, parts.settings.lanes,
                parts.settings.back_off) {
  parts.volumes = std::make_shared<VolumeRecordKeeper>(parts.store, scheduler.clock(), parts.logger,
                                                       observer, std::move(boot_id));
  parts_ = std::make_shared<const OperationParts>(std::move(parts));
}

NodeVolumeOperations::~NodeVolumeOperations() = default;

void NodeVolumeOperations::Restore(const std::vector<PodVolumeRecord>& volumes,
                                   const std::vector<DeviceRecord>& devices) {
  for (const PodVolumeRecord& record : volumes) {
    parts_->volumes->Restore(record);
    if (!MayHaveStorage(record)) continue;
    parts_->storage.ExpectUnread(record.boot_id, PodStorageId(record.key),
                                 [record] { return StorageOf(record); });
  }
  for (const DeviceRecord& record : devices) {
    parts_->devices.Restore(record);
    if (auto had = StorageOf(record)) parts_->storage.Expect(record.boot_id, *std::move(had));
    const std::optional<DeviceRecord> now = parts_->devices.Find(record.key);
    auto held = now ? DriverStorageOf(*now) : std::nullopt;
    if (held) parts_->storage.Expect(now->boot_id, *std::move(held));
  }
}

void NodeVolumeOperations::SetSettings(const OperationSettings& settings) {
  OperationParts parts = *parts_;
  parts.settings = settings;
  parts_ = std::make_shared<const OperationParts>(std::move(parts));
  executor_.SetLimits(settings.lanes);
}

std::vector<StartResult> NodeVolumeOperations::StartAll(
    std::vector<std::unique_ptr<AnyOperation>> operations) {
  std::vector<StartResult> started(operations.size(), StartResult::kPending);
  std::vector<OperationPtr> together;
  std::vector<size_t> numbers;  // of those
  std::optional<SafePath> directory;
  std::vector<FaultDomains::KnownMount> around;
  const auto is_of_their_kind = [&together](const AnyOperation& operation) {
    if (together.empty()) return true;
    const AnyOperation& first = *together.front();
    return typeid(first) == typeid(operation);
  };
  for (size_t number = 0; number < operations.size(); ++number) {
    const OperationPtr operation = std::move(operations[number]);
    const std::optional<VolumePlace> volume = operation->PlaceInGroup(*parts_);
    if (volume && !directory) {
      directory = volume->directory;
      around = MountsAround(*directory);
    }
    const bool fits = volume && volume->directory == *directory && is_of_their_kind(*operation);
    if (!fits || IsCovered(parts_->host.paths, *volume, around)) {
      started[number] = StartAlone(operation);
      continue;
    }
    together.push_back(operation);
    numbers.push_back(number);
  }
  if (together.empty()) return started;
  const std::vector<StartResult> of_group = StartTogether(std::move(together));
  for (size_t place = 0; place < numbers.size(); ++place) started[numbers[place]] = of_group[place];
  return started;
}

std::vector<FaultDomains::KnownMount> NodeVolumeOperations::MountsAround(
    const SafePath& directory) const {
  if (fault_domains_ == nullptr) return {};
  return fault_domains_->MountsAround(directory.Display());
}

OperationExecutor::Completion NodeVolumeOperations::Completion(
    const OperationPtr& operation) const {
  return [parts = parts_, operation](const Failure& failure) { operation->End(*parts, failure); };
}

OperationExecutor::Completion NodeVolumeOperations::CompletionInGroup(
    const OperationPtr& operation) {
  return [this, parts = parts_, operation](const Failure& failure) {
    if (failure || !operation->IsLeftOut()) return operation->End(*parts, failure);
    if (StartAlone(operation) == StartResult::kStarted) return;
    const OperationTraits traits = operation->Traits(*parts);
    operation->End(*parts, OperationFailure{
                               traits.name, "Start",
                               Error::NotApplied(Code::kAborted, "another operation of it runs")});
  };
}

StartResult NodeVolumeOperations::StartAlone(const OperationPtr& operation) {
  return executor_.Start(
      operation->Traits(*parts_),
      [parts = parts_, operation](OperationProgress& progress) {
        return operation->Run(*parts, progress);
      },
      Completion(operation), [operation] { operation->Waited(); });
}

std::vector<StartResult> NodeVolumeOperations::StartTogether(std::vector<OperationPtr> operations) {
  std::vector<OperationExecutor::Member> members;
  members.reserve(operations.size());
  for (const OperationPtr& operation : operations) {
    members.push_back({operation->Traits(*parts_), CompletionInGroup(operation),
                       [operation] { return operation->IsLeftOut(); }});
  }
  return executor_.StartGroup(std::move(members),
                              [parts = parts_, operations = std::move(operations)](
                                  const std::vector<size_t>& which, OperationProgress& progress) {
                                std::vector<AnyOperation*> started;
                                started.reserve(which.size());
                                for (const size_t number : which)
                                  started.push_back(operations[number].get());
                                return started.front()->RunTogether(*parts, started, progress);
                              });
  // The analyzer does not see that the members' functions own what they hold.
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

std::optional<PodVolumeRecord> NodeVolumeOperations::FindRecord(const PodVolumeKey& key) const {
  return parts_->volumes->Find(key);
}

std::string NodeVolumeOperations::FaultDomainOf(const OperationKey& key) const {
  if (key.is_device()) {
    const std::optional<DeviceRecord> device = parts_->devices.Find(key.device);
    return device ? device->fault_domain : "";
  }
  const std::optional<PodVolumeRecord> volume = parts_->volumes->Find(key.pod_volume());
  return volume ? volume->fault_domain : "";
}

bool NodeVolumeOperations::HasAnyOf(const std::string& fault_domain, bool attached) const {
  const bool has_device = parts_->devices.HasAny([&](const DeviceRecord& device) {
    return device.fault_domain == fault_domain && (!attached || device.attachable);
  });
  return has_device || (!attached && parts_->volumes->HasAny([&](const PodVolumeRecord& volume) {
           return volume.fault_domain == fault_domain;
         }));
}

std::map<std::string, int> NodeVolumeOperations::CountByDriver() const {
  std::map<std::string, std::set<std::string>> names;
  (void)parts_->devices.HasAny([&](const DeviceRecord& device) {
    if (IsDriverDomain(device.fault_domain) && !IsGone(device)) {
      names[device.fault_domain].insert(device.key.str());
    }
    return false;  // all of them
  });
  (void)parts_->volumes->HasAny([&](const PodVolumeRecord& volume) {
    const bool is_here = volume.state != VolumeState::kNotSetUp || volume.uncertain;
    if (is_here && IsDriverDomain(volume.fault_domain)) {
      // An inline volume is its pod's alone.
      const std::string& shared = volume.unique_name.str();
      names[volume.fault_domain].insert(shared.empty() ? volume.key.ToString() : shared);
    }
    return false;  // all of them
  });
  std::map<std::string, int> counts;
  for (const auto& [domain, volumes] : names) counts[domain] = static_cast<int>(volumes.size());
  return counts;
}

std::vector<VolumeOnRecord> NodeVolumeOperations::VolumesOf(const std::string& fault_domain) const {
  std::map<std::pair<SpecName, PodUid>, VolumeOnRecord> found;
  std::set<SpecName> of_pods;
  (void)parts_->volumes->HasAny([&](const PodVolumeRecord& volume) {
    if (volume.fault_domain != fault_domain) return false;
    of_pods.insert(volume.key.spec);
    found[{volume.key.spec, volume.key.pod}] = {
        volume.key.spec, volume.key.pod, volume.pod_namespace, volume.pod_name, volume.state};
    return false;  // all of them
  });
  (void)parts_->devices.HasAny([&](const DeviceRecord& device) {
    if (device.fault_domain != fault_domain || of_pods.contains(device.spec)) return false;
    const bool is_mounted = MayBeAtPlace(device.state) && !device.is_block;
    found[{device.spec, PodUid()}] = {
        device.spec, PodUid(), "", "", device.state, is_mounted ? device.device_mount_path : ""};
    return false;  // all of them
  });
  std::vector<VolumeOnRecord> volumes;
  volumes.reserve(found.size());
  for (auto& [key, volume] : found) volumes.push_back(std::move(volume));
  return volumes;
}

}  // namespace volumed
