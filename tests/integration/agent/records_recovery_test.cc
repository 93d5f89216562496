// Records that may be older than the disks, on the real daemon: what cannot be undone waits for a
// person, and everything else goes on.
#include <filesystem>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::records_recovery_test {
namespace {

constexpr int64_t kDiskBytes = int64_t{64} << 20;

class RecordsRecoveryTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    settings["node-name"] = "n1";
    settings["machine-id-file"] = machine_id_file();
    settings["host-path-root"] = "[" + scratch() + "/volumes]";
    settings["enable-hostpath-provisioner"] = "true";
    WriteText(machine_id_file(), "00000000000000000000000000000001\n");
  }

  std::string machine_id_file() const { return scratch() + "/machine-id"; }
  std::string RecordsPath(const std::string& name) const {
    return root() + "/volumed/records" + name;
  }

  LoopDevice Disk(const std::string& name) const {
    EXPECT_TRUE(MakeImage(scratch() + "/" + name, kDiskBytes));
    LoopDevice disk(scratch() + "/" + name);
    EXPECT_TRUE(disk.valid());
    return disk;
  }
  static std::string Storage(const std::string& name, const std::string& device) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 50Mi}\n  accessModes: [ReadWriteOnce]\n"
           "  local: {path: " +
           device +
           ", fsType: ext4}\n"
           "  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " +
           name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + name +
           "\n  resources: {requests: {storage: 10Mi}}\n";
  }
  static std::string MadeClaim(const std::string& name) {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
           "provisioner: kubernetes.io/host-path\nreclaimPolicy: Delete\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " +
           name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: made\n  resources: {requests: {storage: 10Mi}}\n";
  }
  static std::string PodOn(const std::string& name, const std::string& volume) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n"
           "  containers:\n  - {name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}\n"
           "  volumes:\n  - name: data\n    " +
           volume + "\n";
  }
  static std::string OnClaim(const std::string& claim) {
    return "persistentVolumeClaim: {claimName: " + claim + "}";
  }
  std::string PlaceOf(const std::string& pod, const std::string& volume) const {
    return root() + "/pods/uid-" + pod + "/volumes/kubernetes.io~local-volume/" + volume;
  }
  std::string Records() const { return Ctl({"records"}).output; }
  bool Has(const std::vector<std::string>& command, const std::string& text) {
    return Eventually(kPatience,
                      [&] { return Ctl(command).output.find(text) != std::string::npos; });
  }
  bool Metric(const std::string& line) {
    return Eventually(kPatience, [&] {
      return HttpGet("/metrics").find("\n" + line + "\n") != std::string::npos;
    });
  }
  bool RefusesToBeReady() {
    return Eventually(kPatience, [&] {
      const std::string answer = HttpGet("/readyz");
      return answer.find(" 503 ") != std::string::npos &&
             answer.find("the records may be older than the disks") != std::string::npos;
    });
  }
  // The directories that were made for claims.
  int MadeDirectories() const {
    int count = 0;
    std::error_code error;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(scratch() + "/volumes", error)) {
      ++count;
    }
    return count;
  }
};

// Nothing but a repair of the database by hand brought the pod back.
TEST_F(RecordsRecoveryTest, APodWithADamagedRowComesBackWithItsDataOnceTheRowIsGivenUp) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a", "emptyDir: {}")));
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  const std::string note = VolumePath("uid-a", "empty-dir", "data") + "/note";
  WriteText(note, "kept");
  for (const char* kind : {"pod", "pod-volume", "object-source"}) {
    SCOPED_TRACE(kind);
    ASSERT_EQ(StopAgent(), 0);
    const std::string edit = "import sqlite3; c = sqlite3.connect('" + RecordsPath("/records.db") +
                             "'); n = c.execute(\"update records set bytes=x'00' where kind='" +
                             std::string(kind) + "'\").rowcount; c.commit(); assert n > 0";
    ASSERT_EQ(RunCommand({"python3", "-c", edit}).exit_status, 0);
    ASSERT_NO_FATAL_FAILURE(StartAgent());
    ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
    EXPECT_NE(Records().find("the record " + std::string(kind) + " "), std::string::npos)
        << Records();
    EXPECT_EQ(ReadText(note), "kept");
    ASSERT_EQ(Ctl({"records", "accept"}).exit_status, 0);
    ASSERT_EQ(StopAgent(), 0);
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    EXPECT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
    EXPECT_EQ(ReadText(note), "kept");
    EXPECT_NE(Records().find("recovery:     no"), std::string::npos) << Records();
  }
}

TEST_F(RecordsRecoveryTest, AnotherMachineHoldsIrreversibleStepsBackUntilItIsAccepted) {
  const LoopDevice used = Disk("used.img");
  const LoopDevice blank = Disk("blank.img");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_NE(Records().find("recovery:     no"), std::string::npos) << Records();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("used", used.path()) + MadeClaim("made") +
                                  PodOn("a", OnClaim("used")) + PodOn("m", OnClaim("made"))));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  ASSERT_TRUE(WaitPhase("m", "Ready")) << Ctl({"explain", "m"}).output;
  WriteText(PlaceOf("a", "used") + "/kept.txt", "kept");
  EXPECT_EQ(MadeDirectories(), 1);
  KillAgent();

  WriteText(machine_id_file(), "00000000000000000000000000000002\n");
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
  EXPECT_TRUE(Metric("volumed_records_recovery 1"));
  EXPECT_NE(Records().find("machine-id 00000000000000000000000000000001"), std::string::npos)
      << Records();

  // A filesystem that is there is unmounted and mounted; a new one is not made.
  ASSERT_TRUE(Delete("Pod", "a").ok());
  ASSERT_TRUE(WaitGone("a")) << Ctl({"explain", "a"}).output;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("blank", blank.path()) + PodOn("b", OnClaim("blank")) +
                                  PodOn("again", OnClaim("used")) + PodOn("e", "emptyDir: {}")));
  EXPECT_TRUE(WaitPhase("again", "Ready")) << Ctl({"explain", "again"}).output;
  EXPECT_EQ(ReadText(PlaceOf("again", "used") + "/kept.txt"), "kept");
  EXPECT_TRUE(WaitPhase("e", "Ready")) << Ctl({"explain", "e"}).output;
  EXPECT_TRUE(Has({"explain", "b"}, "mkfs of volume \"blank\" is held back"))
      << Ctl({"explain", "b"}).output;
  EXPECT_TRUE(Has({"explain", "b"}, "an administrator")) << Ctl({"explain", "b"}).output;

  // A volume is not deleted with its claim.
  ASSERT_TRUE(Delete("Pod", "m").ok());
  ASSERT_TRUE(WaitGone("m"));
  const CommandResult deleted = Ctl({"delete", "pvc", "made"});
  ASSERT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_NE(deleted.output.find("is deleted with it"), std::string::npos) << deleted.output;
  EXPECT_NE(deleted.output.find("not before `volumectl records accept`"), std::string::npos)
      << deleted.output;
  EXPECT_TRUE(Has({"records"}, "delete  pvc-")) << Records();
  EXPECT_TRUE(Has({"get", "pv", "-o", "yaml"}, "is held back")) << Ctl({"get", "pv"}).output;
  EXPECT_EQ(MadeDirectories(), 1);
  EXPECT_TRUE(Metric("volumed_records_held_steps 2"));

  // It lasts.
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
  EXPECT_TRUE(Has({"records"}, "mkfs    blank")) << Records();

  const CommandResult only = Ctl({"records", "accept", "--only", "blank"});
  EXPECT_EQ(only.exit_status, 0) << only.output;
  EXPECT_NE(only.output.find("mkfs  blank"), std::string::npos) << only.output;
  EXPECT_TRUE(WaitPhase("b", "Ready")) << Ctl({"explain", "b"}).output;
  EXPECT_EQ(MadeDirectories(), 1);
  EXPECT_TRUE(RefusesToBeReady());

  const CommandResult all = Ctl({"records", "accept"});
  EXPECT_EQ(all.exit_status, 0) << all.output;
  EXPECT_NE(all.output.find("delete  pvc-"), std::string::npos) << all.output;
  EXPECT_TRUE(WaitReady()) << HttpGet("/readyz");
  EXPECT_TRUE(Eventually(kPatience, [&] { return MadeDirectories() == 0; })) << Records();
  EXPECT_TRUE(Metric("volumed_records_recovery 0"));
  EXPECT_EQ(Ctl({"records", "accept"}).output, "nothing is held back: the records are in order\n");
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const char* pod : {"again", "b", "e"}) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    EXPECT_TRUE(WaitGone(pod)) << Ctl({"explain", pod}).output;
  }
}

TEST_F(RecordsRecoveryTest, ALogThatWasTakenFromAKilledAgentIsMissed) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("e", "emptyDir: {}")));
  ASSERT_TRUE(WaitPhase("e", "Ready"));
  KillAgent();
  ASSERT_TRUE(Exists(RecordsPath("/records.db-wal")));
  std::filesystem::remove(RecordsPath("/records.db-wal"));
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
  EXPECT_EQ(Ctl({"records", "accept"}).exit_status, 0);
  EXPECT_TRUE(WaitReady());
}

TEST_F(RecordsRecoveryTest, RecordsThatWereMovedAwayAreMissed) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("e", "emptyDir: {}")));
  ASSERT_TRUE(WaitPhase("e", "Ready"));
  KillAgent();
  std::filesystem::remove_all(RecordsPath(""));
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
  EXPECT_NE(Records().find("they have no number"), std::string::npos) << Records();
}

// A root and its copy beside it each took the same claims for their own.
TEST_F(RecordsRecoveryTest, ACopyOfTheRecordsIsNotTakenForThem) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("e", "emptyDir: {}")));
  ASSERT_TRUE(WaitPhase("e", "Ready"));
  KillAgent();
  std::filesystem::rename(RecordsPath(""), RecordsPath("-first"));
  std::filesystem::rename(RecordsPath("-first"), RecordsPath(""));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent()) << "what was moved and is back is no copy";
  KillAgent();
  std::filesystem::rename(RecordsPath(""), RecordsPath("-first"));
  ASSERT_EQ(RunCommand({"cp", "-a", RecordsPath("-first"), RecordsPath("")}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
  EXPECT_NE(Records().find("their directory is a copy"), std::string::npos) << Records();
}

TEST_F(RecordsRecoveryTest, RecordsThatAreGoneWithTheirNumberAreMissed) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("e", "emptyDir: {}")));
  ASSERT_TRUE(WaitPhase("e", "Ready"));
  KillAgent();
  std::filesystem::remove_all(RecordsPath(""));
  std::filesystem::remove(RecordsPath(".number"));
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(RefusesToBeReady()) << HttpGet("/readyz");
  EXPECT_NE(Records().find("there are none, and"), std::string::npos) << Records();
}

}  // namespace
}  // namespace volumed::records_recovery_test
