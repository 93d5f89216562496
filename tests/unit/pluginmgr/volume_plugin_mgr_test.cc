#include "pluginmgr/volume_plugin_mgr.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "fakes/fake_kernel.h"
#include "pluginmgr/qualified_name.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

// A plugin that does nothing but answer what the manager asks.
class StubPlugin final : public VolumePlugin {
 public:
  StubPlugin(std::string name, bool supports, Status init = OkStatus())
      : name_(std::move(name)), supports_(supports), init_(std::move(init)) {}

  Status Init(PluginContext) override { return init_; }
  std::string GetPluginName() const override { return name_; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override {
    return spec.name().str();
  }
  bool CanSupport(const VolumeSpec&) const override { return supports_; }
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec&, const VolumeTarget&) override {
    return Error::NotApplied(Code::kUnimplemented, "stub");
  }
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName&, const PodUid&) override {
    return Error::NotApplied(Code::kUnimplemented, "stub");
  }
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName&, const SafePath&,
                                                  const CallOptions&) override {
    return Error::NotApplied(Code::kUnimplemented, "stub");
  }
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override { return ""; }

 private:
  const std::string name_;
  const bool supports_;
  const Status init_;
};

class VolumePluginMgrTest : public ::testing::Test {
 protected:
  template <typename... Plugins>
  Status Init(Plugins... plugins) {
    std::vector<std::unique_ptr<VolumePlugin>> list;
    (list.push_back(std::make_unique<StubPlugin>(std::move(plugins))), ...);
    return mgr_.InitPlugins(std::move(list), world_.host);
  }
  static VolumeSpec AnySpec() {
    return VolumeSpec::FromVolume(PodVolume{"v", EmptyDirVolumeSource()});
  }

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  VolumePluginMgr mgr_;
};

TEST_F(VolumePluginMgrTest, FindsTheOnePluginThatSupportsASpec) {
  ASSERT_TRUE(Init(StubPlugin("x/a", false), StubPlugin("x/b", true)).ok());
  const auto found = mgr_.FindPluginBySpec(AnySpec());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->GetPluginName(), "x/b");
}

TEST_F(VolumePluginMgrTest, NoPluginForASpec) {
  ASSERT_TRUE(Init(StubPlugin("x/a", false)).ok());
  const auto found = mgr_.FindPluginBySpec(AnySpec());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Code::kNotFound);
  EXPECT_EQ(found.error().message(), "no volume plugin matched");
}

TEST_F(VolumePluginMgrTest, TwoPluginsForASpecAreNamed) {
  ASSERT_TRUE(Init(StubPlugin("x/b", true), StubPlugin("x/a", true)).ok());
  const auto found = mgr_.FindPluginBySpec(AnySpec());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(found.error().message(), "multiple volume plugins matched: x/a,x/b");
}

TEST_F(VolumePluginMgrTest, FindsByName) {
  ASSERT_TRUE(Init(StubPlugin("x/a", false)).ok());
  EXPECT_TRUE(mgr_.FindPluginByName("x/a").ok());
  const auto missing = mgr_.FindPluginByName("x/z");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(), "no volume plugin matched name: x/z");
}

TEST_F(VolumePluginMgrTest, ADuplicateIsAnErrorAndTheFirstStays) {
  const Status status = Init(StubPlugin("x/a", true), StubPlugin("x/a", false));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "volume plugin \"x/a\" was registered more than once");
  EXPECT_TRUE(mgr_.FindPluginBySpec(AnySpec()).ok());
}

TEST_F(VolumePluginMgrTest, ErrorsAreGatheredAndTheGoodPluginsLoad) {
  const Status status =
      Init(StubPlugin("bad name", true), StubPlugin("x/good", true),
           StubPlugin("x/broken", true, Error::NotApplied(Code::kUnavailable, "no disk")));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(status.error().message().find("[volume plugin has invalid name: \"bad name\": name "
                                          "part must consist of alphanumeric characters"),
            0u);
  EXPECT_NE(status.error().message().find(", no disk]"), std::string::npos);
  EXPECT_EQ(mgr_.PluginNames(), (std::vector<std::string>{"x/good"}));
}

TEST(QualifiedNameTest, AcceptsKubernetesNames) {
  for (const std::string& name :
       {std::string("kubernetes.io/empty-dir"), std::string("a"), std::string("A.b_c-1"),
        std::string("my-vendor.example.com/driver"), std::string(63, 'a'),
        std::string(63, 'a') + "." + std::string(63, 'b') + "/x"}) {
    EXPECT_TRUE(QualifiedNameProblems(name).empty()) << name;
  }
}

TEST(QualifiedNameTest, RefusesOthersWithReasons) {
  for (const std::string& name :
       {std::string(""), std::string("/a"), std::string("a/"), std::string("a/b/c"),
        std::string("-a"), std::string("a-"), std::string("a b"), std::string("Upper.io/a"),
        std::string("a..b/c"), std::string(64, 'a'), std::string("x.io/") + std::string(64, 'a')}) {
    EXPECT_FALSE(QualifiedNameProblems(name).empty()) << name;
  }
  EXPECT_EQ(QualifiedNameProblems(std::string(64, 'a')),
            (std::vector<std::string>{"name part must be no more than 63 characters"}));
  EXPECT_EQ(QualifiedNameProblems("/a"),
            (std::vector<std::string>{"prefix part must be non-empty"}));
}

}  // namespace
}  // namespace volumed
