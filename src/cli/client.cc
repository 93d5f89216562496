#include "cli/client.h"

#include <iostream>

namespace volumed {

Client::Client(const std::string& socket, std::chrono::milliseconds timeout) : timeout_(timeout) {
  grpc::ChannelArguments arguments;
  // The peer is on this machine: a broken path is a broken agent, not a broken network.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = v1::VolumeAgent::NewStub(
      grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments));
}

namespace {

// The agent's own answers have details; of a connection that is not there gRPC has none.
bool AgentAnswered(const grpc::Status& status) { return !status.error_details().empty(); }

}  // namespace

bool SaysNotYet(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE && AgentAnswered(status);
}

ExitCode ReportFailure(const grpc::Status& status, const std::string& socket) {
  const grpc::StatusCode code = status.error_code();
  const bool agent_answered = AgentAnswered(status);
  if (code == grpc::StatusCode::UNAVAILABLE && !agent_answered) {
    std::cerr << "volumectl: no agent answers at " << socket << ": " << status.error_message()
              << "\n";
    return kExitUnreachable;
  }
  std::cerr << "volumectl: " << status.error_message() << "\n";
  if (code == grpc::StatusCode::INVALID_ARGUMENT) return kExitUsage;
  if (code == grpc::StatusCode::NOT_FOUND) return kExitNotFound;
  // With details it is the node that refused something to the agent, as an immutable file does.
  if (code == grpc::StatusCode::PERMISSION_DENIED && !agent_answered) return kExitForbidden;
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) return kExitTimeout;
  return kExitError;
}

}  // namespace volumed
