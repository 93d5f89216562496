#include "pool/pool_directory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

TEST(PoolDirectory, IsFoundBehindItsLinks) {
  FakeKernel kernel;
  kernel.AddDirectory("/mnt/disk-1/pool");
  kernel.AddSymlink("/srv", "/mnt");
  kernel.AddSymlink("/mnt/current", "disk-1");
  kernel.AddSymlink("/mnt/disk-1/up", "../current/./pool");
  kernel.AddSymlink("/mnt/beyond", "../../../mnt/disk-1");
  const std::string wanted = "/mnt/disk-1/pool";
  for (const char* path : {"/mnt/disk-1/pool", "/srv/disk-1/pool", "/srv/current/pool",
                           "/mnt/disk-1/up", "/srv/current/up", "/mnt/beyond/pool"}) {
    const Result<std::string> found = FindPoolDirectory(kernel, path, {});
    ASSERT_TRUE(found.ok()) << path << ": " << found.error().ToString();
    EXPECT_EQ(*found, wanted) << path;
  }
  EXPECT_EQ(FindPoolDirectory(kernel, "/", {}).value(), "/");
}

TEST(PoolDirectory, WhatIsNotThereIsAnError) {
  FakeKernel kernel;
  kernel.AddSymlink("/loop", "/loop");
  kernel.AddSymlink("/nowhere", "/gone");
  EXPECT_EQ(FindPoolDirectory(kernel, "/pool", {}).error().code(), Code::kNotFound);
  EXPECT_EQ(FindPoolDirectory(kernel, "/nowhere/pool", {}).error().code(), Code::kNotFound);
  EXPECT_EQ(FindPoolDirectory(kernel, "/loop", {}).error().sys_errno(), ELOOP);
  EXPECT_EQ(FindPoolDirectory(kernel, "pool", {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(FindPoolDirectory(kernel, "", {}).error().code(), Code::kInvalidArgument);
}

TEST(PoolMarker, SaysWhichPoolItIs) {
  const std::string uuid = "8a3a1fd4-54a7-4b0a-9d0a-2c63a3b0a001";
  EXPECT_EQ(PoolMarkerText(uuid), "{\"version\":1,\"uuid\":\"" + uuid + "\"}\n");
  EXPECT_EQ(ParsePoolMarker(PoolMarkerText(uuid)).value(), uuid);
  // A later program may say more.
  EXPECT_EQ(ParsePoolMarker("{\"version\":1,\"uuid\":\"u\",\"more\":[]}").value(), "u");
}

TEST(PoolMarker, ThatIsDamagedSaysNothing) {
  for (const char* text : {"", "{", "[]", "7", "{}", "{\"version\":1}", "{\"uuid\":\"u\"}",
                           "{\"version\":\"1\",\"uuid\":\"u\"}", "{\"version\":1,\"uuid\":7}",
                           "{\"version\":1,\"uuid\":\"\"}", "{\"version\":1,\"uuid\":\"u\"} x"}) {
    const Result<std::string> uuid = ParsePoolMarker(text);
    ASSERT_FALSE(uuid.ok()) << text;
    EXPECT_EQ(uuid.error().code(), Code::kDataLoss) << text;
  }
  EXPECT_EQ(ParsePoolMarker("{\"version\":2,\"uuid\":\"u\"}").error().code(),
            Code::kFailedPrecondition);
  EXPECT_FALSE(ParsePoolMarker("{\"version\":1,\"uuid\":\"" + std::string(65, 'a') + "\"}").ok());
}

}  // namespace
}  // namespace volumed
