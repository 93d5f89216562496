// A program that is paused until something was done with its process.
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/descriptor.h"
#include "os/child_process.h"

namespace volumed {
namespace {

// Which program a process runs.
std::string ProgramOf(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
}

std::string ReadAll(int descriptor) {
  std::string text;
  char chunk[256];
  for (ssize_t size = ::read(descriptor, chunk, sizeof(chunk)); size > 0;
       size = ::read(descriptor, chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<size_t>(size));
  }
  return text;
}

TEST(HeldStartTest, TheProgramBeginsOnlyWhenItIsLetGo) {
  ChildSetup setup;
  setup.arguments = {"/bin/sh", "-c", "exit 7"};
  setup.descriptors = {-1, -1, -1};
  const std::string ours = ProgramOf(::getpid());
  pid_t seen = 0;
  setup.paused = [&](pid_t pid) {
    seen = pid;
    EXPECT_EQ(ProgramOf(pid), ours) << "not the program yet";
  };
  Result<ChildProcess> child = ChildProcess::Start(setup);
  ASSERT_TRUE(child.ok()) << child.error().ToString();
  EXPECT_EQ(child->pid(), seen);
  const auto end = child->WaitForEnd(std::chrono::seconds(30));
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->exited);
  EXPECT_EQ(end->status, 7);
}

TEST(HeldStartTest, GetsItsDescriptorsAndEnvironmentAndNoOthers) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // not closed on exec: it must not be inherited all the same
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  ChildSetup setup;
  setup.arguments = {"/bin/sh", "-c", "echo \"$WORD\"; ls /proc/self/fd | wc -l"};
  setup.environment = std::vector<std::string>{"WORD=paused", "PATH=/usr/bin:/bin"};
  setup.descriptors = {-1, theirs.get(), -1};
  setup.paused = [](pid_t) {};
  Result<ChildProcess> child = ChildProcess::Start(setup);
  ASSERT_TRUE(child.ok()) << child.error().ToString();
  theirs.Reset();
  EXPECT_EQ(ReadAll(ours.get()), "paused\n4\n") << "0, 1, 2 and that of the listing";
  EXPECT_TRUE(child->WaitForEnd(std::chrono::seconds(30)).has_value());
}

TEST(HeldStartTest, AProgramThatIsNotThereIsAnErrorOfTheStart) {
  ChildSetup setup;
  setup.arguments = {"/nonexistent/program"};
  setup.descriptors = {-1, -1, -1};
  bool paused = false;
  setup.paused = [&paused](pid_t) { paused = true; };
  const Result<ChildProcess> child = ChildProcess::Start(setup);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().sys_errno(), ENOENT);
  EXPECT_FALSE(child.error().maybe_applied());
  EXPECT_TRUE(paused);
}

}  // namespace
}  // namespace volumed
