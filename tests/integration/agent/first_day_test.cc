// What somebody does with volumectl on the first day, and what cost trust when it did not work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/agent/agent_fixture.h"

namespace volumed::first_day_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kConfigMap =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n";
constexpr const char* kSecret =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: other}\n"
    "stringData: {password: canary-7f3a}\n";

std::string PodText(const std::string& metadata, const std::string& rest) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {" + metadata +
         "}\nspec:\n  containers: [{name: main, image: x" +
         std::string(rest.find("name: v,") == std::string::npos
                         ? ""
                         : ", volumeMounts: [{name: v, mountPath: /v}]") +
         "}]\n" + rest;
}

class FirstDayTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    StartReadyAgent();
  }
  std::string File(const std::string& name, const std::string& text) {
    WriteText(scratch() + "/" + name, text);
    return scratch() + "/" + name;
  }
};

TEST_F(FirstDayTest, ApplyTakesTheNamespaceOfTheCommandLine) {
  EXPECT_EQ(Ctl({"apply", "-n", "team", "-f", File("c.yaml", kConfigMap)}).output,
            "ConfigMap team/c created\n");
  const CommandResult refused = Ctl({"apply", "-n", "team", "-f", File("s.yaml", kSecret)});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.output, HasSubstr("the namespace from the provided object \"other\" does not "
                                        "match the namespace \"team\""));
  EXPECT_EQ(Ctl({"get", "cm", "c"}).exit_status, 0);
  EXPECT_EQ(Ctl({"get", "cm", "c", "-n", "default"}).exit_status, 3);
}

TEST_F(FirstDayTest, AWaitForAPodThatNobodyHasEndsAtOnce) {
  const auto before = std::chrono::steady_clock::now();
  const CommandResult waited = Ctl({"wait", "nobody", "--for", "ready", "--timeout", "600"});
  EXPECT_EQ(waited.exit_status, 3);
  EXPECT_THAT(waited.output, HasSubstr("no pod default/nobody"));
  EXPECT_LT(Since(before), kPatience);
  EXPECT_EQ(Ctl({"wait", "nobody", "--for", "gone", "--timeout", "600"}).exit_status, 0);
  EXPECT_EQ(Ctl({"wait", "nobody", "--for", "create", "--timeout", "0.1"}).exit_status, 4);
}

TEST_F(FirstDayTest, AFileOfObjectsIsDeletedAsItWasApplied) {
  const std::string file =
      File("all.yaml", std::string(kConfigMap) + "---\n" + kSecret + "---\n" +
                           PodText("name: p, uid: 11111111-2222-3333-4444-555555555555",
                                   "  volumes: [{name: v, configMap: {name: c}}]\n"));
  ASSERT_EQ(Ctl({"apply", "-f", file}).exit_status, 0);
  ASSERT_EQ(Ctl({"wait", "p", "--for", "ready"}).exit_status, 0);
  EXPECT_EQ(Ctl({"delete", "-f", file}).output,
            "Pod p deleted\nSecret s deleted\nConfigMap c deleted\n");
  EXPECT_EQ(Ctl({"wait", "p", "--for", "gone"}).exit_status, 0);
  EXPECT_EQ(Ctl({"delete", "-f", file}).exit_status, 3);
  EXPECT_EQ(Ctl({"delete", "-f", file, "--ignore-not-found"}).exit_status, 0);
  EXPECT_EQ(Ctl({"delete", "-f", File("no.yaml", "{kind: Pod")}).exit_status, 7);
}

TEST_F(FirstDayTest, GetListsWhatIsKeptSortedAndNeverAValue) {
  ApplyOk(std::string(kConfigMap) + "---\n" + kSecret + "---\n" +
          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, l: w}\n");
  const std::string maps = Ctl({"get", "configmaps"}).output;
  EXPECT_THAT(maps, HasSubstr("NAMESPACE  NAME  DATA  AGE"));
  EXPECT_LT(maps.find("default    a     2"), maps.find("default    c     1"));
  for (const std::string format : {"table", "wide", "json", "yaml"}) {
    const CommandResult secrets = Ctl({"get", "secrets", "-o", format});
    EXPECT_EQ(secrets.exit_status, 0);
    EXPECT_THAT(secrets.output, HasSubstr("other"));
    EXPECT_THAT(secrets.output, Not(HasSubstr("canary")));
  }
  EXPECT_EQ(Ctl({"get", "secret", "no-such"}).exit_status, 3);
  EXPECT_EQ(Ctl({"get", "csidrivers"}).exit_status, 0);
  EXPECT_EQ(Ctl({"get", "nodes"}).exit_status, 0);
}

TEST_F(FirstDayTest, TheVersionOfBothEnds) {
  const CommandResult version = Ctl({"version"});
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_EQ(version.output, "volumectl " + AgentStatus().version() + "\nvolumed   " +
                                AgentStatus().version() + "\n");
}

TEST_F(FirstDayTest, APodThatHadEndedInAnotherClusterIsANewOneHere) {
  ApplyOk(
      PodText("name: p, uid: 11111111-2222-3333-4444-555555555555, "
              "deletionTimestamp: \"2026-01-01T00:00:00Z\"",
              "  volumes: [{name: v, emptyDir: {}}]\nstatus: {phase: Succeeded}\n"));
  EXPECT_EQ(Ctl({"wait", "p", "--for", "ready"}).exit_status, 0);
  EXPECT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  EXPECT_EQ(Ctl({"wait", "p", "--for", "gone"}).exit_status, 0);
}

TEST_F(FirstDayTest, AFieldThatNobodyKnowsIsAWarning) {
  const CommandResult applied =
      Ctl({"apply", "-f",
           File("p.yaml", PodText("name: p, uid: 11111111-2222-3333-4444-555555555555",
                                  "  volume: [{name: w, emptyDir: {}}]\n"))});
  EXPECT_EQ(applied.exit_status, 0);
  EXPECT_THAT(applied.output, HasSubstr("warning: "));
  EXPECT_THAT(applied.output, HasSubstr("spec.volume: "));
  EXPECT_THAT(applied.output, HasSubstr("did you mean \"volumes\"?"));
}

TEST_F(FirstDayTest, ACsiVolumeSaysInASentenceWhatIsMissing) {
  ApplyOk(PodText("name: p, uid: 11111111-2222-3333-4444-555555555555",
                  "  volumes: [{name: v, csi: {driver: ebs.csi.aws.com}}]\n"));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"explain", "p"})
               .output.find(
                   "driver name ebs.csi.aws.com not found in the list of registered CSI drivers") !=
           std::string::npos;
  })) << Ctl({"explain", "p"}).output;
}

TEST_F(FirstDayTest, AStaticPodIsFoundByTheNameInItsManifest) {
  ApplyOk(PodText("name: web", "  volumes: [{name: v, emptyDir: {}}]\n"));
  EXPECT_EQ(Ctl({"wait", "web", "--for", "ready"}).exit_status, 0);
  EXPECT_EQ(Ctl({"get", "pods", "web"}).exit_status, 0);
  EXPECT_EQ(Ctl({"explain", "web"}).exit_status, 0);
  EXPECT_EQ(Ctl({"delete", "pod", "web"}).exit_status, 0);
  EXPECT_EQ(Ctl({"wait", "web", "--for", "gone"}).exit_status, 0);
}

}  // namespace
}  // namespace volumed::first_day_test
