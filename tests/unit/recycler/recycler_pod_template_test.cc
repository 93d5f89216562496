#include "recycler/recycler_pod_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <variant>

#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

TEST(RecyclerPodTemplateTest, ScrubsItsFirstVolumeAndEndsAfterAMinute) {
  const Pod pod = NewPersistentVolumeRecyclerPodTemplate();
  EXPECT_EQ(pod.metadata.generate_name, "pv-recycler-");
  EXPECT_EQ(pod.metadata.name_space, "default");
  EXPECT_EQ(pod.spec.active_deadline_seconds, 60);
  EXPECT_EQ(pod.spec.restart_policy, RestartPolicy::kNever);
  ASSERT_EQ(pod.spec.volumes.size(), 1u);
  EXPECT_EQ(pod.spec.volumes[0].name, "vol");
  EXPECT_TRUE(std::holds_alternative<EmptyDirVolumeSource>(pod.spec.volumes[0].source));
  ASSERT_EQ(pod.spec.containers.size(), 1u);
  const Container& container = pod.spec.containers[0];
  EXPECT_EQ(container.name, "pv-recycler");
  EXPECT_EQ(container.command, (std::vector<std::string>{"/bin/sh"}));
  ASSERT_EQ(container.args.size(), 2u);
  EXPECT_NE(container.args[1].find("find /scrub -mindepth 1 -delete"), std::string::npos);
  ASSERT_EQ(container.volume_mounts.size(), 1u);
  EXPECT_EQ(container.volume_mounts[0].mount_path, "/scrub");
}

TEST(RecyclerPodTemplateTest, ValidateWantsAVolumeAndNothingElse) {
  EXPECT_TRUE(ValidateRecyclerPodTemplate(NewPersistentVolumeRecyclerPodTemplate()).ok());
  const Status refused = ValidateRecyclerPodTemplate(Pod());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(), "does not contain any volume(s)");
}

TEST(RecyclerPodTemplateTest, ScrubsLikeTemplateIgnoresWhatPluginsReplace) {
  Pod pod = NewPersistentVolumeRecyclerPodTemplate();
  pod.metadata.name = "recycler-for-pv";
  pod.spec.active_deadline_seconds = 300;
  pod.spec.volumes[0].source = HostPathVolumeSource{"/h", HostPathType::kUnset};
  EXPECT_TRUE(ScrubsLikeTemplate(pod));
  Pod other = pod;
  other.spec.containers[0].args[1] = "true";
  EXPECT_FALSE(ScrubsLikeTemplate(other));
  other = pod;
  other.spec.containers[0].volume_mounts[0].sub_path = "a";
  EXPECT_FALSE(ScrubsLikeTemplate(other));
  other = pod;
  other.spec.volumes.push_back(pod.spec.volumes[0]);
  EXPECT_FALSE(ScrubsLikeTemplate(other));
}

TEST(RecyclerPodTemplateTest, TimeoutIsTheGreaterOfMinimumAndSize) {
  const auto timeout = [](int minimum, int increment, const char* capacity) {
    return CalculateTimeoutForVolume(minimum, increment, Quantity::Parse(capacity).value());
  };
  EXPECT_EQ(timeout(30, 30, "500M"), 30);
  EXPECT_EQ(timeout(30, 30, "2Gi"), 60);
  EXPECT_EQ(timeout(30, 30, "5Gi"), 150) << "not added to the minimum";
  EXPECT_EQ(timeout(0, 30, "1.9Gi"), 30) << "whole Gi only";
  EXPECT_EQ(timeout(30, 60, "100Ti"), 102400 * 60);
  EXPECT_EQ(timeout(60, 0, "8Gi"), 60);
  EXPECT_EQ(timeout(60, 2147483647, "4Ei"), int64_t{2147483647} * (int64_t{1} << 32));
}

class LoadTemplateTest : public ::testing::Test {
 protected:
  Result<Pod> Load(const std::string& text) {
    std::ofstream(path_, std::ios::trunc) << text;
    return LoadRecyclerPodTemplate(path_);
  }
  TempDirectory scratch_;
  const std::string path_ = scratch_.path() + "/pod.yaml";
};

TEST_F(LoadTemplateTest, WithoutAFileItIsTheBuiltInOne) {
  EXPECT_EQ(LoadRecyclerPodTemplate("").value(), NewPersistentVolumeRecyclerPodTemplate());
}

TEST_F(LoadTemplateTest, ReadsAPod) {
  const auto pod = Load(R"(
apiVersion: v1
kind: Pod
metadata: {name: pv-recycler, namespace: storage, generateName: pv-recycler-nfs-}
spec:
  activeDeadlineSeconds: 17
  restartPolicy: Never
  volumes: [{name: vol, hostPath: {path: /any}}]
  containers:
  - name: scrub
    image: busybox
    command: [/bin/sh]
    args: [-c, "rm -rf /scrub/*"]
    volumeMounts: [{name: vol, mountPath: /scrub}]
)");
  ASSERT_TRUE(pod.ok()) << pod.error().ToString();
  EXPECT_EQ(pod->metadata.name_space, "storage");
  EXPECT_EQ(pod->metadata.generate_name, "pv-recycler-nfs-");
  EXPECT_EQ(pod->spec.active_deadline_seconds, 17);
  EXPECT_EQ(pod->spec.containers[0].args, (std::vector<std::string>{"-c", "rm -rf /scrub/*"}));
}

TEST_F(LoadTemplateTest, RefusesOthersWithTheirReason) {
  EXPECT_EQ(LoadRecyclerPodTemplate(path_).error().code(), Code::kNotFound);
  EXPECT_EQ(Load(" \n").error().message(), "file was empty: " + path_);
  EXPECT_EQ(Load("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n").error().message(),
            path_ + ": must hold one Pod and nothing else");
  EXPECT_NE(Load("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, "
                 "image: i}]}\n")
                .error()
                .message()
                .find("does not contain any volume(s)"),
            std::string::npos);
  EXPECT_EQ(Load("kind: [").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
