// Inline volumes of pods from a kubelet's calls to their answers: a life, each call again and
// again, over restarts and at every end of the agent, with what is forged, and what a kubelet has
// left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csidriver/csi_inline_wish.h"
#include "csidriver/inline_volumes.h"
#include "fakes/simulated_crash.h"
#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kHandle = "csi-" + std::string(64, '1');
const std::string kOtherHandle = "csi-" + std::string(64, '2');
const std::string kInlinePlaces = std::string(kRoot) + "/plugins/volumed.io/pool/inline";

class NodeInlineTest : public NodeFixture {
 protected:
  static ::csi::v1::NodePublishVolumeRequest InlineRequest(const std::string& handle = kHandle,
                                                           const std::string& path = kTarget) {
    ::csi::v1::NodePublishVolumeRequest request = NodePublishRequest(handle, Mount(), path);
    request.clear_staging_target_path();
    auto& context = *request.mutable_volume_context();
    context["csi.storage.k8s.io/ephemeral"] = "true";
    context["csi.storage.k8s.io/pod.name"] = "web";
    context["csi.storage.k8s.io/pod.namespace"] = "shop";
    context["csi.storage.k8s.io/pod.uid"] = "uid-1";
    context["size"] = "32Mi";
    return request;
  }
  StatusCode PublishInline(const std::string& handle = kHandle, const std::string& path = kTarget) {
    return PublishIt(InlineRequest(handle, path));
  }
  std::optional<PoolVolumeRecord> RowOf(const std::string& handle = kHandle) {
    return volumes_->FindByName(PoolNameOfInline(handle));
  }
  // Nothing is left of any inline volume.
  void ExpectNoInline() {
    EXPECT_THAT(volumes_->InlineVolumes(), IsEmpty());
    EXPECT_FALSE(node_.Exists(kTarget));
    EXPECT_TRUE(node_.Exists(kCo + "/pod-a")) << "it is the kubelet's";
    EXPECT_FALSE(node_.Exists(kInlinePlaces + "/" + kHandle));
    EXPECT_THAT(Loops(), IsEmpty());
    EXPECT_THAT(LoadPodVolumeRecords(store_), IsEmpty());
    EXPECT_THAT(LoadDeviceRecords(store_), IsEmpty());
    EXPECT_THAT(Must(store_.Load(kPoolVolumeRecordKind)).records, IsEmpty());
  }
  std::vector<std::string> LeftBehind() { return FindLeftInlineVolumes(*volumes_, kernel_, {}); }
};

TEST_F(NodeInlineTest, AVolumeIsMadeByItsPublicationAndEndsWithIt) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "files");
  ASSERT_TRUE(RowOf());
  EXPECT_EQ(RowOf()->capacity_bytes, 32 * kMiB);
  EXPECT_EQ(RowOf()->inline_use.pod_name, "web");
  EXPECT_THAT(LeasesOf(RowOf()->id), SizeIs(1));
  EXPECT_THAT(Loops(), SizeIs(1));
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  ExpectNoInline();
}

TEST_F(NodeInlineTest, EachCallIsMadeTenTimesAndMakesOneVolume) {
  for (int i = 0; i < 10; ++i) ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_THAT(volumes_->InlineVolumes(), SizeIs(1));
  EXPECT_THAT(Loops(), SizeIs(1));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  ExpectNoInline();
}

TEST_F(NodeInlineTest, ANewAgentGoesOnAfterEachCall) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
    RestartNode();
    EXPECT_EQ(ThereIs(kTarget), "files");
    EXPECT_THAT(Loops(), SizeIs(1));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
    RestartNode();
  }
  ExpectNoInline();
}

TEST_F(NodeInlineTest, AfterARebootThePodHasTheSameVolume) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  const std::string id = RowOf()->id;
  node_.Reboot();
  RestartNode("boot-b");
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_EQ(RowOf()->id, id);
  EXPECT_EQ(ThereIs(kTarget), "files");
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  ExpectNoInline();
}

TEST_F(NodeInlineTest, AVolumeHasOneTargetAndIsLeftAloneByWhatIsSaidOfAnother) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_EQ(PublishInline(kHandle, kOtherTarget), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr(kTarget));
  EXPECT_EQ(UnpublishIt(kHandle, kOtherTarget), StatusCode::OK) << "it is not there";
  EXPECT_EQ(ThereIs(kTarget), "files");
  ASSERT_EQ(PublishInline(kOtherHandle, kOtherTarget), StatusCode::OK) << message_;
  EXPECT_THAT(volumes_->InlineVolumes(), SizeIs(2));
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kOtherTarget), "files");
  EXPECT_EQ(UnpublishIt(kOtherHandle, kOtherTarget), StatusCode::OK) << message_;
  ExpectNoInline();
}

TEST_F(NodeInlineTest, AnotherSizeByTheSameHandleIsRefusedAndTakesNothingAway) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  auto request = InlineRequest();
  (*request.mutable_volume_context())["size"] = "64Mi";
  EXPECT_NE(PublishIt(request), StatusCode::OK);
  EXPECT_EQ(ThereIs(kTarget), "files");
  EXPECT_THAT(volumes_->InlineVolumes(), SizeIs(1));
}

// ---- what fails ---------------------------------------------------------------------------------

// A kubelet does not unpublish what has certainly failed.
TEST_F(NodeInlineTest, AVolumeThatIsCertainlyNotPublishedIsTakenBack) {
  node_.AddFile(kTarget + "/file", "somebody's");
  EXPECT_EQ(PublishInline(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("not empty"));
  EXPECT_THAT(volumes_->InlineVolumes(), IsEmpty());
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_EQ(node_.Find(kTarget + "/file").content, "somebody's");
}

TEST_F(NodeInlineTest, AVolumeOfAPodStaysIfItsRepeatedPublicationFailsAndThatIsNoFinalError) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  node_.Reboot();
  RestartNode("boot-b");
  node_.AddFile(kTarget + "/file", "somebody's");
  EXPECT_EQ(PublishInline(), StatusCode::UNAVAILABLE) << message_;
  EXPECT_THAT(volumes_->InlineVolumes(), SizeIs(1)) << "the pod's data is in it";
}

TEST_F(NodeInlineTest, WhatMayHaveHappenedIsUnpublished) {
  node_.FailNext("Mount", Error::MaybeApplied(Code::kDeadlineExceeded, "no worker has answered"));
  EXPECT_EQ(PublishInline(), StatusCode::DEADLINE_EXCEEDED) << message_;
  EXPECT_THAT(volumes_->InlineVolumes(), SizeIs(1));
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  ExpectNoInline();
}

// A kubelet asks for it again and again as long as its pod is there, which never ran.
TEST_F(NodeInlineTest, AVolumeThatCouldNotBeTakenBackWasBeingDeletedForTheWholeLifeOfItsPod) {
  const Error broken = Error::NotApplied(Code::kDataLoss, "a disk has failed");
  node_.FailNext("AttachLoop", broken);
  node_.FailNext("RemoveFile", broken);
  EXPECT_NE(PublishInline(), StatusCode::OK);
  ASSERT_TRUE(RowOf());
  ASSERT_EQ(RowOf()->state, PoolVolumeState::kDeleting) << message_;
  EXPECT_EQ(PublishInline(), StatusCode::ABORTED);
  EXPECT_THAT(message_, HasSubstr("is being deleted"));
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "files");
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  ExpectNoInline();
}

TEST_F(NodeInlineTest, NothingIsDeletedBeforeEachSourceWasLookedInto) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  why_unseen_ = "source manifests was not looked into yet";
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::UNAVAILABLE);
  EXPECT_THAT(message_, HasSubstr("manifests"));
  EXPECT_EQ(ThereIs(kTarget), "") << "the pod is let go";
  EXPECT_THAT(volumes_->InlineVolumes(), SizeIs(1));
  why_unseen_.clear();
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  ExpectNoInline();
}

// A row that cannot be read may be the one of the handle.
TEST_F(NodeInlineTest, WhileARowCannotBeReadNoHandleIsTakenForUnknown) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  store_.Corrupt(kPoolVolumeRecordKind, RowOf()->id, "a bit has flipped");
  RestartNode();
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("cannot be read"));
  EXPECT_EQ(ThereIs(kTarget), "files");
}

// ---- what is forged -----------------------------------------------------------------------------

TEST_F(NodeInlineTest, APersistentVolumeWithTheMarkOfAnInlineOneIsRefused) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  auto request = NodePublishRequest(id);
  (*request.mutable_volume_context())["csi.storage.k8s.io/ephemeral"] = "true";
  EXPECT_EQ(PublishIt(request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("no PersistentVolume may have it"));
  EXPECT_EQ(ThereIs(kTarget), "");
  EXPECT_THAT(volumes_->InlineVolumes(), IsEmpty());
}

TEST_F(NodeInlineTest, NoOtherCallIsAboutAnInlineVolume) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  const std::string mounts = node_.DumpMounts();
  for (const std::string& id : {kHandle, RowOf()->id}) {
    EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION) << id;
    EXPECT_THAT(message_, HasSubstr("inline volume of pod shop/web"));
    EXPECT_EQ(PublishIt(id, Mount(), kOtherTarget), StatusCode::FAILED_PRECONDITION) << id;
    EXPECT_EQ(UnstageIt(id), StatusCode::FAILED_PRECONDITION) << id;
    EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << id;
    EXPECT_EQ(PublishCode(PublishRequest(id)), StatusCode::FAILED_PRECONDITION) << id;
  }
  EXPECT_EQ(UnpublishIt(RowOf()->id), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(node_.DumpMounts(), mounts);
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
}

// A pod's scratch data were copied by whoever read the volume's id in a list of files, and a
// PersistentVolume of it kept the pod's volume from ending.
TEST_F(NodeInlineTest, NobodyCopiesAnInlineVolumeByItsId) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  const std::string id = RowOf()->id;
  const auto cut = volumes_->Cut(
      {{.volume = id, .cut = volumes_->NewCutId(id), .mounted = std::nullopt}}, {}, {});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(cut.error().message(), HasSubstr("inline volume of pod shop/web"));
  PoolVolumeWish clone;
  clone.name = "csi:clone";
  clone.content = VolumeContent{};
  clone.content->handle = id;
  const auto made = volumes_->Create(clone, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(made.error().message(), HasSubstr("inline volume of pod shop/web"));
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
}

TEST_F(NodeInlineTest, AHandleThatIsNobodysIsNoVolume) {
  EXPECT_EQ(StageIt(kHandle), StatusCode::NOT_FOUND);
  EXPECT_EQ(Delete(kHandle), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
}

TEST_F(NodeInlineTest, AnInlineVolumeIsInNoListAndIsMeasuredByItsHandle) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
  ::csi::v1::NodeGetVolumeStatsRequest stats;
  stats.set_volume_id(kHandle);
  stats.set_volume_path(kTarget);
  ::csi::v1::NodeGetVolumeStatsResponse response;
  EXPECT_EQ(CodeOf(stats, &response), StatusCode::OK) << message_;
  EXPECT_GT(response.usage_size(), 0);
  stats.set_volume_id(kOtherHandle);
  EXPECT_EQ(CodeOf(stats, &response), StatusCode::NOT_FOUND) << message_;
}

// ---- what a kubelet leaves ----------------------------------------------------------------------

TEST_F(NodeInlineTest, AVolumeWhosePodsDirectoryIsGoneIsToldAndEndsByHand) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  EXPECT_THAT(LeftBehind(), IsEmpty());
  node_.Reboot();
  node_.Remove(kCo + "/pod-a");
  RestartNode("boot-b");
  EXPECT_THAT(LeftBehind(), ElementsAre(HasSubstr(kHandle)));
  EXPECT_THAT(LeftBehind().front(), HasSubstr("shop/web"));
  EXPECT_EQ(UnpublishIt(kHandle), StatusCode::OK) << message_;
  EXPECT_THAT(LeftBehind(), IsEmpty());
  EXPECT_THAT(volumes_->InlineVolumes(), IsEmpty());
}

TEST_F(NodeInlineTest, ADiskThatIsAwayHasLeftNoVolumeBehind) {
  ASSERT_EQ(PublishInline(), StatusCode::OK) << message_;
  node_.FailNext("Stat", Error::NotApplied(Code::kUnavailable, "the disk does not answer"));
  EXPECT_THAT(LeftBehind(), IsEmpty());
}

// ---- an agent that ends -------------------------------------------------------------------------

// A volume that a kubelet has published and unpublished; each call is made again to the next agent
// until it has succeeded, or is given up for its inverse.
class InlineLife : public NodeInlineTest {
 public:
  explicit InlineLife(bool gives_up) : gives_up_(gives_up) {}
  void TestBody() override {}

  // Ends the agent at effect, or write, number `n`; whether there was one.
  bool EndsAt(uint64_t n, bool in_kernel, bool before) {
    EndAgent();
    Revive();
    if (in_kernel) {
      node_.CrashAtCall(n,
                        before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
    } else {
      store_.CrashAtCall(n, before ? MemoryRecordStore::CrashPoint::kBefore
                                   : MemoryRecordStore::CrashPoint::kAfter);
    }
    const bool ended = !GoOn();
    if (ended) {
      Revive();
      if (gives_up_) is_published_ = true;
      EXPECT_TRUE(GoOn());
    }
    SCOPED_TRACE((in_kernel ? "effect " : "write ") + std::to_string(n) +
                 (before ? " before" : " after") + (gives_up_ ? ", given up" : ""));
    ExpectNoInline();
    EXPECT_FALSE(node_.IsMountPoint(kTarget));
    return ended;
  }

 private:
  // False: the agent has ended.
  bool GoOn() {
    try {
      Restart();
      OperationParts parts = Parts();
      parts.volumes = std::make_shared<VolumeRecordKeeper>(store_, clock_, logger_, observer_,
                                                           BootId("boot-a"));
      for (const PodVolumeRecord& row : LoadPodVolumeRecords(store_)) parts.volumes->Restore(row);
      if (!is_published_) {
        Expect(Run(parts, Publication()));
        EXPECT_EQ(ThereIs(kTarget), "files");
        is_published_ = true;
      }
      Expect(Run(parts, Inverse()));
      return true;
    } catch (const SimulatedCrash&) {
      EndAgent();
      return false;
    }
  }
  static void Expect(const std::string& failed) { EXPECT_EQ(failed, ""); }
  PublishInlineVolume Publication() {
    const SafePath target = {kCo, "pod-a/v", Resolve::kNoSymlinks};
    const auto request = InlineRequest();
    InlinePublish publish;
    publish.capability = Must(ParseCsiCapability(request.volume_capability()));
    publish.volume = Must(ParseCsiInlineWish(request, publish.capability, target));
    publish.id = RowOf() ? RowOf()->id : Must(volumes_->PlanId(publish.volume.parameters));
    publish.volume.id = publish.id;
    publish.target = target;
    publish.serving = {kDriver, kThisNode, 0};
    return PublishInlineVolume(*volumes_, std::move(publish));
  }
  UnpublishInlineVolume Inverse() {
    return UnpublishInlineVolume(*volumes_, {RowOf() ? RowOf()->id : "",
                                             kHandle,
                                             {kCo, "pod-a/v", Resolve::kNoSymlinks},
                                             "",
                                             {kDriver, kThisNode, 0}});
  }
  // Without an executor, whose tasks would outlive the agent that ends.
  template <typename Op>
  std::string Run(const OperationParts& parts, const Op& operation) {
    OperationProgress progress(clock_);
    typename Op::Value result{};
    const auto failure = operation.Run(parts, progress, result);
    return failure ? failure->step + ": " + failure->error.ToString() : "";
  }
  // Its destructors have no effect on the node.
  void EndAgent() {
    node_.Die();
    store_.Die();
    calls_.reset();
    handlers_.reset();
    operations_.reset();
    plugins_of_agent_.reset();
    volumes_.reset();
  }
  void Revive() {
    node_.Revive();
    store_.Revive();
  }

  const bool gives_up_;
  bool is_published_ = false;
};

TEST(NodeInlineWalkTest, AnAgentThatEndsAtAnyEffectOrWriteLeavesAVolumeThatItsKubeletTakesAway) {
  for (const bool gives_up : {false, true}) {
    for (const bool in_kernel : {true, false}) {
      for (const bool before : {true, false}) {
        uint64_t n = 1;
        while (InlineLife(gives_up).EndsAt(n, in_kernel, before) &&
               !::testing::Test::HasFailure()) {
          ++n;
        }
        EXPECT_GT(n, 5u);  // the life has as many at least
      }
    }
  }
}

}  // namespace
}  // namespace volumed
