#include "pluginmgr/directory_plugin_prober.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

class DirectoryPluginProberTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(prober_.Init().ok()); }

  void Install(const std::string& driver, const std::string& file, mode_t mode = 0755) {
    fs::create_directories(root_ + "/" + driver);
    const std::string path = root_ + "/" + driver + "/" + file;
    std::ofstream(path) << "#!/bin/sh\n";
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  // "+vendor/driver" and "-vendor/driver", each name once (one change may be told more than once).
  std::vector<std::string> Probe() {
    ProbeResult result = prober_.Probe();
    last_ = result.status;
    std::vector<std::string> told;
    for (const ProbeEvent& event : result.events) {
      const bool added = event.op == ProbeOperation::kAddOrUpdate;
      EXPECT_EQ(event.plugin != nullptr, added);
      told.push_back((added ? "+" : "-") + event.plugin_name);
    }
    return told;
  }
  using Told = std::vector<std::string>;

  TempDirectory scratch_;
  const std::string root_ = scratch_.path() + "/exec";
  StatefulStorage storage_;
  std::vector<std::string> executables_;
  Status last_ = OkStatus();
  std::string refused_;
  DirectoryPluginProber prober_{
      root_,
      [this](const std::string& name,
             const std::string& executable) -> Result<std::unique_ptr<VolumePlugin>> {
        executables_.push_back(executable);
        if (name == refused_) return Error::NotApplied(Code::kUnavailable, "driver says no");
        return std::unique_ptr<VolumePlugin>(std::make_unique<StatefulPlugin>(name, storage_));
      }};
};

TEST_F(DirectoryPluginProberTest, MakesItsDirectoryAndFindsWhatIsThere) {
  EXPECT_TRUE(fs::is_directory(root_));
  const mode_t umask_before = ::umask(0);
  DirectoryPluginProber deep(root_ + "/a/b", nullptr);
  EXPECT_TRUE(deep.Init().ok());
  ::umask(umask_before);
  for (const char* made : {"/a", "/a/b"}) {
    EXPECT_EQ(fs::status(root_ + made).permissions(), fs::perms(0755)) << made;
  }
  fs::remove_all(root_ + "/a");
  Install("example.com~nfs", "nfs");
  Install("plain", "plain");
  EXPECT_EQ(Probe(), (Told{"+example.com/nfs", "+plain"}));
  EXPECT_EQ(executables_[0], root_ + "/example.com~nfs/nfs");
  EXPECT_EQ(Probe(), Told{}) << "nothing has changed";
}

TEST_F(DirectoryPluginProberTest, AddsUpdatesAndRemoves) {
  EXPECT_EQ(Probe(), Told{});
  Install("v~d", "d");
  EXPECT_EQ(Probe(), Told{"+v/d"});
  Install("v~d", "d");  // written anew
  EXPECT_EQ(Probe(), Told{"+v/d"});
  fs::remove(root_ + "/v~d/d");
  EXPECT_EQ(Probe(), Told{"-v/d"});
  Install("v~d", "d");
  EXPECT_EQ(Probe(), Told{"+v/d"});
  fs::remove_all(root_ + "/v~d");
  EXPECT_EQ(Probe(), Told{"-v/d"});
  EXPECT_EQ(Probe(), Told{});
}

TEST_F(DirectoryPluginProberTest, ADriverIsThereOnceItCanBeExecuted) {
  Install("v~d", "d", 0644);
  EXPECT_EQ(Probe(), Told{});
  ASSERT_EQ(::chmod((root_ + "/v~d/d").c_str(), 0755), 0);
  EXPECT_EQ(Probe(), Told{"+v/d"});
}

TEST_F(DirectoryPluginProberTest, ReplacingByRenameIsAnUpdate) {
  Install("v~d", "d");
  ASSERT_EQ(Probe(), Told{"+v/d"});
  Install("v~d", ".d.new");
  EXPECT_EQ(Probe(), Told{}) << "another file of the driver";
  fs::rename(root_ + "/v~d/.d.new", root_ + "/v~d/d");
  EXPECT_EQ(Probe(), Told{"+v/d"});
}

TEST_F(DirectoryPluginProberTest, HiddenDirectoriesAreInstallersScratch) {
  Install(".v~d", "d");
  EXPECT_EQ(Probe(), Told{});
  fs::rename(root_ + "/.v~d", root_ + "/v~d");
  EXPECT_EQ(Probe(), Told{"+v/d"});
}

TEST_F(DirectoryPluginProberTest, ADirectoryThatIsReplacedIsReadAnew) {
  Install("v~d", "d");
  Install("v~e", "e");
  ASSERT_EQ(Probe(), (Told{"+v/d", "+v/e"}));
  fs::remove_all(root_);
  EXPECT_EQ(Probe(), (Told{"-v/d", "-v/e"}));
  EXPECT_TRUE(fs::is_directory(root_)) << "it is watched again";
  Install("v~d", "d");
  EXPECT_EQ(Probe(), Told{"+v/d"});
}

// It was looked at once more, and never watched again.
TEST_F(DirectoryPluginProberTest, ADirectoryThatCannotBeMadeAnewIsWatchedOnceItCan) {
  Install("v~d", "d");
  ASSERT_EQ(Probe(), Told{"+v/d"});
  fs::remove_all(root_);
  WriteAll(root_, "a file in its place");
  for (int probe = 0; probe < 2; ++probe) {
    EXPECT_EQ(Probe(), Told{});
    EXPECT_FALSE(last_.ok());
  }
  fs::remove(root_);
  Install("v~e", "e");
  EXPECT_EQ(Probe(), (Told{"-v/d", "+v/e"}));
  Install("v~f", "f");
  EXPECT_EQ(Probe(), Told{"+v/f"});
}

TEST_F(DirectoryPluginProberTest, OneBadDriverHidesNoOther) {
  refused_ = "v/bad";
  Install("v~bad", "bad");
  Install("v~good", "good");
  EXPECT_EQ(Probe(), Told{"+v/good"});
  ASSERT_FALSE(last_.ok());
  EXPECT_EQ(last_.error().message(), "driver v/bad: driver says no");
}

}  // namespace
}  // namespace volumed
