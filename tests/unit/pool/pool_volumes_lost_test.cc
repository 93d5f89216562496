// PoolVolumes while something is not as it should be: the disk is away, a row cannot be read,
// another agent or another call has what is asked for, or the pool is nearly full.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "unit/pool/pool_fixture.h"

namespace volumed {
namespace {

template <typename T>
Error FailureOf(const Result<T>& result) {
  return result.ok() ? Error::NotApplied(Code::kUnknown, "it has not failed") : result.error();
}
template <typename T>
Code CodeOf(const Result<T>& result) {
  return FailureOf(result).code();
}

// ---- the disk is away -------------------------------------------------------------------------

TEST(PoolVolumesLost, NothingIsMadeOrTakenForGoneWhileThePoolsDiskIsAway) {
  PoolWorld world;
  world.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  PoolVolumeRecord made;
  {
    PoolAgent agent(world);
    ASSERT_TRUE(agent.Recover().ok());
    made = Must(agent.volumes->Create(Wish("pvc-1"), {}));
  }
  world.kernel.UnmountBelow(kPoolPath);
  const std::string before = world.kernel.DumpTree(kPoolPath);
  PoolAgent agent(world);
  EXPECT_EQ(CodeOf(agent.Recover()), Code::kUnavailable);
  PoolVolumes& volumes = *agent.volumes;
  EXPECT_EQ(Must(volumes.Find(made.id)), made);
  EXPECT_EQ(volumes.MeaningOf(made.id), PoolIdMeaning::kHere);
  EXPECT_EQ(Must(volumes.Create(Wish("pvc-1"), {})), made);
  EXPECT_EQ(CodeOf(volumes.Create(Wish("pvc-2"), {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Capacity({}, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.PlanId({})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Open(made.id, false, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Close(made.id, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Expand(made.id, 64 * kMiB, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Delete(made.id, false, {})), Code::kUnavailable);
  // The tag of the pool is on record, but nobody knows what is on its disk without a row.
  const std::string other = NewPoolId(PoolObject::kVolume, agent.pool().tag()).ToString();
  EXPECT_EQ(CodeOf(volumes.Find(other)), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Delete(other, false, {})), Code::kUnavailable);
  EXPECT_EQ(world.kernel.DumpTree(kPoolPath), before);
  EXPECT_EQ(world.Rows(), std::vector{made});
}

// The disk went away under an agent that had the pool open: a delete and a close found nothing, and
// were done.
TEST(PoolVolumesLost, ADiskThatWentAwayUnderTheAgentMadeItsVolumesGone) {
  PoolWorld world;
  world.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const PoolVolumeRecord made = Must(volumes.Create(Wish("pvc-1"), {}));
  world.kernel.UnmountBelow(kPoolPath);
  EXPECT_EQ(CodeOf(volumes.Delete(made.id, false, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Close(made.id, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Open(made.id, false, {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Create(Wish("pvc-2"), {})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(volumes.Capacity({}, {})), Code::kUnavailable);
  EXPECT_EQ(world.Rows(), std::vector{made});
}

TEST(PoolVolumesLost, OneDamagedVolumeKeptAllOthersFromBeingMade) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string damaged = Must(volumes.Create(Wish("pvc-1"), {})).id;
  const int64_t before = Must(volumes.Capacity({}, {})).free_bytes;
  world.kernel.Remove(PoolWorld::ImageOf(damaged));
  world.kernel.Remove(kPoolPath + "/volumes/" + damaged);
  world.kernel.AddSymlink(kPoolPath + "/volumes/" + damaged, "/etc");
  EXPECT_LT(Must(volumes.Capacity({}, {})).free_bytes, before + kMiB)
      << "what it was promised is still its own";
  EXPECT_TRUE(volumes.Create(Wish("pvc-2"), {}).ok());
}

// A root that was made anew beside a pool that has volumes: they were no volumes, and a CO was told
// that they are deleted.
TEST(PoolVolumesLost, AVolumeWithFilesAndWithoutARowIsNotOneThatThereIsNot) {
  PoolWorld world;
  std::string id;
  {
    PoolAgent agent(world);
    ASSERT_TRUE(agent.Recover().ok());
    id = Must(agent.volumes->Create(Wish("pvc-1"), {})).id;
  }
  for (const Record& row : world.store.All()) {
    ASSERT_TRUE(world.store.Remove(row.kind, row.key, Durability::kPowerLoss).ok());
  }
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  EXPECT_EQ(volumes.MeaningOf(id), PoolIdMeaning::kUnreadable);
  EXPECT_EQ(CodeOf(volumes.Delete(id, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(volumes.Create(Wish("pvc-1"), {})), Code::kFailedPrecondition);
  EXPECT_TRUE(world.kernel.Exists(PoolWorld::ImageOf(id)));
}

TEST(PoolVolumesLost, ADeletionThatWasBegunEndsWhenThePoolIsBack) {
  PoolWorld world;
  std::string id;
  {
    PoolAgent agent(world);
    ASSERT_TRUE(agent.Recover().ok());
    id = Must(agent.volumes->Create(Wish("pvc-1"), {})).id;
    world.kernel.FailNext("RemoveFile", Error::MaybeApplied(Code::kUnavailable, "it died"));
    EXPECT_FALSE(agent.volumes->Delete(id, false, {}).ok());
    EXPECT_TRUE(world.kernel.Exists(PoolWorld::ImageOf(id)));
  }
  PoolAgent agent(world);
  agent.irreversible.hold = true;
  EXPECT_EQ(CodeOf(agent.Recover()), Code::kFailedPrecondition);
  EXPECT_TRUE(world.kernel.Exists(PoolWorld::ImageOf(id)));
  agent.irreversible.hold = false;
  EXPECT_TRUE(agent.Recover().ok());
  EXPECT_TRUE(world.Rows().empty());
  EXPECT_TRUE(world.Directories().empty());
}

// ---- rows that cannot be read -----------------------------------------------------------------

TEST(PoolVolumesLost, AVolumeWhoseRowCannotBeReadStaysAndKeepsItsPromise) {
  PoolWorld world;
  PoolVolumeRecord made;
  int64_t promised = 0;
  {
    PoolAgent agent(world);
    ASSERT_TRUE(agent.Recover().ok());
    made = Must(agent.volumes->Create(Wish("pvc-1", 64 * kMiB), {}));
    Must(agent.volumes->Create(Wish("pvc-2"), {}));
    ASSERT_TRUE(agent.volumes->Open(made.id, false, {}).ok());
    promised = Must(agent.volumes->Capacity({}, {})).promised_bytes;
  }
  world.store.Corrupt(kPoolVolumeRecordKind, made.id, "the checksum is wrong");
  const std::string before = world.kernel.DumpTree(kPoolPath + "/volumes");
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  EXPECT_EQ(volumes.MeaningOf(made.id), PoolIdMeaning::kUnreadable);
  for (const Error& error :
       {FailureOf(volumes.Find(made.id)), FailureOf(volumes.Open(made.id, false, {})),
        FailureOf(volumes.Close(made.id, {})), FailureOf(volumes.Delete(made.id, false, {})),
        FailureOf(volumes.Expand(made.id, 128 * kMiB, {})),
        FailureOf(volumes.Create(Wish("pvc-1", 64 * kMiB), {})),
        FailureOf(volumes.Create(Wish("pvc-3"), {}))}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_NE(error.message().find("the checksum is wrong"), std::string::npos);
  }
  EXPECT_EQ(Must(volumes.Capacity({}, {})).promised_bytes, promised);
  EXPECT_EQ(world.Loops().size(), 1u);
  EXPECT_EQ(world.kernel.DumpTree(kPoolPath + "/volumes"), before);
  // The others are as they were.
  EXPECT_TRUE(volumes.FindByName("pvc-2").has_value());
}

TEST(PoolVolumesLost, ARowOfALaterProgramIsLeftAlone) {
  PoolWorld world;
  PoolVolumeRecord made;
  {
    PoolAgent agent(world);
    ASSERT_TRUE(agent.Recover().ok());
    made = Must(agent.volumes->Create(Wish("pvc-1"), {}));
  }
  Record later = EncodeRecord(made);
  later.version = kMovedPoolVolumeVersion + 1;
  ASSERT_TRUE(world.store.Put(later, kPoolRecordDurability).ok());
  PoolAgent agent(world);
  EXPECT_TRUE(agent.Recover().ok());
  EXPECT_EQ(CodeOf(agent.volumes->Delete(made.id, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(world.store.Find(kPoolVolumeRecordKind, made.id), later);
}

TEST(PoolVolumesLost, AVolumeOfAPoolThatIsNotConfiguredAnyMoreStays) {
  PoolWorld world;
  PoolVolumeRecord made;
  {
    PoolAgent agent(world);
    ASSERT_TRUE(agent.Recover().ok());
    made = Must(agent.volumes->Create(Wish("pvc-1"), {}));
  }
  PoolAgent agent(world, {});
  EXPECT_TRUE(agent.Recover().ok());
  EXPECT_EQ(Must(agent.volumes->Find(made.id)), made);
  EXPECT_EQ(CodeOf(agent.volumes->Delete(made.id, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(agent.volumes->Create(Wish("pvc-2"), {})), Code::kNotFound);
  EXPECT_EQ(agent.volumes->DomainOf(made.id), "");
  EXPECT_EQ(world.Rows(), std::vector{made});
}

// ---- others have it ---------------------------------------------------------------------------

TEST(PoolVolumesLost, TwoAgentsNeverHaveOnePool) {
  PoolWorld world;
  PoolAgent first(world);
  ASSERT_TRUE(first.Recover().ok());
  PoolSettings settings = TestPool();
  settings.holder = "the agent of node n2, with pid 1";
  auto second = std::make_unique<PoolAgent>(world, std::vector{settings});
  const Error refused = FailureOf(second->Recover());
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_NE(refused.message().find("node n1, with pid 4711"), std::string::npos)
      << refused.ToString();
  EXPECT_EQ(CodeOf(second->volumes->Create(Wish("pvc-1"), {})), Code::kUnavailable);
  EXPECT_TRUE(world.Directories().empty());
  EXPECT_TRUE(first.volumes->Create(Wish("pvc-1"), {}).ok());
  // The one that was refused has let go of nothing that is the other's.
  second.reset();
  PoolAgent third(world, {settings});
  EXPECT_EQ(CodeOf(third.Recover()), Code::kUnavailable);
}

// Runs `meanwhile` amid the next request of this name.
class Meanwhile {
 public:
  Meanwhile(PoolWorld& world, std::string request, std::function<void()> meanwhile)
      : world_(world) {
    world.kernel.SetCallHook([this, request, meanwhile](const AnyRequest& made) {
      if (ran_ || RequestName(made) != request) return;
      ran_ = true;
      meanwhile();
    });
  }
  ~Meanwhile() { world_.kernel.SetCallHook({}); }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
  bool ran() const { return ran_; }

 private:
  PoolWorld& world_;
  bool ran_ = false;
};

TEST(PoolVolumesLost, TwoCallsOfOneNameMakeOneVolume) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  PoolVolumeWish wish = Wish("pvc-1");
  wish.id = Must(volumes.PlanId({}));
  for (const char* amid : {"StatFs", "MakeDirectory", "SetFileSize"}) {
    const Meanwhile other(world, amid, [&] {
      const Error same = FailureOf(volumes.Create(wish, {}));
      EXPECT_EQ(same.code(), Code::kAborted) << same.ToString();
      EXPECT_FALSE(same.maybe_applied());
      PoolVolumeWish by_id = Wish("pvc-2");
      by_id.id = wish.id;
      const Code code = CodeOf(volumes.Create(by_id, {}));
      EXPECT_TRUE(code == Code::kAborted || code == Code::kAlreadyExists) << CodeName(code);
      // A name that nobody has is no matter of theirs.
      EXPECT_TRUE(volumes.Create(Wish("pvc-3"), {}).ok());
    });
    EXPECT_EQ(Must(volumes.Create(wish, {})).id, wish.id);
    EXPECT_TRUE(other.ran()) << amid;
    EXPECT_EQ(world.Rows().size(), 2u);
    EXPECT_TRUE(volumes.Delete(wish.id, false, {}).ok());
  }
}

// Its id was planned and told: it is not said to be gone while its row is about to be written.
TEST(PoolVolumesLost, AVolumeThatIsBeingMadeIsNotDeletedAsOneThatIsNone) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  PoolVolumeWish wish = Wish("pvc-1");
  wish.id = Must(volumes.PlanId({}));
  const Meanwhile other(world, "StatFs", [&] {
    EXPECT_TRUE(world.Rows().empty());
    EXPECT_EQ(CodeOf(volumes.Delete(wish.id, true, {})), Code::kAborted);
  });
  EXPECT_TRUE(volumes.Create(wish, {}).ok());
  EXPECT_TRUE(other.ran());
}

TEST(PoolVolumesLost, OneCallAtATimeHasAVolume) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), {})).id;
  int looks = 0;
  const auto all_are_refused = [&] {
    ++looks;
    EXPECT_EQ(CodeOf(volumes.Create(Wish("pvc-1"), {})), Code::kAborted);
    EXPECT_EQ(CodeOf(volumes.Delete(id, false, {})), Code::kAborted);
    EXPECT_EQ(CodeOf(volumes.Open(id, false, {})), Code::kAborted);
    EXPECT_EQ(CodeOf(volumes.Close(id, {})), Code::kAborted);
    EXPECT_EQ(CodeOf(volumes.Expand(id, 64 * kMiB, {})), Code::kAborted);
    EXPECT_EQ(CodeOf(volumes.NoteFilesystem(id, {"ext4", "u"})), Code::kAborted);
    // What only looks is not held up.
    EXPECT_TRUE(volumes.Find(id).ok());
    EXPECT_TRUE(volumes.FindByName("pvc-1").has_value());
  };
  {
    const Meanwhile other(world, "AttachLoop", all_are_refused);
    EXPECT_TRUE(volumes.Open(id, false, {}).ok());
  }
  {
    const Meanwhile other(world, "SetFileSize", all_are_refused);
    EXPECT_TRUE(volumes.Expand(id, 32 * kMiB, {}).ok());
  }
  {
    const Meanwhile other(world, "RemoveFile", all_are_refused);
    EXPECT_TRUE(volumes.Delete(id, false, {}).ok());
  }
  EXPECT_EQ(looks, 3);
}

// Who opens a volume says so before. Asked while somebody else could still open it, the recovery
// would take a device away that has got a user since.
TEST(PoolVolumesLost, WhetherAVolumeIsUsedIsAskedWhileNobodyElseCanOpenIt) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), {})).id;
  ASSERT_TRUE(volumes.Open(id, false, {}).ok());
  int asked = 0;
  const auto is_used = [&](const std::string& of) {
    EXPECT_EQ(of, id);
    EXPECT_EQ(CodeOf(volumes.Open(id, false, {})), Code::kAborted);
    return ++asked == 1;
  };
  EXPECT_TRUE(volumes.Recover(is_used, {}).ok());
  EXPECT_EQ(world.Loops().size(), 1u);
  EXPECT_TRUE(volumes.Recover(is_used, {}).ok());
  EXPECT_TRUE(world.Loops().empty());
  EXPECT_EQ(asked, 2);
}

// Somebody has mounted the device in a namespace of his own: what he writes must not go to a file
// that nobody sees any more.
TEST(PoolVolumesLost, AVolumeWhoseDeviceSomebodyHasIsNotDeleted) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), {})).id;
  const std::string device = Must(volumes.Open(id, false, {})).device;
  world.kernel.ChangeDevice(device, [](FakeDevice& loop) { loop.claimed = true; });
  const Error refused = FailureOf(volumes.Delete(id, false, {}));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.ToString();
  EXPECT_NE(refused.message().find(device), std::string::npos) << refused.ToString();
  EXPECT_TRUE(world.kernel.Exists(PoolWorld::ImageOf(id)));
  EXPECT_EQ(Must(volumes.Find(id)).state, PoolVolumeState::kReady);
  world.kernel.ChangeDevice(device, [](FakeDevice& loop) { loop.claimed = false; });
  const Status deleted = volumes.Delete(id, false, {});
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_TRUE(world.Directories().empty());
}

// ---- a pool that is nearly full ---------------------------------------------------------------

// Bytes that are kept for a call that is being made are not promised to another one.
TEST(PoolVolumesLost, APlaceThatIsBeingTakenIsNotPromisedTwice) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const int64_t most = (Must(volumes.Capacity({}, {})).free_bytes / 2 + 8 * kMiB) / 4096 * 4096;
  const Meanwhile other(world, "MakeDirectory", [&] {
    EXPECT_EQ(CodeOf(volumes.Create(Wish("pvc-2", most), {})), Code::kResourceExhausted);
  });
  EXPECT_TRUE(volumes.Create(Wish("pvc-1", most), {}).ok());
  EXPECT_TRUE(other.ran());
}

// Volumes come, grow and go in random order, by several agents: what is promised never exceeds what
// the pool was given, and whatever is refused would have exceeded it.
TEST(PoolVolumesLost, APoolNeverPromisesMoreThanItHas) {
  constexpr int64_t kCapacity = 512 * kMiB;
  int refused = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    PoolWorld world;
    PoolSettings settings = TestPool();
    settings.limits = {.capacity_bytes = kCapacity, .reserve_percent = 0};
    auto agent = std::make_unique<PoolAgent>(world, std::vector{settings});
    ASSERT_TRUE(agent->Recover().ok());
    std::map<std::string, int64_t> sizes;  // by id
    const auto promised = [&sizes] {
      int64_t sum = 0;
      for (const auto& [id, size] : sizes) sum += size;
      return sum;
    };
    for (int step = 0; step < 60; ++step) {
      const int64_t size = static_cast<int64_t>(4 + random() % 40) * 4 * kMiB;
      std::string some;
      if (!sizes.empty()) {
        some = std::next(sizes.begin(), static_cast<int64_t>(random() % sizes.size()))->first;
      }
      switch (some.empty() ? 0 : random() % 5) {
        case 0:
        case 1: {
          PoolVolumeWish wish = Wish("pvc-" + std::to_string(step), size);
          if (random() % 4 == 0) wish.parameters = {{"allocation", "thick"}};
          const Result<PoolVolumeRecord> made = agent->volumes->Create(wish, {});
          EXPECT_EQ(made.ok(), promised() + size <= kCapacity) << "seed " << seed;
          if (made.ok()) sizes[made->id] = size;
          refused += !made.ok();
          break;
        }
        case 2: {
          const int64_t more = size - sizes.at(some);
          const Result<int64_t> grown = agent->volumes->Expand(some, size, {});
          EXPECT_EQ(grown.ok(), promised() + std::max<int64_t>(more, 0) <= kCapacity)
              << "seed " << seed;
          if (grown.ok()) sizes[some] = *grown;
          refused += !grown.ok();
          break;
        }
        case 3:
          ASSERT_TRUE(agent->volumes->Delete(some, false, {}).ok());
          sizes.erase(some);
          break;
        default:
          agent.reset();
          agent = std::make_unique<PoolAgent>(world, std::vector{settings});
          ASSERT_TRUE(agent->Recover().ok());
      }
      const PoolAccount account = Must(agent->volumes->Capacity({}, {}));
      EXPECT_EQ(account.promised_bytes, promised()) << "seed " << seed;
      EXPECT_LE(account.promised_bytes, kCapacity);
      EXPECT_FALSE(account.is_short);
    }
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace volumed
