// Several volumes of a pod as one operation: what it costs, and that each volume stands for itself.
#include "operation/group_operations.h"
#include "fakes/target_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "metrics/exported_families.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/storage_steps.h"
#include "plugins/empty_dir.h"
#include "plugins/host_path.h"
#include "plugins/projected.h"
#include "plugins/secret.h"
#include "unit/operation/load_records.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/stub_host.h"
#include "unit/operation/test_domains.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

const std::string kRoot = "/var/lib/volumed";
const std::string kPodDir = kRoot + "/pods/uid-1";
const std::string kVolumes = kPodDir + "/volumes/kubernetes.io~empty-dir";
const Error kRefused = Error::NotApplied(Code::kInvalidArgument, "refused");

// A kernel behind a worker: one request is one round trip, whatever it is made of.
class CountingKernel final : public Kernel {
 public:
  explicit CountingKernel(Kernel& real) : real_(real) {}
  bool TakesComposites() const override { return true; }
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    ++round_trips;
    last_keys = options.more_keys;
    if (died) return Error::MaybeApplied(Code::kUnavailable, "the worker died");
    return real_.Perform(request, options);
  }

  int round_trips = 0;
  std::vector<std::string> last_keys;
  bool died = false;

 private:
  Kernel& real_;
};

// A store of which each Write() is one transaction.
class CountingStore final : public RecordStore {
 public:
  explicit CountingStore(RecordStore& real) : real_(real) {}
  Status Put(const Record& record, Durability durability) override {
    ++writes;
    return real_.Put(record, durability);
  }
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    ++writes;
    return real_.Remove(kind, key, durability);
  }
  std::vector<Status> Write(const std::vector<RowChange>& changes, Durability durability) override {
    ++writes;
    return real_.Write(changes, durability);
  }
  Result<LoadedRecords> Load(const std::string& kind) override { return real_.Load(kind); }
  RecordStoreStats stats() const override { return real_.stats(); }

  int writes = 0;

 private:
  RecordStore& real_;
};

class GroupOperationsTest : public ::testing::Test {
 protected:
  GroupOperationsTest() {
    real_kernel_.AddDirectory(kRoot + "/pods", 0750);
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<EmptyDirPlugin>());
    plugins.push_back(std::make_unique<HostPathPlugin>());
    plugins.push_back(std::make_unique<SecretPlugin>());
    plugins.push_back(std::make_unique<ProjectedPlugin>());
    EXPECT_TRUE(plugins_.InitPlugins(std::move(plugins), host_).ok());
    auto pod = std::make_shared<Pod>();
    pod->metadata.name_space = "default";
    pod->metadata.name = "web";
    pod->metadata.uid = "uid-1";
    pod_ = pod;
  }

  MountRequest Request(const std::string& name, VolumeSource source) const {
    PodVolume volume;
    volume.name = name;
    volume.source = std::move(source);
    const VolumeSpec spec = VolumeSpec::FromVolume(volume);
    return {.target = TargetOf(paths_, **plugins_.FindPluginBySpec(spec), spec, *pod_),
            .spec = spec,
            .sub_paths = {},
            .nested_mount_points = {}};
  }
  MountRequest Disk(const std::string& name) const { return Request(name, EmptyDirVolumeSource{}); }
  MountRequest Memory(const std::string& name) const {
    EmptyDirVolumeSource source;
    source.medium = kMediumMemory;
    return Request(name, std::move(source));
  }
  MountRequest Host(const std::string& name, const std::string& path) const {
    return Request(name, HostPathVolumeSource{path, HostPathType::kDirectory});
  }
  // Who keeps the directory's content from being deleted; "" for nobody.
  std::string WhoKeeps(const std::string& path) {
    StorageGuard& storage = next_storages_.empty() ? storage_ : *next_storages_.back();
    PersistentVolume volume;
    volume.metadata.name = "pv";
    const auto taken =
        storage.TakeForReclaim(ReclaimStorageHolder(volume), {path}, "claim", {}, CallOptions());
    if (taken.ok()) (void)storage.Release(ReclaimStorageHolder(volume).id);
    return taken.ok() ? "" : taken.error().message();
  }
  MountRequest Secret(const std::string& name) const {
    SecretVolumeSource source;
    source.secret_name = "nobody-has-it";
    return Request(name, std::move(source));
  }

  static std::string Text(const std::optional<OperationFailure>& failure) {
    return failure ? failure->step + ": " + failure->error.ToString() : "done";
  }
  // What became of each volume, by its name.
  std::map<std::string, std::string> Mount(std::vector<MountRequest> requests) {
    std::map<std::string, std::string> outcomes;
    std::vector<std::string> names;
    std::vector<MountVolume> mounts;
    for (MountRequest& request : requests) {
      names.push_back(request.spec.name().str());
      mounts.emplace_back(std::move(request));
    }
    const std::vector<StartResult> started = operations_->StartEach<MountVolume>(
        std::move(mounts), [&](size_t number, const OperationOutcome<MountedVolume>& outcome) {
          outcomes[names[number]] = Text(outcome.failure);
          if (outcome.value) mounted_[names[number]] = *outcome.value;
        });
    for (size_t i = 0; i < names.size(); ++i) {
      if (started[i] == StartResult::kBackoff) outcomes[names[i]] = "backs off";
      if (started[i] == StartResult::kPending) outcomes[names[i]] = "pending";
    }
    scheduler_.RunFor(Duration::zero());
    return outcomes;
  }
  std::map<std::string, std::string> Unmount(const std::vector<std::string>& names) {
    std::map<std::string, std::string> outcomes;
    std::vector<UnmountVolume> unmounts;
    for (const std::string& name : names) {
      unmounts.emplace_back(UnmountRequest{PodUid("uid-1"), SpecName(name), "", "default/web"});
    }
    (void)operations_->StartEach<UnmountVolume>(
        std::move(unmounts), [&](size_t number, const OperationOutcome<Unit>& outcome) {
          outcomes[names[number]] = Text(outcome.failure);
        });
    scheduler_.RunFor(Duration::zero());
    return outcomes;
  }
  std::string State(const std::string& name) const {
    const auto record = operations_->FindRecord(Key("uid-1", name));
    if (!record) return "none";
    return std::string(VolumeStateName(record->state)) + (record->uncertain ? "*" : "");
  }

  SimulatedScheduler scheduler_{1};
  FakeKernel real_kernel_;
  CountingKernel kernel_{real_kernel_};
  MemoryRecordStore real_store_;
  CountingStore store_{real_store_};
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  KubeletPaths paths_{kRoot};
  StubHostParts stub_;
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, scheduler_.clock(), stub_,        stub_,
                   stub_,  stub_,   families_,          irreversible_};
  VolumePluginMgr plugins_;
  TestDomains domains_;
  DeviceRecordKeeper devices_{store_, scheduler_.clock(), logger_, observer_, BootId("boot")};
  StorageGuard storage_{kernel_, store_, scheduler_.clock(), logger_, BootId("boot")};
  std::vector<std::unique_ptr<StorageGuard>> next_storages_;  // of the agents after the first
  std::unique_ptr<NodeVolumeOperations> operations_ = std::make_unique<NodeVolumeOperations>(
      scheduler_, OperationParts{plugins_, host_, logger_, store_, devices_, storage_}, observer_,
      BootId("boot"), &domains_);
  PodPtr pod_;
  std::map<std::string, MountedVolume> mounted_;
};

// Thirty-nine round trips and eleven writes were made for a pod of five volumes.
TEST_F(GroupOperationsTest, TheVolumesOfAPodCostOneRoundTripAndTwoWrites) {
  const auto outcomes = Mount({Disk("a"), Memory("b"), Disk("c"), Memory("d"), Memory("e")});
  ASSERT_EQ(outcomes.size(), 5u);
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_TRUE(real_kernel_.IsMountPoint(kVolumes + "/b"));
  EXPECT_EQ(mounted_.at("a").host_path, kVolumes + "/a");
  EXPECT_EQ(observer_.finished.size(), 5u) << "each is counted and logged for itself";
  EXPECT_EQ(log_.Count("operation done"), 5);

  kernel_.round_trips = store_.writes = 0;
  for (const auto& [name, outcome] : Unmount({"a", "b", "c", "d", "e"})) {
    EXPECT_EQ(outcome, "done") << name;
    EXPECT_EQ(State(name), "none");
  }
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_FALSE(real_kernel_.Exists(kVolumes + "/a"));
}

TEST_F(GroupOperationsTest, WhatWasHandedOutIsTakenAwayWithTheOthers) {
  real_kernel_.AddDirectory("/srv/data");
  (void)Mount({Disk("a"), Host("h", "/srv/data")});
  ASSERT_EQ(State("h"), "SetUp");
  EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1"));
  kernel_.round_trips = store_.writes = 0;
  for (const auto& [name, outcome] : Unmount({"a", "h"})) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(store_.writes, 2);
  EXPECT_EQ(State("h"), "none");
  EXPECT_TRUE(real_kernel_.Exists("/srv/data"));
  EXPECT_EQ(WhoKeeps("/srv/data"), "");
}

// Whoever takes away what hangs waits for that alone.
TEST_F(GroupOperationsTest, WhatWasHandedOutIsTakenAwayAloneIfASubPathOfItMayHang) {
  real_kernel_.AddDirectory("/srv/data");
  (void)Mount({Disk("a"), Host("h", "/srv/data")});
  domains_.mounts = {{kPodDir + "/volume-subpaths/h/main/0", true}};
  kernel_.round_trips = 0;
  for (const auto& [name, outcome] : Unmount({"a", "h"})) EXPECT_EQ(outcome, "done") << name;
  EXPECT_GT(kernel_.round_trips, 1);
}

TEST_F(GroupOperationsTest, EachVolumeIsLockedForItself) {
  (void)Mount({Disk("a"), Memory("b")});
  EXPECT_EQ(kernel_.last_keys, (std::vector<std::string>{"uid-1/a", "uid-1/b"}));
}

TEST_F(GroupOperationsTest, OneWhoseSecretIsMissingLeavesTheOthersAlone) {
  const auto outcomes = Mount({Disk("a"), Secret("s"), Memory("b")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_EQ(outcomes.at("b"), "done");
  EXPECT_THAT(outcomes.at("s"), HasSubstr("SetUp"));
  EXPECT_THAT(outcomes.at("s"), HasSubstr("not found"));
  EXPECT_EQ(State("s"), "none") << "nothing was tried";
  EXPECT_THAT(stub_.events, ::testing::ElementsAre(HasSubstr("FailedMount")));
  // It comes later by itself, and has its own back-off.
  EXPECT_EQ(Mount({Secret("s"), Disk("c")}).at("s"), "backs off");
  EXPECT_EQ(State("c"), "SetUp");
}

TEST_F(GroupOperationsTest, OneWhoseEffectFailsLeavesTheOthersAlone) {
  real_kernel_.FailNextBelow("Mount", kVolumes + "/b", kRefused);
  const auto outcomes = Mount({Memory("a"), Memory("b"), Memory("c")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_EQ(outcomes.at("c"), "done");
  EXPECT_THAT(outcomes.at("b"), HasSubstr("SetUp"));
  EXPECT_THAT(outcomes.at("b"), HasSubstr("refused"));
  EXPECT_EQ(State("b"), "SettingUp*") << "its directory is there";
  EXPECT_EQ(State("a"), "SetUp");
}

TEST_F(GroupOperationsTest, NothingIsTriedWithoutThePodsDirectories) {
  real_kernel_.FailNext("MakeDirectory", kRefused);
  const auto outcomes = Mount({Memory("a"), Disk("b")});
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("MakePodDirectories")) << name;
    EXPECT_EQ(State(name), "none") << name;
  }
}

TEST_F(GroupOperationsTest, WithAWorkerThatDiesAllMayHaveBeenApplied) {
  kernel_.died = true;
  const auto outcomes = Mount({Memory("a"), Disk("b")});
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("the worker died")) << name;
    EXPECT_EQ(State(name), "SettingUp*") << name;
  }
}

TEST_F(GroupOperationsTest, ASubPathThatFailsIsItsVolumesFailureAlone) {
  MountRequest with_sub_path = Memory("a");
  with_sub_path.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  real_kernel_.FailNext("BindMount", kRefused);
  const auto outcomes = Mount({with_sub_path, Disk("b")});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("PrepareSubPaths"));
  EXPECT_THAT(outcomes.at("a"), HasSubstr("container main"));
  EXPECT_EQ(State("a"), "SettingUp*") << "the volume itself is there";
  EXPECT_EQ(outcomes.at("b"), "done");
}

TEST_F(GroupOperationsTest, OneWhoseIntentIsNotOnRecordIsNotTried) {
  real_store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"), 1);
  const auto outcomes = Mount({Memory("a"), Memory("b")});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("RecordIntent"));
  EXPECT_FALSE(real_kernel_.Exists(kVolumes + "/a"));
  EXPECT_EQ(outcomes.at("b"), "done");
}

TEST_F(GroupOperationsTest, AVolumeThatCannotBeTakenAwayStaysAlone) {
  (void)Mount({Memory("a"), Memory("b")});
  real_kernel_.FailNextBelow("Unmount", kVolumes + "/a", kRefused);
  const auto outcomes = Unmount({"a", "b"});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("TearDown"));
  EXPECT_EQ(State("a"), "TearingDown*");
  EXPECT_TRUE(real_kernel_.IsMountPoint(kVolumes + "/a"));
  EXPECT_EQ(outcomes.at("b"), "done");
  EXPECT_EQ(State("b"), "none");
}

TEST_F(GroupOperationsTest, OneWithAnOperationUnderWayIsLeftOut) {
  ASSERT_EQ(
      operations_->Start(MountVolume(Disk("a")), [](const OperationOutcome<MountedVolume>&) {}),
      StartResult::kStarted);
  const auto outcomes = Mount({Disk("a"), Disk("b")});
  EXPECT_EQ(outcomes.at("a"), "pending");
  EXPECT_EQ(outcomes.at("b"), "done");
}

// The operation layer was shaped like a pod: nobody else could be given a volume.
TEST_F(GroupOperationsTest, SomebodyWithoutAPodGetsAVolumeAtHisOwnPlace) {
  real_kernel_.AddDirectory("/caller", 0750);
  MountRequest request = Memory("a");
  request.target = {.key = Key("caller", "a"),
                    .place = {"/caller", "vol"},
                    .directory = {"/caller", "own"},
                    .display_name = "a caller",
                    .owner = {.fs_user = {}, .fs_group = 2000, .fs_group_change_policy = {}},
                    .pod = nullptr};
  EXPECT_EQ(Mount({request}).at("a"), "done");
  EXPECT_EQ(kernel_.round_trips, 1);
  EXPECT_EQ(mounted_.at("a").host_path, "/caller/vol");
  EXPECT_TRUE(real_kernel_.IsMountPoint("/caller/vol"));
  EXPECT_TRUE(real_kernel_.Exists("/caller/own/plugins/kubernetes.io~empty-dir/a/ready"));
  EXPECT_FALSE(real_kernel_.Exists(kRoot + "/pods/caller"));
  EXPECT_EQ(operations_->FindRecord(Key("caller", "a"))->state, VolumeState::kSetUp);
}

TEST_F(GroupOperationsTest, WhatIsMadeFromAPodIsRefusedToSomebodyWithoutOne) {
  MountRequest request = Secret("a");
  request.target.pod = nullptr;
  EXPECT_THAT(Mount({request}).at("a"), HasSubstr("is a place without one"));
  EXPECT_EQ(State("a"), "none");
  EXPECT_EQ(kernel_.round_trips, 0);
}

// One hung filesystem over a volume's place kept all volumes of its pod from being ready.
TEST_F(GroupOperationsTest, OneUnderSomebodysFilesystemIsMadeAlone) {
  domains_.mounts = {{kVolumes + "/b", true}};
  const auto outcomes = Mount({Disk("a"), Disk("b"), Disk("c")});
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_GT(kernel_.round_trips, 1);
  kernel_.round_trips = 0;
  domains_.mounts = {{kPodDir + "/volumes/kubernetes.io~nfs/far", true},
                     {kPodDir + "/volume-subpaths/far/main/0", true}};
  (void)Unmount({"a", "c"});
  EXPECT_EQ(kernel_.round_trips, 1) << "another volume's mounts concern nobody else";
}

// The volumes below counted as torn down, and stayed for ever once it was unmounted.
TEST_F(GroupOperationsTest, AVolumeUnderAMountIsNotTakenForGone) {
  (void)Mount({Memory("a"), Memory("b")});
  real_kernel_.AddMount("tmpfs", "theirs", kPodDir + "/volumes");
  domains_.mounts = {{kPodDir + "/volumes", false}};
  const auto outcomes = Unmount({"a", "b"});
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_THAT(outcome, HasSubstr("is mounted over " + kPodDir + "/volumes")) << name;
    EXPECT_EQ(State(name), "SetUp") << name;
  }
}

// Somebody's tmpfs was unmounted with the volume, and what was in it was lost.
TEST_F(GroupOperationsTest, SomebodysTmpfsOverAPlainVolumeIsNotUnmountedWithIt) {
  (void)Mount({Disk("a"), Memory("b")});
  real_kernel_.AddMount("tmpfs", "theirs", kVolumes + "/a");
  auto outcomes = Unmount({"a", "b"});
  EXPECT_THAT(outcomes.at("a"), HasSubstr("something is mounted over " + kVolumes + "/a"));
  EXPECT_TRUE(real_kernel_.IsMountPoint(kVolumes + "/a"));
  EXPECT_EQ(outcomes.at("b"), "done");
  ASSERT_TRUE(real_kernel_.Call(volumed::Unmount{.target = {kVolumes, "a"}}, CallOptions()).ok());
  scheduler_.RunFor(std::chrono::minutes(5));
  EXPECT_EQ(Unmount({"a"}).at("a"), "done");
  EXPECT_FALSE(real_kernel_.Exists(kVolumes + "/a"));
}

// A pod was given somebody's files as its emptyDir, and its fsGroup changed their owner.
TEST_F(GroupOperationsTest, SomebodysFilesystemIsNotHandedOutAsAnEmptyDir) {
  real_kernel_.AddMount("ext4", "/dev/theirs", kVolumes + "/b");
  const auto outcomes = Mount({Disk("a"), Disk("b")});
  EXPECT_EQ(outcomes.at("a"), "done");
  EXPECT_THAT(outcomes.at("b"), HasSubstr("is mounted over " + kVolumes + "/b"));
  EXPECT_EQ(State("b"), "none");
}

// A thousand pods cost 2.5 s of processor time at each restart, in which nothing was to be done.
class VolumesInPlaceTest : public GroupOperationsTest {
 protected:
  VolumesInPlaceTest() {
    host_.content_key = std::make_shared<ContentKey>(volumed::Secret<std::string>(kKey));
    SetPassword("old");
  }
  void SetPassword(const std::string& password) {
    auto secret = std::make_shared<SecretObject>();
    secret->data["password"] = volumed::Secret<std::string>(password);
    stub_.secrets["s"] = secret;
  }
  MountRequest Password() const {
    SecretVolumeSource source;
    source.secret_name = "s";
    return Request("password", std::move(source));
  }
  MountRequest Token() const {
    ProjectedVolumeSource source;
    ServiceAccountTokenProjection token;
    token.path = "token";
    source.sources.push_back(token);
    return Request("token", std::move(source));
  }
  // The next agent finds each as `found`.
  std::map<std::string, std::string> Restart(std::vector<MountRequest> requests,
                                             const std::map<std::string, std::string>& found,
                                             const std::string& boot = "boot") {
    StorageGuard& storage = *next_storages_.emplace_back(
        std::make_unique<StorageGuard>(kernel_, store_, scheduler_.clock(), logger_, BootId(boot)));
    operations_ = std::make_unique<NodeVolumeOperations>(
        scheduler_, OperationParts{plugins_, host_, logger_, store_, devices_, storage}, observer_,
        BootId(boot), &domains_);
    operations_->Restore(LoadPodVolumeRecords(real_store_), {});
    kernel_.round_trips = store_.writes = stub_.tokens_issued = 0;
    for (MountRequest& request : requests) {
      request.reconstructed = true;
      request.is_remount = true;
      const auto as = found.find(request.spec.name().str());
      if (as != found.end()) request.found_as = as->second;
    }
    mounted_.clear();
    return Mount(std::move(requests));
  }

  static inline const std::string kKey = std::string(32, 'k');
};

TEST_F(VolumesInPlaceTest, WhatIsAsItIsWantedCostsARestartNothing) {
  MountRequest disk = Disk("a");
  disk.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  (void)Mount({disk, Memory("b"), Password(), Token()});
  const MountedVolume before = mounted_.at("token");
  const auto outcomes =
      Restart({disk, Memory("b"), Password(), Token()},
              {{"a", ""}, {"b", "tmpfs"}, {"password", "tmpfs"}, {"token", "tmpfs"}});
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 0);
  EXPECT_EQ(store_.writes, 0);
  EXPECT_EQ(stub_.tokens_issued, 0);
  EXPECT_EQ(mounted_.at("token").freshness, before.freshness) << "it is renewed when it was to be";
  ASSERT_EQ(mounted_.at("a").sub_paths.size(), 1u);
  EXPECT_EQ(mounted_.at("password").host_path,
            before.host_path.substr(0, kPodDir.size()) + "/volumes/kubernetes.io~secret/password");
}

// Each hostPath volume of a node was set up again at each start.
TEST_F(VolumesInPlaceTest, WhatIsHandedOutAsItIsCostsARestartNothing) {
  real_kernel_.AddDirectory("/srv/data");
  const MountRequest host = Host("h", "/srv/data");
  (void)Mount({Disk("a"), host});
  EXPECT_EQ(Restart({Disk("a"), host}, {{"a", ""}, {"h", ""}}).at("h"), "done");
  EXPECT_EQ(kernel_.round_trips, 0);
  EXPECT_EQ(store_.writes, 0);
  EXPECT_EQ(mounted_.at("h").host_path, "/srv/data");
  EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1"))
      << "nobody has looked at it, and it is not free";
  for (const auto& [name, outcome] : Unmount({"a", "h"})) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(WhoKeeps("/srv/data"), "");
}

TEST_F(VolumesInPlaceTest, WhatCannotBeSaidToBeHandedOutIsSetUpAgain) {
  real_kernel_.AddDirectory("/srv/data");
  real_kernel_.AddDirectory("/srv/other");
  const MountRequest host = Host("h", "/srv/data");
  MountRequest with_sub_path = host;
  with_sub_path.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  const std::map<std::string, std::string> there = {{"h", ""}};
  // Of a start after one that finds the volume as it was, which costs nothing.
  const auto round_trips = [&](const MountRequest& wanted,
                               const std::map<std::string, std::string>& found,
                               const std::string& boot = "boot") {
    (void)Restart({host}, {});  // whatever the case before has left
    (void)Restart({host}, there);
    EXPECT_EQ(kernel_.round_trips, 0) << "nothing is the matter yet";
    (void)Restart({wanted}, found, boot);
    return kernel_.round_trips;
  };
  (void)Mount({host});
  EXPECT_GT(round_trips(host, {}), 0) << "the records are in doubt";
  EXPECT_GT(round_trips(Host("h", "/srv/other"), there), 0) << "its row is of another path";
  EXPECT_GT(round_trips(host, there, "another boot"), 0) << "a reboot is in between";
  EXPECT_GT(round_trips(host, {{"h", "ext4"}}), 0) << "something is mounted at its place";
  EXPECT_GT(round_trips(with_sub_path, there), 0) << "a sub-path is bound from what is there now";
}

TEST_F(VolumesInPlaceTest, WhatAnOlderProgramHandedOutIsLookedAtOnce) {
  real_kernel_.AddDirectory("/srv/data");
  const MountRequest host = Host("h", "/srv/data");
  (void)Mount({host});
  PodVolumeRecord older = LoadPodVolumeRecords(real_store_).at(0);
  EXPECT_FALSE(older.storage.empty());
  older.storage = {};
  ASSERT_TRUE(real_store_.Put(EncodeRecord(older), kPodVolumeRecordDurability).ok());
  (void)Restart({host}, {{"h", ""}});
  EXPECT_GT(kernel_.round_trips, 0);
  EXPECT_FALSE(LoadPodVolumeRecords(real_store_).at(0).storage.empty());
  (void)Restart({host}, {{"h", ""}});
  EXPECT_EQ(kernel_.round_trips, 0);
}

// What the pod was given before was forgotten by the set-up that a restart made.
TEST_F(VolumesInPlaceTest, ASetUpAfterARestartKeepsWhatThePodWasGivenBefore) {
  real_kernel_.AddDirectory("/srv/data/x");
  real_kernel_.AddDirectory("/srv/other/x");
  real_kernel_.AddSymlink("/link", "/srv/data");
  MountRequest host = Host("h", "/link");
  host.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  EXPECT_EQ(Mount({host}).at("h"), "done");
  real_kernel_.Remove("/link");
  real_kernel_.AddSymlink("/link", "/srv/other");
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(Restart({host}, {{"h", ""}}).at("h"), "done");
    EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1")) << restart;
    EXPECT_THAT(WhoKeeps("/srv/other"), HasSubstr("volume h of pod uid-1")) << restart;
  }
  EXPECT_EQ(Unmount({"h"}).at("h"), "done");
  EXPECT_EQ(WhoKeeps("/srv/data"), "");
}

TEST_F(VolumesInPlaceTest, ASecretThatHasChangedIsPublished) {
  (void)Mount({Password(), Memory("b")});
  SetPassword("new");
  (void)Restart({Password(), Memory("b")}, {{"password", "tmpfs"}, {"b", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1);
  const auto published = real_kernel_.Call(
      ReadFile{.path = {kPodDir, "volumes/kubernetes.io~secret/password/..data/password",
                        Resolve::kBeneath},
               .max_bytes = 100},
      CallOptions());
  ASSERT_TRUE(published.ok()) << published.error().ToString();
  EXPECT_EQ(published->bytes, "new");
}

// A Ready pod was Pending after a restart, until a Secret that had been deleted was back.
TEST_F(VolumesInPlaceTest, WhatIsInPlaceWithoutItsSecretIsInPlaceStill) {
  MountRequest password = Password();
  password.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "password"});
  (void)Mount({password});
  const std::string before = mounted_.at("password").sub_paths.at(0).host_path;
  stub_.secrets.clear();
  EXPECT_EQ(Restart({password}, {{"password", "tmpfs"}}).at("password"), "done");
  EXPECT_TRUE(mounted_.at("password").content_unknown) << "it is to be tried again";
  EXPECT_EQ(mounted_.at("password").sub_paths.at(0).host_path, before);
  EXPECT_EQ(kernel_.round_trips, 0);
  EXPECT_EQ(store_.writes, 0);
  EXPECT_THAT(Restart({Password()}, {{"password", ""}}).at("password"), HasSubstr("not found"))
      << "its tmpfs is gone";
}

TEST_F(VolumesInPlaceTest, WhatWasNotFoundAsItWasIsSetUpAgain) {
  (void)Mount({Memory("a"), Memory("b"), Disk("c")});
  (void)Restart({Memory("a")}, {});
  EXPECT_EQ(kernel_.round_trips, 1) << "something of it is missing";
  (void)Restart({Memory("b")}, {{"b", ""}});
  EXPECT_EQ(kernel_.round_trips, 1) << "its tmpfs was unmounted";
  (void)Restart({Disk("c")}, {{"c", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1) << "something is mounted over it";
}

TEST_F(VolumesInPlaceTest, AnotherKeyAndAnotherBootKnowNothing) {
  (void)Mount({Memory("a")});
  (void)Restart({Memory("a")}, {{"a", "tmpfs"}}, "another boot");
  EXPECT_EQ(kernel_.round_trips, 1);
  host_.content_key =
      std::make_shared<ContentKey>(volumed::Secret<std::string>(std::string(32, 'x')));
  (void)Restart({Memory("a")}, {{"a", "tmpfs"}}, "another boot");
  EXPECT_EQ(kernel_.round_trips, 1);
  host_.content_key = nullptr;
  (void)Restart({Memory("a")}, {{"a", "tmpfs"}}, "another boot");
  EXPECT_EQ(kernel_.round_trips, 1);
}

TEST_F(VolumesInPlaceTest, ATokenThatIsDueIsRenewed) {
  (void)Mount({Token()});
  scheduler_.RunFor(std::chrono::milliseconds(1));
  PodVolumeRecord row = LoadPodVolumeRecords(real_store_).front();
  row.published.freshness = Freshness{0, scheduler_.clock().WallUnixMillis()};
  ASSERT_TRUE(real_store_.Put(EncodeRecord(row), kPodVolumeRecordDurability).ok());
  (void)Restart({Token()}, {{"token", "tmpfs"}});
  EXPECT_EQ(stub_.tokens_issued, 1);
  EXPECT_EQ(kernel_.round_trips, 1);
}

TEST_F(VolumesInPlaceTest, AnotherSubPathIsNotTakenForTheOneThatIsThere) {
  MountRequest request = Memory("a");
  request.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  (void)Mount({request});
  request.sub_paths.front().sub_path = "y";
  (void)Restart({request}, {{"a", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1);
}

// On a disk that fails, what lies on a tmpfs was not kept up to date any more.
TEST_F(VolumesInPlaceTest, ARefreshDoesWithoutItsRecord) {
  (void)Mount({Password()});
  SetPassword("new");
  MountRequest refresh = Password();
  refresh.is_remount = true;
  real_store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"), 2);
  EXPECT_EQ(Mount({refresh}).at("password"), "done");
  EXPECT_EQ(State("password"), "SetUp");
  (void)Restart({Password()}, {{"password", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1) << "the row tells of the old one";
}

// The row of a refresh that was under way tells of content that may not be there.
TEST_F(VolumesInPlaceTest, ARefreshThatWasBegunIsMadeAgain) {
  (void)Mount({Password()});
  SetPassword("new");
  kernel_.died = true;
  MountRequest refresh = Password();
  refresh.is_remount = true;
  (void)Mount({refresh});
  kernel_.died = false;
  SetPassword("old");
  (void)Restart({Password()}, {{"password", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1);
}

TEST(IsCoveredTest, TellsWhatConcernsAVolume) {
  const KubeletPaths paths{kRoot};
  const SafePath place =
      paths.GetPodVolumeDir(PodUid("uid-1"), "kubernetes.io/empty-dir", SpecName("a"));
  const auto covered = [&](const std::string& mount, bool may_hang = true) {
    return IsCovered(paths, {Key("uid-1", "a"), place, paths.GetPodDir(PodUid("uid-1"))},
                     {{mount, may_hang}});
  };
  EXPECT_TRUE(covered(kPodDir + "/volumes", /*may_hang=*/false)) << "a tmpfs covers it as well";
  EXPECT_FALSE(covered(place.Display(), /*may_hang=*/false)) << "its own tmpfs";
  EXPECT_FALSE(covered(kRoot, true)) << "the agent's root is a filesystem of its own";
  for (const char* mount :
       {"", "/volumes", "/volumes/kubernetes.io~empty-dir", "/volumes/kubernetes.io~empty-dir/a",
        "/plugins", "/volume-subpaths", "/volumes/kubernetes.io~empty-dir/a/deep",
        "/volume-subpaths/a/main/0", "/plugins/kubernetes.io~empty-dir/a"}) {
    EXPECT_TRUE(covered(kPodDir + mount)) << mount;
  }
  for (const char* mount : {"/volumes/kubernetes.io~empty-dir/ab", "/volume-subpaths/ab/main/0",
                            "/volumes/kubernetes.io~nfs/far"}) {
    EXPECT_FALSE(covered(kPodDir + mount)) << mount;
  }
}

}  // namespace
}  // namespace volumed
