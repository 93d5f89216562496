#include "kube/decode.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kube/field_rules.h"
#include "kube/static_pod.h"
#include "places.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

TEST(Decode, DefaultsAreThoseOfTheApiServer) {
  const Pod pod = DecodePod(PodYaml("web", "", R"(
  volumes:
    - {name: s, secret: {secretName: x}}
    - {name: c, configMap: {name: x}}
    - {name: d, downwardAPI: {}}
    - {name: p, projected: {sources: [{serviceAccountToken: {path: t}}]}}
    - {name: none}
    - {name: null-source, emptyDir: null}
    - {name: i, iscsi: {targetPortal: h, iqn: iqn.x, lun: 0}}
)"));
  EXPECT_EQ(pod.metadata.name_space, "default");
  EXPECT_EQ(pod.spec.service_account_name, "default");
  EXPECT_EQ(pod.spec.termination_grace_period_seconds, 30);
  EXPECT_EQ(pod.spec.restart_policy, RestartPolicy::kAlways);
  EXPECT_TRUE(pod.spec.host_users);
  EXPECT_FALSE(pod.spec.security_context.fs_group_change_policy.has_value());
  EXPECT_EQ(pod.status.phase, PodPhase::kUnknown);
  const auto& volumes = pod.spec.volumes;
  ASSERT_EQ(volumes.size(), 7U);
  EXPECT_EQ(std::get<SecretVolumeSource>(volumes[0].source).default_mode, 0644);
  EXPECT_EQ(std::get<ConfigMapVolumeSource>(volumes[1].source).default_mode, 0644);
  EXPECT_EQ(std::get<DownwardApiVolumeSource>(volumes[2].source).default_mode, 0644);
  const auto& projected = std::get<ProjectedVolumeSource>(volumes[3].source);
  EXPECT_EQ(projected.default_mode, 0644);
  EXPECT_EQ(std::get<ServiceAccountTokenProjection>(projected.sources[0]).expiration_seconds, 3600);
  EXPECT_EQ(VolumeSourceKind(volumes[4].source), "emptyDir");
  EXPECT_EQ(VolumeSourceKind(volumes[5].source), "emptyDir");
  EXPECT_EQ(std::get<IscsiVolumeSource>(volumes[6].source).iscsi_interface, "default");
}

TEST(Decode, SecretDataIsDecodedAndStringDataWins) {
  const Object object = DecodeOne(
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
      "data: {a: QQ==, b: \"Qk\\nI=\"}\nstringData: {a: plain, c: \"\"}\n");
  const auto& secret = std::get<SecretObject>(object);
  EXPECT_EQ(secret.type, "Opaque");
  ASSERT_EQ(secret.data.size(), 3U);
  EXPECT_EQ(secret.data.at("a").Reveal(), "plain");
  EXPECT_EQ(secret.data.at("b").Reveal(), "BB");
  EXPECT_EQ(secret.data.at("c").Reveal(), "");
}

TEST(Decode, UnknownFieldsAreIgnored) {
  const Pod pod = DecodePod(PodYaml("web", "", "  tolerations: [{key: a}]\n  hostname: 5\n"));
  EXPECT_EQ(pod.metadata.name, "web");
}

TEST(Decode, PathsAreCleanedWhereThatIsHarmless) {
  const Pod pod = DecodePod(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  volumes: [{name: v}]\n"
      "  containers: [{name: c, volumeMounts: [{name: v, mountPath: //a/./b/}]}]\n");
  EXPECT_EQ(pod.spec.containers[0].volume_mounts[0].mount_path, "/a/b");
}

TEST(Decode, OneWrongDocumentDisturbsNoOther) {
  const ManifestDecode decode = DecodeManifest(
      "all.yaml", ConfigMapYaml("a", "1") + "---\nfoo: [\n---\n" + ConfigMapYaml("B_ad", "2") +
                      "---\n" + ConfigMapYaml("c", "3") + "---\njust text\n");
  ASSERT_EQ(decode.objects.size(), 2U);
  EXPECT_EQ(decode.documents, 5);
  EXPECT_EQ(decode.objects[0].document, 0);
  EXPECT_EQ(decode.objects[1].document, 3);
  ASSERT_EQ(decode.problems.size(), 3U);
  EXPECT_EQ(decode.problems[0].document, 1);
  EXPECT_EQ(decode.problems[1].field_path, "metadata.name");
  EXPECT_EQ(decode.problems[1].object, "ConfigMap");
  EXPECT_EQ(decode.problems[2].ToString(), "all.yaml: document 5: must be an object");
}

TEST(Decode, ListsAreOpenedAndTheirItemsStandAlone) {
  const ManifestDecode decode = DecodeManifest("list.yaml", R"(
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}
  - {apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: inner}}]}
  - 7
)");
  ASSERT_EQ(decode.objects.size(), 2U);
  EXPECT_EQ(KeyOf(decode.objects[1].object).name, "inner");
  ASSERT_EQ(decode.problems.size(), 2U);
  EXPECT_EQ(decode.problems[0].field_path, "items[1].metadata.name");
  EXPECT_EQ(decode.problems[1].field_path, "items[3]");
  EXPECT_EQ(decode.documents, 1);
}

TEST(Decode, WhatIsNotHandledIsRefusedByName) {
  const std::string handled =
      "Pod, Secret, ConfigMap, Node, PersistentVolume, PersistentVolumeClaim and List of \"v1\", "
      "StorageClass, CSIDriver, CSINode, VolumeAttachment of \"storage.k8s.io/v1\", "
      "VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotClass of "
      "\"snapshot.storage.k8s.io/v1\" are";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"apiVersion: apps/v1\nkind: Deployment\n",
       "kind: \"Deployment\" of \"apps/v1\" is not handled; " + handled},
      {"apiVersion: v2\nkind: Pod\n", "kind: \"Pod\" of \"v2\" is not handled; " + handled},
      {"apiVersion: v1\nkind: StorageClass\n",
       "kind: \"StorageClass\" of \"v1\" is not handled; " + handled},
      {"kind: Pod\n", "apiVersion: is required"},
      {"apiVersion: v1\n", "kind: is required"},
      {"apiVersion: v1\nkind: List\n", "items: is required"},
      {"apiVersion: v1\nkind: List\nitems: {}\n", "items: must be a list of objects"},
  };
  for (const auto& [manifest, reason] : cases) {
    const ManifestDecode decode = DecodeManifest("f", manifest);
    ASSERT_EQ(decode.problems.size(), 1U) << manifest;
    EXPECT_EQ(decode.problems[0].ToString(), "f: document 1: " + reason);
  }
}

TEST(Decode, SizeIsBounded) {
  const std::string large(kMaxManifestBytes + 1, '#');
  const ManifestDecode decode = DecodeManifest("big.yaml", large);
  ASSERT_EQ(decode.problems.size(), 1U);
  EXPECT_EQ(decode.problems[0].ToString(), "big.yaml: is larger than 10485760 bytes");
}

TEST(Encode, DecodesIntoAnEqualObject) {
  std::ifstream file(SourcePath("tests/unit/kube/testdata/every_field.yaml"));
  std::ostringstream text;
  text << file.rdbuf();
  const ManifestDecode first = DecodeManifest("f", text.str());
  ASSERT_EQ(first.problems.size(), 0U);
  ASSERT_GT(first.objects.size(), kAllObjectKinds.size());
  for (const DecodedObject& decoded : first.objects) {
    const std::string json = EncodeObjectJson(decoded.object, SecretEncoding::kWithSecrets);
    const Object again = DecodeOne(json);
    EXPECT_TRUE(again == decoded.object) << json;
    EXPECT_EQ(EncodeObjectJson(again, SecretEncoding::kWithSecrets), json);
  }
}

TEST(Encode, WithholdsSecretsUnlessAsked) {
  const Object secret =
      DecodeOne("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n");
  const std::string json = EncodeObjectJson(secret);
  EXPECT_EQ(json.find("aHVudGVyMg"), std::string::npos) << json;
  // What was withheld must not come back as a value.
  const ManifestDecode decode = DecodeManifest("s.json", json);
  ASSERT_EQ(decode.problems.size(), 1U);
  EXPECT_EQ(decode.problems[0].field_path, "data[k]");
}

TEST(StaticPod, GetsItsNameFromTheNodeAndItsUidFromWhoeverKnowsIt) {
  Pod pod = DecodePod(PodYaml("web", ""));
  EXPECT_EQ(StaticPodBaseName(pod), std::nullopt);
  ASSERT_TRUE(ApplyStaticPodDefaults(NodeName("Node-1"), pod).ok());
  EXPECT_EQ(pod.metadata.name, "web-node-1");
  EXPECT_EQ(pod.spec.node_name, "Node-1");
  EXPECT_EQ(pod.metadata.annotations.at("kubernetes.io/config.source"), "file");
  EXPECT_EQ(pod.metadata.uid, "");
  SetPodUid(pod, "u-1");
  EXPECT_EQ(pod.metadata.uid, "u-1");
  EXPECT_EQ(pod.metadata.annotations.at("kubernetes.io/config.hash"), "u-1");
  EXPECT_EQ(StaticPodBaseName(pod), "web");
  // A uid does not make a static pod of one that is none.
  Pod other = DecodePod(PodYaml("web", ""));
  SetPodUid(other, "u-2");
  EXPECT_TRUE(other.metadata.annotations.empty());
}

TEST(StaticPod, LeavesAPodWithUidAloneAndRefusesLongNames) {
  Pod pod = DecodePod(PodYaml("web", "u-1"));
  const Pod before = pod;
  ASSERT_TRUE(ApplyStaticPodDefaults(NodeName("n"), pod).ok());
  EXPECT_EQ(pod, before);
  Pod longest = DecodePod(PodYaml(std::string(250, 'a'), ""));
  const Status status = ApplyStaticPodDefaults(NodeName("node"), longest);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(longest.metadata.name, std::string(250, 'a'));
}

TEST(PutIntoNamespace, WhatIsNoNameOfANamespaceIsRefused) {
  for (const std::string& bad :
       {std::string("a.b"), std::string("a/../b"), std::string("Prod"), std::string("a\0b", 3)}) {
    ManifestDecode decoded = DecodeManifest("f", ConfigMapYaml("c", "1"));
    ASSERT_EQ(decoded.objects.size(), 1U);
    const Status status = PutIntoNamespace(bad, decoded.objects[0]);
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(status.error().message(), "the namespace " + *rules::kDnsLabel.broken(bad));
    EXPECT_EQ(MetaOf(decoded.objects[0].object).name_space, "default");
  }
}

TEST(Objects, KindsAndKeysHaveNames) {
  EXPECT_EQ(ParseObjectKind("pods"), ObjectKind::kPod);
  EXPECT_EQ(ParseObjectKind("ConfigMap"), ObjectKind::kConfigMap);
  EXPECT_EQ(ParseObjectKind("deployment"), std::nullopt);
  EXPECT_EQ(ParseObjectKind(""), std::nullopt);
  EXPECT_EQ(ParseObjectKind("StorageClasses"), ObjectKind::kStorageClass);
  EXPECT_EQ(ParseObjectKind("pvc"), ObjectKind::kPersistentVolumeClaim);
  EXPECT_EQ(ParseObjectKind("csidriver"), ObjectKind::kCsiDriver);
  EXPECT_EQ(ParseObjectKind("csinodes"), ObjectKind::kCsiNode);
  EXPECT_EQ(ParseObjectKind("VolumeAttachment"), ObjectKind::kVolumeAttachment);
  EXPECT_EQ(ParseObjectKind("vs"), ObjectKind::kVolumeSnapshot);
  EXPECT_EQ(ParseObjectKind("volumesnapshotcontents"), ObjectKind::kVolumeSnapshotContent);
  EXPECT_EQ(ParseObjectKind("vsclass"), ObjectKind::kVolumeSnapshotClass);
  EXPECT_EQ(KindOf(Pod()), ObjectKind::kPod);
  EXPECT_EQ(KindOf(SecretObject()), ObjectKind::kSecret);
  EXPECT_EQ(KindOf(ConfigMapObject()), ObjectKind::kConfigMap);
  EXPECT_EQ(KindOf(NodeObject()), ObjectKind::kNode);
  EXPECT_EQ(KindOf(PersistentVolume()), ObjectKind::kPersistentVolume);
  EXPECT_EQ(KindOf(PersistentVolumeClaim()), ObjectKind::kPersistentVolumeClaim);
  EXPECT_EQ(KindOf(StorageClass()), ObjectKind::kStorageClass);
  EXPECT_EQ(KindOf(CsiDriverObject()), ObjectKind::kCsiDriver);
  EXPECT_EQ(KindOf(CsiNodeObject()), ObjectKind::kCsiNode);
  EXPECT_EQ(KindOf(VolumeAttachment()), ObjectKind::kVolumeAttachment);
  EXPECT_EQ(KindOf(VolumeSnapshot()), ObjectKind::kVolumeSnapshot);
  EXPECT_EQ(KindOf(VolumeSnapshotContent()), ObjectKind::kVolumeSnapshotContent);
  EXPECT_EQ(KindOf(VolumeSnapshotClass()), ObjectKind::kVolumeSnapshotClass);
  EXPECT_EQ(ToString(KeyOf(DecodeOne(ConfigMapYaml("c", "1")))), "ConfigMap default/c");
  EXPECT_EQ(ToString(KeyOf(DecodeOne("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"))),
            "Node n1");
}

}  // namespace
}  // namespace volumed
