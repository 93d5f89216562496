#include "mounter/volume_ownership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_kernel.h"
#include "volumehost/event_log.h"

namespace volumed {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDir[] = "/r/pods/u1/volumes/kubernetes.io~empty-dir/data";

// Lets a test report progress in the middle of the walk.
class SlowKernel final : public Kernel {
 public:
  SlowKernel(Kernel& real, std::function<void(const CallOptions&)> during)
      : real_(real), during_(std::move(during)) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    during_(options);
    return real_.Do(request, options);
  }

 private:
  Kernel& real_;
  std::function<void(const CallOptions&)> during_;
};

std::string TextOf(const ExportedFamilies& families) {
  std::string text;
  families.AppendTo(text);
  return text;
}

class VolumeOwnershipTest : public ::testing::Test {
 protected:
  VolumeOwnershipTest() {
    kernel_.AddDirectory(kDir, 0777);
    kernel_.AddFile(std::string(kDir) + "/f", "x", 0600);
  }
  OwnershipRequest Request() const {
    return {.dir = {"/r", std::string(kDir).substr(3)},
            .fs_group = 2000,
            .policy = std::nullopt,
            .read_only = false,
            .pod = PodUid("u1")};
  }

  ManualClock clock_;
  FakeKernel kernel_;
  EventLog events_{clock_};
};

TEST_F(VolumeOwnershipTest, GivesTheTreeToTheGroup) {
  const auto done = SetVolumeOwnership(kernel_, events_, clock_, Request(), {});
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(kernel_.Find(kDir).gid, 2000u);
  EXPECT_EQ(kernel_.Find(kDir).mode, 02777u);
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/f").mode, 0660u);
  EXPECT_EQ(done->changed, 2);
}

TEST_F(VolumeOwnershipTest, AReadOnlyVolumeGetsReadBitsOnly) {
  OwnershipRequest request = Request();
  request.read_only = true;
  ASSERT_TRUE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/f").mode, 0640u);
}

TEST_F(VolumeOwnershipTest, WithoutAGroupNothingIsCalled) {
  OwnershipRequest request = Request();
  request.fs_group.reset();
  ASSERT_TRUE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(VolumeOwnershipTest, OnRootMismatchSkipsATreeWhoseRootIsRight) {
  OwnershipRequest request = Request();
  ASSERT_TRUE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
  kernel_.AddFile(std::string(kDir) + "/late", "x", 0600);
  request.policy = FsGroupChangePolicy::kOnRootMismatch;
  const auto done = SetVolumeOwnership(kernel_, events_, clock_, request, {});
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->skipped);
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/late").gid, 0u);
}

TEST_F(VolumeOwnershipTest, AlwaysWalksAgain) {
  OwnershipRequest request = Request();
  ASSERT_TRUE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
  kernel_.AddFile(std::string(kDir) + "/late", "x", 0600);
  request.policy = FsGroupChangePolicy::kAlways;
  ASSERT_TRUE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/late").gid, 2000u);
}

TEST_F(VolumeOwnershipTest, RefusesGroupsThatChownCannotTake) {
  for (const int64_t group : {int64_t{-1}, int64_t{0xffffffff}, int64_t{1} << 40}) {
    OwnershipRequest request = Request();
    request.fs_group = group;
    const auto done = SetVolumeOwnership(kernel_, events_, clock_, request, {});
    ASSERT_FALSE(done.ok()) << group;
    EXPECT_EQ(done.error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(VolumeOwnershipTest, RootsGroupIsAGroup) {
  kernel_.SetAttributes(kDir, 0777, 0, 7);
  OwnershipRequest request = Request();
  request.fs_group = 0;
  const auto done = SetVolumeOwnership(kernel_, events_, clock_, request, {});
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(kernel_.Find(kDir).gid, 0u);
  EXPECT_EQ(GroupId(0xfffffffe).value(), 0xfffffffeu);
}

TEST_F(VolumeOwnershipTest, AWalkIsCountedAlsoIfItFailedAndOneThatWasNotMadeIsNot) {
  ExportedFamilies families;
  OwnershipRequest request = Request();
  request.metrics = &families;
  request.plugin_name = "p";
  request.policy = FsGroupChangePolicy::kOnRootMismatch;
  const auto counted = [](const std::string& status) {
    return HasSubstr(
        "storage_operation_duration_seconds_count{migrated=\"false\",operation_name=\"volume_apply_"
        "access_control\",status=\"" +
        status + "\",volume_plugin=\"p\"} 1\n");
  };
  kernel_.FailNext("ChangeOwnership", Error::MaybeApplied(Code::kDeadlineExceeded, "killed"));
  ASSERT_FALSE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
  EXPECT_THAT(TextOf(families), counted("fail-unknown"));
  EXPECT_THAT(TextOf(families), Not(counted("success")));
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(SetVolumeOwnership(kernel_, events_, clock_, request, {}).ok());
    EXPECT_THAT(TextOf(families), counted("success"));
  }
}

TEST_F(VolumeOwnershipTest, AFailureKeepsItsOutcomeAndNamesTheVolume) {
  kernel_.FailNext("ChangeOwnership", Error::MaybeApplied(Code::kDeadlineExceeded, "killed"));
  const auto done = SetVolumeOwnership(kernel_, events_, clock_, Request(), {});
  ASSERT_FALSE(done.ok());
  EXPECT_TRUE(done.error().maybe_applied());
  EXPECT_EQ(done.error().message(),
            "setting volume ownership of " + std::string(kDir) + ": killed");
}

TEST_F(VolumeOwnershipTest, TellsThePodAfterThirtySecondsAndThenEveryMinute) {
  std::vector<size_t> events_after;
  SlowKernel slow(kernel_, [&](const CallOptions& options) {
    for (const int step : {29, 1, 59, 1, 30}) {
      clock_.Advance(seconds(step));
      options.progress(1000);
      events_after.push_back(events_.Snapshot(PodUid("u1")).size());
    }
  });
  ASSERT_TRUE(SetVolumeOwnership(slow, events_, clock_, Request(), {}).ok());
  EXPECT_EQ(events_after, (std::vector<size_t>{0, 1, 1, 2, 2}));
  const auto events = events_.Snapshot(PodUid("u1"));
  EXPECT_EQ(events[0].reason, "VolumePermissionChangeInProgress");
  EXPECT_EQ(events[0].type, EventType::kWarning);
  EXPECT_EQ(events[0].message.find("Setting volume ownership for "
                                   "u1/volumes/kubernetes.io~empty-dir/data is taking longer than "
                                   "expected, consider using OnRootMismatch - https://"),
            0u);
  EXPECT_EQ(events[1].message,
            "Setting volume ownership for u1/volumes/kubernetes.io~empty-dir/data, processed 1000 "
            "files.");
}

TEST_F(VolumeOwnershipTest, PassesProgressOn) {
  int64_t most = 0;
  CallOptions call;
  call.progress = [&most](int64_t done) { most = std::max(most, done); };
  SlowKernel slow(kernel_, [](const CallOptions& options) { options.progress(7); });
  ASSERT_TRUE(SetVolumeOwnership(slow, events_, clock_, Request(), call).ok());
  EXPECT_EQ(most, 7);
}

}  // namespace
}  // namespace volumed
