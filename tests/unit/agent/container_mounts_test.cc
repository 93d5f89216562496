#include "agent/container_mounts.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

class ContainerMountsTest : public testing::Test {
 protected:
  ContainerMountsTest() {
    Container container;
    container.name = "main";
    pod_.spec.containers.push_back(container);
    view_.ns = "default";
    view_.name = "web";
  }

  VolumeMount& AddMount(const std::string& volume, const std::string& path) {
    VolumeMount mount;
    mount.name = volume;
    mount.mount_path = path;
    auto& mounts = pod_.spec.containers[0].volume_mounts;
    mounts.push_back(mount);
    return mounts.back();
  }
  VolumeView& AddVolume(const std::string& name, const std::string& path) {
    VolumeView volume;
    volume.spec = SpecName(name);
    volume.pod_volumes = {name};
    volume.state = "SetUp";
    volume.host_path = path;
    view_.volumes.push_back(volume);
    return view_.volumes.back();
  }
  Result<std::vector<ContainerMount>> Get(bool rro = true) {
    return GetContainerMounts(pod_, view_, "main", rro);
  }

  Pod pod_;
  PodView view_;
};

TEST_F(ContainerMountsTest, AVolumeIsBoundFromItsHostPath) {
  AddVolume("data", "/root/pods/u/volumes/kubernetes.io~empty-dir/data");
  AddMount("data", "/data");
  const auto mounts = Get();
  ASSERT_TRUE(mounts.ok()) << mounts.error().ToString();
  ASSERT_EQ(mounts->size(), 1u);
  EXPECT_EQ((*mounts)[0].destination, "/data");
  EXPECT_EQ((*mounts)[0].source, "/root/pods/u/volumes/kubernetes.io~empty-dir/data");
  EXPECT_EQ((*mounts)[0].options, (std::vector<std::string>{"rbind", "rw", "rprivate"}));
}

TEST_F(ContainerMountsTest, ReadOnlyComesFromTheMountOrTheVolume) {
  AddVolume("a", "/a").read_only = true;
  AddVolume("b", "/b");
  AddMount("a", "/a");
  AddMount("b", "/b").read_only = true;
  const auto mounts = Get();
  ASSERT_TRUE(mounts.ok());
  EXPECT_EQ((*mounts)[0].options[1], "ro");
  EXPECT_EQ((*mounts)[1].options[1], "ro");
}

TEST_F(ContainerMountsTest, RecursiveReadOnlyNeedsTheKernel) {
  AddVolume("a", "/a");
  VolumeMount& mount = AddMount("a", "/a");
  mount.read_only = true;
  mount.recursive_read_only = RecursiveReadOnly::kIfPossible;
  EXPECT_EQ(Get(true)->at(0).options[1], "rro");
  EXPECT_EQ(Get(false)->at(0).options[1], "ro");
  mount.recursive_read_only = RecursiveReadOnly::kEnabled;
  EXPECT_EQ(Get(true)->at(0).options[1], "rro");
  const auto refused = Get(false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnimplemented);
  EXPECT_NE(refused.error().message().find("mount-setattr"), std::string::npos);
}

TEST_F(ContainerMountsTest, PropagationIsKubernetes) {
  AddVolume("a", "/a");
  AddMount("a", "/1").mount_propagation = MountPropagation::kHostToContainer;
  AddMount("a", "/2").mount_propagation = MountPropagation::kBidirectional;
  const auto mounts = Get();
  EXPECT_EQ((*mounts)[0].options[2], "rslave");
  EXPECT_EQ((*mounts)[1].options[2], "rshared");
}

TEST_F(ContainerMountsTest, ASubPathIsBoundFromItsPreparedPlace) {
  AddVolume("a", "/a").sub_paths = {{"main", 1, "/root/pods/u/volume-subpaths/a/main/1"}};
  AddMount("a", "/whole");
  AddMount("a", "/part").sub_path = "x";
  const auto mounts = Get();
  ASSERT_TRUE(mounts.ok());
  EXPECT_EQ((*mounts)[0].source, "/a");
  EXPECT_EQ((*mounts)[1].source, "/root/pods/u/volume-subpaths/a/main/1");
}

TEST_F(ContainerMountsTest, WhatIsNotReadyIsNamed) {
  AddMount("late", "/late");
  AddVolume("late", "/late").state = "SettingUp";
  const auto mounts = Get();
  ASSERT_FALSE(mounts.ok());
  EXPECT_EQ(mounts.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(mounts.error().message().find("late"), std::string::npos);

  const auto unknown = GetContainerMounts(pod_, view_, "other", true);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
}

TEST_F(ContainerMountsTest, ASubPathThatIsNotPreparedIsNotTheWholeVolume) {
  AddVolume("a", "/a");
  AddMount("a", "/part").sub_path = "x";
  const auto mounts = Get();
  ASSERT_FALSE(mounts.ok());
  EXPECT_EQ(mounts.error().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace volumed
