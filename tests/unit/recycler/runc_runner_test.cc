#include "recycler/runc_runner.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/manual_clock.h"
#include "fakes/fake_kernel.h"
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
  FakeKernel kernel;
  RuncRunner no_runc({scratch.path() + "/runc", "/bin/true", scratch.path()}, kernel, clock);
  const auto exists = no_runc.Exists("id", {});
  ASSERT_FALSE(exists.ok());
  EXPECT_EQ(exists.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(exists.error().message(), scratch.path() +
                                          "/runc cannot be run on this node; it comes with the "
                                          "package runc");
  RuncRunner no_busybox({"/bin/true", scratch.path() + "/busybox", scratch.path()}, kernel, clock);
  EXPECT_NE(no_busybox.Run({"id", {"/bin/sh"}, {}}, {}).error().message().find("busybox-static"),
            std::string::npos);
}

// Remembers the key of each call.
class KeyedKernel final : public Kernel {
 public:
  explicit KeyedKernel(Kernel& kernel) : kernel_(kernel) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    keys_.push_back(std::get<RunProgram>(request).arguments.at(3) + ":" + options.key);
    return kernel_.Do(request, options);
  }
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  Kernel& kernel_;
  std::vector<std::string> keys_;
};

TEST(RuncRunnerTest, AContainerThatDoesNotEndIsRemovedAlthoughItsKeyIsStillHeld) {
  const TempDirectory scratch;
  const ManualClock clock;
  FakeKernel kernel;
  std::set<std::string> containers;
  kernel.AddProgram("/bin/true", [&](FakeKernel&, const std::vector<std::string>& words) {
    const std::string& verb = words.at(3);
    if (verb == "run") containers.insert(words.back());
    if (verb == "delete") containers.erase(words.back());
    if (verb != "state" || containers.contains(words.back())) return ProgramEnd{0, ""};
    return ProgramEnd{1, "container does not exist"};
  });
  KeyedKernel keyed(kernel);
  RuncRunner runc({"/bin/true", "/bin/true", scratch.path() + "/runc"}, keyed, clock);
  kernel.FailNext(RunProgram::kName, Error::MaybeApplied(Code::kDeadlineExceeded, "too long"), 1,
                  true);
  CallOptions call;
  call.key = "volume";
  const auto end = runc.Run({"one", {"/bin/sh"}, {}}, call);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(end.error().maybe_applied());
  EXPECT_TRUE(containers.empty());
  EXPECT_EQ(keyed.keys(), (std::vector<std::string>{"run:volume", "state:", "delete:"}));
}

TEST(RuncRunnerTest, ASandboxThatForbidsContainersIsNamedWithWhatAllowsThem) {
  const TempDirectory scratch;
  const ManualClock clock;
  FakeKernel kernel;
  kernel.AddProgram("/bin/true", [](FakeKernel&, const std::vector<std::string>& words) {
    if (words.at(3) != "run") return ProgramEnd{1, "container does not exist"};
    // What runc 1.1 says under RestrictNamespaces=yes.
    return ProgramEnd{1,
                      "nsexec-1[7]: failed to unshare: Operation not permitted\n"
                      "level=error msg=\"runc run failed: unable to start\"\n"};
  });
  RuncRunner runner({"/bin/true", "/bin/true", scratch.path() + "/state"}, kernel, clock);
  const auto end = runner.Run({"id", {"/bin/sh"}, {}}, {});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(end.error().message().find("drop-in runc.conf"), std::string::npos);
  EXPECT_NE(end.error().message().find("failed to unshare"), std::string::npos)
      << "runc's own words";
}

}  // namespace
}  // namespace volumed
