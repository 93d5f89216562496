// Volumes that a CO makes of snapshots and of other volumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/csidriver/snapshot_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerGetVolumeRequest;
using ::csi::v1::ControllerGetVolumeResponse;
using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::ListVolumesRequest;
using ::csi::v1::ListVolumesResponse;
using ::csi::v1::Volume;
using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CsiContentsTest : public SnapshotFixture {
 protected:
  using SnapshotFixture::SnapshotFixture;

  Volume Got(const std::string& id) {
    ControllerGetVolumeRequest request;
    request.set_volume_id(id);
    ControllerGetVolumeResponse response;
    EXPECT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
    return response.volume();
  }
};

class CopiedCsiContentsTest : public CsiContentsTest {
 protected:
  CopiedCsiContentsTest() : CsiContentsTest("") {}
};

TEST_F(CsiContentsTest, AVolumeIsMadeOfASnapshotAndSaysSo) {
  const std::string source = CreateNamed("a");
  const std::string snapshot = Cut("one", source).snapshot_id();
  const Volume made = Create(RestoreRequest("b", snapshot));
  EXPECT_EQ(made.content_source().snapshot().snapshot_id(), snapshot);
  EXPECT_EQ(made.capacity_bytes(), 16 * kMiB);
  EXPECT_NE(made.volume_id(), source);
  EXPECT_EQ(Got(made.volume_id()).content_source().snapshot().snapshot_id(), snapshot);
  EXPECT_FALSE(Got(source).has_content_source());
  ListVolumesResponse all;
  ASSERT_EQ(CodeOf(ListVolumesRequest(), &all), StatusCode::OK) << message_;
  int with_source = 0;
  for (const auto& entry : all.entries()) with_source += entry.volume().has_content_source();
  EXPECT_EQ(with_source, 1);
}

TEST_F(CsiContentsTest, AVolumeIsMadeOfAnotherAndItsCutIsToldToNobody) {
  const std::string source = CreateNamed("a");
  const Volume made = Create(CloneRequest("b", source));
  EXPECT_EQ(made.content_source().volume().volume_id(), source);
  EXPECT_EQ(Got(made.volume_id()).content_source().volume().volume_id(), source);
  EXPECT_THAT(ListedIds(), IsEmpty());
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_THAT(volumes_->Cuts(), IsEmpty()) << "it goes with the making of the volume";
}

TEST_F(CsiContentsTest, AVolumeInUseIsClonedAndStaysInUse) {
  const std::string source = CreateNamed("a");
  ASSERT_EQ(StageIt(source), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(source), StatusCode::OK) << message_;
  EXPECT_NE(Create(CloneRequest("b", source)).volume_id(), "");
  EXPECT_FALSE(node_.IsFrozen(kStaging));
  EXPECT_EQ(ThereIs(kTarget), "files");
}

TEST_F(CsiContentsTest, TheSameCallFindsTheSameVolumeAndTheNameWithAnotherSourceAlreadyExists) {
  const std::string source = CreateNamed("a");
  const std::string one = Cut("one", source).snapshot_id();
  const std::string two = Cut("two", source).snapshot_id();
  const std::string of_one = Create(RestoreRequest("b", one)).volume_id();
  EXPECT_EQ(Create(RestoreRequest("b", one)).volume_id(), of_one);
  RestartSnapshots();
  EXPECT_EQ(Create(RestoreRequest("b", one)).volume_id(), of_one);
  EXPECT_EQ(CreateCode(RestoreRequest("b", two)), StatusCode::ALREADY_EXISTS) << message_;
  EXPECT_EQ(CreateCode(CloneRequest("b", source)), StatusCode::ALREADY_EXISTS) << message_;
  EXPECT_EQ(CreateCode(CreateRequest("b")), StatusCode::ALREADY_EXISTS) << message_;
  EXPECT_EQ(CreateCode(RestoreRequest("a", one)), StatusCode::ALREADY_EXISTS)
      << "the first of the name is empty: " << message_;
}

TEST_F(CsiContentsTest, ARepeatFindsItsVolumeAlsoWhenTheSnapshotIsGone) {
  const std::string snapshot = Cut("one", CreateNamed("a")).snapshot_id();
  const std::string made = Create(RestoreRequest("b", snapshot)).volume_id();
  ASSERT_EQ(DeleteCut(snapshot), StatusCode::OK) << message_;
  EXPECT_EQ(Create(RestoreRequest("b", snapshot)).volume_id(), made);
  EXPECT_EQ(CreateCode(RestoreRequest("c", snapshot)), StatusCode::NOT_FOUND) << message_;
}

TEST_F(CsiContentsTest, ASourceThatThereIsNotIsNotFoundAndMakesNothing) {
  for (const std::string& unknown :
       {std::string("non-existing-snapshot-id"), NewIdOf(*volumes_, PoolObject::kCut)}) {
    EXPECT_EQ(CreateCode(RestoreRequest("b", unknown)), StatusCode::NOT_FOUND) << message_;
  }
  for (const std::string& unknown :
       {std::string("non-existing-volume-id"), NewIdOf(*volumes_, PoolObject::kVolume)}) {
    EXPECT_EQ(CreateCode(CloneRequest("b", unknown)), StatusCode::NOT_FOUND) << message_;
  }
  EXPECT_TRUE(volumes_->List("", 10).volumes.empty());
  EXPECT_NE(CreateNamed("b"), "") << "the name is free";
}

TEST_F(CsiContentsTest, ASourceWithoutAnIdIsNoRequest) {
  EXPECT_EQ(CreateCode(RestoreRequest("b", "")), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CreateCode(CloneRequest("b", "")), StatusCode::INVALID_ARGUMENT);
  CreateVolumeRequest neither = CreateRequest("b");
  neither.mutable_volume_content_source();
  EXPECT_EQ(CreateCode(neither), StatusCode::INVALID_ARGUMENT);
}

TEST_F(CsiContentsTest, AVolumeIsNotSmallerThanItsSource) {
  const std::string source = Create(CreateRequest("a", 32 * kMiB)).volume_id();
  const std::string snapshot = Cut("one", source).snapshot_id();
  for (CreateVolumeRequest request :
       {RestoreRequest("b", snapshot, 16 * kMiB), CloneRequest("b", source, 16 * kMiB)}) {
    request.mutable_capacity_range()->set_limit_bytes(16 * kMiB);
    EXPECT_EQ(CreateCode(request), StatusCode::OUT_OF_RANGE) << message_;
  }
  EXPECT_EQ(Create(RestoreRequest("larger", snapshot, 48 * kMiB)).capacity_bytes(), 48 * kMiB);
}

// Without an fs_type it became an ext4, beside the xfs of its source.
TEST_F(CsiContentsTest, WhatIsMadeOfAVolumeThatWasNeverStagedHasTheFilesystemOfThat) {
  node_.LimitFilesystem(kPoolPath, 8192 * kMiB);
  CreateVolumeRequest xfs = CreateRequest("a", 512 * kMiB);
  xfs.mutable_volume_capabilities(0)->mutable_mount()->set_fs_type("xfs");
  const std::string source = Create(xfs).volume_id();
  const std::string snapshot = Cut("one", source).snapshot_id();
  for (CreateVolumeRequest request :
       {RestoreRequest("b", snapshot, 512 * kMiB), CloneRequest("c", source, 512 * kMiB)}) {
    request.mutable_volume_capabilities(0)->mutable_mount()->clear_fs_type();
    EXPECT_EQ(PoolFilesystemOf(volumes_->Find(Create(request).volume_id()).value()), "xfs");
  }
}

TEST_F(CsiContentsTest, TheModeAndTheFilesystemAreThoseOfTheSource) {
  const std::string files = Cut("files", CreateNamed("a")).snapshot_id();
  CreateVolumeRequest as_block = RestoreRequest("b", files);
  *as_block.mutable_volume_capabilities(0) = Block();
  EXPECT_EQ(CreateCode(as_block), StatusCode::INVALID_ARGUMENT) << message_;
  const std::string raw = Cut("raw", CreateBlock("raw")).snapshot_id();
  EXPECT_EQ(CreateCode(RestoreRequest("b", raw)), StatusCode::INVALID_ARGUMENT) << message_;
  CreateVolumeRequest block = RestoreRequest("c", raw);
  *block.mutable_volume_capabilities(0) = Block();
  EXPECT_EQ(CreateCode(block), StatusCode::OK) << message_;
  const std::string used = CreateNamed("used");
  ASSERT_EQ(StageIt(used), StatusCode::OK) << message_;  // from now on it has an ext4
  CreateVolumeRequest other = RestoreRequest("d", Cut("used", used).snapshot_id(), 320 * kMiB);
  *other.mutable_volume_capabilities(0) = Mount("xfs");
  EXPECT_EQ(CreateCode(other), StatusCode::INVALID_ARGUMENT) << message_;
}

TEST_F(CsiContentsTest, AnotherPoolIsNoSource) {
  const std::string snapshot = Cut("one", CreateNamed("a")).snapshot_id();
  CreateVolumeRequest elsewhere = RestoreRequest("b", snapshot);
  (*elsewhere.mutable_parameters())["pool"] = "slow";
  EXPECT_EQ(CreateCode(elsewhere), StatusCode::INVALID_ARGUMENT) << message_;
  EXPECT_EQ(CreateCode(CloneRequest("b", kIdOfAnotherPool)), StatusCode::FAILED_PRECONDITION)
      << message_;
}

// Whoever says where the volume is to be has chosen the node, and can choose the one that has it.
TEST_F(CsiContentsTest, AContentOfAnotherNodeGivesTheClaimBackToWhoeverChoseThisOne) {
  CreateVolumeRequest clone = CloneRequest("b", kIdOfAnotherPool);
  clone.mutable_accessibility_requirements()->add_requisite();
  EXPECT_EQ(CreateCode(clone), StatusCode::RESOURCE_EXHAUSTED) << message_;
  CreateVolumeRequest restore = RestoreRequest("c", kCutOfAnotherPool);
  restore.mutable_accessibility_requirements()->add_requisite();
  EXPECT_EQ(CreateCode(restore), StatusCode::RESOURCE_EXHAUSTED) << message_;
  CreateVolumeRequest here = CloneRequest("d", CreateNamed("a"));
  here.mutable_accessibility_requirements()->add_requisite();
  EXPECT_EQ(CreateCode(here), StatusCode::OK) << message_;
}

// A volume that is made of it holds the snapshot only until it is there.
TEST_F(CsiContentsTest, ASnapshotIsFreeAgainOnceItsVolumeIsMade) {
  const std::string source = CreateNamed("a");
  const std::string snapshot = Cut("one", source).snapshot_id();
  const std::string made = Create(RestoreRequest("b", snapshot)).volume_id();
  EXPECT_EQ(DeleteCut(snapshot), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(source), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(made), StatusCode::OK) << message_;
}

TEST_F(CopiedCsiContentsTest, ACloneWhoseBytesWereCopiedWasRefusedOnceBeforeItWasMade) {
  const std::string source = CreateNamed("a");
  EXPECT_NE(Create(CloneRequest("b", source)).volume_id(), "") << message_;
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
}

TEST_F(CopiedCsiContentsTest, WhatFailsWhileTheBytesOfACloneAreCopiedIsTheAnswer) {
  const std::string source = CreateNamed("a");
  node_.FailNext("CopyFile", Error::NotApplied(Code::kDataLoss, "a sector cannot be read"));
  // What it has begun stays for the next try, so the code is none that ends a caller's tries.
  EXPECT_EQ(CreateCode(CloneRequest("b", source)), StatusCode::UNAVAILABLE);
  EXPECT_THAT(message_, HasSubstr("a sector cannot be read"));
  EXPECT_NE(Create(CloneRequest("b", source)).volume_id(), "") << message_;
}

TEST_F(CopiedCsiContentsTest, ASnapshotThatIsNotReadyIsToBeWaitedFor) {
  const std::string source = CreateNamed("a");
  ::csi::v1::CreateSnapshotResponse response;
  const auto status = Begin(CutRequestOf("one", source), &response);
  scheduler_.RunUntil([&] { return status->error_code() != StatusCode::UNKNOWN; },
                      std::chrono::seconds(1));
  ASSERT_TRUE(status->ok()) << status->error_message();
  const CreateVolumeRequest request = RestoreRequest("b", response.snapshot().snapshot_id());
  ::csi::v1::CreateVolumeResponse made;
  const auto early = Begin(request, &made);
  scheduler_.RunUntil([&] { return early->error_code() != StatusCode::UNKNOWN; },
                      std::chrono::seconds(1));
  EXPECT_TRUE(early->ok() || early->error_code() == StatusCode::UNAVAILABLE)
      << early->error_message();
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(CreateCode(request), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
