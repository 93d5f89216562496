#include "agent/config_checks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/config_values.h"
#include "base/strings.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

// "" when the settings are good; else all that is wrong with them.
std::string ProblemsOf(const FlagValues& flags) {
  const Result<Config> config = LoadConfig("", false, flags);
  return config.ok() ? "" : config.error().message();
}

testing::AssertionResult Refuses(const FlagValues& flags, const std::string& why) {
  const std::string problems = ProblemsOf(flags);
  if (problems.find(why) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "says: '" << problems << "'";
}

TEST(ConfigChecksTest, WhatIsTheKernelsIsNoPlaceForTheAgent) {
  for (const char* place : {"/proc", "/proc/1/root", "/sys/fs/x", "/dev", "/dev/shm/root"}) {
    EXPECT_TRUE(Refuses({{"root", {place}}}, "which is the kernel's")) << place;
    EXPECT_TRUE(Refuses({{"manifest-dir", {place}}}, "which is the kernel's")) << place;
    EXPECT_TRUE(Refuses({{"socket", {place}}}, "which is the kernel's")) << place;
    EXPECT_TRUE(Refuses({{"host-path-root", {place}}}, "which is the kernel's")) << place;
    EXPECT_TRUE(Refuses({{"volume-plugin-dir", {place}}}, "which is the kernel's")) << place;
  }
  EXPECT_EQ(ProblemsOf({{"root", {"/process/root"}}}), "");
}

TEST(ConfigChecksTest, ManifestsAndReclaimedDirectoriesLieApartFromTheRoot) {
  for (const char* key : {"manifest-dir", "host-path-root"}) {
    for (const char* place : {"/r", "/r/manifests", "/"}) {
      if (std::string(place) == "/") continue;  // no path of its own form
      EXPECT_TRUE(Refuses({{"root", {"/r"}}, {key, {place}}}, "lie in one another")) << place;
    }
    EXPECT_TRUE(Refuses({{"root", {"/a/b/r"}}, {key, {"/a"}}}, "lie in one another"));
    EXPECT_EQ(ProblemsOf({{"root", {"/r"}}, {key, {"/r2"}}}), "");
  }
  EXPECT_TRUE(Refuses({{"root", {"/r"}}, {"socket", {"/r/pods/s"}}}, "directory of the pods"));
  EXPECT_EQ(ProblemsOf({{"root", {"/r"}}, {"socket", {"/r/volumed/s"}}}), "");
}

TEST(ConfigChecksTest, ADirectoryThatIsNoManifestDirWasTakenForOneWhereRemovalDeletesClaims) {
  const FlagValues good = {{"manifest-dir", {"/m", "/n"}}, {"removal-deletes-claims", {"/n"}}};
  EXPECT_EQ(ProblemsOf(good), "");
  EXPECT_TRUE(Refuses({{"manifest-dir", {"/m"}}, {"removal-deletes-claims", {"/n"}}},
                      "removal-deletes-claims: /n is no manifest-dir"));
}

TEST(ConfigChecksTest, PathsHaveTheLengthThatTheirUseAllows) {
  const auto long_path = [](size_t size) {
    std::string path;
    while (path.size() + 101 < size) path += "/" + std::string(100, 'a');
    return path + "/" + std::string(size - path.size() - 1, 'b');
  };
  EXPECT_EQ(ProblemsOf({{"socket", {long_path(107)}}}), "");
  EXPECT_TRUE(Refuses({{"socket", {long_path(108)}}}, "socket: must have at most 107 bytes"));
  EXPECT_EQ(ProblemsOf({{"root", {long_path(400)}}}), "");
  EXPECT_TRUE(Refuses({{"root", {long_path(401)}}}, "root: must have at most 400 bytes"));
  EXPECT_TRUE(Refuses({{"manifest-dir", {long_path(2049)}}}, "manifest-dir: must have at most"));
  EXPECT_TRUE(Refuses({{"root", {"/" + std::string(256, 'a')}}}, "is too long for a name"));
}

TEST(ConfigChecksTest, APathIsAbsolutePlainAndPrintable) {
  for (const char* key : {"root", "socket", "manifest-dir", "host-path-root", "runc", "busybox"}) {
    for (const char* path : {"relative", "", "/", "/a/../b", "/a//b", "/a/", "/a/."}) {
      EXPECT_TRUE(Refuses({{key, {path}}}, "must be an absolute path")) << key << " " << path;
    }
    EXPECT_TRUE(Refuses({{key, {"/a\nb"}}}, "control characters")) << key;
  }
}

TEST(ConfigChecksTest, WhatTheOwnCsiDriverNeedsIsThere) {
  const FlagValues good = {{"csi-serve", {"/s"}}, {"csi-registry", {"/q"}}};
  EXPECT_EQ(ProblemsOf(good), "");
  EXPECT_TRUE(Refuses({{"csi-registry", {"/q"}}}, "csi-registry: needs csi-serve"));
  EXPECT_TRUE(Refuses({{"csi-serve", {"/s"}}, {"csi-registered-endpoint", {"/k"}}},
                      "csi-registered-endpoint: needs csi-registry"));
  EXPECT_TRUE(Refuses({{"csi-serve", {"/s"}}, {"socket", {"/s"}}},
                      "csi-serve: must not be the socket of the control API"));
  EXPECT_TRUE(Refuses({{"root", {"/r"}}, {"csi-serve", {"/r/pods/s"}}},
                      "csi-serve: /r/pods/s lies in the directory of the pods"));
  EXPECT_TRUE(Refuses({{"csi-serve", {"/proc/s"}}}, "csi-serve: /proc/s lies in /proc"));
  EXPECT_TRUE(Refuses({{"csi-serve", {"/" + std::string(107, 'a')}}},
                      "csi-serve: must have at most 107 bytes"));
  // "/.pool.volumed.io-reg.sock" comes behind it.
  EXPECT_EQ(ProblemsOf({{"csi-serve", {"/s"}}, {"csi-registry", {"/" + std::string(80, 'q')}}}),
            "");
  EXPECT_TRUE(Refuses({{"csi-serve", {"/s"}}, {"csi-registry", {"/" + std::string(81, 'q')}}},
                      "csi-registry: must be shorter by 1 bytes"));
}

TEST(ConfigChecksTest, CallersOfTheCsiDriverGetNoPlaceThatIsTheKernelsOrTheWholeNode) {
  const auto roots = [](const ConfigValue& places) {
    return FlagValues{{"csi-serve", {"/run/csi.sock"}}, {"csi-target-roots", places}};
  };
  EXPECT_EQ(ProblemsOf(roots({"/var/lib/kubelet", "/opt/nomad"})), "");
  EXPECT_EQ(ProblemsOf(roots({"/var/lib/kubelet", "/var/lib/kubelet/pods"})), "");
  for (const char* place : {"/proc", "/sys/fs", "/dev/shm"}) {
    EXPECT_TRUE(Refuses(roots({place}), "csi-target-roots: ")) << place;
  }
  EXPECT_NE(ProblemsOf(roots({"/"})), "");
  EXPECT_NE(ProblemsOf(roots({"here"})), "");
  EXPECT_TRUE(Refuses(roots({"/a", "/b", "/a"}), "csi-target-roots: /a is given twice"));
}

// Whoever may call the driver could make directories among the files of volumes and records.
TEST(ConfigChecksTest, CallersOfTheCsiDriverGetNoPlaceInAPoolOrInTheRoot) {
  const auto flags = [](const std::string& place) {
    return FlagValues{{"csi-serve", {"/run/csi.sock"}},
                      {"root", {"/var/lib/own"}},
                      {"pool", {"fast=/data/fast"}},
                      {"csi-target-roots", {place}}};
  };
  EXPECT_EQ(ProblemsOf(flags("/data/kubelet")), "");
  EXPECT_TRUE(Refuses(flags("/data/fast/volumes"),
                      "csi-target-roots: /data/fast/volumes lies in the pool /data/fast"));
  EXPECT_TRUE(Refuses(flags("/var/lib/own"),
                      "csi-target-roots: /var/lib/own lies in the root /var/lib/own"));
}

TEST(ConfigChecksTest, AnAddressHasAHostAndAPortThatExist) {
  for (const char* good : {"127.0.0.1:9788", "0.0.0.0:1", "[::1]:9788", "::1:9788", "[::]:65535",
                           "localhost:80", "node-1.example:80", "127.0.0.1:0"}) {
    EXPECT_TRUE(CheckAddress(good).ok()) << good;
  }
  for (const char* bad :
       {"",           ":80",          "host",         "host:",        "host:99999",
        "host:65536", "host:-1",      "host:8x",      "host: 80",     "a b:80",
        "-a:80",      "a..b:80",      "1.2.3.4.5:80", "999.1.1.1:80", "1.2.3:80",
        "[::1:80",    "[1.2.3.4]:80", "[]:80",        "[::1]80",      "::g:80"}) {
    EXPECT_FALSE(CheckAddress(bad).ok()) << bad;
  }
  EXPECT_TRUE(Refuses({{"metrics-address", {"127.0.0.1:99999"}}}, "from 0 to 65535"));
}

TEST(ConfigChecksTest, NamesAreWhatTheirUseTakes) {
  EXPECT_TRUE(Refuses({{"node-labels", {"a b=c"}}}, "node-labels: \"a b\""));
  EXPECT_TRUE(Refuses({{"node-labels", {"a=b c"}}}, "node-labels: a: \"b c\""));
  EXPECT_TRUE(Refuses({{"token-issuer", {""}}}, "token-issuer: must not be empty"));
  EXPECT_TRUE(Refuses({{"token-issuer", {"https:volumed"}}}, "token-issuer: with a ':'"));
  EXPECT_EQ(ProblemsOf({{"token-issuer", {"kubernetes/serviceaccount"}}}), "");
  EXPECT_TRUE(Refuses({{"mask-kernel-feature", {"flux"}}}, "no kernel feature is called flux"));
  EXPECT_TRUE(Refuses({{"enable-hostpath-provisioner", {"true"}}}, "needs a host-path-root"));
  EXPECT_TRUE(Refuses({{"manifest-dir", {"/a", "/b", "/a"}}}, "/a is given twice"));
}

TEST(ConfigChecksTest, APoolLiesApartFromTheRootAndFromOtherPools) {
  EXPECT_EQ(ProblemsOf({{"pool", {"a=/srv/a", "b=/srv/b"}}, {"pool-capacity", {"b=1Gi"}}}), "");
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a", "b=/srv/a/b"}}}, "pool: /srv/a and /srv/a/b lie in"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a", "b=/srv/a"}}}, "pool: /srv/a and /srv/a lie in"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a", "a=/srv/b"}}}, "pool: a is given twice"));
  EXPECT_TRUE(Refuses({{"root", {"/r"}}, {"pool", {"a=/r/pool"}}}, "pool: /r/pool and the root"));
  EXPECT_TRUE(Refuses({{"root", {"/srv/r"}}, {"pool", {"a=/srv"}}}, "pool: /srv and the root"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/proc/x"}}}, "pool: /proc/x lies in /proc"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a"}}, {"static-volumes", {"db=/srv/disk"}}},
                      "static-volumes: /srv/disk is no path of a device"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a"}},
                       {"static-volumes", {"db=/dev/sdx"}},
                       {"static-block-volumes", {"raw=/dev/sdx"}}},
                      "static-volumes: /dev/sdx is given twice"));
  EXPECT_TRUE(Refuses({{"static-block-volumes", {"raw=/dev/sdx"}}}, "there is no pool"));
  EXPECT_TRUE(Refuses({{"static-exports", {"media=nas:/srv"}}}, "there is no pool"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a"}}, {"static-exports", {"m=nas:/srv", "n=nas:/srv ro"}}},
                      "static-exports: nas:/srv is given twice"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a"}},
                       {"static-volumes", {"db=/dev/sdx"}},
                       {"static-exports", {"db=nas:/srv"}}},
                      "static-volumes: db is given twice"));
  EXPECT_TRUE(Refuses({{"pool", {"a=/srv/a"}}, {"static-exports", {"m=nas:/srv bg"}}},
                      "option \"bg\" is none that an export is listed with"));
  EXPECT_TRUE(Refuses({{"pool-capacity", {"a=1Gi"}}}, "pool-capacity: there is no pool a"));
  EXPECT_TRUE(Refuses({{"pool-lvm", {"a=vg0/thin"}}}, "pool-lvm: there is no pool a"));
  EXPECT_TRUE(Refuses(
      {{"pool", {"a=/srv/a"}}, {"csi-controller-endpoints", {"pool.volumed.io=/run/c.sock"}}},
      "pool.volumed.io is the driver of this node's pools"));
}

class ConfigPlacesTest : public testing::Test {
 protected:
  ConfigPlacesTest() {
    std::string name = (fs::temp_directory_path() / "places-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    std::ofstream(directory_ / "worker") << "#!/bin/sh\n";
    ::chmod((directory_ / "worker").c_str(), 0755);
    config_.root = (directory_ / "root").string();
    config_.manifest_dirs = {(directory_ / "manifests").string()};
    config_.socket = (directory_ / "sock").string();
    config_.worker = (directory_ / "worker").string();
  }
  ~ConfigPlacesTest() override { fs::remove_all(directory_); }
  std::string Problems() const {
    const Status checked = CheckPlaces(config_, SilentPlaces::kAreProblems);
    return checked.ok() ? "" : checked.error().message();
  }

  fs::path directory_;
  Config config_;
};

TEST_F(ConfigPlacesTest, WhatIsNotThereYetIsNoProblem) { EXPECT_EQ(Problems(), ""); }

TEST_F(ConfigPlacesTest, ALinkDoesNotHideThatPlacesLieInOneAnother) {
  fs::create_directories(directory_ / "root/inside");
  fs::create_directory_symlink(directory_ / "root/inside", directory_ / "manifests");
  EXPECT_NE(Problems().find("(with its links resolved)"), std::string::npos) << Problems();
}

TEST_F(ConfigPlacesTest, ALinkHidThatAPoolLiesInAnotherOne) {
  fs::create_directories(directory_ / "a/inside");
  fs::create_directory_symlink(directory_ / "a/inside", directory_ / "b");
  config_.pools = {{"a", (directory_ / "a").string()}, {"b", (directory_ / "b").string()}};
  EXPECT_NE(Problems().find("(with its links resolved)"), std::string::npos) << Problems();
}

TEST_F(ConfigPlacesTest, ALinkToTheRootOfTheNodeHidThatAllElseLiesInIt) {
  fs::create_directory_symlink("/", directory_ / "manifests");
  EXPECT_NE(Problems().find("(with its links resolved)"), std::string::npos) << Problems();
}

TEST_F(ConfigPlacesTest, OneManifestDirectoryWasTakenTwiceByALink) {
  fs::create_directory(directory_ / "manifests");
  fs::create_directory_symlink("manifests", directory_ / "other");
  EXPECT_EQ(Problems(), "");
  config_.manifest_dirs.push_back((directory_ / "other").string());
  EXPECT_EQ(Problems(), "manifest-dir: " + (directory_ / "manifests").string() +
                            " (with its links resolved) is given twice");
}

TEST_F(ConfigPlacesTest, ALinkToWhatIsNotThereYetIsFollowedToo) {
  fs::create_directory_symlink("root", directory_ / "link");
  config_.manifest_dirs = {(directory_ / "link/manifests").string()};
  EXPECT_NE(Problems().find("(with its links resolved)"), std::string::npos) << Problems();
  // The parent of what a link leads to is meant, not that of the link.
  fs::create_directory_symlink("root/a/b", directory_ / "deep");
  fs::create_directory_symlink("deep/..", directory_ / "inside");
  config_.manifest_dirs = {(directory_ / "inside/manifests").string()};
  EXPECT_NE(Problems().find("(with its links resolved)"), std::string::npos) << Problems();
  fs::create_directory_symlink("deep/../../..", directory_ / "outside");
  config_.manifest_dirs = {(directory_ / "outside/manifests").string()};
  EXPECT_EQ(Problems(), "");
  fs::create_directory_symlink(directory_ / "circle", directory_ / "circle");
  config_.manifest_dirs = {(directory_ / "circle/x").string()};
  EXPECT_EQ(Problems(), "");
}

TEST_F(ConfigPlacesTest, ALinkDoesNotHideAKernelsFilesystem) {
  fs::create_directory_symlink("/proc/self", directory_ / "root");
  EXPECT_NE(Problems().find("root: "), std::string::npos);
  EXPECT_NE(Problems().find("filesystem of the kernel's own"), std::string::npos) << Problems();
}

TEST_F(ConfigPlacesTest, AFileIsNoDirectoryNorAbove) {
  std::ofstream(directory_ / "file") << "x";
  config_.root = (directory_ / "file").string();
  EXPECT_NE(Problems().find("is not a directory"), std::string::npos);
  config_.root = (directory_ / "file/below").string();
  EXPECT_NE(Problems().find("is not a directory"), std::string::npos) << Problems();
}

// check-config said yes to it, and run refused it.
TEST_F(ConfigPlacesTest, ARootThatSomebodyElseMadeIsSaid) {
  fs::create_directories(directory_ / "root/pods");
  const std::string problems = Problems();
  EXPECT_TRUE(problems.starts_with("root: " + config_.root + " has no mark of volumed"))
      << problems;
  EXPECT_NE(problems.find("adopt-root takes the root over"), std::string::npos) << problems;
  config_.adopt_root = true;
  EXPECT_EQ(Problems(), "");
  config_.adopt_root = false;
  fs::create_directories(directory_ / "root/volumed");
  std::ofstream(directory_ / "root/volumed/created-by-volumed") << "";
  EXPECT_EQ(Problems(), "");
}

TEST_F(ConfigPlacesTest, WhatIsAtThePlaceOfTheCsiDriversSocketKeepsNoAgentFromItsStart) {
  std::ofstream(directory_ / "csi.sock") << "x";
  config_.csi_serve = (directory_ / "csi.sock").string();
  EXPECT_EQ(Problems(), "");
}

TEST_F(ConfigPlacesTest, WhatIsNoSocketOrNoProgramIsSaid) {
  std::ofstream(directory_ / "sock") << "x";
  EXPECT_NE(Problems().find("socket: "), std::string::npos);
  config_.worker = (directory_ / "sock").string();
  EXPECT_NE(Problems().find("worker: "), std::string::npos);
  config_.worker = directory_.string();
  EXPECT_NE(Problems().find("is not a program"), std::string::npos);
}

}  // namespace
}  // namespace volumed
