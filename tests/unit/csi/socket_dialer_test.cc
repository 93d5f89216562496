// SocketDialer on real sockets: whose socket is used, and that it is the one that was looked at.
#include "csi/socket_dialer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "csi/csi_caller.h"
#include "unit/csi/channel_fixture.h"
#include "unit/csi/scheduler_thread.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using Kept = std::map<std::string, std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A socket that is bound, and maybe listened at.
Descriptor BoundSocket(const std::string& path, int backlog = -1) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  if (backlog >= 0) {
    EXPECT_EQ(::listen(socket.get(), backlog), 0);
  }
  return socket;
}

int OpenDescriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class SocketDialerTest : public testing::Test {
 protected:
  SafePath Place(const std::string& name = "csi.sock") const {
    return {fs::path(directory_.Socket("x")).parent_path().string(), name};
  }
  Deadline In(Duration time) const { return Deadline::After(clock_, time); }
  SocketDialer& dialer() { return dialer_; }

  // The states that a caller told.
  struct States {
    Happening happening;
    std::vector<CsiConnectionState> seen;
  };
  Result<std::shared_ptr<CsiCaller>> Dial(std::shared_ptr<const CsiSocket> socket) {
    return dialer_.Dial("test.csi", std::move(socket), [states = states_](CsiConnectionState now) {
      states->happening.Happened([&] { states->seen.push_back(now); });
    });
  }
  bool WaitForState(CsiConnectionState state) {
    return states_->happening.WaitFor(
        [&] { return !states_->seen.empty() && states_->seen.back() == state; });
  }
  static CsiChannel::AnyAnswer Probe(CsiCaller& caller, const Clock& clock) {
    return caller.Perform(::csi::v1::ProbeRequest(), {Deadline::After(clock, seconds(20))});
  }

  const RealClock clock_{};
  SocketDirectory directory_;
  CsiStateWatch watch_;
  SchedulerThread scheduler_;  // its tasks destroy channels, which the watch waits for
  std::shared_ptr<States> states_ = std::make_shared<States>();
  const SocketOwners ours_ = {static_cast<uint32_t>(::getuid())};
  TrustedRoots roots_;
  SocketDialer dialer_{{.scheduler = scheduler_.scheduler(), .clock = clock_, .watch = watch_},
                       ours_,
                       CsiChannelOptions{}};
};

TEST_F(SocketDialerTest, ASocketOfAnAllowedOwnerIsOpenedAndItsIdentityIsTheFiles) {
  const Descriptor listener = BoundSocket(directory_.Socket(), 8);
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_TRUE(socket.ok()) << socket.error().ToString();
  struct stat status {};
  ASSERT_EQ(::stat(directory_.Socket().c_str(), &status), 0);
  EXPECT_EQ((*socket)->identity(), (SocketIdentity{status.st_dev, status.st_ino}));
  EXPECT_EQ((*socket)->owner(), ::getuid());
  EXPECT_EQ((*socket)->path(), directory_.Socket());
}

TEST_F(SocketDialerTest, ASocketOfAnotherUidIsRefusedAndTheTextNamesBoth) {
  const Descriptor listener = BoundSocket(directory_.Socket(), 8);
  dialer_.SetOwners({4242});
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(socket.error().IsAbout(kCsiSocketRefused));
  EXPECT_NE(socket.error().message().find("is of uid " + std::to_string(::getuid())),
            std::string::npos);
  EXPECT_NE(socket.error().message().find("4242"), std::string::npos);
}

TEST_F(SocketDialerTest, AListenerOfAnotherUidIsRefusedAlthoughTheFileIsOurs) {
  const Descriptor listener = BoundSocket(directory_.Socket(), 8);
  const auto socket = OpenCsiSocket(Place(), ours_, roots_);
  ASSERT_TRUE(socket.ok());
  EXPECT_TRUE(CheckListener(**socket, ours_, clock_, In(seconds(5))).ok());
  const Status checked = CheckListener(**socket, {4242}, clock_, In(seconds(5)));
  ASSERT_FALSE(checked.ok());
  EXPECT_TRUE(checked.error().IsAbout(kCsiSocketRefused));
  EXPECT_NE(checked.error().message().find("the process that listens"), std::string::npos);
}

TEST_F(SocketDialerTest, LinksFilesAndMissingNamesAreRefusedEachByItsReason) {
  const Descriptor listener = BoundSocket(directory_.Socket("real.sock"), 8);
  fs::create_symlink(directory_.Socket("real.sock"), directory_.Socket("link.sock"));
  fs::create_directory(directory_.Socket("folder"));
  fs::create_directory_symlink(directory_.Socket("folder"), directory_.Socket("way"));
  const Descriptor behind = BoundSocket(directory_.Socket("folder/a.sock"), 8);
  std::ofstream(directory_.Socket("file.sock")) << "x";
  struct Case {
    std::string name;
    std::string text;
  };
  for (const Case& c : {Case{"link.sock", "symbolic link"}, Case{"way/a.sock", "symbolic link"},
                        Case{"file.sock", "is no socket"}, Case{"folder", "is no socket"}}) {
    const auto socket = dialer_.Open(Place(c.name), In(seconds(5)));
    ASSERT_FALSE(socket.ok()) << c.name;
    EXPECT_EQ(socket.error().code(), Code::kFailedPrecondition) << c.name;
    EXPECT_TRUE(socket.error().IsAbout(kCsiSocketRefused)) << c.name;
    EXPECT_NE(socket.error().message().find(c.text), std::string::npos) << socket.error().message();
  }
  const auto missing = dialer_.Open(Place("none.sock"), In(seconds(5)));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_FALSE(missing.error().IsAbout(kCsiSocketRefused));
  EXPECT_TRUE(dialer_.Open(Place("folder/a.sock"), In(seconds(5))).ok());
}

TEST_F(SocketDialerTest, ASocketOnAnotherFilesystemIsRefused) {
  struct stat root {};
  struct stat shared {};
  if (::stat("/", &root) != 0 || ::stat("/dev/shm", &shared) != 0 || root.st_dev == shared.st_dev) {
    GTEST_SKIP() << "skipped: needs /dev/shm on a filesystem of its own";
  }
  const std::string name = "csi-dialer-" + std::to_string(::getpid()) + ".sock";
  const Descriptor listener = BoundSocket("/dev/shm/" + name, 8);
  const auto socket = dialer_.Open({"/", "dev/shm/" + name}, In(seconds(5)));
  const auto allowed = dialer_.Open({"/dev/shm", name}, In(seconds(5)));
  fs::remove("/dev/shm/" + name);
  ASSERT_FALSE(socket.ok());
  EXPECT_TRUE(socket.error().IsAbout(kCsiSocketRefused));
  EXPECT_NE(socket.error().message().find("filesystem"), std::string::npos);
  EXPECT_TRUE(allowed.ok());
}

TEST_F(SocketDialerTest, TheTrustedDirectoryMayBeALink) {
  fs::create_directory(directory_.Socket("real"));
  fs::create_directory_symlink(directory_.Socket("real"), directory_.Socket("named"));
  const Descriptor listener = BoundSocket(directory_.Socket("real/a.sock"), 8);
  EXPECT_TRUE(dialer_.Open({directory_.Socket("named"), "a.sock"}, In(seconds(5))).ok());
}

// Each look followed the link anew, so that whoever exchanged it led the agent elsewhere.
TEST_F(SocketDialerTest, ADirectoryThatIsKeptIsFollowedOnce) {
  const std::string named = directory_.Socket("named");
  fs::create_directory(directory_.Socket("real"));
  fs::create_directory(directory_.Socket("other"));
  fs::create_directory_symlink(directory_.Socket("real"), named);
  const Descriptor listener = BoundSocket(directory_.Socket("real/a.sock"), 8);
  const Descriptor foreign = BoundSocket(directory_.Socket("other/b.sock"), 8);
  TrustedRoots at_start(Kept{{named, directory_.Socket("real")}});
  TrustedRoots at_first_look(Kept{{named, ""}});
  TrustedRoots never;
  const auto opens = [&](TrustedRoots& roots, const char* name) {
    return OpenCsiSocket({named, name}, ours_, roots).ok();
  };
  for (TrustedRoots* roots : {&at_start, &at_first_look, &never}) {
    EXPECT_TRUE(opens(*roots, "a.sock"));
  }
  fs::remove(named);
  fs::create_directory_symlink(directory_.Socket("other"), named);
  for (TrustedRoots* roots : {&at_start, &at_first_look}) {
    EXPECT_TRUE(opens(*roots, "a.sock"));
    EXPECT_FALSE(opens(*roots, "b.sock"));
  }
  EXPECT_TRUE(opens(never, "b.sock")) << "it is its driver's, who may come back there";
}

TEST_F(SocketDialerTest, ADirectoryThatIsKeptMayBeMissingAtTheFirstLook) {
  const std::string named = directory_.Socket("named");
  TrustedRoots roots(Kept{{named, ""}});
  const auto missing = OpenCsiSocket({named, "a.sock"}, ours_, roots);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  fs::create_directory(directory_.Socket("real"));
  fs::create_directory_symlink(directory_.Socket("real"), named);
  const Descriptor listener = BoundSocket(directory_.Socket("real/a.sock"), 8);
  EXPECT_TRUE(OpenCsiSocket({named, "a.sock"}, ours_, roots).ok());
}

TEST_F(SocketDialerTest, ASocketThatADeadProcessLeftIsUnavailableAndNotRefused) {
  { const Descriptor listener = BoundSocket(directory_.Socket(), 8); }
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().code(), Code::kUnavailable);
  EXPECT_EQ(socket.error().message(), "nobody listens at " + directory_.Socket());
}

TEST_F(SocketDialerTest, AListenerThatTakesNoConnectionsIsGivenUpAtTheDeadline) {
  const Descriptor listener = BoundSocket(directory_.Socket(), 0);
  std::vector<Descriptor> taken;
  const auto socket = OpenCsiSocket(Place(), ours_, roots_);
  ASSERT_TRUE(socket.ok());
  // The queue of none has room for one.
  ASSERT_TRUE(CheckListener(**socket, ours_, clock_, In(seconds(5))).ok());
  const TimePoint begun = clock_.Now();
  const Status checked = CheckListener(**socket, ours_, clock_, In(milliseconds(200)));
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code(), Code::kDeadlineExceeded);
  EXPECT_GE(clock_.Now() - begun, milliseconds(150));
}

TEST_F(SocketDialerTest, CallsGoOverTheDescriptorAndTheConnectionIsToldAsReady) {
  ScriptedDriver driver(directory_.Socket(), ScriptedDriver::Always({}));
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_TRUE(socket.ok());
  const auto caller = Dial(*socket);
  ASSERT_TRUE(caller.ok());
  EXPECT_TRUE(WaitForState(CsiConnectionState::kReady));
  EXPECT_TRUE(Probe(**caller, clock_).ok());
}

TEST_F(SocketDialerTest, ASocketThatReplacesTheOneThatWasLookedAtIsNeverTalkedTo) {
  auto first = std::make_unique<ScriptedDriver>(directory_.Socket(), ScriptedDriver::Always({}));
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_TRUE(socket.ok());
  ScriptedDriver other(directory_.Socket("other.sock"), ScriptedDriver::Always({}));
  fs::rename(directory_.Socket("other.sock"), directory_.Socket());
  const auto caller = Dial(*socket);
  ASSERT_TRUE(caller.ok());
  ASSERT_TRUE(Probe(**caller, clock_).ok());
  EXPECT_EQ(first->requests().size(), 1u);
  EXPECT_TRUE(other.requests().empty());
  // Not even once the first one is gone, however often gRPC tries.
  first.reset();
  EXPECT_TRUE(WaitForState(CsiConnectionState::kTransientFailure));
  const auto answer = Probe(**caller, clock_);
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(answer.error().IsAbout(kCsiNeverSent)) << answer.error().ToString();
  EXPECT_NE(answer.error().message().find(directory_.Socket()), std::string::npos)
      << answer.error().ToString();
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(SocketDialerTest, TheDeathOfADriverIsToldAtOnce) {
  auto driver = std::make_unique<ScriptedDriver>(directory_.Socket(), ScriptedDriver::Always({}));
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_TRUE(socket.ok());
  const auto caller = Dial(*socket);
  ASSERT_TRUE(caller.ok());
  ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
  driver.reset();
  EXPECT_TRUE(states_->happening.WaitFor(
      [&] { return states_->seen.back() != CsiConnectionState::kReady; }));
}

TEST_F(SocketDialerTest, TheEndOfACallerEndsItsCallsAndThoseOfTheirOwnersCancelToo) {
  ScriptedDriver driver(directory_.Socket(), ScriptedDriver::Hold());
  const auto socket = dialer_.Open(Place(), In(seconds(5)));
  ASSERT_TRUE(socket.ok());
  const auto caller = Dial(*socket);
  ASSERT_TRUE(caller.ok());
  const auto cancel = std::make_shared<CsiCancel>();
  std::vector<std::shared_ptr<CsiCancel>> cancels = {cancel, nullptr};
  struct Answers {
    Happening happening;
    std::vector<Code> codes;
  };
  const auto answers = std::make_shared<Answers>();
  for (const auto& each : cancels) {
    (*caller)->Start(
        ::csi::v1::ProbeRequest(), {In(seconds(60)), each},
        [answers](const CsiChannel::AnyAnswer& answer) {
          answers->happening.Happened([&] {
            answers->codes.push_back(answer.ok() ? Code::kUnknown : answer.error().code());
          });
        });
  }
  ASSERT_TRUE(driver.WaitForArrived(2));
  cancel->Cancel();
  EXPECT_TRUE(answers->happening.WaitFor([&] { return answers->codes.size() == 1; }));
  (*caller)->End();
  EXPECT_TRUE(answers->happening.WaitFor([&] { return answers->codes.size() == 2; }));
  EXPECT_EQ(answers->codes, (std::vector{Code::kCancelled, Code::kCancelled}));
  const auto after = Probe(**caller, clock_);
  ASSERT_FALSE(after.ok());
  EXPECT_EQ(after.error().code(), Code::kCancelled);
}

TEST_F(SocketDialerTest, AHundredConnectionsThatWereDroppedLeaveNoDescriptor) {
  ScriptedDriver driver(directory_.Socket(), ScriptedDriver::Always({}));
  const auto once = [&] {
    states_ = std::make_shared<States>();
    const auto socket = dialer_.Open(Place(), In(seconds(5)));
    ASSERT_TRUE(socket.ok());
    const auto caller = Dial(*socket);
    ASSERT_TRUE(caller.ok());
    ASSERT_TRUE(Probe(**caller, clock_).ok());
  };
  once();
  scheduler_.WaitUntilIdle();
  const int before = OpenDescriptors();
  for (int i = 0; i < 100; ++i) once();
  scheduler_.WaitUntilIdle();
  // gRPC closes some a moment later, and its server too.
  const TimePoint last = clock_.Now() + seconds(20);
  while (OpenDescriptors() > before + 4 && clock_.Now() < last) std::this_thread::yield();
  EXPECT_LE(OpenDescriptors(), before + 4);
}

}  // namespace
}  // namespace volumed
