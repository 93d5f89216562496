// What recycling left behind, and nobody would take away.
#include "recycler/left_over_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/manual_clock.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_kernel.h"
#include "recycler/recycler_pod_template.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDirectory[] = "/r/volumed/recycler-volumes";
constexpr char kLeft[] = "/r/volumed/recycler-volumes/default_recycler-for-old_vol";
constexpr char kOther[] = "/r/volumed/recycler-volumes/default_recycler-for-other_vol";

class NoContainers final : public ContainerRunner {
 public:
  Result<bool> Exists(const std::string&, const CallOptions&) override { return false; }
  Result<ContainerEnd> Run(const ContainerRun&, const CallOptions&) override {
    return Error::NotApplied(Code::kUnimplemented, "no containers here");
  }
  Status Remove(const std::string&, const CallOptions&) override { return OkStatus(); }
};

class LeftOverMountsTest : public ::testing::Test {
 protected:
  LeftOverMountsTest() {
    kernel_.AddDirectory(kDirectory);
    kernel_.AddMount("nfs4", "nas:/precious", kLeft);
    kernel_.AddFile(std::string(kLeft) + "/file", "of a claim");
  }
  void Remove() {
    left_over_.Remove();
    scheduler_.AdvanceTo(clock_.Now());
  }
  static Pod NfsPod(const std::string& name) {
    Pod pod = NewPersistentVolumeRecyclerPodTemplate();
    pod.metadata.name = name;
    pod.spec.volumes[0].source = NfsVolumeSource{"nas", "/precious", false};
    return pod;
  }

  ManualClock clock_;
  SimulatedScheduler scheduler_{1, clock_};
  Logger log_{LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [this](LogLevel, std::string_view line) { logged_ += line; }},
              clock_};
  std::string logged_;
  FakeKernel kernel_;
  NoContainers containers_;
  LocalRecyclerPods pods_{kernel_, containers_, clock_, kDirectory};
  LeftOverMounts left_over_{scheduler_, pods_, log_};
};

TEST_F(LeftOverMountsTest, AMountOfAVolumeThatIsGoneStayedForEver) {
  bool deletes_data = false;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    deletes_data = deletes_data || std::holds_alternative<RemoveFile>(request) ||
                   std::holds_alternative<RemoveTree>(request);
  });
  Remove();
  EXPECT_THAT(kernel_.DumpMounts(), Not(HasSubstr("nfs")));
  EXPECT_FALSE(kernel_.Exists(kLeft));
  EXPECT_FALSE(deletes_data);
}

// A mount below what an earlier one was mounted at: the directory must be bare before it goes.
TEST_F(LeftOverMountsTest, MountsUponEachOtherGoAll) {
  kernel_.AddMount("nfs4", "nas:/more", kLeft);
  Remove();
  EXPECT_THAT(kernel_.DumpMounts(), Not(HasSubstr("nfs")));
  EXPECT_FALSE(kernel_.Exists(kLeft));
}

TEST_F(LeftOverMountsTest, WhatIsInADirectoryIsNeverDeleted) {
  kernel_.AddFile(std::string(kOther) + "/somebody's", "kept");
  kernel_.AddFile(std::string(kDirectory) + "/not-of-recycling/file", "kept");
  Remove();
  EXPECT_TRUE(kernel_.Exists(std::string(kOther) + "/somebody's"));
  EXPECT_TRUE(kernel_.Exists(std::string(kDirectory) + "/not-of-recycling/file"));
  EXPECT_FALSE(kernel_.Exists(kLeft)) << "one does not keep the others";
  EXPECT_THAT(logged_, HasSubstr("recycler-for-other"));
}

TEST_F(LeftOverMountsTest, WhatCannotBeUnmountedIsTriedAgainLater) {
  kernel_.FailNext("Unmount", EBUSY, Outcome::kNotApplied);
  Remove();
  EXPECT_TRUE(kernel_.IsMountPoint(kLeft));
  EXPECT_THAT(logged_, HasSubstr("trying again"));
  scheduler_.RunFor(std::chrono::minutes(6));
  EXPECT_FALSE(kernel_.Exists(kLeft));
}

TEST_F(LeftOverMountsTest, WhatAPodAtWorkHasMountedStays) {
  ASSERT_TRUE(pods_.CreatePod(NfsPod("recycler-for-old"), {}).ok());
  Remove();
  EXPECT_TRUE(kernel_.IsMountPoint(kLeft));
  ASSERT_TRUE(pods_.DeletePod("default", "recycler-for-old", {}).ok());
  EXPECT_FALSE(kernel_.Exists(kLeft));
}

// Else the mount of a new run could be taken for the one that is left, and a bare directory be
// scrubbed in the volume's place.
TEST_F(LeftOverMountsTest, NoPodOfTheNameBeginsMeanwhile) {
  std::optional<Code> created;
  std::optional<Code> deleted;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (!std::holds_alternative<Unmount>(request) || created) return;
    const Status begun = pods_.CreatePod(NfsPod("recycler-for-old"), {});
    created = begun.ok() ? Code::kUnknown : begun.error().code();
    const Status ended = pods_.DeletePod("default", "recycler-for-old", {});
    deleted = ended.ok() ? Code::kUnknown : ended.error().code();
  });
  Remove();
  EXPECT_EQ(created, Code::kAlreadyExists);
  EXPECT_EQ(deleted, Code::kUnavailable);
  EXPECT_TRUE(pods_.CreatePod(NfsPod("recycler-for-old"), {}).ok());
}

TEST_F(LeftOverMountsTest, APodThatCouldNotBeDeletedIsFoundByItsMount) {
  ASSERT_TRUE(pods_.CreatePod(NfsPod("recycler-for-old"), {}).ok());
  kernel_.FailNext("Unmount", EBUSY, Outcome::kNotApplied);
  ASSERT_FALSE(pods_.DeletePod("default", "recycler-for-old", {}).ok());
  Remove();
  EXPECT_FALSE(kernel_.Exists(kLeft));
}

}  // namespace
}  // namespace volumed
