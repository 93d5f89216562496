// Verbs that only ask: what they print in which format, and how they end.
#include <fstream>

#include "unit/cli/scripted_agent.h"

namespace volumed {
namespace {

using VerbsTest = CommandsTest;

v1::GetPodsResponse PageWith(const std::string& pod, const std::string& next) {
  v1::GetPodsResponse page;
  page.add_pods()->set_name(pod);
  page.mutable_pods(0)->set_namespace_("shop");
  if (!next.empty()) page.set_next_page(next);
  return page;
}

TEST_F(VerbsTest, AStatusIsYamlUnlessJsonIsAskedFor) {
  agent_.status.set_root("/r");
  EXPECT_NE(Run({"status"}).out.find("root: /r"), std::string::npos);
  EXPECT_NE(Run({"status", "-o", "yaml"}).out.find("root: /r"), std::string::npos);
  EXPECT_NE(Run({"status", "-o", "json"}).out.find("\"root\": \"/r\""), std::string::npos);
}

TEST_F(VerbsTest, WhatDoesNotWorkStoodBelowSixteenDeadlinesInNoOrder) {
  agent_.status.set_version("1");
  agent_.status.add_failed_parts()->set_name("metrics");
  agent_.status.mutable_mount_table()->set_source("events");
  (*agent_.status.mutable_kernel_features())["fsopen"] = true;
  for (const char* step : {"setUp", "attach", "reclaim", "detach"}) {
    (*agent_.status.mutable_deadlines())[step] = "30s";
  }
  const std::string shown = Run({"status"}).out;
  EXPECT_NE(shown.find("fsopen: true\n"), std::string::npos) << shown;
  size_t before = 0;
  for (const char* part : {"version: ", "failed_parts:", "mount_table:", "kernel_features:",
                           "deadlines:\n  attach: 30s\n  detach: 30s\n  reclaim: 30s\n"}) {
    const size_t at = shown.find(part, before);
    ASSERT_NE(at, std::string::npos) << part << "\nin:\n" << shown;
    before = at + 1;
  }
}

TEST_F(VerbsTest, PodsAreFetchedPageByPage) {
  agent_.pages = {PageWith("web", "1"), PageWith("db", "")};
  const Printed printed = Run({"get", "pods"});
  EXPECT_EQ(printed.code, kExitOk);
  EXPECT_NE(printed.out.find("web"), std::string::npos);
  EXPECT_NE(printed.out.find("db"), std::string::npos);
  EXPECT_EQ(agent_.pages_asked, (std::vector<std::string>{"", "1"}));
}

TEST_F(VerbsTest, AListThatIsRefusedPrintsNoPods) {
  agent_.refusal = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not for you");
  const Printed printed = Run({"get", "pods"});
  EXPECT_EQ(printed.code, kExitForbidden);
  EXPECT_EQ(printed.out, "");
  EXPECT_NE(printed.err.find("not for you"), std::string::npos);
}

TEST_F(VerbsTest, APodThatIsNotThereIsNotFound) {
  agent_.pages = {v1::GetPodsResponse()};
  const Printed printed = Run({"get", "pods", "web"});
  EXPECT_EQ(printed.code, kExitNotFound);
  EXPECT_NE(printed.err.find("web"), std::string::npos);
}

TEST_F(VerbsTest, AKindThatTheAgentOnlyKeepsIsListedAndIsNoPod) {
  agent_.pages = {PageWith("web", "")};
  agent_.objects.add_listed()->mutable_object()->set_name("login");
  const Printed printed = Run({"get", "secrets"});
  EXPECT_EQ(printed.code, kExitOk) << printed.err;
  EXPECT_NE(printed.out.find("login"), std::string::npos) << printed.out;
  EXPECT_EQ(printed.out.find("web"), std::string::npos) << printed.out;
  EXPECT_EQ(agent_.listed_kind, "secret");
  EXPECT_TRUE(agent_.pages_asked.empty());
}

// The kind and the name in one word, as kubectl takes them, were "name is required".
TEST_F(VerbsTest, DescribeDidNotTakeKindAndNameInOneWord) {
  EXPECT_EQ(Run({"describe", "pvc/data"}).code, kExitOk);
  EXPECT_EQ(agent_.described.kind(), "pvc");
  EXPECT_EQ(agent_.described.name(), "data");
  EXPECT_EQ(Run({"describe", "pvc"}).code, kExitUsage);
}

TEST_F(VerbsTest, DescribeOfAKindThatIsNoneDidNotSayWhichThereAre) {
  agent_.refusal = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "unknown kind 'pool'");
  const Printed printed = Run({"describe", "pool", "main"});
  EXPECT_EQ(printed.code, kExitUsage);
  EXPECT_NE(printed.err.find("unknown kind 'pool'"), std::string::npos) << printed.err;
  EXPECT_NE(printed.err.find("KIND is one of pod, volume, secret"), std::string::npos)
      << printed.err;
}

TEST_F(VerbsTest, NamesAreCompletedByTheAgentWhoseSocketTheLineNames) {
  agent_.objects.add_objects()->set_name("login");
  const std::vector<std::string> line = {"__complete", "--socket", socket_, "get", "secrets", "lo"};
  EXPECT_EQ(RunLine(line).out, "login\n");
  EXPECT_EQ(agent_.listed_kind, "secret");
}

TEST_F(VerbsTest, AHoldIsReleasedOnlyIfThatIsAskedFor) {
  EXPECT_EQ(Run({"hold", "web", "--pid", "7"}).out, "pod web held by pid 7\n");
  EXPECT_EQ(agent_.held.pid(), 7);
  EXPECT_FALSE(agent_.released.has_pod());
  EXPECT_EQ(Run({"hold", "web", "--cgroup", "/c", "--release"}).out,
            "pod web released by cgroup /c\n");
  EXPECT_EQ(agent_.released.cgroup(), "/c");
  EXPECT_EQ(agent_.released.pod().name(), "web");
}

TEST_F(VerbsTest, EventsAreOfAPodUnlessAKindIsNamed) {
  v1::ObjectEvent* logged = agent_.events.add_events();
  logged->mutable_object()->set_kind("Pod");
  logged->mutable_object()->set_namespace_("shop");
  logged->mutable_object()->set_name("web");
  logged->mutable_event()->set_reason("FailedMount");
  agent_.events.set_not_shown(3);
  const Printed printed = Run({"events", "web", "-n", "shop"});
  EXPECT_NE(printed.out.find("LAST SEEN"), std::string::npos);
  EXPECT_NE(printed.out.find("Pod shop/web"), std::string::npos) << printed.out;
  EXPECT_NE(printed.out.find("and 3 older ones\n"), std::string::npos);
  EXPECT_EQ(agent_.events_asked.kind(), "Pod");
  EXPECT_EQ(agent_.events_asked.name(), "web");
  EXPECT_EQ(agent_.events_asked.namespace_(), "shop");
  Run({"events", "pvc/prod/data"});
  EXPECT_EQ(agent_.events_asked.kind(), "pvc");
  EXPECT_EQ(agent_.events_asked.name(), "data");
  EXPECT_EQ(agent_.events_asked.namespace_(), "prod");
  Run({"events"});
  EXPECT_EQ(agent_.events_asked.kind(), "") << "those of all kinds";
  EXPECT_EQ(agent_.events_asked.name(), "");
}

TEST_F(VerbsTest, DriversAreListedWithTheSocketsThatAreNotRegistered) {
  v1::Driver* driver = agent_.drivers.add_drivers();
  driver->set_name("disk.example.com");
  driver->set_state("ready");
  v1::RegistrySocket* socket = agent_.drivers.add_sockets();
  socket->set_path("/r/evil.sock");
  socket->set_state("refused");
  socket->set_owner(1000);
  socket->set_reason("/r/evil.sock is of uid 1000");
  const Printed printed = Run({"get", "drivers"});
  EXPECT_EQ(printed.code, kExitOk) << printed.err;
  EXPECT_EQ(agent_.driver_asked, "");
  EXPECT_NE(printed.out.find("disk.example.com  ready"), std::string::npos) << printed.out;
  EXPECT_NE(printed.out.find("/r/evil.sock  refused  1000"), std::string::npos) << printed.out;
  EXPECT_EQ(Run({"describe", "driver", "disk.example.com"}).code, kExitOk);
  EXPECT_EQ(agent_.driver_asked, "disk.example.com");
}

TEST_F(VerbsTest, ADriverIsAskedByHandWithTheJsonOfAFileAndAnswersJson) {
  const std::string file = directory_ + "/request.json";
  std::ofstream(file) << "{\"volume_id\":\"v\"}";
  agent_.driver_answer = "{\"usage\":[]}";
  const Printed printed = Run({"csi", "d.io", "NodeGetVolumeStats", "--json", file});
  EXPECT_EQ(printed.code, kExitOk) << printed.err;
  EXPECT_EQ(printed.out, "{\"usage\":[]}\n");
  EXPECT_EQ(agent_.driver_call.driver(), "d.io");
  EXPECT_EQ(agent_.driver_call.method(), "NodeGetVolumeStats");
  EXPECT_EQ(agent_.driver_call.request_json(), "{\"volume_id\":\"v\"}");
  EXPECT_EQ(agent_.driver_call.timeout_ms(), 9000) << "the agent answers before it is given up";
}

TEST_F(VerbsTest, TheTraceOfADriverShowsHowEachCallEnded) {
  v1::TracedCall* call = agent_.trace.add_calls();
  call->set_method("/csi.v1.Node/NodeStageVolume");
  call->set_key("vol-1");
  call->set_took_us(1'500'000);
  call->set_sent(true);
  call->set_code("Internal");
  call->set_outcome("MaybeApplied");
  call->set_message("disk on fire");
  const Printed printed = Run({"csi", "d.io", "--trace", "--back", "60"});
  EXPECT_EQ(printed.code, kExitOk) << printed.err;
  EXPECT_EQ(agent_.trace_asked.back_ms(), 60'000);
  EXPECT_NE(
      printed.out.find("1500ms  NodeStageVolume  vol-1  Internal (MaybeApplied): disk on fire"),
      std::string::npos)
      << printed.out;
}

TEST_F(VerbsTest, ACallOfADriverNeedsAnRpcOrTheTraceAndNotBoth) {
  EXPECT_EQ(Run({"csi", "d.io"}).code, kExitUsage);
  EXPECT_EQ(Run({"csi", "d.io", "Probe", "--trace"}).code, kExitUsage);
  EXPECT_EQ(Run({"csi", "d.io", "--trace", "--json", "f"}).code, kExitUsage);
  const Printed json = Run({"csi", "d.io", "NodeGetInfo", "--json", "{}"});
  EXPECT_EQ(json.code, kExitUsage);
  EXPECT_NE(json.err.find("--json takes a file, or - for standard input"), std::string::npos)
      << "it said that it cannot read {}: " << json.err;
  EXPECT_EQ(Run({"csi", "d.io", "Probe", "--back", "5"}).code, kExitUsage);
}

TEST_F(VerbsTest, ARetryOfADriverSaysWhatItWaitsFor) {
  EXPECT_EQ(Run({"retry", "--driver", "d.io"}).out, "volumes of CSI driver d.io are tried again\n");
  EXPECT_EQ(agent_.retried_driver, "d.io");
  agent_.why_away = "CSI driver d.io is gone since yesterday";
  EXPECT_EQ(Run({"retry", "--driver", "d.io"}).out,
            "volumes of CSI driver d.io are tried again\n"
            "  they wait: CSI driver d.io is gone since yesterday\n");
  EXPECT_EQ(Run({"retry", "web", "--driver", "d.io"}).code, kExitUsage);
  EXPECT_EQ(Run({"retry", "--all", "--driver", "d.io"}).code, kExitUsage);
}

TEST_F(VerbsTest, NamesOfDriversAreCompleted) {
  agent_.drivers.add_drivers()->set_name("disk.example.com");
  EXPECT_EQ(RunLine({"__complete", "--socket", socket_, "csi", "di"}).out, "disk.example.com\n");
  EXPECT_EQ(RunLine({"__complete", "--socket", socket_, "get", "drivers", "di"}).out,
            "disk.example.com\n");
}

// ---- snapshots ----------------------------------------------------------------------------------

void AddSnapshot(const std::string& id, v1::GetSnapshotsResponse* all) {
  v1::Snapshot* const one = all->add_snapshots();
  one->set_id(id);
  one->set_volume("v-1");
  one->set_phase("Ready");
}

TEST_F(VerbsTest, PoolsAndSnapshotsAreNounsOfGet) {
  agent_.pools.add_pools()->set_name("main");
  AddSnapshot("s-1", &agent_.snapshots);
  EXPECT_NE(Run({"get", "pools"}).out.find("main"), std::string::npos);
  EXPECT_EQ(agent_.pool_asked, "");
  EXPECT_NE(Run({"get", "snapshots"}).out.find("s-1"), std::string::npos);
  EXPECT_NE(Run({"snapshot", "get", "--volume", "v-1"}).out.find("s-1"), std::string::npos);
  EXPECT_EQ(agent_.snapshots_asked.volume(), "v-1");
  const Printed described = Run({"describe", "snapshot", "s-1"});
  EXPECT_NE(described.out.find("Phase:"), std::string::npos) << described.out;
  EXPECT_EQ(agent_.snapshots_asked.id(), "s-1");
}

TEST_F(VerbsTest, IdsOfSnapshotsAndNamesOfPoolsAreCompleted) {
  AddSnapshot("s-1", &agent_.snapshots);
  agent_.pools.add_pools()->set_name("main");
  const std::vector<std::string> asked = {"__complete", "--socket", socket_};
  const auto offers = [&](std::vector<std::string> words) {
    words.insert(words.begin(), asked.begin(), asked.end());
    return RunLine(words).out;
  };
  EXPECT_EQ(offers({"snapshot", "delete", "s"}), "s-1\n");
  EXPECT_EQ(offers({"describe", "snapshot", "s"}), "s-1\n");
  EXPECT_EQ(offers({"get", "pools", "m"}), "main\n");
}

// A volume of a pool that no PersistentVolume names was in no list, and nothing deleted it.
TEST_F(VerbsTest, TheVolumesOfPoolsAreListedCompletedAndDeleted) {
  EXPECT_EQ(Run({"get", "pool-volumes"}).out, "there are no volumes in pools\n");
  v1::PoolVolume* const one = agent_.pool_volumes.add_volumes();
  one->set_id("vol-1");
  one->set_pool("main");
  one->set_backend("image");
  one->set_size_bytes(int64_t{400} << 20);
  one->set_state("Ready");
  one->set_name("hand:back");
  one->set_fs_type("xfs");
  one->set_volume_mode("Filesystem");
  EXPECT_EQ(Run({"get", "pool-volumes"}).out,
            "ID     POOL  BACKEND  SIZE   STATE  NAME       USED BY\n"
            "vol-1  main  image    400Mi  Ready  hand:back  -\n");
  one->add_had_by("PersistentVolume data");
  one->add_had_by("claim shop/data");
  const std::string wide = Run({"get", "pool-volume", "vol-1", "-o", "wide"}).out;
  EXPECT_NE(wide.find("Filesystem  xfs         PersistentVolume data, claim shop/data"),
            std::string::npos)
      << wide;
  EXPECT_EQ(agent_.pool_volume_asked, "vol-1");
  EXPECT_EQ(Run({"get", "pool-volumes", "vol-9"}).code, kExitNotFound);
  EXPECT_EQ(RunLine({"__complete", "--socket", socket_, "pool", "delete", "v"}).out, "vol-1\n");
  EXPECT_EQ(RunLine({"__complete", "--socket", socket_, "get", "pool-volumes", "v"}).out,
            "vol-1\n");
  agent_.what_stays = "its snapshots stay: snap-1";
  const Printed deleted = Run({"pool", "delete", "vol-had", "vol-1"});
  EXPECT_EQ(deleted.out, "volume vol-1 deleted\n");
  EXPECT_NE(deleted.code, kExitOk) << "one of them is not";
  EXPECT_NE(deleted.err.find("PersistentVolume data has it"), std::string::npos) << deleted.err;
  EXPECT_NE(deleted.err.find("note: its snapshots stay: snap-1"), std::string::npos);
  EXPECT_EQ(agent_.pool_volumes_deleted, (std::vector<std::string>{"vol-had", "vol-1"}));
}

// A snapshot could be asked for by the name of the PersistentVolume alone.
TEST_F(VerbsTest, ASnapshotIsAskedForByAClaimOfTheNamespaceThatIsGiven) {
  AddSnapshot("s-1", &agent_.snapshots);
  Run({"snapshot", "create", "pvc/data", "-n", "shop"});
  EXPECT_EQ(agent_.snapshot_created.volume(), "pvc/data");
  EXPECT_EQ(agent_.snapshot_created.namespace_(), "shop");
}

TEST_F(VerbsTest, ASnapshotThatIsNotThereIsNotFound) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"get", "snapshots", "s-9"},
        std::vector<std::string>{"describe", "snapshot", "s-9"},
        std::vector<std::string>{"get", "pools", "p-9"}}) {
    const Printed printed = Run(words);
    EXPECT_EQ(printed.code, kExitNotFound) << words[0] << words[1];
    EXPECT_NE(printed.err.find("-9"), std::string::npos) << printed.err;
  }
}

TEST_F(VerbsTest, ASnapshotIsMadeUnderTheNameThatIsGivenOrANewOne) {
  AddSnapshot("s-1", &agent_.snapshots);
  EXPECT_EQ(Run({"snapshot", "create", "pv-1", "--name", "nightly"}).out,
            "snapshot s-1 of v-1: Ready\n");
  EXPECT_EQ(agent_.snapshot_created.volume(), "pv-1");
  EXPECT_EQ(agent_.snapshot_created.name(), "nightly");
  EXPECT_EQ(Run({"snapshot", "create", "pv-1"}).code, kExitOk);
  EXPECT_TRUE(agent_.snapshot_created.name().starts_with("at-"));
  EXPECT_NE(Run({"snapshot", "create", "pv-1", "-o", "json"}).out.find("\"id\": \"s-1\""),
            std::string::npos);
  EXPECT_EQ(Run({"snapshot", "create"}).code, kExitUsage);
}

TEST_F(VerbsTest, ASnapshotIsDeletedAndCancelledByItsId) {
  EXPECT_EQ(Run({"snapshot", "delete", "s-1"}).out, "snapshot s-1 deleted\n");
  EXPECT_EQ(agent_.snapshot_deleted, "s-1");
  EXPECT_EQ(Run({"snapshot", "cancel", "s-2"}).code, kExitOk);
  EXPECT_EQ(agent_.snapshot_cancelled, "s-2");
}

TEST_F(VerbsTest, ARestoreSaysTheVolumeAndPrintsWhatCanBeApplied) {
  agent_.restored.set_volume("v-2");
  agent_.restored.set_size_bytes(int64_t{2} << 30);
  agent_.restored.set_manifest("{\"kind\":\"PersistentVolume\"}");
  const Printed printed = Run({"snapshot", "restore", "s-1", "copy", "--size", "2Gi"});
  EXPECT_EQ(printed.code, kExitOk) << printed.err;
  EXPECT_EQ(printed.out, "{\"kind\":\"PersistentVolume\"}\n");
  EXPECT_NE(printed.err.find("volume v-2 of 2Gi"), std::string::npos) << printed.err;
  EXPECT_EQ(agent_.snapshot_restored.id(), "s-1");
  EXPECT_EQ(agent_.snapshot_restored.name(), "copy");
  EXPECT_EQ(agent_.snapshot_restored.size_bytes(), int64_t{2} << 30);
}

TEST_F(VerbsTest, AWatchEndsWellOnlyIfTheSnapshotIsReady) {
  v1::WatchSnapshotResponse answer;
  answer.mutable_snapshot()->set_phase("Ready");
  agent_.progress = {answer};
  EXPECT_EQ(Run({"snapshot", "watch", "s-1", "--interval", "0.5"}).out, "Ready\n");
  EXPECT_EQ(agent_.snapshot_watched.interval_ms(), 500);
  EXPECT_EQ(Run({"snapshot", "watch", "s-1"}).code, kExitOk);
  agent_.progress[0].mutable_snapshot()->set_phase("Failed");
  EXPECT_EQ(Run({"snapshot", "watch", "s-1"}).code, kExitError);
}

// ---- imports ------------------------------------------------------------------------------------

TEST_F(VerbsTest, AnImportOnlyLooksWithoutYesAndPrintsNothingThatCouldBeApplied) {
  agent_.imported.set_kind("image");
  agent_.imported.set_size_bytes(int64_t{2} << 30);
  agent_.imported.set_volume_mode("Filesystem");
  agent_.imported.set_fs_type("xfs");
  agent_.imported.set_fs_uuid("uuid-1");
  agent_.imported.set_deed("it becomes a volume of pool fast");
  agent_.imported.add_notes("its filesystem is not clean");
  agent_.imported.set_to_do(true);
  agent_.imported.set_manifest("{\"kind\":\"PersistentVolume\"}");
  const Printed looked = Run({"pool", "import", "/srv/old/disk.img", "--pool", "fast"});
  EXPECT_EQ(looked.code, kExitOk) << looked.err;
  EXPECT_EQ(looked.out, "");
  for (const char* part :
       {"image of 2Gi, Filesystem, xfs uuid-1", "it becomes a volume of pool fast",
        "note: its filesystem is not clean", "nothing was done yet", "\"PersistentVolume\""}) {
    EXPECT_NE(looked.err.find(part), std::string::npos) << looked.err;
  }
  EXPECT_EQ(agent_.import_asked.source(), "/srv/old/disk.img");
  EXPECT_EQ(agent_.import_asked.pool(), "fast");
  EXPECT_FALSE(agent_.import_asked.yes());
}

TEST_F(VerbsTest, AnImportThatIsDonePrintsThePersistentVolumeAlone) {
  agent_.imported.set_kind("image");
  agent_.imported.set_volume("v-2");
  agent_.imported.set_manifest("{\"kind\":\"PersistentVolume\"}");
  const Printed done =
      Run({"pool", "import", "/srv/old/disk.img", "--yes", "--pv-name", "old", "--size", "1Gi"});
  EXPECT_EQ(done.code, kExitOk) << done.err;
  EXPECT_EQ(done.out, "{\"kind\":\"PersistentVolume\"}\n");
  EXPECT_NE(done.err.find("volume v-2"), std::string::npos) << done.err;
  EXPECT_TRUE(agent_.import_asked.yes());
  EXPECT_EQ(agent_.import_asked.pv_name(), "old");
  EXPECT_EQ(agent_.import_asked.size_bytes(), int64_t{1} << 30);
  EXPECT_NE(Run({"pool", "import", "/x", "-o", "json"}).out.find("\"volume\": \"v-2\""),
            std::string::npos);
}

TEST_F(VerbsTest, AnImportThatIsRefusedSaysWhyAndOneWithoutASourceIsNone) {
  agent_.refusal = {grpc::StatusCode::FAILED_PRECONDITION, "it is attached as /dev/loop3"};
  const Printed refused = Run({"pool", "import", "/srv/old/disk.img"});
  EXPECT_NE(refused.code, kExitOk);
  EXPECT_NE(refused.err.find("/dev/loop3"), std::string::npos) << refused.err;
  EXPECT_EQ(Run({"pool", "import"}).code, kExitUsage);
  EXPECT_EQ(Run({"pool"}).code, kExitUsage);
}

TEST_F(VerbsTest, PoolsAreCompletedForAnImport) {
  agent_.pools.add_pools()->set_name("main");
  EXPECT_EQ(RunLine({"__complete", "--socket", socket_, "pool", "import", "/x", "--pool", "m"}).out,
            "main\n");
}

}  // namespace
}  // namespace volumed
