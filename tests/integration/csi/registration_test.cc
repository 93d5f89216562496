// How drivers register with the real daemon, and how they fail to (behaviours 31 to 44). What is
// expected is what the driver was told, and what it was asked: the words are kubelet's where there
// are some.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::registration_test {
namespace {

namespace fs = std::filesystem;

// A driver that may not be used as it is, and that is once it has been changed.
struct Refusal {
  const char* number;
  const char* what;
  const char* options = "{}";  // a command for the driver: {"set": ..}
  const char* script = "[]";
  const char* told = "";    // "": nothing while the script holds
  const char* healed = "";  // the command that puts it right; "": the script's end does
};

const std::vector<Refusal>& Refusals() {
  static const std::vector<Refusal> kAll = {
      {.number = "31",
       .what = "NodeGetInfo is not answered",
       .script = R"([{"rpc": "NodeGetInfo", "hang": true}])"},
      {.number = "32",
       .what = "GetInfo is not answered",
       .script = R"([{"rpc": "GetInfo", "hang": true}])"},
      {.number = "33",
       .what = "Probe says three times that it is not ready",
       .script = R"([{"rpc": "Probe", "times": 3, "answer": {"ready": false}}])",
       .told = "yes"},
      {.number = "34",
       .what = "Probe fails",
       .script = R"([{"rpc": "Probe", "code": 9, "message": "no disk"}])",
       .told = "no disk"},
      {.number = "31f",
       .what = "NodeGetInfo fails",
       .script = R"([{"rpc": "NodeGetInfo", "code": 13, "message": "no node"}])",
       .told = "no node"},
      {.number = "35",
       .what = "its node_id is empty",
       .options = R"({"set": {"node_id": ""}})",
       .told = "empty node_id",
       .healed = R"({"set": {"node_id": "node-a"}})"},
      {.number = "36",
       .what = "its services have another name than its registration",
       .options = R"({"set": {"registered_name": "liar.example.com"}})",
       .told = "calls itself",
       .healed = R"({"set": {"registered_name": ""}})"},
      {.number = "37o",
       .what = "its version is too old",
       .options = R"({"set": {"versions": ["0.3.0"]}})",
       .told = "\"0.3.0\"",
       .healed = R"({"set": {"versions": ["1.0.0", "0.3.0"]}})"},
      {.number = "37n",
       .what = "its version is too new",
       .options = R"({"set": {"versions": ["2.0.0"]}})",
       .told = "\"2.0.0\"",
       .healed = R"({"set": {"versions": ["1.0.0"]}})"},
      {.number = "37z",
       .what = "it has no version",
       .options = R"({"set": {"versions": []}})",
       .told = "names no versions",
       .healed = R"({"set": {"versions": ["1.2.3"]}})"},
      {.number = "42",
       .what = "its endpoint is outside",
       .options = R"({"set": {"registered_endpoint": "/run/elsewhere/csi.sock"}})",
       .told = "csi-endpoint-dirs",
       .healed = R"({"set": {"registered_endpoint": ""}})"},
      {.number = "42n",
       .what = "its endpoint is no clean path",
       .options = R"({"set": {"registered_endpoint": "../csi.sock"}})",
       .told = "no absolute, clean path",
       .healed = R"({"set": {"registered_endpoint": ""}})"}};
  return kAll;
}

class RegistrationTest : public CsiAgentTest {
 protected:
  // Its pod becomes Ready, and goes.
  void ExpectUsed(const std::string& driver, const std::string& pod) {
    const CsiTestVolume volume = VolumeOf("v-" + pod, driver);
    ASSERT_NO_FATAL_FAILURE(
        ApplyOk(DriverObject(driver, false) + Storage(volume) + PodOn(pod, {volume})));
    EXPECT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod);
    ASSERT_TRUE(Delete("Pod", pod).ok());
    EXPECT_TRUE(WaitGone(pod)) << Explain(pod);
  }
  // The socket is made anew, as the program beside a driver does when it is started again: nobody
  // waits for the daemon's next try.
  static void RegisterAnew(CsiFakeDriver& driver) {
    driver.Tell(R"({"unregister": true})");
    driver.Tell(R"({"register": true})");
  }
  // While it goes on, a driver that is well registers, and is used.
  void ExpectOthersAreUsed(const std::string& name) {
    CsiFakeDriver driver(OptionsOf(name));
    EXPECT_TRUE(WaitTold(name, "yes")) << ToldOf(name);
    ExpectUsed(name, "pod-of-" + name.substr(0, name.find('.')));
  }
  // It is not even asked, and volumectl says why; "" is not looked for.
  void ExpectNotAsked(const std::string& driver, const std::string& shown) {
    EXPECT_TRUE(
        Eventually(kPatience, [&] { return DriversText().find(shown) != std::string::npos; }))
        << shown << "\n"
        << DriversText();
    EXPECT_EQ(CountOf(driver, "GetInfo"), 0);
  }
  std::string DriversText() const { return Ctl({"get", "drivers", "-o", "yaml"}).output; }
};

TEST_F(RegistrationTest, ADriverIsRegisteredBeforeTheDaemonAndAfterIt) {
  CsiFakeDriver early(OptionsOf("early.example.com"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeDriver late(OptionsOf("late.example.com"));
  CsiFakeOptions one_socket = OptionsOf("one.example.com");
  one_socket.endpoint = one_socket.registration;
  one_socket.registration = "";
  one_socket.registered_endpoint = "none";
  CsiFakeDriver one(one_socket);
  for (const char* name : {"early.example.com", "late.example.com", "one.example.com"}) {
    EXPECT_TRUE(WaitTold(name, "yes")) << name << ": " << ToldOf(name);
    EXPECT_EQ(CountOf(name, "NodeGetInfo"), 1) << name;
    ExpectUsed(name, "pod-of-" + std::string(name).substr(0, 3));
  }
}

TEST_F(RegistrationTest, ADriverThatMayNotBeUsedIsToldWhyAndIsUsedOnceItMay) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  std::vector<std::unique_ptr<CsiFakeDriver>> drivers;
  const auto name_of = [](const Refusal& row) {
    return "r" + std::string(row.number) + ".example.com";
  };
  for (const Refusal& row : Refusals()) {
    CsiFakeOptions options = OptionsOf(name_of(row));
    const std::string registration = std::exchange(options.registration, "");
    drivers.push_back(std::make_unique<CsiFakeDriver>(options));
    drivers.back()->Tell(row.options);
    drivers.back()->Script(row.script);
    drivers.back()->Tell(R"({"set": {"registration": ")" + registration + R"("}})");
    drivers.back()->Tell(R"({"register": true})");
  }
  for (const Refusal& row : Refusals()) {
    SCOPED_TRACE(std::string(row.number) + ": " + row.what);
    const std::string name = name_of(row);
    if (*row.told != '\0') {
      EXPECT_TRUE(WaitTold(name, row.told)) << ToldOf(name);
    } else {
      EXPECT_TRUE(Eventually(kPatience, [&] { return CountOf(name, "GetInfo") > 0; }));
      EXPECT_EQ(ToldOf(name), "nothing");
    }
  }
  ExpectOthersAreUsed("well.example.com");
  for (size_t i = 0; i < drivers.size(); ++i) {
    const Refusal& row = Refusals()[i];
    SCOPED_TRACE(std::string(row.number) + ": " + row.what);
    drivers[i]->Script("[]");
    if (*row.healed != '\0') drivers[i]->Tell(row.healed);
    drivers[i]->Tell(R"({"release": true})");
    if (ToldOf(name_of(row)) != "yes") RegisterAnew(*drivers[i]);
    EXPECT_TRUE(WaitTold(name_of(row), "yes")) << ToldOf(name_of(row));
  }
  for (const Refusal& row : Refusals()) {
    SCOPED_TRACE(std::string(row.number) + ": " + row.what);
    ExpectUsed(name_of(row), "pod-" + std::string(row.number));
  }
}

// Without a new socket, too: kubelet does not try again.
TEST_F(RegistrationTest, WhatFailedIsTriedAgainByItself) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string name = "again.example.com";
  CsiFakeOptions options = OptionsOf(name);
  const std::string registration = std::exchange(options.registration, "");
  CsiFakeDriver driver(options);
  driver.Script(R"([{"rpc": "NodeGetInfo", "times": 2, "code": 14, "message": "not yet"}])");
  driver.Tell(R"({"set": {"registration": ")" + registration + R"("}})");
  driver.Tell(R"({"register": true})");
  EXPECT_TRUE(WaitTold(name, "yes")) << ToldOf(name);
  EXPECT_EQ(CountOf(name, "NodeGetInfo"), 3);
  ExpectUsed(name, "p");
}

// Behaviour 38.
TEST_F(RegistrationTest, ASecondSocketOfANameIsToldThatThereIsOne) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string name = "twice.example.com";
  auto first = std::make_unique<CsiFakeDriver>(OptionsOf(name));
  ASSERT_TRUE(WaitTold(name, "yes")) << ToldOf(name);
  CsiFakeOptions second = OptionsOf(name);
  second.directory += "-2";
  second.log = drivers_directory() + "/second.log";
  second.endpoint = root() + "/plugins/second/csi.sock";
  second.registration = root() + "/plugins_registry/second-reg.sock";
  CsiFakeDriver other(second);
  const auto told = [&] {
    std::string last;
    for (const CsiFakeEntry& entry : ReadCsiFakeLog(second.log)) {
      if (entry.what == "begin" && entry.rpc == "NotifyRegistrationStatus") {
        last = entry.text.empty() ? "yes" : entry.text;
      }
    }
    return last;
  };
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return told().find("already registered") != std::string::npos;
  })) << told();
  // One that is dead loses its name.
  first.reset();
  EXPECT_TRUE(Eventually(kPatience, [&] { return told() == "yes"; })) << told();
  ExpectUsed(name, "p");
}

// Behaviours 39 to 41: whoever may write into the directory may put a socket there.
TEST_F(RegistrationTest, ASocketThatIsNotToBeTrustedIsNotAsked) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  // The daemon's root is a mount of its own, into which nothing is renamed from outside.
  const std::string beside = root() + "/plugins";
  const auto begin = [&](const std::string& name) {
    CsiFakeOptions options = OptionsOf(name);
    options.registration = beside + "/" + name + "-reg.sock";
    return std::make_unique<CsiFakeDriver>(options);
  };
  const auto place = [this](const std::string& name) {
    return root() + "/plugins_registry/" + name + "-reg.sock";
  };
  const std::string foreign = "foreign.example.com";
  const auto of_another = begin(foreign);
  const std::string made = beside + "/" + foreign + "-reg.sock";
  ASSERT_EQ(::chown(made.c_str(), 12345, 12345), 0);
  ASSERT_EQ(::rename(made.c_str(), place(foreign).c_str()), 0) << std::strerror(errno);
  ExpectNotAsked(foreign, "is of uid 12345");

  const std::string linked = "linked.example.com";
  const auto of_link = begin(linked);
  fs::create_symlink(beside + "/" + linked + "-reg.sock", place(linked));
  ExpectNotAsked(linked, "symbolic link");

  ExpectOthersAreUsed("well.example.com");

  // The owner is what was wrong.
  ASSERT_EQ(::chown(place(foreign).c_str(), 0, 0), 0);
  EXPECT_TRUE(WaitTold(foreign, "yes")) << ToldOf(foreign);
}

// Behaviour 43.
TEST_F(RegistrationTest, AHiddenNameIsNoneUntilItIsRenamed) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string name = "hidden.example.com";
  CsiFakeOptions options = OptionsOf(name);
  const std::string shown = options.registration;
  options.registration = root() + "/plugins_registry/." + name;
  CsiFakeDriver driver(options);
  ExpectOthersAreUsed("well.example.com");
  EXPECT_EQ(CountOf(name, "GetInfo"), 0);
  ASSERT_EQ(::rename(options.registration.c_str(), shown.c_str()), 0);
  EXPECT_TRUE(WaitTold(name, "yes")) << ToldOf(name);
  ExpectUsed(name, "p");
}

// Behaviour 44.
TEST_F(RegistrationTest, ATopologyThatContradictsAnotherDriversIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeOptions one = OptionsOf("one.example.com");
  one.topology = {{"example.com/zone", "a"}};
  CsiFakeDriver first(one);
  ASSERT_TRUE(WaitTold(one.name, "yes")) << ToldOf(one.name);
  const std::string node = Ctl({"describe", "node", "it-node"}).output;
  EXPECT_NE(node.find("example.com/zone=a"), std::string::npos) << node;
  CsiFakeOptions two = OptionsOf("two.example.com");
  two.topology = {{"example.com/zone", "b"}};
  CsiFakeDriver second(two);
  EXPECT_TRUE(WaitTold(two.name, "detected topology value collision")) << ToldOf(two.name);
  second.Tell(R"({"set": {"topology": null}})");
  RegisterAnew(second);
  EXPECT_TRUE(WaitTold(two.name, "yes")) << ToldOf(two.name);
}

// A driver whose socket in the directory is gone takes away what it has set up, and gets nothing
// new.
TEST_F(RegistrationTest, AnUnregisteredDriverTakesAwayAndSetsNothingUp) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string name = "going.example.com";
  CsiFakeDriver driver(OptionsOf(name));
  const CsiTestVolume old = VolumeOf("v-old", name);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(name, false) + Storage(old) + PodOn("old", {old})));
  ASSERT_TRUE(WaitPhase("old", "Ready")) << Explain("old");
  driver.Tell(R"({"unregister": true})");
  const CsiTestVolume fresh = VolumeOf("v-new", name);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage(fresh) + PodOn("new", {fresh})));
  EXPECT_TRUE(WaitSays("new", "is not registered any more")) << Explain("new");
  ASSERT_TRUE(Delete("Pod", "old").ok());
  EXPECT_TRUE(WaitGone("old")) << Explain("old");
  driver.Tell(R"({"register": true})");
  EXPECT_TRUE(WaitPhase("new", "Ready")) << Explain("new");
  ASSERT_TRUE(Delete("Pod", "new").ok());
  EXPECT_TRUE(WaitGone("new")) << Explain("new");
  EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
}

}  // namespace
}  // namespace volumed::registration_test
