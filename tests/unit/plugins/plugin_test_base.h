// PluginTestBase: one pod "u1" below the root "/r" on a FakeKernel, with all in-tree plugins.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fakes/fake_kernel.h"
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
    return PluginFor(source)
        .NewMounter(VolumeSpec::FromVolume(PodVolume{"v", source}),
                    std::make_shared<const Pod>(pod_))
        .value();
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
