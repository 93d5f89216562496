// The Controller service: volumes that a CO makes, deletes and is told of.
#include "csidriver/controller_rpcs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "unit/csidriver/controller_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerGetVolumeRequest;
using ::csi::v1::ControllerGetVolumeResponse;
using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::CreateVolumeResponse;
using ::csi::v1::GetCapacityRequest;
using ::csi::v1::GetCapacityResponse;
using ::csi::v1::ListVolumesRequest;
using ::csi::v1::ListVolumesResponse;
using ::csi::v1::ValidateVolumeCapabilitiesRequest;
using ::csi::v1::ValidateVolumeCapabilitiesResponse;
using ::testing::HasSubstr;
using Controller = ::csi::v1::ControllerServiceCapability::RPC;
using Modes = ::csi::v1::VolumeCapability::AccessMode;
using grpc::StatusCode;

const std::string kElsewhere = "v-00000000-0123456789abcdef01234567";

class ControllerRpcsTest : public ControllerFixture {
 protected:
  std::string UnknownId() const {
    return NewPoolId(PoolObject::kVolume, volumes_->pools().front()->tag()).ToString();
  }
  ListVolumesResponse List(int32_t most = 0, const std::string& token = "") {
    ListVolumesRequest request;
    request.set_max_entries(most);
    request.set_starting_token(token);
    ListVolumesResponse response;
    EXPECT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
    return response;
  }
  StatusCode Validate(const ValidateVolumeCapabilitiesRequest& request) {
    validated_.Clear();
    return CodeOf(request, &validated_);
  }
  ValidateVolumeCapabilitiesRequest ValidateRequest(const std::string& id) {
    ValidateVolumeCapabilitiesRequest request;
    request.set_volume_id(id);
    *request.add_volume_capabilities() = Mount();
    return request;
  }
  int64_t Capacity(const GetCapacityRequest& request) {
    GetCapacityResponse response;
    EXPECT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
    return response.available_capacity();
  }

  ValidateVolumeCapabilitiesResponse validated_;
};

// ---- what is announced --------------------------------------------------------------------------

TEST_F(ControllerRpcsTest, ACentralDriverAnnouncesWhatIsServedAndNothingElse) {
  EXPECT_EQ(handlers_->Capabilities().controller,
            (std::vector<Controller::Type>{
                Controller::CREATE_DELETE_VOLUME, Controller::PUBLISH_UNPUBLISH_VOLUME,
                Controller::LIST_VOLUMES, Controller::GET_CAPACITY, Controller::PUBLISH_READONLY,
                Controller::EXPAND_VOLUME, Controller::LIST_VOLUMES_PUBLISHED_NODES,
                Controller::GET_VOLUME, Controller::MODIFY_VOLUME}));
}

TEST_F(ControllerRpcsTest, ADriverOfItsNodePublishesNothing) {
  Serve(CsiProfile::kNode);
  EXPECT_EQ(
      handlers_->Capabilities().controller,
      (std::vector<Controller::Type>{Controller::CREATE_DELETE_VOLUME, Controller::LIST_VOLUMES,
                                     Controller::GET_CAPACITY, Controller::GET_VOLUME}));
  const std::string id = CreateNamed("a");
  EXPECT_EQ(PublishCode(PublishRequest(id)), StatusCode::UNIMPLEMENTED);
}

TEST_F(ControllerRpcsTest, TheNodeIsWhereItsVolumesAreAndSaysHowManyItGets) {
  settings_.most_volumes = 3;
  Serve();
  ::csi::v1::NodeGetInfoResponse info;
  ASSERT_EQ(CodeOf(::csi::v1::NodeGetInfoRequest(), &info), StatusCode::OK) << message_;
  EXPECT_EQ(info.node_id(), kThisNode);
  EXPECT_EQ(info.max_volumes_per_node(), 3);
  const ::csi::v1::Volume volume = Create(CreateRequest("a"));
  ASSERT_EQ(volume.accessible_topology_size(), 1);
  EXPECT_EQ(info.accessible_topology().ShortDebugString(),
            volume.accessible_topology(0).ShortDebugString());
  EXPECT_EQ(handlers_->Capabilities().plugin,
            (std::vector<::csi::v1::PluginCapability::Service::Type>{
                ::csi::v1::PluginCapability::Service::CONTROLLER_SERVICE,
                ::csi::v1::PluginCapability::Service::VOLUME_ACCESSIBILITY_CONSTRAINTS}));
}

// ---- CreateVolume -------------------------------------------------------------------------------

TEST_F(ControllerRpcsTest, AVolumeHasExactlyTheBytesThatAreAskedForAndIsWhereThisNodeIs) {
  const ::csi::v1::Volume volume = Create(CreateRequest("pvc-1", 20 * kMiB));
  EXPECT_EQ(volume.capacity_bytes(), 20 * kMiB);
  EXPECT_EQ(volumes_->MeaningOf(volume.volume_id()), PoolIdMeaning::kHere);
  ASSERT_EQ(volume.accessible_topology_size(), 1);
  EXPECT_EQ(volume.accessible_topology(0).segments().at(PoolTopologyLabel(kDriver)), kThisNode);
  EXPECT_FALSE(volume.has_content_source());
}

TEST_F(ControllerRpcsTest, TheSameCreateFindsTheSameVolumeOverARestartToo) {
  const std::string id = CreateNamed("pvc-1");
  EXPECT_EQ(CreateNamed("pvc-1"), id);
  RestartDriver();
  EXPECT_EQ(CreateNamed("pvc-1"), id);
  EXPECT_EQ(volumes_->List("", 10).volumes.size(), 1u);
}

TEST_F(ControllerRpcsTest, TheNameWithOtherParametersAlreadyExists) {
  Create(CreateRequest("pvc-1"));
  CreateVolumeRequest larger = CreateRequest("pvc-1", 32 * kMiB);
  EXPECT_EQ(CreateCode(larger), StatusCode::ALREADY_EXISTS) << message_;
  CreateVolumeRequest limited = CreateRequest("pvc-1", 4096);
  limited.mutable_capacity_range()->set_limit_bytes(15 * kMiB);
  EXPECT_NE(CreateCode(limited), StatusCode::OK) << message_;
  CreateVolumeRequest block = CreateRequest("pvc-1");
  *block.mutable_volume_capabilities(0) = Block();
  EXPECT_EQ(CreateCode(block), StatusCode::ALREADY_EXISTS) << message_;
  CreateVolumeRequest thick = CreateRequest("pvc-1");
  (*thick.mutable_parameters())["allocation"] = "thick";
  EXPECT_EQ(CreateCode(thick), StatusCode::ALREADY_EXISTS) << message_;
  CreateVolumeRequest other_fs = CreateRequest("pvc-1");
  *other_fs.mutable_volume_capabilities(0) = Mount("btrfs");
  EXPECT_NE(CreateCode(other_fs), StatusCode::OK) << message_;
}

TEST_F(ControllerRpcsTest, ANameOfACoNeverFindsTheVolumeOfAClaim) {
  const PersistentVolume claimed = Claim();  // "pvc-1", by the name of its PersistentVolume
  const std::string id = std::get<CsiPersistentVolumeSource>(claimed.spec.source).volume_handle;
  EXPECT_NE(CreateNamed(claimed.metadata.name), id);
  EXPECT_EQ(volumes_->FindByName(claimed.metadata.name)->id, id);
  EXPECT_EQ(volumes_->List("", 10).volumes.size(), 2u);
}

TEST_F(ControllerRpcsTest, NamesOfTheLongestKindAndWithLineBreaksAreNames) {
  const std::string longest(128, 'n');
  const std::string id = CreateNamed(longest);
  EXPECT_EQ(CreateNamed(longest), id);
  const std::string broken = CreateNamed("a\nb");
  EXPECT_NE(CreateNamed("a\tb"), broken);
  EXPECT_EQ(CreateNamed("a\nb"), broken);
}

TEST_F(ControllerRpcsTest, ARequestThatCannotBeMetIsRefusedAndMakesNothing) {
  CreateVolumeRequest unknown_key = CreateRequest("a");
  (*unknown_key.mutable_parameters())["XXX_FakeKey"] = "1";
  CreateVolumeRequest mutables = CreateRequest("a");
  (*mutables.mutable_mutable_parameters())["XXX_FakeKey"] = "1";
  CreateVolumeRequest both = CreateRequest("a");
  *both.add_volume_capabilities() = Block();
  CreateVolumeRequest many_nodes = CreateRequest("a");
  many_nodes.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(
      Modes::MULTI_NODE_MULTI_WRITER);
  CreateVolumeRequest two_filesystems = CreateRequest("a");
  *two_filesystems.mutable_volume_capabilities(0) = Mount("xfs");
  (*two_filesystems.mutable_parameters())["csi.storage.k8s.io/fstype"] = "ext4";
  for (const CreateVolumeRequest& request :
       {unknown_key, mutables, both, many_nodes, two_filesystems}) {
    EXPECT_EQ(CreateCode(request), StatusCode::INVALID_ARGUMENT) << request.ShortDebugString();
  }
  EXPECT_EQ(CreateCode(CreateRequest("a", int64_t{1} << 60)), StatusCode::RESOURCE_EXHAUSTED);
  CreateVolumeRequest small = CreateRequest("a", 4096);
  small.mutable_capacity_range()->set_limit_bytes(8192);
  EXPECT_EQ(CreateCode(small), StatusCode::OUT_OF_RANGE) << message_;
  CreateVolumeRequest elsewhere = CreateRequest("a");
  (*elsewhere.mutable_accessibility_requirements()
        ->add_requisite()
        ->mutable_segments())[PoolTopologyLabel(kDriver)] = "other";
  EXPECT_EQ(CreateCode(elsewhere), StatusCode::RESOURCE_EXHAUSTED) << message_;
  EXPECT_TRUE(volumes_->List("", 10).volumes.empty());
}

TEST_F(ControllerRpcsTest, WhereNobodyHoldsContentsNoVolumeIsMadeOfOne) {
  CreateVolumeRequest clone = CreateRequest("b");
  clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(CreateNamed("a"));
  EXPECT_EQ(CreateCode(clone), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_EQ(volumes_->List("", 10).volumes.size(), 1u);
}

TEST_F(ControllerRpcsTest, AFailureLeavesNoBackOffForTheNextCall) {
  irreversible_.hold = true;
  EXPECT_EQ(CreateCode(CreateRequest("a")), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_EQ(CreateCode(CreateRequest("a")), StatusCode::FAILED_PRECONDITION) << message_;
}

TEST_F(ControllerRpcsTest, ASecondCallOfTheNameIsAbortedWhileTheFirstGoesOn) {
  CreateVolumeResponse first_response;
  CreateVolumeResponse second_response;
  const auto first = Begin(CreateRequest("a"), &first_response);
  const auto second = Begin(CreateRequest("a"), &second_response);
  scheduler_.RunFor(std::chrono::milliseconds(1));
  EXPECT_TRUE(first->ok()) << first->error_message();
  EXPECT_EQ(second->error_code(), StatusCode::ABORTED);
}

// ---- DeleteVolume -------------------------------------------------------------------------------

TEST_F(ControllerRpcsTest, AVolumeIsDeletedOnceAndAgain) {
  const std::string id = CreateNamed("a");
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_EQ(volumes_->MeaningOf(id), PoolIdMeaning::kNone);
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_NE(CreateNamed("a"), id) << "the handle of a deleted volume does not come back";
}

TEST_F(ControllerRpcsTest, WhatIsNoVolumeIsDeletedAndWhatIsOfAnotherPoolIsNot) {
  EXPECT_EQ(Delete("non-existing-volume-id"), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(UnknownId()), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(kElsewhere), StatusCode::FAILED_PRECONDITION);
}

TEST_F(ControllerRpcsTest, NothingIsDeletedBeforeEachSourceWasLookedInto) {
  const std::string id = CreateNamed("a");
  why_unseen_ = "not yet: /etc/volumed/manifests";
  EXPECT_EQ(Delete(id), StatusCode::UNAVAILABLE);
  EXPECT_THAT(message_, HasSubstr(why_unseen_));
  EXPECT_EQ(volumes_->MeaningOf(id), PoolIdMeaning::kHere);
  why_unseen_.clear();
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

TEST_F(ControllerRpcsTest, AVolumeThatAPodHasOrAPersistentVolumeNamesStays) {
  const PersistentVolume claimed = Claim();
  const std::string of_claim =
      std::get<CsiPersistentVolumeSource>(claimed.spec.source).volume_handle;
  ASSERT_EQ(Stage(claimed), "");
  EXPECT_EQ(Delete(of_claim), StatusCode::FAILED_PRECONDITION);
  const std::string id = CreateNamed("a");
  const StorageName name{.path = id, .driver = kDriver};
  operations_->NameStorage("by-hand", &name);
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("by-hand"));
  EXPECT_EQ(volumes_->List("", 10).volumes.size(), 2u);
}

// ---- ValidateVolumeCapabilities -----------------------------------------------------------------

TEST_F(ControllerRpcsTest, AllCapabilitiesOfAVolumeAreConfirmedOrNone) {
  const std::string id = CreateNamed("a");
  ValidateVolumeCapabilitiesRequest request = ValidateRequest(id);
  *request.add_volume_capabilities() = Mount("ext4");
  (*request.mutable_parameters())["allocation"] = "thin";
  ASSERT_EQ(Validate(request), StatusCode::OK) << message_;
  EXPECT_EQ(validated_.confirmed().volume_capabilities_size(), 2);
  EXPECT_EQ(validated_.confirmed().parameters().size(), 1u);
  *request.add_volume_capabilities() = Block();
  ASSERT_EQ(Validate(request), StatusCode::OK) << message_;
  EXPECT_FALSE(validated_.has_confirmed());
  EXPECT_NE(validated_.message(), "");
}

TEST_F(ControllerRpcsTest, WhatAVolumeIsNotIsNotConfirmedAndNoError) {
  const std::string id = CreateNamed("a");
  ValidateVolumeCapabilitiesRequest other_fs = ValidateRequest(id);
  *other_fs.mutable_volume_capabilities(0) = Mount("xfs");
  ValidateVolumeCapabilitiesRequest bad_flag = ValidateRequest(id);
  bad_flag.mutable_volume_capabilities(0)->mutable_mount()->add_mount_flags("loop");
  ValidateVolumeCapabilitiesRequest many_nodes = ValidateRequest(id);
  many_nodes.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(
      Modes::MULTI_NODE_READER_ONLY);
  ValidateVolumeCapabilitiesRequest thick = ValidateRequest(id);
  (*thick.mutable_parameters())["allocation"] = "thick";
  ValidateVolumeCapabilitiesRequest unknown_key = ValidateRequest(id);
  (*unknown_key.mutable_parameters())["k"] = "v";
  ValidateVolumeCapabilitiesRequest context = ValidateRequest(id);
  (*context.mutable_volume_context())["k"] = "v";
  for (const auto& request : {other_fs, bad_flag, many_nodes, thick, unknown_key, context}) {
    ASSERT_EQ(Validate(request), StatusCode::OK) << message_;
    EXPECT_FALSE(validated_.has_confirmed()) << request.ShortDebugString();
    EXPECT_NE(validated_.message(), "") << request.ShortDebugString();
  }
}

TEST_F(ControllerRpcsTest, AVolumeThatThereIsNotIsNotFound) {
  EXPECT_EQ(Validate(ValidateRequest("no-id")), StatusCode::NOT_FOUND);
  EXPECT_EQ(Validate(ValidateRequest(UnknownId())), StatusCode::NOT_FOUND);
  EXPECT_EQ(Validate(ValidateRequest(kElsewhere)), StatusCode::FAILED_PRECONDITION);
  ControllerGetVolumeRequest get;
  get.set_volume_id("no-id");
  ControllerGetVolumeResponse response;
  EXPECT_EQ(CodeOf(get, &response), StatusCode::NOT_FOUND);
}

// ---- ListVolumes, ControllerGetVolume -----------------------------------------------------------

TEST_F(ControllerRpcsTest, EveryVolumeIsListedOnceOverPages) {
  std::set<std::string> made;
  for (const char* name : {"a", "b", "c", "d", "e"}) made.insert(CreateNamed(name));
  std::set<std::string> listed;
  std::string token;
  int pages = 0;
  do {
    const ListVolumesResponse page = List(2, token);
    EXPECT_LE(page.entries_size(), 2);
    for (const auto& entry : page.entries()) {
      EXPECT_TRUE(listed.insert(entry.volume().volume_id()).second) << "twice";
    }
    token = page.next_token();
  } while (!token.empty() && ++pages < 10);
  EXPECT_EQ(listed, made);
  EXPECT_EQ(List().entries_size(), 5);
  EXPECT_EQ(List().next_token(), "");
}

TEST_F(ControllerRpcsTest, APageGoesOnBehindAVolumeThatIsGoneMeanwhile) {
  for (const char* name : {"a", "b", "c"}) CreateNamed(name);
  const ListVolumesResponse first = List(1);
  ASSERT_EQ(Delete(first.entries(0).volume().volume_id()), StatusCode::OK) << message_;
  EXPECT_EQ(List(0, first.next_token()).entries_size(), 2);
}

TEST_F(ControllerRpcsTest, ATokenThatIsNoneIsAborted) {
  ListVolumesRequest request;
  request.set_starting_token("invalid-token");
  ListVolumesResponse response;
  EXPECT_EQ(CodeOf(request, &response), StatusCode::ABORTED);
}

TEST_F(ControllerRpcsTest, AVolumeIsToldOfWithTheNodesThatHaveIt) {
  const std::string id = CreateNamed("a");
  ControllerGetVolumeRequest request;
  request.set_volume_id(id);
  ControllerGetVolumeResponse response;
  ASSERT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
  EXPECT_EQ(response.volume().volume_id(), id);
  EXPECT_TRUE(response.has_status());
  EXPECT_EQ(response.status().published_node_ids_size(), 0);
  ASSERT_EQ(PublishCode(PublishRequest(id)), StatusCode::OK) << message_;
  ASSERT_EQ(CodeOf(request, &response), StatusCode::OK) << message_;
  ASSERT_EQ(response.status().published_node_ids_size(), 1);
  EXPECT_EQ(response.status().published_node_ids(0), kThisNode);
  EXPECT_EQ(List().entries(0).status().published_node_ids(0), kThisNode);
}

// ---- GetCapacity --------------------------------------------------------------------------------

TEST_F(ControllerRpcsTest, AVolumeTakesItsBytesFromTheCapacity) {
  GetCapacityRequest request;
  *request.add_volume_capabilities() = Mount();
  const int64_t before = Capacity(request);
  ASSERT_GE(before, 16 * kMiB);
  CreateNamed("a");
  EXPECT_LE(Capacity(request), before - 16 * kMiB);
}

TEST_F(ControllerRpcsTest, WhereNoVolumeCanBeThereIsNoCapacity) {
  GetCapacityRequest elsewhere;
  (*elsewhere.mutable_accessible_topology()->mutable_segments())[PoolTopologyLabel(kDriver)] =
      "other";
  EXPECT_EQ(Capacity(elsewhere), 0);
  GetCapacityRequest many_nodes;
  *many_nodes.add_volume_capabilities() = Mount();
  many_nodes.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(
      Modes::MULTI_NODE_MULTI_WRITER);
  EXPECT_EQ(Capacity(many_nodes), 0);
  GetCapacityRequest other_pool;
  (*other_pool.mutable_parameters())["pool"] = "slow";
  EXPECT_EQ(Capacity(other_pool), 0);
  GetCapacityRequest here;
  (*here.mutable_accessible_topology()->mutable_segments())[PoolTopologyLabel(kDriver)] = kThisNode;
  EXPECT_GT(Capacity(here), 0);
  GetCapacityRequest unknown_key;
  (*unknown_key.mutable_parameters())["k"] = "v";
  GetCapacityResponse response;
  EXPECT_EQ(CodeOf(unknown_key, &response), StatusCode::INVALID_ARGUMENT);
}

class OnBtrfsTest : public ControllerFixture {
 protected:
  OnBtrfsTest() : ControllerFixture("btrfs") {}
};

// It was promised that its blocks are there, and its writes failed when others had filled the disk.
TEST_F(OnBtrfsTest, AThickVolumeWasMadeWhereNoBlockIsWrittenInItsPlace) {
  CreateVolumeRequest request = CreateRequest("pvc-1");
  (*request.mutable_parameters())["allocation"] = "thick";
  EXPECT_EQ(CreateCode(request), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("lies on a btrfs"));
  (*request.mutable_parameters())["allocation"] = "thin";
  EXPECT_EQ(CreateCode(request), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
