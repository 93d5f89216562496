// Growths on the node: which of them need the record of a device.
#include "operation/expand_operations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "unit/operation/recording_parts.h"
#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
const UniqueVolumeName kVolume("x/v/pv-1");

class ExpandOperationsTest : public ::testing::Test {
 protected:
  void Init(StatefulPlugin::Switches switches) {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<StatefulPlugin>("x/v", storage_, std::move(switches)));
    ASSERT_TRUE(mgr_.InitPlugins(std::move(plugins), world_.host).ok());
  }
  ExpandRequest Request(PodPtr pod) const {
    PersistentVolume volume;
    volume.metadata.name = "pv-1";
    volume.spec.volume_mode = mode_;
    ExpandRequest request{.volume = kVolume,
                          .spec = VolumeSpec::FromPersistentVolume(volume, false),
                          .target = {},
                          .pods = {PodUid("a")},
                          .claim = "default/data",
                          .new_size = Quantity::FromBytes(2 * kGi),
                          .old_size = Quantity::FromBytes(kGi),
                          .decision = {}};
    if (pod != nullptr) {
      request.target =
          PodVolumeTarget(KubeletPaths("/r"), std::move(pod), "x/v", request.spec.name());
    }
    return request;
  }
  // "" on success.
  std::string Expand(PodPtr pod) {
    OperationProgress progress(clock_);
    ExpandedVolume result;
    const auto failure =
        ExpandVolume(Request(std::move(pod)))
            .Run({mgr_, world_.host, logger_, records_, devices_, guard_}, progress, result);
    return failure ? failure->step + ": " + failure->error.ToString() : "";
  }
  static PodPtr ThePod() {
    auto pod = std::make_shared<Pod>();
    pod->metadata.uid = "a";
    return pod;
  }

  // The device is mounted, by its record.
  void RecordDevice(const std::string& place) {
    DeviceRecord facts;
    facts.key = kVolume;
    facts.plugin_name = "x/v";
    facts.spec = SpecName("pv-1");
    facts.is_block = mode_ == VolumeMode::kBlock;
    facts.device_mount_path = place;
    const Result<uint64_t> attempt = devices_.BeginCall(facts, VolumeEvent::kMountDevice);
    ASSERT_TRUE(attempt.ok()) << attempt.error().ToString();
    ASSERT_TRUE(devices_.EndCall(kVolume, *attempt, CallAnswer::kDone).ok());
  }

  VolumeMode mode_ = VolumeMode::kFilesystem;
  ManualClock clock_;
  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  StatefulStorage storage_;
  VolumePluginMgr mgr_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  MemoryRecordStore records_;
  RecordingObserver observer_;
  DeviceRecordKeeper devices_{records_, clock_, logger_, observer_, BootId("boot-a")};
  StorageGuard guard_{kernel_, records_, clock_, logger_, BootId("boot-a")};
};

// Such a volume, of a flexVolume driver without attach, never has the record of a device: it could
// never be made larger.
TEST_F(ExpandOperationsTest, AVolumeWhosePluginMountsNoDevicesGrowsWhereAPodHasIt) {
  Init({.has_devices = false});
  EXPECT_EQ(Expand(ThePod()), "");
  EXPECT_EQ(storage_.node_size, 2 * kGi);
  EXPECT_TRUE(records_.Load(kDeviceRecordKind)->records.empty());
}

TEST_F(ExpandOperationsTest, WithoutAPodItIsNotKnownWhereSuchAVolumeIs) {
  Init({.has_devices = false});
  EXPECT_NE(Expand(nullptr).find("no pod is known that has volume x/v/pv-1"), std::string::npos);
  EXPECT_EQ(storage_.node_size, 0);
}

TEST_F(ExpandOperationsTest, AVolumeWhosePluginMountsDevicesNeedsTheRecordOfItsDevice) {
  Init({});
  EXPECT_NE(Expand(ThePod()).find("FindRecord: "), std::string::npos);
  EXPECT_EQ(storage_.node_size, 0);
}

// A driver finds the volume by the path at which a pod has it, and is told where it is staged.
TEST_F(ExpandOperationsTest, AVolumeWhosePluginNeedsAPodGrowsWhereAPodHasIt) {
  Init({.growth_needs_pod = true});
  RecordDevice("/r/staged");
  Expand(ThePod());
  ASSERT_EQ(storage_.grown_at.size(), 4u);
  EXPECT_EQ(storage_.grown_at[0], "/r/pods/a/volumes/x~v/pv-1");
  EXPECT_EQ(storage_.grown_at[1], "/r/plugins/mounts/pv-1");
  EXPECT_EQ(storage_.grown_at[2], "");
  EXPECT_EQ(storage_.grown_at[3], "a");
  storage_.grown_at.clear();
  EXPECT_NE(Expand(nullptr).find("no pod is known that has volume"), std::string::npos);
  EXPECT_TRUE(storage_.grown_at.empty());
}

TEST_F(ExpandOperationsTest, ABlockVolumeWhosePluginNeedsAPodGrowsByThePodsDevice) {
  mode_ = VolumeMode::kBlock;
  Init({.growth_needs_pod = true});
  RecordDevice("/r/map");
  Expand(ThePod());
  ASSERT_EQ(storage_.grown_at.size(), 4u);
  EXPECT_EQ(storage_.grown_at[0], "");
  EXPECT_TRUE(storage_.grown_at[2].ends_with("/a")) << storage_.grown_at[2];
  EXPECT_EQ(storage_.grown_at[3], "a");
}

}  // namespace
}  // namespace volumed
