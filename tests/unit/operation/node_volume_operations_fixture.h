// NodeVolumeOperationsTest: operations on the volumes of one pod, on a fake kernel and records in
// memory, by an agent that can be started anew.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "fakes/target_of.h"
#include "metrics/exported_families.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "unit/operation/load_records.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/scripted_plugin.h"
#include "unit/operation/stub_host.h"

namespace volumed {

class NodeVolumeOperationsTest : public ::testing::Test {
 protected:
  NodeVolumeOperationsTest() {
    kernel_.AddDirectory(kRoot + "/pods", 0750);
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<ScriptedPlugin>(script_));
    EXPECT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
    Restart("boot-a");
  }

  // A new agent on the same kernel and store.
  void Restart(const std::string& boot) {
    operations_.reset();
    devices_ = std::make_unique<DeviceRecordKeeper>(store_, scheduler_.clock(), logger_, observer_,
                                                    BootId(boot));
    storage_ =
        std::make_unique<StorageGuard>(kernel_, store_, scheduler_.clock(), logger_, BootId(boot));
    OperationParts parts{plugins_, host_, logger_, store_, *devices_, *storage_};
    parts.unrecorded = unrecorded_;
    operations_ =
        std::make_unique<NodeVolumeOperations>(scheduler_, parts, observer_, BootId(boot));
    operations_->Restore(LoadPodVolumeRecords(store_), {});
  }

  static VolumeTarget TargetOfPod(PodPtr pod) {
    return PodVolumeTarget(KubeletPaths(kRoot), std::move(pod), kScriptedPlugin, SpecName("data"));
  }
  static MountRequest Request(VolumeSource source = EmptyDirVolumeSource{}) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.name = "web";
    pod->metadata.uid = "uid-1";
    PodVolume volume;
    volume.name = "data";
    volume.source = std::move(source);
    const VolumeSpec spec = VolumeSpec::FromVolume(volume);
    return {.target = TargetOfPod(pod), .spec = spec, .sub_paths = {}, .nested_mount_points = {}};
  }
  OperationOutcome<MountedVolume> Mount(MountRequest request = Request()) {
    OperationOutcome<MountedVolume> outcome;
    int done = 0;
    operations_->ResetBackoff(key_);
    EXPECT_EQ(operations_->Start(MountVolume(std::move(request)),
                                 [&](OperationOutcome<MountedVolume> got) {
                                   outcome = std::move(got);
                                   ++done;
                                 }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    EXPECT_EQ(done, 1);
    return outcome;
  }
  std::optional<OperationFailure> Unmount() {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff(key_);
    EXPECT_EQ(operations_->Start(UnmountVolume({PodUid("uid-1"), SpecName("data"), kScriptedPlugin,
                                                "default/web"}),
                                 [&](OperationOutcome<Unit> got) {
                                   EXPECT_NE(got.value.has_value(), got.failure.has_value());
                                   failure = got.failure;
                                 }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return failure;
  }
  std::optional<OperationFailure> RemovePod(PodRecordEnd record = PodRecordEnd::kRemove) {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff({PodUid("uid-1"), SpecName()});
    EXPECT_EQ(operations_->Start(volumed::RemovePod(PodUid("uid-1"), "default/web", record),
                                 [&](OperationOutcome<Unit> got) { failure = got.failure; }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return failure;
  }
  std::string StoredState() const {
    const auto row = store_.Find(kPodVolumeRecordKind, RecordKey(key_));
    if (!row) return "none";
    const PodVolumeRecord record = DecodePodVolumeRecord(*row).value();
    return std::string(VolumeStateName(record.state)) + (record.uncertain ? "*" : "");
  }
  std::string State() const {
    const auto record = operations_->FindRecord(key_);
    if (!record) return "none";
    return std::string(VolumeStateName(record->state)) + (record->uncertain ? "*" : "");
  }

  const PodVolumeKey key_ = Key("uid-1", "data");
  SimulatedScheduler scheduler_{7};
  FakeKernel kernel_;
  MemoryRecordStore store_;
  StubHostParts parts_;
  KubeletPaths paths_{kRoot};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, scheduler_.clock(), parts_,       parts_,
                   parts_, parts_,  families_,          irreversible_};
  PluginScript script_;
  VolumePluginMgr plugins_;
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  std::shared_ptr<UnrecordedMounts> unrecorded_ = std::make_shared<UnrecordedMounts>();
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<NodeVolumeOperations> operations_;
};

}  // namespace volumed
