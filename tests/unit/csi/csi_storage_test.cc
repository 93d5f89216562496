// What drivers' controllers do with storage: a driver in simulated time that makes, deletes and
// grows volumes, or says so.
#include "csi/csi_storage.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csi/csi_names.h"
#include "csi/csi_settings.h"
#include "csi/rpc/csi_outcome.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "metrics/exported_families.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "unit/csi/drivers_fixture.h"
#include "unit/csi/storage_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;

class CsiStorageTest : public CsiStorageFixture {
 protected:
  // By which the claim's volume is planned.
  std::unique_ptr<Provisioner> NewProvisioner(const VolumeOptions& options) {
    return storage_->ProvisionerOf(kName)->NewProvisioner(options).value();
  }
  std::unique_ptr<Provisioner> NewProvisioner() { return NewProvisioner(Options()); }
  Result<PersistentVolume> Make(const VolumeOptions& options) {
    const auto provisioner = NewProvisioner(options);
    const Result<PersistentVolume> plan = provisioner->Plan();
    if (!plan.ok()) return plan;
    return provisioner->Provision(nullptr, {}, Call());
  }
  Result<PersistentVolume> Make() { return Make(Options()); }
  static const CsiPersistentVolumeSource& Source(const PersistentVolume& volume) {
    return std::get<CsiPersistentVolumeSource>(volume.spec.source);
  }
  // A driver that answers CreateVolume so.
  void Creates(const std::function<void(::csi::v1::Volume&)>& change) {
    process_->Handle("CreateVolume", [this, change](const google::protobuf::Message& request) {
      asked_.push_back(static_cast<const CreateVolumeRequest&>(request));
      auto answer = std::make_unique<::csi::v1::CreateVolumeResponse>();
      answer->mutable_volume()->set_volume_id("vol-1");
      answer->mutable_volume()->set_capacity_bytes(1 << 30);
      change(*answer->mutable_volume());
      return CsiChannel::AnyAnswer(std::move(answer));
    });
  }
  // Makes the volume, which has to be called a lie for this.
  void ExpectLie(const std::function<void(::csi::v1::Volume&)>& change, const std::string& found,
                 VolumeOptions options = Options()) {
    Creates(change);
    const Result<PersistentVolume> made = Make(options);
    ASSERT_FALSE(made.ok()) << found;
    EXPECT_EQ(made.error().code(), Code::kInternal);
    EXPECT_TRUE(made.error().maybe_applied()) << "only the same call may follow";
    EXPECT_NE(made.error().message().find(found), std::string::npos) << made.error().message();
    EXPECT_EQ(process_->calls("DeleteVolume"), 0) << "it may be somebody's";
    EXPECT_EQ(lies_.size(), 1u);
    EXPECT_EQ(lied_about_.back(), asked_.back().name()) << "the trace knows the call by it";
    lies_.clear();
  }
  Status Delete(const PersistentVolume& volume) {
    const auto deleter = storage_->NewDeleter(VolumeSpec::FromPersistentVolume(volume, false));
    if (!deleter.ok()) return deleter.error();
    return (*deleter)->Delete(Call());
  }
  Result<ExpandedStorage> Expand(int64_t bytes) {
    return storage_->ExpandStorage(VolumeSpec::FromPersistentVolume(MadeVolume(), false),
                                   Quantity::FromBytes(bytes), Quantity::FromBytes(1 << 30),
                                   Call());
  }
  void Grows(int64_t to, bool needs_node) {
    ::csi::v1::ControllerExpandVolumeResponse answer;
    answer.set_capacity_bytes(to);
    answer.set_node_expansion_required(needs_node);
    process_->Answer("ControllerExpandVolume", answer);
  }
};

// ---- making ----

TEST_F(CsiStorageTest, OnlyADriverWhoseControllerMakesVolumesIsAProvisioner) {
  EXPECT_EQ(storage_->ProvisionerOf("other.example.com"), nullptr);
  EXPECT_NE(storage_->ProvisionerOf(kName), nullptr);
  EXPECT_EQ(storage_->ProvisionerOf(kName), storage_->ProvisionerOf(kName));
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  EXPECT_NE(storage_->ProvisionerOf(kName), nullptr) << "one that is away changes no answer";
}

TEST_F(CsiStorageTest, AVolumeIsMadeAsClaimAndClassSay) {
  VolumeOptions options = Options();
  options.parameters = {{"csi.storage.k8s.io/fstype", "xfs"}, {"tier", "gold"}};
  options.mount_options = {"noatime"};
  options.claim.spec.storage.limit = Quantity::FromBytes(int64_t{4} << 30);
  const Result<PersistentVolume> made = Make(options);
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  ASSERT_EQ(asked_.size(), 1u);
  const CreateVolumeRequest& asked = asked_[0];
  EXPECT_EQ(asked.name(), "pvc-c1");
  EXPECT_EQ(asked.capacity_range().required_bytes(), 1 << 30);
  EXPECT_EQ(asked.capacity_range().limit_bytes(), int64_t{4} << 30);
  EXPECT_EQ(asked.parameters().at("tier"), "gold");
  EXPECT_EQ(asked.parameters().count("csi.storage.k8s.io/fstype"), 0u);
  EXPECT_EQ(asked.parameters().at("csi.storage.k8s.io/pvc/name"), "data");
  ASSERT_EQ(asked.volume_capabilities_size(), 1);
  EXPECT_EQ(asked.volume_capabilities(0).mount().fs_type(), "xfs");
  EXPECT_EQ(asked.volume_capabilities(0).mount().mount_flags(0), "noatime");
  EXPECT_EQ(Source(*made).driver, kName);
  EXPECT_EQ(Source(*made).volume_handle, "vol-pvc-c1");
  EXPECT_EQ(Source(*made).fs_type, "xfs");
  EXPECT_EQ(Source(*made).volume_attributes.at("storage"), "pool");
  EXPECT_EQ(made->spec.capacity.Value(), 1 << 30);
  EXPECT_EQ(made->spec.reclaim_policy, ReclaimPolicy::kDelete);
  EXPECT_EQ(made->metadata.name, "pvc-c1");
}

TEST_F(CsiStorageTest, ThePlanHasNoHandleAndNothingIsAskedForIt) {
  const auto provisioner = NewProvisioner();
  const PersistentVolume plan = provisioner->Plan().value();
  EXPECT_EQ(Source(plan).volume_handle, "unknown:pvc-c1");
  EXPECT_EQ(process_->calls("CreateVolume"), 0);
  EXPECT_NE(provisioner->PlanText().find("\"name\":\"pvc-c1\""), std::string::npos)
      << provisioner->PlanText();
  const auto deleter = storage_->NewDeleter(VolumeSpec::FromPersistentVolume(plan, false));
  ASSERT_FALSE(deleter.ok()) << "no such volume was made";
}

TEST_F(CsiStorageTest, ByItsPlanTheVerySameRequestIsMadeWhateverClaimAndClassSayNow) {
  const auto first = NewProvisioner();
  VolumeOptions again;
  again.pv_name = "pvc-c1";
  again.plan = VolumePlan{first->Plan().value(), first->PlanText()};
  ASSERT_TRUE(first->Provision(nullptr, {}, Call()).ok());
  again.parameters = {{"tier", "bronze"}};
  again.claim.spec.storage.request = Quantity::FromBytes(int64_t{9} << 30);
  const auto second = NewProvisioner(again);
  EXPECT_EQ(second->Plan().value(), again.plan->volume);
  EXPECT_EQ(second->PlanText(), again.plan->text);
  const Result<PersistentVolume> made = second->Provision(nullptr, {}, Call());
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(WholeOf(asked_[0]), WholeOf(asked_[1]));
  EXPECT_EQ(volumes_.size(), 1u);
}

TEST_F(CsiStorageTest, SecretsAreReadForTheCallAndAreInNoPlan) {
  PutSecret("provision-data", "hunter2-make");
  VolumeOptions options = Options();
  options.parameters = {{"csi.storage.k8s.io/provisioner-secret-name", "provision-${pvc.name}"},
                        {"csi.storage.k8s.io/provisioner-secret-namespace", "storage"},
                        {"csi.storage.k8s.io/node-stage-secret-name", "stage-${pv.name}"},
                        {"csi.storage.k8s.io/node-stage-secret-namespace", "${pvc.namespace}"}};
  const auto provisioner = NewProvisioner(options);
  const PersistentVolume plan = provisioner->Plan().value();
  EXPECT_EQ(provisioner->PlanText().find("hunter2"), std::string::npos);
  EXPECT_EQ(plan.metadata.annotations.at("volume.kubernetes.io/provisioner-deletion-secret-name"),
            "provision-data");
  EXPECT_EQ(Source(plan).node_stage_secret_ref, (SecretReference{"stage-pvc-c1", "default"}));
  ASSERT_TRUE(provisioner->Provision(nullptr, {}, Call()).ok());
  EXPECT_EQ(asked_.at(0).secrets().at("password"), "hunter2-make");

  parts_.secrets.clear();
  const Result<PersistentVolume> without = provisioner->Provision(nullptr, {}, Call());
  ASSERT_FALSE(without.ok());
  EXPECT_FALSE(without.error().maybe_applied());
  EXPECT_EQ(asked_.size(), 1u) << "nothing is asked for without it";
  EXPECT_TRUE(without.error().IsAbout("missing Secret storage/provision-data"));
}

TEST_F(CsiStorageTest, TheVolumeIsMadeWhereThisNodeIsAndSaysSo) {
  Serve({ControllerCapability::CREATE_DELETE_VOLUME}, /*topology=*/true);
  Creates([](::csi::v1::Volume& made) {
    (*made.add_accessible_topology()->mutable_segments())["example.com/zone"] = "z1";
  });
  const Result<PersistentVolume> made = Make();
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  const auto& requirements = asked_.at(0).accessibility_requirements();
  ASSERT_EQ(requirements.requisite_size(), 1);
  EXPECT_EQ(requirements.requisite(0).segments().at("example.com/zone"), "z1");
  EXPECT_EQ(requirements.preferred(0).segments().at("example.com/zone"), "z1");
  ASSERT_TRUE(made->spec.node_affinity);
  const NodeSelectorTerm& term = made->spec.node_affinity->required.terms.at(0);
  EXPECT_EQ(term.match_expressions.at(0),
            (NodeRequirement{"example.com/zone", NodeOperator::kIn, {"z1"}}));
  ExpectLie(
      [](::csi::v1::Volume& volume) {
        (*volume.add_accessible_topology()->mutable_segments())["example.com/zone"] = "z2";
      },
      "it cannot be used on this node");
}

// The claim was bound to a volume that never fitted its one node.
TEST_F(CsiStorageTest, OfADriverWithoutTopologyNoPlaceIsBelieved) {
  Creates([](::csi::v1::Volume& made) {
    (*made.add_accessible_topology()->mutable_segments())["example.com/zone"] = "z2";
  });
  const Result<PersistentVolume> made = Make();
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  EXPECT_FALSE(made->spec.node_affinity);
}

TEST_F(CsiStorageTest, WhatNoDriverCanMakeIsRefusedBeforeItIsAsked) {
  const auto refused = [this](const VolumeOptions& options) {
    const Result<PersistentVolume> plan = NewProvisioner(options)->Plan();
    return plan.ok() ? "" : plan.error().message();
  };
  VolumeOptions options = Options();
  options.claim.spec.selector = LabelSelector{};
  EXPECT_EQ(refused(options), "claim Selector is not supported");
  options = Options();
  options.claim.spec.volume_attributes_class_name = "fast";
  EXPECT_NE(refused(options).find("VolumeAttributesClass fast"), std::string::npos);
  options = Options();
  options.content.emplace();
  options.content->driver = kName;
  options.content->handle = "src";
  options.content->size = Quantity::FromBytes(1);
  EXPECT_NE(refused(options).find("makes no volumes from other volumes"), std::string::npos);
  Serve({ControllerCapability::CREATE_DELETE_VOLUME, ControllerCapability::CLONE_VOLUME});
  EXPECT_EQ(refused(options), "");
  options.content->size = Quantity::FromBytes(int64_t{2} << 30);
  EXPECT_NE(refused(options).find("its data source has 2Gi"), std::string::npos);
  options.content->size = Quantity::FromBytes(1);
  options.content->driver = "other.example.com";
  EXPECT_NE(refused(options).find("is of CSI driver other.example.com"), std::string::npos);
  EXPECT_EQ(process_->calls("CreateVolume"), 0);
}

TEST_F(CsiStorageTest, AnAnswerThatCannotBeTrueIsAnErrorAndNothingIsDeleted) {
  ExpectLie([](::csi::v1::Volume& made) { made.set_volume_id(""); }, "it has no id");
  ExpectLie([](::csi::v1::Volume& made) { made.set_volume_id("vol\x1b[2J"); }, "is no text");
  ExpectLie([](::csi::v1::Volume& made) { made.set_volume_id(std::string(1025, 'x')); },
            "its id has 1025 bytes");
  ExpectLie([](::csi::v1::Volume& made) { made.set_capacity_bytes(1000); },
            "it has 1000 bytes; 1073741824 were asked for");
  ExpectLie([](::csi::v1::Volume& made) { made.set_capacity_bytes(-5); }, "it has -5 bytes");
  VolumeOptions limited = Options();
  limited.claim.spec.storage.limit = Quantity::FromBytes(int64_t{2} << 30);
  ExpectLie([](::csi::v1::Volume& made) { made.set_capacity_bytes(int64_t{3} << 30); },
            "2147483648 at most were asked for", limited);
  VolumeOptions options = Options();
  options.may_be_new = [](const PersistentVolume& made) -> Status {
    EXPECT_EQ(Source(made).volume_handle, "vol-1");
    return Error::NotApplied(Code::kFailedPrecondition, "it is the storage of PersistentVolume b");
  };
  ExpectLie([](::csi::v1::Volume&) {}, "it is the storage of PersistentVolume b", options);
  PutDevice("vol-1");
  ExpectLie([](::csi::v1::Volume&) {}, "it is on this node as other");
}

TEST_F(CsiStorageTest, ASecretInTheIdOfAVolumeIsNotInTheTextOfALie) {
  PutSecret("provision", "hunter2-make");
  VolumeOptions options = Options();
  options.parameters = {{"csi.storage.k8s.io/provisioner-secret-name", "provision"},
                        {"csi.storage.k8s.io/provisioner-secret-namespace", "storage"}};
  // Cut, the id would end amid the secret.
  const std::string before(75, 'x');
  for (const std::string said : {"hunter2-make", "hunter2%2Dmake", "hunter2-make\x1b[2J"}) {
    Creates([&](::csi::v1::Volume& made) {
      made.set_volume_id(before + said);
      made.set_capacity_bytes(-5);
    });
    const Result<PersistentVolume> made = Make(options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().message().find("hunter2"), std::string::npos) << made.error().message();
    EXPECT_NE(made.error().message().find(before), std::string::npos) << made.error().message();
  }
}

TEST_F(CsiStorageTest, ACloneOfSomethingElseIsALie) {
  Serve({ControllerCapability::CREATE_DELETE_VOLUME, ControllerCapability::CLONE_VOLUME});
  VolumeOptions options = Options();
  options.content.emplace();
  options.content->driver = kName;
  options.content->handle = "src";
  options.content->size = Quantity::FromBytes(1);
  ExpectLie([](::csi::v1::Volume&) {}, "it was not made from what it was to be made from", options);
  EXPECT_EQ(asked_.at(0).volume_content_source().volume().volume_id(), "src");
  ExpectLie(
      [](::csi::v1::Volume& made) {
        made.mutable_content_source()->mutable_volume()->set_volume_id("other");
      },
      "it was not made from what it was to be made from", options);
  Creates([](::csi::v1::Volume& made) {
    made.mutable_content_source()->mutable_volume()->set_volume_id("src");
  });
  EXPECT_TRUE(Make(options).ok());
}

TEST_F(CsiStorageTest, AVolumeWhoseSizeTheDriverDoesNotSayHasWhatWasAskedFor) {
  Creates([](::csi::v1::Volume& made) { made.set_capacity_bytes(0); });
  EXPECT_EQ(Make().value().spec.capacity, Quantity::FromBytes(1 << 30));
}

// ---- taking back ----

TEST_F(CsiStorageTest, WhatATryMayHaveLeftIsFoundByTheSameRequestAndTakenBack) {
  const auto provisioner = NewProvisioner();
  const PersistentVolume plan = provisioner->Plan().value();
  ASSERT_TRUE(provisioner->Provision(nullptr, {}, Call()).ok());
  const auto made = provisioner->FindMade(plan, Call());
  ASSERT_TRUE(made.ok() && made->has_value());
  EXPECT_EQ(Source(**made).volume_handle, "vol-pvc-c1");
  EXPECT_EQ(WholeOf(asked_.at(0)), WholeOf(asked_.at(1)));
  ASSERT_TRUE(provisioner->Undo(**made, Call()).ok());
  EXPECT_TRUE(volumes_.empty());
}

TEST_F(CsiStorageTest, AFinalAnswerSaysThatNothingIsThereAndAnyOtherDoesNot) {
  const auto provisioner = NewProvisioner();
  const PersistentVolume plan = provisioner->Plan().value();
  // AlreadyExists was one of them: what an earlier call had made stayed at the driver for ever.
  const std::set<Code> final_codes = {Code::kInvalidArgument, Code::kNotFound,
                                      Code::kFailedPrecondition, Code::kOutOfRange,
                                      Code::kUnimplemented};
  for (int number = 1; number <= 16; ++number) {
    const Code code = CsiCode(number);
    Fails("CreateVolume", code);
    const auto found = provisioner->FindMade(plan, Call());
    EXPECT_EQ(found.ok(), final_codes.contains(code)) << number;
    if (found.ok()) {
      EXPECT_FALSE(found->has_value());
    }
  }
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  EXPECT_FALSE(provisioner->FindMade(plan, Call()).ok()) << "it was not asked";
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

// ---- deleting ----

TEST_F(CsiStorageTest, AVolumeIsDeletedByItsHandleAndWithItsSecret) {
  PutSecret("made", "hunter2-delete");
  PersistentVolume volume = Make().value();
  volume.metadata.annotations["pv.kubernetes.io/provisioned-by"] = kName;
  volume.metadata.annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] = "made";
  volume.metadata.annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = "s";
  ASSERT_TRUE(Delete(volume).ok());
  EXPECT_EQ(deleted_.at(0).volume_id(), "vol-pvc-c1");
  EXPECT_EQ(deleted_.at(0).secrets().at("password"), "hunter2-delete");
  EXPECT_TRUE(volumes_.empty());
}

TEST_F(CsiStorageTest, AVolumeThatIsNotThereIsDeletedAndOneInUseIsNot) {
  Fails("DeleteVolume", Code::kNotFound);
  EXPECT_TRUE(Delete(MadeVolume()).ok());
  Fails("DeleteVolume", Code::kFailedPrecondition);
  const Status in_use = Delete(MadeVolume());
  ASSERT_FALSE(in_use.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(in_use.error()));
  Fails("DeleteVolume", Code::kInternal);
  const Status unknown = Delete(MadeVolume());
  ASSERT_FALSE(unknown.ok());
  EXPECT_FALSE(IsDeletedVolumeInUse(unknown.error()));
  EXPECT_TRUE(unknown.error().maybe_applied());
}

TEST_F(CsiStorageTest, NothingIsDeletedThatThisNodeHasOrThatIsAttachedSomewhere) {
  PutDevice("vol-1");
  const Status here = Delete(MadeVolume());
  ASSERT_FALSE(here.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(here.error()));
  RemoveDevice("vol-1");
  attachments_.all["a"].node_name = "n7";
  attachments_.all["a"].persistent_volume_name = "pv-made";
  const Status there = Delete(MadeVolume());
  ASSERT_FALSE(there.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(there.error()));
  EXPECT_NE(there.error().message().find("still attached to node n7"), std::string::npos);
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  attachments_.all.clear();
  EXPECT_TRUE(Delete(MadeVolume()).ok());
}

TEST_F(CsiStorageTest, AVolumeWasDeletedThatAnInlineSpecHasAttachedSomewhere) {
  VolumeAttachment& attachment = attachments_.all["a"];
  attachment.node_name = "n7";
  attachment.inline_volume_spec.emplace().csi.driver = kName;
  attachment.inline_volume_spec->csi.volume_handle = "vol-1";
  const Status there = Delete(MadeVolume());
  ASSERT_FALSE(there.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(there.error()));
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  attachment.inline_volume_spec->csi.volume_handle = "vol-2";
  EXPECT_TRUE(Delete(MadeVolume()).ok());
}

// DeleteVolume was made while the pod of an earlier agent had the volume mounted.
TEST_F(CsiStorageTest, LostRecordsLetNoVolumeBeDeletedThatAPodHasMounted) {
  const SpecName name("pv-made");
  const SafePath target = CsiTargetPath(paths_, PodUid("lost"), name);
  for (const UniqueVolumeName& volume : {CsiUniqueName(kName, "vol-1"), UniqueVolumeName()}) {
    unrecorded_.Set({LeftAt(target, volume, name, "lost")});
    const Status held = Delete(MadeVolume());
    ASSERT_FALSE(held.ok());
    EXPECT_TRUE(IsDeletedVolumeInUse(held.error()));
    EXPECT_NE(held.error().message().find("volume pv-made is mounted in pod lost, of which no "
                                          "record tells: " +
                                          target.Display()),
              std::string::npos)
        << held.error().message();
    kernel_.UnmountBelow(target.Display());
  }
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  EXPECT_TRUE(Delete(MadeVolume()).ok());
  unrecorded_.Set({LeftAt(target, CsiUniqueName(kName, "vol-7"), SpecName("other"), "lost")});
  EXPECT_TRUE(Delete(MadeVolume()).ok()) << "another volume is mounted";
}

TEST_F(CsiStorageTest, LostRecordsLetNoVolumeBeDeletedThatIsStagedThoughNoFileSaysWhichItIs) {
  const SafePath staged = CsiStagingPath(paths_, kName, "vol-1");
  const auto device = paths_.ParseDeviceMount(staged.Display());
  ASSERT_TRUE(device.has_value());
  const UniqueVolumeName stand_in(std::string(kCsiPluginName) + "/" + device->volume.str());
  unrecorded_.Set({LeftAt(staged, stand_in, SpecName(), "")});
  const Status held = Delete(MadeVolume());
  ASSERT_FALSE(held.ok());
  EXPECT_NE(held.error().message().find("is mounted on this node, of which no record tells: " +
                                        staged.Display()),
            std::string::npos)
      << held.error().message();
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

TEST_F(CsiStorageTest, LostRecordsLetNoBlockVolumeBeDeletedThatIsAtItsTargetPathAlone) {
  const SafePath target = CsiBlockPublishPath(paths_, SpecName("pv-made"), PodUid("lost"));
  const auto device = paths_.ParseDeviceMount(target.Display());
  ASSERT_TRUE(device.has_value());
  const UniqueVolumeName stand_in(std::string(kCsiPluginName) + "/" + device->volume.str());
  for (const UniqueVolumeName& volume : {CsiUniqueName(kName, "vol-1"), stand_in}) {
    unrecorded_.Set({LeftAt(target, volume, SpecName(), "lost")});
    const Status held = Delete(MadeVolume());
    ASSERT_FALSE(held.ok());
    EXPECT_NE(held.error().message().find(target.Display()), std::string::npos)
        << held.error().message();
    kernel_.UnmountBelow(target.Display());
  }
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

TEST_F(CsiStorageTest, AfterLostRecordsAVolumeIsMadeAgainAsItselfAndAsNoOther) {
  const SafePath target = CsiTargetPath(paths_, PodUid("lost"), SpecName("pvc-c1"));
  const UniqueVolumeName volume = CsiUniqueName(kName, "vol-pvc-c1");
  unrecorded_.Set({LeftAt(target, volume, SpecName("pvc-c1"), "lost")});
  EXPECT_TRUE(Make().ok());
  UnrecordedMount as_other;
  as_other.plugin = kCsiPluginName;
  as_other.volume = volume;
  as_other.spec = SpecName("pvc-of-another");
  as_other.pod = PodUid("lost");
  as_other.places = {target.Display()};
  unrecorded_.Set({as_other});
  const auto refused = Make();
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().maybe_applied());
  EXPECT_NE(refused.error().message().find("volume pvc-of-another is mounted in pod lost"),
            std::string::npos)
      << refused.error().message();
}

TEST_F(CsiStorageTest, AVolumeThatSomebodyHasWrittenDownIsNotTheDriversToDelete) {
  PersistentVolume by_hand = MadeVolume();
  by_hand.metadata.annotations.clear();
  const Status refused = Delete(by_hand);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("pv.kubernetes.io/provisioned-by"), std::string::npos);
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

TEST_F(CsiStorageTest, ADriverWithoutAControllerHereDeletesNothing) {
  Serve({});
  const Status refused = Delete(MadeVolume());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("serves no controller here"), std::string::npos);
}

// ---- making larger ----

TEST_F(CsiStorageTest, StorageIsMadeLargerAndTheAnswerSaysWhetherTheNodeHasToFollow) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(MadeVolume(), false);
  EXPECT_FALSE(storage_->ExpandsStorage(spec));
  Serve({ControllerCapability::CREATE_DELETE_VOLUME, ControllerCapability::EXPAND_VOLUME});
  EXPECT_TRUE(storage_->ExpandsStorage(spec));
  EXPECT_FALSE(storage_->ExpandsOnlyUnused(spec));
  Grows(int64_t{3} << 30, true);
  const Result<ExpandedStorage> grown = Expand(int64_t{2} << 30);
  ASSERT_TRUE(grown.ok()) << grown.error().ToString();
  EXPECT_EQ(grown->size, Quantity::FromBytes(int64_t{3} << 30));
  EXPECT_TRUE(grown->needs_node);
  Grows(int64_t{2} << 30, false);
  EXPECT_FALSE(Expand(int64_t{2} << 30).value().needs_node);
}

TEST_F(CsiStorageTest, AGrowthThatEndsSmallerIsALie) {
  Serve({ControllerCapability::EXPAND_VOLUME});
  Grows(int64_t{2} << 30, false);
  const Result<ExpandedStorage> grown = Expand((int64_t{2} << 30) + 1);
  ASSERT_FALSE(grown.ok());
  EXPECT_TRUE(grown.error().maybe_applied());
  EXPECT_EQ(lies_, std::vector<std::string>{std::string(kName) + " ControllerExpandVolume"});
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kOutOfRange}) {
    Fails("ControllerExpandVolume", code);
    const Result<ExpandedStorage> refused = Expand(int64_t{2} << 30);
    ASSERT_FALSE(refused.ok());
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_EQ(refused.error().code(), code);
  }
}

TEST_F(CsiStorageTest, ADriverThatExpandsOfflineDoesSoOnlyUnused) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(MadeVolume(), false);
  using Expansion = ::csi::v1::PluginCapability::VolumeExpansion;
  Serve({ControllerCapability::EXPAND_VOLUME}, false, {Expansion::OFFLINE});
  EXPECT_TRUE(storage_->ExpandsOnlyUnused(spec));
  Serve({ControllerCapability::EXPAND_VOLUME}, false, {Expansion::OFFLINE, Expansion::ONLINE});
  EXPECT_FALSE(storage_->ExpandsOnlyUnused(spec));
}

}  // namespace
}  // namespace volumed
