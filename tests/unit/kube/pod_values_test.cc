// Values computed from a pod: downward API, expansion of subPathExpr, facts; and the small rules.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "kube/expansion.h"
#include "kube/field_path.h"
#include "kube/field_rules.h"
#include "kube/pod_facts.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

const char kPod[] = R"yaml(
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  uid: u-1
  labels: {b: "2", a: "1", example.org/x: "y"}
  annotations: {note: "line 1\nline \"2\"\t\\ é \x01"}
spec:
  nodeName: n1
  serviceAccountName: sa
  containers:
    - name: main
      resources: {limits: {cpu: 1500m, memory: 100Mi}, requests: {memory: 1Mi}}
      env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: BOTH, value: "$(POD)-x-$$(POD)"}
        - {name: MEM, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
        - {name: CM, valueFrom: {configMapKeyRef: {name: settings, key: dir}}}
        - {name: LOST, valueFrom: {configMapKeyRef: {name: settings, key: none}}}
        - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}
        - {name: VIA, value: "a$(SECRET)"}
        - {name: UP, value: "../x"}
    - name: side
status: {podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: "::1"}], hostIP: 192.0.2.1}
)yaml";

TEST(FieldPath, GivesThePodsFields) {
  const Pod pod = DecodePod(kPod);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"metadata.name", "web"},
      {"metadata.namespace", "shop"},
      {"metadata.uid", "u-1"},
      {"metadata.labels", "a=\"1\"\nb=\"2\"\nexample.org/x=\"y\""},
      {"metadata.labels['b']", "2"},
      {"metadata.labels['example.org/x']", "y"},
      {"metadata.labels['none']", ""},
      {"metadata.annotations", "note=\"line 1\\nline \\\"2\\\"\\t\\\\ \xC3\xA9 \\x01\""},
      {"metadata.annotations['note']", "line 1\nline \"2\"\t\\ \xC3\xA9 \x01"},
      {"spec.nodeName", "n1"},
      {"spec.serviceAccountName", "sa"},
      {"status.podIP", "10.0.0.1"},
      {"status.podIPs", "10.0.0.1,::1"},
      {"status.hostIP", "192.0.2.1"},
      {"status.hostIPs", ""},
  };
  for (const auto& [path, value] : cases) {
    const Result<std::string> got = PodFieldValue(pod, path);
    ASSERT_TRUE(got.ok()) << path;
    EXPECT_EQ(*got, value) << path;
  }
  for (const char* bad : {"", "metadata", "metadata.labels['']", "metadata.labels[b]",
                          "metadata.name['x']", "spec.hostname"}) {
    const Result<std::string> got = PodFieldValue(pod, bad);
    ASSERT_FALSE(got.ok()) << bad;
    EXPECT_EQ(got.error().code(), Code::kInvalidArgument);
  }
}

TEST(FieldPath, FormatsEmptyAndUnprintable) {
  EXPECT_EQ(FormatStringMap({}), "");
  EXPECT_EQ(FormatStringMap({{"k", "\xE2\x80\xA8\xC2\xA0\x7F"}}), "k=\"\\u2028\\u00a0\\x7f\"");
}

TEST(FieldPath, GivesResourcesDividedAndRoundedUp) {
  const Pod pod = DecodePod(kPod);
  const ResourceList node = {{"memory", Quantity::FromBytes(1000)},
                             {"cpu", Quantity::FromInteger(4)}};
  const auto value = [&](const std::string& container, const std::string& resource,
                         const char* divisor) {
    ResourceFieldSelector selector{container, resource, std::nullopt};
    if (divisor != nullptr) selector.divisor = Quantity::Parse(divisor).value();
    const Result<std::string> got = ResourceFieldValue(pod, selector, node, "main");
    return got.ok() ? *got : got.error().message();
  };
  EXPECT_EQ(value("main", "limits.cpu", nullptr), "2");
  EXPECT_EQ(value("main", "limits.cpu", "1m"), "1500");
  EXPECT_EQ(value("main", "limits.memory", nullptr), "104857600");
  EXPECT_EQ(value("main", "limits.memory", "1Gi"), "1");
  EXPECT_EQ(value("main", "limits.memory", "0"), "104857600");
  EXPECT_EQ(value("main", "requests.memory", "1Ki"), "1024");
  EXPECT_EQ(value("main", "requests.cpu", "1m"), "1500");      // the limit's
  EXPECT_EQ(value("", "limits.memory", "1Mi"), "100");         // the default container's
  EXPECT_EQ(value("side", "limits.memory", nullptr), "1000");  // the node's
  EXPECT_EQ(value("side", "requests.memory", nullptr), "0");
  EXPECT_EQ(value("side", "limits.ephemeral-storage", nullptr), "0");
  EXPECT_EQ(value("none", "limits.cpu", nullptr), "\"none\" is not a container of the pod");
  EXPECT_EQ(value("main", "limits.cpu", "-1"), "the divisor of limits.cpu is negative");
}

TEST(Expansion, FollowsKubernetes) {
  const auto value_of = [](std::string_view name) -> std::optional<std::string> {
    if (name == "A") return "a";
    if (name == "EMPTY") return "";
    return std::nullopt;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"$(A)", "a"},          {"x$(A)y$(A)", "xaya"},
      {"$$(A)", "$(A)"},      {"$$$(A)", "$a"},
      {"$$$$", "$$"},         {"$(NO)", "$(NO)"},
      {"$(A", "$(A"},         {"$A", "$A"},
      {"cost: $", "cost: $"}, {"$()", "$()"},
      {"$(EMPTY)x", "x"},     {"$(A)$", "a$"},
      {"$(A(B))", "$(A(B))"}, {"", ""}};
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(ExpandVariables(text, value_of), expected) << text;
}

TEST(Expansion, MakesSubPathsAndRefusesWhatIsNone) {
  const Pod pod = DecodePod(kPod);
  auto settings = std::make_shared<ConfigMapObject>();
  settings->data["dir"] = "logs";
  const ConfigMapLookup lookup = [&](std::string_view name_space, std::string_view name) {
    return name_space == "shop" && name == "settings"
               ? std::shared_ptr<const ConfigMapObject>(settings)
               : nullptr;
  };
  const auto expand = [&](const std::string& text) {
    const auto path = ExpandSubPathExpr(pod, pod.spec.containers[0], text, lookup, {});
    return path.ok() ? *path : "error: " + path.error().message();
  };
  EXPECT_EQ(expand("$(POD)/$(CM)/$(MEM)"), "web/logs/100");
  EXPECT_EQ(expand("$(BOTH)"), "web-x-$(POD)");
  EXPECT_EQ(expand("plain"), "plain");
  EXPECT_EQ(expand("$(NONE)"), "error: subPathExpr: variable \"NONE\" is not set in the container");
  EXPECT_EQ(expand("$(LOST)"),
            "error: subPathExpr: variable \"LOST\": needs key \"none\" of config map \"settings\", "
            "which is not there");
  EXPECT_EQ(expand("$(SECRET)"),
            "error: subPathExpr: variable \"SECRET\": comes from a secret and must not be part of "
            "a path");
  EXPECT_NE(expand("$(VIA)").find("comes from a secret"), std::string::npos);
  EXPECT_EQ(expand("a/$(UP)"), "error: subPathExpr: \"a/../x\" contains a \"..\" element");
}

TEST(PodFacts, FsUserIsTheOneOfAllContainers) {
  const auto user = [](const std::string& spec) {
    return EffectiveFsUser(
        DecodePod("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " + spec));
  };
  EXPECT_EQ(user("{containers: [{name: a}]}"), std::nullopt);
  EXPECT_EQ(user("{securityContext: {runAsUser: 7}, containers: [{name: a}, {name: b}]}"), 7);
  EXPECT_EQ(user("{securityContext: {runAsUser: 7}, containers: [{name: a}], initContainers: "
                 "[{name: b, securityContext: {runAsUser: 8}}]}"),
            std::nullopt);
  EXPECT_EQ(user("{containers: [{name: a, securityContext: {runAsUser: 0}}], "
                 "ephemeralContainers: [{name: b, securityContext: {runAsUser: 0}}]}"),
            0);
  EXPECT_EQ(user("{containers: [{name: a, securityContext: {runAsUser: 5}}, {name: b}]}"),
            std::nullopt);
}

TEST(PodFacts, MemoryLimitOfThePod) {
  const auto limit = [](const std::string& spec) {
    return PodMemoryLimitBytes(
        DecodePod("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " + spec));
  };
  const auto box = [](const std::string& name, const std::string& memory, const char* more = "") {
    return "{name: " + name + ", resources: {limits: {memory: " + memory + "}}" + more + "}";
  };
  const char* const sidecar = ", restartPolicy: Always";
  EXPECT_EQ(limit("{containers: [" + box("a", "10") + ", " + box("b", "20") + "]}"), 30);
  EXPECT_EQ(limit("{containers: [" + box("a", "10") + ", {name: b}]}"), std::nullopt);
  EXPECT_EQ(limit("{containers: [" + box("a", "0") + "]}"), std::nullopt);
  EXPECT_EQ(
      limit("{containers: [" + box("a", "10") + "], initContainers: [" + box("i", "50") + "]}"),
      50);
  EXPECT_EQ(limit("{containers: [" + box("a", "10") + "], initContainers: [" +
                  box("s", "5", sidecar) + ", " + box("i", "8") + "]}"),
            15);
  EXPECT_EQ(limit("{containers: [" + box("a", "10") + "], initContainers: [" +
                  box("s", "5", sidecar) + ", " + box("i", "20") + "]}"),
            25);
  EXPECT_EQ(limit("{containers: [" + box("a", "10") + "], initContainers: [{name: i}]}"),
            std::nullopt);
  EXPECT_EQ(limit("{resources: {limits: {memory: 1Ki}}, containers: [{name: a}]}"), 1024);
}

TEST(PodFacts, VolumesInAnotherOrderAreTheSame) {
  Pod pod;
  pod.spec.volumes = {{"a", EmptyDirVolumeSource{}}, {"b", SecretVolumeSource{}}};
  Pod other;
  other.spec.volumes = {pod.spec.volumes[1], pod.spec.volumes[0]};
  EXPECT_TRUE(HaveSameVolumes(pod, other));
  other.spec.volumes[1].name = "c";
  EXPECT_FALSE(HaveSameVolumes(pod, other));
  other.spec.volumes = {pod.spec.volumes[1]};
  EXPECT_FALSE(HaveSameVolumes(pod, other));
  other.spec.volumes = {{"a", SecretVolumeSource{}}, {"b", EmptyDirVolumeSource{}}};
  EXPECT_FALSE(HaveSameVolumes(pod, other));
}

TEST(PodFacts, VolumesInUse) {
  const Pod pod = DecodePod(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
      "  volumes: [{name: a}, {name: unused}, {name: d, persistentVolumeClaim: {claimName: c}}]\n"
      "  containers: [{name: c, volumeDevices: [{name: d, devicePath: /dev/x}]}]\n"
      "  initContainers: [{name: i, volumeMounts: [{name: a, mountPath: /a}]}]\n");
  const auto uses = VolumesInUse(pod);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_TRUE(uses.at("a").mounted && !uses.at("a").as_device);
  EXPECT_TRUE(uses.at("d").as_device && !uses.at("d").mounted);
}

TEST(Base64, DecodesStrictlyAndEncodes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},        {"QQ==", "A"},        {"QUI=", "AB"},
      {"QUJD", "ABC"}, {"QUJDRA==", "ABCD"}, {"/+8A", std::string("\xFF\xEF\0", 3)}};
  for (const auto& [text, bytes] : cases) {
    EXPECT_EQ(Base64Decode(text), bytes) << text;
    EXPECT_EQ(Base64Encode(bytes), text);
  }
  EXPECT_EQ(Base64Decode("QU\r\nJD\n"), "ABC");
  for (const char* bad :
       {"Q", "QQ", "QQ=", "QQ===", "QQ==QQ==", "=QQQ", "Q===", "QUJD=", "Q Q=", "QQ-_", "===="}) {
    EXPECT_FALSE(Base64Decode(bad).has_value()) << bad;
  }
}

TEST(MountLabels, AreThoseOfTheContainersThatMountTheVolume) {
  Pod pod;
  const auto add = [&pod](const std::string& volume, std::optional<SeLinuxOptions> own) {
    Container container;
    container.volume_mounts.push_back({});
    container.volume_mounts.back().name = volume;
    container.security_context.se_linux_options = std::move(own);
    pod.spec.containers.push_back(container);
  };
  SeLinuxOptions level;
  level.level = "s0:c1,c2";
  level.type = "container_t";  // of processes
  add("data", level);
  add("data", std::nullopt);
  add("other", SeLinuxOptions{"", "", "", "s0:c9"});
  EXPECT_EQ(MountLabels(pod, "data"),
            std::set<std::string>{"system_u:object_r:container_file_t:s0:c1,c2"});
  EXPECT_TRUE(MountLabels(pod, "unused").empty());
  // The pod's is for those that set none.
  pod.spec.security_context.se_linux_options = SeLinuxOptions{"user_u", "", "", ""};
  EXPECT_EQ(MountLabels(pod, "data").size(), 2u);
  EXPECT_TRUE(MountLabels(pod, "data").contains("user_u:object_r:container_file_t:s0"));
}

}  // namespace
}  // namespace volumed
