// A worker whose agent has stopped.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "fakes/must.h"
#include "os/worker_codec.h"
#include "os/worker_process.h"
#include "places.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A worker with a tool that ignores everything, and without an agent.
std::unique_ptr<WorkerProcess> StartOrphan(std::optional<Duration> time_left) {
  const RunProgram program{{"/bin/sh", "-c", "trap '' TERM INT HUP PIPE; sleep 600"}};
  auto worker = Must(SpawnWorker({VolumedWorkerPath()}));
  const std::string request = EncodeRequest(program, CallOptions(), time_left);
  EXPECT_TRUE(worker->channel().Send(MessageKind::kBody, request).ok());
  worker->channel().Close();
  return worker;
}

// One was alive after 20 minutes.
TEST(WorkerOrphanTest, AWorkerAndItsToolEndPastTheDeadlineThoughTheAgentIsGone) {
  const auto bounded = StartOrphan(milliseconds(100));
  EXPECT_FALSE(bounded->WaitForDeath(seconds(1))) << "its time and the grace are not over";
  EXPECT_TRUE(bounded->WaitForDeath(seconds(10)));
  EXPECT_EQ(bounded->how_it_ended(), "killed by signal 9");
}

TEST(WorkerOrphanTest, WhatMustFinishIsNeverKilled) {
  const auto must_finish = StartOrphan(std::nullopt);
  EXPECT_FALSE(must_finish->WaitForDeath(seconds(4)));
  must_finish->Kill();
  EXPECT_TRUE(must_finish->WaitForDeath(seconds(10)));
}

}  // namespace
}  // namespace volumed
