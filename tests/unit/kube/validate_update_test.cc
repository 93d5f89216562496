#include "kube/validate_update.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "kube/content_mark.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

// What is said of a change from one manifest to another.
std::string Change(const std::string& before, const std::string& now, bool bound = false) {
  return ToString(ValidateUpdate(DecodeOne(before), DecodeOne(now), bound));
}

std::string Volume(const std::string& spec) {
  return "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {accessModes: "
         "[ReadWriteOnce], " +
         spec + "}\n";
}
const char kGibi[] = "capacity: {storage: 2Gi}, hostPath: {path: /srv/a}";

std::string Claim(const std::string& spec) {
  return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: default}\n"
         "spec: {accessModes: [ReadWriteOnce], " +
         spec + "}\n";
}

std::string Csi(const std::string& kind, const std::string& spec, const std::string& rest = "") {
  return "apiVersion: storage.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: x1}\nspec: {" + spec +
         "}\n" + rest;
}

TEST(ValidateUpdate, AVolumeAttachmentsSpecNeverChangesAndItsStatusDoes) {
  const std::string spec = "attacher: d, nodeName: n1, source: {persistentVolumeName: pv}";
  const std::string before = Csi("VolumeAttachment", spec);
  const std::string inline_source =
      "source: {inlineVolumeSpec: {csi: {driver: d, volumeHandle: h}, accessModes: "
      "[ReadWriteOnce]}}";
  EXPECT_EQ(Change(before, Csi("VolumeAttachment", spec,
                               "status: {attached: true, attachmentMetadata: {a: b}}\n")),
            "");
  for (const std::string& other :
       {std::string("attacher: e, nodeName: n1, source: {persistentVolumeName: pv}"),
        std::string("attacher: d, nodeName: n2, source: {persistentVolumeName: pv}"),
        std::string("attacher: d, nodeName: n1, source: {persistentVolumeName: other}"),
        "attacher: d, nodeName: n1, " + inline_source}) {
    EXPECT_EQ(Change(before, Csi("VolumeAttachment", other)),
              "spec: Invalid value: field is immutable")
        << other;
  }
}

TEST(ValidateUpdate, ADriverThatStaysOnANodeKeepsItsNodeIdAndTopologyKeys) {
  const auto node = [](const std::string& drivers) {
    return Csi("CSINode", "drivers: [" + drivers + "]");
  };
  const std::string before =
      node("{name: d, nodeID: a, topologyKeys: [z], allocatable: {count: 1}}");
  EXPECT_EQ(Change(before, node("{name: d, nodeID: a, topologyKeys: [z]}")), "")
      << "how many volumes it can have changes";
  EXPECT_EQ(Change(before, node("")), "");
  EXPECT_EQ(Change(node(""), before), "");
  EXPECT_EQ(Change(before, node("{name: d, nodeID: a, topologyKeys: [z]}, {name: e, nodeID: b}")),
            "");
  const std::string refused = "spec.drivers: Invalid value: \"d\": field is immutable";
  EXPECT_EQ(Change(before, node("{name: d, nodeID: b, topologyKeys: [z]}")), refused);
  EXPECT_EQ(Change(before, node("{name: d, nodeID: a, topologyKeys: [w]}")), refused);
}

TEST(ValidateUpdate, WhetherADriverAttachesNeverChanges) {
  EXPECT_EQ(Change(Csi("CSIDriver", ""), Csi("CSIDriver", "attachRequired: false")),
            "spec.attachedRequired: Invalid value: false: field is immutable");
  EXPECT_EQ(Change(Csi("CSIDriver", ""), Csi("CSIDriver", "volumeLifecycleModes: [Persistent]")),
            "")
      << "that is what an empty list means";
  EXPECT_EQ(Change(Csi("CSIDriver", ""), Csi("CSIDriver", "volumeLifecycleModes: [Ephemeral]")),
            "spec.volumeLifecycleModes: Invalid value: field is immutable");
  EXPECT_EQ(Change(Csi("CSIDriver", ""), Csi("CSIDriver", "podInfoOnMount: true")), "");
}

TEST(ValidateUpdate, SourceAndModeOfAVolumeNeverChange) {
  EXPECT_EQ(Change(Volume(kGibi), Volume("capacity: {storage: 2Gi}, hostPath: {path: /srv/b}")),
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable "
            "after creation");
  EXPECT_EQ(Change(Volume(kGibi), Volume(std::string(kGibi) + ", volumeMode: Block")),
            "volumeMode: Invalid value: \"Block\": field is immutable");
  const std::string affinity =
      ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: "
      "Exists}]}]}}";
  EXPECT_EQ(Change(Volume(kGibi), Volume(kGibi + affinity)), "");
  EXPECT_EQ(Change(Volume(kGibi + affinity), Volume(kGibi)),
            "nodeAffinity: Invalid value: field is immutable, except for updating from beta label "
            "to GA");
}

TEST(ValidateUpdate, ABoundVolumeDoesNotShrinkAndKeepsItsClass) {
  const std::string small = Volume("capacity: {storage: 1Gi}, hostPath: {path: /srv/a}");
  const std::string fast = Volume(std::string(kGibi) + ", storageClassName: fast");
  EXPECT_EQ(Change(Volume(kGibi), small), "");
  EXPECT_EQ(Change(Volume(kGibi), small, true),
            "spec.capacity.storage: Forbidden: field can not be less than previous value");
  EXPECT_EQ(Change(small, Volume(kGibi), true), "") << "it may grow";
  EXPECT_EQ(Change(Volume(kGibi), fast), "");
  EXPECT_EQ(Change(Volume(kGibi), fast, true),
            "spec.storageClassName: Invalid value: \"fast\": field is immutable while the volume "
            "is bound to a claim");
}

TEST(ValidateUpdate, AClaimMayOnlyGrowWhenItIsBound) {
  const std::string words =
      "spec: Forbidden: spec is immutable after creation except resources.requests and "
      "volumeAttributesClassName for bound claims";
  const std::string one = Claim("storageClassName: a, resources: {requests: {storage: 1Gi}}");
  const std::string two = Claim("storageClassName: a, resources: {requests: {storage: 2Gi}}");
  EXPECT_EQ(Change(one, two, true), "");
  EXPECT_EQ(Change(one, two), words);
  EXPECT_EQ(Change(two, one, true),
            "spec.resources.requests.storage: Forbidden: field can not be less than previous "
            "value");
  // What was not granted yet may be taken back.
  const std::string got = "status: {phase: Bound, capacity: {storage: 1Gi}}\n";
  const std::string less =
      Claim("storageClassName: a, resources: {requests: {storage: 1500Mi}}") + got;
  EXPECT_EQ(Change(two + got, less, true), "");
  EXPECT_EQ(
      Change(two + got, one + got, true),
      "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity");
  const std::string other = Claim("storageClassName: b, resources: {requests: {storage: 1Gi}}");
  EXPECT_EQ(Change(one, other, true), words);
  EXPECT_EQ(Change(one, other), words);
  const std::string none = Claim("resources: {requests: {storage: 1Gi}}");
  EXPECT_EQ(Change(none, one), "") << "a class may be given to a claim without one";
  EXPECT_EQ(Change(one, none), words);
  const std::string named =
      Claim("volumeName: v, storageClassName: a, resources: {requests: {storage: 1Gi}}");
  EXPECT_EQ(Change(one, named), "") << "once";
  EXPECT_EQ(Change(named, Claim("volumeName: w, storageClassName: a, resources: {requests: "
                                "{storage: 1Gi}}")),
            words);
}

TEST(ValidateUpdate, AStorageClassKeepsWhatItsVolumesAreMadeBy) {
  const auto storage_class = [](const std::string& fields) {
    return "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s}\n" + fields;
  };
  const std::string before =
      storage_class("provisioner: a/b\nreclaimPolicy: Delete\nparameters: {k: v}\n");
  EXPECT_EQ(Change(before, storage_class("provisioner: a/c\nreclaimPolicy: Retain\n"
                                         "volumeBindingMode: WaitForFirstConsumer\n")),
            "parameters: Forbidden: updates to parameters are forbidden.; provisioner: Forbidden: "
            "updates to provisioner are forbidden.; reclaimPolicy: Forbidden: updates to "
            "reclaimPolicy are forbidden.; volumeBindingMode: Invalid value: "
            "\"WaitForFirstConsumer\": field is immutable");
  EXPECT_EQ(Change(before, before + "allowVolumeExpansion: true\n"), "");
}

TEST(ValidateUpdate, WhatIsImmutableStaysAndASecretKeepsItsType) {
  const auto secret = [](const std::string& fields) {
    return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\n" + fields;
  };
  EXPECT_EQ(Change(secret("type: Opaque\n"), secret("type: a/b\n")),
            "type: Invalid value: \"a/b\": field is immutable");
  const std::string sealed = secret("immutable: true\nstringData: {k: hunter2}\n");
  EXPECT_EQ(Change(sealed, secret("stringData: {k: hunter3}\n")),
            "immutable: Forbidden: field is immutable when `immutable` is set; data: Forbidden: "
            "field is immutable when `immutable` is set");
  EXPECT_EQ(Change(sealed, sealed), "");
  EXPECT_EQ(Change(secret("stringData: {k: a}\n"), sealed), "");
  const auto map = [](const std::string& fields) {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, namespace: default}\n" + fields;
  };
  EXPECT_EQ(Change(map("immutable: true\ndata: {k: a}\n"), map("immutable: true\ndata: {k: b}\n")),
            "data: Forbidden: field is immutable when `immutable` is set");
  EXPECT_EQ(Change(map("immutable: true\nbinaryData: {k: YQ==}\n"), map("immutable: true\n")),
            "binaryData: Forbidden: field is immutable when `immutable` is set");
}

TEST(ValidateUpdate, ByItsMarkAChangeIsToldInTheSameWords) {
  const auto object = [](const std::string& kind, const std::string& fields) {
    return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: s, namespace: default}\n" + fields;
  };
  const std::string secrets[] = {
      object("Secret", ""),
      object("Secret", "type: a/b\n"),
      object("Secret", "immutable: true\nstringData: {k: hunter2}\n"),
      object("Secret", "immutable: true\nstringData: {k: hunter3}\n"),
      object("Secret", "immutable: true\nstringData: {khunter: '2'}\n"),
      object("Secret", "stringData: {k: hunter2}\n"),
  };
  const std::string maps[] = {
      object("ConfigMap", "data: {k: a}\n"),
      object("ConfigMap", "immutable: true\ndata: {k: a}\n"),
      object("ConfigMap", "immutable: true\ndata: {k: b, l: c}\n"),
      object("ConfigMap", "immutable: true\nbinaryData: {k: YQ==}\n"),
      object("ConfigMap", "immutable: true\ndata: {k: a}\nbinaryData: {l: YQ==}\n"),
  };
  const auto compare = [](const auto& all) {
    for (const std::string& before : all) {
      const std::optional<ContentMark> mark = MarkOf(DecodeOne(before), std::nullopt);
      ASSERT_TRUE(mark);
      for (const std::string& now : all) {
        EXPECT_EQ(ToString(ValidateUpdate(*mark, DecodeOne(now))), Change(before, now))
            << before << now;
      }
    }
  };
  compare(secrets);
  compare(maps);
  EXPECT_EQ(MarkOf(DecodeOne(PodYaml("p", "u-1")), std::nullopt), std::nullopt);
}

TEST(ValidateUpdate, AMarkRevealsNothingOfTheContent) {
  const Object secret = DecodeOne(
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nimmutable: true\n"
      "stringData: {k: hunter2}\n");
  const ContentMark one = *MarkOf(secret, std::nullopt);
  const ContentMark other = *MarkOf(secret, std::nullopt);
  EXPECT_EQ(one.data_digest.size(), 32U);
  EXPECT_NE(one.data_digest, other.data_digest) << "each row has a salt of its own";
  EXPECT_EQ(*MarkOf(secret, one), one) << "and keeps it";
  EXPECT_EQ(MarkOf(DecodeOne("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
                             "stringData: {k: hunter2}\n"),
                   std::nullopt)
                ->data_digest,
            "")
      << "of what may change nothing is digested";
}

TEST(ValidateUpdate, APodsVolumesStayUnderOneUid) {
  const std::string other = "  volumes: [{name: v}]\n";
  EXPECT_EQ(Change(PodYaml("p", "u-1"), PodYaml("p", "u-1", other)),
            "spec.volumes: Forbidden: spec.volumes is immutable under the same uid");
  EXPECT_EQ(Change(PodYaml("p", "u-1"), PodYaml("p", "u-2", other)), "");
}

}  // namespace
}  // namespace volumed
