#include "csi/csi_node_requests.h"

#include <gtest/gtest.h>

#include "fakes/must.h"
#include "unit/csi/csi_volumes.h"

namespace volumed {
namespace {

using NodeCan = ::csi::v1::NodeServiceCapability_RPC;

CsiToken Token(const std::string& audience, const std::string& text) {
  CsiToken token;
  token.audience = audience;
  token.token.token = Secret<std::string>(text);
  token.token.expires_unix_ms = 1767225600999;  // 2026-01-01T00:00:00.999Z
  return token;
}

class CsiNodeRequestsTest : public testing::Test {
 protected:
  CsiPublishWish Wish() {
    CsiPublishWish wish;
    wish.publish_context = {{"device", "/dev/sdx"}};
    wish.staging_path = "/stage";
    wish.target_path = "/target";
    wish.secrets = TestSecrets();
    wish.object = &object_;
    wish.pod = &pod_;
    return wish;
  }

  const CsiDriverFacts driver_ = DriverThatCan({NodeCan::STAGE_UNSTAGE_VOLUME});
  const CsiVolume volume_ = Must(CsiVolumeOf(CsiSpec()));
  const CsiVolume block_ = Must(CsiVolumeOf(CsiBlockSpec()));
  const CsiVolume inline_ = Must(CsiVolumeOf(CsiInlineSpec(), PodUid("uid-1"), "shop"));
  const Pod pod_ = CsiPod();
  CsiDriverObject object_;
};

TEST_F(CsiNodeRequestsTest, AStageSaysAllThatIsKnownOfTheVolume) {
  CsiStageWish wish;
  wish.publish_context = {{"device", "/dev/sdx"}};
  wish.staging_path = "/stage";
  wish.secrets = TestSecrets();
  wish.mount.fs_group = 2000;
  const auto request =
      NodeStageRequest(DriverThatCan({NodeCan::VOLUME_MOUNT_GROUP}), volume_, wish);
  EXPECT_EQ(request.volume_id(), "vol-1");
  EXPECT_EQ(request.staging_target_path(), "/stage");
  EXPECT_EQ(TextsOf(request.publish_context()), wish.publish_context);
  EXPECT_EQ(TextsOf(request.volume_context()), (StringMap{{"tier", "gold"}}));
  EXPECT_EQ(TextsOf(request.secrets()), (StringMap{{"key", "hunter2"}}));
  EXPECT_EQ(request.volume_capability().mount().volume_mount_group(), "2000");
  EXPECT_EQ(request.volume_capability().mount().fs_type(), "xfs");
}

TEST_F(CsiNodeRequestsTest, APublishWithoutACsiDriverTellsNothingOfThePod) {
  CsiPublishWish wish = Wish();
  wish.object = nullptr;
  wish.tokens = {Token("", "t")};
  const auto request = NodePublishRequest(driver_, volume_, wish);
  EXPECT_EQ(request.volume_id(), "vol-1");
  EXPECT_EQ(request.staging_target_path(), "/stage");
  EXPECT_EQ(request.target_path(), "/target");
  EXPECT_FALSE(request.readonly());
  EXPECT_EQ(TextsOf(request.publish_context()), (StringMap{{"device", "/dev/sdx"}}));
  EXPECT_EQ(TextsOf(request.volume_context()), (StringMap{{"tier", "gold"}}));
  EXPECT_EQ(TextsOf(request.secrets()), (StringMap{{"key", "hunter2"}}));
}

TEST_F(CsiNodeRequestsTest, APodInfoDriverIsToldOfThePodAndOurWordsCount) {
  object_.pod_info_on_mount = true;
  CsiVolume volume = volume_;
  volume.attributes["csi.storage.k8s.io/pod.name"] = "another";
  const StringMap expected = {{"tier", "gold"},
                              {"csi.storage.k8s.io/pod.name", "web"},
                              {"csi.storage.k8s.io/pod.namespace", "shop"},
                              {"csi.storage.k8s.io/pod.uid", "uid-1"},
                              {"csi.storage.k8s.io/serviceAccount.name", "robot"},
                              {"csi.storage.k8s.io/ephemeral", "false"}};
  EXPECT_EQ(TextsOf(NodePublishRequest(driver_, volume, Wish()).volume_context()), expected);
  EXPECT_EQ(volume.attributes.at("csi.storage.k8s.io/pod.name"), "another");
  StringMap block = expected;
  EXPECT_EQ(TextsOf(NodePublishRequest(driver_, block_, Wish()).volume_context()), block);
}

TEST_F(CsiNodeRequestsTest, TokensAreInTheContextOrAmongTheSecretsAsTheCsiDriverSays) {
  object_.token_requests = {CsiTokenRequest{"", std::nullopt}, CsiTokenRequest{"a&b", 600}};
  CsiPublishWish wish = Wish();
  wish.tokens = {Token("a&b", "t2"), Token("", "t1")};
  const std::string expected =
      "{\"\":{\"token\":\"t1\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"},"
      "\"a\\u0026b\":{\"token\":\"t2\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"}}";
  const std::string key = "csi.storage.k8s.io/serviceAccount.tokens";
  const auto in_context = NodePublishRequest(driver_, volume_, wish);
  EXPECT_EQ(in_context.volume_context().at(key), expected);
  EXPECT_EQ(in_context.secrets().count(key), 0u);
  object_.service_account_token_in_secrets = true;
  const auto in_secrets = NodePublishRequest(driver_, volume_, wish);
  EXPECT_EQ(in_secrets.secrets().at(key), expected);
  EXPECT_EQ(in_secrets.secrets().at("key"), "hunter2");
  EXPECT_EQ(in_secrets.volume_context().count(key), 0u);
  EXPECT_TRUE(WantsTokens(volume_, &object_));
}

TEST_F(CsiNodeRequestsTest, ABlockVolumeHasNoTokensAndNoMountFlags) {
  object_.token_requests = {CsiTokenRequest{}};
  CsiPublishWish wish = Wish();
  wish.tokens = {Token("", "t")};
  const auto request = NodePublishRequest(driver_, block_, wish);
  EXPECT_FALSE(WantsTokens(block_, &object_));
  EXPECT_EQ(TextsOf(request.volume_context()), (StringMap{{"tier", "gold"}}));
  EXPECT_TRUE(request.volume_capability().has_block());
  EXPECT_EQ(request.staging_target_path(), "/stage");
}

TEST_F(CsiNodeRequestsTest, AnInlineVolumeHasNeitherStagingNorPublishContext) {
  object_.pod_info_on_mount = true;
  const auto request = NodePublishRequest(driver_, inline_, Wish());
  EXPECT_EQ(request.volume_id(), inline_.handle);
  EXPECT_EQ(request.staging_target_path(), "");
  EXPECT_EQ(request.publish_context_size(), 0);
  EXPECT_EQ(request.volume_capability().mount().mount_flags_size(), 0);
  EXPECT_EQ(request.volume_capability().mount().fs_type(), "ext4");
  EXPECT_EQ(request.volume_context().at("csi.storage.k8s.io/ephemeral"), "true");
  EXPECT_EQ(request.volume_context().at("size"), "1Gi");
}

TEST_F(CsiNodeRequestsTest, ReadOnlyIsWhatThePodsClaimSays) {
  EXPECT_TRUE(
      NodePublishRequest(driver_, Must(CsiVolumeOf(CsiSpec(CsiPersistentVolume(), true))), Wish())
          .readonly());
  PersistentVolume pv = CsiPersistentVolume();
  std::get<CsiPersistentVolumeSource>(pv.spec.source).read_only = true;
  EXPECT_FALSE(
      NodePublishRequest(driver_, Must(CsiVolumeOf(CsiSpec(std::move(pv)))), Wish()).readonly());
}

TEST_F(CsiNodeRequestsTest, TheInversesNameTheVolumeAndItsPlace) {
  const auto unpublish = NodeUnpublishRequest("vol-1", "/target");
  EXPECT_EQ(unpublish.volume_id(), "vol-1");
  EXPECT_EQ(unpublish.target_path(), "/target");
  const auto unstage = NodeUnstageRequest("vol-1", "/stage");
  EXPECT_EQ(unstage.volume_id(), "vol-1");
  EXPECT_EQ(unstage.staging_target_path(), "/stage");
}

TEST_F(CsiNodeRequestsTest, AnExpansionNamesPathsSizeAndCapability) {
  CsiNodeExpandWish wish;
  wish.volume_path = "/target";
  wish.staging_path = "/stage";
  wish.required_bytes = int64_t{5} << 30;
  wish.secrets = TestSecrets();
  const auto request = NodeExpandRequest(driver_, volume_, wish);
  EXPECT_EQ(request.volume_id(), "vol-1");
  EXPECT_EQ(request.volume_path(), "/target");
  EXPECT_EQ(request.staging_target_path(), "/stage");
  EXPECT_EQ(request.capacity_range().required_bytes(), int64_t{5} << 30);
  EXPECT_EQ(request.capacity_range().limit_bytes(), 0);
  EXPECT_EQ(request.volume_capability().mount().mount_flags_size(), 2);
  EXPECT_EQ(TextsOf(request.secrets()), (StringMap{{"key", "hunter2"}}));
  EXPECT_TRUE(NodeExpandRequest(driver_, block_, wish).volume_capability().has_block());
}

TEST_F(CsiNodeRequestsTest, QuestionsNameTheVolumeAndWhereItIs) {
  const auto stats = NodeStatsRequest("vol-1", "/target");
  EXPECT_EQ(stats.volume_id(), "vol-1");
  EXPECT_EQ(stats.volume_path(), "/target");
  EXPECT_EQ(stats.staging_target_path(), "");
  const auto health = NodeHealthRequest("vol-1", "/target", "/stage");
  EXPECT_EQ(health.volume_id(), "vol-1");
  EXPECT_EQ(health.volume_publish_path(), "/target");
  EXPECT_EQ(health.staging_target_path(), "/stage");
}

}  // namespace
}  // namespace volumed
