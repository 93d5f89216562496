// What a worker holds, as its agent and an agent after that one see it.
#include "os/worker_keys.h"
#include "fakes/must.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace volumed {
namespace {

class WorkerKeysTest : public ::testing::Test {
 protected:
  WorkerKeysTest() {
    char name[] = "/tmp/volumed-test-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~WorkerKeysTest() override { std::filesystem::remove_all(directory_); }

  WorkerKeys Create() { return Must(WorkerKeys::Create(directory_)); }
  bool IsTaken(const std::string& key) const {
    return !Must(KeysOfOthers::Read(directory_)).Check({"nobody's", key}).ok();
  }
  std::string OneFile() const {
    return std::filesystem::directory_iterator(directory_)->path().string();
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  std::string directory_;
};

TEST_F(WorkerKeysTest, AreHeldUntilTheWorkerLetsGo) {
  WorkerKeys agents = Create();
  auto workers = WorkerKeys::Inherit(agents.lock());
  ASSERT_TRUE(workers.ok());
  agents.Write({"uid-1/data", "uid-1/config"}, "StatFs /mnt (pid 7)");
  EXPECT_TRUE(IsTaken("uid-1/data"));
  EXPECT_TRUE(IsTaken("uid-1/config"));
  EXPECT_FALSE(IsTaken("uid-1/other"));
  workers->LetGo();
  EXPECT_FALSE(IsTaken("uid-1/data"));
  agents.Write({"uid-2/data"}, "StatFs /mnt (pid 7)");
  EXPECT_TRUE(IsTaken("uid-2/data"));
  EXPECT_FALSE(IsTaken("uid-1/data"));
}

// The mapping of an agent that is killed, and a tool that has the page, are two things.
TEST_F(WorkerKeysTest, AreHeldAsLongAsAnybodyHasTheLock) {
  WorkerKeys agents = Create();
  agents.Write({"uid-1/data"}, "StatFs /mnt (pid 7)");
  std::optional<Descriptor> tools = Descriptor(::fcntl(agents.lock(), F_DUPFD_CLOEXEC, 3));
  agents.CloseLock();
  EXPECT_TRUE(IsTaken("uid-1/data"));
  auto others = KeysOfOthers::Read(directory_);
  ASSERT_TRUE(others.ok());
  const Status held = others->Check({"uid-1/other", "uid-1/data"});
  EXPECT_EQ(held.error().code(), Code::kAborted);
  EXPECT_EQ(held.error().message(),
            "an earlier worker still holds key uid-1/data, of an agent before this one: "
            "StatFs /mnt (pid 7); it ends once that answers");
  EXPECT_EQ(others->Busy(), 1);
  EXPECT_TRUE(others->Check({"uid-2/data"}).ok());
  tools.reset();
  EXPECT_TRUE(others->Check({"uid-1/data"}).ok());
  EXPECT_EQ(others->Busy(), 0);
  EXPECT_EQ(Files(), 0U) << "nothing is left of it";
}

TEST_F(WorkerKeysTest, OfDeadWorkersAreRemovedAtTheNextStart) {
  for (int i = 0; i < 3; ++i) {
    WorkerKeys dead = Create();
    dead.Write({"uid-1/data"}, "StatFs /mnt (pid 7)");
  }
  EXPECT_EQ(Files(), 3U);
  EXPECT_FALSE(IsTaken("uid-1/data"));
  EXPECT_EQ(Files(), 0U);
}

TEST_F(WorkerKeysTest, MoreThanThePageHasRoomForAreAllThatThereAre) {
  WorkerKeys agents = Create();
  std::vector<std::string> many;
  for (int i = 0; i < 383; ++i) many.push_back("uid-1/" + std::to_string(i));
  agents.Write(many, "StatFs /mnt (pid 7)");
  EXPECT_TRUE(IsTaken("uid-1/382"));
  EXPECT_FALSE(IsTaken("uid-2/data"));
  many.push_back("uid-1/383");
  agents.Write(many, "StatFs /mnt (pid 7)");
  EXPECT_TRUE(IsTaken("uid-2/data"));
}

TEST_F(WorkerKeysTest, APageThatWasCutMayHoldAnything) {
  WorkerKeys agents = Create();
  ASSERT_EQ(::truncate(OneFile().c_str(), 100), 0);
  EXPECT_TRUE(IsTaken("uid-1/data"));
}

// A link, a pipe and somebody's file among the pages are nobody's page.
TEST_F(WorkerKeysTest, WhatElseIsInTheDirectoryIsLeftAlone) {
  std::filesystem::create_symlink("/etc/passwd", directory_ + "/worker-1");
  ASSERT_EQ(::mkfifo((directory_ + "/other").c_str(), 0600), 0);
  EXPECT_FALSE(IsTaken("uid-1/data"));
  EXPECT_EQ(Files(), 2U);
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
}

TEST_F(WorkerKeysTest, WhatIsNoPageIsNotInherited) {
  const Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(WorkerKeys::Inherit(nothing.get()).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(WorkerKeys::Inherit(-1).error().code(), Code::kInvalidArgument);
}

TEST_F(WorkerKeysTest, ADirectoryThatIsMissingIsAnError) {
  const std::string missing = directory_ + "/missing";
  EXPECT_EQ(WorkerKeys::Create(missing).error().code(), Code::kNotFound);
  EXPECT_EQ(KeysOfOthers::Read(missing).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace volumed
