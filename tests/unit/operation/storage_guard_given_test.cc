// What pods were given, also by the agent before this one, is not taken from them, wherever it was
// moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <variant>

#include "operation/storage_guard.h"
#include "unit/operation/storage_guard_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

// After a reboot nothing of a pod is set up, and a power loss may have taken its volume's record.
TEST_F(StorageGuardTest, WhatAPodHasOfItsOwnIsNotEmptiedBeforeItIsSetUpAgain) {
  kernel_.AddDirectory("/x/sub");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  PodVolume own;
  own.name = "data";
  own.source = HostPathVolumeSource{"/x/sub", HostPathType::kUnset};
  volumed::Pod object;
  object.metadata.uid = PodUid("u-1").str();
  object.spec.volumes = {own};
  const auto pod = std::make_shared<const volumed::Pod>(object);
  const auto reclaim = [&](const std::vector<std::shared_ptr<const volumed::Pod>>& pods) {
    return guard_->TakeForReclaim(ReclaimStorageHolder(outer), NameOf(outer), "claim-1",
                                  StorageOf(*guard_, pods), {});
  };
  EXPECT_EQ(reclaim({pod}).error().code(), Code::kFailedPrecondition);
  const StorageHolder holder =
      PodStorageHolder({PodUid("u-1"), SpecName("data")}, VolumeSpec::FromVolume(own));
  ASSERT_EQ(Take(holder, "/x/sub"), "");
  EXPECT_FALSE(reclaim({pod}).ok()) << "it is set up";
  ASSERT_TRUE(guard_->Release(holder.id).ok());
  EXPECT_FALSE(reclaim({pod}).ok()) << "it is not gone";
  EXPECT_TRUE(reclaim({}).ok());
}

// Each set-up looked at all that the last agent had: quadratic, with 10,000 pods.
TEST_F(StorageGuardTest, WhatTheLastAgentHadIsReadOnceSomebodyHasToKnow) {
  kernel_.AddDirectory("/x/sub");
  kernel_.AddDirectory("/y");
  int read = 0;
  const auto expect = [&](const std::string& name, const std::string& path) {
    guard_->ExpectUnread(BootId("boot-a"), Pod(name).id, [&read, name, path] {
      ++read;
      return KnownStorage{Pod(name), {path}};
    });
  };
  expect("a", "/x/sub");
  expect("b", "/y");
  guard_->ExpectUnread(BootId("another"), Pod("c").id, []() -> std::optional<KnownStorage> {
    ADD_FAILURE() << "nothing of another boot is had";
    return std::nullopt;
  });
  ASSERT_EQ(Take(Pod("d"), "/y"), "");
  EXPECT_EQ(read, 0) << "whoever shares is kept out by none of these";
  ASSERT_TRUE(guard_->Release(Pod("b").id).ok());
  EXPECT_THAT(Reclaim(HostPathVolume("outer", "/x"), "claim-1"), HasSubstr("volume a"));
  EXPECT_EQ(read, 1) << "the other one has gone";
  ASSERT_TRUE(guard_->Release(Pod("a").id).ok());
  EXPECT_EQ(Reclaim(HostPathVolume("outer", "/x"), "claim-1"), "");
}

// A running pod's directory was emptied: it has it by a link, the agent was started anew, and the
// link led elsewhere by then.
TEST_F(StorageGuardTest, WhatAPodWasGivenBeforeARestartIsNotEmptiedWhereverItsPathLeadsNow) {
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  for (const std::string leads : {"/x/sub", "/y", ""}) {
    kernel_.AddDirectory("/x/sub");
    kernel_.AddDirectory("/y");
    kernel_.AddSymlink("/link", "/x/sub");
    Restart();
    ASSERT_EQ(Take(Pod("a"), "/link"), "");
    const GivenStorage given = guard_->StorageOf(Pod("a").id);
    ASSERT_FALSE(given.empty());
    EXPECT_EQ(guard_->StorageOf(Pod("b").id), GivenStorage());
    kernel_.Remove("/link");
    if (!leads.empty()) kernel_.AddSymlink("/link", leads);
    Restart();
    guard_->Expect(BootId("boot-a"), {Pod("a"), {"/link"}, given});
    EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("volume a")) << "it leads to " << leads;
    if (leads == "/y") {
      EXPECT_THAT(Reclaim(HostPathVolume("y", "/y"), "claim-1"), HasSubstr("volume a"))
          << "a container that is started again gets that";
    }
    // A later set-up, of a sub-path for instance, adds what is there by now.
    ASSERT_EQ(Take(Pod("a"), "/link"), "");
    ASSERT_EQ(Take(Pod("a"), "/link"), "");
    EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("volume a")) << "it leads to " << leads;
    EXPECT_NE(guard_->StorageOf(Pod("a").id), GivenStorage());
    ASSERT_TRUE(guard_->Release(Pod("a").id).ok());
    EXPECT_EQ(Reclaim(outer, "claim-1"), "") << "the pod is gone";
    ASSERT_TRUE(guard_->Release("reclaim/outer").ok());
    kernel_.Remove("/link");
  }
}

// A pod ran on a directory that somebody then moved into the one of a volume, and it was emptied
// with that.
TEST_F(StorageGuardTest, WhatWasMovedIntoAVolumeWhileAPodHasItIsNotEmptiedWithThat) {
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  for (const bool restarted : {false, true}) {
    kernel_.AddDirectory("/x");
    kernel_.AddDirectory("/y");
    kernel_.AddDirectory("/given/sub");
    Restart();
    ASSERT_EQ(Take(Pod("a"), "/given/sub"), "");
    ASSERT_EQ(Take(Pod("b"), "/given"), "");
    ASSERT_EQ(Take(Pod("removed"), "/y"), "");
    GivenStorage given = guard_->StorageOf(Pod("a").id);
    ASSERT_EQ(given.objects.size(), 1U);
    kernel_.Remove("/y");
    kernel_.Rename("/given/sub", "moved");
    kernel_.Remove("/x");
    kernel_.Rename("/given", "x");
    if (restarted) {
      Restart();
      guard_->Expect(BootId("boot-a"), {Pod("a"), {"/given/sub"}, given});
      // What it has by now is added to what it was given.
      ASSERT_EQ(Take(Pod("a"), "/given/sub"), "");
      EXPECT_EQ(guard_->StorageOf(Pod("a").id).objects, given.objects);
    } else {
      EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("in part, that of volume"));
      ASSERT_TRUE(guard_->Release(Pod("b").id).ok());
    }
    EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("volume a"));
    ASSERT_TRUE(guard_->Release(Pod("a").id).ok());
    EXPECT_EQ(Reclaim(outer, "claim-1"), "") << "the pod is gone";
    ASSERT_TRUE(guard_->Release("reclaim/outer").ok());
    kernel_.Remove("/x");
  }
}

TEST_F(StorageGuardTest, TheFileOfALoopDeviceThatAPodHasIsFoundWhereItWasMoved) {
  kernel_.AddDirectory("/x");
  kernel_.AddDirectory("/files");
  kernel_.AddFile("/files/image", "");
  FakeDevice loop;
  loop.storage_file = "/files/image";
  kernel_.AddDevice("/dev/loop0", loop);
  ASSERT_EQ(Take(Pod("a"), "/dev/loop0"), "");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
  ASSERT_TRUE(guard_->Release("reclaim/outer").ok());
  kernel_.Remove("/x");
  kernel_.Rename("/files", "x");
  EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("volume a"));
}

// A running pod's disk image was formatted by the agent after the one that had given it.
TEST_F(StorageGuardTest, AFileThatAPodWasGivenIsNotFormattedAsALoopDeviceAfterARestart) {
  kernel_.AddFile("/image", "");
  FakeDevice loop;
  loop.storage_file = "/image";
  kernel_.AddDevice("/dev/loop0", loop);
  ASSERT_EQ(Take(Pod("a"), "/image"), "");
  const GivenStorage given = guard_->StorageOf(Pod("a").id);
  ASSERT_FALSE(given.own.empty());
  for (const StorageUse use : {StorageUse::kFormat, StorageUse::kRaw}) {
    Restart();
    guard_->Expect(BootId("boot-a"), {Pod("a"), {"/image"}, given});
    EXPECT_THAT(Take(Device("v", use), "/dev/loop0"), HasSubstr("volume a"));
  }
  ASSERT_TRUE(guard_->Release(Pod("a").id).ok());
  EXPECT_EQ(Take(Device("v", StorageUse::kFormat), "/dev/loop0"), "");
}

TEST_F(StorageGuardTest, ADeviceThatAPodWasGivenByALinkIsNotFormattedAfterARestart) {
  kernel_.AddDevice("/dev/sdb");
  kernel_.AddSymlink("/link", "/dev/sdb");
  ASSERT_EQ(Take(Pod("a"), "/link"), "");
  const GivenStorage given = guard_->StorageOf(Pod("a").id);
  kernel_.Remove("/link");
  Restart();
  guard_->Expect(BootId("boot-a"), {Pod("a"), {"/link"}, given});
  EXPECT_THAT(Take(Device("v", StorageUse::kFormat), "/dev/sdb"), HasSubstr("volume a"));
  ASSERT_TRUE(guard_->Release(Pod("a").id).ok());
  EXPECT_EQ(Take(Device("v", StorageUse::kFormat), "/dev/sdb"), "");
}

// Does something else when it is asked whether a reclaim's worker has its key still.
class AskedForKeyKernel final : public Kernel {
 public:
  explicit AskedForKeyKernel(Kernel& real) : real_(real) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* const look = std::get_if<Stat>(&request);
    if (look != nullptr && options.key == "reclaim/v" && meanwhile) {
      std::exchange(meanwhile, nullptr)();
    }
    return real_.Do(request, options);
  }

  std::function<void()> meanwhile;

 private:
  Kernel& real_;
};

// It was NotFound, "the reclaim may be tried again", which DeleteVolume then answered a caller.
TEST_F(StorageGuardTest, AReclaimThatIsReleasedWhileItsNextTryAsksIsTriedAtOnce) {
  kernel_.AddDirectory("/data/v");
  ASSERT_EQ(Reclaim(HostPathVolume("v", "/data/v"), ""), "");
  AskedForKeyKernel asked(kernel_);
  StorageGuard next(asked, store_, clock_, logger_, BootId("boot-a"));
  asked.meanwhile = [&next] { EXPECT_TRUE(next.EndReclaims("v").ok()); };
  const Result<bool> goes_on = next.IsBeingReclaimed("reclaim/v", {"/data/other"});
  EXPECT_FALSE(asked.meanwhile) << "nobody was asked";
  ASSERT_TRUE(goes_on.ok()) << goes_on.error().ToString();
  EXPECT_FALSE(*goes_on);
}

}  // namespace
}  // namespace volumed
