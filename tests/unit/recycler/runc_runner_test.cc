#include "recycler/runc_runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "base/manual_clock.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

TEST(RuncRunnerTest, TheContainerHasTheVolumeAndLittleElse) {
  const auto config =
      nlohmann::json::parse(OciConfig({"id", {"/bin/sh", "-c", "true"}, {{"/data", "/scrub"}}}));
  EXPECT_EQ(config["process"]["args"], (nlohmann::json{"/bin/sh", "-c", "true"}));
  EXPECT_EQ(config["process"]["noNewPrivileges"], true);
  EXPECT_EQ(config["process"]["capabilities"]["bounding"],
            (nlohmann::json{"CAP_DAC_OVERRIDE", "CAP_FOWNER"}));
  EXPECT_EQ(config["root"]["readonly"], true);
  const auto& mount = config["mounts"].back();
  EXPECT_EQ(mount["source"], "/data");
  EXPECT_EQ(mount["destination"], "/scrub");
  EXPECT_EQ(mount["options"][0], "bind") << "what is mounted below stays outside";
  EXPECT_EQ(mount["options"][1], "rw");
  bool own_network = false;
  for (const auto& space : config["linux"]["namespaces"]) {
    own_network = own_network || space["type"] == "network";
    EXPECT_FALSE(space.contains("path"));
  }
  EXPECT_TRUE(own_network);
}

TEST(RuncRunnerTest, AMissingProgramIsNamedWithItsPackage) {
  const TempDirectory scratch;
  const ManualClock clock;
  RuncRunner no_runc({scratch.path() + "/runc", "/bin/true", scratch.path()}, clock);
  const auto exists = no_runc.Exists("id", {});
  ASSERT_FALSE(exists.ok());
  EXPECT_EQ(exists.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(exists.error().message(), scratch.path() +
                                          "/runc cannot be run on this node; it comes with the "
                                          "package runc");
  RuncRunner no_busybox({"/bin/true", scratch.path() + "/busybox", scratch.path()}, clock);
  EXPECT_NE(no_busybox.Run({"id", {"/bin/sh"}, {}}, {}).error().message().find("busybox-static"),
            std::string::npos);
}

TEST(RuncRunnerTest, ASandboxThatForbidsContainersIsNamedWithWhatAllowsThem) {
  const TempDirectory scratch;
  const ManualClock clock;
  const std::string runc = scratch.path() + "/runc";
  // What runc 1.1 says under RestrictNamespaces=yes.
  std::ofstream(runc) << "#!/bin/sh\n"
                         "echo 'nsexec-1[7]: failed to unshare: Operation not permitted'\n"
                         "echo 'level=error msg=\"runc run failed: unable to start\"'\n"
                         "exit 1\n";
  std::filesystem::permissions(runc, std::filesystem::perms::owner_all);
  RuncRunner runner({runc, "/bin/true", scratch.path() + "/state"}, clock);
  const auto end = runner.Run({"id", {"/bin/sh"}, {}}, {});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(end.error().message().find("drop-in runc.conf"), std::string::npos);
  EXPECT_NE(end.error().message().find("failed to unshare"), std::string::npos)
      << "runc's own words";
}

}  // namespace
}  // namespace volumed
