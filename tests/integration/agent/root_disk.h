// RootDiskTest: the agent's root on an ext4 of its own, in an image file behind a loop device, with
// the example pod set up on it. For tests in which that disk turns bad.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "integration/agent/example_pod.h"

namespace volumed {

class RootDiskTest : public ExamplePodTest {
 protected:
  std::string disk() const { return scratch() + "/disk"; }
  std::string image() const { return scratch() + "/image"; }

  void MakeImage(int64_t bytes, const std::vector<std::string>& mkfs_options) {
    const int file = ::open(image().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::ftruncate(file, bytes), 0);
    ::close(file);
    std::vector<std::string> command = {"mkfs.ext4", "-q", "-F", "-m", "0"};
    command.insert(command.end(), mkfs_options.begin(), mkfs_options.end());
    command.push_back(image());
    const CommandResult made = RunCommand(command);
    ASSERT_EQ(made.exit_status, 0) << made.output;
    ASSERT_TRUE(std::filesystem::create_directory(disk()));
    set_root(disk() + "/root");
  }
  // `file` is the image, or another face of it. The loop device goes with its mount.
  void MountDisk(const std::string& file, const std::string& options) {
    const CommandResult mounted = RunCommand({"mount", "-o", "loop," + options, file, disk()});
    if (mounted.exit_status != 0) {
      GTEST_SKIP() << "skipped: needs a loop device: " << mounted.output;
    }
  }
  void StartWithExamplePod() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
    WriteForeignFiles("kept");
  }
  // What an administrator does with a disk that has come back: the node starts anew on it.
  void RepairAndMountAnew(const std::string& file, const std::string& options) {
    KillAgent();
    ASSERT_TRUE(Eventually(kPatience, [&] {
      return RunCommand({"umount", "-R", disk()}).exit_status == 0;
    })) << RunCommand({"umount", "-R", disk()}).output;
    // 1: errors were found and mended.
    const CommandResult checked = RunCommand({"e2fsck", "-f", "-y", file});
    ASSERT_LE(checked.exit_status, 1) << checked.output;
    ASSERT_NO_FATAL_FAILURE(MountDisk(file, options));
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  // The example pod again, under another name.
  std::string AnotherPod(const std::string& name) {
    return Replaced(Replaced(ExamplePod(host_path()), "name: web\n", "name: " + name + "\n"),
                    kExampleUid, "uid-" + name);
  }
  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  bool Explains(const std::string& pod, const std::string& words) {
    return Explain(pod).find(words) != std::string::npos;
  }
  void ExpectAgentAnswers() {
    EXPECT_TRUE(AgentRuns());
    EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
    EXPECT_NE(HttpGet("/metrics").find("volumed_pods"), std::string::npos);
    EXPECT_NE(HttpGet("/healthz").find(" 200 "), std::string::npos);
  }
};

}  // namespace volumed
