// Manifests that are links out of their directory's filesystem: what they lead to may never answer.
#include <condition_variable>
#include <mutex>

#include "unit/kube/manifest_directory_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

class FarManifestsTest : public ManifestDirectoryTest {
 protected:
  void SetUp() override {
    ManifestDirectoryTest::SetUp();
    char name[] = "/dev/shm/volumed-far-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    far_ = name;
    struct stat here {};
    struct stat there {};
    ASSERT_EQ(::stat(root_.c_str(), &here), 0);
    ASSERT_EQ(::stat(far_.c_str(), &there), 0);
    ASSERT_NE(here.st_dev, there.st_dev) << "/tmp and /dev/shm have to be two filesystems";
    seams_.read_far = [this](const std::string& path) {
      const std::string file = fs::path(path).filename();
      {
        std::unique_lock lock(mu_);
        ++reads_;
        if (hang_.contains(file)) {
          ++hung_;
          released_.wait(lock, [&] { return !hang_.contains(file); });
          --hung_;
        }
      }
      return ReadFar(path);
    };
  }
  void TearDown() override {
    Answer();
    ManifestDirectoryTest::TearDown();
    fs::remove_all(far_);
  }
  void Hang(const std::string& file) {
    const std::lock_guard lock(mu_);
    hang_.insert(file);
  }
  void Answer() {
    const std::lock_guard lock(mu_);
    hang_.clear();
    released_.notify_all();
  }
  int hung() {
    const std::lock_guard lock(mu_);
    return hung_;
  }
  int reads() {
    const std::lock_guard lock(mu_);
    return reads_;
  }
  void LinkFar(const std::string& file, const std::string& object) {
    WriteFile(far_ / file, ConfigMapYaml(object, ""));
    fs::create_symlink(far_ / file, directory_ / file);
  }

  fs::path far_;
  std::mutex mu_;
  std::condition_variable released_;
  std::set<std::string> hang_;  // files
  int hung_ = 0;
  int reads_ = 0;
};

TEST_F(FarManifestsTest, ALinkToAnotherFilesystemIsFollowedAndWatched) {
  fs::create_directory(directory_);
  LinkFar("a.yaml", "a");
  Start();
  RunUntilState("a", "present");
  WriteFile(far_ / "a.yaml", ConfigMapYaml("b", ""));
  RunUntilState("b", "present");
  EXPECT_EQ(last_->incomplete_because, "");
  fs::remove(directory_ / "a.yaml");
  RunUntilState("b", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
}

// One link into a dead mount has stopped all manifests of its directory for good.
TEST_F(FarManifestsTest, ALinkThatDoesNotAnswerDelaysNoOtherFile) {
  settle_ = milliseconds(20);
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("a", ""));
  RunUntilState("a", "present");
  Hang("l.yaml");
  LinkFar("l.yaml", "l");
  Write("b.yaml", ConfigMapYaml("b", ""));
  RunUntilState("b", "present");
  Write("a.yaml", ConfigMapYaml("c", ""));
  RunUntilState("c", "present");
  RunUntil([this] { return HasProblem("l.yaml") && HasProblem("does not answer"); });
  EXPECT_TRUE(last_->complete);
  EXPECT_NE(last_->incomplete_because.find("l.yaml"), std::string::npos);
  EXPECT_NE(last_->incomplete_because.find("does not answer"), std::string::npos);
  EXPECT_EQ(StateOf("a"), "held") << "it may have moved into that file";
  EXPECT_EQ(StateOf("b"), "present");
  // It answers after all.
  Answer();
  RunUntilState("l", "present");
  RunUntilState("a", "absent");
  RunUntil([this] { return last_->incomplete_because.empty(); });
}

TEST_F(FarManifestsTest, WhatWasLastGoodInALinkThatDoesNotAnswerIsHeld) {
  fs::create_directory(directory_);
  LinkFar("l.yaml", "l");
  Write("a.yaml", ConfigMapYaml("a", ""));
  Start();
  RunUntilState("l", "present");
  source_.reset();
  memory_ = MemoryOf(*last_);
  last_.reset();
  Hang("l.yaml");
  Start();
  // Of a ConfigMap it is on record only that it exists.
  RunUntil([this] { return StateOf("l") == "unknown" && HasProblem("does not answer"); });
  EXPECT_EQ(StateOf("a"), "present");
  // Neither the removal of the link nor a start needs its answer.
  fs::remove(directory_ / "l.yaml");
  RunUntilState("l", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(FarManifestsTest, ALinkThatDoesNotAnswerHasOneThreadHoweverOftenItIsLookedAt) {
  MakeAndStart();
  Hang("l.yaml");
  LinkFar("l.yaml", "l");
  RunUntil([this] { return last_->complete && HasProblem("does not answer"); });
  for (int i = 0; i < 20; ++i) {
    source_->Accept();  // everything is read again
    RunFor(milliseconds(5));
  }
  fs::remove(directory_ / "l.yaml");
  fs::create_symlink(far_ / "l.yaml", directory_ / "l.yaml");
  Settle();
  EXPECT_EQ(hung(), 1);
  EXPECT_TRUE(HasProblem("does not answer"));
}

TEST_F(FarManifestsTest, ThreadsOfLinksThatDoNotAnswerAreBoundedAndTheNextOneSaysSo) {
  fs::create_directory(directory_);
  for (size_t i = 0; i < FarManifests::kMost; ++i) {
    const std::string file = "hung" + std::to_string(i) + ".yaml";
    Hang(file);
    LinkFar(file, "hung" + std::to_string(i));
  }
  LinkFar("next.yaml", "next");
  Write("a.yaml", ConfigMapYaml("a", ""));
  Start();
  RunUntil([this] { return HasProblem("next.yaml") && HasProblem("cannot be read while 16"); });
  EXPECT_EQ(StateOf("a"), "present");
  EXPECT_EQ(hung(), static_cast<int>(FarManifests::kMost));
  EXPECT_EQ(reads(), static_cast<int>(FarManifests::kMost));
  Answer();
  RunUntilState("next", "present");
  RunUntil([this] { return last_->incomplete_because.empty(); });
}

}  // namespace
}  // namespace volumed
