// What the manager tells and takes besides reconciling: a retry of one volume, the event of volumes
// that cannot be tried, and what a start found.
#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/failed_mount_text.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/record_writer.h"

namespace volumed {
namespace {

const Error kBroken = Error::NotApplied(Code::kInternal, "x");

class RetryTest : public ManagerTest {};

TEST_F(RetryTest, OfOneVolumeTriesThatOneAlone) {
  StartAgent();
  operations().FailNext("mount", Key("a", "one"), kBroken, 1);
  operations().FailNext("mount", Key("a", "two"), kBroken, 1);
  Deliver(PodManifest("a", {"one: emptyDir: {}", "two: emptyDir: {}"}));
  ASSERT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  ASSERT_EQ(operations().Count("mount", Key("a", "two")), 1u);
  ASSERT_TRUE(manager().RetryVolume(Key("a", "one")).ok());
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 2u);
  EXPECT_EQ(operations().Count("mount", Key("a", "two")), 1u);
}

TEST_F(RetryTest, APluginThatChangedEndsTheBackOffOfItsVolumesAlone) {
  StartAgent();
  operations().FailNext("mount", Key("a", "one"), kBroken, 1);
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  ASSERT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  manager().PluginChanged("v.io/other");
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 1u);
  const PodView pod = *manager().FindPod(PodUid("a"));
  manager().PluginChanged(pod.volumes.at(0).plugin_name);
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "one")), 2u);
}

TEST_F(RetryTest, OfWhatIsNotThereIsRefused) {
  StartAgent();
  Deliver(PodManifest("a", {"one: emptyDir: {}"}));
  for (const PodVolumeKey& key : {Key("a", "two"), Key("b", "one")}) {
    const Status status = manager().RetryVolume(key);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kNotFound);
  }
}

TEST(FailedMountTextTest, NamesWhatIsNotMountedAndWhatCannotBeTried) {
  WantedPod wanted;
  const auto volume = [](const char* name) {
    PodVolume manifest;
    manifest.name = name;
    return WantedVolume{.spec = VolumeSpec::FromVolume(manifest), .plugin_name = "p"};
  };
  wanted.volumes.emplace(SpecName("a"), volume("a"));
  ActualPod actual;
  EXPECT_FALSE(FailedMountText(wanted, actual).has_value());
  wanted.volumes.emplace(SpecName("b"), volume("b"));
  const Error passing = Error::NotApplied(Code::kUnavailable, "soon");
  wanted.volumes.at(SpecName("b")).problems.push_back({"WaitForClaim", passing});
  EXPECT_FALSE(FailedMountText(wanted, actual).has_value()) << "what passes by itself";
  wanted.volumes.at(SpecName("b")).problems.push_back({"FindPlugin", kBroken});
  EXPECT_EQ(FailedMountText(wanted, actual),
            "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], "
            "failed to process volumes=[b]: x");
}

TEST(TakeOverTest, AVolumeThatNoRecordKnowsIsToldApart) {
  ManualClock clock;
  ActualStateOfWorld actual(clock);
  MemoryRecordStore store;
  FoundAtStart found;
  PodVolumeRecord record;
  record.key = {PodUid("a"), SpecName("known")};
  record.state = VolumeState::kSetUp;
  found.volumes = {record};
  found.directories = {{PodUid("a"), "p", SpecName("known")}, {PodUid("a"), "p", SpecName("new")}};
  SimulatedScheduler scheduler(1, clock);
  Logger log(LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                        [](LogLevel, std::string_view) {}},
             clock);
  RecordWriter records(scheduler, store);
  FakeConsumerWatch watch;
  Consumers consumers({scheduler, records, watch, log}, BootId("b"), [](const PodUid&) {});
  const ReconstructResult result =
      Reconstruct(found, BootId("b"), false, KubeletPaths("/root"), actual, consumers);
  EXPECT_EQ(result.take_over.volumes, 2u);
  EXPECT_EQ(result.take_over.unreadable, 0u);
  const std::set<PodVolumeKey> expected = {{PodUid("a"), SpecName("new")}};
  EXPECT_EQ(result.take_over.without_record, expected);
}

}  // namespace
}  // namespace volumed
