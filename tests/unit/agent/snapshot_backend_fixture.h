// SnapshotBackendTest: what the calls of the control API about pools and snapshots work on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/snapshot_backend.h"
#include "fakes/fake_irreversible_steps.h"
#include "unit/agent/control_backend_fixture.h"
#include "unit/snapshot/fake_snapshots.h"
#include "volumemanager/record_writer.h"

namespace volumed {

class SnapshotBackendTest : public ControlBackendTest {
 protected:
  explicit SnapshotBackendTest(std::vector<PoolSettings> pools = {}) {
    std::vector<std::unique_ptr<Pool>> made;
    for (PoolSettings& pool : pools) {
      made.push_back(std::make_unique<Pool>(std::move(pool), kernel, store, clock, agent_->log));
    }
    volumes_ = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{store, kernel, clock, agent_->log, steps_}, std::move(made));
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
        {*volumes_, maker_.driver()}, maker_, *objects_, observers_, operations()});
    backend_->snapshots = snapshots_.get();
  }

  FakeIrreversibleSteps steps_;
  std::unique_ptr<PoolVolumes> volumes_;
  FakeSnapshots maker_;
  SnapshotObservers observers_{maker_};
  std::unique_ptr<RecordWriter> records_;
  std::unique_ptr<SnapshotObjects> objects_;
  std::unique_ptr<SnapshotBackend> snapshots_;
};

}  // namespace volumed
