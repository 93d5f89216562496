// Who may do what at the control socket: decided by who is on the other end.
#include <grp.h>
#include <sys/stat.h>

#include "integration/agent/example_pod.h"
#include "places.h"

namespace volumed::access_test {
namespace {

constexpr char kNobody[] = "65534";
constexpr int kUnreachable = 5;
constexpr int kForbidden = 6;

class AccessTest : public ExamplePodTest {
 protected:
  // volumectl as a user with one group and no other.
  CommandResult CtlAs(const std::string& uid, const std::string& gid,
                      std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", VolumectlPath(),
                      "--socket", socket_path(), "--request-timeout", "5"});
    return RunCommand(arguments);
  }
  void StartWithPod() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready"));
  }
  static std::string Gid(const char* group) {
    const struct group* entry = ::getgrnam(group);
    return entry == nullptr ? "" : std::to_string(entry->gr_gid);
  }
};

TEST_F(AccessTest, RootMayAll) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
  EXPECT_EQ(Ctl({"retry", "web"}).exit_status, 0);
  EXPECT_EQ(Ctl({"delete", "pod", "web", "--force"}).exit_status, 0);
  EXPECT_TRUE(WaitGone("web"));
}

TEST_F(AccessTest, UserWithoutGroupIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  EXPECT_EQ(CtlAs(kNobody, kNobody, {"get", "pods"}).exit_status, kUnreachable);
  // Not only by the mode of the socket: the agent itself looks.
  ASSERT_EQ(::chmod(socket_path().c_str(), 0666), 0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"get", "pods"},
                                             {"explain", "web"},
                                             {"sources"},
                                             {"status"},
                                             {"describe", "pod", "web"},
                                             {"top", "--once"},
                                             {"events"},
                                             {"delete", "pod", "web"}}) {
    const CommandResult result = CtlAs(kNobody, kNobody, words);
    EXPECT_NE(result.exit_status, 0) << words[0];
    EXPECT_EQ(result.output.find("web-config"), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find(kExampleUid), std::string::npos) << result.output;
  }
  EXPECT_EQ(FindPod("web")->phase(), "Ready");
}

TEST_F(AccessTest, ReadGroupMayOnlyRead) {
  const std::string readers = Gid("games");
  if (readers.empty()) GTEST_SKIP() << "skipped: needs the group games";
  settings["read-group"] = "games";
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  EXPECT_EQ(CtlAs(kNobody, kNobody, {"get", "pods"}).exit_status, kUnreachable);
  const CommandResult listed = CtlAs(kNobody, readers, {"get", "pods"});
  EXPECT_EQ(listed.exit_status, 0) << listed.output;
  EXPECT_EQ(CtlAs(kNobody, readers, {"explain", "web"}).exit_status, 0);
  EXPECT_EQ(CtlAs(kNobody, readers, {"status"}).exit_status, 0);
  EXPECT_EQ(CtlAs(kNobody, readers, {"describe", "secret", "web-secret"}).exit_status, 0);
  EXPECT_EQ(CtlAs(kNobody, readers, {"top", "--once"}).exit_status, 0);
  EXPECT_EQ(CtlAs(kNobody, readers, {"events"}).exit_status, 0);
  WriteText(scratch() + "/objects.yaml", ExampleObjects("changed"));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"delete", "pod", "web"},
                                             {"delete", "pod", "web", "--force"},
                                             {"delete", "-f", scratch() + "/objects.yaml"},
                                             {"apply", "-f", scratch() + "/objects.yaml"},
                                             {"retry", "web"},
                                             {"retry", "web", "cache"},
                                             {"retry", "--all"},
                                             {"retry", "--driver", "disk.example.com"},
                                             {"hold", "web", "--pid", "1"},
                                             {"source", "accept", "volumectl-apply"},
                                             {"accept", "pv", "nowhere"},
                                             {"source", "forget", "volumectl-apply"}}) {
    const CommandResult result = CtlAs(kNobody, readers, words);
    EXPECT_EQ(result.exit_status, kForbidden) << words[0] << ": " << result.output;
  }
  EXPECT_EQ(ExampleProblem("hello"), "");
}

TEST_F(AccessTest, SocketGroupMayOperateButNotForce) {
  const std::string operators = Gid("games");
  if (operators.empty()) GTEST_SKIP() << "skipped: needs the group games";
  settings["socket-group"] = "games";
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  EXPECT_EQ(CtlAs(kNobody, operators, {"get", "pods"}).exit_status, 0);
  EXPECT_EQ(CtlAs(kNobody, operators, {"delete", "pod", "web", "--force"}).exit_status, kForbidden);
  EXPECT_EQ(CtlAs(kNobody, operators, {"source", "forget", "volumectl-apply"}).exit_status,
            kForbidden);
  // Many in one call are no way around it.
  EXPECT_EQ(CtlAs(kNobody, operators, {"delete", "pod", "web", "other", "--force"}).exit_status,
            kForbidden);
  EXPECT_EQ(FindPod("web")->phase(), "Ready");
  const CommandResult deleted = CtlAs(kNobody, operators, {"delete", "pod", "web"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_TRUE(WaitGone("web"));
}

}  // namespace
}  // namespace volumed::access_test
