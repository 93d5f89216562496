#include "base/socket_file.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace volumed {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class SocketFileTest : public testing::Test {
 protected:
  SocketFileTest() {
    std::string name = (fs::temp_directory_path() / "place-XXXXXX").string();
    scratch_ = ::mkdtemp(name.data());
    fs::create_directory(scratch_ / "run");
    path_ = (scratch_ / "run/agent.sock").string();
    loop_ = std::move(EventLoop::Create(clock_)).value();
  }
  ~SocketFileTest() override {
    keeper_.reset();
    fs::remove_all(scratch_);
  }

  SocketFileOptions Options() const { return {path_, std::nullopt, std::nullopt}; }
  void Keep() {
    Result<ProcessLock> lock = LockSocketFile(path_);
    ASSERT_TRUE(lock.ok()) << lock.error().ToString();
    Result<Descriptor> socket = BindSocketFile(Options());
    ASSERT_TRUE(socket.ok()) << socket.error().ToString();
    socket_ = std::move(socket).value();
    keeper_ = std::make_unique<SocketFileKeeper>(
        Options(), std::move(lock).value(), *loop_,
        SocketFileKeeper::Handlers{[this](Descriptor made) -> Status {
                                     ++made_;
                                     socket_ = std::move(made);
                                     return OkStatus();
                                   },
                                   [this](const Status& state) {
                                     ++looks_;
                                     state_ = state;
                                   }});
    keeper_->Start(/*made=*/true);
    ASSERT_EQ(looks_, 1);
    ASSERT_TRUE(state_.ok());
  }
  void RunFor(milliseconds time) {
    loop_->PostAfter(time, [this] { loop_->Stop(); });
    loop_->Run();
  }
  bool RunUntil(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) RunFor(milliseconds(5));
    return condition();
  }
  bool Connects() const {
    const Descriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  RealClock clock_;
  fs::path scratch_;
  std::string path_;
  std::unique_ptr<EventLoop> loop_;
  Descriptor socket_;
  std::unique_ptr<SocketFileKeeper> keeper_;
  int made_ = 0;
  int looks_ = 0;
  Status state_;
};

TEST_F(SocketFileTest, ALeftOverSocketIsReplacedAndAFileIsNot) {
  { ASSERT_TRUE(BindSocketFile(Options()).ok()); }
  EXPECT_TRUE(BindSocketFile(Options()).ok());
  fs::remove(path_);
  fs::create_directory(path_);
  const Result<Descriptor> refused = BindSocketFile(Options());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
}

TEST_F(SocketFileTest, TheSocketOfALivingProcessIsNotReplaced) {
  const Result<Descriptor> first = BindSocketFile(Options());
  ASSERT_TRUE(first.ok());
  const Result<Descriptor> second = BindSocketFile(Options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_TRUE(Connects());
}

TEST_F(SocketFileTest, ThePlaceHasOneHolder) {
  const Result<ProcessLock> first = LockSocketFile(path_);
  ASSERT_TRUE(first.ok());
  const Result<ProcessLock> second =
      ProcessLock::Take(path_ + ".lock", ProcessLock::Patience::kNone);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().message().find("pid " + std::to_string(::getpid())), std::string::npos);
}

TEST_F(SocketFileTest, NobodyButItsOwnerMayConnectWhateverTheUmask) {
  const mode_t before = ::umask(0);
  const Result<Descriptor> socket = BindSocketFile(Options());
  ::umask(before);
  ASSERT_TRUE(socket.ok());
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0600));
}

TEST_F(SocketFileTest, ASocketThatWasUnlinkedIsMadeAnew) {
  Keep();
  for (int round = 1; round <= 3; ++round) {
    fs::remove(path_);
    EXPECT_TRUE(RunUntil([&] { return made_ == round; }));
    EXPECT_TRUE(Connects());
  }
}

TEST_F(SocketFileTest, ASocketThatWasMovedAwayIsMadeAnew) {
  Keep();
  fs::rename(path_, path_ + ".old");
  EXPECT_TRUE(RunUntil([&] { return made_ == 1; }));
  EXPECT_TRUE(Connects());
}

TEST_F(SocketFileTest, ALockThatWasUnlinkedIsTakenAnew) {
  Keep();
  fs::remove(path_ + ".lock");
  EXPECT_TRUE(RunUntil([&] { return fs::exists(path_ + ".lock"); }));
  EXPECT_FALSE(ProcessLock::Take(path_ + ".lock", ProcessLock::Patience::kNone).ok());
  EXPECT_EQ(made_, 0) << "the socket was there";
}

TEST_F(SocketFileTest, ADirectoryThatWasRemovedOrMovedIsMadeAnewWithEverythingInIt) {
  Keep();
  fs::remove_all(scratch_ / "run");
  EXPECT_TRUE(RunUntil([&] { return made_ == 1 && Connects(); }));
  fs::rename(scratch_ / "run", scratch_ / "elsewhere");
  EXPECT_TRUE(RunUntil([&] { return made_ == 2 && Connects(); }));
  fs::remove(path_);
  EXPECT_TRUE(RunUntil([&] { return made_ == 3 && Connects(); })) << "the new one is watched too";
}

// The directory of plugins of a kubelet that never ran is not there either.
TEST_F(SocketFileTest, ASocketHadNoPlaceUntilItsDirectoriesWereMadeByHand) {
  path_ = (scratch_ / "plugins/pool/csi.sock").string();
  const auto keep = [this](bool makes_parents) {
    SocketFileOptions options = Options();
    options.makes_parents = makes_parents;
    keeper_ = std::make_unique<SocketFileKeeper>(
        options, std::nullopt, *loop_,
        SocketFileKeeper::Handlers{[this](Descriptor made) -> Status {
                                     socket_ = std::move(made);
                                     return OkStatus();
                                   },
                                   [this](const Status& state) { state_ = state; }});
    keeper_->Start(/*made=*/false);
  };
  keep(false);
  ASSERT_FALSE(state_.ok());
  keep(true);
  ASSERT_TRUE(state_.ok()) << state_.error().ToString();
  EXPECT_TRUE(Connects());
  EXPECT_EQ(fs::status(scratch_ / "plugins").permissions() & fs::perms(0022), fs::perms::none);
}

TEST_F(SocketFileTest, WhatIsInTheWayIsSaidAndWaitedFor) {
  Keep();
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_TRUE(RunUntil([&] { return !state_.ok(); }));
  EXPECT_EQ(state_.error().code(), Code::kAlreadyExists);
  fs::remove(path_);
  EXPECT_TRUE(RunUntil([&] { return state_.ok() && Connects(); }));
}

TEST_F(SocketFileTest, OtherFilesOfTheDirectoryAreNotLookedAt) {
  Keep();
  for (int i = 0; i < 100; ++i) std::ofstream(scratch_ / "run" / std::to_string(i)) << "x";
  RunFor(milliseconds(50));
  EXPECT_EQ(looks_, 1);
}

TEST_F(SocketFileTest, ASocketThatIsRenamedIntoPlaceListensWhenItAppears) {
  SocketFileOptions options = Options();
  options.renamed_into_place = true;
  Result<Inotify> watch = Inotify::Create();
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(watch->AddWatch((scratch_ / "run").string(), IN_CREATE | IN_MOVED_TO).ok());
  const Result<Descriptor> socket = BindSocketFile(options);
  ASSERT_TRUE(socket.ok()) << socket.error().ToString();
  EXPECT_TRUE(Connects());
  const auto events = watch->ReadEvents();
  ASSERT_TRUE(events.ok());
  for (const InotifyEvent& event : *events) {
    if ((event.mask & IN_CREATE) != 0) {
      EXPECT_EQ(event.name, ".agent.sock");
    }
  }
  EXPECT_FALSE(fs::exists(HiddenSocketPath(path_)));
}

TEST_F(SocketFileTest, ARenameReplacesNothing) {
  SocketFileOptions options = Options();
  options.renamed_into_place = true;
  const Result<Descriptor> first = BindSocketFile(options);
  ASSERT_TRUE(first.ok());
  const Result<Descriptor> second = BindSocketFile(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_TRUE(Connects());
  fs::remove(path_);
  fs::create_symlink("elsewhere", path_);
  const Result<Descriptor> link = BindSocketFile(options);
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(fs::is_symlink(path_));
}

TEST_F(SocketFileTest, WhatItsKeeperRemovesStaysAway) {
  Keep();
  EXPECT_TRUE(keeper_->Remove().ok());
  EXPECT_FALSE(fs::exists(path_));
  RunFor(milliseconds(20));
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_EQ(made_, 0);
}

}  // namespace
}  // namespace volumed
