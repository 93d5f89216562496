// The CSI driver that the agent is, called by two generations of grpc-go (tests/interop/grpc-go),
// as the sidecars and the kubelets of these years have them: each checks by itself what it gets.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "integration/csi/own_volumes_fixture.h"
#include "interop/pd_harness.h"

namespace volumed::own_grpc_go_test {
namespace {

// The ways in which a client dials: by the scheme `unix`, likewise with an authority of its own
// choice, and by a dialer of its own, for which the authority is the socket's path.
struct Client {
  const char* generation;
  const char* way;
};
constexpr Client kClients[] = {
    {"grpc-go", "unix"},      {"grpc-go", "authority"},      {"grpc-go", "dialer"},
    {"grpc-go-1.40", "unix"}, {"grpc-go-1.40", "authority"}, {"grpc-go-1.40", "dialer"},
};

// What has passed, in the order in which it was tried.
constexpr char kLife[] = R"(Probe
GetPluginInfo
CreateVolume
ListVolumes in pages
NodeStageVolume, NodePublishVolume
CreateSnapshot
GetMetadataAllocated
a stream that is given up
a stream that nobody reads
a stream of nothing
a call that is cancelled
a call whose deadline passes
a message over the limit
an answer over the limit
DeleteSnapshot, DeleteVolume
one connection
)";
constexpr char kRestart[] = R"(Probe
a call whose driver dies
the driver is back
it was made once
)";
constexpr char kKeepalive[] = R"(Probe
a volume with a snapshot
a stream goes on after pings
its connection is the first one
a call goes on after pings
its connection is the first one, too
DeleteSnapshot, DeleteVolume
)";

class GrpcGoTest : public OwnVolumesFixture {
 protected:
  GrpcGoTest() : OwnVolumesFixture("xfs", 1024 * kMiB) {}

  void SetUp() override {
    for (const char* generation : {"grpc-go", "grpc-go-1.40"}) {
      const std::string why = WhyNoPeer(generation);
      if (!why.empty()) GTEST_SKIP() << why;
    }
    OwnVolumesFixture::SetUp();
  }
  void TearDown() override {
    // A client that was ended has left the daemon as it was then.
    if (AgentRuns()) ::kill(agent_pid(), SIGCONT);
    client_.End(SIGKILL);
    OwnVolumesFixture::TearDown();
  }

  std::string said() const { return ReadText(scratch() + "/client.log"); }
  void StartClient(const Client& client, const std::string& what) {
    ASSERT_TRUE(client_.Start(
        {PeerPath(client.generation), "--socket", endpoint(), "--way", client.way, "--pid",
         std::to_string(agent_pid()), "--staging", staging(), "--target", target(), what},
        scratch() + "/client.log", scratch() + "/client.log"));
  }
  void ExpectNothingLeft() const {
    EXPECT_EQ(LeftOnNode(), "");
    EXPECT_TRUE(Eventually(kPatience, [this] { return VolumesInPool() + CutsInPool() == 0; }));
  }

  PeerProcess client_;
};

class EachGrpcGoTest : public GrpcGoTest, public ::testing::WithParamInterface<Client> {};

TEST_P(EachGrpcGoTest, ALifeWithCallsThatEndBadlyIsAsTheClientExpectsIt) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(StartClient(GetParam(), "life"));
  EXPECT_EQ(client_.Wait(), 0);
  EXPECT_EQ(said(), kLife);
  ExpectNothingLeft();
}

TEST_P(EachGrpcGoTest, AClientWhoseDriverDiesInACallFindsTheNextOne) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(StartClient(GetParam(), "restart"));
  ASSERT_TRUE(Eventually(
      kPatience, [this] { return !client_.Runs() || said().find("dies") != std::string::npos; }));
  ASSERT_NO_FATAL_FAILURE(Restart());
  EXPECT_EQ(client_.Wait(), 0);
  EXPECT_EQ(said(), kRestart);
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(EveryClient, EachGrpcGoTest, ::testing::ValuesIn(kClients),
                         [](const ::testing::TestParamInfo<Client>& of) {
                           const std::string name = Replaced(of.param.generation, "-", "_");
                           return Replaced(name, ".", "_") + "_" + of.param.way;
                         });

TEST_F(GrpcGoTest, AConnectionIsNotClosedForThePingsOfItsClient) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const char* generation : {"grpc-go", "grpc-go-1.40"}) {
    ASSERT_NO_FATAL_FAILURE(StartClient({generation, "unix"}, "keepalive"));
    EXPECT_EQ(client_.Wait(), 0);
    EXPECT_EQ(said(), kKeepalive);
    WriteText(scratch() + "/client.log", "");
    ExpectNothingLeft();
  }
}

}  // namespace
}  // namespace volumed::own_grpc_go_test
