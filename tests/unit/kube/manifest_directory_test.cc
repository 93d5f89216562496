// The manifest directory on real files: what it reads, and when. What it makes of absence is in
// manifest_absence_test.cc.
#include <atomic>

#include "unit/kube/manifest_directory_fixture.h"

namespace volumed {
namespace {

TEST_F(ManifestDirectoryTest, ReadsWhatIsThereAtTheStart) {
  fs::create_directory(directory_);
  Write("a.yaml", ConfigMapYaml("a", "1"));
  Write("b.json", EncodeObjectJson(DecodeOne(ConfigMapYaml("b", "1"))));
  Write("p.yml", PodYaml("web", ""));
  Write(".hidden.yaml", ConfigMapYaml("hidden", "1"));
  Write("notes.txt", "nothing");
  Start();
  RunUntil([this] { return last_->complete; });
  EXPECT_EQ(Names(), "a b web-n1");
  EXPECT_EQ(Problems(), "");
  EXPECT_EQ(last_->source, "manifests:" + directory_.string());
}

// A manifest that was renamed to .txt was gone without a word.
TEST_F(ManifestDirectoryTest, KnowsTheFilesThatItDoesNotReadForTheirNames) {
  const auto unread = [this] { return source_->UnreadFiles(); };
  using Names = std::set<std::string>;
  fs::create_directory(directory_);
  fs::create_directory(directory_ / "sub");
  Write(".hidden", "");
  Write("notes.txt", "");
  Write("a.yaml", ConfigMapYaml("a", "1"));
  Start();
  RunUntil([this] { return last_->complete; });
  EXPECT_EQ(unread(), Names({"notes.txt"}));
  fs::rename(directory_ / "a.yaml", directory_ / "a.yaml.txt");
  RunUntil([&] { return unread() == Names({"a.yaml.txt", "notes.txt"}); });
  fs::remove(directory_ / "notes.txt");
  fs::rename(directory_ / "a.yaml.txt", directory_ / "a.yaml");
  RunUntil([&] { return unread().empty(); });
}

TEST_F(ManifestDirectoryTest, SeesFilesWrittenReplacedLinkedAndUnlinked) {
  MakeAndStart();
  RunUntil([this] { return last_->complete; });
  Write("a.yaml", ConfigMapYaml("a", "1"));
  RunUntil([this] { return Names() == "a"; });
  Replace("a.yaml", ConfigMapYaml("a2", "1"));
  RunUntil([this] { return Names() == "a2"; });
  WriteFile(root_ / "outside", ConfigMapYaml("hard", "1"));
  fs::create_hard_link(root_ / "outside", directory_ / "h.yaml");
  RunUntil([this] { return Names() == "a2 hard"; });
  fs::remove(directory_ / "a.yaml");
  RunUntil([this] { return Names() == "hard"; });
  fs::rename(directory_ / "h.yaml", root_ / "away");
  RunUntil([this] { return Names().empty(); });
  EXPECT_TRUE(last_->complete);
}

TEST_F(ManifestDirectoryTest, AFileThatTurnsBadOrEmptyKeepsItsLastGoodObjects) {
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("x", "1") + "---\n" + ConfigMapYaml("w", "1"));
  RunUntil([this] { return Names() == "x w"; });
  Write("a.yaml", "");
  RunUntil([this] { return HasProblem("holds no object; 2 objects of its last good state stay"); });
  EXPECT_EQ(Names(), "x w");
  Write("a.yaml", "a: [b");
  RunUntil([this] { return HasProblem("not valid YAML"); });
  EXPECT_EQ(Names(), "x w");
  // One document is right again and counts, the other is broken and stays as it was.
  Write("a.yaml", ConfigMapYaml("x", "2") + "---\nkind: [");
  RunUntil([this] { return HasProblem("document 2"); });
  EXPECT_EQ(Names(), "x w");
  EXPECT_EQ(std::get<ConfigMapObject>(*last_->objects[0].object).data.at("k"), "2");
  // A file that is right all through and lacks the object takes it away.
  Write("a.yaml", ConfigMapYaml("x", "3"));
  RunUntil([this] { return Names() == "x"; });
  EXPECT_EQ(Problems(), "");
}

// Each way in which programs save a file; none of them is a deletion. The settle time is such that
// the test would not see its end.
TEST_F(ManifestDirectoryTest, ASaveThatMakesTheFileAnewIsAChange) {
  settle_ = std::chrono::hours(1);
  MakeAndStart();
  const fs::path file = directory_ / "a.yaml";
  const fs::path backup = directory_ / "a.yaml~";
  const auto create = [&](const std::string& value) { WriteFile(file, ConfigMapYaml("a", value)); };
  const std::vector<std::pair<const char*, std::function<void(const std::string&)>>> saves = {
      {"vim, backupcopy=no",
       [&](const std::string& value) {
         Write("4913", "");
         fs::remove(directory_ / "4913");
         fs::rename(file, backup);
         create(value);
         fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
         fs::remove(backup);
       }},
      {"emacs, backup by renaming",
       [&](const std::string& value) {
         fs::create_symlink("me@host.1234:5678", directory_ / ".#a.yaml");
         fs::rename(file, backup);
         create(value);
         fs::remove(directory_ / ".#a.yaml");
       }},
      {"emacs, file-precious-flag",
       [&](const std::string& value) {
         fs::copy_file(file, backup, fs::copy_options::overwrite_existing);
         Replace("a.yaml", ConfigMapYaml("a", value));
       }},
      {"unlink and create",
       [&](const std::string& value) {
         fs::remove(file);
         create(value);
       }},
      {"unlink, and create later",
       [&](const std::string& value) {
         fs::remove(file);
         Settle();  // the unlink was seen, and a list delivered
         EXPECT_TRUE(Has("a"));
         create(value);
       }},
  };
  create("start");
  RunUntil([this] { return Names() == "a"; });
  history_.clear();
  for (const auto& [name, save] : saves) {
    SCOPED_TRACE(name);
    save(name);
    RunUntil([this, value = std::string(name)] {
      for (const ObjectWithOrigin& object : last_->objects) {
        const auto* map = std::get_if<ConfigMapObject>(object.object.get());
        if (map != nullptr && map->data.at("k") == value) return true;
      }
      return false;
    });
    EXPECT_EQ(Problems(), "");
  }
  for (const std::string& names : history_) {
    EXPECT_EQ((" " + names + " ").find(" a ") == std::string::npos, false) << "'" << names << "'";
  }
}

TEST_F(ManifestDirectoryTest, AnUnlinkThatLastsDeletesAfterTheSettleTime) {
  settle_ = std::chrono::milliseconds(300);
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("a", "1"));
  RunUntil([this] { return Names() == "a"; });
  const TimePoint start = scheduler_->clock().Now();
  fs::remove(directory_ / "a.yaml");
  RunUntil([this] { return Names().empty(); });
  EXPECT_GE(scheduler_->clock().Now() - start, settle_);
  // The next file of that name begins anew.
  Write("a.yaml", ConfigMapYaml("b", "1"));
  RunUntil([this] { return Names() == "b"; });
  EXPECT_EQ(Problems(), "");
}

TEST_F(ManifestDirectoryTest, EachUnlinkHasTheWholeSettleTime) {
  settle_ = std::chrono::milliseconds(400);
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("a", "1"));
  RunUntil([this] { return Names() == "a"; });
  fs::remove(directory_ / "a.yaml");
  Settle();
  Write("a.yaml", ConfigMapYaml("a", "2"));
  Settle();
  const TimePoint start = scheduler_->clock().Now();
  fs::remove(directory_ / "a.yaml");
  RunUntil([this] { return !Has("a"); });
  EXPECT_GE(scheduler_->clock().Now() - start, settle_);
}

TEST_F(ManifestDirectoryTest, AFileThatIsBackButBadKeepsItsObjects) {
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("x", "1"));
  RunUntil([this] { return Names() == "x"; });
  fs::remove(directory_ / "a.yaml");
  Write("a.yaml", "a: [b");
  RunUntil([this] { return HasProblem("not valid YAML"); });
  // Longer than the settle time: only then has the timer had its say.
  scheduler_->PostAfter(5 * settle_, [this] { scheduler_->Stop(); });
  scheduler_->Run();
  Settle();
  EXPECT_TRUE(Has("x"));
}

TEST_F(ManifestDirectoryTest, ARenamedFileHandsItsObjectsOverAtOnce) {
  settle_ = std::chrono::hours(1);
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("x", "1"));
  RunUntil([this] { return Names() == "x"; });
  history_.clear();
  fs::rename(directory_ / "a.yaml", directory_ / "b.yaml");
  RunUntil([this] {
    return last_->objects.size() == 1 && last_->objects[0].file == (directory_ / "b.yaml").string();
  });
  EXPECT_EQ(history_.count(""), 0u);
  EXPECT_EQ(history_.count("x x"), 0u);
}

TEST_F(ManifestDirectoryTest, ADirectoryMadeAnewWithTheSameFilesIsAChange) {
  settle_ = std::chrono::hours(1);
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("a", "1"));
  Write("b.yaml", ConfigMapYaml("b", "1"));
  RunUntil([this] { return Names() == "a b"; });
  fs::remove_all(directory_);
  fs::create_directory(directory_);
  Write("a.yaml", ConfigMapYaml("a2", "1"));
  RunUntil([this] { return Has("a2"); });
  EXPECT_TRUE(Has("b"));
}

TEST_F(ManifestDirectoryTest, ASlowWriterIsWaitedFor) {
  MakeAndStart();
  Write("a.yaml", ConfigMapYaml("x", "1") + "---\n" + ConfigMapYaml("w", "1"));
  RunUntil([this] { return Names() == "x w"; });
  {
    std::ofstream slow(directory_ / "a.yaml", std::ios::trunc);
    // A right manifest, but only the first half of it.
    slow << ConfigMapYaml("x", "2") << std::flush;
    Settle();
    EXPECT_TRUE(Has("w"));
    // Nor does a look at everything take the half for the whole.
    source_->Accept();
    Settle();
    EXPECT_FALSE(HasProblem("a.yaml"));
    slow << "---\n" << ConfigMapYaml("z", "1");
  }
  RunUntil([this] { return Has("z") && !Has("w"); });
}

TEST_F(ManifestDirectoryTest, ADirectoryThatIsNotThereYetIsAwaited) {
  directory_ = root_ / "deep" / "manifests";
  Start();
  RunUntil([] { return true; });
  EXPECT_FALSE(last_->complete);
  EXPECT_TRUE(HasProblem("never read so far"));
  fs::create_directory(root_ / "deep");
  fs::create_directory(directory_);
  Write("a.yaml", ConfigMapYaml("a", "1"));
  RunUntil([this] { return last_->complete && Names() == "a"; });
  EXPECT_EQ(Problems(), "");
}

// A mount over it is no event of inotify: it was noticed by the next start.
TEST_F(ManifestDirectoryTest, AMountAnywhereOnItsWayMakesItLookAgainAndNoOtherDoes) {
  fs::create_directories(root_ / "disk" / "real");
  fs::create_directory_symlink("disk/real", directory_);
  std::atomic<int> looks = 0;
  answers_ = [&](const std::string&) {
    ++looks;
    return OkStatus();
  };
  Start();
  RunUntil([this] { return last_->complete && IsRead(); });
  Settle();
  int before = looks;
  source_->MountsChanged({root_ / "elsewhere", root_ / "disk" / "real" / "below", root_ / "dis"});
  Settle();
  EXPECT_EQ(looks, before);
  for (const fs::path& place : {directory_, root_, root_ / "disk", root_ / "disk" / "real"}) {
    before = looks;
    source_->MountsChanged({root_ / "elsewhere", place});
    RunUntil([&] { return looks > before && IsRead(); });
  }
}

// Its thread waited for it, and nothing else of the source was done.
TEST_F(ManifestDirectoryTest, ADirectoryThatDoesNotAnswerIsLeftAloneAndIsReadOnceItDoes) {
  fs::create_directory(directory_);
  Write("a.yaml", ConfigMapYaml("a", "1"));
  std::atomic<bool> answers = false;
  answers_ = [&](const std::string& directory) -> Status {
    if (answers) return OkStatus();
    return Error::NotApplied(Code::kDeadlineExceeded, directory + " does not answer");
  };
  Start();
  RunUntil([this] { return HasProblem("does not answer; never read so far"); });
  EXPECT_EQ(last_->incomplete_because, directory_.string() + " does not answer");
  EXPECT_FALSE(last_->complete);
  answers = true;
  source_->MountsChanged({directory_});  // somebody has unmounted what was dead
  RunUntil([this] { return last_->complete && Names() == "a"; });
  answers = false;
  source_->MountsChanged({directory_});
  RunUntil([this] { return HasProblem("does not answer; its last list stays"); });
  EXPECT_EQ(Names(), "a");
  answers = true;  // without an event: it is tried again
  RunUntil([this] { return IsRead() && !HasProblem("does not answer"); });
}

TEST_F(ManifestDirectoryTest, FollowsLinksToOtherDirectories) {
  MakeAndStart();
  fs::create_directory(root_ / "elsewhere");
  WriteFile(root_ / "elsewhere" / "target", ConfigMapYaml("a", "1"));
  fs::create_symlink(root_ / "elsewhere" / "target", directory_ / "link.yaml");
  RunUntil([this] { return Names() == "a"; });
  WriteFile(root_ / "elsewhere" / "new", ConfigMapYaml("b", "1"));
  fs::rename(root_ / "elsewhere" / "new", root_ / "elsewhere" / "target");
  RunUntil([this] { return Names() == "b"; });
  fs::remove(root_ / "elsewhere" / "target");
  RunUntil([this] { return HasProblem("cannot follow its link"); });
  EXPECT_EQ(Names(), "b");
  fs::remove(directory_ / "link.yaml");
  RunUntil([this] { return Names().empty(); });
}

TEST_F(ManifestDirectoryTest, FollowsTheSwapOfAMountedConfigMap) {
  fs::create_directory(directory_);
  fs::create_directory(directory_ / "..1");
  WriteFile(directory_ / "..1" / "a.yaml", ConfigMapYaml("old", "1"));
  fs::create_symlink("..1", directory_ / "..data");
  fs::create_symlink("..data/a.yaml", directory_ / "a.yaml");
  Start();
  RunUntil([this] { return last_->complete && Names() == "old"; });
  fs::create_directory(directory_ / "..2");
  WriteFile(directory_ / "..2" / "a.yaml", ConfigMapYaml("new", "1"));
  fs::create_symlink("..2", directory_ / "..data_tmp");
  fs::rename(directory_ / "..data_tmp", directory_ / "..data");
  RunUntil([this] { return Names() == "new"; });
}

TEST_F(ManifestDirectoryTest, AWarningNamesAStaticPodAsItIsCalledOnThisNode) {
  fs::create_directory(directory_);
  Replace("p.yaml", PodYaml("p", "", "  volume: [{name: v, emptyDir: {}}]\n"));
  Start();
  RunUntil([this] { return last_->complete && IsRead(); });
  EXPECT_EQ(Problems(), "");
  ASSERT_EQ(last_->warnings.size(), 1U);
  EXPECT_EQ(last_->warnings.front().object, "Pod default/p-n1");
  EXPECT_EQ(last_->warnings.front().field_path, "spec.volume");
}

// What was wrong before: such a name went into protobuf strings, and no answer with it arrived.
TEST_F(ManifestDirectoryTest, AFileNameThatIsNotUtf8WasToldAsItIs) {
  MakeAndStart();
  RunUntil([this] { return last_->complete; });
  Write("\xff\x1b.yaml", "{");
  RunUntil([this] { return !last_->problems.empty(); });
  const std::string shown = directory_.string() + "/\\xff\\x1b.yaml";
  for (const DecodeProblem& problem : last_->problems) EXPECT_EQ(problem.file, shown);
  EXPECT_TRUE(last_->incomplete_because.starts_with(shown)) << last_->incomplete_because;
  Write("\xff\x1b.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  EXPECT_EQ(last_->objects.front().file, shown);
  // Over a start, and until it goes.
  Restart();
  EXPECT_EQ(StateOf("a"), "present");
  fs::remove(directory_ / "\xff\x1b.yaml");
  RunUntilState("a", "absent");
}

TEST_F(ManifestDirectoryTest, WhatIsNoFileIsAProblemAndNothingHangs) {
  fs::create_directory(directory_);
  ASSERT_EQ(::mkfifo((directory_ / "fifo.yaml").c_str(), 0600), 0);
  fs::create_directory(directory_ / "dir.yaml");
  Write("good.yaml", ConfigMapYaml("good", "1"));
  Start();
  RunUntil([this] { return last_->complete; });
  EXPECT_EQ(Names(), "good");
  EXPECT_TRUE(HasProblem("fifo.yaml: is not a regular file"));
  EXPECT_TRUE(HasProblem("dir.yaml: is not a regular file"));
}

}  // namespace
}  // namespace volumed
