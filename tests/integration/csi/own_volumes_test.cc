// Volumes of the real daemon as a CSI driver: a CO has them made, staged, published and taken away
// over the socket, and between any two of its calls the daemon is killed.
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "integration/csi/own_volumes_fixture.h"

namespace volumed::own_volumes_test {
namespace {

namespace fs = std::filesystem;
using ::csi::v1::Node;

class OwnVolumesTest : public OwnVolumesFixture {
 protected:
  // Each call is made by one daemon, and again by the next.
  void StageAndPublish(const std::string& id, bool is_block) {
    ASSERT_EQ(Stage(id, is_block), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(Stage(id, is_block), "");
    ASSERT_EQ(Publish(id, is_block), "");
    ASSERT_NO_FATAL_FAILURE(ExpectAtTarget(is_block));
  }
  void UnpublishAndUnstage(const std::string& id) {
    ASSERT_EQ(Unpublish(id), "");
    EXPECT_FALSE(Exists(target()));
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(Unpublish(id), "");
    ASSERT_EQ(Unstage(id), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(Unstage(id), "");
    EXPECT_EQ(LeftOnNode(), "");
  }
  void Live(bool is_block) {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    const std::string id = Create("a volume", is_block);
    ASSERT_NE(id, "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Create("a volume", is_block), id);
    EXPECT_EQ(VolumesInPool(), 1u);

    ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, is_block));
    ASSERT_EQ(WriteVolume(is_block, "kept"), "kept");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(ReadVolume(is_block), "kept") << "of a daemon that was killed";
    EXPECT_EQ(Publish(id, is_block), "");
    EXPECT_EQ(Loops().size(), 1u);
    const int64_t total = TotalBytes(id);
    EXPECT_LE(total, 32 * kMiB);
    EXPECT_GE(total, is_block ? 32 * kMiB : 16 * kMiB) << "less what the filesystem needs";
    EXPECT_NE(Unstage(id), "") << "the target has it";
    EXPECT_NE(Delete(id), "") << "the node has it";
    EXPECT_EQ(ReadVolume(is_block), "kept");
    ASSERT_NO_FATAL_FAILURE(UnpublishAndUnstage(id));
    EXPECT_EQ(TotalBytes(id), -1);

    ASSERT_NO_FATAL_FAILURE(StageAndPublish(id, is_block));
    EXPECT_EQ(ReadVolume(is_block), "kept") << "of the volume that was unstaged";
    ASSERT_NO_FATAL_FAILURE(UnpublishAndUnstage(id));
    EXPECT_EQ(Delete(id), "");
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Delete(id), "");
    EXPECT_EQ(VolumesInPool(), 0u);
  }
};

TEST_F(OwnVolumesTest, AVolumeWithFilesLivesOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(Live(/*is_block=*/false));
}

TEST_F(OwnVolumesTest, ABlockVolumeLivesOverAKillBetweenAnyTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(Live(/*is_block=*/true));
}

// It was the last to have the device open, so that it did not end while the disk did not answer,
// and no other daemon could start.
TEST_F(OwnVolumesTest, TheDaemonHadTheDeviceOfABlockVolumeOpenItself) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string id = Create("a volume", /*is_block=*/true);
  ASSERT_EQ(Stage(id, true), "");
  ASSERT_EQ(Publish(id, true), "");
  for (const auto& open : fs::directory_iterator("/proc/" + std::to_string(agent_pid()) + "/fd")) {
    EXPECT_FALSE(fs::is_block_file(open.path())) << open.path();
  }
  // Its keeper has it.
  ASSERT_EQ(Loops().size(), 1u);
  ASSERT_EQ(RunCommand({"losetup", "-d", Loops()[0]}).exit_status, 0);
  ASSERT_EQ(Loops().size(), 1u);
  ASSERT_EQ(::kill(agent_pid(), SIGKILL), 0);
  EXPECT_TRUE(Eventually(kPatience, [this] { return Loops().empty(); }));
}

// The same call to the next daemon goes on with what the killed one had begun.
TEST_F(OwnVolumesTest, AKillAmidACallIsMendedByTheSameCall) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const bool is_block : {false, true}) {
    const std::string id = Create(is_block ? "raw" : "files", is_block);
    ASSERT_NE(id, "");
    std::string before;
    for (int i = 0; i < 4; ++i) {
      std::thread amid_stage([&] {
        ::csi::v1::NodeStageVolumeResponse response;
        (void)CallOnce<Node>(&Node::Stub::NodeStageVolume, StageRequest(id, is_block), &response);
      });
      std::this_thread::sleep_for(Milliseconds(15 * i));
      KillAgent();
      amid_stage.join();
      ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
      ASSERT_EQ(Stage(id, is_block), "") << i;
      std::thread amid_publish([&] {
        ::csi::v1::NodePublishVolumeResponse response;
        (void)CallOnce<Node>(&Node::Stub::NodePublishVolume, PublishRequest(id, is_block),
                             &response);
      });
      std::this_thread::sleep_for(Milliseconds(5 * i));
      KillAgent();
      amid_publish.join();
      ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
      ASSERT_EQ(Publish(id, is_block), "") << i;
      ASSERT_NO_FATAL_FAILURE(ExpectAtTarget(is_block));
      EXPECT_EQ(Loops().size(), 1u);
      const std::string text = "written in round " + std::to_string(i);
      EXPECT_EQ(ReadVolume(is_block), before) << i;
      EXPECT_EQ(WriteVolume(is_block, text), text);
      before = text;
      ASSERT_EQ(Unpublish(id), "") << i;
      ASSERT_EQ(Unstage(id), "") << i;
      EXPECT_EQ(LeftOnNode(), "") << i;
    }
    EXPECT_EQ(Delete(id), "");
  }
  EXPECT_EQ(VolumesInPool(), 0u);
}

TEST_F(OwnVolumesTest, TheNodeSaysWhereItIsAndRefusesPlacesThatAreNotACos) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ::csi::v1::NodeGetInfoResponse info;
  ASSERT_EQ(Call<Node>(&Node::Stub::NodeGetInfo, ::csi::v1::NodeGetInfoRequest(), &info), "");
  EXPECT_EQ(info.node_id(), "n1");
  const auto& segments = info.accessible_topology().segments();
  const auto segment = segments.find("topology.pool.volumed.io/node");
  ASSERT_NE(segment, segments.end());
  EXPECT_EQ(segment->second, "n1");

  const std::string id = Create("a volume", /*is_block=*/false);
  for (const std::string& path : {scratch() + "/elsewhere", co(), co() + "/../elsewhere"}) {
    fs::create_directories(scratch() + "/elsewhere");
    ::csi::v1::NodeStageVolumeRequest request = StageRequest(id, /*is_block=*/false);
    request.set_staging_target_path(path);
    ::csi::v1::NodeStageVolumeResponse response;
    EXPECT_EQ(CallOnce<Node>(&Node::Stub::NodeStageVolume, request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << path;
  }
  EXPECT_TRUE(MountsBelow(scratch() + "/elsewhere").empty());
  EXPECT_EQ(Loops().size(), 0u);
  EXPECT_EQ(Delete(id), "");
}

}  // namespace
}  // namespace volumed::own_volumes_test
