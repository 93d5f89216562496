#include "agent/watchdog.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

// Stands for systemd: the socket that sd_notify writes to. It holds ten messages (unix(7),
// max_dgram_qlen), so it has to be read in between.
class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() {
    std::string name = (std::filesystem::temp_directory_path() / "notify-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    const std::string path = (directory_ / "socket").string();
    socket_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~WatchdogTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    std::filesystem::remove_all(directory_);
  }

  // What has been said since the last call.
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    char buffer[1024];
    for (;;) {
      const ssize_t size = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (size < 0) return said;
      said.emplace_back(buffer, static_cast<size_t>(size));
    }
  }
  int64_t Pings() {
    const std::vector<std::string> said = Said();
    return std::count(said.begin(), said.end(), "WATCHDOG=1");
  }

  std::filesystem::path directory_;
  Descriptor socket_;
  SimulatedScheduler scheduler_{1};
};

TEST_F(WatchdogTest, SaysReadyAndPingsAtHalfTheTimeAllowed) {
  ::setenv("WATCHDOG_USEC", "2000000", 1);
  Watchdog watchdog(scheduler_);
  watchdog.Ready("ready");
  EXPECT_EQ(Said(), (std::vector<std::string>{"READY=1\nSTATUS=ready", "WATCHDOG=1"}));
  scheduler_.RunFor(std::chrono::seconds(4));
  EXPECT_EQ(Pings(), 4);
}

TEST_F(WatchdogTest, WithoutAWatchdogItOnlySaysReady) {
  Watchdog watchdog(scheduler_);
  watchdog.Ready("ready");
  scheduler_.RunFor(std::chrono::seconds(10));
  EXPECT_EQ(Said(), std::vector<std::string>{"READY=1\nSTATUS=ready"});
}

// Each reload once started another chain of pings, for as long as the agent ran.
TEST_F(WatchdogTest, AReloadStartsNoSecondChainOfPings) {
  ::setenv("WATCHDOG_USEC", "2000000", 1);
  Watchdog watchdog(scheduler_);
  watchdog.Ready("ready");
  for (int i = 0; i < 3; ++i) {
    watchdog.Reloading();
    watchdog.Ready("ready");
    (void)Said();
  }
  scheduler_.RunFor(std::chrono::seconds(4));
  EXPECT_EQ(Pings(), 4);
}

}  // namespace
}  // namespace volumed
