// The parts of a VolumeHost that operations do not ask anything of, and events that are remembered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "volumehost/volume_host.h"

namespace volumed {

// Where the tests' host has its root, a pod and a volume of the scripted plugin.
inline const std::string kRoot = "/var/lib/volumed";
inline const std::string kPodDir = kRoot + "/pods/uid-1";
inline const std::string kVolumeDir = kPodDir + "/volumes/test.io~scripted/data";

class StubHostParts final : public HostObjects,
                            public HostTokens,
                            public HostEvents,
                            public HostNode {
 public:
  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string&,
                                                        const std::string& name) const override {
    const auto found = secrets.find(name);
    if (found == secrets.end()) return NotHere();
    return found->second;
  }
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(const std::string&,
                                                              const std::string&) const override {
    return NotHere();
  }
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest&) override {
    ++tokens_issued;
    ServiceAccountToken token;
    token.token = Secret<std::string>("token " + std::to_string(tokens_issued));
    token.refresh_unix_ms = int64_t{1} << 50;
    return token;
  }
  std::string Issuer() const override { return "this one"; }
  void DeleteServiceAccountTokens(const PodUid&) override {}
  void RecordPodEvent(const PodUid& pod, EventType, const std::string& reason,
                      const std::string& message) override {
    events.push_back(pod.str() + " " + reason + " " + message);
  }
  void RecordObjectEvent(const ObjectKey& object, EventType, const std::string& reason,
                         const std::string& message) override {
    events.push_back(ToString(object) + " " + reason + " " + message);
  }
  NodeName GetNodeName() const override { return NodeName("node"); }
  std::map<std::string, std::string> GetNodeLabels() const override { return node_labels; }
  std::map<std::string, Quantity> GetNodeAllocatable() const override { return {}; }
  KernelFeatures GetKernelFeatures() const override { return {}; }

  std::vector<std::string> events;
  std::map<std::string, std::shared_ptr<const SecretObject>> secrets;
  std::map<std::string, std::string> node_labels;
  int tokens_issued = 0;

 private:
  static Error NotHere() { return Error::NotApplied(Code::kNotFound, "no objects here"); }
};

}  // namespace volumed
