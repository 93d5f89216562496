// How a driver's registration ends with volumed and with kubelet's own plugin manager (csi-peer):
// the same driver registers with both, each on a directory of its own, and what it is told is
// compared.
#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"
#include "interop/pd_harness.h"

namespace volumed::csi_peer_test {
namespace {

namespace fs = std::filesystem;

// What a driver says of itself, and whether it may be used by it.
struct Case {
  const char* name;
  const char* options;  // a command for the driver: {"set": ..}
  bool kubelet = false;
  bool ours = false;
  const char* why = "";  // if the two differ
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> kAll = {
      {"plain", R"({"set": {}})", true, true},
      {"two-versions", R"({"set": {"versions": ["0.3.0", "1.2.3"]}})", true, true},
      {"letter", R"({"set": {"versions": ["v1.0.0"]}})", true, true},
      {"short", R"({"set": {"versions": ["1.0"]}})", true, true},
      {"alpha", R"({"set": {"versions": ["1.1.0-alpha"]}})", true, true},
      {"with-two", R"({"set": {"versions": ["1.0.0", "2.0.0"]}})", true, true},
      {"one-word", R"({"set": {"versions": ["1.0.0", "one"]}})", true, true},
      {"own-socket", R"({"set": {"registered_endpoint": "none"}})", true, true},
      {"old", R"({"set": {"versions": ["0.3.0"]}})"},
      {"new", R"({"set": {"versions": ["2.0.0"]}})"},
      {"none", R"({"set": {"versions": []}})"},
      {"empty", R"({"set": {"versions": [""]}})"},
      {"words", R"({"set": {"versions": ["one"]}})"},
      {"device", R"({"set": {"type": "DevicePlugin"}})"},
      {"no-type", R"({"set": {"type": ""}})"},
      {"bad-name", R"({"set": {"registered_name": "Bad_Name!"}})", true, false,
       "kubelet takes any name, and fails when it writes CSINode"},
      {"slash", R"({"set": {"registered_name": "../csi"}})", true, false,
       "kubelet takes any name, and makes paths of it"},
      {"no-node-id", R"({"set": {"node_id": ""}})", true, false,
       "csi-peer ends before NodeGetInfo; a kubelet refuses it there"},
      {"elsewhere", R"({"set": {"registered_endpoint": "/run/elsewhere/csi.sock"}})", true, false,
       "ours has to lie in csi-endpoint-dirs; a kubelet fails when it dials"}};
  return kAll;
}

class CsiPeerTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string why = WhyNoPeer("csi-peer");
    if (!why.empty()) GTEST_SKIP() << why;
    fs::create_directories(registry());
    ASSERT_TRUE(peer_.Start({PeerPath("csi-peer"), "--registry", registry()}, verdicts(),
                            scratch() + "/csi-peer.log"));
  }
  void TearDown() override {
    peer_.End(SIGKILL);
    CsiAgentTest::TearDown();
  }

  std::string registry() const { return scratch() + "/peer"; }
  std::string verdicts() const { return scratch() + "/csi-peer.verdicts"; }
  static std::string NameOf(const Case& row) { return std::string(row.name) + ".example.com"; }

  // The same driver for the other of the two: of each its own log, and its own socket.
  CsiFakeOptions ForPeer(CsiFakeOptions options) const {
    options.directory += "-peer";
    options.log += ".peer";
    options.endpoint = scratch() + "/" + options.name + ".sock";
    options.registration = registry() + "/" + options.name + "-reg.sock";
    return options;
  }
  // It says what is to be said from its first registration on.
  static std::unique_ptr<CsiFakeDriver> Begin(CsiFakeOptions options, const std::string& command) {
    const std::string registration = std::exchange(options.registration, "");
    auto driver = std::make_unique<CsiFakeDriver>(options);
    driver->Tell(command);
    driver->Tell(R"({"set": {"registration": ")" + registration + R"("}})");
    driver->Tell(R"({"register": true})");
    return driver;
  }
  // "yes", or why not; "" as long as it was told nothing.
  static std::string ToldBy(const std::string& log) {
    std::string told;
    for (const CsiFakeEntry& entry : ReadCsiFakeLog(log)) {
      if (entry.what != "begin" || entry.rpc != "NotifyRegistrationStatus") continue;
      told = entry.text.empty() ? "yes" : entry.text;
    }
    return told;
  }
  static std::string WaitToldBy(const std::string& log) {
    Eventually(kPatience, [&] { return !ToldBy(log).empty(); });
    return ToldBy(log);
  }
  // Whether csi-peer has said this of the driver.
  bool HasVerdict(const std::string& verdict, const std::string& driver) const {
    std::istringstream lines(ReadText(verdicts()));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(verdict + " " + driver + " ")) return true;
    }
    return false;
  }

  PeerProcess peer_;
};

TEST_F(CsiPeerTest, ADriverMayBeUsedIfKubeletWouldUseItAndTheDifferencesAreKnown) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  std::vector<std::unique_ptr<CsiFakeDriver>> drivers;
  for (const Case& row : Cases()) {
    drivers.push_back(Begin(OptionsOf(NameOf(row)), row.options));
    drivers.push_back(Begin(ForPeer(OptionsOf(NameOf(row))), row.options));
  }
  for (const Case& row : Cases()) {
    SCOPED_TRACE(row.name);
    const std::string by_kubelet = WaitToldBy(ForPeer(OptionsOf(NameOf(row))).log);
    const std::string by_us = WaitToldBy(OptionsOf(NameOf(row)).log);
    EXPECT_EQ(by_kubelet == "yes", row.kubelet) << by_kubelet;
    EXPECT_EQ(by_us == "yes", row.ours) << by_us;
    EXPECT_EQ(row.kubelet != row.ours, *row.why != '\0');
    RecordProperty(row.name, "kubelet: " + by_kubelet + "; volumed: " + by_us);
  }
}

TEST_F(CsiPeerTest, ADriverWhoseSocketGoesIsDeregisteredByBothAndRegistersAnew) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string name = "comes.example.com";
  const CsiFakeOptions ours = OptionsOf(name);
  const CsiFakeOptions of_peer = ForPeer(ours);
  CsiFakeDriver first(ours);
  CsiFakeDriver second(of_peer);
  ASSERT_EQ(WaitToldBy(ours.log), "yes");
  ASSERT_EQ(WaitToldBy(of_peer.log), "yes");
  for (CsiFakeDriver* driver : {&first, &second}) driver->Tell(R"({"unregister": true})");
  EXPECT_TRUE(Eventually(kPatience, [&] { return HasVerdict("DEREGISTER", name); }))
      << ReadText(verdicts());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"get", "drivers"}).output.find("unregistered") != std::string::npos;
  })) << Ctl({"get", "drivers"}).output;
  for (CsiFakeDriver* driver : {&first, &second}) driver->Tell(R"({"register": true})");
  for (const std::string& log : {ours.log, of_peer.log}) {
    EXPECT_TRUE(Eventually(kPatience, [&] {
      int told = 0;
      for (const CsiFakeEntry& entry : ReadCsiFakeLog(log)) {
        if (entry.what == "begin" && entry.rpc == "NotifyRegistrationStatus") ++told;
      }
      return told == 2 && ToldBy(log) == "yes";
    })) << log;
  }
}

}  // namespace
}  // namespace volumed::csi_peer_test
