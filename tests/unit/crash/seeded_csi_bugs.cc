// Mistakes in front of a CSI driver, and in what is kept of its volumes.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "csi.pb.h"
#include "csi/rpc/csi_methods.h"
#include "unit/crash/crash_csi_client.h"
#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_bugs.h"
#include "unit/crash/seeded_stores.h"

namespace volumed {
namespace {

using google::protobuf::Message;
using Answer = CsiChannel::AnyAnswer;

bool IsRpc(const Message& request, const std::string& rpc) {
  return CsiMethodOf(request.GetDescriptor())->name == rpc;
}

class PassingCsi : public CrashCsiCalls {
 public:
  PassingCsi(CrashCsiCalls& real, CrashWorld& world) : real_(real), world_(world) {}
  Answer Do(const Message& request) override { return real_.Do(request); }

 protected:
  CrashCsiCalls& real_;
  CrashWorld& world_;
};

template <typename Calls>
SeededBug InCsi(const std::string& name) {
  SeededBug bug;
  bug.name = name;
  bug.csi = [](CrashCsiCalls& real, CrashWorld& world) -> std::unique_ptr<CrashCsiCalls> {
    return std::make_unique<Calls>(real, world);
  };
  return bug;
}

// Says that it was staged, and asks nobody.
class UnstagedCsi final : public PassingCsi {
 public:
  using PassingCsi::PassingCsi;
  Answer Do(const Message& request) override {
    if (!IsRpc(request, "NodeStageVolume")) return real_.Do(request);
    return std::unique_ptr<Message>(std::make_unique<::csi::v1::NodeStageVolumeResponse>());
  }
};

// A volume is unstaged as soon as one pod leaves it.
class GreedyUnstageCsi final : public PassingCsi {
 public:
  using PassingCsi::PassingCsi;
  Answer Do(const Message& request) override {
    Answer answer = real_.Do(request);
    if (!answer.ok() || !IsRpc(request, "NodeUnpublishVolume")) return answer;
    const CsiAbout about = AboutOf(request);
    const CsiTruth::Volume volume = world_.csi->volumes.at(about.handle);
    for (const std::string& place : volume.staged) {
      ::csi::v1::NodeUnstageVolumeRequest unstage;
      unstage.set_volume_id(about.handle);
      unstage.set_staging_target_path(place);
      (void)real_.Do(unstage);
    }
    return answer;
  }
};

// A publish of which nobody knows whether it was made is begun anew with the staging.
class RestagingCsi final : public PassingCsi {
 public:
  using PassingCsi::PassingCsi;
  Answer Do(const Message& request) override {
    if (IsRpc(request, "NodeStageVolume")) {
      stage_.emplace();
      stage_->CopyFrom(request);
    }
    if (IsRpc(request, "NodePublishVolume") && in_doubt_ && stage_) (void)real_.Do(*stage_);
    Answer answer = real_.Do(request);
    if (IsRpc(request, "NodePublishVolume")) {
      in_doubt_ = !answer.ok() && answer.error().maybe_applied();
    }
    return answer;
  }

 private:
  std::optional<::csi::v1::NodeStageVolumeRequest> stage_;
  bool in_doubt_ = false;
};

// A volume goes with the pod that has it, or before it is detached.
class HastyDeletionCsi final : public PassingCsi {
 public:
  using PassingCsi::PassingCsi;
  Answer Do(const Message& request) override {
    if (IsRpc(request, "ControllerUnpublishVolume")) {
      ::csi::v1::DeleteVolumeRequest deletion;
      deletion.set_volume_id(AboutOf(request).handle);
      (void)real_.Do(deletion);
    }
    return real_.Do(request);
  }
};

// Each agent asks for the volume of a claim by another name.
class RenamingCsi final : public PassingCsi {
 public:
  using PassingCsi::PassingCsi;
  Answer Do(const Message& request) override {
    if (!IsRpc(request, "CreateVolume")) return real_.Do(request);
    ::csi::v1::CreateVolumeRequest renamed;
    renamed.CopyFrom(request);
    renamed.set_name(renamed.name() + "-" + std::to_string(world_.csi->inode));
    return real_.Do(renamed);
  }
};

// A new agent does not see a part of the rows of devices.
class ForgettingDeviceStore final : public PassingStore {
 public:
  ForgettingDeviceStore(RecordStore& real, std::function<void(DeviceRecord&)> forget)
      : PassingStore(real), forget_(std::move(forget)) {}
  Result<LoadedRecords> Load(const std::string& kind) override {
    Result<LoadedRecords> loaded = PassingStore::Load(kind);
    if (kind != kDeviceRecordKind || !loaded.ok()) return loaded;
    for (Record& row : loaded->records) {
      DeviceRecord record = DecodeDeviceRecord(row).value();
      forget_(record);
      row = EncodeRecord(record);
    }
    return loaded;
  }

 private:
  const std::function<void(DeviceRecord&)> forget_;
};

SeededBug Forgetting(const std::string& name, std::function<void(DeviceRecord&)> forget) {
  SeededBug bug;
  bug.name = name;
  bug.store = [forget](RecordStore& real, CrashWorld&) -> std::unique_ptr<RecordStore> {
    return std::make_unique<ForgettingDeviceStore>(real, forget);
  };
  return bug;
}

SeededBug LosingDevices(const std::string& name, std::function<bool(const DeviceRecord&)> lost) {
  SeededBug bug;
  bug.name = name;
  bug.store = [lost](RecordStore& real, CrashWorld&) -> std::unique_ptr<RecordStore> {
    return std::make_unique<LosingStore>(real, [lost](const Record& row) {
      if (row.kind != kDeviceRecordKind) return false;
      const Result<DeviceRecord> record = DecodeDeviceRecord(row);
      return record.ok() && lost(*record);
    });
  };
  return bug;
}

}  // namespace

std::vector<SeededBugCase> SeededCsiBugs() {
  return {
      {LosingDevices("staging of a CSI volume not written",
                     [](const DeviceRecord& record) {
                       return record.state == VolumeState::kMountingDevice &&
                              record.staged == StagedState::kStaged;
                     }),
       CsiStagedScenario()},
      {LosingDevices("way in which a CSI volume is attached not written",
                     [](const DeviceRecord& record) {
                       return record.state == VolumeState::kAttaching &&
                              record.attach_way == AttachWay::kByController;
                     }),
       CsiAttachedScenario()},
      {InCsi<UnstagedCsi>("CSI volume published before it is staged"), CsiStagedScenario()},
      {InCsi<GreedyUnstageCsi>("CSI volume unstaged while a pod has it"), CsiStagedScenario()},
      {InCsi<RestagingCsi>("CSI volume staged after a publish in doubt"), CsiStagedScenario(),
       WalkKind::kDriverDies},
      {Forgetting("pod that alone may have a CSI volume forgotten at restart",
                  [](DeviceRecord& record) { record.only_pod = PodUid(); }),
       CsiOnePodScenario(), WalkKind::kPowerLoss},
      {InCsi<HastyDeletionCsi>("CSI volume deleted while it is attached"), CsiProvisionScenario()},
      {InCsi<RenamingCsi>("CSI volume asked for by another name"), CsiProvisionScenario()},
      {Forgetting("what attaching a CSI volume answered forgotten at restart",
                  [](DeviceRecord& record) { record.publish_context.clear(); }),
       CsiAttachedScenario()},
  };
}

}  // namespace volumed
