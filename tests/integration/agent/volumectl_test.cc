// The verbs that look at a running agent, through the program that people use.
#include <fcntl.h>
#include <grpcpp/client_context.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "integration/agent/example_pod.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::volumectl_test {
namespace {

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kUnreachable = 5;
constexpr char kPassword[] = "not-a-real-password";

class VolumectlTest : public ExamplePodTest {
 protected:
  void StartWithPod() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready"));
  }
  static std::string NeedyPod() {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: needy, uid: uid-needy}\nspec:\n"
           "  containers: [{name: main, image: i, volumeMounts: [{name: s, mountPath: /s}]}]\n"
           "  volumes: [{name: s, secret: {secretName: missing}}]\n";
  }
  static std::string EmptyDirPod(const std::string& name) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
           "}\nspec:\n"
           "  containers: [{name: main, image: i, volumeMounts: [{name: data, mountPath: /d}]}]\n"
           "  volumes: [{name: data, emptyDir: {}}]\n";
  }
  // Runs volumectl and expects this status and all of these in its output.
  void ExpectSays(const std::vector<std::string>& words, int status,
                  const std::vector<std::string>& parts) {
    const CommandResult result = Ctl(words);
    EXPECT_EQ(result.exit_status, status) << words[0] << ": " << result.output;
    for (const std::string& part : parts) {
      EXPECT_NE(result.output.find(part), std::string::npos) << "no '" << part << "' in:\n"
                                                             << result.output;
    }
  }
};

TEST_F(VolumectlTest, DescribePodShowsItsVolumesWithTheirMounts) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  const Sleeper holder;
  ASSERT_TRUE(Hold("web", holder.pid()).ok());
  ExpectSays(
      {"describe", "pod", "web"}, 0,
      {"Kind:       Pod", kExampleUid, "Labels:     app=web", "Phase:      Ready since",
       "Held by:    pid " + std::to_string(holder.pid()), "fsGroup:", "2000, Always",
       "config at /etc/nginx.conf, subPath nginx.conf, read-only", R"("name":"web-config"}})",
       "volume cache (kubernetes.io/empty-dir): SetUp", ": tmpfs from tmpfs, device ",
       "lies on:", "sub-path:   container main, mount 3", host_path()});
  const CommandResult json = Ctl({"describe", "pod", "web", "-o", "json"});
  EXPECT_NE(json.output.find("\"fs_type\": \"tmpfs\""), std::string::npos) << json.output;
  EXPECT_EQ(json.output.find(kPassword), std::string::npos);
  ExpectSays({"describe", "pod", kExampleUid, "-o", "yaml"}, 0, {"phase: Ready"});
}

TEST_F(VolumectlTest, DescribeVolumeShowsItsOwnMountsAndEventsAlone) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  const CommandResult cache = Ctl({"describe", "volume", "web/cache"});
  EXPECT_EQ(cache.exit_status, 0) << cache.output;
  const std::string path = ExampleVolume("empty-dir", "cache");
  EXPECT_NE(cache.output.find("mount:      " + path + ": tmpfs"), std::string::npos)
      << cache.output;
  EXPECT_NE(cache.output.find("Mounted:"), std::string::npos) << cache.output;
  EXPECT_EQ(cache.output.find("web-config"), std::string::npos) << cache.output;
  ExpectSays({"describe", "volume", "web/nothing"}, kNotFound, {"has no volume \"nothing\""});
  ExpectSays({"describe", "volume", "web"}, kUsage, {"POD/VOLUME"});
  ASSERT_NO_FATAL_FAILURE(ApplyOk(NeedyPod()));
  ASSERT_TRUE(Eventually(kPatience, [this] {
    const auto pod = FindPod("needy");
    return pod && pod->events_size() > 0;
  }));
  ExpectSays(
      {"describe", "volume", "needy/s"}, 0,
      {"who acts:   the owner of secret default/missing", "next try:", "Events:", "FailedMount"});
}

TEST_F(VolumectlTest, DescribeObjectsShowsUsersAndNeverASecretsContent) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  for (const char* format : {"table", "json", "yaml"}) {
    const CommandResult secret = Ctl({"describe", "secret", "web-secret", "-o", format});
    EXPECT_EQ(secret.exit_status, 0) << secret.output;
    EXPECT_EQ(secret.output.find(kPassword), std::string::npos) << secret.output;
    EXPECT_NE(secret.output.find("19 bytes"), std::string::npos) << secret.output;
    EXPECT_NE(secret.output.find("everything"), std::string::npos) << secret.output;
  }
  ExpectSays({"describe", "configmap", "web-config"}, 0,
             {"Key greeting:", "5 bytes", "pod default/web, volume config: SetUp",
              "Source:", "volumectl-apply"});
  ExpectSays({"describe", "node", "it-node"}, 0, {"it-node", "kubernetes.io/os=linux"});
  ExpectSays({"describe", "secret", "none"}, kNotFound, {"no Secret default/none"});
  ExpectSays({"describe", "pod", "none"}, kNotFound, {"no pod default/none"});
  ExpectSays({"describe", "teapot", "x"}, kUsage, {"unknown kind 'teapot'"});
}

TEST_F(VolumectlTest, RetryOfOneVolumeForgetsItsBackoffAlone) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(NeedyPod()));
  const auto attempts = [this] {
    const auto pod = FindPod("needy");
    const bool failed = pod && pod->volumes_size() == 1 && pod->volumes(0).has_problem();
    return failed ? pod->volumes(0).problem().attempts() : 0;
  };
  // Its back-off is 4 s and more by now: what comes sooner comes of the retries.
  ASSERT_TRUE(Eventually(kPatience, [&] { return attempts() >= 4; }));
  const uint64_t before = attempts();
  const auto start = std::chrono::steady_clock::now();
  ExpectSays({"retry", "needy", "s"}, 0, {"volume s: "});
  ASSERT_TRUE(Eventually(kPatience, [&] { return attempts() > before; }));
  ExpectSays({"retry", "needy"}, 0, {"pod needy is tried again", "volume s: "});
  ASSERT_TRUE(Eventually(kPatience, [&] { return attempts() > before + 1; }));
  EXPECT_LT(Since(start), std::chrono::seconds(3));
  ExpectSays({"retry", "needy", "none"}, kNotFound, {"has no volume \"none\""});
  ExpectSays({"retry", "none"}, kNotFound, {"no pod"});
}

TEST_F(VolumectlTest, TopFollowsTheRemovalOfALargeTree) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(EmptyDirPod("large")));
  ASSERT_TRUE(WaitPhase("large", "Ready"));
  ExpectSays({"top", "--once"}, 0, {"nothing runs"});
  const std::string data = VolumePath("uid-large", "empty-dir", "data");
  for (int i = 0; i < 100'000; ++i) {
    const std::string path = data + "/" + std::to_string(i);
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ::close(file);
  }
  const auto stub = NewStub();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::WatchOperationsRequest request;
  request.set_interval_ms(100);
  const auto reader = stub->WatchOperations(&context, request);
  v1::WatchOperationsResponse answer;
  ASSERT_TRUE(reader->Read(&answer)) << "the first comes at once";
  EXPECT_EQ(answer.operations_size(), 0);
  ASSERT_TRUE(Delete("Pod", "large", true).ok());
  v1::RunningOperation most;
  while (reader->Read(&answer)) {
    for (const v1::RunningOperation& operation : answer.operations()) {
      if (operation.done() > most.done()) most = operation;
    }
    if (most.done() > 0 && answer.operations_size() == 0) break;
  }
  context.TryCancel();
  (void)reader->Finish();
  EXPECT_GT(most.done(), 0);
  EXPECT_GT(most.per_second(), 0);
  EXPECT_EQ(most.operation(), "volume_unmount");
  EXPECT_EQ(most.step(), "TearDown");
  EXPECT_EQ(most.pod().name(), "large");
  EXPECT_EQ(most.volume(), "data");
  EXPECT_GE(most.step_since_unix_ms(), most.since_unix_ms());
  EXPECT_TRUE(WaitGone("large"));
}

TEST_F(VolumectlTest, TopRefusesAnIntervalThatIsOff) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  v1::WatchOperationsRequest request;
  request.set_interval_ms(1);
  const auto stub = NewStub();
  grpc::ClientContext context;
  const auto reader = stub->WatchOperations(&context, request);
  v1::WatchOperationsResponse answer;
  EXPECT_FALSE(reader->Read(&answer));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Ctl({"top", "--interval", "0.01"}).exit_status, kUsage);
}

TEST_F(VolumectlTest, TopShowsWhatHangsAndWhatIsStuck) {
  const std::string source = scratch() + "/hangfs";
  ASSERT_TRUE(std::filesystem::create_directory(source));
  HangfsMount hangfs(HangfsPath(), source, scratch() + "/control");
  if (!hangfs.mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
  settings["deadline-mount"] = "3s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  hangfs.Die();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: sick, uid: uid-sick}\nspec:\n"
      "  containers: [{name: main, image: i, volumeMounts: [{name: remote, mountPath: /r}]}]\n"
      "  volumes: [{name: remote, hostPath: {path: " +
      source + ", type: Directory}}]\n"));
  EXPECT_TRUE(Eventually(kPatience, [this] {
    return Ctl({"top", "--once"}).output.find("volume_mount  ReserveStorage") != std::string::npos;
  })) << Ctl({"top", "--once"}).output;
  EXPECT_TRUE(Eventually(kPatience, [this] {
    return Ctl({"top", "--once"}).output.find("STUCK") != std::string::npos;
  })) << Ctl({"top", "--once"}).output;
  ExpectSays({"top", "--once", "-o", "json"}, 0, {"\"stuck\"", "uid-sick/remote"});
}

TEST_F(VolumectlTest, EventsAreListedAndFollowed) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const auto stub = NewStub();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::WatchEventsRequest request;
  request.set_follow(true);
  const auto reader = stub->WatchEvents(&context, request);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(NeedyPod()));
  v1::WatchEventsResponse answer;
  uint64_t count = 0;
  while (count < 2 && reader->Read(&answer)) {
    ASSERT_GT(answer.events_size(), 0);
    EXPECT_EQ(answer.events(0).object().name(), "needy");
    EXPECT_EQ(answer.events(0).event().reason(), "FailedMount");
    count = answer.events(0).event().count();
  }
  EXPECT_EQ(count, 2u);
  context.TryCancel();
  (void)reader->Finish();
  const std::string message = "MountVolume.SetUp failed for volume \"s\" : secret \"missing\"";
  ExpectSays({"events"}, 0, {"LAST SEEN", "Warning", "FailedMount", "Pod default/needy", message});
  ExpectSays({"events", "needy", "-o", "json"}, 0, {"\"reason\": \"FailedMount\""});
  ExpectSays({"events", "-n", "other"}, 0, {"LAST SEEN"});
  EXPECT_EQ(Ctl({"events", "-n", "other"}).output.find("needy"), std::string::npos);
  ExpectSays({"events", "none"}, kNotFound, {"no pod default/none"});
}

TEST_F(VolumectlTest, ExitStatusSaysWhatIsTheMatter) {
  EXPECT_EQ(Ctl({"describe", "pod", "web"}).exit_status, kUnreachable);
  EXPECT_EQ(Ctl({"top", "--once"}).exit_status, kUnreachable);
  EXPECT_EQ(Ctl({"events"}).exit_status, kUnreachable);
  EXPECT_EQ(Ctl({"get", "pv"}).exit_status, kUnreachable);
  EXPECT_EQ(Ctl({"get", "teapots"}).exit_status, kUsage);
  EXPECT_EQ(Ctl({"describe", "pod"}).exit_status, kUsage);
  ExpectSays({"--help"}, 0, {"Exit status:", "the role of the caller does not suffice"});
}

}  // namespace
}  // namespace volumed::volumectl_test
