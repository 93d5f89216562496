// `volumectl delete driver`: what of a driver that never comes back is given up with it, and what
// keeps it known.
#include "agent/forget_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csi.pb.h"
#include "csi/csi_command.h"
#include "unit/agent/csi_debts_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ForgetDriverTest : public CsiDebtsTest {
 protected:
  // `volumectl delete driver --force`, with what is here of it besides; what was given up, or the
  // error.
  Result<GivenUp> ForgetByForce(std::vector<VolumeOnRecord> volumes = {}) {
    std::optional<Result<GivenUp>> told;
    ForgetAndOweNothing({scheduler_, *drivers_, *debts_, commands_, kernel_, {clock_, seconds(5)}},
                        {.driver = kName,
                         .volumes = std::move(volumes),
                         .open_calls = commands_.OpenOf(kName),
                         .owed_calls = debts_->TextsOf(kName),
                         .begun = {}},
                        [&told](const auto& given_up) { told = given_up; });
    scheduler_.RunFor(seconds(1));
    return told.value_or(Error::NotApplied(Code::kInternal, "nothing was told"));
  }
  // A call by hand that gets this answer; null: none yet.
  void CallByHand(const google::protobuf::Message& request, const Status* answer) {
    const CsiCommandRecord command =
        CsiCommandOf(kName, *CsiMethodOf(request.GetDescriptor()), request, 1);
    ASSERT_TRUE(commands_.Begin(command).ok());
    ASSERT_TRUE(commands_.Write(command).ok());
    if (answer != nullptr) commands_.End(command, *answer);
  }
  void LeaveOpen(const google::protobuf::Message& request) {
    const Status open = Error::MaybeApplied(Code::kInternal, "no");
    CallByHand(request, &open);
  }
  size_t CommandRows() { return store_.Load(kCsiCommandRecordKind)->records.size(); }

  CsiCommands commands_{store_, log_};
};

TEST_F(ForgetDriverTest, ADriverThatIsOwedCallsAndNeverComesBackWasKnownForEver) {
  LeaveWithout();
  drivers_->Unregister(kName);
  const auto given_up = ForgetByForce();
  ASSERT_TRUE(given_up.ok()) << given_up.error().message();
  EXPECT_THAT(given_up->open_calls, IsEmpty());
  EXPECT_THAT(given_up->owed_calls,
              UnorderedElementsAre(
                  std::string("NodeUnpublishVolume of volume ") + kHandle + " at " + PodMount(),
                  std::string("NodeUnstageVolume of volume ") + kHandle + " at " + Staging()));
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_FALSE(debts_->HasOf(kName));
  EXPECT_EQ(debts_->WhatIsOwedAt(PodMount()), "");
  EXPECT_EQ(drivers_->Find(kName), nullptr);
}

TEST_F(ForgetDriverTest, WhatElseIsHereOfADriverKeepsAlsoWhatItIsOwed) {
  LeaveWithout();
  EXPECT_THAT(ForgetByForce().error().message(), HasSubstr("it is registered"));
  drivers_->Unregister(kName);
  const auto refused =
      ForgetByForce({{SpecName("pv-1"), PodUid(kPodUid), "shop", "web", VolumeState::kSetUp}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(refused.error().message(), HasSubstr("`volumectl delete pod web -n shop`"));
  EXPECT_EQ(refused.error().message().find("--force"), std::string::npos)
      << "it does not help: " << refused.error().message();
  EXPECT_EQ(Rows().size(), 2u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(ForgetDriverTest, TheRefusalNamedCommandsThatDoNotHelp) {
  const VolumeOnRecord volume{SpecName("pv-1"), PodUid("u"), "shop", "web", VolumeState::kSetUp};
  DriverTraces traces{.driver = "d",
                      .volumes = {volume},
                      .open_calls = {},
                      .owed_calls = {"NodeUnstageVolume of volume v"},
                      .begun = {}};
  EXPECT_THAT(TextOf(traces), HasSubstr("pv-1 of pod shop/web (`volumectl delete pod web -n "
                                        "shop`)"));
  EXPECT_THAT(TextOf(traces), HasSubstr("--force` gives them up once there is nothing else of it"));
  traces.leaving = {PodUid("u")};
  EXPECT_THAT(TextOf(traces), HasSubstr("pv-1 of pod shop/web, which is being deleted"));
  EXPECT_EQ(TextOf(traces).find("delete pod"), std::string::npos) << TextOf(traces);
  traces.volumes.clear();
  EXPECT_THAT(TextOf(traces), testing::EndsWith("--force` gives them up"));
}

TEST_F(ForgetDriverTest, WhatIsHereOfADriverWasNamedOnceItsRegistrationHadGone) {
  const auto refused =
      ForgetByForce({{SpecName("pv-1"), PodUid(kPodUid), "shop", "web", VolumeState::kSetUp}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("it is registered"));
  EXPECT_THAT(refused.error().message(), HasSubstr("pv-1 of pod shop/web"));
}

TEST_F(ForgetDriverTest, NothingIsGivenUpWhileSomethingIsMountedAtThePathOfADebt) {
  LeaveWithout();
  drivers_->Unregister(kName);
  Mounts(PodMount(), "/dev/sdb");
  const auto refused = ForgetByForce();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("/dev/sdb is mounted at " + PodMount()));
  EXPECT_EQ(Rows().size(), 2u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
  kernel_.UnmountBelow(PodMount());
  EXPECT_TRUE(ForgetByForce().ok());
}

TEST_F(ForgetDriverTest, AnOwedCallWhoseRowCannotBeReadIsNotGivenUp) {
  LeaveWithout();
  store_.Corrupt(kCsiDebtRecordKind, Rows().front().key, "a bit has turned");
  RestartAll();
  drivers_->Unregister(kName);
  const auto refused = ForgetByForce();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("a bit has turned"));
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(ForgetDriverTest, ADriverWhoseDebtsCannotBeRemovedIsNotForgotten) {
  LeaveWithout();
  drivers_->Unregister(kName);
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"), 1,
                  kCsiDebtRecordKind);
  const auto failed = ForgetByForce();
  ASSERT_FALSE(failed.ok());
  EXPECT_FALSE(failed.error().maybe_applied()) << "nothing was given up before";
  EXPECT_EQ(Rows().size(), 2u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

// Only the driver's return could end it.
TEST_F(ForgetDriverTest, ADriverThatDiedWithACallByHandOpenWasKnownForEver) {
  ::csi::v1::CreateVolumeRequest create;
  create.set_name("hand2");
  LeaveOpen(create);
  DriverDies();
  drivers_->Unregister(kName);
  const auto given_up = ForgetByForce();
  ASSERT_TRUE(given_up.ok()) << given_up.error().message();
  EXPECT_THAT(given_up->open_calls, ElementsAre("CreateVolume by hand of \"hand2\""));
  EXPECT_EQ(TextOf(*given_up),
            "nobody will know whether these calls had their effect, and what they made may be left "
            "in its storage: CreateVolume by hand of \"hand2\"");
  EXPECT_EQ(CommandRows(), 0u);
  EXPECT_FALSE(commands_.HasOf(kName));
  EXPECT_EQ(drivers_->Find(kName), nullptr);
}

TEST_F(ForgetDriverTest, AnOpenCallByHandIsNotGivenUpWhileSomethingIsMountedAtItsPath) {
  ::csi::v1::NodeStageVolumeRequest stage;
  stage.set_volume_id("other");
  stage.set_staging_target_path(Staging());
  LeaveOpen(stage);
  DriverDies();
  drivers_->Unregister(kName);
  Mounts(Staging(), "/dev/sdb");
  const auto refused = ForgetByForce();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("/dev/sdb is mounted at " + Staging()));
  EXPECT_EQ(CommandRows(), 1u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
  kernel_.UnmountBelow(Staging());
  EXPECT_TRUE(ForgetByForce().ok());
}

TEST_F(ForgetDriverTest, ACallByHandThatIsUnderWayIsNotGivenUp) {
  ::csi::v1::CreateVolumeRequest create;
  create.set_name("hand2");
  CallByHand(create, nullptr);
  drivers_->Unregister(kName);
  DriverDies();
  const auto refused = ForgetByForce();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(CommandRows(), 1u);
}

TEST_F(ForgetDriverTest, ADriverWhoseOpenCallsCannotBeRemovedIsNotForgotten) {
  ::csi::v1::CreateVolumeRequest create;
  create.set_name("hand2");
  LeaveOpen(create);
  DriverDies();
  drivers_->Unregister(kName);
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"), 1,
                  kCsiCommandRecordKind);
  const auto failed = ForgetByForce();
  ASSERT_FALSE(failed.ok());
  EXPECT_FALSE(failed.error().maybe_applied()) << "nothing was given up before";
  EXPECT_THAT(commands_.OpenOf(kName), ElementsAre("CreateVolume by hand of \"hand2\""));
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(ForgetDriverTest, VolumesOnRecordAreThoseOfPodsAndTheDevicesThatNoPodHas) {
  const std::string domain = std::string("csi:") + kName;
  EXPECT_TRUE(operations_->VolumesOf(domain).empty());
  PutPod(/*attachable=*/true);
  EXPECT_THAT(operations_->VolumesOf(domain),
              ElementsAre(VolumeOnRecord{SpecName("pv-1"), PodUid(kPodUid), "shop", "web",
                                         VolumeState::kSetUp}));
  EXPECT_TRUE(operations_->VolumesOf("csi:other.example.com").empty());
  DriverDies();
  scheduler_.RunFor(minutes(11));
  ASSERT_EQ(PodLeaves(), "");
  ASSERT_EQ(DeviceGoes(), "");
  EXPECT_THAT(
      operations_->VolumesOf(domain),
      ElementsAre(VolumeOnRecord{SpecName("pv-1"), PodUid(), "", "", VolumeState::kAttached}));
}

TEST(DriverTraces, TheRefusalToForgetADriverNamedNothing) {
  EXPECT_EQ(TextOf(DriverTraces()), "");
  EXPECT_EQ(
      TextOf(DriverTraces{.driver = "d",
                          .volumes = {},
                          .open_calls = {"DeleteVolume by hand of \"v\""},
                          .owed_calls = {"NodeUnstageVolume of volume v"},
                          .begun = {}}),
      "calls to it have an open outcome: DeleteVolume by hand of \"v\": `volumectl delete driver d "
      "--force` gives them up; calls are owed to it: NodeUnstageVolume of volume v: `volumectl "
      "delete driver d --force` gives them up");
}

TEST(DriverTraces, TheRefusalToForgetADriverSaidNotWhatToDoAboutItsVolumes) {
  DriverTraces traces;
  traces.driver = "d";
  traces.volumes = {
      {SpecName("a"), PodUid("u1"), "default", "web", VolumeState::kSetUp},
      {SpecName("b"), PodUid("u2"), "shop", "db", VolumeState::kSetUp},
      {SpecName("c"), PodUid("u3"), "", "", VolumeState::kSetUp},
      {SpecName("dir"), PodUid(), "", "", VolumeState::kDeviceMounted, "/k/globalmount"},
      {SpecName("disk"), PodUid(), "", "", VolumeState::kAttached},
  };
  EXPECT_EQ(
      TextOf(traces),
      "volumes of it are on this node's records: a of pod default/web (`volumectl delete pod "
      "web`), b of pod shop/db (`volumectl delete pod db -n shop`), c of pod u3 (`volumectl "
      "delete pod u3`), dir, whose device is DeviceMounted at /k/globalmount, disk, whose device "
      "is Attached; without the driver pods and mounts of whole disks go by `driver-absent-limit` "
      "alone, a device that is mounted otherwise once `umount PATH` was done by hand, and what is "
      "attached stays until it is back");
}

}  // namespace
}  // namespace volumed
