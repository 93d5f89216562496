// When a watch of a snapshot gets another answer.
#include "agent/snapshot_stream.h"

#include <gtest/gtest.h>

#include <optional>

#include "unit/agent/snapshot_backend_fixture.h"

namespace volumed {
namespace {

class SnapshotStreamTest : public SnapshotBackendTest {
 protected:
  SnapshotStreamTest() { maker_.Add("s-1", "hand:a", SnapshotPhase::kProcessing); }
  void Watch(const std::string& id, int64_t interval_ms = 0) {
    v1::WatchSnapshotRequest request;
    request.set_id(id);
    request.set_interval_ms(interval_ms);
    stream_ = SnapshotStream::Start(std::make_shared<SnapshotStream>(*backend_, request));
    Settle();
    maker_.finds = 0;  // from now on one for each answer
  }
  void Taken() {
    stream_->OnWriteDone(true);
    Settle();
  }
  void EndWatch() {
    stream_->OnDone();
    Settle();
  }

  grpc::ServerWriteReactor<v1::WatchSnapshotResponse>* stream_ = nullptr;
};

TEST_F(SnapshotStreamTest, WhileBytesAreCopiedThereIsAnAnswerInEachInterval) {
  Watch("s-1", 2000);
  Taken();
  Pass(std::chrono::milliseconds(1900));
  EXPECT_EQ(maker_.finds, 0);
  Pass(std::chrono::milliseconds(200));
  EXPECT_EQ(maker_.finds, 1);
  EndWatch();
}

TEST_F(SnapshotStreamTest, AChangeIsToldAtOnceAndThatOfAnotherSnapshotIsNot) {
  maker_.Add("s-2", "hand:b", SnapshotPhase::kProcessing);
  Watch("s-1", 60'000);
  Taken();
  maker_.SetPhase("s-2", SnapshotPhase::kReady);
  Settle();
  EXPECT_EQ(maker_.finds, 0);
  maker_.SetPhase("s-1", SnapshotPhase::kReady);
  Settle();
  EXPECT_EQ(maker_.finds, 1);
  EndWatch();
}

TEST_F(SnapshotStreamTest, OnceNothingGoesOnThereIsNoFurtherAnswer) {
  maker_.SetPhase("s-1", SnapshotPhase::kReady);
  Watch("s-1", 1000);
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(maker_.finds, 0);
  EndWatch();
}

// A text that is the id of none was "deleted", and its snapshot stayed.
TEST_F(SnapshotStreamTest, WhatIsNoIdOfASnapshotWasSaidToBeDeleted) {
  const auto deleted = [this](const std::string& id) {
    std::optional<Status> told;
    DeleteSnapshotByHand(*snapshots_, id, false, [&told](const Status& done) { told = done; });
    Settle();
    return told.value();
  };
  for (const std::string& name : {std::string("a"), std::string("hand:a")}) {
    const Status by_name = deleted(name);
    ASSERT_FALSE(by_name.ok());
    EXPECT_EQ(by_name.error().code(), Code::kNotFound);
    EXPECT_EQ(by_name.error().message(),
              "there is no snapshot " + name + "; the one that has this name goes by its id, s-1");
  }
  EXPECT_EQ(deleted("s-9").error().message(), "there is no snapshot s-9");
  maker_.fail_next = Error::NotApplied(Code::kFailedPrecondition, "it may be another node's");
  EXPECT_EQ(deleted("s-9").error().code(), Code::kFailedPrecondition) << "that is said instead";
  EXPECT_EQ(maker_.rows.size(), 1u);
  EXPECT_TRUE(deleted("s-1").ok());
  EXPECT_EQ(deleted("s-1").error().code(), Code::kNotFound) << "it is gone";
}

}  // namespace
}  // namespace volumed
