// Volumes that are subvolumes and directories of a pool on a real btrfs: their limits, cuts, copies
// and deletion.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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

#include "base/log.h"
#include "base/manual_clock.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/memory_record_store.h"
#include "fakes/must.h"
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

class RealTreesTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_.emplace(Image("disk", 400 * kMebibyte));
    ASSERT_TRUE(disk_->valid());
    ASSERT_NO_FATAL_FAILURE(Mkfs("btrfs", disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "btrfs", 0, nullptr), 0);
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
  static int Fill(const std::string& path, int64_t bytes) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(kMebibyte, 'x');
    for (int64_t done = 0; file.valid() && done < bytes; done += kMebibyte) {
      if (::write(file.get(), block.data(), block.size()) < 0) return errno;
    }
    return file.valid() && ::fsync(file.get()) == 0 ? 0 : errno;
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

TEST_F(RealTreesTest, ASubvolumeHasItsLimitItsCutsAndCopiesOfThem) {
  if (IsSkipped()) return;
  const StringMap parameters = {{"backend", "subvolume"}};
  const PoolVolumeRecord volume = Make(parameters, "one");
  EXPECT_EQ(Fill(Data(volume.id) + "/big", 2 * kVolumeBytes), EDQUOT);
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
  EXPECT_EQ(Fill(Data(copy.id) + "/big", 2 * kVolumeBytes), 0);
  ASSERT_TRUE(volumes_->Discard(cut, {}).ok());
  ExpectDeleted(volume.id);
  EXPECT_EQ(Content(Data(copy.id) + "/f"), "its own");
  ExpectDeleted(copy.id);
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

}  // namespace
}  // namespace volumed
