// Persistent volumes and claims as people see them: get, describe and events.
#include <filesystem>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"

namespace volumed::storage_verbs_test {
namespace {

constexpr int kUsage = 2;
constexpr int kNotFound = 3;

class StorageVerbsTest : public AgentTest {
 protected:
  static std::string Class() {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast, "
           "annotations: {storageclass.kubernetes.io/is-default-class: \"true\"}}\n"
           "provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n";
  }
  std::string Volume(const std::string& name, const std::string& policy) const {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce, ReadOnlyMany]\n"
           "  persistentVolumeReclaimPolicy: " +
           policy + "\n  hostPath: {path: " + scratch() + "/data}\n";
  }
  static std::string Claim(const std::string& name, const std::string& more = "") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default, creationTimestamp: \"2020-01-02T03:04:05Z\"}\nspec:\n"
           "  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Mi}}\n" +
           more;
  }
  static std::string PodOn(const std::string& claim) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: user, namespace: default, uid: "
           "uid-user}\nspec:\n  terminationGracePeriodSeconds: 0\n"
           "  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /d}]}]\n"
           "  volumes: [{name: v, persistentVolumeClaim: {claimName: " +
           claim + "}}]\n";
  }
  std::string Says(const std::vector<std::string>& words, int status = 0) {
    const CommandResult result = Ctl(words);
    EXPECT_EQ(result.exit_status, status) << words[0] << ": " << result.output;
    return result.output;
  }
  bool ComesToSay(const std::vector<std::string>& words, const std::string& part) {
    return Eventually(kPatience, [&] { return Ctl(words).output.find(part) != std::string::npos; });
  }
  void ExpectHas(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
  }
};

TEST_F(StorageVerbsTest, GetShowsVolumesClaimsAndClassesWithKubectlsColumns) {
  ASSERT_TRUE(std::filesystem::create_directory(scratch() + "/data"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Volume("disk", "Retain") +
                                  Claim("data", "  storageClassName: \"\"\n") + PodOn("data")));
  ASSERT_TRUE(WaitPhase("user", "Ready"));
  const std::string volumes = Says({"get", "pv"});
  ExpectHas(volumes,
            "NAME  CAPACITY  ACCESS MODES  RECLAIM POLICY  STATUS  CLAIM         STORAGECLASS  "
            "REASON  AGE\n");
  ExpectHas(volumes, "disk  1Gi       RWO,ROX       Retain          Bound   default/data");
  EXPECT_EQ(volumes.find("<unknown>"), std::string::npos) << "its first apply dates it";
  ExpectHas(Says({"get", "persistentvolumes", "disk"}), "Retain          Bound   default/data");
  ExpectHas(Says({"get", "persistentvolume", "-o", "wide"}), "Filesystem\n");
  const std::string claims = Says({"get", "pvc", "-n", "default"});
  ExpectHas(claims, "NAME  STATUS  VOLUME  CAPACITY  ACCESS MODES  STORAGECLASS  AGE\n");
  ExpectHas(claims, "data  Bound   disk    1Gi       RWO,ROX ");
  EXPECT_EQ(claims.find("<unknown>"), std::string::npos) << "its manifest has a date";
  ExpectHas(Says({"get", "pvc"}), "NAMESPACE  NAME  STATUS");
  EXPECT_EQ(Says({"get", "pvc", "-n", "other"}).find("data"), std::string::npos);
  ExpectHas(Says({"get", "sc"}),
            "fast (default)  kubernetes.io/no-provisioner  Delete         WaitForFirstConsumer  "
            "false ");
  ExpectHas(Says({"get", "pv", "-o", "json"}), "\"claim\": \"default/data\"");
  ExpectHas(Says({"get", "sc", "-o", "yaml"}), "is_default: true");
  ExpectHas(Says({"get", "pv", "none"}, kNotFound), "no persistentvolume none");
  ExpectHas(Says({"get", "pvc", "none"}, kNotFound), "no persistentvolumeclaim none");
  const std::string of_pods = Says({"get", "volumes", "user"});
  ExpectHas(of_pods, "PLUGIN                   CLAIM  STATE");
  ExpectHas(of_pods, "kubernetes.io/host-path  data   SetUp");
}

TEST_F(StorageVerbsTest, AClaimThatWaitsTellsWhyInItsEvents) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Class() + Claim("later") + Claim("never", "  storageClassName: \"\"\n")));
  const std::string waiting = "waiting for first consumer to be created before binding";
  const std::string nothing =
      "no persistent volumes available for this claim and no storage class is set";
  ASSERT_TRUE(ComesToSay({"events"}, nothing)) << Says({"events"});
  const std::string later = Says({"events", "pvc/later"});
  ExpectHas(later, "WaitForFirstConsumer");
  ExpectHas(later, "PersistentVolumeClaim default/later");
  ExpectHas(later, waiting);
  EXPECT_EQ(later.find("never"), std::string::npos) << later;
  ExpectHas(Says({"events", "persistentvolumeclaim/default/never"}), nothing);
  ExpectHas(Says({"events", "pvc/"}), waiting);
  EXPECT_EQ(Says({"events", "pv/"}).find("default/later"), std::string::npos);
  EXPECT_EQ(Says({"events", "pvc/", "-n", "other"}).find("default/later"), std::string::npos);
  ExpectHas(Says({"events", "pvc/default/none"}, kNotFound),
            "no PersistentVolumeClaim default/none");
  ExpectHas(Says({"events", "pv/none"}, kNotFound), "no PersistentVolume none");
  ExpectHas(Says({"events", "teapot/x"}, kUsage), "unknown kind 'teapot'");
  const std::string described = Says({"describe", "pvc", "later"});
  ExpectHas(described, "Status:");
  ExpectHas(described, "Pending");
  ExpectHas(described, "Events:");
  ExpectHas(described, waiting);
  ExpectHas(Says({"describe", "pvc", "later", "-o", "json"}), "\"WaitForFirstConsumer\"");
}

TEST_F(StorageVerbsTest, AVolumeThatCannotBeReclaimedTellsWhy) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string volume = Volume("disk", "Delete");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(volume + Claim("data", "  volumeName: disk\n")));
  ASSERT_TRUE(ComesToSay({"get", "pv"}, "Bound"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  ASSERT_TRUE(ComesToSay({"events", "pv/disk"}, "VolumeFailedDelete"));
  const std::string described = Says({"describe", "pv", "disk"});
  ExpectHas(described, "VolumeFailedDelete");
  ExpectHas(described, "host_path deleter only supports paths below");
  ExpectHas(Says({"get", "pv"}), "host_path deleter only supports");
  ASSERT_TRUE(Delete("PersistentVolume", "disk").ok());
  // Nothing here can ever delete its storage: its object does not wait for that.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Says({"get", "pv"}).find("disk") == std::string::npos;
  })) << Says({"get", "pv"});
}

TEST_F(StorageVerbsTest, ANewClaimHasNoEventsOfAnEarlierOneOfItsName) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data", "  storageClassName: \"\"\n")));
  ASSERT_TRUE(ComesToSay({"events", "pvc/data"}, "FailedBinding"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  ExpectHas(Says({"events", "pvc/data"}), "FailedBinding");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data")));
  ASSERT_TRUE(ComesToSay({"events", "pvc/data"}, "WaitForFirstConsumer"));
  EXPECT_EQ(Says({"events", "pvc/data"}).find("FailedBinding"), std::string::npos);
}

}  // namespace
}  // namespace volumed::storage_verbs_test
