#include "agent/node_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/pool_gauges.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "fakes/must.h"
#include "os/io_limits.h"
#include "pool/pool_plugin.h"
#include "unit/operation/recording_parts.h"
#include "volume/driver_domain.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodePoolsTest : public ::testing::Test {
 protected:
  NodePoolsTest() {
    config_.pools = {{"one", "/srv/one"}, {"two", "/srv/two"}};
    Restart();
  }
  // A new agent, before it has opened anything.
  void Restart() {
    pools_.reset();
    devices_ = std::make_unique<DeviceRecordKeeper>(store_, scheduler_.clock(), logger_, observer_,
                                                    BootId("boot-a"));
    parts_ = std::make_unique<AgentParts>(scheduler_, logger_, [] {});
    pools_ = std::make_unique<NodePools>(
        NodePools::Parts{scheduler_, kernel_, store_, logger_, irreversible_, *devices_, paths_,
                         *parts_, [this] { ++opened_; },
                         [this](const std::string& path, const PoolTrouble& trouble) {
                           troubles_[path] = trouble;
                         }},
        PoolSettingsOf(config_, "the agent of node n1, with pid 4711"));
    for (const OtherRecordKind& kind : NodePools::RecordKinds()) {
      pools_->Restore(kind.kind, Must(store_.Load(kind.kind)));
    }
    opened_ = 0;
  }
  void Open() {
    pools_->Open();
    scheduler_.RunFor(milliseconds(1));
  }
  // Names of the parts that do not work.
  std::vector<std::string> Failed() const {
    std::vector<std::string> names;
    for (const FailedPart& part : parts_->failed()) names.push_back(part.name);
    return names;
  }
  std::vector<LoopEntry> Loops() {
    return std::get<LoopList>(Must(kernel_.DoAside(ListLoops{{"/srv", ""}}))).loops;
  }
  // A volume with a device that is open.
  std::string OpenVolume() {
    PoolVolumeWish wish;
    wish.name = "pvc-1";
    wish.size.required_bytes = int64_t{16} << 20;
    wish.parameters = {{"pool", "one"}};
    const std::string id = Must(pools_->volumes().Create(wish, {})).id;
    EXPECT_TRUE(pools_->volumes().Open(id, /*read_only=*/false, {}).ok());
    return id;
  }

  SimulatedScheduler scheduler_{1};
  FakeKernel kernel_;
  MemoryRecordStore store_;
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  FakeIrreversibleSteps irreversible_;
  const KubeletPaths paths_{"/r"};
  Config config_;
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<AgentParts> parts_;
  std::unique_ptr<NodePools> pools_;
  int opened_ = 0;
  std::map<std::string, PoolTrouble> troubles_;  // by path, as told last
};

TEST_F(NodePoolsTest, TheSettingsOfAPoolAreThoseOfItsName) {
  config_.pool_capacity = {{"two", 7}};
  config_.pool_lvm = {{"two", {"vg0", "thin"}}};
  config_.pool_reserve_percent = 3;
  const std::vector<PoolSettings> settings = PoolSettingsOf(config_, "who");
  ASSERT_THAT(settings, SizeIs(2));
  EXPECT_EQ(settings[0].name, "one");
  EXPECT_EQ(settings[0].limits.capacity_bytes, 0);
  EXPECT_EQ(settings[1].path, "/srv/two");
  EXPECT_EQ(settings[1].limits.capacity_bytes, 7);
  EXPECT_EQ(settings[1].limits.reserve_percent, 3);
  EXPECT_EQ(settings[1].holder, "who");
  EXPECT_EQ(settings[0].lvm, std::nullopt);
  EXPECT_EQ(settings[1].lvm, (LvmNames{"vg0", "thin"}));
}

TEST_F(NodePoolsTest, APoolThatIsNotThereIsAPartOfItsOwnAndTheOthersAreOpen) {
  kernel_.AddDirectory("/srv/two");
  Open();
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool one"));
  EXPECT_EQ(parts_->Problem(), std::nullopt) << "the agent is ready without it";
  EXPECT_EQ(opened_, 1);
  EXPECT_TRUE(pools_->volumes().PlanId({{"pool", "two"}}).ok());
  const auto refused = pools_->volumes().PlanId({{"pool", "one"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
}

// Records were lost with the node's disk, and the pool's disk was not. The agent was as if all were
// well, and told the scheduler how much there was for volumes that it then made none of.
TEST_F(NodePoolsTest, VolumesWithoutARecordWereSaidInTheLogAlone) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  Open();
  const std::string id = OpenVolume();
  ASSERT_TRUE(pools_->volumes().Close(id, {}).ok());
  ASSERT_TRUE(store_.Remove(kPoolVolumeRecordKind, id, kPoolRecordDurability).ok());
  Restart();
  Open();
  EXPECT_THAT(Failed(), ::testing::ElementsAre("records of the pools"));
  EXPECT_EQ(parts_->Problem(), std::nullopt);
  EXPECT_THAT(parts_->failed().front().error.message(), HasSubstr(id));
  EXPECT_EQ(Must(pools_->volumes().Capacity({{"pool", "two"}}, {})).free_bytes, 0);
  kernel_.Rename("/srv/one/volumes/" + id, "moved");
  scheduler_.RunFor(seconds(3));
  EXPECT_THAT(Failed(), IsEmpty());
  EXPECT_GT(Must(pools_->volumes().Capacity({{"pool", "two"}}, {})).free_bytes, 0);
}

TEST_F(NodePoolsTest, APoolThatDoesNotAnswerKeepsNoOtherFromBeingOpened) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  kernel_.Hang("/srv/one");
  Open();
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool one"));
  EXPECT_EQ(opened_, 1);
}

TEST_F(NodePoolsTest, AMountWhereAPoolShouldBeOpensItAtOnce) {
  Open();
  ASSERT_THAT(Failed(), SizeIs(2));
  kernel_.AddDirectory("/srv/one");
  pools_->MountsChanged({"/srv/one/below", "/srv/on", "/elsewhere"});
  scheduler_.RunFor(milliseconds(1));
  EXPECT_THAT(Failed(), SizeIs(2));
  pools_->MountsChanged({"/srv"});
  scheduler_.RunFor(milliseconds(1));
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool two"));
  EXPECT_EQ(opened_, 1);
}

// `volumectl get pools` had it open with the figures of before, and no part failed.
TEST_F(NodePoolsTest, APoolWhoseDiskFailedUnderTheAgentStayedOpen) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  Open();
  ASSERT_THAT(Failed(), IsEmpty());
  kernel_.FailNextBelow("IdentifyStorage", "/srv/one",
                        Error::FromErrno(EIO, "look", Outcome::kNotApplied));
  EXPECT_FALSE(pools_->volumes().Glance("one").state.ok());
  scheduler_.RunFor(milliseconds(1));
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool one"));
  const Pool& pool = *pools_->volumes().pools().front();
  ASSERT_FALSE(pool.state().ok());
  EXPECT_TRUE(pool.state().error().IsAbout(kStorageAway)) << "an administrator has to act";
  EXPECT_EQ(troubles_["/srv/one"].reason, "PoolUnreachable");
  EXPECT_THAT(troubles_["/srv/one"].text, HasSubstr("pool one at /srv/one"));
  EXPECT_FALSE(troubles_.contains("/srv/two"));
  // It answers again, and nothing tells of that.
  scheduler_.RunFor(seconds(2));
  EXPECT_THAT(Failed(), IsEmpty());
  EXPECT_EQ(troubles_["/srv/one"], PoolTrouble());
  EXPECT_EQ(opened_, 3) << "what waits for it is tried again";
}

TEST_F(NodePoolsTest, AnUnmountedPoolWasNotSeenAndNotTriedWhenItWasMountedAgain) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  Open();
  ASSERT_EQ(opened_, 2);
  // What the path leads to is another directory, as after an umount.
  kernel_.Rename("/srv/one", "disk");
  kernel_.AddDirectory("/srv/one");
  pools_->MountsChanged({"/srv/one"});
  scheduler_.RunFor(milliseconds(1));
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool one"));
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool one"));
  EXPECT_EQ(opened_, 2);
  kernel_.Remove("/srv/one");
  kernel_.Rename("/srv/disk", "one");
  pools_->MountsChanged({"/srv/one"});
  scheduler_.RunFor(milliseconds(1));
  EXPECT_THAT(Failed(), IsEmpty());
  EXPECT_EQ(opened_, 3);
  EXPECT_EQ(troubles_["/srv/one"], PoolTrouble());
}

TEST_F(NodePoolsTest, PodsWereNotToldThatTheirPoolIsShort) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddMount("ext4", "/dev/sdb", "/srv/one");
  Open();
  OpenVolume();
  kernel_.LimitFilesystem("/srv/one", 8 << 20);
  ASSERT_TRUE(pools_->volumes().Glance("one").state.ok());
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(troubles_["/srv/one"].reason, "PoolShort");
  kernel_.LimitFilesystem("/srv/one", int64_t{1} << 30);
  ASSERT_TRUE(pools_->volumes().Glance("one").state.ok());
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(troubles_["/srv/one"], PoolTrouble());
}

// It was a pool on the disk of the system, and nothing said so.
TEST_F(NodePoolsTest, APoolWasMadeBelowADiskThatWasNotMountedWithoutAWord) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  kernel_.AddMount("xfs", "/dev/sdb", "/srv/two");
  Open();
  EXPECT_EQ(log_.Count("is no mount point"), 1);
  Restart();
  Open();
  EXPECT_EQ(log_.Count("is no mount point"), 1) << "they are pools by now";
}

// Its volumes were "Ready", nobody could have or delete them, and nothing said why.
TEST_F(NodePoolsTest, APoolWithVolumesThatIsConfiguredNoMoreWasNotMissed) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  Open();
  OpenVolume();
  config_.pools = {{"two", "/srv/two"}};
  Restart();
  Open();
  EXPECT_THAT(Failed(), ::testing::ElementsAre("pool one"));
  config_.pools = {{"one", "/srv/one"}, {"two", "/srv/two"}};
  Restart();
  Open();
  EXPECT_THAT(Failed(), IsEmpty());
}

TEST_F(NodePoolsTest, AScrapeHasTheFiguresOfTheLookBeforeIt) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  Open();
  const std::string id = OpenVolume();
  ExportedFamilies families;
  PoolGauges gauges({scheduler_, pools_->volumes(), families, [&pools = pools_->volumes(), &id] {
                       return std::vector<std::string>{pools.NewCutId(id)};
                     }});
  const auto scrape = [&] {
    gauges.Collect();
    scheduler_.RunFor(milliseconds(1));
    std::string text;
    families.AppendTo(text);
    return text;
  };
  const std::string first = scrape();
  EXPECT_THAT(first, HasSubstr("volumed_pool_up{pool=\"one\"} 1\n"));
  EXPECT_THAT(first, ::testing::Not(HasSubstr("volumed_pool_promised_bytes{")));
  const std::string second = scrape();
  EXPECT_THAT(second, HasSubstr("volumed_pool_promised_bytes{pool=\"one\"} 16777216\n"));
  EXPECT_THAT(second, HasSubstr("volumed_pool_short{pool=\"one\"} 0\n"));
  EXPECT_THAT(second, HasSubstr("volumed_pool_volumes{pool=\"one\"} 1\n"));
  EXPECT_THAT(second, HasSubstr("volumed_pool_volumes{pool=\"two\"} 0\n"));
  EXPECT_THAT(second, HasSubstr("volumed_pool_snapshots{pool=\"one\"} 1\n"));
  EXPECT_THAT(second, HasSubstr("volumed_pool_free_bytes{pool=\"two\"} "));
  const uint64_t calls = kernel_.call_count();
  scrape();
  EXPECT_EQ(kernel_.call_count(), calls) << "no pool is looked at twice within seconds";
  kernel_.FailNextBelow("IdentifyStorage", "/srv/two",
                        Error::FromErrno(EIO, "look", Outcome::kNotApplied));
  scheduler_.RunFor(seconds(11));
  scrape();
  gauges.Collect();
  std::string text;
  families.AppendTo(text);
  EXPECT_THAT(text, HasSubstr("volumed_pool_up{pool=\"two\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("volumed_pool_up{pool=\"one\"} 1\n"));
}

TEST_F(NodePoolsTest, BeforeTheRowsAreThereAMountOpensNothing) {
  kernel_.AddDirectory("/srv/one");
  pools_->MountsChanged({"/srv/one"});
  scheduler_.RunFor(minutes(5));
  EXPECT_EQ(opened_, 0);
  EXPECT_FALSE(kernel_.Exists("/srv/one/pool.volumed"));
}

TEST_F(NodePoolsTest, APoolThatIsNotThereIsTriedAgainByItself) {
  Open();
  scheduler_.RunFor(minutes(10));
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  scheduler_.RunFor(minutes(1) + seconds(1));
  EXPECT_THAT(Failed(), IsEmpty());
  EXPECT_EQ(opened_, 2);
  const uint64_t calls = kernel_.call_count();
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(kernel_.call_count(), calls) << "what is open is left alone";
}

TEST_F(NodePoolsTest, ADirectoryBecomesAPoolOnceTheRecordsAreAccepted) {
  kernel_.AddDirectory("/srv/one");
  kernel_.AddDirectory("/srv/two");
  irreversible_.hold = true;
  Open();
  EXPECT_THAT(Failed(), SizeIs(2));
  EXPECT_FALSE(kernel_.Exists("/srv/one/pool.volumed"));
  irreversible_.hold = false;
  Open();
  EXPECT_THAT(Failed(), IsEmpty());
}

TEST_F(NodePoolsTest, ADeviceThatNobodyHasIsClosedByTheNextAgent) {
  kernel_.AddDirectory("/srv/one");
  Open();
  OpenVolume();
  ASSERT_THAT(Loops(), SizeIs(1));
  Restart();
  EXPECT_THAT(Loops(), SizeIs(1));
  Open();
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(NodePoolsTest, ADeviceThatIsOnRecordStaysOpen) {
  kernel_.AddDirectory("/srv/one");
  Open();
  const std::string id = OpenVolume();
  Restart();
  DeviceRecord device;
  device.key = GetUniqueVolumeName("volumed.io/pool", id);
  device.state = VolumeState::kMountingDevice;
  device.boot_id = BootId("boot-a");
  devices_->Restore(device);
  Open();
  EXPECT_THAT(Loops(), SizeIs(1));
}

// Its records were lost, and its pod runs.
TEST_F(NodePoolsTest, ADeviceThatIsMountedStaysOpenThoughNoRecordTells) {
  kernel_.AddDirectory("/srv/one");
  Open();
  const std::string id = OpenVolume();
  kernel_.AddMount("ext4", "/dev/elsewhere", "/r/plugins/volumed.io/pool/mounts/" + id);
  Restart();
  Open();
  EXPECT_THAT(Loops(), SizeIs(1));
  EXPECT_THAT(log_.lines, ::testing::Each(::testing::Not(HasSubstr("is left as it is"))));
}

// Its row was lost while a CO had it mounted, at a place of its own: the next agent told the kernel
// to take the device away with that mount, and could not stage the volume again until then.
TEST_F(NodePoolsTest, ADeviceThatACoHasMountedWasGivenUpWhenItsRowWasLost) {
  kernel_.AddDirectory("/srv/one");
  Open();
  OpenVolume();
  const std::string device = Loops().at(0).path;
  kernel_.AddMount("ext4", device, "/var/lib/co/stage");
  Restart();
  Open();
  ASSERT_THAT(Loops(), SizeIs(1));
  EXPECT_FALSE(kernel_.Device(device).loop->goes);
  // Once nobody has it, it goes as any other.
  kernel_.UnmountBelow("/var/lib/co/stage");
  Restart();
  Open();
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(NodePoolsTest, ABlockDeviceThatACoHasWasTakenAwayWhenItsRowWasLost) {
  kernel_.AddDirectory("/srv/one");
  Open();
  OpenVolume();
  const std::string device = Loops().at(0).path;
  kernel_.AddFile("/var/lib/co/device", "");
  Must(kernel_.DoAside(
      BindMount{.source = {device, ""}, .target = {"/var/lib/co/device", ""}, .read_only = false}));
  Restart();
  Open();
  ASSERT_THAT(Loops(), SizeIs(1));
  EXPECT_FALSE(kernel_.Device(device).loop->goes);
}

TEST_F(NodePoolsTest, AContainerThatComesAfterItsPodHasTheVolumeIsThrottledToo) {
  kernel_.AddDirectory("/srv/one");
  Open();
  const std::string id = OpenVolume();
  kernel_.AddMount("cgroup", "blkio", "/sys/fs/cgroup/blkio");
  const std::string pod = "/sys/fs/cgroup/blkio/kubepods/podp-1";
  const auto add_cgroup = [this](const std::string& cgroup) {
    for (const BlkioThrottle& throttle : kBlkioThrottles) {
      kernel_.AddFile(cgroup + "/" + throttle.file, "");
    }
  };
  const auto limit_of = [this](const std::string& cgroup) {
    const FakeDevice device = kernel_.Device(Loops().at(0).path);
    return BlkioLimitOf(kernel_.Find(cgroup + "/blkio.throttle.read_bps_device").content,
                        IoDeviceNumber(device.identity));
  };
  add_cgroup(pod);
  ASSERT_TRUE(pools_->volumes().Modify(id, {{"readBps", "4096"}}, {}).ok());
  ASSERT_TRUE(pools_->volumes().Throttle(id, "p-1", {}).ok());
  add_cgroup(pod + "/first");
  scheduler_.RunFor(seconds(6));
  EXPECT_EQ(limit_of(pod + "/first"), 4096);

  Restart();
  PodVolumeRecord record;
  record.key.pod = PodUid("p-1");
  record.unique_name = GetUniqueVolumeName(kPoolPluginName, id);
  pools_->NoteFound({record});
  Open();
  ASSERT_TRUE(pools_->volumes().Open(id, /*read_only=*/false, {}).ok());
  add_cgroup(pod + "/second");
  scheduler_.RunFor(seconds(6));
  EXPECT_EQ(limit_of(pod + "/second"), 4096);
  kernel_.Remove(pod);
  scheduler_.RunFor(seconds(6));
  EXPECT_FALSE(pools_->volumes().HasThrottlesToKeep()) << "the pod is gone";
}

}  // namespace
}  // namespace volumed
