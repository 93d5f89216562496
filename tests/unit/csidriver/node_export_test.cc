// Exports of NFS servers that an administrator has listed as volumes: mounted once for the node,
// bound to each target, never asked what they are, and never in another volume's way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kMedia[] = "nas-1:/srv/media";
constexpr char kMediaDomain[] = "nfs:nas-1";

using MountEffect = struct Mount;  // fixtures have a function of that name

class NodeExportTest : public NodeFixture {
 protected:
  NodeExportTest() {
    node_.AddFile("/sbin/mount.nfs", "", 0755);
    node_.AddExport(kMedia);
    volumes_->ListStatic({"media"});
    node_.SetCallHook([this](const AnyRequest& request) {
      const auto* const mount = std::get_if<MountEffect>(&request);
      if (mount != nullptr) mounts_.push_back(*mount);
      const auto* const unmount = std::get_if<Unmount>(&request);
      if (unmount != nullptr && unmount->force) ++forced_;
    });
  }
  static StaticVolume Media(const std::string& text = kMedia, const std::string& name = "media") {
    return {name, "fast", "", /*is_block=*/false, Must(ParseStaticExport(text))};
  }
  // The id of the volume.
  std::string Take(const StaticVolume& volume = Media()) {
    return Must(volumes_->TakeStatic(volume, {})).id;
  }
  // The error's text; "" if it was taken.
  std::string WhyNot(const StaticVolume& volume) {
    const Result<PoolVolumeRecord> taken = volumes_->TakeStatic(volume, {});
    return taken.ok() ? "" : taken.error().message();
  }
  static Capability Shared(Modes::Mode mode = Modes::MULTI_NODE_MULTI_WRITER) { return In(mode); }
  StatusCode Stats(const std::string& id, const std::string& path) {
    ::csi::v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    ::csi::v1::NodeGetVolumeStatsResponse response;
    return CodeOf(request, &response);
  }
  StatusCode Grow(const std::string& id) {
    ::csi::v1::ControllerExpandVolumeRequest request;
    request.set_volume_id(id);
    request.mutable_capacity_range()->set_required_bytes(64 * kMiB);
    ::csi::v1::ControllerExpandVolumeResponse response;
    return CodeOf(request, &response);
  }
  StatusCode GrowOnNode(const std::string& id) {
    ::csi::v1::NodeExpandVolumeRequest request;
    request.set_volume_id(id);
    request.set_volume_path(kStaging);
    request.mutable_capacity_range()->set_required_bytes(64 * kMiB);
    ::csi::v1::NodeExpandVolumeResponse response;
    return CodeOf(request, &response);
  }
  // The message of a refusal; "" if it is confirmed.
  std::string WhyNotConfirmed(const std::string& id, const Capability& capability) {
    ::csi::v1::ValidateVolumeCapabilitiesRequest request;
    request.set_volume_id(id);
    *request.add_volume_capabilities() = capability;
    ::csi::v1::ValidateVolumeCapabilitiesResponse response;
    EXPECT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
    EXPECT_EQ(response.has_confirmed(), response.message().empty());
    return response.message();
  }
  std::vector<std::string> AilsOf(const std::string& id) {
    ::csi::v1::NodeGetVolumeHealthRequest request;
    request.set_volume_id(id);
    ::csi::v1::NodeGetVolumeHealthResponse response;
    EXPECT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
    std::vector<std::string> reasons;
    for (const auto& entry : response.volume_health().health_statuses()) {
      reasons.push_back(entry.reason());
    }
    return reasons;
  }

  std::vector<MountEffect> mounts_;  // by mount.nfs and others
  int forced_ = 0;
};

TEST_F(NodeExportTest, AListedExportIsMountedOnceAndBoundToEachTarget) {
  const std::string id = Take();
  ASSERT_EQ(StageIt(id, Shared()), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Shared()), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Shared(), kOtherTarget), StatusCode::OK) << message_;
  ASSERT_THAT(mounts_, SizeIs(1));
  EXPECT_EQ(mounts_[0].fs_type, "nfs");
  EXPECT_EQ(mounts_[0].source, kMedia);
  EXPECT_THAT(mounts_[0].options, IsEmpty());
  node_.AddFile(kTarget + "/note", "x");
  EXPECT_EQ(node_.Find(kOtherTarget + "/note").content, "x");
  RestartNode();
  volumes_->ListStatic({"media"});
  EXPECT_EQ(Take(), id);
  EXPECT_EQ(StageIt(id, Shared()), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id, Shared()), StatusCode::OK) << message_;
  EXPECT_THAT(mounts_, SizeIs(1)) << "it is there";
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id, kOtherTarget), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_EQ(forced_, 0);
  ASSERT_EQ(StageIt(id, Shared()), StatusCode::OK) << message_;
  EXPECT_EQ(node_.Find(kStaging + "/note").content, "x") << "its data is its server's";
}

TEST_F(NodeExportTest, ItsOptionsAreThoseOfTheListAndOfTheCall) {
  const std::string id = Take(Media(std::string(kMedia) + " nfsvers=4.2,nosuid"));
  ASSERT_EQ(StageIt(id, WithFlag("noexec", Shared(Modes::MULTI_NODE_READER_ONLY))), StatusCode::OK)
      << message_;
  ASSERT_THAT(mounts_, SizeIs(1));
  EXPECT_THAT(mounts_[0].options, ElementsAre("nfsvers=4.2", "noexec", "nosuid", "ro"));
  EXPECT_EQ(PublishIt(id, WithFlag("noexec", Shared())), StatusCode::FAILED_PRECONDITION)
      << "it is staged for readers";
}

TEST_F(NodeExportTest, OneThatIsListedWithRoIsForReaders) {
  const std::string id = Take(Media(std::string(kMedia) + " ro"));
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("listed with ro"));
  EXPECT_THAT(WhyNotConfirmed(id, Shared()), HasSubstr("listed with ro"));
  EXPECT_EQ(WhyNotConfirmed(id, Shared(Modes::MULTI_NODE_READER_ONLY)), "");
  EXPECT_EQ(StageIt(id, Shared(Modes::MULTI_NODE_READER_ONLY)), StatusCode::OK) << message_;
  ASSERT_THAT(mounts_, SizeIs(1));
  EXPECT_THAT(mounts_[0].options, ElementsAre("ro"));
}

TEST_F(NodeExportTest, ItIsListedWithoutASizeAndForSeveralNodes) {
  const std::string id = Take();
  ::csi::v1::ListVolumesRequest request;
  ::csi::v1::ListVolumesResponse response;
  ASSERT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
  ASSERT_EQ(response.entries_size(), 1);
  EXPECT_EQ(response.entries(0).volume().volume_id(), id);
  EXPECT_EQ(response.entries(0).volume().capacity_bytes(), 0) << "not known";
  EXPECT_EQ(WhyNotConfirmed(id, Shared()), "");
  EXPECT_NE(WhyNotConfirmed(CreateNamed("a"), Shared()), "");
  const int64_t free_bytes = Must(volumes_->Capacity({}, {})).free_bytes;
  node_.AddExport("nas-1:/srv/more");
  Take(Media("nas-1:/srv/more", "more"));
  EXPECT_EQ(Must(volumes_->Capacity({}, {})).free_bytes, free_bytes);
  EXPECT_THAT(volumes_->Look("fast", {}).lost, IsEmpty());
}

// ---- what is refused ----------------------------------------------------------------------------

TEST_F(NodeExportTest, WhatAnExportIsNotIsRefused) {
  const std::string id = Take();
  Capability grouped = Mount();
  grouped.mutable_mount()->set_volume_mount_group("1000");
  for (const Capability& capability :
       {Block(), Mount("ext4"), grouped, WithFlag("data=ordered"), WithFlag("commit=30")}) {
    EXPECT_EQ(StageIt(id, capability), StatusCode::FAILED_PRECONDITION)
        << capability.ShortDebugString();
    EXPECT_THAT(message_, HasSubstr(kMedia));
  }
  EXPECT_EQ(StageIt(id, WithFlag("nfsvers=3")), StatusCode::INVALID_ARGUMENT)
      << "options of NFS are the list's";
  EXPECT_THAT(mounts_, IsEmpty());
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Grow(id), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(GrowOnNode(id), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Modify(id, {{"directIO", "true"}}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Modify(id, {{"quotaBytes", "1048576"}}), StatusCode::INVALID_ARGUMENT);
  const auto cut = volumes_->Cut({{id, volumes_->NewCutId(id), std::nullopt}}, {}, {});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(cut.error().message(), HasSubstr(kMedia));
  ::csi::v1::CreateVolumeRequest clone = CreateRequest("clone");
  clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(id);
  EXPECT_EQ(CreateCode(clone), StatusCode::INVALID_ARGUMENT);
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("nas-1:/srv/media, which is listed"));
}

TEST_F(NodeExportTest, AnotherExportByTheNameIsNeverTakenForTheVolume) {
  const std::string id = Take();
  EXPECT_THAT(WhyNot(Media("nas-1:/srv/other")), HasSubstr("list another one by another name"));
  EXPECT_THAT(WhyNot(Media(kMedia, "twice")), HasSubstr("already"));
  StaticVolume device{"media", "fast", "/dev/sdx", /*is_block=*/false};
  FakeDevice disk;
  disk.identity.stable_id = "wwid:naa.1";
  disk.identity.size_bytes = 512 * kMiB;
  node_.AddDevice("/dev/sdx", disk);
  EXPECT_THAT(WhyNot(device), HasSubstr("is the export"));
  EXPECT_EQ(Take(Media(std::string(kMedia) + " hard,ro")), id) << "its options may change";
  EXPECT_THAT(Must(volumes_->Find(id)).source_options, ElementsAre("hard"));
  volumes_->ListStatic({});
  EXPECT_EQ(StageIt(id, Shared(Modes::MULTI_NODE_READER_ONLY)), StatusCode::FAILED_PRECONDITION)
      << "nobody lists it";
  EXPECT_THAT(mounts_, IsEmpty());
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_NE(Take(Media("nas-1:/srv/other")), id);
}

TEST_F(NodeExportTest, WithoutAnNfsClientTheErrorNamesWhatIsMissing) {
  const std::string id = Take();
  node_.Remove("/sbin/mount.nfs");
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("install the package nfs-common"));
  EXPECT_THAT(LeasesOf(id), IsEmpty());
  node_.AddFile("/sbin/mount.nfs", "", 0755);
  node_.FailNext("Mount", Error::NotApplied(Code::kUnknown, "mount.nfs: No such device"));
  EXPECT_NE(StageIt(id), StatusCode::OK);
  EXPECT_THAT(message_, HasSubstr("the kernel has no NFS client"));
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
}

TEST_F(NodeExportTest, SomethingElseAtThePlaceIsNotTakenForTheExport) {
  const std::string id = Take();
  node_.AddMount("tmpfs", "tmpfs", kStaging);
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_TRUE(node_.IsMountPoint(kStaging)) << "it is somebody else's";
}

// Of two mounts of one export the kernel shows the first one's server for both.
TEST_F(NodeExportTest, AServerThatIsShownByItsAddressIsTheSame) {
  const std::string id = Take();
  node_.AddMount("nfs4", "10.77.0.2:/srv/media", kStaging);
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(mounts_, IsEmpty());
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "");
}

TEST_F(NodeExportTest, AnotherMountOfTheExportKeepsItFromNothing) {
  const std::string id = Take();
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_.AddDirectory("/mnt/media");
  ASSERT_TRUE(node_
                  .Call(MountEffect{.fs_type = "nfs",
                                    .source = kMedia,
                                    .target = {"/mnt", "media", Resolve::kNoSymlinks},
                                    .options = {}},
                        {})
                  .ok());
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_TRUE(node_.IsMountPoint("/mnt/media"));
}

// ---- a server that does not answer --------------------------------------------------------------

TEST_F(NodeExportTest, AServerThatDoesNotAnswerIsInNobodyElsesWay) {
  Serve(CsiProfile::kCentral, CsiServeLevel::k1_13);
  AddNode();
  const std::string id = Take();
  const std::string other = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(volumes_->DomainOf(id), kMediaDomain);
  EXPECT_EQ(devices_->Find(PoolDeviceName(id))->fault_domain, kMediaDomain);
  EXPECT_EQ(AilsOf(id), std::vector<std::string>());
  node_.Hang(kStaging);
  node_.Hang(kTarget);
  EXPECT_EQ(Stats(id, kStaging), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Stats(id, kTarget), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(AilsOf(id), ElementsAre("ServerUnreachable"));
  EXPECT_THAT(AilsOf(other), IsEmpty());
  EXPECT_TRUE(volumes_->Look("fast", {}).reachable.ok());
  EXPECT_EQ(StageIt(other, Mount(), kCo + "/stage-b"), StatusCode::OK) << message_;
  EXPECT_EQ(Stats(other, kCo + "/stage-b"), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(other, kCo + "/stage-b"), StatusCode::OK) << message_;
}

TEST_F(NodeExportTest, AnUnmountThatHangsIsForced) {
  const std::string id = Take();
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_.Hang(kStaging);
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(forced_, 1);
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_THAT(LeasesOf(id), IsEmpty());
}

}  // namespace
}  // namespace volumed
