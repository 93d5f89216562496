// A driver of a test that registers itself: both services at real sockets.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "csi.pb.h"
#include "pluginregistration.pb.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {

// It answers every RPC; what is not set is an empty message.
class RealDriver {
 public:
  RealDriver(const std::string& endpoint, const std::string& name)
      : server_(endpoint, [this](int number) { return AnswerTo(number); }) {
    ::csi::v1::GetPluginInfoResponse info;
    info.set_name(name);
    Answer("/csi.v1.Identity/GetPluginInfo", info);
    ::csi::v1::NodeGetInfoResponse node;
    node.set_node_id("node-a");
    Answer("/csi.v1.Node/NodeGetInfo", node);
  }
  template <typename Message>
  void Answer(const std::string& path, const Message& message) {
    const std::lock_guard lock(mu_);
    answers_[path] = message.SerializeAsString();
  }
  ScriptedDriver& server() { return server_; }

 private:
  std::optional<ScriptedAnswer> AnswerTo(int number) {
    const std::string method = server_.method(number);
    const std::lock_guard lock(mu_);
    const auto found = answers_.find(method);
    return ScriptedAnswer{.bytes = found == answers_.end() ? "" : found->second};
  }
  std::mutex mu_;
  std::map<std::string, std::string> answers_;
  ScriptedDriver server_;
};

// The registrar of the driver at `endpoint`. Its socket is made under a hidden name, as one that
// listens when it is seen.
inline std::unique_ptr<RealDriver> StartRealRegistrar(const std::filesystem::path& registry,
                                                      const std::string& socket,
                                                      const std::string& name,
                                                      const std::string& endpoint) {
  const std::filesystem::path hidden = registry / ("." + socket);
  auto registrar = std::make_unique<RealDriver>(hidden.string(), name);
  ::pluginregistration::PluginInfo info;
  info.set_type("CSIPlugin");
  info.set_name(name);
  info.set_endpoint(endpoint);
  info.add_supported_versions("1.0.0");
  registrar->Answer("/pluginregistration.Registration/GetInfo", info);
  std::filesystem::rename(hidden, registry / socket);
  return registrar;
}

}  // namespace volumed
