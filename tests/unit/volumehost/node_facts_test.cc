#include "volumehost/node_facts.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

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
  const auto allocatable = node->GetNodeAllocatable();
  EXPECT_GT(allocatable.at("memory").Value(), 0);
  EXPECT_GE(allocatable.at("cpu").Value(), 1);
  EXPECT_EQ(node->GetNodeName(), NodeName("n1"));
}

TEST(NodeFactsTest, WhatTheConfigurationNamesWins) {
  const auto node = NodeFacts::Read({.name = NodeName("n1"),
                                     .labels = {{"zone", "a"}},
                                     .allocatable = {{"memory", Quantity::FromBytes(4096)}},
                                     .features = {.tmpfs_noswap = true}});
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->GetNodeAllocatable().at("memory").Value(), 4096);
  EXPECT_EQ(node->GetNodeLabels().at("zone"), "a");
  EXPECT_TRUE(node->GetKernelFeatures().tmpfs_noswap);
  EXPECT_FALSE(node->GetKernelFeatures().statmount);
}

TEST(NodeFactsTest, HasTheLabelsThatAKubeletSets) {
  NodeFactsOptions options;
  options.name = NodeName("node-7");
  options.labels = {{"kubernetes.io/hostname", "other"}, {"zone", "a"}};
  const Result<NodeFacts> facts = NodeFacts::Read(options);
  ASSERT_TRUE(facts.ok());
  const std::map<std::string, std::string> labels = facts->GetNodeLabels();
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

TEST(NodeFactsTest, ChoosesAnAddressThatOthersReach) {
  EXPECT_EQ(ChooseHostIp({"127.0.0.1", "169.254.1.1", "fe80::1", "2001:db8::1", "10.0.0.3"}),
            "10.0.0.3");
  EXPECT_EQ(ChooseHostIp({"::1", "fe80::1", "2001:db8::1"}), "2001:db8::1");
  EXPECT_EQ(ChooseHostIp({"127.0.0.1"}), "");
}

}  // namespace
}  // namespace volumed
