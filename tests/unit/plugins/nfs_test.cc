// nfs: how an export is mounted and taken away, and what is done when its server does not answer.
#include "plugins/nfs.h"
#include "fakes/target_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "pluginmgr/wrapper_volumes.h"
#include "recycler/local_recycler_pods.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kExport[] = "nas:/srv/lab";
constexpr char kPlace[] = "/r/pods/u1/volumes/kubernetes.io~nfs/data";
constexpr char kOtherPlace[] = "/r/pods/u2/volumes/kubernetes.io~nfs/data";

class NoContainers final : public ContainerRunner {
 public:
  Result<bool> Exists(const std::string&, const CallOptions&) override { return false; }
  Result<ContainerEnd> Run(const ContainerRun& run, const CallOptions&) override {
    runs.push_back(run);
    return ContainerEnd{};
  }
  Status Remove(const std::string&, const CallOptions&) override { return OkStatus(); }
  std::vector<ContainerRun> runs;
};

class NfsTest : public ::testing::Test {
 protected:
  NfsTest() {
    call_.domain = "nfs:nas";
    EXPECT_TRUE(plugin_.Init(PluginContext{world_.host, wrappers_}).ok());
    kernel_.AddDirectory("/r/plugins", 0750);
    kernel_.AddDirectory("/r/volumed", 0750);
    kernel_.AddDirectory("/r/pods/u1/volumes", 0750);
    kernel_.AddDirectory("/r/pods/u2/volumes", 0750);
    kernel_.AddFile("/sbin/mount.nfs", "", 0755);
    kernel_.AddExport(kExport);
    volume_.metadata.name = "data";
    volume_.spec.source = NfsVolumeSource{"nas", "/srv/lab", false};
    kernel_.SetCallHook([this](const AnyRequest& request) {
      if (const auto* mount = std::get_if<Mount>(&request)) mounts_.push_back(*mount);
      if (const auto* unmount = std::get_if<Unmount>(&request)) unmounts_.push_back(*unmount);
    });
  }

  VolumeSpec Spec(bool read_only = false) const {
    return VolumeSpec::FromPersistentVolume(volume_, read_only);
  }
  static VolumeSpec Inline(const NfsVolumeSource& source) {
    return VolumeSpec::FromVolume(PodVolume{"data", source});
  }
  std::unique_ptr<Mounter> MounterOf(const VolumeSpec& spec, const std::string& pod = "u1") {
    return plugin_.NewMounter(spec, TargetOf(world_.paths, plugin_, spec, MakePod(pod))).value();
  }
  Status SetUp1(const VolumeSpec& spec, const std::string& pod = "u1") {
    MounterArgs args;
    args.call = call_;
    return MounterOf(spec, pod)->SetUp(args);
  }
  Status TearDown1(const std::string& pod = "u1") {
    return plugin_.NewUnmounter(SpecName("data"), PodUid(pod)).value()->TearDown(call_);
  }

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  NoContainers containers_;
  LocalRecyclerPods recycler_pods_{kernel_, containers_, world_.clock, "/r/volumed/recycler"};
  Duration unmount_timeout_ = NfsSettings().unmount_timeout();
  NfsPlugin plugin_{NfsSettings{.config = {},
                                .recycler_pods = &recycler_pods_,
                                .unmount_timeout = [this] { return unmount_timeout_; },
                                .force_timeout = seconds(3),
                                .remove_timeout = seconds(2)}};
  PersistentVolume volume_;
  CallOptions call_;
  std::vector<Mount> mounts_;
  std::vector<Unmount> unmounts_;
};

TEST_F(NfsTest, SaysWhatItIs) {
  EXPECT_EQ(plugin_.GetPluginName(), "kubernetes.io/nfs");
  EXPECT_EQ(plugin_.GetVolumeName(Spec()).value(), "nas//srv/lab");
  EXPECT_EQ(plugin_.FaultDomain(Spec()), "nfs:nas");
  EXPECT_EQ(plugin_.FaultDomain(Inline({"NAS", "/other", true})), "nfs:nas");
  EXPECT_EQ(plugin_.FaultDomainName(Spec()), "NFS server nas");
  EXPECT_TRUE(plugin_.SupportsMountOption());
  EXPECT_FALSE(plugin_.RequiresRemount(Spec()));
  EXPECT_THAT(plugin_.GetAccessModes(),
              ElementsAre(AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany,
                          AccessMode::kReadWriteMany));
  const VolumeSpec other = VolumeSpec::FromVolume(PodVolume{"v", EmptyDirVolumeSource{}});
  EXPECT_FALSE(plugin_.CanSupport(other));
  EXPECT_EQ(plugin_.GetVolumeName(other).error().message(),
            "spec does not reference a NFS volume type");
}

TEST_F(NfsTest, MountsTheExportAndTakesItAway) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  ASSERT_EQ(mounts_.size(), 1u);
  EXPECT_EQ(mounts_[0].fs_type, "nfs");
  EXPECT_EQ(mounts_[0].source, kExport);
  EXPECT_THAT(mounts_[0].options, IsEmpty());
  EXPECT_TRUE(kernel_.IsMountPoint(kPlace));
  kernel_.AddFile(std::string(kPlace) + "/file", "x");
  ASSERT_TRUE(SetUp1(Spec()).ok());
  EXPECT_EQ(mounts_.size(), 1u) << "it was there";
  ASSERT_TRUE(TearDown1().ok());
  EXPECT_FALSE(kernel_.Exists(kPlace));
  ASSERT_TRUE(TearDown1().ok());
  ASSERT_TRUE(SetUp1(Spec()).ok());
  EXPECT_EQ(kernel_.Find(std::string(kPlace) + "/file").content, "x");
}

TEST_F(NfsTest, OptionsAreThoseOfTheVolumeSortedWithRo) {
  volume_.spec.mount_options = {"vers=4.1", "hard", ""};
  ASSERT_TRUE(SetUp1(Spec(true)).ok());
  EXPECT_THAT(mounts_.at(0).options, ElementsAre("hard", "ro", "vers=4.1"));
  EXPECT_TRUE(MounterOf(Spec(true))->GetAttributes().read_only);
  EXPECT_FALSE(MounterOf(Spec(true))->GetAttributes().managed);
  EXPECT_FALSE(MounterOf(Spec())->GetAttributes().read_only);
}

TEST_F(NfsTest, ReadOnlyInTheSourceCountsForBothKindsOfVolume) {
  std::get<NfsVolumeSource>(volume_.spec.source).read_only = true;
  ASSERT_TRUE(SetUp1(Spec()).ok());
  EXPECT_THAT(mounts_.at(0).options, ElementsAre("ro"));
  ASSERT_TRUE(SetUp1(Inline({"nas", "/srv/lab", true}), "u2").ok());
  EXPECT_THAT(mounts_.at(1).options, ElementsAre("ro"));
}

TEST_F(NfsTest, AnIpv6ServerIsInBrackets) {
  for (const std::string server : {"fd00::1", "fe80::1%eth0"}) {
    kernel_.AddExport("[" + server + "]:/srv");
    ASSERT_TRUE(SetUp1(Inline({server, "/srv", false})).ok()) << server;
    EXPECT_EQ(mounts_.back().source, "[" + server + "]:/srv");
    EXPECT_EQ(plugin_.FaultDomain(Inline({server, "/srv", false})), "nfs:" + server);
    ASSERT_TRUE(TearDown1().ok());
  }
}

TEST_F(NfsTest, AMissingHelperIsNamedWithItsPackage) {
  kernel_.Remove("/sbin/mount.nfs");
  const Status status = MounterOf(Spec())->CanMount(call_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "/sbin/mount.nfs is missing: install the package nfs-common");
  EXPECT_EQ(status.error().code(), Code::kNotFound);
}

TEST_F(NfsTest, AMountThatFailsLeavesNothing) {
  volume_.spec.source = NfsVolumeSource{"nas", "/not/exported", false};
  const Status status = SetUp1(Spec());
  ASSERT_FALSE(status.ok());
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_THAT(status.error().message(), HasSubstr("access denied by server"));
  EXPECT_FALSE(kernel_.Exists(kPlace));
}

TEST_F(NfsTest, AMountThatHangsMayBeThere) {
  kernel_.AddDirectory(kPlace);
  kernel_.FailNext("Mount", Error::MaybeApplied(Code::kDeadlineExceeded, "hangs"), 1, true);
  const Status status = SetUp1(Spec());
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().maybe_applied());
  EXPECT_TRUE(kernel_.IsMountPoint(kPlace));
  EXPECT_TRUE(SetUp1(Spec()).ok()) << "found by the next try";
  EXPECT_EQ(mounts_.size(), 1u);
}

TEST_F(NfsTest, AHelperThatWentToTheBackgroundHasNotMounted) {
  // As "bg" makes it: it ends well and mounts nothing.
  class BackgroundKernel final : public Kernel {
   public:
    explicit BackgroundKernel(Kernel& real) : real_(real) {}
    Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
      if (std::holds_alternative<Mount>(request)) return AnyAnswer(Done{});
      return real_.Do(request, options);
    }

   private:
    Kernel& real_;
  };
  BackgroundKernel background(kernel_);
  PluginWorld world(background, "/r");
  NfsPlugin plugin;
  ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
  const auto mounter =
      plugin.NewMounter(Spec(), TargetOf(world.paths, plugin, Spec(), MakePod("u1"))).value();
  const Status status = mounter->SetUp({});
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().maybe_applied()) << "it may still come";
  EXPECT_THAT(status.error().message(), HasSubstr("is not mounted"));
}

TEST_F(NfsTest, SomethingElseAtThePlaceIsNotTakenForTheExport) {
  kernel_.AddMount("tmpfs", "tmpfs", kPlace);
  const Status status = SetUp1(Spec());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.error().message(), HasSubstr("tmpfs"));
}

TEST_F(NfsTest, ABusyMountStays) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  kernel_.FailNext("Unmount", EBUSY, Outcome::kNotApplied);
  const Status status = TearDown1();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(unmounts_.size(), 1u) << "what is used is not forced";
  EXPECT_TRUE(kernel_.IsMountPoint(kPlace));
}

TEST_F(NfsTest, AnUnmountThatHangsIsForcedOnItsOwnLaneWithoutTheKey) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  kernel_.Hang(kPlace);
  std::vector<bool> forced;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* unmount = std::get_if<Unmount>(&request);
    if (unmount == nullptr) return;
    forced.push_back(unmount->force);
    if (unmount->force) kernel_.Unhang(kPlace);  // what waited has failed
  });
  std::vector<Duration> given;
  kernel_.SetHangHook([&](const AnyRequest&, Deadline deadline) {
    given.push_back(deadline.Remaining(world_.clock));
    world_.clock.Advance(deadline.Remaining(world_.clock));
  });
  kernel_.SetClock(&world_.clock);
  call_.deadline = Deadline::After(world_.clock, seconds(30));
  const Status status = TearDown1();
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_THAT(given, ElementsAre(Duration(minutes(1)))) << "its own, not the step's";
  EXPECT_THAT(forced, ElementsAre(false, true));
  EXPECT_FALSE(kernel_.Exists(kPlace));
}

TEST_F(NfsTest, ATimeoutThatWasReloadedIsThatOfTheNextUnmount) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  unmount_timeout_ = seconds(7);
  kernel_.Hang(kPlace);
  std::vector<Duration> given;
  kernel_.SetHangHook([&](const AnyRequest&, Deadline deadline) {
    given.push_back(deadline.Remaining(world_.clock));
    kernel_.Unhang(kPlace);
  });
  kernel_.SetClock(&world_.clock);
  (void)TearDown1();
  EXPECT_THAT(given, ElementsAre(Duration(seconds(7))));
}

// What is forced does not hang here; the directory of a server that stays away does.
TEST_F(NfsTest, TheRemovalAfterAnUnmountThatHangsHasATimeOfItsOwn) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  kernel_.Hang(kPlace);
  std::vector<Duration> given;
  kernel_.SetHangHook([&](const AnyRequest&, Deadline deadline) {
    given.push_back(deadline.Remaining(world_.clock));
    world_.clock.Advance(deadline.Remaining(world_.clock));
  });
  kernel_.SetClock(&world_.clock);
  EXPECT_FALSE(TearDown1().ok());
  EXPECT_THAT(given, ElementsAre(Duration(minutes(1)), Duration(seconds(2))));
}

TEST_F(NfsTest, NothingIsForcedThatAnotherMountShares) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  ASSERT_TRUE(SetUp1(Spec(), "u2").ok());
  kernel_.Hang(kPlace);
  const Status status = TearDown1();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr(std::string("those of ") + kOtherPlace));
  EXPECT_EQ(unmounts_.size(), 1u);
  kernel_.Unhang(kPlace);
  ASSERT_TRUE(TearDown1().ok());
  EXPECT_TRUE(kernel_.IsMountPoint(kOtherPlace));
}

TEST_F(NfsTest, NothingIsForcedThatOnlyWaitedForAWorker) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  kernel_.FailNext("Unmount",
                   Error::NotApplied(Code::kDeadlineExceeded, "no worker became free in time"));
  const Status status = TearDown1();
  ASSERT_FALSE(status.ok());
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_EQ(unmounts_.size(), 1u);
  EXPECT_TRUE(kernel_.IsMountPoint(kPlace));
}

TEST_F(NfsTest, OfAServerThatDoesNotAnswerOnlyTheMountTableIsAsked) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  kernel_.Hang(kPlace);
  EXPECT_TRUE(SetUp1(Spec()).ok()) << "as an agent does that takes it over";
  const auto found = plugin_.ConstructVolumeSpec(
      SpecName("data"),
      world_.paths.GetPodVolumeDir(PodUid("u1"), kNfsPluginName, SpecName("data")), call_);
  EXPECT_TRUE(found.ok());
}

TEST_F(NfsTest, ServerAndPathAreFoundInTheMountTable) {
  const SafePath place =
      world_.paths.GetPodVolumeDir(PodUid("u1"), kNfsPluginName, SpecName("data"));
  const auto source_of = [&] {
    const auto found = plugin_.ConstructVolumeSpec(SpecName("data"), place, call_).value();
    return *found.spec.SourceAs<NfsVolumeSource>();
  };
  EXPECT_EQ(source_of(), (NfsVolumeSource{"", "data", false})) << "as kubelet's";
  ASSERT_TRUE(SetUp1(Spec(true)).ok());
  EXPECT_EQ(source_of(), (NfsVolumeSource{"nas", "/srv/lab", true}));
  ASSERT_TRUE(TearDown1().ok());
  kernel_.AddExport("[fd00::1]:/srv");
  ASSERT_TRUE(SetUp1(Inline({"fd00::1", "/srv", false})).ok());
  EXPECT_EQ(source_of(), (NfsVolumeSource{"fd00::1", "/srv", false}));
}

TEST_F(NfsTest, WhicheverCallHangsTheSameCallOrItsInverseMendsIt) {
  for (const bool apply : {false, true}) {
    for (uint64_t call = 1; call <= 6; ++call) {
      for (const bool again : {false, true}) {
        const std::unique_ptr<FakeKernel> kernel = kernel_.Clone();
        PluginWorld world(*kernel, "/r");
        NfsPlugin plugin;
        ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
        const auto set_up = [&] {
          return plugin.NewMounter(Spec(), TargetOf(world.paths, plugin, Spec(), MakePod("u1")))
              .value()
              ->SetUp({});
        };
        const std::string before = kernel->DumpTree("/r/pods") + kernel->DumpMounts();
        kernel->FailAt(call, Error::MaybeApplied(Code::kDeadlineExceeded, "hangs"), apply);
        const Status first = set_up();
        if (first.ok()) continue;  // it makes fewer calls
        if (!first.error().maybe_applied()) {
          EXPECT_EQ(kernel->DumpTree("/r/pods") + kernel->DumpMounts(), before) << call;
        }
        if (again) {
          ASSERT_TRUE(set_up().ok()) << call;
          EXPECT_TRUE(kernel->IsMountPoint(kPlace));
        }
        const auto unmounter = plugin.NewUnmounter(SpecName("data"), PodUid("u1")).value();
        ASSERT_TRUE(unmounter->TearDown({}).ok()) << call;
        EXPECT_FALSE(kernel->Exists(kPlace));
        EXPECT_THAT(kernel->DumpMounts(), Not(HasSubstr("nfs")));
      }
    }
  }
}

// ---- recycling ----------------------------------------------------------------------------------

TEST_F(NfsTest, RecyclesByAMountOfItsOwn) {
  ASSERT_TRUE(SetUp1(Spec()).ok());
  kernel_.AddFile(std::string(kPlace) + "/dir/file", "x");
  ASSERT_TRUE(TearDown1().ok());
  ASSERT_TRUE(plugin_
                  .Recycle(
                      "data", Spec(), [](EventType, const std::string&) {}, call_)
                  .ok());
  EXPECT_EQ(mounts_.back().target.Display(), "/r/volumed/recycler/default_recycler-for-data_vol");
  EXPECT_THAT(kernel_.DumpMounts(), Not(HasSubstr("nfs")));
  ASSERT_TRUE(SetUp1(Spec()).ok());
  EXPECT_FALSE(kernel_.Exists(std::string(kPlace) + "/dir"));
}

TEST_F(NfsTest, ARecyclersMountThatAnEarlierAgentLeftIsTakenAwayFirst) {
  const std::string left = "/r/volumed/recycler/default_recycler-for-data_vol";
  kernel_.AddMount("nfs4", "other:/precious", left);
  kernel_.AddFile(left + "/file", "of somebody else");
  ASSERT_TRUE(plugin_
                  .Recycle(
                      "data", Spec(), [](EventType, const std::string&) {}, call_)
                  .ok());
  EXPECT_EQ(unmounts_.front().target.Display(), left);
  EXPECT_THAT(kernel_.DumpMounts(), Not(HasSubstr("nfs")));
}

TEST_F(NfsTest, AVolumeThatCannotBeMountedIsNotRecycled) {
  volume_.spec.source = NfsVolumeSource{"nas", "/not/exported", false};
  const Status status = plugin_.Recycle(
      "data", Spec(), [](EventType, const std::string&) {}, call_);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("access denied by server"));
  const Status inline_volume = plugin_.Recycle(
      "data", Inline({"nas", "/srv/lab", false}), [](EventType, const std::string&) {}, call_);
  EXPECT_EQ(inline_volume.error().message(), "spec.PersistentVolumeSource.NFS is nil");
}

}  // namespace
}  // namespace volumed
