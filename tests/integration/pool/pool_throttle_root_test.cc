// The throttle of a volume and its read-ahead on a real loop device: what the kernel's files show,
// and what a writer in the pod's cgroup is held to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/manual_clock.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/memory_record_store.h"
#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"
#include "os/io_limits.h"
#include "pool/pool_volumes.h"

namespace volumed {
namespace {

constexpr int64_t kLimitBps = int64_t{1} << 20;
constexpr int64_t kWritten = 4 * kLimitBps;
constexpr char kReadAheadKey[] = "readAheadKiB";
constexpr char kWriteBpsKey[] = "writeBps";

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
bool WriteTo(const std::string& path, const std::string& content) {
  std::ofstream file(path);
  file << content << std::flush;
  return file.good();
}

// A cgroup that a kubelet could have made for a pod, with one of a container in it, in whichever
// hierarchy limits devices. It goes with this object; what was there before stays.
class PodCgroup {
 public:
  explicit PodCgroup(std::string uid) : uid_(std::move(uid)) {
    const std::vector<MountEntry> mounts = Must(ReadMountTable());
    for (const MountEntry& mount : mounts) {
      const bool is_cgroup = mount.fs_type == "cgroup" || mount.fs_type == "cgroup2";
      if (!is_cgroup || mount.root != "/" || !path_.empty()) continue;
      MakeBelow(mount.mount_point, mount.fs_type == "cgroup2");
    }
  }
  ~PodCgroup() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) ::rmdir(made->c_str());
  }
  PodCgroup(const PodCgroup&) = delete;
  PodCgroup& operator=(const PodCgroup&) = delete;

  // False: no hierarchy of this machine can be used so.
  bool valid() const { return !path_.empty(); }
  const std::string& uid() const { return uid_; }
  std::string container() const { return path_ + "/container"; }

  // The limit of writes as the kernel shows it, of the pod and of its container.
  int64_t WriteBps(const std::string& number) const {
    if (is_version2_) return IoMaxOf(ContentOf(path_ + "/io.max"), number).write_bps;
    const char* const file = "/blkio.throttle.write_bps_device";
    const int64_t limit = BlkioLimitOf(ContentOf(path_ + file), number);
    EXPECT_EQ(BlkioLimitOf(ContentOf(container() + file), number), limit);
    return limit;
  }
  // What the container has written to the device, by the kernel's count.
  int64_t BytesWritten(const std::string& number) const {
    const std::string file = is_version2_ ? "/io.stat" : "/blkio.throttle.io_service_bytes";
    for (const std::string& line : SplitNonEmpty(ContentOf(container() + file), '\n')) {
      const std::vector<std::string> words = SplitNonEmpty(line, ' ');
      if (words.empty() || words[0] != number) continue;
      if (!is_version2_ && words[1] == "Write") return ParseInt64(words[2]).value_or(0);
      for (const std::string& word : words) {
        if (const auto bytes = StripPrefix(word, "wbytes=")) return ParseInt64(*bytes).value_or(0);
      }
    }
    return 0;
  }

 private:
  bool Make(const std::string& directory) {
    if (::mkdir(directory.c_str(), 0755) == 0) {
      made_.push_back(directory);
      return true;
    }
    return errno == EEXIST;
  }
  void MakeBelow(const std::string& hierarchy, bool is_version2) {
    const std::string parent = hierarchy + "/kubepods";
    const std::string pod = parent + "/pod" + uid_;
    if (!is_version2 && ::access((hierarchy + "/" + kBlkioThrottles[0].file).c_str(), W_OK) != 0) {
      return;
    }
    if (is_version2 &&
        ContentOf(hierarchy + "/cgroup.controllers").find("io") == std::string::npos) {
      return;
    }
    if (!Make(parent)) return;
    if (is_version2) {
      WriteTo(hierarchy + "/cgroup.subtree_control", "+io");
      WriteTo(parent + "/cgroup.subtree_control", "+io");
    }
    if (!Make(pod)) return;
    if (is_version2) WriteTo(pod + "/cgroup.subtree_control", "+io");
    if (!Make(pod + "/container")) return;
    const std::string file = is_version2 ? kIoMaxFile : kBlkioThrottles[0].file;
    if (::access((pod + "/" + file).c_str(), W_OK) != 0) return;
    path_ = pod;
    is_version2_ = is_version2;
  }

  const std::string uid_;
  std::string path_;  // empty: there is none
  bool is_version2_ = false;
  std::vector<std::string> made_;
};

class RealThrottleTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_.emplace(Image("disk", int64_t{64} << 20));
    ASSERT_TRUE(disk_->valid());
    ASSERT_NO_FATAL_FAILURE(Mkfs("ext4", disk_->path()));
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "ext4", 0, nullptr), 0);
    ASSERT_EQ(::mkdir(Path("mnt/pool").c_str(), 0700), 0);
    ASSERT_NO_FATAL_FAILURE(StartAgent());
    PoolVolumeWish wish;
    wish.name = "one";
    wish.size.required_bytes = int64_t{16} << 20;
    wish.is_block = true;
    id_ = Must(volumes_->Create(wish, {})).id;
  }
  void TearDown() override {
    if (volumes_ != nullptr && !id_.empty()) {
      EXPECT_EQ(WhyNotClosed(), "");
    }
    volumes_.reset();
    BlockMountTest::TearDown();
  }
  std::optional<LoopDevice> disk_;
  // A new one on the same records.
  void StartAgent() {
    volumes_.reset();
    std::vector<std::unique_ptr<Pool>> pools;
    pools.push_back(std::make_unique<Pool>(
        PoolSettings{.name = "fast", .path = Path("mnt/pool"), .limits = {}, .holder = "this test"},
        *local_, store_, clock_, log_));
    volumes_ = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{store_, *local_, clock_, log_, irreversible_}, std::move(pools));
    for (const char* kind : {kPoolRecordKind, kPoolVolumeRecordKind, kPoolCutRecordKind}) {
      volumes_->Restore(kind, Must(store_.Load(kind)));
    }
    const Status opened = volumes_->Recover([](const std::string&) { return true; }, {});
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  }
  // A node's udevd may look at what was attached a moment ago.
  std::string WhyNotClosed() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (true) {
      const Status closed = volumes_->Close(id_, {});
      if (closed.ok()) return "";
      if (std::chrono::steady_clock::now() > end) return closed.error().ToString();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  // The number of its device, as cgroups name it.
  std::string Open() {
    const OpenedVolume opened = Must(volumes_->Open(id_, /*read_only=*/false, {}));
    device_ = opened.device;
    return IoDeviceNumber(opened.identity);
  }
  std::string ReadAhead() const {
    std::string text = ContentOf("/sys/block/" + device_.substr(5) + "/queue/read_ahead_kb");
    return text.substr(0, text.find('\n'));
  }
  // How long a writer of the container takes for kWritten bytes.
  std::chrono::duration<double> Write(const PodCgroup& cgroup) const {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Shell("echo $$ > " + cgroup.container() +
                    "/cgroup.procs && exec dd if=/dev/zero of=" + device_ +
                    " bs=64k count=" + std::to_string(kWritten >> 16) + " oflag=direct"),
              0);
    return std::chrono::steady_clock::now() - begin;
  }

  ManualClock clock_;
  Logger log_{{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  FakeIrreversibleSteps irreversible_;
  std::unique_ptr<PoolVolumes> volumes_;
  std::string id_;
  std::string device_;
};

TEST_F(RealThrottleTest, TheReadAheadIsTheKernelsAndIsKeptOverRestartAndAttach) {
  if (IsSkipped()) return;
  Open();
  ASSERT_TRUE(volumes_->Modify(id_, {{kReadAheadKey, "512"}}, {}).ok());
  EXPECT_EQ(ReadAhead(), "512");
  ASSERT_EQ(WhyNotClosed(), "");
  StartAgent();
  Open();
  EXPECT_EQ(ReadAhead(), "512");
  ASSERT_FALSE(volumes_->Modify(id_, {{kReadAheadKey, "64"}, {"unknown", "1"}}, {}).ok());
  EXPECT_EQ(ReadAhead(), "512");
  // Whatever else is told to the device, also to one that reads less ahead than the kernel would.
  ASSERT_TRUE(volumes_->Modify(id_, {{kReadAheadKey, "64"}, {"directIO", "false"}}, {}).ok());
  EXPECT_EQ(ReadAhead(), "64");
}

// Slowness alone makes it no faster than the limit: the writer's time is bounded from below.
TEST_F(RealThrottleTest, AWriterInThePodsCgroupIsHeldToTheLimit) {
  if (IsSkipped()) return;
  const PodCgroup cgroup("volumed-test-" + std::to_string(::getpid()));
  if (!cgroup.valid()) GTEST_SKIP() << "skipped: needs a writable cgroup of blkio or io";
  const std::string number = Open();
  const Status set =
      volumes_->Modify(id_, {{kWriteBpsKey, std::to_string(kLimitBps)}}, {}, {cgroup.uid()});
  ASSERT_TRUE(set.ok()) << set.error().ToString();
  EXPECT_EQ(cgroup.WriteBps(number), kLimitBps);
  const std::chrono::duration<double> limited = Write(cgroup);
  EXPECT_GE(cgroup.BytesWritten(number), kWritten) << "the kernel counts them in the container";
  // 4 s, but for what a slice of the kernel's lets through at once.
  EXPECT_GE(limited.count(), 2.0);

  // Kept on record: a new agent sets it anew when the volume is published.
  StartAgent();
  ASSERT_TRUE(volumes_->Modify(id_, {{kWriteBpsKey, "0"}}, {}, {cgroup.uid()}).ok());
  EXPECT_EQ(cgroup.WriteBps(number), 0);
  std::printf("%lld bytes at %lld/s took %.2f s, without a limit %.2f s\n",
              static_cast<long long>(kWritten), static_cast<long long>(kLimitBps), limited.count(),
              Write(cgroup).count());
  ASSERT_TRUE(volumes_->Modify(id_, {{kWriteBpsKey, std::to_string(kLimitBps)}}, {}).ok());
  EXPECT_EQ(cgroup.WriteBps(number), 0) << "no pod was named";
  ASSERT_TRUE(volumes_->Throttle(id_, cgroup.uid(), {}).ok());
  EXPECT_EQ(cgroup.WriteBps(number), kLimitBps);
  const Status nowhere = volumes_->Throttle(id_, "volumed-test-of-no-pod", {});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(nowhere.error().maybe_applied());
}

}  // namespace
}  // namespace volumed
