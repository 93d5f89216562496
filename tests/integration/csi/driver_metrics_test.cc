// What a scrape of the real daemon says of the volumes of a driver: under kubelet's names, with the
// driver in the name of the plugin; and how many volumes a driver is shown to have.
#include <sys/stat.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::driver_metrics_test {
namespace {

using Json = nlohmann::json;

constexpr const char* kDriver = "metrics.example.com";
constexpr const char* kOperations = "storage_operation_duration_seconds_count{";

class DriverMetricsTest : public CsiAgentTest {
 protected:
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  void Begin(const CsiFakeOptions& options) {
    driver_ = std::make_unique<CsiFakeDriver>(options);
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitTold(options.name, "yes")) << ToldOf(options.name);
  }
  void SetUpPod(const std::string& driver, const std::string& storage) {
    const std::string pod = Replaced(PodOn("p", {VolumeOf("v", driver)}), "spec:\n",
                                     "spec:\n  securityContext: {fsGroup: 4711}\n");
    ASSERT_NO_FATAL_FAILURE(
        ApplyOk(DriverObject(driver, false, "  fsGroupPolicy: File\n") + storage + pod));
    ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  }
  static std::string Plugin(const std::string& driver) {
    return "\"kubernetes.io/csi:" + driver + "\"";
  }
  // A scrape may serve the figures of the one before it.
  bool Has(const std::vector<std::string>& texts) const {
    return Eventually(kPatience, [&] { return !MetricLines(texts).empty(); });
  }
  bool HasOperation(const std::string& driver, const std::string& operation,
                    const std::string& migrated = "false") const {
    return Has({kOperations, "migrated=\"" + migrated + "\"",
                "operation_name=\"" + operation + "\"", "status=\"success\"",
                "volume_plugin=" + Plugin(driver)});
  }
  bool HasTotal(const std::string& driver, const std::string& state) const {
    return Has({"volume_manager_total_volumes{plugin_name=" + Plugin(driver) + ",state=\"" + state +
                "_state_of_world\"} 1"});
  }
  // As `get drivers` says; -1: it does not say.
  int VolumesOf(const std::string& driver) const {
    const Json shown = Json::parse(Ctl({"get", "drivers", "-o", "json"}).output, nullptr, false);
    if (!shown.is_object()) return -1;
    for (const Json& one : shown.value("drivers", Json::array())) {
      if (one.value("name", "") == driver) return one.value("volumes", -1);
    }
    return -1;
  }

  std::unique_ptr<CsiFakeDriver> driver_;
};

// All drivers had one series.
TEST_F(DriverMetricsTest, AScrapeNamesTheDriverOfAVolumeAsKubeletDoes) {
  ASSERT_NO_FATAL_FAILURE(Begin(OptionsOf(kDriver)));
  ASSERT_NO_FATAL_FAILURE(SetUpPod(kDriver, Storage(VolumeOf("v", kDriver))));
  for (const char* operation : {"mount_device", "volume_mount", "volume_apply_access_control"}) {
    EXPECT_TRUE(HasOperation(kDriver, operation)) << operation << HttpGet("/metrics");
  }
  EXPECT_TRUE(Has({"volume_operation_total_seconds_count{", "\"overall_volume_mount\"",
                   "plugin_name=" + Plugin(kDriver)}));
  for (const char* state : {"desired", "actual"}) EXPECT_TRUE(HasTotal(kDriver, state)) << state;

  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const char* state : {"desired", "actual"}) EXPECT_TRUE(HasTotal(kDriver, state)) << state;
  ASSERT_TRUE(WaitTold(kDriver, "yes"));
  ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  ASSERT_TRUE(Delete("Pod", "p").ok());
  ASSERT_TRUE(WaitGone("p")) << Explain("p");
  for (const char* operation : {"volume_unmount", "unmount_device"}) {
    EXPECT_TRUE(HasOperation(kDriver, operation)) << operation << HttpGet("/metrics");
  }
  for (const char* label : {"volume_plugin", "plugin_name"}) {
    EXPECT_TRUE(MetricLines({std::string(label) + "=\"kubernetes.io/csi\""}).empty()) << label;
  }
}

TEST_F(DriverMetricsTest, ATranslatedSourceCountsAsMigratedOnTheWayDownToo) {
  const std::string driver = "ebs.csi.aws.com";
  ASSERT_NO_FATAL_FAILURE(Begin(OptionsOf(driver)));
  const std::string csi = "  csi:\n    driver: " + driver + "\n    volumeHandle: h-v\n";
  const std::string storage = Storage(VolumeOf("v", driver));
  ASSERT_NE(storage.find(csi), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(
      SetUpPod(driver, Replaced(storage, csi, "  awsElasticBlockStore: {volumeID: vol-0123}\n")));
  for (const char* operation : {"mount_device", "volume_mount"}) {
    EXPECT_TRUE(HasOperation(driver, operation, "true")) << operation << HttpGet("/metrics");
  }
  EXPECT_TRUE(
      Has({"csi_operations_seconds_count{", driver, "NodePublishVolume", "migrated=\"true\""}));
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitTold(driver, "yes"));
  ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  ASSERT_TRUE(Delete("Pod", "p").ok());
  ASSERT_TRUE(WaitGone("p")) << Explain("p");
  for (const char* operation : {"volume_unmount", "unmount_device"}) {
    EXPECT_TRUE(HasOperation(driver, operation, "true")) << operation << HttpGet("/metrics");
  }
}

TEST_F(DriverMetricsTest, AGroupThatTheDriverGivesIsGivenByTheDriverAlone) {
  CsiFakeOptions options = OptionsOf(kDriver);
  options.node_capabilities.emplace_back("VOLUME_MOUNT_GROUP");
  ASSERT_NO_FATAL_FAILURE(Begin(options));
  ASSERT_NO_FATAL_FAILURE(SetUpPod(kDriver, Storage(VolumeOf("v", kDriver))));
  std::vector<std::string> groups;
  for (const CsiFakeEntry& entry : LogOf(kDriver)) {
    if (entry.what == "begin" && entry.rpc == "NodePublishVolume") {
      groups.push_back(entry.mount_group);
    }
  }
  EXPECT_EQ(groups, std::vector<std::string>{"4711"});
  struct stat target {};
  ASSERT_EQ(::stat(TargetOf("p", "v").c_str(), &target), 0);
  EXPECT_NE(target.st_gid, 4711u) << "this driver gives it to nobody";
  EXPECT_TRUE(HasOperation(kDriver, "volume_mount"));
  EXPECT_TRUE(MetricLines({kOperations, "volume_apply_access_control", kDriver}).empty());
}

TEST_F(DriverMetricsTest, ADriverIsShownWithHowManyOfItsVolumesAreHere) {
  ASSERT_NO_FATAL_FAILURE(Begin(OptionsOf(kDriver)));
  EXPECT_EQ(VolumesOf(kDriver), 0) << Ctl({"get", "drivers", "-o", "json"}).output;
  const CsiTestVolume volume = VolumeOf("v", kDriver);
  const CsiTestVolume other = VolumeOf("w", kDriver);
  ApplyOk(DriverObject(kDriver, false) + Storage(volume) + Storage(other) +
          PodOn("p", {volume, other}) + PodOn("q", {volume}));
  for (const char* pod : {"p", "q"}) ASSERT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod);
  EXPECT_EQ(VolumesOf(kDriver), 2) << "two pods have one of them";
  ASSERT_TRUE(Delete("Pod", "p").ok());
  ASSERT_TRUE(WaitGone("p")) << Explain("p");
  EXPECT_TRUE(Eventually(kPatience, [&] { return VolumesOf(kDriver) == 1; }));
  EXPECT_NE(Ctl({"describe", "driver", kDriver}).output.find("1 here, no limit"),
            std::string::npos);
}

}  // namespace
}  // namespace volumed::driver_metrics_test
