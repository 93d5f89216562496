// Registrations and drivers under random events: whatever came before, once all is well a driver is
// used, and nothing is left of what went.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "run_numbers.h"
#include "unit/csi/registration_fixture.h"

namespace volumed {
namespace {

// Two drivers, each with two places at which it may be and register.
class RandomEvents : public RegistrationFixture {
 public:
  void TestBody() override {}

  void Run(uint64_t seed) {
    random_.seed(seed);
    for (int i = 0; i < 60; ++i) {
      Step();
      CheckOneOwner(seed);
    }
    Heal();
    scheduler_.RunFor(minutes(8));
    for (int name = 0; name < 2; ++name) {
      EXPECT_FALSE(drivers_->LaneOf(Name(name)).closed)
          << "seed " << seed << ": " << drivers_->WhyAway(Name(name));
      EXPECT_EQ(StateOf(SocketName(name, 0)), RegistrationState::kRegistered)
          << "seed " << seed << ": " << Socket(SocketName(name, 0)).reason;
    }
    EXPECT_EQ(dialer_.callers(), 2) << "seed " << seed;
    scheduler_.Post([this] {
      registration_.reset();
      drivers_.reset();
    });
    scheduler_.RunFor(minutes(3));
    EXPECT_EQ(dialer_.callers(), 0) << "seed " << seed;
    EXPECT_FALSE(scheduler_.HasReady());
  }

 private:
  static std::string Name(int name) { return "d" + std::to_string(name) + ".example.com"; }
  static std::string SocketName(int name, int place) {
    return "d" + std::to_string(name) + "-" + std::to_string(place) + ".sock";
  }
  static std::string Endpoint(int name, int place) {
    return "/kubelet/plugins/d" + std::to_string(name) + std::to_string(place) + ".sock";
  }
  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }

  void StartDriver(int name, int place) {
    driver_[name][place] = Serve(Endpoint(name, place), Name(name));
    Tell(What::kEndpoint, Endpoint(name, place));
  }
  void StartRegistrar(int name, int place) {
    registrar_[name][place] = Registrar(SocketName(name, place), Name(name), Endpoint(name, place));
  }
  void Step() {
    const int name = Pick(2);
    const int place = Pick(2);
    auto& driver = driver_[name][place];
    auto& registrar = registrar_[name][place];
    switch (Pick(10)) {
      case 0:
        StartDriver(name, place);
        break;
      case 1:
        if (driver != nullptr) dialer_.Kill(driver);
        break;
      case 2:
        dialer_.Remove(Endpoint(name, place));
        if (driver != nullptr) dialer_.Kill(driver);
        Tell(What::kEndpoint, Endpoint(name, place));
        break;
      case 3:
        StartRegistrar(name, place);
        break;
      case 4:
        dialer_.Remove(PathOf(SocketName(name, place)));
        Tell(What::kWent, SocketName(name, place));
        break;
      case 5:
        if (registrar != nullptr) dialer_.Kill(registrar);
        break;
      case 6: {
        static const char* const kRpcs[] = {"NodeGetInfo", "Probe", "GetPluginInfo", "GetInfo",
                                            "NotifyRegistrationStatus"};
        const int rpc = Pick(5);
        auto& process = rpc < 3 ? driver : registrar;
        if (process == nullptr) break;
        Pick(2) == 0 ? process->Hang(kRpcs[rpc]) : process->Unhang(kRpcs[rpc]);
        break;
      }
      case 7:
        if (driver != nullptr) dialer_.BreakConnections(driver);
        break;
      case 8:
        store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
        break;
      default:
        break;
    }
    static constexpr Duration kTimes[] = {Duration::zero(), milliseconds(20), milliseconds(700),
                                          seconds(15), minutes(3)};
    scheduler_.RunFor(kTimes[Pick(5)]);
  }
  void CheckOneOwner(uint64_t seed) {
    std::map<std::string, int> owners;
    for (const RegisteredSocket& socket : registration_->Sockets()) {
      const bool has = socket.state == RegistrationState::kRegistered ||
                       socket.state == RegistrationState::kConnecting ||
                       socket.state == RegistrationState::kNotifying;
      if (has) {
        EXPECT_LE(++owners[socket.driver], 1) << "seed " << seed << ": " << socket.driver;
      }
    }
    // Nobody may use a driver that is not registered, nor wait for one that is well.
    for (const DriverView& view : drivers_->List()) {
      if (!view.lane.closed) {
        EXPECT_TRUE(view.health.connected) << "seed " << seed;
      }
    }
  }
  void Heal() {
    for (int name = 0; name < 2; ++name) {
      dialer_.Remove(PathOf(SocketName(name, 1)));
      Tell(What::kWent, SocketName(name, 1));
      StartDriver(name, 0);
      StartRegistrar(name, 0);
    }
  }

  std::mt19937_64 random_;
  std::shared_ptr<FakeCsiProcess> driver_[2][2];
  std::shared_ptr<FakeCsiProcess> registrar_[2][2];
};

TEST(RegistrationRandomTest, WhateverCameBeforeADriverThatIsWellIsUsedAndNothingIsLeft) {
  const uint64_t seeds = NumberOfRun("VOLUMED_SEEDS", 300);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomEvents events;
    events.Run(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace volumed
