#include "volume/nfs_export.h"

#include <gtest/gtest.h>

#include <string>

namespace volumed {
namespace {

NfsVolumeSource Source(const std::string& server) {
  NfsVolumeSource source;
  source.server = server;
  source.path = "/export/a";
  return source;
}

TEST(NfsExport, WhatTheMountTableSaysIsTheServerOfTheVolume) {
  for (const char* server : {"server.example", "10.0.0.1", "fd00::1", "fe80::1%eth0"}) {
    EXPECT_EQ(ParseNfsExport(NfsExport(Source(server))), Source(server)) << server;
  }
  EXPECT_EQ(NfsExport(Source("fd00::1")), "[fd00::1]:/export/a");
}

// Else a mount would be of another server than the volume that it was made for.
TEST(NfsExport, BracketsAroundWhatIsNoAddressBelongToTheName) {
  for (const char* server : {"[server]", "[[fd00::1]]"}) {
    EXPECT_EQ(ParseNfsExport(NfsExport(Source(server))), Source(server)) << server;
  }
}

TEST(NfsExport, WhatIsNoExportIsNone) {
  for (const char* text : {"", ":/a", "server", "server:a"}) {
    EXPECT_EQ(ParseNfsExport(text), std::nullopt) << text;
  }
}

TEST(NfsExport, WithoutAServerThereIsNoLane) {
  NfsVolumeSource source;
  source.path = "/a";
  EXPECT_EQ(NfsFaultDomain(source), "");
  source.server = "Storage.Example";
  EXPECT_EQ(NfsFaultDomain(source), "nfs:storage.example");
}

}  // namespace
}  // namespace volumed
