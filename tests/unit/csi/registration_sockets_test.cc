// A registration with all real parts: sockets, inotify, gRPC, threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csi.pb.h"
#include "csi/csi_drivers.h"
#include "csi/registration.h"
#include "csi/registry_watch.h"
#include "csi/socket_dialer.h"
#include "fakes/memory_record_store.h"
#include "unit/csi/channel_fixture.h"
#include "unit/csi/real_driver.h"
#include "unit/csi/scheduler_thread.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

// Knows how many of the callers that it made are still held.
class CountingDialer final : public CsiDialer {
 public:
  CountingDialer(const SocketDialer::Parts& parts, SocketOwners owners)
      : dialer_(parts, std::move(owners), CsiChannelOptions{}) {}

  Result<std::shared_ptr<const CsiSocket>> Open(const SafePath& place, Deadline deadline) override {
    return dialer_.Open(place, deadline);
  }
  Result<std::shared_ptr<CsiCaller>> Dial(const std::string& driver,
                                          std::shared_ptr<const CsiSocket> socket,
                                          StateSeen state_seen) override {
    ASSIGN_OR_RETURN(std::shared_ptr<CsiCaller> caller,
                     dialer_.Dial(driver, std::move(socket), std::move(state_seen)));
    held_->happening.Happened([&] { ++held_->callers; });
    CsiCaller* const pointer = caller.get();
    return std::shared_ptr<CsiCaller>(
        pointer, [held = held_, caller = std::move(caller)](CsiCaller*) mutable {
          caller.reset();
          held->happening.Happened([&] { --held->callers; });
        });
  }
  bool WaitUntilAllAreGone() {
    return held_->happening.WaitFor([&] { return held_->callers == 0; });
  }

 private:
  struct Held {
    Happening happening;
    int callers = 0;
  };
  SocketDialer dialer_;
  const std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

class RegistrationSocketsTest : public testing::Test {
 protected:
  static constexpr const char* kName = "disk.example.com";

  RegistrationSocketsTest() {
    fs::create_directories(root_ / "plugins" / "disk");
    auto watch = InotifyRegistryWatch::Create((root_ / "plugins_registry").string(), {});
    scheduler_.OnControl([&] {
      drivers_ = std::make_unique<CsiDrivers>(
          CsiDrivers::Parts{scheduler_.scheduler(), dialer_, store_, log_},
          CsiDriversSettings{.endpoint_directories = {root_.string()}}, CsiDriversHooks{});
      drivers_->AddListener([this](const std::string&, DriverEvent event) {
        happening_.Happened([&] { last_event_ = event; });
      });
      registration_ = std::make_unique<CsiRegistration>(
          CsiRegistration::Parts{scheduler_.scheduler(), &scheduler_.scheduler().loop(), dialer_,
                                 *drivers_, log_},
          *std::move(watch),
          CsiRegistrationSettings{.directory = (root_ / "plugins_registry").string()},
          CsiRegistration::Hooks{.directory_changed =
                                     [this](const std::optional<Error>&) {
                                       happening_.Happened([&] { looked_ = true; });
                                     },
                                 .ended =
                                     [this](const std::string&, bool well) {
                                       happening_.Happened([&] { registered_ += well ? 1 : 0; });
                                     }});
      registration_->Start();
    });
    happening_.WaitFor([&] { return looked_; });
  }
  ~RegistrationSocketsTest() override {
    scheduler_.OnControl([&] {
      registration_.reset();
      drivers_.reset();
    });
    // A look at a socket that still goes on uses the dialer, which ends before the scheduler; and a
    // thread of gRPC with an answer may have the last share of a caller, which the scheduler
    // destroys.
    scheduler_.WaitUntilIdle();
    EXPECT_TRUE(dialer_.WaitUntilAllAreGone());
    scheduler_.WaitUntilIdle();
  }

  std::unique_ptr<RealDriver> Start() {
    return std::make_unique<RealDriver>((root_ / "plugins" / "disk" / "csi.sock").string(), kName);
  }
  std::unique_ptr<RealDriver> StartRegistrar() {
    return StartRealRegistrar(root_ / "plugins_registry", "disk.sock", kName,
                              (root_ / "plugins" / "disk" / "csi.sock").string());
  }
  bool WaitForOpenLane(bool open) {
    return happening_.WaitFor([&] { return drivers_->LaneOf(kName).closed != open; });
  }

  const RealClock clock_{};
  SocketDirectory directory_;
  const fs::path root_ = fs::path(directory_.Socket("k"));
  Logger log_{LogOptions{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  Happening happening_;
  bool looked_ = false;
  int registered_ = 0;
  DriverEvent last_event_ = DriverEvent::kAway;
  SchedulerThread scheduler_;
  CsiStateWatch watch_;  // its thread tells the scheduler what became of connections
  CountingDialer dialer_{{.scheduler = scheduler_.scheduler(), .clock = clock_, .watch = watch_},
                         {static_cast<uint32_t>(::getuid())}};
  std::unique_ptr<CsiDrivers> drivers_;
  std::unique_ptr<CsiRegistration> registration_;
};

TEST_F(RegistrationSocketsTest, ADriverRegistersIsCalledDiesAndComesBackAtTheSamePath) {
  auto driver = Start();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(happening_.WaitFor([&] { return registered_ == 1; }));
  ASSERT_TRUE(WaitForOpenLane(true));
  const auto stage = [&] {
    return drivers_->Find(kName)->Call<::csi::v1::NodeStageVolumeResponse>(
        ::csi::v1::NodeStageVolumeRequest(), {Deadline::After(clock_, std::chrono::seconds(20))});
  };
  EXPECT_TRUE(stage().ok());
  EXPECT_TRUE(store_.Find(kCsiDriverRecordKind, kName).has_value());
  driver.reset();
  ASSERT_TRUE(WaitForOpenLane(false));
  EXPECT_FALSE(stage().ok());
  driver = Start();
  ASSERT_TRUE(WaitForOpenLane(true));
  EXPECT_TRUE(stage().ok());
  EXPECT_EQ(registered_, 1);
}

TEST_F(RegistrationSocketsTest, ARegistrarWhoseSocketIsRemovedUnregistersItsDriver) {
  auto driver = Start();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(happening_.WaitFor([&] { return registered_ == 1; }));
  ASSERT_TRUE(WaitForOpenLane(true));
  fs::remove(root_ / "plugins_registry" / "disk.sock");
  ASSERT_TRUE(WaitForOpenLane(false));
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
}

TEST_F(RegistrationSocketsTest, ADriverThatComesAfterItsRegistrarIsRegisteredWhenItsSocketIsMade) {
  auto registrar = StartRegistrar();
  ASSERT_TRUE(registrar->server().WaitForArrived(1));
  auto driver = Start();
  EXPECT_TRUE(happening_.WaitFor([&] { return registered_ == 1; }));
}

}  // namespace
}  // namespace volumed
