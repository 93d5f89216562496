// The unmount of a device: proven to be let go of where it is to be detached, and never said to be
// where it is not.
#include "operation/device_operations.h"
#include "operation/operation_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "operation/device_use.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "unit/operation/operation_parts_fixture.h"
#include "unit/pluginmgr/plugin_without_mounts.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPlugin[] = "test.io/disks";
constexpr char kDiskNode[] = "/dev/vdb";
constexpr char kDiskPlace[] = "/var/lib/volumed/plugins/test.io/disks/mounts/one";
const UniqueVolumeName kFirstDisk("test.io/disks/one");

// Mounts devices, and attaches them too if it is to.
class DiskPlugin final : public PluginWithoutMounts, public AttachableVolumePlugin {
 public:
  explicit DiskPlugin(const bool& attaches) : attaches_(attaches) {}

  std::string GetPluginName() const override { return kPlugin; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  bool CanSupport(const VolumeSpec&) const override { return true; }
  VolumePlugin& plugin() override { return *this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  AttachableVolumePlugin* AsAttachable() override { return attaches_ ? this : nullptr; }

  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override { return NotUsed(); }
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override {
    return std::unique_ptr<DeviceUnmounter>(std::make_unique<DiskUnmounter>(host_->kernel));
  }
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath&,
                                                      const CallOptions&) override {
    return std::vector<std::string>();
  }
  Result<bool> CanDeviceMount(const VolumeSpec&) const override { return true; }
  Result<std::unique_ptr<Attacher>> NewAttacher() override { return NotUsed(); }
  Result<std::unique_ptr<Detacher>> NewDetacher() override { return NotUsed(); }
  Result<bool> CanAttach(const VolumeSpec&) const override { return attaches_; }

 private:
  class DiskUnmounter final : public DeviceUnmounter {
   public:
    explicit DiskUnmounter(Kernel& kernel) : kernel_(kernel) {}
    Status UnmountDevice(const SafePath& place, const CallOptions& call) override {
      RETURN_IF_ERROR(kernel_.Call(Unmount{.target = place}, call));
      return OkStatus();
    }

   private:
    Kernel& kernel_;
  };

  const bool& attaches_;
};

class UnmountDeviceTest : public OperationPartsFixture {
 protected:
  UnmountDeviceTest() {
    Init(std::make_unique<DiskPlugin>(attaches_));
    FakeDevice device;
    device.fs_type = "ext4";
    device.usage = "filesystem";
    node_.AddDevice(kDiskNode, device);
    node_.AddDirectory(kDiskPlace);
    node_.AddDirectory("/mnt");
    Put(kDiskPlace);
    DeviceRecord facts;
    facts.key = kFirstDisk;
    facts.plugin_name = kPlugin;
    facts.spec = SpecName("one");
    facts.device_mount_path = kDiskPlace;
    const auto attempt = devices_.BeginCall(facts, VolumeEvent::kMountDevice);
    EXPECT_TRUE(devices_.EndCall(kFirstDisk, attempt.value(), CallAnswer::kDone).ok());
  }

  void Put(const std::string& place) {
    EXPECT_TRUE(node_.Call(Mount{"ext4", kDiskNode, {place, ""}, {}}, {}).ok());
  }
  std::optional<OperationFailure> Run() {
    OperationProgress progress(clock_);
    Unit none;
    return UnmountDevice({kFirstDisk, kPlugin, SpecName("one"), kDiskPlace})
        .Run(Parts(), progress, none);
  }
  std::optional<DeviceRecord> Stored() const {
    const auto row = store_.Find(kDeviceRecordKind, RecordKey(kFirstDisk));
    return row ? std::optional<DeviceRecord>(DecodeDeviceRecord(*row).value()) : std::nullopt;
  }

  bool attaches_ = true;
};

TEST_F(UnmountDeviceTest, OneThatNobodyHasIsUnmountedAndLeavesNoRecord) {
  EXPECT_FALSE(Run());
  EXPECT_FALSE(node_.IsMountPoint(kDiskPlace));
  EXPECT_FALSE(Stored());
}

TEST_F(UnmountDeviceTest, OneThatIsToBeDetachedMustBeLetGoOf) {
  Put("/mnt");
  const auto failure = Run();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "CheckDeviceUse");
  EXPECT_EQ(failure->error.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(failure->error.maybe_applied()) << "it is unmounted";
  EXPECT_EQ(failure->error.message(),
            "the device is in use when it was no longer expected to be in use: /dev/vdb is mounted "
            "at /mnt");
  ASSERT_TRUE(Stored());
  EXPECT_TRUE(Stored()->uncertain);
  // Nothing is mounted at its place any more; the record still says which device it is.
  EXPECT_EQ(Run()->step, "CheckDeviceUse");
  node_.UnmountBelow("/mnt");
  EXPECT_FALSE(Run());
  EXPECT_FALSE(Stored());
}

TEST_F(UnmountDeviceTest, WhoHasItIsNamedAsFarAsItCanBeKnown) {
  node_.ChangeDevice(kDiskNode, [](FakeDevice& device) { device.holders = {"dm-0", "md1"}; });
  EXPECT_THAT(Run()->error.message(), HasSubstr("/dev/vdb is a part of dm-0, md1"));
  node_.ChangeDevice(kDiskNode, [](FakeDevice& device) {
    device.holders.clear();
    device.claimed = true;
  });
  EXPECT_THAT(Run()->error.message(), HasSubstr("a mount in another mount namespace"));
}

TEST_F(UnmountDeviceTest, OneThatCannotBeAskedIsNotTakenForFree) {
  node_.FailNext(CheckDeviceUse::kName, EIO, Outcome::kNotApplied);
  const auto failure = Run();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error.sys_errno(), EIO);
  EXPECT_TRUE(Stored());
  EXPECT_FALSE(Run());
}

TEST_F(UnmountDeviceTest, OneThatIsGoneOrAnotherByNowIsNobodys) {
  node_.SetCallHook([this](const AnyRequest& request) {
    if (!std::holds_alternative<CheckDeviceUse>(request)) return;
    node_.ChangeDevice(kDiskNode, [](FakeDevice& device) {
      device.identity.device_minor = 77;
      device.claimed = true;
    });
  });
  EXPECT_FALSE(Run());
}

TEST_F(UnmountDeviceTest, OneThatStaysOnTheNodeMayBeAnAdministratorsToo) {
  attaches_ = false;
  Put("/mnt");
  EXPECT_FALSE(Run());
  EXPECT_FALSE(Stored());
  EXPECT_TRUE(node_.IsMountPoint("/mnt"));
  EXPECT_EQ(log_.Count("may be in use still"), 1);
  EXPECT_EQ(log_.Count("/dev/vdb is mounted at /mnt"), 1);
}

TEST_F(UnmountDeviceTest, AnotherBootsDeviceIsForgotten) {
  DeviceRecord record;
  record.key = kFirstDisk;
  record.spec = SpecName("one");
  record.state = VolumeState::kUnmountingDevice;
  record.boot_id = BootId("boot-a");
  record.source = MountedSource{kDiskNode, 7, 0};
  const DeviceRecord decoded = DecodeDeviceRecord(EncodeRecord(record)).value();
  EXPECT_EQ(decoded, record);
  EXPECT_EQ(AfterRestart(decoded, BootId("boot-a")).source, record.source);
  EXPECT_EQ(AfterRestart(decoded, BootId("boot-b")).source, std::nullopt);
}

}  // namespace
}  // namespace volumed
