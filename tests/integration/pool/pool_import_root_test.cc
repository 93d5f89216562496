// Image files with real filesystems that become volumes of a pool on a real xfs: the first look,
// and the import, leave each byte of the file as it was, and the volume has what was in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
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
#include "pool/pool_import.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kImportDiskBytes = int64_t{2} << 30;

class RealImportTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_.emplace(Image("disk", kImportDiskBytes));
    ASSERT_TRUE(disk_->valid());
    ASSERT_NO_FATAL_FAILURE(Mkfs("xfs", disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "xfs", 0, nullptr), 0);
    ASSERT_EQ(::mkdir(Path("mnt/pool").c_str(), 0700), 0);
    ASSERT_EQ(::mkdir(Path("mnt/old").c_str(), 0700), 0);
    ASSERT_EQ(::mkdir(Path("agent").c_str(), 0700), 0);
    std::vector<std::unique_ptr<Pool>> pools;
    pools.push_back(std::make_unique<Pool>(
        PoolSettings{.name = "fast", .path = Path("mnt/pool"), .limits = {}, .holder = "this test"},
        *local_, store_, clock_, log_));
    volumes_ = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{store_, *local_, clock_, log_, irreversible_}, std::move(pools));
    const Status opened = volumes_->Recover([](const std::string&) { return false; }, {});
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  }
  // The pool's lock is a file of what is unmounted next.
  void TearDown() override {
    volumes_.reset();
    BlockMountTest::TearDown();
  }

  // An image with a filesystem that has one file.
  std::string OldImage(const std::string& fs_type) {
    const std::string image = Image("mnt/old/" + fs_type + ".img");
    Mkfs(fs_type, image);
    const LoopDevice device(image);
    EXPECT_EQ(::mount(device.path().c_str(), Path("mnt2").c_str(), fs_type.c_str(), 0, nullptr), 0);
    std::ofstream(Path("mnt2/f")) << "of old";
    Unmount("mnt2");
    return std::filesystem::canonical(image).string();
  }
  // Of all of its bytes, with what stat(2) says of its last change.
  static std::string ChecksumOf(const std::string& file) {
    std::string sum;
    FILE* const tool = ::popen(("sha256sum " + file).c_str(), "re");
    if (tool == nullptr) return "";
    std::array<char, 256> line{};
    while (std::fgets(line.data(), line.size(), tool) != nullptr) sum += line.data();
    EXPECT_EQ(::pclose(tool), 0);
    struct stat info = {};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    return sum + std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) +
           " " + std::to_string(info.st_size);
  }
  ImportParts Parts() {
    return {.volumes = *volumes_,
            .kernel = *local_,
            .driver = driver_,
            .node = "n1",
            .agent_root = Path("agent")};
  }
  Result<ImportPlan> Look(const std::string& source) {
    ImportRequest request;
    request.source = source;
    return PlanImport(Parts(), request, {});
  }
  Result<ImportPlan> LookAtDirectory(const std::string& source) {
    return PlanImport(
        Parts(), {.source = source, .pool = "fast", .pv_name = "", .size_bytes = int64_t{64} << 20},
        {});
  }
  std::vector<LoopEntry> LoopsOf(const std::string& file) {
    return Must(local_->Call(ListLoops{{file, ""}}, {})).loops;
  }
  // What is in the file of the volume's filesystem; something else is in it afterwards.
  std::string ReadAndReplace(const OpenedVolume& opened, const std::string& fs_type) {
    EXPECT_EQ(::mount(opened.device.c_str(), Path("mnt2").c_str(), fs_type.c_str(), 0, nullptr), 0);
    std::ifstream file(Path("mnt2/f"));
    std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    file.close();
    std::ofstream(Path("mnt2/f")) << "of the volume";
    Unmount("mnt2");
    return content;
  }
  void ExpectImported(const std::string& fs_type) {
    const std::string image = OldImage(fs_type);
    const std::string before = ChecksumOf(image);
    ImportPlan plan = Must(Look(image));
    EXPECT_EQ(ChecksumOf(image), before) << "by the first look";
    EXPECT_TRUE(LoopsOf(image).empty());
    EXPECT_EQ(plan.filesystem.type, fs_type);
    for (const std::string& note : plan.notes) {
      EXPECT_EQ(note.find("not clean"), std::string::npos) << note;
      EXPECT_EQ(note.find("not checked"), std::string::npos) << note;
    }
    const ImportPlan done = Must(DoImport(Parts(), std::move(plan), {}));
    EXPECT_EQ(ChecksumOf(image), before) << "by the import";
    const OpenedVolume opened = Must(volumes_->Open(done.volume, false, {}));
    EXPECT_EQ(ReadAndReplace(opened, fs_type), "of old");
    EXPECT_EQ(ChecksumOf(image), before) << "by writes to the volume";
    EXPECT_EQ(Must(Look(image)).volume, done.volume);
    ASSERT_TRUE(volumes_->Close(done.volume, {}).ok());
    ASSERT_TRUE(volumes_->Delete(done.volume, /*only_unused=*/false, {}).ok());
    EXPECT_EQ(ChecksumOf(image), before) << "by the deletion of the volume";
  }

  const std::string driver_ = "pool.volumed.io";
  ManualClock clock_;
  Logger log_{{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  FakeIrreversibleSteps irreversible_;
  std::optional<LoopDevice> disk_;
  std::unique_ptr<PoolVolumes> volumes_;
};

TEST_F(RealImportTest, AnImageWithAnExt4IsImportedAndEachByteOfTheFileStays) {
  if (IsSkipped()) return;
  ExpectImported("ext4");
}

TEST_F(RealImportTest, AnImageWithAnXfsOfSmallSectorsIsImportedAndEachByteOfTheFileStays) {
  if (IsSkipped()) return;
  ExpectImported("xfs");
}

TEST_F(RealImportTest, AnImageThatWasNotUnmountedIsToldAndNotRepaired) {
  if (IsSkipped()) return;
  const std::string image = OldImage("xfs");
  const std::string torn = std::filesystem::path(image).parent_path() / "torn.img";
  {
    const LoopDevice device(image);
    ASSERT_EQ(::mount(device.path().c_str(), Path("mnt2").c_str(), "xfs", 0, nullptr), 0);
    std::ofstream(Path("mnt2/more")) << "in the log alone";
    ASSERT_EQ(Shell("sync -f " + Path("mnt2") + " && cp --reflink=always " + image + " " + torn),
              0);
    Unmount("mnt2");
  }
  const std::string before = ChecksumOf(torn);
  const ImportPlan plan = Must(Look(torn));
  EXPECT_EQ(ChecksumOf(torn), before);
  std::string notes;
  for (const std::string& note : plan.notes) notes += note + "\n";
  EXPECT_THAT(notes, HasSubstr("is not clean, and is left as it is"));
}

TEST_F(RealImportTest, AnImageThatIsAttachedForWritingIsRefusedAndStaysAttached) {
  if (IsSkipped()) return;
  const std::string image = OldImage("ext4");
  const LoopDevice device(image);
  const Result<ImportPlan> plan = Look(image);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message(), HasSubstr(device.path()));
  EXPECT_EQ(LoopsOf(image).size(), 1u);
}

// ---- directories --------------------------------------------------------------------------------

TEST_F(RealImportTest, ADirectoryOfAProvisionerBecomesAVolumeWithTheSameInodes) {
  if (IsSkipped()) return;
  const std::string claimed = Path("mnt/old/pvc-1");
  ASSERT_TRUE(std::filesystem::create_directories(claimed + "/a"));
  std::ofstream(claimed + "/a/f") << "of the pod";
  ASSERT_EQ(::chown(claimed.c_str(), 1000, 2000), 0);
  struct stat before = {};
  ASSERT_EQ(::stat((claimed + "/a/f").c_str(), &before), 0);
  ImportPlan plan = Must(LookAtDirectory(claimed));
  EXPECT_TRUE(std::filesystem::exists(claimed + "/a/f")) << "the first look";
  const ImportPlan done = Must(DoImport(Parts(), std::move(plan), {}));
  EXPECT_FALSE(std::filesystem::exists(claimed));
  const OpenedVolume opened = Must(volumes_->Open(done.volume, false, {}));
  struct stat now = {};
  ASSERT_EQ(::stat((opened.directory.Display() + "/a/f").c_str(), &now), 0);
  EXPECT_EQ(now.st_ino, before.st_ino);
  ASSERT_EQ(::stat(opened.directory.Display().c_str(), &now), 0);
  EXPECT_EQ(now.st_uid, 1000u);
  EXPECT_EQ(Must(LookAtDirectory(claimed)).volume, done.volume);
  ASSERT_TRUE(volumes_->Delete(done.volume, /*only_unused=*/false, {}).ok());
  EXPECT_FALSE(std::filesystem::exists(opened.directory.Display()));
}

TEST_F(RealImportTest, ADirectoryThatAPodHasAPartOfStaysWhereItIs) {
  if (IsSkipped()) return;
  const std::string claimed = Path("mnt/old/pvc-2");
  ASSERT_TRUE(std::filesystem::create_directories(claimed + "/a"));
  ASSERT_EQ(::mount((claimed + "/a").c_str(), Path("mnt2").c_str(), "", MS_BIND, nullptr), 0);
  const Result<ImportPlan> plan = LookAtDirectory(claimed);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message(), HasSubstr("is mounted at " + Path("mnt2")));
  Unmount("mnt2");
  EXPECT_TRUE(LookAtDirectory(claimed).ok());
  // The same filesystem by another mount is none that a directory could be moved from.
  ASSERT_EQ(::mount(Path("mnt/old").c_str(), Path("mnt2").c_str(), "", MS_BIND, nullptr), 0);
  const Result<ImportPlan> aside = LookAtDirectory(Path("mnt2/pvc-2"));
  ASSERT_FALSE(aside.ok());
  EXPECT_THAT(aside.error().message(), HasSubstr("name it as the pool's mount shows it"));
  Unmount("mnt2");
}

}  // namespace
}  // namespace volumed
