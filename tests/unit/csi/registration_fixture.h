// A registration in simulated time: its directory is told by the test, its sockets are a fake's.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csi/registration.h"
#include "unit/csi/drivers_fixture.h"

namespace volumed {

class ScriptedWatch final : public RegistryWatch {
 public:
  RegistryLook Look(const std::vector<SafePath>& endpoints) override {
    ++looks;
    std::set<std::string> now;
    for (const SafePath& place : endpoints) now.insert(place.Display());
    using What = RegistryChange::What;
    RegistryLook look;
    look.changes = std::exchange(changes, {});
    for (const std::string& display : now) {
      if (watched.count(display) == 0) look.changes.push_back({What::kEndpoint, display});
    }
    watched = now;
    look.error = error;
    return look;
  }
  int fd() const override { return -1; }

  int looks = 0;
  std::vector<RegistryChange> changes;
  std::set<std::string> watched;
  std::optional<Error> error;
};

class RegistrationFixture : public CsiDriversFixture {
 protected:
  static constexpr const char* kSocket = "disk-reg.sock";

  using What = RegistryChange::What;
  RegistrationFixture() { Begin(); }

  void Begin() {
    registration_ = std::make_unique<CsiRegistration>(
        CsiRegistration::Parts{scheduler_, nullptr, dialer_, *drivers_, log_}, watch_,
        CsiRegistrationSettings{.directory = "/kubelet/plugins_registry"},
        CsiRegistration::Hooks{
            .directory_changed =
                [this](const std::optional<Error>& error) { directory_.push_back(error); },
            .ended =
                [this](const std::string& driver, bool well) {
                  if (well) ++registered_;
                  if (!well) failed_.push_back(driver);
                }});
    scheduler_.Post([this] { registration_->Start(); });
    scheduler_.RunFor(milliseconds(1));
  }

  static std::string PathOf(const std::string& name) { return "/kubelet/plugins_registry/" + name; }

  // A process that registers a driver; the socket is new, and is told of.
  std::shared_ptr<FakeCsiProcess> Registrar(const std::string& socket = kSocket,
                                            const std::string& name = kName,
                                            const std::string& endpoint = kEndpoint,
                                            const std::vector<std::string>& versions = {"1.0.0"},
                                            const std::string& type = "CSIPlugin") {
    auto process = std::make_shared<FakeCsiProcess>();
    Info(*process, name, endpoint, versions, type);
    dialer_.Listen(PathOf(socket), process);
    Tell(What::kCame, socket);
    return process;
  }
  static void Info(FakeCsiProcess& process, const std::string& name, const std::string& endpoint,
                   const std::vector<std::string>& versions = {"1.0.0"},
                   const std::string& type = "CSIPlugin") {
    ::pluginregistration::PluginInfo info;
    info.set_type(type);
    info.set_name(name);
    info.set_endpoint(endpoint);
    for (const std::string& version : versions) info.add_supported_versions(version);
    process.Answer("GetInfo", info);
    process.Handle("NotifyRegistrationStatus", Noted(process));
  }
  void Tell(What what, const std::string& name) {
    watch_->changes.push_back({what, name});
    scheduler_.Post([this] { registration_->LookAgain(); });
  }
  RegisteredSocket Socket(const std::string& name = kSocket) const {
    for (const RegisteredSocket& socket : registration_->Sockets()) {
      if (socket.path == PathOf(name)) return socket;
    }
    return {
        .path = "none", .state = RegistrationState::kEnded, .driver = {}, .reason = "no socket"};
  }
  RegistrationState StateOf(const std::string& name = kSocket) const { return Socket(name).state; }

  // What the process was told, last.
  static FakeCsiProcess::Handler Noted(FakeCsiProcess& process) {
    return [&process](const google::protobuf::Message& request) -> CsiChannel::AnyAnswer {
      told()[&process].push_back(
          static_cast<const ::pluginregistration::RegistrationStatus&>(request));
      return std::unique_ptr<google::protobuf::Message>(
          std::make_unique<::pluginregistration::RegistrationStatusResponse>());
    };
  }
  static std::map<const FakeCsiProcess*, std::vector<::pluginregistration::RegistrationStatus>>&
  told() {
    static std::map<const FakeCsiProcess*, std::vector<::pluginregistration::RegistrationStatus>>
        all;
    return all;
  }
  // "yes", or why not; "nothing" if it was not told.
  static std::string Told(const std::shared_ptr<FakeCsiProcess>& process) {
    const auto& all = told()[process.get()];
    if (all.empty()) return "nothing";
    return all.back().plugin_registered() ? "yes" : all.back().error();
  }
  void TearDown() override { told().clear(); }

  std::shared_ptr<ScriptedWatch> watch_ = std::make_shared<ScriptedWatch>();
  std::vector<std::optional<Error>> directory_;
  int registered_ = 0;
  std::vector<std::string> failed_;  // the drivers
  std::unique_ptr<CsiRegistration> registration_;
};

}  // namespace volumed
