// When a watch of a snapshot gets another answer.
#include "agent/snapshot_stream.h"

#include <gtest/gtest.h>

#include "agent/snapshot_backend.h"
#include "fakes/fake_irreversible_steps.h"
#include "unit/agent/control_backend_fixture.h"
#include "unit/snapshot/fake_snapshots.h"
#include "volumemanager/record_writer.h"

namespace volumed {
namespace {

class SnapshotStreamTest : public ControlBackendTest {
 protected:
  SnapshotStreamTest() {
    SnapshotObjects::Hooks hooks;
    hooks.volume_of = [](const ObjectKey&) { return std::string(); };
    hooks.why_not_yet = [] { return std::string(); };
    hooks.uid_on_record = [](const ObjectKey&) { return true; };
    hooks.deleted_since = [](const ObjectKey&) { return std::optional<int64_t>(); };
    hooks.let_go = [](const ObjectKey&, const std::string&) {};
    hooks.delete_object = [](const ObjectKey&) {};
    records_ = std::make_unique<RecordWriter>(scheduler(), store);
    objects_ = std::make_unique<SnapshotObjects>(
        SnapshotObjects::Parts{
            {scheduler(), *records_, agent_->log}, agent_->catalog, maker_, events_},
        hooks);
    snapshots_.reset(new SnapshotBackend{
        {volumes_, maker_.driver()}, maker_, *objects_, observers_, operations()});
    backend_->snapshots = snapshots_.get();
    maker_.Add("s-1", "hand:a", SnapshotPhase::kProcessing);
  }
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

  FakeIrreversibleSteps steps_;
  PoolVolumes volumes_{{store, kernel, clock, agent_->log, steps_}, {}};
  FakeSnapshots maker_;
  SnapshotObservers observers_{maker_};
  std::unique_ptr<RecordWriter> records_;
  std::unique_ptr<SnapshotObjects> objects_;
  std::unique_ptr<SnapshotBackend> snapshots_;
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

}  // namespace
}  // namespace volumed
