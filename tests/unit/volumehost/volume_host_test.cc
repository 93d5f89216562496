// What a plugin can ask of its host: one part for each group of kubelet's getters.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_kernel.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

class VolumeHostTest : public ::testing::Test {
 protected:
  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  VolumeHost& host_ = world_.host;
};

TEST_F(VolumeHostTest, EffectsOfMountsProgramsAndSubPathsGoThroughTheKernel) {
  kernel_.AddDirectory("/r/v");
  ASSERT_TRUE(
      host_.kernel
          .Call(Mount{.fs_type = "tmpfs", .source = "tmpfs", .target = {"/r", "v"}, .options = {}},
                {})
          .ok());
  EXPECT_TRUE(kernel_.IsMountPoint("/r/v"));
}

TEST_F(VolumeHostTest, ObjectsTokensEventsAndNode) {
  world_.objects.PutSecret("s", {{"k", "v"}});
  world_.objects.PutConfigMap("c", {{"k", "v"}});
  EXPECT_TRUE(host_.objects.GetSecret("default", "s").ok());
  EXPECT_TRUE(host_.objects.GetConfigMap("default", "c").ok());
  TokenRequest request;
  request.pod_uid = PodUid("u1");
  EXPECT_TRUE(host_.tokens.GetServiceAccountToken(request).ok());
  host_.tokens.DeleteServiceAccountTokens(PodUid("u1"));
  EXPECT_TRUE(world_.tokens.deleted.contains(PodUid("u1")));
  host_.events.RecordPodEvent(PodUid("u1"), EventType::kWarning, "FailedMount", "why");
  EXPECT_EQ(world_.events.Snapshot(PodUid("u1")).size(), 1u);
  EXPECT_EQ(host_.node.GetNodeName(), NodeName("node-1"));
  EXPECT_TRUE(host_.node.GetNodeLabels().empty());
  EXPECT_TRUE(host_.node.GetNodeAllocatable().contains("memory"));
}

TEST_F(VolumeHostTest, AHostIsAKubeletsOrAControllersOnlyIfItSaysSo) {
  EXPECT_EQ(host_.kubelet, nullptr);
  EXPECT_EQ(host_.attach_detach, nullptr);
}

// A controller's view of two nodes.
class FakeAttachDetachHost final : public AttachDetachHost {
 public:
  Result<CsiNodePtr> GetCsiNode(const NodeName& node) const override {
    if (const auto found = nodes.find(node); found != nodes.end()) return found->second;
    return Error::NotApplied(Code::kNotFound, "no CSINode");
  }
  std::vector<CsiNodePtr> ListCsiNodes() const override {
    std::vector<CsiNodePtr> list;
    for (const auto& [name, node] : nodes) list.push_back(node);
    return list;
  }
  Result<KubeletHost::CsiDriverPtr> GetCsiDriver(const std::string& name) const override {
    if (driver != nullptr && driver->metadata.name == name) return driver;
    return Error::NotApplied(Code::kNotFound, "no CSIDriver");
  }
  std::vector<KubeletHost::CsiDriverPtr> ListCsiDrivers() const override {
    return driver == nullptr ? std::vector<KubeletHost::CsiDriverPtr>()
                             : std::vector<KubeletHost::CsiDriverPtr>{driver};
  }
  Result<VolumeAttachmentPtr> GetVolumeAttachment(const std::string& name) const override {
    if (const auto found = attachments.find(name); found != attachments.end()) {
      return found->second;
    }
    return Error::NotApplied(Code::kNotFound, "no VolumeAttachment");
  }
  std::vector<VolumeAttachmentPtr> ListVolumeAttachments() const override {
    std::vector<VolumeAttachmentPtr> list;
    for (const auto& [name, attachment] : attachments) list.push_back(attachment);
    return list;
  }
  std::map<NodeName, CsiNodePtr> nodes;
  KubeletHost::CsiDriverPtr driver;
  std::map<std::string, VolumeAttachmentPtr> attachments;
};

TEST_F(VolumeHostTest, AnAttachDetachHostListsNodesDriversAndAttachments) {
  FakeAttachDetachHost controller;
  host_.attach_detach = &controller;
  CsiNodeObject node;
  node.metadata.name = "n1";
  node.drivers = {{"csi.example.com", "id-1", {}, 16}};
  controller.nodes[NodeName("n1")] = std::make_shared<const CsiNodeObject>(node);
  CsiDriverObject driver;
  driver.metadata.name = "csi.example.com";
  controller.driver = std::make_shared<const CsiDriverObject>(driver);
  VolumeAttachment attachment;
  attachment.metadata.name = "va-1";
  attachment.attached = true;
  controller.attachments["va-1"] = std::make_shared<const VolumeAttachment>(attachment);
  const AttachDetachHost& asked = *host_.attach_detach;
  EXPECT_EQ((*asked.GetCsiNode(NodeName("n1")))->drivers[0].allocatable_count, 16);
  EXPECT_EQ(asked.GetCsiNode(NodeName("n2")).error().code(), Code::kNotFound);
  EXPECT_EQ(asked.ListCsiNodes().size(), 1u);
  EXPECT_EQ((*asked.GetCsiDriver("csi.example.com"))->metadata.name, "csi.example.com");
  EXPECT_EQ(asked.GetCsiDriver("other").error().code(), Code::kNotFound);
  EXPECT_EQ(asked.ListCsiDrivers().size(), 1u);
  EXPECT_TRUE((*asked.GetVolumeAttachment("va-1"))->attached);
  EXPECT_EQ(asked.GetVolumeAttachment("va-2").error().code(), Code::kNotFound);
  EXPECT_EQ(asked.ListVolumeAttachments().size(), 1u);
}

}  // namespace
}  // namespace volumed
