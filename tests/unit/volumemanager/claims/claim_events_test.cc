#include "volumemanager/claims/claim_events.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "volumehost/event_log.h"

namespace volumed {
namespace {

ClaimDecision Waiting(ClaimWait wait) {
  ClaimDecision decision;
  decision.claim = {"default", "data"};
  decision.wait = wait;
  decision.reason = "why";
  return decision;
}

std::string Text(const ClaimDecision& decision, bool volume_exists = false) {
  const std::optional<ClaimEvent> event = EventOf(decision, volume_exists);
  if (!event) return "";
  return std::string(EventTypeName(event->type)) + " " + event->reason + ": " + event->message;
}

TEST(ClaimEventsTest, NothingIsToldOfAClaimThatIsBoundOrLeavesOrOfSourcesThatAreMissing) {
  for (const ClaimWait wait : {ClaimWait::kNone, ClaimWait::kSources, ClaimWait::kBeingDeleted}) {
    EXPECT_EQ(Text(Waiting(wait)), "");
  }
}

TEST(ClaimEventsTest, AClaimThatWaitsSaysSoInTheControllersWords) {
  EXPECT_EQ(Text(Waiting(ClaimWait::kFirstConsumer)),
            "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding");
  ClaimDecision provisioned = Waiting(ClaimWait::kProvisioning);
  provisioned.provisioner = "x.example/p";
  EXPECT_NE(Text(provisioned)
                .find("Normal ExternalProvisioning: Waiting for a volume to be created "
                      "either by the external provisioner 'x.example/p' or manually"),
            std::string::npos)
      << Text(provisioned);
}

TEST(ClaimEventsTest, WithoutAVolumeThatFitsItSaysWhyWhereAClassIsSet) {
  ClaimDecision decision = Waiting(ClaimWait::kNoMatch);
  EXPECT_EQ(Text(decision),
            "Normal FailedBinding: no persistent volumes available for this claim and no storage "
            "class is set");
  decision.storage_class = "manual";
  EXPECT_EQ(Text(decision),
            "Normal FailedBinding: no persistent volumes available for this claim: why");
}

TEST(ClaimEventsTest, AVolumeThatItNamesAndCannotHaveIsAWarning) {
  ClaimDecision decision = Waiting(ClaimWait::kVolumeTaken);
  decision.volume_name = "disk";
  EXPECT_EQ(Text(decision),
            "Warning FailedBinding: volume \"disk\" already bound to a different claim.");
  decision.wait = ClaimWait::kVolumeUnfit;
  EXPECT_EQ(Text(decision),
            "Warning VolumeMismatch: Cannot bind to requested volume \"disk\": why");
  decision.wait = ClaimWait::kVolumeMissing;
  EXPECT_EQ(Text(decision), "Warning FailedBinding: why");
}

TEST(ClaimEventsTest, ALostClaimSaysWhetherTheVolumeIsGoneOrAnothersOrForgotten) {
  ClaimDecision decision = Waiting(ClaimWait::kLost);
  EXPECT_EQ(Text(decision),
            "Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the "
            "volume is lost!");
  decision.volume_name = "disk";
  EXPECT_EQ(Text(decision),
            "Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is "
            "lost!");
  EXPECT_EQ(Text(decision, true),
            "Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound "
            "incorrectly");
}

}  // namespace
}  // namespace volumed
