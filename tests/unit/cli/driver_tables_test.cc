#include "cli/driver_tables.h"

#include <gtest/gtest.h>

#include <sstream>

namespace volumed {
namespace {

constexpr int64_t kLookedAt = 1'000'000'000'000;

v1::GetDriversResponse TwoDrivers() {
  v1::GetDriversResponse all;
  v1::Driver* ready = all.add_drivers();
  ready->set_name("a.io");
  ready->set_state("ready");
  ready->set_since_unix_ms(kLookedAt - 65'000);
  ready->set_vendor_version("2.1");
  ready->set_node_id("node-a");
  ready->set_endpoint("/k/a.sock");
  ready->set_calls_in_flight(2);
  ready->set_calls_at_a_time(64);
  ready->set_sets_up(true);
  ready->set_takes_away(true);
  ready->set_connected(true);
  ready->set_max_volumes(16);
  ready->set_volumes(3);
  (*ready->mutable_topology())["a.io/zone"] = "z1";
  ready->add_node_capabilities("STAGE_UNSTAGE_VOLUME");
  ready->add_node_capabilities("EXPAND_VOLUME");
  v1::Driver* gone = all.add_drivers();
  gone->set_name("b.io");
  gone->set_state("gone");
  gone->set_since_unix_ms(kLookedAt - 3'000);
  gone->set_reason("CSI driver b.io is gone since 2001-09-09T01:46:37Z: nobody listens at /b.sock");
  gone->set_calls_at_a_time(4);
  gone->set_operations_waiting(7);
  return all;
}

std::string TableOf(const v1::GetDriversResponse& drivers, OutputFormat format) {
  std::ostringstream out;
  PrintDrivers(drivers, format, kLookedAt, out);
  return out.str();
}

std::string DescriptionOf(const v1::GetDriversResponse& drivers) {
  std::ostringstream out;
  PrintDriverDescription(drivers, kLookedAt, out);
  return out.str();
}

TEST(DriverTablesTest, WhatADriverIsOwedAndWhatIsOpenWasInNoDescription) {
  v1::GetDriversResponse drivers = TwoDrivers();
  drivers.mutable_drivers()->DeleteSubrange(1, 1);
  v1::Driver& driver = *drivers.mutable_drivers(0);
  driver.add_open_calls("DeleteVolume by hand of \"v\"");
  driver.set_open_call_count(1);
  driver.add_owed_calls("NodeUnstageVolume of volume v");
  driver.set_owed_call_count(2);
  const std::string text = DescriptionOf(drivers);
  EXPECT_NE(text.find("1: DeleteVolume by hand of \"v\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2: NodeUnstageVolume of volume v, ...\n"), std::string::npos) << text;
}

TEST(DriverTablesTest, TheDescriptionOfADriverThatIsNotKnownWasAnEmptyLine) {
  const std::string text = DescriptionOf(v1::GetDriversResponse());
  EXPECT_EQ(text.find("no driver of this name is known here\n"), 0u) << text;
}

TEST(DriverTablesTest, ADriverIsALineAndWhyItIsAwayIsItsLast) {
  EXPECT_EQ(TableOf(TwoDrivers(), OutputFormat::kTable),
            "NAME  STATE  SINCE  VERSION  VOLUMES  CALLS  WAITING  REASON\n"
            "a.io  ready  1m5s   2.1      3        2/64   0        -\n"
            "b.io  gone   3s     -        -        0/4    7        nobody listens at /b.sock\n");
  const std::string wide = TableOf(TwoDrivers(), OutputFormat::kWide);
  EXPECT_NE(wide.find("NODE ID  ENDPOINT   REASON\n"), std::string::npos) << wide;
  EXPECT_NE(wide.find("node-a   /k/a.sock  -\n"), std::string::npos) << wide;
}

TEST(DriverTablesTest, TheReasonRepeatedNameStateAndTimeOfItsRow) {
  v1::GetDriversResponse all = TwoDrivers();
  const auto reason_of = [&all](const std::string& reason) {
    all.mutable_drivers(1)->set_reason(reason);
    const std::string table = TableOf(all, OutputFormat::kTable);
    const std::string row = table.substr(table.find("b.io"));
    return row.substr(std::string("b.io  gone   3s     -        -        0/4    7        ").size());
  };
  EXPECT_EQ(reason_of("CSI driver b.io is gone since 2001-09-09T01:46:37Z"), "-\n");
  EXPECT_EQ(reason_of("CSI driver b.io is not registered any more since 2001-09-09T01:46:37.5Z: "
                      "open /b.sock: No such file; the driver has to be started"),
            "open /b.sock: No such file; the driver has to be started\n");
  EXPECT_EQ(reason_of("CSI driver b.io has not registered since the agent started: its registrar"),
            "has not registered since the agent started: its registrar\n");
  EXPECT_EQ(reason_of("CSI driver b.io calls this node \"x\""), "calls this node \"x\"\n");
}

TEST(DriverTablesTest, SocketsThatAreNotRegisteredStandBelowWithOwnerAndNextTry) {
  v1::GetDriversResponse all;
  EXPECT_EQ(TableOf(all, OutputFormat::kTable), "no CSI driver has registered\n");
  all.add_sockets()->set_state("registered");
  EXPECT_EQ(TableOf(all, OutputFormat::kTable), "no CSI driver has registered\n");
  v1::RegistrySocket* waiting = all.add_sockets();
  waiting->set_path("/r/c.sock");
  waiting->set_state("waiting");
  waiting->set_owner(0);
  waiting->set_driver("c.io");
  waiting->set_next_try_unix_ms(kLookedAt + 2'000);
  waiting->set_reason("no node id");
  EXPECT_EQ(TableOf(all, OutputFormat::kTable),
            "no CSI driver has registered\n"
            "\n"
            "not registered:\n"
            "SOCKET     STATE    OWNER  DRIVER  NEXT TRY  REASON\n"
            "/r/c.sock  waiting  0      c.io    in 2s     no node id\n");
}

TEST(DriverTablesTest, ADescriptionHasWhatTheDriverCanDoAndWhatOperationsMay) {
  const std::string text = DescriptionOf(TwoDrivers());
  for (const char* part :
       {"State:           ready since 1m5s", "Volumes:         3 here, 16 at most",
        "Volumes:     no limit", "Topology:        a.io/zone=z1",
        "Node can:        STAGE_UNSTAGE_VOLUME, EXPAND_VOLUME",
        "may begin; 0 waiting, 2 calls under way of 64 at a time", "Connected:   no",
        "wait; 7 waiting, 0 calls under way of 4 at a time"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(DriverTablesTest, AControllerThatIsAwayIsShownOfADriverThatIsReady) {
  v1::GetDriversResponse all = TwoDrivers();
  v1::Driver* ready = all.mutable_drivers(0);
  ready->set_controller_state("not connected");
  ready->set_controller_endpoint("/run/a.sock");
  ready->set_controller_since_unix_ms(kLookedAt - 65'000);
  ready->set_controller_reason("no such file");
  EXPECT_NE(TableOf(all, OutputFormat::kTable)
                .find("no connection to its controller at /run/a.sock: no such file\n"),
            std::string::npos);
  const auto controller = [&] {
    const std::string text = DescriptionOf(all);
    const size_t begin = text.find("Controller:");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(controller(), "Controller:      not connected since 1m5s at /run/a.sock: no such file");
  ready->set_controller_state("silent");
  ready->set_controller_reason("no answer");
  EXPECT_EQ(controller(), "Controller:      silent since 1m5s at /run/a.sock: no answer");
  EXPECT_NE(TableOf(all, OutputFormat::kTable)
                .find("its controller at /run/a.sock does not answer: no answer\n"),
            std::string::npos);
  ready->set_controller_state("connected");
  EXPECT_EQ(controller(), "Controller:      connected at /run/a.sock");
  ready->set_controller_state("own socket");
  EXPECT_EQ(controller(), "Controller:      at the driver's own socket");
  ready->set_controller_state("none");
  EXPECT_EQ(controller(),
            "Controller:      not configured: csi-controller-endpoints names none for it");
}

TEST(DriverTablesTest, AnEndpointOfADriverThatNeverRegisteredStandsBelow) {
  v1::GetDriversResponse all;
  v1::UnusedController* unused = all.add_unused_controllers();
  unused->set_driver("dsik.io");
  unused->set_endpoint("/run/a.sock");
  EXPECT_EQ(TableOf(all, OutputFormat::kTable),
            "no CSI driver has registered\n"
            "\n"
            "in csi-controller-endpoints, and not known here:\n"
            "DRIVER   ENDPOINT\n"
            "dsik.io  /run/a.sock\n");
}

TEST(DriverTablesTest, TheLastErrorOfADriverThatIsReadyIsShownWithItsTime) {
  v1::GetDriversResponse all = TwoDrivers();
  all.mutable_drivers(0)->set_last_error("broken off");
  all.mutable_drivers(0)->set_last_error_unix_ms(kLookedAt - 65'000);
  EXPECT_NE(DescriptionOf(all).find("Last error:      broken off (1m5s ago)\n"), std::string::npos)
      << DescriptionOf(all);
}

TEST(DriverTablesTest, ACallThatWasNeverSentSaysSoAndTheWideTraceHasTheMessages) {
  v1::GetDriverTraceResponse trace;
  std::ostringstream none;
  PrintTrace(trace, OutputFormat::kTable, kLookedAt, none);
  EXPECT_EQ(none.str(), "no call is kept\n");
  v1::TracedCall* call = trace.add_calls();
  call->set_method("/csi.v1.Node/NodePublishVolume");
  call->set_key("v");
  call->set_asked_unix_ms(kLookedAt - 1'000);
  call->set_took_us(900);
  call->set_code("Unavailable");
  call->set_outcome("NotApplied");
  call->set_message("nobody listens");
  call->set_request("volume_id: \"v\"");
  std::ostringstream out;
  PrintTrace(trace, OutputFormat::kTable, kLookedAt, out);
  EXPECT_EQ(out.str(),
            "AGE  WAITED  TOOK   RPC                ABOUT  END\n"
            "1s   0us     900us  NodePublishVolume  v      Unavailable (NotApplied, not sent): "
            "nobody listens\n");
  std::ostringstream wide;
  PrintTrace(trace, OutputFormat::kWide, kLookedAt, wide);
  EXPECT_NE(wide.str().find("volume_id: \"v\"  -\n"), std::string::npos) << wide.str();
}

TEST(DriverTablesTest, TheCallThatHungWasNotInTheTraceAndALieStoodThereAsOk) {
  v1::GetDriverTraceResponse trace;
  v1::TracedCall* lie = trace.add_calls();
  lie->set_method("/csi.v1.Node/NodePublishVolume");
  lie->set_key("v");
  lie->set_asked_unix_ms(kLookedAt - 30'000);
  lie->set_took_us(4'000);
  lie->set_sent(true);
  lie->set_code("OK");
  lie->set_not_true("nothing is mounted at /p");
  v1::TracedCall* hangs = trace.add_calls();
  hangs->set_method("/csi.v1.Node/NodeStageVolume");
  hangs->set_key("w");
  hangs->set_asked_unix_ms(kLookedAt - 25'000);
  hangs->set_waited_us(5'000'000);
  hangs->set_took_us(20'000'000);
  hangs->set_sent(true);
  hangs->set_under_way(true);
  std::ostringstream out;
  PrintTrace(trace, OutputFormat::kTable, kLookedAt, out);
  EXPECT_EQ(out.str(),
            "AGE  WAITED  TOOK  RPC                ABOUT  END\n"
            "30s  0us     4ms   NodePublishVolume  v      OK, not true: nothing is mounted at /p\n"
            "25s  5000ms  -     NodeStageVolume    w      running since 20s\n");
}

TEST(DriverTablesTest, WhenADriverSaidWhatItCanDoIsNotCalledItsLastUse) {
  v1::GetDriversResponse all = TwoDrivers();
  all.mutable_drivers(0)->set_last_ready_unix_ms(kLookedAt - 123'000);
  const std::string text = DescriptionOf(all);
  EXPECT_NE(text.find("Introduced:      2m3s ago\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("Last used"), std::string::npos) << text;
}

}  // namespace
}  // namespace volumed
