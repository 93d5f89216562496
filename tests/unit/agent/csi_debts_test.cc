// A driver that is absent for too long: what is done without it, what never is, and that it is made
// up for, once, when the driver is back.
#include "csi/csi_debts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/csi_figures.h"
#include "agent/debt_collector.h"
#include "agent/driver_lanes.h"
#include "agent/forget_driver.h"
#include "csi/csi_owing.h"
#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/recorded_volume.h"
#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OwnLanes final : public FaultDomains {
 public:
  FaultDomain Locate(const std::string& domain) override { return {"of " + domain, "kernel"}; }
  LaneHealth HealthOf(const std::string&) const override { return {}; }
};

class CsiDebtsTest : public CsiPluginFixture {
 protected:
  CsiDebtsTest() {
    plugin_settings_.Set({.absent_limit = minutes(10)});
    drivers_->AddListener([this](const std::string& driver, DriverEvent) {
      if (collector_ == nullptr) return;
      collector_->Happened(driver);
      operations_->LanesChanged();
    });
    ServeNode();
    Start();
  }
  ~CsiDebtsTest() override { End(); }

  void End() {
    collector_.reset();
    operations_.reset();
    scheduler_.RunFor(milliseconds(1));
    plugin_.reset();
    plugins_.reset();
  }
  // The agent's own parts; the records stay.
  void Start() {
    debts_ = std::make_unique<CsiDebts>(
        CsiDebts::Parts{store_, *drivers_, plugin_settings_, clock_, log_});
    debts_->Restore(*store_.Load(kCsiDebtRecordKind));
    CsiPluginParts parts = context_->parts;
    parts.debts = debts_.get();
    with_debts_.reset(new CsiContext{parts, host_});
    plugin_ = std::make_unique<CsiPlugin>(parts);
    EXPECT_TRUE(plugin_->Init({host_, wrappers_}).ok());
    plugins_ = std::make_unique<VolumePluginMgr>();
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<CsiPlugin>(parts));
    EXPECT_TRUE(plugins_->InitPlugins(std::move(plugins), host_).ok());
    storage_ = std::make_unique<StorageGuard>(kernel_, store_, clock_, log_, kBoot);
    lanes_ = std::make_unique<DriverLanes>(own_lanes_, *drivers_, debts_.get());
    operations_ = std::make_unique<NodeVolumeOperations>(scheduler_,
                                                         OperationParts{.plugins = *plugins_,
                                                                        .host = host_,
                                                                        .logger = log_,
                                                                        .store = store_,
                                                                        .devices = *devices_,
                                                                        .storage = *storage_},
                                                         observer_, kBoot, lanes_.get());
    std::vector<PodVolumeRecord> volumes;
    const Result<LoadedRecords> rows = store_.Load(kPodVolumeRecordKind);
    for (const Record& row : rows->records) {
      volumes.push_back(AfterRestart(*DecodePodVolumeRecord(row), kBoot));
    }
    operations_->Restore(volumes, {});
    StartCollector();
  }
  void StartCollector() {
    collector_.reset(new DebtCollector(
        {scheduler_, *with_debts_, *operations_, [this] { operations_->LanesChanged(); }}));
    collector_->Start();
  }
  void RestartAll() {
    End();
    RestartAgent();
    Start();
  }

  // A pod has the volume, as the operations put it on record.
  void PutPod(bool attachable = false) {
    ASSERT_TRUE(Stage(CsiSpec()).ok());
    ASSERT_TRUE(Publish(CsiSpec()).ok());
    DeviceRecord device = *devices_->Find(Device());
    device.volume_json = EncodeRecordedVolume(CsiSpec());
    device.fault_domain = std::string("csi:") + kName;
    device.attachable = attachable;
    device.attach_way = attachable ? AttachWay::kByController : AttachWay::kNotKnown;
    device.node_id = attachable ? "node-a" : "";
    devices_->Restore(device);
    ASSERT_TRUE(store_.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
    PodVolumeRecord pod;
    pod.key = {PodUid(kPodUid), SpecName("pv-1")};
    pod.pod_namespace = "shop";
    pod.pod_name = "web";
    pod.plugin_name = kCsiPluginName;
    pod.fault_domain = device.fault_domain;
    pod.state = VolumeState::kSetUp;
    pod.boot_id = kBoot;
    pod.volume_json = device.volume_json;
    pod.unique_name = Device();
    pod.has_device = true;
    ASSERT_TRUE(store_.Put(EncodeRecord(pod), kPodVolumeRecordDurability).ok());
    operations_->Restore({pod}, {});
    calls_.clear();
  }
  void DriverDies() {
    dialer_.Kill(process_);
    dialer_.Remove(kEndpoint);
    scheduler_.RunFor(milliseconds(1));
  }
  void DriverReturns() { ServeNode(); }

  static UniqueVolumeName Device() { return CsiUniqueName(kName, kHandle); }
  std::string PodMount() { return Target(CsiSpec()); }
  std::vector<Record> Rows() { return store_.Load(kCsiDebtRecordKind)->records; }

  // "" on success, "waits", or the error's text.
  template <typename Op>
  std::string Run(Op operation, Duration wait = seconds(1)) {
    const auto outcome = std::make_shared<std::optional<OperationOutcome<Unit>>>();
    operations_->ResetBackoff(operation.key());
    const StartResult started = operations_->Start(
        operation, [outcome](const OperationOutcome<Unit>& ended) { *outcome = ended; });
    if (started != StartResult::kStarted) return "not started";
    scheduler_.RunFor(wait);
    if (!*outcome) return "waits";
    if (!(*outcome)->failure) return "";
    const Error& error = (*outcome)->failure->error;
    return (error.maybe_applied() ? "maybe: " : "") + error.message();
  }
  std::string PodLeaves(Duration wait = seconds(1)) {
    return Run(UnmountVolume({.pod = PodUid(kPodUid),
                              .spec = SpecName("pv-1"),
                              .plugin_name = kCsiPluginName,
                              .pod_display_name = "shop/web",
                              .device = Device()}),
               wait);
  }
  std::string DeviceGoes(Duration wait = seconds(1)) {
    return Run(::volumed::UnmountDevice({.device = Device(),
                                         .plugin_name = kCsiPluginName,
                                         .spec = SpecName("pv-1"),
                                         .device_mount_path = Staging()}),
               wait);
  }
  // The driver is gone for longer than the limit, and pod and device have left without it.
  void LeaveWithout() {
    PutPod();
    DriverDies();
    scheduler_.RunFor(minutes(11));
    ASSERT_EQ(PodLeaves(), "");
    ASSERT_EQ(DeviceGoes(), "");
    ASSERT_EQ(Rows().size(), 2u);
    ASSERT_THAT(calls_, IsEmpty());
  }

  // `volumectl delete driver --force`, with what is here of it besides; what was given up, or the
  // error.
  Result<std::vector<std::string>> ForgetByForce(std::vector<VolumeOnRecord> volumes = {}) {
    std::optional<Result<std::vector<std::string>>> told;
    ForgetAndOweNothing({scheduler_, *drivers_, *debts_, kernel_, {clock_, seconds(5)}},
                        {.driver = kName,
                         .volumes = std::move(volumes),
                         .open_calls = {},
                         .owed_calls = debts_->TextsOf(kName),
                         .begun = {}},
                        [&told](const auto& given_up) { told = given_up; });
    scheduler_.RunFor(seconds(1));
    return told.value_or(Error::NotApplied(Code::kInternal, "nothing was told"));
  }

  OwnLanes own_lanes_;
  std::unique_ptr<CsiDebts> debts_;
  std::unique_ptr<CsiContext> with_debts_;
  std::unique_ptr<VolumePluginMgr> plugins_;
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<DriverLanes> lanes_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  std::unique_ptr<DebtCollector> collector_;
};

TEST_F(CsiDebtsTest, ARowGivesBackWhatWasWritten) {
  const CsiDebt debt{{kName, kHandle}, OwedCall::kUnstage, "/k/stage", 1'767'323'045'678};
  const Record row = EncodeRecord(debt);
  EXPECT_EQ(row.kind, "csi-debt");
  EXPECT_EQ(row.key, std::string(kName) + "/" + CsiHandleHash(kHandle) + "/unstage/" +
                         CsiHandleHash("/k/stage"));
  EXPECT_EQ(*DecodeCsiDebt(row), debt);
  Record other = row;
  other.key += "x";
  EXPECT_EQ(DecodeCsiDebt(other).error().code(), Code::kDataLoss);
}

TEST_F(CsiDebtsTest, APodThatLeavesWaitsForItsDriverUntilTheLimitAndNoLonger) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(9));
  EXPECT_EQ(PodLeaves(seconds(50)), "waits");
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
  scheduler_.RunFor(seconds(15));
  EXPECT_FALSE(kernel_.IsMountPoint(PodMount()));
  EXPECT_FALSE(
      kernel_.Exists(CsiPodVolumeDir(paths_, PodUid(kPodUid), SpecName("pv-1")).Display()));
  EXPECT_EQ(Rows().size(), 1u);
  EXPECT_TRUE(kernel_.IsMountPoint(Staging()));
}

TEST_F(CsiDebtsTest, WithoutALimitThePodWaits) {
  plugin_settings_.Set({});
  collector_->SettingsChanged();
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(600));
  EXPECT_EQ(PodLeaves(minutes(600)), "waits");
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  // A reload that sets one lets it go on.
  plugin_settings_.Set({.absent_limit = minutes(10)});
  collector_->SettingsChanged();
  scheduler_.RunFor(seconds(1));
  EXPECT_FALSE(kernel_.IsMountPoint(PodMount()));
}

// With a limit of ten minutes nobody knew that the pod leaves by itself.
TEST_F(CsiDebtsTest, ItWasNotSaidWhenTheDriverIsDoneWithout) {
  const std::string lane = std::string("csi:") + kName;
  EXPECT_EQ(lanes_->WhenTakenAwayWithout(lane), "") << "it is there";
  PutPod();
  DriverDies();
  const int64_t from = debts_->MayOweFromUnixMillis(kName).value();
  const int64_t left = from - clock_.WallUnixMillis();
  EXPECT_GT(left, 9 * 60'000);
  EXPECT_LE(left, 10 * 60'000);
  EXPECT_THAT(lanes_->WhenTakenAwayWithout(lane),
              HasSubstr("unmounted without it after " + WallTimeText(from)));
  plugin_settings_.Set({});
  EXPECT_EQ(lanes_->WhenTakenAwayWithout(lane), "");
}

TEST_F(CsiDebtsTest, WhatIsOwedIsDeliveredOnceWhenTheDriverIsBackUnpublishFirst) {
  LeaveWithout();
  EXPECT_FALSE(kernel_.IsMountPoint(Staging()));
  EXPECT_EQ(debts_->Counts().at(kName), 2);
  DriverReturns();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_EQ(Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume").target_path(),
            PodMount());
  EXPECT_EQ(Last<::csi::v1::NodeUnstageVolumeRequest>("NodeUnstageVolume").staging_target_path(),
            Staging());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_TRUE(debts_->Counts().empty());
  scheduler_.RunFor(minutes(60));
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(CsiDebtsTest, ARestartForgetsNothingThatIsOwed) {
  LeaveWithout();
  RestartAll();
  EXPECT_TRUE(debts_->HasOf(kName));
  DriverReturns();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_THAT(Rows(), IsEmpty());
  RestartAll();
  scheduler_.RunFor(minutes(60));
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(CsiDebtsTest, AnyOtherCallAboutTheVolumeComesAfterWhatIsOwed) {
  LeaveWithout();
  collector_.reset();  // nobody but the call itself delivers
  DriverReturns();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume", "NodeStageVolume"));
  EXPECT_THAT(Rows(), IsEmpty());
}

// A pod's path is made of names, which another volume may have by now: drivers unmount by the path,
// and a pod was left Ready without its mount.
TEST_F(CsiDebtsTest, AnotherVolumeWasPutAtThePathOfADebt) {
  LeaveWithout();
  RestartAll();
  collector_.reset();
  ::csi::v1::NodePublishVolumeRequest publish;
  publish.set_volume_id("vol-other");
  publish.set_target_path(PodMount());
  ::csi::v1::NodeStageVolumeRequest stage;
  stage.set_volume_id("vol-other");
  stage.set_staging_target_path(Staging());
  for (const char* driver : {kName, "other.example.com"}) {
    SCOPED_TRACE(driver);
    const auto refused = AdmitCall(*with_debts_, driver, publish, Call());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::kUnavailable);
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_THAT(refused.error().message(),
                HasSubstr("CSI driver disk.example.com is owed NodeUnpublishVolume of volume " +
                          std::string(kHandle) + " at " + PodMount()));
    const auto unstaged = AdmitCall(*with_debts_, driver, stage, Call());
    ASSERT_FALSE(unstaged.ok());
    EXPECT_THAT(unstaged.error().message(), HasSubstr("is owed NodeUnstageVolume"));
  }
  publish.set_target_path(PodMount() + "-2");
  EXPECT_TRUE(AdmitCall(*with_debts_, kName, publish, Call()).ok());
  DriverReturns();
  ASSERT_TRUE(DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call()).ok());
  publish.set_target_path(PodMount());
  EXPECT_TRUE(AdmitCall(*with_debts_, kName, publish, Call()).ok());
  EXPECT_TRUE(AdmitCall(*with_debts_, kName, stage, Call()).ok());
}

TEST_F(CsiDebtsTest, ADebtWhoseRowCannotBeReadKeepsItsPathFromEverybody) {
  LeaveWithout();
  for (const Record& row : Rows()) store_.Corrupt(kCsiDebtRecordKind, row.key, "a bit has turned");
  RestartAll();
  EXPECT_THAT(debts_->WhatIsOwedAt(PodMount()), HasSubstr("whose record cannot be read"));
  EXPECT_EQ(debts_->WhatIsOwedAt(PodMount() + "-2"), "");
}

TEST_F(CsiDebtsTest, ADebtTookTheMountOfTheVolumeThatHadComeToItsPath) {
  LeaveWithout();
  collector_.reset();
  DriverReturns();
  Mounts(PodMount(), "/dev/sdb");
  StartCollector();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_EQ(Rows().size(), 2u);
  const Status held = DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call());
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(held.error().message(), HasSubstr("/dev/sdb is mounted at " + PodMount()));
  kernel_.UnmountBelow(PodMount());
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_THAT(Rows(), IsEmpty());
}

// The agent had ended between the debt and the unmount.
TEST_F(CsiDebtsTest, AVolumeThatIsMountedStillByItsDebtIsTakenAwayByItsOwnTeardown) {
  PutPod();
  collector_.reset();
  const CsiDebt debt{{kName, kHandle}, OwedCall::kUnpublish, PodMount(), 1'767'323'045'678};
  ASSERT_TRUE(debts_->Owe(debt).ok());
  EXPECT_FALSE(DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call()).ok());
  EXPECT_EQ(PodLeaves(), "");
  EXPECT_FALSE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, ACallThatIsOwedAndFailsKeepsOthersOutAndIsMadeAgain) {
  LeaveWithout();
  collector_.reset();
  DriverReturns();
  Says("NodeUnpublishVolume", Code::kInternal);
  StartCollector();
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Rows().size(), 2u);
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_FALSE(staged.error().maybe_applied()) << "of it nothing was sent";
  Does<::csi::v1::NodeUnpublishVolumeResponse>("NodeUnpublishVolume", [](const Message&) {});
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_EQ(calls_.back(), "NodeUnstageVolume");
}

TEST_F(CsiDebtsTest, ADriverThatKnowsNoSuchVolumeIsOwedNothing) {
  LeaveWithout();
  collector_.reset();
  DriverReturns();
  Says("NodeUnpublishVolume", Code::kNotFound);
  Says("NodeUnstageVolume", Code::kNotFound);
  const Status done = DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call());
  EXPECT_TRUE(done.ok());
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, WhatIsNoPlainMountOfTheStagedDiskWaitsAndSaysWhy) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  kernel_.UnmountBelow(PodMount());
  kernel_.AddMount("fuse.sshfs", "host:/", PodMount());
  std::string left = PodLeaves();
  EXPECT_THAT(left, HasSubstr("CSI driver disk.example.com is gone since"));
  EXPECT_THAT(left, HasSubstr("cannot be taken away without it: what is mounted at " + PodMount() +
                              " is a fuse.sshfs"));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  kernel_.UnmountBelow(PodMount());
  Mounts(PodMount(), "/dev/sdb");
  left = PodLeaves();
  EXPECT_THAT(left, HasSubstr("is not what is mounted at " + Staging()));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, WhatIsNotCertainlyStagedByItsRecordWaits) {
  PutPod();
  DeviceRecord device = *devices_->Find(Device());
  device.uncertain = true;
  devices_->Restore(device);
  DriverDies();
  scheduler_.RunFor(minutes(11));
  EXPECT_THAT(PodLeaves(), HasSubstr("which is not certain"));
  device.uncertain = false;
  device.staged = StagedState::kNot;
  devices_->Restore(device);
  EXPECT_THAT(PodLeaves(), HasSubstr("the driver has not staged it"));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, AnUnmountThatHadNoEffectOwesNothing) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  kernel_.FailNext("Unmount", Error::NotApplied(Code::kFailedPrecondition, "busy"));
  EXPECT_THAT(PodLeaves(), HasSubstr("busy"));
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_EQ(PodLeaves(), "");
  EXPECT_EQ(Rows().size(), 1u);
}

TEST_F(CsiDebtsTest, NothingIsUnmountedUnlessTheDebtIsOnRecord) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"), 1,
                  kCsiDebtRecordKind);
  EXPECT_THAT(PodLeaves(), HasSubstr("disk is full"));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
}

TEST_F(CsiDebtsTest, AVolumeIsNeverDetachedWithoutItsDriver) {
  PutPod(/*attachable=*/true);
  DriverDies();
  scheduler_.RunFor(minutes(11));
  ASSERT_EQ(PodLeaves(), "");
  ASSERT_EQ(DeviceGoes(), "");
  EXPECT_EQ(devices_->Find(Device())->state, VolumeState::kAttached);
  const std::string detached = Run(DetachVolume(
      DetachRequest{.device = Device(), .plugin_name = kCsiPluginName, .spec = SpecName("pv-1")}));
  EXPECT_NE(detached, "");
  EXPECT_EQ(detached.find("maybe"), std::string::npos) << detached;
  EXPECT_EQ(devices_->Find(Device())->state, VolumeState::kAttached);
  EXPECT_EQ(Rows().size(), 2u);
}

TEST_F(CsiDebtsTest, ARowThatCannotBeReadKeepsTheVolumeFromEverybody) {
  LeaveWithout();
  store_.Corrupt(kCsiDebtRecordKind, Rows().front().key, "a bit has turned");
  RestartAll();
  DriverReturns();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, IsEmpty());
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_THAT(staged.error().message(), HasSubstr("a bit has turned"));
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(CsiDebtsTest, ADriverThatComesAndGoesIsAbsentFromItsLastConnectionOn) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(9));
  DriverReturns();
  EXPECT_FALSE(debts_->MayOwe(kName));
  DriverDies();
  scheduler_.RunFor(minutes(9));
  EXPECT_FALSE(debts_->MayOwe(kName));
  scheduler_.RunFor(minutes(2));
  EXPECT_TRUE(debts_->MayOwe(kName));
  EXPECT_FALSE(debts_->MayOwe("other.example.com")) << "it was never here";
}

TEST_F(CsiDebtsTest, ADriverThatIsOwedCallsAndNeverComesBackWasKnownForEver) {
  LeaveWithout();
  drivers_->Unregister(kName);
  const auto given_up = ForgetByForce();
  ASSERT_TRUE(given_up.ok()) << given_up.error().message();
  EXPECT_THAT(*given_up,
              testing::UnorderedElementsAre(
                  std::string("NodeUnpublishVolume of volume ") + kHandle + " at " + PodMount(),
                  std::string("NodeUnstageVolume of volume ") + kHandle + " at " + Staging()));
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_FALSE(debts_->HasOf(kName));
  EXPECT_EQ(debts_->WhatIsOwedAt(PodMount()), "");
  EXPECT_EQ(drivers_->Find(kName), nullptr);
}

TEST_F(CsiDebtsTest, WhatElseIsHereOfADriverKeepsAlsoWhatItIsOwed) {
  LeaveWithout();
  EXPECT_THAT(ForgetByForce().error().message(), HasSubstr("it is registered"));
  drivers_->Unregister(kName);
  const auto refused =
      ForgetByForce({{SpecName("pv-1"), PodUid(kPodUid), "shop", "web", VolumeState::kSetUp}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(refused.error().message(), HasSubstr("`volumectl delete pod web -n shop`"));
  EXPECT_EQ(refused.error().message().find("--force"), std::string::npos)
      << "it does not help: " << refused.error().message();
  EXPECT_EQ(Rows().size(), 2u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(CsiDebtsTest, NothingIsGivenUpWhileSomethingIsMountedAtThePathOfADebt) {
  LeaveWithout();
  drivers_->Unregister(kName);
  Mounts(PodMount(), "/dev/sdb");
  const auto refused = ForgetByForce();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("/dev/sdb is mounted at " + PodMount()));
  EXPECT_EQ(Rows().size(), 2u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
  kernel_.UnmountBelow(PodMount());
  EXPECT_TRUE(ForgetByForce().ok());
}

TEST_F(CsiDebtsTest, AnOwedCallWhoseRowCannotBeReadIsNotGivenUp) {
  LeaveWithout();
  store_.Corrupt(kCsiDebtRecordKind, Rows().front().key, "a bit has turned");
  RestartAll();
  drivers_->Unregister(kName);
  const auto refused = ForgetByForce();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("a bit has turned"));
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(CsiDebtsTest, ADriverWhoseDebtsCannotBeRemovedIsNotForgotten) {
  LeaveWithout();
  drivers_->Unregister(kName);
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"), 1,
                  kCsiDebtRecordKind);
  const auto failed = ForgetByForce();
  ASSERT_FALSE(failed.ok());
  EXPECT_FALSE(failed.error().maybe_applied()) << "nothing was given up before";
  EXPECT_EQ(Rows().size(), 2u);
  EXPECT_NE(drivers_->Find(kName), nullptr);
}

TEST_F(CsiDebtsTest, VolumesOnRecordAreThoseOfPodsAndTheDevicesThatNoPodHas) {
  const std::string domain = std::string("csi:") + kName;
  EXPECT_TRUE(operations_->VolumesOf(domain).empty());
  PutPod(/*attachable=*/true);
  EXPECT_THAT(operations_->VolumesOf(domain),
              ElementsAre(VolumeOnRecord{SpecName("pv-1"), PodUid(kPodUid), "shop", "web",
                                         VolumeState::kSetUp}));
  EXPECT_TRUE(operations_->VolumesOf("csi:other.example.com").empty());
  DriverDies();
  scheduler_.RunFor(minutes(11));
  ASSERT_EQ(PodLeaves(), "");
  ASSERT_EQ(DeviceGoes(), "");
  EXPECT_THAT(
      operations_->VolumesOf(domain),
      ElementsAre(VolumeOnRecord{SpecName("pv-1"), PodUid(), "", "", VolumeState::kAttached}));
}

TEST_F(CsiDebtsTest, TheMetricCountsWhatEachDriverIsOwed) {
  LeaveWithout();
  CsiFigures figures(families_);
  figures.CollectDebts(debts_->Counts());
  std::string text;
  families_.AppendTo(text);
  EXPECT_THAT(text, HasSubstr("volumed_csi_debts{driver=\"disk.example.com\"} 2"));
  figures.CollectDebts({});
  text.clear();
  families_.AppendTo(text);
  EXPECT_EQ(text.find("volumed_csi_debts{"), std::string::npos);
}

}  // namespace
}  // namespace volumed
