// One part of the agent that fails keeps no other down, and works again without a restart; and what
// one agent has, another one that cannot start does not take.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/descriptor.h"
#include "integration/agent/example_pod.h"
#include "places.h"

namespace volumed::parts_test {
namespace {

namespace fs = std::filesystem;

constexpr char kTokenPod[] = R"(
apiVersion: v1
kind: Pod
metadata: {name: bearer, uid: uid-bearer}
spec:
  serviceAccountName: builder
  containers: [{name: main, image: i, volumeMounts: [{name: token, mountPath: /t}]}]
  volumes:
  - name: token
    projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 3600}}]}
)";

constexpr char kTokenlessPod[] = R"(
apiVersion: v1
kind: Pod
metadata: {name: plain, uid: uid-plain}
spec:
  containers: [{name: main, image: i, volumeMounts: [{name: scratch, mountPath: /s}]}]
  volumes: [{name: scratch, emptyDir: {}}]
)";

class PartsTest : public ExamplePodTest {
 protected:
  // Somebody else's service on the metrics port.
  Descriptor TakeMetricsPort() const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(metrics_port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(socket.get(), 1), 0);
    return socket;
  }
  bool Answers() const { return Ctl({"get", "pods"}).exit_status == 0; }
  // A second agent with `lines` in its configuration; it has to end by itself.
  CommandResult RunSecond(const std::string& lines) const {
    WriteText(scratch() + "/second.yaml",
              "node-name: second\nworker: " + VolumedWorkerPath() +
                  "\nsocket-group: \"\"\nvolume-plugin-dir: \"\"\nmanifest-dir: []\n" + lines);
    return RunCommand(
        {"timeout", "30", VolumedPath(), "run", "--config", scratch() + "/second.yaml"});
  }
};

TEST_F(PartsTest, ASecondAgentThatCannotStartTakesNothingFromTheFirst) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
  ASSERT_TRUE(WaitPhase("web", "Ready"));
  struct stat before {};
  ASSERT_EQ(::stat(socket_path().c_str(), &before), 0);
  const CommandResult same_socket =
      RunSecond("root: " + scratch() + "/second\nsocket: " + socket_path() + "\n" +
                "metrics-address: \"\"\n");
  EXPECT_EQ(same_socket.exit_status, 1) << same_socket.output;
  EXPECT_NE(same_socket.output.find("another volumed (pid " + std::to_string(agent_pid()) +
                                    ") owns " + socket_path() + ".lock"),
            std::string::npos)
      << same_socket.output;
  const CommandResult same_root = RunSecond("root: " + root() + "\nsocket: " + scratch() +
                                            "/other.sock\nmetrics-address: \"\"\n");
  EXPECT_EQ(same_root.exit_status, 1) << same_root.output;
  EXPECT_FALSE(Exists(scratch() + "/other.sock"));
  struct stat after {};
  ASSERT_EQ(::stat(socket_path().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(Answers());
  EXPECT_EQ(ExampleProblem("hello"), "");
}

// One without the lock: of an older release, or whose lock file was removed.
TEST_F(PartsTest, TheSocketOfALivingAgentIsNotReplacedEvenWithoutItsLock) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string alias = scratch() + "/alias.sock";
  ASSERT_EQ(::link(socket_path().c_str(), alias.c_str()), 0);
  const CommandResult second =
      RunSecond("root: " + scratch() + "/second\nsocket: " + alias + "\nmetrics-address: \"\"\n");
  EXPECT_EQ(second.exit_status, 1) << second.output;
  EXPECT_NE(second.output.find("another process listens at " + alias), std::string::npos)
      << second.output;
  EXPECT_TRUE(Answers());
}

TEST_F(PartsTest, ASocketThatWasUnlinkedIsMadeAnew) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(::unlink(socket_path().c_str()), 0);
    EXPECT_TRUE(Eventually(kPatience, [&] { return Answers(); })) << round;
  }
  fs::rename(socket_path(), scratch() + "/moved.sock");
  EXPECT_TRUE(Eventually(kPatience, [&] { return Answers(); }));
  struct stat info {};
  ASSERT_EQ(::stat(socket_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(PartsTest, ASocketWhoseDirectoryIsMissingIsMadeWithItAndAgain) {
  settings["socket"] = scratch() + "/run/volumed.sock";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const auto answers = [&] {
    return RunCommand({VolumectlPath(), "--socket", settings["socket"], "get", "pods"})
               .exit_status == 0;
  };
  EXPECT_TRUE(Eventually(kPatience, answers));
  // The agent may have made its socket anew before the directory is removed.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    std::error_code error;
    fs::remove_all(scratch() + "/run", error);
    return !error;
  }));
  EXPECT_TRUE(Eventually(kPatience, answers));
}

TEST_F(PartsTest, ATakenMetricsPortKeepsNothingDownAndHeals) {
  {
    const Descriptor taken = TakeMetricsPort();
    ASSERT_NO_FATAL_FAILURE(StartAgent());
    ASSERT_TRUE(Eventually(kPatience, [&] { return Answers(); }));
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    EXPECT_TRUE(WaitPhase("web", "Ready"));
    const v1::GetStatusResponse status = AgentStatus();
    EXPECT_FALSE(status.ready());
    EXPECT_NE(status.not_ready_reason().find("metrics: cannot listen on 127.0.0.1:"),
              std::string::npos)
        << status.not_ready_reason();
    EXPECT_NE(FailedParts().find("Address already in use"), std::string::npos) << FailedParts();
    EXPECT_NE(ReadText(log_path()).find("part=metrics"), std::string::npos);
    const CommandResult shown = Ctl({"status"});
    EXPECT_NE(shown.output.find("failed_parts"), std::string::npos) << shown.output;
  }
  EXPECT_TRUE(WaitReady());
  EXPECT_EQ(FailedParts(), "");
  EXPECT_NE(HttpGet("/metrics").find("volumed_part_up{part=\"metrics\"} 1"), std::string::npos);
}

TEST_F(PartsTest, ADamagedTokenKeyKeepsNothingElseDownIsNeverReplacedAndHeals) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  StopAgent();
  const std::string key = root() + "/volumed/tokens/signing-key.pem";
  const std::string good = ReadText(key);
  ASSERT_NE(good.find("PRIVATE KEY"), std::string::npos);
  const std::string damaged = good.substr(0, good.size() / 2);
  WriteText(key, damaged);

  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Answers(); }));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(std::string(kTokenlessPod) + "---" + kTokenPod));
  EXPECT_TRUE(WaitPhase("plain", "Ready")) << Ctl({"explain", "plain"}).output;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"explain", "bearer"}).output.find("signing-key.pem: not a P-256 private key") !=
           std::string::npos;
  })) << Ctl({"explain", "bearer"}).output;
  EXPECT_NE(HttpGet("/readyz").find("tokens: "), std::string::npos) << HttpGet("/readyz");
  EXPECT_NE(FailedParts().find("signing-key.pem"), std::string::npos) << FailedParts();
  EXPECT_NE(ReadText(log_path()).find("part=tokens"), std::string::npos);
  EXPECT_NE(HttpGet("/metrics").find("volumed_part_up{part=\"tokens\"} 0"), std::string::npos);
  EXPECT_EQ(ReadText(log_path()).find(good.substr(30, 40)), std::string::npos);
  EXPECT_EQ(ReadText(key), damaged);

  WriteText(key, good);
  EXPECT_TRUE(WaitPhase("bearer", "Ready")) << Ctl({"explain", "bearer"}).output;
  EXPECT_TRUE(WaitReady());
  EXPECT_EQ(ReadText(key), good);
}

}  // namespace
}  // namespace volumed::parts_test
