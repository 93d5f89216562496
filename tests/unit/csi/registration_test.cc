// CsiRegistration: the order of events between a socket that appears and a driver that is used.
#include "csi/registration.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unit/csi/registration_fixture.h"

namespace volumed {
namespace {

using What = RegistryChange::What;
using RegistrationTest = RegistrationFixture;

TEST_F(RegistrationTest, ADriverThatAppearsIsUsedAndThenToldSo) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_EQ(Told(registrar), "yes");
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(Socket().driver, kName);
  EXPECT_EQ(Socket().reason, "");
  EXPECT_EQ(registered_, 1);
  // The registration's connection is closed, the driver's stays.
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(dialer_.callers(), 1);
  EXPECT_TRUE(watch_->watched.count(kEndpoint) == 1);
}

TEST_F(RegistrationTest, TheRowIsOnDiskBeforeTheDriverIsToldThatItIsRegistered) {
  auto driver = Serve();
  auto registrar = Registrar();
  bool was_recorded = false;
  registrar->Handle("NotifyRegistrationStatus",
                    [&](const google::protobuf::Message&) -> CsiChannel::AnyAnswer {
                      was_recorded = store_.Find(kCsiDriverRecordKind, kName).has_value();
                      return std::unique_ptr<google::protobuf::Message>(
                          std::make_unique<::pluginregistration::RegistrationStatusResponse>());
                    });
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_TRUE(was_recorded);
}

TEST_F(RegistrationTest, WithoutAnEndpointTheDriverIsAtTheSameSocket) {
  auto process = Serve(PathOf(kSocket));
  Info(*process, kName, "");
  Tell(What::kCame, kSocket);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_EQ(drivers_->FactsOf(kName)->endpoint, PathOf(kSocket));
}

TEST_F(RegistrationTest, ASocketThatIsRefusedIsShownWithItsReasonAndTriedAgainWhenItChanges) {
  auto driver = Serve();
  auto registrar = Registrar();
  dialer_.Refuse(
      PathOf(kSocket),
      Error::NotApplied(Code::kPermissionDenied, "is of uid 1000").About(kCsiSocketRefused));
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(StateOf(), RegistrationState::kRefused);
  EXPECT_NE(Socket().reason.find("is of uid 1000"), std::string::npos);
  EXPECT_EQ(dialer_.opened(PathOf(kSocket)), 1);
  EXPECT_EQ(Told(registrar), "nothing");
  dialer_.Allow(PathOf(kSocket));
  Tell(What::kChanged, kSocket);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

// It stayed refused, with the old list of owners, until somebody touched the socket.
TEST_F(RegistrationTest, ASocketThatAReloadAllowsWasRefusedUntilItChanged) {
  auto driver = Serve();
  auto registrar = Registrar();
  dialer_.Refuse(
      PathOf(kSocket),
      Error::NotApplied(Code::kPermissionDenied, "is of uid 1000").About(kCsiSocketRefused));
  scheduler_.RunFor(minutes(1));
  ASSERT_EQ(StateOf(), RegistrationState::kRefused);
  dialer_.Allow(PathOf(kSocket));
  scheduler_.Post([this] { registration_->OwnersChanged(); });
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

TEST_F(RegistrationTest, AnotherTypeOfPluginIsToldSoByKubeletsWordsAndNotTriedAgain) {
  auto registrar = Registrar(kSocket, "gpu.example.com", "", {"v1beta1"}, "DevicePlugin");
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(StateOf(), RegistrationState::kEnded);
  EXPECT_EQ(Told(registrar),
            "RegisterPlugin error -- no handler registered for plugin type: DevicePlugin at socket "
            "/kubelet/plugins_registry/disk-reg.sock");
  EXPECT_EQ(registrar->calls("GetInfo"), 1);
  EXPECT_EQ(dialer_.callers(), 0);
}

TEST_F(RegistrationTest, VersionsOtherThanOneAreRefusedAndTheTextNamesThem) {
  auto driver = Serve();
  struct Case {
    std::vector<std::string> versions;
    std::string text;
  };
  for (const Case& c : {Case{{"0.3.0"}, "is \"0.3.0\""}, Case{{"0.3.0", "2.0.0"}, "is \"0.3.0\""},
                        Case{{"2.0.0"}, "is \"2.0.0\""}, Case{{}, "names no versions"},
                        Case{{"new"}, "none is a version"}}) {
    auto registrar = Registrar(kSocket, kName, kEndpoint, c.versions);
    scheduler_.RunFor(milliseconds(1));
    EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
    EXPECT_NE(Told(registrar).find(c.text), std::string::npos) << Told(registrar);
    EXPECT_EQ(Told(registrar).find("RegisterPlugin error -- plugin validation failed with err"),
              0u);
    told().clear();
  }
}

TEST_F(RegistrationTest, ANameThatIsNoneIsRefused) {
  auto registrar = Registrar(kSocket, "-bad/name", kEndpoint);
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
  EXPECT_NE(Told(registrar).find("is no name of a CSI driver"), std::string::npos);
}

TEST_F(RegistrationTest, AnEndpointOutsideTheDirectoriesIsRefusedAndSaysWhichKeyAllowsIt) {
  auto registrar = Registrar(kSocket, kName, "/tmp/evil.sock");
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(StateOf(), RegistrationState::kRefused);
  EXPECT_NE(Told(registrar).find("csi-endpoint-dirs"), std::string::npos);
  EXPECT_EQ(dialer_.opened("/tmp/evil.sock"), 0);
}

TEST_F(RegistrationTest, ADriverThatDoesNotListenYetIsRegisteredOnceItsSocketIsThere) {
  auto registrar = Registrar();
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
  EXPECT_NE(Told(registrar).find("plugin registration failed"), std::string::npos);
  ASSERT_TRUE(Socket().next_try.has_value());
  const TimePoint before = scheduler_.clock().Now();
  auto driver = Serve();
  Tell(What::kEndpoint, kEndpoint);
  scheduler_.RunUntil([&] { return StateOf() == RegistrationState::kRegistered; }, minutes(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_LE(scheduler_.clock().Now() - before, milliseconds(1));
}

TEST_F(RegistrationTest, WhatFailsIsTriedAgainAfterKubeletsTimes) {
  auto registrar = Registrar();
  scheduler_.RunFor(milliseconds(1));
  // 0.5, 1, 2 .. 64, 122, 122 s; the first one comes twice, for the endpoint was not watched.
  const int at_first = registrar->calls("GetInfo");
  scheduler_.RunFor(seconds(128));
  EXPECT_EQ(registrar->calls("GetInfo") - at_first, 8);
  scheduler_.RunFor(seconds(244));
  EXPECT_EQ(registrar->calls("GetInfo") - at_first, 10);
}

TEST_F(RegistrationTest, ARegistrarThatHangsInGetInfoIsGivenUpAfterASecond) {
  auto driver = Serve();
  auto registrar = Registrar();
  registrar->Hang("GetInfo");
  scheduler_.RunFor(milliseconds(900));
  EXPECT_EQ(StateOf(), RegistrationState::kAsking);
  scheduler_.RunFor(milliseconds(200));
  EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
  registrar->Unhang("GetInfo");
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

TEST_F(RegistrationTest, ANodeGetInfoThatHangsOrFailsIsTriedAgainWhichKubeletDoesNot) {
  auto driver = Serve();
  driver->Hang("NodeGetInfo");
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(10));
  EXPECT_EQ(StateOf(), RegistrationState::kConnecting);
  scheduler_.RunFor(milliseconds(110'200));
  EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
  EXPECT_NE(Told(registrar).find("NodeGetInfo"), std::string::npos);
  driver->Unhang("NodeGetInfo");
  scheduler_.RunFor(seconds(2));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

TEST_F(RegistrationTest, ASocketOfWhichNobodyListensYetIsTriedAgainSoon) {
  auto driver = Serve();
  dialer_.Bind(PathOf(kSocket));
  Tell(What::kCame, kSocket);
  scheduler_.RunFor(milliseconds(40));
  auto registrar = std::make_shared<FakeCsiProcess>();
  Info(*registrar, kName, kEndpoint);
  dialer_.Listen(PathOf(kSocket), registrar);
  scheduler_.RunFor(milliseconds(100));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

TEST_F(RegistrationTest, ADriverWhoseSocketGoesIsUnregisteredAndItsFactsStay) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  Tell(What::kWent, kSocket);
  scheduler_.RunFor(seconds(1));
  EXPECT_TRUE(registration_->Sockets().empty());
  EXPECT_EQ(State(), CsiDriverState::kUnregistered);
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-a");
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
}

TEST_F(RegistrationTest, ASocketThatIsMadeAnewIsRegisteredAnew) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  const int before = driver->calls("NodeGetInfo");
  watch_->changes.push_back({What::kWent, kSocket});
  auto again = Registrar();
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_EQ(Told(again), "yes");
  EXPECT_EQ(driver->calls("NodeGetInfo"), before + 1);
  EXPECT_EQ(Count(DriverEvent::kRegistered), 2);
}

TEST_F(RegistrationTest, ASecondSocketOfANameWaitsUntilTheFirstGoes) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  auto other = Serve("/kubelet/plugins/disk-2/csi.sock");
  auto second = Registrar("disk-2-reg.sock", kName, "/kubelet/plugins/disk-2/csi.sock");
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf("disk-2-reg.sock"), RegistrationState::kWaiting);
  EXPECT_NE(Told(second).find("Another driver with the same name is already registered with a "
                              "higher supported version"),
            std::string::npos)
      << Told(second);
  EXPECT_EQ(other->calls("NodeGetInfo"), 0);
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  scheduler_.RunFor(minutes(5));
  const TimePoint before = scheduler_.clock().Now();
  Tell(What::kWent, kSocket);
  scheduler_.RunUntil([&] { return StateOf("disk-2-reg.sock") == RegistrationState::kRegistered; },
                      minutes(1));
  EXPECT_EQ(StateOf("disk-2-reg.sock"), RegistrationState::kRegistered);
  EXPECT_LE(scheduler_.clock().Now() - before, milliseconds(1));
  EXPECT_EQ(drivers_->FactsOf(kName)->endpoint, "/kubelet/plugins/disk-2/csi.sock");
}

TEST_F(RegistrationTest, ADriverThatDiedAndLeftItsSocketsLosesItsNameToAnotherSocket) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  auto other = Serve("/kubelet/plugins/disk-2/csi.sock");
  auto second = Registrar("disk-2-reg.sock", kName, "/kubelet/plugins/disk-2/csi.sock");
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf("disk-2-reg.sock"), RegistrationState::kWaiting);
  dialer_.Kill(driver);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf("disk-2-reg.sock"), RegistrationState::kRegistered);
  EXPECT_EQ(StateOf(), RegistrationState::kEnded);
  EXPECT_NE(Socket().reason.find("registered anew by"), std::string::npos);
  // Its end does not take the name from the other one.
  Tell(What::kWent, kSocket);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

// With kubelet a higher version takes the name, and its end leaves nobody registered.
TEST_F(RegistrationTest, AHigherVersionTakesNoNameThatALiveDriverHas) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  auto other = Serve("/kubelet/plugins/disk-2/csi.sock");
  auto second =
      Registrar("disk-2-reg.sock", kName, "/kubelet/plugins/disk-2/csi.sock", {"1.0.0", "1.10.0"});
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf("disk-2-reg.sock"), RegistrationState::kWaiting);
  EXPECT_NE(Told(second).find("is already registered, and lives"), std::string::npos)
      << Told(second);
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

// It stayed unregistered for ever, though its own socket was there.
TEST_F(RegistrationTest, ADriverThatLostItsNameHasItAgainWhenTheOtherOneGoes) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  auto other = Serve("/kubelet/plugins/disk-2/csi.sock");
  auto second = Registrar("disk-2-reg.sock", kName, "/kubelet/plugins/disk-2/csi.sock");
  scheduler_.RunFor(seconds(1));
  dialer_.Kill(driver);
  scheduler_.RunFor(seconds(1));
  ASSERT_EQ(StateOf(), RegistrationState::kEnded);
  auto again = Serve();
  Tell(What::kWent, "disk-2-reg.sock");
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

TEST_F(RegistrationTest, TwoSocketsOfANameAtOnceEndInOneThatIsRegistered) {
  auto driver = Serve();
  auto other = Serve("/kubelet/plugins/disk-2/csi.sock");
  Registrar();
  Registrar("disk-2-reg.sock", kName, "/kubelet/plugins/disk-2/csi.sock");
  scheduler_.RunFor(minutes(5));
  int count = 0;
  for (const RegisteredSocket& socket : registration_->Sockets()) {
    count += socket.state == RegistrationState::kRegistered ? 1 : 0;
  }
  EXPECT_EQ(count, 1);
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

TEST_F(RegistrationTest, ADriverThatCannotBeToldThatItIsRegisteredIsNot) {
  auto driver = Serve();
  auto registrar = Registrar();
  registrar->Hang("NotifyRegistrationStatus");
  scheduler_.RunFor(seconds(4));
  EXPECT_EQ(StateOf(), RegistrationState::kNotifying);
  scheduler_.RunFor(milliseconds(1100));
  EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  registrar->Unhang("NotifyRegistrationStatus");
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_FALSE(drivers_->LaneOf(kName).closed);
}

TEST_F(RegistrationTest, ASocketThatGoesWhileItIsAskedLeavesNothing) {
  auto driver = Serve();
  driver->Hang("NodeGetInfo");
  Registrar();
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StateOf(), RegistrationState::kConnecting);
  Tell(What::kWent, kSocket);
  scheduler_.RunFor(seconds(1));
  EXPECT_TRUE(registration_->Sockets().empty());
  EXPECT_EQ(drivers_->Find(kName), nullptr);
  EXPECT_EQ(dialer_.callers(), 0);
}

TEST_F(RegistrationTest, WhatADriverSaysWhileItIsConnectedIsShown) {
  auto driver = Serve();
  ::csi::v1::ProbeResponse not_ready;
  not_ready.mutable_ready()->set_value(false);
  driver->Answer("Probe", not_ready);
  Registrar();
  scheduler_.RunFor(seconds(3));
  EXPECT_EQ(StateOf(), RegistrationState::kConnecting);
  EXPECT_EQ(Socket().reason, "it says that it is not ready");
  driver->Answer("Probe", ::csi::v1::ProbeResponse());
  scheduler_.RunFor(seconds(2));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
}

TEST_F(RegistrationTest, ADirectoryThatCannotBeWatchedIsToldOnceAndLookedAtAgain) {
  ASSERT_EQ(directory_.size(), 1u);
  EXPECT_FALSE(directory_[0].has_value());
  watch_->error = Error::NotApplied(Code::kResourceExhausted, "no watches left");
  Tell(What::kChanged, "x");
  scheduler_.RunFor(minutes(2));
  ASSERT_EQ(directory_.size(), 2u);
  EXPECT_TRUE(directory_[1].has_value());
  EXPECT_GE(watch_->looks, 8);
  watch_->error.reset();
  scheduler_.RunFor(minutes(3));
  ASSERT_EQ(directory_.size(), 3u);
  EXPECT_FALSE(directory_[2].has_value());
  const int looks = watch_->looks;
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(watch_->looks, looks);
}

TEST_F(RegistrationTest, WhenNothingHappensNothingIsDone) {
  auto driver = Serve();
  Registrar();
  settings_.driver.probe_period = Duration::zero();
  scheduler_.RunFor(minutes(1));
  drivers_->SetSettings(settings_.driver);
  const uint64_t steps = scheduler_.steps();
  scheduler_.RunFor(minutes(60));
  EXPECT_EQ(scheduler_.steps(), steps);
}

TEST_F(RegistrationTest, ARegisteredDriverOfTheLastRunIsRegisteredByTheFirstLook) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  scheduler_.Post([this] { registration_.reset(); });
  scheduler_.RunFor(milliseconds(1));
  Restart();
  EXPECT_TRUE(drivers_->FactsOf(kName).ok());
  watch_ = std::make_shared<ScriptedWatch>();
  watch_->changes.push_back({What::kCame, kSocket});
  Begin();
  scheduler_.RunFor(milliseconds(10));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

TEST_F(RegistrationTest, ADriverWhoseRegistrarIsGoneSaysWhichSocketIsToBeServedAgain) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  dialer_.Kill(registrar);
  for (const bool is_there : {true, false}) {
    scheduler_.Post([this] { registration_.reset(); });
    scheduler_.RunFor(milliseconds(1));
    dialer_.Kill(driver);
    Restart();
    watch_ = std::make_shared<ScriptedWatch>();
    if (is_there) watch_->changes.push_back({What::kCame, kSocket});
    Begin();
    scheduler_.RunFor(seconds(5));
    driver = Serve();
    scheduler_.RunFor(seconds(20));
    EXPECT_EQ(State(), CsiDriverState::kUnregistered);
    const std::string why = drivers_->WhyAway(kName);
    const std::string socket = is_there
                                   ? "nobody listens at " + PathOf(kSocket)
                                   : "registration socket " + PathOf(kSocket) + ": it is not there";
    EXPECT_NE(why.find("has not registered since the agent started: its registrar has to be "
                       "started (" +
                       socket + "); until then it only takes volumes away"),
              std::string::npos)
        << why;
  }
}

// One started the registrar again and again, which had ended because it was refused.
TEST_F(RegistrationTest, TheReasonOfARefusalWasLostWithTheEndOfTheRegistrar) {
  auto driver = Serve();
  auto registrar = Registrar();
  scheduler_.RunFor(seconds(1));
  ASSERT_EQ(StateOf(), RegistrationState::kRegistered);
  dialer_.Refuse(
      PathOf(kSocket),
      Error::NotApplied(Code::kPermissionDenied, "is of uid 1000").About(kCsiSocketRefused));
  Tell(What::kWent, kSocket);
  Tell(What::kCame, kSocket);
  scheduler_.RunFor(seconds(1));
  const std::string refused = drivers_->WhyAway(kName);
  EXPECT_NE(refused.find("its registration was refused at "), std::string::npos) << refused;
  EXPECT_NE(refused.find("is of uid 1000"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("has to be started"), std::string::npos) << "it runs: " << refused;
  dialer_.Allow(PathOf(kSocket));
  dialer_.Kill(registrar);
  Tell(What::kChanged, kSocket);
  scheduler_.RunFor(seconds(1));
  const std::string ended = drivers_->WhyAway(kName);
  EXPECT_NE(ended.find("its registrar has to be started (nobody listens at " + PathOf(kSocket) +
                       "); its registration was refused at "),
            std::string::npos)
      << ended;
  EXPECT_NE(Socket().reason.find("; it was refused at "), std::string::npos) << Socket().reason;
  registrar = Registrar();
  scheduler_.RunFor(seconds(30));
  EXPECT_EQ(StateOf(), RegistrationState::kRegistered);
  EXPECT_EQ(drivers_->WhyAway(kName), "");
}

TEST_F(RegistrationTest, ARetryByHandIsMadeAtOnce) {
  Registrar();
  scheduler_.RunFor(minutes(10));
  const int before = dialer_.opened(PathOf(kSocket));
  scheduler_.Post([this] { registration_->Retry(kName); });
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(dialer_.opened(PathOf(kSocket)), before + 1);
}

}  // namespace
}  // namespace volumed
