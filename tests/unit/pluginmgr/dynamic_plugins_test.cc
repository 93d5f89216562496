// Plugins that come and go while the manager is used.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "pluginmgr/dynamic_plugin_prober.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

// What a prober is to answer next; outlives it.
struct ProbeScript {
  Status init = OkStatus();
  std::deque<ProbeResult> answers;
  int probes = 0;
  std::string why = "";
  std::function<std::unique_ptr<VolumePlugin>(const std::string&)> make_for_teardown = nullptr;
};

class ScriptedProber final : public DynamicPluginProber {
 public:
  explicit ScriptedProber(ProbeScript& script) : script_(script) {}
  Status Init() override { return script_.init; }
  std::unique_ptr<VolumePlugin> MakeForTeardown(const std::string& name) const override {
    return script_.make_for_teardown ? script_.make_for_teardown(name) : nullptr;
  }
  std::string WhyMissing(const std::string& name) const override {
    return script_.why.empty() ? "" : name + " " + script_.why;
  }
  ProbeResult Probe() override {
    ++script_.probes;
    if (script_.answers.empty()) return {};
    ProbeResult answer = std::move(script_.answers.front());
    script_.answers.pop_front();
    return answer;
  }

 private:
  ProbeScript& script_;
};

class DynamicPluginsTest : public ::testing::Test {
 protected:
  Status Init(std::vector<std::unique_ptr<VolumePlugin>> plugins = {}) {
    return mgr_.InitPlugins(std::move(plugins), std::make_unique<ScriptedProber>(script_),
                            world_.host, log_);
  }
  std::unique_ptr<StatefulPlugin> Plugin(const std::string& name,
                                         StatefulPlugin::Switches switches = {}) {
    return std::make_unique<StatefulPlugin>(name, storage_, std::move(switches));
  }
  // The next probe brings `plugin`; what it is afterwards known as.
  VolumePlugin* Bring(const std::string& name, StatefulPlugin::Switches switches = {}) {
    ProbeEvent event;
    event.plugin_name = name;
    event.plugin = Plugin(name, std::move(switches));
    VolumePlugin* plugin = event.plugin.get();
    ProbeResult answer;
    answer.events.push_back(std::move(event));
    script_.answers.push_back(std::move(answer));
    return plugin;
  }
  void Take(const std::string& name) {
    ProbeEvent event;
    event.op = ProbeOperation::kRemove;
    event.plugin_name = name;
    ProbeResult answer;
    answer.events.push_back(std::move(event));
    script_.answers.push_back(std::move(answer));
  }
  static VolumeSpec Spec() { return VolumeSpec::FromVolume({"v", EmptyDirVolumeSource()}); }

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  StatefulStorage storage_;
  ProbeScript script_;
  std::vector<std::string> lines_;
  Logger log_{LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [this](LogLevel, std::string_view line) { lines_.emplace_back(line); }},
              world_.clock};
  VolumePluginMgr mgr_;
};

TEST_F(DynamicPluginsTest, TheNumbersOfOperationsAreKubelets) {
  EXPECT_EQ(static_cast<uint32_t>(ProbeOperation::kAddOrUpdate), 2u);
  EXPECT_EQ(static_cast<uint32_t>(ProbeOperation::kRemove), 4u);
}

TEST_F(DynamicPluginsTest, EveryLookUpProbesFirst) {
  ASSERT_TRUE(Init().ok());
  EXPECT_EQ(script_.probes, 1) << "once at the start";
  EXPECT_FALSE(mgr_.FindPluginByName("v/d").ok());
  VolumePlugin* brought = Bring("v/d");
  EXPECT_EQ(*mgr_.FindPluginByName("v/d"), brought);
  EXPECT_EQ(*mgr_.FindPluginBySpec(Spec()), brought);
  EXPECT_EQ(script_.probes, 4);
  EXPECT_EQ(static_cast<StatefulPlugin*>(brought)->inits, 1);
  EXPECT_EQ(mgr_.PluginNames(), (std::vector<std::string>{"v/d"}));
}

TEST_F(DynamicPluginsTest, AnUpdateReplacesAndARemovalTakesAway) {
  ASSERT_TRUE(Init().ok());
  VolumePlugin* first = Bring("v/d");
  ASSERT_EQ(*mgr_.FindPluginByName("v/d"), first);
  VolumePlugin* second = Bring("v/d");
  EXPECT_EQ(*mgr_.FindPluginByName("v/d"), second);
  EXPECT_EQ(first->GetPluginName(), "v/d") << "who holds the old one can still use it";
  Take("v/d");
  EXPECT_EQ(mgr_.FindPluginByName("v/d").error().message(), "no volume plugin matched name: v/d");
  EXPECT_EQ(second->GetPluginName(), "v/d");
  Take("never/was");
  EXPECT_FALSE(mgr_.FindPluginBySpec(Spec()).ok());
}

TEST_F(DynamicPluginsTest, WhatARemovedPluginHasMadeIsTakenAwayByIt) {
  ASSERT_TRUE(Init().ok());
  VolumePlugin* first = Bring("v/d");
  ASSERT_EQ(*mgr_.FindPluginByName("v/d"), first);
  Take("v/d");
  EXPECT_EQ(*mgr_.FindPluginForTeardown("v/d"), first);
  EXPECT_FALSE(mgr_.FindPluginByName("v/d").ok());
  VolumePlugin* second = Bring("v/d");
  EXPECT_EQ(*mgr_.FindPluginForTeardown("v/d"), second);
}

TEST_F(DynamicPluginsTest, WhatIsLeftOfADriverOfAnEarlierRunIsTakenAwayByOneMadeForIt) {
  ASSERT_TRUE(Init().ok());
  script_.why = "is missing";
  EXPECT_EQ(mgr_.FindPluginForTeardown("v/d").error().message(),
            "no volume plugin matched name: v/d: v/d is missing");
  script_.make_for_teardown = [this](const std::string& name) { return Plugin(name); };
  VolumePlugin* const made = *mgr_.FindPluginForTeardown("v/d");
  EXPECT_EQ(made->GetPluginName(), "v/d");
  EXPECT_EQ(static_cast<StatefulPlugin*>(made)->inits, 1);
  EXPECT_EQ(*mgr_.FindPluginForTeardown("v/d"), made) << "one is enough";
  EXPECT_FALSE(mgr_.FindPluginByName("v/d").ok());
}

TEST_F(DynamicPluginsTest, APluginForTeardownThatCannotStartIsNotUsed) {
  ASSERT_TRUE(Init().ok());
  script_.make_for_teardown = [this](const std::string& name) {
    return Plugin(name, {.init = Error::NotApplied(Code::kUnavailable, "driver does not start")});
  };
  const Result<VolumePlugin*> found = mgr_.FindPluginForTeardown("v/d");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message(), "driver does not start");
}

TEST_F(DynamicPluginsTest, TheReasonWhyADriverIsMissingIsToldWithItsVolume) {
  ASSERT_TRUE(Init().ok());
  script_.why = "is missing";
  FlexVolumeSource source;
  source.driver = "v/d";
  EXPECT_EQ(mgr_.FindPluginBySpec(VolumeSpec::FromVolume({"f", source})).error().message(),
            "no volume plugin matched: v/d is missing");
  EXPECT_EQ(mgr_.FindPluginBySpec(Spec()).error().message(), "no volume plugin matched");
}

TEST_F(DynamicPluginsTest, AProbedPluginThatCannotBeUsedIsLeftOutAndLogged) {
  ASSERT_TRUE(Init().ok());
  VolumePlugin* good = Bring("v/d");
  ASSERT_TRUE(mgr_.FindPluginByName("v/d").ok());
  Bring("v/d", {.init = Error::NotApplied(Code::kUnavailable, "driver does not start")});
  EXPECT_EQ(*mgr_.FindPluginByName("v/d"), good) << "the one before it stays";
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("driver does not start"), std::string::npos);
  Bring("bad name");
  EXPECT_FALSE(mgr_.FindPluginByName("bad name").ok());
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(DynamicPluginsTest, EventsOfAFailedProbeStillCount) {
  ASSERT_TRUE(Init().ok());
  VolumePlugin* brought = Bring("v/d");
  script_.answers.front().status = Error::NotApplied(Code::kUnavailable, "half of it was read");
  EXPECT_EQ(*mgr_.FindPluginByName("v/d"), brought);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("half of it was read"), std::string::npos);
}

TEST_F(DynamicPluginsTest, AProberThatCannotStartIsDoneWithout) {
  script_.init = Error::NotApplied(Code::kResourceExhausted, "no inotify instances");
  std::vector<std::unique_ptr<VolumePlugin>> plugins;
  plugins.push_back(Plugin("x/v"));
  ASSERT_TRUE(Init(std::move(plugins)).ok());
  Bring("v/d");
  EXPECT_FALSE(mgr_.FindPluginByName("v/d").ok());
  EXPECT_TRUE(mgr_.FindPluginByName("x/v").ok());
  EXPECT_EQ(script_.probes, 0);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("no inotify instances"), std::string::npos);
}

TEST_F(DynamicPluginsTest, AStaticAndAProbedPluginMayCollide) {
  std::vector<std::unique_ptr<VolumePlugin>> plugins;
  plugins.push_back(Plugin("x/v"));
  ASSERT_TRUE(Init(std::move(plugins)).ok());
  Bring("x/v");
  EXPECT_EQ(mgr_.FindPluginByName("x/v").error().message(),
            "multiple volume plugins matched: x/v and x/v");
  EXPECT_EQ(mgr_.FindPluginBySpec(Spec()).error().message(),
            "multiple volume plugins matched: x/v,x/v");
}

TEST_F(DynamicPluginsTest, WithoutAProberNothingIsProbed) {
  ASSERT_TRUE(mgr_.InitPlugins({}, nullptr, world_.host, log_).ok());
  EXPECT_FALSE(mgr_.FindPluginByName("v/d").ok());
  NoPluginProber none;
  EXPECT_TRUE(none.Init().ok());
  EXPECT_TRUE(none.Probe().events.empty());
}

}  // namespace
}  // namespace volumed
