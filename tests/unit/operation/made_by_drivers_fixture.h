// A plugin whose driver makes, deletes and makes larger what tests say, and the operations that ask
// it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/driver_storage.h"
#include "operation/expand_storage_operations.h"
#include "operation/operation_executor.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "operation/recorded_volume.h"
#include "operation/storage_steps.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "unit/operation/operation_parts_fixture.h"
#include "unit/pluginmgr/plugin_without_mounts.h"
#include "volume/storage_name.h"

namespace volumed {

inline constexpr const char* kDriver = "disk.example.com";
inline const UniqueVolumeName kUnique("kubernetes.io/csi/disk.example.com^vol-1");

inline PersistentVolume VolumeOf(const std::string& name, const std::string& handle) {
  PersistentVolume volume;
  volume.metadata.name = name;
  CsiPersistentVolumeSource source;
  source.driver = kDriver;
  source.volume_handle = handle;
  volume.spec.source = source;
  return volume;
}

// What the driver answers, and what it was asked.
struct Maker {
  std::optional<PersistentVolume> there = VolumeOf("pvc-1", "vol-1");  // nullopt: certainly nothing
  std::optional<VolumePlan> plan;
  int found = 0;
  std::vector<std::string> undone;  // handles
  // What happens while CreateVolume, or DeleteVolume, is under way.
  std::function<void()> while_made = [] {};
  std::function<void()> while_undone = [] {};
  std::optional<Error> undo_error = std::nullopt;
  Result<ExpandedStorage> grown = ExpandedStorage{Quantity::FromBytes(200), true};
  int grows = 0;
  bool only_unused = false;
  bool expands = true;

  Status Delete(const std::string& handle) {
    while_undone();
    undone.push_back(handle);
    if (undo_error) return *undo_error;
    return OkStatus();
  }
};

class MakingPlugin final : public PluginWithoutMounts,
                           public ProvisionableVolumePlugin,
                           public ExpandableVolumePlugin,
                           public DeletableVolumePlugin {
 public:
  explicit MakingPlugin(Maker& maker) : maker_(maker) {}
  std::string GetPluginName() const override { return "kubernetes.io/csi"; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return std::string(kDriver) + "^" + spec.SourceAs<CsiPersistentVolumeSource>()->volume_handle;
  }
  bool CanSupport(const VolumeSpec& spec) const override {
    return spec.SourceAs<CsiPersistentVolumeSource>() != nullptr;
  }
  bool SupportsMountOption() const override { return true; }
  std::string FaultDomain(const VolumeSpec&) const override { return "csi:disk.example.com"; }
  bool WorksInLane(const VolumeSpec&) const override { return true; }
  ProvisionableVolumePlugin* AsProvisionerOf(const std::string& provisioner) override {
    return provisioner == kDriver ? this : nullptr;
  }
  ExpandableVolumePlugin* AsExpandable() override { return this; }
  DeletableVolumePlugin* AsDeletable() override { return this; }
  VolumePlugin& plugin() override { return *this; }

  Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override {
    maker_.plan = options.plan;
    return std::unique_ptr<Provisioner>(std::make_unique<Making>(maker_, options));
  }

  Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override {
    const std::string& handle = spec.SourceAs<CsiPersistentVolumeSource>()->volume_handle;
    return std::unique_ptr<Deleter>(std::make_unique<Deleting>(maker_, handle));
  }

  Result<Quantity> ExpandVolumeDevice(const VolumeSpec&, const Quantity&, const Quantity&,
                                      const CallOptions&) override {
    return NotUsed();
  }
  bool RequiresFsResize() const override { return true; }
  bool ExpandsStorage(const VolumeSpec&) const override { return maker_.expands; }
  bool ExpandsOnlyUnused(const VolumeSpec&) const override { return maker_.only_unused; }
  Result<ExpandedStorage> ExpandStorage(const VolumeSpec&, const Quantity&, const Quantity&,
                                        const CallOptions&) override {
    ++maker_.grows;
    return maker_.grown;
  }

 private:
  class Deleting final : public Deleter {
   public:
    Deleting(Maker& maker, std::string handle) : maker_(maker), handle_(std::move(handle)) {}
    Status Delete(const CallOptions&) override { return maker_.Delete(handle_); }
    std::string GetPath() const override { return ""; }
    Result<Metrics> GetMetrics(const CallOptions&) override {
      return Error::NotApplied(Code::kUnimplemented, "not used");
    }

   private:
    Maker& maker_;
    const std::string handle_;
  };

  class Making final : public Provisioner {
   public:
    Making(Maker& maker, VolumeOptions options) : maker_(maker), options_(std::move(options)) {}
    Result<PersistentVolume> Plan() override {
      return options_.plan ? options_.plan->volume : VolumeOf("pvc-1", "unknown:pvc-1");
    }
    std::string PlanText() override { return "the plan"; }
    Result<PersistentVolume> Provision(const NodeObject*, const std::vector<TopologyTerm>&,
                                       const CallOptions&) override {
      maker_.while_made();
      RETURN_IF_ERROR(options_.may_be_new(*maker_.there));
      return *maker_.there;
    }
    Result<std::optional<PersistentVolume>> FindMade(const PersistentVolume&,
                                                     const CallOptions&) override {
      ++maker_.found;
      maker_.while_made();
      if (maker_.there) RETURN_IF_ERROR(options_.may_be_new(*maker_.there));
      return maker_.there;
    }
    Status Undo(const PersistentVolume& made, const CallOptions&) override {
      return maker_.Delete(std::get<CsiPersistentVolumeSource>(made.spec.source).volume_handle);
    }

   private:
    Maker& maker_;
    const VolumeOptions options_;
  };

  Maker& maker_;
};

class MadeByDriversTest : public OperationPartsFixture {
 protected:
  MadeByDriversTest() {
    Init(std::make_unique<MakingPlugin>(maker_));
    request_.plugin_name = kDriver;
    request_.options.pv_name = "pvc-1";
    request_.planned = VolumeOf("pvc-1", "unknown:pvc-1");
    request_.plan = "the plan";
    request_.claim_uid = "c-1";
    Name("pvc-1", "vol-1");  // it is its own
  }
  // The error; "" for success.
  template <typename Op>
  std::string Run(const Op& operation) {
    OperationProgress progress(clock_);
    typename Op::Value value{};
    const auto failure = operation.Run(Parts(), progress, value);
    if (!failure) return "";
    outcome_ = failure->error.outcome();
    return failure->error.message();
  }
  std::string Provision() { return Run(ProvisionVolume(request_)); }
  std::string Undo() { return Run(UndoProvision(request_)); }
  std::string Grow() {
    return Run(
        ExpandStorage({.volume = kUnique,
                       .spec = VolumeSpec::FromPersistentVolume(VolumeOf("pv", "vol-1"), false),
                       .claim = "default/data",
                       .new_size = Quantity::FromBytes(200),
                       .old_size = Quantity::FromBytes(100)}));
  }
  // The PersistentVolume is applied.
  void Name(const std::string& volume, const std::string& handle) {
    const StorageName name{.path = handle, .server = "", .driver = kDriver};
    storage_.NameStorage(volume, &name);
  }
  void AddOther(const std::string& handle) { Name("other", handle); }
  // The next volume is that of another claim.
  void ForClaim(const std::string& volume) {
    request_.options.pv_name = volume;
    request_.planned = VolumeOf(volume, "unknown:" + volume);
    maker_.there = VolumeOf(volume, "vol-1");
  }
  std::string Reclaim(const std::string& handle, std::vector<std::shared_ptr<const Pod>> pods) {
    ReclaimRequest request{std::make_shared<const PersistentVolume>(VolumeOf("pv", handle)),
                           ReclaimAction::kDelete};
    request.pods = std::move(pods);
    return Run(ReclaimVolume(std::move(request)));
  }
  // The volume, attached or staged by its driver.
  static StorageHolder DeviceOf(const std::string& volume) {
    return {.id = DriverStorageId(kUnique),
            .volume = volume,
            .use = StorageUse::kShared,
            .persistent = true,
            .text = "volume " + volume};
  }
  // The node has the volume as a device.
  void PutDevice() {
    DeviceRecord record;
    record.key = kUnique;
    record.plugin_name = "kubernetes.io/csi";
    record.state = VolumeState::kAttached;
    record.attachable = true;
    record.boot_id = BootId("boot-a");
    devices_.Restore(record);
  }

  Maker maker_;
  ProvisionRequest request_;
  std::optional<Outcome> outcome_;
};

}  // namespace volumed
