// PersistentVolume, PersistentVolumeClaim, StorageClass, CSIDriver, CSINode and VolumeAttachment:
// defaults, rules over several fields, refused sources, selectors, the claims of pods.
#include "kube/storage_objects.h"

#include <string>
#include <vector>

#include "kube/ephemeral_claim.h"
#include "kube/refused_sources.h"
#include "kube/selectors.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

std::string VolumeYaml(const std::string& spec) {
  return "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {" + spec + "}\n";
}
std::string ClaimWithSpec(const std::string& spec) {
  return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {" + spec + "}\n";
}
std::string ClassYaml(const std::string& fields) {
  return "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: sc}\n" + fields +
         "\n";
}
std::string DriverYaml(const std::string& name, const std::string& spec) {
  return "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: " + name + "}\nspec: {" +
         spec + "}\n";
}
std::string NodeYaml(const std::string& drivers) {
  return "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [" +
         drivers + "]}\n";
}
// `rest` is what follows the spec.
std::string AttachmentYaml(const std::string& source, const std::string& rest = "") {
  return "apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va}\nspec: "
         "{attacher: csi.example.org, nodeName: n1, source: {" +
         source + "}}\n" + rest;
}
// An inline volume's source with `rest` behind what is required.
std::string InlineSource(const std::string& rest = "") {
  return "inlineVolumeSpec: {csi: {driver: csi.example.org, volumeHandle: v}, accessModes: "
         "[ReadWriteOnce]" +
         rest + "}";
}

constexpr const char* kSmall = "capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], ";
constexpr const char* kAsk = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}";

TEST(StorageObjects, DefaultsAreThoseOfTheApiServer) {
  const auto volume = std::get<PersistentVolume>(
      DecodeOne(VolumeYaml(std::string(kSmall) + "hostPath: {path: /x}")));
  EXPECT_EQ(volume.metadata.name_space, "");
  EXPECT_EQ(volume.spec.reclaim_policy, ReclaimPolicy::kRetain);
  EXPECT_EQ(volume.spec.volume_mode, VolumeMode::kFilesystem);
  EXPECT_EQ(volume.status.phase, std::nullopt);
  const auto claim = std::get<PersistentVolumeClaim>(DecodeOne(ClaimWithSpec(kAsk)));
  EXPECT_EQ(claim.metadata.name_space, "default");
  EXPECT_EQ(claim.spec.storage_class_name, std::nullopt);
  EXPECT_EQ(claim.spec.selector, std::nullopt);
  const auto storage_class = std::get<StorageClass>(DecodeOne(ClassYaml("provisioner: a/b")));
  EXPECT_EQ(storage_class.reclaim_policy, ReclaimPolicy::kDelete);
  EXPECT_EQ(storage_class.volume_binding_mode, VolumeBindingMode::kImmediate);
  const auto driver = std::get<CsiDriverObject>(DecodeOne(DriverYaml("d", "")));
  EXPECT_TRUE(driver.attach_required);
  EXPECT_EQ(driver.fs_group_policy, FsGroupPolicy::kReadWriteOnceWithFsType);
  EXPECT_EQ(driver.service_account_token_in_secrets, std::nullopt);
  const auto node = std::get<CsiNodeObject>(DecodeOne(NodeYaml("{name: d, nodeID: a}")));
  EXPECT_EQ(node.metadata.name_space, "");
  EXPECT_EQ(node.drivers.at(0).allocatable_count, std::nullopt) << "it is unbounded";
  const auto attachment =
      std::get<VolumeAttachment>(DecodeOne(AttachmentYaml("persistentVolumeName: pv")));
  EXPECT_FALSE(attachment.attached);
  EXPECT_EQ(attachment.attach_error, std::nullopt);
}

TEST(StorageObjects, ANodeMayHaveNoCsiDriver) {
  for (const std::string drivers : {"{drivers: []}", "{}"}) {
    const Object node = DecodeOne(
        "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: " + drivers +
        "\n");
    EXPECT_TRUE(std::get<CsiNodeObject>(node).drivers.empty());
    EXPECT_EQ(DecodeOne(EncodeObjectJson(node)), node);
  }
}

TEST(StorageObjects, AnAttachmentOfAnInlineVolumeNeedsNoCapacity) {
  const auto attachment = std::get<VolumeAttachment>(DecodeOne(AttachmentYaml(InlineSource())));
  ASSERT_TRUE(attachment.inline_volume_spec.has_value());
  EXPECT_EQ(attachment.inline_volume_spec->csi.volume_handle, "v");
  EXPECT_EQ(attachment.inline_volume_spec->reclaim_policy, ReclaimPolicy::kRetain);
  EXPECT_EQ(attachment.persistent_volume_name, "");
}

// An older version of a kind that the program has is a slip, behind which one of its objects
// stands.
TEST(StorageObjects, CsiKindsOfABetaGroupAreNoOtherKinds) {
  for (const std::string kind : {"CSINode", "VolumeAttachment"}) {
    const ManifestDecode decode = DecodeManifest(
        "f", "apiVersion: storage.k8s.io/v1beta1\nkind: " + kind + "\nmetadata: {name: a}\n");
    ASSERT_EQ(decode.problems.size(), 1U);
    EXPECT_FALSE(decode.problems[0].is_of_other_kind) << kind;
  }
}

TEST(StorageObjects, EmptyClassIsNotAnAbsentOne) {
  const Object object = DecodeOne(ClaimWithSpec(std::string(kAsk) + ", storageClassName: \"\""));
  EXPECT_EQ(std::get<PersistentVolumeClaim>(object).spec.storage_class_name, "");
  EXPECT_EQ(DecodeOne(EncodeObjectJson(object)), object);
}

TEST(StorageObjects, ListsOfTheirKindsAreRead) {
  const ManifestDecode decode =
      DecodeManifest("l.yaml",
                     "apiVersion: storage.k8s.io/v1\nkind: StorageClassList\nitems:\n"
                     "  - {metadata: {name: a}, provisioner: x}\n"
                     "  - {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: b}, "
                     "provisioner: x}\n");
  EXPECT_EQ(ProblemsText(decode.problems), "");
  EXPECT_EQ(decode.objects.size(), 2U);
}

struct BadCase {
  std::string manifest;
  std::string path;
  std::string reason;
};

TEST(StorageObjects, RulesOverSeveralFieldsRefuseWithPathAndReason) {
  const std::string host = std::string(kSmall) + "hostPath: {path: /x}";
  const std::string affinity = host + ", nodeAffinity: {required: {nodeSelectorTerms: [{";
  const std::vector<BadCase> cases = {
      {VolumeYaml("capacity: {storage: 0}, accessModes: [ReadWriteOnce], hostPath: {path: /x}"),
       "spec.capacity.storage", "must be greater than zero"},
      {VolumeYaml(kSmall), "spec", "names no volume source of a kind that this program knows"},
      {VolumeYaml(host + ", nfs: {server: a, path: /x}"), "spec.nfs",
       "more than one source is given, only one is possible"},
      {VolumeYaml("capacity: {storage: 1Gi}, accessModes: [ReadWriteOncePod, ReadOnlyMany], "
                  "hostPath: {path: /x}"),
       "spec.accessModes", "ReadWriteOncePod excludes every other access mode"},
      {VolumeYaml(std::string(kSmall) + "local: {path: /x}"), "spec.nodeAffinity",
       "is required for a local volume"},
      {VolumeYaml(std::string(kSmall) +
                  "hostPath: {path: //}, persistentVolumeReclaimPolicy: Recycle"),
       "spec.persistentVolumeReclaimPolicy", "must not be Recycle for the host's whole \"/\""},
      {VolumeYaml(std::string(kSmall) + "fc: {}"), "spec.fc",
       "needs either targetWWNs or wwids, and not both"},
      {VolumeYaml(std::string(kSmall) +
                  "iscsi: {targetPortal: a, iqn: iqn.x, lun: 0, chapAuthSession: true}"),
       "spec.iscsi.secretRef", "is required with CHAP authentication"},
      {VolumeYaml(std::string(kSmall) + "azureDisk: {diskName: d, diskURI: /subscriptions/d}"),
       "spec.azureDisk.diskURI",
       "\"/subscriptions/d\" does not begin with \"https://\", as that of a blob does (a managed "
       "disk is asked for by kind: Managed)"},
      {VolumeYaml(std::string(kSmall) +
                  "azureDisk: {diskName: d, diskURI: \"https://a/d\", kind: Managed}"),
       "spec.azureDisk.diskURI",
       "\"https://a/d\" does not begin with \"/subscriptions/\", as that of a managed disk does"},
      {VolumeYaml(std::string(kSmall) +
                  "azureFile: {secretName: s, shareName: f, secretNamespace: \"\"}"),
       "spec.azureFile.secretNamespace", "must not be empty; left out, it is the claim's"},
      {VolumeYaml(affinity + "matchExpressions: [{key: a, operator: In}]}]}}"),
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values",
       "is required with In and NotIn"},
      {VolumeYaml(affinity + "matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}"),
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values",
       "must be empty with Exists and DoesNotExist"},
      {VolumeYaml(affinity + "matchExpressions: [{key: a, operator: Gt, values: [many]}]}]}}"),
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values",
       "must be one integer with Gt and Lt"},
      {VolumeYaml(affinity + "matchFields: [{key: metadata.uid, operator: In, values: [b]}]}]}}"),
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].key",
       "\"metadata.uid\" is no field of a node that can be selected by; only \"metadata.name\" is"},
      {VolumeYaml(affinity + "matchFields: [{key: metadata.name, operator: Exists}]}]}}"),
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].operator",
       "must be In or NotIn for a field"},
      {VolumeYaml(affinity +
                  "matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}}"),
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].values",
       "must be one value for a field"},
      {ClaimWithSpec("accessModes: [ReadWriteOnce], resources: {requests: {storage: -1Gi}}"),
       "spec.resources.requests.storage", "must be greater than zero"},
      {ClaimWithSpec("accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}, limits: "
                     "{storage: 1Gi}}"),
       "spec.resources.limits.storage", "must not be less than the request"},
      {ClaimWithSpec(std::string(kAsk) +
                     ", selector: {matchExpressions: [{key: a, operator: NotIn}]}"),
       "spec.selector.matchExpressions[0].values", "is required with In and NotIn"},
      {ClaimWithSpec(std::string(kAsk) +
                     ", selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}"),
       "spec.selector.matchExpressions[0].values", "must be empty with Exists and DoesNotExist"},
      {ClassYaml("provisioner: a/b\nreclaimPolicy: Recycle"), "reclaimPolicy",
       "must be Delete or Retain in a class"},
      {ClassYaml("provisioner: a/b\nallowedTopologies: [{matchLabelExpressions: [{key: a}]}]"),
       "allowedTopologies[0].matchLabelExpressions[0].values", "is required"},
      {DriverYaml(std::string(70, 'a'), ""), "metadata.name",
       "\"" + std::string(70, 'a') +
           "\" is not a CSI driver's name (letters, digits, '-' and '.', at most 63)"},
      {DriverYaml("d", "tokenRequests: [{audience: a}, {audience: a}]"),
       "spec.tokenRequests[1].audience", "\"a\" is the audience of another request too"},
      {DriverYaml("d", "serviceAccountTokenInSecrets: false"), "spec.serviceAccountTokenInSecrets",
       "is set, but no tokenRequests are specified"},
      {NodeYaml("{name: d, nodeID: a}, {name: d, nodeID: b}"), "spec.drivers[1].name",
       "\"d\" is the name of another driver too"},
      {NodeYaml("{name: d, nodeID: " + std::string(257, 'i') + "}"), "spec.drivers[0].nodeID",
       "must be 256 characters or less"},
      {NodeYaml("{name: d, nodeID: \"\"}"), "spec.drivers[0].nodeID", "is required"},
      {NodeYaml("{name: d, nodeID: a, topologyKeys: [z, z]}"), "spec.drivers[0].topologyKeys[1]",
       "\"z\" is there already"},
      {AttachmentYaml(""), "spec.source",
       "must specify exactly one of inlineVolumeSpec and persistentVolumeName"},
      {AttachmentYaml("persistentVolumeName: pv, " + InlineSource()), "spec.source",
       "must specify exactly one of inlineVolumeSpec and persistentVolumeName"},
      {AttachmentYaml(InlineSource(", capacity: {storage: 1Gi}")),
       "spec.source.inlineVolumeSpec.capacity",
       "may not be specified in the context of inline volumes"},
      {AttachmentYaml(InlineSource(", claimRef: {name: c, namespace: default}")),
       "spec.source.inlineVolumeSpec.claimRef",
       "may not be specified in the context of inline volumes"},
      {AttachmentYaml(InlineSource(", nodeAffinity: {required: {nodeSelectorTerms: []}}")),
       "spec.source.inlineVolumeSpec.nodeAffinity",
       "may not be specified in the context of inline volumes"},
      {AttachmentYaml(InlineSource(", persistentVolumeReclaimPolicy: Delete")),
       "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy",
       "may only be Retain in the context of inline volumes"},
      {AttachmentYaml("inlineVolumeSpec: {accessModes: [ReadWriteOnce], hostPath: {path: /x}}"),
       "spec.source.inlineVolumeSpec.csi", "is required"},
      {AttachmentYaml("inlineVolumeSpec: {csi: {driver: d, volumeHandle: v}, accessModes: "
                      "[ReadWriteOncePod, ReadOnlyMany]}"),
       "spec.source.inlineVolumeSpec.accessModes",
       "ReadWriteOncePod excludes every other access mode"},
      {AttachmentYaml("persistentVolumeName: pv",
                      "status: {attachError: {message: " + std::string(1025, 'm') + "}}\n"),
       "status.attachError.message", "must have at most 1024 bytes"},
      {AttachmentYaml("persistentVolumeName: pv",
                      "status: {detachError: {message: " + std::string(1025, 'm') + "}}\n"),
       "status.detachError.message", "must have at most 1024 bytes"},
      {AttachmentYaml("persistentVolumeName: pv",
                      "status: {attachmentMetadata: {k: " + std::string(256 * 1024, 'm') + "}}\n"),
       "status.attachmentMetadata", "must have at most 262144 bytes"},
      {PodYaml("p", "u",
               "  volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: "
               "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 0}}}}}}]\n"),
       "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage",
       "must be greater than zero"},
  };
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.manifest);
    const ManifestDecode decode = DecodeManifest("f", bad.manifest);
    EXPECT_TRUE(decode.objects.empty());
    ASSERT_EQ(decode.problems.size(), 1U) << ProblemsText(decode.problems);
    EXPECT_EQ(decode.problems[0].field_path, bad.path);
    EXPECT_EQ(decode.problems[0].reason, bad.reason);
  }
}

TEST(StorageObjects, EphemeralVolumeWhoseClaimWouldHaveABadNameIsRefused) {
  const ManifestDecode decode = DecodeManifest(
      "f", PodYaml(std::string(250, 'p'), "u",
                   "  volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {" +
                       std::string(kAsk) + "}}}}]\n"));
  ASSERT_EQ(decode.problems.size(), 1U);
  EXPECT_EQ(decode.problems[0].field_path, "spec.volumes[0].name");
  EXPECT_EQ(decode.problems[0].reason.find("makes a bad name of its claim: "), 0U);
}

TEST(RefusedSources, EveryRemovedSourceNamesItsSuccessor) {
  for (const RemovedSource& removed : kRemovedSources) {
    SCOPED_TRACE(removed.field);
    const std::string source = std::string(removed.field) + ": {id: x}";
    const auto volume =
        std::get<PersistentVolume>(DecodeOne(VolumeYaml(std::string(kSmall) + source)));
    const Pod pod = DecodePod(PodYaml("p", "u", "  volumes: [{name: v, " + source + "}]\n"));
    const auto of_volume = RefusalOf(volume.spec.source);
    ASSERT_TRUE(of_volume.has_value());
    EXPECT_EQ(RefusalOf(pod.spec.volumes[0].source), of_volume);
    EXPECT_EQ(
        of_volume->find(std::string(removed.field) + " volumes are no longer part of Kubernetes"),
        0U);
    const std::string wanted = removed.csi_driver.empty()
                                   ? "no CSI driver replaces them"
                                   : "use the CSI driver " + std::string(removed.csi_driver);
    EXPECT_NE(of_volume->find(wanted), std::string::npos) << *of_volume;
    EXPECT_EQ(VolumeSourceKind(volume.spec.source), removed.field);
  }
}

TEST(MigratedSources, EachNamesTheDriverThatReplacesItAndIsNotRefused) {
  const auto refusal = [](const char* kind, const char* driver) {
    return std::string(kind) + " volumes are no longer part of Kubernetes; the CSI driver " +
           driver + ", which replaces them, has not registered on this node";
  };
  const std::vector<std::pair<PersistentVolumeSource, std::string>> volumes = {
      {AwsElasticBlockStoreVolumeSource(), refusal("awsElasticBlockStore", "ebs.csi.aws.com")},
      {GcePersistentDiskVolumeSource(), refusal("gcePersistentDisk", "pd.csi.storage.gke.io")},
      {CinderPersistentVolumeSource(), refusal("cinder", "cinder.csi.openstack.org")},
      {AzureDiskVolumeSource(), refusal("azureDisk", "disk.csi.azure.com")},
      {AzureFilePersistentVolumeSource(), refusal("azureFile", "file.csi.azure.com")},
      {VsphereVirtualDiskVolumeSource(), refusal("vsphereVolume", "csi.vsphere.vmware.com")},
      {PortworxVolumeSource(), refusal("portworxVolume", "pxd.portworx.com")},
  };
  for (const auto& [source, text] : volumes) {
    EXPECT_EQ(MissingDriverOf(source), text);
    EXPECT_EQ(RefusalOf(source), std::nullopt);
  }
  const std::vector<VolumeSource> in_pods = {AwsElasticBlockStoreVolumeSource(),
                                             GcePersistentDiskVolumeSource(),
                                             CinderVolumeSource(),
                                             AzureDiskVolumeSource(),
                                             AzureFileVolumeSource(),
                                             VsphereVirtualDiskVolumeSource(),
                                             PortworxVolumeSource()};
  for (size_t i = 0; i < in_pods.size(); ++i) {
    EXPECT_EQ(MissingDriverOf(in_pods[i]), volumes[i].second);
    EXPECT_EQ(RefusalOf(in_pods[i]), std::nullopt);
  }
}

TEST(MigratedSources, DefaultsAreThoseOfTheApiServer) {
  const auto volume = std::get<PersistentVolume>(DecodeOne(
      VolumeYaml(std::string(kSmall) + "azureDisk: {diskName: d, diskURI: \"https://a/d.vhd\"}")));
  const auto& disk = std::get<AzureDiskVolumeSource>(volume.spec.source);
  EXPECT_EQ(disk.kind, AzureDataDiskKind::kShared);
  EXPECT_EQ(disk.caching_mode, AzureDataDiskCachingMode::kReadWrite);
  EXPECT_EQ(disk.fs_type, "ext4");
  EXPECT_FALSE(disk.read_only);
}

TEST(MigratedSources, AnEmptyFilesystemTypeOfAzureIsNotAnAbsentOne) {
  const Object object = DecodeOne(VolumeYaml(
      std::string(kSmall) + "azureDisk: {diskName: d, diskURI: \"https://a/d\", fsType: \"\"}"));
  const auto& source = std::get<PersistentVolume>(object).spec.source;
  EXPECT_EQ(std::get<AzureDiskVolumeSource>(source).fs_type, "");
  EXPECT_EQ(DecodeOne(EncodeObjectJson(object)), object);
}

// An older program kept nothing of such a source but its name.
TEST(MigratedSources, WhatNamesNoStorageIsRefusedByItsField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"awsElasticBlockStore", "volumeID"},
      {"gcePersistentDisk", "pdName"},
      {"cinder", "volumeID"},
      {"vsphereVolume", "volumePath"},
      {"portworxVolume", "volumeID"}};
  for (const auto& [kind, field] : cases) {
    SCOPED_TRACE(kind);
    const ManifestDecode decode =
        DecodeManifest("f", VolumeYaml(std::string(kSmall) + kind + ": {}"));
    EXPECT_TRUE(decode.objects.empty());
    ASSERT_EQ(decode.problems.size(), 1U) << ProblemsText(decode.problems);
    EXPECT_EQ(decode.problems[0].field_path, "spec." + kind + "." + field);
    EXPECT_EQ(decode.problems[0].reason, "is required");
  }
}

TEST(MigratedSources, ACinderSecretOfAVolumeSaysItsNamespaceAndThatOfAPodDoesNot) {
  const std::string secret = "cinder: {volumeID: c, secretRef: {name: os}}";
  const ManifestDecode decode = DecodeManifest("f", VolumeYaml(std::string(kSmall) + secret));
  ASSERT_EQ(decode.problems.size(), 1U) << ProblemsText(decode.problems);
  EXPECT_EQ(decode.problems[0].field_path, "spec.cinder.secretRef.namespace");
  const Pod pod = DecodePod(PodYaml("p", "u", "  volumes: [{name: v, " + secret + "}]\n"));
  EXPECT_TRUE(ObjectsNamedBy(pod.spec.volumes[0].source).secrets.empty())
      << "the driver has its own credentials: no pod waits for this Secret";
}

TEST(RefusedSources, ImageVolumesSayWhatToDoAndOthersAreNotRefused) {
  const auto image = RefusalOf(VolumeSource(ImageVolumeSource{"example.org/data:1", ""}));
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->find("image volumes (example.org/data:1) are mounted by a container runtime"),
            0U);
  EXPECT_EQ(RefusalOf(VolumeSource(EmptyDirVolumeSource())), std::nullopt);
  EXPECT_EQ(RefusalOf(VolumeSource(PersistentVolumeClaimVolumeSource())), std::nullopt);
}

TEST(RefusedSources, ACsiVolumeIsNotRefused) {
  EXPECT_EQ(RefusalOf(PersistentVolumeSource(CsiPersistentVolumeSource())), std::nullopt);
  EXPECT_EQ(RefusalOf(VolumeSource(CsiVolumeSource())), std::nullopt);
  EXPECT_EQ(MissingDriverOf(VolumeSource(CsiVolumeSource())), std::nullopt);
}

TEST(Selectors, LabelOperators) {
  const StringMap labels = {{"a", "1"}, {"b", "2"}};
  using Op = LabelOperator;
  const auto holds = [&](Op op, const char* key, std::vector<std::string> values) {
    return Matches(LabelSelector{{}, {{key, op, std::move(values)}}}, labels);
  };
  EXPECT_TRUE(holds(Op::kIn, "a", {"0", "1"}));
  EXPECT_FALSE(holds(Op::kIn, "a", {"2"}));
  EXPECT_FALSE(holds(Op::kIn, "c", {"1"}));
  EXPECT_FALSE(holds(Op::kNotIn, "a", {"1"}));
  EXPECT_TRUE(holds(Op::kNotIn, "a", {"2"}));
  EXPECT_TRUE(holds(Op::kNotIn, "c", {"1"}));
  EXPECT_TRUE(holds(Op::kExists, "a", {}));
  EXPECT_FALSE(holds(Op::kExists, "c", {}));
  EXPECT_TRUE(holds(Op::kDoesNotExist, "c", {}));
  EXPECT_FALSE(holds(Op::kDoesNotExist, "a", {}));
  EXPECT_TRUE(Matches(LabelSelector(), {}));
  EXPECT_TRUE(Matches(LabelSelector{{{"a", "1"}}, {}}, labels));
  EXPECT_FALSE(Matches(LabelSelector{{{"a", "1"}, {"b", "3"}}, {}}, labels));
}

TEST(Selectors, NodeTermsAreAlternativesAndAnEmptyTermHoldsForNone) {
  using Op = NodeOperator;
  const StringMap labels = {{"zone", "a"}, {"cores", "8"}};
  const auto term = [](const char* key, Op op, std::vector<std::string> values) {
    return NodeSelectorTerm{{{key, op, std::move(values)}}, {}};
  };
  const auto holds = [&](NodeSelectorTerm one) {
    return Matches(NodeSelector{{std::move(one)}}, labels, "n1");
  };
  EXPECT_TRUE(holds(term("cores", Op::kGt, {"7"})));
  EXPECT_FALSE(holds(term("cores", Op::kGt, {"8"})));
  EXPECT_TRUE(holds(term("cores", Op::kLt, {"9"})));
  EXPECT_FALSE(holds(term("zone", Op::kLt, {"9"})));
  EXPECT_FALSE(holds(term("none", Op::kLt, {"9"})));
  EXPECT_TRUE(holds(term("zone", Op::kIn, {"a"})));
  EXPECT_TRUE(holds(term("none", Op::kNotIn, {"a"})));
  EXPECT_TRUE(holds(term("zone", Op::kExists, {})));
  EXPECT_TRUE(holds(term("none", Op::kDoesNotExist, {})));
  EXPECT_FALSE(holds({}));
  EXPECT_FALSE(Matches(NodeSelector(), labels, "n1"));
  const NodeSelectorTerm by_name{{}, {{"metadata.name", Op::kIn, {"n1"}}}};
  EXPECT_TRUE(Matches(NodeSelector{{by_name}}, labels, "n1"));
  EXPECT_FALSE(Matches(NodeSelector{{by_name}}, labels, "n2"));
  EXPECT_TRUE(Matches(NodeSelector{{term("zone", Op::kIn, {"b"}), by_name}}, labels, "n1"));
}

TEST(EphemeralClaim, IsThePodsOwn) {
  const Pod pod = DecodePod(PodYaml(
      "web", "u-1",
      "  volumes:\n    - {name: data, persistentVolumeClaim: {claimName: shared}}\n"
      "    - {name: none, emptyDir: {}}\n"
      "    - {name: tmp, ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b}}, spec: {" +
          std::string(kAsk) + "}}}}\n"));
  const std::vector<PodClaim> expected = {{"data", "shared", false}, {"tmp", "web-tmp", true}};
  EXPECT_EQ(ClaimsOfPod(pod), expected);
  const PersistentVolumeClaim claim = EphemeralClaimOf(pod, pod.spec.volumes[2]);
  EXPECT_EQ(claim.metadata.name, "web-tmp");
  EXPECT_EQ(claim.metadata.name_space, "default");
  EXPECT_EQ(claim.metadata.labels, (StringMap{{"a", "b"}}));
  EXPECT_EQ(claim.spec.storage.request, *Quantity::Parse("1Gi"));
  EXPECT_EQ(EphemeralClaimOf(pod, pod.spec.volumes[2]), claim);
  EXPECT_TRUE(CheckEphemeralClaimOwner(pod, claim).ok());
  // The same pod anew has a claim of its own.
  Pod again = pod;
  again.metadata.uid = "u-2";
  EXPECT_NE(EphemeralClaimOf(again, again.spec.volumes[2]).metadata.uid, claim.metadata.uid);
  const Status refused = CheckEphemeralClaimOwner(again, claim);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "PVC default/web-tmp was not created for pod default/web (pod is not owner)");
}

TEST(EphemeralClaim, ItsUidIsShownAsKubernetesWritesOneAndKeptAsItIs) {
  PersistentVolumeClaim claim;
  claim.metadata.uid = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(ShownUid(claim), "01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_EQ(claim.metadata.uid.size(), 32u) << "records and marks on disks have it so";
}

TEST(TopologyTerms, ANodeIsWhereOneTermHoldsAndAClassWithoutAnyIsEverywhere) {
  const StringMap labels = {{"zone", "z1"}, {"rack", "r7"}};
  EXPECT_TRUE(Matches(std::vector<TopologyTerm>{}, labels));
  const TopologyTerm here{{{"zone", {"z2", "z1"}}, {"rack", {"r7"}}}};
  const TopologyTerm there{{{"zone", {"z1"}}, {"rack", {"r8"}}}};
  const TopologyTerm unknown{{{"row", {"1"}}}};
  EXPECT_TRUE(Matches(std::vector<TopologyTerm>{there, here}, labels));
  EXPECT_FALSE(Matches(std::vector<TopologyTerm>{there, unknown}, labels));
  EXPECT_FALSE(Matches(std::vector<TopologyTerm>{TopologyTerm{}}, labels));
}

}  // namespace
}  // namespace volumed
