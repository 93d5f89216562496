// What plugins say of devices that are on no record.
#include "volumemanager/found_devices.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unit/volumemanager/manager_fixture.h"
#include "volume/unique_name.h"
#include "volumemanager/reconstructor.h"

namespace volumed {
namespace {

class FoundDevicesTest : public ::testing::Test {
 protected:
  static constexpr char kPlugin[] = "kubernetes.io/local-volume";
  static constexpr char kPlace[] = "/r/plugins/x/1234/globalmount";

  void SetUp() override {
    std::vector<std::unique_ptr<VolumePlugin>> made;
    made.push_back(std::make_unique<FakePlugin>(kPlugin, "local", nullptr, script_));
    made.push_back(std::make_unique<FakePlugin>("kubernetes.io/empty-dir", "emptyDir"));
    ASSERT_TRUE(plugins_.InitPlugins(std::move(made), host_).ok());
  }
  static KubeletPaths::DeviceMount Mounted(const std::string& volume, const std::string& place) {
    return {kPlugin, SpecName(volume), false, place};
  }
  static UnrecordedDevice Device(const std::string& volume, const std::string& relative) {
    PersistentVolume spec;
    spec.metadata.name = "pv-1";
    return {.place = SafePath{"/r", relative},
            .spec = VolumeSpec::FromPersistentVolume(std::move(spec), false),
            .volume_name = volume};
  }
  std::vector<KubeletPaths::DeviceMount> Ask(bool adopt) {
    AskPluginsForDevices({kernel_, plugins_, clock_, paths_, log_}, {.all_directories = adopt},
                         found_);
    return found_.device_mounts;
  }

  ManualClock clock_;
  Logger log_{LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [](LogLevel, std::string_view) {}},
              clock_};
  StubKernel kernel_;
  FakeHostParts parts_;
  KubeletPaths paths_{"/r"};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, clock_,    parts_,       parts_,
                   parts_, parts_,  families_, irreversible_};
  VolumePluginMgr plugins_;
  std::shared_ptr<FakePlugin::AttachScript> script_ = std::make_shared<FakePlugin::AttachScript>();
  FoundAtStart found_;
};

TEST_F(FoundDevicesTest, AMountThatIsOnNoRecordGetsTheNameThatItsPluginKnows) {
  found_.device_mounts = {Mounted("a stand-in", kPlace)};
  script_->found = {Device("d^vol-1", "plugins/x/1234/globalmount"),
                    Device("d^vol-2", "plugins/x/5678/globalmount")};
  EXPECT_EQ(Ask(/*adopt=*/false),
            (std::vector<KubeletPaths::DeviceMount>{Mounted("d^vol-1", kPlace)}));
  EXPECT_EQ(script_->asked_for_found, 1);
}

TEST_F(FoundDevicesTest, InAnAdoptedRootDevicesWithoutAMountAreFoundToo) {
  found_.device_mounts = {Mounted("a stand-in", kPlace)};
  script_->found = {Device("d^vol-1", "plugins/x/1234/globalmount"),
                    Device("d^vol-2", "plugins/x/5678/globalmount")};
  EXPECT_EQ(Ask(/*adopt=*/true),
            (std::vector<KubeletPaths::DeviceMount>{
                Mounted("d^vol-1", kPlace), Mounted("d^vol-2", "/r/plugins/x/5678/globalmount")}));
}

// It was called by its handle, so its unmapper looked where nothing was: the device was never
// unstaged, and its files stayed.
TEST_F(FoundDevicesTest, ABlockVolumeKeepsTheNameThatItsPlacesHave) {
  UnrecordedDevice device = Device("d^vol-1", "plugins/x/volumeDevices/pv-1/dev");
  device.is_block = true;
  script_->found = {device};
  const std::vector<KubeletPaths::DeviceMount> found = Ask(/*adopt=*/true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].volume, SpecName("d^vol-1"));
  EXPECT_EQ(found[0].spec, SpecName("pv-1"));
  ActualStateOfWorld actual(clock_);
  Reconstruct(found_, BootId("b"), /*adopt_root=*/true, paths_, actual);
  const ActualDevice* known = actual.devices().Find(GetUniqueVolumeName(kPlugin, "d^vol-1"));
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->spec, SpecName("pv-1"));
}

// A layout that has a block volume in a directory of all pods, too.
std::optional<KubeletPaths::DeviceMount> TestDeviceAt(const std::vector<std::string>& elements) {
  if (elements.size() != 3 || elements[0] != "x") return std::nullopt;
  KubeletPaths::DeviceMount device{"kubernetes.io/local-volume", SpecName(elements[1]), true};
  device.place = "x/maps/" + elements[1];
  device.pods_place = "x/" + elements[1];
  device.pod = PodUid(elements[2]);
  return device;
}

TEST_F(FoundDevicesTest, ABlockVolumeThatPodsHaveElsewhereAloneIsOneDeviceWithItsPods) {
  const KubeletPaths paths("/r", {&TestDeviceAt});
  MountListing mounts;
  for (const char* pod : {"a", "b"}) {
    MountEntry mount;
    mount.mount_point = std::string("/r/plugins/x/pv-1/") + pod;
    mounts.mounts.push_back(mount);
  }
  FindMountedDevices(mounts, paths, found_);
  ASSERT_EQ(found_.device_mounts.size(), 1u);
  EXPECT_EQ(found_.device_mounts[0].place, "/r/plugins/x/maps/pv-1");
  EXPECT_EQ(found_.device_pods["/r/plugins/x/maps/pv-1"], (std::set{PodUid("a"), PodUid("b")}));
  // The name that its plugin knows takes its places over.
  UnrecordedDevice device = Device("d^vol-1", "plugins/x/maps/pv-1");
  device.is_block = true;
  script_->found = {device};
  const std::vector<KubeletPaths::DeviceMount> asked = Ask(/*adopt=*/false);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].volume, SpecName("d^vol-1"));
  EXPECT_EQ(asked[0].pods_place, "/r/plugins/x/pv-1");
}

TEST_F(FoundDevicesTest, WhereEverythingIsOnRecordNobodyIsAsked) {
  found_.device_mounts = {Mounted("a stand-in", kPlace)};
  DeviceRecord record;
  record.device_mount_path = kPlace;
  found_.devices = {record};
  Ask(/*adopt=*/false);
  EXPECT_EQ(script_->asked_for_found, 0);
  Ask(/*adopt=*/true);
  EXPECT_EQ(script_->asked_for_found, 1);
}

TEST_F(FoundDevicesTest, APluginThatCannotSayItLeavesWhatThePlaceTells) {
  found_.device_mounts = {Mounted("a stand-in", kPlace)};
  script_->found_error = Error::NotApplied(Code::kUnavailable, "no worker");
  EXPECT_EQ(Ask(/*adopt=*/true), (std::vector{Mounted("a stand-in", kPlace)}));
}

}  // namespace
}  // namespace volumed
