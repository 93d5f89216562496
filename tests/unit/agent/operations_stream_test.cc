// When a watch of operations gets another answer.
#include "agent/operations_stream.h"

#include <gtest/gtest.h>

#include "unit/agent/control_backend_fixture.h"

namespace volumed {
namespace {

class OperationsStreamTest : public ControlBackendTest {
 protected:
  OperationsStreamTest() {
    backend_->stuck = [this] {
      ++answers_;  // each answer asks for what is stuck once
      return stuck_;
    };
  }
  // No client is bound to the stream: what it writes is taken by Taken() alone.
  void Watch(const v1::WatchOperationsRequest& request = {}) {
    stream_ = OperationsStream::Start(std::make_shared<OperationsStream>(*backend_, request));
    Settle();
  }
  void Taken() {
    stream_->OnWriteDone(true);
    Settle();
  }
  void EndWatch() {
    stream_->OnDone();
    Settle();
  }

  int answers_ = 0;
  std::vector<StuckOperation> stuck_;
  grpc::ServerWriteReactor<v1::WatchOperationsResponse>* stream_ = nullptr;
};

TEST_F(OperationsStreamTest, WhileNothingRunsAndNothingChangesThereIsOneAnswer) {
  Watch();
  EXPECT_EQ(answers_, 1);
  Taken();
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(answers_, 1);
  EndWatch();
}

TEST_F(OperationsStreamTest, WhatIsStuckIsToldAgainAfterEachInterval) {
  stuck_.resize(1);
  v1::WatchOperationsRequest request;
  request.set_interval_ms(2000);
  Watch(request);
  Taken();
  Pass(std::chrono::milliseconds(1900));
  EXPECT_EQ(answers_, 1);
  Pass(std::chrono::milliseconds(200));
  EXPECT_EQ(answers_, 2);
  Taken();
  Pass(std::chrono::seconds(2));
  EXPECT_EQ(answers_, 3);
  EndWatch();
}

TEST_F(OperationsStreamTest, AChangeIsToldOnceTheIntervalIsOver) {
  v1::WatchOperationsRequest request;
  request.set_interval_ms(60'000);
  Watch(request);
  Taken();
  Deliver(PodManifest("a", {kData}));
  EXPECT_EQ(answers_, 1);
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(answers_, 2);
  EndWatch();
}

}  // namespace
}  // namespace volumed
