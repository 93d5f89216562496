#include "pool/pool_parameters.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "pluginmgr/provisionable_volume_plugin.h"

namespace volumed {
namespace {

constexpr int64_t kMebibyte = 1024 * 1024;

PoolParameters Parsed(const StringMap& map) { return ParsePoolParameters(map).value(); }

TEST(PoolParameters, AClassThatSaysNothingHasTheDefaults) {
  EXPECT_EQ(Parsed({}), PoolParameters{});
  EXPECT_EQ(PoolParameters{}.fs_type, "ext4");
}

TEST(PoolParameters, AreReadAsTheyAreWritten) {
  const StringMap map = {
      {"pool", "fast"},        {"backend", "image"},    {"csi.storage.k8s.io/fstype", "xfs"},
      {"allocation", "thick"}, {"overcommit", "false"}, {"snapshots", "copy"}};
  const PoolParameters parameters = Parsed(map);
  EXPECT_EQ(parameters.pool, "fast");
  EXPECT_EQ(parameters.fs_type, "xfs");
  EXPECT_EQ(parameters.allocation, PoolAllocation::kThick);
  EXPECT_EQ(parameters.snapshots, PoolCutWay::kCopy);
  EXPECT_EQ(parameters.ToMap(), map);
  EXPECT_EQ(Parsed(PoolParameters{}.ToMap()), PoolParameters{});
  EXPECT_TRUE(Parsed({{"overcommit", "true"}}).overcommit);
}

TEST(PoolParameters, ADirectoryHasNoFilesystemOfItsOwnAndSaysWhetherItNeedsALimit) {
  const StringMap map = {{"backend", "subvolume"},
                         {"quota", "best-effort"},
                         {"allocation", "thin"},
                         {"overcommit", "false"},
                         {"snapshots", "auto"}};
  const PoolParameters parameters = Parsed(map);
  EXPECT_EQ(parameters.backend, PoolBackendKind::kSubvolume);
  EXPECT_EQ(parameters.fs_type, "");
  EXPECT_EQ(parameters.quota, PoolQuota::kBestEffort);
  EXPECT_EQ(parameters.ToMap(), map);
  EXPECT_EQ(Parsed({{"backend", "directory"}}).quota, PoolQuota::kRequired);
  EXPECT_EQ(Parsed({{"backend", "directory"}, {"csi.storage.k8s.io/fstype", ""}}).fs_type, "");
  EXPECT_TRUE(CheckPoolMode(parameters, false).ok());
  EXPECT_EQ(CheckPoolMode(parameters, true).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(CheckPoolMode(PoolParameters{}, true).ok());
  const std::pair<StringMap, std::string> wrong[] = {
      {{{"backend", "directory"}, {"csi.storage.k8s.io/fstype", "xfs"}}, "fstype"},
      {{{"backend", "directory"}, {"allocation", "thick"}}, "allocation"},
      {{{"backend", "directory"}, {"snapshots", "reflink"}}, "snapshots"},
      {{{"backend", "directory"}, {"consistency", "some"}}, "consistency"},
      {{{"backend", "subvolume"}, {"consistency", "best-effort"}}, "consistency"},
      {{{"backend", "image"}, {"consistency", "best-effort"}}, "consistency"},
      {{{"backend", "directory"}, {"quota", "some"}}, "quota"},
      {{{"quota", "required"}}, "quota"}};
  for (const auto& [refused, word] : wrong) {
    const Result<PoolParameters> parsed = ParsePoolParameters(refused);
    ASSERT_FALSE(parsed.ok()) << word;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message().find(word), std::string::npos) << parsed.error().message();
  }
  PoolSize small;
  small.required_bytes = 4096;
  EXPECT_EQ(DecidePoolSize(small, parameters, false).value(), kMebibyte);
}

TEST(PoolParameters, ADirectorySaysWhetherItsSnapshotsAreOfOneMoment) {
  EXPECT_EQ(Parsed({{"backend", "directory"}}).consistency, PoolConsistency::kAtomic);
  const PoolParameters loose = Parsed({{"backend", "directory"}, {"consistency", "best-effort"}});
  EXPECT_EQ(loose.consistency, PoolConsistency::kBestEffort);
  EXPECT_EQ(Parsed(loose.ToMap()), loose);
  PoolVolumeRecord there;
  there.capacity_bytes = kMebibyte;
  there.parameters = loose.ToMap();
  const PoolParameters strict = Parsed({{"backend", "directory"}});
  EXPECT_NE(DifferenceToWish(there, strict, {}, false).find("consistency"), std::string::npos);
  EXPECT_EQ(Parsed({{"backend", "subvolume"}, {"consistency", "atomic"}}).consistency,
            PoolConsistency::kAtomic);
}

TEST(PoolParameters, OfALogicalVolumeIsRefusedWhatAThinPoolDoesNotDo) {
  const PoolParameters xfs =
      Parsed({{"backend", "lvm"}, {"csi.storage.k8s.io/fstype", "xfs"}, {"overcommit", "true"}});
  EXPECT_EQ(xfs.backend, PoolBackendKind::kLvm);
  EXPECT_EQ(Parsed(xfs.ToMap()), xfs);
  EXPECT_TRUE(CheckPoolMode(xfs, true).ok());
  const std::pair<StringMap, std::string> wrong[] = {
      {{{"quota", "required"}}, "its size is its limit"},
      {{{"allocation", "thick"}}, "allocates nothing ahead"},
      {{{"snapshots", "reflink"}}, "a thin snapshot shares"},
      {{{"csi.storage.k8s.io/fstype", "btrfs"}}, "a UUID of its own"}};
  for (auto [refused, why] : wrong) {
    refused["backend"] = "lvm";
    const Result<PoolParameters> parsed = ParsePoolParameters(refused);
    ASSERT_FALSE(parsed.ok()) << why;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message().find(why), std::string::npos) << parsed.error().message();
  }
}

TEST(PoolParameters, WhatSidecarsAddIsPassedOver) {
  EXPECT_EQ(
      Parsed({{"csi.storage.k8s.io/pvc/name", "data"}, {"csi.storage.k8s.io/pv/name", "pvc-1"}}),
      PoolParameters{});
}

TEST(PoolParameters, WhatIsWrongIsNamed) {
  const std::vector<std::pair<StringMap, std::string>> wrong = {
      {{{"colour", "red"}}, "colour"},
      {{{"Pool", "fast"}}, "Pool"},
      {{{"pool", ""}}, "pool"},
      {{{"pool", "a\nb"}}, "pool"},
      {{{"backend", "tape"}}, "tape"},
      {{{"allocation", "fat"}}, "fat"},
      {{{"overcommit", "yes"}}, "yes"},
      {{{"snapshots", "sometimes"}}, "sometimes"},
      {{{"csi.storage.k8s.io/fstype", "ntfs"}}, "ntfs"},
      {{{"allocation", "thick"}, {"overcommit", "true"}}, "overcommit"},
  };
  for (const auto& [map, word] : wrong) {
    const Result<PoolParameters> parsed = ParsePoolParameters(map);
    ASSERT_FALSE(parsed.ok()) << word;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message().find(word), std::string::npos) << parsed.error().message();
  }
}

TEST(PoolSize, IsWhatIsRequiredRoundedUp) {
  const PoolParameters ext4;
  PoolParameters xfs;
  xfs.fs_type = "xfs";
  PoolParameters btrfs;
  btrfs.fs_type = "btrfs";
  struct Case {
    PoolSize wanted;
    const PoolParameters& parameters;
    bool is_block;
    int64_t size;
  };
  const std::vector<Case> cases = {
      {{0, 0}, ext4, false, 1024 * kMebibyte},
      {{0, 100 * kMebibyte}, ext4, false, 100 * kMebibyte},
      {{0, 100 * kMebibyte + 1}, ext4, false, 100 * kMebibyte},
      {{100 * kMebibyte, 0}, ext4, false, 100 * kMebibyte},
      {{100 * kMebibyte + 1, 0}, ext4, false, 100 * kMebibyte + 4096},
      {{100 * kMebibyte + 1, 100 * kMebibyte + 4096}, ext4, false, 100 * kMebibyte + 4096},
      {{1, 0}, ext4, false, 16 * kMebibyte},
      {{1, 0}, xfs, false, 300 * kMebibyte},
      {{1, 0}, btrfs, false, 120 * kMebibyte},
      {{1, 0}, xfs, true, 4096},
      {{1, 300 * kMebibyte}, xfs, false, 300 * kMebibyte},
  };
  for (const Case& one : cases) {
    const Result<int64_t> size = DecidePoolSize(one.wanted, one.parameters, one.is_block);
    ASSERT_TRUE(size.ok()) << size.error().ToString();
    EXPECT_EQ(*size, one.size) << one.wanted.required_bytes << " " << one.wanted.limit_bytes;
  }
}

TEST(PoolSize, WhatCannotBeIsRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  PoolParameters xfs;
  xfs.fs_type = "xfs";
  struct Case {
    PoolSize wanted;
    bool is_block;
    Code code;
  };
  const std::vector<Case> cases = {
      {{-1, 0}, false, Code::kInvalidArgument},
      {{0, -1}, false, Code::kInvalidArgument},
      {{2 * kMebibyte, kMebibyte}, true, Code::kInvalidArgument},
      {{kMost, 0}, true, Code::kOutOfRange},
      {{1, 299 * kMebibyte}, false, Code::kOutOfRange},
      {{0, 299 * kMebibyte}, false, Code::kOutOfRange},
      {{1, 4095}, true, Code::kOutOfRange},
      {{4097, 8191}, true, Code::kOutOfRange},
  };
  for (const Case& one : cases) {
    const Result<int64_t> size = DecidePoolSize(one.wanted, xfs, one.is_block);
    ASSERT_FALSE(size.ok()) << one.wanted.required_bytes << " " << one.wanted.limit_bytes;
    EXPECT_EQ(size.error().code(), one.code) << size.error().ToString();
  }
}

TEST(PoolSize, IsRoundedToBlocks) {
  EXPECT_EQ(RoundPoolSize(1).value(), 4096);
  EXPECT_EQ(RoundPoolSize(4096).value(), 4096);
  EXPECT_EQ(RoundPoolSize(4097).value(), 8192);
  EXPECT_FALSE(RoundPoolSize(0).ok());
  EXPECT_FALSE(RoundPoolSize(-4096).ok());
  EXPECT_FALSE(RoundPoolSize(std::numeric_limits<int64_t>::max()).ok());
}

// A restore with a size below that of the snapshot made a larger volume without a word.
TEST(PoolSizes, ARestoreIntoLessThanTheSnapshotIsRefused) {
  PoolCutRecord cut;
  cut.id = "cut-1";
  cut.size_bytes = int64_t{400} << 20;
  const Status smaller = CheckHoldsCut(cut, int64_t{10} << 20);
  ASSERT_FALSE(smaller.ok());
  EXPECT_EQ(smaller.error().code(), Code::kOutOfRange);
  EXPECT_EQ(smaller.error().message(),
            "snapshot cut-1 is of a volume of 400Mi (419430400 bytes), and the new one is to have "
            "10Mi (10485760 bytes)");
  EXPECT_TRUE(CheckHoldsCut(cut, cut.size_bytes).ok());
}

// The error of a slip in a parameter named none that there are, and an administrator.
TEST(PoolParametersOfAClass, AWrongOneIsTheClassOwnersAndTheKnownOnesAreListed) {
  const auto slip = ParsePoolParameters({{"fstyp", "xfs"}});
  ASSERT_FALSE(slip.ok());
  EXPECT_EQ(slip.error().message(),
            "parameter \"fstyp\" is not known: it is none of pool, backend, "
            "csi.storage.k8s.io/fstype, allocation, overcommit, snapshots, quota, consistency");
  for (const StringMap& wrong : {StringMap{{"fstyp", "xfs"}}, StringMap{{"backend", "tape"}},
                                 StringMap{{"backend", "directory"}, {"allocation", "thick"}},
                                 StringMap{{"allocation", "thick"}, {"overcommit", "true"}}}) {
    const auto refused = ParsePoolParameters(wrong);
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(refused.error().IsAbout(kAboutClassParameters)) << refused.error().message();
  }
  const auto size = DecidePoolSize({int64_t{1} << 30, 0}, PoolParameters{}, false);
  ASSERT_TRUE(size.ok());
  const auto small = DecidePoolSize({0, 4096}, PoolParameters{}, false);
  ASSERT_FALSE(small.ok());
  EXPECT_TRUE(small.error().IsAbout(kAboutClaim));
  EXPECT_NE(ParsePoolTuning({{"directIo", "true"}}).error().message().find("directIO, quotaBytes"),
            std::string::npos);
}

TEST(PoolTuning, IsWhatIsSaidAndNothingElse) {
  EXPECT_EQ(ParsePoolTuning({}).value(), PoolTuning{});
  EXPECT_EQ(ParsePoolTuning({{"directIO", "true"}}).value().direct_io, true);
  EXPECT_EQ(ParsePoolTuning({{"directIO", "false"}}).value().direct_io, false);
  const std::pair<StringMap, std::string> refused[] = {
      {{{"directIO", "yes"}}, "which is not true or false"},
      {{{"directIO", "true"}, {"k", "v"}}, "is not known"},
      {{{"readAheadKiB", "130"}}, "a multiple of 4"},
      {{{"readAheadKiB", "-4"}}, "a multiple of 4"},
      {{{"readAheadKiB", "1048580"}}, "from 0 to 1048576"},
      {{{"quotaBytes", "4Ki"}}, "a number of bytes"},
      {{{"quotaBytes", "0"}}, "a number of bytes"},
      {{{"readIOPS", "1"}}, "from 2 to 4294967294, or 0"},
      {{{"writeIOPS", "4294967295"}}, "from 2 to 4294967294, or 0"},
      {{{"readBps", "1"}}, "above 1, or 0"},
      {{{"writeBps", "1Mi"}}, "above 1, or 0"}};
  for (const auto& [parameters, why] : refused) {
    const Result<PoolTuning> tuning = ParsePoolTuning(parameters);
    ASSERT_FALSE(tuning.ok()) << why;
    EXPECT_EQ(tuning.error().code(), Code::kInvalidArgument);
    EXPECT_NE(tuning.error().message().find(why), std::string::npos) << tuning.error().ToString();
  }
}

TEST(PoolTuning, HasAThrottleOfWhichWhatIsNotSaidIsNoLimit) {
  const PoolTuning tuning = ParsePoolTuning({{"readAheadKiB", "512"},
                                             {"readIOPS", "100"},
                                             {"writeIOPS", "0"},
                                             {"writeBps", "1048576"}})
                                .value();
  EXPECT_EQ(tuning.read_ahead_kib, 512);
  EXPECT_EQ(tuning.read_bps, std::nullopt);
  EXPECT_TRUE(HasThrottle(tuning));
  EXPECT_EQ(LimitsOf(tuning), (IoLimits{.read_iops = 100, .write_bps = 1048576}));
  EXPECT_TRUE(NamesThrottle({{"writeIOPS", "0"}})) << "it takes an earlier limit away";
  EXPECT_FALSE(NamesThrottle({{"readAheadKiB", "512"}}));
  EXPECT_FALSE(NamesThrottle({{"readBps", "1"}})) << "it is none";
}

TEST(PoolTuning, ADirectoryHasAQuotaAndNoDeviceAndAnImageTheReverse) {
  const PoolTuning quota = ParsePoolTuning({{"quotaBytes", "4096"}}).value();
  EXPECT_EQ(quota.quota_bytes, 4096);
  const PoolTuning direct = ParsePoolTuning({{"directIO", "true"}}).value();
  EXPECT_TRUE(CheckTuning(direct, PoolBackendKind::kImage).ok());
  for (const PoolBackendKind tree : {PoolBackendKind::kDirectory, PoolBackendKind::kSubvolume}) {
    EXPECT_TRUE(CheckTuning(quota, tree).ok());
    EXPECT_EQ(CheckTuning(direct, tree).error().code(), Code::kInvalidArgument);
    for (const char* of_device : {"readAheadKiB", "readIOPS", "writeIOPS", "readBps", "writeBps"}) {
      const PoolTuning tuning = ParsePoolTuning({{of_device, "4096"}}).value();
      EXPECT_TRUE(CheckTuning(tuning, PoolBackendKind::kImage).ok()) << of_device;
      ASSERT_FALSE(CheckTuning(tuning, tree).ok()) << of_device;
      EXPECT_EQ(CheckTuning(tuning, tree).error().code(), Code::kInvalidArgument);
    }
  }
  const Status refused = CheckTuning(quota, PoolBackendKind::kImage);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("its quota"), std::string::npos);
}

TEST(PoolTuning, ALogicalVolumeHasAThrottleAndNoLoopDevice) {
  const PoolTuning throttle = ParsePoolTuning({{"readBps", "4096"}}).value();
  EXPECT_TRUE(CheckTuning(throttle, PoolBackendKind::kLvm).ok());
  for (const char* of_loop : {"directIO", "readAheadKiB", "quotaBytes"}) {
    const std::string value = std::string(of_loop) == "directIO" ? "true" : "4096";
    const Status refused =
        CheckTuning(ParsePoolTuning({{of_loop, value}}).value(), PoolBackendKind::kLvm);
    ASSERT_FALSE(refused.ok()) << of_loop;
    EXPECT_NE(refused.error().message().find("backend lvm"), std::string::npos);
  }
}

TEST(PoolTuning, IsComparedKeyByKey) {
  PoolVolumeRecord there;
  EXPECT_EQ(TuningDifference(there, {}), "");
  EXPECT_NE(TuningDifference(there, {{"directIO", "true"}}), "");
  there.mutable_parameters = {{"directIO", "true"}};
  EXPECT_EQ(TuningDifference(there, {{"directIO", "true"}}), "");
  EXPECT_NE(TuningDifference(there, {{"directIO", "false"}}), "");
  EXPECT_EQ(TuningDifference(there, {}), "");
}

TEST(PoolWish, IsComparedWithTheVolumeThatHasItsName) {
  PoolParameters made;
  made.pool = "fast";
  PoolVolumeRecord there;
  there.capacity_bytes = 100 * kMebibyte;
  there.parameters = made.ToMap();
  const PoolParameters wish;
  EXPECT_EQ(DifferenceToWish(there, wish, {}, false), "");
  EXPECT_EQ(DifferenceToWish(there, made, {}, false), "");
  EXPECT_EQ(DifferenceToWish(there, wish, {100 * kMebibyte, 100 * kMebibyte}, false), "");
  EXPECT_NE(DifferenceToWish(there, wish, {}, true), "");
  EXPECT_NE(DifferenceToWish(there, wish, {100 * kMebibyte + 1, 0}, false), "");
  EXPECT_NE(DifferenceToWish(there, wish, {0, 100 * kMebibyte - 1}, false), "");
  PoolParameters other = made;
  other.pool = "slow";
  EXPECT_NE(DifferenceToWish(there, other, {}, false), "");
  other = made;
  other.fs_type = "xfs";
  EXPECT_NE(DifferenceToWish(there, other, {}, false), "");
  other = made;
  other.overcommit = true;
  EXPECT_NE(DifferenceToWish(there, other, {}, false), "");
}

// A program that did not know the key made it, so that the repeated call found another volume.
TEST(PoolWish, AVolumeOfAnEarlierProgramHasTheDefaultsOfLaterKeys) {
  PoolVolumeRecord there;
  there.capacity_bytes = 100 * kMebibyte;
  there.parameters = PoolParameters{}.ToMap();
  there.parameters.erase("snapshots");
  PoolParameters wish;
  EXPECT_EQ(DifferenceToWish(there, wish, {}, false), "");
  wish.snapshots = PoolCutWay::kCopy;
  EXPECT_NE(DifferenceToWish(there, wish, {}, false), "");
}

TEST(PoolSize, IsAtLeastThatOfTheContent) {
  const PoolParameters ext4;
  EXPECT_EQ(DecidePoolSize({}, ext4, false, 2048 * kMebibyte).value(), 2048 * kMebibyte);
  EXPECT_EQ(DecidePoolSize({64 * kMebibyte, 0}, ext4, false, 128 * kMebibyte).value(),
            128 * kMebibyte);
  const Result<int64_t> limited = DecidePoolSize({0, 64 * kMebibyte}, ext4, false, 128 * kMebibyte);
  ASSERT_FALSE(limited.ok());
  EXPECT_EQ(limited.error().code(), Code::kOutOfRange);
  EXPECT_NE(limited.error().message().find("for its content"), std::string::npos);
}

}  // namespace
}  // namespace volumed
