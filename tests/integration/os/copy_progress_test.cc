// What is told of a copy of a file while it is under way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "fakes/must.h"
#include "integration/mount_namespace_fixture.h"
#include "mounter/host_directory.h"
#include "os/local_kernel.h"

namespace volumed {
namespace {

class CopyProgressTest : public MountNamespaceTest {};

// It was told each 64 MiB alone, so that a snapshot of less was at 0 until it was ready, and a copy
// that was cut off began anew.
TEST_F(CopyProgressTest, ASlowCopyDidNotSayHowFarItWas) {
  constexpr int64_t kMiB = 1 << 20;
  const auto kernel = Must(LocalKernel::Create({}));
  std::ofstream(scratch() + "/from") << std::string(8 * kMiB, 'x');
  CallOptions options;
  std::vector<int64_t> told;
  options.progress = [&told](int64_t bytes) { told.push_back(bytes); };
  const CopyFile copy{.from = HostPath(scratch() + "/from"),
                      .to = HostPath(scratch() + "/to"),
                      .bytes_per_second = 2 * kMiB};
  Must(kernel->Call(copy, options));
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_TRUE(std::any_of(told.begin(), told.end(),
                          [](int64_t bytes) { return bytes > 0 && bytes < 8 * kMiB; }));
}

// It was ready, with parts of two moments.
TEST_F(CopyProgressTest, ACopyOfAFileThatWasWrittenToMeanwhileWasOfTwoMoments) {
  constexpr int64_t kMiB = 1 << 20;
  const auto kernel = Must(LocalKernel::Create({}));
  const std::string source = scratch() + "/from";
  std::ofstream(source) << std::string(4 * kMiB, 'x');
  const auto write = [&source] {
    std::fstream(source, std::ios::in | std::ios::out) << "y" << std::flush;
  };
  CopyFile copy{
      .from = HostPath(source), .to = HostPath(scratch() + "/to"), .bytes_per_second = 4 * kMiB};
  CallOptions options;
  options.progress = [&write](int64_t /*bytes*/) { write(); };
  const Result<FileExtent> while_copied = kernel->Call(copy, options);
  ASSERT_FALSE(while_copied.ok());
  EXPECT_EQ(while_copied.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(while_copied.error().maybe_applied());
  copy.bytes_per_second = 0;
  Must(kernel->Call(copy, {}));
  copy.from_offset = 2 * kMiB;
  Must(kernel->Call(copy, {}));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a tick of the kernel's clock
  write();
  const Result<FileExtent> since = kernel->Call(copy, {});
  ASSERT_FALSE(since.ok());
  EXPECT_EQ(since.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(since.error().maybe_applied());
}

// A page that was written to before the copy, and was not on the disk yet, told of no write to it.
TEST_F(CopyProgressTest, ACopyOfAFileThatWasWrittenToByAMappingWasOfTwoMoments) {
  constexpr int64_t kMiB = 1 << 20;
  // Not of memory, which is never written back.
  ASSERT_EQ(std::system(("truncate -s 64M " + scratch() + "/disk && mkfs.ext4 -q " + scratch() +
                         "/disk && mkdir " + scratch() + "/pool && mount -o loop " + scratch() +
                         "/disk " + scratch() + "/pool")
                            .c_str()),
            0);
  const std::string pool = scratch() + "/pool";
  const auto kernel = Must(LocalKernel::Create({}));
  std::ofstream(pool + "/from") << std::string(4 * kMiB, 'x');
  const Descriptor file(::open((pool + "/from").c_str(), O_RDWR | O_CLOEXEC));
  void* const mapped = ::mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const bytes = static_cast<volatile char*>(mapped);
  bytes[4 * kMiB - 1] = 'o';
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a tick of the kernel's clock
  const CopyFile copy{
      .from = HostPath(pool + "/from"), .to = HostPath(pool + "/to"), .bytes_per_second = 4 * kMiB};
  CallOptions options;
  options.progress = [&bytes](int64_t /*bytes*/) { bytes[4 * kMiB - 1] = 'n'; };
  const Result<FileExtent> copied = kernel->Call(copy, options);
  ::munmap(mapped, 4 * kMiB);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code(), Code::kFailedPrecondition);
  ASSERT_EQ(::umount2(pool.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace volumed
