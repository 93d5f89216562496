// What is told of a copy of a file while it is under way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace volumed
