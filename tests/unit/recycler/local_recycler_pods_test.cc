#include "recycler/local_recycler_pods.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_kernel.h"
#include "recycler/recycler_pod_template.h"

namespace volumed {
namespace {

// Containers that are there, and what each does when it runs.
class FakeContainers final : public ContainerRunner {
 public:
  Result<bool> Exists(const std::string& id, const CallOptions&) override {
    return left.contains(id);
  }
  Result<ContainerEnd> Run(const ContainerRun& run, const CallOptions& call) override {
    runs.push_back(run);
    deadline = call.deadline;
    left.insert(run.id);
    if (error) return *error;
    return end;
  }
  Status Remove(const std::string& id, const CallOptions&) override {
    left.erase(id);
    return OkStatus();
  }
  std::set<std::string> left;
  std::vector<ContainerRun> runs;
  Deadline deadline = Deadline::Infinite();
  ContainerEnd end;
  std::optional<Error> error;
};

class LocalRecyclerPodsTest : public ::testing::Test {
 protected:
  LocalRecyclerPodsTest() { kernel_.AddFile("/data/vol/file", "x"); }

  static Pod Template(const std::string& path = "/data/vol") {
    Pod pod = NewPersistentVolumeRecyclerPodTemplate();
    pod.spec.volumes[0].source = HostPathVolumeSource{path, HostPathType::kUnset};
    return pod;
  }
  static Pod Custom() {
    Pod pod = Template();
    pod.spec.containers[0].image = "busybox:1.36";
    pod.spec.containers[0].args = {"-c", "rm -rf /scrub/*"};
    return pod;
  }
  Status Recycle(const Pod& pod, const CallOptions& call = {}) {
    events_.clear();
    return RecycleVolumeByWatchingPodUntilCompletion(
        "pv", pod, pods_,
        [this](EventType, const std::string& message) { events_.push_back(message); }, call);
  }
  // The volume's directory is approved as it is now, and another one takes its place before a
  // request of this kind.
  template <typename Request>
  CallOptions ApprovedAndExchanged() {
    CallOptions call;
    call.approved = std::make_shared<const StorageIdentity>(
        kernel_.Call(IdentifyStorage{{"/", "data/vol"}}, {}).value());
    kernel_.SetCallHook([this](const AnyRequest& request) {
      if (!std::holds_alternative<Request>(request) || kernel_.Exists("/data/away")) return;
      kernel_.Rename("/data/vol", "away");
      kernel_.Rename("/data/other", "vol");
    });
    return call;
  }

  ManualClock clock_;
  FakeKernel kernel_;
  FakeContainers containers_;
  LocalRecyclerPods pods_{kernel_, containers_, clock_, "/run/agent/recycler"};
  std::vector<std::string> events_;
};

TEST_F(LocalRecyclerPodsTest, TheTemplateIsDoneWithoutAContainer) {
  const Status status = Recycle(Template());
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_FALSE(kernel_.Exists("/data/vol/file"));
  EXPECT_TRUE(kernel_.Exists("/data/vol"));
  EXPECT_TRUE(containers_.runs.empty());
  EXPECT_EQ(events_, (std::vector<std::string>{"Started container pv-recycler"}));
}

TEST_F(LocalRecyclerPodsTest, AnyOtherRunsInAContainer) {
  ASSERT_TRUE(Recycle(Custom()).ok());
  ASSERT_EQ(containers_.runs.size(), 1u);
  const ContainerRun& run = containers_.runs[0];
  EXPECT_EQ(run.id, "volumed-default-recycler-for-pv");
  EXPECT_EQ(run.command, (std::vector<std::string>{"/bin/sh", "-c", "rm -rf /scrub/*"}));
  ASSERT_EQ(run.binds.size(), 1u);
  EXPECT_EQ(run.binds[0].source, "/data/vol");
  EXPECT_EQ(run.binds[0].destination, "/scrub");
  EXPECT_EQ(containers_.deadline.when(), clock_.Now() + std::chrono::seconds(60));
  EXPECT_TRUE(containers_.left.empty()) << "deleted with its pod";
}

TEST_F(LocalRecyclerPodsTest, AContainerThatFailsIsAPodThatFailed) {
  containers_.end = {3, "permission denied"};
  EXPECT_EQ(Recycle(Custom()).error().message(),
            "failed to recycle volume: container pv-recycler ended with status 3: permission "
            "denied");
  containers_.error = Error::MaybeApplied(Code::kDeadlineExceeded, "not ended");
  EXPECT_EQ(Recycle(Custom()).error().message(),
            "failed to recycle volume: Pod was active on the node longer than the specified "
            "deadline (not ended)");
  EXPECT_TRUE(containers_.left.empty());
}

TEST_F(LocalRecyclerPodsTest, AContainerOfAnEarlierAgentIsFoundAndRemoved) {
  containers_.left = {"volumed-default-recycler-for-pv"};
  EXPECT_EQ(Recycle(Custom()).error().message(), "old recycler pod found, will retry later");
  EXPECT_TRUE(containers_.left.empty());
  EXPECT_TRUE(Recycle(Custom()).ok());
}

TEST_F(LocalRecyclerPodsTest, TwoPodsOfOneNameExcludeEachOther) {
  Pod pod = Template();
  pod.metadata.name = "p";
  ASSERT_TRUE(pods_.CreatePod(pod, {}).ok());
  EXPECT_EQ(pods_.CreatePod(pod, {}).error().code(), Code::kAlreadyExists);
  ASSERT_TRUE(pods_.DeletePod("default", "p", {}).ok());
  EXPECT_TRUE(pods_.CreatePod(pod, {}).ok());
}

TEST_F(LocalRecyclerPodsTest, APodThatWasDeletedIsToldSo) {
  Pod pod = Template();
  pod.metadata.name = "p";
  const auto watch = pods_.WatchPod("default", "p").value();
  ASSERT_TRUE(pods_.CreatePod(pod, {}).ok());
  EXPECT_EQ((*watch->Next({}))->phase, PodPhase::kPending);
  ASSERT_TRUE(pods_.DeletePod("default", "p", {}).ok());
  EXPECT_EQ((*watch->Next({}))->kind, RecyclerPodChange::Kind::kDeleted);
  EXPECT_FALSE(watch->Next({})->has_value());
}

TEST_F(LocalRecyclerPodsTest, NothingRunsWhileSomethingIsMountedBelow) {
  kernel_.AddMount("ext4", "/dev/sdb", "/data/vol/mnt");
  for (const Pod& pod : {Template(), Custom()}) {
    const Status status = Recycle(pod);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message().find("ext4 is mounted at /data/vol/mnt"), std::string::npos);
  }
  EXPECT_TRUE(containers_.runs.empty());
  EXPECT_TRUE(kernel_.Exists("/data/vol/file"));
}

TEST_F(LocalRecyclerPodsTest, PodsThatCannotBeRunHereAreRefusedWithTheReason) {
  const auto reason = [this](const Pod& pod) { return pods_.CreatePod(pod, {}).error().message(); };
  Pod pod = Custom();
  pod.spec.containers[0].image = "registry.example.com/tool:1";
  EXPECT_NE(reason(pod).find("image registry.example.com/tool:1 is not here"), std::string::npos);
  EXPECT_EQ(pods_.CreatePod(pod, {}).error().code(), Code::kUnimplemented);
  pod = Custom();
  pod.spec.containers[0].command.clear();
  EXPECT_NE(reason(pod).find("names no command"), std::string::npos);
  pod = Custom();
  pod.spec.volumes[0].source = EmptyDirVolumeSource{};
  EXPECT_NE(reason(pod).find("volume vol is neither a hostPath nor nfs"), std::string::npos);
  pod = Custom();
  pod.spec.containers[0].volume_mounts[0].name = "other";
  EXPECT_NE(reason(pod).find("unknown volume, other"), std::string::npos);
  pod = Custom();
  pod.spec.containers.push_back(pod.spec.containers[0]);
  EXPECT_NE(reason(pod).find("one container"), std::string::npos);
  EXPECT_EQ(pods_.CreatePod(Template("/"), {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(reason(Pod()), "does not contain any volume(s)");
}

TEST_F(LocalRecyclerPodsTest, AHungDiskEndsWithTheDeadlineAndNamesItsDomain) {
  kernel_.AddMount("nfs4", "server:/x", "/nfs");
  kernel_.AddFile("/nfs/vol/file", "x");
  kernel_.Hang("/nfs");
  const Status status = Recycle(Template("/nfs/vol"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("longer than the specified deadline"), std::string::npos);
}

// Its disk is mounted and unmounted while volumes are recycled.
TEST_F(LocalRecyclerPodsTest, WhatTookThePlaceOfTheApprovedDirectoryIsNotScrubbed) {
  kernel_.AddFile("/data/other/precious", "x");
  const CallOptions call = ApprovedAndExchanged<RemoveTree>();
  const Status refused = Recycle(Template(), call);
  kernel_.SetCallHook(nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("another directory"), std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(kernel_.Exists("/data/vol/precious"));
  EXPECT_TRUE(kernel_.Exists("/data/away/file"));
}

TEST_F(LocalRecyclerPodsTest, AContainerGetsTheApprovedDirectoryAndNoOther) {
  kernel_.AddDirectory("/run/agent");
  kernel_.AddFile("/data/other/precious", "x");
  CallOptions call = ApprovedAndExchanged<BindMount>();
  const Status refused = Recycle(Custom(), call);
  kernel_.SetCallHook(nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("another directory"), std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(containers_.runs.empty());
  kernel_.Rename("/data/vol", "other");
  kernel_.Rename("/data/away", "vol");
  const Status recycled = Recycle(Custom(), call);
  ASSERT_TRUE(recycled.ok()) << recycled.error().ToString();
  ASSERT_EQ(containers_.runs.size(), 1u);
  EXPECT_EQ(containers_.runs[0].binds[0].source.rfind("/run/agent/recycler/", 0), 0u)
      << containers_.runs[0].binds[0].source;
  EXPECT_FALSE(kernel_.Exists(containers_.runs[0].binds[0].source)) << "taken away with its pod";
  EXPECT_TRUE(kernel_.Exists("/data/vol/file")) << "the fake container does nothing";
}

// A run that ended half way leaves a bind of a directory that was approved then.
TEST_F(LocalRecyclerPodsTest, WhatAnEarlierRunBoundGoesFirstAndWhatOtherPodsBoundStays) {
  const std::string all = "/run/agent/recycler/";
  kernel_.AddDirectory("/run/agent");
  kernel_.AddMount("ext4", "/dev/sdb", all + "default_recycler-for-pv_vol");
  kernel_.AddMount("ext4", "/dev/sdc", all + "default_recycler-for-pv-2_vol");
  CallOptions call;
  call.approved = std::make_shared<const StorageIdentity>(
      kernel_.Call(IdentifyStorage{{"/", "data/vol"}}, {}).value());
  const Status recycled = Recycle(Custom(), call);
  ASSERT_TRUE(recycled.ok()) << recycled.error().ToString();
  ASSERT_EQ(containers_.runs.size(), 1u);
  EXPECT_EQ(containers_.runs[0].binds[0].source, all + "default_recycler-for-pv_vol");
  EXPECT_FALSE(kernel_.Exists(all + "default_recycler-for-pv_vol"));
  EXPECT_TRUE(kernel_.IsMountPoint(all + "default_recycler-for-pv-2_vol"));
}

TEST_F(LocalRecyclerPodsTest, ADirectoryThatWasNotThereWhenItWasLookedAtIsNotScrubbed) {
  CallOptions call;
  call.approved = std::make_shared<const StorageIdentity>(
      kernel_.Call(IdentifyStorage{{"/", "data/none"}}, {}).value());
  EXPECT_FALSE(Recycle(Template(), call).ok());
  EXPECT_TRUE(kernel_.Exists("/data/vol/file"));
}

}  // namespace
}  // namespace volumed
