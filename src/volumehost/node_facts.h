// NodeFacts: what the agent finds out about its own node, without an API server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "volumehost/volume_host.h"

namespace volumed {

// What the configuration says of the node.
struct NodeFactsOptions {
  NodeName name;
  std::map<std::string, std::string> labels;  // they win over the default ones
  // Amounts from the configuration; they replace those that were found.
  std::map<std::string, Quantity> allocatable;
  KernelFeatures features;          // as ProbeFeatures answered
  std::string host_name = {};       // empty: the machine's own name
  std::string host_ip = {};         // empty: the first that others can reach
  std::string cloud_provider = {};  // empty: there is none
};

// The address by which others reach a machine: the first that is neither loopback nor link-local,
// IPv4 before IPv6; "" if there is none. Addresses are in text form, without a port or zone. Pure.
std::string ChooseHostIp(const std::vector<std::string>& addresses);

// The labels that a kubelet gives its node by itself, for a machine of the kind that uname(2) names
// ("x86_64"). Source: kubernetes pkg/kubelet/kubelet_node_status.go@v1.36.2 (initialNode,
// updateDefaultLabels).
std::map<std::string, std::string> DefaultNodeLabels(const NodeName& name,
                                                     const std::string& machine);

// MemTotal of a /proc/meminfo text, in bytes. Errors: DataLoss, not applied, if it is missing.
Result<int64_t> ParseMemTotalBytes(std::string_view meminfo);

// Immutable. Threads: any.
class NodeFacts final : public HostNode {
 public:
  // Reads /proc/meminfo, counts the processors that are online, and asks for the machine's name,
  // kind and addresses; the options win. Blocks: for a read of procfs. Errors: those of reading,
  // not applied.
  static Result<NodeFacts> Read(NodeFactsOptions options);

  // Takes the options as they are, and looks at nothing.
  explicit NodeFacts(NodeFactsOptions options) : options_(std::move(options)) {}

  NodeName GetNodeName() const override { return options_.name; }
  std::map<std::string, std::string> GetNodeLabels() const override { return options_.labels; }
  std::map<std::string, Quantity> GetNodeAllocatable() const override {
    return options_.allocatable;
  }
  KernelFeatures GetKernelFeatures() const override { return options_.features; }
  std::string GetHostName() const override {
    return options_.host_name.empty() ? options_.name.str() : options_.host_name;
  }
  Result<std::string> GetHostIp() const override;
  std::optional<std::string> GetCloudProvider() const override;

 private:
  NodeFactsOptions options_;
};

}  // namespace volumed
