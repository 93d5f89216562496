// A volume that its claim has left, and whose driver is away or fails: how people see it, and how
// they give it up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "unit/agent/made_volume_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

class ForsakenVolumesTest : public MadeVolumeTest {
 protected:
  ForsakenVolumesTest() {
    DeliverClaim();
    Settle();
  }
  // The driver goes, and then the claim.
  void Forsake() {
    operations().Hang(ReclaimKey(kVolume));
    operations().waits_for[ReclaimKey(kVolume)] = {
        "CSI driver disk.example.com is gone since 10:00: nobody listens", true, kWaitForDriver};
    EXPECT_TRUE(DeleteClaim("data"));
    Settle();
    ASSERT_EQ(operations().Count("reclaim"), 1u);
  }
  bool IsThere() { return !manager().storage().PersistentVolumes().empty(); }
  bool HasEvent(const std::string& beginning) const {
    const auto& events = host_parts.object_events;
    return std::any_of(events.begin(), events.end(),
                       [&](const std::string& event) { return event.find(beginning) == 0; });
  }
};

TEST_F(ForsakenVolumesTest, AVolumeWhoseDriverNeverComesBackCouldNotBeGivenUp) {
  Forsake();
  const std::optional<Status> told = Delete(/*force=*/true);
  ASSERT_TRUE(told && told->ok());
  EXPECT_THAT(response_.warning(),
              HasSubstr("CSI driver disk.example.com is not asked to delete volume vol-pvc-c1"));
  EXPECT_TRUE(HasEvent("PersistentVolume pvc-c1 Warning ReclaimGivenUp: by command "));
  EXPECT_TRUE(operations().given_up.contains(ReclaimKey(kVolume)));
  operations().Release(ReclaimKey(kVolume));
  Settle();
  EXPECT_FALSE(IsThere());
  Pass(std::chrono::hours(1));
  EXPECT_EQ(operations().Count("reclaim"), 1u) << "nothing asks for it any more";
}

TEST_F(ForsakenVolumesTest, TheAnswerSaidDeletedOfAVolumeThatWaitsForItsDriverForEver) {
  Forsake();
  const std::optional<Status> told = Delete(/*force=*/false);
  ASSERT_TRUE(told && told->ok());
  EXPECT_THAT(response_.warning(),
              HasSubstr("it waits for CSI driver disk.example.com: CSI driver disk.example.com is "
                        "gone since 10:00"));
  EXPECT_THAT(response_.warning(), HasSubstr("`volumectl delete pv pvc-c1 --force`"));
  EXPECT_TRUE(IsThere());
  // What was deleted before is given up all the same.
  ASSERT_TRUE(Delete(/*force=*/true)->ok());
  operations().Release(ReclaimKey(kVolume));
  Settle();
  EXPECT_FALSE(IsThere());
}

TEST_F(ForsakenVolumesTest, ForceOfAVolumeThatAClaimHasIsNoWayAroundTheClaim) {
  const std::optional<Status> told = Delete(/*force=*/true);
  ASSERT_TRUE(told && told->ok());
  EXPECT_THAT(response_.warning(), HasSubstr("bound to claim default/data"));
  EXPECT_THAT(response_.warning(), HasSubstr("--force changes nothing here"));
  EXPECT_TRUE(IsThere());
  EXPECT_FALSE(HasEvent("PersistentVolume pvc-c1 Warning ReclaimGivenUp"));
}

// "pod five deleted", and it waited for its driver as before.
TEST_F(ForsakenVolumesTest, ForceOfAPodIsNoWayAroundADriverThatIsAway) {
  Deliver(PodManifest("web", {kData}));
  ASSERT_EQ(Phase("web"), "Ready");
  operations().fault_domains[Key("web", "data")] = "csi:disk.example.com";
  operations().Hang(Key("web", "data"));  // so that the pod stays
  std::string why;
  backend_->why_driver_away = [&why](const std::string& asked) {
    EXPECT_EQ(asked, "disk.example.com");
    return why;
  };
  (void)Delete(/*force=*/true, "Pod", "web");
  EXPECT_EQ(response_.warning().find("--force"), std::string::npos) << response_.warning();
  why = "CSI driver disk.example.com is gone since 10:00";
  (void)Delete(/*force=*/false, "Pod", "web");
  EXPECT_EQ(response_.warning().find("--force"), std::string::npos) << response_.warning();
  (void)Delete(/*force=*/true, "Pod", "web");
  EXPECT_THAT(response_.warning(),
              HasSubstr("--force changes nothing for volume data, which waits for its driver: CSI "
                        "driver disk.example.com is gone since 10:00"));
}

TEST_F(ForsakenVolumesTest, AReleasedVolumeSaidNothingOfItsDriverThatIsAway) {
  Forsake();
  ASSERT_TRUE(Describe(kVolume).ok());
  ASSERT_EQ(described_.problems_size(), 1);
  EXPECT_THAT(described_.problems(0).message(), HasSubstr("is gone since 10:00"));
  EXPECT_THAT(described_.problems(0).who_must_act(), HasSubstr("whoever runs the driver"));
  EXPECT_THAT(described_.problems(0).who_must_act(), HasSubstr("delete pv pvc-c1 --force"));
  const std::vector<OwedView> owed = manager().storage().Owed();
  ASSERT_EQ(owed.size(), 1u);
  EXPECT_EQ(owed[0].what, "volume pvc-c1");
  EXPECT_THAT(owed[0].problem.message, HasSubstr("is gone since 10:00"));
}

TEST_F(ForsakenVolumesTest, AVolumeThatItsDriverDoesNotDeleteIsGivenUpToo) {
  operations().FailNext("reclaim", ReclaimKey(kVolume),
                        Error::MaybeApplied(Code::kInternal, "the backend is lost"), 1000);
  ASSERT_TRUE(DeleteClaim("data"));
  Settle();
  ASSERT_TRUE(Delete(/*force=*/true)->ok());
  EXPECT_THAT(response_.warning(), HasSubstr("a try before may have deleted it all the same"));
  EXPECT_FALSE(IsThere());
}

}  // namespace
}  // namespace volumed
