// A node whose agents have PoolPlugin and the operations of the volume manager on its volumes, with
// the records of both.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "operation/device_operations.h"
#include "operation/map_operations.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/operation_traits.h"
#include "operation/reclaim_operations.h"
#include "operation/record_format_intents.h"
#include "pool/pool_names.h"
#include "unit/operation/load_records.h"
#include "unit/operation/operation_parts_fixture.h"
#include "unit/pool/pool_plugin_fixture.h"
#include "volume/unique_name.h"

namespace volumed {

class PoolOperationsFixture : public OperationHostFixture {
 protected:
  // `pool_type`: the filesystem that the pool lies on; empty: the node's own, which shares no
  // blocks.
  explicit PoolOperationsFixture(const std::string& pool_type = "") {
    node_.AddDirectory(std::string(kRoot) + "/pods", 0750);
    node_.AddDirectory(std::string(kRoot) + "/plugins", 0750);
    node_.AddDirectory(kPoolPath);
    if (!pool_type.empty()) {
      FakeDevice disk;
      disk.fs_type = pool_type;
      disk.identity.uuid = "of-the-pool";
      disk.identity.size_bytes = int64_t{1} << 40;
      node_.AddDevice("/dev/pool", disk);
      Must(node_.DoAside(Mount{pool_type, "/dev/pool", {kPoolPath, ""}, {}}));
    }
    parts_.node_labels = {{PoolTopologyLabel(kDriver), "node"}};
    Restart();
  }

  // A new agent on the same node and store.
  void Restart(const std::string& boot = "boot-a") {
    operations_.reset();
    plugins_of_agent_.reset();
    volumes_.reset();
    devices_ =
        std::make_unique<DeviceRecordKeeper>(store_, clock_, logger_, observer_, BootId(boot));
    guard_ = std::make_unique<StorageGuard>(kernel_, store_, clock_, logger_, BootId(boot));
    guard_->AddOwnDirectory("the directory of pool fast,", kPoolPath);
    intents_ = std::make_unique<RecordFormatIntents>(*devices_, *guard_, BootId(boot));
    std::vector<std::unique_ptr<Pool>> pools;
    if (has_pool_) {
      pools.push_back(std::make_unique<Pool>(TestPool(), kernel_, store_, clock_, logger_));
    }
    volumes_ = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{store_, kernel_, clock_, logger_, irreversible_}, std::move(pools));
    for (const char* kind : {kPoolRecordKind, kPoolVolumeRecordKind, kPoolCutRecordKind}) {
      volumes_->Restore(kind, Must(store_.Load(kind)));
    }
    plugins_of_agent_ = std::make_unique<VolumePluginMgr>();
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<PoolPlugin>(
        PoolPluginParts{*volumes_, kDriver, {.format_intents = intents_.get()}}));
    ASSERT_TRUE(plugins_of_agent_->InitPlugins(std::move(plugins), host_).ok());
    operations_ =
        std::make_unique<NodeVolumeOperations>(scheduler_, Parts(), observer_, BootId(boot));
    operations_->Restore(LoadPodVolumeRecords(store_), LoadDeviceRecords(store_));
    const auto is_used = [this](const std::string& id) {
      const auto device = devices_->Find(GetUniqueVolumeName(kPoolPluginName, id));
      return device && !IsGone(*device);
    };
    const Status opened = volumes_->Recover(is_used, {});
    EXPECT_TRUE(opened.ok() || !opens_pools_) << (opened.ok() ? "" : opened.error().ToString());
  }
  OperationParts Parts() {
    OperationParts parts{*plugins_of_agent_, host_, logger_, store_, *devices_, *guard_};
    parts.unrecorded = unrecorded_;
    return parts;
  }

  // A volume that was made for a claim.
  PersistentVolume Claim(VolumeMode mode = VolumeMode::kFilesystem,
                         const std::string& name = "pvc-1") {
    VolumeOptions options = ClaimOptions(name);
    options.parameters = class_parameters_;
    options.claim.spec.volume_mode = mode;
    ProvisionableVolumePlugin* const plugin =
        Must(plugins_of_agent_->FindProvisionablePluginByName(kDriver));
    const auto provisioner = Must(plugin->NewProvisioner(options));
    PersistentVolume volume = Must(provisioner->Provision(nullptr, {}, {}));
    volume.metadata.annotations[kProvisionedBy] = kDriver;
    return volume;
  }
  static VolumeSpec SpecOf(const PersistentVolume& volume) {
    return VolumeSpec::FromPersistentVolume(volume, false);
  }
  static UniqueVolumeName NameOf(const PersistentVolume& volume) {
    return GetUniqueVolumeName(kPoolPluginName, Must(PoolVolumeIdOf(SpecOf(volume), kDriver)));
  }
  static PodPtr PodNamed(const std::string& uid) {
    Pod pod = MakePod(uid);
    pod.metadata.name_space = "default";
    return std::make_shared<const Pod>(std::move(pod));
  }
  // "" on success, "waits", or the step and the error.
  template <typename Op>
  std::string Start(Op operation) {
    const auto outcome = std::make_shared<std::string>("waits");
    operations_->ResetBackoff(operation.key());
    const StartResult started = operations_->Start(
        std::move(operation), [outcome](const OperationOutcome<typename Op::Value>& got) {
          *outcome = got.failure ? got.failure->step + ": " + got.failure->error.message() : "";
        });
    EXPECT_EQ(started, StartResult::kStarted);
    scheduler_.RunFor(std::chrono::milliseconds(1));
    return *outcome;
  }
  std::string Stage(const PersistentVolume& volume) {
    MountDeviceRequest request{NameOf(volume), SpecOf(volume), {PodUid("a")}};
    request.first_pod = PodNamed("a");
    return Start(MountDevice(std::move(request)));
  }
  std::string Publish(const PersistentVolume& volume) {
    const SpecName spec(volume.metadata.name);
    MountRequest request{.target = PodVolumeTarget(paths_, PodNamed("a"), kPoolPluginName, spec),
                         .spec = SpecOf(volume),
                         .sub_paths = {},
                         .nested_mount_points = {}};
    request.unique_name = NameOf(volume);
    request.has_device = true;
    if (IsBlockVolume(request.spec)) return Start(MapVolume(std::move(request)));
    return Start(MountVolume(std::move(request)));
  }
  std::string Unpublish(const PersistentVolume& volume) {
    UnmountRequest request{PodUid("a"), SpecName(volume.metadata.name), kPoolPluginName,
                           "default/a", NameOf(volume)};
    if (IsBlockVolume(SpecOf(volume))) return Start(UnmapVolume(std::move(request)));
    return Start(UnmountVolume(std::move(request)));
  }
  std::string Unstage(const PersistentVolume& volume) {
    const DeviceRecord device = devices_->Find(NameOf(volume)).value_or(DeviceRecord{});
    return Start(UnmountDevice({NameOf(volume), kPoolPluginName, SpecName(volume.metadata.name),
                                device.device_mount_path, device.is_block}));
  }
  static ReclaimVolume DeleteOf(const PersistentVolume& volume) {
    return ReclaimVolume(
        ReclaimRequest{std::make_shared<const PersistentVolume>(volume), ReclaimAction::kDelete});
  }
  std::string Delete(const PersistentVolume& volume) { return Start(DeleteOf(volume)); }

  // What keeps a pod from a hostPath of the whole node; "" if nothing does.
  std::string TakeWholeNode() {
    StorageHolder pod;
    pod.id = "pod/watcher/node";
    pod.volume = pod.id;
    pod.use = StorageUse::kShared;
    pod.text = "volume node of pod watcher";
    const Result<StorageIdentity> taken = guard_->Take(pod, {"/"}, {});
    return taken.ok() ? "" : taken.error().message();
  }
  std::vector<LoopEntry> Loops() {
    return std::get<LoopList>(Must(node_.DoAside(ListLoops{{kPoolPath, "volumes"}}))).loops;
  }

  bool opens_pools_ = true;  // whether each agent must take over all that the one before has left
  bool has_pool_ = true;     // whether the configuration of the next agent names the pool
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<StorageGuard> guard_;
  std::unique_ptr<RecordFormatIntents> intents_;
  std::unique_ptr<PoolVolumes> volumes_;
  std::unique_ptr<VolumePluginMgr> plugins_of_agent_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  StringMap class_parameters_;  // of what Claim() makes
};

}  // namespace volumed
