#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <type_traits>
#include <utility>

namespace volumed {
namespace {

static_assert(!std::is_copy_constructible_v<Descriptor>);

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
int OpenNull() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(DescriptorTest, ClosesWhenDestroyedAndKeepsErrno) {
  int fd = -1;
  {
    const Descriptor owner(OpenNull());
    fd = owner.get();
    ASSERT_TRUE(IsOpen(fd));
    errno = EBUSY;
  }
  EXPECT_EQ(errno, EBUSY);
  EXPECT_FALSE(IsOpen(fd));
}

TEST(DescriptorTest, MovesAndReleases) {
  Descriptor first(OpenNull());
  const int fd = first.get();
  Descriptor second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT: its state after a move is defined
  EXPECT_EQ(second.get(), fd);
  Descriptor third(OpenNull());
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_EQ(third.Release(), fd);
  EXPECT_FALSE(third.valid());
  EXPECT_TRUE(IsOpen(fd));
  const Descriptor close_again(fd);
}

TEST(DescriptorTest, DuplicatesAreCloseOnExecAndApart) {
  Descriptor first(OpenNull());
  const Result<Descriptor> copy = first.Duplicate();
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(::fcntl(copy->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  first.Reset();
  EXPECT_TRUE(IsOpen(copy->get()));
  EXPECT_EQ(first.Duplicate().error().sys_errno(), EBADF);
}

TEST(DescriptorTest, FromReportsTheCallThatFailed) {
  const Result<Descriptor> missing =
      DescriptorFrom(::open("/nonexistent/x", O_RDONLY | O_CLOEXEC), "open /nonexistent/x");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_EQ(missing.error().message(), "open /nonexistent/x: No such file or directory");
}

}  // namespace
}  // namespace volumed
