// Which texts are exports, and with which options they may be listed.
#include "pool/static_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "volume/nfs_export.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StaticExportTest, ATextNamesTheExportAndItsOptions) {
  const Result<StaticExport> plain = ParseStaticExport("nas-1:/srv/media");
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  EXPECT_EQ(*plain, (StaticExport{"nas-1:/srv/media", {}, false}));
  const Result<StaticExport> with = ParseStaticExport("nas-1:/  nosuid,ro,nfsvers=4.2,nosuid");
  ASSERT_TRUE(with.ok()) << with.error().message();
  EXPECT_EQ(with->source, "nas-1:/");
  EXPECT_THAT(with->options, ElementsAre("nfsvers=4.2", "nosuid"));
  EXPECT_TRUE(with->read_only);
  EXPECT_EQ(ParseStaticExport("[fd00::1]:/srv")->source, "[fd00::1]:/srv");
  EXPECT_EQ(ServerOfExport("[fd00::1]:/srv").server, "fd00::1");
}

TEST(StaticExportTest, WhatIsNoExportIsRefused) {
  for (const char* const text :
       {"", " ", "/dev/sdx", "nas", "nas:", "nas:srv", ":/srv", "nas:/srv/", "nas://srv",
        "nas:/srv/../etc", "nas:/srv/.", "nas:/..", "nas:/srv ro rw", "fd00::1:/srv", "-o x:/srv",
        "--help:/srv", "a,b:/srv", "nas:/s\nrv", "user@nas:/srv"}) {
    const Result<StaticExport> listed = ParseStaticExport(text);
    ASSERT_FALSE(listed.ok()) << text;
    EXPECT_EQ(listed.error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(StaticExportTest, AnOptionIsOnTheListOrRefused) {
  for (const char* const option :
       {"nfsvers=3", "vers=4.1", "hard", "softreval", "nconnect=4", "sec=krb5p", "noatime",
        "nolock", "actimeo=30", "lookupcache=pos", "xprtsec=tls"}) {
    EXPECT_TRUE(IsAllowedExportOption(option)) << option;
  }
  for (const char* const option :
       {"", "bg", "fg", "addr=10.0.0.1", "mounthost=x", "clientaddr=x", "remount", "bind", "ro",
        "context=x", "nfsvers=5", "nconnect=-1", "nconnect=", "x-systemd.automount", "_netdev",
        "user", "hard,bg"}) {
    EXPECT_FALSE(IsAllowedExportOption(option)) << option;
  }
}

// mount.nfs takes the last one, and a set of options has no last one.
TEST(StaticExportTest, OptionsThatContradictEachOtherAreRefused) {
  for (const char* const options :
       {"ro,rw", "rw,ro", "hard,soft", "lock,nolock", "vers=3,nfsvers=4", "nfsvers=4,nfsvers=4.2",
        "tcp,proto=rdma"}) {
    const Result<StaticExport> listed = ParseStaticExport(std::string("nas:/srv ") + options);
    ASSERT_FALSE(listed.ok()) << options;
    EXPECT_THAT(listed.error().message(), HasSubstr("both")) << options;
  }
}

TEST(StaticExportTest, AnExportIsShownByItsPathWhateverItsServerIsCalled) {
  EXPECT_TRUE(IsShownExport("nas:/srv", "nas:/srv"));
  EXPECT_TRUE(IsShownExport("10.0.0.1:/srv", "nas:/srv"));
  EXPECT_FALSE(IsShownExport("nas:/srv/a", "nas:/srv"));
  EXPECT_FALSE(IsShownExport("tmpfs", "nas:/srv"));
}

}  // namespace
}  // namespace volumed
