// NodeFacts: what the agent finds out about its own node, without an API server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "volumehost/volume_host.h"

namespace volumed {

// What the configuration says of the node.
struct NodeFactsOptions {
  NodeName name;
  std::map<std::string, std::string> labels;  // they win over the default ones
  // Amounts from the configuration; they replace those that were found.
  std::map<std::string, Quantity> allocatable;
  KernelFeatures features;  // as ProbeFeatures answered
  bool has_selinux = false;
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

// Only labels change. Threads: any. Blocks: only Read().
class NodeFacts final : public HostNode {
 public:
  // Reads /proc/meminfo, counts the processors that are online, asks for the machine's name, kind
  // and addresses, and looks whether there is an SELinux; the options win. Blocks: for a read of
  // procfs. Errors: those of reading, not applied.
  static Result<std::unique_ptr<NodeFacts>> Read(NodeFactsOptions options);

  // Takes the options as they are, and looks at nothing.
  explicit NodeFacts(NodeFactsOptions options)
      : options_(std::move(options)), labels_(options_.labels) {}

  // Adds the labels that say where the node is, as a CSI driver sees it. They stay when the driver
  // goes, as a kubelet leaves them on its Node, since volumes may depend on them. Either all become
  // labels or none. Errors, not applied: FailedPrecondition, in kubelet's words, if the node has
  // another value for one of them, but for what this driver alone has said; InvalidArgument for
  // what is no label.
  // Source: kubernetes pkg/volume/csi/nodeinfomanager/nodeinfomanager.go@v1.36.2
  // (updateTopologyLabels).
  Status MergeTopology(const std::string& driver, const StringMap& topology) EXCLUDES(mu_);
  // The driver is forgotten: labels that nobody else has said go. Kubelet has no such thing: what a
  // driver that went for good has said keeps others out for ever there.
  void ReleaseTopology(const std::string& driver) EXCLUDES(mu_);
  // The labels that drivers alone have said, with these drivers.
  std::map<std::string, std::set<std::string>> LabelsOfDrivers() const EXCLUDES(mu_);
  // Called after each of the two that has changed the labels, on its thread. REQUIRES: it is set
  // before the first one.
  void SetLabelsChanged(std::function<void()> changed) { labels_changed_ = std::move(changed); }

  NodeName GetNodeName() const override { return options_.name; }
  std::map<std::string, std::string> GetNodeLabels() const override EXCLUDES(mu_);
  std::map<std::string, Quantity> GetNodeAllocatable() const override {
    return options_.allocatable;
  }
  KernelFeatures GetKernelFeatures() const override { return options_.features; }
  bool HasSelinux() const override { return options_.has_selinux; }
  std::string GetHostName() const override {
    return options_.host_name.empty() ? options_.name.str() : options_.host_name;
  }
  Result<std::string> GetHostIp() const override;
  std::optional<std::string> GetCloudProvider() const override;

 private:
  // False if the node has them all already.
  Result<bool> AddLabels(const std::string& driver, const StringMap& labels) EXCLUDES(mu_);

  const NodeFactsOptions options_;
  std::function<void()> labels_changed_;
  mutable Mutex mu_;
  StringMap labels_ GUARDED_BY(mu_);
  // By label that was not there before: the drivers that have said it.
  std::map<std::string, std::set<std::string>> said_by_ GUARDED_BY(mu_);
};

}  // namespace volumed
