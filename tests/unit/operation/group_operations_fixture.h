// The operations of a pod's volumes as a group, on a fake kernel and records in memory whose round
// trips and writes are counted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "fakes/target_of.h"
#include "metrics/exported_families.h"
#include "operation/group_operations.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/storage_steps.h"
#include "plugins/empty_dir.h"
#include "plugins/host_path.h"
#include "plugins/projected.h"
#include "plugins/secret.h"
#include "unit/operation/load_records.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/stub_host.h"
#include "unit/operation/test_domains.h"
#include "unit/operation/usual_errors.h"

namespace volumed {

inline const std::string kVolumes = kPodDir + "/volumes/kubernetes.io~empty-dir";

// A kernel behind a worker: one request is one round trip, whatever it is made of.
class CountingKernel final : public Kernel {
 public:
  explicit CountingKernel(Kernel& real) : real_(real) {}
  bool TakesComposites() const override { return true; }
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    // The agent's own mount table answers.
    if (std::holds_alternative<ListMounts>(request)) return real_.Perform(request, options);
    ++round_trips;
    last_keys = options.more_keys;
    const bool is_held =
        !held.empty() && (options.key == held ||
                          std::find(last_keys.begin(), last_keys.end(), held) != last_keys.end());
    if (is_held) return Error::NotApplied(Code::kAborted, "an earlier worker still holds key");
    if (died || std::exchange(dies_once, false))
      return Error::MaybeApplied(Code::kUnavailable, "the worker died");
    return real_.Perform(request, options);
  }

  int round_trips = 0;
  std::vector<std::string> last_keys;
  std::string held;  // a key that a worker of an agent before this one has
  bool died = false;
  bool dies_once = false;

 private:
  Kernel& real_;
};

// A store of which each Write() is one transaction.
class CountingStore final : public RecordStore {
 public:
  explicit CountingStore(RecordStore& real) : real_(real) {}
  Status Put(const Record& record, Durability durability) override {
    ++writes;
    return real_.Put(record, durability);
  }
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    ++writes;
    return real_.Remove(kind, key, durability);
  }
  std::vector<Status> Write(const std::vector<RowChange>& changes, Durability durability) override {
    ++writes;
    return real_.Write(changes, durability);
  }
  Result<LoadedRecords> Load(const std::string& kind) override { return real_.Load(kind); }
  Status QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) override {
    return real_.QuarantineInPlace(rows);
  }
  RecordStoreStats stats() const override { return real_.stats(); }

  int writes = 0;

 private:
  RecordStore& real_;
};

class GroupOperationsTest : public ::testing::Test {
 protected:
  GroupOperationsTest() {
    real_kernel_.AddDirectory(kRoot + "/pods", 0750);
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<EmptyDirPlugin>());
    plugins.push_back(std::make_unique<HostPathPlugin>());
    plugins.push_back(std::make_unique<SecretPlugin>());
    plugins.push_back(std::make_unique<ProjectedPlugin>());
    EXPECT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
    auto pod = std::make_shared<Pod>();
    pod->metadata.name_space = "default";
    pod->metadata.name = "web";
    pod->metadata.uid = "uid-1";
    pod_ = pod;
  }

  MountRequest Request(const std::string& name, VolumeSource source) const {
    PodVolume volume;
    volume.name = name;
    volume.source = std::move(source);
    const VolumeSpec spec = VolumeSpec::FromVolume(volume);
    return {.target = TargetOf(paths_, **plugins_.FindPluginBySpec(spec), spec, *pod_),
            .spec = spec,
            .sub_paths = {},
            .nested_mount_points = {}};
  }
  MountRequest Disk(const std::string& name) const { return Request(name, EmptyDirVolumeSource{}); }
  MountRequest Memory(const std::string& name) const {
    EmptyDirVolumeSource source;
    source.medium = kMediumMemory;
    return Request(name, std::move(source));
  }
  MountRequest Host(const std::string& name, const std::string& path) const {
    return Request(name, HostPathVolumeSource{path, HostPathType::kDirectory});
  }
  // Who keeps the directory's content from being deleted; "" for nobody.
  std::string WhoKeeps(const std::string& path) {
    StorageGuard& storage = next_storages_.empty() ? storage_ : *next_storages_.back();
    PersistentVolume volume;
    volume.metadata.name = "pv";
    const auto taken =
        storage.TakeForReclaim(ReclaimStorageHolder(volume), {path}, "claim", {}, CallOptions());
    if (taken.ok()) (void)storage.Release(ReclaimStorageHolder(volume).id);
    return taken.ok() ? "" : taken.error().message();
  }
  MountRequest Secret(const std::string& name) const {
    SecretVolumeSource source;
    source.secret_name = "nobody-has-it";
    return Request(name, std::move(source));
  }

  static std::string Text(const std::optional<OperationFailure>& failure) {
    return failure ? failure->step + ": " + failure->error.ToString() : "done";
  }
  // What became of each volume, by its name.
  std::map<std::string, std::string> Mount(std::vector<MountRequest> requests) {
    std::map<std::string, std::string> outcomes;
    std::vector<std::string> names;
    std::vector<MountVolume> mounts;
    for (MountRequest& request : requests) {
      names.push_back(request.spec.name().str());
      mounts.emplace_back(std::move(request));
    }
    const std::vector<StartResult> started = operations_->StartEach<MountVolume>(
        std::move(mounts), [&](size_t number, const OperationOutcome<MountedVolume>& outcome) {
          outcomes[names[number]] = Text(outcome.failure);
          if (outcome.value) mounted_[names[number]] = *outcome.value;
        });
    for (size_t i = 0; i < names.size(); ++i) {
      if (started[i] == StartResult::kBackoff) outcomes[names[i]] = "backs off";
      if (started[i] == StartResult::kPending) outcomes[names[i]] = "pending";
    }
    scheduler_.RunFor(Duration::zero());
    return outcomes;
  }
  std::map<std::string, std::string> Unmount(const std::vector<std::string>& names) {
    std::map<std::string, std::string> outcomes;
    std::vector<UnmountVolume> unmounts;
    for (const std::string& name : names) {
      unmounts.emplace_back(UnmountRequest{PodUid("uid-1"), SpecName(name), "", "default/web"});
    }
    (void)operations_->StartEach<UnmountVolume>(
        std::move(unmounts), [&](size_t number, const OperationOutcome<Unit>& outcome) {
          outcomes[names[number]] = Text(outcome.failure);
        });
    scheduler_.RunFor(Duration::zero());
    return outcomes;
  }
  std::string State(const std::string& name) const {
    const auto record = operations_->FindRecord(Key("uid-1", name));
    if (!record) return "none";
    return std::string(VolumeStateName(record->state)) + (record->uncertain ? "*" : "");
  }

  SimulatedScheduler scheduler_{1};
  FakeKernel real_kernel_;
  CountingKernel kernel_{real_kernel_};
  MemoryRecordStore real_store_;
  CountingStore store_{real_store_};
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  KubeletPaths paths_{kRoot};
  StubHostParts stub_;
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, scheduler_.clock(), stub_,        stub_,
                   stub_,  stub_,   families_,          irreversible_};
  VolumePluginMgr plugins_;
  TestDomains domains_;
  DeviceRecordKeeper devices_{store_, scheduler_.clock(), logger_, observer_, BootId("boot")};
  StorageGuard storage_{kernel_, store_, scheduler_.clock(), logger_, BootId("boot")};
  std::vector<std::unique_ptr<StorageGuard>> next_storages_;  // of the agents after the first
  std::unique_ptr<NodeVolumeOperations> operations_ = std::make_unique<NodeVolumeOperations>(
      scheduler_, OperationParts{plugins_, host_, logger_, store_, devices_, storage_}, observer_,
      BootId("boot"), &domains_);
  PodPtr pod_;
  std::map<std::string, MountedVolume> mounted_;
};

}  // namespace volumed
