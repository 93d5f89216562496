// SIGHUP: what the file says counts from then on, where that is possible, and is told where it is
// not.
#include <signal.h>
#include <unistd.h>

#include "integration/agent/agent_fixture.h"
#include "places.h"

namespace volumed::reload_test {
namespace {

constexpr char kFamily[] = "kubelet_volume_metric_collection_duration_seconds";

std::string WaitingPod() {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: waits, uid: uid-waits}\n"
         "spec:\n  volumes: [{name: s, secret: {secretName: missing}}]\n"
         "  containers: [{name: c, image: x, volumeMounts: [{name: s, mountPath: /s}]}]\n";
}

std::string MeasuredPod() {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: has, uid: uid-has}\n"
         "spec:\n  volumes: [{name: d, emptyDir: {}}]\n"
         "  containers: [{name: c, image: x, volumeMounts: [{name: d, mountPath: /d}]}]\n";
}

class ReloadTest : public AgentTest {
 protected:
  std::string config_path() const { return scratch() + "/config.yaml"; }
  // Writes the file, and waits until the daemon says that it is done with it.
  void Reload(const std::string& text, const std::string& until) {
    WriteText(config_path(), text);
    Signal(until);
  }
  void Signal(const std::string& until) {
    const size_t before = Lines(until);
    ASSERT_EQ(::kill(agent_pid(), SIGHUP), 0);
    ASSERT_TRUE(Eventually(kPatience, [&] { return Lines(until) > before; }))
        << until << "\nin:\n"
        << ReadText(log_path());
  }
  size_t Lines(const std::string& word) const {
    const std::string log = ReadText(log_path());
    size_t count = 0;
    for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1)) ++count;
    return count;
  }
  bool Logged(const std::string& text) const { return Lines(text) > 0; }
  std::string Deadline(const std::string& step) { return AgentStatus().deadlines().at(step); }
  // How often volumes have been measured, as a scrape tells; -1: no such series.
  int Measured() const {
    const std::string text = HttpGet("/metrics");
    const std::string series = std::string(kFamily) + "_count{metric_source=\"du\"} ";
    const size_t at = text.find(series);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + series.size()));
  }
};

TEST_F(ReloadTest, DeadlinesPeriodAndLogLevelCountFromTheReloadOn) {
  settings["volume-stats-period"] = "1h";
  settings["deadline-mount"] = "31s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string file = ReadText(config_path());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(WaitingPod() + "---\n" + MeasuredPod()));
  ASSERT_TRUE(WaitPhase("has", "Ready"));
  ASSERT_TRUE(WaitPhase("waits", "Pending"));
  EXPECT_EQ(Deadline("setUp"), "31s");
  EXPECT_NE(Ctl({"explain", "waits"}).output.find("setUp 31s"), std::string::npos);
  EXPECT_LE(Measured(), 1);
  EXPECT_EQ(AgentStatus().csi_settings().at("csi-calls-per-driver"), "64");
  EXPECT_EQ(AgentStatus().csi_settings().at("driver-absent-limit"), "0s");

  ASSERT_NO_FATAL_FAILURE(Reload(
      Replaced(Replaced(file, "deadline-mount: 31s", "deadline-mount: 7s"),
               "volume-stats-period: 1h", "volume-stats-period: 100ms\ndeadline-unmount: 9s"),
      "configuration reloaded"));
  EXPECT_EQ(Deadline("setUp"), "7s");
  EXPECT_EQ(Deadline("prepareSubPaths"), "7s");
  EXPECT_EQ(Deadline("tearDown"), "9s");
  EXPECT_NE(Ctl({"explain", "waits"}).output.find("setUp 7s"), std::string::npos);
  EXPECT_TRUE(Logged("deadline-mount,deadline-unmount,volume-stats-period"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Measured() >= 3; })) << HttpGet("/metrics");
  EXPECT_FALSE(Logged("needs a restart"));

  // The log level last: with it the daemon falls silent.
  WriteText(config_path(), file + "log-level: error\n");
  ASSERT_EQ(::kill(agent_pid(), SIGHUP), 0);
  ASSERT_TRUE(Eventually(kPatience, [&] { return Deadline("setUp") == "31s"; }));
  EXPECT_EQ(Lines("configuration reloaded"), 1u);
}

TEST_F(ReloadTest, WhatNeedsARestartIsNamedAndKeepsItsValue) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string file = ReadText(config_path());
  const std::string elsewhere = scratch() + "/elsewhere";
  ASSERT_NO_FATAL_FAILURE(
      Reload(Replaced(Replaced(file, "root: " + root(), "root: " + elsewhere),
                      "metrics-address: ", "deadline-mount: 8s\nmetrics-address: localhost:1 #"),
             "configuration reloaded"));
  EXPECT_EQ(AgentStatus().root(), root());
  EXPECT_FALSE(Exists(elsewhere));
  EXPECT_EQ(Deadline("setUp"), "8s");  // the others are taken all the same
  EXPECT_TRUE(Logged("setting needs a restart: the old value stays\" key=root stays=" + root() +
                     " wanted=" + elsewhere))
      << ReadText(log_path());
  EXPECT_TRUE(Logged("key=metrics-address"));
  EXPECT_NE(HttpGet("/readyz").find(" 200 "), std::string::npos);
}

TEST_F(ReloadTest, ABadOrMissingFileKeepsTheWholeOldConfiguration) {
  settings["deadline-mount"] = "31s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string file = ReadText(config_path());
  const std::string kept = "configuration not reloaded: the old one stays whole";
  ASSERT_NO_FATAL_FAILURE(
      Reload(Replaced(file, "deadline-mount: 31s", "deadline-mount: 5s\nmax-workers: many"), kept));
  EXPECT_TRUE(Logged("max-workers: must be an integer"));
  ASSERT_NO_FATAL_FAILURE(Reload("{ not yaml", kept));
  ASSERT_EQ(::unlink(config_path().c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(Signal(kept));
  EXPECT_EQ(Deadline("setUp"), "31s");
  EXPECT_FALSE(Logged("configuration reloaded"));
  // And a good one is taken after that.
  ASSERT_NO_FATAL_FAILURE(Reload(Replaced(file, "deadline-mount: 31s", "deadline-mount: 6s"),
                                 "configuration reloaded"));
  EXPECT_EQ(Deadline("setUp"), "6s");
}

TEST_F(ReloadTest, CheckConfigAndHelpSayOfEachKeyWhetherItReloads) {
  WriteText(config_path(), "deadline-mount: 12s\n");
  const CommandResult checked =
      RunCommand({VolumedPath(), "check-config", "--config", config_path()});
  ASSERT_EQ(checked.exit_status, 0) << checked.output;
  const auto line = [&](const std::string& key) {
    const size_t at = ("\n" + checked.output).find("\n" + key + ": ");
    return at == std::string::npos ? ""
                                   : checked.output.substr(at, checked.output.find('\n', at) - at);
  };
  EXPECT_EQ(line("deadline-mount").find("deadline-mount: 12s "), 0u) << checked.output;
  EXPECT_NE(line("deadline-mount").find("# reloads on SIGHUP"), std::string::npos);
  EXPECT_NE(line("root").find("# needs a restart"), std::string::npos);
  const std::string help = RunCommand({VolumedPath(), "run", "--help"}).output;
  EXPECT_NE(help.find("(reloads on SIGHUP)"), std::string::npos) << help;
  EXPECT_NE(help.find("(needs a restart)"), std::string::npos) << help;
}

}  // namespace
}  // namespace volumed::reload_test
