// What `describe` is made of: summaries of objects, facts of mounts; and the tally of a start.
#include <gtest/gtest.h>

#include "agent/mount_facts.h"
#include "agent/object_columns.h"
#include "agent/object_summary.h"
#include "agent/start_tally.h"
#include "agent/view_codec.h"
#include "base/printable_text.h"
#include "kube/decode.h"

namespace volumed {
namespace {

Object Decoded(const std::string& manifest) {
  ManifestDecode decoded = DecodeManifest("test.yaml", manifest);
  EXPECT_EQ(decoded.objects.size(), 1u)
      << (decoded.problems.empty() ? "" : decoded.problems.front().reason);
  return decoded.objects.at(0).object;
}

std::string Text(const SummaryLines& lines) {
  std::string text;
  for (const auto& [name, value] : lines) text += name + "=" + value + "\n";
  return text;
}

TEST(ObjectSummaryTest, ASecretShowsKeysAndSizesAndNeverAValue) {
  const std::string text = Text(SummariseObject(
      Decoded("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: hunter2}\n")));
  EXPECT_EQ(text, "Type=Opaque\nKey key=7 bytes\n");
}

TEST(ObjectSummaryTest, AConfigMapShowsSizesAlone) {
  const std::string text = Text(SummariseObject(
      Decoded("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: content}\n"
              "binaryData: {b: AAEC}\n")));
  EXPECT_EQ(text, "Key a=7 bytes\nKey b=3 bytes, binary\n");
}

TEST(ObjectSummaryTest, AKindWithoutARowIsShownFieldByField) {
  const std::string text =
      Text(SummariseObject(Decoded("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n"
                                   "status: {allocatable: {memory: 8Gi}}\n")));
  EXPECT_EQ(text, "status.allocatable.memory=8Gi\n");
}

TEST(ObjectSummaryTest, AVolumeAttachmentIsShownWithItsStatus) {
  const std::string text = Text(SummariseObject(
      Decoded("apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va}\nspec: "
              "{attacher: d, nodeName: n1, source: {persistentVolumeName: pv}}\nstatus: {attached: "
              "false, attachError: {message: no room, errorCode: 8}}\n")));
  EXPECT_EQ(text,
            "spec.attacher=d\nspec.nodeName=n1\nspec.source.persistentVolumeName=pv\n"
            "status.attachError.errorCode=8\nstatus.attachError.message=no room\n");
}

// Each kind's columns are as many as its cells, with kubectl's names.
TEST(ObjectColumnsTest, CsiKindsHaveKubectlsColumns) {
  const auto table = [](const std::string& manifest) {
    const Object object = Decoded("apiVersion: storage.k8s.io/v1\n" + manifest);
    const std::vector<std::string_view> heads = ColumnsOf(KindOf(object));
    const std::vector<std::string> cells = CellsOf(object);
    EXPECT_EQ(heads.size(), cells.size());
    std::string text;
    for (size_t i = 0; i < heads.size(); ++i) text += std::string(heads[i]) + "=" + cells[i] + " ";
    return text;
  };
  EXPECT_EQ(table("kind: CSIDriver\nmetadata: {name: d}\nspec: {}\n"),
            "ATTACHREQUIRED=true PODINFOONMOUNT=false STORAGECAPACITY=false "
            "TOKENREQUESTS=<unset> REQUIRESREPUBLISH=false MODES=Persistent ");
  EXPECT_EQ(table("kind: CSIDriver\nmetadata: {name: d}\nspec: {attachRequired: false, "
                  "tokenRequests: [{audience: a}, {audience: b}], volumeLifecycleModes: "
                  "[Persistent, Ephemeral]}\n"),
            "ATTACHREQUIRED=false PODINFOONMOUNT=false STORAGECAPACITY=false TOKENREQUESTS=a,b "
            "REQUIRESREPUBLISH=false MODES=Persistent,Ephemeral ");
  EXPECT_EQ(table("kind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [{name: a, nodeID: x}, "
                  "{name: b, nodeID: z}]}\n"),
            "DRIVERS=2 ");
  EXPECT_EQ(table("kind: VolumeAttachment\nmetadata: {name: va}\nspec: {attacher: d, nodeName: "
                  "n1, source: {persistentVolumeName: pv}}\nstatus: {attached: true}\n"),
            "ATTACHER=d PV=pv NODE=n1 ATTACHED=true ");
  EXPECT_TRUE(ColumnsOf(ObjectKind::kNode).empty());
  EXPECT_TRUE(ColumnsOf(ObjectKind::kSecret).empty()) << "it has fields of its own";
}

TEST(ObjectSummaryTest, APodsEnvironmentIsNotShownAndLongValuesAreCut) {
  const std::string text = Text(SummariseObject(
      Decoded("apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\nspec:\n  containers:\n"
              "    - {name: c, image: " +
              std::string(400, 'i') +
              ", env: [{name: PASSWORD, value: hunter2}]}\n"
              "  volumes: [{name: v, secret: {secretName: s}}]\n")));
  EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  EXPECT_NE(text.find("iii...\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Volume v={\"secret\":{\"defaultMode\":420,\"secretName\":\"s\"}}\n"),
            std::string::npos)
      << text;
}

TEST(ObjectSummaryTest, WhatMayNotBeSeenIsHiddenBeforeAValueIsCut) {
  const ShownText shown = [](const std::string& text, WordsOf) {
    const size_t at = text.find("hunter2");
    return at == std::string::npos ? text : text.substr(0, at) + "***" + text.substr(at + 7);
  };
  const Object volume = Decoded(
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec:\n"
      "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
      "  csi: {driver: d, volumeHandle: v, volumeAttributes: {of-hunter2: a, long: " +
      std::string(252, 'i') + "hunter2}}\n");
  const std::string text = Text(SummariseObject(volume, shown));
  EXPECT_EQ(text.find("hunt"), std::string::npos) << text;
  EXPECT_NE(text.find("volumeAttributes.of-***=a\n"), std::string::npos) << text;
  EXPECT_NE(Text(SummariseObject(volume)).find("of-hunter2=a\n"), std::string::npos);
}

// A description with such a value could not be read by volumectl at all.
TEST(ObjectSummaryTest, AValueWasCutAmidACharacter) {
  for (const int before : {254, 255, 256}) {
    const SummaryLines lines = SummariseObject(
        Decoded("apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\nspec:\n  containers:\n"
                "    - {name: c, image: x, volumeMounts: [{name: v, mountPath: /" +
                std::string(static_cast<size_t>(before), 'i') +
                "\u20ac\u20ac}]}\n  volumes: [{name: v, hostPath: {path: /" +
                std::string(static_cast<size_t>(before), 'i') + "\u20ac\u20ac}}]\n"));
    EXPECT_NE(Text(lines).find("..."), std::string::npos) << Text(lines);
    EXPECT_TRUE(IsUtf8(Text(lines))) << before;
  }
}

// One file whose name is no text made the list of all pods, and that of the sources, unreadable.
TEST(AnswerTextTest, WhatOthersNamedIsTextInAnAnswer) {
  ProblemView problem;
  problem.message = "remove /d/\xff:\nbusy";
  v1::Problem shown;
  EncodeProblemView(problem, &shown);
  EXPECT_EQ(shown.message(), "remove /d/\\xff:\nbusy");
  SourceStatus status;
  status.last_error = "\xe4";
  DecodeProblem unread;
  unread.file = "\xff.txt";
  unread.reason = "\xc3";
  status.problems.push_back(unread);
  v1::Source source;
  EncodeSource(status, &source);
  EncodeUnreadFiles({"\xff.yaml"}, &source);
  EXPECT_EQ(source.last_error(), "\\xe4");
  EXPECT_EQ(source.problems(0).file(), "\\xff.txt");
  EXPECT_EQ(source.problems(0).reason(), "\\xc3");
  EXPECT_EQ(source.unread_files(0), "\\xff.yaml");
}

MountEntry Entry(const std::string& mount_point, const std::string& fs_type) {
  MountEntry entry;
  entry.mount_point = mount_point;
  entry.fs_type = fs_type;
  return entry;
}

TEST(MountFactsTest, AVolumeHasTheMountsAtAndBelowItsPathAndItsSubPaths) {
  const std::vector<MountEntry> table = {Entry("/", "ext4"),     Entry("/r", "xfs"),
                                         Entry("/r/v", "tmpfs"), Entry("/r/v/in", "proc"),
                                         Entry("/r/vv", "nfs"),  Entry("/r/sub/0", "bind")};
  v1::DescribeResponse response;
  AnswerMountQuestions(table, {{"v", "/r/v", {"/r/sub/0"}}, {"plain", "/r/plain", {}}}, &response);
  ASSERT_EQ(response.mounts_size(), 2);
  ASSERT_EQ(response.mounts(0).mounts_size(), 3);
  EXPECT_EQ(response.mounts(0).mounts(0).fs_type(), "tmpfs");
  EXPECT_EQ(response.mounts(0).mounts(1).fs_type(), "proc");
  EXPECT_EQ(response.mounts(0).mounts(2).fs_type(), "bind");
  EXPECT_FALSE(response.mounts(0).has_lies_on());
  EXPECT_EQ(response.mounts(1).mounts_size(), 0);
  EXPECT_EQ(response.mounts(1).lies_on().fs_type(), "xfs");
}

TEST(MountFactsTest, ManyMountsAreCutAndCounted) {
  std::vector<MountEntry> table = {Entry("/", "ext4")};
  for (int i = 0; i < 40; ++i) table.push_back(Entry("/h/" + std::to_string(i), "tmpfs"));
  v1::DescribeResponse response;
  AnswerMountQuestions(table, {{"host", "/h", {}}}, &response);
  EXPECT_EQ(response.mounts(0).mounts_size(), 32);
  EXPECT_EQ(response.mounts(0).lies_on().mount_point(), "/");
  ASSERT_EQ(response.not_shown_size(), 1);
  EXPECT_EQ(response.not_shown(0), "8 more mounts of volume host");
}

class StartTallyTest : public ::testing::Test {
 protected:
  static PodVolumeKey Key(const std::string& spec) { return {PodUid("u"), SpecName(spec)}; }
  void Finish(const std::string& spec, const std::string& operation, bool ok) {
    FinishedOperation finished;
    finished.key = Key(spec);
    finished.operation = operation;
    if (!ok) {
      finished.failure =
          OperationFailure{operation, "TearDown", Error::NotApplied(Code::kInternal, "x")};
    }
    tally_.OperationFinished(finished);
  }
  std::string Value(const std::string& name) const {
    std::string text;
    families_.AppendTo(text);
    const size_t at = text.find("\n" + name + " ");
    const size_t begin = at + name.size() + 2;
    return at == std::string::npos ? "none" : text.substr(begin, text.find('\n', begin) - begin);
  }

  ExportedFamilies families_;
  StartTally tally_{families_};
};

TEST_F(StartTallyTest, CountsVolumesWithoutARecordAndTheirCleaning) {
  tally_.TakenOver({.volumes = 3, .unreadable = 1, .without_record = {Key("a"), Key("b")}});
  EXPECT_EQ(Value("reconstruct_volume_operations_total"), "4");
  EXPECT_EQ(Value("reconstruct_volume_operations_errors_total"), "3");
  Finish("other", "volume_unmount", true);
  EXPECT_EQ(Value("force_cleaned_failed_volume_operations_total"), "0");
  Finish("a", "volume_unmount", false);
  Finish("a", "volume_unmount", true);
  Finish("a", "volume_unmount", true);
  Finish("b", "volume_mount", true);  // wanted: nothing is cleaned
  Finish("b", "volume_unmount", true);
  EXPECT_EQ(Value("force_cleaned_failed_volume_operations_total"), "2");
  EXPECT_EQ(Value("force_cleaned_failed_volume_operation_errors_total"), "1");
}

TEST_F(StartTallyTest, FollowsTheOrphansToTheirEnd) {
  tally_.OrphanFound({Key("a"), Key("b")});
  Finish("a", "volume_unmount", false);
  Finish("b", "volume_unmount", true);
  EXPECT_EQ(Value("kubelet_orphan_pod_cleaned_volumes"), "1");
  EXPECT_EQ(Value("kubelet_orphan_pod_cleaned_volumes_errors"), "1");
  Finish("a", "volume_unmount", true);
  EXPECT_EQ(Value("kubelet_orphan_pod_cleaned_volumes"), "2");
  EXPECT_EQ(Value("kubelet_orphan_pod_cleaned_volumes_errors"), "0");
}

}  // namespace
}  // namespace volumed
