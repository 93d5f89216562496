// The agent ends at every effect and every record write of a claim's volume: planned, made,
// mounted, bound, written, taken away, deleted. The next one goes on, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/pool/pool_plugin_fixture.h"

namespace volumed {
namespace {

using ::testing::IsEmpty;

// A volume's life, of which each step is made again by the next agent until it is done.
class PoolLife {
 public:
  explicit PoolLife(PoolPluginWorld& node) : node_(node) {}

  // False: the agent has ended.
  bool GoOn() {
    try {
      PoolPluginAgent agent(node_);
      const Status opened = agent.Recover(used_);
      EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().ToString());
      using Step = std::function<Status(PoolPluginAgent&)>;
      const std::vector<Step> steps = {
          [this](PoolPluginAgent& a) { return Plan(a); },
          [this](PoolPluginAgent& a) -> Status {
            RETURN_IF_ERROR(a.Make(claimed_));
            return OkStatus();
          },
          [this](PoolPluginAgent& a) {
            used_ = {claimed_.id()};  // the device's row comes before the call
            return a.MountDevice(claimed_.Spec());
          },
          [this](PoolPluginAgent& a) { return a.SetUp(claimed_.Spec()); },
          [this](PoolPluginAgent& a) { return Write(a); },
          [this](PoolPluginAgent& a) { return a.TearDown(claimed_.Spec()); },
          [this](PoolPluginAgent& a) { return a.UnmountDevice(claimed_.id()); },
          [this](PoolPluginAgent& a) {
            used_.clear();
            return a.Delete(claimed_);
          }};
      for (; step_ < steps.size(); ++step_) {
        const Status done = steps[step_](agent);
        EXPECT_TRUE(done.ok()) << "step " << step_ << ": "
                               << (done.ok() ? "" : done.error().ToString());
        if (!done.ok()) return true;
      }
      return true;
    } catch (const SimulatedCrash&) {
      node_.kernel.Die();
      node_.store.Die();
      return false;
    }
  }
  bool ended() const { return step_ == 8; }
  const std::string& id() const { return claimed_.id(); }

 private:
  // On record with its claim, so that it is made once.
  Status Plan(PoolPluginAgent& agent) {
    if (!claimed_.plan.empty()) return OkStatus();
    ASSIGN_OR_RETURN(claimed_, agent.Plan(ClaimOptions()));
    return OkStatus();
  }
  // What is mounted is formatted once, and on record with its filesystem.
  Status Write(PoolPluginAgent& agent) {
    const std::vector<LoopEntry> loops = node_.Loops();
    EXPECT_EQ(loops.size(), 1U);
    for (const LoopEntry& loop : loops) {
      const FakeDevice device = node_.kernel.Device(loop.path);
      EXPECT_EQ(device.formats, 1);
      EXPECT_EQ(node_.Rows().at(0).filesystem,
                (PoolFilesystem{device.fs_type, device.identity.uuid}));
    }
    node_.kernel.AddFile(PoolPluginAgent::PodPlace(claimed_) + "/note", "kept");
    return agent.SetUp(claimed_.Spec());
  }

  PoolPluginWorld& node_;
  ClaimedVolume claimed_;
  std::set<std::string> used_;
  size_t step_ = 0;
};

// Ends the agent at effect, or write, number `n`; whether there was one.
bool EndsAt(uint64_t n, bool in_kernel, bool before) {
  PoolPluginWorld node;
  PoolLife life(node);
  if (in_kernel) {
    node.kernel.CrashAtCall(
        n, before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
  } else {
    node.store.CrashAtCall(
        n, before ? MemoryRecordStore::CrashPoint::kBefore : MemoryRecordStore::CrashPoint::kAfter);
  }
  const bool crashed = !life.GoOn();
  if (crashed) {
    node.kernel.Revive();
    node.store.Revive();
    EXPECT_TRUE(life.GoOn());
  }
  const std::string at =
      (in_kernel ? "effect " : "write ") + std::to_string(n) + (before ? " before" : " after");
  EXPECT_TRUE(life.ended()) << at;
  EXPECT_THAT(node.Rows(), IsEmpty()) << at;
  EXPECT_THAT(node.Directories(), IsEmpty()) << at;
  EXPECT_THAT(node.Loops(), IsEmpty()) << at;
  EXPECT_FALSE(node.kernel.Exists(PoolPluginAgent::DevicePlace(life.id()))) << at;
  return crashed;
}

TEST(PoolPluginWalkTest, AnAgentThatEndsAtAnyEffectOrWriteIsFollowedByOneThatGoesOn) {
  for (const bool in_kernel : {true, false}) {
    for (const bool before : {true, false}) {
      uint64_t n = 1;
      while (EndsAt(n, in_kernel, before) && !::testing::Test::HasFailure()) ++n;
      EXPECT_GT(n, 5U);  // the life has as many at least
    }
  }
}

}  // namespace
}  // namespace volumed
