// A pool's volumes at places that a CO gave: staged, published and taken back there, over restarts
// and reboots, and beside nothing that is not theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fakes/simulated_crash.h"
#include "operation/expand_operations.h"
#include "operation/given_place.h"
#include "os/place_names.h"
#include "unit/pool/pool_operations_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kCo = "/srv/co";

class PoolTargetsTest : public PoolOperationsFixture {
 protected:
  PoolTargetsTest() {
    node_.AddDirectory(kCo + "/stage");
    node_.AddDirectory(kCo + "/pod-a");
    node_.AddDirectory(kCo + "/pod-b");
  }

  // Each mode has a name of its own.
  PersistentVolume ClaimOf(VolumeMode mode) {
    return Claim(mode, mode == VolumeMode::kBlock ? "pvc-block" : "pvc-files");
  }
  static SafePath Place(const std::string& relative) { return {kCo, relative}; }
  static std::string IdOf(const PersistentVolume& volume) {
    return Must(PoolVolumeIdOf(SpecOf(volume), kDriver));
  }
  static PodVolumeKey KeyAt(const PersistentVolume& volume, const SafePath& target) {
    return TargetKey(target.Display(), IdOf(volume));
  }

  // What the node service asks for.
  static MountDevice StageOf(const PersistentVolume& volume, const SafePath& place) {
    MountDeviceRequest request{NameOf(volume), SpecOf(volume), {}};
    request.place = place;
    return MountDevice(std::move(request));
  }
  static MountRequest PublishOf(const PersistentVolume& volume, const SafePath& target) {
    MountRequest request{.target = {.key = KeyAt(volume, target),
                                    .place = target,
                                    .directory = ParentOf(target),
                                    .display_name = target.Display(),
                                    .owner = {},
                                    .pod = nullptr},
                         .spec = SpecOf(volume),
                         .sub_paths = {},
                         .nested_mount_points = {}};
    request.unique_name = NameOf(volume);
    request.has_device = true;
    return request;
  }
  static UnmountRequest UnpublishOf(const PersistentVolume& volume, const SafePath& target) {
    const PodVolumeKey key = KeyAt(volume, target);
    UnmountRequest request{key.pod, key.spec, kPoolPluginName, target.Display(), NameOf(volume)};
    request.place = target;
    return request;
  }
  static UnmountDevice UnstageOf(const PersistentVolume& volume, const SafePath& place) {
    UnmountDeviceRequest request{NameOf(volume), kPoolPluginName, SpecName(volume.metadata.name),
                                 place.Display(), IsBlockVolume(SpecOf(volume))};
    request.place = place;
    request.constructed = SpecOf(volume);
    return UnmountDevice(std::move(request));
  }

  // Each answers as Start() does.
  std::string StageAt(const PersistentVolume& volume, const SafePath& place = Place("stage")) {
    return Start(StageOf(volume, place));
  }
  std::string PublishAt(const PersistentVolume& volume, const SafePath& target = Place("pod-a/v"),
                        bool one_pod_only = false) {
    MountRequest request = PublishOf(volume, target);
    request.one_pod_only = one_pod_only;
    if (IsBlockVolume(request.spec)) return Start(MapVolume(std::move(request)));
    return Start(MountVolume(std::move(request)));
  }
  std::string UnpublishAt(const PersistentVolume& volume,
                          const SafePath& target = Place("pod-a/v")) {
    if (IsBlockVolume(SpecOf(volume))) return Start(UnmapVolume(UnpublishOf(volume, target)));
    return Start(UnmountVolume(UnpublishOf(volume, target)));
  }
  std::string UnstageAt(const PersistentVolume& volume, const SafePath& place = Place("stage")) {
    return Start(UnstageOf(volume, place));
  }
  uint32_t VersionOf(const char* kind) {
    const LoadedRecords loaded = Must(store_.Load(kind));
    EXPECT_THAT(loaded.records, SizeIs(1)) << kind;
    return loaded.records.empty() ? 0 : loaded.records.front().version;
  }
  bool IsNode(const std::string& path) {
    return node_.IsMountPoint(path) && node_.Find(path).type == FileType::kBlockDevice;
  }
};

TEST_F(PoolTargetsTest, AVolumeIsStagedAndPublishedWhereTheCoSaysAndTakenBackFromThere) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(StageAt(volume), "");
  EXPECT_TRUE(node_.IsMountPoint(kCo + "/stage"));
  ASSERT_EQ(PublishAt(volume), "");
  EXPECT_TRUE(node_.IsMountPoint(kCo + "/pod-a/v"));
  EXPECT_FALSE(node_.Exists(PoolDevicePlace(paths_, IdOf(volume)).Display()));
  EXPECT_EQ(VersionOf(kPodVolumeRecordKind), 3u);
  EXPECT_EQ(VersionOf(kDeviceRecordKind), 3u);

  EXPECT_EQ(UnpublishAt(volume), "");
  EXPECT_FALSE(node_.Exists(kCo + "/pod-a/v"));
  EXPECT_TRUE(node_.Exists(kCo + "/pod-a"));
  EXPECT_EQ(UnstageAt(volume), "");
  EXPECT_FALSE(node_.IsMountPoint(kCo + "/stage"));
  EXPECT_TRUE(node_.Exists(kCo + "/stage")) << "the CO has made it";
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_THAT(LoadPodVolumeRecords(store_), IsEmpty());
}

TEST_F(PoolTargetsTest, ABlockVolumeIsItsDevicesNodeAtTheTarget) {
  const PersistentVolume volume = Claim(VolumeMode::kBlock);
  ASSERT_EQ(StageAt(volume), "");
  EXPECT_FALSE(node_.IsMountPoint(kCo + "/stage"));
  ASSERT_EQ(PublishAt(volume), "");
  EXPECT_TRUE(IsNode(kCo + "/pod-a/v"));
  EXPECT_FALSE(node_.Exists(PoolMapPlace(paths_, IdOf(volume)).Display()));
  EXPECT_THAT(UnstageAt(volume), HasSubstr("is still Mapped for the target " + kCo + "/pod-a/v"));

  EXPECT_EQ(UnpublishAt(volume), "");
  EXPECT_FALSE(node_.Exists(kCo + "/pod-a/v"));
  EXPECT_EQ(UnstageAt(volume), "");
  EXPECT_TRUE(node_.Exists(kCo + "/stage")) << "the CO has made it";
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(PoolTargetsTest, ACallThatIsMadeAgainSucceedsAndChangesNothing) {
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    const PersistentVolume volume = ClaimOf(mode);
    for (int trial = 0; trial < 2; ++trial) {
      ASSERT_EQ(StageAt(volume), "");
      ASSERT_EQ(PublishAt(volume), "");
    }
    EXPECT_THAT(Loops(), SizeIs(1));
    for (int trial = 0; trial < 2; ++trial) EXPECT_EQ(UnpublishAt(volume), "");
    for (int trial = 0; trial < 2; ++trial) EXPECT_EQ(UnstageAt(volume), "");
    EXPECT_THAT(Loops(), IsEmpty());
    ASSERT_EQ(Delete(volume), "");
  }
}

TEST_F(PoolTargetsTest, TheNextAgentTakesItBackByWhatIsOnRecord) {
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    const PersistentVolume volume = ClaimOf(mode);
    ASSERT_EQ(StageAt(volume), "");
    ASSERT_EQ(PublishAt(volume), "");
    Restart();
    EXPECT_THAT(Loops(), SizeIs(1)) << "a CO has it";
    EXPECT_EQ(GivenPlaceOf(*devices_->Find(NameOf(volume))), Place("stage"));
    EXPECT_EQ(GivenPlaceOf(*operations_->FindRecord(KeyAt(volume, Place("pod-a/v")))),
              Place("pod-a/v"));
    EXPECT_THAT(Delete(volume), HasSubstr("its device is still on this node"));
    EXPECT_EQ(UnpublishAt(volume), "");
    EXPECT_EQ(UnstageAt(volume), "");
    EXPECT_FALSE(node_.Exists(kCo + "/pod-a/v"));
    EXPECT_FALSE(node_.IsMountPoint(kCo + "/stage"));
    EXPECT_THAT(Loops(), IsEmpty());
    ASSERT_EQ(Delete(volume), "");
  }
}

TEST_F(PoolTargetsTest, AfterARebootTheCoStagesAndPublishesItAnewWithItsFilesystem) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(StageAt(volume), "");
  ASSERT_EQ(PublishAt(volume), "");
  const PoolFilesystem before = volumes_->List("", 1).volumes.at(0).filesystem;
  node_.Reboot();
  Restart("boot-b");
  EXPECT_THAT(PublishAt(volume), HasSubstr("is not mounted"));
  ASSERT_EQ(StageAt(volume), "");
  ASSERT_EQ(PublishAt(volume), "");
  EXPECT_EQ(volumes_->List("", 1).volumes.at(0).filesystem, before);
  EXPECT_EQ(UnpublishAt(volume), "");
  EXPECT_EQ(UnstageAt(volume), "");
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(PoolTargetsTest, WhatTheCoHasToMakeIsNotMadeForIt) {
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    const PersistentVolume volume = ClaimOf(mode);
    EXPECT_THAT(StageAt(volume, Place("none")),
                HasSubstr("there is no directory " + kCo + "/none"));
    EXPECT_FALSE(node_.Exists(kCo + "/none"));
    EXPECT_THAT(Loops(), IsEmpty());
    ASSERT_EQ(StageAt(volume), "");
    EXPECT_THAT(PublishAt(volume, Place("none/v")),
                HasSubstr("there is no directory " + kCo + "/none"));
    EXPECT_FALSE(node_.Exists(kCo + "/none"));
    EXPECT_FALSE(operations_->FindRecord(KeyAt(volume, Place("none/v"))));
    ASSERT_EQ(UnstageAt(volume), "");
  }
}

TEST_F(PoolTargetsTest, ALinkOnTheWayToAPlaceIsNotFollowed) {
  node_.AddDirectory("/etc/own");
  node_.AddSymlink(kCo + "/link", "/etc/own");
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    const PersistentVolume volume = ClaimOf(mode);
    EXPECT_NE(StageAt(volume, Place("link")), "");
    EXPECT_NE(StageAt(volume, Place("link/stage")), "");
    ASSERT_EQ(StageAt(volume), "");
    EXPECT_NE(PublishAt(volume, Place("link")), "");
    EXPECT_NE(PublishAt(volume, Place("link/v")), "");
    EXPECT_NE(PublishAt(volume, Place("pod-a/../../../etc/own/v")), "");
    EXPECT_FALSE(node_.Exists("/etc/own/v"));
    EXPECT_FALSE(node_.IsMountPoint("/etc/own"));
    ASSERT_EQ(UnstageAt(volume), "");
  }
  EXPECT_EQ(node_.Find(kCo + "/link").type, FileType::kSymlink);
}

TEST_F(PoolTargetsTest, WhatElseIsMountedAtAPlaceIsNeitherTakenForTheVolumeNorTakenAway) {
  const PersistentVolume volume = Claim();
  node_.AddMount("tmpfs", "theirs", kCo + "/pod-b");
  node_.AddMount("tmpfs", "theirs", kCo + "/pod-a/v");
  ASSERT_EQ(StageAt(volume), "");
  EXPECT_THAT(PublishAt(volume), HasSubstr("a tmpfs is mounted at " + kCo + "/pod-a/v"));
  EXPECT_THAT(UnpublishAt(volume), HasSubstr("a tmpfs is mounted at " + kCo + "/pod-a/v"));
  EXPECT_TRUE(node_.IsMountPoint(kCo + "/pod-a/v"));
  EXPECT_THAT(PublishAt(volume, Place("pod-b/v")),
              HasSubstr("a tmpfs is mounted over " + kCo + "/pod-b, and covers what is published"));
  ASSERT_EQ(UnstageAt(volume), "");

  // It has its filesystem by now: what is there is not taken for it.
  EXPECT_THAT(StageAt(volume, Place("pod-b")), HasSubstr("theirs is mounted at " + kCo));
  EXPECT_TRUE(node_.IsMountPoint(kCo + "/pod-b"));
}

// What a CO has put at its own root is no cover: a container gets just that directory.
TEST_F(PoolTargetsTest, ATargetRightBelowARootThatIsAMountIsAPlaceLikeAnyOther) {
  node_.AddMount("tmpfs", "container", "/mnt/co");
  node_.AddDirectory("/mnt/co/stage");
  const PersistentVolume volume = Claim();
  const SafePath target{"/mnt/co", "v"};
  ASSERT_EQ(StageAt(volume, {"/mnt/co", "stage"}), "");
  EXPECT_EQ(PublishAt(volume, target), "");
  EXPECT_TRUE(node_.IsMountPoint("/mnt/co/v"));
  EXPECT_EQ(UnpublishAt(volume, target), "");
  EXPECT_FALSE(node_.Exists("/mnt/co/v"));
}

TEST_F(PoolTargetsTest, APodAndACoAreNotGivenTheVolumeAtOnce) {
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    const PersistentVolume volume = ClaimOf(mode);
    ASSERT_EQ(Stage(volume), "");
    EXPECT_THAT(StageAt(volume), HasSubstr("it has to leave that place before it can come to"));
    EXPECT_THAT(PublishAt(volume), HasSubstr("which has to leave first"));
    EXPECT_THAT(UnstageAt(volume), HasSubstr("and not at a place that was given for it"));
    ASSERT_EQ(Unstage(volume), "");

    ASSERT_EQ(StageAt(volume), "");
    EXPECT_THAT(Stage(volume), HasSubstr("it has to leave that place before it can come to"));
    EXPECT_THAT(Publish(volume), HasSubstr("which has to leave first"));
    EXPECT_THAT(Unstage(volume), HasSubstr("a place that was given for it"));
    EXPECT_THAT(Loops(), SizeIs(1));
    ASSERT_EQ(UnstageAt(volume), "");

    // A place that it has left binds nobody.
    ASSERT_EQ(Stage(volume), "");
    EXPECT_FALSE(GivenPlaceOf(*devices_->Find(NameOf(volume))));
    ASSERT_EQ(Unstage(volume), "");
  }
}

TEST_F(PoolTargetsTest, AVolumeForOneTargetAloneIsNamedByThatToTheNext) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(StageAt(volume), "");
  ASSERT_EQ(PublishAt(volume, Place("pod-a/v"), true), "");
  EXPECT_THAT(PublishAt(volume, Place("pod-b/v"), true),
              HasSubstr("is already in use by another pod: " + kCo + "/pod-a/v"));
  EXPECT_FALSE(node_.Exists(kCo + "/pod-b/v"));
  ASSERT_EQ(UnpublishAt(volume), "");
  EXPECT_EQ(PublishAt(volume, Place("pod-b/v"), true), "");
}

TEST_F(PoolTargetsTest, TheVolumeGrowsWhereItIsStaged) {
  PersistentVolume volume = Claim();
  std::get<CsiPersistentVolumeSource>(volume.spec.source).fs_type = "xfs";
  ASSERT_EQ(StageAt(volume), "");
  ASSERT_TRUE(volumes_->Expand(IdOf(volume), 32 * kMiB, {}).ok());
  ASSERT_EQ(Start(ExpandVolume({.volume = NameOf(volume),
                                .spec = SpecOf(volume),
                                .target = {},
                                .pods = {},
                                .claim = "",
                                .new_size = Quantity::FromBytes(32 * kMiB),
                                .old_size = Quantity::FromBytes(16 * kMiB),
                                .decision = {}})),
            "");
  EXPECT_EQ(node_.Device(Loops().at(0).path).fs_bytes, 32 * kMiB);
  EXPECT_EQ(devices_->Find(NameOf(volume))->size_bytes, 32 * kMiB);
  EXPECT_EQ(GivenPlaceOf(*devices_->Find(NameOf(volume))), Place("stage"));
}

// A power loss took the row back to what it was before the mount, or there is none.
TEST_F(PoolTargetsTest, WhatNoRecordKnowsToBeThereIsTakenBackByWhatTheCoSays) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(StageAt(volume), "");
  ASSERT_EQ(UnstageAt(volume), "");
  VolumePlugin* const plugin = Must(plugins_of_agent_->FindPluginBySpec(SpecOf(volume)));
  const auto mounter = Must(plugin->AsDeviceMountable()->NewDeviceMounter());
  ASSERT_TRUE(mounter->MountDevice(SpecOf(volume), "", Place("stage"), DeviceMounterArgs()).ok());
  EXPECT_EQ(UnstageAt(volume), "");
  EXPECT_FALSE(node_.IsMountPoint(kCo + "/stage"));
  EXPECT_THAT(Loops(), IsEmpty());
}

// ---- an agent that ends -------------------------------------------------------------------------

// A volume that a CO stages, publishes and takes back; each call is made again to the next agent
// until it has succeeded.
class TargetLife : public PoolTargetsTest {
 public:
  explicit TargetLife(VolumeMode mode) : volume_(ClaimOf(mode)) {}
  void TestBody() override {}

  // Ends the agent at effect, or write, number `n`; whether there was one.
  bool EndsAt(uint64_t n, bool in_kernel, bool before) {
    EndAgent();
    Revive();
    if (in_kernel) {
      node_.CrashAtCall(n,
                        before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
    } else {
      store_.CrashAtCall(n, before ? MemoryRecordStore::CrashPoint::kBefore
                                   : MemoryRecordStore::CrashPoint::kAfter);
    }
    const bool ended = !GoOn();
    if (ended) {
      Revive();
      EXPECT_TRUE(GoOn());
    }
    const std::string at =
        (in_kernel ? "effect " : "write ") + std::to_string(n) + (before ? " before" : " after");
    EXPECT_EQ(step_, 5) << at;
    EXPECT_FALSE(node_.Exists(kCo + "/pod-a/v")) << at;
    EXPECT_TRUE(node_.Exists(kCo + "/stage")) << at;
    EXPECT_FALSE(node_.IsMountPoint(kCo + "/stage")) << at;
    EXPECT_THAT(Loops(), IsEmpty()) << at;
    EXPECT_THAT(LoadPodVolumeRecords(store_), IsEmpty()) << at;
    return ended;
  }

 private:
  // False: the agent has ended.
  bool GoOn() {
    try {
      Restart();
      OperationParts parts = Parts();
      parts.volumes = std::make_shared<VolumeRecordKeeper>(store_, clock_, logger_, observer_,
                                                           BootId("boot-a"));
      for (const PodVolumeRecord& row : LoadPodVolumeRecords(store_)) parts.volumes->Restore(row);
      for (; step_ < 5; ++step_) {
        const std::string failed = Call(parts);
        EXPECT_EQ(failed, "") << "call " << step_;
        if (!failed.empty()) return true;
      }
      return true;
    } catch (const SimulatedCrash&) {
      EndAgent();
      return false;
    }
  }
  std::string Call(const OperationParts& parts) {
    const SafePath target = Place("pod-a/v");
    const bool is_block = IsBlockVolume(SpecOf(volume_));
    switch (step_) {
      case 0:
        return Run(parts, StageOf(volume_, Place("stage")));
      case 1:
        if (is_block) return Run(parts, MapVolume(PublishOf(volume_, target)));
        return Run(parts, MountVolume(PublishOf(volume_, target)));
      case 2:
        return IsThere() ? "" : "the volume is not at its target";
      case 3:
        if (is_block) return Run(parts, UnmapVolume(UnpublishOf(volume_, target)));
        return Run(parts, UnmountVolume(UnpublishOf(volume_, target)));
      default:
        return Run(parts, UnstageOf(volume_, Place("stage")));
    }
  }
  bool IsThere() { return node_.IsMountPoint(kCo + "/pod-a/v") && Loops().size() == 1; }
  // Without an executor, whose tasks would outlive the agent that ends.
  template <typename Op>
  std::string Run(const OperationParts& parts, const Op& operation) {
    OperationProgress progress(clock_);
    typename Op::Value result{};
    const auto failure = operation.Run(parts, progress, result);
    return failure ? failure->step + ": " + failure->error.ToString() : "";
  }
  // Its destructors have no effect on the node.
  void EndAgent() {
    node_.Die();
    store_.Die();
    operations_.reset();
    plugins_of_agent_.reset();
    volumes_.reset();
  }
  void Revive() {
    node_.Revive();
    store_.Revive();
  }

  const PersistentVolume volume_;
  int step_ = 0;
};

TEST(PoolTargetsWalkTest, AnAgentThatEndsAtAnyEffectOrWriteIsFollowedByOneThatGoesOn) {
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    for (const bool in_kernel : {true, false}) {
      for (const bool before : {true, false}) {
        uint64_t n = 1;
        while (TargetLife(mode).EndsAt(n, in_kernel, before) && !::testing::Test::HasFailure()) ++n;
        EXPECT_GT(n, 5u);  // the life has as many at least
      }
    }
  }
}

}  // namespace
}  // namespace volumed
