// Properties of the ladder over random lives of a device: steps that succeed, fail, or may have
// been done, restarts of the agent and of the node, and pods that come and go.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "volumemanager/devices/attach_ladder.h"

namespace volumed {
namespace {

constexpr int kLives = 2'000;
constexpr int kStepsOfALife = 60;
constexpr int kMostSteps = 6;

enum class StepEnd { kDone, kNotApplied, kMaybeApplied };

// What the agent knows of one device, and beside it what is true.
class LadderLife {
 public:
  explicit LadderLife(uint64_t seed) : random_(seed) {}

  void Live() {
    for (int i = 0; i < kStepsOfALife; ++i) {
      Change();
      Take(Next(), OneIn(2)   ? StepEnd::kDone
                   : OneIn(2) ? StepEnd::kNotApplied
                              : StepEnd::kMaybeApplied);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  // From now on every step succeeds. Returns how many it took until there was nothing to do.
  int Settle(bool wanted) {
    wanted_ = may_begin_ = wanted;
    used_ = false;
    may_leave_ = true;
    for (int steps = 0;; ++steps) {
      const AttachStep step = Next();
      if (step == AttachStep::kNothing || steps > kMostSteps) return steps;
      Take(step, StepEnd::kDone);
    }
  }

  bool IsSetUp() const { return device_ && IsMounted(*device_) && attached_ && mounted_; }
  bool IsGone() const { return !device_ && !attached_ && !mounted_ && !rest_; }

 private:
  bool OneIn(uint32_t times) { return random_() % times == 0; }

  AttachStep Next() const {
    return NextAttachStep(
        {device_ ? &*device_ : nullptr, wanted_, wanted_ && may_begin_, used_, may_leave_});
  }

  void Change() {
    if (OneIn(3)) wanted_ = !wanted_;
    if (OneIn(3)) may_begin_ = !may_begin_;
    if (OneIn(3)) may_leave_ = !may_leave_;
    // A pod gets what is there for certain, and has it for some time.
    if (used_ ? OneIn(3) : wanted_ && IsSetUp() && OneIn(2)) used_ = !used_;
    if (OneIn(15)) Restart(/*node=*/OneIn(2));
  }

  void Restart(bool node) {
    if (node) used_ = attached_ = mounted_ = false;
    if (!device_) return;
    device_->attachment = Attachment::kUnknown;
    device_->uncertain = node || device_->state != VolumeState::kAttached;
    if (node && device_->state == VolumeState::kAttached) device_->rest_of_mount = rest_ = true;
    if (node) record_says_attached_ = false;
  }

  void Take(AttachStep step, StepEnd end) {
    const bool is_done = end == StepEnd::kDone || (end == StepEnd::kMaybeApplied && OneIn(2));
    const bool takes_away =
        step == AttachStep::kUnmount || step == AttachStep::kDetach || step == AttachStep::kForget;
    ASSERT_FALSE(takes_away && used_) << "a pod has it";
    ASSERT_FALSE(takes_away && !may_leave_) << "not every source was heard";
    switch (step) {
      case AttachStep::kNothing:
        return;
      case AttachStep::kVerify:
        // A plugin may know no more than what it was told last, also if that is in doubt by now.
        device_->attachment = attached_ || (device_->attach_in_doubt && OneIn(2))
                                  ? Attachment::kAttached
                                  : Attachment::kMissing;
        device_->uncertain = device_->uncertain || device_->attachment == Attachment::kMissing;
        return;
      case AttachStep::kAttach:
        ASSERT_TRUE(wanted_ && may_begin_);
        attached_ = attached_ || is_done;
        return EndIn(VolumeState::kAttaching, VolumeState::kAttached, end);
      case AttachStep::kMount:
        ASSERT_TRUE(wanted_ && may_begin_);
        ASSERT_TRUE(attached_) << "it would be mounted without being there";
        mounted_ = mounted_ || is_done;
        rest_ = rest_ && end != StepEnd::kDone;
        return EndIn(VolumeState::kMountingDevice, VolumeState::kDeviceMounted, end);
      case AttachStep::kUnmount:
        ASSERT_TRUE(rest_ || !record_says_attached_) << "its record says that it is unmounted";
        mounted_ = mounted_ && !is_done;
        rest_ = rest_ && end != StepEnd::kDone;
        device_->attach_in_doubt = device_->attach_in_doubt ||
                                   device_->state == VolumeState::kAttaching ||
                                   (device_->state == VolumeState::kAttached && device_->uncertain);
        return EndIn(VolumeState::kUnmountingDevice, VolumeState::kAttached, end);
      case AttachStep::kDetach:
        ASSERT_FALSE(mounted_) << "it would be taken away from under its mount";
        ASSERT_FALSE(rest_) << "its mount directory would stay";
        attached_ = attached_ && !is_done;
        return EndIn(VolumeState::kDetaching, VolumeState::kDetached, end);
      case AttachStep::kForget:
        ASSERT_FALSE(attached_ || mounted_) << "it would be left behind";
        device_.reset();
        return;
    }
  }

  // What the agent makes of the end of a call, as ActualDevices does.
  void EndIn(VolumeState in_call, VolumeState done, StepEnd end) {
    if (!device_) {
      device_.emplace();
      device_->attachable = true;
      device_->state = VolumeState::kDetached;
    }
    if (end == StepEnd::kNotApplied) return;
    device_->state = end == StepEnd::kDone ? done : in_call;
    device_->uncertain = end == StepEnd::kMaybeApplied;
    record_says_attached_ = end == StepEnd::kDone && done == VolumeState::kAttached;
    if (end != StepEnd::kDone) return;
    if (in_call == VolumeState::kUnmountingDevice) {
      device_->uncertain = device_->attachment == Attachment::kMissing ||
                           device_->attach_in_doubt ||
                           (device_->rest_of_mount && device_->attachment != Attachment::kAttached);
    }
    device_->attach_in_doubt = false;
    if (in_call != VolumeState::kAttaching) device_->rest_of_mount = false;
    if (in_call == VolumeState::kAttaching) device_->attachment = Attachment::kAttached;
    if (done == VolumeState::kDetached) device_.reset();
  }

  std::mt19937_64 random_;
  std::optional<ActualDevice> device_;
  bool wanted_ = false;
  bool may_begin_ = false;
  bool used_ = false;
  bool may_leave_ = false;
  bool record_says_attached_ = false;  // for certain, and so that nothing is mounted
  bool attached_ = false;              // the truth
  bool mounted_ = false;               // likewise
  bool rest_ = false;                  // of a mount from before a reboot, likewise
};

TEST(AttachLadderRandom, NoLifeTakesADeviceFromUnderAPodOrAMountNorLeavesOneBehind) {
  for (int seed = 1; seed <= kLives; ++seed) {
    LadderLife life(static_cast<uint64_t>(seed));
    life.Live();
    ASSERT_FALSE(HasFatalFailure()) << "life " << seed;
  }
}

TEST(AttachLadderRandom, FromWhateverALifeHasLeftAFewStepsLeadUpAndDown) {
  for (int seed = 1; seed <= kLives; ++seed) {
    LadderLife life(static_cast<uint64_t>(seed));
    life.Live();
    ASSERT_LE(life.Settle(/*wanted=*/true), kMostSteps) << "life " << seed;
    ASSERT_TRUE(life.IsSetUp()) << "life " << seed;
    ASSERT_LE(life.Settle(/*wanted=*/false), kMostSteps) << "life " << seed;
    ASSERT_TRUE(life.IsGone()) << "life " << seed;
  }
}

TEST(AttachLadderRandom, FromWhateverALifeHasLeftAFewStepsLeadDown) {
  for (int seed = 1; seed <= kLives; ++seed) {
    LadderLife life(static_cast<uint64_t>(seed));
    life.Live();
    ASSERT_LE(life.Settle(/*wanted=*/false), kMostSteps) << "life " << seed;
    ASSERT_TRUE(life.IsGone()) << "life " << seed;
  }
}

}  // namespace
}  // namespace volumed
