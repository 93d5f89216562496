// Filesystems with a mount helper: how it is called, and what is told of a failure.
#include "os/mount_helper.h"

#include <signal.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "integration/os/kernel_fixture.h"
#include "places.h"

namespace volumed {
namespace {

class MountHelperTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // Of this namespace alone.
    ASSERT_EQ(::mount("helpers", "/usr/sbin", "tmpfs", 0, "mode=0755"), 0) << std::strerror(errno);
    helpers_ = true;
    ASSERT_EQ(::mkdir((scratch() + "/target").c_str(), 0755), 0);
  }
  void TearDown() override {
    if (helpers_) ::umount2("/usr/sbin", MNT_DETACH);
    MountNamespaceTest::TearDown();
  }
  void Helper(const std::string& name, const std::string& script) const {
    const std::string path = "/usr/sbin/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  std::string Said() const {
    std::ifstream file(scratch() + "/said");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  Mount Request(const std::string& type, std::vector<std::string> options) const {
    return {.fs_type = type,
            .source = "nas:/srv",
            .target = {scratch(), "target"},
            .options = std::move(options)};
  }

 private:
  bool helpers_ = false;
};

TEST_F(MountHelperTest, IsCalledAsByMount8) {
  Helper("mount.lab", "printf '%s|' \"$@\" >" + scratch() + "/said; env | sort >>" + scratch() +
                          "/said; exec /bin/mount -i -t tmpfs x \"$2\"");
  EXPECT_TRUE(HasMountHelper("lab"));
  EXPECT_TRUE(HasMountHelper("lab.sub"));
  EXPECT_FALSE(HasMountHelper("other"));
  EXPECT_FALSE(HasMountHelper("../sbin/mount.lab"));
  const Status mounted =
      MountWithHelper(Request("lab.sub", {"ro,vers=3", "x-systemd.automount", "nosuid"}), {});
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  EXPECT_EQ(Said()
                .substr(0, Said().find('\n'))
                .find("nas:/srv|" + scratch() + "/target|-o|ro,vers=3,nosuid|-t|lab.sub|"),
            0u)
      << Said();
  EXPECT_NE(Said().find("LC_ALL=C"), std::string::npos);
  ASSERT_EQ(::umount((scratch() + "/target").c_str()), 0);
}

TEST_F(MountHelperTest, AFailureHasItsWordsWithoutTheValuesOfOptions) {
  Helper("mount.lab", "echo \"mount.lab: bad password hush for user\" >&2; exit 32");
  const Status failed = MountWithHelper(Request("lab", {"password=hush"}), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_FALSE(failed.error().maybe_applied());
  EXPECT_NE(failed.error().message().find(
                "the mount helper ended with status 32: mount.lab: bad password *** for user"),
            std::string::npos)
      << failed.error().message();
  EXPECT_EQ(failed.error().message().find("hush"), std::string::npos);
}

TEST_F(MountHelperTest, OfAPasswordThatBeginsAsAnotherOptionDoesTheRestWasShown) {
  Helper("mount.lab", "echo \"mount.lab: bad password 3.0hush\" >&2; exit 32");
  const Status failed = MountWithHelper(Request("lab", {"vers=3.0", "password=3.0hush"}), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message().find("hush"), std::string::npos) << failed.error().message();
}

TEST_F(MountHelperTest, OneThatASignalEndedMayHaveMounted) {
  Helper("mount.lab", "kill -9 $$");
  const Status failed = MountWithHelper(Request("lab", {}), {});
  ASSERT_FALSE(failed.ok());
  EXPECT_TRUE(failed.error().maybe_applied());
  EXPECT_NE(failed.error().message().find("was ended by signal 9"), std::string::npos);
}

TEST_F(MountHelperTest, ADaemonThatItLeavesDoesNotKeepTheVolumeLocked) {
  const std::string keys = scratch() + "/keys";
  ASSERT_EQ(::mkdir(keys.c_str(), 0700), 0);
  Helper("mount.lab", "/bin/sleep 600 </dev/null >/dev/null 2>&1 & echo $! >" + scratch() +
                          "/said; exec /bin/mount -i -t tmpfs x \"$2\"");
  WorkerKernelOptions options;
  options.worker_path = VolumedWorkerPath();
  options.key_directory = keys;
  RealClock clock;
  auto kernel = WorkerKernel::Create(options, clock);
  ASSERT_TRUE(kernel.ok()) << kernel.error().ToString();
  CallOptions call;
  call.key = "volume-1";
  call.domain = "nfs:nas";
  call.deadline = Deadline::After(clock, std::chrono::seconds(30));
  const auto mounted = (*kernel)->Call(Request("lab", {}), call);
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  const auto unmounted = (*kernel)->Call(Unmount{.target = {scratch(), "target"}}, call);
  EXPECT_TRUE(unmounted.ok()) << unmounted.error().ToString();
  ::kill(std::stoi(Said()), SIGKILL);
}

}  // namespace
}  // namespace volumed
