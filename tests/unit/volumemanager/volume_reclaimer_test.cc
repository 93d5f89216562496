#include "volumemanager/volume_reclaimer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

using Outcome = VolumeReclaimer::Outcome;

class VolumeReclaimerTest : public ::testing::Test {
 protected:
  void Init(StatefulPlugin::Switches switches = {}) {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<StatefulPlugin>("x/v", storage_, std::move(switches)));
    ASSERT_TRUE(mgr_.InitPlugins(std::move(plugins), world_.host).ok());
    storage_.volumes["pv-1"] = Quantity();
    volume_.metadata.name = "pv-1";
  }
  VolumeEventRecorder Record() {
    return [this](EventType type, const std::string& reason, const std::string& message) {
      events_.push_back((type == EventType::kNormal ? "Normal " : "Warning ") + reason + " " +
                        message);
    };
  }
  using Events = std::vector<std::string>;

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  StatefulStorage storage_;
  VolumePluginMgr mgr_;
  VolumeReclaimer reclaimer_{mgr_};
  PersistentVolume volume_;
  Events events_;
};

TEST_F(VolumeReclaimerTest, RecyclingForwardsThePodsEventsAndSaysWhenItIsDone) {
  Init();
  EXPECT_EQ(reclaimer_.Recycle(volume_, {}, Record(), {}).outcome, Outcome::kReclaimed);
  EXPECT_EQ(events_, (Events{"Normal RecyclerPod Recycler pod: scrubbed pv-1",
                             "Normal VolumeRecycled Volume recycled"}));
}

TEST_F(VolumeReclaimerTest, AVolumeInUseIsLeftAlone) {
  Init();
  EXPECT_EQ(reclaimer_.Recycle(volume_, {"default/a", "default/b"}, Record(), {}).outcome,
            Outcome::kPostponed);
  EXPECT_EQ(events_,
            (Events{"Normal VolumeFailedRecycle Volume is used by pods: default/a,default/b"}));
  events_.clear();
  storage_.in_use = {"pv-1"};
  EXPECT_EQ(reclaimer_.Delete(volume_, Record(), {}).outcome, Outcome::kPostponed);
  EXPECT_EQ(events_, (Events{"Normal VolumeDelete volume is in use: pv-1"}));
  EXPECT_TRUE(storage_.volumes.contains("pv-1"));
}

TEST_F(VolumeReclaimerTest, FailuresAreNamed) {
  Init();
  storage_.volumes.clear();
  const auto answer = reclaimer_.Recycle(volume_, {}, Record(), {});
  EXPECT_EQ(answer.outcome, Outcome::kFailed);
  EXPECT_EQ(answer.message, "Recycle failed: no volume pv-1");
  EXPECT_EQ(events_, (Events{"Warning VolumeFailedRecycle Recycle failed: no volume pv-1"}));
}

TEST_F(VolumeReclaimerTest, APluginThatCannotIsNamed) {
  Init({.capable = false});
  EXPECT_EQ(reclaimer_.Recycle(volume_, {}, Record(), {}).message,
            "No recycler plugin found for the volume!");
  EXPECT_EQ(reclaimer_.Delete(volume_, Record(), {}).message,
            "error getting deleter volume plugin for volume \"pv-1\": no deletable volume plugin "
            "matched");
}

TEST_F(VolumeReclaimerTest, DeletingIsSilentWhenItSucceeds) {
  Init();
  EXPECT_EQ(reclaimer_.Delete(volume_, Record(), {}).outcome, Outcome::kReclaimed);
  EXPECT_TRUE(storage_.volumes.empty());
  EXPECT_TRUE(events_.empty());
}

}  // namespace
}  // namespace volumed
