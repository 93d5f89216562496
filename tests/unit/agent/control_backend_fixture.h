// ControlBackendTest: what the calls of the control API work on, around the volume manager of a
// test.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "agent/control_service.h"
#include "unit/volumemanager/manager_fixture.h"
#include "volumehost/recovery_gate.h"

namespace volumed {

class ControlBackendTest : public ManagerTest {
 protected:
  ControlBackendTest() {
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

  EventLog events_{clock};
  RecoveryGate recovery_{store, clock};
  std::unique_ptr<SourceLosses> losses_;
  std::unique_ptr<ObjectDirectory> directory_;
  std::unique_ptr<ControlBackend> backend_;
};

}  // namespace volumed
