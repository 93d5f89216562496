// What a program that makes backups is told of snapshots: streams, of which a test takes each
// message when it wants to.
#include "csidriver/metadata_rpcs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "unit/csidriver/snapshot_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::BlockMetadata;
using ::csi::v1::GetMetadataAllocatedRequest;
using ::csi::v1::GetMetadataAllocatedResponse;
using ::csi::v1::GetMetadataDeltaRequest;
using ::csi::v1::GetMetadataDeltaResponse;
using grpc::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using MetadataPlugin = ::csi::v1::PluginCapability::Service;

// What a client has got of a stream, and what it has not taken yet.
template <typename Response>
struct ReadStream {
  std::vector<Response> messages;
  CsiSent sent;
  bool takes_all = true;
  bool is_gone = false;
  int times_ended = 0;
  grpc::Status status{StatusCode::UNKNOWN, "it has not ended"};

  void Take() { std::exchange(sent, nullptr)(true); }
  // Its connection has ended.
  void Break() {
    is_gone = true;
    if (sent) std::exchange(sent, nullptr)(false);
  }
  // "2+3": three blocks from the second on.
  std::vector<std::string> Ranges() const {
    std::vector<std::string> ranges;
    for (const Response& message : messages) {
      for (const BlockMetadata& block : message.block_metadata()) {
        ranges.push_back(std::to_string(block.byte_offset() / kPoolBlockBytes) + "+" +
                         std::to_string(block.size_bytes() / kPoolBlockBytes));
      }
    }
    return ranges;
  }
};

class MetadataRpcsTest : public SnapshotFixture {
 protected:
  MetadataRpcsTest() { AddMetadata(); }
  void AddMetadata() {
    AddMetadataRpcs(*handlers_, {scheduler_, *engine_, *volumes_});
    ASSERT_TRUE(handlers_->Check().ok());
  }
  void WriteTo(const std::string& volume, int64_t block, int64_t blocks = 1) {
    node_.WriteBlocks(PoolWorld::ImageOf(volume), block * kPoolBlockBytes,
                      blocks * kPoolBlockBytes);
  }
  std::string CutOf(const std::string& volume) {
    return Cut("cut " + std::to_string(++cuts_), volume).snapshot_id();
  }

  template <typename Response, typename Request>
  std::shared_ptr<ReadStream<Response>> Open(const Request& request, bool takes_all = true) {
    auto read = std::make_shared<ReadStream<Response>>();
    read->takes_all = takes_all;
    CsiArrival arrival;
    arrival.method = CsiMethodOf(Request::descriptor());
    arrival.peer = {0, 1};
    arrival.read = [request](google::protobuf::Message& message) {
      message.CopyFrom(request);
      return true;
    };
    arrival.send = [read](const google::protobuf::Message& message, CsiSent sent) {
      EXPECT_TRUE(read->sent == nullptr) << "a message was sent before the last one was taken";
      if (read->is_gone || read->times_ended > 0) return sent(false);
      read->messages.emplace_back().CopyFrom(message);
      if (read->takes_all) return sent(true);
      read->sent = std::move(sent);
    };
    arrival.is_gone = [read] { return read->is_gone; };
    arrival.answer = [read](const grpc::Status& status, const google::protobuf::Message&) {
      ++read->times_ended;
      read->status = status;
      // gRPC gives back what is on its way.
      if (read->sent) std::exchange(read->sent, nullptr)(false);
    };
    calls_->Begin(*handlers_->Find(*arrival.method), std::move(arrival));
    Run();
    return read;
  }
  void Run() { scheduler_.RunFor(std::chrono::milliseconds(1)); }

  static GetMetadataDeltaRequest DeltaRequest(const std::string& base, const std::string& target,
                                              int64_t from = 0, int32_t most = 0) {
    GetMetadataDeltaRequest request;
    request.set_base_snapshot_id(base);
    request.set_target_snapshot_id(target);
    request.set_starting_offset(from);
    request.set_max_results(most);
    return request;
  }
  static GetMetadataAllocatedRequest AllocatedRequest(const std::string& id, int64_t from = 0) {
    GetMetadataAllocatedRequest request;
    request.set_snapshot_id(id);
    request.set_starting_offset(from);
    return request;
  }
  auto Delta(const GetMetadataDeltaRequest& request, bool takes_all = true) {
    return Open<GetMetadataDeltaResponse>(request, takes_all);
  }
  auto Allocated(const GetMetadataAllocatedRequest& request) {
    return Open<GetMetadataAllocatedResponse>(request);
  }
  StatusCode DeltaCode(const std::string& base, const std::string& target, int64_t from = 0,
                       int32_t most = 0) {
    const auto read = Delta(DeltaRequest(base, target, from, most));
    message_ = read->status.error_message();
    return read->status.error_code();
  }
  // Two snapshots, between which every second block of so many was written.
  std::pair<std::string, std::string> CutsWith(int64_t blocks) {
    const std::string volume = CreateNamed("a");
    const std::string base = CutOf(volume);
    for (int64_t i = 0; i < blocks; ++i) WriteTo(volume, 2 * i);
    return {base, CutOf(volume)};
  }

  int cuts_ = 0;
};

TEST_F(MetadataRpcsTest, EachProfileAndLevelAnnouncesTheService) {
  for (const CsiProfile profile : {CsiProfile::kCentral, CsiProfile::kNode}) {
    for (const CsiServeLevel level : {CsiServeLevel::k1_12, CsiServeLevel::k1_13}) {
      RestartSnapshots(profile, level);
      EXPECT_THAT(handlers_->Capabilities().plugin,
                  Not(Contains(MetadataPlugin::SNAPSHOT_METADATA_SERVICE)));
      AddMetadata();
      EXPECT_THAT(handlers_->Capabilities().plugin,
                  Contains(MetadataPlugin::SNAPSHOT_METADATA_SERVICE))
          << CsiProfileName(profile) << " " << CsiServeLevelName(level);
    }
  }
}

TEST_F(MetadataRpcsTest, TheDeltaIsWhatWasWrittenBetweenTheTwo) {
  const std::string volume = CreateNamed("a");
  WriteTo(volume, 0, 20);
  const std::string base = CutOf(volume);
  WriteTo(volume, 3);
  WriteTo(volume, 100, 5);
  const std::string target = CutOf(volume);
  const auto read = Delta(DeltaRequest(base, target));
  ASSERT_TRUE(read->status.ok()) << read->status.error_message();
  EXPECT_EQ(read->times_ended, 1);
  EXPECT_THAT(read->Ranges(), ElementsAre("3+1", "100+5"));
  ASSERT_THAT(read->messages, SizeIs(1));
  EXPECT_EQ(read->messages[0].block_metadata_type(), ::csi::v1::VARIABLE_LENGTH);
  EXPECT_EQ(read->messages[0].volume_capacity_bytes(), 16 * kMiB);
}

TEST_F(MetadataRpcsTest, WhatIsAllocatedIsToldOfOneSnapshot) {
  const std::string volume = CreateNamed("a");
  WriteTo(volume, 4, 2);
  const std::string id = CutOf(volume);
  const auto read = Allocated(AllocatedRequest(id));
  ASSERT_TRUE(read->status.ok()) << read->status.error_message();
  EXPECT_THAT(read->Ranges(), ElementsAre("4+2"));
}

TEST_F(MetadataRpcsTest, ABlockVolumeHasADeltaLikeOneWithFiles) {
  const std::string volume = CreateBlock("raw");
  const std::string base = CutOf(volume);
  WriteTo(volume, 7);
  EXPECT_THAT(Delta(DeltaRequest(base, CutOf(volume)))->Ranges(), ElementsAre("7+1"));
}

TEST_F(MetadataRpcsTest, AStreamWithoutRangesSaysHowLargeTheVolumeIs) {
  const std::string volume = CreateNamed("a");
  const std::string base = CutOf(volume);
  const auto read = Delta(DeltaRequest(base, CutOf(volume)));
  ASSERT_TRUE(read->status.ok()) << read->status.error_message();
  EXPECT_THAT(read->Ranges(), IsEmpty());
  ASSERT_THAT(read->messages, SizeIs(1));
  EXPECT_EQ(read->messages[0].volume_capacity_bytes(), 16 * kMiB);
}

TEST_F(MetadataRpcsTest, AMessageHasNoMoreRangesThanTheCallerTakes) {
  const auto [base, target] = CutsWith(25);
  const auto whole = Delta(DeltaRequest(base, target));
  ASSERT_THAT(whole->Ranges(), SizeIs(25));
  for (const int32_t most : {1, 4, 24, 25, 26, 1'000'000}) {
    const auto read = Delta(DeltaRequest(base, target, 0, most));
    ASSERT_TRUE(read->status.ok()) << read->status.error_message();
    EXPECT_EQ(read->Ranges(), whole->Ranges()) << most;
    const int32_t in_one = std::min(most, 25);
    EXPECT_THAT(read->messages, SizeIs((25 + in_one - 1) / in_one)) << most;
    for (const GetMetadataDeltaResponse& message : read->messages) {
      EXPECT_LE(message.block_metadata_size(), most);
      EXPECT_EQ(message.volume_capacity_bytes(), 16 * kMiB);
      EXPECT_EQ(message.block_metadata_type(), ::csi::v1::VARIABLE_LENGTH);
    }
  }
}

TEST_F(MetadataRpcsTest, AStreamIsGoneOnWithFromWhereverItEnded) {
  const auto [base, target] = CutsWith(8);
  const std::vector<std::string> whole = Delta(DeltaRequest(base, target))->Ranges();
  ASSERT_THAT(whole, SizeIs(8));
  for (size_t taken = 0; taken <= whole.size(); ++taken) {
    // Behind the last byte of the last range that the caller has.
    const int64_t from = taken == 0 ? 0 : (2 * static_cast<int64_t>(taken) - 1) * kPoolBlockBytes;
    const auto rest = Delta(DeltaRequest(base, target, from, 3));
    ASSERT_TRUE(rest->status.ok()) << rest->status.error_message();
    EXPECT_EQ(rest->Ranges(), std::vector<std::string>(
                                  whole.begin() + static_cast<std::ptrdiff_t>(taken), whole.end()))
        << taken;
  }
}

TEST_F(MetadataRpcsTest, ARequestThatIsNoneIsRefusedByTheRulesOfAllRequests) {
  const std::string volume = CreateNamed("a");
  const std::string id = CutOf(volume);
  EXPECT_EQ(DeltaCode("", id), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeltaCode(id, ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeltaCode(id, id, -1), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeltaCode(id, id, 0, -1), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeltaCode(std::string(129, 's'), id), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Allocated(AllocatedRequest(""))->status.error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(MetadataRpcsTest, EachErrorHasTheCodeOfTheSpecification) {
  const std::string volume = CreateNamed("a");
  const std::string id = CutOf(volume);
  const std::string unknown = NewIdOf(*volumes_, PoolObject::kCut);
  EXPECT_EQ(DeltaCode(unknown, id), StatusCode::NOT_FOUND) << message_;
  EXPECT_EQ(DeltaCode(id, unknown), StatusCode::NOT_FOUND) << message_;
  EXPECT_EQ(DeltaCode(id, volume), StatusCode::NOT_FOUND) << message_;
  EXPECT_EQ(DeltaCode(id, id, 16 * kMiB), StatusCode::OK) << message_;
  EXPECT_EQ(DeltaCode(id, id, 16 * kMiB + 1), StatusCode::OUT_OF_RANGE) << message_;
  EXPECT_EQ(DeltaCode(id, CutOf(CreateNamed("b"))), StatusCode::INVALID_ARGUMENT) << message_;
  EXPECT_EQ(DeltaCode(id, kCutOfAnotherPool), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_EQ(Allocated(AllocatedRequest(unknown))->status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Allocated(AllocatedRequest(id, 16 * kMiB + 1))->status.error_code(),
            StatusCode::OUT_OF_RANGE);
}

TEST_F(MetadataRpcsTest, OfCopiesAndOfWhatIsNotReadyNothingIsSaid) {
  ::csi::v1::CreateVolumeRequest request = CreateRequest("copied");
  (*request.mutable_parameters())["snapshots"] = "copy";
  const std::string volume = Create(request).volume_id();
  const std::string first = CutOf(volume);
  node_.CutOffNext("CopyFile");
  const std::string second = CutOf(volume);
  EXPECT_EQ(Allocated(AllocatedRequest(second))->status.error_code(),
            StatusCode::FAILED_PRECONDITION);
  scheduler_.RunFor(std::chrono::minutes(1));
  EXPECT_EQ(Allocated(AllocatedRequest(second))->status.error_code(), StatusCode::OK);
  EXPECT_EQ(DeltaCode(first, second), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is a copy"));
}

// ---- callers that take their time ---------------------------------------------------------------

TEST_F(MetadataRpcsTest, NothingIsLookedAtBeforeTheLastMessageWasTaken) {
  const auto [base, target] = CutsWith(6);
  int lists = 0;
  node_.SetCallHook([&lists](const AnyRequest& request) {
    lists += std::holds_alternative<ListExtents>(request);
  });
  const auto read = Delta(DeltaRequest(base, target, 0, 2), /*takes_all=*/false);
  ASSERT_THAT(read->messages, SizeIs(1));
  const int of_one = lists;
  scheduler_.RunFor(std::chrono::seconds(10));
  EXPECT_EQ(lists, of_one);
  ASSERT_THAT(read->messages, SizeIs(1));
  for (size_t taken = 1; taken <= 3; ++taken) {
    read->Take();
    Run();
  }
  EXPECT_TRUE(read->status.ok()) << read->status.error_message();
  EXPECT_THAT(read->Ranges(), SizeIs(6));
}

// A message of one range took as long as one of thousands, and the pool's other calls waited for
// it.
TEST_F(MetadataRpcsTest, EachSmallMessageLookedAtAWholeWindowAnew) {
  const auto [base, target] = CutsWith(25);
  int looks = 0;
  node_.SetCallHook([&looks](const AnyRequest&) { ++looks; });
  const auto whole = Delta(DeltaRequest(base, target));
  const int of_whole = std::exchange(looks, 0);
  const auto read = Delta(DeltaRequest(base, target, 0, 1));
  ASSERT_TRUE(read->status.ok()) << read->status.error_message();
  EXPECT_THAT(read->messages, SizeIs(25));
  EXPECT_EQ(read->Ranges(), whole->Ranges());
  EXPECT_GT(of_whole, 0);
  EXPECT_EQ(looks, of_whole);
}

TEST_F(MetadataRpcsTest, ACallerThatTakesNothingForAMinuteIsLeft) {
  const auto [base, target] = CutsWith(6);
  const auto read = Delta(DeltaRequest(base, target, 0, 2), /*takes_all=*/false);
  scheduler_.RunFor(std::chrono::seconds(59));
  EXPECT_EQ(read->times_ended, 0);
  scheduler_.RunFor(std::chrono::seconds(2));
  EXPECT_EQ(read->times_ended, 1);
  EXPECT_EQ(read->status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(read->messages, SizeIs(1));
  EXPECT_EQ(calls_->under_way(), 0U);
}

TEST_F(MetadataRpcsTest, AStreamEndsWithItsCaller) {
  const auto [base, target] = CutsWith(6);
  const auto read = Delta(DeltaRequest(base, target, 0, 2), /*takes_all=*/false);
  read->Break();
  Run();
  EXPECT_EQ(read->times_ended, 1);
  EXPECT_THAT(read->messages, SizeIs(1));
  EXPECT_EQ(calls_->under_way(), 0U);
}

TEST_F(MetadataRpcsTest, ASlowCallerKeepsNobodyFromDeletingASnapshotAndHearsOfIt) {
  const auto [base, target] = CutsWith(6);
  const auto read = Delta(DeltaRequest(base, target, 0, 2), /*takes_all=*/false);
  EXPECT_EQ(DeleteCut(base), StatusCode::OK) << message_;
  read->Take();
  Run();
  EXPECT_EQ(read->status.error_code(), StatusCode::NOT_FOUND) << read->status.error_message();
  EXPECT_THAT(read->messages, SizeIs(1));
}

TEST_F(MetadataRpcsTest, OnlySoManyStreamsGoOnAtATime) {
  const auto [base, target] = CutsWith(6);
  std::vector<std::shared_ptr<ReadStream<GetMetadataDeltaResponse>>> open;
  for (size_t i = 0; i < CsiLimits().streams; ++i) {
    open.push_back(Delta(DeltaRequest(base, target, 0, 2), /*takes_all=*/false));
  }
  EXPECT_EQ(DeltaCode(base, target), StatusCode::UNAVAILABLE);
  EXPECT_THAT(message_, HasSubstr("answer by a stream"));
  EXPECT_EQ(GetCut(base), StatusCode::OK) << "other calls go on";
  open.front()->Break();
  Run();
  EXPECT_EQ(DeltaCode(base, target), StatusCode::OK) << message_;
  for (const auto& read : open) read->Break();
  Run();
}

TEST_F(MetadataRpcsTest, NoSecretOfARequestIsInTheLog) {
  const std::string id = CutOf(CreateNamed("a"));
  GetMetadataAllocatedRequest request = AllocatedRequest(id);
  (*request.mutable_secrets())["password"] = "CANARY-1";
  EXPECT_TRUE(Allocated(request)->status.ok());
  EXPECT_EQ(log_.Count("CANARY"), 0);
}

}  // namespace
}  // namespace volumed
