// What a CO's places hang with: the filesystem that they lie on, which is nobody's else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "csidriver/place_looks.h"
#include "unit/csidriver/node_fixture.h"
#include "unit/operation/test_domains.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kParent[] = "/srv/co/pod-a";  // of kTarget

class NodePlacesTest : public NodeFixture {
 protected:
  NodePlacesTest() { node_.AddDirectory(kFar + "/stage"); }
  StatusCode StatsAt(const std::string& id, const std::string& path) {
    ::csi::v1::NodeGetVolumeStatsRequest request;
    request.set_volume_id(id);
    request.set_volume_path(path);
    ::csi::v1::NodeGetVolumeStatsResponse response;
    return CodeOf(request, &response);
  }
  // Those of the call that is made now.
  void ForgetCalls() { kernel_.calls.clear(); }

  const std::string kFar = kCo + "/far";
};

TEST_F(NodePlacesTest, WhatIsDoneAtAPlaceIsCountedForThePlaceAndNotForThePool) {
  const std::string id = CreateNamed("a");
  ForgetCalls();
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(kernel_.DomainsOf("StatFs"), Contains(kCo)) << "the directory of the staging path";
  EXPECT_THAT(kernel_.DomainsOf("Stat"), Contains(kStaging));
  EXPECT_THAT(kernel_.DomainsOf("Mount"), Each(kPoolPath)) << "it reads and writes the volume";

  ForgetCalls();
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  ASSERT_THAT(kernel_.DomainsOf("BindMount"), Not(IsEmpty()));
  EXPECT_THAT(kernel_.DomainsOf("BindMount"), Each(kParent));
  EXPECT_THAT(kernel_.DomainsOf("MakeDirectory"), Each(kParent));
  EXPECT_THAT(kernel_.DomainsOf("Stat"), Contains(kParent));

  ForgetCalls();
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  ASSERT_THAT(kernel_.DomainsOf("Unmount"), Not(IsEmpty()));
  EXPECT_THAT(kernel_.DomainsOf("Unmount"), Each(kParent));
  EXPECT_THAT(kernel_.DomainsOf("RemoveDirectory"), Each(kParent));

  ForgetCalls();
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(kernel_.DomainsOf("Unmount"), Each(kPoolPath)) << "it writes back what is left";
}

// A look costs a question to a worker, which each call of a CO would pay for each of its paths.
TEST_F(NodePlacesTest, OnlyAFilesystemThatIsNotTheAgentsOwnIsAsked) {
  TestDomains domains;
  domains.lanes = {
      {"/var/lib/agent", "filesystem 8:1"}, {kCo, "filesystem 8:1"}, {kFar, "filesystem 0:40"}};
  PlaceLooks looks({scheduler_, kernel_, &domains, "/var/lib/agent"}, std::chrono::seconds(1));
  std::optional<Status> answer;
  ForgetCalls();
  looks.Ask({SafePath{kCo, ""}, SafePath{kFar, ""}},
            [&answer](const Status& status) { answer = status; });
  scheduler_.RunFor(std::chrono::milliseconds(10));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ok());
  EXPECT_THAT(kernel_.DomainsOf("StatFs"), ElementsAre(kFar));
}

// It was counted for the pool, and not measured while the pool did not answer.
TEST_F(NodePlacesTest, AFilesystemIsMeasuredForItselfAndNotForItsPool) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  node_.Hang(kPoolPath);
  ForgetCalls();
  EXPECT_EQ(StatsAt(id, kTarget), StatusCode::OK) << message_;
  EXPECT_THAT(kernel_.Domains(), Not(Contains(kPoolPath)));
  EXPECT_THAT(kernel_.DomainsOf("StatFs"), ElementsAre(kParent, kTarget));
}

TEST_F(NodePlacesTest, APlaceWhoseFilesystemHangsIsRefusedBeforeThePoolIsAsked) {
  const std::string id = CreateNamed("a");
  node_.Hang(kFar);
  ForgetCalls();
  EXPECT_EQ(StageIt(id, Mount(), kFar + "/stage"), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(message_, HasSubstr(kFar));
  EXPECT_THAT(message_, HasSubstr("does not answer"));
  EXPECT_THAT(kernel_.Domains(), Each(kFar)) << "no worker of the pool waits for it";
  EXPECT_THAT(LeasesOf(id), IsEmpty());
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;

  node_.Unhang(kFar);
  ASSERT_EQ(StageIt(id, Mount(), kFar + "/stage"), StatusCode::OK) << message_;
  node_.Hang(kFar);
  ForgetCalls();
  EXPECT_EQ(UnstageIt(id, kFar + "/stage"), StatusCode::DEADLINE_EXCEEDED) << message_;
  EXPECT_THAT(kernel_.Domains(), Each(kFar));
  node_.Unhang(kFar);
  EXPECT_EQ(UnstageIt(id, kFar + "/stage"), StatusCode::OK) << message_;
}

// Its kubelet's directory is a link: the volume was staged and could never be published.
TEST_F(NodePlacesTest, AVolumeLivesBelowARootThatIsALink) {
  node_.AddSymlink("/var/lib/kubelet", kCo);
  node_settings_.target_roots = {"/var/lib/kubelet"};
  node_settings_.real_root = [](const std::string&) { return kCo; };
  RestartNode();
  const std::string id = CreateNamed("a");
  const std::string staging = "/var/lib/kubelet/stage";
  const std::string target = "/var/lib/kubelet/pod-a/v";
  auto publish = NodePublishRequest(id, Mount(), target);
  publish.set_staging_target_path(staging);
  ASSERT_EQ(StageIt(id, Mount(), staging), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "files");
  ASSERT_EQ(PublishIt(publish), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(publish), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "files");
  EXPECT_EQ(StatsAt(id, target), StatusCode::OK) << message_;
  EXPECT_EQ(StatsAt(id, kTarget), StatusCode::OK) << message_;
  RestartNode();
  EXPECT_EQ(StageIt(id), StatusCode::OK) << "by its path without the link: " << message_;
  EXPECT_EQ(UnpublishIt(id, target), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "");
  EXPECT_EQ(UnstageIt(id, staging), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
