// What a scrape says of pods that come and go.
#include "agent/agent_metrics.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fakes/must.h"
#include "unit/records/temp_directory.h"
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

class AgentMetricsTest : public ManagerTest {
 protected:
  AgentMetricsTest() {
    WorkerKernelOptions of_workers;
    of_workers.worker_path = "/bin/true";  // nobody needs them
    workers_ = Must(WorkerKernel::Create(of_workers, real_clock_));
    SqliteRecordStoreOptions of_records;
    of_records.directory = temp_.path() + "/records";
    records_ = Must(SqliteRecordStore::Open(of_records));
    StartAgent();
    metrics_ = std::make_unique<AgentMetrics>(*workers_, *records_, recovery_, agent_->catalog,
                                              scheduler(), families);
    metrics_->Watch(manager());
  }
  ~AgentMetricsTest() override { agent_.reset(); }  // its tasks have the metrics

  std::string Scrape() {
    bool is_done = false;
    while (!is_done) is_done = metrics_->Collect({}, {});
    return metrics_->Write();
  }

  RealClock real_clock_;
  TempDirectory temp_;
  RecoveryGate recovery_{store, clock};
  std::unique_ptr<WorkerKernel> workers_;
  std::unique_ptr<SqliteRecordStore> records_;
  std::unique_ptr<AgentMetrics> metrics_;
};

TEST_F(AgentMetricsTest, PodsAreCountedByTheirPhaseUntilTheyGo) {
  Deliver(PodManifest("a", {kData}) + PodManifest("b", {kData}));
  const std::string both = Scrape();
  EXPECT_NE(both.find("volumed_pods{phase=\"Ready\"} 2\n"), std::string::npos) << both;
  Deliver(PodManifest("b", {kData}));
  const std::string one = Scrape();
  EXPECT_NE(one.find("volumed_pods{phase=\"Ready\"} 1\n"), std::string::npos) << one;
  Deliver("");
  const std::string none = Scrape();
  EXPECT_EQ(none.find("phase=\"Ready\""), std::string::npos) << none;
}

}  // namespace
}  // namespace volumed
