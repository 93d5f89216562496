// CsiDrivers: which drivers are forgotten, when there are too many or by command, and which are
// not.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csi/csi_drivers.h"
#include "unit/csi/registered_driver_fixture.h"

namespace volumed {
namespace {

using CsiDriversTest = RegisteredDriverFixture;

TEST_F(CsiDriversTest, OfTooManyDriversTheUnregisteredOneThatWasUsedLongestAgoIsForgotten) {
  settings_.most_drivers = 2;
  Restart();
  for (const std::string name : {"a.example.com", "b.example.com", "c.example.com"}) {
    Serve("/kubelet/plugins/" + name, name);
    ASSERT_TRUE(Register(name, "/kubelet/plugins/" + name).has_value());
    if (name != "b.example.com") continue;
    drivers_->Unregister("a.example.com");
    dialer_.Remove("/kubelet/plugins/a.example.com");
    scheduler_.RunFor(seconds(1));
    // A connection that is there keeps it too.
    EXPECT_NE(drivers_->Find("a.example.com"), nullptr);
    drivers_.reset();
    Restart();
    dialer_.Bind("/kubelet/plugins/a.example.com");
    ASSERT_TRUE(Register("b.example.com", "/kubelet/plugins/b.example.com").has_value());
  }
  EXPECT_EQ(drivers_->Find("a.example.com"), nullptr);
  EXPECT_NE(drivers_->Find("b.example.com"), nullptr);
  EXPECT_NE(drivers_->Find("c.example.com"), nullptr);
  EXPECT_FALSE(store_.Find(kCsiDriverRecordKind, "a.example.com").has_value());
  EXPECT_EQ(released_, (std::vector<std::string>{"a.example.com"}));
}

TEST_F(CsiDriversTest, ADriverThatHasLeftForGoodIsForgottenByCommandAndNoOther) {
  const auto forget = [this] {
    auto told = std::make_shared<std::optional<Status>>();
    drivers_->Forget(kName, [told](const Status& status) { *told = status; });
    scheduler_.RunFor(milliseconds(1));
    return told->has_value() && (*told)->ok() ? std::string("forgotten")
           : told->has_value()                ? (*told)->error().message()
                                              : std::string("nothing was told");
  };
  EXPECT_EQ(forget(), "there is no CSI driver disk.example.com");
  RegisterWell();
  EXPECT_NE(forget().find("is not forgotten: it is registered"), std::string::npos);
  has_volumes_ = true;
  EXPECT_NE(forget().find("; volumes of it are here"), std::string::npos)
      << "it was said once the registration had gone";
  has_volumes_ = false;
  drivers_->Unregister(kName);
  EXPECT_NE(forget().find("there is a connection to it"), std::string::npos);
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  has_volumes_ = true;
  EXPECT_NE(forget().find("volumes of it are here"), std::string::npos);
  has_volumes_ = false;
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"));
  EXPECT_NE(forget().find("disk full"), std::string::npos);
  EXPECT_NE(drivers_->Find(kName), nullptr);
  EXPECT_TRUE(released_.empty());
  EXPECT_EQ(forget(), "forgotten");
  EXPECT_EQ(released_, (std::vector<std::string>{kName}));
  EXPECT_EQ(drivers_->Find(kName), nullptr);
  EXPECT_FALSE(store_.Find(kCsiDriverRecordKind, kName).has_value());
  // It may come again.
  RegisterWell();
  EXPECT_TRUE(store_.Find(kCsiDriverRecordKind, kName).has_value());
}

TEST_F(CsiDriversTest, WhyADeadDriverIsNotForgottenDidNotNameTheSocketThatItLeft) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  const std::string socket = drivers_->Find(kName)->record().socket;
  ASSERT_FALSE(socket.empty());
  std::string refusal;
  drivers_->Forget(kName, [&refusal](const Status& status) {
    refusal = status.ok() ? "forgotten" : status.error().message();
  });
  scheduler_.RunFor(milliseconds(1));
  EXPECT_NE(refusal.find("it is registered by " + socket + ": end the driver, and remove"),
            std::string::npos)
      << refusal;
}

TEST_F(CsiDriversTest, ADriverWithVolumesIsNotForgotten) {
  settings_.most_drivers = 1;
  has_volumes_ = true;
  Restart();
  RegisterWell();
  Restart();
  Serve("/kubelet/b", "b.example.com");
  ASSERT_TRUE(Register("b.example.com", "/kubelet/b").has_value());
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

}  // namespace
}  // namespace volumed
