// A slip of the pen in a manifest is a warning with its path, and with the name that was meant.
#include "kube/unknown_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/decode.h"
#include "kube/field_list.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> WarningsOf(const std::string& manifest) {
  const ManifestDecode decode = DecodeManifest("pod.yaml", manifest);
  std::vector<std::string> warnings;
  for (const DecodeProblem& problem : decode.problems) warnings.push_back(problem.ToString());
  for (const DecodeProblem& warning : decode.warnings) warnings.push_back(warning.ToString());
  return warnings;
}

constexpr const char* kSlips = R"(
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: x
    volumemounts: [{name: a, mountPath: /a}]
  volume: [{name: c, emptyDir: {}}]
  volumes:
  - name: a
    secret: {secretName: s, defaultmode: 256}
  - name: b
    hostPath: {path: /x, readonly: true}
)";

TEST(UnknownFieldsTest, ASlipIsToldWithItsPathAndWhatWasMeant) {
  EXPECT_THAT(
      WarningsOf(kSlips),
      ElementsAre(
          "pod.yaml: document 1: Pod default/web: spec.containers[0].volumemounts: is not a "
          "field that Kubernetes knows, and is ignored; did you mean \"volumeMounts\"?",
          "pod.yaml: document 1: Pod default/web: spec.volume: is not a field that Kubernetes "
          "knows, and is ignored; did you mean \"volumes\"?",
          "pod.yaml: document 1: Pod default/web: spec.volumes[0].secret.defaultmode: is not "
          "a field that Kubernetes knows, and is ignored; did you mean \"defaultMode\"?",
          "pod.yaml: document 1: Pod default/web: spec.volumes[1].hostPath.readonly: is not a "
          "field that Kubernetes knows, and is ignored"));
}

TEST(UnknownFieldsTest, WhatIsTakenIsTakenAllTheSame) {
  EXPECT_EQ(DecodeManifest("pod.yaml", kSlips).objects.size(), 1u);
}

TEST(UnknownFieldsTest, FieldsThatTheAgentDoesNotReadAreNoSlips) {
  EXPECT_THAT(WarningsOf(R"(
apiVersion: v1
kind: Pod
metadata:
  name: web
  resourceVersion: "12"
  managedFields: [{manager: kubectl, fieldsV1: {"f:metadata": {"f:anything": {}}}}]
  annotations: {any.io/key: x}
spec:
  restartPolicy: Never
  tolerations: [{key: a, operator: Exists, tolerationSeconds: 3}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
  containers:
  - name: main
    image: x
    livenessProbe: {httpGet: {path: /, port: http}}
    resources: {limits: {example.com/gpu: 1}}
    env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
)"),
              IsEmpty());
}

TEST(UnknownFieldsTest, OfASecretNoWordIsShownThatNobodyMeant) {
  const std::vector<std::string> warnings = WarningsOf(R"(
apiVersion: v1
kind: Secret
metadata: {name: s}
hunter2-the-password: x
stringdata: {a: b}
)");
  ASSERT_EQ(warnings.size(), 2u);
  for (const std::string& warning : warnings) EXPECT_THAT(warning, Not(HasSubstr("hunter2")));
  EXPECT_THAT(warnings[1], HasSubstr("did you mean \"stringData\"?"));
}

TEST(UnknownFieldsTest, TheKeysOfASecretThatAreNoKeysAreNotShown) {
  for (const std::string map : {"data", "stringData"}) {
    const std::vector<std::string> told =
        WarningsOf("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" + map +
                   ":\n  \"canary pass/word\": eA==\n");
    ASSERT_EQ(told.size(), 1u) << map;
    EXPECT_THAT(told[0], Not(HasSubstr("canary")));
    EXPECT_THAT(told[0], HasSubstr(map));
  }
  const std::vector<std::string> twice = WarningsOf(
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  \"canary p/w\": eA==\n"
      "  \"canary p/w\": eA==\n");
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_THAT(twice[0], Not(HasSubstr("canary")));
}

TEST(UnknownFieldsTest, OneFileTellsABoundedNumber) {
  std::string manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
  for (int i = 0; i < 1000; ++i) manifest += "wrong" + std::to_string(i) + ": x\n";
  EXPECT_EQ(WarningsOf(manifest).size(), kMaxUnknownFields);
}

TEST(UnknownFieldsTest, TheNearestNameIsTheOneThatWasMeant) {
  const std::vector<std::string_view> known = {"volumes", "containers", "hostPath", "os"};
  EXPECT_EQ(Nearest("volume", known), "volumes");
  EXPECT_EQ(Nearest("hostpath", known), "hostPath");
  EXPECT_EQ(Nearest("contianers", known), "containers");
  EXPECT_EQ(Nearest("so", known), "");  // a short word is near to anything
  EXPECT_EQ(Nearest("completelyelse", known), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), known), "");
}

TEST(UnknownFieldsTest, ANameWithoutItsEndWasSaidToBeNearNothing) {
  const std::vector<std::string_view> known = {"storageClassNameOfMine", "storageClassName",
                                               "size"};
  EXPECT_EQ(Nearest("storageClass", known), "storageClassName");
  EXPECT_EQ(Nearest("storageclass", known), "storageClassName");
  EXPECT_EQ(Nearest("stor", known), "") << "too many names begin so";
}

// The table comes from Kubernetes, the fields that are read from this program: one that is read and
// not known would be warned of although it works.
TEST(UnknownFieldsTest, EveryFieldThatIsReadIsKnown) {
  for (const ObjectKind kind : kAllObjectKinds) {
    for (const FieldInfo& field : ListFields(kind)) {
      nlohmann::json object = nlohmann::json::object();
      nlohmann::json* at = &object;
      std::string path = field.path;
      while (!path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        std::string name = path.substr(0, dot);
        path = path.substr(std::min(dot + 1, path.size()));
        const bool list = name.ends_with("[*]");
        if (list) name.resize(name.size() - 3);
        at = &(*at)[name];
        if (path.empty()) break;
        if (list) {
          at->push_back(nlohmann::json::object());
          at = &at->back();
        }
      }
      for (const UnknownField& unknown : FindUnknownFields(kind, object)) {
        ADD_FAILURE() << ObjectKindName(kind) << " " << field.path << ": " << unknown.path;
      }
    }
  }
}

}  // namespace
}  // namespace volumed
