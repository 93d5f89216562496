// Rules over several fields of a pod, one broken pod each.
#include "kube/decode.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

struct Case {
  const char* name;
  const char* spec;  // behind "spec: ", in flow style
  const char* path;
  const char* reason;
};

const Case kCases[] = {
    {"SameVolumeName", "{volumes: [{name: v}, {name: v}], containers: [{name: c}]}",
     "spec.volumes[1].name", "\"v\" is the name of another volume too"},
    {"TwoSources",
     "{volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}], containers: [{name: c}]}",
     "spec.volumes[0].hostPath", "more than one source is given, only one is possible"},
    {"TwoSourcesOfWhichTheSecondIsNotRead",
     "{volumes: [{name: v, emptyDir: {}, hostPath: {}}], containers: [{name: c}]}",
     "spec.volumes[0].hostPath", "more than one source is given, only one is possible"},
    {"RemovedBesideAnother",
     "{volumes: [{name: v, emptyDir: {}, rbd: {}}], containers: [{name: c}]}",
     "spec.volumes[0].rbd", "more than one source is given, only one is possible"},
    {"UnknownVolume", "{containers: [{name: c, volumeMounts: [{name: v, mountPath: /x}]}]}",
     "spec.containers[0].volumeMounts[0].name", "\"v\" is not among the pod's volumes"},
    {"UnknownDevice", "{containers: [{name: c, volumeDevices: [{name: v, devicePath: /x}]}]}",
     "spec.containers[0].volumeDevices[0].name", "\"v\" is not among the pod's volumes"},
    {"UnknownVolumeInInit",
     "{containers: [{name: c}], initContainers: [{name: i, volumeMounts: [{name: v, mountPath: "
     "/x}]}]}",
     "spec.initContainers[0].volumeMounts[0].name", "\"v\" is not among the pod's volumes"},
    {"BothSubPaths",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x, "
     "subPath: a, subPathExpr: b}]}]}",
     "spec.containers[0].volumeMounts[0].subPathExpr", "excludes subPath"},
    {"SameMountPath",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x}, "
     "{name: v, mountPath: /x/}]}]}",
     "spec.containers[0].volumeMounts[1].mountPath",
     "\"/x\" is used by another mount of the container too"},
    {"BidirectionalUnprivileged",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x, "
     "mountPropagation: Bidirectional}]}]}",
     "spec.containers[0].volumeMounts[0].mountPropagation",
     "Bidirectional is possible in a privileged container only"},
    {"RecursiveWithoutReadOnly",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x, "
     "recursiveReadOnly: Enabled}]}]}",
     "spec.containers[0].volumeMounts[0].recursiveReadOnly",
     "is possible with readOnly: true only"},
    {"RecursiveWithPropagation",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x, "
     "readOnly: true, recursiveReadOnly: IfPossible, mountPropagation: HostToContainer}]}]}",
     "spec.containers[0].volumeMounts[0].recursiveReadOnly",
     "is possible without mountPropagation only"},
    {"DeviceOfAFilesystemVolume",
     "{volumes: [{name: v}], containers: [{name: c, volumeDevices: [{name: v, devicePath: "
     "/dev/x}]}]}",
     "spec.containers[0].volumeDevices[0].name",
     "a device needs a volume of kind persistentVolumeClaim or ephemeral, not emptyDir"},
    {"DeviceAndMount",
     "{volumes: [{name: v, persistentVolumeClaim: {claimName: x}}], containers: [{name: c, "
     "volumeMounts: [{name: v, mountPath: /x}], volumeDevices: [{name: v, devicePath: /y}]}]}",
     "spec.containers[0].volumeDevices[0].name", "\"v\" is mounted by the container too"},
    {"DeviceAtAMountPath",
     "{volumes: [{name: v, persistentVolumeClaim: {claimName: x}}, {name: w}], containers: "
     "[{name: c, volumeMounts: [{name: w, mountPath: /x}], volumeDevices: [{name: v, devicePath: "
     "/x}]}]}",
     "spec.containers[0].volumeDevices[0].devicePath", "\"/x\" is used twice in the container"},
    {"SameContainerName", "{initContainers: [{name: c}], containers: [{name: c}]}",
     "spec.containers[0].name", "\"c\" is the name of another container too"},
    {"NegativeSize", "{volumes: [{name: v, emptyDir: {sizeLimit: -1}}], containers: [{name: c}]}",
     "spec.volumes[0].emptyDir.sizeLimit", "must not be negative"},
    {"EmptyProjection",
     "{volumes: [{name: v, projected: {sources: [{}]}}], containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[0]", "names no source of a kind that this program knows"},
    {"TwoProjections",
     "{volumes: [{name: v, projected: {sources: [{secret: {name: a}, configMap: {name: a}}]}}], "
     "containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[0].configMap",
     "more than one source is given, only one is possible"},
    {"ProjectedTwice",
     "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}, {secret: "
     "{name: a, items: [{key: k, path: ./t}]}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[1].secret.items[0].path",
     "\"t\" is written by an earlier source too"},
    {"BundleByBoth",
     "{volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: a, signerName: b, "
     "path: p}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[0].clusterTrustBundle",
     "needs either name or signerName, and not both"},
    {"BundleSelectorWithName",
     "{volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: a, labelSelector: "
     "{}, path: p}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[0].clusterTrustBundle.labelSelector",
     "is possible with signerName only"},
    {"CertificateWithoutFile",
     "{volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: a, keyType: "
     "b}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[0].podCertificate", "names no file to write"},
    {"DownwardNothing",
     "{volumes: [{name: v, downwardAPI: {items: [{path: p}]}}], containers: [{name: c}]}",
     "spec.volumes[0].downwardAPI.items[0]",
     "needs either fieldRef or resourceFieldRef, and not both"},
    {"DownwardEnvField",
     "{volumes: [{name: v, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: "
     "status.podIP}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath",
     "\"status.podIP\" cannot be a file: a volume offers fields of the metadata only"},
    {"DownwardNoContainer",
     "{volumes: [{name: v, downwardAPI: {items: [{path: p, resourceFieldRef: {resource: "
     "limits.cpu}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName", "is required"},
    {"DownwardUnknownContainer",
     "{volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: p, "
     "resourceFieldRef: {containerName: x, resource: limits.cpu}}]}}]}}], containers: [{name: "
     "c}]}",
     "spec.volumes[0].projected.sources[0].downwardAPI.items[0].resourceFieldRef.containerName",
     "\"x\" is not a container of the pod"},
    {"FcByNothing", "{volumes: [{name: v, fc: {}}], containers: [{name: c}]}", "spec.volumes[0].fc",
     "needs either targetWWNs or wwids, and not both"},
    {"FcWithoutLun", "{volumes: [{name: v, fc: {targetWWNs: [a]}}], containers: [{name: c}]}",
     "spec.volumes[0].fc.lun", "is required with targetWWNs"},
    {"ChapWithoutSecret",
     "{volumes: [{name: v, iscsi: {targetPortal: a, iqn: iqn.x, lun: 0, chapAuthSession: true}}], "
     "containers: [{name: c}]}",
     "spec.volumes[0].iscsi.secretRef", "is required with CHAP authentication"},
    {"EnvTwoSources",
     "{containers: [{name: c, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, "
     "secretKeyRef: {name: s, key: k}}}]}]}",
     "spec.containers[0].env[0].valueFrom", "more than one source is given, only one is possible"},
    {"EnvValueAndSource",
     "{containers: [{name: c, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: "
     "metadata.name}}}]}]}",
     "spec.containers[0].env[0].valueFrom", "excludes value"},
    {"FcByBoth",
     "{volumes: [{name: v, fc: {targetWWNs: [a], wwids: [b], lun: 0}}], containers: [{name: c}]}",
     "spec.volumes[0].fc", "needs either targetWWNs or wwids, and not both"},
    {"ChapDiscoveryWithoutSecret",
     "{volumes: [{name: v, iscsi: {targetPortal: a, iqn: iqn.x, lun: 0, chapAuthDiscovery: "
     "true}}], "
     "containers: [{name: c}]}",
     "spec.volumes[0].iscsi.secretRef", "is required with CHAP authentication"},
    {"BundleByNothing",
     "{volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {path: p}}]}}], containers: "
     "[{name: c}]}",
     "spec.volumes[0].projected.sources[0].clusterTrustBundle",
     "needs either name or signerName, and not both"},
    {"DownwardBoth",
     "{volumes: [{name: v, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}, "
     "resourceFieldRef: {containerName: c, resource: limits.cpu}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].downwardAPI.items[0]",
     "needs either fieldRef or resourceFieldRef, and not both"},
    {"DownwardUnknownContainerOfAVolume",
     "{volumes: [{name: w}, {name: v, downwardAPI: {items: [{path: p, resourceFieldRef: "
     "{containerName: x, resource: limits.cpu}}]}}], containers: [{name: c}]}",
     "spec.volumes[1].downwardAPI.items[0].resourceFieldRef.containerName",
     "\"x\" is not a container of the pod"},
    {"ProjectedTwiceDownward",
     "{volumes: [{name: v, projected: {sources: [{configMap: {name: a, items: [{key: k, path: "
     "t}]}}, {downwardAPI: {items: [{path: t, fieldRef: {fieldPath: metadata.name}}]}}]}}], "
     "containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[1].downwardAPI.items[0].path",
     "\"t\" is written by an earlier source too"},
    {"CertificateFilesAreOne",
     "{volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: a/b, keyType: "
     "ED25519, keyPath: k, certificateChainPath: k}}]}}], containers: [{name: c}]}",
     "spec.volumes[0].projected.sources[0].podCertificate.certificateChainPath",
     "\"k\" is written by an earlier source too"},
    {"SameDevicePath",
     "{volumes: [{name: v, persistentVolumeClaim: {claimName: x}}, {name: w, "
     "persistentVolumeClaim: {claimName: z}}], containers: [{name: c, volumeDevices: [{name: v, "
     "devicePath: /x}, {name: w, devicePath: /x}]}]}",
     "spec.containers[0].volumeDevices[1].devicePath", "\"/x\" is used twice in the container"},
    {"SameNameInEphemeral", "{containers: [{name: c}], ephemeralContainers: [{name: c}]}",
     "spec.ephemeralContainers[0].name", "\"c\" is the name of another container too"},
    {"NoContainers", "{volumes: [{name: v}]}", "spec.containers", "is required"},
    {"MountPathWithColon",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: "
     "\"/a:b\"}]}]}",
     "spec.containers[0].volumeMounts[0].mountPath", "\"/a:b\" contains ':'"},
    {"AbsoluteSubPath",
     "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /a, "
     "subPath: /etc}]}]}",
     "spec.containers[0].volumeMounts[0].subPath", "\"/etc\" is not a relative path"},
    {"RelativeHostPath",
     "{volumes: [{name: v, hostPath: {path: var/log}}], containers: [{name: c}]}",
     "spec.volumes[0].hostPath.path", "\"var/log\" is not an absolute path"},
    {"PayloadPathIsTheDirectory",
     "{volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: ./}]}}], containers: "
     "[{name: c}]}",
     "spec.volumes[0].secret.items[0].path", "\"./\" names no file"},
    {"HugePagesWithoutSize",
     "{volumes: [{name: v, emptyDir: {medium: HugePages-}}], containers: [{name: c}]}",
     "spec.volumes[0].emptyDir.medium",
     "\"HugePages-\" is an unknown medium (\"\", Memory, HugePages or HugePages-<size>)"},
};

class Validate : public testing::TestWithParam<Case> {};

TEST_P(Validate, RefusesWithPathAndReason) {
  const Case& test = GetParam();
  const ManifestDecode decode = DecodeManifest(
      "p.yaml", std::string("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: ") + test.spec);
  EXPECT_TRUE(decode.objects.empty());
  ASSERT_EQ(decode.problems.size(), 1U) << ProblemsText(decode.problems);
  EXPECT_EQ(decode.problems[0].object, "Pod default/p");
  EXPECT_EQ(decode.problems[0].field_path, test.path);
  EXPECT_EQ(decode.problems[0].reason, test.reason);
}

INSTANTIATE_TEST_SUITE_P(Rules, Validate, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ValidateGood, CombinationsThatKubernetesAllows) {
  for (const char* spec : {
           "{volumes: [{name: v}], containers: [{name: c, securityContext: {privileged: true}, "
           "volumeMounts: [{name: v, mountPath: /x, mountPropagation: Bidirectional}]}]}",
           // The same place in two containers, and one volume in two places.
           "{volumes: [{name: v}], initContainers: [{name: i, volumeMounts: [{name: v, mountPath: "
           "/x}]}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x}, {name: v, "
           "mountPath: /y}]}]}",
           "{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: "
           "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}], containers: "
           "[{name: c, volumeDevices: [{name: v, devicePath: /dev/x}]}]}",
           "{volumes: [{name: v, fc: {wwids: [a]}}, {name: w, fc: {targetWWNs: [a], lun: 0}}], "
           "containers: [{name: c}]}",
           "{volumes: [{name: v, iscsi: {targetPortal: a, iqn: iqn.x, lun: 0, chapAuthSession: "
           "true, secretRef: {name: s}}}], containers: [{name: c}]}",
           "{volumes: [{name: v, downwardAPI: {items: [{path: p, resourceFieldRef: "
           "{containerName: i, resource: limits.cpu}}]}}], initContainers: [{name: i}], "
           "containers: [{name: c}]}",
           "{volumes: [{name: v, emptyDir: {sizeLimit: 0}}], containers: [{name: c}]}",
           "{volumes: [{name: v}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x, "
           "readOnly: true, recursiveReadOnly: Enabled, mountPropagation: None}]}]}",
           "{volumes: [{name: v, emptyDir: {medium: HugePages-2Mi}}], containers: [{name: c}]}",
           "{volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: a..b/c}]}}], "
           "containers: [{name: c}]}",
       }) {
    DecodeOne(std::string("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: ") + spec);
  }
}

TEST(ValidateConfigMap, KeyInBothMapsIsRefused) {
  const ManifestDecode decode = DecodeManifest("c.yaml",
                                               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
                                               "c}\ndata: {k: v}\nbinaryData: {k: QQ==}\n");
  ASSERT_EQ(decode.problems.size(), 1U);
  EXPECT_EQ(decode.problems[0].ToString(),
            "c.yaml: document 1: ConfigMap default/c: binaryData[k]: is a key of data too");
}

}  // namespace
}  // namespace volumed
