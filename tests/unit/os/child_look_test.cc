#include "os/child_look.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "base/descriptor.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string NeverAnswer() {
  while (true) ::pause();
}

TEST(ChildLookTest, EachLookAnswersForItself) {
  const auto answers =
      LookInChildren({[] { return std::string("one"); }, [] { return std::string(100'000, 'x'); },
                      [] { return std::string(); }},
                     seconds(20));
  ASSERT_TRUE(answers.ok());
  ASSERT_EQ(answers->size(), 3u);
  EXPECT_EQ((*answers)[0], "one");
  EXPECT_EQ((*answers)[1], std::string(100'000, 'x'));
  EXPECT_EQ((*answers)[2], "");
}

TEST(ChildLookTest, ALookThatNeverAnswersOrDiesKeepsNoOtherWaiting) {
  const auto start = std::chrono::steady_clock::now();
  const auto answers = LookInChildren({NeverAnswer, [] { return std::string("two"); },
                                       []() -> std::string {
                                         ::raise(SIGKILL);
                                         return "three";
                                       }},
                                      seconds(2));
  ASSERT_TRUE(answers.ok());
  EXPECT_FALSE((*answers)[0].has_value());
  EXPECT_EQ((*answers)[1], "two");
  EXPECT_FALSE((*answers)[2].has_value());
  // The wait counts whole milliseconds.
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(1999));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

// An agent did not start, for "its root does not answer": somebody had killed the process that
// looked.
TEST(ChildLookTest, ALookWhoseProcessSomebodyKilledWasTakenForNoAnswer) {
  char marker[] = "/tmp/volumed-look-XXXXXX";
  const Descriptor file(::mkstemp(marker));
  ASSERT_TRUE(file.valid());
  const std::string path = marker;
  const auto answers = LookInChildren({[path]() -> std::string {
                                        if (::unlink(path.c_str()) == 0) ::raise(SIGKILL);
                                        return "here";
                                      }},
                                      seconds(20));
  ASSERT_TRUE(answers.ok());
  EXPECT_EQ((*answers)[0], "here");
}

// Whoever reads the output of check-config would wait for a child that cannot be killed.
TEST(ChildLookTest, ALookKeepsNothingOpenThatItsProgramHas) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  const std::string number = std::to_string(out.get());
  const auto answers = LookInChildren({[number]() -> std::string {
                                        const std::string path = "/proc/self/fd/" + number;
                                        return ::access(path.c_str(), F_OK) == 0 ? "open" : "shut";
                                      }},
                                      seconds(20));
  ASSERT_TRUE(answers.ok());
  EXPECT_EQ((*answers)[0], "shut");
}

}  // namespace
}  // namespace volumed
