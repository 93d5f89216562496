// Which registrations count as ended, and under which name.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "unit/csi/registration_fixture.h"

namespace volumed {
namespace {

class RegistrationsThatEndedTest : public RegistrationFixture {};

TEST_F(RegistrationsThatEndedTest,
       ASocketThatAKilledRegistrarLeftWasCountedAsRefusedEveryFewSeconds) {
  auto driver = Serve();
  auto registrar = Registrar();
  dialer_.Kill(registrar);
  scheduler_.RunFor(seconds(60));
  EXPECT_EQ(StateOf(), RegistrationState::kWaiting);
  EXPECT_TRUE(failed_.empty());
  dialer_.Refuse(
      PathOf(kSocket),
      Error::NotApplied(Code::kPermissionDenied, "is of uid 1000").About(kCsiSocketRefused));
  Tell(What::kWent, kSocket);
  Tell(What::kCame, kSocket);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(failed_, std::vector<std::string>{""}) << "that one is a refusal";
}

TEST_F(RegistrationsThatEndedTest, ARefusalIsToldWithTheNameThatThePluginGave) {
  auto driver = Serve();
  auto first = Registrar();
  scheduler_.RunFor(seconds(1));
  ASSERT_EQ(StateOf(), RegistrationState::kRegistered);
  auto second = Registrar("second.sock");
  auto nameless = Registrar("third.sock", "no name of a driver");
  scheduler_.RunFor(milliseconds(100));
  EXPECT_THAT(failed_, testing::UnorderedElementsAre(kName, ""));
}

}  // namespace
}  // namespace volumed
