// What is made of an object that leaves one manifest directory while a file of another one is in
// disorder: the law of docs/OBJECTS.md, on real files.
#include "kube/manifest_peers.h"

#include <future>

#include "unit/kube/manifest_directory_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

constexpr const char* kBroken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \n";

// The fixture's directory, and a second one beside it.
class ManifestPeersTest : public ManifestDirectoryTest {
 protected:
  void SetUp() override {
    ManifestDirectoryTest::SetUp();
    peers_ = std::make_shared<ManifestPeers>();
    settle_ = milliseconds(100);
    fs::create_directory(root_ / "second");
  }
  void TearDown() override {
    second_.reset();
    ManifestDirectoryTest::TearDown();
  }

  void WriteSecond(const std::string& file, const std::string& text) {
    WriteFile(root_ / "second" / file, text);
  }
  // Both directories have been read; `a` is in the first.
  void StartBoth() {
    fs::create_directory(directory_);
    Write("a.yaml", PodYaml("a", "uid-a"));
    StartSecond();
    StartFirst();
  }
  void StartFirst() {
    Start();
    RunUntil([this] { return StateOf("a") == "present" && IsRead() && SecondIsRead(); });
  }
  void StartSecond() {
    auto second = ManifestDirectory::Create((root_ / "second").string(), NodeName("n1"),
                                            *scheduler_, scheduler_->loop(), settle_,
                                            {.read_far = ReadFar, .peers = peers_});
    ASSERT_TRUE(second.ok());
    second_ = *std::move(second);
    if (second_memory_) second_->Remember(*second_memory_);
    second_->Start([this](ObjectUpdate update) {
      second_list_ = second_mirror_.Take(std::move(update));
      if (done_ && last_ && done_()) scheduler_->Stop();
    });
  }
  bool SecondIsRead() const {
    return second_list_ && second_list_->complete &&
           second_list_->incomplete_because.find("is being read") == std::string::npos;
  }
  bool SecondIsInDisorder() const {
    return second_list_ && second_list_->incomplete_because.find("q.yaml") != std::string::npos;
  }
  // Moves `a` to the second directory, into a file that is not right with it.
  void MoveIntoBrokenFile() {
    WriteSecond("q.yaml", kBroken);
    fs::remove(directory_ / "a.yaml");
  }
  void ExpectHeldBySecond() {
    RunUntilState("a", "held");
    RunFor(5 * settle_);
    EXPECT_EQ(StateOf("a"), "held");
    const std::string path = (root_ / "second" / "q.yaml").string();
    EXPECT_NE(ReasonOf("a").find("may be in " + path), std::string::npos) << ReasonOf("a");
    EXPECT_NE(last_->incomplete_because.find(path), std::string::npos);
  }

  std::unique_ptr<ManifestDirectory> second_;
  // What lay in the first moved to the second while no agent ran, and the disk of the second, which
  // held nothing before, is not mounted at the start: what its path has now is somebody else's.
  void MoveToADiskThatIsAway() {
    StartBoth();
    WriteSecond("q.yaml", ConfigMapYaml("q", "1"));
    RunUntil([this] { return second_list_->objects.size() == 1; });
    fs::remove(root_ / "second" / "q.yaml");
    RunUntil([this] { return second_list_->objects.empty(); });
    Write("other.yaml", ConfigMapYaml("other", "1"));
    RunUntilState("other", "present");
    memory_ = MemoryOf(*last_);
    second_memory_ = MemoryOf(*second_list_);
    source_.reset();
    second_.reset();
    last_.reset();
    second_list_.reset();
    peers_ = std::make_shared<ManifestPeers>();
    fs::rename(directory_ / "a.yaml", root_ / "second" / "a.yaml");
    fs::rename(root_ / "second", root_ / "disk");
    fs::create_directory(root_ / "second");
  }
  void StartBothAnew() {
    StartSecond();
    Start();
    RunUntil([this] { return IsRead() && SecondIsRead(); });
  }
  void ExpectHeldByTheWhole(const std::string& why) {
    RunUntilState("a", "held");
    RunFor(5 * settle_);
    EXPECT_EQ(StateOf("a"), "held");
    const std::string path = (root_ / "second").string();
    EXPECT_NE(ReasonOf("a").find("may be in " + path + ": "), std::string::npos) << ReasonOf("a");
    EXPECT_NE(ReasonOf("a").find(why), std::string::npos) << ReasonOf("a");
    EXPECT_NE(second_list_->incomplete_because.find(why), std::string::npos);
  }

  ListMirror second_mirror_;
  std::optional<ObjectList> second_list_;
  std::optional<SourceMemory> second_memory_;
};

TEST_F(ManifestPeersTest, WhatMovedIntoABrokenFileOfAnotherDirectoryWentAfterTheSettleTime) {
  StartBoth();
  MoveIntoBrokenFile();
  ExpectHeldBySecond();
  for (const ObjectWithOrigin& one : last_->objects) {
    EXPECT_EQ(one.may_be_in_source, second_->name());
  }
  // The file is mended, and lacks it.
  WriteSecond("q.yaml", ConfigMapYaml("q", "1"));
  RunUntilState("a", "going");
  RunUntilState("a", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(ManifestPeersTest, WhatTheMendedFileOfAnotherDirectoryHasIsThereAllTheTime) {
  StartBoth();
  MoveIntoBrokenFile();
  ExpectHeldBySecond();
  WriteSecond("q.yaml", PodYaml("a", "uid-a"));
  RunUntil([this] { return second_list_ && second_list_->objects.size() == 1; });
  EXPECT_NE(StateOf("a"), "absent");
  RunUntilState("a", "absent");
}

TEST_F(ManifestPeersTest, TheAdministratorsWordAboutTheOtherDirectoryLetsItGo) {
  StartBoth();
  MoveIntoBrokenFile();
  ExpectHeldBySecond();
  second_->Accept();
  RunUntilState("a", "absent");
}

TEST_F(ManifestPeersTest, AFileThatBreaksWhileAnObjectIsGoingHoldsIt) {
  settle_ = milliseconds(500);
  StartBoth();
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  WriteSecond("q.yaml", kBroken);
  ExpectHeldBySecond();
}

TEST_F(ManifestPeersTest, AFileThatWasBrokenAtTheStartHoldsUpNoLaterRemoval) {
  WriteSecond("q.yaml", kBroken);
  StartBoth();
  RunUntil([this] { return SecondIsInDisorder(); });
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
}

TEST_F(ManifestPeersTest, AFileThatWasBrokenBeforeTheObjectCameHoldsUpNoLaterRemoval) {
  StartBoth();
  WriteSecond("q.yaml", kBroken);
  RunUntil([this] { return SecondIsInDisorder(); });
  Write("b.yaml", PodYaml("b", "uid-b"));
  RunUntilState("b", "present");
  fs::remove(directory_ / "b.yaml");
  RunUntilState("b", "absent");
  EXPECT_EQ(StateOf("a"), "present");
}

TEST_F(ManifestPeersTest, ABrokenFileInADirectoryThatComesLaterMayHaveWhatLeaves) {
  fs::remove(root_ / "second");
  fs::create_directory(directory_);
  Write("a.yaml", PodYaml("a", "uid-a"));
  StartSecond();
  Start();
  RunUntilState("a", "present");
  fs::create_directory(root_ / ".new");
  WriteFile(root_ / ".new" / "q.yaml", kBroken);
  fs::rename(root_ / ".new", root_ / "second");
  RunUntil([this] { return SecondIsInDisorder(); });
  fs::remove(directory_ / "a.yaml");
  ExpectHeldBySecond();
}

TEST_F(ManifestPeersTest, WhatOnlyTheLastAgentKnewMayBeInAnyBrokenFile) {
  StartBoth();
  source_.reset();
  second_.reset();
  memory_ = MemoryOf(*last_);
  last_.reset();
  second_list_.reset();
  peers_ = std::make_shared<ManifestPeers>();
  MoveIntoBrokenFile();
  Write("other.yaml", ConfigMapYaml("other", "1"));
  StartSecond();
  Start();
  ExpectHeldBySecond();
}

TEST_F(ManifestPeersTest, WhileAFileOfAnotherDirectoryIsBeingWrittenNothingGoes) {
  StartBoth();
  std::ofstream writer(root_ / "second" / "q.yaml");
  writer << "apiVersion: v1\n" << std::flush;
  RunUntil([this] { return second_list_->incomplete_because == "" && SecondIsRead(); });
  RunFor(milliseconds(50));  // the event of the write has come
  fs::remove(directory_ / "a.yaml");
  RunFor(5 * settle_);
  EXPECT_NE(StateOf("a"), "absent");
  writer << "kind: ConfigMap\nmetadata: {name: q}\n";
  writer.close();
  RunUntilState("a", "absent");
}

TEST_F(ManifestPeersTest, WhatMovedToADirectoryWithoutObjectsThatIsNotMountedAtAStartWent) {
  MoveToADiskThatIsAway();
  StartBothAnew();
  ExpectHeldByTheWhole("another one than the known one");
  EXPECT_TRUE(last_->complete);
  // It is mounted.
  fs::rename(root_ / "second", root_ / "mount-point");
  fs::rename(root_ / "disk", root_ / "second");
  RunUntil([this] { return second_list_->objects.size() == 1; });
  RunUntilState("a", "absent");
  EXPECT_EQ(second_list_->incomplete_because, "");
}

TEST_F(ManifestPeersTest, AFileAtTheMountPointOfADiskThatIsAwayProvesNothing) {
  MoveToADiskThatIsAway();
  WriteSecond("stray.yaml", ConfigMapYaml("stray", "1"));
  StartBothAnew();
  ExpectHeldByTheWhole("another one than the known one");
  EXPECT_EQ(second_list_->objects.size(), 1u);  // what is present is taken all the same
}

TEST_F(ManifestPeersTest, WhatMovedToADirectoryThatIsMissingAtAStartWent) {
  MoveToADiskThatIsAway();
  fs::remove(root_ / "second");
  StartBothAnew();
  ExpectHeldByTheWhole("No such file");
  second_->Accept();
  RunUntilState("a", "absent");
}

TEST_F(ManifestPeersTest, TheAdministratorsWordAboutAnotherEmptyDirectoryLetsItGo) {
  MoveToADiskThatIsAway();
  StartBothAnew();
  ExpectHeldByTheWhole("another one than the known one");
  second_->Accept();
  RunUntilState("a", "absent");
  EXPECT_EQ(second_list_->incomplete_because, "");
}

TEST_F(ManifestPeersTest, ADirectoryThatLeftLongBeforeHoldsUpNoLaterRemoval) {
  StartBoth();
  fs::rename(root_ / "second", root_ / "disk");
  RunUntil([this] { return !second_list_->incomplete_because.empty(); });
  RunFor(3 * settle_);
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
}

TEST_F(ManifestPeersTest, WhatMovedToADirectoryThatLeftAtOnceWent) {
  settle_ = milliseconds(500);
  StartBoth();
  fs::rename(directory_ / "a.yaml", root_ / "second" / "a.yaml");
  fs::rename(root_ / "second", root_ / "disk");
  ExpectHeldByTheWhole("No such file");
}

// Another directory's news had it deliver what the records tell, as if that were all that it has:
// what a command had ended, and its file had still, was forgotten to be so, and came back.
TEST_F(ManifestPeersTest, ADirectoryThatIsBeingOpenedWasDeliveredAsInOrder) {
  StartBoth();
  memory_ = MemoryOf(*last_);
  second_memory_ = MemoryOf(*second_list_);
  source_.reset();
  second_.reset();
  last_.reset();
  second_list_.reset();
  peers_ = std::make_shared<ManifestPeers>();
  std::promise<void> may_open;
  const std::shared_future<void> opened = may_open.get_future().share();
  answers_ = [opened](const std::string&) {
    opened.wait();
    return OkStatus();
  };
  Start();
  StartSecond();
  RunFor(milliseconds(300));
  ASSERT_TRUE(SecondIsRead());
  ASSERT_TRUE(last_.has_value()) << "the other one's news had it delivered";
  EXPECT_NE(last_->incomplete_because, "");
  EXPECT_NE(StateOf("a"), "going");
  may_open.set_value();
  RunUntil([this] { return StateOf("a") == "present" && last_->incomplete_because.empty(); });
}

TEST_F(ManifestPeersTest, AnEmptyDirectoryThatIsMadeAnewIsTheKnownOneOnceItHasAnObject) {
  StartBoth();
  fs::remove(root_ / "second");
  fs::create_directory(root_ / "second");
  RunUntil([this] { return !second_list_->incomplete_because.empty() && SecondIsRead(); });
  WriteSecond("q.yaml", ConfigMapYaml("q", "1"));
  RunUntil([this] {
    return second_list_->objects.size() == 1 && second_list_->incomplete_because.empty();
  });
}

TEST_F(ManifestPeersTest, ADirectoryThatIsNoSourceAnyMoreHoldsNothing) {
  StartBoth();
  MoveIntoBrokenFile();
  ExpectHeldBySecond();
  second_.reset();
  RunUntilState("a", "absent");
}

TEST(ManifestPeersDoubts, OfAllOthersTheFileInDisorderThatWasTouchedLastIsTold) {
  ManifestPeers peers;
  for (const std::string name : {"a", "b", "c"}) peers.Join(name, [] {});
  EXPECT_FALSE(peers.DoubtsOfOthers("c").suspect.has_value());
  ManifestDoubts later;
  later.suspect = {"a", "/a/q.yaml", "holds no object", 9};
  ManifestDoubts earlier;
  earlier.suspect = {"b", "/b/q.yaml", "holds no object", 3};
  peers.Tell("b", earlier);
  EXPECT_EQ(peers.DoubtsOfOthers("c").suspect, earlier.suspect);
  peers.Tell("a", later);
  EXPECT_EQ(peers.DoubtsOfOthers("c").suspect, later.suspect);
  EXPECT_EQ(peers.DoubtsOfOthers("a").suspect, earlier.suspect) << "its own does not count";
}

}  // namespace
}  // namespace volumed
