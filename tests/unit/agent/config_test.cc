#include "agent/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace volumed {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string name = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }

  Result<Config> LoadText(const std::string& text, const FlagValues& flags = {}) {
    std::ofstream(directory_ / "config.yaml") << text;
    return LoadConfig((directory_ / "config.yaml").string(), true, flags);
  }

  std::filesystem::path directory_;
};

TEST_F(ConfigTest, ADefaultFileThatIsMissingIsNoError) {
  const Result<Config> config = LoadConfig((directory_ / "none.yaml").string(), false, {});
  ASSERT_TRUE(config.ok()) << config.error().ToString();
  EXPECT_EQ(config->root, "/var/lib/volumed");
}

TEST_F(ConfigTest, ANamedFileThatIsMissingIsAnError) {
  const Result<Config> config = LoadConfig((directory_ / "none.yaml").string(), true, {});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code(), Code::kInvalidArgument);
}

TEST_F(ConfigTest, ReadsEveryKindOfValue) {
  const Result<Config> config = LoadText(
      "root: /srv/volumes\nadopt-root: true\nmanifest-dir: [/a, /b]\nmax-workers: 8\n"
      "deadline-mount: 1m30s\nnode-labels: {zone: a, rack: 7}\nlog-level: debug\n");
  ASSERT_TRUE(config.ok()) << config.error().ToString();
  EXPECT_EQ(config->root, "/srv/volumes");
  EXPECT_TRUE(config->adopt_root);
  EXPECT_EQ(config->manifest_dirs, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(config->max_workers, 8);
  EXPECT_EQ(config->deadline_mount, std::chrono::seconds(90));
  EXPECT_EQ(config->node_labels,
            (std::map<std::string, std::string>{{"rack", "7"}, {"zone", "a"}}));
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
}

TEST_F(ConfigTest, AFlagWinsOverTheFile) {
  const Result<Config> config = LoadText("root: /from/file\n", {{"root", {"/from/flag"}}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->root, "/from/flag");
}

TEST_F(ConfigTest, EveryProblemOfAFileIsInOneMessage) {
  const Result<Config> config =
      LoadText("root: relative\nmax-workers: lots\nno-such-key: 1\ndeadline-mount: soon\n");
  ASSERT_FALSE(config.ok());
  for (const char* part : {"root: must be an absolute path", "max-workers: must be an integer from",
                           "no-such-key: no such setting", "deadline-mount: 'soon'"}) {
    EXPECT_NE(config.error().message().find(part), std::string::npos) << part;
  }
}

TEST_F(ConfigTest, AFileThatIsNoMapIsRefused) {
  EXPECT_FALSE(LoadText("- a\n- b\n").ok());
  EXPECT_FALSE(LoadText("root: [unclosed\n").ok());
}

TEST_F(ConfigTest, WhatIsPrintedForEachKeyIsReadBackTheSame) {
  Config config;
  config.root = "/r";
  config.deadline_stats = std::chrono::milliseconds(1500);
  std::string text;
  for (const auto& [name, value] : PrintConfig(config)) {
    if (value.empty() || name == "node-labels") continue;
    text += name + ": " + value + "\n";
  }
  const Result<Config> read = LoadText(text);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(PrintConfig(*read), PrintConfig(config));
}

TEST_F(ConfigTest, EveryKeyHasHelpAndAUniqueName) {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(key.type.empty()) << key.name;
    names.push_back(key.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST_F(ConfigTest, AReloadTakesReloadableKeysAndNamesTheOthers) {
  Config running;
  Config loaded;
  loaded.root = "/elsewhere";
  loaded.log_level = LogLevel::kError;
  loaded.deadline_mount = std::chrono::seconds(7);
  std::vector<std::string> ignored;
  const Config merged = MergeReloadable(running, loaded, &ignored);
  EXPECT_EQ(merged.root, running.root);
  EXPECT_EQ(merged.log_level, LogLevel::kError);
  EXPECT_EQ(merged.deadline_mount, running.deadline_mount);
  EXPECT_EQ(ignored, (std::vector<std::string>{"root", "deadline-mount"}));
}

TEST(DurationTest, ParsesGoDurations) {
  EXPECT_EQ(*ParseDuration("2m3s"), std::chrono::seconds(123));
  EXPECT_EQ(*ParseDuration("500ms"), std::chrono::milliseconds(500));
  EXPECT_EQ(*ParseDuration("1h"), std::chrono::hours(1));
  for (const char* bad : {"", "5", "s", "5x", "-1s", "1s ", "99999999999999h", "1.5s"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

TEST(DurationTest, PrintsWhatItParses) {
  for (const char* text : {"0s", "1ns", "1m30s", "500ms", "1h1m1s"}) {
    EXPECT_EQ(FormatDuration(*ParseDuration(text)), text);
  }
}

}  // namespace
}  // namespace volumed
