// iscsi: what is there after a restart, or after a call that was cut off or hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/target_of.h"
#include "unit/plugins/iscsi_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(IscsiTest, WithoutItsFileTheNameOfThePlaceSuffices) {
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  kernel_.AddFile(std::string(kPlace) + "/iscsi.json", "{\"Portals");
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, ASpecIsReadBackFromTheLayout) {
  Mount();
  const VolumeSpec spec = Spec();
  kernel_.AddDirectory("/r/pods/u1/volumes", 0750);
  MounterArgs args;
  const auto mounter =
      plugin_->NewMounter(spec, TargetOf(world_.paths, *plugin_, spec, MakePod())).value();
  ASSERT_TRUE(mounter->SetUp(args).ok());
  const auto found = plugin_->ConstructVolumeSpec(SpecName("disk"), mounter->GetSafePath(), {});
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(plugin_->GetVolumeName(found->spec).value(), "10.0.0.1:3260:iqn.2026-01.lab:t:1");
  EXPECT_EQ(plugin_->NewDeviceMounter().value()->GetDeviceMountPath(found->spec)->Display(),
            kPlace);
  const auto unmounter = plugin_->NewUnmounter(SpecName("disk"), PodUid("u1")).value();
  ASSERT_TRUE(unmounter->TearDown({}).ok());
  EXPECT_EQ(
      plugin_->ConstructVolumeSpec(SpecName("disk"), mounter->GetSafePath(), {}).error().code(),
      Code::kNotFound);
}

TEST_F(IscsiTest, ABlockVolumeHasAPlaceOfItsOwnAndGoesAsWell) {
  volume_.spec.volume_mode = VolumeMode::kBlock;
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  EXPECT_TRUE(kernel_.Exists(std::string(kMapPlace) + "/iscsi.json"));
  const auto unmapper = plugin_->NewBlockVolumeUnmapper(SpecName("disk"), PodUid()).value();
  const SafePath place = unmapper->GetGlobalMapPath(Spec()).value();
  EXPECT_EQ(place.Display(), kMapPlace);
  ASSERT_TRUE(unmapper->AsCustom()->UnmapPodDevice({}).ok());
  EXPECT_FALSE(FakeIscsiSessions(kernel_).empty()) << "another pod may have it";
  ASSERT_TRUE(unmapper->AsCustom()->TearDownDevice(place, "", {}).ok());
  EXPECT_THAT(FakeIscsiSessions(kernel_), IsEmpty());
  EXPECT_THAT(FakeIscsiMistakes(kernel_), IsEmpty());
  EXPECT_TRUE(kernel_.Exists(kMapPlace)) << "the caller's";
}

TEST_F(IscsiTest, ADiskThatStaysBehindOneThatIsGoneWasSaidToBeAllThatWasThere) {
  volume_.spec.volume_mode = VolumeMode::kBlock;
  source_.portals = {"10.0.0.2"};
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  kernel_.ChangeDevice("/dev/sdbb", [](FakeDevice& disk) { disk.claimed = true; });
  const auto unmapper = plugin_->NewBlockVolumeUnmapper(SpecName("disk"), PodUid()).value();
  const SafePath place = unmapper->GetGlobalMapPath(Spec()).value();
  const Status used = unmapper->AsCustom()->TearDownDevice(place, "", {});
  ASSERT_FALSE(used.ok());
  EXPECT_EQ(used.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(kernel_.Exists("/dev/sdb"));
  EXPECT_TRUE(kernel_.Exists("/dev/sdbb"));
  EXPECT_TRUE(used.error().maybe_applied());
}

// A walk by hand: the agent ends before or after each call of a mount, and another one takes all of
// it away.
TEST_F(IscsiTest, WhereverItIsCutOffAllOfItCanBeTakenAway) {
  const auto mount_at = [&](FakeKernel& kernel) {
    PluginWorld world(kernel, "/r");
    FakeDeviceFinder finder(kernel);
    IscsiSettings settings;
    settings.formats.format_intents = &intents_;
    settings.devices = &finder;
    IscsiPlugin plugin(settings);
    ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
    const auto attacher = plugin.NewAttacher().value();
    const auto device = attacher->WaitForAttach(Spec(), "", MakePod(), {});
    if (device.ok()) {
      (void)attacher->MountDevice(Spec(), *device, attacher->GetDeviceMountPath(Spec()).value(),
                                  {});
    }
  };
  source_.portals = {"10.0.0.2"};
  const auto probe = kernel_.Clone();
  InstallFakeOpenIscsi(*probe, target_);
  mount_at(*probe);
  const uint64_t calls = probe->call_count();
  ASSERT_GT(calls, 20U);
  for (uint64_t at = 1; at <= calls; ++at) {
    for (const auto point : {FakeKernel::CrashPoint::kBefore, FakeKernel::CrashPoint::kAfter}) {
      const auto kernel = kernel_.Clone();
      kernel->CrashAtCall(at, point);
      try {
        mount_at(*kernel);
      } catch (const SimulatedCrash&) {
      }
      kernel->Revive();
      PluginWorld world(*kernel, "/r");
      FakeDeviceFinder finder(*kernel);
      IscsiSettings settings;
      settings.devices = &finder;
      IscsiPlugin plugin(settings);
      ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
      const Status gone = plugin.NewDeviceUnmounter().value()->UnmountDevice(
          {"/r", std::string(kPlace).substr(3)}, {});
      ASSERT_TRUE(gone.ok()) << "call " << at << ": " << gone.error().ToString();
      EXPECT_THAT(FakeIscsiSessions(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiNodes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiMistakes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_FALSE(kernel->Exists(kPlace)) << "call " << at;
    }
  }
}

// The record that a discovery's secret is in was taken for the administrator's, and stayed for
// good.
TEST_F(IscsiTest, ASecretThatADiscoveryLeftWhereItWasCutOffWasKept) {
  UseChap();
  target_->chap_discovery = true;
  source_.chap_auth_discovery = true;
  const auto use = [&](FakeKernel& kernel, bool attaches, bool detaches) {
    PluginWorld world(kernel, "/r");
    PutChapSecretIn(world, kCanary);
    FakeDeviceFinder finder(kernel);
    IscsiSettings settings;
    settings.devices = &finder;
    IscsiPlugin plugin(settings);
    EXPECT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
    Status done;
    if (attaches) {
      const auto device = plugin.NewAttacher().value()->WaitForAttach(Spec(), "", MakePod(), {});
      if (!device.ok()) done = device.error();
    }
    if (!done.ok() || !detaches) return done;
    return plugin.NewDeviceUnmounter().value()->UnmountDevice({"/r", std::string(kPlace).substr(3)},
                                                              {});
  };
  const auto probe = kernel_.Clone();
  probe->Revive();
  ASSERT_TRUE(use(*probe, true, false).ok());
  EXPECT_FALSE(probe->Exists(std::string(kPlace) + "/discovery"));
  const uint64_t calls = probe->call_count();
  ASSERT_GT(calls, 10U);
  for (uint64_t at = 1; at <= calls; ++at) {
    for (const bool attaches_again : {false, true}) {
      const auto kernel = kernel_.Clone();
      kernel->Revive();
      kernel->CrashAtCall(at, FakeKernel::CrashPoint::kAfter);
      try {
        (void)use(*kernel, true, false);
      } catch (const SimulatedCrash&) {
      }
      kernel->Revive();
      const Status done = use(*kernel, attaches_again, !attaches_again);
      ASSERT_TRUE(done.ok()) << "call " << at << ": " << done.error().ToString();
      EXPECT_FALSE(kernel->Exists("/etc/iscsi/send_targets/10.0.0.1,3260/st_config"))
          << "call " << at << (attaches_again ? ", attached again" : ", detached");
      EXPECT_FALSE(kernel->Exists(std::string(kPlace) + "/discovery")) << "call " << at;
    }
  }
}

// The discovery of the next portal made the agent forget that the record was its own.
TEST_F(IscsiTest, ASecretThatADiscoveryCouldNotDeleteWasKeptOnceAnotherPortalWasAsked) {
  UseChap();
  target_->chap_discovery = true;
  source_.chap_auth_discovery = true;
  source_.portals = {"10.0.0.2"};
  PutChapSecret(kCanary);
  const std::string records = "/etc/iscsi/send_targets/";
  for (const int times : {1, 2}) {
    int failures = 0;
    kernel_.SetCallHook([&](const AnyRequest& request) {
      const auto* program = std::get_if<RunProgram>(&request);
      if (program == nullptr || failures == times) return;
      const auto& words = program->arguments;
      const auto has = [&](const char* word) {
        return std::find(words.begin(), words.end(), word) != words.end();
      };
      if (!has("discoverydb") || !has("delete") || !has("10.0.0.1:3260")) return;
      ++failures;
      kernel_.FailNext("RunProgram", Error::NotApplied(Code::kInternal, "the database is locked"));
    });
    const auto device = WaitForAttach(Spec());
    kernel_.SetCallHook(nullptr);
    EXPECT_EQ(failures, times);
    EXPECT_EQ(device.ok(), times == 1);
    if (!device.ok()) {
      EXPECT_TRUE(kernel_.Exists(std::string(kPlace) + "/discovery"))
          << "it still says whose it is";
      EXPECT_FALSE(kernel_.Exists(records + "10.0.0.2,3260/st_config"));
      ASSERT_TRUE(WaitForAttach(Spec()).ok());
    }
    EXPECT_FALSE(kernel_.Exists(records + "10.0.0.1,3260/st_config")) << times;
    EXPECT_FALSE(kernel_.Exists(records + "10.0.0.2,3260/st_config")) << times;
    EXPECT_FALSE(kernel_.Exists(std::string(kPlace) + "/discovery")) << times;
    ASSERT_TRUE(UnmountDevice().ok());
  }
}

// One used the record of the other, and then deleted it under that one.
TEST_F(IscsiTest, TwoTargetsAtOnePortalSharedTheRecordOfADiscovery) {
  UseChap();
  target_->chap_discovery = true;
  source_.chap_auth_discovery = true;
  PutChapSecret(kCanary);
  const VolumeSpec spec = Spec();
  source_.iqn = "iqn.2026-01.lab:other";
  const VolumeSpec other = Spec();
  // What is done with records of discoveries, in order.
  std::vector<std::string> done;
  Result<std::string> meddling = std::string();
  bool meddles = false;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* program = std::get_if<RunProgram>(&request);
    if (program == nullptr) return;
    const auto& words = program->arguments;
    const auto has = [&](const char* word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (!has("discoverydb")) return;
    done.push_back((meddles ? "second " : "first ") +
                   std::string(has("--discover") ? "discovers" : words.back()));
    if (meddles || !has("--discover")) return;
    // It would wait for the first, which goes on only after it.
    CallOptions call;
    call.deadline = Deadline::At(world_.clock.Now());
    meddles = true;
    meddling = plugin_->NewAttacher().value()->WaitForAttach(other, "", MakePod(), call);
    meddles = false;
  });
  const auto device = WaitForAttach(spec);
  kernel_.SetCallHook(nullptr);
  EXPECT_TRUE(device.ok()) << device.error().ToString();
  ASSERT_FALSE(meddling.ok());
  EXPECT_THAT(meddling.error().message(), HasSubstr("another call of"));
  EXPECT_THAT(done, ElementsAre("first new", "first discovers", "first delete"));
}

TEST_F(IscsiTest, ATeardownThatIsCutOffIsFinishedByTheNext) {
  Mount(1);
  const auto unmount_at = [&](FakeKernel& kernel) {
    PluginWorld world(kernel, "/r");
    FakeDeviceFinder finder(kernel);
    IscsiSettings settings;
    settings.devices = &finder;
    IscsiPlugin plugin(settings);
    EXPECT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
    return plugin.NewDeviceUnmounter().value()->UnmountDevice({"/r", std::string(kPlace).substr(3)},
                                                              {});
  };
  const auto probe = kernel_.Clone();
  probe->Revive();
  ASSERT_TRUE(unmount_at(*probe).ok());
  const uint64_t calls = probe->call_count();
  ASSERT_GT(calls, 10U);
  for (uint64_t at = 1; at <= calls; ++at) {
    for (const auto point : {FakeKernel::CrashPoint::kBefore, FakeKernel::CrashPoint::kAfter}) {
      const auto kernel = kernel_.Clone();
      kernel->Revive();
      kernel->CrashAtCall(at, point);
      try {
        (void)unmount_at(*kernel);
      } catch (const SimulatedCrash&) {
      }
      kernel->Revive();
      const Status gone = unmount_at(*kernel);
      ASSERT_TRUE(gone.ok()) << "call " << at << ": " << gone.error().ToString();
      EXPECT_THAT(FakeIscsiSessions(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiNodes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiMistakes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_FALSE(kernel->Exists(kPlace)) << "call " << at;
    }
  }
}

TEST_F(IscsiTest, ALoginThatHangsEndsAtItsDeadlineAndIsTakenBack) {
  int logins = 0;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* program = std::get_if<RunProgram>(&request);
    if (program == nullptr || program->arguments.back() != "--login") return;
    if (++logins == 1) {
      kernel_.FailNext("RunProgram", Error::MaybeApplied(Code::kDeadlineExceeded, "hung"), 1, true);
    }
  });
  const auto device = WaitForAttach(Spec());
  ASSERT_FALSE(device.ok());
  EXPECT_TRUE(device.error().maybe_applied());
  kernel_.SetCallHook(nullptr);
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, ADiskThatDoesNotAnswerKeepsItsSessionUntilItDoes) {
  Mount();
  kernel_.Hang("/dev/sdb");
  const Status hung = UnmountDevice();
  ASSERT_FALSE(hung.ok());
  EXPECT_EQ(hung.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(hung.error().maybe_applied());
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U);
  EXPECT_TRUE(kernel_.Exists(std::string(kPlace) + "/iscsi.json"));
  kernel_.Unhang("/dev/sdb");
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

}  // namespace
}  // namespace volumed
