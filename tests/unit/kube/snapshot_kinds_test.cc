// VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass: the rules that their custom
// resource definitions have, each as a case; what a manifest gives of their status; when they end.
#include <string>
#include <vector>

#include "kube/object_finder.h"
#include "kube/prepare_for_create.h"
#include "kube/validate_update.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

std::string SnapshotYaml(const std::string& spec, const std::string& rest = "") {
  return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: s}\n"
         "spec: {" +
         spec + "}\n" + rest;
}

std::string ContentYaml(const std::string& spec, const std::string& rest = "") {
  return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotContent\n"
         "metadata: {name: c}\nspec: {" +
         spec + "}\n" + rest;
}

std::string SnapshotClassYaml(const std::string& fields) {
  return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\n"
         "metadata: {name: k}\n" +
         fields;
}

const std::string kRef = "volumeSnapshotRef: {name: s, namespace: default}, ";
const std::string kRest = "deletionPolicy: Delete, driver: d, ";

struct BadSnapshotCase {
  std::string manifest;
  std::string path;
  std::string reason;
};

TEST(SnapshotKinds, WhatTheirDefinitionsForbidIsRefusedWithPathAndReason) {
  const std::string one_of_snapshot =
      "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set";
  const std::string one_of_content = "exactly one of volumeHandle and snapshotHandle must be set";
  const std::vector<BadSnapshotCase> cases = {
      {SnapshotYaml(""), "spec.source", "is required"},
      {SnapshotYaml("source: {}"), "spec.source", one_of_snapshot},
      {SnapshotYaml("source: {persistentVolumeClaimName: a, volumeSnapshotContentName: b}"),
       "spec.source", one_of_snapshot},
      {SnapshotYaml("source: {persistentVolumeClaimName: a}, volumeSnapshotClassName: \"\""),
       "spec.volumeSnapshotClassName", "must not be the empty string when set"},
      {ContentYaml(kRest + "source: {snapshotHandle: h}"), "spec.volumeSnapshotRef", "is required"},
      {ContentYaml("volumeSnapshotRef: {name: s}, " + kRest + "source: {snapshotHandle: h}"),
       "spec.volumeSnapshotRef.namespace", "is required"},
      {ContentYaml("volumeSnapshotRef: {namespace: s}, " + kRest + "source: {snapshotHandle: h}"),
       "spec.volumeSnapshotRef.name", "is required"},
      {ContentYaml(kRef + "driver: d, source: {snapshotHandle: h}"), "spec.deletionPolicy",
       "is required"},
      {ContentYaml(kRef + "driver: d, deletionPolicy: Recycle, source: {snapshotHandle: h}"),
       "spec.deletionPolicy", "\"Recycle\" is not one of Delete, Retain"},
      {ContentYaml(kRef + "deletionPolicy: Delete, source: {snapshotHandle: h}"), "spec.driver",
       "is required"},
      {ContentYaml(kRef + kRest), "spec.source", "is required"},
      {ContentYaml(kRef + kRest + "source: {}"), "spec.source", one_of_content},
      {ContentYaml(kRef + kRest + "source: {snapshotHandle: h, volumeHandle: v}"), "spec.source",
       one_of_content},
      {ContentYaml(kRef + kRest + "source: {snapshotHandle: h}, sourceVolumeMode: Raw"),
       "spec.sourceVolumeMode", "\"Raw\" is not one of Filesystem, Block"},
      {SnapshotClassYaml("deletionPolicy: Delete\n"), "driver", "is required"},
      {SnapshotClassYaml("driver: d\n"), "deletionPolicy", "is required"},
      {SnapshotClassYaml("driver: d\ndeletionPolicy: Keep\n"), "deletionPolicy",
       "\"Keep\" is not one of Delete, Retain"},
  };
  for (const BadSnapshotCase& bad : cases) {
    SCOPED_TRACE(bad.manifest);
    const ManifestDecode decode = DecodeManifest("f", bad.manifest);
    EXPECT_TRUE(decode.objects.empty());
    ASSERT_EQ(decode.problems.size(), 1U) << ProblemsText(decode.problems);
    EXPECT_EQ(decode.problems[0].field_path, bad.path);
    EXPECT_EQ(decode.problems[0].reason, bad.reason);
  }
}

TEST(SnapshotKinds, TheirFieldsAreRead) {
  const auto snapshot = std::get<VolumeSnapshot>(
      DecodeOne(SnapshotYaml("source: {persistentVolumeClaimName: data}")));
  EXPECT_EQ(snapshot.metadata.name_space, "default");
  EXPECT_EQ(snapshot.spec.persistent_volume_claim_name, "data");
  EXPECT_EQ(snapshot.spec.volume_snapshot_class_name, std::nullopt);
  EXPECT_EQ(snapshot.status.ready_to_use, std::nullopt);
  const auto content = std::get<VolumeSnapshotContent>(
      DecodeOne(ContentYaml(kRef + kRest + "source: {snapshotHandle: h}")));
  EXPECT_EQ(content.metadata.name_space, "");
  EXPECT_EQ(content.spec.volume_snapshot_ref, (SnapshotReference{"default", "s", ""}));
  EXPECT_EQ(content.spec.deletion_policy, SnapshotDeletionPolicy::kDelete);
  EXPECT_EQ(content.spec.snapshot_handle, "h");
  const auto of_class = std::get<VolumeSnapshotClass>(
      DecodeOne(SnapshotClassYaml("driver: d\ndeletionPolicy: Retain\n")));
  EXPECT_EQ(of_class.driver, "d");
  EXPECT_EQ(of_class.deletion_policy, SnapshotDeletionPolicy::kRetain);
}

std::string ChangeOf(const std::string& before, const std::string& now) {
  return ToString(ValidateUpdate(DecodeOne(before), DecodeOne(now), /*bound=*/false));
}

TEST(SnapshotKinds, ASnapshotsSourceNeverChangesAndItsClassMay) {
  const std::string of_claim = SnapshotYaml("source: {persistentVolumeClaimName: a}");
  const std::string of_content = SnapshotYaml("source: {volumeSnapshotContentName: a}");
  EXPECT_EQ(ChangeOf(of_claim, SnapshotYaml("source: {persistentVolumeClaimName: a}, "
                                            "volumeSnapshotClassName: k")),
            "");
  EXPECT_EQ(ChangeOf(of_claim, SnapshotYaml("source: {persistentVolumeClaimName: b}")),
            "spec.source.persistentVolumeClaimName: persistentVolumeClaimName is immutable");
  EXPECT_EQ(ChangeOf(of_claim, of_content),
            "spec.source.persistentVolumeClaimName: persistentVolumeClaimName is required once "
            "set");
  EXPECT_EQ(ChangeOf(of_content, SnapshotYaml("source: {volumeSnapshotContentName: b}")),
            "spec.source.volumeSnapshotContentName: volumeSnapshotContentName is immutable");
  EXPECT_EQ(ChangeOf(of_content, of_claim),
            "spec.source.volumeSnapshotContentName: volumeSnapshotContentName is required once "
            "set");
}

TEST(SnapshotKinds, AContentsSourceAndModeNeverChangeAndItsPolicyMay) {
  const std::string all = kRef + kRest;
  const std::string of_snapshot = ContentYaml(all + "source: {snapshotHandle: h}");
  const std::string of_volume = ContentYaml(all + "source: {volumeHandle: h}");
  const std::string of_block =
      ContentYaml(all + "source: {snapshotHandle: h}, sourceVolumeMode: Block");
  EXPECT_EQ(ChangeOf(of_snapshot, ContentYaml(kRef + "deletionPolicy: Retain, driver: d, source: "
                                                     "{snapshotHandle: h}")),
            "");
  EXPECT_EQ(ChangeOf(of_snapshot, of_block), "") << "it is known only now";
  EXPECT_EQ(ChangeOf(of_snapshot, ContentYaml(all + "source: {snapshotHandle: i}")),
            "spec.source.snapshotHandle: snapshotHandle is immutable");
  EXPECT_EQ(ChangeOf(of_volume, ContentYaml(all + "source: {volumeHandle: i}")),
            "spec.source.volumeHandle: volumeHandle is immutable");
  EXPECT_EQ(ChangeOf(of_volume, of_snapshot),
            "spec.source.volumeHandle: volumeHandle is required once set");
  EXPECT_EQ(ChangeOf(of_snapshot, of_volume),
            "spec.source.snapshotHandle: snapshotHandle is required once set");
  EXPECT_EQ(ChangeOf(of_block, of_snapshot),
            "spec.sourceVolumeMode: sourceVolumeMode is required once set");
  EXPECT_EQ(ChangeOf(of_block, ContentYaml(all + "source: {snapshotHandle: h}, sourceVolumeMode: "
                                                 "Filesystem")),
            "spec.sourceVolumeMode: sourceVolumeMode is immutable");
}

// Otherwise a manifest that was saved from a cluster would seem to be ready here.
TEST(SnapshotKinds, TheStatusOfAManifestIsNotTaken) {
  Object snapshot = DecodeOne(SnapshotYaml("source: {persistentVolumeClaimName: a}",
                                           "status: {readyToUse: true, restoreSize: 1Gi}\n"));
  Object content = DecodeOne(ContentYaml(kRef + kRest + "source: {snapshotHandle: h}",
                                         "status: {readyToUse: true, snapshotHandle: h}\n"));
  EXPECT_EQ(std::get<VolumeSnapshot>(snapshot).status.ready_to_use, true);
  PrepareForCreate(snapshot);
  PrepareForCreate(content);
  EXPECT_EQ(std::get<VolumeSnapshot>(snapshot).status, VolumeSnapshotStatus());
  EXPECT_EQ(std::get<VolumeSnapshotContent>(content).status, VolumeSnapshotContentStatus());
}

TEST(SnapshotKinds, TheyEndByCommandAlone) {
  for (const ObjectKind kind : {ObjectKind::kVolumeSnapshot, ObjectKind::kVolumeSnapshotContent,
                                ObjectKind::kVolumeSnapshotClass}) {
    EXPECT_TRUE(OutlivesPods(kind)) << ObjectKindName(kind);
  }
  EXPECT_TRUE(HasUidOnRecord(ObjectKind::kVolumeSnapshot));
  EXPECT_TRUE(HasUidOnRecord(ObjectKind::kVolumeSnapshotContent));
  EXPECT_FALSE(HasUidOnRecord(ObjectKind::kVolumeSnapshotClass));
}

// An older version of a kind that the program has is a slip, behind which one of its objects
// stands; groups of snapshots are another group's.
TEST(SnapshotKinds, ABetaVersionIsNoOtherKindAndAGroupIs) {
  const auto is_other = [](const std::string& api, const std::string& kind) {
    const ManifestDecode decode =
        DecodeManifest("f", "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: a}\n");
    return decode.problems.size() == 1 && decode.problems[0].is_of_other_kind;
  };
  EXPECT_FALSE(is_other("snapshot.storage.k8s.io/v1beta1", "VolumeSnapshot"));
  EXPECT_TRUE(is_other("groupsnapshot.storage.k8s.io/v1", "VolumeGroupSnapshot"));
}

}  // namespace
}  // namespace volumed
