// What is counted of CSI drivers.
#include "agent/csi_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/csi_served_figures.h"
#include "csi/rpc/csi_methods.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CsiFiguresTest : public testing::Test {
 protected:
  std::string Text() const {
    std::string text;
    families_.AppendTo(text);
    return text;
  }
  static CsiCallReport Report(const std::string& driver, const char* method) {
    CsiCallReport report;
    report.driver = driver;
    report.method = FindCsiMethod(method);
    report.duration = std::chrono::milliseconds(200);
    return report;
  }
  static DriverView Driver(const std::string& name, CsiDriverState state, int in_flight) {
    DriverView view;
    view.facts.name = name;
    view.health.state = state;
    view.health.in_flight = in_flight;
    return view;
  }

  ExportedFamilies families_;
  CsiFigures figures_{families_};
};

TEST_F(CsiFiguresTest, CallsHaveKubeletsLabelsAndGosNamesOfCodes) {
  CsiCallReport report = Report("d.io", "NodeStageVolume");
  figures_.CallEnded(report);
  report.error = Error::MaybeApplied(Code::kCancelled, "x");
  report.migrated = true;
  figures_.CallEnded(report);
  EXPECT_THAT(Text(), HasSubstr("csi_operations_seconds_count{driver_name=\"d.io\","
                                "grpc_status_code=\"OK\",method_name=\"/csi.v1.Node/"
                                "NodeStageVolume\",migrated=\"false\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("grpc_status_code=\"Canceled\",method_name=\"/csi.v1.Node/"
                                "NodeStageVolume\",migrated=\"true\"} 1"));
}

TEST_F(CsiFiguresTest, ALieIsCountedForItsDriverAndItsRpc) {
  figures_.Lied("d.io", "NodeStageVolume");
  figures_.Lied("d.io", "NodeStageVolume");
  figures_.Lied("e.io", "NodeUnpublishVolume");
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_lies_total{driver=\"d.io\","
                                "method=\"NodeStageVolume\"} 2"));
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_lies_total{driver=\"e.io\","
                                "method=\"NodeUnpublishVolume\"} 1"));
}

TEST_F(CsiFiguresTest, CallsThatTheAgentServesHaveTheLabelsOfCsiLibUtils) {
  CsiServedFigures served(families_, "own.io");
  const CsiMethod& stage = *FindCsiMethod("NodeStageVolume");
  served.CallAnswered(stage, std::nullopt, std::chrono::milliseconds(200));
  served.CallAnswered(stage, Code::kCancelled, std::chrono::milliseconds(200));
  EXPECT_THAT(Text(), HasSubstr("csi_plugin_operations_seconds_count{driver_name=\"own.io\","
                                "grpc_status_code=\"OK\",method_name=\"/csi.v1.Node/"
                                "NodeStageVolume\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("grpc_status_code=\"Canceled\",method_name=\"/csi.v1.Node/"
                                "NodeStageVolume\"} 1"));
}

TEST_F(CsiFiguresTest, CallsOfARegistrationAreNoCallsOfADriver) {
  figures_.CallEnded(Report("disk.sock", "NotifyRegistrationStatus"));
  EXPECT_THAT(Text(), Not(HasSubstr("csi_operations_seconds_count")));
}

// Whoever may put sockets into the directory could make labels without end.
TEST_F(CsiFiguresTest, NamesBeyondTheFirst256ShareALabel) {
  for (int i = 0; i < 300; ++i) {
    figures_.RegistrationEnded("d" + std::to_string(i) + ".io", i % 2 == 0);
  }
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_registrations_total{driver=\"d255.io\","
                                "result=\"refused\"} 1"));
  EXPECT_THAT(Text(), Not(HasSubstr("driver=\"d256.io\"")));
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_registrations_total{driver=\"other\","
                                "result=\"registered\"} 22"));
}

TEST_F(CsiFiguresTest, APluginThatGaveNoNameHadAnEmptyLabel) {
  figures_.RegistrationEnded("", false);
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_registrations_total{driver=\"unknown\","
                                "result=\"refused\"} 1"));
}

TEST_F(CsiFiguresTest, ADriverHasTheOneStateThatItIsInAndAForgottenOneNone) {
  figures_.Collect({Driver("a.io", CsiDriverState::kOtherNode, 2)},
                   {{.path = "/r/a.sock", .state = RegistrationState::kRegistered},
                    {.path = "/r/b.sock", .state = RegistrationState::kWaiting}},
                   {{"csi:a.io", 5}, {"csi:never.io", 1}});
  EXPECT_THAT(Text(),
              HasSubstr("volumed_csi_driver_state{driver=\"a.io\",state=\"other_node\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_calls_in_flight{driver=\"a.io\"} 2"));
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_operations_waiting{driver=\"a.io\"} 5"));
  EXPECT_THAT(Text(), HasSubstr("volumed_csi_operations_waiting{driver=\"other\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("plugin_manager_total_plugins{socket_path=\"/r/b.sock\","
                                "state=\"desired_state_of_world\"} 1"));
  EXPECT_THAT(Text(), Not(HasSubstr("plugin_manager_total_plugins{socket_path=\"/r/b.sock\","
                                    "state=\"actual_state_of_world\"}")));
  figures_.Collect({Driver("a.io", CsiDriverState::kReady, 0)}, {}, {});
  EXPECT_THAT(Text(), Not(HasSubstr("other_node")));
  EXPECT_THAT(Text(), Not(HasSubstr("b.sock")));
  figures_.Collect({}, {}, {});
  EXPECT_THAT(Text(), Not(HasSubstr("volumed_csi_driver_state{")));
}

}  // namespace
}  // namespace volumed
