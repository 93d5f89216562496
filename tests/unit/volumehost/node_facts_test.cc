#include "volumehost/node_facts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace volumed {
namespace {

NodeFactsOptions InZone(const std::string& zone) {
  return {.name = NodeName("n1"), .labels = {{"zone", zone}}, .allocatable = {}, .features = {}};
}

TEST(NodeFactsTest, ReadsMemTotalInKibibytes) {
  const auto bytes = ParseMemTotalBytes("MemTotal:        2048000 kB\nMemFree:  1 kB\n");
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, int64_t{2048000} * 1024);
}

TEST(NodeFactsTest, RefusesAnUnusableMemTotal) {
  for (const char* text :
       {"", "MemFree: 1 kB\n", "MemTotal: many kB\n", "MemTotal: 12\n", "MemTotal: 0 kB\n",
        "MemTotal: -5 kB\n", "MemTotal: 9223372036854775807 kB\n"}) {
    const auto bytes = ParseMemTotalBytes(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.error().code(), Code::kDataLoss);
  }
}

TEST(NodeFactsTest, FindsMemoryAndProcessorsOfThisNode) {
  const auto node =
      NodeFacts::Read({.name = NodeName("n1"), .labels = {}, .allocatable = {}, .features = {}});
  ASSERT_TRUE(node.ok()) << node.error().ToString();
  const auto allocatable = (*node)->GetNodeAllocatable();
  EXPECT_GT(allocatable.at("memory").Value(), 0);
  EXPECT_GE(allocatable.at("cpu").Value(), 1);
  EXPECT_EQ((*node)->GetNodeName(), NodeName("n1"));
}

TEST(NodeFactsTest, WhatTheConfigurationNamesWins) {
  const auto node = NodeFacts::Read({.name = NodeName("n1"),
                                     .labels = {{"zone", "a"}},
                                     .allocatable = {{"memory", Quantity::FromBytes(4096)}},
                                     .features = {.tmpfs_noswap = true}});
  ASSERT_TRUE(node.ok());
  EXPECT_EQ((*node)->GetNodeAllocatable().at("memory").Value(), 4096);
  EXPECT_EQ((*node)->GetNodeLabels().at("zone"), "a");
  EXPECT_TRUE((*node)->GetKernelFeatures().tmpfs_noswap);
  EXPECT_FALSE((*node)->GetKernelFeatures().statmount);
}

TEST(NodeFactsTest, HasTheLabelsThatAKubeletSets) {
  NodeFactsOptions options;
  options.name = NodeName("node-7");
  options.labels = {{"kubernetes.io/hostname", "other"}, {"zone", "a"}};
  const Result<std::unique_ptr<NodeFacts>> facts = NodeFacts::Read(options);
  ASSERT_TRUE(facts.ok());
  const std::map<std::string, std::string> labels = (*facts)->GetNodeLabels();
  EXPECT_EQ(labels.at("kubernetes.io/hostname"), "other");  // what the configuration says wins
  EXPECT_EQ(labels.at("zone"), "a");
  EXPECT_EQ(labels.at("kubernetes.io/os"), "linux");
  EXPECT_NE(labels.at("kubernetes.io/arch"), "");
  EXPECT_EQ(DefaultNodeLabels(NodeName("n"), "x86_64").at("kubernetes.io/hostname"), "n");
  EXPECT_EQ(DefaultNodeLabels(NodeName("n"), "x86_64").at("kubernetes.io/arch"), "amd64");
  EXPECT_EQ(DefaultNodeLabels(NodeName("n"), "aarch64").at("beta.kubernetes.io/arch"), "arm64");
  EXPECT_EQ(DefaultNodeLabels(NodeName("n"), "z80").at("kubernetes.io/arch"), "z80");
}

TEST(NodeFactsTest, TheHostsNameAddressAndCloud) {
  const NodeFacts told({.name = NodeName("n1"),
                        .labels = {},
                        .allocatable = {},
                        .features = {},
                        .host_name = "machine",
                        .host_ip = "192.0.2.7",
                        .cloud_provider = "external"});
  EXPECT_EQ(told.GetHostName(), "machine");
  EXPECT_EQ(told.GetHostIp().value(), "192.0.2.7");
  EXPECT_EQ(told.GetCloudProvider(), "external");
  const NodeFacts silent({.name = NodeName("n1"), .labels = {}, .allocatable = {}, .features = {}});
  EXPECT_EQ(silent.GetHostName(), "n1");
  EXPECT_EQ(silent.GetHostIp().error().message(), "host IP unknown; known addresses: []");
  EXPECT_EQ(silent.GetCloudProvider(), std::nullopt);
}

TEST(NodeFactsTest, TheTopologyOfACsiDriverBecomesLabelsOfTheNode) {
  NodeFacts node(InZone("a"));
  int changes = 0;
  node.SetLabelsChanged([&] { ++changes; });
  const StringMap topology = {{"topology.example.org/rack", "r1"}, {"zone", "a"}};
  ASSERT_TRUE(node.MergeTopology("csi.example.org", topology).ok());
  EXPECT_EQ(node.GetNodeLabels().at("topology.example.org/rack"), "r1");
  EXPECT_EQ(changes, 1);
  ASSERT_TRUE(node.MergeTopology("csi.example.org", topology).ok());
  ASSERT_TRUE(node.MergeTopology("csi.example.org", {}).ok());
  EXPECT_EQ(changes, 1) << "nothing was new";
  EXPECT_EQ(node.GetNodeLabels().size(), 2u) << "what was there stays";
}

TEST(NodeFactsTest, ACollisionOfTopologyIsRefusedInKubeletsWordsAndNothingIsMerged) {
  NodeFacts node(InZone("a"));
  bool changed = false;
  node.SetLabelsChanged([&] { changed = true; });
  const Status refused = node.MergeTopology("d", {{"rack", "r1"}, {"zone", "b"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(refused.error().outcome(), Outcome::kNotApplied);
  EXPECT_EQ(refused.error().message(),
            "CSI driver d: detected topology value collision: driver reported \"zone\":\"b\" but "
            "existing label is \"zone\":\"a\"");
  EXPECT_FALSE(node.GetNodeLabels().contains("rack"));
  EXPECT_FALSE(changed);
  // A driver collides with what another one has said, also if that is what it said itself.
  ASSERT_TRUE(node.MergeTopology("d", {{"rack", "r1"}}).ok());
  EXPECT_EQ(node.MergeTopology("e", {{"rack", "r2"}}).error().message(),
            "CSI driver e: detected topology value collision: driver reported \"rack\":\"r2\" but "
            "existing label is \"rack\":\"r1\", as CSI driver d has said");
  ASSERT_TRUE(node.MergeTopology("f", {{"rack", "r1"}}).ok());
  EXPECT_FALSE(node.MergeTopology("d", {{"rack", "r2"}}).ok());
}

// With kubelet, whose labels are an object's, it is refused for ever.
TEST(NodeFactsTest, WhatADriverAloneHasSaidItMaySayOtherwise) {
  NodeFacts node(InZone("a"));
  int changes = 0;
  node.SetLabelsChanged([&] { ++changes; });
  ASSERT_TRUE(node.MergeTopology("d", {{"rack", "r1"}}).ok());
  ASSERT_TRUE(node.MergeTopology("d", {{"rack", "r2"}}).ok());
  EXPECT_EQ(node.GetNodeLabels().at("rack"), "r2");
  EXPECT_EQ(changes, 2);
}

// What a driver had said once kept every other one out for ever.
TEST(NodeFactsTest, WhatAForgottenDriverHasSaidIsNoLabelAnyMore) {
  NodeFacts node(InZone("a"));
  int changes = 0;
  node.SetLabelsChanged([&] { ++changes; });
  ASSERT_TRUE(node.MergeTopology("d", {{"rack", "r1"}, {"row", "1"}, {"zone", "a"}}).ok());
  ASSERT_TRUE(node.MergeTopology("e", {{"row", "1"}}).ok());
  EXPECT_EQ(node.LabelsOfDrivers(),
            (std::map<std::string, std::set<std::string>>{{"rack", {"d"}}, {"row", {"d", "e"}}}))
      << "the zone was there before";
  node.ReleaseTopology("d");
  EXPECT_EQ(node.GetNodeLabels(), (StringMap{{"row", "1"}, {"zone", "a"}}));
  EXPECT_EQ(changes, 2);
  EXPECT_TRUE(node.MergeTopology("e", {{"rack", "r2"}, {"row", "1"}}).ok());
  node.ReleaseTopology("other");
  EXPECT_EQ(changes, 3);
}

TEST(NodeFactsTest, WhatCanBeNoLabelIsRefused) {
  NodeFacts node(InZone("a"));
  EXPECT_EQ(node.MergeTopology("d", {{"a/b/c", "x"}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(node.MergeTopology("d", {{"rack", "-x"}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(node.GetNodeLabels().size(), 1u);
}

TEST(NodeFactsTest, OfDriversThatRegisterAtOnceWithDifferentValuesOneWins) {
  NodeFacts node(InZone("a"));
  std::atomic<int> taken = 0;
  std::vector<std::thread> drivers;
  for (int i = 0; i < 4; ++i) {
    drivers.emplace_back([&node, &taken, i] {
      const std::string value = std::to_string(i);
      if (node.MergeTopology("d" + value, {{"rack", value}, {"row", value}}).ok()) ++taken;
      (void)node.GetNodeLabels();
    });
  }
  for (std::thread& driver : drivers) driver.join();
  EXPECT_EQ(taken, 1);
  const StringMap labels = node.GetNodeLabels();
  EXPECT_EQ(labels.at("rack"), labels.at("row")) << "all of one driver, none of another";
}

TEST(NodeFactsTest, ChoosesAnAddressThatOthersReach) {
  EXPECT_EQ(ChooseHostIp({"127.0.0.1", "169.254.1.1", "fe80::1", "2001:db8::1", "10.0.0.3"}),
            "10.0.0.3");
  EXPECT_EQ(ChooseHostIp({"::1", "fe80::1", "2001:db8::1"}), "2001:db8::1");
  EXPECT_EQ(ChooseHostIp({"127.0.0.1"}), "");
}

}  // namespace
}  // namespace volumed
