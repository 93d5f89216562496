#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "fakes/simulated_crash.h"
#include "fakes/target_of.h"
#include "metrics/exported_families.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "unit/operation/load_records.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/scripted_plugin.h"
#include "unit/operation/stub_host.h"

namespace volumed {
namespace {

// The agent ends at every effect and every record write of set-up and teardown; a new one tears
// down what the record names, and nothing is left.
class PodVolumeCrash : public ::testing::Test {
 protected:
  struct World {
    World() { kernel.AddDirectory(kRoot + "/pods", 0750); }
    FakeKernel kernel;
    MemoryRecordStore store;
  };
  // One agent, from its start to the end of what it was asked; false when it was ended before.
  static bool Live(World& world, bool mount, bool unmount) {
    SimulatedScheduler scheduler(3);
    StubHostParts parts;
    KubeletPaths paths(kRoot);
    ExportedFamilies families;
    FakeIrreversibleSteps irreversible;
    VolumeHost host{paths, world.kernel, scheduler.clock(), parts,       parts,
                    parts, parts,        families,          irreversible};
    PluginScript script;
    VolumePluginMgr plugins;
    std::vector<std::unique_ptr<VolumePlugin>> list;
    list.push_back(std::make_unique<ScriptedPlugin>(script));
    EXPECT_TRUE(plugins.InitPlugins(std::move(list), host).ok());
    LogLines log;
    Logger logger(log.Options(), scheduler.clock());
    RecordingObserver observer;
    DeviceRecordKeeper devices(world.store, scheduler.clock(), logger, observer, BootId("boot-a"));
    StorageGuard storage(world.kernel, world.store, scheduler.clock(), logger, BootId("boot-a"));
    NodeVolumeOperations operations(scheduler,
                                    {plugins, host, logger, world.store, devices, storage},
                                    observer, BootId("boot-a"));
    operations.Restore(LoadPodVolumeRecords(world.store), {});
    bool good = true;
    const auto check = [&](auto outcome) { good = good && outcome.value.has_value(); };
    try {
      if (mount) {
        auto pod = std::make_shared<Pod>();
        pod->metadata.name = "web";
        pod->metadata.uid = "uid-1";
        PodVolume volume;
        volume.name = "data";
        const VolumeSpec spec = VolumeSpec::FromVolume(volume);
        MountRequest request{.target = PodVolumeTarget(paths, pod, kScriptedPlugin, spec.name()),
                             .spec = spec,
                             .sub_paths = {{.container = "app", .index = 0, .sub_path = "x"}},
                             .nested_mount_points = {}};
        operations.Start(MountVolume(request), check);
        scheduler.RunFor(Duration::zero());
      }
      if (unmount) {
        // As the manager would: what has a record, or is on disk.
        operations.Start(UnmountVolume({PodUid("uid-1"), SpecName("data"), kScriptedPlugin, ""}),
                         check);
        scheduler.RunFor(Duration::zero());
        operations.Start(RemovePod(PodUid("uid-1"), "", PodRecordEnd::kRemove), check);
        scheduler.RunFor(Duration::zero());
      }
    } catch (const SimulatedCrash&) {
      world.kernel.Die();
      world.store.Die();
      return false;
    }
    return good;
  }
  // What is there without a record that would lead to it.
  static bool LeakedWithoutRecord(World& world) {
    const bool recorded = world.store.Find(kPodVolumeRecordKind, "uid-1/data").has_value();
    return !recorded && (world.kernel.IsMountPoint(kVolumeDir) || world.kernel.Exists(kVolumeDir));
  }
};

TEST_F(PodVolumeCrash, AtEveryEffectAndWriteTheNextAgentFindsAllAndLeavesNothing) {
  int points = 0;
  for (const bool in_kernel : {true, false}) {
    for (const bool before : {true, false}) {
      for (uint64_t n = 1;; ++n) {
        World world;
        if (in_kernel) {
          world.kernel.CrashAtCall(
              n, before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
        } else {
          world.store.CrashAtCall(n, before ? MemoryRecordStore::CrashPoint::kBefore
                                            : MemoryRecordStore::CrashPoint::kAfter);
        }
        const bool lived = Live(world, true, true);
        world.kernel.Revive();
        world.store.Revive();
        if (lived) break;
        ++points;
        const std::string where = std::string(in_kernel ? "effect " : "write ") +
                                  std::to_string(n) + (before ? " before" : " after");
        EXPECT_FALSE(LeakedWithoutRecord(world)) << where;
        EXPECT_TRUE(Live(world, false, true)) << where;
        EXPECT_TRUE(world.store.All().empty()) << where;
        EXPECT_FALSE(world.kernel.Exists(kPodDir)) << where << "\n" << world.kernel.CallLogText();
        EXPECT_EQ(world.kernel.Mounts().size(), World().kernel.Mounts().size()) << where;
      }
    }
  }
  EXPECT_GT(points, 30);
}

}  // namespace
}  // namespace volumed
