// MountNamespaceTest: a test on real mounts, in a mount namespace that nothing leaks from, with few
// of the node's mounts and a scratch tmpfs of its own. Skipped, and says so, where that is not
// allowed.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "integration/few_mounts.h"

namespace volumed {

class MountNamespaceTest : public ::testing::Test {
 protected:
  // Threads that a test starts later live in the namespace too; so do the workers.
  void SetUp() override {
    static const bool kHasNamespace = [] {
      const bool is_private = ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
      if (is_private) (void)KeepFewMounts();  // else it is slower
      return is_private;
    }();
    if (!kHasNamespace) GTEST_SKIP() << "skipped: needs CAP_SYS_ADMIN";
    char name[] = "/tmp/volumed-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr) << std::strerror(errno);
    scratch_ = name;
    ASSERT_EQ(::mount("scratch", name, "tmpfs", 0, "mode=0755"), 0) << std::strerror(errno);
  }

  void TearDown() override {
    if (scratch_.empty()) return;
    ::umount2(scratch_.c_str(), MNT_DETACH);
    ::rmdir(scratch_.c_str());
  }

  // The scratch tmpfs; empty before SetUp.
  const std::string& scratch() const { return scratch_; }

 private:
  std::string scratch_;
};

}  // namespace volumed
