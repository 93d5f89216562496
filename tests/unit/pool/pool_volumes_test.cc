#include "pool/pool_volumes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "unit/pool/pool_volumes_fixture.h"

namespace volumed {
namespace {

const std::string kOfAnotherPool = "v-00000000-0123456789abcdef01234567";

TEST_F(PoolVolumesTest, AVolumeIsMadeAsAFileAndARow) {
  ASSERT_TRUE(recovered_.ok()) << recovered_.error().ToString();
  int changes = 0;
  volumes().SetChanged([&changes] { ++changes; });
  PoolVolumeWish wish = Wish("pvc-1", 20 * kMiB + 1);
  wish.parameters = {{"csi.storage.k8s.io/fstype", "ext4"}};
  const Result<PoolVolumeRecord> made = volumes().Create(wish, {});
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  EXPECT_EQ(made->state, PoolVolumeState::kReady);
  EXPECT_EQ(made->capacity_bytes, 20 * kMiB + 4096);
  EXPECT_EQ(made->block_bytes, 4096);
  EXPECT_NE(made->object.inode, 0u);
  EXPECT_EQ(made->family, made->id);
  EXPECT_EQ(made->parameters.at("pool"), "fast");
  EXPECT_FALSE(made->used);
  EXPECT_EQ(changes, 1);

  const std::string image = PoolWorld::ImageOf(made->id);
  EXPECT_EQ(world_.Look(image).size_bytes, 20 * kMiB + 4096);
  EXPECT_EQ(world_.Look(image).mode, 0600u);
  EXPECT_EQ(world_.Look(kPoolPath + "/volumes/" + made->id).mode, 0700u);
  const PoolRecord pool =
      Must(DecodePoolRecord(world_.store.Find(kPoolRecordKind, "fast").value()));
  EXPECT_EQ(world_.kernel.Find(kPoolPath + "/volumes/" + made->id + "/volume.json").content,
            DescriptionOf(*made, pool.uuid));
  EXPECT_EQ(world_.Rows(), std::vector{*made});
  EXPECT_EQ(Must(volumes().Find(made->id)), *made);
  EXPECT_EQ(volumes().FindByName("pvc-1"), *made);
  EXPECT_EQ(volumes().DomainOf(made->id), kPoolPath);
  EXPECT_EQ(volumes().MeaningOf(made->id), PoolIdMeaning::kHere);
}

TEST_F(PoolVolumesTest, TheSameCallFindsTheSameVolume) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  EXPECT_EQ(Make(Wish("pvc-1")), made);
  StartAgent();
  EXPECT_EQ(Make(Wish("pvc-1")), made);
  EXPECT_EQ(world_.Rows().size(), 1u);
  EXPECT_EQ(world_.Directories().size(), 1u);
}

TEST_F(PoolVolumesTest, ANameThatIsTakenByAnotherVolumeIsRefused) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  std::vector<PoolVolumeWish> others(4, Wish("pvc-1"));
  others[0].size.required_bytes = 17 * kMiB;
  others[1].is_block = true;
  others[2].parameters = {{"csi.storage.k8s.io/fstype", "btrfs"}};
  others[2].size.required_bytes = 0;
  others[3].id = Unknown();
  for (const PoolVolumeWish& other : others) {
    const Error refused = Failure(volumes().Create(other, {}));
    EXPECT_EQ(refused.code(), Code::kAlreadyExists) << refused.ToString();
    EXPECT_FALSE(refused.maybe_applied());
  }
  PoolVolumeWish again = Wish("pvc-2");
  again.id = made.id;
  EXPECT_EQ(CodeOf(volumes().Create(again, {})), Code::kAlreadyExists);
  EXPECT_EQ(world_.Rows(), std::vector{made});
}

TEST_F(PoolVolumesTest, AnIdThatWasPlannedIsTheVolumes) {
  PoolVolumeWish wish = Wish("pvc-1");
  wish.id = Must(volumes().PlanId({}));
  EXPECT_EQ(volumes().MeaningOf(wish.id), PoolIdMeaning::kNone);
  EXPECT_EQ(Make(wish).id, wish.id);
  for (const std::string& id : {kOfAnotherPool, std::string("../../etc"),
                                NewPoolId(PoolObject::kCut, agent_->pool().tag()).ToString()}) {
    PoolVolumeWish bad = Wish("pvc-2");
    bad.id = id;
    EXPECT_EQ(CodeOf(volumes().Create(bad, {})), Code::kInvalidArgument) << id;
  }
}

TEST_F(PoolVolumesTest, WhatCannotBeIsRefusedBeforeAnythingIsDone) {
  const std::string before = world_.kernel.DumpTree(kPoolPath);
  const uint64_t writes = world_.store.calls();
  std::vector<PoolVolumeWish> wishes(5, Wish("pvc-1"));
  wishes[0].name.clear();
  wishes[1].name = "a\xff";
  wishes[2].name = std::string(254, 'a');
  wishes[3].parameters = {{"colour", "red"}};
  wishes[4].size.required_bytes = -1;
  for (const PoolVolumeWish& wish : wishes) {
    EXPECT_EQ(CodeOf(volumes().Create(wish, {})), Code::kInvalidArgument);
  }
  PoolVolumeWish nowhere = Wish("pvc-1");
  nowhere.parameters = {{"pool", "slow"}};
  EXPECT_EQ(CodeOf(volumes().Create(nowhere, {})), Code::kNotFound);
  EXPECT_EQ(CodeOf(volumes().PlanId(nowhere.parameters)), Code::kNotFound);
  EXPECT_EQ(CodeOf(volumes().Capacity(nowhere.parameters, {})), Code::kNotFound);
  EXPECT_EQ(CodeOf(volumes().Create(Wish("pvc-1", std::numeric_limits<int64_t>::max()), {})),
            Code::kOutOfRange);
  agent_->irreversible.hold = true;
  EXPECT_EQ(CodeOf(volumes().Create(Wish("pvc-1"), {})), Code::kFailedPrecondition);
  EXPECT_EQ(world_.kernel.DumpTree(kPoolPath), before);
  EXPECT_EQ(world_.store.calls(), writes);
}

TEST_F(PoolVolumesTest, WhatTheFilesystemRefusesLeavesNothing) {
  const std::string before = world_.kernel.DumpTree(kPoolPath);
  world_.kernel.FailNext("SetFileSize", ENOSPC, Outcome::kNotApplied);
  PoolVolumeWish wish = Wish("pvc-1");
  wish.parameters = {{"allocation", "thick"}};
  const Error refused = Failure(volumes().Create(wish, {}));
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused.ToString();
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_EQ(world_.kernel.DumpTree(kPoolPath), before);
  EXPECT_TRUE(world_.Rows().empty());
  EXPECT_FALSE(volumes().FindByName("pvc-1").has_value());
  EXPECT_EQ(Make(wish).state, PoolVolumeState::kReady);
}

TEST_F(PoolVolumesTest, ACreationInDoubtGoesOnOrIsTakenBack) {
  const Error lost = Error::MaybeApplied(Code::kDeadlineExceeded, "no answer");
  for (const bool apply : {false, true}) {
    for (const bool go_on : {false, true}) {
      const PoolVolumeWish wish = Wish("pvc-1");
      world_.kernel.FailNext("SetFileSize", lost, 1, apply);
      const Error error = Failure(volumes().Create(wish, {}));
      EXPECT_TRUE(error.maybe_applied()) << error.ToString();
      const std::optional<PoolVolumeRecord> row = volumes().FindByName("pvc-1");
      ASSERT_TRUE(row.has_value());
      EXPECT_EQ(row->state, PoolVolumeState::kMaking);
      EXPECT_EQ(CodeOf(volumes().Open(row->id, false, {})), Code::kFailedPrecondition);
      EXPECT_EQ(CodeOf(volumes().Expand(row->id, 64 * kMiB, {})), Code::kFailedPrecondition);
      EXPECT_TRUE(volumes().List("", 10).volumes.empty());
      EXPECT_EQ(CodeOf(volumes().Create(Wish("pvc-1", 17 * kMiB), {})), Code::kAlreadyExists);
      if (go_on) {
        StartAgent();
        EXPECT_EQ(Make(wish).id, row->id);
      }
      const Status deleted = volumes().Delete(row->id, /*only_unused=*/true, {});
      EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
      EXPECT_TRUE(world_.Directories().empty());
      EXPECT_TRUE(world_.Rows().empty());
    }
  }
}

// It was taken for certain that nothing was made, and the row went with a file still there.
TEST_F(PoolVolumesTest, ARepetitionThatIsNotAppliedSaysNothingOfTheFirstCall) {
  world_.kernel.FailNext("SetFileSize", Error::MaybeApplied(Code::kUnavailable, "it died"), 1,
                         /*apply=*/true);
  EXPECT_TRUE(Failure(volumes().Create(Wish("pvc-1"), {})).maybe_applied());
  for (const char* request : {"MakeDirectory", "WriteFile", "SetFileSize"}) {
    world_.kernel.FailNext(request, Error::NotApplied(Code::kUnavailable, "no worker"));
    const Error error = Failure(volumes().Create(Wish("pvc-1"), {}));
    EXPECT_TRUE(error.maybe_applied()) << request << ": " << error.ToString();
    ASSERT_EQ(world_.Rows().size(), 1u) << request;
  }
  EXPECT_EQ(Make(Wish("pvc-1")).state, PoolVolumeState::kReady);
}

TEST_F(PoolVolumesTest, AVolumeIsDeletedOnce) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  ASSERT_TRUE(volumes().Open(made.id, false, {}).ok());
  const Error used = Failure(volumes().Delete(made.id, /*only_unused=*/true, {}));
  EXPECT_EQ(used.code(), Code::kFailedPrecondition) << used.ToString();
  EXPECT_EQ(world_.Rows().size(), 1u);
  int changes = 0;
  volumes().SetChanged([&changes] { ++changes; });
  const Status deleted = volumes().Delete(made.id, false, {});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(world_.Rows().empty());
  EXPECT_TRUE(world_.Directories().empty());
  EXPECT_TRUE(world_.Loops().empty());
  EXPECT_EQ(volumes().MeaningOf(made.id), PoolIdMeaning::kNone);
  EXPECT_EQ(CodeOf(volumes().Find(made.id)), Code::kNotFound);
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
  EXPECT_TRUE(volumes().Close(made.id, {}).ok());
  // Its name is free again, and what gets it is another volume.
  EXPECT_NE(Make(Wish("pvc-1")).id, made.id);
}

TEST_F(PoolVolumesTest, WhoNamedAPoolThatIsNoneWasNotToldWhichThereAre) {
  PoolVolumeWish nowhere = Wish("pvc-1");
  nowhere.parameters = {{"pool", "fats"}};
  const Result<PoolVolumeRecord> refused = volumes().Create(nowhere, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(), "this node has no pool \"fats\"; it has fast");
}

TEST_F(PoolVolumesTest, AnIdThatIsNoneOfOursIsNeverTakenForGone) {
  EXPECT_EQ(volumes().MeaningOf(kOfAnotherPool), PoolIdMeaning::kOfAnotherPool);
  for (const bool in_doubt : {false, true}) {
    agent_->irreversible.hold = in_doubt;
    EXPECT_EQ(CodeOf(volumes().Find(kOfAnotherPool)), Code::kFailedPrecondition);
    EXPECT_EQ(CodeOf(volumes().Delete(kOfAnotherPool, false, {})), Code::kFailedPrecondition);
    EXPECT_EQ(CodeOf(volumes().Close(kOfAnotherPool, {})), Code::kFailedPrecondition);
    // What is no id at all was never a volume.
    for (const char* id : {"", "../..", "pvc-1"}) {
      EXPECT_EQ(volumes().MeaningOf(id), PoolIdMeaning::kNone);
      EXPECT_EQ(CodeOf(volumes().Find(id)), Code::kNotFound);
      EXPECT_TRUE(volumes().Delete(id, false, {}).ok());
    }
  }
  agent_->irreversible.hold = false;
  EXPECT_EQ(CodeOf(volumes().Find(Unknown())), Code::kNotFound);
  EXPECT_TRUE(volumes().Delete(Unknown(), false, {}).ok());
  agent_->irreversible.hold = true;
  EXPECT_EQ(CodeOf(volumes().Find(Unknown())), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(volumes().Delete(Unknown(), false, {})), Code::kFailedPrecondition);
}

TEST_F(PoolVolumesTest, NothingIsDeletedWhileThatIsHeldBack) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  agent_->irreversible.hold = true;
  EXPECT_EQ(CodeOf(volumes().Delete(made.id, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(world_.Rows(), std::vector{made});
  EXPECT_TRUE(world_.kernel.Exists(PoolWorld::ImageOf(made.id)));
}

TEST_F(PoolVolumesTest, WhatSomebodyPutIntoTheDirectoryOfAVolumeStays) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const std::string directory = kPoolPath + "/volumes/" + made.id;
  world_.kernel.AddFile(directory + "/backup.img", "precious");
  const Error refused = Failure(volumes().Delete(made.id, false, {}));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.ToString();
  EXPECT_EQ(world_.kernel.Find(directory + "/backup.img").content, "precious");
  EXPECT_TRUE(world_.kernel.Exists(directory + "/image"));
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kDeleting);
  EXPECT_EQ(CodeOf(volumes().Create(Wish("pvc-1"), {})), Code::kAborted);
  world_.kernel.Remove(directory + "/backup.img");
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
  EXPECT_TRUE(world_.Directories().empty());
}

TEST_F(PoolVolumesTest, WhatAWriterLeftAmidADescriptionGoesWithTheVolume) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  world_.kernel.AddFile(kPoolPath + "/volumes/" + made.id + "/.volume.json.new", "{");
  const Status deleted = volumes().Delete(made.id, false, {});
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_TRUE(world_.Directories().empty());
}

TEST_F(PoolVolumesTest, AnotherFileAtTheVolumesPlaceIsNeitherOpenedNorDeleted) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const std::string image = PoolWorld::ImageOf(made.id);
  world_.kernel.Rename(image, "image.old");
  world_.kernel.AddFile(image, std::string(4096, 'x'));
  EXPECT_EQ(CodeOf(volumes().Open(made.id, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(volumes().Expand(made.id, 64 * kMiB, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(volumes().Delete(made.id, false, {})), Code::kFailedPrecondition);
  EXPECT_NE(Must(volumes().Find(made.id)).state, PoolVolumeState::kDeleting);
  EXPECT_EQ(world_.kernel.Find(image).content, std::string(4096, 'x'));
  EXPECT_TRUE(world_.Loops().empty());
}

// It was attached, and its filesystem was repaired until it fitted what was left; to make it larger
// would have hidden the loss.
TEST_F(PoolVolumesTest, AVolumeWhoseFileHadBecomeShorterWasOpenedAndGrown) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const std::string image = PoolWorld::ImageOf(made.id);
  world_.kernel.AddFile(image, std::string(4096, 'x'));
  for (const Error& error : {Failure(volumes().Open(made.id, false, {})),
                             Failure(volumes().Open(made.id, /*read_only=*/true, {})),
                             Failure(volumes().Expand(made.id, 64 * kMiB, {}))}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_FALSE(error.maybe_applied()) << error.ToString();
    EXPECT_NE(error.message().find(image + " has 4Ki (4096 bytes), and is to have 16Mi"),
              std::string::npos)
        << error.ToString();
  }
  EXPECT_EQ(world_.kernel.Find(image).content, std::string(4096, 'x'));
  EXPECT_TRUE(world_.Loops().empty());
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
}

// The row says the old size until the file has the new one.
TEST_F(PoolVolumesTest, AGrowthThatWasCutOffIsNoFileThatHasLostItsEnd) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  int64_t size = 16 * kMiB;
  for (const bool apply : {false, true}) {
    size += 16 * kMiB;
    world_.kernel.FailNext("SetFileSize", Error::MaybeApplied(Code::kUnavailable, "it died"), 1,
                           apply);
    EXPECT_TRUE(Failure(volumes().Expand(made.id, size, {})).maybe_applied());
    StartAgent();
    EXPECT_TRUE(volumes().Open(made.id, false, {}).ok());
    EXPECT_TRUE(volumes().Close(made.id, {}).ok());
    EXPECT_EQ(Must(volumes().Expand(made.id, size, {})), size);
  }
}

TEST_F(PoolVolumesTest, AVolumeIsOpenedAndClosed) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const Result<OpenedVolume> opened = volumes().Open(made.id, false, {});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  const std::vector<LoopEntry> loops = world_.Loops();
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].path, opened->device);
  EXPECT_EQ(loops[0].file, PoolWorld::ImageOf(made.id));
  EXPECT_EQ(loops[0].block_size, 4096u);
  EXPECT_EQ(opened->identity.size_bytes, 16 * kMiB);
  EXPECT_TRUE(Must(volumes().Find(made.id)).used);
  // It has one device, however often it is opened.
  EXPECT_EQ(Must(volumes().Open(made.id, false, {})).device, opened->device);
  EXPECT_EQ(world_.Loops(), loops);
  EXPECT_EQ(CodeOf(volumes().Open(made.id, /*read_only=*/true, {})), Code::kFailedPrecondition);
  EXPECT_TRUE(volumes().Close(made.id, {}).ok());
  EXPECT_TRUE(world_.Loops().empty());
  EXPECT_TRUE(volumes().Close(made.id, {}).ok());
  EXPECT_TRUE(volumes().Open(made.id, /*read_only=*/true, {}).ok());
}

// What was missing for a moment counted as deleted: the row went, and the files stayed without one,
// so that no volume could be made on the node any more.
TEST_F(PoolVolumesTest, AVolumeThatWasDeletedWhileItsPoolWasAwayForAMomentLeftItsFiles) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const std::string directory = kPoolPath + "/volumes/" + made.id;
  bool is_away = false;
  world_.kernel.SetCallHook([&](const AnyRequest& request) {
    const std::string name = std::visit([](const auto& one) { return one.kName; }, request);
    if (name == "Stat" && !is_away) {  // the first of RemoveSkeleton
      is_away = true;
      world_.kernel.Rename(directory, "away");
    } else if (name == "IdentifyStorage" && is_away) {
      world_.kernel.Rename(kPoolPath + "/volumes/away", made.id);
      world_.kernel.SetCallHook({});
    }
  });
  const Error first = Failure(volumes().Delete(made.id, false, {}));
  EXPECT_EQ(first.code(), Code::kUnavailable) << first.ToString();
  EXPECT_TRUE(first.maybe_applied());
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kDeleting);
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
  EXPECT_FALSE(world_.kernel.Exists(directory));
  EXPECT_FALSE(volumes().Find(made.id).ok());
}

// Whoever reads a backup from it by a bind would have it as long as the bind is there.
TEST_F(PoolVolumesTest, AnImageThatWasBoundSomewhereWasDeleted) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const std::string image = kPoolPath + "/volumes/" + made.id + "/image";
  world_.kernel.AddFile("/elsewhere", "");
  Must(world_.kernel.DoAside(BindMount{.source = {image, ""}, .target = {"/elsewhere", ""}}));
  const Error refused = Failure(volumes().Delete(made.id, false, {}));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.ToString();
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_TRUE(world_.kernel.Exists(image));
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kReady);
  Must(world_.kernel.DoAside(Unmount{{"/elsewhere", ""}}));
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
}

// A bind of its node holds no device: this one went, and the bind showed the next volume that got
// its number. A deletion that was refused went on with the next start.
TEST_F(PoolVolumesTest, AVolumeWhoseDeviceWasBoundSomewhereWasClosedAndDeleted) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const std::string device = Must(volumes().Open(made.id, false, {})).device;
  world_.kernel.AddFile("/elsewhere", "");
  Must(world_.kernel.DoAside(BindMount{.source = {device, ""}, .target = {"/elsewhere", ""}}));
  for (const Error& error :
       {Failure(volumes().Close(made.id, {})), Failure(volumes().Delete(made.id, false, {}))}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_FALSE(error.maybe_applied()) << error.ToString();
    EXPECT_NE(error.message().find(device + " is bound at \"/elsewhere\""), std::string::npos)
        << error.ToString();
  }
  EXPECT_EQ(world_.Loops().size(), 1u);
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kReady);
  Must(world_.kernel.DoAside(Unmount{{"/elsewhere", ""}}));
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
}

// What is not on record as used would be deleted by the undo of a creation.
TEST_F(PoolVolumesTest, AVolumeIsUsedOnRecordBeforeItHasADevice) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  world_.store.FailNext(Error::NotApplied(Code::kUnavailable, "no store"));
  EXPECT_FALSE(volumes().Open(made.id, false, {}).ok());
  EXPECT_TRUE(world_.Loops().empty());
}

TEST_F(PoolVolumesTest, ANewAgentClosesWhatNobodyHas) {
  const PoolVolumeRecord idle = Make(Wish("pvc-1"));
  const PoolVolumeRecord busy = Make(Wish("pvc-2"));
  for (const std::string& id : {idle.id, busy.id}) {
    ASSERT_TRUE(volumes().Open(id, false, {}).ok());
  }
  StartAgent({busy.id});
  EXPECT_TRUE(recovered_.ok());
  const std::vector<LoopEntry> loops = world_.Loops();
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].file, PoolWorld::ImageOf(busy.id));
}

TEST_F(PoolVolumesTest, AVolumeGrowsWithItsDevice) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  ASSERT_TRUE(volumes().Open(made.id, false, {}).ok());
  EXPECT_EQ(Must(volumes().Expand(made.id, 1, {})), 16 * kMiB);
  EXPECT_EQ(Must(volumes().Expand(made.id, 32 * kMiB - 1, {})), 32 * kMiB);
  EXPECT_EQ(world_.Look(PoolWorld::ImageOf(made.id)).size_bytes, 32 * kMiB);
  const std::vector<LoopEntry> loops = world_.Loops();
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].size_bytes, 32 * kMiB);
  const PoolVolumeRecord grown = Must(volumes().Find(made.id));
  EXPECT_EQ(grown.state, PoolVolumeState::kReady);
  EXPECT_EQ(grown.capacity_bytes, 32 * kMiB);
  EXPECT_EQ(grown.target_bytes, 0);
  EXPECT_EQ(CodeOf(volumes().Expand(made.id, 0, {})), Code::kOutOfRange);
  EXPECT_EQ(CodeOf(volumes().Expand(made.id, std::numeric_limits<int64_t>::max(), {})),
            Code::kOutOfRange);
}

TEST_F(PoolVolumesTest, AGrowthThatFailsGoesOnAndIsNeverTakenBack) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  ASSERT_TRUE(volumes().Open(made.id, false, {}).ok());
  const int64_t promised = Must(volumes().Capacity({}, {})).promised_bytes;
  world_.kernel.FailNext("ConfigureLoop", Error::NotApplied(Code::kUnavailable, "no worker"));
  EXPECT_TRUE(Failure(volumes().Expand(made.id, 32 * kMiB, {})).maybe_applied());
  PoolVolumeRecord row = Must(volumes().Find(made.id));
  EXPECT_EQ(row.state, PoolVolumeState::kExpanding);
  EXPECT_EQ(row.capacity_bytes, 16 * kMiB);
  EXPECT_EQ(row.target_bytes, 32 * kMiB);
  // It is used meanwhile as it was, and what it was given stays promised.
  EXPECT_TRUE(volumes().Open(made.id, false, {}).ok());
  EXPECT_EQ(Must(volumes().Capacity({}, {})).promised_bytes, promised + 16 * kMiB);
  EXPECT_EQ(volumes().List("", 10).volumes.size(), 1u);
  StartAgent({made.id});
  // Less than that is not made of it any more.
  EXPECT_EQ(Must(volumes().Expand(made.id, 24 * kMiB, {})), 32 * kMiB);
  EXPECT_EQ(world_.Loops().at(0).size_bytes, 32 * kMiB);
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kReady);
}

TEST_F(PoolVolumesTest, AFilesystemIsNotedOnce) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const PoolFilesystem ext4{"ext4", "uuid-1"};
  ASSERT_TRUE(volumes().NoteFilesystem(made.id, ext4).ok());
  const uint64_t writes = world_.store.calls();
  EXPECT_TRUE(volumes().NoteFilesystem(made.id, ext4).ok());
  EXPECT_EQ(world_.store.calls(), writes);
  const Error other = Failure(volumes().NoteFilesystem(made.id, {"ext4", "uuid-2"}));
  EXPECT_EQ(other.code(), Code::kFailedPrecondition) << other.ToString();
  StartAgent();
  EXPECT_EQ(Must(volumes().Find(made.id)).filesystem, ext4);
}

TEST_F(PoolVolumesTest, VolumesAreListedInPages) {
  std::set<std::string> ids;
  for (int at = 0; at < 5; ++at) ids.insert(Make(Wish("pvc-" + std::to_string(at))).id);
  std::set<std::string> listed;
  std::string after;
  int pages = 0;
  do {
    const PoolPage page = volumes().List(after, 2);
    EXPECT_LE(page.volumes.size(), 2u);
    for (const PoolVolumeRecord& record : page.volumes) listed.insert(record.id);
    after = page.next;
    ++pages;
  } while (!after.empty());
  EXPECT_EQ(listed, ids);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(volumes().List("", 5).next, "");
}

}  // namespace
}  // namespace volumed
