#include "operation/reclaim_operations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "operation/storage_steps.h"
#include "unit/operation/recording_parts.h"
#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

class ReclaimOperationsTest : public ::testing::Test {
 protected:
  static constexpr const char* kPlace = "/data/pv-1";

  void Init(StatefulPlugin::Switches switches = {}) {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<StatefulPlugin>("x/v", storage_, std::move(switches)));
    ASSERT_TRUE(mgr_.InitPlugins(std::move(plugins), world_.host).ok());
    storage_.volumes["pv-1"] = Quantity();
    volume_.metadata.name = "pv-1";
  }
  std::optional<OperationFailure> Run(ReclaimAction action) {
    const ReclaimRequest request{std::make_shared<const PersistentVolume>(volume_), action};
    OperationProgress progress(clock_);
    Unit none;
    return ReclaimVolume(request).Run({mgr_, world_.host, logger_, records_, devices_, guard_},
                                      progress, none);
  }
  static std::string Text(const std::optional<OperationFailure>& failure) {
    return failure ? failure->operation + " " + failure->step + ": " + failure->error.message()
                   : "done";
  }

  // What keeps a pod from the directory of the volume; "" if nothing does.
  std::string TakeForPod() {
    StorageHolder pod;
    pod.id = "pod/a";
    pod.volume = pod.id;
    pod.use = StorageUse::kShared;
    pod.text = "volume v of pod a";
    const Result<StorageIdentity> taken = guard_.Take(pod, {kPlace}, {});
    if (!taken.ok()) return taken.error().message();
    return guard_.Release(pod.id).ok() ? "" : "it cannot be released";
  }

  // The volume's events.
  std::string Events() const {
    std::string text;
    const ObjectKey volume{ObjectKind::kPersistentVolume, "", "pv-1"};
    for (const KeptEvent& event : world_.events.Snapshot(volume)) {
      text +=
          std::string(EventTypeName(event.type)) + " " + event.reason + ": " + event.message + "\n";
    }
    return text;
  }

  ManualClock clock_;
  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  StatefulStorage storage_;
  VolumePluginMgr mgr_;
  std::string log_;
  Logger logger_{
      LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                 [this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; }},
      clock_};
  MemoryRecordStore records_;
  RecordingObserver observer_;
  DeviceRecordKeeper devices_{records_, clock_, logger_, observer_, BootId("boot-a")};
  StorageGuard guard_{kernel_, records_, clock_, logger_, BootId("boot-a")};
  PersistentVolume volume_;
};

TEST_F(ReclaimOperationsTest, RecyclingTellsThePodsEventsAndThatItIsDone) {
  Init();
  EXPECT_EQ(Text(Run(ReclaimAction::kRecycle)), "done");
  EXPECT_NE(log_.find("reason=RecyclerPod message=\"Recycler pod: scrubbed pv-1\""),
            std::string::npos)
      << log_;
  EXPECT_NE(log_.find("reason=VolumeRecycled"), std::string::npos) << log_;
  EXPECT_EQ(Events(),
            "Normal RecyclerPod: Recycler pod: scrubbed pv-1\n"
            "Normal VolumeRecycled: Volume recycled\n");
}

TEST_F(ReclaimOperationsTest, FailuresHaveTheWordsOfTheControllersEvents) {
  Init();
  storage_.volumes.clear();
  EXPECT_EQ(Text(Run(ReclaimAction::kRecycle)),
            "volume_recycle Recycle: Recycle failed: no volume pv-1");
  EXPECT_EQ(Events(), "Warning VolumeFailedRecycle: Recycle failed: no volume pv-1\n");
}

TEST_F(ReclaimOperationsTest, WhatIsHeldBackIsNeitherRecycledNorDeleted) {
  Init();
  world_.irreversible.hold = true;
  EXPECT_EQ(Text(Run(ReclaimAction::kRecycle)),
            "volume_recycle Recycle: recycle pv-1 is held back");
  EXPECT_EQ(Text(Run(ReclaimAction::kDelete)), "volume_delete Delete: delete pv-1 is held back");
  EXPECT_TRUE(storage_.volumes.contains("pv-1"));
  EXPECT_EQ(log_.find("RecyclerPod"), std::string::npos) << log_;
  EXPECT_EQ(Events(),
            "Warning VolumeFailedRecycle: recycle pv-1 is held back\n"
            "Warning VolumeFailedDelete: delete pv-1 is held back\n");
  world_.irreversible.hold = false;
  EXPECT_EQ(Text(Run(ReclaimAction::kDelete)), "done");
}

// Its worker may outlive the agent that began it. A pod was set up in a directory that was being
// deleted, once the next agent's try was refused.
TEST_F(ReclaimOperationsTest, ATryThatIsRefusedDoesNotEndTheReservationOfAnEarlierOne) {
  Init();
  kernel_.AddDirectory(kPlace);
  volume_.spec.source = HostPathVolumeSource{kPlace, HostPathType::kUnset};
  world_.irreversible.hold = true;
  EXPECT_EQ(Text(Run(ReclaimAction::kDelete)), "volume_delete Delete: delete pv-1 is held back");
  EXPECT_EQ(TakeForPod(), "") << "no try was begun before that one";
  StorageGuard before(kernel_, records_, clock_, logger_, BootId("boot-a"));
  const auto begun = before.TakeForReclaim(ReclaimStorageHolder(volume_), {kPlace}, "", {}, {});
  ASSERT_TRUE(begun.ok()) << begun.error().ToString();
  StorageGuard after(kernel_, records_, clock_, logger_, BootId("boot-a"));
  const OperationParts parts{mgr_, world_.host, logger_, records_, devices_, after};
  const ReclaimVolume next(
      ReclaimRequest{std::make_shared<const PersistentVolume>(volume_), ReclaimAction::kDelete});
  OperationProgress progress(clock_);
  Unit none;
  EXPECT_EQ(Text(next.Run(parts, progress, none)),
            "volume_delete Delete: delete pv-1 is held back");
  EXPECT_TRUE(after.Has("reclaim/pv-1", StorageUse::kReclaim));
  EXPECT_EQ(records_.Load(kStorageReservationRecordKind)->records.size(), 1u);
  world_.irreversible.hold = false;
  EXPECT_EQ(Text(next.Run(parts, progress, none)), "done");
  EXPECT_FALSE(after.Has("reclaim/pv-1", StorageUse::kReclaim));
  EXPECT_TRUE(records_.Load(kStorageReservationRecordKind)->records.empty());
}

TEST_F(ReclaimOperationsTest, AVolumeInUseIsLeftAlone) {
  Init();
  storage_.in_use = {"pv-1"};
  EXPECT_EQ(Text(Run(ReclaimAction::kDelete)), "volume_delete Delete: volume is in use: pv-1");
  EXPECT_TRUE(storage_.volumes.contains("pv-1"));
  EXPECT_EQ(Events(), "Normal VolumeDelete: volume is in use: pv-1\n");
}

TEST_F(ReclaimOperationsTest, APluginThatCannotIsNamed) {
  Init({.capable = false});
  EXPECT_EQ(Text(Run(ReclaimAction::kRecycle)),
            "volume_recycle Recycle: No recycler plugin found for the volume!");
  EXPECT_EQ(Text(Run(ReclaimAction::kDelete)),
            "volume_delete Delete: error getting deleter volume plugin for volume \"pv-1\": no "
            "deletable volume plugin matched");
  EXPECT_EQ(Events(),
            "Warning VolumeFailedRecycle: No recycler plugin found for the volume!\n"
            "Warning VolumeFailedDelete: error getting deleter volume plugin for volume \"pv-1\": "
            "no deletable volume plugin matched\n");
}

TEST_F(ReclaimOperationsTest, DeletingIsSilentWhenItSucceeds) {
  Init();
  EXPECT_EQ(Text(Run(ReclaimAction::kDelete)), "done");
  EXPECT_TRUE(storage_.volumes.empty());
  EXPECT_EQ(log_, "");
  EXPECT_EQ(Events(), "");
}

}  // namespace
}  // namespace volumed
