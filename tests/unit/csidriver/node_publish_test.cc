// The Node service: what a second publish of a volume is answered, by access modes and by what is
// different.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/peer_credentials.h"
#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NodePublishTest : public NodeFixture {
 protected:
  bool IsReadOnly(const std::string& path) {
    const std::vector<MountEntry> mounts = node_.Mounts();
    return std::any_of(mounts.begin(), mounts.end(), [&path](const MountEntry& mount) {
      return mount.mount_point == path && mount.read_only();
    });
  }
  // A volume with a filesystem, staged in this mode. Whoever only reads makes none.
  std::string StagedIn(Modes::Mode mode) {
    const std::string id = CreateNamed("a");
    EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(StageIt(id, In(mode)), StatusCode::OK) << message_;
    return id;
  }
};

// A process with a mount namespace of its own, as a kubelet is beside an agent in a container.
class ProcessWithOtherMounts {
 public:
  ProcessWithOtherMounts() {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const bool is_apart =
          ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
      const char told = is_apart ? 'y' : 'n';
      (void)!::write(ends[1], &told, 1);
      for (;;) ::pause();
    }
    char told = 'n';
    is_apart_ = pid_ > 0 && ::read(ends[0], &told, 1) == 1 && told == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~ProcessWithOtherMounts() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ProcessWithOtherMounts(const ProcessWithOtherMounts&) = delete;
  ProcessWithOtherMounts& operator=(const ProcessWithOtherMounts&) = delete;

  pid_t pid() const { return pid_; }
  bool is_apart() const { return is_apart_; }

 private:
  pid_t pid_ = -1;
  bool is_apart_ = false;
};

struct Cells {
  ::csi::v1::VolumeCapability::AccessMode::Mode mode;
  StatusCode at_another_target;
};

class NodePublishTableTest : public NodePublishTest, public ::testing::WithParamInterface<Cells> {};

TEST_F(NodePublishTest, AVolumeThatItsCallerWouldNotSeeIsRefusedAndNotMountedForNobody) {
  const ProcessWithOtherMounts kubelet;
  if (!kubelet.is_apart()) GTEST_SKIP() << "skipped: needs a mount namespace";
  EXPECT_TRUE(HasOtherMounts(kubelet.pid()));
  EXPECT_FALSE(HasOtherMounts(::getpid()));
  EXPECT_FALSE(HasOtherMounts(0)) << "it is not known";
  const std::string id = CreateNamed("a");
  const std::string mounts = node_.DumpMounts();

  caller_ = kubelet.pid();
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("mountPropagation"));
  EXPECT_EQ(node_.DumpMounts(), mounts);
  caller_ = 0;
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  caller_ = kubelet.pid();
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ThereIs(kTarget), "");
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << "what is there already may go: " << message_;

  ASSERT_TRUE(node_.DoAside(MakeShared{{kCo, ""}}).ok());
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id), StatusCode::OK) << message_;
}

TEST_P(NodePublishTableTest, TheSecondPublishIsAnsweredByTheTable) {
  const Modes::Mode mode = GetParam().mode;
  const std::string id = StagedIn(mode);
  ASSERT_EQ(PublishIt(id, In(mode)), StatusCode::OK) << message_;
  const std::string mounts = node_.DumpMounts();

  EXPECT_EQ(PublishIt(id, In(mode)), StatusCode::OK) << message_;
  auto with_context = NodePublishRequest(id, In(mode));
  (*with_context.mutable_volume_context())["csi.storage.k8s.io/serviceAccount.tokens"] = "{}";
  (*with_context.mutable_secrets())["key"] = "value";
  EXPECT_EQ(PublishIt(with_context), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, WithFlag("noatime", In(mode))), StatusCode::ALREADY_EXISTS) << message_;
  EXPECT_THAT(message_, HasSubstr(kTarget));
  EXPECT_EQ(node_.DumpMounts(), mounts);

  EXPECT_EQ(PublishIt(id, In(mode), kOtherTarget), GetParam().at_another_target) << message_;
  const bool is_there = GetParam().at_another_target == StatusCode::OK;
  EXPECT_EQ(ThereIs(kOtherTarget), is_there ? "files" : "");
  EXPECT_EQ(message_.find(kTarget) == std::string::npos, is_there) << message_;

  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, In(mode), kOtherTarget), StatusCode::OK) << "the first one has left";
  EXPECT_EQ(UnpublishIt(id, kOtherTarget), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

using M = ::csi::v1::VolumeCapability::AccessMode;
INSTANTIATE_TEST_SUITE_P(
    AllModes, NodePublishTableTest,
    ::testing::Values(Cells{M::SINGLE_NODE_WRITER, StatusCode::OK},
                      Cells{M::SINGLE_NODE_READER_ONLY, StatusCode::FAILED_PRECONDITION},
                      Cells{M::MULTI_NODE_READER_ONLY, StatusCode::OK},
                      Cells{M::MULTI_NODE_SINGLE_WRITER, StatusCode::OK},
                      Cells{M::MULTI_NODE_MULTI_WRITER, StatusCode::OK},
                      Cells{M::SINGLE_NODE_SINGLE_WRITER, StatusCode::FAILED_PRECONDITION},
                      Cells{M::SINGLE_NODE_MULTI_WRITER, StatusCode::OK}),
    [](const ::testing::TestParamInfo<Cells>& cells) {
      return ::csi::v1::VolumeCapability::AccessMode::Mode_Name(cells.param.mode);
    });

TEST_F(NodePublishTest, AnotherReadonlyAtTheSameTargetAlreadyExists) {
  const std::string id = StagedIn(Modes::SINGLE_NODE_WRITER);
  ASSERT_EQ(PublishIt(id, Mount(), kTarget, true), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, Mount(), kTarget, true), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, Mount(), kTarget, false), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(PublishIt(id, Mount(), kOtherTarget, false), StatusCode::OK) << message_;
}

TEST_F(NodePublishTest, AReadonlyTargetTakesNoWritesAndTheOtherOneDoes) {
  const std::string id = StagedIn(Modes::SINGLE_NODE_WRITER);
  ASSERT_EQ(PublishIt(id, Mount(), kTarget, true), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Mount(), kOtherTarget, false), StatusCode::OK) << message_;
  EXPECT_TRUE(IsReadOnly(kTarget));
  EXPECT_FALSE(IsReadOnly(kOtherTarget));
}

TEST_F(NodePublishTest, AVolumeThatIsStagedForReadersIsNotPublishedForWriting) {
  const std::string id = StagedIn(Modes::SINGLE_NODE_READER_ONLY);
  EXPECT_EQ(PublishIt(id, In(Modes::SINGLE_NODE_WRITER)), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("only reads"));
  EXPECT_EQ(PublishIt(id, In(Modes::SINGLE_NODE_WRITER), kTarget, true), StatusCode::OK)
      << message_;
}

// A pod got what somebody had mounted over the directory of the staging places.
TEST_F(NodePublishTest, WhatHidesAStagingPlaceWasPublishedInItsStead) {
  const std::string staging = kCo + "/staged/a";
  node_.AddDirectory(staging);
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id, Mount(), staging), StatusCode::OK) << message_;
  node_.AddMount("tmpfs", "tmpfs", kCo + "/staged");
  node_.AddDirectory(staging);
  ::csi::v1::NodePublishVolumeRequest request = NodePublishRequest(id);
  request.set_staging_target_path(staging);
  EXPECT_EQ(PublishIt(request), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("hidden by a tmpfs"));
  EXPECT_FALSE(node_.IsMountPoint(kTarget));
}

// It said that there was nothing any more, and the mount was there when the cover had gone.
TEST_F(NodePublishTest, AVolumeWhoseTargetWasCoveredWasSaidToBeUnpublished) {
  const std::string id = CreateNamed("files");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  node_.AddMount("tmpfs", "tmpfs", kCo);
  for (const StatusCode code : {UnpublishIt(id), UnstageIt(id)}) {
    EXPECT_EQ(code, StatusCode::FAILED_PRECONDITION) << message_;
  }
  EXPECT_EQ(UnpublishIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is hidden by a tmpfs that is mounted over \"" + kCo));
  Must(node_.DoAside(Unmount{{kCo, ""}}));
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

TEST_F(NodePublishTest, ATargetThatCoversOtherPlacesOrHasFilesIsRefused) {
  const std::string id = StagedIn(Modes::SINGLE_NODE_WRITER);
  EXPECT_EQ(PublishIt(id, Mount(), kStaging), StatusCode::FAILED_PRECONDITION)
      << "where it is staged";
  ASSERT_EQ(PublishIt(id, Mount(), kTarget), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, Mount(), kCo + "/pod-a"), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is mounted below"));
  node_.AddFile(kOtherTarget + "/file", "somebody's");
  EXPECT_EQ(PublishIt(id, Mount(), kOtherTarget), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("not empty"));
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

// Only the target's parent was held against the mounts, and the volume was bound in itself.
TEST_F(NodePublishTest, ATargetDeepInTheVolumeItselfIsRefused) {
  const std::string id = StagedIn(Modes::SINGLE_NODE_WRITER);
  node_.AddDirectory(kStaging + "/lost+found");
  EXPECT_EQ(PublishIt(id, Mount(), kStaging + "/lost+found/x"), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("at which the volume itself is staged"));
  EXPECT_FALSE(node_.Exists(kStaging + "/lost+found/x"));
  EXPECT_EQ(PublishIt(id, Mount(), kStaging + "-beside"), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id, kStaging + "-beside"), StatusCode::OK) << message_;
}

// NodeUnpublishVolume was Unavailable for ever, and so was the end of the staging.
TEST_F(NodePublishTest, ALinkInThePlaceOfATargetIsTakenAwayAndNotFollowed) {
  const std::string id = StagedIn(Modes::SINGLE_NODE_WRITER);
  ASSERT_EQ(PublishIt(id, Mount(), kTarget), StatusCode::OK) << message_;
  node_.UnmountBelow(kTarget);
  node_.Remove(kTarget);
  node_.AddDirectory("/etc/own");
  node_.AddSymlink(kTarget, "/etc/own");
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_FALSE(node_.Exists(kTarget));
  EXPECT_TRUE(node_.Exists("/etc/own"));
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

// The call succeeded, and the pod could write to the device.
TEST_F(NodePublishTest, AReadonlyBlockVolumeCouldBeWrittenAtItsTarget) {
  const std::string id = CreateBlock("raw");
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, Block(), kTarget, true), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("SINGLE_NODE_READER_ONLY"));
  EXPECT_FALSE(node_.Exists(kTarget));
  EXPECT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
}

TEST_F(NodePublishTest, ABlockVolumeThatIsStagedForReadersIsReadOnlyItself) {
  const std::string id = CreateBlock("raw");
  for (const Modes::Mode mode : {Modes::SINGLE_NODE_READER_ONLY, Modes::MULTI_NODE_READER_ONLY}) {
    const Capability readers = In(mode, Block());
    ASSERT_EQ(StageIt(id, readers), StatusCode::OK) << message_;
    ASSERT_EQ(Loops().size(), 1u);
    EXPECT_TRUE(Loops().front().read_only);
    EXPECT_EQ(PublishIt(id, Block()), StatusCode::FAILED_PRECONDITION) << "it would write";
    EXPECT_EQ(PublishIt(id, readers), StatusCode::OK) << message_;
    EXPECT_EQ(ThereIs(kTarget), "device");
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  }
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(Loops().size(), 1u);
  EXPECT_FALSE(Loops().front().read_only);
}

// The file was taken for the empty one that a CO makes, and was removed with the publication.
TEST_F(NodePublishTest, AFileWithContentAtTheTargetOfABlockVolumeWasDeleted) {
  const std::string id = CreateBlock("raw");
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  node_.AddFile(kTarget, "somebody's");
  EXPECT_EQ(PublishIt(id, Block()), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr(kTarget + " is a file of 10 bytes"));
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(node_.Find(kTarget).content, "somebody's");
  node_.AddFile(kOtherTarget, "");
  EXPECT_EQ(PublishIt(id, Block(), kOtherTarget), StatusCode::OK) << "the CO made it: " << message_;
  EXPECT_EQ(UnpublishIt(id, kOtherTarget), StatusCode::OK) << message_;
  EXPECT_FALSE(node_.Exists(kOtherTarget));
}

// Each repeated call was UNAVAILABLE, for ever. Of a block volume what is no directory and has no
// content goes.
TEST_F(NodePublishTest, WhatSomebodyPutInThePlaceOfATargetKeptItPublished) {
  struct Thing {
    std::string name;
    std::function<void()> put;
    bool stays_of_block;
  };
  const std::vector<Thing> things = {
      {"fifo", [this] { node_.AddSpecial(kTarget, FileType::kFifo); }, false},
      {"socket", [this] { node_.AddSpecial(kTarget, FileType::kSocket); }, false},
      {"file", [this] { node_.AddFile(kTarget, "somebody's"); }, true},
      {"directory", [this] { node_.AddFile(kTarget + "/note", "somebody's"); }, true}};
  for (const bool is_block : {false, true}) {
    const std::string id = is_block ? CreateBlock("raw") : CreateNamed("files");
    const Capability capability = is_block ? Block() : Mount();
    ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
    for (const Thing& thing : things) {
      SCOPED_TRACE(thing.name + (is_block ? ", block" : ""));
      ASSERT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
      node_.UnmountBelow(kTarget);
      node_.Remove(kTarget);
      thing.put();
      EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
      EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
      EXPECT_THAT(LoadPodVolumeRecords(store_), IsEmpty());
      EXPECT_EQ(node_.Exists(kTarget), thing.stays_of_block || !is_block);
      EXPECT_EQ(node_.Exists(kTarget + "/note"), thing.name == "directory");
      if (node_.Exists(kTarget)) node_.Remove(kTarget);
    }
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  }
}

// The error named a loop device, and not the mount that nobody found by the staging path.
TEST_F(NodePublishTest, AStagedMountThatWasRenamedWasNotNamed) {
  const std::string id = CreateNamed("files");
  const std::string staging = kCo + "/claim/stage";
  node_.AddDirectory(staging);
  ASSERT_EQ(StageIt(id, Mount(), staging), StatusCode::OK) << message_;
  // A mount point itself cannot be renamed, and the directory that it lies in can.
  node_.Rename(kCo + "/claim", "aside");
  node_.AddDirectory(staging);
  EXPECT_NE(UnstageIt(id, staging), StatusCode::OK);
  EXPECT_THAT(message_, HasSubstr("is mounted at \"" + kCo + "/aside/stage\" by now"));
  node_.UnmountBelow(kCo + "/aside");
  EXPECT_EQ(UnstageIt(id, staging), StatusCode::OK) << message_;
  EXPECT_THAT(Loops(), IsEmpty());
}

// The text of a source is whatever somebody who mounts likes.
TEST_F(NodePublishTest, AFilesystemThatIsOnlyCalledLikeTheDeviceWasPublished) {
  const std::string id = CreateNamed("files");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_.AddMount("tmpfs", Loops().front().path, kStaging);
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_THAT(message_, HasSubstr("something else than volume " + id));
}

// What is compared is what the CO has asked for, so that a volume which an agent before this one
// has staged without the option for errors is staged alike.
TEST_F(NodePublishTest, TheOptionForErrorsIsOnNoRecord) {
  const std::string id = CreateNamed("files");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  const std::vector<DeviceRecord> rows = LoadDeviceRecords(store_);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(rows.front().volume_json, Not(HasSubstr("errors=")));
  RestartNode();
  const std::string mounts = node_.DumpMounts();
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(node_.DumpMounts(), mounts);
}

TEST_F(NodePublishTest, OfTwoVolumesAtOneTargetTheSecondIsRefused) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  ASSERT_EQ(StageIt(a), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(b, Mount(), kCo + "/stage-b"), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(a), StatusCode::OK) << message_;
  const std::string mounts = node_.DumpMounts();
  auto request = NodePublishRequest(b);
  request.set_staging_target_path(kCo + "/stage-b");
  EXPECT_EQ(PublishIt(request), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr(a));
  EXPECT_EQ(UnpublishIt(b), StatusCode::OK) << "it is not there";
  EXPECT_EQ(node_.DumpMounts(), mounts);
}

TEST_F(NodePublishTest, OfTwoVolumesOnTheirWayToOneTargetOneGetsThere) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  ASSERT_EQ(StageIt(a), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(b, Mount(), kCo + "/stage-b"), StatusCode::OK) << message_;
  auto request = NodePublishRequest(b);
  request.set_staging_target_path(kCo + "/stage-b");
  ::csi::v1::NodePublishVolumeResponse response_of_a;
  ::csi::v1::NodePublishVolumeResponse response_of_b;
  const auto of_a = Begin(NodePublishRequest(a), &response_of_a);
  const auto of_b = Begin(request, &response_of_b);
  scheduler_.RunFor(std::chrono::milliseconds(1));
  ASSERT_NE(of_a->ok(), of_b->ok()) << of_a->error_message() << of_b->error_message();
  const grpc::Status& refused = of_a->ok() ? *of_b : *of_a;
  EXPECT_TRUE(refused.error_code() == StatusCode::ABORTED ||
              refused.error_code() == StatusCode::FAILED_PRECONDITION)
      << refused.error_message();
  EXPECT_EQ(UnpublishIt(of_a->ok() ? b : a), StatusCode::OK) << "it is not there";
  EXPECT_EQ(ThereIs(kTarget), "files");
  EXPECT_EQ(UnpublishIt(of_a->ok() ? a : b), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "");
}

// Whoever took the mount away has not unpublished the volume.
TEST_F(NodePublishTest, ATargetWhoseMountIsGoneIsPublishedAnew) {
  for (const bool is_block : {false, true}) {
    const std::string id = is_block ? CreateBlock("raw") : CreateNamed("files");
    const Capability capability = is_block ? Block() : Mount();
    ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
    ASSERT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
    node_.UnmountBelow(kTarget);
    EXPECT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
    EXPECT_EQ(ThereIs(kTarget), is_block ? "device" : "files");
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  }
}

// It was looked at a moment before, and then whatever was there by then was bound.
TEST_F(NodePublishTest, WhatSomebodyMountedAtTheStagingPathAmidAPublishWasPublished) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_.SetCallHook([this](const AnyRequest& request) {
    if (!std::holds_alternative<BindMount>(request)) return;
    Must(node_.DoAside(volumed::Mount{"tmpfs", "theirs", {kStaging, ""}, {}}));
  });
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is not mounted there any more"));
  EXPECT_FALSE(node_.Exists(kTarget));
  node_.SetCallHook(nullptr);
  Must(node_.DoAside(Unmount{{kStaging, ""}}));
  EXPECT_EQ(PublishIt(id), StatusCode::OK) << message_;
}

// A pod got the files of somebody else.
TEST_F(NodePublishTest, WhatSomebodyElseHadMountedAtTheStagingPathWasPublished) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  Must(node_.DoAside(Unmount{{kStaging, ""}}));
  Must(node_.DoAside(volumed::Mount{"tmpfs", "theirs", {kStaging, ""}, {}}));
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("something else than volume " + id + " is mounted"));
  EXPECT_FALSE(node_.Exists(kTarget));
}

}  // namespace
}  // namespace volumed
