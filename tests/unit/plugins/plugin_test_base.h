// PluginTestBase: one pod "u1" below the root "/r" on a FakeKernel, with all in-tree plugins.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fakes/fake_kernel.h"
#include "fakes/target_of.h"
#include "plugins/in_tree_plugins.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {

class PluginTestBase : public ::testing::Test {
 protected:
  explicit PluginTestBase(KernelFeatures features = {}) : world_(kernel_, "/r", features) {
    kernel_.AddDirectory("/r/pods/u1/volumes", 0750);
    const Status status = mgr_.InitPlugins(MakeInTreePlugins(), world_.host);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().ToString());
  }

  VolumePlugin& PluginFor(const VolumeSource& source) {
    return *mgr_.FindPluginBySpec(VolumeSpec::FromVolume(PodVolume{"v", source})).value();
  }
  std::unique_ptr<Mounter> NewMounter(const VolumeSource& source) {
    return PluginFor(source).NewMounter(SpecOf(source), TargetFor(source)).value();
  }
  static VolumeSpec SpecOf(const VolumeSource& source) {
    return VolumeSpec::FromVolume(PodVolume{"v", source});
  }
  VolumeTarget TargetFor(const VolumeSource& source) {
    return TargetOf(world_.paths, PluginFor(source), SpecOf(source), pod_);
  }
  // Of somebody who is no pod, below "/other".
  VolumeTarget TargetWithoutPod() {
    kernel_.AddDirectory("/other", 0750);
    VolumeTarget target;
    target.key = {PodUid("caller"), SpecName("v")};
    target.place = {"/other", "vol"};
    target.directory = {"/other", "own"};
    target.display_name = "a caller";
    return target;
  }
  Status SetUp1(const VolumeSource& source, const MounterArgs& args = {}) {
    return NewMounter(source)->SetUp(args);
  }
  Status Refresh(const VolumeSource& source, MounterArgs args = {}) {
    args.is_remount = true;
    return NewMounter(source)->SetUp(args);
  }
  Status TearDown1(const VolumeSource& source) {
    return PluginFor(source).NewUnmounter(SpecName("v"), PodUid("u1")).value()->TearDown({});
  }
  std::string PathOf(const VolumeSource& source) { return NewMounter(source)->GetPath(); }
  std::string Content(const VolumeSource& source, const std::string& file) {
    return kernel_.Find(PathOf(source) + "/..data/" + file).content;
  }
  FakeFile FileIn(const VolumeSource& source, const std::string& file) {
    return kernel_.Find(PathOf(source) + "/..data/" + file);
  }

  FakeKernel kernel_;
  PluginWorld world_;
  VolumePluginMgr mgr_;
  Pod pod_ = MakePod();
};

}  // namespace volumed
