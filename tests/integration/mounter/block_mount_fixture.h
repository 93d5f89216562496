// BlockMountTest: SafeFormatAndMount through LocalKernel on real loop devices.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/memory_format_intents.h"
#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"
#include "mounter/safe_format_and_mount.h"
#include "os/local_kernel.h"
#include "os/mount_table.h"

namespace volumed {

// Counts the formats that were begun, whoever asked for them.
class FormatCounter final : public Kernel {
 public:
  explicit FormatCounter(Kernel& kernel) : kernel_(kernel) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<FormatDevice>(request)) ++formats_;
    Result<AnyAnswer> answer = kernel_.Do(request, options);
    if (answer.ok() && std::holds_alternative<DeviceProbe>(*answer)) {
      bytes_read_ += std::get<DeviceProbe>(*answer).bytes_read;
    }
    return answer;
  }
  int formats() const { return formats_; }
  int64_t bytes_read() const { return bytes_read_; }

 private:
  Kernel& kernel_;
  int formats_ = 0;
  int64_t bytes_read_ = 0;
};

// The smallest that mkfs of every type takes. Sparse. Source: mkfs.xfs(8), 300 MB.
inline constexpr int64_t kImageBytes = int64_t{320} << 20;

class BlockMountTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    auto created = LocalKernel::Create({});
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    local_ = std::move(created).value();
    kernel_ = std::make_unique<FormatCounter>(*local_);
    ASSERT_EQ(::mkdir(Path("mnt").c_str(), 0755), 0);
    ASSERT_EQ(::mkdir(Path("mnt2").c_str(), 0755), 0);
  }
  void TearDown() override {
    if (!scratch().empty()) {
      DetachWhatIsLeft();
      for (const char* name : {"mnt", "mnt2"}) {
        while (::umount2(Path(name).c_str(), UMOUNT_NOFOLLOW) == 0) {
        }
      }
    }
    MountNamespaceTest::TearDown();
  }

  std::string Path(const std::string& name) const { return scratch() + "/" + name; }

  // The exit status of a shell command; its output goes to the test's own.
  static int Shell(const std::string& command) {
    const int status = std::system((command + " >/dev/null 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Image(const std::string& name = "image", int64_t size_bytes = kImageBytes) {
    EXPECT_TRUE(MakeImage(Path(name), size_bytes));
    return Path(name);
  }
  // As blank, but its file is not one hole: whoever wants to know has to read it.
  std::string ImageOfZeros(const std::string& name = "image") {
    const std::string path = Image(name);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << std::string(4096, '\0');
    return path;
  }
  // A program in the directory "tools", for LocalKernelOptions::tool_directories.
  void AddTool(const std::string& name, const std::string& command) const {
    ::mkdir(Path("tools").c_str(), 0700);
    std::ofstream(Path("tools/" + name)) << "#!/bin/sh\n" << command << "\n";
    ASSERT_EQ(::chmod(Path("tools/" + name).c_str(), 0700), 0);
  }
  // A quick way to make a filesystem without this program.
  static void Mkfs(const std::string& fs_type, const std::string& image) {
    const std::string quick = fs_type == "xfs"     ? "-f -K -q"
                              : fs_type == "btrfs" ? "-f -K -q"
                                                   : "-F -q";
    ASSERT_EQ(Shell("mkfs." + fs_type + " " + quick + " " + image), 0) << fs_type;
  }

  SafeMountRequest Request(const LoopDevice& device, const std::string& fs_type) const {
    SafeMountRequest request;
    request.key = "volume";
    request.device = device.path();
    request.target = {scratch(), "mnt"};
    request.fs_type = fs_type;
    return request;
  }
  SafeMountReport Run(const SafeMountRequest& request) {
    FakeIrreversibleSteps irreversible;
    SafeFormatAndMount mounter(*kernel_, intents_, irreversible);
    return mounter.FormatAndMount(request, {});
  }
  static std::string Text(const SafeMountReport& report) {
    std::string text = report.status.ok() ? "ok" : report.status.error().ToString();
    for (const SafeMountNotice& notice : report.notices) {
      text += "\n" + notice.reason + ": " + notice.message;
    }
    return text;
  }
  std::optional<MountEntry> Mounted(const std::string& name = "mnt") const {
    auto mounts = ReadMountTable();
    if (!mounts.ok()) return std::nullopt;
    const MountSnapshot table(*mounts);
    const MountEntry* entry = table.FindTop(Path(name));
    if (entry == nullptr) return std::nullopt;
    return *entry;
  }
  void Unmount(const std::string& name = "mnt") const {
    ASSERT_EQ(::umount2(Path(name).c_str(), 0), 0);
  }

  // Of a test that failed, on the filesystems that it mounted. What is mounted goes with its mount.
  void DetachWhatIsLeft() const {
    for (const auto& block : std::filesystem::directory_iterator("/sys/block")) {
      std::ifstream backing(block.path() / "loop/backing_file");
      std::string file;
      if (!std::getline(backing, file) || file.rfind(scratch() + "/", 0) != 0) continue;
      // Those on a file of the scratch directory itself are LoopDevices, which see to themselves.
      if (file.find('/', scratch().size() + 1) == std::string::npos) continue;
      const Descriptor device(
          ::open(("/dev/" + block.path().filename().string()).c_str(), O_RDONLY | O_CLOEXEC));
      ::ioctl(device.get(), LOOP_CLR_FD);
    }
  }

  std::unique_ptr<Kernel> local_;
  std::unique_ptr<FormatCounter> kernel_;
  MemoryFormatIntents intents_;
};

}  // namespace volumed
