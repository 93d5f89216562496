// Snapshots of a volume that somebody writes to, on real filesystems: what each has, and that a
// worker's death leaves nothing frozen.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "integration/snapshot/snapshot_root_fixture.h"
#include "run_numbers.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

constexpr size_t kBlockBytes = 4096;
constexpr char kLog[] = "/log";
// Longer than a freeze may last, and its end.
constexpr milliseconds kFrozenAtMost{3000};

using Block = std::array<char, kBlockBytes>;

Block BlockOf(uint64_t number) {
  Block block;
  for (size_t at = 0; at < block.size(); at += sizeof(number)) {
    std::memcpy(block.data() + at, &number, sizeof(number));
  }
  return block;
}

// Appends numbered blocks to a file, each on the disk before the next one is written.
class LogWriter {
 public:
  explicit LogWriter(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    EXPECT_TRUE(file_.valid());
    thread_ = std::jthread([this](const std::stop_token& stop) { Write(stop); });
  }
  // So many are on the disk for certain.
  uint64_t synced() const { return synced_; }
  // Whether it gets on within the time that a freeze may last.
  bool GetsOn() const {
    const uint64_t before = synced();
    const auto end = std::chrono::steady_clock::now() + kFrozenAtMost;
    while (synced() == before && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(2));
    }
    return synced() > before;
  }

 private:
  void Write(const std::stop_token& stop) {
    // The volume has room for more than that.
    constexpr uint64_t kMost = 70'000;
    while (!stop.stop_requested() && synced_ < kMost) {
      const Block block = BlockOf(synced_);
      const bool is_written =
          ::write(file_.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size()) &&
          ::fsync(file_.get()) == 0;
      if (!is_written) break;
      ++synced_;
      // So that there is something to write for as long as the test lasts.
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

  const Descriptor file_;
  std::atomic<uint64_t> synced_{0};
  std::jthread thread_;
};

// How many blocks the file has, if it is a prefix of what the writer writes; else it fails.
uint64_t PrefixAt(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  uint64_t number = 0;
  for (Block block; file.read(block.data(), block.size()); ++number) {
    if (block == BlockOf(number)) continue;
    ADD_FAILURE() << "block " << number << " of " << path << " is another one";
    return number;
  }
  EXPECT_EQ(file.gcount(), 0) << path << " ends with a part of a block";
  return number;
}

dev_t FilesystemAt(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_dev;
}

// The workers of this process that there are now.
std::vector<pid_t> WorkersNow() {
  std::vector<pid_t> workers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    pid_t pid = 0;
    std::string name;
    std::string state;
    pid_t parent = 0;
    if (!(stat >> pid >> name >> state >> parent) || parent != ::getpid()) continue;
    if (name.find("worker") != std::string::npos) workers.push_back(pid);
  }
  return workers;
}

// What is in a volume that is made of the snapshot, and is gone again afterwards.
class SnapshotsUnderAWriterTest : public SnapshotRootTest {
 protected:
  uint64_t PrefixOf(const SnapshotRecord& snapshot) {
    const std::string id = Made(WishOf("look", /*is_snapshot=*/true, snapshot.id));
    const uint64_t prefix = PrefixAt(Stage(id) + kLog);
    Unstage(id);
    Remove(id);
    return prefix;
  }
  // A worker that was killed while it was idle is noticed by the next call that it gets, which
  // fails; each step finds what an earlier try has done of it.
  uint64_t PrefixOfAfterKills(const SnapshotRecord& snapshot) {
    constexpr int kMostWorkers = 16;
    for (int failed = 0; failed < kMostWorkers; ++failed) {
      try {
        return PrefixOf(snapshot);
      } catch (const std::exception&) {
        continue;
      }
    }
    return PrefixOf(snapshot);
  }
};

// Cuts the volume so often while somebody appends to its log.
class CutsUnderAWriterTest : public SnapshotsUnderAWriterTest {
 protected:
  void CutWhileWritten(const std::string& source, uint64_t cuts) {
    LogWriter writer(Stage(source) + kLog);
    uint64_t last = 0;
    for (uint64_t round = 0; round < cuts && !HasFailure(); ++round) {
      ASSERT_TRUE(writer.GetsOn()) << source << ", round " << round;
      const uint64_t before = writer.synced();
      const SnapshotRecord snapshot =
          Must(Create(source + ", cut " + std::to_string(round), source));
      const uint64_t after = writer.synced();
      // The next agent has the same.
      if (round % 10 == 9) RestartAgent();
      const uint64_t prefix = PrefixOf(snapshot);
      EXPECT_GE(prefix, before) << "what was synced before is missing in round " << round;
      EXPECT_LE(prefix, after + 1) << "in round " << round;
      EXPECT_GE(prefix, last);
      last = prefix;
      EXPECT_TRUE(Delete(snapshot.id).ok());
    }
    EXPECT_GT(last, 0U);
  }
};

TEST_F(CutsUnderAWriterTest, EachOfManyCutsIsOnePrefixOfWhatWasWritten) {
  // Each source for so many that its log does not fill it.
  constexpr uint64_t kCutsOfASource = 50;
  const uint64_t cuts = NumberOfRun("VOLUMED_CUTS", kCutsOfASource);
  for (uint64_t done = 0; done < cuts && !HasFailure(); done += kCutsOfASource) {
    const std::string source = Made(WishFor("source " + std::to_string(done)));
    ASSERT_NO_FATAL_FAILURE(CutWhileWritten(source, std::min(kCutsOfASource, cuts - done)));
    Unstage(source);
    Remove(source);
  }
}

TEST_F(SnapshotsUnderAWriterTest, SourceRestoredVolumeAndCloneAreMountedAtOnce) {
  const std::string source = Made(WishFor("source"));
  const std::string of_source = Stage(source);
  std::ofstream(of_source + "/f") << "first";
  const SnapshotRecord snapshot = Must(Create("a", source));
  std::ofstream(of_source + "/f") << "second";
  const std::string restored = Made(WishOf("restored", /*is_snapshot=*/true, snapshot.id));
  const std::string clone = Made(WishOf("clone", /*is_snapshot=*/false, source));
  Run();
  const std::string of_restored = Stage(restored);
  const std::string of_clone = Stage(clone);
  const auto text_of = [](const std::string& place) {
    std::string text;
    std::ifstream(place + "/f") >> text;
    return text;
  };
  EXPECT_EQ(text_of(of_source), "second");
  EXPECT_EQ(text_of(of_restored), "first");
  EXPECT_EQ(text_of(of_clone), "second");
  EXPECT_NE(FilesystemAt(of_source), FilesystemAt(of_restored));
  EXPECT_NE(FilesystemAt(of_source), FilesystemAt(of_clone));
  EXPECT_NE(FilesystemAt(of_restored), FilesystemAt(of_clone));
  std::ofstream(of_clone + "/f") << "third";
  EXPECT_EQ(text_of(of_source), "second") << "each is on its own";
  EXPECT_TRUE(Delete(snapshot.id).ok());
  EXPECT_EQ(text_of(of_restored), "first") << "of a snapshot that is gone";
}

TEST_F(SnapshotsUnderAWriterTest, AWorkerThatIsKilledAmidACutLeavesNothingFrozenAndNoHalfSnapshot) {
  constexpr int kTries = 5;
  const std::string source = Made(WishFor("source"));
  LogWriter writer(Stage(source) + kLog);
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    const std::string name = "cut " + std::to_string(round);
    const uint64_t least = writer.synced();
    {
      // At another moment in each round.
      const std::jthread killer([round] {
        std::this_thread::sleep_for(milliseconds(7 * round));
        for (const pid_t worker : WorkersNow()) ::kill(worker, SIGKILL);
      });
      (void)Create(name, source);
    }
    ASSERT_TRUE(writer.GetsOn()) << "in round " << round;
    if (round % 4 == 3) RestartAgent();
    Result<SnapshotRecord> made = Create(name, source);
    for (int i = 0; i < kTries && !made.ok(); ++i) made = Create(name, source);
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    const uint64_t most = writer.synced() + 1;
    const uint64_t prefix = PrefixOfAfterKills(*made);
    EXPECT_GE(prefix, least) << "what was synced before is missing in round " << round;
    EXPECT_LE(prefix, most) << "in round " << round;
    Status deleted = Delete(made->id);
    for (int i = 0; i < kTries && !deleted.ok(); ++i) deleted = Delete(made->id);
    EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
  }
  for (const SnapshotRecord& left : engine_->List({})) EXPECT_TRUE(Delete(left.id).ok());
  Run(std::chrono::minutes(5));
  EXPECT_TRUE(volumes_->Cuts().empty());
}

}  // namespace
}  // namespace volumed
