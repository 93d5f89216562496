// Block volumes through the operations, on the local plugin: which device pods get, and until when.
#include "operation/map_operations.h"
#include "fakes/target_of.h"
#include "operation/device_operations.h"

#include <gtest/gtest.h>

#include <memory>

#include "operation/node_volume_operations.h"
#include "operation/pin_operations.h"
#include "pluginmgr/block_volume_plugin.h"
#include "plugins/local.h"
#include "unit/operation/load_records.h"
#include "unit/operation/operation_parts_fixture.h"
#include "unit/pluginmgr/plugin_without_mounts.h"

namespace volumed {
namespace {

const std::string kMapPath = kRoot + "/plugins/kubernetes.io~local-volume/volumeDevices/disk";
const UniqueVolumeName kLocalDisk("kubernetes.io/local-volume/disk");

// Makes neither mapper nor unmapper.
class NothingMapped final : public PluginWithoutMounts, public BlockVolumePlugin {
 public:
  static constexpr const char* kName = "test/nothing";

  std::string GetPluginName() const override { return kName; }
  Result<std::string> GetVolumeName(const VolumeSpec&) const override { return None(); }
  bool CanSupport(const VolumeSpec&) const override { return false; }
  VolumePlugin& plugin() override { return *this; }
  BlockVolumePlugin* AsBlock() override { return this; }
  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec&,
                                                                  PodPtr) override {
    return None();
  }
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName&,
                                                                      const PodUid&) override {
    return None();
  }
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid&, const SpecName&, const SafePath&,
                                              const CallOptions&) override {
    return None();
  }

 private:
  static Error None() { return Error::NotApplied(Code::kUnavailable, "the driver is silent"); }
};

class MapOperationsTest : public OperationHostFixture {
 protected:
  MapOperationsTest() {
    node_.AddDirectory(kRoot + "/pods", 0750);
    node_.AddDevice("/dev/vdb");
    node_.AddDevice("/dev/vdc");
    node_.AddSymlink("/dev/by-id", "/dev/vdb");
    Init(std::make_unique<LocalVolumePlugin>(LocalVolumeSettings{}));
    Restart("boot-a");
  }

  // A new agent on the same kernel and store.
  void Restart(const std::string& boot) {
    operations_.reset();
    devices_ =
        std::make_unique<DeviceRecordKeeper>(store_, clock_, logger_, observer_, BootId(boot));
    storage_ = std::make_unique<StorageGuard>(node_, store_, clock_, logger_, BootId(boot));
    operations_ = std::make_unique<NodeVolumeOperations>(
        scheduler_, OperationParts{plugins_, host_, logger_, store_, *devices_, *storage_},
        observer_, BootId(boot));
    operations_->Restore(LoadPodVolumeRecords(store_), LoadDeviceRecords(store_));
  }

  static PodPtr ThePod(const std::string& uid) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.name_space = "default";
    pod->metadata.name = uid;
    pod->metadata.uid = uid;
    return pod;
  }
  VolumeSpec Spec() const {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    volume.spec.volume_mode = VolumeMode::kBlock;
    LocalVolumeSource source;
    source.path = path_;
    volume.spec.source = source;
    return VolumeSpec::FromPersistentVolume(std::move(volume), read_only_);
  }
  static std::string Text(const std::optional<OperationFailure>& failure) {
    return failure ? failure->operation + "/" + failure->step + ": " + failure->error.ToString()
                   : "";
  }

  // Each answers what failed; "" on success.
  std::string SetUpDevice() {
    OperationOutcome<MountedDevice> outcome;
    operations_->ResetBackoff(OperationKey(kLocalDisk));
    MountDeviceRequest request{kLocalDisk, Spec(), {}};
    request.first_pod = ThePod("u-1");
    EXPECT_EQ(operations_->Start(MountDevice(request), [&](const auto& got) { outcome = got; }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return Text(outcome.failure);
  }
  std::string UnmapDevice(const char* plugin = kLocalVolumePluginName) {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff(OperationKey(kLocalDisk));
    EXPECT_EQ(
        operations_->Start(UnmountDevice({kLocalDisk, plugin, SpecName("disk"), kMapPath, true}),
                           [&](const auto& got) { failure = got.failure; }),
        StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return Text(failure);
  }
  std::string Map(const std::string& pod) {
    operations_->ResetBackoff(Key(pod, "disk"));
    MountRequest request{
        .target = TargetOf(paths_, **plugins_.FindPluginBySpec(Spec()), Spec(), *ThePod(pod)),
        .spec = Spec(),
        .sub_paths = {},
        .nested_mount_points = {}};
    request.unique_name = kLocalDisk;
    request.has_device = true;
    std::optional<OperationFailure> failure;
    EXPECT_EQ(operations_->Start(MapVolume(std::move(request)),
                                 [&](const OperationOutcome<MountedVolume>& got) {
                                   failure = got.failure;
                                   if (got.value) mapped_ = *got.value;
                                 }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return Text(failure);
  }
  std::string Unmap(const std::string& pod, const char* plugin = kLocalVolumePluginName) {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff(Key(pod, "disk"));
    EXPECT_EQ(operations_->Start(UnmapVolume({PodUid(pod), SpecName("disk"), plugin,
                                              "default/" + pod, kLocalDisk}),
                                 [&](const auto& got) { failure = got.failure; }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return Text(failure);
  }

  std::string Pin(const std::string& node = "") {
    std::optional<OperationFailure> failure;
    operations_->ResetBackoff(OperationKey(kLocalDisk));
    EXPECT_EQ(operations_->Start(PinDevice(kLocalDisk, kLocalVolumePluginName, node),
                                 [&](const auto& got) { failure = got.failure; }),
              StartResult::kStarted);
    scheduler_.RunFor(Duration::zero());
    return Text(failure);
  }

  static std::string Link(const std::string& pod) {
    return kRoot + "/pods/" + pod + "/volumeDevices/kubernetes.io~local-volume/disk";
  }
  static std::string Node(const std::string& pod) { return kMapPath + "/" + pod; }
  int64_t Holds() const { return node_.Device("/dev/vdb").OpenPins(); }

  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  std::string path_ = "/dev/by-id";
  bool read_only_ = false;
  MountedVolume mapped_;
};

TEST_F(MapOperationsTest, APodGetsItsNodeAndItsLinkAndTheDeviceIsHeld) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  EXPECT_EQ(node_.Find(Link("u-1")).content, "/dev/vdb");
  EXPECT_EQ(node_.Find(Node("u-1")).type, FileType::kBlockDevice);
  EXPECT_EQ(mapped_.host_path, Link("u-1"));
  ASSERT_TRUE(mapped_.mapped);
  EXPECT_EQ(*mapped_.mapped, (MappedDevice{"/dev/vdb", Node("u-1")}));
  EXPECT_FALSE(mapped_.attributes.read_only);
  EXPECT_EQ(Holds(), 1);
  EXPECT_EQ(operations_->pinned_devices(), 1u);
  EXPECT_EQ(devices_->Find(kLocalDisk)->mapped->path, "/dev/vdb");
  EXPECT_EQ(parts_.events,
            (std::vector<std::string>{
                "u-1 SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume \"disk\" "
                "globalMapPath \"" +
                    kMapPath + "\"",
                "u-1 SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume \"disk\" "
                "volumeMapPath \"" +
                    kRoot + "/pods/u-1/volumeDevices/kubernetes.io~local-volume\""}));

  ASSERT_EQ(Unmap("u-1"), "");
  EXPECT_FALSE(node_.Exists(Link("u-1")));
  EXPECT_FALSE(node_.Exists(Node("u-1")));
  ASSERT_EQ(UnmapDevice(), "");
  EXPECT_EQ(Holds(), 0);
  EXPECT_FALSE(node_.Exists(kMapPath));
  // That it was used raw stays on record until the volume is gone.
  ASSERT_EQ(store_.All().size(), 1u);
  EXPECT_EQ(store_.All().front().kind, kStorageOwnerRecordKind);
  const auto used = DecodeStorageOwnerRecord(store_.All().front());
  ASSERT_TRUE(used.ok());
  EXPECT_EQ(used->volume, "disk");
  EXPECT_EQ(used->mode, StorageMode::kRaw);
  EXPECT_EQ(node_.Mounts().size(), 1u);
}

TEST_F(MapOperationsTest, TheDeviceStaysWhileAnotherPodRefersToIt) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  ASSERT_EQ(Map("u-2"), "");
  EXPECT_EQ(Holds(), 1);
  ASSERT_EQ(Unmap("u-1"), "");
  EXPECT_NE(UnmapDevice().find("the volume is still Mapped for pod default/u-2"),
            std::string::npos);
  EXPECT_EQ(Holds(), 1);
  ASSERT_EQ(Unmap("u-2"), "");
  EXPECT_EQ(UnmapDevice(), "");
}

TEST_F(MapOperationsTest, ANodeThatNoRecordKnowsKeepsTheDeviceToo) {
  ASSERT_EQ(SetUpDevice(), "");
  node_.AddFile(Node("u-9"), "");
  ASSERT_TRUE(
      node_.Call(BindMount{.source = {"/dev/vdb", ""}, .target = {Node("u-9"), ""}}, CallOptions{})
          .ok());
  EXPECT_EQ(UnmapDevice(), "unmap_device/GetDeviceBindMountRefs: " +
                               Error::NotApplied(Code::kFailedPrecondition,
                                                 "the device \"" + kMapPath +
                                                     "\" is still referenced from other Pods [u-9]")
                                   .ToString());
  EXPECT_TRUE(node_.IsMountPoint(Node("u-9")));
}

TEST_F(MapOperationsTest, NoPodGetsAnotherDeviceThanTheFirstOneGot) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  path_ = "/dev/vdc";
  const std::string failure = Map("u-2");
  EXPECT_EQ(failure.find("map_volume/HoldDevice: "), 0u) << failure;
  EXPECT_NE(failure.find("device /dev/vdc is not the one that pods were given as this volume"),
            std::string::npos)
      << failure;
  EXPECT_FALSE(node_.Exists(Node("u-2")));
  // A new agent knows it by the record, and opens it again.
  Restart("boot-a");
  EXPECT_EQ(Holds(), 0);
  path_ = "/dev/vdb";
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  EXPECT_EQ(Holds(), 1);
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { device.identity.size_bytes *= 2; });
  EXPECT_EQ(Map("u-2"), "");  // it has grown
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { ++device.identity.disk_sequence; });
  EXPECT_NE(Map("u-3").find("its disk sequence is"), std::string::npos);
}

TEST_F(MapOperationsTest, ANewAgentHoldsTheDeviceOfAPodThatIsNotMappedAgain) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  Restart("boot-a");
  ASSERT_EQ(Holds(), 0);
  ASSERT_EQ(Pin(), "");
  EXPECT_EQ(Holds(), 1);
  EXPECT_EQ(operations_->pinned_devices(), 1u);
  ASSERT_EQ(Pin(), "");
  EXPECT_EQ(Holds(), 1);
  ASSERT_EQ(Unmap("u-1"), "");
  ASSERT_EQ(UnmapDevice(), "");
  EXPECT_EQ(Holds(), 0);
}

// Without its record nobody had it open, and another file could get the number of a loop device.
TEST_F(MapOperationsTest, ADeviceWhoseRecordIsDamagedIsHeldByTheNodeOfAPod) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  store_.Corrupt(kDeviceRecordKind, kLocalDisk.str(), "its checksum is wrong");
  Restart("boot-a");
  EXPECT_NE(Pin().find("no record says which device"), std::string::npos);
  EXPECT_EQ(Pin(Node("u-1")), "");
  EXPECT_EQ(Holds(), 1);
  EXPECT_EQ(operations_->pinned_devices(), 1u);
}

TEST_F(MapOperationsTest, ANewAgentHoldsNoOtherDeviceThanThePodWasGiven) {
  EXPECT_NE(Pin().find("pin_device/HoldDevice: "), std::string::npos);
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  Restart("boot-a");
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { ++device.identity.disk_sequence; });
  const std::string failure = Pin();
  EXPECT_NE(failure.find("device /dev/vdb is not the one that pods were given as this volume: its "
                         "disk sequence is"),
            std::string::npos)
      << failure;
  EXPECT_EQ(Holds(), 0);
}

// The next pod waited until the agent was started again: it wanted the device, so that the record
// of what the pods before it were given stayed.
TEST_F(MapOperationsTest, ADeviceThatWasAttachedAnewIsGivenOnceNoPodHasTheFormerOne) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  Restart("boot-a");
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { ++device.identity.disk_sequence; });
  ASSERT_EQ(SetUpDevice(), "");
  const std::string failure = Map("u-2");
  EXPECT_NE(failure.find("all pods with the volume have to leave first"), std::string::npos)
      << failure;
  EXPECT_NE(Map("u-1").find("have to leave first"), std::string::npos) << "it has the former one";
  ASSERT_EQ(Unmap("u-1"), "");
  EXPECT_EQ(Map("u-2"), "");
  EXPECT_EQ(Holds(), 1);
  EXPECT_EQ(devices_->Find(kLocalDisk)->mapped->device.disk_sequence,
            node_.Device("/dev/vdb").identity.disk_sequence);
}

// The holder that was expected at the path counted as one that had been asked for.
TEST_F(MapOperationsTest, AnotherFileAtTheNumberOfADeviceWasGivenOnceNoPodHadTheFormerOne) {
  const auto attach = [&](const std::string& file) {
    node_.ChangeDevice("/dev/vdb", [&](FakeDevice& device) {
      device.storage_own = {file};
      ++device.identity.disk_sequence;
    });
  };
  const auto keys = [&]() -> std::vector<std::string> {
    for (const Record& row : store_.All()) {
      if (row.kind == kStorageOwnerRecordKind) return DecodeStorageOwnerRecord(row)->own_keys;
    }
    return {};
  };
  attach("file:a");
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  const std::vector<std::string> recorded = keys();
  ASSERT_EQ(recorded, std::vector<std::string>{"file:a"});
  Restart("boot-a");
  attach("file:b");
  ASSERT_EQ(SetUpDevice(), "");
  EXPECT_NE(Map("u-2").find("have to leave first"), std::string::npos);
  ASSERT_EQ(Unmap("u-1"), "");
  for (int tries = 0; tries < 2; ++tries) {
    const std::string failure = Map("u-2");
    EXPECT_NE(failure.find("is another block device than the one that persistent volume disk has"),
              std::string::npos)
        << failure;
    EXPECT_EQ(keys(), recorded);
    EXPECT_EQ(Holds(), 0);
  }
  attach("file:a");
  EXPECT_EQ(Map("u-2"), "") << "its own file";
  ASSERT_EQ(Unmap("u-2"), "");
  ASSERT_EQ(UnmapDevice(), "");
  attach("file:b");
  ASSERT_EQ(SetUpDevice(), "");
  EXPECT_NE(Map("u-3"), "");
  ASSERT_TRUE(storage_->AcceptDirectory("disk", {}).ok());
  EXPECT_EQ(Map("u-3"), "");
  EXPECT_EQ(keys(), std::vector<std::string>{"file:b"});
}

TEST_F(MapOperationsTest, AfterARebootADeviceIsKnownByWhatItSaysOfItself) {
  node_.ChangeDevice("/dev/vdb",
                     [](FakeDevice& device) { device.identity.stable_id = "serial:1"; });
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  node_.Reboot();
  Restart("boot-b");
  node_.ChangeDevice("/dev/vdb",
                     [](FakeDevice& device) { device.identity.stable_id = "serial:2"; });
  ASSERT_EQ(SetUpDevice(), "");
  EXPECT_NE(Map("u-1").find("its own identity is serial:2, not serial:1"), std::string::npos);
  node_.ChangeDevice("/dev/vdb",
                     [](FakeDevice& device) { device.identity.stable_id = "serial:1"; });
  ASSERT_EQ(Map("u-1"), "");
  EXPECT_TRUE(node_.IsMountPoint(Node("u-1")));
}

TEST_F(MapOperationsTest, WhatIsNoBlockDeviceIsRefusedWithoutATrace) {
  node_.AddDirectory("/srv/directory");
  path_ = "/srv/directory";
  ASSERT_EQ(SetUpDevice(), "");
  const std::string failure = Map("u-1");
  EXPECT_NE(failure.find("not a block device"), std::string::npos) << failure;
  EXPECT_FALSE(operations_->FindRecord(Key("u-1", "disk")));
  ASSERT_EQ(parts_.events.size(), 1u);
  EXPECT_EQ(parts_.events[0].find("u-1 FailedMapVolume MapVolume.HoldDevice failed for volume"), 0u)
      << parts_.events[0];
  EXPECT_EQ(UnmapDevice(), "");
}

TEST_F(MapOperationsTest, AVolumeIsMappedOnlyOnceItsDeviceIsSetUp) {
  EXPECT_NE(Map("u-1").find("map_volume/CheckDevice"), std::string::npos);
  EXPECT_EQ(node_.Mounts().size(), 1u);
}

TEST_F(MapOperationsTest, ReadOnlyIsForTheRuntimeToEnforce) {
  read_only_ = true;
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  EXPECT_TRUE(mapped_.attributes.read_only);
  EXPECT_FALSE(node_.Device("/dev/vdb").read_only);
}

TEST_F(MapOperationsTest, AVolumeFoundWithoutARecordIsTakenAwayWithAKubeletsLoopDevice) {
  node_.AddSymlink(Link("u-7"), "/dev/vdb");
  node_.AddFile(Node("u-7"), "");
  ASSERT_TRUE(
      node_.Call(BindMount{.source = {"/dev/vdb", ""}, .target = {Node("u-7"), ""}}, CallOptions{})
          .ok());
  node_.AddLoop(Node("u-7"));
  ASSERT_EQ(Unmap("u-7"), "");
  EXPECT_TRUE(node_.LoopFiles().empty());
  EXPECT_FALSE(node_.Exists(Link("u-7")));
  EXPECT_FALSE(node_.Exists(Node("u-7")));
  EXPECT_EQ(UnmapDevice(), "");
  EXPECT_FALSE(node_.Exists(kMapPath));
}

TEST_F(MapOperationsTest, APluginThatMakesNoUnmapperSaysWhy) {
  std::vector<std::unique_ptr<VolumePlugin>> plugins;
  plugins.push_back(std::make_unique<NothingMapped>());
  ASSERT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
  for (const std::string& failure :
       {Unmap("u-7", NothingMapped::kName), UnmapDevice(NothingMapped::kName)}) {
    EXPECT_NE(failure.find("/NewBlockVolumeUnmapper: "), std::string::npos) << failure;
    EXPECT_NE(failure.find("the driver is silent"), std::string::npos) << failure;
  }
}

TEST_F(MapOperationsTest, ABlockVolumeIsKnownByThePodsLink) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  BlockVolumePlugin* plugin = plugins_.FindMapperPluginByName(kLocalVolumePluginName).value();
  ASSERT_NE(plugin, nullptr);
  const VolumeSpec spec =
      plugin
          ->ConstructBlockVolumeSpec(PodUid("u-1"), SpecName("disk"),
                                     {kRoot, Link("u-1").substr(kRoot.size() + 1)}, CallOptions{})
          .value();
  EXPECT_TRUE(IsBlockVolume(spec));
  EXPECT_EQ(spec.SourceAs<LocalVolumeSource>()->path, "/dev/vdb");
}

TEST_F(MapOperationsTest, TheCapacityIsTheDevicesAndNothingElseIsMeasured) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  BlockVolumePlugin* plugin = plugins_.FindMapperPluginByName(kLocalVolumePluginName).value();
  const auto mapper = plugin->NewBlockVolumeMapper(Spec(), ThePod("u-1")).value();
  ASSERT_TRUE(mapper->SupportsMetrics());
  const Metrics metrics = mapper->GetMetrics(CallOptions{}).value();
  EXPECT_EQ(metrics.capacity_bytes, node_.Device("/dev/vdb").identity.size_bytes);
  EXPECT_FALSE(metrics.used_bytes);
}

TEST_F(MapOperationsTest, ADeviceThatHangsIsNotClosedAndOneThatFailsIs) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  ASSERT_EQ(Unmap("u-1"), "");
  node_.FailNext("FlushDevice",
                 Error::MaybeApplied(Code::kDeadlineExceeded, "FlushDevice: no answer in time"));
  EXPECT_NE(UnmapDevice().find("unmap_device/ReleaseDevice"), std::string::npos);
  EXPECT_EQ(Holds(), 1);
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { device.unreadable = true; });
  EXPECT_EQ(UnmapDevice(), "");
  EXPECT_EQ(Holds(), 0);
  EXPECT_EQ(log_.Count("may not all be on its device"), 1);
}

TEST_F(MapOperationsTest, ADeviceThatHasGrownWhilePodsHadItIsFlushedBeforeItIsClosed) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { device.identity.size_bytes *= 2; });
  ASSERT_EQ(Unmap("u-1"), "");
  EXPECT_EQ(UnmapDevice(), "");
  EXPECT_EQ(node_.Device("/dev/vdb").flushes, 1);
  EXPECT_EQ(log_.Count("may not all be on its device"), 0);
}

TEST_F(MapOperationsTest, AnotherDeviceUnderThePathOfTheOneThatPodsHadIsNotFlushed) {
  ASSERT_EQ(SetUpDevice(), "");
  ASSERT_EQ(Map("u-1"), "");
  ASSERT_EQ(Unmap("u-1"), "");
  node_.ChangeDevice("/dev/vdb", [](FakeDevice& device) { ++device.identity.disk_sequence; });
  EXPECT_EQ(UnmapDevice(), "");
  EXPECT_EQ(node_.Device("/dev/vdb").flushes, 0);
  EXPECT_EQ(log_.Count("may not all be on its device"), 1);
}

}  // namespace
}  // namespace volumed
