// KernelTest: a test that runs through LocalKernel and through workers, with the newer kernel
// features and without, on a scratch filesystem.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fakes/must.h"
#include "integration/mount_namespace_fixture.h"
#include "os/local_kernel.h"
#include "os/mount_table.h"
#include "os/worker_kernel.h"
#include "places.h"

namespace volumed {

struct Setting {
  const char* name;
  bool workers;
  bool anchored;
  std::vector<std::string> masked;
};

inline const std::vector<std::string> kAllFeatures = {"open-tree-detached-clone",
                                                      "mount-setattr",
                                                      "statmount",
                                                      "mount-events",
                                                      "fchmodat2",
                                                      "tmpfs-noswap"};
// What Debian 12's own kernel, 6.1, lacks.
inline const std::vector<std::string> kNotInDebian12 = {
    "open-tree-detached-clone", "statmount", "mount-events", "fchmodat2", "tmpfs-noswap"};

class KernelTest : public MountNamespaceTest, public ::testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string root = GetParam().anchored ? scratch() : "";
    if (GetParam().workers) {
      WorkerKernelOptions options;
      options.worker_path = VolumedWorkerPath();
      options.agent_root = root;
      options.masked_features = GetParam().masked;
      auto created = WorkerKernel::Create(options, clock_);
      ASSERT_TRUE(created.ok()) << created.error().ToString();
      kernel_ = std::move(created).value();
    } else {
      auto created = LocalKernel::Create({GetParam().masked, root});
      ASSERT_TRUE(created.ok()) << created.error().ToString();
      kernel_ = std::move(created).value();
    }
  }

  void TearDown() override {
    kernel_.reset();
    MountNamespaceTest::TearDown();
  }

  SafePath At(const std::string& relative) const { return {scratch(), relative}; }
  std::string Path(const std::string& relative) const { return scratch() + "/" + relative; }

  template <typename Request>
  Result<typename Request::Answer> Call(const Request& request) {
    return kernel_->Call(request, CallOptions{});
  }

  void Directory(const std::string& relative, mode_t mode = 0755) {
    ASSERT_EQ(::mkdir(Path(relative).c_str(), 0755), 0) << relative;
    ASSERT_EQ(::chmod(Path(relative).c_str(), mode), 0);
  }
  void File(const std::string& relative, const std::string& content = "x", mode_t mode = 0644) {
    std::ofstream(Path(relative)) << content;
    ASSERT_EQ(::chmod(Path(relative).c_str(), mode), 0);
  }
  void Link(const std::string& target, const std::string& relative) {
    ASSERT_EQ(::symlink(target.c_str(), Path(relative).c_str()), 0);
  }
  void Tmpfs(const std::string& relative) {
    ASSERT_EQ(::mount("inner", Path(relative).c_str(), "tmpfs", 0, nullptr), 0);
  }
  std::string Content(const std::string& relative) const {
    std::ifstream in(Path(relative));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  struct stat LStat(const std::string& relative) const {
    struct stat stat = {};
    EXPECT_EQ(::lstat(Path(relative).c_str(), &stat), 0) << relative;
    return stat;
  }
  mode_t Mode(const std::string& relative) const { return LStat(relative).st_mode & 07777; }
  bool Exists(const std::string& relative) const {
    struct stat stat = {};
    return ::lstat(Path(relative).c_str(), &stat) == 0;
  }
  std::optional<MountEntry> Mounted(const std::string& relative) {
    const MountSnapshot table(Must(Call(ListMounts{Path(relative)})).mounts);
    const MountEntry* entry = table.FindTop(Path(relative));
    if (entry == nullptr) return std::nullopt;
    return *entry;
  }

  RealClock clock_;
  std::unique_ptr<Kernel> kernel_;
};

// Every setting for every test of `suite`, a class derived from KernelTest.
#define INSTANTIATE_KERNEL_TESTS(suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(                                                                     \
      Kernels, suite,                                                                           \
      ::testing::Values(                                                                        \
          Setting{"LocalNew", false, true, {}}, Setting{"LocalPlain", false, false, {}},        \
          Setting{"LocalDebian12", false, true, kNotInDebian12},                                \
          Setting{"LocalOld", false, true, kAllFeatures}, Setting{"WorkerNew", true, true, {}}, \
          Setting{"WorkerDebian12", true, true, kNotInDebian12}),                               \
      [](const auto& setting) { return std::string(setting.param.name); })

}  // namespace volumed
