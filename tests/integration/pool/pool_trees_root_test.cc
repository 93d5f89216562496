// Volumes that are subvolumes and directories of a pool on a real btrfs, and directories of one on
// a real ext4 and xfs with project quota: their limits, cuts, copies and deletion.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/log.h"
#include "base/manual_clock.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/memory_record_store.h"
#include "fakes/must.h"
#include "integration/bounded_writer.h"
#include "integration/mounter/block_mount_fixture.h"
#include "pool/pool_volumes.h"

namespace volumed {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kVolumeBytes = 8 * kMebibyte;

class AlwaysThere final : public ContentHolder {
 public:
  class Held final : public HeldContent {
   public:
    explicit Held(std::string id) : id_(std::move(id)) {}
    const std::string& cut_id() const override { return id_; }

   private:
    const std::string id_;
  };
  Result<std::unique_ptr<HeldContent>> Hold(const VolumeContent& content, const std::string&,
                                            const CallOptions&) override {
    return std::unique_ptr<HeldContent>(std::make_unique<Held>(content.handle));
  }
};

class RealPoolOfTreesTest : public BlockMountTest {
 protected:
  void MakeDisk() {
    disk_.emplace(Image("disk", 400 * kMebibyte));
    ASSERT_TRUE(disk_->valid());
  }
  // On the filesystem that is mounted at "mnt".
  void StartPool() {
    ASSERT_EQ(::mkdir(Path("mnt/pool").c_str(), 0700), 0);
    std::vector<std::unique_ptr<Pool>> pools;
    pools.push_back(std::make_unique<Pool>(
        PoolSettings{.name = "fast", .path = Path("mnt/pool"), .limits = {}, .holder = "this test"},
        *local_, store_, clock_, log_));
    volumes_ = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{store_, *local_, clock_, log_, irreversible_}, std::move(pools));
    volumes_->SetContentHolder(&contents_);
    const Status opened = volumes_->Recover([](const std::string&) { return false; }, {});
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  }
  // The pool's lock is a file of what is unmounted next.
  void TearDown() override {
    volumes_.reset();
    BlockMountTest::TearDown();
  }

  PoolVolumeRecord Make(const StringMap& parameters, const std::string& name,
                        const std::string& cut = "") {
    PoolVolumeWish wish;
    wish.name = name;
    wish.size.required_bytes = kVolumeBytes;
    wish.parameters = parameters;
    if (!cut.empty()) {
      wish.content = VolumeContent{};
      wish.content->is_snapshot = true;
      wish.content->handle = cut;
    }
    return Must(volumes_->Create(wish, {}));
  }
  std::string Cut(const std::string& volume) {
    const std::string id = volumes_->NewCutId(volume);
    Must(volumes_->Cut({{.volume = volume, .cut = id, .mounted = std::nullopt}}, {}, {}));
    const Status copied = volumes_->CopyCut(id, 0, {});
    EXPECT_TRUE(copied.ok()) << (copied.ok() ? "" : copied.error().ToString());
    return id;
  }
  std::string Data(const std::string& id) const {
    const std::string kind = id.starts_with("s-") ? "cuts/" : "volumes/";
    return Path("mnt/pool/" + kind + id + "/data");
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void ExpectDeleted(const std::string& id) {
    const Status deleted = volumes_->Delete(id, /*only_unused=*/false, {});
    EXPECT_TRUE(deleted.ok()) << (deleted.ok() ? "" : deleted.error().ToString());
    EXPECT_FALSE(std::filesystem::exists(Data(id)));
  }

  ManualClock clock_;
  Logger log_{{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  FakeIrreversibleSteps irreversible_;
  AlwaysThere contents_;
  std::optional<LoopDevice> disk_;
  std::unique_ptr<PoolVolumes> volumes_;
};

class RealTreesTest : public RealPoolOfTreesTest {
 protected:
  void SetUp() override {
    RealPoolOfTreesTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeDisk());
    ASSERT_NO_FATAL_FAILURE(Mkfs("btrfs", disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "btrfs", 0, nullptr), 0);
    ASSERT_NO_FATAL_FAILURE(StartPool());
  }
};

TEST_F(RealTreesTest, ASubvolumeHasItsLimitItsCutsAndCopiesOfThem) {
  if (IsSkipped()) return;
  const StringMap parameters = {{"backend", "subvolume"}};
  const PoolVolumeRecord volume = Make(parameters, "one");
  EXPECT_EQ(FillBounded(Data(volume.id) + "/big", 2 * kVolumeBytes), EDQUOT);
  ASSERT_TRUE(std::filesystem::remove(Data(volume.id) + "/big"));
  std::ofstream(Data(volume.id) + "/f") << "then";
  const std::string cut = Cut(volume.id);
  std::ofstream(Data(volume.id) + "/f") << "later";
  const PoolVolumeRecord copy = Make(parameters, "copy", cut);
  EXPECT_EQ(Content(Data(copy.id) + "/f"), "then");
  EXPECT_EQ(copy.family, volume.family);
  std::ofstream(Data(copy.id) + "/f") << "its own";
  EXPECT_EQ(Content(Data(cut) + "/f"), "then");
  EXPECT_EQ(Content(Data(volume.id) + "/f"), "later");
  EXPECT_EQ(Must(volumes_->Expand(copy.id, 4 * kVolumeBytes, {})), 4 * kVolumeBytes);
  EXPECT_EQ(FillBounded(Data(copy.id) + "/big", 2 * kVolumeBytes), 0);
  ASSERT_TRUE(volumes_->Discard(cut, {}).ok());
  ExpectDeleted(volume.id);
  EXPECT_EQ(Content(Data(copy.id) + "/f"), "its own");
  ExpectDeleted(copy.id);
}

// The limit was set by the subvolume itself, which has no room for that then.
TEST_F(RealTreesTest, ALimitBelowWhatASubvolumeHoldsCanBeRaisedAgainAndItsCopiesAreMade) {
  if (IsSkipped()) return;
  const PoolVolumeRecord volume = Make({{"backend", "subvolume"}}, "one");
  ASSERT_EQ(FillBounded(Data(volume.id) + "/big", kVolumeBytes / 2), 0);
  const auto limit_to = [&](int64_t bytes) {
    return volumes_->Modify(volume.id, {{"quotaBytes", std::to_string(bytes)}}, {});
  };
  const Status lowered = limit_to(kVolumeBytes / 8);
  ASSERT_TRUE(lowered.ok()) << lowered.error().ToString();
  const std::string cut = Cut(volume.id);
  const PoolVolumeRecord copy = Make({{"backend", "subvolume"}}, "copy", cut);
  EXPECT_TRUE(std::filesystem::exists(Data(copy.id) + "/big"));
  const Status raised = limit_to(kVolumeBytes);
  EXPECT_TRUE(raised.ok()) << raised.error().ToString();
  EXPECT_EQ(FillBounded(Data(volume.id) + "/more", kVolumeBytes / 8), 0);
}

// As "btrfs quota disable" does.
TEST_F(RealTreesTest, AccountsThatWereSwitchedOffLeftNoLimit) {
  if (IsSkipped()) return;
  const PoolVolumeRecord volume = Make({{"backend", "subvolume"}}, "one");
  const Descriptor pool(::open(Path("mnt/pool").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  btrfs_ioctl_quota_ctl_args off = {};
  off.cmd = BTRFS_QUOTA_CTL_DISABLE;
  ASSERT_EQ(::ioctl(pool.get(), BTRFS_IOC_QUOTA_CTL, &off), 0);
  Make({{"backend", "subvolume"}}, "two");  // switches them on again
  Must(volumes_->Open(volume.id, false, {}));
  EXPECT_EQ(FillBounded(Data(volume.id) + "/f", 2 * kVolumeBytes), EDQUOT);
}

TEST_F(RealTreesTest, ADirectoryIsCopiedWithLinksModesAndOwners) {
  if (IsSkipped()) return;
  const StringMap parameters = {{"backend", "directory"}, {"quota", "best-effort"}};
  const PoolVolumeRecord volume = Make(parameters, "one");
  const std::string data = Data(volume.id);
  ASSERT_EQ(::mkdir((data + "/d").c_str(), 02750), 0);
  ASSERT_EQ(::chown((data + "/d").c_str(), 1000, 1001), 0);
  std::ofstream(data + "/d/f") << "then";
  ASSERT_EQ(::link((data + "/d/f").c_str(), (data + "/hard").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/hostname", (data + "/link").c_str()), 0);
  const PoolVolumeRecord copy = Make(parameters, "copy", Cut(volume.id));
  const std::string made = Data(copy.id);
  EXPECT_EQ(Content(made + "/d/f"), "then");
  EXPECT_EQ(std::filesystem::hard_link_count(made + "/hard"), 2u);
  EXPECT_EQ(std::filesystem::read_symlink(made + "/link"), "/etc/hostname");
  struct stat info = {};
  ASSERT_EQ(::stat((made + "/d").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1000u);
  EXPECT_EQ(info.st_gid, 1001u);
  ExpectDeleted(volume.id);
  ExpectDeleted(copy.id);
}

// On a filesystem that shares no blocks, and counts no projects as it is mounted.
class RealUncountedTreesTest : public RealPoolOfTreesTest {
 protected:
  void SetUp() override {
    RealPoolOfTreesTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeDisk());
    ASSERT_NO_FATAL_FAILURE(Mkfs("ext4", disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "ext4", 0, nullptr), 0);
    ASSERT_NO_FATAL_FAILURE(StartPool());
  }
  PoolAccount Account() { return Must(volumes_->Capacity({}, {})); }
};

// Here all that the copy meets is written before it begins.
TEST_F(RealUncountedTreesTest, APodThatRefilledItsDirectoryMadeTheCutAsLargeAsItLiked) {
  if (IsSkipped()) return;
  const StringMap parameters = {
      {"backend", "directory"}, {"quota", "best-effort"}, {"consistency", "best-effort"}};
  const PoolVolumeRecord volume = Make(parameters, "one");
  const PoolAccount before = Account();
  const std::string id = volumes_->NewCutId(volume.id);
  Must(volumes_->Cut({{.volume = volume.id, .cut = id, .mounted = std::nullopt}}, {}, {}));
  const int64_t promise = Must(volumes_->FindCut(id)).allocated_bytes;
  EXPECT_EQ(Account().promised_bytes, before.promised_bytes + promise);
  for (int at = 0; at < 8; ++at) {
    const std::string directory = Data(volume.id) + "/d" + std::to_string(at);
    ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
    ASSERT_EQ(FillBounded(directory + "/f", kVolumeBytes / 2), 0);
  }
  const Status copied = volumes_->CopyCut(id, 0, {});
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code(), Code::kResourceExhausted) << copied.error().ToString();
  const std::string cut = Data(id);
  EXPECT_LE(Must(local_->Call(Usage{{scratch(), cut.substr(scratch().size() + 1)}}, {})).used_bytes,
            promise);
  ASSERT_TRUE(volumes_->Discard(id, {}).ok());
  EXPECT_FALSE(std::filesystem::exists(cut));
  EXPECT_EQ(Account().promised_bytes, before.promised_bytes);
  for (int at = 1; at < 8; ++at) {
    std::filesystem::remove_all(Data(volume.id) + "/d" + std::to_string(at));
  }
  EXPECT_TRUE(IsWhole(Must(volumes_->FindCut(Cut(volume.id)))));
}

// On both filesystems that count projects, if this kernel does.
class RealProjectsTest : public RealPoolOfTreesTest,
                         public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    RealPoolOfTreesTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeDisk());
    const std::string type = GetParam();
    const std::string features = type == "ext4" ? "-O quota,project -E quotatype=prjquota " : "";
    ASSERT_EQ(Shell("mkfs." + type + " -q " + features + disk_->path()), 0);
    const int mounted =
        ::mount(disk_->path().c_str(), Path("mnt").c_str(), GetParam(), 0, "prjquota");
    if (mounted != 0 || !local_->Call(ReadTreeQuota{{scratch(), "mnt"}}, {}).ok()) {
      GTEST_SKIP() << "skipped: needs project quota";
    }
    ASSERT_NO_FATAL_FAILURE(StartPool());
  }
  static int Beyond() { return std::string(GetParam()) == "xfs" ? ENOSPC : EDQUOT; }
  TreeQuota QuotaOf(const std::string& id) {
    const std::string data = Data(id);
    return Must(local_->Call(ReadTreeQuota{{scratch(), data.substr(scratch().size() + 1)}}, {}));
  }
  // The projects that have files, or a limit, but for the one of what is in none.
  std::string Projects() const {
    const std::string file = Path("projects");
    EXPECT_EQ(std::system(("xfs_quota -x -f -c 'report -p -n -N -b' " + Path("mnt") +
                           " | awk '$1 ~ /^#[1-9]/ && ($2 || $3 || $4)' >" + file)
                              .c_str()),
              0);
    return Content(file);
  }
};

TEST_P(RealProjectsTest, ADirectoryHasItsLimitItsCutsAndCopiesAndItsProjectIsFreeInTheEnd) {
  if (IsSkipped()) return;
  const StringMap parameters = {{"backend", "directory"}};
  const PoolVolumeRecord volume = Make(parameters, "one");
  EXPECT_EQ(QuotaOf(volume.id).limit_bytes, kVolumeBytes);
  EXPECT_EQ(FillBounded(Data(volume.id) + "/big", 2 * kVolumeBytes), Beyond());
  ASSERT_TRUE(std::filesystem::remove(Data(volume.id) + "/big"));
  std::ofstream(Data(volume.id) + "/f") << "then";
  const std::string cut = Cut(volume.id);
  std::ofstream(Data(volume.id) + "/f") << "later";
  const PoolVolumeRecord copy = Make(parameters, "copy", cut);
  EXPECT_EQ(Content(Data(copy.id) + "/f"), "then");
  EXPECT_EQ(Content(Data(volume.id) + "/f"), "later");
  EXPECT_NE(QuotaOf(copy.id).id, QuotaOf(volume.id).id);
  EXPECT_EQ(QuotaOf(cut).kind, TreeQuotaKind::kNone);
  EXPECT_EQ(Must(volumes_->Expand(copy.id, 4 * kVolumeBytes, {})), 4 * kVolumeBytes);
  EXPECT_EQ(FillBounded(Data(copy.id) + "/big", 2 * kVolumeBytes), 0);
  EXPECT_GT(QuotaOf(copy.id).used_bytes, kVolumeBytes);
  ASSERT_TRUE(volumes_->Modify(copy.id, {{"quotaBytes", std::to_string(kVolumeBytes)}}, {}).ok());
  EXPECT_EQ(FillBounded(Data(copy.id) + "/more", kMebibyte), Beyond());
  EXPECT_NE(Projects(), "");
  ASSERT_TRUE(volumes_->Discard(cut, {}).ok());
  ExpectDeleted(volume.id);
  ExpectDeleted(copy.id);
  ::sync();
  EXPECT_EQ(Projects(), "");
}

// A user of the pod can do that with the directory that is his.
TEST_P(RealProjectsTest, ADirectoryOfTheProjectOfAnotherVolumeChangedThatOnesLimit) {
  if (IsSkipped()) return;
  const StringMap parameters = {{"backend", "directory"}};
  const PoolVolumeRecord victim = Make(parameters, "victim");
  const PoolVolumeRecord given = Make(parameters, "given");
  EXPECT_EQ(given.project_id, QuotaOf(given.id).id);
  std::ofstream(Data(given.id) + "/f") << "its own";
  const auto give = [&](uint32_t project) {
    const Descriptor directory(::open(Data(given.id).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fsxattr attributes = {};
    ASSERT_EQ(::ioctl(directory.get(), FS_IOC_FSGETXATTR, &attributes), 0);
    attributes.fsx_projid = project;
    ASSERT_EQ(::ioctl(directory.get(), FS_IOC_FSSETXATTR, &attributes), 0);
  };
  ASSERT_NO_FATAL_FAILURE(give(victim.project_id));
  EXPECT_FALSE(volumes_->Open(given.id, false, {}).ok());
  EXPECT_FALSE(volumes_->Modify(given.id, {{"quotaBytes", "4096"}}, {}).ok());
  EXPECT_EQ(QuotaOf(victim.id).limit_bytes, kVolumeBytes);
  ASSERT_NO_FATAL_FAILURE(give(given.project_id));
  Must(volumes_->Open(given.id, false, {}));
  ASSERT_NO_FATAL_FAILURE(give(victim.project_id));
  ExpectDeleted(given.id);
  EXPECT_EQ(QuotaOf(victim.id).limit_bytes, kVolumeBytes);
  ExpectDeleted(victim.id);
  ::sync();
  EXPECT_EQ(Projects(), "");
}

// Whoever has the pool's directory bounded keeps that.
TEST_P(RealProjectsTest, APoolThatIsOfAProjectItselfHasNoBoundedDirectories) {
  if (IsSkipped()) return;
  SetTreeQuota of_pool{{scratch(), "mnt/pool/volumes"}};
  ASSERT_TRUE(std::filesystem::is_empty(Path("mnt/pool/volumes")));
  of_pool.project_id = 7;
  of_pool.bytes = 64 * kMebibyte;
  Must(local_->Call(of_pool, {}));
  PoolVolumeWish wish;
  wish.name = "one";
  wish.size.required_bytes = kVolumeBytes;
  wish.parameters = {{"backend", "directory"}};
  const auto made = volumes_->Create(wish, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(made.error().message(), ::testing::HasSubstr("it is of project 7"));
  EXPECT_TRUE(std::filesystem::is_empty(Path("mnt/pool/volumes")));
  const TreeQuota kept = Must(local_->Call(ReadTreeQuota{of_pool.path}, {}));
  EXPECT_EQ(kept.limit_bytes, 64 * kMebibyte);
}

INSTANTIATE_TEST_SUITE_P(Types, RealProjectsTest, ::testing::Values("ext4", "xfs"));

}  // namespace
}  // namespace volumed
