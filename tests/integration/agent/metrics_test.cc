// What a real scrape of a real agent holds, under kubelet's names.
#include <cstdio>
#include <filesystem>

#include "integration/agent/example_pod.h"

namespace volumed::metrics_test {
namespace {

class MetricsTest : public ExamplePodTest {
 protected:
  std::string Scrape() const {
    const std::string answer = HttpGet("/metrics");
    const size_t body = answer.find("\r\n\r\n");
    return body == std::string::npos ? "" : answer.substr(body + 4);
  }
  // The value of the series that begins so, as text; "" without one.
  static std::string Value(const std::string& scrape, const std::string& series) {
    const size_t at = scrape.find("\n" + series + " ");
    if (at == std::string::npos) return "";
    const size_t begin = at + series.size() + 2;
    return scrape.substr(begin, scrape.find('\n', begin) - begin);
  }
  bool EventuallyIs(const std::string& series, const std::string& value) {
    return Eventually(kPatience, [&] { return Value(Scrape(), series) == value; });
  }
  static std::string Operations(const std::string& plugin, const std::string& operation,
                                const std::string& status) {
    return "storage_operation_duration_seconds_count{migrated=\"false\",operation_name=\"" +
           operation + "\",status=\"" + status + "\",volume_plugin=\"kubernetes.io/" + plugin +
           "\"}";
  }
  static std::string Total(const std::string& plugin, const std::string& state) {
    return "volume_manager_total_volumes{plugin_name=\"kubernetes.io/" + plugin + "\",state=\"" +
           state + "_state_of_world\"}";
  }
  void StartWithPodOfManifest() {
    WriteText(manifests() + "/objects.yaml", ExampleObjects("hello"));
    WriteText(manifests() + "/pod.yaml", ExamplePod(host_path()));
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitPhase("web", "Ready"));
  }
};

TEST_F(MetricsTest, AScrapeHasWhatTheAgentDidAndPromtoolFindsNothing) {
  ASSERT_NO_FATAL_FAILURE(StartWithPodOfManifest());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk("apiVersion: v1\nkind: Pod\nmetadata: {name: needy, uid: uid-needy}\nspec:\n"
              "  containers: [{name: main, image: i, volumeMounts: [{name: s, mountPath: /s}]}]\n"
              "  volumes: [{name: s, secret: {secretName: missing}}]\n"));
  ASSERT_TRUE(Eventually(kPatience, [this] {
    return !Value(Scrape(), Operations("secret", "volume_mount", "fail-unknown")).empty();
  }));
  const std::string scrape = Scrape();
  EXPECT_EQ(Value(scrape, Operations("secret", "volume_mount", "success")), "1");
  EXPECT_EQ(Value(scrape, Operations("empty-dir", "volume_mount", "success")), "2");
  // Its own two, and those that the four payloads lie in, as in kubelet.
  EXPECT_EQ(Value(scrape, Operations("empty-dir", "volume_apply_access_control", "success")), "6");
  EXPECT_EQ(Value(scrape,
                  "volume_operation_total_seconds_count{operation_name=\"overall_volume_"
                  "mount\",plugin_name=\"kubernetes.io/empty-dir\"}"),
            "2");
  EXPECT_EQ(Value(scrape, Total("empty-dir", "desired")), "2");
  EXPECT_EQ(Value(scrape, Total("empty-dir", "actual")), "2");
  EXPECT_NE(Value(scrape, "volumed_control_loop_lag_seconds_count"), "");
  EXPECT_EQ(Value(scrape, "reconstruct_volume_operations_total"), "0");
  WriteText(scratch() + "/scrape", scrape);
  const CommandResult checked =
      RunCommand({"sh", "-c",
                  "command -v promtool >/dev/null || exit 99; promtool check metrics < " +
                      scratch() + "/scrape"});
  if (checked.exit_status == 99) GTEST_SKIP() << "skipped: needs promtool";
  // 3: there is something to be said of style; here of a name that is kubelet's.
  EXPECT_EQ(checked.exit_status, 3) << checked.output;
  EXPECT_EQ(checked.output, "kubelet_evictions counter metrics should have \"_total\" suffix\n");
}

TEST_F(MetricsTest, ARestartCountsWhatItTakesOver) {
  ASSERT_NO_FATAL_FAILURE(StartWithPodOfManifest());
  KillAgent();
  // No record knows it, and the pod does not have it: it is torn down.
  ASSERT_TRUE(
      std::filesystem::create_directories(VolumePath(kExampleUid, "empty-dir", "left-behind")));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(EventuallyIs("force_cleaned_failed_volume_operations_total", "1")) << Scrape();
  const std::string scrape = Scrape();
  EXPECT_EQ(Value(scrape, "reconstruct_volume_operations_total"), "8");
  EXPECT_EQ(Value(scrape, "reconstruct_volume_operations_errors_total"), "1");
  EXPECT_EQ(Value(scrape, "force_cleaned_failed_volume_operation_errors_total"), "0");
  EXPECT_EQ(Value(scrape, "kubelet_orphan_pod_cleaned_volumes"), "0");
  ASSERT_TRUE(WaitPhase("web", "Ready"));
  EXPECT_EQ(ExampleProblem("hello"), "");
}

TEST_F(MetricsTest, AnOrphanOfTheLastAgentIsCounted) {
  ASSERT_NO_FATAL_FAILURE(StartWithPodOfManifest());
  KillAgent();
  std::filesystem::remove(manifests() + "/pod.yaml");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(EventuallyIs("kubelet_orphan_pod_cleaned_volumes", "7")) << Scrape();
  EXPECT_EQ(Value(Scrape(), "kubelet_orphan_pod_cleaned_volumes_errors"), "0");
  EXPECT_TRUE(WaitGone("web"));
}

// Its figures had the labels of the pod before it, whose series had not been taken away yet.
TEST_F(MetricsTest, APodThatComesAtOnceAfterOneOfItsUidHasLabelsOfItsOwn) {
  settings["volume-stats-period"] = "100ms";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const auto pod = [](const std::string& name) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-same}\n" +
           "spec:\n  containers: [{name: main, image: i, volumeMounts: [{name: v, mountPath: "
           "/v}]}]\n" +
           "  volumes: [{name: v, emptyDir: {}}]\n";
  };
  const auto has = [this](const std::string& name) {
    return Scrape().find("volumed_volume_stats_used_bytes{namespace=\"default\",pod=\"" + name +
                         "\"") != std::string::npos;
  };
  for (int i = 0; i < 5; ++i) {
    const std::string name = "pod-" + std::to_string(i);
    ASSERT_NO_FATAL_FAILURE(ApplyOk(pod(name)));
    ASSERT_TRUE(Eventually(kPatience, [&] { return has(name); })) << name << "\n" << Scrape();
    EXPECT_FALSE(has("pod-" + std::to_string(i - 1)));
    ASSERT_TRUE(Delete("Pod", name).ok());
    ASSERT_TRUE(WaitGone(name));
  }
}

}  // namespace
}  // namespace volumed::metrics_test
