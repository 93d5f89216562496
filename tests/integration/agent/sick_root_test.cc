// The agent's root on a disk that turns read-only, refuses removals, or fails with EIO: what is
// mounted still goes, set-up says why not, the agent stays, and what is left goes once the disk is
// well again.
#include <iostream>
#include <memory>

#include "integration/agent/root_disk.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::sick_root_test {
namespace {

constexpr int64_t kDiskBytes = 48 << 20;
// The last tries of a back-off are minutes apart.
constexpr Milliseconds kBackoffPatience = std::chrono::seconds(200);

class SickRootTest : public RootDiskTest {
 protected:
  std::vector<std::string> MountsOf(const std::string& uid) {
    return MountsBelow(root() + "/pods/" + uid);
  }
  // The pod is going, nothing of it is mounted, and it is said what stays and who must act.
  void ExpectUnmountedAndExplained(const std::string& pod, const std::string& uid,
                                   const std::string& why) {
    EXPECT_TRUE(Eventually(kPatience, [&] { return MountsOf(uid).empty(); }))
        << MountsOf(uid).front() << "\n"
        << Explain(pod);
    EXPECT_TRUE(WaitPhase(pod, "Terminating"));
    EXPECT_TRUE(Eventually(kPatience, [&] { return Explains(pod, why); })) << Explain(pod);
    EXPECT_TRUE(Explains(pod, "an administrator")) << Explain(pod);
    EXPECT_TRUE(Eventually(kPatience, [&] { return !Explains(pod, "nobody: retried"); }))
        << Explain(pod);
    EXPECT_TRUE(Exists(root() + "/pods/" + uid));
  }
};

class ReadOnlyRootTest : public SickRootTest {
 protected:
  void SetUp() override {
    SickRootTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeImage(kDiskBytes, {}));
    MountDisk(image(), "errors=remount-ro");
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(StartWithExamplePod());
  }
  // As after an I/O error with errors=remount-ro: no more writes, while mounts and open files stay.
  // (A plain remount,ro is refused while the records are open.) A directory that is not on the disk
  // by then is "Bad message" to whoever reads it.
  void AbortDisk() {
    ASSERT_EQ(RunCommand({"sync", "-f", disk()}).exit_status, 0);
    const CommandResult aborted = RunCommand({"mount", "-o", "remount,abort", disk()});
    ASSERT_EQ(aborted.exit_status, 0) << aborted.output;
  }
};

TEST_F(ReadOnlyRootTest, MountsGoAndWhatIsLeftGoesOnceItIsWritableAgain) {
  // A directory that is found empty at a start holds everything.
  WriteText(manifests() + "/keep.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep}\n");
  WriteText(manifests() + "/other.yaml", AnotherPod("other"));
  ASSERT_TRUE(WaitPhase("other", "Ready")) << Explain("other");
  ASSERT_FALSE(MountsOf("uid-other").empty());
  ASSERT_NO_FATAL_FAILURE(AbortDisk());

  // One by its manifest, one by command.
  ASSERT_EQ(::unlink((manifests() + "/other.yaml").c_str()), 0);
  const CommandResult deleted = Ctl({"delete", "pod", "web"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_NE(deleted.output.find("Read-only file system"), std::string::npos) << deleted.output;
  EXPECT_NE(deleted.output.find("restart"), std::string::npos) << deleted.output;
  ExpectUnmountedAndExplained("web", kExampleUid, "Read-only file system");
  ExpectUnmountedAndExplained("other", "uid-other", "Read-only file system");
  EXPECT_TRUE(MountsBelow(root() + "/pods").empty());

  // Nothing new comes, and it is said why.
  WriteText(manifests() + "/late.yaml", AnotherPod("late"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Explains("late", "Read-only file system"); }))
      << Explain("late");
  const grpc::Status applied = Apply(ExampleObjects("changed"));
  EXPECT_NE(applied.error_message().find("Read-only file system"), std::string::npos);
  const grpc::Status secret = Delete("Secret", "web-secret");
  EXPECT_NE(secret.error_message().find("Read-only file system"), std::string::npos);
  ExpectAgentAnswers();
  ASSERT_EQ(::unlink((manifests() + "/late.yaml").c_str()), 0);

  ASSERT_NO_FATAL_FAILURE(RepairAndMountAnew(image(), "errors=remount-ro"));
  EXPECT_TRUE(WaitGone("other")) << Explain("other");
  // As was said: its file is still there.
  ASSERT_TRUE(WaitPhase("web", "Ready")) << Explain("web");
  EXPECT_EQ(ExampleProblem("hello"), "");
  EXPECT_EQ(Ctl({"delete", "pod", "web"}).exit_status, 0);
  ASSERT_TRUE(WaitGone("web")) << Explain("web");
  EXPECT_EQ(LeftOvers(), "");
}

// What was wrong before: the first delete ended with 5 and "no agent answers", though the agent
// did.
TEST_F(ReadOnlyRootTest, ADeleteThatCouldNotBeRecordedWasReportedAsNoAgent) {
  WriteText(manifests() + "/other.yaml", AnotherPod("other"));
  ASSERT_TRUE(WaitPhase("other", "Ready")) << Explain("other");
  ASSERT_NO_FATAL_FAILURE(AbortDisk());
  const CommandResult pod = Ctl({"delete", "pod", "other"});
  EXPECT_EQ(pod.exit_status, 0) << pod.output;
  EXPECT_NE(pod.output.find("pod uid-other leaves, but may come back at the next start"),
            std::string::npos)
      << pod.output;
  const CommandResult secret = Ctl({"delete", "secret", "web-secret"});
  EXPECT_EQ(secret.exit_status, 1) << secret.output;
  EXPECT_EQ(secret.output.find("no agent answers"), std::string::npos) << secret.output;
  ASSERT_NO_FATAL_FAILURE(RepairAndMountAnew(image(), "errors=remount-ro"));
  EXPECT_EQ(Ctl({"delete", "pod", "other"}).exit_status, 0);
  ASSERT_EQ(::unlink((manifests() + "/other.yaml").c_str()), 0);
  EXPECT_TRUE(WaitGone("other")) << Explain("other");
}

// Immutable directories refuse removals as a read-only root does, and can be healed under a running
// agent.
TEST_F(ReadOnlyRootTest, WhatRefusedToGoIsRetriedWithoutAHuman) {
  const std::string objects = root() + "/volumed/objects";
  const auto each_directory = [&](const char* flag) {
    return RunCommand({"find", root() + "/pods", objects, "-xdev", "-type", "d", "-exec", "chattr",
                       flag, "{}", "+"});
  };
  const CommandResult frozen = each_directory("+i");
  ASSERT_EQ(frozen.exit_status, 0) << frozen.output;
  const CommandResult deleted = Ctl({"delete", "pod", "web"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_NE(deleted.output.find("Operation not permitted"), std::string::npos) << deleted.output;
  ExpectUnmountedAndExplained("web", kExampleUid, "Operation not permitted");
  EXPECT_NE(Ctl({"sources"}).output.find("could not be removed"), std::string::npos);

  const CommandResult thawed = each_directory("-i");
  ASSERT_EQ(thawed.exit_status, 0) << thawed.output;
  EXPECT_TRUE(WaitGone("web", kBackoffPatience)) << Explain("web");
  EXPECT_TRUE(Eventually(kBackoffPatience, [&] {
    return Ctl({"sources"}).output.find("could not be removed") == std::string::npos;
  })) << Ctl({"sources"}).output;
  EXPECT_EQ(LeftOvers(), "");
  // No record and no object brings it back.
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
}

struct Disk {
  const char* name;
  std::vector<std::string> mkfs_options;
  const char* mount_options;
  bool heals_alone;  // else a failed write makes it read-only until it is checked and mounted anew
};

class FailingRootTest : public SickRootTest, public ::testing::WithParamInterface<Disk> {
 protected:
  void SetUp() override {
    SickRootTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeImage(kDiskBytes, GetParam().mkfs_options));
    ASSERT_TRUE(std::filesystem::create_directory(scratch() + "/device"));
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), scratch() + "/device",
                                            scratch() + "/control", image());
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    MountDisk(device(), GetParam().mount_options);
    if (IsSkipped() || HasFatalFailure()) return;
    WriteText(manifests() + "/calm.yaml", CalmPod("one"));
    ASSERT_NO_FATAL_FAILURE(StartWithExamplePod());
    ASSERT_TRUE(WaitPhase("calm", "Ready")) << Explain("calm");
  }
  void TearDown() override {
    if (hangfs_) hangfs_->Heal();
    SickRootTest::TearDown();  // unmounts the disk, which needs its device
    hangfs_.reset();
  }
  std::string device() const { return scratch() + "/device/image"; }
  // A pod that has nothing on the disk but its directories.
  static std::string CalmPod(const std::string& text) {
    return "apiVersion: v1\nkind: Secret\nmetadata: {name: calm}\nstringData: {text: " + text +
           "}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: calm, uid: uid-calm}\nspec:\n"
           "  containers:\n    - name: main\n      image: i\n      volumeMounts:\n"
           "        - {name: secret, mountPath: /secret}\n"
           "        - {name: memory, mountPath: /memory}\n"
           "  volumes:\n    - name: secret\n      secret: {secretName: calm}\n"
           "    - name: memory\n      emptyDir: {medium: Memory}\n";
  }
  std::string CalmText() { return ReadText(VolumePath("uid-calm", "secret", "secret") + "/text"); }

  std::unique_ptr<HangfsMount> hangfs_;
};

INSTANTIATE_TEST_SUITE_P(
    Disks, FailingRootTest,
    ::testing::Values(Disk{"Journalled", {}, "errors=remount-ro", false},
                      Disk{"Unjournalled", {"-O", "^has_journal"}, "errors=continue", true}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_P(FailingRootTest, MountsGoOthersStayAndSetUpSaysWhyNot) {
  ASSERT_EQ(CalmText(), "one");
  hangfs_->FailIo();
  WriteText(manifests() + "/late.yaml", AnotherPod("late"));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Explains("late", "Input/output error") || Explains("late", "Read-only file system");
  })) << Explain("late");
  std::cout << Explain("late") << std::endl;
  EXPECT_TRUE(Explains("late", "an administrator")) << Explain("late");

  const CommandResult deleted = Ctl({"delete", "pod", "web"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  std::cout << deleted.output << std::endl;
  EXPECT_TRUE(Eventually(kPatience, [&] { return MountsOf(kExampleUid).empty(); }))
      << Explain("web");
  std::cout << Explain("web") << std::endl;
  // Pods on tmpfs go on: what they have stays, and is kept up to date.
  WriteText(manifests() + "/calm.yaml", CalmPod("two"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return CalmText() == "two"; })) << Explain("calm");
  EXPECT_EQ(FindPod("calm")->phase(), "Ready") << Explain("calm");
  ExpectAgentAnswers();

  hangfs_->Heal();
  ASSERT_EQ(::unlink((manifests() + "/late.yaml").c_str()), 0);
  if (!GetParam().heals_alone) {
    ASSERT_NO_FATAL_FAILURE(RepairAndMountAnew(device(), GetParam().mount_options));
    ASSERT_TRUE(WaitPhase("calm", "Ready")) << Explain("calm");
    // Its file may have stayed, as was said.
    if (FindPod("web")) {
      EXPECT_EQ(Ctl({"delete", "pod", "web"}).exit_status, 0);
    }
  }
  EXPECT_TRUE(WaitGone("late", kBackoffPatience)) << Explain("late");
  EXPECT_TRUE(WaitGone("web", kBackoffPatience)) << Explain("web");
  ASSERT_EQ(::unlink((manifests() + "/calm.yaml").c_str()), 0);
  EXPECT_TRUE(WaitGone("calm", kBackoffPatience)) << Explain("calm");
  EXPECT_EQ(LeftOvers(), "");
}

}  // namespace
}  // namespace volumed::sick_root_test
