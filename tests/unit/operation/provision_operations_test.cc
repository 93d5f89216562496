#include "operation/provision_operations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "plugins/host_path.h"
#include "unit/operation/recording_parts.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

class ProvisionOperationsTest : public ::testing::Test {
 protected:
  ProvisionOperationsTest() {
    HostPathSettings settings;
    settings.roots = {"/srv/volumes"};
    settings.config.provisioning_enabled = true;
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<HostPathPlugin>(std::move(settings)));
    EXPECT_TRUE(mgr_.InitPlugins(std::move(plugins), world_.host).ok());
    kernel_.AddDirectory("/r/pods");
    guard_.AddOwnDirectory("the agent's root", "/r");
    request_.plugin_name = kHostPathPluginName;
    request_.options.pv_name = "pvc-1";
    const auto provisioner = mgr_.FindProvisionablePluginByName(kHostPathPluginName)
                                 .value()
                                 ->NewProvisioner(request_.options);
    request_.planned = provisioner.value()->Plan().value();
  }

  // What failed; "" if the volume is made.
  std::string Provision() {
    OperationProgress progress(clock_);
    PersistentVolume made;
    const auto failure = ProvisionVolume(request_).Run(
        {mgr_, world_.host, logger_, records_, devices_, guard_}, progress, made);
    if (failure) return failure->error.message();
    EXPECT_EQ(made, request_.planned);
    return "";
  }

  ManualClock clock_;
  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  VolumePluginMgr mgr_;
  Logger logger_{LogOptions{LogLevel::kError, LogOptions::Target::kCallback,
                            [](LogLevel, std::string_view) {}},
                 clock_};
  MemoryRecordStore records_;
  RecordingObserver observer_;
  DeviceRecordKeeper devices_{records_, clock_, logger_, observer_, BootId("boot-a")};
  StorageGuard guard_{kernel_, records_, clock_, logger_, BootId("boot-a")};
  ProvisionRequest request_;
};

TEST_F(ProvisionOperationsTest, AVolumeIsMadeWhereItWasPlanned) {
  EXPECT_EQ(Provision(), "");
  EXPECT_EQ(kernel_.Find("/srv/volumes/pvc-1").type, FileType::kDirectory);
}

TEST_F(ProvisionOperationsTest, NoVolumeIsMadeAmongTheAgentsOwnDirectories) {
  kernel_.AddSymlink("/srv/volumes", "/r/pods");
  EXPECT_NE(Provision().find("the agent's root"), std::string::npos);
  EXPECT_FALSE(kernel_.Exists("/r/pods/pvc-1"));
}

TEST_F(ProvisionOperationsTest, AVolumeIsNotMadeAtAnotherPlaceThanItWasPlannedAt) {
  request_.planned.spec.source = HostPathVolumeSource{"/elsewhere/pvc-1", HostPathType::kUnset};
  EXPECT_NE(Provision().find("was planned at another place"), std::string::npos);
  EXPECT_FALSE(kernel_.Exists("/srv/volumes/pvc-1"));
}

// The records were lost and with them the uid of a claim, which got a second, empty volume.
TEST_F(ProvisionOperationsTest, NoVolumeIsMadeWhileTheRecordsAreInDoubt) {
  world_.irreversible.hold = true;
  EXPECT_EQ(Provision(), "provision pvc-1 is held back");
  EXPECT_FALSE(kernel_.Exists("/srv/volumes/pvc-1"));
  world_.irreversible.hold = false;
  EXPECT_EQ(Provision(), "");
}

}  // namespace
}  // namespace volumed
