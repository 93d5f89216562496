// PoolPlugin over FakeKernel: a claim becomes a volume, which pods have as a directory or a device,
// and which goes again.
#include "pool/pool_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "mounter/mount_refs.h"
#include "unit/pool/pool_plugin_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- making -------------------------------------------------------------------------------------

TEST_F(PoolPluginTest, APlannedVolumeIsTheOneThatIsMade) {
  VolumeOptions options = ClaimOptions();
  options.reclaim_policy = ReclaimPolicy::kRetain;
  options.mount_options = {"noatime"};
  options.parameters = {{"csi.storage.k8s.io/fstype", "ext4"}};
  const ClaimedVolume planned = Must(agent_.Plan(options));
  EXPECT_THAT(node_.Rows(), IsEmpty());
  const PersistentVolume made = Must(agent_.Make(planned));
  EXPECT_EQ(made.spec, planned.volume.spec);
  EXPECT_EQ(made.metadata.name, "pvc-1");
  EXPECT_EQ(made.spec.reclaim_policy, ReclaimPolicy::kRetain);
  EXPECT_THAT(made.spec.mount_options, ElementsAre("noatime"));
  EXPECT_EQ(made.spec.capacity.Value(), 16 * kMiB);
  const auto& source = std::get<CsiPersistentVolumeSource>(made.spec.source);
  EXPECT_EQ(source.driver, kDriver);
  EXPECT_EQ(source.fs_type, "ext4");
  ASSERT_THAT(node_.Rows(), SizeIs(1));
  EXPECT_EQ(node_.Rows()[0].id, source.volume_handle);
  EXPECT_EQ(node_.Rows()[0].name, "pvc-1");
  ASSERT_TRUE(made.spec.node_affinity.has_value());
  const NodeRequirement& here =
      made.spec.node_affinity->required.terms.at(0).match_expressions.at(0);
  EXPECT_EQ(here.key, "topology.pool.volumed.io/node");
  EXPECT_THAT(here.values, ElementsAre("node-1"));
}

TEST_F(PoolPluginTest, ANameThatIsMadeTwiceIsOneVolume) {
  const ClaimedVolume planned = Must(agent_.Plan(ClaimOptions()));
  const PersistentVolume first = Must(agent_.Make(planned));
  const PersistentVolume second = Must(agent_.Make(planned));
  EXPECT_EQ(first.spec, second.spec);
  EXPECT_THAT(node_.Rows(), SizeIs(1));
  EXPECT_THAT(node_.Directories(), SizeIs(1));
}

TEST_F(PoolPluginTest, OfANameThatIsMadeTwiceAtOnceTheSecondIsToldToComeAgain) {
  const ClaimedVolume planned = Must(agent_.Plan(ClaimOptions()));
  std::vector<Error> refused;
  bool inside = false;
  node_.kernel.SetCallHook([&](const AnyRequest& request) {
    if (inside || !std::holds_alternative<SetFileSize>(request)) return;
    inside = true;
    const Result<PersistentVolume> second = agent_.Make(planned);
    if (!second.ok()) refused.push_back(second.error());
  });
  EXPECT_TRUE(agent_.Make(planned).ok());
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].code(), Code::kAborted);
  EXPECT_FALSE(refused[0].maybe_applied());
  EXPECT_THAT(node_.Rows(), SizeIs(1));
}

TEST_F(PoolPluginTest, TwoClaimsAreTwoVolumes) {
  const ClaimedVolume one = Claim();
  const ClaimedVolume other = Claim(ClaimOptions("pvc-2"));
  EXPECT_NE(one.id(), other.id());
  EXPECT_THAT(node_.Rows(), SizeIs(2));
}

TEST_F(PoolPluginTest, AClaimThatAsksForWhatAPoolDoesNotHaveIsRefused) {
  const auto refuses = [this](const std::function<void(VolumeOptions&)>& change,
                              const std::string& why) {
    VolumeOptions options = ClaimOptions();
    change(options);
    ExpectRefused(agent_.Plan(options), Code::kInvalidArgument, why);
  };
  using Options = VolumeOptions;
  refuses([](Options& o) { o.claim.spec.selector.emplace(); }, "Selector is not supported");
  refuses([](Options& o) { o.claim.spec.volume_attributes_class_name = "gold"; }, "gold");
  refuses([](Options& o) { o.claim.spec.data_source_json = "{}"; }, "data source");
  refuses([](Options& o) { o.claim.spec.data_source_ref_json = "{}"; }, "data source");
  refuses([](Options& o) { o.claim.spec.access_modes = {AccessMode::kReadWriteMany}; },
          "on one node alone");
  refuses([](Options& o) { o.parameters = {{"colour", "red"}}; }, "colour");
  refuses([](Options& o) { o.parameters = {{"csi.storage.k8s.io/fstype", "ntfs"}}; }, "fstype");
  VolumeOptions elsewhere = ClaimOptions();
  elsewhere.parameters = {{"pool", "other"}};
  ExpectRefused(agent_.Plan(elsewhere), Code::kNotFound, "no pool");
  EXPECT_THAT(node_.Rows(), IsEmpty());
}

// It was made, and no pod of its node could have it: its affinity names a label.
TEST_F(PoolPluginTest, NoVolumeIsMadeOnANodeWithoutTheLabelOfItsPools) {
  PoolPluginWorld node;
  node.has_label = false;
  PoolPluginAgent agent(node);
  Expect(agent.Recover());
  ExpectRefused(agent.Plan(ClaimOptions()), Code::kFailedPrecondition,
                "does not have the label topology.pool.volumed.io/node=node-1");
}

TEST_F(PoolPluginTest, AClaimWithALimitGetsNoMore) {
  VolumeOptions options = ClaimOptions();
  options.claim.spec.storage.request = Quantity::FromBytes(8 * kMiB);
  options.claim.spec.storage.limit = Quantity::FromBytes(12 * kMiB);
  ExpectRefused(agent_.Plan(options), Code::kOutOfRange, "for a filesystem of type ext4");
}

TEST_F(PoolPluginTest, AVolumeThatSomebodyHasByNowIsNotGivenToTheClaim) {
  const ClaimedVolume planned = Must(agent_.Plan(ClaimOptions()));
  VolumeOptions options;
  options.pv_name = "pvc-1";
  options.plan = VolumePlan{planned.volume, planned.plan};
  std::string asked;
  options.may_be_new = [&asked](const PersistentVolume& made) -> Status {
    asked = made.metadata.name;
    return Error::NotApplied(Code::kFailedPrecondition, "persistent volume other has it");
  };
  const auto made = Must(agent_.plugin.NewProvisioner(options))->Provision(nullptr, {}, {});
  ExpectRefused(made, Code::kFailedPrecondition, "persistent volume other has it");
  EXPECT_TRUE(made.error().maybe_applied());
  EXPECT_EQ(asked, "pvc-1");
}

TEST_F(PoolPluginTest, APlanThatCannotBeReadMakesNothing) {
  ClaimedVolume planned = Must(agent_.Plan(ClaimOptions()));
  for (const char* text : {"{", "[]", "{\"parameters\":{\"pool\":1},\"requiredBytes\":1}", "{}",
                           "{\"parameters\":{},\"requiredBytes\":\"1\",\"limitBytes\":0}"}) {
    planned.plan = text;
    ExpectRefused(agent_.Make(planned), Code::kDataLoss, "cannot be read");
  }
  EXPECT_THAT(node_.Rows(), IsEmpty());
}

TEST_F(PoolPluginTest, WhatWasMadeForAClaimThatIsGoneIsTakenBackUnlessItWasUsed) {
  const ClaimedVolume unused = Claim();
  Expect(agent_.Undo(unused));
  Expect(agent_.Undo(unused));
  EXPECT_THAT(node_.Directories(), IsEmpty());
  const ClaimedVolume used = Claim(ClaimOptions("pvc-2"));
  Expect(agent_.MountDevice(used.Spec()));
  Expect(agent_.UnmountDevice(used.id()));
  ExpectRefused(agent_.Undo(used), Code::kFailedPrecondition, "was used");
  EXPECT_THAT(node_.Directories(), ElementsAre(used.id()));
}

// ---- which volumes are its ----------------------------------------------------------------------

TEST_F(PoolPluginTest, OnlyTheVolumesOfItsDriverAreIts) {
  const ClaimedVolume claimed = Claim();
  EXPECT_TRUE(agent_.plugin.CanSupport(claimed.Spec()));
  EXPECT_EQ(Must(agent_.plugin.GetVolumeName(claimed.Spec())), claimed.id());
  EXPECT_EQ(agent_.plugin.AsProvisionerOf(kDriver), &agent_.plugin);
  EXPECT_EQ(agent_.plugin.AsProvisionerOf("other.example.com"), nullptr);
  ClaimedVolume other = claimed;
  std::get<CsiPersistentVolumeSource>(other.volume.spec.source).driver = "other.example.com";
  EXPECT_FALSE(agent_.plugin.CanSupport(other.Spec()));
  const PoolPluginAgent without_pools(node_, "");
  EXPECT_FALSE(without_pools.plugin.CanSupport(claimed.Spec()));
}

TEST_F(PoolPluginTest, AHandleThatIsNoIdNeverBecomesAPath) {
  ClaimedVolume claimed = Claim();
  std::string& handle =
      std::get<CsiPersistentVolumeSource>(claimed.volume.spec.source).volume_handle;
  const std::string cut = "s" + claimed.id().substr(1);
  for (const std::string& wrong : {std::string("../../../etc"), std::string(), claimed.id() + "/..",
                                   std::string("v-0"), cut, std::string("a\nb")}) {
    handle = wrong;
    ExpectRefused(agent_.plugin.GetVolumeName(claimed.Spec()), Code::kInvalidArgument,
                  "is no id of a pool's volume");
    ExpectRefused(agent_.MountDevice(claimed.Spec()), Code::kInvalidArgument, "is no id");
    EXPECT_EQ(agent_.plugin.FaultDomain(claimed.Spec()), "");
  }
  EXPECT_FALSE(node_.kernel.Exists("/r/plugins/volumed.io"));
}

TEST_F(PoolPluginTest, AnInlineVolumeIsRefusedWithWhatIsMeant) {
  PodVolume inline_volume{"scratch", CsiVolumeSource{}};
  std::get<CsiVolumeSource>(inline_volume.source).driver = kDriver;
  const VolumeSpec spec = VolumeSpec::FromVolume(inline_volume);
  EXPECT_TRUE(agent_.plugin.CanSupport(spec));
  EXPECT_FALSE(Must(agent_.plugin.CanDeviceMount(spec)));
  ExpectRefused(agent_.SetUp(spec), Code::kInvalidArgument, "generic ephemeral volume");
}

TEST_F(PoolPluginTest, AVolumeOfAnotherNodesPoolIsNotTakenForOneThatIsGone) {
  ClaimedVolume claimed = Claim();
  std::get<CsiPersistentVolumeSource>(claimed.volume.spec.source).volume_handle =
      "v-00000000-0123456789abcdef01234567";
  for (const Status& refused : {agent_.MountDevice(claimed.Spec()), agent_.Delete(claimed)}) {
    ExpectRefused(refused, Code::kFailedPrecondition, "of a pool that this node does not have");
  }
}

// ---- as a directory -----------------------------------------------------------------------------

TEST_F(PoolPluginTest, AVolumeIsFormattedWithBlocksOf4096MountedAndBound) {
  std::vector<std::string> options;
  node_.kernel.SetCallHook([&options](const AnyRequest& request) {
    if (const auto* format = std::get_if<FormatDevice>(&request)) options = format->options;
  });
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  EXPECT_THAT(options, ElementsAre("-b", "4096", "-O", "metadata_csum_seed"));
  EXPECT_TRUE(node_.kernel.IsMountPoint(PoolPluginAgent::DevicePlace(claimed.id())));
  ASSERT_THAT(node_.Loops(), SizeIs(1));
  EXPECT_EQ(node_.Loops()[0].block_size, 4096U);
  Expect(agent_.SetUp(claimed.Spec()));
  EXPECT_TRUE(node_.kernel.IsMountPoint(PoolPluginAgent::PodPlace(claimed)));
  const PoolVolumeRecord row = node_.Rows().at(0);
  EXPECT_TRUE(row.used);
  EXPECT_EQ(row.filesystem.type, "ext4");
  EXPECT_EQ(row.filesystem.uuid, Device().identity.uuid);

  Expect(agent_.TearDown(claimed.Spec()));
  Expect(agent_.UnmountDevice(claimed.id()));
  Expect(agent_.UnmountDevice(claimed.id()));
  EXPECT_FALSE(node_.kernel.Exists(PoolPluginAgent::DevicePlace(claimed.id())));
  EXPECT_THAT(node_.Loops(), IsEmpty());
}

// What its superblock said of an error was done: the first inconsistency would have ended the node.
TEST_F(PoolPluginTest, AnExtWhoseSuperblockSaysPanicWasMountedSo) {
  std::vector<std::string> options;
  node_.kernel.SetCallHook([&options](const AnyRequest& request) {
    if (const auto* mount = std::get_if<Mount>(&request)) options = mount->options;
  });
  ClaimedVolume claimed = Claim();
  const auto mounted_with = [&](const std::vector<std::string>& wanted) {
    claimed.volume.spec.mount_options = wanted;
    Expect(agent_.MountDevice(claimed.Spec()));
    Expect(agent_.UnmountDevice(claimed.id()));
    return options;
  };
  EXPECT_THAT(mounted_with({}), ElementsAre("errors=remount-ro", "defaults"));
  EXPECT_THAT(mounted_with({"noatime"}), ElementsAre("errors=remount-ro", "noatime", "defaults"));
  EXPECT_THAT(mounted_with({"errors=continue"}), ElementsAre("errors=continue", "defaults"));
  EXPECT_THAT(mounted_with({"noatime,errors=continue"}),
              ElementsAre("noatime,errors=continue", "defaults"));
}

// A CO was refused it with its mount_flags, and a class or a PersistentVolume was not.
TEST_F(PoolPluginTest, AnOptionThatEndsTheNodeWasTakenOfAClass) {
  ClaimedVolume claimed = Claim();
  for (const std::string option : {"errors=panic", "noatime,errors=panic", "fatal_errors=panic"}) {
    claimed.volume.spec.mount_options = {option};
    const Status refused = agent_.MountDevice(claimed.Spec());
    ASSERT_FALSE(refused.ok()) << option;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument) << refused.error().ToString();
    EXPECT_FALSE(refused.error().maybe_applied());
  }
  EXPECT_THAT(node_.Loops(), IsEmpty());
}

TEST_F(PoolPluginTest, AnXfsIsToldNothingOfErrors) {
  std::vector<std::string> options;
  node_.kernel.SetCallHook([&options](const AnyRequest& request) {
    if (const auto* mount = std::get_if<Mount>(&request)) options = mount->options;
  });
  VolumeOptions wish = ClaimOptions();
  wish.claim.spec.storage.request = Quantity::FromBytes(300 * kMiB);
  wish.parameters = {{"csi.storage.k8s.io/fstype", "xfs"}};
  Expect(agent_.MountDevice(Claim(wish).Spec()));
  EXPECT_THAT(options, ElementsAre("defaults"));
}

TEST_F(PoolPluginTest, TheFilesystemIsTheClasssAndXfsIsToldNothing) {
  std::vector<std::string> formats;
  node_.kernel.SetCallHook([&formats](const AnyRequest& request) {
    const auto* format = std::get_if<FormatDevice>(&request);
    if (format == nullptr) return;
    formats.push_back(format->fs_type);
    EXPECT_THAT(format->options, IsEmpty());
  });
  VolumeOptions options = ClaimOptions();
  options.claim.spec.storage.request = Quantity::FromBytes(300 * kMiB);
  options.parameters = {{"csi.storage.k8s.io/fstype", "xfs"}};
  const ClaimedVolume claimed = Claim(options);
  Expect(agent_.MountDevice(claimed.Spec()));
  EXPECT_THAT(formats, ElementsAre("xfs"));
}

TEST_F(PoolPluginTest, WhatWasWrittenIsThereAgain) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  Expect(agent_.SetUp(claimed.Spec()));
  node_.kernel.AddFile(PoolPluginAgent::PodPlace(claimed) + "/note", "kept");
  Expect(agent_.TearDown(claimed.Spec()));
  Expect(agent_.UnmountDevice(claimed.id()));
  Expect(agent_.MountDevice(claimed.Spec()));
  EXPECT_EQ(node_.kernel.Find(PoolPluginAgent::DevicePlace(claimed.id()) + "/note").content,
            "kept");
  EXPECT_EQ(Device().formats, 1);
}

TEST_F(PoolPluginTest, APodThatOnlyReadsGetsAReadOnlyBind) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  Expect(agent_.SetUp(claimed.Spec(/*read_only=*/true)));
  const auto bind = Must(FindMountAt(node_.kernel, PoolPluginAgent::PodPlace(claimed), {}));
  ASSERT_TRUE(bind.has_value());
  EXPECT_TRUE(bind->read_only());
}

TEST_F(PoolPluginTest, ForPodsThatOnlyReadNothingIsFormattedAndNothingStaysOpen) {
  const ClaimedVolume claimed = Claim();
  ExpectRefused(agent_.MountDevice(claimed.Spec(/*read_only=*/true)), Code::kFailedPrecondition,
                "no pod is to write to it");
  EXPECT_THAT(node_.Loops(), IsEmpty());
  EXPECT_FALSE(node_.kernel.Exists(PoolPluginAgent::DevicePlace(claimed.id())));
}

TEST_F(PoolPluginTest, AVolumeWhoseFilesystemIsGoneIsNeverFormattedAgain) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  const std::string device = node_.Loops().at(0).path;
  node_.kernel.UnmountBelow(PoolPluginAgent::DevicePlace(claimed.id()));
  node_.kernel.ChangeDevice(device, [](FakeDevice& blank) {
    blank.fs_type.clear();
    blank.usage.clear();
    blank.identity.uuid.clear();
  });
  node_.intents = {};  // not even the record of the format is left
  ExpectRefused(agent_.MountDevice(claimed.Spec()), Code::kFailedPrecondition, "none with a UUID");
}

TEST_F(PoolPluginTest, AnotherFilesystemThanTheOneOnRecordIsNotMounted) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  const std::string device = node_.Loops().at(0).path;
  node_.kernel.UnmountBelow(PoolPluginAgent::DevicePlace(claimed.id()));
  node_.kernel.ChangeDevice(device, [](FakeDevice& other) {
    other.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  });
  ExpectRefused(agent_.MountDevice(claimed.Spec()), Code::kFailedPrecondition,
                "6b1c6a5e-0000-4000-8000-000000000001");
  EXPECT_FALSE(node_.kernel.IsMountPoint(PoolPluginAgent::DevicePlace(claimed.id())));
}

TEST_F(PoolPluginTest, SomethingElseAtItsPlaceIsNotTakenForTheVolume) {
  const ClaimedVolume claimed = Claim();
  node_.kernel.AddMount("ext4", "/dev/sdz", PoolPluginAgent::DevicePlace(claimed.id()));
  ExpectRefused(agent_.MountDevice(claimed.Spec()), Code::kFailedPrecondition,
                "/dev/sdz is mounted at");
  EXPECT_EQ(node_.Rows().at(0).filesystem, PoolFilesystem());
  EXPECT_THAT(node_.Loops(), IsEmpty());
}

TEST_F(PoolPluginTest, AMountThatFailsForCertainLeavesNothingOpen) {
  const ClaimedVolume claimed = Claim();
  node_.kernel.FailNext("Mount", EINVAL, Outcome::kNotApplied);
  const Status refused = agent_.MountDevice(claimed.Spec());
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(node_.Loops(), IsEmpty());
  EXPECT_FALSE(node_.kernel.Exists(PoolPluginAgent::DevicePlace(claimed.id())));
  Expect(agent_.MountDevice(claimed.Spec()));
}

TEST_F(PoolPluginTest, AMountThatMayHaveBeenMadeStaysOpenForItsInverse) {
  const ClaimedVolume claimed = Claim();
  node_.kernel.FailNext("Mount", EIO, Outcome::kMaybeApplied);
  const Status refused = agent_.MountDevice(claimed.Spec());
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().maybe_applied());
  EXPECT_THAT(node_.Loops(), SizeIs(1));
  Expect(agent_.UnmountDevice(claimed.id()));
  EXPECT_THAT(node_.Loops(), IsEmpty());
}

TEST_F(PoolPluginTest, AVolumeOfAPoolThatIsNotThereSaysSo) {
  const ClaimedVolume claimed = Claim();
  PoolPluginAgent next(node_);  // its pool is not open
  ExpectRefused(next.MountDevice(claimed.Spec()), Code::kUnavailable, "");
  EXPECT_EQ(next.plugin.FaultDomain(claimed.Spec()), kPoolPath);
  EXPECT_THAT(next.plugin.DevicePaths(claimed.Spec()), ElementsAre(kPoolPath));
}

TEST_F(PoolPluginTest, AMountedVolumeIsMountedForANewAgentThoughItsPoolIsAway) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  PoolPluginAgent next(node_);
  Expect(next.MountDevice(claimed.Spec()));
  Expect(next.SetUp(claimed.Spec()));
}

TEST_F(PoolPluginTest, WhichVolumeABindIsIsFoundWithoutRecords) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  Expect(agent_.SetUp(claimed.Spec()));
  const SafePath place{PoolPluginAgent::PodPlace(claimed), ""};
  const ReconstructedVolume found =
      Must(agent_.plugin.ConstructVolumeSpec(SpecName("pvc-1"), place, {}));
  EXPECT_EQ(Must(agent_.plugin.GetVolumeName(found.spec)), claimed.id());
  Expect(agent_.TearDown(claimed.Spec()));
  ExpectRefused(agent_.plugin.ConstructVolumeSpec(SpecName("pvc-1"), place, {}),
                Code::kFailedPrecondition, "no device of a pool is mounted");
}

// The node's own directory was bound, and what the pod wrote lay on the node's disk.
TEST_F(PoolPluginTest, AVolumeThatWasUnmountedAmidItsBindWasAnEmptyDirectoryOfTheNode) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  const std::string device = PoolPluginAgent::DevicePlace(claimed.id());
  node_.kernel.SetCallHook([&](const AnyRequest& request) {
    if (std::holds_alternative<BindMount>(request)) node_.kernel.UnmountBelow(device);
  });
  ExpectRefused(agent_.SetUp(claimed.Spec()), Code::kFailedPrecondition,
                "what is to be bound is not mounted there any more");
  EXPECT_FALSE(node_.kernel.Exists(PoolPluginAgent::PodPlace(claimed)));
}

TEST_F(PoolPluginTest, OnlyAPlaceOfAPoolsVolumeIsUnmounted) {
  const auto unmounter = Must(agent_.plugin.NewDeviceUnmounter());
  for (const char* place : {"plugins/kubernetes.io/local-volume/mounts/pv-1",
                            "plugins/volumed.io/pool/mounts/pv-1", "pods/u1"}) {
    ExpectRefused(unmounter->UnmountDevice({"/r", place}, {}), Code::kInvalidArgument,
                  "is not a place of a pool's volume");
  }
}

}  // namespace
}  // namespace volumed
