#include "volumemanager/desired_state_of_world.h"

#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/volume_inputs.h"

namespace volumed {
namespace {

class DesiredStateTest : public ManagerTest {
 protected:
  void SetUp() override {
    StartAgent();
    desired_ = std::make_unique<DesiredStateOfWorld>(agent_->catalog, agent_->plugins, host_parts,
                                                     claims_);
  }
  // The first pod of a manifest.
  static PodPtr PodOf(const std::string& manifest) {
    return std::make_shared<const Pod>(std::get<Pod>(*Objects(manifest).at(0).object));
  }
  static std::string Manifest(const std::string& containers) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns, uid: a, labels: {x: l}}\n"
           "spec:\n"
           "  volumes:\n"
           "  - {name: data, emptyDir: {}}\n"
           "  - {name: conf, configMap: {name: app}}\n"
           "  - {name: unused, emptyDir: {}}\n" +
           containers;
  }
  const WantedVolume& Volume(const std::string& spec) const {
    return *desired_->Find({PodUid("a"), SpecName(spec)});
  }

  // What a claim has that is bound to the volume "disk", or to a partition of it.
  static ResolvedClaim Disk(const std::string& partition, std::vector<AccessMode> modes = {}) {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    volume.spec.access_modes = std::move(modes);
    CsiPersistentVolumeSource source;
    source.driver = "disk.example.com";
    source.volume_handle = "vol-x";
    source.volume_attributes["partition"] = partition;
    volume.spec.source = source;
    ResolvedClaim resolved;
    resolved.volume = std::make_shared<const PersistentVolume>(std::move(volume));
    return resolved;
  }

  // Answers what a test puts in, by the pod volume's name.
  class ScriptedClaims final : public ClaimResolver {
   public:
    ResolvedClaim Resolve(const Pod&, const PodVolume& volume) override {
      const auto found = answers.find(volume.name);
      return found == answers.end() ? ResolvedClaim{} : found->second;
    }
    std::map<std::string, ResolvedClaim> answers;
  };

  ScriptedClaims claims_;
  std::unique_ptr<DesiredStateOfWorld> desired_;
};

TEST_F(DesiredStateTest, VolumesOfEveryKindOfContainerAreWantedAndOthersAreNot) {
  desired_->SetPod(
      PodOf(Manifest("  initContainers:\n"
                     "  - {name: i, image: x, volumeMounts: [{name: data, mountPath: /d}]}\n"
                     "  containers:\n  - {name: c, image: x}\n"
                     "  ephemeralContainers:\n"
                     "  - {name: e, image: x, volumeMounts: [{name: conf, mountPath: /c}]}\n")));
  const auto& volumes = desired_->Find(PodUid("a"))->volumes;
  EXPECT_EQ(volumes.size(), 2u);
  EXPECT_TRUE(volumes.contains(SpecName("data")));
  EXPECT_TRUE(volumes.contains(SpecName("conf")));
}

TEST_F(DesiredStateTest, RefusedSourcesSayWhatToUseInTheirPlace) {
  desired_->SetPod(
      PodOf("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns, uid: a}\nspec:\n"
            "  volumes:\n"
            "  - {name: old, awsElasticBlockStore: {volumeID: vol-x}}\n"
            "  - {name: image, image: {reference: example.org/data}}\n"
            "  containers:\n  - name: c\n    image: x\n    volumeMounts:\n"
            "    - {name: old, mountPath: /o}\n    - {name: image, mountPath: /i}\n"));
  // A volume that is translated has its driver's name on the node.
  for (const char* name : {"ebs.csi.aws.com-vol-x", "image"}) {
    ASSERT_EQ(Volume(name).problems.size(), 1u);
    EXPECT_EQ(Volume(name).problems[0].step, "FindPlugin");
    EXPECT_FALSE(Volume(name).mountable());
  }
  EXPECT_EQ(Volume("ebs.csi.aws.com-vol-x").problems[0].error.message(),
            "awsElasticBlockStore volumes are no longer part of Kubernetes; the CSI driver "
            "ebs.csi.aws.com, which replaces them, has not registered on this node: no volume "
            "plugin matched");
  EXPECT_NE(Volume("image").problems[0].error.message().find("container runtime"),
            std::string::npos);
}

// Two volumes of a pod on one disk, as two partitions of it are once they are translated, were both
// the first one.
TEST_F(DesiredStateTest, TwoPartitionsOfOneDiskWereBothTheFirst) {
  const PodPtr pod = PodOf(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns, uid: a}\nspec:\n"
      "  volumes:\n"
      "  - {name: one, persistentVolumeClaim: {claimName: one}}\n"
      "  - {name: two, persistentVolumeClaim: {claimName: two}}\n"
      "  containers:\n  - name: c\n    image: x\n    volumeMounts:\n"
      "    - {name: one, mountPath: /o}\n    - {name: two, mountPath: /t}\n");
  claims_.answers = {{"one", Disk("1")}, {"two", Disk("1")}};
  desired_->SetPod(pod);
  EXPECT_TRUE(Volume("disk").problems.empty());
  claims_.answers["two"] = Disk("2");
  desired_->SetPod(pod);
  ASSERT_EQ(Volume("disk").problems.size(), 1u);
  EXPECT_EQ(Volume("disk").problems[0].error.message(),
            "volumes one and two name the same storage, and differ in what they want of it "
            "(readOnly, partition or attributes)");
}

// Pods with the volume "disk", by one claim or by two, on a node that has an SELinux.
class SelinuxLabelTest : public DesiredStateTest {
 protected:
  static constexpr const char* kOne = "system_u:object_r:container_file_t:s0:c1,c2";
  static constexpr const char* kOther = "system_u:object_r:container_file_t:s0:c3,c4";
  void SetUp() override {
    DesiredStateTest::SetUp();
    host_parts.has_selinux = true;
    attach->takes_labels = true;
    Bind({AccessMode::kReadWriteOncePod});
  }
  void Bind(const std::vector<AccessMode>& modes) {
    claims_.answers = {{"one", Disk("1", modes)}, {"two", Disk("1", modes)}};
  }
  // A container of each of these SELinux levels ("": it sets none) with the claim that is named
  // with it.
  const WantedVolume& Want(const std::vector<std::pair<std::string, std::string>>& containers,
                           const std::string& policy = "") {
    std::string text =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns, uid: a}\nspec:\n"
        "  securityContext: {" +
        policy +
        "}\n  volumes:\n"
        "  - {name: one, persistentVolumeClaim: {claimName: one}}\n"
        "  - {name: two, persistentVolumeClaim: {claimName: two}}\n  containers:\n";
    for (const auto& [claim, level] : containers) {
      text += "  - name: c" + std::to_string(++containers_) + "\n    image: x\n";
      text += "    volumeMounts: [{name: " + claim + ", mountPath: /d}]\n";
      if (level.empty()) continue;
      text += "    securityContext: {seLinuxOptions: {level: \"" + level + "\"}}\n";
    }
    desired_->SetPod(PodOf(text));
    return Volume("disk");
  }

 private:
  int containers_ = 0;
};

TEST_F(SelinuxLabelTest, TheMountHasTheOneLabelThatTheContainersNeed) {
  const WantedVolume& wanted = Want({{"one", "s0:c1,c2"}, {"one", ""}, {"one", "s0:c1,c2"}});
  EXPECT_EQ(wanted.selinux_label, kOne);
  EXPECT_TRUE(wanted.problems.empty() && wanted.mountable());
}

// What one mount shows to several pods cannot have the label of one of them.
TEST_F(SelinuxLabelTest, OnlyAVolumeThatOnePodHasAtATimeIsMountedWithALabel) {
  for (const std::vector<AccessMode>& modes :
       {std::vector<AccessMode>{AccessMode::kReadWriteOnce},
        {AccessMode::kReadWriteOncePod, AccessMode::kReadWriteOnce}}) {
    Bind(modes);
    const WantedVolume& wanted = Want({{"one", "s0:c1,c2"}, {"one", "s0:c3,c4"}});
    EXPECT_EQ(wanted.selinux_label, "");
    EXPECT_TRUE(wanted.problems.empty() && wanted.mountable());
  }
}

TEST_F(SelinuxLabelTest, ThereIsNoneWithoutAnSelinuxOrIfThePluginCannotMountWithOne) {
  host_parts.has_selinux = false;
  EXPECT_EQ(Want({{"one", "s0:c1,c2"}}).selinux_label, "");
  host_parts.has_selinux = true;
  attach->takes_labels = false;
  EXPECT_EQ(Want({{"one", "s0:c1,c2"}, {"one", "s0:c3,c4"}}).selinux_label, "");
  EXPECT_TRUE(Volume("disk").problems.empty());
}

TEST_F(SelinuxLabelTest, ContainersThatNeedTwoLabelsAreRefusedWithBoth) {
  const WantedVolume& wanted = Want({{"one", "s0:c1,c2"}, {"one", "s0:c3,c4"}});
  EXPECT_FALSE(wanted.mountable());
  ASSERT_EQ(wanted.problems.size(), 1u);
  EXPECT_EQ(wanted.problems[0].step, "CheckSELinuxLabel");
  EXPECT_EQ(wanted.problems[0].error.message(),
            std::string("conflicting SELinux labels of volume disk: its containers need ") + kOne +
                " and " + kOther + ", and one mount has one label");
}

TEST_F(SelinuxLabelTest, APodThatWantsItsFilesLabelledOneByOneHasNoMountWithALabel) {
  const std::string recursive = "seLinuxChangePolicy: Recursive";
  EXPECT_EQ(Want({{"one", "s0:c1,c2"}}, recursive).selinux_label, "");
  EXPECT_TRUE(Want({{"one", "s0:c1,c2"}, {"one", "s0:c3,c4"}}, recursive).problems.empty());
  EXPECT_TRUE(Volume("disk").mountable());
  EXPECT_EQ(Want({{"one", "s0:c1,c2"}}, "seLinuxChangePolicy: MountOption").selinux_label, kOne);
}

// Two volumes of a pod that are one on the node were mounted with the label of the first one's
// containers, whatever those of the second need.
TEST_F(SelinuxLabelTest, TwoVolumesOfOneStorageWereMountedWithTheLabelOfTheFirst) {
  EXPECT_EQ(Want({{"one", ""}, {"two", "s0:c1,c2"}}).selinux_label, kOne);
  const WantedVolume& wanted = Want({{"one", "s0:c1,c2"}, {"two", "s0:c3,c4"}});
  EXPECT_FALSE(wanted.mountable());
  ASSERT_EQ(wanted.problems.size(), 1u);
  EXPECT_EQ(wanted.problems[0].step, "CheckSELinuxLabel");
}

TEST_F(DesiredStateTest, SubPathsAreExpandedPerContainerAndStayAsTheyWere) {
  const std::string containers =
      "  containers:\n"
      "  - name: c\n    image: x\n"
      "    env: [{name: L, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['x']\"}}}]\n"
      "    volumeMounts:\n"
      "    - {name: data, mountPath: /d}\n"
      "    - {name: data, mountPath: /s, subPath: logs/c, readOnly: true}\n"
      "    - {name: data, mountPath: /e, subPathExpr: $(L)/deep}\n"
      "    - {name: data, mountPath: /f, subPathExpr: $(MISSING)}\n";
  desired_->SetPod(PodOf(Manifest(containers)));
  const std::vector<SubPathRequest> expected = {{"c", 1, "logs/c", true},
                                                {"c", 2, "l/deep", false}};
  EXPECT_EQ(Volume("data").sub_paths, expected);
  ASSERT_EQ(Volume("data").problems.size(), 1u);
  EXPECT_EQ(Volume("data").problems[0].step, "ExpandSubPath");
  EXPECT_NE(Volume("data").problems[0].error.message().find("mount at /f"), std::string::npos);
  EXPECT_TRUE(Volume("data").mountable());

  Pod changed = *PodOf(Manifest(containers));
  changed.metadata.labels["x"] = "other";
  const uint64_t generation = Volume("data").generation;
  desired_->SetPod(std::make_shared<const Pod>(changed));
  EXPECT_EQ(Volume("data").sub_paths, expected) << "a running container keeps its path";
  EXPECT_EQ(Volume("data").generation, generation);
}

TEST_F(DesiredStateTest, AConfigMapThatASubPathNeedsMakesTheVolumeNewOnce) {
  desired_->SetPod(
      PodOf(Manifest("  containers:\n"
                     "  - name: c\n    image: x\n"
                     "    env: [{name: L, valueFrom: {configMapKeyRef: {name: env, key: k}}}]\n"
                     "    volumeMounts:\n"
                     "    - {name: data, mountPath: /e, subPathExpr: $(L)}\n")));
  EXPECT_EQ(Volume("data").problems.size(), 1u);
  const uint64_t before = Volume("data").generation;
  const std::string env =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env, namespace: ns}\ndata: {k: dir}\n";
  Deliver(env);
  const ObjectKey key{ObjectKind::kConfigMap, "ns", "env"};
  EXPECT_EQ(desired_->ObjectChanged(key), std::set<PodUid>{PodUid("a")});
  EXPECT_TRUE(Volume("data").problems.empty());
  ASSERT_EQ(Volume("data").sub_paths.size(), 1u);
  EXPECT_EQ(Volume("data").sub_paths[0].sub_path, "dir");
  const uint64_t after = Volume("data").generation;
  EXPECT_GT(after, before);
  desired_->ObjectChanged(key);
  EXPECT_EQ(Volume("data").generation, after);
}

TEST_F(DesiredStateTest, NestedMountPointsAreThoseDirectlyBelow) {
  const PodPtr pod =
      PodOf(Manifest("  containers:\n"
                     "  - name: c\n    image: x\n    volumeMounts:\n"
                     "    - {name: data, mountPath: /srv}\n"
                     "    - {name: conf, mountPath: /srv/a}\n"
                     "    - {name: unused, mountPath: /srv/a/b}\n"
                     "    - {name: conf, mountPath: /srv/c/d, subPath: s}\n"
                     "    - {name: conf, mountPath: /srvx}\n"
                     "  - name: d\n    image: x\n    volumeMounts:\n"
                     "    - {name: data, mountPath: /top, subPath: s}\n"
                     "    - {name: conf, mountPath: /top/z}\n"));
  EXPECT_EQ(NestedMountPoints(*pod, "data"), (std::vector<std::string>{"a", "c/d"}));
  EXPECT_EQ(NestedMountPoints(*pod, "conf"), (std::vector<std::string>{"b"}));
  EXPECT_TRUE(NestedMountPoints(*pod, "unused").empty());
}

TEST_F(DesiredStateTest, AVolumeUsedAsADeviceIsRefusedWithKubeletsText) {
  // A manifest like that is refused when it is read; the object model allows it all the same.
  Pod pod =
      *PodOf(Manifest("  containers:\n"
                      "  - {name: c, image: x, volumeMounts: [{name: conf, mountPath: /c}]}\n"));
  pod.spec.containers[0].volume_devices.push_back({"data", "/dev/x"});
  desired_->SetPod(std::make_shared<const Pod>(pod));
  EXPECT_FALSE(Volume("data").mountable());
  EXPECT_EQ(Volume("data").problems.at(0).error.message(),
            "volume data has volumeMode Filesystem, but is specified in volumeDevices");
  EXPECT_TRUE(Volume("conf").mountable());
}

TEST_F(DesiredStateTest, AChangeConcernsTheVolumesOfItsObjectOnly) {
  desired_->SetPod(
      PodOf(Manifest("  containers:\n"
                     "  - {name: c, image: x, volumeMounts: [{name: data, mountPath: /d},"
                     " {name: conf, mountPath: /c}]}\n")));
  const uint64_t data = Volume("data").generation;
  const uint64_t conf = Volume("conf").generation;
  EXPECT_TRUE(desired_->ObjectChanged({ObjectKind::kConfigMap, "other", "app"}).empty());
  EXPECT_FALSE(desired_->ObjectChanged({ObjectKind::kConfigMap, "ns", "app"}).empty());
  EXPECT_EQ(Volume("data").generation, data);
  EXPECT_GT(Volume("conf").generation, conf);
  EXPECT_TRUE(desired_->RemovePod(PodUid("a")));
  EXPECT_TRUE(desired_->ObjectChanged({ObjectKind::kConfigMap, "ns", "app"}).empty());
}

TEST_F(DesiredStateTest, AProjectedVolumeRefersToAllItsObjects) {
  ProjectedVolumeSource source;
  source.sources = {SecretProjection{"s", {}, false}, ConfigMapProjection{"c", {}, false},
                    DownwardApiProjection{}, ServiceAccountTokenProjection{}};
  const std::set<ObjectKey> expected = {{ObjectKind::kSecret, "ns", "s"},
                                        {ObjectKind::kConfigMap, "ns", "c"}};
  EXPECT_EQ(ObjectsOfVolume("ns", source), expected);
  EXPECT_TRUE(ObjectsOfVolume("ns", EmptyDirVolumeSource{}).empty());
}

TEST_F(DesiredStateTest, AnObjectThatAPluginNeedsWakesThePodAndSetsNothingUpAgain) {
  const ObjectKey object{ObjectKind::kCsiDriver, "", "disks.test.io"};
  attach->depends_on = {object};
  const PodPtr pod =
      PodOf(Manifest("  containers:\n"
                     "  - {name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}\n"));
  desired_->SetPod(pod);
  EXPECT_TRUE(Volume("data").objects.contains(object));
  const uint64_t generation = Volume("data").generation;
  EXPECT_EQ(desired_->ObjectChanged(object), std::set<PodUid>{PodUid("a")});
  EXPECT_EQ(Volume("data").generation, generation);
  attach->depends_on.clear();
  desired_->SetPod(pod);
  EXPECT_TRUE(desired_->ObjectChanged(object).empty());
}

}  // namespace
}  // namespace volumed
