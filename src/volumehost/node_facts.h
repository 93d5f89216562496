// NodeFacts: what the agent knows of its own node without an API server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct NodeFactsOptions {
  NodeName name;
  std::map<std::string, std::string> labels;
  // Amounts that the configuration names; they replace those that were found.
  std::map<std::string, Quantity> allocatable;
  KernelFeatures features;  // as ProbeFeatures answered
};

// MemTotal of a /proc/meminfo text, in bytes. DataLoss, not applied, when it is not there.
Result<int64_t> ParseMemTotalBytes(std::string_view meminfo);

// Immutable. Threads: any.
class NodeFacts final : public HostNode {
 public:
  // Reads /proc/meminfo and counts the processors that are on line; what the options name wins.
  // Blocks: for a read of procfs. Errors: those of reading, not applied.
  static Result<NodeFacts> Read(NodeFactsOptions options);

  explicit NodeFacts(NodeFactsOptions options) : options_(std::move(options)) {}

  NodeName GetNodeName() const override { return options_.name; }
  std::map<std::string, std::string> GetNodeLabels() const override { return options_.labels; }
  std::map<std::string, Quantity> GetNodeAllocatable() const override {
    return options_.allocatable;
  }
  KernelFeatures GetKernelFeatures() const override { return options_.features; }

 private:
  NodeFactsOptions options_;
};

}  // namespace volumed
