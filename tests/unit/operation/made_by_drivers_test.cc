// Volumes that a driver makes, takes back and makes larger: what the operations ask of it, and what
// they look at before.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/driver_storage.h"
#include "operation/expand_storage_operations.h"
#include "operation/operation_executor.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "operation/storage_steps.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "unit/operation/operation_parts_fixture.h"
#include "unit/pluginmgr/plugin_without_mounts.h"

namespace volumed {
namespace {

constexpr const char* kDriver = "disk.example.com";
const UniqueVolumeName kUnique("kubernetes.io/csi/disk.example.com^vol-1");

PersistentVolume VolumeOf(const std::string& name, const std::string& handle) {
  PersistentVolume volume;
  volume.metadata.name = name;
  CsiPersistentVolumeSource source;
  source.driver = kDriver;
  source.volume_handle = handle;
  volume.spec.source = source;
  return volume;
}

// What the driver answers, and what it was asked.
struct Maker {
  std::optional<PersistentVolume> there = VolumeOf("pvc-1", "vol-1");  // nullopt: certainly nothing
  std::optional<VolumePlan> plan;
  int found = 0;
  std::vector<std::string> undone;  // handles
  Result<ExpandedStorage> grown = ExpandedStorage{Quantity::FromBytes(200), true};
  int grows = 0;
  bool only_unused = false;
  bool expands = true;
};

class MakingPlugin final : public PluginWithoutMounts,
                           public ProvisionableVolumePlugin,
                           public ExpandableVolumePlugin {
 public:
  explicit MakingPlugin(Maker& maker) : maker_(maker) {}
  std::string GetPluginName() const override { return "kubernetes.io/csi"; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return std::string(kDriver) + "^" + spec.SourceAs<CsiPersistentVolumeSource>()->volume_handle;
  }
  bool CanSupport(const VolumeSpec& spec) const override {
    return spec.SourceAs<CsiPersistentVolumeSource>() != nullptr;
  }
  bool SupportsMountOption() const override { return true; }
  std::string FaultDomain(const VolumeSpec&) const override { return "csi:disk.example.com"; }
  bool WorksInLane(const VolumeSpec&) const override { return true; }
  ProvisionableVolumePlugin* AsProvisionerOf(const std::string& provisioner) override {
    return provisioner == kDriver ? this : nullptr;
  }
  ExpandableVolumePlugin* AsExpandable() override { return this; }
  VolumePlugin& plugin() override { return *this; }

  Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override {
    maker_.plan = options.plan;
    return std::unique_ptr<Provisioner>(std::make_unique<Making>(maker_, options));
  }

  Result<Quantity> ExpandVolumeDevice(const VolumeSpec&, const Quantity&, const Quantity&,
                                      const CallOptions&) override {
    return NotUsed();
  }
  bool RequiresFsResize() const override { return true; }
  bool ExpandsStorage(const VolumeSpec&) const override { return maker_.expands; }
  bool ExpandsOnlyUnused(const VolumeSpec&) const override { return maker_.only_unused; }
  Result<ExpandedStorage> ExpandStorage(const VolumeSpec&, const Quantity&, const Quantity&,
                                        const CallOptions&) override {
    ++maker_.grows;
    return maker_.grown;
  }

 private:
  class Making final : public Provisioner {
   public:
    Making(Maker& maker, VolumeOptions options) : maker_(maker), options_(std::move(options)) {}
    Result<PersistentVolume> Plan() override {
      return options_.plan ? options_.plan->volume : VolumeOf("pvc-1", "unknown:pvc-1");
    }
    std::string PlanText() override { return "the plan"; }
    Result<PersistentVolume> Provision(const NodeObject*, const std::vector<TopologyTerm>&,
                                       const CallOptions&) override {
      RETURN_IF_ERROR(options_.may_be_new(*maker_.there));
      return *maker_.there;
    }
    Result<std::optional<PersistentVolume>> FindMade(const PersistentVolume&,
                                                     const CallOptions&) override {
      ++maker_.found;
      return maker_.there;
    }
    Status Undo(const PersistentVolume& made, const CallOptions&) override {
      maker_.undone.push_back(std::get<CsiPersistentVolumeSource>(made.spec.source).volume_handle);
      return OkStatus();
    }

   private:
    Maker& maker_;
    const VolumeOptions options_;
  };

  Maker& maker_;
};

class MadeByDriversTest : public OperationPartsFixture {
 protected:
  MadeByDriversTest() {
    Init(std::make_unique<MakingPlugin>(maker_));
    request_.plugin_name = kDriver;
    request_.options.pv_name = "pvc-1";
    request_.planned = VolumeOf("pvc-1", "unknown:pvc-1");
    request_.plan = "the plan";
    request_.claim_uid = "c-1";
  }
  // The error; "" for success.
  template <typename Op>
  std::string Run(const Op& operation) {
    OperationProgress progress(clock_);
    typename Op::Value value{};
    const auto failure = operation.Run(Parts(), progress, value);
    if (!failure) return "";
    outcome_ = failure->error.outcome();
    return failure->error.message();
  }
  std::string Provision() { return Run(ProvisionVolume(request_)); }
  std::string Undo() { return Run(UndoProvision(request_)); }
  std::string Grow() {
    return Run(
        ExpandStorage({.volume = kUnique,
                       .spec = VolumeSpec::FromPersistentVolume(VolumeOf("pv", "vol-1"), false),
                       .claim = "default/data",
                       .new_size = Quantity::FromBytes(200),
                       .old_size = Quantity::FromBytes(100)}));
  }
  void AddOther(const std::string& handle) {
    volumes_known_.push_back(std::make_shared<const PersistentVolume>(VolumeOf("other", handle)));
    request_.volumes = std::make_shared<const std::vector<std::shared_ptr<const PersistentVolume>>>(
        volumes_known_);
  }
  // The node has the volume as a device.
  void PutDevice() {
    DeviceRecord record;
    record.key = kUnique;
    record.plugin_name = "kubernetes.io/csi";
    record.state = VolumeState::kAttached;
    record.attachable = true;
    record.boot_id = BootId("boot-a");
    devices_.Restore(record);
  }

  Maker maker_;
  ProvisionRequest request_;
  std::vector<std::shared_ptr<const PersistentVolume>> volumes_known_ = {
      std::make_shared<const PersistentVolume>(VolumeOf("pvc-1", "vol-1"))};  // it is its own
  std::optional<Outcome> outcome_;
};

TEST_F(MadeByDriversTest, ADriverIsFoundAsTheProvisionerOfItsNameAndGetsThePlan) {
  EXPECT_EQ(Provision(), "");
  ASSERT_TRUE(maker_.plan);
  EXPECT_EQ(maker_.plan->text, "the plan");
  EXPECT_EQ(maker_.plan->volume, request_.planned);
  request_.plugin_name = "other.example.com";
  EXPECT_EQ(Provision(), "no volume plugin matched name: other.example.com");
}

TEST_F(MadeByDriversTest, StorageThatAnotherVolumeHasIsNoNewOne) {
  AddOther("vol-2");
  EXPECT_EQ(Provision(), "");
  AddOther("vol-1");
  EXPECT_EQ(Provision(), "it is the storage of PersistentVolume other");
}

TEST_F(MadeByDriversTest, WhatWasMadeIsTakenBackByTheHandleThatTheDriverSays) {
  EXPECT_EQ(Undo(), "");
  EXPECT_EQ(maker_.undone, std::vector<std::string>{"vol-1"});
  EXPECT_EQ(Undo(), "") << "nothing of the first is in the way";
}

TEST_F(MadeByDriversTest, NothingIsTakenBackIfCertainlyNothingIsThere) {
  maker_.there.reset();
  EXPECT_EQ(Undo(), "");
  EXPECT_TRUE(maker_.undone.empty());
}

TEST_F(MadeByDriversTest, NothingIsTakenBackThatAnotherVolumeHas) {
  AddOther("vol-1");
  EXPECT_NE(Undo(), "");
  EXPECT_TRUE(maker_.undone.empty());
}

TEST_F(MadeByDriversTest, NothingIsTakenBackThatADeviceOfTheNodeHas) {
  const StorageHolder device{.id = DriverStorageId(kUnique),
                             .volume = "other",
                             .use = StorageUse::kShared,
                             .persistent = true,
                             .text = "volume other"};
  ASSERT_TRUE(storage_.Take(device, StorageName{.path = "vol-1", .driver = kDriver}, {}).ok());
  EXPECT_NE(Undo(), "");
  EXPECT_TRUE(maker_.undone.empty());
  ASSERT_TRUE(storage_.Release(device.id).ok());
  EXPECT_EQ(Undo(), "");
  EXPECT_EQ(maker_.undone.size(), 1u);
}

TEST_F(MadeByDriversTest, NothingIsAskedOfTheDriverWhileTheRecordsAreInDoubt) {
  irreversible_.hold = true;
  EXPECT_NE(Undo(), "");
  EXPECT_EQ(maker_.found, 0);
}

TEST_F(MadeByDriversTest, StorageIsMadeLargerByItsPlugin) {
  EXPECT_EQ(Grow(), "");
  EXPECT_EQ(maker_.grows, 1);
  maker_.expands = false;
  EXPECT_NE(Grow().find("nothing on this node makes the storage"), std::string::npos);
  EXPECT_EQ(maker_.grows, 1);
}

TEST_F(MadeByDriversTest, StorageThatGrowsOnlyUnusedIsNotTouchedWhileTheNodeHasIt) {
  PutDevice();
  EXPECT_EQ(Grow(), "") << "it may be in use";
  maker_.only_unused = true;
  EXPECT_NE(Grow().find("is on the node"), std::string::npos);
  EXPECT_EQ(outcome_, Outcome::kNotApplied);
  EXPECT_EQ(maker_.grows, 1);
}

// A driver was told to make larger what it grows only unused, while a pod whose records were lost
// had it mounted.
TEST_F(MadeByDriversTest, StorageThatGrowsOnlyUnusedGrewUnderTheMountOfALostPod) {
  const std::string target = "/var/lib/volumed/pods/lost/volumes/kubernetes.io~csi/pv/mount";
  node_.AddDirectory(target);
  node_.AddMount("tmpfs", "tmpfs", target);
  UnrecordedMount left;
  left.plugin = "kubernetes.io/csi";
  left.spec = SpecName("pv");
  left.pod = PodUid("lost");
  left.places = {target};
  maker_.only_unused = true;
  for (const UniqueVolumeName& volume : {kUnique, UniqueVolumeName()}) {
    left.volume = volume;
    unrecorded_->Set({left});
    EXPECT_NE(Grow().find("in pod lost, of which no record tells: " + target), std::string::npos)
        << volume.str();
    EXPECT_EQ(outcome_, Outcome::kNotApplied);
  }
  EXPECT_EQ(maker_.grows, 0);
  maker_.only_unused = false;
  EXPECT_EQ(Grow(), "") << "it grows in use";
  maker_.only_unused = true;
  node_.UnmountBelow(target);
  EXPECT_EQ(Grow(), "") << "it is mounted no more";
  EXPECT_EQ(maker_.grows, 2);
}

TEST_F(MadeByDriversTest, AnAnswerSmallerThanWhatWasAskedForIsAnErrorWhoseOutcomeIsOpen) {
  maker_.grown = ExpandedStorage{Quantity::FromBytes(150), false};
  EXPECT_NE(Grow(), "");
  EXPECT_EQ(outcome_, Outcome::kMaybeApplied);
}

TEST_F(MadeByDriversTest, AGrowthHasTheDriversLaneAndTheDeviceForItself) {
  const ExpandStorage growth(
      {.volume = kUnique,
       .spec = VolumeSpec::FromPersistentVolume(VolumeOf("pv", "vol-1"), false),
       .claim = "",
       .new_size = {},
       .old_size = {}});
  const OperationTraits traits = growth.Traits(Parts());
  EXPECT_EQ(traits.domain.lane, "csi:disk.example.com");
  EXPECT_EQ(traits.device, kUnique);
  EXPECT_EQ(traits.use, DeviceUse::kExclusive);
}

// The claim went while its growth was with the driver, and DeleteVolume was called beside it.
TEST_F(MadeByDriversTest, AVolumeThatIsMadeLargerWasDeletedMeanwhile) {
  const ReclaimVolume deletion(ReclaimRequest{
      std::make_shared<const PersistentVolume>(VolumeOf("pv", "vol-1")), ReclaimAction::kDelete});
  const OperationTraits traits = deletion.Traits(Parts());
  EXPECT_EQ(traits.domain.lane, "csi:disk.example.com");
  EXPECT_EQ(traits.device, kUnique);
  EXPECT_EQ(traits.use, DeviceUse::kExclusive);
}

}  // namespace
}  // namespace volumed
