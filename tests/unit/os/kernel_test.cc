#include "os/kernel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/kernel_features.h"
#include "os/ownership_walk.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

TEST(KernelRequests, AreNamedWithThePathThatTheyAreAbout) {
  EXPECT_EQ(RequestName(Unmount{}), "Unmount");
  EXPECT_EQ(RequestPath(BindMount{{"/s", "a"}, {"/t", "b"}}), "/t/b");
  EXPECT_EQ(RequestPath(Usage{{"/root", ""}}), "/root");
  EXPECT_EQ(RequestPath(ListMounts{}), "");
  EXPECT_EQ(RequestPath(ListMounts{"/pods"}), "/pods");
  EXPECT_EQ(FileTypeName(FileType::kFifo), "fifo");
}

// Each of them can be repeated after it was killed, and what it asks for is no secret.
TEST(KernelRequests, OfImagesMayBeKilledAndShown) {
  for (const AnyRequest& request :
       {AnyRequest(AttachLoop{}), AnyRequest(ListLoops{}), AnyRequest(ConfigureLoop{}),
        AnyRequest(SetReadAhead{}), AnyRequest(SetFileSize{}), AnyRequest(TakeFileLock{})}) {
    EXPECT_FALSE(MustFinish(request)) << RequestName(request);
    EXPECT_FALSE(HasSecret(request)) << RequestName(request);
  }
  EXPECT_EQ(RequestPath(SetFileSize{{"/pool", "volumes/v/image"}}), "/pool/volumes/v/image");
  EXPECT_EQ(RequestPath(ConfigureLoop{"/dev/loop3", {}}), "/dev/loop3");
}

TEST(KernelRequests, OfLimitsMayBeKilledAndShown) {
  EXPECT_FALSE(MustFinish(AnyRequest(SetIoLimits{})));
  EXPECT_FALSE(HasSecret(AnyRequest(SetIoLimits{})));
  EXPECT_EQ(RequestPath(SetIoLimits{"/dev/loop3", {}, {}}), "/dev/loop3");
}

// Of these only the change of a UUID ruins what it does not finish.
TEST(KernelRequests, OfCutsMayBeKilledButForTheOneThatRenames) {
  for (const AnyRequest& request :
       {AnyRequest(CloneFile{}), AnyRequest(CopyFile{}), AnyRequest(CopyDevice{}),
        AnyRequest(ListExtents{}), AnyRequest(CutFrozen{}), AnyRequest(ThawFilesystem{}),
        AnyRequest(ChangeFilesystemUuid{})}) {
    const bool renames = std::holds_alternative<ChangeFilesystemUuid>(request);
    const bool thaws = std::holds_alternative<ThawFilesystem>(request);
    EXPECT_EQ(MustFinish(request), renames) << RequestName(request);
    EXPECT_EQ(LaneKindOf(request), thaws ? LaneKind::kOwnFilesystem : LaneKind::kWalks)
        << RequestName(request);
    EXPECT_FALSE(HasSecret(request)) << RequestName(request);
  }
  EXPECT_EQ(RequestPath(CloneFile{{"/p", "a"}, {}, {"/p", "b"}}), "/p/b");
  EXPECT_EQ(RequestPath(CopyDevice{"/dev/sdx", {}, {"/p", "b"}}), "/p/b");
  EXPECT_EQ(RequestPath(CutFrozen{{{{"/m", "v"}, 7, 3}}, {}, {}}), "/m/v");
  EXPECT_EQ(RequestPath(CutFrozen{}), "");
  EXPECT_EQ(RequestPath(ThawFilesystem{{{"/m", "v"}, 7, 3}}), "/m/v");
}

TEST(KernelRequests, OfTreesMayBeKilledAndNeverHoldUpTheFastWorkerWithASubvolume) {
  for (const AnyRequest& request : {AnyRequest(MakeSubvolume{}), AnyRequest(RemoveSubvolume{})}) {
    EXPECT_FALSE(MustFinish(request)) << RequestName(request);
    EXPECT_EQ(LaneKindOf(request), LaneKind::kWalks) << RequestName(request);
    EXPECT_FALSE(HasSecret(request)) << RequestName(request);
  }
  for (const AnyRequest& request : {AnyRequest(SetTreeQuota{}), AnyRequest(ReadTreeQuota{})}) {
    EXPECT_FALSE(MustFinish(request)) << RequestName(request);
    EXPECT_EQ(LaneKindOf(request), LaneKind::kOwnFilesystem) << RequestName(request);
    EXPECT_FALSE(HasSecret(request)) << RequestName(request);
  }
  for (const AnyRequest& request : {AnyRequest(MoveDirectory{}), AnyRequest(CopyTree{})}) {
    EXPECT_FALSE(MustFinish(request)) << RequestName(request);
    EXPECT_EQ(LaneKindOf(request), LaneKind::kWalks) << RequestName(request);
    EXPECT_FALSE(HasSecret(request)) << RequestName(request);
  }
  EXPECT_EQ(RequestPath(MoveDirectory{{"/p", "a"}, {"/q", "b"}}), "/p/a");
  EXPECT_EQ(RequestPath(CopyTree{{"/p", "a"}, {"/q", "b"}}), "/p/a");
  EXPECT_EQ(RequestPath(MakeSubvolume{{"/p", "a"}, SafePath{"/p", "b"}}), "/p/a");
  EXPECT_EQ(RequestPath(ReadTreeQuota{{"/p", "a"}}), "/p/a");
}

struct WithoutLane {};
template <typename Request>
constexpr bool kNamesItsLane = requires(const Request& request) {
  LaneKindOf(request);
};
static_assert(kNamesItsLane<Stat>);
static_assert(!kNamesItsLane<WithoutLane>, "a new request has to say whom it may hold up");

TEST(KernelRequests, NameTheLaneThatTheyMayHoldUp) {
  EXPECT_EQ(LaneKindOf(AnyRequest(ListMounts{})), LaneKind::kNoWorker);
  EXPECT_EQ(LaneKindOf(AnyRequest(EnsureVolume{})), LaneKind::kOwnFilesystem);
  EXPECT_EQ(LaneKindOf(AnyRequest(IdentifyStorage{})), LaneKind::kOwnFilesystem);
  EXPECT_EQ(LaneKindOf(AnyRequest(ListLoops{})), LaneKind::kOwnFilesystem);
  EXPECT_EQ(LaneKindOf(AnyRequest(TakeFileLock{})), LaneKind::kOwnFilesystem);
  for (const AnyRequest& walk :
       {AnyRequest(Usage{}), AnyRequest(RemoveVolume{}), AnyRequest(RunProgram{}),
        AnyRequest(WriteAttribute{}), AnyRequest(AttachLoop{}), AnyRequest(SetFileSize{})}) {
    EXPECT_EQ(LaneKindOf(walk), LaneKind::kWalks) << RequestName(walk);
  }
  for (const AnyRequest& device :
       {AnyRequest(ProbeDevice{}), AnyRequest(IdentifyDevice{}), AnyRequest(DetachLoops{}),
        AnyRequest(FlushDevice{}), AnyRequest(ConfigureLoop{}), AnyRequest(SetReadAhead{}),
        AnyRequest(SetIoLimits{})}) {
    EXPECT_EQ(LaneKindOf(device), LaneKind::kDevice) << RequestName(device);
  }
}

TEST(KernelRequests, HaveTheLaneOfADeviceWhenTheyExpectOne) {
  Mount mount;
  BindMount bind;
  EXPECT_EQ(LaneKindOf(AnyRequest(mount)), LaneKind::kOwnFilesystem);
  EXPECT_EQ(LaneKindOf(AnyRequest(bind)), LaneKind::kOwnFilesystem);
  mount.expected_device = DeviceIdentity{};
  bind.expected_device = DeviceIdentity{};
  EXPECT_EQ(LaneKindOf(AnyRequest(mount)), LaneKind::kDevice);
  EXPECT_EQ(LaneKindOf(AnyRequest(bind)), LaneKind::kDevice);
}

TEST(KernelRequests, OfWhichOneOfManyIsAWalkAreAWalkTogether) {
  Batch batch;
  batch.items = {{EnsureVolume{}}, {IdentifyDevice{}}};
  EXPECT_EQ(LaneKindOf(AnyRequest(batch)), LaneKind::kOwnFilesystem);
  Batch outer;
  batch.items.push_back({RemoveVolume{}});
  outer.items = {{batch}};
  EXPECT_EQ(LaneKindOf(AnyRequest(batch)), LaneKind::kWalks);
  EXPECT_EQ(LaneKindOf(AnyRequest(outer)), LaneKind::kWalks);
}

TEST(CancelToken, CallsItsHookOnceNowOrLater) {
  int calls = 0;
  CancelToken later;
  later.OnCancel([&] { ++calls; });
  EXPECT_FALSE(later.cancelled());
  later.Cancel();
  later.Cancel();
  EXPECT_TRUE(later.cancelled());
  EXPECT_EQ(calls, 1);
  later.OnCancel([&] { ++calls; });
  EXPECT_EQ(calls, 2);
  later.OnCancel(nullptr);
  EXPECT_EQ(calls, 2);
}

TEST(SafePaths, MustBeCleanAndAbsolute) {
  for (const SafePath& good :
       {SafePath{"/", ""}, SafePath{"/a/b", "c/..d"}, SafePath{"/a", "..."}}) {
    EXPECT_TRUE(ValidateSafePath(good).ok()) << good.Display();
  }
  for (const SafePath& bad :
       {SafePath{"", ""}, SafePath{"a", ""}, SafePath{"/a/", ""}, SafePath{"/a//b", ""},
        SafePath{"/a/../b", ""}, SafePath{"/a", "/b"}, SafePath{"/a", "b/"}, SafePath{"/a", ".."},
        SafePath{"/a", "b/./c"}, SafePath{"/a", std::string("b\0c", 3)}}) {
    ASSERT_FALSE(ValidateSafePath(bad).ok()) << bad.Display();
    EXPECT_EQ(ValidateSafePath(bad).error().code(), Code::kInvalidArgument);
  }
}

TEST(KernelFeaturesMask, ClearsByNameAndRefusesUnknownNames) {
  KernelFeatures all{true, true, true, true, true, true, true, true};
  auto masked = MaskFeatures(all, {"mount-setattr", "fchmodat2"});
  ASSERT_TRUE(masked.ok());
  EXPECT_FALSE(masked->mount_setattr);
  EXPECT_FALSE(masked->fchmodat2);
  EXPECT_TRUE(masked->statmount && masked->mount_events && masked->tmpfs_noswap &&
              masked->open_tree_detached_clone && masked->grows_mounted_ext && masked->fsopen);
  masked = MaskFeatures(all, {"grows-mounted-ext", "fsopen"});
  ASSERT_TRUE(masked.ok());
  EXPECT_FALSE(masked->grows_mounted_ext || masked->fsopen);
  EXPECT_EQ(MaskFeatures(all, {"mount_setattr"}).error().code(), Code::kInvalidArgument);
}

TEST(OwnershipModes, AreOredAndLeaveTheRest) {
  EXPECT_EQ(WantedMode(S_IFREG | 0600, false), static_cast<uint32_t>(S_IFREG | 0660));
  EXPECT_EQ(WantedMode(S_IFREG | 04711, true), static_cast<uint32_t>(S_IFREG | 04751));
  EXPECT_EQ(WantedMode(S_IFDIR | 01700, false), static_cast<uint32_t>(S_IFDIR | 03770));
  EXPECT_EQ(WantedMode(S_IFDIR | 0500, true), static_cast<uint32_t>(S_IFDIR | 02550));
  EXPECT_EQ(WantedMode(S_IFLNK | 0777, false), static_cast<uint32_t>(S_IFLNK | 0777));
}

}  // namespace
}  // namespace volumed
