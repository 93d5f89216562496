// PluginWorld: everything that plugins are given, around any Kernel: used by the unit tests on
// FakeKernel and by the integration tests on the real one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_irreversible_steps.h"
#include "metrics/exported_families.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/event_log.h"
#include "volumehost/node_facts.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Objects of the namespace "default".
class FakeObjects final : public HostObjects {
 public:
  void PutSecret(const std::string& name, const std::map<std::string, std::string>& data,
                 const std::string& type = "Opaque") {
    auto secret = std::make_shared<SecretObject>();
    secret->metadata.name = name;
    secret->type = type;
    for (const auto& [key, value] : data) secret->data.emplace(key, Secret<std::string>(value));
    secrets_[name] = std::move(secret);
  }
  void SetSecretType(const std::string& name, const std::string& type) {
    auto changed = std::make_shared<SecretObject>(*secrets_.at(name));
    changed->type = type;
    secrets_[name] = std::move(changed);
  }
  void PutConfigMap(const std::string& name, StringMap data, StringMap binary = {}) {
    auto map = std::make_shared<ConfigMapObject>();
    map->metadata.name = name;
    map->data = std::move(data);
    map->binary_data = std::move(binary);
    config_maps_[name] = std::move(map);
  }
  void RemoveAll() {
    secrets_.clear();
    config_maps_.clear();
  }

  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                        const std::string& name) const override {
    return Find(secrets_, ns, name);
  }
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(
      const std::string& ns, const std::string& name) const override {
    return Find(config_maps_, ns, name);
  }

  std::string WhyNotFound(const ObjectKey& object) const override {
    return object.name == "refused" ? "it was refused" : "";
  }

  bool sources_complete = true;

 private:
  template <typename T>
  Result<std::shared_ptr<const T>> Find(const std::map<std::string, std::shared_ptr<T>>& objects,
                                        const std::string& ns, const std::string& name) const {
    const auto found = ns == "default" ? objects.find(name) : objects.end();
    if (found != objects.end()) return std::shared_ptr<const T>(found->second);
    if (!sources_complete) return Error::NotApplied(Code::kUnavailable, "sources are incomplete");
    return Error::NotApplied(Code::kNotFound, "object default/" + name + " is unknown");
  }

  std::map<std::string, std::shared_ptr<SecretObject>> secrets_;
  std::map<std::string, std::shared_ptr<ConfigMapObject>> config_maps_;
};

// Numbered tokens, so that a new one is seen to be new.
class FakeTokens final : public HostTokens {
 public:
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) override {
    requests.push_back(request);
    ServiceAccountToken token;
    token.token = Secret<std::string>("token-" + std::to_string(issued));
    token.issued_unix_ms = 400;
    token.refresh_unix_ms = refresh_unix_ms;
    return token;
  }
  void DeleteServiceAccountTokens(const PodUid& pod) override { deleted.insert(pod); }

  int issued = 1;
  int64_t refresh_unix_ms = 1000;
  std::vector<TokenRequest> requests;
  std::set<PodUid> deleted;
};

struct PluginWorld {
  PluginWorld(Kernel& kernel, const std::string& root, KernelFeatures features = {},
              std::vector<KubeletPaths::DeviceLayout> layouts = {})
      : paths(root, std::move(layouts)),
        node(NodeFacts({.name = NodeName("node-1"),
                        .labels = {},
                        .allocatable = {{"memory", Quantity::FromBytes(int64_t{64} << 20)}},
                        .features = features})),
        host{paths, kernel, clock, objects, tokens, events, node, families, irreversible} {}

  const KubeletPaths paths;
  ManualClock clock;
  FakeObjects objects;
  FakeTokens tokens;
  EventLog events{clock};
  NodeFacts node;
  ExportedFamilies families;
  FakeIrreversibleSteps irreversible;
  VolumeHost host;
};

// How often volumes were measured by walks, as a scrape would tell; "" when never.
inline std::string CollectionCount(const ExportedFamilies& families) {
  constexpr std::string_view kSeries =
      "kubelet_volume_metric_collection_duration_seconds_count{metric_source=\"du\"} ";
  std::string text;
  families.AppendTo(text);
  const size_t at = text.find(kSeries);
  if (at == std::string::npos) return "";
  const size_t value = at + kSeries.size();
  return text.substr(value, text.find('\n', value) - value);
}

inline Pod MakePod(const std::string& uid = "u1") {
  Pod pod;
  pod.metadata.name = "web-1";
  pod.metadata.uid = uid;
  pod.metadata.labels = {{"app", "web"}};
  pod.spec.service_account_name = "robot";
  return pod;
}

inline MounterArgs WithGroup(int64_t fs_group) {
  MounterArgs args;
  args.fs_group = fs_group;
  return args;
}

inline MounterArgs WithUser(int64_t fs_user) {
  MounterArgs args;
  args.fs_user = fs_user;
  return args;
}

}  // namespace volumed
