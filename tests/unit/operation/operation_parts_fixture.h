// What operations are given in tests, around any plugin: a fake kernel that remembers what each
// call was said to hang with, a store, and a host that has no objects.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "metrics/exported_families.h"
#include "operation/operation_parts.h"
#include "operation/storage_steps.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/stub_host.h"

namespace volumed {

// Remembers what each call was said to hang with.
class DomainKernel final : public Kernel {
 public:
  explicit DomainKernel(Kernel& real) : real_(real) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const std::string name = std::visit([](const auto& one) { return one.kName; }, request);
    calls.emplace_back(name, options.domain);
    return real_.Do(request, options);
  }
  bool TakesComposites() const override { return real_.TakesComposites(); }
  // Of the calls of this kind since the last question.
  std::vector<std::string> DomainsOf(const std::string& kind) const {
    std::vector<std::string> domains;
    for (const auto& [name, domain] : calls) {
      if (name == kind) domains.push_back(domain);
    }
    return domains;
  }
  std::vector<std::string> Domains() const {
    std::vector<std::string> domains;
    for (const auto& [name, domain] : calls) domains.push_back(domain);
    return domains;
  }

  std::vector<std::pair<std::string, std::string>> calls;  // kind and domain

 private:
  Kernel& real_;
};

// The node, the store and the plugins: all that outlives an agent.
class OperationHostFixture : public ::testing::Test {
 protected:
  // The only plugin.
  void Init(std::unique_ptr<VolumePlugin> plugin) {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::move(plugin));
    ASSERT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
  }

  ManualClock clock_;
  SimulatedScheduler scheduler_{1, clock_};
  FakeKernel node_;
  DomainKernel kernel_{node_};
  MemoryRecordStore store_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  RecordingObserver observer_;
  StubHostParts parts_;
  KubeletPaths paths_{kRoot};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, clock_,    parts_,       parts_,
                   parts_, parts_,  families_, irreversible_};
  VolumePluginMgr plugins_;
  const std::shared_ptr<UnrecordedMounts> unrecorded_ = std::make_shared<UnrecordedMounts>();
};

// And the records of one agent.
class OperationPartsFixture : public OperationHostFixture {
 protected:
  OperationParts Parts() {
    return {.plugins = plugins_,
            .host = host_,
            .logger = logger_,
            .store = store_,
            .devices = devices_,
            .storage = storage_,
            .volumes = volumes_,
            .unrecorded = unrecorded_};
  }

  DeviceRecordKeeper devices_{store_, clock_, logger_, observer_, BootId("boot-a")};
  StorageGuard storage_{kernel_, store_, clock_, logger_, BootId("boot-a")};
  const std::shared_ptr<VolumeRecordKeeper> volumes_ =
      std::make_shared<VolumeRecordKeeper>(store_, clock_, logger_, observer_, BootId("boot-a"));
};

}  // namespace volumed
