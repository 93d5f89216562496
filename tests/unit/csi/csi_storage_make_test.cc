// The volumes that a driver's controller makes: what it is asked, which answers are believed, and
// how what a try may have left is taken back.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "csi/csi_controller.h"
#include "csi/csi_names.h"
#include "csi/csi_storage.h"
#include "csi/rpc/csi_outcome.h"
#include "unit/csi/storage_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;

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

// What an earlier try has made may be deleted by hand while the same call is made again.
TEST_F(CsiStorageTest, AnAnswerThatNamesWhatIsBeingDeletedAtThatMomentIsNoLie) {
  VolumeOptions options = Options();
  options.may_be_new = [](const PersistentVolume&) -> Status {
    return Error::NotApplied(Code::kAborted, "it is being deleted");
  };
  const Result<PersistentVolume> made = Make(options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "it is being deleted");
  EXPECT_TRUE(made.error().maybe_applied()) << "only the same call may follow";
  EXPECT_TRUE(lies_.empty());
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

// The claim got a volume that no pod could have, and that perhaps went a moment later.
TEST_F(CsiStorageTest, AClaimGotAVolumeOfWhichADeletionByHandHadAnOpenOutcome) {
  ::csi::v1::DeleteVolumeRequest deletion;
  deletion.set_volume_id("vol-pvc-c1");
  const CsiCommandRecord by_hand = CsiCommandOf(kName, *FindCsiMethod("DeleteVolume"), deletion, 0);
  ASSERT_TRUE(commands_.Begin(by_hand).ok());
  commands_.End(by_hand, Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"));
  const Result<PersistentVolume> made = Make();
  ASSERT_FALSE(made.ok());
  EXPECT_TRUE(made.error().maybe_applied()) << "only the same call may follow";
  EXPECT_NE(made.error().message().find("DeleteVolume by hand has an open outcome: make it again"),
            std::string::npos)
      << made.error().message();
  EXPECT_TRUE(lies_.empty());
  // Made again by hand it has an outcome, and the claim gets what the driver makes then.
  ASSERT_TRUE(commands_.Begin(by_hand).ok());
  commands_.End(by_hand, OkStatus());
  const Result<PersistentVolume> anew = Make();
  ASSERT_TRUE(anew.ok()) << anew.error().ToString();
  EXPECT_EQ(Source(*anew).volume_handle, "vol-pvc-c1");
}

// It was bound and put on record: a driver could fill the disk of the records.
TEST_F(CsiStorageTest, AVolumeContextOfMegabytesWasTaken) {
  const auto with = [](size_t bytes) {
    return [bytes](::csi::v1::Volume& made) {
      made.clear_volume_context();
      (*made.mutable_volume_context())["key"] = std::string(bytes - 3, 'x');
    };
  };
  ExpectLie(with(kMostCsiContextBytes + 1),
            "its volume_context has 65537 bytes; a driver may give 65536 at most");
  Creates(with(kMostCsiContextBytes));
  const Result<PersistentVolume> made = Make();
  EXPECT_TRUE(made.ok()) << made.error().ToString();
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

TEST_F(CsiStorageTest, AVolumeIsMadeFromASnapshotAndOneOfSomethingElseIsALie) {
  VolumeOptions options = Options();
  options.content.emplace();
  options.content->driver = kName;
  options.content->handle = "snap";
  options.content->is_snapshot = true;
  options.content->size = Quantity::FromBytes(1);
  const Result<PersistentVolume> refused = NewProvisioner(options)->Plan();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("makes no volumes from snapshots"), std::string::npos);
  Serve({ControllerCapability::CREATE_DELETE_VOLUME, ControllerCapability::CREATE_DELETE_SNAPSHOT});
  // A volume of that id is no snapshot of it.
  ExpectLie(
      [](::csi::v1::Volume& made) {
        made.mutable_content_source()->mutable_volume()->set_volume_id("snap");
      },
      "it was not made from what it was to be made from", options);
  EXPECT_EQ(asked_.at(0).volume_content_source().snapshot().snapshot_id(), "snap");
  EXPECT_FALSE(asked_.at(0).volume_content_source().has_volume());
  Creates([](::csi::v1::Volume& made) {
    made.mutable_content_source()->mutable_snapshot()->set_snapshot_id("snap");
  });
  EXPECT_TRUE(Make(options).ok());
}

TEST_F(CsiStorageTest, AVolumeWhoseSizeTheDriverDoesNotSayHasWhatWasAskedFor) {
  Creates([](::csi::v1::Volume& made) { made.set_capacity_bytes(0); });
  EXPECT_EQ(Make().value().spec.capacity, Quantity::FromBytes(1 << 30));
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

}  // namespace
}  // namespace volumed
