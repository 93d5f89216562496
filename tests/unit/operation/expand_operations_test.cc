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
  static ExpandRequest Request(PodPtr pod) {
    PersistentVolume volume;
    volume.metadata.name = "pv-1";
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

}  // namespace
}  // namespace volumed
