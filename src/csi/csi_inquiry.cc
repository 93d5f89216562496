#include "csi/csi_inquiry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {
namespace {

constexpr size_t kNodeIdBytes = 256;
constexpr size_t kTextBytes = 128;
constexpr size_t kMapBytes = 4096;
constexpr size_t kMostVersion = 32 * 1024;

Error Senseless(const std::string& what) { return Error::NotApplied(Code::kInvalidArgument, what); }

bool IsUnimplemented(const Error& error) { return error.code() == Code::kUnimplemented; }

// What an answer without a controller's capabilities means.
Error NoController(const Error& error) {
  return IsUnimplemented(error) ? error.With("the process there serves no controller") : error;
}

// Sorted, each once.
std::vector<int32_t> Sorted(std::vector<int32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// The types of the RPCs that a service's capabilities name.
template <typename Response>
std::vector<int32_t> RpcTypes(const Response& answer) {
  std::vector<int32_t> types;
  for (const auto& capability : answer.capabilities()) {
    if (capability.has_rpc()) types.push_back(capability.rpc().type());
  }
  return Sorted(std::move(types));
}

}  // namespace

Status CheckCsiNodeId(const std::string& node_id) {
  if (node_id.empty()) return Senseless("NodeGetInfo answered an empty node_id");
  if (node_id.size() > kNodeIdBytes) {
    return Senseless("NodeGetInfo answered a node_id of " + std::to_string(node_id.size()) +
                     " bytes; the specification allows " + std::to_string(kNodeIdBytes));
  }
  if (!IsText(node_id)) {
    return Senseless("NodeGetInfo answered the node_id " + Quoted(node_id, kTextBytes) +
                     ", which is no text");
  }
  return OkStatus();
}

Status CheckCsiTopology(const std::map<std::string, std::string>& topology) {
  size_t bytes = 0;
  for (const auto& [key, value] : topology) {
    bytes += key.size() + value.size();
    if (key.empty() || key.size() > kTextBytes || value.size() > kTextBytes) {
      return Senseless("NodeGetInfo answered a topology with the segment " +
                       Quoted(key, kTextBytes) + ", which is empty or too long");
    }
  }
  if (bytes > kMapBytes) return Senseless("NodeGetInfo answered a topology of more than 4 KiB");
  return OkStatus();
}

std::string ShownCsiVersion(const std::string& said, const CsiSecrets& secrets) {
  return PrintableText(BeginningOf(secrets.Replaced(said, kTextBytes), kTextBytes));
}

void CsiInquiry::Begin(Scheduler& scheduler, std::shared_ptr<CsiCaller> caller,
                       CsiInquirySettings settings, Hooks hooks) {
  const std::shared_ptr<CsiInquiry> inquiry(
      new CsiInquiry(scheduler, std::move(caller), std::move(settings), std::move(hooks)));
  inquiry->AskName();
}

CsiInquiry::CsiInquiry(Scheduler& scheduler, std::shared_ptr<CsiCaller> caller,
                       CsiInquirySettings settings, Hooks hooks)
    : scheduler_(scheduler),
      caller_(std::move(caller)),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)) {
  facts_.name = settings_.driver;
}

template <typename Response>
void CsiInquiry::Ask(const google::protobuf::Message& request, Duration timeout,
                     std::function<void(const Result<Response>&)> next) {
  CsiCallOptions options{Deadline::After(scheduler_.clock(), timeout)};
  options.secrets = settings_.secrets;
  AskOnControl<Response>(
      scheduler_, caller_, request, options,
      [self = shared_from_this(), next = std::move(next)](const Result<Response>& answer) {
        if (self->hooks_.wanted()) next(answer);
      });
}

void CsiInquiry::AskName() {
  Ask<::csi::v1::GetPluginInfoResponse>(
      ::csi::v1::GetPluginInfoRequest(), settings_.identity, [this](const auto& answer) {
        if (!answer.ok() && !IsUnimplemented(answer.error())) return Fail(answer.error());
        if (answer.ok()) {
          if (const Status taken = TakeName(*answer); !taken.ok()) return Fail(taken.error());
        }
        settings_.node ? AskPluginCapabilities() : AskControllerCapabilities();
      });
}

std::string CsiInquiry::Shown(const std::string& text) const {
  return CsiSecrets(settings_.secrets).Replaced(text, kTextBytes);
}

Status CsiInquiry::WithoutSecrets(const Status& sense) const {
  if (sense.ok()) return sense;
  const CsiSecrets secrets(settings_.secrets);
  return Senseless(secrets.RemovedFrom(sense.error().message(), kMapBytes));
}

Status CsiInquiry::TakeName(const ::csi::v1::GetPluginInfoResponse& answer) {
  if (answer.name() != settings_.driver) {
    return Senseless((settings_.node ? "the driver" : "the controller") +
                     (" at the socket of " + settings_.driver) + " calls itself " +
                     Quoted(Shown(answer.name()), kTextBytes));
  }
  // Of a longer one no more is searched.
  facts_.vendor_version = answer.vendor_version().substr(0, kMostVersion);
  return OkStatus();
}

void CsiInquiry::AskPluginCapabilities() {
  Ask<::csi::v1::GetPluginCapabilitiesResponse>(
      ::csi::v1::GetPluginCapabilitiesRequest(), settings_.identity, [this](const auto& answer) {
        if (!answer.ok() && !IsUnimplemented(answer.error())) return Fail(answer.error());
        if (answer.ok()) TakePluginCapabilities(*answer);
        AskReady();
      });
}

void CsiInquiry::TakePluginCapabilities(const ::csi::v1::GetPluginCapabilitiesResponse& answer) {
  std::vector<int32_t> services;
  std::vector<int32_t> expansion;
  for (const auto& capability : answer.capabilities()) {
    if (capability.has_service()) services.push_back(capability.service().type());
    if (capability.has_volume_expansion()) {
      expansion.push_back(capability.volume_expansion().type());
    }
  }
  facts_.plugin_capabilities = Sorted(std::move(services));
  facts_.expansion = Sorted(std::move(expansion));
}

void CsiInquiry::AskReady() {
  Ask<::csi::v1::ProbeResponse>(
      ::csi::v1::ProbeRequest(), settings_.identity, [this](const auto& answer) {
        if (!answer.ok() && !IsUnimplemented(answer.error())) return Fail(answer.error());
        // An answer that does not say is a yes.
        if (!answer.ok() || !answer->has_ready() || answer->ready().value()) {
          return AskNodeCapabilities();
        }
        hooks_.not_ready();
        scheduler_.PostAfter(settings_.ready_every, [self = shared_from_this()] {
          if (self->hooks_.wanted()) self->AskReady();
        });
      });
}

void CsiInquiry::AskNodeCapabilities() {
  Ask<::csi::v1::NodeGetCapabilitiesResponse>(
      ::csi::v1::NodeGetCapabilitiesRequest(), settings_.identity, [this](const auto& answer) {
        if (!answer.ok()) return Fail(answer.error());
        facts_.node_capabilities = RpcTypes(*answer);
        settings_.controller ? AskControllerCapabilities() : AskNode();
      });
}

void CsiInquiry::AskControllerCapabilities() {
  Ask<::csi::v1::ControllerGetCapabilitiesResponse>(
      ::csi::v1::ControllerGetCapabilitiesRequest(), settings_.identity,
      [this](const auto& answer) {
        // At the node's socket there seldom is a controller.
        const bool is_missing = !answer.ok() && IsUnimplemented(answer.error()) && settings_.node;
        if (!answer.ok() && !is_missing) return Fail(NoController(answer.error()));
        if (answer.ok()) facts_.controller_capabilities = RpcTypes(*answer);
        settings_.node ? AskNode() : hooks_.done(facts_);
      });
}

void CsiInquiry::AskNode() {
  Ask<::csi::v1::NodeGetInfoResponse>(::csi::v1::NodeGetInfoRequest(), settings_.call,
                                      [this](const auto& answer) {
                                        if (!answer.ok()) return Fail(answer.error());
                                        if (const Status taken = TakeNode(*answer); !taken.ok())
                                          return Fail(taken.error());
                                        hooks_.done(facts_);
                                      });
}

Status CsiInquiry::TakeNode(const ::csi::v1::NodeGetInfoResponse& answer) {
  RETURN_IF_ERROR(WithoutSecrets(CheckCsiNodeId(answer.node_id())));
  const auto& segments = answer.accessible_topology().segments();
  facts_.topology = {segments.begin(), segments.end()};
  RETURN_IF_ERROR(WithoutSecrets(CheckCsiTopology(facts_.topology)));
  facts_.node_id = answer.node_id();
  facts_.max_volumes = answer.max_volumes_per_node();
  return OkStatus();
}

}  // namespace volumed
