// The Node service: a volume's throttle is in the cgroup of its pod before the pod has the volume,
// and follows ControllerModifyVolume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "os/io_limits.h"
#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kWriteBps[] = "writeBps";
const StringMap kThrottle = {{kWriteBps, "1048576"}, {"readIOPS", "100"}};
const std::string kHierarchy = "/sys/fs/cgroup";

class NodeThrottleTest : public NodeFixture {
 protected:
  NodeThrottleTest() { node_.AddMount("cgroup2", "cgroup2", kHierarchy); }

  static std::string CgroupOf(const std::string& pod) {
    return kHierarchy + "/kubepods/burstable/pod" + pod;
  }
  void AddCgroup(const std::string& pod) { node_.AddFile(CgroupOf(pod) + "/io.max", ""); }
  std::string IoMax(const std::string& pod) {
    return node_.Find(CgroupOf(pod) + "/io.max").content;
  }
  // Of the one volume that is staged.
  std::string Number() { return IoDeviceNumber(node_.Device(Loops().at(0).path).identity); }
  std::string Limited() { return Number() + " rbps=max wbps=1048576 riops=100 wiops=max\n"; }

  std::string Staged(const StringMap& throttle) {
    const std::string id = CreateNamed("a");
    EXPECT_EQ(Modify(id, throttle), StatusCode::OK) << message_;
    EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
    return id;
  }
  StatusCode PublishFor(const std::string& pod, const std::string& id,
                        const std::string& target = kTarget) {
    auto request = NodePublishRequest(id, Mount(), target);
    (*request.mutable_volume_context())["csi.storage.k8s.io/pod.uid"] = pod;
    return PublishIt(request);
  }
};

TEST_F(NodeThrottleTest, APodHasTheThrottleOnceItHasTheVolume) {
  AddCgroup("p-1");
  AddCgroup("p-2");
  const std::string id = Staged(kThrottle);
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-1"), Limited());
  EXPECT_EQ(IoMax("p-2"), "") << "it has not got the volume";
  ASSERT_EQ(PublishFor("p-2", id, kOtherTarget), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-2"), Limited());
}

TEST_F(NodeThrottleTest, ARepeatedPublishSetsTheThrottleAgain) {
  AddCgroup("p-1");
  const std::string id = Staged(kThrottle);
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  AddCgroup("p-1");  // somebody has taken the limit away
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-1"), Limited());
}

TEST_F(NodeThrottleTest, WithoutACgroupThatCanBeWrittenAThrottledVolumeIsNotPublished) {
  const std::string id = Staged(kThrottle);
  EXPECT_EQ(PublishFor("p-1", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("there is no cgroup"));
  EXPECT_EQ(ThereIs(kTarget), "");
  node_.AddDirectory(CgroupOf("p-1"));  // its controller is off
  EXPECT_EQ(PublishFor("p-1", id), StatusCode::FAILED_PRECONDITION);
  AddCgroup("p-1");
  const Error read_only = Error::FromParts(Code::kFailedPrecondition, Outcome::kNotApplied, EROFS,
                                           "io.max: it cannot be written");
  node_.FailNext(SetIoLimits::kName, read_only);
  EXPECT_EQ(PublishFor("p-1", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ThereIs(kTarget), "");
  EXPECT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
}

TEST_F(NodeThrottleTest, WithoutAWordOfThePodOnlyAVolumeWithoutAThrottleIsPublished) {
  const std::string id = Staged(kThrottle);
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("podInfoOnMount"));
  EXPECT_EQ(PublishFor("../p", id), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ThereIs(kTarget), "");
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  const std::string free = CreateNamed("b");
  ASSERT_EQ(StageIt(free), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(free), StatusCode::OK) << message_;
  EXPECT_EQ(Modify(free, kThrottle), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("podInfoOnMount"));
  EXPECT_EQ(RecordedOf(free), StringMap{});
  EXPECT_EQ(Modify(free, {{"readAheadKiB", "256"}}), StatusCode::OK) << message_;
}

TEST_F(NodeThrottleTest, AThrottleThatWasTakenBackNeededThePodForEver) {
  const std::string id = Staged(kThrottle);
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION);
  const StringMap none = {{kWriteBps, "0"}, {"readIOPS", "0"}};
  ASSERT_EQ(Modify(id, none), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Modify(id, none), StatusCode::OK) << message_;
  EXPECT_EQ(Modify(id, kThrottle), StatusCode::FAILED_PRECONDITION);
  // Nor is a cgroup needed that can be limited.
  EXPECT_EQ(PublishFor("p-9", id, kOtherTarget), StatusCode::OK) << message_;
}

TEST_F(NodeThrottleTest, AChangeReachesThePodThatHasTheVolumeAlsoAfterARestart) {
  AddCgroup("p-1");
  const std::string id = Staged({});
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-1"), "");
  ASSERT_EQ(Modify(id, kThrottle), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-1"), Limited());
  RestartNode();
  ASSERT_EQ(Modify(id, {{kWriteBps, "2097152"}}), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-1"), Number() + " rbps=max wbps=2097152 riops=100 wiops=max\n");
  ASSERT_EQ(Modify(id, {{kWriteBps, "0"}, {"readIOPS", "0"}}), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-1"), "");
}

TEST_F(NodeThrottleTest, TheThrottleIsKeptOverUnstageAndRestart) {
  AddCgroup("p-1");
  AddCgroup("p-2");
  const std::string id = Staged(kThrottle);
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  RestartNode();
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishFor("p-2", id), StatusCode::OK) << message_;
  EXPECT_EQ(IoMax("p-2"), Limited());
}

TEST_F(NodeThrottleTest, AThrottleThatCannotBeSetForOnePodIsSetForNone) {
  AddCgroup("p-1");
  AddCgroup("p-2");
  const std::string id = Staged({});
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishFor("p-2", id, kOtherTarget), StatusCode::OK) << message_;
  node_.Remove(CgroupOf("p-2"));
  EXPECT_EQ(Modify(id, kThrottle), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(IoMax("p-1"), "");
  EXPECT_EQ(RecordedOf(id), StringMap{});
}

TEST_F(NodeThrottleTest, WhatTheDeviceRefusesLeavesTheThrottleAsItWas) {
  AddCgroup("p-1");
  const std::string id = Staged(kThrottle);
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  node_.FailNext(ConfigureLoop::kName, EINVAL, Outcome::kNotApplied);
  EXPECT_EQ(Modify(id, {{kWriteBps, "0"}, {"readAheadKiB", "4"}}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(IoMax("p-1"), Limited());
  EXPECT_EQ(RecordedOf(id), kThrottle);
}

TEST_F(NodeThrottleTest, OfVersion1EachCgroupBelowThePodsIsLimited) {
  node_.AddMount("cgroup", "blkio", "/sys/fs/cgroup-blkio");
  const std::string cgroup = "/sys/fs/cgroup-blkio/kubepods/podp-1";
  for (const std::string& of : {cgroup, cgroup + "/container"}) {
    for (const BlkioThrottle& throttle : kBlkioThrottles) {
      node_.AddFile(of + "/" + throttle.file, "");
    }
  }
  const std::string id = Staged(kThrottle);
  ASSERT_EQ(PublishFor("p-1", id), StatusCode::OK) << message_;
  for (const std::string& of : {cgroup, cgroup + "/container"}) {
    EXPECT_EQ(node_.Find(of + "/blkio.throttle.write_bps_device").content, Number() + " 1048576\n");
    EXPECT_EQ(node_.Find(of + "/blkio.throttle.read_iops_device").content, Number() + " 100\n");
    EXPECT_EQ(node_.Find(of + "/blkio.throttle.read_bps_device").content, "");
  }
}

}  // namespace
}  // namespace volumed
