// The table of the control API: each call has one row, with the role that it needs.
#include "agent/control_service.h"

#include <gtest/gtest.h>

#include "unit/volumemanager/manager_fixture.h"
#include "volumehost/recovery_gate.h"

namespace volumed {
namespace {

Status Nothing(ControlBackend& /*backend*/, const v1::GetStatusRequest& /*request*/,
               v1::GetStatusResponse* /*response*/) {
  return OkStatus();
}

void AddMisfits(ControlService& service) {
  service.OnControl("NoSuchCall", PeerRole::kRead, Nothing);
  service.OnControl("GetPods", PeerRole::kRead, Nothing);
  service.OnControl("GetStatus", PeerRole::kRead, Nothing);
}

class ControlServiceTest : public ManagerTest {
 protected:
  ControlServiceTest() {
    StartAgent();
    losses_ = std::make_unique<SourceLosses>(agent_->catalog, manager(), std::set<std::string>());
    directory_ = std::make_unique<ObjectDirectory>("/nowhere", NodeName("n1"), scheduler(), "1");
    backend_.reset(new ControlBackend{.scheduler = scheduler(),
                                      .log = agent_->log,
                                      .catalog = agent_->catalog,
                                      .directory = *directory_,
                                      .manager = manager(),
                                      .events = events_,
                                      .operations = operations(),
                                      .kernel = kernel,
                                      .node = NodeName("n1"),
                                      .features = {},
                                      .recovery = recovery_,
                                      .accept_records = {},
                                      .accept_volume = {},
                                      .losses = *losses_,
                                      .unread_files = {},
                                      .accept_source = {},
                                      .forget_source = {},
                                      .status = {},
                                      .stuck = {}});
  }

  std::string Problems(const std::vector<ControlService::AddRows>& groups) {
    const Status checked = ControlService(*backend_, PeerRole::kRead, groups).Check();
    return checked.ok() ? "" : checked.error().message();
  }

  EventLog events_{clock};
  RecoveryGate recovery_{store, clock};
  std::unique_ptr<SourceLosses> losses_;
  std::unique_ptr<ObjectDirectory> directory_;
  std::unique_ptr<ControlBackend> backend_;
};

TEST_F(ControlServiceTest, EveryCallOfTheApiHasOneRow) {
  const Status checked = ControlService(*backend_, PeerRole::kAdmin).Check();
  EXPECT_TRUE(checked.ok()) << checked.error().ToString();
}

TEST_F(ControlServiceTest, ACallWithoutARowIsNamedAndEndsTheStart) {
  const std::string problems = Problems({AddPodCalls, AddAgentCalls});
  EXPECT_NE(problems.find("the call Apply has no row"), std::string::npos) << problems;
  EXPECT_EQ(problems.find("the call GetPods has no row"), std::string::npos) << problems;
}

TEST_F(ControlServiceTest, ARowThatFitsNoCallOrIsOneTooManyIsNamed) {
  const std::string problems = Problems({AddObjectCalls, AddPodCalls, AddAgentCalls, AddMisfits});
  for (const char* part : {"the row NoSuchCall fits no call", "the row GetPods fits no call",
                           "the call GetStatus has two rows"}) {
    EXPECT_NE(problems.find(part), std::string::npos) << problems;
  }
}

}  // namespace
}  // namespace volumed
