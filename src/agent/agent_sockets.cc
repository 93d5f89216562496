// Agent: the ways in which it is asked: the control socket, and HTTP.
#include <utility>

#include "agent/agent.h"
#include "agent/agent_status.h"
#include "agent/passed_socket.h"
#include "base/peer_credentials.h"

namespace volumed {
namespace {

// How long a probe waits for the control thread before it answers that the thread does not run.
constexpr auto kProbePatience = std::chrono::seconds(5);
// A scrape that has waited this long gets the last text; scrapers wait ten seconds, and some of
// them less.
constexpr auto kMetricsPatience = std::chrono::seconds(2);
// Names of parts in readyz, `volumectl status` and the log.
constexpr char kMetricsPart[] = "metrics";
constexpr char kSocketPart[] = "control socket";

}  // namespace

// The socket comes last: an agent that cannot get the lock, or that ends for another reason, must
// not have touched the socket that another agent serves.
Status Agent::OpenSockets() {
  RETURN_IF_ERROR(MakeControlServices());
  const std::optional<gid_t> group = FindGroup(config_.socket_group);
  const std::optional<gid_t> readers = FindGroup(config_.read_group);
  std::map<PeerRole, grpc::Service*> services;
  for (const auto& [role, service] : control_services_) services[role] = service.get();
  control_server_ = std::make_unique<ControlServer>(PeerRoles(group, readers), scheduler_->loop(),
                                                    *log_, services);
  ASSIGN_OR_RETURN(Descriptor passed, TakePassedSocket());
  if (passed.valid()) {
    OpenHttp();
    RETURN_IF_ERROR(control_server_->ListenAt(std::move(passed)));
  } else {
    RETURN_IF_ERROR(OpenOwnSocket({config_.socket, group, readers}));
  }
  if (!group) {
    FollowGroup("socket-group", config_.socket_group, "only root may operate");
  }
  if (!readers) {
    FollowGroup("read-group", config_.read_group, "nobody gets the role read");
  }
  watchdog_ = std::make_unique<Watchdog>(*scheduler_);
  return MakeCsiDriver();
}

Status Agent::OpenOwnSocket(const SocketFileOptions& options) {
  if (const Status answers = Answers(options.path); !answers.ok()) {
    OpenHttp();
    parts_->Retry(
        kSocketPart, answers.error(), [this, options] { return Answers(options.path); },
        [this, options] { return OpenControlSocket(LockSocketFile(options.path), options); });
    return OkStatus();
  }
  Result<ProcessLock> lock = LockSocketFile(options.path);
  if (!lock.ok() && lock.error().code() == Code::kUnavailable) return lock.error();
  OpenHttp();
  return OpenControlSocket(std::move(lock), options);
}

void Agent::FollowGroup(const std::string& setting, const std::string& group,
                        const std::string& what) {
  if (group.empty()) return;
  const Error missing =
      Error::NotApplied(Code::kNotFound, "no such group: " + group + "; " + what + " until it is");
  parts_->Retry(
      setting, missing,
      [group, missing]() -> Status {
        if (FindGroup(group)) return OkStatus();
        return missing;
      },
      [this] { return UseGroups(); }, PartNeed::kOptional);
}

Status Agent::UseGroups() {
  const std::optional<gid_t> group = FindGroup(config_.socket_group);
  const std::optional<gid_t> readers = FindGroup(config_.read_group);
  control_server_->SetRoles(PeerRoles(group, readers));
  if (control_socket_) RETURN_IF_ERROR(control_socket_->SetGroups(group, readers));
  return csi_server_ ? csi_server_->SetGroup(FindGroup(config_.csi_serve_group)) : OkStatus();
}

Status Agent::MakeControlServices() {
  control_backend_.reset(new ControlBackend{
      .scheduler = *scheduler_,
      .log = *log_,
      .catalog = *catalog_,
      .directory = *object_directory_,
      .manager = *manager_,
      .events = *events_,
      .operations = *operations_,
      .kernel = *kernel_,
      .node = NodeName(config_.node_name),
      .features = features_,
      .recovery = *recovery_gate_,
      .accept_records = [this](const std::optional<std::string>& volume,
                               RecordsAccepted done) { AcceptRecords(volume, std::move(done)); },
      .accept_volume = [this](const std::string& volume,
                              const auto& done) { AcceptVolume(volume, done); },
      .losses = *source_losses_,
      .unread_files = [this](const std::string& name) { return UnreadFiles(name); },
      .accept_source = [this](const std::string& name,
                              bool dry_run) { return AcceptSource(name, dry_run); },
      .forget_source = [this](const std::string& name,
                              bool dry_run) { return ForgetSource(name, dry_run); },
      .status =
          [this] {
            const KeptMountTable& mounts = kernel_->mount_table();
            const auto is_mounted = [this, &mounts](const std::string& place) {
              return !mounts.LastKnown({.below = place}, config_.root).empty();
            };
            return DescribeStatus(
                {config_, features_, *kernel_, *recovery_gate_, scheduler_->clock(), *parts_,
                 manager_->unrecorded_mounts(is_mounted)},
                NotReadyReason());
          },
      .stuck = [this] { return kernel_->stuck_operations(); },
      .csi = csi_.get(),
      .waiting_for_drivers = [this] { return operations_->WaitingForDrivers(); },
      .volumes_of_drivers = [this] { return operations_->CountByDriver(); },
      .driver_operations = operations_.get(),
      .csi_debts = csi_debts_.get(),
      .driver_traces = [this](const std::string& driver) { return TracesOf(driver); },
      .why_driver_away =
          [this](const std::string& driver) { return csi_->drivers().WhyAway(driver); },
      .node_labels = [this] { return node_->GetNodeLabels(); },
      .label_givers = [this] { return LabelGivers(); },
      .csi_only = config_.csi_only,
      .snapshots = &snapshot_objects_->backend(),
      .departed = departed_pods_.get(),
      .paths = paths_.get()});
  control_backend_->look_patience = config_.deadline_look;
  control_backend_->driver_call_patience = config_.deadline_csi_call;
  for (const PeerRole role : {PeerRole::kRead, PeerRole::kOperate, PeerRole::kAdmin}) {
    control_services_[role] = std::make_unique<ControlService>(*control_backend_, role);
    RETURN_IF_ERROR(control_services_[role]->Check());
  }
  return OkStatus();
}

Status Agent::OpenControlSocket(Result<ProcessLock> lock, const SocketFileOptions& options) {
  bool made = false;
  if (lock.ok()) {
    Result<Descriptor> socket = BindSocketFile(options);
    if (socket.ok()) {
      RETURN_IF_ERROR(control_server_->ListenAt(std::move(socket).value()));
      made = true;
    } else if (socket.error().code() == Code::kUnavailable ||
               socket.error().code() == Code::kInvalidArgument) {
      return socket.error();
    }
  }
  KeepControlSocket(std::move(lock), options, made);
  return OkStatus();
}

void Agent::KeepControlSocket(Result<ProcessLock> lock, const SocketFileOptions& options,
                              bool made) {
  SocketFileKeeper::Handlers handlers;
  handlers.made = [this, path = options.path](Descriptor socket) {
    log_->Warning("control socket made anew", {{"path", path}});
    return control_server_->ListenAt(std::move(socket));
  };
  handlers.state = [this](const Status& state) { parts_->Set(kSocketPart, state); };
  std::optional<ProcessLock> held;
  if (lock.ok()) held = std::move(lock).value();
  control_socket_ = std::make_unique<SocketFileKeeper>(options, std::move(held), scheduler_->loop(),
                                                       std::move(handlers));
  control_socket_->Start(made);
}

void Agent::OpenHttp() {
  metrics_text_ = std::make_unique<MetricsText>(
      *scheduler_,
      MetricsText::Hooks{.collect =
                             [this] {
                               return metrics_->Collect(
                                   http_server_ ? http_server_->stats() : HttpServerStats(),
                                   parts_->states());
                             },
                         .write = [this] { return metrics_->Write(); },
                         .lag = [this](Duration lag) { metrics_->ControlLoopLag(lag); }});
  if (config_.metrics_address.empty()) return;
  metrics_text_->Collect();  // makes a first text before the control thread runs
  Result<Descriptor> socket = MakeHttpSocket(config_.metrics_address);
  const Status served = socket.ok() ? ServeHttp(std::move(socket).value()) : socket.error();
  if (served.ok()) return parts_->Set(kMetricsPart, OkStatus());
  const auto made = std::make_shared<Descriptor>();
  parts_->Retry(
      kMetricsPart, served.error(),
      [made, address = config_.metrics_address]() -> Status {
        ASSIGN_OR_RETURN(*made, MakeHttpSocket(address));
        return OkStatus();
      },
      [this, made] { return ServeHttp(std::move(*made)); });
}

Status Agent::ServeHttp(Descriptor socket) {
  ASSIGN_OR_RETURN(http_server_,
                   HttpServer::Start(std::move(socket), MakeHttpHandlers(), HttpLimitsOfProcess(),
                                     scheduler_->clock(), *log_));
  return OkStatus();
}

HttpHandlers Agent::MakeHttpHandlers() {
  HttpHandlers handlers;
  handlers.metrics.ask = [this](HttpReply reply) { metrics_text_->Ask(std::move(reply)); };
  handlers.metrics.late = [this] { return metrics_text_->last(); };
  handlers.metrics.patience = kMetricsPatience;
  handlers.unhealthy = AskControl([] { return std::string(); });
  handlers.not_ready = AskControl([this]() -> std::string {
    const std::optional<std::string> reason = NotReadyReason();
    return reason ? "no: " + *reason : "ok\n" + parts_->Notes();
  });
  return handlers;
}

HttpQuestion Agent::AskControl(std::function<std::string()> question) {
  HttpQuestion asked;
  asked.ask = [this, question = std::move(question)](HttpReply reply) {
    scheduler_->Post([this, question, reply = std::move(reply), asked = scheduler_->clock().Now()] {
      metrics_->ControlLoopLag(scheduler_->clock().Now() - asked);
      reply(std::make_shared<const std::string>(question()));
    });
  };
  asked.late = [] {
    return std::make_shared<const std::string>("the control thread does not answer");
  };
  asked.patience = kProbePatience;
  return asked;
}

}  // namespace volumed
