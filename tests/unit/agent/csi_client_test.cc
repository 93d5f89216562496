// The agent's CSI drivers with all real parts: what the control API shows of drivers that register
// and die, of their calls, and of sockets that nobody trusts.
#include "agent/csi_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "unit/agent/csi_client_fixture.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(CsiClientTest, ASocketInTheRegistryMakesItsDriverReadyAndItIsShownWithAllThatItSays) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitUntil([](const v1::GetDriversResponse& all) {
    return all.sockets_size() == 1 && all.sockets(0).state() == "registered";
  }));
  const v1::GetDriversResponse all = DriversNow();
  ASSERT_EQ(all.drivers_size(), 1);
  const v1::Driver& shown = all.drivers(0);
  EXPECT_EQ(shown.name(), kName);
  EXPECT_EQ(shown.state(), "ready");
  EXPECT_EQ(shown.node_id(), "node-a");
  EXPECT_EQ(shown.endpoint(), Endpoint());
  EXPECT_EQ(shown.reason(), "");
  EXPECT_TRUE(shown.sets_up() && shown.takes_away());
  EXPECT_EQ(shown.operations_waiting(), 3);
  EXPECT_EQ(all.sockets(0).owner(), ::getuid());
  EXPECT_EQ(all.sockets(0).driver(), kName);
  DriversNow("other.example.com");
  EXPECT_EQ(asked_.error().code(), Code::kNotFound);
}

TEST_F(CsiClientTest, ADriverThatDiesIsGoneAndItsLaneIsClosedUntilItIsBack) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  driver.reset();
  ASSERT_TRUE(WaitForState("gone"));
  const v1::Driver gone = DriversNow().drivers(0);
  EXPECT_THAT(gone.reason(), HasSubstr("CSI driver disk.example.com is gone since "));
  EXPECT_FALSE(gone.sets_up());
  EXPECT_TRUE(client_->drivers().LaneOf(kName).closed);
  driver = StartDriver();
  EXPECT_TRUE(WaitForState("ready"));
  EXPECT_FALSE(client_->drivers().LaneOf(kName).closed);
}

TEST_F(CsiClientTest, ADriverOfAnEarlierRunIsKnownBeforeItRegistersAgain) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  StopClient();
  registrar.reset();
  driver.reset();
  StartClient();
  ASSERT_EQ(restored_.drivers_size(), 1);
  EXPECT_EQ(restored_.drivers(0).state(), "gone");
  EXPECT_EQ(restored_.drivers(0).node_id(), "node-a");
  EXPECT_FALSE(restored_.drivers(0).takes_away());
  driver = StartDriver();
  registrar = StartRegistrar();
  EXPECT_TRUE(WaitForState("ready"));
}

TEST_F(CsiClientTest, TheDescriptionOfADriverThatNobodyKnowsHadNoSocketThatMayBeItsOwn) {
  StopClient();
  controllers_["lost.example.com"] = SafePath{root_.string(), "lost.sock"};
  StartClient();
  scheduler_.OnControl([&] { client_->SetSettings({::getuid() + 1}, CsiDriverSettings()); });
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitUntil([](const v1::GetDriversResponse& all) {
    return all.sockets_size() == 1 && all.sockets(0).state() == "refused";
  }));
  const v1::GetDriversResponse lost = DriversNow("lost.example.com");
  ASSERT_TRUE(asked_.ok()) << asked_.error().message();
  EXPECT_EQ(lost.unused_controllers_size(), 1);
  EXPECT_EQ(lost.sockets_size(), 1);
  DriversNow("other.example.com");
  ASSERT_FALSE(asked_.ok());
  EXPECT_EQ(asked_.error().code(), Code::kNotFound);
  EXPECT_THAT(asked_.error().message(), HasSubstr("`volumectl get drivers`"));
}

TEST_F(CsiClientTest, ASocketThatNobodyTrustsIsShownWithItsOwnerAndTheReason) {
  scheduler_.OnControl([&] { client_->SetSettings({::getuid() + 1}, CsiDriverSettings()); });
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  fs::create_symlink(registry_ / "disk.sock", registry_ / "link.sock");
  ASSERT_TRUE(WaitUntil([](const v1::GetDriversResponse& all) {
    return all.sockets_size() == 2 && all.sockets(0).state() == "refused" &&
           all.sockets(1).state() == "refused";
  }));
  const v1::GetDriversResponse all = DriversNow();
  EXPECT_EQ(all.drivers_size(), 0);
  EXPECT_THAT(all.sockets(0).reason(), HasSubstr("(csi-socket-owners)"));
  EXPECT_EQ(all.sockets(0).owner(), ::getuid());
  EXPECT_THAT(all.sockets(1).reason(), HasSubstr("is a symbolic link"));
  EXPECT_EQ(registrar->server().requests().size(), 0u) << "it was dialled";
}

TEST_F(CsiClientTest, TheTraceHasTheCallsOfADriverAndTheMetricsCountThem) {
  auto driver = StartDriver();
  auto registrar = StartRegistrar();
  ASSERT_TRUE(WaitForState("ready"));
  v1::GetDriverTraceRequest request;
  request.set_driver(kName);
  v1::GetDriverTraceResponse trace;
  Status unknown = OkStatus();
  scheduler_.OnControl([&] {
    EXPECT_TRUE(DescribeTrace(*client_, clock_, request, &trace).ok());
    request.set_driver("other.example.com");
    v1::GetDriverTraceResponse none;
    unknown = DescribeTrace(*client_, clock_, request, &none);
    client_->Collect({});
  });
  const auto is_node_info = [](const v1::TracedCall& call) {
    return call.method() == "/csi.v1.Node/NodeGetInfo" && call.code() == "OK";
  };
  EXPECT_TRUE(std::any_of(trace.calls().begin(), trace.calls().end(), is_node_info));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  std::string text;
  families_.AppendTo(text);
  EXPECT_THAT(text,
              HasSubstr("volumed_csi_driver_state{driver=\"disk.example.com\",state=\"ready\"} 1"));
  EXPECT_THAT(text, HasSubstr("method_name=\"/csi.v1.Node/NodeGetInfo\""));
  EXPECT_EQ(text.find("pluginregistration"), std::string::npos);
}

}  // namespace
}  // namespace volumed
