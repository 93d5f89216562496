// What `volumectl delete` says of data is what becomes of it.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "integration/agent/agent_fixture.h"

namespace volumed::fate_of_data_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClaim =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec:\n  storageClassName: \"\"\n  accessModes: [ReadWriteOnce]\n"
    "  resources: {requests: {storage: 1Gi}}\n";
constexpr const char* kPod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: uid-p}\n"
    "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
    "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n";

class FateOfDataTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["removal-settle"] = "1s";
    settings["node-name"] = "n1";
    settings["host-path-root"] = scratch() + "/below";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    data_ = scratch() + "/data";
    ASSERT_EQ(::mkdir(data_.c_str(), 0755), 0);
  }
  std::string VolumeOf(const std::string& policy, const std::string& source = "hostPath") const {
    const std::string affinity =
        source != "local" ? ""
                          : "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: "
                            "[{key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}}\n";
    return "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: scratch}\n"
           "spec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
           "  persistentVolumeReclaimPolicy: " +
           policy + "\n  " + source + ": {path: " + data_ + "}\n" + affinity;
  }
  // The claim has the volume; there is data in it.
  void Bind() {
    ApplyOk(kClaim);
    ASSERT_TRUE(Says({"get", "pvc", "data"}, "Bound")) << Ctl({"get", "pvc"}).output;
    WriteText(data_ + "/kept", "kept");
  }
  std::string File() const { return manifests() + "/pv.yaml"; }
  void BindFromFile() {
    WriteText(File(), VolumeOf("Recycle"));
    ASSERT_TRUE(Says({"get", "pv"}, "Available")) << Ctl({"get", "pv"}).output;
    Bind();
  }
  // The claim has a volume that has left its file since.
  void LoseVolume() {
    ASSERT_NO_FATAL_FAILURE(BindFromFile());
    ASSERT_EQ(::unlink(File().c_str()), 0);
    ASSERT_TRUE(Says({"get", "pv"}, "MISSING")) << Ctl({"get", "pv"}).output;
  }
  bool Says(const std::vector<std::string>& words, const std::string& text) {
    return Eventually(kPatience, [&] { return Ctl(words).output.find(text) != std::string::npos; });
  }
  bool ClaimIsGone() {
    return Eventually(kPatience, [&] {
      return Ctl({"get", "pv"}).output.find("Bound") == std::string::npos;
    });
  }
  bool VolumeIsGone() {
    return Eventually(kPatience, [&] {
      return Ctl({"get", "pv"}).output.find("scratch") == std::string::npos;
    });
  }

  std::string data_;
};

// It was deleted with its data without a word.
TEST_F(FateOfDataTest, AVolumeThatLeftItsSourceIsNotDeletedWithItsDataUnasked) {
  ASSERT_NO_FATAL_FAILURE(LoseVolume());
  const CommandResult claim = Ctl({"delete", "pvc", "data"});
  EXPECT_EQ(claim.exit_status, 0) << claim.output;
  EXPECT_THAT(claim.output, HasSubstr("its data in " + data_ +
                                      " stays: PersistentVolume scratch, "
                                      "whose reclaim policy is Recycle"));
  ASSERT_TRUE(ClaimIsGone());
  const CommandResult refused = Ctl({"delete", "pv", "scratch"});
  EXPECT_NE(refused.exit_status, 0) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("its data in " + data_ + " is deleted with it"));
  EXPECT_THAT(refused.output, HasSubstr("--yes"));
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
  // The way to keep it that the answer names.
  ApplyOk(VolumeOf("Retain"));
  const CommandResult kept = Ctl({"delete", "pv", "scratch"});
  EXPECT_EQ(kept.exit_status, 0) << kept.output;
  EXPECT_TRUE(VolumeIsGone());
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
}

TEST_F(FateOfDataTest, AVolumeThatLeftItsSourceIsDeletedWithItsDataByAWordMore) {
  ASSERT_NO_FATAL_FAILURE(LoseVolume());
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  ASSERT_TRUE(ClaimIsGone());
  const CommandResult deleted = Ctl({"delete", "pv", "scratch", "--yes"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_THAT(deleted.output, HasSubstr("its data in " + data_ + " is deleted with it"));
  EXPECT_TRUE(VolumeIsGone());
  EXPECT_FALSE(Exists(data_ + "/kept"));
}

// A deletion was announced that could not come, and the volume stayed Terminating for ever.
TEST_F(FateOfDataTest, WhatNothingHereCanDeleteStaysAndItsVolumeGoes) {
  for (const char* source : {"hostPath", "local"}) {
    SCOPED_TRACE(source);
    ApplyOk(VolumeOf("Delete", source));
    ASSERT_NO_FATAL_FAILURE(Bind());
    const CommandResult claim = Ctl({"delete", "pvc", "data"});
    EXPECT_EQ(claim.exit_status, 0) << claim.output;
    EXPECT_THAT(claim.output, HasSubstr("its data in " + data_ + " stays: "));
    EXPECT_THAT(claim.output, Not(HasSubstr("is deleted with it")));
    ASSERT_TRUE(ClaimIsGone());
    const CommandResult volume = Ctl({"delete", "pv", "scratch"});
    EXPECT_EQ(volume.exit_status, 0) << volume.output;
    EXPECT_TRUE(VolumeIsGone()) << Ctl({"get", "pv", "scratch"}).output;
    EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
  }
}

// Retain was promised to help where nobody could set it any more.
TEST_F(FateOfDataTest, OnlyAWayToKeepDataThatIsThereIsNamed) {
  ApplyOk(VolumeOf("Recycle"));
  ASSERT_NO_FATAL_FAILURE(Bind());
  ApplyOk(kPod);
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  const CommandResult claim = Ctl({"delete", "pvc", "data"});
  EXPECT_THAT(claim.output, HasSubstr("keeps it if it is applied with Retain before then"));
  ApplyOk(VolumeOf("Retain"));
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  ASSERT_TRUE(Says({"get", "pv", "scratch"}, "its data is retained"))
      << Ctl({"get", "pv", "scratch"}).output;
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
}

TEST_F(FateOfDataTest, OfAVolumeThatIsBeingDeletedNoWayIsNamed) {
  ApplyOk(VolumeOf("Recycle"));
  ASSERT_NO_FATAL_FAILURE(Bind());
  ApplyOk(kPod);
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(Ctl({"delete", "pv", "scratch"}).exit_status, 0);
  const CommandResult claim = Ctl({"delete", "pvc", "data"});
  EXPECT_THAT(claim.output, HasSubstr("its data in " + data_ + " is deleted with it"));
  EXPECT_THAT(claim.output, Not(HasSubstr("Retain")));
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  EXPECT_TRUE(VolumeIsGone());
}

// No way was named, though there is one.
TEST_F(FateOfDataTest, OfAVolumeThatIsBeingDeletedItsFileKeepsTheData) {
  ASSERT_NO_FATAL_FAILURE(BindFromFile());
  ApplyOk(kPod);
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(Ctl({"delete", "pv", "scratch"}).exit_status, 0);
  EXPECT_THAT(Ctl({"delete", "pvc", "data"}).output,
              HasSubstr("keeps it if " + File() + " says Retain before then"));
  WriteText(File(), VolumeOf("Retain"));
  ASSERT_TRUE(Says({"get", "pv", "scratch"}, "Retain"));
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  ASSERT_TRUE(Says({"get", "pv", "scratch"}, "Refused")) << Ctl({"get", "pv"}).output;
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
}

// `delete pv` asked only once the claim was gone.
TEST_F(FateOfDataTest, AMissingVolumeWhoseClaimIsBeingDeletedIsNotDeletedUnasked) {
  ASSERT_NO_FATAL_FAILURE(LoseVolume());
  ApplyOk(kPod);
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  const CommandResult refused = Ctl({"delete", "pv", "scratch"});
  EXPECT_EQ(refused.exit_status, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("its claim is being deleted"));
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  ASSERT_TRUE(Says({"get", "pv", "scratch"}, "Released")) << Ctl({"get", "pv"}).output;
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
}

// What may never be emptied was tried for ever, and its volume stayed Terminating.
TEST_F(FateOfDataTest, WhatMayNeverBeEmptiedStaysAndItsVolumeGoes) {
  data_ = root() + "/precious";
  ASSERT_EQ(::mkdir(data_.c_str(), 0755), 0);
  ApplyOk(VolumeOf("Recycle"));
  ASSERT_NO_FATAL_FAILURE(Bind());
  EXPECT_THAT(Ctl({"delete", "pvc", "data"}).output, HasSubstr(" stays: "));
  ASSERT_TRUE(ClaimIsGone());
  ASSERT_EQ(Ctl({"delete", "pv", "scratch"}).exit_status, 0);
  EXPECT_TRUE(VolumeIsGone()) << Ctl({"get", "pv", "scratch"}).output;
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
}

TEST_F(FateOfDataTest, AVolumeThatIsTerminatingAlreadyGoesWithItsClaimAlsoAfterAKill) {
  ApplyOk(VolumeOf("Delete"));  // outside of the root
  ASSERT_NO_FATAL_FAILURE(Bind());
  ApplyOk(kPod);
  ASSERT_TRUE(WaitPhase("p", "Ready"));
  ASSERT_EQ(Ctl({"delete", "pv", "scratch"}).exit_status, 0);
  ASSERT_EQ(Ctl({"delete", "pvc", "data"}).exit_status, 0);
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Says({"get", "pv", "scratch"}, "Terminating")) << Ctl({"get", "pv"}).output;
  ASSERT_EQ(Ctl({"delete", "pod", "p"}).exit_status, 0);
  EXPECT_TRUE(VolumeIsGone()) << Ctl({"get", "pv"}).output;
  EXPECT_EQ(ReadText(data_ + "/kept"), "kept");
}

// Only the first answer told how it comes back.
TEST_F(FateOfDataTest, ASecondDeletionNamesTheWayBackToo) {
  const std::string file = manifests() + "/pv.yaml";
  WriteText(file, VolumeOf("Retain"));
  ASSERT_TRUE(Says({"get", "pv"}, "Available"));
  for (int times = 0; times < 2; ++times) {
    const CommandResult deleted = Ctl({"delete", "pv", "scratch"});
    EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
    EXPECT_THAT(deleted.output, HasSubstr(file + " still has it")) << times;
    ASSERT_TRUE(Says({"get", "pv"}, "Refused")) << Ctl({"get", "pv"}).output;
  }
}

}  // namespace
}  // namespace volumed::fate_of_data_test
