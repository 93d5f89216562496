// CrashAgent: the agent as src/agent/agent.cc puts it together, on the fakes of a CrashWorld. What
// a process has and loses with its end is in here and nowhere else.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/catalog_host_objects.h"
#include "agent/node_attach_detach_host.h"
#include "base/log.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_device_finder.h"
#include "fakes/list_mirror.h"
#include "kube/object_catalog.h"
#include "metrics/exported_families.h"
#include "operation/node_volume_operations.h"
#include "operation/record_format_intents.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "recycler/local_recycler_pods.h"
#include "unit/crash/crash_agent_pools.h"
#include "unit/crash/crash_applied.h"
#include "unit/crash/crash_csi_client.h"
#include "unit/crash/crash_harness.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/overlapping_record_keeper.h"
#include "unit/crash/overlapping_scheduler.h"
#include "unit/crash/world_host.h"
#include "volumehost/event_log.h"
#include "volumehost/node_facts.h"
#include "volumehost/node_kubelet_host.h"
#include "volumehost/recovery_gate.h"
#include "volumemanager/volume_manager.h"
#include "volumemanager/volume_manager_settings.h"

namespace volumed {

// Holds back all irreversible steps but some, which is a mistake.
class LeakyGate final : public IrreversibleSteps {
 public:
  LeakyGate(IrreversibleSteps& real, const std::set<IrreversibleStep>& not_held)
      : real_(real), not_held_(not_held) {}
  Status Admit(IrreversibleStep step, const std::string& volume) override {
    return not_held_.contains(step) ? OkStatus() : real_.Admit(step, volume);
  }
  bool InDoubt() const override { return real_.InDoubt(); }

 private:
  IrreversibleSteps& real_;
  const std::set<IrreversibleStep>& not_held_;
};

// Recycler pods that only scrub need none.
class NoContainers final : public ContainerRunner {
 public:
  Result<bool> Exists(const std::string&, const CallOptions&) override { return false; }
  Result<ContainerEnd> Run(const ContainerRun&, const CallOptions&) override {
    return Error::NotApplied(Code::kUnimplemented, "no containers here");
  }
  Status Remove(const std::string&, const CallOptions&) override { return OkStatus(); }
};

class NoObserver final : public OperationObserver {
 public:
  void OperationFinished(const FinishedOperation&) override {}
};

// Threads: one. May throw SimulatedCrash and RunawayAgent out of any method; is then to be
// destroyed.
class CrashAgent {
 public:
  // With `overlap` its operations overlap effect by effect.
  CrashAgent(CrashWorld& world, const SeededBug& bug, uint64_t seed,
             std::optional<OverlapSchedule> overlap = {});
  ~CrashAgent();

  void Start();
  // The world has changed: sources deliver, users command, processes have ended.
  void Hear();
  // A user wants no back-off to be waited for.
  void Retry(const std::string& pod);
  OutlivingWorker& worker() { return kernel_; }
  void RunFor(Duration time) { scheduler_.RunFor(time); }
  // No operation is in the middle of its work, so that what there is can be compared.
  bool IsIdle() const { return overlapping_.IsIdle(); }
  void FinishOperations();
  // What is decided a moment later is among them.
  void RunSteps(int steps) {
    (void)scheduler_.RunUntil([&steps] { return steps-- <= 0; }, std::chrono::milliseconds(200));
  }
  uint64_t switches() const { return overlapping_.switches(); }
  // What users are shown, but for times.
  std::string ViewText() const;

 private:
  VolumeManagerSettings ManagerSettings() const;
  VolumeManagerHooks ManagerHooks();
  std::unique_ptr<CrashCsiClient> MakeCsi();
  std::unique_ptr<CrashAgentPools> MakePools();
  void DriverHappened(const std::string& driver, DriverEvent event);
  void StartSources(std::map<std::string, SourceMemory> memories);
  void DeliverSource(const std::string& source);
  void Deliver(ObjectUpdate update, bool first);
  std::string SourceText(const std::string& source) const;
  void HoldBack(const std::string& source, const std::string& file, ObjectList& list);
  void Issue(size_t command);
  void Answered(size_t command, const Status& status);
  void GiveNext(size_t answered);
  BootId ReadBootId() const;

  CrashWorld& world_;
  const SeededBug& bug_;
  SimulatedScheduler scheduler_;
  OverlappingScheduler overlapping_;
  Logger log_;
  CheckedKernel checked_kernel_;
  CheckedStore checked_store_;
  std::unique_ptr<Kernel> buggy_kernel_;
  std::unique_ptr<RecordStore> buggy_store_;
  OutlivingWorker kernel_;
  RecordStore& store_;
  FakeDeviceFinder device_finder_;
  ObjectCatalog catalog_;
  CatalogHostObjects host_objects_;
  WorldTokens tokens_;
  EventLog events_;
  NodeFacts node_;
  ExportedFamilies families_;
  RecoveryGate recovery_gate_;
  LeakyGate gate_;
  VolumeHost host_;
  NodeKubeletHost kubelet_host_;
  NodeAttachDetachHost attach_detach_host_;
  std::unique_ptr<CrashCsiClient> csi_;  // null: the world has no driver
  std::unique_ptr<CrashCsiCalls> buggy_csi_;
  VolumePluginMgr plugins_;
  NoObserver observer_;
  NoContainers containers_;
  LocalRecyclerPods recycler_pods_;
  OverlappingRecordKeeper devices_;
  std::unique_ptr<CrashAgentPools> pools_;  // null: the world has none
  StorageGuard storage_;
  StorageGuard other_storage_;  // of `other_operations_`
  RecordFormatIntents format_intents_;
  NodeVolumeOperations operations_;
  NodeVolumeOperations other_operations_;  // of a bug that loses the keys; idle otherwise
  std::unique_ptr<VolumeOperations> buggy_operations_;
  WorldConsumerWatch consumer_watch_;
  std::optional<CrashObjectDirectory> applied_;
  std::unique_ptr<VolumeManager> manager_;
  bool sources_started_ = false;  // what they were told of is known, and nothing came before it
  std::set<std::string> started_;
  std::set<size_t> given_;                        // commands that wait for their answers
  bool has_applied_ = false;                      // the directory of applied objects has delivered
  std::map<std::string, std::string> delivered_;  // source -> what it said last
  std::map<std::string, SourceMemory> memories_;  // what the sources were told at the start
  // Source and file -> what was last good in it.
  std::map<std::pair<std::string, std::string>, std::vector<ObjectWithOrigin>> last_good_;
  std::map<std::string, ListMirror> mirrors_;  // by source, for a bug that is of the whole list
};

}  // namespace volumed
