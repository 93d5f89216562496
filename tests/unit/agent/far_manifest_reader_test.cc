// What a link in a manifest directory leads to on another filesystem, as a worker reads it.
#include "agent/far_manifest_reader.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "fakes/fake_kernel.h"
#include "kube/decode.h"
#include "kube/far_manifests.h"

namespace volumed {
namespace {

TEST(FarManifestReaderTest, ChangesAreWatchedOnLocalFilesystemsAlone) {
  const ManualClock clock;
  FakeKernel kernel;
  kernel.AddDirectory("/disk");
  kernel.AddMount("ext4", "/dev/sdb", "/disk");
  kernel.AddFile("/disk/a.yaml", "local");
  kernel.AddDirectory("/share");
  kernel.AddMount("nfs4", "nas:/export", "/share");
  kernel.AddFile("/share/a.yaml", "far");
  const FarContent local = ReadFarContent(kernel, clock, "/disk/a.yaml", kFarManifestDeadline);
  EXPECT_TRUE(local.status.ok());
  EXPECT_EQ(local.bytes, "local");
  EXPECT_TRUE(local.may_watch);
  const FarContent far = ReadFarContent(kernel, clock, "/share/a.yaml", kFarManifestDeadline);
  EXPECT_TRUE(far.status.ok());
  EXPECT_EQ(far.bytes, "far");
  EXPECT_FALSE(far.may_watch);
}

TEST(FarManifestReaderTest, WhatIsNotThereOrTooLargeIsSaid) {
  const ManualClock clock;
  FakeKernel kernel;
  EXPECT_EQ(ReadFarContent(kernel, clock, "/a.yaml", kFarManifestDeadline).status.error().code(),
            Code::kNotFound);
  kernel.AddFile("/a.yaml", std::string(kMaxManifestBytes + 1, 'x'));
  EXPECT_EQ(ReadFarContent(kernel, clock, "/a.yaml", kFarManifestDeadline).status.error().code(),
            Code::kOutOfRange);
  kernel.AddFile("/b.yaml", std::string(kMaxManifestBytes, 'x'));
  EXPECT_EQ(ReadFarContent(kernel, clock, "/b.yaml", kFarManifestDeadline).bytes.size(),
            kMaxManifestBytes);
}

}  // namespace
}  // namespace volumed
