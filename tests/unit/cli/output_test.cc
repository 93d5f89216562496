#include "cli/output.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/byte_text.h"
#include "cli/explain.h"

namespace volumed {
namespace {

constexpr int64_t kToday = 1'000'000'000'000;

v1::GetPodsResponse OnePod() {
  v1::GetPodsResponse pods;
  v1::Pod* pod = pods.add_pods();
  pod->set_uid("u-1");
  pod->set_namespace_("default");
  pod->set_name("web");
  pod->set_source("manifests:/m");
  pod->set_phase("Pending");
  pod->set_since_unix_ms(kToday - 65'000);
  v1::Volume* good = pod->add_volumes();
  good->set_name("data");
  good->set_plugin("kubernetes.io/empty-dir");
  good->set_state("SetUp");
  good->set_host_path("/r/pods/u-1/x");
  good->set_claim("default/shared");
  good->mutable_usage()->set_used_bytes(3 << 20);
  v1::Volume* bad = pod->add_volumes();
  bad->set_name("secret");
  bad->set_plugin("kubernetes.io/secret");
  bad->set_state("NotSetUp");
  v1::Problem* problem = bad->mutable_problem();
  problem->set_operation("volume_mount");
  problem->set_step("SetUp");
  problem->set_code("NotFound");
  problem->set_outcome("not applied");
  problem->set_message("Secret default/s not found");
  problem->set_who_must_act("the owner of Secret default/s");
  problem->set_since_unix_ms(kToday - 4'000);
  problem->set_next_try_unix_ms(kToday + 1'500);
  problem->set_attempts(3);
  return pods;
}

// The first of six looked as if it were the only one.
TEST(OutputTest, ASourceWithSeveralProblemsSaysThatThereAreMore) {
  v1::GetSourcesResponse sources;
  v1::Source* source = sources.add_sources();
  source->set_name("manifests");
  source->set_last_error("a.yaml: bad");
  for (int i = 0; i < 3; ++i) source->add_problems();
  std::ostringstream out;
  PrintSources(sources, OutputFormat::kTable, kToday, out);
  EXPECT_NE(out.str().find("a.yaml: bad (and 2 more: -o json)\n"), std::string::npos) << out.str();
}

TEST(OutputTest, WhatADriverSaysFilledTheTableOfPods) {
  v1::GetPodsResponse pods = OnePod();
  const std::string start(288, 'a');
  pods.mutable_pods(0)->mutable_volumes(1)->mutable_problem()->set_message(
      start + "\xc3\xa4\xc3\xa4\xc3\xa4" + std::string(400, 'b'));
  std::ostringstream table;
  PrintPods(pods, OutputFormat::kTable, kToday, table);
  // No character is cut in two: the first that ends too late is left out.
  EXPECT_NE(table.str().find("secret: " + start + "...\n"), std::string::npos) << table.str();
  EXPECT_EQ(table.str().find('b', table.str().find("aaa")), std::string::npos);
  std::ostringstream wide;
  PrintPods(pods, OutputFormat::kWide, kToday, wide);
  EXPECT_NE(wide.str().find(std::string(400, 'b')), std::string::npos);
}

TEST(OutputTest, AClaimWithoutAVolumeHadAnEmptyPairOfParentheses) {
  v1::GetPodsResponse pods = OnePod();
  pods.mutable_pods(0)->mutable_volumes(1)->clear_plugin();
  std::ostringstream out;
  Explain(pods.pods(0), v1::GetSourcesResponse(), v1::GetStatusResponse(), kToday, out);
  EXPECT_NE(out.str().find("  volume secret: NotSetUp\n"), std::string::npos) << out.str();
}

TEST(OutputTest, TheTableOfPodsCountsReadyVolumesAndShowsTheFirstProblem) {
  std::ostringstream out;
  PrintPods(OnePod(), OutputFormat::kTable, kToday, out);
  EXPECT_EQ(
      out.str(),
      "NAMESPACE  NAME  PHASE    VOLUMES  AGE   HELD BY  PROBLEM\n"
      "default    web   Pending  1/2      1m5s  -        secret: Secret default/s not found\n");
}

// A pod that was ready with its one block volume was shown as 0/1.
TEST(OutputTest, AMappedBlockVolumeWasNotCountedAsOneThatIsThere) {
  v1::GetPodsResponse pods = OnePod();
  pods.mutable_pods(0)->mutable_volumes(1)->set_state("Mapped");
  std::ostringstream out;
  PrintPods(pods, OutputFormat::kTable, kToday, out);
  EXPECT_NE(out.str().find("  2/2  "), std::string::npos) << out.str();
}

v1::Problem* AddWarning(v1::GetPodsResponse& pods) {
  v1::Problem* warning = pods.mutable_pods(0)->add_problems();
  warning->set_step("ReadManifest");
  warning->set_message("web.yaml: spec.volume: is not a field");
  warning->set_is_warning(true);
  return warning;
}

TEST(OutputTest, AWarningHidesNoProblem) {
  v1::GetPodsResponse pods = OnePod();
  AddWarning(pods);
  std::ostringstream pending;
  PrintPods(pods, OutputFormat::kTable, kToday, pending);
  EXPECT_NE(pending.str().find("  secret: Secret default/s not found\n"), std::string::npos)
      << pending.str();
  for (v1::Volume& volume : *pods.mutable_pods(0)->mutable_volumes()) volume.clear_problem();
  std::ostringstream ready;
  PrintPods(pods, OutputFormat::kTable, kToday, ready);
  EXPECT_NE(ready.str().find("  warning: web.yaml: spec.volume: is not a field\n"),
            std::string::npos)
      << ready.str();
}

TEST(OutputTest, SourcesShowsUnknownFieldsAndHowManyMoreThereAre) {
  v1::GetSourcesResponse sources;
  v1::Source* source = sources.add_sources();
  source->set_name("manifests:/m");
  source->set_complete(true);
  source->set_healthy(true);
  v1::ManifestProblem* warning = source->add_warnings();
  warning->set_file("/m/web.yaml");
  warning->set_field("spec.volume");
  warning->set_reason("Pod default/web: is not a field");
  source->set_warning_count(1);
  const std::string line =
      "warning: /m/web.yaml: document 1: spec.volume: Pod default/web: is not a field\n";
  std::ostringstream one;
  PrintSources(sources, OutputFormat::kTable, kToday, one);
  EXPECT_TRUE(one.str().ends_with("-\n" + line)) << one.str();
  source->set_warning_count(3);
  std::ostringstream three;
  PrintSources(sources, OutputFormat::kTable, kToday, three);
  EXPECT_TRUE(three.str().ends_with(line + "and 2 more warnings of manifests:/m\n")) << three.str();
}

TEST(OutputTest, AVolumeThatCameByAClaimNamesIt) {
  std::ostringstream out;
  PrintVolumes(OnePod(), OutputFormat::kTable, kToday, out);
  EXPECT_EQ(out.str().find("NAMESPACE  POD  VOLUME  PLUGIN                   CLAIM   STATE"), 0u)
      << out.str();
  EXPECT_NE(out.str().find("kubernetes.io/empty-dir  shared  SetUp"), std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("kubernetes.io/secret     -       NotSetUp"), std::string::npos)
      << out.str();
}

TEST(OutputTest, WideShowsPaths) {
  std::ostringstream out;
  PrintVolumes(OnePod(), OutputFormat::kWide, kToday, out);
  EXPECT_NE(out.str().find("/r/pods/u-1/x"), std::string::npos);
  EXPECT_NE(out.str().find("3Mi"), std::string::npos);
}

TEST(OutputTest, WideShowsTheUidAndTheSourceOfAPod) {
  std::ostringstream wide;
  PrintPods(OnePod(), OutputFormat::kWide, kToday, wide);
  EXPECT_TRUE(wide.str().ends_with("  u-1  manifests:/m\n")) << wide.str();
  std::ostringstream table;
  PrintPods(OnePod(), OutputFormat::kTable, kToday, table);
  EXPECT_EQ(table.str().find("u-1"), std::string::npos) << table.str();
}

TEST(OutputTest, JsonAndYamlKeepTheFieldNames) {
  std::ostringstream json;
  PrintPods(OnePod(), OutputFormat::kJson, kToday, json);
  EXPECT_NE(json.str().find("\"host_path\": \"/r/pods/u-1/x\""), std::string::npos) << json.str();
  std::ostringstream yaml;
  PrintPods(OnePod(), OutputFormat::kYaml, kToday, yaml);
  EXPECT_NE(yaml.str().find("host_path: "), std::string::npos) << yaml.str();
  EXPECT_EQ(yaml.str().find('{'), std::string::npos) << yaml.str();
}

TEST(OutputTest, AnUnknownFormatNamesTheKnownOnes) {
  const Result<OutputFormat> format = ParseOutputFormat("xml");
  ASSERT_FALSE(format.ok());
  EXPECT_NE(format.error().message().find("table, wide, json or yaml"), std::string::npos);
}

TEST(OutputTest, AgesAndSizes) {
  EXPECT_EQ(FormatAge(0, kToday), "-");
  EXPECT_EQ(FormatAge(kToday - 59'000, kToday), "59s");
  EXPECT_EQ(FormatAge(kToday - 3'700'000, kToday), "1h1m");
  EXPECT_EQ(FormatAge(kToday - 5LL * 86'400'000, kToday), "5d");
  EXPECT_EQ(FormatAge(kToday + 5'000, kToday), "0s");
  EXPECT_EQ(FormatBytes(517), "517");
  EXPECT_EQ(FormatBytes(1536), "1.5Ki");
  EXPECT_EQ(FormatBytes(12 << 20), "12Mi");
}

// An error said that a pool can promise 1629735322 bytes, where `get pools` has 1.5Gi.
TEST(OutputTest, ErrorsShowBytesAsTheTablesDo) {
  EXPECT_EQ(BytesForPeople(1629735322), "1.5Gi (1629735322 bytes)");
  EXPECT_EQ(BytesForPeople(517), "517 bytes");
  EXPECT_EQ(BytesForPeople(-4096), "-4096 bytes");
}

TEST(ExplainTest, SaysWhatBlocksSinceWhenWhoActsAndWhenNext) {
  v1::GetSourcesResponse sources;
  v1::Source* source = sources.add_sources();
  source->set_name("manifests:/gone");
  source->set_last_error("no such directory");
  std::ostringstream out;
  v1::GetStatusResponse status;
  (*status.mutable_deadlines())["setUp"] = "30s";
  Explain(OnePod().pods(0), sources, status, kToday, out);
  for (const char* part :
       {"pod default/web (uid u-1, from manifests:/m): Pending", "blocked at: SetUp (volume_mount)",
        "since:      4s ago, 3 attempts", "Secret default/s not found [NotFound, not applied]",
        "who acts:   the owner of Secret default/s", "next try:   in 2s",
        "source manifests:/gone: has not delivered a complete list yet; no such directory",
        "deadlines: setUp 30s"}) {
    EXPECT_NE(out.str().find(part), std::string::npos) << part << "\nin:\n" << out.str();
  }
}

TEST(ExplainTest, APodThatWaitsForARawDeviceWasToldOfNodesWhereThereIsAMount) {
  v1::GetPodsResponse pods = OnePod();
  v1::Volume* volume = pods.mutable_pods(0)->mutable_volumes(1);
  volume->set_claim("default/raw");
  volume->set_is_block(true);
  volume->set_device_state("DeviceMounted");
  const auto explained = [&](const std::string& place) {
    volume->set_device_mount_path(place);
    std::ostringstream out;
    Explain(pods.pods(0), v1::GetSourcesResponse(), v1::GetStatusResponse(), kToday, out);
    return out.str();
  };
  EXPECT_NE(explained("/r/plugins/kubernetes.io/csi/d/h/globalmount")
                .find("DeviceMounted at /r/plugins/kubernetes.io/csi/d/h/globalmount"),
            std::string::npos);
  EXPECT_NE(explained("/r/plugins/kubernetes.io/csi/volumeDevices/raw/dev")
                .find("nodes in /r/plugins/kubernetes.io/csi/volumeDevices/raw/dev"),
            std::string::npos);
}

TEST(ExplainTest, ADeviceThatNobodyAttachesWasCalledAttached) {
  v1::GetPodsResponse pods = OnePod();
  v1::Volume* volume = pods.mutable_pods(0)->mutable_volumes(1);
  volume->set_claim("default/raw");
  volume->set_device_state("Attached");
  const auto explained = [&] {
    std::ostringstream out;
    Explain(pods.pods(0), v1::GetSourcesResponse(), v1::GetStatusResponse(), kToday, out);
    return out.str();
  };
  EXPECT_NE(explained().find("device:     Attached\n"), std::string::npos) << explained();
  volume->set_needs_no_attach(true);
  EXPECT_NE(explained().find("device:     not mounted; it needs no attach\n"), std::string::npos)
      << explained();
  volume->set_device_state("DeviceMounted");
  EXPECT_NE(explained().find("device:     DeviceMounted\n"), std::string::npos) << explained();
}

TEST(ExplainTest, AStepThatWaitsForADriverSaysForWhichAndSinceWhen) {
  v1::GetPodsResponse pods = OnePod();
  v1::Volume* volume = pods.mutable_pods(0)->add_volumes();
  volume->set_running_step("MountDevice");
  volume->set_awaited("CSI driver x: NodeStageVolume");
  volume->set_awaited_since_unix_ms(kToday - 65'000);
  std::ostringstream out;
  Explain(pods.pods(0), v1::GetSourcesResponse(), v1::GetStatusResponse(), kToday, out);
  EXPECT_NE(out.str().find(
                "running MountDevice, which awaits CSI driver x: NodeStageVolume since 1m5s\n"),
            std::string::npos)
      << out.str();
}

TEST(ExplainTest, AProblemWithoutAnOutcomeShowedAnEmptyOne) {
  v1::Problem problem;
  problem.set_message("in use by another pod");
  problem.set_code("FailedPrecondition");
  std::ostringstream out;
  ExplainProblem(problem, kToday, out);
  EXPECT_NE(out.str().find("in use by another pod [FailedPrecondition]\n"), std::string::npos)
      << out.str();
}

TEST(ExplainTest, AWarningBlocksNothing) {
  v1::GetPodsResponse pods = OnePod();
  AddWarning(pods);
  std::ostringstream out;
  Explain(pods.pods(0), v1::GetSourcesResponse(), v1::GetStatusResponse(), kToday, out);
  EXPECT_NE(out.str().find("\n  warning: web.yaml: spec.volume: is not a field\n"),
            std::string::npos)
      << out.str();
  EXPECT_EQ(out.str().find("the pod itself"), std::string::npos) << out.str();
}

v1::PendingStep Held(const std::string& step, const std::string& volume, int64_t since) {
  v1::PendingStep held;
  held.set_step(step);
  held.set_volume(volume);
  held.set_since_unix_ms(since);
  return held;
}

TEST(OutputTest, RecordsInOrderAreTwoLines) {
  v1::RecordsStatus records;
  records.set_number(7);
  std::ostringstream out;
  PrintRecords(records, OutputFormat::kTable, kToday, out);
  EXPECT_EQ(out.str(), "transactions: 7\nrecovery:     no\n");
}

TEST(OutputTest, RecoveryShowsWhyAndWhatIsHeldBackAndWhatIsNotKnown) {
  v1::RecordsStatus records;
  records.set_number(412);
  records.set_recovery(true);
  records.set_reason("they end with transaction 398");
  records.set_since_unix_ms(kToday - 65'000);
  records.set_not_compared("machine-id");
  records.set_mounts("2 mounts are on no record");
  records.add_accepted("pv-3");
  *records.add_held() = Held("delete", "pvc-1", kToday - 4'000);
  *records.add_held() = Held("mkfs", "data-0", kToday - 2'000);
  std::ostringstream out;
  PrintRecords(records, OutputFormat::kTable, kToday, out);
  EXPECT_EQ(out.str(),
            "transactions: 412\n"
            "not compared: machine-id (not known here)\n"
            "recovery:     since 1m5s: they end with transaction 398\n"
            "The records may be older than the disks: mkfs, recycle, delete and provision are held "
            "back until\n"
            "`volumectl records accept [--only VOLUME]`; everything else goes on.\n"
            "mounted:      2 mounts are on no record\n"
            "accepted: pv-3\n"
            "STEP    VOLUME  SINCE\n"
            "delete  pvc-1   4s\n"
            "mkfs    data-0  2s\n");
}

TEST(OutputTest, AcceptingListsWhatGoesOn) {
  v1::AcceptRecordsResponse accepted;
  std::ostringstream nothing;
  PrintAccepted(accepted, "", OutputFormat::kTable, kToday, nothing);
  EXPECT_EQ(nothing.str(), "nothing is held back: the records are in order\n");
  accepted.set_was_recovery(true);
  accepted.set_reason("the machine is another one");
  std::ostringstream one;
  PrintAccepted(accepted, "data-0", OutputFormat::kTable, kToday, one);
  EXPECT_EQ(one.str(),
            "records accepted for volume data-0; they were doubted because the machine is another "
            "one\nnothing of it had been held back\n");
  *accepted.add_permitted() = Held("mkfs", "data-0", kToday - 2'000);
  std::ostringstream all;
  PrintAccepted(accepted, "", OutputFormat::kTable, kToday, all);
  EXPECT_EQ(all.str(),
            "records accepted; they were doubted because the machine is another one\n"
            "held back before, and tried now:\n"
            "STEP  VOLUME  SINCE\n"
            "mkfs  data-0  2s\n");
  accepted.mutable_permitted()->Clear();
  *accepted.add_gone() = Held("provision", "pvc-1", kToday - 3'000);
  accepted.set_mounts("2 mounts are on no record");
  std::ostringstream gone;
  PrintAccepted(accepted, "pvc-1", OutputFormat::kTable, kToday, gone);
  EXPECT_EQ(gone.str(),
            "records accepted for volume pvc-1; they were doubted because the machine is another "
            "one\n"
            "held back before, and wanted by nobody any more:\n"
            "STEP       VOLUME  SINCE\n"
            "provision  pvc-1   3s\n"
            "A volume of such a name may be in its driver's storage from before: nobody deletes "
            "it.\n"
            "mounted: 2 mounts are on no record\n");
  accepted.clear_gone();
  accepted.clear_mounts();
  *accepted.add_permitted() = Held("mkfs", "data-0", kToday - 2'000);
  accepted.set_has_damage(true);
  std::ostringstream damage;
  PrintAccepted(accepted, "", OutputFormat::kTable, kToday, damage);
  EXPECT_EQ(damage.str(),
            all.str() +
                "What was in damaged or missing records is given up when the agent starts anew.\n");
}

// The age of a pod began anew with each start of the agent.
TEST(Output, TheAgeOfAPodIsSinceItsCreation) {
  v1::GetPodsResponse pods = OnePod();
  pods.mutable_pods(0)->set_created_unix_ms(kToday - 3'600'000);
  std::ostringstream out;
  PrintPods(pods, OutputFormat::kTable, kToday, out);
  EXPECT_NE(out.str().find("  1h0m  "), std::string::npos) << out.str();
}

v1::AbsentObject ObjectOf(const std::string& kind, const std::string& presence,
                          bool becomes_missing) {
  v1::AbsentObject object;
  object.mutable_object()->set_kind(kind);
  object.mutable_object()->set_namespace_("default");
  object.mutable_object()->set_name("db");
  object.set_file("/m/db.yaml");
  object.set_presence(presence);
  object.set_reason("is not in /m/db.yaml any more");
  object.set_becomes_missing(becomes_missing);
  return object;
}

// A claim was said to go, with a time, and stayed.
TEST(Output, AClaimThatLeavesItsSourceWillBeMissingAndDoesNotGo) {
  v1::GetSourcesResponse sources;
  v1::Source& source = *sources.add_sources();
  source.set_name("manifests:/m");
  *source.add_absent() = ObjectOf("PersistentVolumeClaim", "going", true);
  source.mutable_absent(0)->set_goes_at_unix_ms(kToday + 8'000);
  *source.add_missing() = ObjectOf("PersistentVolume", "missing", true);
  source.set_missing_count(3);
  std::ostringstream out;
  PrintSources(sources, OutputFormat::kTable, kToday, out);
  const std::string shown = out.str();
  EXPECT_NE(shown.find("  PersistentVolumeClaim default/db: will be Missing in 8s: is not in"),
            std::string::npos)
      << shown;
  EXPECT_EQ(shown.find("goes"), std::string::npos) << shown;
  EXPECT_NE(shown.find("  PersistentVolume default/db: Missing: it has left /m/db.yaml"),
            std::string::npos)
      << shown;
  EXPECT_NE(shown.find("  and 2 more that are Missing\n"), std::string::npos) << shown;
}

TEST(Output, WhatBecomesMissingIsNoneOfWhatGoes) {
  google::protobuf::RepeatedPtrField<v1::AbsentObject> goes;
  *goes.Add() = ObjectOf("PersistentVolumeClaim", "held", true);
  std::ostringstream claim;
  PrintGoing(goes, claim);
  EXPECT_TRUE(claim.str().starts_with("nothing goes\nBECOMES MISSING ")) << claim.str();
  *goes.Add() = ObjectOf("Pod", "held", false);
  std::ostringstream both;
  PrintGoing(goes, both);
  EXPECT_TRUE(both.str().starts_with("GOES ")) << both.str();
  EXPECT_LT(both.str().find("Pod default/db"), both.str().find("BECOMES MISSING")) << both.str();
  EXPECT_GT(both.str().find("PersistentVolumeClaim default/db"),
            both.str().find("BECOMES MISSING"));
}

// INCOMPLETE stood beside twice "yes".
TEST(Output, ASourceThatIsIncompleteIsNeitherCompleteNorHealthyInTheTable) {
  v1::GetSourcesResponse sources;
  v1::Source& source = *sources.add_sources();
  source.set_name("manifests:/m");
  source.set_complete(true);
  source.set_healthy(true);
  std::ostringstream in_order;
  PrintSources(sources, OutputFormat::kTable, kToday, in_order);
  EXPECT_NE(in_order.str().find("/m  yes       yes"), std::string::npos) << in_order.str();
  source.set_incomplete_because("the directory held no manifest at all when it was listed");
  std::ostringstream incomplete;
  PrintSources(sources, OutputFormat::kTable, kToday, incomplete);
  EXPECT_NE(incomplete.str().find("/m  no        no"), std::string::npos) << incomplete.str();
}

// A manifest that was renamed to .txt was gone without a word.
TEST(Output, AFileThatIsNotReadForItsNameIsTold) {
  v1::GetSourcesResponse sources;
  v1::Source& source = *sources.add_sources();
  source.set_name("manifests:/m");
  source.add_unread_files("renamed.txt");
  source.set_unread_file_count(1);
  std::ostringstream out;
  PrintSources(sources, OutputFormat::kTable, kToday, out);
  EXPECT_TRUE(
      out.str().ends_with("manifests:/m: 1 file is not read, as the name ends in none of "
                          ".yaml, .yml and .json: renamed.txt\n"))
      << out.str();
}

// "since: - ago".
TEST(Output, AProblemOfWhichNobodyKnowsSinceWhenDoesNotSaySo) {
  v1::Problem problem;
  problem.set_message("is no name");
  std::ostringstream out;
  ExplainProblem(problem, kToday, out);
  EXPECT_EQ(out.str().find("since"), std::string::npos) << out.str();
}

// Somebody saw a pod going, and not that its data goes.
TEST(Output, WhatGoesTellsOfItsDataOnDisk) {
  v1::GetSourcesResponse sources;
  v1::AbsentObject& absent = *sources.add_sources()->add_absent();
  absent.mutable_object()->set_kind("Pod");
  absent.mutable_object()->set_namespace_("default");
  absent.mutable_object()->set_name("db-n1");
  absent.set_reason("is not in /m/db.yaml any more");
  absent.add_disk_data("data");
  for (const bool going : {true, false}) {
    absent.set_presence(going ? "going" : "held");
    std::ostringstream out;
    PrintSources(sources, OutputFormat::kTable, kToday, out);
    const bool told =
        out.str().find("; the data on disk of its volumes goes with it: data") != std::string::npos;
    EXPECT_EQ(told, going) << out.str();
  }
}

}  // namespace
}  // namespace volumed
