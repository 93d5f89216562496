// Nothing is lost by absence, with the real daemon on real files: manifests that are rewritten in
// every way while the node is busy, and starts with every kind of broken source. What must not be
// lost: a pod's data on the disk, its mounts and uid, a claim's volume and what is on it.
//
// VOLUMED_REWRITES: how often the manifests are rewritten. VOLUMED_BROKEN_STARTS: how often the
// daemon starts with each kind of broken source.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/agent/provisioned_claim.h"
#include "run_numbers.h"

namespace volumed::absence_test {
namespace {

namespace fs = std::filesystem;

class AbsenceTest : public AgentTest {
 protected:
  static constexpr int kPods = 4;

  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["host-path-root"] = "[" + scratch() + "/volumes]";
    settings["enable-hostpath-provisioner"] = "true";
    fs::create_directories(manifests());
    WriteAll();
  }

  std::string Path(const std::string& file) const { return manifests() + "/" + file; }
  static std::string PodFile(int pod) { return "pod-" + std::to_string(pod) + ".yaml"; }
  // A pod without a uid, with data on the disk. The label is what a rewrite changes.
  static std::string PodText(int pod, int version) {
    const std::string name = "web-" + std::to_string(pod);
    std::string text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name +
                       "\n  labels: {version: \"" + std::to_string(version) +
                       "\"}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n"
                       "  - {name: c, image: x, volumeMounts: [{name: disk, mountPath: /d}, "
                       "{name: memory, mountPath: /m}" +
                       (pod == 0 ? ", {name: data, mountPath: /p}" : "") +
                       "]}\n"
                       "  volumes:\n  - {name: disk, emptyDir: {}}\n"
                       "  - {name: memory, emptyDir: {medium: Memory}}\n";
    if (pod == 0) text += "  - {name: data, persistentVolumeClaim: {claimName: data}}\n";
    return text;
  }
  void WriteAll() const {
    for (int pod = 0; pod < kPods; ++pod) WriteText(Path(PodFile(pod)), PodText(pod, 0));
    WriteText(Path("storage.yaml"), ProvisionedClaim());
  }
  static std::string NameOf(int pod) { return "web-" + std::to_string(pod) + "-it-node"; }

  // Starts everything and puts bytes where they must stay.
  void StartWithData() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    for (int pod = 0; pod < kPods; ++pod) {
      ASSERT_TRUE(WaitPhase(NameOf(pod), "Ready")) << Ctl({"explain", NameOf(pod)}).output;
      uids_.push_back(FindPod(NameOf(pod))->uid());
      kept_.push_back(VolumePath(uids_.back(), "empty-dir", "disk") + "/kept");
      kept_.push_back(VolumePath(uids_.back(), "empty-dir", "memory") + "/kept");
    }
    for (const auto& entry : fs::directory_iterator(scratch() + "/volumes")) {
      kept_.push_back(entry.path().string() + "/kept");
    }
    ASSERT_EQ(kept_.size(), 2U * kPods + 1);
    for (const std::string& file : kept_) WriteText(file, "bytes of " + file);
    mounts_ = MountsBelow(root());
  }
  // "" or what was lost.
  std::string Lost() {
    for (const std::string& file : kept_) {
      if (ReadText(file) != "bytes of " + file) return "lost: " + file;
    }
    for (int pod = 0; pod < kPods; ++pod) {
      const std::optional<v1::Pod> found = FindPod(NameOf(pod));
      if (!found) return "no pod " + NameOf(pod);
      if (found->uid() != uids_[static_cast<size_t>(pod)]) return NameOf(pod) + ": another uid";
      if (found->phase() != "Ready") {
        return NameOf(pod) + " is " + found->phase() + "\n" + Ctl({"explain", NameOf(pod)}).output;
      }
    }
    return MountsBelow(root()) == mounts_ ? "" : "other mounts";
  }
  v1::Source Manifests() {
    const v1::GetSourcesResponse sources = Sources();
    for (const v1::Source& source : sources.sources()) {
      if (source.name() == "manifests:" + manifests()) return source;
    }
    return {};
  }

  std::vector<std::string> uids_;
  std::vector<std::string> kept_;
  std::vector<std::string> mounts_;
};

// ---- rewrites -----------------------------------------------------------------------------------

using Milli = std::chrono::milliseconds;
void Pause(int milliseconds) { std::this_thread::sleep_for(Milli(milliseconds)); }

class RewriteTest : public AbsenceTest {
 protected:
  static void Append(const std::string& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  void Git(const std::string& command) const {
    const CommandResult result =
        RunCommand({"/usr/bin/git", "-C", manifests(), "-c", "user.name=t", "-c", "user.email=t@t",
                    "-c", "init.defaultBranch=main", command});
    EXPECT_EQ(result.exit_status, 0) << result.output;
  }

  // One of ten ways in which a file of a directory is written anew.
  void Rewrite(int way, const std::string& file, const std::string& text, int pause) {
    const std::string path = Path(file);
    const size_t half = text.size() / 2;
    switch (way) {
      case 0:  // truncated and written
        WriteText(path, text);
        return;
      case 1:  // a slow writer
      {
        const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0644);
        EXPECT_EQ(::write(fd, text.data(), half), static_cast<ssize_t>(half));
        Pause(pause);
        EXPECT_EQ(::write(fd, text.data() + half, text.size() - half),
                  static_cast<ssize_t>(text.size() - half));
        ::close(fd);
        return;
      }
      case 2:  // unlinked, and written later
        ::unlink(path.c_str());
        Pause(pause);
        WriteText(path, text);
        return;
      case 3:  // appended in pieces, each closed
        ::unlink(path.c_str());
        Append(path, text.substr(0, half));
        Pause(pause);
        Append(path, text.substr(half));
        return;
      case 4:  // an editor that renames the old file away
        fs::rename(path, path + "~");
        Pause(pause);
        WriteText(path, text);
        ::unlink((path + "~").c_str());
        return;
      case 5:  // rsync: a hidden file, renamed
        WriteText(Path("." + file + ".Xa83kd"), text);
        Pause(pause);
        fs::rename(Path("." + file + ".Xa83kd"), path);
        return;
      case 6:  // ln -sf, to a target that comes later
        ::unlink(path.c_str());
        fs::create_symlink(scratch() + "/targets/" + file, path);
        Pause(pause);
        fs::create_directories(scratch() + "/targets");
        WriteText(scratch() + "/targets/" + file, text);
        return;
      case 7:  // a mounted config map
      {
        const std::string next = Path("..data-" + std::to_string(++serial_));
        fs::create_directory(next);
        WriteText(next + "/" + file, text);
        fs::create_symlink(fs::path(next).filename(), Path("..data_tmp"));
        fs::rename(Path("..data_tmp"), Path("..data"));
        Pause(pause);
        fs::create_symlink("..data/" + file, Path("..link"));
        fs::rename(Path("..link"), path);
        // Others lead through it no more.
        fs::rename(next + "/" + file, path);
        fs::remove(Path("..data"));
        fs::remove_all(next);
        return;
      }
      case 8:  // git checkout: unlinked and created, all of them
        for (int pod = 0; pod < kPods; ++pod) ::unlink(Path(PodFile(pod)).c_str());
        Pause(pause);
        for (int pod = 0; pod < kPods; ++pod) {
          WriteText(Path(PodFile(pod)), PodFile(pod) == file ? text : PodText(pod, serial_));
        }
        return;
      case 9:  // broken, and mended later
        WriteText(path, text.substr(0, half) + "\n{{{ not yet");
        Pause(pause);
        WriteText(path, text);
        return;
      default:
        FAIL();
    }
  }
  int serial_ = 0;
};

TEST_F(RewriteTest, ManifestsThatAreRewrittenInTenWaysUnderLoadLoseNothing) {
  settings["removal-settle"] = "3s";
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  std::atomic<bool> end = false;
  std::vector<std::thread> load;
  for (int i = 0; i < 4; ++i) {
    load.emplace_back([&end, i, this] {
      for (unsigned n = 0; !end; ++n) {
        // Also in the directory: files of nobody, and of a writer that is never done.
        const std::string file = Path((i % 2 == 0 ? "noise-" : ".noise-") + std::to_string(i));
        WriteText(file, std::string(n % 5000, 'x'));
        ::unlink(file.c_str());
      }
    });
  }
  const auto rewrites = static_cast<int>(NumberOfRun("VOLUMED_REWRITES", 20));
  std::mt19937 random(static_cast<unsigned>(NumberOfRun("VOLUMED_SEED", 1)));
  int made = 0;
  for (; made < rewrites && !HasFailure(); ++made) {
    const int way = made % 10;
    const int pod = static_cast<int>(random() % kPods);
    const bool is_storage = random() % 5 == 0 && way != 7 && way != 8;
    SCOPED_TRACE("rewrite " + std::to_string(made) + ", way " + std::to_string(way));
    Rewrite(way, is_storage ? "storage.yaml" : PodFile(pod),
            is_storage ? ProvisionedClaim() + "# " + std::to_string(made) + "\n"
                       : PodText(pod, made + 1),
            static_cast<int>(random() % 200));
    EXPECT_EQ(Lost(), "");
  }
  end = true;
  for (std::thread& thread : load) thread.join();
  // Longer than the settle time: what was to go has gone.
  std::this_thread::sleep_for(std::chrono::seconds(4));
  EXPECT_EQ(Lost(), "");
  EXPECT_TRUE(Eventually(kPatience, [&] { return Manifests().absent().empty(); }))
      << Ctl({"sources"}).output;
  EXPECT_EQ(Manifests().incomplete_because(), "") << Ctl({"sources"}).output;
  std::cout << made << " rewrites in ten ways, nothing lost\n";
}

// ---- starts with a broken source ----------------------------------------------------------------

struct Breakage {
  const char* name;
  // Makes the source broken; `test` has its paths.
  void (*spoil)(const std::string& directory, const std::string& aside);
  void (*mend)(const std::string& directory, const std::string& aside);
};

void MoveBack(const std::string& directory, const std::string& aside) {
  fs::remove_all(directory);
  fs::rename(aside, directory);
}
void CopyAside(const std::string& directory, const std::string& aside) {
  fs::copy(directory, aside, fs::copy_options::recursive);
}
// Each file of `aside` again, in the directory that is there.
void Restore(const std::string& directory, const std::string& aside) {
  for (const auto& entry : fs::directory_iterator(directory)) fs::remove_all(entry.path());
  for (const auto& entry : fs::directory_iterator(aside)) {
    fs::copy_file(entry.path(), fs::path(directory) / entry.path().filename());
  }
  fs::remove_all(aside);
}
template <typename Spoil>
void SpoilEach(const std::string& directory, const std::string& aside, Spoil spoil) {
  CopyAside(directory, aside);
  for (const auto& entry : fs::directory_iterator(aside)) {
    spoil(directory + "/" + entry.path().filename().string());
  }
}

const Breakage kBreakages[] = {
    {"TheDirectoryIsMissing",
     [](const std::string& directory, const std::string& aside) { fs::rename(directory, aside); },
     MoveBack},
    {"TheDirectoryIsEmpty",
     [](const std::string& directory, const std::string& aside) {
       SpoilEach(directory, aside, [](const std::string& file) { fs::remove(file); });
     },
     Restore},
    {"AnotherDirectoryIsMountedOver",
     [](const std::string& directory, const std::string&) {
       ASSERT_EQ(::mount("other", directory.c_str(), "tmpfs", 0, "size=1m"), 0);
       WriteText(directory + "/other.yaml",
                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n");
     },
     [](const std::string& directory, const std::string&) {
       ASSERT_EQ(::umount2(directory.c_str(), 0), 0) << "the daemon keeps it busy";
     }},
    {"AnotherDirectoryIsInItsPlace",
     [](const std::string& directory, const std::string& aside) {
       fs::rename(directory, aside);
       fs::create_directory(directory);
       fs::copy_file(aside + "/pod-1.yaml", directory + "/pod-1.yaml");
     },
     MoveBack},
    {"FilesCannotBeRead",
     [](const std::string& directory, const std::string& aside) {
       // A file whose content the kernel refuses to give: reading /proc/self/mem gives EIO.
       SpoilEach(directory, aside, [](const std::string& file) {
         fs::remove(file);
         WriteText(file, "");
         ASSERT_EQ(::mount("/proc/self/mem", file.c_str(), nullptr, MS_BIND, nullptr), 0);
       });
     },
     [](const std::string& directory, const std::string& aside) {
       for (const auto& entry : fs::directory_iterator(directory)) {
         ::umount2(entry.path().c_str(), MNT_DETACH);
       }
       Restore(directory, aside);
     }},
    {"FilesAreTruncated",
     [](const std::string& directory, const std::string& aside) {
       SpoilEach(directory, aside, [](const std::string& file) {
         const auto size = fs::file_size(file);
         fs::resize_file(file, file.back() % 2 == 0 ? 0 : size / 3);
       });
     },
     Restore},
    {"FilesAreLinksThatLeadNowhere",
     [](const std::string& directory, const std::string& aside) {
       SpoilEach(directory, aside, [](const std::string& file) {
         fs::remove(file);
         fs::create_symlink("/nowhere/at/all", file);
       });
     },
     Restore},
    {"FilesAreLoopsOfLinks",
     [](const std::string& directory, const std::string& aside) {
       SpoilEach(directory, aside, [](const std::string& file) {
         fs::remove(file);
         fs::create_symlink(fs::path(file).filename(), file);
       });
     },
     Restore},
    {"FilesAreTooLarge",
     [](const std::string& directory, const std::string& aside) {
       SpoilEach(directory, aside,
                 [](const std::string& file) { fs::resize_file(file, 11 * 1024 * 1024); });
     },
     Restore},
    {"FilesAreDirectories",
     [](const std::string& directory, const std::string& aside) {
       SpoilEach(directory, aside, [](const std::string& file) {
         fs::remove(file);
         fs::create_directory(file);
       });
     },
     Restore},
    {"HalfOfTheFilesAreGoneAndOneIsBroken",
     [](const std::string& directory, const std::string& aside) {
       CopyAside(directory, aside);
       fs::remove(directory + "/pod-0.yaml");
       fs::remove(directory + "/storage.yaml");
       WriteText(directory + "/pod-1.yaml", "kind: [");
     },
     Restore},
};

class BrokenStartTest : public AbsenceTest, public ::testing::WithParamInterface<Breakage> {};

TEST_P(BrokenStartTest, LosesNothing) {
  settings["removal-settle"] = "100ms";
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  const std::string aside = scratch() + "/aside";
  const auto starts = static_cast<int>(NumberOfRun("VOLUMED_BROKEN_STARTS", 1));
  int made = 0;
  for (; made < starts && !HasFailure(); ++made) {
    SCOPED_TRACE("start " + std::to_string(made));
    KillAgent();
    GetParam().spoil(manifests(), aside);
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    EXPECT_NE(Manifests().incomplete_because(), "") << Ctl({"sources"}).output;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    // A pod is Pending until the new agent has compared what is there, which on a busy machine
    // takes longer than the settle time. What was lost stays lost.
    for (int pod = 0; pod < kPods; ++pod) EXPECT_TRUE(WaitPhase(NameOf(pod), "Ready"));
    EXPECT_EQ(Lost(), "") << Ctl({"sources"}).output;
    // The same once it is as it was, while the daemon runs.
    GetParam().mend(manifests(), aside);
    EXPECT_TRUE(Eventually(kPatience, [&] { return Manifests().absent().empty(); }))
        << Ctl({"sources"}).output;
    EXPECT_EQ(Lost(), "") << Ctl({"sources"}).output;
  }
  std::cout << made << " starts, nothing lost\n";
}

INSTANTIATE_TEST_SUITE_P(Sources, BrokenStartTest, ::testing::ValuesIn(kBreakages),
                         [](const auto& breakage) { return std::string(breakage.param.name); });

// ---- an edit of a pod's volumes -----------------------------------------------------------------

class EditedPodTest : public AbsenceTest {
 protected:
  void StartAndEdit() {
    settings["removal-settle"] = "3s";
    ASSERT_NO_FATAL_FAILURE(StartWithData());
    const std::string edited = Replaced(PodText(1, 0), "- {name: disk, emptyDir: {}}",
                                        "- {name: disk, emptyDir: {sizeLimit: 1Gi}}");
    ASSERT_NE(edited, PodText(1, 0));
    WriteText(Path(PodFile(1)), edited);
    ASSERT_TRUE(Eventually(kPatience, [&] { return Manifests().replaced_size() == 1; }))
        << Ctl({"sources"}).output;
  }
};

TEST_F(EditedPodTest, IsShownBeforeItIsReplacedAndAnEditTakenBackReplacesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartAndEdit());
  const std::string shown = Ctl({"sources"}).output;
  EXPECT_NE(shown.find("Pod default/" + NameOf(1) + ": is replaced in "), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("goes with it: disk"), std::string::npos) << shown;
  const std::string explained = Ctl({"explain", NameOf(1)}).output;
  EXPECT_NE(explained.find("is replaced in "), std::string::npos) << explained;
  WriteText(Path(PodFile(1)), PodText(1, 0));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Manifests().replaced_size() == 0; }));
  Pause(4000);
  EXPECT_EQ(Lost(), "");
}

TEST_F(EditedPodTest, KeepsItsDataWhileAProcessHoldsItAndIsAnotherOneAfterwards) {
  Sleeper container;
  ASSERT_NO_FATAL_FAILURE(StartAndEdit());
  ASSERT_EQ(Ctl({"hold", NameOf(1), "--pid", std::to_string(container.pid())}).exit_status, 0);
  ASSERT_TRUE(WaitPhase(NameOf(1), "Terminating")) << Ctl({"explain", NameOf(1)}).output;
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  Pause(4000);
  EXPECT_EQ(FindPod(NameOf(1))->uid(), uids_[1]) << Ctl({"explain", NameOf(1)}).output;
  EXPECT_EQ(ReadText(kept_[2]), "bytes of " + kept_[2]);
  container.End();
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const std::optional<v1::Pod> now = FindPod(NameOf(1));
    return now && now->uid() != uids_[1] && now->phase() == "Ready";
  })) << Ctl({"explain", NameOf(1)}).output;
  EXPECT_FALSE(Exists(kept_[2]));
  EXPECT_EQ(ReadText(kept_[0]), "bytes of " + kept_[0]);
}

// ---- the administrator's word -------------------------------------------------------------------

using AcceptTest = AbsenceTest;

TEST_F(AcceptTest, AcceptShowsWhatGoesAsksForYesAndTakesItAway) {
  settings["removal-settle"] = "100ms";
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  WriteText(Path("pod-1.yaml"), "kind: [");
  ASSERT_TRUE(Eventually(kPatience, [&] { return Manifests().absent_size() == 1; }));
  const std::string source = "manifests:" + manifests();
  const std::string shown = Ctl({"sources"}).output;
  EXPECT_NE(shown.find("INCOMPLETE: " + Path("pod-1.yaml")), std::string::npos) << shown;
  EXPECT_NE(shown.find("Pod default/" + NameOf(1) + ": held"), std::string::npos) << shown;
  EXPECT_NE(Ctl({"explain", NameOf(1)}).output.find("source accept"), std::string::npos);

  const CommandResult dry = Ctl({"source", "accept", source, "--dry-run"});
  EXPECT_EQ(dry.exit_status, 0) << dry.output;
  EXPECT_NE(dry.output.find(NameOf(1)), std::string::npos) << dry.output;
  EXPECT_NE(dry.output.find("disk"), std::string::npos) << dry.output;
  const CommandResult refused = Ctl({"source", "accept", source});
  EXPECT_EQ(refused.exit_status, 1) << refused.output;
  EXPECT_NE(refused.output.find("--yes"), std::string::npos) << refused.output;
  EXPECT_EQ(Lost(), "");

  const CommandResult accepted = Ctl({"source", "accept", source, "--yes"});
  EXPECT_EQ(accepted.exit_status, 0) << accepted.output;
  EXPECT_TRUE(WaitGone(NameOf(1))) << Ctl({"sources"}).output;
  EXPECT_FALSE(Exists(kept_[2]));
  EXPECT_EQ(ReadText(kept_[0]), "bytes of " + kept_[0]);
  EXPECT_EQ(Ctl({"source", "forget", source}).exit_status, 1) << "it is configured";
  EXPECT_EQ(Ctl({"source", "accept", "manifests:/none"}).exit_status, 3);
}

TEST_F(AcceptTest, SourcesShowsWhatIsAboutToGoAndWhen) {
  settings["removal-settle"] = "1h";
  ASSERT_NO_FATAL_FAILURE(StartWithData());
  ASSERT_EQ(::unlink(Path("pod-1.yaml").c_str()), 0);
  ASSERT_TRUE(Eventually(kPatience, [&] { return Manifests().absent_size() == 1; }));
  const std::string shown = Ctl({"sources"}).output;
  EXPECT_NE(shown.find("Pod default/" + NameOf(1) + ": going, goes in 3"), std::string::npos)
      << shown;
  EXPECT_EQ(shown.find("INCOMPLETE"), std::string::npos) << shown;
  EXPECT_EQ(Lost(), "");
  // A command is never delayed; its pod is refused as long as its source may have it.
  EXPECT_TRUE(Delete("Pod", NameOf(1)).ok());
  EXPECT_TRUE(WaitPhase(NameOf(1), "Refused")) << Ctl({"explain", NameOf(1)}).output;
  EXPECT_FALSE(Exists(kept_[2]));
}

}  // namespace
}  // namespace volumed::absence_test
