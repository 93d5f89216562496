#include "csidriver/registration_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <utility>

#include "base/printable_text.h"
#include "pluginregistration.grpc.pb.h"

namespace volumed {
namespace {

constexpr char kPluginType[] = "CSIPlugin";
// Of the way in which plugins register, and not of CSI.
constexpr char kPluginVersion[] = "1.0.0";
constexpr char kSocketSuffix[] = "-reg.sock";
constexpr size_t kMostReason = 1024;
// Both requests are a few words.
constexpr int kMostMessageBytes = 64 * 1024;

bool SomethingIsAt(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

}  // namespace

// Answers without a look at anything: a kubelet waits a second for GetInfo.
class RegistrationServer::Service final
    : public ::pluginregistration::Registration::CallbackService {
 public:
  Service(const RegistrationServerSettings& settings,
          std::function<void(const std::string& why_not)> told)
      : told_(std::move(told)) {
    info_.set_type(kPluginType);
    info_.set_name(settings.driver);
    info_.set_endpoint(settings.endpoint);
    info_.add_supported_versions(kPluginVersion);
  }

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const ::pluginregistration::InfoRequest* /*request*/,
                                    ::pluginregistration::PluginInfo* response) override {
    *response = info_;
    return Done(context);
  }

  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const ::pluginregistration::RegistrationStatus* request,
      ::pluginregistration::RegistrationStatusResponse* /*response*/) override {
    const std::string said = PrintableText(BeginningOf(request->error(), kMostReason));
    const std::string why = said.empty() ? "it gave no reason" : said;
    told_(request->plugin_registered() ? "" : why);
    return Done(context);
  }

 private:
  static grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  ::pluginregistration::PluginInfo info_;
  const std::function<void(const std::string&)> told_;
};

RegistrationServer::RegistrationServer(const Parts& parts,
                                       const RegistrationServerSettings& settings, State state)
    : parts_(parts),
      directory_(settings.directory),
      silent_for_(settings.silent_for),
      state_(std::move(state)) {
  service_ = std::make_unique<Service>(
      settings, [this, watched = alive_.watch()](const std::string& why_not) {
        parts_.scheduler.Post([this, watched, why_not] {
          if (watched.alive()) TakeTold(why_not);
        });
      });
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.RegisterService(service_.get());
  ServedSocketSettings socket;
  socket.file.path = SocketPath(settings);
  socket.file.renamed_into_place = true;
  socket.what = "registration connection";
  ServedSocketHooks hooks;
  hooks.classify = RootOrSelf;
  hooks.state = [this](const Status& file) { TakeFileState(file); };
  socket_ =
      std::make_unique<ServedSocket>(ServedSocket::Parts{parts.loop, parts.log}, std::move(socket),
                                     builder.BuildAndStart(), std::move(hooks));
}

RegistrationServer::~RegistrationServer() = default;

std::string RegistrationServer::SocketPath(const RegistrationServerSettings& settings) {
  return settings.directory + "/" + settings.driver + kSocketSuffix;
}

Status RegistrationServer::RemoveDead(const RegistrationServerSettings& settings) {
  const std::string path = SocketPath(settings);
  const std::string hidden = HiddenSocketPath(path);
  if (!SomethingIsAt(path) && !SomethingIsAt(hidden)) return OkStatus();
  // A socket that an agent is making does not listen yet.
  ASSIGN_OR_RETURN(const ProcessLock lock, LockSocketFile(hidden));
  RETURN_IF_ERROR(RemoveDeadSocket(hidden));
  return RemoveDeadSocket(path);
}

void RegistrationServer::Serve() {
  is_begun_ = true;
  Follow();
}

void RegistrationServer::DriverServes(const Status& state) {
  driver_ = state;
  Follow();
}

void RegistrationServer::Follow() {
  if (!is_begun_) return;
  if (driver_.ok() && !is_shown_) {
    is_shown_ = true;
    AwaitKubelet();
    return socket_->Serve();
  }
  if (!driver_.ok() && is_shown_) {
    is_shown_ = false;
    if (const Status removed = socket_->Remove(); !removed.ok()) {
      parts_.log.Warning("the socket of the CSI driver's registration stays",
                         {{"error", removed.error()}});
    }
  }
  TellState();
}

void RegistrationServer::AwaitKubelet() {
  parts_.scheduler.PostAfter(silent_for_, [this, watched = alive_.watch()] {
    if (!watched.alive() || !is_begun_) return;
    has_waited_ = true;
    TellState();
  });
}

Status RegistrationServer::Remove() {
  is_begun_ = false;
  return socket_->Remove();
}

void RegistrationServer::TakeFileState(const Status& state) {
  file_state_ = state;
  TellState();
}

void RegistrationServer::TakeTold(const std::string& why_not) {
  was_told_ = true;
  why_not_ = why_not;
  if (why_not.empty()) {
    parts_.log.Info("a kubelet has registered the CSI driver");
  } else {
    parts_.log.LogLimited("csi registration refused", LogLevel::kWarning,
                          "a kubelet did not register the CSI driver", {{"reason", why_not}});
  }
  TellState();
}

// A kubelet that refused the driver asks again by itself, with growing delays.
void RegistrationServer::TellState() {
  if (!driver_.ok()) {
    return state_(driver_.error().With("it is not registered while csi-serve does not serve"));
  }
  if (!file_state_.ok()) return state_(file_state_);
  if (!why_not_.empty()) {
    return state_(Error::NotApplied(Code::kUnavailable,
                                    "a kubelet did not register the driver: " + why_not_));
  }
  if (was_told_ || !has_waited_) return state_(OkStatus());
  state_(Error::NotApplied(
      Code::kUnavailable, "no kubelet has registered the driver: none runs here, or " + directory_ +
                              " is not its plugins_registry"));
}

}  // namespace volumed
