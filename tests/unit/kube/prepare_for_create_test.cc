// A manifest that somebody has saved from a cluster is taken as a new object.
#include "kube/prepare_for_create.h"

#include <gtest/gtest.h>

#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

TEST(PrepareForCreateTest, APodThatHadEndedOrWasBeingDeletedElsewhereIsANewOneHere) {
  Object object = DecodeOne(R"(
apiVersion: v1
kind: Pod
metadata:
  name: web
  uid: 11111111-2222-3333-4444-555555555555
  creationTimestamp: "2025-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 30
spec: {containers: [{name: main, image: x}]}
status: {phase: Succeeded, podIP: 10.0.0.1}
)");
  PrepareForCreate(object);
  const Pod& pod = std::get<Pod>(object);
  EXPECT_FALSE(pod.metadata.creation_unix_millis);
  EXPECT_FALSE(pod.deletion_requested());
  EXPECT_FALSE(pod.metadata.deletion_grace_period_seconds);
  EXPECT_EQ(pod.status.phase, PodStatus().phase);
  EXPECT_EQ(pod.status.pod_ip, "10.0.0.1");
  EXPECT_EQ(pod.metadata.uid, "11111111-2222-3333-4444-555555555555");
}

TEST(PrepareForCreateTest, AClaimsStatusIsNotTheUsersToSay) {
  Object object = DecodeOne(R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
status: {phase: Bound, capacity: {storage: 5Gi}}
)");
  PrepareForCreate(object);
  EXPECT_EQ(std::get<PersistentVolumeClaim>(object).status, PersistentVolumeClaimStatus());
}

TEST(PrepareForCreateTest, AGrowthThatAClusterHadBegunWasForgotten) {
  for (const char* growing : {"allocatedResourceStatuses: {storage: NodeResizePending}",
                              "conditions: [{type: Resizing, status: 'False'}, "
                              "{type: FileSystemResizePending, status: 'True'}]"}) {
    const std::string manifest = R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}, )";
    Object object = DecodeOne(manifest + growing + "}\n");
    PrepareForCreate(object);
    const PersistentVolumeClaimStatus once = std::get<PersistentVolumeClaim>(object).status;
    EXPECT_FALSE(once.phase);
    EXPECT_EQ(once.capacity.at("storage"), Quantity::FromBytes(int64_t{1} << 30));
    EXPECT_TRUE(once.allocated_resources.empty());
    EXPECT_LE(once.conditions.size(), 1u);
    PrepareForCreate(object);  // as when the file of what was applied is read
    EXPECT_EQ(std::get<PersistentVolumeClaim>(object).status, once);
  }
}

// Nobody else says on a node without an API server that a volume is attached.
TEST(PrepareForCreateTest, AnAttachmentsStatusIsThatOfWhoeverGivesIt) {
  Object object = DecodeOne(R"(
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: va, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {attacher: d, nodeName: n1, source: {persistentVolumeName: pv}}
status: {attached: true, attachmentMetadata: {lun: "7"}}
)");
  PrepareForCreate(object);
  const auto& attachment = std::get<VolumeAttachment>(object);
  EXPECT_TRUE(attachment.attached);
  EXPECT_EQ(attachment.attachment_metadata, (StringMap{{"lun", "7"}}));
  EXPECT_FALSE(attachment.metadata.deletion_unix_millis);
}

}  // namespace
}  // namespace volumed
