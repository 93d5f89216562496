// The table of the control API: each call has one row, with the role that it needs.
#include "agent/control_service.h"

#include <gtest/gtest.h>

#include "unit/agent/control_backend_fixture.h"

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

class ControlServiceTest : public ControlBackendTest {
 protected:
  std::string Problems(const std::vector<ControlService::AddRows>& groups) {
    const Status checked = ControlService(*backend_, PeerRole::kRead, groups).Check();
    return checked.ok() ? "" : checked.error().message();
  }
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
  const std::string problems =
      Problems({AddObjectCalls, AddPodCalls, AddAgentCalls, AddDriverCalls, AddPoolCalls,
                AddSnapshotCalls, AddImportCalls, AddMisfits});
  for (const char* part : {"the row NoSuchCall fits no call", "the row GetPods fits no call",
                           "the call GetStatus has two rows"}) {
    EXPECT_NE(problems.find(part), std::string::npos) << problems;
  }
}

}  // namespace
}  // namespace volumed
