// InotifyRegistryWatch on real directories and sockets.
#include "csi/registry_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unit/csi/scripted_driver.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using What = RegistryChange::What;

// A socket that is bound; nobody listens.
void MakeSocket(const fs::path& path) {
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << path << ": " << std::strerror(errno);
}

class RegistryWatchTest : public testing::Test {
 protected:
  RegistryWatchTest() { Make({}); }
  void Make(InotifyRegistryWatch::Limits limits) {
    auto made = InotifyRegistryWatch::Create(registry_.string(), limits);
    watch_ = *std::move(made);
  }

  // "+a.sock -b.sock ~c.sock !/endpoint", by name; of one name in their order.
  std::string Changes() {
    std::string text;
    const RegistryLook look = watch_->Look(endpoints_);
    std::vector<RegistryChange> changes = look.changes;
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const RegistryChange& change : changes) {
      if (!text.empty()) text += " ";
      switch (change.what) {
        case What::kCame:
          text += "+";
          break;
        case What::kChanged:
          text += "~";
          break;
        case What::kWent:
          text += "-";
          break;
        case What::kEndpoint:
          text += "!";
          break;
      }
      text += change.name;
    }
    error_ = look.error ? look.error->message() : "";
    return text;
  }

  SocketDirectory directory_;
  const fs::path registry_ = directory_.Socket("registry");
  const fs::path plugins_ = directory_.Socket("plugins");
  std::vector<SafePath> endpoints_;
  std::string error_;
  std::unique_ptr<InotifyRegistryWatch> watch_;
};

TEST_F(RegistryWatchTest, TheDirectoryIsMadeAndWhatComesAndGoesIsTold) {
  EXPECT_EQ(Changes(), "");
  EXPECT_TRUE(fs::is_directory(registry_));
  MakeSocket(registry_ / "a.sock");
  EXPECT_EQ(Changes(), "+a.sock");
  EXPECT_EQ(Changes(), "");
  fs::remove(registry_ / "a.sock");
  EXPECT_EQ(Changes(), "-a.sock");
}

// It was open to everybody.
TEST_F(RegistryWatchTest, TheDirectoryIsMadeWithKubeletsMode) {
  EXPECT_EQ(Changes(), "");
  struct stat made {};
  ASSERT_EQ(::stat(registry_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777u, 0750u);
}

TEST_F(RegistryWatchTest, WhatWasThereBeforeIsTold) {
  fs::create_directories(registry_ / "b");
  MakeSocket(registry_ / "a.sock");
  MakeSocket(registry_ / "b" / "c.sock");
  EXPECT_EQ(Changes(), "+a.sock +b/c.sock");
  EXPECT_EQ(Changes(), "");
}

TEST_F(RegistryWatchTest, FilesAreNoSocketsAndHiddenNamesDoNotCount) {
  Changes();
  std::ofstream(registry_ / "file") << "x";
  MakeSocket(registry_ / ".hidden.sock");
  fs::create_directory(registry_ / ".folder");
  MakeSocket(registry_ / ".folder" / "a.sock");
  EXPECT_EQ(Changes(), "");
}

TEST_F(RegistryWatchTest, ASocketThatWasMadeUnderAHiddenNameComesWhenItIsRenamed) {
  Changes();
  MakeSocket(registry_ / ".a.sock");
  EXPECT_EQ(Changes(), "");
  fs::rename(registry_ / ".a.sock", registry_ / "a.sock");
  EXPECT_EQ(Changes(), "+a.sock");
  fs::rename(registry_ / "a.sock", registry_ / ".a.sock");
  EXPECT_EQ(Changes(), "-a.sock");
}

TEST_F(RegistryWatchTest, ASocketThatIsMadeAnewBetweenTwoLooksWentAndCame) {
  MakeSocket(registry_.parent_path() / "spare.sock");
  Changes();
  MakeSocket(registry_ / "a.sock");
  EXPECT_EQ(Changes(), "+a.sock");
  fs::remove(registry_ / "a.sock");
  MakeSocket(registry_ / "a.sock");
  EXPECT_EQ(Changes(), "-a.sock +a.sock");
  fs::rename(registry_.parent_path() / "spare.sock", registry_ / "a.sock");
  EXPECT_EQ(Changes(), "-a.sock +a.sock");
}

TEST_F(RegistryWatchTest, AChangedModeIsToldAsAChange) {
  Changes();
  MakeSocket(registry_ / "a.sock");
  EXPECT_EQ(Changes(), "+a.sock");
  ASSERT_EQ(::chmod((registry_ / "a.sock").c_str(), 0600), 0);
  EXPECT_EQ(Changes(), "~a.sock");
}

TEST_F(RegistryWatchTest, ASymbolicLinkIsToldSoThatSomebodyCanRefuseIt) {
  Changes();
  fs::create_symlink("/nowhere", registry_ / "link.sock");
  EXPECT_EQ(Changes(), "+link.sock");
}

TEST_F(RegistryWatchTest, FoldersAreLookedIntoHoweverDeepAndHoweverLateTheyCome) {
  Changes();
  fs::create_directories(registry_ / "x" / "y");
  MakeSocket(registry_ / "x" / "y" / "a.sock");
  EXPECT_EQ(Changes(), "+x/y/a.sock");
  // Its events are its folder's now, and not of the scan.
  EXPECT_EQ(Changes(), "");
  MakeSocket(registry_ / "x" / "y" / "b.sock");
  EXPECT_EQ(Changes(), "+x/y/b.sock");
  fs::rename(registry_ / "x", directory_.Socket("elsewhere"));
  EXPECT_EQ(Changes(), "-x/y/a.sock -x/y/b.sock");
  MakeSocket(fs::path(directory_.Socket("elsewhere")) / "y" / "c.sock");
  EXPECT_EQ(Changes(), "");
  fs::rename(directory_.Socket("elsewhere"), registry_ / "z");
  EXPECT_EQ(Changes(), "+z/y/a.sock +z/y/b.sock +z/y/c.sock");
  fs::remove_all(registry_ / "z");
  EXPECT_EQ(Changes(), "-z/y/a.sock -z/y/b.sock -z/y/c.sock");
}

TEST_F(RegistryWatchTest, ADirectoryThatGoesTakesItsSocketsAlongAndIsMadeAgain) {
  Changes();
  MakeSocket(registry_ / "a.sock");
  Changes();
  fs::remove_all(registry_);
  EXPECT_EQ(Changes(), "-a.sock");
  EXPECT_EQ(error_, "");
  EXPECT_TRUE(fs::is_directory(registry_));
  MakeSocket(registry_ / "b.sock");
  EXPECT_EQ(Changes(), "+b.sock");
}

TEST_F(RegistryWatchTest, ADirectoryThatIsMovedAwayIsMadeAgainAndTheOldOneDoesNotCount) {
  Changes();
  MakeSocket(registry_ / "a.sock");
  Changes();
  fs::rename(registry_, directory_.Socket("old"));
  EXPECT_EQ(Changes(), "-a.sock");
  MakeSocket(fs::path(directory_.Socket("old")) / "b.sock");
  EXPECT_EQ(Changes(), "");
}

TEST_F(RegistryWatchTest, ARootThatIsALinkIsFollowedOnceForTheDirectoryAndForEndpoints) {
  const std::string named = directory_.Socket("named");
  for (const char* root : {"real", "other"}) fs::create_directory(directory_.Socket(root));
  fs::create_directory_symlink(directory_.Socket("real"), named);
  auto roots = std::make_shared<TrustedRoots>(
      std::map<std::string, std::string>{{named, directory_.Socket("real")}, {named + "/r", ""}});
  watch_ = *InotifyRegistryWatch::Create(named + "/r", {}, roots);
  endpoints_ = {{named, "csi.sock"}};
  EXPECT_EQ(Changes(), "!" + named + "/csi.sock");
  EXPECT_TRUE(fs::is_directory(directory_.Socket("real/r")));
  fs::remove(named);
  fs::create_directory_symlink(directory_.Socket("other"), named);
  MakeSocket(directory_.Socket("real/r/a.sock"));
  MakeSocket(directory_.Socket("real/csi.sock"));
  MakeSocket(directory_.Socket("other/csi.sock"));
  EXPECT_EQ(Changes(), "!" + named + "/csi.sock +a.sock");
}

TEST_F(RegistryWatchTest, ADirectoryThatCannotBeMadeIsAnErrorUntilItCan) {
  Changes();
  MakeSocket(registry_ / "a.sock");
  Changes();
  fs::remove_all(registry_);
  std::ofstream(registry_) << "in the way";
  EXPECT_EQ(Changes(), "-a.sock");
  EXPECT_NE(error_, "");
  EXPECT_EQ(Changes(), "");
  EXPECT_NE(error_, "");
  fs::remove(registry_);
  EXPECT_EQ(Changes(), "");
  EXPECT_EQ(error_, "");
  MakeSocket(registry_ / "a.sock");
  EXPECT_EQ(Changes(), "+a.sock");
}

TEST_F(RegistryWatchTest, LostEventsAreMadeUpForByALookAtEverything) {
  std::ifstream limit("/proc/sys/fs/inotify/max_queued_events");
  int most = 0;
  limit >> most;
  if (most == 0 || most > 100'000) GTEST_SKIP() << "skipped: needs a queue of events to overflow";
  endpoints_ = {{plugins_.string(), "disk/csi.sock"}};
  fs::create_directories(plugins_ / "disk");
  Changes();
  MakeSocket(registry_ / "stays.sock");
  MakeSocket(registry_ / "goes.sock");
  Changes();
  for (int i = 0; i < most / 2 + 10; ++i) {
    // Two names in turn, so that the kernel does not fold the events into one.
    std::ofstream(registry_ / ".x");
    fs::rename(registry_ / ".x", registry_ / ".y");
    fs::remove(registry_ / ".y");
  }
  fs::remove(registry_ / "goes.sock");
  MakeSocket(registry_ / "new.sock");
  MakeSocket(plugins_ / "disk" / "csi.sock");
  EXPECT_EQ(Changes(),
            "!" + (plugins_ / "disk" / "csi.sock").string() + " -goes.sock +new.sock ~stays.sock");
  EXPECT_EQ(Changes(), "");
}

TEST_F(RegistryWatchTest, AnEndpointIsToldWhenItIsWatchedAndWheneverSomethingHappensThere) {
  const std::string socket = (plugins_ / "disk" / "csi.sock").string();
  fs::create_directories(plugins_ / "disk");
  endpoints_ = {{plugins_.string(), "disk/csi.sock"}};
  EXPECT_EQ(Changes(), "!" + socket);
  EXPECT_EQ(Changes(), "");
  std::ofstream(plugins_ / "disk" / "log") << "x";
  EXPECT_EQ(Changes(), "");
  MakeSocket(socket);
  EXPECT_EQ(Changes(), "!" + socket);
  fs::remove(socket);
  EXPECT_EQ(Changes(), "!" + socket);
  endpoints_ = {};
  Changes();
  MakeSocket(socket);
  EXPECT_EQ(Changes(), "");
}

TEST_F(RegistryWatchTest, AnEndpointWhoseFolderIsMissingIsWatchedFromTheNearestOneThatExists) {
  const std::string socket = (plugins_ / "a" / "b" / "csi.sock").string();
  fs::create_directories(plugins_);
  endpoints_ = {{plugins_.string(), "a/b/csi.sock"}};
  Changes();
  fs::create_directories(plugins_ / "other");
  EXPECT_EQ(Changes(), "");
  fs::create_directory(plugins_ / "a");
  EXPECT_EQ(Changes(), "!" + socket);
  fs::create_directory(plugins_ / "a" / "b");
  EXPECT_EQ(Changes(), "!" + socket);
  MakeSocket(socket);
  EXPECT_EQ(Changes(), "!" + socket);
  // Its folder goes and comes back.
  fs::remove_all(plugins_ / "a");
  EXPECT_EQ(Changes(), "!" + socket);
  fs::create_directories(plugins_ / "a" / "b");
  MakeSocket(socket);
  EXPECT_EQ(Changes(), "!" + socket);
  fs::remove(socket);
  EXPECT_EQ(Changes(), "!" + socket);
}

TEST_F(RegistryWatchTest, AnEndpointMayBeInTheDirectoryItself) {
  endpoints_ = {{registry_.string(), "a.sock"}};
  fs::create_directories(registry_);
  const std::string socket = (registry_ / "a.sock").string();
  EXPECT_EQ(Changes(), "!" + socket);
  MakeSocket(socket);
  EXPECT_EQ(Changes(), "!" + socket + " +a.sock");
}

TEST_F(RegistryWatchTest, TwoEndpointsInOneFolderAreToldApart) {
  fs::create_directories(plugins_);
  endpoints_ = {{plugins_.string(), "a.sock"}, {plugins_.string(), "b.sock"}};
  Changes();
  MakeSocket(plugins_ / "a.sock");
  EXPECT_EQ(Changes(), "!" + (plugins_ / "a.sock").string());
  endpoints_ = {{plugins_.string(), "b.sock"}};
  Changes();
  fs::remove(plugins_ / "a.sock");
  MakeSocket(plugins_ / "b.sock");
  EXPECT_EQ(Changes(), "!" + (plugins_ / "b.sock").string());
}

TEST_F(RegistryWatchTest, FoldersBeyondTheLimitAreAnErrorAndTheOthersAreWatched) {
  Make({.folders = 2, .depth = 8});
  Changes();
  fs::create_directory(registry_ / "a");
  Changes();
  fs::create_directory(registry_ / "b");
  Changes();
  EXPECT_NE(error_.find("too many folders"), std::string::npos) << error_;
  MakeSocket(registry_ / "c.sock");
  EXPECT_EQ(Changes().find("+c.sock"), 0u);
  fs::remove(registry_ / "b");
  Changes();
  EXPECT_EQ(error_, "");
}

TEST_F(RegistryWatchTest, ItIsReadableWhenSomethingHasHappened) {
  Changes();
  pollfd poll{watch_->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
  MakeSocket(registry_ / "a.sock");
  EXPECT_EQ(::poll(&poll, 1, 0), 1);
  Changes();
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
}

}  // namespace
}  // namespace volumed
