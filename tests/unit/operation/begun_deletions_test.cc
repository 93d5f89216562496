// Deletions of what a driver has whose outcome is open, and volumes that come to name the same.
#include <gtest/gtest.h>

#include <string>

#include "operation/storage_record.h"
#include "operation/storage_steps.h"
#include "unit/operation/made_by_drivers_fixture.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

using BegunDeletionsTest = MadeByDriversTest;

// Each waited for the end of the other one.
TEST_F(BegunDeletionsTest, ADeletionThatWasBegunAndAVolumeThatCameLaterWaitedForEachOther) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Reclaim("vol-9", {}), "it does not go");
  AddOther("vol-9");
  EXPECT_EQ(storage_.VolumesBeingDeleted().count("other"), 1u);
  EXPECT_EQ(Reclaim("vol-9", {}), "it does not go") << "the same call follows";
  EXPECT_EQ(maker_.undone.size(), 2u);
  EXPECT_EQ(storage_.VolumesBeingDeleted().count("other"), 1u);
  const StorageHolder device = DeviceOf("other");
  const StorageName name{.path = "vol-9", .server = "", .driver = kDriver};
  EXPECT_FALSE(storage_.Take(device, name, {}).ok()) << "nobody gets it before the end";
  maker_.undo_error.reset();
  EXPECT_EQ(Reclaim("vol-9", {}), "");
  EXPECT_TRUE(storage_.VolumesBeingDeleted().empty()) << "it may be had";
  EXPECT_TRUE(storage_.Take(device, name, {}).ok());
}

TEST_F(BegunDeletionsTest, AVolumeThatCameBeforeTheFirstTryKeepsTheDeletionFromBeginning) {
  AddOther("vol-9");
  EXPECT_NE(Reclaim("vol-9", {}).find("also, in whole or in part, that of persistent volume other"),
            std::string::npos);
  EXPECT_NE(Reclaim("vol-9", {}), "") << "nothing was begun";
  EXPECT_TRUE(maker_.undone.empty());
}

// It was retained meanwhile, and so the volume that came was given away.
TEST_F(BegunDeletionsTest, ADeletionThatHadEndedDoesNotGoOnPastAVolumeThatCameMeanwhile) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Reclaim("vol-9", {}), "it does not go");
  node_.FailNext("Stat", Error::NotApplied(Code::kAborted, "a worker is at it"));
  ASSERT_TRUE(storage_.EndReclaims("pv").ok());
  AddOther("vol-9");
  EXPECT_NE(Reclaim("vol-9", {}).find("that of persistent volume other"), std::string::npos);
  EXPECT_EQ(maker_.undone.size(), 1u);
}

TEST_F(BegunDeletionsTest, WhatIsInUseIsNotDeletedThoughItsDeletionWasBegun) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Reclaim("vol-9", {}), "it does not go");
  const StorageName name{.path = "vol-9", .server = "", .driver = kDriver};
  storage_.Expect(BootId("boot-a"), {DeviceOf("other"), name});
  EXPECT_NE(Reclaim("vol-9", {}).find("that of volume other, which is in use"), std::string::npos);
  EXPECT_EQ(maker_.undone.size(), 1u);
}

// Each CreateVolume of the undo was counted as a lie of the driver.
TEST_F(BegunDeletionsTest, AnUndoThatWasBegunAndAVolumeThatCameLaterWaitedForEachOther) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Undo(), "it does not go");
  AddOther("vol-1");
  EXPECT_EQ(Provision(), "end the undo that was begun: it does not go")
      << "it is given to no claim";
  EXPECT_EQ(Undo(), "it does not go") << "the same call follows";
  EXPECT_EQ(maker_.undone.size(), 3u);
  EXPECT_EQ(storage_.VolumesBeingDeleted().count("other"), 1u);
  maker_.undo_error.reset();
  EXPECT_EQ(Undo(), "");
  EXPECT_TRUE(storage_.VolumesBeingDeleted().empty());
}

// The driver had forgotten the name that the volume was made by, and made another one: nobody went
// on with the deletion of the first, and a volume that named it was given to a claim.
TEST_F(BegunDeletionsTest, AnUndoLetGoOfWhatItHadBegunToDeleteWhenTheDriverMadeAnotherVolume) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Undo(), "it does not go");
  AddOther("vol-1");
  maker_.there = VolumeOf("pvc-1", "vol-2");
  EXPECT_EQ(Undo(), "it does not go");
  EXPECT_EQ(storage_.VolumesBeingDeleted().count("other"), 1u);
  EXPECT_EQ(maker_.undone, (std::vector<std::string>{"vol-1", "vol-1"})) << "the same call follows";
  EXPECT_EQ(maker_.found, 1) << "nothing more is made";
  maker_.undo_error.reset();
  EXPECT_EQ(Undo(), "");
  EXPECT_TRUE(storage_.VolumesBeingDeleted().empty());
}

// The driver answered the volume that it was still deleting, and the claim was bound to it.
TEST_F(BegunDeletionsTest, AClaimThatWantedItsVolumeAgainGotTheOneThatItsUndoWasDeleting) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Undo(), "it does not go");
  const int found = maker_.found;
  EXPECT_EQ(Provision(), "end the undo that was begun: it does not go");
  EXPECT_EQ(outcome_, Outcome::kMaybeApplied);
  EXPECT_EQ(maker_.undone.size(), 2u) << "the same call follows";
  maker_.undo_error = Error::NotApplied(Code::kUnauthenticated, "who are you");
  EXPECT_EQ(Provision(), "end the undo that was begun: who are you");
  EXPECT_EQ(outcome_, Outcome::kMaybeApplied) << "the volume may be there";
  maker_.undo_error.reset();
  maker_.there = VolumeOf("pvc-1", "vol-2");
  EXPECT_EQ(Provision(), "");
  EXPECT_EQ(maker_.undone.size(), 4u);
  EXPECT_EQ(maker_.found, found);
}

// Until something had asked for the rows, the next agent gave the volume to a claim.
TEST_F(BegunDeletionsTest, TheNextAgentDidNotKnowAtOnceWhatIsBeingDeleted) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Reclaim("vol-9", {}), "it does not go");
  const auto row = store_.Find(kStorageReservationRecordKind, "reclaim/pv");
  ASSERT_TRUE(row);
  const StorageReservationRecord begun = DecodeStorageReservationRecord(*row).value();
  const StorageName name{.path = "vol-9", .server = "", .driver = kDriver};
  StorageGuard next(kernel_, store_, clock_, logger_, BootId("boot-a"));
  next.NameStorage("other", &name);
  next.ExpectDeletions({begun});
  EXPECT_EQ(next.VolumesBeingDeleted().count("other"), 1u);
  ASSERT_TRUE(next.ForgetBut({}).ok());
  EXPECT_TRUE(next.VolumesBeingDeleted().empty()) << "its volume is no more";
}

// A boot of this node says nothing of what the driver does: the volume that had come was given to a
// claim, whose pod got storage that may have been going.
TEST_F(BegunDeletionsTest, ARebootEndedADeletionWhoseOutcomeWasOpen) {
  maker_.undo_error = Error::MaybeApplied(Code::kInternal, "it does not go");
  EXPECT_EQ(Reclaim("vol-9", {}), "it does not go");
  const StorageReservationRecord begun =
      DecodeStorageReservationRecord(*store_.Find(kStorageReservationRecordKind, "reclaim/pv"))
          .value();
  const StorageName name{.path = "vol-9", .server = "", .driver = kDriver};
  StorageGuard of_next_boot(kernel_, store_, clock_, logger_, BootId("boot-b"));
  of_next_boot.NameStorage("other", &name);
  of_next_boot.ExpectDeletions({begun});
  EXPECT_EQ(of_next_boot.VolumesBeingDeleted().count("other"), 1u);
  EXPECT_FALSE(of_next_boot.Take(DeviceOf("other"), name, {}).ok());
  EXPECT_TRUE(of_next_boot.IsBeingReclaimed("reclaim/pv", name).value()) << "the same call follows";
}

}  // namespace
}  // namespace volumed
