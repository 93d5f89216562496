// Filesystems of others that do not answer, beside a pool that is well: one in which the CO
// has places, and one that has the file of somebody's loop device. They hold up whoever names them,
// and no other volume.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "integration/csi/own_volumes_fixture.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::hung_places_test {
namespace {

using ::csi::v1::Node;

// More than the workers that one filesystem may have.
constexpr size_t kCallsThatHang = 6;
// Whoever waits for one that hangs waits so long; a whole life of a volume takes a second or two.
constexpr const char* kDeadline = "60s";
constexpr Milliseconds kWithoutWaiting = std::chrono::seconds(20);

class HungPlacesTest : public OwnVolumesFixture {
 protected:
  HungPlacesTest() : OwnVolumesFixture("ext4", 1024 * kMiB) {}
  void SetUp() override {
    OwnVolumesFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::filesystem::create_directories(far());
    ASSERT_TRUE(MakeImage(scratch() + "/far-image", 32 * kMiB));
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), far(), scratch() + "/far-control",
                                            scratch() + "/far-image");
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    settings["deadline-stats"] = kDeadline;
    settings["deadline-mount"] = kDeadline;
    settings["deadline-unmount"] = kDeadline;
  }
  void TearDown() override {
    if (hangfs_) hangfs_->Heal();
    loop_.reset();
    hangfs_.reset();
    OwnVolumesFixture::TearDown();
  }

  std::string far() const { return scratch() + "/far"; }
  void LiveWholly(const std::string& name) {
    const auto begun = std::chrono::steady_clock::now();
    const std::string id = Create(name, /*is_block=*/false);
    ASSERT_NE(id, "");
    ASSERT_EQ(Stage(id, /*is_block=*/false), "");
    ASSERT_EQ(Publish(id, /*is_block=*/false), "");
    EXPECT_EQ(WriteVolume(/*is_block=*/false, "kept"), "kept");
    EXPECT_GT(TotalBytes(id), 0);
    EXPECT_EQ(Unpublish(id), "");
    EXPECT_EQ(Unstage(id), "");
    EXPECT_EQ(Delete(id), "");
    EXPECT_LT(Since(begun), kWithoutWaiting) << "as if it had waited for what does not answer";
  }

  std::unique_ptr<HangfsMount> hangfs_;
  std::unique_ptr<LoopDevice> loop_;
};

// They were counted as the pool's, whose four workers waited for the other filesystem.
TEST_F(HungPlacesTest, StagingPathsOnAFilesystemThatHangsHoldUpNoOtherVolumeOfThePool) {
  settings["csi-target-roots"] = "[" + co() + ", " + far() + "]";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  std::vector<std::string> ids;
  for (size_t n = 0; n < kCallsThatHang; ++n) {
    ids.push_back(Create("far-" + std::to_string(n), /*is_block=*/false));
    ASSERT_NE(ids.back(), "");
  }
  hangfs_->Hang();
  std::array<grpc::Status, kCallsThatHang> answers;
  std::vector<std::thread> calls;
  for (size_t n = 0; n < kCallsThatHang; ++n) {
    calls.emplace_back([this, n, &ids, &answers] {
      ::csi::v1::NodeStageVolumeRequest request = StageRequest(ids[n], /*is_block=*/false);
      request.set_staging_target_path(far() + "/stage-" + std::to_string(n));
      ::csi::v1::NodeStageVolumeResponse response;
      answers[n] = CallOnce<Node>(&Node::Stub::NodeStageVolume, request, &response);
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  LiveWholly("near");
  hangfs_->Heal();
  for (std::thread& call : calls) call.join();
  for (const grpc::Status& answer : answers) {
    EXPECT_FALSE(answer.ok()) << "there is no such directory";
  }
  for (const std::string& id : ids) EXPECT_EQ(Delete(id), "");
  EXPECT_EQ(LeftOnNode(), "");
}

// Each loop device of the node is asked which file it has, and the kernel asked that file's
// filesystem.
TEST_F(HungPlacesTest, ALoopDeviceOfOthersOnAFilesystemThatHangsHoldsUpNoVolume) {
  loop_ = std::make_unique<LoopDevice>(far() + "/image");
  ASSERT_TRUE(loop_->valid());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  hangfs_->Hang();
  for (size_t n = 0; n < kCallsThatHang; ++n) {
    ASSERT_NO_FATAL_FAILURE(LiveWholly("near-" + std::to_string(n)));
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_NO_FATAL_FAILURE(LiveWholly("near-after-a-restart"));
}

// As the agent sees it the path that the kernel shows lies on the root, and is the end of each
// volume's own: a container's loop device, or one whose mount was taken away.
TEST_F(HungPlacesTest, ALoopDeviceOfAnotherMountNamespaceThatHangsStoppedEachVolume) {
  loop_ = std::make_unique<LoopDevice>(far() + "/image");
  ASSERT_TRUE(loop_->valid());
  ASSERT_EQ(::umount2(far().c_str(), MNT_DETACH), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  hangfs_->Hang();
  for (size_t n = 0; n < kCallsThatHang; ++n) {
    ASSERT_NO_FATAL_FAILURE(LiveWholly("near-" + std::to_string(n)));
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_NO_FATAL_FAILURE(LiveWholly("near-after-a-restart"));
}

// Freezes the filesystem at the path for as long as it lives.
class Frozen {
 public:
  explicit Frozen(const std::string& path)
      : directory_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        frozen_(::ioctl(directory_.get(), FIFREEZE, 0) == 0) {}
  ~Frozen() {
    if (frozen_) ::ioctl(directory_.get(), FITHAW, 0);
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  bool frozen() const { return frozen_; }

 private:
  const Descriptor directory_;
  const bool frozen_;
};

// It had no answer as long as the pool had none, and neither had a volume that was well.
TEST_F(HungPlacesTest, PoolsAreListedAndAVolumeIsMeasuredWhileTheirPoolDoesNotAnswer) {
  settings["deadline-stats"] = "10s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string id = Create("staged", /*is_block=*/false);
  ASSERT_EQ(Stage(id, /*is_block=*/false), "");
  ASSERT_EQ(Publish(id, /*is_block=*/false), "");
  std::vector<std::thread> calls;
  {
    const Frozen frozen(pool());
    ASSERT_TRUE(frozen.frozen());
    for (size_t n = 0; n < kCallsThatHang; ++n) {
      calls.emplace_back([this, n] { Create("frozen-" + std::to_string(n), /*is_block=*/false); });
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const CommandResult pools = Ctl({"get", "pools"});
    EXPECT_EQ(pools.exit_status, 0) << pools.output;
    EXPECT_NE(pools.output.find("fast"), std::string::npos) << pools.output;
    EXPECT_NE(pools.output.find("not known since"), std::string::npos) << pools.output;
    EXPECT_GT(TotalBytes(id), 0) << "its own filesystem answers";
  }
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(Unpublish(id), "");
  EXPECT_EQ(Unstage(id), "");
}

}  // namespace
}  // namespace volumed::hung_places_test
