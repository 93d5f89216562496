// What a person is shown of objects that no table had: claims that pods have made, objects that a
// command has deleted and that their files still have; and who is told to act.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "integration/agent/agent_fixture.h"

namespace volumed::shown_objects_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClaim =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
constexpr const char* kConfigMap =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {key: value}\n";
constexpr const char* kSecret =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {key: hunter2}\n";
constexpr const char* kClass =
    "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
    "provisioner: kubernetes.io/host-path\n";

class ShownObjectsTest : public AgentTest {
 protected:
  ShownObjectsTest() { settings = {{"removal-settle", "1s"}, {"node-name", "n1"}}; }

  std::string File(const std::string& name) const { return manifests() + "/" + name; }
  static std::string PodOf(const std::string& name, const std::string& volume) {
    const std::string mounts = "[{name: v, mountPath: /v}]";
    return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", uid: uid-" + name +
           "}, spec: {containers: [{name: c, image: x, volumeMounts: " + mounts +
           "}], volumes: [{name: v, " + volume + "}]}}\n";
  }
  std::string Directory() const { return scratch() + "/data"; }
  void ApplyVolume() {
    ASSERT_EQ(::mkdir(Directory().c_str(), 0755), 0);
    ApplyOk(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: scratch}\n"
        "spec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
        "  persistentVolumeReclaimPolicy: Retain\n  hostPath: {path: " +
        Directory() + "}\n");
  }
  bool Says(const std::vector<std::string>& words, const std::string& text) {
    const auto does = [&] { return Ctl(words).output.find(text) != std::string::npos; };
    return Eventually(kPatience, does);
  }
};

// `get volumes` named a claim that `get pvc` did not have.
TEST_F(ShownObjectsTest, TheClaimOfAGenericEphemeralVolumeIsListedWithItsPod) {
  settings["host-path-root"] = "[" + scratch() + "/volumes]";
  settings["enable-hostpath-provisioner"] = "true";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(std::string(kClass) + "---\n" +
          PodOf("e",
                "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: made, accessModes: "
                "[ReadWriteOnce], resources: {requests: {storage: 10Mi}}}}}"));
  ASSERT_TRUE(WaitPhase("e", "Ready")) << Ctl({"explain", "e"}).output;
  EXPECT_THAT(Ctl({"get", "pvc"}).output, ContainsRegex("e-v +Bound +pvc-[0-9a-f]+ +10Mi"));
  EXPECT_THAT(Ctl({"get", "pvc", "e-v", "-o", "wide"}).output, HasSubstr("Pod/e"));
  EXPECT_THAT(Ctl({"get", "pvc", "e-v", "-o", "json"}).output, HasSubstr("\"owner\": \"Pod/e\""));
  const std::string described = Ctl({"describe", "pvc", "e-v"}).output;
  EXPECT_THAT(described, ContainsRegex("UID: +[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-"
                                       "[0-9a-f]{12}\n"));
  EXPECT_THAT(described, ContainsRegex("Owner: +Pod/e\n"));
  EXPECT_THAT(described, HasSubstr("pod default/e, volume v"));
  EXPECT_EQ(Ctl({"delete", "pod", "e"}).exit_status, 0);
  ASSERT_TRUE(WaitGone("e"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pvc", "e-v"}).exit_status == 3; }));
}

// It was in no answer but a count of problems.
TEST_F(ShownObjectsTest, WhatACommandDeletedAndItsFileStillHasIsRefusedWhereItIsListed) {
  WriteText(File("all.yaml"), std::string(kConfigMap) + "---\n" + kSecret + "---\n" + kClass);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string why = "deleted by command and " + File("all.yaml") + " still has it";
  for (const auto& [kind, name] :
       {std::pair("configmap", "app"), std::pair("secret", "key"), std::pair("sc", "made")}) {
    ASSERT_TRUE(Says({"get", kind}, name));
    EXPECT_THAT(Ctl({"get", kind}).output, Not(HasSubstr("Refused")));
    ASSERT_EQ(Ctl({"delete", kind, name}).exit_status, 0);
    for (const auto& words :
         {std::vector<std::string>{"get", kind}, std::vector<std::string>{"get", kind, name}}) {
      EXPECT_TRUE(Says(words, std::string(name) + " (Refused)")) << Ctl(words).output;
      EXPECT_THAT(Ctl(words).output, HasSubstr(why));
    }
    const CommandResult described = Ctl({"describe", kind, name});
    EXPECT_EQ(described.exit_status, 0) << described.output;
    EXPECT_THAT(described.output, ContainsRegex("Status: +Refused"));
    EXPECT_THAT(described.output, HasSubstr(why));
  }
  EXPECT_EQ(Ctl({"get", "configmap", "nobody"}).exit_status, 3);
  EXPECT_EQ(Ctl({"describe", "configmap", "nobody"}).exit_status, 3);
  ApplyOk(kConfigMap);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"get", "configmap"}).output.find("Refused") == std::string::npos;
  })) << Ctl({"get", "configmap"}).output;
  EXPECT_TRUE(Says({"get", "configmap"}, "app"));
}

// A pod that needs it was told that there was none, though its owner saw it in the file.
TEST_F(ShownObjectsTest, APodOfARefusedConfigMapIsToldThatACommandDeletedIt) {
  WriteText(File("cm.yaml"), kConfigMap);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Says({"get", "cm"}, "app"));
  ASSERT_EQ(Ctl({"delete", "cm", "app"}).exit_status, 0);
  ApplyOk(PodOf("p", "configMap: {name: app}"));
  EXPECT_TRUE(Says({"explain", "p"}, "deleted by command and " + File("cm.yaml") + " still has it"))
      << Ctl({"explain", "p"}).output;
  ApplyOk(kConfigMap);
  EXPECT_TRUE(WaitPhase("p", "Ready")) << Ctl({"explain", "p"}).output;
}

// It was said to go, which it had done long before.
TEST_F(ShownObjectsTest, WhatACommandDeletedDoesNotGoOnceMoreWithItsFile) {
  settings["removal-settle"] = "60s";
  WriteText(File("all.yaml"), std::string(kClaim) + "---\n" + kConfigMap + "---\n" + kSecret);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Says({"get", "pvc"}, "Pending"));
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  ASSERT_EQ(Ctl({"delete", "cm", "app"}).exit_status, 0);
  ASSERT_TRUE(Says({"get", "pvc"}, "Refused"));
  ASSERT_EQ(::unlink(File("all.yaml").c_str()), 0);
  ASSERT_TRUE(Says({"sources"}, "Secret default/key: going"));
  EXPECT_THAT(Ctl({"sources"}).output, Not(HasSubstr("default/data")));
  EXPECT_THAT(Ctl({"sources"}).output, Not(HasSubstr("default/app")));
  const std::string goes =
      Ctl({"source", "accept", "manifests:" + manifests(), "--dry-run"}).output;
  EXPECT_THAT(goes, HasSubstr("default/key"));
  EXPECT_THAT(goes, Not(HasSubstr("default/data")));
}

// What is only waiting for its pod was said to go too.
TEST_F(ShownObjectsTest, AClaimThatEndsWithItsPodDoesNotGoWithItsFile) {
  settings["removal-settle"] = "60s";
  WriteText(File("all.yaml"), std::string(kClaim) + "---\n" + kSecret);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyVolume());
  ApplyOk(PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  ASSERT_EQ(::unlink(File("all.yaml").c_str()), 0);
  ASSERT_TRUE(Says({"sources"}, "Secret default/key: going"));
  EXPECT_THAT(Ctl({"sources"}).output, Not(HasSubstr("default/data")));
  EXPECT_TRUE(Says({"get", "pvc"}, "Terminating"));
}

// "who acts: nobody", and nothing went on.
TEST_F(ShownObjectsTest, AClaimThatEndsWithItsPodNamesWhoHasToDeleteThat) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyVolume());
  ApplyOk(std::string(kClaim) + "---\n" + PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  ASSERT_TRUE(Says({"explain", "p"}, "has been deleted by command"));
  const std::string explained = Ctl({"explain", "p"}).output;
  EXPECT_THAT(explained, HasSubstr("who acts:   the owner of pod default/p"));
  EXPECT_THAT(explained, HasSubstr("volumectl delete pod"));
  EXPECT_THAT(explained, Not(HasSubstr("nobody")));
}

TEST_F(ShownObjectsTest, ASourceThatIsNotConfiguredAnyMoreIsForgottenAndNotAccepted) {
  const std::string second = scratch() + "/second";
  ASSERT_EQ(::mkdir(second.c_str(), 0755), 0);
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  WriteText(second + "/p.yaml", PodOf("p", "emptyDir: {}"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(StopAgent(), 0);
  settings["manifest-dir"] = "[" + manifests() + "]";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const bool dry_run : {true, false}) {
    std::vector<std::string> words = {"source", "accept", "manifests:" + second};
    if (dry_run) words.emplace_back("--dry-run");
    const CommandResult refused = Ctl(words);
    EXPECT_NE(refused.exit_status, 0) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("`volumectl source forget`"));
    words = {"source", "forget", "manifests:" + manifests()};
    if (dry_run) words.emplace_back("--dry-run");
    const CommandResult configured = Ctl(words);
    EXPECT_NE(configured.exit_status, 0) << configured.output;
    EXPECT_THAT(configured.output, HasSubstr("`volumectl source accept`"));
  }
  EXPECT_EQ(FindPod("p")->phase(), "Ready");
}

// It was in no list any more.
TEST_F(ShownObjectsTest, WhatIsMissingSinceItsSourceWasForgottenIsShown) {
  const std::string second = scratch() + "/second";
  ASSERT_EQ(::mkdir(second.c_str(), 0755), 0);
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  WriteText(second + "/v.yaml",
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: "
            "{storage: 1Mi}, accessModes: [ReadWriteOnce], hostPath: {path: " +
                scratch() + "}}\n");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pv", "disk"}).exit_status == 0; }));
  EXPECT_EQ(Ctl({"sources"}).output.find("forgotten"), std::string::npos);
  ASSERT_EQ(StopAgent(), 0);
  settings["manifest-dir"] = "[" + manifests() + "]";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const CommandResult forgotten = Ctl({"source", "forget", "manifests:" + second, "--yes"});
  ASSERT_EQ(forgotten.exit_status, 0) << forgotten.output;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const std::string shown = Ctl({"sources"}).output;
    return shown.find("forgotten:\n  PersistentVolume disk: Missing: it has left " + second) !=
           std::string::npos;
  })) << Ctl({"sources"}).output;
}

// The disorder of every directory was told of every pod.
TEST_F(ShownObjectsTest, AnotherDirectorysDisorderIsNotToldOfAPod) {
  const std::string second = scratch() + "/second";
  ASSERT_EQ(::mkdir(second.c_str(), 0755), 0);
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  WriteText(File("p.yaml"), PodOf("p", "emptyDir: {}"));
  WriteText(second + "/broken.yaml", "kind: [");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_TRUE(Says({"sources"}, "manifests:" + second + ": INCOMPLETE"));
  EXPECT_THAT(Ctl({"explain", "p"}).output, Not(HasSubstr(second)));
}

// A person who forgot the namespace read that there was no such pod at all.
TEST_F(ShownObjectsTest, AnErrorNamesTheNamespaceThatWasAskedFor) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(PodOf("p", "emptyDir: {}") + "---\n" + kConfigMap + "---\n" + kClaim);
  const std::vector<std::vector<std::string>> asked = {
      {"explain", "p"}, {"get", "pods", "p"}, {"get", "cm", "app"}, {"get", "pvc", "data"}};
  for (std::vector<std::string> words : asked) {
    words.insert(words.end(), {"-n", "other"});
    const CommandResult unknown = Ctl(words);
    EXPECT_EQ(unknown.exit_status, 3) << unknown.output;
    EXPECT_THAT(unknown.output, HasSubstr(" in namespace other"));
  }
}

// The way out stood in the manual alone.
TEST_F(ShownObjectsTest, ADirectoryThatIsMarkedAsAnotherClaimsSaysHowItIsUnmarked) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyVolume());
  ApplyOk(std::string(kClaim) + "---\n" + PodOf("p", "persistentVolumeClaim: {claimName: data}"));
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(::rename(Directory().c_str(), (Directory() + ".away").c_str()), 0);
  ASSERT_EQ(::mkdir(Directory().c_str(), 0755), 0);
  ASSERT_EQ(::setxattr(Directory().c_str(), "trusted.volumed.owner", "other", 5, 0), 0);
  const CommandResult refused = Ctl({"accept", "pv", "scratch"});
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_THAT(refused.output, HasSubstr("is marked as storage of claim other"));
  EXPECT_THAT(refused.output, HasSubstr("`setfattr -x trusted.volumed.owner " + Directory() + "`"));
}

}  // namespace
}  // namespace volumed::shown_objects_test
