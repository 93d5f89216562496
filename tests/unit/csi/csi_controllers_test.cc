// CsiDrivers: controllers at sockets of their own, and those that cannot be reached.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "csi/csi_drivers.h"
#include "unit/csi/registered_driver_fixture.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

class CsiControllerTest : public RegisteredDriverFixture {
 protected:
  using ControllerRpc = ::csi::v1::ControllerServiceCapability::RPC;
  static constexpr const char* kController = "/run/disk/controller.sock";

  // The settings name this socket for a driver of this name.
  void Configure(const std::string& driver = kName,
                 const SafePath& place = {"/run/disk", "controller.sock"}) {
    settings_.controllers[driver] = place;
    Restart();
  }
  std::shared_ptr<FakeCsiProcess> ServeController(const std::string& name = kName) {
    auto controller = Serve(kController, name);
    ::csi::v1::ControllerGetCapabilitiesResponse can;
    can.add_capabilities()->mutable_rpc()->set_type(ControllerRpc::CREATE_DELETE_VOLUME);
    controller->Answer("ControllerGetCapabilities", can);
    return controller;
  }
  using Deleted = std::optional<Result<::csi::v1::DeleteVolumeResponse>>;
  // The answer, once there is one.
  std::shared_ptr<Deleted> BeginDelete() {
    auto answer = std::make_shared<Deleted>();
    CsiCallOptions options;
    options.deadline = Deadline::After(scheduler_.clock(), seconds(10));
    drivers_->Find(kName)->Start<::csi::v1::DeleteVolumeResponse>(
        ::csi::v1::DeleteVolumeRequest(), options, [answer](const auto& told) { *answer = told; });
    return answer;
  }
  // Why the driver makes no volumes, once it has registered.
  std::string WhyNone() {
    RegisterWell();
    scheduler_.RunFor(seconds(1));
    EXPECT_EQ(State(), CsiDriverState::kReady);
    return drivers_->WhyNoProvisioner(kName);
  }
  // The controller of a driver that makes volumes.
  std::shared_ptr<FakeCsiProcess> UseController() {
    Configure();
    auto controller = ServeController();
    EXPECT_EQ(WhyNone(), "");
    return controller;
  }
  // It answers nothing any more, and a call has waited for it in vain.
  void FallSilent(FakeCsiProcess& controller) {
    controller.Hang("DeleteVolume");
    controller.Hang("Probe");
    BeginDelete();
    scheduler_.RunFor(seconds(21));
  }
};

TEST_F(CsiControllerTest, TheControllerOfADriverMayBeAtASocketOfItsOwn) {
  const SafePath place{"/kubelet", "plugins/disk/controller.sock"};
  settings_.controllers[kName] = place;
  Restart();
  auto controller = Serve(place.Display());
  ::csi::v1::ControllerGetCapabilitiesResponse can;
  can.add_capabilities()->mutable_rpc()->set_type(
      ::csi::v1::ControllerServiceCapability::RPC::CREATE_DELETE_VOLUME);
  controller->Answer("ControllerGetCapabilities", can);
  RegisterWell();
  scheduler_.RunFor(seconds(1));
  EXPECT_TRUE(drivers_->FactsOf(kName)->HasController(
      ::csi::v1::ControllerServiceCapability::RPC::CREATE_DELETE_VOLUME));
  EXPECT_EQ(process_->calls("ControllerGetCapabilities"), 0);
  std::optional<Result<::csi::v1::DeleteVolumeResponse>> answer;
  drivers_->Find(kName)->Start<::csi::v1::DeleteVolumeResponse>(
      ::csi::v1::DeleteVolumeRequest(), {}, [&](const auto& told) { answer = told; });
  scheduler_.RunFor(seconds(1));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ok());
  EXPECT_EQ(controller->calls("DeleteVolume"), 1);
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  // The node's part does not depend on it.
  dialer_.Kill(controller);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kReady);
  drivers_->Find(kName)->Start<::csi::v1::DeleteVolumeResponse>(
      ::csi::v1::DeleteVolumeRequest(), {}, [&](const auto& told) { answer = told; });
  scheduler_.RunFor(seconds(1));
  ASSERT_FALSE(answer->ok());
  EXPECT_NE(answer->error().message().find("controller.sock"), std::string::npos);
}

TEST_F(CsiControllerTest, WhyADriverMakesNoVolumesIsSaidInEachCaseInWhichItLookedReady) {
  EXPECT_EQ(drivers_->WhyNoProvisioner(kName),
            "no CSI driver disk.example.com has registered (see `volumectl get drivers`)");
  // No endpoint.
  EXPECT_EQ(WhyNone(),
            "CSI driver disk.example.com has registered, but serves no controller here: its own "
            "socket has none, and csi-controller-endpoints names none for it");
  // Its path is misspelled, or nobody listens there yet.
  Configure();
  const std::string missing = WhyNone();
  EXPECT_EQ(missing.find("CSI driver disk.example.com: there is no connection to its controller at "
                         "/run/disk/controller.sock since "),
            0u)
      << missing;
  EXPECT_NE(missing.find(": no /run/disk/controller.sock"), std::string::npos) << missing;
  // It is the node's own.
  Configure(kName, {"/kubelet/plugins/disk", "csi.sock"});
  const std::string node = WhyNone();
  EXPECT_NE(node.find("the process there serves no controller"), std::string::npos) << node;
  // It has another driver's name.
  settings_.controllers.clear();
  Configure("dsik.example.com");
  EXPECT_NE(WhyNone().find("csi-controller-endpoints names none for it; it names "
                           "dsik.example.com, which no driver is called"),
            std::string::npos)
      << WhyNone();
  ASSERT_EQ(drivers_->UnusedControllers().size(), 1u);
  EXPECT_EQ(drivers_->UnusedControllers()[0].driver, "dsik.example.com");
  EXPECT_EQ(drivers_->UnusedControllers()[0].place, kController);
}

TEST_F(CsiControllerTest, AControllerThatStaysAwayIsToldOfOnceAndNotAtEachTry) {
  Configure();
  RegisterWell();
  scheduler_.RunFor(minutes(10));
  EXPECT_GT(dialer_.opened(kController), 100);
  EXPECT_EQ(Count(DriverEvent::kControllerAway), 1);
  const std::optional<CsiControllerLink> link = drivers_->List()[0].controller;
  ASSERT_TRUE(link.has_value());
  EXPECT_FALSE(link->connected);
  EXPECT_EQ(link->place, kController);
  EXPECT_EQ(link->last_error, "no /run/disk/controller.sock");
  dialer_.Bind(kController);
  scheduler_.RunFor(minutes(1));
  EXPECT_EQ(Count(DriverEvent::kControllerAway), 2) << "another reason";
}

TEST_F(CsiControllerTest, AControllerThatComesBackIsAnEventOfItsDriver) {
  auto controller = UseController();
  EXPECT_EQ(Count(DriverEvent::kControllerReady), 1);
  EXPECT_EQ(drivers_->Find(kName)->WhyNoController(), "");
  scheduler_.RunFor(minutes(1));
  dialer_.Kill(controller);
  scheduler_.RunFor(seconds(1));
  EXPECT_GE(Count(DriverEvent::kControllerAway), 1);
  EXPECT_EQ(Count(DriverEvent::kAway), 0);
  // What it can do is on record, so it is to make volumes; but the call says why it does not.
  EXPECT_EQ(drivers_->WhyNoProvisioner(kName), "");
  EXPECT_NE(drivers_->Find(kName)->WhyNoController().find("nobody listens at " +
                                                          std::string(kController)),
            std::string::npos)
      << drivers_->Find(kName)->WhyNoController();
  scheduler_.RunFor(minutes(1));
  ServeController();
  drivers_->EndpointChanged(kController);
  scheduler_.RunFor(milliseconds(10));
  EXPECT_EQ(Count(DriverEvent::kControllerReady), 2);
}

TEST_F(CsiControllerTest, AControllerThatHangsLookedWellAndNobodyWasToldToAct) {
  auto controller = UseController();
  const int width = drivers_->LaneOf(kName).width;
  FallSilent(*controller);
  const auto deleted = BeginDelete();
  scheduler_.RunFor(seconds(11));
  ASSERT_TRUE(deleted->has_value());
  const Error& error = deleted->value().error();
  EXPECT_EQ(error.message().find("the controller of CSI driver disk.example.com at "
                                 "/run/disk/controller.sock is silent since "),
            0u)
      << error.message();
  EXPECT_TRUE(error.IsAbout(kDriverAway));
  EXPECT_TRUE(error.maybe_applied());
  EXPECT_NE(drivers_->Find(kName)->WhyControllerAway().find(" does not answer since "),
            std::string::npos);
  const std::optional<CsiControllerLink> link = drivers_->List()[0].controller;
  EXPECT_TRUE(link->connected);
  EXPECT_TRUE(link->silent);
  EXPECT_EQ(link->last_error, "a call was not answered in time");
  EXPECT_EQ(Count(DriverEvent::kControllerAway), 1);
  // The node's part is as well as it was.
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(Count(DriverEvent::kSilent), 0);
  EXPECT_GE(drivers_->LaneOf(kName).width, width);
  EXPECT_FALSE(drivers_->LaneOf(kName).health.silent_since);
  EXPECT_TRUE(CallStage().ok());
  EXPECT_TRUE(drivers_->Find(kName)->controller_link()->silent) << "the node's answer is not its";
}

// Each held a place of the driver's lane until its deadline, and calls to the node's part waited.
TEST_F(CsiControllerTest, ASilentControllerHasOneCallAtATimeUntilItsFirstAnswer) {
  auto controller = UseController();
  FallSilent(*controller);
  const auto tried = BeginDelete();
  const auto refused = BeginDelete();
  scheduler_.RunFor(milliseconds(1));
  EXPECT_FALSE(tried->has_value());
  ASSERT_TRUE(refused->has_value());
  EXPECT_TRUE(refused->value().error().IsAbout(kCsiNeverSent));
  EXPECT_TRUE(refused->value().error().IsAbout(kDriverAway));
  EXPECT_FALSE(refused->value().error().maybe_applied());
  EXPECT_EQ(controller->calls("DeleteVolume"), 2);
  controller->Unhang("DeleteVolume");
  controller->Unhang("Probe");
  scheduler_.RunFor(seconds(11));
  ASSERT_TRUE(tried->has_value());
  const auto answered = BeginDelete();
  scheduler_.RunFor(milliseconds(1));
  ASSERT_TRUE(answered->has_value());
  EXPECT_TRUE(answered->value().ok());
  EXPECT_FALSE(drivers_->Find(kName)->controller_link()->silent);
  EXPECT_EQ(drivers_->Find(kName)->WhyControllerAway(), "");
  EXPECT_EQ(Count(DriverEvent::kControllerReady), 2);
}

// Each other attach of the driver failed at once as long as one hung.
TEST_F(CsiControllerTest, OneCallThatHungMadeAControllerSilentThatAnswersProbes) {
  auto controller = UseController();
  controller->Hang("DeleteVolume");
  BeginDelete();
  scheduler_.RunFor(seconds(21));
  EXPECT_FALSE(drivers_->Find(kName)->controller_link()->silent);
  EXPECT_EQ(Count(DriverEvent::kControllerAway), 0);
}

TEST_F(CsiControllerTest, AControllerThatNobodyCallsIsProbedAndTwoMissedProbesAreSilence) {
  auto controller = UseController();
  controller->Hang("Probe");
  scheduler_.RunFor(seconds(45));
  EXPECT_FALSE(drivers_->Find(kName)->controller_link()->silent) << "one is missed";
  scheduler_.RunFor(seconds(45));
  EXPECT_TRUE(drivers_->Find(kName)->controller_link()->silent);
  EXPECT_EQ(State(), CsiDriverState::kReady);
  controller->Unhang("Probe");
  scheduler_.RunFor(seconds(45));
  EXPECT_FALSE(drivers_->Find(kName)->controller_link()->silent);
}

// What was asked over the connection of before says nothing of the new one.
TEST_F(CsiControllerTest, AControllerThatIsStartedAnewIsNotSilent) {
  auto controller = UseController();
  FallSilent(*controller);
  ASSERT_TRUE(drivers_->Find(kName)->controller_link()->silent);
  dialer_.Kill(controller);
  scheduler_.RunFor(milliseconds(1));
  EXPECT_FALSE(drivers_->Find(kName)->controller_link()->silent) << "it is away";
  ServeController();
  drivers_->EndpointChanged(kController);
  scheduler_.RunFor(seconds(6));
  const std::optional<CsiControllerLink> link = drivers_->Find(kName)->controller_link();
  EXPECT_TRUE(link->connected);
  EXPECT_FALSE(link->silent);
}

TEST_F(CsiControllerTest, AControllerThatCallsItselfOtherwiseIsToldOfWithBothNames) {
  Configure();
  ServeController("other.example.com");
  const std::string why = WhyNone();
  EXPECT_NE(why.find("the controller at the socket of disk.example.com calls itself "
                     "\"other.example.com\""),
            std::string::npos)
      << why;
}

}  // namespace
}  // namespace volumed
